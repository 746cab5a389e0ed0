"""Energy, momentum, centre of mass, Coriolis matrix: each an evaluation of the inverse dynamics.

A robot at rest that is given, in unit time, accelerations equal to its velocities gets its momenta: with qd instead of
qdd, zero instead of qd and no gravity, the recursion returns M qd at the joints, and at the base the momentum of all
links, linear and about the base's origin. Energy and the motion of the mass centre follow.

The Coriolis matrix is that of lie-notes section 11: C_ij = sum_k (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) qd_k / 2, for which
Mdot - 2 C is skew. Velocity torques are h = C(q, qd) qd, quadratic in qd, and C(q, qd) x is symmetric in qd and x: so C x is
half the slope of h along x, at qd.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, cross
from ..model.tree import JointDynamics
from . import component_rate
from . import torque_rate as newton_euler
from .forward_dynamics import composites, link_poses, mass_matrix
from .joint_dynamics import with_motors, without_load_friction
from .torque_rate import RootMotion


def momenta(model, q, qd, v=ZERO, w=ZERO, inertias=None):
    """(M qd, p, L): of the n coordinates, rotors included; linear [kg m/s] and about the base's origin [kg m^2/s], in frame 0.

    v, w : velocity of the base's origin and angular velocity (3,) in frame 0
    """
    rest = q * 0.0
    motion = newton_euler.kinematics(model, q, rest, qd, rest, RootMotion(a=v, wd=w))
    forces = newton_euler.dynamics(model, motion, rest, qd, rest, inertias=inertias, offsets=False)
    tau = newton_euler.from_links(model, forces.tau)
    tau, _rate = with_motors(model.coupled_motors, tau, rest, rest, qd, rest, offsets=False)
    return tau, forces.f[0], forces.n[0]


def first_moments(model, q, inertias=None):
    """(m, ms): mass of the whole robot [kg], and mass times position of its centre (3,) [kg m], in frame 0."""
    return composites(model, link_poses(model, q), inertias)[0][:2]


def energy(model, q, qd, gravity, v=ZERO, w=ZERO, inertias=None):
    """(T, U): kinetic and potential energy [J], U zero with all mass at the origin of frame 0. gravity: (3,) in frame 0."""
    M_qd, p, L = momenta(model, q, qd, v, w, inertias)
    kinetic = sum((a * b for a, b in zip(qd, M_qd, strict=True)), np.dot(v, p) + np.dot(w, L)) * 0.5
    return kinetic, -np.dot(gravity, first_moments(model, q, inertias)[1])


def center_of_mass(model, q, qd, v=ZERO, w=ZERO, inertias=None):
    """(c, c_dot, p, L): position and velocity of the mass centre, linear momentum, momentum about the mass centre; frame 0."""
    m, ms = first_moments(model, q, inertias)
    _M_qd, p, L = momenta(model, q, qd, v, w, inertias)
    c = ms / m
    return c, p / m, p, L - cross(c, p)


def coriolis(model, q, qd, x, inertias=None):
    """C(q, qd) x, (n,); the columns of C from unit vectors x."""
    rest = q * 0.0
    bare = replace(model, links=tuple(replace(link, term=JointDynamics()) for link in model.links), coupled_motors=())
    h, _rate = newton_euler.torque_and_rate(bare, q, jets(qd, x), rest, rest, inertias=inertias)
    return derivative(h, 1) * 0.5


def generalized_momentum(model, q, qd, gravity, inertias=None):
    """(p, drift): p = M qd, and its rate without torques, dp/dt = tau + drift: drift = C^T qd - g - friction (n,).

    Neither tau nor the drift has friction by load. With Mdot = C + C^T the drift is Mdot qd less the torques that keep qd
    constant.
    """
    p = momenta(model, jets(q, qd), qd, inertias=inertias)[0]
    rest = q * 0.0
    steady, _rate = component_rate.torque_and_rate(without_load_friction(model), q, qd, rest, rest, gravity, inertias=inertias)
    return derivative(p, 0), [a - b for a, b in zip(derivative(p, 1), steady, strict=True)]


def mass_matrix_rate(model, q, qd, inertias=None):
    """d M / dt (n, n) along qd."""
    return derivative(mass_matrix(model, jets(q, qd), inertias), 1)
