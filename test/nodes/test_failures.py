"""Failures that do not end a node: lost wake-ups, failing callbacks, invalid requests."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from contextlib import suppress
from types import SimpleNamespace

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.msg import ParameterType, ParameterValue
from rcl_interfaces.srv import ListParameters, SetParameters, SetParametersAtomically
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.waitable import NumberOfEntities, Waitable
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import Trigger

from rnea_ros.nodes.common.diagnostics import CallbackFailures, failure_response
from rnea_ros.nodes.common.executor import LeanExecutor, trigger
from rnea_ros.nodes.common.parameter_table import ParameterEntry
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import graceful_shutdown
from support import scaling_bench
from support.node_bench import ARM
from support.ros_helpers import Diagnostics

BOTH = pytest.mark.parametrize("lean", [True, False])
NO_TYPE = 10  # of a parameter: there are 0 to 9


def spinning(ros, lean, node=None):
    """An executor for the node, not yet spun."""
    spun = LeanExecutor(context=ros.context)
    spun.lean = lean
    if node is None:
        ros._executor.remove_node(ros.node)
    spun.add_node(node or ros.node)
    return spun


def spin(spun, condition, meanwhile=lambda: None, patience=120.0):
    """Spin until a condition holds that does not wake the executor; `meanwhile` is called 500 times a second."""
    end = time.monotonic() + patience

    def watch():
        while not condition() and time.monotonic() < end:
            meanwhile()
            time.sleep(0.002)
        spun.context.try_shutdown()

    watcher = threading.Thread(target=watch)
    watcher.start()
    with suppress(ExternalShutdownException):
        spun.spin()
    watcher.join()
    assert condition()


# --- wake-ups ---------------------------------------------------------------------------------------------------------


def test_timers_run_while_most_wake_ups_are_lost(ros):
    """Nine of ten wake-ups are lost (a middleware loses about one in ten thousand), with a steady stream of messages."""
    spun, rng, ticks, received = spinning(ros, True), random.Random(5), [], []
    reported = spun._rare.trigger
    spun._rare.trigger = lambda: rng.random() > 0.1 or reported()
    publisher = ros.node.create_publisher(Float64MultiArray, "topic", 10)
    ros.node.create_subscription(Float64MultiArray, "topic", received.append, 10)
    ros.node.create_timer(0.002, lambda: ticks.append(1))
    spin(spun, lambda: len(ticks) > 300 and len(received) > 300, lambda: publisher.publish(Float64MultiArray()))


def test_timers_run_when_every_wake_up_is_lost(ros):
    spun, ticks = spinning(ros, True), []
    spun._rare.trigger = lambda: None
    ros.node.create_timer(0.01, lambda: ticks.append(1))
    spin(spun, lambda: len(ticks) > 5)


@BOTH
def test_guard_conditions_and_tasks_of_other_threads_are_served_after_a_lost_wake_up(ros, lean):
    """The node has no timer that would wake the executor."""
    spun, served = spinning(ros, lean), []
    guard = ros.node.create_guard_condition(lambda: served.append("guard"))
    guard.trigger = spun._guard.trigger = lambda: None

    def act():
        time.sleep(0.3)
        trigger(guard)
        spun.create_task(lambda: served.append("task"))

    threading.Thread(target=act).start()
    spin(spun, lambda: sorted(served) == ["guard", "task"])


# --- callbacks that fail ----------------------------------------------------------------------------------------------


class FailingWaitable(Waitable):
    """Waitable that is ready once and fails when its data are taken."""

    def __init__(self, node):
        super().__init__(MutuallyExclusiveCallbackGroup())
        self.asked, self.others = 0, node
        node.add_waitable(self)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass

    def is_ready(self, wait_set):
        self.asked += 1
        return self.asked < 3

    def take_data(self):
        raise UnicodeDecodeError("utf-8", b"", 0, 1, "not to be read")

    def get_num_entities(self):
        return NumberOfEntities()

    def add_to_wait_set(self, wait_set):
        pass


@BOTH
def test_failing_callbacks_are_reported_and_other_callbacks_continue(ros, lean):
    spun, reported, ticks = spinning(ros, lean), [], []
    spun.on_failure = lambda what, error: reported.append((what, type(error)))

    def fail(*_):
        raise ValueError("out of a callback")

    node = ros.node
    publisher = node.create_publisher(Float64MultiArray, "topic", 10)
    node.create_subscription(Float64MultiArray, "topic", fail, 10)
    node.create_timer(0.05, fail)
    node.create_service(Trigger, "asked", fail)
    client = node.create_client(Trigger, "asked")
    guard = node.create_guard_condition(fail)
    stubborn = FailingWaitable(node)

    def tick():
        ticks.append(1)
        publisher.publish(Float64MultiArray())
        trigger(guard)
        if len(ticks) % 10 == 0 and client.service_is_ready():
            client.call_async(Trigger.Request())
            spun.create_task(fail)

    node.create_timer(0.02, tick)
    kinds = {"subscription /topic", "service /asked", "task", "failingwaitable", "timer", "guardcondition"}
    spin(spun, lambda: kinds <= {what.partition(" test_")[0] for what, _ in reported} and stubborn.asked > 2)
    assert {error for _, error in reported} == {ValueError, UnicodeDecodeError}


@BOTH
def test_context_that_ends_before_a_wait_set_is_made_ends_the_executor(ros, lean, monkeypatch):
    spun = spinning(ros, lean)
    made = spun.wait_for_ready_callbacks

    def ended_first(**options):
        ros.context.try_shutdown()
        return made(**options)

    monkeypatch.setattr(spun, "wait_for_ready_callbacks", ended_first)
    with pytest.raises(ExternalShutdownException):
        spun.spin()


@BOTH
def test_failing_callback_ends_the_executor_without_a_handler(ros, lean):
    spun = spinning(ros, lean)
    ros.node.create_timer(0.01, lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        spun.spin()


def test_failing_watcher_thread_is_reported_and_continues(ros, monkeypatch):
    spun, reported, ticks = spinning(ros, True), [], []
    spun.on_failure = lambda what, error: reported.append(str(error))
    wait = spun._wait_for_something_rare

    def fail_twice():
        if len(reported) < 2:
            raise OSError("no wait set")
        wait()

    monkeypatch.setattr(spun, "_wait_for_something_rare", fail_twice)
    ros.node.create_timer(0.05, lambda: ticks.append(1))
    spin(spun, lambda: len(ticks) > 10)
    assert reported == ["no wait set"] * 2


@BOTH
def test_failing_service_is_answered_logged_once_and_counted(ros, lean):
    """The service belongs to another node; the node of the test calls it."""
    program = Node("program", context=ros.context)
    calls = []

    def fail(request, response):
        calls.append(1)
        raise ValueError("of the service")

    program.create_service(Trigger, "~/asked", fail)
    program.create_timer(0.1, lambda: 1 / 0)
    spun = spinning(ros, lean, program)
    spun.on_failure = CallbackFailures(program).add
    thread = threading.Thread(target=spun.spin)
    thread.start()
    try:
        seen = Diagnostics(ros, "/program", "callbacks")
        for _ in range(3):
            answer = ros.call(Trigger, "/program/asked", Trigger.Request())
            assert not answer.success and answer.message == "asked failed: ValueError('of the service')"
        ros.until(lambda: seen.values.get("failed.service /program/asked") == str(ros.requests["/program/asked"]))
        ros.until(lambda: any("timer" in key and int(count) > 3 for key, count in seen.values.items()))
        assert "ZeroDivisionError" in seen.status.message and len(calls) == ros.requests["/program/asked"] >= 3
    finally:
        spun.shutdown()
        thread.join()
        program.destroy_node()


def test_failure_response_fills_the_fields_of_the_service_type():
    assert failure_response(Trigger.Response(), "why") == Trigger.Response(success=False, message="why")
    (result,) = failure_response(SetParameters.Response(), "why").results
    assert (result.successful, result.reason) == (False, "why")
    result = failure_response(SetParametersAtomically.Response(), "why").result
    assert (result.successful, result.reason) == (False, "why")
    assert failure_response(ListParameters.Response(), "why") == ListParameters.Response()


# --- the nodes --------------------------------------------------------------------------------------------------------


def number(name, value, kind=ParameterType.PARAMETER_DOUBLE):
    return ParameterMessage(name=name, value=ParameterValue(type=kind, double_value=value))


@pytest.mark.ros
@pytest.mark.parametrize(("module", "name", "executor"), [
    ("dynamics_node", "state_timeout", "lean"), ("dynamics_node", "state_timeout", "rclpy"),
    ("scaling_node", "state_timeout", "lean"), ("scaling_node", "state_timeout", "rclpy"), ("query_node", "payload.mass", "")])
def test_parameter_of_invalid_type_is_rejected_and_the_node_continues(ros, module, name, executor):
    node = f"/{module}"
    process = ros.start(module, {"robot_description": ARM, **({"process.executor": executor} if executor else {})})
    seen = Diagnostics(ros, node, "callbacks")
    wanted = [number(name, 0.7), number(name, 0.8, NO_TYPE), number("frame_id", 0.0), number("unknown", 1.0, NO_TYPE)]
    results = ros.call(SetParameters, f"{node}/set_parameters", SetParameters.Request(parameters=wanted)).results
    assert [result.successful for result in results] == [module != "query_node", False, False, False]
    assert "10 is not a valid" in results[1].reason and "set_parameters failed" in results[3].reason
    answer = ros.call(SetParametersAtomically, f"{node}/set_parameters_atomically",
                      SetParametersAtomically.Request(parameters=wanted[1:2]))
    assert not answer.result.successful and "10 is not a valid" in answer.result.reason
    for service, failing in (("set_parameters", 2), ("set_parameters_atomically", 1)):
        count = failing * ros.requests[f"{node}/{service}"]
        ros.until(lambda service=service, count=count: seen.values.get(f"failed.service {node}/{service}") == str(count),
                  what=f"not {count} failures of {service}", of=process)
    assert ros.get(node, name) == (0.0 if module == "query_node" else 0.7)
    assert process.log.count("Traceback") == 2  # one for each service
    assert process.stop() == 0


@pytest.mark.ros
def test_valid_parameters_of_a_request_are_applied_one_by_one_beside_an_invalid_type(ros):
    node = Node("together", context=ros.context, automatically_declare_parameters_from_overrides=True)
    applied = []
    table = [ParameterEntry(name, 0.0, "a number") for name in ("a", "b", "c")]
    ParameterSet(node, table, applied.append)
    CallbackFailures(node)
    (service,) = (one for one in node.services if one.srv_type is SetParameters)

    def successful(*parameters):
        answer = asyncio.run(service.callback(SetParameters.Request(parameters=parameters), SetParameters.Response()))
        return [result.successful for result in answer.results]

    assert successful(*(number(name, 1.0) for name in "abc")) == [True] * 3 and applied == [{"a", "b", "c"}]
    assert successful(number("a", 2.0), number("b", 2.0, NO_TYPE), number("c", 2.0)) == [True, False, True]
    assert applied[1:] == [{"a"}, {"c"}]
    node.destroy_node()


BROKEN = """
from pathlib import Path
from rnea_ros.nodes.common import executor
from rnea_ros.nodes.scaling import node as scaling_node

def spoiled(function):
    def act(*args, **options):
        if Path("broken").exists():
            raise RuntimeError("the middleware is gone")
        return function(*args, **options)
    return act

class Spoiled(executor.LeanExecutor):
    _wait_set = spoiled(executor.LeanExecutor._wait_set)
    wait_for_ready_callbacks = spoiled(executor.LeanExecutor.wait_for_ready_callbacks)

from rnea_ros.nodes.common import process
process.LeanExecutor = Spoiled
raise SystemExit(process.run([scaling_node.ScalingNode]))
"""


@pytest.mark.ros
@pytest.mark.parametrize("executor", ["lean", "rclpy"])
def test_scaling_node_brings_the_motion_to_rest_before_it_exits_after_a_middleware_failure(ros, executor):
    program = ros.folder / "program.py"
    program.write_text(BROKEN)
    start = ros.start
    ros.start = lambda module, *args: start(program, *args)
    bench = scaling_bench.Bench(ros, **{"process.executor": executor}).ready()
    bench.send(duration=10.0)  # so long that a busy machine detects the failure before the end
    bench.moving(0.3)
    (ros.folder / "broken").touch()
    motion = bench.end()
    motion.check(duration=10.0)
    assert motion.messages[-1].progress < 1.0
    assert bench.process.wait() == 1
    assert "cannot go on" in bench.process.log and "the middleware is gone" in bench.process.log


def test_failure_during_shutdown_does_not_hide_the_first_failure():
    said = []
    node = SimpleNamespace(create_guard_condition=lambda callback: SimpleNamespace(trigger=lambda: None),
                           context=SimpleNamespace(ok=lambda: True), finish=lambda then: 0.01, end_now=lambda: 1 / 0,
                           get_logger=lambda: SimpleNamespace(fatal=said.append))
    with pytest.raises(OSError, match="gone"), graceful_shutdown(node):
        raise OSError("gone")
    assert "cannot go on" in said[0]
