"""Planning problems: excess over limits, windows, states of rest and checks, with values computed by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.planning import Cost, EndState, PlanningError, PlanningProblem, PlanSettings
from rnea_ros.planning.bspline import Curve, span_of
from rnea_ros.planning.planner import check_problem, unknown_limits, worst_violation
from rnea_ros.planning.problem import motion_quantity
from rnea_ros.planning.transcription import gauss_newton_curvature
from support.planning_cases import pendulum_and_slide

INF, NAN = np.inf, np.nan
LOWER, UPPER = np.array([-2.0, NAN, -5.0, NAN, 1.0, -INF]), np.array([4.0, 3.0, INF, NAN, 1.0, -0.5])
NAMES = tuple("abcdef")


def motion(*values: float) -> np.ndarray:
    """Return a motion (1, ORDERS, n) at rest at these positions."""
    y = np.zeros((1, 4, len(values)))
    y[0, 0] = values
    return y


@pytest.mark.parametrize(("values", "excess"), [
    ((7.0, 6.0, -10.0, 1e9, 2.5, 0.0), (1.0, 1.0, 1.0, -INF, 1.5, 1.0)),  # half a range, or one limit, is the measure
    ((1.0, 3.0, 0.0, -1e9, 1.0, -1.0), (-1.0, 0.0, -1.0, -INF, 0.0, -1.0)),
    ((-5.0, -3.0, -5.0, 0.0, 0.0, -0.75), (1.0, -2.0, 0.0, -INF, 1.0, -0.5)),
])
def test_excess_over_limits_is_relative_to_range_or_limit(values, excess):
    quantity = motion_quantity(0, NAMES, LOWER, UPPER)
    assert quantity.enforced.tolist() == [0, 1, 2, 4, 5]
    np.testing.assert_allclose(quantity.excess(motion(*values), np.zeros(1))[0], excess)


def test_limits_are_active_only_in_their_windows():
    """The ends of windows are included."""
    quantity = replace(motion_quantity(0, ("a",), np.array([-1.0]), np.array([1.0])), windows=[(0.0, 0.25), (0.5, 0.75)])
    u = np.array([0.0, 0.25, 0.3, 0.5, 0.7, 0.75, 0.76, 1.0])
    inside = [True, True, False, True, True, True, False, False]
    assert quantity.is_active(u).tolist() == inside
    y = np.repeat(motion(3.0), len(u), axis=0)
    np.testing.assert_array_equal(quantity.excess(y, u)[:, 0], np.where(inside, 2.0, -INF))


def problem(start: EndState, goal: EndState, lower=-3.0, upper=3.0, duration=(1e-3, 9.0)) -> PlanningProblem:
    quantities = [motion_quantity(order, ("a", "b"), np.full(2, low), np.full(2, high))
                  for order, (low, high) in enumerate(((lower, upper), (-2.0, 2.0)))]
    return PlanningProblem(start, goal, quantities, duration=duration)


def test_moving_end_states_are_not_trivial():
    zero = np.zeros(2)
    here = EndState(zero, zero, np.full(2, NAN))
    assert here.is_at_rest and problem(here, here).is_trivial
    for other in (replace(here, qd=np.array([0.0, 0.1])), replace(here, qdd=np.array([0.1, 0.0]))):
        assert not other.is_at_rest and not problem(other, other).is_trivial
        assert not problem(here, other).is_trivial and not problem(other, here).is_trivial
    assert not problem(here, replace(here, q=np.array([0.0, 1.0]))).is_trivial
    assert not problem(here, here, duration=(1.0, 1.0)).is_trivial


def test_equal_lower_and_upper_limits_are_enforced():
    zero = np.zeros(2)
    here = EndState(zero, zero, zero)
    check_problem(problem(here, here, 0.0, 0.0))
    with pytest.raises(InputError, match="limits of a are 1e-09 to 0; the lower one must not be above"):
        check_problem(problem(here, here, 1e-9, 0.0))


@pytest.mark.parametrize("duration", [(0.0, 1.0), (0.0, 0.0), (2.0, 1.0), (-1.0, 1.0), (1.0, INF), (NAN, 1.0)])
def test_durations_that_are_not_positive_and_finite_are_rejected(duration):
    zero = np.zeros(2)
    here = EndState(zero, zero, zero)
    with pytest.raises(InputError, match="0 < shortest <= longest < inf is needed"):
        check_problem(problem(here, here, duration=duration))


def test_limit_of_an_early_window_does_not_apply_to_the_goal():
    zero, far = np.zeros(2), np.full(2, 2.0)
    near = replace(motion_quantity(0, ("a", "b"), np.full(2, -1.0), np.full(2, 1.0)), windows=[(0.0, 0.5)])
    speed = motion_quantity(1, ("a", "b"), np.full(2, -1.0), np.full(2, 1.0))
    check_problem(PlanningProblem(EndState(zero, zero, zero), EndState(far, zero, zero), [near, speed]))
    with pytest.raises(PlanningError, match="start: position of a is 2 there, outside its limits -1 to 1"):
        check_problem(PlanningProblem(EndState(far, zero, zero), EndState(zero, zero, zero), [near, speed]))


def test_effort_cost_bounds_the_speed():
    here, there = (EndState(np.full(2, q), np.zeros(2), np.zeros(2)) for q in (0.0, 1.0))
    force = motion_quantity(2, ("a", "b"), np.full(2, NAN), np.full(2, NAN))
    check_problem(PlanningProblem(here, there, [force], Cost(1.0, np.ones(2), force)))
    with pytest.raises(InputError, match="nothing limits how fast the motion can be"):
        check_problem(PlanningProblem(here, there, [force]))


def test_known_end_states_outside_limits_are_rejected_with_a_tolerance():
    zero = np.zeros(2)
    here = EndState(zero, zero, zero)
    quantity, speed, bend = (motion_quantity(order, ("a", "b"), np.full(2, -1.0), np.full(2, 1.0)) for order in range(3))
    check_problem(PlanningProblem(here, replace(here, q=np.full(2, 1.0 + 1e-10)), [quantity, speed]))
    for goal, words in ((replace(here, q=np.array([0.0, 1.001])), "goal: position of b is 1.001 there"),
                        (EndState(zero, np.array([-1.2, NAN]), np.full(2, NAN)), "goal: velocity of a is -1.2 there"),
                        (EndState(zero, np.array([0.1, 0.0]), np.array([NAN, 5.0])), "goal: acceleration of b is 5 there")):
        with pytest.raises(PlanningError, match=words):
            check_problem(PlanningProblem(here, goal, [quantity, speed, bend]))


def test_one_sided_limit_is_enforced():
    here = EndState(*np.zeros((3, 6)))
    assert unknown_limits(PlanningProblem(here, here, [motion_quantity(0, NAMES, LOWER, UPPER)])) == [
        "no limits known, hence not enforced: position of d"]


def test_worst_violation_names_missed_end_states_and_exceeded_limits():
    here, there = EndState(*np.zeros((3, 2))), EndState(np.ones(2), np.zeros(2), np.full(2, NAN))
    points = np.array([[0.0, 0.0], [0.0, 0.0], [0.4, 1.0], [0.4, 1.0]])
    curve = Curve(3, np.array([0.0, 1.0]), points, 50.0)
    size, words = worst_violation(problem(here, there), curve)
    assert size == pytest.approx(0.6) and words == "misses the position of the goal by 0.6 after 50 s"
    size, words = worst_violation(problem(there, here), replace(curve, points=points[::-1]))
    assert size == pytest.approx(0.6) and words == "misses the position of the start by 0.6 after 50 s"
    size, words = worst_violation(problem(here, there, -0.6, 0.2), curve)
    assert size == pytest.approx(2.0) and words == "has position of b 2e+02 % beyond its limit after 50 s of 50 s"


def test_prescribed_instants_may_repeat_but_not_be_empty():
    assert PlanSettings(instants=(0.0, 0.5, 0.5, 1.0)).instants == (0.0, 0.5, 0.5, 1.0)
    with pytest.raises(InputError, match="rise from 0 to 1"):
        PlanSettings(instants=())


@pytest.mark.parametrize("given", [{"degree": 2}, {"degree": 8}, {"spans": 1001}, {"gain": 1.1}, {"damping": -1.0},
                                   {"tries": 0}, {"damping": np.inf}, {"best_of": np.nan}])
def test_settings_outside_their_bounds_are_rejected(given):
    (name, value), = given.items()
    with pytest.raises(InputError, match=f"{name} is {value}; .* is allowed"):
        PlanSettings(**given)


def test_break_belongs_to_the_following_span():
    assert span_of(np.array([0.0, 0.25, 1.0]), np.array([0.0, 0.2, 0.25, 0.3, 1.0])).tolist() == [0, 0, 1, 1, 1]


def test_gauss_newton_curvature_is_the_sum_of_cost_terms():
    """One of the terms has a window."""
    rng = np.random.default_rng(0)
    y, u, weight = rng.normal(size=(5, 4, 2)), np.linspace(0.0, 1.0, 5), rng.uniform(0.1, 1.0, 5)
    rate = pendulum_and_slide()
    speed = replace(motion_quantity(1, ("a", "b"), np.full(2, NAN), np.full(2, NAN)), windows=[(0.0, 0.5)])
    here, one, two = EndState(*np.zeros((3, 2))), (np.array([0.3, 0.7]), rate), (np.array([2.0, 0.5]), speed)
    problems = [PlanningProblem(here, here, [], Cost(1.0, more=terms)) for terms in ([one, two], [one], [two])]
    both, first, second = (gauss_newton_curvature(given, None, y, u, weight, np.zeros(0)) for given in problems)
    np.testing.assert_allclose(both, first + second, atol=1e-13)
    assert np.abs(second[0]).max() > 0.01 and not second[-1].any()
