"""Tracking monitor of scaling_node, with joint states of a simulated robot that deviates from its reference."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from sensor_msgs.msg import JointState

from rnea_msgs.msg import ScaledMotion
from support.overspeed_motion import POINTS, START
from support.ros_helpers import ros_domain, stamp
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
    with ros_domain(tmp_path) as ros:
        bench = DeviatingBench(ros, **{"state_timeout": 5.0, "watch.tolerance": 0.05, "watch.path_tolerance": 0.2}).ready()

        def received(what):
            ros.until(lambda: bench.received and what(bench.received[-1]), timeout=120.0, what="not received",
                      of=bench.process)

        bench.send()  # the robot follows
        received(lambda m: m.tracking_joint and m.tracking_error < 1e-3 and m.tracking_share == 1.0)
        motion = bench.end()
        motion.check()
        assert all(m.tracking_share == 1.0 for m in motion.messages)
        bench.logged("ended at its goal")
        assert "is slowed" not in bench.process.log

        bench.arrived(1)
        bench.off[2] = 0.15  # from 0.05 to 0.2 it is slowed
        bench.send(POINTS[::-1])
        received(lambda m: m.tracking_joint == "joint3" and m.tracking_error > 0.1 and m.tracking_share < 0.6)
        bench.logged("is slowed: the tracking error of joint3 is", "0.05 are allowed (watch.tolerance)")
        ros.until(lambda: float(bench.diagnostics.values["tracking.share"]) < 1.0, what="no share", of=bench.process)
        bench.off[2] = 0.4
        assert bench.end().messages[-1].progress < 1.0
        bench.logged("the position of joint3 is 0.", "0.2 rad allowed (path_tolerance)")
        bench.until("IDLE")
        bench.arrived(2)

        assert not ros.set(bench.node, watch__goal_tolerance=0.01, watch__goal_time=30.0)
        bench.off[:] = 0.0
        bench.off[4] = 0.02
        bench.stand((bench.position,))
        bench.send(np.stack((bench.position, bench.position + 0.1)), 0.3)
        received(lambda m: m.phase == ScaledMotion.SETTLING)
        bench.until("SETTLING")
        bench.off[4] = 0.0  # there at last
        assert bench.end().messages[-1].progress > 0.999999
        bench.until("IDLE")
        bench.arrived(3)

        bench.ahead = 30.0
        bench.send(np.stack((bench.position, bench.position - 0.1)), 2.0)
        ros.until(lambda: "ahead of this node's clock: the robot is not monitored" in bench.diagnostics.status.message,
                  what="no word of it", of=bench.process)
        assert bench.end().messages[-1].tracking_joint == ""
        assert bench.process.alive and "Traceback" not in bench.process.log
