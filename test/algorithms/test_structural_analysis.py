"""Structural analysis of differential-algebraic equations, on systems with known index."""

import itertools

import numpy as np
import pytest

from rnea_ros.algorithms.elimination import ABSENT, assignment, offsets
from support.robots import seeds


@pytest.mark.parametrize("seed", seeds(5))
def test_assignment_maximizes_the_total_weight(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 6), rng.integers(6, 8)
    weights = rng.integers(-3, 4, (m, n))
    best = max(sum(weights[i, j] for i, j in enumerate(columns)) for columns in itertools.permutations(range(n), int(m)))
    assert weights[assignment(weights)].sum() == best
    rows, columns = assignment(weights.T)
    assert weights[columns, rows].sum() == best
    assert sorted(columns) == list(range(m))


def test_pendulum_in_cartesian_coordinates_has_the_offsets_of_pryce():
    """x'' + lambda x = 0, y'' + lambda y = g, x^2 + y^2 = L^2: Pryce 2001, example 1."""
    sigma = np.array([[2, ABSENT, 0], [ABSENT, 2, 0], [0, 0, ABSENT]])
    c, d = offsets(sigma)
    assert (c.tolist(), d.tolist()) == ([0, 0, 2], [2, 2, 0])


def test_double_pendulum_of_pryce_has_the_published_offsets():
    """u'' + mu u = 0, v'' + mu v = g, u^2 + v^2 = (L + c lambda)^2: Pryce 2001, section 2."""
    no = ABSENT
    sigma = np.array([[2, no, 0, no, no, no], [no, 2, 0, no, no, no], [0, 0, no, no, no, no],
                      [no, no, no, 2, no, 0], [no, no, no, no, 2, 0], [no, no, 0, 0, 0, no]])
    c, d = offsets(sigma)
    assert c.tolist() == [2, 2, 4, 0, 0, 2]
    assert d.tolist() == [4, 4, 2, 2, 2, 0]


def test_redundant_constraint_is_differentiated_as_often_as_its_unknowns_allow():
    sigma = np.array([[2, 0], [0, ABSENT], [0, ABSENT]])
    c, _ = offsets(sigma)
    assert c.tolist() == [0, 2, 2]
