"""The parameter `locked`: changes that are rejected while a node runs, in this process and over DDS."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticArray
from std_msgs.msg import String

from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.parameter_table import (
    DYNAMICS_TABLE,
    JOINT_DYNAMICS,
    JOINT_LIMITS,
    MODEL,
    QUERY_TABLE,
    SCALING_TABLE,
)
from rnea_ros.nodes.common.parameters import LOCKED, is_locked
from support import node_bench
from support.intake_bench import OTHER, benches
from support.node_bench import ARM
from support.ros_helpers import LATCHED, ros_domain


@pytest.fixture
def bench():
    with benches() as make:
        yield make


def test_locked_parameters_are_those_of_the_model_and_the_joint_limits():
    tables = {entry.name for entry in (*DYNAMICS_TABLE, *SCALING_TABLE, *QUERY_TABLE)}
    assert all(is_locked(entry.name) or entry.read_only for entry in (*MODEL, *JOINT_LIMITS, *JOINT_DYNAMICS))
    for name in LOCKED:
        assert name == "use_sim_time" or any(other.startswith(name) for other in tables), name
    for free in ("control_rate", "state_timeout", "frame_id", "payload", "joint_limitss.a"):
        assert not is_locked(free)


CHANGES = {"gravity": [0.0, 0.0, 9.81], "payload__mass": 3.0, "use_friction": True, "robot_file": "/dev/zero",
           "robot_description": OTHER, "joint_limits__turn__max_effort": 1e6, "joint_dynamics__turn__coulomb": 3.0,
           "use_sim_time": True}


def test_locked_node_rejects_and_counts_changes_and_keeps_its_model(bench):
    node = bench(robot_description=ARM, locked=True, joint_limits__turn__max_effort=30.0).settle()
    model, values = node.robots[-1].model_id, node.settings.values
    for name, value in CHANGES.items():
        reason = node.set(**{name: value})
        assert name.replace("__", ".") in reason and "started with locked: true" in reason
    assert node.set(locked=False)  # read-only
    assert node.get("joint_limits.turn.max_effort") == 30.0 and node.get("use_sim_time") is False
    node.settle()
    assert node.settings.values == values and [robot.model_id for robot in node.robots] == [model]
    assert node.settings.lock.refused == {name.replace("__", "."): 1 for name in CHANGES}


def test_unchanged_values_of_locked_parameters_are_ignored(bench, tmp_path):
    """Tools that load a whole parameter file set values that are in effect already. The robot file is not read again."""
    file = tmp_path / "robot.yaml"
    file.write_text("version: 1\nlimits: {turn: {max_effort: 7.0}}\n")
    node = bench(robot_description=ARM, robot_file=str(file), locked=True).settle()
    file.write_text("version: 1\nlimits: {turn: {max_effort: 700.0}}\n")
    assert not node.set(robot_file=str(file), gravity=[0.0, 0.0, -9.81], payload__mass=0.0)
    assert not node.set(joint_limits__spin__max_jerk=math.nan)
    node.settle()
    assert len(node.robots) == 1 and not node.settings.lock.refused
    assert node.set(gravity=[0.0, 0.0, -9.81], payload__mass=1.0).startswith("payload.mass cannot be changed")
    with pytest.raises(Rejected) as refused:
        node.settings.lock.allowed({"payload.mass": 1.0})
    assert refused.value.reason == "locked"


def test_locked_node_keeps_the_first_description_of_the_topic(bench):
    node = bench(locked=True)
    node.receive("<robot/>")
    node.settle()
    node.receive(ARM)
    node.settle()
    for text in (OTHER, ARM, "", "<robot/>"):
        node.receive(text)
        node.settle()
    assert [robot.name for robot in node.robots] == ["arm"]
    assert node.settings.lock.refused == {"/robot_description": 3}
    assert "locked: true" in node.refusals[-1]


def test_changes_are_accepted_without_locked(bench):
    node = bench(robot_description=ARM).settle()
    assert not node.set(payload__link="hand", payload__mass=3.0)
    assert node.consistent() and not node.settings.lock.refused


@pytest.mark.ros
def test_locked_node_rejects_changes_over_dds_and_continues(tmp_path):
    """Changes by parameters and topic are rejected and reported; computation continues."""
    with ros_domain(tmp_path) as ros:
        reported: list[DiagnosticArray] = ros.listen(DiagnosticArray, "/diagnostics")
        description = ros.node.create_publisher(String, "/robot_description", LATCHED)
        description.publish(String(data=ARM))
        bench = node_bench.Bench(ros, locked=True, frame_id="a").ready()
        refused = "cannot be changed: this node was started with locked: true"
        assert ros.set(bench.node, gravity=[0.0, 0.0, 9.81]).startswith(f"gravity {refused}")
        assert ros.set(bench.node, together=True, use_sim_time=True).startswith(f"use_sim_time {refused}")
        assert not ros.set(bench.node, frame_id="b")
        description.publish(String(data=OTHER))
        requests = (ros.requests[f"{bench.node}/set_parameters{atomically}"] for atomically in ("", "_atomically"))
        counts = {"refused./robot_description": "1"} | {
            f"refused.{name}": str(count - more) for name, count, more in zip(("gravity", "use_sim_time"), requests, (1, 0))}

        def lock():
            found = [status for message in reported for status in message.status if status.name == f"{bench.node}: lock"]
            return bool(found) and {pair.key: pair.value for pair in found[-1].values} == counts

        ros.until(lock, what="refusals were not counted", of=bench.process)
        assert {info.model_id for info in bench.info} == {bench.info[0].model_id}
        assert bench.alive() and "Traceback" not in bench.process.log
