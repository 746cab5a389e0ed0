"""Rigid and elastic joints in one robot, each with its motor behind a gear on any link.

Hua, Poursina, Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint robotic manipulator using recursive Newton-Euler
formulation", (1)-(36), for trees; as corrected: (21) with d/dt of the rotors' momentum, frames of (27) and (29), (8) and (9)
where Algorithm 1 swaps them, spring torques of Algorithm 2.

    body          a link and all motors that it carries, their rotors locked: what the model's links must hold ("unified")
    theta         position of an elastic joint's motor, seen behind the gear: the spring's torque is K (theta - q)
    phi           theta for the motor of an elastic joint, q for that of a rigid one: the rotor turns eta phi on its link
    eta I z l     of a motor: gear ratio, inertia of the rotor about its axis, the axis (3,) seen in frame l, the carrier
    load          torque about the joint's axis that moves what lies beyond the joint, link-side friction included

(4)-(20), (22), (25) are the recursion of torque_rate.py. Only the rotors' spin is new: seen from the carrier it is one more
moment on the environment, (23). So no equation of a rigid body stands here a second time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from ..algebra.linalg import solve_positive
from ..algebra.vectors import ZERO, cross
from . import torque_rate as newton_euler
from .coordinates import from_links
from .equations import Motor
from .joint_dynamics import joint_dynamics
from .world_loads import seen_from_links


class Torques(NamedTuple):
    """Of the n joints. A joint without a Motor is driven directly: its load is its motor's torque. forces: of the links."""

    load: list
    motor: list
    forces: newton_euler.LinkForces


def elastic(motors: Iterable[Motor]) -> list[Motor]:
    """The motors of the elastic joints; their order is that of theta."""
    return [motor for motor in motors if motor.stiffness < math.inf]


def inverse_dynamics(model, motors, q, theta, gravity=ZERO, inertias=None, wrenches=None, world_wrenches=(),
                     offsets=True):
    """Algorithm 1. Returns Torques; any scalar.

    q, theta : position, velocity, acceleration of the n joints and of the motors of the elastic ones, three arrays each
    gravity  : acceleration (3,) in frame 0 [m/s^2]
    inertias : {link number: (m, ms, J)} instead of the model's own
    wrenches : {link number: (6,)} BY the environment ON the link about its frame's origin, components in frame j
    world_wrenches : [(link number, point (3,) in frame j, (6,))]: about the point, components in frame 0; see world_loads.py
    offsets  : whether constant torques of the joint dynamics count
    """
    zero, (position, qd, qdd) = [0.0] * model.n, q
    motion = newton_euler.kinematics(model, position, qd, qdd, zero, newton_euler.BaseMotion(a=-gravity))  # (4), (5), (16)
    waiting = iter(zip(*theta, strict=True))
    phi = [next(waiting) if m.stiffness < math.inf else [x[m.coordinate] for x in q] for m in motors]  # (8), (9)
    held = seen_from_links(model, motion, world_wrenches)
    outside = [*(wrenches or {}).items(), *((k, seen[0]) for k, seen in held.items())]
    for m, (_, phid, phidd) in zip(motors, phi, strict=True):
        momentum_rate = (m.axis * phidd + cross(motion.w[m.link], m.axis) * phid) * (m.term.gear_ratio * m.term.rotor_inertia)
        outside.append((m.link, np.concatenate((ZERO, -momentum_rate))))  # (23)
    total: dict[int, Any] = {}
    for number, wrench in outside:
        total[number] = total[number] + wrench if number in total else wrench
    forces = newton_euler.dynamics(model, motion, qd, qdd, zero, inertias, total, offsets=offsets)  # (19), (24), (25)
    load = from_links(model, forces.tau)
    torque = list(load)
    for m, (turn, phid, phidd) in zip(motors, phi, strict=True):
        arriving = (turn - position[m.coordinate]) * m.stiffness if m.stiffness < math.inf else load[m.coordinate]  # (28)
        carried = (m.axis @ motion.wd[m.link]) * (m.term.gear_ratio * m.term.rotor_inertia)
        torque[m.coordinate] = arriving + carried + joint_dynamics(m.term, phid, phidd, 0.0, offsets)[0]  # (27), (29)
    return Torques(load, torque, forces)


def rows(motors, torques):
    """Left side of (31), ordered as (32)-(34): the n joints, then the motors of the elastic ones."""
    springs = elastic(motors)
    joints = list(torques.motor)
    for m in springs:
        joints[m.coordinate] = torques.load[m.coordinate]
    return joints + [torques.motor[m.coordinate] for m in springs]


def mass_matrix(model, motors, q, inertias=None):
    """A = [[M, S], [S^T, B]] (n + Ne, n + Ne) of (31), a column for each acceleration, (34).

    The motors stand at theta = q: relaxed springs, so there is nothing to take off in (35).
    """
    springs = elastic(motors)
    n, size = model.n, model.n + len(springs)
    relaxed = [q[m.coordinate] for m in springs]
    columns = []
    for j in range(size):
        unit = [float(i == j) for i in range(size)]
        state = (q, [0.0] * n, unit[:n]), (relaxed, [0.0] * len(springs), unit[n:])
        columns.append(rows(motors, inverse_dynamics(model, motors, *state, inertias=inertias, offsets=False)))
    return np.array(columns).reshape(size, size).T


def bias(model, motors, q, theta, qd, thetad, **options):
    """zeta (n + Ne) of (31), (32), (33): velocity terms, gravity, friction, the environment; at the motors their springs."""
    still = [0.0] * model.n, [0.0] * len(elastic(motors))
    return rows(motors, inverse_dynamics(model, motors, (q, qd, still[0]), (theta, thetad, still[1]), **options))


def forward_dynamics(model, motors, q, theta, qd, thetad, tau, **options):
    """Algorithm 2, (36): accelerations (n + Ne) of joints and elastic joints' motors under motor torques tau (n,); and A."""
    springs = elastic(motors)
    right = list(tau) + [tau[m.coordinate] for m in springs]
    for k, m in enumerate(springs):
        right[m.coordinate] = (theta[k] - q[m.coordinate]) * m.stiffness  # tau_q
    zeta = bias(model, motors, q, theta, qd, thetad, **options)
    A = mass_matrix(model, motors, q, options.get("inertias"))
    return solve_positive(A, [a - b for a, b in zip(right, zeta, strict=True)]), A
