"""Limits by direction or position and limits of commanded effort rates in retiming and planning.

Oracle: the published formulas, written here independently, and Pinocchio's torque rate minus its gravity rate.
"""

from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError, ModelError, load
from rnea_ros.io import figures
from rnea_ros.model import robot_file
from rnea_ros.model.drives import VelocityLimits
from rnea_ros.trajectory.limit_utilization import LimitUtilization, added_rate, resolve_limits
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.plan_motion import commanded, plan_motion, velocity_by_position
from rnea_ros.trajectory.retiming import retime_motion
from support.oracles import PinocchioOracle
from support.scaling_cases import ARMS, urdf, waypoints

TIGHT, N_SAMPLES = 0.99, 4000
RR = {"version": 1, "gravity": [0.0, -9.81, 0.0]}


def arm_with(name, sections):
    return load(urdf(name), {"version": 1, **sections})


def sampled(motion):
    return motion(np.linspace(0.0, motion.duration, N_SAMPLES))


def rates_less_gravity(name, robot, motion):
    oracle = PinocchioOracle(urdf(name), robot)
    return np.array([oracle.torque_and_rate(*sample)[1] - oracle.gravity_and_rate(*sample[:2])[1] for sample in zip(*motion)])


@pytest.mark.parametrize("name", ARMS)
def test_retimed_motion_reaches_but_does_not_exceed_the_commanded_effort_rate_limit(name):
    bare = load(urdf(name))
    points = waypoints(bare, 6)
    motion = sampled(retime_motion(bare, points))
    most = 0.6 * np.abs(rates_less_gravity(name, bare, motion)).max(axis=0)
    limits = {joint: {"max_commanded_effort_rate": float(limit)}
              for joint, limit in zip(bare.joint_names, np.maximum(most, 1e-3))}
    robot = arm_with(name, {"limits": limits, "commanded_effort": {"contains": "without_gravity"}})
    found = retime_motion(robot, points)
    motion = sampled(found)
    used = np.abs(rates_less_gravity(name, robot, motion)) / robot.limits.commanded_effort_rate
    assert TIGHT < max(used.max(), 0.0) <= 1.0
    use = LimitUtilization.of(robot, resolve_limits(robot, None))
    mine = use(*robot.torque_and_rate(*motion), *motion)[:, [label[1] == "commanded_effort_rate" for label in use.labels]]
    np.testing.assert_allclose(mine, used, rtol=1e-9, atol=1e-9)
    assert [note for note in found.notes if "the rate of the joint torque without gravity" in note]
    same = arm_with(name, {"limits": {joint: {"max_effort_rate": limit["max_commanded_effort_rate"]}
                                      for joint, limit in limits.items()}})
    whole = sampled(retime_motion(same, points))
    jerk = motion[3]
    assert np.abs(whole[3] - jerk).max() > 1e-3 * np.abs(jerk).max()  # different from a limit on the total torque rate


def test_effort_rate_limit_applies_to_the_total_torque_for_all_conventions():
    """Regression: the total torque rate exceeded a user's limit by a factor of 1.19 with profile ur10e."""
    bare = load(urdf("ur5_robot"))
    points, rate = waypoints(bare, 6), 20.0 * np.maximum(bare.limits.effort, 1e-3)
    for contains in ("total", "without_gravity_and_friction"):
        robot = arm_with("ur5_robot", {"commanded_effort": {"contains": contains}})
        limits = replace(robot.limits, effort_rate=0.1 * rate)
        motion = sampled(retime_motion(robot, points, limits=limits))
        oracle = PinocchioOracle(urdf("ur5_robot"), robot)
        used = np.array([np.abs(oracle.torque_and_rate(*sample)[1]) / limits.effort_rate for sample in zip(*motion)])
        assert TIGHT < used.max() <= 1.0


def test_plot_shows_the_commanded_effort_rate_with_its_limit(monkeypatch, tmp_path):
    robot = rr({"joint1": {"max_commanded_effort_rate": 60.0}}, commanded_effort={"contains": "without_gravity"})
    motion, drawn = retime_motion(robot, [[-0.5, 0.4], [1.2, -0.6]]), []

    picture = figures.picture

    @contextmanager
    def kept(*given, **options):
        with picture(*given, **options) as figure:
            yield figure
            drawn.extend(figure.axes)

    monkeypatch.setattr(figures, "picture", kept)
    figures.draw_motion(tmp_path / "motion.png", robot, motion, robot.limits, added_rate(robot))
    (whole,), (commanded_rate,) = ([axis for axis in drawn[:5] if axis.get_title(loc="left").startswith(title)]
                                   for title in ("torque rate", "commanded torque rate"))
    t, curve = commanded_rate.lines[0].get_data()
    np.testing.assert_allclose(curve, rates_less_gravity("rr", robot, motion(t))[:, 0], atol=1e-9)
    assert sorted(line.get_ydata()[0] for line in commanded_rate.lines[1:]) == [-60.0, 60.0]
    assert len(whole.lines) == 1 and np.abs(whole.lines[0].get_ydata() - curve).max() > 1.0


def allowed(zone, cap, q):
    """Return the upper and lower velocity limit by the formula of libfranka's header."""
    o, k = zone["velocity_offset"], 2.0 * zone["deceleration_limit"]
    up = np.minimum(cap, np.maximum(0.0, -o + np.sqrt(np.maximum(0.0, k * (zone["upper_position_limit"] - q)))))
    down = np.maximum(-cap, np.minimum(0.0, o - np.sqrt(np.maximum(0.0, k * (q - zone["lower_position_limit"])))))
    return up, down


def zones_for(robot, points):
    """Return limits with ends just beyond the path, so that the motion must be slow near them."""
    q = path_through(points)(np.linspace(0.0, path_through(points).length, 400))[0]
    rng = np.random.default_rng(1)
    return {joint: {"max_velocity": 3.0, "velocity_by_position": {
        "velocity_offset": 0.2, "deceleration_limit": float(rng.uniform(2.0, 8.0)), "lower_position_limit": float(low) - 0.05,
        "upper_position_limit": float(high) + 0.05}}
        for joint, low, high in zip(robot.joint_names, q.min(axis=0), q.max(axis=0))}


@pytest.mark.parametrize("name", ARMS)
def test_retimed_motion_reaches_but_keeps_position_dependent_velocity_limits(name):
    bare = load(urdf(name))
    points = waypoints(bare, 8)
    limits = zones_for(bare, points)
    robot = arm_with(name, {"limits": limits})
    found = retime_motion(robot, points)
    motion = sampled(found)
    q, qd = motion[:2]
    used = []
    for k, joint in enumerate(robot.joint_names):
        up, down = allowed(limits[joint]["velocity_by_position"], 3.0, q[:, k])
        bound = np.where(qd[:, k] > 0.0, up, -down)
        used.append(np.abs(qd[:, k]) / np.maximum(bound, 1e-9))
    most = np.max(used, axis=0)
    assert most.max() <= 1.0 and TIGHT < max(most.max(), LimitUtilization.of(robot, robot.limits)(
        *robot.torque_and_rate(*motion), *motion).max()) <= 1.0
    loose = retime_motion(arm_with(name, {"limits": {joint: {"max_velocity": 3.0} for joint in limits}}), points)
    assert found.duration > loose.duration


def test_path_that_ends_too_near_a_position_limit_is_rejected():
    bare = load(urdf("seven_r"))
    points = waypoints(bare, 8)
    limits = zones_for(bare, points)
    for zone in (one["velocity_by_position"] for one in limits.values()):
        zone["upper_position_limit"] -= 0.05 - 0.5 * zone["velocity_offset"]**2 / (2.0 * zone["deceleration_limit"])
    with pytest.raises(InputError, match="so near to its end"):
        retime_motion(arm_with("seven_r", {"limits": limits}), points)


def test_retimed_motion_keeps_different_upper_and_lower_velocity_limits():
    bare = load(urdf("seven_r"))
    points = waypoints(bare, 2)
    limits = {joint: {"max_velocity": 2.0, "min_velocity": -0.4} for joint in bare.joint_names}
    robot = arm_with("seven_r", {"limits": limits})
    qd = sampled(retime_motion(robot, points))[1]
    assert TIGHT < max(qd.max() / 2.0, -qd.min() / 0.4) <= 1.0 and qd.max() > 0.4
    assert (robot.limits.velocity == 0.4).all()  # for users of a single symmetric limit


def rr(limits, **sections):
    return load(urdf("rr"), {**RR, **sections, "limits": limits})


def test_planned_motion_keeps_directed_velocity_limits():
    zone = {"velocity_offset": 0.1, "deceleration_limit": 1.0, "lower_position_limit": -0.6, "upper_position_limit": 1.3}
    robot = rr({"joint1": {"max_velocity": 3.0, "velocity_by_position": zone},
                "joint2": {"max_velocity": 4.0, "min_velocity": -1.0}})
    plan = plan_motion(robot, [-0.5, 0.4], [1.2, -0.6])
    q, qd, *_ = plan(np.linspace(0.0, plan.duration, N_SAMPLES))
    up, _ = allowed(zone, 3.0, q[:, 0])
    assert (qd[:, 0] <= up + 2e-3).all() and (qd[:, 0] > 0.98 * up - 2e-3).any()
    assert 0.98 < -qd[:, 1].min() < 1.002


def test_planned_motion_reaches_but_keeps_the_commanded_effort_rate_limit():
    limits = {joint: {"max_commanded_effort_rate": 60.0} for joint in ("joint1", "joint2")}
    robot = rr(limits, commanded_effort={"contains": "without_gravity"})
    plan = plan_motion(robot, [-0.5, 0.4], [1.2, -0.6])
    motion = plan(np.linspace(0.0, plan.duration, 1000))
    oracle = PinocchioOracle(urdf("rr"), robot)
    rates = np.array([oracle.torque_and_rate(*one)[1] - oracle.gravity_and_rate(*one[:2])[1] for one in zip(*motion)])
    np.testing.assert_allclose(commanded(robot).torque_and_rate(*motion)[1], rates, atol=1e-9)
    assert 0.98 < np.abs(rates).max() / 60.0 < 1.002
    assert [note for note in plan.notes if "the rate of the joint torque without gravity" in note]
    sticky = rr(limits, commanded_effort={"contains": "without_gravity_and_friction"},
                friction={"joint1": {"viscous": 3.0, "coulomb": 1.0}})
    np.testing.assert_allclose(commanded(sticky).torque_and_rate(*motion)[1], rates, atol=1e-9)


def test_derivatives_of_position_dependent_velocity_limits_match_differences():
    zone = {"velocity_offset": 0.1, "deceleration_limit": 1.0, "lower_position_limit": -0.6, "upper_position_limit": 1.3}
    robot = rr({"joint2": {"max_velocity": 3.0, "velocity_by_position": zone}})
    limits = VelocityLimits(robot.joint_names, robot.limits.velocity, robot.model.velocity_by_position)
    quantity = velocity_by_position(robot, limits)
    motion, h = np.random.default_rng(5).normal(size=(2, 3, robot.n)), 1e-6
    for order, table in enumerate(quantity.slope(*motion)):
        for joint in range(robot.n):
            step = np.zeros((2, 1, robot.n))
            step[order, 0, joint] = h
            slope = (quantity.value(*(motion + step)) - quantity.value(*(motion - step))) / (2.0 * h)
            np.testing.assert_allclose(table[..., joint], slope, rtol=1e-6, atol=1e-8)


def test_fr3_profile_has_the_velocity_limits_of_libfranka():
    """Limits at three positions of joint 4, with the numbers of the header."""
    limits = robot_file.read(robot_file.located("fr3")).section("limits")["fr3_joint4"]
    q = np.array([-3.0, -1.5, -0.2])
    up, down = allowed(limits["velocity_by_position"], limits["max_velocity"], q)
    np.testing.assert_allclose(up, np.minimum(2.62, np.maximum(0.0, -0.3 + np.sqrt(8.0 * (-0.1458 - q)))))
    np.testing.assert_allclose(down, np.maximum(-2.62, np.minimum(0.0, 0.3 - np.sqrt(8.0 * (q + 3.0481)))))


@pytest.mark.parametrize("given, said", [
    ({"has_velocity_limits": False, "min_velocity": -1.0}, "max_velocity is missing, which min_velocity needs"),
    ({"velocity_by_position": {"deceleration_limit": 1.0, "lower_position_limit": 1.0, "upper_position_limit": 0.0},
      "max_velocity": 1.0}, "lower_position_limit is not below"),
    ({"min_velocity": 1.0}, "min_velocity")])
def test_contradictory_directed_limits_are_rejected(given, said):
    with pytest.raises(ModelError) as caught:
        arm_with("seven_r", {"limits": {"joint1": given}})
    assert said in str(caught.value)
