"""What may be asked of a robot from outside, by a service or a file: plain names and lists in, checked arrays out.

A request is a mapping; all keys may be missing but samples. What a sample leaves out is zero, except its position.

    joint_names       : in any order, none for the model's; extra names are ignored with their numbers, missing ones refused
    samples           : list of {position, velocity, acceleration, jerk, effort}, (n,) each; of robots with elastic joints also
                        snap, crackle, pop, lock, the fourth to the seventh derivative, and motor_position, motor_velocity
    base              : list of {position (3,), orientation (4,) x y z w, velocity, acceleration, jerk (6,)}: none, one for all
                        samples, or one for each; see base_state.py
    base_motion_given : whether the base follows its acceleration and jerk, or nothing holds it
    platform          : of a parallel robot, the same list instead of samples; see platform_motion.py
    guess             : {joint_names, position} of all joints of a tree, or {platform: [{position, orientation}]}: a pose near
                        the first one, which says how closed loops are closed
    wrenches          : list of {link, frame: "link" or "root", wrench, rate}, the last two rows of 6: one for all samples, or
                        one for each; see Robot.torque_and_rate
    links, points     : names of links, none for all; a point (3,) of each, none for the origins
    of_rate           : whether sensitivities of the torque rate are wanted as well
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, some
from ..robots.inputs import validation
from ..robots.inputs.base_state import BaseState
from ..robots.inputs.platform_motion import PlatformMotion

Request = Mapping[str, Any]
HIGHER = ("snap", "crackle", "pop", "lock")  # derivatives of the position above the jerk
OF_MOTORS = ("motor_position", "motor_velocity")
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", *HIGHER, *OF_MOTORS)
ZEROS = FIELDS[1:5]  # what is zero where it is left out; of the others, the robot says whether it needs them
BASE = {"position": (0.0, 0.0, 0.0), "orientation": (0.0, 0.0, 0.0, 1.0), "velocity": (0.0,) * 6, "acceleration": (0.0,) * 6,
        "jerk": (0.0,) * 6}
POSE = ("position", "orientation")
GUESS = ("joint_names", "position", "platform")
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


class Guess(NamedTuple):
    """position: by name of the joint; platform: of a parallel robot."""

    position: Mapping[str, float]
    platform: PlatformMotion | None


@dataclass(frozen=True, eq=False)
class RequestedState:
    """What a request says. Coordinates are (samples, n) in the model's order; those that the question does not need are zero.

    joint_names, answer_order : the order in which the answer is wanted, by name and by the model's number
    base, guess, platform     : None where the request has none
    higher                    : as many of HIGHER as the request has, one after the other
    motor_position, motor_velocity : None where the request has none
    points                    : (links, 3) or (3,)
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
    guess: Guess | None = None
    platform: PlatformMotion | None = None
    higher: tuple[np.ndarray, ...] = ()
    motor_position: np.ndarray | None = None
    motor_velocity: np.ndarray | None = None
    links: tuple[str, ...] = ()
    points: np.ndarray = field(default_factory=lambda: np.zeros(3))
    base_motion_given: bool = False
    of_rate: bool = False


def read(request: Request, joint_names: Sequence[str], needed: Sequence[str]) -> RequestedState:
    """The state that a request describes, for a robot with these joints. needed: the fields that the question reads.

    Raises InputError, which says what was given, what is allowed and where.
    """
    named = list(request.get("joint_names") or joint_names)
    order = _places(named, joint_names)
    samples = request.get("samples") or []
    if needed and not samples:
        raise InputError(f"samples is empty; at least one is needed, with a position for each of {_list(named)}")
    rest = np.zeros((len(samples), len(order)))
    q, qd, qdd, qddd, tau = (_column(name, samples, named, order) if name in needed else rest for name in FIELDS[:5])
    motors = {name: _given(name, samples, named, order) for name in OF_MOTORS if name in needed}
    higher = takewhile(lambda table: table is not None, (_given(name, samples, named, order) for name in HIGHER))
    answered = tuple(name for name in named if name in joint_names)
    links = tuple(map(str, request.get("links") or ()))
    return RequestedState(
        answered, np.array([joint_names.index(name) for name in answered], dtype=np.intp), q, qd, qdd, qddd, tau,
        _base(request.get("base") or [], len(samples)), _loads(request.get("wrenches") or [], len(samples)),
        guess=_guess(request.get("guess") or {}), platform=None if needed else _platform(request.get("platform") or []),
        higher=tuple(table for table in higher if table is not None), links=links,
        points=_points(request.get("points") or [], links), base_motion_given=bool(request.get("base_motion_given")),
        of_rate=bool(request.get("of_rate")), **motors)


def shape(request: Request) -> tuple:
    """What a request says beside its numbers. Requests of one shape to one question need the same kernels."""
    links = tuple(map(str, request.get("links") or ()))
    higher = [name for name in HIGHER for sample in (request.get("samples") or [])[:1] if len(sample.get(name, ()))]
    loads = sorted({(load.get("link", ""), load.get("frame") or "link") for load in request.get("wrenches") or []})
    flags = ("base", "base_motion_given", "of_rate", "floating_base")
    return tuple(loads), links, len(higher), tuple(bool(request.get(name)) for name in flags)


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
        if row.size == 0 and name in ZEROS:
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


def _given(name: str, samples: Sequence[Mapping[str, Any]], named: Sequence[str], order: Sequence[int]) -> np.ndarray | None:
    """The same of a field that is no zero where it is left out; None where no sample has it."""
    return _column(name, samples, named, order) if any(len(sample.get(name, ())) for sample in samples) else None


def _points(given: Sequence[Any], links: Sequence[str]) -> np.ndarray:
    if not len(given):
        return np.zeros(3)
    if len(given) != len(links):
        raise InputError(f"points has {len(given)} entries, links {len(links)}; one for each of links is needed, or none")
    return np.array([validation.vector(f"points[{k}]", point, 3) for k, point in enumerate(given)])


def _guess(given: Mapping[str, Any]) -> Guess | None:
    """None where nothing is given."""
    names, poses = list(given.get("joint_names") or ()), given.get("platform") or ()
    position = validation.numbers("guess.position", given.get("position", ()))
    if position.shape != (len(names),):
        raise InputError(f"guess.position has shape {position.shape}; ({len(names)},) is needed, a number for each of "
                         f"{_list(names)} in guess.joint_names")
    if len(poses) > 1:
        raise InputError(f"guess.platform has {len(poses)} poses; one is needed, near the first of the motion")
    if not names and not poses:
        return None
    platform = None
    for pose in poses:
        state = BaseState(pose.get("position", BASE["position"]), pose.get("orientation", BASE["orientation"]))
        platform = PlatformMotion(state.position, state.rotation)
    return Guess(dict(zip(names, position.tolist(), strict=True)), platform)


def _platform(states: Sequence[Mapping[str, Any]]) -> PlatformMotion:
    if not states:
        raise InputError("platform is empty; at least one motion of the platform is needed")
    position, orientation, *rates = _tables("platform", states)
    return PlatformMotion(position, BaseState(position, orientation).rotation, *rates)


def _base(states: Sequence[Mapping[str, Any]], samples: int) -> Base | None:
    if not states:
        return None
    _one_or_each("base", len(states), samples)
    position, orientation, velocity, acceleration, jerk = (rows[0] if len(states) == 1 else rows
                                                           for rows in _tables("base", states))
    return Base(BaseState(position, orientation, velocity), acceleration, jerk)


def _tables(what: str, states: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """(states, size) of each of BASE."""
    return [np.array([validation.vector(f"{what}[{k}].{name}", state.get(name, rest), len(rest))
                      for k, state in enumerate(states)]) for name, rest in BASE.items()]


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
