"""Fastest motions of well-known arms between random poses, by our interior point method and its peers, interleaved in one run.

    python benchmark/planning.py [PAIRS]

Writes planning.md beside this file. Limits are those of the URDF, then torque rates as well: each torque may swing from end to
end in 0.1 s. Peers: IPOPT through CasADi on the same programs (collocation at the same nodes, refined alike), on every tenth
pair; TOPP-RA on the straight line and Drake's splines (`pip install drake`), without torque rates, which these do not know.
"""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import RneaError, Robot, plan_motion
from rnea_ros.model.tree import Limits
from rnea_ros.planning import PlanSettings
from support.scaling_cases import urdf

HERE = Path(__file__).resolve().parent
ARMS = ("ur5_robot", "panda", "seven_r")
SWING = 0.1  # s
SEED = 7000
KEPT = 1e-4  # of a limit: what passes it by more is no shortest motion
DRAKE = {16: 1, 32: 10}  # control points: on every so-manieth pair
IPOPT = PlanSettings(solver={"print_level": 0})


class Answer(NamedTuple):
    seconds: float
    duration: float
    excess: float
    problem: str = ""


def poses(robot: Robot, seed: int) -> np.ndarray:
    """Two at random, near the middle of the range, that the motors can hold."""
    rng = np.random.default_rng(seed)
    low, high = np.maximum(robot.limits.lower, -1.5), np.minimum(robot.limits.upper, 1.5)
    while True:
        found = rng.uniform(low, high, (2, robot.n))
        if (np.abs(robot.gravity(found)) < robot.limits.effort).all():
            return found


def planned(robot: Robot, ends: np.ndarray, limits: Limits, settings: PlanSettings) -> Answer:
    started = time.process_time()
    try:
        plan = plan_motion(robot, *ends, limits=limits, settings=settings, time_tolerance=0.0)
    except RneaError as error:
        return Answer(time.process_time() - started, np.nan, np.nan, str(error))
    notes = "; ".join(note for note in plan.notes if "no limits known" not in note)
    return Answer(time.process_time() - started, plan.duration, max(plan.excess.values()), notes)


def on_a_line(robot: Robot, ends: np.ndarray, limits: Limits) -> Answer:
    """TOPP-RA."""
    import toppra
    from toppra import algorithm, constraint

    toppra.setup_logging("ERROR")
    started = time.process_time()
    path = toppra.SplineInterpolator([0.0, 0.5, 1.0], np.stack((ends[0], ends.mean(axis=0), ends[1])))
    effort, speed = (np.column_stack((-limit, limit)) for limit in (limits.effort, limits.velocity))
    torque = constraint.JointTorqueConstraint(robot.inverse_dynamics, effort, np.zeros(robot.n))
    search = algorithm.TOPPRA([constraint.JointVelocityConstraint(speed), torque], path, gridpoints=np.linspace(0.0, 1.0, 101),
                              parametrizer="ParametrizeConstAccel")
    found: Any = search.compute_trajectory(0.0, 0.0)
    return Answer(time.process_time() - started, found.duration if found is not None else np.nan, np.nan)


def by_drake(robot: Robot, drake: Any, ends: np.ndarray, limits: Limits, points: int) -> Answer:
    """Excess: of velocity and torque."""
    import drake_peer

    started = time.process_time()
    found = drake_peer.planned(drake, ends, limits, points)
    seconds = time.process_time() - started
    if found is None:
        return Answer(seconds, np.nan, np.nan, "SNOPT found nothing")
    q, qd, qdd = drake_peer.moved(found, 120 * points)
    use = max(np.abs(qd / limits.velocity).max(), np.abs(robot.inverse_dynamics(q, qd, qdd) / limits.effort).max())
    return Answer(seconds, found.end_time(), use - 1.0)


def drake_of(arm: str, robot: Robot, limits: Limits) -> Any:
    """Return the robot in Drake; None if Drake is not installed."""
    try:
        import drake_peer
    except ImportError as error:
        print(f"without Drake: {error}; `pip install drake` has it")
        return None
    return drake_peer.plant(robot, limits, Path(urdf(arm)).read_text())


def row(arm: str, limits: str, method: str, answers: list[Answer], best: list[float]) -> str:
    seconds = [answer.seconds for answer in answers]
    longer = [100.0 * (answer.duration / least - 1.0) for answer, least in zip(answers, best) if answer.duration > 0.0]
    excess = [answer.excess for answer in answers if np.isfinite(answer.excess)]
    return (f"| {arm} | {limits} | {method} | {len(answers)} | {len(longer)} | {statistics.median(seconds):.2f} | "
            f"{np.quantile(seconds, 0.9):.2f} | {max(seconds):.2f} | {statistics.median(longer):.2f} | "
            f"{f'{max(excess):.1e}' if excess else ''} |")


def compared(arm: str, robot: Robot, limits: Limits, rates: bool, pairs: int) -> list[str]:
    """One line for each method; all of them on one pair, then the next."""
    methods: dict[str, tuple[int, Callable[[np.ndarray], Answer]]] = {
        "interior point": (1, lambda ends: planned(robot, ends, limits, PlanSettings())),
        "IPOPT": (10, lambda ends: planned(robot, ends, limits, IPOPT))}
    if not rates:
        methods["TOPP-RA, straight"] = 1, lambda ends: on_a_line(robot, ends, limits)
        if drake := drake_of(arm, robot, limits):
            for points, every in DRAKE.items():
                methods[f"Drake, {points} points"] = every, partial(by_drake, robot, drake, limits=limits, points=points)
    answers: dict[str, dict[int, Answer]] = {name: {} for name in methods}
    planned(robot, poses(robot, SEED - 1), limits, PlanSettings(refinements=0))  # kernels are made, packages imported
    for pair in range(pairs):
        for name, (every, method) in methods.items():
            if pair % every == 0:
                answers[name][pair] = method(poses(robot, SEED + pair))
                if answers[name][pair].problem:
                    print(arm, rates, name, pair, answers[name][pair].problem, flush=True)
    best = [np.nanmin([found[pair].duration for found in answers.values() if pair in found and not found[pair].excess > KEPT])
            for pair in range(pairs)]
    which = "torque, rate" if rates else "torque"
    return [row(arm, which, name, list(found.values()), [best[pair] for pair in found]) for name, found in answers.items()]


def main(pairs: int = 50) -> None:
    lines = ["# Fastest motions between random poses", "",
             f"`python benchmark/planning.py {pairs}`, {platform.machine()}, Python {platform.python_version()}, default "
             "settings. The poses have seeds that were not used for tuning. Times are processor time of the process, with "
             "all methods interleaved. Longer: median of the relative difference to the shortest duration found within the "
             "limits [%]. Excess: largest relative excess over any limit, sampled 120 times per span (negative: remaining "
             f"margin). Load at the beginning: {os.getloadavg()[0]:.0f} on {os.cpu_count()} processors.", "",
             "| arm | limits | method | pairs | solved | median [s] | 90 % [s] | largest [s] | longer [%] | excess |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for arm in ARMS:
        robot = Robot.from_urdf(urdf(arm))
        for rates in (False, True):
            limits = replace(robot.limits, effort_rate=2.0 * robot.limits.effort / SWING) if rates else robot.limits
            for line in compared(arm, robot, limits, rates, pairs):
                lines.append(line)
                print(line, flush=True)
            (HERE / "planning.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
