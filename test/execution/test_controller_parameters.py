"""Checks of a controller's parameters before a motion, and of its state during one."""

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
def test_a_controller_as_it_comes_plays_trajectories(reported):
    assert not check_controller(reported, JOINTS, HERE)
    assert not check_controller(reported, JOINTS, HERE | {"controller.interface": "action"})


def test_points_with_a_stop_end_at_rest():
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
def test_unplayable_trajectories_are_rejected_with_the_parameter_to_set(reported, here, refuses, words):
    (finding,) = check_controller(FINE | reported, JOINTS, HERE | here)
    assert finding.refuses is refuses and words in finding.text


class Played:
    """Monitor of a motion with 1 rad/s, sent every 5 ms and reported every 0.1 s."""

    def __init__(self):
        self.monitor, self.now = SentReferenceMonitor(), 10 * NS_PER_S
        self.monitor.restart(JOINTS)

    def play(self, seconds, reference):
        """Controller whose reported reference is reference(t)."""
        for _ in range(round(seconds / 0.005)):
            self.now += 5_000_000
            t = (self.now - 10 * NS_PER_S) / NS_PER_S
            self.monitor.add_reference(np.array([t, 0.0]), self.now)
            if self.now % 100_000_000 == 0:
                self.monitor.on_controller_state(("b", "c", "a"), (0.0, 9.0, reference(t)), self.now, 0.01)
        return self.monitor.problem


def test_who_is_late_follows_and_who_stays_or_goes_elsewhere_does_not():
    for late in (-0.02, 0.0, MAX_LAG_S):
        assert not Played().play(3.0, lambda t, late=late: max(t - late, 0.0))
    for elsewhere in (lambda t: 0.0, lambda t: 2.0 * t, lambda t: t - 2.0 * MAX_LAG_S):
        assert "its reference of a is" in Played().play(3.0, elsewhere)
    it = Played()
    assert not it.play(TIMEOUT_S - 0.1, lambda t: -1.0) and not it.play(0.2, lambda t: t)  # back in time
    assert it.play(MAX_LAG_S + TIMEOUT_S + 0.2, lambda t: 0.0)


def test_it_has_arrived_when_it_has_reported_so_since():
    it = Played()
    it.play(1.0, lambda t: t)
    assert it.monitor.has_reached_last(0) and not it.monitor.has_reached_last(it.now + 1) and len(it.monitor._sent) == 200
    it.play(1.0, lambda t: t - 0.1)
    assert not it.monitor.has_reached_last(0)
    it.play(3.0, lambda t: t)
    assert len(it.monitor._sent) <= HISTORY_S / 0.005 + 1
    it.monitor.restart(JOINTS)
    it.monitor.on_controller_state(JOINTS, (9.0, 9.0), it.now, 0.01)
    assert it.monitor.last is None and not it.monitor.problem and not it.monitor.has_reached_last(0)
