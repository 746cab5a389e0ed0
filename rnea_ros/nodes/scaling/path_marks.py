"""~/markers of scaling_node: the path of the robot's tip, the part that is behind it, and where it is."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from visualization_msgs.msg import Marker, MarkerArray

from rnea_ros import ParallelRobot
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.diagnostics import AGAIN
from rnea_ros.nodes.common.marker_shapes import GREY, SKY, colour, heat, marker, points, reach, tip
from rnea_ros.robots import kinds
from rnea_ros.robots.link_side import LinkSideRobot

PERIOD = 0.1  # s
PLACES = 101  # of a path
LINE, BALL = 0.006, 0.03  # shares of the robot's reach


class Drawn(NamedTuple):
    """A motion's path: lengths along it (PLACES,), places of the tip (PLACES, 3) in the frame of the root link [m]."""

    motion: ExecutedMotion
    s: np.ndarray
    places: np.ndarray


def draw(robot: LinkSideRobot, motion: ExecutedMotion) -> Drawn:
    """Raises RneaError."""
    path = motion.scaler.plan.path
    s = np.linspace(0.0, path.length, PLACES)
    link = robot.platform.root_link if isinstance(robot, ParallelRobot) else tip(robot_model(robot))
    return Drawn(motion, s, np.asarray(robot.link_pose(link, path(s)[0]).p))


def robot_model(robot: LinkSideRobot) -> Model:
    return kinds.tree(robot).model


class PathMarks:
    """Of one node; nothing is computed while nobody listens."""

    def __init__(self, node: Node):
        self._node, self._publisher = node, node.create_publisher(MarkerArray, "~/markers", 10)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="path_marks")  # what it calls may have to be compiled
        self._now: tuple[ExecutedMotion, Sample] | None = None
        self._asked: tuple[ExecutedMotion, Future[Drawn]] | None = None
        self._marks: list[Marker] = []
        self.robot: LinkSideRobot | None = None
        node.create_timer(PERIOD, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)

    def see(self, motion: ExecutedMotion, sample: Sample) -> None:
        """What was sent, from the thread that sends it."""
        self._now = motion, sample

    def _tick(self) -> None:
        now, self._now = self._now, None
        if now is None or self.robot is None or not self._publisher.get_subscription_count():
            return
        motion, sample = now
        if self._asked is None or self._asked[0] is not motion:
            self._asked, self._marks = (motion, self._worker.submit(draw, self.robot, motion)), []
        found = self._asked[1]
        if not found.done():
            return
        if found.exception() is not None:  # of this motion there is no picture; it goes on
            self._node.get_logger().warning(f"no path on ~/markers: {found.exception()!r:.300}", throttle_duration_sec=AGAIN)
            return
        self._marks = self._marks or self._made(motion)
        self._fill(found.result(), sample)
        stamp = self._node.get_clock().now().to_msg()
        for mark in self._marks:
            mark.header.stamp = stamp
        self._publisher.publish(MarkerArray(markers=self._marks))

    def _made(self, motion: ExecutedMotion) -> list[Marker]:
        assert self.robot is not None
        far, root = reach(robot_model(self.robot)), motion.root_link
        lines = [marker("path", k, Marker.LINE_STRIP, root, LINE * far, shade) for k, shade in ((0, GREY), (1, colour(SKY)))]
        return [*lines, marker("place", 0, Marker.SPHERE, root, BALL * far)]

    def _fill(self, drawn: Drawn, sample: Sample) -> None:
        s = sample.reference.s
        here = np.array([np.interp(s, drawn.s, column) for column in drawn.places.T])
        behind, ahead = drawn.s < s, drawn.s > s
        for mark, part in zip(self._marks, (np.vstack((drawn.places[behind], here)), np.vstack((here, drawn.places[ahead])))):
            mark.points = points(part)
            mark.action = Marker.ADD if len(part) > 1 else Marker.DELETE
        ball = self._marks[-1]
        ball.pose.position = points(here[None])[0]
        ball.color = heat(1.0 - min(sample.speed, 1.0) if sample.speed == sample.speed else 0.0)
