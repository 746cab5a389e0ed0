"""Lateness of ticks at 1 kHz while a solver works: in a separate process, in a thread, and not at all.

    python benchmark/ticks.py [--seconds 60] [--turn 2] [--priority 50]

All take turns, so that what else the machine does is the same for all. A 7R arm moves all the while: its trajectory scaler,
torque and torque rate are what a tick computes. A busy solver solves for one time law after another. --priority runs the
thread that ticks in real time (SCHED_FIFO), as process.priority of scaling_node does: what is left then is what the
interpreter's lock costs, and the machine itself, which the side "no tick" shows: an empty loop.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from node import real_time_is_allowed

from rnea_ros.execution.executed_motion import TrajectoryMotion
from rnea_ros.execution.goal import TrajectoryPoint, read_goal
from rnea_ros.execution.rate_loop import RateLoop
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.tracking_monitor import TrackingMonitor
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from rnea_ros.trajectory.trajectory_scaler import TrajectoryScaler, next_law
from support.executor_harness import MONITOR_OFF
from support.overspeed_motion import DYNAMICS, LIMITS, POINTS, ROBOT
from support.scaling_cases import waypoints

RATE = 1000.0  # Hz
LATE = (0.2, 0.5, 1.0, 2.0, 5.0)  # ms
PRIORITY, TURN = 50, 2.0  # of the thread that ticks; s that a side has at a time
SWITCH_INTERVAL = 1e-4  # s; that of the nodes, nodes/common/process.py
COUNT = 20  # points of the motion that is solved for


def moving() -> TrajectoryMotion:
    """Slow enough to last."""
    plan = plan_from_waypoints(POINTS, np.linspace(0.0, 3600.0, len(POINTS)))
    constraints = Constraints(plan.path, DYNAMICS, DYNAMICS.limits(LIMITS), ROBOT.joint_names)
    points = [TrajectoryPoint(float(t), q) for t, q in zip(np.linspace(0.0, 3600.0, len(POINTS)), POINTS)]
    goal = read_goal(ROBOT.joint_names, ROBOT.joint_names, points)
    monitor = TrackingMonitor(ROBOT, LIMITS, goal, MONITOR_OFF)
    return TrajectoryMotion(1, goal, TrajectoryScaler(constraints, plan), ROBOT, LIMITS, monitor)


class Solving:
    """Keeps a worker busy with one law after another until it is left."""

    def __init__(self, worker: Executor | None):
        points = waypoints(ROBOT, 1, COUNT)
        plan = plan_from_waypoints(points, np.linspace(0.0, 0.5 * COUNT, COUNT))
        constraints = Constraints(plan.path, DYNAMICS, DYNAMICS.limits(LIMITS), ROBOT.joint_names)
        scaler = TrajectoryScaler(constraints, plan, at_once=True, worker=ThreadPoolExecutor(1))
        self._work = partial(next_law, constraints, scaler.current, 0.4, plan, True, 0.0)
        self._worker, self.solved, self._stopping = worker, 0, threading.Event()

    def __enter__(self) -> Solving:
        self._stopping.clear()
        self._feeder = threading.Thread(target=self._feed)
        self._feeder.start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._stopping.set()
        self._feeder.join()

    def _feed(self) -> None:
        while self._worker is not None and not self._stopping.is_set():
            self._worker.submit(self._work).result()
            self.solved += 1


def _ticks(motion: TrajectoryMotion) -> Callable[[float], object]:
    return lambda elapsed: motion.tick(elapsed, time.time_ns(), time.time_ns)


def _nothing(_elapsed: float) -> None:
    pass


@dataclass(frozen=True)
class Ticks:
    """Lateness of each tick [ms], laws solved meanwhile, and the largest load of the machine."""

    late: np.ndarray
    solved: int
    busy: float


def references_within_tick(seconds: float, priority: int, tick: Callable[[float], object]) -> np.ndarray:
    """Return the lateness of each tick [ms]."""
    late: list[float] = []

    def begin() -> None:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))

    def step(elapsed: float) -> bool:
        late.append(elapsed - 1.0 / RATE)
        tick(elapsed)
        return True

    loop = RateLoop(step, RATE, begin)
    loop.wake()
    time.sleep(seconds)
    loop.close()
    return 1e3 * np.array(late[10:])


def measure(seconds: float, turn: float = TURN, priority: int | None = None) -> dict[str, Ticks]:
    """Return results by activity of the solver. priority: None: in real time if allowed."""
    if priority is None:
        priority = PRIORITY if real_time_is_allowed() else 0
    interval = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL)
    process = SolverProcess(lambda well, sentence: print(sentence))
    sides = {"no tick: an empty loop": None, "idle": Solving(None),
             "busy, in a separate process": Solving(process), "busy, in a thread": Solving(ThreadPoolExecutor(1))}
    late: dict[str, list[np.ndarray]] = {name: [] for name in sides}
    busy = 0.0
    try:
        with sides["busy, in a separate process"]:  # type: ignore[union-attr]  # it has begun before it counts
            time.sleep(turn)
        for _ in range(max(1, round(seconds / turn))):
            for name, solving in sides.items():
                with solving or nullcontext():
                    late[name].append(references_within_tick(turn, priority, _ticks(moving()) if solving else _nothing))
                busy = max(busy, os.getloadavg()[0])
    finally:
        process.shutdown()
        sys.setswitchinterval(interval)
    return {name: Ticks(np.concatenate(late[name]), solving.solved if solving else 0, busy) for name, solving in sides.items()}


def lines(found: Mapping[str, Ticks]) -> list[str]:
    """Return the lines of results.md."""
    busy = max(one.busy for one in found.values())
    text = ["## Ticks with a busy solver", "",
            "Delay of a tick at 1 kHz [ms]. A tick computes scaler, torque and torque rate of a moving 7R arm, with real-time "
            "priority (SCHED_FIFO) if permitted, while the solver of scaling_node computes one time law after another. The "
            f"cases run alternately for {TURN:g} s each. scaling_node has its solver in a separate process; the last row "
            f"shows why. Load of the machine: up to {busy:.1f}.", "",
            "| solver | ticks | laws | median | 99 % | 99.9 % | max | "
            + " | ".join(f"> {most:g} ms" for most in LATE) + " |",
            "|---|---|---|---|---|---|---|" + "---|" * len(LATE)]
    for name, one in found.items():
        spread = " | ".join(f"{value:.3f}" for value in np.percentile(one.late, (50, 99, 99.9, 100)))
        above = " | ".join(f"{np.mean(one.late > most):.2%}" for most in LATE)
        text.append(f"| {name} | {len(one.late)} | {one.solved} | {spread} | {above} |")
    return text


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--turn", type=float, default=TURN)
    parser.add_argument("--priority", type=int)
    args = parser.parse_args()
    print("\n".join(lines(measure(args.seconds, args.turn, args.priority))))
