"""`rnea demo --plant --live`: the same over ROS, in real time. The arm with its controller is a process, scaling_node another.

Planned motions and TOPP-RA's go straight to the controller, as a planner would send them; ours is the planned one sent to
scaling_node, which hands whole trajectories on to the controller.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ...errors import RneaError
from ...motion.retime import Retimed
from ...sim.tracking import TrackedMotion
from ..processes import demo_domain, explain, processes, ros_environment, signals
from .arms import Arm
from .recorded import Recording, duration
from .trials import OURS, SHARE, Outcome, Task, Timing, outcome, planned_times

NODES = ("arm_plant", "scaling_node")
SPACING = 0.01  # s; from point to point of what goes straight to the controller
REST = 0.2  # s; before a motion and after it
PATIENCE = 60.0  # s, for processes to start, and for any motion
SLOW = 0.95  # of real time
NO_ROS = "rnea demo --plant --live needs ROS 2: {reason}. Without --live, `rnea demo --plant` needs none."


def told(pace: float) -> str:
    """How fast simulated time went."""
    if pace >= SLOW:
        return ", in real time"
    return f"; this machine cannot hold real time: simulated time went on at {pace:.0%} of it, which changes no result"


def settings(args: argparse.Namespace, arm: Arm, masses: np.ndarray, folder: Path) -> dict[str, Any]:
    """Parameters of both nodes."""
    robot_file = folder / "arm.robot.yaml"
    robot_file.write_text(json.dumps(arm.file), encoding="utf-8")
    plant = {"arm": args.arm, "urdf": args.urdf or "", "joints": list(arm.robot.joint_names), "masses": masses.tolist(),
             "start": [0.0] * arm.robot.n, "recording": str(folder / "recording")}
    scaling = {"robot_description": arm.urdf.decode(), "robot_file": str(robot_file), "use_sim_time": True,
               "output": "trajectory", "controller.name": "/joint_trajectory_controller", "control_rate": 100.0,
               "solve_first": True, "limits_share.effort": SHARE, "limits_share.effort_rate": SHARE}
    return {"/**/joint_trajectory_controller": {"ros__parameters": plant}, "/**/scaling_node": {"ros__parameters": scaling}}


class Silent(RneaError):
    """A process does not answer."""


class LiveArm:
    """An arm that follows each timing of a task."""

    def __init__(self, session: Any, recording: Recording, timings: Mapping[str, Timing]):
        self._session, self._recording, self._timings = session, recording, timings
        self._began = time.monotonic(), session.now

    def __call__(self, task: Task) -> Iterator[Outcome]:
        """One after another. Raises Silent where nothing comes of one."""
        for name, timing in self._timings.items():
            motion = None if name == OURS else timing(task)
            tracked = self._followed(task, motion)
            yield outcome(task, name, tracked, motion.duration if motion else duration(tracked), motion)

    @property
    def pace(self) -> float:
        """Simulated by real time."""
        began, now = self._began
        return 1e-9 * (self._session.now - now) / (time.monotonic() - began)

    def _followed(self, task: Task, motion: Retimed | None) -> TrackedMotion:
        session, q = self._session, task.points[0]
        session.place(q)
        self._wait(lambda: session.at(q))
        since = session.now
        self._wait(lambda: session.now > since + 2e9 * REST)
        self._recording.forget()
        self._wait(lambda: session.now > since + 4e9 * REST)
        if motion is None:
            session.send("scaling_node", planned_times(task), task.points)
        else:
            t = np.linspace(0.0, motion.duration, int(np.ceil(motion.duration / SPACING)) + 1)
            session.send("joint_trajectory_controller", t, *motion(t)[:3])
        found: list[TrackedMotion | None] = [None]

        def ended() -> bool:
            found[0] = self._recording.motion(REST)
            return found[0] is not None

        self._wait(ended)
        assert found[0] is not None
        return found[0]

    def _wait(self, until: Callable[[], bool]) -> None:
        if not self._session.wait(until, PATIENCE):
            raise Silent(f"nothing more came from the processes {' and '.join(NODES)}")


def plant_session() -> ModuleType:
    """What needs ROS; raises RneaError without it."""
    try:
        from ..nodes import plant_session
    except ImportError as error:
        raise RneaError(NO_ROS.format(reason=error)) from None
    return plant_session


@contextmanager
def live_arm(args: argparse.Namespace, arm: Arm, masses: np.ndarray, timings: Mapping[str, Timing]) -> Iterator[LiveArm]:
    """Raises RneaError without ROS, and where the processes do not answer; what they wrote is then printed."""
    node, domain = plant_session(), demo_domain()
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as name:
        folder = Path(name)
        parameters = settings(args, arm, masses, folder)
        with signals() as caught, ros_environment(domain, name), processes(folder, NODES, parameters) as started:
            print(f"{' and '.join(NODES)} run as processes {' and '.join(str(process.pid) for process in started)}")
            print(f"to inspect from another terminal: export ROS_DOMAIN_ID={domain}\n", flush=True)

            def still_there() -> bool:
                return not caught and all(process.poll() is None for process in started)

            try:
                with node.session(domain, arm.robot.joint_names, still_there) as session:
                    if not session.wait(session.ready, PATIENCE):
                        raise Silent("the processes did not find each other")
                    yield LiveArm(session, Recording(folder / "recording", arm.robot.n), timings)
            except Silent:
                if caught:
                    sys.exit(128 + caught[0])
                explain(started, NODES, folder, PATIENCE)
                raise
