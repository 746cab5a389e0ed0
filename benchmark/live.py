"""Robots of every kind before dynamics_node, over DDS: torque and torque rate of a moving robot beside what is not ours.

    python benchmark/live.py [ROBOT ...] [--samples 2000] [--rates 100] [--seed 0] [--step 0.001] [--cost SECONDS]

Writes live.md beside this file; with robots named, their rows of it alone. What is not answered is sent again and counted,
what is never answered ends the run. --cost: for so long each robot is fed at 1 kHz, and its node says what a sample took.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from node import spent

from support.free_flyer import example
from support.moving_bench import MovingBench, PlatformsBench
from support.moving_combinations import COMBINATIONS
from support.moving_mechanisms import MECHANISMS
from support.moving_robots import URDF, H, MovingBase, MovingElastic, MovingLoops, MovingPlatform, MovingRobot, MovingTouched
from support.oracles import example_urdfs
from support.ros_helpers import ros_domain
from support.rotor_trees import four_joints, hua_arm

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "build" / "live.json"  # of earlier runs: rows of robots that this one does not have
RATE, BACK_AND_FORTH = 1000.0, 500  # samples per second, and how many of a motion that then goes back
SNAKE = 12  # links; compiling 60 takes a minute


def from_examples(name: str) -> Path:
    return next(path for path in example_urdfs() if path.stem == name)


def sea_arm(seed: int) -> MovingRobot:
    """Each motor on the link before its joint, behind a spring, with its own encoder."""
    return MovingElastic(*four_joints(depth=4), size=0.4, seed=seed, measured=True)


ROBOTS: Mapping[str, tuple[str, Callable[[int], MovingRobot]]] = {  # name, oracle, how it is made
    "palletiser": ("multipliers on Pinocchio", lambda seed: MovingLoops("palletiser", seed)),
    "five_bar": ("multipliers on Pinocchio", lambda seed: MovingLoops("five_bar", seed)),
    "gough_stewart": ("multipliers on Pinocchio", lambda seed: MovingPlatform("gough_stewart", seed)),
    "delta": ("multipliers on Pinocchio", lambda seed: MovingPlatform("delta", seed)),
    "hua_arm": ("Pinocchio, rotors as bodies", lambda seed: MovingElastic(*hua_arm(), size=0.5, seed=seed)),
    "sea_arm": ("Pinocchio, rotors as bodies", sea_arm),
    "snake": ("Pinocchio with a free-flyer", lambda seed: MovingBase(example("snake").urdf(SNAKE), seed=seed,
                                                                      gravity=(0.0, 0.0, 0.0))),
    "solo12": ("Pinocchio with a free-flyer", lambda seed: MovingBase(from_examples("solo12"), seed=seed)),
    **{name: ("Pinocchio with multipliers", make) for name, make in COMBINATIONS.items()},
    **{name: ("Pinocchio with multipliers", make) for name, make in MECHANISMS.items()},
    "touched_arm": ("Pinocchio, forces on a link", lambda seed: MovingTouched((URDF / "seven_r.urdf").read_text(), "flange",
                                                                              seed)),
}

CAUSES = """
Repeated samples occur with moving bases: base states and joint states arrive on two topics, and if a joint state overtakes
its base state, the result is for the previous base state, which `~/base_dynamics` contains.

The error of the palletiser's rate above 1e-9 is caused by the oracle. Its loops are over-constrained, so the
multipliers are a least-squares solution, and its torques, of up to 520 N m, scatter by up to 1.2e-11 N m between successive
samples. A difference over 10 ms amplifies this to 1.6e-9; over 5 ms it was 2.4e-9. If the scatter is small, the rates agree
to 1e-10.

With a high load of the machine the percentiles do not characterise the node. The evaluation alone, measured as the minimum of
six times for each sample (`benchmark/served.py`), takes 89 us of processor time for the biped, 98 us at p99.
"""


class Received(NamedTuple):
    """Messages of a node about a moving robot: times (samples,), torques and rates (2, samples, n), and a summary."""

    times: np.ndarray
    torques: np.ndarray
    said: dict[str, Any]


def listened(moving: MovingRobot, samples: int, step: float, seconds: float) -> Received:
    with tempfile.TemporaryDirectory() as folder, ros_domain(Path(folder)) as ros:
        kind = PlatformsBench if "platform.source" in moving.parameters else MovingBench
        bench = kind(ros, moving, Path(folder), step, **{"diagnostics.period": 0.5}).met()
        times, found = zip(*(bench.next() for _ in range(samples)))
        torques = np.array([[message.effort for message in found], [message.effort_rate for message in found]])
        said = {"kind": bench.info[-1].kind, "samples": len(found), "seconds": samples * step, "repeated": bench.repeated}
        return Received(np.array(times), torques, said | (fed(bench, seconds) if seconds else {}))


def compared(name: str, seed: int, moving: MovingRobot, received: Received, rates: int) -> dict[str, Any]:
    """One row: largest errors of torque and rate, each relative to its own truth or to one, and when and where.

    rates: at how many samples, evenly spaced, the rates are compared
    """
    every = np.arange(len(received.times))
    some = np.unique(np.linspace(0, len(every) - 1, min(rates, len(every))).astype(int))
    errors, when, where = [], [], []
    for found, truth_at, samples in zip(received.torques, (moving.torque, moving.rate), (every, some), strict=True):
        truth = np.array([truth_at(received.times[k]) for k in samples])
        error = np.abs(found[samples] - truth) / np.maximum(1.0, np.abs(truth))
        k, joint = np.unravel_index(error.argmax(), error.shape)
        errors.append(float(error.max()))
        when.append(float(received.times[samples[k]]))
        where.append(moving.joints[joint])
    return {"robot": name, "joints": len(moving.joints), "oracle": ROBOTS[name][0], "seed": seed, **received.said,
            "rates": len(some), "errors": errors, "when": when, "where": where}


def fed(bench: MovingBench, seconds: float) -> dict[str, Any]:
    """Return the cost of a sample at 1 kHz: percentiles from the node's diagnostics [us], its processor time
    [us], and how many came in a second.
    """
    pairs = [bench.prepared_at(k / RATE) for k in range(BACK_AND_FORTH)]
    pairs += pairs[-2:0:-1]
    reports, last, count = [], "", round(RATE * seconds)
    before, began = spent(bench.process.pid)[0], time.monotonic()
    for k in range(count):
        while (left := began + k / RATE - time.monotonic()) > 0.0:
            bench.ros.step(left)
        bench.feed(pairs[k % len(pairs)])
        if (values := bench.diagnostics.values).get("published", last) != last:
            last = values["published"]
            reports.append([float(values[f"latency_{share}_us"]) for share in ("p50", "p99")])
    rate = count / (time.monotonic() - began)
    p50, p99 = np.median(reports[2:], axis=0)  # the first ones have samples of before
    cpu = (spent(bench.process.pid)[0] - before) / count
    return {"p50_us": p50, "p99_us": p99, "cpu_us": 1e6 * cpu, "rate_hz": rate, "load": os.getloadavg()[0]}


HEAD = """# Comparison of dynamics_node with independent oracles over DDS

`python benchmark/live.py` publishes the motion of each robot for a dynamics_node in a separate process. Errors are the largest
over all joints, of torque and torque rate, each relative to the reference value or to one, whichever is larger. The reference
of a rate is a sixth-order difference of the oracle's torques, in steps of {step:g} s; for combinations (Robot) it is a
tenth-order difference along a motion that is integrated from the oracle's equations. "Repeated" is the number of samples whose
result, or part of whose input, was lost; every sample received a result. Rows in which all rates are compared are from an
earlier run, before a single class served all robots.

* "Motions given": ~/platform_state moves the robot instead of joint states, on a separate topic for each platform.
* Platforms in series, tripod, leg: the oracle is Pinocchio with multipliers along the motion of the motors.
* Vehicles, flexible arm, eel: the oracles of [the campaign](campaign.md), with sixth-order differences. Samples are states at
  301 instants of a vehicle's motion, and independent states of arm and eel.

| robot | kind | joints | oracle | samples | rates compared | motion | repeated | torque error | at | rate error | at |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""
COSTS = """
The next table gives the cost of a sample in the node while joint states, desired motion, base states and wrenches arrive at
1 kHz and all results are subscribed. The percentiles from the diagnostics cover the time from the joint state's callback to
the publication of the results; processor time is that of the whole process. If the load exceeds the number of processors, here
two, the percentiles include the time of other programs, and fewer samples arrive.

| robot | p50 | p99 | processor time | samples per second | load of the machine |
|---|---|---|---|---|---|
"""


def page(rows: Mapping[str, Mapping[str, Any]]) -> str:
    text = HEAD.format(step=H)
    for row in rows.values():
        where = [f"{joint}, {when:.3f} s" for joint, when in zip(row["where"], row["when"])]
        text += (f"| {row['robot']} | {row['kind']} | {row['joints']} | {row['oracle']} | {row['samples']} | "
                 f"{row.get('rates', row['samples'])} | {row['seconds']:g} s, seed {row['seed']} | {row['repeated']} | "
                 f"{row['errors'][0]:.1e} | {where[0]} | "
                 f"{row['errors'][1]:.1e} | {where[1]} |\n")
    costs = [row for row in rows.values() if "cpu_us" in row]
    text += COSTS if costs else ""
    for row in costs:
        text += (f"| {row['robot']} | {row['p50_us']:.0f} us | {row['p99_us']:.0f} us | {row['cpu_us']:.0f} us | "
                 f"{row['rate_hz']:.0f} | {row['load']:.1f} |\n")
    return text + CAUSES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robots", nargs="*", metavar="ROBOT", help=", ".join(ROBOTS))
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rates", type=int, default=100, help="samples whose rates are compared, evenly spaced")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--step", type=float, default=1e-3, help="of the motion, between two samples [s]")
    parser.add_argument("--cost", type=float, default=0.0, metavar="SECONDS")
    args = parser.parse_args()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for name in args.robots or ROBOTS:
        moving = ROBOTS[name][1](args.seed)
        row = compared(name, args.seed, moving, listened(moving, args.samples, args.step, args.cost), args.rates)
        print(json.dumps(row), flush=True)
        kept[name] = kept.get(name, {}) | row
        KEPT.write_text(json.dumps(kept, indent=1))
    (HERE / "live.md").write_text(page({name: kept[name] for name in ROBOTS if name in kept}), encoding="utf-8")


if __name__ == "__main__":
    main()
