"""Content of /diagnostics of dynamics_node: its state, its input, and the utilization of the limits.

Everything is counted where it happens and summed up once per period. Ages and timeouts are by the steady clock: a
clock that is set back must not stop a watchdog.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node
from rclpy.publisher import Publisher

from rnea_ros.errors import count_noun
from rnea_ros.model.urdf_validation import implausible
from rnea_ros.nodes.common.diagnostics import (
    REPEAT_PERIOD_S,
    WAITING_GRACE_S,
    NodeState,
    Stream,
    Throttle,
    WatchedLimits,
    make_status,
    publish_status,
)
from rnea_ros.nodes.common.model_facts import RobotFacts

_LATENCIES = 4096  # the newest of a period that percentiles are taken of
_LEVEL = {NodeState.PREPARING: DiagnosticStatus.OK, NodeState.ACTIVE: DiagnosticStatus.OK,
          NodeState.STALE: DiagnosticStatus.ERROR, NodeState.FAULT: DiagnosticStatus.ERROR}  # the others: WARN


class Health:
    """The node's state and the figures behind it."""

    def __init__(self, name: str):
        self.name = name
        self.states, self.desired, self.reference = Stream("joint_states"), Stream("desired_motion"), Stream("reference")
        self.streams = [self.states, self.desired, self.reference]
        self.findings: Callable[[], dict[str, object]] = dict  # what else there is to say
        self.robot: RobotFacts | None = None
        self.model_error = ""
        self.is_active = False  # by the lifecycle of the node
        self.preparing = False  # the first model
        self.fault = ""
        self.published = 0
        self.output: int | None = None  # time of the last publication, steady clock [ns]
        self._latencies = [0] * _LATENCIES  # [ns]
        self._measured = 0
        self._since = time.monotonic_ns()
        self.set_model(None)

    def set_model(self, robot: RobotFacts | None) -> None:
        self.robot = robot
        self.model_error = ""
        self.watch([])

    def watch(self, watched: Sequence[WatchedLimits]) -> None:
        """Set the shares of limits whose peaks are reported."""
        self._watched = [(one, np.full_like(one.rows, np.nan)) for one in watched if one.rows.size]

    @property
    def peaks(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Peaks since the last report, and the rows of a sample by which they are raised."""
        return [(peaks, one.rows) for one, peaks in self._watched]

    def done(self, began: int, are_peaks_raised: bool = False) -> None:
        """Count a published result.

        began            : start of the callback of its message [ns]
        are_peaks_raised : whether `peaks` contain this sample already
        """
        self.output = now = time.monotonic_ns()
        self._latencies[self._measured % _LATENCIES] = now - began
        self._measured += 1
        self.published += 1
        self.fault = ""
        if not are_peaks_raised:
            for peaks, rows in self.peaks:
                np.fmax(peaks, rows, out=peaks)

    def state(self, timeout: float) -> tuple[NodeState, str]:
        """Return the current state, and a sentence about it."""
        refused = f"; last one dropped: {self.states.last_drop}" if self.states.dropped_at > (self.output or 0) else ""
        if not self.is_active:
            return NodeState.INACTIVE, NodeState.INACTIVE.value
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

    def report(self, timeout: float, clock: int, warnings: Sequence[str] = ()) -> DiagnosticStatus:
        """One status; rates, percentiles and peaks are those since the last call.

        clock  : what the node's clock shows now [ns], to compare with stamps
        warnings : what else the user should know
        """
        now = time.monotonic_ns()
        elapsed, self._since = max(now - self._since, 1) * 1e-9, now
        state, message = self.state(timeout)
        level = _LEVEL.get(state, DiagnosticStatus.WARN)
        notes = [*warnings, *implausible(self.robot.warnings if self.robot else ())]
        if self.model_error and self.robot is not None:
            notes.append(f"the last robot description was refused, the one before stays: {self.model_error}")
        values = {"state": state.name, "model_error": self.model_error, "published": self.published, **self._model_values()}
        for stream in self.streams:
            received, dropped = stream.since_last_report()
            values |= self._stream_values(stream, received / elapsed, now)
            if dropped:
                notes.append(f"{count_noun(dropped, f'{stream.name} message')} dropped, last: {stream.last_fault}")
        if self.states.arrival is not None:  # how late the last state was when it came
            lag = (clock - self.states.stamp - (now - self.states.arrival)) * 1e-9
            values["stamp_lag_s"] = f"{lag:.6f}"
            if state is NodeState.ACTIVE and abs(lag) > timeout:
                notes.append(f"stamps of the joint states are {lag:.3f} s behind this node's clock")
        values |= self._latency_values() | self._use_values(notes) | self.findings()
        if notes:
            level = max(level, DiagnosticStatus.WARN)
        return make_status(f"{self.name}: dynamics", level, "; ".join([message, *notes]),
                           self.robot.name if self.robot else "no robot description", values)

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
        taken = np.sort(np.array(self._latencies[: min(self._measured, _LATENCIES)], dtype=float)) * 1e-3
        # not by np.percentile, which imports for 20 ms when it is first called
        p50, p99 = (taken[round(share * (len(taken) - 1))] if len(taken) else np.nan for share in (0.5, 0.99))
        self._measured = 0
        return {"latency_p50_us": f"{p50:.0f}", "latency_p99_us": f"{p99:.0f}"}

    def _use_values(self, notes: list[str]) -> dict[str, object]:
        """Return the peak use of each effort limit since the last report; 1 is the limit, NaN an unknown one."""
        values: dict[str, object] = {}
        nearest, most = "", 0.0
        for one, peaks in self._watched:
            for (row, k), share in np.ndenumerate(peaks):
                quantity, owner = one.quantities[row], one.owners[k]
                limit = quantity.removesuffix("_utilization").removesuffix("_load").removeprefix("supply_")
                if share == share or limit in ("effort", "effort_rate"):
                    values[f"{owner}.{quantity}"] = f"{share:.4f}"
                if share > 1.0:
                    notes.append(f"{owner} reached {share:.0%} of its {limit} limit")
                if share > most:
                    nearest, most = f"{limit} of {owner}, {share:.1%}", float(share)
            peaks[:] = np.nan
        return values | ({"nearest_limit": nearest} if nearest else {})


class Watchdog:
    """Periodic check of a node: publishes /diagnostics, and logs changes and faults."""

    def __init__(self, node: Node, publisher: Publisher, health: Health, hints: Callable[[NodeState], Sequence[str]]):
        """hints(state): advice for the user in a state."""
        self._node, self._publisher, self._health, self._hints = node, publisher, health, hints
        self._shown, self._since = NodeState.WAITING_MODEL, time.monotonic()
        self._reported = 0.0
        self._prepared: DiagnosticStatus | None = None  # published by the next check: both together would delay a result twice
        self._console = Throttle()

    def check(self, timeout: float, period: float) -> NodeState:
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
        for text in self._console.fresh(self._health.streams):
            log.warning(text)
        if self._prepared is not None and not changed:
            publish_status(self._node, self._publisher, self._prepared)
            self._prepared = None
        elif changed or now - self._reported >= period:
            self._reported = now
            status = self._health.report(timeout, self._node.get_clock().now().nanoseconds, self._hints(state))
            self._prepared = None if changed else status
            if changed:
                publish_status(self._node, self._publisher, status)
            if state is NodeState.ACTIVE and status.level != DiagnosticStatus.OK and self._console.due(state.name):
                log.warning(status.message)
        if _LEVEL.get(state) != DiagnosticStatus.OK and now - self._since >= WAITING_GRACE_S:
            why = self._health.states.last_drop.partition(":")[0]  # another reason is said at once
            if self._console.due(f"{state.name} {why}", WAITING_GRACE_S if state is NodeState.WAITING_MODEL
                                 else REPEAT_PERIOD_S):
                log.warning("; ".join((sentence, *self._hints(state))))
        return state
