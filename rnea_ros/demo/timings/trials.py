"""One random path of an arm, timed in several ways, each followed by the same plant under the same feedback law."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ...errors import InputError
from ...motion.retime import Retimed, retime_motion
from ...scaling.path import through
from ...scaling.points import plan_from_waypoints
from ...scaling.retime import Route
from ...sim.tracking import CONTROL_PERIOD_S, TrackedMotion, track
from . import toppra_timing
from .arms import Arm

SHARE = 0.9  # of the limits of torque and torque rate to plan with: feedback has the rest
TOO_FAST = 2.0  # times, of what is planned
DRAWS = 40  # of a path along which the arm can be held up everywhere
LOOKS = 4001  # places on the path


class Task(NamedTuple):
    """An arm and a path; fastest: inside all limits, used whole. What follows is a timing, by its name."""

    arm: Arm
    points: np.ndarray
    fastest: Retimed


Timing = Callable[[Task], Retimed]


class Outcome(NamedTuple):
    """How a timing went.

    timing  : its name; tracked: what the plant did
    motion  : what it is; None where a node decided that
    duration: how long it takes [s]; longer: by that of the fastest motion
    off     : largest distance of the tool from its path, while it was on its way [mm]
    beyond  : how long a torque was asked for that drives cannot follow, for its rate or its size [ms]
    """

    timing: str
    tracked: TrackedMotion
    motion: Retimed | None
    duration: float
    longer: float
    off: float
    beyond: float

    @property
    def lost(self) -> bool:
        return self.tracked.lost


def task(arm: Arm, rng: np.random.Generator) -> Task:
    """Raises InputError where no path of many can be held."""
    for _ in range(DRAWS):
        path = through(points := arm.points(rng))
        gravity = arm.robot.gravity(path(np.linspace(0.0, path.length, LOOKS))[0])
        if (np.abs(gravity) < SHARE * arm.robot.limits.effort).all():
            return Task(arm, points, retime_motion(arm.robot, points))
    raise InputError(f"{arm.robot.name} can be held along none of {DRAWS} random paths: gravity alone takes more than "
                     f"{SHARE:.0%} of its torque limits")


# --- timings --------------------------------------------------------------------------------------------------------


def as_planned(task: Task) -> Retimed:
    """Points with times, twice too fast, and a quintic from each to the next."""
    plan = plan_from_waypoints(task.points, planned_times(task))
    return Retimed(Route(plan.path, 0.0, len(task.points)), plan.law)


def planned_times(task: Task) -> np.ndarray:
    """(points,) [s]."""
    law, path = task.fastest.law, task.fastest.route.path
    return np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / TOO_FAST


def by_toppra(task: Task) -> Retimed:
    return toppra_timing.timed(task.arm.robot, task.fastest.route, SHARE)


def half_toppra(task: Task) -> Retimed:
    """TOPP-RA's, played at half its speed."""
    return Retimed(task.fastest.route, by_toppra(task).law.slower(0.5))


def ours_without_rate(task: Task) -> Retimed:
    robot = task.arm.robot
    limits = replace(robot.limits.share(SHARE, SHARE), effort_rate=np.full(robot.n, np.nan))
    return retime_motion(robot, task.points, limits=limits, drive_limits=())


def ours(share: float = SHARE) -> Timing:
    return lambda task: retime_motion(task.arm.robot, task.points, limits=task.arm.robot.limits.share(share, share))


PLANNED, TOPPRA, OURS = "as planned", "TOPP-RA, 90 % of torque", "ours, 90 % of torque and rate"
SIDE_BY_SIDE: dict[str, Timing] = {PLANNED: as_planned, TOPPRA: by_toppra, OURS: ours()}
MORE: dict[str, Timing] = {
    PLANNED: as_planned, TOPPRA: by_toppra, "the same at half speed": half_toppra,
    "ours, 90 % of torque, rate unlimited": ours_without_rate, "ours, 100 % of torque and rate": ours(1.0),
    "ours, 95 %": ours(0.95), OURS: ours()}


# --- what comes of them ---------------------------------------------------------------------------------------------


def outcomes(task: Task, rng: np.random.Generator, timings: Mapping[str, Timing]) -> Iterator[Outcome]:
    """One after another, all on the same plant."""
    plant = task.arm.plant(task.arm.masses(rng))
    for name, timing in timings.items():
        motion = timing(task)
        yield outcome(task, name, track(plant, motion, motion.duration), motion.duration, motion)


def outcome(task: Task, timing: str, tracked: TrackedMotion, duration: float, motion: Retimed | None) -> Outcome:
    return Outcome(timing, tracked, motion, duration, duration / task.fastest.duration, _off(task, tracked),
                   _beyond(task, tracked))


def _off(task: Task, tracked: TrackedMotion) -> float:
    path = task.fastest.route.path
    on = task.arm.tool_at(path(np.linspace(0.0, path.length, LOOKS))[0])
    return 1e3 * float(distances(task.arm.tool_at(tracked.q[tracked.t >= 0.0]), on).max())


def distances(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Of points (samples, 3) from a polyline (corners, 3)."""
    starts, steps = line[:-1], np.diff(line, axis=0)
    square = np.maximum((steps**2).sum(axis=1), 1e-30)
    found = np.empty(len(points))
    for k, point in enumerate(points):
        away = point - starts
        share = np.clip((away * steps).sum(axis=1) / square, 0.0, 1.0)
        found[k] = np.linalg.norm(away - share[:, None] * steps, axis=1).min()
    return found


def _beyond(task: Task, tracked: TrackedMotion) -> float:
    rate = np.abs(np.diff(tracked.commanded, axis=0)) / CONTROL_PERIOD_S
    too_fast = np.any(rate > task.arm.robot.limits.effort_rate, axis=1)
    return 1e3 * CONTROL_PERIOD_S * np.count_nonzero(too_fast[tracked.t[1:] > 0.0])
