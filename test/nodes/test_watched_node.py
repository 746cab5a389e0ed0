"""Tracking monitor of scaling_node, with joint states of a simulated robot that deviates from its reference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from sensor_msgs.msg import JointState

from rnea_msgs.msg import ScaledMotion
from support.reach import POINTS, START
from support.ros_helpers import stamp, world
from support.scaling_bench import NAMES, Bench

pytestmark = pytest.mark.ros


class DeviatingBench(Bench):
    """Bench with a robot at an offset `off` [rad] from its reference; its clock is `ahead` [s]."""

    def __init__(self, ros, **parameters):
        super().__init__(ros, control_rate=100.0, **parameters)
        self.off, self.ahead, self.position, self.finished = np.zeros(7), 0.0, START, 0
        ros.node.create_subscription(ScaledMotion, f"{self.node}/scaled_motion", self._follow, 100)

    def _follow(self, message):
        if message.phase == ScaledMotion.ENDED:
            self.finished += 1
            return
        self.position = np.array(message.position) + self.off
        self.publish_state(message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec + self.ahead)

    def arrived(self, motions):
        """Return whether `motions` motions have ended and the robot has received all samples."""
        self.ros.until(lambda: self.finished >= motions, what="no end", of=self.process)

    def publish_state(self, time):
        reported = JointState(name=NAMES, position=self.position.tolist())
        reported.header.stamp = stamp(time)
        self.states.publish(reported)


def test_tracking_error_slows_and_stops_the_motion(tmp_path):
    with world(tmp_path) as ros:
        it = DeviatingBench(ros, **{"state_timeout": 5.0, "watch.tolerance": 0.05, "watch.path_tolerance": 0.2}).ready()

        def received(what):
            ros.until(lambda: it.received and what(it.received[-1]), timeout=120.0, what="not received", of=it.process)

        it.send()  # the robot follows
        received(lambda m: m.tracking_joint and m.tracking_error < 1e-3 and m.tracking_share == 1.0)
        motion = it.end()
        motion.check()
        assert all(m.tracking_share == 1.0 for m in motion.messages)
        it.logged("ended at its goal")
        assert "is slowed" not in it.process.log

        it.arrived(1)
        it.off[2] = 0.15  # from 0.05 to 0.2 it is slowed
        it.send(POINTS[::-1])
        received(lambda m: m.tracking_joint == "joint3" and m.tracking_error > 0.1 and m.tracking_share < 0.6)
        it.logged("is slowed: the tracking error of joint3 is", "0.05 are allowed (watch.tolerance)")
        ros.until(lambda: float(it.diagnostics.values["tracking.share"]) < 1.0, what="no share", of=it.process)
        it.off[2] = 0.4
        assert it.end().messages[-1].progress < 1.0
        it.logged("the position of joint3 is 0.", "0.2 rad allowed (path_tolerance)")
        it.until("IDLE")
        it.arrived(2)

        assert not ros.set(it.node, watch__goal_tolerance=0.01, watch__goal_time=30.0)
        it.off[:] = 0.0
        it.off[4] = 0.02
        it.stand((it.position,))
        it.send(np.stack((it.position, it.position + 0.1)), 0.3)
        received(lambda m: m.phase == ScaledMotion.SETTLING)
        it.until("SETTLING")
        it.off[4] = 0.0  # there at last
        assert it.end().messages[-1].progress > 0.999999
        it.until("IDLE")
        it.arrived(3)

        it.ahead = 30.0
        it.send(np.stack((it.position, it.position - 0.1)), 2.0)
        ros.until(lambda: "ahead of this node's clock: the robot is not monitored" in it.diagnostics.status.message,
                  what="no word of it", of=it.process)
        assert it.end().messages[-1].tracking_joint == ""
        assert it.process.alive and "Traceback" not in it.process.log
