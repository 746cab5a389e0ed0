"""Robots as paths see them: the links' side of springs, and robots without Coulomb friction.

A path and a time law give three derivatives of position. They decide the torques of trees, loops and platforms. With elastic
joints they decide the torque of each spring; the motor's torque takes two derivatives more. Coulomb friction jumps where a
joint reverses, which no motion passes at a finite torque rate: it is taken off the limits instead.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..algebra.vectors import Array
from ..errors import InputError, some
from ..model.drives import DriveLimit
from ..model.tree import JointDynamics, Model
from ..robots.inputs.base_state import BaseState
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics

Kind = TypeVar("Kind", TreeDynamics, Robot)


def coulomb_friction(model: Model) -> Array:
    """(n,) the largest that Coulomb friction can take of each coordinate's torque, its mimic joints' included.

    Of friction by load, that of no load.
    """
    friction = np.zeros(model.n)
    for link in model.links:
        if link.coordinate >= 0:
            least = link.term.load_dependent * link.term.load_smoothing
            friction[link.coordinate] += abs(link.multiplier) * (link.term.breakaway + least)
    for motor in model.coupled_motors:
        for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
            friction[k] += abs(ratio) * motor.term.breakaway
    return friction


def load_factor(model: Model) -> Array:
    """(n,) the most torque of each coordinate for one unit of what its links need, by friction that grows with load."""
    factors = np.ones(model.n)
    for link in model.links:
        if link.coordinate >= 0:
            factors[link.coordinate] += link.term.load_dependent
    return factors


def coulomb_with_motors(robot: Robot) -> Array:
    """Return the Coulomb friction (n,) of joints and their motors."""
    friction = coulomb_friction(robot.model)
    for motor in robot.roles.motors:
        friction[motor.coordinate] += motor.term.coulomb
    return friction


def without_coulomb(robot: Kind) -> Kind:
    """Return the robot without Coulomb friction, also of motors behind springs or on links.

    Viscous friction of each joint is that of its worse direction.
    """
    if isinstance(robot, Robot):
        if not robot.is_fixed_tree and robot.roles.motors:
            drives = {joint: {key: value for key, value in drive.items() if key != "coulomb"}
                      for joint, drive in robot.declaration.get("drives", {}).items()}
            return Robot(without_coulomb(robot.tree), {"version": 1, **robot.declaration, "drives": drives})
        return robot.with_tree(without_coulomb(robot.tree))
    rough = {link.joint: link.term for link in robot.model.links if link.term.breakaway or link.term.asymmetry
             or link.term.load_dependent}
    if any(motor.term.breakaway for motor in robot.model.coupled_motors):
        robot = robot.with_coupled_motors([replace(motor, term=_smooth(motor.term)) for motor in robot.model.coupled_motors])
    return robot.with_joint_dynamics({joint: _smooth(term) for joint, term in rough.items()}) if rough else robot


def _smooth(term: JointDynamics) -> JointDynamics:
    bare = dict.fromkeys(("coulomb", "stribeck", "asymmetry", "load_dependent"), 0.0)
    return replace(term, viscous=term.viscous + abs(term.asymmetry), **bare)


ELASTIC = {"elastic_joints", "motors"}  # sections of a tree whose link side is served
OF_LINKS = ("effort", "velocity", "motor_velocity")  # limits of drives that a spring's torque and its rate decide


def link_side(robot: Robot, base: BaseState | None = None) -> Robot:
    """Return the robot on the links' side of its springs, with its limits; trees, loops and platforms as they are.

    base : pose of a moving base, which is taken to be at rest: its motion along a path is not known
    InputError where such a motion does not decide the torques.
    """
    if robot.is_fixed_tree and base is None:
        return robot
    elastic = ELASTIC.issuperset(robot.sections) and not robot.has_moving_base
    if not elastic and robot.sections and not robot.is_mechanism:
        if robot.state_joints:
            raise InputError(f"{some(robot.state_joints)} of robot '{robot.name}' has no motor: nothing drives it along a "
                             "path. Its motion follows from that of the others, as `solve` finds it")
        raise InputError(f"robot '{robot.name}' ({robot.kind}): planning and scaling of motions are not served for this "
                         "combination of base, loops, springs and motors yet")
    if robot.has_moving_base:
        if base is None:
            raise InputError(f"the base of robot '{robot.name}' is free: a motion of the joints alone does not say how it "
                             "moves. Declare base: prescribed where something carries it, base: fixed where it is held; in "
                             "Python, base=BaseState(position, quaternion) holds it so")
        return robot.held(base.into_base(robot.gravity_vector))
    if base is not None:
        raise InputError(f"robot '{robot.name}' stands on a fixed base: base has no meaning for it")
    return _behind_springs(robot) if elastic else robot


def default_base(robot: Robot) -> BaseState | None:
    """Return the default state of a base that is carried: level and at rest; None for other robots."""
    return BaseState() if robot.carried else None


def unenforceable_limits(robot: Robot) -> tuple[str, ...]:
    """Limits of drives that no motion of `link_side` can keep, one sentence each."""
    if not robot.elastic_joints:
        return ()
    return tuple(f"{limit.description} is not enforced: behind a spring it is a limit of the motor's own torque, which the "
                 "fourth derivative of the position decides" for limit in robot.drive_limits if not _of_links(robot, limit))


def _of_links(robot: Robot, limit: DriveLimit) -> bool:
    springs = {robot.joint_names.index(name) for name in robot.elastic_joints}
    return limit.quantity in OF_LINKS or not springs.intersection(limit.joints)


def _behind_springs(robot: Robot) -> Robot:
    """Links and motors of rigid joints: a tree, unless one of these motors is on a link."""
    names, motors = robot.tree.joint_names, robot.roles.motors
    rigid = [motor for motor in motors if motor.stiffness == math.inf]
    for motor in motors:
        if motor.link and motor not in rigid:
            joint, link = names[motor.coordinate], robot.model.links[motor.link].name
            raise InputError(f"the motor of elastic joint '{joint}' rides on {link}, which feels how it spins behind its "
                             "spring: the fourth derivative of the position decides that, and no time law bounds it. To leave "
                             f"this out, name no link: remove motors.{joint} from the robot file")
    kept = tuple(limit for limit in robot.drive_limits if _of_links(robot, limit))
    tree = robot.tree.with_drive_limits(kept)
    if any(motor.link for motor in rigid):
        left = {section: {joint: entry for joint, entry in robot.declaration.get(section, {}).items()
                          if joint not in robot.elastic_joints} for section in ("motors", "drives")}
        return Robot(tree, {"version": 1, **left})
    terms = {link.joint: link.term for link in tree.model.links}
    named = {names[motor.coordinate]: motor.term for motor in rigid}
    if named:
        tree = tree.with_joint_dynamics({joint: _together(terms[joint], term) for joint, term in named.items()})
    return Robot(tree)


def _together(joint: JointDynamics, motor: JointDynamics) -> JointDynamics:
    """Return the dynamics of a rigid joint: its own friction, and rotor and friction of its motor in the base."""
    return replace(joint, rotor_inertia=motor.rotor_inertia, gear_ratio=motor.gear_ratio,
                   coulomb=joint.coulomb + motor.coulomb, viscous=joint.viscous + motor.viscous)
