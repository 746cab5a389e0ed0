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

from rnea_ros import STYLE, PlannedMotion, Robot, draw_stills, picture, plan_motion

URDF = Path(__file__).parents[1] / "urdf" / "rr.urdf"
START, GOAL = (0.0, -2.0), (1.0, -1.0)
LENGTH = 0.4  # m, of both links
OPTIMUM = 0.391854539516  # s
SWITCHES = ((0.1959272698,), (0.0457093212, 0.2353004314))  # s, of torque 1 and torque 2
FIRST = (1.0, -1.0)  # their signs at the start
COLOURS = ("#0072b2", "#d55e00")


def switches(t: np.ndarray, tau: np.ndarray) -> np.ndarray:
    """Return the times at which a torque passes zero, by linear interpolation."""
    k = np.flatnonzero(tau[:-1] * tau[1:] < 0.0)
    return t[k] - tau[k] * (t[k + 1] - t[k]) / (tau[k + 1] - tau[k])


def corners(q: np.ndarray) -> np.ndarray:
    """Return (samples, 3, 2): shoulder, elbow and tip."""
    angles = np.cumsum(q, axis=1)
    steps = LENGTH * np.stack((np.cos(angles), np.sin(angles)), axis=-1)
    return np.concatenate((np.zeros((len(q), 1, 2)), np.cumsum(steps, axis=1)), axis=1)


def draw(path: Path, robot: Robot, plan: PlannedMotion) -> None:
    t = np.linspace(0.0, plan.duration, 2001)
    q, qd, qdd, _ = plan(t)
    tau, force = robot.inverse_dynamics(q, qd, qdd), robot.joint_wrenches(q, qd, qdd).wrench[..., :3]
    with picture(path, (13, 4.6), settings=STYLE) as figure:
        torques, forces, motion = figure.subplots(1, 3)
        for k, colour in enumerate(COLOURS):
            level = 10.0 * FIRST[k] * (-1.0) ** np.arange(len(SWITCHES[k]) + 1)
            torques.step([0.0, *SWITCHES[k], OPTIMUM], [*level, level[-1]], where="post", color=colour, linestyle=":")
            torques.plot(t, tau[:, k], color=colour, label=f"joint {k + 1}")
            forces.plot(t, np.linalg.norm(force[:, k], axis=-1), color=colour, label=f"joint {k + 1}")
            draw_stills(motion, corners(plan(np.linspace(0.0, plan.duration, 11))[0])[:, k:k + 2], colour)
        motion.plot(*corners(q)[:, 2].T, color="#009e73")
        torques.set(xlabel="time [s]", title=f"torques [N m], T = {plan.duration:.5f} s\ndotted: the true optimum")
        forces.set(xlabel="time [s]", title="forces inside the joints [N]")
        motion.set(xlabel="x [m]", ylabel="y [m]", title="ten equal steps of time", aspect="equal")
        forces.legend()


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF, gravity=(0.0, 0.0, 0.0))  # the thesis has none; it would show in the joint forces alone
    plan = plan_motion(robot, START, GOAL, time_tolerance=0.0)
    draw(Path(out_dir) / "minimum_time_rr.png", robot, plan)
    t = np.linspace(0.0, plan.duration, 20001)
    tau = robot.inverse_dynamics(*plan(t)[:3])
    found = {"T": plan.duration, "T / optimum - 1": plan.duration / OPTIMUM - 1.0, "control points": plan.control_points,
             "largest excess of torque": plan.excess["torque"]}
    for joint in range(2):
        found[f"sign of torque {joint + 1} at the start"] = float(np.sign(tau[0, joint]))
        found |= {f"torque {joint + 1} switches [{k}]": float(moment) for k, moment in enumerate(switches(t, tau[:, joint]))}
    return found


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:32} {value:.8g}")
