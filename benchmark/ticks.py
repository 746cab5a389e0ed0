"""How late ticks at 1 kHz come while a solver works beside them: in a process of its own, in a thread, and not at all.

    python benchmark/ticks.py [--rounds 20] [--seconds 5] [--priority 50]

The three take turns, so that what else the machine does is the same for all. A 7R arm moves all the while: its trajectory
scaler, torque and torque rate are what a tick computes. A busy solver solves for one time law after another. Each line says
how many ticks came later than so many milliseconds after they were due. --priority runs the thread that ticks in real time
(SCHED_FIFO), as process.priority of scaling_node does: what is left then is what the interpreter's lock costs.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))

from rnea_ros.execution.executed_motion import ExecutedMotion
from rnea_ros.execution.goal import TrajectoryPoint, read
from rnea_ros.execution.rate_loop import RateLoop
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.watch import UNWATCHED, Watch
from rnea_ros.scaling.lookahead import next_law
from rnea_ros.scaling.points import plan_from_waypoints
from rnea_ros.scaling.terms import Constraints
from rnea_ros.scaling.trajectory_scaler import TrajectoryScaler
from support.reach import DYNAMICS, LIMITS, POINTS, ROBOT
from support.scaling_cases import waypoints

RATE = 1000.0  # Hz
LATE = (0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # ms
SWITCH_INTERVAL = 5e-4  # s; scaling_node's
COUNT = 20  # points of the motion that is solved for


def moving() -> ExecutedMotion:
    """Slow enough to last."""
    plan = plan_from_waypoints(POINTS, np.linspace(0.0, 3600.0, len(POINTS)))
    constraints = Constraints(plan.path, DYNAMICS, DYNAMICS.limits(LIMITS), ROBOT.joint_names)
    points = [TrajectoryPoint(float(t), q) for t, q in zip(np.linspace(0.0, 3600.0, len(POINTS)), POINTS)]
    goal = read(ROBOT.joint_names, ROBOT.joint_names, points)
    watch = Watch(ROBOT, LIMITS, goal, UNWATCHED)
    return ExecutedMotion(1, goal, TrajectoryScaler(constraints, plan), ROBOT, LIMITS, watch)


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


def ticked(seconds: float, priority: int) -> np.ndarray:
    """How late each tick was [ms]."""
    late: list[float] = []
    motion = moving()

    def begin() -> None:
        if priority:
            os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(priority))

    def step(elapsed: float) -> bool:
        late.append(elapsed - 1.0 / RATE)
        motion.tick(elapsed)
        return True

    loop = RateLoop(step, RATE, begin)
    loop.wake()
    time.sleep(seconds)
    loop.close()
    return 1e3 * np.array(late[10:])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--priority", type=int, default=0)
    args = parser.parse_args()
    sys.setswitchinterval(SWITCH_INTERVAL)
    process = SolverProcess(lambda well, sentence: print(sentence))
    workers = {"idle": Solving(None), "thread": Solving(ThreadPoolExecutor(1)), "process": Solving(process)}
    found: dict[str, list[np.ndarray]] = {name: [] for name in workers}
    loads = []
    for _ in range(args.rounds):
        for name, solving in workers.items():
            with solving:
                found[name].append(ticked(args.seconds, args.priority))
            loads.append(os.getloadavg()[0])
    process.shutdown()
    print(f"load {np.min(loads):.1f} to {np.max(loads):.1f}, priority {args.priority}; "
          f"laws solved: thread {workers['thread'].solved}, process {workers['process'].solved}")
    print("| solver | ticks | median [ms] | 99 % | 99.9 % | most |", *(f"> {most:g} ms |" for most in LATE))
    for name, parts in found.items():
        late = np.concatenate(parts)
        spread = " | ".join(f"{value:.3f}" for value in np.percentile(late, (50, 99, 99.9, 100)))
        print(f"| {name} | {len(late)} | {spread} |", *(f"{int((late > most).sum())} |" for most in LATE), flush=True)
