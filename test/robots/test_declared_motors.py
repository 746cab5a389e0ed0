"""Declarations of elastic joints and motors in robot files: accepted values, and rejections with their messages."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnea_ros import JointDynamics, ModelError, Robot, load
from rnea_ros.robots.tree import TreeDynamics
from support.robots import arm, motor_file

ROOT = Path(__file__).resolve().parents[2]
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}, {"mimic": {"joint": "j1"}})
GOOD = {"stiffness": 50.0, "gear_ratio": 9.0, "rotor_inertia": 0.01}
WITH_AXIS = GOOD | {"link": "l1", "axis": [0, 1, 0]}
WHOLE = WITH_AXIS | {"mass": 1.0, "transverse_inertia": 0.02}


def loaded(**joints):
    return load(ARM, motor_file(joints))


@pytest.mark.parametrize(("entry", "message"), [
    (GOOD | {"stiffness": -50}, "elastic_joints.j2.stiffness is -50; a number above zero is needed"),
    (GOOD | {"stiffness": 0.0}, "elastic_joints.j2.stiffness is 0.0; a number above zero is needed"),
    (GOOD | {"stiffness": "hard"}, "elastic_joints.j2.stiffness is 'hard'; a number above zero is needed"),
    (GOOD | {"stiffness": True}, "elastic_joints.j2.stiffness is True; a number above zero is needed"),
    (GOOD | {"stiffness": float("nan")}, "elastic_joints.j2.stiffness is nan"),
    (GOOD | {"stiffness": 16**5000}, "elastic_joints.j2.stiffness is inf; a number above zero"),
    (GOOD | {"gear_ratio": 0}, "drives.j2.gear_ratio is 0; a number other than zero is needed"),
    (GOOD | {"rotor_inertia": -1.0}, "drives.j2.rotor_inertia is -1.0; a number not below zero is needed"),
    ({"stiffness": 50.0}, "drives.j2.rotor_inertia is missing or zero; an elastic joint needs one above zero"),
    (GOOD | {"rotor_inertia": 0.0}, "drives.j2.rotor_inertia is missing or zero; an elastic joint needs one above zero"),
    (GOOD | {"gear_rati": 1.0}, "drives.j2.gear_rati is not known; allowed are gear_ratio, rotor_inertia, viscous"),
    (WITH_AXIS | {"link": "wrist"}, "motors.j2.link: link 'wrist' does not exist; the links are base, l1, l2, l3"),
    (WITH_AXIS | {"link": 3}, "motors.j2.link is 3; the name of a link is needed"),
    (WITH_AXIS | {"axis": [0, 1]}, "motors.j2.axis is [0, 1]; three finite numbers are needed"),
    (WITH_AXIS | {"axis": [0, 0, 0]}, "motors.j2.axis is [0, 0, 0]; a direction is needed"),
    (GOOD | {"link": "l1"}, "motors.j2.axis is missing; three finite numbers are needed"),
    (GOOD | {"axis": [0, 1, 0]}, "motors.j2.link is missing; the name of a link is needed"),
    (GOOD | {"mass": 1.0}, "motors.j2.transverse_inertia is missing, which mass needs"),
    (WITH_AXIS | {"position": [0, 0, 1]}, "motors.j2.mass is missing, which position needs"),
    (WHOLE | {"transverse_inertia": 0.004}, "transverse_inertia is 0.004, less than half of rotor_inertia, 0.01"),
    (WHOLE | {"mass": 0}, "motors.j2.mass is 0; a number above zero is needed"),
])
def test_invalid_values_of_elastic_joints_and_motors_are_rejected(entry, message):
    with pytest.raises(ModelError) as error:
        loaded(j2=entry)
    assert message in str(error.value)


@pytest.mark.parametrize(("content", "message"), [
    (motor_file({"elbow": GOOD}), "elastic_joints.elbow: joint 'elbow' does not exist; the joints are j1, j2"),
    (motor_file({"j3": GOOD}), "elastic_joints.j3: joint 'j3' only follows 'j1' (mimic); name that one"),
    ({"elastic_joints": [1, 2]}, "elastic_joints is [1, 2]; a mapping from names to entries is needed"),
    ({"elastic_joints": {"j2": 17}}, "elastic_joints.j2 is 17; a mapping with stiffness, motor_joint is needed"),
    (motor_file({"j2": GOOD}) | {"elastic_joint": 1}, "did you mean 'elastic_joints'?"),
])
def test_invalid_sections_of_elastic_joints_and_motors_are_rejected(content, message):
    with pytest.raises(ModelError) as error:
        load(ARM, content)
    assert message in str(error.value)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ModelError) as error:
        loaded(elbow=GOOD, j1=GOOD | {"gear_ratio": 0.0}, j2=WITH_AXIS | {"stiffness": -1.0, "link": "wrist"})
    assert len(error.value.problems) == 5  # joint elbow is named in two sections


def test_rotor_inertia_given_twice_is_rejected():
    with pytest.raises(ModelError, match="rotor inertia among the joint dynamics already"):
        Robot(TreeDynamics.from_urdf(ARM, joint_dynamics={"j2": JointDynamics(rotor_inertia=0.1)}), motor_file({"j2": GOOD}))


@pytest.mark.parametrize(("text", "message"), [
    ("elastic_joints: {j2: {stiffness: 1", "is not YAML"),
    ("just words", "holds str; a robot file is needed there"),
    ("", "holds nothing; a robot file is needed there"),
    ("elastic_joints:\n  j2: {stiffness: 1.0}\n  j2: {stiffness: 2.0}\n", "line 3, column 3: key 'j2' occurs twice"),
    ("a: &a [1, 2]\nloops: *a\n", "line 2, column 8: alias *a is not supported; write the values out"),
    ("loops: !!python/object/apply:os.getcwd []\n", "is not YAML: could not determine a constructor"),
    ("[" * 5000, "more than 32 lists and mappings in each other"),
    ("loops: {j2: {stiffness: \x00}}", "is not YAML"),
    ("#" * 1_000_001, "more than 1000000 bytes"),
])
def test_invalid_robot_files_are_rejected_with_their_path(tmp_path, text, message):
    path = tmp_path / "arm.robot.yaml"
    path.write_text(text)
    with pytest.raises(ModelError) as error:
        load(ARM, path)
    assert str(path) in str(error.value) and message in str(error.value)


def test_error_for_a_missing_robot_file_names_the_section_to_write(tmp_path):
    with pytest.raises(ModelError, match=r"arm\.robot\.yaml: cannot be read \(No such file.*'version: 1'"):
        load(ARM, tmp_path / "arm.robot.yaml")


def test_numbers_with_exponents_are_numbers(tmp_path):
    path = tmp_path / "arm.robot.yaml"
    path.write_text(  # YAML 1.1 reads 4e2 as a string
        "version: 1\nelastic_joints: {j2: {stiffness: 4e2}}\ndrives: {j2: {gear_ratio: -9, rotor_inertia: 1e-2}}\n")
    robot = load(ARM, path)
    assert robot.elastic_joints == ("j2",) and robot.stiffness == [400.0]
    assert robot.roles.motors[0].term == JointDynamics(rotor_inertia=0.01, gear_ratio=-9.0)


def test_elastic_joints_are_ordered_by_the_model_and_not_by_the_file():
    motors = {"j1": GOOD, "j2": GOOD | {"stiffness": 70.0}}
    one, two = loaded(**motors), loaded(**dict(reversed(motors.items())))
    assert one.elastic_joints == two.elastic_joints == ("j1", "j2")
    np.testing.assert_array_equal(one.stiffness, two.stiffness)


def test_robot_file_of_the_hua_arm_declares_the_published_model():
    """Springs, gears, rotor masses and rotor positions of hua-mixed-joints, section V."""
    robot = load(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml")
    assert robot.joint_names == ("joint1", "joint2", "joint3") and robot.elastic_joints == ("joint3",)
    assert robot.stiffness == [100.0] and robot.order == 5
    assert [motor.link for motor in robot.roles.motors] == [0, 1, 1]
    assert [link.m for link in robot.structure().equations.model.links] == [1.0, 4.5, 1.5, 1.0]
    q = np.array([0.3, -0.4, 0.9])
    A = robot.mass_matrix(q)
    assert np.linalg.eigvalsh(A).min() > 0.01
    assert A[3, 3] == pytest.approx(0.4)  # 10^2 0.004
