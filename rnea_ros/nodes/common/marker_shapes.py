"""Shapes, colours and sizes of RViz markers.

The size of a marker follows from the lengths and masses of the adjacent links, so that it is visible on a finger and on a
crane, and larger than the visual shapes of the links, which the model does not contain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

from rnea_ros.model import mdh
from rnea_ros.model.tree import Frame, Model

CIRCLE_STEPS = 48
LIFETIME = Duration(nanosec=500_000_000)  # markers of a stopped node disappear
GREY, WHITE = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.9), ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
FAINT = ColorRGBA(r=0.7, g=0.7, b=0.7, a=0.35)
# Okabe and Ito's palette for colour-blind readers
SKY, YELLOW, VERMILION, GREEN = (0.34, 0.71, 0.91), (0.94, 0.89, 0.26), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45)
HEAT = np.array((SKY, YELLOW, VERMILION))


def marker(namespace: str, number: int, kind: int, frame: str, width: float, colour: ColorRGBA = GREY) -> Marker:
    """Return a marker attached to a frame. width: width of a line or of the shaft of an arrow, diameter of a sphere [m]."""
    made = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD, lifetime=LIFETIME, frame_locked=True, color=colour)
    made.header.frame_id = frame
    made.pose.orientation.w = 1.0
    made.scale.x = made.scale.y = made.scale.z = float(width)
    if kind == Marker.ARROW:
        # diameter and length of the head; RViz limits the length to that of the arrow
        made.scale.y, made.scale.z = 3.3 * width, 5.0 * width
    return made


def set_position(made: Marker, position: Sequence[float] | np.ndarray) -> None:
    """Move a marker to a position (3,) in its frame [m]."""
    p = made.pose.position
    p.x, p.y, p.z = map(float, position)


def set_visible(made: Marker, visible: bool) -> None:
    """Show or delete a marker."""
    made.action = Marker.ADD if visible else Marker.DELETE


def colour(rgb: Sequence[float], a: float = 0.95) -> ColorRGBA:
    """Return a colour message from three numbers in [0, 1] and an opacity."""
    r, g, b = map(float, rgb)
    return ColorRGBA(r=r, g=g, b=b, a=a)


def heat(use: float) -> ColorRGBA:
    """Return the colour of a utilization: sky blue at 0, yellow at 0.5, vermilion at 1; grey for NaN."""
    if use != use:
        return GREY
    return colour([np.interp(use, (0.0, 0.5, 1.0), end) for end in HEAT.T])


def points(positions: np.ndarray) -> list[Point]:
    """Return point messages of positions (count, 3) [m]."""
    return [Point(x=x, y=y, z=z) for x, y, z in np.asarray(positions, dtype=float).tolist()]


def line_points(axis: np.ndarray, length: float) -> list[Point]:
    """Return CIRCLE_STEPS + 1 points of a straight line along an axis (3,) [m]."""
    return points(length * np.linspace(0.0, 1.0, CIRCLE_STEPS + 1)[:, None] * axis)


def circle_points(axis: np.ndarray, sign: float, radius: float) -> list[Point]:
    """Return CIRCLE_STEPS + 1 points of a circle about an axis (3,) [m], counterclockwise about it for a positive sign."""
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    angles = sign * np.linspace(0.0, 2.0 * math.pi, CIRCLE_STEPS + 1)[:, None]
    return points(radius * (np.cos(angles) * x + np.sin(angles) * np.cross(axis, x)))


# ---------------------------------------------------------------------- sizes of markers

LINK_SHARE = 0.9  # marker size over the length of the longer adjacent link
BULK_SHARE = 1.7  # marker size over the edge of a cube of the mass of the link
DENSITY = 2000.0  # mean density of motors, gears and hollow shells [kg/m^3]
MIN_SIZE, MAX_SIZE = 0.02, 0.2  # shares of the reach
DEFAULT_REACH = 0.2  # reach of a robot without link lengths [m]


def reach(model: Model) -> float:
    """Return the length of the longest chain of joint origins from the root link, all joints at zero [m]."""
    return float(_chain_lengths(model)[1].max()) or DEFAULT_REACH


def tip(model: Model) -> str:
    """Return the URDF link whose frame is at the end of the chain that `reach` measures."""
    origins, (_, chains) = _origins(model), _chain_lengths(model)
    return max(model.frames,
               key=lambda name: chains[(f := model.frames[name]).link] + np.linalg.norm(f.P - origins[f.link]))


def link_lengths(model: Model) -> np.ndarray:
    """Return the length of each link [m]: distance from its origin to the farthest frame on it.

    It is at least twice the distance to the centre of mass.
    """
    origins, (steps, _) = _origins(model), _chain_lengths(model)
    lengths = np.zeros(len(model.links))
    for j, link in enumerate(model.links):
        lengths[link.parent] = max(lengths[link.parent], steps[j])
        if link.m > 0.0:
            lengths[j] = max(lengths[j], 2.0 * np.linalg.norm(link.ms / link.m - origins[j]))
    for frame in model.frames.values():
        lengths[frame.link] = max(lengths[frame.link], np.linalg.norm(frame.P - origins[frame.link]))
    return lengths


def joint_marker_sizes(model: Model) -> np.ndarray:
    """Return the size of the marker of each link's joint [m]."""
    lengths, far = link_lengths(model), reach(model)
    beside = np.array([max(lengths[j], lengths[link.parent]) for j, link in enumerate(model.links)])
    bulk = np.cbrt([link.m / DENSITY for link in model.links])
    return np.clip(np.maximum(LINK_SHARE * beside, BULK_SHARE * bulk), MIN_SIZE * far, MAX_SIZE * far)


def _origins(model: Model) -> list[np.ndarray]:
    """Return the origin (3,) of the URDF frame of each link in its MDH frame, which may be anywhere along the axis [m]."""
    named: Mapping[str, Frame] = model.frames
    return [named[link.name].P if link.name in named else np.zeros(3) for link in model.links]


def _chain_lengths(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances from the origin of each link to that of its parent, and along the chain to the root [m]."""
    origins, steps, chains = _origins(model), np.zeros(len(model.links)), np.zeros(len(model.links))
    for j, link in enumerate(model.links[1:], 1):
        R, p = mdh.pose(link, 0.0)
        steps[j] = np.linalg.norm(p + R @ origins[j] - origins[link.parent])
        chains[j] = chains[link.parent] + steps[j]
    return steps, chains
