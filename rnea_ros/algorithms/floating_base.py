"""Robots whose base is free: swimming, flying, walking. Inverse and forward dynamics, torque rate, and the A and H form.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 7, for trees, as corrected: the base
takes part in beta and J for j = 0; both signs of (96); gravity added after (97) and (109).

    Vd0       true acceleration of the base: of its frame's origin, then angular, seen in frame 0 (6,)
    Vdd0      true jerk of the base likewise: rates in the inertial frame, seen in frame 0 (6,)
    J^c beta^c   inertia and force of the composite link: all links beyond the joint, moving as one body
    w         angular velocity of the base in frame 0 (3,). Its linear velocity has no influence.
    gravity   acceleration of gravity in frame 0 (3,)

All costs are linear in the number of joints, but for A. Rates are those of torque_rate.py, whose recursion starts at the base.
"""

from __future__ import annotations

import numpy as np

from ..algebra.linalg import pivots, solve_positive
from ..algebra.vectors import ZERO, cross
from . import torque_rate as newton_euler
from .forward_dynamics import accelerate, articulate, articulated, in_coordinates
from .joint_dynamics import from_links, joint_dynamics, to_links
from .mass_matrix import base_inertia, composites, link_poses, partitions
from .spatial import axis, inertia, velocity_recursion
from .torque_rate import RootMotion


def inverse_dynamics(model, q, qd, qdd, w, gravity, inertias=None, wrenches=None):
    """Return (Vd0, tau): acceleration of the free base and torques (n,) for a motion of the joints; (89)-(100).

    q, qd, qdd : the n coordinates; any scalar
    inertias, wrenches : as in spatial.py
    """
    first = velocity_recursion(model, q, qd, w, inertias, wrenches)
    qd, qdd = to_links(model, qd), to_links(model, qdd)
    J = [inertia(*body) for body in composites(model, link_poses(model, q), inertias)]  # (95)
    zeta, beta = [None], list(first.beta)
    for k, link in enumerate(model.links[1:], start=1):
        zeta.append(first.gamma[k] + axis(link) * qdd[k])  # (89)
    for k in range(len(model.links) - 1, 0, -1):
        i = model.links[k].parent
        beta[i] = beta[i] + first.T[k].T @ (beta[k] - J[k] @ zeta[k])  # (96)
    Vd = [solve_positive(J[0], beta[0])]  # (97), gravity taken off
    tau = [0.0]
    for k, link in enumerate(model.links[1:], start=1):
        Vd.append(first.T[k] @ Vd[link.parent] + zeta[k])  # (98)
        f = J[k] @ Vd[k] - beta[k]  # (99)
        tau.append(axis(link) @ f + joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0])  # (100)
    return Vd[0] + np.concatenate((gravity, ZERO)), from_links(model, tau)


def torque_and_rate(model, q, qd, qdd, qddd, w, gravity, inertias=None, wrenches=None, wrench_rates=None):
    """Return (Vd0, Vdd0, tau, tau_rate): acceleration and jerk of the free base, torques and their rates for a joint motion.

    A free base needs no wrench, so the rate of its wrench is zero too. That rate is affine in the jerk of the base, with slope
    A11: the jerk follows, and with it the torque rates. wrench_rates: {link number: (6,)} rates of those six components.
    """
    options = {"inertias": inertias, "wrenches": wrenches, "wrench_rates": wrench_rates}
    Vd0, tau = inverse_dynamics(model, q, qd, qdd, w, gravity, inertias, wrenches)

    def carried(Vdd0):
        motion = RootMotion(w, Vd0[3:], Vdd0[3:], Vd0[:3], Vdd0[:3])
        return prescribed(model, q, qd, qdd, qddd, motion, gravity, **options)

    _tau, _rate, _f0, f0_rate = carried(np.zeros(6))
    Vdd0 = -solve_positive(base_inertia(model, q, inertias), f0_rate)
    return Vd0, Vdd0, tau, carried(Vdd0)[1]


def forward_dynamics(model, q, qd, tau, w, gravity, inertias=None, wrenches=None):
    """Return (Vd0, qdd, H): accelerations of base and joints under torques (n,), (101)-(112).

    H : (6 + n,) pivots of the base's inertia and inertias of the joints; where one is zero no mass resists
    Mimic joints: as in forward_dynamics.py, here by (88).
    """
    if not articulated(model):
        return _by_mass_matrix(model, q, qd, tau, w, gravity, inertias, wrenches)
    first = velocity_recursion(model, q, qd, w, inertias, wrenches)  # (101), (102)
    joints, J, beta = articulate(model, qd, tau, first, inertias)  # (103)-(108)
    Vd0 = solve_positive(J, beta)  # (109), gravity taken off
    qdd = accelerate(model, first, joints, Vd0)  # (110), (112)
    H = pivots(J) + in_coordinates(model, joints.H)
    return Vd0 + np.concatenate((gravity, ZERO)), in_coordinates(model, qdd), H


def _by_mass_matrix(model, q, qd, tau, w, gravity, inertias, wrenches):
    """Solve (88) with the mass matrix, the n-th coordinate first and the base last."""
    zero = q * 0.0
    H2, _rate, H1, _rate = prescribed(model, q, qd, zero, zero, RootMotion(w), gravity, inertias=inertias, wrenches=wrenches)
    A = mass_matrix(model, q, inertias)[::-1, ::-1]
    forces = [-h for h in H1] + [t - h for t, h in zip(tau, H2, strict=True)]
    x = solve_positive(A, forces[::-1])[::-1]
    return x[:6], x[6:], pivots(A)[::-1]


def mass_matrix(model, q, inertias=None):
    """Return A (6+n, 6+n), base first: [0; tau] = A [Vd0; qdd] + H, (83), (84)."""
    A11, A12, A22 = partitions(model, q, inertias)
    return np.block([[A11, A12], [A12.T, A22]])


def prescribed(model, q, qd, qdd, qddd, motion, gravity, **options):
    """Return (tau, tau_rate, f0, f0_rate) for a prescribed motion of the base, as on a vehicle.

    motion  : RootMotion of the base, true acceleration and jerk
    f0      : force and moment (6,) about the base's origin that this motion needs, seen in frame 0; f0_rate: their rates
    options : of the backward recursion (10)-(21)

    With Vd0 and qdd zero, f0 and tau are H of (83).
    """
    links = newton_euler.kinematics(model, q, qd, qdd, qddd, motion._replace(a=motion.a - gravity))
    forces = newton_euler.dynamics(model, links, qd, qdd, qddd, **options)
    f, n, w = forces.f[0], forces.n[0], motion.w
    f_rate, n_rate = forces.fd[0] - cross(w, f), forces.nd[0] - cross(w, n)
    return (from_links(model, forces.tau), from_links(model, forces.tau_rate),
            np.concatenate((f, n)), np.concatenate((f_rate, n_rate)))
