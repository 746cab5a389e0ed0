"""The parameter table: what it accepts, what it refuses, and that documents and files agree with it."""

import math
from pathlib import Path

import pytest

pytest.importorskip("rclpy")

import yaml
from rcl_interfaces.srv import DescribeParameters, ListParameters
from rclpy.parameter import Parameter
from ros_helpers import world

from rnea_ros.nodes.parameters import JOINT, TABLE, Entry, find, markdown_table

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("entry", TABLE, ids=lambda entry: entry.name)
def test_every_entry_is_complete_and_accepts_its_default(entry):
    assert entry.text and entry.text[-1] != "."
    assert entry.problem(entry.default) == ""
    assert find(entry.name.replace(JOINT, "some.joint")) is entry
    made = entry.descriptor()
    assert made.description.startswith(entry.text) and made.read_only == entry.read_only


@pytest.mark.parametrize(("entry", "value", "complaint"), [
    (Entry("x", 1.0, "", low=0.0, high=2.0), 3.0, "x is 3; it must be a finite number >= 0, <= 2"),
    (Entry("x", 1.0, "", low=0.0), math.inf, "x is inf"),
    (Entry("x", 1.0, ""), math.nan, "x is nan"),
    (Entry("x", math.nan, "", low=0.0), -1.0, "x is -1"),
    (Entry("x", 1.0, ""), 1, "x must be a double, got 1 (write 1.0, not 1)"),
    (Entry("x", True, ""), 1, "x must be a bool, got 1"),
    (Entry("x", 3, "", low=3, high=6), True, "x must be a int, got True"),
    (Entry("x", "a", "", choices=("a", "b")), "c", "x is 'c'; allowed are a, b"),
    (Entry("x", [0.0] * 3, "", size=3), [1.0], "x needs 3 doubles, got [1.0]"),
    (Entry("x", [0.0] * 3, "", size=3), [1.0, 2.0, math.nan], "x is nan"),
    (Entry("x", [0.0] * 3, "", size=3), "1 2 3", "x needs 3 doubles"),
    (Entry("x", [0.0] * 3, "", size=3), 7, "x needs 3 doubles, got 7"),
])
def test_refusals_say_what_is_allowed(entry, value, complaint):
    assert entry.problem(value).startswith(complaint)


def test_unknown_stays_possible_where_it_is_the_default():
    assert Entry("x", math.nan, "", low=0.0).problem(math.nan) == ""


def test_names_of_no_parameter():
    assert find("joint_limits.max_effort") is None
    assert find("joint_limits..max_effort") is None
    assert find("joint_limits.a.max_efforts") is None
    assert find("nothing") is None


def test_table_has_one_row_for_each_parameter():
    rows = markdown_table().splitlines()
    assert len(rows) == len(TABLE) + 2
    assert {row.count("|") for row in rows} == {rows[0].count("|")}


def flat(tree, prefix=""):
    for key, value in tree.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def test_the_full_file_has_every_default():
    file = ROOT / "config" / "dynamics_node.yaml"
    if not file.exists():
        pytest.skip("no config/dynamics_node.yaml here")
    given = dict(flat(next(iter(yaml.safe_load(file.read_text()).values()))["ros__parameters"]))
    assert given == {entry.name: entry.default for entry in TABLE if JOINT not in entry.name}
    commented = file.read_text()
    missing = [entry.name for entry in TABLE if JOINT in entry.name and f" {entry.name.rpartition('.')[2]}:" not in commented]
    assert not missing


@pytest.mark.ros
def test_a_running_node_declares_the_table(tmp_path):
    """Names, types, defaults, ranges and texts as other tools see them."""
    urdf = (ROOT / "urdf" / "rr.urdf").read_text()
    with world(tmp_path) as ros:
        ros.start("dynamics_node", {"robot_description": urdf})
        node = "/dynamics_node"

        def names():
            return ros.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names

        ros.until(lambda: any(name.startswith("joint_limits.") for name in names()))
        declared = [name for name in names() if not name.startswith(("use_sim_time", "qos_overrides", "start_type"))]
        assert {find(name) for name in declared} == set(TABLE)
        described = ros.call(DescribeParameters, f"{node}/describe_parameters", DescribeParameters.Request(names=declared))
        for descriptor in described.descriptors:
            entry = find(descriptor.name)
            assert descriptor.description.startswith(entry.text)
            assert descriptor.type == Parameter("x", value=entry.default).type_.value
            assert descriptor.read_only == entry.read_only
            if JOINT not in entry.name and entry.name != "robot_description":
                value = ros.get(node, descriptor.name)
                assert (list(value) if isinstance(entry.default, list) else value) == entry.default
