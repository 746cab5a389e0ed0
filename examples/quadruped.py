"""A quadruped leaps: the ground reaction determines when it takes off, the free-base model how it flies.

    python examples/quadruped.py [OUT_DIR]

On the ground the plan moves the trunk too; the base wrench (khalil-rne 7) is the reaction. Where it fades, the feet leave.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, BaseState, Robot, base_motion, derivatives_of_time, load, picture, simulate_free_base, smooth_step

LEG, FADED, G = 0.5, 0.2, 9.81  # stretched [m]; reaction at take-off, of the weight; [m/s^2]


def joints(t):
    """Hip and knee of every leg: down, up and forwards; in the air drawn up and put out again. Of a jet of time."""
    bend = 1.2 + smooth_step(t / 0.5) * 0.9 - smooth_step((t - 0.55) / 0.35) * 1.8
    bend = bend + smooth_step((t - 0.72) / 0.12) * 1.6 - smooth_step((t - 0.85) / 0.12) * 0.72
    lean = smooth_step((t - 0.4) / 0.5) * 0.35 - smooth_step((t - 0.75) / 0.22) * 0.45
    return np.array([lean + bend * 0.5, -bend] * 4)


def trunk(t):
    """Position and rotation, level, above feet that stand."""
    hip, knee = joints(t)[:2]
    return np.array([np.sin(hip + knee * 0.5), t * 0.0, np.cos(hip + knee * 0.5)]) * (np.cos(knee * 0.5) * LEG), np.eye(3)


def draw(path: Path, robot: Robot, t, base, q, reaction, off: int) -> None:
    with picture(path, (12, 5.8), settings=STYLE) as figure:
        side, force, pitch = figure.subplot_mosaic([["s", "s"], ["f", "p"]], height_ratios=(1.6, 1.0)).values()
        for column, k in enumerate((0, int(np.searchsorted(t, 0.56)), off, (off + len(t)) // 2, len(t) - 1)):
            state, shift = BaseState.from_vector(base[k]), np.array([0.8 * column, 0.0])
            ends = [state.position[::2] + shift + x * state.rotation[::2, 0] for x in (-0.3, 0.3)]
            side.plot(*np.transpose(ends), color="0.4", linewidth=14.0, solid_capstyle="round")
            for leg, colour in (("rear_left", "#0072b2"), ("front_left", "#d55e00")):
                pins = [robot.link_pose(f"{leg}_{link}", q[k], base=state).p[::2] for link in ("thigh", "shank", "foot")]
                side.plot(*np.transpose(pins + shift), "o-", color=colour, linewidth=5.0)
            side.annotate(f"{t[k]:.2f} s", (shift[0], -0.14), ha="center")
        side.axhline(0.0, color="0.6", linewidth=2.0)
        side.set(aspect="equal", ylim=(-0.18, 0.56), xticks=[], yticks=[], frame_on=False)
        force.plot(t, reaction, color="#009e73")
        force.set(xlabel="time [s]", title="reaction of the ground, of the weight")
        pitch.plot(t[off:], -np.degrees(2.0 * np.arcsin(base[off:, 4])), color="#cc79a7")
        pitch.set(xlabel="time [s]", title="the trunk in flight, nose up [deg]")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot, plan = load(Path(__file__).with_suffix(".urdf"), base="floating"), partial(derivatives_of_time, joints, order=2)
    t, weight = np.arange(0.0, 0.72, 0.004 if small else 0.002), robot.tree.total_mass * G
    base = base_motion(trunk, t)
    motion = np.swapaxes([plan(x) for x in t], 0, 1)
    wrench = robot.solve(*motion, stages=1, base=base).base_wrench
    off = int(np.argmax(wrench[:, 2] < FADED * weight))
    stood, zmp = base.vector()[:off + 1], robot.zero_moment_point(wrench, base=base)[:off + 1]
    rise = robot.center_of_mass(*plan(t[off])[:2], base=BaseState.from_vector(stood[-1])).velocity[2]
    times = np.linspace(t[off], t[off] + 2.0 * rise / G, 301)
    flight = simulate_free_base(robot, plan, times, BaseState.from_vector(stood[-1]))
    centre = robot.center_of_mass(flight.q, flight.qd, base=BaseState.from_vector(flight.base))
    draw(Path(out_dir) / "quadruped.png", robot, np.append(t[:off], flight.t), np.append(stood[:off], flight.base, axis=0),
         np.array([*(plan(x)[0] for x in t[:off]), *flight.q]), np.append(wrench[:off, 2], 0.0 * flight.t) / weight, off)
    return {"take-off [s]": float(flight.t[0]), "flight [s]": float(flight.t[-1] - flight.t[0]),
            "widest zero-moment point": float(np.abs(zmp[:, :2]).max()),
            "fall of the mass centre": float(2.0 * np.polyfit(flight.t, centre.position[:, 2], 2)[0]),
            "angular momentum kept": float(np.abs(centre.momentum[:, 3:] - centre.momentum[0, 3:]).max())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:28} {value:.6g}")
