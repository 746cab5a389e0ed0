"""Random motions inside limits of drives: is each used, and kept; how near to the optimum; and what does a box of limits do?

    python benchmark/drives.py drives.jsonl [--cases 50] [--first 0] [--optima 50] [--kind voltage]

Arms on random paths. First motors of random constants: the path is retimed with their voltage as the limit, and with the box
that data sheets tempt to use (torque, and speed without load at full voltage), without and with a torque rate of 15 times the
torque per second. Then one retiming for each other kind of limit beside torque, velocity and acceleration, random shares of
what the motion without it takes. The utilization is computed from Pinocchio's torque and rate, at 4000 instants; IPOPT
finds the optimum of the same limits on another formulation, kept at its nodes alone.

Every result is a line of the file as soon as it is known; those that are there are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from drive_cases import NO_LOAD, ROWS, Row, seen, voltage

from rnea_ros import load
from rnea_ros.model.tree import Limits
from rnea_ros.trajectory.limit_utilization import resolve_limits
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.retiming import fit_route, retime_motion
from support.scaling_cases import ARMS, urdf, waypoints
from support.scaling_optimum import optimum

RATE = 15.0  # torque rate by torque [1/s]
ACCELERATION = 20.0  # rad/s^2, m/s^2
NODES = 400, 800  # of IPOPT's grid; the second
SLOW = 1.01  # where the first one's optimum is so much faster
VOLTAGE, BOX, BOX_AND_RATE = MOTORS = "voltage", "torque, speed", "torque, speed, rate"
RETIMED, OPTIMAL = "retimed", "optimal"


class Wanted(NamedTuple):
    """One retiming.

    limits : beside those of drives; None: the robot's
    row    : the inspected limit; kept: whether the motion shall keep it
    before : largest use of it by the motion without it, which takes so long [s]
    """

    kind: str
    arm: str
    robot: Any
    points: np.ndarray
    limits: Limits | None
    row: Row
    kept: bool = True
    before: float = float("nan")
    without: float = float("nan")

    @property
    def drive_limits(self) -> tuple[()] | None:
        return None if self.kept else ()


def wanted(seed: int) -> Iterator[Wanted]:
    rng, arm = np.random.default_rng(seed), ARMS[seed % len(ARMS)]
    robot = load(urdf(arm))
    points = waypoints(robot, seed, int(rng.integers(3, 8)))
    yield from by_voltage(arm, robot, points, rng)
    yield from beside_others(arm, robot, points, seed)


def by_voltage(arm: str, bare: Any, points: np.ndarray, rng: np.random.Generator) -> Iterator[Wanted]:
    path = path_through(points)
    gravity = np.abs(bare.gravity(path(np.linspace(0.0, path.length, 1001))[0])).max(axis=0)
    row, torque = voltage(bare.joint_names, gravity, rng)
    robot = load(urdf(arm), {"version": 1, **row.sections})
    free = replace(bare.limits, effort=np.full(bare.n, np.nan), velocity=np.full(bare.n, np.nan))
    box = replace(free, effort=torque, velocity=np.full(bare.n, NO_LOAD))
    yield Wanted(VOLTAGE, arm, robot, points, free, row)
    yield Wanted(BOX, arm, robot, points, box, row, kept=False)
    yield Wanted(BOX_AND_RATE, arm, robot, points, replace(box, effort_rate=RATE * torque), row, kept=False)


def beside_others(arm: str, bare: Any, points: np.ndarray, seed: int) -> Iterator[Wanted]:
    limited = {joint: {"max_acceleration": ACCELERATION} for joint in bare.joint_names}
    motion = retime_motion(load(urdf(arm), {"version": 1, "limits": limited}), points)
    free = seen(arm, bare, motion)
    for number, (kind, draw) in enumerate(ROWS.items()):
        row = draw(bare.joint_names, free, np.random.default_rng((seed, number)))
        limits = {joint: {**limited[joint], **row.sections.get("limits", {}).get(joint, {})} for joint in limited}
        robot = load(urdf(arm), {"version": 1, **row.sections, "limits": limits})
        yield Wanted(kind, arm, robot, points, None, row, True, float(row.used(free).max()), motion.duration)


def retimed(one: Wanted) -> dict[str, Any]:
    """Return a row. used: largest utilization of the inspected limit; others: of torque, velocity and acceleration."""
    began = time.perf_counter()
    motion = retime_motion(one.robot, one.points, limits=one.limits, drive_limits=one.drive_limits)
    spent = time.perf_counter() - began
    sampled, limits = seen(one.arm, one.robot, motion), resolve_limits(one.robot, one.limits)
    pairs = (sampled.tau, limits.effort), (sampled.qd, limits.velocity), (sampled.qdd, limits.acceleration)
    others = max(float(np.nan_to_num(np.abs(part) / limit, nan=0.0).max()) for part, limit in pairs)
    return {"duration": motion.duration, "used": float(one.row.used(sampled).max()), "others": others, "before": one.before,
            "without": one.without, "spent": spent, "load": os.getloadavg()[0]}


def optimal(one: Wanted, duration: float) -> dict[str, Any]:
    """Return the optimum of IPOPT with limits at a number of nodes: more if ours seems slow: peaks between are missed."""
    constraints = PathDynamics(one.robot).constraints(fit_route(one.points).path, resolve_limits(one.robot, one.limits))
    began, found = time.perf_counter(), {}
    for nodes in NODES:
        try:
            found = {"optimum": optimum(constraints, nodes, 2.0 * duration), "nodes": nodes}
        except RuntimeError as error:  # IPOPT gives up
            return {**found, "failed": str(error).splitlines()[0], "ipopt": time.perf_counter() - began}
        if duration <= SLOW * found["optimum"]:
            break
    return {**found, "ipopt": time.perf_counter() - began}


class Results:
    """A file of lines, one for each result: seed, kind, "retimed" or "optimal", and what was found."""

    def __init__(self, path: Path):
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.found = {(one["seed"], one["kind"], one["what"]): one for one in map(json.loads, lines)}

    def add(self, seed: int, kind: str, what: str, found: dict[str, Any]) -> None:
        self.found[seed, kind, what] = {"seed": seed, "kind": kind, "what": what, **found}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.found[seed, kind, what]) + "\n")

    def lack(self, seed: int, kinds: Sequence[str], what: str) -> bool:
        return any((seed, kind, what) not in self.found for kind in kinds)


def run(results: Results, seeds: Sequence[int], what: str, kinds: Sequence[str]) -> None:
    for seed in seeds:
        if not results.lack(seed, kinds, what):
            continue
        for one in wanted(seed):
            if one.kind in kinds and results.lack(seed, [one.kind], what):
                results.add(seed, one.kind, what, retimed(one) if what == RETIMED else
                            optimal(one, results.found[seed, one.kind, RETIMED]["duration"]))


# --- report ---------------------------------------------------------------------------------------------------------


def spread(values: Sequence[float], digits: int = 4) -> str:
    return ", ".join(f"{value:.{digits}f}" for value in (min(values), float(np.median(values)), max(values)))


def report(results: Results) -> Iterator[str]:
    of = {kind: [one for (_, its, what), one in results.found.items() if its == kind and what == RETIMED]
          for kind in (*MOTORS, *ROWS)}
    yield ("| limits | duration / that with the voltage limit | peak voltage utilization: minimum, median, maximum over the "
           "motions | time |")
    yield "|---|---|---|---|"
    for kind in MOTORS:
        longer = np.median([one["duration"] / results.found[one["seed"], VOLTAGE, RETIMED]["duration"] for one in of[kind]])
        yield (f"| {kind} | {longer:.3f} | {spread([one['used'] for one in of[kind]])} | "
               f"{np.median([one['spent'] for one in of[kind]]):.2f} s |")
    yield ""
    yield ("| additional limit | duration / that without it | peak utilization without it: minimum, median, maximum | with "
           "it: minimum, median, maximum | time |")
    yield "|---|---|---|---|---|"
    for kind in ROWS:
        longer = np.median([one["duration"] / one["without"] for one in of[kind]])
        yield (f"| {kind} | {longer:.3f} | {spread([one['before'] for one in of[kind]], 2)} | "
               f"{spread([one['used'] for one in of[kind]])} | {np.median([one['spent'] for one in of[kind]]):.2f} s |")
    yield ""
    yield "| limit | motions | duration / IPOPT's: minimum, median, maximum |"
    yield "|---|---|---|"
    for kind in (VOLTAGE, *ROWS):
        asked = {seed: one for (seed, its, what), one in results.found.items() if its == kind and what == OPTIMAL}
        ratios = [results.found[seed, kind, RETIMED]["duration"] / one["optimum"] for seed, one in asked.items()
                  if "optimum" in one]
        if ratios:
            yield f"| {kind} | {len(ratios)} of {len(asked)} | {spread(ratios)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path)
    parser.add_argument("--cases", type=int, default=50)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--optima", type=int, default=0, help="how many of them are solved by IPOPT too")
    parser.add_argument("--kind", action="append", choices=(VOLTAGE, *ROWS), help="for IPOPT; default all")
    args = parser.parse_args()
    results = Results(args.results)
    run(results, range(args.first, args.first + args.cases), RETIMED, (*MOTORS, *ROWS))
    run(results, range(args.first, args.first + args.optima), OPTIMAL, args.kind or (VOLTAGE, *ROWS))
    print("\n".join(report(results)))


if __name__ == "__main__":
    main()
