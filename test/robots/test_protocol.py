"""Properties of every kind of robot: signatures, shapes of all results, equations of motion, copies."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from rnea_ros import BaseState, InputError, Loads, MotorState, Robot, load
from rnea_ros.robots.robot import OF_TREES
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import difference
from support.robot_kinds import (
    ARM,
    BASE,
    FIVE_BAR,
    MAKERS,
    Case,
    after,
    base_acceleration,
    case,
    each_kind,
    loads_on,
    motion_of,
    steady,
    whole_motion,
)

# Functions of every robot.
METHODS = ("bias", "center_of_mass", "dynamics", "energy", "forward_dynamics", "gravity", "inverse_dynamics", "jacobian",
           "jacobian_rate", "joint_wrenches", "link_pose", "link_velocity", "mass_matrix", "rate_sensitivities",
           "sensitivities", "torque_and_rate", "with_payload")


# ------------------------------------------------------------------ signatures


@pytest.mark.parametrize("name", OF_TREES)
def test_methods_of_fixed_trees_and_robots_have_the_same_arguments(name):
    """Positional arguments have the same order; loads and other options are keywords."""
    robot, tree = (inspect.signature(getattr(owner, name)).parameters for owner in (Robot, TreeDynamics))
    positional = [p.name for p in tree.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    assert [p.name for p in robot.values() if p.kind is p.POSITIONAL_OR_KEYWORD] == positional
    keywords = {p.name for p in tree.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords <= {p.name for p in robot.values() if p.kind is p.KEYWORD_ONLY}
    assert keywords <= {"base", "loads"}  # the base of a link on a moving tree
    assert [p.name for p in tree.values() if p.kind is p.VAR_KEYWORD] == ["others"]


@pytest.mark.parametrize("name", METHODS)
def test_keyword_arguments_have_defaults(name):
    parameters = inspect.signature(getattr(Robot, name)).parameters
    assert not [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY and p.default is p.empty]


@each_kind
def test_every_kind_of_robot_has_the_common_properties(kind):
    robot = case(kind).robot
    assert type(robot) is Robot
    assert type(robot.name) is str and type(robot.order) is int and robot.n == len(robot.joint_names) == len(robot.joint_types)
    assert set(robot.joint_types) <= {"revolute", "continuous", "prismatic"}
    assert all(getattr(robot.limits, name).shape == (robot.n,) for name in ("lower", "upper", "effort", "velocity"))
    assert robot.order == (5 if kind == "elastic joints" else 3)


def test_load_returns_a_robot():
    assert isinstance(load(*FIVE_BAR), Robot) and isinstance(load(ARM), Robot)


# ------------------------------------------------------------------ results


def answers(case: Case, motion: list[np.ndarray]) -> dict[str, Any]:
    """Return the results of every method for the same positional arguments."""
    robot, (q, qd), state = case.robot, motion[:2], case.state
    tau, at = motion[2], {**case.state, **case.motors(*motion)}
    return {
        "inverse_dynamics": robot.inverse_dynamics(*motion[:robot.order], **state),
        "torque_and_rate": robot.torque_and_rate(*motion[:robot.order + 1], **state),
        "dynamics": robot.dynamics(*motion[:robot.order + 1], **state),
        "mass_matrix": robot.mass_matrix(q, **state), "bias": robot.bias(q, qd, **at), "gravity": robot.gravity(q, **state),
        "forward_dynamics": robot.forward_dynamics(q, qd, tau, **at),
        "link_pose": robot.link_pose(case.link, q, (0.1, 0.2, 0.3), **state),
        "link_velocity": robot.link_velocity(case.link, q, qd, **state),
        "jacobian": robot.jacobian(case.link, q, **state), "jacobian_rate": robot.jacobian_rate(case.link, q, qd, **state),
        "energy": robot.energy(q, qd, **at), "center_of_mass": robot.center_of_mass(q, qd, **state),
        "sensitivities": robot.sensitivities(*motion[:robot.order], **state),
        "rate_sensitivities": robot.rate_sensitivities(*motion[:robot.order + 1], **state),
        "joint_wrenches": wrenches(case, motion),
    }


def wrenches(case: Case, motion: list[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return joint wrenches; none for planar loops, which reject the request."""
    if case.over_held:
        with pytest.raises(InputError, match="more than the motion needs"):
            case.robot.joint_wrenches(*motion[:case.robot.order + 1], **case.state)
        return ()
    found = case.robot.joint_wrenches(*motion[:case.robot.order + 1], **case.state)
    assert found.joints == ("j1", "j2", "j3")
    return found.wrench, found.rate


def shapes(case: Case) -> dict[str, list[tuple[int, ...]]]:
    n, rows, columns = case.robot.n, case.first + case.robot.n + case.last, case.first + case.robot.n
    return {"inverse_dynamics": [(n,)], "torque_and_rate": [(n,)] * 2, "dynamics": [(n,)] * 4, "mass_matrix": [(rows, rows)],
            "bias": [(rows,)], "gravity": [(rows,)], "forward_dynamics": [(n,)], "link_pose": [(3, 3), (3,)],
            "link_velocity": [(6,)], "jacobian": [(6, columns)], "jacobian_rate": [(6, columns)],
            "energy": [(), ()], "center_of_mass": [(3,), (3,), (6,)],
            "sensitivities": [(n, n)] * case.robot.order, "rate_sensitivities": [(n, n)] * (case.robot.order + 1),
            "joint_wrenches": [] if case.over_held else [(3, 6)] * 2}


def parts(answer: Any) -> tuple[np.ndarray, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


@each_kind
def test_results_have_the_declared_shapes(kind):
    one, motion = case(kind), motion_of(case(kind))
    found, expected = answers(one, motion), shapes(one)
    assert set(found) == set(expected) == set(METHODS) - {"with_payload"}
    many = answers(one, [np.stack((x, x + 0.01, x)) for x in motion])
    for name, answer in found.items():
        assert [part.shape for part in parts(answer)] == expected[name], name
        assert [part.shape for part in parts(many[name])] == [(3, *shape) for shape in expected[name]], name
        for alone, together in zip(parts(answer), parts(many[name]), strict=True):
            for k in (0, 2):
                np.testing.assert_allclose(together[k], alone, rtol=1e-8, atol=1e-8, err_msg=name)


@each_kind
def test_equations_of_motion_hold_under_external_wrenches(kind):
    """Forward dynamics inverts inverse dynamics, and M a + bias equals the forces."""
    one, motion = case(kind), motion_of(case(kind), 2)
    robot, (q, qd, qdd) = one.robot, motion[:3]
    loads = steady(loads_on(one))
    if kind == "elastic joints":  # a load on a spring moves the motor
        found = robot.motor_motion(*motion[:robot.order], loads=loads)
        tau, state, more = found.tau, {"motors": MotorState(found.q_motor, found.qd_motor)}, found.qdd_motor
        np.testing.assert_allclose(robot.inverse_dynamics(*motion[:robot.order], loads=loads), tau)
    else:
        tau, state, more = robot.inverse_dynamics(q, qd, qdd, **one.state, loads=loads), one.state, np.zeros(0)
        if one.first:
            more = base_acceleration(one, q, qd, qdd, loads=loads)
        qdd = whole_motion(one, q, qd, qdd, loads=loads)[2]
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, tau, **state, loads=loads), qdd, rtol=1e-7, atol=1e-7)
    accelerations = np.concatenate((more, qdd) if one.first else (qdd, more))
    forces = robot.mass_matrix(q) @ accelerations + robot.bias(q, qd, **state, loads=loads)
    if kind == "elastic joints":
        expected = np.concatenate((tau, tau[[1]]))
        expected[1] = 0.0  # the spring is inside
    elif kind == "springs":
        expected = np.where(np.isin(robot.joint_names, robot.state_joints), 0.0, tau)
    else:
        expected = np.concatenate((np.zeros(one.first), tau))
    np.testing.assert_allclose(forces, expected, rtol=1e-7, atol=1e-7)


@each_kind
def test_torque_rates_under_external_wrenches_match_differences(kind):
    """Link wrenches change with their rates, world wrenches are constant: sixth-order differences along the motion."""
    one, motion, loads = case(kind), motion_of(case(kind), 3), loads_on(case(kind))
    robot = one.robot
    tau, rate = robot.torque_and_rate(*motion[:robot.order + 1], **one.state, loads=loads)
    now = robot.dynamics(*motion[:robot.order + 1], **one.state, loads=loads)
    np.testing.assert_allclose((now.tau, now.tau_rate), (tau, rate), rtol=1e-9, atol=1e-9)
    if one.first:  # the base follows its acceleration and jerk
        acceleration = base_acceleration(one, *motion, loads=steady(loads))
        spatial = BASE.spatial(acceleration)
    motion = whole_motion(one, *motion, loads=loads)

    def at(t: float) -> np.ndarray:
        powers = [t**k / np.prod(range(1, k + 1)) for k in range(len(motion) + 1)]
        moved = [sum(x * powers[j] for j, x in enumerate(motion[k:])) for k in range(len(motion))]
        state = dict(one.state)
        if one.first:
            step = BASE.vector() + t * BASE.vector_rate(acceleration)
            base = BaseState.from_vector(step)
            state = {"base": BaseState(base.position, base.quaternion, BASE.velocity + t * spatial)}
        pushed = after(loads, t)
        pushed = pushed if kind == "elastic joints" else steady(pushed)
        return robot.inverse_dynamics(*moved[:robot.order], **state, loads=pushed)

    np.testing.assert_allclose(difference(at), rate, rtol=2e-6, atol=2e-6)


@each_kind
def test_energy_rate_equals_motor_power(kind):
    """The energy includes bodies and springs; the momentum is mass times the velocity of the centre of mass."""
    one, motion = case(kind), motion_of(case(kind), 5)
    robot = one.robot
    motion = whole_motion(one, *motion)
    tau, speed = robot.inverse_dynamics(*motion[:robot.order], **one.state), motion[1].copy()
    if kind == "springs":
        speed[[robot.joint_names.index(name) for name in robot.state_joints]] = 0.0  # springs are part of the energy
    if kind == "elastic joints":
        elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
        speed[elastic] = robot.motor_motion(*motion[:robot.order]).qd_motor

    def at(t: float) -> tuple[dict[str, Any], list[np.ndarray]]:
        powers = [t**k / np.prod(range(1, k + 1)) for k in range(len(motion) + 1)]
        moved, state = [sum(x * powers[j] for j, x in enumerate(motion[k:])) for k in range(len(motion))], dict(one.state)
        if one.first:
            free = base_acceleration(one, *motion)
            base = BaseState.from_vector(BASE.vector() + t * BASE.vector_rate(free))
            state = {"base": BaseState(base.position, base.quaternion, BASE.velocity + t * BASE.spatial(free))}
        return state, moved

    def energy(t: float) -> float:
        state, moved = at(t)
        return robot.energy(*moved[:2], **state, **one.motors(*moved)).total

    def centre(t: float) -> np.ndarray:
        state, moved = at(t)
        return robot.center_of_mass(*moved[:2], **state).position

    np.testing.assert_allclose(difference(energy), speed @ tau, rtol=2e-6, atol=2e-6)
    mass_centre = robot.center_of_mass(*motion[:2], **one.state)
    np.testing.assert_allclose(difference(centre), mass_centre.velocity, rtol=1e-8, atol=1e-8)
    mass = mass_centre.momentum[:3] @ mass_centre.velocity / (mass_centre.velocity @ mass_centre.velocity)
    np.testing.assert_allclose(mass_centre.momentum[:3], mass * mass_centre.velocity, rtol=1e-9, atol=1e-12)


@each_kind
def test_gravity_share_of_dynamics_matches_gravity_and_differences(kind):
    """The gravity share is the torque that holds the joints; its rate is a difference along the motion."""
    one, motion = case(kind), motion_of(case(kind), 4)
    robot, state = one.robot, dict(one.state)
    now = robot.dynamics(*motion[:robot.order + 1], **state)
    joints = slice(one.first, one.first + robot.n)
    np.testing.assert_allclose(now.gravity, robot.gravity(motion[0], **state)[joints], rtol=1e-9, atol=1e-9)

    def at(t: float) -> np.ndarray:
        moved = dict(state)
        if one.first:
            moved = {"base": BaseState.from_vector(BASE.vector() + t * BASE.vector_rate(np.zeros(6)))}
        return robot.gravity(motion[0] + t * motion[1], **moved)[joints]

    np.testing.assert_allclose(difference(at), now.gravity_rate, rtol=1e-6, atol=1e-6)


@each_kind
def test_payload_changes_the_copy_and_not_the_robot(kind):
    one, motion = case(kind), motion_of(case(kind))
    before = answers(one, motion)
    loaded = one.robot.with_payload(one.link, 2.0, (0.1, 0.0, 0.05), 0.01 * np.eye(3))
    assert type(loaded) is type(one.robot)
    assert np.abs(loaded.mass_matrix(motion[0], **one.state) - before["mass_matrix"]).max() > 1e-3
    after = answers(one, motion)
    for name in before:
        for a, b in zip(parts(before[name]), parts(after[name]), strict=True):
            np.testing.assert_array_equal(a, b)


# ------------------------------------------------------------------ rejected input


@each_kind
@pytest.mark.parametrize("name", [name for name in METHODS if name != "with_payload"])
def test_invalid_arguments_raise_input_errors(kind, name):
    """Arguments have wrong sizes, NaN values or unknown links."""
    one = case(kind)
    robot, motion = one.robot, motion_of(one)
    declared = inspect.signature(getattr(Robot, name)).parameters
    arrays = [p for p in declared if p in ("q", "qd", "qdd", "qddd", "tau")]
    given = [motion[("q", "qd", "qdd", "qddd", "tau").index(p)] if p != "tau" else motion[2] for p in arrays]
    ask: Callable[..., Any] = partial(getattr(robot, name), one.link) if "link" in declared else getattr(robot, name)
    state = one.state if name not in ("bias", "forward_dynamics", "energy") else {**one.state, **one.motors(*motion)}
    with_rates = {"inverse_dynamics": 0, "sensitivities": 0, "torque_and_rate": 1, "dynamics": 1, "rate_sensitivities": 1,
                  "joint_wrenches": 1}
    more = motion[len(given):robot.order + with_rates[name]] if name in with_rates else []
    for k in range(len(given)):
        for wrong in (given[k][:-1], given[k] * np.nan, ["a"] * robot.n, given[k] * 1j):
            with pytest.raises(InputError):
                ask(*given[:k], wrong, *given[k + 1:], *more, **state)
    if "link" in declared:
        with pytest.raises(InputError, match="nowhere"):
            getattr(robot, name)("nowhere", *given, **state)
    for kind_of_load in ("wrenches", "world_wrenches") if "loads" in declared else ():
        with pytest.raises(InputError, match="nowhere"):
            ask(*given, *more, **state, loads=Loads(**{kind_of_load: {"nowhere": np.zeros(6)}}))
        with pytest.raises(InputError, match=one.link):
            ask(*given, *more, **state, loads=Loads(**{kind_of_load: {one.link: np.zeros(5)}}))
    if "loads" in declared:
        with pytest.raises(InputError, match=r"loads is .*Loads"):
            ask(*given, *more, **state, loads={one.link: np.zeros(6)})
    if one.first and name != "mass_matrix":
        with pytest.raises(InputError, match=r"base is None.*BaseState"):
            ask(*given, *more)


def test_errors_state_missing_derivatives_and_motors():
    robot, q = case("elastic joints").robot, np.zeros(3)
    with pytest.raises(InputError, match="3 derivatives of q are given; 5 decide the torque rates"):
        robot.torque_and_rate(q, q, q, q)
    with pytest.raises(InputError, match="2 derivatives of q are given; 4 decide the torques"):
        robot.inverse_dynamics(q, q, q)
    with pytest.raises(InputError, match="motors is missing"):
        robot.forward_dynamics(q, q, q)


# ------------------------------------------------------------------ copies


# test_pickling.py has platforms and moving loops, with every backend.
@pytest.mark.parametrize("kind", [pytest.param(kind, marks=pytest.mark.campaign) if kind in ("platform", "moving loops")
                                  else kind for kind in MAKERS])
def test_copies_and_pickles_of_every_kind_give_equal_results(kind):
    one, motion = MAKERS[kind]("python"), motion_of(case(kind))
    expected = answers(one, motion)
    for robot in (pickle.loads(pickle.dumps(one.robot)), copy.deepcopy(one.robot), copy.copy(one.robot)):
        assert type(robot) is type(one.robot)
        found = answers(one._replace(robot=robot), motion)
        for name, answer in found.items():
            for a, b in zip(parts(answer), parts(expected[name]), strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)
