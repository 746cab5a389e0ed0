"""Motion of a 500 Hz controller behind scaling_node on a busy machine: points streamed, whole trajectories, horizons, goals.

    .venv/bin/python benchmark/controller_motions.py --runs 10 -o benchmark/controller_motions.md

The controller is the stand-in for joint_trajectory_controller in a separate process; every tenth update is 20 ms late.
Two processes beside it do nothing but compute. In each motion the node is paused, resumed, overridden, stopped for a second
(SIGSTOP), or given other limits, at random times; one more is cancelled, and the last one ends with SIGKILL. Where
control_msgs is not installed, the controller's action and state are other messages.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_msgs.msg import ScaledMotion
from support import control_msgs_stand_in
from support.controller_bench import CommandedMotion, ControllerBench
from support.overspeed_motion import DURATION, LIMITS, POINTS, START
from support.ros_helpers import ros_domain

LATE = {"late_every": 10, "late_by": 0.02, "allow_nonzero_velocity_at_trajectory_end": True}
STOPPED = 1.0  # s
STRAIGHT = 2.0  # s for which a motion straight to the goal is planned
AT_GOAL = 1e-6  # rad
ATTEMPTS = 40  # motions to one goal, where those before were given up
ROW = "| {} | {} | {} | {} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.2f} | {} | {} | {:.2f} | {:.2f} |\n"
HEAD = """# Execution of scaled motions by a controller

Written by benchmark/controller_motions.py. A 7R arm executes motions planned twice too fast; scaling_node and a stand-in for
joint_trajectory_controller (500 Hz, every tenth update 20 ms late) are processes that communicate over DDS, on {cores} cores
together with {busy} processes that compute permanently. In each motion the node is paused, resumed, overridden, suspended for
a second (SIGSTOP), or receives other limits, at random times. One more motion is cancelled, and the last one ends with
SIGKILL. Via: messages on ~/joint_trajectory (topic), or goals of ~/follow_joint_trajectory (action).

* Torque, torque rate: values required by the controller's commands from one update to the next, computed with the robot's
  exact dynamics, as shares of the limits. The plan uses up to 1.00 of them.
* Rate/planned: torque rate relative to the largest planned one of the joint, as far as the node published it; it publishes
  nothing while suspended.
* Off: distance from the path.
* Jump: deviation of a command from the velocities of two updates, as a share of the distance covered at full acceleration.
  0.1 is the curvature of a path, 1 is a jump.
* Abandoned: motions that the node ended because it had sent no point for too long; another motion leads straight to the goal.
* The last two columns describe the commands after SIGKILL.
* "points" is one point in each message (`points_stop_time: 0`); "points + stop 0.3" adds the default stop of 0.3 s after the
  point, with a controller that has `interpolate_from_desired_state`.

| output | via | motions | abandoned | torque | rate | rate/planned | off [mm] | jump | goals | after SIGKILL | torque | rate |
|---|---|---|---|---|---|---|---|---|---|---|---|---|
"""


class Piece(NamedTuple):
    """Commands of the controller while the arm was to move through points (count, n)."""

    commanded: CommandedMotion
    points: np.ndarray

    def figures(self, rates: np.ndarray) -> tuple[float, ...]:
        """Return shares of torque and torque rate, times planned, distance from the path [mm] and jump.

        rates: torque rates that the node published (samples, n)
        """
        one = self.commanded
        return *one.used(), one.times_planned(rates), 1e3 * one.off_the_path(self.points), one.jump()


class Found(NamedTuple):
    """Commands in each motion, the last one up to SIGKILL; commands after it; its outcome; counts of motions and failures."""

    pieces: list[Piece]
    after: CommandedMotion
    became: str
    motions: int
    given_up: int


def motions(bench: ControllerBench, runs: int, rng: np.random.Generator) -> Found:
    """Play them all."""
    found: list[Piece] = []
    for run in range(runs):
        to_goal(bench, POINTS if run % 2 == 0 else POINTS[::-1], rng, found)
    begin(bench, POINTS if runs % 2 == 0 else POINTS[::-1], rng)
    bench.serve("stop")
    rest(bench)
    found.append(Piece(bench.commanded(), POINTS))
    to_goal(bench, np.stack((bench.position, START)), rng, found, 0)
    while not begin(bench, POINTS, rng):
        rest(bench)
        found.append(Piece(bench.commanded(), POINTS))
        to_goal(bench, np.stack((bench.position, START)), rng, found, 0)
    bench.process.send(signal.SIGKILL)
    found.append(Piece(bench.commanded(), POINTS))
    bench.ros.spin(4.0)
    after, away = bench.commanded(), np.abs(bench.position - POINTS[-1]).max()
    became = "at rest, " * bench.rests + ("at the goal" if away < 1e-6 else "on the path")
    return Found(found, after, became, len(found), given_up(bench))


def to_goal(bench: ControllerBench, points: np.ndarray, rng: np.random.Generator, found: list[Piece], acts: int = 3) -> None:
    """Move through points with some acts on the way; from where the arm braked while the node hung, straight to the goal."""
    goal, duration = points[-1], DURATION if acts else STRAIGHT
    for _ in range(ATTEMPTS):
        before = given_up(bench)
        if begin(bench, points, rng, duration):
            for act in rng.permutation(["pause", "override", "hang", "limits"])[:acts]:
                change(bench, str(act), rng)
        rest(bench)
        found.append(Piece(bench.commanded(), points))
        off = np.abs(bench.position - goal).max()
        if off < AT_GOAL:
            return
        if given_up(bench) == before:
            raise SystemExit(f"a motion ended {off:.3g} rad from its goal, and was not given up:\n{bench.process.log}")
        points, duration, acts = np.stack((bench.position, goal)), STRAIGHT, 0
    raise SystemExit(f"{ATTEMPTS} motions to one goal were given up: the machine is too busy for points")


def given_up(bench: ControllerBench) -> int:
    """Return the number of motions that the node gave up, as no point was sent for too long."""
    return bench.process.log.count("the motion is given up")


def begin(bench: ControllerBench, points: np.ndarray, rng: np.random.Generator, duration: float = DURATION) -> bool:
    """Begin a motion; return whether it is under way, not given up at once."""
    before, seconds = given_up(bench), float(rng.uniform(0.1, 0.5))
    last = bench.received[-1].motion if bench.received else 0
    bench.send(points, duration)

    def is_moving() -> bool:
        return bool(bench.received and bench.received[-1].motion > last and bench.received[-1].t > seconds)

    bench.ros.until(lambda: given_up(bench) > before or is_moving(), what="no motion", of=bench.process)
    return given_up(bench) == before


def rest(bench: ControllerBench) -> None:
    bench.until("IDLE")
    bench.ros.until(lambda: bench.rests, timeout=20.0)


def change(bench: ControllerBench, act: str, rng: np.random.Generator) -> None:
    if act == "pause":
        bench.serve("pause")
        bench.ros.spin(float(rng.uniform(0.1, 0.5)))
        bench.serve("resume")
    elif act == "override":
        bench.override(float(rng.uniform(0.2, 0.8)))
        bench.ros.spin(0.2)
        bench.override(1.0)
    elif act == "hang":
        bench.process.send(signal.SIGSTOP)
        bench.ros.spin(STOPPED)
        bench.process.send(signal.SIGCONT)
    else:
        share = float(rng.uniform(0.7, 1.0))
        bench.ros.set(bench.node, **{f"joint_limits__{name}__max_effort_rate": share * rate for name, rate in zip(
            bench.names, LIMITS.effort_rate.tolist())})


def row(output: str, interface: str, runs: int, seed: int) -> str:
    label, rate = output, dict[str, float]()
    controller = LATE
    if output.startswith("points"):
        output, _, stop_time = output.partition(" + stop ")
        rate = {"control_rate": 1000.0, "points_stop_time": float(stop_time or 0.0)}
        controller = {**LATE, "interpolate_from_desired_state": True} if stop_time else LATE
    with tempfile.TemporaryDirectory() as folder, ros_domain(Path(folder)) as ros:
        if importlib.util.find_spec("control_msgs") is None:
            ros.through = [control_msgs_stand_in.__file__]
        planned: list[ScaledMotion] = []
        bench = ControllerBench(ros, Path(folder), output, controller, **rate, **{"controller.interface": interface}).ready()
        ros.node.create_subscription(ScaledMotion, f"{bench.node}/scaled_motion", planned.append, 1000)
        bench.ros.until(lambda: bench.diagnostics.values.get("controller.state") == "ok" or output == "points")
        found = motions(bench, runs, np.random.default_rng(seed))
        rates = np.array([message.effort_rate for message in planned])
        worst = np.max([piece.figures(rates) for piece in found.pieces], axis=0)
        return ROW.format(label, interface, found.motions, found.given_up, *worst,
                          bench.controller.log.count("goal accepted"), found.became, *found.after.used())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", nargs="+", default=[
        "points/topic", "points + stop 0.3/topic", "trajectory/topic", "horizon/topic", "trajectory/action", "horizon/action"])
    parser.add_argument("--busy", type=int, default=2, help="processes that compute all the time")
    parser.add_argument("--note", default="", help="sentences about the run, for the page")
    parser.add_argument("-o", type=Path)
    given = parser.parse_args()
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(given.busy)]
    try:
        page = HEAD.format(busy=given.busy, cores=os.cpu_count())
        for kind in given.rows:
            page += row(*kind.split("/"), given.runs, given.seed)
            print(page.splitlines()[-1], flush=True)
    finally:
        for process in busy:
            process.kill()
    if given.o:
        page += f"\n{given.note}\n" if given.note else ""
        given.o.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
