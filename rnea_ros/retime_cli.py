"""`rnea retime ROBOT.urdf TRAJECTORY.csv`: the same path in the shortest time that the limits allow."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from . import limits_file, motion_csv, plot
from .errors import InputError
from .model import Limits
from .path_dynamics import PathDynamics
from .robot import GRAVITY, Robot
from .scaling import law as laws
from .scaling.retime import Route, retimed, route
from .scaling.terms import QUANTITIES, Constraints

BLOCKS = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
QUIET = 1.0  # s of work before progress is shown


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Beside the robot description, which `rnea` adds to every command."""
    parser.add_argument("trajectory", metavar="TRAJECTORY.csv",
                        help="columns t, q_<joint>; qd_<joint> tells where it stops on its way")
    parser.add_argument("-o", "--output", metavar="OUT.csv", required=True,
                        help=f"columns t and {', '.join(f'{block}_<joint>' for block in BLOCKS)}")
    parser.add_argument("--limits", metavar="LIMITS.yaml",
                        help="joint_limits as in ros2_control, and max_effort_rate, over those of the URDF")
    parser.add_argument("--plot", metavar="OUT.png", help="also draw torques and torque rates against their limits")
    parser.add_argument("--rate", type=float, default=1000.0, metavar="HZ", help="rows per second of OUT.csv, default 1000")
    parser.add_argument("--tolerance", type=float, default=1e-6, metavar="RAD",
                        help="how far points may lie off the path [rad, m], default 1e-6; more, for noisy recordings")
    parser.add_argument("--friction", action="store_true", help="use the URDF's damping and friction")
    parser.add_argument("--gravity", nargs=3, type=float, default=GRAVITY, metavar=("X", "Y", "Z"),
                        help="acceleration of gravity in the root link's frame [m/s^2], default 0 0 -9.81")
    parser.add_argument("--backend", choices=("llvm", "python", "reference"), default="llvm")


def run(args: argparse.Namespace) -> int:
    """The command."""
    if not 0.0 < args.rate < 1e5:
        raise InputError(f"--rate is {args.rate:g}; it must be above 0 and below 100000 Hz")
    if not args.tolerance >= 0.0:
        raise InputError(f"--tolerance is {args.tolerance:g}; it must not be negative")
    robot = Robot.from_urdf(args.urdf, args.base, args.backend, args.gravity, args.friction)
    limits = limits_file.read(args.limits, robot)[0] if args.limits else robot.limits
    progress = _Progress()
    t, way = _read(args, robot)
    dynamics = PathDynamics(robot)
    constraints = Constraints(way.path, dynamics, dynamics.limits(limits), robot.joint_names)
    for line in doubts(constraints, limits, way, args.tolerance):
        print(line, file=sys.stderr)
    law = retimed(constraints, progress)
    times = np.asarray(laws.samples(law.duration, 1.0 / args.rate))
    motion = moved(constraints, law, times)
    tau, tau_rate = robot.torque_and_rate(*motion)
    columns = np.hstack((times[:, None], *motion, tau, tau_rate))
    header = ["t"] + [f"{block}_{name}" for block in BLOCKS for name in robot.joint_names]
    motion_csv.write(args.output, header, _chunks(columns), lambda rows: None)
    if args.plot:
        draw(args.plot, robot, limits, times, tau, tau_rate)
    print(f"{t[-1] - t[0]:.6g} s -> {law.duration:.6g} s through {way.points} points, {len(times)} samples -> {args.output}"
          + (f", {args.plot}" if args.plot else ""))
    print("\n".join(most_used(constraints, limits, motion, tau, tau_rate)))
    return 0


def _read(args: argparse.Namespace, robot: Robot) -> tuple[np.ndarray, Route]:
    motion = motion_csv.read(args.trajectory, robot.joint_names)
    late = np.flatnonzero(np.diff(motion.t) <= 0.0)
    if len(late):
        k = int(late[0])
        raise InputError(f"{args.trajectory}: times must increase, but row {k + 3} has t = {motion.t[k + 1]:g} after "
                         f"{motion.t[k]:g}")
    return motion.t, route(motion.q, None if "qd" in motion.estimated else motion.qd, args.tolerance)


def doubts(constraints: Constraints, limits: Limits, way: Route, tolerance: float) -> list[str]:
    """What the user should know before trusting the result."""
    found, names = [], constraints.joint_names
    for quantity in QUANTITIES:
        unknown = [names[k] for k, which in constraints.unknown if which == quantity]
        if unknown:
            whose = "all joints" if len(unknown) == len(names) else ", ".join(unknown)
            found.append(f"not known, so not enforced: {quantity.replace('_', ' ')} limit of {whose}")
    if way.deviation > tolerance:
        found.append(f"points lie up to {way.deviation:.3g} off the path: they are too close together, or too noisy, to be "
                     "followed more closely")
    q = way.path(np.linspace(0.0, way.path.length, 2001))[0]
    for k, name in enumerate(names):
        low, high = limits.lower[k], limits.upper[k]
        if q[:, k].min() < low or q[:, k].max() > high:
            found.append(f"the path takes {name} from {q[:, k].min():.4g} to {q[:, k].max():.4g}, its limits are {low:.4g} to "
                         f"{high:.4g}")
    return found


def moved(constraints: Constraints, law: laws.TimeLaw, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q, qd, qdd, qddd (samples, n) at times t."""
    s, *rates = law(t)
    q, q1, q2, q3 = constraints.path(s)
    sd, sdd, sddd = (x[:, None] for x in rates)
    return q, q1 * sd, q2 * sd**2 + q1 * sdd, q3 * sd**3 + 3.0 * q2 * sd * sdd + q1 * sddd


def most_used(constraints: Constraints, limits: Limits, motion: Any, tau: np.ndarray, tau_rate: np.ndarray) -> list[str]:
    """For each quantity with a known limit, the joint that comes closest to it."""
    _, qd, qdd, qddd = motion
    lines = []
    for quantity, values in zip(QUANTITIES, (tau, tau_rate, qd, qdd, qddd)):
        limit = getattr(limits, quantity)
        if np.isfinite(limit).any():
            share = np.where(np.isfinite(limit), np.abs(values).max(axis=0) / limit, 0.0)
            k = int(share.argmax())
            name = constraints.joint_names[k]
            lines.append(f"{quantity.replace('_', ' '):<13} at most {100.0 * share[k]:6.2f} % of its limit, {name}")
    return lines


def draw(path: str | Path, robot: Robot, limits: Limits, t: np.ndarray, tau: np.ndarray, tau_rate: np.ndarray) -> None:
    """Torque and torque rate of every joint over time, with their limits."""
    plt = plot.pyplot()
    size = (11.0, 1.4 + 1.4 * robot.n)
    figure, axes = plt.subplots(robot.n, 2, figsize=size, sharex=True, squeeze=False, layout="constrained")
    for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types)):
        unit = "N" if kind == "prismatic" else "N m"
        for axis, values, limit, label, colour in ((axes[k, 0], tau, limits.effort, unit, "tab:blue"),
                                                   (axes[k, 1], tau_rate, limits.effort_rate, f"{unit}/s", "tab:red")):
            axis.plot(t, values[:, k], color=colour, linewidth=1.2)
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
            if np.isfinite(limit[k]):
                axis.axhspan(-limit[k], limit[k], color=colour, alpha=0.06)
                for edge in (-limit[k], limit[k]):
                    axis.axhline(edge, color="gray", linestyle="--", linewidth=0.9)
        axes[k, 0].set_title(name, loc="left", fontsize=9)
    axes[0, 0].set_title("torque", fontsize=10)
    axes[0, 1].set_title("torque rate", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.suptitle(f"The fastest motion on the path, {t[-1]:.4g} s; dashed: limits")
    figure.savefig(path, dpi=120)
    plt.close(figure)


def _chunks(table: np.ndarray) -> Iterator[np.ndarray]:
    for k in range(0, len(table), motion_csv.CHUNK):
        yield table[k:k + motion_csv.CHUNK]


class _Progress:
    """Lines on stderr, once the work takes longer than a moment."""

    def __init__(self) -> None:
        self.start = self.last = time.monotonic()

    def __call__(self, what: str, seconds: float) -> None:
        now = time.monotonic()
        if now - self.start > QUIET and now - self.last > 0.5:
            self.last = now
            print(f"{what}: {seconds:.6g} s so far", file=sys.stderr, flush=True)
