"""Time against effort on a slider that carries a rotating link: Barman's thesis, section 4.2.

    python examples/time_effort_pr.py [OUT_DIR]

Minimised is the integral of (1 - u) + u (f1^2 + tau2^2), u = 0.01, from q = (0.1 m, 0.6 rad) to (pi/4 m, -pi/4 rad), at rest
at both ends, with at most 10 N and 10 N m. The optimum takes T = 0.58579 s at a cost of 0.77324, also by multiple shooting.
The thesis has T = 0.5585 s for what should be the same problem. Two changes lead there: a weight of u = 0.0082, as the last
panel shows; or sampling effort and limits only at a dozen instants inside the motion, not at its ends, where force and
torque are largest (T = 0.5590 s with 6 control points and 12 instants).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, Cost, EndState, PlannedMotion, PlanSettings, Robot, draw_stills, picture, plan_motion

URDF = Path(__file__).parents[1] / "urdf" / "pr.urdf"
START, GOAL = np.array([0.1, 0.6]), np.array([np.pi / 4, -np.pi / 4])
U, THESIS, LENGTH = 0.01, 0.5585, 0.4  # weight; s; m, of link 2
WEIGHTS = (0.0, 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.013, 0.016, 0.02)


def planned(robot: Robot, u: float) -> PlannedMotion:
    return plan_motion(robot, START, GOAL, time=1.0 - u, effort=u, time_tolerance=0.0)


def without_ends(robot: Robot, control_points: int, instants: int) -> PlannedMotion:
    """Return the plan if effort and limits are sampled only at a few even instants inside the motion."""
    tau = replace(rnea_ros.torque_limits(robot, robot.limits.effort, None), windows=[(0.01, 0.99)])
    start, goal = (EndState(q, np.zeros(2), np.full(2, np.nan)) for q in (START, GOAL))
    problem = rnea_ros.PlanningProblem(start, goal, [tau], Cost(1.0 - U, np.full(2, U), tau))
    times = tuple(np.linspace(0.0, 1.0, instants + 2))
    return rnea_ros.solve_plan(problem, PlanSettings(spans=control_points - 3, instants=times))


def draw(path: Path, robot: Robot, plan: PlannedMotion, durations: dict[float, float]) -> None:
    t = np.linspace(0.0, plan.duration, 1001)
    tau = robot.inverse_dynamics(*plan(t)[:3])
    q = plan(np.linspace(0.0, plan.duration, 11))[0]
    joint = np.column_stack((q[:, 0], np.zeros(len(q))))  # q2 = 0: square to the slide
    link = np.stack((joint, joint + LENGTH * np.column_stack((np.sin(q[:, 1]), -np.cos(q[:, 1])))), axis=1)
    with picture(path, (13, 4.6), settings=STYLE) as figure:
        efforts, motion, trade = figure.subplots(1, 3)
        efforts.plot(t, tau[:, 0], label="force 1 [N]")
        efforts.plot(t, tau[:, 1], label="torque 2 [N m]")
        efforts.set(xlabel="time [s]", title=f"force and torque, T = {plan.duration:.4f} s")
        efforts.legend()
        motion.axhline(0.0, color="0.7", linewidth=5.0, zorder=0)
        draw_stills(motion, link, "#d55e00", marker="s", markevery=[0], markerfacecolor="#0072b2", markersize=9)
        motion.set(xlabel="along the slide [m]", title="ten equal steps of time", aspect="equal")
        trade.plot(list(durations), list(durations.values()), "o-", color="0.4")
        trade.plot([U], [plan.duration], "o", color="#0072b2", markersize=11, label=f"u = {U:g}: {plan.duration:.4f} s")
        trade.axhline(THESIS, color="#d55e00", linestyle="--", label=f"thesis: {THESIS:g} s")
        trade.set(xlabel="weight u of effort", title="duration of the optimum [s]", xticks=(0.0, 0.01, 0.02))
        trade.legend()


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF, gravity=(0.0, 0.0, 0.0))  # the thesis has none
    plan = planned(robot, U)
    durations = {u: planned(robot, u).duration for u in (WEIGHTS[::4] if small else WEIGHTS)}
    draw(Path(out_dir) / "time_effort_pr.png", robot, plan, durations)
    return {"T": plan.duration, "cost": plan.objective, "fastest T, u = 0": durations[0.0]} | ({} if small else {
        "T without the ends, 6 control points, 12 instants": without_ends(robot, 6, 12).duration,
        "u for the thesis's T": float(np.interp(THESIS, list(durations.values()), list(durations)))})


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:50} {value:.6g}")
