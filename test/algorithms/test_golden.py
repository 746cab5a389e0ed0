"""Published values of golden.json from its MDH tables: the recursions without URDF."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import JointDynamics, Loads
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.algorithms.torque_rate import RootMotion
from rnea_ros.robots.tree import TreeDynamics
from support.golden_models import from_table, planar_rr
from support.oracles import GOLDEN, worst

TEXTS = (torque_rate.torque_and_rate, component_rate.torque_and_rate)


def golden_robot(name, terms=None, **options):
    return TreeDynamics(from_table(name, GOLDEN[name]["links"], terms), gravity=GOLDEN[name]["gravity"], **options)


def check_golden(robot, state, tau, rate):
    """Check the kernel, and each recursion on plain numbers."""
    for ours, rates in (robot.torque_and_rate(*state),
                        *(text(robot.model, *state, robot.gravity_vector) for text in TEXTS)):
        assert worst(ours, tau) < 1e-11 and worst(rates, rate) < 1e-11


def state_of(case):
    return [np.array(case[key], dtype=float) for key in ("q", "qd", "qdd", "qddd")]


@pytest.mark.parametrize("state", range(3))
def test_torques_of_the_stanford_arm_equal_published_values(state):
    case = GOLDEN["stanford_arm"]["states"][state]
    check_golden(golden_robot("stanford_arm"), state_of(case), case["tau"], case["dtau"])


def test_torques_with_an_external_wrench_equal_published_values():
    """The publication states the wrench of link 6 on the environment with inertial rates; ours acts on the link."""
    case, robot = GOLDEN["stanford_arm"]["external"], golden_robot("stanford_arm")
    motion = state_of(case)
    w = robot.recursion(*motion)[0].w[6]
    f, n, fdot, ndot = (np.array(case[key]) for key in ("f", "n", "fdot", "ndot"))
    wrench, rate = -np.concatenate((f, n)), -np.concatenate((fdot - np.cross(w, f), ndot - np.cross(w, n)))
    results = [robot.torque_and_rate(*motion, loads=Loads({"l6": wrench}, {"l6": rate}))]
    results += [text(robot.model, *motion, robot.gravity_vector, wrenches={6: wrench}, wrench_rates={6: rate})
                for text in TEXTS]
    for tau, tau_rate in results:
        assert worst(tau, case["tau"]) < 1e-11 and worst(tau_rate, case["dtau"]) < 1e-11


def stanford_motion(t):
    """Return the quintic of golden.json, rest to rest in two seconds; t (samples,)."""
    pi = np.pi
    start, end = np.array([pi / 2, 0, 0, pi / 2, pi / 4, pi / 2]), np.array([pi / 4, pi / 2, 2, pi / 4, pi / 2, 0])
    s = np.asarray(t)[:, None] / 2.0
    shape = (10 * s**3 - 15 * s**4 + 6 * s**5, (30 * s**2 - 60 * s**3 + 30 * s**4) / 2,
             (60 * s - 180 * s**2 + 120 * s**3) / 4, (60 - 360 * s + 360 * s**2) / 8)
    return (start + (end - start) * shape[0], *((end - start) * x for x in shape[1:]))


def stanford_with_motors():
    return golden_robot("stanford_arm", [JointDynamics(rotor_inertia=Ia)
                                         for Ia in GOLDEN["stanford_arm"]["with_actuator_inertia"]["Ia"]])


@pytest.mark.parametrize("state", range(3))
def test_torques_with_rotor_inertia_equal_published_values(state):
    case = GOLDEN["stanford_arm"]["with_actuator_inertia"]["states"][state]
    check_golden(stanford_with_motors(), [x[0] for x in stanford_motion([case["t"]])], case["tau"], case["dtau"])


@pytest.mark.parametrize(("key", "step", "tolerance"), [
    ("Ts_1e_4", 1e-4, 1e-5), ("Ts_1e_3", 1e-3, 1e-6), ("Ts_1e_2", 1e-2, 1e-6)])
def test_error_of_backward_differences_equals_published_values(key, step, tolerance):
    expected = GOLDEN["stanford_arm"]["with_actuator_inertia"]["backward_difference_max"][key]
    t = np.arange(round(2.0 / step) + 1) * step
    tau, rate = stanford_with_motors().torque_and_rate(*stanford_motion(t))
    found = np.abs(rate[1:] - np.diff(tau, axis=0) / step).max(axis=0)
    assert found == pytest.approx(expected, rel=tolerance)
    if key == "Ts_1e_4":
        assert found[0] == pytest.approx(0.02462, rel=3e-4)  # printed in the paper


def test_torques_mass_matrix_and_bias_of_a_tree_equal_published_values():
    case, robot = GOLDEN["tree4"], golden_robot("tree4")
    q, qd, *_ = state_of(case)
    check_golden(robot, state_of(case), case["tau"], case["dtau"])
    assert worst(robot.mass_matrix(q), case["M"]) < 1e-11
    assert worst(robot.bias(q, qd), case["H"]) < 1e-11


def test_torques_of_a_tree_with_motors_and_friction_equal_published_values():
    case = GOLDEN["tree4"]  # published with a sign function, the limit of ours for zero smoothing
    terms = [JointDynamics(rotor_inertia=Ia / 9.0, gear_ratio=-3.0, viscous=Fv, coulomb=Fs, smoothing=1e-3)
             for Ia, Fv, Fs in zip(case["Ia"], case["Fv"], case["Fs"])]
    robot = golden_robot("tree4", terms)
    check_golden(robot, state_of(case), case["tau_with_Ia_friction"], case["dtau_with_Ia_friction"])
    q, qd, *_ = state_of(case)
    assert worst(robot.forward_dynamics(q, qd, case["fd"]["Gamma"]), case["fd"]["qdd"]) < 1e-11


def test_torques_of_a_two_link_arm_equal_published_values():
    case = GOLDEN["two_link_RR_thesis"]
    rows = planar_rr(*(case["params"][key] for key in ("L", "lc", "m", "Izz")))
    check_golden(TreeDynamics(from_table("rr", rows), gravity=(0, 0, 0)), state_of(case), case["tau"], case["dtau"])


@pytest.mark.parametrize("cut", range(1, 6))
def test_moving_base_gives_the_torques_of_a_moving_link(cut):
    """The outer links on a base that moves like the inner link need the same torques as in the whole arm."""
    case, rows = GOLDEN["stanford_arm"], GOLDEN["stanford_arm"]["links"]
    rest = from_table("rest", [row | {"parent": row["parent"] - cut} for row in rows[cut:]])
    for state in case["states"]:
        motion = state_of(state)
        moved = golden_robot("stanford_arm").recursion(*motion)[0]
        base = RootMotion(*(getattr(moved, name)[cut] for name in RootMotion._fields))  # felt: gravity is taken off already
        assert cut == 1 or np.abs(base.j).max() > 0.01
        tau, rate = torque_rate.torque_and_rate(rest, *(x[cut:] for x in motion), base=base)
        assert worst(tau, state["tau"][cut:]) < 1e-11 and worst(rate, state["dtau"][cut:]) < 1e-11
