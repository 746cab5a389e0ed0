"""scaling_node: trajectories in, references at a control rate out, never off the path and never beyond a limit.

Subscribes ~/joint_trajectory, joint_states, robot_description. Publishes ~/reference, ~/scaled_motion, ~/speed_scaling,
~/commands while a motion is under way; /diagnostics. Serves ~/pause, ~/resume, ~/stop, ~/override; the action
~/follow_joint_trajectory.
"""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable

import numpy as np
from rclpy.clock import Clock, ClockType, JumpThreshold, TimeJump
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.qos_overriding_options import QoSOverridingOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.srv import SetOverride
from rnea_ros import InputError, Robot
from rnea_ros.errors import Rejected, in_words
from rnea_ros.execution.goal import Goal
from rnea_ros.execution.joint_state_buffer import JointStateBuffer
from rnea_ros.execution.rate_loop import RateLoop, SimulatedTime
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.nodes.common import process
from rnea_ros.nodes.common.joints import joint_limits
from rnea_ros.nodes.common.parameter_table import DERIVATIVES, SCALING_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.robot_description import RobotDescriptionSource
from rnea_ros.nodes.common.run import run
from rnea_ros.nodes.fastpath.raw_messages import Decoder, Reader
from rnea_ros.nodes.scaling.action import FollowAction, FollowJointTrajectory
from rnea_ros.nodes.scaling.health import ScalingHealth
from rnea_ros.nodes.scaling.messages import ScalingMessages, goal

SENSOR = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
LOOK = 0.1  # s; between looks at the health
SWITCH_INTERVAL = 5e-4  # s; so that ticks go on while a thread beside solves for a law


class ScalingNode(Node):
    """Thin: trajectories go to a performer, a ticker asks it where to be, samples become messages."""

    def __init__(self) -> None:
        super().__init__("scaling_node", automatically_declare_parameters_from_overrides=True)
        self._robot: Robot | None = None
        self._place = JointStateBuffer()
        self._simulated = SimulatedTime()
        self._early: JointTrajectory | None = None  # waits for the model that was asked for before it came
        self._then: Callable[[], None] | None = None  # to be called at rest, when the node is to end
        self._settings = ParameterSet(self, SCALING_TABLE, self._on_parameters)
        values = self._settings.values
        process.settle(values)
        self.lean = values["process.executor"] == "lean"
        self._ticker = RateLoop(self._step, values["control_rate"], self._settle_ticks)
        self._performer = TrajectoryExecutor(values, self._where, lambda *said: self._health.told(*said),
                                    lambda refusal: self._health.refused(refusal), self._ticker.wake,
                                    lambda names: self._place.age(names, time.monotonic()))
        self._health = ScalingHealth(self, self._performer, self._ticker)
        self._out = ScalingMessages(self)
        self._read_trajectory, self._decode_state = Reader(JointTrajectory), Decoder(JointState, ("position",))
        self._trajectories = self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10, raw=True)
        self._states = self.create_subscription(
            JointState, "joint_states", self._on_state, SENSOR, raw=True,
            qos_overriding_options=QoSOverridingOptions.with_default_policies())
        for name in ("pause", "resume", "stop"):
            self.create_service(Trigger, f"~/{name}", self._server(getattr(self, f"_{name}")))
        self.create_service(SetOverride, "~/override", self._override)
        self._action: FollowAction | None = None  # offered when there is a model for its goals
        if FollowJointTrajectory is None:
            self.get_logger().info("no action ~/follow_joint_trajectory: it needs control_msgs, which is not installed")
        self._intake = RobotDescriptionSource(self, self._settings, self._use, self._refuse)
        back = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1), on_clock_change=True)
        self._jumps = self.get_clock().create_jump_callback(back, post_callback=self._on_jump)
        self.create_timer(LOOK, self._look, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.get_logger().info(f"trajectories on {self._trajectories.topic_name}, positions from {self._states.topic_name}")

    def finish(self, then: Callable[[], None]) -> float:
        """Bring a motion to rest on its path, take no other one, and call `then`. Returns how long that may take [s]."""
        self._then = then
        if self._performer.stop("the node was asked to end"):
            self.get_logger().warning("asked to end: the motion comes to rest first")
        self._ticker.wake()  # so that it is the thread that publishes which sees the end
        return self._settings.values["shutdown_timeout"]

    def destroy_node(self) -> None:
        self._ticker.close()
        self._performer.close()
        self._intake.close()
        if self._action is not None:
            self._action.destroy()
        super().destroy_node()

    # ------------------------------------------------------------------ input

    def _on_trajectory(self, data: bytes) -> None:
        self._health.trajectories.received += 1
        try:
            message = self._read_trajectory(data)
        except Rejected as refusal:
            self._health.refused(refusal)
            return
        if self._intake.settled:
            self._take(message)
        else:
            if self._early is not None:
                self._health.refused(Rejected("replaced", "another trajectory came before this one had begun"))
            self._early = message

    def _take(self, message: JointTrajectory) -> None:
        self._attempt(lambda: self._performer.take(self._goal(message), self.get_clock().now().nanoseconds))

    def _goal(self, message: JointTrajectory) -> Goal:
        """Raises Rejected."""
        if self._then is not None:
            raise Rejected("ending", "the node was asked to end")
        if self._robot is None:
            raise Rejected("no_model", "there is no robot description yet")
        return goal(message, self._robot.joint_names)

    def _attempt(self, act: Callable[[], object]) -> Rejected | None:
        """Do what a message asks for. Whatever it contains, the node stays up, says so, counts it and returns it."""
        try:
            act()
        except Rejected as refusal:
            self._health.refused(refusal)
            return refusal
        except Exception as error:
            failure = Rejected("internal_error", in_words(error))
            if self.context.ok():
                self._health.refused(failure)
                self._report(error)
            return failure
        return None

    def _on_state(self, data: bytes) -> None:
        self._health.states.received += 1
        try:
            message = self._decode_state(data)
            self._place.read(message.name, message.position, time.monotonic())
        except Rejected as refusal:
            self._health.states.drop(refusal)

    def _where(self, joint_names: tuple[str, ...]) -> np.ndarray:
        return self._place.at(joint_names, time.monotonic() - self._settings.values["state_timeout"])

    def _server(self, act: Callable[[], str]) -> Callable:
        def serve(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            response.message = act()
            response.success = not response.message
            return response

        return serve

    def _pause(self) -> str:
        self._performer.pause()
        return ""

    def _resume(self) -> str:
        self._performer.resume()
        return ""

    def _stop(self) -> str:
        return "" if self._performer.stop() else "there is no motion to stop"

    def _override(self, request: SetOverride.Request, response: SetOverride.Response) -> SetOverride.Response:
        try:
            self._performer.set_override(request.share)
            response.success = True
        except InputError as error:
            response.message = str(error)
        return response

    # ------------------------------------------------------------------ output

    def _settle_ticks(self) -> None:
        """In the ticker's thread, when it begins."""
        try:
            process.settle_thread(self._settings.values)
        except Exception as error:
            self.get_logger().error(f"the thread that sends references has not got process.priority: {error!r}")

    def _step(self, elapsed: float) -> bool:
        """In the ticker's thread, which nothing may end; whether there is more to come."""
        found = None
        try:
            now = self.get_clock().now()
            dt = self._passed(now.nanoseconds, elapsed)
            found = self._performer.tick(now.nanoseconds, dt) if dt > 0.0 else None
            if found is not None:
                self._health.sent(*found)
                self._out.publish(*found, self._performer.phase, self._performer.override, now.to_msg(), self._settings.values)
        except Rejected as refusal:
            self._health.refused(refusal)
        except BaseException as error:
            if not self.context.ok():  # a signal ends the context at any point
                return False
            self._report(error)
            self._performer.broken("sending a reference", error, found[0] if found else None)
        if self._performer.motion is not None:
            return True
        self._simulated.rest()
        if self._then is not None:
            self._end(self._then)
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

    def _passed(self, now: int, elapsed: float) -> float:
        """How far the motion moves on [s]: by the steady clock, or by the simulated one."""
        if self.get_clock().ros_time_is_active:
            step, left_out = self._simulated.passed(now, 1.0 / self._ticker.rate)
            if left_out:
                self._health.lost += left_out
                self._health.told(False, f"simulated time leapt ahead by {step + left_out:.3f} s: the motion does not")
            return step
        longest = self._settings.values["longest_step"] / self._ticker.rate
        self._health.lost += max(elapsed - longest, 0.0)
        return min(elapsed, longest)

    def _report(self, error: BaseException) -> None:
        self.get_logger().error("".join(traceback.format_exception(error)), throttle_duration_sec=10.0)

    def _on_jump(self, _jump: TimeJump) -> None:
        self._place.forget()
        self._performer.abort("the clock was set back")

    # ------------------------------------------------------------------ model and parameters

    def _use(self, robot: Robot) -> None:
        self._robot = self._health.robot = robot
        self._health.model_error = ""
        self._place.attend(robot.joint_names)
        self._equip()
        if self._action is None and FollowJointTrajectory is not None:
            self._action = FollowAction(self, self._performer, self._health, self._goal, self._attempt, self._where)
        process.model_is_ready(self._settings.values)
        self._take_early()

    def _refuse(self, reason: str) -> None:
        self._health.model_error = reason
        self._take_early()

    def _take_early(self) -> None:
        message, self._early = self._early, None
        if message is not None:
            self._take(message)

    def _equip(self) -> None:
        if self._robot is not None:
            limits = joint_limits(self._settings.values, self._robot)
            unknown = {quantity: np.isnan(getattr(limits, quantity)) for quantity in DERIVATIVES}
            self._health.not_enforced = {quantity: [name for name, missing in zip(self._robot.joint_names, missed) if missing]
                                         for quantity, missed in unknown.items()}
            self._performer.use(self._robot, limits)
            self._hold()

    def _hold(self) -> None:
        names = self._robot.joint_names if self._robot is not None else ()
        self._place.held = {name: self._settings.values.get(f"hold_joints.{name}", np.nan) for name in names}

    def _on_parameters(self, changed: set[str]) -> None:
        self._intake.changed(changed)
        self._performer.values = self._settings.values
        self._ticker.rate = self._settings.values["control_rate"]
        if any(name.startswith("joint_limits.") for name in changed):
            self._equip()
        self._hold()

    def _look(self) -> None:
        hint = f"set parameter robot_description, or publish it on {self._intake.topic_name} (reliable, transient_local)"
        self._health.preparing = self._intake.building
        self._health.look(self._settings.values["diagnostics.period"], hint)


def main(args: list[str] | None = None) -> int:
    sys.setswitchinterval(SWITCH_INTERVAL)
    return run(ScalingNode, args)


if __name__ == "__main__":
    sys.exit(main())
