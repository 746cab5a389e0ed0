"""Start position of a motion from joint states, the last reference and whole turns; inverse of a time law."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rnea_ros.errors import Rejected
from rnea_ros.execution.executed_motion import InverseTimeLaw
from rnea_ros.execution.joint_states import JointStateBuffer, StartState, continuous_joints
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.overspeed_motion import LIMITS

NAN = math.nan
NAMES = ("a", "b", "c")
REST = np.full(3, NAN)
UNKNOWN = np.full(3, NAN)


def test_positions_of_several_senders_are_merged_and_outdated_ones_are_nan():
    buffer = JointStateBuffer()
    buffer.update(["a", "x"], [1.0, 2.0], 10.0)
    buffer.update(["b", "a"], [3.0, NAN], 11.0)
    np.testing.assert_array_equal(buffer.positions(NAMES, 9.0), [1.0, 3.0, NAN])
    np.testing.assert_array_equal(buffer.positions(NAMES, 10.5), [NAN, 3.0, NAN])
    with pytest.raises(Rejected, match="1 positions for 2 names"):
        buffer.update(["a", "b"], [1.0], 12.0)
    assert buffer.age(NAMES, 11.5).tolist() == [1.5, 0.5, 0.0]
    buffer.assumed_positions = {"a": 7.0, "c": 8.0}
    np.testing.assert_array_equal(buffer.positions(NAMES, 10.5), [NAN, 3.0, 8.0])  # c was never named
    buffer.clear()
    np.testing.assert_array_equal(buffer.positions(NAMES, 0.0), [NAN, NAN, 8.0])


def test_number_of_remembered_foreign_joints_is_bounded():
    buffer = JointStateBuffer()
    strangers = [f"x{k}" for k in range(300_000)]
    buffer.update(["b", *strangers], np.zeros(300_001), 1.0)
    buffer.set_joints(NAMES)
    buffer.update([*strangers[::-1], "c"], np.ones(300_001), 2.0)
    np.testing.assert_array_equal(buffer.positions(NAMES, 0.0), [NAN, 0.0, 1.0])
    assert len(buffer) < 1100


RAMP = np.arange(0.0, 1.0, 1e-3)[:, None] * np.array([1.0, -2.0, 0.0])  # references at 1 kHz


@pytest.mark.parametrize(("behind", "later", "age", "trusted"), [
    (0.0, 0.0, 0.0, True),
    (0.15, 0.0, 0.0, True),  # on its way
    (0.15, 0.3, 0.4, True),  # the same, received late
    (0.3, 0.0, 0.0, False),  # stopped by itself before the end
    (0.15, 0.1, 0.0, False),  # or just then: it should have come nearer
    (0.004, 5.0, 0.0, True),  # as near as its controller holds it
    (0.6, 0.2, 0.5, False),
    (0.3, 5.0, 6.5, True),  # data before the buffer is not used
])
def test_joint_states_replace_the_last_reference_unless_the_robot_follows_it(behind, later, age, trusted):
    measured = RAMP[-1 - round(1e3 * behind)]
    start = StartState(lambda names: measured, lambda names: np.full(3, age))
    for k, q in enumerate(RAMP):
        start.add_reference(NAMES, q, 10**12 + k * 10**6)
    found = start.positions(NAMES, 10**12 + round((0.999 + later) * 1e9), 0.01, np.zeros(3, dtype=bool))
    assert found.tolist() == (RAMP[-1] if trusted else measured).tolist()


def test_start_positions_include_whole_turns_of_continuous_joints():
    measured = np.array([3.0 - 4.0 * math.pi, NAN, 0.5 + 2.0 * math.pi])
    start = StartState(lambda names: measured, lambda names: np.zeros(3))
    turns = np.array([True, True, False])
    np.testing.assert_array_equal(start.positions(NAMES, 0, 0.01, turns), measured)
    start.add_reference(NAMES, np.array([3.005, 1.0, 0.5 + 2.0 * math.pi]), 0)  # reached
    np.testing.assert_allclose(start.positions(NAMES, 10**9, 0.01, turns), [3.005, 1.0, measured[2]])
    start.add_reference(NAMES, np.array([3.005, 1.0, 0.5]), 10**9)  # not reached: the last joint is not continuous
    np.testing.assert_allclose(start.positions(NAMES, 2 * 10**9, 0.01, turns), [3.0, 1.0, measured[2]])


def test_only_continuous_joints_without_position_limits_are_wrapped():
    limits = replace(LIMITS, lower=np.array([NAN, -1.0, NAN, NAN]), upper=np.array([NAN, 1.0, 2.0, NAN]))
    types = ["continuous", "continuous", "continuous", "revolute"]
    assert continuous_joints(types, limits).tolist() == [True, False, False, False]


def test_inverse_time_law_inverts_the_law():
    law = plan_from_waypoints([[0.0], [1.0], [1.0], [3.0]], [0.0, 1.0, 1.5, 4.0]).law
    schedule = InverseTimeLaw(law)
    for s in (*np.linspace(0.0, 3.0, 301), 1.7, 0.2, 2.9):
        t, speed = schedule.at(s)
        assert abs(law.at(t)[0] - s) < 1e-9
        assert math.isnan(speed) or speed == pytest.approx(law.at(float(law.time_at([s])[0]))[1], rel=1e-3, abs=1e-4)
    assert math.isnan(schedule.at(0.0)[1]) and math.isnan(schedule.at(3.0)[1])
