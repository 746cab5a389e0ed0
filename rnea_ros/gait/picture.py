"""Pictures of the skeleton, of its walk and of its lift: stick figures, curves beside measured ones, animations."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..algorithms.kinematics import base_poses
from ..io.figures import movie, picture
from .lift import NIOSH_COMPRESSION, Lift, LiftMotion
from .muscles import RepeatedWork
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


POSES = 6  # in a row of snapshots of a lift
SHOWN = {"hip": ("right_hip_flexion", RIGHT), "knee": ("right_knee_flexion", LEFT),
         "ankle": ("right_ankle_dorsiflexion", "#1e8449"), "shoulder": ("right_shoulder_flexion", "#b7950b"),
         "elbow": ("right_elbow_flexion", "#7d3c98")}
FATIGUE_INSTANTS = 200


def lift(path: str | Path, lifted: Lift, period: float, hours: float) -> None:
    """Draw snapshots of a lift, angles, torques and torque rates, the box's path, the lumbar load, the floor's force, and the
    capacity left when the lift is repeated every `period` [s].
    """
    motion, lifter = lifted.motion(), lifted.lifter
    with picture(path, (13.0, 13.0), dpi=100) as figure:
        grid = figure.add_gridspec(4, 3, height_ratios=(1.35, 1, 1, 1))
        _poses(figure.add_subplot(grid[0, :]), lifted, motion)
        panels = [figure.add_subplot(grid[1 + k // 3, k % 3]) for k in range(9)]
        names, t = lifter.walker.joint_names, motion.t
        for name, (joint, colour) in SHOWN.items():
            k = names.index(joint)
            for axis, values in zip(panels, (np.degrees(motion.q), motion.tau, motion.tau_rate)):
                axis.plot(t, values[:, k], color=colour, linewidth=1.6, label=name)
        for axis, values in zip(panels[1:3], (motion.tau, motion.tau_rate)):
            axis.plot(t, values[:, names.index("l5s1_extension")], color=MIDDLE, linewidth=1.6, label="L5/S1")
        panels[3].plot(motion.box[:, 0], motion.box[:, 2], color=MIDDLE, linewidth=1.6)
        panels[4].plot(t, motion.moment, color=MIDDLE, linewidth=1.6)
        panels[5].plot(t, motion.compression, color=MIDDLE, linewidth=1.6)
        panels[5].axhline(NIOSH_COMPRESSION, color=RIGHT, linewidth=1.0, linestyle="--", label="NIOSH, 3400 N")
        force = motion.floor[:, 0] / lifter.walker.weight
        panels[6].plot(t, force[:, 2], color=RIGHT, linewidth=1.6, label="vertical")
        panels[6].plot(t, force[:, 0], color=LEFT, linewidth=1.6, label="fore-aft")
        panels[7].plot(t, 100 * motion.pressure[:, 0], color=MIDDLE, linewidth=1.6)
        heel, _, tip = lifter.walker.human.sole
        panels[7].axhspan(100 * heel, 100 * tip, color=MEASURED, alpha=0.3, linewidth=0, label="sole")
        _capacity(panels[8], lifted.repeated(period), lifter.joint_names, hours)
        titles = ("angles [deg]", "torques [N m]", "torque rates [N m/s]", "path of the box's centre: ahead, height [m]",
                  "moment at L5/S1 [N m]", "compression at L5/S1 [N]", "floor's force on a foot [weight with box]",
                  "centre of pressure ahead of the ankle [cm]", f"capacity left, a lift every {period:g} s [%]")
        for k, (axis, title) in enumerate(zip(panels, titles)):
            axis.set_title(title, loc="left", fontsize=9)
            axis.grid(alpha=0.3)
            axis.set_xlabel("[h]" if k == 8 else "[m]" if k == 3 else "[s]", fontsize=8)
            if axis.get_legend_handles_labels()[1]:
                axis.legend(fontsize=7, loc="best")
        panels[3].set_aspect("equal", adjustable="datalim")
        task, human = lifter.task, lifter.person
        muscles = ", muscles by angle and velocity" if lifter.walker.muscles else ""
        figure.suptitle(f"Predicted lifting of {task.box_mass:g} kg in {task.duration:g} s: {human.sex}, {human.stature:g} m, "
                        f"{human.mass:g} kg{muscles}", fontsize=12)


def _capacity(axis: Any, work: RepeatedWork, names: Sequence[str], hours: float) -> None:
    at = np.linspace(0.0, hours, FATIGUE_INSTANTS)
    left = 100 * np.array([work.capacity(3600.0 * one / work.period) for one in at])
    shown = {**SHOWN, "L5/S1": ("l5s1_extension", MIDDLE)}
    for name, (joint, colour) in shown.items():
        k = names.index(joint)
        stop = int(np.searchsorted(at, work.endurance[k] / 3600.0)) + 1  # where the work fails
        axis.plot(at[:stop], left[:stop, k], color=colour, linewidth=1.6, label=name)
        if stop <= len(at):
            axis.plot(at[stop - 1], left[stop - 1, k], "x", color=colour)
    axis.set_ylim(max(0.0, 10.0 * np.floor(left[np.isfinite(left)].min() / 10.0)), 101.0)


def _poses(axis: Any, lifted: Lift, motion: LiftMotion) -> None:
    stick, spread = Stick(lifted.lifter.walker), 1.0
    for at, k in enumerate(np.linspace(0, len(motion.t) - 1, POSES).round().astype(int)):
        _draw_lifter(axis, stick, lifted, motion, int(k), at * spread)
        F, M = motion.floor[k, :, :3].sum(axis=0), motion.floor[k, :, 3:].sum(axis=0)
        start, arrow = -M[1] / F[2] + at * spread, F / lifted.lifter.walker.weight * 0.5
        axis.annotate("", (start + arrow[0], arrow[2]), (start, 0.0),
                      arrowprops={"arrowstyle": "->", "color": "#1e8449", "linewidth": 1.3})
        axis.text(at * spread + 0.1, -0.16, f"{motion.t[k]:.2f} s", ha="center", fontsize=8)
    axis.axhline(0.0, color="gray", linewidth=1.0)
    axis.set_aspect("equal")
    axis.axis("off")
    axis.set_title("Seen from the right (arrows: the floor's force on both feet)", fontsize=10)


def _draw_lifter(axis: Any, stick: Stick, lifted: Lift, motion: LiftMotion, k: int, shift: float) -> None:
    _, depth, height = lifted.lifter.task.box_size
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [depth / 2.0, height / 2.0] + motion.box[k, ::2]
    axis.fill(corners[:, 0] + shift, corners[:, 1], color="#c9b8a3", alpha=0.7)
    _draw(axis, stick(motion.q[k]), shift)


def lift_animation(path: str | Path, lifted: Lift) -> None:
    """Write a GIF at half of the speed, seen from the right."""
    rate = 15
    motion, stick = lifted.motion(int(2 * rate * lifted.plan.duration) + 1), Stick(lifted.lifter.walker)

    def frame(axis: Any, k: int) -> None:
        _draw_lifter(axis, stick, lifted, motion, k, 0.0)
        axis.axhline(0.0, color="gray", linewidth=1.0)
        axis.set(xlim=(-0.8, 1.2), ylim=(-0.1, 2.1), aspect="equal")
        axis.set_title(f"{motion.t[k]:.2f} s", loc="left", fontsize=9)

    movie(path, (6.0, 6.0), frame, len(motion.t), rate=rate)
