"""Process settings of dynamics_node, its executors, and the direct reading and writing of message bytes."""

from __future__ import annotations

import array
import os
import resource
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.waitable import NumberOfEntities, Waitable
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_msgs.msg import JointDynamics
from rnea_ros import InputError, Robot
from rnea_ros.nodes.common import cdr, process
from rnea_ros.nodes.common import executor as lean
from rnea_ros.nodes.common.parameter_table import PROCESS
from rnea_ros.nodes.common.process import apply_process_settings, freeze_garbage
from rnea_ros.nodes.dynamics.messages import TOPICS, DynamicsMessages
from rnea_ros.trajectory.drive_utilization import DRIVE_ROWS, SUPPLY_ROWS
from support.node_bench import ARM, NAMES, NODE, Bench
from support.ros_helpers import stamp

OFF = {entry.name: entry.default for entry in PROCESS}


def pid(bench):
    return bench.process._process.pid


def policies(number):
    """Names of the threads of a process, with their scheduling."""
    tasks = Path(f"/proc/{number}/task").iterdir()
    return [((task / "comm").read_text().strip(), os.sched_getscheduler(int(task.name)), os.sched_getparam(int(task.name)))
            for task in tasks]


def allowed_to_run_in_real_time():
    try:
        before = os.sched_getscheduler(0), os.sched_getparam(0)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, *before)
    except OSError:
        return False
    return True


# --- settings ---------------------------------------------------------------------------------------------------------


def test_real_time_settings_are_off_by_default():
    before = os.sched_getscheduler(0)
    apply_process_settings(OFF)
    freeze_garbage(OFF)
    assert os.sched_getscheduler(0) == before
    assert (OFF["process.priority"], OFF["process.lock_memory"], OFF["process.freeze_gc"]) == (0, False, False)


def test_priority_without_permission_is_rejected_with_the_remedy(monkeypatch):
    def refuse(*_):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    with pytest.raises(InputError, match=r"process\.priority is 40.*Operation not permitted.*rtprio.*CAP_SYS_NICE"):
        apply_process_settings(OFF | {"process.priority": 40})


def test_memory_lock_without_permission_is_rejected_with_the_remedy(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (8 << 20, 8 << 20))
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(InputError, match=r"process\.lock_memory is true.*8388608 bytes.*memlock"):
        apply_process_settings(OFF | {"process.lock_memory": True})


@pytest.mark.ros
def test_real_time_settings_apply_to_the_computing_threads_only(ros):
    """Computing and middleware threads run in real time, the model thread does not, and memory is locked."""
    if os.geteuid() != 0 or not allowed_to_run_in_real_time():
        pytest.skip("needs a user who may run in real time and lock memory")
    bench = Bench(ros, robot_description=ARM, **{"process.priority": 20, "process.lock_memory": True,
                                                 "process.freeze_gc": True}).ready()
    found = policies(pid(bench))
    real_time = [name for name, policy, parameter in found
                 if policy & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO and parameter.sched_priority == 20]
    assert sum(name.startswith("dds.") for name in real_time) >= 2
    assert os.sched_getscheduler(pid(bench)) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    assert len(real_time) < len(found)  # the thread of the model is not
    status = Path(f"/proc/{pid(bench)}/status").read_text()
    locked = int(next(line for line in status.splitlines() if line.startswith("VmLck")).split()[1])
    assert locked > 10_000
    assert bench.process.stop() == 0


# --- the executor -----------------------------------------------------------------------------------------------------


@pytest.mark.ros
@pytest.mark.parametrize("executor", ["lean", "rclpy"])
def test_both_executors_serve_messages_timers_services_and_signals(ros, executor):
    bench = Bench(ros, robot_description=ARM, **{"process.executor": executor}).ready()
    motion = np.random.default_rng(3).uniform(-1.0, 1.0, (4, 3))
    answer = bench.send(motion)
    robot = Robot.from_urdf(ARM.encode())
    order = [NAMES.index(name) for name in robot.joint_names]
    assert list(answer.effort_rate) == robot.dynamics(*motion[:, order]).tau_rate.tolist()
    bench.diagnostics.next()
    assert ros.set(NODE, payload__link="tool", payload__mass=1.0, together=True) == ""
    ros.until(lambda: len(bench.info) >= 2)
    assert list(bench.send(motion).effort) == robot.with_payload("tool", 1.0).dynamics(*motion[:, order]).tau.tolist()
    assert bench.process.stop(signal.SIGTERM if executor == "lean" else signal.SIGINT) == 0


def test_entities_created_and_destroyed_while_spinning_are_handled(ros):
    spun = lean.LeanExecutor(context=ros.context)
    spun.lean = True
    node, recorded = ros.node, []
    ros._executor.remove_node(node)
    spun.add_node(node)
    publisher = node.create_publisher(Float64MultiArray, "topic", 10)
    late: list = []

    def tick():
        for _ in range(5):  # some wait when the subscription is destroyed
            publisher.publish(Float64MultiArray())
        if not late:
            late.append(node.create_subscription(Float64MultiArray, "topic", lambda _: receive(), 10))

    def receive():
        recorded.append(True)
        if len(recorded) == 3:
            node.destroy_subscription(late[0])
            node.create_timer(0.3, ros.context.try_shutdown)

    node.create_timer(0.02, tick)
    with suppress(ExternalShutdownException):
        spun.spin()
    assert len(recorded) == 3  # nothing came after it was destroyed


def test_rare_subscription_is_served_from_its_first_message_on(ros):
    """No other message and no timer wakes the executor."""
    spun = lean.LeanExecutor(context=ros.context)
    spun.lean = True
    node, received = ros.node, []
    ros._executor.remove_node(node)
    spun.add_node(node)
    sender = Node("sender", context=ros.context)
    publisher = sender.create_publisher(Float64MultiArray, "topic", 10)

    def receive(message):
        received.append(message.data[0])
        if len(received) < 4:
            publisher.publish(Float64MultiArray(data=[received[-1] + 1.0]))
        else:
            ros.context.try_shutdown()

    node.create_subscription(Float64MultiArray, "topic", receive, 10).is_rare = True

    def begin():
        deadline = time.monotonic() + 20.0
        while not publisher.get_subscription_count() and time.monotonic() < deadline:
            time.sleep(0.01)
        publisher.publish(Float64MultiArray(data=[1.0]))

    threading.Thread(target=begin, daemon=True).start()
    with suppress(ExternalShutdownException):
        spun.spin()
    sender.destroy_node()
    assert received == [1.0, 2.0, 3.0, 4.0]


def test_callbacks_get_the_interpreter_soon_also_after_a_model_is_built(ros, tmp_path):
    """Regression: after the first model it was Python's default of 5 ms again."""
    program = tmp_path / "reporting_node.py"
    program.write_text("""
import sys
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.dynamics.node import DynamicsNode


class ReportingNode(DynamicsNode):
    def _use(self, robot):
        super()._use(robot)
        self.get_logger().info(f"waits {sys.getswitchinterval():g} s")


run([ReportingNode])
""")
    reporting = ros.start(program, {"robot_description": ARM})
    ros.until(lambda: "waits " in reporting.log, of=reporting)
    assert f"waits {process.SWITCH_INTERVAL_S:g} s" in reporting.log


def test_one_thread_at_a_time_waits_for_an_action(ros):
    """An action client keeps its indices in the wait set that it was added to last: with those of another one it fails."""

    class OneWaitSet(Waitable):
        """An entity that keeps the wait set it was added to, as an action client does."""

        last, uses, errors = None, 0, 0

        def __enter__(self):
            pass

        def __exit__(self, *_):
            pass

        def add_to_wait_set(self, wait_set):
            self.last = wait_set

        def is_ready(self, wait_set):
            self.uses += 1
            self.errors += self.last is not wait_set
            return False

        def get_num_entities(self):
            return NumberOfEntities()

    spun = lean.LeanExecutor(context=ros.context)
    spun.lean = True
    node = ros.node
    ros._executor.remove_node(node)
    spun.add_node(node)
    waitable = OneWaitSet(node.default_callback_group)
    node.add_waitable(waitable)
    exchanged = [node.create_subscription(Float64MultiArray, "topic", lambda _: None, 10)]

    def exchange():
        if waitable.uses > 100:
            ros.context.try_shutdown()
        node.destroy_subscription(exchanged.pop())
        exchanged.append(node.create_subscription(Float64MultiArray, "topic", lambda _: None, 10))

    node.create_timer(0.002, exchange)
    with suppress(ExternalShutdownException):
        spun.spin()
    assert waitable.errors == 0


def test_middleware_profile_is_used_unless_another_one_is_chosen(monkeypatch, tmp_path):
    variable, other = process.CHOSEN_PROFILES
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", {})
    process.use_middleware_profile()
    chosen = Path(os.environ.pop(variable))
    assert "nack_supression_duration" in chosen.read_text() and not os.environ
    for name in (variable, other):
        monkeypatch.setattr(os, "environ", {name: ""})
        process.use_middleware_profile()
        assert os.environ == {name: ""}
    monkeypatch.setattr(os, "environ", {})
    (tmp_path / process.LOCAL_PROFILES[0]).touch()
    process.use_middleware_profile()
    assert not os.environ


# --- bytes ------------------------------------------------------------------------------------------------------------


def state(names, position, velocity, sec=1, effort=(), frame=""):
    message = JointState(name=list(names), position=list(position), velocity=list(velocity), effort=list(effort))
    message.header.stamp, message.header.frame_id = Time(sec=sec, nanosec=5), frame
    return message


def significant(data, kind):
    """Return the bytes without padding, which the middleware does not initialize."""
    fixed, numbers = cdr.spans(data, cdr.field_kinds(kind))
    return len(data), data[4:12], [data[start:end] for start, end in (*fixed, *numbers)]


def spoilt(data, kind):
    """Return the message with other bytes in its padding."""
    fixed, numbers = cdr.spans(data, cdr.field_kinds(kind))
    offsets = set(range(len(data))) - {k for start, end in (*fixed, *numbers, (4, 12)) for k in range(start, end)}
    assert offsets
    return bytes(byte ^ 0x55 if k in offsets else byte for k, byte in enumerate(data))


def test_decoder_reads_the_same_messages_as_the_middleware():
    """Random sequence of messages that differ in names, sizes, order and frame, each layout several times."""
    rng = np.random.default_rng(1)
    decode = cdr.Decoder(JointState, ("position", "velocity", "effort"))
    for k in range(300):
        shape = rng.integers(0, 6)
        n = int(rng.integers(0, 4))
        names = [("a", "bb", "", "joint_4", "\u00e4")[(i + shape) % 5] for i in range(n)]
        sizes = [(n, n, n), (n, 0, n), (n, n, 0), (0, n, n), (n, 0, 0), (0, 0, 0)][shape]
        sent = state(names, *(rng.normal(size=s) for s in sizes[:2]), k, rng.normal(size=sizes[2]), ("", "base", "b")[k % 3])
        for _ in range(3):
            sent.header.stamp.nanosec = int(rng.integers(1_000_000_000))
            sent.position = array.array("d", rng.normal(size=len(sent.position)))
            assert decode(serialize_message(sent)) == sent


def test_known_layout_is_decoded_into_the_same_message_object():
    decode = cdr.Decoder(JointState, ("position", "velocity"))
    first = decode(serialize_message(state("ab", (1.0, 2.0), (3.0, 4.0))))
    assert decode(serialize_message(state("ab", (5.0, 6.0), (7.0, 8.0)))) is first
    assert list(first.position) == [5.0, 6.0] and list(first.velocity) == [7.0, 8.0]
    assert decode(serialize_message(state("ba", (5.0, 6.0), (7.0, 8.0)))) is not first


@pytest.fixture
def learnt(monkeypatch):
    """Record the messages that the middleware had to read."""
    found = []

    def deserialize(data, kind):
        found.append(data)
        return deserialize_message(data, kind)

    monkeypatch.setattr(cdr, "deserialize_message", deserialize)
    return found


def test_alternating_layouts_are_learnt_once_each(learnt):
    """Messages of an arm and of two grippers with messages of equal length."""
    decode = cdr.Decoder(JointState, ("position", "velocity"))
    for k in range(10):
        for names in ("abcdefg", "lr", "mr"):
            sent = state(names, [k + 0.5] * len(names), [-k] * len(names), k)
            assert decode(serialize_message(sent)) == sent
    assert len(learnt) == 3


def test_padding_bytes_are_ignored(learnt):
    decode = cdr.Decoder(JointState, ("position", "velocity"))
    for k in range(5):
        sent = state(("a", "bb"), (k, 1.0), (2.0, k), k, frame="base")
        data = serialize_message(sent)
        assert decode(data) == sent and decode(spoilt(data, JointState)) == sent
    assert len(learnt) == 1


def test_number_of_remembered_layouts_is_bounded(learnt):
    decode = cdr.Decoder(JointState, ("position",))
    for k in range(10 * cdr.LAYOUTS):
        decode(serialize_message(state(f"{k:04}", [0.0] * 4, ())))
        assert sum(map(len, decode._known.values())) <= cdr.LAYOUTS
    assert len(learnt) == 10 * cdr.LAYOUTS


def test_unsupported_layout_is_read_by_the_middleware(monkeypatch):
    monkeypatch.setattr(cdr, "spans", lambda data, kinds: ([], [(16, 32)] * len(kinds)))
    sent = state("ab", (1.0, 2.0), (3.0, 4.0))
    decode = cdr.Decoder(JointState, ("position",))
    assert decode(serialize_message(sent)) == sent == decode(serialize_message(sent))
    assert cdr.Encoder(sent).blocks is None


@pytest.mark.parametrize("n, drives, supplies", [(1, 0, 0), (2, 2, 1), (7, 7, 2), (3, 3, 3), (2, 0, 2)])
def test_encoder_writes_the_same_bytes_as_the_middleware(n, drives, supplies):
    arrays = cdr.float_arrays(JointDynamics())
    lengths = [1, len(arrays) - 1 - len(DRIVE_ROWS) - len(SUPPLY_ROWS), len(DRIVE_ROWS), len(SUPPLY_ROWS)]
    assert arrays[lengths[1] + 1:] == [*DRIVE_ROWS, *SUPPLY_ROWS]
    inputs = [f"topic{k}" for k in range(supplies)]
    sizes = np.repeat([len(inputs), n, drives, supplies], lengths).tolist()
    message = JointDynamics(joint_names=[f"joint{k}" for k in range(n)], motion_source="estimated", input_names=inputs,
                            **{name: [0.0] * size for name, size in zip(arrays, sizes)})
    message.header.frame_id = "base_link"
    encoder = cdr.Encoder(message, lengths)
    assert encoder.blocks is not None
    assert [block.shape for block in encoder.blocks] == list(zip(lengths, (len(inputs), n, drives, supplies)))
    rng = np.random.default_rng(n)
    for block in encoder.blocks:
        block[:] = rng.normal(size=block.shape)
    for name, row in zip(arrays, (row for block in encoder.blocks for row in block)):
        setattr(message, name, array.array("d", row))
    message.header.stamp = Time(sec=3, nanosec=4)
    assert significant(encoder.stamped(3, 4), JointDynamics) == significant(serialize_message(message), JointDynamics)


def test_arrays_of_unequal_sizes_are_not_written_as_blocks():
    message = JointDynamics(joint_names=["a", "b"], position=[0.0, 0.0], velocity=[0.0])
    assert cdr.Encoder(message).blocks is None


def test_messages_are_serialized_by_the_middleware_when_the_layout_is_unknown(monkeypatch):
    robot = Robot.from_urdf(ARM.encode(), backend="python")
    motion = np.random.default_rng(4).uniform(-1.0, 1.0, (4, robot.n))

    def sent():
        out = DynamicsMessages(robot, robot.limits, "map")
        out.fill(Time(sec=8, nanosec=9), motion, robot.dynamics(*motion))
        return [part.packed(out.stamp) for part in map(out.sent, range(len(TOPICS)))]

    packed = sent()
    with monkeypatch.context() as patch:
        patch.setattr(cdr, "spans", lambda data, kinds: ([], [(16, 32)] * len(kinds)))
        whole = sent()
    assert [type(message) for message in whole] == [JointState] * 4 + [JointDynamics]
    for message, data in zip(whole, packed):
        assert significant(serialize_message(message), type(message)) == significant(data, type(message))


def test_message_of_a_robot_without_joints_is_not_written_as_blocks():
    assert cdr.Encoder(JointDynamics()).blocks is None


# --- memory -----------------------------------------------------------------------------------------------------------


@pytest.mark.ros
@pytest.mark.timeout(600)
def test_memory_does_not_grow_with_messages(ros):
    """Resident memory after some thousand messages, against that before them.

    Queues may grow to their full length when the machine is busy, once each: what leaks grows again and again.
    """
    bench = Bench(ros, robot_description=ARM).ready()

    def resident():
        return int(Path(f"/proc/{pid(bench)}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def load(count):
        """Messages that are answered, a handful at a time: faster than the node is let run they would be lost."""
        while count > 0:
            for _ in range(10):
                bench.state()
            bench.answer(stamp(bench.clock), timeout=0.2)
            count -= len(bench.results)
            for received in (bench.results, bench.efforts, bench.rates):
                received.clear()

    load(1000)
    grown = []
    for _ in range(5):
        before, taken = resident(), bench.diagnostics.next()
        load(3000)
        after = bench.diagnostics.next()
        assert int(after["published"]) - int(taken["published"]) > 2500
        grown.append(resident() - before)
        if grown[-1] < 1 << 19:
            return
    raise AssertionError(f"grown by {grown} bytes")
