"""Does a robot hold its path whose motors are weaker than their data say? Watched and not, without ROS.

python benchmark/watched.py
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.executor_harness import ExecutorHarness, trajectory
from support.overspeed_motion import EFFORT, LIMITS, START
from support.weak_robot import WeakRobot

SWEEP = START + np.array([[0.0] * 7, [0.9, 0.15, -0.2, 0.1, 0.2, 0.1, 0.2], [1.8, 0.3, -0.4, -0.2, 0.3, 0.3, 0.3],
                          [2.6, 0.2, 0.0, 0.0, 0.0, 0.0, 0.0]])
EFFORTS = 6.0, 10.0, 15.0  # N m; limits of joint 1
STRENGTHS = 1.0, 0.9, 0.8, 0.7, 0.6
HEAD = "limit of joint 1 [N m]", "strength", "monitored", "off the path [rad]", "off at the end [rad]", "time [s]"
WATCHED = {"no": {}, "yes": {"watch.tolerance": 0.02}, "yes, 50 ms late": {"watch.tolerance": 0.02},
           "yes, whole trajectories": {"watch.tolerance": 0.02, "output": "trajectory"}}


def swept(most: float, strength: float, watched: str) -> tuple[float, float, float]:
    """Return the largest deviation from the path, the deviation at the end [rad], and the duration [s]."""
    first = np.arange(len(EFFORT)) == 0
    effort = np.where(first, most, EFFORT)
    robot = WeakRobot(START, np.where(first, strength, 1.0), delay=50 if "late" in watched else 0, effort=effort)
    it = ExecutorHarness(replace(LIMITS, effort=effort, effort_rate=20.0 * effort), robot, **WATCHED[watched])
    it.take(trajectory(SWEEP, 1.0))
    it.play()
    for _ in range(200):  # what is late arrives
        robot.tick(it.samples[-1].reference, it.now)
    path = plan_from_waypoints(SWEEP, np.linspace(0.0, 1.0, len(SWEEP))).path
    way = path(np.linspace(0.0, path.length, 4001))[0]
    off = max(np.abs(way - q).max(axis=1).min() for q in robot.positions[::5])
    return off, float(np.abs(robot.q - SWEEP[-1]).max()), it.samples[-1].reference.t


def main() -> None:
    for cells in (HEAD, ["---"] * len(HEAD)):
        print(f"| {' | '.join(cells)} |")
    for most in EFFORTS:
        for strength in STRENGTHS:
            for watched in WATCHED:
                off, end, time = swept(most, strength, watched)
                print(f"| {most:g} | {strength:g} | {watched} | {off:.3f} | {end:.3f} | {time:.2f} |", flush=True)


if __name__ == "__main__":
    main()
