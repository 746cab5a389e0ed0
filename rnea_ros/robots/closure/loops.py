"""The section `loops` of a robot file in numbers of the model: cut joints, active coordinates, a pose to start from.

    version: 1
    loops:
      active: [left_motor, right_motor]            # the joints with motors
      cut_joints:
        tip:                                       # one entry for each, by any name
          type: revolute                           # or another type of algorithms/closed_loops.py
          first: {link: left_forearm, xyz: [0.5, 0, 0], rpy: [0, 0, 0]}     # xyz [m] and rpy [rad] default to zero
          second: {link: right_forearm, xyz: [0.55, 0, 0]}
      start: {left_motor: 1.9, left_elbow: -1.0}   # rad or m; near a pose in which the loops are closed. Default: zero

The two frames meet when the loop is closed (Khalil's R_k and R_k+B). z is the axis of the joint. A cut joint has no friction
and no motor: cut the loops where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...algebra.vectors import rpy
from ...algorithms.closed_loops import HELD, Cut
from ...model.robot_file import robot_file
from ...model.robot_file.robot_file import Source
from ...model.robot_file.schema import MJCF
from ...model.tree import Frame, Model, frozen
from .platform import Platform


class Loops(NamedTuple):
    """A declaration in numbers of the model: cut joints, active coordinates, joint variables (n,) to start from, platforms."""

    cuts: tuple[Cut, ...]
    active: tuple[int, ...]
    start: np.ndarray
    where: str
    platforms: tuple[Platform, ...] = ()

    @property
    def charts(self) -> tuple[int, ...]:
        """Joints that stand still wherever they are."""
        return tuple(platform.chart for platform in self.platforms)

    @property
    def virtual(self) -> tuple[int, ...]:
        """Joints that hold platforms, which the robot does not have."""
        return tuple(k for platform in self.platforms for k in (*platform.joints, platform.chart))

    def rows(self) -> Iterator[tuple[str, slice]]:
        """Name of every cut joint, and its rows among the loop equations."""
        begin = 0
        for cut in self.cuts:
            yield cut.name, slice(begin, begin := begin + len(HELD[cut.type]))

    def hidden(self, model: Model) -> set[str]:
        """Links between the joints that hold platforms, which the robot does not have."""
        numbers = {number for number, link in enumerate(model.links) if link.coordinate in self.virtual}
        numbers -= {model.frame(platform.link).link for platform in self.platforms}
        return {name for name, frame in model.frames.items() if frame.link in numbers}

    @property
    def lengths(self) -> np.ndarray:
        """Mask of the loop equations that are lengths; the others are angles."""
        return np.array([held < 3 for cut in self.cuts for held in HELD[cut.type]])

    def worst(self, values: np.ndarray, units: np.ndarray) -> tuple[str, float, str]:
        """Return the largest violation of the loop equations, compared in units: its cut joint, its size, "m" or "rad"."""
        k = int(np.abs(values / units).argmax())
        name = next(name for name, rows in self.rows() if rows.start <= k < rows.stop)
        return name, abs(float(values[k])), "m" if self.lengths[k] else "rad"


def read(source: Source, reader: str, model: Model, platforms: Iterable[str] = ()) -> Loops:
    """Loops of a model from the path of a robot file or from what is in it; ModelError lists everything that is wrong.

    reader    : the class that asks, for messages
    platforms : names of links
    """
    file = robot_file.draft(source).alone(reader, ("loops",), ("loops",))
    declared, frames = file.checked(model).section("loops"), model.frames
    cuts = tuple(Cut(name, MJCF.get(cut["type"], cut["type"]), *(_frame(cut[end], frames) for end in ("first", "second")))
                 for name, cut in declared["cut_joints"].items())
    start = np.zeros(model.n)
    for name, value in declared.get("start", {}).items():
        start[model.joint_names.index(name)] = value
    return Loops(cuts, tuple(map(model.joint_names.index, declared["active"])), frozen(start), file.where,
                 tuple(Platform.of(model, link) for link in platforms))


def _frame(given: Any, frames: Mapping[str, Frame]) -> Frame:
    """{link, xyz, rpy}, or the name of a link alone, in the model's frames."""
    entry = {"link": given} if isinstance(given, str) else given
    link = frames[entry["link"]]
    return Frame(link.link, link.R @ rpy(*entry.get("rpy", (0.0, 0.0, 0.0))), link.P + link.R @ entry.get("xyz", np.zeros(3)))
