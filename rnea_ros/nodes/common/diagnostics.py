"""What /diagnostics says of a node that computes from joint states: its state, its input, and how near the limits it is.

Everything is counted where it happens and summed up once per period. Ages and timeouts are by the steady clock: a
clock that is set back must not stop a watchdog.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import Header

from rnea_ros import Robot
from rnea_ros.errors import Rejected

_LATENCIES = 4096  # the newest of a period that percentiles are taken of


AGAIN = 10.0  # s; after which the console repeats what is still wrong
GRACE = 1.0  # s; of waiting that is not worth a warning


class NodeState(Enum):
    WAITING_MODEL = "waiting for a robot description"
    PREPARING = "preparing the model"
    WAITING_STATE = "waiting for joint states"
    ACTIVE = "computing"
    STALE = "no usable input"
    FAULT = "cannot compute"


_LEVEL = {NodeState.PREPARING: DiagnosticStatus.OK, NodeState.ACTIVE: DiagnosticStatus.OK,
          NodeState.STALE: DiagnosticStatus.ERROR, NodeState.FAULT: DiagnosticStatus.ERROR}  # the others: WARN


class Stream:
    """One input topic: messages received, and dropped by reason."""

    def __init__(self, name: str):
        self.name = name
        self.received = 0
        self.stamp = 0  # of the last usable message [ns]
        self.arrival: int | None = None  # the same by the steady clock [ns]
        self.dropped: Counter[str] = Counter()
        self.faults = 0  # dropped for a reason that does not pass by itself
        self.dropped_at = 0  # the last one, steady clock [ns]
        self.last_drop = self.last_fault = ""
        self._fresh: dict[str, str] = {}
        self._reported = (0, 0)

    def accept(self, arrival: int, stamp: int) -> None:
        self.arrival, self.stamp = arrival, stamp

    def drop(self, rejected: Rejected) -> None:
        self.dropped[rejected.reason] += 1
        self.dropped_at = time.monotonic_ns()
        self.last_drop = f"{rejected.reason}: {rejected.detail}"
        if not rejected.passing:
            self.faults += 1
            self.last_fault = self._fresh[rejected.reason] = self.last_drop

    def fresh(self) -> dict[str, str]:
        """Faults since this was asked last: the last sentence of each reason."""
        found, self._fresh = self._fresh, {}
        return found

    def age(self, now: int) -> float:
        """Seconds since the last usable message."""
        return float("inf") if self.arrival is None else (now - self.arrival) * 1e-9

    def since_last_report(self) -> tuple[int, int]:
        """Messages received, and dropped by a fault."""
        now, before = (self.received, self.faults), self._reported
        self._reported = now
        return now[0] - before[0], now[1] - before[1]


class Health:
    """The node's state and the figures behind it."""

    def __init__(self, name: str):
        self.name = name
        self.states, self.desired = Stream("joint_states"), Stream("desired_motion")
        self.robot: Robot | None = None
        self.model_error = ""
        self.preparing = False  # the first model
        self.fault = ""
        self.published = 0
        self.output: int | None = None  # time of the last publication, steady clock [ns]
        self._latencies = np.zeros(_LATENCIES)
        self._measured = 0
        self._since = time.monotonic_ns()
        self.set_model(None)

    def set_model(self, robot: Robot | None) -> None:
        self.robot = robot
        self.model_error = ""
        self._peaks = np.full((2, robot.n if robot else 0), np.nan)

    def done(self, began: int, use: np.ndarray) -> None:
        """A result was published, computed from a message whose callback began at `began` [ns]. use: (2, n) of both limits."""
        self.output = now = time.monotonic_ns()
        self._latencies[self._measured % _LATENCIES] = now - began
        self._measured += 1
        self.published += 1
        self.fault = ""
        np.fmax(self._peaks, use, out=self._peaks)

    def state(self, timeout: float) -> tuple[NodeState, str]:
        """The state now, and a sentence about it."""
        refused = f"; last one dropped: {self.states.last_drop}" if self.states.dropped_at > (self.output or 0) else ""
        if self.robot is None:
            if self.model_error:
                return NodeState.FAULT, self.model_error
            waiting = NodeState.PREPARING if self.preparing else NodeState.WAITING_MODEL
            return waiting, waiting.value
        if self.fault:
            return NodeState.FAULT, self.fault
        if self.output is None:
            return NodeState.WAITING_STATE, NodeState.WAITING_STATE.value + refused
        silent = (time.monotonic_ns() - self.output) * 1e-9
        if silent > timeout:
            return NodeState.STALE, f"nothing computed for {silent:.1f} s{refused}"
        return NodeState.ACTIVE, NodeState.ACTIVE.value

    def report(self, timeout: float, clock: int, doubts: Sequence[str] = ()) -> DiagnosticStatus:
        """One status; rates, percentiles and peaks are those since the last call.

        clock  : what the node's clock shows now [ns], to compare with stamps
        doubts : what else the user should know
        """
        now = time.monotonic_ns()
        elapsed, self._since = max(now - self._since, 1) * 1e-9, now
        state, message = self.state(timeout)
        level, notes = _LEVEL.get(state, DiagnosticStatus.WARN), list(doubts)
        if self.model_error and self.robot is not None:
            notes.append(f"the last robot description was refused, the one before stays: {self.model_error}")
        values = {"state": state.name, "model_error": self.model_error, "published": self.published, **self._model_values()}
        for stream in (self.states, self.desired):
            received, dropped = stream.since_last_report()
            values |= self._stream_values(stream, received / elapsed, now)
            if dropped:
                notes.append(f"{counted(dropped, f'{stream.name} message')} dropped, last: {stream.last_fault}")
        if self.states.arrival is not None:  # how late the last state was when it came
            lag = (clock - self.states.stamp - (now - self.states.arrival)) * 1e-9
            values["stamp_lag_s"] = f"{lag:.6f}"
            if state is NodeState.ACTIVE and abs(lag) > timeout:
                notes.append(f"stamps of the joint states are {lag:.3f} s behind this node's clock")
        values |= self._latency_values() | self._use_values(notes)
        if notes:
            level = max(level, DiagnosticStatus.WARN)
        return DiagnosticStatus(
            level=level, name=f"{self.name}: dynamics", message="; ".join([message, *notes]),
            hardware_id=self.robot.name if self.robot else "no robot description",
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])

    def _model_values(self) -> dict[str, object]:
        robot = self.robot
        if robot is None:
            return {}
        return {"model_id": robot.model_id, "joints": robot.n, "backend": robot.backend,
                "total_mass_kg": f"{robot.total_mass:.6g}"}

    @staticmethod
    def _stream_values(stream: Stream, rate: float, now: int) -> dict[str, object]:
        counts = {f"dropped.{stream.name}.{reason}": count for reason, count in sorted(stream.dropped.items())}
        return {f"{stream.name}.received": stream.received, f"{stream.name}.rate_hz": f"{rate:.1f}",
                f"{stream.name}.age_s": f"{stream.age(now):.3f}", f"{stream.name}.last_drop": stream.last_drop, **counts}

    def _latency_values(self) -> dict[str, object]:
        taken = np.sort(self._latencies[: min(self._measured, _LATENCIES)]) * 1e-3
        # not by np.percentile, which imports for 20 ms when it is first called
        p50, p99 = (taken[round(share * (len(taken) - 1))] if len(taken) else np.nan for share in (0.5, 0.99))
        self._measured = 0
        return {"latency_p50_us": f"{p50:.0f}", "latency_p99_us": f"{p99:.0f}"}

    def _use_values(self, notes: list[str]) -> dict[str, object]:
        """Peak use of both limits by joint since the last report; 1 is the limit, NaN an unknown one."""
        values: dict[str, object] = {}
        for k, joint in enumerate(self.robot.joint_names if self.robot else ()):
            for quantity, peaks in zip(("effort", "effort_rate"), self._peaks):
                values[f"{joint}.{quantity}_utilization"] = f"{peaks[k]:.4f}"
                if peaks[k] > 1.0:
                    notes.append(f"{joint} reached {peaks[k]:.0%} of its {quantity} limit")
        self._peaks[:] = np.nan
        return values


class Watchdog:
    """Looks at a node now and then: publishes /diagnostics, and tells the console what changed and what is wrong."""

    def __init__(self, node: Node, publisher: Publisher, health: Health, hints: Callable[[NodeState], Sequence[str]]):
        """hints(state) says what the user could do, or should know, in a state."""
        self._node, self._publisher, self._health, self._hints = node, publisher, health, hints
        self._shown, self._since = NodeState.WAITING_MODEL, time.monotonic()
        self._reported = 0.0
        self._said = Said()

    def look(self, timeout: float, period: float) -> NodeState:
        """Call this more often than either time [s]; a change of state is published at once. Returns the state."""
        now, log = time.monotonic(), self._node.get_logger()
        state, sentence = self._health.state(timeout)
        changed = state is not self._shown
        if changed:
            change = f"{self._shown.name} -> {state.name}: {sentence}"
            if _LEVEL.get(state) == DiagnosticStatus.OK or state is NodeState.WAITING_STATE:
                log.info(change)  # two calls: rclpy ties a severity to the line it is logged from
            else:
                log.warning(change)
            self._shown, self._since = state, now
        for stream in (self._health.states, self._health.desired):
            for reason, text in stream.fresh().items():
                if self._said.due(f"{stream.name} {reason}"):
                    log.warning(f"{stream.name} dropped, {text}")
        if changed or now - self._reported >= period:
            self._reported = now
            clock = self._node.get_clock().now()
            status = self._health.report(timeout, clock.nanoseconds, self._hints(state))
            self._publisher.publish(DiagnosticArray(header=Header(stamp=clock.to_msg()), status=[status]))
            if state is NodeState.ACTIVE and status.level != DiagnosticStatus.OK and self._said.due(state.name):
                log.warning(status.message)
        if _LEVEL.get(state) != DiagnosticStatus.OK and now - self._since >= GRACE:
            why = self._health.states.last_drop.partition(":")[0]  # another reason is said at once
            if self._said.due(f"{state.name} {why}", GRACE if state is NodeState.WAITING_MODEL else AGAIN):
                log.warning("; ".join((sentence, *self._hints(state))))
        return state


class Said:
    """When the console was told what."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}

    def due(self, about: str, again: float = AGAIN) -> bool:
        """Whether something about this is to be said; it is taken for said then."""
        now = time.monotonic()
        due = now - self._when.get(about, -again) >= again
        if due:
            self._when[about] = now
        return due


def counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
