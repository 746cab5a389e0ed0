"""What the environment does to the robot: measured efforts in, ~/external_effort, ~/external_wrench and ~/contact out.

The same efforts tell what the robot carries, if somebody asks: payload_service.py.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import Contact, ExternalEffort
from rnea_ros import InputError, Robot
from rnea_ros.errors import Rejected
from rnea_ros.model.effort_convention import EffortConvention
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.served_robot import Motion, ServedRobot
from rnea_ros.nodes.dynamics.measured_effort import MeasuredEffort
from rnea_ros.nodes.dynamics.messages import Sent
from rnea_ros.nodes.dynamics.motion_source import MotionSource
from rnea_ros.nodes.dynamics.payload_service import PayloadService
from rnea_ros.nodes.fastpath.raw_messages import RawPublisher
from rnea_ros.sensing.external_effort import ExternalEffortObserver, Uncertainty, external_wrench

PREFIX = "external_effort."
LINK = f"{PREFIX}link"


class ExternalEfforts:
    """Of the node's robot, which must be a Robot; a joint state whose efforts are of no use costs nothing but these."""

    def __init__(self, node: Node, queue: int):
        self.stream = Stream("effort")
        self._efforts = RawPublisher(node.create_publisher(ExternalEffort, "~/external_effort", queue))
        self._wrenches = RawPublisher(node.create_publisher(WrenchStamped, "~/external_wrench", queue))
        self._contacts = node.create_publisher(Contact, "~/contact", queue)
        self._payload = PayloadService(node)
        self._observer: ExternalEffortObserver | None = None
        self._singular = False

    @staticmethod
    def prepare(served: ServedRobot, values: Values) -> None:
        """Compile what a robot needs. Raises RneaError."""
        robot = served.differentiable
        if robot is None:
            raise InputError(f"publish_external_effort serves robots without loops, springs and moving base; this one is a "
                             f"{served.kind}")
        rest = np.zeros((3, robot.n))
        for _ in range(2):  # the second call is of the kernels' own functions
            found = ExternalEffortObserver(robot).push(0.0, *rest)
            robot.gravity(rest[0])
            robot.mass_matrix(rest[0])
        if values[LINK]:
            external_wrench(robot, values[LINK], rest[0], found._replace(std=np.ones(robot.n)))

    def use(self, served: ServedRobot, values: Values, measured: EffortConvention) -> None:
        """Another model, or other parameters: what was observed is forgotten."""
        robot = served.differentiable
        assert isinstance(robot, Robot)
        doubts = Uncertainty(*(values[f"{PREFIX}{name}_uncertainty"] for name in ("mass", "friction", "effort")))
        self._payload.use(robot)
        self._last: tuple[np.ndarray, Any] | None = None
        self._robot, self._link, self._moment = robot, values[LINK], values[f"{PREFIX}wrench"] == "force_and_moment"
        self._observer = ExternalEffortObserver(robot, values[f"{PREFIX}gain"], values[f"{PREFIX}threshold"], doubts, measured)
        self._measured, self._age = MeasuredEffort(robot.joint_names), values["joint_age"]
        self._values = np.zeros((3, robot.n))
        self._header = Header(frame_id=values["frame_id"] or robot.root_link)
        self._sent = Sent(ExternalEffort(header=self._header, joint_names=list(robot.joint_names)), self._values)

    def close(self) -> None:
        self._payload.close()

    def forget(self) -> None:
        self._payload.forget()
        if self._observer is not None:
            self._observer.clear()
            self._measured.forget()

    def on_state(self, message: JointState, source: MotionSource, motion: Motion) -> None:
        """A joint state, and the motion that was made of it."""
        assert self._observer is not None
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            self._measured.read(message, source.state.stamp, self._age)
            effort = self._measured.at(source.stamp)
        except Rejected as refusal:
            self.stream.drop(refusal)
            return
        self.stream.accept(arrival, source.stamp)
        q, qd, qdd = motion[:3]
        before = self._observer.contact
        deviation = None if source.deviation is None else source.deviation[1]
        found = self._observer.push(source.stamp * 1e-9, q, qd, effort, qdd, deviation)
        self._values[:] = found
        self._last = np.array(q), found
        when = source.when
        if self._efforts.has_subscribers():
            self._efforts.send(self._sent.packed((when.sec, when.nanosec)))
        if self._link and self._wrenches.has_subscribers():
            self._tell_wrench(source)
        if (contact := self._observer.contact) is not before and contact is not None:
            told = Contact(active=contact.active, joint=contact.joint, effort=contact.effort, threshold=contact.threshold)
            told.header.stamp, told.header.frame_id = when, self._header.frame_id
            self._contacts.publish(told)
        self._payload.see(source.stamp, q, qd, qdd, self._observer.torque)

    def wrench(self) -> dict[str, np.ndarray]:
        """(6,) of the last sample, by the link that it is on; empty where it is not known."""
        if self._last is None or not self._link:
            return {}
        six = external_wrench(self._robot, self._link, *self._last, self._moment)
        self._singular = six is None
        return {} if six is None else {self._link: six}

    def _tell_wrench(self, source: MotionSource) -> None:
        six = self.wrench().get(self._link)
        if six is None:
            return
        told = WrenchStamped()
        told.header.stamp, told.header.frame_id = source.when, self._link
        f, n = told.wrench.force, told.wrench.torque
        f.x, f.y, f.z, n.x, n.y, n.z = map(float, six)
        self._wrenches.send(told)

    def warnings(self) -> list[str]:
        """What the user should know just now."""
        if self._singular:
            return [f"no external wrench on link '{self._link}': its Jacobian does not tell all components apart in this pose"]
        return []

    def findings(self) -> dict[str, object]:
        contact = self._observer.contact if self._observer else None
        return {} if contact is None else {"contact": "yes" if contact.active else "no", "contact.joint": contact.joint}
