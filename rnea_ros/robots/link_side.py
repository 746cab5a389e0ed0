"""The robot that a motion with bounded jerk decides: its torques, and their rates, follow from q, qd, qdd and qddd.

A path and a time law give three derivatives. They are enough for trees, closed loops and platforms. Where a joint is elastic
they are enough for the torque that its spring must carry, that of the links beyond: limits of effort and effort rate are those
of the spring then. The motor's own torque takes two derivatives more; its speed, qd + tau_rate / stiffness, is known again.
"""

from __future__ import annotations

import math
from dataclasses import replace

from ..errors import InputError, some
from ..model.drives import DriveLimit
from ..model.tree import JointDynamics
from .inputs.base_state import BaseState
from .robot import Robot

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


def level(robot: Robot) -> BaseState | None:
    """Return the default state of a base that is carried: level and at rest; None for other robots."""
    return BaseState() if robot.carried else None


def unkept(robot: Robot) -> tuple[str, ...]:
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
    """Of a rigid joint: its own friction, and rotor and friction of its motor in the base."""
    return replace(joint, rotor_inertia=motor.rotor_inertia, gear_ratio=motor.gear_ratio,
                   coulomb=joint.coulomb + motor.coulomb, viscous=joint.viscous + motor.viscous)
