"""Plans from timed waypoints, and the fastest motion that follows a plan inside the limits."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.trajectory import scaled_plan as plans
from rnea_ros.trajectory import time_law as laws
from rnea_ros.trajectory.constraints import Constraints, PathLimits, constraint_values, torque_terms
from rnea_ros.trajectory.limit_check import check_rest, steady_rate
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.scaled_plan import follow_plan, is_feasible, plan_from_waypoints, replan_from, replan_horizon
from rnea_ros.trajectory.time_optimal import LEVEL
from support.scaling_cases import Motion, toy

POINTS = np.array([[0.0, 0.0], [0.5, 0.2], [1.0, -0.3], [0.4, -0.6]])
TIMES = np.array([0.0, 0.8, 1.5, 2.6])


def toy_constraints(path, effort=(9.0, 6.0), rate=(80.0, 60.0)):
    unknown = np.full(2, np.nan)
    return Constraints(path, lambda *p: torque_terms(toy, *p),
                       PathLimits(np.array(effort), np.array(rate), unknown, unknown, unknown))


def worst(constraints, law) -> float:
    s, v, a, u = law(np.linspace(0.0, law.duration, 20_011))
    return float(np.abs(constraint_values(constraints(s), v, a, u)).max())


def motion_at(plan, t):
    s, v, a, _ = plan.law(t)
    q, q1, q2, _ = plan.path(s)
    return q, q1 * v[:, None], q2 * v[:, None] ** 2 + q1 * a[:, None]


def test_plan_passes_waypoints_at_their_times():
    plan = plan_from_waypoints(POINTS, TIMES + 5.0)  # time differences are used
    np.testing.assert_allclose(motion_at(plan, TIMES)[0], POINTS, atol=1e-12)
    assert plan.law.duration == pytest.approx(2.6) and not np.abs(plan.law([0.0, 2.6])[1:3]).max() > 1e-9
    _, v, a, u = plan.law(np.linspace(0.0, 2.6, 2001))
    assert v.min() > -1e-12 and np.abs(np.diff(a)).max() < 2e-3 * np.abs(u).max()  # monotone, and sdd is continuous


@pytest.mark.parametrize("interpolation", ["positions", "velocities", "accelerations"])
def test_plan_meets_waypoint_velocities_and_accelerations(interpolation):
    """The waypoints are samples of a motion along a path; the interpolation option selects the derivatives used."""
    source = plan_from_waypoints(POINTS, TIMES)
    q, v, a = motion_at(source, TIMES)
    v[[0, -1]] = 0.0
    plan = plan_from_waypoints(q, TIMES, v, a, interpolation)
    found = motion_at(plan, TIMES)
    np.testing.assert_allclose(found[0], q, atol=1e-12)
    np.testing.assert_allclose(found[1], v, atol=1e-9)  # along the path already
    if interpolation != "velocities":  # whose curvature is the spline's own
        np.testing.assert_allclose(found[2][1:-1], a[1:-1], atol=1e-8)
    bent = v + np.array([[0.0, 0.0], [0.05, -0.1], [-0.1, 0.1], [0.0, 0.0]])  # across the path
    found = motion_at(plan_from_waypoints(q, TIMES, bent, a, interpolation), TIMES)
    if interpolation == "positions":
        assert np.abs(found[1] - bent).max() > 0.02
    else:
        np.testing.assert_allclose(found[1], bent, atol=1e-9)
    if interpolation == "accelerations":
        np.testing.assert_allclose(found[2][1:-1], a[1:-1], atol=1e-8)


def test_end_velocities_and_accelerations_of_waypoints_are_ignored():
    """The plan starts and ends at rest without acceleration, with the curvature of the spline."""
    source = plan_from_waypoints(POINTS, TIMES)
    q, v, a = motion_at(source, TIMES)
    v[[0, -1]] = 0.0
    plain = plan_from_waypoints(q, TIMES, v, a, "accelerations")
    v[0, 0], a[[0, -1]] = 9e-7, [[3.0, -1.0], [2.0, 2.0]]
    odd = plan_from_waypoints(q, TIMES, v, a, "accelerations")
    assert odd.law.at(0.0)[1:3] == (0.0, 0.0) and np.abs(odd.law([odd.law.duration])[1:3]).max() < 1e-9
    np.testing.assert_allclose(odd.path.coefficients, plain.path.coefficients, atol=1e-12)
    _, q1, q2, _ = odd.path(odd.path.breaks[1:-1])
    assert np.abs((q1 * q2).sum(axis=1)).max() < 1e-12  # curvature is normal to the path: s is arc length


def test_waypoint_velocity_against_the_path_does_not_reverse_it():
    velocities = np.array([[0.0, 0.0], [-1.0, -0.4], [0.0, 0.0], [0.0, 0.0]])
    velocities[2] = 0.1
    plan = plan_from_waypoints(POINTS, TIMES, velocities)
    assert plan.law(np.linspace(0.0, 2.6, 5001))[1].min() > -1e-4 and plan.law.at(TIMES[1])[1] == 0.0
    np.testing.assert_allclose(motion_at(plan, TIMES)[0], POINTS, atol=1e-9)


def test_time_law_of_a_plan_is_monotone_for_uneven_times():
    """An unconstrained spline through these times is not monotone."""
    times = np.array([0.0, 0.1, 3.0, 3.1])
    plan = plan_from_waypoints(POINTS, times)
    assert plan.law(np.linspace(0.0, 3.1, 5001))[1].min() > -1e-9
    np.testing.assert_allclose(motion_at(plan, times)[0], POINTS, atol=1e-9)


def test_repeated_waypoints_are_stops_with_rests():
    points, times = POINTS[[0, 0, 1, 2, 2, 2, 3, 3]], np.array([0.0, 0.5, 1.0, 2.0, 2.2, 2.7, 4.0, 4.5])
    plan = plan_from_waypoints(points, times)
    assert plan.path.stops == (pytest.approx(plan.path.breaks[2]),)
    assert plan.rests == ((pytest.approx(1.5), pytest.approx(2.2)),)  # times from 0.5 s on: there is no motion before
    assert plan.law.duration == pytest.approx(3.5)
    assert not np.abs(plan.law(np.linspace(1.5, 2.2, 50))[1:3]).max() > 1e-9
    hair = np.arange(8)[:, None] * 1e-11
    assert plan_from_waypoints(points + hair, times).rests == plan.rests
    velocities = np.array([[0.0, 0.0], [0.0, 0.0], [0.3, -0.8], [0.0, 0.0]])
    plan = plan_from_waypoints(POINTS, TIMES, velocities)
    assert plan.path.stops == (pytest.approx(plan.path.breaks[1]),) and plan.rests == ((0.8, 0.8),)
    assert len(plan.legs()) == 2


@pytest.mark.parametrize("distance", 10.0 ** np.arange(-10, -1.0))
@pytest.mark.parametrize("interpolation", ["positions", "velocities"])
def test_nearly_equal_waypoints_do_not_bend_the_path_or_change_its_times(distance, interpolation):
    rng, times = np.random.default_rng(6), np.array([0.0, 1.0, 2.0, 2.3, 3.0, 4.0])
    for _ in range(5):
        points, direction = rng.uniform(-1.0, 1.0, (6, 3)), rng.normal(size=3)
        points[3] = points[2] + distance * direction
        velocities = np.array([0.0, 0.0, 1.0, 1.0, 0.0, 0.0])[:, None] * direction + [[0.0], [0.3], [0.0], [0.0], [0.3], [0.0]]
        plan = plan_from_waypoints(points, times, None if interpolation == "positions" else velocities, None, interpolation)
        q, q1, *_ = plan.path(np.linspace(0.0, plan.path.length, 2000))
        assert np.abs(q).max() < 3.0 and np.linalg.norm(q1, axis=1).max() < 10.0
        assert np.abs(plan.path(plan.law(times)[0])[0] - points).max() < 1e-5


def test_waypoints_with_contradictory_velocities_are_rejected():
    """Any smooth path would make a large detour between two of the waypoints."""
    points = np.array([[0.0, 0.0], [1.0, 0.3], [1.001, 0.3], [2.0, 0.0]])
    velocities = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(InputError, match=r"detour between points 2 and 3 .*velocities point elsewhere"):
        plan_from_waypoints(points, np.arange(4.0), velocities, None, "velocities")
    assert plan_from_waypoints(points, np.arange(4.0), velocities).path.length < 2.1


@pytest.mark.parametrize(("arguments", "message"), [
    ((POINTS, TIMES[::-1]), "times must increase: point 1 is at 1.5 s, point 0 before it at 2.6 s"),
    ((POINTS, TIMES[[0, 1, 1, 3]]), "times must increase"),
    ((POINTS, TIMES[:3]), "times have shape"),
    ((POINTS[:1], TIMES[:1]), "two rows or more.*before a single goal"),
    ((POINTS[[0, 0, 0, 0]], TIMES), "all equal; at least two different points"),
    ((POINTS, TIMES * np.nan), r"times\[0\] is nan"),
    ((np.where(POINTS > 0.9, np.nan, POINTS), TIMES), r"points\[2, 0\] is nan"),
    ((POINTS, TIMES, POINTS), "begin and end at rest, but the last velocity"),
    ((POINTS, TIMES, POINTS[::-1]), "begin and end at rest, but the first velocity"),
    ((POINTS, TIMES, POINTS[:, :1]), "velocities have shape"),
    ((POINTS, TIMES, None, POINTS), "accelerations are given without velocities"),
    ((POINTS, "soon"), "times are not an array of numbers"),
    ((POINTS, TIMES, None, None, "lines"), "allowed are positions, velocities, accelerations"),
])
def test_invalid_waypoints_are_rejected(arguments, message):
    with pytest.raises(InputError, match=message):
        plan_from_waypoints(*arguments)


# ---------------------------------------------------------------------- following


def test_plan_inside_the_limits_is_unchanged():
    plan = plan_from_waypoints(POINTS, 2.0 * TIMES)
    constraints = toy_constraints(plan.path)
    assert is_feasible(constraints, plan.law)
    assert np.array_equal(follow_plan(constraints, plan).law.coefficients, plan.law.coefficients)


def test_slowed_law_is_feasible_up_to_the_largest_steady_rate():
    plan = plan_from_waypoints(POINTS, TIMES)
    constraints = toy_constraints(plan.path)
    factor = steady_rate(constraints, plan.law, 1.0)
    assert 0.1 < factor < 0.99
    assert is_feasible(constraints, plan.law.slower(0.996 * factor))
    assert not is_feasible(constraints, plan.law.slower(1.001 * factor))


def test_plan_at_twice_the_allowed_speed_takes_at_most_3_percent_more_than_the_optimum():
    motion = Motion("seven_r", 1, speed=2.0, count=5)
    for catch_up in (True, False):
        law = follow_plan(motion.here, motion.plan, catch_up).law
        assert worst(motion.here, law) < 1.0
        assert law.duration < 1.03 * motion.fastest.duration


def test_catch_up_recovers_the_delay_and_never_runs_ahead_of_the_plan():
    """The plan is partly too fast. Without catch_up the delay remains and the planned speed is not exceeded."""
    motion = Motion("seven_r", 1, speed=0.8, count=5)
    limits, plan = motion.limits._replace(effort=0.85 * motion.limits.effort), motion.plan
    constraints = motion.constraints(motion.path, limits)
    assert not is_feasible(constraints, plan.law)
    found = {}
    for catch_up in (True, False):
        law = follow_plan(constraints, plan, catch_up).law
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


def test_delay_is_recovered_where_the_plan_is_slow():
    """The plan almost stops on the way; a delayed motion continues there."""
    motion = Motion("seven_r", 10, speed=2.0)
    plan, best = motion.plan.law, motion.fastest
    t = np.linspace(0.0, best.duration, 4001)[1:-1]
    s, v, *_ = best(t)
    due = plan.time_at(s)
    assert (plan(due)[1] / v).min() < 0.05
    law = follow_plan(motion.here, motion.plan).law
    assert worst(motion.here, law) < 1.0
    assert law.duration < 1.005 * (best.duration + max((due - t).max(), 0.0))


def test_delay_is_recovered_during_planned_rests():
    points, times = POINTS[[0, 1, 2, 2, 3]], np.array([0.0, 0.25, 0.5, 2.0, 3.5])
    plan = plan_from_waypoints(points, times)
    constraints = toy_constraints(plan.path)
    found = follow_plan(constraints, plan)
    (start, end), = found.rests
    assert 0.5 < start < 1.5 and end == pytest.approx(2.0)  # late, then in time again
    assert found.law.duration == pytest.approx(plan.law.duration)
    assert worst(constraints, found.law) < 1.0
    short = plan_from_waypoints(points, np.array([0.0, 0.25, 0.5, 0.6, 2.1]))
    found = follow_plan(toy_constraints(short.path), short)
    assert found.rests[0][1] - found.rests[0][0] < 1e-9  # no time to rest


@pytest.fixture(scope="module")
def plan_with_rests():
    """Plan of three legs with two rests of 0.7 and 0.5 s; the first two legs start too fast and can recover the delay."""
    points = np.concatenate((POINTS, [[0.0, 0.0], [0.6, 0.5], [0.2, 0.1]]))
    return plan_from_waypoints(points[[0, 1, 2, 3, 3, 4, 5, 5, 6]], np.array([0.0, 0.35, 1.3, 2.3, 3.0, 3.35, 4.4, 4.9, 6.5]))


@pytest.fixture(scope="module")
def followed(plan_with_rests):
    return follow_plan(toy_constraints(plan_with_rests.path), plan_with_rests)


def check_never_ahead(plan, law, offset=0.0) -> None:
    """Check that a law is never ahead of the plan while the plan moves."""
    t = np.linspace(0.0, law.duration, 8001)[1:-1]
    s, v, *_ = law(t)
    t, s = t[v > 1e-3], s[v > 1e-3]
    assert (t + offset - plan.law.time_at(s)).min() > -2e-3


def test_each_leg_recovers_its_delay(plan_with_rests, followed):
    """The delay is recovered before the rest if possible, else in the rest; feasible legs are executed as planned."""
    constraints, found = toy_constraints(plan_with_rests.path), followed
    np.testing.assert_allclose(found.rests, plan_with_rests.rests, atol=1e-3)
    assert found.law.duration == pytest.approx(6.5, abs=1e-3) and worst(constraints, found.law) < 1.0
    check_never_ahead(plan_with_rests, found.law)
    for begin, _ in plan_with_rests.legs():
        assert found.law.at(begin + 0.1)[0] > found.law.at(begin)[0] + 1e-3  # starts in time, not later at full speed
    late = follow_plan(constraints, plan_with_rests, catch_up=False)
    (_, first), (start, second) = late.rests
    assert first == pytest.approx(3.0) and start == second > 4.95  # there was no time to rest
    assert late.law.duration == pytest.approx(second + 1.6)
    last = late.law.segment(second, late.law.duration)
    np.testing.assert_allclose(last.coefficients, plan_with_rests.law.segment(4.9, 6.5).coefficients, atol=1e-9)


@pytest.mark.parametrize(("at", "offset"), [(0.3, 0.25), (3.6, 0.0), (4.2, 0.25)])
def test_replanning_during_a_motion_keeps_the_past_and_recovers_the_delay(plan_with_rests, followed, at, offset):
    """Replanning starts in any leg, with different clock offsets."""
    constraints, current = toy_constraints(plan_with_rests.path), followed.slower(0.9)
    found = replan_from(constraints, current, at, plan_with_rests, True, offset)
    t = np.linspace(0.0, at, 50)[:-1]
    np.testing.assert_allclose(found.law(t), current.law(t), atol=1e-9)
    assert found.law.duration == pytest.approx(6.5 - offset, abs=1e-3)
    assert len(found.rests) == 2
    for known, planned_rest, (start, end) in zip(current.rests, plan_with_rests.rests, found.rests):
        assert start <= end == pytest.approx(known[1] if known[1] < at else max(planned_rest[1] - offset, start), abs=1e-3)
    rest_of_it = found.law.segment(at, found.law.duration)
    assert worst(constraints, rest_of_it) < 1.0
    check_never_ahead(plan_with_rests, rest_of_it, at + offset)


def test_replanning_without_catch_up_keeps_the_planned_speed(plan_with_rests):
    """The law continues and is not faster than planned."""
    constraints = toy_constraints(plan_with_rests.path)
    current = follow_plan(constraints, plan_with_rests, catch_up=False)
    begin, end = current.legs()[2]
    at = 0.5 * (begin + end)
    law = replan_from(constraints, current, at, plan_with_rests, False, 0.0).law
    t = np.linspace(at, law.duration, 3001)[1:-1]
    s, v, *_ = law(t)
    assert (v <= plan_with_rests.law(plan_with_rests.law.time_at(s))[1] * 1.012 + 1e-4).all()  # tolerance for the start
    assert law.duration == pytest.approx(current.law.duration, rel=0.01)


@pytest.mark.parametrize(("rate", "catch_up"), [(0.4, True), (0.4, False), (0.9, True)])
def test_replanning_for_a_horizon_moves_the_remaining_motion_earlier(plan_with_rests, followed, rate, catch_up, monkeypatch):
    """The motion continues unchanged after the horizon, earlier up to its rest: continuous, inside the limits, and never
    ahead of the plan.
    """
    moment = 0.3 / rate
    monkeypatch.setattr(plans, "HORIZON_S", moment)
    constraints, current, at = toy_constraints(plan_with_rests.path), followed.slower(rate), 0.5
    found, (rest, *others) = replan_horizon(constraints, current, at, plan_with_rests, catch_up, 0.0), current.rests
    gain = rest[0] - found.rests[0][0]
    assert gain > (0.2 if rate < 0.5 else 1e-4) and found.rests == ((rest[0] - gain, rest[1]), *others)
    t, joint = np.linspace(0.0, found.law.duration, 1000), at + moment - gain
    for times, later in ((t[t < at], 0.0), (t[(t > joint) & (t < rest[0] - gain)], gain), (t[t > rest[0]], 0.0)):
        np.testing.assert_allclose(found.law(times)[:3], current.law(times + later)[:3], atol=1e-7)
    for s in (at, joint):
        np.testing.assert_allclose(*found.law(np.array([[s - 1e-9], [s + 1e-9]]))[:3, :, 0].T, atol=1e-6)
    rest_of_it = found.law.segment(at, found.law.duration)
    assert worst(constraints, rest_of_it) < 1.0
    check_never_ahead(plan_with_rests, rest_of_it, at)
    assert replan_horizon(constraints, current, rest[0] - moment, plan_with_rests, catch_up, 0.0) is None


@pytest.mark.parametrize(("into", "offset", "until"), [(0.0, 0.0, 3.0), (0.3, -0.2, 3.2), (0.6, 0.5, None)])
def test_replanning_during_a_rest_keeps_its_planned_end(plan_with_rests, followed, into, offset, until):
    """The rest ends as planned, or at the time of replanning if that is later."""
    constraints, current = toy_constraints(plan_with_rests.path), followed
    at = current.rests[0][0] + into
    found = replan_from(constraints, current, at, plan_with_rests, True, offset)
    assert found.rests[0] == (pytest.approx(current.rests[0][0]), pytest.approx(at if until is None else until))
    assert found.rests[1][1] == pytest.approx(4.9 - offset, abs=1e-3) and len(found.rests) == 2
    assert worst(constraints, found.law) < 1.0 and found.law.duration == pytest.approx(6.5 - offset, abs=1e-2)
    np.testing.assert_allclose(found.law([at])[:3], current.law([at])[:3], atol=1e-9)


def test_plan_is_rejected_where_gravity_alone_exceeds_a_limit():
    plan = plan_from_waypoints(POINTS, TIMES)
    with pytest.raises(InputError, match=r"gravity alone takes .* of joint 1") as refused:
        follow_plan(toy_constraints(plan.path, effort=(4.0, 6.0)), plan)
    q = plan.path(np.linspace(0.0, plan.path.length, 5001))[0]
    assert f"takes {np.abs(5.0 * np.sin(q[:, 0])).max():.4g} of the 4 N m" in str(refused.value)


def test_gravity_check_finds_a_short_peak_on_a_long_path_ahead():
    """The path of 10 km has a detour of about one metre."""
    path = path_through(np.array([[0.0, 0.0], [0.0, 5003.0], [1.2, 5003.0], [0.0, 5003.0], [0.0, 1e4]]), stops=[1, 2, 3])
    held = 5.0 * np.sin(1.2)
    for share, wide in ((1.01, True), (0.999, False)):
        constraints = toy_constraints(path, effort=(held / share, 6.0))
        check_rest(constraints, 1.02 if wide else 1.0)
        check_rest(constraints, LEVEL, start=5100.0)
        with pytest.raises(InputError, match="gravity alone"):
            check_rest(constraints, LEVEL)


def test_slowed_plan_has_longer_law_and_rests():
    plan = plan_from_waypoints(POINTS[[0, 1, 1, 2]], np.array([0.0, 1.0, 2.0, 3.0])).slower(0.5)
    assert plan.law.duration == 6.0 and plan.rests == ((2.0, 4.0),)
    assert isinstance(plan.law, laws.TimeLaw)
