"""Checks of a controller's parameters before a motion, and of its reported reference during one."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.execution.controller import check_controller
from rnea_ros.execution.joint_states import HISTORY_S, MAX_LAG_S
from rnea_ros.execution.tracking_monitor import SentReferenceMonitor

JOINTS = ("a", "b")
NS_PER_S = 1_000_000_000
TIMEOUT_S = SentReferenceMonitor.TIMEOUT_S
HERE = {"output": "trajectory", "points_stop_time": 0.0, "reference_effort": False, "controller.interface": "topic"}
FINE = {"joints": ["b", "a"], "command_interfaces": ["position"], "interpolation_method": "splines",
        "allow_partial_joints_goal": False, "allow_nonzero_velocity_at_trajectory_end": False,
        "speed_scaling.initial_scaling_factor": 1.0, "constraints.goal_time": 0.0, "constraints.a.goal": 0.0}


@pytest.mark.parametrize("reported", [{}, FINE, FINE | {"allow_trajectory_replacement": False},
                                  FINE | {"joints": ["b", "a", "gripper"], "allow_partial_joints_goal": True}])
def test_controller_with_default_parameters_is_accepted(reported):
    assert not check_controller(reported, JOINTS, HERE)
    assert not check_controller(reported, JOINTS, HERE | {"controller.interface": "action"})


def test_point_output_with_a_stop_time_is_accepted():
    stops = {"output": "points", "points_stop_time": 0.3}
    assert not check_controller(FINE | {"interpolate_from_desired_state": True}, JOINTS, HERE | stops)


@pytest.mark.parametrize(("reported", "here", "refuses", "words"), [
    ({"joints": ["a"]}, {}, True, "has no b"),
    ({"joints": ["a", "b", "c"]}, {}, True, "allow_partial_joints_goal"),
    ({"interpolation_method": "none"}, {}, True, "set splines"),
    ({"allow_trajectory_replacement": True}, {}, True, "allow_trajectory_replacement: false"),
    ({"speed_scaling.initial_scaling_factor": 0.5}, {}, True, "is 0.5"),
    ({"interpolate_from_desired_state": True}, {"output": "points"}, True, "allow_nonzero_velocity_at_trajectory_end"),
    ({"allow_nonzero_velocity_at_trajectory_end": True}, {"output": "points"}, False, "interpolate_from_desired_state"),
    ({"allow_nonzero_velocity_at_trajectory_end": True, "open_loop_control": True},
     {"output": "points", "reference_effort": True}, True, "reference_effort: false"),
    ({"allow_nonzero_velocity_at_trajectory_end": True, "open_loop_control": True},
     {"output": "points", "controller.interface": "action"}, True, "output trajectory or horizon"),
    ({"constraints.a.goal": 0.01}, {"controller.interface": "action"}, False, "constraints.goal_time"),
])
def test_unsuitable_controller_parameters_are_reported_with_the_remedy(reported, here, refuses, words):
    (finding,) = check_controller(FINE | reported, JOINTS, HERE | here)
    assert finding.refuses is refuses and words in finding.text


class SentReferenceHarness:
    """Sent-reference monitor of a motion at 1 rad/s, sent every 5 ms and reported every 0.1 s."""

    def __init__(self):
        self.monitor, self.now = SentReferenceMonitor(), 10 * NS_PER_S
        self.monitor.restart(JOINTS)

    def play(self, seconds, reference):
        """Advance a controller whose reported reference is reference(t); return the problem found."""
        for _ in range(round(seconds / 0.005)):
            self.now += 5_000_000
            t = (self.now - 10 * NS_PER_S) / NS_PER_S
            self.monitor.add_reference(np.array([t, 0.0]), self.now)
            if self.now % 100_000_000 == 0:
                self.monitor.on_controller_state(("b", "c", "a"), (0.0, 9.0, reference(t)), self.now, 0.01)
        return self.monitor.problem


def test_delayed_reference_is_accepted_and_a_deviating_one_is_reported():
    for late in (-0.02, 0.0, MAX_LAG_S):
        assert not SentReferenceHarness().play(3.0, lambda t, late=late: max(t - late, 0.0))
    for elsewhere in (lambda t: 0.0, lambda t: 2.0 * t, lambda t: t - 2.0 * MAX_LAG_S):
        assert "its reference of a is" in SentReferenceHarness().play(3.0, elsewhere)
    harness = SentReferenceHarness()
    assert not harness.play(TIMEOUT_S - 0.1, lambda t: -1.0) and not harness.play(0.2, lambda t: t)  # returns in time
    assert harness.play(MAX_LAG_S + TIMEOUT_S + 0.2, lambda t: 0.0)


def test_arrival_is_confirmed_only_by_a_later_report():
    harness = SentReferenceHarness()
    harness.play(1.0, lambda t: t)
    assert harness.monitor.has_reached_last(0) and not harness.monitor.has_reached_last(harness.now + 1)
    assert len(harness.monitor._sent.entries()) == 200
    harness.play(1.0, lambda t: t - 0.1)
    assert not harness.monitor.has_reached_last(0)
    harness.play(3.0, lambda t: t)
    assert len(harness.monitor._sent.entries()) <= HISTORY_S / 0.005 + 1
    harness.monitor.restart(JOINTS)
    harness.monitor.on_controller_state(JOINTS, (9.0, 9.0), harness.now, 0.01)
    assert harness.monitor.last is None and not harness.monitor.problem and not harness.monitor.has_reached_last(0)
