"""Regressors, tau = Y params and tau_rate = Yd params, against Pinocchio, dual numbers and differences."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, ModelError
from rnea_ros.algebra.linear_forms import coefficients, unknowns
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms.inertial_parameters import TERMS, parameters, regressor, values, with_unknowns, with_values
from rnea_ros.algorithms.torque_rate import RootMotion, dynamics, kinematics
from rnea_ros.codegen.program import trace
from rnea_ros.identification.identification import Regressor
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import along, difference, example_urdfs, worst
from support.regressor_oracle import RegressorOracle
from support.robots import arm, random_state, random_tree, seeds

SEEDS = [seed for seed in seeds(12) if any(joint.kind != "fixed" for joint in random_tree(seed).joints)]
TERM = JointDynamics(rotor_inertia=2e-3, gear_ratio=-30.0, coulomb=0.6, viscous=0.4, offset=-0.3, smoothing=0.2)


@cache
def robot(seed, backend="python"):
    """Return a random tree with friction and rotors on every joint."""
    bare = TreeDynamics.from_urdf(random_tree(seed).text(), gravity=(1.0, -2.0, -9.0))
    terms = {link.joint: TERM for link in bare.model.links if link.joint}
    return TreeDynamics(bare.model.with_joint_dynamics(terms), backend, bare.gravity_vector)


def at(model, listed, motion, gravity, **options):
    """Return Y and Yd by the recursion on floats."""
    return regressor(with_unknowns(model, listed), len(listed), *motion, gravity, **options)


# ---------------------------------------------------------------------- Pinocchio

def test_regressor_of_every_example_robot_matches_pinocchio():
    seen = 0
    for path in example_urdfs():
        try:
            ours = TreeDynamics.from_urdf(path, backend="python")
        except ModelError:
            continue
        if ours.n > 50 or any(word in path.stem for word in ("_box", "_limited", "_corrected")):  # same links and joints again
            continue
        oracle, listed = RegressorOracle(path, ours), parameters(ours.model)
        motion = random_state(np.random.default_rng(seen), ours.n)
        Y, Yd = at(ours.model, listed, motion, ours.gravity_vector)
        assert worst(Y, oracle.regressor(*motion[:3])) < 1e-12, path
        for found, truth in zip((Y, Yd), oracle.torque_and_rate(*motion)):
            assert worst(found @ values(ours.model, listed), truth) < 1e-11, path
        seen += 1
    assert seen > 50


@pytest.mark.parametrize("seed", [1, 2, 5, 8])
def test_base_wrench_regressor_matches_pinocchios_free_flyer(seed):
    """Pinocchio's base acceleration is spatial, ours that of a point; six rows and the columns of the root are added."""
    rng = np.random.default_rng(seed)
    path = next(path for path in example_urdfs() if path.stem == ("solo12", "talos_left_arm")[seed % 2])
    ours = TreeDynamics.from_urdf(path)
    oracle, listed = RegressorOracle(path, ours, free_root=True), parameters(ours.model, root=True)
    q, qd, qdd, _ = random_state(rng, ours.n)
    quaternion, (v, w, a, wd) = rng.normal(size=4), rng.normal(size=(4, 3))
    quaternion /= np.linalg.norm(quaternion)
    x, y, z, s = quaternion
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - s * z), 2 * (x * z + s * y)],
                  [2 * (x * y + s * z), 1 - 2 * (x * x + z * z), 2 * (y * z - s * x)],
                  [2 * (x * z - s * y), 2 * (y * z + s * x), 1 - 2 * (x * x + y * y)]])
    truth = oracle.free_regressor(quaternion, q, np.concatenate((v, w, qd)), np.concatenate((a, wd, qdd)))
    base = RootMotion(w=w, wd=wd, a=a + np.cross(w, v))
    Y, _ = at(ours.model, listed, (q, qd, qdd, 0 * q), R.T @ ours.gravity_vector, base=base, root=True)
    assert worst(Y, truth) < 1e-12


# ---------------------------------------------------------------------- the recursion itself

@pytest.mark.parametrize("seed", SEEDS)
def test_regressor_with_joint_dynamics_and_mimic_joints_reproduces_torque_and_rate(seed):
    ours = robot(seed)
    motion, listed = random_state(np.random.default_rng(seed), ours.n), parameters(ours.model, TERMS)
    for found, truth in zip(at(ours.model, listed, motion, ours.gravity_vector), ours.torque_and_rate(*motion)):
        assert worst(found @ values(ours.model, listed), truth) < 1e-12


@pytest.mark.parametrize("seed", SEEDS[:6])
def test_base_rows_of_the_regressor_equal_the_root_wrench(seed):
    """The rate is compared with differences of the components along a base motion."""
    model, rng = robot(seed).model, np.random.default_rng(seed)
    listed, params = parameters(model, root=True), values(model, parameters(model, root=True))
    state, (w, wd, wdd, a, j) = random_state(rng, model.n), rng.normal(size=(5, 3))

    def wrench(t):
        """Return the wrench of a base whose w and a are polynomials of time in its own frame: their rates add w x, except for
        w.
        """
        wt, slope, at_t = w + wd * t + wdd * t * t / 2, wd + wdd * t, a + j * t
        base = RootMotion(wt, slope, wdd + np.cross(wt, slope), at_t, j + np.cross(wt, at_t))
        moving = along(*state, t)
        motion = kinematics(model, *moving, state[3], base)
        forces = dynamics(model, motion, *moving[1:], state[3])
        return np.concatenate((forces.f[0], forces.n[0])), base

    Y, Yd = at(model, listed, state, np.zeros(3), base=wrench(0.0)[1], root=True)
    assert worst(Y[:6] @ params, wrench(0.0)[0]) < 1e-12
    assert worst(Yd[:6] @ params, difference(lambda t: wrench(t)[0])) < 1e-8


# ---------------------------------------------------------------------- rate

@pytest.mark.parametrize("seed", SEEDS[:8])
def test_rate_regressor_is_the_derivative_of_the_regressor(seed):
    """Every entry is compared with dual numbers, complex steps and differences."""
    ours = robot(seed)
    model, gravity, state = ours.model, ours.gravity_vector, random_state(np.random.default_rng(seed), ours.n)
    q, qd, qdd, qddd = state
    listed = parameters(model, TERMS)
    Y, Yd = at(model, listed, state, gravity)
    by_jets, _ = at(model, listed, (jets(q, qd), jets(qd, qdd), jets(qdd, qddd), jets(qddd, 0 * q)), gravity)
    assert worst(derivative(by_jets, 0).astype(float), Y) < 1e-13
    assert worst(derivative(by_jets, 1).astype(float), Yd) < 1e-12
    h = 1e-30
    stepped, _ = at(model, listed, (q + 1j * h * qd, qd + 1j * h * qdd, qdd + 1j * h * qddd, qddd), gravity)
    assert worst(np.imag(stepped.astype(complex)) / h, Yd) < 1e-12
    assert worst(difference(lambda t: at(model, listed, (*along(*state, t), qddd), gravity)[0]), Yd) < 1e-8


# ---------------------------------------------------------------------- kernels

@pytest.mark.parametrize("seed", SEEDS[:4])
def test_kernels_and_batches_give_the_same_regressor(seed):
    listed = parameters(robot(seed).model, ("viscous",))
    motions = np.random.default_rng(seed).normal(size=(4, 5, robot(seed).n))
    answers = []
    for backend in ("llvm", "python", "reference"):
        compiled = Regressor(robot(seed, backend), listed)
        Y, Yd = compiled.with_rate(*motions)
        assert Y.shape == Yd.shape == (5, robot(seed).n, len(listed))
        for k in range(5):
            single, single_rate = compiled.with_rate(*motions[:, k])
            assert np.array_equal(single, Y[k]) and np.array_equal(single_rate, Yd[k])
        assert worst(compiled(*motions[:3]), Y) < 1e-13
        answers.append((Y, Yd))
    for other in answers[1:]:
        assert worst(other[0], answers[0][0]) < 1e-13 and worst(other[1], answers[0][1]) < 1e-13


def operations(n):
    """Return the operations per nonzero entry of Y and Yd for a chain of n joints in general position."""
    model = TreeDynamics.from_urdf(arm(*[{"xyz": (0.1, 0.2, 0.3), "rpy": (0.4, 0.5, 0.6), "axis": (0, 0, 1)}] * n)).model
    unknown, count, gravity = with_unknowns(model, parameters(model)), 10 * n, np.array([0.0, 0.0, -9.81])

    def function(q, qd, qdd, qddd):
        return regressor(unknown, count, q, qd, qdd, qddd, gravity)

    program = trace(function, dict.fromkeys(("q", "qd", "qdd", "qddd"), n))
    zeros = {number for number, node in program.nodes if node == ("const", 0.0)}
    entries = sum(number not in zeros for number in program.results)
    counts = program.operation_counts
    return (counts["mul"] + counts["add"] + counts["sub"]) / entries


def test_operation_count_per_regressor_entry_is_bounded():
    """The count does not grow with the distance between joint and link."""
    four, eight, sixteen = operations(4), operations(8), operations(16)
    assert sixteen < 30.0 and sixteen - eight < 0.7 * (eight - four)


# ---------------------------------------------------------------------- parameters and forms

@pytest.mark.parametrize("seed", SEEDS[:6])
def test_regressor_times_changed_values_gives_the_torques_of_the_changed_robot(seed):
    model = robot(seed).model
    listed = parameters(model, TERMS)
    new = np.random.default_rng(seed).uniform(0.1, 1.0, len(listed))
    changed = with_values(model, listed, new)
    assert worst(values(changed, listed), new) < 1e-14
    motion = random_state(np.random.default_rng(seed), model.n)
    tau, rate = TreeDynamics(changed, "python", robot(seed).gravity_vector).torque_and_rate(*motion)
    Y, Yd = at(model, listed, motion, robot(seed).gravity_vector)
    assert worst(tau, Y @ new) < 1e-12 and worst(rate, Yd @ new) < 1e-12


def test_nonlinear_operations_on_forms_are_rejected():
    p, q = unknowns(2)
    for wrong in (lambda: p * q, lambda: p / q, lambda: 1.0 / p, lambda: p + 1.0, lambda: 2.0 - q, lambda: p - 1j):
        with pytest.raises(TypeError):
            wrong()
    assert (3.0 * p - q / 2.0 + 0.0).c == {0: 3.0, 1: -0.5}
    assert (0.0 - p + p).c == {}
    with pytest.raises(TypeError, match="something else was added"):
        coefficients([1.0], 2)


def test_inertial_and_joint_parameters_have_names_and_units():
    slide = parameters(TreeDynamics.from_urdf(arm({"kind": "prismatic"}, {})).model, ("Ia", "viscous"))[10:12]
    assert [(p.name, p.unit) for p in slide] == [("Ia(j1)", "kg"), ("viscous(j1)", "N s/m")]
    turn = parameters(TreeDynamics.from_urdf(arm({})).model, TERMS)
    assert [p.name for p in turn[:5]] == ["m(l1)", "msx(l1)", "msy(l1)", "msz(l1)", "Jxx(l1)"]
    assert [p.unit for p in turn[10:]] == ["kg m^2", "N m", "N m s/rad", "N m"]


def test_invalid_values_of_parameters_are_rejected():
    ours = TreeDynamics.from_urdf(arm({}))
    with pytest.raises(InputError, match=r"\['spring'\] do not exist; allowed are Ia, coulomb, viscous, offset"):
        parameters(ours.model, ("spring",))
    with pytest.raises(InputError, match="qd has shape"):
        Regressor(ours, parameters(ours.model))([0.0], [0.0, 1.0], [0.0])
    listed = parameters(ours.model, TERMS)
    with pytest.raises(InputError, match="numbers that are not negative are needed"):
        with_values(ours.model, listed, np.full(len(listed), -1.0))
