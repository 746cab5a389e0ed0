"""A swimming snake: the joints undulate, and the free-base model predicts the motion of the body.

    python examples/snake.py [OUT_DIR]

Inverse dynamics with a free base (khalil-rne 7.2) gives, for given joint motion, the base's acceleration and the joints'
torques at a cost linear in the links. Water acts as an external wrench on every link. Slender bodies slide easily along
themselves and hardly sideways, and that difference is all that swimming needs.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import rnea_ros
from rnea_ros import STYLE, BaseState, Robot, color_scale, derivatives_of_time, load, picture, simulate_free_base, smooth_step

LENGTH, RADIUS, WATER = 1.5, 0.03, 1000.0  # of the body [m]; density of body and water alike [kg/m^3], so gravity is left out
ALONG, ACROSS = 0.05, 2.0  # drag coefficients of a link, along and across it
FREQUENCY, WAVES, SWING = 1.0, 1.0, 1.3  # undulation [Hz], wavelengths on the body, size after the first second
LINK = """<link name="link{0}"><inertial><origin xyz="{1} 0 0"/><mass value="{2}"/><inertia ixx="{3}" iyy="{4}" izz="{4}"
ixy="0" ixz="0" iyz="0"/></inertial></link>"""
JOINT = """<joint name="joint{0}" type="continuous"><axis xyz="0 0 1"/><parent link="link{1}"/><child link="link{0}"/>
<origin xyz="{2} 0 0"/></joint>"""


def urdf(links: int) -> str:
    """Return a chain of equal cylinders, head first, with a vertical axis between neighbours."""
    h, mass = LENGTH / links, WATER * np.pi * RADIUS**2 * LENGTH / links
    body = [LINK.format(k, -h / 2, mass, mass * RADIUS**2 / 2, mass * (3 * RADIUS**2 + h**2) / 12) for k in range(links)]
    return '<robot name="snake">' + "".join(body + [JOINT.format(k, k - 1, -h) for k in range(1, links)]) + "</robot>"


def undulation(n: int, t: float) -> list[np.ndarray]:
    """q, qd, qdd of n joints: a wave that runs from head to tail and grows, differentiated by a jet of time."""
    def wave(x):
        return [np.sin(x * (2 * np.pi * FREQUENCY) - 2 * np.pi * WAVES * s) * smooth_step(x)
                * (SWING * (0.3 + 0.7 * s) * 2 * np.pi / n) for s in np.arange(1, n + 1) / n]

    return derivatives_of_time(wave, t, 2)


def drag(robot: Robot, base: BaseState, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
    """Wrench of the water on every link, about the link's frame: quadratic in the velocity of its middle, along and across."""
    links = list(robot.tree.model.frames)
    length, velocities = LENGTH / len(links), robot.link_velocities(links, q, qd, base=base)
    middle = np.array([-length / 2, 0.0, 0.0])
    v = velocities[:, :3] + np.cross(velocities[:, 3:], middle)
    speed = np.stack([np.abs(v[:, 0]), *[np.hypot(v[:, 1], v[:, 2])] * 2], axis=1)
    force = -0.5 * WATER * np.array([ALONG * np.pi, ACROSS, ACROSS]) * 2 * RADIUS * length * speed * v
    return dict(zip(links, np.concatenate((force, np.cross(middle, force)), axis=1), strict=True))


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    links, duration = (12, 2.0) if small else (60, 8.0)
    robot = load(urdf(links), base="floating", gravity=(0.0, 0.0, 0.0))
    swum = simulate_free_base(robot, lambda t: undulation(robot.n, t), np.arange(0.0, duration, 0.02),
                              loads=lambda *x: rnea_ros.Loads(drag(robot, *x)))
    centre = robot.center_of_mass(swum.q, swum.qd, base=BaseState.from_vector(swum.base)).position
    with picture(Path(out_dir) / "snake.png", (12, 3.6), settings=STYLE) as figure:
        axis = figure.subplots()
        for colour, k in zip(color_scale(5), np.linspace(0, len(swum.t) - 1, 5).astype(int), strict=True):
            heading = 2.0 * np.arctan2(swum.base[k, 5], swum.base[k, 6]) + np.cumsum([0.0, *swum.q[k]])
            body = swum.base[k, :2] - np.cumsum(LENGTH / links * np.column_stack((np.cos(heading), np.sin(heading))), axis=0)
            axis.plot(*body.T, color=colour, linewidth=5, solid_capstyle="round", label=f"{swum.t[k]:.1f} s")
        axis.plot(*centre[:, :2].T, color="black", linewidth=1.0)
        axis.set(aspect="equal", xlabel="x [m]", ylabel="y [m]", title=f"{links} links that swim, from above")
        axis.legend(ncols=5, loc="lower right", bbox_to_anchor=(1.0, 1.0))
    return {"distance": float(np.linalg.norm(centre[-1] - centre[0])), "largest torque": float(np.abs(swum.tau).max()),
            "out of plane": float(np.abs(swum.base[:, 2]).max())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:16} {value:.6g}")
