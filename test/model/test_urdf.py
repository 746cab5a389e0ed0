"""URDF to model: tree, joints, limits, merged links, mimic joints, names, sources."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, ModelError, Robot
from support.mdh_check import check_kinematics_and_inertias, forward_kinematics, homogeneous
from support.oracles import PinocchioOracle, deviation, worst
from support.robots import INERTIAL, JointSpec, LinkSpec, Tree, about, arm, random_state

UP = {"axis": (0, 0, 1)}


def test_joints_are_depth_first_in_the_order_of_the_file():
    branches = [{"parent": "base"}, {"parent": "l1"}, {"parent": "base"}, {"parent": "l2"}, {"parent": "l3"}, {"parent": "l1"}]
    assert Robot.from_urdf(arm(*branches)).joint_names == ("j1", "j2", "j4", "j6", "j3", "j5")


def test_joint_types_and_limits_are_read_with_warnings():
    limited = 'effort="10" velocity="2" lower="-1" upper="3"'
    robot = Robot.from_urdf(arm(
        {"limit": limited}, {"kind": "continuous", "limit": limited}, {"kind": "prismatic", "limit": None},
        {"limit": 'effort="0" velocity="0"'}, {"limit": 'effort="inf" velocity="-3" lower="-inf" upper="inf"'},
        {"limit": 'velocity="4" lower="2" upper="1"'}, {"kind": "continuous", "limit": None}))
    nan, limits = np.nan, robot.limits
    assert robot.joint_types == ("revolute", "continuous", "prismatic", "revolute", "revolute", "revolute", "continuous")
    np.testing.assert_array_equal(limits.lower, [-1, nan, nan, nan, nan, nan, nan])
    np.testing.assert_array_equal(limits.upper, [3, nan, nan, nan, nan, nan, nan])
    np.testing.assert_array_equal(limits.velocity, [2, 2, nan, nan, nan, 4, nan])
    np.testing.assert_array_equal(limits.effort, [10, 10, nan, nan, nan, nan, nan])
    for unknown in (limits.effort_rate, limits.acceleration, limits.jerk):
        assert unknown.shape == (7,) and np.isnan(unknown).all()
    assert any("'j3' has no <limit>" in warning for warning in robot.warnings)
    assert any("'j6'" in warning and "2" in warning and "1" in warning for warning in robot.warnings)
    assert not any("'j7'" in warning for warning in robot.warnings), "a continuous joint needs no limit"


def test_fixed_links_are_merged_and_keep_their_frames():
    fixed = {"kind": "fixed", "xyz": (0.1, 0.02, -0.03), "rpy": (0.1, 0.2, -0.3)}
    text = arm(UP, *[fixed] * 40, {"axis": (0, 1, 1)}, *[fixed] * 40)
    robot = Robot.from_urdf(text)
    assert robot.n == 2 and len(robot.model.links) == 3
    assert list(robot.model.frames) == ["base", *(f"l{k}" for k in range(1, 83))]
    check_kinematics_and_inertias(robot, PinocchioOracle(text, robot), 0)


def test_chain_of_250_joints_is_read_accurately():
    text = arm(*[{"xyz": (0.01, 0.02, 0.03), "rpy": (0.2, 0.1, 0), "axis": (0, 0.1, 1)}] * 250)
    robot = Robot.from_urdf(text)
    assert robot.n == 250 and robot.reconstruction_error < 1e-12


def test_chains_of_mimic_joints_end_at_one_coordinate():
    robot = Robot.from_urdf(arm({"mimic": {"joint": "j2", "multiplier": "-2", "offset": "0.5"}},
                                {"mimic": {"joint": "j4", "multiplier": "3", "offset": "-1"}}, UP,
                                {"kind": "prismatic"}, {"mimic": {"joint": "j4"}}))
    assert robot.joint_names == ("j3", "j4")
    follow = {link.joint: (link.coordinate, link.multiplier, link.offset) for link in robot.model.links[1:] if link.joint}
    assert follow == {"j3": (0, 1, 0), "j4": (1, 1, 0), "j2": (1, 3, -1), "j1": (1, -6, 2.5), "j5": (1, 1, 0)}


def test_mimic_without_effect_is_ignored_with_a_warning():
    robot = Robot.from_urdf(arm({"mimic": {"joint": "gone"}}, {"kind": "fixed", "mimic": {"joint": "j1"}}))
    assert robot.joint_names == ("j1",)
    assert sum("<mimic> is ignored" in warning for warning in robot.warnings) == 2


@pytest.mark.parametrize(("axis", "x"), [
    ((0, 0, 1), (1, 0, 0)), ((1, 0, 0), (0, 1, 0)), ((0, 1, 0), (0, 0, 1)), ((0, 0, -2), (1, 0, 0))])
def test_planar_joint_becomes_two_sliders_and_a_rotation(axis, x):
    """The sliders move in the plane; the rotation is about its normal."""
    robot = Robot.from_urdf(arm({"kind": "planar", "axis": axis, "xyz": (1, 2, 3)}))
    assert robot.joint_names == ("j1/x", "j1/y", "j1/theta")
    assert robot.joint_types == ("prismatic", "prismatic", "continuous")
    assert np.isnan(robot.limits.effort).all()
    normal = np.array(axis) / np.linalg.norm(axis)
    q, frame = [0.3, -0.5, 0.8], robot.model.frames["l1"]
    pose = forward_kinematics(robot.model, q)[frame.link] @ homogeneous(frame.R, frame.P)
    position = np.array([1, 2, 3]) + 0.3 * np.array(x) - 0.5 * np.cross(normal, x)
    assert deviation(pose, homogeneous(about(normal, 0.8), position)) < 1e-15


def test_planar_joint_with_conflicting_names_is_rejected():
    tree = Tree("r", [LinkSpec(name) for name in "abc"],
                [JointSpec("p", "planar", "a", "b"), JointSpec("p/x", "continuous", "b", "c")])
    with pytest.raises(ModelError, match="2 joints are named 'p/x'"):
        Robot.from_urdf(tree.text())


def test_root_inertia_is_kept():
    robot = Robot.from_urdf(arm(UP), base="floating")
    assert robot.model.links[0].m == 1.5
    assert robot.model.links[0].ms == pytest.approx([0.15, -0.3, 0.075])
    assert robot.model.base == "floating" and robot.root_link == "base"
    assert Robot.from_urdf(arm(UP)).model.links[0].m == 1.5


def floating(kind="floating", extra=""):
    return (f'<robot name="r"><link name="world"/><link name="body">{INERTIAL}</link><link name="arm">{INERTIAL}</link>'
            f'<joint name="free" type="{kind}"><parent link="world"/><child link="body"/></joint>'
            f'<joint name="j" type="continuous"><parent link="body"/><child link="arm"/></joint>{extra}</robot>')


def test_floating_joint_at_the_root_is_the_base():
    robot = Robot.from_urdf(floating(), base="floating")
    assert robot.root_link == "body" and robot.joint_names == ("j",) and robot.model.links[0].m == 1.5
    assert not robot.warnings
    held = Robot.from_urdf(floating())
    assert held.root_link == "world" and any("held fixed" in warning for warning in held.warnings)
    heavy = floating().replace('<link name="world"/>', f'<link name="world">{INERTIAL}</link>')
    assert any("mass of link 'world' is ignored" in warning for warning in Robot.from_urdf(heavy, base="floating").warnings)


def test_floating_joint_of_a_fixed_base_robot_is_fixed_at_its_origin():
    """A rotation of 90 degrees about x makes the joint axis vertical, so that gravity does not act on it."""
    origin = '<child link="body"/><origin xyz="0.2 0 1" rpy="1.5707963267948966 0 0"/>'
    held, fixed = (Robot.from_urdf(floating(kind).replace('<child link="body"/>', origin).replace(
        '<child link="arm"/>', '<child link="arm"/><axis xyz="0 1 0"/>')) for kind in ("floating", "fixed"))
    state = random_state(np.random.default_rng(0), 1)
    for a, b in zip(held.torque_and_rate(*state), fixed.torque_and_rate(*state)):
        assert worst(a, b) < 1e-15
    assert abs(held.gravity(state[0])[0]) < 1e-12


@pytest.mark.parametrize("extra", [
    '<link name="x"/><joint name="inside" type="floating"><parent link="arm"/><child link="x"/></joint>',
    '<link name="x"/><joint name="inside" type="fixed"><parent link="world"/><child link="x"/></joint>',
], ids=["inside", "sibling"])
def test_floating_joint_not_at_the_root_is_rejected(extra):
    with pytest.raises(ModelError, match=r"joint '(free|inside)': type 'floating' is supported only between the root"):
        Robot.from_urdf(floating(extra=extra))


def test_robot_of_one_link_has_no_joints():
    robot = Robot.from_urdf(f'<robot name="stone"><link name="only">{INERTIAL}</link></robot>')
    assert robot.n == 0 and robot.mdh_table() == [] and robot.total_mass == 1.5


def test_names_with_any_characters_are_kept():
    names = ["a<b>&'\"", "ä β 関節", "x/y:z|{0}%s", "  spaces  ", "__import__('os')", "\U0001f916"]
    tree = Tree(names[0], [LinkSpec(name) for name in names],
                [JointSpec(f"{a}>{b}", "continuous", a, b) for a, b in pairwise(names)])
    robot = Robot.from_urdf(tree.text())
    assert robot.name == names[0] and list(robot.model.frames) == names
    assert robot.joint_names == tuple(joint.name for joint in tree.joints)
    assert len(robot.torque_and_rate(*[np.ones(5)] * 4)) == 2


def test_model_is_immutable():
    robot = Robot.from_urdf(arm(UP, UP))
    with pytest.raises(ValueError, match="read-only"):
        robot.model.links[1].ms[0] = 1.0
    with pytest.raises(ValueError, match="read-only"):
        robot.limits.effort[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        robot.model.name = "x"
    with pytest.raises(TypeError):
        robot.model.frames["new"] = None
    with pytest.raises(ValueError, match="read-only"):
        robot.model.frames["l1"].P[0] = 1.0


def test_model_id_changes_with_every_parameter():
    def model_id(**joint):
        return Robot.from_urdf(arm({**UP, **joint})).model_id

    variants = [{}, {"xyz": (1e-15, 0, 1)}, {"limit": 'effort="2" velocity="1"'}, {"kind": "prismatic"}]
    ids = [model_id(**variant) for variant in variants] + [
        Robot.from_urdf(arm(UP, inertial="")).model_id, Robot.from_urdf(arm(UP), gravity=(0, 0, 9)).model_id,
        Robot.from_urdf(arm(UP), joint_dynamics={"j1": JointDynamics(viscous=1)}).model_id,
        Robot.from_urdf(arm(UP)).with_payload("l1", 1.0).model_id]
    assert len(set(ids)) == len(ids)
    assert model_id() == model_id() and len(model_id()) == 16


def test_text_bytes_and_declared_encodings_are_read(tmp_path):
    text = arm(UP)
    path = tmp_path / "a robot.urdf"
    path.write_text(text, encoding="utf-8")
    declared = '<?xml version="1.0" encoding="{}"?>\n' + text.replace('"arm"', '"Ärm"')
    same = (text, text.encode(), path, str(path), f"\n\t {text}", f"\ufeff{text}")
    assert len({Robot.from_urdf(source).model_id for source in same}) == 1
    for source in (declared.format("iso-8859-1"), declared.format("iso-8859-1").encode("latin-1"),
                   declared.format("utf-16").encode("utf-16"), declared.format("utf-8").encode()):
        assert Robot.from_urdf(source).name == "Ärm"


def test_elements_without_dynamics_are_not_read():
    noise = ('<material name="m"><texture/></material><transmission name="t"><joint name="j1"/></transmission>'
             '<gazebo><x/></gazebo><ros2_control name="c"><joint name="j1"/></ros2_control></robot>')
    text = arm(UP).replace("</robot>", noise).replace("</link>", "<visual><geometry><mesh/></geometry></visual></link>")
    assert Robot.from_urdf(text).model_id == Robot.from_urdf(arm(UP)).model_id


def test_invalid_arguments_of_from_urdf_are_rejected():
    with pytest.raises(InputError, match=r"'flying'; allowed are fixed, floating"):
        Robot.from_urdf(arm(UP), base="flying")
    with pytest.raises(InputError, match="'unknown', but the moving joints are j1"):
        Robot.from_urdf(arm(UP), joint_dynamics={"unknown": JointDynamics()})


def test_negative_friction_is_set_to_zero_with_a_warning():
    text = ('<robot name="r"><link name="a"/><link name="b"/><joint name="ab" type="continuous"><parent link="a"/>'
            '<child link="b"/><dynamics damping="-0.5" friction="0.2"/></joint></robot>')
    robot = Robot.from_urdf(text, friction=True)
    assert robot.model.links[1].term == JointDynamics(coulomb=0.2)
    assert any("viscous friction -0.5 is negative" in warning for warning in robot.warnings)
    assert not any(warning.name == "negative_friction" for warning in Robot.from_urdf(text).warnings)
