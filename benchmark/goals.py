"""Goals and results: each goal with its limit, and a note if it is missed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import combinations
import laws
import numpy as np
from cases import ROOT

COUNTS = {"stanford arm of golden.json": (312, 270), "7R, geometry of the Panda": (658, 663),
          "7R, general geometry": (996, 900), "32-dof tree, general": (4869, 4416)}  # multiplications, additions


@dataclass(frozen=True)
class Goal:
    text: str
    limit: float
    reached: float | None  # None: not measured
    unit: str = ""
    at_least: bool = False
    note: str = ""

    @property
    def met(self) -> bool:
        if self.reached is None or self.reached != self.reached:
            return False
        return self.reached >= self.limit if self.at_least else self.reached <= self.limit

    def row(self) -> str:
        sign = ">=" if self.at_least else "<="
        reached = "not measured" if self.reached is None else f"{self.reached:.3g}{self.unit}"
        verdict = "met" if self.met else "**not met**"
        return f"| {self.text} | {sign} {self.limit:.3g}{self.unit} | {reached} | {verdict} | {self.note} |"


def worst(values: list[float], at_least: bool = False) -> float | None:
    return (min(values) if at_least else max(values)) if values else None


def goals(found: dict[str, Any], notes: dict[str, str]) -> list[Goal]:
    """found: what run.py has measured, by section; notes: why a goal is missed, by its key."""
    made: list[Goal] = []

    def add(key: str, text: str, limit: float, reached: float | None, unit: str = "", at_least: bool = False) -> None:
        goal = Goal(text, limit, reached, unit, at_least)
        made.append(goal if goal.met else Goal(text, limit, reached, unit, at_least, notes.get(key, "")))

    rates = [row for row in found.get("kernels", ([], []))[0] if row.gives == "tau and tau_rate" and row.n <= 32]
    add("kernel", "1. kernel (tau and tau_rate) / one Pinocchio C++ rnea, worst robot up to 32 dof", 0.3,
        worst([row.ours.over(row.theirs["rnea"]) for row in rates]))
    add("exact", "1. the same / Pinocchio's exact tau_rate", 1 / 13,
        worst([row.ours.over(row.theirs["exact rate"]) for row in rates]))
    calls = found.get("calls", {})
    seven = calls.get("seven_r", {})
    if seven:
        ours, kernel = seven["ours: tau and tau_rate"].low, seven["kernel"].low
        more = (ours - kernel) * 1e9
        made.append(Goal("2. one call from Python minus its kernel, 7 dof (or at most 1.3 times the kernel)", 300,
                         min(more, 300) if ours <= 1.3 * kernel else more, " ns",
                         note=f"{ours / kernel:.1f} times the kernel"))
    add("python", "2. one call from Python / one Pinocchio rnea from Python, worst robot", 1.0, worst(
        [times["ours: tau and tau_rate"].over(times["Pinocchio: rnea (tau)"]) for times in calls.values()]))
    batches = {batch.name: batch for batch in found.get("batch", [])}
    batch = batches.get("seven_r")
    add("batch", "3. batch, share of the measured vector FMA peak, 7R, at the best size", 0.35, batch and batch.best, "", True)
    add("batch", "3. the same", 0.5, batch and batch.best, "", True)
    add("threads", "3. batch, two threads / one", 1.8, batch and batch.speedup, "", True)
    for robot, (products, sums) in COUNTS.items():
        counts = json.loads((ROOT / "test/golden/operation_counts.json").read_text())[robot]
        add("counts", f"4. {robot}: multiplications {counts['multiplications']}, additions {counts['additions']}; larger "
                      f"ratio to {products} and {sums}",
            1.0, max(counts["multiplications"] / products, counts["additions"] / sums))
    made += _node_goals(found.get("node", {}), notes) + _tick_goals(found.get("ticks", {}), notes)
    sizes = {size.n: size for size in found.get("joints", [])}
    if sizes:
        add("linear", "6. time per joint, 128 joints / 32 joints", 1.25,
            (sizes[128].kernel.low / 128) / (sizes[32].kernel.low / 32))
        add("build7", "6. URDF to the first result, 7 joints, empty cache, processor time", 0.3, sizes[7].build, " s")
        add("build32", "6. the same, 32 joints", 1.5, sizes[32].build, " s")
    if "combinations" in found:
        for text, limit, reached, unit in combinations.goals(found["combinations"]):
            add("combinations", text, limit, reached, unit)
    if "laws" in found:
        for key, text, limit, reached, unit in laws.goals(found["laws"]):
            add(key, text, limit, reached, unit)
    return made


def _node_goals(node: dict[str, Any], notes: dict[str, str]) -> list[Goal]:
    made = []
    for what in ("all three topics", "only joint_dynamics"):
        ours, naive = node.get(f"ours, {what}"), node.get(f"naive, {what}")
        if ours is None or naive is None:
            continue
        heading = f"5. node at 1 kHz, {what} subscribed"
        for key, text, limit, reached, unit in (
                ("lost", f"messages lost of {ours.sent}", 0, float(ours.lost), ""),
                ("p99", "99th percentile of the round trip", 1.0, ours.percentile(99) * 1e-3, " ms"),
                ("p99.9", "99.9th percentile of the round trip", 1.0, ours.percentile(99.9) * 1e-3, " ms"),
                ("cpu", "processor time per message / naive node's", 0.35, ours.cpu_ms / naive.cpu_ms, "")):
            goal = Goal(f"{heading}: {text}", limit, reached, unit)
            made.append(goal if goal.met else Goal(goal.text, limit, reached, unit, note=notes.get(key, "")))
    return made


def _tick_goals(ticks: dict[str, Any], notes: dict[str, str]) -> list[Goal]:
    """Measure late ticks beside a solver in a separate process: as rare as without one."""
    if not ticks:
        return []
    idle, busy = (ticks[name].late for name in ("idle", "busy, in a separate process"))
    share = Goal("7. ticks of scaling_node at 1 kHz more than 1 ms late: increase of their share from an idle to a busy "
                 "solver", 0.001, float(np.mean(busy > 1.0) - np.mean(idle > 1.0)))
    return [share if share.met else Goal(share.text, share.limit, share.reached, note=notes["ticks"])]
