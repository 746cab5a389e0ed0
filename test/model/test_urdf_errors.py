"""Invalid URDFs raise one error that lists all problems; implausible ones cause warnings with values."""

from __future__ import annotations

import pytest

from rnea_ros import ModelError, Robot
from rnea_ros.model.urdf_validation import IMPLAUSIBLE
from support.robots import INERTIAL

INERTIA = '<inertia ixx="0.02" ixy="0" ixz="0" iyy="0.03" iyz="0" izz="0.025"/>'
LIMIT = '<limit effort="1" velocity="1"/>'


def link(name="a", inertial=INERTIAL):
    return f'<link name="{name}">{inertial}</link>'


def joint(name="j", parent="a", child="b", kind="revolute", inside='<axis xyz="0 0 1"/>', limit=LIMIT):
    return (f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'{inside}{limit}</joint>')


def robot(*elements):
    return f'<robot name="r">{"".join(elements)}</robot>'


def problems(text):
    with pytest.raises(ModelError) as caught:
        Robot.from_urdf(text)
    return caught.value.problems


def with_inertial(inertial):
    return link("a"), link("b", f"<inertial>{inertial}</inertial>"), joint()


def between(inside):
    """Return a robot with a joint that contains the given elements."""
    return link("a"), link("b"), joint(inside=inside)


def limited(limit):
    return link("a"), link("b"), joint(limit=f"<limit {limit}/>")


GOOD = link("a"), link("b"), joint()
WRONG = {
    "no link": ([], "no <link>"),
    "two roots": ([*GOOD, link("c")], r"2 links have no parent, exactly one root is needed: 'a', 'c'"),
    "no root": ([link("a"), link("b"), joint(), joint("k", "b", "a")], r"cycle of joints, .*'a', 'b'"),
    "cycle beside the tree": ([*GOOD, link("c"), link("d"), joint("k", "c", "d"), joint("l", "d", "c")], r"cycle.*'c', 'd'"),
    "joint from a link to itself": ([*GOOD, link("c"), joint("k", "c", "c")], r"cycle.*'c'"),
    "two parents": ([*GOOD, link("c"), joint("k", "a", "c"), joint("l", "b", "c")],
                    r"'c' is the child of 2 joints, from \['a', 'b'\]"),
    "unknown parent": ([*GOOD, link("c"), joint("k", "nowhere", "c")], r"'k': parent link 'nowhere' does not exist"),
    "unknown child": ([*GOOD, joint("k", "a", "nowhere")], r"'k': child link 'nowhere' does not exist"),
    "duplicate link": ([*GOOD, link("b")], r"2 links are named 'b'"),
    "duplicate joint": ([*GOOD, link("c"), joint("j", "a", "c")], r"2 joints are named 'j'"),
    "nameless link": ([*GOOD, "<link/>"], r"<link> has no attribute 'name'"),
    "empty link name": ([*GOOD, link("")], r"a link has an empty name"),
    "empty joint name": ([link("a"), link("b"), joint("")], r"a joint has an empty name"),
    "no parent": ([link("a"), '<joint name="j" type="fixed"><child link="a"/></joint>'], r"'j': no <parent> in <joint>"),
    "no child": ([link("a"), '<joint name="j" type="fixed"><parent link="a"/></joint>'], r"'j': no <child> in <joint>"),
    "no type": ([link("a"), link("b"), joint().replace(' type="revolute"', "")], r"'j': <joint> has no attribute 'type'"),
    "unknown type": ([link("a"), link("b"), joint(kind="ball")], r"'j': type 'ball' is not supported; supported are revolute"),
    "two origins": (between("<origin/><origin/>"), r"'j': 2 <origin> elements"),
    "zero axis": (between('<axis xyz="0 0 0"/>'), r"'j': axis \[0.0, 0.0, 0.0\] has no direction"),
    "empty axis": (between("<axis/>"), r"'j': <axis> has no attribute 'xyz'"),
    "short axis": (between('<axis xyz="0 1"/>'), r'<axis xyz="0 1">: 2 numbers, 3 are needed'),
    "huge axis": (between('<axis xyz="1e308 1e308 0"/>'), r"larger than 1e\+09"),
    "words": (between('<origin xyz="one 2 3"/>'), r'<origin xyz="one 2 3">: not 3 numbers'),
    "numbers of Python only": (between('<origin xyz="1_0 2 3"/>'), r"not 3 numbers"),
    "NaN origin": (between('<origin xyz="nan 2 3"/>'), r"not finite"),
    "infinite rpy": (between('<origin rpy="0 inf 3"/>'), r"not finite"),
    "NaN limit": (limited('effort="nan" velocity="1"'), r'<limit effort="nan">: not finite'),
    "word limit": (limited('effort="10Nm" velocity="1"'), r'<limit effort="10Nm">: not a number'),
    "negative mass": (with_inertial(f'<mass value="-2.5"/>{INERTIA}'), r"link 'b': mass -2.5 kg is negative"),
    "NaN mass": (with_inertial(f'<mass value="nan"/>{INERTIA}'), r'link \'b\': <mass value="nan">: not finite'),
    "no mass": (with_inertial(INERTIA), r"link 'b': no <mass> in <inertial>"),
    "no value of mass": (with_inertial(f"<mass/>{INERTIA}"), r"<mass> has no attribute 'value'"),
    "no inertia": (with_inertial('<mass value="1"/>'), r"link 'b': no <inertia> in <inertial>"),
    "half an inertia": (with_inertial('<mass value="1"/><inertia ixx="1"/>'), r"<inertia> has no attribute 'ixy'"),
    "NaN inertia": (with_inertial(f'<mass value="1"/>{INERTIA.replace("0.03", "nan")}'), r'<inertia iyy="nan">: not finite'),
    "mimic of itself": (between('<mimic joint="j"/>'), r"'j': mimics itself"),
    "mimic circle": ([link("a"), link("b"), link("c"), joint(inside='<mimic joint="k"/>'),
                      joint("k", "b", "c", inside='<mimic joint="j"/>')], r"mimics itself through 'j', 'k'"),
    "mimic of nothing": (between("<mimic/>"), r"<mimic> has no attribute 'joint'"),
    "mimic times a word": ([*GOOD, link("c"), joint("k", "b", "c", inside='<mimic joint="j" multiplier="x"/>')],
                           r"not a number"),
    "long name": ([*GOOD, link("n" * 5000), joint("k", "b", "n" * 5000)], r"5000 characters, at most 1000"),
}


@pytest.mark.parametrize("case", WRONG)
def test_each_invalid_element_is_rejected_with_its_message(case):
    elements, expected = WRONG[case]
    with pytest.raises(ModelError, match=expected) as caught:
        Robot.from_urdf(robot(*elements))
    assert len(str(caught.value)) < 12_000


def test_base_case_of_the_invalid_examples_is_valid():
    assert Robot.from_urdf(robot(*GOOD)).n == 1


@pytest.mark.parametrize("odd", ['<axis xzy="0 0 1"/>', "<axis/>", '<axis xyz="0"/>'])
def test_axis_of_a_fixed_joint_is_ignored(odd):
    assert Robot.from_urdf(robot(*GOOD, link("c"), joint("fast", "b", "c", "fixed", odd, ""))).n == 1


def test_undeclared_namespace_prefix_is_ignored():
    """The ROS parser accepts such prefixes, which occur in old files for Gazebo."""
    odd = '<gazebo reference="b"><sensor:camera name="eye"/></gazebo>'
    with pytest.raises(ModelError, match="not well-formed"):  # lxml repeats this error in later ones
        Robot.from_urdf("<robot><")
    assert Robot.from_urdf(robot(*GOOD, odd)).n == 1
    with pytest.raises(ModelError, match="not well-formed"):
        Robot.from_urdf(robot(*GOOD, odd, "<a>"))


def test_all_problems_of_a_urdf_are_listed_in_one_error():
    text = robot(
        link("a"), link("b", f'<inertial><mass value="-1"/>{INERTIA}</inertial>'), link("c", "<inertial><mass/></inertial>"),
        link("lost"), link("twice"), link("twice"), link("x"), link("y"),
        joint("j1", "a", "b", inside='<axis xyz="0 0 0"/>'), joint("j2", "a", "c", kind="ball"),
        joint("j3", "nowhere", "x"), joint("j4", "x", "y"), joint("j5", "y", "x"),
        joint("j1", "a", "twice", inside='<origin xyz="1 nan 0"/>'), joint("j7", "b", "c", kind="floating"))
    expected = ["2 links are named 'twice'", "2 joints are named 'j1'", "'c': <mass> has no attribute 'value'", "no <inertia>",
                "mass -1 kg is negative", "axis [0.0, 0.0, 0.0]", "type 'ball'", "parent link 'nowhere'", "not finite",
                "links have no parent", "'lost'", "'c' is the child of 2 joints", "cycle", "type 'floating'"]
    with pytest.raises(ModelError) as caught:
        Robot.from_urdf(text)
    message = str(caught.value)
    assert not [part for part in expected if part not in message]
    assert len(caught.value.problems) >= 10
    assert f"{len(caught.value.problems)} problems" in message
    assert message.count("\n  - ") == len(caught.value.problems)


def test_each_problem_is_reported_once():
    for elements, _ in WRONG.values():
        found = problems(robot(*elements))
        assert len(set(found)) == len(found)


def test_error_names_the_file_or_text(tmp_path):
    path = tmp_path / "broken.urdf"
    path.write_text(robot(*GOOD, link("c")), encoding="utf-8")
    with pytest.raises(ModelError, match=r"broken\.urdf: 2 links have no parent"):
        Robot.from_urdf(path)
    with pytest.raises(ModelError, match=r"^URDF text: 2 links have no parent"):
        Robot.from_urdf(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(("text", "reason"), [
    ("", "empty text"), ("   \n", "empty text"), ("<robot", "not well-formed"), ("<robot></robo>", "not well-formed"),
    ("<sdf/>", r"outermost element is <sdf>; a URDF has <robot>"), ("no/such/file.urdf", "cannot be read"),
    ("\0", "cannot be read"), ("x" * 100_000, "cannot be read"), (b"", "not well-formed"),
    (b"\x89PNG\r\n\0\xff", "not well-formed"), ("<robot name='\ud800'/>", "not well-formed"),
    (None, "cannot be read"), (42, "cannot be read"),
    ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:arm/></robot>', "unexpanded xacro")])
def test_text_that_is_not_a_urdf_is_rejected(text, reason):
    with pytest.raises(ModelError, match=reason) as caught:
        Robot.from_urdf(text)
    assert len(str(caught.value)) < 1000


# ---------------------------------------------------------------------- implausible, not invalid

def warnings(text):
    """Return the warnings about single bodies."""
    return [warning for warning in Robot.from_urdf(text).warnings if warning.name not in IMPLAUSIBLE]


def inertial(mass, *moments):
    names = ("ixx", "iyy", "izz")
    numbers = " ".join(f'{name}="{moment}"' for name, moment in zip(names, moments))
    return f'<mass value="{mass}"/><inertia {numbers} ixy="0" ixz="0" iyz="0"/>'


@pytest.mark.parametrize(("body", "expected"), [
    (inertial(1, 0.142, 0.247, 0.660), ["triangle inequality", "0.389 < 0.66", "0.142", "0.247"]),
    (inertial(1, -0.1, 0.2, 0.2), ["not positive", "-0.1"]),
    (inertial(0, 0.1, 0.1, 0.1), ["mass is zero but the inertia is not"]),
    (inertial(1, 0.1, 0.1, 0.1).replace('ixy="0"', 'ixy="0.2"'), ["not positive", "-0.1"])])
def test_physically_impossible_inertias_cause_a_warning(body, expected):
    found = warnings(robot(*with_inertial(body)))
    assert len(found) == 1 and found[0].startswith("link 'b': ")
    assert not [part for part in expected if part not in found[0]]


@pytest.mark.parametrize("body", [
    inertial(1, 0.1, 0.2, 0.3), inertial(1, 0, 0.2, 0.2), inertial(1, 0, 0, 0), inertial(0, 0, 0, 0)])
def test_inertias_at_the_bound_of_the_triangle_inequality_cause_no_warning(body):
    assert not warnings(robot(*with_inertial(body)))


def test_missing_limit_is_nan_with_a_warning():
    text = robot(link("a"), link("b"), joint(limit=""))
    loaded = Robot.from_urdf(text)
    assert any("'j' has no <limit>: its limits are unknown" in warning for warning in loaded.warnings)
    assert all(value != value for value in (loaded.limits.effort[0], loaded.limits.velocity[0], loaded.limits.upper[0]))


def test_message_lists_different_problems_once_and_not_more_than_can_be_read():
    negative = INERTIAL.replace('value="', 'value="-')
    several = robot(*[link(f"l{k}", negative) for k in range(60)], *[joint(parent="missing")] * 5)
    with pytest.raises(ModelError) as caught:
        Robot.from_urdf(several)
    lines = str(caught.value).splitlines()
    found = caught.value.problems
    assert len(found) > 60 and lines[0].endswith(f"{len(found)} problems")
    assert len(lines) == 42 and len(set(lines)) == 42
    assert lines[-1] == f"  - and {len(set(found)) - 40} more"
