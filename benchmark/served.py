"""Processor time that dynamics_node spends on one sample of a combination, without messages.

    python benchmark/served.py [NAME ...]

NAME is one of test/support/moving_combinations.py; default: biped. A motion of half a second at 1 kHz, there and back, is
evaluated six times; the least time of each sample leaves out what other work of the machine costs.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

import rnea_ros
from rnea_ros.nodes.common.base import BaseMotion
from rnea_ros.nodes.dynamics.served_robot import ServedGeneralRobot, no_loads
from support.moving_combinations import combination

SAMPLES, ROUNDS = 500, 6
PARAMETERS = {"loops.tolerance": 0.1, "base.source": "state", "base.motion_source": "estimated", "base.timeout": 1.0}


def measure(name: str) -> str:
    moving = combination(name)
    loaded = rnea_ros.load(moving.urdf, {"version": 1, **moving.content})
    robot = ServedGeneralRobot(loaded, {**PARAMETERS, **moving.parameters})
    robot.prepare(no_loads)
    unknown, samples, took = np.full((4, len(robot.optional)), np.nan), [], []
    for k in range(SAMPLES):
        samples.append((moving.motion(k * 1e-3), BaseMotion(moving.base(k * 1e-3)) if moving.base else None))
    samples += samples[-2:0:-1]
    for _ in range(ROUNDS):
        for motion, base in samples:
            began = time.thread_time_ns()
            robot.evaluate(motion, unknown, no_loads, base)
            took.append(time.thread_time_ns() - began)
    every = np.array(took).reshape(ROUNDS, -1) * 1e-3
    least, all_of_it = (np.percentile(x, [50, 99]) for x in (every.min(axis=0), every))
    return (f"{name}: p50 {least[0]:.0f} us, p99 {least[1]:.0f} us of the least times; p50 {all_of_it[0]:.0f} us, p99 "
            f"{all_of_it[1]:.0f} us of all, load {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors")


if __name__ == "__main__":
    for one in sys.argv[1:] or ["biped"]:
        print(measure(one), flush=True)
