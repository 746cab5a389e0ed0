"""Effort and effort rate at each joint, for every kind of joint and every axis: RViz's Effort display is right for +z alone.

Length shows |effort| / limit: an arc about the axis of a rotary joint, full circle at the limit, beside a faint ring that is
the limit; an arrow along the axis of a prismatic one. The head shows the sign: it points the way in which the effort pushes
the child link. Colour shows the largest share that is used of the limits of effort rate and of the joint's drive; where none
is known, of the largest effort rate lately. Where the limit of the effort is unknown the mark is half as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import Point
from visualization_msgs.msg import Marker

from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.marks.shapes import FAINT, STEPS, WHITE, along, around, heat, marker
from rnea_ros.nodes.dynamics.marks.sizes import sizes
from rnea_ros.nodes.dynamics.messages import DynamicsMessages

HEAD = 4  # steps that an arc's head is long, where the arc is that long
SHAFT = 0.09  # share of the size that a line is thick
FADE = 0.999  # each time: what counts as the largest effort rate fades by half in 20 s


class _Mark(NamedTuple):
    """One joint's: paths from no effort to the limit, the way that a positive and that a negative effort pushes."""

    number: int
    line: Marker | None  # a rotary joint's arc
    arrow: Marker  # its head; of a prismatic joint all there is
    value: Marker
    forward: list[Point]
    backward: list[Point]

    def parts(self) -> list[Marker]:
        return [part for part in (self.line, self.arrow) if part]


class EffortMarks:
    """In the frame of each joint's child link.

    marks, values : what changes; rings: what stays
    """

    def __init__(self, robot: RobotFacts, size: float = 0.0):
        """size: of all marks [m]; 0: of each, as long as its links are."""
        self._joints: list[_Mark] = []
        self.rings: list[Marker] = []
        self._largest = np.zeros(robot.n)
        numbers = {name: k for k, name in enumerate(robot.joint_names)}
        for link, own in zip(robot.model.links, sizes(robot.model)):
            if link.joint in numbers and link.name in robot.model.frames:  # links within a planar joint have no frame in TF
                k = numbers[link.joint]
                axis = robot.model.frames[link.name].R[2]  # z of the MDH frame in the URDF's
                self._add(k, link.name, axis, size or float(own), robot.joint_types[k] == "prismatic")
        self.units = ["N" if kind == "prismatic" else "N m" for kind in robot.joint_types]
        self.marks = [part for mark in self._joints for part in mark.parts()]
        self.values = [mark.value for mark in self._joints]

    def _add(self, k: int, frame: str, axis: np.ndarray, size: float, prismatic: bool) -> None:
        line = None if prismatic else marker("effort", 2 * k, Marker.LINE_STRIP, frame, SHAFT * size)
        arrow = marker("effort", 2 * k + 1, Marker.ARROW, frame, SHAFT * size)
        value = marker("effort_value", k, Marker.TEXT_VIEW_FACING, frame, 0.25 * size, WHITE)
        forward, backward = (along(sign * axis, size) if prismatic else around(axis, sign, 0.5 * size) for sign in (1.0, -1.0))
        value.pose.position = along(axis, 0.6 * size)[-1]
        self._joints.append(_Mark(k, line, arrow, value, forward, backward))
        if not prismatic:
            self.rings.append(marker("limit", k, Marker.LINE_STRIP, frame, 0.15 * SHAFT * size, FAINT))
            self.rings[-1].points = forward

    def fill(self, shown: DynamicsMessages) -> None:
        efforts, rates, largest = shown.effort.effort, shown.rates, self._shares(shown)
        for mark in self._joints:
            k, line, arrow = mark[:3]
            use = shown.utilization[k]
            path = mark.backward if efforts[k] < 0.0 else mark.forward
            end = max(1, round((min(use, 1.0) if use == use else 0.5) * STEPS))
            neck = max(0, end - HEAD) if line else 0
            arrow.points = [path[neck], path[end]]
            arrow.action = Marker.ADD if efforts[k] else Marker.DELETE  # no effort has no sign
            if line:
                line.points = path[:max(neck, 1) + 1]
                arrow.scale.y = 3.3 * line.scale.x * (end - neck) / HEAD  # a small head is as slim as a large one
            for part in mark.parts():
                part.color = heat(largest[k])
            mark.value.text = f"{efforts[k]:.3g} {self.units[k]}\n{rates[k]:+.3g} {self.units[k]}/s"

    def _shares(self, shown: DynamicsMessages) -> np.ndarray:
        """(n,) what colours show; NaN where the rate has always been nothing."""
        sizes = np.abs(shown.rates)
        self._largest = np.maximum(FADE * self._largest, sizes)
        known = shown.largest_use()
        lately = np.divide(sizes, self._largest, out=np.full(len(sizes), np.nan), where=self._largest > 0.0)
        return np.where(np.isnan(known), lately, known)
