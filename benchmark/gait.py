"""The walking human, full model: how long a solution takes, how well it keeps its constraints, what Pinocchio says of it.

python benchmark/gait.py      writes benchmark/gait.md, docs/gait_<case>.png, docs/skeleton.png
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_ros.gait import picture
from rnea_ros.gait.skeleton import Human
from rnea_ros.gait.walk import (
    LEG_JOINTS,
    StepConditions,
    Walk,
    WalkingStep,
    initial_guess,
    instants,
    predict_walk,
    walking_problem,
)
from rnea_ros.gait.walker import Walker
from rnea_ros.planning.bspline import prescribed_nodes
from rnea_ros.planning.planner import PlanningError
from rnea_ros.planning.transcription import Transcription

ROOT = Path(__file__).resolve().parents[1]
HUMAN = WalkingStep(smooth=True, transfer=True, upright=True)
CASES = {"thesis": (WalkingStep(), 6), "elastic": (WalkingStep(elastic=True), 6), "human": (HUMAN, 8)}
TITLES = {"thesis": "Conditions of the thesis", "elastic": "With passive joint moments",
          "human": "With continuous accelerations, steady load transfer and upright pelvis"}
SWEEP = [(Human(), WalkingStep(0.8, 0.5), 6), (Human(), WalkingStep(1.0, 0.55), 6), (Human(), WalkingStep(1.4, 0.7), 6),
         (Human(1.6, 55.0), WalkingStep(), 6), (Human(1.9, 95.0), WalkingStep(), 6),
         (Human(1.65, 60.0, "female"), WalkingStep(), 6),
         (Human(), WalkingStep(2.0, 1.1), 6), (Human(), WalkingStep(0.8, 0.5, elastic=True), 6),
         (Human(1.9, 95.0), WalkingStep(elastic=True), 6),
         (Human(), replace(HUMAN, length=0.65), 8)]


def measured(walker: Walker, step: WalkingStep, points: int) -> tuple[Walk, dict[str, str]]:
    start, processor = time.monotonic(), time.process_time()
    walked = predict_walk(walker, step, points)
    wall, busy = time.monotonic() - start, time.process_time() - processor
    guess = initial_guess(walker, step, points)
    nodes = prescribed_nodes(guess.breaks, np.array(instants(step, points)))
    program = Transcription(walking_problem(walker, step), guess.breaks, 3, nodes)
    active = program.rows.values(program.motion(program.variables(walked.plan.curve)))
    near = (np.minimum(program.rows.upper - active, active - program.rows.lower) < 1e-3).sum()
    return walked, {
        "variables, constraints": f"{program.size - 1}, {len(program.rows.lower)}", "active constraints": str(near),
        "iterations": str(walked.plan.iterations), "wall clock [s]": f"{wall:.1f}", "processor [s]": f"{busy:.1f}",
        "objective": f"{walked.plan.objective:.5f}"}


def by_pinocchio(walked: Walk) -> float:
    """Largest difference of a torque [N m] from Pinocchio's, from the URDF and the stride alone."""
    stride, human, names = walked.stride(), walked.walker.human, walked.walker.joint_names
    model = pin.buildModelFromXML(human.urdf)
    data, order = model.createData(), [names.index(name) for name in model.names[1:]]
    worst = 0.0
    for k in range(len(stride.t)):
        q, qd, qdd, tau = (x[k, order] for x in (stride.q, stride.qd, stride.qdd, stride.tau))
        pin.framesForwardKinematics(model, data, q)
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * model.njoints)
        for side, foot in (("right", 0), ("left", 1)):
            couple = np.array([0.0, stride.toes[k, foot], 0.0])
            whole = pin.Force(stride.floor[k, foot, :3], stride.floor[k, foot, 3:] - couple)
            for link, wrench in ((f"{side}_foot", whole), (f"{side}_toes", pin.Force(np.zeros(3), couple))):
                joint = model.frames[model.getBodyId(link)].parentJoint
                loads[joint] = loads[joint] + data.oMi[joint].actInv(wrench)
        worst = max(worst, float(np.abs(pin.rnea(model, data, q, qd, qdd, loads) - tau).max()))
    return worst


def gradient_error(walker: Walker) -> float:
    """Largest relative error of a slope of any condition against central differences of order four, along random ways."""
    rng, step, worst = np.random.default_rng(3), 1e-4, 0.0
    y = rng.uniform(-0.3, 0.3, (2, 4, walker.n))
    y[:, 0, walker.joint_names.index("up")] = 0.9
    way = rng.normal(size=y.shape)
    for quantity in StepConditions(walker, replace(HUMAN, elastic=True)).all():
        values = [quantity.values(y + shift * step * way) for shift in (-2, -1, 1, 2)]
        numeric = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * step)
        found = np.einsum("kcrj,krj->kc", quantity.slopes(y), way)[:, quantity.enforced]
        numeric = numeric[:, quantity.enforced]
        worst = max(worst, float(np.abs(found - numeric).max() / (1.0 + np.abs(numeric).max())))
    return worst


def swept() -> Iterator[str]:
    """Lines of a table: other speeds and other people; what has no solution says why."""
    yield ("| stature, mass, sex | speed, step | points | iterations | processor [s] | effort | "
           "hip, knee, ankle correlation | "
           "peak, valley, peak [weight] | largest excess over a limit |\n|---|---|---|---|---|---|---|---|---|")
    for human, step, points in SWEEP:
        start, kind = time.process_time(), ", beyond the thesis" if step.upright else ", elastic" if step.elastic else ""
        whose = (f"| {human.stature:g} m, {human.mass:g} kg, {human.sex} | {step.speed:g} m/s, {step.length:g} m{kind} | "
                 f"{points} |")
        try:
            walked = predict_walk(Walker(human), step, points)
        except PlanningError as error:
            yield f"{whose} | {time.process_time() - start:.0f} | {error} | | | |"
            continue
        busy, found = time.process_time() - start, walked.report()
        likeness = ", ".join(f"{found[f'{joint} correlation']:.2f}" for joint in LEG_JOINTS.values())
        force = ", ".join(f"{found[f'{name} [weight]']:.2f}" for name in ("first peak", "valley", "second peak"))
        yield (f"{whose} {walked.plan.iterations} | {busy:.0f} | {found['effort']:.4f} | {likeness} | {force} | "
               f"{found['excess']:.1e} |")


def table(rows: dict[str, str]) -> str:
    return "\n".join(["| quantity | value |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows.items())])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    cases = parser.parse_args().cases
    start = time.monotonic()
    walker = Walker(Human())
    error = gradient_error(walker)
    built = time.monotonic() - start
    parts = [f"# Predicted human walking\n\nWritten by `benchmark/gait.py`; {os.cpu_count()} processors, "
             f"{platform.machine()}, load {os.getloadavg()[0]:.1f}. {walker.n} active coordinates of 55; 1.2 m/s, steps of "
             f"0.6 m, initial guess with all joints at zero. Before that, tracing and compiling the kernels took {built:.1f} "
             "s (some seconds with cached machine code). Derivatives of all conditions agree with fourth-order differences "
             f"within {error:.1e}."]
    picture.skeleton(ROOT / "docs" / "skeleton.png", walker.human)
    for name in cases:
        walked, rows = measured(walker, *CASES[name])
        excess = walked.excess()
        rows |= {"torques against Pinocchio [N m]": f"{by_pinocchio(walked):.1e}"}
        rows |= {key: f"{value:.4g}" for key, value in walked.report().items()}
        beyond = {key: f"{value:.1e}" for key, value in sorted(excess.items(), key=lambda item: -item[1])}
        parts += [f"## {TITLES[name]}", table(rows), "Largest excess over each limit at 300 instants of the step, in rad, m, "
                  "m^2 or as a share of the strength; negative: remaining margin.", table(beyond)]
        picture.walk(ROOT / "docs" / f"gait_{name}.png", walked)
        print("\n\n".join(parts[-4:]), flush=True)
        save(parts)
    lines = []
    for line in swept():
        lines.append(line)
        print(line, flush=True)
        save([*parts, "## Other speeds and persons", "\n".join(lines)])


def save(parts: list[str]) -> None:
    (ROOT / "benchmark" / "gait.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
