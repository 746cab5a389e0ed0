"""Messages of scaling_node: trajectories become goals, samples become messages, made once per motion and filled in place."""

from __future__ import annotations

import array
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.duration import Duration as Span
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64, Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.states import Phase
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.stamps import duration
from rnea_ros.nodes.scaling.controller import Controller
from rnea_ros.scaling.committed import CommittedMotion
from rnea_ros.scaling.reference import Reference

QUEUE = 10
SECOND = 1_000_000_000  # ns
GONE = 0.2  # s
PHASES = {Phase.PAUSED: ScaledMotion.PAUSED, Phase.STOPPING: ScaledMotion.STOPPING,
          Phase.SETTLING: ScaledMotion.SETTLING}


class ScalingMessages:
    """Publishes samples: references, ~/scaled_motion, ~/speed_scaling, ~/commands; nothing to topics without subscribers."""

    def __init__(self, node: Node, controller: Controller):
        self._controller, self._clock, self._logger = controller, node.get_clock(), node.get_logger()
        self._reference = node.create_publisher(JointTrajectory, controller.topic, QUEUE)
        self._scaled = node.create_publisher(ScaledMotion, "~/scaled_motion", QUEUE)
        self._speed = node.create_publisher(Float64, "~/speed_scaling", QUEUE)
        self._commands = node.create_publisher(Float64MultiArray, "~/commands", QUEUE)
        self._motion: ExecutedMotion | None = None

    def publish(self, motion: ExecutedMotion, sample: Sample, phase: Phase, override: float, stamp: Time,
                values: Values) -> None:
        if motion is not self._motion:
            self._motion = motion
            self._arrange(motion)
        reference = sample.reference
        now = {"position": reference.q, "velocity": reference.qd, "acceleration": reference.qdd, "jerk": reference.qddd,
               "effort": sample.effort, "effort_rate": sample.effort_rate, "commanded_effort": sample.commanded_effort,
               "commanded_effort_rate": sample.commanded_effort_rate}
        if _has_subscribers(self._scaled):
            message = self._message
            message.header.stamp, message.header.frame_id = stamp, values["frame_id"] or motion.root_link
            message.phase = ScaledMotion.ENDED if reference.done else PHASES.get(phase, ScaledMotion.MOVING)
            for field, view in self._views.items():
                view[:] = now[field]
            message.t, message.s, message.progress = reference.t, reference.s, reference.s / motion.scaler.plan.path.length
            message.delay, message.override_share, message.speed_scaling = sample.delay, override, sample.speed
            message.utilization, message.binding_joint, message.binding_limit = sample.binding
            message.tracking_error, message.tracking_joint, message.tracking_lag = motion.watch.seen
            message.tracking_share = motion.watch.share
            self._scaled.publish(message)
        if motion.committed is not None:
            self._hand_out(motion, motion.committed)
        elif _has_subscribers(self._reference):
            self._send_points([(step, sample) for step in motion.steps or [reference]], values)
        if values["commands"] != "none" and _has_subscribers(self._commands):
            self._commands.publish(Float64MultiArray(data=array.array("d", now[values["commands"]].tobytes())))
        if sample.speed == sample.speed and _has_subscribers(self._speed):
            self._speed.publish(Float64(data=sample.speed))

    def _hand_out(self, motion: ExecutedMotion, committed: CommittedMotion) -> None:
        """What is new of a motion that somebody else executes, as points at times of their own."""
        if not committed.fresh:
            return
        times, q, qd, qdd = committed.points[:4]
        zero = motion.zero + round(times[0] * 1e9)
        message = JointTrajectory(joint_names=list(motion.joint_names))
        message.header.stamp = Time(sec=zero // SECOND, nanosec=zero % SECOND)
        message.points = [
            JointTrajectoryPoint(positions=a, velocities=b, accelerations=c, time_from_start=duration(t))
            for t, a, b, c in zip(times - times[0], q.tolist(), qd.tolist(), qdd.tolist(), strict=True)]
        data = serialize_message(message)
        if motion.sendable(self._clock.now().nanoseconds):  # a process may have been stopped at any point before
            self._controller.send(motion, message)
            self._reference.publish(data)
            if (late := motion.sent(self._clock.now().nanoseconds)) > 0.0:  # or, which takes some luck, in these lines
                self._logger.error(f"points of motion {motion.number} were sent up to {late:.3f} s too late, this process was "
                                   "stopped or had no processor: the controller may have jumped on its path")

    def _send_points(self, steps: Sequence[tuple[Reference, Sample]], values: Values) -> None:
        """Send points one control period apart, each with the efforts of its sample."""
        while len(self._points) < len(steps):
            self._points.append(JointTrajectoryPoint())
        for k, (point, (step, sample)) in enumerate(zip(self._points, steps), 1):
            point.positions, point.velocities, point.accelerations = (
                array.array("d", x.tobytes()) for x in (step.q, step.qd, step.qdd))
            point.effort = array.array("d", sample.commanded_effort.tobytes() if values["reference_effort"] else b"")
            point.time_from_start = duration(k / values["control_rate"])
        self._trajectory.points = self._points[:len(steps)]
        self._reference.publish(self._trajectory)

    def send_stop(self, motion: ExecutedMotion, samples: Sequence[Sample], values: Values) -> None:
        """Send the way to rest of a motion whose node ends: who executes trajectories comes to rest without the node."""
        if motion is self._motion and _has_subscribers(self._reference):
            self._send_points([(sample.reference, sample) for sample in samples], values)

    def flush(self) -> None:
        """Wait until what was published has been received, for no longer than GONE."""
        end = time.monotonic() + GONE
        for publisher in (self._reference, self._commands, self._scaled, self._speed):
            with suppress(Exception):  # not every middleware can tell
                publisher.wait_for_all_acked(Span(seconds=max(end - time.monotonic(), 0.0)))

    def _arrange(self, motion: ExecutedMotion) -> None:
        names, size = list(motion.joint_names), len(motion.joint_names)
        self._points: list[JointTrajectoryPoint] = []
        self._trajectory = JointTrajectory(joint_names=names)  # stamp zero: begins when it comes
        self._message = ScaledMotion(header=Header(), motion=motion.number, joint_names=names)
        self._views: dict[str, np.ndarray] = {}
        for field in ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "commanded_effort",
                      "commanded_effort_rate"):
            setattr(self._message, field, array.array("d", bytes(8 * size)))
            self._views[field] = np.frombuffer(getattr(self._message, field))


def _has_subscribers(publisher: Any) -> bool:
    return publisher.get_subscription_count() > 0
