"""Requests to a robot and their answers: plain names and lists in, plain arrays out, in the order of the request.

Each answer is one call of the library. query_node and `rnea query` use the same table of requests, REQUESTS. A request is a
mapping; all keys except samples are optional. Missing fields of a sample are zero, except its position.

    joint_names       : joints of the samples, in any order; default: those of the model. Other joints are ignored, missing
                        joints are rejected
    samples           : list of {position, velocity, acceleration, jerk, effort}, (n,) each; for robots with elastic joints
                        also snap, crackle, pop, lock (fourth to seventh derivative), motor_position, motor_velocity
    base              : list of {position (3,), orientation (4,) x y z w, velocity, acceleration, jerk (6,)}: none, one for all
                        samples, or one for each; see base_state.py
    base_motion_given : true: the acceleration and jerk of the base are given; false: the base is floating
    platform          : list like `base`, for the platform of a parallel robot, instead of samples; see platform_motion.py
    guess             : {joint_names, position} of all joints of a tree, or {platform: [{position, orientation}]}: a pose near
                        the first one, which selects the branch of closed loops
    wrenches          : list of {link, frame: "link" or "root", wrench, rate}; wrench and rate are rows of 6: one for all
                        samples, or one for each; see Robot.torque_and_rate
    links, points     : names of links, default: all; a point (3,) of each, default: the origins
    of_rate           : whether to compute the sensitivities of the torque rate too
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from .algorithms.equations import BASE as BASE_COORDINATES
from .algorithms.inertial_parameters import TERMS, base_parameters, ten
from .errors import InputError, some
from .identification.identification import Regressor
from .model.tree import NO_COORDINATE, Limits, Link
from .planning.bspline import PlannedMotion
from .planning.problem import PlanSettings, Report
from .robots import validation
from .robots.base_state import BaseState, quaternion
from .robots.conditions import Loads, MotorState, unified
from .robots.platform_motion import PlatformMotion
from .robots.robot import Robot
from .robots.tree import TreeDynamics
from .trajectory.path_dynamics import default_base, link_side
from .trajectory.plan_motion import plan_motion
from .trajectory.retiming import Retimed, retime_motion

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
    """Validated state of a request. Coordinates are (samples, n) in the order of the model; unused ones are zero.

    joint_names, answer_order : order of the answer, by name and by index in the model
    base, guess, platform     : None if the request does not contain them
    higher                    : derivatives HIGHER in the request
    motor_position, motor_velocity : None if the request does not contain them
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
    """Return the keyword arguments of every call for this robot: state of a moving base, guess of closed loops."""
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
    """Return the state of the motors of elastic joints, which determines the spring torques."""
    if not robot.elastic_joints:
        return {}
    columns = [robot.joint_names.index(name) for name in robot.elastic_joints]
    if s.motor_position is None or s.motor_velocity is None:
        return {}
    return {"motors": MotorState(s.motor_position[:, columns], s.motor_velocity[:, columns])}


def require(robot: Robot, what: str, condition: bool, needed: str) -> Robot:
    """Return the robot. Raises InputError if it lacks a section of the robot file that an answer requires."""
    if not condition:
        raise InputError(f"{what}: robot '{robot.name}' is a {robot.kind}; this is for robots with {needed} in their robot "
                         "file, see docs/robot_file.md")
    return robot


MAX_FREE_ROBOTS = 4  # robots whose free bases keep their kernels


@lru_cache(maxsize=MAX_FREE_ROBOTS)
def with_free_base(robot: Robot) -> Robot:
    """Return the robot with a floating base. Links and kernels are shared."""
    return Robot(robot.tree.with_free_base(), {"base": "floating"})


def _moving_robot(robot: Robot, s: RequestedState) -> tuple[Robot, dict[str, Any]]:
    """Return the robot with a floating base, and the keyword arguments of its state."""
    found = with_free_base(robot) if robot.is_fixed_tree else robot
    if not found.has_moving_base:
        raise InputError(f"a base that moves: robot '{robot.name}' has a fixed base; set base to floating or prescribed in "
                         "its robot file")
    return found, kind_arguments(found, s)


def _floating_inverse_dynamics(robot: Robot, s: RequestedState) -> Answer:
    moving, kind = _moving_robot(robot, s)
    if s.base_motion_given:
        kind["base"] = s.base or AT_REST
    found = moving.solve(s.q, s.qd, s.qdd, s.qddd, *s.higher, loads=s.loads, **kind)
    return {"base_acceleration": found.base_acceleration, "base_jerk": found.base_jerk, "effort": found.torques[..., 0, :],
            "effort_rate": found.torques[..., 1, :], "base_wrench": found.base_wrench,
            "base_wrench_rate": found.base_wrench_rate}


def _floating_forward_dynamics(robot: Robot, s: RequestedState) -> Answer:
    moving, kind = _moving_robot(robot, s)
    found = moving.response(s.q, s.qd, s.tau, loads=s.loads, **kind, **motor_arguments(robot, s))
    qdd = [found.positions[name][..., 2] for name in moving.joint_names]
    return {"base_acceleration": found.base_acceleration, "acceleration": np.array(qdd).T.reshape(-1, moving.n)}


FLOATING_INVERSE_DYNAMICS = RequestHandler("compute_floating_inverse_dynamics", "torque and rate with a base that is free or "
                                                                                "moves as "
                                           "given", _floating_inverse_dynamics, MOTION)
FLOATING_FORWARD_DYNAMICS = RequestHandler("compute_floating_forward_dynamics", "acceleration of a floating base and its "
                                                                                "joints under given efforts",
                                           _floating_forward_dynamics, STATE_AND_EFFORT)


def _inverse_dynamics(robot: Robot, s: RequestedState) -> Answer:
    motion, kind = derivatives_up_to(robot, s, robot.order), kind_arguments(robot, s)
    asked: Any = robot  # the keywords depend on its kind
    tau, tau_rate, gravity, gravity_rate = asked.dynamics(*motion, **kind)
    if any(s.loads.links):
        tau, tau_rate = asked.torque_and_rate(*motion, loads=s.loads, **kind)
    return {"effort": tau, "effort_rate": tau_rate, "gravity_effort": gravity, "gravity_effort_rate": gravity_rate}


def _forward_dynamics(robot: Robot, s: RequestedState) -> Answer:
    state = {**kind_arguments(robot, s), **motor_arguments(robot, s)}
    return {"acceleration": robot.forward_dynamics(s.q, s.qd, s.tau, loads=s.loads, **state)}


def _mass_matrix(robot: Robot, s: RequestedState) -> Answer:
    kind = kind_arguments(robot, s)
    bias = robot.bias(s.q, s.qd, loads=s.loads, **kind, **motor_arguments(robot, s))
    return {"coordinates": coordinates(robot, s), "mass_matrix": robot.mass_matrix(s.q, **kind), "bias": bias,
            "gravity": robot.gravity(s.q, **kind)}


def _coriolis_matrix(robot: Robot, s: RequestedState) -> Answer:
    return {"coriolis_matrix": robot.coriolis(s.q, s.qd, **kind_arguments(robot, s))}


def _sensitivities(robot: Robot, s: RequestedState) -> Answer:
    kind, motion = kind_arguments(robot, s), derivatives_up_to(robot, s, robot.order - 1)
    tables = robot.sensitivities(*motion, loads=s.loads, **kind)
    found = {f"deffort_d{x}": table for x, table in zip(MOTION, tables[:3], strict=False)}
    if tables[3:]:
        found["deffort_dhigher"] = np.stack(tables[3:], axis=1)
    if s.of_rate:
        if robot.order > len(MOTION) - 1:
            raise InputError(f"of_rate: the rates of robot '{robot.name}' depend on {robot.order} derivatives of q; "
                             "the answer has room for three, rate_sensitivities of Python for all")
        of_rate = robot.rate_sensitivities(s.q, s.qd, s.qdd, s.qddd, loads=s.loads, **kind)
        found |= {f"drate_d{x}": table for x, table in zip(MOTION, of_rate, strict=True)}
    return found


def _joint_wrenches(robot: Robot, s: RequestedState) -> Answer:
    found = robot.joint_wrenches(*derivatives_up_to(robot, s, robot.order), loads=s.loads, **kind_arguments(robot, s))
    return {**_joint_rows(robot, found.joints), "wrench": found.wrench, "wrench_rate": found.rate}


def _wrench_sensitivities(robot: Robot, s: RequestedState) -> Answer:
    require(robot, "derivatives of joint wrenches", robot.is_fixed_tree, "no more than a tree on a fixed base")
    found = robot.joint_wrench_sensitivities(s.q, s.qd, s.qdd, loads=s.loads)
    return {**_joint_rows(robot, found.joints), "dwrench_dposition": found.dw_dq, "dwrench_dvelocity": found.dw_dqd,
            "dwrench_dacceleration": found.dw_dqdd}


def _joint_rows(robot: Robot, joints: tuple[str, ...]) -> Answer:
    children = {link.joint: link.name for link in robot.tree.model.links}
    return {"joints": joints, "links": tuple(children[joint] for joint in joints)}


def _energy(robot: Robot, s: RequestedState) -> Answer:
    """Return energies and momentum, for a fixed tree also with the base motion of the request."""
    asked: Any = with_free_base(robot) if robot.is_fixed_tree and s.base is not None else robot
    state = kind_arguments(asked, s)
    energy, mass_centre = asked.energy(s.q, s.qd, **state, **motor_arguments(robot, s)), asked.center_of_mass(s.q, s.qd,
                                                                                                              **state)
    linear, angular = np.split(mass_centre.momentum, 2, axis=-1)
    return {"center_of_mass": mass_centre.position, "center_of_mass_velocity": mass_centre.velocity, "linear_momentum": linear,
            "angular_momentum": angular, "kinetic_energy": energy.kinetic, "potential_energy": energy.potential,
            "power": (s.qd * s.tau).sum(axis=-1)}


INVERSE_DYNAMICS = RequestHandler("compute_inverse_dynamics", "torque, torque rate, and gravity torque with its rate",
                                  _inverse_dynamics, roots=True)
FORWARD_DYNAMICS = RequestHandler("compute_forward_dynamics", "acceleration under given efforts", _forward_dynamics,
                                  (*STATE_AND_EFFORT, "motor_position", "motor_velocity"))
MASS_MATRIX = RequestHandler("compute_mass_matrix", "mass matrix, bias and gravity torques", _mass_matrix,
                             (*STATE, "motor_position", "motor_velocity"))
CORIOLIS_MATRIX = RequestHandler("compute_coriolis_matrix", "Coriolis matrix: its product with the velocity is a torque",
                                 _coriolis_matrix, STATE)
SENSITIVITIES = RequestHandler("compute_sensitivities", "partial derivatives of the torque, and with of_rate of its rate",
                               _sensitivities, roots=True)
JOINT_WRENCHES = RequestHandler("compute_joint_wrenches", "force and moment transmitted by every joint, and their rates",
                                _joint_wrenches, roots=True)
WRENCH_SENSITIVITIES = RequestHandler("compute_joint_wrench_sensitivities",
                                      "partial derivatives of the force and moment transmitted by every joint",
                                      _wrench_sensitivities, MOTION[:3], roots=True)
ENERGY = RequestHandler("compute_energy", "centre of mass, momentum, energy, power", _energy,
                        (*STATE_AND_EFFORT, "motor_position", "motor_velocity"))


Row = np.ndarray


def _points_on_links(robot: Robot, s: RequestedState) -> Iterator[tuple[str, Row]]:
    names = s.links or robot.links
    return zip(names, np.broadcast_to(s.points, (len(names), 3)), strict=True)


def _each(robot: Robot, s: RequestedState, of_link: Callable[[str, Row], Row]) -> np.ndarray:
    """Return an array (samples, links, ...)."""
    return np.stack([of_link(link, point) for link, point in _points_on_links(robot, s)], axis=1)


def _forward_kinematics(robot: Robot, s: RequestedState) -> Answer:
    kind = kind_arguments(robot, s)

    def pose(link: str, point: Row) -> Row:
        found = robot.link_pose(link, s.q, point, **kind)
        return np.concatenate((found.p, quaternion(found.R)), axis=-1)

    return {"links": tuple(s.links or robot.links), "pose": _each(robot, s, pose),
            "twist": _each(robot, s, lambda link, point: robot.link_velocity(link, s.q, s.qd, point, **kind))}


def _jacobians(robot: Robot, s: RequestedState) -> Answer:
    kind = kind_arguments(robot, s)
    return {"links": tuple(s.links or robot.links), "coordinates": coordinates(robot, s, motors=False),
            "jacobian": _each(robot, s, lambda link, point: robot.jacobian(link, s.q, point, **kind)),
            "jacobian_rate": _each(robot, s, lambda link, point: robot.jacobian_rate(link, s.q, s.qd, point, **kind))}


# ---------------------------------------------------------------------- dependent joints


def _motion(s: RequestedState) -> tuple[np.ndarray, ...]:
    return s.q, s.qd, s.qdd, s.qddd


def _loop_closure(robot: Robot, s: RequestedState) -> Answer:
    machine = require(robot, "passive joints", robot.loops is not None, "loops")
    found = machine.motion(*_motion(s), guess=kind_arguments(robot, s).get("guess"))
    return {**_all_joints(machine, found), "active_jacobian": found.G}


def _platform_inverse_kinematics(robot: Robot, s: RequestedState) -> Answer:
    machine = require(robot, "a platform", bool(robot.platforms), "a platform")
    if s.platform is None:
        raise InputError("platform is missing: the motion of the platform is needed")
    found = machine.tree_motion(s.platform)
    active = [machine.tree.joint_names.index(name) for name in machine.joint_names]
    return dict(zip(MOTION, (part[..., active] for part in found[:4]), strict=True)) | _all_joints(machine, found)


def _all_joints(machine: Robot, found: Sequence[np.ndarray]) -> Answer:
    names = ("all_positions", "all_velocities", "all_accelerations", "all_jerks")
    return {"all_joints": machine.tree.joint_names, **dict(zip(names, found[:4], strict=True))}


def _platform_forward_kinematics(robot: Robot, s: RequestedState) -> Answer:
    machine = require(robot, "a platform", bool(robot.platforms), "a platform")
    found = machine.platform_motion(*_motion(s), guess=kind_arguments(robot, s).get("guess"))
    return {"pose": np.concatenate((found.position, quaternion(found.rotation)), axis=-1), "twist": found.velocity,
            "platform_acceleration": found.acceleration, "platform_jerk": found.jerk}


FORWARD_KINEMATICS = RequestHandler("compute_forward_kinematics", "poses and velocities of links, or of points of them",
                                    _forward_kinematics, STATE)
JACOBIANS = RequestHandler("compute_jacobians", "Jacobians of links, or of points of them, and their rates", _jacobians, STATE)
LOOP_CLOSURE = RequestHandler("compute_loop_closure", "motion of all joints of closed loops, or of legs, from the active "
                                                      "joints",
                              _loop_closure)
PLATFORM_INVERSE_KINEMATICS = RequestHandler("compute_platform_inverse_kinematics", "motion of actuators and legs by that of "
                                             "the platform", _platform_inverse_kinematics, ())
PLATFORM_FORWARD_KINEMATICS = RequestHandler("compute_platform_forward_kinematics", "motion of a platform by that of its "
                                             "actuators", _platform_forward_kinematics)


def _motor_motion(robot: Robot, s: RequestedState) -> Answer:
    names = robot.elastic_joints
    arm = require(robot, "motors of elastic joints", bool(names), "elastic_joints")
    found = arm.motor_motion(*derivatives_up_to(arm, s, arm.order), loads=s.loads, **kind_arguments(arm, s))
    elastic = [arm.joint_names.index(name) for name in names]
    return {"effort": found.tau, "effort_rate": found.tau_rate, "load": found.load, "elastic_joints": names,
            "motor_position": found.q_motor, "motor_velocity": found.qd_motor, "motor_acceleration": found.qdd_motor,
            "deflection": np.asarray(found.deflection[..., elastic])}


MOTOR_MOTION = RequestHandler("compute_motor_motion", "torques and motions of the motors of elastic joints", _motor_motion)


@lru_cache(maxsize=2)
def _regressor_kernel(tree: TreeDynamics) -> tuple[Regressor, list[dict[str, Any]]]:
    """Return the kernel and a row for each of its columns; cached, since a tree does not change."""
    model = unified(tree.model, tuple(tree.payloads.values()))
    found = base_parameters(model, tree.gravity_vector.tolist(), TERMS)
    columns = zip(found.names, found.units, found.values_in(model).tolist(), found.relations(), strict=True)
    rows = [dict(zip(("name", "unit", "value", "relation"), row, strict=True)) for row in columns]
    return Regressor(tree, [found.parameters[k] for k in found.kept]), rows


def _regressor_answer(robot: Robot, s: RequestedState) -> Answer:
    """Return the regressor and its rate.

    With closed loops, torques (55) of the active joints: G^T Y, with the rate Gd^T Y + G^T Yd. Accelerations and jerks of
    joints with springs are read as measured; their rows are the efforts of springs.
    """
    kernel, rows = _regressor_kernel(robot.tree)
    motion = [s.q, s.qd, s.qdd, s.qddd]
    if not robot.is_fixed_tree and (robot.has_moving_base or robot.roles.weights is not None or robot.roles.motors):
        raise InputError(f"the regressor: robot '{robot.name}' has a moving base, redundant motors, or elastic joints or "
                         "motors on links; this is for trees and loops on a fixed base, with or without springs")
    if not robot.loops:
        Y, Yd = kernel.with_rate(*motion)
        return {"parameters": rows, "regressor": Y, "regressor_rate": Yd}
    closed = robot.motion(*motion, **kind_arguments(robot, s))
    Y, Yd = kernel.with_rate(*closed[:4])
    G, Gd = (np.swapaxes(part, -1, -2) for part in (closed.G, closed.Gd))
    return {"parameters": rows, "regressor": G @ Y, "regressor_rate": Gd @ Y + G @ Yd}


REGRESSOR = RequestHandler("compute_regressor", "torque and its rate as linear functions of base parameters",
                           _regressor_answer)


REQUESTS: dict[str, RequestHandler] = {
    "torque": INVERSE_DYNAMICS,
    "forward": FORWARD_DYNAMICS,
    "matrix": MASS_MATRIX,
    "coriolis": CORIOLIS_MATRIX,
    "sensitivities": SENSITIVITIES,
    "wrenches": JOINT_WRENCHES,
    "wrench-sensitivities": WRENCH_SENSITIVITIES,
    "energy": ENERGY,
    "floating": FLOATING_INVERSE_DYNAMICS,
    "floating-forward": FLOATING_FORWARD_DYNAMICS,
    "kinematics": FORWARD_KINEMATICS,
    "jacobians": JACOBIANS,
    "loops": LOOP_CLOSURE,
    "platform": PLATFORM_FORWARD_KINEMATICS,
    "platform-joints": PLATFORM_INVERSE_KINEMATICS,
    "motors": MOTOR_MOTION,
    "regressor": REGRESSOR,
}


Rows = list[dict[str, Any]]


def tree(robot: TreeDynamics, floating_base: bool = False, limits: Limits | None = None) -> dict[str, Any]:
    """Return the tree, including payloads. Names, units and frames are those of rnea_msgs/srv/GetTree.

    floating_base : whether to return the base parameters for a floating base
    limits        : replace those of the robot
    """
    links = unified(robot.model, tuple(robot.payloads.values())).links
    return {
        "robot_name": robot.name,
        "root_link": robot.root_link,
        "gravity": robot.gravity_vector.tolist(),
        "total_mass": float(robot.total_mass),
        "joints": _joints(robot, limits or robot.limits),
        "links": [_link(link, robot.joint_names) for link in links],
        "frames": _frames(robot),
        "base_parameters": _base_parameters(robot, floating_base),
        "reconstruction_error": float(robot.reconstruction_error),
        "warnings": list(robot.warnings),
    }


def _joints(robot: TreeDynamics, limits: Limits) -> Rows:
    columns = {f.name: getattr(limits, f.name).tolist() for f in fields(limits)}
    return [{"name": name, "type": kind} | {quantity: column[k] for quantity, column in columns.items()}
            for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types, strict=True))]


def _link(link: Link, joint_names: tuple[str, ...]) -> dict[str, Any]:
    mass, *moments = ten(link.m, link.ms, link.J).tolist()
    return {"name": link.name, "joint": link.joint, "antecedent": link.parent, "sigma": link.sigma, **link.geometry._asdict(),
            "coordinate": "" if link.coordinate == NO_COORDINATE else joint_names[link.coordinate],
            "multiplier": link.multiplier, "offset": link.offset,
            "mass": mass, "first_moment": moments[:3], "inertia": moments[3:],
            "rotor_inertia": link.term.armature, "coulomb": link.term.coulomb, "viscous": link.term.viscous,
            "constant_effort": link.term.offset}


def _frames(robot: TreeDynamics) -> Rows:
    return [{"name": name, "link": frame.link, "position": frame.P.tolist(), "orientation": quaternion(frame.R).tolist()}
            for name, frame in robot.model.frames.items()]


@lru_cache(maxsize=2)
def _base_parameters(robot: TreeDynamics, floating_base: bool) -> Rows:
    """Return the base parameters. They are cached, because their computation takes seconds for a humanoid."""
    model = unified(robot.model, tuple(robot.payloads.values()))
    found = base_parameters(model, robot.gravity_vector.tolist(), free_root=floating_base)
    columns = zip(found.names, found.units, found.values_in(model).tolist(), found.relations(), strict=True)
    return [dict(zip(("name", "unit", "value", "relation"), row, strict=True)) for row in columns]


# ---------------------------------------------------------------------- trajectories
# For robots of every kind: the actuated joints move, torques are those of trajectory.link_side, a carried base is level and at
# rest. A trajectory in an answer is {joint_names, times (points,), positions, velocities, accelerations, effort (points, n)};
# jerk and effort_rate are separate arrays.


LEVEL_BASE_NOTE = "the base is assumed level and at rest; set gravity in the frame of the root link where it is tilted"
MAX_POINTS = 1_000_000
TRAJECTORY = ("positions", "velocities", "accelerations")


def retime(robot: Robot, request: Request, limits: Limits) -> Answer:
    """Retime a path.

    request: trajectory with joint_names, positions and velocities (rows, or empty); tolerance [rad, m]; rate [Hz];
             velocity_share, acceleration_share: shares of the limits, default 1
    """
    base, rate = default_base(robot), _rate(request)
    limits = limits.share(velocity=request.get("velocity_share", 1.0), acceleration=request.get("acceleration_share", 1.0))
    given = request["trajectory"]
    rows, moving = given["positions"], given.get("velocities") or []
    if moving and len(moving) != len(rows):
        raise InputError(f"{len(moving)} of {len(rows)} points have velocities; give velocities of all points, or of none")
    samples = [{"position": row} | ({"velocity": moving[k]} if moving else {}) for k, row in enumerate(rows)]
    state = read_request({"joint_names": given.get("joint_names"), "samples": samples}, robot.joint_names,
                         ("position", "velocity"))
    motion = retime_motion(robot, state.q, state.qd if moving else None, limits, float(request["tolerance"]), base=base)
    return {**_sampled(link_side(robot, base), motion, rate, state), "notes": _notes(robot, motion)}


def plan(robot: Robot, request: Request, limits: Limits, report: Report) -> Answer:
    """Plan a motion. request: fields of rnea_msgs/action/PlanMotion. An exception raised by report ends the planning."""
    base, rate = default_base(robot), _rate(request)
    (start, state), (goal, _) = (_end(robot, request, end) for end in ("start", "goal"))
    loads = state.loads
    if loads.wrench_rates:
        raise InputError(f"wrenches on {', '.join(loads.wrench_rates)} have rates; wrenches of a plan are constant: leave "
                         "rate empty")
    duration: Any = list(request.get("duration") or ()) or None
    motion = plan_motion(
        robot, start, goal, time=request["time_weight"], effort=request["effort_weight"], limits=limits,
        duration=duration, loads=loads,
        settings=PlanSettings(best_of=int(request["best_of"])), report=report, base=base,
        time_tolerance=request["time_tolerance"])
    sampled = _sampled(link_side(robot, base), motion, rate, state)
    return {**sampled, "objective": motion.objective, "notes": _notes(robot, motion)}


def _end(robot: Robot, request: Request, end: str) -> tuple[np.ndarray, RequestedState]:
    """Return q, qd and, if given, qdd: (2, n) or (3, n); and the state of the request."""
    sample = request[end]
    fields = ("position", "velocity", "acceleration") if len(sample.get("acceleration", ())) else ("position", "velocity")
    given = {"joint_names": request.get("joint_names"), "samples": [sample], "wrenches": request.get("wrenches")}
    try:
        state = read_request(given, robot.joint_names, fields)
    except InputError as error:
        raise InputError(f"{end}: {error}") from None
    return np.concatenate((state.q, state.qd, state.qdd))[:len(fields)], state


def _notes(robot: Robot, motion: Retimed | PlannedMotion) -> tuple[str, ...]:
    return (*motion.notes, *(() if default_base(robot) is None else (LEVEL_BASE_NOTE,)))


def _rate(request: Request) -> float:
    rate = float(request["rate"])
    if not (rate > 0.0 and math.isfinite(rate)):
        raise InputError(f"rate is {rate:g}; a number of points per second above zero is needed")
    return rate


def _sampled(robot: Robot, motion: Retimed | PlannedMotion, rate: float, state: RequestedState) -> Answer:
    """Return the samples in the order of the request; the last point is at the end."""
    count = math.ceil(motion.duration * rate * (1.0 - 1e-9))
    if count > MAX_POINTS:
        raise InputError(f"rate {rate:g} makes {count} points of {motion.duration:.6g} s; at most {MAX_POINTS} are allowed")
    t = np.append(np.arange(count) / rate, motion.duration)
    q, qd, qdd, qddd = motion(t)
    blocks = (q, qd, qdd, *robot.torque_and_rate(q, qd, qdd, qddd), qddd)
    *motions, effort, effort_rate, jerk = (block[:, state.answer_order] for block in blocks)
    points = dict(zip(TRAJECTORY, motions, strict=True))
    trajectory = {"joint_names": state.joint_names, "times": t, **points, "effort": effort}
    return {"duration": motion.duration, "trajectory": trajectory, "jerk": jerk, "effort_rate": effort_rate}
