"""Requests to a robot: plain names and lists in, checked arrays out, and answers in the order of the request.

A request is a mapping; all keys but samples are optional. Missing fields of a sample are zero, except its position.

    joint_names       : in any order, default the model's; numbers of other joints are ignored, missing joints rejected
    samples           : list of {position, velocity, acceleration, jerk, effort}, (n,) each; for robots with elastic joints
                        also snap, crackle, pop, lock, the fourth to the seventh derivative, and motor_position, motor_velocity
    base              : list of {position (3,), orientation (4,) x y z w, velocity, acceleration, jerk (6,)}: none, one for all
                        samples, or one for each; see base_state.py
    base_motion_given : whether the base follows its acceleration and jerk, or is free
    platform          : of a parallel robot, the same list instead of samples; see platform_motion.py
    guess             : {joint_names, position} of all joints of a tree, or {platform: [{position, orientation}]}: a pose near
                        the first one, which selects the branch of closed loops
    wrenches          : list of {link, frame: "link" or "root", wrench, rate}, the last two rows of 6: one for all samples, or
                        one for each; see Robot.torque_and_rate
    links, points     : names of links, default all; a point (3,) of each, default the origins
    of_rate           : whether sensitivities of the torque rate are computed too
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.equations import BASE as BASE_COORDINATES
from ..errors import InputError, some
from ..robots.inputs import validation
from ..robots.inputs.base_state import BaseState
from ..robots.inputs.conditions import Loads, MotorState
from ..robots.inputs.platform_motion import PlatformMotion
from ..robots.robot import Robot

Request = Mapping[str, Any]
HIGHER = ("snap", "crackle", "pop", "lock")  # derivatives of the position above the jerk
OF_MOTORS = ("motor_position", "motor_velocity")
FIELDS = ("position", "velocity", "acceleration", "jerk", "effort", *HIGHER, *OF_MOTORS)
ZERO_BY_DEFAULT = FIELDS[1:5]
BASE = {"position": (0.0, 0.0, 0.0), "orientation": (0.0, 0.0, 0.0, 1.0), "velocity": (0.0,) * 6, "acceleration": (0.0,) * 6,
        "jerk": (0.0,) * 6}
GUESS = ("joint_names", "position", "platform")
WRENCH = ("link", "frame", "wrench", "rate")
FRAMES = ("link", "root")


class Guess(NamedTuple):
    """Guess for closed loops: positions by joint name; platform of a parallel robot."""

    position: Mapping[str, float]
    platform: PlatformMotion | None


@dataclass(frozen=True, eq=False)
class RequestedState:
    """Checked state of a request. Coordinates are (samples, n) in the model's order; those that are not needed are zero.

    joint_names, answer_order : order of the answer, by name and by index in the model
    base, guess, platform     : None if the request has none
    higher                    : as many of HIGHER as the request has
    motor_position, motor_velocity : None if the request has none
    points                    : (links, 3) or (3,)
    """

    joint_names: tuple[str, ...]
    answer_order: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    tau: np.ndarray
    base: BaseState | None
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


def read_request(request: Request, joint_names: Sequence[str], needed: Sequence[str]) -> RequestedState:
    """Return the state of a request for a robot with these joints. needed: fields that the request type reads.

    Raises InputError with the given value, the allowed ones and the position in the request.
    """
    named = list(request.get("joint_names") or joint_names)
    order = _joint_order(named, joint_names)
    samples = request.get("samples") or []
    if needed and not samples:
        raise InputError(f"samples is empty; at least one is needed, with a position for each of {_join_names(named)}")
    rest = np.zeros((len(samples), len(order)))
    q, qd, qdd, qddd, tau = (_column(name, samples, named, order) if name in needed else rest for name in FIELDS[:5])
    motors = {name: _optional_column(name, samples, named, order) for name in OF_MOTORS if name in needed}
    higher = takewhile(lambda table: table is not None, (_optional_column(name, samples, named, order) for name in HIGHER))
    answered = tuple(name for name in named if name in joint_names)
    links = tuple(map(str, request.get("links") or ()))
    return RequestedState(
        answered, np.array([joint_names.index(name) for name in answered], dtype=np.intp), q, qd, qdd, qddd, tau,
        _base(request.get("base") or [], len(samples)), _loads(request.get("wrenches") or [], len(samples)),
        guess=_guess(request.get("guess") or {}), platform=None if needed else _platform(request.get("platform") or []),
        higher=tuple(table for table in higher if table is not None), links=links,
        points=_points(request.get("points") or [], links), base_motion_given=bool(request.get("base_motion_given")),
        of_rate=bool(request.get("of_rate")), **motors)


def request_structure(request: Request) -> tuple:
    """Return the structure of a request without its numbers. Requests of equal structure need the same kernels."""
    links = tuple(map(str, request.get("links") or ()))
    higher = [name for name in HIGHER for sample in (request.get("samples") or [])[:1] if len(sample.get(name, ()))]
    loads = sorted({(load.get("link", ""), load.get("frame") or "link") for load in request.get("wrenches") or []})
    flags = ("base", "base_motion_given", "of_rate", "floating_base")
    return tuple(loads), links, len(higher), tuple(bool(request.get(name)) for name in flags)


def _joint_order(named: Sequence[str], joint_names: Sequence[str]) -> list[int]:
    """Return the position of each joint of the model among the names."""
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise InputError(f"joint_names has {_join_names(twice)} more than once")
    index = {name: k for k, name in enumerate(named)}
    missing = [name for name in joint_names if name not in index]
    if missing:
        raise InputError(
                         f"joint_names lacks {_join_names(missing)}; the robot's joints are {_join_names(joint_names)}, in "
                         f"any order")
    return [index[name] for name in joint_names]


def _column(name: str, samples: Sequence[Mapping[str, Any]], named: Sequence[str], order: Sequence[int]) -> np.ndarray:
    """Return one field (samples, n) in the model's order."""
    rows = []
    for k, sample in enumerate(samples):
        row = validation.numbers(f"samples[{k}].{name}", sample.get(name, ()))
        if row.size == 0 and name in ZERO_BY_DEFAULT:
            row = np.zeros(len(named))
        if row.shape != (len(named),):
            raise InputError(f"samples[{k}].{name} has shape {row.shape}; ({len(named)},) is needed, a number for each of "
                             f"{_join_names(named)}")
        rows.append(row)
    table = np.array(rows)[:, order]
    if not np.isfinite(table).all():
        k, j = np.argwhere(~np.isfinite(table))[0]
        raise InputError(f"samples[{k}].{name} of joint '{named[order[j]]}' is {table[k, j]}; finite numbers are needed")
    return table


def _optional_column(name: str, samples: Sequence[Mapping[str, Any]], named: Sequence[str],
                     order: Sequence[int]) -> np.ndarray | None:
    """Return a field that is not zero by default; None if no sample has it."""
    return _column(name, samples, named, order) if any(len(sample.get(name, ())) for sample in samples) else None


def _points(given: Sequence[Any], links: Sequence[str]) -> np.ndarray:
    if not len(given):
        return np.zeros(3)
    if len(given) != len(links):
        raise InputError(f"points has {len(given)} entries, links {len(links)}; one for each of links is needed, or none")
    return np.array([validation.vector(f"points[{k}]", point, 3) for k, point in enumerate(given)])


def _guess(given: Mapping[str, Any]) -> Guess | None:
    """Return the guess; None if nothing is given."""
    names, poses = list(given.get("joint_names") or ()), given.get("platform") or ()
    position = validation.numbers("guess.position", given.get("position", ()))
    if position.shape != (len(names),):
        raise InputError(f"guess.position has shape {position.shape}; ({len(names)},) is needed, a number for each of "
                         f"{_join_names(names)} in guess.joint_names")
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


def _base(states: Sequence[Mapping[str, Any]], samples: int) -> BaseState | None:
    if not states:
        return None
    _one_or_each("base", len(states), samples)
    return BaseState(*(rows[0] if len(states) == 1 else rows for rows in _tables("base", states)))


def _tables(what: str, states: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
    """Return an array (states, size) for each field of BASE."""
    return [np.array([validation.vector(f"{what}[{k}].{name}", state.get(name, rest), len(rest))
                      for k, state in enumerate(states)]) for name, rest in BASE.items()]


def _loads(given: Sequence[Mapping[str, Any]], samples: int) -> Loads:
    """Return the loads; wrenches on the same link and in the same frame are added."""
    wrenches: dict[str, Any] = {}
    rates: dict[str, Any] = {}
    held: dict[str, Any] = {}
    for k, load in enumerate(given):
        link, frame = str(load.get("link", "")), str(load.get("frame") or "link")
        where = f"wrenches[{k}], on link '{link}'"
        if frame not in FRAMES:
            raise InputError(f"{where}: frame is '{frame}'; allowed are {_join_names(FRAMES)}")
        target = wrenches if frame == "link" else held
        target[link] = target.get(link, 0.0) + _wrench_rows(f"{where}: wrench", load.get("wrench", ()), samples)
        rate = load.get("rate")
        if rate is None or len(np.atleast_1d(rate)) == 0:
            continue
        if frame == "root":
            raise InputError(f"{where}: a rate is given, but wrenches in frame 'root' are constant; leave it empty")
        rates[link] = rates.get(link, 0.0) + _wrench_rows(f"{where}: rate", rate, samples)
    return Loads(wrenches, rates, held)


def _wrench_rows(where: str, value: Any, samples: int) -> np.ndarray:
    """Return a wrench or its rate, (6,) or (samples, 6)."""
    rows = np.atleast_2d(validation.numbers(where, value))
    if rows.ndim != 2 or rows.shape[1] != 6 or not np.isfinite(rows).all():
        raise InputError(f"{where} is {rows.tolist()!r:.120}; rows of six finite numbers are needed, force, then moment")
    _one_or_each(where, len(rows), samples)
    return rows[0] if len(rows) == 1 else rows


def _one_or_each(where: str, count: int, samples: int) -> None:
    if count not in (1, samples):
        raise InputError(f"{where} has {count} entries; one for all samples, or one for each of the {samples} is needed")


def _join_names(names: Sequence[str]) -> str:
    return some(names, quoted=True) or "no joints"


Answer = dict[str, Any]
AT_REST = BaseState(acceleration=np.zeros(6), jerk=np.zeros(6))
MOTION = ("position", "velocity", "acceleration", "jerk")
STATE = ("position", "velocity")
STATE_AND_EFFORT = (*STATE, "effort")


class RequestHandler(NamedTuple):
    """One kind of request, the same for `rnea query` and query_node.

    service : name in query_node
    text    : short description of the answer
    answer  : function (robot, state) -> {name: plain array, samples first}
    needed  : fields of a sample that are read
    roots   : whether wrenches may be given in the root link's frame
    """

    service: str
    text: str
    answer: Callable[[Any, RequestedState], Answer]
    needed: Sequence[str] = MOTION
    roots: bool = False


# Axes with joints of every array of an answer.
JOINT_AXES = dict.fromkeys(
    ("effort", "effort_rate", "gravity_effort", "gravity_effort_rate", "acceleration", "bias", "gravity", "velocity", "jerk",
     "position", "load", "jacobian", "jacobian_rate", "active_jacobian", *(f"dwrench_d{x}" for x in MOTION)), (-1,)) | (
    dict.fromkeys(("mass_matrix", "coriolis_matrix", "deffort_dhigher", *(f"d{y}_d{x}" for y in ("effort", "rate")
                                                                          for x in MOTION)), (-2, -1))) | (
    dict.fromkeys(("regressor", "regressor_rate"), (-2,)))


def answer_request(robot: Robot, question: RequestHandler, request: Request) -> Answer:
    """Return the answer with joint_names. Raises InputError."""
    state = read_request(request, robot.joint_names, question.needed)
    held = list(state.loads.world_wrenches)
    if held and not question.roots:
        raise InputError(f"the wrench on link '{held[0]}' is in frame 'root'; here only frame 'link' is allowed")
    with np.errstate(all="ignore"):  # _checked reports infinite results
        answer = question.answer(robot, state)
    return {"joint_names": state.joint_names} | {name: _check_value(robot, name, value, state) for name,
                                                 value in answer.items()}


def _check_value(robot: Robot, name: str, value: Any, state: RequestedState) -> Any:
    """Return an array, checked to be finite and in the order of the request; other values unchanged."""
    if not isinstance(value, np.ndarray):
        return value
    if not np.isfinite(value).all():
        raise InputError(f"{name} comes out too large for a finite number; the state is too extreme")
    for axis in JOINT_AXES.get(name, ()):
        value = value.take(_coordinate_order(robot, value.shape[axis], state), axis=axis)
    return value


def _coordinate_order(robot: Robot, size: int, state: RequestedState) -> list[int]:
    """Return the indices of all coordinates in the order of the answer: base first, motors of elastic joints last."""
    n = robot.n
    before = len(BASE_COORDINATES) if size > n and robot.has_moving_base else 0
    return [*range(before), *(before + state.answer_order), *range(before + n, size)]


# ---------------------------------------------------------------------- differences between kinds of robots


def coordinates(robot: Robot, s: RequestedState, motors: bool = True) -> tuple[str, ...]:
    """Return the names of all coordinates in the order of the answer. motors: include those of elastic joints."""
    behind = robot.elastic_joints if motors and not robot.is_fixed_tree else ()
    base = BASE_COORDINATES if robot.has_moving_base else ()
    return (*base, *s.joint_names, *(f"motor of {name}" for name in behind))


def derivatives_up_to(robot: Robot, s: RequestedState, order: int) -> tuple[np.ndarray, ...]:
    """Return q and its derivatives up to the order, as far as given."""
    return (s.q, s.qd, s.qdd, s.qddd, *s.higher)[:order + 1]


def kind_arguments(robot: Robot, s: RequestedState) -> dict[str, Any]:
    """Return the keywords of every call for this robot: the state of a moving base, the guess of closed loops."""
    found: dict[str, Any] = {}
    if robot.has_moving_base:
        found["base"] = (s.base or AT_REST).free
    elif s.base is not None:
        raise InputError(f"base is given, but robot '{robot.name}' ({robot.kind}) has a fixed base here; use "
                         "the services with 'floating' in their name, or set 'base: floating' in the robot file")
    if s.guess is not None:
        found["guess"] = _closure_guess(robot, s.guess)
    return found


def _closure_guess(robot: Robot, given: Any) -> Any:
    if robot.platforms and given.platform is not None:
        return given.platform
    if robot.loops and given.position:
        names = robot.tree.joint_names
        missing = [name for name in names if name not in given.position]
        if missing:
            raise InputError(f"guess lacks {some(missing, quoted=True)}; a pose of all joints is needed: {some(names)}")
        return np.array([given.position[name] for name in names])
    if robot.loops:
        needed = f"{'guess.platform, or ' if robot.platforms else ''}guess.joint_names and guess.position"
        raise InputError(f"guess of robot '{robot.name}' ({robot.kind}): {needed} is needed")
    raise InputError(f"guess is given, but robot '{robot.name}' ({robot.kind}) has no closed loops")


def motor_arguments(robot: Robot, s: RequestedState) -> dict[str, Any]:
    """Return the state of the motors of elastic joints, which springs pull by."""
    if not robot.elastic_joints:
        return {}
    columns = [robot.joint_names.index(name) for name in robot.elastic_joints]
    if s.motor_position is None or s.motor_velocity is None:
        return {}
    return {"motors": MotorState(s.motor_position[:, columns], s.motor_velocity[:, columns])}


def require(robot: Robot, what: str, condition: bool, needed: str) -> Robot:
    """Return the robot. Raises InputError where it lacks what an answer needs: a section of the robot file."""
    if not condition:
        raise InputError(f"{what}: robot '{robot.name}' is a {robot.kind}; this is for robots with {needed} in their robot "
                         "file, see docs/robot_file.md")
    return robot
