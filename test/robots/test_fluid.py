"""Robots in a fluid against Pinocchio with independently written added-mass terms (Lamb), energy and buoyancy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import BaseState, ModelError, load
from support.rolling_machines import STEPS, WEIGHTS, joint_text, link_text
from support.swimming import EelOracle, GivenMotion, eel, sines


def test_torques_base_wrench_and_rates_in_a_fluid_match_pinocchio():
    urdf, file = eel("prescribed")
    robot, moving = load(urdf, file), GivenMotion(EelOracle(urdf, file))
    rates = np.array([moving.twist(0.0, 1), moving.twist(0.0, 2)])
    found = robot.solve(*(moving.joints(0.0, k) for k in range(4)), base=moving.base(0.0).with_motion(rates=rates))
    expected, slope = moving.efforts(0.0), moving.rates(0.0)
    ours = np.r_[found.base_wrench, found.torques[0]], np.r_[found.base_wrench_rate, found.torques[1]]
    np.testing.assert_allclose(ours[0], expected, atol=1e-11 * np.abs(expected).max())
    np.testing.assert_allclose(ours[1], slope, atol=1e-7 * np.abs(slope).max())


def test_head_acceleration_of_a_free_eel_solves_pinocchios_equations():
    urdf, file = eel("floating")
    truth, robot = EelOracle(urdf, file), load(urdf, file)
    joints = sines(0.6, truth.n, 3)
    state = BaseState((0.0, 0.1, 0.2), pin.Quaternion(pin.rpy.rpyToMatrix(0.4, 0.2, -0.9)).coeffs(), 0.4 * np.ones(6))
    found = robot.solve(*(joints(0.0, k) for k in range(4)), base=state)
    v, a = np.r_[state.velocity, joints(0.0, 1)], np.r_[found.base[1], joints(0.0, 2)]
    left = truth.efforts(state, joints(0.0, 0), v, a)
    assert np.abs(left[:6]).max() < 1e-10 * np.abs(left).max()
    np.testing.assert_allclose(found.torques[0], left[6:], atol=1e-11 * np.abs(left).max())
    back = robot.forward_dynamics(joints(0.0, 0), joints(0.0, 1), found.torques[0], base=state)
    np.testing.assert_allclose(back, joints(0.0, 2), atol=1e-9)


def test_energy_of_body_and_fluid_changes_by_motor_power_only_without_drag():
    urdf, file = eel("floating", drag=False)
    robot, rng = load(urdf, file), np.random.default_rng(5)
    q, qd, qdd = rng.uniform(-0.5, 0.5, (3, robot.n))
    state = BaseState((0.0, 0.0, 0.0), (0.0, 0.0, 0.0, 1.0), rng.uniform(-0.5, 0.5, 6))
    found = robot.solve(q, qd, qdd, np.zeros(robot.n), base=state)

    def energy(t):
        pose = pin.exp6(pin.Motion(t * state.velocity + 0.5 * t * t * found.base[1]))
        moved = BaseState(pose.translation, pin.Quaternion(pose.rotation).coeffs(), state.velocity + t * found.base[1])
        return robot.energy(q + t * qd + 0.5 * t * t * qdd, qd + t * qdd, base=moved).total

    h = 1e-3
    slope = (8.0 * (energy(h) - energy(-h)) - (energy(2 * h) - energy(-2 * h))) / (12.0 * h)
    assert abs(slope - found.torques[0] @ qd) < 1e-5 * np.abs(found.torques[0]).max()


def test_neutrally_buoyant_body_is_weightless_and_sinks_without_buoyancy():
    urdf = '<robot name="r">' + link_text("a", 2.0, (0, 0, 0), (0.1,) * 3) + link_text("b", 1.0, (0, 0, 0), (0.1,) * 3)
    urdf += joint_text("j", "a", "b", (0, 0, 0), (0, 0, 1)) + "</robot>"
    body = {"volume": 0.003, "added_mass": [1.0, 1.0, 1.0]}
    floating = load(urdf, {"base": "floating", "fluid": {"links": {"a": body}}})
    found = floating.solve(*np.zeros((4, 1)), base=BaseState())
    np.testing.assert_allclose(found.base[1], 0.0, atol=1e-9)
    sinking = load(urdf, {"base": "floating", "fluid": {"links": {"a": {**body, "volume": 0.0}}}})
    assert abs(sinking.solve(*np.zeros((4, 1)), base=BaseState()).base[1][2] + 9.81 * 3.0 / 4.0) < 1e-9


def test_sensitivities_in_a_fluid_match_sixth_order_differences():
    urdf, file = eel("prescribed")
    robot, rng = load(urdf, file), np.random.default_rng(6)
    motion = rng.uniform(-0.6, 0.6, (3, robot.n))
    base = {"base": BaseState(velocity=0.3 * np.ones(6), acceleration=np.ones(6))}
    for order, table in enumerate(robot.sensitivities(*motion, **base)):
        for k in range(robot.n):
            moved = [motion + step * 1e-3 * np.eye(3)[order][:, None] * np.eye(robot.n)[k] for step in STEPS]
            slope = WEIGHTS @ np.array([robot.inverse_dynamics(*one, **base) for one in moved]) / 1e-3
            np.testing.assert_allclose(table[:, k], slope, atol=1e-8)


def test_negative_drag_is_rejected():
    urdf, file = eel("floating")
    file["fluid"]["links"]["head"]["quadratic_drag"] = [1.0, -1.0, 0.0]
    with pytest.raises(ModelError, match="no number below zero"):
        load(urdf, file)


def test_coriolis_matrix_of_body_and_fluid_gives_the_velocity_efforts():
    urdf, file = eel("floating", drag=False)
    robot, rng = load(urdf, file), np.random.default_rng(7)
    q, qd, six = rng.normal(size=robot.n), rng.normal(size=robot.n), rng.normal(size=6)
    base = {"base": BaseState(velocity=six)}
    C, M = robot.coriolis(q, qd, **base), robot.mass_matrix(q, **base)
    a = np.r_[np.cross(six[3:], six[:3]), np.zeros(3 + robot.n)]  # component derivatives minus the acceleration in `bias`
    efforts = robot.bias(q, qd, **base) - robot.gravity(q, **base) + M @ a
    np.testing.assert_allclose(C @ np.r_[six, qd], efforts, atol=1e-12 * np.abs(efforts).max())
