"""Timing trials of `rnea demo --plant`: a random path of an arm with several timings, each tracked by the same plant under the
same controller; and their pictures.

The timings are the planned trajectory, twice too fast; TOPP-RA's, which has no constraint on the torque rate; and this
package's. `toppra` is imported in this module only.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, MissingPackage, RneaError
from ..io.figures import picture
from ..robots.robot import Robot
from ..sim.plant import CONTROL_PERIOD_S, TrackingResult, track
from ..trajectory.path import Path as JointPath
from ..trajectory.path import path_through
from ..trajectory.retiming import Retimed, Route, retime_motion
from ..trajectory.scaled_plan import plan_from_waypoints
from ..trajectory.time_law import TimeLaw
from . import plots
from .arms import Arm
from .plots import STYLE, MovieOptions, ShownMotion, draw_rates, draw_tool_path, rate_shares
from .robot_demo import CheckResult, text_table

N_GRID_POINTS = 1001


def toppra() -> Any:
    """Return the module toppra. Raises RneaError if it is not installed."""
    try:
        import toppra as found
    except ImportError as error:
        raise MissingPackage(f"TOPP-RA's timing needs toppra ({error})", "sim") from None
    logging.getLogger("toppra").setLevel(logging.ERROR)
    return found


def toppra_timing(robot: Robot, route: Route, share: float = 1.0) -> Retimed:
    """Return TOPP-RA's fastest time law from rest to rest, with a share of the torque limits and the full velocity limits.

    Raises RneaError if there is none, and without toppra.
    """
    ta, limits, grid = toppra(), robot.limits, np.linspace(0.0, route.path.length, N_GRID_POINTS)
    effort = share * np.stack((-limits.effort, limits.effort), axis=1)
    rules = [ta.constraint.JointTorqueConstraint(robot.inverse_dynamics, effort, np.zeros(robot.n),
                                                 discretization_scheme=ta.constraint.DiscretizationType.Interpolation)]
    if np.isfinite(limits.velocity).all():
        rules.append(ta.constraint.JointVelocityConstraint(np.stack((-limits.velocity, limits.velocity), axis=1)))
    found = ta.algorithm.TOPPRA(rules, _geometry(ta, route.path), gridpoints=grid, solver_wrapper="seidel")
    speed = found.compute_parameterization(0.0, 0.0)[1]
    if speed is None or np.isnan(speed).any():
        raise RneaError("TOPP-RA finds no timing of this path")
    return Retimed(route, _constant_acceleration_law(grid, speed))


def _constant_acceleration_law(s: np.ndarray, speed: np.ndarray) -> TimeLaw:
    """Return a time law with constant acceleration between grid points, which is TOPP-RA's parametrization."""
    spans = 2.0 * np.diff(s) / (speed[1:] + speed[:-1])
    coefficients = np.zeros((len(spans), 6))
    coefficients[:, 0], coefficients[:, 1], coefficients[:, 2] = s[:-1], speed[:-1], 0.5 * np.diff(speed) / spans
    return TimeLaw(np.concatenate(([0.0], np.cumsum(spans))), coefficients)


def _geometry(ta: Any, path: JointPath) -> Any:
    class Geometry(ta.interpolator.AbstractGeometricPath):
        dof = path.n
        path_interval = np.array([0.0, path.length])
        waypoints = (path.breaks, path(path.breaks)[0])

        def __call__(self, s: Any, order: int = 0) -> np.ndarray:
            found = path(np.atleast_1d(s))[order]
            return found[0] if np.ndim(s) == 0 else found

    return Geometry()


PLANNING_SHARE = 0.9  # of the limits of torque and torque rate; the rest is for feedback
OVERSPEED = 2.0  # of the planned trajectory
MAX_DRAWS = 40  # of a random path along which gravity alone is feasible
N_PATH_SAMPLES = 4001


class TimingTask(NamedTuple):
    """Arm, waypoints (points, n), and the fastest motion within the full limits."""

    arm: Arm
    points: np.ndarray
    fastest: Retimed


Timing = Callable[[TimingTask], Retimed]


class TimingResult(NamedTuple):
    """Result of tracking one timing.

    timing  : its name; tracked : simulated motion
    motion  : the timed motion
    duration : [s]; longer : ratio to the fastest duration
    off     : largest distance of the tool from its path [mm]
    beyond  : time with a commanded torque rate above the slew limit [ms]
    """

    timing: str
    tracked: TrackingResult
    motion: Retimed
    duration: float
    longer: float
    off: float
    beyond: float

    @property
    def lost(self) -> bool:
        return self.tracked.lost


def random_task(arm: Arm, rng: np.random.Generator) -> TimingTask:
    """Return a random task. Raises InputError if gravity is infeasible on all random paths."""
    for _ in range(MAX_DRAWS):
        path = path_through(points := arm.points(rng))
        gravity = arm.robot.gravity(path(np.linspace(0.0, path.length, N_PATH_SAMPLES))[0])
        if (np.abs(gravity) < PLANNING_SHARE * arm.robot.limits.effort).all():
            return TimingTask(arm, points, retime_motion(arm.robot, points))
    raise InputError(f"{arm.robot.name} can be held along none of {MAX_DRAWS} random paths: gravity alone takes more than "
                     f"{PLANNING_SHARE:.0%} of its torque limits")


# --- timings --------------------------------------------------------------------------------------------------------


def as_planned(task: TimingTask) -> Retimed:
    """Return the motion as planned: times twice too fast, quintics between waypoints."""
    plan = plan_from_waypoints(task.points, planned_times(task))
    return Retimed(Route(plan.path, 0.0, len(task.points)), plan.law)


def planned_times(task: TimingTask) -> np.ndarray:
    """Return the planned times of the waypoints (points,) [s]."""
    law, path = task.fastest.law, task.fastest.route.path
    return np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / OVERSPEED


def toppra_motion(task: TimingTask) -> Retimed:
    """Return TOPP-RA's timing with a share of the torque limits."""
    return toppra_timing(task.arm.robot, task.fastest.route, PLANNING_SHARE)


def ours(share: float = PLANNING_SHARE) -> Timing:
    """Return the timing that uses a share of the limits of torque and torque rate."""
    return lambda task: retime_motion(task.arm.robot, task.points, limits=task.arm.robot.limits.share(share, share))


PLANNED, TOPPRA, OURS = "as planned", "TOPP-RA, 90 % of torque", "ours, 90 % of torque and rate"
SIDE_BY_SIDE: dict[str, Timing] = {PLANNED: as_planned, TOPPRA: toppra_motion, OURS: ours()}
# --- results --------------------------------------------------------------------------------------------------------


def track_all(task: TimingTask, rng: np.random.Generator, timings: Mapping[str, Timing]) -> Iterator[TimingResult]:
    """Yield the results of all timings on the same plant."""
    plant = task.arm.plant(task.arm.masses(rng))
    for name, timing in timings.items():
        motion = timing(task)
        yield timing_result(task, name, track(plant, motion, motion.duration), motion.duration, motion)


def timing_result(task: TimingTask, timing: str, tracked: TrackingResult, duration: float,
                  motion: Retimed) -> TimingResult:
    """Return the result of a tracked timing."""
    return TimingResult(timing, tracked, motion, duration, duration / task.fastest.duration, _path_deviation(task, tracked),
                        _time_over_limit(task, tracked))


def _tool_path(task: TimingTask, samples: int = N_PATH_SAMPLES) -> np.ndarray:
    """Return the tool path (samples, 3) of the task [m]."""
    path = task.fastest.route.path
    return task.arm.tool_at(path(np.linspace(0.0, path.length, samples))[0])


def _path_deviation(task: TimingTask, tracked: TrackingResult) -> float:
    return 1e3 * float(polyline_distances(task.arm.tool_at(tracked.q[tracked.t >= 0.0]), _tool_path(task)).max())


def polyline_distances(points: np.ndarray, line: np.ndarray) -> np.ndarray:
    """Return the distances of points (samples, 3) from a polyline (corners, 3)."""
    starts, steps = line[:-1], np.diff(line, axis=0)
    square = np.maximum((steps**2).sum(axis=1), 1e-30)
    found = np.empty(len(points))
    for k, point in enumerate(points):
        away = point - starts
        share = np.clip((away * steps).sum(axis=1) / square, 0.0, 1.0)
        found[k] = np.linalg.norm(away - share[:, None] * steps, axis=1).min()
    return found


def _time_over_limit(task: TimingTask, tracked: TrackingResult) -> float:
    too_fast = np.any(np.abs(rate_shares(task.arm, tracked)) > 1.0, axis=1)
    return 1e3 * CONTROL_PERIOD_S * np.count_nonzero(too_fast[tracked.t[1:] > 0.0])


MAX_DEVIATION_MM, MAX_OVER_LIMIT_MS = 0.6, 5.0  # of a motion; of all motions together
TABLE_HEAD = ("timing", "duration / fastest", "off the path, mm: median (largest)", "ms beyond the slew limit", "lost")


def table_rows(outcomes: Sequence[TimingResult]) -> Iterator[tuple[str, ...]]:
    """Yield a row per timing, in their order."""
    for name in dict.fromkeys(outcome.timing for outcome in outcomes):
        of = [outcome for outcome in outcomes if outcome.timing == name]
        off = [outcome.off for outcome in of]
        yield (name, f"{np.mean([outcome.longer for outcome in of]):.2f}", f"{np.median(off):.1f} ({max(off):.1f})",
               f"{sum(outcome.beyond for outcome in of):.0f}", f"{sum(outcome.lost for outcome in of)} of {len(of)}")


def result_data(outcomes: Sequence[TimingResult]) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers for programs, one row per motion and timing; off : [mm], beyond : [ms]."""
    return {"motions": [{"timing": one.timing, "longer": one.longer, "off": one.off, "beyond": one.beyond, "lost": one.lost}
                        for one in outcomes]}


def result_table(outcomes: Sequence[TimingResult]) -> str:
    """Return the table as text."""
    return text_table([TABLE_HEAD, *table_rows(outcomes)])


def check_results(outcomes: Sequence[TimingResult]) -> list[CheckResult]:
    """Check our timing; the others are for comparison."""
    of = [outcome for outcome in outcomes if outcome.timing == OURS]
    lost, off, beyond = sum(outcome.lost for outcome in of), max(one.off for one in of), sum(one.beyond for one in of)
    return [CheckResult(not lost, f"{OURS}: {lost} of {len(of)} motions lost"),
            CheckResult(off <= MAX_DEVIATION_MM, f"{OURS}: at most {off:.2f} mm off the path; allowed {MAX_DEVIATION_MM:g}"),
            CheckResult(beyond <= MAX_OVER_LIMIT_MS,
                        f"{OURS}: {beyond:.0f} ms beyond the slew limit in all motions; allowed {MAX_OVER_LIMIT_MS:g}")]


COLOURS = {PLANNED: "#6b6b6b", TOPPRA: "#c44e00", OURS: "#1f4e79"}  # distinguishable with colour blindness
SHORT_NAMES = {PLANNED: "as planned\ntwice too fast", TOPPRA: "TOPP-RA\n90 % of torque",
               OURS: "ours, 90 % of\ntorque and rate"}
MAX_RATE_SHOWN = 3.0  # slew limits
STRIP_WIDTH = 0.06  # of one strip of dots
MIN_DEVIATION_MM = 0.03


def _shown(outcome: TimingResult) -> ShownMotion:
    return ShownMotion(SHORT_NAMES[outcome.timing], COLOURS[outcome.timing], outcome.tracked)


def draw_trials(task: TimingTask, first: Sequence[TimingResult], outcomes: Sequence[TimingResult],
                path: str | os.PathLike[str]) -> None:
    """Draw one task with its results, and the deviations of all results. Raises RneaError without matplotlib."""
    arm, line = task.arm, _tool_path(task)
    with picture(path, (12.0, 6.8), dpi=110, settings={**STYLE, "font.size": 11}) as figure:
        axes = figure.subplots(2, len(first) + 1, height_ratios=(1.0, 1.0), width_ratios=[1.0] * len(first) + [0.8])
        end = max(outcome.tracked.t[-1] for outcome in first)
        for (above, below), outcome in zip(axes.T, first):
            shown, tracked = _shown(outcome), outcome.tracked
            draw_tool_path(above, arm, line, shown, f"{outcome.off:.1f} mm off at most")
            draw_rates(below, arm, shown, MAX_RATE_SHOWN)
            peak = float(np.abs(rate_shares(arm, tracked)[tracked.t[1:] > 0.0]).max())
            below.set_title(f"at most {peak:.3g} times the limit", loc="left", fontsize=11, color=shown.colour)
            below.set_xlim(0.0, end)
        axes[0, 0].set_ylabel("tool path", fontsize=11)
        axes[1, 0].set_ylabel("commanded torque rate\n/ slew limit, worst joint")
        _draw_deviations(figure, axes, outcomes)
        lost = {name: sum(o.lost for o in outcomes if o.timing == name) for name in SHORT_NAMES}
        count = sum(outcome.timing == OURS for outcome in outcomes)
        figure.suptitle(f"{arm.robot.name}: one path, three timings, the same controller and drives. Lost: "
                        f"{lost[PLANNED]}, {lost[TOPPRA]} and {lost[OURS]} of {count} motions", x=0.01, ha="left", fontsize=13)


def _draw_deviations(figure, axes, outcomes: Sequence[TimingResult]) -> None:
    """Draw the deviation of every motion from its path: a dot, or a cross if tracking was lost."""
    for axis in axes[:, -1]:
        axis.remove()
    axis = figure.add_subplot(axes[0, 0].get_gridspec()[:, -1])
    for column, name in enumerate(COLOURS):
        of = [outcome for outcome in outcomes if outcome.timing == name]
        side = STRIP_WIDTH * (np.arange(len(of)) - 0.5 * (len(of) - 1)) / max(1, len(of) / 8.0)
        for lost, mark, size in ((False, "o", 7.0), (True, "X", 9.0)):
            chosen = [k for k, outcome in enumerate(of) if outcome.lost == lost]
            axis.plot(column + side[chosen], [max(of[k].off, MIN_DEVIATION_MM) for k in chosen], mark, color=COLOURS[name],
                      markersize=size, markeredgecolor="white", linestyle="none")
    axis.set(yscale="log", xlim=(-0.6, len(COLOURS) - 0.4), xticks=range(len(COLOURS)))
    axis.set_xticklabels(["planned", "TOPP-RA", "ours"], fontsize=10)
    axis.set_ylim(bottom=min(0.1, axis.get_ylim()[0]), top=max(200.0, axis.get_ylim()[1]))
    axis.yaxis.set_major_formatter(lambda value, column: f"{value:g}")
    axis.yaxis.set_minor_formatter("")
    axis.set_title("off the path [mm]\nx: lost", loc="left", fontsize=12)
    axis.grid(axis="y", color="0.9")


def write_movie(task: TimingTask, outcomes: Sequence[TimingResult], path: str | Path) -> None:
    """Write a GIF of one task with all results. Raises RneaError without matplotlib, and if MuJoCo cannot render."""
    def caption(number: int, t: float) -> tuple[str, bool]:
        return f"{min(t, outcomes[number].duration):.2f} s", False

    options = MovieOptions(slow_motion=3.0, end_pause=1.5, view=(140.0, -18.0, 1.75))
    plots.write_movie(task.arm, _tool_path(task, 80), [*map(_shown, outcomes)], caption, path, options)
