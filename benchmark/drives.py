"""Random motions inside limits of drives: is each used, and kept; and what does a box of limits do?

    python benchmark/drives.py [--cases 51] [--first 0] [--optima 6]

Arms with motors of random constants on random paths, three retimings each: with the drives as they are; with the box that
data sheets tempt to use (torque, and speed without load at full voltage), first without and then with a torque rate of 15
times the torque per second. Pinocchio's torque and rate at 4000 instants say how much of the voltage each needs. Then one
retiming for each other kind of limit, random shares of what the motion without it takes, looked at in the same way. For the
first cases, IPOPT's optimum of the same limits on another formulation, kept at its nodes alone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import load
from rnea_ros.model.drive_limits import uses
from rnea_ros.motion.limit_use import own_limits
from rnea_ros.motion.path_dynamics import PathDynamics
from rnea_ros.motion.retime import Retimed, retime_motion
from rnea_ros.scaling.path import through
from support.oracles import PinocchioOracle
from support.scaling_cases import ARMS, urdf, waypoints
from support.scaling_optimum import optimum

LOOKS = 4000
ELECTRICAL = 5e-3  # s; time constant of the windings
RATE = 15.0  # torque rate by torque [1/s]
SHEET = ("torque_constant", "gear_ratio", "supply_voltage", "resistance", "inductance")
NODES = 150  # of IPOPT's grid
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
    found = {}
    for kind, limits, kept in (("voltage", free, robot.drive_limits), ("torque, speed", box, ()),
                               ("torque, speed, rate", replace(box, effort_rate=RATE * torque), ())):
        began = time.perf_counter()
        motion = retime_motion(robot, points, limits=limits, drive_limits=kept)
        spent = time.perf_counter() - began
        seen = looked_at(name, bare, motion)
        found[kind] = motion.duration, float(uses(robot.drive_limits, seen.tau, seen.tau_rate, seen.qd).max()), spent
    return found


class Seen(NamedTuple):
    """A motion at LOOKS instants, torques and rates by Pinocchio: (LOOKS, n) each."""

    q: np.ndarray
    qd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    gravity_rate: np.ndarray


def looked_at(name: str, robot: Any, motion: Retimed) -> Seen:
    oracle, states = PinocchioOracle(urdf(name), robot), motion(np.linspace(0.0, motion.duration, LOOKS))
    pairs = [(*oracle.torque_and_rate(*state), oracle.gravity_and_rate(*state[:2])[1]) for state in zip(*states)]
    return Seen(*states[:2], *map(np.array, zip(*pairs)))


Row = tuple[dict[str, Any], Callable[[Seen], np.ndarray]]  # sections of a robot file; the shares that a motion uses


def power(names: tuple[str, ...], free: Seen, rng: np.random.Generator) -> Row:
    total = (free.tau * free.qd).sum(axis=1)
    most, braking = float(rng.uniform(0.3, 0.9) * total.max()), float(rng.uniform(0.2, 0.9) * -total.min())

    def used(seen: Seen) -> np.ndarray:
        total = (seen.tau * seen.qd).sum(axis=1)
        return np.maximum(total / most, -total / braking)

    return {"supplies": {"rail": {"max_power": most, "max_braking_power": braking}}}, used


def soft_gear(names: tuple[str, ...], free: Seen, rng: np.random.Generator) -> Row:
    stiffness = np.abs(free.tau_rate).max(axis=0) / np.abs(free.qd).max(axis=0)  # winds up as fast as the joint turns
    ratio = rng.uniform(50.0, 150.0, len(names))
    most = rng.uniform(0.4, 0.9) * ratio * np.abs(free.qd + free.tau_rate / stiffness).max(axis=0)
    sheets = zip(names, ratio.tolist(), most.tolist(), stiffness.tolist())
    return ({"drives": {joint: {"gear_ratio": n, "max_motor_velocity": m, "transmission_stiffness": k}
                        for joint, n, m, k in sheets}},
            lambda seen: np.abs(ratio * (seen.qd + seen.tau_rate / stiffness)) / most)


def less_gravity(names: tuple[str, ...], free: Seen, rng: np.random.Generator) -> Row:
    rate = np.abs(free.tau_rate - free.gravity_rate).max(axis=0)
    most = rng.uniform(0.3, 0.9) * np.maximum(rate, 1e-3 * rate.max())
    limits = {joint: {"max_effort_rate": limit} for joint, limit in zip(names, most.tolist())}
    return ({"limits": limits, "commanded_effort": {"contains": "without_gravity"}},
            lambda seen: np.abs(seen.tau_rate - seen.gravity_rate) / most)


def by_position(names: tuple[str, ...], free: Seen, rng: np.random.Generator) -> Row:
    """As libfranka's rate_limiting.h has it."""
    lower, upper = free.q.min(axis=0) - 0.05, free.q.max(axis=0) + 0.05
    offset, k = rng.uniform(0.05, 0.2, len(names)), rng.uniform(2.0, 8.0, len(names))
    zones = np.stack((offset, 0.5 * k, lower, upper), axis=1).tolist()
    keys = ("velocity_offset", "deceleration_limit", "lower_position_limit", "upper_position_limit")

    def used(seen: Seen) -> np.ndarray:
        up = np.minimum(CAP, np.maximum(0.0, -offset + np.sqrt(np.maximum(0.0, k * (upper - seen.q)))))
        down = np.maximum(-CAP, np.minimum(0.0, offset - np.sqrt(np.maximum(0.0, k * (seen.q - lower)))))
        return seen.qd / np.where(seen.qd > 0.0, up, down)

    return {"limits": {joint: {"max_velocity": CAP, "velocity_by_position": dict(zip(keys, zone))}
                       for joint, zone in zip(names, zones)}}, used


CAP = 1.5  # rad/s, m/s
ROWS = {"power of a supply, both ways": power, "rotor behind a soft gear": soft_gear,
        "rate of torque less gravity": less_gravity, "velocity by position": by_position}


def rows(seed: int, optimal: bool) -> dict[str, tuple[float, float, float]]:
    """Of each kind of limit: duration by that without it, largest use, duration by IPOPT's (NaN: not asked)."""
    rng, name = np.random.default_rng(seed), ARMS[seed % len(ARMS)]
    bare, points = load(urdf(name)), waypoints(load(urdf(name)), seed, int(rng.integers(3, 8)))
    base = {"limits": {joint: {"max_acceleration": 20.0} for joint in bare.joint_names}}
    free = retime_motion(load(urdf(name), {"version": 1, **base}), points)
    before, found = looked_at(name, bare, free), {}
    for kind, row in ROWS.items():
        sections, used = row(bare.joint_names, before, rng)
        limits = {joint: {**base["limits"][joint], **sections.get("limits", {}).get(joint, {})} for joint in bare.joint_names}
        robot = load(urdf(name), {"version": 1, **sections, "limits": limits})
        motion = retime_motion(robot, points)
        best = np.nan
        if optimal:
            constraints = PathDynamics(robot).constraints(motion.route.path, own_limits(robot, None))
            best = motion.duration / optimum(constraints, NODES, 2.0 * motion.duration)
        found[kind] = motion.duration / free.duration, float(used(looked_at(name, bare, motion)).max()), best
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--optima", type=int, default=0, help="how many are solved by IPOPT too, which takes a minute each")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.cases)
    results = [case(seed) for seed in seeds]
    print("| limits | duration, that by voltage = 1 | largest use of voltage: least, median, most of the motions | time |")
    print("|---|---|---|---|")
    for kind in results[0]:
        duration, used, spent = np.array([[one[kind][0] / one["voltage"][0], *one[kind][1:]] for one in results]).T
        print(f"| {kind} | {np.median(duration):.3f} | {used.min():.4f}, {np.median(used):.4f}, {used.max():.4f} "
              f"| {np.median(spent):.2f} s |")
    others = [rows(seed, seed - args.first < args.optima) for seed in seeds]
    print("\n| limit beside torque, velocity, acceleration | duration, without it = 1 | largest use: least, median, most of "
          "the motions | duration by IPOPT's |")
    print("|---|---|---|---|")
    for kind in ROWS:
        duration, used, best = np.array([one[kind] for one in others]).T
        print(f"| {kind} | {np.median(duration):.3f} | {used.min():.4f}, {np.median(used):.4f}, {used.max():.4f} | "
              f"{'-' if np.isnan(best).all() else f'{np.nanmin(best):.3f} to {np.nanmax(best):.3f}'} |")


if __name__ == "__main__":
    main()
