"""Paths and time laws against scipy's splines and their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.trajectory import time_law as laws
from rnea_ros.trajectory.path import hermite_spline, path_through, solve_block_tridiagonal


@pytest.fixture
def points():
    return np.random.default_rng(0).uniform(-2.0, 2.0, (7, 3))


def jumps(path, order: int) -> float:
    """Return the largest jump of a derivative at the inner points."""
    inner = path.breaks[1:-1]
    h = np.diff(path.breaks)[:-1]
    size = path.coefficients.shape[1]
    factors = np.array([np.prod(np.arange(k, k - order, -1.0)) for k in range(size)])
    left = np.array([sum(factors[k] * path.coefficients[i, k] * h[i] ** (k - order) for k in range(order, size))
                     for i in range(len(inner))])
    right = factors[order] * path.coefficients[1:, order]
    return float(np.abs(left - right).max())


def test_path_through_positions_equals_the_quintic_spline_of_scipy(points):
    make = pytest.importorskip("scipy.interpolate").make_interp_spline
    path = path_through(points)
    s = np.concatenate(([0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))))
    none = np.zeros(3)
    reference = make(s, points, k=5, bc_type=([(2, none), (3, none)],) * 2)
    x = np.linspace(0.0, path.length, 501)
    for order, tolerance in enumerate((1e-13, 1e-12, 1e-12, 1e-11)):
        np.testing.assert_allclose(path(x)[order], reference(x, order), atol=tolerance)
    assert max(jumps(path, order) for order in range(5)) < 1e-10  # C4
    np.testing.assert_allclose(path.at(1.234), path([1.234])[:, 0], atol=1e-14)
    assert np.array_equal(path.at(path.length + 1.0), path.at(path.length))
    assert np.array_equal(path([-1.0, path.length + 1.0]), path([0.0, path.length]))
    elsewhere = path_through(points, s=3.0 * path.breaks)
    np.testing.assert_allclose(elsewhere(3.0 * x)[0], path(x)[0], atol=1e-12)
    assert elsewhere.length == 3.0 * path.length


@pytest.mark.parametrize("distance", [1e-1, 1e-2, 1e-3, 1e-4, 1e-5])
def test_path_through_close_points_equals_the_quintic_spline_of_scipy(points, distance):
    make = pytest.importorskip("scipy.interpolate").make_interp_spline
    points[3] = points[2] + distance * np.array([0.3, -0.5, 0.8])
    path, none = path_through(points + 5.0), np.zeros(3)
    reference = make(path.breaks, points + 5.0, k=5, bc_type=([(2, none), (3, none)],) * 2)
    x = np.linspace(0.0, path.length, 501)
    for order in range(4):  # rounding of the points has more effect the closer they are
        np.testing.assert_allclose(path(x)[order], reference(x, order), atol=1e-13 / distance**1.8 * 10.0**order)


def test_path_interpolates_given_tangents_and_curvatures(points):
    plain = path_through(points)
    _, tangents, curvatures, _ = plain(plain.breaks)
    unit = tangents / np.linalg.norm(tangents, axis=1, keepdims=True)
    with_directions = path_through(points, 3.0 * tangents)
    np.testing.assert_allclose(with_directions(plain.breaks)[0], points, atol=1e-13)
    np.testing.assert_allclose(with_directions(plain.breaks)[1], unit, atol=1e-12)
    assert max(jumps(with_directions, order) for order in range(4)) < 1e-10 < jumps(with_directions, 4)  # C3
    with_both = path_through(points, tangents, curvatures)
    np.testing.assert_allclose(with_both(plain.breaks)[2], curvatures, atol=1e-10)
    assert max(jumps(with_both, order) for order in range(5)) < 1e-8  # C4
    free = path_through(points, np.where(np.arange(7)[:, None] == 3, 0.0, tangents))
    np.testing.assert_allclose(free([plain.breaks[3]])[1], plain([plain.breaks[3]])[1], atol=1e-12)  # a zero row is left open
    free = path_through(points, np.where(np.arange(7)[:, None] == 6, 0.0, tangents))
    np.testing.assert_allclose(free([free.length])[1], plain([plain.length])[1], atol=1e-12)


def test_path_of_two_points_is_a_line_and_a_stop_allows_a_corner():
    line = path_through([[0.0, 0.0], [3.0, 4.0]])
    assert line.length == 5.0
    np.testing.assert_allclose(line([2.5])[:, 0], [[1.5, 2.0], [0.6, 0.8], [0.0, 0.0], [0.0, 0.0]], atol=1e-14)
    corner = path_through([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], stops=[1])
    assert corner.stops == (1.0,)
    np.testing.assert_allclose(corner([0.5, 1.5])[1], [[1.0, 0.0], [0.0, 1.0]], atol=1e-14)
    (_, end), (start, _) = corner.legs()
    np.testing.assert_allclose(corner([end, start])[1], [[1.0, 0.0], [0.0, 1.0]], atol=1e-12)  # each leg has its tangent
    assert end == pytest.approx(1.0, abs=1e-12)


def test_order_of_stops_does_not_matter(points):
    there, here = path_through(points, stops=[4, 2, 4]), path_through(points, stops=[2, 4])
    assert there.stops == here.stops and np.array_equal(there.coefficients, here.coefficients)


@pytest.mark.parametrize(("points", "message"), [
    ([[0.0, 1.0]], "two rows or more"), ([1.0, 2.0], "two rows or more"), ([[], []], "two rows or more"),
    ([[0.0], [np.nan]], r"points\[1, 0\] is nan"), ([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0]], "points 0 and 1 are the same"),
    ([["a"], ["b"]], "not an array of numbers"), ([[0.0], [np.inf]], r"points\[1, 0\] is inf"),
])
def test_invalid_path_points_are_rejected(points, message):
    with pytest.raises(InputError, match=message):
        path_through(points)


def test_invalid_path_tangents_are_rejected(points):
    with pytest.raises(InputError, match="tangents have shape"):
        path_through(points, points[:3])


def test_hermite_spline_at_rest_equals_scipy():
    make = pytest.importorskip("scipy.interpolate").make_interp_spline
    t, s = np.array([0.0, 0.5, 2.0, 3.0]), np.array([0.0, 0.3, 0.7, 1.0])
    coefficients = hermite_spline(t, s[:, None, None], 2, rest=True)[..., 0]
    reference = make(t, s, k=5, bc_type=([(1, 0.0), (2, 0.0)],) * 2)
    x = np.linspace(0.0, 1.5, 50)
    np.testing.assert_allclose(np.polyval(coefficients[1, ::-1], x), reference(0.5 + x), atol=1e-13)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 21])
def test_block_tridiagonal_equations_equal_dense_ones(count):
    rng = np.random.default_rng(count)
    before, here, behind = rng.normal(size=(3, count, 3, 3))
    right = rng.normal(size=(count, 3, 2))
    here += 9.0 * np.eye(3)
    whole = np.zeros((count + 2, 3, count + 2, 3))
    for k in range(count):
        whole[k + 1, :, k], whole[k + 1, :, k + 1], whole[k + 1, :, k + 2] = before[k], here[k], behind[k]
    matrix = whole[1:-1, :, 1:-1].reshape(3 * count, 3 * count)  # unknowns only
    np.testing.assert_allclose(solve_block_tridiagonal(before, here, behind, right).reshape(-1, 2),
                               np.linalg.solve(matrix, right.reshape(-1, 2)), atol=1e-12)


# ---------------------------------------------------------------------- time laws


@pytest.fixture
def law():
    rng = np.random.default_rng(1)
    t = np.array([0.0, 0.4, 1.1, 2.0, 2.3])
    s = np.array([0.0, 0.2, 1.0, 2.5, 2.6])
    speeds = np.append(rng.uniform(0.2, 1.0, 4), 0.0) * [0, 1, 1, 1, 1]
    return laws.hermite_law(t, s, speeds, np.append(rng.normal(size=4), 0.0))


def test_time_law_derivatives_match_differences(law):
    t = np.linspace(0.01, 2.29, 97)
    h = 1e-5
    for order in range(3):
        slope = (law(t + h)[order] - law(t - h)[order]) / (2.0 * h)
        away = np.abs(t[:, None] - law.breaks).min(axis=1) > h
        np.testing.assert_allclose(slope[away], law(t)[order + 1][away], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([law.at(x) for x in t], law(t).T, atol=1e-14)
    assert law.at(5.0) == (2.6, 0.0, 0.0, 0.0) and not law([5.0])[1:].any()
    assert np.array_equal(law([-1.0]), law([0.0]))


def test_segments_concatenation_and_slowing_of_time_laws(law):
    t = np.linspace(0.3, 1.7, 57)
    part = law.segment(0.3, 1.7)
    np.testing.assert_allclose(part(t - 0.3)[:, :-1], law(t)[:, :-1], atol=1e-12)
    whole = law.segment(0.0, 0.7).then(law.segment(0.7, 2.3))
    np.testing.assert_allclose(whole(t), law(t), atol=1e-12)
    slow = law.slower(0.5)
    np.testing.assert_allclose(slow(2.0 * t) * [[1.0], [2.0], [4.0], [8.0]], law(t), atol=1e-12)
    inside, first = law.sample_pieces()
    assert inside.shape[1] > 2.3 / laws.SAMPLE_SPACING_S and len(first) == 4
    np.testing.assert_allclose(inside[0][first], law.coefficients[:, 0])


def test_segments_of_time_laws_have_no_empty_pieces_and_keep_corners():
    t = np.array([0.0, 0.5, 1.0, 1.5, 2.0])
    law = laws.hermite_law(t, t**2, 2.0 * t, np.full(5, 2.0), corners=[0.0, 1.0, 2.0])
    part = law.segment(0.5, 1.5)
    assert part.breaks.tolist() == [0.0, 0.5, 1.0] and part.corners.tolist() == [0.0, 0.5, 1.0]
    assert law.segment(0.2, 0.8).corners.tolist() == [0.0, pytest.approx(0.6)]
    assert law.slower(0.5).corners.tolist() == [0.0, 2.0, 4.0]
    assert law.then(law).corners.tolist() == [0.0, 1.0, 2.0, 3.0, 4.0]


def test_sampling_density_of_a_time_law_is_bounded_per_piece_and_in_total():
    short = laws.rest_to_rest(0.0, 1.0, 1e-5).then(laws.rest_to_rest(1.0, 2.0, 0.1))
    _, first = short.sample_pieces()
    assert first.tolist() == [0, laws.MIN_STEPS_PER_PIECE[1] + 1]
    assert len(laws.rest_to_rest(0.0, 1.0, 600.0).sample_pieces()[0][0]) == laws.MAX_SAMPLES + 1


@pytest.mark.parametrize(("order", "jumps"), [(2, (False, True)), (3, (False, False))])
def test_rest_to_rest_law_is_continuous_up_to_its_order(order, jumps):
    law = laws.rest_to_rest(1.0, 3.0, 2.0, order)
    _, (s, *rates), _ = law.sample(0.1)
    assert (s[0], s[-1]) == (1.0, pytest.approx(3.0))
    for rate, jump in zip(rates, jumps):
        assert (np.abs(rate[[0, -1]]) > 1e-9).tolist() == [jump, jump]


def test_time_at_inverts_the_time_law():
    law = laws.rest_to_rest(1.0, 3.0, 2.0).then(laws.rest_law(3.0, 0.5), laws.rest_to_rest(3.0, 4.0, 1.0))
    t = np.array([0.3, 1.0, 1.7, 2.9, 3.2])
    np.testing.assert_allclose(law.time_at(law(t)[0]), t, atol=1e-9)
    assert law.time_at([3.0])[0] == pytest.approx(2.5, abs=1e-4)  # after the rest
    assert law.duration == 3.5 and law.end == 4.0
    assert law.then(laws.rest_law(4.0, 0.5)).time_at([4.0])[0] == pytest.approx(4.0)  # after the final rest


def test_non_monotone_pieces_of_a_time_law_are_detected():
    """The roots of the acceleration are used; a law that touches rest up to rounding error is monotone."""
    rng, seen = np.random.default_rng(0), set()
    for k in range(300):
        speed = np.polynomial.Polynomial(rng.normal(size=5) + [2.0, 0.0, 0.0, 0.0, 0.0])
        if k % 2:
            touch = rng.uniform(0.0, 1.0)
            speed = np.polynomial.Polynomial([touch**2, -2.0 * touch, 1.0]) + rng.choice([0.0, -1e-9, 1e-9])
        turns = np.clip(speed.deriv().roots().real, 0.0, 1.0)
        least = speed(np.append(turns, [0.0, 1.0])).min()
        h = rng.uniform(0.01, 2.0)  # of the second piece; the first moves on
        coefficients = np.zeros((2, 6))
        coefficients[0, 1], coefficients[1, 1:1 + len(speed.coef)] = 1.0, speed.coef / (np.arange(len(speed.coef)) + 1.0)
        coefficients[1, 1:] /= h ** np.arange(5)
        back = laws.TimeLaw([0.0, 1.0, 1.0 + h], coefficients).non_monotone_pieces().tolist()
        assert back == ([1] if least < -1e-11 else [])
        seen.add((k % 2, least < -1e-11))
    assert len(seen) == 4
