"""External efforts of the robot: measured efforts in; ~/external_effort, ~/external_wrench and ~/contact out.

~/learn_contact_thresholds learns the thresholds of contacts from free motion; ~/estimate_payload estimates what a link carries
from the same motions and efforts.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import Header
from std_srvs.srv import SetBool

from rnea_msgs.msg import Contact, ExternalEffort
from rnea_msgs.srv import EstimatePayload
from rnea_ros import InputError, RneaError, Robot
from rnea_ros.errors import Rejected, some
from rnea_ros.estimation.external_effort import (
    ContactLearner,
    EffortUncertainty,
    ExternalEffortObserver,
    LearnedContact,
    contact_section,
    external_wrench,
)
from rnea_ros.model.drives import EffortConvention
from rnea_ros.model.tree import ContactCalibration
from rnea_ros.nodes.common.base import to_wrench
from rnea_ros.nodes.common.cdr import RawPublisher
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.process import Worker
from rnea_ros.nodes.common.topics import UNKNOWN_STAMP
from rnea_ros.nodes.dynamics.joint_states import JointMap, not_finite
from rnea_ros.nodes.dynamics.messages import Sent
from rnea_ros.nodes.dynamics.motion_source import MotionSource
from rnea_ros.nodes.dynamics.served_robot import Motion, ServedRobot

MAX_EFFORTS = 1024  # kept by stamp: half a second, the longest lag of an estimator, at 2 kHz


class MeasuredEffort:
    """Measured efforts of all joints in the robot's order, merged from joint states and kept by stamp.

    An estimated motion is for an earlier instant than the last joint state; so are the efforts used with it.
    """

    def __init__(self, joint_names: Sequence[str]):
        self._map, n = JointMap(joint_names), len(joint_names)
        self._values, self._stamps = np.zeros(n), np.full(n, UNKNOWN_STAMP)
        self.forget()

    def forget(self) -> None:
        """Discard all efforts: the clock was set, or the input was silent."""
        self._stamps.fill(UNKNOWN_STAMP)
        self._kept: deque[tuple[int, np.ndarray]] = deque(maxlen=MAX_EFFORTS)

    def read(self, message: JointState, stamp: int, age: float) -> None:
        """Read a joint state with a stamp [ns]; efforts of other joints must not be older than `age` [s]. Raises Rejected."""
        names = self._map.joint_names
        layout = self._map.locate(message.name)
        if not message.effort:
            raise Rejected("effort_missing", f"the joint state of {some(message.name)} has no efforts")
        given = np.empty(len(layout.joints))
        if not layout.read(message.effort, "effort", given):
            raise Rejected("effort_not_finite", not_finite([names[k] for k in layout.joints], given))
        self._values[layout.columns], self._stamps[layout.columns] = given, stamp
        late = self._stamps < stamp - round(age * 1e9)
        if late.any():
            unknown = [name for name, old in zip(names, late) if old]
            raise Rejected("effort_missing", f"no effort of {some(unknown)} for {age:g} s")
        if self._kept and stamp <= self._kept[-1][0]:
            self._kept.clear()
        self._kept.append((stamp, self._values.copy()))

    def at(self, stamp: int) -> np.ndarray:
        """Return the efforts (n,) at a stamp [ns], interpolated between two joint states. Raises Rejected."""
        if self._kept and stamp >= self._kept[-1][0]:
            return self._kept[-1][1]
        k = bisect_right(self._kept, stamp, key=lambda entry: entry[0])
        if not 0 < k < len(self._kept):
            raise Rejected("effort_missing", "no effort is known at the instant that the motion is for", passing=True)
        (before, a), (after, b) = self._kept[k - 1], self._kept[k]
        return a + (b - a) * ((stamp - before) / (after - before))


PAYLOAD_PERIOD_NS, PAYLOAD_SAMPLES = 20_000_000, 3000  # samples for payloads: shortest period, number (one minute)
CHECK_PERIOD_NS = 2_000_000_000  # between two checks of the declared payload


class PayloadService:
    """~/estimate_payload, and checks of the declared payload, from motions and measured efforts of the last minute.

    finding    : what the checks of the declared payload find; None if nothing contradicts it
    detectable : smallest wrong mass that they could find [kg], NaN while unknown
    """

    def __init__(self, node: Node):
        self._node, self._worker = node, Worker(node, "payload")
        self._robot: Robot | None = None
        self._samples: deque[tuple[int, np.ndarray]] = deque(maxlen=PAYLOAD_SAMPLES)
        self._estimators: dict[str, Any] = {}  # of the present robot by link, of identification/payload.py
        self._tares: dict[str, Any] = {}
        self._monitor: Any = None  # of identification/payload.py, of the worker's thread
        self._checked: tuple[Any, ...] = ()  # robot, link and mass uncertainty of the checks; empty: none are wanted
        self._checked_at, self._is_checking = 0, False
        self.finding: Any = None  # WrongPayload
        self.detectable = float("nan")
        node.create_service(EstimatePayload, "~/estimate_payload", self._serve, callback_group=ReentrantCallbackGroup())

    def use(self, robot: Robot, values: Values) -> None:
        """Use a model and parameters. Samples stay valid with another payload, not with other links or joints."""
        if self._robot is None or robot.model is not self._robot.model:
            self._tares = {}
            self.forget()
        self._robot, self._estimators = robot, {}
        link = values["payload.link"] or values[LINK]
        is_wanted = values[f"{PREFIX}check_payload"]
        self._checked = (robot, link, values[f"{PREFIX}mass_uncertainty"]) if is_wanted else ()
        self.finding, self.detectable = None, float("nan")

    def forget(self) -> None:
        """Discard all samples: the clock was set."""
        self._samples.clear()

    def push(self, stamp: int, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: np.ndarray) -> None:
        """Add a motion and its torques at a stamp [ns]."""
        if not self._samples or stamp - self._samples[-1][0] >= PAYLOAD_PERIOD_NS:
            self._samples.append((stamp, np.array((q, qd, qdd, tau))))
            if self._checked and not self._is_checking and abs(stamp - self._checked_at) >= CHECK_PERIOD_NS:
                self._is_checking, self._checked_at = True, stamp
                self._worker.start(self._check, *self._checked, self._tares, list(self._samples))

    def _check(self, robot: Robot, link: str, masses: float, tares: dict[str, Any],
               samples: list[tuple[int, np.ndarray]]) -> None:
        """Check the declared payload, in the worker's thread."""
        from rnea_ros.identification.payload import PayloadMonitor, PayloadMonitorOptions, tool_link

        try:
            link = link or tool_link(robot)
            monitor, options = self._monitor, PayloadMonitorOptions(masses=masses)
            if monitor is None or monitor.robot.model is not robot.model or (monitor.link, monitor.options) != (link, options):
                monitor = self._monitor = PayloadMonitor(robot, link, options)
            elif monitor.robot is not robot:
                monitor.use(robot)
            if link in tares:
                monitor.set_tare(tares[link])
            spacing = (samples[-1][0] - samples[0][0]) * 1e-9 / max(len(samples) - 1, 1)
            finding = monitor.check(np.array([sample for _, sample in samples]), spacing)
            if self._checked and self._checked[0] is robot:  # else the answer is late
                self.finding, self.detectable = finding, monitor.detectable
        finally:
            self._is_checking = False

    def close(self) -> None:
        self._worker.close()

    async def _serve(self, request: EstimatePayload.Request, response: EstimatePayload.Response) -> EstimatePayload.Response:
        try:
            robot = self._robot
            if robot is None:
                raise InputError("there is no model yet")
            since = self._samples[-1][0] - round(request.window * 1e9) if self._samples and request.window > 0.0 else 0
            samples = [sample for stamp, sample in self._samples if stamp >= since]
            await self._worker.run(self._estimate, robot, self._estimators, self._tares, request, samples, response)
            if request.apply and (self._robot is None or self._robot.model is not robot.model):
                raise InputError("another robot description came meanwhile; the payload is not applied: move, and call again")
            if response.success and request.apply and not request.tare:
                self._apply(request.link, response)
        except RneaError as error:
            response.success, response.message = False, str(error)
        return response

    @staticmethod
    def _estimate(robot: Robot, estimators: dict[str, Any], tares: dict[str, Any], request: EstimatePayload.Request,
                  samples: list[np.ndarray], response: EstimatePayload.Response) -> None:
        """Answer a request, in the worker's thread; estimators, tares: of this robot. Raises RneaError."""
        from rnea_ros.identification.payload import PayloadEstimator

        link = request.link
        if link not in estimators:
            estimators[link] = PayloadEstimator(robot, link)
        estimator = estimators[link]
        raw = estimator.raw(*np.array(samples).reshape(len(samples), 4, robot.n).transpose(1, 0, 2))
        response.samples = raw.samples
        if request.tare:
            tares[link] = raw
            response.success, response.message = True, f"tare of link '{link}' from {raw.samples} samples"
            return
        found = estimator.estimate(raw, tares.get(link))
        response.mass, response.mass_std = found.mass, float(found.std[0])
        response.com, response.com_std = found.com, found.std[1:4]
        response.inertia, response.inertia_std = found.values[4:], found.std[4:]
        response.unknown = list(found.unknown)
        tared = "with" if link in tares else "without"
        response.success = True
        response.message = f"{found.mass:.4g} kg within {found.std[0]:.2g} on link '{link}', {tared} a tare"

    def _apply(self, link: str, found: EstimatePayload.Response) -> None:
        """Set the payload as parameters of the node."""
        values = {"link": link, "mass": found.mass, "com": found.com.tolist(), "inertia": found.inertia.tolist()}
        done = self._node.set_parameters_atomically([Parameter(f"payload.{name}", value=value)
                                                     for name, value in values.items()])
        found.success = done.successful
        found.message += "; payload.* set" if done.successful else f"; payload.* not set: {done.reason}"


PREFIX = "external_effort."
LINK = f"{PREFIX}link"
CALIBRATION_FIELDS = tuple(f.name for f in fields(ContactCalibration))


class ExternalEfforts:
    """External efforts and contacts of the node's robot, a tree on a fixed base.

    A joint state whose efforts cannot be used is counted; its motion is used all the same.
    """

    def __init__(self, node: Node, queue: int):
        self.stream = Stream("effort")
        self._node, self._worker = node, Worker(node, "contact_thresholds")
        self._efforts = RawPublisher(node.create_publisher(ExternalEffort, "~/external_effort", queue))
        self._wrenches = RawPublisher(node.create_publisher(WrenchStamped, "~/external_wrench", queue))
        self._contacts = node.create_publisher(Contact, "~/contact", queue)
        self._payload = PayloadService(node)
        self._observer: ExternalEffortObserver | None = None
        self._learner: ContactLearner | None = None
        self._learnt = ""  # thresholds, as a section of the robot file
        self._unknown_friction: tuple[str, ...] = ()
        self._singular = False
        node.create_service(SetBool, "~/learn_contact_thresholds", self._on_learn, callback_group=ReentrantCallbackGroup())

    @staticmethod
    def prepare(served: ServedRobot, values: Values) -> None:
        """Compile the kernels of a robot. Raises RneaError."""
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
        """Use another model or other parameters; earlier samples are discarded."""
        robot = served.differentiable
        assert robot is not None
        uncertainty = EffortUncertainty(*(values[f"{PREFIX}{name}_uncertainty"] for name in ("mass", "friction", "effort")))
        if self._learner is not None:
            self._learner = None
            self._node.get_logger().warning("learning of contact thresholds is cancelled: model or parameters changed; "
                                            "start it again with ~/learn_contact_thresholds")
        self._payload.use(robot, values)
        self._last: tuple[np.ndarray, Any] | None = None
        self._robot, self._link, self._moment = robot, values[LINK], values[f"{PREFIX}wrench"] == "force_and_moment"
        learnt = {name: ContactCalibration(*(values[f"contact.{name}.{part}"] for part in CALIBRATION_FIELDS))
                  for name in robot.joint_names}
        self._observer = ExternalEffortObserver(robot, values[f"{PREFIX}gain"], values[f"{PREFIX}threshold"], uncertainty,
                                                measured, learnt)
        self._measured, self._age = MeasuredEffort(robot.joint_names), values["joint_age"]
        self._values = np.zeros((3, robot.n))
        self._header = Header(frame_id=values["frame_id"] or robot.root_link)
        self._sent = Sent(ExternalEffort(header=self._header, joint_names=list(robot.joint_names)), self._values)
        before, self._unknown_friction = self._unknown_friction, self._observer.without_friction
        if self._unknown_friction and self._unknown_friction != before:
            self._node.get_logger().warning(self._friction_warning())

    def close(self) -> None:
        self._payload.close()
        self._worker.close()

    def forget(self) -> None:
        self._payload.forget()
        if self._observer is not None:
            self._observer.clear()
            self._measured.forget()

    def on_state(self, message: JointState, source: MotionSource, motion: Motion) -> None:
        """Process a joint state and the motion that was made of it."""
        observer = self._observer
        assert observer is not None
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
        deviation = None if source.deviation is None else source.deviation[1]
        found = observer.push(source.stamp * 1e-9, q, qd, effort, qdd, deviation)
        if self._learner is not None:
            self._learner.push(source.stamp * 1e-9, found.effort, qd)
        self._values[:] = found
        self._last = np.array(q), found
        when = source.when
        if self._efforts.has_subscribers():
            self._efforts.send(self._sent.packed((when.sec, when.nanosec)))
        if self._link and self._wrenches.has_subscribers():
            self._send_wrench(source)
        for event in observer.events:
            contact = Contact(active=event.active, joint=event.joint, effort=event.effort, threshold=event.threshold)
            contact.header.stamp, contact.header.frame_id = when, self._header.frame_id
            self._contacts.publish(contact)
        self._payload.push(source.stamp, q, qd, qdd, observer.torque)

    def wrench(self) -> dict[str, np.ndarray]:
        """Return the wrench (6,) of the last sample by the link that it is on; empty where it is not known."""
        if self._last is None or not self._link:
            return {}
        six = external_wrench(self._robot, self._link, *self._last, self._moment)
        self._singular = six is None
        return {} if six is None else {self._link: six}

    def _send_wrench(self, source: MotionSource) -> None:
        six = self.wrench().get(self._link)
        if six is None:
            return
        self._wrenches.send(WrenchStamped(header=Header(stamp=source.when, frame_id=self._link), wrench=to_wrench(six)))

    # ------------------------------------------------------------------ thresholds learnt from free motion

    async def _on_learn(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        """Start learning (data: true), or end it and use the thresholds."""
        try:
            if self._observer is None:
                raise InputError("there is no model yet")
            if request.data:
                self._learner = ContactLearner(self._observer)
                response.message = ("learning: move the robot as it usually moves, every joint both ways, without any "
                                    "contact, for a minute; then call again with data: false")
            else:
                learner, self._learner = self._learner, None
                if learner is not None:
                    self._learnt = ""
                    self._learnt = self._apply(await self._worker.run(learner.result))
                elif not self._learnt:
                    raise InputError("nothing was learnt: call with data: true first")
                response.message = self._learnt  # the same again for a client that asks twice
            response.success = True
        except RneaError as error:
            response.success, response.message = False, str(error)
        return response

    def _apply(self, learnt: LearnedContact) -> str:
        """Set the node's parameters contact.*; return what was learnt, as a section of the robot file."""
        values = {f"contact.{name}.{part}": getattr(one, part)
                  for name, one in learnt.calibration.items() for part in CALIBRATION_FIELDS}
        done = self._node.set_parameters_atomically([Parameter(name, value=float(value)) for name, value in values.items()])
        if not done.successful:
            raise InputError(f"parameters contact.* not set: {done.reason}")
        text = "".join(f"# {line}\n" for line in (f"learnt from {learnt.seconds:.0f} s of free motion", *learnt.warnings))
        self._node.get_logger().info("contact thresholds learnt; to keep them, add this to the robot file:\n"
                                     f"{text}{contact_section(learnt).text()}")
        return f"{text}{contact_section(learnt).text()}"

    # ------------------------------------------------------------------ what the user should know

    def _friction_warning(self) -> str:
        return (f"no friction of {some(self._unknown_friction)} is known, so contacts there are not reliable: declare it in "
                "the robot file (friction), or call ~/learn_contact_thresholds during free motion")

    def warnings(self) -> list[str]:
        """Return what the user should know now, one sentence each."""
        found = [self._friction_warning()] if self._unknown_friction else []
        if self._learner is not None:
            found.append(f"learning contact thresholds: {self._learner.seconds:.0f} s of free motion so far")
        if self._payload.finding is not None:
            found.append(str(self._payload.finding))
        if self._singular:
            found.append(f"no external wrench on link '{self._link}': its Jacobian does not determine all components in "
                         "this pose")
        return found

    def findings(self) -> dict[str, object]:
        if self._observer is None:
            return {}
        joints = [name for name, active in zip(self._robot.joint_names, self._observer.in_contact) if active]
        found: dict[str, object] = {"contact": "yes" if joints else "no", "contact.joints": " ".join(joints),
                                    "payload.detectable_kg": f"{self._payload.detectable:.2f}"}
        if (wrong := self._payload.finding) is not None:
            found |= {"payload.link": wrong.link, "payload.excess_kg": f"{wrong.excess:.3f}",
                      "payload.excess_std_kg": f"{wrong.std:.3f}"}
        return found
