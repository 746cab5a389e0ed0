"""Generalized momentum and torque shares of links against Pinocchio."""

import numpy as np
import pytest

from rnea_ros import Robot
from support.plant import Plant, panda
from support.robots import random_tree, seeds

pin = pytest.importorskip("pinocchio")


def test_generalized_momentum_and_drift_match_pinocchio():
    robot, plant = Robot.from_urdf(panda()), Plant(panda())
    for q, qd in np.random.default_rng(2).uniform(-2.0, 2.0, (5, 2, 7)):
        p, drift = robot.generalized_momentum(q, qd)
        M = pin.crba(plant.model, plant.data, q)
        assert np.allclose(p, (np.triu(M) + np.triu(M, 1).T) @ qd, rtol=0.0, atol=1e-12)
        C = pin.computeCoriolisMatrix(plant.model, plant.data, q, qd)
        assert np.allclose(drift, C.T @ qd - pin.computeGeneralizedGravity(plant.model, plant.data, q), rtol=0.0, atol=1e-11)


@pytest.mark.parametrize("seed", seeds(2))
def test_torque_shares_of_links_sum_to_torque_and_rate(seed):
    robot = Robot.from_urdf(random_tree(seed).text())
    q, qd, qdd, qddd = np.random.default_rng(seed).uniform(-1.0, 1.0, (4, robot.n))
    bare = robot.with_joint_dynamics({link.joint: type(link.term)() for link in robot.model.links if link.joint})
    tau, rate = bare.torque_and_rate(q, qd, qdd, qddd)
    shares, rates = robot.link_torques_and_rates(q, qd, qdd, qddd)
    assert shares.shape == (len(robot.moving_joints), robot.n)
    assert np.allclose(shares.sum(axis=0), tau, rtol=1e-10, atol=1e-10)
    assert np.allclose(rates.sum(axis=0), rate, rtol=1e-10, atol=1e-10)
    assert np.allclose(robot.link_torques(q, qd, qdd), shares, rtol=1e-12, atol=1e-12)


def test_scaled_link_masses_scale_their_torque_shares():
    robot, motion = Robot.from_urdf(panda()), np.random.default_rng(4).uniform(-1.0, 1.0, (3, 7))
    shares, factors = robot.link_torques(*motion), np.random.default_rng(5).uniform(0.9, 1.1, 7)
    heavier = Plant(panda(), factors)
    assert np.allclose(pin.rnea(heavier.model, heavier.data, *motion), factors @ shares, rtol=0.0, atol=1e-11)
