"""rnea_ros.load: a robot from a robot file equals the robot of the constructors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import rnea_ros
from rnea_ros import (
    BaseState,
    JointDynamics,
    ModelError,
    RneaError,
    Robot,
    load,
)
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.sim.machines import gough_stewart
from support.parallel_machines import delta, planar_3rrr
from support.robots import arm, motor_file

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / "urdf"
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}, {"mimic": {"joint": "j1"}})
RNG = np.random.default_rng(11)
BOX = ((1e-3, 2e-4, 0.0), (2e-4, 2e-3, 0.0), (0.0, 0.0, 1.5e-3))
CARRIED = {"mass": 1.5, "com": [0.01, 0.02, 0.03], "inertia": [1e-3, 2e-4, 0, 2e-3, 0, 1.5e-3]}
DRIVES = {"j1": {"gear_ratio": -50.0, "rotor_inertia": 1e-4, "viscous": 0.5, "coulomb": 0.25},
          "j3": {"rotor_inertia": 2e-3}}
FRICTION = {"j1": {"coulomb": 1.0, "offset": -0.5}, "j2": {"viscous": 2.0, "smoothing": 0.1}}
TERMS = {"j1": JointDynamics(1e-4, -50.0, 1.25, 0.5, -0.5), "j2": JointDynamics(viscous=2.0, smoothing=0.1),
         "j3": JointDynamics(rotor_inertia=2e-3)}
TREE = {"gravity": [0.5, 0.0, -9.0], "payloads": {"l2": CARRIED}, "drives": DRIVES, "friction": FRICTION}


def states(n, count=4, samples=5):
    return RNG.uniform(-1.0, 1.0, (count, samples, n))


def assert_equal(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def file(**sections):
    return {"version": 1, **sections}


def plain(base="fixed"):
    """Return the robot of TREE and ARM, made by the constructors only."""
    robot = Robot.from_urdf(ARM, base, "python", (0.5, 0.0, -9.0), joint_dynamics=TERMS)
    return robot.with_payload("l2", 1.5, (0.01, 0.02, 0.03), BOX)


# --- every kind -----------------------------------------------------------------------------------------------------------


def test_loaded_fixed_tree_equals_the_constructors():
    motion = states(2)
    found = load(ARM, file(**TREE), backend="python")
    assert type(found) is Robot
    assert_equal(found.torque_and_rate(*motion), plain().torque_and_rate(*motion))


def test_actuation_weights_without_redundant_motors_do_not_change_torques():
    """Regression (fuzzing): an IndexError."""
    motion = states(2)
    found = load(ARM, file(**TREE, actuation_weights={"j1": 2.0}), backend="python")
    np.testing.assert_allclose(found.torque_and_rate(*motion), plain().torque_and_rate(*motion), rtol=1e-12, atol=1e-12)


def test_contact_that_holds_the_base_alone_gives_the_torques_of_a_fixed_base():
    """Regression (fuzzing): an IndexError, since no joint moves the contact."""
    motion = states(2, samples=1)[:, 0]
    contacts = {"foot": {"link": "base", "type": "fixed"}}
    robot = load(ARM, file(**TREE, base="prescribed", ground_contacts=contacts), backend="python")
    found = robot.torque_and_rate(*motion, base=BaseState())
    np.testing.assert_allclose(found, plain().torque_and_rate(*motion), rtol=1e-12, atol=1e-12)


def test_load_without_a_robot_file_equals_from_urdf():
    motion = states(2)
    for robot in (load(ARM, backend="python"), load(ARM, file(), backend="python")):
        assert type(robot) is Robot
        assert_equal(robot.torque_and_rate(*motion), Robot.from_urdf(ARM, backend="python").torque_and_rate(*motion))


@pytest.mark.parametrize("base", ["floating", "prescribed"])
def test_loaded_moving_base_equals_the_constructors(base):
    motion, state = states(2), BaseState((0.1, 0.2, 0.3), velocity=(1, 2, 3, 0.1, 0.2, 0.3))
    found, expected = load(ARM, file(base=base, **TREE), backend="python"), Robot(plain("floating"), {"base": base})
    assert type(found) is Robot and found.has_moving_base
    assert_equal(found.torque_and_rate(*motion, base=state), expected.torque_and_rate(*motion, base=state))


def loops_of(name):
    return {"loops": rnea_ros.model.robot_file.read(URDF / f"{name}.robot.yaml").content["loops"]}


def test_loaded_closed_loops_equal_the_constructors():
    sections = {"gravity": [0.5, 0.0, -9.0], "payloads": {"left_forearm": CARRIED},
                "drives": {"left_motor": {"rotor_inertia": 0.01, "gear_ratio": 5.0}}}
    found = load(URDF / "five_bar.urdf", file(**loops_of("five_bar"), **sections), backend="python")
    terms = {"left_motor": JointDynamics(rotor_inertia=0.01, gear_ratio=5.0)}
    tree = Robot.from_urdf(URDF / "five_bar.urdf", "fixed", "python", (0.5, 0.0, -9.0), joint_dynamics=terms)
    expected = Robot(tree.with_payload("left_forearm", 1.5, (0.01, 0.02, 0.03), BOX), URDF / "five_bar.robot.yaml")
    assert type(found) is Robot
    motion = np.array([[1.9, 1.1], [0.5, -0.2], [1.0, 2.0], [0.0, 3.0]])
    assert_equal(found.torque_and_rate(*motion), expected.torque_and_rate(*motion))


def test_loaded_closed_loops_on_a_base_at_rest_equal_a_fixed_base():
    found = load(URDF / "five_bar.urdf", file(base="floating", **loops_of("five_bar")), backend="python")
    held = load(URDF / "five_bar.urdf", file(**loops_of("five_bar")), backend="python")
    assert type(found) is Robot and found.sections == ("loops",)
    motion = np.array([[1.9, 1.1], [0.5, -0.2], [1.0, 2.0], [0.0, 3.0]])
    columns = [*map(held.joint_names.index, found.joint_names)]
    carried = found.torque_and_rate(*motion[:, columns], base=BaseState(acceleration=np.zeros(6)))
    for ours, theirs in zip(carried, held.torque_and_rate(*motion), strict=True):
        np.testing.assert_allclose(ours, theirs[columns], rtol=1e-11, atol=1e-11)


def test_loaded_elastic_joints_and_motors_equal_the_constructors():
    motion = states(2, 6)
    found = load(ARM, file(**TREE, elastic_joints={"j2": {"stiffness": 50.0}},
                           motors={"j2": {"link": "l1", "axis": [0, 2, 0], "mass": 0.5, "transverse_inertia": 1e-3}}
                           ) | {"drives": {**DRIVES, "j2": {"gear_ratio": 9.0, "rotor_inertia": 1e-3}}}, backend="python")
    assert type(found) is Robot and found.elastic_joints == ("j2",)
    terms = {"j1": JointDynamics(1e-4, -50.0, coulomb=1.25, viscous=0.5, offset=-0.5), "j2": TERMS["j2"], "j3": TERMS["j3"]}
    robot = Robot.from_urdf(ARM, "fixed", "python", (0.5, 0.0, -9.0), joint_dynamics=terms)
    expected = Robot(robot.with_payload("l2", 1.5, (0.01, 0.02, 0.03), BOX), motor_file({
        "j2": {"gear_ratio": 9.0, "rotor_inertia": 1e-3, "stiffness": 50.0, "link": "l1", "axis": [0, 1, 0],
               "mass": 0.5, "transverse_inertia": 1e-3}}))
    assert_equal(found.torque_and_rate(*motion), expected.torque_and_rate(*motion))


def test_rotor_inertia_of_a_base_mounted_motor_is_counted_once():
    """A rotor in the base about the vertical adds its rotor inertia only."""
    motion = states(2)
    drives = {"j1": {"gear_ratio": 9.0, "rotor_inertia": 1e-2}, "j2": {"gear_ratio": 5.0, "rotor_inertia": 1e-2}}
    plain = load(ARM, file(drives=drives), backend="python")
    turning = load(ARM, file(drives=drives, motors={"j2": {"link": "base", "axis": [0, 0, 1]}}), backend="python")
    assert type(turning) is Robot
    for ours, theirs in zip(turning.torque_and_rate(*motion), plain.torque_and_rate(*motion), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


def test_spring_joints_move_with_the_torques_of_the_rigid_tree():
    urdf, motion = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}), states(2)
    found = load(urdf, file(springs={"j2": {"stiffness": 40.0, "rest": 0.5}}, payloads={"l2": CARRIED}), backend="python")
    expected = Robot.from_urdf(urdf, backend="python").with_payload("l2", 1.5, (0.01, 0.02, 0.03), BOX)
    assert type(found) is Robot
    for k in range(2):
        solved = found.solve(*(x[k] for x in motion))
        moved = [np.array([solved.positions[name][order] for name in found.joint_names]) for order in range(4)]
        for ours, theirs in zip(found.torque_and_rate(*(x[k] for x in motion)), expected.torque_and_rate(*moved), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("make", [gough_stewart, delta, planar_3rrr])
def test_loaded_platforms_equal_the_constructors(make):
    machine = make()
    found = load(machine.urdf, machine.robot_file | {"gravity": [0.5, 0.0, -9.0], "payloads": {"platform": CARRIED}},
                 backend="python")
    expected = machine.robot(backend="python", gravity=(0.5, 0.0, -9.0))
    expected = expected.with_payload("platform", 1.5, (0.01, 0.02, 0.03), BOX)
    assert type(found) is Robot and found.platforms == ("platform",)
    motion = PlatformMotion(*machine.home)
    assert_equal(found.torque_and_rate(motion=motion), expected.torque_and_rate(motion=motion))


def test_platform_robot_file_equals_the_generated_hexapod():
    found, machine = load(URDF / "stewart.urdf", URDF / "stewart.robot.yaml", backend="python"), gough_stewart()
    (position, rotation), expected = machine.home, machine.robot(backend="python")
    motion = PlatformMotion(np.array(position) + [0.1, 0.05, 0.1], rotation, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    for ours, theirs in zip(found.torque_and_rate(motion=motion), expected.torque_and_rate(motion=motion), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)


def test_home_pose_of_the_platform_is_read_from_urdf_or_robot_file():
    machine = planar_3rrr()
    pose = 'type="floating"><parent link="base"/><child link="platform"/><origin xyz="'
    away = machine.urdf.replace(f"{pose}0.0 0.0", f"{pose}0.9 0.0")
    assert away != machine.urdf
    with pytest.raises(ModelError, match="do not reach the platform at the home pose"):
        load(away, machine.robot_file, backend="python")
    home = {"xyz": [0, 0, 0], "rpy": [0, 0, 0]}
    found = load(away, machine.robot_file | {"platform": {"link": "platform", "home": home}}, backend="python")
    assert_equal(found.home, machine.robot(backend="python").home)


# --- limits and friction -------------------------------------------------------------------------------------------------


def test_limits_of_the_robot_file_override_the_urdf():
    given = {"joint2": {"max_effort": 9.0, "max_effort_rate": 2e3, "max_acceleration": 15, "max_jerk": 5e2,
                        "min_position": -1},
             "joint1": {"has_velocity_limits": False}}
    for sections in ({}, {"base": "floating"}):
        found = load(URDF / "rr.urdf", file(limits=given, **sections), backend="python")
        limits, before = getattr(found, "robot", found).limits, Robot.from_urdf(URDF / "rr.urdf", backend="python").limits
        np.testing.assert_array_equal(limits.effort, [before.effort[0], 9.0])
        np.testing.assert_array_equal(limits.effort_rate, [np.nan, 2e3])
        np.testing.assert_array_equal(limits.acceleration, [np.nan, 15.0])
        np.testing.assert_array_equal(limits.jerk, [np.nan, 500.0])
        np.testing.assert_array_equal(limits.velocity, [np.nan, before.velocity[1]])
        np.testing.assert_array_equal(limits.lower, [before.lower[0], -1.0])
        np.testing.assert_array_equal(limits.upper, before.upper)


def test_friction_of_the_urdf_is_optional_and_overridden_by_the_file():
    urdf = ARM.replace("</joint>", '<dynamics damping="3" friction="2"/></joint>', 1)
    for asked, term in ((False, JointDynamics(viscous=7.0)), (True, JointDynamics(viscous=7.0, coulomb=2.0))):
        found = load(urdf, file(friction={"j1": {"viscous": 7.0}}, urdf_friction=asked), backend="python")
        assert found.model.links[1].term == term
    assert load(urdf, backend="python", friction=True).model.links[1].term == JointDynamics(viscous=3.0, coulomb=2.0)


def test_arguments_of_load_override_the_robot_file():
    content = file(gravity=[0, 0, -1.0], base="floating")
    found = load(ARM, content, base="fixed", gravity=np.array([0, 0, -2]), backend="python")
    assert type(found) is Robot and found.gravity_vector.tolist() == [0.0, 0.0, -2.0]
    for robot_file in (None, file()):
        with pytest.raises(RneaError, match="base is 'sideways'; allowed are fixed, floating"):
            load(ARM, robot_file, base="sideways")
    for base in ("floating", "prescribed"):
        assert load(ARM, base=base, backend="python").declaration == {"base": base}


# --- combinations of sections ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("sections", [
    {"springs": {"j2": {"stiffness": 1.0}}}, {"base": "floating", "springs": {"j2": {"stiffness": 1.0}}},
    {"base": "prescribed", "motors": {"j2": {"link": "l1", "axis": [0, 0, 1]}}},
    {"springs": {"j2": {"stiffness": 1.0}}, "motors": {"j1": {"link": "l1", "axis": [0, 0, 1]}}},
    {"springs": {"j2": {"stiffness": 1.0, "damping": 0.1}}}, {"passive": ["j2"]}])
def test_combinations_of_sections_load_as_a_robot(sections):
    robot = load(ARM, file(**sections), backend="python")
    assert type(robot) is Robot
    assert robot.joint_names == ("j1", "j2")


def test_platform_without_loops_is_rejected():
    with pytest.raises(ModelError, match="declares platform without loops"):
        load(gough_stewart().urdf, {"version": 1, "platform": {"link": "platform"}}, backend="python")


@pytest.mark.parametrize(("link", "said"), [
    ("plattform", "platform link 'plattform' does not exist; did you mean 'platform'"),
    ("rod1", "link 'rod1' is to be the platform of a parallel robot: it must be the child of a floating joint"),
    ("base", "it must be the child of a floating joint")])
def test_platform_without_floating_joint_on_the_root_is_rejected(link, said):
    machine = gough_stewart()
    with pytest.raises(ModelError, match=said):
        load(machine.urdf, machine.robot_file | {"platform": {"link": link}})


def test_platform_of_several_fixed_links_equals_a_payload():
    machine = planar_3rrr()
    more = ('<link name="tool"><inertial><mass value="0.5"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" '
            'iyz="0"/></inertial></link><joint name="t" type="fixed"><parent link="platform"/><child link="tool"/></joint>'
            "</robot>")
    urdf, motion = machine.urdf.replace("</robot>", more), PlatformMotion(*machine.home, acceleration=[1.0, 0, 0, 0, 0, 0])
    expected = machine.robot(backend="python").with_payload("platform", 0.5, inertia=np.diag([1e-3, 1e-3, 1e-3]))
    found = load(urdf, machine.robot_file, backend="python")
    for ours, theirs in zip(found.torque_and_rate(motion=motion), expected.torque_and_rate(motion=motion), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)


# --- the files of the package --------------------------------------------------------------------------------------------

KINDS = {  # what Robot.kind says
    "branched": "tree on a floating base", "five_bar": "robot on a fixed base with loops",
    "hua_arm": "robot on a fixed base with elastic joints, motors", "palletiser": "robot on a fixed base with loops",
    "panda": "tree on a fixed base", "seven_r": "tree on a fixed base", "stanford": "tree on a fixed base",
    "stewart": "robot on a fixed base with loops, platform", "crane": "robot on a fixed base with flexible links",
    **dict.fromkeys(("two_platforms", "four_platforms"), "robot on a fixed base with loops, platforms"),
    **dict.fromkeys(("ankles", "biped", "eel", "quadruped", "ship_arm", "wheeled_arm"), "")}


def test_every_packaged_robot_file_is_covered():
    """Robot files have a URDF of the same name, except elastic_quadruped (quadruped.urdf) and two of example-robot-data."""
    others = {"elastic_quadruped", "solo12", "ur5"}
    assert {path.name.removesuffix(".robot.yaml") for path in URDF.glob("*.robot.yaml")} == {*KINDS, *others}


@pytest.mark.parametrize(("name", "kind"), KINDS.items(), ids=KINDS)
def test_packaged_robot_files_load_with_their_kind(name, kind):
    robot = load(URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml", backend="python")
    assert robot.kind == kind or (not kind and robot.has_moving_base)


def test_robot_file_of_the_stanford_arm_has_its_rate_limits_and_drives():
    """test_config.py compares this file with config/stanford.yaml, the corresponding node parameters."""
    here = load(URDF / "stanford.urdf", URDF / "stanford.robot.yaml", backend="python")
    assert here.limits.effort_rate.tolist() == [180.0, 320.0, 200.0, 2.5, 4.0, 0.4]
    assert here.model.links[1].term == JointDynamics(rotor_inertia=0.953)
