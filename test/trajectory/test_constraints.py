"""Path constraints: coefficients of torque and torque rate against direct evaluation, and constraint rows."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.codegen import kernel
from rnea_ros.model.drives import DriveLimit
from rnea_ros.trajectory import constraints as constraint_module
from rnea_ros.trajectory import limit_check
from rnea_ros.trajectory.constraints import (
    Constraints,
    DriveConstraints,
    PathLimits,
    basis_values,
    constraint_values,
    torque_terms,
)
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.sample_kernels import SampleFunction
from support.robots import random_tree
from support.scaling_cases import ROOT, dynamics, toy, waypoints

NAN = np.full(2, np.nan)


def along(path, s, sd, sdd, sddd):
    """Return q, qd, qdd, qddd at s (samples,) by the chain rule."""
    q, q1, q2, q3 = path(s)
    v, a, u = sd[:, None], sdd[:, None], sddd[:, None]
    return q, q1 * v, q2 * v**2 + q1 * a, q3 * v**3 + 3.0 * q2 * v * a + q1 * u


def check(rate, t, path, s, seed):
    v, a, u = np.random.default_rng(seed).uniform(-2.0, 2.0, (3, len(s), 1))
    tau, tau_rate = rate(*along(path, s, v[:, 0], a[:, 0], u[:, 0]))
    np.testing.assert_allclose(t.m * a + t.c * v**2 + t.f * v + t.g, tau, rtol=1e-11, atol=1e-11 * np.abs(tau).max())
    found = t.m * u + t.b * v * a + t.c1 * v**3 + t.f1 * v**2 + t.f * a + t.g1 * v
    np.testing.assert_allclose(found, tau_rate, rtol=1e-11, atol=1e-11 * np.abs(tau_rate).max())


@pytest.mark.parametrize("seed", [1, 2, 3, 5, 8])
def test_torque_terms_along_a_path_reproduce_torque_and_rate_of_random_trees(seed):
    robot = Robot.from_urdf(random_tree(seed).text(), backend="python")
    term = JointDynamics(viscous=0.7, rotor_inertia=0.01, gear_ratio=3.0, offset=0.2)
    robot = robot.with_joint_dynamics({link.joint: term for link in robot.model.links if link.joint})
    path = path_through(np.random.default_rng(seed).uniform(-1.0, 1.0, (5, robot.n)))
    s = np.linspace(0.0, path.length, 9)
    check(robot.torque_and_rate, torque_terms(robot.torque_and_rate, *path(s)), path, s, seed)


def test_torque_term_derivatives_along_the_path_match_differences():
    """c', f', g' and m' = b - 2 c by differences in s."""
    robot = dynamics("seven_r").robot
    path = path_through(waypoints(robot, 0))
    s, h = np.linspace(0.5, path.length - 0.5, 20), 1e-5
    here, before, behind = (torque_terms(robot.torque_and_rate, *path(x)) for x in (s, s - h, s + h))
    for value, derivative in (("c", here.c1), ("f", here.f1), ("g", here.g1), ("m", here.b - 2.0 * here.c)):
        slope = (getattr(behind, value) - getattr(before, value)) / (2.0 * h)
        np.testing.assert_allclose(slope, derivative, atol=1e-6 * max(1.0, np.abs(derivative).max()))


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_compiled_torque_terms_equal_the_direct_ones(backend):
    robot = Robot.from_urdf(ROOT / "urdf/stanford.urdf", backend=backend)
    term = JointDynamics(viscous=0.3, rotor_inertia=0.02)
    robot = Robot.from_model(robot.model.with_joint_dynamics(dict.fromkeys(robot.joint_names, term)), backend)
    path = path_through(waypoints(robot, 1))
    s = np.linspace(0.0, path.length, 7)
    for carried in (robot, robot.with_payload("link6", 1.2, (0.0, 0.1, 0.05))):
        found, wanted = PathDynamics(carried)(*path(s)), torque_terms(carried.torque_and_rate, *path(s))
        for a, b in zip(found, wanted):
            np.testing.assert_allclose(a, b, atol=1e-11 * max(1.0, np.abs(b).max()))


def test_new_payload_reuses_the_compiled_path_terms():
    robot = dynamics("seven_r").robot
    link = list(robot.model.frames)[-1]
    light, heavy = (PathDynamics(robot.with_payload(link, mass)) for mass in (1.0, 3.0))
    assert heavy.terms.kernel is light.terms.kernel
    motion = path_through(waypoints(robot, 0))(np.linspace(0.0, 5.0, 5))
    assert np.abs(heavy(*motion).g - light(*motion).g).max() > 1.0
    assert PathDynamics(robot).terms.kernel is not light.terms.kernel  # without payload: another kernel


def test_pickled_path_dynamics_is_small_and_equal():
    robot = dynamics("seven_r").robot
    carrying = PathDynamics(robot.with_payload("link7", 1.5, (0.0, 0.1, 0.05)))
    motion = path_through(waypoints(robot, 0))(np.linspace(0.0, 5.0, 5))
    wanted = carrying(*motion)
    text = pickle.dumps(carrying)
    copy = pickle.loads(text)
    assert len(text) < 20_000 and copy.terms.kernel is carrying.terms.kernel  # once in each process
    for a, b in zip(copy(*motion), wanted):
        np.testing.assert_array_equal(a, b)


def test_coulomb_friction_is_subtracted_from_the_effort_limits():
    robot = Robot.from_urdf(ROOT / "urdf/seven_r.urdf")
    rough = Robot.from_model(robot.model.with_joint_dynamics({"joint2": JointDynamics(coulomb=5.0, viscous=1.0)}))
    path = path_through(waypoints(robot, 0))
    smooth = Robot.from_model(robot.model.with_joint_dynamics({"joint2": JointDynamics(viscous=1.0)}))
    s = np.linspace(0.0, path.length, 11)
    for a, b in zip(PathDynamics(rough)(*path(s)), PathDynamics(smooth)(*path(s))):
        np.testing.assert_allclose(a, b, atol=1e-12)
    np.testing.assert_array_equal(robot.limits.effort - PathDynamics(rough).limits().effort, [0, 5, 0, 0, 0, 0, 0])
    stuck = Robot.from_model(robot.model.with_joint_dynamics({"joint7": JointDynamics(coulomb=15.0)}))
    with pytest.raises(InputError, match="Coulomb friction of joint7 takes all of its effort limit, 15"):
        PathDynamics(stuck).limits()


# ---------------------------------------------------------------------- rows


def toy_constraints(**limits):
    path = path_through([[0.0, 0.0], [1.0, 0.5], [2.0, -0.5]])
    given = dict.fromkeys(PathLimits._fields, NAN) | {name: np.array(value) for name, value in limits.items()}
    return Constraints(path, lambda *p: torque_terms(toy, *p), PathLimits(**given), ("swing", "slide"))


def test_constraint_rows_are_utilizations_of_limits():
    limits = {"effort": [7.0, np.nan], "effort_rate": [50.0, 20.0], "velocity": [np.nan, 2.0], "acceleration": [4.0, 5.0],
              "jerk": [np.nan, 30.0]}
    constraints = toy_constraints(**limits)
    rng = np.random.default_rng(0)
    s, (v, a, u) = rng.uniform(0.0, constraints.path.length, 20), rng.uniform(-2.0, 2.0, (3, 20))
    motion = along(constraints.path, s, v, a, u)
    values = {"effort": toy(*motion)[0], "effort_rate": toy(*motion)[1], "velocity": motion[1], "acceleration": motion[2],
              "jerk": motion[3]}
    rows = constraints(s)
    wanted = np.stack([values[name][:, k] / limits[name][k] for k, name in constraints.labels], axis=1)
    np.testing.assert_allclose(constraint_values(rows, v, a, u), wanted, atol=1e-12)
    assert constraints.unknown == ((1, "effort"), (0, "velocity"), (0, "jerk"))
    assert constraints.describe(1) == "effort rate of swing"
    assert constraints.second_order and constraints.third_order
    assert not toy_constraints(velocity=[1.0, 1.0]).second_order
    for name, third in (("acceleration", False), ("effort", False), ("effort_rate", True), ("jerk", True)):
        assert toy_constraints(**{name: [np.nan, 1.0]}).third_order is third
    # the same motion seen on the clock of a law
    k, kappa, w = rng.uniform(0.2, 2.0, (3, 20))
    motion = v * k, a * k**2 + v * kappa, u * k**3 + 3.0 * a * k * kappa + v * w
    found = constraint_values(constraints.coefficients_on_law(s, v, a, u), k, kappa, w)
    np.testing.assert_allclose(found, constraint_values(rows, *motion), atol=1e-12)


def test_drive_limits_bound_efforts_where_all_else_is_zero():
    """Power bounds no effort at rest; current of both motors bounds each effort by its factor, less Coulomb friction."""
    limits = [DriveLimit("current", "both", (0, 1), -6.0, 6.0), DriveLimit("power", "swing", (0,), -4.0, 10.0)]
    factors = {name: np.zeros((2, 3)) for name in ("effort", "effort_rate", "velocity", "power")}
    factors["effort"][0], factors["power"][1] = [2.0, 0.5, 0.0], [1.0, 0.0, 0.0]
    drives = DriveConstraints(limits, factors, np.array([0.5, 1.0, 0.0]))  # friction takes 2 * 0.5 + 0.5 * 1 of 6
    np.testing.assert_allclose(drives.bound_of("effort"), [4.5 / 2.0, 4.5 / 0.5, np.nan])
    np.testing.assert_array_equal(drives.bound_of("effort_rate"), [np.nan, np.nan, np.nan])


def test_invalid_path_limits_are_rejected():
    for limits, message in (({}, "not one limit is known"), ({"effort": [0.0, 1.0]}, "effort limit of swing is 0.0"),
                            ({"velocity": [1.0]}, "velocity limits have shape"),
                            ({"jerk": [1.0, -2.0]}, "jerk limit of slide")):
        with pytest.raises(InputError, match=message):
            toy_constraints(**limits)
    path = path_through([[0.0, 0.0], [1.0, 0.5]])
    for limits in (PathLimits(np.ones(2), NAN, NAN, NAN, NAN), PathLimits(NAN, np.ones(2), NAN, NAN, NAN)):
        with pytest.raises(InputError, match="need the robot's dynamics"):
            Constraints(path, None, limits)
    with pytest.raises(InputError, match="the path has 2 joints, the robot 3"):
        Constraints(path, None, PathLimits(NAN, NAN, np.ones(2), NAN, NAN), ("a", "b", "c"))


def test_basis_has_all_products_of_the_path_parameters():
    np.testing.assert_array_equal(basis_values(np.array([2.0]), np.array([3.0]), np.array([5.0])), [[1, 2, 4, 3, 8, 6, 5]])


def test_compiled_constraint_rows_equal_numpy(monkeypatch):
    """Some joints have limits of each quantity, and there are more samples than vector lanes."""
    known = dynamics("seven_r")
    path, rng = path_through(waypoints(known.robot, 2)), np.random.default_rng(7)
    limits = np.where(rng.random((6, 7)) < 0.3, np.nan, rng.uniform(1.0, 50.0, (6, 7)))
    motion = np.stack((rng.uniform(0.0, path.length, 301), *rng.normal(size=(3, 301))))
    found = []
    for backend in ("llvm", "python"):
        monkeypatch.setattr(kernel, "available", lambda asked, backend=backend: backend)
        constraint_module._compiled.cache_clear()
        constraints = Constraints(path, known, PathLimits(*limits), commanded="without_gravity")
        found.append((constraints.coefficients_on_law(*motion), constraints.rate_polynomials(motion)))
    constraint_module._compiled.cache_clear()
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("compiled", [True, False])
def test_constraint_bounds_on_intervals_exceed_all_samples(compiled):
    """The bound exceeds the largest sample by no more than a parabola through three samples; every constraint that may bind
    is included.
    """
    rng, offset, share = np.random.default_rng(11), np.array([0.0, 0.2, -0.5])[np.arange(600) % 3], 0.9
    ends = rng.uniform(-0.4, 0.4, (3, 600, 4))
    x = np.linspace(-1.0, 1.0, limit_check.COARSE_STEPS + 1)[:, None, None]
    names = [f"p{k}" for k in range(len(x))]
    inputs = {**dict.fromkeys(names, 4), "rate": 1, "share": 1, "offset": 1}
    bound = SampleFunction(limit_check.utilization_bound, inputs, compiled)
    samples = ends[0] + x * ends[1] + x * x * ends[2]
    used, reach, sums = bound([*samples, np.array([0.8]), np.array([share]), offset[:, None]], 600)[0].T
    rates = 0.8 * np.array([1.0, 0.75, 0.5])

    def played(x, rate):
        away = (ends[0] + x * ends[1] + x * x * ends[2]) @ rate ** np.arange(4.0) - offset
        return np.where(away > 0.0, away / (1.0 - offset), -away / (1.0 + offset))

    np.testing.assert_allclose(used, np.max([played(at, 0.8) for at in x[:, 0]], axis=0), rtol=1e-12)
    closely = np.max([played(at, rate) for at in np.linspace(-1.0, 1.0, 301) for rate in rates], axis=0)
    assert (reach >= closely - 1e-12).all() and np.median(reach - closely) < 0.1
    worst = np.max([played(at, rate) for at in x[:, 0] for rate in np.linspace(0.0, 0.8, 41)], axis=0)
    assert (sums[worst >= share] >= 1.0 - 1e-12).all() and (sums < 1.0).any()


def test_columns_of_zeros_are_left_out():
    values = np.zeros((5, 3, 2))
    group = constraint_module.ConstraintGroup((0, 2, 3), values)
    assert group.used_columns() == [0]
    values[4, 2, 1] = 0.1
    assert group.used_columns() == [2]
    values[0, 0, 0] = -0.1
    assert group.used_columns() == [0, 2]
