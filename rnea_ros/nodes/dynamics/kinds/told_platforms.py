"""Parallel robots whose platform tells how they move: legs and actuators follow from it."""

from __future__ import annotations

from functools import partial

from rnea_ros import ParallelRobot, PlatformMotion
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.platform_sources import PlatformSource, platform_source
from rnea_ros.nodes.dynamics.kinds.loops import followed
from rnea_ros.nodes.dynamics.kinds.platforms import ServedPlatform
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Moved, ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.robots.closure.tracking import TrackedPlatform


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
