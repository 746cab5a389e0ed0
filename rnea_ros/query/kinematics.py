"""Questions about where links are and how they move, and about joints, loops and platforms that follow the motors."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..robots import kinds
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import quaternion
from ..robots.protocol import AnyRobot
from .ask import MOTION, STATE, Answer, RequestHandler, coordinates, of_kind, only
from .request import RequestedState

Row = np.ndarray


def _points(robot: AnyRobot, s: RequestedState) -> Iterator[tuple[str, Row]]:
    names = s.links or kinds.links(robot)
    return zip(names, np.broadcast_to(s.points, (len(names), 3)), strict=True)


def _each(robot: AnyRobot, s: RequestedState, of_link: Callable[[str, Row], Row]) -> np.ndarray:
    """(samples, links, ...)."""
    return np.stack([of_link(link, point) for link, point in _points(robot, s)], axis=1)


def _forward_kinematics(robot: AnyRobot, s: RequestedState) -> Answer:
    kind = of_kind(robot, s)

    def pose(link: str, point: Row) -> Row:
        found = robot.link_pose(link, s.q, point, **kind)
        return np.concatenate((found.p, quaternion(found.R)), axis=-1)

    return {"links": tuple(s.links or kinds.links(robot)), "pose": _each(robot, s, pose),
            "twist": _each(robot, s, lambda link, point: robot.link_velocity(link, s.q, s.qd, point, **kind))}


def _jacobians(robot: AnyRobot, s: RequestedState) -> Answer:
    kind = of_kind(robot, s)
    return {"links": tuple(s.links or kinds.links(robot)), "coordinates": coordinates(robot, s, motors=False),
            "jacobian": _each(robot, s, lambda link, point: robot.jacobian(link, s.q, point, **kind)),
            "jacobian_rate": _each(robot, s, lambda link, point: robot.jacobian_rate(link, s.q, s.qd, point, **kind))}


# ---------------------------------------------------------------------- what follows the motors


def _motion(s: RequestedState) -> tuple[np.ndarray, ...]:
    return s.q, s.qd, s.qdd, s.qddd


def _loop_closure(robot: AnyRobot, s: RequestedState) -> Answer:
    machine = only(robot, "passive joints", GeneralRobot)
    found = machine.motion(*_motion(s), guess=of_kind(robot, s).get("guess"))
    return {**_all_joints(machine, found), "active_jacobian": found.G}


def _platform_inverse_kinematics(robot: AnyRobot, s: RequestedState) -> Answer:
    machine = only(robot, "a platform", GeneralRobot)
    found = machine.tree_motion(s.platform)
    active = [machine.tree.joint_names.index(name) for name in machine.joint_names]
    return dict(zip(MOTION, (part[..., active] for part in found[:4]), strict=True)) | _all_joints(machine, found)


def _all_joints(machine: AnyRobot, found: Sequence[np.ndarray]) -> Answer:
    names = ("all_positions", "all_velocities", "all_accelerations", "all_jerks")
    return {"all_joints": kinds.tree(machine).joint_names, **dict(zip(names, found[:4], strict=True))}


def _platform_forward_kinematics(robot: AnyRobot, s: RequestedState) -> Answer:
    found = only(robot, "a platform", GeneralRobot).platform_motion(*_motion(s), guess=of_kind(robot, s).get("guess"))
    return {"pose": np.concatenate((found.position, quaternion(found.rotation)), axis=-1), "twist": found.velocity,
            "platform_acceleration": found.acceleration, "platform_jerk": found.jerk}


FORWARD_KINEMATICS = RequestHandler("compute_forward_kinematics", "poses and velocities of links, or of points of them",
                                    _forward_kinematics, STATE)
JACOBIANS = RequestHandler("compute_jacobians", "Jacobians of links, or of points of them, and their rates", _jacobians, STATE)
LOOP_CLOSURE = RequestHandler("compute_loop_closure", "motion of all joints of closed loops, or of legs, by the active ones",
                              _loop_closure)
PLATFORM_INVERSE_KINEMATICS = RequestHandler("compute_platform_inverse_kinematics", "motion of actuators and legs by that of "
                                             "the platform", _platform_inverse_kinematics, ())
PLATFORM_FORWARD_KINEMATICS = RequestHandler("compute_platform_forward_kinematics", "motion of a platform by that of its "
                                             "actuators", _platform_forward_kinematics)
