"""URDF 1.0, 1.1 and 1.2 are read as by urdfdom 6; attributes without effect are reported, invalid ones rejected."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
import pytest
import yaml
from lxml import etree

from rnea_ros import ModelError, Robot, load, retime_motion
from rnea_ros.cli import main
from rnea_ros.demo import robot_demo as demo_motion
from rnea_ros.identification.excitation import excite
from support.mdh_check import check_kinematics_and_inertias, forward_kinematics, homogeneous
from support.oracles import PinocchioOracle, deviation, pin
from support.robots import arm, random_state, random_tree, rotation, seeds

ROOT = Path(__file__).parents[2]
TABLE = yaml.safe_load((ROOT / "test" / "data" / "urdf_versions.yaml").read_text(encoding="utf-8"))
CASES = [(said, row) for row in TABLE for said in row["versions"]]
NAMES = [f"{said}: {row['case']}" for said, row in CASES]
INERTIA = np.diag([0.1, 0.2, 0.25])
LIMITS = ("lower", "upper", "effort", "velocity", "acceleration", "deceleration", "jerk")
BASIC = 'lower="-1" upper="1" effort="5" velocity="2"'

each_case = pytest.mark.parametrize(("said", "row"), CASES, ids=NAMES)


def text(said, row):
    """Return the URDF of a row of the table."""
    limit = row.get("limit", "...")
    origins = [f"<origin {row[key]}/>" if key in row else "" for key in ("origin", "inertial")]
    return (f'<robot name="r"{"" if said is None else f""" version="{said}" """}><link name="a"/><link name="b"><inertial>'
            f'{origins[1]}<mass value="2"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.2" iyz="0" izz="0.25"/></inertial>'
            f'{row.get("shape", "")}</link><joint name="j" type="{row.get("type", "revolute")}">{origins[0]}<parent link="a"/>'
            f'<child link="b"/>{"" if limit is None else f"<limit {limit}/>".replace("...", BASIC)}</joint></robot>')


def turned(x, y, z, w):
    """Return the rotation of a unit quaternion by rotating the axes: v + 2 w (u x v) + 2 u x (u x v)."""
    u = np.array([x, y, z])
    return np.column_stack([v + 2.0 * w * np.cross(u, v) + 2.0 * np.cross(u, np.cross(u, v)) for v in np.eye(3)])


def quaternion(R):
    """Return the quaternion of a rotation, the eigenvector of the largest eigenvalue (Bar-Itzhack)."""
    K = np.empty((4, 4))
    K[:3, :3] = R + R.T - np.trace(R) * np.eye(3)
    K[3, :3] = K[:3, 3] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    K[3, 3] = np.trace(R)
    return np.linalg.eigh(K)[1][:, -1]


@each_case
def test_attributes_of_each_version_are_read_as_by_urdfdom(said, row):
    seen = row["is"]
    if seen.get("here", seen["urdfdom"]) == "refused":
        with pytest.raises(ModelError, match=r"joint 'j'|link 'b'|<robot version="):
            Robot.from_urdf(text(said, row))
        return
    robot = Robot.from_urdf(text(said, row), backend="reference")
    ignored = [name for name in ("quat_xyzw", *LIMITS) if any(f" {name}> is ignored" in said for said in robot.warnings)]
    assert ignored == seen.get("ignored", [])
    frame = robot.model.frame("b")
    T = forward_kinematics(robot.model, np.zeros(1))[frame.link] @ homogeneous(frame.R, frame.P)
    np.testing.assert_allclose(T[:3, :3], turned(*seen.get("joint_quat", (0, 0, 0, 1))), atol=2e-9)  # as it was printed
    if "inertial_quat" in seen:
        R, c = frame.R @ turned(*seen["inertial_quat"]), frame.R @ (1.0, 2.0, 3.0) + frame.P
        about_origin = R @ INERTIA @ R.T + seen["mass"] * (c @ c * np.eye(3) - np.outer(c, c))
        np.testing.assert_allclose(robot.model.links[frame.link].J, about_origin, atol=1e-8)
    if "limits" in seen:
        check_limits(robot, dict(zip(LIMITS, seen["limits"], strict=True)))


def check_limits(robot, read):
    """Check the limits, which are symmetric and NaN unless positive and finite, and warnings for ignored values."""
    for name in ("effort", "velocity", "jerk"):
        given, found = read[name], getattr(robot.limits, name)[0]
        assert found == given if 0.0 < given < np.inf else np.isnan(found), name
    known = [value for value in (read["acceleration"], read["deceleration"]) if 0.0 < value < np.inf]
    found = robot.limits.acceleration[0]
    assert found == min(known) if known else np.isnan(found)
    for name in LIMITS[2:]:
        if read[name] <= 0.0 and not (name == "deceleration" and read["acceleration"] == 0.0):
            assert any(f"{name} limit {read[name]:g} is not above zero: ignored" in said for said in robot.warnings)
    if len(set(known)) > 1 or (known and np.inf in (read["acceleration"], read["deceleration"])):
        assert any("the smaller one is used for both" in said for said in robot.warnings)
    bounded = robot.joint_types[0] == "revolute" and read["lower"] <= read["upper"]
    assert (robot.limits.lower[0], robot.limits.upper[0]) == (read["lower"], read["upper"]) or not bounded
    if read["lower"] > read["upper"] and robot.joint_types[0] == "revolute":
        assert any("is above upper limit" in said for said in robot.warnings)


def urdfdom():
    """Return the major version of the urdfdom that Pinocchio uses."""
    try:
        return int(version("cmeel-urdfdom").split(".")[0])
    except PackageNotFoundError:  # Pinocchio from a ROS distribution
        return 0


@pytest.mark.skipif(urdfdom() != 6, reason="Pinocchio uses another urdfdom than the table was made with")
@each_case
def test_expected_values_of_the_table_match_urdfdom(said, row):
    seen = row["is"]
    try:
        model = pin.buildModelFromXML(text(said, row))
    except ValueError as error:  # Pinocchio itself rejects negative limits
        assert seen["urdfdom"] == "refused" or "greater than max" in str(error)
        return
    assert seen["urdfdom"] == "taken"
    np.testing.assert_allclose(model.jointPlacements[1].rotation, turned(*seen.get("joint_quat", (0, 0, 0, 1))), atol=2e-9)
    assert model.inertias[1].mass == seen.get("mass", 2.0)


def in_quaternions(urdf, rng):
    """Return the robot in URDF 1.1, each rpy written as a quaternion that is nearly of unit length."""

    def orientation(found):
        q = quaternion(rotation(*map(float, found[1].split()))) * rng.choice([-1.0, 1.0]) * rng.uniform(0.9995, 1.0005)
        return f'quat_xyzw="{" ".join(repr(float(x)) for x in q)}"'

    return re.sub(r'rpy="([^"]*)"', orientation, urdf).replace("<robot ", '<robot version="1.1" ', 1)


@pytest.mark.parametrize("seed", seeds(16))
def test_random_trees_with_quaternions_match_pinocchio(seed):
    tree = random_tree(seed)
    robot = Robot.from_urdf(in_quaternions(tree.text(), np.random.default_rng(seed)), backend="reference")
    assert not any("quat_xyzw" in said for said in robot.warnings)
    angles = Robot.from_urdf(tree.text(), backend="reference")
    oracles = [PinocchioOracle(tree.plain(), robot)]
    if urdfdom() >= 6:
        oracles.append(PinocchioOracle(in_quaternions(tree.plain(), np.random.default_rng(seed)), robot))
        check_kinematics_and_inertias(robot, oracles[-1], seed)
    motion = random_state(np.random.default_rng(seed), robot.n)
    found = robot.torque_and_rate(*motion)
    for truth in (angles.torque_and_rate(*motion), *(oracle.torque_and_rate(*motion) for oracle in oracles)):
        assert deviation(found[0], truth[0]) < 1e-12 and deviation(found[1], truth[1]) < 1e-12


def test_quaternion_is_accurate_near_gimbal_lock():
    """A conversion through roll, pitch and yaw would lose half of the digits at a pitch of 90 degrees."""
    R = rotation(0.3, np.pi / 2 - 1e-9, -0.7)
    robot = Robot.from_urdf(text("1.1", {"origin": 'quat_xyzw="{!r} {!r} {!r} {!r}"'.format(*map(float, quaternion(R)))}))
    frame = robot.model.frame("b")
    T = forward_kinematics(robot.model, np.zeros(1))[frame.link] @ homogeneous(frame.R, frame.P)
    np.testing.assert_allclose(T[:3, :3], R, rtol=0, atol=1e-15)


@pytest.mark.parametrize(("given", "length"), [("0 0 0.7 0.7", "0.9899"), ("0 3 0 4", "5"), ("0 0 0 0.002", "0.002")])
def test_quaternion_without_unit_length_is_normalized_with_a_warning(given, length):
    for key, location_of_it in (("origin", "joint 'j'"), ("inertial", "link 'b'")):
        robot = Robot.from_urdf(text("1.1", {key: f'quat_xyzw="{given}"'}))
        said = f"{location_of_it}: quat_xyzw has length {length} instead of 1: it is normalized [quaternion_length]"
        assert robot.warnings == (said,)


def test_rounded_unit_quaternion_causes_no_warning():
    for given in ("0.7071 0 0 0.7071", "0.707 0 0.707 0", "0 0 0 -1"):
        assert not Robot.from_urdf(text("1.1", {"origin": f'quat_xyzw="{given}"'})).warnings


@pytest.mark.parametrize(("said", "row", "expected"), [
    ("1.1", {"origin": 'quat_xyzw="0 0 0 1" rpy="0 0 0"'}, "joint 'j': <origin> has both rpy and quat_xyzw"),
    ("1.2", {"inertial": 'quat_xyzw="0 0 0 1" rpy="0 0 0"'}, "link 'b': <origin> has both rpy and quat_xyzw"),
    ("1.1", {"origin": 'quat_xyzw="0 0 0 0"'}, "joint 'j': .* is no rotation: its length is 0"),
    ("1.1", {"inertial": 'quat_xyzw="0 0 1"'}, "link 'b': <origin quat_xyzw=\"0 0 1\">: 3 numbers, 4 are needed"),
    ("1.2", {"limit": 'lower="0" upper="1" effort="1" velocity="1" jerk="-4"'}, "joint 'j': jerk limit -4 is negative"),
    ("1.2", {"limit": 'upper="1"'}, "joint 'j': <limit> has no lower; a revolute joint needs both since URDF 1.2"),
    ("1.2", {"limit": 'lower="3" upper="1"'}, "joint 'j': lower limit 3 is above upper limit 1"),
    ("1.2", {"limit": '... acceleration="1e400"'}, 'acceleration="1e400">: not finite'),
    ("1.3", {}, '<robot version="1.3">: this version of URDF is not known; known are 1.0, 1.1, 1.2'),
    ("1", {}, "this version of URDF is not known")])
def test_rejected_versions_name_the_reason(said, row, expected):
    with pytest.raises(ModelError, match=expected):
        Robot.from_urdf(text(said, row))


def test_unknown_attributes_are_reported_once_with_their_elements():
    odd = {"limit": 'effort="1" velocity="1" snap="3"', "xyz": (0, 0, 1)}
    urdf = arm(*[odd] * 12).replace("<origin xyz", '<origin quat_wxyz="1 0 0 0" xyz').replace(
        "<mass ", '<mass unit="g" v:unit="g" ').replace("<robot ", '<robot xmlns:v="http://vendor" colour="red" ')
    found = Robot.from_urdf(urdf).warnings
    assert len(found) == 3, found
    assert any("<limit snap> is not an attribute of URDF and has no effect (joint 'j1', joint 'j2', " in said
               for said in found)
    assert any("<limit snap>" in said and "joint 'j8' and 4 more" in said for said in found)
    assert any("<mass unit> is not an attribute" in said and "link 'base'" in said for said in found)
    assert any("<origin quat_wxyz> is not an attribute" in said and "did you mean 'quat_xyzw'?" in said for said in found)
    assert {said.name for said in found} == {"unknown_attribute", "misspelt_attribute"}


def test_unknown_elements_of_vendors_are_ignored():
    urdf = text("1.2", {}).replace("<joint ", '<joint dont_collapse="true" ').replace("<link ", '<link type="soft" ')
    assert not Robot.from_urdf(urdf).warnings


def test_warning_for_thousands_of_unknown_attributes_is_short():
    names = " ".join(f'a{k}="1"' for k in range(20_000))
    found = Robot.from_urdf(text("1.2", {"limit": f"... {names}"})).warnings
    assert len(found) == 1 and len(found[0]) < 300


def test_values_of_unknown_attributes_are_not_read(monkeypatch):
    """Regression: lxml searches all attributes for each value; 100 000 of them took 105 s."""
    reads = []

    class Counted(etree.ElementBase):
        def get(self, key, default=None):
            reads.append(key)
            return super().get(key, default)

        @property
        def attrib(self):
            raise AssertionError("attrib reads every value")

    def parser(**options):
        made = XMLParser(**options)
        made.set_element_class_lookup(etree.ElementDefaultClassLookup(element=Counted))
        return made

    XMLParser = etree.XMLParser
    monkeypatch.setattr(etree, "XMLParser", parser)
    names = " ".join(f'a{k}="1"' for k in range(2000))
    assert Robot.from_urdf(text("1.2", {"limit": f"... {names}"}), backend="python").limits.effort[0] > 0.0
    assert len(reads) < 200 and "a7" not in reads


def test_check_warns_of_a_quaternion_without_effect(tmp_path, capsys):
    path = tmp_path / "old.urdf"
    path.write_text(text(None, {"origin": 'quat_xyzw="0.5 0.5 0.5 0.5"'}), encoding="utf-8")
    assert main.main(["check", str(path)]) == 1
    assert "warning: <origin quat_xyzw> is ignored in URDF 1.0 (joint 'j'): it requires version 1.1" in capsys.readouterr().out


def test_gravity_torque_of_a_bar_about_a_rotated_axis_matches_the_closed_form():
    """A rotation of 90 degrees about y maps the joint's z to the root's x: tau = m g c cos q for the bar along y."""
    half = 0.5 ** 0.5
    urdf = text("1.1", {"origin": f'quat_xyzw="0 {half!r} 0 {half!r}"', "inertial": 'xyz="0 0.3 0"'})
    robot = Robot.from_urdf(urdf.replace("<limit", '<axis xyz="0 0 1"/><limit'))
    assert robot.gravity([0.4])[0] == pytest.approx(2.0 * 9.81 * 0.3 * np.cos(0.4), rel=1e-14)
    assert abs(Robot.from_urdf(urdf.replace("<limit", '<axis xyz="1 0 0"/><limit')).gravity([0.4])[0]) < 1e-14, "upright axis"


def test_acceleration_and_jerk_limits_of_urdf_1_2_are_kept_by_retiming():
    urdf = text("1.2", {"limit": 'lower="-9" upper="9" effort="500" velocity="9" acceleration="7" deceleration="5" jerk="80"'})
    robot = Robot.from_urdf(urdf)
    fast = retime_motion(robot, np.linspace(0.0, 2.0, 20)[:, None])
    _, _, qdd, qddd = fast(np.linspace(0.0, fast.duration, 2000))
    assert 4.0 < np.abs(qdd).max() <= 5.0 * (1 + 1e-6) and 40.0 < np.abs(qddd).max() <= 80.0 * (1 + 1e-6)


def test_robot_file_overrides_acceleration_and_jerk_limits_of_the_urdf(tmp_path):
    path = tmp_path / "limits.yaml"
    path.write_text("version: 1\nlimits: {j: {max_jerk: 30.0, has_acceleration_limits: false}}", encoding="utf-8")
    robot = Robot.from_urdf(text("1.2", {"limit": '... acceleration="3" jerk="50"'}))
    assert (robot.limits.acceleration[0], robot.limits.jerk[0]) == (3.0, 50.0)
    limits = load(text("1.2", {"limit": '... acceleration="3" jerk="50"'}), path).limits
    assert np.isnan(limits.acceleration[0]) and limits.jerk[0] == 30.0


def limited_arm(acceleration, jerk):
    """Return the 7R arm in URDF 1.2 with acceleration and jerk limits."""
    urdf = (ROOT / "urdf" / "seven_r.urdf").read_text(encoding="utf-8").replace("<robot ", '<robot version="1.2" ', 1)
    return Robot.from_urdf(urdf.replace("<limit ", f'<limit acceleration="{acceleration}" jerk="{jerk}" ').encode())


@pytest.mark.parametrize(("acceleration", "jerk"), [(0.3, 1e4), (1e3, 1.5), (0.4, 2.0)])
def test_demo_and_excitation_motions_keep_acceleration_and_jerk_limits(acceleration, jerk):
    robot = limited_arm(acceleration, jerk)
    shown, exciting = demo_motion.choose_motion(robot), excite(robot, guesses=2, iterations=0).motion
    for motion in (demo_motion.MotionSample(*map(np.array, zip(*map(shown, np.linspace(0.0, shown.duration, 999))))),
                   demo_motion.MotionSample(*exciting(np.linspace(0.0, exciting.period, 999)))):
        use = max(np.abs(motion.qdd).max() / acceleration, np.abs(motion.qddd).max() / jerk)
        assert 0.4 < use <= 1.0


def test_acceleration_and_jerk_limits_of_the_urdf_become_node_parameters():
    pytest.importorskip("rclpy")
    from rnea_ros.nodes.common.model_facts import joint_limits, joint_parameters

    robot = limited_arm(3.0, 40.0)
    values = joint_parameters(robot)
    joint = robot.joint_names[2]
    assert values[f"joint_limits.{joint}.has_acceleration_limits"] and values[f"joint_limits.{joint}.max_acceleration"] == 3.0
    assert values[f"joint_limits.{joint}.has_jerk_limits"] and values[f"joint_limits.{joint}.max_jerk"] == 40.0
    assert np.all(joint_limits(values, robot).jerk == 40.0)
