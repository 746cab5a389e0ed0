"""What /diagnostics says of scaling_node: the motion, trajectories refused and why, how well the control rate is held."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from std_msgs.msg import Header

from rnea_ros.errors import Rejected, in_words, some
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.rate_loop import Pace, RateLoop
from rnea_ros.execution.solver_process import SolverProcess
from rnea_ros.execution.states import Phase
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.model.plausibility import implausible
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.diagnostics import AGAIN, GRACE, NodeState, Stream, Throttle, counted
from rnea_ros.nodes.common.parameter_table import DERIVATIVES
from rnea_ros.nodes.scaling.scaled_robot import ScaledRobot

FEW = 0.01  # share of missed ticks that is not worth a warning


class ScalingHealth:
    """Counts what happens and publishes it: at once if something was refused or the phase changed, else from time to time."""

    def __init__(self, node: Node, executor: TrajectoryExecutor, rate_loop: RateLoop, solver: SolverProcess,
                 pace: Pace):
        self._node, self._executor, self._rate_loop, self._solver, self._pace = node, executor, rate_loop, solver, pace
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        self.trajectories, self.states = Stream("trajectory"), Stream("joint_states")
        self.robot: ScaledRobot | None = None
        self.model_error = ""
        self.preparing = False  # the first model
        self.not_enforced: dict[str, list[str]] = {}
        self.of_controller: Callable[[], dict[str, object]] = dict
        self.last: tuple[ExecutedMotion, Sample] | None = None
        self._notes: deque[str] = deque(maxlen=4)
        self._shown, self._dropped = Phase.NO_MODEL, 0
        self._reported, self._cpu = time.monotonic(), time.process_time()
        self._began, self._console = self._reported, Throttle()

    def limits(self, joint_names: Sequence[str], limits: Limits) -> None:
        """Those in force."""
        unknown = {quantity: np.isnan(getattr(limits, quantity)) for quantity in DERIVATIVES[:-1]}
        unknown["effort_rate"] &= np.isnan(limits.commanded_effort_rate)
        self.not_enforced = {quantity: [name for name, missing in zip(joint_names, missed) if missing]
                             for quantity, missed in unknown.items()}

    def sent(self, motion: ExecutedMotion, sample: Sample) -> None:
        self.last = motion, sample

    def reject(self, rejected: Rejected) -> None:
        self.trajectories.drop(rejected)
        self._node.get_logger().error(f"trajectory refused, {rejected.reason}: {rejected.detail}")

    def report(self, well: bool, sentence: str) -> None:
        if well:
            self._node.get_logger().info(sentence)
        else:
            self._notes.append(sentence)
            self._node.get_logger().warning(sentence)

    def look(self, period: float, hint: str) -> None:
        """Call this more often than the period [s]."""
        if (failure := self._rate_loop.failure()) is not None:
            self.report(False, f"no reference is sent any more, start the node again: {in_words(failure)}")
        phase, dropped = self._executor.phase, self.trajectories.dropped.total()
        if phase is not self._shown or dropped != self._dropped or time.monotonic() - self._reported >= period:
            status = self._report(phase, hint)
            header = Header(stamp=self._node.get_clock().now().to_msg())
            self._publisher.publish(DiagnosticArray(header=header, status=[status]))
            self._shown, self._dropped = phase, dropped
            waited = time.monotonic() - self._began > GRACE
            if phase is Phase.NO_MODEL and waited and status.level != DiagnosticStatus.OK:
                self._node.get_logger().warning(status.message, throttle_duration_sec=AGAIN)
        for reason, text in self.states.fresh().items():
            if self._console.due(reason):
                self._node.get_logger().warning(f"{self.states.name} refused, {text}")

    def _report(self, phase: Phase, hint: str) -> DiagnosticStatus:
        now, cpu = time.monotonic(), time.process_time()
        elapsed, used = now - self._reported, cpu - self._cpu
        self._reported, self._cpu = now, cpu
        notes = list(self._notes)
        self._notes.clear()
        preparing = phase is Phase.NO_MODEL and self.preparing and not self.model_error
        if phase is Phase.NO_MODEL and not preparing:
            notes.append(self.model_error or hint)
        elif self.model_error:
            notes.append(f"the last robot description was refused, the one before stays: {self.model_error}")
        if self.robot is not None:
            notes += implausible(self.robot.warnings)
        robot, sentence = self.robot, NodeState.PREPARING.value if preparing else phase.value
        values = {"state": phase.name, "paused": self._executor.paused, "override": f"{self._executor.override:g}",
                  "model_id": robot.model_id if robot else "", "model_error": self.model_error,
                  **({"effort": "total", "commanded_effort": robot.commanded.contains,
                      "commanded_effort.quantity": robot.commanded.quantity} if robot else {}),
                  **self._motion_values(notes), **self._tick_values(elapsed, notes),
                  "cpu_percent": f"{100.0 * used / elapsed:.1f}", "solver.losses": self._solver.losses}
        for stream in (self.trajectories, self.states, *(robot.streams if robot else ())):
            received, dropped = stream.since_last_report()
            values |= {f"{stream.name}.received": stream.received, f"{stream.name}.rate_hz": f"{received / elapsed:.1f}",
                       f"{stream.name}.last_drop": stream.last_drop}
            values |= {f"dropped.{stream.name}.{reason}": count for reason, count in sorted(stream.dropped.items())}
            if dropped:
                notes.append(f"{counted(dropped, f'{stream.name} message')} refused, last: {stream.last_drop}")
        values |= self.of_controller()
        values |= {f"not_enforced.{quantity}": some(names) for quantity, names in self.not_enforced.items() if names}
        level = DiagnosticStatus.WARN if notes else DiagnosticStatus.OK
        if phase is Phase.NO_MODEL and self.model_error:
            level = DiagnosticStatus.ERROR
        return DiagnosticStatus(
            level=level, name=f"{self._node.get_fully_qualified_name()}: scaling", message="; ".join([sentence, *notes]),
            hardware_id=robot.name if robot else "no robot description",
            values=[KeyValue(key=key, value=str(value)) for key, value in values.items()])

    def _motion_values(self, notes: list[str]) -> dict[str, object]:
        """Of the motion under way, or of the last one."""
        if self.last is None:
            return {}
        (motion, sample), reference = self.last, self.last[1].reference
        plan, current = motion.scaler.plan, motion.scaler.current
        notes += filter(None, (motion.watch.trouble if motion is self._executor.motion else "",))
        return {"motion": motion.number, "done": reference.done, "progress": f"{reference.s / plan.path.length:.4f}",
                "time_s": f"{reference.t:.3f}", "planned_s": f"{plan.law.duration:.3f}",
                "expected_s": f"{current.law.duration:.3f}",  # without pauses and overrides to come
                "delay_s": f"{sample.delay:.3f}", "speed_scaling": f"{sample.speed:.4f}",
                "binding": sample.binding.words, "utilization": f"{sample.binding.utilization:.4f}",
                "peak_utilization": f"{motion.peak:.4f}", "peak_of": motion.peak_of, **motion.watch.values()}

    def _tick_values(self, elapsed: float, notes: list[str]) -> dict[str, object]:
        count, missed, intervals = self._rate_loop.record()
        p50, p99, most = np.percentile(intervals, (50, 99, 100)) * 1e3 if len(intervals) else [np.nan] * 3
        if missed > FEW * (count + missed):
            notes.append(f"{missed} of {count + missed} ticks missed: control_rate {self._rate_loop.rate:g} Hz is not held")
        return {"tick.count": count, "tick.missed": missed, "tick.interval_p50_ms": f"{p50:.3f}",
                "tick.interval_p99_ms": f"{p99:.3f}", "tick.interval_max_ms": f"{most:.3f}",
                "tick.lost_s": f"{self._pace.lost:.3f}"}
