"""From timed points to a plan, and from a plan to the motion nearest to it inside the limits."""

from __future__ import annotations

import numpy as np
import pytest
from scaling_cases import Motion, toy

from rnea_ros import InputError
from rnea_ros.scaling import law as laws
from rnea_ros.scaling.plan import fits, follow
from rnea_ros.scaling.points import planned
from rnea_ros.scaling.terms import Constraints, Limits, terms, use

POINTS = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, -0.3], [0.4, -0.6]])
TIMES = np.array([0.0, 0.8, 1.5, 2.6])


def toy_constraints(path, effort=(9.0, 6.0), rate=(80.0, 60.0)):
    unknown = np.full(2, np.nan)
    return Constraints(path, lambda *p: terms(toy, *p), Limits(np.array(effort), np.array(rate), unknown, unknown, unknown))


def worst(constraints, law) -> float:
    s, v, a, u = law(np.linspace(0.0, law.duration, 20_011))
    return float(np.abs(use(constraints(s), v, a, u)).max())


def motion_at(plan, t):
    s, v, a, _ = plan.law(t)
    q, q1, q2, _ = plan.path(s)
    return q, q1 * v[:, None], q2 * v[:, None] ** 2 + q1 * a[:, None]


def test_points_are_passed_at_their_times():
    plan = planned(POINTS, TIMES + 5.0)  # only differences count
    np.testing.assert_allclose(motion_at(plan, TIMES)[0], POINTS, atol=1e-12)
    assert plan.law.duration == pytest.approx(2.6) and not np.abs(plan.law([0.0, 2.6])[1:3]).max() > 1e-9
    _, v, a, u = plan.law(np.linspace(0.0, 2.6, 2001))
    assert v.min() > -1e-12 and np.abs(np.diff(a)).max() < 2e-3 * np.abs(u).max()  # never back, and no jump of sdd


@pytest.mark.parametrize("interpolation", ["positions", "velocities", "accelerations"])
def test_velocities_and_accelerations_at_the_points(interpolation):
    """Those of a motion along a path are met, in full where the interpolation takes them over."""
    source = planned(POINTS, TIMES)
    q, v, a = motion_at(source, TIMES)
    v[[0, -1]] = 0.0
    plan = planned(q, TIMES, v, a, interpolation)
    found = motion_at(plan, TIMES)
    np.testing.assert_allclose(found[0], q, atol=1e-12)
    np.testing.assert_allclose(found[1], v, atol=1e-9)  # along the path already
    if interpolation != "velocities":  # whose curvature is the spline's own
        np.testing.assert_allclose(found[2][1:-1], a[1:-1], atol=1e-8)
    bent = v + np.array([[0.0, 0.0], [0.05, -0.1], [-0.1, 0.1], [0.0, 0.0]])  # across the path
    found = motion_at(planned(q, TIMES, bent, a, interpolation), TIMES)
    if interpolation == "positions":
        assert np.abs(found[1] - bent).max() > 0.02
    else:
        np.testing.assert_allclose(found[1], bent, atol=1e-9)
    if interpolation == "accelerations":
        np.testing.assert_allclose(found[2][1:-1], a[1:-1], atol=1e-8)


def test_a_law_never_goes_back():
    """Where a spline through the times would."""
    times = np.array([0.0, 0.1, 3.0, 3.1])
    plan = planned(POINTS, times)
    assert plan.law(np.linspace(0.0, 3.1, 5001))[1].min() > -1e-9
    np.testing.assert_allclose(motion_at(plan, times)[0], POINTS, atol=1e-9)


def test_repeated_and_standing_points_are_stops():
    points, times = POINTS[[0, 0, 1, 2, 2, 2, 3, 3]], np.array([0.0, 0.5, 1.0, 2.0, 2.2, 2.7, 4.0, 4.5])
    plan = planned(points, times)
    assert plan.path.stops == (pytest.approx(plan.path.breaks[2]),)
    assert plan.rests == ((pytest.approx(1.5), pytest.approx(2.2)),)  # from 0.5 on: what comes before is no motion
    assert plan.law.duration == pytest.approx(3.5)
    assert not np.abs(plan.law(np.linspace(1.5, 2.2, 50))[1:3]).max() > 1e-9
    velocities = np.array([[0.0, 0.0], [0.0, 0.0], [0.3, -0.8], [0.0, 0.0]])
    plan = planned(POINTS, TIMES, velocities)
    assert plan.path.stops == (pytest.approx(plan.path.breaks[1]),) and plan.rests == ((0.8, 0.8),)
    assert len(plan.legs()) == 2


@pytest.mark.parametrize(("arguments", "message"), [
    ((POINTS, TIMES[::-1]), "times must increase: point 1 is at 1.5 s, point 0 before it at 2.6 s"),
    ((POINTS, TIMES[[0, 1, 1, 3]]), "times must increase"),
    ((POINTS, TIMES[:3]), "times have shape"),
    ((POINTS[:1], TIMES[:1]), "two rows or more.*before a single goal"),
    ((POINTS[[0, 0, 0, 0]], TIMES), "all the same: there is nowhere to go"),
    ((POINTS, TIMES * np.nan), r"times\[0\] is nan"),
    ((np.where(POINTS > 0.9, np.nan, POINTS), TIMES), r"points\[2, 0\] is nan"),
    ((POINTS, TIMES, POINTS), "begin and end at rest, but the last velocity"),
    ((POINTS, TIMES, POINTS[:, :1]), "velocities have shape"),
    ((POINTS, TIMES, None, POINTS), "accelerations without velocities"),
    ((POINTS, "soon"), "times are not an array of numbers"),
    ((POINTS, TIMES, None, None, "lines"), "allowed are positions, velocities, accelerations"),
])
def test_bad_points_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        planned(*arguments)


# ---------------------------------------------------------------------- following


def test_a_plan_inside_the_limits_is_untouched():
    plan = planned(POINTS, 2.0 * TIMES)
    constraints = toy_constraints(plan.path)
    assert fits(constraints, plan.law)
    assert np.array_equal(follow(constraints, plan).law.coefficients, plan.law.coefficients)


def test_twice_too_fast():
    motion = Motion("seven_r", 1, speed=2.0, count=5)
    for catch_up in (True, False):
        law = follow(motion.here, motion.plan, catch_up).law
        assert worst(motion.here, law) < 1.0
        assert law.duration < 1.03 * motion.fastest.duration


def test_catching_up_or_not():
    """Partly too fast: the delay is made good, or kept; never is the motion ahead of the plan, nor, without, faster."""
    motion = Motion("seven_r", 1, speed=0.8, count=5)
    limits, plan = motion.limits._replace(effort=0.85 * motion.limits.effort), motion.plan
    constraints = motion.constraints(motion.path, limits)
    assert not fits(constraints, plan.law)
    found = {}
    for catch_up in (True, False):
        law = follow(constraints, plan, catch_up).law
        assert worst(constraints, law) < 1.0
        t = np.linspace(0.0, law.duration, 3001)[1:-1]
        s, v, *_ = law(t)
        due = plan.law.time_at(s)
        late = t - due
        assert late.min() > -2e-3 and late.max() > 0.02
        found[catch_up] = law.duration - plan.law.duration
        if not catch_up:
            assert (v <= plan.law(due)[1] * (1.0 + 2e-3) + 1e-4).all()
    assert abs(found[True]) < 2e-3 < found[False]


def test_making_good_where_the_plan_is_slow():
    """Late, and the plan nearly stands still on its way: not a reason to stand still as well."""
    motion = Motion("seven_r", 10, speed=2.0)
    plan, best = motion.plan.law, motion.fastest
    t = np.linspace(0.0, best.duration, 4001)[1:-1]
    s, v, *_ = best(t)
    due = plan.time_at(s)
    assert (plan(due)[1] / v).min() < 0.05
    law = follow(motion.here, motion.plan).law
    assert worst(motion.here, law) < 1.0
    assert law.duration < 1.005 * (best.duration + max((due - t).max(), 0.0))


def test_rests_are_kept_and_delays_made_good_in_them():
    points, times = POINTS[[0, 1, 2, 2, 3]], np.array([0.0, 0.25, 0.5, 2.0, 3.5])
    plan = planned(points, times)
    constraints = toy_constraints(plan.path)
    found = follow(constraints, plan)
    (start, end), = found.rests
    assert 0.5 < start < 1.5 and end == pytest.approx(2.0)  # late, then in time again
    assert found.law.duration == pytest.approx(plan.law.duration)
    assert worst(constraints, found.law) < 1.0
    short = planned(points, np.array([0.0, 0.25, 0.5, 0.6, 2.1]))
    found = follow(toy_constraints(short.path), short)
    assert found.rests[0][1] - found.rests[0][0] < 1e-9  # no time to rest


def test_gravity_beyond_a_limit_is_refused():
    plan = planned(POINTS, TIMES)
    with pytest.raises(InputError, match=r"gravity alone takes .* of joint 1"):
        follow(toy_constraints(plan.path, effort=(4.0, 6.0)), plan)


def test_slower_plans():
    plan = planned(POINTS[[0, 1, 1, 2]], np.array([0.0, 1.0, 2.0, 3.0])).slower(0.5)
    assert plan.law.duration == 6.0 and plan.rests == ((2.0, 4.0),)
    assert isinstance(plan.law, laws.TimeLaw)
