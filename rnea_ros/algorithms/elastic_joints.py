"""Joints on springs: some joints are driven, others are held by nothing but a spring, and the tree moves as it must.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 6, (67)-(82), for trees; as corrected:
accelerations move out with T and forces in with its transpose in (79)-(81), and (81) is for every joint.

The acceleration of a spring joint cannot be chosen. The inverse model takes the accelerations of the driven joints and returns
their torques and the accelerations of the others. The direct model is that of rigid robots, forward_dynamics.py, where springs
give the torques of their joints (6.2): nothing new has to be written for it.

    J* beta*  inertia and force of what hangs on the joint: it gives way at the springs, and is carried along elsewhere
    H U       J* seen by a spring joint, H = a^T J* a, and U = J* a
    K alpha   the force through the joint is f = K T Vd_i + alpha; the springs' K_j is called stiffness

Joint dynamics count as in forward_dynamics.py. A spring joint needs a coordinate of its own (no mimic joints on it).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO
from .coordinates import from_links, to_links
from .joint_dynamics import joint_dynamics
from .spatial import axis, forward, inertia, inertia_of
from .world_loads import on_links


class Spring(NamedTuple):
    """What holds a joint. stiffness [N m/rad or N/m]; rest: joint position where it is relaxed [rad or m]."""

    stiffness: float
    rest: float = 0.0


def spring_torque(spring, q):
    """(69), (70)."""
    return (q - spring.rest) * -spring.stiffness


def inverse_dynamics(model, q, qd, qdd, springs, gravity=ZERO, inertias=None, wrenches=None, world_wrenches=()):
    """(tau, qdd, H) of the n coordinates, 6.3: torques of all joints, accelerations of all joints; any scalar.

    qdd     : (n,) accelerations of the driven joints; those of spring joints are not read
    springs : {coordinate: Spring}
    gravity, inertias, wrenches : as in forward_dynamics.py; world_wrenches: as in world_loads.py
    H of a spring joint that moves no mass is 0, and its acceleration no number; H of a driven joint is 1.
    """
    wrenches = on_links(model, {"wrenches": wrenches, "world_wrenches": world_wrenches}, q, qd)["wrenches"]
    first = forward(model, q, qd, ZERO, inertias, wrenches)  # i), (18), (19), (34), (35)
    given, count = qdd, len(model.links)
    q, qd, qdd = to_links(model, q, offset=True), to_links(model, qd), to_links(model, qdd)
    J, beta = [inertia(*inertia_of(model, k, inertias)) for k in range(count)], list(first.beta)
    K, alpha, H, U, u = (list[Any]([None] * count) for _ in range(5))
    for k in range(count - 1, 0, -1):  # ii)
        link, a, i, T = model.links[k], axis(model.links[k]), model.links[k].parent, first.T[k]
        U[k] = J[k] @ a
        if link.coordinate in springs:
            friction = joint_dynamics(link.term, qd[k], 0.0, 0.0)[0]
            H[k] = a @ U[k] + link.term.armature  # (72)
            u[k] = spring_torque(springs[link.coordinate], q[k]) - friction + a @ beta[k]
            K[k] = J[k] - np.outer(U[k], U[k] / H[k])  # (73)
            alpha[k] = K[k] @ first.gamma[k] + U[k] * (u[k] / H[k]) - beta[k]  # (74)
        else:
            K[k] = J[k]  # (75)
            alpha[k] = K[k] @ first.gamma[k] + U[k] * qdd[k] - beta[k]  # (76)
        beta[i] = beta[i] - T.T @ alpha[k]  # (77)
        J[i] = J[i] + T.T @ K[k] @ T  # (78)
    Vd, tau = [np.concatenate((-gravity, ZERO))], [0.0]
    for k, link in enumerate(model.links[1:], start=1):  # iii)
        arriving = first.T[k] @ Vd[link.parent]
        f = K[k] @ arriving + alpha[k]  # (79)
        if link.coordinate in springs:
            qdd[k] = (u[k] - U[k] @ (arriving + first.gamma[k])) / H[k]  # (80)
        Vd.append(arriving + axis(link) * qdd[k] + first.gamma[k])  # (81)
        tau.append(axis(link) @ f + joint_dynamics(link.term, qd[k], qdd[k], 0.0)[0])  # (82); the spring's own torque
    own = {link.coordinate: k for k, link in enumerate(model.links)}
    moved = [qdd[own[c]] if c in springs else given[c] for c in range(model.n)]
    return from_links(model, tau), moved, [H[own[c]] if c in springs else 1.0 for c in range(model.n)]


def torque_and_rate(model, q, qd, qdd, qddd, springs, wrenches=None, wrench_rates=None, **options):
    """(tau, tau_rate, qdd, qddd) of the n coordinates: the inverse dynamics, run again on jets, differentiates itself.

    qdd, qddd: of the driven joints; what comes back holds the spring joints' too. wrench_rates: of the six components.
    """
    loads = {k: jets(wrench, (wrench_rates or {}).get(k, np.zeros(6))) for k, wrench in (wrenches or {}).items()}
    _tau, qdd, _H = inverse_dynamics(model, q, qd, qdd, springs, wrenches=wrenches, **options)
    motion = jets(q, qd), jets(qd, qdd), jets(qdd, qddd)
    tau, moved, _H = inverse_dynamics(model, *motion, springs, wrenches=loads, **options)
    return derivative(tau, 0), derivative(tau, 1), derivative(moved, 0), derivative(moved, 1)
