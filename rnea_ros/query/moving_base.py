"""Questions about a base that moves: of trees as their URDF has them, and of robots whose robot file says that it does."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..robots.floating import FloatingRobot
from ..robots.floating_closed_loops import FloatingLoopRobot
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from .ask import AT_REST, MOTION, PUSHED, Answer, RequestHandler, of_kind, only
from .request import RequestedState


def free(robot: Robot) -> FloatingRobot:
    """The same robot, its base set free. Links and kernels are shared: what is compiled for one serves the other."""
    twin = copy.copy(robot)
    twin.model = replace(robot.model, base="floating")
    return FloatingRobot(twin)


def _moving(robot: AnyRobot, s: RequestedState) -> tuple[Any, dict[str, Any]]:
    """The robot with its base free, and the keywords that say how it is and moves."""
    found = only(robot, "a base that moves", Robot, FloatingRobot, FloatingLoopRobot)
    if isinstance(found, Robot):
        found = free(found)
    return found, of_kind(found, s)


def _inverse_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    moving, kind = _moving(robot, s)
    base, motion = s.base or AT_REST, (s.q, s.qd, s.qdd, s.qddd)
    loads: dict[str, Any] = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    if s.base_motion_given:
        tau, tau_rate, wrench, wrench_rate = moving.prescribed_base(
            *motion, base_acceleration=base.acceleration, base_jerk=base.jerk, **kind, **loads)
        acceleration, jerk = (np.broadcast_to(x, wrench.shape) for x in (base.acceleration, base.jerk))
    else:
        acceleration, jerk, tau, tau_rate = moving.free_rates(*motion, **kind, **loads)
        wrench = wrench_rate = np.zeros(acceleration.shape)  # nothing holds it
    return {"base_acceleration": acceleration, "base_jerk": jerk, "effort": tau, "effort_rate": tau_rate,
            "base_wrench": wrench, "base_wrench_rate": wrench_rate}


def _forward_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    moving, kind = _moving(robot, s)
    acceleration, qdd = moving.free_response(s.q, s.qd, s.tau, wrenches=s.loads.wrenches, **kind)
    return {"base_acceleration": acceleration, "acceleration": qdd}


INVERSE_DYNAMICS = RequestHandler("compute_floating_inverse_dynamics", "torque and rate with a base that is free or moves as "
                                  "given", _inverse_dynamics, MOTION)
FORWARD_DYNAMICS = RequestHandler("compute_floating_forward_dynamics", "acceleration of a free base and its joints under "
                                  "given efforts", _forward_dynamics, PUSHED)
