"""`rnea demo --plant`: random paths of an arm in MuJoCo, each as planned, with TOPP-RA's timing and with ours."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from ...errors import RneaError
from ...sim.engine import mujoco
from ...sim.rendering import off_screen
from ..ending import ended
from . import movie, picture, report, toppra_timing, trials
from .arms import SOURCES, Arm, Source

ABOUT = """{robot} in MuJoCo: masses up to 5 % wrong, friction that its controller does not know of, drives with limits of
torque, torque rate and voltage. {motions} random paths, {timings} timings of each, one controller.
"""


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if our timing keeps what it promises."""
    if args.motions < 1:
        raise RneaError(f"--motions is {args.motions}; one or more is needed")
    if args.movie:
        off_screen()
    mujoco()
    began, rng = time.monotonic(), np.random.default_rng(args.seed)
    arm = Arm(Source(Path(args.urdf)) if args.urdf else SOURCES[args.arm])
    timings = dict(trials.SIDE_BY_SIDE)
    try:
        toppra_timing.toppra()
    except RneaError as error:
        del timings[trials.TOPPRA]
        print(f"{error}\nIt is left out.", file=sys.stderr)
    print(ABOUT.format(robot=arm.robot.name, motions=args.motions, timings=len(timings)), flush=True)
    tried, found = [], []
    for k in range(args.motions):
        task = trials.task(arm, rng)
        here = list(trials.outcomes(task, rng, timings))
        tried.append((task, here))
        found += here
        print(f"  path {k + 1} of {args.motions}, {task.fastest.duration:.2f} s at the fastest: " + "; ".join(
            f"{one.timing.partition(',')[0]} {'lost' if one.lost else f'{one.off:.1f} mm off'}" for one in here), flush=True)
    print(f"\n{report.table(found)}")
    if args.movie:
        movie.film(*tried[0], args.movie)
    how = f"{args.motions} motions, {len(timings)} timings of each, in {time.monotonic() - began:.0f} s"
    return ended(how, report.verdicts(found), "demo_plant.png" if args.plot is None else args.plot,
                 lambda path: picture.draw(*tried[0], found, path))
