"""Controller that executes the references: its clients, checks before the first motion, and monitoring during each.

A controller that cannot execute what it will be sent is refused, with what to set. Its reported reference must be what it was
sent: otherwise it has rejected a message, or another sender commands it, and the motion is given up. Meanwhile it gets no
change of the motion, which would make it jump back. No client waits for an answer; `on_future_done` reports each answer or
why there is none.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.errors import InputError, Rejected, in_words
from rnea_ros.execution.controller import PARAMETERS, Finding, check_controller
from rnea_ros.execution.executed_motion import ExecutedMotion, PublishedTrajectory, Sample
from rnea_ros.execution.executor import TrajectoryExecutor, TrajectoryFollower
from rnea_ros.execution.goal import NO_TOLERANCE, TOLERANCE_FIELDS, Outcome
from rnea_ros.execution.joint_states import JointStateBuffer
from rnea_ros.execution.tracking_monitor import SentReferenceMonitor, SentTrajectoryMonitor
from rnea_ros.nodes.common.cdr import Reader
from rnea_ros.nodes.common.diagnostics import on_future_done
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.common.topics import LATEST_STATE, duration, nanoseconds
from rnea_ros.nodes.scaling.diagnostics import ScalingDiagnostics

try:
    from controller_manager_msgs.srv import ListControllers
except ImportError:
    ListControllers = None

try:
    from control_msgs.action import FollowJointTrajectory
    from control_msgs.msg import JointTolerance, JointTrajectoryControllerState
except ImportError:
    FollowJointTrajectory = JointTolerance = JointTrajectoryControllerState = None

SUCCEEDED, CANCELED = 4, 5  # of action_msgs/GoalStatus
CANCEL_ACCEPTED, ALREADY_ENDED = 0, 3  # return codes of action_msgs/CancelGoal
REASONS = {-4: "path_tolerance", -5: "goal_tolerance"}  # by error_code; all others are specific to the controller
SUSPENDED_S = 1.0  # interval between two calls of is_overdue from which this process was suspended
RETRY_S = 2.0  # interval after which a request is repeated: an answer may be lost
CONTROLLER_TYPE = "joint_trajectory_controller/JointTrajectoryController"


class GoalClient(ActionClient):
    """Action client whose goals may be sent by any thread.

    The executor processes no answer before the callback of its goal is set.
    """

    def __init__(self, *args: Any, **options: Any):
        self._sending = threading.Lock()
        super().__init__(*args, **options)

    def send(self, goal: Any, on_feedback: Callable[[Any], None], on_sent: Callable[[Any], None]) -> None:
        """Send a goal, and call on_sent with its future."""
        with self._sending:
            on_sent(self.send_goal_async(goal, feedback_callback=on_feedback))

    async def execute(self, taken_data: Any) -> None:
        with self._sending:
            pass
        await super().execute(taken_data)


class ControllerGoals:
    """Goals of a controller's action. Each replaces the one before; only the newest one is reported.

    outcome    : outcome of the newest goal, where it has succeeded
    feedback   : last feedback of the newest goal
    on_failure : called by the executor with (reason, message) where the newest goal was rejected, aborted, or cancelled by
                 another client, or where a request failed
    client     : class of the action client
    post       : function that has the executor call a function
    """

    def __init__(self, node: Node, kind: Any, name: str, on_failure: Callable[[str, str], None], client: Any = GoalClient,
                 post: Callable[[Callable[[], None]], Any] | None = None):
        self._client, self._on_failure = client(node, kind, f"{name}/follow_joint_trajectory"), on_failure
        self._post = post or (lambda act: node.executor.create_task(act))
        self._newest, self._cancel_up_to = 0, 0  # goals are numbered; up to the second one they are to be cancelled
        self._accepted: Any = None  # handle of the newest accepted goal
        self._requested_at = self._checked_at = math.inf  # of the request without answer, and of the last is_overdue [s]
        self.outcome: Outcome | None = None
        self.feedback: Any = None

    @property
    def is_ready(self) -> bool:
        """True if the action server exists."""
        return bool(self._client.server_is_ready())

    def is_overdue(self, timeout: float) -> bool:
        """Return, once, whether the last request has had no answer for a timeout [s].

        Call this often: an answer that arrived while this process was suspended still has to be processed.
        """
        now, before = time.monotonic(), self._checked_at
        self._checked_at = now
        if now - before > SUSPENDED_S and self._requested_at < now:
            self._requested_at = now
        overdue = now - self._requested_at > timeout
        if overdue:
            self._requested_at = math.inf
        return overdue

    def destroy(self) -> None:
        self._client.destroy()

    def send(self, goal: Any, on_accepted: Callable[[], None]) -> None:
        """Send a goal at once, from any thread; on_accepted is called by the executor."""
        self._newest += 1
        self.outcome = self.feedback = None
        self._requested_at, number = time.monotonic(), self._newest
        try:
            self._client.send(goal, partial(self._on_feedback, number), lambda sent: on_future_done(
                sent, partial(self._on_answer, number, on_accepted), self._on_request_failed))
        except Exception as error:
            self._post(partial(self._on_request_failed, in_words(error)))

    def cancel(self) -> None:
        """Cancel all goals that were sent, from any thread: the controller holds the robot where it is."""
        self._cancel_up_to = self._newest
        self._newest += 1
        self._post(self._cancel_accepted)

    # ------------------------------------------------------------------ called by the executor

    def _on_request_failed(self, why: str) -> None:
        self._requested_at = math.inf
        self._on_failure("internal_error", why)

    def _cancel_accepted(self) -> None:
        accepted, self._accepted = self._accepted, None
        if accepted is None:
            return
        self._requested_at = time.monotonic()
        try:
            on_future_done(accepted.cancel_goal_async(), self._on_cancelled, self._on_request_failed)
        except Exception as error:
            self._on_request_failed(in_words(error))

    def _on_cancelled(self, answer: Any) -> None:
        self._requested_at = math.inf
        if answer.return_code not in (CANCEL_ACCEPTED, ALREADY_ENDED):
            self._on_failure("controller_refused", "it does not cancel its goal, and may go on to the end of it: return code "
                             f"{answer.return_code}")

    def _on_feedback(self, number: int, message: Any) -> None:
        if number == self._newest:
            self.feedback = message.feedback

    def _on_answer(self, number: int, on_accepted: Callable[[], None], handle: Any) -> None:
        if number == self._newest:
            self._requested_at = math.inf
        if handle.accepted:
            self._accepted = handle
            on_future_done(handle.get_result_async(), partial(self._on_result, number), self._on_request_failed)
            if number <= self._cancel_up_to:
                self._cancel_accepted()
            on_accepted()
        elif number == self._newest:
            self._on_failure("controller_refused", "it rejected the goal: see its log for the reason")

    def _on_result(self, number: int, answer: Any) -> None:
        if number != self._newest:
            return
        status, result = answer.status, answer.result
        if status == SUCCEEDED:
            self.outcome = Outcome("", result.error_string)
            return
        reason = "controller_canceled" if status == CANCELED else "controller_aborted"
        self._on_failure(REASONS.get(result.error_code, reason), result.error_string or reason.replace("_", " "))


class RemoteParameters:
    """Parameters of another node. Only those that it has are requested: one that it has not spoils the whole answer.

    values  : parameters by name; None until they arrive, and again when the node has gone or its answer failed
    problem : why they have not arrived, where known
    """

    def __init__(self, node: Node, name: str, is_wanted: Callable[[str], bool]):
        self._node, self._is_wanted = node, is_wanted
        self._clients: list[Any] = [node.create_client(kind, f"{name}/{service}") for kind, service in
                                    ((ListParameters, "list_parameters"), (GetParameters, "get_parameters"))]
        self.values: dict[str, Any] | None = None
        self.problem = ""
        self._requested_at = 0.0
        self._pending: tuple[Any, Any] | None = None  # client and future of the last request

    def update(self, again: bool = False) -> None:
        """Request the parameters if they are unknown, or `again`; call this repeatedly from the executor."""
        if not all(client.service_is_ready() for client in self._clients):
            self.values, self._requested_at = None, 0.0
        elif (again or self.values is None) and time.monotonic() - self._requested_at > RETRY_S:
            if self._pending is not None:
                client, future = self._pending
                client.remove_pending_request(future)
            self._requested_at = time.monotonic()
            self._request(0, ListParameters.Request(), lambda answer: self._get(answer.result.names))

    def destroy(self) -> None:
        for client in self._clients:
            self._node.destroy_client(client)

    def _request(self, which: int, request: Any, on_answer: Callable[[Any], None]) -> None:
        future = self._clients[which].call_async(request)
        self._pending = self._clients[which], future
        on_future_done(future, on_answer, self._on_failure)

    def _get(self, names: list[str]) -> None:
        found = [name for name in names if self._is_wanted(name)]
        self._request(1, GetParameters.Request(names=found), lambda answer: self._set(found, answer.values))

    def _set(self, names: list[str], values: list[Any]) -> None:
        if len(values) != len(names):
            raise ValueError(f"{len(values)} values of {len(names)} parameters")
        found = {name: parameter_value_to_python(value) for name, value in zip(names, values)}
        self.values = {name: value for name, value in found.items() if value is not None}
        self.problem, self._pending = "", None

    def _on_failure(self, why: str) -> None:
        self.values, self.problem, self._pending = None, why, None


class ControllerManagerClient:
    """Client of list_controllers of the controller manager in the controller's namespace, where its messages are installed."""

    def __init__(self, node: Node, name: str, kind: Any = ListControllers):
        """kind: type of the service; None where it is not installed."""
        namespace, slash, self._name = name.rpartition("/")
        self._kind, self._node = kind, node
        self._service = f"{namespace}{slash}controller_manager/list_controllers"
        self._client = kind and node.create_client(kind, self._service)
        self._requested_at = 0.0
        self._pending: Any = None  # future of the request without answer
        self._findings: list[Finding] = []

    def destroy(self) -> None:
        if self._client:
            self._node.destroy_client(self._client)

    def update(self) -> None:
        """Request the state of the controller; call this repeatedly from the executor."""
        if not self._client or time.monotonic() - self._requested_at < RETRY_S:
            return
        self._requested_at, pending = time.monotonic(), self._pending
        if pending is not None:
            self._client.remove_pending_request(pending)
            self._on_failure("no answer")
        if self._client.service_is_ready():
            self._pending = self._client.call_async(self._kind.Request())
            on_future_done(self._pending, self._on_answer, self._on_failure)
        else:
            self._findings = []

    def findings(self) -> list[Finding]:
        """Return the problems by the last answer; where it failed, that the state is unknown."""
        return self._findings

    def _on_answer(self, answer: Any) -> None:
        self._pending = None
        self._findings = [finding for one in answer.controller if one.name == self._name for finding in _check_state(one)]

    def _on_failure(self, why: str) -> None:
        self._pending = None
        self._findings = [Finding(False, f"whether it is active is unknown, {self._service}: {why}")]


def _check_state(controller: Any) -> list[Finding]:
    found = []
    if controller.state != "active":
        found.append(Finding(True, f"it is {controller.state}: ros2 control set_controller_state {controller.name} active"))
    if controller.type != CONTROLLER_TYPE:
        found.append(Finding(False, f"its type is {controller.type}, and may execute trajectories differently from a "
                             f"{CONTROLLER_TYPE}"))
    return found


@dataclass(frozen=True)
class ControllerOptions:
    """Options of the monitoring of a controller.

    motion_period_s  : time between two of its states that are read during a motion [s]
    rest_period_s    : time between two of its states that are read otherwise [s]
    state_timeout_ns : time for which a change waits for a new state [ns]
    off_timeout_ns   : time for which a change waits for the controller to be on its trajectory [ns]; if it never is, the
                       motion is given up by then
    """

    motion_period_s: float = 0.004
    rest_period_s: float = 0.1
    state_timeout_ns: int = 50_000_000
    off_timeout_ns: int = 1_000_000_000


OPTIONS = ControllerOptions()


# ------------------------------------------------------------------------------------------------------ controller state


class ControllerState(NamedTuple):
    """State of a joint_trajectory_controller at a stamp [ns], in the order of joint_names.

    Position, velocity and effort are those of the robot, empty where not reported; where it reports no measured effort, effort
    is what it commands.

    factor : share of the speed at which it plays a trajectory
    """

    stamp: int
    joint_names: Sequence[str]
    reference: Sequence[float]
    position: Sequence[float]
    velocity: Sequence[float]
    effort: Sequence[float]
    factor: float


def controller_state_reader() -> Callable[[bytes], ControllerState]:
    """Return a function that reads a serialized ~/controller_state; it raises Rejected."""
    read = Reader(JointTrajectoryControllerState)
    return lambda data: controller_state_from_message(read(data))


def controller_state_from_message(message: Any) -> ControllerState:
    """Convert a message of any version of control_msgs: `reference` and `feedback` were `desired` and `actual`."""
    reference = message.reference if hasattr(message, "reference") else message.desired
    measured = message.feedback if hasattr(message, "feedback") else message.actual
    position, error = measured.positions, message.error.positions
    if len(position) == 0 and len(error) == len(reference.positions):
        position = [wanted - off for wanted, off in zip(reference.positions, error)]
    effort = measured.effort
    if len(effort) == 0 and hasattr(message, "output"):
        effort = message.output.effort
    return ControllerState(nanoseconds(message.header.stamp), message.joint_names, reference.positions, position,
                           measured.velocities, effort, getattr(message, "speed_scaling_factor", 1.0))


# ------------------------------------------------------------------------------------------------------------ controllers


class Controller(TrajectoryFollower):
    """Interface to the controller, as scaling_node uses it. The default does nothing.

    topic      : topic of references
    is_settled : whether the controller is found and checked, or its timeout is over
    states     : reported joint states by which the robot is monitored; None: those of joint_states
    """

    topic = "~/reference"
    is_settled = True
    states: JointStateBuffer | None = None

    def check(self) -> None:
        """Raise Rejected where it cannot execute a trajectory."""

    def update(self) -> None:
        """Check requests and reports; called ten times a second by the executor."""

    def on_sample(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        """Record a reference sent at time now [ns]; called by the thread that ticks."""

    def send_trajectory(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        """Send, or record, a trajectory that is also published on the topic; called by the thread that ticks."""

    def clear(self) -> None:
        """Forget all states: the clock was set back."""

    def diagnostics(self) -> dict[str, object]:
        """Return values for /diagnostics."""
        return {}

    def destroy(self) -> None:
        """Destroy its clients."""


class NoController(Controller):
    """Open loop: references are published on ~/reference for any subscriber."""


class NamedController(Controller):
    """Joint trajectory controller whose parameters are checked and whose state is monitored.

    joint_names : returns the joints of the robot
    measured    : joint names -> positions (n,), NaN where not measured
    """

    def __init__(self, node: Node, settings: ParameterSet, executor: TrajectoryExecutor, health: ScalingDiagnostics,
                 joint_names: Callable[[], Sequence[str]], measured: Callable[[tuple[str, ...]], np.ndarray]):
        self._node, self._settings, self._executor, self._health = node, settings, executor, health
        self._joint_names, self._measured = joint_names, measured
        self.name = name = settings.values["controller.name"]
        self._parameters, self._manager = RemoteParameters(node, name, _is_checked), ControllerManagerClient(node, name)
        self._reference_monitor, self._motion = SentReferenceMonitor(), executor.motion
        self._factor = 1.0  # speed scaling factor of the last state that was judged
        self._reported: set[str] = set()  # findings that were reported
        self._created_at = time.monotonic()
        self._state_at, self._motion_since = -math.inf, math.inf  # arrival of the last state, begin of the motion [s]
        self._state: ControllerState | None = None  # newest state that was read
        self._read_at, self._judged = -math.inf, 0  # time at which it was read [s]; stamp of the last one judged [ns]
        self._trajectory_monitor: tuple[ExecutedMotion, SentTrajectoryMonitor] | None = None
        self._is_off_trajectory, self._late_changes = False, 0
        if settings.values["watch.source"] == "controller_state":
            self.states = JointStateBuffer()
        if JointTrajectoryControllerState is None:
            node.get_logger().info(f"{name} is not monitored: its controller_state needs control_msgs, which is not installed")
        else:
            self._read = controller_state_reader()
            node.create_subscription(JointTrajectoryControllerState, f"{name}/controller_state", self._on_state, LATEST_STATE,
                                     raw=True)

    def destroy(self) -> None:
        self._parameters.destroy()
        self._manager.destroy()

    # ------------------------------------------------------------------ before a motion

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """True if the controller is found and checked, or its timeout is over."""
        return self._timed_out or (self._parameters.values is not None and not self._is_silent)

    @property
    def _timed_out(self) -> bool:
        return time.monotonic() - self._created_at > self._settings.values["controller.timeout"]

    @property
    def _is_silent(self) -> bool:
        """True if no state has arrived lately, although it could be received."""
        recent = time.monotonic() - self._settings.values["controller.timeout"]
        return JointTrajectoryControllerState is not None and self._state_at < recent

    def check(self) -> None:
        refused = [finding.text for finding in self._findings() if finding.refuses]
        if refused:
            raise Rejected("controller", f"{self.name}: {'; '.join(refused)}")

    def _findings(self) -> list[Finding]:
        parameters, controller = self._settings.values, self._parameters.values
        if controller is None:
            why = self._parameters.problem
            text = f"its parameters are unknown: {why}" if why else f"no node answers on {self.name}/get_parameters"
            return [Finding(parameters["controller.required"], text)]
        found = [*self._manager.findings(), *check_controller(controller, self._joint_names(), parameters)]
        if self._is_silent and self._node.count_publishers(f"{self.name}/controller_state"):
            found.append(Finding(True, "it publishes no state: it is not active"))
        return found

    def diagnostics(self) -> dict[str, object]:
        controller = self._parameters.values
        state = "not found" if controller is None else "; ".join(text for _, text in self._findings()) or "ok"
        return {"controller": self.name, "controller.state": state,
                "controller.update_rate": (controller or {}).get("update_rate", ""),
                "controller.late_changes": self._late_changes}

    # ------------------------------------------------------------------ during a motion

    def update(self) -> None:
        found = self._findings() if self.is_settled and self._joint_names() else []
        self._parameters.update(again=bool(found))
        self._manager.update()
        if found or self._reported:
            texts = {text for _, text in found}
            for text in sorted(texts - self._reported):
                self._health.report(False, f"controller {self.name}: {text}")
            self._reported = texts
        self._judge_state()
        if not self._is_moving:
            return
        if self._reference_monitor.problem:
            why = "it rejected a message, see its log, or another sender commands it"
            if self._factor != 1.0:
                why = f"its speed_scaling_factor is {self._factor:g}; slow motions by ~/override instead"
            self._give_up("controller_strays", f"{self._reference_monitor.problem}: {why}")
        elif self._is_silent and self._state_at > self._motion_since:
            self._give_up("controller_silent", "it publishes no state any more: it has ended, or is not active")

    @property
    def _is_moving(self) -> bool:
        return self._motion is not None and self._executor.motion is self._motion

    def _on_state(self, data: bytes) -> None:
        self._state_at = now = time.monotonic()
        if now - self._read_at < (OPTIONS.motion_period_s if self._is_moving else OPTIONS.rest_period_s):
            return
        self._read_at, self._state = now, (state := self._read(data))
        if self.states is not None and len(state.position):
            self.states.update(state.joint_names, state.position, now, state.stamp, state.velocity, state.effort)
        motion, monitor = self._trajectory_monitor or (None, None)
        if motion is None or monitor is None or motion is not self._motion:
            return
        reference = dict(zip(state.joint_names, state.reference))
        q = np.array([reference.get(name, np.nan) for name in motion.joint_names])
        playback = monitor.on_controller_state(1e-9 * (state.stamp - motion.start_ns), q)
        self._is_off_trajectory = playback.off_trajectory
        if playback.late > 0.0 and motion.rolling is not None:  # it has lacked a change for so long
            self._report_late_change(motion.rolling, playback.late)

    def _report_late_change(self, rolling: PublishedTrajectory, late: float) -> None:
        rolling.double_lead_time()
        self._late_changes += 1
        self._health.report(False, f"{self.name} received a change of the motion {late:.3f} s late, and may have jumped: lead "
                            f"is {rolling.lead_time:g} s now, set it higher")

    def can_splice(self, requested: int, now: int) -> bool:
        if self._state_at < self._motion_since or now - requested > OPTIONS.off_timeout_ns:
            return True
        state = self._state
        is_current = (state is not None and state.stamp >= requested) or now - requested > OPTIONS.state_timeout_ns
        return not self._is_off_trajectory and is_current

    def _judge_state(self) -> None:
        state = self._state
        if state is None or self._motion is None or state.stamp == self._judged:
            return
        self._judged, self._factor = state.stamp, state.factor
        self._reference_monitor.on_controller_state(state.joint_names, state.reference, state.stamp,
                                                    self._settings.values["start_tolerance"])

    def _give_up(self, reason: str, why: str) -> None:
        why = f"{self.name}: {why}"
        self._health.trajectories.drop(Rejected(reason, why))
        if self._is_moving:
            self._executor.abort(why, reason)
        else:  # the motion has ended here
            self._health.report(False, why)

    def on_sample(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        if motion is not self._motion:
            self._reference_monitor.restart(motion.joint_names)
            self._motion, self._motion_since = motion, time.monotonic()
            self._trajectory_monitor, self._is_off_trajectory = None, False
        self._reference_monitor.add_reference(sample.reference.q, now)

    def send_trajectory(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        rolling = motion.rolling
        assert rolling is not None
        if self._trajectory_monitor is None:
            self._trajectory_monitor = motion, SentTrajectoryMonitor(rolling.points[1][0])
        self._trajectory_monitor[1].add_trajectory(rolling.splice_time, *rolling.points[:4])

    def clear(self) -> None:
        if self.states is not None:
            self.states.clear()


def _is_checked(name: str) -> bool:
    """Return whether a parameter of the controller is checked."""
    return name in PARAMETERS or (name.startswith("constraints.") and name.endswith(".goal"))


class TopicController(NamedController):
    """Controller that is commanded by its topic: it does not report whether it has accepted a message."""

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.topic = f"{self.name}/joint_trajectory"
        self._waiting_since: int | None = None  # since when the reported reference is awaited at the goal [ns]
        self._publisher = self._node.create_publisher(JointTrajectory, self.topic, 1)

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """True if the controller is found and checked, or its timeout is over."""
        return self._timed_out or (super().is_settled and self._has_subscriber)

    @property
    def _has_subscriber(self) -> bool:
        return self._publisher.get_subscription_count() > 0

    def _findings(self) -> list[Finding]:
        missing = Finding(self._settings.values["controller.required"], f"no subscriber on {self.topic}")
        return [*super()._findings(), *([] if self._has_subscriber else [missing])]

    def on_sample(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        if motion is not self._motion:
            self._waiting_since = None
        super().on_sample(motion, sample, now)

    def goal_outcome(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        """Return success; where the controller reports its reference, once that has reached the goal."""
        if self._state_at < self._motion_since:
            return Outcome()
        self._waiting_since = self._waiting_since or now
        return Outcome() if self._reference_monitor.has_reached_last(self._waiting_since) else None

    def cancel(self, motion: ExecutedMotion) -> None:
        """Hold the present position, as the controller itself does where a goal is cancelled."""
        measured = self._measured(motion.joint_names)
        position = measured if not np.isnan(measured).any() else self._reference_monitor.last
        if motion.rolling is not None and position is not None:
            point = JointTrajectoryPoint(positions=position.tolist(), velocities=[0.0] * len(position),
                                         time_from_start=Duration())
            self._publisher.publish(JointTrajectory(joint_names=list(motion.joint_names), points=[point]))


class ActionController(NamedController):
    """Controller that is commanded by its action: the result of the newest goal is the outcome of the motion."""

    def __init__(self, *args: Any, **options: Any):
        """options: of ControllerGoals."""
        super().__init__(*args)
        self._goals, self._server_at = None, -math.inf  # last time at which the action server existed [s]
        if FollowJointTrajectory is not None:
            self._goals = ControllerGoals(self._node, FollowJointTrajectory, self.name, self._give_up, **options)

    def destroy(self) -> None:
        super().destroy()
        if self._goals is not None:
            self._goals.destroy()

    @property
    def is_settled(self) -> bool:  # type: ignore[override]
        """True if the controller is found and checked, or its timeout is over."""
        return self._timed_out or (super().is_settled and self._goals is not None and self._goals.is_ready)

    @property
    def feedback(self) -> Any:
        """Newest feedback of the goal under way."""
        return self._goals.feedback if self._goals is not None else None

    def update(self) -> None:
        super().update()
        timeout = self._settings.values["controller.timeout"]
        if self._goals is None or self._goals.is_ready:
            self._server_at = time.monotonic()
        elif time.monotonic() - self._server_at > timeout and self._is_moving:
            self._give_up("controller_silent", "its action server is gone")
        if self._goals is not None and self._goals.is_overdue(timeout):
            self._give_up("controller_silent", "its action server does not answer a request")

    def _findings(self) -> list[Finding]:
        if self._goals is None:
            return [Finding(True, "controller.interface action needs control_msgs, which is not installed")]
        missing = [] if self._goals.is_ready else [Finding(True, "it does not serve follow_joint_trajectory")]
        return [*super()._findings(), *missing]

    def send_trajectory(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        super().send_trajectory(motion, message)
        assert self._goals is not None  # or else there would be no motion
        goal = FollowJointTrajectory.Goal(trajectory=message)
        given = motion.goal.tolerances
        if given is not None:
            goal.path_tolerance, goal.goal_tolerance = (tolerance_messages(motion.joint_names, rows)
                                                        for rows in (given.path, given.goal))
            goal.goal_time_tolerance = duration(_tolerance_value(given.time))
        assert motion.rolling is not None
        self._goals.send(goal, partial(self._on_accepted, motion, motion.rolling, motion.rolling.splice_time))

    def _on_accepted(self, motion: ExecutedMotion, rolling: PublishedTrajectory, splice_time: float) -> None:
        """Report a goal that is accepted after its splice time [s]: the controller has jumped.

        Where the controller reports its reference, that is judged instead: this process may have been suspended, and have
        received the answer late.
        """
        late = 1e-9 * (self._node.get_clock().now().nanoseconds - motion.start_ns) - splice_time
        if late > 0.0 and self._state_at < self._motion_since:
            self._report_late_change(rolling, late)

    def goal_outcome(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        """Return the result of the newest goal; None while there is none."""
        return self._goals.outcome if self._goals is not None else Outcome()

    def cancel(self, motion: ExecutedMotion) -> None:
        if self._goals is not None:
            self._goals.cancel()


def tolerance_messages(joint_names: Sequence[str], rows: np.ndarray) -> list[Any]:
    """Convert tolerances (3, n) to messages, of the joints that have any."""
    return [JointTolerance(name=name, **dict(zip(TOLERANCE_FIELDS, map(_tolerance_value, column))))
            for name, column in zip(joint_names, rows.T) if not np.isnan(column).all()]


def _tolerance_value(value: float) -> float:
    """Return a tolerance as in control_msgs: 0 is the default, -1 no tolerance."""
    return 0.0 if math.isnan(value) else NO_TOLERANCE if math.isinf(value) else float(value)


def check_monitor_source(parameters: Values) -> None:
    """Raise InputError where watch.source is controller_state and no controller reports one."""
    if not parameters["controller.name"]:
        raise InputError("watch.source is controller_state: set controller.name to the controller that publishes it")
    if JointTrajectoryControllerState is None:
        raise InputError("watch.source is controller_state, which needs control_msgs: it is not installed")


def make_controller(node: Node, settings: ParameterSet, executor: TrajectoryExecutor, health: ScalingDiagnostics,
                    joint_names: Callable[[], Sequence[str]],
                    measured: Callable[[tuple[str, ...]], np.ndarray]) -> Controller:
    """Return the controller that the parameters select. Raises InputError."""
    if settings.values["watch.source"] == "controller_state":
        check_monitor_source(settings.values)
    if not settings.values["controller.name"]:
        return NoController()
    kind = ActionController if settings.values["controller.interface"] == "action" else TopicController
    return kind(node, settings, executor, health, joint_names, measured)
