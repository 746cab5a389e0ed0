"""Forward dynamics by articulated bodies: the accelerations that given torques cause, at a cost linear in the joints.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", 3.3.2, (32)-(44), as corrected: angular
velocities seen in frame j in (34), accelerations moved out with T and forces moved in with its transpose.

    J* beta*     inertia and force of the articulated body: the link and all that hangs on it by free joints
    H U          J* seen by the joint, H = a^T J* a + Ia, and U = J* a
    K alpha      the force through the joint is f = K T Vd_i + alpha

Joint dynamics: friction and offset are taken off the torque, (44); the rotor inertia Ia joins H, (36).
Every joint must have its own coordinate. Mimic joints and coupled transmissions tie joints by gears, outside of the tree,
so that no recursion over the tree can free them one by one: then M qdd = tau - H is solved as in 3.3.1, from the tips inwards,
where M is sparse.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..algebra.linalg import pivots, solve_positive
from ..algebra.vectors import ZERO
from ..model import mdh
from ..model.tree import NO_COORDINATE
from . import torque_rate as newton_euler
from .joint_dynamics import joint_dynamics, load_friction, to_links, without_load_friction
from .mass_matrix import mass_matrix
from .spatial import axis, inertia, inertia_of, symmetric, velocity_recursion


class Joints(NamedTuple):
    """Lists over links 0..N that the last recursion needs: U and H as above, D = 1 / H, u = tau + a^T beta*."""

    U: list
    H: list
    D: list
    u: list


def forward_dynamics(model, q, qd, tau, gravity=ZERO, inertias=None, wrenches=None):
    """(qdd, H): accelerations of the n coordinates, base at rest, and the inertia that each felt; any scalar.

    H        : that of a joint alone, all joints beyond it free. Where it is zero no mass resists and qdd has no answer.
    gravity  : acceleration (3,) in frame 0 [m/s^2]
    inertias : {link number: (m, ms, J)} instead of the model's own
    wrenches : {link number: (6,)} BY the environment ON the link, in frame j
    """
    tau, model = _unloaded(model, qd, tau), without_load_friction(model)
    if not articulated(model):
        return _by_mass_matrix(model, q, qd, tau, gravity, inertias, wrenches)
    first = velocity_recursion(model, q, qd, ZERO, inertias, wrenches)
    joints, _J, _beta = articulate(model, qd, tau, first, inertias)
    qdd = accelerate(model, first, joints, np.concatenate((-gravity, ZERO)))
    return in_coordinates(model, qdd), in_coordinates(model, joints.H)


def _unloaded(model, qd, tau):
    """Return torques without their load-dependent friction; every joint must have its own coordinate."""
    tau = [tau[k] for k in range(model.n)]
    for link in model.links:
        if link.term.load_dependent:
            k = link.coordinate
            other = joint_dynamics(link.term, qd[k], 0.0, 0.0)[0]
            tau[k] = tau[k] - load_friction(link.term, tau[k] - other, qd[k])
    return np.array(tau)


def articulated(model):
    """Return whether every joint has its own coordinate, and no motor couples several joints."""
    used = [link.coordinate for link in model.links if link.coordinate != NO_COORDINATE]
    return len(used) == len(set(used)) and not model.coupled_motors


def _by_mass_matrix(model, q, qd, tau, gravity, inertias, wrenches):
    """(8). The n-th coordinate is eliminated first: a matrix of a tree then stays as sparse as it is."""
    H, _rate = newton_euler.torque_and_rate(model, q, qd, q * 0.0, q * 0.0, gravity, inertias=inertias, wrenches=wrenches)
    M = mass_matrix(model, q, inertias)[::-1, ::-1]
    qdd = solve_positive(M, [t - h for t, h in zip(tau, H, strict=True)][::-1])
    return qdd[::-1], pivots(M)[::-1]


def articulate(model, qd, tau, first, inertias=None):
    """Backward recursion (36)-(40). Returns (Joints, J*_0, beta*_0)."""
    qd, tau = to_links(model, qd), to_links(model, tau)
    J, beta = [inertia(*inertia_of(model, k, inertias)) for k in range(len(model.links))], list(first.beta)
    joints = Joints(*([0.0] * len(model.links) for _ in Joints._fields))
    for k in range(len(model.links) - 1, 0, -1):
        link, a, i, T, gamma = model.links[k], axis(model.links[k]), model.links[k].parent, first.T[k], first.gamma[k]
        K, alpha = J[k], J[k] @ gamma - beta[k]  # of a fixed frame
        if link.sigma != mdh.FIXED:
            U = J[k] @ a
            H = a @ U + link.term.armature  # (36)
            D = 1.0 / H
            K = symmetric(J[k] - np.outer(U, U * D))  # (37)
            u = tau[k] - joint_dynamics(link.term, qd[k], 0.0, 0.0)[0] + a @ beta[k]  # (44)
            alpha = K @ gamma + U * (D * u) - beta[k]  # (38)
            joints.U[k], joints.H[k], joints.D[k], joints.u[k] = U, H, D, u
        beta[i] = beta[i] - T.T @ alpha  # (39)
        J[i] = J[i] + symmetric(T.T @ K @ T)  # (40)
    return joints, J[0], beta[0]


def accelerate(model, first, joints, Vd0):
    """Second forward recursion (41), (43): qdd of links 0..N from the acceleration (6,) of link 0, gravity taken off."""
    Vd, qdd = [Vd0], [0.0]
    for k, link in enumerate(model.links[1:], start=1):
        V = first.T[k] @ Vd[link.parent] + first.gamma[k]
        qdd.append(0.0 if link.sigma == mdh.FIXED else joints.D[k] * (joints.u[k] - joints.U[k] @ V))  # (41)
        Vd.append(V + axis(link) * qdd[k])  # (43)
    return qdd


def in_coordinates(model, values):
    """Values of links 0..N as those of the n coordinates, where each joint has its own."""
    found = {link.coordinate: value for link, value in zip(model.links, values, strict=True)}
    return [found[c] for c in range(model.n)]
