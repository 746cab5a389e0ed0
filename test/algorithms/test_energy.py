"""Energy, momentum, centre of mass, Coriolis matrix: invariants, differences, and Pinocchio."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics
from rnea_ros.robots.base_state import BaseState
from rnea_ros.robots.tree import TreeDynamics
from support.free_flyer import FreeFlyer
from support.oracles import along, difference, example_urdfs, pin, worst
from support.robots import INERTIAL, LinkSpec, arm, random_state, random_tree, seeds

GRAVITY = (1.0, -2.0, -9.0)
SEEDS = [seed for seed in seeds(8) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]
each_tree = pytest.mark.parametrize("seed", SEEDS)


@cache
def robot(seed, gravity=GRAVITY, driven=False, base="fixed"):
    tree = random_tree(seed)
    tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
    links = [link for link in TreeDynamics.from_urdf(tree.plain(), backend="reference").model.links if link.joint]
    terms = {link.joint: JointDynamics(0.02, 3.0, 0.5, 0.3, 0.4, 0.2) for link in links} if driven else None
    return TreeDynamics.from_urdf(tree.plain(), base, "reference", gravity, joint_dynamics=terms)


def motion(seed):
    return random_state(np.random.default_rng(seed), robot(seed).n)


@each_tree
def test_kinetic_energy_is_half_the_quadratic_form_of_the_mass_matrix(seed):
    r, (q, qd, *_) = robot(seed, driven=True), motion(seed)
    energy = r.energy(q, qd)
    assert energy.kinetic == pytest.approx(0.5 * qd @ r.mass_matrix(q) @ qd, rel=1e-12)
    assert energy.total == energy.kinetic + energy.potential


@each_tree
def test_gradient_of_potential_energy_is_the_gravity_torque(seed):
    r, (q, *_) = robot(seed), motion(seed)
    slope = [difference(lambda t, e=e: r.energy(q + e * t, 0 * q).potential) for e in np.eye(r.n)]
    assert worst(r.gravity(q), slope) < 1e-8


@each_tree
def test_power_minus_losses_is_the_rate_of_the_total_energy(seed):
    """dE/dt = tau . qd - friction . qd."""
    r, state = robot(seed, driven=True), motion(seed)
    q, qd, qdd, _ = state
    tau = r.inverse_dynamics(q, qd, qdd)
    terms = {link.joint: JointDynamics(0.02, 3.0) for link in r.model.links if link.joint}
    smooth = TreeDynamics(r.model.with_joint_dynamics(terms), "reference", GRAVITY)
    lost = r.power(qd, tau - smooth.inverse_dynamics(q, qd, qdd))
    gained = difference(lambda t: r.energy(*along(*state, t)[:2]).total)
    assert r.power(qd, tau) - lost == pytest.approx(gained, rel=1e-8, abs=1e-8)
    assert lost != 0.0


@each_tree
def test_center_of_mass_motion_matches_differences_and_pinocchio(seed):
    """Velocity by differences, momentum m v, and Pinocchio for a base at rest."""
    r, (q, qd, *_) = robot(seed, base="floating"), motion(seed)
    found = r.center_of_mass(q, qd)
    assert worst(found.velocity, difference(lambda t: r.center_of_mass(q + qd * t).position)) < 1e-9
    assert worst(found.momentum[:3], r.total_mass * found.velocity) < 1e-13
    tree = random_tree(seed)
    tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
    truth = FreeFlyer(tree.plain(), r).center_of_mass(BaseState(), q, qd)
    for ours, theirs in zip(found, truth, strict=True):
        assert worst(ours, theirs) < 1e-12


@each_tree
def test_coriolis_matrix_consists_of_christoffel_symbols(seed):
    """Symbols by differences of M; also velocity torques, Mdot - 2 C skew-symmetric, and Mdot = C + C'."""
    r, (q, qd, *_) = robot(seed, (0.0, 0.0, 0.0)), motion(seed)
    C, rate, n = r.coriolis(q, qd), r.mass_matrix_rate(q, qd), r.n
    dM = np.array([difference(lambda t, e=e: r.mass_matrix(q + e * t)) for e in np.eye(n)])  # [k, i, j] = dM_ij / dq_k
    by_symbols = 0.5 * sum((dM[k] + dM[:, :, k].T - dM[:, k, :]) * qd[k] for k in range(n))
    assert worst(C, by_symbols) < 1e-8
    assert worst(C @ qd, r.bias(q, qd)) < 1e-11
    skew = rate - 2.0 * C
    scale = max(1.0, np.abs(rate).max())
    assert np.abs(skew + skew.T).max() < 1e-12 * scale and worst(rate, C + C.T) < 1e-12 * scale


def test_coriolis_matrix_excludes_friction_and_gravity():
    seed = SEEDS[2]
    q, qd, *_ = motion(seed)
    assert worst(robot(seed, driven=True).coriolis(q, qd), robot(seed, (0.0, 0.0, 0.0)).coriolis(q, qd)) == 0.0
    assert np.abs(robot(seed).coriolis(q, qd)).max() > 1e-3


@pytest.mark.parametrize("name", ["panda", "talos_reduced"])
def test_energy_kernels_of_example_robots_match_pinocchio(name):
    path = next(path for path in example_urdfs() if path.stem == name)
    r = TreeDynamics.from_urdf(path, "floating", gravity=GRAVITY)
    rng = np.random.default_rng(1)
    q, qd = rng.normal(size=(2, 3, r.n))
    truth = FreeFlyer(path, r)
    found, energy = r.center_of_mass(q, qd), r.energy(q, qd)
    assert found.momentum.shape == (3, 6) and energy.kinetic.shape == (3,)
    for k in range(3):
        for ours, theirs in zip(found, truth.center_of_mass(BaseState(), q[k], qd[k])):
            assert worst(ours[k], theirs) < 1e-11
        assert worst([energy.kinetic[k], energy.potential[k]], truth.energy(BaseState(), q[k], qd[k])) < 1e-11
    C = r.coriolis(q, qd)
    rate = r.mass_matrix_rate(q, qd)
    assert C.shape == rate.shape == (3, r.n, r.n)
    assert worst(rate, C + np.swapaxes(C, -1, -2)) < 1e-12
    theirs = pin.computeCoriolisMatrix(truth.model, truth.data, truth.configuration(BaseState(), q[0]),
                                       truth.velocity(BaseState(), qd[0]))
    assert worst(C[0] @ qd[0], (truth.fold.T @ theirs @ truth.velocity(BaseState(), qd[0]))[6:]) < 1e-11


def test_arguments_of_wrong_shape_are_rejected_and_massless_robots_have_no_energy():
    weightless = TreeDynamics.from_urdf(arm({}, inertial=""))
    with pytest.raises(InputError, match="no mass"):
        weightless.center_of_mass([0.0])
    assert weightless.energy([0.0], [1.0]).total == 0.0
    with pytest.raises(InputError, match="tau has shape"):
        weightless.power([0.0], [1.0, 2.0])
