"""How a robot of any kind is asked: what a question is, what the kind adds to a call, the order of the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.equations import BASE
from ..errors import InputError, some
from ..robots import kinds
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import BaseState
from ..robots.protocol import AnyRobot
from .request import Base, Request, RequestedState, read

Answer = dict[str, Any]
AT_REST = Base(BaseState(), np.zeros(6), np.zeros(6))
MOTION = ("position", "velocity", "acceleration", "jerk")
STATE = ("position", "velocity")
PUSHED = (*STATE, "effort")


class RequestHandler(NamedTuple):
    """One question, the same for `rnea query` and query_node.

    service : its name in query_node
    text    : what is answered, in a few words
    answer  : each value a plain array, its samples first
    needed  : the fields of a sample that are read
    roots   : whether wrenches may be seen in the root link's frame
    """

    service: str
    text: str
    answer: Callable[[Any, RequestedState], Answer]
    needed: Sequence[str] = MOTION
    roots: bool = False


# Axes of joints of every array that has any.
JOINT_AXES = dict.fromkeys(
    ("effort", "effort_rate", "gravity_effort", "gravity_effort_rate", "acceleration", "bias", "gravity", "velocity", "jerk",
     "position", "load", "jacobian", "jacobian_rate", "active_jacobian", *(f"dwrench_d{x}" for x in MOTION)), (-1,)) | (
    dict.fromkeys(("mass_matrix", "coriolis_matrix", "deffort_dhigher", *(f"d{y}_d{x}" for y in ("effort", "rate")
                                                                           for x in MOTION)), (-2, -1))) | (
    dict.fromkeys(("regressor", "regressor_rate"), (-2,)))


def ask(robot: AnyRobot, question: RequestHandler, request: Request) -> Answer:
    """The answer, with joint_names. Raises InputError."""
    state = read(request, robot.joint_names, question.needed)
    held = list(state.loads.world_wrenches)
    if held and not question.roots:
        raise InputError(f"the wrench on link '{held[0]}' is in frame 'root'; here only frame 'link' is allowed")
    with np.errstate(all="ignore"):  # what comes of it is said in words
        answer = question.answer(robot, state)
    return {"joint_names": state.joint_names} | {name: _checked(robot, name, value, state) for name, value in answer.items()}


def _checked(robot: AnyRobot, name: str, value: Any, state: RequestedState) -> Any:
    """An array, finite and in the order of the request; what is no array as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if not np.isfinite(value).all():
        raise InputError(f"{name} comes out too large for a finite number; the state is too extreme")
    for axis in JOINT_AXES.get(name, ()):
        value = value.take(_places(robot, value.shape[axis], state), axis=axis)
    return value


def _places(robot: AnyRobot, size: int, state: RequestedState) -> list[int]:
    """Numbers of all that moves, in the order of the answer: the base's six first, the motors of elastic joints last."""
    n = robot.n
    before = len(BASE) if size > n and kinds.has_moving_base(robot) else 0
    return [*range(before), *(before + state.answer_order), *range(before + n, size)]


# ---------------------------------------------------------------------- what kinds of robots differ in


def coordinates(robot: AnyRobot, s: RequestedState, motors: bool = True) -> tuple[str, ...]:
    """Names of all that moves, in the order of the answer. motors: whether those of elastic joints count."""
    behind = robot.elastic_joints if motors and isinstance(robot, GeneralRobot) else ()
    return (*(BASE if kinds.has_moving_base(robot) else ()), *s.joint_names, *(f"motor of {name}" for name in behind))


def along(robot: AnyRobot, s: RequestedState, order: int) -> tuple[np.ndarray, ...]:
    """q and its derivatives up to the order, as far as they were given."""
    return (s.q, s.qd, s.qdd, s.qddd, *s.higher)[:order + 1]


def of_kind(robot: AnyRobot, s: RequestedState) -> dict[str, Any]:
    """Keywords that the robot's kind adds to every call: the state of a base that moves, the branch of closed loops."""
    found: dict[str, Any] = {}
    if kinds.has_moving_base(robot):
        found["base"] = (s.base or AT_REST).state
    elif s.base is not None:
        raise InputError(f"base is given, but that of robot '{robot.name}' ({type(robot).__name__}) stands still here; ask "
                         "the services whose name has 'floating' in it, or let the robot file say 'base: floating'")
    if s.guess is not None:
        found["guess"] = _guess(robot, s.guess)
    return found


def _guess(robot: AnyRobot, given: Any) -> Any:
    if isinstance(robot, GeneralRobot) and robot.platforms and given.platform is not None:
        return given.platform
    if isinstance(robot, GeneralRobot) and robot.loops and given.position:
        names = robot.tree.joint_names
        missing = [name for name in names if name not in given.position]
        if missing:
            raise InputError(f"guess lacks {some(missing, quoted=True)}; a pose of all joints is needed: {some(names)}")
        return np.array([given.position[name] for name in names])
    if isinstance(robot, GeneralRobot) and robot.loops:
        needed = f"{'guess.platform, or ' if robot.platforms else ''}guess.joint_names and guess.position"
        raise InputError(f"guess of robot '{robot.name}' ({type(robot).__name__}): {needed} is needed")
    raise InputError(f"guess is given, but robot '{robot.name}' ({type(robot).__name__}) has no closed loops")


def of_motors(robot: AnyRobot, s: RequestedState) -> dict[str, Any]:
    """The state of the motors of elastic joints, which springs pull by."""
    if not isinstance(robot, GeneralRobot) or not robot.elastic_joints:
        return {}
    columns = [robot.joint_names.index(name) for name in robot.elastic_joints]
    given = {"q_motor": s.motor_position, "qd_motor": s.motor_velocity}
    return {name: None if value is None else value[:, columns] for name, value in given.items()}


def served(robot: AnyRobot, name: str) -> Callable[..., Any]:
    """A method that not every kind of robot has; InputError for those that do not."""
    if not hasattr(robot, name):
        raise InputError(f"{name.replace('_', ' ')} of robot '{robot.name}': no algorithm here gives it for a "
                         f"{type(robot).__name__}")
    return getattr(robot, name)


def only(robot: AnyRobot, what: str, *allowed: type) -> Any:
    """The robot, if it is of a kind that has an answer."""
    if not isinstance(robot, allowed):
        raise InputError(f"{what}: robot '{robot.name}' is a {type(robot).__name__}; this is for "
                         f"{' or '.join(kind.__name__ for kind in allowed)}, see docs/robot_file.md")
    return robot

