"""An arm in MuJoCo under its joint_trajectory_controller, both in one process, as ros2_control has them.

Its drives saturate; of its masses and its friction the controller knows nothing. Time is simulated: it goes on as the plant
does, no faster than real time, slower on a machine that cannot hold that.

Subscribes
    ~/joint_trajectory (trajectory_msgs/JointTrajectory)
    ~/reset (sensor_msgs/JointState)      the arm is put there, at rest, and what it was to follow is forgotten
Publishes
    /clock (rosgraph_msgs/Clock)
    joint_states (sensor_msgs/JointState)     with what the drives exert
    ~/controller_state                        as trajectory_controller.py does
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from rnea_ros import InputError
from rnea_ros.demo.nodes.trajectory_controller import NANO, PARAMETERS, TrajectoryControllerNode
from rnea_ros.demo.timings import recorded
from rnea_ros.demo.timings.arms import SOURCES, Arm, Source
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.run import run
from rnea_ros.sim.tracking import CONTROL_PERIOD_S, MAX_TRACKING_ERROR, Tracker
from rnea_ros.sim.trajectory_controller import TrajectoryController

OWN = (
    Entry("arm", "panda", "Which arm", choices=tuple(SOURCES), read_only=True),
    Entry("urdf", "", "Path of another arm's URDF, with torque limits; its tool is its last link", read_only=True),
    Entry("masses", [1.0], "Factors on the masses of its links: by how much they are wrong", read_only=True),
    Entry("recording", "", "File of what happened in each period, see demo/timings/recorded.py", read_only=True),
)
NANOSECONDS = round(CONTROL_PERIOD_S * NANO)
BEHIND = 0.02  # s; so much of what real time is ahead is made good
TURN = 5  # periods from one look at real time to the next, and from /clock to /clock


class ArmPlant(TrajectoryControllerNode):
    entries = (*PARAMETERS, *OWN)
    _time = NANO  # ns; at zero there would be no time yet

    def _prepare(self) -> None:
        values = self._values
        arm = Arm(Source(Path(values["urdf"])) if values["urdf"] else SOURCES[values["arm"]])
        if self._joints != list(arm.robot.joint_names):
            raise InputError(f"joints are {self._joints}; those of {arm.robot.name} are {list(arm.robot.joint_names)}")
        self._plant, self._lost = arm.plant(np.array(values["masses"])), False
        self._tracker = Tracker(self._plant, np.array(values["start"]))
        self._places: list[np.ndarray] = []
        self._recording = open(values["recording"], "wb") if values["recording"] else None  # noqa: SIM115  # until the end
        self._clock_told = self.create_publisher(Clock, "/clock", 10)
        self.create_subscription(JointState, "~/reset", self._on_reset, 10)

    def destroy_node(self) -> None:
        super().destroy_node()
        if self._recording:
            self._recording.close()

    def _nanoseconds(self) -> int:
        """It is this node that makes the time."""
        return self._time

    def _on_reset(self, message: JointState) -> None:
        place = dict(zip(message.name, message.position))
        if set(place) != set(self._joints):
            self.get_logger().error(f"reset names {sorted(place)}; {self._joints} are needed")
            return
        self._places.append(np.array([place[name] for name in self._joints]))

    def _run(self) -> None:
        due = time.monotonic()
        while not self._closed:
            while self._places:
                self._reset(self._places.pop(0))
            for _ in range(TURN):
                self._step()
            if self._recording:
                self._recording.flush()
            self._clock_told.publish(Clock(clock=self._stamp))
            self._tell(self._stamp, *(field.tolist() for field in self._controller.state))
            due = max(due + TURN * CONTROL_PERIOD_S, time.monotonic() - BEHIND)
            time.sleep(max(due - time.monotonic(), 0.0))

    def _reset(self, place: np.ndarray) -> None:
        self._inbox.clear()
        self._controller = TrajectoryController(place, self._values["allow_nonzero_velocity_at_trajectory_end"])
        self._tracker, self._lost = Tracker(self._plant, place), False

    def _step(self) -> None:
        """One period; an arm that is lost stays where it is, its drives stopped."""
        r, rd, rdd = self._updated(self._since(self._time))
        if not self._lost:
            q, asked = self._tracker.step(r, rd, rdd)
            self._lost = bool(np.abs(r - q).max() > MAX_TRACKING_ERROR)
            if self._recording:
                recorded.add(self._recording, self._since(self._time), self._lost, r, q, asked, self._tracker.drives.tau)
        self._time += NANOSECONDS

    @property
    def _stamp(self) -> Time:
        return Time(sec=self._time // NANO, nanosec=self._time % NANO)

    def _robot_state(self, stamp: Time, _q: list[float], _qd: list[float]) -> JointState:
        """As it is, not as it is told to be."""
        q, qd = self._plant.joints
        return self._joint_state(stamp, q.tolist(), (qd * (not self._lost)).tolist(), self._tracker.drives.tau.tolist())


def main(args: Sequence[str] | None = None) -> int:
    return run(ArmPlant, args)


if __name__ == "__main__":
    raise SystemExit(main())
