"""Plans with waypoints, clearance to obstacles, or durations that are too short."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError, Robot, plan_motion
from rnea_ros.planning import PlanningError, PlanSettings, Quantity, planner
from rnea_ros.trajectory.clearance import Clearance, Obstacle, Sphere
from support.planning_cases import RR_GOAL, RR_START, robot, rr_plan

COARSE = PlanSettings(refinements=0)
TIP = (0.4, 0.0, 0.0)


def rr(start=RR_START, goal=RR_GOAL, **given):
    return plan_motion(robot("rr"), start, goal, **{"settings": COARSE, **given})


def tip(plan, samples=2001):
    q = plan(np.linspace(0.0, plan.duration, samples))[0]
    return robot("rr").link_pose("link2", q, TIP).p


def test_duration_below_the_velocity_bound_is_rejected_without_a_solver(monkeypatch):
    monkeypatch.setattr(planner, "solve_program", lambda *given, **options: pytest.fail("a solver was asked"))
    with pytest.raises(PlanningError, match=r"duration is 0.04 s at most; joint1 alone takes 0\.05 s from start to goal at "
                                            r"its largest velocity, 20; no motion is shorter"):
        rr(duration=0.04)
    back = replace(robot("rr").limits, velocity=np.array([np.nan, 5.0]))
    with pytest.raises(PlanningError, match=r"joint2 alone takes 0\.2 s .* largest velocity, -5"):
        rr(RR_GOAL, RR_START, limits=back, duration=(0.1, 0.19))


def test_reversed_duration_range_is_rejected():
    with pytest.raises(InputError, match=r"duration is \[2, 1\]: the first is the shortest, .* give \[1, 2\]"):
        rr(duration=(2.0, 1.0))


def test_infeasible_duration_is_rejected_with_the_shortest_one():
    with pytest.raises(PlanningError, match=r"starting from 2 guesses: the fastest takes 0\.39\d* s, 0\.3 s are allowed; the "
                                            r"nearest one has torque of joint\d .* of 0\.3 s"):
        rr(duration=0.3, settings=replace(COARSE, tries=2))


def test_posture_that_cannot_be_held_is_named_in_the_error():
    """The pendulum is too slow to swing over the horizontal, where its motor cannot hold it."""
    body = '<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>'
    weak = Robot.from_urdf(f'''<robot name="pendulum"><link name="a"/>
        <link name="b"><inertial><origin xyz="1 0 0"/>{body}</inertial></link>
        <joint name="swing" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 -1 0"/>
        <limit lower="-4" upper="4" effort="7" velocity="1"/></joint></robot>''')
    with pytest.raises(PlanningError, match=r"no motion found.* torque of swing is 9\.8\d* where it is held still, outside "
                                            r"its limits -7 to 7"):
        plan_motion(weak, [-1.0], [1.0], settings=replace(COARSE, tries=1))


def test_plans_are_ranked_after_refinement(monkeypatch):
    """A coarse plan that is only apparently faster does not prevent the refinement of other plans."""
    coarse = planner.PlanSearch.coarse_drafts

    def flattered(self, guesses):
        few = PlanSettings(spans=3, refinements=0)
        drafts = coarse(self, planner.initial_guesses(self.problem, np.linspace(0.0, 1.0, few.spans + 1), few.degree))
        drafts[0].objective *= 0.1
        return drafts + coarse(self, guesses)

    best = rr()
    monkeypatch.setattr(planner.PlanSearch, "coarse_drafts", flattered)
    assert rr().duration == pytest.approx(best.duration, rel=1e-5)


def test_plan_passes_waypoints_at_given_or_free_times():
    waypoints_ = [(0.3, -1.9), (0.7, -0.9)]
    given = rr(waypoints=dict(zip((0.4, 0.7), waypoints_)))
    np.testing.assert_allclose(given(np.array([0.4, 0.7]) * given.duration)[0], waypoints_, atol=1e-6)
    chosen = rr(waypoints=waypoints_)
    q = chosen(np.linspace(0.0, chosen.duration, 20001))[0]
    passed = [np.abs(q - waypoint).max(axis=1).argmin() for waypoint in waypoints_]
    assert passed[0] < passed[1]
    np.testing.assert_allclose(q[passed], waypoints_, atol=1e-3)
    assert max(chosen.excess.values()) <= 1e-6 and chosen.duration > rr_plan().duration
    there_and_back = rr(goal=RR_START, waypoints=[RR_GOAL])
    assert there_and_back.duration > 1.5 * rr_plan().duration


@pytest.mark.parametrize(("given", "message"), [
    ([(0.3, -1.9, 0.0)], r"waypoints has shape \(1, 3\)"), ({0.5: RR_GOAL, 0.4: RR_START}, "shares that rise from 0 to 1"),
    ({1.0: RR_START}, "shares that rise"), ([RR_START], "the same pose; leave one out"),
])
def test_invalid_waypoints_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        rr(waypoints=given)


def test_search_starts_from_the_given_guess():
    known = rr()
    again = rr(guess=known)
    assert again.duration == pytest.approx(known.duration, rel=1e-4)
    other = rr(guess=[(0.3, -0.5), (1.2, 0.5)], settings=replace(COARSE, tries=1))
    assert max(other.excess.values()) <= 1e-6


def test_user_defined_quantities_are_limited():
    """A user-defined function of the joints keeps the tip on one side of a line."""
    arm = robot("rr")
    free = tip(rr())[:, 0]
    line = 0.5 * (free.min() + min(free[0], free[-1]))
    side = Quantity("side", ["tip"], 0, lambda q: arm.link_pose("link2", q, TIP).p[:, :1],
                    lambda q: [arm.jacobian("link2", q, TIP)[:, :1]], np.array([line]), np.array([np.inf]))
    plan = rr(quantities=[side])
    assert tip(plan)[:, 0].min() >= line - 1e-5 > free.min() and abs(plan.excess["side"]) < 1e-4


def test_spheres_keep_apart_from_obstacles():
    way = tip(rr(), 201)
    stone = Obstacle(way[100] + (0.02, 0.03, 0.0), 0.05)
    plan = rr(clearance=Clearance([Sphere("link2", TIP, 0.05)], [stone], margin=0.01))
    distance = np.linalg.norm(tip(plan) - stone.center, axis=1)
    assert 0.11 - 1e-6 < distance.min() < 0.1101 and plan.duration > rr().duration
    with pytest.raises(PlanningError, match=r"goal: squared distance to obstacles of sphere 0 on link2 from obstacle 0 is .* "
                                            r"there, outside its limits 0.01 to inf"):
        rr(clearance=Clearance([Sphere("link2", TIP, 0.05)], [Obstacle(way[-1], 0.05)]))


def test_spheres_keep_apart_from_each_other():
    """The spheres are on tip and base of a two-link arm, which are not adjacent links."""
    ends = (0.0, -2.4), (0.0, 2.4)
    near, start = (np.linalg.norm(tip(rr(*ends)), axis=1)[k] for k in (slice(None), 0))
    reach = 0.5 * (near.min() + start)
    shape = [Sphere("base_link", (0.0, 0.0, 0.0), reach - 0.05), Sphere("link2", TIP, 0.05)]
    plan = rr(*ends, clearance=Clearance(shape))
    assert np.linalg.norm(tip(plan), axis=1).min() == pytest.approx(reach, rel=1e-5)


@pytest.mark.parametrize(("given", "message"), [
    (Clearance([Sphere("hand", TIP, 0.1)]), "link 'hand' is not in robot"),
    (Clearance([Sphere("link2", TIP, -0.1)]), "radius is -0.1; a number from zero"),
    (Clearance([Sphere("link2", TIP[:2], 0.1)]), "center of a sphere is .* 3 finite numbers"),
    (Clearance([Sphere("link2", TIP, 0.1)], pairs=[(0, 1)]), r"pairs has \(0, 1\); two different numbers from 0 to 0"),
])
def test_invalid_clearances_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        rr(clearance=given)
