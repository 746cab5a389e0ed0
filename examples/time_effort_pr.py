"""Time against effort on a slider that carries a rotating link: Barman's thesis, section 4.2, figures 4.5 to 4.7 drawn again.

    python examples/time_effort_pr.py [OUT_DIR]

Minimised is the integral of (1 - u) + u (f1^2 + tau2^2), u = 0.01, from q = (0.1 m, 0.6 rad) to (pi/4 m, -pi/4 rad), at rest
at both ends, with at most 10 N and 10 N m. The optimum takes T = 0.58579 s at a cost of 0.77324, also by multiple shooting.
The thesis has T = 0.5585 s for what should be the same problem. Two things lead there: a weight of u = 0.0082, as the last
panel shows; or looking at effort and limits only at a dozen instants inside the motion, not at its ends, where force and
torque are largest (T = 0.5590 s with 6 control points and 12 instants).
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from rnea_ros import Robot, plan_motion
from rnea_ros.motion.plan import torque
from rnea_ros.output.figures import new_figure
from rnea_ros.planning import Cost, EndState, PlannedMotion, Problem, Settings
from rnea_ros.planning import plan as best

URDF = Path(__file__).parents[1] / "urdf" / "pr.urdf"
START, GOAL = np.array([0.1, 0.6]), np.array([np.pi / 4, -np.pi / 4])
U = 0.01
LENGTH = 0.4  # m, of link 2
THESIS = 0.5585  # s
WEIGHTS = (0.0, 0.001, 0.002, 0.004, 0.006, 0.008, 0.01, 0.013, 0.016, 0.02)


def planned(robot: Robot, u: float, turned: float = 0.0) -> PlannedMotion:
    """turned: where joint 2 has its zero instead [rad]."""
    shift = np.array([0.0, turned])
    return plan_motion(robot, START + shift, GOAL + shift, time=1.0 - u, effort=u)


def without_ends(robot: Robot, control_points: int, instants: int) -> PlannedMotion:
    """The plan if effort and limits are looked at only at a few even instants inside the motion."""
    tau = replace(torque(robot, robot.limits.effort, {}), windows=[(0.01, 0.99)])
    start, goal = (EndState(q, np.zeros(2), np.full(2, np.nan)) for q in (START, GOAL))
    problem = Problem(start, goal, [tau], Cost(1.0 - U, np.full(2, U), tau))
    return best(problem, Settings(spans=control_points - 3, instants=tuple(np.linspace(0.0, 1.0, instants + 2))))


def picture(path: Path, robot: Robot, plan: PlannedMotion, durations: dict[float, float]) -> None:
    t = np.linspace(0.0, plan.duration, 1001)
    state = plan(t)
    tau = robot.inverse_dynamics(*state[:3])
    force = np.linalg.norm(robot.joint_wrenches(*state[:3]).wrench[..., :3], axis=-1)
    figure = new_figure(12, 8)
    ((efforts, forces), (motion, trade)) = figure.subplots(2, 2)
    efforts.plot(t, tau[:, 0], label="force 1 [N]")
    efforts.plot(t, tau[:, 1], label="torque 2 [N m]")
    efforts.set(xlabel="time [s]", title=f"Fig. 4.5: force and torque, T = {plan.duration:.4f} s")
    forces.plot(t, force[:, 0], label="joint 1 (prismatic)")
    forces.plot(t, force[:, 1], label="joint 2 (revolute)")
    forces.set(xlabel="time [s]", ylabel="force [N]", title="Fig. 4.6: norms of the internal joint forces")
    snapshots(motion, plan)
    trade.plot(list(durations), list(durations.values()), "o-", color="tab:blue", label="optimum of each weight")
    trade.plot([U], [plan.duration], "o", color="tab:red", markersize=9, label=f"u = {U:g}: {plan.duration:.4f} s")
    u = float(np.interp(THESIS, list(durations.values()), list(durations)))
    trade.axhline(THESIS, color="gray", linestyle="--", linewidth=1.0, label=f"thesis: {THESIS:g} s, u would be {u:.4f}")
    trade.set(xlabel="weight u of effort", ylabel="T [s]", title="time against effort")
    trade.set_xticks((0.0, 0.005, 0.01, 0.015, 0.02))
    for axis in (efforts, forces, trade):
        axis.legend(fontsize=8)
    for axis in figure.axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=120)


def snapshots(axis, plan: PlannedMotion) -> None:
    """Carriage and link at even times, from light to dark, and the path of the tip. q2 = 0: square to the slide."""
    def places(t):
        q = plan(t)[0]
        joint = np.column_stack((q[:, 0], np.zeros(len(q))))
        return joint, joint + LENGTH * np.column_stack((np.sin(q[:, 1]), -np.cos(q[:, 1])))

    axis.axhline(0.0, color="gray", linewidth=5.0, alpha=0.25)
    axis.plot(*places(np.linspace(0.0, plan.duration, 401))[1].T, color="tab:green", linewidth=1.2)
    joints, tips = places(np.linspace(0.0, plan.duration, 11))
    for k, (joint, tip) in enumerate(zip(joints, tips)):
        shade = 0.15 + 0.85 * k / (len(joints) - 1)
        axis.plot(*np.stack((joint, tip)).T, color="tab:orange", alpha=shade, linewidth=3.0, solid_capstyle="round")
        axis.plot(*joint, "s", color="tab:blue", alpha=shade, markersize=9)
    axis.set(xlabel="along the slide [m]", ylabel="[m]", title="Fig. 4.7: the motion, ten equal steps of time", aspect="equal")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF, gravity=(0.0, 0.0, 0.0))  # the thesis has none; it would show in the joint forces alone
    plan = planned(robot, U)
    durations = {u: planned(robot, u).duration for u in (WEIGHTS[::4] if small else WEIGHTS)}
    picture(Path(out_dir) / "time_effort_pr.png", robot, plan, durations)
    tau = robot.inverse_dynamics(*plan(np.array([0.0, plan.duration]))[:3])
    found = {"T": plan.duration, "cost": plan.objective, "fastest T, u = 0": durations[0.0],
             "force 1 at the start": tau[0, 0], "force 1 at the end": tau[1, 0],
             "torque 2 at the start": tau[0, 1], "torque 2 at the end": tau[1, 1]}
    if not small:
        found["T if joint 2 is zero a quarter turn ahead"] = planned(robot, U, np.pi / 2).duration
        found["T if joint 2 is zero a quarter turn back"] = planned(robot, U, -np.pi / 2).duration
        found["T without the ends, 6 control points, 12 instants"] = without_ends(robot, 6, 12).duration
        found["T without the ends, 8 control points, 10 instants"] = without_ends(robot, 8, 10).duration
        found["u for the thesis's T"] = float(np.interp(THESIS, list(durations.values()), list(durations)))
    return found


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:50} {value:.6g}")
