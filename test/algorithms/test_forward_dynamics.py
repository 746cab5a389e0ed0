"""Articulated bodies: undo the inverse dynamics, agree with the mass matrix, with Pinocchio, and with their own rates."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Loads
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms import forward_dynamics as articulated
from rnea_ros.algorithms.floating_base import prescribed
from rnea_ros.algorithms.torque_rate import RootMotion
from rnea_ros.codegen.ir.program import trace
from rnea_ros.robots.kernels.functions import KERNEL_FUNCTIONS
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import PinocchioOracle, example_urdfs, pin, worst
from support.robots import INERTIAL, LinkSpec, random_state, random_tree, seeds

GRAVITY = (1.0, -2.0, -9.0)
EXAMPLES = ("ur5_robot", "talos_reduced", "panda", "tiago")  # a chain, a tree, two with mimic joints


@cache
def robot(seed):
    """Mass on every link, and every kind of joint dynamics."""
    tree = random_tree(seed)
    tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
    joints = [link.joint for link in TreeDynamics.from_urdf(tree.text()).model.links if link.joint]
    terms = {joint: JointDynamics(0.02, 3.0 + k, 0.5, 0.3, 0.4, 0.2) for k, joint in enumerate(joints[::2])}
    return TreeDynamics.from_urdf(tree.text(), gravity=GRAVITY, joint_dynamics=terms)


def motion(seed, n=None):
    return random_state(np.random.default_rng(seed), robot(seed).n if n is None else n)


def has_followers(model):
    return not articulated.articulated(model)


SEEDS = [seed for seed in seeds(16) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]


def test_the_seeds_cover_both_ways():
    followers = [has_followers(robot(seed).model) for seed in SEEDS]
    assert 5 < sum(followers) < len(SEEDS) - 5


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_of_inverse_is_the_identity(seed):
    """The model has friction, rotors, a payload and wrenches."""
    r, (q, qd, qdd, _), rng = robot(seed), motion(seed), np.random.default_rng(seed)
    links = list(r.model.frames)
    loaded = r.with_payload(links[-1], 0.7, (0.1, 0.2, 0.0), np.diag([0.01, 0.02, 0.015]))
    wrenches = {links[-1]: rng.normal(size=6), links[len(links) // 2]: rng.normal(size=6)}
    tau = loaded.inverse_dynamics(q, qd, qdd, loads=Loads(wrenches))
    assert worst(loaded.forward_dynamics(q, qd, tau, loads=Loads(wrenches)), qdd) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_solves_the_equation_of_motion(seed):
    """khalil-rne (8), for any torques."""
    r, (q, qd, tau, _) = robot(seed), motion(seed)
    assert worst(r.mass_matrix(q) @ r.forward_dynamics(q, qd, tau) + r.bias(q, qd), tau) < 1e-9


@pytest.mark.parametrize("name", EXAMPLES)
def test_accelerations_equal_pinocchio(name):
    path = next(path for path in example_urdfs() if path.stem == name)
    r = TreeDynamics.from_urdf(path, backend="reference" if name == "tiago" else "llvm", gravity=GRAVITY)
    oracle = PinocchioOracle(path, r)
    q, qd, tau, _ = motion(0, r.n)
    ours = r.forward_dynamics(q, qd, 10.0 * tau)
    if has_followers(r.model):
        assert name in EXAMPLES[2:]
        truth = np.linalg.solve(oracle.mass_matrix(q), 10.0 * tau - oracle.torque(q, qd, 0 * q, {}))
    else:
        assert worst(oracle.fold.T @ oracle.fold, np.eye(r.n)) == 0.0
        full = pin.aba(oracle.model, oracle.data, oracle.configuration(q), oracle.fold @ qd, oracle.fold @ (10.0 * tau))
        truth = oracle.fold.T @ full
    assert worst(ours, truth) < 1e-8


@pytest.mark.parametrize("seed", SEEDS)
def test_jerk_of_torques_that_change(seed):
    """Forward dynamics on jets undoes torque and torque rate together: qdd and qddd come back."""
    r, (q, qd, qdd, qddd) = robot(seed), motion(seed)
    tau, tau_rate = r.torque_and_rate(q, qd, qdd, qddd)
    found, _H = articulated.forward_dynamics(r.model, jets(q, qd), jets(qd, qdd), jets(tau, tau_rate), r.gravity_vector)
    assert worst(derivative(found, 0).astype(float), qdd) < 1e-9
    assert worst(derivative(found, 1).astype(float), qddd) < 1e-8


def test_both_ways_agree_where_both_apply():
    for seed in [seed for seed in SEEDS if not has_followers(robot(seed).model)][:8]:
        model, (q, qd, tau, _) = robot(seed).model, motion(seed)
        by_bodies, H = articulated.forward_dynamics(model, q, qd, tau, np.array(GRAVITY))
        by_matrix, D = articulated._by_mass_matrix(model, q, qd, tau, np.array(GRAVITY), None, None)
        assert worst(by_bodies, by_matrix) < 1e-9
        assert worst(H, D) < 1e-9  # the inertia of (36) is the pivot of the mass matrix, eliminated from the tips


def test_backends_and_samples_agree():
    for seed in (SEEDS[1], next(seed for seed in SEEDS if has_followers(robot(seed).model))):
        r, rng = robot(seed), np.random.default_rng(seed)
        q, qd, tau = rng.normal(size=(3, 5, r.n))
        together = r.forward_dynamics(q, qd, tau)
        for backend in ("python", "reference"):
            assert worst(TreeDynamics(r.model, backend, GRAVITY).forward_dynamics(q, qd, tau), together) < 1e-9
        assert worst(together, [r.forward_dynamics(q[k], qd[k], tau[k]) for k in range(5)]) == 0.0


def test_cost_grows_in_proportion_to_the_joints():
    def count(n):
        chain = "".join(f'<link name="l{k}">{INERTIAL}</link>' for k in range(n + 1))
        chain += "".join(f'<joint name="j{k}" type="continuous"><parent link="l{k}"/><child link="l{k + 1}"/>'
                         '<origin xyz="0.1 0 0" rpy="0.2 0.3 0.4"/></joint>' for k in range(n))
        r = TreeDynamics.from_urdf(f'<robot name="chain">{chain}</robot>')
        return sum(trace(*r.store.traced(KERNEL_FUNCTIONS["forward_dynamics"], by_paper=False)).operation_counts.values())

    counts = {n: count(n) for n in (15, 30, 60)}
    assert counts[60] - counts[30] == pytest.approx(2 * (counts[30] - counts[15]), rel=0.01), counts
    assert counts[60] < 1100 * 60, counts


def test_wrong_sizes_are_refused():
    r = robot(SEEDS[1])
    with pytest.raises(InputError, match="tau has shape"):
        r.forward_dynamics(np.zeros(r.n), np.zeros(r.n), np.zeros(r.n + 1))


def test_bodies_on_a_base_that_is_given():
    """The torques that `prescribed` returns give the accelerations back, on a base at rest from the same text."""
    r, (q, qd, qdd, qddd) = robot(SEEDS[2]), motion(SEEDS[2])
    tau = prescribed(r.model, q, qd, qdd, qddd, RootMotion(), r.gravity_vector)[0]
    assert worst(r.forward_dynamics(q, qd, tau), qdd) < 1e-9
