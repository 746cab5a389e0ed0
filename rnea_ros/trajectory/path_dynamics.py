"""Torque and torque rate of a robot along a path, and its limits there.

Paths move the links' side of springs (link_side), of robots without Coulomb friction. A path and a time law give three
derivatives of position. They decide the torques of trees, loops and platforms. With elastic joints they decide the torque of
each spring; the motor's torque takes two derivatives more. Coulomb friction jumps where a joint reverses, which no motion
passes at a finite torque rate: it is taken off the limits instead.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, TypeVar

import numpy as np

from ..algebra.vectors import Array
from ..algorithms import closed_loops, component_rate
from ..algorithms.equations import with_bodies
from ..codegen import kernel
from ..codegen.kernel import MANY, Tiles
from ..errors import InputError, some
from ..model.drives import MIN_VELOCITY, DriveLimit, VelocityLimits, limit_factors
from ..model.tree import JointDynamics, Limits, Model
from ..robots import validation
from ..robots.base_state import BaseState
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics
from .constraints import Constraints, DriveConstraints, TorqueTerms, torque_terms
from .limit_utilization import velocity_limits
from .path import Path

# ------------------------------------------------------------------ robot on the link side of its springs


Kind = TypeVar("Kind", TreeDynamics, Robot)


def coulomb_friction(model: Model) -> Array:
    """(n,) the largest that Coulomb friction can take of each coordinate's torque, its mimic joints' included.

    Of friction by load, that of no load.
    """
    friction = np.zeros(model.n)
    for link in model.links:
        if link.coordinate >= 0:
            least = link.term.load_dependent * link.term.load_smoothing
            friction[link.coordinate] += abs(link.multiplier) * (link.term.breakaway + least)
    for motor in model.coupled_motors:
        for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
            friction[k] += abs(ratio) * motor.term.breakaway
    return friction


def load_factor(model: Model) -> Array:
    """(n,) the most torque of each coordinate for one unit of what its links need, by friction that grows with load."""
    factors = np.ones(model.n)
    for link in model.links:
        if link.coordinate >= 0:
            factors[link.coordinate] += link.term.load_dependent
    return factors


def coulomb_with_motors(robot: Robot) -> Array:
    """Return the Coulomb friction (n,) of joints and their motors."""
    friction = coulomb_friction(robot.model)
    for motor in robot.roles.motors:
        friction[motor.coordinate] += motor.term.coulomb
    return friction


def without_coulomb(robot: Kind) -> Kind:
    """Return the robot without Coulomb friction, also of motors behind springs or on links.

    Viscous friction of each joint is that of its worse direction.
    """
    if isinstance(robot, Robot):
        if not robot.is_fixed_tree and robot.roles.motors:
            drives = {joint: {key: value for key, value in drive.items() if key != "coulomb"}
                      for joint, drive in robot.declaration.get("drives", {}).items()}
            return Robot(without_coulomb(robot.tree), {"version": 1, **robot.declaration, "drives": drives})
        return robot.with_tree(without_coulomb(robot.tree))
    rough = {link.joint: link.term for link in robot.model.links if link.term.breakaway or link.term.asymmetry
             or link.term.load_dependent}
    if any(motor.term.breakaway for motor in robot.model.coupled_motors):
        robot = robot.with_coupled_motors([replace(motor, term=_smooth(motor.term)) for motor in robot.model.coupled_motors])
    return robot.with_joint_dynamics({joint: _smooth(term) for joint, term in rough.items()}) if rough else robot


def _smooth(term: JointDynamics) -> JointDynamics:
    bare = dict.fromkeys(("coulomb", "stribeck", "asymmetry", "load_dependent"), 0.0)
    return replace(term, viscous=term.viscous + abs(term.asymmetry), **bare)


ELASTIC = {"elastic_joints", "motors"}  # sections of a tree whose link side is served
OF_LINKS = ("effort", "velocity", "motor_velocity")  # limits of drives that a spring's torque and its rate decide


def link_side(robot: Robot, base: BaseState | None = None) -> Robot:
    """Return the robot on the links' side of its springs, with its limits; trees, loops and platforms as they are.

    base : pose of a moving base, which is taken to be at rest: its motion along a path is not known
    InputError where such a motion does not decide the torques.
    """
    if robot.is_fixed_tree and base is None:
        return robot
    elastic = ELASTIC.issuperset(robot.sections) and not robot.has_moving_base
    if not elastic and robot.sections and not robot.is_mechanism:
        if robot.state_joints:
            raise InputError(f"{some(robot.state_joints)} of robot '{robot.name}' has no motor: nothing drives it along a "
                             "path. Its motion follows from that of the others, as `solve` finds it")
        raise InputError(f"robot '{robot.name}' ({robot.kind}): planning and scaling are not implemented for this combination "
                         "of base, loops, springs and motors")
    if robot.has_moving_base:
        if base is None:
            raise InputError(f"the base of robot '{robot.name}' is floating: the motion of the joints does not determine that "
                             "of "
                             "the base. In the robot file, declare base: prescribed for a base whose motion is given, or "
                             "base: "
                             "fixed; in Python, base=BaseState(position, quaternion) fixes it in that pose")
        return robot.held(base.into_base(robot.gravity_vector))
    if base is not None:
        raise InputError(f"robot '{robot.name}' has a fixed base: base is given, but must be None. Remove the argument, or "
                         "declare "
                         "base: floating or prescribed in the robot file")
    return _behind_springs(robot) if elastic else robot


def default_base(robot: Robot) -> BaseState | None:
    """Return the default state of a base that is carried: level and at rest; None for other robots."""
    return BaseState() if robot.carried else None


def unenforceable_limits(robot: Robot) -> tuple[str, ...]:
    """Limits of drives that no motion of `link_side` can keep, one sentence each."""
    if not robot.elastic_joints:
        return ()
    return tuple(f"{limit.description} is not enforced: in an elastic joint it limits the torque of the motor, which depends "
                 "on the "
                 "fourth derivative of position" for limit in robot.drive_limits if not _of_links(robot, limit))


def _of_links(robot: Robot, limit: DriveLimit) -> bool:
    springs = {robot.joint_names.index(name) for name in robot.elastic_joints}
    return limit.quantity in OF_LINKS or not springs.intersection(limit.joints)


def _behind_springs(robot: Robot) -> Robot:
    """Links and motors of rigid joints: a tree, unless one of these motors is on a link."""
    names, motors = robot.tree.joint_names, robot.roles.motors
    rigid = [motor for motor in motors if motor.stiffness == math.inf]
    for motor in motors:
        if motor.link and motor not in rigid:
            joint, link = names[motor.coordinate], robot.model.links[motor.link].name
            raise InputError(f"the motor of elastic joint '{joint}' is mounted on link '{link}': the reaction torque of its "
                             "rotor on this link depends on the fourth derivative of position, which time laws do not limit. "
                             f"To neglect this torque, remove motors.{joint} from the robot file")
    kept = tuple(limit for limit in robot.drive_limits if _of_links(robot, limit))
    tree = robot.tree.with_drive_limits(kept)
    if any(motor.link for motor in rigid):
        left = {section: {joint: entry for joint, entry in robot.declaration.get(section, {}).items()
                          if joint not in robot.elastic_joints} for section in ("motors", "drives")}
        return Robot(tree, {"version": 1, **left})
    terms = {link.joint: link.term for link in tree.model.links}
    named = {names[motor.coordinate]: motor.term for motor in rigid}
    if named:
        tree = tree.with_joint_dynamics({joint: _together(terms[joint], term) for joint, term in named.items()})
    return Robot(tree)


def _together(joint: JointDynamics, motor: JointDynamics) -> JointDynamics:
    """Return the dynamics of a rigid joint: its own friction, and rotor and friction of its motor in the base."""
    return replace(joint, rotor_inertia=motor.rotor_inertia, gear_ratio=motor.gear_ratio,
                   coulomb=joint.coulomb + motor.coulomb, viscous=joint.viscous + motor.viscous)


# ------------------------------------------------------------------ dynamics along a path


class CachedRobot:
    """Base class of objects with a `robot`. Unpickling reuses the first robot of the same model and its compiled kernels."""

    robot: Robot

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        robot = state["robot"]
        first = _kept(robot.model_id)
        self.robot = first.setdefault(robot.tree.backend, robot)


@lru_cache(maxsize=8)
def _kept(model_id: str) -> dict[str, Robot]:
    """Robots with one model, by backend."""
    return {}


class ClosedChainKinematics(Protocol):
    """Closed chains along a path; a pose (size,) holds more than q (n,), for instance all joints of the tree."""

    @property
    def n(self) -> int: ...

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        """Return q (n,) and the pose at which every search starts."""

    def pose(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the pose at q, found from a pose near it. Raises InputError."""

    def torque_and_rate(self, poses: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return torques and rates (samples, n) at poses (samples, size), without Coulomb friction.

        rates: qd, qdd, qddd (samples, n)
        """

    def friction(self, pose: np.ndarray) -> np.ndarray:
        """Return the largest Coulomb friction (n,) of each torque at a pose."""


class LoopKinematics(CachedRobot):
    """Kinematics of a robot with loops and platforms but no other sections; a pose has all joints of the tree."""

    robot: Robot

    def __init__(self, robot: Robot):
        self.robot, self.n, self._coulomb = without_coulomb(robot), robot.n, coulomb_friction(robot.tree.model)

    def start(self) -> tuple[np.ndarray, np.ndarray]:
        return self.robot.start[self.robot.closure.active], self.robot.start

    def pose(self, q: np.ndarray, near: np.ndarray) -> np.ndarray:
        return self.robot.close(q, guess=near)

    def torque_and_rate(self, poses: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        motion = self.robot.closure.motions(poses, *rates)
        return closed_loops.active_torque(motion.G, motion.Gd, *self.robot.tree.torque_and_rate(*motion[:4]))

    def friction(self, pose: np.ndarray) -> np.ndarray:
        still = np.zeros(self.n)
        return np.abs(self.robot.closure.motion(pose, still, still, still).G).T @ self._coulomb


class TreeTerms:
    """Path terms of a tree without Coulomb friction, load-dependent friction at its maximum: call with q, q', q'', q'''.

    q ... q''' : (samples, n) each
    friction   : (n,) largest Coulomb friction of each joint
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self._robot, self.friction = robot,  coulomb_friction(robot.model)
        self._carriers = tuple(payload.link_number for payload in robot.payloads.values())
        self._payloads = np.concatenate([payload.parameters for payload in robot.payloads.values()] or [np.zeros(0)])

    def along(self, path: Path) -> TreeTerms:
        return self

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return TorqueTerms(*self.kernel.of_samples(self._blocks(q, q1, q2, q3), len(q)))

    def tiled(self, q: Tiles, q1: Tiles, q2: Tiles, q3: Tiles) -> TorqueTerms:
        return TorqueTerms(*self.kernel.tiled(self._blocks(q, q1, q2, q3), q.count, range(len(TorqueTerms._fields))))

    def _blocks(self, *motion: Any) -> list[Any]:
        return [*motion, *([self._payloads] if self._carriers else [])]

    def compile(self) -> None:
        self(*np.zeros((4, kernel.MANY, self._robot.n)))

    @property
    def kernel(self) -> kernel.Kernel:
        robot = self._robot
        kernels = _kernels(robot.model.model_id, tuple(robot.gravity_vector.tolist()), robot.backend)
        if self._carriers not in kernels:
            inputs = dict.fromkeys(("q", "q1", "q2", "q3"), robot.n)
            if self._carriers:
                inputs["payloads"] = 10 * len(self._carriers)
            kernels[self._carriers] = kernel.build(_traced(robot, self._carriers), inputs, robot.backend)
        return kernels[self._carriers]


@lru_cache(maxsize=8)
def _kernels(model_id: str, gravity: tuple[float, ...], backend: str) -> dict[tuple[int, ...], kernel.Kernel]:
    """Return the kernels of one robot, by the numbers of the links that carry payloads."""
    return {}


def _traced(robot: Robot, carriers: tuple[int, ...]) -> Callable[..., TorqueTerms]:
    """Return the function that a kernel is made of. payloads: ten numbers for each carrier."""
    model, gravity, factor = without_coulomb(robot).model, robot.gravity_vector, load_factor(robot.model)

    def traced(q: Any, q1: Any, q2: Any, q3: Any, payloads: Any = None) -> TorqueTerms:
        inertias = with_bodies(model, carriers, payloads) if carriers else None

        def rate(q, qd, qdd, qddd):
            found = component_rate.torque_and_rate(model, q, qd, qdd, qddd, gravity, inertias=inertias)
            return [np.array(block) * factor for block in found] if (factor > 1.0).any() else found

        return torque_terms(rate, q, q1, q2, q3)

    return traced


N_SAMPLES = 201  # poses along a path that are solved in advance


class ClosedChainTerms:
    """Path terms of a robot with closed chains, without Coulomb friction: call with q, q', q'', q''' (samples, n) each.

    friction : (n,) largest Coulomb friction of each joint on the path
    """

    def __init__(self, followed: ClosedChainKinematics):
        self._followed = followed
        q, pose = followed.start()
        self._q, self._poses = q[None], pose[None]  # that are known
        self.friction = followed.friction(pose)

    def along(self, path: Path) -> ClosedChainTerms:
        s = np.union1d(np.linspace(0.0, path.length, N_SAMPLES), path.breaks)
        found: ClosedChainTerms = copy.copy(self)
        found._q, poses, pose = path(s)[0], [], self._poses[0]
        for s_k, q in zip(s, found._q, strict=True):
            try:
                poses.append(pose := self._followed.pose(q, pose))
            except InputError as error:
                raise InputError(f"the robot cannot follow the path beyond s = {s_k:.4g} of {path.length:.4g}: "
                                 f"{error}") from None
        found._poses = np.array(poses)
        found.friction = np.max([self._followed.friction(pose) for pose in poses], axis=0)
        return found

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        nearest = [int(((self._q - one) ** 2).sum(axis=1).argmin()) for one in q]
        poses = np.array([self._followed.pose(one, self._poses[k]) for one, k in zip(q, nearest, strict=True)])
        return torque_terms(lambda q, *rates: self._followed.torque_and_rate(poses, *rates), q, q1, q2, q3)

    def tiled(self, *motion: Tiles) -> TorqueTerms:
        return self(*(block.samples for block in motion))

    def compile(self) -> None:
        still = np.zeros((MANY, self._followed.n))
        self(np.broadcast_to(self._q[0], still.shape), still, still, still)


class LinkMotorTerms(CachedRobot):
    """Terms of a tree with motors on links and without springs, Coulomb friction left out.

    Call with q, q', q'', q''' (samples, n) each.


    friction : (n,) largest Coulomb friction of each torque
    """

    def __init__(self, robot: Robot):
        self.robot, self.friction = without_coulomb(robot), coulomb_with_motors(robot)

    def along(self, path: Path) -> LinkMotorTerms:
        return self

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return torque_terms(self.robot.torque_and_rate, q, q1, q2, q3)

    def tiled(self, *motion: Tiles) -> TorqueTerms:
        return self(*(block.samples for block in motion))

    def compile(self) -> None:
        self(*np.zeros((4, MANY, self.robot.n)))


N_ZERO_VELOCITY_SAMPLES = 2001  # along a path, to find points where no velocity is allowed
STILL = 1e-9  # dq/ds of a joint that does not move


class PathTerms(Protocol):
    """Path dynamics terms of one robot without Coulomb friction: call with q, q', q'', q''' (samples, n) each.

    friction : (n,) largest Coulomb friction of each joint on the path
    """

    @property
    def friction(self) -> np.ndarray: ...

    def along(self, path: Path) -> PathTerms:
        """Return the terms prepared for a path. Raises InputError if the robot cannot follow it."""

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms: ...

    def tiled(self, q: Tiles, q1: Tiles, q2: Tiles, q3: Tiles) -> TorqueTerms:
        """Return the same for blocks of tiles, as tiles or as (samples, n) each."""

    def compile(self) -> None: ...


def _terms(robot: Robot) -> PathTerms:
    """Terms of trees, of closed loops, and of trees with motors on links."""
    if robot.is_fixed_tree:
        return TreeTerms(robot)
    return ClosedChainTerms(LoopKinematics(robot)) if robot.loops else LinkMotorTerms(robot)


class PathDynamics:
    """Torque and torque rate of a robot along a path: call with q, q', q'', q''' (samples, n) each; returns Terms.

    Coulomb friction jumps where a joint turns round, so no motion keeps its torque rate finite; smoothed, it is no polynomial
    in the speed. It is left out of the terms and taken off the effort limits instead: see `limits`.
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self.robot = robot
        self.terms = _terms(robot)

    def along(self, path: Path) -> PathDynamics:
        """Return the dynamics prepared for a path: closed loops are solved along it. Raises InputError if they cannot be."""
        found = copy.copy(self)
        found.terms = self.terms.along(path)
        return found

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return self.terms(q, q1, q2, q3)

    def tiled(self, *motion: Tiles) -> TorqueTerms:
        """Return the same for blocks of tiles, as tiles or as (samples, n) each."""
        return self.terms.tiled(*motion)

    def compile(self) -> None:
        """Have the kernels now, for many samples too, and not at the first call."""
        self.terms.compile()

    def constraints(self, path: Path, limits: Limits, drive_limits: Sequence[DriveLimit] | None = None) -> Constraints:
        """All limits along a path: these, and what the robot's data say beside them. Raises InputError."""
        dynamics, velocity = self.along(path), velocity_limits(self.robot, limits)
        if velocity is not None:
            _check_velocities(velocity, path, self.robot.joint_names)
        return Constraints(path, dynamics, dynamics.limits(limits), self.robot.joint_names, dynamics.drives(drive_limits),
                           self.robot.tree.model.efforts.commanded.contains,
                           None if velocity is None else lambda q, way: np.maximum(velocity(q, way), MIN_VELOCITY))

    def limits(self, limits: Limits | None = None) -> Limits:
        """Return the robot's limits, or the given ones, minus Coulomb friction. InputError if it exceeds an effort limit."""
        limits, friction = limits or self.robot.limits, self.terms.friction
        effort = limits.effort - friction
        if (taken := (effort <= 0.0) & (friction > 0.0)).any():
            joint = int(np.argmax(taken))
            raise InputError(f"Coulomb friction of {self.robot.joint_names[joint]} takes all of its effort limit, "
                             f"{limits.effort[joint]:g}")
        return replace(limits, effort=effort)

    def drives(self, limits: Sequence[DriveLimit] | None = None) -> DriveConstraints | None:
        """Return the robot's drive limits, or the given ones, minus Coulomb friction; None without any. InputError where
        it leaves nothing of one.
        """
        limits = self.robot.drive_limits if limits is None else limits
        if not limits:
            return None
        rows = DriveConstraints(limits, limit_factors(limits, self.robot.n)._asdict(), self.terms.friction)
        if (rows.remaining <= 0.0).any():
            raise InputError(f"Coulomb friction takes all of the {rows.limits[int(np.argmin(rows.remaining))].description}")
        return rows


def _check_velocities(velocity: VelocityLimits, path: Path, joint_names: Sequence[str]) -> None:
    """Raise InputError if a path is so near to a position limit that no velocity is allowed in its direction."""
    s = np.linspace(0.0, path.length, N_ZERO_VELOCITY_SAMPLES)
    q, way = path(s)[:2]
    stuck = (velocity(q, way) <= 0.0) & (np.abs(way) > STILL)
    if stuck.any():
        sample, k = np.argwhere(stuck)[0]
        raise InputError(f"the path takes {joint_names[k]} to {q[sample, k]:.5g}, so near to its end that "
                         "velocity_by_position of the robot file allows no velocity that way")
