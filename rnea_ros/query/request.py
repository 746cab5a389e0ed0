"""What may be asked of a robot from outside, by a service or a file: plain names and lists in, checked arrays out.

A request is a mapping; all keys may be missing but samples. What a sample leaves out is zero, except its position.

    joint_names       : in any order, none for the model's; extra names are ignored with their numbers, missing ones refused
    samples           : list of {position, velocity, acceleration, jerk, effort}, (n,) each
    base              : list of {position (3,), orientation (4,) x y z w, velocity, acceleration, jerk (6,)}: none, one for all
                        samples, or one for each; see base_state.py
    base_motion_given : whether the base follows its acceleration and jerk, or nothing holds it
    wrenches          : list of {link, frame: "link" or "root", wrench, rate}, the last two rows of 6: one for all samples, or
                        one for each; see Robot.torque_and_rate
    of_rate           : whether sensitivities of the torque rate are wanted as well
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..robots.inputs import validation
from ..robots.inputs.base_state import BaseState

Request = Mapping[str, Any]
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort")
BASE = {"position": (0.0, 0.0, 0.0), "orientation": (0.0, 0.0, 0.0, 1.0), "velocity": (0.0,) * 6, "acceleration": (0.0,) * 6,
        "jerk": (0.0,) * 6}
WRENCH = ("link", "frame", "wrench", "rate")
FRAMES = ("link", "root")


class Base(NamedTuple):
    """acceleration and jerk: (6,) for all samples, or (samples, 6)."""

    state: BaseState
    acceleration: np.ndarray
    jerk: np.ndarray


class Loads(NamedTuple):
    """By link, (6,) or (samples, 6); in the order in which Robot takes them."""

    wrenches: dict[str, Any]
    wrench_rates: dict[str, Any]
    world_wrenches: dict[str, Any]


@dataclass(frozen=True, eq=False)
class RequestedState:
    """What a request says. Coordinates are (samples, n) in the model's order; those that the question does not need are zero.

    joint_names, answer_order : the order in which the answer is wanted, by name and by the model's number
    base                      : None where the request has none
    """

    joint_names: tuple[str, ...]
    answer_order: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    base: Base | None
    loads: Loads
    base_motion_given: bool = False
    of_rate: bool = False


def read(request: Request, joint_names: Sequence[str], needed: Sequence[str]) -> RequestedState:
    """The state that a request describes, for a robot with these joints. needed: the fields that the question reads.

    Raises InputError, which says what was given, what is allowed and where.
    """
    named = list(request.get("joint_names") or joint_names)
    order = _places(named, joint_names)
    samples = request.get("samples") or []
    if not samples:
        raise InputError(f"samples is empty; at least one is needed, with a position for each of {_list(named)}")
    rest = np.zeros((len(samples), len(order)))
    q, qd, qdd, qddd, tau = (_column(name, samples, named, order) if name in needed else rest for name in FIELDS)
    answered = tuple(name for name in named if name in joint_names)
    return RequestedState(answered, np.array([joint_names.index(name) for name in answered], dtype=np.intp), q, qd, qdd, qddd,
                          tau,
                 _base(request.get("base") or [], len(samples)), _loads(request.get("wrenches") or [], len(samples)),
                 bool(request.get("base_motion_given")), bool(request.get("of_rate")))


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
        row = validation.numbers(f"samples[{k}].{name}", sample.get(name, ()))
        if row.size == 0 and name != "position":
            row = np.zeros(len(named))
        if row.shape != (len(named),):
            raise InputError(f"samples[{k}].{name} has shape {row.shape}; ({len(named)},) is needed, a number for each of "
                             f"{_list(named)}")
        rows.append(row)
    table = np.array(rows)[:, order]
    if not np.isfinite(table).all():
        k, j = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"samples[{k}].{name} of joint '{named[order[j]]}' is {table[k, j]}; finite numbers are needed")
    return table


def _base(states: Sequence[Mapping[str, Any]], samples: int) -> Base | None:
    if not states:
        return None
    _one_or_each("base", len(states), samples)
    tables = {}
    for name, rest in BASE.items():
        rows = [validation.vector(f"base[{k}].{name}", state.get(name, rest), len(rest)) for k, state in enumerate(states)]
        tables[name] = rows[0] if len(rows) == 1 else np.array(rows)
    position, orientation, velocity, acceleration, jerk = tables.values()
    return Base(BaseState(position, orientation, velocity), acceleration, jerk)


def _loads(given: Sequence[Mapping[str, Any]], samples: int) -> Loads:
    """Several wrenches on one link, in one frame, add up."""
    loads = Loads({}, {}, {})
    for k, load in enumerate(given):
        link, frame = str(load.get("link", "")), str(load.get("frame") or "link")
        where = f"wrenches[{k}], on link '{link}'"
        if frame not in FRAMES:
            raise InputError(f"{where}: frame is '{frame}'; allowed are {_list(FRAMES)}")
        target = loads.wrenches if frame == "link" else loads.world_wrenches
        target[link] = target.get(link, 0.0) + _sixes(f"{where}: wrench", load.get("wrench", ()), samples)
        rate = load.get("rate")
        if rate is None or len(np.atleast_1d(rate)) == 0:
            continue
        if frame == "root":
            raise InputError(f"{where}: a rate is given, but wrenches in frame 'root' are constant; leave it empty")
        loads.wrench_rates[link] = loads.wrench_rates.get(link, 0.0) + _sixes(f"{where}: rate", rate, samples)
    return loads


def _sixes(where: str, value: Any, samples: int) -> np.ndarray:
    """(6,) or (samples, 6)."""
    rows = np.atleast_2d(validation.numbers(where, value))
    if rows.ndim != 2 or rows.shape[1] != 6 or not np.isfinite(rows).all():
        raise InputError(f"{where} is {rows.tolist()!r:.120}; rows of six finite numbers are needed, force, then moment")
    _one_or_each(where, len(rows), samples)
    return rows[0] if len(rows) == 1 else rows


def _one_or_each(where: str, count: int, samples: int) -> None:
    if count not in (1, samples):
        raise InputError(f"{where} has {count} entries; one for all samples, or one for each of the {samples} is needed")


def _list(names: Sequence[str]) -> str:
    return some(names, quoted=True) or "no joints"
