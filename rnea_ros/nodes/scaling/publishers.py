"""Publishers of scaling_node: samples as messages that are allocated once per motion, and markers of the path."""

from __future__ import annotations

import array
import math
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.duration import Duration as RclpyDuration
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64, Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint
from visualization_msgs.msg import Marker, MarkerArray

from rnea_msgs.msg import ScaledMotion
from rnea_ros import Robot
from rnea_ros.execution.executed_motion import ExecutedMotion, PublishedTrajectory, Sample
from rnea_ros.execution.states import Phase
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.diagnostics import REPEAT_PERIOD_S, steady_timer
from rnea_ros.nodes.common.marker_shapes import GREY, SKY, colour, heat, marker, points, reach, tip
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.common.topics import duration
from rnea_ros.nodes.scaling.controller import Controller
from rnea_ros.trajectory.trajectory_scaler import Reference

QUEUE_DEPTH = 10
NS_PER_S = 1_000_000_000
FLUSH_TIMEOUT_S = 0.2
COAST_SHARE = 0.25  # time without points after which a motion is abandoned, as a share of points_stop_time
MARKER_PERIOD_S = 0.1
PATH_SAMPLES = 101  # points of the line of a marker
LINE_WIDTH_SHARE, BALL_SIZE_SHARE = 0.006, 0.03  # shares of the reach of the robot
PHASES = {Phase.PAUSED: ScaledMotion.PAUSED, Phase.STOPPING: ScaledMotion.STOPPING,
          Phase.SETTLING: ScaledMotion.SETTLING}


class SamplePublishers:
    """Publishers of samples: references, ~/scaled_motion, ~/speed_scaling, ~/commands. Topics without subscribers are skipped.
    """

    def __init__(self, node: Node, controller: Controller):
        self._controller, self._clock, self._logger = controller, node.get_clock(), node.get_logger()
        self._reference = node.create_publisher(JointTrajectory, controller.topic, QUEUE_DEPTH)
        self._scaled = node.create_publisher(ScaledMotion, "~/scaled_motion", QUEUE_DEPTH)
        self._speed = node.create_publisher(Float64, "~/speed_scaling", QUEUE_DEPTH)
        self._commands = node.create_publisher(Float64MultiArray, "~/commands", QUEUE_DEPTH)
        self._motion: ExecutedMotion | None = None

    def publish(self, motion: ExecutedMotion, sample: Sample, phase: Phase, override: float, stamp: Time,
                parameters: Values, began: float) -> None:
        """Publish a sample of a motion, stamped with its time.

        began: time of the monotonic clock at which the tick of the sample began [s]
        """
        if motion is not self._motion:
            self._motion = motion
            self._allocate_messages(motion)
        reference = sample.reference
        fields = {"position": reference.q, "velocity": reference.qd, "acceleration": reference.qdd, "jerk": reference.qddd,
                  "effort": sample.effort, "effort_rate": sample.effort_rate, "commanded_effort": sample.commanded_effort,
                  "commanded_effort_rate": sample.commanded_effort_rate}
        if _has_subscribers(self._scaled):
            message = self._message
            message.header.stamp, message.header.frame_id = stamp, parameters["frame_id"] or motion.root_link
            message.phase = ScaledMotion.ENDED if reference.done else PHASES.get(phase, ScaledMotion.MOVING)
            for field, view in self._views.items():
                view[:] = fields[field]
            message.t, message.s, message.progress = reference.t, reference.s, sample.share
            message.delay, message.override_share, message.speed_scaling = sample.delay, override, sample.speed
            message.utilization, message.binding_joint, message.binding_limit = sample.binding
            message.tracking_error, message.tracking_joint, message.tracking_lag = motion.monitor.status
            message.tracking_share = motion.monitor.speed_share
            self._scaled.publish(message)
        if motion.rolling is not None:
            self._send_trajectory(motion, motion.rolling)
        elif _has_subscribers(self._reference):
            self._send_points(motion, [(step, sample) for step in motion.control_steps or [reference]], parameters, began)
        if parameters["commands"] != "none" and _has_subscribers(self._commands):
            self._commands.publish(Float64MultiArray(data=array.array("d", fields[parameters["commands"]].tobytes())))
        if sample.speed == sample.speed and _has_subscribers(self._speed):
            self._speed.publish(Float64(data=sample.speed))

    def _send_trajectory(self, motion: ExecutedMotion, rolling: PublishedTrajectory) -> None:
        """Send a new trajectory of a motion that the controller executes by its own clock."""
        if not rolling.is_fresh:
            return
        times, q, qd, qdd = rolling.points[:4]
        start = motion.start_ns + round(times[0] * 1e9)
        message = JointTrajectory(joint_names=list(motion.joint_names))
        message.header.stamp = Time(sec=start // NS_PER_S, nanosec=start % NS_PER_S)
        message.points = [
            JointTrajectoryPoint(positions=a, velocities=b, accelerations=c, time_from_start=duration(t))
            for t, a, b, c in zip(times - times[0], q.tolist(), qd.tolist(), qdd.tolist(), strict=True)]
        data = serialize_message(message)
        if motion.can_splice_in_time(self._clock.now().nanoseconds):  # the process may have been suspended before
            self._controller.send_trajectory(motion, message)
            self._reference.publish(data)
            if (late := motion.mark_sent(self._clock.now().nanoseconds)) > 0.0:  # or, rarely, within these lines
                self._logger.error(f"points of motion {motion.number} were sent up to {late:.3f} s too late, this process was "
                                   "suspended or had no processor: the controller may have jumped on its path")

    def _send_points(self, motion: ExecutedMotion, steps: Sequence[tuple[Reference, Sample]], parameters: Values,
                     began: float) -> None:
        """Publish points one control period apart, each with the efforts of its sample, and a stop behind the last one.

        If this process was suspended since the tick began, nothing is sent: the robot brakes, and would jump to the points.
        """
        while len(self._points) <= len(steps):
            self._points.append(JointTrajectoryPoint())
        for k, (point, (step, sample)) in enumerate(zip(self._points, steps), 1):
            point.positions, point.velocities, point.accelerations = (
                array.array("d", x.tobytes()) for x in (step.q, step.qd, step.qdd))
            point.effort = array.array("d", sample.commanded_effort.tobytes() if parameters["reference_effort"] else b"")
            point.time_from_start = duration(k / parameters["control_rate"])
        count, (last, _), stop_time = len(steps), steps[-1], parameters["points_stop_time"]
        if stop_time > 0.0 and last.qd.any():
            self._fill_stop(self._points[count], motion, last, stop_time)
            self._points[count].effort = self._points[count - 1].effort
            self._points[count].time_from_start = duration(count / parameters["control_rate"] + stop_time)
            count += 1
        self._trajectory.points = self._points[:count]
        data = serialize_message(self._trajectory)
        longest = COAST_SHARE * stop_time if stop_time > 0.0 else math.inf
        if time.monotonic() - began < longest:
            self._reference.publish(data)
            if (late := time.monotonic() - began) >= longest:  # suspended, rarely, within this line
                self._logger.error(f"a point of motion {motion.number} was sent {late:.3f} s too late, as this process was "
                                   "suspended: the robot, which was braking, may have jumped to it")

    @staticmethod
    def _fill_stop(point: JointTrajectoryPoint, motion: ExecutedMotion, last: Reference, stop_time: float) -> None:
        """Set where the robot rests after a stop from a reference, whose velocity is a cubic polynomial of time."""
        q = last.q + 0.5 * stop_time * last.qd + stop_time * stop_time / 12.0 * last.qdd
        q = np.fmax(np.fmin(q, motion.limits.upper), motion.limits.lower)  # unknown limits are NaN
        rest = array.array("d", bytes(8 * len(q)))
        point.positions, point.velocities, point.accelerations = array.array("d", q.tobytes()), rest, rest

    def send_stop(self, motion: ExecutedMotion, samples: Sequence[Sample], parameters: Values) -> None:
        """Publish all samples until rest in one message: the controller comes to rest without this node."""
        if motion is self._motion and _has_subscribers(self._reference):
            self._send_points(motion, [(sample.reference, sample) for sample in samples], parameters, time.monotonic())

    def flush(self) -> None:
        """Wait until all messages have been received, for at most FLUSH_TIMEOUT_S."""
        end = time.monotonic() + FLUSH_TIMEOUT_S
        for publisher in (self._reference, self._commands, self._scaled, self._speed):
            with suppress(Exception):  # not supported by every middleware
                publisher.wait_for_all_acked(RclpyDuration(seconds=max(end - time.monotonic(), 0.0)))

    def _allocate_messages(self, motion: ExecutedMotion) -> None:
        names, size = list(motion.joint_names), len(motion.joint_names)
        self._points: list[JointTrajectoryPoint] = []
        self._trajectory = JointTrajectory(joint_names=names)  # stamp zero: begins on arrival
        self._message = ScaledMotion(header=Header(), motion=motion.number, joint_names=names)
        self._views: dict[str, np.ndarray] = {}
        for field in ("position", "velocity", "acceleration", "jerk", "effort", "effort_rate", "commanded_effort",
                      "commanded_effort_rate"):
            setattr(self._message, field, array.array("d", bytes(8 * size)))
            self._views[field] = np.frombuffer(getattr(self._message, field))


def _has_subscribers(publisher: Any) -> bool:
    return publisher.get_subscription_count() > 0


# --------------------------------------------------------------------------------------------------------------- markers


class TipPath(NamedTuple):
    """Path of the tip of the robot: s (PATH_SAMPLES,), positions (PATH_SAMPLES, 3) in the frame of the root link [m]."""

    motion: ExecutedMotion
    s: np.ndarray
    positions: np.ndarray


def compute_tip_path(robot: Robot, motion: ExecutedMotion) -> TipPath:
    """Return the path of the tip, or of the platform. Raises RneaError."""
    path = motion.path
    assert path is not None
    s = np.linspace(0.0, path.length, PATH_SAMPLES)
    link = robot.platforms[0] if not robot.is_fixed_tree and robot.platforms else tip(_model(robot))
    return TipPath(motion, s, np.asarray(robot.link_pose(link, path(s)[0]).p))


def _model(robot: Robot) -> Model:
    return robot.tree.model


class PathMarkers:
    """Publisher of ~/markers: path of the tip before and after its current position. Idle without subscribers."""

    def __init__(self, node: Node):
        self._node, self._publisher = node, node.create_publisher(MarkerArray, "~/markers", 10)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="path_markers")  # kernels may have to be compiled
        self._newest: tuple[ExecutedMotion, Sample] | None = None
        self._computed: tuple[ExecutedMotion, Future[TipPath]] | None = None
        self._markers: list[Marker] = []
        self.robot: Robot | None = None
        steady_timer(node, MARKER_PERIOD_S, self._publish)

    def close(self) -> None:
        """Stop the worker."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    def on_sample(self, motion: ExecutedMotion, sample: Sample) -> None:
        """Record the newest sample; called by the thread that ticks."""
        self._newest = motion, sample

    def _publish(self) -> None:
        newest, self._newest = self._newest, None
        if newest is None or newest[0].path is None or self.robot is None or not self._publisher.get_subscription_count():
            return
        motion, sample = newest
        if self._computed is None or self._computed[0] is not motion:
            self._computed, self._markers = (motion, self._worker.submit(compute_tip_path, self.robot, motion)), []
        found = self._computed[1]
        if not found.done():
            return
        if found.exception() is not None:  # the motion goes on without markers
            self._node.get_logger().warning(f"no path on ~/markers: {found.exception()!r:.300}",
                                            throttle_duration_sec=REPEAT_PERIOD_S)
            return
        self._markers = self._markers or self._make_markers(motion)
        self._fill_markers(found.result(), sample)
        stamp = self._node.get_clock().now().to_msg()
        for mark in self._markers:
            mark.header.stamp = stamp
        self._publisher.publish(MarkerArray(markers=self._markers))

    def _make_markers(self, motion: ExecutedMotion) -> list[Marker]:
        assert self.robot is not None
        size, root = reach(_model(self.robot)), motion.root_link
        lines = [marker("path", k, Marker.LINE_STRIP, root, LINE_WIDTH_SHARE * size, shade)
                 for k, shade in ((0, GREY), (1, colour(SKY)))]
        return [*lines, marker("sample", 0, Marker.SPHERE, root, BALL_SIZE_SHARE * size)]

    def _fill_markers(self, tip_path: TipPath, sample: Sample) -> None:
        s = sample.reference.s
        here = np.array([np.interp(s, tip_path.s, column) for column in tip_path.positions.T])
        behind = np.vstack((tip_path.positions[tip_path.s < s], here))
        ahead = np.vstack((here, tip_path.positions[tip_path.s > s]))
        for mark, line in zip(self._markers, (behind, ahead)):
            mark.points = points(line)
            mark.action = Marker.ADD if len(line) > 1 else Marker.DELETE
        ball = self._markers[-1]
        ball.pose.position = points(here[None])[0]
        ball.color = heat(1.0 - min(sample.speed, 1.0) if sample.speed == sample.speed else 0.0)
