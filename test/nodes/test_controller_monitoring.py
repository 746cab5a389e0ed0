"""Monitoring of a controller's state while it executes trajectories of its topic, with a controller in this process."""

from __future__ import annotations

import time
from collections import deque
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Time
from rclpy.serialization import deserialize_message
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros import InputError
from rnea_ros.execution.joint_states import Measurement
from rnea_ros.execution.states import Phase
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.topics import nanoseconds
from rnea_ros.nodes.scaling import controller, publishers
from rnea_ros.nodes.scaling.controller import (
    ControllerState,
    TopicController,
    check_monitor_source,
    controller_state_from_message,
)
from rnea_ros.nodes.scaling.publishers import SamplePublishers
from support.controlled_executor_harness import ControlledExecutorHarness
from support.executor_harness import trajectory
from support.overspeed_motion import POINTS, ROBOT, START
from support.trajectory_controller import TrajectoryPoints

VALUES = {"controller.name": "/jtc", "controller.timeout": 5.0, "controller.required": False, "controller.interface": "topic",
          "output": "trajectory", "reference_effort": False, "start_tolerance": 0.01, "commands": "none", "frame_id": ""}
AHEAD = 2  # ms; the controller reports its future reference
STATES, POLLS_MS = 20, 100  # ms; period of its states; period of polls
WATCHED = {"watch.tolerance": 0.05, "watch.path_tolerance": 0.3}


class Followed(ControlledExecutorHarness):
    """A controller whose messages are `late` [ns], of a robot that is `off` its reference, as `source` reports."""

    listeners = 1

    def __init__(self, monkeypatch, source="joint_states", **values):
        super().__init__(**{"output": "trajectory", **values})
        self.off, self.late, self.sent, self.inbox, self.reports = np.zeros(7), 0, 0, deque(), []
        monkeypatch.setattr(controller, "JointTrajectoryControllerState", object())
        monkeypatch.setattr(controller, "controller_state_reader", lambda: lambda state: state)
        monkeypatch.setattr(controller, "time", SimpleNamespace(monotonic=lambda: 1e-9 * self.now))
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=self.now))
        node = SimpleNamespace(create_client=lambda *_: SimpleNamespace(service_is_ready=lambda: False),
                               create_publisher=lambda kind, topic, queue: self.publisher(topic), get_clock=lambda: clock,
                               create_subscription=lambda *_, **__: None, get_logger=lambda: None,
                               count_publishers=lambda topic: 1)
        self.health = SimpleNamespace(trajectories=Stream("trajectory"), report=lambda well, text: self.reports.append(text))
        settings = SimpleNamespace(values={**VALUES, "watch.source": source})
        self.link = TopicController(node, settings, self.executor, self.health, lambda: (), lambda names: self.position)
        self.executor.follower = self.link
        self.messages = SamplePublishers(node, self.link)

    @property
    def position(self):
        return self.controller.state[0] + self.off

    def _measurement(self, names):
        if self.link.states is not None:
            return self.link.states.measurement(names, 1e-9 * self.now - 0.5)
        return Measurement(np.full(7, self.now), self.position, self.controller.state[1], np.full(7, np.nan))

    def publisher(self, topic):
        ours = topic.endswith("/joint_trajectory")
        return SimpleNamespace(publish=self.publish, get_subscription_count=lambda: int(ours) * self.listeners)

    def publish(self, message):
        """Receive a trajectory, serialized or as a message."""
        self.sent += 1
        self.inbox.append((self.now + self.late, deserialize_message(message, JointTrajectory)
                           if isinstance(message, bytes) else message))

    def update(self):
        while self.inbox and self.inbox[0][0] <= self.now:
            message = self.inbox.popleft()[1]
            stamp = nanoseconds(message.header.stamp) or self.now
            times = 1e-9 * stamp + np.array([1e-9 * nanoseconds(point.time_from_start) for point in message.points])
            q, qd, qdd = (np.array([getattr(point, name) for point in message.points])
                          for name in ("positions", "velocities", "accelerations"))
            self.controller.set_trajectory(TrajectoryPoints(times, q, qd, qdd if qdd.size else None), 1e-9 * self.now)
        super().update()
        if self.now // 1_000_000 % STATES == 0:
            ahead = self.controller.update(1e-9 * self.now + 1e-3 * AHEAD)[0]
            self.link._on_state(ControllerState(self.now, ROBOT.joint_names, ahead, self.position, (), (), 1.0))
        if self.now // 1_000_000 % POLLS_MS == 0:
            self.link.update()

    def send(self, motion, sample):
        self.link.on_sample(motion, sample, self.now)
        self.messages.publish(motion, sample, self.executor.phase, self.executor.override, Time(), VALUES,
                              time.monotonic())

    def begun(self, seconds):
        self.take(trajectory())
        return self.play(seconds)

    @property
    def reported(self):
        return [text for text in self.reports if "get_parameters" not in text]


def test_points_are_not_sent_when_the_process_was_suspended_during_the_cycle(monkeypatch):
    """The controller has executed the stop behind the last point meanwhile: the next point would be a jump."""
    sim = Followed(monkeypatch, output="points")
    monkeypatch.setattr(sim, "send", lambda motion, sample: None)
    monkeypatch.setattr(publishers, "time", SimpleNamespace(monotonic=lambda: 10.0))
    sim.begun(0.3)
    values, sample = {**VALUES, "points_stop_time": 0.3, "control_rate": 1000.0}, sim.samples[-1]
    for late, sent in ((0.0, 1), (0.2, 1), (0.0, 2)):
        sim.messages.publish(sim.executor.motion, sample, sim.executor.phase, 1.0, Time(), values, 10.0 - late)
        assert sim.sent == sent


def test_points_sent_while_the_process_was_suspended_are_reported(monkeypatch):
    """The suspension begins after the last check and lasts 5 s."""
    sim, errors, readings = Followed(monkeypatch, output="points"), [], iter([10.0, 15.0])
    monkeypatch.setattr(sim, "send", lambda motion, sample: None)
    monkeypatch.setattr(sim.messages, "_logger", SimpleNamespace(error=errors.append))
    sim.begun(0.3)
    monkeypatch.setattr(publishers, "time", SimpleNamespace(monotonic=lambda: next(readings)))
    values = {**VALUES, "points_stop_time": 0.3, "control_rate": 1000.0}
    sim.messages.publish(sim.executor.motion, sim.samples[-1], sim.executor.phase, 1.0, Time(), values, 10.0)
    assert sim.sent == 1 and len(errors) == 1 and "sent 5.000 s too late" in errors[0]


def test_late_change_of_motion_is_reported_once_and_doubles_the_lead_time(monkeypatch):
    sim = Followed(monkeypatch).begun(0.6)
    lead = sim.executor.motion.rolling.lead_time
    sim.executor.set_override(0.4)
    sim.play(0.3)
    sim.executor.pause()
    sim.play(0.8)
    sim.executor.resume()
    sim.play(0.5)
    sim.executor.set_override(1.0)
    sim.play(0.3)
    assert not sim.reported and sim.executor.motion.rolling.lead_time == lead
    assert sim.link.diagnostics()["controller.late_changes"] == 0
    sim.late = 300_000_000  # of which `lead` is not enough
    sim.executor.set_override(0.2)
    sim.play(0.6)
    (text,) = sim.reported
    assert "/jtc received a change of the motion 0." in text and "lead is 0.2 s now" in text
    assert sim.executor.motion.rolling.lead_time == 2.0 * lead and sim.link.diagnostics()["controller.late_changes"] == 1
    sim.late = 0
    sim.executor.set_override(1.0)
    sim.play()
    assert len(sim.reported) == 1 and "ended at its goal" in sim.events[-1] and np.abs(sim.at_last() - POINTS[-1]).max() < 1e-9


@pytest.mark.parametrize("source", ["joint_states", "controller_state"])
def test_controller_taken_over_by_another_client_is_detected_and_gets_no_more_changes(monkeypatch, source):
    sim = Followed(monkeypatch, source, **WATCHED)
    sim.executor.set_override(0.5)
    sim.begun(0.9)
    q, qd, qdd = sim.controller.state
    now, sent = 1e-9 * sim.now, sim.sent
    away = TrajectoryPoints(now + np.array([0.0, 0.4]), np.stack((q, START)), *(np.stack((x, 0.0 * x)) for x in (qd, qdd)))
    sim.controller.set_trajectory(away, now)
    sim.play(2.0)
    assert sim.health.trajectories.dropped["controller_strays"] == 1 and sim.executor.phase is Phase.IDLE
    assert sim.sent == sent + 1 and np.abs(sim.position - START).max() < 1e-6  # the halt, where the other had it


def test_tracking_error_from_the_controller_state_slows_and_stops_the_motion(monkeypatch):
    sim = Followed(monkeypatch, "controller_state", **WATCHED).begun(0.5)
    motion = sim.executor.motion
    assert motion.monitor.speed_share == 1.0 and motion.monitor.status.error < 0.01
    sim.off[2] = 0.15
    sim.play(0.3)
    assert motion.monitor.speed_share < 1.0 and motion.monitor.status.joint == ROBOT.joint_names[2]
    assert "is slowed" in sim.events[-1]
    sim.off[2] = 0.4
    sim.play()
    assert motion.stop_reason == "path_tolerance" and "stopped at" in sim.events[-1]
    sim.link.clear()
    assert np.isnan(sim._measurement(ROBOT.joint_names).q).all()


def test_trajectories_wait_until_the_controller_listens_on_its_topic(monkeypatch):
    sim = Followed(monkeypatch)
    sim.link._parameters.values, sim.link._state_at = {}, 1e-9 * sim.now
    assert sim.link.is_settled and sim.link.diagnostics()["controller.state"] == "ok"
    sim.listeners = 0
    assert not sim.link.is_settled and sim.link.diagnostics()["controller.state"] == "no subscriber on /jtc/joint_trajectory"
    sim.now += 6_000_000_000
    assert sim.link.is_settled  # the timeout has passed


def test_controller_state_is_read_from_messages_of_both_distributions():
    def point(*positions, effort=()):
        return JointTrajectoryPoint(positions=positions, effort=effort)

    header, nothing = JointTrajectory().header, point()
    new = SimpleNamespace(header=header, joint_names=["a"], reference=point(1.0), feedback=point(0.9, effort=[3.0]),
                          error=point(0.1), output=point(effort=[4.0]), speed_scaling_factor=0.5)
    state = controller_state_from_message(new)
    assert state.position[0] == 0.9 and state.effort[0] == 3.0 and state.factor == 0.5
    new.feedback = nothing
    state = controller_state_from_message(new)
    assert state.position[0] == pytest.approx(0.9) and state.effort[0] == 4.0
    old = SimpleNamespace(header=header, joint_names=["a"], desired=point(1.0), actual=point(0.8), error=nothing)
    state = controller_state_from_message(old)
    assert state.reference[0] == 1.0 and state.position[0] == 0.8 and state.factor == 1.0


def test_controller_state_source_requires_a_controller_name_and_control_msgs(monkeypatch):
    with pytest.raises(InputError, match=r"set controller\.name"):
        check_monitor_source({"controller.name": ""})
    monkeypatch.setattr(controller, "JointTrajectoryControllerState", None)
    with pytest.raises(InputError, match="needs control_msgs"):
        check_monitor_source({"controller.name": "/jtc"})
