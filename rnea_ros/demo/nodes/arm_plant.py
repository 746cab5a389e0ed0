"""Arm in MuJoCo with its joint_trajectory_controller in one process, as under ros2_control.

The drives saturate; the controller's model has wrong masses and no friction. Time is simulated: it runs in real time, or
slower on a slow machine.

Subscribes
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)
    ~/reset (sensor_msgs/JointState)      sets the arm to these positions, at rest, and discards its trajectory
Publishes
    /clock (rosgraph_msgs/Clock)
    joint_states (sensor_msgs/JointState)     effort is the torque of the drives
    ~/controller_state                        as in trajectory_controller.py
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from rnea_ros import InputError
from rnea_ros.demo import timing_trials as trials
from rnea_ros.demo.arms import ARM_SOURCES, Arm, ArmSource
from rnea_ros.demo.nodes.trajectory_controller import NANO, PARAMETERS, TrajectoryControllerNode
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.sim.tracking import CONTROL_PERIOD_S, MAX_TRACKING_ERROR, TrackingSimulation, TrajectoryController

ARM_PARAMETERS = (
    ParameterEntry("arm", "panda", "Which arm", choices=tuple(ARM_SOURCES), read_only=True),
    ParameterEntry("urdf", "", "Path of another arm's URDF, with torque limits; its tool is its last link", read_only=True),
    ParameterEntry("masses", [1.0], "Factors on the masses of its links: by how much they are wrong", read_only=True),
    ParameterEntry("recording", "", "File of what happened in each period, see demo/timing_trials.py", read_only=True),
)
PERIOD_NS = round(CONTROL_PERIOD_S * NANO)
MAX_CATCH_UP_S = 0.02  # lag behind real time that is made up
PERIODS_PER_CLOCK = 5  # control periods from one /clock message, and comparison with real time, to the next


class ArmPlant(TrajectoryControllerNode):
    """Node that simulates an arm with its controller."""

    entries = (*PARAMETERS, *ARM_PARAMETERS)
    _time = NANO  # ns; zero would mean that no time was received

    def _prepare(self) -> None:
        values = self._values
        arm = Arm(ArmSource(Path(values["urdf"])) if values["urdf"] else ARM_SOURCES[values["arm"]])
        if self._joints != list(arm.robot.joint_names):
            raise InputError(f"joints are {self._joints}; those of {arm.robot.name} are {list(arm.robot.joint_names)}")
        self._plant, self._lost = arm.plant(np.array(values["masses"])), False
        self._tracker = TrackingSimulation(self._plant, np.array(values["start"]))
        self._resets: list[np.ndarray] = []
        self._recording = open(values["recording"], "wb") if values["recording"] else None  # noqa: SIM115  # until the end
        self._clock_publisher = self.create_publisher(Clock, "/clock", 10)
        self.create_subscription(JointState, "~/reset", self._on_reset, 10)

    def destroy_node(self) -> None:
        super().destroy_node()
        if self._recording:
            self._recording.close()

    def _nanoseconds(self) -> int:
        """Return the simulated time, which this node defines [ns]."""
        return self._time

    def _on_reset(self, message: JointState) -> None:
        position = dict(zip(message.name, message.position))
        if set(position) != set(self._joints):
            self.get_logger().error(f"reset names {sorted(position)}; {self._joints} are needed")
            return
        self._resets.append(np.array([position[name] for name in self._joints]))

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            while self._resets:
                self._reset(self._resets.pop(0))
            for _ in range(PERIODS_PER_CLOCK):
                self._step()
            if self._recording:
                self._recording.flush()
            self._clock_publisher.publish(Clock(clock=self._stamp))
            self._publish_state(self._stamp, *(field.tolist() for field in self._controller.state))
            due = max(due + PERIODS_PER_CLOCK * CONTROL_PERIOD_S, time.monotonic() - MAX_CATCH_UP_S)
            time.sleep(max(due - time.monotonic(), 0.0))

    def _reset(self, position: np.ndarray) -> None:
        self._inbox.clear()
        self._controller = TrajectoryController(position, self._values["allow_nonzero_velocity_at_trajectory_end"])
        self._tracker, self._lost = TrackingSimulation(self._plant, position), False

    def _step(self) -> None:
        """Simulate one control period; an arm that lost tracking stays where it is, its drives stopped."""
        r, rd, rdd = self._update(self._since(self._time))
        if not self._lost:
            q, asked = self._tracker.step(r, rd, rdd)
            self._lost = bool(np.abs(r - q).max() > MAX_TRACKING_ERROR)
            if self._recording:
                trials.append_row(self._recording, self._since(self._time), self._lost, r, q, asked, self._tracker.drives.tau)
        self._time += PERIOD_NS

    @property
    def _stamp(self) -> Time:
        return Time(sec=self._time // NANO, nanosec=self._time % NANO)

    def _robot_state(self, stamp: Time, _q: list[float], _qd: list[float]) -> JointState:
        """Return the state of the simulated arm, instead of the commanded one."""
        q, qd = self._plant.joints
        return self._joint_state(stamp, q.tolist(), (qd * (not self._lost)).tolist(), self._tracker.drives.tau.tolist())
