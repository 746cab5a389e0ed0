"""A Gough-Stewart platform in a swell: from the motion of its platform to the six actuator forces and their rates.

    python examples/stewart.py [OUT_DIR]

The platform heaves, rolls, pitches and yaws with a load on its deck that stands off its centre. The legs are trees, the
platform is a separate body, khalil-rne (59)-(66): Robot has no code for this machine in particular.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, PlatformMotion, Robot, gough_stewart, picture

DURATION = 6.0  # s
LOAD, LOAD_AT = 120.0, (0.15, -0.1, 0.4)  # kg, in the platform's frame [m]
# Amplitude [m, rad], periods in DURATION, phase [rad] of surge, sway, heave and of roll, pitch, yaw.
SWELL = [(0.05, 2, 0.0), (0.04, 3, 1.0), (0.12, 3, 0.0), (0.16, 3, 0.7), (0.12, 5, 2.0), (0.08, 2, 0.5)]


def swell(home: np.ndarray, t: np.ndarray) -> PlatformMotion:
    """Sines in all six freedoms, about the home pose."""
    w = 2.0 * np.pi / DURATION
    rates = [np.column_stack([a * (n * w) ** k * np.sin(n * w * t + phase + k * np.pi / 2) for a, n, phase in SWELL])
             for k in range(4)]
    return PlatformMotion.from_rpy([home * (k == 0) + x[:, :3] for k, x in enumerate(rates)], [x[:, 3:] for x in rates])


def draw(path: Path, robot: Robot, balls: np.ndarray, t, motion: PlatformMotion, q, force, force_rate) -> None:
    """Draw the machine at its largest roll, beside forces and rates. balls: (6, 3) on the platform."""
    k = int(np.abs(motion.rotation[:, 2, 1]).argmax())
    R, P = motion.rotation[k], motion.position[k]
    feet = np.array([robot.tree.link_pose(f"cross{leg}", q[k]).p for leg in range(1, 7)])
    tops, load = P + balls @ R.T, P + R @ LOAD_AT
    with picture(path, (13, 6), settings=STYLE) as figure:
        left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.3))
        machine, (forces, rates) = left.add_subplot(projection="3d"), right.subplots(2, 1, sharex=True)
        for leg, (foot, top) in enumerate(zip(feet, tops)):
            (line,) = forces.plot(t, 1e-3 * force[:, leg])
            rates.plot(t, 1e-3 * force_rate[:, leg])
            machine.plot(*np.array([foot, top]).T, color=line.get_color(), linewidth=6, solid_capstyle="round")
        machine.plot(*feet[[*range(6), 0]].T, color="0.5", linewidth=3)
        machine.plot_trisurf(*tops.T, color="0.4", alpha=0.6)
        machine.scatter(*load, s=250, color="#e69f00", depthshade=False)
        machine.plot(*motion.position.T, color="black", linewidth=1.0)
        machine.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1], zticks=[0, 1], title=f"largest roll, {LOAD:.0f} kg on deck")
        machine.set_box_aspect((1.0, 1.0, 0.9))
        machine.view_init(elev=16, azim=-62)
        forces.set(title="forces of the six actuators [kN]")
        rates.set(xlabel="time [s]", title="their exact rates [kN/s]")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    machine = gough_stewart()
    robot = machine.robot().with_payload("platform", LOAD, LOAD_AT, np.diag([4.0, 4.0, 6.0]))
    t = np.linspace(0.0, DURATION, 61 if small else 601)
    motion = swell(robot.home[0], t)
    legs, (force, force_rate) = robot.tree_motion(motion), robot.torque_and_rate(motion=motion)
    balls = np.array([machine.loops["cut_joints"][f"ball{k}"]["second"]["xyz"] for k in range(1, 7)])
    draw(Path(out_dir) / "stewart.png", robot, balls, t, motion, legs.q, force, force_rate)
    slides, h = [robot.tree.joint_names.index(joint) for joint in robot.joint_names], t[1] - t[0]
    quotient = (force[2:] - force[:-2]) / (2.0 * h)
    return {"peak force [N]": float(np.abs(force).max()), "peak rate [N/s]": float(np.abs(force_rate).max()),
            "largest difference of rate and quotient [N/s]": float(np.abs(quotient - force_rate[1:-1]).max()),
            "work over the swell's period [J]": float(np.sum((force * legs.qd[:, slides])[:-1]) * h)}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
