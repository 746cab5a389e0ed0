"""The fastest motion of a two-link arm inside its torque limits: Barman's thesis, section 4.1, figures 4.2 to 4.4 drawn again.

    python examples/minimum_time_rr.py [OUT_DIR]

The arm moves on a horizontal plane from q = (0, -2) to (1, -1), at rest at both ends, with at most 10 N m in each joint. The
true optimum, by shooting at the switching times, is 0.391854540 s: torque 1 full ahead, then full back; torque 2 back, ahead,
back. The thesis found 0.392 s. Splines cannot jump, so they come near it as their knots gather where the torques switch.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import Robot, plan_motion
from rnea_ros.output.figures import new_figure
from rnea_ros.planning import PlannedMotion, Settings

URDF = Path(__file__).parents[1] / "urdf" / "rr.urdf"
START, GOAL = (0.0, -2.0), (1.0, -1.0)
LENGTH = 0.4  # m, of both links
OPTIMUM = 0.391854539516  # s
SWITCHES = ((0.1959272698,), (0.0457093212, 0.2353004314))  # s, of torque 1 and torque 2
FIRST = (1.0, -1.0)  # their signs at the start


def switches(t: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Times at which a torque passes zero, by linear interpolation."""
    k = np.flatnonzero(tau[:-1] * tau[1:] < 0.0)
    return t[k] - tau[k] * (t[k + 1] - t[k]) / (tau[k + 1] - tau[k])


def convergence(robot: Robot, small: bool) -> dict[str, list[tuple[int, float]]]:
    """(control points, relative distance from the optimum) with even knots, and with knots that gather."""
    even = [Settings(spans=m - 3, refinements=0) for m in ((8, 15) if small else (6, 8, 10, 12, 15, 20, 30, 50, 80))]
    gathered = [Settings(refinements=k, gain=0.0) for k in ((0,) if small else range(6))]
    plans = {name: [plan_motion(robot, START, GOAL, settings=one) for one in settings]
             for name, settings in (("even knots", even), ("knots halved where torques switch", gathered))}
    return {name: [(plan.control_points, plan.duration / OPTIMUM - 1.0) for plan in found] for name, found in plans.items()}


def picture(path: Path, robot: Robot, plan: PlannedMotion, errors: dict[str, list[tuple[int, float]]]) -> None:
    t = np.linspace(0.0, plan.duration, 2001)
    state = plan(t)
    tau = robot.inverse_dynamics(*state[:3])
    force = np.linalg.norm(robot.joint_wrenches(*state[:3]).wrench[..., :3], axis=-1)
    figure = new_figure(12, 8.4)
    axes = figure.subplots(2, 2)
    for k, colour in ((0, "tab:blue"), (1, "tab:orange")):
        level = np.append(FIRST[k] * 10.0 * (-1.0) ** np.arange(len(SWITCHES[k]) + 1), np.nan)
        axes[0, 0].step([0.0, *SWITCHES[k], OPTIMUM], level[:-1].tolist() + [level[-2]], where="post", color=colour,
                        linewidth=1.0, linestyle=":")
        axes[0, 0].plot(t, tau[:, k], color=colour, label=f"joint {k + 1}")
        axes[0, 1].plot(t, force[:, k], color=colour, label=f"joint {k + 1}")
    axes[0, 0].plot([], [], color="gray", linestyle=":", linewidth=1.0, label="true optimum")
    axes[0, 0].set(xlabel="time [s]", ylabel="torque [N m]", title=f"Fig. 4.2: joint torques, T = {plan.duration:.5f} s")
    axes[0, 1].set(xlabel="time [s]", ylabel="force [N]", title="Fig. 4.3: norms of the internal joint forces")
    snapshots(axes[1, 0], plan)
    for (name, points), mark in zip(errors.items(), "os"):
        axes[1, 1].loglog(*np.array(points).T, marker=mark, label=name)
    axes[1, 1].axhline(0.392 / OPTIMUM - 1.0, color="gray", linestyle="--", linewidth=1.0, label="thesis: 0.392 s")
    axes[1, 1].set(xlabel="control points of each joint", ylabel="T / optimum - 1",
                   title=f"distance from the true optimum {OPTIMUM:.6f} s")
    axes[1, 1].set_xticks((6, 10, 20, 40, 80), labels=("6", "10", "20", "40", "80"))
    axes[1, 1].set_xticks((), minor=True)
    for axis in axes.flat:
        axis.grid(alpha=0.3, which="both" if axis is axes[1, 1] else "major")
        if axis is not axes[1, 0]:
            axis.legend(fontsize=8)
    figure.savefig(path, dpi=120)


def snapshots(axis, plan: PlannedMotion) -> None:
    """The arm at even times, from light to dark, and the path of its tip."""
    def corners(q):
        angles = np.cumsum(q, axis=1)
        steps = LENGTH * np.stack((np.cos(angles), np.sin(angles)), axis=-1)
        return np.concatenate((np.zeros((len(q), 1, 2)), np.cumsum(steps, axis=1)), axis=1)

    tip = corners(plan(np.linspace(0.0, plan.duration, 401))[0])[:, 2]
    axis.plot(*tip.T, color="tab:green", linewidth=1.2)
    poses = corners(plan(np.linspace(0.0, plan.duration, 11))[0])
    for k, pose in enumerate(poses):
        shade = 0.15 + 0.85 * k / (len(poses) - 1)
        axis.plot(*pose[:2].T, color="tab:blue", alpha=shade, linewidth=3.0, solid_capstyle="round")
        axis.plot(*pose[1:].T, color="tab:orange", alpha=shade, linewidth=3.0, solid_capstyle="round")
        axis.plot(*pose[:2].T, "o", color="black", alpha=shade, markersize=4)
    axis.set(xlabel="x [m]", ylabel="y [m]", title="Fig. 4.4: the motion, ten equal steps of time", aspect="equal")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF, gravity=(0.0, 0.0, 0.0))  # the thesis has none; it would show in the joint forces alone
    plan = plan_motion(robot, START, GOAL)
    picture(Path(out_dir) / "minimum_time_rr.png", robot, plan, convergence(robot, small))
    t = np.linspace(0.0, plan.duration, 20001)
    tau = robot.inverse_dynamics(*plan(t)[:3])
    found = {"T": plan.duration, "T / optimum - 1": plan.duration / OPTIMUM - 1.0, "control points": plan.control_points,
             "largest excess of torque": plan.excess["torque"]}
    for joint in range(2):
        times = switches(t, tau[:, joint])
        found[f"sign of torque {joint + 1} at the start"] = float(np.sign(tau[0, joint]))
        found |= {f"torque {joint + 1} switches [{k}]": float(moment) for k, moment in enumerate(times)}
    return found


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:32} {value:.8g}")
