"""Live timing demo over ROS, in real time: the arm with its controller and scaling_node are processes.

The planned motion and TOPP-RA's timing go straight to the controller; ours is the planned trajectory sent to scaling_node,
which sends whole trajectories to the controller. The arm's process writes a recording, one row of numbers per control period:
the time [s], 1 if tracking is lost, and for all joints reference, position, commanded and applied torque.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedWriter
from pathlib import Path
from typing import Any

import numpy as np

from ..sim.tracking import TrackingResult
from ..trajectory.retiming import Retimed
from .arms import Arm
from .processes import NoMessages, node_session, recorders
from .timing_trials import OURS, PLANNING_SHARE, Timing, TimingResult, TimingTask, planned_times, timing_result

MOVING_TOL = 1e-9  # rad, m


def append_row(file: BufferedWriter, t: float, lost: bool, *parts: np.ndarray) -> None:
    """Append a row. parts : reference, q, commanded, applied (n,)."""
    file.write(np.concatenate(([t, lost], *parts)).tobytes())


class ArmRecording:
    """Recording of an arm with n joints, which may still grow."""

    def __init__(self, path: Path, n: int):
        self._path, self._n, self._begin = path, n, 0

    def discard(self) -> None:
        """Ignore all rows up to now."""
        self._begin = self._path.stat().st_size // self._row

    @property
    def _row(self) -> int:
        return 8 * (2 + 4 * self._n)

    def motion(self, rest: float) -> TrackingResult | None:
        """Return the motion from `rest` [s] before its start to `rest` after its end, or until tracking was lost; times count
        from its start. None while it is incomplete.
        """
        whole = self._path.stat().st_size // self._row - self._begin
        if not whole:
            return None
        rows = np.fromfile(self._path, count=whole * self._row // 8, offset=self._begin * self._row).reshape(whole, -1)
        reference, *others = np.split(rows[:, 2:], 4, axis=1)
        moving = np.flatnonzero(np.abs(np.diff(reference, axis=0)).max(axis=1) > 0.0)
        if not len(moving):
            return None
        q, commanded, applied = others
        t, lost = rows[:, 0] - rows[moving[0], 0], bool(rows[-1, 1])
        if not lost and t[-1] < t[moving[-1] + 1] + rest:
            return None
        part = (t >= -rest) & (lost | (t <= t[moving[-1] + 1] + rest))
        return TrackingResult(t[part], reference[part], q[part], commanded[part], applied[part], lost)


def motion_duration(tracked: TrackingResult) -> float:
    """Return the duration of the reference motion [s]."""
    return float(tracked.t[1:][np.abs(np.diff(tracked.reference, axis=0)).max(axis=1) > MOVING_TOL][-1])


NODES = ("arm_plant", "scaling_node")
POINT_SPACING_S = 0.01  # of trajectories sent straight to the controller
REST_S = 0.2  # before and after a motion
TIMEOUT_S = 60.0  # for the start of the processes, and for one motion
MIN_REAL_TIME = 0.95  # simulated time counts as real time above this ratio


def pace_text(pace: float) -> str:
    """Return a phrase on the speed of simulated time."""
    if pace >= MIN_REAL_TIME:
        return ", in real time"
    return f"; this machine is too slow for real time: simulated time ran at {pace:.0%} of it, which changes no result"


def node_parameters(arm: Arm, source: str, urdf: str, masses: np.ndarray, folder: Path) -> dict[str, Any]:
    """Return the parameters of both nodes; the robot file is written into the folder."""
    robot_file = folder / "arm.robot.yaml"
    robot_file.write_text(json.dumps(arm.file), encoding="utf-8")
    plant = {"arm": source, "urdf": urdf, "joints": list(arm.robot.joint_names), "masses": masses.tolist(),
             "start": [0.0] * arm.robot.n, "recording": str(folder / "recording")}
    scaling = {"robot_description": arm.urdf.decode(), "robot_file": str(robot_file), "use_sim_time": True,
               "output": "trajectory", "controller.name": "/joint_trajectory_controller", "control_rate": 100.0,
               "solve_first": True, "limits_share.effort": PLANNING_SHARE, "limits_share.effort_rate": PLANNING_SHARE}
    return {"/**/joint_trajectory_controller": {"ros__parameters": plant}, "/**/scaling_node": {"ros__parameters": scaling}}


class LiveArm:
    """Arm in another process that tracks each timing of a task."""

    def __init__(self, session: Any, recording: ArmRecording, timings: Mapping[str, Timing]):
        self._session, self._recording, self._timings = session, recording, timings
        self._began = time.monotonic(), session.now

    def __call__(self, task: TimingTask) -> Iterator[TimingResult]:
        """Yield the results of all timings. Raises NoMessages if a motion does not arrive."""
        for name, timing in self._timings.items():
            motion = None if name == OURS else timing(task)
            tracked = self._track(task, motion)
            yield timing_result(task, name, tracked, motion.duration if motion else motion_duration(tracked), motion)

    @property
    def pace(self) -> float:
        """Ratio of simulated time to real time."""
        began, now = self._began
        return 1e-9 * (self._session.now - now) / (time.monotonic() - began)

    def _track(self, task: TimingTask, motion: Retimed | None) -> TrackingResult:
        session, q = self._session, task.points[0]
        session.reset(q)
        self._wait(lambda: session.is_at(q))
        since = session.now
        self._wait(lambda: session.now > since + 2e9 * REST_S)
        self._recording.discard()
        self._wait(lambda: session.now > since + 4e9 * REST_S)
        if motion is None:
            session.send("scaling_node", planned_times(task), task.points)
        else:
            t = np.linspace(0.0, motion.duration, int(np.ceil(motion.duration / POINT_SPACING_S)) + 1)
            session.send("joint_trajectory_controller", t, *motion(t)[:3])
        found: list[TrackingResult | None] = [None]

        def ended() -> bool:
            found[0] = self._recording.motion(REST_S)
            return found[0] is not None

        self._wait(ended)
        assert found[0] is not None
        return found[0]

    def _wait(self, until: Callable[[], bool]) -> None:
        if not self._session.wait(until, TIMEOUT_S):
            raise NoMessages(f"no more messages from the processes {' and '.join(NODES)}")


@contextmanager
def live_arm(arm: Arm, source: str, urdf: str, masses: np.ndarray, timings: Mapping[str, Timing],
             report: Callable[[str], None]) -> Iterator[LiveArm]:
    """Start the arm's process and scaling_node.

    source : name of the arm in ARM_SOURCES; urdf : path of another arm's URDF, or ''; masses : factors (n,) of the plant
    Raises MissingRos without ROS 2, NodesFailed if the processes do not answer, Interrupted after a signal.
    """
    nodes = recorders()

    def parameters(folder: Path) -> dict[str, Any]:
        return node_parameters(arm, source, urdf, masses, folder)

    with node_session(NODES, parameters, report) as running, \
            nodes.plant_session(running.domain, arm.robot.joint_names, running.is_running) as session:
        if not session.wait(session.is_ready, TIMEOUT_S):
            raise NoMessages(f"the processes did not find each other within {TIMEOUT_S:g} s")
        yield LiveArm(session, ArmRecording(running.folder / "recording", arm.robot.n), timings)
