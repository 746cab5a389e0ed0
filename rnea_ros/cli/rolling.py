"""`rnea rolling ROBOT.urdf RECORDING --robot-file FILE`: ground forces, slip and tip-over margins of a robot on wheels."""

from __future__ import annotations

import argparse

import numpy as np

from ..io import csv_files
from ..robots.rolling import WheelOdometry, tip_over_margin, wheel_loads
from . import inputs
from .output import CommandResult, ProgressLine, check_files, format_table

POSE = ("x", "y", "z", "qx", "qy", "qz", "qw")


def add_rolling_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the subcommand."""
    inputs.add_robot_arguments(parser)
    parser.add_argument("recordings", nargs="*", metavar="RECORDING",
                        help="a CSV or a bag with the motion of the joints, as for rnea torque: columns t, q_<joint>, and "
                             "optionally qd_, qdd_, qddd_. The pose of the base is computed by dead reckoning from the "
                             "origin. For robots whose base can lean freely, such as bicycles, use rnea torque")
    parser.add_argument("-o", "--output", metavar="OUT.csv",
                        help="output with columns t, tau_, tau_rate_ of every joint, base_x to base_qw, normal_, tangential_ "
                        "and friction_use_ of every wheel [N, N, -], tip_over_margin [m]")
    inputs.add_recording_arguments(parser)
    inputs.add_window(parser)
    inputs.add_dynamics(parser)


def run_rolling(args: argparse.Namespace) -> CommandResult:
    """Run the subcommand."""
    check_files(args.output)
    path = inputs.single_recording(args)
    robot = inputs.load_robot(args, inputs.robot_description(args, path))
    odometry, motion = WheelOdometry(robot), inputs.read_motion(args, path, robot.joint_names, robot.joint_types)
    names, rows, progress = [wheel.name for wheel in robot.roles.wheels], [], ProgressLine()
    for k, t in enumerate(motion.t):
        state = odometry.advance(float(t), motion.q[k], motion.qd[k], motion.qdd[k], motion.qddd[k])
        assert odometry.solution is not None
        loads = wheel_loads(robot, odometry.solution, state)
        tau, rate = odometry.solution.torques
        rows.append(np.concatenate((
            [t], tau, rate, state.position, state.quaternion, [loads[name].normal[0] for name in names],
            [loads[name].tangential[0] for name in names], [loads[name].friction_use for name in names],
            [tip_over_margin(loads)])))
        progress.samples("computed", k + 1, len(motion.t))
    progress.close()
    columns = ["t", *(f"{head}_{name}" for head in ("tau", "tau_rate") for name in robot.joint_names),
               *(f"base_{part}" for part in POSE),
               *(f"{head}_{name}" for head in ("normal", "tangential", "friction_use") for name in names), "tip_over_margin"]
    table = dict(zip(columns, np.array(rows).T, strict=True))
    if args.output:
        csv_files.write_csv(args.output, columns, iter([np.array(rows)]), lambda _: None)
    margin, t = table["tip_over_margin"], table["t"]
    tipping = None if np.isnan(margin).all() else int(np.nanargmin(margin))
    wheels = [{"wheel": name, "least_normal": float(table[f"normal_{name}"].min()),
               "largest_tangential": float(table[f"tangential_{name}"].max()),
               "largest_friction_use": float(table[f"friction_use_{name}"].max())} for name in names]
    lines = format_table(("wheel", "least normal [N]", "largest tangential [N]", "largest friction use"),
                         [(str(one["wheel"]), *(f"{value:.4g}" for value in list(one.values())[1:])) for one in wheels],
                         "<>>>")
    if tipping is not None:
        lines.append(f"least tip-over margin {margin[tipping]:.4g} m at t = {t[tipping]:.13g} s"
                     + (": the vehicle tips over" if margin[tipping] < 0.0 else ""))
    lines.append(f"{len(t)} samples{f' -> {args.output}' if args.output else ''}")
    return CommandResult("\n".join(lines), {
        "robot": robot.name, "samples": len(t), "wheels": wheels,
        "least_tip_over_margin": None if tipping is None else float(margin[tipping]),
        "end_pose": {part: float(table[f"base_{part}"][-1]) for part in POSE}})


