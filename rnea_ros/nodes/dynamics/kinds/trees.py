"""Trees on a base that is held; and the input and output of a base that moves."""

from __future__ import annotations

from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from geometry_msgs.msg import Wrench, WrenchStamped

from rnea_msgs.msg import BaseDynamics
from rnea_ros import Robot
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.robot_description import tried
from rnea_ros.nodes.dynamics.bases.base_motion import BaseMotion
from rnea_ros.nodes.dynamics.bases.base_sources import BaseSource
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.motion_source import ESTIMATING
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.nodes.dynamics.whole_body import WholeBody, on_fixed_base, zero_moment_point_of
from rnea_ros.robots.tree import Dynamics, TreeDynamics


class ServedTree(ServedRobot):
    """Tree on a fixed base."""

    scalable = True

    def __init__(self, robot: Robot):
        super().__init__(robot)
        self.differentiable, self._dynamics = robot, robot.dynamics

    def prepare(self, loads: Loads) -> None:
        tried(self.robot)
        rest = np.zeros((4, self.n))
        self._dynamics(*rest, **loads(*rest[:2]))

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        return self._dynamics(*motion, **loads(motion[0], motion[1]))

    def body(self, motion: Motion, loads: dict[str, Any]) -> WholeBody | None:
        return on_fixed_base(self.tree, motion, loads)


class MovingBase:
    """Input and output of a base that moves: its motion from a source, the wrench that it needs on ~/base_wrench and
    ~/base_dynamics."""

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
        for topic in self.source.topics:
            topic.forget()

    def publish(self, when: Time, base: BaseMotion, wrench: np.ndarray, wrench_rate: np.ndarray) -> None:
        """Publish the motion of the base, and the wrench (6,) that it needs with its rate, along its axes."""
        frame = self._tree.root_link
        if self._wrenches.has_subscribers():
            self._wrenches.send(_stamped(WrenchStamped(wrench=_wrench(wrench)), when, frame))
        if self._whole.has_subscribers():
            found = BaseDynamics(state=base.message(), wrench=_wrench(wrench), wrench_rate=_wrench(wrench_rate))
            known = base.oriented and base.placed
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
