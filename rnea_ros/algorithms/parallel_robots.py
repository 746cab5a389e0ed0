"""Parallel robots: a platform carried by legs. Actuator forces from the motion of the platform, and their rates.

Khalil, "Dynamic modeling of robots using recursive Newton-Euler techniques", section 5, (59)-(66); robots of reduced
mobility as in Khalil and Ibrahim, "General solution for the dynamic modeling of parallel robots" (2007).

    Vp         twist of the platform: velocity of its frame's origin, angular velocity; in the base frame
    q          joints of all legs side by side; the passive joints between legs and platform are not among them
    J, Jv      v = J qd = Jv Vp: velocities that the legs hand over to the platform, (63), (64). J is made of one block J_i for
               each leg, and so is its inverse; with legs side by side the sums over legs in (59) and (66) are products
    Jp, Q      Vp = Jp qad (60); qd = Q qad (61)
    Fp         force and moment that move the platform (9), about its origin, in the base frame

A leg that hands over more velocities than it has joints holds the platform back: J^-1 is then the least-squares inverse, and
what is left of (63)-(64), (1 - J J^-1) Jv Vp = 0, are the constraints that leave the platform less than six freedoms.
"""

from __future__ import annotations

import numpy as np

from ..algebra.arrays import Array
from ..algebra.taylor import Jet, derivative, jets
from ..algebra.vectors import cross, quaternion
from . import torque_rate as newton_euler
from .closed_loops import active_torque, spread
from .kinematics import moving_pose
from .torque_rate import BaseMotion


def turned(v):
    """Rotation (3, 3) by 4 atan(|v| / 4) about v (3,): modified Rodrigues parameters, times 4. A chart of all rotations but a
    full turn; where the angle is small, v is the angle times the axis."""
    x, y, z = v * 0.5
    return quaternion(x, y, z, 1.0 - np.dot(v, v) * 0.0625)


# ---------------------------------------------------------------------- its rates


def jacobians(phi, q, pose):
    """Return phi, and J and Jv: its derivatives by qd, less the sign, and by Vp.

    Each part of the Closure phi is differentiated by series in s along unit steps of the platform and of its own joints.
    """
    (R, P), values, rows = pose, [], []
    for joints, part in phi.parts:
        outcomes = []
        for unit in np.eye(6 + len(joints)).tolist():
            turn = np.transpose([cross(unit[3:6], x) for x in np.transpose(R)])
            leg = dict(zip(joints, _step(np.asarray(q)[joints], unit[6:]), strict=True))
            outcomes.append(part(leg, (_step(R, turn), _step(P, unit[:3]))))
        values.append(derivative(outcomes[0], 0))
        block = np.transpose([derivative(outcome, 1) for outcome in outcomes])
        rows.append(spread(block, [*range(6), *(6 + k for k in joints)], 6 + len(q)))
    both = np.concatenate(rows)
    return np.concatenate(values), -both[:, 6:], both[:, :6]


def _step(x, direction):
    """x + s dx as series in s, whose coefficients may be series themselves."""
    steps = [Jet([a, dx]) for a, dx in zip(np.ravel(x), np.ravel(direction), strict=True)]
    return np.array([*steps, None], dtype=object)[:-1].reshape(np.shape(x))


def jacobians_and_rates(phi, q, qd, pose, V):
    """J, Jv and the rates of the two: the same on series in time."""
    _, *both = jacobians(phi, jets(q, qd), moving_pose(pose, V))
    return [derivative(J, order) for order in (0, 1) for J in both]


def closure_rates(phi, q, qd, qdd, qddd, pose, V, Vd, Vdd):
    """First, second and third time derivative of phi along any motion of legs and platform."""
    outcome = phi(jets(q, qd, qdd, qddd), moving_pose(pose, V, Vd, Vdd))
    return [derivative(outcome, order) for order in (1, 2, 3)]


# ---------------------------------------------------------------------- velocities


def held_back(J, J_inverse, drift):
    """The share of a velocity handed over that the legs cannot follow: (1 - J J^-1) drift; none with joints enough for all."""
    return drift - J @ (J_inverse @ drift) if len(J) > J.shape[1] else np.zeros(drift.shape)


def platform_equations(J, J_inverse, Jv, active):
    """(N + m, 6): rows of the actuators, qad = J^-1 Jv Vp, that is Jp^-1 of (60); then the constraints on Vp."""
    return np.concatenate(((J_inverse @ Jv)[active], held_back(J, J_inverse, Jv)))


def velocity_maps(J, J_inverse, Jv, Jd, Jvd, A_inverse, active):
    """[Jp; Q] and its rate, (6 + n, N). A_inverse: least-squares inverse of `platform_equations`.

    Jv Jp - J Q = 0 with the active rows of Q at unity, (60)-(62); differentiated, it is the same system with the drift
    Jvd Jp - Jd Q on its left side and the active rows of Qd at zero.
    """
    def solve(unity, drift):
        follow = J_inverse @ drift
        Jp = A_inverse @ np.concatenate((unity - follow[active], -held_back(J, J_inverse, drift)))
        return Jp, J_inverse @ (Jv @ Jp) + follow  # (62)

    N = len(active)
    Jp, Q = solve(np.eye(N), np.zeros((len(J), N)))
    Jpd, Qd = solve(np.zeros((N, N)), Jvd @ Jp - Jd @ Q)
    return np.concatenate((Jp, Q)), np.concatenate((Jpd, Qd))


# ---------------------------------------------------------------------- forces


def platform_force(model, R, V, Vd, Vdd, gravity, **options):
    """Fp (6,) of (9) and its rate: the backward recursion of a tree that is one link, moved by its base.

    model: the platform alone; gravity (3,) in the base frame; options as in torque_rate.dynamics, wrenches in its frame.
    """
    own = R.T
    base = BaseMotion(own @ V[3:], own @ Vd[3:], own @ Vdd[3:], own @ (Vd[:3] - gravity), own @ Vdd[:3])
    forces = newton_euler.dynamics(model, newton_euler.kinematics(model, (), (), (), (), base), (), (), (), **options)
    f, n, fd, nd = (R @ values[0] for values in (forces.f, forces.n, forces.fd, forces.nd))
    return np.concatenate((f, n)), np.concatenate((fd, nd))


def force_in_chart(model, motion, R, gravity, body, own, own_rate, held):
    """(12,) platform_force, and its rate, of the coordinates x beside (R, P): place, and v of `turned`; any scalar.

    motion   : (24,) x and its first three time derivatives
    own      : (6,) wrench held by the platform, in its frame; own_rate: of its numbers
    held     : (15,) force and moment held by the world; and sum of p f^T, p the points of the platform that they push
    """
    x, *rates = np.split(motion, 4)
    rotation = [derivative(turned(jets(x[3:], *(rate[3:] for rate in rates))) @ R, order) for order in range(4)]
    w = _axial(jets(*rotation[1:]) @ jets(*rotation[:3]).T)
    V, Vd, Vdd = (np.concatenate((rate[:3], derivative(w, order))) for order, rate in enumerate(rates))
    turning = jets(*rotation[:2])
    at = turning @ held[6:].reshape(3, 3)
    moment = held[3:6] + _axial(at.T - at)  # p x f = the axial vector of f p^T - p f^T
    load = jets(own, own_rate) + np.concatenate((turning.T @ held[:3], turning.T @ moment))
    options = {"inertias": {0: body}, "wrenches": {0: derivative(load, 0)}, "wrench_rates": {0: derivative(load, 1)}}
    F, Fd = platform_force(model, rotation[0], V, Vd, Vdd, gravity, **options)
    v, moment = jets(x[3:], rates[0][3:]), jets(F[3:], Fd[3:])
    axes = [_axial(derivative(turned(_step(v, unit)), 1) @ turned(v).T) for unit in np.eye(3)]  # of the turning along each v
    felt = [axis @ moment for axis in axes]
    return np.concatenate((F[:3], derivative(felt, 0), Fd[:3], derivative(felt, 1)))


def _axial(W):
    """w of the matrix of w x."""
    return np.array([W[2, 1], W[0, 2], W[1, 0]])


def actuator_force(maps: Array, maps_rate: Array, Fp: Array, Fp_rate: Array, tau: Array,
                   tau_rate: Array) -> tuple[Array, Array]:
    """(59): Jp^T Fp + Q^T Gamma, Gamma from the legs as trees, which with Q = J^-1 Jv Jp is (66); and its rate."""
    return active_torque(maps, maps_rate, _both(Fp, tau), _both(Fp_rate, tau_rate))


def _both(first, second):
    """Concatenate the two; a single sample serves all samples of the other."""
    if first.ndim == second.ndim == 1:
        return np.concatenate((first, second))
    shape = np.broadcast_shapes(first.shape[:-1], second.shape[:-1])
    return np.concatenate([np.broadcast_to(part, (*shape, part.shape[-1])) for part in (first, second)], axis=-1)
