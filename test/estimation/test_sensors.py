"""Sensor properties estimated from positions and stamps: resolution, repeated readings, noise, and reading times."""

import numpy as np
import pytest

from rnea_ros.estimation.position_sensor import PositionNoise, ReadingFilter, find_resolution
from rnea_ros.estimation.reading_times import SampleClock
from support.motions import TURN, encoded, s_curves, sines

# --- resolution ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [12, 15, 17, 20])
@pytest.mark.parametrize("rate", [125, 500, 1000])
def test_encoder_resolution_is_estimated(bits, rate):
    rng = np.random.default_rng(bits)
    t = np.arange(64) / rate + 1.0
    found = find_resolution(encoded(rng, sines(rng, t, 8)[0], bits))
    assert (found > 0.0).sum() >= 7
    np.testing.assert_allclose(found[found > 0.0], TURN / 2.0**bits, rtol=1e-3)


def test_encoder_resolution_is_estimated_in_single_precision():
    rng = np.random.default_rng(0)
    q = encoded(rng, sines(rng, np.arange(64) / 500 + 1.0, 4)[0]).astype(np.float32).astype(float)
    np.testing.assert_allclose(find_resolution(q), TURN / 2**17, rtol=0.02)


def test_positions_without_quantization_have_no_resolution():
    rng = np.random.default_rng(1)
    exact = sines(rng, np.arange(64) / 500 + 1.0, 4)[0]
    for q in (exact, exact + rng.normal(0.0, 1e-5, exact.shape), np.zeros((64, 4))):
        assert not find_resolution(q).any()


# --- readings --------------------------------------------------------------------------------------------------------


def taken(readings, t, q):
    return [when for stamp, positions in zip(t, q) if (when := readings.reading_time(stamp, positions)) is not None]


def test_robot_read_at_125_hz_and_published_at_1_khz_is_detected():
    rng = np.random.default_rng(2)
    t = np.arange(3000) * 0.001
    fine = encoded(rng, sines(rng, t, 6)[0])
    readings = ReadingFilter()
    whens = taken(readings, t, fine[np.arange(3000) // 8 * 8])
    assert readings.period == pytest.approx(0.008, rel=0.01)
    later = np.array(whens)[np.array(whens) > 0.9999]
    np.testing.assert_allclose(later, np.arange(1.0, 3.0, 0.008)[:len(later)], atol=1e-9)
    rest = taken(readings, 3.0 + t[:400], np.repeat(fine[2992:2993], 400, axis=0))  # readings continue at rest
    assert len(rest) == pytest.approx(50, abs=2) and np.diff(rest).max() < 0.0081


def test_slow_motion_of_a_coarse_encoder_is_not_detected_as_repeated_readings():
    rng = np.random.default_rng(3)
    t = np.arange(4000) * 0.002
    for speed in (0.002, 0.01, 0.05):
        q = encoded(rng, np.column_stack((speed * t, 0.0 * t)), 15)
        readings = ReadingFilter()
        assert len(taken(readings, t, q)) == len(t) and readings.period == 0.0


def test_end_of_repeated_readings_is_detected():
    rng = np.random.default_rng(4)
    t = np.arange(2000) * 0.001
    fine = encoded(rng, sines(rng, t + 1.0, 6)[0])
    readings = ReadingFilter()
    taken(readings, t[:1000], fine[np.arange(1000) // 4 * 4])
    assert readings.period == pytest.approx(0.004, rel=0.01)
    assert len(taken(readings, t[1000:], fine[1000:])) == 1000 and readings.period == 0.0


# --- noise -----------------------------------------------------------------------------------------------------------


def test_noise_and_jitter_are_separated():
    rng = np.random.default_rng(5)
    noise = PositionNoise(np.array([0.0, 0.0, TURN / 2**17]))
    true = np.array([1e-4, 3e-5, 0.0])
    for _ in range(200):
        speed = rng.normal(0.0, 1.0, (16, 3))
        error = true * rng.normal(size=(16, 3)) + 2e-4 * speed * rng.normal(size=(16, 1))
        noise.learn(0.002, speed, error**2, np.full((16, 3), True))
    assert noise.jitter == pytest.approx(2e-4, rel=0.15) and noise.known.all()
    assert noise.variance(np.zeros(3))[0] == pytest.approx(true[0] ** 2, rel=0.6)
    np.testing.assert_allclose(noise.variance(np.ones(3))[2], 2e-4**2, rtol=0.4)


def test_joint_at_rest_does_not_change_its_noise():
    noise = PositionNoise(np.zeros(2))
    noise.learn(0.002, np.ones((16, 2)), np.full((16, 2), 1e-8), np.full((16, 2), True))
    found = noise.variance(np.ones(2))
    for _ in range(1000):
        noise.learn(0.002, np.zeros((16, 2)), np.zeros((16, 2)), np.full((16, 2), False))
    np.testing.assert_allclose(noise.variance(np.ones(2)), found, rtol=1e-6)


# --- stamps ----------------------------------------------------------------------------------------------------------


def stamps(rng, count, jitter, lost):
    numbers = np.flatnonzero(rng.random(count) >= lost)
    return numbers, (0.002 * np.arange(count) + rng.uniform(-jitter, jitter, count))[numbers]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("jitter", "tolerance"), [(0.0, 1e-9), (1e-4, 1e-4), (5e-4, 5e-4)])
def test_samples_are_numbered_with_even_times(seed, jitter, tolerance):
    numbers, said = stamps(np.random.default_rng(seed), 4000, jitter, 0.01)
    clock = SampleClock(said[:32])
    counted, times = 0, []
    for stamp in said[1:]:
        counted += clock.advance(stamp, None)
        times.append(clock.time)
    assert counted == numbers[-1] - numbers[0] and clock.period == pytest.approx(0.002, rel=1e-3)
    assert clock.jitter == pytest.approx(jitter / 3**0.5, rel=0.25, abs=1e-9)
    off = np.array(times) - 0.002 * numbers[1:]
    assert np.ptp(off[len(off) // 4:]) < tolerance  # where the stamps spread over twice the jitter


def test_clock_follows_a_gradual_change_of_its_rate():
    """Steps change from 10 ms to 10.1 ms within 0.3 s: deviations outlie, but grow from sample to sample."""
    steps = np.concatenate((np.full(3000, 0.01), np.linspace(0.01, 0.0101, 30), np.full(600, 0.0101)))
    said = np.cumsum(steps)
    clock, off = SampleClock(said[:32]), []
    for stamp in said[1:]:
        clock.advance(stamp, None)
        off.append(abs(stamp - clock.time))
    assert max(off) < 0.002 and max(off[-100:]) < 1e-5
    assert clock.period == pytest.approx(0.0101, rel=1e-4) and not clock.broken


def test_consistent_deviations_of_stamps_become_certain():
    """Positions show block by block that deviations are errors of the stamps; then they are found at the stamps."""
    rng = np.random.default_rng(7)
    numbers, said = stamps(rng, 4000, 3e-4, 0.0)
    clock, speed, rows, stds = SampleClock(said[:32]), np.array([1.0, -0.5]), [], []
    for number, stamp in zip(numbers[1:], said[1:]):
        clock.advance(stamp, None)
        q = speed * (0.002 * number if number < 2000 else stamp) + rng.normal(0.0, 1e-5, 2)
        rows.append((clock.deviation, stamp - clock.time, speed, q - speed * clock.time))
        if len(rows) == 16:
            clock.learn(*map(np.array, zip(*rows)), np.full((16, 2), 1e-10))
            rows.clear()
            stds.append(clock.assignment_std)
    first, before, after = stds[0], max(stds[40:120]), max(stds[125:130])
    assert before < 0.4 * first and after > first


@pytest.mark.parametrize(("true", "share"), [(False, 1.0), (True, 0.0)])
def test_positions_decide_whether_stamp_deviations_are_errors(true, share):
    rng = np.random.default_rng(6)
    numbers, said = stamps(rng, 2000, 3e-4, 0.0)
    clock, speed = SampleClock(said[:32]), np.array([1.0, -0.5])
    rows = []
    for number, stamp in zip(numbers[1:], said[1:]):
        clock.advance(stamp, None)
        q = speed * (stamp if true else 0.002 * number) + rng.normal(0.0, 1e-5, 2)
        rows.append((clock.deviation, stamp - clock.time, speed, q - speed * clock.time))
        if len(rows) == 16:
            clock.learn(*map(np.array, zip(*rows)), np.full((16, 2), 1e-10))
            rows.clear()
    assert clock.share == pytest.approx(share, abs=0.05)


def test_stamps_with_large_jitter_are_used_unchanged():
    said = np.sort(np.random.default_rng(7).uniform(0.0, 8.0, 4000))
    clock = SampleClock(said[:64])
    for stamp in said[1:]:
        assert clock.advance(stamp, None) >= 1
    assert clock.time == pytest.approx(said[-1], abs=0.01) and clock.deviation == 0.0


def test_stamps_of_bursts_have_even_times():
    k = np.arange(3000)
    said = (k // 10 * 10 + 9) * 0.002 + k % 10 * 2e-5
    clock = SampleClock(said[:64])
    times = [clock.time for stamp in said[1:] if clock.advance(stamp, None) == 1]
    assert len(times) == 2999 and clock.period == pytest.approx(0.002, rel=1e-3)
    steps = np.diff(times[1000:])
    assert steps.min() > 0.0018 and steps.max() < 0.0022


def test_spacing_inside_a_burst_is_not_taken_as_the_period():
    assert not SampleClock(np.arange(8) * 2e-5).known and SampleClock(np.arange(8) * 2e-3).known


def test_positions_decide_the_sample_number_for_ambiguous_stamps():
    for answer in (1, 2):
        clock = SampleClock(np.arange(32) * 0.002)
        for k in range(1, 400):
            clock.advance(0.002 * k + 3e-4 * (-1) ** k, None)
        even = clock.time
        right = even + answer * clock.period

        def misfit(time, right=right):
            return 0.0 if abs(time - right) < 0.5e-3 else 40.0

        assert clock.advance(even + 1.5 * clock.period, misfit) == answer


def test_s_curves_of_the_test_support_have_consistent_bounded_derivatives():
    t = np.arange(0.0, 6.0, 0.001)
    motion = s_curves(np.random.default_rng(8), t, 3, 2.0, 10.0, 100.0)
    for order, most in enumerate((2.0, 10.0, 100.0)):
        change = np.diff(motion[order], axis=0) / 0.001
        mean = 0.5 * (motion[order + 1, 1:] + motion[order + 1, :-1])
        assert np.quantile(np.abs(change - mean), 0.98) < 1e-2 * most and np.abs(motion[order + 1]).max() <= most + 1e-6
