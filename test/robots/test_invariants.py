"""Invariants of mechanics on random trees: symmetry, passivity, time reversal, frame invariance, virtual work."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from rnea_ros import JointDynamics, Loads, Robot
from rnea_ros.model.tree import frozen
from support.oracles import PinocchioOracle, along, difference, worst
from support.robots import INERTIAL, LinkSpec, arm, random_state, random_tree, rotation, seeds

SEEDS = [seed for seed in seeds(8) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]
WEIGHTLESS = (0.0, 0.0, 0.0)

each_tree = pytest.mark.parametrize("seed", SEEDS)


@cache
def tree(seed):
    """Return a random tree; for odd seeds every link has mass, so that the mass matrix is positive definite."""
    grown = random_tree(seed)
    if seed % 2:
        grown.links = [LinkSpec(link.name, INERTIAL) for link in grown.links]
    return grown


@cache
def robot(seed, gravity=(1.0, -2.0, -9.0)):
    return Robot.from_urdf(tree(seed).text(), gravity=gravity)


@cache
def oracle(seed, gravity=(1.0, -2.0, -9.0)):
    return PinocchioOracle(tree(seed).plain(), robot(seed, gravity))


def motion(seed):
    return random_state(np.random.default_rng(seed), robot(seed).n)


@each_tree
def test_mass_matrix_is_symmetric_and_positive_semidefinite(seed):
    M = robot(seed).mass_matrix(motion(seed)[0])
    assert worst(M, M.T) < 1e-14
    smallest = np.linalg.eigvalsh((M + M.T) / 2).min()
    assert smallest > (1e-6 if seed % 2 else -1e-13)


@each_tree
def test_torque_is_affine_in_acceleration_and_its_rate_in_jerk(seed):
    r, (q, qd, qdd, qddd) = robot(seed), motion(seed)
    M, zero = r.mass_matrix(q), np.zeros(r.n)
    tau, rate = r.torque_and_rate(q, qd, qdd, qddd)
    assert worst(M @ qdd + r.bias(q, qd), tau) < 1e-13
    assert worst(rate - r.torque_and_rate(q, qd, qdd, zero)[1], M @ qddd) < 1e-12
    assert worst(r.torque_and_rate(q, zero, zero, qddd)[1], M @ qddd) < 1e-13


@each_tree
def test_forward_dynamics_inverts_inverse_dynamics(seed):
    if seed % 2:
        r, (q, qd, qdd, _) = robot(seed), motion(seed)
        assert worst(r.forward_dynamics(q, qd, r.inverse_dynamics(q, qd, qdd)), qdd) < 1e-8


@each_tree
def test_time_reversal_keeps_torques_and_negates_torque_rates(seed):
    """Compare bit for bit along the path in reverse."""
    r, (q, qd, qdd, qddd) = robot(seed), motion(seed)
    forth, back = r.torque_and_rate(q, qd, qdd, qddd), r.torque_and_rate(q, -qd, qdd, -qddd)
    assert np.array_equal(forth[0], back[0])
    assert np.array_equal(forth[1], -back[1])


@each_tree
def test_torque_and_rate_without_gravity_scale_with_powers_of_speed(seed):
    r, (q, qd, qdd, qddd), s = robot(seed, WEIGHTLESS), motion(seed), 1.7
    tau, rate = r.torque_and_rate(q, qd, qdd, qddd)
    fast, fast_rate = r.torque_and_rate(q, s * qd, s**2 * qdd, s**3 * qddd)
    assert worst(fast, s**2 * tau) < 1e-12 and worst(fast_rate, s**3 * rate) < 1e-12


@each_tree
def test_torque_and_rate_minus_gravity_scale_with_powers_of_speed(seed):
    """tau = g + s^2 (tau_1 - g) and its rate are the basis of time scaling."""
    r, (q, qd, qdd, qddd), s = robot(seed), motion(seed), 0.6
    nominal, slow = r.dynamics(q, qd, qdd, qddd), r.dynamics(q, s * qd, s**2 * qdd, s**3 * qddd)
    assert worst(slow.tau, nominal.gravity + s**2 * (nominal.tau - nominal.gravity)) < 1e-12
    assert worst(slow.tau_rate, s * nominal.gravity_rate + s**3 * (nominal.tau_rate - nominal.gravity_rate)) < 1e-12
    assert worst(slow.gravity_rate, s * nominal.gravity_rate) < 1e-12


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_torques_are_linear_in_the_inertial_parameters(seed):
    model, state = robot(seed).model, motion(seed)
    rng = np.random.default_rng(seed)

    def torques(parameters):
        links = tuple(replace(link, m=p[0], ms=frozen(p[1:4]), J=frozen(p[4:].reshape(3, 3)))
                      for link, p in zip(model.links, parameters))
        return np.array(Robot.from_model(replace(model, links=links)).torque_and_rate(*state))

    def symmetric(p):
        return np.concatenate((p[:4], (p[4:].reshape(3, 3) + p[4:].reshape(3, 3).T).ravel()))

    a, b = ([symmetric(p) for p in rng.normal(size=(len(model.links), 13))] for _ in range(2))
    total = torques([x + 0.3 * y for x, y in zip(a, b)])
    assert worst(torques(a) + 0.3 * torques(b), total) < 1e-12
    assert np.array_equal(torques([2.0 * x for x in a]), 2.0 * torques(a))


@each_tree
def test_velocity_torques_satisfy_passivity(seed):
    """qd' Mdot qd = 2 qd' tau(q, qd, 0) without gravity."""
    r, (q, qd, _, _) = robot(seed, WEIGHTLESS), motion(seed)
    zero = np.zeros(r.n)
    Mdot = difference(lambda t: r.mass_matrix(q + qd * t))
    assert qd @ Mdot @ qd == pytest.approx(2.0 * qd @ r.inverse_dynamics(q, qd, zero), abs=1e-8, rel=1e-8)


@each_tree
def test_joint_power_equals_the_rate_of_pinocchios_energy(seed):
    r, truth, state = robot(seed), oracle(seed), motion(seed)
    power = difference(lambda t: truth.energy(*along(*state, t)[:2]))
    assert r.inverse_dynamics(*state[:3]) @ state[1] == pytest.approx(power, abs=1e-8, rel=1e-8)


@each_tree
def test_gravity_torque_is_the_gradient_of_the_potential_energy(seed):
    r, truth, q = robot(seed), oracle(seed), motion(seed)[0]
    still = np.zeros(r.n)
    slope = [difference(lambda t, e=e: truth.energy(q + e * t, still)) for e in np.eye(r.n)]
    assert worst(r.gravity(q), slope) < 1e-8


@each_tree
def test_torque_rate_matches_differences_along_the_motion(seed):
    """Friction, rotors, payloads and wrenches act on the robot."""
    r, state, rng = robot(seed), motion(seed), np.random.default_rng(seed)
    terms = {link.joint: JointDynamics(0.1, -2.0, 0.5, 0.3, 0.2, 0.4) for link in r.model.links if link.joint}
    loaded = Robot.from_model(r.model.with_joint_dynamics(terms), gravity=r.gravity_vector)
    loaded = loaded.with_payload(r.root_link, 3.0, (1, 2, 3))
    links = list(loaded.model.frames)
    loaded = loaded.with_payload(links[-1], 1.0, (0.1, 0.2, -0.1), np.diag([0.1, 0.1, 0.05]))
    wrench, wrench_rate = rng.normal(size=(2, 6))
    tau_rate = loaded.torque_and_rate(*state, loads=Loads({links[-1]: wrench}, {links[-1]: wrench_rate}))[1]
    expected = difference(lambda t: loaded.inverse_dynamics(*along(*state, t),
                                                            loads=Loads({links[-1]: wrench + wrench_rate * t})))
    assert worst(tau_rate, expected) < 1e-8


@each_tree
def test_robot_in_free_fall_has_the_torques_of_zero_gravity(seed):
    """The robot is mounted on a prismatic joint that accelerates with gravity."""
    r, (q, qd, qdd, qddd) = robot(seed), motion(seed)
    g = r.gravity_vector
    lift = f'<joint name="LIFT" type="prismatic"><parent link="GROUND"/><child link={_root(seed)}/>' \
           f'<axis xyz="{g[0]} {g[1]} {g[2]}"/></joint><link name="GROUND"/></robot>'
    falling = Robot.from_urdf(tree(seed).text().replace("</robot>", lift), gravity=g)
    assert set(falling.joint_names) == {"LIFT", *r.joint_names}
    order = [falling.joint_names.index(name) for name in r.joint_names]

    def on_lift(x, speed=0.0):
        result = np.zeros(falling.n)
        result[order] = x
        result[falling.joint_names.index("LIFT")] = speed
        return result

    ours = falling.torque_and_rate(on_lift(q, 5.0), on_lift(qd, 2.0), on_lift(qdd, np.linalg.norm(g)), on_lift(qddd))
    for a, b in zip(ours, robot(seed, WEIGHTLESS).torque_and_rate(q, qd, qdd, qddd)):
        assert worst(a[order], b) < 1e-11


def _root(seed):
    children = {joint.child for joint in tree(seed).joints}
    text = next(link for link in tree(seed).links if link.name not in children).text()
    return text.split("name=")[1].split(">")[0].rstrip("/")


@each_tree
def test_torques_are_invariant_under_rotation_of_robot_and_gravity(seed):
    r, state, rpy = robot(seed), motion(seed), (0.4, -1.1, 2.2)
    mount = f'<joint name="MOUNT" type="fixed"><parent link="GROUND"/><child link={_root(seed)}/>' \
            f'<origin rpy="{" ".join(map(repr, rpy))}"/></joint><link name="GROUND"/></robot>'
    turned = Robot.from_urdf(tree(seed).text().replace("</robot>", mount), gravity=rotation(*rpy) @ r.gravity_vector)
    assert turned.joint_names == r.joint_names
    for a, b in zip(turned.torque_and_rate(*state), r.torque_and_rate(*state)):
        assert worst(a, b) < 1e-12


@each_tree
def test_reversed_joint_axes_negate_coordinates_and_torques(seed):
    """The motion is the same in space."""
    over = random_tree(seed)
    over.links = tree(seed).links
    for joint in over.joints:
        if joint.kind not in ("fixed", "planar"):
            joint.axis = tuple(-np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0)))
    for joint in over.joints:
        if joint.mimic and "offset" in joint.mimic:
            joint.mimic = joint.mimic | {"offset": repr(-float(joint.mimic["offset"]))}
    flipped, r, state = Robot.from_urdf(over.text(), gravity=robot(seed).gravity_vector), robot(seed), motion(seed)
    sign = np.array([1.0 if name.endswith(("/x", "/y", "/theta")) else -1.0 for name in r.joint_names])
    for a, b in zip(flipped.torque_and_rate(*(sign * x for x in state)), r.torque_and_rate(*state)):
        assert worst(sign * a, b) < 1e-12


@each_tree
def test_order_of_urdf_elements_changes_only_the_joint_order(seed):
    grown = random_tree(seed)
    grown.links, grown.joints = tree(seed).links[::-1], grown.joints[::-1]
    other, r, state = Robot.from_urdf(grown.text(), gravity=robot(seed).gravity_vector), robot(seed), motion(seed)
    order = [r.joint_names.index(name) for name in other.joint_names]
    for a, b in zip(other.torque_and_rate(*(x[order] for x in state)), r.torque_and_rate(*state)):
        assert worst(a, b[order]) < 1e-12


@each_tree
def test_external_wrench_reduces_joint_power_by_its_virtual_work(seed):
    """The link velocity is a difference of Pinocchio's placements."""
    r, truth, (q, qd, qdd, _) = robot(seed), oracle(seed), motion(seed)
    link, wrench = list(r.model.frames)[-1], np.random.default_rng(seed).normal(size=6)
    spared = r.inverse_dynamics(q, qd, qdd) - r.inverse_dynamics(q, qd, qdd, loads=Loads({link: wrench}))
    R = truth.placement(link, q)[0]
    velocity = R.T @ difference(lambda t: truth.placement(link, q + qd * t)[1])
    spin = R.T @ difference(lambda t: truth.placement(link, q + qd * t)[0])
    work = wrench[:3] @ velocity + wrench[3:] @ [spin[2, 1], spin[0, 2], spin[1, 0]]
    assert spared @ qd == pytest.approx(work, abs=1e-9)


def test_torque_and_rate_of_a_pendulum_match_the_closed_form():
    """tau = I qdd + m g l sin q, and its rate."""
    inertia = '<inertia ixx="1" ixy="0" ixz="0" iyy="0.3" iyz="0" izz="1"/>'
    inertial = f'<inertial><origin xyz="0 0 -0.5"/><mass value="2"/>{inertia}</inertial>'
    text = arm({"axis": (0, 1, 0), "kind": "continuous"}, inertial=inertial)
    q, qd, qdd, qddd = 0.7, -1.2, 2.5, -4.0
    tau, rate = Robot.from_urdf(text).torque_and_rate([q], [qd], [qdd], [qddd])
    assert tau[0] == pytest.approx((0.3 + 2 * 0.25) * qdd + 2 * 9.81 * 0.5 * np.sin(q), rel=1e-15)
    assert rate[0] == pytest.approx((0.3 + 2 * 0.25) * qddd + 2 * 9.81 * 0.5 * np.cos(q) * qd, rel=1e-15)
