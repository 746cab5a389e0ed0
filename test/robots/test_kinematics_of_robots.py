"""Forward kinematics of every kind of robot against Pinocchio and differences along motions; rejected arguments."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from rnea_ros import (
    BaseState,
    InputError,
    Robot,
    load,
)
from rnea_ros.algebra.vectors import rpy
from rnea_ros.robots.base_state import base_motion
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.robots.tree import TreeDynamics
from rnea_ros.sim.machines import gough_stewart
from support import free_flyer
from support.oracles import PinocchioOracle, deviation, difference, worst
from support.parallel_machines import planar_3rrr
from support.robots import arm, motor_file, random_state, random_tree

ROOT = Path(__file__).resolve().parents[2]
LOOPED = {name: (ROOT / "urdf" / f"{name}.urdf", ROOT / "urdf" / f"{name}.robot.yaml")
          for name in ("five_bar", "palletiser")}
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})
METHODS = ("link_pose", "link_velocity", "jacobian", "jacobian_rate")


def all_four(robot, link, q, qd, point=None, **given):
    """Return rotation, position, velocity, Jacobian and Jacobian rate of a link."""
    return (*robot.link_pose(link, q, point, **given), robot.link_velocity(link, q, qd, point, **given),
            robot.jacobian(link, q, point, **given), robot.jacobian_rate(link, q, qd, point, **given))


# ------------------------------------------------------------------ trees


@pytest.mark.parametrize(("seed", "backend"), [(4, "llvm"), (9, "llvm"), (12, "llvm"), (12, "python"), (9, "reference")])
def test_pose_velocity_and_jacobian_of_links_match_pinocchio(seed, backend):
    text, rng = random_tree(seed).plain(), np.random.default_rng(seed)
    robot = Robot.from_urdf(text, backend=backend)
    oracle = PinocchioOracle(text, robot)
    for link in list(robot.model.frames)[-2:]:
        q, qd, *_ = random_state(rng, robot.n)
        point = rng.normal(size=3)
        R, p, J, Jd = oracle.kinematics(link, point, q, qd)
        for ours, truth in zip(all_four(robot, link, q, qd, point), (R, p, J @ qd, J, Jd), strict=True):
            assert worst(ours, truth) < 1e-12


def test_vectorized_kinematics_equal_single_samples():
    robot, rng = Robot.from_urdf(ARM), np.random.default_rng(0)
    q, qd, points = rng.normal(size=(3, 300, 3))  # so many that another kernel may serve them
    link = list(robot.model.frames)[-1]
    for point in (None, points[0], points):
        many = all_four(robot, link, q, qd, point)
        for k in (0, 7, 299):
            one = all_four(robot, link, q[k], qd[k], point if np.ndim(point) < 2 else point[k])
            for a, b in zip(many, one, strict=True):
                assert a[k].shape == b.shape and worst(a[k], b) < 1e-14
    assert robot.link_pose(link, q[0], points).p.shape == (300, 3)
    assert worst(robot.link_velocity(link, q, qd), np.einsum("sij,sj->si", robot.jacobian(link, q), qd)) < 1e-14


def test_kinematics_of_a_robot_without_joints():
    robot = Robot.from_urdf('<robot name="r"><link name="a"/><link name="b"/><joint name="j" type="fixed"><parent link="a"/>'
                            '<child link="b"/><origin xyz="1 2 3"/></joint></robot>')
    assert robot.link_pose("b", [], (0.0, 0.0, 1.0)).p.tolist() == [1.0, 2.0, 4.0]
    assert robot.jacobian("b", []).shape == robot.jacobian_rate("b", [], []).shape == (6, 0)
    assert robot.link_velocity("b", [], []).tolist() == [0.0] * 6


def test_springs_motors_payloads_and_copies_do_not_change_the_kinematics():
    robot = Robot.from_urdf(ARM)
    q, qd = np.random.default_rng(1).normal(size=(2, 3))
    link = list(robot.model.frames)[-1]
    springs = Robot(robot, {"springs": {"j2": {"stiffness": 90.0}}})
    elastic = Robot(robot, motor_file({"j2": {"stiffness": 900.0, "gear_ratio": 20.0, "rotor_inertia": 1e-4}}))
    loaded = robot.with_payload(link, 2.0)
    for other in (springs, elastic, loaded, springs.with_payload(link, 1.0), copy.deepcopy(robot),
                  pickle.loads(pickle.dumps(elastic))):
        for a, b in zip(all_four(other, link, q, qd, (0.1, 0.2, 0.3)), all_four(robot, link, q, qd, (0.1, 0.2, 0.3))):
            assert np.array_equal(a, b)


def test_unknown_links_are_rejected():
    robot = Robot.from_urdf(ARM)
    q, link = np.zeros(3), list(robot.model.frames)[-1]
    for method, motion in zip(METHODS, ((q,), (q, q), (q,), (q, q)), strict=True):
        ask = getattr(robot, method)
        with pytest.raises(InputError, match=rf"'{link}x' is not in robot .*{link}.*did you mean '{link}'"):
            ask(f"{link}x", *motion)
        with pytest.raises(InputError, match=r"point is .*3"):
            ask(link, *motion, (1.0, 2.0))
        with pytest.raises(InputError, match=r"q.* has shape"):
            ask(link, *(x[:2] for x in motion))
        with pytest.raises(InputError, match="finite"):
            ask(link, *motion[:-1], q * np.nan)
    with pytest.raises(InputError, match="numbers of samples"):
        robot.link_pose(link, np.zeros((2, 3)), np.zeros((3, 3)))


# ------------------------------------------------------------------ floating base


@pytest.mark.parametrize("name", [0, 3, 7, "solo12"])
def test_kinematics_of_a_floating_base_match_pinocchio(name):
    floating, oracle = free_flyer.robot(name), free_flyer.oracle(name)
    base, q, qd, _qdd, _qddd = free_flyer.state(name)
    rng, links = np.random.default_rng(1), list(floating.tree.model.frames)
    for link in (links[0], links[-1]):
        point = rng.normal(size=3)
        R, p, J, Jd = oracle.kinematics(base, q, qd, link, point)
        truth = R, p, J @ np.concatenate((base.velocity, qd)), J, Jd
        for ours, theirs in zip(all_four(floating, link, q, qd, point, base=base), truth, strict=True):
            assert worst(ours, theirs) < 1e-12


def moving_base(t):
    """Return the base state and spatial acceleration at time t."""
    def pose(t):
        return np.array([np.sin(t), 0.3 * t, np.cos(2.0 * t)]), rpy(0.4 * t, np.sin(t), 0.2 + t)

    state = base_motion(pose, t)
    return state, state.spatial(state.acceleration)


def test_jacobian_acceleration_of_a_floating_robot_matches_differences():
    robot, rng = load(ARM, base="floating"), np.random.default_rng(2)
    q, qd, qdd = rng.normal(size=(3, 3))
    link = list(robot.tree.model.frames)[-1]

    def velocity(t):
        return robot.link_velocity(link, q + qd * t + qdd * t**2 / 2, qd + qdd * t, (0.1, -0.2, 0.3), base=moving_base(t)[0])

    base, spatial = moving_base(0.0)
    J, Jd = (f(link, *x, (0.1, -0.2, 0.3), base=base) for f, x in ((robot.jacobian, (q,)), (robot.jacobian_rate, (q, qd))))
    acceleration = J @ np.concatenate((spatial, qdd)) + Jd @ np.concatenate((base.velocity, qd))
    assert deviation(acceleration, difference(velocity)) < 1e-9


def test_floating_kinematics_require_a_base_and_accept_many_samples():
    robot, rng = load(ARM, base="floating"), np.random.default_rng(2)
    q, qd = rng.normal(size=(2, 4, 3))
    link = list(robot.tree.model.frames)[-1]
    with pytest.raises(InputError, match=r"base is None.*BaseState"):
        robot.link_pose(link, q)
    base = moving_base(np.linspace(0.0, 1.0, 4))[0]
    many = all_four(robot, link, q, qd, base=base)
    for k in range(4):
        one = all_four(robot, link, q[k], qd[k], base=BaseState(base.position[k], base.quaternion[k], base.velocity[k]))
        assert all(worst(a[k], b) < 1e-14 for a, b in zip(many, one, strict=True))
    held = all_four(robot, link, q, qd, base=BaseState())
    alone = all_four(robot.tree, link, q, qd)
    assert all(worst(a, b) < 1e-14 for a, b in zip((*held[:3], held[3][..., 6:], held[4][..., 6:]), alone, strict=True))


# ------------------------------------------------------------------ closed loops


@pytest.mark.parametrize("name", LOOPED)
@pytest.mark.parametrize("floats", [False, True])
def test_kinematics_of_closed_loops_match_the_tree_and_differences(name, floats):
    urdf, loops = LOOPED[name]
    robot = Robot(TreeDynamics.from_urdf(urdf, "floating"), loops) if floats else load(urdf, loops)
    rng = np.random.default_rng(5)
    N, links = len(robot.joint_names), list(robot.tree.model.frames)
    start = robot.start[[robot.tree.joint_names.index(joint) for joint in robot.joint_names]]
    qa, (qad, qadd) = start + 0.05 * rng.normal(size=N), rng.normal(size=(2, N))
    point = (0.1, -0.2, 0.3)

    def at(t):
        """Positions, velocities (of the base first), accelerations; and the base as keyword."""
        state, spatial = moving_base(t)
        before, kind = ((state.velocity, spatial), {"base": state}) if floats else ((np.zeros(0), np.zeros(0)), {})
        return qa + qad * t + qadd * t**2 / 2, qad + qadd * t, before, kind

    for link in (links[0], *links[-2:]):
        x, xd, before, given = at(0.0)
        R, p, V, J, Jd = all_four(robot, link, x, xd, point, **given)
        moved = [difference(lambda t, k=k, link=link: robot.link_pose(link, at(t)[0], point, **at(t)[3])[k]) for k in (0, 1)]
        W = moved[0] @ R.T
        assert deviation(V, np.concatenate((moved[1], [W[2, 1], W[0, 2], W[1, 0]]))) < 1e-8
        assert deviation(V, J @ np.concatenate((before[0], xd))) < 1e-12
        assert deviation(Jd, difference(lambda t, link=link: robot.jacobian(link, at(t)[0], point, **at(t)[3]))) < 1e-8
        many = all_four(robot, link, np.array([x, x]), np.array([xd, xd]), point, **given)
        assert all(deviation(a[1], b) < 1e-9 for a, b in zip(many, (R, p, V, J, Jd), strict=True))
        guessed = robot.link_pose(link, x, point, guess=robot.start, **given)
        assert deviation(guessed.p, p) < 1e-9


# ------------------------------------------------------------------ platforms on legs


@pytest.mark.parametrize(("make", "freedoms"), [(gough_stewart, np.ones(6)), (planar_3rrr, [1, 1, 0, 0, 0, 1])])
def test_kinematics_of_parallel_robots_match_differences(make, freedoms):
    robot, rng, point = make().robot(), np.random.default_rng(6), (0.1, -0.2, 0.3)
    a, (home, _R) = rng.normal(size=(3, 6)) * [[0.03], [0.2], [0.5]] * freedoms, robot.home

    def at(t):
        x = a[0] + a[1] * t + a[2] * t**2 / 2, a[1] + a[2] * t, a[2], 0.0 * a[2]
        return PlatformMotion.from_rpy([home + x[0][:3], *(y[:3] for y in x[1:])], [y[3:] for y in x])

    qad = robot.actuator_motion(at(0.0), None, 3)[0][1]
    for link in (robot.tree.model.links[1].name, "platform"):
        R, p = robot.link_pose(link, point=point, motion=at(0.0))
        V, J, Jd = (getattr(robot, method)(link, point=point, motion=at(0.0)) for method in METHODS[1:])
        moved = [difference(lambda t, k=k, link=link: robot.link_pose(link, point=point, motion=at(t))[k]) for k in (0, 1)]
        W = moved[0] @ R.T
        assert deviation(V, np.concatenate((moved[1], [W[2, 1], W[0, 2], W[1, 0]]))) < 1e-8
        assert deviation(V, J @ qad) < 1e-9
        assert deviation(Jd, difference(lambda t, link=link: robot.jacobian(link, point=point, motion=at(t)))) < 1e-8
        two = PlatformMotion(*(np.array([x, x]) for x in at(0.0)))
        pose, *others = (getattr(robot, method)(link, point=point, motion=two) for method in METHODS)
        many = (*pose, *others)
        assert all(deviation(x[1], y) < 1e-9 for x, y in zip(many, (R, p, V, J, Jd), strict=True))
    with pytest.raises(InputError, match="did you mean 'platform'"):
        robot.jacobian("platform_", motion=at(0.0))
