"""dynamics_node with platform topics of a parallel robot, as a separate process over DDS, against Pinocchio with multipliers;
and invalid poses.
"""

from __future__ import annotations

import math
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from geometry_msgs.msg import PoseStamped, TwistStamped
from rclpy.serialization import serialize_message

from rnea_msgs.msg import BaseStateStamped
from rnea_ros import InputError
from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.base_sources import PlatformPoses, platform_suffixes
from rnea_ros.robots.base_state import quaternion
from support.live_bench import LiveBench
from support.moving_bench import PlatformsBench, fill
from support.moving_robots import MovingPlatform
from support.oracles import worst
from support.ros_helpers import ros_domain, stamp

pytestmark = [pytest.mark.ros, pytest.mark.timeout(900)]

SAMPLES = 40
LONGEST_WAIT = 0.5  # s
BAD = [("unknown_frame", lambda m, pose: setattr(m.header, "frame_id", "moon")),
       ("unusable", lambda m, pose: setattr(pose.position, "y", math.nan)),
       ("unusable", lambda m, pose: setattr(pose.orientation, "w", 7.0))]


class PlatformBench(LiveBench):
    """Publisher of a Gough-Stewart platform's motion to dynamics_node; stamps are `began` plus the time of the motion."""

    def __init__(self, ros, folder, moving, source, topic, kind, **parameters):
        self.moving, self.topic, self.kind = moving, topic, kind
        super().__init__(ros, "stewart", self.moving.joints, robot_description=self.moving.urdf,
                         robot_file=self.moving.file(folder), **{"platform.source": source}, **parameters)
        self.publisher, self.began = ros.node.create_publisher(kind, f"{self.node}/{topic}", 100), self.clock
        self.prepared()
        ros.until(self.publisher.get_subscription_count)

    def publish_message(self, message):
        """Publish a message at the next stamp, and return it."""
        message.header.stamp = when = stamp(self.tick())
        self.publisher.publish(message)
        return when

    def answered(self, message):
        """Send messages until the node answers, and return the answer."""
        return self.ros.until(lambda: self.answer(self.publish_message(message), timeout=2.0), what="no answer",
                             of=self.process)

    def check_rejections(self, make):
        """Check that invalid messages and unused joint states are counted by their reasons."""
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
    """Return RMS errors of force and rate relative to their RMS values (2,)."""
    errors, sizes = [], []
    for found in results:
        t = found.header.stamp.sec + found.header.stamp.nanosec * 1e-9 - bench.began
        truth = bench.moving.torque(t), bench.moving.rate(t)
        errors.append(np.array((found.effort, found.effort_rate)) - truth)
        sizes.append(truth)
    found = np.sqrt(np.mean(np.square(errors), axis=(0, 2)) / np.mean(np.square(sizes), axis=(0, 2)))
    print(f"RMS errors of force and rate as shares of their RMS {found}")
    return found


@pytest.fixture(scope="module")
def stewart():
    return MovingPlatform("gough_stewart")


def test_leg_forces_and_rates_from_published_platform_motion_are_exact(stewart, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = PlatformBench(ros, tmp_path, stewart, "state", "platform_state", BaseStateStamped)
        moving, errors = bench.moving, []
        poses = ros.listen(PoseStamped, f"{bench.node}/platform_pose")
        for t in np.linspace(0.0, 3.0, SAMPLES):
            found = bench.answered(state(moving.platform(t)))
            errors.append((worst(found.effort, moving.torque(t)), worst(found.effort_rate, moving.rate(t))))
            for reported, wanted in zip((found.position, found.velocity, found.acceleration, found.jerk), moving.motion(t)):
                np.testing.assert_allclose(reported, wanted, atol=1e-9)
        print(f"largest errors of force and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        said = ros.until(lambda: next((m for m in poses if m.header.stamp == found.header.stamp), None)).pose.position
        np.testing.assert_allclose([said.x, said.y, said.z], moving.platform(t).position, atol=1e-12)
        bench.check_rejections(lambda: state(moving.platform(0.0)))
        assert worst(bench.answered(state(moving.platform(0.1))).effort, moving.torque(0.1)) < 1e-8


def test_leg_forces_and_rates_are_estimated_from_noisy_platform_poses(stewart, tmp_path):
    """The poses are noisy, and the estimate is 30 ms late."""
    rng = np.random.default_rng(5)
    with ros_domain(tmp_path) as ros:
        bench = PlatformBench(ros, tmp_path, stewart, "pose", "platform_pose_measured", PoseStamped)
        moving, bench.dt = bench.moving, 0.004

        def measured(t):
            return posed(moving.platform(t), rng.normal(0.0, 1e-5, 3), rng.normal(0.0, 2e-5, 3))

        def reported():
            bench.publish_message(measured(bench.clock + bench.dt - bench.began))
            ros.spin(0.001)
            return bench.results

        while len(ros.until(reported, of=bench.process)) < 600:
            bench.paced()
        force, rate = shares(bench, bench.results[200:600:10])
        assert force < 0.02 and rate < 0.2
        bench.check_rejections(lambda: measured(0.0))
        before = len(bench.results)
        ros.until(lambda: len(reported()) > before, of=bench.process)


class TwistedBench(PlatformBench):
    """Bench that publishes poses and twists, with or without a desired motion; the twist is sent last."""

    def __init__(self, ros, folder, moving, motion_source):
        super().__init__(ros, folder, moving, "pose+twist", "platform_pose_measured", PoseStamped,
                         **{"platform.motion_source": motion_source, "input_wait": LONGEST_WAIT, "base.timeout": 5.0,
                            "input_tolerance": 0.0})  # no extrapolation: an answer is exact
        self.desired_motion, self.twists = (ros.node.create_publisher(kind, f"{self.node}/{topic}", 100) for kind, topic in (
            (BaseStateStamped, "platform_state"), (TwistStamped, "platform_twist_measured")))
        ros.until(self.twists.get_subscription_count)
        if motion_source == "desired":
            ros.until(self.desired_motion.get_subscription_count)

    def send_all(self, pose, twist, desired=None, late=False):
        """Send all messages at the next stamp, and return it. late: send the desired motion last."""
        when = stamp(self.tick())
        sent = [(self.desired_motion, desired), (self.publisher, pose), (self.twists, twist)]
        for publisher, message in reversed(sent) if late else sent:
            if message is not None:
                message.header.stamp = when
                publisher.publish(message)
                self.ros.spin(0.001)
        return when


def posed(platform, position=0.0, turn=(0.0, 0.0, 0.0)):
    message, skew = PoseStamped(), np.cross(np.eye(3), turn)
    pose_of(message.pose, platform.position + position, platform.rotation @ (np.eye(3) - skew))
    return message


def test_measured_pose_and_twist_with_desired_acceleration_and_jerk_are_exact(stewart, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench, errors = TwistedBench(ros, tmp_path, stewart, "desired"), []
        for t in np.linspace(0.0, 3.0, SAMPLES):
            platform = bench.moving.platform(t)
            elsewhere = platform._replace(position=platform.position + 0.1, velocity=2.0 * np.asarray(platform.velocity))
            found = bench.ros.until(lambda p=platform, e=elsewhere: bench.answer(
                bench.send_all(posed(p), twist(p), state(e), late=len(errors) % 2 == 1), timeout=2.0), what="no answer",
                of=bench.process)
            errors.append((worst(found.effort, bench.moving.torque(t)), worst(found.effort_rate, bench.moving.rate(t))))
        print(f"largest errors of force and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8

        def dropped(reason, spoil):
            bad = twist(platform)
            spoil(bad)
            bench.send_all(posed(platform), bad, state(platform))
            return bench.diagnostics.dropped("platform_twist_measured", reason)

        for reason, spoil in (("unknown_frame", lambda m: setattr(m.header, "frame_id", "moon")),
                              ("platform_twist_measured_unusable", lambda m: setattr(m.twist.linear, "z", math.inf))):
            ros.until(lambda reason=reason, spoil=spoil: dropped(reason, spoil), of=bench.process)


def test_leg_force_rates_are_estimated_from_noisy_poses_and_twists(stewart, tmp_path):
    """Noise of the poses as above; of the twists 0.1 mm/s and 0.2 mrad/s, as of optical flow."""
    rng = np.random.default_rng(6)
    with ros_domain(tmp_path) as ros:
        bench = TwistedBench(ros, tmp_path, stewart, "estimated")
        bench.dt = 0.004

        def reported():
            platform = bench.moving.platform(bench.clock + bench.dt - bench.began)
            noisy = np.asarray(platform.velocity) + rng.normal(0.0, [1e-4] * 3 + [2e-4] * 3)
            bench.send_all(posed(platform, rng.normal(0.0, 1e-5, 3), rng.normal(0.0, 2e-5, 3)),
                           twist(platform._replace(velocity=noisy)))
            return bench.results

        while len(ros.until(reported, of=bench.process)) < 600:
            bench.paced()
        force, rate = shares(bench, bench.results[200:600:10])
        assert force < 0.01 and rate < 0.1


def test_torques_and_rates_of_platforms_in_series_whose_motions_are_published(tmp_path):
    """Pinocchio's motion with multipliers; each platform has its own topics."""
    pytest.importorskip("mujoco")
    from support.moving_mechanisms import MECHANISMS

    moving = MECHANISMS["two platforms in series, their motions given"](0)
    with ros_domain(tmp_path) as ros:
        bench = PlatformsBench(ros, moving, tmp_path, step=0.4).met()
        poses = {link: ros.listen(PoseStamped, f"{bench.node}/platform_pose/{link}") for link in moving.robot.platforms}
        for _ in range(4):
            t, found = bench.next()
            tau, rate = moving.torque(t), moving.rate(t)
            assert np.abs(found.effort - tau).max() < 1e-10 * np.abs(tau).max()
            assert np.abs(found.effort_rate - rate).max() < 1e-8 * np.abs(rate).max()
        for link, platform in moving.platforms(t).items():
            def published(sent=poses[link]):
                return next((message.pose.position for message in sent if message.header.stamp == found.header.stamp), None)

            p = ros.until(published)
            np.testing.assert_allclose([p.x, p.y, p.z], platform.position, atol=1e-12)


class MeasuredPlatformsBench(PlatformsBench):
    """Bench that publishes measured pose and twist, and the desired motion, of each of several platforms."""

    def _publishers(self):
        kinds = ((BaseStateStamped, "platform_state"), (PoseStamped, "platform_pose_measured"),
                 (TwistStamped, "platform_twist_measured"))
        return [self.ros.node.create_publisher(kind, f"{self.node}/{topic}/{link}", 10)
                for link in self.moving.robot.platforms for kind, topic in kinds]

    def prepared_at(self, t):
        when, messages = stamp(self._began + t), []
        for link in self.moving.robot.platforms:
            platform = self.moving.platforms(t)[link]
            elsewhere = platform._replace(position=platform.position + 0.1, velocity=2.0 * np.asarray(platform.velocity))
            messages += [state(elsewhere), posed(platform), twist(platform)]
        for message in messages:
            message.header.stamp = when
        return list(zip(self._others, messages, strict=True))


def test_measured_poses_and_twists_of_several_platforms_are_used_with_their_desired_motion(tmp_path):
    """Position and velocity of the desired motion are wrong: they are not used."""
    pytest.importorskip("mujoco")
    from support.moving_mechanisms import MECHANISMS

    moving = MECHANISMS["two platforms in series, their motions given"](0)
    moving.parameters = {**moving.parameters, "platform.source": "pose+twist", "platform.motion_source": "desired",
                         "input_wait": LONGEST_WAIT, "base.timeout": 5.0, "input_tolerance": 0.0}
    with ros_domain(tmp_path) as ros:
        bench = MeasuredPlatformsBench(ros, moving, tmp_path, step=0.4).met()
        for _ in range(4):
            t, found = bench.next()
            tau, rate = moving.torque(t), moving.rate(t)
            assert np.abs(found.effort - tau).max() < 1e-9 * np.abs(tau).max()
            assert np.abs(found.effort_rate - rate).max() < 1e-8 * np.abs(rate).max()


def test_links_of_platforms_whose_topics_would_have_one_name_are_refused():
    assert platform_suffixes(["top"]) == {"top": ""}
    assert platform_suffixes(["lower-plate", "2nd"]) == {"lower-plate": "/lower_plate", "2nd": "/_2nd"}
    with pytest.raises(InputError, match="rename a link"):
        platform_suffixes(["a-b", "a.b"])


def test_pose_out_of_reach_of_the_legs_is_dropped_before_the_filters():
    """The reach is simulated, because prismatic legs reach every pose; neither a node nor a robot is needed."""
    def reach(position, rotation):
        if position[2] > 5.0:
            raise Rejected("out_of_reach", "too high")

    topic, answered = PlatformPoses("base", np.eye(3), reach), []
    topic.then = answered.append
    topic.connect(SimpleNamespace(clock=time.time_ns, subscribe=lambda kind, name, callback: None))
    for number, height in enumerate((1.0, 9.0, 1.0)):
        message = PoseStamped()
        pose_of(message.pose, [0.0, 0.0, height], np.eye(3))
        message.header.stamp = stamp(1.0 + 0.01 * number)
        topic.on_message(serialize_message(message))
    assert topic.stream.received == 3 and len(answered) == 2 and dict(topic.stream.dropped) == {"out_of_reach": 1}
