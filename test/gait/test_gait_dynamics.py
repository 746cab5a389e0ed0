"""Ground reaction forces, torques and sensitivities of the walking skeleton: Pinocchio, complex steps, force balances."""

from __future__ import annotations

from functools import cache

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import Robot
from rnea_ros.algorithms.kinematics import points
from rnea_ros.algorithms.sensitivities import base_wrench, base_wrench_sensitivities
from rnea_ros.algorithms.torque_rate import on_links, torque_and_rate
from rnea_ros.gait.skeleton import Human
from rnea_ros.gait.walker import DOUBLE, SINGLE, FootLoad, Walker, foot_link_wrenches, share_between_feet, zero_moment_point
from support.oracles import PinocchioOracle
from support.robots import random_state, random_tree, seeds

TINY = 1e-30


@cache
def walker():
    return Walker(Human())


def strides(count=4):
    """Return motions of the bent skeleton near the floor."""
    rng = np.random.default_rng(5)
    q, qd, qdd = rng.uniform(-0.4, 0.4, (3, count, walker().n))
    q[:, 1] = 0.9
    return q, qd, qdd


def complex_slopes(function, x, directions=None):
    """Return d function / d x by complex steps, times directions (columns) where they are given."""
    columns = np.eye(len(x)) if directions is None else directions.T
    return np.array([np.array(function(x + 1j * TINY * column), dtype=complex).imag / TINY for column in columns]).T


@pytest.mark.parametrize("seed", seeds(3))
def test_base_wrench_sensitivities_of_random_trees_match_complex_steps(seed):
    robot = Robot.from_urdf(random_tree(seed).text(), gravity=(1.0, -2.0, -9.0), backend="reference")
    motion, model, gravity = random_state(np.random.default_rng(seed), robot.n)[:3], robot.model, robot.gravity_vector
    tables = base_wrench_sensitivities(model, *motion, gravity)
    for k, table in enumerate(tables):
        def along(x, k=k):
            return base_wrench(model, *motion[:k], x, *motion[k + 1:], gravity)

        expected = complex_slopes(along, motion[k])
        assert np.abs(table - expected).max(initial=0.0) <= 1e-11 * max(1.0, np.abs(expected).max(initial=0.0))


def test_floor_wrench_is_the_rate_of_momentum():
    w, (q, qd, qdd) = walker(), strides()
    oracle = PinocchioOracle(w.human.urdf, w.robot)
    found = w.floor_wrench((q, qd, qdd)).value
    for k, wrench in enumerate(found):
        at = [oracle.configuration(q[k]), oracle.fold @ qd[k], oracle.fold @ qdd[k]]
        rate = pin.computeCentroidalMomentumTimeVariation(oracle.model, oracle.data, *at)
        F = rate.linear - pin.computeTotalMass(oracle.model) * oracle.model.gravity.linear
        M = rate.angular + np.cross(oracle.data.com[0], F)
        assert np.allclose(wrench, np.concatenate((F, M)), rtol=1e-11, atol=1e-9)


def test_contact_points_match_pinocchio_and_jacobians_match_complex_steps():
    w, (q, _qd, _qdd) = walker(), strides()
    positions, jacobians = w.points(q)
    model, attachments = w.robot.model, w._links
    for k in range(len(q)):
        ways = np.random.default_rng(k).normal(size=(w.n, 3))
        slopes = complex_slopes(lambda x: points(model, attachments, x)[0].ravel(), q[k], ways)
        assert np.allclose(jacobians[k, :, :3].reshape(-1, w.n) @ ways, slopes, rtol=1e-12, atol=1e-12)
        for point, found in zip(w.human.points.values(), positions[k]):
            R, p = PinocchioOracle(w.human.urdf, w.robot).placement(point.link, q[k])
            assert np.allclose(found, p + R @ point.position, atol=1e-12)


def test_foot_loads_in_double_support_add_up_to_the_floor_wrench():
    rng = np.random.default_rng(1)
    F, M, A, B = np.array([30.0, -20.0, 800.0]), rng.normal(size=3) * 50.0, *rng.normal(size=(2, 3))
    both = share_between_feet(F, M, A, B)
    assert np.allclose(both.front.F + both.rear.F, F) and np.allclose(both.front.M + both.rear.M, M)
    x, y = zero_moment_point(F, M)
    r = np.array([x, y, 0.0])
    assert np.allclose((M - np.cross(r, F))[:2], 0.0)  # only a vertical moment remains
    AB = (B - A)[:2] / np.linalg.norm((B - A)[:2])
    assert np.allclose(A[:2] + AB * np.dot(AB, (B - A)[:2]) * both.share + both.aside * np.array([-AB[1], AB[0]]), r[:2])


@pytest.mark.parametrize("end", [0.0, 1.0])
def test_one_foot_carries_the_load_at_the_ends_of_double_support(end):
    A, B, F = np.array([-0.4, 0.1, 0.02]), np.array([0.0, -0.1, 0.0]), np.array([10.0, 5.0, 700.0])
    both = share_between_feet(F, np.cross((A + end * (B - A)) * (1.0, 1.0, 0.0), F), A, B)
    assert np.isclose(both.share, end) and np.isclose(both.aside, 0.0)
    bearing, idle = (both.front, both.rear) if end else (both.rear, both.front)
    assert np.allclose(bearing.F, F) and np.allclose(idle.F, 0.0) and np.allclose(idle.M, 0.0)


def test_toes_carry_the_moment_ahead_of_the_toe_joint():
    F, ball, ankle = np.array([0.0, 0.0, 700.0]), np.array([0.1, 0.0, 0.0]), np.array([0.0, 0.0, 0.07])
    for ahead in (-0.1, 0.05):
        load = FootLoad(F, np.cross(ball + (ahead, 0.0, 0.0), F))
        wrench = foot_link_wrenches(load, ankle, ball)
        couple = wrench[9:]
        assert np.allclose(couple, (0.0, -700.0 * max(ahead, 0.0), 0.0), atol=0.4)
        assert np.allclose(wrench[3:6] + np.cross(ankle, F) + couple, load.M)  # their sum is the load


@pytest.mark.parametrize("support", [SINGLE, DOUBLE], ids=["single", "double"])
def test_root_torques_are_zero(support):
    tau = walker().torque(support, strides())
    assert np.abs(tau[:, :6]).max() < 1e-10 < 1.0 < np.abs(tau[:, 6:]).max()


@pytest.mark.parametrize("support", [SINGLE, DOUBLE], ids=["single", "double"])
def test_torques_with_ground_forces_equal_pinocchio(support):
    w, motion = walker(), strides()
    oracle, tau = PinocchioOracle(w.human.urdf, w.robot), w.torque(support, motion)
    loads = w.loads(support, motion)
    for k in range(len(tau)):
        held = {}
        for link, wrench in loads.items():
            R = oracle.placement(link, motion[0][k])[0].T
            held[link] = np.concatenate((R @ wrench[k, :3], R @ wrench[k, 3:]))
        assert np.allclose(tau[k], oracle.torque(*(x[k] for x in motion), held), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("support", [SINGLE, DOUBLE], ids=["single", "double"])
def test_torque_sensitivities_match_complex_steps_with_varying_floor_force(support):
    """The complex step passes through the reference recursions; the floor force depends on the motion."""
    w, motion, ways = walker(), strides(1), np.random.default_rng(9).normal(size=(walker().n, 3))
    model, gravity, frames = w.robot.model, w.robot.gravity_vector, [w.robot.model.frame(link) for link in support.links]

    def torque(q, qd, qdd):
        wrench = base_wrench(model, q, qd, qdd, gravity)
        at = points(model, [w._links[w._row[name]] for name in support.points], q)[0]
        loads = np.array(support.share(wrench[:3], wrench[3:], *at))
        held = [(frame.link, frame.P, loads[6 * k:6 * k + 6]) for k, frame in enumerate(frames)]
        given = on_links(model, {"world_wrenches": held}, q, qd)
        return torque_and_rate(model, q, qd, qdd, q * 0.0, gravity, **given)[0]

    one = [x[0] for x in motion]
    for k, table in enumerate(w.torque_slopes(support, motion)):
        expected = complex_slopes(lambda x, k=k: torque(*one[:k], x, *one[k + 1:]), one[k], ways)
        assert np.abs(table[0] @ ways - expected).max() < 1e-11 * np.abs(expected).max()
    assert np.allclose(w.torque(support, motion)[0], torque(*one), rtol=1e-12, atol=1e-10)
