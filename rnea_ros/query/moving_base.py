"""Questions about a base that moves: of trees as their URDF has them, and of robots whose robot file says that it does."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..errors import InputError
from ..robots import kinds
from ..robots.general import GeneralRobot
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from .ask import AT_REST, MOTION, PUSHED, Answer, RequestHandler, of_kind, of_motors, only
from .request import RequestedState

KEPT = 4  # robots whose free bases keep their kernels


@lru_cache(maxsize=KEPT)
def free(robot: Robot) -> GeneralRobot:
    """Return the same robot whose base is free. Links and kernels are shared."""
    tree = copy.copy(robot)
    tree.model = replace(robot.model, base="floating")
    return GeneralRobot(tree, {"base": "floating"})


def _moving(robot: AnyRobot, s: RequestedState) -> tuple[GeneralRobot, dict[str, Any]]:
    """Return the robot with its base free, and the keywords that say how it is and moves."""
    found = only(robot, "a base that moves", Robot, GeneralRobot)
    if isinstance(found, Robot):
        found = free(found)
    if not kinds.has_moving_base(found):
        raise InputError(f"a base that moves: robot '{robot.name}' stands on a fixed base; set base to floating or prescribed "
                         "in its robot file")
    return found, of_kind(found, s)


def _inverse_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    moving, kind = _moving(robot, s)
    base = s.base or AT_REST
    given: dict[str, Any] = {"base_acceleration": base.acceleration, "base_jerk": base.jerk} if s.base_motion_given else {}
    found = moving.solve(s.q, s.qd, s.qdd, s.qddd, *s.higher, wrenches=s.loads.wrenches, wrench_rates=s.loads.wrench_rates,
                         **kind, **given)
    return {"base_acceleration": found.base_acceleration, "base_jerk": found.base_jerk, "effort": found.torques[..., 0, :],
            "effort_rate": found.torques[..., 1, :], "base_wrench": found.base_wrench,
            "base_wrench_rate": found.base_wrench_rate}


def _forward_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    moving, kind = _moving(robot, s)
    found = moving.response(s.q, s.qd, s.tau, wrenches=s.loads.wrenches, **kind, **of_motors(robot, s))
    qdd = [found.positions[name][..., 2] for name in moving.joint_names]
    return {"base_acceleration": found.base_acceleration, "acceleration": np.array(qdd).T.reshape(-1, moving.n)}


INVERSE_DYNAMICS = RequestHandler("compute_floating_inverse_dynamics", "torque and rate with a base that is free or moves as "
                                  "given", _inverse_dynamics, MOTION)
FORWARD_DYNAMICS = RequestHandler("compute_floating_forward_dynamics", "acceleration of a free base and its joints under "
                                  "given efforts", _forward_dynamics, PUSHED)
