"""What each kernel evaluates: the one recursion with arguments left at zero (khalil-rne 3.3.1), or one that is cheaper.

Every function takes (model, gravity, options, q, ...) in any scalar and returns a sequence of arrays; `options` go on to the
backward recursion (inertias, wrenches, wrench_rates). KERNEL_FUNCTIONS names them, with the blocks of coordinates that they
take.
Those of the Newton-Euler recursion take it as `rnea`: kernels are traced from the cheap form, component_rate.py, and those in
REGROUPED from a model with few inertial parameters; REFERENCE_FUNCTIONS runs the papers' text on the model itself.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...algorithms import component_rate
from ...algorithms import energy as energetics
from ...algorithms import forward_dynamics as articulated_bodies
from ...algorithms import mass_matrix as composite_bodies
from ...algorithms import torque_rate as newton_euler
from ...algorithms.world_loads import on_links
from . import derivative_functions, floating_functions


def torque_and_rate(rnea, model, gravity, options, q, qd, qdd, qddd):
    return rnea(model, q, qd, qdd, qddd, gravity, **on_links(model, options, q, qd))


def inverse_dynamics(rnea, model, gravity, options, q, qd, qdd):
    return rnea(model, q, qd, qdd, q * 0.0, gravity, **on_links(model, options, q, qd))[:1]


def inertia(rnea, model, gravity, options, q, qdd):
    """M(q) qdd."""
    return rnea(model, q, q * 0.0, qdd, q * 0.0, gravity * 0.0, offsets=False, **options)[:1]


def gravity_torque(rnea, model, gravity, options, q):
    zero = q * 0.0
    return rnea(model, q, zero, zero, zero, gravity, offsets=False, **options)[:1]


def dynamics(rnea, model, gravity, options, q, qd, qdd, qddd):
    """tau, tau_rate, gravity torque and its rate.

    Gravity enters affinely, so its rate along a motion is the rate of the motion without acceleration less the same in
    free fall; joint dynamics cancel. External wrenches have no share in either.
    """
    zero = q * 0.0
    untouched = {name: value for name, value in options.items() if name == "inertias"}
    heavy = torque_and_rate(rnea, model, gravity, untouched, q, qd, zero, zero)[1]
    light = torque_and_rate(rnea, model, gravity * 0.0, untouched, q, qd, zero, zero)[1]
    gravity_rate = [a - b for a, b in zip(heavy, light, strict=True)]
    motion = torque_and_rate(rnea, model, gravity, options, q, qd, qdd, qddd)
    return *motion, *gravity_torque(rnea, model, gravity, untouched, q), gravity_rate


def mass_matrix(model, gravity, options, q):
    return [composite_bodies.mass_matrix(model, q, **options)]


def mass_matrix_rate(model, gravity, options, q, qd):
    return [energetics.mass_matrix_rate(model, q, qd, **options)]


def coriolis(model, gravity, options, q, qd, x):
    """C(q, qd) x."""
    return [energetics.coriolis(model, q, qd, x, **options)]


def forward_dynamics(model, gravity, options, q, qd, tau):
    """qdd, the inertia that each joint felt, and the one that it would feel with all others locked."""
    options = floating_functions.values_only(on_links(model, options, q, qd))
    qdd, felt = articulated_bodies.forward_dynamics(model, q, qd, tau, gravity, **options)
    return qdd, felt, composite_bodies.locked(model, q, options.get("inertias"))[1]


def energy(model, gravity, options, q, qd):
    """(2,): kinetic and potential."""
    return [energetics.energy(model, q, qd, gravity, **options)]


def center_of_mass(model, gravity, options, q, qd):
    """Place, velocity, and momentum about it."""
    c, velocity, p, L = energetics.center_of_mass(model, q, qd, **options)
    return c, velocity, np.concatenate((p, L))


def recursion(model, gravity, options, q, qd, qdd, qddd):
    """The papers' text itself: LinkMotion and LinkForces."""
    motion = newton_euler.kinematics(model, q, qd, qdd, qddd, newton_euler.BaseMotion(a=-gravity))
    return motion, newton_euler.dynamics(model, motion, qd, qdd, qddd, **options)


NEWTON_EULER: dict[str, tuple[Callable, tuple[str, ...]]] = {
    "torque_and_rate": (torque_and_rate, ("q", "qd", "qdd", "qddd")),
    "inverse_dynamics": (inverse_dynamics, ("q", "qd", "qdd")),
    "inertia": (inertia, ("q", "qdd")),
    "gravity": (gravity_torque, ("q",)),
    "dynamics": (dynamics, ("q", "qd", "qdd", "qddd")),
}


def _by(rnea: Callable) -> dict[str, tuple[Callable, tuple[str, ...]]]:
    return {name: (partial(function, rnea), blocks) for name, (function, blocks) in NEWTON_EULER.items()}


KERNEL_FUNCTIONS: dict[str, tuple[Callable, tuple[str, ...]]] = {
    **_by(component_rate.torque_and_rate),
    "mass_matrix": (mass_matrix, ("q",)),
    "mass_matrix_rate": (mass_matrix_rate, ("q", "qd")),
    "coriolis": (coriolis, ("q", "qd", "x")),
    "forward_dynamics": (forward_dynamics, ("q", "qd", "tau")),
    "energy": (energy, ("q", "qd")),
    "center_of_mass": (center_of_mass, ("q", "qd")),
    **floating_functions.KERNEL_FUNCTIONS,
    **derivative_functions.KERNEL_FUNCTIONS,
}
# Those that ask for torques, or for what follows from them: traced with base parameters instead of the links' own inertias.
# External wrenches and payloads add to these. Accelerations would be the same too, but where a joint moves next to nothing
# their rounding errors would be larger.
REGROUPED = frozenset({*NEWTON_EULER, "mass_matrix", "mass_matrix_rate", "coriolis", "sensitivities", "rate_sensitivities"})
# Those that a free base does not make wrong: its motion is among their inputs, or they are parts of what moves relative to it.
ANY_BASE = frozenset({*floating_functions.KERNEL_FUNCTIONS, "mass_matrix", "mass_matrix_rate", "coriolis", "energy",
                      "center_of_mass"})
REFERENCE_FUNCTIONS = {**KERNEL_FUNCTIONS, **_by(newton_euler.torque_and_rate)}
