"""Answers of all requests, and the table of the requests by name.

Each answer is one call of the library; its values are plain arrays by name. query_node and `rnea query` serve the same table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import Any

import numpy as np

from ..algorithms.base_parameters import base_parameters
from ..algorithms.inertial_parameters import TERMS, ten
from ..errors import InputError
from ..identification.identification import Regressor
from ..model.tree import NO_COORDINATE, Limits, Link
from ..planning.bspline import PlannedMotion
from ..planning.problem import PlanSettings, Report
from ..robots.inputs.base_state import quaternion
from ..robots.inputs.conditions import unified
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics
from ..trajectory.link_side import default_base, link_side
from ..trajectory.plan_motion import plan_motion
from ..trajectory.retiming import Retimed, retime_motion
from .request import (
    AT_REST,
    MOTION,
    STATE,
    STATE_AND_EFFORT,
    Answer,
    Request,
    RequestedState,
    RequestHandler,
    coordinates,
    derivatives_up_to,
    kind_arguments,
    motor_arguments,
    read_request,
    require,
)

MAX_FREE_ROBOTS = 4  # robots whose free bases keep their kernels


@lru_cache(maxsize=MAX_FREE_ROBOTS)
def with_free_base(robot: Robot) -> Robot:
    """Return the same robot with a free base. Links and kernels are shared."""
    return Robot(robot.tree.with_free_base(), {"base": "floating"})


def _moving_robot(robot: Robot, s: RequestedState) -> tuple[Robot, dict[str, Any]]:
    """Return the robot with a free base, and the keywords of its state."""
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


def _points(robot: Robot, s: RequestedState) -> Iterator[tuple[str, Row]]:
    names = s.links or robot.links
    return zip(names, np.broadcast_to(s.points, (len(names), 3)), strict=True)


def _each(robot: Robot, s: RequestedState, of_link: Callable[[str, Row], Row]) -> np.ndarray:
    """Return an array (samples, links, ...)."""
    return np.stack([of_link(link, point) for link, point in _points(robot, s)], axis=1)


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
    """Return the tree, payloads included. Names, units and frames are those of rnea_msgs/srv/GetTree.

    floating_base : base parameters for a free base
    limits        : instead of the robot's
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
    """Return the base parameters; cached, since they take seconds for a humanoid and a Robot does not change."""
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
    """Retime a path. request: trajectory with joint_names, positions and velocities (rows, or empty); tolerance [rad, m]; rate
    [Hz]; velocity_share, acceleration_share: of the limits, default 1.
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
