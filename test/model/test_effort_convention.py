"""Effort conventions of robot files: conversion between joint torques and efforts in both directions."""

import numpy as np
import pytest

from rnea_ros import ModelError, Robot, load
from rnea_ros.model.drives import CONTENTS, EffortConvention
from support.plant import COULOMB, VISCOUS, panda

JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
FRICTION = {name: {"coulomb": float(c), "viscous": float(v)} for name, c, v in zip(JOINTS, COULOMB, VISCOUS)}


def file(**sections):
    return {"version": 1, "friction": FRICTION, **sections}


@pytest.fixture(scope="module")
def motion():
    return np.random.default_rng(5).uniform(-1.0, 1.0, (4, 7))


@pytest.mark.parametrize("contains", CONTENTS)
def test_commanded_and_measured_conventions_are_inverse(contains, motion):
    rng = np.random.default_rng(1)
    convention = EffortConvention(contains, "current", tuple(rng.uniform(-5.0, 5.0, 7)))
    tau, gravity, friction = rng.uniform(-9.0, 9.0, (3, 7))
    assert np.allclose(convention.torque(convention.effort(tau, gravity, friction), gravity, friction), tau, rtol=1e-12)
    added = {"total": 0.0, "without_gravity": gravity}.get(contains, gravity + friction)
    assert np.allclose(convention.effort(tau, gravity, friction) * convention.per_unit, tau - added, rtol=1e-12)


def test_efforts_without_gravity_equal_torques_at_zero_gravity(motion):
    robot, falling = (load(panda(), file(effort_convention="without_gravity"), gravity=g) for g in (None, (0.0, 0.0, 0.0)))
    found = robot.dynamics(*motion)
    reported = robot.model.efforts.commanded.effort(found.tau, found.gravity)
    assert np.allclose(reported, falling.inverse_dynamics(*motion[:3]), rtol=0.0, atol=1e-11)
    reported_rate = robot.model.efforts.commanded.effort(found.tau_rate, found.gravity_rate)
    assert np.allclose(reported_rate, falling.torque_and_rate(*motion)[1], rtol=0.0, atol=1e-10)


def test_friction_equals_the_torque_difference_to_a_robot_without_friction(motion):
    rough, smooth = load(panda(), file()), Robot.from_urdf(panda())
    friction, rate = rough.friction(motion[1], motion[2])
    with_it, without = rough.torque_and_rate(*motion), smooth.torque_and_rate(*motion)
    assert np.allclose(friction, with_it[0] - without[0], rtol=0.0, atol=1e-11)
    assert np.allclose(rate, with_it[1] - without[1], rtol=1e-9, atol=1e-9)


def test_robot_file_declares_the_effort_convention():
    drives = {name: {"gear_ratio": 100.0, "torque_constant": 0.1, "efficiency": 0.8} for name in JOINTS}
    robot = load(panda(), file(effort_convention="without_gravity", drives=drives, measured_effort={
        "contains": "total", "quantity": "current", "reversed": ["panda_joint2"]}))
    commanded, measured = robot.model.efforts
    assert commanded == ("without_gravity", "joint_torque", ())
    assert measured.contains == "total" and np.allclose(measured.per_unit, [8.0, -8.0, *[8.0] * 5])
    assert measured.of([1]).per_unit == measured.per_unit[1:2]
    assert load(panda(), file()).model.efforts.measured.plain


@pytest.mark.parametrize(("sections", "words"), [
    ({"measured_effort": {"quantity": "current"}},
     "measured_effort.quantity is current, which needs drives.panda_joint1.gear_ratio"),
    ({"effort_convention": "gravity"}, "effort_convention is 'gravity'; allowed are total, without_gravity"),
    ({"commanded_effort": {"reversed": ["elbow"]}}, "joint 'elbow' does not exist"),
    ({"measured_effort": {"quantity": "volts"}}, "allowed are joint_torque, motor_torque, current")])
def test_invalid_conventions_are_rejected(sections, words):
    with pytest.raises(ModelError, match=words):
        load(panda(), file(**sections))
