"""Mass matrix by composite inertias against columns of inverse dynamics; massless joints."""

from __future__ import annotations

import re

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics
from rnea_ros.algorithms import forward_dynamics as composite
from rnea_ros.algorithms import torque_rate
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import PinocchioOracle, difference, example_urdfs, worst
from support.robots import INERTIAL, arm, random_state, random_tree, seeds

WITH_MIMIC = {"kind": "revolute", "axis": (0, 1, 0), "xyz": (0.3, 0.1, 0.0)}


def with_rotors(seed):
    text = random_tree(seed).text()
    links = [link for link in TreeDynamics.from_urdf(text).model.links if link.joint]
    terms = {link.joint: JointDynamics(0.01 * k, 3.0, 0.5, 0.2, 1.0) for k, link in enumerate(links)}
    return TreeDynamics.from_urdf(text, "floating", "reference", joint_dynamics=terms)


@pytest.mark.parametrize("seed", seeds(8))
def test_mass_matrix_equals_columns_of_inverse_dynamics(seed):
    """Trees have branches, mimic chains, prismatic and massless links, rotors; khalil-rne 3.3.1."""
    robot = with_rotors(seed)
    q = random_state(np.random.default_rng(seed), robot.n)[0]
    columns = [torque_rate.torque_and_rate(robot.model, q, 0 * q, unit, 0 * q, offsets=False)[0] for unit in np.eye(robot.n)]
    assert worst(robot.mass_matrix(q), np.array(columns).reshape(robot.n, robot.n).T) < 1e-13


@pytest.mark.parametrize("seed", seeds(8))
def test_base_rows_of_the_mass_matrix_equal_the_base_wrench(seed):
    """A11 and A12 of (84) are base wrenches at unit accelerations."""
    model = with_rotors(seed).model
    q = random_state(np.random.default_rng(seed), model.n)[0]
    A11, A12, _M = composite.partitions(model, q)
    still = 0 * q
    for k in range(6 + model.n):
        unit = np.eye(6 + model.n)[k]
        base = torque_rate.RootMotion(a=unit[:3], wd=unit[3:6])
        motion = torque_rate.kinematics(model, q, still, unit[6:], still, base)
        forces = torque_rate.dynamics(model, motion, still, unit[6:], still)
        column = A11[:, k] if k < 6 else A12[:, k - 6]
        assert worst(column, np.concatenate((forces.f[0], forces.n[0]))) < 1e-13
    assert worst(composite.base_inertia(model, q), A11) == 0.0


@pytest.mark.parametrize("name", ["talos_reduced", "panda", "tiago"])
def test_mass_matrix_equals_pinocchio(name):
    path = next(path for path in example_urdfs() if path.stem == name)
    robot = TreeDynamics.from_urdf(path, backend="llvm" if name == "panda" else "reference")
    q = random_state(np.random.default_rng(1), robot.n)[0]
    assert worst(robot.mass_matrix(q), PinocchioOracle(path, robot).mass_matrix(q)) < 1e-11


def test_locked_inertias_equal_the_diagonal_of_the_mass_matrix():
    robot = TreeDynamics.from_urdf(arm({}, WITH_MIMIC, {"kind": "prismatic"}, {"parent": "l1"}), "floating")
    q = random_state(np.random.default_rng(2), robot.n)[0]
    base, joints = composite.locked(robot.model, q)
    A11, _A12, M = composite.partitions(robot.model, q)
    assert worst(base, np.diag(A11)) == 0.0 and worst(joints, np.diag(M)) < 1e-14


def test_mass_matrix_includes_the_payload_and_is_vectorized():
    robot = TreeDynamics.from_urdf(arm({}, WITH_MIMIC, {"kind": "prismatic"}))
    q = np.random.default_rng(3).normal(size=(4, 3))
    loaded = robot.with_payload("l3", 2.0, (0.1, 0.0, 0.3))
    extra = loaded.mass_matrix(q) - robot.mass_matrix(q)
    assert extra.shape == (4, 3, 3)
    assert np.linalg.eigvalsh(extra).min() > -1e-12 and extra[:, 2, 2] == pytest.approx(2.0)
    assert np.array_equal(loaded.mass_matrix(q)[1], loaded.mass_matrix(q[1]))


@pytest.mark.parametrize("seed", seeds(8))
def test_rate_of_the_mass_matrix_equals_differences(seed):
    robot = with_rotors(seed)
    q, qd, *_ = random_state(np.random.default_rng(seed), robot.n)
    assert worst(robot.mass_matrix_rate(q, qd), difference(lambda t: robot.mass_matrix(q + qd * t))) < 1e-8


# ------------------------------------------------------------------ massless joints


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_forward_dynamics_names_a_massless_joint(backend):
    tip = arm({}, WITH_MIMIC, {}).replace(f'<link name="l3">{INERTIAL}</link>', '<link name="l3"/>')
    robot = TreeDynamics.from_urdf(tip, backend=backend)
    with pytest.raises(InputError, match=r"'j3' moves no mass.*rotor inertia"):
        robot.forward_dynamics([0.1, 0.2, 0.3], [0.0] * 3, [1.0] * 3)
    with pytest.raises(InputError, match=r"'j3' moves"):
        robot.forward_dynamics(np.ones((2, 3)), np.zeros((2, 3)), np.zeros((2, 3)))
    geared = TreeDynamics.from_urdf(tip, backend=backend, joint_dynamics={"j3": JointDynamics(rotor_inertia=0.1)})
    assert geared.forward_dynamics([0.1, 0.2, 0.3], [0.0] * 3, geared.gravity([0.1, 0.2, 0.3])) == pytest.approx(np.zeros(3))


def test_two_joints_on_one_axis_without_mass_between_are_rejected():
    robot = TreeDynamics.from_urdf(arm({}, {}).replace(f'<link name="l1">{INERTIAL}</link>', '<link name="l1"/>'))
    with pytest.raises(InputError, match="'j1' moves no mass"):
        robot.forward_dynamics([0.4, 0.5], [0.0, 0.0], [1.0, 1.0])


def test_forward_dynamics_names_massless_mimic_joints():
    text = arm(WITH_MIMIC, WITH_MIMIC, WITH_MIMIC | {"mimic": {"joint": "j2"}})
    for link in ("l2", "l3"):
        text = text.replace(f'<link name="{link}">{INERTIAL}</link>', f'<link name="{link}"/>')
    with pytest.raises(InputError, match="'j2' moves no mass"):
        TreeDynamics.from_urdf(text).forward_dynamics([0.4, 0.5], [0.0, 0.0], [1.0, 1.0])


def test_removing_the_only_mass_of_a_joint_is_detected():
    bare = TreeDynamics.from_urdf(arm({}, WITH_MIMIC).replace(f'<link name="l2">{INERTIAL}</link>', '<link name="l2"/>'))
    loaded = bare.with_payload("l2", 1.0, (0.0, 0.0, 0.2))
    q, qd, qdd = [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]
    assert loaded.forward_dynamics(q, qd, loaded.inverse_dynamics(q, qd, qdd)) == pytest.approx(qdd)
    with pytest.raises(InputError, match="'j2' moves no mass"):
        loaded.with_payload("l2", 0.0).forward_dynamics(q, qd, qdd)
    for com in ((0.0, 0.2, 0.0), (0.0, 0.0, 0.0)):  # a point on the axis of j2, in a kernel that does not know of it
        with pytest.raises(InputError, match="'j2' moves no mass"):
            bare.with_payload("l2", 1.0, com).forward_dynamics(q, qd, qdd)


def test_very_light_link_is_not_massless():
    """The link at the end of a heavy arm has 1e-9 times the usual mass."""
    light = re.sub(r'(value|i..)="([-.0-9]+)"', r'\1="\2e-9"', INERTIAL)
    text = arm({}, WITH_MIMIC, WITH_MIMIC).replace(f'<link name="l3">{INERTIAL}</link>', f'<link name="l3">{light}</link>')
    robot, (q, qd, qdd, _) = TreeDynamics.from_urdf(text), random_state(np.random.default_rng(5), 3)
    assert worst(robot.forward_dynamics(q, qd, robot.inverse_dynamics(q, qd, qdd)), qdd) < 1e-6
