"""Cost by number of joints: time of a call, and from URDF to the first result."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass
from unittest import mock

import numpy as np
from cases import Case, chain
from loops import Pinocchio, our_loop
from timing import Times, interleaved

from rnea_ros import Robot

SIZES = (7, 16, 32, 64, 128)


@dataclass(frozen=True)
class Size:
    n: int
    build: float  # s, URDF to first result, nothing kept from before
    again: float  # the same when this machine has compiled the robot before
    kernel: Times
    rnea: Times | None  # of Pinocchio in C++


def build(source: str, cache: str = "") -> float:
    """Return the processor time [s] from a URDF's text to the first tau and tau_rate;
    cache: folder for compiled code, or none.
    """
    with mock.patch.dict(os.environ, RNEA_ROS_CACHE=cache):
        start = time.process_time()
        robot = Robot.from_urdf(source.encode())
        robot.torque_and_rate(*np.zeros((4, robot.n)))
        return time.process_time() - start


def measure(rounds: int, with_pinocchio: bool) -> list[Size]:
    found = []
    for n in SIZES:
        source = chain(n)
        took = min(build(source) for _ in range(3 if n <= 32 else 1))
        with tempfile.TemporaryDirectory() as cache:
            build(source, cache)
            again = min(build(source, cache) for _ in range(3))
        case = Case(f"chain of {n}", source)
        sides = {"kernel": our_loop(case, "torque_and_rate")}
        if with_pinocchio:
            sides["rnea"] = Pinocchio(case).loop("rnea")
        times = interleaved(sides, rounds)
        found.append(Size(n, took, again, times["kernel"], times.get("rnea")))
    return found


def straightness(sizes: list[Size]) -> float:
    """Time per joint of the longest chain over the same of a chain of 32: 1 where cost is linear."""
    per_joint = {size.n: size.kernel.low / size.n for size in sizes}
    return per_joint[SIZES[-1]] / per_joint[32]
