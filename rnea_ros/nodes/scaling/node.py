"""scaling_node: trajectories in, references at a control rate out, never off the path and never beyond a limit.

Subscribes ~/joint_trajectory, joint_states, robot_description. Publishes ~/reference, ~/scaled_motion, ~/speed_scaling,
~/commands while it moves; /diagnostics. Serves ~/pause, ~/resume, ~/stop, ~/override; action ~/follow_joint_trajectory.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable
from functools import partial

import numpy as np
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rnea_ros.errors import Rejected, in_words
from rnea_ros.execution.goal import Goal
from rnea_ros.execution.joint_state_buffer import JointStateBuffer, Measurement
from rnea_ros.execution.rate_loop import Pace, RateLoop
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.state_machine import REPLACED
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.nodes.common import process
from rnea_ros.nodes.common.joints import check_positions, joint_limits
from rnea_ros.nodes.common.parameter_table import SCALING_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import RobotDescriptionSource
from rnea_ros.nodes.common.run import run
from rnea_ros.nodes.common.stamps import nanoseconds
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.fastpath.raw_messages import Decoder, Reader
from rnea_ros.nodes.scaling.action import FollowAction, FollowJointTrajectory
from rnea_ros.nodes.scaling.controller_action import controller
from rnea_ros.nodes.scaling.health import ScalingHealth
from rnea_ros.nodes.scaling.messages import ScalingMessages
from rnea_ros.nodes.scaling.path_marks import PathMarks
from rnea_ros.nodes.scaling.scaled_robot import ScaledRobot, served
from rnea_ros.nodes.scaling.services import ScalingServices
from rnea_ros.nodes.trajectories import goal

SEEN = ("position", "velocity", "effort")  # of joint states
SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
LATELY = 0.5  # s; a joint state that came before tells nothing of a robot that moves
LOOK = 0.1  # s; between looks at the health
CLOSING = 0.2  # s; for the tick under way when the node has to end at once
SWITCH_INTERVAL = 5e-4  # s; so that ticks go on while a thread beside solves for a law


class ScalingNode(Node):
    """Thin: trajectories go to a trajectory executor, a rate loop asks it where to be, samples become messages."""

    def __init__(self) -> None:
        super().__init__("scaling_node", automatically_declare_parameters_from_overrides=True)
        self._robot: ScaledRobot | None = None
        self._joint_states = JointStateBuffer()
        self._early: JointTrajectory | None = None  # waits for the model that was asked for before it came
        self._on_rest: Callable[[], None] | None = None  # to be called at rest, when the node is to end
        self._settings = ParameterSet(self, SCALING_TABLE, self._on_parameters)
        values = self._settings.values
        check_positions(self._settings.given)
        process.settle(values)
        self.lean = values["process.executor"] == "lean"
        self._rate_loop = RateLoop(self._step, values["control_rate"], self._begin_ticks)
        self._pace, solver = Pace(self._on_event), SolverProcess(self._on_event)
        self._trajectory_executor = TrajectoryExecutor(
            values, self._measured, self._on_event, lambda rejected: self._health.reject(rejected), self._rate_loop.wake,
            lambda names: self._joint_states.age(names, time.monotonic()), solver=solver,
            clock=lambda: self.get_clock().now().nanoseconds, seen=self._seen)
        self._health = ScalingHealth(self, self._trajectory_executor, self._rate_loop, solver, self._pace)
        self._controller = controller(self, self._settings, self._trajectory_executor, self._health,
                                      lambda: self._robot.joint_names if self._robot else (), self._measured)
        self._trajectory_executor.follower, self._health.of_controller = self._controller, self._controller.values
        self._out = ScalingMessages(self, self._controller)
        self._path_marks = PathMarks(self)
        self._read_trajectory, self._decode_state = Reader(JointTrajectory), Decoder(JointState, SEEN)
        self._trajectories = self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10, raw=True)
        self._states = self.create_subscription(
            JointState, "joint_states", self._on_state, SENSOR, raw=True,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        self._motion_services = ScalingServices(self, self._trajectory_executor)
        self._action: FollowAction | None = None  # offered when there is a model for its goals
        if FollowJointTrajectory is None:
            self.get_logger().info("no action ~/follow_joint_trajectory: it needs control_msgs, which is not installed")
        self._topics = Topics(self, 10, SENSOR, lambda _stream, _arrival, _stamp: None)
        self._description = RobotDescriptionSource(self, self._settings, self._use, self._refuse, partial(served, values))
        back = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True)
        self._jumps = self.get_clock().create_jump_callback(back, post_callback=self._on_jump)
        self.create_timer(LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(f"trajectories on {self._trajectories.topic_name}, positions from {self._states.topic_name}")

    def finish(self, then: Callable[[], None]) -> float:
        """Bring a motion to rest on its path, take no other one, and call `then`. Returns how long that may take [s]."""
        self._on_rest = then
        if self._trajectory_executor.stop("the node was asked to end"):
            self.get_logger().warning("asked to end: the motion comes to rest first")
        self._rate_loop.wake()  # so that it is the thread that publishes which sees the end
        return self._settings.values["shutdown_timeout"]

    def end_now(self) -> None:
        """Send the way to rest in one message: no further ones follow."""
        if not self._rate_loop.close(CLOSING):
            return  # a tick that hangs has the motion
        now = self.get_clock().now()
        found = self._trajectory_executor.stop_ahead(now.nanoseconds, 1.0 / self._rate_loop.rate)
        if found is not None:
            self._out.send_stop(*found, self._settings.values)
            self._out.flush()

    def destroy_node(self) -> None:
        """Stop the threads of the node's parts; rclpy calls this too for a node whose construction failed."""
        if not hasattr(self, "_description"):
            super().destroy_node()
            return
        self._rate_loop.close()
        self._trajectory_executor.close()
        self._description.close()
        self._controller.destroy()
        self._path_marks.close()
        if self._action is not None:
            self._action.destroy()
        super().destroy_node()

    def _on_event(self, well: bool, sentence: str) -> None:
        self._health.report(well, sentence)

    # ------------------------------------------------------------------ input

    def _on_trajectory(self, data: bytes) -> None:
        self._health.trajectories.received += 1
        try:
            message = self._read_trajectory(data)
        except Rejected as rejected:
            self._health.reject(rejected)
            return
        if self._description.settled and self._controller.settled:
            self._take(message)
        else:
            if self._early is not None:
                self._health.reject(Rejected("replaced", REPLACED))
            self._early = message

    def _take(self, message: JointTrajectory) -> None:
        self._attempt(lambda: self._trajectory_executor.take(self._goal(message), self.get_clock().now().nanoseconds))

    def _goal(self, message: JointTrajectory) -> Goal:
        """Raises Rejected."""
        if self._on_rest is not None:
            raise Rejected("ending", "the node was asked to end")
        if self._robot is None:
            raise Rejected("no_model", "there is no robot description yet")
        self._controller.check()
        if self._robot.stand():
            self._use_limits()
        return goal(message, self._robot.joint_names)

    def _attempt(self, act: Callable[[], object]) -> Rejected | None:
        """Do what a message asks for. Whatever it contains, the node stays up, says so, counts it and returns it."""
        try:
            act()
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
            self._joint_states.read(message.name, message.position, time.monotonic(), stamp, message.velocity, message.effort)
        except Rejected as rejected:
            self._health.states.drop(rejected)

    def _measured(self, joint_names: tuple[str, ...]) -> np.ndarray:
        return self._joint_states.at(joint_names, time.monotonic() - self._settings.values["state_timeout"])

    def _seen(self, joint_names: tuple[str, ...]) -> Measurement:
        states = self._controller.states or self._joint_states
        return states.measured(joint_names, time.monotonic() - LATELY)

    # ------------------------------------------------------------------ output

    def _begin_ticks(self) -> None:
        """In the rate loop's thread, when it begins."""
        try:
            process.settle_thread(self._settings.values)
        except Exception as error:
            self.get_logger().error(f"the thread that sends references has not got process.priority: {error!r}")

    def _step(self, elapsed: float) -> bool:
        """In the rate loop's thread, which nothing may end; whether there is more to come."""
        found = None
        try:
            now = self.get_clock().now()
            simulated = now.nanoseconds if self.get_clock().ros_time_is_active else None
            dt = self._pace.passed(elapsed, 1.0 / self._rate_loop.rate, self._settings.values["longest_step"], simulated)
            found = self._trajectory_executor.tick(now.nanoseconds, dt) if dt > 0.0 else None
            if found is not None:
                self._health.sent(*found)
                self._path_marks.see(*found)
                self._controller.sent(*found, now.nanoseconds)
                executor = self._trajectory_executor
                self._out.publish(*found, executor.phase, executor.override, now.to_msg(), self._settings.values)
        except Rejected as rejected:
            self._health.reject(rejected)
        except BaseException as error:
            if not self.context.ok():  # a signal ends the context at any point
                return False
            self._report(error)
            self._trajectory_executor.failed("sending a reference", error, found[0] if found else None)
        if self._trajectory_executor.active:
            return True
        self._pace.rest()
        if self._on_rest is not None:
            self._end(self._on_rest)
        return False

    def _end(self, then: Callable[[], None]) -> None:
        try:
            self._out.flush()
            if self._action is not None:
                self._action.flush()
        except Exception as error:
            self._report(error)
        finally:
            then()

    def _report(self, error: BaseException) -> None:
        self.get_logger().error("".join(traceback.format_exception(error)), throttle_duration_sec=10.0)

    def _on_jump(self, _jump: TimeJump) -> None:
        self._joint_states.forget()
        self._controller.forget()
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
        self._joint_states.attend(robot.joint_names)
        self._use_limits()
        process.model_is_ready(self._settings.values)
        self._begin()

    def _refuse(self, reason: str) -> None:
        self._health.model_error = reason
        self._begin()

    def _begin(self) -> None:
        """Take goals and what came early, if all is known that has to be."""
        if not (self._description.settled and self._controller.settled):
            return
        if self._action is None and FollowJointTrajectory is not None and self._robot is not None:
            self._action = FollowAction(self, self._trajectory_executor, self._health, self._goal, self._attempt,
                                        self._measured)
        message, self._early = self._early, None
        if message is not None:
            self._take(message)

    def _use_limits(self) -> None:
        if self._robot is not None:
            limits = joint_limits(self._settings.values, self._robot)
            self._health.limits(self._robot.joint_names, limits)
            self._trajectory_executor.use(self._robot.planned, limits)
            self._path_marks.robot = self._robot.planned
            self._hold()

    def _hold(self) -> None:
        names = self._robot.joint_names if self._robot is not None else ()
        self._joint_states.held = {name: self._settings.values.get(f"hold_joints.{name}", np.nan) for name in names}

    def _on_parameters(self, changed: set[str]) -> None:
        check_positions({**self._settings.given, **self._settings.values})
        self._description.changed(changed)
        self._trajectory_executor.values = self._settings.values
        self._rate_loop.rate = self._settings.values["control_rate"]
        if any(name.startswith("joint_limits.") for name in changed):
            self._use_limits()
        self._hold()

    def _look(self) -> None:
        hint = f"set parameter robot_description, or publish it on {self._description.topic_name} (reliable, transient_local)"
        self._health.preparing = self._description.building
        self._controller.look()
        self._begin()
        self._health.look(self._settings.values["diagnostics.period"], hint)


def main(args: list[str] | None = None) -> int:
    sys.setswitchinterval(SWITCH_INTERVAL)
    return run(ScalingNode, args)


if __name__ == "__main__":
    sys.exit(main())
