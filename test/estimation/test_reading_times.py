"""Reading times of positions in recordings: lost samples are counted, and times are even."""

import numpy as np
import pytest

from rnea_ros.estimation.position_sensor import find_new_readings
from rnea_ros.estimation.reading_times import reading_times
from support.motions import encoded, jumping, s_curves, sines

PERIOD = 0.002


def recorded(rng, kind, seconds, off, lost=0.01):
    """Return numbers, stamps and positions of samples with stamp errors, in the order of the stamps."""
    numbers = np.flatnonzero(rng.random(round(seconds / PERIOD)) >= lost)
    q = encoded(rng, kind(rng, PERIOD * np.arange(round(seconds / PERIOD)), 3)[0])[numbers]
    stamps = PERIOD * numbers + off(len(numbers))
    order = np.argsort(stamps)
    return numbers[order], stamps[order], q[order]


@pytest.mark.parametrize("kind", [sines, jumping])
@pytest.mark.parametrize(("jitter", "bell", "blur"), [
    (0.0, False, 1e-9), (2e-4, False, 3e-5), (1e-3, False, 1.5e-4), (5e-4, True, 1.5e-4)])
def test_samples_are_numbered_for_any_stamps(kind, jitter, bell, blur):
    """Samples with disordered stamps are left out."""
    rng = np.random.default_rng(31)
    draw = rng.standard_normal if bell else lambda count: rng.uniform(-1.0, 1.0, count)
    numbers, stamps, q = recorded(rng, kind, 4.0, lambda count: jitter * draw(count))
    found = reading_times(stamps, q)
    (stretch,), kept = found.stretches, numbers[found.new]
    assert found.new.sum() > 0.98 * len(q) and stretch.period == pytest.approx(PERIOD, rel=1e-3)
    np.testing.assert_array_equal(np.diff(stretch.numbers)[100:], np.diff(kept)[100:])  # joints are at rest before
    off = (found.times - PERIOD * kept)[200:-200]
    assert np.abs(off).max() < blur and np.abs(np.diff(off)).max() < 0.1 * blur + 1e-9


def test_part_of_a_recording_gives_the_same_times():
    rng = np.random.default_rng(32)
    _, stamps, q = recorded(rng, sines, 6.0, lambda k: rng.uniform(-1e-3, 1e-3, k))
    whole, begin = reading_times(stamps, q), 900
    part = reading_times(stamps[begin:] - 5.0, q[begin:])
    there = stamps[part.new.nonzero()[0] + begin] > stamps[begin] + 1.0
    ours = (part.times + 5.0)[there]
    np.testing.assert_allclose(ours, whole.times[-len(ours):], rtol=0.0, atol=1e-6)


def test_late_messages_are_assigned_to_their_samples():
    """Two percent of the messages are several periods late, with the following ones directly after them."""
    rng = np.random.default_rng(33)
    t = PERIOD * np.arange(3000)
    stamps = np.maximum.accumulate(t + (rng.random(3000) < 0.02) * rng.uniform(0.0, 4.0 * PERIOD, 3000))
    stamps += 1e-6 * np.arange(3000)
    found = reading_times(stamps, encoded(rng, sines(rng, t, 3)[0]))
    np.testing.assert_array_equal(found.stretches[0].numbers[200:], np.arange(3000)[200:])
    assert np.ptp((found.times - stamps[0] - (1.0 + 1e-6 / PERIOD) * t)[300:-300]) < 5e-4


def test_stamps_are_used_where_positions_agree_with_them():
    """The control loop is sometimes late, with correct stamps."""
    rng = np.random.default_rng(34)
    stamps = PERIOD * np.arange(3000) + rng.uniform(0.0, 3e-4, 3000)
    found = reading_times(stamps, encoded(rng, np.column_stack((np.sin(3.0 * stamps), np.cos(2.0 * stamps)))))
    np.testing.assert_allclose(found.times, stamps, rtol=0.0, atol=3e-5)
    assert not found.vague and not found.words


def test_bursts_have_even_reading_times():
    rng, k = np.random.default_rng(35), np.arange(3000)
    q = encoded(rng, sines(rng, PERIOD * k, 3)[0])
    found = reading_times((k // 10 * 10 + 9) * PERIOD + k % 10 * 2e-5, q)
    steps = np.diff(found.times)
    assert found.vague and steps.min() > 0.0019 and steps.max() < 0.0021


@pytest.mark.parametrize("every", [2, 8])
def test_repeated_readings_are_detected(every):
    """Repetition is detected at rest and in motion."""
    rng, t = np.random.default_rng(36), 0.001 * np.arange(4000)
    resting = np.minimum(t, 2.0) + np.maximum(t - 3.0, 0.0)
    fine = encoded(rng, np.column_stack((np.sin(4.0 * resting), np.cos(3.0 * resting))))
    new = find_new_readings(t, fine[np.arange(4000) // every * every])
    assert np.diff(t[new]).max() < 0.0011 * every and new.sum() == pytest.approx(4000 / every, abs=4)
    assert np.array_equal(np.flatnonzero(new)[:100], every * np.arange(100))


def test_slow_motion_is_not_detected_as_repeated_readings():
    rng, t = np.random.default_rng(37), PERIOD * np.arange(4000)
    slow = encoded(rng, np.column_stack((0.01 * t, 0.0 * t)), 15)
    stopping = encoded(rng, s_curves(rng, t, 2, velocity=0.5)[0])
    assert find_new_readings(t, slow).all() and find_new_readings(t, stopping).all()
