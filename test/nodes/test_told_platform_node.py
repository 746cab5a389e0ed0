"""dynamics_node where the platform tells how a parallel robot moves, in a process of its own over DDS: forces by multipliers
on Pinocchio; and bad poses."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message

from rnea_msgs.msg import BaseStateStamped
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.bases.platform_topics import PlatformPoses
from rnea_ros.robots.inputs.base_state import quaternion
from support.live_bench import LiveBench
from support.moving_bench import fill
from support.moving_robots import MovingPlatform
from support.oracles import worst
from support.ros_helpers import stamp, world

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900)]

SAMPLES = 40
BAD = [("unknown_frame", lambda m, pose: setattr(m.header, "frame_id", "moon")),
       ("unusable", lambda m, pose: setattr(pose.position, "y", math.nan)),
       ("unusable", lambda m, pose: setattr(pose.orientation, "w", 7.0))]


class PlatformBench(LiveBench):
    """The platform of a Gough-Stewart machine tells how it moves; stamps are the time of the motion, from `began` on."""

    def __init__(self, ros, folder, moving, source, topic, kind):
        self.moving, self.topic, self.kind = moving, topic, kind
        super().__init__(ros, "stewart", self.moving.joints, robot_description=self.moving.urdf,
                         robot_file=self.moving.file(folder), **{"platform.source": source})
        self.teller, self.began = ros.node.create_publisher(kind, f"{self.node}/{topic}", 100), self.clock
        self.prepared()
        ros.until(self.teller.get_subscription_count)

    def tell(self, message):
        """At the next stamp, which is returned."""
        message.header.stamp = when = stamp(self.tick())
        self.teller.publish(message)
        return when

    def answered(self, message):
        """The answer to a message, which is sent until there is one."""
        return self.ros.until(lambda: self.answer(self.tell(message), timeout=2.0), what="no answer", of=self.process)

    def refuses(self, make):
        """Bad messages are counted, each by its reason, and the joint states that nobody asked for."""
        for reason, spoil in BAD:
            reason = f"{self.topic}_{reason}" if reason == "unusable" else reason
            before, bad = int(self.diagnostics.values.get(f"dropped.{self.topic}.{reason}", 0)), make()
            spoil(bad, bad.pose if self.kind is PoseStamped else bad.state.pose)

            def dropped(reason=reason, before=before, bad=bad):
                self.tell(bad)
                return self.diagnostics.dropped(self.topic, reason) > before

            self.ros.until(dropped, of=self.process)

        def unused():
            self.publish(self.moving.motion(0.0))
            return self.diagnostics.dropped("joint_states", "joint_states_unused")

        self.ros.until(unused, of=self.process)
        assert self.process.alive


def state(platform):
    message, R = BaseStateStamped(), np.asarray(platform.rotation)
    place(message.state.pose, platform.position, R)
    for part, six in ((message.state.twist, platform.velocity), (message.state.acceleration, platform.acceleration),
                      (message.state.jerk, platform.jerk)):
        fill(part.linear, part.angular, np.concatenate((R.T @ six[:3], R.T @ six[3:])))
    return message


def place(pose, position, R):
    p, o = pose.position, pose.orientation
    p.x, p.y, p.z = map(float, position)
    o.x, o.y, o.z, o.w = map(float, quaternion(R))


@pytest.fixture(scope="module")
def stewart():
    return MovingPlatform("gough_stewart")


def test_forces_and_rates_of_a_platform_whose_whole_motion_is_told(stewart, tmp_path):
    with world(tmp_path) as ros:
        bench = PlatformBench(ros, tmp_path, stewart, "state", "platform_state", BaseStateStamped)
        moving, errors = bench.moving, []
        poses = ros.listen(PoseStamped, f"{bench.node}/platform_pose")
        for t in np.linspace(0.0, 3.0, SAMPLES):
            found = bench.answered(state(moving.platform(t)))
            errors.append((worst(found.effort, moving.torque(t)), worst(found.effort_rate, moving.rate(t))))
            for told, wanted in zip((found.position, found.velocity, found.acceleration, found.jerk), moving.motion(t)):
                np.testing.assert_allclose(told, wanted, atol=1e-9)
        print(f"largest errors of force and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        said = ros.until(lambda: next((m for m in poses if m.header.stamp == found.header.stamp), None)).pose.position
        np.testing.assert_allclose([said.x, said.y, said.z], moving.platform(t).position, atol=1e-12)
        bench.refuses(lambda: state(moving.platform(0.0)))
        assert worst(bench.answered(state(moving.platform(0.1))).effort, moving.torque(0.1)) < 1e-8


def test_forces_and_rates_of_a_platform_whose_poses_are_measured(stewart, tmp_path):
    """With noise; 30 ms late."""
    rng = np.random.default_rng(5)
    with world(tmp_path) as ros:
        bench = PlatformBench(ros, tmp_path, stewart, "pose", "platform_pose_measured", PoseStamped)
        moving, bench.dt = bench.moving, 0.004

        def measured(t):
            message, platform, turn = PoseStamped(), moving.platform(t), rng.normal(0.0, 2e-5, 3)
            skew = np.cross(np.eye(3), turn)
            place(message.pose, platform.position + rng.normal(0.0, 1e-5, 3), platform.rotation @ (np.eye(3) - skew))
            return message

        def told():
            bench.tell(measured(bench.clock + bench.dt - bench.began))
            ros.spin(0.001)
            return len(bench.results) >= 600

        ros.until(told, of=bench.process)
        errors, sizes = [], []
        for found in bench.results[200:600:10]:
            t = found.header.stamp.sec + found.header.stamp.nanosec * 1e-9 - bench.began
            truth = moving.torque(t), moving.rate(t)
            errors.append(np.array((found.effort, found.effort_rate)) - truth)
            sizes.append(truth)
        shares = np.sqrt(np.mean(np.square(errors), axis=(0, 2)) / np.mean(np.square(sizes), axis=(0, 2)))
        print(f"RMS errors of force and rate as shares of their RMS {shares}")
        assert shares[0] < 0.02 and shares[1] < 0.2
        bench.refuses(lambda: measured(0.0))
        before = len(bench.results)
        ros.until(lambda: told() and len(bench.results) > before, of=bench.process)


def test_a_pose_that_the_legs_do_not_allow_never_reaches_the_filters():
    """Without a node or a robot. Legs that are slides, as above, reach everything."""
    def reach(pose):
        if pose.position[2] > 5.0:
            raise Rejected("out_of_reach", "too high")

    topic, answered = PlatformPoses("base", np.eye(3), reach), []
    topic.then = answered.append
    topic.connect(SimpleNamespace(clock=time.time_ns, hear=lambda kind, name, callback: None))
    for number, height in enumerate((1.0, 9.0, 1.0)):
        message = PoseStamped()
        place(message.pose, [0.0, 0.0, height], np.eye(3))
        message.header.stamp = stamp(1.0 + 0.01 * number)
        topic.on_message(serialize_message(message))
    assert topic.stream.received == 3 and len(answered) == 2 and dict(topic.stream.dropped) == {"out_of_reach": 1}
