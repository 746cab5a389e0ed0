"""Bench that publishes the motion of a platform to dynamics_node over DDS."""

from __future__ import annotations

import math

import numpy as np
from geometry_msgs.msg import PoseStamped, TwistStamped

from rnea_msgs.msg import BaseStateStamped
from rnea_ros.robots.inputs.base_state import quaternion
from support.live_bench import LiveBench
from support.moving_bench import fill
from support.ros_helpers import stamp

BAD = [("unknown_frame", lambda m, pose: setattr(m.header, "frame_id", "moon")),
       ("unusable", lambda m, pose: setattr(pose.position, "y", math.nan)),
       ("unusable", lambda m, pose: setattr(pose.orientation, "w", 7.0))]


class PlatformBench(LiveBench):
    """Bench with the platform of a Gough-Stewart machine; stamps are the time of the motion, from `began` on."""

    def __init__(self, ros, folder, moving, source, topic, kind, **parameters):
        self.moving, self.topic, self.kind = moving, topic, kind
        super().__init__(ros, "stewart", self.moving.joints, robot_description=self.moving.urdf,
                         robot_file=self.moving.file(folder), **{"platform.source": source}, **parameters)
        self.teller, self.began = ros.node.create_publisher(kind, f"{self.node}/{topic}", 100), self.clock
        self.prepared()
        ros.until(self.teller.get_subscription_count)

    def publish_message(self, message):
        """Publish a message at the next stamp, and return it."""
        message.header.stamp = when = stamp(self.tick())
        self.teller.publish(message)
        return when

    def answered(self, message):
        """The answer to a message, which is sent until there is one."""
        return self.ros.until(lambda: self.answer(self.publish_message(message), timeout=2.0), what="no answer",
                             of=self.process)

    def refuses(self, make):
        """Bad messages are counted, each by its reason, and so are unused joint states."""
        for reason, spoil in BAD:
            reason = f"{self.topic}_{reason}" if reason == "unusable" else reason
            before, bad = int(self.diagnostics.values.get(f"dropped.{self.topic}.{reason}", 0)), make()
            spoil(bad, bad.pose if self.kind is PoseStamped else bad.state.pose)

            def dropped(reason=reason, before=before, bad=bad):
                self.publish_message(bad)
                return self.diagnostics.dropped(self.topic, reason) > before

            self.ros.until(dropped, of=self.process)

        def unused():
            self.publish(self.moving.motion(0.0))
            return self.diagnostics.dropped("joint_states", "joint_states_unused")

        self.ros.until(unused, of=self.process)
        assert self.process.alive


def state(platform):
    message, R = BaseStateStamped(), np.asarray(platform.rotation)
    pose_of(message.state.pose, platform.position, R)
    for part, six in ((message.state.twist, platform.velocity), (message.state.acceleration, platform.acceleration),
                      (message.state.jerk, platform.jerk)):
        fill(part.linear, part.angular, np.concatenate((R.T @ six[:3], R.T @ six[3:])))
    return message


def pose_of(pose, position, R):
    p, o = pose.position, pose.orientation
    p.x, p.y, p.z = map(float, position)
    o.x, o.y, o.z, o.w = map(float, quaternion(R))


def twist(platform):
    message = TwistStamped()
    fill(message.twist.linear, message.twist.angular, np.asarray(platform.velocity))
    return message


def shares(bench, results):
    """RMS errors of force and rate, as shares of their RMS (2,)."""
    errors, sizes = [], []
    for found in results:
        t = found.header.stamp.sec + found.header.stamp.nanosec * 1e-9 - bench.began
        truth = bench.moving.torque(t), bench.moving.rate(t)
        errors.append(np.array((found.effort, found.effort_rate)) - truth)
        sizes.append(truth)
    found = np.sqrt(np.mean(np.square(errors), axis=(0, 2)) / np.mean(np.square(sizes), axis=(0, 2)))
    print(f"RMS errors of force and rate as shares of their RMS {found}")
    return found
