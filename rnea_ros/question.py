"""What may be asked of a robot from outside, by a service or a file: plain names and lists in, checked arrays out.

A request is a mapping. Its keys, all optional but samples:

    joint_names       : names in any order; extra ones are ignored with their numbers, missing ones refused; empty: the model's order
    samples           : [{position, velocity, acceleration, jerk, effort: (n,) each}]; what a question needs and is empty is zero
    base              : [{position (3,), orientation (4,) x y z w, velocity, acceleration, jerk (6,)}]: none, one, or one for each
                        sample; base_state.py says what they are
    base_motion_given : whether the base follows that acceleration and jerk, or nothing holds it
    wrenches          : [{link, frame: "link" or "root", wrench, rate: rows of 6}]: one row, or one for each sample
    of_rate           : whether sensitivities of the torque rate are wanted as well
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import door
from .base_state import BaseState
from .errors import InputError

Request = Mapping[str, Any]
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort")
BASE = {"position": (0.0, 0.0, 0.0), "orientation": (0.0, 0.0, 0.0, 1.0)} | dict.fromkeys(("velocity", "acceleration", "jerk"),
                                                                                         (0.0,) * 6)
WRENCH = ("link", "frame", "wrench", "rate")
FRAMES = ("link", "root")


@dataclass(frozen=True, eq=False)
class State:
    """What a request says: arrays (samples, n) in the model's order; the base's and wrenches' are (6,) or (samples, 6).

    joint_names  : the order in which the answer is wanted
    answer_order : the model's numbers of those joints
    base         : None where the request names none
    wrenches, wrench_rates, world_wrenches : by link, see Robot.torque_and_rate
    """

    joint_names: tuple[str, ...]
    answer_order: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    base: BaseState | None = None
    base_acceleration: Any = None
    base_jerk: Any = None
    base_motion_given: bool = False
    wrenches: dict[str, Any] = field(default_factory=dict)
    wrench_rates: dict[str, Any] = field(default_factory=dict)
    world_wrenches: dict[str, Any] = field(default_factory=dict)
    of_rate: bool = False


def read(request: Request, joint_names: Sequence[str], needed: Sequence[str]) -> State:
    """The state of a request to a robot with these joints. needed: the fields of each sample that the question reads.

    Raises InputError, which says what was given, what is allowed and where.
    """
    named = list(request.get("joint_names") or joint_names)
    order = _places(named, joint_names)
    samples = request.get("samples") or []
    if not samples:
        raise InputError(f"samples is empty; at least one is needed, with a position for each of {_list(joint_names)}")
    columns = [_column(name, samples, named, order) if name in needed else np.zeros((len(samples), len(order)))
               for name in FIELDS]
    base, *rates = _base(request.get("base") or [], len(samples))
    wrenches, wrench_rates, world = _wrenches(request.get("wrenches") or [], len(samples))
    answered = tuple(name for name in named if name in joint_names)
    return State(answered, np.array([joint_names.index(name) for name in answered], dtype=np.intp), *columns, base, *rates,
                 bool(request.get("base_motion_given")), wrenches, wrench_rates, world, bool(request.get("of_rate")))


def shape(request: Request) -> tuple:
    """What a request says beside its numbers. Requests of one shape to one question need the same kernels."""
    loads = sorted({(load.get("link", ""), load.get("frame") or "link") for load in request.get("wrenches") or []})
    return tuple(loads), tuple(bool(request.get(name)) for name in ("base", "base_motion_given", "of_rate", "floating_base"))


def _places(named: Sequence[str], joint_names: Sequence[str]) -> list[int]:
    """Where each joint of the model stands among the names."""
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise InputError(f"joint_names has {_list(twice)} more than once")
    index = {name: k for k, name in enumerate(named)}
    missing = [name for name in joint_names if name not in index]
    if missing:
        raise InputError(f"joint_names lacks {_list(missing)}; the robot's joints are {_list(joint_names)}, in any order")
    return [index[name] for name in joint_names]


def _column(name: str, samples: Sequence[Mapping[str, Any]], named: Sequence[str], order: Sequence[int]) -> np.ndarray:
    """(samples, n) of one field, in the model's order."""
    rows = []
    for k, sample in enumerate(samples):
        row = door.numbers(f"samples[{k}].{name}", sample.get(name, ()))
        if row.size == 0 and name != "position":
            row = np.zeros(len(named))
        if row.shape != (len(named),):
            unless = "" if name == "position" else ", or none: zeros"
            raise InputError(f"samples[{k}].{name} has {row.size} entries; {len(named)} are needed, for {_list(named)}{unless}")
        rows.append(row)
    table = np.array(rows)[:, order]
    for k, j in np.argwhere(~np.isfinite(table)):
        raise InputError(f"samples[{k}].{name} of joint '{named[order[j]]}' is {table[k, j]}; every value must be a finite number")
    return table


def _base(states: Sequence[Mapping[str, Any]], samples: int) -> tuple[BaseState | None, np.ndarray, np.ndarray]:
    """State, acceleration and jerk: of one base for all samples, or of one for each."""
    if len(states) not in (0, 1, samples):
        raise InputError(f"base has {len(states)} entries; none (at rest), one for all samples, or one for each of {samples} is needed")
    if not states:
        return None, np.zeros(6), np.zeros(6)
    tables = {}
    for name, rest in BASE.items():
        rows = [door.vector(f"base[{k}].{name}", state.get(name, rest), len(rest)) for k, state in enumerate(states)]
        tables[name] = np.array(rows) if len(rows) > 1 else rows[0]
    return (BaseState(tables["position"], tables["orientation"], tables["velocity"]), tables["acceleration"], tables["jerk"])


def _wrenches(given: Sequence[Mapping[str, Any]], samples: int) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Wrenches that turn with their links, rates of these, and wrenches that keep their direction; those on one link add up."""
    turning: dict[str, Any] = {}
    rates: dict[str, Any] = {}
    held: dict[str, Any] = {}
    for k, load in enumerate(given):
        link, frame = load.get("link", ""), load.get("frame") or "link"
        if frame not in FRAMES:
            raise InputError(f"wrenches[{k}].frame is '{frame}'; allowed are {_list(FRAMES)}")
        targets = {"wrench": turning if frame == "link" else held, "rate": rates}
        for name, target in targets.items():
            rows = door.numbers(f"wrenches[{k}].{name}", load.get(name, ()))
            if name == "rate" and rows.size == 0:
                continue
            if name == "rate" and frame == "root":
                raise InputError(f"wrenches[{k}], on link '{link}', has a rate; in frame 'root' wrenches are constant, leave it empty")
            rows = rows[None] if rows.ndim == 1 else rows
            if rows.ndim != 2 or rows.shape[1] != 6 or len(rows) not in (1, samples) or not np.isfinite(rows).all():
                raise InputError(f"wrenches[{k}].{name}, on link '{link}', is {rows.tolist()!r:.80}; one row for all samples, or one for "
                                 f"each of {samples}, is needed: force, then moment, six finite numbers")
            target[link] = target.get(link, 0.0) + (rows[0] if len(rows) == 1 else rows)
    return turning, rates, held


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names) or "no joints"
