"""Validation of message bytes against the middleware's serializer and deserializer, and hand-made bytes."""

from __future__ import annotations

import json
import os
import random
import struct
import subprocess
import sys

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from geometry_msgs.msg import PoseStamped, PoseWithCovarianceStamped, TwistStamped
from rcl_interfaces.msg import ParameterDescriptor, ParameterEvent
from rcl_interfaces.srv import SetParameters
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import Image, Imu, JointState, MultiDOFJointState, PointCloud2
from std_msgs.msg import Empty, Header, String, UInt8MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, MultiDOFJointTrajectory
from type_description_interfaces.msg import TypeDescription
from visualization_msgs.msg import MarkerArray

from rnea_msgs.msg import BaseStateStamped, JointDynamics, JointMotion, ModelInfo, ScaledMotion
from rnea_ros.nodes.common.cdr import SIZES, Decoder, Malformed, NumbersReader, Reader, checker
from support import fuzz_messages, node_bench, scaling_bench
from support.node_bench import ARM
from support.ros_helpers import LATCHED, PATH

KINDS = [Empty, Header, String, UInt8MultiArray, JointState, JointMotion, JointDynamics, ModelInfo, ScaledMotion,
         JointTrajectory, MultiDOFJointTrajectory, MultiDOFJointState, Imu, Image, PointCloud2, DiagnosticArray,
         DiagnosticStatus, MarkerArray, PoseWithCovarianceStamped, ParameterDescriptor, ParameterEvent,
         SetParameters.Request, SetParameters.Response, SetBool.Request, SetBool.Response, TypeDescription]


def some(rng, slot):
    """Return a random value of a field."""
    what = type(slot).__name__
    if what == "BasicType":
        name, bits = slot.typename, 8 * SIZES[slot.typename]
        if name in ("float", "double"):
            return rng.choice((0.0, 1.5, -2.0))
        if name in ("boolean", "octet"):
            return bool(rng.randrange(2)) if name == "boolean" else rng.randbytes(1)
        return rng.randrange(2**bits) if name.startswith("u") else rng.randrange(2**(bits - 1))
    if what == "NamespacedType":
        return filled(rng, getattr(sys.modules[".".join(slot.namespaces)], slot.name))
    if what.endswith("String"):
        return "".join(rng.choices("abc \u00e4", k=rng.randrange(8)))
    most = min(getattr(slot, "maximum_size", 4), 4)
    size = slot.size if what == "Array" else rng.randrange(most + 1)
    return [some(rng, slot.value_type) for _ in range(size)]


def filled(rng, kind):
    return kind(**{name: some(rng, slot) for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES)})


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_messages_of_the_middleware_are_accepted(kind):
    rng, check = random.Random(kind.__name__), checker(kind)
    check(serialize_message(kind()))
    for _ in range(60):
        message = filled(rng, kind)
        data = serialize_message(message)
        check(data)
        assert deserialize_message(data, kind) == message


@pytest.mark.parametrize("kind", [JointTrajectory, SetParameters.Request, PoseWithCovarianceStamped, MarkerArray,
                                  TypeDescription], ids=lambda kind: kind.__name__)
def test_truncated_messages_are_rejected_as_by_the_middleware(kind):
    """Accepted bytes are read by the middleware."""
    rng, check = random.Random(kind.__name__), checker(kind)
    refused = 0
    for _ in range(20):
        data = serialize_message(filled(rng, kind))
        for end in rng.sample(range(len(data)), min(len(data), 30)):
            try:
                check(data[:end])
            except Malformed as problem:
                assert problem.reason in ("malformed_truncated", "malformed_header")
                refused += 1
            else:
                deserialize_message(data[:end], kind)
    assert refused > 200


def by_hand(order, names=("turn", "spin"), position=(1.0, 2.0)):
    """Return the bytes of a JointState, written by hand after the OMG CDR specification."""
    def text(data, value):
        data += bytes(-len(data) % 4)
        return data + struct.pack(f"{order}I", len(value) + 1) + value.encode() + b"\0"

    data = text(struct.pack(f"{order}iI", 7, 9), "base")
    data += bytes(-len(data) % 4) + struct.pack(f"{order}I", len(names))
    for name in names:
        data = text(data, name)
    for numbers in (position, (), ()):
        data += bytes(-len(data) % 4) + struct.pack(f"{order}I", len(numbers))
        data += bytes(-len(data) % 8 if numbers else 0) + struct.pack(f"{order}{len(numbers)}d", *numbers)
    return {"<": b"\0\1\0\0", ">": b"\0\0\0\0"}[order] + data


@pytest.mark.parametrize("order", ["<", ">"])
def test_both_byte_orders_are_read(order):
    decode = Decoder(JointState, ("position",))
    for k in range(4):
        data = by_hand(order, position=(float(k), 2.0))
        checker(JointState)(data)
        checker(JointState)(data[:3] + b"\2" + data[4:] + b"xx")  # two bytes that fill up the last word
        message = decode(data)
        assert (message.header.stamp.sec, message.name, list(message.position)) == (7, ["turn", "spin"], [float(k), 2.0])


@pytest.mark.parametrize("kind", [PoseStamped, TwistStamped, BaseStateStamped], ids=lambda kind: kind.__name__)
def test_numbers_reader_reads_the_same_numbers_as_the_middleware(kind):
    def leaves(message):
        for name in message.get_fields_and_field_types():
            if name != "header":
                part = getattr(message, name)
                yield from [part] if isinstance(part, float) else leaves(part)

    rng, read = random.Random(kind.__name__), NumbersReader(kind)
    for _ in range(40):
        message = filled(rng, kind)
        message.header.stamp.nanosec %= 10**9
        data = serialize_message(message)
        found = read(data)
        assert found.numbers == tuple(leaves(message)) and found.frame_id == message.header.frame_id
        assert (found.stamp.sec, found.stamp.nanosec) == (message.header.stamp.sec, message.header.stamp.nanosec)
        for spoilt in (data[:rng.randrange(len(data) - 12)], b"\7" + data[1:]):
            with pytest.raises(Malformed):
                read(spoilt)
    big_endian = struct.pack(">4xiII5s7x7d", 1, 2, 5, b"base\0", *range(7))
    assert NumbersReader(PoseStamped)(big_endian) == ((1, 2), "base", tuple(map(float, range(7))))


def spoiled(data, **changes):
    """Return little-endian bytes with changed counts at given offsets. Names begin at 20, the first at 24."""
    data = bytearray(data)
    for at, value in changes.items():
        struct.pack_into("<I", data, int(at.removeprefix("at")), value)
    return bytes(data)


@pytest.mark.parametrize(("data", "reason", "words"), [
    (b"", "header", "begins with ''"),
    (b"\0\1\0", "header", "'00 01 00'"),
    (b"\0\x08\0\2" * 30, "header", "plain CDR begins with 00 00 or 00 01"),
    (b"\0\1\0\0" + b"\0\x08\0\2" * 30, "truncated", "frame_id: a text of 33556480 bytes"),
    (by_hand("<")[:-1], "truncated", "effort: a count"),
    (by_hand("<")[:3] + b"\1" + by_hand("<")[4:], "truncated", "effort: a count"),
    (by_hand("<") + bytes(500), "left_over", "JointState ends after"),
    (spoiled(by_hand("<"), at12=2**32 - 1), "truncated", "header: frame_id: a text of 4294967295 bytes"),
    (spoiled(by_hand("<"), at12=4), "string", "header: frame_id: a text without zero"),
    (spoiled(by_hand("<"), at24=2**31), "truncated", "name: 2147483648 entries"),
    (spoiled(by_hand("<"), at28=2**20), "truncated", "name: [0]: a text of 1048576 bytes"),
    (spoiled(by_hand("<"), at52=2**29), "truncated", "position: 536870912 entries"),
    (spoiled(by_hand("<"), at52=10), "truncated", ""),
])
def test_error_for_malformed_bytes_names_the_field_and_the_cause(data, reason, words):
    with pytest.raises(Malformed) as caught:
        Reader(JointState)(data)
    assert caught.value.reason == f"malformed_{reason}" and words in caught.value.detail


def test_booleans_and_bounds_of_sequences_are_checked():
    data = serialize_message(SetBool.Request(data=True))
    with pytest.raises(Malformed, match="2 is neither 0 nor 1"):
        checker(SetBool.Request)(data[:4] + b"\2")
    descriptor = serialize_message(ParameterDescriptor(name="n"))
    at = descriptor.rindex(struct.pack("<II", 0, 0))  # floating_point_range and integer_range: one entry at most
    with pytest.raises(Malformed, match="floating_point_range: 2 entries; at most 1"):
        checker(ParameterDescriptor)(descriptor[:at] + struct.pack("<II", 2, 0) + bytes(100))


def test_decoder_keeps_the_learnt_layout_after_a_malformed_message():
    decode = Decoder(JointState, ("position", "velocity", "effort"))
    first = decode(by_hand("<"))
    for bad in (by_hand("<")[:-9], b"\0\1\0\0" + b"\0\x08\0\2" * 30):
        with pytest.raises(Malformed):
            decode(bad)
    assert decode(by_hand("<", position=(7.0, 8.0))) is first and list(first.position) == [7.0, 8.0]


def test_wide_strings_are_rejected_because_middlewares_encode_them_differently():
    class WString:
        pass

    class Kind:
        SLOT_TYPES = (type("UnboundedWString", (), {})(),)
        get_fields_and_field_types = staticmethod(lambda: {"text": "wstring"})

    with pytest.raises(TypeError, match="UnboundedWString"):
        checker(Kind)


def test_random_bytes_are_rejected_or_read_as_by_the_middleware(tmp_path):
    """Pass 10 000 random byte strings through every decoder, in a separate process."""
    last = tmp_path / "last"
    command = [sys.executable, fuzz_messages.__file__, "10000", "--last", str(last)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=240, env={**os.environ, "PYTHONPATH": PATH})
    found = last.read_bytes() if last.exists() else b"????"
    assert run.returncode == 0, f"{found[4:][:int.from_bytes(found[:4], 'little')].hex(' ')}\n{run.stderr}"
    counts = json.loads(run.stdout)
    for became in counts.values():
        assert {"malformed_header", "malformed_truncated", "malformed_string"} <= set(became)
        assert "malformed_unread" not in became  # the middleware reads all accepted bytes
    assert all(counts[name]["read"] > 50 for name in ("JointState", "JointMotion", "String", "DiagnosticArray"))


# --- live nodes -------------------------------------------------------------------------------------------------------

PAYLOADS = [b"", b"\0\1", b"\0\x08\0\2", *(head + b"\0\x08\0\2" * 40 for head in (b"\0\x08\0\2", b"\0\1\0\0", b"\0\0\0\0")),
            by_hand("<")[:-3], spoiled(by_hand("<"), at24=2**31), by_hand("<") + bytes(700), bytes(range(100))]


def send(ros, kind, topic, enough, payloads=PAYLOADS, qos=10):
    """Publish the payloads repeatedly until they are counted: an undiscovered publisher reaches no reader."""
    publisher = ros.node.create_publisher(kind, topic, qos)
    ros.until(publisher.get_subscription_count, what=f"{topic} has no subscription")

    def counted():
        for payload in payloads:
            publisher.publish(payload)
            ros.spin(0.01)
        return enough()

    ros.until(counted)
    return publisher


def counted(bench, topic):
    """Return whether the node counted all kinds."""
    return lambda: sum(int(count) for key, count in bench.diagnostics.values.items()
                       if key.startswith(f"dropped.{topic}.malformed")) > 2 * len(PAYLOADS)


@pytest.mark.ros
@pytest.mark.parametrize("executor", ["lean", "rclpy"])
def test_dynamics_node_survives_and_counts_malformed_messages(ros, executor):
    bench = node_bench.Bench(ros, robot_description=ARM, **{"process.executor": executor}).ready()
    send(ros, JointState, "/joint_states", counted(bench, "joint_states"))
    send(ros, JointMotion, f"{bench.node}/desired_motion", counted(bench, "desired_motion"))
    assert bench.alive() and "Traceback" not in bench.process.log


@pytest.mark.ros
def test_scaling_node_survives_and_counts_malformed_messages(ros):
    bench = scaling_bench.Bench(ros).ready()
    send(ros, JointState, "/joint_states", counted(bench, "joint_states"))
    send(ros, JointTrajectory, f"{bench.node}/joint_trajectory", counted(bench, "trajectory"))
    assert bench.alive() and "Traceback" not in bench.process.log


@pytest.mark.ros
@pytest.mark.parametrize("module", ["dynamics_node", "scaling_node", "query_node"])
def test_malformed_robot_description_is_rejected_and_a_later_valid_one_is_used(ros, module):
    process = ros.start(module, {})
    topic = send(ros, String, "/robot_description", lambda: "malformed_truncated" in process.log, [p for p in PAYLOADS if p],
                 LATCHED)
    topic.publish(String(data=ARM))
    ros.until(lambda: "robot 'arm', 3 joints" in process.log, of=process)
    assert process.stop() == 0 and "Traceback" not in process.log
