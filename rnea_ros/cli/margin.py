"""`rnea margin ROBOT.urdf [TRAJECTORY.csv ...]`: the share of the limits of torque and torque rate to plan with."""

from __future__ import annotations

import argparse

import numpy as np

from ..errors import InputError
from ..model.tree import Limits
from ..motion.margin import Doubts, limits_share
from ..motion.retime import Retimed, retime_motion
from ..robots.robot import Robot
from . import retime, robots
from .outcome import Outcome
from .progress import working
from .tables import table

PATHS, POINTS, SEED, SHARE = 6, 4, 0, 0.4  # of random paths, through the middle 80 % of the positions
NONE = Doubts(masses=0.0)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    robots.add_arguments(parser, base=False)
    parser.add_argument("trajectories", nargs="*", metavar="TRAJECTORY.csv",
                        help=f"paths as of `rnea retime`, which are retimed; default: {PATHS} random ones")
    parser.add_argument("--limits", metavar="LIMITS.yaml", help="robot file with limits over those of URDF and --robot-file")
    for name, unit, text in (
            ("masses", "SHARE", "each link's mass may be off by this share, independently"),
            ("all-masses", "SHARE", "all masses together may be off by this share"),
            ("payload", "KG", "mass that it may carry without anyone's knowledge"),
            ("friction-doubt", "SHARE", "share of the declared friction that may be missing, or too much"),
            ("stiction", "SHARE", "friction at rest above the declared Coulomb friction, as a share of it"),
            ("resolution", "RAD", "of the encoders in the loop"),
            ("cutoff", "HZ", "of the low-pass on measured velocities"),
            ("bandwidth", "RAD/S", "of the feedback, a PD; default 50"),
            ("period", "S", "for which the controller holds its torques")):
        default = getattr(NONE, name.removesuffix("-doubt").replace("-", "_"))
        parser.add_argument(f"--{name}", type=float, default=default, metavar=unit, help=text)
    parser.add_argument("--link", default="", metavar="LINK", help="that may carry the payload")
    parser.add_argument("--com", nargs=3, type=float, default=NONE.com, metavar=("X", "Y", "Z"), help="where on that link [m]")
    robots.add_friction(parser)
    robots.add_gravity(parser)


def run(args: argparse.Namespace) -> Outcome:
    robot = robots.served(args, Robot)
    limits, _forces = robots.limits(robot, args)
    given = {name: getattr(args, name) for name in Doubts._fields} | {"friction": args.friction_doubt, "com": tuple(args.com)}
    doubts = Doubts(**given)
    with working("retiming paths, and following them with other robots"):
        motions = [retime_motion(robot, *retime.read(path, robot.joint_names)[1:], limits=limits)
                   for path in args.trajectories]
        found = limits_share(robot, motions or random_motions(robot, limits), doubts, limits)
    shares = {name: share._asdict() for name, share in {**found.by_doubt, "together": found.shares}.items()}
    lines = table(("doubt", "torque", "rate"), [(name.replace("_", " "), *(f"{share:.3f}" for share in each.values()))
                                                for name, each in shares.items()], "<>>")
    advised = [np.floor(100.0 * share) / 100.0 for share in found.shares]
    lines.append("plan with --limits-share " + " ".join(f"{share:g}" for share in advised)
                 + " of the limits of torque and torque rate")
    return Outcome("\n".join(lines), {"robot": robot.name, "shares": shares, "limits_share": advised})


def random_motions(robot: Robot, limits: Limits, seed: int = SEED) -> list[Retimed]:
    """Inside the positions, as fast as the limits allow."""
    rng = np.random.default_rng(seed)
    known = np.isfinite(limits.lower) & np.isfinite(limits.upper)
    middle = np.where(known, 0.5 * (limits.lower + limits.upper), 0.0)
    width = np.where(known, np.minimum(limits.upper - limits.lower, 2.0 * np.pi), np.pi)
    points = middle + SHARE * width * rng.uniform(-1.0, 1.0, (10 * PATHS, POINTS, robot.n))
    found = []
    for one in points:
        try:
            found.append(retime_motion(robot, one, limits=limits))
        except InputError as error:  # it cannot be held up everywhere
            last = error
        if len(found) == PATHS:
            return found
    raise InputError(f"of {len(points)} random paths {len(found)} can be followed inside the limits: give paths. {last}")
