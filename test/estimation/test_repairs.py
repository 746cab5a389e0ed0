"""Repair of recordings: wrong stamps, and revolute joints wrapped by their driver."""

import numpy as np
import pytest

from rnea_ros.errors import InputError
from rnea_ros.estimation.position_sensor import consistent_stamps
from rnea_ros.estimation.smoothing import estimate_recording, prepare
from support.motions import TURN, encoded

T = np.arange(300) * 0.01


@pytest.mark.parametrize(("wrong", "shift"), [
    ([150], 1000.0), ([150], 0.7), ([0, 1, 2], 3000.0), ([299], 1e6), ([299], np.nan), ([0], -1.7e9), ([20, 100, 101], -5.0),
], ids=["far ahead", "a little ahead", "first three ahead", "last ahead", "not a number", "first at zero", "behind"])
def test_only_samples_with_wrong_stamps_are_discarded(wrong, shift):
    stamps = T.copy()
    stamps[wrong] += shift
    assert np.flatnonzero(~consistent_stamps(stamps)).tolist() == wrong


def test_samples_after_a_gap_are_kept():
    stamps = np.where(T < 1.5, T, T + 500.0)
    assert consistent_stamps(stamps).all()


def test_recording_with_one_wrong_stamp_is_repaired():
    stamps, q = T.copy(), np.sin(T)[:, None]
    stamps[100] += 1000.0
    found = prepare(stamps, q, np.cos(T)[:, None], -q, -q)
    assert len(found.t) == len(T) - 1
    assert found.notes == ("1 of 300 samples with stamps that do not increase are left out",)
    with pytest.raises(InputError, match="has 1 samples that differ"):
        prepare(T[::-1], q, q)


@pytest.mark.parametrize("low", [-np.pi, 0.0])
def test_wrapped_revolute_joint_is_unwrapped(low):
    """A jump of a whole turn in one sample would give torques hundreds of times too large."""
    rng = np.random.default_rng(0)
    q = encoded(rng, np.column_stack((2.5 + 2.0 * np.sin(0.9 * T), np.sin(3.0 * T))))
    wrapped = (q - low) % TURN + low
    exact = estimate_recording(T, q, joint_types=("revolute", "revolute"))
    found = estimate_recording(T, wrapped, joint_types=("revolute", "revolute"))
    assert exact.wrapped == () and found.wrapped == ((0,) if low else (1,))
    np.testing.assert_allclose(found.qdd, exact.qdd, atol=1e-6)
    np.testing.assert_allclose(np.exp(1j * found.q), np.exp(1j * exact.q), atol=1e-9)
    notes = prepare(T, wrapped, q, joint_types=("revolute", "revolute"), joint_names=("a", "b")).notes
    assert len(notes) == 1 and notes[0].startswith(f"positions of {'a' if low else 'b'} jump by whole turns")


def test_whole_turns_between_waypoints_are_motion():
    """Waypoints are one second apart; a revolute joint turns almost once between them."""
    t, q = np.arange(8.0), np.array([0.0, 2.0, 8.0, 2.0, 0.0, 6.0, 6.1, 0.0])[:, None]
    assert estimate_recording(t, q, joint_types=("revolute",)).wrapped == ()
