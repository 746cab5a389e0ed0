"""New limits and payloads at random instants of scaled motions: by how much are they exceeded, and by how much must they be?

    python benchmark/limit_changes.py [--cases 100] [--first 0] [--optimum]

Three arms, random points at up to their limits, half of the motions in a pause, an override or a resumption. Tighter limits of
effort, effort rate or all quantities, or a payload, hold from a random instant on and are assessed at once. A limit counts as
exceeded where more of it is used than 1 and, if it cannot change suddenly (not the rate of effort), than at the change. With
--optimum, IPOPT computes the least possible excess of any motion on the path, free in jerk. About 2 s a case, 5 s with it.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import InputError
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.limit_check import steady_rate
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.time_law import TimeLaw
from rnea_ros.trajectory.trajectory_scaler import SLOWED_LEVEL, Reference, TrajectoryScaler
from support.scaling_cases import DT, Motion, again
from support.scaling_optimum import continuous_constraints, least_excess

ARMS = {"seven_r": "link7", "ur5_robot": "wrist_3_link", "stanford": None}  # and the link that carries payloads
SHARES = (0.6, 0.3, 0.1)  # of the cases
MASSES, PAYLOAD_CENTER = (0.2, 0.4, 0.8), (0.0, 0.0, 0.05)  # kg, m
BEFORE = ("", "", "pause", "override", "resumption")
PLAYED_S = 1.5  # after the change
STANDING = 0.05  # rate below which a motion hardly exceeds anything


class Changed(NamedTuple):
    """Result of one case: excess, least possible excess (NaN: not computed), seconds outside the limits, ms of the tick."""

    excess: float
    least: float
    outside: float
    tick: float


@cache
def solved(arm: str, seed: int) -> tuple[Motion, TrajectoryScaler]:
    motion = Motion(arm, seed)
    return motion, TrajectoryScaler(motion.here, motion.plan)


@cache
def loaded(arm: str, mass: float) -> PathDynamics:
    return PathDynamics(solved(arm, 1)[0].robot.with_payload(ARMS[arm], mass, PAYLOAD_CENTER))


class Case:
    """One motion, and a change of its limits or payload at an instant.

    kind, before   : what changes, and what happened before
    mass           : of the payload [kg]
    constraints    : new ones
    scaler         : at the instant, before the change
    sigma, rate    : time of its law [s] and rate there
    """

    def __init__(self, seed: int):
        rng = np.random.default_rng(seed)
        self.arm = list(ARMS)[rng.choice(len(ARMS), p=SHARES)]
        self.motion, planned = solved(self.arm, int(rng.integers(1, 4)))
        self.law = planned.current.law
        self._choose_constraints(rng)
        self.scaler = again(planned)
        self.scaler.time_scaling.advance(float(rng.uniform(0.1, self.law.duration - 0.5)))
        self._disturb(rng)
        self.sigma, self.rate = self.scaler.time_scaling.sigma, self.scaler.time_scaling.k

    def _choose_constraints(self, rng: np.random.Generator) -> None:
        self.kind, self.mass = ("payload", "effort", "rates", "all")[rng.integers(4)], 0.0
        if self.kind == "payload" and ARMS[self.arm] is not None:
            self.mass = float(rng.choice(MASSES))
            self.constraints = self.motion.here
            self.constraints.dynamics = loaded(self.arm, self.mass)
            return
        shares = rng.uniform(0.75, 0.95, 4)
        if self.kind != "all":
            shares[[0 if self.kind == "rates" else 1, 2, 3]] = 1.0
        names, limits = ("effort", "effort_rate", "velocity", "acceleration"), self.motion.limits
        limits = limits._replace(**{name: share * getattr(limits, name) for name, share in zip(names, shares)})
        self.constraints = self.motion.constraints(self.motion.path, limits)

    def _disturb(self, rng: np.random.Generator) -> None:
        self.before, ticks = BEFORE[rng.integers(len(BEFORE))], int(rng.integers(5, 120))
        if self.before:
            self.scaler.override(0.0 if self.before == "pause" else 0.5)
            for _ in range(300 if self.before == "resumption" else ticks):
                self.scaler.tick(DT)
        if self.before == "resumption":
            self.scaler.override(1.0)
            for _ in range(ticks):
                self.scaler.tick(DT)

    def play(self, seconds: float = PLAYED_S) -> tuple[list[Reference], list[float]] | None:
        """Return references from the change on, and ms of each tick; None where the new limits cannot be kept at all."""
        references, ticks = [self.scaler.reference()], []
        try:
            self.scaler.change(self.constraints)
        except InputError:
            return None
        while not self.scaler.done and len(references) < seconds / DT:
            begin = time.thread_time()
            references.append(self.scaler.tick(DT))
            ticks.append(1e3 * (time.thread_time() - begin))
        return references, ticks

    def least(self, begin: Reference, count: int = 100) -> float:
        """Return the least possible excess. Raises RuntimeError where IPOPT does not converge."""
        most = largest_rate_ahead(self.constraints, self.law, self.sigma)
        return max(least_excess(self.constraints, self.law, self.sigma, most, begin, self.rate, count=count), 0.0)


def largest_rate_ahead(constraints: Constraints, law: TimeLaw, sigma: float) -> float:
    return steady_rate(constraints, law.segment(sigma, law.duration), SLOWED_LEVEL)


def change(seed: int, with_optimum: bool) -> Changed | None:
    """Return the result of a case; None where new limits cannot be kept at all, or the motion almost rests or ends."""
    case = Case(seed)
    if case.sigma > case.law.duration - 0.3 or case.rate < STANDING or (played := case.play()) is None:
        return None
    references, ticks = played
    used = case.constraints.utilization(np.array([(r.s, r.sd, r.sdd, r.sddd) for r in references]).T)
    bound = np.where(continuous_constraints(case.constraints), np.maximum(used[0], 1.0), 1.0)
    excess = max(float((used[1:] - bound).max()), 0.0)
    outside = DT * float((used[1:] > 1.0 + 1e-6).any(axis=1).sum())
    least = np.nan
    if with_optimum:
        with suppress(RuntimeError):
            least = case.least(references[0], 60)
    print(f"{seed:4d} {case.arm:9s} {case.kind:8s} {case.before:10s} {case.sigma:7.3f} s  used {used[0].max():.3f}  "
          f"excess {excess:.4f}  least {least:.4f}  outside {outside:.3f} s  tick {ticks[0]:.2f} ms", flush=True)
    return Changed(excess, least, outside, ticks[0])


def summary(values: np.ndarray) -> str:
    above = (values > 0.01).sum()
    return f"mean {values.mean():.4f}, largest {values.max():.4f}, above 0.01 in {above} of {len(values)}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--first", type=int, default=0, help="seed")
    parser.add_argument("--optimum", action="store_true", help="compute the least possible excess too")
    args = parser.parse_args()
    seeds = range(args.first, args.first + args.cases)
    found = np.array([result for seed in seeds if (result := change(seed, args.optimum)) is not None])
    excess, least, outside, tick = found.T
    print(f"{len(found)} changes; excess: {summary(excess)}")
    if not np.isnan(least).all():
        avoidable = (excess - least)[~np.isnan(least)]
        print(f"least possible: {summary(least[~np.isnan(least)])}; avoidable: {summary(avoidable)}")
    print(f"outside the new limits: mean {outside.mean():.3f} s, largest {outside.max():.3f} s")
    print(f"first tick: median {np.median(tick):.2f} ms, largest {tick.max():.2f} ms")
