"""Demo of scaling_node: a trajectory with times twice as fast as the limits allow; its recording, checks and picture."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, NamedTuple, TextIO

import numpy as np

from ..io.figures import color_scale, picture
from ..model.tree import Limits
from ..robots.robot import Robot
from ..trajectory.constraints import Constraints
from ..trajectory.path_dynamics import PathDynamics
from ..trajectory.retiming import Retimed, Route, time_optimal_law
from ..trajectory.scaled_plan import ScaledPlan, plan_from_waypoints
from .plots import STYLE
from .processes import NoMessages, node_session, recorders
from .robot_demo import CheckResult, LiveTable, MotionSample, check_bitwise, sweep_motion

N_WAYPOINTS = 6
TRIAL_DURATION_S = 2.0  # of the motion that determines the limits
GRAVITY_FACTOR, MOTION_FACTOR = 1.3, 0.6  # effort limit: factors on the trial's gravity effort and on its other effort
EFFORT_SWING_S = 0.15  # time from one effort limit to the other at the limit of the rate


class OverspeedTask(NamedTuple):
    """Trajectory that exceeds the limits: waypoints (points, n), times (points,) [s], limits; fastest : shortest feasible
    duration [s].
    """

    points: np.ndarray
    times: np.ndarray
    limits: Limits
    plan: ScaledPlan
    fastest: float


def overspeed_task(robot: Robot, speed: float = 2.0) -> OverspeedTask:
    """Return a wave of all joints through the middle of their ranges; tighter limits of the URDF are kept."""
    reach = sweep_motion(robot.joint_types, robot.limits)
    middle, half = (reach.start + reach.end) / 2.0, (reach.end - reach.start) / 2.0
    waves = np.sin(2.2 * np.arange(N_WAYPOINTS)[:, None] + 1.7 * np.arange(robot.n))
    points = middle + half * waves
    limits = _effort_limits(robot, plan_from_waypoints(points, np.linspace(0.0, TRIAL_DURATION_S, N_WAYPOINTS)))
    path = plan_from_waypoints(points, np.linspace(0.0, TRIAL_DURATION_S, N_WAYPOINTS)).path
    dynamics = PathDynamics(robot)
    law = time_optimal_law(Constraints(path, dynamics, dynamics.limits(limits), robot.joint_names))
    times = np.array([0.0, *law.time_at(path.breaks[1:-1]), law.duration]) / speed
    return OverspeedTask(points, times, limits, plan_from_waypoints(points, times), law.duration)


def sample_plan(plan: ScaledPlan, t: Any) -> tuple[np.ndarray, ...]:
    """Return q, qd, qdd, qddd (samples, n) of a plan at times t (samples,) [s]."""
    return Retimed(Route(plan.path, 0.0, len(plan.path.breaks)), plan.law)(t)


def _effort_limits(robot: Robot, slow: ScaledPlan) -> Limits:
    state = sample_plan(slow, np.linspace(0.0, slow.law.duration, 501))
    tau, _, gravity, _ = robot.dynamics(*state)
    effort = GRAVITY_FACTOR * np.abs(gravity).max(axis=0) + MOTION_FACTOR * np.abs(tau - gravity).max(axis=0)
    effort = np.fmin(np.where(effort > 0.0, effort, np.nan), robot.limits.effort)  # a joint may move no mass
    return replace(robot.limits, effort=effort, effort_rate=np.fmin(2.0 * effort / EFFORT_SWING_S, robot.limits.effort_rate))


def limit_parameters(robot: Robot, limits: Limits) -> dict[str, Any]:
    """Return known limits as node parameters, by full names: the parser of parameter files mixes up nested names with dots."""
    found: dict[str, Any] = {}
    for name, effort, rate in zip(robot.joint_names, limits.effort.tolist(), limits.effort_rate.tolist()):
        if np.isfinite(effort):
            found |= {f"joint_limits.{name}.has_effort_limits": True, f"joint_limits.{name}.max_effort": effort,
                      f"joint_limits.{name}.has_effort_rate_limits": True, f"joint_limits.{name}.max_effort_rate": rate}
    return found


LIMIT_TOL = 1e-6  # of a limit
PATH_TOL = 1e-9  # rad, m


class ScaledSamples(NamedTuple):
    """Received samples: times t and path positions s (samples,), joints (samples, n), phases and overrides (samples,)."""

    t: np.ndarray
    s: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    tau_rate: np.ndarray
    phase: np.ndarray
    override: np.ndarray

    @property
    def motion(self) -> MotionSample:
        return MotionSample(self.q, self.qd, self.qdd, self.qddd)


def check_limits(robot: Robot, task: OverspeedTask, samples: ScaledSamples) -> CheckResult:
    """Check that every sample is within all limits, with the library's torques for the received positions."""
    limits = task.limits
    tau, rate = robot.torque_and_rate(*samples.motion)
    used = {"torque": tau / limits.effort, "torque rate": rate / limits.effort_rate, "velocity": samples.qd / limits.velocity}
    shares = {name: np.fmax.reduce(np.abs(share), axis=None, initial=0.0) for name, share in used.items()}
    worst = ", ".join(f"{name} {share:.2%}" for name, share in shares.items())
    return CheckResult(max(shares.values()) <= 1.0 + LIMIT_TOL, f"all samples inside the limits: at most {worst}")


def check_path(task: OverspeedTask, samples: ScaledSamples) -> CheckResult:
    """Check that every sample is on the planned path."""
    deviation = float(np.abs(samples.q - task.plan.path(samples.s)[0]).max())
    return CheckResult(deviation < PATH_TOL, f"all samples on the path, to {deviation:.1e} rad (m); allowed {PATH_TOL:g}")


def check_goal(task: OverspeedTask, samples: ScaledSamples) -> CheckResult:
    """Check that the motion paused, resumed and ended at rest at the goal."""
    deviation = float(np.abs(samples.q[-1] - task.points[-1]).max())
    rest = float(np.abs(samples.qd[-1]).max())
    passed = deviation < PATH_TOL and rest < PATH_TOL and 2 in samples.phase
    return CheckResult(passed, f"paused, resumed, and at rest in the end, {deviation:.1e} rad (m) from the goal")


PLANNED_COLOUR, LIMIT_COLOUR = "0.6", "#c0392b"
MAX_SHARE_SHOWN = 2.4


def draw_scaling(robot: Robot, task: OverspeedTask, samples: ScaledSamples, path: str | os.PathLike) -> None:
    """Write the picture to `path`; its suffix gives the format. Raises RneaError without matplotlib."""
    t = np.linspace(0.0, task.times[-1], 1001)
    planned = robot.dynamics(*sample_plan(task.plan, t))
    with picture(path, (10, 8), dpi=110, settings=STYLE) as figure:
        axes = figure.subplots(3, 1, sharex=True, height_ratios=(1.1, 1.0, 1.0))
        length = task.plan.path.length
        axes[0].plot(t, task.plan.law(t)[0] / length, color=PLANNED_COLOUR, linestyle="--", label="planned, twice too fast")
        axes[0].plot(samples.t, samples.s / length, color="#1f4e79", linewidth=1.8, label="scaled, as received")
        axes[0].set_title("path position, s / length", loc="left", fontsize=10)
        axes[0].legend(frameon=False, loc="lower right")
        _shade_pauses(axes, samples)
        limits = task.limits
        sets = (("torque / its limit", planned.tau / limits.effort, samples.tau / limits.effort),
                ("torque rate / its limit", planned.tau_rate / limits.effort_rate, samples.tau_rate / limits.effort_rate))
        colours = color_scale(robot.n)
        for axis, (title, wanted, used) in zip(axes[1:], sets):
            axis.plot(t, np.clip(wanted, -MAX_SHARE_SHOWN, MAX_SHARE_SHOWN), color=PLANNED_COLOUR, linewidth=0.8,
                      linestyle="--")
            for joint in range(robot.n):
                axis.plot(samples.t, used[:, joint], color=colours[joint], linewidth=1.2, label=robot.joint_names[joint])
            for limit in (-1.0, 1.0):
                axis.axhline(limit, color=LIMIT_COLOUR, linewidth=1.0)
            peak = np.abs(wanted).max()
            axis.set_title(f"{title}: planned up to {peak:.1f} of the limit, scaled up to "
                           f"{np.nanmax(np.abs(used)):.3f}", loc="left", fontsize=10)
            axis.set_ylim(-min(MAX_SHARE_SHOWN, 1.1 * max(peak, 1.0)), min(MAX_SHARE_SHOWN, 1.1 * max(peak, 1.0)))
        axes[1].legend(frameon=False, fontsize=8, ncol=1, loc="center left", bbox_to_anchor=(1.0, 0.5))
        axes[2].set_xlabel("time [s]")
        for axis in axes:
            axis.margins(x=0.01)
            axis.grid(axis="x", color="0.92")
        figure.suptitle(f"{robot.name}: a trajectory planned twice too fast, as scaling_node executes it", x=0.01, ha="left",
                        fontsize=11)


def _shade_pauses(axes, samples: ScaledSamples) -> None:
    """Shade the times of a pause or an override."""
    for active, colour, word in ((samples.phase == 2, "0.85", "paused"), (samples.override < 1.0, "#f6ead0", "override")):
        if active.any():
            start, end = samples.t[active][[0, -1]]
            for axis in axes:
                axis.axvspan(start, end, color=colour, zorder=0, linewidth=0)
            axes[0].text((start + end) / 2.0, 0.98, word, ha="center", va="top", fontsize=8,
                         transform=axes[0].get_xaxis_transform())


NODES = ("scaling_node",)
TIMEOUT_S = 60.0
# pause at 30 % of the path, resume after 0.8 s at rest; override 0.4 at 65 %, 0.8 s later 1
SERVICE_CALLS = ((0.3, 0.0, "pause", 1.0), (0.3, 0.8, "resume", 1.0), (0.65, 0.0, "override", 0.4),
                 (0.65, 0.8, "override", 1.0))


def record(robot: Robot, description: str, task: OverspeedTask, out: TextIO, report: Callable[[str], None]) -> ScaledSamples:
    """Run scaling_node on the task with pause, resume and override, and return the samples of the motion.

    description : URDF as XML text; out : for the live table; report : called with lines about the process
    Raises MissingRos without ROS 2, NodesFailed if the motion does not end, Interrupted after a signal.
    """
    nodes, table = recorders(), ScalingTable(robot, task, out)
    parameters = {"/**": {"ros__parameters": {"robot_description": description, **limit_parameters(robot, task.limits)}}}
    with node_session(NODES, lambda folder: parameters, report, f"{robot.name}: ") as session:
        received = nodes.record_scaling(
            session.domain, nodes.trajectory_message(robot.joint_names, task.points, task.times),
            [nodes.ServiceCall(*call) for call in SERVICE_CALLS], TIMEOUT_S, table.show, session.is_running)
        if not received or received[-1].phase != received[-1].ENDED:
            raise NoMessages(f"the motion did not end within {TIMEOUT_S:g} s, or scaling_node ended")
    fields = ("t", "s", "position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "phase", "override_share")
    return ScaledSamples(*(np.array([getattr(message, field) for message in received]) for field in fields))


def check_samples(robot: Robot, task: OverspeedTask, samples: ScaledSamples) -> list[CheckResult]:
    """Check limits, path, torques and goal."""
    return [check_limits(robot, task, samples), check_path(task, samples),
            check_bitwise(robot, samples.motion, samples.tau, samples.tau_rate), check_goal(task, samples)]


class ScalingTable(LiveTable):
    """Live table with a line about the motion above it."""

    def __init__(self, robot: Robot, task: OverspeedTask, out: TextIO):
        super().__init__(robot.joint_names, robot.joint_types, out)
        self._task = task

    def lines(self, message: Any) -> list[str]:
        limits = self._task.limits
        rate_shares = np.abs(message.effort_rate) / limits.effort_rate
        shown = SimpleNamespace(joint_names=message.joint_names, effort=message.effort, effort_rate=message.effort_rate,
                                effort_utilization=np.abs(message.effort) / limits.effort,
                                effort_rate_utilization=rate_shares, commanded_effort_rate_utilization=rate_shares)
        phase = {1: "moving", 2: "paused", 3: "stopping", 4: "ended"}.get(message.phase, "")
        speed = "" if np.isnan(message.speed_scaling) else f", {message.speed_scaling:.0%} of the planned speed"
        limit = f"{message.binding_limit.replace('_', ' ')} of {message.binding_joint}"
        head = (f"{message.t:5.2f} s  {phase} at {message.progress:.0%} of the path{speed}, {message.delay:.2f} s late; "
                f"binding limit: {message.utilization:.1%} of {limit}")
        return [head, *super().lines(shown)]
