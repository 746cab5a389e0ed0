"""Kernels of a tree of links whose base moves; the state of the base is an argument.

Robot takes them for poses and Jacobians of links, and, where nothing but a base is declared, for what costs operations
in proportion to the joints here: mass matrix, gravity, energy, forward dynamics, joint wrenches. Numbers of the base come
first, linear before angular, along the axes of the base; loads and conventions are those of Robot and BaseState.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from ..algorithms.equations import BASE
from ..algorithms.kinematics import Pose
from .inputs import validation
from .inputs.base_state import BaseState
from .inputs.conditions import Loads, checked_loads
from .kernels import functions
from .results import CenterOfMass, Energy, JointWrenches
from .tree import TreeDynamics, check_nonsingular, nonsingular, refuse_weightless

# ---------------------------------------------------------------------- where links are


def link_pose(tree: TreeDynamics, link: str, q: ArrayLike, point: ArrayLike | None, base: BaseState) -> Pose:
    """Return R (3, 3) and p (3,) of a link's frame, or of a point in it, in the world [m]."""
    return tuple.__new__(Pose, tree.on_link(functions.free_link_pose, link, q, point=point,
                                           blocks_of_base=(base.turn, base.position)))


def link_velocity(tree: TreeDynamics, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None,
                  base: BaseState) -> Array:
    """Return (6,): velocity of the point [m/s], angular velocity [rad/s], along the world's axes."""
    return tree.on_link(functions.free_link_velocity, link, q, qd, point=point,
                        blocks_of_base=(base.turn, base.velocity))[0]


def jacobian(tree: TreeDynamics, link: str, q: ArrayLike, point: ArrayLike | None, base: BaseState) -> Array:
    """Return (6, 6 + n): link_velocity by [base.velocity; qd]."""
    return tree.on_link(functions.free_jacobian, link, q, point=point, blocks_of_base=(base.turn,))[0]


def jacobian_rate(tree: TreeDynamics, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None,
                  base: BaseState) -> Array:
    """Return (6, 6 + n), the time derivative of `jacobian` along the motion of base and joints.

    Acceleration of the point = jacobian @ [base.spatial(base_acceleration); qdd] + jacobian_rate @ [base.velocity; qd].
    """
    return tree.on_link(functions.free_jacobian_rate, link, q, qd, point=point,
                        blocks_of_base=(base.turn, base.velocity))[0]


def link_velocities(tree: TreeDynamics, links: Sequence[str], q: ArrayLike, qd: ArrayLike, base_velocity: ArrayLike) -> Array:
    """Return (len(links), 6) or (samples, len(links), 6): velocities of links, each along the axes of the link's frame."""
    found = tree.evaluate("link_velocities", q, qd, base_velocity)[0]
    columns = []
    for name in links:
        frame = tree.model.frame(name)
        v, w = np.split(found[..., frame.link, :], 2, axis=-1)
        columns.append(np.concatenate(((v + np.cross(w, frame.P)) @ frame.R, w @ frame.R), axis=-1))
    return np.stack(columns, axis=-2)


# ---------------------------------------------------------------------- energy and momentum


def energy(tree: TreeDynamics, q: ArrayLike, qd: ArrayLike, base: BaseState) -> Energy:
    """Return kinetic and potential energy [J]; the latter is zero with all mass at the world's origin."""
    kinetic, potential = np.moveaxis(_evaluate(tree, "free_energy", base, q, qd)[0], -1, 0)
    return Energy(kinetic, potential - tree.total_mass * (base.position @ tree.gravity_vector))


def center_of_mass(tree: TreeDynamics, q: ArrayLike, qd: ArrayLike, base: BaseState) -> CenterOfMass:
    """Return the mass centre, its velocity, and the momentum about it, in the world."""
    refuse_weightless(tree.total_mass)
    c, *rates = tree.evaluate("free_center_of_mass", q, qd, base.velocity)
    return CenterOfMass(base.position + base.into_world(c), *(base.into_world(rate) for rate in rates))


# ---------------------------------------------------------------------- equations of motion


def mass_matrix(tree: TreeDynamics, q: ArrayLike) -> Array:
    """Return A (6 + n, 6 + n) of khalil-rne (84): [base wrench; tau] = A [base acceleration; qdd] + H."""
    return tree.evaluate("free_mass_matrix", q)[0]


def bias(tree: TreeDynamics, q: ArrayLike, qd: ArrayLike, base: BaseState, loads: Loads | None) -> Array:
    """Return H (6 + n,) of khalil-rne (85): base wrench and torques without any acceleration."""
    rest = np.zeros(tree.n)
    tau, _rate, wrench, _rate = _evaluate(tree, "prescribed_base", base, q, qd, rest, rest, *np.zeros((2, 6)), loads=loads)
    return np.concatenate((wrench, tau), axis=-1)


def gravity(tree: TreeDynamics, q: ArrayLike, base: BaseState) -> Array:
    """Return (6 + n,): base wrench and torques that hold the robot still against gravity alone."""
    wrench, tau = _evaluate(tree, "free_gravity", BaseState(base.position, base.quaternion), q, np.zeros(tree.n))
    return np.concatenate((wrench, tau), axis=-1)


def response(tree: TreeDynamics, q: ArrayLike, qd: ArrayLike, tau: ArrayLike, base: BaseState,
             loads: Loads | None) -> tuple[Array, Array]:
    """Return the true acceleration (6,) of a free base and accelerations (n,) of its joints under torques, by articulated
    bodies, khalil-rne (101)-(112); mimic joints as in TreeDynamics.forward_dynamics.
    """
    names = (*BASE, *tree.joint_names)
    with nonsingular(lambda: mass_matrix(tree, q), names):
        acceleration, qdd, felt, locked = _evaluate(tree, "free_response", base, q, qd, tau, masses=False, loads=loads)
    check_nonsingular(felt, locked, names)
    validation.results("forward_dynamics", [acceleration, qdd])
    return acceleration, qdd


def joint_wrenches(tree: TreeDynamics, motion: Sequence[ArrayLike], base: BaseState, acceleration: ArrayLike,
                   jerk: ArrayLike | None, loads: Loads | None) -> JointWrenches:
    """Return the internal force and moment of every joint, and their rates where the base's jerk is given.

    motion: q, qd, qdd, and qddd beside the jerk; acceleration, jerk: true ones of the base
    """
    if jerk is None:
        wrench, rate = *_evaluate(tree, "carried_joint_wrenches", base, *motion, acceleration, loads=loads), None
    else:
        wrench, rate = _evaluate(tree, "carried_joint_wrenches_and_rates", base, *motion, acceleration, jerk, loads=loads)
    return JointWrenches(tree.moving_joints, wrench, rate)


def _evaluate(tree: TreeDynamics, name: str, base: BaseState, q: ArrayLike, qd: ArrayLike, *motion: ArrayLike,
              loads: Loads | None = None, masses: bool = True) -> tuple[Array, ...]:
    """Kernels that take the base's state: gravity and loads turn with the world as the base sees it."""
    turned = None if loads is None else checked_loads(loads).seen_from(base)
    return tree.evaluate(name, q, qd, base.velocity, base.into_base(tree.gravity_vector), *motion, loads=turned, masses=masses)


MIN_PRESSURE = 1e-9  # share of the weight below which the robot does not press on the ground


def zero_moment_point(reaction: Array, weight: float, ground: Array, normal: Array) -> Array:
    """Return the point (3,) or (samples, 3) of a plane about which the ground's reaction has no tilting moment [m].

    reaction : (6,) or (samples, 6): force, and moment about the origin [N, N m]
    weight   : of the robot [N]; ground: a point of the plane; normal: out of it, of any length
    NaN while nothing presses on the ground.
    """
    up = normal / np.linalg.norm(normal)
    f, n = np.split(reaction, 2, axis=-1)
    pressure = (f @ up)[..., None]
    return ground + np.cross(up, n - np.cross(ground, f)) / np.where(pressure > MIN_PRESSURE * weight, pressure, np.nan)
