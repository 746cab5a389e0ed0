"""Many samples at once: share of the machine's vector peak, and what a second thread brings."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from cases import ROOT, Case
from loops import vector_peak
from timing import Loop, Times, interleaved

from rnea_ros.algorithms import component_rate
from rnea_ros.algorithms.inertial_parameters import regrouped
from rnea_ros.codegen.program import trace

SIZES = (2_000, 20_000, 200_000)  # samples: in the cache of a core, in that of the processor, in memory
THREADS = 2


@dataclass(frozen=True)
class Batch:
    """Seconds per sample by size; by number of threads for the largest; operations per sample; peak of one core [1/s]."""

    name: str
    times: dict[int, Times]
    threads: dict[int, Times]
    operations: int
    peak: float

    def share(self, samples: int) -> float:
        return self.operations / self.times[samples].low / self.peak

    @property
    def speedup(self) -> float:
        """Return the ratio of minimum times for the largest size."""
        return self.threads[1].low / self.threads[THREADS].low

    @property
    def best(self) -> float:
        return max(self.share(n) for n in SIZES)


def operations(case: Case) -> int:
    """Multiplications and additions of tau and tau_rate; sines and cosines are not counted."""
    light = regrouped(case.robot.model, case.robot.gravity_vector, second_moments=True)
    blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), case.n)
    counts = trace(lambda **motion: component_rate.torque_and_rate(light, *motion.values(), case.robot.gravity_vector),
                   blocks).operation_counts
    return counts["mul"] + counts["add"] + counts["sub"]


def _loop(case: Case, samples: int, threads: int = 1) -> Loop:
    """Time torque_and_rate for a number of samples and threads."""
    motion = np.random.default_rng(1).uniform(-1.0, 1.0, (4, samples, case.n))

    def loop(count: int) -> float:
        os.environ["RNEA_ROS_THREADS"] = str(threads)
        start = time.perf_counter()
        for _ in range(count):
            case.robot.torque_and_rate(*motion)
        return time.perf_counter() - start

    return loop


def measure(name: str, source: Path, rounds: int) -> Batch:
    case = Case(name, source)
    _loop(case, SIZES[-1])(1)  # code for many samples at a time is made when there have been many
    peak = vector_peak(rounds)
    sizes = interleaved({str(n): _loop(case, n) for n in SIZES}, rounds)
    times = {n: sizes[str(n)].per(n) for n in SIZES}
    both = interleaved({str(n): _loop(case, SIZES[-1], n) for n in (1, THREADS)}, rounds)
    threads = {n: both[str(n)].per(SIZES[-1]) for n in (1, THREADS)}
    return Batch(name, times, threads, operations(case), max(peak, vector_peak(rounds)))


def cores() -> int:
    return len(os.sched_getaffinity(0))


STANFORD, SEVEN = ROOT / "urdf" / "stanford.urdf", ROOT / "urdf" / "seven_r.urdf"
