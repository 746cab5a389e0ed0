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

from ..algebra.linalg import pivots
from ..algebra.vectors import ZERO
from ..algorithms import component_rate, kinematics
from ..algorithms import energy as energetics
from ..algorithms import forward_dynamics as bodies
from ..algorithms import sensitivities as closed_form
from ..algorithms import torque_rate as newton_euler
from ..algorithms.component_rate import link_shares
from ..algorithms.joint_dynamics import without_load_friction
from ..algorithms.torque_rate import RootMotion, on_links
from ..model.tree import Model
from .kernel_store import KernelFunction

STATE = ("q", "qd", "base_velocity", "base_gravity")


def values_only(options):
    """Options of algorithms that have no rates."""
    return {name: value for name, value in options.items() if name != "wrench_rates"}


def _on_free_links(model, options, q, qd, base_velocity):
    """Return the loads of the world, which keep their direction while base and links turn, among those of the links."""
    return on_links(model, options, q, qd, base_velocity[3:])


def free_torque_and_rate(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd):
    """Return base acceleration and jerk, tau, tau_rate, and the inertia that the base felt and its scale."""
    options = _on_free_links(model, options, q, qd, base_velocity)
    found = bodies.free_torque_and_rate(model, q, qd, qdd, qddd, base_velocity[3:], base_gravity, **options)
    return *found, *_felt_by_base(model, q, options)


def _felt_by_base(model, q, options):
    A11 = bodies.base_inertia(model, q, options.get("inertias"))
    return pivots(A11), np.diag(A11)


def free_response(model, gravity, options, q, qd, base_velocity, base_gravity, tau):
    """Return base acceleration, qdd, and the inertias that base and joints felt and would feel with all others locked."""
    options = values_only(_on_free_links(model, options, q, qd, base_velocity))
    Vd0, qdd, felt = bodies.free_forward_dynamics(model, q, qd, tau, base_velocity[3:], base_gravity, **options)
    base, joints = bodies.locked(model, q, options.get("inertias"))
    return Vd0, qdd, felt, base + joints


def prescribed_base(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd, base_acceleration, base_jerk):
    """tau, tau_rate, base wrench and the rates of its components."""
    motion = RootMotion(base_velocity[3:], base_acceleration[3:], base_jerk[3:], base_acceleration[:3], base_jerk[:3])
    options = _on_free_links(model, options, q, qd, base_velocity)
    return bodies.prescribed(model, q, qd, qdd, qddd, motion, base_gravity, **options)


def free_gravity(model, gravity, options, q, qd, base_velocity, base_gravity):
    """Return base wrench and torques that hold the robot still against gravity."""
    rest = q * 0.0
    tau, _rate, f0, _rate = bodies.prescribed(model, q, rest, rest, rest, RootMotion(ZERO), base_gravity, offsets=False,
                                             **options)
    return f0, tau


def free_mass_matrix(model, gravity, options, q):
    """Return A of base and joints."""
    return [bodies.free_mass_matrix(model, q, **options)]


def free_energy(model, gravity, options, q, qd, base_velocity, base_gravity):
    """(2,): kinetic energy, and the potential energy as if the base were at the world's origin."""
    return [energetics.energy(model, q, qd, base_gravity, base_velocity[:3], base_velocity[3:], **options)]


def free_center_of_mass(model, gravity, options, q, qd, base_velocity):
    """Return position and velocity of the mass centre and the momentum about it, in the base's frame."""
    c, velocity, p, L = energetics.center_of_mass(model, q, qd, base_velocity[:3], base_velocity[3:], **options)
    return c, velocity, np.concatenate((p, L))


def link_velocities(model, gravity, options, q, qd, base_velocity):
    """(N + 1, 6) velocities of the links' frames: the accelerations of a robot at rest whose qdd is qd."""
    rest = q * 0.0
    base = RootMotion(a=base_velocity[:3], wd=base_velocity[3:])
    motion = newton_euler.kinematics(model, q, rest, qd, rest, base)
    return [[np.concatenate(pair) for pair in zip(motion.a, motion.wd, strict=True)]]


def carried_joint_wrenches(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, base_acceleration):
    """Return internal force and moment of every joint, whose base moves as given."""
    given = values_only(_on_free_links(model, options, q, qd, base_velocity))
    base = RootMotion(w=base_velocity[3:], wd=base_acceleration[3:], a=base_acceleration[:3])
    return closed_form.joint_wrenches(model, q, qd, qdd, q * 0.0, base_gravity, base=base, **given)[:1]


def carried_joint_wrenches_and_rates(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd, base_acceleration,
                                     base_jerk):
    """Return internal force and moment of every joint and their rates."""
    given = _on_free_links(model, options, q, qd, base_velocity)
    base = RootMotion(base_velocity[3:], base_acceleration[3:], base_jerk[3:], base_acceleration[:3], base_jerk[:3])
    return closed_form.joint_wrenches(model, q, qd, qdd, qddd, base_gravity, base=base, **given)


FREE_FUNCTIONS = tuple(KernelFunction(name, function, blocks, any_base=True) for name, function, blocks in (
    ("free_rates", free_torque_and_rate, (*STATE, "qdd", "qddd")),
    ("free_response", free_response, (*STATE, "tau")),
    ("free_gravity", free_gravity, STATE),
    ("prescribed_base", prescribed_base, (*STATE, "qdd", "qddd", "base_acceleration", "base_jerk")),
    ("free_mass_matrix", free_mass_matrix, ("q",)),
    ("free_energy", free_energy, STATE),
    ("free_center_of_mass", free_center_of_mass, STATE[:3]),
    ("link_velocities", link_velocities, STATE[:3]),
    ("carried_joint_wrenches", carried_joint_wrenches, (*STATE, "qdd", "base_acceleration")),
    ("carried_joint_wrenches_and_rates", carried_joint_wrenches_and_rates,
     (*STATE, "qdd", "qddd", "base_acceleration", "base_jerk")),
))


def sensitivities(model, gravity, options, q, qd, qdd):
    """Return the derivatives of the torques by q, qd and qdd."""
    return closed_form.sensitivities(model, q, qd, qdd, gravity, **values_only(options))


def rate_sensitivities(model, gravity, options, q, qd, qdd, qddd):
    """Return the derivatives of the torque rates by q, qd, qdd and qddd."""
    return closed_form.rate_sensitivities(model, q, qd, qdd, qddd, gravity, **options)


def torque_deviations(model, gravity, options, q, qd, qdd, qddd, q_std, qd_std, qdd_std, qddd_std):
    """Return standard deviations of tau and tau_rate, to first order, for independent ones of the motion."""
    tables = closed_form.sensitivities(model, q, qd, qdd, gravity, **values_only(options))
    rate_tables = closed_form.rate_sensitivities(model, q, qd, qdd, qddd, gravity, **options)
    return [_spread(found, (q_std, qd_std, qdd_std, qddd_std)) for found in (tables, rate_tables)]


def _spread(tables, deviations):
    """Return the root of the sum of squares of table @ deviation for each joint."""
    shares = [table * deviation for table, deviation in zip(tables, deviations, strict=False)]
    return np.array([np.sqrt(variance) for variance in sum((share * share).sum(axis=1) for share in shares)])


def joint_wrenches(model, gravity, options, q, qd, qdd):
    """Return internal force and moment of every joint."""
    return closed_form.joint_wrenches(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def joint_wrenches_and_rates(model, gravity, options, q, qd, qdd, qddd):
    """Return internal force and moment of every joint and their rates."""
    return closed_form.joint_wrenches(model, q, qd, qdd, qddd, gravity, **options)


def joint_wrench_sensitivities(model, gravity, options, q, qd, qdd):
    """Return the derivatives of `joint_wrenches` by q, qd and qdd."""
    return closed_form.joint_wrench_sensitivities(model, q, qd, qdd, gravity, **values_only(options))


MOTION_AND_DEVIATIONS = ("q", "qd", "qdd", "qddd", "q_std", "qd_std", "qdd_std", "qddd_std")
DERIVATIVE_FUNCTIONS = (
    KernelFunction("sensitivities", sensitivities, ("q", "qd", "qdd"), regrouped=True),
    KernelFunction("rate_sensitivities", rate_sensitivities, ("q", "qd", "qdd", "qddd"), regrouped=True),
    KernelFunction("torque_deviations", torque_deviations, MOTION_AND_DEVIATIONS, regrouped=True),
    KernelFunction("joint_wrenches", joint_wrenches, ("q", "qd", "qdd")),
    KernelFunction("joint_wrenches_and_rates", joint_wrenches_and_rates, ("q", "qd", "qdd", "qddd")),
    KernelFunction("joint_wrench_sensitivities", joint_wrench_sensitivities, ("q", "qd", "qdd")),
)


def torque_and_rate(rnea, model, gravity, options, q, qd, qdd, qddd):
    """Return torques and torque rates."""
    return rnea(model, q, qd, qdd, qddd, gravity, **on_links(model, options, q, qd))


def inverse_dynamics(rnea, model, gravity, options, q, qd, qdd):
    """Return the torques."""
    return rnea(model, q, qd, qdd, q * 0.0, gravity, **on_links(model, options, q, qd))[:1]


def inertia(rnea, model, gravity, options, q, qdd):
    """M(q) qdd."""
    return rnea(model, q, q * 0.0, qdd, q * 0.0, gravity * 0.0, offsets=False, **options)[:1]


def gravity_torque(rnea, model, gravity, options, q):
    """Return the torques against gravity."""
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
    """Return M."""
    return [bodies.mass_matrix(model, q, **options)]


def mass_matrix_rate(model, gravity, options, q, qd):
    """Return the rate of M."""
    return [energetics.mass_matrix_rate(model, q, qd, **options)]


def coriolis(model, gravity, options, q, qd, x):
    """C(q, qd) x."""
    return [energetics.coriolis(model, q, qd, x, **options)]


def forward_dynamics(model, gravity, options, q, qd, tau):
    """qdd, the inertia that each joint felt, and the one that it would feel with all others locked."""
    options = values_only(on_links(model, options, q, qd))
    qdd, felt = bodies.forward_dynamics(model, q, qd, tau, gravity, **options)
    return qdd, felt, bodies.locked(model, q, options.get("inertias"))[1]


def generalized_momentum(model, gravity, options, q, qd):
    """Return p and its rate without torques."""
    return energetics.generalized_momentum(model, q, qd, gravity, **options)


def link_torques(model, gravity, options, q, qd, qdd):
    """(links, n): share of each link in the torques."""
    return link_shares(model, q, qd, qdd, q * 0.0, gravity, **options)[:1]


def link_torques_and_rates(model, gravity, options, q, qd, qdd, qddd):
    """(links, n) each: share of each link in torques and torque rates."""
    return link_shares(model, q, qd, qdd, qddd, gravity, **options)


def energy(model, gravity, options, q, qd):
    """(2,): kinetic and potential."""
    return [energetics.energy(model, q, qd, gravity, **options)]


def center_of_mass(model, gravity, options, q, qd):
    """Return position and velocity of the mass centre, and the momentum about it."""
    c, velocity, p, L = energetics.center_of_mass(model, q, qd, **options)
    return c, velocity, np.concatenate((p, L))


def recursion(model, gravity, options, q, qd, qdd, qddd):
    """Return the papers' text itself: LinkMotion and LinkForces."""
    motion = newton_euler.kinematics(model, q, qd, qdd, qddd, newton_euler.RootMotion(a=-gravity))
    return motion, newton_euler.dynamics(model, motion, qd, qdd, qddd, **on_links(model, options, q, qd))


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
    *FREE_FUNCTIONS,
    *DERIVATIVE_FUNCTIONS,
)}
RECURSION = KernelFunction("recursion", recursion, ("q", "qd", "qdd", "qddd"))


# ---------------------------------------------------------------------- forward kinematics of one URDF link
# point (3,)         : in the link's frame
# base_rotation (9,) : from base to world, row by row; base_position (3,), base_velocity (6,): see base_state.py


def link_pose(frame, model, gravity, options, q, point):
    """Return R and p of the link."""
    return kinematics.link_pose(model, frame, q, point)


def link_velocity(frame, model, gravity, options, q, qd, point):
    """Return the velocity of the point and the angular velocity."""
    return [kinematics.jacobian(model, frame, q, point) @ qd]


def jacobian(frame, model, gravity, options, q, point):
    """Return the Jacobian of the point."""
    return [kinematics.jacobian(model, frame, q, point)]


def jacobian_rate(frame, model, gravity, options, q, qd, point):
    """Return its rate."""
    return [kinematics.jacobian_rate(model, frame, q, qd, point)]


def free_link_pose(frame, model, gravity, options, q, point, base_rotation, base_position):
    """Return R and p of the link in the world."""
    return kinematics.link_pose(model, frame, q, point, (np.reshape(base_rotation, (3, 3)), base_position))


def free_link_velocity(frame, model, gravity, options, q, qd, point, base_rotation, base_velocity):
    """Return the velocity of the point and the angular velocity on a moving base."""
    J = kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)
    return [J @ np.concatenate((base_velocity, qd))]


def free_jacobian(frame, model, gravity, options, q, point, base_rotation):
    """Return the Jacobian by base and joints."""
    return [kinematics.free_jacobian(model, frame, q, np.reshape(base_rotation, (3, 3)), point)]


def free_jacobian_rate(frame, model, gravity, options, q, qd, point, base_rotation, base_velocity):
    """Return its rate."""
    R = np.reshape(base_rotation, (3, 3))
    return [kinematics.free_jacobian_rate(model, frame, q, qd, R, base_velocity, point)]


BASE, MOVING = ("base_rotation", "base_position"), ("base_rotation", "base_velocity")
BLOCKS = {link_pose: ("q", "point"), link_velocity: ("q", "qd", "point"), jacobian: ("q", "point"),
          jacobian_rate: ("q", "qd", "point"), free_link_pose: ("q", "point", *BASE),
          free_link_velocity: ("q", "qd", "point", *MOVING), free_jacobian: ("q", "point", "base_rotation"),
          free_jacobian_rate: ("q", "qd", "point", *MOVING)}


# The same on a moving base, and what they take of its BaseState beside motion and point.
ON_MOVING_BASE: dict[Callable[..., Any], tuple[Callable[..., Any], Callable[[Any], tuple[Any, ...]]]] = {
    link_pose: (free_link_pose, lambda base: (base.turn, base.position)),
    link_velocity: (free_link_velocity, lambda base: (base.turn, base.velocity)),
    jacobian: (free_jacobian, lambda base: (base.turn,)),
    jacobian_rate: (free_jacobian_rate, lambda base: (base.turn, base.velocity))}


def of_link(function: Callable[..., Any], model: Model, link: str) -> KernelFunction:
    """Return a kernel function of a function of BLOCKS for one URDF link; InputError names the links that exist."""
    return KernelFunction((function, link), partial(function, model.frame(link)), BLOCKS[function], any_base=True,
                          massless=True)
