"""Long recordings estimated in blocks: results equal those of the whole recording across block boundaries."""

import math

import numpy as np
import pytest

from rnea_ros.estimation import smoothing
from rnea_ros.estimation.smoothing import Blocks, Smoothing, estimate_block, estimate_recording
from support.motions import encoded, sines


def test_blocks_last_a_minute_or_contain_enough_samples():
    assert Blocks.of(3.0, 62.9, 10_000) == (3.0, 60.0, 1)
    assert Blocks.of(3.0, 63.1, 10_000).number == 2
    assert Blocks.of(0.0, 999.0, 1000).number == 1  # one a second
    minute = Blocks.of(5.0, 200.0, 100_000)
    assert [minute.begin(k) for k in range(-1, 6)] == [-math.inf, -math.inf, 65.0, 125.0, 185.0, math.inf, math.inf]
    assert minute.window(1) == (60.0, 130.0) and minute.window(0) == (-math.inf, 70.0)


@pytest.mark.parametrize("seed", range(2))
def test_estimates_are_equal_across_block_boundaries(seed):
    """Estimates agree to a tenth of the standard deviations everywhere: the filters have forgotten their start."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, 64.0, 0.008)
    q = encoded(rng, sines(rng, t, 2)[0])
    found, whole = estimate_recording(t, q), estimate_block(t, {0: q})
    assert Blocks.of(t[0], t[-1], len(t)).number == 2
    for ours, theirs, deviation in zip(found[:3], whole[:3], whole.deviation[1:]):
        assert (ours != theirs).any() and (np.abs(ours - theirs) < 0.1 * deviation).all()
    assert isinstance(found.how, Smoothing) and found.how.noise == pytest.approx(whole.how.noise, rel=0.1)


def test_isolated_samples_have_no_estimate(monkeypatch):
    monkeypatch.setattr(smoothing, "BLOCK_S", 4.0)
    monkeypatch.setattr(smoothing, "MIN_BLOCK_SAMPLES", 50)
    rng, t = np.random.default_rng(5), np.arange(0.0, 6.0, 0.002)
    motion = sines(rng, t, 2)
    t, q = np.append(t, 60.0), np.vstack((encoded(rng, motion[0]), [[0.1, 0.2]]))
    found = estimate_recording(t, q)
    assert np.isnan(found.qddd[-1]).all() and not found.centred[-1] and np.isfinite(found.qddd[:-1]).all()
    assert np.sqrt(np.mean((found.qd[:-1] - motion[1]) ** 2)) < 0.02 * motion[1].std()
