"""Load-dependent friction in torque, rate, sensitivities, forward dynamics and limits; unsupported robots."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import rnea_ros
from rnea_ros import InputError, JointDynamics, Loads, Robot
from rnea_ros.robots.tree import TreeDynamics
from rnea_ros.trajectory.retiming import retime_motion
from support.robots import arm

JOINTS = [{"axis": axis, "xyz": xyz} for axis, xyz in
          (((0, 0, 1), (0, 0, 0.3)), ((0, 1, 0), (0, 0.1, 0.1)), ((0, 1, 0), (0, 0, 0.4)))]
TERMS = {"j1": JointDynamics(0.3, 2.0, 4.0, 2.0, 0.3, 0.05, load_dependent=0.08, load_smoothing=0.5),
         "j2": JointDynamics(load_dependent=0.3, smoothing=0.2), "j3": JointDynamics(0.1, 1.0, 2.0)}
ROBOT = TreeDynamics.from_urdf(arm(*JOINTS)).with_joint_dynamics(TERMS)
BARE = ROBOT.with_joint_dynamics({name: replace(term, load_dependent=0.0) for name, term in TERMS.items()})
SHARE = np.array([0.08, 0.3, 0.0])


def motion(seed: int, samples: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).uniform(-1.5, 1.5, (4, samples, 3))


def test_load_friction_is_a_share_of_the_load_torque():
    """Friction mu |X| opposes the motion, with X the torque of links and rotor without friction."""
    q, qd, qdd, _ = motion(0)
    rotors = {name: JointDynamics(term.rotor_inertia, term.gear_ratio) for name, term in TERMS.items()}
    X = ROBOT.with_joint_dynamics(rotors).inverse_dynamics(q, qd, qdd)
    smoothing = [(term.smoothing, term.load_smoothing) for term in TERMS.values()]
    v, least = np.array(smoothing).T
    more = SHARE * np.tanh(qd / v) * np.sqrt(X**2 + least**2)
    np.testing.assert_allclose(ROBOT.inverse_dynamics(q, qd, qdd), BARE.inverse_dynamics(q, qd, qdd) + more, rtol=1e-12)


def test_torque_rate_with_load_friction_matches_complex_steps():
    """The complex step is along q(t) with given derivatives."""
    q, qd, qdd, qddd = motion(1, 1)[:, 0]
    h = 1e-30j
    reference = TreeDynamics(ROBOT.model, "reference")
    moved = (q + h * qd, qd + h * qdd, qdd + h * qddd)
    from rnea_ros.algorithms import component_rate, torque_rate

    for recursion in (component_rate, torque_rate):
        tau, tau_rate = recursion.torque_and_rate(ROBOT.model, q, qd, qdd, qddd, ROBOT.gravity_vector)
        ahead = np.array(recursion.torque_and_rate(ROBOT.model, *moved, qddd, ROBOT.gravity_vector)[0])
        np.testing.assert_allclose(np.array(tau_rate), ahead.imag / 1e-30, rtol=1e-11)
        for robot in (ROBOT, reference):
            for ours, theirs in zip(robot.torque_and_rate(q, qd, qdd, qddd), (tau, tau_rate), strict=True):
                np.testing.assert_allclose(ours, np.array(theirs), rtol=1e-11)


def test_gravity_torque_excludes_load_friction():
    for ours, theirs in zip(ROBOT.dynamics(*motion(2))[2:], BARE.dynamics(*motion(2))[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)


def test_forward_dynamics_inverts_inverse_dynamics_with_load_friction():
    q, qd, qdd, _ = motion(3)
    tau = ROBOT.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(ROBOT.forward_dynamics(q, qd, tau), qdd, atol=1e-9)
    np.testing.assert_allclose(tau - ROBOT.load_friction(tau, qd), BARE.inverse_dynamics(q, qd, qdd), atol=1e-10)


def test_sensitivities_with_load_friction_equal_differences():
    q, qd, qdd, qddd = motion(4, 1)[:, 0]
    found, rates = ROBOT.sensitivities(q, qd, qdd), ROBOT.rate_sensitivities(q, qd, qdd, qddd)
    state, h = np.array([q, qd, qdd, qddd]), 1e-6
    for order in range(4):
        for k in range(3):
            step = np.zeros((4, 3))
            step[order, k] = h
            ahead, behind = (ROBOT.torque_and_rate(*(state + sign * step)) for sign in (1.0, -1.0))
            slope, rate_slope = ((a - b) / (2.0 * h) for a, b in zip(ahead, behind, strict=True))
            if order < 3:
                np.testing.assert_allclose(found[order][:, k], slope, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(rates[order][:, k], rate_slope, rtol=1e-5, atol=1e-4)


def test_payloads_and_wrenches_increase_load_friction():
    q, qd, qdd, qddd = motion(5)
    loaded, bare = (robot.with_payload("l3", 2.0, (0.1, 0.0, 0.2)) for robot in (ROBOT, BARE))
    tau = loaded.inverse_dynamics(q, qd, qdd)
    np.testing.assert_allclose(tau - loaded.load_friction(tau, qd), bare.inverse_dynamics(q, qd, qdd), atol=1e-10)
    push = {"l3": np.array([5.0, 0.0, 3.0, 0.0, 0.0, 0.0])}
    tau = ROBOT.torque_and_rate(q, qd, qdd, qddd, loads=Loads(push))[0]
    left = BARE.inverse_dynamics(q, qd, qdd, loads=Loads(push))
    np.testing.assert_allclose(tau - ROBOT.load_friction(tau, qd), left, atol=1e-10)


def test_retimed_motion_with_load_friction_keeps_the_limits():
    limits = replace(ROBOT.limits, effort=np.array([30.0, 40.0, 20.0]), effort_rate=np.full(3, 400.0))
    points = np.random.default_rng(6).uniform(-1.0, 1.0, (4, 3))
    found = retime_motion(Robot(ROBOT), points, limits=limits)
    tau = ROBOT.inverse_dynamics(*found(np.linspace(0.0, found.duration, 800))[:3])
    use = np.abs(tau).max(axis=0) / limits.effort
    assert 0.8 < use.max() < 1.001


def test_load_friction_is_rejected_on_moving_bases_and_outside_its_range():
    for base in ("floating", "prescribed"):
        with pytest.raises(InputError, match="load_dependent is set for 'j1'"):
            rnea_ros.load(arm(*JOINTS), {"version": 1, "base": base, "friction": {"j1": {"load_dependent": 0.1}}})
    for wrong in (-0.1, 1.0):
        with pytest.raises(InputError, match="a share from 0 to below 1"):
            JointDynamics(load_dependent=wrong)
