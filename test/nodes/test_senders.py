"""Identification of the senders of joint states from the message info: publisher identity, sequence number, or neither."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from rclpy.node import Node
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.joint_states import MAX_JUMPS, MAX_SENDERS, Senders, StateReader, with_info
from support.node_bench import ARM, Bench
from support.ros_helpers import ros_domain


def graph(*names):
    """Return a node in a graph with these publishers."""
    found = [SimpleNamespace(node_namespace="/", node_name=name, endpoint_gid=[ord(name[0])] * 24) for name in names]
    return SimpleNamespace(get_publishers_info_by_topic=lambda topic: found)


def numbered(number):
    return {"source_timestamp": 1, "publication_sequence_number": number}


def identified(name):
    return {"publisher_gid": {"data": bytes([ord(name[0])] * 16)}, "publication_sequence_number": 7}


def reported(senders, reader, infos, names=("abc",)):
    """Return the warnings after messages with the given message info; their joint names alternate among `names`."""
    for k, info in enumerate(infos):
        joints = names[k % len(names)]
        message = JointState(name=list(joints), position=[0.0] * len(joints), velocity=[0.0] * len(joints))
        message.header.stamp = Time(sec=k)
        with suppress(Rejected):  # of another sender than the one in use
            reader.read(message, senders.sender(info))
    return senders.warnings(reader)


def test_second_senders_are_rejected_with_the_names_of_both():
    one, two = "driver", "other"
    senders = Senders(graph(one, two, "third"), "/joint_states")
    assert reported(senders, StateReader("abc"), [identified(one)] * 5) == []
    assert reported(senders, StateReader("abc"), [identified(one), identified(two)] * 5) == [
        "2 senders publish a, b, c on /joint_states: /driver, /other; the first is used, messages of the others are "
        "rejected (other_sender): stop them, or remap their topic"]


def test_sequence_numbers_identify_senders():
    senders = Senders(graph("driver", "other"), "/joint_states")
    assert reported(senders, StateReader("abc"), [numbered(k) for k in (5, 6, 7, 9, 20, 21)]) == []  # some were lost
    mixed = [numbered(k) for pair in zip(range(1000, 1020), range(3, 23)) for k in pair]
    assert reported(Senders(graph("driver", "other"), "/joint_states"), StateReader("abc"), mixed) == [
        "2 senders publish a, b, c on /joint_states: /driver, /other; the first is used, messages of the others are "
        "rejected (other_sender): stop them, or remap their topic"]
    parts = reported(Senders(graph("arm", "hand"), "/joint_states"), StateReader("abc"), mixed, ("ab", "c"))
    assert parts == []  # the senders publish different joints


@pytest.mark.parametrize("first", [(1, 1), (500, 500), (500, 501), (7, 90000)])
def test_senders_are_separated_by_sequence_numbers_despite_lost_messages(first):
    """One percent of the messages are lost."""
    rng = np.random.default_rng(sum(first))
    senders, sent, seen = Senders(graph(), ""), list(first), {0: [], 1: []}
    for _ in range(500):
        who = int(rng.integers(2))
        sent[who] += 1
        if rng.random() > 0.01 or len(seen[who]) == 0:
            seen[who].append(senders.sender(numbered(sent[who])))
    assert len({*seen[0], *seen[1]}) == 2
    if abs(first[0] - first[1]) > 1000:
        assert len(set(seen[0])) == len(set(seen[1])) == 1


def test_number_of_senders_is_bounded_when_sequence_numbers_restart():
    senders = Senders(graph(), "")
    for number in range(10 * MAX_SENDERS, 0, -1):
        assert len(senders.sender(numbered(number))) == 1
    assert len(senders._numbers) <= MAX_SENDERS


def test_graph_is_used_when_message_info_identifies_no_sender():
    """Two nodes publish, and their messages cannot be distinguished."""
    question = ["this ROS distribution does not identify the sender of a message: if more than one of /driver, /other "
                "publishes the same joints on /joint_states, their messages are mixed and torques are wrong; stop all but "
                "one, or remap their topics"]
    assert reported(Senders(graph("driver"), "/joint_states"), StateReader("abc"), [{}] * 6) == []
    assert reported(Senders(graph("driver", "other"), "/joint_states"), StateReader("abc"), [{}] * 6) == question
    assert reported(Senders(graph("arm", "hand"), "/joint_states"), StateReader("abc"), [{}] * 6, ("ab", "c")) == []


def test_repeated_stamp_jumps_cause_a_warning_about_several_senders():
    senders = Senders(graph("driver", "other"), "/joint_states")
    assert reported(senders, StateReader("abc"), [numbered(k) for k in range(6)]) == []
    for _ in range(MAX_JUMPS):
        senders.jumped()
    assert senders.warnings(StateReader("abc")) == [
        "stamps jump repeatedly: if more than one of /driver, /other publishes the same joints on /joint_states, their "
        "messages are mixed and torques are wrong; stop all but one, or remap their topics"]


def test_callback_receives_message_info_where_rclpy_provides_it(monkeypatch):
    received = []
    with_info(lambda *both: received.append(both))(b"data", {"publisher_gid": None})
    monkeypatch.delattr(Subscription, "CallbackType", raising=False)  # as in Humble
    with_info(lambda *both: received.append(both))(b"data")
    assert received == [(b"data", {"publisher_gid": None}), (b"data", {})]


NUMBERS_ALONE = """
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.dynamics import joint_states, node

sender = joint_states.Senders.sender
joint_states.Senders.sender = lambda self, info: sender(self, {name: info[name] for name in info if name in KNOWN})
raise SystemExit(run([node.DynamicsNode]))
"""


@pytest.mark.ros
@pytest.mark.parametrize("known, said", [
    (("publication_sequence_number",), "2 senders publish turn, spin, slide on /joint_states: /driver, /probe"),
    ((), "this ROS distribution does not identify the sender of a message: if more than one of /driver, /probe pub")])
def test_dynamics_node_warns_of_two_senders_without_publisher_identities(tmp_path, known, said):
    with ros_domain(tmp_path) as ros:
        program = tmp_path / "program.py"
        program.write_text(f"KNOWN = {known!r}\n{NUMBERS_ALONE}")
        start = ros.start
        ros.start = lambda module, *args: start(program, *args)
        bench = Bench(ros, robot_description=ARM).ready()
        other = Node("driver", context=ros.context, enable_rosout=False, start_parameter_services=False)
        publishers = bench.states, other.create_publisher(JointState, "/joint_states", 10)

        def noticed():
            for bench.states in publishers:
                bench.state()
            return said in bench.diagnostics.status.message

        try:
            ros.until(noticed, of=bench.process)
        finally:
            other.destroy_node()
