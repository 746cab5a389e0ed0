"""Passive elastic moments of the leg: range limits, coupling by biarticular muscles, and share in the joint torques."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.gait import skeleton
from rnea_ros.gait.skeleton import LOWER_BODY, Human
from rnea_ros.gait.walk import StepConditions, WalkingStep
from rnea_ros.gait.walker import Walker

HIP, KNEE, ANKLE = range(3)


def at(hip=0.0, knee=0.0, ankle=0.0):
    return np.array(skeleton.leg_moments(*np.radians((hip, knee, ankle))))


@pytest.mark.parametrize("joint, low, high", [(HIP, -30.0, 110.0), (KNEE, -5.0, 130.0), (ANKLE, -50.0, 30.0)])
def test_passive_moments_resist_at_the_range_limits(joint, low, high):
    """The moments are tens of N m near the ends of the range and small in the middle."""
    angles = np.zeros((3, 400))
    angles[joint] = np.linspace(low, high, 400)
    found = at(*angles)[joint]
    assert (np.diff(found) < 0.0).all()
    assert found[0] > 0.0 > found[-1] and max(found[0], -found[-1]) > 10.0
    rest = angles[joint][np.abs(found).argmin()]
    assert low + 10.0 < rest < high - 10.0


def test_biarticular_muscles_couple_joints():
    assert at(knee=60.0, ankle=15.0)[ANKLE] > at(ankle=15.0)[ANKLE] + 5.0    # gastrocnemius lets go of the ankle
    assert at(hip=60.0, knee=10.0)[KNEE] > at(knee=10.0)[KNEE] + 5.0         # hamstrings bend the knee
    assert at(hip=20.0, knee=60.0)[HIP] > at(hip=20.0)[HIP] + 3.0            # rectus femoris pulls the thigh up


def test_passive_moments_have_the_measured_magnitudes():
    """Tens of N m at 20 degrees of dorsiflexion, a few when standing, about 20 N m at 20 degrees of hip extension."""
    assert -60.0 < at(ankle=20.0)[ANKLE] < -25.0 and -8.0 < at()[ANKLE] < -3.0
    assert 15.0 < at(hip=-20.0)[HIP] < 35.0


def test_passive_moment_sensitivities_match_finite_differences():
    rng = np.random.default_rng(5)
    q, legs, h = rng.uniform(-0.4, 0.9, (20, 8)), [[6, 2, 3], [1, 5, 0]], 1e-3
    tau, slope = skeleton.passive_moments(q, legs)
    assert not tau[:, [4, 7]].any() and not slope[:, [4, 7]].any() and not slope[:, :, [4, 7]].any()
    np.testing.assert_allclose(tau[:, legs[1]].T, skeleton.leg_moments(*q[:, legs[1]].T), rtol=1e-14)
    for k in range(8):
        values = [skeleton.passive_moments(q + shift * h * np.eye(8)[k], legs)[0] for shift in (-2, -1, 1, 2)]
        numeric = (values[0] - 8.0 * values[1] + 8.0 * values[2] - values[3]) / (12.0 * h)
        np.testing.assert_allclose(slope[:, :, k], numeric, atol=1e-7 * np.abs(slope).max())


def test_muscle_torque_excludes_passive_moments():
    walker = Walker(Human(frozen=LOWER_BODY), backend="python")
    motion = np.zeros((3, 1, walker.n))
    motion[0, 0, walker.joint_names.index("up")] = 0.9
    motion[0, 0, walker.joint_names.index("right_ankle_dorsiflexion")] = 0.3
    plain, elastic = (StepConditions(walker, WalkingStep(elastic=asked)).torques()[1] for asked in (False, True))
    borne = (plain.value(*motion) - elastic.value(*motion))[0] * np.nan_to_num(walker.robot.limits.effort)
    for side, ankle in (("right", 0.3), ("left", 0.0)):
        legs = [walker.joint_names.index(f"{side}_{joint}") for joint in skeleton.PASSIVE_JOINTS]
        np.testing.assert_allclose(borne[legs], skeleton.leg_moments(0.0, 0.0, ankle), rtol=1e-9)
        borne[legs] = 0.0
    assert not np.abs(borne).max() > 1e-9
