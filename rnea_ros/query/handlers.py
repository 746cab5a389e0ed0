"""What a robot answers to a request: each question is one call of the library, its answer plain arrays by name.

The services of query_node and `rnea query` are both made of these. question.py says what a request is. Every array of an
answer has the samples first; those of joints follow the names of the request.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..robots.floating import FloatingRobot
from ..robots.inputs.base_state import BaseState
from ..robots.robot import Robot
from .request import Base, Request, RequestedState, read

Answer = dict[str, Any]
AT_REST = Base(BaseState(), np.zeros(6), np.zeros(6))
MOTION = ("position", "velocity", "acceleration", "jerk")


class RequestHandler(NamedTuple):
    """needed: the fields of a sample that are read; roots: whether wrenches may be seen in the root link's frame."""

    answer: Callable[[Robot, RequestedState], Answer]
    needed: Sequence[str] = MOTION
    roots: bool = False


# Axes of joints, last ones first, of every array that has any.
JOINT_AXES = {"effort": 1, "effort_rate": 1, "gravity_effort": 1, "gravity_effort_rate": 1, "acceleration": 1, "bias": 1,
              "gravity": 1, "mass_matrix": 2} | {f"d{y}_d{x}": 2 for y in ("effort", "rate") for x in MOTION}


def ask(robot: Robot, question: RequestHandler, request: Request) -> Answer:
    """The answer, with joint_names. Raises InputError."""
    state = read(request, robot.joint_names, question.needed)
    held = list(state.loads.world_wrenches)
    if held and not question.roots:
        raise InputError(f"the wrench on link '{held[0]}' is in frame 'root'; here only frame 'link' is allowed")
    with np.errstate(all="ignore"):  # what comes of it is said in words
        answer = question.answer(robot, state)
    return {"joint_names": state.joint_names} | {name: _checked(name, value, state) for name, value in answer.items()}


def _checked(name: str, value: Any, state: RequestedState) -> Any:
    """An array, finite and in the order of the request; what is no array as it is."""
    if not isinstance(value, np.ndarray):
        return value
    if not np.isfinite(value).all():
        raise InputError(f"{name} comes out too large for a finite number; the state is too extreme")
    for axis in range(JOINT_AXES.get(name, 0)):
        value = value.take(state.answer_order, axis=-1 - axis)
    return value


def free(robot: Robot) -> FloatingRobot:
    """The same robot, its base set free. Links and kernels are shared: what is compiled for one serves the other."""
    twin = copy.copy(robot)
    twin.model = replace(robot.model, base="floating")
    return FloatingRobot(twin)


# ---------------------------------------------------------------------- fixed base

def _inverse_dynamics(robot: Robot, s: RequestedState) -> Answer:
    tau, tau_rate, gravity, gravity_rate = robot.dynamics(s.q, s.qd, s.qdd, s.qddd)
    if any(s.loads):
        tau, tau_rate = robot.torque_and_rate(s.q, s.qd, s.qdd, s.qddd, **s.loads._asdict())
    return {"effort": tau, "effort_rate": tau_rate, "gravity_effort": gravity, "gravity_effort_rate": gravity_rate}


def _forward_dynamics(robot: Robot, s: RequestedState) -> Answer:
    return {"acceleration": robot.forward_dynamics(s.q, s.qd, s.tau, wrenches=s.loads.wrenches)}


def _mass_matrix(robot: Robot, s: RequestedState) -> Answer:
    bias = robot.bias(s.q, s.qd, wrenches=s.loads.wrenches)
    return {"mass_matrix": robot.mass_matrix(s.q), "bias": bias, "gravity": robot.gravity(s.q)}


def _sensitivities(robot: Robot, s: RequestedState) -> Answer:
    of_effort = robot.sensitivities(s.q, s.qd, s.qdd, wrenches=s.loads.wrenches, world_wrenches=s.loads.world_wrenches)
    of_rate = robot.rate_sensitivities(s.q, s.qd, s.qdd, s.qddd, **s.loads._asdict()) if s.of_rate else ()
    return {f"deffort_d{x}": table for x, table in zip(MOTION, of_effort, strict=False)} | {
        f"drate_d{x}": table for x, table in zip(MOTION, of_rate, strict=False)}


def _joint_wrenches(robot: Robot, s: RequestedState) -> Answer:
    found = robot.joint_wrenches(s.q, s.qd, s.qdd, s.qddd, **s.loads._asdict())
    children = {link.joint: link.name for link in robot.model.links}
    return {"joints": found.joints, "links": tuple(children[joint] for joint in found.joints),
            "wrench": found.wrench, "wrench_rate": found.rate}


def _energy(robot: Robot, s: RequestedState) -> Answer:
    if s.base is None:
        energy, mass_centre = robot.energy(s.q, s.qd), robot.center_of_mass(s.q, s.qd)
    else:
        floating, base = free(robot), s.base.state
        energy, mass_centre = floating.energy(s.q, s.qd, base=base), floating.center_of_mass(s.q, s.qd, base=base)
    linear, angular = np.split(mass_centre.momentum, 2, axis=-1)
    return {"center_of_mass": mass_centre.position, "center_of_mass_velocity": mass_centre.velocity, "linear_momentum": linear,
            "angular_momentum": angular, "kinetic_energy": energy.kinetic, "potential_energy": energy.potential,
            "power": robot.power(s.qd, s.tau)}


# ---------------------------------------------------------------------- base that moves

def _floating_inverse_dynamics(robot: Robot, s: RequestedState) -> Answer:
    base, motion = s.base or AT_REST, (s.q, s.qd, s.qdd, s.qddd)
    loads: dict[str, Any] = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    if s.base_motion_given:
        tau, tau_rate, wrench, wrench_rate = free(robot).prescribed_base(
            *motion, base=base.state, base_acceleration=base.acceleration, base_jerk=base.jerk, **loads)
        acceleration, jerk = (np.broadcast_to(x, wrench.shape) for x in (base.acceleration, base.jerk))
    else:
        acceleration, jerk, tau, tau_rate = free(robot).free_rates(*motion, base=base.state, **loads)
        wrench = wrench_rate = np.zeros(acceleration.shape)  # nothing holds it
    return {"base_acceleration": acceleration, "base_jerk": jerk, "effort": tau, "effort_rate": tau_rate,
            "base_wrench": wrench, "base_wrench_rate": wrench_rate}


def _floating_forward_dynamics(robot: Robot, s: RequestedState) -> Answer:
    base = s.base or AT_REST
    acceleration, qdd = free(robot).free_response(s.q, s.qd, s.tau, base=base.state, wrenches=s.loads.wrenches)
    return {"base_acceleration": acceleration, "acceleration": qdd}


INVERSE_DYNAMICS = RequestHandler(_inverse_dynamics, roots=True)
FORWARD_DYNAMICS = RequestHandler(_forward_dynamics, ("position", "velocity", "effort"))
MASS_MATRIX = RequestHandler(_mass_matrix, ("position", "velocity"))
SENSITIVITIES = RequestHandler(_sensitivities, roots=True)
JOINT_WRENCHES = RequestHandler(_joint_wrenches, roots=True)
ENERGY = RequestHandler(_energy, ("position", "velocity", "effort"))
FLOATING_INVERSE_DYNAMICS = RequestHandler(_floating_inverse_dynamics)
FLOATING_FORWARD_DYNAMICS = RequestHandler(_floating_forward_dynamics, ("position", "velocity", "effort"))
