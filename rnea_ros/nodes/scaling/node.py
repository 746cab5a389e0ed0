"""Node scaling_node: trajectories or action chunks in, references at a control rate out, inside all limits.

Subscribes ~/joint_trajectory, ~/action_chunks, joint_states, robot_description. Publishes ~/reference, ~/scaled_motion,
~/speed_scaling, ~/commands while it moves; /diagnostics. Serves
~/pause, ~/resume, ~/stop, ~/override; action ~/follow_joint_trajectory.
"""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from functools import partial

import numpy as np
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.srv import SetOverride
from rnea_ros.errors import InputError, Rejected, in_words
from rnea_ros.execution.executed_motion import ActionChunk
from rnea_ros.execution.executor import TrajectoryExecutor
from rnea_ros.execution.goal import Goal
from rnea_ros.execution.joint_states import JointStateBuffer, Measurement
from rnea_ros.execution.rate_loop import RateLoop, StepLimiter
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.states import REPLACED
from rnea_ros.nodes.common.cdr import Decoder, Reader
from rnea_ros.nodes.common.diagnostics import steady_timer
from rnea_ros.nodes.common.model_facts import check_positions, joint_limits
from rnea_ros.nodes.common.parameter_table import SCALING_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import ManagedNode, apply_process_settings, apply_thread_priority, freeze_garbage
from rnea_ros.nodes.common.robot_description import RobotDescriptionSource
from rnea_ros.nodes.common.topics import SCALING_SENSOR, Topics, goal_from_message, nanoseconds
from rnea_ros.nodes.scaling.action import FollowJointTrajectory, FollowJointTrajectoryServer
from rnea_ros.nodes.scaling.controller import make_controller
from rnea_ros.nodes.scaling.diagnostics import ScalingDiagnostics
from rnea_ros.nodes.scaling.publishers import COAST_SHARE, PathMarkers, SamplePublishers
from rnea_ros.nodes.scaling.robot import ScaledRobot, load_robot

JOINT_STATE_FIELDS = ("position", "velocity", "effort")
MAX_STATE_AGE_S = 0.5  # of a joint state that a moving robot is monitored by
UPDATE_PERIOD_S = 0.1  # of controller checks and diagnostics
TICK_TIMEOUT_S = 0.2  # for the tick under way when the node has to end at once


class ScalingNode(ManagedNode):
    """Node that passes trajectories to a TrajectoryExecutor, ticks it at the control rate, and publishes its samples."""

    def __init__(self) -> None:
        super().__init__("scaling_node")
        self._on_rest: Callable[[], None] | None = None  # called at rest when the node is to end
        self._settings = ParameterSet(self, SCALING_TABLE, self._on_parameters)
        values = self._settings.values
        check_positions(self._settings.given)
        apply_process_settings(values)
        self.lean = values["process.executor"] == "lean"
        self.autostart(values["autostart"])

    def set_up(self) -> None:
        """Create topics and services, start the solver, and begin to build the model."""
        values = self._settings.values
        self._robot: ScaledRobot | None = None
        self._joint_states = JointStateBuffer()
        self._early: JointTrajectory | None = None  # trajectory that arrived before the model was built
        self._rate_loop = RateLoop(self._tick, values["control_rate"], self._on_ticks_started)
        self._step_limiter, solver = StepLimiter(self._on_event), SolverProcess(self._on_event)
        self._trajectory_executor = TrajectoryExecutor(
            values, self._measured, self._on_event, lambda rejected: self._health.reject(rejected), self._rate_loop.wake,
            lambda names: self._joint_states.age(names, time.monotonic()), solver=solver,
            clock=lambda: self.get_clock().now().nanoseconds, measurement=self._measurement,
            on_chunk=lambda result: self._health.on_chunk(result))
        self._health = ScalingDiagnostics(self, self._trajectory_executor, self._rate_loop, solver, self._step_limiter)
        self._controller = make_controller(self, self._settings, self._trajectory_executor, self._health,
                                           lambda: self._robot.joint_names if self._robot else (), self._measured)
        self._trajectory_executor.follower = self._controller
        self._health.controller_values = self._controller.diagnostics
        self._sample_publishers = SamplePublishers(self, self._controller)
        self._path_markers = PathMarkers(self)
        self._read_trajectory, self._decode_state = Reader(JointTrajectory), Decoder(JointState, JOINT_STATE_FIELDS)
        self._trajectories = self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10, raw=True)
        self._chunks = self.create_subscription(JointTrajectory, "~/action_chunks", self._on_chunk, 10, raw=True)
        self._states = self.create_subscription(
            JointState, "joint_states", self._on_state, SCALING_SENSOR, raw=True,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._create_services()
        self._action: FollowJointTrajectoryServer | None = None  # created when there is a model for its goals
        if FollowJointTrajectory is None:
            self.get_logger().info("no action ~/follow_joint_trajectory: it needs control_msgs, which is not installed")
        self._topics = Topics(self, 10, SCALING_SENSOR, lambda _stream, _arrival, _stamp: None)
        self._description = RobotDescriptionSource(self, self._settings, self._use, self._refuse, partial(load_robot, values))
        for undo in (self._destroy_action, self._path_markers.close, self._controller.destroy, self._description.close,
                     self._trajectory_executor.close, self._rate_loop.close):
            self.at_cleanup.callback(undo)
        self.on_clock_set_back(self._on_clock_jump)
        steady_timer(self, UPDATE_PERIOD_S, self._update)
        self.get_logger().info(f"trajectories on {self._trajectories.topic_name}, action chunks on {self._chunks.topic_name}, "
                               f"positions from {self._states.topic_name}")
        self._warn_of_points()

    def finish(self, then: Callable[[], None]) -> float:
        """Bring a motion to rest on its path, take no other one, and call `then`. Returns how long that may take [s]."""
        self._on_rest = then
        if not self.is_configured:
            then()
            return 0.0
        if self._trajectory_executor.stop("the node is shutting down"):
            self.get_logger().warning("shutting down: the motion comes to rest first")
        self._rate_loop.wake()  # the thread that publishes also ends the node
        return self._settings.values["shutdown_timeout"]

    def end_now(self) -> None:
        """Publish all samples until rest in one message, for a node that ends at once."""
        if not self.is_configured or not self._rate_loop.close(TICK_TIMEOUT_S):
            return  # a tick that hangs holds the motion
        now = self.get_clock().now()
        found = self._trajectory_executor.compute_stop(now.nanoseconds, 1.0 / self._rate_loop.rate)
        if found is not None:
            self._sample_publishers.send_stop(*found, self._settings.values)
            self._sample_publishers.flush()

    def wait_for_model(self) -> str:
        """Wait until the model is built; return why there is none, or nothing."""
        return self._description.wait()

    def on_activation(self, is_active: bool) -> None:
        """Bring a motion to rest on its path when the node is deactivated."""
        self._health.is_active = is_active
        if not is_active and self._trajectory_executor.stop("the node was deactivated"):
            self.get_logger().warning("deactivated: the motion comes to rest on its path")

    def has_ended(self) -> bool:
        """Return whether no motion is being executed."""
        return not self._trajectory_executor.active

    def _destroy_action(self) -> None:
        if self._action is not None:
            self._action.destroy()

    def _on_event(self, is_ok: bool, message: str) -> None:
        self._health.report(is_ok, message)

    # ------------------------------------------------------------------ input

    def _on_trajectory(self, data: bytes) -> None:
        self._health.trajectories.received += 1
        try:
            message = self._read_trajectory(data)
        except Rejected as rejected:
            self._health.reject(rejected)
            return
        if self._description.settled and self._controller.is_settled:
            self._accept(message)
        else:
            if self._early is not None:
                self._health.reject(Rejected("replaced", REPLACED))
            self._early = message

    def _accept(self, message: JointTrajectory) -> None:
        self._attempt(lambda: self._trajectory_executor.accept(self._goal(message), self.get_clock().now().nanoseconds))

    def _goal(self, message: JointTrajectory) -> Goal:
        """Return the goal of a message. Raises Rejected."""
        robot = self._ready_robot()
        if robot.update_base_orientation():
            self._use_limits()
        return goal_from_message(message, robot.joint_names)

    def _ready_robot(self) -> ScaledRobot:
        """Return the robot. Raises Rejected where no motion can be executed."""
        if self._on_rest is not None:
            raise Rejected("ending", "the node is shutting down")
        self.check_active()
        if self._robot is None:
            raise Rejected("no_model", "there is no robot description yet")
        self._controller.check()
        return self._robot

    def _on_chunk(self, data: bytes) -> None:
        """Execute an action chunk: points of any joints in any order; header.stamp is that of the observation."""
        self._health.chunks.received += 1
        now = self.get_clock().now().nanoseconds
        try:
            chunk = chunk_from_message(self._read_trajectory(data), now)
            if self._robot is None or not self._controller.is_settled:  # another description may be under way
                raise Rejected("not_ready", "the robot description or the controller is not known yet")
            if self._ready_robot().update_base_orientation() and self._trajectory_executor.motion is None:
                self._use_limits()
            self._trajectory_executor.push_chunk(chunk, now)
        except Rejected as rejected:
            self._health.chunks.drop(rejected)
        except Exception as error:
            if self.context.ok():
                self._health.chunks.drop(Rejected("internal_error", in_words(error)))
                self._report(error)

    def _attempt(self, request: Callable[[], object]) -> Rejected | None:
        """Execute the request of a message. Any error is counted, reported and returned, not raised."""
        try:
            request()
        except Rejected as rejected:
            self._health.reject(rejected)
            return rejected
        except Exception as error:
            failure = Rejected("internal_error", in_words(error))
            if self.context.ok():
                self._health.reject(failure)
                self._report(error)
            return failure
        return None

    def _on_state(self, data: bytes) -> None:
        self._health.states.received += 1
        try:
            message = self._decode_state(data)
            stamp = nanoseconds(message.header.stamp) or self.get_clock().now().nanoseconds
            self._joint_states.update(message.name, message.position, time.monotonic(), stamp, message.velocity,
                                      message.effort)
        except Rejected as rejected:
            self._health.states.drop(rejected)

    def _measured(self, joint_names: tuple[str, ...]) -> np.ndarray:
        return self._joint_states.positions(joint_names, time.monotonic() - self._settings.values["state_timeout"])

    def _measurement(self, joint_names: tuple[str, ...]) -> Measurement:
        states = self._joint_states if self._controller.states is None else self._controller.states
        return states.measurement(joint_names, time.monotonic() - MAX_STATE_AGE_S)

    # ------------------------------------------------------------------ services

    def _create_services(self) -> None:
        """Serve ~/pause, ~/resume, ~/stop and ~/override."""
        executor = self._trajectory_executor

        def stop() -> str:
            return "" if executor.stop() else "there is no motion to stop"

        for name, act in (("pause", executor.pause), ("resume", executor.resume), ("stop", stop)):
            self.create_service(Trigger, f"~/{name}", partial(self._trigger, act))
        self.create_service(SetOverride, "~/override", self._set_override)

    @staticmethod
    def _trigger(act: Callable[[], str | None], _request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """Call a function that returns an error message, or nothing."""
        response.message = act() or ""
        response.success = not response.message
        return response

    def _set_override(self, request: SetOverride.Request, response: SetOverride.Response) -> SetOverride.Response:
        try:
            self._trajectory_executor.set_override(request.share)
            response.success = True
        except InputError as error:
            response.message = str(error)
        return response

    # ------------------------------------------------------------------ output

    def _on_ticks_started(self) -> None:
        """Set the priority of the rate loop's thread; called by it."""
        try:
            apply_thread_priority(self._settings.values)
        except Exception as error:
            self.get_logger().error(f"process.priority could not be set for the thread that sends references: {error!r}")

    def _tick(self, elapsed: float) -> bool:
        """Publish the next sample; return whether there are more. Called by the rate loop's thread, which no error may end."""
        found, began = None, self._rate_loop.began
        try:
            now = self.get_clock().now()
            simulated = now.nanoseconds if self.get_clock().ros_time_is_active else None
            longest, coasted = self._settings.values["longest_step"], self._coasted(elapsed, simulated)
            dt = self._step_limiter.step(elapsed, 1.0 / self._rate_loop.rate, max(longest, coasted), simulated)
            found = self._trajectory_executor.tick(now.nanoseconds, dt) if dt > 0.0 else None
            if found is not None:
                if coasted > longest:  # the receiver is about there, and needs no points on the way
                    found[0].control_steps = [found[1].reference]
                self._health.on_sample(*found)
                self._path_markers.on_sample(*found)
                self._controller.on_sample(*found, now.nanoseconds)
                executor = self._trajectory_executor
                self._sample_publishers.publish(*found, executor.phase, executor.override, now.to_msg(), self._settings.values,
                                                began)
        except Rejected as rejected:
            self._health.reject(rejected)
        except BaseException as error:
            if not self.context.ok():  # a signal ends the context at any point
                return False
            self._report(error)
            self._trajectory_executor.report_failure("sending a reference", error, found[0] if found else None)
        if self._trajectory_executor.active:
            return True
        self._step_limiter.reset()
        if self._on_rest is not None:
            self._end(self._on_rest)
        return False

    def _coasted(self, elapsed: float, simulated: int | None) -> float:
        """Return the number of control periods for which the receiver of points has executed the stop behind the last one.

        For a short time that is about the motion itself, which goes on from there. After a longer one the receiver has
        braked, and the motion is given up.
        """
        motion, stop_time = self._trajectory_executor.motion, self._settings.values["points_stop_time"]
        sent = self._health.last
        if motion is None or motion.rolling is not None or not stop_time or simulated is not None:
            return 0.0
        if sent is None or sent[0] is not motion or not sent[1].reference.qd.any():  # it rests
            return 0.0
        if elapsed > COAST_SHARE * stop_time:
            self._trajectory_executor.abort(f"no point was sent for {elapsed:.3f} s, and the robot brakes by itself")
        return elapsed * self._rate_loop.rate

    def _end(self, then: Callable[[], None]) -> None:
        try:
            self._sample_publishers.flush()
            if self._action is not None:
                self._action.flush()
        except Exception as error:
            self._report(error)
        finally:
            then()

    def _report(self, error: BaseException) -> None:
        self.get_logger().error("".join(traceback.format_exception(error)), throttle_duration_sec=10.0)

    def _on_clock_jump(self) -> None:
        self._joint_states.clear()
        self._controller.clear()
        if self._robot is not None:
            self._robot.forget()
        self._trajectory_executor.abort("the clock was set back")

    # ------------------------------------------------------------------ model and parameters

    def _use(self, robot: ScaledRobot) -> None:
        if self._robot is not None:
            robot.take_over(self._robot)
        if self._robot is None or self._robot.commanded != robot.commanded:
            self.get_logger().info("~/scaled_motion: effort is the whole joint torque, commanded_effort (also on "
                                   f"~/reference and ~/commands) is {robot.commanded.description}")
        self._robot = self._health.robot = robot
        robot.connect(self._topics)
        self._health.model_error = ""
        self._joint_states.set_joints(robot.joint_names)
        self._use_limits()
        freeze_garbage(self._settings.values)
        self._start_if_ready()

    def _refuse(self, reason: str) -> None:
        self._health.model_error = reason
        self._start_if_ready()

    def _start_if_ready(self) -> None:
        """Accept goals, and the early trajectory, once model and controller are known."""
        if not (self._description.settled and self._controller.is_settled):
            return
        if self._action is None and FollowJointTrajectory is not None and self._robot is not None:
            self._action = FollowJointTrajectoryServer(self, self._trajectory_executor, self._health, self._goal,
                                                       self._attempt, self._measured)
        message, self._early = self._early, None
        if message is not None:
            self._accept(message)

    def _use_limits(self) -> None:
        if self._robot is not None:
            limits = joint_limits(self._settings.values, self._robot)
            self._health.set_limits(self._robot.joint_names, limits)
            self._trajectory_executor.set_robot(self._robot.planned, limits)
            self._path_markers.robot = self._robot.planned
            self._assume_positions()

    def _assume_positions(self) -> None:
        names = self._robot.joint_names if self._robot is not None else ()
        self._joint_states.assumed_positions = {name: self._settings.values.get(f"hold_joints.{name}", np.nan)
                                                for name in names}

    def _on_parameters(self, changed: set[str]) -> None:
        check_positions({**self._settings.given, **self._settings.values})
        if not self.is_configured:
            return
        self._description.changed(changed)
        self._trajectory_executor.parameters = self._settings.values
        self._rate_loop.rate = self._settings.values["control_rate"]
        if any(name.startswith("joint_limits.") for name in changed):
            self._use_limits()
        if changed & {"output", "points_stop_time"}:
            self._warn_of_points()
        self._assume_positions()

    def _warn_of_points(self) -> None:
        """Warn of what output points risks."""
        values = self._settings.values
        if values["output"] == "points":
            stop = values["points_stop_time"]
            brakes = f"brakes in {stop:g} s, not checked against the limits, if its receiver executes the stop behind a point"
            self.get_logger().warning("output is points: if this node stops, hangs or is killed, the robot "
                                      + (f"{brakes}; else it " if stop > 0.0 else "")
                                      + "stops at once from its velocity, beyond every limit. Set output: horizon, unless the "
                                      "receiver takes nothing but single points")

    def _update(self) -> None:
        hint = f"set parameter robot_description, or publish it on {self._description.topic_name} (reliable, transient_local)"
        self._health.is_preparing = self._description.building
        self._controller.update()
        self._start_if_ready()
        self._health.update(self._settings.values["diagnostics.period"], hint)


def chunk_from_message(message: JointTrajectory, now: int) -> ActionChunk:
    """Return the action chunk of a JointTrajectory that came at time now [ns]. Raises Rejected.

    A stamp of zero is the time of arrival. Points have no times where all of them are zero.
    """
    if not message.joint_names or not message.points:
        raise Rejected("wrong_shape", f"the chunk has {len(message.points)} points for {len(message.joint_names)} joints")
    times = [nanoseconds(point.time_from_start) * 1e-9 for point in message.points]
    return ActionChunk(nanoseconds(message.header.stamp) or now, tuple(message.joint_names),
                       [list(point.positions) for point in message.points], times if any(times) else None)
