"""Limits of robot files: they replace the limits of the URDF, and all errors are reported at once."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import ModelError, Robot
from rnea_ros.model import robot_file
from rnea_ros.robots.load import joint_forces, limited
from support.planning_cases import ROOT, robot


def written(tmp_path, text: str) -> str:
    path = tmp_path / "limits.yaml"
    path.write_text(text)
    return str(path)


def read(path, arm):
    """Return the limits, and the limits of internal joint forces."""
    file = robot_file.draft(path).checked(arm.model)
    return limited(arm.model, file).limits, joint_forces(file)


FULL = """
version: 1
limits:
  joint2:
    min_position: -1.0
    max_position: 1.5
    max_velocity: 2
    max_acceleration: 15.0
    max_jerk: 500.0
    max_effort: 9.0
    max_effort_rate: 2000.0
    max_joint_force: 40.0
    has_velocity_limits: true
  joint1:
    has_effort_limits: false
"""


def test_limits_of_the_robot_file_replace_those_of_the_urdf(tmp_path):
    arm = robot("rr")
    limits, forces = read(written(tmp_path, FULL), arm)
    found = {name: getattr(limits, name) for name in vars(arm.limits)}
    np.testing.assert_array_equal(found["lower"], [arm.limits.lower[0], -1.0])
    np.testing.assert_array_equal(found["upper"], [arm.limits.upper[0], 1.5])
    np.testing.assert_array_equal(found["velocity"], [arm.limits.velocity[0], 2.0])
    np.testing.assert_array_equal(found["effort"], [np.nan, 9.0])
    for name, value in (("acceleration", 15.0), ("jerk", 500.0), ("effort_rate", 2000.0)):
        np.testing.assert_array_equal(found[name], [np.nan, value])
    assert forces == {"joint2": 40.0}
    assert not limits.effort.flags.writeable


def test_limits_written_as_integers_or_with_exponents_are_numbers(tmp_path):
    limits, _ = read(written(tmp_path, "version: 1\nlimits: {joint1: {max_effort: 1e3, max_jerk: 7}}"), robot("rr"))
    assert limits.effort[0] == 1000.0 and limits.jerk[0] == 7.0


def test_position_limit_on_one_side_only_is_rejected(tmp_path):
    text = ('<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="continuous"><parent link="a"/><child '
            'link="b"/></joint></robot>')
    with pytest.raises(ModelError, match="of min_position and max_position only one is known"):
        read(written(tmp_path, "version: 1\nlimits: {j: {max_position: 1.0}}"), Robot.from_urdf(text, backend="python"))


def test_mimic_joints_may_have_joint_force_limits_only(tmp_path):
    branched = Robot.from_urdf(ROOT / "urdf" / "branched.urdf", backend="python")
    (follower,) = set(branched.moving_joints) - set(branched.joint_names)
    given = f"version: 1\nlimits: {{{follower}: {{max_joint_force: 7.0}}}}"
    assert read(written(tmp_path, given), branched)[1] == {follower: 7.0}
    with pytest.raises(ModelError, match=r"follows another one .mimic.; only max_joint_force"):
        read(written(tmp_path, given.replace("joint_force", "effort")), branched)


@pytest.mark.parametrize(("text", "message"), [
    ("version: 1\nlimits: {elbow: {max_effort: 1.0}}", "joint 'elbow' does not exist; the joints are joint1, joint2"),
    ("version: 1\nlimits: {joint1: {max_efort: 1.0}}", "max_efort is not known; allowed are .*; did you mean 'max_effort'"),
    ("version: 1\nlimits: {joint1: {max_effort: much}}", "max_effort is 'much'; a number above zero is needed"),
    ("version: 1\nlimits: {joint1: {max_effort: '3 N'}}", "max_effort is '3 N'; a number above zero"),
    ("version: 1\nlimits: {joint1: {min_position: 1.0, max_position: -1.0}}", "min_position 1 is above max_position -1"),
    ("version: 1\nlimits: {joint1: {min_position: 10.0}}", "min_position 10 is above max_position 3.14159"),
    ("version: 1\nlimits: {joint1: {max_effort: .inf}}", "max_effort is inf; a number above zero"),
    ("version: 1\nlimits: {joint1: {max_effort: .nan}}", "max_effort is nan; a number above zero"),
    ("version: 1\nlimits: {joint1: {max_effort: true}}", "max_effort is True; a number above zero"),
    ("version: 1\nlimits: {joint1: {max_jerk: -2}}", "max_jerk is -2; a number above zero"),
    ("version: 1\nlimits: {joint1: {max_jerk: 0.0}}", "max_jerk is 0.0; a number above zero"),
    ("version: 1\nlimits: {joint1: {has_effort_limits: 1}}", "has_effort_limits is 1; true or false is needed"),
    ("version: 1\nlimits: {joint1: 5}", "limits.joint1 is 5; a mapping with min_position"),
    ("version: 1\nlimits: [joint1]", r"limits is \['joint1'\]; a mapping from names to entries"),
    ("limits: {}", "version is missing; allowed are 1"),
    ("[1, 2", "is not YAML"),
    ("", "holds nothing; a robot file is needed there"),
    ("joint_limits: {}", "joint_limits is not known; .*did you mean 'limits'"),
])
def test_invalid_limits_are_reported(tmp_path, text, message):
    with pytest.raises(ModelError, match=message) as caught:
        read(written(tmp_path, text), robot("rr"))
    assert "limits.yaml" in str(caught.value)


def test_all_errors_of_the_limits_are_reported_at_once(tmp_path):
    text = "version: 1\nlimits: {joint1: {max_effort: -1, max_velocity: x}, elbow: {}}"
    with pytest.raises(ModelError) as caught:
        read(written(tmp_path, text), robot("rr"))
    assert all(part in str(caught.value) for part in ("max_effort is -1", "max_velocity is 'x'", "elbow"))


def test_missing_limits_file_is_rejected(tmp_path):
    with pytest.raises(ModelError, match="cannot be read"):
        read(tmp_path / "none.yaml", robot("rr"))
