"""Robot in dynamics_node, and its components: moving base, moving platforms, closed loops, whole-body quantities.

Trees on a fixed base are evaluated with their kernels, all other robots with Robot.solve.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped, WrenchStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import BaseDynamics, ElasticDynamics, ModelInfo
from rnea_ros import BaseState, InputError, Loads, MotorState, PlatformMotion, Robot
from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.codegen.kernel import Kernel
from rnea_ros.errors import Rejected, some
from rnea_ros.model.drives import Efforts
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.base import BaseMotion, fill_axes, to_wrench
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.model_facts import RobotFacts
from rnea_ros.nodes.common.pairing import PairedInput
from rnea_ros.nodes.common.parameter_table import DYNAMICS
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.robot_description import tried
from rnea_ros.nodes.common.topics import Topics
from rnea_ros.nodes.dynamics.base_sources import (
    BaseSource,
    PlatformSource,
    base_source,
    platform_source,
    platform_suffixes,
)
from rnea_ros.nodes.dynamics.messages import Sent
from rnea_ros.nodes.dynamics.motion_source import ESTIMATING, FIELDS
from rnea_ros.robots.base_state import quaternion
from rnea_ros.robots.closure import Found, LoopTracker, TrackedPose
from rnea_ros.robots.results import Dynamics
from rnea_ros.robots.rolling import WheelLoad, tip_over_margin, wheel_loads
from rnea_ros.robots.solution import ConstraintWrench, Solution, zero_moment_point
from rnea_ros.robots.tree import TreeDynamics
from rnea_ros.trajectory import vibration

UNKNOWN_POINT, UNKNOWN_WRENCH = np.full(3, np.nan), np.full(6, np.nan)


class WholeBody(NamedTuple):
    """Whole-body quantities in the frame of the root link; NaN: unknown.

    center_of_mass    : (3,) [m]
    base_wrench       : (6,) wrench exerted on the base by its support, about the origin of the frame [N, N m]
    zero_moment_point : (3,) on the plane through that origin, normal to gravity [m]
    """

    center_of_mass: np.ndarray
    base_wrench: np.ndarray = UNKNOWN_WRENCH
    zero_moment_point: np.ndarray = UNKNOWN_POINT


def on_fixed_base(tree: TreeDynamics, motion: Sequence[np.ndarray], loads: Loads | None) -> WholeBody:
    """Return the quantities of a tree on a fixed base. motion: q to qddd of all its joints, (n,) each."""
    forces = tree.recursion(*motion, loads=loads)[1]
    wrench = np.concatenate((forces.f[0], forces.n[0]))
    g = tree.gravity_vector
    weight = tree.total_mass * float(np.linalg.norm(g))
    point = zero_moment_point(wrench, weight, np.zeros(3), -g) if weight else UNKNOWN_POINT
    return WholeBody(tree.center_of_mass(*motion[:2]).position, wrench, point)


def on_moving_base(tree: TreeDynamics, motion: Sequence[np.ndarray], wrench: np.ndarray, base: BaseState | None) -> WholeBody:
    """Return the quantities of a tree on a moving base with a base wrench. base: its state; None: its pose is unknown."""
    center = tree.center_of_mass(*motion[:2]).position
    if base is None:
        return WholeBody(center, wrench)
    return WholeBody(center, wrench, base.into_base(zero_moment_point_of(tree, wrench, base) - base.position))


def zero_moment_point_of(tree: TreeDynamics, wrench: np.ndarray, base: BaseState) -> np.ndarray:
    """Return the zero moment point (3,) in the world on the plane z = 0, for a wrench (6,) on the base in its frame."""
    force, moment = np.split(base.into_world(wrench), 2)
    weight = tree.total_mass * float(np.linalg.norm(tree.gravity_vector))
    if not weight:
        return UNKNOWN_POINT
    return zero_moment_point(np.concatenate((force, moment + np.cross(base.position, force))), weight, np.zeros(3),
                             np.array([0.0, 0.0, 1.0]))


class LoopTracking:
    """Tracking of closed loops along a stream of samples; passive joints are compared with their sensors."""

    def __init__(self, tracker: LoopTracker):
        self._tracker = tracker
        self._last: TrackedPose | None = None

    def locate(self, independent: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return the positions of all joints of the tree for positions of the independent joints. Raises Rejected.

        others: measured positions of the other joints; NaN: unknown
        """
        found: TrackedPose = track(self._tracker.locate, independent, _sensed(others))
        self._last = found
        return found.pose

    @property
    def begun(self) -> bool:
        """True if there is a previous pose."""
        return self._tracker.last is not None

    def move(self, function: Callable[[np.ndarray], tuple[Found, np.ndarray]]) -> Found:
        """Return function(guess) for a pose near the closed one; it returns its result and the closed pose. Raises Rejected.
        """
        self._last = None
        found: Found = track(self._tracker.move, function)
        return found

    def warnings(self) -> list[str]:
        if self._last is None or self._last.agrees:
            return []
        differing = dict(self._compared(self._last))
        worst = max(differing, key=lambda name: abs(differing[name]))
        return [f"{worst} is {differing[worst]:+.4g} off its measured position in the loops: check the assembly branch, "
                "the sensor's zero and sign, and the robot file"]

    def findings(self) -> dict[str, object]:
        found: dict[str, object] = {f"loops.{reason.replace(' ', '_')}": count
                                    for reason, count in sorted(self._tracker.counts.items())}
        compared = [] if self._last is None else self._compared(self._last)
        return found | {f"{name}.loop_disagreement": f"{value:.3g}" for name, value in compared}

    def _compared(self, found: TrackedPose) -> list[tuple[str, float]]:
        """Return the measured passive joints with the differences between solved and measured positions."""
        compared = zip(self._tracker.passive_joints, found.disagreement)
        return [(name, value) for name, value in compared if not math.isnan(value)]


def _sensed(positions: np.ndarray) -> np.ndarray | None:
    """Return the positions; None if all are unknown."""
    return None if np.isnan(positions).all() else positions


def track(step, *sample):
    """Return the result of a step of a tracker. Reasons of Rejected are converted to diagnostic keys, without spaces."""
    try:
        return step(*sample)
    except Rejected as refusal:
        raise Rejected(refusal.reason.replace(" ", "_"), refusal.detail) from None


class MovingPlatforms:
    """Platforms of a robot. Poses are published on ~/platform_pose, velocities on ~/platform_twist.

    The topics of several platforms are ~/platform_pose/LINK and ~/platform_twist/LINK.

    source : topics with the motion of the platforms; None if it is computed from the actuators
    """

    def __init__(self, robot: Robot, values: Values, loops: LoopTracking):
        """Create the platforms. Raises InputError for a source that does not determine the motion of the robot."""
        self._robot, self._loops = robot, loops
        self._suffixes = platform_suffixes(robot.platforms)
        self._reached: dict[str, PlatformMotion] = {}  # poses that were measured last
        self.source: PlatformSource | None = None
        if values["platform.source"] != "actuators":
            if robot.elastic_joints or robot.state_joints:
                raise InputError(f"platform.source is '{values['platform.source']}', but the motion of the platform does not "
                                 "decide that of springs and passive joints of this robot; allowed is actuators")
            tracker = robot.tracker()
            assert tracker is not None  # a platform has loops
            self._measured = LoopTracking(tracker)
            self.source = platform_source(robot, values, self._reach)
            self.source.use(robot.tree.model)

    def _reach(self, link: str, position: np.ndarray, rotation: np.ndarray) -> None:
        """Raise Rejected for a measured pose that the legs cannot reach, given the last poses of other platforms."""
        poses = {**self._reached, link: PlatformMotion(position, rotation)}

        def reached(near: np.ndarray) -> tuple[None, np.ndarray]:
            return None, self._robot.tree_motion(poses, guess=near, orders=0).q

        if len(poses) == len(self._suffixes):
            self._measured.move(reached)
        self._reached = poses

    def prepare(self) -> None:
        """Compile the functions that solve the legs for a pose."""
        self._robot.closure.compile()
        if self.source:
            home = self._robot.start
            platforms = self._robot.loops.platforms if self._robot.loops else ()
            self._robot.tree_motion({one.link: PlatformMotion(*one.pose(home)[::-1]) for one in platforms})

    def connect(self, topics: Topics) -> None:
        """Create the publishers, and the subscriptions of the source."""
        self._publishers = {link: (topics.publisher(PoseStamped, f"~/platform_pose{suffix}"),
                                   topics.publisher(TwistStamped, f"~/platform_twist{suffix}"))
                            for link, suffix in self._suffixes.items()}
        if self.source:
            self.source.connect(topics)

    def take_over(self, before: MovingPlatforms) -> None:
        """Adopt the topics of a previous robot with the same model."""
        if self.source and before.source:
            self.source, self._measured = before.source, before._measured

    def move(self, stamp: int, function: Callable[[list[np.ndarray], np.ndarray], Found]) -> tuple[list[np.ndarray], Found]:
        """Return the motion of the actuators at a stamp [ns], and function(motion, closed pose). Raises Rejected."""
        assert self.source is not None
        motion = self.source.at(stamp)

        def moved(near: np.ndarray) -> tuple[tuple[list[np.ndarray], Found], np.ndarray]:
            found, pose = self._robot.actuator_motion(motion, near, 3)
            return (found, function(found, pose)), pose

        return self._loops.move(moved)

    def publish(self, when: Time, root: str, found: Solution) -> None:
        """Publish the poses and twists in a solution, expressed in the frame of the root link."""
        if not any(one.has_subscribers() for both in self._publishers.values() for one in both):
            return
        for link, platform in self._robot.platforms_of(found).items():
            poses, twists = self._publishers[link]
            if poses.has_subscribers():
                pose = PoseStamped()
                fill_axes(pose.pose.position, platform.position)
                fill_axes(pose.pose.orientation, quaternion(np.asarray(platform.rotation)))
                poses.send(_stamped(pose, when, root))
            if twists.has_subscribers():
                twist = TwistStamped()
                fill_axes(twist.twist.linear, platform.velocity[:3])
                fill_axes(twist.twist.angular, platform.velocity[3:])
                twists.send(_stamped(twist, when, root))


class MovingBase:
    """Moving base: its motion from a source, and the wrench that supports it on ~/base_wrench and ~/base_dynamics."""

    def __init__(self, source: BaseSource, tree: TreeDynamics):
        self.source, self._tree = source, tree

    def paired(self) -> list[PairedInput]:
        """Return its topics, as inputs that are paired with joint states."""
        return [topic.paired() for topic in self.source.topics]

    def configure(self, values: Values) -> None:
        """Apply parameters."""
        lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        for topic in self.source.topics:
            topic.configure(lag, values["input_tolerance"])

    def connect(self, topics: Topics) -> None:
        """Create the subscriptions and publishers."""
        self.source.use(self._tree.model, self._tree.gravity_vector)
        self._wrenches = topics.publisher(WrenchStamped, "~/base_wrench")
        self._whole = topics.publisher(BaseDynamics, "~/base_dynamics")
        for topic in self.source.topics:
            topic.connect(topics)

    def forget(self) -> None:
        """Discard all samples after a change of the clock."""
        self.source.forget()

    def publish(self, when: Time, base: BaseMotion, wrench: np.ndarray, wrench_rate: np.ndarray) -> None:
        """Publish the motion of the base, and the wrench (6,) that supports it with its rate, expressed in its frame."""
        frame = self._tree.root_link
        if self._wrenches.has_subscribers():
            self._wrenches.send(_stamped(WrenchStamped(wrench=to_wrench(wrench)), when, frame))
        if self._whole.has_subscribers():
            found = BaseDynamics(state=base.message(), wrench=to_wrench(wrench), wrench_rate=to_wrench(wrench_rate))
            known = base.has_orientation and base.has_position
            pressed = zero_moment_point_of(self._tree, wrench, base.state) if known else np.full(3, np.nan)
            fill_axes(found.zero_moment_point, pressed)
            self._whole.send(_stamped(found, when, frame))


def _stamped(message: Any, when: Time, frame: str) -> Any:
    message.header.stamp, message.header.frame_id = when, frame
    return message


Motion = Sequence[np.ndarray]  # q, qd, qdd, qddd and what follows, (n,) each
LoadsOf = Callable[[np.ndarray, np.ndarray], Loads | None]  # of q, qd of the tree


class Moved(NamedTuple):
    """Motion of `joint_names` and its torques."""

    motion: Motion
    result: Dynamics


def no_loads(q: np.ndarray, qd: np.ndarray) -> None:
    """Return None: there are no loads."""


class ServedRobot(RobotFacts, ABC):
    """Robot in dynamics_node: its properties, and its torques for a stream of samples.

    robot          : robot of the library
    optional       : joints in addition to joint_names that are read from joint_states if they are published
    order          : number of derivatives of position in desired motions; those beyond the jerk are NaN if unknown
    solved         : joints whose motion is computed from that of joint_names
    differentiable : tree on a fixed base for sensitivities, friction and external efforts; None: not available
    motion_topic   : topic with the motion of the robot, or of its first platform, if joint states do not contain it
    cuts           : cut joints of loops, in frames of links of the tree
    springs        : elastic joints, whose motors have their own velocity, see `motor_speed`
    extra_warnings : warnings about parameters and robot file, one sentence each
    scalable       : whether torques at another speed can be computed from those at this speed, for speed scaling
    moved_parts    : elements of ("base", "platform") whose motion is an input
    has_free_base  : whether the acceleration of the base is computed from the dynamics
    loads          : external loads in the last sample; None: there are none
    """

    optional: tuple[str, ...] = ()
    solved: tuple[str, ...] = ()
    order = 3
    differentiable: Robot | None = None
    motion_topic = ""
    cuts: tuple[Cut, ...] = ()
    springs: tuple[str, ...] = ()
    extra_warnings: tuple[str, ...] = ()
    scalable = False
    moved_parts: tuple[str, ...] = ()
    has_free_base = False
    loads: Loads | None = None

    def __init__(self, robot: Robot):
        super().__init__(robot)
        self.streams: list[Stream] = []  # topics that only this robot has

    @property
    def joints_read(self) -> tuple[object, ...]:
        """Joint names and order on which the joint history depends."""
        return self.joint_names, self.optional, self.order

    def describe(self, info: ModelInfo) -> None:
        """Add properties of this kind of robot to ~/model_info."""
        info.solved_joints = list(self.solved)
        info.measured_joints = [*self.joint_names, *self.optional]

    def paired(self) -> list[PairedInput]:
        """Return the inputs of this kind of robot in addition to joint states."""
        return []

    # ------------------------------------------------------------------ what it does

    @abstractmethod
    def prepare(self, loads: LoadsOf) -> None:
        """Compile everything that `dynamics` needs, in the thread that builds models. Raises RneaError."""

    def configure(self, values: Values) -> None:
        """Apply parameters; called before `connect` and after each change."""

    def connect(self, topics: Topics) -> None:
        """Create the topics of this kind of robot, before the first sample."""

    def take_over(self, before: ServedRobot) -> None:
        """Continue from the same robot with another payload."""

    def forget(self) -> None:
        """Discard earlier samples after a change of the clock."""

    @abstractmethod
    def dynamics(self, motion: Motion, optional: np.ndarray, loads: LoadsOf, stamp: int) -> Dynamics:
        """Return torques, torque rates, gravity torques and gravity torque rates of one sample.

        motion   : motion of joint_names; estimated motions end with the jerk
        optional : (4, len(self.optional)) position to jerk of the optional joints; NaN: unknown
        stamp    : stamp of the motion [ns]

        Raises Rejected or RneaError.
        """

    def dynamics_from_topic(self, stamp: int, loads: LoadsOf) -> Moved:
        """Return motion and torques at a stamp [ns], for robots whose motion comes from `motion_topic`."""
        raise NotImplementedError

    def kernel(self) -> Kernel | None:
        """Return the kernel of q, qd, qdd, qddd that is all of `dynamics` without loads; None if there is more to it."""
        return None

    def body(self, motion: Motion) -> WholeBody | None:
        """Return the whole-body quantities of the last sample; None: unknown."""
        return None

    def constraint_wrenches(self) -> Mapping[str, ConstraintWrench]:
        """Return the wrenches of loops, contacts and wheels in the last sample, keyed by name; empty: unknown."""
        return {}

    def motor_speed(self, motion: Motion) -> np.ndarray:
        """Return the motor velocities (n,) in the last sample, divided by the gear ratios."""
        return motion[1]

    def publish(self, when: Time) -> None:
        """Publish the results of the last sample other than torques, with its stamp."""

    def warnings_now(self) -> list[str]:
        """Return warnings about the last sample."""
        return []

    def findings(self) -> dict[str, object]:
        """Return diagnostic values of the last sample."""
        return {}


ROBOT_FILE = "robot_file"  # value of the parameters that selects the conventions of the robot file


def efforts(robot: ServedRobot, values: Values) -> Efforts:
    """Return the conventions of commanded and measured efforts; parameters override the robot file.

    Joint efforts are always whole torques.
    """
    joints = [robot.model.joint_names.index(name) for name in robot.joint_names if name in robot.model.joint_names]
    of_file = (convention.of(joints) for convention in robot.model.efforts)
    contents = (values["commanded_effort"], values["measured_effort"])
    return Efforts(*(convention if contains == ROBOT_FILE else convention._replace(contains=contains)
                     for convention, contains in zip(of_file, contents)))


def check_friction(robot: ServedRobot, found: Efforts) -> None:
    """Raise InputError if a convention requires friction and its share of the torques is unknown."""
    for section, convention in zip(Efforts._fields, found):
        if robot.differentiable is None and convention.needs_friction:
            raise InputError(f"{section}_effort is {convention.contains}, which serves robots without loops, springs and "
                             f"moving base; this one is a {robot.kind}. Allowed are total and without_gravity: set parameter "
                             f"{section}_effort, or {section}_effort in the robot file")


class ServedTree(ServedRobot):
    """Tree on a fixed base."""

    scalable = True

    def __init__(self, robot: Robot):
        super().__init__(robot)
        self.differentiable, self._dynamics = robot, robot.dynamics

    def prepare(self, loads: LoadsOf) -> None:
        tried(self.robot)
        rest = np.zeros((4, self.n))
        self._dynamics(*rest, loads=loads(*rest[:2]))

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: LoadsOf, stamp: int) -> Dynamics:
        self.loads = loads(motion[0], motion[1])
        return self._dynamics(*motion, loads=self.loads)

    def kernel(self) -> Kernel | None:
        return self.tree.kernel("dynamics")

    def body(self, motion: Motion) -> WholeBody | None:
        return on_fixed_base(self.tree, motion, self.loads)


MAX_ORDER = len(FIELDS) + 1  # order of the highest derivative of position in JointMotion
BASE_RATES = 2  # derivatives of a base's velocity in BaseState
STILL = BaseMotion(BaseState(acceleration=np.zeros(6), jerk=np.zeros(6)))
TRIAL_POSES = 4
DEFLECTION_RATE = 5  # row of ElasticDynamics


class ServedGeneralRobot(ServedRobot):
    """Robot other than a tree on a fixed base. Its inputs and outputs follow from the roles of its coordinates.

    messages : ~/constraint_effort, ~/constraint_effort_rate, ~/followed_joints, ~/elastic_dynamics of the last sample

    Inputs in addition to joint states: motion of a base; sensors of dependent joints; motors of elastic joints, if they are
    measured. Input instead of joint states: motion of a platform. Outputs in addition to torques: motion of dependent joints
    (~/followed_joints), multipliers and their rates (~/constraint_effort, ~/constraint_effort_rate), motors and springs of
    elastic joints (~/elastic_dynamics), pose and twist of a platform, base wrench.
    """

    def __init__(self, robot: Robot, values: Values):
        """Create a robot. Raises InputError for parameters or motor names that contradict the robot file."""
        super().__init__(robot)
        roles = robot.roles
        self.solved, self.springs = robot.solved_joints, robot.elastic_joints
        self.cuts = (*(roles.loops.cuts if roles.loops else ()), *roles.contacts)
        tracker = robot.tracker(values["loops.tolerance"])
        self._loops = LoopTracking(tracker) if tracker else None
        self._independent, self._others = [], []
        if tracker and roles.loops:
            names = robot.tree.joint_names
            self._independent = [robot.joint_names.index(names[k]) for k in roles.loops.active]
            given = dict(zip((*robot.joint_names, *self.solved), range(robot.n + len(self.solved))))
            self._others = [given[name] for name in tracker.passive_joints]
        self._base: MovingBase | None = None
        self._decided = not roles.wheels  # whether the motion of the base is given, not only its pose
        if robot.has_moving_base:
            self._base = MovingBase(base_source(values, robot), robot.tree)
            self.streams, self.moved_parts = self._base.source.streams, ("base",)
            self.has_free_base = not robot.carried and not roles.contacts
            self._decided = self._decided and values["base.motion_source"] != "free"
            if values["base.motion_source"] == "free" and not self.has_free_base:
                raise InputError("base.motion_source is 'free', but the robot file says that the base is carried or stands on "
                                 "ground_contacts; allowed are estimated and desired")
        self._platforms: MovingPlatforms | None = None
        if self._loops and robot.platforms:
            self._platforms = MovingPlatforms(robot, values, self._loops)
            self.moved_parts = (*self.moved_parts, "platform")
            self._use_source()
        self._name_motors()
        self._constraints: tuple[str, ...] = robot.constraints
        self._multipliers = np.zeros((2, len(self._constraints)))
        self._followed = np.zeros((2, len(self.solved)))
        self._elastic = np.full((6, self.n), np.nan)
        self._elastic[4:] = 0.0
        self._make_messages()
        self._last: tuple[Solution, BaseMotion | None] | None = None
        self._again: Callable[[], Solution] | None = None  # the last sample with the multipliers of over-constrained loops

    def _use_source(self) -> None:
        """Set the properties that depend on the source of the platform motion."""
        if self._platforms and (source := self._platforms.source):
            self.motion_topic = source.measured[0].topic
            self.streams = [*source.streams, *(self._base.source.streams if self._base else [])]

    def _name_motors(self) -> None:
        """Set the motors that joint states contain, and the derivatives that the torques of the other motors require."""
        robot = self.robot
        motors = tuple(robot.motor_joints[name] for name in robot.elastic_joints if name in robot.motor_joints)
        self.optional = (*self.solved, *motors)
        twice = [name for name in motors if name in robot.tree.joint_names or motors.count(name) > 1]
        if twice:
            raise InputError(f"motor_joint names {some(twice)} more than once, or as a joint of the robot; rename the motors")
        self._motors_named = bool(motors) and len(motors) == len(robot.elastic_joints)
        use = "carried" if self._base and self._decided else "inverse"
        structure = robot.structure(use)
        needed = max(3, structure.order)
        self._reads_motors = any(name.startswith("motor of ") for name in structure.roles.state)
        self._not_desired = ""
        if self._reads_motors:
            self._not_desired = "on a free base or on what its own spring moves the motion of the joints does not decide it"
        elif needed > MAX_ORDER:
            self._not_desired = f"that takes {needed} derivatives of position, JointMotion has {MAX_ORDER}"
        elif self._base and self._decided and structure.order_for(2) - 1 > BASE_RATES:
            self._not_desired = (f"that takes {structure.order_for(2) - 1} derivatives of the base's velocity, base states "
                                 f"have {BASE_RATES}")
        self.order = 3 if self._not_desired else needed

    def _make_messages(self) -> None:
        header, none = Header(frame_id=self.root_link), np.zeros((2, 0))
        names = list(self._constraints)
        self.messages = [Sent(JointState(header=header, name=names), none, self._multipliers[k, None]) for k in range(2)]
        self.messages.append(Sent(JointState(header=header, name=list(self.solved)), self._followed, none[:1]))
        self.messages.append(Sent(ElasticDynamics(header=header, joint_names=list(self.joint_names)), self._elastic))

    # ------------------------------------------------------------------ what it is

    def describe(self, info: ModelInfo) -> None:
        super().describe(info)
        info.base = "floating" if self._base else "fixed"

    def paired(self) -> list[PairedInput]:
        source = self._platforms.source if self._platforms else None
        topics = [topic.paired() for topic in source.topics] if source else []
        return [*(self._base.paired() if self._base else []), *topics]

    def prepare(self, loads: LoadsOf) -> None:
        """Evaluate poses near the start until one is regular; the compiled functions apply to all poses."""
        if self._platforms:
            self._platforms.prepare()
        rng, rest = np.random.default_rng(0), self.robot.home_motion
        rest = np.vstack((rest, np.zeros((max(0, self.order + 1 - len(rest)), self.n))))
        for trial in range(TRIAL_POSES):
            q = rest[0] + 0.1 * trial * rng.normal(size=self.n)
            try:
                for given in (no_loads, loads):
                    for optional in self._prepared_inputs(q):
                        self.evaluate((q, *rest[1:self.order + 1]), optional, given, STILL if self._base else None)
                return
            except InputError:
                continue  # singular: the loops or contacts do not decide the motion there

    def _prepared_inputs(self, q: np.ndarray) -> list[np.ndarray]:
        """Return values of `optional` for each combination of known motors."""
        unknown = np.full((4, len(self.optional)), np.nan)
        if not self.springs:
            return [unknown]
        measured = unknown.copy()
        if self._motors_named:
            measured[:, len(self.solved):] = 0.0
            measured[0, len(self.solved):] = q[[self.joint_names.index(name) for name in self.springs]]
        return [*([] if self._not_desired else [unknown]), *([measured] if self._motors_named else [])]

    # ------------------------------------------------------------------ topics

    def configure(self, values: Values) -> None:
        if self._base:
            self._base.configure(values)
        if self._platforms and self._platforms.source:
            self._platforms.source.configure(values["estimator.lag"], values["input_tolerance"])

    def connect(self, topics: Topics) -> None:
        if self._base:
            self._base.connect(topics)
        if self._platforms:
            self._platforms.connect(topics)
        wanted = [(JointState, "~/constraint_effort"), (JointState, "~/constraint_effort_rate"),
                  (JointState, "~/followed_joints"), (ElasticDynamics, "~/elastic_dynamics")]
        there = [bool(self._constraints), bool(self._constraints), bool(self.solved), bool(self.springs)]
        self._publishers = [(topics.publisher(kind, name), message) for (kind, name), message, some_of_it
                            in zip(wanted, self.messages, there) if some_of_it]

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedGeneralRobot):
            self._take_over_parts(before)

    def _take_over_parts(self, before: ServedGeneralRobot) -> None:
        if self._base and before._base:
            self._base.source, self.streams = before._base.source, before.streams
        if before.model is self.model:
            self._loops = before._loops
            if self._platforms and before._platforms:
                self._platforms.take_over(before._platforms)
                self._use_source()

    def forget(self) -> None:
        if self._base:
            self._base.forget()
        if self._platforms and self._platforms.source:
            self._platforms.source.forget()

    def publish(self, when: Time) -> None:
        if self._last is None:
            return
        found, base = self._last
        for publisher, message in self._publishers:
            if publisher.has_subscribers():
                if message in self.messages[:2]:
                    self._find_multipliers()
                publisher.send(message.packed((when.sec, when.nanosec)))
        if self._base and base is not None:
            self._base.publish(when, base, found.base_wrench, found.base_wrench_rate)
        if self._platforms:
            self._platforms.publish(when, self.root_link, found)

    # ------------------------------------------------------------------ dynamics

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: LoadsOf, stamp: int) -> Dynamics:
        base = None
        if self._base:
            base = self._base.source.at(stamp) if self._decided else self._base.source.state_at(stamp)
        result = self.evaluate(motion, optional, loads, base)
        if self._base and self._last is not None and len(self._last[0].base) > 1:
            self._base.source.on_solved(stamp, self._last[0].base[:2])
        return result

    def dynamics_from_topic(self, stamp: int, loads: LoadsOf) -> Moved:
        assert self._platforms is not None
        base = self._base.source.at(stamp) if self._base else None
        unknown = np.full((4, len(self.optional)), np.nan)
        return Moved(*self._platforms.move(stamp, lambda motion, pose: self.evaluate(motion, unknown, loads, base, pose)))

    def evaluate(self, motion: Motion, optional: np.ndarray, loads: LoadsOf, base: BaseMotion | None,
                 pose: np.ndarray | None = None) -> Dynamics:
        """Return the torques for a motion of the base; for the other arguments and errors see `dynamics`.

        pose: positions of all joints, if the loops are already closed
        """
        robot, (q, qd) = self.robot, motion[:2]
        state: dict[str, Any] = {} if base is None else {"base": base.state if self._decided else base.state.free}
        sensed = optional[0, :len(self.solved)]
        free = loads is no_loads and robot.roles.weights is None and not np.isfinite(sensed).any()
        follows = self._loops and self._loops.begun and free and pose is None  # the last pose is a good guess: closed once
        if pose is not None:
            state["guess"] = pose
        elif self._loops and not follows:
            state["guess"] = self._loops.locate(q[self._independent], np.concatenate((q, sensed))[self._others])
        self.loads = None if loads is no_loads else loads(*robot.tree_state(q, qd, **state))
        higher, motors = self._known_motors(motion, optional[:, len(self.solved):])
        given: dict[str, Any] = {"motors": motors, "loads": self.loads}
        if self._loops and follows:
            def solved(guess: np.ndarray) -> tuple[Solution, np.ndarray]:
                one = robot.solve(q, qd, *higher, **state, **given, guess=guess, multipliers=False)
                return one, np.array([one.positions[name][0] for name in robot.tree.joint_names])

            found = self._loops.move(solved)
            state["guess"] = np.array([found.positions[name][0] for name in robot.tree.joint_names])
        else:
            found = robot.solve(q, qd, *higher, **state, **given, multipliers=False)
        if base is not None and not self._decided:
            base = base._replace(state=base.state.moved_by(found.base), numbers=None)
        copies = [np.array(part) for part in (q, qd, *higher)]
        self._again = None if found.multipliers else partial(robot.solve, *copies, **state, **given)
        has_orientation = base is None or base.has_orientation
        gravity = robot.gravity_and_rate(q, qd, **state) if has_orientation else np.full((2, self.n), np.nan)
        result = Dynamics(*found.torques, *gravity)
        self._fill(motion, found, result)
        self._last = found, base
        return result

    def _known_motors(self, motion: Motion, motors: np.ndarray) -> tuple[Motion, MotorState | None]:
        """Return the derivatives of q from the second up, and the motion of the measured motors."""
        if not self.springs:
            return motion[2:4], None
        needed = motion[4:self.order + 1]
        if not self._not_desired and len(motion) > self.order and all(np.isfinite(part).all() for part in needed):
            return motion[2:self.order + 1], None
        if self._motors_named and np.isfinite(motors[:2] if self._reads_motors else motors).all():
            return motion[2:4], MotorState(*(motors[:2] if self._reads_motors else motors))
        wanted = self._not_desired or f"the desired motion needs {some(FIELDS[2:self.order - 1])} of all joints"
        named = (f"{some(self.optional[len(self.solved):])} in the joint states" if self._motors_named else
                 f"a motor_joint for each of {some(self.springs)}")
        raise Rejected("derivatives_missing", f"how the motors move behind their springs is not known: {wanted}; or else "
                                              f"{named}, with positions and velocities, and with accelerations and jerks "
                                              "desired or estimated")

    def _fill(self, motion: Motion, found: Solution, result: Dynamics) -> None:
        """Write the published results other than torques."""
        for k, name in enumerate(self._constraints if found.multipliers else ()):
            self._multipliers[:, k] = found.multipliers[name][:2]
        for k, name in enumerate(self.solved):
            self._followed[:, k] = found.positions[name][:2]
        if self.springs:
            self._elastic[:2] = result[:2]
            self._elastic[2:4] = self.robot.joint_loads(found)
            for name in self.springs:
                column, motor = self.joint_names.index(name), found.positions[f"motor of {name}"]
                self._elastic[4:, column] = motor[:2] - [motion[0][column], motion[1][column]]

    def _find_multipliers(self) -> None:
        """Solve the last sample with its multipliers, if they were omitted to save time."""
        if self._last is None or self._again is None or not self._constraints:
            return
        solve, self._again = self._again, None
        try:
            found = solve()
        except InputError:  # torques are decided, the multipliers are not
            self._multipliers[:] = np.nan
            return
        self._last = found, self._last[1]
        for k, name in enumerate(self._constraints):
            self._multipliers[:, k] = found.multipliers[name][:2]

    # ------------------------------------------------------------------ the last sample

    @property
    def base_motion(self) -> tuple[BaseMotion, np.ndarray] | None:
        """Motion of the base, and the wrench (2, 6) that supports it with its rate."""
        found, base = self._last or (None, None)
        if found is None or base is None:
            return None
        return base, np.array([found.base_wrench, found.base_wrench_rate])

    def motor_speed(self, motion: Motion) -> np.ndarray:
        return motion[1] + self._elastic[DEFLECTION_RATE] if self.springs else motion[1]

    def constraint_wrenches(self) -> Mapping[str, ConstraintWrench]:
        self._find_multipliers()
        if self._last is None or not self._constraints:
            return {}
        found, base = self._last
        return self.robot.constraint_wrenches(found, base.state if base else None) if found.multipliers else {}

    def body(self, motion: Motion) -> WholeBody | None:
        if self._last is None:
            return None
        found, base = self._last
        tree = self.tree
        positions = [*np.array([found.positions[name][:4] for name in tree.joint_names]).reshape(-1, 4).T]
        if base is not None:
            known = base.state if base.has_orientation and base.has_position else None
            return on_moving_base(tree, positions, found.base_wrench, known)
        if self.robot.roles.motors:  # the base also carries the reaction of the rotors
            return WholeBody(tree.center_of_mass(*positions[:2]).position)
        return on_fixed_base(tree, positions, self.loads)

    def warnings_now(self) -> list[str]:
        base = self._base.source.warnings() if self._base else []
        return base + (self._loops.warnings() if self._loops else []) + rolling_warnings(self.wheel_loads())

    def wheel_loads(self) -> dict[str, WheelLoad]:
        """Return the load of each wheel in the last sample; empty: unknown."""
        if not self.robot.roles.wheels or self._last is None or self._last[1] is None:
            return {}
        self._find_multipliers()
        found, base = self._last
        return wheel_loads(self.robot, found, base.state) if found.multipliers and base else {}

    def findings(self) -> dict[str, object]:
        found: dict[str, object] = self._base.source.findings() if self._base else {}
        found |= self._loops.findings() if self._loops else {}
        self._find_multipliers()
        loads = self.wheel_loads()
        for name, load in loads.items():
            known = {"normal_force": load.normal[0], "friction_use": load.friction_use}
            found |= {f"wheels.{name}.{key}": float(value) for key, value in known.items() if not np.isnan(value)}
        if loads and not np.isnan(margin := tip_over_margin(loads)):
            found["wheels.tip_over_margin"] = margin
        if self._last is not None and self._last[0].open_multipliers:
            found["open_multipliers"] = some(self._last[0].open_multipliers)
        return found


LONGEST_GAP_S = 0.25  # between samples; after a longer one, prediction begins again at the equilibrium


class ServedFlexibleRobot(ServedRobot):
    """Robot with flexible links. joint_names: joints with motors; its modal coordinates are on ~/deflection.

    Each sample continues the prediction of the previous one: vibration excited by the motion, from equilibrium at the first
    sample. Disturbances of the real robot are not included.
    """

    def __init__(self, robot: Robot, values: Values):
        """Create a robot. Raises InputError if deflections cannot be predicted, for instance on a moving base."""
        super().__init__(robot)
        self.predictor = vibration.FlexiblePredictor(robot)
        self._general = ServedGeneralRobot(robot, values)
        self._driven, self._modes = self.predictor.driven, self.predictor.columns
        self.joint_names, self.n = tuple(robot.joint_names[k] for k in self._driven), len(self._driven)
        self.joint_types = tuple(robot.joint_types[k] for k in self._driven)
        self.solved, self.cuts, self.moved_parts = self._general.solved, self._general.cuts, ("flexible",)
        self._deflection = np.zeros((3, len(self._modes)))
        message = JointState(header=Header(frame_id=self.root_link), name=list(self.predictor.names))
        self._message = Sent(message, self._deflection)
        self._restarts, self.began, self._last = 0, 0, np.zeros((4, robot.n))

    @property
    def limits(self) -> Limits:
        return self.robot.limits.of(self._driven)

    def prepare(self, loads: LoadsOf) -> None:
        self._general.prepare(loads)
        self.predictor.advance(0.0, np.zeros((4, self.n)))
        vibration.root_loads(self.robot, *self._last)
        self.predictor.restart()

    def connect(self, topics: Topics) -> None:
        self._general.connect(topics)
        self._publisher = topics.publisher(JointState, "~/deflection")

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedFlexibleRobot) and before.predictor.names == self.predictor.names:
            self.predictor.continue_from(before.predictor)
            self.began = before.began

    def forget(self) -> None:
        self.predictor.restart()
        self._general.forget()

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: LoadsOf, stamp: int) -> Dynamics:
        if self.predictor.time is None:
            self.began = stamp
        time, before = 1e-9 * (stamp - self.began), self.predictor.time
        if before is not None and not 0.0 < time - before <= LONGEST_GAP_S:
            self.predictor.restart()
            self._restarts += 1
        load = None if loads is no_loads else loads(*self.robot.tree_state(*self._whole(motion)[:2]))
        whole = self.predictor.advance(time, np.array(motion[:4]), load)
        found = self._general.dynamics(list(whole), optional, loads, stamp)
        self.loads = self._general.loads
        self._last, self._deflection[:2], self._deflection[2] = whole, whole[:2, self._modes], found.tau[self._modes]
        return Dynamics(*(part[self._driven] for part in found))

    def _whole(self, motion: Motion) -> np.ndarray:
        whole = self._last.copy()
        whole[:, self._driven] = motion[:4]
        return whole

    def publish(self, when: Time) -> None:
        self._general.publish(when)
        if self._publisher.has_subscribers():
            self._publisher.send(self._message.packed((when.sec, when.nanosec)))

    def constraint_wrenches(self) -> Any:
        return self._general.constraint_wrenches()

    def body(self, motion: Motion) -> WholeBody | None:
        return self._general.body(motion)

    def findings(self) -> dict[str, object]:
        found: dict[str, object] = {"flexible.restarts": self._restarts}
        try:
            tips, roots = vibration.tip_deflection(self.robot, self._last[0]), vibration.root_loads(self.robot, *self._last)
        except InputError:  # internal forces that loops leave open
            return found
        for link, tip in tips.items():
            found[f"flexible.{link}.deflection"] = float(np.linalg.norm(tip))
            for name, root in roots[link].items():
                found[f"flexible.{link}.{name}.root_moment"] = float(root.moment[0])
                if np.isfinite(root.stress[0]):
                    found[f"flexible.{link}.{name}.root_stress"] = float(root.stress[0])
        return found


def rolling_warnings(loads: Mapping[str, WheelLoad]) -> list[str]:
    """Return warnings about wheels that would slip and about a vehicle that would tip over."""
    slip = [name for name, load in loads.items() if load.friction_use > 1.0]
    found = [f"{some(slip)} would slip: the force in the ground is above friction times normal force"] if slip else []
    if loads and tip_over_margin(dict(loads)) < 0.0:
        found.append("the vehicle tips over: the zero moment point is outside the wheels' support polygon")
    return found


FOR: dict[str, tuple[str, str]] = {  # parameters that only some robots read: the part that they need, in a word and in words
    **dict.fromkeys(("base.source", "base.motion_source"), ("base", "a robot whose base moves")),
    "flexible.deflection": ("flexible", "a robot with flexible_links"),
    **dict.fromkeys(("platform.source", "platform.motion_source"), ("platform", "a parallel robot"))}


def served(robot: Robot, values: Values) -> ServedRobot:
    """Return the ServedRobot of a robot. Raises InputError if parameters contradict the robot."""
    found: ServedRobot
    if values.get("flexible.deflection") == "predicted" and robot.model.flexible_links:
        found = ServedFlexibleRobot(robot, values)
    else:
        found = ServedTree(robot) if robot.is_fixed_tree else ServedGeneralRobot(robot, values)
    if values["base.motion_source"] == "free" and not found.has_free_base and "base" in found.moved_parts:
        raise InputError(f"base.motion_source is 'free', which a {found.kind} does not serve: it is for combinations on base: "
                         "floating whose acceleration follows from the dynamics; allowed are estimated and desired")
    found.extra_warnings = idle(found, values)
    return found


def idle(robot: ServedRobot, values: Values) -> tuple[str, ...]:
    """Return warnings about parameters that are set but have no effect on this robot."""
    given = [entry for entry in DYNAMICS if entry.name in FOR and values.get(entry.name, entry.default) != entry.default]
    return tuple(f"{entry.name} is '{values[entry.name]}', which has no effect: it is for {FOR[entry.name][1]}; this "
                 f"robot is a {robot.kind}" for entry in given if FOR[entry.name][0] not in robot.moved_parts)
