"""`rnea plan ROBOT.urdf --from Q .. --to Q ..`: a smooth, nearly fastest motion, or the best trade of time and effort."""

from __future__ import annotations

import argparse
import sys

import numpy as np

from ..errors import InputError, some
from ..motion import clearance_file
from ..motion.plan import TIME_TOLERANCE, plan_motion
from ..planning import Settings, SolverProgress
from ..robots.link_side import level, link_side
from . import motion_output, robots
from .outcome import Outcome
from .progress import ProgressLine

DEFAULT = Settings()
LOOKS = 2001  # at distances along the plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    parser.add_argument("--from", dest="start", nargs="+", type=float, required=True, metavar="Q",
                        help="where it rests at the start, one number for each joint, order as in `rnea model` [rad, m]")
    parser.add_argument("--to", dest="goal", nargs="+", type=float, required=True, metavar="Q", help="and at the end")
    parser.add_argument("--waypoint", dest="waypoints", nargs="+", type=float, action="append", metavar="Q",
                        help="a pose that it passes on its way; once for each, in their order")
    parser.add_argument("--shares", nargs="+", type=float, metavar="U",
                        help="when it passes them: shares of the duration, from 0 to 1; default: when a motion straight from "
                             "one to the next would")
    parser.add_argument("--clearance", metavar="FILE.yaml",
                        help="what stays apart: spheres on links, obstacles, see docs/planning.md")
    parser.add_argument("--guess", nargs="+", type=float, action="append", metavar="Q",
                        help="a pose near which to look first, for instance on the other side of an obstacle; once for each")
    motion_output.add_arguments(parser)
    parser.add_argument("--weights", nargs=2, type=float, default=(1.0, 0.0), metavar=("TIME", "EFFORT"),
                        help="what is minimised: integral of TIME + EFFORT * sum of squared torques; default 1 0, the fastest")
    parser.add_argument("--time-tolerance", type=float, default=TIME_TOLERANCE, metavar="SHARE",
                        help="where time alone is minimised: plan the smoothest motion (least squared jerk of all joints) "
                             "among those that take at most this share longer than the fastest; with a weight of EFFORT: "
                             "add a penalty on squared jerk, for a part of this share of the cost; 0: the best itself; "
                             f"default {TIME_TOLERANCE:g}")
    parser.add_argument("--duration", nargs="+", type=float, metavar="S", help="given, or shortest and longest [s]")
    parser.add_argument("--degree", type=int, default=DEFAULT.degree, help=f"of the B-splines, default {DEFAULT.degree}")
    parser.add_argument("--spans", type=int, default=DEFAULT.spans, help=f"to begin with, default {DEFAULT.spans}")
    parser.add_argument("--refinements", type=int, default=DEFAULT.refinements,
                        help=f"halvings of spans where the plan asks for it, at most; default {DEFAULT.refinements}")
    parser.add_argument("--best-of", type=int, default=1, metavar="N", help="plans from N different guesses; default 1")


def run(args: argparse.Namespace) -> Outcome:
    robot, limits, forces = motion_output.robot_and_limits(args)
    settings = Settings(degree=args.degree, spans=args.spans, refinements=args.refinements, best_of=args.best_of)
    clearance = clearance_file.read(args.clearance, robot) if args.clearance else None
    for option, position in (("--from", args.start), ("--to", args.goal)):
        if (count := len(position)) != robot.n:
            raise InputError(f"{option}: {count} value{'s' * (count != 1)}, {robot.n} needed, for {some(robot.joint_names)}")
    watch = ProgressLine(work="planning")
    try:
        plan = plan_motion(robot, args.start, args.goal, time=args.weights[0], effort=args.weights[1],
                           limits=limits.share(*args.limits_share), joint_force=forces, duration=args.duration,
                           settings=settings, report=lambda now: watch(_progress(now)), base=level(robot),
                           waypoints=_waypoints(args), guess=args.guess, clearance=clearance,
                           time_tolerance=args.time_tolerance)
    finally:
        watch.close()
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    written = motion_output.write(args, robot, plan, limits)
    lines = [f"{plan.duration:.6g} s, objective {plan.objective:.6g}, {plan.control_points} control points, {plan.iterations} "
             f"iterations, {written.text}"]
    data = {"objective": plan.objective, "control_points": plan.control_points, "iterations": plan.iterations,
            "notes": list(plan.notes), **written.data}
    if clearance is not None:
        nearest, whose = clearance.nearest(link_side(robot, level(robot)), plan(np.linspace(0.0, plan.duration, LOOKS))[0])
        data["clearance"] = {"distance": nearest, "between": whose}
        lines.append(f"distance     at least {nearest:.6g} m, {whose}")
    if "squared joint force" in plan.excess:
        data["joint_force_share"] = (1.0 + plan.excess["squared joint force"]) ** 0.5
        lines.append(f"joint force  at most {100.0 * data['joint_force_share']:6.2f} % of its limit")
    return Outcome("\n".join(lines), data)


def _waypoints(args: argparse.Namespace) -> list[list[float]] | dict[float, list[float]] | None:
    if args.shares is None:
        return args.waypoints
    poses, shares = args.waypoints or [], args.shares
    if len(set(shares)) != len(poses):
        raise InputError(f"--shares has {len(set(shares))} different numbers, and there are {len(poses)} of --waypoint; one "
                         "share of the duration is needed for each")
    return dict(zip(shares, poses))


def _progress(now: SolverProgress) -> str:
    return (f"{now.stage}: iteration {now.iteration}, {now.duration:.5g} s, {now.control_points} control points, "
            f"limits within {max(now.violation, 0.0):.1e}")
