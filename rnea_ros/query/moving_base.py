"""Questions about a base that moves: of trees as their URDF has them, and of robots whose robot file says that it does."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ..algorithms.equations import BASE
from ..errors import InputError
from ..robots import kinds
from ..robots.floating import FloatingRobot
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import BaseState
from ..robots.inputs.combined_motion import base_motion_of
from ..robots.inputs.validation import at_sample
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from .ask import AT_REST, MOTION, PUSHED, Answer, RequestHandler, of_kind, of_motors, only
from .request import RequestedState


def free(robot: Robot) -> FloatingRobot:
    """The same robot, its base set free. Links and kernels are shared: what is compiled for one serves the other."""
    twin = copy.copy(robot)
    twin.model = replace(robot.model, base="floating")
    return FloatingRobot(twin)


def _moving(robot: AnyRobot, s: RequestedState) -> tuple[Any, dict[str, Any]]:
    """The robot with its base free, and the keywords that say how it is and moves."""
    found = only(robot, "a base that moves", Robot, FloatingRobot, GeneralRobot)
    if isinstance(found, Robot):
        found = free(found)
    if not kinds.has_moving_base(found):
        raise InputError(f"a base that moves: robot '{robot.name}' stands on a fixed base; set base to floating or prescribed "
                         "in its robot file")
    return found, of_kind(found, s)


def _of_combination(robot: GeneralRobot, s: RequestedState, kind: dict[str, Any]) -> Answer:
    """Answer of a robot that one formulation serves, sample by sample."""
    base, found = s.base or AT_REST, []
    given = {"base_acceleration": base.acceleration, "base_jerk": base.jerk} if s.base_motion_given else {}
    pushed = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    guess = kind.get("guess")
    for k in range(len(s.q)):
        def row(values: Any, k: int = k) -> Any:
            return values[k] if np.ndim(values) == 2 else values

        state = BaseState(*map(row, (base.state.position, base.state.quaternion, base.state.velocity)))
        loads: dict[str, Any] = {name: {link: row(six) for link, six in (links or {}).items()}
                                 for name, links in pushed.items()}
        with at_sample(k):
            solved = robot.solve(*(row(x) for x in (s.q, s.qd, s.qdd, s.qddd, *s.higher)), base=state, guess=guess,
                                 **{name: row(value) for name, value in given.items()}, **loads)
        guess = np.array([solved.positions[name][0] for name in robot.tree.joint_names])
        _, acceleration, jerk = base_motion_of(state, solved.base)
        wrench = [solved.efforts[name][:2] if name in solved.efforts else np.zeros(2) for name in BASE]
        found.append((acceleration, jerk, *robot.torques(solved), *np.transpose(wrench)))
    names = ("base_acceleration", "base_jerk", "effort", "effort_rate", "base_wrench", "base_wrench_rate")
    sizes = (6, 6, robot.n, robot.n, 6, 6)
    return {name: np.array([row[k] for row in found]).reshape(len(found), size)
            for k, (name, size) in enumerate(zip(names, sizes, strict=True))}


def _inverse_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    moving, kind = _moving(robot, s)
    if isinstance(moving, GeneralRobot):
        return _of_combination(moving, s, kind)
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
    if isinstance(moving, GeneralRobot):
        response = moving.response(s.q, s.qd, s.tau, wrenches=s.loads.wrenches, **kind, **of_motors(robot, s))
        accelerations = np.array([found.base[1] for found in response]).reshape(len(response), 6)
        qdd = [[found.positions[name][2] for name in moving.joint_names] for found in response]
        return {"base_acceleration": kind["base"].classical(accelerations), "acceleration": np.array(qdd)}
    acceleration, qdd = moving.free_response(s.q, s.qd, s.tau, wrenches=s.loads.wrenches, **kind)
    return {"base_acceleration": acceleration, "acceleration": qdd}


INVERSE_DYNAMICS = RequestHandler("compute_floating_inverse_dynamics", "torque and rate with a base that is free or moves as "
                                  "given", _inverse_dynamics, MOTION)
FORWARD_DYNAMICS = RequestHandler("compute_floating_forward_dynamics", "acceleration of a free base and its joints under "
                                  "given efforts", _forward_dynamics, PUSHED)
