"""Coupled transmissions, motors that turn with several joints, against Pinocchio with dense matrices and complex steps."""

from __future__ import annotations

import ctypes
import subprocess
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import yaml

from rnea_ros import BaseState, InputError, ModelError, Robot, load
from rnea_ros.algorithms.inertial_parameters import base_parameters, parameters, values, with_values
from rnea_ros.algorithms.torque_rate import torque_and_rate
from rnea_ros.cli.main import main
from rnea_ros.identification.identification import Regressor
from rnea_ros.model.tree import Limits
from rnea_ros.trajectory.retiming import retime_motion
from support.oracles import PinocchioOracle, worst
from support.robots import random_state, random_tree

TIGHT = 1e-11
STEP = 1e-30
WRIST = Robot.from_urdf(random_tree(3).text(), backend="reference").joint_names
FILE = {"version": 1, "couplings": {"wrist": {"joints": list(WRIST), "motors": {
    "a": {"ratios": [50.0, 0.0], "rotor_inertia": 2e-5, "viscous": 1e-4},
    "b": {"ratios": [30.0, -30.0], "rotor_inertia": 5e-5, "viscous": 2e-4, "coulomb": 0.02}}}}}


@cache
def coupled(seed=7, backend="llvm"):
    """Return a robot with three motors coupled to joints 1 to 3 and one to joints 4 and 5; URDF, matrix and motor data."""
    tree = random_tree(seed)
    names = Robot.from_urdf(tree.text(), backend="reference").joint_names
    assert len(names) == 5
    rng = np.random.default_rng(seed)
    G = np.zeros((4, len(names)))
    G[:3, :3], G[3, 3:5] = rng.normal(size=(3, 3)) * 5.0, (7.0, -7.0)
    J, viscous, coulomb, smoothing = rng.uniform(0.01, 0.1, (4, 4)) * np.array([[1.0], [1.0], [5.0], [30.0]])

    def motors(rows, joints):
        return {f"m{k}": {"ratios": G[k, joints].tolist(), "rotor_inertia": J[k], "viscous": viscous[k], "coulomb": coulomb[k],
                          "smoothing": smoothing[k]} for k in rows}

    file = {"version": 1, "couplings": {
        "wrist": {"joints": list(names[:3]), "motors": motors(range(3), slice(0, 3))},
        "ankle": {"joints": list(names[3:5]), "motors": motors([3], slice(3, 5))}}}
    return load(tree.text(), file, backend=backend), tree.plain(), G, (J, viscous, coulomb, smoothing)


@cache
def wrist(backend="python"):
    """Return a robot with two joints coupled to two motors."""
    return load(random_tree(3).text(), FILE, backend=backend)


def motor_torque(numbers, w, wd, wdd):
    """Return torque and torque rate of the motors at their shafts."""
    J, viscous, coulomb, smoothing = numbers
    sign = np.tanh(w / smoothing)
    return J * wd + viscous * w + coulomb * sign, J * wdd + (viscous + coulomb * (1.0 - sign**2) / smoothing) * wd


def test_torque_rate_mass_matrix_and_energy_match_pinocchio_plus_motor_terms():
    robot, urdf, G, numbers = coupled()
    plain = load(urdf)
    oracle = PinocchioOracle(urdf, plain)
    order = [plain.joint_names.index(name) for name in robot.joint_names]
    assert order == list(range(robot.n))
    motion = random_state(np.random.default_rng(1), robot.n)
    t, t_rate = motor_torque(numbers, *(G @ x for x in motion[1:]))
    tau, rate = oracle.torque_and_rate(*motion)
    found = robot.torque_and_rate(*motion)
    assert worst(found[0], tau + G.T @ t) < TIGHT and worst(found[1], rate + G.T @ t_rate) < TIGHT
    M = oracle.mass_matrix(motion[0]) + G.T @ np.diag(numbers[0]) @ G
    assert worst(robot.mass_matrix(motion[0]), M) < TIGHT
    share = robot.dynamics(*motion)
    assert worst(share.gravity, oracle.gravity_and_rate(*motion[:2])[0]) < TIGHT and worst(share.tau, found[0]) < TIGHT
    spin = G @ motion[1]
    assert spin @ (numbers[0] * spin) > 0.0
    assert robot.energy(*motion[:2]).kinetic == pytest.approx(motion[1] @ M @ motion[1] / 2.0, rel=1e-11)
    assert worst(robot.friction(*motion[1:3])[0], G.T @ (t - numbers[0] * (G @ motion[2]))) < TIGHT


def test_forward_dynamics_inverts_inverse_dynamics_and_satisfies_momentum_balance():
    robot, *_ = coupled()
    q, qd, qdd, _ = random_state(np.random.default_rng(2), robot.n)
    assert worst(robot.forward_dynamics(q, qd, robot.inverse_dynamics(q, qd, qdd)), qdd) < 1e-8
    p, drift = robot.generalized_momentum(q, qd)
    assert worst(p, robot.mass_matrix(q) @ qd) < TIGHT
    # dp/dt = tau + drift, with dp/dt = M qdd + Mdot qd
    balance = robot.inverse_dynamics(q, qd, qdd) + drift
    assert worst(balance, robot.mass_matrix(q) @ qdd + robot.mass_matrix_rate(q, qd) @ qd) < 1e-10


def test_sensitivities_match_complex_steps_of_torque_and_rate():
    robot, *_ = coupled()
    motion = random_state(np.random.default_rng(4), robot.n)
    tables = robot.sensitivities(*motion[:3]), robot.rate_sensitivities(*motion)
    for rate, table in enumerate(tables):
        for block, found in enumerate(table):
            for k in range(robot.n):
                x = [np.array(part, dtype=complex) for part in motion]
                x[block][k] += 1j * STEP
                slope = np.imag(np.array(torque_and_rate(robot.model, *x, robot.gravity_vector)[rate], dtype=complex)) / STEP
                assert worst(found[:, k], slope) < 1e-10


@pytest.mark.parametrize("backend", ["python", "reference"])
def test_backends_of_a_coupled_robot_agree(backend):
    motion = random_state(np.random.default_rng(5), coupled()[0].n)
    other, ours = coupled(backend=backend)[0], coupled()[0]
    assert worst(np.array(other.torque_and_rate(*motion)), np.array(ours.torque_and_rate(*motion))) < 1e-12
    assert worst(other.sensitivities(*motion[:3]).dtau_dqd, ours.sensitivities(*motion[:3]).dtau_dqd) < 1e-12


def test_coupled_motor_torques_do_the_same_work_as_the_joint_torques():
    """tau = G^T tau_motor can be solved for a square regular G only."""
    tau, G = np.random.default_rng(0).normal(size=(4, 2)), np.array([[50.0, 0.0], [30.0, -30.0]])
    found = wrist().coupled_motor_torques(tau)
    assert np.allclose(np.column_stack([found["wrist.a"], found["wrist.b"]]) @ G, tau)
    with pytest.raises(InputError, match="4 motors turn 5 joints"):
        coupled()[0].coupled_motor_torques(np.zeros(coupled()[0].n))


def test_retimed_motion_of_coupled_joints_reaches_but_does_not_exceed_its_limits():
    robot = wrist()
    robot = robot.with_coupled_motors([replace(motor, term=replace(motor.term, coulomb=0.0))
                                       for motor in robot.model.coupled_motors])
    unknown = np.full(robot.n, np.nan)
    limits = Limits(unknown, unknown, unknown, 30.0 + np.abs(robot.gravity(np.zeros(robot.n))), np.full(robot.n, 2000.0),
                    unknown, unknown, unknown)
    motion = retime_motion(robot, np.array([np.zeros(robot.n), np.full(robot.n, 0.4), np.full(robot.n, -0.3)]), limits=limits)
    tau, rate = robot.torque_and_rate(*motion(np.linspace(0.0, motion.duration, 2000)))
    use = np.maximum((np.abs(tau) / limits.effort).max(), (np.abs(rate) / limits.effort_rate).max())
    assert 0.98 < use < 1.001


def test_couplings_change_the_model_id_but_not_gravity_or_payloads():
    robot, urdf, *_ = coupled()
    plain = load(urdf)
    q = np.linspace(-1.0, 1.0, robot.n)
    assert np.array_equal(robot.gravity(q), plain.gravity(q))
    assert robot.model_id != plain.model_id
    link = next(link.name for link in robot.model.links if link.joint)
    heavy = robot.with_payload(link, 2.0).mass_matrix(q) - plain.with_payload(link, 2.0).mass_matrix(q)
    assert worst(heavy, robot.mass_matrix(q) - plain.mass_matrix(q)) < 1e-10


def test_regressor_and_base_parameters_reproduce_the_torques():
    robot = wrist()
    base = base_parameters(robot.model, robot.gravity_vector, ("Ia", "coulomb", "viscous", "offset"))
    assert {"Ia(wrist.b)", "coulomb(wrist.b)", "viscous(wrist.b)"} <= {parameter.name for parameter in base.parameters}
    # motor a turns with joint 1 alone: its parameters are those of that joint
    assert not any(name.startswith(("Ia(wrist.a", "viscous(wrist.a")) for name in base.names)
    motion = np.random.default_rng(3).normal(size=(4, 7, robot.n))
    Y, _Yd = Regressor(robot, [base.parameters[k] for k in base.kept]).with_rate(*motion)
    assert worst(Y @ base.values_in(robot.model), robot.torque_and_rate(*motion)[0]) < 1e-10
    listed = parameters(robot.model, ("Ia", "coulomb", "viscous", "offset"))
    doubled = with_values(robot.model, listed, 2.0 * values(robot.model, listed))
    assert np.allclose(values(doubled, listed), 2.0 * values(robot.model, listed), rtol=1e-12)


def test_exported_c_contains_the_coupled_motors(tmp_path):
    robot, motion = wrist(), np.random.default_rng(3).normal(size=(4, 2))
    (tmp_path / "robot.c").write_text(robot.c_source("torque_and_rate", "coupled"))
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", tmp_path / "robot.so", tmp_path / "robot.c", "-lm"], check=True)
    out = np.zeros((2, 2))
    ctypes.CDLL(str(tmp_path / "robot.so")).coupled(*(ctypes.c_void_p(block.ctypes.data) for block in (*motion, *out)))
    assert worst(out, np.array(robot.torque_and_rate(*motion))) < 1e-12


def test_couplings_on_a_free_base_add_motor_torques_without_base_reaction():
    """Motors turn with the joints only: the motion of the base does not change."""
    robots = [load(random_tree(3).text(), {**file, "base": "floating"}, backend="python") for file in (FILE, {"version": 1})]
    rng = np.random.default_rng(6)
    motion, base = rng.normal(size=(4, 2)), BaseState(velocity=rng.normal(size=6))
    coupled, plain = (np.array(robot.torque_and_rate(*motion, base=base)) for robot in robots)
    G, terms = np.array([[50.0, 0.0], [30.0, -30.0]]), np.array([[2e-5, 5e-5], [1e-4, 2e-4], [0.0, 0.02], [0.5, 0.3]])
    assert worst(coupled - plain, np.array(motor_torque(terms, *(G @ x for x in motion[1:]))) @ G) < 1e-9


def test_load_dependent_friction_of_a_coupled_joint_is_rejected():
    tree = random_tree(3)
    loaded = {"friction": {wrist().joint_names[0]: {"load_dependent": 0.1}}}
    with pytest.raises(ModelError, match=r"friction\..*\.load_dependent is given for a joint of couplings.wrist"):
        load(tree.text(), {**FILE, **loaded})


@pytest.mark.parametrize(("change", "message"), [
    ({"joints": ["j"]}, "couplings.wrist.joints is"),
    ({"joints": [WRIST[0], WRIST[0]]}, "couplings.wrist.joints names a joint twice"),
    ({"joints": [WRIST[0], "elbow"]}, "joint 'elbow' does not exist"),
    ({"motors": {"a": {"ratios": [1.0, 2.0, 3.0]}}}, "ratios is .*; 2 numbers are needed, one for each of"),
    ({"motors": {"a": {"ratios": [0.0, 0.0]}}}, "ratios is zero for every joint"),
    ({"motors": {"a": {"ratios": [1.0, "x"]}}}, "one for each joint: finite numbers are needed"),
    ({"motors": {"a": {"ratios": [1.0, 1.0], "gear": 3}}}, "gear is not known; allowed are ratios, rotor_inertia, coulomb"),
    ({"motors": {"a": {"ratios": [1.0, 1.0], "coulomb": -1.0}}}, "a number not below zero is needed"),
    ({"motors": {}}, "motors is empty; at least one entry is needed")])
def test_invalid_couplings_are_rejected(change, message):
    coupling = {**FILE["couplings"]["wrist"], **change}
    with pytest.raises(ModelError, match=message):
        load(random_tree(3).text(), {"version": 1, "couplings": {"wrist": coupling}}, backend="reference")


def test_motor_torque_convention_is_rejected_for_coupled_joints():
    drives = {name: {"gear_ratio": 50.0, "torque_constant": 0.1} for name in WRIST}
    measured = {"measured_effort": {"quantity": "motor_torque"}, "drives": drives}
    with pytest.raises(ModelError, match=r"quantity is motor_torque for .* of couplings.wrist, whose motors"):
        load(random_tree(3).text(), {**FILE, **measured})


def test_check_and_model_commands_print_the_couplings(tmp_path, capsys):
    (tmp_path / "robot.urdf").write_text(random_tree(3).text())
    (tmp_path / "robot.yaml").write_text(yaml.safe_dump(FILE))
    for command in ("check", "model"):
        main([command, str(tmp_path / "robot.urdf"), "--robot-file", str(tmp_path / "robot.yaml")])
        assert f"wrist.b = 30 {WRIST[0]} + -30 {WRIST[1]}" in capsys.readouterr().out
