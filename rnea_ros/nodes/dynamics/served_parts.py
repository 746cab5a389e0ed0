"""Parts of robots in dynamics_node: moving base, moving platform, closed loops."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped, Wrench, WrenchStamped

from rnea_msgs.msg import BaseDynamics
from rnea_ros import InputError, PlatformMotion, Robot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import Topics
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_sources import BaseSource
from rnea_ros.nodes.dynamics.bases.platform_sources import PlatformSource, platform_source
from rnea_ros.nodes.dynamics.motion_source import ESTIMATING
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.nodes.dynamics.whole_body import zero_moment_point_of
from rnea_ros.robots.closure.tracking import Found, LoopTracker, TrackedPose
from rnea_ros.robots.inputs.base_state import quaternion
from rnea_ros.robots.solution import Solution
from rnea_ros.robots.tree import TreeDynamics


class LoopTracking:
    """Closed loops along the stream of samples: passive joints follow from the last pose; their sensors are compared."""

    def __init__(self, tracker: LoopTracker):
        self._tracker = tracker
        self._last: TrackedPose | None = None

    def locate(self, independent: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return positions of all joints of the tree from those of the independent ones; others: measured, NaN where unknown.
        Raises Rejected.
        """
        found: TrackedPose = track(self._tracker.locate, independent, _sensed(others))
        self._last = found
        return found.pose

    @property
    def begun(self) -> bool:
        """True if there is a last pose."""
        return self._tracker.last is not None

    def move(self, function: Callable[[np.ndarray], tuple[Found, np.ndarray]]) -> Found:
        """Return function(pose near the closed one), which returns its result and the closed pose. Raises Rejected."""
        self._last = None
        found: Found = track(self._tracker.move, function)
        return found

    def warnings(self) -> list[str]:
        if self._last is None or self._last.agrees:
            return []
        differing = dict(self._compared(self._last))
        worst = max(differing, key=lambda name: abs(differing[name]))
        return [f"{worst} is {differing[worst]:+.4g} off its measured position in the loops: check the assembly branch, the "
                "sensor\'s zero and sign, and the robot file"]

    def findings(self) -> dict[str, object]:
        found: dict[str, object] = {f"loops.{reason.replace(' ', '_')}": count
                                    for reason, count in sorted(self._tracker.counts.items())}
        compared = [] if self._last is None else self._compared(self._last)
        return found | {f"{name}.loop_disagreement": f"{value:.3g}" for name, value in compared}

    def _compared(self, found: TrackedPose) -> list[tuple[str, float]]:
        """Passive joints that are measured, and how they differ from that."""
        compared = zip(self._tracker.passive_joints, found.disagreement)
        return [(name, value) for name, value in compared if not math.isnan(value)]


def _sensed(positions: np.ndarray) -> np.ndarray | None:
    """Return the positions, or None if none is known."""
    return None if np.isnan(positions).all() else positions


def track(step, *sample):
    """Return the result of a tracker's step for a sample. Reasons of Rejected become diagnostic keys, without spaces."""
    try:
        return step(*sample)
    except Rejected as refusal:
        raise Rejected(refusal.reason.replace(" ", "_"), refusal.detail) from None


class MovingPlatform:
    """Platform of a robot. It publishes its pose on ~/platform_pose and its velocity on ~/platform_twist.

    source : topics with its motion; None if that follows from the actuators
    """

    def __init__(self, robot: Robot, values: Values, loops: LoopTracking):
        """Create a platform. Raises InputError for a source that does not determine the motion of the robot."""
        self._robot, self._loops = robot, loops
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

    def _reach(self, position: np.ndarray, rotation: np.ndarray) -> None:
        """Raise Rejected for a measured pose that the legs do not allow."""
        def reached(near: np.ndarray) -> tuple[None, np.ndarray]:
            return None, self._robot.tree_motion(PlatformMotion(position, rotation), guess=near, orders=0).q

        self._measured.move(reached)

    def prepare(self) -> None:
        """Compile what finds poses of the legs, or refuses them."""
        self._robot.closure.compile()
        if self.source:
            self._robot.tree_motion(PlatformMotion(*self._robot.home))

    def connect(self, topics: Topics) -> None:
        self._poses = topics.publisher(PoseStamped, "~/platform_pose")
        self._twists = topics.publisher(TwistStamped, "~/platform_twist")
        if self.source:
            self.source.connect(topics)

    def take_over(self, before: MovingPlatform) -> None:
        """Go on with the topics of a robot before, of the same model."""
        if self.source and before.source:
            self.source, self._measured = before.source, before._measured

    def move(self, stamp: int, function: Callable[[list[np.ndarray], np.ndarray], Found]) -> tuple[list[np.ndarray], Found]:
        """Return motion of the actuators at a stamp [ns], and function(that, closed pose). Raises Rejected."""
        assert self.source is not None
        motion = self.source.at(stamp)

        def moved(near: np.ndarray) -> tuple[tuple[list[np.ndarray], Found], np.ndarray]:
            found, pose = self._robot.actuator_motion(motion, near, 3)
            return (found, function(found, pose)), pose

        return self._loops.move(moved)

    def publish(self, when: Time, root: str, found: Solution) -> None:
        """Publish pose and twist in a solution, along the axes of the root link."""
        if not (self._poses.has_subscribers() or self._twists.has_subscribers()):
            return
        platform = self._robot.platform_of(found)
        if self._poses.has_subscribers():
            pose = PoseStamped()
            pose.header.stamp, pose.header.frame_id = when, root
            p, o = pose.pose.position, pose.pose.orientation
            p.x, p.y, p.z = map(float, platform.position)
            o.x, o.y, o.z, o.w = map(float, quaternion(np.asarray(platform.rotation)))
            self._poses.send(pose)
        if self._twists.has_subscribers():
            twist = TwistStamped()
            twist.header.stamp, twist.header.frame_id = when, root
            v, w = twist.twist.linear, twist.twist.angular
            v.x, v.y, v.z, w.x, w.y, w.z = map(float, platform.velocity)
            self._twists.send(twist)


class MovingBase:
    """Moving base: its motion from a source, the wrench that carries it on ~/base_wrench and ~/base_dynamics."""

    def __init__(self, source: BaseSource, tree: TreeDynamics):
        self.source, self._tree = source, tree

    def paired(self) -> list[PairedInput]:
        """Return its topics as inputs to be paired with joint states."""
        return [topic.paired() for topic in self.source.topics]

    def configure(self, values: Values) -> None:
        """Apply parameters."""
        lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        for topic in self.source.topics:
            topic.configure(lag, values["input_tolerance"])

    def connect(self, topics: Topics) -> None:
        """Create subscriptions and publishers."""
        self.source.use(self._tree.model, self._tree.gravity_vector)
        self._wrenches = topics.publisher(WrenchStamped, "~/base_wrench")
        self._whole = topics.publisher(BaseDynamics, "~/base_dynamics")
        for topic in self.source.topics:
            topic.connect(topics)

    def forget(self) -> None:
        """Discard the samples: the clock was set."""
        self.source.forget()

    def publish(self, when: Time, base: BaseMotion, wrench: np.ndarray, wrench_rate: np.ndarray) -> None:
        """Publish the motion of the base, and the wrench (6,) that it needs with its rate, along its axes."""
        frame = self._tree.root_link
        if self._wrenches.has_subscribers():
            self._wrenches.send(_stamped(WrenchStamped(wrench=_wrench(wrench)), when, frame))
        if self._whole.has_subscribers():
            found = BaseDynamics(state=base.message(), wrench=_wrench(wrench), wrench_rate=_wrench(wrench_rate))
            known = base.has_orientation and base.has_position
            pressed = zero_moment_point_of(self._tree, wrench, base.state) if known else np.full(3, np.nan)
            point = found.zero_moment_point
            point.x, point.y, point.z = map(float, pressed)
            self._whole.send(_stamped(found, when, frame))


def _wrench(six: np.ndarray) -> Wrench:
    made = Wrench()
    f, n = made.force, made.torque
    f.x, f.y, f.z, n.x, n.y, n.z = map(float, six)
    return made


def _stamped(message: Any, when: Time, frame: str) -> Any:
    message.header.stamp, message.header.frame_id = when, frame
    return message
