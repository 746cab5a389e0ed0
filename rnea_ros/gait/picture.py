"""Pictures of the skeleton and of its walk: stick figures, curves over the stride beside measured ones, an animation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.kinematics import base_poses
from ..io.figures import movie, picture
from .skeleton import Human, Segment, coordinate_names
from .walk import ANGLE_STD, LEG_JOINTS, MEASURED_ANGLES, MEASURED_SHARES, PELVIS_LEAN, Stride, Walk
from .walker import Walker

RIGHT, LEFT, MIDDLE, MEASURED = "#c0392b", "#2471a3", "#333333", "#bbbbbb"
FIGURES = 11  # in a row of snapshots
TRUNK = ("pelvis", "l5", "l3", "t12", "thorax", "neck", "head")
LIMBS = (("thorax", "clavicle", "upper_arm", "forearm", "hand"), ("pelvis", "thigh", "shank", "foot"))
SOLE = ("heel", "ball", "toe_tip")


class Stick:
    """Lines (points, 3) of a posture: trunk, then right and left limbs and feet."""

    def __init__(self, walker: Walker):
        self.walker, human = walker, walker.human
        lines: list[tuple[str, list[tuple[str, np.ndarray]]]] = []
        crown = np.array([0.0, 0.0, human.crown])
        lines.append((MIDDLE, [*((link, np.zeros(3)) for link in TRUNK), ("head", crown)]))
        for side, colour in (("left", LEFT), ("right", RIGHT)):
            named = {name: (point.link, point.position) for name, point in human.points.items() if name.startswith(side)}
            fingers = (f"{side}_hand", np.array([0.0, 0.0, -human.hand_length]))
            for limb in LIMBS:
                ends = [(link if link in TRUNK else f"{side}_{link}", np.zeros(3)) for link in limb]
                lines.append((colour, [*ends, *([fingers] if limb[0] == "thorax" else [])]))
            sole = [named[f"{side}_{name}"] for name in SOLE]
            lines.append((colour, [(f"{side}_foot", np.zeros(3)), sole[0], sole[1], sole[2]]))
            lines.append((colour, [(f"{side}_foot", np.zeros(3)), sole[1]]))
        frames = walker.robot.model.frame
        self._lines = [(colour, [(frames(link).link, frames(link).R @ position + frames(link).P) for link, position in line])
                       for colour, line in lines]

    def __call__(self, q: np.ndarray) -> list[tuple[str, np.ndarray]]:
        poses = base_poses(self.walker.robot.model, q)
        return [(colour, np.array([poses[k][1] + poses[k][0] @ P for k, P in line])) for colour, line in self._lines]


def skeleton(path: str | Path, human: Human) -> None:
    """Draw the skeleton from the front and from the right: ellipsoids of equal inertia, dots for joints, hollow if frozen."""
    walker = Walker(human, backend="python")
    q = np.zeros(walker.n)
    q[walker.joint_names.index("up")] = human.standing_height
    lines, poses = Stick(walker)(q), base_poses(walker.robot.model, q)
    frames = walker.robot.model.frames.items()
    positions = {link: poses[frame.link][1] + poses[frame.link][0] @ frame.P for link, frame in frames}
    with picture(path, (8.0, 8.4), dpi=100) as figure:
        axes = figure.subplots(1, 2, sharey=True)
        for axis, (across, title) in zip(axes, ((1, "front"), (0, "right"))):
            for link, body in human.bodies.items():
                axis.fill(*_ellipse(body, positions[link], across), color="#c9b8a3", alpha=0.45, linewidth=0)
            for colour, line in lines:
                axis.plot(line[:, across], line[:, 2], color=colour, linewidth=2.0, solid_capstyle="round", alpha=0.8)
            for joint in human.joints:
                position, idle = positions[joint.child], set(coordinate_names(joint)) <= set(human.frozen_axes)
                fill = "white" if idle else MIDDLE
                axis.plot(position[across], position[2], "o", markersize=7, color=MIDDLE, markerfacecolor=fill, zorder=3)
                if across == 1 and not joint.child.startswith("left_"):
                    axis.annotate(str(len(joint.axes)), (position[across], position[2]), (-13, -3), textcoords="offset points",
                                  fontsize=8)
            axis.axhline(0.0, color="gray", linewidth=1.0)
            axis.set(aspect="equal", xlim=(-0.42, 0.42), xlabel="[m]")
            axis.set_title(title, fontsize=10)
        axes[0].set_ylabel("[m]")
        figure.suptitle(f"{human.sex}, {human.stature:g} m, {human.mass:g} kg: 6 global coordinates and "
                        f"{len(human.all_axes) - 6} joint axes (numbers),\n{len(human.frozen_axes)} of them frozen (hollow); "
                        "bodies as ellipsoids of equal inertia", fontsize=10)


def _ellipse(body: Segment, position: np.ndarray, across: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the outline of a solid ellipsoid with the mass and inertia of a body."""
    moments = np.diag(body.inertia)
    half = np.sqrt(2.5 / body.mass * (moments.sum() - 2.0 * moments))
    centre, angle = position + body.centre, np.linspace(0.0, 2.0 * np.pi, 60)
    return centre[across] + half[across] * np.cos(angle), centre[2] + half[2] * np.sin(angle)


def walk(path: str | Path, walked: Walk) -> None:
    """Draw snapshots of the stride, angles, ground force, joint forces and torques of the right leg, and zero-moment point."""
    stride = walked.stride()
    with picture(path, (13.0, 14.0), dpi=100) as figure:
        grid = figure.add_gridspec(5, 3, height_ratios=(1.25, 1, 1, 1, 1))
        _snapshots(figure.add_subplot(grid[0, :]), walked, stride)
        panels = [figure.add_subplot(grid[1 + k // 3, k % 3]) for k in range(12)]
        _angles(panels[:3], walked, stride)
        _floor(panels[3:6], walked, stride)
        _joints(panels[6:12], walked, stride)
        human, step = walked.walker.human, walked.step
        figure.suptitle(f"Predicted walking: {step.speed:g} m/s, step {step.length:g} m, {human.stature:g} m, "
                        f"{human.mass:g} kg, {walked.plan.control_points} control points", fontsize=12)


def _snapshots(axis: Any, walked: Walk, stride: Stride) -> None:
    stick, spread = Stick(walked.walker), 0.75
    chosen = np.linspace(0, len(stride.t) - 1, FIGURES).round().astype(int)
    pelvis = walked.walker.joint_names.index("forward")
    for position, k in enumerate(chosen):
        q = stride.q[k].copy()
        shift = position * spread - q[pelvis]
        _draw(axis, stick(q), shift)
        for foot in range(2):
            F, M = stride.floor[k, foot, :3], stride.floor[k, foot, 3:]
            if F[2] > 0.02 * walked.walker.weight:
                start, arrow = -M[1] / F[2] + shift, F / walked.walker.weight * 0.5
                axis.annotate("", (start + arrow[0], arrow[2]), (start, 0.0),
                              arrowprops={"arrowstyle": "->", "color": "#1e8449", "linewidth": 1.3})
        axis.text(position * spread, -0.14, f"{100 * stride.share[k]:.0f} %", ha="center", fontsize=8)
    axis.axhline(0.0, color="gray", linewidth=1.0)
    axis.set_aspect("equal")
    axis.axis("off")
    axis.set_title("Stride from the right heel's strike (right side red, left blue; arrows: the floor's force)", fontsize=10)


def _draw(axis: Any, lines: Sequence[tuple[str, np.ndarray]], shift: float, across: int = 0) -> None:
    for colour, line in lines:
        axis.plot(line[:, across] + shift, line[:, 2], color=colour, linewidth=1.6, solid_capstyle="round")


def _angles(panels: Sequence[Any], walked: Walk, stride: Stride) -> None:
    for axis, (title, joint) in zip(panels, LEG_JOINTS.items()):
        measured = np.array(MEASURED_ANGLES[joint]) - (PELVIS_LEAN if title == "hip" else 0.0)
        std = ANGLE_STD[joint]
        axis.fill_between(100 * MEASURED_SHARES, measured - std, measured + std, color=MEASURED, alpha=0.5, linewidth=0,
                          label="measured, ± 1 SD")
        angle = np.degrees(stride.q[:, walked.walker.joint_names.index(f"right_{joint}")])
        _curve(axis, stride, angle, f"{title}: {joint.split('_')[1]} [deg]")
    panels[0].legend(fontsize=8, loc="lower right")


def _floor(panels: Sequence[Any], walked: Walk, stride: Stride) -> None:
    force = stride.floor[:, 0, :3] / walked.walker.weight
    for axis, (k, title) in zip(panels, ((1, "floor's force: lateral, left +"), (2, "vertical"), (0, "fore-aft, forward +"))):
        _curve(axis, stride, force[:, k], f"{title} [body weight]")


def _joints(panels: Sequence[Any], walked: Walk, stride: Stride) -> None:
    walker = walked.walker
    for axis, title in zip(panels, LEG_JOINTS):
        _curve(axis, stride, stride.transmitted[title] / walker.weight, f"{title}: joint force, norm [body weight]")
    for axis, (title, joint) in zip(panels[3:], LEG_JOINTS.items()):
        tau = stride.tau[:, walker.joint_names.index(f"right_{joint}")] / walker.human.mass
        _curve(axis, stride, tau, f"{title}: torque, {joint.split('_')[1]} + [N m/kg]")
        axis.set_xlabel("stride [%]")


def _curve(axis: Any, stride: Stride, values: np.ndarray, title: str) -> None:
    axis.plot(100 * stride.share, values, color=RIGHT, linewidth=1.6)
    axis.axhline(0.0, color="gray", linewidth=0.6)
    axis.set_xlim(0.0, 100.0)
    axis.set_title(title, loc="left", fontsize=9)
    axis.grid(alpha=0.3)


def animation(path: str | Path, walked: Walk) -> None:
    """Write a GIF at a quarter of the speed, seen from the right."""
    stride, stick = walked.stride(60), Stick(walked.walker)

    def frame(axis: Any, k: int) -> None:
        _draw(axis, stick(stride.q[k]), 0.0)
        axis.axhline(0.0, color="gray", linewidth=1.0)
        axis.set(xlim=(-0.8, 0.8 + 2 * walked.step.length), ylim=(-0.1, 2.0), aspect="equal")
        axis.set_title(f"{stride.t[k]:.2f} s", loc="left", fontsize=9)

    movie(path, (7.0, 5.0), frame, len(stride.t), rate=15)
