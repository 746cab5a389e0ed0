"""A five-bar: two motors on the ground share the work of one loop. Torques of the motors and their exact rates.

    python examples/five_bar.py [OUT_DIR]

The tip draws a flat eight. Where the motors have to be for it is not asked of a formula: the same machine is declared a
second time, driven by two slides that carry the tip, and closed from there. The torques come from the tree of four links,
projected on the motors with G, khalil-rne (55)-(57); their rates from the rates of both.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.output.figures import new_figure
from rnea_ros.robots.closed_loops import ClosedLoopRobot

ROOT = Path(__file__).resolve().parents[1]
CENTRE, SIZE, DURATION = (0.14, 0.62), (0.16, 0.09), 1.2  # of the eight, x and z [m]; [s]
COLOURS = {"left": "#1f4e79", "right": "#d0731c"}
CARRIER = """<link name="slide_x"/><link name="tip"/>
  <joint name="tip_x" type="prismatic"><parent link="base_link"/><child link="slide_x"/><axis xyz="1 0 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint>
  <joint name="tip_z" type="prismatic"><parent link="slide_x"/><child link="tip"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


def eight(t: np.ndarray) -> list[np.ndarray]:
    """x and z of the tip, and their first to third derivatives: (samples, 2) each."""
    w = 2.0 * np.pi / DURATION
    return [np.column_stack([(CENTRE[i] if k == 0 else 0.0) + SIZE[i] * (n * w) ** k * np.sin(n * w * t + k * np.pi / 2)
                             for i, n in enumerate((1, 2))]) for k in range(4)]


def motors(robot: ClosedLoopRobot, t: np.ndarray) -> list[np.ndarray]:
    """Position .. jerk of the motors that let the tip draw the eight."""
    urdf = (ROOT / "urdf" / "five_bar.urdf").read_text().replace("</robot>", CARRIER)
    loops = {"active": ["tip_x", "tip_z"], "start": dict(zip(robot.tree.joint_names, robot.start.tolist())),
             "loops": {side: {"type": "point_on_axis", "first": {"link": "tip", "rpy": [np.pi / 2, 0.0, 0.0]},
                              "second": {"link": f"{side}_forearm", "xyz": [length, 0.0, 0.0]}}
                       for side, length in (("left", 0.5), ("right", 0.55))}}
    loops["start"] |= {"tip_x": CENTRE[0], "tip_z": CENTRE[1]}
    carried = ClosedLoopRobot.from_urdf(urdf, loops)
    columns = [carried.tree.joint_names.index(joint) for joint in robot.joint_names]
    return [values[:, columns] for values in carried.motion(*eight(t))[:4]]


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = ClosedLoopRobot.from_urdf(ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml")
    t = np.linspace(0.0, DURATION, 61 if small else 601)
    qa = motors(robot, t)
    motion = robot.motion(*qa)
    tau, tau_rate = robot.torque_and_rate(*qa)
    tips = np.array([corners(robot, q)[0][-1] for q in motion.q])
    picture(Path(out_dir) / "five_bar.png", robot, t, motion, tau, tau_rate)
    h = t[1] - t[0]
    quotient = (tau[2:] - tau[:-2]) / (2.0 * h)
    return {"largest distance of the tip from the eight [m]": float(np.abs(tips - eight(t)[0]).max()),
            "peak torque [N m]": float(np.abs(tau).max()), "peak rate [N m/s]": float(np.abs(tau_rate).max()),
            "largest difference of rate and quotient [N m/s]": float(np.abs(quotient - tau_rate[1:-1]).max()),
            "work over one turn [J]": float(np.sum((tau * qa[1])[:-1]) * h)}


def corners(robot: ClosedLoopRobot, q: np.ndarray) -> list[np.ndarray]:
    """Of each side: motor, elbow, tip, in x and z."""
    model = robot.tree.model
    poses, sides = base_poses(model, q), []
    for side, length in (("left", 0.5), ("right", 0.55)):
        arm, forearm = (model.frame(f"{side}_{part}") for part in ("arm", "forearm"))
        places = [within(poses[frame.link], (frame.R, frame.P)) for frame in (arm, forearm)]
        tip = places[1][1] + places[1][0] @ [length, 0.0, 0.0]
        sides.append(np.array([places[0][1], places[1][1], tip])[:, [0, 2]])
    return sides


def picture(path: Path, robot: ClosedLoopRobot, t, motion, tau, tau_rate) -> None:
    """The machine at some moments on its eight; beside it torques and rates, over the joints' share of them."""
    figure = new_figure(13, 6.4)
    axes = figure.subplot_mosaic([["machine", "tau"], ["machine", "rate"]], width_ratios=(1.0, 1.15))
    draw(axes["machine"], robot, t, motion.q)
    for k, (side, colour) in enumerate(COLOURS.items()):
        axes["tau"].plot(t, tau[:, k], color=colour, linewidth=1.8, label=f"{side} motor")
        axes["rate"].plot(t, tau_rate[:, k], color=colour, linewidth=1.8, label=f"{side} motor, exact")
        middle = 0.5 * (t[1:] + t[:-1])
        step = max(1, len(t) // 60)
        axes["rate"].plot(middle[::step], (np.diff(tau[:, k]) / np.diff(t))[::step], ".", color="0.15", markersize=3.5,
                          label="difference quotient of the torque" if k else None)
    axes["tau"].set(ylabel="torque [N m]", title="Torque of the motors")
    axes["rate"].set(ylabel="rate [N m/s]", xlabel="time [s]", title="and its rate")
    axes["rate"].legend(loc="upper right", fontsize=8, ncols=3)
    axes["tau"].legend(loc="upper right", fontsize=8)
    for name in ("tau", "rate"):
        axes[name].grid(alpha=0.3)
        axes[name].margins(x=0.01, y=0.16)
    figure.savefig(path, dpi=110)


def draw(axis, robot: ClosedLoopRobot, t, q) -> None:
    moments = np.linspace(0, len(t) - 1, 8, endpoint=False).astype(int)
    for shade, moment in zip(np.linspace(0.15, 0.4, len(moments)), moments):
        for (_side, colour), points in zip(COLOURS.items(), corners(robot, q[moment])):
            strong = moment == moments[0]
            axis.plot(*points.T, "-o", color=colour, linewidth=5.0 if strong else 2.0, markersize=9 if strong else 4,
                      markerfacecolor="white", alpha=1.0 if strong else shade, zorder=3 if strong else 1)
    axis.plot(*eight(t)[0].T, color="#c0392b", linewidth=2.0, zorder=4, label="path of the tip")
    axis.plot([-0.08, 0.38], [-0.035, -0.035], color="0.4", linewidth=8, solid_capstyle="butt", zorder=0)
    axis.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="Five-bar in a vertical plane")
    axis.legend(loc="upper right", fontsize=8)
    axis.grid(alpha=0.3)


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
