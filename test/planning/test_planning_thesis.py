"""The two arms of the thesis: optima by another formulation, torque patterns, and durations under more limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

from rnea_ros import Loads, Robot, plan_motion
from rnea_ros.planning import PlanSettings
from support.planning_cases import PR_GOAL, PR_START, RR_GOAL, RR_OPTIMUM, RR_START, both_sides, robot, rr_plan, rr_torque

SWITCHES = ((0.1959272698,), (0.0457093212, 0.2353004314))  # s, by shooting at the switching times
STEPS = 2  # Runge-Kutta steps per interval


def torques(arm: Robot, plan, per_span: int = 50):
    t = both_sides(plan, per_span)
    return t, *arm.torque_and_rate(*plan(t))


def starts_and_ends(plan, start, goal):
    q, qd, _, _ = plan(np.array([0.0, plan.duration]))
    np.testing.assert_allclose(q, [start, goal], atol=1e-8)
    np.testing.assert_allclose(qd, 0.0, atol=1e-7)


def pr_torque(q, qd, qdd, cos=np.cos, sin=np.sin):
    """Return the torques of the slider arm in closed form."""
    c, m, inertia = 0.2, 0.5, 0.1
    return (2.0 * m * qdd[0] + m * c * cos(q[1]) * qdd[1] - m * c * sin(q[1]) * qd[1] ** 2,
            m * c * cos(q[1]) * qdd[0] + (m * c**2 + inertia) * qdd[1])


def optimum(torque: Callable, start, goal, rate: float | None = None, u: float = 0.0, count: int = 60) -> tuple[float, float]:
    """Return (duration, cost) of the motion from rest to rest that minimises the integral of 1 - u + u tau.tau, |tau| <= 10.

    Forward dynamics are in closed form; multiple shooting with Runge-Kutta steps; torques are piecewise constant, or piecewise
    linear where their rate is limited.
    """
    acceleration = forward_dynamics(torque)
    problem = ca.Opti()
    T, state, tau = problem.variable(), problem.variable(4, count + 1), problem.variable(2, count + 1)
    h = T / count
    for k in range(count):
        slope = (tau[:, k + 1] - tau[:, k]) / h if rate else ca.MX.zeros(2)
        problem.subject_to(state[:, k + 1] == runge_kutta(acceleration, state[:, k], tau[:, k], slope, h))
        if rate:
            problem.subject_to(problem.bounded(-rate * h, tau[:, k + 1] - tau[:, k], rate * h))
    problem.subject_to(problem.bounded(-10.0, ca.vec(tau), 10.0))
    for k, q in ((0, start), (count, goal)):
        problem.subject_to(state[:, k] == ca.vertcat(*q, 0.0, 0.0))
        if rate:
            problem.subject_to(tau[:, k] == 0.0)
    cost = T * (1.0 - u) + u * h * ca.sumsqr(tau[:, :count])
    problem.subject_to(T >= 0.05)
    problem.minimize(cost)
    problem.set_initial(T, 0.6)
    problem.set_initial(state, np.linspace([*start, 0.0, 0.0], [*goal, 0.0, 0.0], count + 1).T)
    problem.solver("ipopt", {"print_time": False, "expand": True}, {"print_level": 0, "sb": "yes", "max_iter": 1000})
    found = problem.solve()
    return float(found.value(T)), float(found.value(cost))


def forward_dynamics(torque):
    """Return the function (q, qd, tau) -> qdd of a torque function that is linear in qdd."""
    q, qd, qdd, tau = (ca.SX.sym(name, 2) for name in ("q", "qd", "qdd", "tau"))
    error = ca.vertcat(*torque(q, qd, qdd, ca.cos, ca.sin)) - tau
    M = ca.jacobian(error, qdd)
    return ca.Function("qdd", [q, qd, tau], [-ca.solve(M, ca.substitute(error, qdd, ca.SX.zeros(2)))])


def runge_kutta(acceleration, x, tau, slope, h):
    def f(z, t):
        return ca.vertcat(z[2:], acceleration(z[:2], z[2:], tau + slope * t))

    step = h / STEPS
    for k in range(STEPS):
        t = k * step
        k1 = f(x, t)
        k2 = f(x + step / 2 * k1, t + step / 2)
        k3 = f(x + step / 2 * k2, t + step / 2)
        k4 = f(x + step * k3, t + step)
        x = x + step / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return x


def test_fastest_motion_of_the_two_link_arm_takes_the_optimal_time():
    plan = rr_plan()
    assert plan.duration == pytest.approx(RR_OPTIMUM, rel=5e-3) and plan.duration > RR_OPTIMUM
    assert plan.duration < 1.001 * RR_OPTIMUM  # reached accuracy
    starts_and_ends(plan, RR_START, RR_GOAL)
    t, tau, _ = torques(robot("rr"), plan)
    closed = np.stack(rr_torque(*(np.moveaxis(x, -1, 0) for x in plan(t)[:3])), axis=-1)
    np.testing.assert_allclose(tau, closed, atol=1e-8)
    assert np.abs(tau).max() <= 10.0 * (1.0 + 1e-6)


def test_fastest_motion_has_bang_bang_torques():
    plan = rr_plan()
    t, tau, _ = torques(robot("rr"), plan)
    assert np.sign(tau[0]).tolist() == [1.0, -1.0]
    for joint, times in enumerate(SWITCHES):
        at = np.flatnonzero(np.diff(np.sign(tau[:, joint])))
        np.testing.assert_allclose(t[at], times, atol=3e-3)
    even = robot("rr").inverse_dynamics(*plan(np.linspace(0.0, plan.duration, 2001))[:3])
    assert np.mean(np.abs(even) > 9.9) > 0.93  # on a bound nearly always


def test_evenly_spaced_knots_give_longer_durations():
    """More than 30 evenly spaced knots are needed for the thesis's 0.392 s if limits hold everywhere."""
    arm = robot("rr")
    for points, expected in ((6, 0.4212), (10, 0.3992), (20, 0.3930)):
        plan = plan_motion(arm, RR_START, RR_GOAL, settings=PlanSettings(spans=points - 3, refinements=0), time_tolerance=0.0)
        assert plan.control_points == points
        assert plan.duration == pytest.approx(expected, rel=1e-3)


def test_time_and_effort_optimum_of_the_slider_matches_the_thesis():
    plan = plan_motion(robot("pr"), PR_START, PR_GOAL, time=0.99, effort=0.01, time_tolerance=0.0)
    starts_and_ends(plan, PR_START, PR_GOAL)
    duration, cost = optimum(pr_torque, PR_START, PR_GOAL, u=0.01)
    assert plan.duration == pytest.approx(0.585788, abs=1e-4) and plan.duration == pytest.approx(duration, rel=2e-4)
    assert plan.objective == pytest.approx(0.77324, abs=1e-4) and plan.objective == pytest.approx(cost, rel=2e-4)
    t, tau, _ = torques(robot("pr"), plan)
    np.testing.assert_allclose(tau[[0, -1], 0], [9.7, -9.7], atol=0.1)
    np.testing.assert_allclose(tau[[0, -1], 1], [-1.9, 2.0], atol=0.1)
    assert plan.objective == pytest.approx(np.trapezoid(0.99 + 0.01 * (tau**2).sum(axis=1), t), rel=1e-4)


def test_fastest_motion_of_the_slider_takes_the_optimal_time():
    plan = plan_motion(robot("pr"), PR_START, PR_GOAL, time_tolerance=0.0)
    assert plan.duration == pytest.approx(0.472535, rel=1e-3)


def test_torque_rate_limit_is_kept_everywhere_and_increases_the_duration():
    plan = rr_plan(500.0)
    nodes_per_span = plan.curve.degree + 2
    t, tau, rate = torques(robot("rr"), plan, 10 * nodes_per_span)
    assert np.abs(rate).max() <= 500.0 * (1.0 + 1e-6) and np.abs(tau).max() <= 10.0 * (1.0 + 1e-6)
    assert np.abs(rate).max() > 499.0
    np.testing.assert_allclose(np.diff(tau[:, 0]), 0.5 * (rate[1:, 0] + rate[:-1, 0]) * np.diff(t), atol=2e-3)
    np.testing.assert_allclose(tau[[0, -1]], 0.0, atol=1e-7)  # it rests at both ends: no torque jumps there
    shot, _ = optimum(rr_torque, RR_START, RR_GOAL, rate=500.0)
    assert plan.duration == pytest.approx(shot, rel=2e-3)
    assert rr_plan().duration < plan.duration < rr_plan(200.0).duration


def test_fourth_degree_plan_has_continuous_torque_rates():
    arm = robot("rr")
    plan = plan_motion(arm, RR_START, RR_GOAL, limits=replace(arm.limits, effort_rate=np.full(2, 300.0)),
                       settings=PlanSettings(degree=4))
    breaks = plan.curve.breaks[1:-1] * plan.duration
    before, after = (arm.torque_and_rate(*plan(breaks + d))[1] for d in (-1e-7, 1e-7))
    np.testing.assert_allclose(before, after, atol=1.0)
    assert max(plan.excess.values()) <= 1e-6


def test_joint_force_limits_are_kept_and_increase_the_duration():
    arm = robot("rr")
    t = np.linspace(0.0, 1.0, 2001)

    def largest(plan):
        return np.linalg.norm(arm.joint_wrenches(*plan(t * plan.duration)[:3]).wrench[..., :3], axis=-1).max(axis=0)

    free = rr_plan()
    limit = 0.7 * largest(free)[0]
    held = plan_motion(arm, RR_START, RR_GOAL, joint_force={"joint1": limit}, settings=PlanSettings(refinements=2))
    assert largest(held)[0] <= limit * (1.0 + 1e-6) and largest(held)[0] > 0.99 * limit
    assert held.duration > free.duration
    assert held.excess["squared joint force"] <= 1e-6


def test_given_duration_and_duration_range_are_kept():
    arm = robot("rr")
    given = plan_motion(arm, RR_START, RR_GOAL, time=0.0, effort=1.0, duration=0.6)
    assert given.duration == pytest.approx(0.6, rel=1e-9)
    t = np.linspace(0.0, 0.6, 4001)
    assert given.objective == pytest.approx(np.trapezoid((arm.inverse_dynamics(*given(t)[:3]) ** 2).sum(axis=1), t), rel=1e-4)
    assert max(given.excess.values()) < -0.1  # slow enough to need no limit
    late = plan_motion(arm, RR_START, RR_GOAL, duration=(0.5, 0.7), settings=PlanSettings(refinements=0), time_tolerance=0.0)
    assert late.duration == pytest.approx(0.5, rel=1e-6)


def test_plan_with_given_duration_and_no_cost_minimizes_jerk():
    """Oracle: minimum squared jerk from rest to rest with free accelerations has the integral 120 d^2 / T^5."""
    plan = plan_motion(robot("rr"), RR_START, RR_GOAL, duration=0.8, settings=PlanSettings(refinements=0))
    t = np.linspace(0.0, plan.duration, 4001)
    assert plan.duration == pytest.approx(0.8, rel=1e-9) and plan.objective == pytest.approx(0.8, rel=1e-9)
    np.testing.assert_allclose(np.trapezoid(plan(t)[3] ** 2, t, axis=0), 120.0 / 0.8**5, rtol=0.01)


def test_plan_between_moving_states_is_as_fast_as_the_plan_they_are_from():
    """The states are taken from a plan from rest to rest."""
    arm, whole = robot("rr"), rr_plan(500.0)
    a, b = 0.3 * whole.duration, 0.8 * whole.duration
    q, qd, qdd, _ = plan_at = whole(np.array([a, b]))
    limits = replace(arm.limits, effort_rate=np.full(2, 500.0))
    part = plan_motion(arm, np.stack((q[0], qd[0], qdd[0])), np.stack((q[1], qd[1], qdd[1])), limits=limits,
                       time_tolerance=0.0)
    assert part.duration == pytest.approx(b - a, rel=5e-3)
    ends = part(np.array([0.0, part.duration]))
    for ours, theirs in zip(ends[:3], plan_at[:3]):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6)


def test_external_loads_are_part_of_the_planned_torques():
    arm = robot("pr")
    push = {"link2": [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]}
    plan = plan_motion(arm, PR_START, PR_GOAL, loads=Loads(world_wrenches=push), settings=PlanSettings(refinements=2))
    t = np.linspace(0.0, plan.duration, 3001)
    loaded = arm.inverse_dynamics(*plan(t)[:3], loads=Loads(world_wrenches=push))
    assert 9.9 < np.abs(loaded).max() <= 10.0 * (1.0 + 1e-6)
    assert np.abs(arm.inverse_dynamics(*plan(t)[:3])).max() > 12.0
