"""What closes a tree into loops, declared beside its URDF: cut joints, active joints and, if need be, a pose to start from.

    active: [left_motor, right_motor]            # the joints with motors
    loops:
      tip:                                       # one entry for each cut joint
        type: revolute                           # or another type of the table below
        first: {link: left_forearm, xyz: [0.5, 0, 0], rpy: [0, 0, 0]}     # xyz [m] and rpy [rad] default to zero
        second: {link: right_forearm, xyz: [0.55, 0, 0]}
    start: {left_motor: 1.9, left_elbow: -1.0}   # rad or m; near a pose in which the loops are closed. Default: zero

The two frames meet when the loop is closed (Khalil's R_k and R_k+B). z is the axis of the joint. Types: fixed (MJCF: weld),
revolute, prismatic, cylindrical, planar, spherical (MJCF: connect), point_on_axis; see algorithms/closed_loops.py. A cut joint
has no friction and no motor of its own: cut the loops where there is none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...algebra.vectors import rpy
from ...algorithms.closed_loops import HELD, Cut
from ...errors import ModelError, shown, some
from ...model import yaml_file
from ...model.tree import Frame, Model, frozen
from ...model.yaml_file import number

MJCF = {"weld": "fixed", "connect": "spherical"}
KEYS = ("active", "loops", "start")
CUT_KEYS = ("type", "first", "second")
FRAME_KEYS = ("link", "xyz", "rpy")


class Loops(NamedTuple):
    """A declaration in numbers of the model: cut joints, active coordinates, joint variables (n,) to start from."""

    cuts: tuple[Cut, ...]
    active: tuple[int, ...]
    start: np.ndarray
    where: str

    def rows(self) -> Iterator[tuple[str, slice]]:
        """Name of every cut joint, and its rows among the loop equations."""
        begin = 0
        for cut in self.cuts:
            yield cut.name, slice(begin, begin := begin + len(HELD[cut.type]))

    @property
    def lengths(self) -> np.ndarray:
        """Which of the loop equations are lengths; the others are angles."""
        return np.array([held < 3 for cut in self.cuts for held in HELD[cut.type]])

    def worst(self, values: np.ndarray, units: np.ndarray) -> tuple[str, float, str]:
        """Of values of the loop equations, compared in units: the cut joint of the worst, its size, "m" or "rad"."""
        k = int(np.abs(values / units).argmax())
        name = next(name for name, rows in self.rows() if rows.start <= k < rows.stop)
        return name, abs(float(values[k])), "m" if self.lengths[k] else "rad"


def read(source: str | os.PathLike | Mapping, model: Model, others: Mapping[str, Frame] | None = None) -> Loops:
    """Loops of a model from the path of a YAML file or from the mapping in it; ModelError tells everything that is wrong.

    others : frames that a cut joint may connect beside those of the model's links
    """
    frames, joint_names = {**model.frames, **(others or {})}, model.joint_names
    followers = {link.joint: joint_names[link.coordinate] for link in model.links
                 if link.joint and link.joint not in joint_names}
    where, given = _load(source)
    problems = _unknown(given, KEYS, "")
    cuts = _cuts(given.get("loops"), frames, problems)
    active = _active(given.get("active"), joint_names, followers, problems)
    start = _start(given.get("start"), joint_names, problems)
    if problems:
        raise ModelError(problems, where)
    return Loops(tuple(cuts), active, frozen(start), where)


def _load(source: Any) -> tuple[str, Mapping]:
    if isinstance(source, Mapping):
        return "loops", source
    where, given = str(source), yaml_file.content(source, "a mapping or the path of a YAML file is needed")
    if not isinstance(given, Mapping):
        raise ModelError(f"holds {type(given).__name__}; a mapping with the keys {', '.join(KEYS)} is needed", where)
    return where, given


def _unknown(given: Mapping, allowed: Sequence[str], inside: str) -> list[str]:
    return [f"{inside}'{key}' is not known; allowed are {', '.join(allowed)}" for key in given if key not in allowed]


def _cuts(given: Any, frames: Mapping[str, Frame], problems: list[str]) -> list[Cut]:
    if not isinstance(given, Mapping) or not given:
        problems.append("'loops' names no cut joint; a mapping {name: {type, first, second}} is needed")
        return []
    cuts = []
    for name, cut in given.items():
        inside = f"loop '{name}': "
        if not isinstance(cut, Mapping):
            problems.append(f"{inside}is {cut!r:.60}; a mapping with {', '.join(CUT_KEYS)} is needed")
            continue
        problems += _unknown(cut, CUT_KEYS, inside)
        joint_type = MJCF.get(str(cut.get("type")), str(cut.get("type")))
        if joint_type not in HELD:
            problems.append(f"{inside}type is {cut.get('type')!r}; allowed are {', '.join([*HELD, *MJCF])}")
        first, second = (_frame(cut.get(end), f"{inside}{end} ", frames, problems) for end in ("first", "second"))
        if first and second and first.link == second.link:
            problems.append(f"{inside}both frames are on the same rigid body; a cut joint connects two")
        cuts.append(Cut(str(name), joint_type, first, second))
    return cuts


def _frame(given: Any, inside: str, frames: Mapping[str, Frame], problems: list[str]) -> Frame | None:
    """A frame given as {link, xyz, rpy}, or as the name of a link alone, in the model's frames."""
    entry = {"link": given} if isinstance(given, str) else given
    if not isinstance(entry, Mapping) or "link" not in entry:
        problems.append(f"{inside}is {given!r:.60}; {{link: name, xyz: [m], rpy: [rad]}} is needed")
        return None
    problems += _unknown(entry, FRAME_KEYS, inside)
    xyz, angles = (_three(entry.get(key), f"{inside}{key}", problems) for key in ("xyz", "rpy"))
    if not isinstance(entry["link"], str) or entry["link"] not in frames:
        problems.append(f"{inside}link {shown(entry['link'], 60)} does not exist; the links are {some(frames)}")
        return None
    link = frames[entry["link"]]
    return Frame(link.link, link.R @ rpy(*angles), link.P + link.R @ xyz)


def _three(given: Any, what: str, problems: list[str]) -> np.ndarray:
    parts = [0.0] * 3 if given is None else given if isinstance(given, list | tuple | np.ndarray) else []
    numbers = np.array([number(part) for part in parts])
    if numbers.shape != (3,) or not np.isfinite(numbers).all():
        problems.append(f"{what} is {shown(given, 60)}; three finite numbers are needed")
        return np.zeros(3)
    return numbers


def _active(given: Any, joint_names: Sequence[str], followers: Mapping[str, str], problems: list[str]) -> tuple[int, ...]:
    names = [given] if isinstance(given, str) else [str(name) for name in given] if isinstance(given, Sequence) else []
    if not names:
        problems.append(f"'active' names no joint; which of {some(joint_names)} have motors?")
    if len(set(names)) < len(names):
        problems.append(f"'active' names a joint twice: {some(names)}")
    for name in names:
        if name in followers:
            problems.append(f"active joint '{name}' only follows '{followers[name]}' (mimic); name that one")
        elif name not in joint_names:
            problems.append(f"active joint '{name}' does not exist; the joints are {some(joint_names)}")
    return tuple(joint_names.index(name) for name in names if name in joint_names)


def _start(given: Any, joint_names: Sequence[str], problems: list[str]) -> np.ndarray:
    values = np.zeros(len(joint_names))
    if given is not None and not isinstance(given, Mapping):
        problems.append(f"'start' is {given!r:.60}; a mapping {{joint: rad or m}} is needed")
        return values
    for name, value in (given or {}).items():
        if name not in joint_names:
            problems.append(f"'start': joint '{name}' does not exist; the joints are {some(joint_names)}")
        elif not np.isfinite(number(value)):
            problems.append(f"'start': joint '{name}' is {shown(value, 60)}; a finite number is needed")
        else:
            values[joint_names.index(name)] = number(value)
    return values
