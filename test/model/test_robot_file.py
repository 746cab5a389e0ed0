"""Robot files: all errors are reported at once with line and column; keys without implementation are rejected."""

from __future__ import annotations

import copy
import json
import pickle
import random
from pathlib import Path

import pytest

from rnea_ros import ModelError, RneaError, load
from rnea_ros.model import robot_file
from rnea_ros.model.robot_file_schema import CUT_JOINT_TYPES, SCHEMA
from support.robots import arm

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).resolve().parents[2]
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}, {"mimic": {"joint": "j1"}})
CUT = {"type": "revolute", "first": "l1", "second": {"link": "base", "xyz": [0, 0, 1]}}
WHEEL, BEAM, UP = {"link": "l1", "radius": 0.1}, {"end": [1, 0, 0]}, {"direction": [0, 0, 1], "stiffness": 1.0}


def refused(content, urdf=ARM):
    with pytest.raises(ModelError) as error:
        load(urdf, {"version": 1, **content}, backend="python")
    return error.value.problems


def problems_of(tmp_path, text, urdf=ARM):
    path = tmp_path / "arm.robot.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ModelError) as error:
        load(urdf, path, backend="python")
    assert str(error.value).startswith(str(path))
    return error.value.problems


# --- schema ---------------------------------------------------------------------------------------------------------


def test_published_schema_equals_the_one_in_use():
    """`rnea robot-file --schema > config/robot_file.schema.json` writes it."""
    assert json.loads((ROOT / "config" / "robot_file.schema.json").read_text(encoding="utf-8")) == SCHEMA
    jsonschema.Draft7Validator.check_schema(SCHEMA)


def leaves(schema, path=()):
    """Yield (path of keys, schema) of every named value; "*" stands for names of joints and links."""
    yield path, schema
    for key, entry in schema.get("properties", {}).items():
        yield from leaves(entry, (*path, key))
    if isinstance(schema.get("additionalProperties"), dict):
        yield from leaves(schema["additionalProperties"], (*path, "*"))


@pytest.mark.parametrize(("path", "schema"), list(leaves(SCHEMA)), ids=lambda value: ".".join(value) if value else "all")
def test_every_key_of_the_schema_has_a_description(path, schema):
    text = schema.get("description", "")
    assert text.endswith(".") and "  " not in text
    names = ("active", "joints", "type", "reversed", "accepted_warnings")
    if schema.get("type") in ("number", "array") and path[-1] not in names and "Not yet" not in text:
        assert "[" in text, f"{path} has no unit"


LATER = [path for path, schema in leaves(SCHEMA) if schema.get("not") == {}]


@pytest.mark.parametrize("path", LATER, ids=".".join)
def test_sections_without_an_implementation_are_rejected(path):
    names = {"drives": "j1", "limits": "j1", "friction": "j1", "elastic_joints": "j1"}
    content = value = {}
    for key, after in zip(path, [*path[1:], None], strict=True):
        value[names.get(path[0]) if key == "*" else key] = value = {} if after else 1.0
    assert any("not yet: " in problem and path[-1] in problem for problem in refused(content))


def test_number_of_keys_without_implementation_is_as_expected():
    assert len(LATER) == 3 and {path[0] for path in LATER} == {"elastic_joints", "drives", "sensors"}


def test_cut_joint_types_equal_those_of_the_algorithm():
    from rnea_ros.algorithms.closed_loops import HELD

    assert set(CUT_JOINT_TYPES) == set(HELD)


# --- error messages ---------------------------------------------------------------------------------------------


def test_all_errors_are_reported_in_the_order_of_the_file(tmp_path):
    problems = problems_of(tmp_path, """version: 1
drives:
  j2: {gear_ratio: 0}
limit: {}
gravity: [0, 0, down]
payloads:
  l9: {mass: 1.0}
  l1:
    mass: -1
friction: {j1: {viscos: 1.0}, j7: {viscous: .nan}}
""")
    assert problems == (
        "line 3, column 8: drives.j2.gear_ratio is 0; a number other than zero is needed [-, rad/m]",
        f"line 4, column 1: limit is not known; allowed are {', '.join(k for k in SCHEMA['properties'] if k != 'sensors')}; "
        "did you mean 'limits'?",
        "line 5, column 1: gravity is [0, 0, 'down']; three finite numbers are needed [m/s^2]",
        "line 7, column 3: payloads.l9: link 'l9' does not exist; the links are base, l1, l2, l3",
        "line 9, column 5: payloads.l1.mass is -1; a number above zero is needed [kg]",
        "line 10, column 17: friction.j1.viscos is not known; allowed are coulomb, viscous, offset, smoothing, "
        "stribeck, stribeck_velocity, asymmetry, load_dependent, load_smoothing; did you mean 'viscous'?",
        "line 10, column 31: friction.j7: joint 'j7' does not exist; the joints are j1, j2, j3",
        "line 10, column 36: friction.j7.viscous is nan; a number not below zero is needed [N m s/rad, N s/m]")


@pytest.mark.parametrize(("content", "said"), [
    ({"version": 2}, "version is 2; allowed are 1"), ({"version": True}, "version is True; allowed are 1"),
    ({"robot": "leg"}, "robot is 'leg', but the URDF is of robot 'arm'"), ({"robot": 7}, "robot is 7; the name of a robot"),
    ({"base": "Fixed"}, "base is 'Fixed'; allowed are fixed, floating, prescribed; did you mean 'fixed'?"),
    ({"base": ["fixed"]}, "base is ['fixed']; allowed are"),
    ({"urdf_friction": "yes"}, "urdf_friction is 'yes'; true or false"),
    ({"gravity": -9.81}, "gravity is -9.81; three finite numbers"), ({"gravity": [0, 0, 1e400]}, "three finite numbers"),
    ({"gravity": [0, 0, 10**400]}, "three finite numbers"), ({"gravity": [0, 0, True]}, "three finite numbers"),
    ({"gravity": [0, 0, "-9.81"]}, "three finite numbers"), ({"gravity": [0, 0, 1e13]}, "three finite numbers"),
    ({"drives": {"j1": {"gear_ratio": 1e13}}}, "a number up to 1e+12 is needed"),
    ({"drives": {"j1": {"rotor_inertia": -1e-9}}}, "drives.j1.rotor_inertia is -1e-09; a number not below zero"),
    ({"drives": {"j1": 100.0}}, "drives.j1 is 100.0; a mapping with gear_ratio, rotor_inertia, viscous, coulomb, "),
    ({"drives": ["j1"]}, "drives is ['j1']; a mapping from names to entries"), ({"drives": None}, "drives is None; a mapping"),
    ({"limits": {"j1": {"max_velocity": 0}}}, "limits.j1.max_velocity is 0; a number above zero is needed [rad/s, m/s]"),
    ({"limits": {"j1": {"has_effort_limits": "false"}}}, "true or false"),
    ({"limits": {"j3": {"max_effort": 1.0}}}, "limits.j3: joint 'j3' follows another one (mimic); only max_joint_force"),
    ({"limits": {"j1": {"min_position": 2.0, "max_position": -2.0}}}, "min_position 2 is above max_position -2"),
    ({"springs": {"j1": {"rest": 0.0}}}, "springs.j1.stiffness is missing; a number above zero is needed [N m/rad, N/m]"),
    ({"springs": {"j3": {"stiffness": 1.0}}}, "springs.j3: joint 'j3' only follows 'j1' (mimic); name that one"),
    ({"springs": {}}, "springs is empty; at least one entry"),
    ({"elastic_joints": {"j2": {"stiffness": 9.0}}}, "drives.j2.rotor_inertia is missing or zero; an elastic joint needs one"),
    ({"motors": {"j2": {"link": "l1", "axis": [0, 0, 0]}}}, "motors.j2.axis is [0, 0, 0]; a direction is needed"),
    ({"motors": {"j2": {"link": "l1", "axis": [0, 0, 1], "mass": 1.0}}}, "transverse_inertia is missing, which mass needs"),
    ({"payloads": {"l1": {"mass": 1.0, "inertia": [1, 0, 0, 1, 0, 3]}}}, "has the principal values 1, 1, 3; a body has none"),
    ({"payloads": {"l1": {"mass": 1.0, "inertia": [1, 5, 0, 1, 0, 1]}}}, "has the principal values -4, 1, 6"),
    ({"payloads": {"l1": {"com": [0, 0, 0]}}}, "payloads.l1.mass is missing"),
    ({"platform": {"link": 3}}, "platform.link is 3; the name of a link is needed"),
    ({"loops": {"active": "j1", "cut_joints": {"c": CUT}}}, "loops.active is 'j1'; a list of names is needed"),
    ({"wheels": {"w": {**WHEEL, "holds": ["along", "along"]}}},
     "wheels.w.holds is ['along', 'along']; a list is needed, each at most once; allowed are along, across, normal, roller"),
    ({"wheels": {"w": {**WHEEL, "holds": [["along"]]}}}, "wheels.w.holds.0 is ['along']; allowed are along, across, normal"),
    ({"flexible_links": {"l1": {**BEAM, "bending": {"up": {**UP, "table": {"positions": [0, 1], "deflections": [[0, 1]]}}}}}},
     "table.positions is [0, 1]; 3 to 200 numbers from 0 to 1 are needed"),
    ({"flexible_links": {"l1": {**BEAM, "bending": {"up": {**UP, "table": {"positions": [0, 1, 1], "deflections": [True]}}}}}},
     "table.deflections.0 is True; finite numbers are needed"),
    ({"loops": {"active": ["j1", "j1"], "cut_joints": {"c": CUT}}}, "loops.active names a joint twice: j1"),
    ({"loops": {"active": ["j1"], "cut_joints": {"c": {**CUT, "second": "l1"}}}}, "links 'l1' and 'l1' are one rigid body"),
    ({"loops": {"active": ["j1"], "cut_joints": {"c": {**CUT, "first": 5}}}}, "first is 5; a mapping with link, xyz, rpy"),
    ({"loops": {"active": ["j1"]}}, "loops.cut_joints is missing; a mapping from names to entries"),
    ({1: 2}, "has the key 1, which is no text"), ({"limits": {True: {}}}, "limits has the key True, which is no text"),
])
def test_invalid_values_are_reported(content, said):
    problems = refused(content)
    assert any(said in problem for problem in problems), problems
    assert len(problems) <= 2


def test_unquoted_yaml_booleans_as_names_are_rejected(tmp_path):
    problem, last = problems_of(tmp_path, "version: 1\nlimits:\n  on: {max_effort: 1.0}\n")
    assert problem.startswith("line 2, column 1: limits has the key True, which is no text; names that look like numbers")
    assert last.endswith("the file is not checked further until this is corrected")


def test_error_in_the_platform_section_is_reported_at_its_line(tmp_path):
    text = (ROOT / "urdf" / "stewart.robot.yaml").read_text().replace("link: platform", "lnk: platform", 1)
    problems = problems_of(tmp_path, text, (ROOT / "urdf" / "stewart.urdf").read_text())
    line = 1 + text[:text.index("lnk:")].count("\n")
    assert any(problem.startswith(f"line {line}, column ") and "platform.lnk is not known" in problem for problem in problems)


def test_yaml_alias_is_rejected_with_its_line(tmp_path):
    text = "version: 1\nlimits:\n  j1: &a {max_effort: 1.0}\n  j2: *a\n"
    assert problems_of(tmp_path, text) == ("line 4, column 7: alias *a is not supported; write the values out",)


def test_missing_version_is_reported(tmp_path):
    assert problems_of(tmp_path, "gravity: [0, 0, -1]\n") == ("line 1, column 1: version is missing; allowed are 1",)
    assert any("version is missing" in problem for problem in problems_of(tmp_path, "loops: {active: [j1]}\n"))


@pytest.mark.parametrize("text", ["", "[]", "7", "just words", "- version: 1", "~"])
def test_content_that_is_no_mapping_is_rejected(tmp_path, text):
    assert "a robot file is needed there" in problems_of(tmp_path, text)[0]


def test_names_with_dots_and_spaces_are_quoted(tmp_path):
    (problem,) = problems_of(tmp_path, "version: 1\nlimits: {'a joint.1': {max_effort: 1.0}}\n")
    assert problem.startswith("line 2, column 10: limits.'a joint.1': joint 'a joint.1' does not exist")


def test_error_messages_are_bounded_in_length_and_number(tmp_path):
    text = "version: 1\nlimits:\n" + "".join(f"  joint_{k}: {{max_effort: -1}}\n" for k in range(5000))
    problems = problems_of(tmp_path, text)
    assert len(problems) == 51 and all(len(problem) < 500 for problem in problems)
    assert problems[-1] == "line 1, column 1: the file has more problems than the first 50"
    problems = problems_of(tmp_path, f"version: 1\n{'x' * 100_000}: 1\nrobot: {'y' * 100_000}\n")
    assert all(len(problem) < 500 for problem in problems)


def deep(levels):
    value = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def test_mappings_in_python_are_checked_like_files():
    endless = {"version": 1}
    endless["loops"] = endless
    for content in ({"loops": deep(1000)}, endless):
        assert refused(content) == ("has lists and mappings nested more than 32 deep",)


def test_robot_file_can_be_pickled():
    file = robot_file.read(ROOT / "urdf" / "hua_arm.robot.yaml")
    assert pickle.loads(pickle.dumps(file)).content == file.content


# --- random errors --------------------------------------------------------------------------------------

HOSTILE = [None, True, 0, -1, 1e300, 10**400, float("nan"), "", "x", "j1", "1e3", [], [[]], {}, {"a": 1}, {1: 2}, [1, 2, 3],
           ["a"], b"x", {7}, 1e12, {"link": "l1"}, "base"]
WHOLE = {"version": 1, "robot": "arm", "gravity": [0, 0, -1], "payloads": {"l1": {"mass": 1.0, "inertia": [1, 0, 0, 1, 0, 1]}},
         "limits": {"j1": {"max_effort": 1.0, "min_position": -1, "max_position": 1}, "j3": {"max_joint_force": 4.0}},
         "friction": {"j2": {"coulomb": 1.0, "viscous": 2.0}}, "drives": {"j2": {"gear_ratio": 5.0, "rotor_inertia": 1e-3}}}
KINDS = [WHOLE, {**WHOLE, "elastic_joints": {"j2": {"stiffness": 9.0}},
                 "motors": {"j2": {"link": "l1", "axis": [0, 1, 0], "mass": 1.0, "transverse_inertia": 1.0}}},
         {**WHOLE, "springs": {"j2": {"stiffness": 9.0, "rest": 0.1}}}, {**WHOLE, "base": "floating"},
         {"version": 1, "loops": {"active": ["j1"], "cut_joints": {"c": CUT}, "start": {"j1": 0.1}}}]


def paths(value, path=()):
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from paths(value[key], (*path, key))


def spoilt(content, rng):
    """Return a copy with one to three values removed, renamed or replaced."""
    content = copy.deepcopy(content)
    for _ in range(rng.choice([1, 1, 2, 3])):
        *outer, last = rng.choice(list(paths(content)) or [("version",)])
        inside = content
        for key in outer:
            inside = inside[key]
        kind = rng.random()
        if kind < 0.2:
            inside.pop(last) if isinstance(inside, list) else inside.pop(last, None)
        elif kind < 0.4 and isinstance(inside, dict):
            inside[rng.choice(["zz", "link", "j9", 1, None, True])] = inside.pop(last, 0)
        else:
            inside[last] = copy.deepcopy(rng.choice(HOSTILE))
    return content


@pytest.mark.parametrize("content", KINDS, ids=lambda content: list(content)[-1])
def test_randomly_damaged_files_are_read_or_rejected_with_a_message(content):
    rng = random.Random(7)
    for _ in range(150):
        given = spoilt(content, rng)
        try:
            load(ARM, given, backend="reference")
        except RneaError as error:
            assert len(str(error)) < 10_000, given
