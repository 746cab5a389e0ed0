"""Regressors: tau = Y params and tau_rate = Yd params, by one evaluation of the torque-rate recursion on linear forms.

The recursion of torque_rate.py is linear in m, ms, J of every link and in Ia, Fs, Fv, Fo of every joint (Khalil and Dombre
2002, chapter 12; Atkeson, An and Hollerbach 1986). Run on parameters that are `LinearForm`s it returns each torque as a form, whose
coefficients are a row of Y. Each parameter is carried only from its link down to the root, so Y has as many entries as
there are pairs of a parameter and a joint that feels it, each at a constant cost; the kinematics are shared by all.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..inertial_parameters import Parameter, with_unknowns
from ..linear_forms import coefficients, unknowns
from ..vectors import ZERO, cross
from .coordinates import from_links
from .torque_rate import BaseMotion, dynamics, kinematics


def regressor(model, listed: Sequence[Parameter], q, qd, qdd, qddd, gravity=ZERO, base=BaseMotion(), root=False):
    """(Y, Yd), (n, p) each: a row for each coordinate, mimic joints folded, a column for each listed parameter; any scalar.

    gravity : acceleration (3,) in frame 0 [m/s^2]
    base    : motion of link 0, see torque_rate.py
    root    : put six rows above: the wrench on link 0 that its motion needs, force first, and the rates of its components
    """
    unknown = with_unknowns(model, listed, unknowns(len(listed)))
    motion = kinematics(unknown, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    forces = dynamics(unknown, motion, qd, qdd, qddd)
    tau, tau_rate = from_links(unknown, forces.tau), from_links(unknown, forces.tau_rate)
    if root:
        f, n, fd, nd = (load[0] for load in (forces.f, forces.n, forces.fd, forces.nd))
        tau = [*f, *n, *tau]
        tau_rate = [*(fd + cross(f, base.w)), *(nd + cross(n, base.w)), *tau_rate]
    return coefficients(tau, len(listed)), coefficients(tau_rate, len(listed))
