"""A Gough-Stewart platform rides out a sea: from the motion of its platform to the six actuator forces and their rates.

    python examples/stewart.py [OUT_DIR]

The platform heaves, rolls, pitches and yaws with a load on its deck that stands off its centre. The legs are trees, the
platform is a body of its own, khalil-rne (59)-(66): nothing in ParallelRobot knows this machine. The same code runs a delta
robot, last.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.output.figures import new_figure
from rnea_ros.robots.inputs.platform_motion import PlatformMotion
from rnea_ros.robots.parallel import ParallelRobot
from rnea_ros.robots.parallel_machines import Machine, delta, gough_stewart

DURATION = 6.0  # s
LOAD, LOAD_AT = 120.0, (0.15, -0.1, 0.4)  # kg, in the platform's frame [m]
# Amplitude [m, rad], periods in DURATION, phase [rad] of surge, sway, heave and of roll, pitch, yaw.
SWELL = [(0.05, 2, 0.0), (0.04, 3, 1.0), (0.12, 3, 0.0), (0.16, 3, 0.7), (0.12, 5, 2.0), (0.08, 2, 0.5)]
COLOURS = ("#1f4e79", "#2e8b8b", "#d0731c", "#c0392b", "#7a5195", "#6b8e23")


def swell(home: np.ndarray, t: np.ndarray) -> PlatformMotion:
    """Sines in all six freedoms, about the home pose."""
    w = 2.0 * np.pi / DURATION
    rates = [np.column_stack([a * (n * w) ** k * np.sin(n * w * t + phase + k * np.pi / 2) for a, n, phase in SWELL])
             for k in range(4)]
    return PlatformMotion.from_rpy([home * (k == 0) + x[:, :3] for k, x in enumerate(rates)], [x[:, 3:] for x in rates])


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    machine = gough_stewart()
    robot = machine.robot().with_payload("platform", LOAD, LOAD_AT, np.diag([4.0, 4.0, 6.0]))
    t = np.linspace(0.0, DURATION, 61 if small else 601)
    motion = swell(robot.home[0], t)
    legs = robot.leg_motion(motion)
    force, force_rate = robot.torque_and_rate(motion=motion)
    picture(Path(out_dir) / "stewart.png", robot, machine, t, motion, legs.q, force, force_rate)
    slides = [robot.legs.joint_names.index(joint) for joint in robot.joint_names]
    power = np.sum(force * legs.qd[:, slides], axis=1)
    h = t[1] - t[0]
    quotient = (force[2:] - force[:-2]) / (2.0 * h)
    return {"peak force [N]": float(np.abs(force).max()), "peak rate [N/s]": float(np.abs(force_rate).max()),
            "largest stroke from home [m]": float(np.abs(legs.q[:, slides]).max()),
            "largest difference of rate and quotient [N/s]": float(np.abs(quotient - force_rate[1:-1]).max()),
            "work over the swell's period [J]": float(np.sum(power[:-1]) * h),
            **picking()}


def picking() -> dict[str, float]:
    """A delta robot at 10 g: the same class, another machine."""
    robot = delta().robot()
    P, R = robot.home
    motion = PlatformMotion(P, R, acceleration=[98.1, 0.0, 0.0, 0.0, 0.0, 0.0], jerk=[0.0, 5e3, 0.0, 0.0, 0.0, 0.0])
    tau, tau_rate = robot.torque_and_rate(motion=motion)
    return {"delta at 10 g: peak torque [N m]": float(np.abs(tau).max()),
            "delta at 10 g: peak rate [N m/s]": float(np.abs(tau_rate).max())}


def picture(path: Path, robot: ParallelRobot, machine: Machine, t, motion: PlatformMotion, q, force, force_rate) -> None:
    figure = new_figure(15, 8.6)
    left, right = figure.subfigures(1, 2, width_ratios=(1.0, 1.2))
    draw(left.add_subplot(projection="3d"), robot, machine, motion, q)
    place, angle, forces, rates = right.subplots(4, 1, sharex=True)
    for k, name in enumerate("xyz"):
        place.plot(t, motion.position[:, k] - robot.home[0][k], color=COLOURS[k], label=name)
    R = motion.rotation
    angles = (np.arctan2(R[:, 2, 1], R[:, 2, 2]), -np.arcsin(R[:, 2, 0]), np.arctan2(R[:, 1, 0], R[:, 0, 0]))
    for k, (name, values) in enumerate(zip(("roll", "pitch", "yaw"), angles)):
        angle.plot(t, np.degrees(values), color=COLOURS[k], label=name)
    middle, step = 0.5 * (t[1:] + t[:-1]), max(1, len(t) // 80)
    for k, joint in enumerate(robot.joint_names):
        forces.plot(t, force[:, k], color=COLOURS[k], label=joint)
        rates.plot(t, force_rate[:, k], color=COLOURS[k])
        rates.plot(middle[::step], (np.diff(force[:, k]) / np.diff(t))[::step], ".", color="0.15", markersize=2.5,
                   label=None if k else "difference quotients")
    labels = ("off home [m]", "[degrees]", "actuator force [N]", "its rate [N/s]")
    for axis, label in zip((place, angle, forces, rates), labels):
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.margins(x=0.01)
        axis.legend(fontsize=8, ncols=6, loc="upper right")
        low, high = axis.get_ylim()
        axis.set_ylim(low, high + 0.22 * (high - low))  # room for the legend
    place.set_title("Motion of the platform, given", loc="left")
    forces.set_title("Forces of the six actuators and their exact rates", loc="left")
    rates.set_xlabel("time [s]")
    right.align_ylabels()
    figure.savefig(path, dpi=105)


def draw(axis, robot: ParallelRobot, machine: Machine, motion: PlatformMotion, q) -> None:
    """The machine at home (grey) and where it rolls most, its load, and the path of the platform's centre."""
    moment = int(np.abs(motion.rotation[:, 2, 1]).argmax())
    home = (robot.home[1], robot.home[0])
    shape(axis, robot, machine, home, robot.start, 0.22)
    pose = motion.rotation[moment], motion.position[moment]
    shape(axis, robot, machine, pose, q[moment], 1.0)
    deck, load = pose[1], pose[1] + pose[0] @ np.array(LOAD_AT)
    axis.plot(*np.array([deck, load]).T, ":", color="0.3")
    axis.scatter(*load, s=220, color="#c9a26b", edgecolor="0.2", depthshade=False, label=f"load, {LOAD:.0f} kg")
    axis.plot(*motion.position.T, color="#c0392b", linewidth=1.5, label="path of the platform's centre")
    axis.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", zlim=(0.0, 1.9), xlim=(-1.1, 1.1), ylim=(-1.1, 1.1))
    axis.locator_params(nbins=5)
    axis.set_box_aspect((2.2, 2.2, 1.9))
    axis.view_init(elev=16, azim=-62)
    axis.legend(loc="upper left", fontsize=8)
    axis.set_title("Gough-Stewart platform, at home (light) and at its largest roll")


def shape(axis, robot: ParallelRobot, machine: Machine, pose, q, strength: float) -> None:
    """Base and platform as hexagons, each leg as cylinder and rod."""
    model = robot.legs.model
    frames = base_poses(model, q)
    feet, balls = [], []
    for k in range(1, 7):
        frame = model.frame(f"cross{k}")
        feet.append(within(frames[frame.link], (frame.R, frame.P))[1])
        balls.append(pose[1] + pose[0] @ np.array(machine.joints["loops"][f"ball{k}"]["second"]["xyz"]))
        along = (balls[-1] - feet[-1]) / np.linalg.norm(balls[-1] - feet[-1])
        axis.plot(*np.array([feet[-1], balls[-1]]).T, color="0.5", linewidth=2.5, alpha=strength)
        axis.plot(*np.array([feet[-1], feet[-1] + 0.6 * along]).T, color=COLOURS[k - 1], linewidth=7, alpha=strength,
                  solid_capstyle="round")
    for corners, colour in ((feet, "0.4"), (balls, "#1f4e79")):
        loop = np.array([*corners, corners[0]])
        axis.plot(*loop.T, "-o", color=colour, linewidth=3, markersize=5, alpha=strength)
    axis.plot_trisurf(*np.array(balls).T, color="#1f4e79", alpha=0.25 * strength)


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
