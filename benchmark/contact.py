"""Pushes and free motion of arms that are not quite their models: python benchmark/contact.py > benchmark/contact.md

The plant is simulated with Pinocchio (test/support/plant.py): every mass is off by 5 %, Coulomb friction by 20 %. It has
17-bit encoders at 500 Hz and no rotors; the noise of the efforts is 0.2 % of their limits, at least 0.1 N m. The motion is
estimated without lag, or is that of the driver: velocities low-pass filtered at 30 Hz, and the desired acceleration.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmark.arms import Arm, arms
from rnea_ros import Robot
from rnea_ros.estimation.external_effort import ExternalEffortObserver
from rnea_ros.estimation.motion_estimator import MotionEstimator
from support.plant import follow

WAYS = "estimated", "driver"
RATE, CUTOFF = 500.0, 30.0  # Hz
START, FORCE, LATEST = 1.0, 15.0, 0.1  # s before a push, N, s in which it is to be found
FREE, RUNS, PUSHES = 60.0, 10, 60  # s of free motion, so often; pushes


class Watch:
    """An observer and what it is fed with."""

    def __init__(self, robot: Robot, way: str):
        self.observer, self._way = ExternalEffortObserver(robot), way
        self._estimator, self._speed = MotionEstimator(robot.n, 0.0, 0.0, []), None
        self.contacts: list[float] = []
        self.peak = 0.0  # largest share of a threshold

    def push(self, s: Any, qdd: np.ndarray) -> None:
        if self._way == "driver":
            share = 1.0 - np.exp(-2.0 * np.pi * CUTOFF / RATE)
            self._speed = s.qd if self._speed is None else self._speed + share * (s.qd - self._speed)
            found = self.observer.push(s.t, s.q, self._speed, s.effort, qdd)
        else:
            self._estimator.push(round(s.t * 1e9), s.q)
            if not self._estimator.ready:
                return
            (q, qd, qdd, _), deviation = self._estimator.estimate(round(s.t * 1e9))
            found = self.observer.push(s.t, q, qd, s.effort, qdd, deviation[1])
        self.peak = max(self.peak, float((np.abs(found.effort) / found.threshold).max()))
        if any(event.active for event in self.observer.events) and self.observer.in_contact.sum() == sum(
                event.active for event in self.observer.events):
            self.contacts.append(s.t)


def run(arm: Arm, robot: Robot, seed: int, seconds: float, pushed: bool) -> dict[str, Watch]:
    rng = np.random.default_rng(seed)
    plant = arm.plant(rng, 0.2)
    wanted, force = arm.motion(rng, rng.uniform(0.3, 1.3)), rng.standard_normal(3)
    force *= FORCE / np.linalg.norm(force)

    def push(t: float, q: np.ndarray) -> Any:
        return plant.jacobian(arm.link, q)[:3].T @ force if pushed and t >= START else 0.0

    watches = {way: Watch(robot, way) for way in WAYS}
    for s in follow(plant, robot, wanted, seconds, effort_noise=arm.noise, push=push, rng=rng):
        for watch in watches.values():
            watch.push(s, wanted(s.t)[2])
    return watches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", nargs="+", default=list(arms()), metavar="ARM")
    parser.add_argument("--pushes", type=int, default=PUSHES)
    parser.add_argument("--runs", type=int, default=RUNS, help="of free motion, a minute each")
    asked = parser.parse_args()
    print(f"# Contacts found in measured efforts\n\n{(__doc__ or '').partition(chr(10))[2].strip()}\n")
    print(f"Pushes of {FORCE:g} N at the hand in random directions, after {START:g} s of motion: {asked.pushes} of each arm. "
          f"Free motion: {FREE * asked.runs / 60:g} minutes of {asked.runs} robots.\n")
    print("| arm, motion | detected after: median, 95 %, largest [ms] | not detected in 0.1 s | false alarms | peak external "
          "effort / threshold in free motion |\n|---|---|---|---|---|")
    for name in asked.arms:
        arm = arms()[name]._replace(rotor=0.0)
        robot = arm.robot(friction=True)
        pushes = [run(arm, robot, seed, START + LATEST, True) for seed in range(asked.pushes)]
        free = [run(arm, robot, 1000 + seed, FREE, False) for seed in range(asked.runs)]
        for way in WAYS:
            found = [[t for t in watch[way].contacts if t >= START] for watch in pushes]
            late = [1e3 * (times[0] - START) for times in found if times]
            alarms = sum(len(watch[way].contacts) for watch in free) + sum(
                sum(t < START for t in watch[way].contacts) for watch in pushes)
            print(f"| {name}, {way} | {np.median(late):.0f}, {np.percentile(late, 95):.0f}, {max(late):.0f} | "
                  f"{asked.pushes - len(late)} | {alarms} | {max([watch[way].peak for watch in free], default=np.nan):.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
