"""`rnea excite ROBOT.urdf -o OUT.csv`: an exciting trajectory for identification, within the robot's limits."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import InputError
from ..identification.excitation import ACCELERATION, FourierMotion, excite
from ..model import yaml_file
from ..robots.robot import Robot
from . import motion_output, output_files, robots
from .outcome import Outcome
from .progress import working

POINTS = 50.0  # per second, in a JointTrajectory


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser)
    motion_output.add_arguments(parser)
    parser.add_argument("--trajectory", metavar="OUT.yaml",
                        help=f"write a trajectory_msgs/JointTrajectory too, {POINTS:g} points per second")
    parser.add_argument("--period", type=float, default=10.0, metavar="S",
                        help="period of the motion before it is slowed [s], default 10")
    parser.add_argument("--periods", type=int, default=2, metavar="N", help="number of periods, default 2")
    parser.add_argument("--harmonics", type=int, default=5, metavar="N", help="harmonics of the Fourier series, default 5")
    parser.add_argument("--share", type=float, default=0.9, help="share of every limit that is used, default 0.9")
    parser.add_argument("--acceleration", type=float, default=ACCELERATION, metavar="A",
                        help=f"maximum acceleration of every joint, default {ACCELERATION:g} [rad/s^2, m/s^2]")
    parser.add_argument("--iterations", type=int, default=20, metavar="N",
                        help="iterations of the optimiser, default 20. 0: the best of 20 random motions")
    parser.add_argument("--noise", nargs="+", type=float, metavar="STD",
                        help="standard deviation of the measured torque of each joint [N m, N]; default: the same share of "
                             "each "
                             "joint's RMS torque")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random motions, default 0")


def run(args: argparse.Namespace) -> Outcome:
    if args.periods < 1:
        raise InputError(f"--periods is {args.periods}; at least 1 is needed")
    output_files.check_files(args.trajectory)
    moved, limits, _ = motion_output.robot_and_limits(args)
    robot = robots.of_kind(args, moved, Robot)
    with working("optimising the exciting trajectory"):
        found = excite(robot, args.period, args.harmonics, margin=args.share, acceleration=args.acceleration,
                       iterations=args.iterations, seed=args.seed, limits=limits, noise=args.noise)
    motion = _Repeated(found.motion, args.periods)
    lines = [f"predicted torque of other motions after {motion.duration:.4g} s: standard deviation "
             f"{found.prediction_std / np.sqrt(args.periods):.3g} times the torque noise (best random motion "
             f"{found.first / np.sqrt(args.periods):.3g}); condition number {found.condition_number:.4g}"]
    if found.slower > 1.0:
        lines.append(f"slowed {found.slower:.3g} times for limits of torque and torque rate: period "
                     f"{motion.motion.period:.4g} s")
    written = motion_output.write(args, robot, motion, limits)
    lines.append(written.text)
    data = {"prediction_std": found.prediction_std, "best_random_motion": found.first,
            "condition_number": found.condition_number, "slowed": found.slower,
            "period": motion.motion.period, **written.data}
    if args.trajectory:
        Path(args.trajectory).write_text(yaml_file.text(trajectory(robot.joint_names, motion)), encoding="utf-8")
        lines.append(f"-> {args.trajectory}")
        data["files"] = [*data["files"], args.trajectory]
    lines.append("collisions are not checked; the motion starts and ends at rest at the first position")
    return Outcome("\n".join(lines), data)


@dataclass(frozen=True, eq=False)
class _Repeated:
    """Motion repeated for some periods, at rest at its start and end."""

    motion: FourierMotion
    periods: int

    @property
    def duration(self) -> float:
        return self.periods * self.motion.period

    def __call__(self, t: np.ndarray, /) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        return self.motion(t)


def trajectory(joint_names: tuple[str, ...], motion: _Repeated) -> dict:
    """Return a JointTrajectory as `ros2 topic pub` and actions read it."""
    times = np.linspace(0.0, motion.duration, max(round(motion.duration * POINTS), 1) + 1)
    points = []
    for t, q, qd, qdd in zip(times, *motion(times)[:3], strict=True):
        nanoseconds = round(1e9 * float(t))
        points.append({"positions": q.tolist(), "velocities": qd.tolist(), "accelerations": qdd.tolist(),
                       "time_from_start": {"sec": nanoseconds // 10**9, "nanosec": nanoseconds % 10**9}})
    return {"joint_names": list(joint_names), "points": points}
