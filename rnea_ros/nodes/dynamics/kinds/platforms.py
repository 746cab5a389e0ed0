"""Parallel robots: platform and legs follow from the actuators, from the last sample's pose; or all from the platform."""

from __future__ import annotations

from functools import partial

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_ros import ParallelRobot, PlatformMotion
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.platform_sources import PlatformSource, platform_source
from rnea_ros.nodes.dynamics.kinds.loops import followed
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, Moved, ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.robots.closure.tracking import TrackedPlatform
from rnea_ros.robots.inputs.base_state import quaternion
from rnea_ros.robots.robot import Dynamics


class ServedPlatform(ServedRobot):
    """ParallelRobot; it tells where its platform is on ~/platform_pose, and how fast that moves on ~/platform_twist."""

    moved_parts = ("platform",)

    def __init__(self, robot: ParallelRobot):
        super().__init__(robot, [robot.legs, robot.platform])
        self.solved = tuple(name for name in robot.legs.joint_names if name not in robot.joint_names)
        self._along, self._tracker = robot.along, robot.tracker()
        self._platform: PlatformMotion | None = None

    def prepare(self, loads: Loads) -> None:
        assert isinstance(self.robot, ParallelRobot)
        found = self._at_home(self.robot)
        for given in ({}, loads(found.legs.q, found.legs.qd)):
            self._along(*found, **given)

    def _at_home(self, robot: ParallelRobot) -> TrackedPlatform:
        """Return the robot at rest, found as samples are."""
        start = robot.start[[*map(self.model.joint_names.index, self.joint_names)]]
        return robot.tracker().follow(start, *np.zeros((3, self.n)))

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedPlatform) and before.model is self.model:
            self._tracker = before._tracker

    def connect(self, topics: Topics) -> None:
        self._poses = topics.publisher(PoseStamped, "~/platform_pose")
        self._twists = topics.publisher(TwistStamped, "~/platform_twist")

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        found = followed(self._tracker.follow, *motion)
        self._platform = found.platform
        return self._along(*found, **loads(found.legs.q, found.legs.qd))

    def tell(self, when: Time) -> None:
        platform = self._platform
        if platform is not None and self._poses.has_subscribers():
            pose = PoseStamped()
            pose.header.stamp, pose.header.frame_id = when, self.root_link
            p, o = pose.pose.position, pose.pose.orientation
            p.x, p.y, p.z = map(float, platform.position)
            o.x, o.y, o.z, o.w = map(float, quaternion(np.asarray(platform.rotation)))
            self._poses.send(pose)
        if platform is not None and self._twists.has_subscribers():
            twist = TwistStamped()
            twist.header.stamp, twist.header.frame_id = when, self.root_link
            v, w = twist.twist.linear, twist.twist.angular
            v.x, v.y, v.z, w.x, w.y, w.z = map(float, platform.velocity)
            self._twists.send(twist)


class ServedToldPlatform(ServedPlatform):
    """ParallelRobot, moved by its platform. Each message about that is answered; joint states are not looked at."""

    def __init__(self, robot: ParallelRobot, values: Values):
        super().__init__(robot)
        self._active = [*map(robot.legs.joint_names.index, robot.joint_names)]
        self._measured = robot.tracker()
        self._take(platform_source(robot, values, partial(followed, self._measured.reach)))

    def _take(self, source: PlatformSource) -> None:
        self._source, self.told_by, self.streams = source, source.measured[0].topic, source.streams
        source.use(self.model)

    def _at_home(self, robot: ParallelRobot) -> TrackedPlatform:
        return robot.tracker().carry(PlatformMotion(*robot.home))  # direct kinematics would take seconds to compile

    def paired(self) -> list[PairedInput]:
        return [topic.paired() for topic in self._source.topics]

    def configure(self, values: Values) -> None:
        self._source.configure(values["estimator.lag"], values["input_tolerance"])

    def connect(self, topics: Topics) -> None:
        super().connect(topics)
        self._source.connect(topics)

    def take_over(self, before: ServedRobot) -> None:
        super().take_over(before)
        if isinstance(before, ServedToldPlatform) and before.model is self.model:
            self._take(before._source)

    def forget(self) -> None:
        self._source.forget()

    def moved(self, stamp: int, loads: Loads) -> Moved:
        found = followed(self._tracker.carry, self._source.at(stamp))
        self._platform = found.platform
        result = self._along(*found, **loads(found.legs.q, found.legs.qd))
        return Moved([part[self._active] for part in found.legs[:4]], result)


def served_platform(robot: ParallelRobot, values: Values) -> ServedPlatform:
    """As the parameters say."""
    return ServedPlatform(robot) if values["platform.source"] == "actuators" else ServedToldPlatform(robot, values)
