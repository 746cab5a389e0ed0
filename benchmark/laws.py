"""Time laws: how long solving takes, beside COPP (velocity, acceleration, jerk) and TOPP-RA (torque, second order).

    python benchmark/laws.py

Writes laws.md; a section of `make bench` too. Random points of the 7R arm. What is timed is the solution alone, kernels made
before: processor time of the thread, the least of some rounds, all sides in turn. COPP is asked as its README says: TOPP2-RA,
then its SOCP twice around the last answer, on 1001 points. Its paths are ours, sampled.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from notes import NOTES
from scaling_laws import KINDS, Case

from rnea_ros.errors import MissingPackage
from rnea_ros.trajectory.constraints import Constraints
from rnea_ros.trajectory.scaled_plan import ScaledPlan, follow_plan, plan_from_waypoints
from rnea_ros.trajectory.time_optimal import fastest_law
from rnea_ros.trajectory.trajectory_scaler import LEAD_S, TrajectoryScaler, next_law
from support.scaling_cases import dynamics, waypoints

HERE = Path(__file__).resolve().parent
ARM, SEED = "seven_r", 1
TORQUE, JERK = KINDS[:2]
POINTS = (10, 60, 200)
FOLLOWED = (10, 60)
BESIDE = (5, 10, 20)  # points of paths that COPP is given too
N_SAMPLES = 1001
SPEED = 1.6  # times too fast, of the plan that is followed
ROUNDS = 5


class Solved(NamedTuple):
    """seconds: least processor time; duration: of the law, nan where there is none."""

    seconds: float
    duration: float


class _Never(Executor):
    """A worker that does not answer."""

    def submit(self, work: Any, /, *args: Any, **kwargs: Any) -> Future:
        return Future()


def measure() -> dict[str, Any]:
    """name -> Solved; "missing": peers that are not installed."""
    sides: dict[str, Callable[[], float]] = {}
    missing = []
    for points in POINTS:
        constraints = Case(ARM, TORQUE, points, SEED).constraints()
        sides[f"fastest {points}"] = partial(_fastest, constraints)
        plan, here = _plan(constraints, points)
        sides[f"first answer {points}"] = partial(_first_answer, here, plan)
        if points in FOLLOWED:
            sides[f"follow {points}"] = partial(_followed, here, plan)
            current = follow_plan(here, plan)
            sides[f"take over {points}"] = partial(_taken_over, here, plan, current)
            sides[f"the rest of it {points}"] = partial(_rest_solved, here, plan, current)
    for points in BESIDE:
        constraints = Case(ARM, JERK, points, SEED).constraints()
        sides[f"jerk {points}"] = partial(_fastest, constraints)
        try:
            sides[f"COPP {points}"] = _copp(constraints)
        except ImportError as error:
            missing.append(f"laws, COPP: {error}; `pip install copp-py` has it")
        try:
            sides[f"TOPP-RA {points}"] = _toppra(points)
        except (ImportError, MissingPackage) as error:
            missing.append(f"laws, TOPP-RA: {error}")
    return {"missing": sorted(set(missing)), **_timed(sides)}


def _timed(sides: Mapping[str, Callable[[], float]]) -> dict[str, Solved]:
    durations = {name: work() for name, work in sides.items()}
    seconds = dict.fromkeys(sides, np.inf)
    for _ in range(ROUNDS):
        for name, work in sides.items():
            start = time.thread_time()
            work()
            seconds[name] = min(seconds[name], time.thread_time() - start)
    return {name: Solved(seconds[name], durations[name]) for name in sides}


def _plan(constraints: Constraints, points: int) -> tuple[ScaledPlan, Constraints]:
    path, law = constraints.path, fastest_law(constraints)
    times = np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / SPEED
    plan = plan_from_waypoints(waypoints(dynamics(ARM).robot, SEED, points), times)
    return plan, Case(ARM, TORQUE, points, SEED).constraints(plan.path)


def _fastest(constraints: Constraints) -> float:
    return fastest_law(constraints).duration


def _followed(constraints: Constraints, plan: ScaledPlan) -> float:
    return follow_plan(constraints, plan).law.duration


def _first_answer(constraints: Constraints, plan: ScaledPlan) -> float:
    return TrajectoryScaler(constraints, plan, at_once=True, worker=_Never()).current.law.duration


def _taken_over(constraints: Constraints, plan: ScaledPlan, current: ScaledPlan) -> float:
    """Return the first moments of the rest of a motion that is played at 0.9 of its speed."""
    slow = current.slower(0.9)
    at = 0.3 * slow.law.duration
    return next_law(constraints, slow, at, plan, True, 0.0, at - LEAD_S, True).motion.law.duration


def _rest_solved(constraints: Constraints, plan: ScaledPlan, current: ScaledPlan) -> float:
    """Compute the rest of the motion, which is not awaited."""
    slow = current.slower(0.9)
    at = 0.3 * slow.law.duration
    return next_law(constraints, slow, at, plan, True, 0.0, at - LEAD_S).motion.law.duration


def _copp(constraints: Constraints) -> Callable[[], float]:
    import copp_py as copp

    limits, s = constraints.limits, np.linspace(0.0, constraints.path.length, N_SAMPLES)
    q, q1, q2, q3 = (np.ascontiguousarray(block) for block in constraints.path(s))

    def solved() -> float:
        robot = copp.Robot(constraints.path.n, capacity=N_SAMPLES)
        robot.append_s(s)
        robot.set_q(q, q1, q2, 0, dddq=q3)
        for name in ("velocity", "acceleration", "jerk"):
            limit = getattr(limits, name)
            getattr(robot, f"add_{name}_limits")(limit, -limit, start_idx_s=0, length=N_SAMPLES)
        ra, third = copp.solver.topp2_ra, copp.solver.topp3_socp
        problem = ra.Problem(robot.constraints, idx_s_interval=(0, N_SAMPLES - 1), a_boundary=(0.0, 0.0))
        a, b = ra.solve(problem, ra.Options()), None
        for _ in range(2):
            around = {} if b is None else {"b_linearization": b}
            found = third.solve(third.Problem(robot.constraints, a, **around), third.Options())
            a, b = found.a, found.b
        return float(copp.interpolation.s_to_t_topp3(s, found, 0.0)[0])

    solved()  # a peer that refuses is said to be missing, once
    return solved


def _toppra(points: int) -> Callable[[], float]:
    from rnea_ros.demo.timing_trials import toppra, toppra_timing
    from rnea_ros.trajectory.retiming import fit_route

    toppra()
    robot = dynamics(ARM).robot
    way = fit_route(waypoints(robot, SEED, points))
    return lambda: toppra_timing(robot, way).duration


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return the lines of results.md."""
    text = ["## Time laws", "",
            f"A 7R arm and random points; minimum processor time of {ROUNDS} rounds, with compiled kernels. \"fastest\", "
            "\"first answer\", \"follow\" and \"take over\" have limits of torque, torque rate and velocity, \"jerk\" has "
            f"limits of velocity, acceleration and jerk. COPP: its SOCP on {N_SAMPLES} points, twice. TOPP-RA: limits of "
            f"torque and velocity only. \"follow\" tracks plans that are {SPEED} times too fast. \"take over\" replaces a "
            "moving trajectory: its next five seconds are solved first, then the whole (\"the rest of it\").", "",
            "| points | problem | solved in [ms] | duration [s] |", "|---|---|---|---|"]
    for name, solved in found.items():
        if name != "missing":
            what, points = name.rsplit(" ", 1)
            text.append(f"| {points} | {what} | {1e3 * solved.seconds:.1f} | {solved.duration:.4f} |")
    return text


def goals(found: Mapping[str, Any]) -> list[tuple[str, str, float, float | None, str]]:
    """key, text, limit, reached, unit of each."""
    made: list[tuple[str, str, float, float | None, str]] = []
    for points, limit in ((10, 30.0), (60, 60.0), (200, 500.0)):
        made.append(("laws", f"7. fastest law, 7 joints, torque and rate, {points} points", limit,
                     found[f"fastest {points}"].seconds * 1e3, " ms"))
    both = [(found[f"jerk {points}"], found[f"COPP {points}"]) for points in BESIDE if f"COPP {points}" in found]
    over = [ours.seconds / theirs.seconds for ours, theirs in both]
    longer = [ours.duration / theirs.duration for ours, theirs in both]
    made += [("copp", f"7. fastest law with jerk / COPP's SOCP (N = {N_SAMPLES}), worst of {BESIDE} points", 0.1,
              max(over, default=None), ""),
             ("copp_duration", "7. the same, duration", 1.0, max(longer, default=None), "")]
    follows = [found[f"follow {points}"].seconds / found[f"fastest {points}"].seconds for points in FOLLOWED]
    return made + [
        ("follow", "7. following a schedule / fastest, median", 2.0, float(np.median(follows)), ""),
        ("first", "7. first answer, slowest of all lengths", 20.0,
         max(found[f"first answer {points}"].seconds for points in POINTS) * 1e3, " ms"),
        ("take_over", "7. replacement in motion, slowest", 50.0,
         max(found[f"take over {points}"].seconds for points in FOLLOWED) * 1e3, " ms")]


def main() -> None:
    from goals import Goal
    from report import commit

    found = measure()
    made = [Goal(*rest[:3], rest[3], note=NOTES.get(key, "")) for key, *rest in goals(found)]
    rows = [(replace(goal, note="") if goal.met else goal).row() for goal in made]
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    written = (f"Written by `python benchmark/laws.py`, commit {commit()}, on {os.cpu_count()} cores with a load of {load}, "
               "which increases the times, and the ratios less.")
    text = [*lines(found), "", written, "", "| goal | target | result | | reason |", "|---|---|---|---|---|", *rows,
            *(f"\nNot measured: {line}" for line in found["missing"])]
    text[0] = text[0].removeprefix("#")  # a separate page
    (HERE / "laws.md").write_text("\n".join(text) + "\n")
    print("\n".join(text))


if __name__ == "__main__":
    main()
