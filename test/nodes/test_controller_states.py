"""Reference motion from the state messages of a joint_trajectory_controller, without DDS and control_msgs."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectoryPoint

from rnea_ros.errors import Rejected
from rnea_ros.nodes.dynamics.motion_source import ControllerStates
from support.ros_helpers import stamp

NAMES = ("a", "b", "c")
CURVES = [np.polynomial.Polynomial(c) for c in np.random.default_rng(8).normal(size=(3, 6))]
WAVES = np.array([1.3, 2.1, 3.0])


def quintic(t: float) -> np.ndarray:
    return np.array([[curve.deriv(k)(t) for curve in CURVES] for k in range(4)])


def wave(t: float) -> np.ndarray:
    s, c = np.sin(WAVES * t), np.cos(WAVES * t)
    return np.array([s, WAVES * c, -WAVES**2 * s, -WAVES**3 * c])


def message(when: float, motion: np.ndarray, given: int = 3, field: str = "reference", names=NAMES, **more):
    """Return a message with the first `given` derivatives."""
    q, qd, qdd = (row.tolist() if k < given else [] for k, row in enumerate(motion[:3]))
    point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
    return SimpleNamespace(header=Header(stamp=stamp(when)), joint_names=list(names), **{field: point}, **more)


def state(when: float, q=(5.0, 6.0, 7.0)):
    return SimpleNamespace(stamp=round(when * 1e9), q=np.array(q))


def play(motion, rate: float, seconds: float, **fields) -> tuple[ControllerStates, float]:
    """Return the reader that received a motion, and the time of its end."""
    received = ControllerStates(NAMES)
    for k in range(round(rate * seconds)):
        received.read(message(1000.0 + k / rate, motion(k / rate), **fields))
    return received, k / rate


def check(received: ControllerStates, at: float, truth: np.ndarray, tolerance: float) -> None:
    found = np.array(received.motion(state(1000.0 + at), 0.1, 4))
    np.testing.assert_array_less(np.abs(found - truth).max(axis=1), tolerance * np.maximum(1.0, np.abs(truth).max(axis=1)))


@pytest.mark.parametrize("field", ["reference", "desired"])
@pytest.mark.parametrize("rate", [50.0, 500.0])
def test_reference_with_accelerations_is_reproduced_exactly(rate, field):
    received, end = play(quintic, rate, 0.5, field=field)
    check(received, end, quintic(end), 1e-5)
    check(received, end - 2.0 / rate, quintic(end - 2.0 / rate), 1e-5)
    check(received, end + 1e-3, quintic(end + 1e-3), 5e-3)  # extrapolated by its derivatives


@pytest.mark.parametrize(("given", "more"), [(1, {}), (2, {}), (3, {"speed_scaling_factor": 0.5})])
@pytest.mark.parametrize(("rate", "tolerance"), [(100.0, 0.02), (500.0, 2e-3)])
def test_missing_derivatives_of_the_reference_are_estimated(rate, tolerance, given, more):
    """Published velocities are not the derivatives of the positions if the speed scaling factor is below one."""
    faster = (lambda t: wave(t) * [[1.0], [2.0], [4.0], [8.0]]) if more else wave
    received, end = play(faster, rate, 1.5, given=given, **more)
    check(received, end, wave(end), tolerance)


def test_velocities_are_used_as_received_at_full_speed_and_without_accelerations():
    received, end = play(quintic, 500.0, 0.5, speed_scaling_factor=1.0)
    check(received, end, quintic(end), 1e-5)
    received, end = play(wave, 500.0, 1.0, given=2)
    np.testing.assert_array_equal(received.motion(state(1000.0 + end), 0.1, 4)[1], wave(end)[1])


def test_joints_that_the_controller_does_not_move_are_at_rest_at_their_measured_positions():
    received = ControllerStates(NAMES)
    for k in range(10):
        received.read(message(k / 500.0, quintic(k / 500.0)[:, :2], names=("b", "a")))
    found = np.array(received.motion(state(9 / 500.0), 0.1, 4))
    np.testing.assert_allclose(found[:3, [1, 0]], quintic(9 / 500.0)[:3, :2])
    np.testing.assert_array_equal(found[:, 2], [7.0, 0.0, 0.0, 0.0])


def test_reference_is_rejected_until_two_states_arrive_at_the_start_and_after_a_gap():
    received = ControllerStates(NAMES)
    for begin in (1.0, 3.0):
        received.read(message(begin, quintic(0.0)))
        with pytest.raises(Rejected) as refused:
            received.motion(state(begin), 0.1, 4)
        assert refused.value.reason == "history_too_short"
        received.read(message(begin + 0.002, quintic(0.002)))
        assert np.isfinite(received.motion(state(begin + 0.002), 0.1, 4)).all()
    with pytest.raises(Rejected, match="before the joint state") as refused:
        received.motion(state(3.2), 0.1, 4)
    assert refused.value.reason == "reference_timeout"


@pytest.mark.parametrize(("reason", "names", "motion"), [
    ("unknown_joint", ("x", "y", "z"), quintic(0.0)),
    ("duplicate_joint", ("a", "b", "a"), quintic(0.0)),
    ("wrong_size", NAMES, quintic(0.0)[:, :2]),
    ("position_not_finite", NAMES, np.full((4, 3), math.nan))])
def test_invalid_controller_states_are_rejected_and_the_previous_reference_stays(reason, names, motion):
    received, end = play(quintic, 500.0, 0.1)
    with pytest.raises(Rejected) as refused:
        received.read(message(1000.0 + end + 0.002, motion, names=names))
    assert refused.value.reason == reason
    check(received, end, quintic(end), 1e-5)
