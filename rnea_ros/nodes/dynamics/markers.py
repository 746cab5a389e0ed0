"""Effort and effort rate as RViz markers, for every kind of joint and every axis: RViz's Effort display is right for +z alone.

Length shows |effort| / limit: an arc about the axis of a rotary joint, full circle at the limit; an arrow along the axis of a
prismatic one. The head shows the sign: it points the way in which the effort pushes the child link. Colour shows, from green
to red, the largest share that is used of the limits of effort rate and of the joint's drive. Where a limit is unknown the
mark is grey or half as long.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration, Time
from geometry_msgs.msg import Point
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import Marker, MarkerArray

from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.messages import DynamicsMessages

_STEPS = 48  # of a full circle
_HEAD = 4  # steps that an arc's head is long, where the arc is that long
_THICK = 0.2  # share of the size that a head is thick
_LIFETIME = Duration(nanosec=500_000_000)  # a stopped node leaves no marks behind
_GREY = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.9)


class _Mark(NamedTuple):
    """One joint's: paths from no effort to the limit, the way that a positive and that a negative effort pushes."""

    number: int
    line: Marker | None  # a rotary joint's arc
    arrow: Marker  # its head; of a prismatic joint all there is
    forward: list[Point]
    backward: list[Point]


class Markers:
    """Marks of each joint, in the frame of its child link."""

    def __init__(self, robot: RobotFacts, size: float):
        self._marks: list[_Mark] = []
        self._head = _THICK * size
        numbers = {name: k for k, name in enumerate(robot.joint_names)}
        for link in robot.model.links:
            if link.joint in numbers and link.name in robot.model.frames:  # links within a planar joint have no frame in TF
                k = numbers[link.joint]
                axis = robot.model.frames[link.name].R[2]  # z of the MDH frame in the URDF's
                prismatic = robot.joint_types[k] == "prismatic"
                line = None if prismatic else _marker(link.name, Marker.LINE_STRIP, k, size)
                arrow = _marker(link.name, Marker.ARROW, k if prismatic else k + robot.n, size)
                paths = [_path(sign * axis, size) if prismatic else _arc(axis, sign, size) for sign in (1.0, -1.0)]
                self._marks.append(_Mark(k, line, arrow, *paths))
        self.message = MarkerArray(markers=[part for mark in self._marks for part in (mark.line, mark.arrow) if part])

    def fill(self, stamp: Time, shown: DynamicsMessages) -> None:
        efforts, largest = shown.effort.effort, shown.largest_use()
        for k, line, arrow, forward, backward in self._marks:
            effort, use, heat = efforts[k], shown.utilization[k], largest[k]
            path = backward if effort < 0.0 else forward
            share = min(use, 1.0) if use == use else 0.5
            end = max(1, round(share * _STEPS))
            neck = max(0, end - _HEAD) if line else 0
            arrow.points = [path[neck], path[end]]
            arrow.action = Marker.ADD if effort else Marker.DELETE  # no effort has no sign
            if line:
                line.points = path[:max(neck, 1) + 1]
                arrow.scale.y = self._head * (end - neck) / _HEAD  # a small head is as slim as a large one
            for part in (line, arrow):
                if part:
                    part.color = _heat(heat) if heat == heat else _GREY
                    part.header.stamp = stamp


def _marker(frame: str, kind: int, number: int, size: float) -> Marker:
    mark = Marker(ns="effort", id=number, type=kind, action=Marker.ADD, lifetime=_LIFETIME, frame_locked=True)
    mark.header.frame_id = frame
    mark.pose.orientation.w = 1.0
    mark.scale.x = 0.06 * size  # of the line or the shaft
    if kind == Marker.ARROW:
        mark.scale.y, mark.scale.z = _THICK * size, 0.3 * size  # of the head: RViz makes it no longer than the arrow
    return mark


def _path(axis: np.ndarray, size: float) -> list[Point]:
    """Along the axis."""
    return _points(size * np.linspace(0.0, 1.0, _STEPS + 1)[:, None] * axis)


def _arc(axis: np.ndarray, sign: float, size: float) -> list[Point]:
    """Around the axis, counterclockwise seen from its tip for a positive sign."""
    x = np.cross(axis, np.eye(3)[np.argmin(np.abs(axis))])
    x /= np.linalg.norm(x)
    turns = sign * np.linspace(0.0, 2.0 * math.pi, _STEPS + 1)[:, None]
    return _points(0.5 * size * (np.cos(turns) * x + np.sin(turns) * np.cross(axis, x)))


def _points(places: np.ndarray) -> list[Point]:
    return [Point(x=float(p[0]), y=float(p[1]), z=float(p[2])) for p in places]


def _heat(use: float) -> ColorRGBA:
    """Green at rest, yellow at half the limit, red at the limit."""
    share = min(float(use), 1.0)
    return ColorRGBA(r=min(2.0 * share, 1.0), g=min(2.0 - 2.0 * share, 1.0), b=0.0, a=0.9)
