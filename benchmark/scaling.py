"""Motions planned twice too fast, played inside their limits: writes scaling.md and scaling.png beside this file.

    python benchmark/scaling.py [--motions 50] [--optima FILE.json]

About 40 minutes. --optima keeps the optima, which depend on nothing that scaling/ does, from one run to the next.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import sys
import time
from operator import methodcaller
from pathlib import Path

import casadi
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from rnea_ros import InputError
from rnea_ros.io.figures import new_figure
from rnea_ros.trajectory import TrajectoryScaler, follow_plan
from rnea_ros.trajectory.path_dynamics import PathDynamics
from support.scaling_cases import ARMS, DT, DelayedExecutor, Motion, PlayedMotion, again
from support.scaling_optimum import optimum

HERE = Path(__file__).resolve().parent
BETWEEN = 5  # instants sampled in each tick
NODES = 400  # of the optimum
DISTURBED = 2  # motions of each arm
LONG = 3.0  # s, of a pause and of an override
DELAY = 300  # ticks until a worker answers
NAMES = {"seven_r": "7R", "ur5_robot": "UR5", "stanford": "Stanford"}
PAYLOADS = {"seven_r": ("link7", 0.5), "ur5_robot": ("wrist_3_link", 1.0), "stanford": ("link6", 0.02)}
LIMITS = ("torque", "torque rate", "velocity", "acceleration")


class Optima:
    """Durations of the optima, found once."""

    def __init__(self, file: Path | None):
        self.file = file
        self.known = json.loads(file.read_text()) if file is not None and file.exists() else {}

    def __call__(self, motion: Motion, name: str, seed: int) -> float:
        key = f"{name} {seed}"
        if key not in self.known:
            try:
                self.known[key] = optimum(motion.here, NODES)
            except RuntimeError:  # IPOPT gave up
                self.known[key] = None
            if self.file is not None:
                self.file.write_text(json.dumps(self.known))
        return np.nan if self.known[key] is None else self.known[key]


def undisturbed(motion: Motion, best: float) -> tuple[TrajectoryScaler, dict]:
    start = time.perf_counter()
    scaler = TrajectoryScaler(motion.here, motion.plan)
    solved = time.perf_counter() - start
    played = PlayedMotion(again(scaler), between=BETWEEN)
    used = played.used(motion.robot, motion.limits)
    at_rest = max(np.abs(played.qd[-1]).max(), np.abs(played.qdd[-1]).max())
    return scaler, {"ticks": used[BETWEEN - 1::BETWEEN].max(axis=0), "between": used.max(axis=0),
                    "path": np.abs(played.q - motion.path(played.s)[0]).max(),
                    "goal": max(np.abs(played.q[-1] - motion.points[-1]).max(), at_rest) if played.done else np.inf,
                    "duration": played.duration, "ratio": played.duration / best, "solved": solved}


def disturbed(motion: Motion, name: str, scaler: TrajectoryScaler) -> dict:
    """Measure the cost of pauses, overrides and changes; `worst`: largest utilization of limits."""
    alone = scaler.current.law.duration
    half, found, worst = 0.5 * alone, {}, 0.0
    for what, first, then, share in (("pause", TrajectoryScaler.pause, TrajectoryScaler.resume, 0.0),
                                     ("override", methodcaller("override", 0.5), methodcaller("override", 1.0), 0.5)):
        played = PlayedMotion(again(scaler), [(half, first), (half + LONG, then)])
        found[what] = played.duration - alone - LONG * (1.0 - share)
        if what == "pause":
            moving = played.t[(played.rate > 0.0) & (played.t > half) & (played.t < half + LONG)]
            found["rest"] = moving.max() - half if len(moving) else 0.0
        worst = max(worst, played.used(motion.robot, motion.limits).max())
    rng = np.random.default_rng(0)
    shares = rng.choice([0.0, 0.2, 0.5, 1.0], 12)
    times = np.cumsum(rng.uniform(0.02, 0.8, 12))
    actions = [(t, methodcaller("override", share)) for t, share in zip(times, shares)]
    played = PlayedMotion(again(scaler), [*actions, (10.0, methodcaller("override", 1.0))], between=3, most=100.0)
    found["worst"] = max(worst, played.used(motion.robot, motion.limits).max())
    less = motion.limits._replace(effort=0.85 * motion.limits.effort, effort_rate=0.7 * motion.limits.effort_rate)
    link, mass = PAYLOADS[name]
    heavier = motion.robot.with_payload(link, mass, (0.0, 0.0, 0.03))
    for what, limits, robot in (("limits", less, motion.robot), ("payload", motion.limits, heavier)):
        constraints = motion.constraints(motion.path, limits)
        constraints.dynamics = PathDynamics(robot)
        try:
            known = follow_plan(constraints, motion.plan).law.duration
        except InputError:  # gravity alone is too much
            found[what] = [np.nan] * 5
            continue
        change = [(alone / 3.0, methodcaller("change", constraints))]
        played = PlayedMotion(again(scaler, DelayedExecutor(DELAY)), change, most=100.0)
        used = played.used(robot, limits).max(axis=1)
        after = played.t > alone / 3.0
        outside = played.t[after & (used > 1.0 + 1e-6)]
        left = outside.max() - alone / 3.0 if len(outside) else 0.0
        before = PlayedMotion(again(scaler)).used(robot, limits).max()
        found[what] = [played.duration / alone, played.duration / known, left, used[after].max(), before]
    return found


def tick_times(motion: Motion, scaler: TrajectoryScaler) -> tuple[list[float], list[float]]:
    """Microseconds of this thread in each tick: undisturbed, and while the speed changes."""
    times: tuple[list[float], list[float]] = ([], [])
    for actions in ((), [(0.3 * k, 0.4 + 0.6 * (k % 2)) for k in range(1, 20)]):
        playing, waiting = again(scaler), list(actions)
        while not playing.done:
            if waiting and playing.t >= waiting[0][0]:
                playing.override(waiting.pop(0)[1])
            start = time.thread_time()
            playing.tick(DT)
            took = (time.thread_time() - start) * 1e6
            times[0 if playing.time_scaling.steady and playing.time_scaling.end == playing._wanted else 1].append(took)
    return times


def draw(motion: Motion, scaler: TrajectoryScaler, file: Path) -> None:
    played = PlayedMotion(again(scaler))
    t = np.linspace(0.0, motion.plan.law.duration, 3000)
    s, sd, sdd, sddd = motion.plan.law(t)
    q, q1, q2, q3 = motion.path(s)
    v, a, u = sd[:, None], sdd[:, None], sddd[:, None]
    tau, rate = motion.robot.torque_and_rate(q, q1 * v, q2 * v**2 + q1 * a, q3 * v**3 + 3.0 * q2 * v * a + q1 * u)
    planned = [np.abs(value / limit).max(axis=1) for value, limit in zip((tau, rate), motion.limits[:2])]
    used = played.used(motion.robot, motion.limits)
    figure = new_figure(9.0, 7.0)
    axes = figure.subplots(3, 1, sharex=True)
    for k, axis in enumerate(axes[:2]):
        axis.plot(t, planned[k], color="tab:gray", linewidth=1.0, label="as planned, twice too fast")
        axis.plot(played.t, used[:, k], color="tab:red", linewidth=1.2, label="as played")
        axis.axhline(1.0, color="black", linestyle="--", linewidth=0.9, label="limit")
        axis.set_ylabel(f"{LIMITS[k]} / limit,\nlargest of all joints")
        axis.set_ylim(0.0, min(6.0, 1.05 * planned[k].max()))
    axes[0].legend(loc="upper right")
    axes[2].plot(t, s, color="tab:gray", linewidth=1.0)
    axes[2].plot(played.t, played.s, color="tab:red", linewidth=1.2)
    axes[2].set_ylabel("way along the path [rad]")
    axes[2].set_xlabel("time [s]")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(file, dpi=110)


def row(*cells: object) -> str:
    return "| " + " | ".join(f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells) + " |"


def table(*header: str) -> list[str]:
    return ["", row(*header), row(*["---"] * len(header))]


def spread(values: object, form: str = ".3f") -> str:
    """Median, and the largest in brackets; NaN left out."""
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    return f"{np.median(known):{form}} ({known.max():{form}})" if len(known) else "-"


def report(motions: int, optima: Optima) -> str:
    results: dict[str, list[dict]] = {name: [] for name in ARMS}
    others: dict[str, list[dict]] = {name: [] for name in ARMS}
    ticks: tuple[list[float], list[float]] = ([], [])
    convergence = []
    for name in ARMS:
        for seed in range(motions):
            motion = Motion(name, seed)
            scaler, found = undisturbed(motion, optima(motion, name, seed))
            results[name].append(found)
            print(name, seed, f"{found['ratio']:.4f} {found['between'].max():.5f} {found['solved']:.2f} s", flush=True)
            if seed < DISTURBED:
                others[name].append(disturbed(motion, name, scaler))
            if name == "seven_r" and seed < DISTURBED:
                for kind, times in zip(ticks, tick_times(motion, scaler)):
                    kind.extend(times)
            if seed < 2:
                convergence.append((NAMES[name], seed, *(optimum(motion.here, count) for count in (200, 400, 800))))
            if (name, seed) == ("seven_r", 1):
                draw(motion, scaler, HERE / "scaling.png")
    return "\n".join(_lines(motions, results, others, ticks, convergence)) + "\n"


INTRODUCTION = """# Time scaling of motions

Written by `python benchmark/scaling.py --motions {motions}`: random motions of each arm through 7 points, planned at twice the
speed that the limits allow, and executed at 1 kHz; the robot equals the model. Limits: torque, of which gravity uses up to
71 %; torque rates that change a torque from its lower to its upper limit in 0.1 s; 1.5 times the velocities of the URDF;
40 rad/s^2 (m/s^2).

{machine}

![One of the motions](scaling.png)

## Undisturbed

Largest utilization of each limit over all motions, joints and {between} instants per tick (in brackets: at the ticks only),
computed from the exact torque and torque rate of the reference. Goal: the largest of distance, velocity and acceleration at
the goal. Optimum: IPOPT's solution for the same path and limits, as a nonlinear programme on {nodes} nodes with limits at the
nodes only and without margin (test/support/scaling_optimum.py). "Above 1.03" and "no optimum" count motions.
"""
CONVERGENCE = """
Dependence of the optimal duration [s] on the number of nodes:
"""
DISTURBANCES = """
## Disturbed

Values are median (largest) of the first {disturbed} motions of each arm. A pause, and an override of 0.5, begin at half of the
duration and last {long:g} s. "Until rest" is the time until the motion rests. "Pause" and "override" are the time lost in
addition to the requested one; it may be negative, because the motion continues until it rests. Worst: largest utilization of a
limit in these motions and with 12 random overrides.
"""
CHANGES = """
The limits or the payload change at a third of the motion: effort x 0.85 and effort rate x 0.7, or a payload. A worker returns
the new time law after {delay} ms. The table gives the duration relative to that of the undisturbed motion, and to that of a
motion for which the change was known from the start; the time outside of the new limits; their largest utilization, and that
of the unchanged motion.
"""
TICKS = """
## One tick

7R, in one process, plain Python: `TrajectoryScaler.tick`, which returns q, qd, qdd, qddd [us of thread time, with other
programs running].
"""


def _lines(motions: int, results: dict, others: dict, ticks: tuple, convergence: list) -> list[str]:
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=HERE, capture_output=True, text=True).stdout.strip()
    machine = (f"{platform.machine()}, 2 shared cores, Python {platform.python_version()}, numpy {np.__version__}, CasADi "
               f"{casadi.__version__}, commit {commit}.")
    lines = [INTRODUCTION.format(motions=motions, machine=machine, between=BETWEEN, nodes=NODES).rstrip()]
    lines += table("arm", *LIMITS, "path error", "goal", "duration / optimum: mean", "largest", "above 1.03", "no optimum",
                   "solved in [s]: median (max)")
    for name, found in results.items():
        use = [np.max([one[key] for one in found], axis=0) for key in ("between", "ticks")]
        ratios = np.array([one["ratio"] for one in found])
        exact = [f"{max(one[key] for one in found):.0e}" for key in ("path", "goal")]
        lines.append(row(NAMES[name], *(f"{a:.5f} ({b:.5f})" for a, b in zip(*use)), *exact, float(np.nanmean(ratios)),
                         float(np.nanmax(ratios)), int((ratios > 1.03).sum()), int(np.isnan(ratios).sum()),
                         spread([one["solved"] for one in found], ".2f")))
    lines += [CONVERGENCE.rstrip(), *table("arm", "motion", "200 nodes", "400", "800")]
    lines += [row(*entry) for entry in convergence]
    lines += [DISTURBANCES.format(disturbed=DISTURBED, long=LONG).rstrip()]
    lines += table("arm", "until rest [s]", "pause [s]", "override [s]", "worst")
    for name, found in others.items():
        cells = [spread([one[what] for one in found]) for what in ("rest", "pause", "override")]
        lines.append(row(NAMES[name], *cells, f"{max(one['worst'] for one in found):.5f}"))
    lines += [CHANGES.format(delay=DELAY).rstrip()]
    lines += table("arm", "change", "duration / undisturbed", "duration / known", "outside [s]", "utilization",
                   "utilization, unchanged", "infeasible: gravity")
    for name, found in others.items():
        for what in ("limits", "payload"):
            values = np.array([one[what] for one in found])
            label = what if what == "limits" else f"{PAYLOADS[name][1]} kg"
            lines.append(row(NAMES[name], label, *(spread(values[:, k]) for k in range(5)), int(np.isnan(values[:, 0]).sum())))
    lines += [TICKS.rstrip(), *table("", "ticks", "min", "median", "99 %", "99.9 %", "max")]
    for what, times in zip(("steady", "changing speed"), ticks):
        lines.append(row(what, len(times), *(f"{np.percentile(times, share):.0f}" for share in (0, 50, 99, 99.9, 100))))
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--motions", type=int, default=50, help="of each arm")
    parser.add_argument("--optima", type=Path)
    parser.add_argument("-o", "--output", type=Path, default=HERE / "scaling.md")
    args = parser.parse_args()
    args.output.write_text(report(args.motions, Optima(args.optima)))
    print(f"-> {args.output}")
