"""Joints driven by springs only (khalil-rne section 6): published values, Pinocchio, energy and rejected declarations."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Loads, ModelError, Robot, load
from rnea_ros.robots.tree import TreeDynamics
from support.golden_models import from_table
from support.oracles import GOLDEN, PinocchioOracle, difference, worst
from support.robots import INERTIAL, LinkSpec, arm, random_state, random_tree

SEEDS = range(8)


def golden_robot(backend="llvm"):
    case = GOLDEN["elastic_tree_khalil"]
    model = from_table("tree4", GOLDEN["tree4"]["links"], [JointDynamics(rotor_inertia=x) for x in case["Ia"]])
    springs = {f"j{k + 1}": {"stiffness": case["K"][k], "rest": case["q_rest"][k]} for k in range(4) if case["elastic"][k]}
    return Robot(TreeDynamics(model, backend, GOLDEN["tree4"]["gravity"]), {"springs": springs})


def moved(robot, *motion, loads=None):
    """Return torques and accelerations (2, n) of a motion; with jerks also the rates of both, (4, n)."""
    found = robot.solve(*motion, stages=len(motion) - 2, loads=loads)
    torques = (robot.torque_and_rate(*motion, loads=loads) if len(motion) > 3 else
               [robot.inverse_dynamics(*motion, loads=loads)])
    return np.array([*torques, *([found.positions[name][k] for name in robot.joint_names] for k in range(2, len(motion)))])


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_torques_and_accelerations_of_an_elastic_tree_equal_published_values(backend):
    case, tree, robot = GOLDEN["elastic_tree_khalil"], GOLDEN["tree4"], golden_robot(backend)
    tau, qdd = moved(robot, tree["q"], tree["qd"], case["qdd_rigid_prescribed"])
    assert worst(tau, case["Gamma"]) < 1e-11 and worst(qdd, case["qdd"]) < 1e-11
    assert worst(robot.forward_dynamics(tree["q"], tree["qd"], tau), case["qdd"]) < 1e-11


def test_desired_accelerations_of_spring_joints_are_ignored():
    tree, robot = GOLDEN["tree4"], golden_robot()
    free = [k for k, name in enumerate(robot.joint_names) if name in robot.state_joints]
    asked = np.array([1.0, 2.0, 3.0, 4.0])
    other = asked.copy()
    other[free] += 100.0
    for one, two in zip(*(moved(robot, tree["q"], tree["qd"], x, x) for x in (asked, other)), strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(robot.forward_dynamics(tree["q"], tree["qd"], asked),
                                  robot.forward_dynamics(tree["q"], tree["qd"], other))


@cache
def tree(seed):
    """Return a random tree in which every joint moves mass, with springs on some joints without mimic joints."""
    grown = random_tree(seed)
    grown.links = [LinkSpec(link.name, INERTIAL) for link in grown.links]
    terms = {"rotor_inertia": 0.3, "gear_ratio": 2.0, "viscous": 0.4, "coulomb": 0.2, "smoothing": 0.5}
    robot = Robot.from_urdf(grown.text(), gravity=(1.0, -2.0, -9.0))
    names = [link.joint for link in robot.model.links if link.joint]
    given = {name: JointDynamics(**terms) for name in names[::2]}
    robot = Robot.from_model(robot.model.with_joint_dynamics(given), gravity=robot.gravity_vector)
    rng = np.random.default_rng(seed)
    leaders = [link.joint for link in robot.model.links if link.joint and link.joint not in robot.joint_names]
    followed = {robot.joint_names[link.coordinate] for link in robot.model.links if link.joint in leaders}
    springs = {name: {"stiffness": float(rng.uniform(1.0, 90.0)), "rest": float(rng.normal())}
               for name in robot.joint_names if name not in followed and rng.random() < 0.6}
    return grown, robot, springs


ELASTIC = [seed for seed in SEEDS if tree(seed)[2]]


@pytest.mark.parametrize("seed", ELASTIC)
def test_accelerations_and_torques_with_springs_solve_pinocchios_equations(seed):
    """Equations (68) to (71): A and H by Pinocchio, with the spring rows solved for their accelerations."""
    grown, robot, springs = tree(seed)
    oracle, elastic = PinocchioOracle(grown.plain(), robot), Robot(robot, {"springs": springs})
    q, qd, qdd, _ = random_state(np.random.default_rng(seed), robot.n)
    terms = {link.joint: link.term for link in robot.model.links}
    rows = [(link.coordinate, link.multiplier, terms[link.joint]) for link in robot.model.links if link.joint]
    A = oracle.mass_matrix(q)
    H = oracle.torque_and_rate(q, qd, 0 * q, 0 * q)[0]
    for c, k, term in rows:
        A[c, c] += k * k * term.armature
        H[c] += k * (term.viscous * k * qd[c] + term.coulomb * np.tanh(k * qd[c] / term.smoothing))
    free = np.array([name in springs for name in robot.joint_names])
    torque = np.array([-springs[name]["stiffness"] * (x - springs[name]["rest"]) if name in springs else 0.0
                       for name, x in zip(robot.joint_names, q)])
    expected = qdd.copy()
    expected[free] = np.linalg.solve(A[np.ix_(free, free)], (torque - H)[free] - A[np.ix_(free, ~free)] @ qdd[~free])
    tau, qdd_found = moved(elastic, q, qd, qdd)
    scale = np.linalg.cond(A[np.ix_(free, free)])
    assert worst(qdd_found, expected) < 1e-13 * scale
    assert worst(tau, A @ expected + H) < 1e-13 * scale
    np.testing.assert_allclose(tau[free], torque[free], rtol=1e-9, atol=1e-10)
    assert worst(elastic.forward_dynamics(q, qd, tau), qdd_found) < 1e-13 * np.linalg.cond(A)


@pytest.mark.parametrize("seed", ELASTIC)
def test_torque_rates_and_jerks_with_springs_match_differences(seed):
    _, robot, springs = tree(seed)
    elastic = Robot(robot, {"springs": springs})
    q, qd, qdd, qddd = random_state(np.random.default_rng(seed + 100), robot.n)
    wrenches = {robot.model.links[-1].name: np.arange(1.0, 7.0)}
    loads = Loads(wrenches, world_wrenches=wrenches)
    tau, tau_rate, acceleration, jerk = moved(elastic, q, qd, qdd, qddd, loads=loads)
    same = moved(elastic, q, qd, qdd, loads=loads)
    assert worst(tau, same[0]) < 1e-12 and worst(acceleration, same[1]) < 1e-12

    def straight(t):  # leaves the motion only at second order, so its derivative at zero is that of the motion
        return moved(elastic, q + t * qd, qd + t * acceleration, qdd + t * qddd, loads=loads)

    scale = 1e-9 * max(1.0, np.abs(acceleration).max(), np.abs(jerk).max())
    rates = difference(straight, 1e-3 / max(1.0, np.abs(acceleration).max()))
    assert np.abs(rates[0] - tau_rate).max() < scale and np.abs(rates[1] - jerk).max() < scale


@pytest.mark.parametrize("seed", ELASTIC)
def test_wrenches_on_robots_with_springs_give_the_torques_of_the_rigid_robot(seed):
    """The rigid robot is evaluated at the resulting accelerations, with link and world wrenches."""
    _, robot, springs = tree(seed)
    elastic = Robot(robot, {"springs": springs}).with_payload(robot.model.links[-1].name, 0.7, (0.1, 0.2, 0.3))
    loaded = robot.with_payload(robot.model.links[-1].name, 0.7, (0.1, 0.2, 0.3))
    rng = np.random.default_rng(seed)
    q, qd, qdd, _ = random_state(rng, robot.n)
    names = list(robot.model.frames)[:: max(1, len(robot.model.frames) // 3)]
    wrenches, held = ({name: rng.normal(size=6) for name in names} for _ in range(2))
    tau, qdd = moved(elastic, q, qd, qdd, loads=Loads(wrenches, world_wrenches=held))
    assert worst(loaded.inverse_dynamics(q, qd, qdd, loads=Loads(wrenches, world_wrenches=held)), tau) < 1e-8
    assert worst(elastic.forward_dynamics(q, qd, tau, loads=Loads(wrenches, world_wrenches=held)), qdd) < 1e-8


@pytest.mark.parametrize("seed", ELASTIC)
def test_energy_is_conserved_when_only_springs_act(seed):
    """Motors are at rest and there is no friction; kinetic and gravity energy by Pinocchio plus spring energy is constant."""
    grown, robot, springs = tree(seed)
    bare = robot.with_joint_dynamics({link.joint: JointDynamics() for link in robot.model.links if link.joint})
    oracle, elastic = PinocchioOracle(grown.plain(), bare), Robot(bare, {"springs": springs})
    free = np.array([name in springs for name in bare.joint_names])
    q, qd, _, _ = random_state(np.random.default_rng(seed), bare.n)
    qd[~free] = 0.0
    _, qdd = moved(elastic, q, qd, 0.0 * q)

    def energy(t):
        x, v = q + t * qd, qd + t * qdd
        stored = sum(s["stiffness"] * (x[bare.joint_names.index(name)] - s["rest"])**2 / 2 for name, s in springs.items())
        return oracle.energy(x, v) + stored

    assert abs(difference(energy, 1e-3 / max(1.0, np.abs(qdd).max()))) < 1e-7 * max(1.0, abs(energy(0.0)), np.abs(qdd).max())


def test_vectorized_results_with_springs_equal_single_samples():
    robot = golden_robot()
    motion = np.random.default_rng(0).normal(size=(4, 5, 4))
    together = robot.torque_and_rate(*motion)
    for k in range(5):
        for whole, one in zip(together, robot.torque_and_rate(*motion[:, k]), strict=True):
            np.testing.assert_array_equal(whole[k], one)
    tau = robot.forward_dynamics(motion[0], motion[1], np.ones(4))
    np.testing.assert_array_equal(tau[2], robot.forward_dynamics(motion[0][2], motion[1][2], np.ones(4)))


ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)}, {"mimic": {"joint": "j1"}})


@pytest.mark.parametrize(("springs", "message"), [
    ({"j2": {"stiffness": -40.0}}, "springs.j2.stiffness is -40.0; a number above zero is needed"),
    ({"j2": {"stiffness": 0}}, "springs.j2.stiffness is 0; a number above zero"),
    ({"j2": {"stiffness": float("inf")}}, "stiffness is inf"),
    ({"j2": {"rest": 0.1}}, "springs.j2.stiffness is missing; a number above zero is needed [N m/rad, N/m]"),
    ({"j2": {"stiffness": 1.0, "gear_ratio": 3.0}}, "gear_ratio is not known; allowed are stiffness, rest"),
    ({"elbow": {"stiffness": 1.0}}, "joint 'elbow' does not exist; the joints are j1, j2"),
    ({"j3": {"stiffness": 1.0}}, "joint 'j3' only follows 'j1'"),
    ({"j1": {"stiffness": 1.0}}, "springs.j1: is followed by j3"),
    ({}, "springs is empty; at least one entry is needed"),
])
def test_invalid_spring_declarations_are_rejected(springs, message):
    with pytest.raises(ModelError) as error:
        load(ARM, {"version": 1, "springs": springs})
    assert message in str(error.value)


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_spring_joint_that_moves_no_mass_is_rejected(backend):
    urdf = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0)}).replace(INERTIAL, "").replace('<link name="l1">',
                                                                                      f'<link name="l1">{INERTIAL}')
    robot = load(urdf, {"version": 1, "springs": {"j2": {"stiffness": 1.0}}}, backend=backend)
    with pytest.raises(InputError, match="'j2' moves no mass"):
        robot.inverse_dynamics([0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
