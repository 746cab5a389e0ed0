"""Action chunks over DDS to scaling_node and a simulated controller: limits hold even if the process is stopped."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_ros.nodes.common.topics import duration
from support.controller_bench import CONTROLLER, ControllerBench
from support.overspeed_motion import ROBOT, START
from support.ros_helpers import ros_domain, stamp
from support.scaling_bench import NAMES, NODE

pytestmark = pytest.mark.ros

RATE, COUNT = 20.0, 60  # Hz, points: 3 s
LATENCY, EVERY = 0.15, 0.4  # s; age of observations, and time between chunks
ORDER = [3, 0, 6, 1, 5, 2, 4]  # of the joints in messages
ASKED = 1.06  # see test_controller_motions_node: of torques from one update of the controller to the next
POLICY = {"policy_frequency": RATE, "policy.lead": 0.6, "policy.max_age": 2.5, "policy.timeout": 6.0, "control_rate": 100.0}


def intent(t):
    """Positions (samples, 7) of the policy at times since it began [s], from START at rest."""
    t = np.maximum(np.asarray(t, dtype=float), 0.0)[:, None]
    return START + 0.2 * (1.0 - np.cos(1.1 * t)) * np.array([1.0, 0.4, -0.6, 0.7, 0.8, -0.5, 1.0])


@pytest.fixture
def ros(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as made:
        yield made


class Policy(ControllerBench):
    """Policy that sends chunks to a scaling_node with a simulated controller."""

    def __init__(self, ros, folder, output="horizon", controller=None, **parameters):
        super().__init__(ros, folder, output, controller, **{**POLICY, **parameters})
        self.chunks = ros.node.create_publisher(JointTrajectory, f"{NODE}/action_chunks", 10)
        self.began = self.first = 0.0

    def ready(self):
        super().ready()
        self.ros.until(self.chunks.get_subscription_count)
        self.ros.until(lambda: self.diagnostics.values.get("joint_states.received", "0") != "0")
        self.ros.until(lambda: self.diagnostics.values.get("controller.state", "not found") != "not found", of=self.process)
        self.began = time.time() + 1e6  # it rests until then
        while not self.accepted():  # kernels are compiled before the first motion begins
            self.chunks.publish(self.message())
            self.ros.spin(EVERY)
        self.began = time.time() + LATENCY
        return self

    def message(self, age=LATENCY, offset=0.0, count=COUNT):
        observed = time.time() - age
        points = intent(observed - self.began + np.arange(count) / RATE) + offset
        points = np.broadcast_to(points, (count, len(NAMES)))
        made = JointTrajectory(joint_names=[NAMES[k] for k in ORDER])
        made.header.stamp = stamp(observed)
        made.points = [JointTrajectoryPoint(positions=q[ORDER].tolist()) for q in points]
        return made

    def follow(self, seconds, then=lambda: None):
        """Send chunks for some time; call `then` after each."""
        end = time.time() + seconds
        while time.time() < end:
            self.chunks.publish(self.message())
            then()
            self.ros.spin(EVERY)

    def rejected(self, reason, number=1):
        self.ros.until(lambda: self.diagnostics.dropped("chunk", reason) >= number, what=reason, of=self.process)

    def send_until_accepted(self, number, offset):
        """Send chunks until `number` were accepted: on a busy machine a chunk may be too old when it is processed."""
        while self.accepted() < number:
            self.chunks.publish(self.message(offset=offset))
            self.ros.spin(EVERY)

    def accepted(self):
        return int(self.diagnostics.values.get("policy.accepted", 0))

    def require_limits(self):
        """Check that all commands since the last call are inside the limits and one continuous motion; return it."""
        found = self.commanded()
        effort, rate = found.used()
        assert effort <= 1.0 and rate < ASKED and found.jump() < 0.6
        return found

    def until_rest(self):
        self.ros.until(lambda: self.rests, timeout=60.0, what="does not come to rest")


def test_robot_follows_valid_action_chunks_and_ignores_invalid_ones(ros, tmp_path):
    policy = Policy(ros, tmp_path).ready()
    policy.follow(3.0)
    ros.until(lambda: policy.accepted() > 3, of=policy.process)
    lines = np.array([line.split() for line in policy.file.read_text().splitlines()[:-1]], dtype=float)
    late = 1e-9 * lines[:, 0] - policy.began > 2.0
    assert late.sum() > 100
    off = lines[late, 1:8] - intent(1e-9 * lines[late, 0] - policy.began)
    assert np.abs(off).max() < 0.02  # on the path of the policy, at its time
    policy.require_limits()

    def radian(message):
        for point in message.points:
            point.positions[1] += 1.0

    def old(message):
        message.header.stamp = stamp(time.time() - 30.0)

    faulty = {
        "not_finite": lambda message: message.points[7].positions.__setitem__(3, np.nan), "step_too_large": radian,
        "outside_position_limits": lambda message: message.points[-1].positions.__setitem__(0, 9.0),
        "unknown_joint": lambda message: message.joint_names.__setitem__(-1, "elbow"),
        "wrong_shape": lambda message: message.points[5].positions.pop(), "not_advancing": old,
        "in_the_future": lambda message: setattr(message.header, "stamp", stamp(time.time() + 60.0))}
    waiting = list(faulty.values())

    def send_faulty():
        if waiting:
            message = policy.message()
            waiting.pop()(message)
            policy.chunks.publish(message)

    policy.follow(4.0, send_faulty)
    for reason in faulty:
        policy.rejected(reason)
    twice = policy.message()
    policy.chunks.publish(twice)
    policy.chunks.publish(twice)
    policy.rejected("not_advancing", 2)
    assert int(policy.diagnostics.values["chunk.received"]) >= sum(
        policy.diagnostics.dropped("chunk", reason) for reason in faulty) + policy.accepted()
    policy.until_rest()
    policy.require_limits()
    policy.until("IDLE")
    assert "no chunk was accepted for 6 s" in policy.process.log


def test_pause_stop_override_and_new_limits_apply_to_a_policy_motion(ros, tmp_path):
    policy = Policy(ros, tmp_path).ready()
    policy.follow(1.5)
    assert not policy.serve("pause")
    policy.until("PAUSED")
    policy.until_rest()
    policy.chunks.publish(policy.message())
    policy.rejected("paused")
    assert not policy.serve("resume") and not policy.override(0.5)
    policy.began = time.time() + LATENCY  # the policy restarts at the position of the robot
    start = policy.position - START
    before = policy.accepted()
    policy.send_until_accepted(before + 1, start)
    ros.until(lambda: policy.received and 0.49 < policy.received[-1].speed_scaling < 0.51, of=policy.process)
    assert not policy.override(1.0)
    model = policy.diagnostics.values["model_id"]
    assert not ros.set(NODE, together=True, payload__link=ROBOT.model.links[-1].name, payload__mass=0.2)
    ros.until(lambda: policy.diagnostics.values["model_id"] != model, of=policy.process)
    policy.send_until_accepted(policy.accepted() + 1, start)
    assert not policy.serve("stop")
    policy.until("IDLE")
    policy.until_rest()
    policy.require_limits()
    policy.chunks.publish(policy.message(offset=start))
    policy.rejected("stopped")
    policy.ros.spin(1.0)
    assert policy.rests and policy.diagnostics.state == "IDLE"


@pytest.mark.parametrize("how", ["killed", "stopped", "starved"])
def test_robot_comes_to_rest_on_the_committed_path_when_chunks_or_the_node_stop(ros, tmp_path, how):
    policy = Policy(ros, tmp_path).ready()
    policy.follow(2.0)
    ros.until(lambda: policy.accepted() > 2 and not policy.rests, of=policy.process)
    last = time.time()
    if how == "killed":
        policy.process.send(signal.SIGKILL)
    elif how == "stopped":
        policy.process.send(signal.SIGSTOP)
        for _ in range(3):
            policy.chunks.publish(policy.message())
            ros.spin(EVERY)
    else:  # it runs a fifth of the time
        for _ in range(40):
            policy.process.send(signal.SIGSTOP)
            ros.spin(0.08)
            policy.process.send(signal.SIGCONT)
            ros.spin(0.02)
            if _ % 4 == 0:
                policy.chunks.publish(policy.message())
    policy.until_rest()
    lines = np.array([line.split() for line in policy.file.read_text().splitlines()[:-1]], dtype=float)
    t = 1e-9 * lines[:, 0]
    if how != "starved":
        on_path = (t > last) & (t < last - LATENCY - EVERY + COUNT / RATE - 0.3)
        assert on_path.sum() > 50
        assert np.abs(lines[on_path, 1:8] - intent(t[on_path] - policy.began)).max() < 0.02
        assert np.abs(lines[-1, 1:8] - lines[on_path, 1:8][-1]).max() < 0.6  # the brake behind the last point
    policy.require_limits()
    if how != "killed":
        policy.process.send(signal.SIGCONT)
        ros.until(lambda: policy.diagnostics.state in ("MOVING", "IDLE"), of=policy.process)
        policy.began = time.time() + LATENCY
        start = policy.position - START
        for _ in range(4):
            policy.chunks.publish(policy.message(offset=start))
            ros.spin(EVERY)
        ros.until(lambda: not policy.rests, of=policy.process)
        policy.until_rest()
        policy.require_limits()


def test_single_point_output_of_a_policy_motion_keeps_the_limits(ros, tmp_path):
    """Samples on ~/scaled_motion are one motion inside the limits, also with output points."""
    policy = Policy(ros, tmp_path, "points", points_stop_time=4.0).ready()  # cycles are late on a busy machine
    policy.follow(2.5)
    policy.until_rest()
    samples = [message for message in policy.received if message.phase != ScaledMotion.ENDED]
    assert len(samples) > 50
    ros.until(lambda: policy.accepted() > 2, of=policy.process)
    assert max(message.utilization for message in samples) <= 1.0


def test_chunks_with_point_times_need_no_policy_frequency(ros, tmp_path):
    policy = Policy(ros, tmp_path).ready()
    assert not ros.set(NODE, policy_frequency=0.0)
    policy.chunks.publish(policy.message())
    policy.rejected("bad_times")
    made = policy.message()
    for k, point in enumerate(made.points):
        point.time_from_start = duration(k / RATE)
    before = policy.accepted()
    policy.chunks.publish(made)
    ros.until(lambda: policy.accepted() == before + 1, of=policy.process)
    policy.until_rest()
    policy.require_limits()
    assert CONTROLLER in policy.diagnostics.values["controller"]
