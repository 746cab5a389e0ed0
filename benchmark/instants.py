"""Random motions, disturbed at random, judged between the ticks: is every limit kept at every instant?

    python benchmark/instants.py [--cases 300] [--first 0]

Paths through random points, planned at random speeds, in any of the limits, on arms and without any; half of the arms also
have limits of the rate of the torque without gravity. Pauses, overrides and other limits come at random times, workers are of
any speed, ticks take 0.1 to 20 ms. Torques and their rates are Pinocchio's. After a change of limits, a limit counts as
exceeded where more of it is used than by the law under way, at any constant rate, and than the scaler reports. A line for
each case; at the end the largest use of each limit, and how long limits that came on the way were exceeded. Some 3 s a case.
"""

from __future__ import annotations

import argparse
import sys
from functools import cache, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import InputError
from rnea_ros.trajectory.constraints import QUANTITIES, Constraints, PathLimits
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from rnea_ros.trajectory.time_optimal import CHECKED_LEVEL
from rnea_ros.trajectory.trajectory_scaler import Reference, TrajectoryScaler
from support.scaling_cases import DelayedExecutor, dynamics, limits_for, references_within_tick, urdf, waypoints

ARMS = ("", "", "rr", "ur5_robot", "stanford")  # "": joints without a robot
SAMPLE_PERIOD_S = 2.5e-4  # s; largest distance of samples
RATES = np.linspace(0.1, 1.0, 10)
MOST = 60.0  # s
REPORTED_TOL = 2e-3  # of a limit, between the samples of a transition


class Case:
    """One motion, its limits, and what becomes of it."""

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng(seed)
        self.more = np.random.default_rng((seed, 1))  # for what was added later: the motion of a seed stays
        self.arm = ARMS[rng.integers(len(ARMS))]
        robot = dynamics(self.arm).robot if self.arm else None
        count, n = int(rng.integers(2, 8)), robot.n if robot else int(rng.integers(1, 4))
        points = waypoints(robot, seed, count) if robot else np.cumsum(rng.normal(size=(count, n)), axis=0)
        self.commanded = "without_gravity" if robot and self.more.random() < 0.5 else "total"
        gaps = np.linalg.norm(np.diff(points, axis=0), axis=1) * rng.uniform(0.3, 1.0, count - 1) / rng.uniform(0.5, 4.0)
        self.plan = plan_from_waypoints(points, np.concatenate(([0.0], np.cumsum(gaps))))
        self.limits = self._limits(robot)
        self.dt = 10.0 ** rng.uniform(-4.0, np.log10(0.02))
        self.options = {"catch_up": bool(rng.random() < 0.7), "at_once": bool(rng.random() < 0.3)}

    def _limits(self, robot: Any) -> PathLimits:
        rng, n = self.rng, self.plan.path.n
        velocity, acceleration = 10.0 ** rng.uniform(0.0, 0.7, n), 10.0 ** rng.uniform(0.5, 1.5, n)
        jerk = acceleration * 10.0 ** rng.uniform(0.7, 1.7, n)
        if robot is None:
            return PathLimits(*np.full((2, n), np.nan), velocity, acceleration, jerk, np.full(n, np.nan))
        found = limits_for(robot, self.plan.path, rng.uniform(0.03, 0.3), rng.uniform(1.2, 2.0))
        unknown = rng.random(5) < (0.0, 0.2, 0.2, 0.4, 0.7)
        given = (found.effort, found.effort_rate, found.velocity, acceleration, jerk)
        commanded = found.effort_rate * self.more.uniform(0.5, 1.0) if self.commanded != "total" else np.full(n, np.nan)
        return PathLimits(*(np.full(n, np.nan) if gone else limit for gone, limit in zip(unknown, given)), commanded)

    def constraints(self, limits: PathLimits) -> Constraints:
        return Constraints(self.plan.path, dynamics(self.arm) if self.arm else None, limits, commanded=self.commanded)

    def actions(self, duration: float) -> list:
        rng, found = self.rng, []
        for t in np.sort(rng.uniform(0.0, duration, rng.integers(1, 9))):
            kind = rng.integers(5)
            if kind < 2:
                slow, fast = (partial(TrajectoryScaler.override, share=share)
                              for share in (rng.choice([0.0, 0.2, 0.5, 0.8, 0.97]), 1.0))
                found += [(t, slow), (t + rng.uniform(0.0, 1.0), fast)]
            elif kind < 4:
                found += [(t, partial(TrajectoryScaler.pause)), (t + rng.uniform(0.0, 1.0), partial(TrajectoryScaler.resume))]
            else:
                scale = np.append(rng.uniform(0.85, 1.2, 5), self.more.uniform(0.85, 1.2))
                limits = PathLimits(*(limit * by for limit, by in zip(self.limits, scale)))
                found.append((t, partial(TrajectoryScaler.change, constraints=self.constraints(limits))))
        found += [(duration + 1.0, partial(TrajectoryScaler.resume)),
                  (duration + 1.0, partial(TrajectoryScaler.override, share=1.0))]
        return sorted(found, key=lambda action: action[0])

    def play(self) -> PlayedMotion:
        delay = int(self.rng.choice([0, 1, 30, 300]) * 1e-3 / self.dt) + 1
        worker = DelayedExecutor(delay) if self.rng.random() < 0.5 else None
        scaler = TrajectoryScaler(self.constraints(self.limits), self.plan, **self.options, worker=worker)
        waiting, played = self.actions(scaler.current.law.duration), PlayedMotion(self.limits)
        while not scaler.done and scaler.t < MOST:
            while waiting and scaler.t >= waiting[0][0]:
                action = waiting.pop(0)[1]
                try:
                    action(scaler)
                except InputError:  # gravity alone is too much for other limits
                    continue
                if action.func is TrajectoryScaler.change:
                    played.asked.append((scaler.t, action.keywords["constraints"].limits))
            if worker is not None:
                worker.step()
            before = scaler.constraints
            seen = references_within_tick(scaler, self.dt, max(2, int(np.ceil(self.dt / SAMPLE_PERIOD_S))))
            if scaler.constraints is not before:
                played.allowed = np.maximum(excess(scaler), scaler.excess.peak + REPORTED_TOL)
            inside = scaler.constraints.limits
            force = inside if scaler.max_rate >= 1.0 else PathLimits(*(a * b for a, b in zip(inside, played.allowed)))
            played.seen += seen
            played.force += [np.array(force)] * len(seen)
        return played


class PlayedMotion:
    """Sampled motion, the limits in force (6, n), and the requested limits with their times."""

    def __init__(self, limits: PathLimits):
        self.seen: list[Reference] = []
        self.force: list[np.ndarray] = []
        self.asked: list[tuple[float, PathLimits]] = []
        self.allowed = np.ones((len(QUANTITIES), len(limits.effort)))

    def values(self, arm: str) -> np.ndarray:
        """Return (samples, 6, n): effort, effort rate, velocity, acceleration, jerk, effort rate without gravity."""
        motion = np.array([(r.q, r.qd, r.qdd, r.qddd) for r in self.seen])
        torque = (np.array([torque_and_rates(judge(arm), *sample) for sample in motion]) if arm
                  else np.zeros_like(motion[:, :3]))
        return np.concatenate((torque[:, :2], motion[:, 1:], torque[:, 2:]), axis=1)


def excess(scaler: TrajectoryScaler) -> np.ndarray:
    """(6, n) by how much the law under way is beyond the new limits further on, at any rate: until it has come down."""
    law, constraints = scaler.current.law, scaler.constraints
    s, v, a, u = law(np.arange(scaler.time_scaling.sigma, law.duration, 1e-4))
    used = np.max([constraints.utilization(np.stack((s, v * k, a * k**2, u * k**3))).max(axis=0) for k in RATES], axis=0)
    found = np.ones((len(QUANTITIES), constraints.path.n))
    for (joint, quantity), most in zip(constraints.labels, used):
        found[QUANTITIES.index(quantity), joint] = max(1.0, most / CHECKED_LEVEL)
    return found


@cache
def judge(arm: str) -> tuple[Any, Any]:
    model = pinocchio.buildModelFromUrdf(str(urdf(arm)))
    assert tuple(model.names)[1:] == dynamics(arm).robot.joint_names and model.nq == model.nv
    return model, model.createData()


def torque_and_rates(judge: tuple[Any, Any], q: np.ndarray, qd: np.ndarray, qdd: np.ndarray,
                     qddd: np.ndarray) -> tuple[Any, ...]:
    """Torque, its rate, and the rate of the torque without gravity, (n,) each. judge: model and data."""
    by_q, by_qd, mass = pinocchio.computeRNEADerivatives(*judge, q, qd, qdd)
    tau = judge[1].tau.copy()
    mass = np.triu(mass) + np.triu(mass, 1).T
    rate, weight = by_q @ qd + by_qd @ qdd + mass @ qddd, pinocchio.computeGeneralizedGravityDerivatives(*judge, q)
    return tau, rate, rate - weight @ qd


def checked(seed: int) -> tuple[np.ndarray, list[float], float]:
    """Return the largest utilization of each limit (6,), seconds beyond each limit, and the duration."""
    case = Case(seed)
    played = case.play()
    values, t = np.abs(played.values(case.arm)), np.array([r.t for r in played.seen])
    used = np.nan_to_num(values / np.array(played.force)).max(axis=(0, 2))
    outside = []
    for (since, limits), (until, _) in pairwise([*played.asked, (np.inf, None)]):
        beyond = t[(t > since) & (t < until) & (np.nan_to_num(values / np.array(limits)).max(axis=(1, 2)) > 1.0)]
        outside.append(float(beyond.max(initial=since) - since))
    return used, outside, played.seen[-1].t


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="seed")
    args = parser.parse_args()
    most, times = np.zeros(len(QUANTITIES)), []
    for seed in range(args.first, args.first + args.cases):
        used, outside, duration = checked(seed)
        most, times = np.maximum(most, used), times + outside
        said = (f"{seconds:.3f}" for seconds in outside)
        print(f"{seed:4d} {duration:8.4f} s  {used.max():.6f} of {QUANTITIES[used.argmax()]}", *said, flush=True)
    print("largest:", *(f"{name} {use:.6f}" for name, use in zip(QUANTITIES, most)))
    print(f"other limits exceeded for: median {np.median(times):.3f} s, most {np.max(times):.3f} s, of {len(times)}")
