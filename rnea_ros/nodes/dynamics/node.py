"""dynamics_node: joint states and desired motion in, exact joint torques and torque rates out.

docs/dynamics_node.md lists topics and services. Each result is stamped with the instant that it is for.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointMotion, ModelInfo
from rnea_ros import InputError, RneaError, Robot
from rnea_ros.errors import Rejected, count_noun
from rnea_ros.nodes.common.cdr import Decoder
from rnea_ros.nodes.common.diagnostics import NodeState, Stream, steady_timer
from rnea_ros.nodes.common.model_facts import joint_limits, limit_violations, model_info
from rnea_ros.nodes.common.pairing import InputPairing, PairedInput
from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE, with_wrenches
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import ManagedNode, apply_process_settings, freeze_garbage, return_free_memory
from rnea_ros.nodes.common.robot_description import ModelRequest, RobotDescriptionSource
from rnea_ros.nodes.common.topics import DYNAMICS_QUEUE, DYNAMICS_SENSOR, LATCHED, Jumped, Topics
from rnea_ros.nodes.dynamics.controller_outputs import EffortCommands, SpeedScaler
from rnea_ros.nodes.dynamics.external_effort import ExternalEfforts
from rnea_ros.nodes.dynamics.external_wrenches import ExternalWrenches, wrench_names
from rnea_ros.nodes.dynamics.health import Health, Watchdog
from rnea_ros.nodes.dynamics.joint_states import MessageInfo, Senders, with_info
from rnea_ros.nodes.dynamics.markers import MarkerData, MarkerPublisher
from rnea_ros.nodes.dynamics.messages import Deviations, DynamicsMessages, MessageStep, ResultPublishers
from rnea_ros.nodes.dynamics.motion_source import (
    FIELDS,
    REFERENCE_TOPICS,
    SECOND,
    MotionSource,
    check_reference_source,
    reference_topics,
    subscribe_references,
)
from rnea_ros.nodes.dynamics.served_robot import (
    LoadsOf,
    Motion,
    ServedRobot,
    check_friction,
    efforts,
    no_loads,
    served,
)
from rnea_ros.robots.results import Dynamics, TorqueDeviations
from rnea_ros.trajectory.drive_utilization import DriveUtilization

TICK = 0.1  # s; of the watchdog
SHOWN = ("commands", "frame_id", "reference.source", "publish_markers", "markers.size", "markers.rate",
         "publish_speed_scaling", "joint_age")
ARRANGED = ("joint_limits.", "effort_commands.", "speed_scaling.", "wrenches.", "external_effort.", "contact.")


class DynamicsNode(ManagedNode):
    """Node that reads messages into a motion, has the robot evaluate it, and publishes; the rest is bookkeeping."""

    def __init__(self) -> None:
        super().__init__("dynamics_node")
        self._wrench_names = wrench_names(self)
        self._settings = ParameterSet(self, with_wrenches(DYNAMICS_TABLE, self._wrench_names), self._on_parameters)
        check_reference_source(self._settings.values)
        apply_process_settings(self._settings.values)
        self.lean = self._settings.values["process.executor"] == "lean"
        self.autostart(self._settings.values["autostart"])

    def set_up(self) -> None:
        """Create topics and services, and begin to build the model."""
        self._robot: ServedRobot | None = None
        self._drives: DriveUtilization | None = None
        self._step: MessageStep | None = None
        self._state, names = NodeState.WAITING_MODEL, self._wrench_names
        self._motion_source, self._source_changes = "", 0
        self._logged_changes: set[tuple[str, str]] = set()
        self._commanded_described = ""
        self._health = Health(self.get_fully_qualified_name())
        self._results = ResultPublishers(self, DYNAMICS_QUEUE)
        self._decode_desired = Decoder(JointMotion, FIELDS)
        self._markers = MarkerPublisher(self, self._marker_data)
        self._info = self.create_publisher(ModelInfo, "~/model_info", LATCHED)
        self._scaler = SpeedScaler(self)
        self._pairing, self._answered_stamp = InputPairing(self, self._evaluate, self._lag), 0
        self._topics = Topics(self, DYNAMICS_QUEUE, DYNAMICS_SENSOR, self._on_moved, self._pairing.release)
        diagnostics = self.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self._watchdog = Watchdog(self, diagnostics, self._health, self._hints)
        # wrenches, desired motion first: of messages that wait together, these are taken before the state that needs them
        self._wrenches = ExternalWrenches(self, self._settings, names, DYNAMICS_SENSOR,
                                          self._pairing.release) if names else None
        self._health.streams += self._wrenches.streams if self._wrenches else []
        self._external = ExternalEfforts(self, DYNAMICS_QUEUE) if self._settings.values["publish_external_effort"] else None
        self._health.streams += [self._external.stream] if self._external else []
        self._commands = EffortCommands(self, DYNAMICS_QUEUE)
        self._streams = tuple(self._health.streams)
        self._desired = self.create_subscription(JointMotion, "~/desired_motion", self._on_desired, DYNAMICS_SENSOR, raw=True)
        subscribe_references(self, lambda read: self._take(self._health.reference, read))
        self._states = self.create_subscription(
            JointState, "joint_states", with_info(self._on_state), DYNAMICS_SENSOR, raw=True,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._states.served_last = True  # after topics that come with a model, too: the motion of a base
        self._deviations = Deviations()
        self._senders = Senders(self, self._states.topic_name)
        self._intake = RobotDescriptionSource(self, self._settings, self._use, self._refuse, self._serve)
        for part in (self._external, self._deviations, self._wrenches, self._intake):
            if part:
                self.at_cleanup.callback(part.close)
        self.on_clock_set_back(self._forget)
        steady_timer(self, TICK, self._tick)
        self.get_logger().info(f"joint states from {self._states.topic_name}, results on {self._results.topic_name}")

    def wait_for_model(self) -> str:
        """Wait until the model is built; return why there is none, or nothing."""
        return self._intake.wait()

    def on_activation(self, is_active: bool) -> None:
        """Forget the motion before: joint states were not read while the node was inactive."""
        self._health.is_active = is_active
        if is_active:
            self._forget()

    def has_ended(self) -> bool:
        """Return whether no arm is supported by effort commands."""
        return not self._commands.is_active

    # ------------------------------------------------------------------ input

    def _on_desired(self, data: bytes) -> None:
        self._take(self._health.desired, lambda source: source.desired.read(self._decode_desired(data)))

    def _take(self, stream: Stream, read: Callable[[MotionSource], int]) -> None:
        stream.received += 1
        try:
            stream.accept(time.monotonic_ns(), read(self._model()[1]))
        except Exception as error:  # the node survives every message, and reports the error
            self._refused(stream, error)
        self._pairing.release()

    def _on_state(self, data: bytes, info: MessageInfo) -> None:
        self._health.states.received += 1
        if self._robot is not None and self._robot.motion_topic:
            self._evaluate(data, info, time.monotonic_ns())  # which rejects it: nothing is waited for
        else:
            self._pairing.on_state(data, info)

    def _lag(self) -> int:
        """Return how long before a joint state the instant is for which it is evaluated [ns]."""
        return self._motion.lag(self._health.desired.age(time.monotonic_ns())) if self._robot is not None else 0

    def _evaluate(self, data: bytes, info: MessageInfo, began: int) -> None:
        """Evaluate a joint state that arrived at `began` [ns] and is due."""
        stream = self._health.states
        try:
            robot, source = (self._robot, self._motion) if self._robot is not None and self.is_active else self._model()
            if robot.motion_topic:
                raise Rejected("joint_states_unused", f"{robot.motion_topic} says how the robot moves", passing=True)
            stream.accept(began, source.read_bytes(data, self._senders.sender(info)))
            age = self._health.desired.age(began)
            if self._commands.is_wanted:
                self._commands.on_state(source.state)
            elif self._step is not None and self._answer_by_step(self._step, source, began, age):
                return
            motion = source.at_state(age)
            if source.lateness:
                self._health.desired.drop(source.lateness)
            result = robot.dynamics(motion, source.optional, self._loads(source.stamp), source.stamp)
            std = self._deviations(robot.differentiable, motion, source.deviation) if source.deviation is not None else None
            self._answer(robot, began, source.when, motion, result, std)
            if self._commands.is_wanted:
                self._commands.on_torque(source, motion, result)
            if self._external:
                self._external.on_state(source.state.message, source, motion)
            if self._scaler.active:
                alone = robot.robot.dynamics(*motion) if self._wrenches else result  # robot.loads stay
                self._scaler.publish(source.stamp, motion, result, alone)
        except Exception as error:
            self._refused(stream, error)

    def _on_moved(self, stream: Stream, began: int, stamp: int) -> None:
        """Evaluate a measured motion of the platform at a stamp [ns], or hold it until the other inputs have reached that."""
        self._pairing.evaluate_or_hold(stamp, began, partial(self._evaluate_moved, stream, began, stamp))

    def _evaluate_moved(self, stream: Stream, began: int, stamp: int) -> None:
        try:
            robot, _ = self._model()
            if not robot.motion_topic:
                raise Rejected("model_changed", "the robot has changed to one that joint states move", passing=True)
            motion, result = robot.dynamics_from_topic(stamp, self._loads(stamp))
            self._answer(robot, began, Time(sec=stamp // SECOND, nanosec=stamp % SECOND), motion, result)
        except Exception as error:
            self._refused(stream, error)

    def _loads(self, stamp: int) -> LoadsOf:
        return self._wrenches.loads(stamp) if self._wrenches else no_loads

    def _model(self) -> tuple[ServedRobot, MotionSource]:
        self.check_active()
        if self._robot is None:
            raise Rejected("no_model", "there is no model yet", passing=True)  # which the node's state says
        return self._robot, self._motion

    def _answer(self, robot: ServedRobot, began: int, when: Time, motion: Motion, result: Dynamics,
                std: TorqueDeviations | None = None) -> None:
        out = self._out
        self._answered_stamp = when.sec * SECOND + when.nanosec
        spread = 0.0 if robot.motion_topic else self._motion.state.spread
        out.input_age[:] = spread, *self._pairing.ages(self._answered_stamp)
        friction = self._friction(motion[1], motion[2]) if self._friction else (0.0, 0.0)
        source = robot.motion_topic or self._motion.name
        if source != self._motion_source:
            self._on_source_change(source)
        out.fill(when, motion[:4], result, std, friction, robot.motor_speed(motion), source)
        self._results.publish(out)
        self._health.done(began)
        robot.publish(when)

    def _answer_by_step(self, step: MessageStep, source: MotionSource, began: int, age: float) -> bool:
        """Do what follows in `_evaluate` by one call of machine code; return False if the motion or its numbers need more.

        age: of the desired motion [s]
        """
        wanted = source.desired_sample(age)
        if wanted is None:
            return False
        topics = self._results.subscribed()
        self._out.input_age[:] = source.state.spread, *self._pairing.ages(source.stamp)
        if not step.fill(topics, source.when, *wanted):
            return False
        self._answered_stamp = source.stamp
        if source.name != self._motion_source:
            self._on_source_change(source.name)
        self._results.publish_step(step, topics)
        self._health.done(began, are_peaks_raised=True)
        return True

    def _message_step(self, robot: ServedRobot) -> MessageStep | None:
        """Return the step for the present model and parameters; None if a sample needs more than its kernel."""
        is_more = self._wrenches or self._external or self._scaler.active
        kernel = None if is_more else robot.kernel()
        try:
            return None if kernel is None else MessageStep(kernel, self._motion.state.values, self._out, self._health.peaks)
        except (InputError, ImportError, OSError):  # drives, payloads, optional joints; llvmlite is missing, or does not load
            return None

    def _on_source_change(self, source: str) -> None:
        before, self._motion_source = self._motion_source, source
        self._source_changes += bool(before)
        change = (before, source)
        if change not in self._logged_changes:
            self._logged_changes.add(change)
            counted_only = f", before {before}; later changes of this kind are counted in /diagnostics only" if before else ""
            self.get_logger().info(f"motion source: {source}{counted_only}")

    def _refused(self, stream: Stream, error: Exception) -> None:
        if isinstance(error, Rejected):
            stream.drop(error)
            if isinstance(error, Jumped) and stream is self._health.states:
                self._senders.jumped()
        elif isinstance(error, RneaError):  # the library refuses the motion
            stream.drop(Rejected("motion_refused", str(error)))
        elif self.context.ok():  # a signal ends the context at any point of a callback; that is no failure
            stream.drop(Rejected("internal_error", repr(error)))
            self._health.fault = f"internal error, please report it: {error!r}"
            self.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)

    def _forget(self) -> None:
        self._pairing.clear()
        for part in (self._robot and self._motion, self._robot, self._wrenches, self._external):
            if part:
                part.forget()

    # ------------------------------------------------------------------ model and parameters

    def _serve(self, robot: Robot, request: ModelRequest) -> ServedRobot:
        """Prepare a robot, in the thread that builds models: all kernels are compiled here. Raises RneaError."""
        made = served(robot, self._settings.values)
        if self._wrenches:
            self._wrenches.check(made)
        made.prepare(self._wrenches.nothing if self._wrenches else no_loads)
        check_friction(made, efforts(made, self._settings.values))
        if self._external:
            self._external.prepare(made, self._settings.values)
        return made

    def _use(self, robot: ServedRobot) -> None:
        """Use a new model. The history of the joints is kept if the joints are the same."""
        before = self._robot
        if before is None or robot.joints_read != before.joints_read:
            # No velocity limits: robots exceed those of their URDFs, and every estimate would then be rejected as diverged.
            # Without them the guard takes the speed of the received positions.
            self._motion = MotionSource(robot.joint_names, self._settings.values, robot.joint_types,
                                        lambda: self.get_clock().now().nanoseconds, robot.optional, robot.order)
        elif before is not robot:
            robot.take_over(before)
        self._robot = robot
        self._configure()
        robot.connect(self._topics)
        if self._wrenches:
            self._wrenches.use(robot)
        self._health.set_model(robot)
        self._health.streams = [*self._streams, *robot.streams]
        self._health.findings = lambda: {
            "kind": robot.kind, **self._conventions, "motion_source": self._motion_source,
            "motion_source.changes": self._source_changes, **self._pairing.findings(self._answered_stamp),
            **robot.findings(), **self._motion.findings(), **self._out.deviations(),
            **self._commands.findings(), **(self._external.findings() if self._external else {})}
        self._arrange()
        freeze_garbage(self._settings.values)
        if before is None:
            return_free_memory()

    def _configure(self) -> None:
        if self._robot is not None:
            values = self._settings.values
            self._motion.configure(values)
            self._robot.configure(values)
            self._uses_desired = not self._robot.motion_topic and values["motion_source"] in ("desired", "auto")
            self._pairing.wait_s = values["input_wait"]

    def _inputs(self, robot: ServedRobot) -> list[PairedInput]:
        """Return the inputs of a robot beside its joint states."""
        def parameter(name: str) -> Any:
            return self._settings.values[name]

        def timeout() -> float:
            return float(parameter("desired_timeout"))

        inputs = [
            PairedInput("~/desired_motion", self._health.desired, timeout,
                        lambda: self._uses_desired),
            PairedInput(REFERENCE_TOPICS[parameter("reference.source")].name, self._health.reference, timeout,
                        lambda: parameter("motion_source") == "reference" and parameter("reference.source") != "trajectory")]
        return [*inputs, *robot.paired(), *(self._wrenches.paired() if self._wrenches else [])]

    def _refuse(self, reason: str) -> None:
        self._health.model_error = reason

    def _arrange(self) -> None:
        """Make everything that depends on both the model and the parameters."""
        self._step = None
        if self._robot is not None:
            values = self._settings.values
            self._limits = joint_limits(values, self._robot)
            commanded, measured = efforts(self._robot, values)
            self._drives = DriveUtilization(self._robot.model, self._robot.joint_names, self._robot.springs, self._drives)
            self._pairing.inputs = self._inputs(self._robot)
            names = ["joint_states", *(one.topic for one in self._pairing.inputs)]
            self._out = DynamicsMessages(self._robot, self._limits, values["frame_id"], commanded, self._drives, names)
            self._health.watch(self._out.watched)
            tree = self._robot.differentiable
            self._friction = tree.friction if tree is not None and commanded.needs_friction else None
            if self._external:
                self._external.use(self._robot, values, measured)
            self._markers.configure(values)
            self._scaler.configure(self._robot, self._limits, values, commanded)
            self._commands.use(self._robot, values, self._limits, commanded)
            self._step = self._message_step(self._robot)
            info = model_info(self._robot, self._limits, self.get_clock().now().to_msg(), commanded)
            self._robot.describe(info)
            self._conventions = {"joint_effort": "total", "commanded_effort": commanded.contains,
                                 "commanded_effort.quantity": commanded.quantity,
                                 "measured_effort": measured.contains, "measured_effort.quantity": measured.quantity}
            if (words := commanded.description) != self._commanded_described:
                self._commanded_described = words
                self.get_logger().info(f"~/joint_effort is the whole joint torque, ~/commanded_effort is {words}")
            info.warnings += self._wrenches.descriptions() if self._wrenches else []
            self._info.publish(info)

    def _on_parameters(self, changed: set[str]) -> None:
        check_reference_source(self._settings.values)
        if not self.is_configured:
            return
        if self._robot is not None:
            values = self._settings.values
            self._commands.check(self._robot, values, joint_limits(values, self._robot),
                                 efforts(self._robot, values).commanded)
        self._intake.changed(changed)
        self._configure()
        if any(name in SHOWN or name.startswith(ARRANGED) for name in changed):
            self._arrange()

    # ------------------------------------------------------------------ from time to time

    def _tick(self) -> None:
        values = self._settings.values
        self._health.preparing = self._intake.building
        self._state = self._watchdog.check(values["state_timeout"], values["diagnostics.period"])

    def _marker_data(self) -> MarkerData | None:
        """Return the data of the markers; None without results."""
        if self._robot is None or self._state is not NodeState.ACTIVE:
            return None
        loads = self._robot.loads
        wrenches = {**(loads.wrenches if loads else {}), **(self._external.wrench() if self._external else {})}
        return MarkerData(self._robot, self._out, wrenches)

    def _hints(self, state: NodeState) -> list[str]:
        if state is NodeState.WAITING_MODEL:
            return [f"set parameter robot_description, or publish it on {self._intake.topic_name} (reliable, transient_local)"]
        if state is NodeState.WAITING_STATE:
            needed = [(self._robot and self._robot.motion_topic) or "joint_states", *reference_topics(self._settings.values)]
            return [f"{topic} has {count_noun(self.count_publishers(topic), 'publisher')}"
                    for topic in map(self.resolve_topic_name, needed)]
        senders = self._senders.warnings(self._motion.state) if self._robot is not None else []
        if state is NodeState.ACTIVE and self._robot is not None:
            shown = self._out.dynamics
            motion = (shown.position, shown.velocity, shown.acceleration, shown.jerk)
            late = [] if self._robot.motion_topic else self._motion.warnings(self._health.desired.age(time.monotonic_ns()))
            late += self._robot.warnings_now()
            late += self._wrenches.warnings() if self._wrenches else []
            late += self._commands.warnings()
            late += self._external.warnings() if self._external else []
            return senders + late + limit_violations(self._limits, self._robot.joint_names, motion) + self._scaler.warnings()
        return senders
