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
from rnea_ros.nodes.messages import Rejected

_LATENCIES = 4096  # the newest of a period that percentiles are taken of


class State(Enum):
    WAITING_MODEL = "waiting for a robot description"
    WAITING_STATE = "waiting for joint states"
    ACTIVE = "computing"
    STALE = "no usable input"
    FAULT = "cannot compute"


_LEVEL = {State.ACTIVE: DiagnosticStatus.OK, State.STALE: DiagnosticStatus.ERROR, State.FAULT: DiagnosticStatus.ERROR}


class Stream:
    """One input topic: messages received, and dropped by reason."""

    def __init__(self, name: str):
        self.name = name
        self.received = 0
        self.stamp = 0  # of the last usable message [ns]
        self.arrival: int | None = None  # the same by the steady clock [ns]
        self.dropped: Counter[str] = Counter()
        self.dropped_at = 0  # the last one, steady clock [ns]
        self.last_drop = ""
        self._reported = (0, 0)

    def accept(self, arrival: int, stamp: int) -> None:
        self.arrival, self.stamp = arrival, stamp

    def drop(self, rejected: Rejected) -> None:
        self.dropped[rejected.reason] += 1
        self.dropped_at = time.monotonic_ns()
        self.last_drop = f"{rejected.reason}: {rejected.detail}"

    def age(self, now: int) -> float:
        """Seconds since the last usable message."""
        return float("inf") if self.arrival is None else (now - self.arrival) * 1e-9

    def since_last_report(self) -> tuple[int, int]:
        """Messages received and dropped."""
        now, before = (self.received, self.dropped.total()), self._reported
        self._reported = now
        return now[0] - before[0], now[1] - before[1]


class Health:
    """The node's state and the figures behind it."""

    def __init__(self, name: str):
        self.name = name
        self.states, self.desired = Stream("joint_states"), Stream("desired_motion")
        self.robot: Robot | None = None
        self.model_error = ""
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

    def state(self, timeout: float) -> tuple[State, str]:
        """The state now, and a sentence about it."""
        refused = f"; last one dropped: {self.states.last_drop}" if self.states.dropped_at > (self.output or 0) else ""
        if self.robot is None:
            return (State.FAULT, self.model_error) if self.model_error else (State.WAITING_MODEL, State.WAITING_MODEL.value)
        if self.fault:
            return State.FAULT, self.fault
        if self.output is None:
            return State.WAITING_STATE, State.WAITING_STATE.value + refused
        silent = (time.monotonic_ns() - self.output) * 1e-9
        if silent > timeout:
            return State.STALE, f"nothing computed for {silent:.1f} s{refused}"
        return State.ACTIVE, State.ACTIVE.value

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
                notes.append(f"{dropped} {stream.name} messages dropped, last: {stream.last_drop}")
        if self.states.arrival is not None:  # how late the last state was when it came
            lag = (clock - self.states.stamp - (now - self.states.arrival)) * 1e-9
            values["stamp_lag_s"] = f"{lag:.6f}"
            if state is State.ACTIVE and abs(lag) > timeout:
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
    """Looks at a node's health from time to time: logs changes of state and publishes /diagnostics."""

    def __init__(self, node: Node, publisher: Publisher, health: Health, hints: Callable[[State], Sequence[str]]):
        """hints(state) says what the user could do, or should know, in a state."""
        self._node, self._publisher, self._health, self._hints = node, publisher, health, hints
        self._shown = State.WAITING_MODEL
        self._reported = 0.0

    def look(self, timeout: float, period: float) -> State:
        """Call this more often than either time [s]; a change of state is published at once. Returns the state."""
        now, log = time.monotonic(), self._node.get_logger()
        state, sentence = self._health.state(timeout)
        if state is not self._shown:
            change = f"{self._shown.name} -> {state.name}: {sentence}"
            if state is State.ACTIVE:  # two calls: rclpy ties a severity to the line it is logged from
                log.info(change)
            else:
                log.warning(change)
        if state is not self._shown or now - self._reported >= period:
            clock = self._node.get_clock().now()
            status = self._health.report(timeout, clock.nanoseconds, self._hints(state))
            self._publisher.publish(DiagnosticArray(header=Header(stamp=clock.to_msg()), status=[status]))
            self._shown, self._reported = state, now
            if state is State.WAITING_MODEL:
                log.warning(status.message, throttle_duration_sec=1.0)
            elif status.level != DiagnosticStatus.OK:
                log.warning(status.message, throttle_duration_sec=10.0)
        return state
