"""Shapes that marks are made of: arcs about an axis, arrows along one, text; points and colours of RViz."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker

STEPS = 48  # of a full circle
LIFETIME = Duration(nanosec=500_000_000)  # a stopped node leaves no marks behind
GREY, WHITE = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.9), ColorRGBA(r=1.0, g=1.0, b=1.0, a=1.0)
FAINT = ColorRGBA(r=0.7, g=0.7, b=0.7, a=0.35)
# Okabe and Ito: the colour-blind see them
SKY, YELLOW, VERMILLION, GREEN = (0.34, 0.71, 0.91), (0.94, 0.89, 0.26), (0.84, 0.37, 0.0), (0.0, 0.62, 0.45)
ENDS = np.array((SKY, YELLOW, VERMILLION))


def marker(namespace: str, number: int, kind: int, frame: str, width: float, colour: ColorRGBA = GREY) -> Marker:
    """width: of a line, of an arrow's shaft, of a sphere [m]."""
    made = Marker(ns=namespace, id=number, type=kind, action=Marker.ADD, lifetime=LIFETIME, frame_locked=True, color=colour)
    made.header.frame_id = frame
    made.pose.orientation.w = 1.0
    made.scale.x = made.scale.y = made.scale.z = float(width)
    if kind == Marker.ARROW:
        made.scale.y, made.scale.z = 3.3 * width, 5.0 * width  # of the head: RViz makes it no longer than the arrow
    return made


def colour(shade: Sequence[float], a: float = 0.95) -> ColorRGBA:
    r, g, b = map(float, shade)
    return ColorRGBA(r=r, g=g, b=b, a=a)


def heat(use: float) -> ColorRGBA:
    """Sky blue at rest, yellow at half of the limit, vermillion at the limit; grey where that is not known."""
    if use != use:
        return GREY
    return colour([np.interp(use, (0.0, 0.5, 1.0), end) for end in ENDS.T])


def points(places: np.ndarray) -> list[Point]:
    """places (count, 3) [m]."""
    return [Point(x=x, y=y, z=z) for x, y, z in np.asarray(places, dtype=float).tolist()]


def along(axis: np.ndarray, length: float) -> list[Point]:
    """STEPS + 1 points."""
    return points(length * np.linspace(0.0, 1.0, STEPS + 1)[:, None] * axis)


def around(axis: np.ndarray, sign: float, radius: float) -> list[Point]:
    """STEPS + 1 points of a circle about the axis, counterclockwise seen from its tip for a positive sign."""
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    turns = sign * np.linspace(0.0, 2.0 * math.pi, STEPS + 1)[:, None]
    return points(radius * (np.cos(turns) * x + np.sin(turns) * np.cross(axis, x)))
