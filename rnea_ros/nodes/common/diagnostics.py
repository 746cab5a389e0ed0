"""Diagnostics of the nodes: received and rejected messages by reason, callback errors, and throttled console output.

They follow the conventions of diagnostic_updater: one status per task, named "<node>: <task>", once per second, values as
text. Its Python class is not used. In the version that was read (ros/diagnostics, commit 0885751) `Updater.publish` sends only
the last of several statuses, without its level, and stamps it with system time instead of the node's clock.
"""

from __future__ import annotations

import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.clock import Clock, ClockType
from rclpy.executors import await_or_execute
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.service import Service
from rclpy.timer import Timer
from std_msgs.msg import Header

from rnea_ros.errors import Rejected, in_words
from rnea_ros.nodes.common.executor import described

REPEAT_PERIOD_S = 10.0  # s; after which the console repeats what is still wrong
WAITING_GRACE_S = 1.0  # s; of waiting that is not worth a warning


class WatchedLimits(NamedTuple):
    """Utilization of limits, updated in place: rows (quantities, owners)."""

    quantities: tuple[str, ...]
    owners: tuple[str, ...]
    rows: np.ndarray


class NodeState(Enum):
    """State of a node, with its description on /diagnostics."""

    INACTIVE = "inactive: activate it by its lifecycle service"
    WAITING_MODEL = "waiting for a robot description"
    PREPARING = "preparing the model"
    WAITING_STATE = "waiting for joint states"
    ACTIVE = "computing"
    STALE = "no usable input"
    FAULT = "cannot compute"


class Stream:
    """Statistics of one input topic: messages received, and rejected by reason."""

    def __init__(self, name: str):
        self.name = name
        self.received = 0
        self.stamp = 0  # of the last usable message [ns]
        self.arrival: int | None = None  # the same by the steady clock [ns]
        self.spacing = 0  # between the stamps of the last two usable messages [ns]
        self.dropped: Counter[str] = Counter()
        self.faults = 0  # dropped for a reason that does not pass by itself
        self.dropped_at = 0  # the last one, steady clock [ns]
        self.last_drop = self.last_fault = ""
        self._fresh: dict[str, str] = {}
        self._reported = (0, 0)

    def accept(self, arrival: int, stamp: int) -> None:
        self.spacing = 0 if self.arrival is None else stamp - self.stamp
        self.arrival, self.stamp = arrival, stamp

    def drop(self, refusal: Rejected) -> None:
        self.dropped[refusal.reason] += 1
        self.dropped_at = time.monotonic_ns()
        self.last_drop = f"{refusal.reason}: {refusal.detail}"
        if not refusal.passing:
            self.faults += 1
            self.last_fault = self._fresh[refusal.reason] = self.last_drop

    def fresh(self) -> dict[str, str]:
        """Return the last fault of each reason since the previous call."""
        found, self._fresh = self._fresh, {}
        return found

    def age(self, now: int) -> float:
        """Return the time since the last usable message [s]."""
        return float("inf") if self.arrival is None else (now - self.arrival) * 1e-9

    def since_last_report(self) -> tuple[int, int]:
        """Return the numbers of messages received and of faults since the previous call."""
        now, before = (self.received, self.faults), self._reported
        self._reported = now
        return now[0] - before[0], now[1] - before[1]


class Throttle:
    """Throttle of repeated console lines."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}

    def due(self, about: str, again: float = REPEAT_PERIOD_S) -> bool:
        """Return whether a line about this subject may be logged now; it counts as logged."""
        now = time.monotonic()
        due = now - self._when.get(about, -again) >= again
        if due:
            self._when[about] = now
        return due

    def fresh(self, streams: Iterable[Stream]) -> list[str]:
        """Return a line for the last fault of each reason in streams since the previous call, unless it was logged lately."""
        return [f"{stream.name} rejected, {text}" for stream in streams for reason, text in stream.fresh().items()
                if self.due(f"{stream.name} {reason}")]


def steady_timer(node: Node, period: float, callback: Callable[[], None]) -> Timer:
    """Create a timer of the steady clock, which no simulated or set time stops. period : [s]"""
    return node.create_timer(period, callback, clock=Clock(clock_type=ClockType.STEADY_TIME))


def make_status(name: str, level: bytes, message: str, hardware_id: str, values: Mapping[str, object]) -> DiagnosticStatus:
    """Return a status. name : "<full name of the node>: <task>"."""
    return DiagnosticStatus(level=level, name=name, message=message, hardware_id=hardware_id,
                            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])


def publish_status(node: Node, publisher: Publisher, status: DiagnosticStatus) -> None:
    """Publish a status on /diagnostics, stamped with the node's clock."""
    publisher.publish(DiagnosticArray(header=Header(stamp=node.get_clock().now().to_msg()), status=[status]))


PERIOD = 1.0  # s; of /diagnostics


class EventCounter:
    """Counter of one node. /diagnostics: "<node>: <what>", with a value "<verb>.<name>" for each counted name.

    message : function total -> sentence
    """

    def __init__(self, node: Node, what: str, verb: str, message: Callable[[int], str]):
        self._node, self._what, self._verb, self._message = node, what, verb, message
        self.counts: Counter[str] = Counter()
        self._reported = 0
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        steady_timer(node, PERIOD, self._report)

    def _report(self) -> None:
        total, before = self.counts.total(), self._reported
        self._reported = total
        level = DiagnosticStatus.WARN if total > before else DiagnosticStatus.OK
        values = {f"{self._verb}.{name}": count for name, count in sorted(self.counts.items())}
        name = f"{self._node.get_fully_qualified_name()}: {self._what}"
        publish_status(self._node, self._publisher,
                       make_status(name, level, self._message(total), self._node.get_name(), values))


TRACEBACK_PERIOD_S = 10.0  # s; between two tracebacks of the same callback


class CallbackFailures:
    """Failures of the callbacks of one node, including its services. /diagnostics: "<node>: callbacks"."""

    def __init__(self, node: Node):
        self._node, self._last = node, ""
        self._tally = EventCounter(node, "callbacks", "failed",
                                   lambda total: f"{total} failed, last: {self._last}" if total else "no callback errors")
        self._logged: dict[str, float] = {}
        for service in node.services:
            self._have_answered(service)

    def add(self, what: str, error: Exception) -> None:
        """Count and log a failure, unless a signal has ended the context in the middle of the callback."""
        if not self._node.context.ok():
            return
        self._tally.counts[what] += 1
        self._last = f"{what}: {error!r:.300}"
        if time.monotonic() - self._logged.get(what, -TRACEBACK_PERIOD_S) >= TRACEBACK_PERIOD_S:
            self._logged[what] = time.monotonic()
            self._node.get_logger().error(f"{what} failed, the node goes on: "
                                          + "".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def _have_answered(self, service: Service) -> None:
        """Make a service answer after a failure of its callback, with a reason if its response has a field for it."""
        what, serve = described(service), service.callback

        async def answer(request: Any, response: Any) -> Any:
            try:
                return await await_or_execute(serve, request, response)
            except Exception as error:
                self.add(what, error)
                return failure_response(service.srv_type.Response(), f"{what.rpartition('/')[2]} failed: {error!r:.300}")

        async def answer_together(request: Any, response: Any) -> Any:
            """Serve all parameters in one call; if it fails, each separately, so that a wrong one does not affect the
            others.
            """
            if len(request.parameters) > 1:
                with suppress(Exception):  # answer() counts it
                    return await await_or_execute(serve, request, SetParameters.Response())
            for parameter in request.parameters:
                one = await answer(SetParameters.Request(parameters=[parameter]), SetParameters.Response())
                response.results += one.results
            return response

        service.callback = answer_together if service.srv_type is SetParameters else answer


def failure_response(response: Any, why: str) -> Any:
    """Return a response that contains the reason of the failure."""
    if isinstance(response, SetParameters.Response):
        response.results = [SetParametersResult(successful=False, reason=why)]
    for words in (response, getattr(response, "result", None)):
        for name in ("message", "reason"):
            if isinstance(getattr(words, name, None), str):
                setattr(words, name, why)
    return response


def on_future_done(future: Any, take: Callable[[Any], None], fail: Callable[[str], None]) -> None:
    """Call take(result) when a future is done, or fail(reason), also if take raises. rclpy's futures do not report errors."""

    def done(answered: Any) -> None:
        try:
            if answered.cancelled():
                raise RuntimeError("the question was cancelled")
            take(answered.result())
        except Exception as error:
            fail(in_words(error))

    future.add_done_callback(done)
