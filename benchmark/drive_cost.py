"""Cost of drives in a robot file for each joint state of dynamics_node: torques, rates and three messages as bytes.

    python benchmark/drive_cost.py [--rounds 200]

A 7R arm without drives, with data sheets, and with a supply and thermal limits too, all in turn, 200 calls a round. The
fastest round counts, since other work only slows rounds down.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_ros import load
from rnea_ros.nodes.dynamics.messages import TOPICS, DynamicsMessages

URDF = Path(__file__).resolve().parents[1] / "urdf" / "seven_r.urdf"
CALLS = 200
SHEET = {"gear_ratio": 100.0, "torque_constant": 0.1, "resistance": 0.5, "inductance": 2.5e-3, "supply_voltage": 48.0,
         "max_current": 20.0, "max_power": 400.0}
THERMAL = {"continuous_current": 4.0, "thermal_time_constant": 30.0}


def joint_state(sheet: dict[str, float], supply: bool) -> Callable[[], None]:
    """Return the time of one call."""
    names = load(URDF).joint_names
    sections = {"drives": dict.fromkeys(names, sheet)} if sheet else {}
    supplies = {"supplies": {"rail": {"max_power": 800.0, "max_braking_power": 100.0}}} if supply else {}
    robot = load(URDF, {"version": 1, **sections, **supplies})
    out, now = DynamicsMessages(robot, robot.limits, "map"), [0]
    motion = np.random.default_rng(0).uniform(-1.0, 1.0, (4, robot.n))

    def work() -> None:
        now[0] += 1_000_000
        stamp = Time(sec=now[0] // 10**9, nanosec=now[0] % 10**9)
        out.fill(stamp, motion, robot.dynamics(*motion))
        for sent in map(out.sent, range(len(TOPICS))):
            sent.packed(out.stamp)

    return work


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=200)
    cases = {"no drives": ({}, False), "data sheets": (SHEET, False),
             "data sheets, supply, thermal": ({**SHEET, **THERMAL}, True)}
    works = {name: joint_state(*case) for name, case in cases.items()}
    fastest = dict.fromkeys(works, np.inf)
    for _ in range(parser.parse_args().rounds):
        for name, work in works.items():
            began = time.perf_counter()
            for _ in range(CALLS):
                work()
            fastest[name] = min(fastest[name], 1e6 * (time.perf_counter() - began) / CALLS)
    print(f"load {os.getloadavg()[0]:.1f}")
    for name, spent in fastest.items():
        print(f"| {name} | {spent:.1f} us | {spent / fastest['no drives']:.2f} |")


if __name__ == "__main__":
    main()
