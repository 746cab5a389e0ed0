"""Declarations of elastic joints: what is read, what is refused, and that every message says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rnea_ros import JointDynamics, ModelError
from rnea_ros.robots.elastic import ElasticRobot
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}, {"mimic": {"joint": "j1"}})
GOOD = {"stiffness": 50.0, "gear_ratio": 9.0, "motor_inertia": 0.01}
PLACED = GOOD | {"motor_link": "l1", "motor_axis": [0, 1, 0]}
WHOLE = PLACED | {"motor_mass": 1.0, "motor_transverse_inertia": 0.02}


def load(**joints):
    return ElasticRobot.from_urdf(ARM, {"joints": joints})


@pytest.mark.parametrize(("entry", "message"), [
    (GOOD | {"stiffness": -50}, "joints.j2.stiffness is -50; a number above zero is needed"),
    (GOOD | {"stiffness": 0.0}, "joints.j2.stiffness is 0.0; a number above zero is needed"),
    (GOOD | {"stiffness": "hard"}, "joints.j2.stiffness is 'hard'; a number above zero is needed"),
    (GOOD | {"stiffness": True}, "joints.j2.stiffness is True; a number above zero is needed"),
    (GOOD | {"stiffness": float("nan")}, "joints.j2.stiffness is nan"),
    (GOOD | {"stiffness": 16**5000}, "joints.j2.stiffness is inf; a number above zero"),
    (GOOD | {"gear_ratio": 0}, "joints.j2.gear_ratio is 0; a number other than zero is needed"),
    (GOOD | {"motor_inertia": -1.0}, "joints.j2.motor_inertia is -1.0; a number not below zero is needed"),
    ({"stiffness": 50.0}, "joints.j2.motor_inertia is missing or zero; an elastic joint needs one above zero"),
    (GOOD | {"motor_inertia": 0.0}, "joints.j2.motor_inertia is missing or zero; an elastic joint needs one above zero"),
    (GOOD | {"stifness": 1.0}, "joints.j2.stifness is not known; allowed are stiffness, gear_ratio, motor_inertia"),
    (PLACED | {"motor_link": "wrist"}, "joints.j2.motor_link: link 'wrist' does not exist; the links are base, l1, l2, l3"),
    (PLACED | {"motor_link": 3}, "joints.j2.motor_link is 3; the name of a link is needed"),
    (PLACED | {"motor_axis": [0, 1]}, "joints.j2.motor_axis is [0, 1]; three finite numbers are needed"),
    (PLACED | {"motor_axis": [0, 0, 0]}, "joints.j2.motor_axis is [0, 0, 0]; a direction is needed"),
    (GOOD | {"motor_link": "l1"}, "joints.j2.motor_axis is missing; three finite numbers are needed"),
    (GOOD | {"motor_axis": [0, 1, 0]}, "joints.j2.motor_link is missing; the name of a link is needed"),
    (GOOD | {"motor_mass": 1.0}, "joints.j2.motor_transverse_inertia is missing, which mass needs"),
    (PLACED | {"motor_position": [0, 0, 1]}, "joints.j2.motor_mass is missing, which position needs"),
    (WHOLE | {"motor_transverse_inertia": 0.004}, "transverse_inertia is 0.004, less than half of rotor_inertia, 0.01"),
    (WHOLE | {"motor_mass": 0}, "joints.j2.motor_mass is 0; a number above zero is needed"),
    (17, "joints.j2 is 17; a mapping with stiffness, motor_joint is needed"),
])
def test_bad_values_are_refused(entry, message):
    with pytest.raises(ModelError) as error:
        load(j2=entry)
    assert message in str(error.value)


@pytest.mark.parametrize(("content", "message"), [
    ({"joints": {"elbow": GOOD}}, "joints.elbow: joint 'elbow' does not exist; the joints are j1, j2"),
    ({"joints": {"j3": GOOD}}, "joints.j3: joint 'j3' only follows 'j1' (mimic); name that one"),
    ({"joints": {}}, "ElasticRobot needs elastic_joints or motors or drives"),
    ({"joints": [1, 2]}, "joints is [1, 2]; a mapping from names to entries is needed"),
    ({"springs": {"j2": {"stiffness": 1.0}}}, "it has springs, of which rnea_ros.load makes the right robot"),
    ({"joints": {"j2": GOOD}, "joint": 1}, "joint is not known; allowed are joints, springs; did you mean 'joints'?"),
])
def test_bad_sections_are_refused(content, message):
    with pytest.raises(ModelError) as error:
        ElasticRobot.from_urdf(ARM, content)
    assert message in str(error.value)


def test_everything_wrong_is_told_at_once():
    with pytest.raises(ModelError) as error:
        load(elbow=GOOD, j1=GOOD | {"gear_ratio": 0.0}, j2=PLACED | {"stiffness": -1.0, "motor_link": "wrist"})
    assert len(error.value.problems) == 4


def test_rotor_inertia_is_not_counted_twice():
    with pytest.raises(ModelError, match="rotor inertia among the joint dynamics already"):
        ElasticRobot.from_urdf(ARM, {"joints": {"j2": GOOD}}, joint_dynamics={"j2": JointDynamics(rotor_inertia=0.1)})


@pytest.mark.parametrize(("text", "message"), [
    ("joints: {j2: {stiffness: 1", "is not YAML"),
    ("just words", "holds str; a robot file is needed there"),
    ("", "holds nothing; a robot file is needed there"),
    ("joints:\n  j2: {stiffness: 1.0}\n  j2: {stiffness: 2.0}\n", "line 3, column 3: key 'j2' occurs twice"),
    ("a: &a [1, 2]\njoints: *a\n", "line 2, column 9: alias *a is not supported; write the values out"),
    ("joints: !!python/object/apply:os.getcwd []\n", "is not YAML: could not determine a constructor"),
    ("[" * 5000, "more than 32 lists and mappings in each other"),
    ("joints: {j2: {stiffness: \x00}}", "is not YAML"),
    ("#" * 1_000_001, "more than 1000000 bytes"),
])
def test_bad_files_are_refused(tmp_path, text, message):
    path = tmp_path / "arm.elastic.yaml"
    path.write_text(text)
    with pytest.raises(ModelError) as error:
        ElasticRobot.from_urdf(ARM, path)
    assert str(path) in str(error.value) and message in str(error.value)


def test_a_missing_file_says_what_to_write(tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    with pytest.raises(ModelError, match=r"arm\.robot\.yaml: cannot be read \(No such file.*'version: 1'"):
        ElasticRobot.from_urdf(urdf)
    with pytest.raises(ModelError, match="a URDF given as text has no folder to look in"):
        ElasticRobot.from_urdf(ARM)


def test_the_file_beside_the_urdf_is_found(tmp_path):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    # YAML 1.1 reads 4e2 as a string; whoever writes it means a number.
    new = "version: 1\nelastic_joints: {j2: {stiffness: 4e2}}\ndrives: {j2: {gear_ratio: -9, rotor_inertia: 1e-2}}\n"
    old = "joints:\n  j2: {stiffness: 4e2, gear_ratio: -9, motor_inertia: 1e-2}\n"
    for name, text in (("arm.robot.yaml", new), ("arm.elastic.yaml", old)):
        (tmp_path / name).write_text(text)
        robot = ElasticRobot.from_urdf(urdf)
        assert robot.elastic_joints == ("j2",) and robot.stiffness == [400.0]
        assert robot.motors[0].term == JointDynamics(rotor_inertia=0.01, gear_ratio=-9.0)
        (tmp_path / name).unlink()


def test_order_in_the_file_does_not_count():
    motors = {"j1": GOOD, "j2": GOOD | {"stiffness": 70.0}}
    one, two = load(**motors), load(**dict(reversed(motors.items())))
    assert one.elastic_joints == two.elastic_joints == ("j1", "j2")
    np.testing.assert_array_equal(one.stiffness, two.stiffness)


def test_the_papers_arm_is_declared():
    """hua-mixed-joints section V: springs, gears, and the rotors' masses and places."""
    robot = ElasticRobot.from_urdf(ROOT / "urdf" / "hua_arm.urdf", ROOT / "urdf" / "hua_arm.robot.yaml")
    assert robot.joint_names == ("joint1", "joint2", "joint3") and robot.elastic_joints == ("joint3",)
    assert robot.stiffness == [100.0] and robot.order == 5
    assert [motor.link for motor in robot.motors] == [0, 1, 1]
    assert [link.m for link in robot.model.links] == [1.0, 4.5, 1.5, 1.0]
    q = np.array([0.3, -0.4, 0.9])
    A = robot.mass_matrix(q)
    assert np.linalg.eigvalsh(A).min() > 0.01
    assert A[3, 3] == pytest.approx(0.4)  # 10^2 0.004
