"""What each kernel evaluates: always the one recursion, with arguments left at zero (khalil-rne 3.3.1).

Every function takes (model, gravity, options, q, ...) in any scalar and returns a sequence of arrays; `options` go on to the
backward recursion (inertias, wrenches, wrench_rates). EVALUATIONS names them, with the blocks of coordinates that they take.
"""

from __future__ import annotations

from collections.abc import Callable

from .algorithms import torque_rate as newton_euler


def torque_and_rate(model, gravity, options, q, qd, qdd, qddd):
    return newton_euler.torque_and_rate(model, q, qd, qdd, qddd, gravity, **options)


def inverse_dynamics(model, gravity, options, q, qd, qdd):
    return newton_euler.torque_and_rate(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def inertia(model, gravity, options, q, qdd):
    """M(q) qdd."""
    return newton_euler.torque_and_rate(model, q, q * 0.0, qdd, q * 0.0, gravity * 0.0, offsets=False, **options)[:1]


def gravity_torque(model, gravity, options, q):
    zero = q * 0.0
    return newton_euler.torque_and_rate(model, q, zero, zero, zero, gravity, offsets=False, **options)[:1]


def dynamics(model, gravity, options, q, qd, qdd, qddd):
    """tau, tau_rate, gravity torque and its rate.

    Gravity enters affinely, so its rate along a motion is the rate of the motion without acceleration less the same in
    free fall; joint terms cancel.
    """
    zero = q * 0.0
    heavy = torque_and_rate(model, gravity, options, q, qd, zero, zero)[1]
    light = torque_and_rate(model, gravity * 0.0, options, q, qd, zero, zero)[1]
    gravity_rate = [a - b for a, b in zip(heavy, light, strict=True)]
    motion = torque_and_rate(model, gravity, options, q, qd, qdd, qddd)
    return *motion, *gravity_torque(model, gravity, options, q), gravity_rate


EVALUATIONS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "torque_and_rate": (torque_and_rate, ("q", "qd", "qdd", "qddd")),
    "inverse_dynamics": (inverse_dynamics, ("q", "qd", "qdd")),
    "inertia": (inertia, ("q", "qdd")),
    "gravity": (gravity_torque, ("q",)),
    "dynamics": (dynamics, ("q", "qd", "qdd", "qddd")),
}
