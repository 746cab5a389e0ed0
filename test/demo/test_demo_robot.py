"""demo_robot as a separate process: consistent messages, start and end."""

from __future__ import annotations

import signal
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from sensor_msgs.msg import JointState
from std_msgs.msg import String

from rnea_msgs.msg import JointMotion
from rnea_ros import Robot
from rnea_ros.demo import robot_demo as demo_motion
from support.ros_helpers import LATCHED

pytestmark = pytest.mark.ros

URDFS = Path(__file__).resolve().parents[2] / "urdf"
TEXT = {name: (URDFS / f"{name}.urdf").read_text() for name in ("stanford", "branched", "rr")}


def nanoseconds(message):
    return message.header.stamp.sec * 10**9 + message.header.stamp.nanosec


@pytest.mark.parametrize("name", ["stanford", "branched"])
def test_published_states_and_derivatives_are_consistent(ros, name):
    states, desired = ros.listen(JointState, "joint_states"), ros.listen(JointMotion, "dynamics_node/desired_motion")
    ros.start("demo_robot", {"robot_description": TEXT[name]})

    def pairs():
        by_stamp = {nanoseconds(message): message for message in desired}
        return [(state, by_stamp[nanoseconds(state)]) for state in states if nanoseconds(state) in by_stamp]

    def near():
        """Return the short steps between samples: on a busy machine some take longer."""
        return np.diff([nanoseconds(state) for state, _ in pairs()]) < 10**7

    ros.until(lambda: near().sum() > 150)
    pairs, near = pairs(), near()
    robot = Robot.from_urdf(TEXT[name].encode(), backend="reference")
    for state, motion in pairs:
        assert tuple(state.name) == tuple(motion.joint_names) == robot.joint_names
        assert state.header.frame_id == motion.header.frame_id == "base_link"
        assert len(state.position) == len(state.velocity) == robot.n and np.isnan(state.effort).all()
    times = np.array([nanoseconds(state) for state, _ in pairs]) * 1e-9
    position = np.array([state.position for state, _ in pairs])
    velocity = np.array([state.velocity for state, _ in pairs])
    acceleration = np.array([motion.acceleration for _, motion in pairs])
    step = np.diff(times)[:, None]
    predicted = position[:-1] + velocity[:-1] * step + acceleration[:-1] * step**2 / 2
    np.testing.assert_allclose(position[1:][near], predicted[near], atol=1e-5)


def test_rate_and_duration_parameters_are_applied(ros):
    states = ros.listen(JointState, "joint_states")
    ros.start("demo_robot", {"robot_description": TEXT["stanford"], "rate": 100.0, "duration": 4.0})

    def periods():
        return np.diff([nanoseconds(state) for state in states])

    # A busy machine keeps the rate for some periods only, and is late in others: it never sends faster.
    ros.until(lambda: len(states) > 100 and (np.abs(periods() - 1e7) < 2e6).sum() > 20)
    assert np.mean(periods()) > 8e6
    slow = demo_motion.stanford_motion(4.0)
    played = np.array([np.concatenate(slow(t)[:2]) for t in np.arange(0.0, 8.0, 1e-3)])
    for state in states[::10]:
        assert np.abs(played - np.concatenate([state.position, state.velocity])).max(axis=1).min() < 2e-3


def test_late_description_is_used_and_invalid_ones_are_ignored(ros):
    states = ros.listen(JointState, "robot/joint_states")
    process = ros.start("demo_robot", {}, "robot")
    publisher = ros.node.create_publisher(String, "robot/robot_description", LATCHED)
    ros.until(lambda: "waiting for a URDF on /robot/robot_description" in process.log)
    publisher.publish(String(data="<robot"))
    ros.until(lambda: "waiting for another one" in process.log and "not well-formed" in process.log)
    publisher.publish(String(data=TEXT["rr"]))
    ros.until(lambda: states)
    assert list(states[0].name) == ["joint1", "joint2"] and process.alive


@pytest.mark.parametrize("parameters, words", [
    ({"motion": "dance"}, "allowed are auto, stanford, sweep"),
    ({"motion": "stanford"}, "not for 'rr'"),
    ({"rate": 0.0}, "rate is 0"),
    ({"robot_description": "<robot"}, "not well-formed"),
])
def test_demo_robot_exits_with_an_error_for_invalid_parameters(ros, parameters, words):
    process = ros.start("demo_robot", {"robot_description": TEXT["rr"], **parameters})
    ros.until(lambda: not process.alive)
    assert process.stop() == 1 and words in process.log and "Traceback" not in process.log


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("parameters", [{}, {"robot_description": TEXT["rr"]}], ids=["waiting", "moving"])
def test_demo_robot_exits_cleanly_on_sigint_and_sigterm(ros, parameters, how):
    process = ros.start("demo_robot", parameters)
    ros.until(lambda: "moving the 2 joints" in process.log or "waiting for a URDF" in process.log)
    ros.spin(0.2)
    assert process.stop(how) == 0
    assert "Traceback" not in process.log
