"""A five-bar: two motors on the ground share the work of one loop.

    python examples/five_bar.py [OUT_DIR]

The tip draws a flat eight. The same machine, declared a second time with two slides that carry the tip, says where the motors
have to be. Torques come from the tree of four links, projected on the motors with G, khalil-rne (55)-(57); rates from both.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, Robot, draw_stills, load, picture

ROOT = Path(__file__).resolve().parents[1]
CENTRE, SIZE, DURATION = (0.14, 0.62), (0.16, 0.09), 1.2  # of the eight, x and z [m]; [s]
SIDES = {"left": 0.5, "right": 0.55}  # length of the forearm [m]
SLIDE = """<link name="{1}"/><joint name="tip_{2}" type="prismatic"><parent link="{0}"/><child link="{1}"/><axis xyz="{3}"/>
<limit lower="-1" upper="1" effort="1" velocity="1"/></joint>"""
CARRIER = SLIDE.format("base_link", "slide", "x", "1 0 0") + SLIDE.format("slide", "tip", "z", "0 0 1") + "</robot>"


def eight(t: np.ndarray) -> list[np.ndarray]:
    """x and z of the tip, and their first to third derivatives: (samples, 2) each."""
    w = 2.0 * np.pi / DURATION
    return [np.column_stack([(CENTRE[i] if k == 0 else 0.0) + SIZE[i] * (n * w) ** k * np.sin(n * w * t + k * np.pi / 2)
                             for i, n in enumerate((1, 2))]) for k in range(4)]


def motors(robot: Robot, t: np.ndarray) -> list[np.ndarray]:
    """Position .. jerk of the motors that let the tip draw the eight."""
    urdf = (ROOT / "urdf" / "five_bar.urdf").read_text().replace("</robot>", CARRIER)
    start = dict(zip(robot.tree.joint_names, robot.start.tolist())) | {"tip_x": CENTRE[0], "tip_z": CENTRE[1]}
    carried = load(urdf, {"loops": {"active": ["tip_x", "tip_z"], "start": start, "cut_joints": {
        side: {"type": "point_on_axis", "first": {"link": "tip", "rpy": [np.pi / 2, 0.0, 0.0]},
               "second": {"link": f"{side}_forearm", "xyz": [length, 0.0, 0.0]}} for side, length in SIDES.items()}}})
    columns = [carried.tree.joint_names.index(joint) for joint in robot.joint_names]
    return [values[:, columns] for values in carried.motion(*eight(t))[:4]]


def corners(robot: Robot, q: np.ndarray, side: str) -> np.ndarray:
    """Return (samples, 3, 2): motor, elbow and tip of a side, in x and z."""
    ends = (("arm", 0.0), ("forearm", 0.0), ("forearm", SIDES[side]))
    return np.stack([robot.tree.link_pose(f"{side}_{link}", q, point=[x, 0.0, 0.0]).p for link, x in ends], axis=1)[..., ::2]


def draw(path: Path, robot: Robot, t, q, tau, tau_rate) -> None:
    with picture(path, (12, 5.6), settings=STYLE) as figure:
        machine, torque, rate = figure.subplot_mosaic([["m", "t"], ["m", "r"]], width_ratios=(1.0, 1.2)).values()
        for k, (side, colour) in enumerate(zip(SIDES, ("#0072b2", "#d55e00"))):
            draw_stills(machine, corners(robot, q[:: len(q) // 6], side), colour, marker="o", linewidth=4.0)
            torque.plot(t, tau[:, k], color=colour)
            rate.plot(t, tau_rate[:, k], color=colour)
            rate.plot(t[::10], np.gradient(tau[:, k], t)[::10], "o", color="black", markersize=3.0)
        machine.plot(*eight(t)[0].T, color="#009e73", linewidth=3.0)
        machine.set(aspect="equal", xlabel="x [m]", ylabel="z [m]", title="the tip draws an eight")
        torque.set(title="torque of left and right motor [N m]")
        rate.set(xlabel="time [s]", title="its rate [N m/s]; dots: differences")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = load(ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml")
    qa = motors(robot, t := np.linspace(0.0, DURATION, 61 if small else 601))
    q, (tau, tau_rate) = robot.motion(*qa).q, robot.torque_and_rate(*qa)
    draw(Path(out_dir) / "five_bar.png", robot, t, q, tau, tau_rate)
    rough, tips = np.gradient(tau, t, axis=0), corners(robot, q, "left")[:, 2]
    return {"largest distance of the tip from the eight [m]": float(np.abs(tips - eight(t)[0]).max()),
            "largest difference of rate and quotient [N m/s]": float(np.abs(rough - tau_rate)[1:-1].max()),
            "peak rate [N m/s]": float(np.abs(tau_rate).max()),
            "work over one turn [J]": float(np.sum((tau * qa[1])[1:]) * t[1])}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:55} {value:.6g}")
