"""Sensitivities of tau, tau_rate and joint wrenches of trees: Pinocchio, complex steps, dual numbers, invariants."""

from __future__ import annotations

import runpy
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, JointDynamics, Loads, Robot
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms import sensitivities as closed_form
from rnea_ros.algorithms import sensitivities as internal
from rnea_ros.algorithms.torque_rate import RootMotion, on_links, torque_and_rate
from rnea_ros.codegen.program import trace
from support.oracles import PinocchioOracle, along, difference, example_urdfs, worst
from support.robots import arm, random_state, random_tree, seeds

EXAMPLES = {"/".join(path.with_suffix("").parts[path.parts.index("robots") + 1:]): path for path in example_urdfs()}
NOT_A_ROBOT = {"ur_description/urdf/ur3"}
TIGHT = 1e-11  # 1e-9 is required
STEP = 1e-30  # complex step: no cancellation, so no compromise


@cache
def tree(seed, terms=False):
    """Return a random robot and its URDF for Pinocchio. terms: with rotors, friction and offsets on every joint."""
    made = random_tree(seed)
    gravity = np.random.default_rng(seed).normal(size=3) * 8.0
    robot = Robot.from_urdf(made.text(), gravity=gravity, backend="reference")
    if terms:
        rng = np.random.default_rng(seed)
        given = {link.joint: JointDynamics(*rng.uniform(0.1, 2.0, 5), smoothing=0.7) for link in robot.model.links
                 if link.joint}
        robot = Robot.from_model(robot.model.with_joint_dynamics(given), "reference", gravity)
    return robot, made.plain()


def loads(model, rng):
    """Return options with wrenches on two links and two world wrenches, at points off the frame origins."""
    k, j = rng.integers(len(model.links), size=2)
    return {"wrenches": {k: rng.normal(size=6), j: rng.normal(size=6)},
            "world_wrenches": [(number, rng.normal(size=3), rng.normal(size=6)) for number in (j, len(model.links) - 1)]}


def wrench_rates(options, rng):
    return {k: rng.normal(size=6) for k in options["wrenches"]}


def torque(robot, options, rate=False):
    """Return tau or tau_rate as a function of the motion, by the published recursion, for any scalar type."""
    def evaluate(q, qd, qdd, qddd=None):
        jerk = q * 0.0 if qddd is None else qddd
        given = on_links(robot.model, options, q, qd)
        return torque_and_rate(robot.model, q, qd, qdd, jerk, robot.gravity_vector, **given)[int(rate)]

    return evaluate


def complex_step(function, blocks, which):
    """Return d function / d blocks[which] by complex steps, with the new axis last; function: list of arrays -> array."""
    columns = []
    for k in range(len(blocks[which])):
        moved = [np.array(block, dtype=complex) for block in blocks]
        moved[which][k] += 1j * STEP
        columns.append(np.imag(np.asarray(function(*moved), dtype=complex)) / STEP)
    return np.stack(columns, axis=-1) if columns else np.zeros((0, 0))


def pinocchio_sensitivities(oracle, q, qd, qdd):
    motion = oracle.configuration(q), oracle.fold @ qd, oracle.fold @ qdd
    dq, dqd, M = (table.copy() for table in pin.computeRNEADerivatives(oracle.model, oracle.data, *motion))
    return [oracle.fold.T @ table @ oracle.fold for table in (dq, dqd, np.triu(M) + np.triu(M, 1).T)]


# ---------------------------------------------------------------------- tau

@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - NOT_A_ROBOT))
def test_sensitivities_of_example_robots_match_pinocchio(name):
    robot = Robot.from_urdf(EXAMPLES[name], backend="reference")
    oracle = PinocchioOracle(EXAMPLES[name], robot)
    q, qd, qdd, _ = random_state(np.random.default_rng(1), robot.n)
    ours = closed_form.sensitivities(robot.model, q, qd, qdd, robot.gravity_vector)
    for a, b in zip(ours, pinocchio_sensitivities(oracle, q, qd, qdd)):
        assert worst(a, b) < TIGHT


@pytest.mark.parametrize("block", range(0, 100, 20))
def test_sensitivities_of_random_trees_match_pinocchio(block):
    for seed in range(block, block + 20):
        robot, text = tree(seed)
        oracle = PinocchioOracle(text, robot)
        q, qd, qdd, _ = random_state(np.random.default_rng(seed), robot.n)
        for a, b in zip(robot.sensitivities(q, qd, qdd), pinocchio_sensitivities(oracle, q, qd, qdd)):
            assert worst(a, b) < TIGHT, f"seed {seed}"


@pytest.mark.parametrize("seed", seeds(4))
def test_sensitivities_equal_dual_numbers_through_the_recursion(seed):
    """Dual numbers apply the product rule of the thesis to every line; rotors, friction and wrenches act."""
    robot, _ = tree(seed, terms=True)
    rng = np.random.default_rng(seed)
    options, state = loads(robot.model, rng), random_state(rng, robot.n)[:3]
    ours = closed_form.sensitivities(robot.model, *state, robot.gravity_vector, **options)
    for which in range(3):
        for k in range(robot.n):
            moved = (jets(x, np.eye(robot.n)[k] * (which == block)) for block, x in enumerate(state))
            assert worst(ours[which][:, k], derivative(torque(robot, options)(*moved), 1).astype(float)) < 1e-12


@pytest.mark.parametrize("seed", [20 + seed for seed in seeds(6)])
def test_sensitivities_with_rotors_friction_and_wrenches_match_complex_steps(seed):
    robot, _ = tree(seed, terms=True)
    rng = np.random.default_rng(seed)
    options, state = loads(robot.model, rng), random_state(rng, robot.n)[:3]
    for which, ours in enumerate(closed_form.sensitivities(robot.model, *state, robot.gravity_vector, **options)):
        assert worst(ours, complex_step(torque(robot, options), state, which)) < 1e-12


@pytest.mark.parametrize("seed", (4, 9, 14))
def test_sensitivities_with_a_moving_base_match_complex_steps(seed):
    """The base motion is a constant of the recursion."""
    robot, _ = tree(seed)
    rng = np.random.default_rng(seed)
    base, state = RootMotion(*rng.normal(size=(5, 3))), random_state(rng, robot.n)[:3]
    ours = closed_form.sensitivities(robot.model, *state, robot.gravity_vector, base=base)
    for which, table in enumerate(ours):
        assert worst(table, complex_step(torque(robot, {"base": base}), state, which)) < 1e-12


@pytest.mark.parametrize("seed", seeds(3))
def test_sensitivities_satisfy_chain_rule_and_euler_homogeneity(seed):
    robot, _ = tree(seed)
    floating = Robot.from_model(robot.model, "reference", gravity=(0, 0, 0))
    q, qd, qdd, qddd = random_state(np.random.default_rng(seed), robot.n)
    dq, dqd, M = robot.sensitivities(q, qd, qdd)
    assert worst(M, M.T) < 1e-13
    assert np.linalg.eigvalsh((M + M.T) / 2).min() > -1e-9
    assert worst(dq @ qd + dqd @ qdd + M @ qddd, robot.torque_and_rate(q, qd, qdd, qddd)[1]) < 1e-11  # the chain rule
    _dq, dqd, M = floating.sensitivities(q, qd, qdd)
    assert worst(dqd @ qd + 2.0 * M @ qdd, 2.0 * floating.inverse_dynamics(q, qd, qdd)) < 1e-11  # Euler: tau(s qd, s^2 qdd)


@pytest.mark.parametrize("seed", (3, 7, 13, 59))
def test_world_wrench_of_a_weight_equals_a_payload_at_rest(seed):
    """Weights of point masses, applied as world wrenches, equal payloads for a robot at rest."""
    robot, _ = tree(seed)
    q = random_state(np.random.default_rng(seed), robot.n)[0]
    still, held, carrying, M = np.zeros(robot.n), {}, robot, robot.mass_matrix(q)
    for mass, link in enumerate(robot.model.frames, start=1):
        held[link] = np.concatenate((mass * robot.gravity_vector, np.zeros(3)))
        carrying = carrying.with_payload(link, mass)
    tau = robot.inverse_dynamics(q, still, still, loads=Loads(world_wrenches=held))
    assert worst(tau, carrying.inverse_dynamics(q, still, still)) < 1e-12
    ours = robot.sensitivities(q, still, still, loads=Loads(world_wrenches=held))
    assert worst(ours.dtau_dq, carrying.sensitivities(q, still, still).dtau_dq) < 1e-12
    assert np.abs(ours.dtau_dq - robot.sensitivities(q, still, still).dtau_dq).max() > 1e-3
    assert worst(ours.dtau_dqdd, M) < 1e-12  # a weight has no inertia


def test_world_and_link_wrenches_on_a_lever_match_the_closed_form():
    """The moment of a world force on a 1 m lever changes with the angle, that of a link force does not."""
    lever = Robot.from_urdf(arm({"axis": (0, 0, 1)}, {"kind": "fixed", "xyz": (1.0, 0, 0)}, inertial=""), backend="reference")
    push, still = {"l2": (0, 10.0, 0, 0, 0, 0)}, np.zeros(1)
    for q in (0.0, 0.3, 2.0):
        state = [q], still, still
        assert lever.inverse_dynamics(*state, loads=Loads(world_wrenches=push)) == pytest.approx(-10.0 * np.cos(q), abs=1e-12)
        assert lever.sensitivities(*state,
                                   loads=Loads(world_wrenches=push)).dtau_dq == pytest.approx(10.0 * np.sin(q), abs=1e-12)
        assert lever.inverse_dynamics(*state, loads=Loads(push)) == pytest.approx(-10.0)
        assert lever.sensitivities(*state, loads=Loads(push)).dtau_dq == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("seed", (1, 36))
def test_world_wrenches_on_every_urdf_link_match_pinocchio(seed):
    """Links merged by fixed joints are included; Pinocchio rotates the wrench into the link frame."""
    robot, text = tree(seed)
    oracle, rng = PinocchioOracle(text, robot), np.random.default_rng(seed)
    state = random_state(rng, robot.n)[:3]
    for link in robot.model.frames:
        wrench = rng.normal(size=6)
        turned = (wrench.reshape(2, 3) @ oracle.placement(link, state[0])[0]).ravel()
        expected = oracle.torque(*state, {link: turned})
        assert worst(robot.inverse_dynamics(*state, loads=Loads(world_wrenches={link: wrench})), expected) < TIGHT


# ---------------------------------------------------------------------- tau_rate

@pytest.mark.parametrize("seed", [40 + seed for seed in seeds(5)])
def test_rate_sensitivities_match_complex_steps(seed):
    robot, _ = tree(seed, terms=True)
    rng = np.random.default_rng(seed)
    options, state = loads(robot.model, rng), random_state(rng, robot.n)
    options["wrench_rates"] = wrench_rates(options, rng)
    for which, ours in enumerate(closed_form.rate_sensitivities(robot.model, *state, robot.gravity_vector, **options)):
        assert worst(ours.astype(float), complex_step(torque(robot, options, rate=True), state, which)) < 1e-11


@pytest.mark.parametrize("seed", (41, 44, 49))
def test_torque_deviations_match_complex_steps(seed):
    """Variances of independent errors add, weighted by the squared sensitivities."""
    robot, _ = tree(seed, terms=True)
    rng = np.random.default_rng(seed)
    state, deviation = random_state(rng, robot.n), rng.uniform(0.0, 1.0, (4, robot.n))
    for rate, ours in enumerate(robot.torque_deviations(*state, deviation)):
        variance = sum((complex_step(torque(robot, {}, bool(rate)), state[:3 + rate], which) * deviation[which]) ** 2
                       for which in range(3 + rate)).sum(axis=-1)
        assert worst(ours.astype(float), np.sqrt(variance)) < 1e-11


def test_torque_deviations_match_monte_carlo_trials():
    robot, _ = tree(44)
    rng = np.random.default_rng(0)
    state, deviation = random_state(rng, robot.n), rng.uniform(1e-5, 1e-4, (4, robot.n))
    found = robot.torque_deviations(*state, deviation)
    trials = [block + size * rng.normal(size=(4000, robot.n)) for block, size in zip(state, deviation)]
    for ours, tries in zip(found, robot.torque_and_rate(*trials)):
        np.testing.assert_allclose(ours, tries.std(axis=0), rtol=0.06)
    for backend in ("llvm", "python"):
        other = Robot.from_model(robot.model, backend, robot.gravity_vector)
        for ours, theirs in zip(other.torque_deviations(*state, deviation), found):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    rows = robot.torque_deviations(*(np.tile(block, (3, 1)) for block in state), np.tile(deviation[:, None], (1, 3, 1)))
    np.testing.assert_allclose(rows.tau_rate, np.tile(found.tau_rate, (3, 1)), rtol=1e-12)
    with pytest.raises(InputError, match=r"deviation has shape \(3, 2\)"):
        robot.torque_deviations(*state, np.zeros((3, 2)))


def test_torque_rate_under_constant_world_wrenches_matches_differences():
    """Inverse dynamics, which has no wrench rates, is differentiated in time."""
    robot, _ = tree(5)
    rng = np.random.default_rng(5)
    held, state = {link: rng.normal(size=6) for link in robot.model.frames}, random_state(rng, robot.n)
    slope = difference(lambda t: robot.inverse_dynamics(*along(*state, t), loads=Loads(world_wrenches=held)))
    assert worst(robot.torque_and_rate(*state, loads=Loads(world_wrenches=held))[1], slope) < 1e-8


# ---------------------------------------------------------------------- internal joint wrenches

@pytest.mark.parametrize("seed", seeds(10))
def test_joint_wrenches_match_pinocchio(seed):
    robot, text = tree(seed)
    oracle = PinocchioOracle(text, robot)
    q, qd, qdd, _ = random_state(np.random.default_rng(seed), robot.n)
    found = robot.joint_wrenches(q, qd, qdd)
    pin.rnea(oracle.model, oracle.data, oracle.configuration(q), oracle.fold @ qd, oracle.fold @ qdd)
    assert found.joints == robot.moving_joints and found.rate is None
    for joint, wrench in zip(found.joints, found.wrench):
        if joint.endswith(("/x", "/y")):  # inside a planar joint, where no URDF link is
            continue
        assert worst(wrench, oracle.data.f[oracle.model.getJointId(joint)].vector) < TIGHT, (seed, joint)


@pytest.mark.parametrize("seed", (50, 54, 59, 61, 63, 66))
def test_rates_and_sensitivities_of_joint_wrenches_match_dual_numbers_and_complex_steps(seed):
    robot, _ = tree(seed, terms=True)
    model, gravity, rng = robot.model, robot.gravity_vector, np.random.default_rng(seed)
    options, state = loads(model, rng), random_state(rng, robot.n)
    rates = wrench_rates(options, rng)

    def wrenches(q, qd, qdd, options=options):
        return internal.joint_wrenches(model, q, qd, qdd, q * 0.0, gravity, **options)[0]

    moving = options | {"wrenches": {k: jets(w, rates[k]) for k, w in options["wrenches"].items()}}
    expected = np.array(wrenches(jets(*state[:2]), jets(*state[1:3]), jets(*state[2:]), moving))
    values, slopes = internal.joint_wrenches(model, *state, gravity, **options, wrench_rates=rates)
    assert worst(values, derivative(expected, 0).astype(float)) < 1e-12
    assert worst(slopes, derivative(expected, 1).astype(float)) < 1e-11
    for which, ours in enumerate(internal.joint_wrench_sensitivities(model, *state[:3], gravity, **options)):
        assert worst(ours, complex_step(wrenches, state[:3], which)) < 1e-12


@pytest.mark.parametrize("seed", (36, 54))
def test_joint_wrench_component_along_the_axis_is_the_torque(seed):
    """The torque excludes friction, rotor inertia and offset; the sensitivities correspond. No mimic joints."""
    robot, _ = tree(seed, terms=True)
    assert len(robot.moving_joints) == robot.n > 2
    bare, state = tree(seed)[0], random_state(np.random.default_rng(seed), robot.n)[:3]
    wrench, tables = robot.joint_wrenches(*state).wrench, robot.joint_wrench_sensitivities(*state)[1:]
    for k, number in enumerate(internal.moving(robot.model)):
        link = robot.model.links[number]
        if link.name not in robot.model.frames:
            continue
        axis = robot.model.frames[link.name].R.T[:, 2]
        six = np.concatenate((axis, np.zeros(3)) if link.sigma else (np.zeros(3), axis))
        assert six @ wrench[k] == pytest.approx(bare.inverse_dynamics(*state)[k], abs=1e-11)
        for table, truth in zip(tables, bare.sensitivities(*state)):
            assert worst(six @ table[k], truth[k]) < 1e-11


# ---------------------------------------------------------------------- kernels

@pytest.mark.parametrize("backend", ("llvm", "python"))
@pytest.mark.parametrize("seed", (13, 40))
def test_backends_and_batches_give_the_same_sensitivities(seed, backend):
    slow, _ = tree(seed, terms=True)
    fast = Robot.from_model(slow.model, backend, slow.gravity_vector)
    rng, links = np.random.default_rng(seed), list(slow.model.frames)
    given, held = {links[1]: rng.normal(size=6)}, {link: rng.normal(size=6) for link in links[-2:]}
    rates = {links[1]: rng.normal(size=6)}
    states = [random_state(rng, slow.n) for _ in range(3)]
    for name, blocks, extra in (("sensitivities", 3, {}), ("rate_sensitivities", 4, rates), ("joint_wrenches", 4, rates),
                                ("joint_wrench_sensitivities", 3, {})):
        loaded = Loads(given, extra, held)
        batch = getattr(fast, name)(*(np.array([state[b] for state in states]) for b in range(blocks)), loads=loaded)
        for k, state in enumerate(states):
            for a, b in zip(batch, getattr(slow, name)(*state[:blocks], loads=loaded)):
                if not isinstance(a, tuple):
                    assert worst(a[k], b) < 1e-12, name


def test_operation_counts_of_sensitivities_are_bounded():
    """Bounds detect lost common subexpressions; a 32-joint tree grows with its depth."""
    for name, most in (("panda_description/urdf/panda", 5_000), ("talos_data/robots/talos_reduced", 21_000)):
        model = Robot.from_urdf(EXAMPLES[name]).model
        down = np.array([0.0, 0.0, -9.81])
        program = trace(lambda q, qd, qdd, model=model, down=down: closed_form.sensitivities(model, q, qd, qdd, down),
                        {"q": model.n, "qd": model.n, "qdd": model.n})
        assert sum(program.operation_counts.values()) < most, name


def test_sensitivities_of_a_robot_without_joints_are_empty():
    robot = Robot.from_urdf("<robot name='stone'><link name='stone'/></robot>")
    assert [table.shape for table in robot.sensitivities([], [], [])] == [(0, 0)] * 3
    assert [table.shape for table in robot.rate_sensitivities([], [], [], [])] == [(0, 0)] * 4
    assert [std.shape for std in robot.torque_deviations([], [], [], [], np.zeros((4, 0)))] == [(0,)] * 2
    assert robot.joint_wrenches([], [], []).wrench.size == 0


def test_sensitivities_example_shows_second_order_accuracy(tmp_path):
    example = runpy.run_path(str(Path(__file__).resolve().parents[2] / "examples" / "sensitivities.py"))
    numbers = example["main"](tmp_path, small=True)
    for name in ("torque", "torque rate", "internal wrench"):
        assert numbers[f"order of the error, {name}"] == pytest.approx(2.0, abs=0.02)
    assert numbers["error at 0.01 rad"] < 1e-3
    assert (tmp_path / "sensitivities.png").stat().st_size > 20_000


def test_errors_name_the_invalid_argument():
    robot = Robot.from_urdf(arm({}, {}), backend="reference")
    state = np.zeros((3, 2))
    with pytest.raises(InputError, match="link 'hand' is not in robot 'arm'"):
        robot.sensitivities(*state, loads=Loads(world_wrenches={"hand": np.zeros(6)}))
    with pytest.raises(InputError, match=r"wrench on link 'l1' is .*force first"):
        robot.joint_wrenches(*state, loads=Loads(world_wrenches={"l1": np.zeros(5)}))
    with pytest.raises(InputError, match="different numbers of samples"):
        robot.sensitivities(*np.zeros((3, 4, 2)), loads=Loads(world_wrenches={"l1": np.zeros((3, 6))}))
    with pytest.raises(InputError, match="qdd has shape"):
        robot.rate_sensitivities(state[0], state[1], np.zeros(3), state[2])
