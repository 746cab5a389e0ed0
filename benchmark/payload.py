"""A kilogram in the hand, from efforts: python benchmark/payload.py > benchmark/payload.md

The plant is simulated with Pinocchio (test/support/plant.py): every mass is off by 5 %, and its friction is known to its
controller but not to the estimator. It has 17-bit encoders at 500 Hz; the noise of the efforts is 0.2 % of their limits, at
least 0.1 N m. Each payload of 1 kg is estimated from a recording of 12 s and a tare with the same motion.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from benchmark.arms import Arm, arms
from rnea_ros import Robot
from rnea_ros.identification.identification import Measurements
from rnea_ros.identification.payload import UPPER, PayloadEstimate, estimate_payload
from support.plant import follow

MASS, COM = 1.0, np.array([0.03, -0.05, 0.12])  # kg, m
INERTIA = np.array([[4e-3, 1e-4, 0.0], [1e-4, 5e-3, -2e-4], [0.0, -2e-4, 3e-3]])
TRUTH = np.array([MASS, *COM, *INERTIA[UPPER]])
SECONDS, SEEDS = 12.0, 3


def recorded(arm: Arm, controller: Robot, seed: int, mass: float) -> Measurements:
    rng = np.random.default_rng(seed)
    plant, wanted = arm.plant(rng), arm.motion(rng, 1.2)
    if mass:
        plant.carry(arm.link, mass, COM, INERTIA)
    samples = list(follow(plant, controller, wanted, SECONDS, effort_noise=arm.noise, rng=rng))
    return Measurements(*(np.array([getattr(s, name) for s in samples]) for name in ("t", "q", "effort")))


def found(arm: Arm, seed: int) -> PayloadEstimate:
    controller = arm.robot(friction=True)
    return estimate_payload(arm.robot(), arm.link, *(recorded(arm, controller, seed, mass) for mass in (MASS, 0.0)))


def main() -> None:
    print(f"# Payloads from measured efforts\n\n{(__doc__ or '').partition(chr(10))[2].strip()}\n")
    print("| arm, seed | mass [kg] | centre of mass off [mm] | largest error of the ten numbers / standard deviation |\n"
          "|---|---|---|---|")
    for name, arm in arms().items():
        for seed in range(SEEDS):
            one = found(arm, seed)
            off = np.abs(one.values - TRUTH)
            print(f"| {name} {seed} | {one.mass:.3f} | {1e3 * np.linalg.norm(off[1:4]):.1f} | {(off / one.std).max():.1f} |",
                  flush=True)


if __name__ == "__main__":
    main()
