"""An arm on a vehicle that drives over a bump: torque and torque rate, with and without the vehicle's motion.

    python examples/vehicle_arm.py [OUT_DIR]

The vehicle's pose is a function of time. Evaluated on a Taylor series of time it gives velocity, acceleration and jerk of the
arm's base, and the torque-rate recursion (guarino-gfd (3)-(21)) starts from these instead of from rest. The joints are at
rest: every change in the picture is caused by the road.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, Robot, base_motion, load, picture

URDF = Path(__file__).resolve().parents[1] / "urdf" / "seven_r.urdf"
SPEED, WHEELBASE = 2.0, 1.2  # [m/s], [m]
BUMP, BUMP_LENGTH, BUMP_AT = 0.06, 1.0, 2.0  # height, length, position of its centre [m]
POSE = (0.3, 0.7, 0.0, -1.2, 0.4, 0.9, 0.0)  # of the arm, joint by joint [rad]


def road(s):
    """Height of the road at s [m]: a smooth bump, for numbers and jets."""
    x = (s - BUMP_AT) * (2.0 / BUMP_LENGTH)
    return BUMP / (1.0 + x * x * x * x) / (1.0 + x * x)


def pose(t):
    """Position and rotation of the vehicle: both axles follow the road, the arm stands in the middle."""
    s = t * SPEED
    rear, front = road(s - WHEELBASE / 2), road(s + WHEELBASE / 2)
    slope = (front - rear) * (1.0 / WHEELBASE)
    c = 1.0 / np.sqrt(slope * slope + 1.0)
    rotation = np.array([[c, 0.0, -slope * c], [0.0, 1.0, 0.0], [slope * c, 0.0, c]])
    return np.array([s, 0.0, (rear + front) * 0.5]), rotation


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = load(URDF, base="prescribed")
    t = np.linspace(0.0, 2.0, 101 if small else 1001)
    base = base_motion(pose, t)
    q, rest = np.array(POSE), np.zeros(robot.n)
    driving = robot.solve(q, rest, rest, rest, base=base)
    still = Robot.from_urdf(URDF).torque_and_rate(q, rest, rest, rest)
    draw(Path(out_dir) / "vehicle_arm.png", t, base, driving, still, robot.joint_names)
    tau, tau_rate = driving.torques[:, 0], driving.torques[:, 1]
    worst = np.abs(tau - still[0]).max(axis=0)
    differences = np.gradient(tau, t, axis=0, edge_order=2)
    return {"largest torque added": float(worst.max()), "largest torque rate": float(np.abs(tau_rate).max()),
            "rate against differences": float(np.abs(tau_rate - differences).max()),
            "largest reaction on the vehicle": float(np.abs(driving.base_wrench[:, 2]).max())}


def draw(path: Path, t, base, driving, still, names) -> None:
    """Draw the road, the torques and their rates; dashed without the vehicle's motion."""
    with picture(path, (10, 7.5), settings=STYLE) as figure:
        ground, torque, rate = figure.subplots(3, 1, sharex=True, height_ratios=(1, 2, 2))
        ground.fill_between(t, 1e3 * road(t * SPEED), color="0.8", label="road under the vehicle's middle")
        ground.plot(t, 1e3 * base.position[:, 2], color="black", label="base of the arm")
        ground.set(title=f"height [mm]: a 7R arm holds still on a vehicle at {SPEED:g} m/s", ylim=(-2.0, 100.0))
        ground.legend(ncols=2, loc="upper right")
        for k in (1, 3):
            (line,) = torque.plot(t, driving.torques[:, 0, k], label=names[k])
            torque.axhline(still[0][k], color=line.get_color(), linestyle="--", linewidth=1.2)
            rate.plot(t, driving.torques[:, 1, k], color=line.get_color())
        torque.set(title="torque [N m]; dashed: the vehicle at rest")
        torque.legend(loc="center right")
        rate.set(title="torque rate [N m/s]", xlabel="time [s]")


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:32} {value:.6g}")
