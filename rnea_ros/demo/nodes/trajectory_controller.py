"""A stand-in for joint_trajectory_controller: follows trajectories as that does, on a robot that is just where it is told.

Subscribes
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)
Serves, where control_msgs is installed
    ~/follow_joint_trajectory (control_msgs/FollowJointTrajectory)
Publishes
    joint_states (sensor_msgs/JointState)   where the robot is, at state_rate
    ~/controller_state (control_msgs/JointTrajectoryControllerState, where that is installed)   its reference and where the
                                                                                                robot is, as often
It writes what it commands to a file, and may be as late as a busy machine makes it, or the messages to it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
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
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.common.run import run
from rnea_ros.nodes.common.stamps import nanoseconds
from rnea_ros.nodes.scaling.action import DeferredActionServer, FollowJointTrajectory
from rnea_ros.nodes.scaling.controller import JointTrajectoryControllerState
from rnea_ros.sim.trajectory_controller import TrajectoryController, TrajectoryPoints

NANO = 1_000_000_000
PARAMETERS = (
    Entry("joints", [""], "Names of the joints", read_only=True),
    Entry("start", [0.0], "Where they are at first", read_only=True),
    Entry("update_rate", 500.0, "Commands for each second", "Hz", 1.0, 2000.0, read_only=True),
    Entry("state_rate", 100.0, "Joint states for each second", "Hz", 1.0, 2000.0, read_only=True),
    Entry("late_every", 0, "Every so many updates one comes late; 0: none", low=0, high=1_000_000, read_only=True),
    Entry("late_by", 0.02, "By so much", "s", 0.0, 1.0, read_only=True),
    Entry("heard_late", 0.0, "By so much later it takes a trajectory than that comes", "s", 0.0, 10.0),
    Entry("off", 0.0, "By so much all joints of the robot are off what they are told", "rad, m", -10.0, 10.0),
    Entry("allow_nonzero_velocity_at_trajectory_end", False, "Whether trajectories may end while they move", read_only=True),
    Entry("interpolate_from_desired_state", False, "Told to those who ask; this robot is where it is told", read_only=True),
    Entry("allow_partial_joints_goal", False, "Told to those who ask; names of joints are taken in any order", read_only=True),
    Entry("allow_trajectory_replacement", False, "Told to those who ask; a new trajectory replaces all of the old one"),
    Entry("interpolation_method", "splines", "Between points", choices=("splines",), read_only=True),
    Entry("log", "", "File for what is commanded: lines of time [ns], positions, velocities, accelerations", read_only=True),
)


class TrajectoryControllerNode(Node):
    entries: tuple[Entry, ...] = PARAMETERS

    def __init__(self) -> None:
        super().__init__("joint_trajectory_controller", automatically_declare_parameters_from_overrides=True)
        self._settings = ParameterSet(self, self.entries)
        values = self._settings.values
        self._joints, self._closed = list(values["joints"]), False
        self._controller = TrajectoryController(np.array(values["start"]), values["allow_nonzero_velocity_at_trajectory_end"])
        self._inbox: list[tuple[float, Callable[[float], None]]] = []  # for an update from then on [s], called with its time
        self._log = open(values["log"], "w", encoding="utf-8") if values["log"] else None  # noqa: SIM115  # until the end
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
                self, FollowJointTrajectory, "~/follow_joint_trajectory", goal_callback=self._consider,
                handle_accepted_callback=self._accept, cancel_callback=self._cancel)
        self._prepare()
        self._thread = threading.Thread(target=self._run, name="updates", daemon=True)
        self._thread.start()

    def _prepare(self) -> None:
        """What another robot needs before it runs."""

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
        """In the controller's own time, small numbers of which leave room behind the point [s]."""
        return 1e-9 * (nanoseconds - self._epoch)

    @property
    def _values(self) -> Values:
        return self._settings.values

    def _put(self, act: Callable[[float], None], later: float = 0.0) -> None:
        """For the next update, or one that is so much later [s]."""
        self._inbox.append((self._since(self._nanoseconds()) + later, act))

    def _on_trajectory(self, message: JointTrajectory) -> None:
        try:
            self._put(partial(self._take, *self._read(message), None), self._values["heard_late"])
        except (ValueError, InputError) as error:
            self.get_logger().error(f"trajectory refused: {error}")

    def _take(self, trajectory: TrajectoryPoints, stamped: bool, goal: Any, now: float) -> None:
        try:
            anchored = trajectory if stamped else replace(trajectory, times=now + trajectory.times)
            self._controller.set_trajectory(anchored, now, goal)
        except InputError as error:
            self.get_logger().error(f"trajectory refused: {error}")

    # ------------------------------------------------------------------ the action

    def _consider(self, request: Any) -> GoalResponse:
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

    def _accept(self, handle: Any) -> None:
        handle.execute()
        self._goal = handle
        self._put(partial(self._take, *self._read(handle.request.trajectory), handle), self._values["heard_late"])

    def _cancel(self, handle: Any) -> CancelResponse:
        self._put(lambda now: self._controller.cancel(handle))
        return CancelResponse.ACCEPT

    def _conclude(self, handle: Any, how: str) -> Any:
        {"succeeded": handle.succeed, "preempted": handle.abort, "canceled": handle.canceled}[how]()
        if handle is self._goal:
            self._goal = None
        kind = FollowJointTrajectory.Result
        return kind(error_code=kind.INVALID_GOAL if how == "preempted" else kind.SUCCESSFUL, error_string=f"goal {how}")

    # ------------------------------------------------------------------ updates

    def _read(self, message: JointTrajectory) -> tuple[TrajectoryPoints, bool]:
        """And whether it has a stamp; else it begins with the update that takes it."""
        columns = [list(message.joint_names).index(name) for name in self._joints]
        fields = [np.array([getattr(point, name) for point in message.points]) for name in
                  ("positions", "velocities", "accelerations")]
        q, qd, qdd = (field[:, columns] if field.size else None for field in fields)
        assert q is not None
        stamp = nanoseconds(message.header.stamp)
        times = np.array([point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in message.points])
        return TrajectoryPoints(self._since(stamp) + times if stamp else times, q, qd, qdd), bool(stamp)

    def _run(self) -> None:
        period, count, told = 1.0 / self._values["update_rate"], 0, 0.0
        due = time.monotonic()
        while not self._closed:
            due = max(due + period, time.monotonic() - period)
            late = self._values["late_every"] and count % self._values["late_every"] == 0
            time.sleep(max(due - time.monotonic(), 0.0) + (self._values["late_by"] if late else 0.0))
            count += 1
            stamp = self._nanoseconds()
            now = self._since(stamp)
            state = self._updated(now)
            if self._log:
                self._log.write(" ".join(map(repr, (stamp, *np.concatenate(state).tolist()))) + "\n")
            if now - told >= 1.0 / self._values["state_rate"]:
                told = now
                self._tell(Time(sec=stamp // NANO, nanosec=stamp % NANO), *(field.tolist() for field in state))

    def _updated(self, now: float) -> tuple[np.ndarray, ...]:
        """Where to be, by all trajectories that have come."""
        while self._inbox and self._inbox[0][0] <= now:
            self._inbox.pop(0)[1](now)
        state = self._controller.update(now)
        while self._controller.finished_goals:
            goal, how = self._controller.finished_goals.pop(0)
            self._server.notify_execute(goal, partial(self._conclude, how=how))
        return state

    def _tell(self, stamp: Time, q: list[float], qd: list[float], qdd: list[float]) -> None:
        robot = self._robot_state(stamp, q, qd)
        self._states.publish(robot)
        if self._references is not None:
            told = JointTrajectoryControllerState(joint_names=self._joints)
            told.header.stamp, told.reference = stamp, JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
            told.feedback = JointTrajectoryPoint(positions=robot.position, velocities=robot.velocity, effort=robot.effort)
            told.error = JointTrajectoryPoint(positions=[wanted - seen for wanted, seen in zip(q, robot.position)])
            if hasattr(told, "speed_scaling_factor"):  # not in old ones
                told.speed_scaling_factor = 1.0
            self._references.publish(told)
        if (goal := self._goal) is not None:
            point = JointTrajectoryPoint(positions=q, velocities=qd)
            goal.publish_feedback(FollowJointTrajectory.Feedback(joint_names=self._joints, desired=point, actual=point))
        if self._log:
            self._log.flush()

    def _robot_state(self, stamp: Time, q: list[float], qd: list[float]) -> JointState:
        """Of the robot that is told to be there."""
        return self._joint_state(stamp, np.add(q, self._values["off"]).tolist(), qd)

    def _joint_state(self, stamp: Time, q: list[float], qd: list[float], effort: Sequence[float] = ()) -> JointState:
        message = JointState(name=self._joints, position=q, velocity=qd, effort=effort)
        message.header.stamp = stamp
        return message


def main(args: Sequence[str] | None = None) -> int:
    return run(TrajectoryControllerNode, args)


if __name__ == "__main__":
    raise SystemExit(main())
