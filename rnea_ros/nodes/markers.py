"""Effort and effort rate as RViz markers, for what its Effort display cannot draw: continuous and prismatic joints, and rates.

Length shows |effort| / limit: an arc about the axis of a rotary joint, full circle at the limit; an arrow along the axis of a
prismatic one. Colour shows |effort rate| / limit from green to red. Where a limit is unknown the mark is grey or half as long.
"""

from __future__ import annotations

import math

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rnea_ros import Robot
from rnea_ros.nodes.messages import Outgoing

_STEPS = 48  # of a full circle
_LIFETIME = Duration(nanosec=500_000_000)  # a stopped node leaves no marks behind
_GREY = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.9)


class Markers:
    """One marker for each joint, in the frame of its child link."""

    def __init__(self, robot: Robot, size: float):
        self._marks: list[tuple[int, Marker, list[Point], list[Point]]] = []  # points for positive and for negative effort
        numbers = {name: k for k, name in enumerate(robot.joint_names)}
        for link in robot.model.links:
            if link.joint in numbers and link.name in robot.model.frames:  # links within a planar joint have no frame in TF
                k = numbers[link.joint]
                kind, axis = robot.joint_types[k], robot.model.frames[link.name].R[2]  # z of the MDH frame in the URDF's
                self._marks.append((k, _mark(link.name, kind, k, size), _path(axis, kind, size), _path(-axis, kind, size)))
        self.message = MarkerArray(markers=[mark for _, mark, _, _ in self._marks])

    def fill(self, stamp: Time, shown: Outgoing) -> None:
        efforts = shown.effort.effort
        for k, mark, forward, backward in self._marks:
            use, rate_use = shown.utilization[k], shown.rate_utilization[k]
            path = backward if efforts[k] < 0.0 else forward
            share = min(use, 1.0) if use == use else 0.5
            end = 1 + max(1, round(share * (len(path) - 1)))
            mark.points = [path[0], path[end - 1]] if mark.type == Marker.ARROW else path[:end]
            mark.color = _heat(rate_use) if rate_use == rate_use else _GREY
            mark.header.stamp = stamp


def _mark(frame: str, kind: str, number: int, size: float) -> Marker:
    mark = Marker(ns="effort", id=number, action=Marker.ADD, lifetime=_LIFETIME, frame_locked=True)
    mark.type = Marker.ARROW if kind == "prismatic" else Marker.LINE_STRIP
    mark.header.frame_id = frame
    mark.pose.orientation.w = 1.0
    mark.scale.x = 0.06 * size
    if kind == "prismatic":
        mark.scale.y, mark.scale.z = 0.15 * size, 0.2 * size
    return mark


def _path(axis: np.ndarray, kind: str, size: float) -> list[Point]:
    """Points from no effort to the limit: along the axis, or around it."""
    shares = np.linspace(0.0, 1.0, _STEPS + 1)
    if kind == "prismatic":
        points = size * shares[:, None] * axis
    else:
        x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
        x /= np.linalg.norm(x)
        turns = 2.0 * math.pi * shares[:, None]
        points = 0.5 * size * (np.cos(turns) * x + np.sin(turns) * np.cross(axis, x))
    return [Point(x=float(p[0]), y=float(p[1]), z=float(p[2])) for p in points]


def _heat(use: float) -> ColorRGBA:
    """Green at rest, yellow at half the limit, red at the limit."""
    share = min(float(use), 1.0)
    return ColorRGBA(r=min(2.0 * share, 1.0), g=min(2.0 - 2.0 * share, 1.0), b=0.0, a=0.9)
