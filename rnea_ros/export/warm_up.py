"""Warm-up: every call of a robot once, so that all kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import InputError
from ..robots.inputs.base_state import BaseState
from ..robots.inputs.conditions import Loads, MotorState
from ..robots.inputs.platform_motion import PlatformMotion
from ..robots.robot import Robot


def warm_up(robot: Robot, links: Iterable[str] = ()) -> list[str]:
    """Call every function of a robot; return the names of those that have an answer.

    links: links with external wrenches, each alone, and with poses and Jacobians
    """
    motion = list(robot.home_motion)
    state: dict[str, Any] = {"base": BaseState()} if robot.has_moving_base else {}
    calls = _calls(robot, motion, state)
    for link in links:
        calls |= _calls_on(robot, link, motion, state)
    made = []
    for name, call in calls.items():
        try:
            call()
            made.append(name)
        except InputError:  # of a kind that has no answer, or of a robot at a singular pose: the kernel is compiled by then
            continue
    return made


def _calls_on(robot: Any, link: str, motion: list[Any], state: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    q, load = motion[0], {link: np.zeros(6)}
    rates = Loads(load, load)
    return {f"link_pose {link}": lambda: robot.link_pose(link, q, **state),
            f"jacobian {link}": lambda: robot.jacobian(link, q, **state),
            f"inverse_dynamics {link}": lambda: robot.inverse_dynamics(*motion[:robot.order], loads=Loads(load), **state),
            f"torque_and_rate {link}": lambda: robot.torque_and_rate(*motion, loads=rates, **state),
            f"dynamics {link}": lambda: robot.dynamics(*motion, loads=rates, **state)}


def _calls(robot: Robot, motion: list[Any], state: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    q, qd, still = motion[0], motion[1], np.zeros(robot.n)
    to_torque = motion[:robot.order]
    moved = dict(state)
    if robot.elastic_joints:
        rest = np.zeros(len(robot.elastic_joints))
        moved["motors"] = MotorState(rest, rest)
    calls: dict[str, Callable[[], Any]] = {
        "torque_and_rate": lambda: robot.torque_and_rate(*motion, **state),
        "inverse_dynamics": lambda: robot.inverse_dynamics(*to_torque, **state),
        "dynamics": lambda: robot.dynamics(*motion, **state),
        "gravity": lambda: robot.gravity(q, **state), "mass_matrix": lambda: robot.mass_matrix(q, **state),
        "bias": lambda: robot.bias(q, qd, **moved), "coriolis": lambda: robot.coriolis(q, qd, **state),
        "forward_dynamics": lambda: robot.forward_dynamics(q, qd, still, **moved),
        "sensitivities": lambda: robot.sensitivities(*to_torque, **state),
        "rate_sensitivities": lambda: robot.rate_sensitivities(*motion, **state),
        "joint_wrenches": lambda: robot.joint_wrenches(*motion[:3], **state),
        "joint_wrench_rates": lambda: robot.joint_wrenches(*motion[:4], **state)}
    if moved != state:
        calls["motor_motion"] = lambda: robot.motor_motion(*motion, **state)
    if robot.is_fixed_tree:
        calls |= {"torque_deviations": lambda: robot.torque_deviations(q, qd, still, still, np.zeros((4, robot.n))),
                  "energy": lambda: robot.energy(q, qd)}
    if len(robot.platforms) == 1:
        calls["platform"] = lambda: robot.torque_and_rate(motion=PlatformMotion(*robot.home))
    if robot.loops:
        calls |= {"motion": lambda: robot.motion(*motion[:4]), "close": robot.closure.compile}
    if robot.has_moving_base:
        carried = BaseState(rates=np.zeros((robot.order, 6)))
        calls["prescribed_base"] = lambda: robot.torque_and_rate(*motion, base=carried)
    return calls
