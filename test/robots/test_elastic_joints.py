"""Rigid and elastic joints with motors on any link: published values, Pinocchio with rotors as bodies, invariants."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import InputError, JointDynamics, Loads, MotorState, Robot, load
from rnea_ros.demo.elastic_control import accelerations
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import GOLDEN, difference, worst
from support.robots import INERTIAL, JointSpec, LinkSpec, Tree, arm, motor_file, random_tree
from support.rotor_trees import RotorTree, declare, four_joints, inertial, polynomial

CASE = GOLDEN["mixed_rigid_elastic_hua"]


# ------------------------------------------------------------------ golden.json


def angles(R):
    """Return the roll, pitch and yaw angles of a rotation."""
    R = np.asarray(R)
    return (math.atan2(R[2, 1], R[2, 2]), math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0])), math.atan2(R[1, 0], R[0, 0]))


@cache
def golden_robot(backend="llvm"):
    """Return the published robot. Its frame i + 1, fixed to link i, is the link 'frame<i+1>'; rotation q_i precedes C_i."""
    C = [np.eye(3), *(np.array(c) for c in CASE["C"])]
    tree = Tree("hua", [LinkSpec("link0")])
    for i, link in enumerate(CASE["links_without_rotors"], start=1):
        body = inertial(link["m"], C[i] @ link["c"], C[i] @ np.array(link["I"]) @ C[i].T)
        tree.links.append(LinkSpec(f"link{i}", body))
        tree.joints.append(JointSpec(f"joint{i}", "continuous", f"link{i - 1}", f"link{i}",
                                     xyz=tuple(C[i - 1] @ CASE["r"][i - 1]), rpy=angles(C[i - 1]), axis=(0, 0, 1)))
    for i in range(4):
        tree.links.append(LinkSpec(f"frame{i + 1}"))
        tree.joints.append(JointSpec(f"turn{i + 1}", "fixed", f"link{i}", f"frame{i + 1}", rpy=angles(C[i])))
    tree.links.append(LinkSpec("tip"))
    tree.joints.append(JointSpec("tip joint", "fixed", "frame4", "tip", xyz=tuple(CASE["r"][3])))
    joints = {}
    for i, (motor, l) in enumerate(zip(CASE["rotors"], CASE["motor_on_link"], strict=True)):
        joints[f"joint{i + 1}"] = {
            "gear_ratio": CASE["eta"][i], "rotor_inertia": CASE["I_mz"][i], "link": f"frame{l + 1}",
            "axis": CASE["z_m_in_frame_lm_plus_1"][i], "mass": motor["m"],
            "transverse_inertia": motor["I_xx_yy"], "position": motor["position_in_frame_lm_plus_1_from_O_lm"]}
    joints[f"joint{CASE['elastic_joint']}"]["stiffness"] = CASE["K"]
    return load(tree.text(), motor_file(joints), backend=backend, gravity=CASE["gravity"])


def golden_torques(loads=None):
    """Return motor torques and joint loads for a given motion of joints and motors that the springs do not balance."""
    robot = golden_robot()
    motion = [np.array(CASE["q" + d]) for d in ("", "d", "dd")]
    motors = MotorState(*(np.array(CASE["theta" + d]) for d in ("", "d", "dd")), np.zeros(1))
    found = robot.solve(*motion, np.zeros(3), motors=motors, loads=loads)
    load = robot.joint_loads(found)[0]
    for name in robot.elastic_joints:
        load[robot.joint_names.index(name)] += found.efforts[name][0]  # load minus spring torque
    return found.torques[0], load


def bodies(robot):
    """Return the model of the links including the rotors mounted on them."""
    return robot.structure().equations.model


def test_unified_link_and_rotor_bodies_equal_published_values():
    model = bodies(golden_robot())
    for body in CASE["unified"]:
        link, k = model.links[body["link"]], body["link"]
        turn = model.frame(f"frame{k + 1}").R
        centre = model.frame(f"frame{k + 1}").P + turn @ body["c"]
        assert worst(link.m, body["m"]) < 1e-14 and worst(link.ms, link.m * centre) < 1e-14
        about = link.J - link.m * (centre @ centre * np.eye(3) - np.outer(centre, centre))
        assert worst(turn.T @ about @ turn, body["I_about_unified_COM"]) < 1e-14


def test_inverse_dynamics_with_elastic_joints_equals_published_values():
    torques, loads = golden_torques()
    assert worst(torques, CASE["tau_motor"]) < 1e-11
    assert worst(loads, CASE["joint_axis_moment"]) < 1e-11


def test_inverse_dynamics_under_external_force_equals_published_values():
    """The publication states the force of the robot on its environment at O_4 in frame 4; ours acts on the link."""
    f = -np.array(CASE["external"]["f_by_robot_on_environment_at_O4_frame4"])
    torques, loads = golden_torques(Loads({"tip": np.concatenate((f, np.zeros(3)))}))
    assert worst(torques, CASE["external"]["tau_motor"]) < 1e-11
    assert worst(loads, CASE["external"]["joint_axis_moment"]) < 1e-11


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_equations_of_motion_with_elastic_joints_equal_published_values(backend):
    robot, now = golden_robot(backend), state(*(CASE[name] for name in ("q", "theta", "qd", "thetad")))
    assert worst(robot.mass_matrix(CASE["q"]), CASE["A"]) < 1e-11
    k = CASE["elastic_joint"] - 1
    zeta = robot.bias(**now)
    zeta[k] += CASE["K"] * (CASE["theta"][0] - CASE["q"][k])  # (31) has the spring's torque on joints on its right side
    assert worst(zeta, CASE["zeta"]) < 1e-11
    acceleration = accelerations(robot, **now, tau=CASE["FD"]["tau_m"])
    assert worst(acceleration, CASE["FD"]["qdd_thetadd"]) < 1e-11


# ------------------------------------------------------------------ random trees against Pinocchio

SEEDS = [seed for seed in range(11) if any(joint.kind not in ("fixed", "planar") for joint in random_tree(seed).joints)]


@cache
def grown(seed):
    """Return (tree, declaration, robot, Pinocchio) with motors on any link, also on the link that their joint moves."""
    tree = random_tree(seed)
    tree.links = [LinkSpec(link.name, INERTIAL) for link in tree.links]
    rigid, rng = Robot.from_urdf(tree.text(), gravity=(1.0, -2.0, -9.0)), np.random.default_rng(seed)
    followed = {rigid.joint_names[link.coordinate] for link in rigid.model.links
                if link.joint and link.joint not in rigid.joint_names}
    driven = [joint.name for joint in tree.joints if joint.name in rigid.joint_names]
    joints = declare(rng, tree, driven, followed if seed % 2 else ())
    robot = Robot(rigid, motor_file(joints))
    return tree, joints, robot, RotorTree(tree, joints, robot)


def state(q, q_motor, qd, qd_motor):
    return {"q": q, "qd": qd, "motors": MotorState(q_motor, qd_motor)}


def random_numbers(seed, robot, count):
    """Return `count` random rows of (joints, motors of elastic joints)."""
    return np.random.default_rng(seed + 50).normal(size=(count, robot.n + len(robot.elastic_joints)))


def known(motion):
    """Return the entries of a MotorMotion that are not None."""
    return [part for part in motion if part is not None]


def parts(robot, x):
    return x[:robot.n], x[robot.n:]


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_and_bias_with_elastic_joints_match_pinocchio(seed):
    *_, robot, oracle = grown(seed)
    x, v, a = random_numbers(seed, robot, 3)
    (q, theta), (qd, thetad) = parts(robot, x), parts(robot, v)
    A, zeta = robot.mass_matrix(q), robot.bias(**state(q, theta, qd, thetad))
    scale = 1e-13 * max(1.0, np.abs(oracle.mass_matrix(x)).max(), np.abs(oracle.torques(x, v, 0 * a)).max())
    assert np.abs(A - oracle.mass_matrix(x)).max() < scale
    assert np.abs(zeta - oracle.torques(x, v, 0 * a)).max() < scale


@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_with_elastic_joints_is_symmetric_positive_definite(seed):
    *_, robot, _ = grown(seed)
    A = robot.mass_matrix(random_numbers(seed, robot, 1)[0][:robot.n])
    assert worst(A, A.T) < 1e-13 * max(1.0, np.abs(A).max())
    assert np.linalg.eigvalsh((A + A.T) / 2.0).min() > 1e-6
    m = [motor for motor in robot.roles.motors if motor.stiffness < math.inf]
    B = np.diag([motor.term.gear_ratio**2 * motor.term.rotor_inertia for motor in m])
    np.testing.assert_allclose(A[robot.n:, robot.n:], B, rtol=1e-14, atol=1e-16)


@pytest.mark.parametrize("seed", SEEDS)
def test_forward_dynamics_with_elastic_joints_is_inverted_by_pinocchio(seed):
    """Pinocchio's inverse dynamics at our accelerations returns the motor torques; joints with springs are in balance."""
    *_, robot, oracle = grown(seed)
    x, v = random_numbers(seed, robot, 2)
    tau = np.random.default_rng(seed).normal(size=robot.n)
    (q, theta), (qd, thetad) = parts(robot, x), parts(robot, v)
    a = accelerations(robot, **state(q, theta, qd, thetad), tau=tau)
    given = oracle.torques(x, v, a)
    elastic = [robot.joint_names.index(name) for name in robot.elastic_joints]
    expected = np.concatenate((tau, tau[elastic]))
    expected[elastic] = 0.0
    scale = max(1.0, np.abs(oracle.mass_matrix(x) @ np.abs(a)).max(), np.abs(oracle.stiffness @ x).max())
    assert np.abs(given - expected).max() < 1e-12 * scale


@pytest.mark.parametrize("seed", SEEDS)
def test_energy_is_conserved_without_motor_torque(seed):
    *_, robot, oracle = grown(seed)
    x, v = random_numbers(seed, robot, 2)
    (q, theta), (qd, thetad) = parts(robot, x), parts(robot, v)
    a = accelerations(robot, **state(q, theta, qd, thetad), tau=np.zeros(robot.n))
    power = difference(lambda t: oracle.energy(x + t * v, v + t * a), 1e-3 / max(1.0, np.abs(a).max() ** 0.5))
    assert abs(power) < 1e-8 * max(1.0, abs(oracle.energy(x, v)), np.abs(v * (oracle.mass_matrix(x) @ a)).sum())


ORDERS = {1: 5, 4: 9}  # a rotor's moment does not act on the prismatic third joint: no additional derivatives


@pytest.mark.parametrize("depth", [1, 4])
def test_forward_dynamics_inverts_inverse_dynamics_with_motors_on_links(depth):
    robot, oracle = four_joints(depth=depth)
    assert robot.order == ORDERS[depth]
    motion = polynomial(1, 4, robot.order - 1)(0.0)
    found = robot.motor_motion(*motion)
    now = state(motion[0], found.q_motor, motion[1], found.qd_motor)
    qdd, thetadd = parts(robot, accelerations(robot, **now, tau=found.tau))
    scale = 1e-12 * np.linalg.cond(robot.mass_matrix(motion[0]))
    assert worst(qdd, motion[2]) < scale and worst(thetadd, found.qdd_motor) < scale * max(1.0, np.abs(found.qdd_motor).max())
    assert worst(found.load, robot.stiffness * (found.q_motor - motion[0])) < 1e-9
    x, v, a = (np.concatenate(pair) for pair in zip(motion[:3], (found.q_motor, found.qd_motor, found.qdd_motor)))
    assert worst(oracle.torques(x, v, a), np.concatenate((np.zeros(4), found.tau))) < 1e-9


@pytest.mark.parametrize("depth", [1, 4])
def test_torque_and_motor_rates_match_differences_along_the_motion(depth):
    robot, _ = four_joints(depth=depth)
    motion = polynomial(2, 4, robot.order)
    wrenches = {"link4": np.arange(6.0), "link2": -np.arange(6.0)}
    rates = {"link4": np.arange(3.0, 9.0)}
    tau, rate = robot.torque_and_rate(*motion(0.0), loads=Loads(wrenches, rates, wrenches))

    def at(t):
        here = wrenches | {"link4": wrenches["link4"] + t * rates["link4"]}
        return robot.motor_motion(*motion(t), loads=Loads(here, rates, wrenches))

    now = at(0.0)
    np.testing.assert_allclose(tau, now.tau, rtol=1e-12, atol=1e-12)

    for name, expected in (("tau", rate), ("q_motor", now.qd_motor), ("qd_motor", now.qdd_motor)):
        found = difference(lambda t, name=name: getattr(at(t), name), 1e-2)
        assert np.abs(found - expected).max() < 1e-7 * max(1.0, np.abs(expected).max()), name


def test_motor_motion_follows_from_torque_rate_of_the_rigid_robot():
    """No motor is mounted beyond the elastic joint: d theta / dt = tau_rate / K + qd by the recursion of the rigid robot."""
    robot = golden_robot()
    motion = polynomial(3, 3, 4)(0.0)
    tau, rate = Robot.from_model(bodies(robot)).torque_and_rate(*motion[:4])
    found = robot.motor_motion(*motion)
    assert worst(found.q_motor, tau[2:] / CASE["K"] + motion[0][2:]) < 1e-14
    assert worst(found.qd_motor, rate[2:] / CASE["K"] + motion[1][2:]) < 1e-14


def test_elastic_robot_approaches_the_rigid_robot_with_stiffness():
    """The difference decreases as 1 / K."""
    rigid, _ = four_joints(elastic=False)
    assert rigid.order == 3
    motion = polynomial(4, 4, 4)(0.0)
    tau = rigid.inverse_dynamics(*motion[:3])
    errors = []
    for K in (1e4, 1e6, 1e8):
        soft, _ = four_joints(stiffness=K)
        found = soft.motor_motion(*motion)
        errors.append(max(np.abs(found.tau - tau).max(), np.abs(found.q_motor - motion[0]).max()))
    assert errors[0] > 1e-3 and all(0.008 < b / a < 0.012 for a, b in pairwise(errors))


def test_motor_without_link_acts_as_rotor_inertia():
    """A motor without link equals JointDynamics at a rigid joint and a motor in the base at an elastic joint."""
    urdf = arm({"axis": (0, 0, 1)}, {"axis": (0, 0.6, 0.8), "xyz": (0.3, 0, 0), "rpy": (0.3, -0.2, 0.5)})
    short, motion = {"gear_ratio": 9.0, "rotor_inertia": 0.01}, polynomial(5, 2, 4)(0.0)
    rigid = load(urdf, motor_file({"j1": short, "j2": short}))
    term = JointDynamics(rotor_inertia=0.01, gear_ratio=9.0)
    robot = Robot.from_urdf(urdf, joint_dynamics={"j1": term, "j2": term})
    assert worst(rigid.inverse_dynamics(*motion[:3]), robot.inverse_dynamics(*motion[:3])) < 1e-13
    assert worst(rigid.torque_and_rate(*motion[:4]), robot.torque_and_rate(*motion[:4])) < 1e-13
    springs = [motor_file({"j1": short | mount | {"stiffness": 70.0}, "j2": short | mount | {"stiffness": 50.0}})
               for mount in ({}, {"link": "base", "axis": [0.3, 0.4, 0.5]})]
    robots = [load(urdf, declared) for declared in springs]
    assert robots[0].order == 5
    for one, two in zip(*(known(each.motor_motion(*motion)) for each in robots), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-13, atol=1e-14)


def test_joint_and_motor_friction_act_on_their_side_of_the_spring():
    urdf = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)})
    joint = {"stiffness": 50.0, "gear_ratio": 9.0, "rotor_inertia": 0.01}
    rubbing = {"viscous": 0.3, "coulomb": 0.5}
    terms = {"j2": JointDynamics(viscous=0.7, coulomb=0.2, offset=0.1)}
    smooth = load(urdf, motor_file({"j2": joint}))
    rough = Robot(TreeDynamics.from_urdf(urdf, joint_dynamics=terms), motor_file({"j2": joint | rubbing}))
    q, qd, theta, thetad = np.array([0.3, -0.4]), np.array([0.5, 0.02]), [0.2], [-0.03]
    extra = rough.bias(**state(q, theta, qd, thetad)) - smooth.bias(**state(q, theta, qd, thetad))
    expected = [0.0, 0.7 * 0.02 + 0.2 * math.tanh(0.02 / 1e-2) + 0.1, 0.3 * -0.03 + 0.5 * math.tanh(-0.03 / 1e-2)]
    np.testing.assert_allclose(extra, expected, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(rough.mass_matrix(q), smooth.mass_matrix(q), rtol=0, atol=1e-15)


def test_link_and_world_wrenches_on_an_elastic_robot_match_pinocchio():
    robot, oracle = four_joints()
    x, v, a = np.random.default_rng(1).normal(size=(3, 8))
    (q, theta), (qd, thetad) = parts(robot, x), parts(robot, v)
    f, now = np.array([1.0, -2.0, 3.0, 0.4, 0.5, -0.6]), state(q, theta, qd, thetad)
    expected = oracle.torques(x, v, 0 * a, {"joint3": pin.Force(f)}) - oracle.torques(x, v, 0 * a)
    found = robot.bias(**now, loads=Loads({"link3": f})) - robot.bias(**now)
    assert np.abs(found - expected).max() < 1e-12
    pin.forwardKinematics(oracle.model, oracle.data, oracle.configuration(x))
    R = oracle.data.oMi[oracle.model.getJointId("joint3")].rotation
    held = np.concatenate((R @ f[:3], R @ f[3:]))
    turned = robot.bias(**now, loads=Loads(world_wrenches={"link3": held})) - robot.bias(**now)
    assert np.abs(turned - expected).max() < 1e-12
    tau = np.ones(4)
    assert worst(*(accelerations(robot, **now, tau=tau, loads=Loads(**{kind: {"link3": w}}))
                   for kind, w in (("wrenches", f), ("world_wrenches", held)))) < 1e-11


def test_payload_of_an_elastic_robot_changes_loads_and_mass_matrix_of_its_link():
    robot, _ = four_joints()
    heavy = robot.with_payload("link4", 2.0, (0.1, 0.0, 0.2), np.diag([0.01, 0.02, 0.015]))
    q = np.random.default_rng(2).normal(size=4)
    rest = [np.zeros(4)] * 4
    loads = heavy.motor_motion(q, *rest).load - robot.motor_motion(q, *rest).load
    alone = robot.tree.with_payload("link4", 2.0, (0.1, 0.0, 0.2)).gravity(q) - robot.tree.gravity(q)
    assert worst(loads, alone) < 1e-12
    M = robot.tree.with_payload("link4", 2.0, (0.1, 0.0, 0.2), np.diag([0.01, 0.02, 0.015])).mass_matrix(q)
    gained = heavy.mass_matrix(q) - robot.mass_matrix(q)
    assert np.abs(gained[:4, :4] - (M - robot.tree.mass_matrix(q))).max() < 1e-12 and np.abs(gained[4:]).max() < 1e-12
    lighter = heavy.with_payload("link4", 0.0)
    assert worst(lighter.mass_matrix(q), robot.mass_matrix(q)) < 1e-14


def test_vectorized_results_of_an_elastic_robot_equal_single_samples():
    robot = golden_robot()
    motion = np.random.default_rng(3).normal(size=(5, 6, 3))
    together = robot.motor_motion(*motion)
    for k in range(6):
        for whole, one in zip(known(together), known(robot.motor_motion(*motion[:, k])), strict=True):
            np.testing.assert_array_equal(whole[k], one)
    q, theta = motion[0], together.q_motor
    qdd = robot.forward_dynamics(q, motion[1], together.tau, motors=MotorState(theta, together.qd_motor))
    assert qdd.shape == (6, 3) and worst(qdd, motion[2]) < 1e-9
    assert robot.mass_matrix(q).shape == (6, 4, 4)


# ------------------------------------------------------------------ rejected input


def test_motor_mounted_on_its_own_load_has_forward_but_no_inverse_dynamics():
    urdf = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0)})
    entry = {"stiffness": 50.0, "rotor_inertia": 0.01, "link": "l2", "axis": [0, 1, 0]}
    robot = load(urdf, motor_file({"j2": entry}))
    with pytest.raises(InputError, match=r"position of motor of j2 does not follow from the motion of the joints"):
        robot.inverse_dynamics(*np.zeros((5, 2)))
    assert np.isfinite(robot.forward_dynamics([0, 0], [0, 0], [0, 0], motors=MotorState([0], [0]))).all()


def test_error_states_the_number_of_missing_derivatives():
    with pytest.raises(InputError, match="2 derivatives of q are given; 4 decide the torques"):
        golden_robot().inverse_dynamics(*np.zeros((3, 3)))
    with pytest.raises(InputError, match="4 derivatives of q are given; 5 decide the torque rates"):
        golden_robot().torque_and_rate(*np.zeros((5, 3)))


def test_invalid_arrays_for_an_elastic_robot_are_rejected():
    robot = golden_robot()
    three, one = np.zeros(3), np.zeros(1)
    with pytest.raises(InputError, match=r"motors q has shape \(2,\); \(1,\)"):
        robot.forward_dynamics(three, three, three, motors=MotorState(np.zeros(2), one))
    with pytest.raises(InputError, match="tau has shape"):
        robot.forward_dynamics(three, three, np.zeros(4), motors=MotorState(one, one))
    with pytest.raises(InputError, match="link 'hand' is not in robot"):
        robot.bias(three, three, motors=MotorState(one, one), loads=Loads(world_wrenches={"hand": np.zeros(6)}))
    with pytest.raises(InputError, match=r"motors is missing: .*a column for each of joint3"):
        robot.forward_dynamics(three, three, three)


@pytest.mark.parametrize("backend", ["llvm", "python", "reference"])
def test_elastic_joint_that_moves_no_mass_is_rejected(backend):
    urdf = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0)}).replace(INERTIAL, "").replace('<link name="l1">',
                                                                                      f'<link name="l1">{INERTIAL}')
    robot = load(urdf, motor_file({"j2": {"stiffness": 1.0, "rotor_inertia": 1.0}}), backend=backend)
    with pytest.raises(InputError, match="'j2' moves no mass"):
        robot.forward_dynamics([0, 0], [0, 0], [0, 0], motors=MotorState([0], [0]))
