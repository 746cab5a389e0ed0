"""Coulomb friction, whose jump where a joint turns round no motion passes at a finite torque rate: robots without it."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from ..algebra.arrays import Array
from ..model.tree import JointDynamics, Model
from .robot import Robot
from .tree import TreeDynamics

Kind = TypeVar("Kind", TreeDynamics, Robot)


def coulomb(model: Model) -> Array:
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
    """(n,) the same where motors have friction of their own."""
    friction = coulomb(robot.model)
    for motor in robot.roles.motors:
        friction[motor.coordinate] += motor.term.coulomb
    return friction


def without_coulomb(robot: Kind) -> Kind:
    """The same robot without Coulomb friction, as viscous as the worse way of each joint; also without that of motors behind
    springs or on links."""
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
