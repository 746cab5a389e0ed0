"""Platform of a parallel robot in dynamics_node: what moves it, and where it is."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_ros import InputError, PlatformMotion, Robot
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.platform_sources import PlatformSource, platform_source
from rnea_ros.nodes.dynamics.kinds.loops import FollowedLoops
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.robots.closure.tracking import Found
from rnea_ros.robots.inputs.base_state import quaternion
from rnea_ros.robots.solution import Solution


class MovingPlatform:
    """Platform of a robot. It publishes its pose on ~/platform_pose and its velocity on ~/platform_twist.

    source : topics that say how it moves; None where that follows from the actuators
    """

    def __init__(self, robot: Robot, values: Values, loops: FollowedLoops):
        """Raises InputError for a source that does not decide the motion of the robot."""
        self._robot, self._loops = robot, loops
        self.source: PlatformSource | None = None
        if values["platform.source"] != "actuators":
            if robot.elastic_joints or robot.state_joints:
                raise InputError(f"platform.source is '{values['platform.source']}', but the motion of the platform does not "
                                 "decide that of springs and passive joints of this robot; allowed is actuators")
            tracker = robot.tracker()
            assert tracker is not None  # a platform has loops
            self._measured = FollowedLoops(tracker)
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
