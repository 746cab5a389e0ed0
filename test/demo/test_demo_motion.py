"""Demo motions: published values, consistent derivatives, inside the limits."""

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rnea_ros.demo import robot_demo as demo_motion
from rnea_ros.errors import InputError

GOLDEN = Path(__file__).parents[1] / "golden" / "golden.json"


def limits(lower, upper, velocity):
    unknown = np.full(len(lower), np.nan)
    return SimpleNamespace(lower=np.array(lower), upper=np.array(upper), velocity=np.array(velocity), acceleration=unknown,
                           jerk=unknown)


def robot(name="arm", types=("revolute",) * 6):
    n = len(types)
    return SimpleNamespace(name=name, n=n, joint_types=types, limits=limits([-2.0] * n, [2.0] * n, [1.0] * n))


SWEEP = demo_motion.sweep_motion(
    ("revolute", "continuous", "prismatic", "revolute"),
    limits([-2.0, np.nan, 0.0, 0.1], [2.0, np.nan, 0.3, 0.2], [2.0, 3.0, 0.05, np.nan]),
)


@pytest.mark.parametrize("motion", [demo_motion.stanford_motion(), SWEEP], ids=["stanford", "sweep"])
def test_derivatives_of_demo_motions_match_differences(motion):
    h = 1e-4
    for t in np.linspace(0.01, 3.9 * motion.duration, 53):
        if min(t % motion.duration, -t % motion.duration) < 2 * h:
            continue  # the quintic's jerk jumps at the ends
        before, now, after = motion(t - h), motion(t), motion(t + h)
        for order in range(3):
            difference = (after[order] - before[order]) / (2 * h)
            scale = max(1.0, np.abs(now[order + 1]).max())
            assert np.abs(difference - now[order + 1]).max() < 1e-6 * scale


def test_stanford_motion_equals_published_values():
    golden = json.loads(GOLDEN.read_text())["stanford_arm"]["states"]
    for state in golden:
        motion = demo_motion.stanford_motion()(state["t"])
        for name in ("q", "qd", "qdd", "qddd"):
            np.testing.assert_allclose(getattr(motion, name), state[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("motion", [demo_motion.stanford_motion(), SWEEP], ids=["stanford", "sweep"])
def test_demo_motion_is_periodic_and_continuous(motion):
    np.testing.assert_array_equal(motion(0.0).q, motion.start)
    np.testing.assert_allclose(motion(motion.duration).q, motion.end, atol=1e-12)
    np.testing.assert_allclose(motion(2 * motion.duration).q, motion.start, atol=1e-12)
    np.testing.assert_allclose(motion(7.25 * motion.duration).q, motion(5.25 * motion.duration).q, atol=1e-12)
    np.testing.assert_allclose(motion(-0.25 * motion.duration).q, motion(0.25 * motion.duration).q, atol=1e-12)
    for order in ("qd", "qdd"):
        assert np.abs(getattr(motion(motion.duration), order)).max() < 1e-12


def test_jerk_of_the_sweep_is_zero_at_its_ends():
    assert np.abs(SWEEP(SWEEP.duration - 1e-9).qddd).max() < 1e-6
    assert np.abs(SWEEP(SWEEP.duration).qddd).max() < 1e-6


def test_sweep_stays_inside_the_limits():
    samples = [SWEEP(t) for t in np.linspace(0, 2 * SWEEP.duration, 2001)]
    q, qd = np.array([s.q for s in samples]), np.array([s.qd for s in samples])
    assert (q[:, 0] >= -2).all() and (q[:, 0] <= 2).all()
    assert (q[:, 2] >= 0).all() and (q[:, 2] <= 0.3).all()
    assert (q[:, 3] >= 0.1).all() and (q[:, 3] <= 0.2).all()
    assert np.abs(q[:, 1]).max() <= 0.5
    assert (np.abs(qd).max(axis=0)[:3] <= [1.0, 1.5, 0.025 + 1e-12]).all()


def test_motion_is_chosen_by_robot_and_options():
    arm, stanford = robot(), robot("stanford")
    assert demo_motion.choose_motion(arm).shape is demo_motion.SEPTIC
    assert demo_motion.choose_motion(stanford).duration == 2.0
    assert demo_motion.choose_motion(stanford).shape is demo_motion.QUINTIC
    assert demo_motion.choose_motion(stanford, "sweep").shape is demo_motion.SEPTIC
    assert demo_motion.choose_motion(arm, duration=5.0).duration == 5.0


def test_errors_list_the_known_motions():
    with pytest.raises(InputError, match="not for 'arm'"):
        demo_motion.choose_motion(robot(), "stanford")
    with pytest.raises(InputError, match="auto, stanford and sweep"):
        demo_motion.choose_motion(robot(), "dance")
    with pytest.raises(InputError, match="above zero"):
        demo_motion.sweep_motion(("revolute",), limits([0.0], [1.0], [1.0]), duration=-1.0)
