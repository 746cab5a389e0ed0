"""Point-to-point motions of arms with six and seven joints: limits of torque, torque rate and velocity, by Pinocchio."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, Robot, plan_motion
from rnea_ros.planning import PlanSettings
from support.planning_cases import both_sides, robot, urdf

COARSE = PlanSettings(spans=8, refinements=1)  # accuracy of the limits does not change


@cache
def planned(name: str, swing: float | None = 0.1, effort: float = 0.0):
    """Plan between two random poses; torque-rate limits allow a full change of torque in `swing` seconds."""
    arm = robot(name)
    rng = np.random.default_rng(1)
    low, high = np.maximum(arm.limits.lower, -1.5), np.minimum(arm.limits.upper, 1.5)
    start, goal = rng.uniform(low, high, (2, arm.n))
    rate = np.full(arm.n, np.nan) if swing is None else 2.0 * arm.limits.effort / swing
    limits = replace(arm.limits, effort_rate=rate)
    plan = plan_motion(arm, start, goal, time=1.0 - effort, effort=effort, limits=limits, settings=COARSE, time_tolerance=0.0)
    return arm, limits, plan, start, goal


def available(name: str) -> str:
    if urdf(name) is None:
        pytest.skip(f"no {name}.urdf here")
    return name


@pytest.mark.parametrize("name", ["seven_r", "ur5_robot", "panda"])
def test_planned_limits_hold_according_to_pinocchio(name):
    oracles = pytest.importorskip("support.oracles")
    arm, limits, plan, start, goal = planned(available(name))
    oracle = oracles.PinocchioOracle(urdf(name), arm)
    t = both_sides(plan, 20)
    motion = plan(t)
    tau, rate = (np.array(table) for table in zip(*(oracle.torque_and_rate(*state) for state in zip(*motion))))
    shares = {"tau": np.abs(tau) / limits.effort, "rate": np.abs(rate) / limits.effort_rate,
              "speed": np.abs(motion[1]) / limits.velocity}
    for table in shares.values():
        assert table.max() <= 1.0 + 1e-5
    assert max(table.max() for table in shares.values()) > 0.999
    assert (motion[0] >= limits.lower - 1e-6).all() and (motion[0] <= limits.upper + 1e-6).all()
    np.testing.assert_allclose([motion[0][0], motion[0][-1]], [start, goal], atol=1e-8)
    assert np.abs([motion[1][0], motion[1][-1], motion[2][0], motion[2][-1]]).max() < 1e-6
    assert not [note for note in plan.notes if "no limits known" not in note]


def test_duration_grows_with_limits_and_effort_weight():
    name = "stanford"
    limited, free, saving = (planned(name, *how)[2] for how in ((0.1,), (None,), (0.1, 1e-4)))
    assert free.duration < limited.duration < saving.duration
    arm = robot(name)
    spent = []
    for plan in (limited, saving):
        t = np.linspace(0.0, plan.duration, 4001)
        spent.append(np.trapezoid((arm.inverse_dynamics(*plan(t)[:3]) ** 2).sum(axis=1), t))
    assert saving.objective == pytest.approx(0.9999 * saving.duration + 1e-4 * spent[1], rel=1e-3)
    assert saving.objective < 0.9999 * limited.duration + 1e-4 * spent[0]


def test_joints_without_active_limits_move_with_nearly_minimal_jerk():
    """Joint 1 moves far and its limits are active; the other joints move little.

    Oracle: the least integral of squared jerk from rest to rest without accelerations at the ends is 720 d^2 / T^5 (Flash and
    Hogan 1985); limits by Pinocchio.
    """
    oracles, arm = pytest.importorskip("support.oracles"), robot("seven_r")
    start, way = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]), np.array([1.2, 0.3, -0.3, 0.3, 0.3, -0.3, 0.3])
    limits = replace(arm.limits, effort_rate=np.where(np.arange(7) < 3, 20.0 * arm.limits.effort, np.nan))
    shares, durations = [], []
    for tolerance in ({"time_tolerance": 0.0}, {}):
        plan = plan_motion(arm, start, start + way, limits=limits, settings=PlanSettings(spans=6, refinements=0), **tolerance)
        t = np.linspace(0.0, plan.duration, 2001)
        shares.append(np.trapezoid(plan(t)[3] ** 2, t, axis=0) / (720.0 * way**2 / plan.duration**5))
        durations.append(plan.duration)
    assert durations[0] < durations[1] <= 1.005 * durations[0] * (1.0 + 1e-9)
    assert shares[0][1:].min() > 5.0 and shares[1][1:].max() < 1.2
    t = both_sides(plan, 20)
    motion = plan(t)
    oracle = oracles.PinocchioOracle(urdf("seven_r"), arm)
    tau, rate = np.swapaxes([oracle.torque_and_rate(*state) for state in zip(*motion)], 0, 1)
    for values, limit in ((tau, limits.effort), (rate, limits.effort_rate), (motion[1], limits.velocity)):
        assert np.nanmax(np.abs(values) / limit) <= 1.0 + 1e-5
    assert (motion[0] >= limits.lower - 1e-6).all() and (motion[0] <= limits.upper + 1e-6).all()
    np.testing.assert_allclose([motion[0][0], motion[0][-1]], [start, start + way], atol=1e-8)


def seven_joint_arm(rng: np.random.Generator) -> Robot:
    """Return a light arm with alternating axes and random masses and centers of mass."""
    axes, heights = ("0 0 1", "0 1 0", "0 0 1", "0 -1 0", "0 0 1", "0 1 0", "0 0 1"), (0.16, 0.2, 0.2, 0.22, 0.18, 0.22, 0.08)
    efforts, speeds = (320, 320, 176, 176, 110, 40, 40), (1.48, 1.48, 1.75, 1.31, 2.27, 2.36, 2.36)
    masses, text = np.array([4.0, 4.0, 3.0, 2.7, 1.7, 1.8, 0.5]) * rng.uniform(0.7, 1.4, 7), '<link name="l0"/>'
    for k, (m, h) in enumerate(zip(masses, (*heights[1:], 0.08))):
        x, y, _ = rng.normal(size=3) * 0.015
        across, along = m * (h * h / 12.0 + 0.0009) * 1.5, m * 0.0027
        text += (f'<joint name="j{k}" type="revolute"><parent link="l{k}"/><child link="l{k + 1}"/><axis xyz="{axes[k]}"/>'
                 f'<origin xyz="0 0 {heights[k]}"/><limit lower="-2.9" upper="2.9" effort="{efforts[k]}" '
                 f'velocity="{speeds[k]}"/></joint><link name="l{k + 1}"><inertial><origin xyz="{x} {y} {h / 2.0}"/>'
                 f'<mass value="{m}"/><inertia ixx="{across}" iyy="{across}" izz="{along}" ixy="0" ixz="0" iyz="0"/>'
                 '</inertial></link>')
    return Robot.from_urdf(f'<robot name="arm">{text}</robot>')


@pytest.mark.parametrize("seed", [3, pytest.param(5, marks=pytest.mark.campaign)])
def test_smooth_plan_takes_no_longer_than_tolerance_allows(seed):
    """The tolerance refers to the fastest motion that is found, also with few knots.

    Joints without a torque-rate limit oscillate in the fastest motion and move directly with more time. Oracles: the plan
    with tolerance zero, and the distance from start to goal.
    """
    rng = np.random.default_rng(seed)
    arm = seven_joint_arm(np.random.default_rng(seed))
    start, way = rng.uniform(-1.0, 1.0, 7), rng.uniform(-1.0, 1.0, 7) * [1.2, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6]
    limits = replace(arm.limits, effort_rate=np.array([600.0, 600.0, 300.0, *[np.nan] * 4]))
    fastest, smooth, slower = (plan_motion(arm, start, start + way, limits=limits, time_tolerance=tolerance)
                               for tolerance in (0.0, 0.005, 0.2))
    assert smooth.duration <= 1.005 * fastest.duration and slower.duration <= 1.2 * fastest.duration
    surplus = []
    for plan in (fastest, smooth, slower):
        t = both_sides(plan, 20)
        q, qd, qdd, qddd = plan(t)
        rate = arm.torque_and_rate(q, qd, qdd, qddd)[1]
        assert np.nanmax(np.abs(rate) / limits.effort_rate) <= 1.0 + 1e-5
        surplus.append(np.abs(np.diff(q, axis=0)).sum(axis=0) - np.abs(way))
    assert surplus[1].max() > 0.1 and surplus[2].max() < 0.05


def test_joints_with_low_torque_weight_do_not_oscillate():
    """Very small torque weights leave joints undetermined, as minimum time alone does.

    Oracles: a joint moves at least from start to goal; torques for the cost are from Pinocchio.
    """
    oracles, arm = pytest.importorskip("support.oracles"), robot("seven_r")
    start, way = np.array([0.0, 0.0, 0.0, -1.5, 0.0, 1.5, 0.0]), np.array([1.2, 0.3, -0.3, 0.3, 0.3, -0.3, 0.3])
    limits = replace(arm.limits, effort_rate=np.where(np.arange(7) < 3, 20.0 * arm.limits.effort, np.nan))
    oracle = oracles.PinocchioOracle(urdf("seven_r"), arm)
    costs, ways = [], []
    for tolerance in ({"time_tolerance": 0.0}, {}):
        settings = PlanSettings(spans=6, refinements=1)
        plan = plan_motion(arm, start, start + way, limits=limits, effort=1e-8, settings=settings, **tolerance)
        t = np.linspace(0.0, plan.duration, 2001)
        motion = plan(t)
        tau = np.array([oracle.torque_and_rate(*state)[0] for state in zip(*motion)])
        costs.append(np.trapezoid(1.0 + 1e-8 * (tau**2).sum(axis=1), t))
        ways.append(np.abs(np.diff(motion[0], axis=0)).sum(axis=0) / np.abs(way))
        assert plan.objective == pytest.approx(costs[-1], rel=1e-6) and max(plan.excess.values()) <= 1e-6
    assert ways[0].max() > 1.5 and ways[1].max() < 1.05
    assert costs[1] <= 1.005 * costs[0]


def test_repeated_planning_gives_an_identical_plan():
    arm, limits, plan, start, goal = planned("stanford", None)
    again = plan_motion(arm, start, goal, limits=limits, settings=COARSE, time_tolerance=0.0)
    assert np.array_equal(again.curve.points, plan.curve.points) and again.iterations == plan.iterations


def test_motions_of_trees_with_mimic_joints_keep_the_limits():
    """Torques of the followed joint include the weight of its mimic joints."""
    oracles = pytest.importorskip("support.oracles")
    tree = robot("branched")
    start, goal = (np.fmin(np.fmax(np.full(tree.n, x), tree.limits.lower), tree.limits.upper) for x in (0.0, 0.3))
    plan = plan_motion(tree, start, goal, settings=COARSE)
    oracle = oracles.PinocchioOracle(urdf("branched"), tree)
    tau = np.array([oracle.torque_and_rate(*state)[0] for state in zip(*plan(both_sides(plan, 10)))])
    assert 0.99 < np.nanmax(np.abs(tau) / tree.limits.effort) <= 1.0 + 1e-5 or plan.excess["velocity"] > -1e-6
    assert max(plan.excess.values()) <= 1e-6


def test_robots_with_free_base_or_without_joints_are_rejected():
    free = Robot.from_urdf(urdf("branched"), base="floating")
    with pytest.raises(InputError, match=r"the base of robot 'branched' is floating.*base: fixed"):
        plan_motion(free, np.zeros(free.n), np.ones(free.n))
    rigid = Robot.from_urdf('<robot name="stone"><link name="a"/></robot>')
    with pytest.raises(InputError, match="robot 'stone' has no joint that moves: there is nothing to plan"):
        plan_motion(rigid, (), ())
