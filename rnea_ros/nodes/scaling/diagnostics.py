"""Diagnostics of scaling_node: the motion, rejected trajectories with their reasons, and the timing of ticks."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rclpy.node import Node

from rnea_ros.errors import Rejected, count_noun, in_words, some
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.executor import TrajectoryExecutor
from rnea_ros.execution.rate_loop import RateLoop, StepLimiter
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.states import Phase
from rnea_ros.model.tree import Limits
from rnea_ros.model.urdf_validation import implausible
from rnea_ros.nodes.common.diagnostics import (
    REPEAT_PERIOD_S,
    WAITING_GRACE_S,
    NodeState,
    Stream,
    Throttle,
    make_status,
    publish_status,
)
from rnea_ros.nodes.common.parameter_table import DERIVATIVES
from rnea_ros.nodes.scaling.robot import ScaledRobot
from rnea_ros.trajectory.chunk_executor import ChunkResult

MISSED_TICKS_WARNING_SHARE = 0.01


class ScalingDiagnostics:
    """Publisher of /diagnostics: at once if a trajectory was rejected or the phase changed, else periodically.

    last              : executed motion and its last sample
    controller_values : returns the values of the controller
    not_enforced      : joints without a known limit, by quantity
    is_preparing      : whether the first model is being built
    """

    def __init__(self, node: Node, executor: TrajectoryExecutor, rate_loop: RateLoop, solver: SolverProcess,
                 step_limiter: StepLimiter):
        self._node, self._executor, self._rate_loop, self._solver = node, executor, rate_loop, solver
        self._step_limiter = step_limiter
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.trajectories, self.states, self.chunks = Stream("trajectory"), Stream("joint_states"), Stream("chunk")
        self.robot: ScaledRobot | None = None
        self.model_error = ""
        self.is_preparing = False
        self.is_active = False  # by the lifecycle of the node
        self.not_enforced: dict[str, list[str]] = {}
        self.controller_values: Callable[[], dict[str, object]] = dict
        self.last: tuple[ExecutedMotion, Sample] | None = None
        self._notes: deque[str] = deque(maxlen=4)
        self._published_phase, self._published_drops = Phase.NO_MODEL, 0
        self._published_at, self._cpu = time.monotonic(), time.process_time()
        self._created_at, self._throttle = self._published_at, Throttle()

    def set_limits(self, joint_names: Sequence[str], limits: Limits) -> None:
        """Record which limits are unknown."""
        unknown = {quantity: np.isnan(getattr(limits, quantity)) for quantity in DERIVATIVES[:-1]}
        unknown["effort_rate"] &= np.isnan(limits.commanded_effort_rate)
        self.not_enforced = {quantity: [name for name, missing in zip(joint_names, missed) if missing]
                             for quantity, missed in unknown.items()}

    def on_sample(self, motion: ExecutedMotion, sample: Sample) -> None:
        """Record the newest sample; called by the thread that ticks."""
        self.last = motion, sample

    def reject(self, rejected: Rejected) -> None:
        """Count and log a rejected trajectory."""
        self.trajectories.drop(rejected)
        self._node.get_logger().error(f"trajectory rejected, {rejected.reason}: {rejected.detail}")

    def on_chunk(self, result: ChunkResult) -> None:
        """Count the result of an action chunk."""
        if not result.accepted:
            self.chunks.drop(Rejected(result.reason, result.message))

    def report(self, is_ok: bool, message: str) -> None:
        """Log a message; if it is not ok, also add it to the next diagnostics."""
        if is_ok:
            self._node.get_logger().info(message)
        else:
            self._notes.append(message)
            self._node.get_logger().warning(message)

    def update(self, period: float, hint: str) -> None:
        """Publish if anything changed or the period [s] is over. hint: how to give the node a robot description."""
        if (failure := self._rate_loop.take_failure()) is not None:
            self.report(False, f"the thread that sends references has ended, restart the node: {in_words(failure)}")
        phase, dropped = self._executor.phase, self.trajectories.dropped.total() + self.chunks.dropped.total()
        is_due = time.monotonic() - self._published_at >= period
        if phase is not self._published_phase or dropped != self._published_drops or is_due:
            status = self._status(phase, hint)
            publish_status(self._node, self._publisher, status)
            self._published_phase, self._published_drops = phase, dropped
            waited = time.monotonic() - self._created_at > WAITING_GRACE_S
            if phase is Phase.NO_MODEL and waited and status.level != DiagnosticStatus.OK:
                self._node.get_logger().warning(status.message, throttle_duration_sec=REPEAT_PERIOD_S)
        for text in self._throttle.fresh((self.states, self.chunks)):
            self._node.get_logger().warning(text)

    def _status(self, phase: Phase, hint: str) -> DiagnosticStatus:
        now, cpu = time.monotonic(), time.process_time()
        elapsed, used = now - self._published_at, cpu - self._cpu
        self._published_at, self._cpu = now, cpu
        notes = [*(() if self.is_active else (NodeState.INACTIVE.value,)), *self._notes]
        self._notes.clear()
        preparing = phase is Phase.NO_MODEL and self.is_preparing and not self.model_error
        if phase is Phase.NO_MODEL and not preparing:
            notes.append(self.model_error or hint)
        elif self.model_error:
            notes.append(f"the last robot description was rejected, the previous one stays: {self.model_error}")
        if self.robot is not None:
            notes += implausible(self.robot.warnings)
        robot, summary = self.robot, NodeState.PREPARING.value if preparing else phase.value
        values = {"state": phase.name, "paused": self._executor.paused, "override": f"{self._executor.override:g}",
                  "model_id": robot.model_id if robot else "", "model_error": self.model_error,
                  **({"effort": "total", "commanded_effort": robot.commanded.contains,
                      "commanded_effort.quantity": robot.commanded.quantity} if robot else {}),
                  **self._motion_values(notes), **self._tick_values(elapsed, notes),
                  "cpu_percent": f"{100.0 * used / elapsed:.1f}", "solver.losses": self._solver.losses}
        for stream in (self.trajectories, self.states, self.chunks, *(robot.streams if robot else ())):
            received, dropped = stream.since_last_report()
            values |= {f"{stream.name}.received": stream.received, f"{stream.name}.rate_hz": f"{received / elapsed:.1f}",
                       f"{stream.name}.last_drop": stream.last_drop}
            values |= {f"dropped.{stream.name}.{reason}": count for reason, count in sorted(stream.dropped.items())}
            if dropped:
                notes.append(f"{count_noun(dropped, f'{stream.name} message')} rejected, last: {stream.last_drop}")
        values |= self.controller_values()
        values |= {f"not_enforced.{quantity}": some(names) for quantity, names in self.not_enforced.items() if names}
        level = DiagnosticStatus.WARN if notes else DiagnosticStatus.OK
        if phase is Phase.NO_MODEL and self.model_error:
            level = DiagnosticStatus.ERROR
        return make_status(f"{self._node.get_fully_qualified_name()}: scaling", level, "; ".join([summary, *notes]),
                           robot.name if robot else "no robot description", values)

    def _motion_values(self, notes: list[str]) -> dict[str, object]:
        """Return values of the motion under way, or of the last one."""
        if self.last is None:
            return {}
        (motion, sample), reference = self.last, self.last[1].reference
        notes += filter(None, (motion.monitor.problem if motion is self._executor.motion else "",))
        return {"motion": motion.number, "done": reference.done, "progress": f"{sample.share:.4f}",
                "time_s": f"{reference.t:.3f}", **motion.diagnostics(reference),
                "delay_s": f"{sample.delay:.3f}", "speed_scaling": f"{sample.speed:.4f}",
                "binding": sample.binding.description, "utilization": f"{sample.binding.utilization:.4f}",
                "peak_utilization": f"{motion.peak_utilization:.4f}", "peak_of": motion.peak_limit,
                **motion.monitor.diagnostics()}

    def _tick_values(self, elapsed: float, notes: list[str]) -> dict[str, object]:
        count, missed, intervals = self._rate_loop.take_statistics()
        p50, p99, most = np.percentile(intervals, (50, 99, 100)) * 1e3 if len(intervals) else [np.nan] * 3
        if missed > MISSED_TICKS_WARNING_SHARE * (count + missed):
            notes.append(f"{missed} of {count + missed} ticks missed: control_rate {self._rate_loop.rate:g} Hz is not held")
        return {"tick.count": count, "tick.missed": missed, "tick.interval_p50_ms": f"{p50:.3f}",
                "tick.interval_p99_ms": f"{p99:.3f}", "tick.interval_max_ms": f"{most:.3f}",
                "tick.lost_s": f"{self._step_limiter.lost:.3f}"}
