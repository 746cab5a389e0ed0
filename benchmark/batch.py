"""Many samples at once: share of the machine's vector peak, and what a second thread brings."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from loops import vector_peak
from robots import ROOT, Case
from timing import Loop, Times, interleaved

from rnea_ros.algorithms import component_rate
from rnea_ros.codegen.program import trace
from rnea_ros.identification.base_parameters import regrouped

SIZES = (512, 4096, 100_000)  # samples
THREADS = 2


@dataclass(frozen=True)
class Batch:
    """Seconds per sample by size; by number of threads for the middle size; operations per sample; peak of one core [1/s]."""

    name: str
    times: dict[int, Times]
    threads: dict[int, Times]
    operations: int
    peak: float

    def share(self, samples: int) -> float:
        return self.operations / self.times[samples].low / self.peak

    @property
    def speedup(self) -> float:
        """The best pair of turns that followed each other: both threads need a core of their own meanwhile."""
        return max(one / two for one, two in zip(self.threads[1].values, self.threads[THREADS].values))


def operations(case: Case) -> int:
    """Multiplications and additions of tau and tau_rate; sines and cosines are not counted."""
    light = regrouped(case.robot.model, case.robot.gravity_vector, second_moments=True)
    blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), case.n)
    counts = trace(lambda **motion: component_rate.torque_and_rate(light, *motion.values(), case.robot.gravity_vector),
                   blocks).operation_counts
    return counts["mul"] + counts["add"] + counts["sub"]


def _loop(case: Case, samples: int, threads: int = 1) -> Loop:
    """Calls of torque_and_rate on so many samples, in so many threads with a part each."""
    motion = np.random.default_rng(1).uniform(-1.0, 1.0, (4, samples * threads, case.n))
    parts = [[np.ascontiguousarray(block) for block in part] for part in np.split(motion, threads, axis=1)]
    pool = ThreadPoolExecutor(threads)

    def work(part: list[np.ndarray], count: int) -> None:
        for _ in range(count):
            case.robot.torque_and_rate(*part)

    def loop(count: int) -> float:
        start = time.perf_counter()
        if threads == 1:
            work(parts[0], count)
        else:
            list(pool.map(work, parts, [count] * threads))
        return time.perf_counter() - start

    return loop


def measure(name: str, source: object, rounds: int) -> Batch:
    case = Case(name, source)  # type: ignore[arg-type]
    peak = vector_peak(rounds)
    sizes = interleaved({str(n): _loop(case, n) for n in SIZES}, rounds)
    times = {n: sizes[str(n)].per(n) for n in SIZES}
    both = interleaved({str(n): _loop(case, SIZES[1], n) for n in (1, THREADS)}, 3 * rounds, 20e-3)
    threads = {n: both[str(n)].per(n * SIZES[1]) for n in (1, THREADS)}
    return Batch(name, times, threads, operations(case), max(peak, vector_peak(rounds)))


def cores() -> int:
    return len(os.sched_getaffinity(0))


STANFORD, SEVEN = ROOT / "urdf" / "stanford.urdf", ROOT / "urdf" / "seven_r.urdf"
