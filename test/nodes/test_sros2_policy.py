"""SROS 2 policies: each node is allowed the topics, services and actions that it uses, and no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from lxml import etree

pytest.importorskip("rclpy")

import rclpy
from rclpy.signals import SignalHandlerOptions

from rnea_ros.nodes.dynamics.node import DynamicsNode
from rnea_ros.nodes.query_node import QueryNode
from rnea_ros.nodes.scaling.node import ScalingNode
from support.node_bench import ARM
from support.ros_helpers import free_domain

ROOT = Path(__file__).resolve().parents[2]
POLICY = etree.parse(str(ROOT / "config" / "sros2_policy.xml"))
CONTROLLER = "joint_trajectory_controller"
EVERYTHING = {
    DynamicsNode: {"publish_external_effort": True, "publish_markers": True, "publish_speed_scaling": True,
                   "external_effort.link": "hand", "wrenches.names": "[grip]", "wrenches.grip.link": "tool"},
    ScalingNode: {"controller.name": CONTROLLER, "base.source": "state"}, QueryNode: {}}
FROM_ROS = {"/rosout", "/parameter_events", "/clock", *(f"~/{name}" for name in (  # of every node
    "describe_parameters", "get_parameter_types", "get_parameters", "get_type_description", "list_parameters",
    "set_parameters", "set_parameters_atomically"))}
SERVICES, TOPICS = ("send_goal", "cancel_goal", "get_result"), ("feedback", "status")  # of an action


def allowed(name):
    """Return {(permission, full name)} of a node's policy; an action is expanded to its topics and services."""
    (profile,) = POLICY.xpath(f"//profile[@node='{name}']")
    found = set()
    for group in profile:
        for what, rule in group.attrib.items():
            assert rule == "ALLOW"
            for entry in group:
                full = entry.text.replace("~", f"/{name}") if entry.text[0] in "~/" else f"/{entry.text}"
                serves = what == "execute"
                if group.tag == "actions":
                    found |= {("reply" if serves else "request", f"{full}/_action/{part}") for part in SERVICES}
                    found |= {("publish" if serves else "subscribe", f"{full}/_action/{part}") for part in TOPICS}
                else:
                    found.add((what, full))
    return found


def done(kind):
    """Return {(permission, full name)} used by a node with every option of a serial robot enabled."""
    given = {"robot_description": ARM, "backend": "python", **EVERYTHING[kind]}
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={'true' if value is True else value}")]
    rclpy.try_shutdown()  # the default context of this process may have been used by another test file
    rclpy.init(args=["--ros-args", *words, "--disable-external-lib-logs"], domain_id=free_domain(),
               signal_handler_options=SignalHandlerOptions.NO)
    try:
        node = kind()
        try:
            own = node.get_name(), node.get_namespace()
            asked = {"publish": node.get_publisher_names_and_types_by_node, "reply": node.get_service_names_and_types_by_node,
                     "subscribe": node.get_subscriber_names_and_types_by_node,
                     "request": node.get_client_names_and_types_by_node}
            return node.get_name(), {(what, name) for what, ask in asked.items() for name, _ in ask(*own)}
        finally:
            node.destroy_node()
    finally:
        rclpy.try_shutdown()


@pytest.mark.ros
@pytest.mark.parametrize("kind", EVERYTHING, ids=lambda kind: kind.__name__)
def test_policy_allows_exactly_what_the_node_uses(kind):
    name, does = done(kind)
    may = allowed(name)
    does = {(what, re.sub(r"/wrench/\w+$", "/wrench/*", full)) for what, full in does}
    assert does <= may, f"not allowed: {sorted(does - may)}"
    source = "".join(file.read_text() for file in (ROOT / "rnea_ros" / "nodes").rglob("*.py"))
    for what, full in sorted(may - does):  # of other kinds of robots, or where control_msgs is installed
        own = full.replace(f"/{name}", "~", 1).split("/_action/")[0]
        last = full.split("/_action/")[0].rpartition("/")[2]
        of_others = CONTROLLER in full or "controller_manager" in full
        with_suffix = f'"{own.removesuffix("/*")}{{suffix}}"'  # names of several platforms follow
        assert own in FROM_ROS or f'"{own}"' in source or with_suffix in source or (of_others and last in source), (what, full)
    assert len(does) > 15


def test_policy_file_follows_the_schema_of_sros2():
    """One profile per enclave; groups of topics, services and actions with separate rules; unique, sorted names."""
    assert POLICY.getroot().tag == "policy" and POLICY.getroot().get("version") == "0.2.0"
    rules = {"topics": {"publish", "subscribe"}, "services": {"reply", "request"}, "actions": {"execute", "call"}}
    enclaves = POLICY.findall("enclaves/enclave")
    assert len(enclaves) == len(EVERYTHING)
    for enclave in enclaves:
        (profile,) = enclave.findall("profiles/profile")
        assert enclave.get("path") == f"/rnea/{profile.get('node')}" and profile.get("ns") == "/"
        for group in profile:
            names = [entry.text for entry in group]
            assert set(group.attrib) <= rules[group.tag] and len(group.attrib) == 1
            assert names == sorted(names) and len(set(names)) == len(names)
            assert {entry.tag for entry in group} == {group.tag.removesuffix("s")}
