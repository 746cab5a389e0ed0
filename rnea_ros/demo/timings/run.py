"""`rnea demo --plant`: random paths of an arm in MuJoCo, each as planned, with TOPP-RA's timing and with ours."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from ...cli.outcome import Outcome
from ...errors import RneaError
from ...sim.rendering import select_offscreen_renderer
from ...sim.scene import mujoco
from ..ending import ended
from ..processes import own
from . import live, movie, picture, report, toppra_timing, trials
from .arms import SOURCES, Arm, Source

MANY, FEW = 8, 4  # motions; over ROS in real time
Follow = Callable[[trials.Task], Iterator[trials.Outcome]]
ABOUT = """{robot} in MuJoCo: masses up to 5 % wrong, friction that its controller does not know of, drives with limits of
torque, torque rate and voltage. {motions} random paths, {timings} timings of each, one controller.
"""


def run(args: argparse.Namespace) -> Outcome:
    """Exit code 0 if our timing keeps what it promises."""
    motions = args.motions if args.motions is not None else FEW if args.live else MANY
    if motions < 1:
        raise RneaError(f"--motions is {motions}; one or more is needed")
    if args.live:
        live.plant_session()  # is it there? Before the work, which takes a while
    if args.movie:
        select_offscreen_renderer()
    mujoco()
    began, rng = time.monotonic(), np.random.default_rng(args.seed)
    arm = Arm(Source(own(args.urdf)) if args.urdf else SOURCES[args.arm])
    timings = dict(trials.SIDE_BY_SIDE)
    try:
        toppra_timing.toppra()
    except RneaError as error:
        del timings[trials.TOPPRA]
        print(f"{error}\nIt is left out.", file=sys.stderr)
    print(ABOUT.format(robot=arm.robot.name, motions=motions, timings=len(timings)), flush=True)
    tried, pace = [], ""
    with _arm(args, arm, rng, timings) as follow:
        for k in range(motions):
            tried.append(_tried(follow, trials.task(arm, rng), f"path {k + 1} of {motions}"))
        if isinstance(follow, live.LiveArm):
            pace = live.told(follow.pace)
    found = [outcome for _, outcomes in tried for outcome in outcomes]
    print(f"\n{report.table(found)}")
    if args.movie:
        movie.film(*tried[0], args.movie)
    how = f"{motions} motions, {len(timings)} timings of each, in {time.monotonic() - began:.0f} s{pace}"
    return ended(how, report.verdicts(found), args.plot, lambda path: picture.draw(*tried[0], found, path),
                 report.numbers(found))


def _arm(args: argparse.Namespace, arm: Arm, rng: np.random.Generator, timings: dict[str, trials.Timing]
         ) -> AbstractContextManager[Follow]:
    """What follows a task: here, another plant for each; over ROS one for all."""
    if args.live:
        return live.live_arm(args, arm, arm.masses(rng), timings)
    return nullcontext(lambda task: trials.outcomes(task, rng, timings))


def _tried(follow: Follow, task: trials.Task, name: str) -> tuple[trials.Task, list[trials.Outcome]]:
    outcomes = list(follow(task))
    print(f"  {name}, {task.fastest.duration:.2f} s at the fastest: " + "; ".join(
        f"{one.timing.partition(',')[0]} {'lost' if one.lost else f'{one.off:.1f} mm off'}" for one in outcomes), flush=True)
    return task, outcomes
