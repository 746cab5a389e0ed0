"""Parameter table: accepted and rejected values, and agreement of documentation and files with it."""

import math
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")

from rcl_interfaces.srv import DescribeParameters, ListParameters
from rclpy.parameter import Parameter

from rnea_ros import JointDynamics, Robot
from rnea_ros.demo.nodes import robots
from rnea_ros.nodes.common.model_facts import ineffective_parameters, joint_limits, joint_parameters
from rnea_ros.nodes.common.parameter_table import (
    DYNAMICS_TABLE,
    JOINT,
    JOINT_DYNAMICS,
    SCALING_TABLE,
    WRENCH,
    ParameterEntry,
    find,
    limit_flags,
    markdown_table,
)
from rnea_ros.nodes.common.parameters import SLIDER, descriptor
from support.node_bench import ARM
from support.ros_helpers import ros_domain

ROOT = Path(__file__).resolve().parents[2]
ALL = tuple(dict.fromkeys(DYNAMICS_TABLE + SCALING_TABLE + robots.ROBOT_PARAMETERS + robots.FOLLOWER_PARAMETERS))


@pytest.mark.parametrize("entry", DYNAMICS_TABLE, ids=lambda entry: entry.name)
def test_every_entry_is_complete_and_accepts_its_default(entry):
    assert entry.text and entry.text[-1] != "."
    assert entry.problem(entry.default) == ""
    assert find(entry.name.replace(JOINT, "some.joint"), DYNAMICS_TABLE) is entry
    made = descriptor(entry)
    assert made.description.startswith(entry.text) and made.read_only == entry.read_only


@pytest.mark.parametrize(("entry", "value", "complaint"), [
    (ParameterEntry("x", 1.0, "", low=0.0, high=2.0), 3.0, "x is 3; it must be a finite number >= 0, <= 2"),
    (ParameterEntry("x", 1.0, "", low=0.0), math.inf, "x is inf"),
    (ParameterEntry("x", 1.0, ""), math.nan, "x is nan"),
    pytest.param(ParameterEntry("x", 1, "", low=0, high=2), 10**400, "x is 1000", id="too large for a float"),
    (ParameterEntry("x", math.nan, "", low=0.0), -1.0, "x is -1"),
    (ParameterEntry("x", 1.0, ""), 1, "x must be a double, got 1 (write 1.0, not 1)"),
    (ParameterEntry("x", True, ""), 1, "x must be a bool, got 1"),
    (ParameterEntry("x", 3, "", low=3, high=6), True, "x must be a int, got True"),
    (ParameterEntry("x", "a", "", choices=("a", "b")), "c", "x is 'c'; allowed are a, b"),
    (ParameterEntry("x", [0.0] * 3, "", size=3), [1.0], "x needs 3 doubles, got [1.0]"),
    (ParameterEntry("x", [0.0] * 3, "", size=3), [1.0, 2.0, math.nan], "x is nan"),
    (ParameterEntry("x", [0.0] * 3, "", size=3), "1 2 3", "x needs 3 doubles"),
    (ParameterEntry("x", [0.0] * 3, "", size=3), 7, "x needs 3 doubles, got 7"),
])
def test_rejection_of_a_parameter_states_the_allowed_values(entry, value, complaint):
    assert entry.problem(value).startswith(complaint)


@pytest.mark.parametrize("entry", ALL, ids=lambda entry: entry.name)
def test_every_number_has_finite_bounds_and_ranges_fit_sliders(entry):
    """rqt_reconfigure shows a range as a slider and cannot display an infinite one."""
    if entry.type in ("int", "double", "double_array"):
        assert -math.inf < entry.low < entry.high < math.inf
        for beyond in (entry.low - 1.0, entry.high * 1.001 + 1.0, math.inf, -math.inf, 1e300):
            given = int(min(beyond, 2**62)) if entry.type == "int" and abs(beyond) < math.inf else beyond
            assert entry.problem([given] * (entry.size or 1) if entry.type == "double_array" else given), given
    made = descriptor(entry)
    for given in (*made.floating_point_range, *made.integer_range):
        assert math.isfinite(given.from_value) and math.isfinite(given.to_value)
        assert 0 < given.to_value - given.from_value <= SLIDER and given.from_value <= entry.default <= given.to_value


@pytest.mark.parametrize(("name", "value"), [
    ("payload.mass", 363e3),  # of a mining truck
    ("joint_dynamics.boom.gear_ratio", 2.0 * math.pi / 5e-4 * 1e3),  # rad/m: a screw of 0.5 mm behind 1000:1
    ("joint_dynamics.boom.gear_ratio", -320.0),
    ("joint_dynamics.boom.rotor_inertia", 1e-10), ("joint_dynamics.boom.rotor_inertia", 3e4),  # kg m^2: a watch's, a mill's
    ("joint_dynamics.boom.viscous", 1e6), ("joint_dynamics.boom.coulomb", 5e4),  # of a hydraulic cylinder
    ("joint_limits.boom.max_effort", 1e-7), ("joint_limits.boom.max_effort", 1e7),
    ("joint_limits.boom.max_jerk", 1e8),  # m/s^3: a piezo actuator
    ("state_timeout", 10.0), ("gravity", [0.0, 0.0, -274.0]),
])
def test_values_of_real_machines_are_accepted(name, value):
    assert not find(name, DYNAMICS_TABLE).problem(value)


def test_largest_joint_parameters_do_not_overflow():
    largest = {entry.name.rpartition(".")[2]: entry.high for entry in JOINT_DYNAMICS}
    assert math.isfinite(JointDynamics(**largest).armature ** 2)


def test_nan_is_accepted_where_it_is_the_default():
    assert ParameterEntry("x", math.nan, "", low=0.0).problem(math.nan) == ""


def test_unknown_parameter_names_are_not_found():
    assert find("joint_limits.max_effort", DYNAMICS_TABLE) is None
    assert find("joint_limits..max_effort", DYNAMICS_TABLE) is None
    assert find("joint_limits.a.max_efforts", DYNAMICS_TABLE) is None
    assert find("nothing", DYNAMICS_TABLE) is None


def test_table_has_one_row_for_each_parameter():
    rows = markdown_table(DYNAMICS_TABLE).splitlines()
    assert len(rows) == len(DYNAMICS_TABLE) + 2
    assert {row.count("|") for row in rows} == {rows[0].count("|")}


def test_commented_parameter_file_lists_every_joint_parameter():
    commented = (ROOT / "config" / "dynamics_node.yaml").read_text()
    missing = [entry.name for entry in DYNAMICS_TABLE if JOINT in entry.name
               and f" {entry.name.removesuffix(f'.{JOINT}').rpartition('.')[2]}:" not in commented]
    assert not missing


@pytest.mark.ros
def test_running_node_declares_the_parameter_table(tmp_path):
    """Names, types, defaults, ranges and descriptions are compared through the parameter services."""
    urdf = (ROOT / "urdf" / "rr.urdf").read_text()
    with ros_domain(tmp_path) as ros:
        ros.start("dynamics_node", {"robot_description": urdf})
        node = "/dynamics_node"

        def names():
            return ros.call(ListParameters, f"{node}/list_parameters", ListParameters.Request()).result.names

        ros.until(lambda: any(name.startswith("joint_limits.") for name in names()))
        declared = [name for name in names() if not name.startswith(("use_sim_time", "qos_overrides", "start_type"))]
        unnamed = {entry for entry in DYNAMICS_TABLE if WRENCH in entry.name}
        assert {find(name, DYNAMICS_TABLE) for name in declared} == set(DYNAMICS_TABLE) - unnamed
        joint_parameters = ros.call(DescribeParameters, f"{node}/describe_parameters",
                                    DescribeParameters.Request(names=declared))
        values = ros.values(node, declared)
        for descriptor in joint_parameters.descriptors:
            entry = find(descriptor.name, DYNAMICS_TABLE)
            assert descriptor.description.startswith(entry.text)
            assert descriptor.type == Parameter("x", value=entry.default).type_.value
            assert descriptor.read_only == entry.read_only
            if JOINT not in entry.name and entry.name != "robot_description":
                value = values[descriptor.name]
                assert (list(value) if isinstance(entry.default, list) else value) == entry.default


@pytest.mark.parametrize(("given", "limit"), [
    ({"max_effort_rate": 30.0}, 30.0), ({"max_effort_rate": 30.0, "has_effort_rate_limits": True}, 30.0),
    ({"max_effort_rate": 30.0, "has_effort_rate_limits": False}, math.nan),
    ({"max_effort_rate": math.nan}, math.nan), ({}, math.nan)])
def test_limit_parameter_applies_unless_its_flag_is_false(given, limit):
    """The URDF has no limit of effort rate."""
    robot = Robot.from_urdf(ARM, backend="python")
    own = {f"joint_limits.spin.{name}": value for name, value in given.items()}
    values = joint_parameters(robot) | limit_flags(own) | own
    found = joint_limits(values, robot).effort_rate
    np.testing.assert_array_equal(found, [limit if name == "spin" else math.nan for name in robot.joint_names])
    parameters = SimpleNamespace(given=own, values=values)
    assert len(ineffective_parameters(parameters, robot)) == (given.get("has_effort_rate_limits") is False)
