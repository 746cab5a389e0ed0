"""Pictures and movies of the demos: torque and torque rate of each joint, the machine in some poses, contact forces.

Machines are drawn from the visual boxes, cylinders and spheres of their URDF; meshes are omitted.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..algebra.vectors import rpy
from ..algorithms.kinematics import Pose
from ..io.figures import color_scale, draw_polygons, movie, picture
from ..robots.base_state import BaseState
from ..robots.robot import Robot
from ..sim.plant import CONTROL_PERIOD_S, TrackingResult
from ..sim.scene import Polyline, Renderer
from .arms import Arm
from .processes import share_file
from .robot_demo import DemoRecording, RobotDemo, Topics, difference_quotients, motor_torques, pair_by_stamp

SIDES = 20  # faces around cylinders and spheres
DEFAULT_COLOUR = (0.55, 0.6, 0.65)
LIGHT_DIRECTION = np.array([0.35, -0.5, 0.8]) / np.linalg.norm([0.35, -0.5, 0.8])


class Shape(NamedTuple):
    """Shape of a link: faces (corners, 3) in the frame of the link [m], counterclockwise from outside; colour (r, g, b)."""

    link: str
    faces: list[np.ndarray]
    colour: tuple[float, ...]


def urdf_shapes(urdf: str) -> list[Shape]:
    """Return the shapes of all visuals that can be drawn."""
    robot = ElementTree.fromstring(urdf)
    colours = {material.get("name"): material.find("color") for material in robot.iter("material")
               if material.find("color") is not None}
    return [Shape(link.get("name", ""), faces, _colour(visual, colours))
            for link in robot.findall("link") for visual in link.findall("visual") if (faces := list(_faces(visual)))]


def draw_machine(axis, drawn: list[Shape], poses: Sequence[Callable[[str], Pose]]) -> None:
    """Draw the robot on 3D axes in several poses, the last one opaque, the others transparent.

    drawn: shapes of the links; poses: functions that return the pose of a link by name
    """
    points = []
    for number, link_pose in enumerate(poses, start=1):
        faces, colours = [], []
        for shape in drawn:
            R, P = link_pose(shape.link)
            faces += [P + face @ np.asarray(R).T for face in shape.faces]
            colours += [_shade_face(shape.colour, face) for face in faces[-len(shape.faces):]]
        draw_polygons(axis, faces, colours, 1.0 if number == len(poses) else 0.2)  # one call: correct occlusion
        points += faces
    low, high = (end(np.concatenate(points), axis=0) for end in (np.min, np.max))
    axis.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axis.set_box_aspect(high - low, zoom=1.1)
    axis.set_axis_off()


def _colour(visual, colours) -> tuple[float, ...]:
    material = visual.find("material")
    found = None if material is None else material.find("color")
    if found is None and material is not None:
        found = colours.get(material.get("name"))
    return DEFAULT_COLOUR if found is None else tuple(map(float, found.get("rgba").split()[:3]))


def _shade_face(colour: tuple[float, ...], face: np.ndarray) -> tuple[float, ...]:
    normal = np.cross(face[1] - face[0], face[2] - face[1])
    bright = 0.72 + 0.28 * float(normal @ LIGHT_DIRECTION / (np.linalg.norm(normal) or 1.0))
    return tuple(min(1.0, bright * part) for part in colour)


def _faces(visual) -> Iterator[np.ndarray]:
    geometry, origin = visual.find("geometry")[0], visual.find("origin")
    P, R = np.zeros(3), np.eye(3)
    if origin is not None:
        P, R = _numbers(origin, "xyz"), np.array(rpy(*_numbers(origin, "rpy")), dtype=float)
    makers = {"box": _box, "cylinder": _cylinder, "sphere": _sphere}
    for face in makers[geometry.tag](geometry) if geometry.tag in makers else ():
        yield P + face @ R.T


def _numbers(element, name: str) -> np.ndarray:
    return np.array(element.get(name, "0 0 0").split(), dtype=float)


def _box(geometry) -> Iterator[np.ndarray]:
    half = _numbers(geometry, "size") / 2.0
    for k in range(3):
        for side in (-1.0, 1.0):
            corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]], dtype=float)[::int(side)]
            face = np.empty((4, 3))
            face[:, k], face[:, (k + 1) % 3], face[:, (k + 2) % 3] = side, corners[:, 0], corners[:, 1]
            yield face * half


def _rings(rings: list[tuple[float, float]]) -> Iterator[np.ndarray]:
    """Yield the faces of a solid of revolution about z through rings (radius, height), from the bottom up."""
    turn = 2.0 * np.pi * np.arange(SIDES + 1) / SIDES
    circles = [np.column_stack((r * np.cos(turn), r * np.sin(turn), np.full(SIDES + 1, z))) for r, z in rings]
    yield circles[0][:0:-1]
    for low, high in pairwise(circles):
        for k in range(SIDES):
            yield np.array([low[k], low[k + 1], high[k + 1], high[k]])
    yield circles[-1][:-1]


def _cylinder(geometry) -> Iterator[np.ndarray]:
    radius, half = float(geometry.get("radius")), float(geometry.get("length")) / 2.0
    return _rings([(radius, -half), (radius, half)])


def _sphere(geometry) -> Iterator[np.ndarray]:
    radius, angles = float(geometry.get("radius")), np.linspace(-1.5, 1.5, 11)
    return _rings([(radius * np.cos(a), radius * np.sin(a)) for a in angles])


MAX_ROWS = 12  # most joints in a picture
MACHINE_WIDTH_IN = 6.0  # width of the picture of the machine
QUOTIENT_DOTS = 60  # finite differences drawn per joint
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
TORQUE_COLOUR, RATE_COLOUR, DOT_COLOUR = "#1f4e79", "#c0392b", "#2b2b2b"


def draw_demo(robot: Robot, recording: DemoRecording, path: str | os.PathLike, source: str, demo: RobotDemo) -> None:
    """Write a picture of torques and torque rates, and of the machine, to `path`, in the format of its suffix.

    source: origin of the recording, for the title

    Raises RneaError if matplotlib is not installed.
    """
    joints = range(min(robot.n, MAX_ROWS))
    size = np.array([11.0, 1.1 + 1.45 * len(joints)])
    if demo.picture_times:
        size = np.maximum(size + [MACHINE_WIDTH_IN, 0.0], [0.0, MACHINE_WIDTH_IN])
    with picture(path, tuple(size), dpi=150, settings=STYLE) as figure:
        curves = figure
        if demo.picture_times:
            left, curves = figure.subfigures(1, 2, width_ratios=(MACHINE_WIDTH_IN, size[0] - MACHINE_WIDTH_IN))
            _draw_machine(left.add_subplot(projection="3d"), robot, recording, demo)
        axes = curves.subplots(len(joints), 2, sharex=True, squeeze=False)
        for row, joint in zip(axes, joints):
            _draw_joint(row, robot, recording, joint)
        _label(curves, axes, recording)
        figure.legend(*axes[0, 1].get_legend_handles_labels(), loc="outside lower right", ncol=2, frameon=False,
                      fontsize=9)
        more = "" if robot.n <= MAX_ROWS else f", the first {MAX_ROWS} of {robot.n} joints"
        figure.suptitle(f"{robot.name}{more}: {source}", fontsize=11, x=0.01, ha="left")


def _draw_machine(axis, robot: Robot, recording: DemoRecording, demo: RobotDemo) -> None:
    """Draw the machine at the picture times of the demo: the last pose opaque, the others transparent."""
    drawn = urdf_shapes(share_file(demo.urdf).read_text(encoding="utf-8"))
    samples = np.searchsorted(recording.seconds, demo.picture_times).clip(max=len(recording.q) - 1)
    base: dict[str, Any] = {"base": BaseState()} if robot.has_moving_base else {}
    draw_machine(axis, drawn, [partial(robot.link_pose, q=q, **base) for q in recording.q[samples]])
    axis.view_init(*demo.view)


def _draw_joint(row, robot: Robot, recording: DemoRecording, joint: int) -> None:
    t, prismatic = recording.seconds, robot.joint_types[joint] == "prismatic"
    unit = "N" if prismatic else "N m"
    inner, quotients = difference_quotients(recording)
    dots = slice(None, None, max(1, len(inner) // QUOTIENT_DOTS))
    torque, rate = row
    torque.plot(t, recording.tau[:, joint], color=TORQUE_COLOUR, linewidth=1.6)
    rate.plot(t, _rate_with_gaps(recording, joint), color=RATE_COLOUR, linewidth=1.6, label="exact, from the model")
    rate.plot(t[inner[dots]], quotients[dots, joint], ".", color=DOT_COLOUR, markersize=3.5, zorder=3,
              label="finite differences of the torque")
    torque.set_ylabel(f"{robot.joint_names[joint]}\n[{unit}]")
    rate.set_ylabel(f"[{unit}/s]")
    for axis in row:
        axis.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        axis.margins(x=0.01, y=0.12)
        axis.grid(axis="x", color="0.92")


def _rate_with_gaps(recording: DemoRecording, joint: int) -> np.ndarray:
    """Return the torque rate with NaN at each jump of the jerk, so that no line is drawn across the jump."""
    rate = recording.tau_rate[:, joint].copy()
    rate[1:][_jerk_jumps(recording)[:, joint]] = np.nan
    return rate


def _jerk_jumps(recording: DemoRecording) -> np.ndarray:
    return np.asarray(np.abs(np.diff(recording.qddd, axis=0)) > 0.25 * np.ptp(recording.qddd, axis=0))


def _label(figure, axes, recording: DemoRecording) -> None:
    jumps = ", discontinuous with the jerk of the motion" if _jerk_jumps(recording).any() else ""
    axes[0, 0].set_title("torque (force of prismatic joints)", loc="left", fontsize=10, color=TORQUE_COLOUR)
    axes[0, 1].set_title(f"torque rate{jumps}", loc="left", fontsize=10, color=RATE_COLOUR)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.align_ylabels(axes)


MOTOR_DOTS = 80  # torques of MuJoCo drawn per motor
CONTACT_COLOUR = "#f0e6d2"


class MotorGroup(NamedTuple):
    """Group of motors in one panel, by index, and the link whose contact force is drawn next to it."""

    title: str
    motors: Sequence[int]
    link: str


def draw_plant(groups: Sequence[MotorGroup], robot: Robot, recording: DemoRecording, topics: Topics | None,
               path: str | os.PathLike[str], source: str) -> None:
    """Write a picture of motor torques and contact forces in MuJoCo to `path`, in the format of its suffix.

    source: origin of the recording, for the title

    Raises RneaError if matplotlib is not installed.
    """
    assert topics is not None
    links = [group.link for group in groups]
    recording, (states, *wrenches) = pair_by_stamp(recording, topics["states"], *(topics[link] for link in links))
    true, t = motor_torques(states, robot.n), recording.seconds
    dots = slice(None, None, max(1, len(t) // MOTOR_DOTS))
    with picture(path, (12.0, 1.2 + 2.0 * len(groups)), dpi=130, settings=STYLE) as figure:
        axes = figure.subplots(len(groups), 2, sharex=True, squeeze=False, width_ratios=(1.7, 1.0))
        for group, wrench, (torque, force) in zip(groups, wrenches, axes):
            for colour, motor in zip(color_scale(len(group.motors)), group.motors):
                torque.plot(t, recording.tau[:, motor], color=colour, linewidth=1.3, label=robot.joint_names[motor])
                torque.plot(t[dots], true[dots, motor], ".", color="black", markersize=3.5)
            for colour, axis, values in zip(color_scale(3), "xyz", wrench[:, :3].T):
                force.plot(t, values, color=colour, linewidth=1.1, label=axis)
            touched = np.abs(wrench[:, :3]).max(axis=1) > 0.0
            for panel in (torque, force):
                panel.fill_between(t, 0, 1, where=touched, color=CONTACT_COLOUR, transform=panel.get_xaxis_transform(),
                                   zorder=0, linewidth=0.0)
                panel.margins(x=0.01)
            torque.set_ylabel(f"{group.title}\n[N m]")
            torque.legend(frameon=False, fontsize=7, loc="upper left", ncol=len(group.motors))
            force.set_ylabel("[N]")
            force.legend(frameon=False, fontsize=7, loc="upper left", ncol=3)
        axes[0, 0].set_title("torques; dots: MuJoCo's motors", loc="left", fontsize=10)
        axes[0, 1].set_title("force on the link, in its frame; shaded: contact", loc="left", fontsize=10)
        for panel in axes[-1]:
            panel.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name} in MuJoCo: {source}", fontsize=11, x=0.01, ha="left")


# ---------------------------------------------------------------------- arms in MuJoCo that track motions


LINE_COLOUR, LIMIT_COLOUR, LOST_COLOUR = "0.75", "#444444", "#b00020"
PANEL_PX = (240, 250)  # width and height of a motion in the movie
FRAME_RATE = 12  # frames per second
TRAIL_STEP = 25  # samples between two points of a trail
CENTRE_SHARES = (0.5, 0.5, 0.9)  # centre of the picture, as shares of the coordinates of the middle of the tool path


class ShownMotion(NamedTuple):
    """Tracked motion with its name and colour ("#rrggbb")."""

    name: str
    colour: str
    tracked: TrackingResult


def rate_shares(arm: Arm, tracked: TrackingResult) -> np.ndarray:
    """Return the commanded torque rates (samples - 1, n) divided by their limits."""
    return np.diff(tracked.commanded, axis=0) / CONTROL_PERIOD_S / arm.robot.limits.effort_rate


def plane_projection(line: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return a function that projects points (count, 3) to (2, count) in the plane of largest extent of a line (count, 3)."""
    middle = line.mean(axis=0)
    axes = np.linalg.svd(line - middle, full_matrices=False)[2][:2]
    return lambda points: ((points - middle) @ axes.T).T


def draw_tool_path(axis: Any, arm: Arm, line: np.ndarray, shown: ShownMotion, off: str) -> None:
    """Draw the tool path of a motion over the intended line (count, 3). off: text with the distance between both."""
    project, tracked = plane_projection(line), shown.tracked
    axis.plot(*project(line), color=LINE_COLOUR, linewidth=7.0, solid_capstyle="round")
    tool_path = project(arm.tool_at(tracked.q[tracked.t >= 0.0]))
    axis.plot(*tool_path, color=shown.colour, linewidth=2.0)
    axis.plot(*tool_path[:, :1], "o", color="black", markersize=6)
    axis.plot(*tool_path[:, -1:], "X" if tracked.lost else "s", color=LOST_COLOUR if tracked.lost else "black",
              markersize=11 if tracked.lost else 6, markeredgecolor="white")
    axis.set_title(shown.name, loc="left", color=shown.colour, fontsize=12, fontweight="bold")
    axis.set_aspect("equal", adjustable="datalim")
    axis.text(0.02, 0.02, f"lost after {tracked.t[-1]:.2f} s" if tracked.lost else off, transform=axis.transAxes, fontsize=11,
              color=LOST_COLOUR if tracked.lost else shown.colour)
    axis.set(xticks=[], yticks=[])
    axis.spines[:].set_visible(False)


def draw_rates(axis: Any, arm: Arm, shown: ShownMotion, most: float) -> None:
    """Draw the largest commanded torque rate, relative to its limit, over all joints. most: largest value shown."""
    rate, tracked = rate_shares(arm, shown.tracked), shown.tracked
    worst = np.take_along_axis(rate, np.abs(rate).argmax(axis=1)[:, None], axis=1)[:, 0]
    axis.axhspan(-1.0, 1.0, color="0.93", linewidth=0.0)
    axis.plot(tracked.t[1:], np.clip(worst, -most, most), color=shown.colour, linewidth=0.9)
    for end in (-1.0, 1.0):
        axis.axhline(end, color=LIMIT_COLOUR, linewidth=1.2, linestyle="--")
    axis.set(ylim=(-1.05 * most, 1.05 * most), xlabel="time [s]")


class MovieOptions(NamedTuple):
    """Options of a movie.

    slow_motion : duration of the movie over that of the motion
    end_pause   : additional duration of the last frame [s]
    view        : azimuth, elevation [deg], distance [m] of the camera
    trail       : duration of the drawn tool path before the current time [s]
    """

    slow_motion: float
    end_pause: float
    view: tuple[float, float, float]
    trail: float = np.inf


def write_movie(arm: Arm, line: np.ndarray, motions: Sequence[ShownMotion], caption: Callable[[int, float], tuple[str, bool]],
                path: str | Path, options: MovieOptions) -> None:
    """Write a GIF of motions side by side with their tool paths, over the intended line (count, 3).

    line    : (count, 3) intended path of the tool [m]
    caption : function of (index of the motion, time [s]) -> text, and whether it reports a violation

    Raises RneaError if matplotlib is not installed or MuJoCo cannot render.
    """
    centre = 0.5 * (line.min(axis=0) + line.max(axis=0)) * CENTRE_SHARES
    render = Renderer(arm.shapes, arm.robot.joint_names, arm.meshes, PANEL_PX, options.view, centre)
    last = max(shown.tracked.t[-1] for shown in motions)
    times = np.arange(0.0, options.slow_motion * last + options.end_pause, 1.0 / FRAME_RATE) / options.slow_motion

    def panel(shown: ShownMotion, t: float) -> np.ndarray:
        tracked = shown.tracked
        now = min(int(np.searchsorted(tracked.t, t)), len(tracked.t) - 1)
        begun = int(np.searchsorted(tracked.t, max(0.0, tracked.t[now] - options.trail)))
        trail = arm.tool_at(tracked.q[np.unique([*range(begun, now, TRAIL_STEP), now])])
        rgb = tuple(int(shown.colour[k:k + 2], 16) / 255.0 for k in (1, 3, 5))
        lines = [Polyline(line, (0.6, 0.6, 0.6), 0.006), Polyline(trail, rgb, 0.009)]
        return render(tracked.q[now], lines, tracked.lost and t >= tracked.t[-1])

    def frame(axes: Any, k: int) -> None:
        axes.imshow(np.hstack([panel(shown, times[k]) for shown in motions]))
        axes.set_axis_off()
        for number, shown in enumerate(motions):
            left, (text, violates) = PANEL_PX[0] * (number + 0.04), caption(number, times[k])
            if shown.tracked.lost and times[k] >= shown.tracked.t[-1]:
                text, violates = f"lost after {shown.tracked.t[-1]:.2f} s", True
            axes.text(left, 2.0, shown.name, color=shown.colour, fontsize=10, fontweight="bold", va="top")
            axes.text(left, PANEL_PX[1] - 2.0, text, color=LOST_COLOUR if violates else "0.3", fontsize=9, va="bottom")

    movie(path, (len(motions) * PANEL_PX[0] / 100.0, PANEL_PX[1] / 100.0), frame, len(times), FRAME_RATE)
