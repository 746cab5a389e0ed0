"""Robots on a base that moves: its motion is heard, and the wrench that it must get from the world is told."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Wrench, WrenchStamped

from rnea_msgs.msg import BaseDynamics
from rnea_ros import AnyRobot, BaseState, FloatingRobot
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_sources import BaseSource
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot, untouched
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.marks.body import Body, carried
from rnea_ros.nodes.dynamics.motion_source import ESTIMATING
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.robots.floating import PrescribedBase
from rnea_ros.robots.robot import Dynamics

Evaluated = tuple[PrescribedBase, tuple[np.ndarray, np.ndarray]]  # and gravity's shares of the torques, and their rates


class ServedMovingBase(ServedRobot):
    """Torques for the motion of joints and base. The wrench that the base needs is on ~/base_wrench, and with its rate on
    ~/base_dynamics. Subclasses evaluate one kind of robot."""

    def __init__(self, robot: AnyRobot, floating: FloatingRobot, source: BaseSource):
        """floating: the tree of the robot; source: of the motion of the base."""
        super().__init__(robot, [floating.robot])
        self._floating = floating
        self._take(source)
        self._last: tuple[BaseMotion, PrescribedBase] | None = None

    def _take(self, source: BaseSource) -> None:
        self._source, self.streams = source, source.streams

    def describe(self, info: Any) -> None:
        super().describe(info)
        info.base = "floating"

    def paired(self) -> list[PairedInput]:
        return [topic.paired() for topic in self._source.topics]

    def configure(self, values: Values) -> None:
        lag = values["estimator.lag"] if values["motion_source"] in ESTIMATING else 0.0
        for topic in self._source.topics:
            topic.configure(lag, values["input_tolerance"])

    def connect(self, topics: Topics) -> None:
        self._source.use(self.model, self.gravity_vector)
        self._wrenches = topics.publisher(WrenchStamped, "~/base_wrench")
        self._whole = topics.publisher(BaseDynamics, "~/base_dynamics")
        for topic in self._source.topics:
            topic.connect(topics)

    def take_over(self, before: ServedRobot) -> None:
        if isinstance(before, ServedMovingBase):
            self._take(before._source)

    def forget(self) -> None:
        for topic in self._source.topics:
            topic.forget()

    # ------------------------------------------------------------------ out

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        base = self._source.at(stamp)
        found, held = self._evaluate(motion, optional, loads, base)
        self._last = base, found
        return Dynamics(found.tau, found.tau_rate, *(held if base.oriented else np.full((2, self.n), np.nan)))

    def _evaluate(self, motion: Motion, optional: np.ndarray, loads: Loads, base: BaseMotion) -> Evaluated:
        """Arguments as of `dynamics`. Raises Rejected, RneaError."""
        raise NotImplementedError

    def tell(self, when: Time) -> None:
        if self._last is None:
            return
        base, found = self._last
        if self._wrenches.has_subscribers():
            self._wrenches.send(_stamped(WrenchStamped(wrench=_wrench(found.base_wrench)), when, self.root_link))
        if self._whole.has_subscribers():
            told = BaseDynamics(state=base.message(), wrench=_wrench(found.base_wrench),
                                wrench_rate=_wrench(found.base_wrench_rate))
            known = base.oriented and base.placed
            zero = self._floating.zero_moment_point(found.base_wrench, base=base.state) if known else np.full(3, np.nan)
            point = told.zero_moment_point
            point.x, point.y, point.z = map(float, zero)
            self._whole.send(_stamped(told, when, self.root_link))

    def body(self, motion: Motion, loads: dict[str, Any]) -> Body | None:
        if self._last is None:
            return None
        base, found = self._last
        known = base.state if base.oriented and base.placed else None
        return carried(self._floating, self._tree_motion(motion), found.base_wrench, known)

    def _tree_motion(self, motion: Motion) -> Motion:
        """Of all joints."""
        return motion

    def warnings_now(self) -> list[str]:
        return self._source.warnings()

    def findings(self) -> dict[str, object]:
        return self._source.findings()


class ServedMovingTree(ServedMovingBase):
    """FloatingRobot."""

    def __init__(self, robot: FloatingRobot, source: BaseSource):
        super().__init__(robot, robot, source)

    def prepare(self, loads: Loads) -> None:
        rest, still = np.zeros((4, self.n)), BaseMotion(BaseState(), *np.zeros((2, 6)))
        for given in (untouched, loads):
            self._evaluate(tuple(rest), np.zeros((4, 0)), given, still)

    def _evaluate(self, motion: Motion, optional: np.ndarray, loads: Loads, base: BaseMotion) -> Evaluated:
        found = self._floating.prescribed_base(*motion, base=base.state, base_acceleration=base.acceleration,
                                               base_jerk=base.jerk, **loads(motion[0], motion[1]))
        return found, self._floating.gravity_and_rate(motion[0], motion[1], base=base.state)


def _wrench(six: np.ndarray) -> Wrench:
    made = Wrench()
    f, n = made.force, made.torque
    f.x, f.y, f.z, n.x, n.y, n.z = map(float, six)
    return made


def _stamped(message: Any, when: Time, frame: str) -> Any:
    message.header.stamp, message.header.frame_id = when, frame
    return message
