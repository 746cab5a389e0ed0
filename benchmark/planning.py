"""Fastest motions of well-known arms between random poses: does planning find them, how long does it take, are limits kept?

    python benchmark/planning.py [SEEDS]

Writes planning.md beside this file. Limits are those of the URDF, then torque rates as well: each torque may swing from end to
end in 0.1 s.
"""

from __future__ import annotations

import platform
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import RneaError, Robot, plan_motion
from rnea_ros.model.tree import Limits
from support.scaling_cases import urdf

HERE = Path(__file__).resolve().parent
ARMS = ("rr", "pr", "stanford", "ur5_robot", "seven_r", "panda")
SWING = 0.1  # s


def poses(robot: Robot, seed: int) -> np.ndarray:
    """Two at random, near the middle of the range, that the motors can hold."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.limits.lower, -1.5), np.minimum(robot.limits.upper, 1.5)
    while True:
        found = rng.uniform(low, high, (2, robot.n))
        if (np.abs(robot.gravity(found)) < robot.limits.effort).all():
            return found


def row(name: str, seed: int, robot: Robot, limits: Limits) -> str:
    started = time.process_time()
    try:
        plan = plan_motion(robot, *poses(robot, seed), limits=limits)
    except RneaError as error:
        return f"| {name} | {seed} | {error} |"
    seconds = time.process_time() - started
    which = "torque" if np.isnan(limits.effort_rate).all() else "torque, rate"
    failed = "; ".join(note for note in plan.notes if "no limits known" not in note)
    return (f"| {name} | {robot.n} | {seed} | {which} | {plan.duration:.5f} | {plan.control_points} | {plan.iterations} | "
            f"{seconds:.1f} | {max(plan.excess.values()):.1e} | {failed} |")


def main(seeds: int = 3) -> None:
    lines = ["# Fastest motions between random poses", "",
             f"`python benchmark/planning.py {seeds}`, {platform.machine()}, Python {platform.python_version()}, default "
             "settings. Seconds are computing time of the process; excess is the largest beyond any limit, relative, looked "
             "at 120 times in every span; negative: what is left.", "",
             "| arm | joints | seed | limits | T [s] | control points | iterations | seconds | excess | notes |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for name in ARMS:
        robot = Robot.from_urdf(urdf(name))
        for seed in range(seeds):
            for limits in (robot.limits, replace(robot.limits, effort_rate=2.0 * robot.limits.effort / SWING)):
                lines.append(row(name, seed, robot, limits))
                print(lines[-1], flush=True)
    (HERE / "planning.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
