"""Retimed motions of every kind of robot reach and keep limits of torque and torque rate.

Oracles: Pinocchio with multipliers, with rotors as bodies, and with rotated gravity.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("pinocchio")

from rnea_ros import BaseState, InputError, Robot, load, plan_motion
from rnea_ros.trajectory.constraints import Constraints, torque_terms
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics, default_base, link_side, unenforceable_limits
from rnea_ros.trajectory.retiming import retime_motion
from rnea_ros.trajectory.sample_torques import TorqueStream
from support.machines import LoopOracle
from support.oracles import PinocchioOracle, along, difference, worst
from support.parallel_machines import planar_3rrr
from support.robot_kinds import ARM, BASE, FIVE_BAR, GRAVITY, case
from support.rotor_trees import four_joints

URDF = Path(__file__).resolve().parents[2] / "urdf"
N_SAMPLES = 4000
TIGHT = 0.99  # least utilization of the binding limit
POINTS = {"five_bar": [[2.0, 1.0], [1.7, 1.2], [1.9, 0.8]],
          "palletiser": [[0.0, 0.0, 0.0, 0.0], [0.5, 0.3, 1.0, -0.2], [1.0, -0.2, 0.5, 0.3], [0.6, 0.4, -1.0, 0.1]]}


def both(name, **options):
    return load(URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml", **options)


def limited(robot, points, base=None):
    """Return limits of torque, torque rate and speed that can all bind: gravity uses 60 % of the torque limit."""
    path, still = path_through(np.asarray(points, dtype=float)), np.zeros(robot.n)
    side = link_side(robot, base)
    gravity = np.max([np.abs(side.gravity(q)[:robot.n]) for q in path(np.linspace(0.0, path.length, 40))[0]], axis=0)
    effort = np.maximum(gravity, 0.1 * gravity.max()) / 0.6
    return replace(robot.limits, effort=effort, effort_rate=20.0 * effort, velocity=still + 2.0, acceleration=still + 40.0)


def used(side, motion, limits):
    """Return the largest utilization of each limit at N_SAMPLES instants, and the samples."""
    stream = TorqueStream(side)
    _, qd, qdd, _ = samples = motion(np.linspace(0.0, motion.duration, N_SAMPLES))
    tau, rate = map(np.array, zip(*(stream(*sample)[:2] for sample in zip(*samples))))
    shares = {name: np.nanmax(np.abs(values) / getattr(limits, name)) for name, values in (
        ("effort", tau), ("effort_rate", rate), ("velocity", qd), ("acceleration", qdd))}
    return shares, (tau, rate), samples


def check(side, motion, limits):
    shares, *rest = used(side, motion, limits)
    assert max(shares.values()) <= 1.0 and max(shares["effort"], shares["effort_rate"]) > TIGHT, shares
    return rest


# ------------------------------------------------------------------ closed loops, platforms


@pytest.mark.parametrize("name", POINTS)
def test_retimed_motion_of_closed_loops_keeps_its_limits(name):
    """Torque and rate are compared with Pinocchio with multipliers."""
    robot = both(name)
    limits = limited(robot, POINTS[name])
    motion = retime_motion(robot, POINTS[name], limits=limits)
    (tau, rate), samples = check(robot, motion, limits)
    content = pytest.importorskip("yaml").safe_load((URDF / f"{name}.robot.yaml").read_text())["loops"]
    oracle = LoopOracle((URDF / f"{name}.urdf").read_text(), {"loops": content | {"active": robot.joint_names}},
                        robot.tree.joint_names)
    for k in range(50, N_SAMPLES, N_SAMPLES // 12):
        sample = [x[k] for x in samples]

        def torque(t, sample=sample):
            qa, qad, qadd = along(*sample, t)
            state = robot.motion(qa, qad, 0.0 * qa, 0.0 * qa)
            return oracle.inverse(state.q, state.qd, qadd)[0]

        assert worst(tau[k], torque(0.0)) < 1e-9 and worst(rate[k], difference(torque)) < 1e-6


def test_retimed_motion_of_a_platform_keeps_the_actuator_limits():
    robot = planar_3rrr().robot(gravity=GRAVITY)
    points = np.array([[0.0, 0.0, 0.0], [0.1, -0.05, 0.08], [0.02, 0.1, -0.05]])
    limits = limited(robot, points)
    check(robot, retime_motion(robot, points, limits=limits), limits)


@pytest.mark.parametrize("name", POINTS)
def test_path_terms_of_closed_loops_match_the_exact_rate(name):
    robot, path = both(name), path_through(np.array(POINTS[name]))
    dynamics, s = PathDynamics(robot).along(path), np.array([0.7, 0.1, 0.4]) * path.length
    for found, wanted in zip(pickle.loads(pickle.dumps(dynamics))(*path(s)), torque_terms(robot.torque_and_rate, *path(s))):
        assert worst(found, wanted) < 1e-10


def test_friction_of_passive_joints_reduces_the_limits_of_active_joints():
    file = pytest.importorskip("yaml").safe_load((URDF / "palletiser.robot.yaml").read_text())
    rough = load(URDF / "palletiser.urdf", file | {"friction": {"elbow": {"coulomb": 3.0}, "joint1": {"coulomb": 1.0}}})
    smooth, path = both("palletiser"), path_through(np.array(POINTS["palletiser"]))
    one, other = (PathDynamics(robot).along(path) for robot in (rough, smooth))
    np.testing.assert_allclose(smooth.limits.effort - one.limits().effort, [1.0, 3.0, 0.0, 3.0], rtol=1e-9)  # elbow: 3 less 2
    s = np.linspace(0.0, path.length, 5)
    for a, b in zip(one(*path(s)), other(*path(s))):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9 * max(1.0, np.abs(b).max()))


def test_path_out_of_reach_of_a_closed_loop_is_rejected():
    robot = both("five_bar")
    with pytest.raises(InputError, match="cannot follow the path beyond s = "):
        retime_motion(robot, [[2.0, 1.0], [2.9, -0.6]], limits=limited(robot, POINTS["five_bar"]))


def test_retimed_duration_of_a_closed_loop_matches_ipopt():
    """IPOPT solves another formulation of the same limits, enforced at its nodes only."""
    from support.scaling_optimum import optimum

    robot = both("five_bar")
    motion = retime_motion(robot, POINTS["five_bar"], limits=(limits := limited(robot, POINTS["five_bar"])))
    dynamics = PathDynamics(robot).along(motion.route.path)
    best = optimum(Constraints(motion.route.path, dynamics, dynamics.limits(limits), robot.joint_names), 200, 3.0)
    assert 0.99 < motion.duration / best < 1.02


# ------------------------------------------------------------------ elastic joints


def test_retimed_motion_of_elastic_joints_keeps_spring_torque_and_motor_speed():
    robot, oracle = four_joints()
    points = np.array([[0.0, 0.2, 0.0, 0.1], [0.6, -0.4, 0.2, 0.5], [-0.3, 0.5, 0.1, -0.6]])
    limits = limited(robot, points)
    side = link_side(robot)
    assert type(side) is Robot
    (tau, rate), samples = check(side, retime_motion(robot, points, limits=limits), limits)
    for k in range(40, N_SAMPLES, N_SAMPLES // 12):
        sample = [x[k] for x in samples]

        def load(t, sample=sample):
            """Return the load of the links alone: the position of motors does not matter beyond the springs."""
            joints, motors = along(*sample, t), np.zeros(4)
            x, v, a = (np.concatenate((part, motors)) for part in joints)
            return oracle.torques(x, v, a)[:4] - (oracle.stiffness @ x)[:4]

        assert worst(tau[k], load(0.0)) < 1e-10 and worst(rate[k], difference(load)) < 1e-8


def test_motor_speed_limit_behind_a_spring_binds():
    arm, points = Robot.from_urdf(ARM), np.array([[0.0, 0.2, 0.0], [0.6, -0.4, 0.2], [-0.3, 0.5, 0.1]])
    file = {"version": 1, "elastic_joints": {"j2": {"stiffness": 60.0}},
            "drives": {"j2": {"gear_ratio": 50.0, "rotor_inertia": 1e-4, "max_motor_velocity": 40.0, "max_current": 3.0,
                              "torque_constant": 0.1}}}
    robot = load(ARM, file)
    limits = replace(limited(arm, points), velocity=np.full(3, 4.0))
    side = link_side(robot)
    motion = retime_motion(robot, points, limits=limits)
    _, rate, (_, qd, *_) = (lambda shares, torques, samples: (shares, torques[1], samples))(*used(side, motion, limits))
    assert TIGHT < np.abs(50.0 * (qd[:, 1] + rate[:, 1] / 60.0)).max() / 40.0 <= 1.0
    assert [limit.quantity for limit in side.drive_limits] == ["motor_velocity"]
    expected = unenforceable_limits(robot)
    assert [note for note in motion.notes if note in expected] == list(expected) and len(expected) == 1
    assert "current of j2 is not enforced" in expected[0]


def test_link_mounted_motors_of_rigid_joints_are_supported_and_of_elastic_joints_rejected():
    """A link-mounted motor of an elastic joint needs more derivatives than a time law has."""
    with pytest.raises(InputError, match="the motor of elastic joint 'joint3' is mounted on link 'link1'"):
        link_side(both("hua_arm"))
    on_links = {"version": 1, "elastic_joints": {"j1": {"stiffness": 90.0}},
                "motors": {"j3": {"link": "l2", "axis": [0, 0, 1]}},
                "drives": {joint: {"gear_ratio": 20.0, "rotor_inertia": 1e-4, "coulomb": 0.5} for joint in ("j1", "j3")}}
    robot = load(ARM, on_links)
    side = link_side(robot)
    assert type(side) is Robot and side.order == 3 and not side.elastic_joints
    motion = np.random.default_rng(3).normal(size=(6, 3))
    found = robot.motor_motion(*motion)  # of all five derivatives; the springs' torques need three
    torques = (np.array([pair[0][0], *pair[1][1:]]) for pair in ((found.load, found.tau), (found.load_rate, found.tau_rate)))
    for ours, wanted in zip(side.torque_and_rate(*motion[:4]), torques):
        np.testing.assert_allclose(ours, wanted, rtol=1e-12, atol=1e-12)
    points = np.array([[0.0, 0.2, 0.0], [0.6, -0.4, 0.2], [-0.3, 0.5, 0.1]])
    dynamics = pickle.loads(pickle.dumps(PathDynamics(side)))
    np.testing.assert_allclose(dynamics.limits(limited(robot, points)).effort, limited(robot, points).effort - [0, 0, 0.5])
    path = path_through(points)
    smooth = load(ARM, on_links | {"drives": {joint: {"gear_ratio": 20.0, "rotor_inertia": 1e-4} for joint in ("j1", "j3")}})
    for ours, wanted in zip(dynamics(*path([0.1, 0.5])), torque_terms(link_side(smooth).torque_and_rate, *path([0.1, 0.5]))):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-9)


# ------------------------------------------------------------------ moving bases; rejected combinations


def test_retimed_motion_on_a_tilted_base_keeps_its_limits():
    robot, points = case("moving base").robot, np.array([[0.0, 0.2, 0.0], [0.6, -0.4, 0.2], [-0.3, 0.5, 0.1]])
    base = BaseState(quaternion=BASE.quaternion)
    limits = limited(robot, points, base)
    side = link_side(robot, base)
    (tau, rate), samples = check(side, retime_motion(robot, points, limits=limits, base=base), limits)
    oracle = PinocchioOracle(ARM, side)
    assert np.abs(side.gravity_vector - BASE.rotation.T @ robot.gravity_vector).max() < 1e-12
    for k in range(40, N_SAMPLES, N_SAMPLES // 12):
        for ours, wanted in zip((tau[k], rate[k]), oracle.torque_and_rate(*(x[k] for x in samples))):
            assert worst(ours, wanted) < 1e-9


def test_loops_on_a_prescribed_base_are_assumed_level():
    robot = case("moving loops").robot
    assert default_base(robot) is None
    carried = Robot(robot.tree, yaml.safe_load(FIVE_BAR[1].read_text()) | {"base": "prescribed"})
    heavy = carried.with_payload(robot.tree.model.links[-1].name, 0.3)
    assert all(isinstance(link_side(one, default_base(one)), Robot) for one in (carried, heavy))


@pytest.mark.parametrize(("name", "base", "words"), [
    ("moving base", None, "the base of robot 'arm' is floating: the motion of the joints does not determine"),
    ("moving loops", None, "is floating: the motion of the joints does not determine"),
    ("Robot", BaseState(), "has a fixed base: base is given, but must be None"),
    ("springs", None, "j2 of robot 'arm' has no motor: nothing drives it along a path")])
def test_bases_without_effect_are_rejected_with_the_reason(name, base, words):
    robot, at = case(name).robot, np.asarray(case(name).at)
    with pytest.raises(InputError, match=words):
        retime_motion(robot, np.stack((at, at + 0.1)), base=base)


def test_loops_on_a_base_at_rest_give_the_torques_of_the_moving_base():
    robot = case("moving loops").robot
    held, motion = link_side(robot, BASE), [np.array(case("moving loops").at), *np.random.default_rng(0).normal(size=(3, 2))]
    wanted = robot.torque_and_rate(*motion, base=BaseState(quaternion=BASE.quaternion, acceleration=np.zeros(6)))
    for ours, theirs in zip(held.torque_and_rate(*motion), wanted):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-10)


def test_motion_accepts_one_time_or_many():
    robot = load(URDF / "rr.urdf")
    start, goal, limits = [0.0, 0.0], [0.5, 0.3], replace(robot.limits, velocity=np.ones(2), acceleration=np.full(2, 4.0))
    planned = plan_motion(robot, start, goal, limits=limits)
    retimed = retime_motion(robot, [start, goal], limits=replace(limits, jerk=np.full(2, 40.0)))
    for motion in (planned, retimed):
        many = motion(np.array([0.1, 0.2]))
        for one, row in zip(motion(0.2), many, strict=True):
            assert one.shape == (2,) and np.array_equal(one, row[1])


def test_repr_states_kind_name_and_joints():
    assert repr(load(URDF / "rr.urdf")) == "<Robot 'rr' (tree on a fixed base), 2 joints: joint1, joint2>"
    assert repr(both("five_bar")) == (
        "<Robot 'five_bar' (robot on a fixed base with loops), 2 joints: left_motor, right_motor>")
    assert repr(load(URDF / "rr.urdf", base="floating")).startswith("<Robot 'rr' (tree on a floating base)")
