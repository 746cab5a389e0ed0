"""Markers: all that RViz is shown of one model, in namespaces that it can switch off.

    effort, effort_value, limit                     at each joint: marks/efforts.py
    center_of_mass, base_wrench, zero_moment_point  of the whole robot: marks/body.py
    external_wrench                                 what acts on links, as measured or as estimated: marks/arrows.py
    cut_joint, constraint, legend                   marks/loops.py, marks/legend.py
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from builtin_interfaces.msg import Duration, Time
from visualization_msgs.msg import Marker, MarkerArray

from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.marks.arrows import WrenchMark
from rnea_ros.nodes.dynamics.marks.body import Body, BodyMarks
from rnea_ros.nodes.dynamics.marks.efforts import EffortMarks
from rnea_ros.nodes.dynamics.marks.legend import Legend
from rnea_ros.nodes.dynamics.marks.loops import ConstraintMarks, cut_marks
from rnea_ros.nodes.dynamics.marks.shapes import VERMILLION
from rnea_ros.nodes.dynamics.marks.sizes import MOST, reach
from rnea_ros.nodes.dynamics.messages import DynamicsMessages
from rnea_ros.robots.solution import ConstraintWrench

KEPT = Duration(sec=3)  # of what is sent now and then


class Markers:
    """Marks of one model, filled in place. `changing` are to be sent each time, `whole` and `staying` now and then."""

    def __init__(self, robot: RobotFacts, size: float = 0.0, cuts: tuple[Cut, ...] = ()):
        """size: of each joint's mark [m]; 0: as long as its links are. cuts: joints that close loops."""
        far = reach(robot.model)
        self._long = size or MOST * far
        weight = robot.total_mass * float(np.linalg.norm(robot.gravity_vector)) or 1.0
        self._one = weight, weight * far
        self._efforts, self._body = EffortMarks(robot, size), BodyMarks(robot, self._long, self._one)
        self._legend = Legend(robot, far)
        self._wrenches: dict[str, WrenchMark] = {}
        self._constraints = ConstraintMarks(self._long, self._one)
        self.staying = [*self._efforts.rings, *cut_marks(cuts, robot.model, self._long), self._legend.mark]
        for mark in self.staying:
            mark.lifetime = KEPT

    @property
    def changing(self) -> list[Marker]:
        loads = (mark for one in self._wrenches.values() for mark in one.marks)
        return [*self._efforts.marks, *self._efforts.values, *loads, *self._constraints.marks]

    @property
    def whole(self) -> list[Marker]:
        return self._body.marks

    def fill(self, shown: DynamicsMessages, wrenches: Mapping[str, np.ndarray],
             constraints: Mapping[str, ConstraintWrench] | None = None) -> None:
        """wrenches: (6,) by link, along the link's axes; constraints: those of loops, contacts and wheels by name."""
        self._efforts.fill(shown)
        self._constraints.fill(constraints or {})
        for link, six in wrenches.items():
            if link not in self._wrenches:
                self._wrenches[link] = WrenchMark("external_wrench", len(self._wrenches), link, self._long, self._one,
                                                  VERMILLION)
            self._wrenches[link].fill(six)

    def fill_whole(self, body: Body) -> None:
        self._body.fill(body)

    def fill_staying(self, shown: DynamicsMessages) -> None:
        self._legend.fill(shown)


def message(marks: list[Marker], stamp: Time) -> MarkerArray:
    for mark in marks:
        mark.header.stamp = stamp
    return MarkerArray(markers=marks)
