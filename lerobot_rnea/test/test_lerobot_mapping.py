"""Conversion between motor values of LeRobot and joint positions; encoder counts of the arm are the oracle."""

from __future__ import annotations

import math

import numpy as np
import pytest
from lerobot_rnea.joint_mapping import MappingOptions, MotorUnit, motor_units

import lerobot_stand_in as stand_in
from lerobot_rnea import JointMapping
from rnea_ros import InputError, load

ROBOT = load(stand_in.URDF)
MIDDLE = {"shoulder_pan": 0.0, "shoulder_lift": 0.0, "elbow_flex": 0.2}  # of the URDF's ranges


def options(**given):
    none = {"joints": {}, "unprotected": ["gripper"], "units": {}, "offsets": {}, "reversed_motors": []}
    return MappingOptions(**(none | given))


def arm(unit="degrees", **ranges):
    return stand_in.ServoArm(stand_in.ServoArmConfig(unit=unit, ranges=stand_in.SIZES | ranges))


def mapping(one, **given):
    return JointMapping(ROBOT, list(one.action_features), motor_units(one), options(**given))


@pytest.mark.parametrize("unit", ["degrees", "range_m100_100"])
def test_joint_positions_match_encoder_angles(unit):
    one = arm(unit)
    made = mapping(one, reversed_motors=["elbow_flex"])
    for count in (1500, 2048, 2500):
        values = {f"{motor}.pos": one.value(motor, count) for motor in one.bus.motors}
        q = dict(zip(ROBOT.joint_names, made.positions(values), strict=True))
        for motor, middle in MIDDLE.items():
            ends = one.calibration[motor]
            angle = (count - 0.5 * (ends.range_min + ends.range_max)) * 2.0 * math.pi / (stand_in.RESOLUTION - 1)
            assert q[motor] == pytest.approx(middle + (-angle if motor == "elbow_flex" else angle), abs=1e-12)
        back = made.values(np.array([q[name] for name in ROBOT.joint_names]))
        assert back == pytest.approx({key: value for key, value in values.items() if key != "gripper.pos"}, abs=1e-9)


def test_gripper_percentage_is_converted_to_the_range_of_its_urdf_joint():
    text = stand_in.URDF.replace('name="elbow_flex"', 'name="gripper"').replace('lower="-1.5" upper="1.9"',
                                                                               'lower="-0.2" upper="1.7"')
    robot, one = load(text), arm()
    made = JointMapping(robot, ["shoulder_pan.pos", "shoulder_lift.pos", "gripper.pos"], motor_units(one),
                        options(unprotected=[]))
    for share, q in ((0.0, -0.2), (100.0, 1.7)):
        values = {"shoulder_pan.pos": 0.0, "shoulder_lift.pos": 0.0, "gripper.pos": share}
        assert made.positions(values)[2] == pytest.approx(q, abs=2e-3)


def test_motor_calibrated_over_a_full_turn_has_its_zero_in_the_middle():
    one = arm(shoulder_pan=2.0 * math.pi)
    assert math.isinf(motor_units(one)["shoulder_pan"].span)
    assert mapping(one).positions({f"{motor}.pos": 0.0 for motor in one.bus.motors})[0] == 0.0


def test_joint_names_and_units_can_be_given():
    keys = ["a.pos", "b.pos", "c.pos", "x.vel"]
    made = JointMapping(ROBOT, keys, {}, options(joints={"a": "elbow_flex", "b": "shoulder_pan", "c": "shoulder_lift"},
                                                 units=dict.fromkeys("abc", "radians"), unprotected=["x.vel"]))
    assert made.positions({"a.pos": 0.3, "b.pos": 0.1, "c.pos": 0.2}).tolist() == [0.1, 0.2, 0.3]
    assert made.unprotected == ("x.vel",)


@pytest.mark.parametrize(("given", "message"), [
    ({"unprotected": []}, "gripper.pos has no joint"),
    ({"joints": {"elbow_flex": "wrist"}}, "elbow_flex.pos has no joint 'wrist'"),
    ({"unprotected": ["gripper", "elbow_flex"]}, "have no motor"),
    ({"units": {"elbow_flex": "turns"}}, "unit of motor elbow_flex is 'turns'"),
])
def test_motors_that_cannot_be_converted_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        mapping(arm(), **given)


def test_unknown_motor_unit_or_range_is_rejected():
    keys = [f"{name}.pos" for name in ROBOT.joint_names]
    with pytest.raises(InputError, match="unit of motor shoulder_pan is 'unknown'"):
        JointMapping(ROBOT, keys, {}, options())
    with pytest.raises(InputError, match="calibrate the robot"):
        JointMapping(ROBOT, keys, dict.fromkeys(ROBOT.joint_names, MotorUnit("range_m100_100")), options())


def test_calibrated_range_that_differs_from_the_urdf_needs_an_offset():
    one = arm(elbow_flex=2.0)
    with pytest.raises(InputError, match=r"offsets=\{elbow_flex: POSITION\}"):
        mapping(one)
    made = mapping(one, offsets={"elbow_flex": 0.7})
    values = {f"{motor}.pos": 0.0 for motor in one.bus.motors}
    assert made.positions(values)[2] == 0.7
