"""Durations of time laws on seeded random paths and robots, to compare one state of the solver with another.

    python benchmark/scaling_laws.py --save before.json [--first 0] [--cases 60]
    python benchmark/scaling_laws.py --against before.json [--save after.json]

Every law is checked separately: its largest utilization of the limits at 20 000 instants, at its own speed and at half of it.
`seconds` is processor time of one solution, after one to warm up.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros.errors import RneaError
from rnea_ros.trajectory.constraints import Constraints, PathLimits
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.scaled_plan import follow_plan, plan_from_waypoints
from rnea_ros.trajectory.time_law import TimeLaw
from rnea_ros.trajectory.time_optimal import fastest_law
from support.scaling_cases import ARMS, dynamics, limits_for, waypoints

KINDS = ("torque, rate, velocity", "velocity, acceleration, jerk", "all")
SPEEDS = (1.05, 1.6, 3.0)  # times too fast, of the plans that are followed
INSTANTS = 20_000
WORSE = 1e-3  # of the duration: more is a finding


class Case(NamedTuple):
    """seed -> a path of an arm, and its limits."""

    arm: str
    kind: str
    points: int
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm}, {self.points} points, {self.kind}, seed {self.seed}"

    def constraints(self, path: Any = None) -> Constraints:
        known = dynamics(self.arm)
        path = path or path_through(waypoints(known.robot, self.seed, self.points))
        every = limits_for(known.robot, path)._replace(jerk=np.full(path.n, 400.0))
        unknown = np.full(path.n, np.nan)
        left_out = {KINDS[0]: ("acceleration", "jerk"), KINDS[1]: ("effort", "effort_rate"), KINDS[2]: ()}[self.kind]
        limits = PathLimits(*every)._replace(**dict.fromkeys(left_out, unknown))
        return Constraints(path, known if self.kind != KINDS[1] else None, limits, known.robot.joint_names)


def cases(first: int, count: int) -> Iterator[Case]:
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        yield Case(ARMS[seed % len(ARMS)], KINDS[seed // len(ARMS) % len(KINDS)], int(rng.choice([3, 5, 8, 10, 20, 40])), seed)


def used(constraints: Constraints, law: TimeLaw) -> float:
    """Largest use of a limit, at full and at half speed."""
    s, v, a, u = law(np.linspace(0.0, law.duration, INSTANTS))
    return max(float(constraints.utilization(np.stack((s, v * k, a * k**2, u * k**3))).max()) for k in (1.0, 0.5))


def solved(constraints: Constraints, work: Any) -> dict[str, float]:
    work()
    start = time.process_time()
    law = work()
    return {"seconds": time.process_time() - start, "duration": law.duration, "used": used(constraints, law)}


def results(case: Case) -> Iterator[tuple[str, dict[str, float]]]:
    """Return the fastest law, and the law that follows a plan that is too fast."""
    constraints = case.constraints()
    law = None
    try:
        found = solved(constraints, lambda: fastest_law(constraints))
        law = fastest_law(constraints)
        yield f"fastest: {case.name}", found
    except RneaError as error:
        yield f"fastest: {case.name}", {"error": type(error).__name__}  # type: ignore[dict-item]
    if law is None or case.points > 10:
        return
    path, speed = constraints.path, SPEEDS[case.seed % len(SPEEDS)]
    times = np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / speed
    plan = plan_from_waypoints(waypoints(dynamics(case.arm).robot, case.seed, case.points), times)
    here = case.constraints(plan.path)
    yield f"follow x {speed}: {case.name}", solved(here, lambda: follow_plan(here, plan).law)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--against", type=Path)
    args = parser.parse_args()
    known = json.loads(args.against.read_text()) if args.against else {}
    found: dict[str, dict[str, float]] = {}
    for case in cases(args.first, args.cases):
        for name, result in results(case):
            found[name] = result
            print(line(name, result, known.get(name, {})), flush=True)
            if args.save:
                args.save.write_text(json.dumps(found, indent=1))
    if known:
        print(summary(found, known))


def line(name: str, result: dict[str, float], before: dict[str, float]) -> str:
    if "error" in result:
        return f"{name}: {result['error']}"
    text = f"{name}: {result['duration']:.4f} s, uses {result['used']:.5f}, {1e3 * result['seconds']:.1f} ms"
    if "duration" in before:
        change = result["duration"] / before["duration"] - 1.0
        text += f"; {100 * change:+.3f} % of duration, x {before['seconds'] / result['seconds']:.1f} as fast"
        text += "  <-- longer" if change > WORSE else ""
    return text


def summary(found: dict[str, dict[str, float]], known: dict[str, dict[str, float]]) -> str:
    lines = []
    for kind in ("fastest", "follow"):
        both = [(found[name], known[name]) for name in found if name.startswith(kind) and "duration" in found[name]
                and "duration" in known.get(name, {})]
        if both:
            change = 100.0 * np.array([a["duration"] / b["duration"] - 1.0 for a, b in both])
            gain = [b["seconds"] / a["seconds"] for a, b in both]
            lines.append(f"{kind}: {len(both)} laws, duration {change.min():+.3f} to {change.max():+.3f} %, median "
                         f"{np.median(change):+.3f} %, {int((change > 100 * WORSE).sum())} longer by more than 0.1 %; largest "
                         f"use {max(a['used'] for a, _ in both):.5f}; x {np.median(gain):.1f} as fast in the median, "
                         f"{min(gain):.1f} to {max(gain):.1f}")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
