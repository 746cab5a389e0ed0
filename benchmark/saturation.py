"""Timings that a robot with saturating drives can track: random paths of three arms in MuJoCo.

    python benchmark/saturation.py [--motions 20] [--seed 0] [--arm panda] [--few] [--picture demo_plant.png]

The paths, plants and timings are those of `rnea demo --plant` (rnea_ros/demo/timing_trials.py), and some timings more.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_ros.demo import timing_trials as trials
from rnea_ros.demo.arms import ARM_SOURCES, Arm
from rnea_ros.trajectory.retiming import Retimed, retime_motion


def toppra_half_speed(task: trials.TimingTask) -> Retimed:
    """Return TOPP-RA's timing at half its speed."""
    return Retimed(task.fastest.route, trials.toppra_motion(task).law.slower(0.5))


def ours_without_rate(task: trials.TimingTask) -> Retimed:
    """Return our timing without limits of torque rates and drives."""
    robot = task.arm.robot
    limits = replace(robot.limits.share(trials.PLANNING_SHARE, trials.PLANNING_SHARE), effort_rate=np.full(robot.n, np.nan))
    return retime_motion(robot, task.points, limits=limits, drive_limits=())


ALL_TIMINGS: dict[str, trials.Timing] = {
    trials.PLANNED: trials.as_planned, trials.TOPPRA: trials.toppra_motion, "the same at half speed": toppra_half_speed,
    "ours, 90 % of torque, rate unlimited": ours_without_rate, "ours, 100 % of torque and rate": trials.ours(1.0),
    "ours, 95 %": trials.ours(0.95), trials.OURS: trials.ours()}


def campaign(name: str, motions: int, seed: int, timings: Mapping[str, trials.Timing], drawn: str | None) -> None:
    began, arm, rng, found = time.monotonic(), Arm(ARM_SOURCES[name]), np.random.default_rng(seed), []
    for k in range(motions):
        task = trials.random_task(arm, rng)
        found += trials.track_all(task, rng, timings)
        print(f"{name}: {k + 1} of {motions}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    shown = [outcome for outcome in found if outcome.timing in trials.SIDE_BY_SIDE]
    for line in (f"\n## {name}, {motions} motions, seed {seed}\n", _line(trials.TABLE_HEAD),
                 _line(["---"] * len(trials.TABLE_HEAD)), *map(_line, trials.table_rows(found))):
        print(line, flush=True)
    if drawn:
        trials.draw_trials(task, shown[-3:], shown, drawn)


def _line(cells) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--arm", choices=tuple(ARM_SOURCES), action="append", help="default all")
    parser.add_argument("--few", action="store_true", help="only the timings of the demo")
    parser.add_argument("--picture", help="of the last arm")
    args = parser.parse_args()
    for name in args.arm or ARM_SOURCES:
        campaign(name, args.motions, args.seed, trials.SIDE_BY_SIDE if args.few else ALL_TIMINGS, args.picture)


if __name__ == "__main__":
    main()
