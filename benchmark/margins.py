"""Shares of the limits to plan with, predicted and needed: python benchmark/margins.py > benchmark/margins.md

A Panda is retimed with the whole of its limits (87 and 12 N m, 1000 N m/s) along random paths; a plant that is not quite
its model (Pinocchio's, test/support/plant.py) follows under feed-forward and a PD of 50 rad/s. How much of the limits of
torque, and of torque rate over 20 ms, does the controller ask for? `limits_share` is to know without a plant.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import Robot, load
from rnea_ros.motion.margin import Doubts, limits_share
from rnea_ros.motion.retime import Retimed, retime_motion
from support.plant import COULOMB, RANGE, REST, VISCOUS, Plant, panda

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
HAND, BANDWIDTH, STEP, INNER = "panda_hand", 50.0, 1e-3, 4
FINE = 2.0 * np.pi / 2**20
DOUBTS = {
    "friction unknown": Doubts(masses=0.0, friction=1.0), "masses 5 % at random": Doubts(masses=0.05),
    "masses 10 % at random": Doubts(masses=0.1), "all masses 5 %": Doubts(masses=0.0, all_masses=0.05),
    "all masses 10 %": Doubts(masses=0.0, all_masses=0.1), "payload of 1 kg": Doubts(masses=0.0, payload=1.0, link=HAND),
    "payload of 3 kg": Doubts(masses=0.0, payload=3.0, link=HAND),
    "encoder 2^-20, velocity 60 Hz": Doubts(masses=0.0, resolution=FINE, cutoff=60.0)}


def robot(friction: bool) -> Robot:
    sections = {"friction": {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}}
    made = load(panda(), {"version": 1, "limits": {name: {"max_effort_rate": 1000.0} for name in JOINTS},
                          **(sections if friction else {})})
    assert isinstance(made, Robot)
    return made


def motions(count: int, seed: int = 0) -> list[Retimed]:
    rng, bare = np.random.default_rng(seed), robot(False)
    return [retime_motion(bare, REST + RANGE * rng.uniform(-1.0, 1.0, (4, 7))) for _ in range(count)]


def plants(doubts: Doubts, draws: int = 4) -> list[Plant]:
    """Robots as they may be."""
    rng = np.random.default_rng(99)
    found = [Plant(panda(), 1.0 + doubts.masses * rng.uniform(-1.0, 1.0, 7)) for _ in range(draws)] if doubts.masses else [
        Plant(panda(), 1.0 + sign * doubts.all_masses, doubts.friction * COULOMB, doubts.friction * VISCOUS)
        for sign in ((1.0, -1.0) if doubts.all_masses else (1.0,))]
    for plant in found:
        if doubts.payload:
            plant.carry(HAND, doubts.payload, np.zeros(3))
    return found


def needed(bare: Robot, motion: Retimed, plant: Plant, doubts: Doubts) -> np.ndarray:
    """(2,): shares of torque and rate that keep the whole limits on this plant."""
    t = np.arange(0.0, motion.duration + 0.1, STEP)
    r, rd, rdd, _ = motion(t)
    ahead, M = bare.inverse_dynamics(r, rd, rdd), bare.mass_matrix(r)
    q, v, u = r[0].copy(), rd[0].copy(), np.zeros_like(r)
    before, speed, share = q, np.zeros(7), 1.0 - np.exp(-2.0 * np.pi * min(doubts.cutoff, 1e6) * STEP)
    for k in range(len(t)):
        seen, slow = q, v
        if doubts.resolution:
            seen = doubts.resolution * np.round(q / doubts.resolution)
            speed, before = speed + share * ((seen - before) / STEP - speed), seen
            slow = speed
        u[k] = ahead[k] + M[k] @ (BANDWIDTH**2 * (r[k] - seen) + 2.0 * BANDWIDTH * (rd[k] - slow))
        for _ in range(INNER):
            q, v = plant.step(STEP / INNER, q, v, u[k])
    return np.minimum(use(bare, ahead) / use(bare, u), 1.0)


def use(bare: Robot, tau: np.ndarray) -> np.ndarray:
    rate = (tau[20:] - tau[:-20]) / 0.02
    return np.array([(np.abs(tau) / bare.limits.effort).max(), (np.abs(rate) / bare.limits.effort_rate).max()])


def main() -> None:
    bare, rough, along = robot(False), robot(True), motions(6)
    about = (__doc__ or "").partition("\n")[2].strip()
    print(f"# Margins, predicted and needed\n\n{about}\n\nWorst of {len(along)} motions.\n")
    print("| doubt | torque: predicted | needed | rate: predicted | needed |\n|---|---|---|---|---|")
    for name, doubts in DOUBTS.items():
        found = limits_share(rough if doubts.friction else bare, along, doubts).shares
        worst = np.min([needed(bare, motion, plant, doubts) for plant in plants(doubts) for motion in along], axis=0)
        print(f"| {name} | {found.effort:.2f} | {worst[0]:.2f} | {found.effort_rate:.2f} | {worst[1]:.2f} |", flush=True)


if __name__ == "__main__":
    main()
