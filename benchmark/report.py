"""results.md: what was measured, on what, and what was to be reached."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Mapping
from datetime import date
from typing import Any

import closed
import combinations
import laws
import mix
import ticks
from batch import SIZES, THREADS, Batch, cores
from cases import ROOT
from goals import goals
from joints import Size
from node import Load
from notes import NOTES
from timing import Times
from toolchain import compiler, cpu, version

PACKAGES = ("numpy", "llvmlite", "pin", "mujoco", "casadi", "rclpy")
NAMES = {"rnea": "rnea (tau alone)", "exact rate": "exact tau_rate from computeRNEADerivatives",
         "difference": "tau_rate by forward difference (two rnea)", "derivatives": "computeRNEADerivatives",
         "crba world": "crba, world frame", "crba local": "crba, local frames", "aba world": "aba, world frame",
         "aba local": "aba, local frames"}


def commit() -> str:
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True).stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--", "rnea_ros", "benchmark/*.py", "benchmark/*.cpp") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def written(found: Mapping[str, Any], rounds: int, minutes: float) -> str:
    system = f"{platform.system()} {platform.machine()}"
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    parts = [
        "# Speed", "",
        f"Written by `make bench` on {date.today()}, commit {commit()}, in {minutes:.0f} minutes; {rounds} rounds. The two "
        "sides of a comparison run alternately for half a millisecond in one process (the nodes: one run after the other), "
        "so ratios remain valid when absolute times drift. Ratios are those of minima, unless a median is named.", "",
        f"Machine: {cpu()}, {cores()} cores, {system}. Python {platform.python_version()}, {versions}; "
        f"{compiler() or 'no C++ compiler'}, `-O3 -march=native -DNDEBUG`.", "",
        "## Goals", "", "| goal | target | result | | reason |", "|---|---|---|---|---|",
        *(goal.row() for goal in goals(dict(found), NOTES)), ""]
    writers = {"kernels": _kernels, "calls": _calls, "closed": closed.lines, "combinations": combinations.lines,
               "batch": _batches, "mix": mix.lines,
               "joints": _joints, "node": _nodes, "ticks": ticks.lines, "laws": laws.lines}
    for name, write in writers.items():
        if name in found:
            parts += [*write(found[name]), ""]
    if found.get("missing"):
        parts += ["## Not measured", "", *(f"* {line}" for line in found["missing"]), ""]
    return "\n".join(parts)


def _ns(times: Times) -> str:
    return f"{times.low * 1e9:.0f} | {times.middle * 1e9:.0f}"


def _kernels(found: Any) -> list[str]:
    lines = ["## Machine code compared with Pinocchio's C++", "",
             "Time per call [ns]. Ours: the kernel, called through its address from a C++ loop. Pinocchio: compiled from its "
             "headers for this machine. Each loop uses 16 states in turn. For a floating base, tau is that of a given motion "
             "of base and joints.", "",
             "| robot, dof | ours | min | median | Pinocchio | min | median | ours / Pinocchio, minima | medians |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in found[0]:
        robot = f"{row.robot}, {'6 + ' if row.floating else ''}{row.n}"
        for name, theirs in row.theirs.items():
            ratios = f"**{row.ours.over(theirs):.3f}** | {row.ours.middle / theirs.middle:.3f}"
            lines.append(f"| {robot} | {row.gives} | {_ns(row.ours)} | {NAMES[name]} | {_ns(theirs)} | {ratios} |")
    return lines


def _calls(found: Mapping[str, Mapping[str, Times]]) -> list[str]:
    lines = ["## One call from Python", "",
             "Time per call [ns]. The ratio is that of the minima, relative to one Pinocchio rnea from Python.", "",
             "| robot | computation | min | median | / rnea |", "|---|---|---|---|---|"]
    for robot, times in found.items():
        unit = times["Pinocchio: rnea (tau)"]
        lines += [f"| {robot} | {'ours: the kernel alone, from C++' if name == 'kernel' else name} | {_ns(value)} | "
                  f"{value.over(unit):.2f} |" for name, value in times.items()]
    return lines


def _batches(found: list[Batch]) -> list[str]:
    lines = ["## Many samples at once", "",
             "`Robot.torque_and_rate` on arrays, from Python, with one thread: time per sample [ns], and the multiplications "
             "and additions as a share of the vectorised fused multiply-adds that a loop executes on the same core "
             f"({found[0].peak * 1e-9:.0f} GFLOP/s). Sines and cosines are not counted.", "",
             "| robot | operations | " + " | ".join(f"{n} samples | share" for n in SIZES) + f" | {THREADS} threads / 1 |",
             "|---|---|" + "---|---|" * len(SIZES) + "---|"]
    for batch in found:
        cells = " | ".join(f"{batch.times[n].low * 1e9:.0f} | {batch.share(n):.1%}" for n in SIZES)
        lines.append(f"| {batch.name} | {batch.operations} | {cells} | {batch.speedup:.2f} |")
    return lines


def _joints(found: list[Size]) -> list[str]:
    lines = ["## Cost against the number of joints", "",
             "Chains of revolute joints with general geometry. URDF to first result: processor time, without imports.",
             "",
             "![Cost against the number of joints](joints.png)", "",
             "| joints | kernel [ns] | per joint [ns] | / Pinocchio C++ rnea | URDF to first result [s] | same, from the "
             "cache [s] |",
             "|---|---|---|---|---|---|"]
    for size in found:
        ratio = f"{size.kernel.over(size.rnea):.3f}" if size.rnea else ""
        low = size.kernel.low * 1e9
        lines.append(f"| {size.n} | {low:.0f} | {low / size.n:.1f} | {ratio} | {size.build:.2f} | {size.again:.2f} |")
    return lines


def _nodes(found: Mapping[str, Load]) -> list[str]:
    lines = ["## Nodes under load", "",
             "7 joints; another process publishes joint states at 1 kHz, and a desired motion with every tenth joint state, "
             "and subscribes to the results. If permitted, all processes run with real-time priority (SCHED_FIFO), so that "
             "other programs delay neither side; the last two rows run without it. Round trip: from the publication of a "
             "joint state to the arrival of the last result. Processor time: user and system time of all threads per "
             "processed message. The naive node (naive_node.py) uses rclpy's executor, creates each message anew and computes "
             "the same with Pinocchio; the node of stored bytes (stored_node.py) computes nothing. The nodes of a group are "
             "served in turns of 2 s. Load: that of the whole machine, averaged over the last minute, including these "
             "processes. The first row characterises the machine: the delay of a real-time thread that only sleeps until the "
             "next millisecond.", "",
             "![Round trip](latency.png)", "",
             "| node | lost | p50 [us] | p99 [us] | p99.9 [us] | processor time [ms] | memory growth [kB] | load |",
             "|---|---|---|---|---|---|---|---|"]
    lines += [f"| {name} | {run.lost} of {run.sent} | {run.percentile(50):.0f} | {run.percentile(99):.0f} | "
              f"{run.percentile(99.9):.0f} | {run.cpu_ms:.3f} | {run.growth_kb} | {run.busy:.1f} |"
              for name, run in found.items()]
    return lines
