"""Free bases against Pinocchio's free-flyer, published values, finite differences, dual numbers and invariants."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import BaseState, InputError, JointDynamics, Loads, Robot, load
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms import forward_dynamics
from rnea_ros.codegen.program import trace
from rnea_ros.model.tree import Link, frozen
from rnea_ros.robots.kernel_functions import KERNEL_FUNCTIONS
from rnea_ros.robots.tree import TreeDynamics
from support.free_flyer import CASES, GRAVITY, SEEDS, FreeFlyer, example, loads, oracle, random_base, robot, source, state
from support.golden_models import from_table
from support.oracles import GOLDEN, worst
from support.robots import INERTIAL, arm, random_state

each_case = pytest.mark.parametrize("name", CASES)
each_robot = pytest.mark.parametrize("name", [*CASES, *SEEDS])


def accelerations(found, robot):
    """Return the accelerations of the joints in a Solution."""
    return np.array([found.positions[name][2] for name in robot.joint_names])


# ------------------------------------------------------------------ against Pinocchio


@each_robot
def test_inverse_dynamics_of_a_free_base_matches_pinocchio(name):
    base, q, qd, qdd, _ = state(name)
    wrenches, _ = loads(name, np.random.default_rng(1))
    ours = robot(name).solve(q, qd, qdd, stages=1, base=base, loads=Loads(wrenches))
    truth = oracle(name).base_acceleration(base, q, qd, qdd, wrenches)
    assert worst(ours.base_acceleration, truth) < 1e-9
    forces = oracle(name).forces(base, ours.base_acceleration, q, qd, qdd, wrenches)
    assert worst(forces, np.concatenate((np.zeros(6), ours.torques[0]))) < 1e-9


@each_robot
def test_mass_matrix_and_bias_of_a_free_base_match_pinocchio(name):
    base, q, qd, *_ = state(name)
    wrenches, _ = loads(name, np.random.default_rng(2))
    assert worst(robot(name).mass_matrix(q), oracle(name).mass_matrix(base, q)) < 1e-11
    truth = oracle(name).forces(base, np.zeros(6), q, qd, 0 * q, wrenches)
    assert worst(robot(name).bias(q, qd, base=base, loads=Loads(wrenches)), truth) < 1e-10


@each_robot
def test_forward_dynamics_of_a_free_base_matches_pinocchio(name):
    base, q, qd, qdd, _ = state(name)
    wrenches, _ = loads(name, np.random.default_rng(3))
    given = robot(name).solve(q, qd, qdd, stages=1, base=base, loads=Loads(wrenches))
    found = robot(name).response(q, qd, given.torques[0], base=base, loads=Loads(wrenches))
    assert worst(accelerations(found, robot(name)), qdd) < 1e-7
    assert worst(found.base_acceleration, given.base_acceleration) < 1e-7
    tau = np.random.default_rng(4).normal(size=len(q))
    found = robot(name).response(q, qd, tau, base=base, loads=Loads(wrenches))
    ours = accelerations(found, robot(name))
    assert worst(robot(name).forward_dynamics(q, qd, tau, base=base, loads=Loads(wrenches)), ours) < 1e-12
    forces = oracle(name).forces(base, found.base_acceleration, q, qd, ours, wrenches)
    assert worst(forces, np.concatenate((np.zeros(6), tau))) < 1e-8
    if np.linalg.matrix_rank(oracle(name).fold) == len(oracle(name).fold):  # no mimic joints
        truth = oracle(name).accelerations(base, q, qd, np.concatenate((np.zeros(6), tau)), wrenches)
        assert worst(np.concatenate((found.base_acceleration, ours)), truth) < 1e-7


@each_robot
def test_center_of_mass_energy_and_link_velocities_match_pinocchio(name):
    base, q, qd, *_ = state(name)
    found = robot(name).center_of_mass(q, qd, base=base)
    for ours, truth in zip(found, oracle(name).center_of_mass(base, q, qd), strict=True):
        assert worst(ours, truth) < 1e-11
    assert worst(robot(name).energy(q, qd, base=base), oracle(name).energy(base, q, qd)) < 1e-11
    links = list(robot(name).tree.model.frames)[::7]
    truth = [oracle(name).link_velocity(base, q, qd, link) for link in links]
    assert worst(robot(name).link_velocities(links, q, qd, base=base), truth) < 1e-11


# ------------------------------------------------------------------ rates


@each_robot
def test_base_acceleration_and_jerk_keep_the_base_wrench_at_zero(name):
    """The prescribed-base recursion at the computed base acceleration and jerk has zero base wrench and wrench rate."""
    base, *motion = state(name)
    both = Loads(*loads(name, np.random.default_rng(6)))
    free = robot(name).solve(*motion, base=base, loads=both)
    moved = base.with_motion(free.base_acceleration, free.base_jerk)
    carried = robot(name).solve(*motion, base=moved, loads=both)
    scale = max(1.0, np.abs(free.torques[1]).max())
    assert not free.base_wrench.any() and not free.base_wrench_rate.any()
    assert np.abs(carried.base_wrench).max() < 1e-9 * scale and np.abs(carried.base_wrench_rate).max() < 1e-9 * scale
    assert worst(carried.torques[0], free.torques[0]) < 1e-9 and worst(*(x.torques[1] / scale for x in (carried, free))) < 1e-9


@pytest.mark.parametrize("seed", SEEDS)
def test_base_jerk_and_torque_rate_equal_dual_numbers_through_inverse_dynamics(seed):
    """The inverse dynamics is evaluated on dual numbers along the motion that it predicts."""
    base, q, qd, qdd, qddd = state(seed)
    model, w, g = robot(seed).tree.model, base.velocity[3:], base.into_base(GRAVITY)
    Vd0, Vdd0, tau, tau_rate = forward_dynamics.free_torque_and_rate(model, q, qd, qdd, qddd, w, g)
    jet_Vd0, jet_tau = forward_dynamics.free_inverse_dynamics(
        model, jets(q, qd), jets(qd, qdd), jets(qdd, qddd), jets(w, Vd0[3:]), jets(g, -np.cross(w, g)))
    turning = np.concatenate((np.cross(w, Vd0[:3]), np.cross(w, Vd0[3:])))
    scale = max(1.0, np.abs(np.array(tau_rate, dtype=float)).max(initial=0.0))
    assert worst(derivative(jet_tau, 0).astype(float), tau) < 1e-12
    assert worst(derivative(jet_tau, 1).astype(float) / scale, np.array(tau_rate) / scale) < 1e-11
    assert worst((derivative(jet_Vd0, 1) + turning).astype(float), Vdd0) < 1e-10


@each_case
def test_base_jerk_matches_differences_of_pinocchios_base_acceleration(name):
    """Pinocchio's base acceleration at t and -t. The states omit the jerk, which cancels in the difference."""
    base, q, qd, qdd, qddd = state(name)
    wrenches, rates = loads(name, np.random.default_rng(7))
    free = robot(name).solve(q, qd, qdd, qddd, base=base, loads=Loads(wrenches, rates))

    def acceleration(t):
        x, v = base.vector(), base.vector_rate(free.base_acceleration)
        halfway = BaseState.from_vector(x + v * (t / 2)).vector_rate(free.base_acceleration)  # midpoint rule
        then = BaseState.from_vector(x + halfway * t)
        now = (q + qd * t + qdd * (t * t / 2), qd + qdd * t + qddd * (t * t / 2), qdd + qddd * t)
        return then.into_world(oracle(name).base_acceleration(
            then, *now, {link: wrenches[link] + rates[link] * t for link in wrenches}))

    h = 1e-4
    slope = (acceleration(h) - acceleration(-h)) / (2 * h)
    size = max(1.0, np.abs(free.base_jerk).max())
    assert worst(base.into_world(free.base_jerk) / size, slope / size) < 1e-5


# ------------------------------------------------------------------ golden.json, laws, cost


def golden_robot():
    case = GOLDEN["floating_tree"]
    model = from_table("floating_tree", GOLDEN["tree4"]["links"])
    m, c, I = case["base"]["m"], np.array(case["base"]["c"]), np.array(case["base"]["I"])
    link = Link("l0", m=m, ms=frozen(m * c), J=frozen(I + m * (c @ c * np.eye(3) - np.outer(c, c))))
    object.__setattr__(model, "links", (link, *model.links[1:]))
    object.__setattr__(model, "base", "floating")
    base = BaseState(quaternion=case["base_quaternion_xyzw_world_from_base"], velocity=np.concatenate(
        (case["base_velocity_linear_base_frame"], case["base_angular_velocity_base_frame"])))
    return Robot(TreeDynamics(model, gravity=case["gravity_world"]), {"base": "floating"}), base


def golden_acceleration(case):
    return case["base_acc_classical_base_frame"] + case["base_ang_acc_base_frame"]


def test_floating_tree_equals_published_values():
    case, (robot, base) = GOLDEN["floating_tree"], golden_robot()
    q, qd, qdd = (np.array(GOLDEN["tree4"][name]) for name in ("q", "qd", "qdd"))
    ours = robot.solve(q, qd, qdd, stages=1, base=base)
    assert worst(ours.base_acceleration, golden_acceleration(case["ID"])) < 1e-11
    assert worst(ours.torques[0], case["ID"]["tau"]) < 1e-11
    weight = np.concatenate((base.into_base(robot.tree.gravity_vector), np.zeros(3)))
    assert worst(ours.base_acceleration - weight, case["ID"]["solution_of_eq97_before_adding_gravity"]) < 1e-11
    found = robot.response(q, qd, case["FD"]["Gamma"], base=base)
    assert worst(found.base_acceleration, golden_acceleration(case["FD"])) < 1e-11
    assert worst(accelerations(found, robot), case["FD"]["qdd"]) < 1e-11


@each_case
def test_free_base_satisfies_its_six_equations_of_motion(name):
    """Equations (83) and (86): A11 Vd0 + A12 qdd + H1 = 0, and tau from the other rows."""
    base, q, qd, qdd, _ = state(name)
    ours = robot(name).solve(q, qd, qdd, stages=1, base=base)
    rows = robot(name).mass_matrix(q) @ np.concatenate((ours.base_acceleration, qdd)) + robot(name).bias(q, qd, base=base)
    assert worst(rows, np.concatenate((np.zeros(6), ours.torques[0]))) < 1e-9


@each_case
def test_center_of_mass_of_a_free_robot_falls_with_gravity(name):
    """The angular momentum about the centre of mass is constant."""
    base, q, qd, *_ = state(name)
    still = np.zeros(robot(name).n)
    found = robot(name).response(q, qd, still, base=base)
    qdd = accelerations(found, robot(name))

    def after(t):
        x = BaseState.from_vector(base.vector() + base.vector_rate(found.base_acceleration) * t)
        return robot(name).center_of_mass(q + qd * t, qd + qdd * t, base=x)

    h = 1e-6
    fall = (after(h).velocity - after(-h).velocity) / (2 * h)
    spin = (after(h).momentum[3:] - after(-h).momentum[3:]) / (2 * h)
    assert worst(fall, GRAVITY) < 1e-7 and worst(spin, np.zeros(3)) < 1e-6 * max(1.0, np.abs(after(0.0).momentum).max())


def test_operation_count_grows_linearly_with_the_number_of_joints():
    """Operations of 15, 30 and 60 joints grow linearly, except for savings at the two ends of the chain."""
    for name in ("free_rates", "free_response", "prescribed_base"):
        counts = {}
        for n in (15, 30, 60):
            snake = Robot.from_urdf(example("snake").urdf(n + 1), "floating")
            counts[n] = sum(trace(*snake.tree.store.traced(KERNEL_FUNCTIONS[name], by_paper=False)).operation_counts.values())
        assert counts[60] - counts[30] == pytest.approx(2 * (counts[30] - counts[15]), rel=0.01), (name, counts)
        assert counts[60] < 700 * 60, (name, counts)


def parts(robot, motion, **state):
    """Return the results of a robot at a motion, for one sample or many."""
    q, qd, qdd = motion[:3]
    found, response = robot.solve(*motion, **state), robot.response(q, qd, qdd, **state)
    return [found.torques, found.base_acceleration, found.base_jerk, robot.inverse_dynamics(q, qd, qdd, **state),
            response.base_acceleration, robot.forward_dynamics(q, qd, qdd, **state), robot.bias(q, qd, **state),
            robot.gravity(q, **state), *robot.gravity_and_rate(q, qd, **state), *robot.center_of_mass(q, qd, **state),
            *robot.energy(q, qd, **state), *robot.joint_wrenches(*motion, **state)[1:]]


@pytest.mark.parametrize("name", CASES[1::2])
def test_compiled_kernels_of_large_robots_equal_the_recursions(name):
    """Compare machine code for many joints with the published recursions."""
    base, *motion = state(name)
    fast = load(source(name), base="floating", gravity=GRAVITY)
    for method, count in (("torque_and_rate", 4), ("forward_dynamics", 3)):
        ours, theirs = (getattr(r, method)(*motion[:count], base=base) for r in (fast, robot(name)))
        for a, b in zip(np.atleast_2d(ours), np.atleast_2d(theirs), strict=True):
            assert worst(a / max(1.0, np.abs(b).max()), b / max(1.0, np.abs(b).max())) < 1e-10


def test_backends_and_vectorized_calls_of_a_free_base_agree():
    rng = np.random.default_rng(8)
    text = source(3)
    one = load(text, base="floating", gravity=GRAVITY)
    states = [(random_base(rng), *random_state(rng, one.n)) for _ in range(3)]
    many = BaseState(*(np.array([getattr(s[0], name) for s in states]) for name in ("position", "quaternion", "velocity")))
    motion = [np.array(column) for column in zip(*(s[1:] for s in states))]
    alone = [parts(one, single, base=base) for base, *single in states]
    for backend in ("llvm", "python", "reference"):
        together = parts(load(text, base="floating", backend=backend, gravity=GRAVITY), motion, base=many)
        for k, expected in enumerate(alone):
            for a, b in zip(together, expected, strict=True):
                assert worst(a[k], b) < 1e-10, backend


def test_payload_friction_and_rotors_act_as_on_a_fixed_base():
    """The torques at zero base motion equal those on a fixed base."""
    text = source(5)
    names = Robot.from_urdf(text).joint_names
    terms = {name: JointDynamics(0.1, 3.0, 0.4, 0.2, 0.1, 0.3) for name in names[:2]}
    fixed = Robot.from_urdf(text, joint_dynamics=terms, gravity=GRAVITY).with_payload(source_tip(text), 2.0, (0.1, 0.0, 0.2))
    tree = Robot.from_urdf(text, "floating", joint_dynamics=terms, gravity=GRAVITY)
    free = Robot(tree, {"base": "floating"}).with_payload(source_tip(text), 2.0, (0.1, 0.0, 0.2))
    state_ = random_state(np.random.default_rng(9), fixed.n)
    carried = free.torque_and_rate(*state_, base=BaseState(acceleration=np.zeros(6)))
    for ours, truth in zip(carried, fixed.torque_and_rate(*state_), strict=True):
        assert worst(ours, truth) < 1e-12
    base = random_base(np.random.default_rng(10))
    given = free.solve(*state_[:3], stages=1, base=base)
    found = free.response(*state_[:2], given.torques[0], base=base)
    assert worst(accelerations(found, free), state_[2]) < 1e-8
    assert worst(found.base_acceleration, given.base_acceleration) < 1e-8


def source_tip(text):
    return list(Robot.from_urdf(text).model.frames)[-1]


def test_single_free_body_follows_the_newton_euler_equations():
    """The robot has no joints."""
    brick = load(arm(), base="floating", gravity=GRAVITY)
    base, none = random_base(np.random.default_rng(11)), np.zeros(0)
    for found in (brick.solve(none, none, none, stages=1, base=base), brick.response(none, none, none, base=base)):
        truth = FreeFlyer(arm(), brick.tree).accelerations(base, none, none, np.zeros(6))
        assert worst(found.base_acceleration, truth) < 1e-12


# ------------------------------------------------------------------ errors


def test_forward_dynamics_is_rejected_for_a_massless_base_that_can_rotate_freely():
    """The links can rotate about the axis without the base, so that its rotation is undetermined."""
    text = arm({"axis": (0, 0, 1)}).replace(f'<link name="base">{INERTIAL}</link>', '<link name="base"/>')
    loose = load(text, base="floating")
    with pytest.raises(InputError, match="'base rz'"):
        loose.forward_dynamics([0.3], [0.0], [1.0], base=BaseState())
    found = loose.solve([0.3], [0.0], [1.0], stages=1, base=BaseState())  # determined if the joint motion is given
    assert np.isfinite(found.base_acceleration).all()
