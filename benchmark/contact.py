"""Pushes and free motion of a Panda that is not quite its model: python benchmark/contact.py > benchmark/contact.md

The plant is Pinocchio's (test/support/plant.py): every mass off by 5 %, Coulomb friction by 20 %, 17-bit encoders, 500 Hz,
efforts with noise of 0.1 N m. Motion is estimated without lag, or the driver's: velocities low-passed at 30 Hz, desired
acceleration.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import Robot, load
from rnea_ros.estimation.motion_estimator import MotionEstimator
from rnea_ros.sensing.external_effort import ExternalEffortObserver
from support.plant import COULOMB, VISCOUS, Plant, follow, motion, panda

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
WAYS = "estimated", "driver"
RATE, CUTOFF = 500.0, 30.0  # Hz
START, FORCE = 1.0, 15.0  # s before a push, N
FREE, RUNS, PUSHES = 60.0, 10, 60  # s of free motion, so often; pushes


def model(friction: bool = True) -> Robot:
    declared = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}
    robot = load(panda(), {"version": 1, **({"friction": declared} if friction else {})})
    assert isinstance(robot, Robot)
    return robot


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
        contact = self.observer.contact
        if contact is not None and contact.active and contact.time == s.t:
            self.contacts.append(s.t)


def run(robot: Robot, seed: int, seconds: float, pushed: bool) -> dict[str, Watch]:
    rng = np.random.default_rng(seed)
    off = (rng.choice([-1.0, 1.0], 7) for _ in range(2))
    plant = Plant(panda(), 1.0 + 0.05 * next(off), COULOMB * (1.0 + 0.2 * next(off)), VISCOUS)
    wanted, force = motion(rng, rng.uniform(0.3, 1.3)), rng.standard_normal(3)
    force *= FORCE / np.linalg.norm(force)

    def push(t: float, q: np.ndarray) -> Any:
        return plant.jacobian("panda_hand", q)[:3].T @ force if pushed and t >= START else 0.0

    watches = {way: Watch(robot, way) for way in WAYS}
    for s in follow(plant, robot, wanted, seconds, effort_noise=0.1, push=push, rng=rng):
        for watch in watches.values():
            watch.push(s, wanted(s.t)[2])
    return watches


def main() -> None:
    robot = model()
    print(f"# Contacts found in measured efforts\n\n{(__doc__ or '').partition(chr(10))[2].strip()}\n")
    print(f"Pushes of {FORCE:g} N at the hand in random directions, after {START:g} s of motion: {PUSHES}. Free motion: "
          f"{FREE * RUNS / 60:g} minutes of {RUNS} robots.\n")
    pushes = [run(robot, seed, START + 0.1, True) for seed in range(PUSHES)]
    free = [run(robot, 1000 + seed, FREE, False) for seed in range(RUNS)]
    print("| motion | found after: median, 95 %, largest [ms] | not found in 0.1 s | false alarms | largest share of a "
          "threshold in free motion |\n|---|---|---|---|---|")
    for way in WAYS:
        late = [1e3 * (watch[way].contacts[-1] - START) for watch in pushes if watch[way].contacts]
        alarms = sum(len(watch[way].contacts) for watch in free) + sum(
            sum(t < START for t in watch[way].contacts) for watch in pushes)
        print(f"| {way} | {np.median(late):.0f}, {np.percentile(late, 95):.0f}, {max(late):.0f} | {PUSHES - len(late)} | "
              f"{alarms} | {max(watch[way].peak for watch in free):.2f} |")


if __name__ == "__main__":
    main()
