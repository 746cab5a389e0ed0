"""The clock of a law that is being played, its table, and what other limits mean for it: each by itself, on the toy."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scaling_cases import toy

from rnea_ros import InputError
from rnea_ros.scaling.assessment import ROOM, assessed
from rnea_ros.scaling.clock import NODE, SHORTEST, Clock, Table, horizon
from rnea_ros.scaling.plan import Plan
from rnea_ros.scaling.points import planned
from rnea_ros.scaling.profile import PASS, fastest, steady_factor
from rnea_ros.scaling.terms import Constraints, Limits, basis, terms, use

POINTS = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, -0.3], [0.4, -0.6]])
RATES = np.linspace(0.0, 1.0, 21)


def constraints(path, effort=(9.0, 6.0), rate=(80.0, 60.0), velocity=(9.0, 9.0)) -> Constraints:
    unknown = np.full(2, np.nan)
    limits = Limits(np.array(effort), np.array(rate), np.array(velocity), unknown, unknown)
    return Constraints(path, lambda *p: terms(toy, *p), limits)


@pytest.fixture(scope="module")
def plan():
    path = planned(POINTS, np.arange(4.0)).path
    return Plan(path, fastest(constraints(path)))


def steady_use(table: Table, sigma: np.ndarray, k: float) -> np.ndarray:
    """(samples, rows) at a constant rate."""
    weights = basis(np.full(len(sigma), k), np.zeros(len(sigma)), np.zeros(len(sigma)))
    return (weights[:, None] @ table.at(sigma))[:, 0]


def test_a_table_is_the_rows_along_the_law(plan):
    here = constraints(plan.path)
    table = Table(here, plan.law)
    sigma = np.linspace(0.0, plan.law.duration, 997)
    s, v, a, u = plan.law(sigma)
    kept = [k for k, (_, quantity) in enumerate(here.labels) if quantity != "velocity"]
    assert len(kept) == 4
    for k in (0.4, 1.0):
        wanted = use(here(s), v * k, a * k**2, u * k**3)[:, kept]
        np.testing.assert_allclose(steady_use(table, sigma, k), wanted, atol=3e-3)  # nodes are 2 ms apart
    beyond = table.at(np.array([plan.law.duration + 1.0]))
    np.testing.assert_array_equal(beyond, table.at(np.array([plan.law.duration])))
    excess = np.array([1.1, 1.2, 1.3, 1.4, 1.5, 1.6])
    np.testing.assert_allclose(table.widened(excess).at(sigma) * excess[kept], table.at(sigma), rtol=1e-12, atol=1e-15)


def test_how_long_a_transition_takes(plan):
    """0.8 of the longest swing from end to end, within bounds; unknown limits say nothing."""
    assert horizon(constraints(plan.path, (9.0, 6.0), (80.0, 30.0))) == pytest.approx(0.8 * 2.0 * 6.0 / 30.0)
    assert horizon(constraints(plan.path, (9.0, 6.0), (80.0, np.nan))) == pytest.approx(0.8 * 2.0 * 9.0 / 80.0)
    assert horizon(constraints(plan.path, (9.0, 6.0), (np.nan, np.nan))) == SHORTEST < 0.8 * 0.1 > NODE


def test_a_rate_stays_between_nothing_and_all(plan):
    """Whatever the limits leave: a transition that swings out of 0 to 1 is none."""
    wide = Table(constraints(plan.path, (1e9, 1e9), (1e9, 1e9)), plan.law)
    for k, kappa, end, allowed in ((0.9, 5.0, 1.0, False), (0.1, -5.0, 0.0, False),
                                   (0.5, 0.5, 1.0, True), (0.5, -0.5, 0.0, True)):
        clock = Clock(wide, 0.2, 0.3, k)
        clock.kappa = kappa
        assert clock._verified(end) is allowed is not clock.steady


def test_a_transition_is_looked_at_on_both_sides_of_every_break(plan):
    class Watched(Table):
        def at(self, sigma):
            self.seen = sigma
            return super().at(sigma)

    table = Watched(constraints(plan.path), plan.law)
    clock = Clock(table, 0.2, 0.2, 0.9)
    clock.steer(0.5)
    breaks = plan.law.breaks[(plan.law.breaks > 0.2) & (plan.law.breaks < clock.reach)]
    away = table.seen - breaks[:, None]
    assert len(breaks) > 3 and (away == 0.0).any(axis=1).all()
    assert ((away < 0.0) & (away > -1e-8)).any(axis=1).all()


def test_a_transition_ends_where_it_says(plan):
    """Its rate, and how far it reaches; and the clock's parts agree on what they are the derivatives of."""
    clock = Clock(Table(constraints(plan.path), plan.law), 0.2, 0.2, 0.9)
    clock.steer(0.5)
    assert not clock.steady and clock.end < 0.9
    end, reach, left = clock.end, clock.reach, clock.left
    h, seen = 1e-3, []
    while not clock.steady:
        seen.append((clock.sigma, clock.k, clock.kappa, clock.w))
        clock.advance(h)
    sigma, k, kappa, w = np.array(seen).T
    for value, rate in ((sigma, k), (k, kappa), (kappa, w)):
        np.testing.assert_allclose(np.diff(value), h * 0.5 * (rate[1:] + rate[:-1]), atol=3e-5 * max(1.0, np.abs(rate).max()))
    assert (clock.k, clock.kappa, clock.w) == (pytest.approx(end), 0.0, 0.0)
    assert clock.sigma == pytest.approx(reach + clock.k * (len(seen) * h - left), abs=1e-12)
    other = copy.copy(clock)
    other.advance(0.3)
    assert other.sigma == pytest.approx(clock.sigma + 0.3 * end, abs=1e-12)


def test_another_base_is_the_same_motion(plan):
    """On the clock of the slowed law: the same place, speed and acceleration."""
    slow = plan.slower(0.4)
    for k, later in ((0.3, 0.75), (0.4 * (1.0 + 1e-12), 1.0)):
        clock = Clock(Table(constraints(plan.path), plan.law), 0.2, 0.6, k)
        before = plan.law.at(clock.sigma)
        clock.rebase(Table(constraints(plan.path), slow.law), 0.4)
        after = slow.law.at(clock.sigma)
        assert clock.k == clock.end == pytest.approx(later) and clock.k <= 1.0
        for order in range(3):
            assert after[order] * clock.k**order == pytest.approx(before[order] * k**order, abs=1e-9)


# ---------------------------------------------------------------------- other limits


def test_what_tighter_limits_mean(plan):
    """The slowed law is inside them with room; the present one inside what they are widened to, and that is no wider."""
    tight = constraints(plan.path, (7.0, 5.0), (50.0, 90.0))
    found = assessed(tight, plan, 0.0)
    assert 0.5 < found.factor < 1.0 and found.constraints is tight
    assert steady_factor(tight, plan.law, ROOM) == pytest.approx(found.factor, rel=1e-9)
    assert found.slow.law.duration == pytest.approx(plan.law.duration / found.factor)
    assert found.slow_table.law is found.slow.law
    sigma = found.table.nodes
    peak = np.max([np.abs(steady_use(found.table, sigma, k)).max(axis=0) for k in RATES], axis=0)
    assert (peak < 1.0).all()
    plain = np.max([np.abs(steady_use(Table(tight, plan.law), sigma, k)).max(axis=0) for k in RATES], axis=0)
    np.testing.assert_allclose(peak, np.minimum(plain, PASS), rtol=2e-3)
    assert (plain > 1.05).sum() >= 2


def test_limits_that_leave_room_change_nothing(plan):
    found = assessed(constraints(plan.path, (12.0, 9.0), (110.0, 90.0)), plan, 0.0)
    assert found.factor == 1.0 and found.slow is plan and found.slow_table is found.table


def test_what_is_behind_does_not_count(plan):
    """Neither of limits nor of gravity."""
    late, qd = 0.97 * plan.law.duration, plan.path(plan.law.coefficients[:, 0])[1] * plan.law.coefficients[:, 1:2]
    slow = constraints(plan.path, velocity=0.8 * np.abs(qd).max(axis=0))
    assert assessed(slow, plan, late).factor > 0.97 > 0.85 > assessed(slow, plan, 0.0).factor
    swing = plan.path(plan.law(np.linspace(late, plan.law.duration, 50))[0])[0][:, 0]
    weak = constraints(plan.path, (5.0 * np.sin(np.abs(swing).max()) / 0.9, 6.0))
    assert assessed(weak, plan, late).factor > 0.0
    with pytest.raises(InputError, match="gravity alone"):
        assessed(weak, plan, 0.0)
