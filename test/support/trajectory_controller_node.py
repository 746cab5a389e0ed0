"""Stand-in for joint_trajectory_controller: follows trajectories as that controller does, with a robot that tracks exactly.

Subscribes
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)
Serves, where control_msgs is installed
    ~/follow_joint_trajectory (control_msgs/FollowJointTrajectory)
Publishes
    joint_states (sensor_msgs/JointState)   state of the robot, at state_rate
    ~/controller_state (control_msgs/JointTrajectoryControllerState, if installed)   reference and feedback, at state_rate
It can write its commands to a file, and can delay its updates and received trajectories, as a busy machine does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.action import CancelResponse, GoalResponse
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.errors import InputError
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.common.topics import nanoseconds
from rnea_ros.nodes.scaling.action import DeferredActionServer, FollowJointTrajectory
from rnea_ros.nodes.scaling.controller import JointTrajectoryControllerState
from support.trajectory_controller import TrajectoryController, TrajectoryPoints

NANO = 1_000_000_000
PARAMETERS = (
    ParameterEntry("joints", [""], "Names of the joints", read_only=True),
    ParameterEntry("start", [0.0], "Positions of the joints at the start", read_only=True),
    ParameterEntry("update_rate", 500.0, "Rate of commands", "Hz", 1.0, 2000.0, read_only=True),
    ParameterEntry("state_rate", 100.0, "Rate of joint states", "Hz", 1.0, 2000.0, read_only=True),
    ParameterEntry("late_every", 0, "Number of updates from one late update to the next; 0: none is late", low=0,
                   high=1_000_000,
                   read_only=True),
    ParameterEntry("late_by", 0.02, "Delay of a late update", "s", 0.0, 1.0, read_only=True),
    ParameterEntry("receive_delay", 0.0, "Delay of received trajectories", "s", 0.0, 10.0),
    ParameterEntry("off", 0.0, "Constant tracking error of all joints", "rad, m", -10.0, 10.0),
    ParameterEntry("allow_nonzero_velocity_at_trajectory_end", False, "Accepts trajectories that do not end at rest",
                   read_only=True),
    ParameterEntry("interpolate_from_desired_state", False, "For clients only; this robot tracks exactly", read_only=True),
    ParameterEntry("allow_partial_joints_goal", False, "For clients only; joint names are accepted in any order",
                   read_only=True),
    ParameterEntry("allow_trajectory_replacement", False,
                   "For clients only; a new trajectory replaces the old one completely"),
    ParameterEntry("interpolation_method", "splines", "Interpolation between waypoints", choices=("splines",), read_only=True),
    ParameterEntry("log", "", "File for the commands: lines of time [ns], positions, velocities, accelerations; empty: none",
                   read_only=True),
)


class TrajectoryControllerNode(Node):
    """Node that follows trajectories."""

    def __init__(self) -> None:
        super().__init__("joint_trajectory_controller", automatically_declare_parameters_from_overrides=True)
        self._settings = ParameterSet(self, PARAMETERS)
        values = self._settings.values
        self._joints, self._closed = list(values["joints"]), False
        self._controller = TrajectoryController(np.array(values["start"]), values["allow_nonzero_velocity_at_trajectory_end"])
        self._inbox: list[tuple[float, Callable[[float], None]]] = []  # (time [s], action): run by the first update after it
        self._log = open(values["log"], "w", encoding="utf-8") if values["log"] else None  # noqa: SIM115  # closed at the end
        self._epoch = self._nanoseconds()
        self._states = self.create_publisher(JointState, "joint_states", 10)
        self._references = None
        if JointTrajectoryControllerState is not None:
            self._references = self.create_publisher(JointTrajectoryControllerState, "~/controller_state", 10)
        self.create_subscription(JointTrajectory, "~/joint_trajectory", self._on_trajectory, 10)
        self._goal: Any = None
        self._server: Any = None
        if FollowJointTrajectory is not None:
            self._server = DeferredActionServer(
                self, FollowJointTrajectory, "~/follow_joint_trajectory", goal_callback=self._on_goal,
                handle_accepted_callback=self._on_accepted, cancel_callback=self._on_cancel)
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)
        self._thread.start()

    def destroy_node(self) -> None:
        self._closed = True
        self._thread.join()
        if self._server:
            self._server.destroy()
        if self._log:
            self._log.close()
        super().destroy_node()

    def _nanoseconds(self) -> int:
        return int(self.get_clock().now().nanoseconds)

    def _since(self, nanoseconds: int) -> float:
        """Return the controller's time since its start [s]."""
        return 1e-9 * (nanoseconds - self._epoch)

    @property
    def _values(self) -> Values:
        return self._settings.values

    def _schedule(self, act: Callable[[float], None], later: float = 0.0) -> None:
        """Schedule an action for the next update, or for one that is `later` [s]."""
        self._inbox.append((self._since(self._nanoseconds()) + later, act))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            self._schedule(partial(self._set_trajectory, *self._read(message), None), self._values["receive_delay"])
        except (ValueError, InputError) as error:
            self.get_logger().error(f"trajectory rejected: {error}")

    def _set_trajectory(self, trajectory: TrajectoryPoints, stamped: bool, goal: Any, now: float) -> None:
        try:
            anchored = trajectory if stamped else replace(trajectory, times=now + trajectory.times)
            self._controller.set_trajectory(anchored, now, goal)
            if stamped and anchored.times[0] < now:
                self.get_logger().warning(f"trajectory begins {now - anchored.times[0]:.3f} s in the past")
        except InputError as error:
            self.get_logger().error(f"trajectory rejected: {error}")

    # ------------------------------------------------------------------ the action

    def _on_goal(self, request: Any) -> GoalResponse:
        try:
            trajectory, stamped = self._read(request.trajectory)
            self._controller.check(trajectory, self._since(self._nanoseconds()) if stamped else 0.0)
        except (ValueError, InputError) as error:
            self.get_logger().error(f"goal rejected: {error}")
            return GoalResponse.REJECT
        tolerances = [(part.name, part.position) for part in request.path_tolerance]
        self.get_logger().info(f"goal accepted, path_tolerance {tolerances}, goal_time_tolerance "
                               f"{nanoseconds(request.goal_time_tolerance) / NANO:g} s")
        return GoalResponse.ACCEPT

    def _on_accepted(self, handle: Any) -> None:
        handle.execute()
        self._goal = handle
        self._schedule(partial(self._set_trajectory, *self._read(handle.request.trajectory), handle), self._values[
                                                                                                                   "receive_delay"])

    def _on_cancel(self, handle: Any) -> CancelResponse:
        self._schedule(lambda now: self._controller.cancel(handle))
        return CancelResponse.ACCEPT

    def _finish_goal(self, handle: Any, how: str) -> Any:
        {"succeeded": handle.succeed, "preempted": handle.abort, "canceled": handle.canceled}[how]()
        if handle is self._goal:
            self._goal = None
        kind = FollowJointTrajectory.Result
        return kind(error_code=kind.INVALID_GOAL if how == "preempted" else kind.SUCCESSFUL, error_string=f"goal {how}")

    # ------------------------------------------------------------------ updates

    def _read(self, message: JointTrajectory) -> tuple[TrajectoryPoints, bool]:
        """Return the trajectory of a message, and whether it has a stamp; without one it begins with the next update."""
        columns = [list(message.joint_names).index(name) for name in self._joints]
        fields = [np.array([getattr(point, name) for point in message.points]) for name in
                  ("positions", "velocities", "accelerations")]
        q, qd, qdd = (field[:, columns] if field.size else None for field in fields)
        assert q is not None
        stamp = nanoseconds(message.header.stamp)
        times = np.array([point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in message.points])
        return TrajectoryPoints(self._since(stamp) + times if stamp else times, q, qd, qdd), bool(stamp)

    def _run(self) -> None:
        period, count, published = 1.0 / self._values["update_rate"], 0, 0.0
        due = time.monotonic()
        while not self._closed:
            due = max(due + period, time.monotonic() - period)
            late = self._values["late_every"] and count % self._values["late_every"] == 0
            time.sleep(max(due - time.monotonic(), 0.0) + (self._values["late_by"] if late else 0.0))
            count += 1
            stamp = self._nanoseconds()
            now = self._since(stamp)
            state = self._update(now)
            if self._log:
                self._log.write(" ".join(map(repr, (stamp, *np.concatenate(state).tolist()))) + "\n")
            if now - published >= 1.0 / self._values["state_rate"]:
                published = now
                self._publish_state(Time(sec=stamp // NANO, nanosec=stamp % NANO), *(field.tolist() for field in state))

    def _update(self, now: float) -> tuple[np.ndarray, ...]:
        """Return the commanded state after all scheduled actions."""
        while self._inbox and self._inbox[0][0] <= now:
            self._inbox.pop(0)[1](now)
        state = self._controller.update(now)
        while self._controller.finished_goals:
            goal, how = self._controller.finished_goals.pop(0)
            self._server.notify_execute(goal, partial(self._finish_goal, how=how))
        return state

    def _publish_state(self, stamp: Time, q: list[float], qd: list[float], qdd: list[float]) -> None:
        robot = JointState(name=self._joints, position=np.add(q, self._values["off"]).tolist(), velocity=qd)
        robot.header.stamp = stamp
        self._states.publish(robot)
        if self._references is not None:
            message = JointTrajectoryControllerState(joint_names=self._joints)
            message.header.stamp = stamp
            message.reference = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
            message.feedback = JointTrajectoryPoint(positions=robot.position, velocities=robot.velocity, effort=robot.effort)
            message.error = JointTrajectoryPoint(positions=[wanted - seen for wanted, seen in zip(q, robot.position)])
            if hasattr(message, "speed_scaling_factor"):  # missing in older control_msgs
                message.speed_scaling_factor = 1.0
            self._references.publish(message)
        if (goal := self._goal) is not None:
            point = JointTrajectoryPoint(positions=q, velocities=qd)
            goal.publish_feedback(FollowJointTrajectory.Feedback(joint_names=self._joints, desired=point, actual=point))
        if self._log:
            self._log.flush()


def main() -> int:
    """Run the node; return the exit code."""
    return run([TrajectoryControllerNode])


if __name__ == "__main__":
    raise SystemExit(main())
