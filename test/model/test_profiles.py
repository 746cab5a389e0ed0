"""Robot profiles: each can be read, fits its robot, and limits a retimed motion of it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError, ModelError, Robot, load
from rnea_ros.cli.main import main
from rnea_ros.model import robot_file
from rnea_ros.trajectory.limit_utilization import LimitUtilization, PeakTracker, resolve_limits
from rnea_ros.trajectory.retiming import retime_motion
from support.oracles import example_urdfs
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
UR = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint", "wrist_2_joint", "wrist_3_joint")


def example_robot(name: str) -> Path:
    """Return a URDF of the package example-robot-data."""
    return next(file for file in example_urdfs() if file.stem == name)


def renamed(name: str, old: str, new: str) -> str:
    """Return the URDF of an example robot with renamed joints."""
    return re.sub(old, new, example_robot(name).read_text(encoding="utf-8"))


def seven(*names: str) -> str:
    """Return an arm of seven joints with these names, for robots whose own URDF is not on PyPI."""
    text = (ROOT / "urdf" / "seven_r.urdf").read_text(encoding="utf-8")
    for k, name in enumerate(names, 1):
        text = text.replace(f'"joint{k}"', f'"{name}"')
    return text


def six() -> str:
    """Return an arm of six joints joint1 .. joint6."""
    return renamed("ur3_robot", "|".join(UR), lambda found: f"joint{UR.index(found.group()) + 1}")


def light(*names: str) -> str:
    """Return an arm of seven joints with these names, of a quarter of the mass."""
    return re.sub(r'((?:mass value|i[xyz]{2})=)"([^"]+)"', lambda found: f'{found[1]}"{0.25 * float(found[2])}"',
                  seven(*names))


def two_arms() -> str:
    """Return two light arms on one base, joints named as those of OpenArm."""
    arms = []
    for side in ("left", "right"):
        body = light(*(f"openarm_{side}_joint{k}" for k in range(1, 8))).partition("<robot")[2].partition(">")[2]
        body = body.replace("</robot>", "")
        arms.append(re.sub(r'((?:link|link name|joint name)=)"(?!openarm)([^"]+)"', rf'\1"{side}_\2"', body))
    roots = "".join(f'<joint name="{side}_mount" type="fixed"><parent link="torso"/><child link="{side}_base_link"/></joint>'
                    for side in ("left", "right"))
    return f'<robot name="two_arms"><link name="torso"/>{roots}{"".join(arms)}</robot>'


VELOCITY_ALONE = ("iiwa7",)
# Warnings about masses of the example URDFs, which no profile changes
ACCEPTED = {"go1": ("triangle_inequality",), "tiago_arm": ("negative_inertia",)}
AFFIXED = {"openarm": "openarm_left_{}", "yam": "dof_{}"}  # names of joints in the makers' URDFs; of others: a prefix
URDFS = {
    "fr3": lambda: renamed("panda", "panda_joint", "fr3_joint"), "fer": lambda: renamed("panda", "panda_joint", "fer_joint"),
    "panda": lambda: example_robot("panda"), "so101": lambda: example_robot("so101"), "koch": lambda: example_robot("so101"),
    "xarm7": lambda: example_robot("xarm7"), "go1": lambda: example_robot("go1"), "go2": lambda: example_robot("go2"),
    "a1": lambda: example_robot("a1"), "solo12": lambda: example_robot("solo12"),
    "tiago_arm": lambda: example_robot("tiago_no_hand"),
    "ur3e": lambda: example_robot("ur3_robot"), "ur5e": lambda: example_robot("ur5_robot"),
    **dict.fromkeys(("ur10e", "ur16e", "ur20", "ur30"), lambda: example_robot("ur10_robot")),
    "iiwa7": lambda: seven(*(f"lbr_A{k}" for k in range(1, 8))), "iiwa14": lambda: seven(*(f"lbr_A{k}" for k in range(1, 8))),
    "gen3": lambda: renamed("xarm7", r'"joint(\d)"', r'"joint_\1"'),
    **dict.fromkeys(("xarm6", "piper", "yam", "arx_x5"), six), "z1": lambda: example_robot("z1"),
    "openarm": lambda: light(*(f"joint{k}" for k in range(1, 8))), "openarm_bimanual": two_arms,
}


def without_jumps(robot: Robot) -> Robot:
    """Return the robot without Coulomb friction, whose jump at rest exceeds any limit of torque rate."""
    smooth = {link.joint: replace(link.term, coulomb=0.0) for link in robot.model.links if link.joint}
    return Robot.from_model(robot.model.with_joint_dynamics(smooth))


def test_every_profile_is_tested_with_a_robot():
    assert set(URDFS) == set(robot_file.profile_names())


# Profiles of a robot that another profile has as well, with other numbers.
SAME_ROBOT = ("fer", "ur16e", "ur20", "ur30", "iiwa14", "yam", "arx_x5", "koch", "a1", "go2")


@pytest.mark.parametrize("name", [pytest.param(name, marks=pytest.mark.campaign) if name in SAME_ROBOT else name
                                  for name in robot_file.profile_names()])
def test_motion_is_retimed_inside_the_limits_of_each_profile(name):
    robot = load(URDFS[name](), name, base="fixed")
    assert robot.is_fixed_tree
    file = robot_file.read(name)
    declared = [*file.section("limits"), *file.section("drives")]
    assert declared and set(declared) <= set(robot.joint_names)
    limits = resolve_limits(robot, None)
    if name in VELOCITY_ALONE:
        limits = replace(limits, acceleration=np.full(robot.n, 8.0))
    rng = np.random.default_rng(3)
    low, high = np.nan_to_num(robot.limits.lower, nan=-1.0), np.nan_to_num(robot.limits.upper, nan=1.0)
    middle, half = 0.5 * (np.maximum(low, -2.0) + np.minimum(high, 2.0)), 0.2 * (np.minimum(high, 2.0) - np.maximum(low, -2.0))
    points = middle + half * rng.uniform(-1.0, 1.0, (4, robot.n))
    if name in VELOCITY_ALONE:
        with pytest.raises(InputError, match="only velocity limits are known"):
            retime_motion(robot, points)
    motion = retime_motion(robot, points, limits=limits)
    t = np.linspace(0.0, motion.duration, 600)
    state = motion(t)
    pair = robot.torque_and_rate(*state)[0], without_jumps(robot).torque_and_rate(*state)[1]
    peaks = PeakTracker(LimitUtilization.of(without_jumps(robot), limits))
    peaks.add(t, *pair, *state)
    most = peaks.ranked()[0]
    assert 0.95 <= most.share <= 1.0 + 1e-6, most


@pytest.mark.parametrize("name", robot_file.profile_names())
def test_profile_fits_prefixed_joints_and_passes_check(name, tmp_path, capsys):
    """Every joint of the profile gets the prefix of a maker's URDF, or 'left_'; the names are the only warning."""
    source = URDFS[name]()
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8")
    joints = dict.fromkeys([*robot_file.read(name).section("limits"), *robot_file.read(name).section("drives")])
    names = {joint: AFFIXED.get(name, "left_{}").format(joint) for joint in joints}
    file = tmp_path / "prefixed.urdf"
    file.write_text(re.sub(r'(joint[^>]*?name=|joint=)"([^"]+)"', lambda found: f'{found[1]}"{names.get(found[2], found[2])}"',
                           text), encoding="utf-8")
    accepted = [part for warning in ("renamed_joints", *ACCEPTED.get(name, ())) for part in ("--accept", warning)]
    assert main(["check", str(file), "--robot-file", name, *accepted]) == 0, capsys.readouterr()
    plain, prefixed = load(source, name, backend="python"), load(file, name, backend="python")
    assert set(names.values()) <= set(prefixed.joint_names) | set(prefixed.tree_joints)
    for quantity in ("velocity", "effort", "commanded_effort_rate", "lower", "upper"):
        np.testing.assert_array_equal(getattr(prefixed.limits, quantity), getattr(plain.limits, quantity))


def test_profile_states_sources_and_unknown_values():
    for name in robot_file.profile_names():
        text = Path(robot_file.located(name)).read_text(encoding="utf-8")
        assert text.startswith("# ") and ("# Unknown: " in text or "unknown" in text), name


def test_profiles_define_the_effort_conventions():
    """Unknown conventions are rejected as commands; their current gains can be identified."""
    efforts = {name: load(URDFS[name](), name, base="fixed").model.efforts for name in robot_file.profile_names()}
    assert {name for name, declared in efforts.items() if declared.measured.quantity == "unknown"} == {
        "piper", "ur3e", "ur5e", "ur10e", "ur16e", "ur20", "ur30"}
    contents = {name: declared.commanded.contains for name, declared in efforts.items()}
    assert {name: content for name, content in contents.items() if content != "total"} == {
        **dict.fromkeys(("iiwa7", "iiwa14"), "without_gravity"),
        **dict.fromkeys(("panda", "fer", "fr3", "ur3e", "ur5e", "ur10e", "ur16e", "ur20", "ur30"),
                        "without_gravity_and_friction")}
    ur, six = load(URDFS["ur5e"](), "ur5e"), np.zeros(6)
    with pytest.raises(InputError, match=r"unknown, for its drivers differ.*joint_torque \| motor_torque \| current"):
        ur.measured_torque(six, six, six)
    with pytest.raises(ModelError, match="unknown"):
        load(URDFS["ur5e"](), {"version": 1, "commanded_effort": {"quantity": "unknown"}})


def test_file_with_the_name_of_a_profile_takes_precedence(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "fr3_joint1" in robot_file.read("fr3").section("limits")
    Path("fr3").write_text("version: 1\nlimits: {mine: {max_effort: 1.0}}\n")
    assert list(robot_file.read("fr3").section("limits")) == ["mine"]
    with pytest.raises(ModelError, match="rnea robot-file --list"):
        robot_file.read("fr4")


def test_robot_file_command_lists_and_prints_profiles(capsys):
    assert main(["robot-file", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(robot_file.profile_names())
    assert main(["robot-file", "ur5e"]) == 0
    assert "max_velocity: 3.1415927" in capsys.readouterr().out


def test_profile_fits_joints_with_a_prefix_or_suffix():
    plain = load(renamed("panda", "panda_joint", "fr3_joint"), "fr3", backend="python")
    for new in ("left_fr3_joint", r"fr3_joint\g<1>_of_two"):
        urdf = renamed("panda", "panda_joint(.)", new if "<1>" in new else new + r"\1")
        robot = load(urdf, "fr3", backend="python")
        np.testing.assert_array_equal(robot.limits.effort_rate, plain.limits.effort_rate)
        assert robot.model.velocity_by_position and robot.model.efforts == plain.model.efforts
        assert any(warning.name == "renamed_joints" and robot.joint_names[0] in warning for warning in robot.warnings)


def test_profile_of_another_robot_is_rejected_with_one_message():
    with pytest.raises(ModelError) as error:
        load(example_robot("ur5_robot"), "fr3", backend="python")
    (problem,) = error.value.problems
    assert "profile fr3 is for fr3_joint1, fr3_joint2" in problem and "has shoulder_pan_joint" in problem


def test_profile_that_fits_two_arms_is_rejected():
    urdf = arm(*[{}] * 14)
    for k in range(14, 0, -1):
        urdf = urdf.replace(f'"j{k}"', f'"{"left" if k < 8 else "right"}_lbr_A{(k - 1) % 7 + 1}"')
    with pytest.raises(ModelError, match="fits several groups of joints of robot 'arm': those of left_lbr_A1, right_lbr_A1"):
        load(urdf, "iiwa7", backend="python")
