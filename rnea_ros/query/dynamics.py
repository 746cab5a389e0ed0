"""Questions about torques, accelerations and the equations of motion, of robots of any kind."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InputError
from ..robots import kinds
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from .ask import MOTION, PUSHED, STATE, Answer, RequestHandler, along, coordinates, of_kind, of_motors, served
from .moving_base import free
from .request import RequestedState


def _inverse_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    motion, kind = along(robot, s, robot.order), of_kind(robot, s)
    asked: Any = robot  # by its face, with what its kind adds
    tau, tau_rate, gravity, gravity_rate = asked.dynamics(*motion, **kind)
    if any(s.loads):
        tau, tau_rate = asked.torque_and_rate(*motion, **s.loads._asdict(), **kind)
    return {"effort": tau, "effort_rate": tau_rate, "gravity_effort": gravity, "gravity_effort_rate": gravity_rate}


def _forward_dynamics(robot: AnyRobot, s: RequestedState) -> Answer:
    state = {**of_kind(robot, s), **of_motors(robot, s)}
    return {"acceleration": robot.forward_dynamics(s.q, s.qd, s.tau, wrenches=s.loads.wrenches, **state)}


def _mass_matrix(robot: AnyRobot, s: RequestedState) -> Answer:
    kind = of_kind(robot, s)
    bias = robot.bias(s.q, s.qd, wrenches=s.loads.wrenches, **kind, **of_motors(robot, s))
    return {"coordinates": coordinates(robot, s), "mass_matrix": robot.mass_matrix(s.q, **kind), "bias": bias,
            "gravity": robot.gravity(s.q, **kind)}


def _coriolis_matrix(robot: AnyRobot, s: RequestedState) -> Answer:
    return {"coriolis_matrix": served(robot, "coriolis")(s.q, s.qd, **of_kind(robot, s))}


def _sensitivities(robot: AnyRobot, s: RequestedState) -> Answer:
    kind, motion = of_kind(robot, s), along(robot, s, robot.order - 1)
    tables = served(robot, "sensitivities")(*motion, wrenches=s.loads.wrenches, world_wrenches=s.loads.world_wrenches, **kind)
    found = {f"deffort_d{x}": table for x, table in zip(MOTION, tables[:3], strict=False)}
    if tables[3:]:
        found["deffort_dhigher"] = np.stack(tables[3:], axis=1)
    if s.of_rate:
        if robot.order > len(MOTION) - 1:
            raise InputError(f"of_rate: the rates of robot '{robot.name}' depend on {robot.order} derivatives of q; "
                             "the answer has room for three, rate_sensitivities of Python for all")
        of_rate = served(robot, "rate_sensitivities")(s.q, s.qd, s.qdd, s.qddd, **s.loads._asdict(), **kind)
        found |= {f"drate_d{x}": table for x, table in zip(MOTION, of_rate, strict=True)}
    return found


def _joint_wrenches(robot: AnyRobot, s: RequestedState) -> Answer:
    found = served(robot, "joint_wrenches")(*along(robot, s, robot.order), **s.loads._asdict(), **of_kind(robot, s))
    return {**_rows(robot, found.joints), "wrench": found.wrench, "wrench_rate": found.rate}


def _wrench_sensitivities(robot: AnyRobot, s: RequestedState) -> Answer:
    found = served(robot, "joint_wrench_sensitivities")(s.q, s.qd, s.qdd, wrenches=s.loads.wrenches,
                                                        world_wrenches=s.loads.world_wrenches, **of_kind(robot, s))
    return {**_rows(robot, found.joints), "dwrench_dposition": found.dw_dq, "dwrench_dvelocity": found.dw_dqd,
            "dwrench_dacceleration": found.dw_dqdd}


def _rows(robot: AnyRobot, joints: tuple[str, ...]) -> Answer:
    children = {link.joint: link.name for link in kinds.tree(robot).model.links}
    return {"joints": joints, "links": tuple(children[joint] for joint in joints)}


def _energy(robot: AnyRobot, s: RequestedState) -> Answer:
    """Of a tree also where the request says how its base moves."""
    asked: Any = free(robot) if isinstance(robot, Robot) and s.base is not None else robot
    state = of_kind(asked, s)
    energy, mass_centre = asked.energy(s.q, s.qd, **state, **of_motors(robot, s)), asked.center_of_mass(s.q, s.qd, **state)
    linear, angular = np.split(mass_centre.momentum, 2, axis=-1)
    return {"center_of_mass": mass_centre.position, "center_of_mass_velocity": mass_centre.velocity, "linear_momentum": linear,
            "angular_momentum": angular, "kinetic_energy": energy.kinetic, "potential_energy": energy.potential,
            "power": (s.qd * s.tau).sum(axis=-1)}


INVERSE_DYNAMICS = RequestHandler("compute_inverse_dynamics", "torque, torque rate, and the share of gravity in both",
                                  _inverse_dynamics, roots=True)
FORWARD_DYNAMICS = RequestHandler("compute_forward_dynamics", "acceleration under given efforts", _forward_dynamics,
                                  (*PUSHED, "motor_position", "motor_velocity"))
MASS_MATRIX = RequestHandler("compute_mass_matrix", "mass matrix, bias and gravity torques", _mass_matrix,
                             (*STATE, "motor_position", "motor_velocity"))
CORIOLIS_MATRIX = RequestHandler("compute_coriolis_matrix", "Coriolis matrix: its product with the velocity is a torque",
                                 _coriolis_matrix, STATE)
SENSITIVITIES = RequestHandler("compute_sensitivities", "partial derivatives of the torque, and with of_rate of its rate",
                               _sensitivities, roots=True)
JOINT_WRENCHES = RequestHandler("compute_joint_wrenches", "force and moment inside every joint, and their rates",
                                _joint_wrenches, roots=True)
WRENCH_SENSITIVITIES = RequestHandler("compute_joint_wrench_sensitivities",
                                      "partial derivatives of the force and moment inside every joint",
                                      _wrench_sensitivities, MOTION[:3], roots=True)
ENERGY = RequestHandler("compute_energy", "centre of mass, momentum, energy, power", _energy,
                        (*PUSHED, "motor_position", "motor_velocity"))
