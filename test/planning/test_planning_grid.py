"""Check grid of a plan: peaks of parabolas are found exactly, and spans with large highest derivative are halved."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.planning.bspline import Curve, evenly_spread, find_peaks, split_spans

BREAKS = np.linspace(0.0, 1.0, 9)


@pytest.mark.parametrize("peak", [0.031, 0.4, 0.46875, 0.73, 0.1285, 0.2465])
def test_one_peak_of_exact_position_and_height_is_found_for_a_parabola(peak):
    """Peaks close to the ends of a span are included."""
    at = evenly_spread(BREAKS, 12)
    bulge = 0.02 - 40.0 * (at.u - peak) ** 2
    excess = np.stack((np.full(len(at.u), -np.inf), bulge, bulge - 0.03), axis=1)
    found = list(find_peaks(at, 3, excess, 1e-6))
    assert [(peak.number, peak.component) for peak in found] == [(3, 1)]
    assert found[0].u == pytest.approx(peak) and found[0].height == pytest.approx(0.02)
    assert not list(find_peaks(at, 3, excess, 0.021))


def test_jumps_at_breaks_and_window_edges_are_not_peaks():
    """Nodes lie on both sides of the break."""
    at = evenly_spread(BREAKS, 12)
    rise = np.where(at.span < 4, 0.1 + at.u, 0.2)[:, None]
    assert not list(find_peaks(at, 0, rise, 1e-6))
    spike = np.where(at.span == 4, np.abs(at.u - 0.5), 0.3 * (at.span > 4))[:, None]
    assert not list(find_peaks(at, 0, spike, 1e-6))
    window = np.where(at.u > 0.55, 0.1 - at.u * 0.01, -np.inf)[:, None]
    assert not list(find_peaks(at, 0, window, 1e-6))


def halved(spikes: dict[int, float]) -> list[int]:
    """Return the halved spans of a cubic spline whose third derivative is 1 except in the given spans."""
    breaks, highest = np.linspace(0.0, 1.0, 16), np.ones(15)
    highest[list(spikes)] = list(spikes.values())
    matrix = np.stack([Curve(3, breaks, unit[:, None], 1.0).highest()[:, 0] for unit in np.eye(18)], axis=1)
    finer = split_spans(Curve(3, breaks, np.linalg.lstsq(matrix, highest, rcond=None)[0][:, None], 1.0))
    new = np.setdiff1d(finer, breaks)
    np.testing.assert_allclose(new, (np.floor(new * 15) + 0.5) / 15)
    return np.floor(new * 15).astype(int).tolist()


def test_spans_are_split_where_the_highest_derivative_spikes():
    assert halved({4: 5.0}) == [4]
    assert halved({4: 5.0, 10: 3.0}) == [4, 10]
    assert halved({4: 5.0, 10: 1.9}) == [4]  # the other is less than 0.3 of it
