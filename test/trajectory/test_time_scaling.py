"""Time scaling of a law during execution, its coefficient table, and the effect of new limits, on the toy robot."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.trajectory.constraints import Constraints, PathLimits, constraint_values, torque_terms
from rnea_ros.trajectory.limit_check import steady_rate
from rnea_ros.trajectory.scaled_plan import ScaledPlan, plan_from_waypoints
from rnea_ros.trajectory.time_law import rest_to_rest
from rnea_ros.trajectory.time_optimal import fastest_law
from rnea_ros.trajectory.time_scaling import (
    OPTIONS,
    CoefficientTable,
    TimeScaling,
    is_within,
    transition_time,
)
from rnea_ros.trajectory.trajectory_scaler import SLOWED_LEVEL, assess, joint_motion, play_law
from support.robots import seeds
from support.scaling_cases import toy

POINTS = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, -0.3], [0.4, -0.6]])
RATES = np.linspace(0.0, 1.0, 21)


def constraints(path, effort=(9.0, 6.0), rate=(80.0, 60.0), velocity=(9.0, 9.0)) -> Constraints:
    unknown = np.full(2, np.nan)
    limits = PathLimits(np.array(effort), np.array(rate), np.array(velocity), unknown, unknown)
    return Constraints(path, lambda *p: torque_terms(toy, *p), limits)


@pytest.fixture(scope="module")
def plan():
    path = plan_from_waypoints(POINTS, np.arange(4.0)).path
    return ScaledPlan(path, fastest_law(constraints(path)))


def table_use(table: CoefficientTable, sigma: np.ndarray, *motion: float) -> np.ndarray:
    """Return the utilization (samples, rows) at rate k and its derivatives kappa, w."""
    table.extend(np.inf)
    return table.utilization(sigma[:, None], *(np.full((len(sigma), 1), x) for x in motion))[:, 0]


def test_coefficient_table_equals_the_constraint_rows_along_the_law(plan):
    here = constraints(plan.path)
    table = CoefficientTable(here, plan.law)
    sigma = np.linspace(0.0, plan.law.duration, 997)
    s, v, a, u = plan.law(sigma)
    kept = [k for k, (_, quantity) in enumerate(here.labels) if quantity != "velocity"]
    assert len(kept) == 4
    for k, kappa, w in ((0.4, 0.0, 0.0), (1.0, 0.0, 0.0), (0.7, -3.0, 20.0)):
        wanted = constraint_values(here(s), v * k, a * k**2 + v * kappa, u * k**3 + 3.0 * a * k * kappa + v * w)[:, kept]
        np.testing.assert_allclose(table_use(table, sigma, k, kappa, w), wanted, atol=3e-4)
    duration = np.array([plan.law.duration])
    np.testing.assert_array_equal(table_use(table, duration + 1.0, 1.0, 0.0, 0.0), table_use(table, duration, 1.0, 0.0, 0.0))


def test_coefficient_table_is_extended_on_demand(plan):
    """The table is extended before a transition leaves it, and equals the complete one for every start."""
    here = constraints(plan.path)
    whole, table = CoefficientTable(here, plan.law), CoefficientTable(here, plan.law, 0.3, 0.2)
    assert 0.2 < table.edges[0] <= 0.3 and 0.5 <= table.edges[-1] < 0.6 < plan.law.duration
    clocks = [TimeScaling(each, 0.2, 0.3) for each in (whole, table)]
    for step in range(10_000):
        for clock in clocks:
            clock.set_target_rate(1.0 if step // 300 % 2 else 0.3)
            clock.advance(1e-3)
            assert clock.steady or clock.reach <= clock.table.edges[-1] or clock.table.edges[-1] == plan.law.duration
        assert clocks[0].sigma == clocks[1].sigma
        if clocks[0].sigma > plan.law.duration:
            break
    first = int(whole.edges.searchsorted(table.edges[0]))
    np.testing.assert_array_equal(table.edges, whole.edges[first:])
    np.testing.assert_array_equal(table.flat, whole.flat[first:])


@pytest.mark.parametrize("where", [0.0, 0.4])
def test_coefficient_table_has_edges_at_path_breaks(plan, where):
    """The law has no breaks; it starts at the beginning of the path or between two breaks."""
    breaks, length = plan.path.breaks, plan.path.length
    law = rest_to_rest(where * length, length, 0.8)
    ahead = breaks[(breaks > where * length) & (breaks < length)]
    assert len(law.breaks) == 2 and 0 < len(ahead) < len(breaks) - (1 if where == 0.0 else 2)
    edges = CoefficientTable(constraints(plan.path), law).edges
    np.testing.assert_allclose(np.abs(law(edges)[0] - ahead[:, None]).min(axis=1), 0.0, atol=1e-9)
    assert edges[0] == 0.0 and (np.diff(edges) > 1e-6).all()


def test_transition_time_follows_from_effort_and_rate_limits(plan):
    """The time is 0.8 of the longest swing between the effort limits, within bounds; unknown limits are ignored."""
    assert transition_time(constraints(plan.path, (9.0, 6.0), (80.0, 30.0))) == pytest.approx(0.8 * 2.0 * 6.0 / 30.0)
    assert transition_time(constraints(plan.path, (9.0, 6.0), (80.0, np.nan))) == pytest.approx(0.8 * 2.0 * 9.0 / 80.0)
    assert transition_time(constraints(plan.path, (9.0, 6.0), (np.nan, np.nan))) == OPTIONS.min_transition_s < 0.8 * 0.1
    assert transition_time(constraints(plan.path, (np.nan, 6.0), (80.0, 60.0))) == OPTIONS.max_transition_s


def test_transition_that_leaves_rates_0_to_1_is_rejected(plan):
    wide = CoefficientTable(constraints(plan.path, (1e9, 1e9), (1e9, 1e9)), plan.law)
    for k, kappa, end, allowed in ((0.9, 5.0, 1.0, False), (0.1, -5.0, 0.0, False),
                                   (0.5, 0.5, 1.0, True), (0.5, -0.5, 0.0, True)):
        clock = TimeScaling(wide, 0.2, 0.3, k)
        clock.kappa = kappa
        assert clock._begin_verified(end) is allowed is not clock.steady
    x = np.linspace(0.0, 1.0, 2001)
    for k, end, kappa in np.random.default_rng(0).uniform((0.0, 0.0, -9.0), (1.0, 1.0, 9.0), (300, 3)):
        clock = TimeScaling(wide, 0.2, 0.3, k)
        clock.kappa = kappa
        rate = k + (end - k) * x * x * (3.0 - 2.0 * x) + 0.2 * kappa * x * (1.0 - x) ** 2  # cubic Hermite polynomial
        assert clock._begin_verified(end) == (rate.min() >= 0.0 and rate.max() <= 1.0)


def test_check_between_samples_covers_the_peak_of_a_parabola():
    """The tolerance is one fiftieth of the second difference."""
    rng = np.random.default_rng(0)
    x = np.linspace(0.0, 1.0, 4001)
    for first, middle, last in rng.normal(size=(500, 3)):
        curve = first + x * (-3.0 * first + 4.0 * middle - last) + x * x * 2.0 * (first + last - 2.0 * middle)
        most, bend = np.abs(curve).max(), abs(first + last - 2.0 * middle)
        values = np.array([first, middle, last]).reshape(1, 3, 1)
        assert is_within(values, most + 0.021 * bend) and not is_within(values, most - 1e-6)
    assert not is_within(np.full((1, 3, 1), np.nan), 1.0)


@pytest.mark.parametrize("seed", seeds(8))
def test_accepted_rate_transitions_keep_the_limits_at_every_instant(plan, seed):
    """Requests arrive during any transition; rejected transitions would exceed the limits or come close to them."""
    rng = np.random.default_rng(seed)
    here = constraints(plan.path, (8.0, 5.0), (60.0, 50.0))
    table, law = CoefficientTable(here, plan.law), plan.law
    clock = TimeScaling(table, rng.uniform(0.02, 0.5), rng.uniform(0.0, law.duration - 0.5), rng.uniform(0.0, 1.0))
    clock.kappa = rng.normal() * clock.k * (1.0 - clock.k) / clock.transition_time
    t = np.linspace(0.0, clock.transition_time, 4001)
    for end in rng.uniform(0.0, 1.0, 30):
        H, way = clock.transition_time, end - clock.k
        w, j = (6.0 * way / H - 4.0 * clock.kappa) / H, (6.0 * clock.kappa - 12.0 * way / H) / (H * H)
        sigma = clock.sigma + t * (clock.k + t * (clock.kappa / 2.0 + t * (w / 6.0 + t * j / 24.0)))
        k, kappa = clock.k + t * (clock.kappa + t * (w / 2.0 + t * j / 6.0)), clock.kappa + t * (w + t * j / 2.0)
        s, v, a, u = law(sigma)
        sd, sdd, sddd = v * k, a * k**2 + v * kappa, u * k**3 + 3.0 * a * k * kappa + v * (w + j * t)
        possible = k.min() > -1e-12 and k.max() < 1.0 + 1e-12
        used = np.abs(constraint_values(here(s), sd, sdd, sddd)[:, table.included]).max() if possible else np.inf
        accepted = copy.copy(clock)._begin_verified(end)
        assert used < OPTIONS.verified_level + 2e-4 if accepted else used > OPTIONS.verified_level - 5e-3


def test_transition_ends_at_its_predicted_rate_and_reach(plan):
    """The state variables of the time scaling are consistent derivatives."""
    clock = TimeScaling(CoefficientTable(constraints(plan.path), plan.law), 0.2, 0.2, 0.9)
    clock.set_target_rate(0.5)
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


def test_rebase_to_a_slowed_law_keeps_the_motion(plan):
    """Position, speed and acceleration are equal before and after."""
    slow = plan.slower(0.4)
    for k, later in ((0.3, 0.75), (0.4, 1.0)):
        clock = TimeScaling(CoefficientTable(constraints(plan.path), plan.law), 0.2, 0.6, k)
        before = plan.law.at(clock.sigma)
        assert clock.rebase(CoefficientTable(constraints(plan.path), slow.law), 0.4)
        after = slow.law.at(clock.sigma)
        assert clock.k == clock.end == pytest.approx(later) and clock.k <= 1.0
        for order in range(3):
            assert after[order] * clock.k**order == pytest.approx(before[order] * k**order, abs=1e-9)


def test_rebase_during_a_transition_is_done_only_if_verified(plan):
    """Rejected cases: a rate that is still too large, and limits that cannot be verified."""
    slow, here = plan.slower(0.6), constraints(plan.path)
    for limits, k, taken in ((here, 0.55, True), (here, 0.65, False), (constraints(plan.path, rate=(0.5, 0.5)), 0.55, False)):
        clock = TimeScaling(CoefficientTable(here, plan.law), 0.2, 0.6, k)
        clock.set_target_rate(k - 0.01)
        clock.advance(0.05)
        s, v, a, _ = plan.law.at(clock.sigma)
        before, state = vars(copy.copy(clock)), (s, v * clock.k, a * clock.k**2 + v * clock.kappa)
        assert not clock.steady and clock.rebase(CoefficientTable(limits, slow.law), 0.6) is taken
        assert taken or vars(clock) == before
        s, v, a, _ = clock.table.law.at(clock.sigma)
        assert (s, v * clock.k, a * clock.k**2 + v * clock.kappa) == pytest.approx(state)
        clock.advance(1.0)
        assert clock.k == clock.end == pytest.approx(before["end"] / 0.6 if taken else before["end"])


# ---------------------------------------------------------------------- other limits


def test_tighter_limits_lower_the_rate_with_a_margin(plan):
    """The slowed law is inside the new limits, the present one is not."""
    tight = constraints(plan.path, (7.0, 5.0), (50.0, 90.0))
    found = assess(tight, plan, 0.0)
    assert 0.5 < found.factor < 1.0
    assert steady_rate(tight, plan.law, SLOWED_LEVEL) == pytest.approx(found.factor, rel=1e-9)
    slower, its_table = found.slower
    assert slower.law.duration == pytest.approx(plan.law.duration / found.factor) and its_table.law is slower.law
    sigma = np.linspace(0.0, plan.law.duration, 4001)
    assert np.abs(table_use(found.table, sigma, 1.0, 0.0, 0.0)).max() > 1.05
    assert np.abs(table_use(its_table, sigma / found.factor, 1.0, 0.0, 0.0)).max() < 1.0


@pytest.mark.parametrize(("since", "effort", "rate"), [
    (0.25, (20.0, 20.0), (60.0, 45.0)), (0.65, (20.0, 20.0), (60.0, 45.0)), (0.85, (9.0, 6.0), (70.0, 50.0)),
    (0.3, (7.0, 5.0), (50.0, 90.0)), (0.5, (9.0, 6.5), (90.0, 90.0)), (0.6, (6.5, 5.0), (60.0, 40.0))])
def test_braking_exceeds_new_limits_hardly_more_than_the_best_possible_motion(plan, since, effort, rate):
    """The oracle is IPOPT with free jerk on the same path. At 0.65 only a motion that first accelerates keeps the limits."""
    pytest.importorskip("casadi")
    from support.scaling_optimum import least_excess

    sigma, tight = since * plan.law.duration, constraints(plan.path, effort, rate)
    found = assess(tight, plan, sigma)
    clock = TimeScaling(CoefficientTable(constraints(plan.path), plan.law), 0.2, sigma)
    state, used = [], []
    excess = clock.brake(found.table, found.factor)
    while not used or not clock.steady:
        s, sd, *derivatives = play_law(plan.law.at(clock.sigma), clock.k, clock.kappa, clock.w)
        state.append((s, sd, derivatives[0]))
        tau, tau_rate = toy(*joint_motion(plan.path.at(s), sd, *derivatives))
        used.append((np.abs(tau) / effort, np.abs(tau_rate) / rate))
        clock.advance(1e-3)
    used = np.array(used)
    bound = np.maximum(used[0, 0], 1.0)  # torque is continuous: it cannot be inside at once
    least = least_excess(tight, plan.law, sigma, found.factor, count=60)
    assert max((used[1:, 0] - bound).max(), used[1:, 1].max() - 1.0, 0.0) < 1.2 * least + 0.02
    assert clock.table is found.table and (clock.end <= found.factor or clock.sigma > plan.law.duration - 2e-3)
    assert max(used[1:].max(), 1.0) == pytest.approx(max(excess.peak, 1.0), abs=0.01)  # reported
    _, speed, acceleration = np.array(state).T
    np.testing.assert_allclose(np.diff(speed), 5e-4 * (acceleration[1:] + acceleration[:-1]), atol=1e-4)


def test_braking_from_random_states_is_continuous_and_ends_at_a_permitted_rate(plan):
    """Limits and states are random, near the end of the law too; at that end, where the motion rests, any rate is permitted.

    Regression: near the end of the law the search read beyond its table.
    """
    wide, duration = CoefficientTable(constraints(plan.path), plan.law), plan.law.duration
    rng, count = np.random.default_rng(3), 0
    while count < 40:
        effort, rate, velocity = (limit * rng.uniform(least, most, 2) for limit, least, most in (
            (np.array([9.0, 6.0]), 0.5, 1.2), (np.array([80.0, 60.0]), 0.3, 1.3), (9.0, 0.4, 1.2)))
        sigma = duration * (rng.uniform() if count % 4 else 1.0 - rng.uniform(1e-4, 2e-2))
        try:
            found = assess(constraints(plan.path, effort, rate, velocity), plan, sigma)
        except InputError:  # gravity alone is too much
            continue
        clock = TimeScaling(wide, rng.uniform(0.02, 0.5), sigma, rng.choice([1.0, rng.uniform(0.0, 1.0)]))
        for _ in range(rng.integers(0, 60)):
            clock.set_target_rate(0.5)
            clock.advance(1e-3)
        count += 1
        assert clock.brake(found.table, found.factor) is not None
        reach, motion = clock.reach, []
        while not clock.steady:
            motion.append(play_law(plan.law.at(clock.sigma), clock.k, clock.kappa, clock.w)[1:3])
            clock.advance(1e-3)
        assert clock.end <= found.factor or reach > duration - 1e-3
        speed, acceleration = np.array(motion).reshape(-1, 2).T
        np.testing.assert_allclose(np.diff(speed), 5e-4 * (acceleration[1:] + acceleration[:-1]), atol=1e-3)


def test_pause_in_progress_continues_when_limits_change(plan):
    clock = TimeScaling(CoefficientTable(constraints(plan.path), plan.law), 0.2, 0.2 * plan.law.duration, 0.005)
    clock.set_target_rate(0.0)
    clock.advance(0.19)
    left, tight = clock.left, CoefficientTable(constraints(plan.path, (7.0, 5.0), (50.0, 90.0)), plan.law)
    assert clock.kappa < 0.0 < clock.k
    assert clock.brake(tight, 0.7) and clock.table is tight and clock.end == 0.0 and clock.left == left


def test_wider_limits_do_not_change_the_law(plan):
    found = assess(constraints(plan.path, (12.0, 9.0), (110.0, 90.0)), plan, 0.0)
    assert found.factor == 1.0 and found.slower is None and found.table.law is plan.law


def test_new_limits_are_checked_only_ahead_of_the_present_position(plan):
    late, qd = 0.97 * plan.law.duration, plan.path(plan.law.coefficients[:, 0])[1] * plan.law.coefficients[:, 1:2]
    slow = constraints(plan.path, velocity=0.8 * np.abs(qd).max(axis=0))
    assert assess(slow, plan, late).factor > 0.97 > 0.85 > assess(slow, plan, 0.0).factor
    swing = plan.path(plan.law(np.linspace(late, plan.law.duration, 50))[0])[0][:, 0]
    weak = constraints(plan.path, (5.0 * np.sin(np.abs(swing).max()) / 0.9, 6.0))
    assert assess(weak, plan, late).factor > 0.0
    with pytest.raises(InputError, match="gravity alone"):
        assess(weak, plan, 0.0)
