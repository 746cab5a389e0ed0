"""Functions of the kernels: the recursion with some arguments at zero (khalil-rne 3.3.1), or a cheaper one.

Every function takes (model, gravity, options, q, ...) in any scalar and returns a sequence of arrays, see KernelFunction.
Those of the Newton-Euler recursion take it as `rnea`: kernels are traced from the cheap form, component_rate.py, and backend
"reference" runs the papers' text.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...algorithms import component_rate
from ...algorithms import energy as energetics
from ...algorithms import forward_dynamics as articulated_bodies
from ...algorithms import link_shares as shares
from ...algorithms import mass_matrix as composite_bodies
from ...algorithms import torque_rate as newton_euler
from ...algorithms.joint_dynamics import without_load_friction
from ...algorithms.world_loads import on_links
from . import derivative_functions, floating_functions
from .kernel_function import KernelFunction


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
    free fall; joint dynamics, without friction by load, cancel. External wrenches have no share in either.
    """
    zero = q * 0.0
    untouched = {name: value for name, value in options.items() if name == "inertias"}
    bare = without_load_friction(model)
    heavy = torque_and_rate(rnea, bare, gravity, untouched, q, qd, zero, zero)[1]
    light = torque_and_rate(rnea, bare, gravity * 0.0, untouched, q, qd, zero, zero)[1]
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


def generalized_momentum(model, gravity, options, q, qd):
    return energetics.generalized_momentum(model, q, qd, gravity, **options)


def link_torques(model, gravity, options, q, qd, qdd):
    """(links, n): share of each link in the torques."""
    return shares.link_shares(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def link_torques_and_rates(model, gravity, options, q, qd, qdd, qddd):
    """(links, n) each: share of each link in torques and torque rates."""
    return shares.link_shares(model, q, qd, qdd, qddd, gravity, **options)


def energy(model, gravity, options, q, qd):
    """(2,): kinetic and potential."""
    return [energetics.energy(model, q, qd, gravity, **options)]


def center_of_mass(model, gravity, options, q, qd):
    """Return position and velocity of the mass centre, and the momentum about it."""
    c, velocity, p, L = energetics.center_of_mass(model, q, qd, **options)
    return c, velocity, np.concatenate((p, L))


def recursion(model, gravity, options, q, qd, qdd, qddd):
    """The papers' text itself: LinkMotion and LinkForces."""
    motion = newton_euler.kinematics(model, q, qd, qdd, qddd, newton_euler.RootMotion(a=-gravity))
    return motion, newton_euler.dynamics(model, motion, qd, qdd, qddd, **options)


def _of_newton_euler(name: str, function: Callable[..., Any], *blocks: str) -> KernelFunction:
    """Return a function by the cheap form of the recursion, with base parameters; for backend "reference", by the papers'."""
    return KernelFunction(name, partial(function, component_rate.torque_and_rate), blocks,
                          partial(function, newton_euler.torque_and_rate), regrouped=True)


# Regrouped are those that ask for torques, or for what follows from them: traced with base parameters instead of the links'
# own inertias. External wrenches and payloads add to these. Accelerations would be the same too, but where a joint moves next
# to nothing their rounding errors would be larger.
KERNEL_FUNCTIONS: dict[str, KernelFunction] = {function.key: function for function in (  # type: ignore[misc]  # keys are names
    _of_newton_euler("torque_and_rate", torque_and_rate, "q", "qd", "qdd", "qddd"),
    _of_newton_euler("inverse_dynamics", inverse_dynamics, "q", "qd", "qdd"),
    _of_newton_euler("inertia", inertia, "q", "qdd"),
    _of_newton_euler("gravity", gravity_torque, "q"),
    _of_newton_euler("dynamics", dynamics, "q", "qd", "qdd", "qddd"),
    KernelFunction("mass_matrix", mass_matrix, ("q",), regrouped=True, any_base=True),
    KernelFunction("mass_matrix_rate", mass_matrix_rate, ("q", "qd"), regrouped=True, any_base=True),
    KernelFunction("coriolis", coriolis, ("q", "qd", "x"), regrouped=True, any_base=True),
    KernelFunction("forward_dynamics", forward_dynamics, ("q", "qd", "tau")),
    KernelFunction("generalized_momentum", generalized_momentum, ("q", "qd"), regrouped=True),
    KernelFunction("link_torques", link_torques, ("q", "qd", "qdd")),
    KernelFunction("link_torques_and_rates", link_torques_and_rates, ("q", "qd", "qdd", "qddd")),
    KernelFunction("energy", energy, ("q", "qd"), any_base=True),
    KernelFunction("center_of_mass", center_of_mass, ("q", "qd"), any_base=True),
    *floating_functions.KERNEL_FUNCTIONS,
    *derivative_functions.KERNEL_FUNCTIONS,
)}
RECURSION = KernelFunction("recursion", recursion, ("q", "qd", "qdd", "qddd"))
