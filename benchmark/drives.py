"""Random motions inside limits of drives: is the supply's voltage used, and kept; and what does a box of limits do?

    python benchmark/drives.py [--cases 50]

Arms with motors of random constants on random paths, three retimings each: with the drives as they are; with the box that
data sheets tempt to use (torque, and speed without load at full voltage), first without and then with a torque rate of 15
times the torque per second. Pinocchio's torque and rate at 4000 instants say how much of the voltage each needs.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import load
from rnea_ros.model.drive_limits import uses
from rnea_ros.motion.retime import retime_motion
from rnea_ros.scaling.path import through
from support.oracles import PinocchioOracle
from support.scaling_cases import ARMS, urdf, waypoints

LOOKS = 4000
ELECTRICAL = 5e-3  # s; time constant of the windings
RATE = 15.0  # torque rate by torque [1/s]
SHEET = ("torque_constant", "gear_ratio", "supply_voltage", "resistance", "inductance")
NO_LOAD = 3.0  # rad/s at the joint, at full voltage


def case(seed: int) -> dict[str, tuple[float, float, float]]:
    """Of each kind of limits: duration [s], largest use of voltage, time to solve [s]."""
    rng, name = np.random.default_rng(seed), ARMS[seed % len(ARMS)]
    bare, points = load(urdf(name)), waypoints(load(urdf(name)), seed, int(rng.integers(3, 8)))
    path = through(points)
    gravity = np.abs(bare.gravity(path(np.linspace(0.0, path.length, 1001))[0])).max(axis=0)
    torque = 2.5 * np.maximum(gravity, 0.1 * gravity.max())
    constant, ratio = rng.uniform(0.05, 0.2, bare.n), rng.uniform(50.0, 150.0, bare.n) * rng.choice([-1.0, 1.0], bare.n)
    voltage = constant * np.abs(ratio) * NO_LOAD
    resistance = voltage * constant * np.abs(ratio) / torque  # full voltage holds this torque at rest
    sheets = np.stack((constant, ratio, voltage, resistance, ELECTRICAL * resistance), axis=1).tolist()
    drives = {joint: dict(zip(SHEET, sheet)) for joint, sheet in zip(bare.joint_names, sheets)}
    robot = load(urdf(name), {"version": 1, "drives": drives})
    free = replace(bare.limits, effort=np.full(bare.n, np.nan), velocity=np.full(bare.n, np.nan))
    box = replace(free, effort=torque, velocity=np.full(bare.n, NO_LOAD))
    oracle = PinocchioOracle(urdf(name), bare)
    found = {}
    for kind, limits, kept in (("voltage", free, robot.drive_limits), ("torque, speed", box, ()),
                               ("torque, speed, rate", replace(box, effort_rate=RATE * torque), ())):
        began = time.perf_counter()
        motion = retime_motion(robot, points, limits=limits, drive_limits=kept)
        spent = time.perf_counter() - began
        states = motion(np.linspace(0.0, motion.duration, LOOKS))
        tau, tau_rate = map(np.array, zip(*(oracle.torque_and_rate(*state) for state in zip(*states))))
        found[kind] = motion.duration, float(uses(robot.drive_limits, tau, tau_rate, states[1]).max()), spent
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=50)
    results = [case(seed) for seed in range(parser.parse_args().cases)]
    print("| limits | duration, that by voltage = 1 | largest use of voltage: least, median, most of the motions | time |")
    print("|---|---|---|---|")
    for kind in results[0]:
        duration, used, spent = np.array([[one[kind][0] / one["voltage"][0], *one[kind][1:]] for one in results]).T
        print(f"| {kind} | {np.median(duration):.3f} | {used.min():.4f}, {np.median(used):.4f}, {used.max():.4f} "
              f"| {np.median(spent):.2f} s |")


if __name__ == "__main__":
    main()
