"""Derivatives of recordings: measured positions are smoothed, planned ones are reproduced."""

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.estimation.differentiation import estimate_derivatives
from rnea_ros.estimation.smoothing import Smoothing, estimate_recording, prepare
from rnea_ros.estimation.smoothing import smooth as smooth_positions
from support.motions import TURN, at, encoded, jumping, minimum_jerk, sines, smooth


def of(motion, found):
    """Return the RMS errors of qd, qdd, qddd away from the ends, relative to their RMS."""
    return [float(np.sqrt(np.mean((estimate - exact)[found.centred] ** 2) / np.mean(exact[found.centred] ** 2)))
            for estimate, exact in zip(found[:3], motion[1:])]


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("kind", "rate", "most"), [(smooth, 500, 0.04), (jumping, 500, 0.3), (smooth, 125, 0.1)])
def test_measured_positions_are_smoothed(seed, kind, rate, most):
    rng = np.random.default_rng(seed)
    t = 3.0 + np.arange(0.0, 5.0, 1.0 / rate)
    motion = kind(rng, t - 3.0, 6)
    found = estimate_recording(t, encoded(rng, motion[0]))
    assert isinstance(found.how, Smoothing) and found.how.rate == pytest.approx(rate, rel=1e-3)
    assert found.how.noise == pytest.approx(TURN / 2**17 / 12**0.5, rel=0.3)
    speed, acceleration, jerk = of(motion, found)
    assert speed < 0.002 and acceleration < 0.03 and jerk < most
    assert found.centred.sum() == pytest.approx(len(t) - 0.1 * rate, abs=4)
    within = np.abs(found.qddd - motion[3]) < 2.0 * found.deviation[3]
    assert within.mean() > 0.9
    deviations, errors = (np.sqrt(np.mean(x**2)) for x in (found.deviation[3], found.qddd - motion[3]))
    assert deviations < 6.0 * errors


@pytest.mark.parametrize(("kind", "seed"), [(smooth, 21), (smooth, 22), (jumping, 23), (minimum_jerk, 24)])
def test_two_deviations_cover_the_nominal_share_of_errors(kind, seed):
    """Deviations of smooth motion were up to twice the errors, and covered all of them."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, 4.0, 0.004)
    motion = kind(rng, t, 12)
    found = estimate_recording(t, encoded(rng, motion[0], 15))
    derivatives = zip((found.qd, found.qdd, found.qddd), motion[1:], found.deviation[1:])
    within = [np.mean((np.abs(estimate - exact) < 2.0 * std)[found.centred]) for estimate, exact, std in derivatives]
    assert min(within) > 0.87 and 0.91 < np.mean(within) < 0.99


def test_common_time_errors_are_in_the_deviations():
    """Stamps off by up to 1 ms: even times are off by 0.03 ms together, and so are their rates."""
    rng, t = np.random.default_rng(25), np.arange(0.0, 6.0, 0.002)
    motion = smooth(rng, t, 20)
    stamps = t + rng.uniform(-1e-3, 1e-3, len(t))
    order = np.argsort(stamps)
    found = estimate_recording(stamps[order], encoded(rng, motion[0])[order])
    exact = at(motion, t, stamps[order])
    within = [np.mean((np.abs(estimate - true) < 2.0 * std)[found.centred])
              for estimate, true, std in zip((found.qd, found.qdd), exact[1:], found.deviation[1:])]
    assert min(within) > 0.85


@pytest.mark.parametrize(("t", "q", "joint_types", "text"), [
    (["a"] * 8, np.zeros((8, 1)), (), "no numbers"), (np.arange(8), np.zeros(8), (), r"q \(8,\)"),
    (np.arange(8), np.zeros((7, 1)), (), r"q \(7, 1\)"), (np.arange(8), np.zeros((8, 2)), ("revolute",), "1 joint types"),
    (np.arange(8), np.full((8, 1), np.nan), (), "not finite")])
def test_invalid_positions_are_rejected(t, q, joint_types, text):
    with pytest.raises(InputError, match=text):
        smooth_positions(t, q, joint_types)


def test_smoothed_positions_have_deviations():
    t = np.arange(0.0, 1.0, 0.004)
    found = smooth_positions(t, encoded(np.random.default_rng(26), np.sin(t)[:, None]), ["revolute"])
    assert found.deviation.shape == (4, 250, 1) and np.abs(found.qd[:, 0] - np.cos(t))[found.centred].max() < 0.01


def test_unwrapped_joints_are_noted():
    t = np.arange(0.0, 4.0, 0.01)
    q = (encoded(np.random.default_rng(27), np.stack([2.0 + np.sin(t), 2.5 + np.sin(t)], axis=1)) + np.pi) % TURN - np.pi
    found = prepare(t, q, np.ones_like(q) * t[:, None], joint_types=("revolute", "revolute"), joint_names=("a", "b"))
    assert [note for note in found.notes if "whole turns" in note and "b" in note]


def summed(steps):
    """Return what the steps before each sample add up to."""
    return np.concatenate((np.zeros((1, 1)), np.cumsum(steps, axis=0)[:-1]))


def moves_with_stops(rng, rate, noise, moves=4, stop=0.8):
    """Return t, exact q, qd, qdd (samples, 1) of moves with jerk in steps, and positions of encoders that repeat at rest."""
    jerk = []
    for move in range(moves):
        ramp, hold, cruise = (round(seconds * rate) for seconds in (0.04, 0.1, rng.uniform(0.0, 0.2)))
        rise = np.concatenate((np.full(ramp, 1.0), np.zeros(hold), np.full(ramp, -1.0)))
        jerk += [np.zeros(round(stop * rate)), rng.uniform(100.0, 300.0) * (-1) ** move * np.concatenate(
            (rise, np.zeros(cruise), -rise))]
    steps, h = np.concatenate((*jerk, np.zeros(round(stop * rate))))[:, None], 1.0 / rate
    qdd = summed(steps * h)
    qd = summed(qdd * h + steps * h**2 / 2.0)
    q = summed(qd * h + qdd * h**2 / 2.0 + steps * h**3 / 6.0)
    shown = q + noise * rng.normal(size=q.shape) * (np.abs(qd) > 1e-9)
    step = TURN / 2**18
    return np.arange(len(q)) / rate, (q, qd, qdd), np.round(shown / step) * step


@pytest.mark.parametrize("noise", [0.0, 6e-5])
def test_robot_at_rest_most_of_the_time_is_smoothed(noise):
    """Deviations cover the errors during moves, and stay far below the motion at the start of each move."""
    t, exact, shown = moves_with_stops(np.random.default_rng(20), 500, noise)
    found = estimate_recording(t, shown)
    assert isinstance(found.how, Smoothing) and np.isfinite(found.deviation).all()
    moving = np.abs(exact[1][:, 0]) > 1e-9
    assert moving.mean() < 0.4
    assert np.sqrt(np.mean((found.qdd - exact[2])[moving] ** 2)) < 0.06 * np.sqrt(np.mean(exact[2][moving] ** 2))
    for estimate, truth, deviation in zip((found.q, found.qd, found.qdd), exact, found.deviation):
        within = np.abs(estimate - truth) < 2.0 * deviation
        assert within[moving].mean() > 0.9 and within.mean() > 0.92
    assert found.deviation[1].max() < 0.05 * np.abs(exact[1]).max()
    assert found.deviation[2].max() < 0.3 * np.abs(exact[2]).max()


@pytest.mark.parametrize("rate", [250, 500])
def test_deviations_cover_errors_of_positions_that_are_only_quantized(rate):
    """Times before and after a stop are included, where the smoother spreads the move over the standstill."""
    within, at_rest = [], []
    for seed in range(500, 506):
        t, exact, shown = moves_with_stops(np.random.default_rng(seed), rate, 0.0, moves=6, stop=0.5)
        found = estimate_recording(t, shown)
        rest = np.abs(exact[1][:, 0]) < 1e-9
        within.append([np.mean((np.abs(estimate - truth) < 2.0 * deviation)[found.centred])
                       for estimate, truth, deviation in zip((found.q, found.qd, found.qdd), exact, found.deviation)])
        at_rest.append(found.deviation[1][rest & found.centred].max())
    assert np.mean(within, axis=0).min() > 0.95 and max(at_rest) < 0.05


def test_smoothing_is_more_accurate_than_polynomials():
    rng = np.random.default_rng(4)
    t = np.arange(0.0, 4.0, 0.002)
    motion = smooth(rng, t, 6)
    q = encoded(rng, motion[0])
    fitted = estimate_derivatives(t, q)
    ours, theirs = of(motion, estimate_recording(t, q)), of(motion, fitted)
    assert all(a < b for a, b in zip(ours, theirs)) and ours[2] < 0.5 * theirs[2]


def test_recording_that_starts_and_ends_in_motion_is_accurate_at_its_ends():
    """The accuracy at the ends is that of a filter without lag."""
    rng = np.random.default_rng(5)
    t = np.arange(0.0, 3.0, 0.002)
    motion = sines(rng, np.arange(0.0, 4.0, 0.002), 6)[:, 400:1900]
    found = estimate_recording(t, encoded(rng, motion[0]))
    error = np.abs(found.qdd - motion[2]).max(axis=1) / motion[2].std()
    assert error[:20].max() < 0.3 and error[-20:].max() < 0.3 and error[100:-100].max() < 0.05


def test_gaps_end_stretches_and_short_stretches_use_polynomials():
    rng = np.random.default_rng(6)
    t = np.arange(0.0, 6.0, 0.002)
    motion = sines(rng, t, 3)
    kept = (t < 2.0) | ((t > 2.5) & (t < 2.55)) | (t > 3.0)
    kept &= rng.random(len(t)) > 0.01
    motion, t = motion[:, kept], t[kept]
    found = estimate_recording(t, encoded(rng, motion[0]))
    assert np.isfinite(found.qddd).all() and of(motion, found)[2] < 0.3
    short = (t > 2.4) & (t < 2.6)
    assert np.isnan(found.deviation[:, short]).all() and np.isfinite(found.deviation[:, ~short]).all()


def test_repeated_readings_are_smoothed():
    rng = np.random.default_rng(7)
    t = np.arange(0.0, 5.0, 0.001)
    motion = sines(rng, t, 6)
    found = estimate_recording(t, encoded(rng, motion[0])[np.arange(len(t)) // 8 * 8])
    assert found.how.rate == pytest.approx(125.0, rel=1e-3) and of(motion, found)[2] < 0.15


def test_wrapping_joints_are_smoothed():
    rng = np.random.default_rng(8)
    t = np.arange(0.0, 3.0, 0.002)
    q = encoded(rng, np.column_stack((5.0 * t + np.sin(t), -4.0 * t)))
    wrapped = (q + np.pi) % TURN - np.pi
    one, two = (estimate_recording(t, positions, joint_types=("continuous", "continuous")) for positions in (q, wrapped))
    for a, b in zip(one[:3], two[:3]):
        np.testing.assert_allclose(a, b, atol=1e-3)


def test_given_derivatives_are_kept_and_plans_are_reproduced():
    t = np.arange(0.0, 2.0, 0.01)
    exact = [np.sin(t + k * np.pi / 2.0)[:, None] for k in range(4)]
    for known in (1, 2, 3):
        found = estimate_recording(t, *exact[:known])
        assert found.deviation is None and "polynomials over windows of 0.15 s" in found.how.method
        for k in range(1, known):
            assert np.array_equal(found[k - 1], exact[k])
        np.testing.assert_allclose(found.qddd[found.centred], exact[3][found.centred], atol=1e-5)
    rough = encoded(np.random.default_rng(9), exact[0])
    given = np.random.default_rng(10).normal(size=exact[0].shape)
    assert np.array_equal(estimate_recording(t, rough, given).qd, given)  # of a driver: kept, but not used
    np.testing.assert_array_equal(estimate_recording(t, rough, given).qdd, estimate_recording(t, rough).qdd)
    assert "polynomials" in estimate_recording(t, rough, window=0.2).how.method


@pytest.mark.parametrize(("jitter", "most"), [(1e-4, 0.05), (5e-4, 0.05), (1e-3, 0.5)])
def test_jittering_stamps_are_replaced_by_even_times(jitter, most):
    rng = np.random.default_rng(12)
    t = np.arange(0.0, 4.0, 0.002)
    stamps = t + rng.uniform(-jitter, jitter, len(t))
    motion = sines(rng, t, 6)
    kept = rng.random(len(t)) > 0.01
    found = estimate_recording(stamps[kept], encoded(rng, motion[0])[kept])
    assert isinstance(found.how, Smoothing)
    assert of(at(motion, t, stamps[kept]), found)[2] < most


def test_few_or_uneven_samples_are_fitted_by_polynomials():
    rng = np.random.default_rng(11)
    few, uneven = np.arange(40) * 0.01, np.cumsum(rng.integers(1, 10, 400)) * 0.001 + rng.uniform(0.0, 0.0005, 400)
    for t in (few, uneven):
        assert "polynomials" in estimate_recording(t, encoded(rng, np.sin(t)[:, None])).how.method


@pytest.mark.parametrize("window", [None, 0.4])
def test_publishing_stamps_are_replaced_by_reading_times(window):
    """A reading every 34 ms, a message with the newest one every 33.3 ms."""
    rng, read, t = np.random.default_rng(13), np.arange(0.0, 21.0, 0.034), np.arange(0.1, 20.0, 1.0 / 30.0)
    motion, newest = sines(rng, read, 3, fastest=1.5), np.searchsorted(read, t, side="right") - 1
    found = estimate_recording(t, encoded(rng, motion[0])[newest], window=window)
    assert "even times, 34 ms apart" in found.how.method
    twice = np.flatnonzero(np.diff(newest) == 0) + 1
    assert len(twice) > 5 and not found.centred[twice].any()
    assert np.array_equal(found.qddd[twice], found.qddd[twice - 1])
    speed, acceleration, _ = of(motion[:, newest], found)
    assert speed < 0.01 and acceleration < 0.1


def test_stamps_of_plans_and_of_robots_with_rests_are_used():
    """Cases: a plan with uneven points, and a robot with rests, published twice as often as it is read."""
    rng = np.random.default_rng(14)
    plan, t = np.cumsum(rng.uniform(0.8, 1.2, 300)) * 0.01, np.arange(0.0, 20.0, 0.004)
    resting = np.where((t > 5.0) & (t < 8.0), 5.0, np.where(t >= 8.0, t - 3.0, t))
    for stamps, q in ((plan, np.sin(plan)[:, None]), (t, encoded(rng, np.sin(resting)[:, None])[np.arange(len(t)) // 2 * 2])):
        assert "even times" not in estimate_recording(stamps, q).how.method


def test_rests_between_moves_do_not_degrade_the_accelerations():
    """Regression: moves of 0.8 s at 125 Hz with 3.2 s of rest between them. The slowest filter fits the rest best and smeared
    the start of each move; the acceleration error was up to 2.1 %.
    """
    s = np.arange(0.0, 1.0, 0.01)
    shape, rest = 35 * s**4 - 84 * s**5 + 70 * s**6 - 20 * s**7, np.zeros(400)
    bend = (420 * s**2 - 1680 * s**3 + 2100 * s**4 - 840 * s**5) / 0.8**2
    q, qdd, at = [rest], [rest], 0.0
    for distance in (1.1, -0.8, 0.6, -1.4, 0.9):
        q += [at + distance * shape, np.full(400, at + distance)]
        qdd += [distance * bend, rest]
        at += distance
    q, qdd = np.concatenate(q), np.concatenate(qdd)
    step = TURN / 2**17
    found = estimate_recording(np.arange(len(q)) / 125.0, (np.round(q / step) * step)[:, None])
    moving = qdd != 0.0
    assert np.sqrt(np.mean((found.qdd[moving, 0] - qdd[moving])**2) / np.mean(qdd[moving]**2)) < 0.006
