"""Requests for motions: retiming of a path, planning of a motion; plain names and lists in, samples of the motion out.

For robots of every kind: the actuated joints move, torques are those of trajectory.link_side, a carried base is level and at
rest.
A trajectory in an answer is {joint_names, times (points,), positions, velocities, accelerations, effort (points, n)}; jerk and
effort_rate are separate arrays.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InputError
from ..model.tree import Limits
from ..planning.bspline import PlannedMotion
from ..planning.problem import PlanSettings, Report
from ..robots.robot import Robot
from ..trajectory.link_side import default_base, link_side
from ..trajectory.plan_motion import plan_motion
from ..trajectory.retiming import Retimed, retime_motion
from .request import Answer, Request, RequestedState, read_request

LEVEL_BASE_NOTE = "the base is assumed level and at rest; set gravity in the frame of the root link where it is tilted"
MAX_POINTS = 1_000_000
TRAJECTORY = ("positions", "velocities", "accelerations")


def retime(robot: Robot, request: Request, limits: Limits) -> Answer:
    """Retime a path. request: trajectory with joint_names, positions and velocities (rows, or empty); tolerance [rad, m]; rate
    [Hz]; velocity_share, acceleration_share: of the limits, default 1.
    """
    base, rate = default_base(robot), _rate(request)
    limits = limits.share(velocity=request.get("velocity_share", 1.0), acceleration=request.get("acceleration_share", 1.0))
    given = request["trajectory"]
    rows, moving = given["positions"], given.get("velocities") or []
    if moving and len(moving) != len(rows):
        raise InputError(f"{len(moving)} of {len(rows)} points have velocities; give velocities of all points, or of none")
    samples = [{"position": row} | ({"velocity": moving[k]} if moving else {}) for k, row in enumerate(rows)]
    state = read_request({"joint_names": given.get("joint_names"), "samples": samples}, robot.joint_names,
                         ("position", "velocity"))
    motion = retime_motion(robot, state.q, state.qd if moving else None, limits, float(request["tolerance"]), base=base)
    return {**_sampled(link_side(robot, base), motion, rate, state), "notes": _notes(robot, motion)}


def plan(robot: Robot, request: Request, limits: Limits, report: Report) -> Answer:
    """Plan a motion. request: fields of rnea_msgs/action/PlanMotion. An exception raised by report ends the planning."""
    base, rate = default_base(robot), _rate(request)
    (start, state), (goal, _) = (_end(robot, request, end) for end in ("start", "goal"))
    loads = state.loads
    if loads.wrench_rates:
        raise InputError(f"wrenches on {', '.join(loads.wrench_rates)} have rates; wrenches of a plan are constant: leave "
                         "rate empty")
    duration: Any = list(request.get("duration") or ()) or None
    motion = plan_motion(
        robot, start, goal, time=request["time_weight"], effort=request["effort_weight"], limits=limits,
        duration=duration, loads=loads,
        settings=PlanSettings(best_of=int(request["best_of"])), report=report, base=base,
        time_tolerance=request["time_tolerance"])
    sampled = _sampled(link_side(robot, base), motion, rate, state)
    return {**sampled, "objective": motion.objective, "notes": _notes(robot, motion)}


def _end(robot: Robot, request: Request, end: str) -> tuple[np.ndarray, RequestedState]:
    """Return q, qd and, if given, qdd: (2, n) or (3, n); and the state of the request."""
    sample = request[end]
    fields = ("position", "velocity", "acceleration") if len(sample.get("acceleration", ())) else ("position", "velocity")
    given = {"joint_names": request.get("joint_names"), "samples": [sample], "wrenches": request.get("wrenches")}
    try:
        state = read_request(given, robot.joint_names, fields)
    except InputError as error:
        raise InputError(f"{end}: {error}") from None
    return np.concatenate((state.q, state.qd, state.qdd))[:len(fields)], state


def _notes(robot: Robot, motion: Retimed | PlannedMotion) -> tuple[str, ...]:
    return (*motion.notes, *(() if default_base(robot) is None else (LEVEL_BASE_NOTE,)))


def _rate(request: Request) -> float:
    rate = float(request["rate"])
    if not (rate > 0.0 and math.isfinite(rate)):
        raise InputError(f"rate is {rate:g}; a number of points per second above zero is needed")
    return rate


def _sampled(robot: Robot, motion: Retimed | PlannedMotion, rate: float, state: RequestedState) -> Answer:
    """Return the samples in the order of the request; the last point is at the end."""
    count = math.ceil(motion.duration * rate * (1.0 - 1e-9))
    if count > MAX_POINTS:
        raise InputError(f"rate {rate:g} makes {count} points of {motion.duration:.6g} s; at most {MAX_POINTS} are allowed")
    t = np.append(np.arange(count) / rate, motion.duration)
    q, qd, qdd, qddd = motion(t)
    blocks = (q, qd, qdd, *robot.torque_and_rate(q, qd, qdd, qddd), qddd)
    *motions, effort, effort_rate, jerk = (block[:, state.answer_order] for block in blocks)
    points = dict(zip(TRAJECTORY, motions, strict=True))
    trajectory = {"joint_names": state.joint_names, "times": t, **points, "effort": effort}
    return {"duration": motion.duration, "trajectory": trajectory, "jerk": jerk, "effort_rate": effort_rate}
