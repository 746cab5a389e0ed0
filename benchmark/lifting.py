"""The lifting human: cost of a solution, how well it keeps its conditions, Pinocchio's torques; fatigue beside curves.

python benchmark/lifting.py      writes benchmark/lifting.md, docs/lift_<case>.png
"""

from __future__ import annotations

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
from rnea_ros.gait.lift import Lift, Lifter, LiftTask, predict_lift
from rnea_ros.gait.muscles import RATES, MuscleStrength, sustained_endurance
from rnea_ros.gait.skeleton import Human
from rnea_ros.planning.planner import PlanningError

ROOT = Path(__file__).resolve().parents[1]
FREE, HUMAN = LiftTask(), Human()
CASES: dict[str, tuple[Human, LiftTask, str]] = {
    "free": (HUMAN, FREE, ""), "muscles": (HUMAN, FREE, "young"),
    "nearer": (HUMAN, replace(FREE, start=(0.35, 0.25)), ""),
    "less compression": (HUMAN, replace(FREE, start=(0.35, 0.25), max_compression=4300.0), ""),
    "5 kg": (HUMAN, replace(FREE, box_mass=5.0), ""), "from a table": (HUMAN, replace(FREE, start=(0.40, 0.65)), ""),
    "15 kg from a table": (HUMAN, replace(FREE, box_mass=15.0, start=(0.40, 0.65)), ""),
    "2 s": (HUMAN, replace(FREE, duration=2.0), ""),
    "woman, 5 kg": (Human(1.65, 60.0, "female"), replace(FREE, box_mass=5.0), "")}
PICTURES = ("free", "muscles")
PERIOD, HOURS = 10.0, 8.0
# Frey-Law and Avin 2010: measured endurance b0 load^b1 [s]
MEASURED = {"ankle": (34.71, -2.06), "knee": (19.38, -1.88), "trunk": (22.69, -2.27), "shoulder": (14.86, -1.83),
            "elbow": (17.98, -2.21), "grip": (33.55, -1.61), "general": (21.92, -1.98)}


def by_pinocchio(lifted: Lift) -> float:
    """Largest difference of a torque [N m] from Pinocchio's, from the URDF and the floor's forces alone."""
    motion, walker = lifted.motion(41), lifted.lifter.walker
    model = pin.buildModelFromXML(walker.human.urdf)
    data, order = model.createData(), [walker.joint_names.index(name) for name in model.names[1:]]
    worst = 0.0
    for k in range(len(motion.t)):
        q, qd, qdd, tau = (x[k, order] for x in (motion.q, motion.qd, motion.qdd, motion.tau))
        pin.framesForwardKinematics(model, data, q)
        loads = pin.StdVec_Force()
        loads.extend([pin.Force.Zero()] * model.njoints)
        for side, foot in (("right", 0), ("left", 1)):
            couple = np.array([0.0, motion.toes[k, foot], 0.0])
            whole = pin.Force(motion.floor[k, foot, :3], motion.floor[k, foot, 3:] - couple)
            for link, wrench in ((f"{side}_foot", whole), (f"{side}_toes", pin.Force(np.zeros(3), couple))):
                joint = model.frames[model.getBodyId(link)].parentJoint
                loads[joint] = loads[joint] + data.oMi[joint].actInv(wrench)
        worst = max(worst, float(np.abs(pin.rnea(model, data, q, qd, qdd, loads) - tau).max()))
    return worst


def rows() -> Iterator[str]:
    yield ("| case | iterations | processor [s] | effort | trunk and knee angle at the start [deg] | L5/S1 [N m], [N m/kg] | "
           "compression [N] | hip, knee, ankle [N m] | ground force [weight] | torque difference to Pinocchio [N m] | "
           f"largest excess over a limit | shortest endurance with a lift every {PERIOD:g} s "
           "|\n|---|---|---|---|---|---|---|---|---|---|---|---|")
    for name, (person, task, muscles) in CASES.items():
        lifter = Lifter(person, task, MuscleStrength.of(person, muscles) if muscles else None)
        lifter.problem()
        start = time.process_time()
        try:
            lifted = predict_lift(lifter)
        except PlanningError as error:
            yield f"| {name} | | {time.process_time() - start:.1f} | {error} | | | | | | | | |"
            continue
        busy, found, work = time.process_time() - start, lifted.report(), lifted.repeated(PERIOD)
        first = int(work.endurance.argmin())
        lasts = work.endurance[first] / 3600.0
        how_long = f"{lasts:.3g} h, {lifter.joint_names[first]}" if np.isfinite(lasts) else "unlimited"
        torques = ", ".join(f"{found[f'{joint} peak torque [N m]']:.0f}" for joint in ("hip", "knee", "ankle"))
        if name in PICTURES:
            picture.lift(ROOT / "docs" / f"lift_{name}.png", lifted, PERIOD, HOURS)
        yield (f"| {name} | {lifted.plan.iterations} | {busy:.1f} | {found['effort']:.3f} | "
               f"{found['trunk lean at the start [deg]']:.0f}, {found['knee at the start [deg]']:.0f} | "
               f"{found['L5/S1 peak moment [N m]']:.0f}, {found['L5/S1 peak moment [N m/kg]']:.2f} | "
               f"{found['L5/S1 peak compression [N]']:.0f} | {torques} | {found['floor peak [weight with box]']:.2f} | "
               f"{by_pinocchio(lifted):.1e} | {found['excess']:.1e} | {how_long} |")


def endurance() -> str:
    load = np.arange(0.1, 0.95, 0.1)
    lines = ["| region | " + " | ".join(f"{100 * one:.0f} %" for one in load) + " |", "|---" * (len(load) + 1) + "|"]
    for region, (b0, b1) in MEASURED.items():
        model, curve = sustained_endurance(load, RATES[region]), b0 * load**b1
        cells = " | ".join(f"{a:.0f} ({100 * (a / b - 1):+.0f} %)" for a, b in zip(model, curve))
        lines.append(f"| {region} | {cells} |")
    return "\n".join(lines)


def main() -> None:
    parts = [f"# Predicted lifting motions of a human\n\nWritten by `benchmark/lifting.py`; {os.cpu_count()} processors, "
             f"{platform.machine()}, load {os.getloadavg()[0]:.1f}. {FREE.box_mass:g} kg from {FREE.start[1]:g} m to "
             f"{FREE.goal[1]:g} m in {FREE.duration:g} s unless stated otherwise.", "## Lifts"]
    table: list[str] = []
    for line in rows():
        table.append(line)
        print(line, flush=True)
        tail = ["## Endurance of constant loads\n\nEndurance time of the model [s] for each share of the maximum strength, "
                "and its deviation from the power laws fitted to 194 studies (Frey-Law and Avin 2010).", endurance()]
        (ROOT / "benchmark" / "lifting.md").write_text("\n\n".join([*parts, "\n".join(table), *tail]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
