"""Functions of the kernels of a robot with a free or moving base, in the form of functions.py.

base_velocity, base_acceleration, base_jerk (6,) : linear, then angular, in the base's frame; see base_state.py
base_gravity (3,) : acceleration of gravity in the base's frame; the constant `gravity`, of the world, is not used here
"""

from __future__ import annotations

import numpy as np

from ...algebra.linalg import pivots
from ...algebra.vectors import ZERO
from ...algorithms import energy, floating_base, mass_matrix
from ...algorithms import joint_wrenches as internal
from ...algorithms import torque_rate as newton_euler
from ...algorithms.torque_rate import RootMotion
from ...algorithms.world_loads import on_links
from .kernel_function import KernelFunction

STATE = ("q", "qd", "base_velocity", "base_gravity")


def values_only(options):
    """Options of algorithms that have no rates."""
    return {name: value for name, value in options.items() if name != "wrench_rates"}


def _on_links(model, options, q, qd, base_velocity):
    """The loads of the world, which keep their direction while base and links turn, among those of the links."""
    return on_links(model, options, q, qd, base_velocity[3:])


def torque_and_rate(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd):
    """Base acceleration and jerk, tau, tau_rate, and the inertia that the base felt and its scale."""
    options = _on_links(model, options, q, qd, base_velocity)
    found = floating_base.torque_and_rate(model, q, qd, qdd, qddd, base_velocity[3:], base_gravity, **options)
    return *found, *_felt_by_base(model, q, options)


def _felt_by_base(model, q, options):
    A11 = mass_matrix.base_inertia(model, q, options.get("inertias"))
    return pivots(A11), np.diag(A11)


def forward_dynamics(model, gravity, options, q, qd, base_velocity, base_gravity, tau):
    """Base acceleration, qdd, and the inertias that base and joints felt and would feel with all others locked."""
    options = values_only(_on_links(model, options, q, qd, base_velocity))
    Vd0, qdd, felt = floating_base.forward_dynamics(model, q, qd, tau, base_velocity[3:], base_gravity, **options)
    base, joints = mass_matrix.locked(model, q, options.get("inertias"))
    return Vd0, qdd, felt, base + joints


def prescribed_base(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd, base_acceleration, base_jerk):
    """tau, tau_rate, base wrench and the rates of its components."""
    motion = RootMotion(base_velocity[3:], base_acceleration[3:], base_jerk[3:], base_acceleration[:3], base_jerk[:3])
    options = _on_links(model, options, q, qd, base_velocity)
    return floating_base.prescribed(model, q, qd, qdd, qddd, motion, base_gravity, **options)


def gravity_torque(model, gravity, options, q, qd, base_velocity, base_gravity):
    """Base wrench and torques that hold the robot still against gravity."""
    rest = q * 0.0
    tau, _rate, f0, _rate = floating_base.prescribed(model, q, rest, rest, rest, RootMotion(ZERO), base_gravity, offsets=False,
                                                     **options)
    return f0, tau


def free_mass_matrix(model, gravity, options, q):
    """A of base and joints."""
    return [floating_base.mass_matrix(model, q, **options)]


def free_energy(model, gravity, options, q, qd, base_velocity, base_gravity):
    """(2,): kinetic energy, and the potential energy as if the base were at the world's origin."""
    return [energy.energy(model, q, qd, base_gravity, base_velocity[:3], base_velocity[3:], **options)]


def free_center_of_mass(model, gravity, options, q, qd, base_velocity):
    """Return position and velocity of the mass centre and the momentum about it, in the base's frame."""
    c, velocity, p, L = energy.center_of_mass(model, q, qd, base_velocity[:3], base_velocity[3:], **options)
    return c, velocity, np.concatenate((p, L))


def link_velocities(model, gravity, options, q, qd, base_velocity):
    """(N + 1, 6) velocities of the links' frames: the accelerations of a robot at rest whose qdd is qd."""
    rest = q * 0.0
    base = RootMotion(a=base_velocity[:3], wd=base_velocity[3:])
    motion = newton_euler.kinematics(model, q, rest, qd, rest, base)
    return [[np.concatenate(pair) for pair in zip(motion.a, motion.wd, strict=True)]]


def joint_wrenches(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, base_acceleration):
    """Internal force and moment of every joint, whose base moves as given."""
    given = values_only(_on_links(model, options, q, qd, base_velocity))
    base = RootMotion(w=base_velocity[3:], wd=base_acceleration[3:], a=base_acceleration[:3])
    return internal.joint_wrenches(model, q, qd, qdd, q * 0.0, base_gravity, base=base, **given)[:1]


def joint_wrenches_and_rates(model, gravity, options, q, qd, base_velocity, base_gravity, qdd, qddd, base_acceleration,
                             base_jerk):
    """Return internal force and moment of every joint and their rates."""
    given = _on_links(model, options, q, qd, base_velocity)
    base = RootMotion(base_velocity[3:], base_acceleration[3:], base_jerk[3:], base_acceleration[:3], base_jerk[:3])
    return internal.joint_wrenches(model, q, qd, qdd, qddd, base_gravity, base=base, **given)


KERNEL_FUNCTIONS = tuple(KernelFunction(name, function, blocks, any_base=True) for name, function, blocks in (
    ("free_rates", torque_and_rate, (*STATE, "qdd", "qddd")),
    ("free_response", forward_dynamics, (*STATE, "tau")),
    ("free_gravity", gravity_torque, STATE),
    ("prescribed_base", prescribed_base, (*STATE, "qdd", "qddd", "base_acceleration", "base_jerk")),
    ("free_mass_matrix", free_mass_matrix, ("q",)),
    ("free_energy", free_energy, STATE),
    ("free_center_of_mass", free_center_of_mass, STATE[:3]),
    ("link_velocities", link_velocities, STATE[:3]),
    ("carried_joint_wrenches", joint_wrenches, (*STATE, "qdd", "base_acceleration")),
    ("carried_joint_wrenches_and_rates", joint_wrenches_and_rates, (*STATE, "qdd", "qddd", "base_acceleration", "base_jerk")),
))
