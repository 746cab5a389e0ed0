"""Robot: vectorized calls, accepted inputs, payloads, threads, robots without joints, independence of results."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import rnea_ros
from rnea_ros import BaseState, InputError, JointDynamics, Loads, Robot, load
from rnea_ros.codegen.kernel import available
from support.robots import INERTIAL, arm, random_state

TEXT = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)},
           {"kind": "fixed", "xyz": (0.1, 0, 0), "rpy": (0.5, 0, 0)}, {"kind": "prismatic", "axis": (1, 0, 0)})
STONE = f'<robot name="stone"><link name="only">{INERTIAL}</link></robot>'
BACKENDS = ("llvm", "python", "reference")
GOOD = [0.1, 0.2, 0.3]


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(TEXT)


def motion(samples=None, n=3, seed=0):
    rng = np.random.default_rng(seed)
    return random_state(rng, n) if samples is None else tuple(rng.normal(size=(4, samples, n)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_batches_equal_single_calls(backend):
    robot = Robot.from_urdf(TEXT, backend=backend)
    q, qd, qdd, qddd = motion(4)
    load, rate = np.random.default_rng(1).normal(size=(2, 4, 6))
    calls = {
        "torque_and_rate": lambda k: robot.torque_and_rate(q[k], qd[k], qdd[k], qddd[k]),
        "wrenches": lambda k: robot.torque_and_rate(q[k], qd[k], qdd[k], qddd[k],
                                                    loads=Loads({"l4": load[k]}, {"l4": rate[k]})),
        "dynamics": lambda k: robot.dynamics(q[k], qd[k], qdd[k], qddd[k]),
        "inverse_dynamics": lambda k: [robot.inverse_dynamics(q[k], qd[k], qdd[k])],
        "bias": lambda k: [robot.bias(q[k], qd[k])], "gravity": lambda k: [robot.gravity(q[k])],
        "mass_matrix": lambda k: [robot.mass_matrix(q[k])],
        "forward_dynamics": lambda k: [robot.forward_dynamics(q[k], qd[k], qdd[k])],
        "payload": lambda k: robot.with_payload("l3", 2.0, (1, 2, 3)).torque_and_rate(q[k], qd[k], qdd[k], qddd[k]),
    }
    for name, call in calls.items():
        every = slice(None)
        for batch, *singles in zip(call(every), *(call(k) for k in range(4)), strict=True):
            np.testing.assert_array_equal(batch, np.array(singles), err_msg=name)


def test_single_rows_are_broadcast_to_all_samples(robot):
    q, qd, qdd, qddd = motion(4)
    still = np.zeros(3)
    for a, b in zip(robot.torque_and_rate(q, still, qdd[0], qddd), robot.torque_and_rate(q, 0 * qd, qdd * 0 + qdd[0], qddd)):
        np.testing.assert_array_equal(a, b)
    assert robot.torque_and_rate(*[still] * 4, loads=Loads({"l1": np.ones((5, 6))}))[0].shape == (5, 3)


def test_empty_batches_give_empty_results(robot):
    tau, rate = robot.torque_and_rate(*np.zeros((4, 0, 3)))
    assert tau.shape == rate.shape == (0, 3)
    assert robot.mass_matrix(np.zeros((0, 3))).shape == (0, 3, 3)


def test_lists_tuples_and_arrays_of_any_dtype_are_accepted(robot):
    expected = robot.torque_and_rate(*[np.array(GOOD)] * 4)
    whole = robot.torque_and_rate(*[np.array([1.0, 2.0, 3.0])] * 4)
    strided = np.zeros((4, 6))
    strided[:, ::2] = GOOD
    for state in ([GOOD] * 4, [tuple(GOOD)] * 4, list(strided[:, ::2]), [np.array(GOOD, order="F")] * 4, np.array([GOOD] * 4)):
        np.testing.assert_array_equal(robot.torque_and_rate(*state), expected)
    for state in ([[1, 2, 3]] * 4, [range(1, 4)] * 4, [np.array([1, 2, 3], dtype=np.int32)] * 4,
                  [np.array([1, 2, 3], dtype=np.float32)] * 4, [np.array([1, 2, 3], dtype=">f8")] * 4):
        np.testing.assert_array_equal(robot.torque_and_rate(*state), whole)


def test_results_are_new_arrays_and_inputs_are_unchanged(robot):
    state = motion()
    copies = [x.copy() for x in state]
    first = robot.dynamics(*state)
    kept = [x.copy() for x in first]
    second = robot.dynamics(*state)
    for a, b in zip(first, second):
        assert not np.shares_memory(a, b) and a.flags.writeable
    for k, part in enumerate(second):
        part += 100.0
        for other in [*second[k + 1:], *state]:
            assert not np.shares_memory(part, other)
    for a, b in zip([*first, *state], [*kept, *copies]):
        np.testing.assert_array_equal(a, b)
    robot.mass_matrix(state[0])[:] = 0.0
    assert robot.mass_matrix(state[0]).any()


def test_with_payload_returns_a_new_robot(robot):
    state = motion()
    bare = robot.torque_and_rate(*state)
    loaded = robot.with_payload("l4", 2.0, (0.1, 0, 0))
    both = loaded.with_payload("l2", 1.0)
    assert robot.payloads == {} and list(loaded.payloads) == ["l4"] and list(both.payloads) == ["l4", "l2"]
    assert (robot.total_mass, loaded.total_mass, both.total_mass) == (7.5, 9.5, 10.5)
    assert len({robot.model_id, loaded.model_id, both.model_id}) == 3
    np.testing.assert_array_equal(robot.torque_and_rate(*state), bare)
    assert np.abs(loaded.torque_and_rate(*state)[0] - bare[0]).max() > 0.1
    other = loaded.with_payload("l4", 3.0)
    assert other.payloads["l4"].mass == 3.0 and loaded.payloads["l4"].mass == 2.0
    np.testing.assert_array_equal(both.with_payload("l2", 0.0).with_payload("l4", 0.0).torque_and_rate(*state), bare)


def test_order_of_payloads_does_not_affect_the_torques(robot):
    """Kernels are shared between the robots."""
    state = motion()
    one = robot.with_payload("l4", 2.0, (1, 0, 0)).with_payload("l1", 1.0, (0, 3, 0))
    two = robot.with_payload("l1", 1.0, (0, 3, 0)).with_payload("l4", 2.0, (1, 0, 0))
    for a, b in zip(one.torque_and_rate(*state), two.torque_and_rate(*state)):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_payloads_on_two_links_of_one_body_add_up(robot):
    state = motion()
    apart = robot.with_payload("l2", 2.0).with_payload("l3", 2.0)
    together = robot.with_payload("l2", 4.0, (0.05, 0, 0), np.diag([0, 0.01, 0.01]))  # l3 is fixed 0.1 m along x of l2
    for a, b in zip(apart.torque_and_rate(*state), together.torque_and_rate(*state)):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_robot_without_joints_returns_empty_results(backend):
    stone = Robot.from_urdf(STONE, backend=backend).with_payload("only", 1.0)
    none = np.zeros(0)
    assert stone.n == 0 and stone.joint_names == () and stone.total_mass == 2.5
    for parts in (stone.torque_and_rate(none, none, none, none), stone.dynamics([], [], [], []),
                  [stone.gravity(none), stone.bias([], []), stone.inverse_dynamics([], [], [])],
                  stone.torque_and_rate([], [], [], [], loads=Loads({"only": np.ones(6)}))):
        assert all(part.shape == (0,) for part in parts)
    assert stone.mass_matrix([]).shape == (0, 0) and stone.forward_dynamics([], [], []).shape == (0,)
    assert all(part.shape == (7, 0) for part in stone.torque_and_rate(*np.zeros((4, 7, 0))))
    with pytest.raises(InputError, match=r"q has shape \(1,\).*no joints"):
        stone.gravity([0.0])


def test_properties_and_repr_of_a_robot(robot):
    assert robot.name == "arm" and robot.n == 3 and robot.root_link == "base"
    assert robot.joint_names == ("j1", "j2", "j4") and robot.joint_types == ("revolute", "revolute", "prismatic")
    assert robot.backend == available("llvm") and robot.gravity_vector.tolist() == [0.0, 0.0, -9.81]
    assert robot.total_mass == 7.5 and robot.reconstruction_error < 1e-15 and robot.warnings == ()
    assert [row[0] for row in robot.mdh_table()] == ["j1", "j2", "j4"]
    assert robot.limits.effort.shape == (3,)
    with pytest.raises(ValueError, match="read-only"):
        robot.gravity_vector[2] = 0.0


def test_torque_is_mass_matrix_times_acceleration_plus_bias(robot):
    q, qd, qdd, qddd = motion()
    tau, still = robot.torque_and_rate(q, qd, qdd, qddd)[0], np.zeros(3)
    np.testing.assert_allclose(robot.inverse_dynamics(q, qd, qdd), tau, rtol=1e-13)
    np.testing.assert_allclose(robot.mass_matrix(q) @ qdd + robot.bias(q, qd), tau, rtol=1e-12)
    np.testing.assert_allclose(robot.bias(q, still), robot.gravity(q), rtol=1e-13, atol=1e-15)
    parts = robot.dynamics(q, qd, qdd, qddd)
    assert parts._fields == ("tau", "tau_rate", "gravity", "gravity_rate")
    np.testing.assert_allclose(parts.gravity, robot.gravity(q), rtol=1e-13, atol=1e-15)


def test_friction_offsets_add_torque_but_no_inertia_or_gravity():
    terms = {"j1": JointDynamics(offset=5.0, coulomb=1.0, viscous=2.0), "j4": JointDynamics(offset=-3.0)}
    bare, robot = Robot.from_urdf(TEXT), Robot.from_urdf(TEXT, joint_dynamics=terms)
    q, qd, qdd, _ = motion()
    np.testing.assert_allclose(robot.mass_matrix(q), bare.mass_matrix(q), rtol=1e-13)
    np.testing.assert_allclose(robot.gravity(q), bare.gravity(q), rtol=1e-13)
    np.testing.assert_allclose(robot.bias(q, np.zeros(3)) - bare.bias(q, np.zeros(3)), [5.0, 0.0, -3.0], atol=1e-13)
    np.testing.assert_allclose(robot.forward_dynamics(q, qd, robot.inverse_dynamics(q, qd, qdd)), qdd, rtol=1e-10)


def test_forward_dynamics_of_a_massless_joint_is_rejected():
    massless = Robot.from_urdf(arm({"axis": (0, 0, 1)}, inertial=""))
    assert massless.inverse_dynamics([1.0], [1.0], [1.0]).tolist() == [0.0]
    with pytest.raises(InputError, match="mass"):
        massless.forward_dynamics([1.0], [1.0], [1.0])


@pytest.mark.parametrize("backend", ["llvm", "python"])
def test_robot_can_be_used_by_several_threads(backend):
    """Several threads compile and call kernels concurrently."""
    text = arm(*[{"xyz": (0.1, 0.2, 0.3), "rpy": (k, 1, 2), "axis": (1, k, 3)} for k in range(6)])
    alone, shared = Robot.from_urdf(text, backend=backend), Robot.from_urdf(text, backend=backend)
    count = 400 if backend == "llvm" else 60
    states = [motion(count, 6, seed) for seed in range(4)]
    expected = [alone.torque_and_rate(*state) for state in states]
    gravity = [alone.gravity(state[0]) for state in states]
    wrong, start = [], threading.Barrier(4)

    def work(k):
        start.wait()
        for row in range(count):
            result = shared.torque_and_rate(*(x[row] for x in states[k]))
            if not np.array_equal(result, [expected[k][0][row], expected[k][1][row]]):
                wrong.append((k, row))
        if not np.array_equal(shared.gravity(states[k][0]), gravity[k]):
            wrong.append((k, "gravity"))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=240)
    assert not wrong and not any(thread.is_alive() for thread in threads)


def test_public_names_exist_in_the_package():
    assert all(hasattr(rnea_ros, name) for name in rnea_ros.__all__)
    assert {"Robot", "Model", "JointDynamics", "RneaError", "InputError", "ModelError"} <= set(rnea_ros.__all__)


def test_model_id_does_not_depend_on_the_order_of_payloads(robot):
    one = robot.with_payload("l4", 2.0, (0.1, 0, 0)).with_payload("l2", 1.0)
    other = robot.with_payload("l2", 1.0).with_payload("l4", 2.0, (0.1, 0, 0))
    assert one.model_id == other.model_id != robot.with_payload("l2", 1.0).with_payload("l4", 2.0).model_id


@pytest.mark.parametrize("backend", BACKENDS)
def test_overflow_of_results_is_rejected(backend):
    """Cases: one sample and many, and functions that also search for massless joints."""
    robot, (q, qd, qdd, qddd) = Robot.from_urdf(arm({}, {"axis": (0, 1, 0)}), backend=backend), motion(n=2)
    floating = load(arm({}, {"axis": (0, 1, 0)}), base="floating", backend=backend)
    spring = load(arm({}, {"axis": (0, 1, 0)}), {"version": 1, "springs": {"j2": {"stiffness": 4.0}}}, backend=backend)
    fast = np.array([1e200, 2e200])

    def ask(v):
        yield lambda: robot.torque_and_rate(q, v, qdd, qddd)
        yield lambda: robot.inverse_dynamics(q, v, qdd)
        yield lambda: robot.forward_dynamics(q, v, qdd)
        yield lambda: robot.energy(q, v)
        yield lambda: floating.inverse_dynamics(q, v, qdd, base=BaseState())
        yield lambda: floating.forward_dynamics(q, v, qdd, base=BaseState())
        yield lambda: spring.inverse_dynamics(q, v, qdd)

    with np.errstate(all="ignore"):
        for question in (*ask(fast), *ask(np.array([qd, fast, qd]))):
            with pytest.raises(InputError, match="comes out too large for a number"):
                question()


def test_masked_values_are_rejected(robot):
    state = motion()
    hidden = np.ma.masked_array(state[1], mask=[False, True, *[False] * (robot.n - 2)])
    for qd in (hidden, np.ma.masked_array([state[1]] * 3, mask=[[False] * robot.n, hidden.mask, [False] * robot.n]),
               [hidden, hidden]):
        for ask in (robot.torque_and_rate, robot.dynamics):
            with pytest.raises(InputError, match="qd has masked values"):
                ask(state[0], qd, state[2], state[3])
    with pytest.raises(InputError, match="masked"):
        BaseState(velocity=np.ma.masked_array(np.ones(6), mask=np.arange(6) == 2))
    shown = np.ma.masked_array(state[1], mask=False)
    np.testing.assert_array_equal(robot.torque_and_rate(state[0], shown, *state[2:]), robot.torque_and_rate(*state))


@pytest.mark.parametrize("backend", BACKENDS)
def test_kernel_rejects_arrays_of_wrong_length(backend):
    kernel = Robot.from_urdf(arm({}, {"axis": (0, 1, 0)}), backend=backend).kernel()
    assert [part.shape for part in kernel(np.zeros(8))] == [(2,), (2,)]
    for wrong in (np.zeros(9), np.zeros(7), np.zeros(16), np.zeros((2, 4)), np.zeros((3, 9)), np.zeros(0), 1.0):
        with pytest.raises(InputError, match=r"\(8,\) or \(samples, 8\) is needed: 2 of q, 2 of qd, 2 of qdd, 2 of qddd"):
            kernel(wrong)


@pytest.mark.parametrize("samples", [None, 5])
def test_by_joint_returns_columns_by_joint_name(robot, samples):
    found = robot.dynamics(*motion(samples))
    named = robot.by_joint(found.tau)
    assert tuple(named) == robot.joint_names
    for k, name in enumerate(robot.joint_names):
        assert np.array_equal(named[name], found.tau[..., k])


def test_by_joint_of_a_robot_with_loops_has_the_active_joints():
    five_bar = load("urdf/five_bar.urdf", "urdf/five_bar.robot.yaml")
    named = five_bar.by_joint([1.0, np.nan])
    assert tuple(named) == five_bar.joint_names and len(named) == 2 < five_bar.tree.n
    assert named[five_bar.joint_names[0]] == 1.0 and np.isnan(named[five_bar.joint_names[1]])


@pytest.mark.parametrize("values", [1.0, [1.0, 2.0], np.zeros((3, 2)), np.zeros((1, 1, 3)), "abc"])
def test_by_joint_rejects_arrays_without_one_column_per_joint(robot, values):
    with pytest.raises(InputError, match="values"):
        robot.by_joint(values)
