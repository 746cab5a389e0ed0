"""Commands that make motions: `rnea retime`, `rnea plan`, `rnea excite` and `rnea margin`."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError, some
from ..identification.excitation import OPTIONS, FourierMotion, excite
from ..io import csv_files, figures, files
from ..io.figures import TimedMotion
from ..io.recording import ReadingOptions, RecordingRequest
from ..model import yaml_file
from ..model.tree import Limits
from ..planning import PlanSettings, SolverProgress
from ..robots.robot import Robot
from ..trajectory.clearance import read_clearance
from ..trajectory.limit_utilization import LimitUtilization, PeakTracker, added_rate, resolve_limits
from ..trajectory.margin import ModelUncertainty, limits_share
from ..trajectory.path_dynamics import default_base, link_side
from ..trajectory.plan_motion import TIME_TOLERANCE, plan_motion
from ..trajectory.retiming import Retimed, ThermalAccumulator, retime_motion, slow_to_continuous_duty, thermal_drives
from . import inputs
from .output import CommandResult, ProgressLine, check_files, format_table, show_working

BLOCKS = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
MOST_ROWS = 10_000_000


def add_motion_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that write motions."""
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True,
                        help=f"motion to write, columns t and {', '.join(f'{block}_<joint>' for block in BLOCKS)}")
    parser.add_argument("--limits", metavar="LIMITS.yaml",
                        help="robot file with limits, or parameter file with joint_limits; they replace those of URDF and "
                             "--robot-file: max_effort_rate (of the whole joint torque), max_commanded_effort_rate (of the "
                             "torque without the terms that the robot's controller adds), max_velocity, ...")
    parser.add_argument("--limits-share", nargs=2, type=float, default=(1.0, 1.0), metavar=("TORQUE", "RATE"),
                        help="shares of the limits of torque and torque rate to plan with, as `rnea margin` computes them; "
                        "default 1 1")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="rows per second of OUT.csv, default 1000")
    parser.add_argument("--plot", metavar="OUT.png", help="also draw the motion with its limits")
    inputs.add_dynamics(parser)


def robot_and_limits(args: argparse.Namespace,
                     recording: Path | None = None) -> tuple[Robot, Limits, dict[str, float]]:
    """Return the robot, of any kind, its limits, and the largest internal joint forces by joint.

    recording : a recording that may describe the robot
    """
    if not (args.rate > 0.0 and math.isfinite(args.rate)):
        raise InputError(f"--rate is {args.rate:g}; a number of rows per second above zero is needed")
    check_files(args.output, args.plot)
    if args.plot:
        figures.check_format(args.plot)
    robot = inputs.load_robot(args, inputs.robot_description(args, recording) if recording else None)
    link_side(robot, default_base(robot))  # raises if the robot cannot be moved along a path
    return robot, *inputs.read_limits(robot, args)


def write_motion(args: argparse.Namespace, moved: Robot, motion: TimedMotion, limits: Limits) -> CommandResult:
    """Write CSV and picture; the result has the files and the largest utilization of each limit."""
    count = math.ceil(motion.duration * args.rate * (1.0 - 1e-9))  # steps; the last one may be shorter
    if count > MOST_ROWS:
        raise InputError(
                         f"--rate {args.rate:g} makes {count} rows of {motion.duration:.6g} s; allowed are {MOST_ROWS}")
    t, robot = np.append(np.arange(count) / args.rate, motion.duration), link_side(moved, default_base(moved))
    peaks = PeakTracker(LimitUtilization.of(robot, resolve_limits(robot, limits)))

    def rows() -> Iterator[np.ndarray]:
        for k in range(0, len(t), csv_files.CHUNK):
            part = t[k:k + csv_files.CHUNK]
            state = motion(part)
            blocks = (*state, *robot.torque_and_rate(*state))
            thermal.add(part, blocks[4])
            peaks.add(part, *blocks[4:], *blocks[:4])
            yield np.column_stack((part, *blocks))

    thermal = ThermalAccumulator(thermal_drives(moved), robot.joint_names)
    header = ["t", *(f"{block}_{joint}" for block in BLOCKS for joint in robot.joint_names)]
    csv_files.write_csv(args.output, header, rows(), lambda rows: None)
    if args.plot:
        figures.draw_motion(args.plot, robot, motion, limits, added_rate(robot))
    files = [path for path in (args.output, args.plot) if path]
    wide = max([14, *(len(peak.quantity) for peak in peaks.by_quantity())])
    used = [f"{peak.quantity.replace('_', ' '):<{wide}} at most {100.0 * peak.share:6.2f} % of its limit, {peak.owner}"
            for peak in peaks.by_quantity()]
    thermal_load = thermal.load()
    return CommandResult("\n".join([f"{len(t)} rows -> {', '.join(files)}", *used, *thermal_load.descriptions]), {
        "duration": motion.duration, "rows": len(t), "files": files,
        "limits": [peak._asdict() for peak in peaks.by_quantity()], "thermal_load": thermal_load._asdict()})


def add_retime_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea retime`."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="TRAJECTORY",
                        help="a CSV with columns q_<joint>, optionally t, and qd_<joint>, zero at stops; or a ROS 2 bag")
    inputs.add_recording_arguments(parser)
    add_motion_arguments(parser)
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="RAD",
                        help="maximum distance of waypoints from the path [rad, m], default 1e-6; larger for noisy recordings")
    parser.add_argument("--repeated", nargs="?", type=float, const=0.0, metavar="PAUSE",
                        help="slow the motion so that it can be repeated indefinitely, with a pause [s], default 0, after "
                             "each repetition, and no winding overheats (continuous_current, thermal_time_constant)")


def run_retime(args: argparse.Namespace) -> CommandResult:
    """Run `rnea retime`; return its result."""
    path = inputs.single_recording(args)
    robot, limits, _forces = robot_and_limits(args, path)
    how = inputs.reading_options(args)
    t, points, velocities = read_path(path, robot.joint_names, how, robot.joint_types)
    files.check_angle_unit(path, how, robot, points)
    watch = ProgressLine()
    motion = retime_motion(robot, points, velocities, limits.share(*args.limits_share), args.tolerance,
                           lambda what, seconds: watch(f"{what}: {seconds:.6g} s so far"), base=default_base(robot))
    watch.close()
    if args.repeated is not None:
        motion = slow_to_continuous_duty(robot, motion, args.repeated)
    for note in motion.notes:
        print(f"note: {note}", file=sys.stderr)
    written = write_motion(args, robot, motion, limits)
    timed = _has_times(path, how)
    before = f"{t[-1] - t[0]:.6g} s -> " if timed else ""
    return CommandResult(f"{before}{motion.duration:.6g} s through {motion.route.points} points, {written.text}",
                   {"duration_before": t[-1] - t[0] if timed else None, "points": motion.route.points,
                    "notes": list(motion.notes), **written.data})


def read_path(path: str | Path, joint_names: tuple[str, ...],
              how: ReadingOptions = ReadingOptions(), joint_types: tuple[str, ...] = ()) -> tuple[np.ndarray, np.ndarray,
                                                                                                  np.ndarray | None]:
    """Return t (samples,), increasing, q (samples, n), and qd if given; t counts the rows of a file without times."""
    how = how if _has_times(path, how) else how._replace(rate=1.0)
    known = inputs.read_recording(path, RecordingRequest(joint_names, reading=how, joint_types=joint_types))
    t = known["t"]
    if len(t) < 2:
        raise InputError(f"{path}: one row; a path needs at least two points")
    late = np.flatnonzero(np.diff(t) <= 0.0)
    if len(late):
        k = int(late[0])
        raise InputError(f"{path}: times must increase, but row {k + 3} has t = {t[k + 1]:.13g} after {t[k]:.13g}")
    return t, known["q"], known.get("qd")


def _has_times(path: str | Path, how: ReadingOptions) -> bool:
    return how.rate is not None or files.is_bag(path) or csv_files.has_times(path, how.csv)


DEFAULT_SETTINGS = PlanSettings()
N_CLEARANCE_SAMPLES = 2001  # along the plan


def add_plan_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea plan`."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("--from", dest="start", nargs="+", type=float, required=True, metavar="Q",
                        help="joint positions at the start, at rest, in the order of `rnea model` [rad, m]")
    parser.add_argument("--to", dest="goal", nargs="+", type=float, required=True, metavar="Q",
                        help="joint positions at the goal, at rest [rad, m]")
    parser.add_argument("--waypoint", dest="waypoints", nargs="+", type=float, action="append", metavar="Q",
                        help="joint positions that the motion passes; may be repeated, in order")
    parser.add_argument("--shares", nargs="+", type=float, metavar="U",
                        help="times of the waypoints as shares of the duration, from 0 to 1; default: those of straight "
                        "motions between them")
    parser.add_argument("--clearance", metavar="FILE.yaml",
                        help="collision model: spheres on links, obstacles, see docs/planning.md")
    parser.add_argument("--guess", nargs="+", type=float, action="append", metavar="Q",
                        help="joint positions of an initial guess, for instance beside an obstacle; may be repeated")
    add_motion_arguments(parser)
    parser.add_argument("--weights", nargs=2, type=float, default=(1.0, 0.0), metavar=("TIME", "EFFORT"),
                        help="weights of the objective, the integral of TIME + EFFORT * sum of squared torques; default 1 0, "
                             "minimum time")
    parser.add_argument("--time-tolerance", type=float, default=TIME_TOLERANCE, metavar="SHARE",
                        help="for minimum time: plan the smoothest motion (least squared jerk of all joints) "
                        "among those that take at most this share longer than the fastest; with a weight of EFFORT: "
                             "add a penalty on squared jerk, for a part of this share of the cost; 0: the optimum; "
                        f"default {TIME_TOLERANCE:g}")
    parser.add_argument("--duration", nargs="+", type=float, metavar="S",
                        help="fixed duration, or shortest and longest duration [s]")
    parser.add_argument("--degree", type=int, default=DEFAULT_SETTINGS.degree,
                        help=f"degree of the B-splines, default {DEFAULT_SETTINGS.degree}")
    parser.add_argument("--spans", type=int, default=DEFAULT_SETTINGS.spans,
                        help=f"initial number of spans, default {DEFAULT_SETTINGS.spans}")
    parser.add_argument("--refinements", type=int, default=DEFAULT_SETTINGS.refinements,
                        help=f"maximum number of refinements of the spans, default {DEFAULT_SETTINGS.refinements}")
    parser.add_argument("--best-of", type=int, default=1, metavar="N",
                        help="number of initial guesses, of which the best plan is returned; default 1")


def run_plan(args: argparse.Namespace) -> CommandResult:
    """Run `rnea plan`; return its result."""
    robot, limits, forces = robot_and_limits(args)
    settings = PlanSettings(degree=args.degree, spans=args.spans, refinements=args.refinements, best_of=args.best_of)
    clearance = read_clearance(args.clearance, robot) if args.clearance else None
    for option, position in (("--from", args.start), ("--to", args.goal)):
        if (count := len(position)) != robot.n:
            raise InputError(f"{option}: {count} value{'s' * (count != 1)}, {robot.n} needed, for {some(robot.joint_names)}")
    watch = ProgressLine(work="planning")
    try:
        plan = plan_motion(robot, args.start, args.goal, time=args.weights[0], effort=args.weights[1],
                           limits=limits.share(*args.limits_share), joint_force=forces, duration=args.duration,
                           settings=settings, report=lambda now: watch(_progress_text(now)), base=default_base(robot),
                           waypoints=_waypoints(args), guess=args.guess, clearance=clearance,
                           time_tolerance=args.time_tolerance)
    finally:
        watch.close()
    for note in plan.notes:
        print(f"note: {note}", file=sys.stderr)
    written = write_motion(args, robot, plan, limits)
    lines = [f"{plan.duration:.6g} s, objective {plan.objective:.6g}, {plan.control_points} control points, {plan.iterations} "
             f"iterations, {written.text}"]
    data = {"objective": plan.objective, "control_points": plan.control_points, "iterations": plan.iterations,
            "notes": list(plan.notes), **written.data}
    if clearance is not None:
        t = np.linspace(0.0, plan.duration, N_CLEARANCE_SAMPLES)
        nearest, whose = clearance.nearest(link_side(robot, default_base(robot)), plan(t)[0])
        data["clearance"] = {"distance": nearest, "between": whose}
        lines.append(f"distance     at least {nearest:.6g} m, {whose}")
    if "squared joint force" in plan.excess:
        data["joint_force_share"] = (1.0 + plan.excess["squared joint force"]) ** 0.5
        lines.append(f"joint force  at most {100.0 * data['joint_force_share']:6.2f} % of its limit")
    return CommandResult("\n".join(lines), data)


def _waypoints(args: argparse.Namespace) -> list[list[float]] | dict[float, list[float]] | None:
    if args.shares is None:
        return args.waypoints
    poses, shares = args.waypoints or [], args.shares
    if len(set(shares)) != len(poses):
        raise InputError(f"--shares has {len(set(shares))} different numbers, and there are {len(poses)} of --waypoint; one "
                         "share of the duration is needed for each")
    return dict(zip(shares, poses))


def _progress_text(now: SolverProgress) -> str:
    return (f"{now.stage}: iteration {now.iteration}, {now.duration:.5g} s, {now.control_points} control points, "
            f"limits within {max(now.violation, 0.0):.1e}")


TRAJECTORY_RATE_HZ = 50.0  # per second


def add_excite_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea excite`."""
    inputs.add_robot_arguments(parser)
    add_motion_arguments(parser)
    parser.add_argument("--trajectory", metavar="OUT.yaml",
                        help=f"write a trajectory_msgs/JointTrajectory too, {TRAJECTORY_RATE_HZ:g} points per second")
    parser.add_argument("--period", type=float, default=10.0, metavar="S",
                        help="period of the motion before it is slowed [s], default 10")
    parser.add_argument("--periods", type=int, default=2, metavar="N", help="number of periods, default 2")
    parser.add_argument("--harmonics", type=int, default=5, metavar="N", help="harmonics of the Fourier series, default 5")
    parser.add_argument("--share", type=float, default=0.9, help="share of every limit that is used, default 0.9")
    parser.add_argument("--acceleration", type=float, default=OPTIONS.unknown_acceleration, metavar="A",
                        help=f"maximum acceleration of every joint, default {OPTIONS.unknown_acceleration:g} [rad/s^2, m/s^2]")
    parser.add_argument("--iterations", type=int, default=20, metavar="N",
                        help="iterations of the optimiser, default 20. 0: the best of 20 random motions")
    parser.add_argument("--noise", nargs="+", type=float, metavar="STD",
                        help="standard deviation of the measured torque of each joint [N m, N]; default: the same share of "
                        "each joint's RMS torque")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random motions, default 0")


def run_excite(args: argparse.Namespace) -> CommandResult:
    """Run `rnea excite`; return its result."""
    if args.periods < 1:
        raise InputError(f"--periods is {args.periods}; at least 1 is needed")
    check_files(args.trajectory)
    moved, limits, _ = robot_and_limits(args)
    robot = inputs.require_fixed_tree(args, moved)
    with show_working("optimising the exciting trajectory"):
        found = excite(robot, args.period, args.harmonics, margin=args.share, acceleration=args.acceleration,
                       iterations=args.iterations, seed=args.seed, limits=limits, noise=args.noise)
    motion = _Repeated(found.motion, args.periods)
    lines = [f"predicted torque of other motions after {motion.duration:.4g} s: standard deviation "
             f"{found.prediction_std / np.sqrt(args.periods):.3g} times the torque noise (best random motion "
             f"{found.first / np.sqrt(args.periods):.3g}); condition number {found.condition_number:.4g}"]
    if found.slower > 1.0:
        lines.append(f"slowed {found.slower:.3g} times for limits of torque and torque rate: period "
                     f"{motion.motion.period:.4g} s")
    written = write_motion(args, robot, motion, limits)
    lines.append(written.text)
    data = {"prediction_std": found.prediction_std, "best_random_motion": found.first,
            "condition_number": found.condition_number, "slowed": found.slower,
            "period": motion.motion.period, **written.data}
    if args.trajectory:
        Path(args.trajectory).write_text(yaml_file.text(joint_trajectory(robot.joint_names, motion)), encoding="utf-8")
        lines.append(f"-> {args.trajectory}")
        data["files"] = [*data["files"], args.trajectory]
    lines.append("collisions are not checked; the motion starts and ends at rest at the first position")
    return CommandResult("\n".join(lines), data)


@dataclass(frozen=True, eq=False)
class _Repeated:
    """Excitation repeated for some periods, at rest at its start and end."""

    motion: FourierMotion
    periods: int

    @property
    def duration(self) -> float:
        return self.periods * self.motion.period

    def __call__(self, t: np.ndarray, /) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.motion(t)


def joint_trajectory(joint_names: tuple[str, ...], motion: _Repeated) -> dict:
    """Return a JointTrajectory as `ros2 topic pub` and actions read it."""
    times = np.linspace(0.0, motion.duration, max(round(motion.duration * TRAJECTORY_RATE_HZ), 1) + 1)
    points = []
    for t, q, qd, qdd in zip(times, *motion(times)[:3], strict=True):
        nanoseconds = round(1e9 * float(t))
        points.append({"positions": q.tolist(), "velocities": qd.tolist(), "accelerations": qdd.tolist(),
                       "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}})
    return {"joint_names": list(joint_names), "points": points}


N_RANDOM_PATHS, N_PATH_POINTS, PATH_SEED, RANGE_SHARE = 6, 4, 0, 0.4  # random paths in the middle 80 % of the position range
NO_UNCERTAINTY = ModelUncertainty(masses=0.0)


def add_margin_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `rnea margin`."""
    inputs.add_robot_arguments(parser, base=False)
    parser.add_argument("trajectories", nargs="*", metavar="TRAJECTORY.csv",
                        help=f"paths as for `rnea retime`, which are retimed; default: {N_RANDOM_PATHS} random ones")
    parser.add_argument("--limits", metavar="LIMITS.yaml", help="robot file with limits that replace those of URDF and "
                                                                "--robot-file")
    for name, unit, text in (
            ("masses", "SHARE", "relative error of each link's mass, independent of the others"),
            ("all-masses", "SHARE", "common relative error of all masses"),
            ("payload", "KG", "unknown payload mass [kg]"),
            ("friction-uncertainty", "SHARE", "relative error of the declared friction"),
            ("stiction", "SHARE", "static friction above the declared Coulomb friction, as a share of it"),
            ("resolution", "RAD", "resolution of the encoders [rad, m]"),
            ("cutoff", "HZ", "cutoff frequency of the low-pass on measured velocities [Hz]"),
            ("bandwidth", "RAD/S", "bandwidth of the PD feedback [rad/s]; default 50"),
            ("period", "S", "control period, for which torques are held [s]")):
        default = getattr(NO_UNCERTAINTY, name.removesuffix("-uncertainty").replace("-", "_"))
        parser.add_argument(f"--{name}", type=float, default=default, metavar=unit, help=text)
    parser.add_argument("--link", default="", metavar="LINK", help="link that may carry the payload")
    parser.add_argument("--com", nargs=3, type=float, default=NO_UNCERTAINTY.com, metavar=("X", "Y", "Z"),
                        help="position of the payload on the link [m]")
    inputs.add_friction(parser)
    inputs.add_gravity(parser)


def run_margin(args: argparse.Namespace) -> CommandResult:
    """Run `rnea margin`; return its result."""
    robot = inputs.load_fixed_tree(args)
    limits, _forces = inputs.read_limits(robot, args)
    given = {name: getattr(args, name) for name in ModelUncertainty._fields}
    uncertainty = ModelUncertainty(**given | {"friction": args.friction_uncertainty, "com": tuple(args.com)})
    with show_working("retiming paths and tracking them with varied models"):
        motions = [retime_motion(robot, *read_path(path, robot.joint_names)[1:], limits=limits)
                   for path in args.trajectories]
        found = limits_share(robot, motions or random_motions(robot, limits), uncertainty, limits)
    shares = {name: share._asdict() for name, share in {**found.by_source, "together": found.shares}.items()}
    lines = format_table(("uncertainty", "torque", "rate"),
                         [(name.replace("_", " "), *(f"{share:.3f}" for share in each.values()))
                          for name, each in shares.items()], "<>>")
    advised = [np.floor(100.0 * share) / 100.0 for share in found.shares]
    lines.append("plan with --limits-share " + " ".join(f"{share:g}" for share in advised)
                 + " of the limits of torque and torque rate")
    return CommandResult("\n".join(lines), {"robot": robot.name, "shares": shares, "limits_share": advised})


def random_motions(robot: Robot, limits: Limits, seed: int = PATH_SEED) -> list[Retimed]:
    """Return random motions within the position range, as fast as the limits allow."""
    rng = np.random.default_rng(seed)
    known = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    middle = np.where(known, 0.5 * (limits.lower + limits.upper), 0.0)
    width = np.where(known, np.minimum(limits.upper - limits.lower, 2.0 * np.pi), np.pi)
    points = middle + RANGE_SHARE * width * rng.uniform(-1.0, 1.0, (10 * N_RANDOM_PATHS, N_PATH_POINTS, robot.n))
    found = []
    for one in points:
        try:
            found.append(retime_motion(robot, one, limits=limits))
        except InputError as error:  # gravity is infeasible somewhere on the path
            last = error
        if len(found) == N_RANDOM_PATHS:
            return found
    raise InputError(f"{len(found)} of {len(points)} random paths are feasible within the limits: give trajectories. {last}")
