"""Screw formulation (lie-notes) against the MDH recursion, Pinocchio's Lie groups, and identities of the notes."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import JointDynamics, Loads
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algebra.vectors import skew
from rnea_ros.algorithms import screws
from rnea_ros.algorithms.joint_dynamics import to_links
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import PinocchioOracle, example_urdfs, pin, worst
from support.robots import random_state, random_tree, seeds

GRAVITY = (1.0, -2.0, -9.0)
SEEDS = [seed for seed in seeds(8) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]
EXAMPLES = ("ur5_robot", "talos_reduced", "panda", "solo12")


@cache
def robot(source):
    if isinstance(source, int):
        return TreeDynamics.from_urdf(random_tree(source).text(), gravity=GRAVITY)
    return TreeDynamics.from_urdf(path(source), gravity=GRAVITY)


def path(name):
    return next(path for path in example_urdfs() if path.stem == name)


def motion(source):
    return random_state(np.random.default_rng(len(str(source))), robot(source).n)


def body_poses(model, s, q):
    """Return [T_0i (4, 4)] of the bodies' frames: exp([S_1] q_1) .. exp([S_i] q_i) M_i, from the root outwards."""
    q, way = to_links(model, q), [np.eye(4)]
    for k, link in enumerate(model.links[1:], start=1):
        way.append(way[link.parent] @ screws.exp(s.S[k], q[k]))
    return [E @ M for E, M in zip(way, s.M, strict=True)]


def wedge(V):
    """[V] (4, 4) of a twist."""
    return np.block([[skew(V[3:]), V[:3].reshape(3, 1)], [np.zeros((1, 4))]])


@pytest.mark.parametrize("source", [*SEEDS, *EXAMPLES])
def test_screw_inverse_dynamics_equals_the_mdh_recursion(source):
    r, (q, qd, qdd, _), rng = robot(source), motion(source), np.random.default_rng(1)
    s = screws.screws(r.model)
    assert worst(screws.inverse_dynamics(r.model, s, q, qd, qdd, r.gravity_vector), r.inverse_dynamics(q, qd, qdd)) < 1e-12
    terms = {link.joint: JointDynamics(0.1, 2.0, 0.5, 0.3, 0.2, 0.4) for link in r.model.links if link.joint}
    driven = TreeDynamics(r.model.with_joint_dynamics(terms), "reference", GRAVITY)
    frames = {name: frame for name, frame in r.model.frames.items() if frame.link}
    if frames:
        link, frame = list(frames.items())[-1]
        wrench = rng.normal(size=6)
        f, n = frame.R @ wrench[:3], frame.R @ wrench[3:]
        loads = {frame.link: np.concatenate((f, n + np.cross(frame.P, f)))}
        ours = screws.inverse_dynamics(driven.model, s, q, qd, qdd, r.gravity_vector, loads)
        assert worst(ours, driven.inverse_dynamics(q, qd, qdd, loads=Loads({link: wrench}))) < 1e-12


@pytest.mark.parametrize("source", [*SEEDS, *EXAMPLES])
def test_product_of_exponentials_gives_the_placement_of_every_link(source):
    """The oracle is Pinocchio's placement of every URDF link."""
    r, (q, *_) = robot(source), motion(source)
    oracle = PinocchioOracle(random_tree(source).plain() if isinstance(source, int) else path(source), r)
    s = screws.screws(r.model)
    bodies, home = body_poses(r.model, s, q), np.zeros(r.n)
    for name, frame in r.model.frames.items():
        at_home = screws.homogeneous(*oracle.placement(name, home))
        predicted = bodies[frame.link] @ screws.inverse(s.M[frame.link]) @ at_home
        assert worst(predicted, screws.homogeneous(*oracle.placement(name, q))) < 1e-11


@pytest.mark.parametrize("name", ["ur5_robot", "solo12"])
def test_screw_axes_equal_pinocchios_jacobian_columns(name):
    r, home = robot(name), np.zeros(robot(name).n)
    oracle, s = PinocchioOracle(path(name), robot(name)), screws.screws(robot(name).model)
    pin.computeJointJacobians(oracle.model, oracle.data, oracle.configuration(home))
    space = oracle.data.J @ oracle.fold
    for k, link in enumerate(r.model.links):
        if link.joint:
            assert worst(s.S[k], space[:, link.coordinate]) < 1e-12
            assert worst(screws.Ad(screws.inverse(s.M[k])) @ s.S[k], s.A[k]) < 1e-14
            centre = s.M[k][:3, 3]
            assert worst(oracle.data.oMi[oracle.model.getJointId(link.joint)].act(
                oracle.model.inertias[oracle.model.getJointId(link.joint)].lever), centre) < 1e-12
            assert np.abs(s.G[k][:3, 3:]).max() < 1e-12  # no coupling about the centre of mass


def random_twist(rng):
    """Return a random unit screw with pitch, and an angle."""
    w = rng.normal(size=3)
    return np.concatenate((rng.normal(size=3), w / np.linalg.norm(w))), rng.uniform(-3, 3)


@pytest.mark.parametrize("seed", range(5))
def test_se3_operators_match_pinocchio(seed):
    rng = np.random.default_rng(seed)
    S, angle = random_twist(rng)
    V, X, F = rng.normal(size=(3, 6))
    T = screws.exp(S, angle)
    theirs = pin.exp6(pin.Motion(S * angle))
    slide = np.concatenate((S[3:], np.zeros(3)))
    assert worst(T, theirs.homogeneous) < 1e-13
    assert worst(screws.exp(slide, angle), pin.exp6(pin.Motion(slide * angle)).homogeneous) < 1e-14
    assert worst(screws.inverse(T), theirs.inverse().homogeneous) < 1e-13
    assert worst(screws.Ad(T), theirs.action) < 1e-13
    assert worst(screws.ad(V) @ X, pin.Motion(V).cross(pin.Motion(X)).vector) < 1e-13
    assert worst(screws.coAd(T) @ F, theirs.actInv(pin.Force(F)).vector) < 1e-13
    assert worst(-screws.coad(V) @ F, pin.Motion(V).cross(pin.Force(F)).vector) < 1e-13
    assert F @ (screws.Ad(T) @ V) == pytest.approx((screws.coAd(T) @ F) @ V)  # power is the same in both frames
    assert worst(np.linalg.inv(screws.Ad(T)), screws.Ad(screws.inverse(T))) < 1e-13


@pytest.mark.parametrize("seed", range(5))
def test_derivatives_of_exponential_and_adjoint_match_dual_numbers(seed):
    """V = T^-1 Tdot is the body twist, and d Ad / dt = Ad ad_V."""
    rng = np.random.default_rng(seed)
    (S1, a1), (S2, a2) = random_twist(rng), random_twist(rng)
    r1, r2 = rng.normal(size=2)
    T = screws.exp(S1, jets(a1, r1)[()]) @ screws.exp(S2, jets(a2, r2)[()])
    value, rate = (derivative(T, k).astype(float) for k in (0, 1))
    body = screws.Ad(screws.inverse(screws.exp(S2, a2))) @ (S1 * r1) + S2 * r2
    assert worst(screws.inverse(value) @ rate, wedge(body)) < 1e-13
    assert worst(derivative(screws.Ad(T), 1).astype(float), screws.Ad(value) @ screws.ad(body)) < 1e-12


def test_worked_example_of_the_notes_with_its_correction():
    """Section 10.1 with its erratum: n_2 of a 2R arm, with the angular acceleration of 9.1."""
    rng = np.random.default_rng(0)
    I, u, z, d1, d2 = rng.normal(size=(3, 3)), *rng.normal(size=(2, 3)), 0.7, -1.3
    I = I @ I.T
    w = u * d1 + z * d2  # u = R_21 z_1
    expanded = (d1**2 * np.cross(u, I @ u) + d1 * d2 * (np.cross(u, I @ z) + np.cross(z, I @ u)) + d2**2 * np.cross(z, I @ z))
    V = np.concatenate((np.zeros(3), w))
    G = np.block([[np.eye(3), np.zeros((3, 3))], [np.zeros((3, 3)), I]])
    assert worst((-screws.coad(V) @ (G @ V))[3:], expanded) < 1e-14
    assert worst((screws.ad(V) @ np.concatenate((np.zeros(3), z)) * d2)[3:], d2 * np.cross(u * d1, z)) < 1e-14
