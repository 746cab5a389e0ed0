"""Articulated-body algorithm: inverse of inverse dynamics, against mass matrix, Pinocchio and derivatives."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Loads
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms import forward_dynamics as articulated
from rnea_ros.algorithms.forward_dynamics import prescribed
from rnea_ros.algorithms.torque_rate import RootMotion
from rnea_ros.codegen.program import trace
from rnea_ros.robots.kernel_functions import KERNEL_FUNCTIONS
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import PinocchioOracle, example_urdfs, pin, worst
from support.robots import INERTIAL, LinkSpec, random_state, random_tree, seeds

GRAVITY = (1.0, -2.0, -9.0)
EXAMPLES = ("ur5_robot", "talos_reduced", "panda", "tiago")  # a chain, a tree, two with mimic joints


@cache
def robot(seed):
    """Return a random tree with mass on every link and all joint dynamics terms."""
    tree = random_tree(seed)
    tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
    joints = [link.joint for link in TreeDynamics.from_urdf(tree.text()).model.links if link.joint]
    terms = {joint: JointDynamics(0.02, 3.0 + k, 0.5, 0.3, 0.4, 0.2) for k, joint in enumerate(joints[::2])}
    return TreeDynamics.from_urdf(tree.text(), gravity=GRAVITY, joint_dynamics=terms)


def motion(seed, n=None):
    return random_state(np.random.default_rng(seed), robot(seed).n if n is None else n)


def has_mimic_joints(model):
    return not articulated.articulated(model)


SEEDS = [seed for seed in seeds(16) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]


def test_seeds_cover_trees_with_and_without_mimic_joints():
    followers = [has_mimic_joints(robot(seed).model) for seed in SEEDS]
    assert 5 < sum(followers) < len(SEEDS) - 5


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_inverts_inverse_dynamics(seed):
    """The robot has friction, rotors, a payload and external wrenches."""
    r, (q, qd, qdd, _), rng = robot(seed), motion(seed), np.random.default_rng(seed)
    links = list(r.model.frames)
    loaded = r.with_payload(links[-1], 0.7, (0.1, 0.2, 0.0), np.diag([0.01, 0.02, 0.015]))
    wrenches = {links[-1]: rng.normal(size=6), links[len(links) // 2]: rng.normal(size=6)}
    tau = loaded.inverse_dynamics(q, qd, qdd, loads=Loads(wrenches))
    assert worst(loaded.forward_dynamics(q, qd, tau, loads=Loads(wrenches)), qdd) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_accelerations_solve_the_equation_of_motion(seed):
    """Equation (8) of khalil-rne for random torques."""
    r, (q, qd, tau, _) = robot(seed), motion(seed)
    assert worst(r.mass_matrix(q) @ r.forward_dynamics(q, qd, tau) + r.bias(q, qd), tau) < 1e-9


@pytest.mark.parametrize("name", EXAMPLES)
def test_accelerations_equal_pinocchio(name):
    path = next(path for path in example_urdfs() if path.stem == name)
    r = TreeDynamics.from_urdf(path, backend="reference" if name == "tiago" else "llvm", gravity=GRAVITY)
    oracle = PinocchioOracle(path, r)
    q, qd, tau, _ = motion(0, r.n)
    ours = r.forward_dynamics(q, qd, 10.0 * tau)
    if has_mimic_joints(r.model):
        assert name in EXAMPLES[2:]
        truth = np.linalg.solve(oracle.mass_matrix(q), 10.0 * tau - oracle.torque(q, qd, 0 * q, {}))
    else:
        assert worst(oracle.fold.T @ oracle.fold, np.eye(r.n)) == 0.0
        full = pin.aba(oracle.model, oracle.data, oracle.configuration(q), oracle.fold @ qd, oracle.fold @ (10.0 * tau))
        truth = oracle.fold.T @ full
    assert worst(ours, truth) < 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_on_dual_numbers_returns_acceleration_and_jerk(seed):
    """The dual numbers contain torque and torque rate."""
    r, (q, qd, qdd, qddd) = robot(seed), motion(seed)
    tau, tau_rate = r.torque_and_rate(q, qd, qdd, qddd)
    found, _H = articulated.forward_dynamics(r.model, jets(q, qd), jets(qd, qdd), jets(tau, tau_rate), r.gravity_vector)
    assert worst(derivative(found, 0).astype(float), qdd) < 1e-9
    assert worst(derivative(found, 1).astype(float), qddd) < 1e-8


def test_articulated_bodies_and_mass_matrix_give_the_same_accelerations():
    for seed in [seed for seed in SEEDS if not has_mimic_joints(robot(seed).model)][:8]:
        model, (q, qd, tau, _) = robot(seed).model, motion(seed)
        by_bodies, H = articulated.forward_dynamics(model, q, qd, tau, np.array(GRAVITY))
        by_matrix, D = articulated._by_mass_matrix(model, q, qd, tau, np.array(GRAVITY), None, None)
        assert worst(by_bodies, by_matrix) < 1e-9
        assert worst(H, D) < 1e-9  # the inertia of (36) is the pivot of the mass matrix when eliminated from the tips


def test_backends_and_vectorized_forward_dynamics_agree():
    for seed in (SEEDS[1], next(seed for seed in SEEDS if has_mimic_joints(robot(seed).model))):
        r, rng = robot(seed), np.random.default_rng(seed)
        q, qd, tau = rng.normal(size=(3, 5, r.n))
        together = r.forward_dynamics(q, qd, tau)
        for backend in ("python", "reference"):
            assert worst(TreeDynamics(r.model, backend, GRAVITY).forward_dynamics(q, qd, tau), together) < 1e-9
        assert worst(together, [r.forward_dynamics(q[k], qd[k], tau[k]) for k in range(5)]) == 0.0


def test_operation_count_grows_linearly_with_the_joints():
    def count(n):
        chain = "".join(f'<link name="l{k}">{INERTIAL}</link>' for k in range(n + 1))
        chain += "".join(f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/>'
                         '<origin xyz="0.1 0 0" rpy="0.2 0.3 0.4"/></joint>' for k in range(n))
        r = TreeDynamics.from_urdf(f'<robot name="chain">{chain}</robot>')
        return sum(trace(*r.store.traced(KERNEL_FUNCTIONS["forward_dynamics"], by_paper=False)).operation_counts.values())

    counts = {n: count(n) for n in (15, 30, 60)}
    assert counts[60] - counts[30] == pytest.approx(2 * (counts[30] - counts[15]), rel=0.01), counts
    assert counts[60] < 1100 * 60, counts


def test_arrays_of_wrong_size_are_rejected():
    r = robot(SEEDS[1])
    with pytest.raises(InputError, match="tau has shape"):
        r.forward_dynamics(np.zeros(r.n), np.zeros(r.n), np.zeros(r.n + 1))


def test_forward_dynamics_inverts_prescribed_base_dynamics_at_rest():
    """The torques are those of `prescribed` for a base at rest."""
    r, (q, qd, qdd, qddd) = robot(SEEDS[2]), motion(SEEDS[2])
    tau = prescribed(r.model, q, qd, qdd, qddd, RootMotion(), r.gravity_vector)[0]
    assert worst(r.forward_dynamics(q, qd, tau), qdd) < 1e-9
