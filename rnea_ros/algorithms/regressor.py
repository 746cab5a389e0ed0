"""Regressors: tau = Y params and tau_rate = Yd params, by one evaluation of the torque-rate recursion on linear forms.

The recursion of torque_rate.py is linear in m, ms, J of every link and in Ia, Fs, Fv, Fo of every joint (Atkeson, An and
Hollerbach 1986; Khalil and Dombre 2002, chapter 12). Run on a model whose parameters are `LinearForm`s it returns each
torque as a form, whose coefficients are a row of Y: no second formula. All parameters share the kinematics, and each is
carried only from its link down to the root: every entry of Y that is not zero costs the same few operations.
"""

from __future__ import annotations

from ..algebra.linear_forms import coefficients
from ..algebra.vectors import ZERO, cross
from .coordinates import from_links
from .joint_dynamics import with_motors
from .torque_rate import RootMotion, dynamics, kinematics


def regressor(model, count, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), root=False):
    """(Y, Yd), (n, count) each: a row for each coordinate, mimic joints folded, a column for each parameter; any scalar.

    model   : its parameters are the forms 0 to count - 1, or zero: see inertial_parameters.with_unknowns
    gravity : acceleration (3,) in frame 0 [m/s^2]
    base    : motion of link 0, see torque_rate.py
    root    : prepend six rows: the wrench on link 0 that its motion needs, in frame 0, force first; in Yd the rates of its
              components
    """
    motion = kinematics(model, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    forces = dynamics(model, motion, qd, qdd, qddd)
    tau, tau_rate = from_links(model, forces.tau), from_links(model, forces.tau_rate)
    tau, tau_rate = with_motors(model.coupled_motors, tau, tau_rate, qd, qdd, qddd)
    if root:
        f, n, fd, nd = (load[0] for load in (forces.f, forces.n, forces.fd, forces.nd))
        tau = [*f, *n, *tau]
        tau_rate = [*(fd + cross(f, base.w)), *(nd + cross(n, base.w)), *tau_rate]
    return coefficients(tau, count), coefficients(tau_rate, count)
