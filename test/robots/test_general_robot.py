"""Robots that combine moving bases, loops, springs and motors against Pinocchio with multipliers and MuJoCo.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import mujoco
import numpy as np
import pytest
import yaml

import rnea_ros
from rnea_ros import BaseState, InputError, Loads, ModelError, MotorState, Robot
from rnea_ros.robots.tree import TreeDynamics
from support.combined_machines import COMBINATIONS, NODES, WEIGHTS, MachineOracle, case, machine
from support.ground_machines import HOLDS, TripodOracle, VehicleOracle, tripod, vehicle
from support.parallel_machines import planar_3rrr
from support.robots import seeds

URDF = Path(__file__).resolve().parents[2] / "urdf"
BASE = BaseState((0.1, 0.2, 0.3), (0.0, 0.6, 0.0, 0.8), (0.3, -0.2, 0.1, 0.5, -0.4, 0.2))
STEP = 1e-2  # s, of differences


def off(ours, truth) -> float:
    return float(np.abs(np.asarray(ours) - truth).max() / np.abs(truth).max())


def cases():
    """Return one random machine of each combination; `make campaign` uses twenty."""
    return [(name, seed) for name in COMBINATIONS for seed in seeds(1)]


@pytest.mark.parametrize(("name", "seed"), cases())
def test_efforts_and_rates_match_pinocchio_and_differences_along_the_motion(name, seed):
    robot, truth, motion, state = case(name, seed)
    assert not robot.is_fixed_tree
    found = robot.solve(*motion, **state)
    v, a, jerk, effort, rate = truth.sample()
    numbers = {number: joint for joint, number in truth.number.items()}
    bases = ("base x", "base y", "base z", "base rx", "base ry", "base rz")
    names = [bases[k] if truth.free and k < 6 else numbers[k] for k in truth.motors]
    names = [f"motor of {one}" if one in robot.elastic_joints else one for one in names]
    scale, rate_scale = np.abs(effort).max(), np.abs(rate).max()
    noisy = bool(robot.elastic_joints) and truth.step < 1e-2  # second and third differences of an integrated motion
    exact = 1e-10 if noisy else 1e-11
    assert max(abs(found.efforts[one][0] - value) for one, value in zip(names, effort, strict=True)) < exact * scale
    exact = 1e-8 if noisy else 1e-9
    assert max(abs(found.efforts[one][1] - value) for one, value in zip(names, rate, strict=True)) < exact * rate_scale
    joints = list(truth.machine.q)
    there = [truth.number[joint] for joint in joints]
    assert off([found.positions[joint][1] for joint in joints], v[there]) < 1e-11
    assert off([found.positions[joint][2] for joint in joints], a[there]) < 1e-11
    if truth.free:
        assert off(found.base[1], a[:6]) < 1e-11
        assert off(found.base[2], jerk[:6]) < 1e-9
    assert not found.open_multipliers


@pytest.mark.parametrize("name", ["free base, loop, springs", "redundant motors, loop, spring"])
def test_forward_dynamics_inverts_inverse_dynamics(name):
    robot, truth, motion, state = case(name, 0)
    tau = robot.inverse_dynamics(*motion[:3], **state)
    found = robot.response(*motion[:2], tau, **state)
    _, a, _, _, _ = truth.sample()
    joints = list(truth.machine.q)
    assert off([found.positions[joint][2] for joint in joints], a[[truth.number[joint] for joint in joints]]) < 1e-10


def test_mass_matrix_and_bias_reproduce_the_efforts_of_independent_coordinates():
    robot, _, motion, state = case("free base, loop, springs", 0)
    found = robot.solve(*motion, **state)
    base = state["base"]
    a = np.concatenate((base.classical(found.base[1]), [found.positions[name][2] for name in robot.joint_names]))
    forces = robot.mass_matrix(motion[0], **state) @ a + robot.bias(motion[0], motion[1], **state)
    driven = [robot.independent.index(name) for name in robot.roles.given]
    assert off(forces[driven], [found.efforts[name][0] for name in robot.roles.given]) < 1e-11
    others = np.delete(forces, driven)
    assert np.abs(others).max() < 1e-11 * np.abs(forces).max()


def test_energy_rate_equals_the_power_of_motors_and_dampers():
    robot, truth, motion, state = case("free base, loop, springs", 0)
    states = [truth.equations(k * truth.step, X)[:2] for k, X in zip(NODES, truth.along(), strict=True)]
    columns = [truth.number[name] for name in robot.joint_names]
    q, qd = np.array([q[[k + 1 for k in columns]] for q, _ in states]), np.array([v[columns] for _, v in states])
    base = BaseState(*(np.array(rows) for rows in zip(*((q[:3], q[3:7], v[:6]) for q, v in states), strict=True)))
    energy = robot.energy(q, qd, base=base, guess=state["guess"]).total
    effort = robot.solve(*motion, **state).efforts
    power = sum(effort[name][0] * motion[1, robot.joint_names.index(name)] for name in robot.roles.given)
    for name, spring in truth.machine.file["springs"].items():
        power -= spring["damping"] * motion[1, robot.joint_names.index(name)]**2
    assert off(WEIGHTS[0] @ energy / truth.step, power) < 1e-9
    mass = robot.center_of_mass(q, qd, base=base, guess=state["guess"])
    assert off(WEIGHTS[0] @ mass.position / truth.step, mass.velocity[5]) < 1e-9


def test_jacobian_and_its_rate_match_link_velocity_and_differences():
    robot, _, motion, state = case("free base, loop, springs", 0)
    base, near = state["base"], {"guess": state["guess"]}
    velocity = np.concatenate((base.velocity, motion[1]))
    J = robot.jacobian("l8", motion[0], base=base, **near)
    assert off(J @ velocity, robot.link_velocity("l8", motion[0], motion[1], base=base, **near)) < 1e-13
    h, moved = 1e-3, []
    for t in (-2, -1, 1, 2):
        R = base.rotation
        turn = np.linalg.norm(base.velocity[3:]) * t * h
        axis = base.velocity[3:] / np.linalg.norm(base.velocity[3:])
        quaternion = multiplied(base.quaternion, np.concatenate((np.sin(turn / 2.0) * axis, [np.cos(turn / 2.0)])))
        there = BaseState(base.position + R @ base.velocity[:3] * t * h, quaternion, base.velocity)
        moved.append(robot.jacobian("l8", motion[0] + motion[1] * t * h, base=there, **near))
    difference = (moved[0] - 8.0 * moved[1] + 8.0 * moved[2] - moved[3]) / (12.0 * h)
    assert off(robot.jacobian_rate("l8", motion[0], motion[1], base=base, **near), difference) < 1e-8


def multiplied(a, b):
    """Return the product of two quaternions (x, y, z, w)."""
    return np.concatenate((a[3] * b[:3] + b[3] * a[:3] + np.cross(a[:3], b[:3]), [a[3] * b[3] - a[:3] @ b[:3]]))


def test_external_wrenches_and_their_rates_add_joint_efforts_by_virtual_work():
    """The efforts equal those of the tree without the passive joint declaration under the same wrench and wrench rate."""
    robot, _, motion, _ = case("passive joint", 0)
    wrench, wrench_rate = np.array([3.0, -2.0, 1.0, 0.5, -0.4, 0.3]), np.array([1.0, 2.0, -1.0, 0.2, 0.1, -0.3])
    plain = Robot.from_urdf(case("passive joint", 0)[1].machine.urdf)
    found = robot.solve(*motion, loads=Loads({"l5": wrench}, {"l5": wrench_rate}))
    q, qd, qdd, qddd = (np.array([found.positions[name][k] for name in plain.joint_names]) for k in range(4))
    tau, rate = plain.torque_and_rate(q, qd, qdd, qddd, loads=Loads({"l5": wrench}, {"l5": wrench_rate}))
    ours = np.array([found.efforts[name] if name in found.efforts else np.zeros(2) for name in plain.joint_names])
    assert np.abs(ours[:, 0] - tau).max() < 1e-11 * np.abs(tau).max()
    assert np.abs(ours[:, 1] - rate).max() < 1e-9 * np.abs(rate).max()


def test_motor_motion_behind_a_spring_follows_the_load_of_an_over_constrained_loop():
    """theta = q + load / K, with load and rate of the rigid robot with loops; motor torque = load + Ia theta''."""
    rigid = rnea_ros.load(URDF / "five_bar.urdf", URDF / "five_bar.robot.yaml")
    stiffness, inertia, ratio = 300.0, 1e-5, 50.0
    file = yaml.safe_load((URDF / "five_bar.robot.yaml").read_text()) | {
        "elastic_joints": {"left_motor": {"stiffness": stiffness}},
        "drives": {"left_motor": {"gear_ratio": ratio, "rotor_inertia": inertia}}}
    robot = rnea_ros.load(URDF / "five_bar.urdf", file)
    start = np.array([dict(zip(rigid.tree.joint_names, rigid.start, strict=True))[name] for name in rigid.joint_names])
    columns = [rigid.joint_names.index(name) for name in robot.joint_names]

    def motion(t, orders):
        at = [0.1 * w**k * np.sin(w * t + 0.3 + 0.5 * np.pi * k) for k in range(orders) for w in (np.array([1.0, 1.3]),)]
        return np.array([at[0] + start, *at[1:]])

    loads = np.array([rigid.torque_and_rate(*motion(k * STEP, 4)) for k in NODES])
    second, third = (weights @ loads[:, 1] / STEP**k for k, weights in enumerate(WEIGHTS[:2], start=1))
    q, left = motion(0.0, 6), rigid.joint_names.index("left_motor")
    tau, rate = robot.torque_and_rate(*q[:, columns])
    expected, expected_rate = loads[5].copy()
    expected[left] += inertia * ratio**2 * (q[2] + second / stiffness)[left]
    expected_rate[left] += inertia * ratio**2 * (q[3] + third / stiffness)[left]
    assert off(tau, expected[columns]) < 1e-11
    assert off(rate, expected_rate[columns]) < 1e-9


def test_cut_joint_wrenches_on_the_open_tree_give_the_motor_torques_of_the_loops():
    """Passive joints of the open tree need no torque under these wrenches."""
    robot, truth, motion, state = case("loop, spring", 0)
    found, tree = robot.solve(*motion, **state), Robot.from_urdf(truth.machine.urdf)
    wrenches, q = {}, np.array([[found.positions[joint][k] for joint in tree.joint_names] for k in range(3)])
    for name, one in robot.constraint_wrenches(found).items():
        force, moment = np.split(one.wrench, 2)
        wrenches[one.link] = np.concatenate((force, moment + np.cross(one.point, force)))
        first = truth.machine.cuts[name]["first"]["link"]
        (R2, p2), (R1, p1) = tree.link_pose(one.link, q[0]), tree.link_pose(first, q[0])
        force, moment = -R1.T @ R2 @ force, -R1.T @ R2 @ moment
        wrenches[first] = np.concatenate((force, moment + np.cross(R1.T @ (p2 + R2 @ one.point - p1), force)))
    tau = dict(zip(tree.joint_names, tree.inverse_dynamics(*q, loads=Loads(wrenches)), strict=True))
    largest = max(map(abs, tau.values()))
    assert max(abs(tau[joint]) for joint in truth.machine.follows) < 1e-11 * largest
    assert max(abs(tau[joint] - found.efforts[joint][0]) for joint in robot.roles.given) < 1e-11 * largest


def test_measured_motor_motion_gives_the_torques_of_the_computed_one():
    robot, _, motion, state = case("elastic joint, given base", 0)
    found = robot.solve(*motion, **state)
    motors = np.array([found.positions[f"motor of {name}"][:4] for name in robot.elastic_joints]).T
    base = state["base"].with_motion(rates=state["base"].rates[:2])
    measured = robot.solve(*motion[:4], base=base, guess=state["guess"], motors=MotorState(*motors))
    assert off(measured.torques, np.array(found.torques)) < 1e-11
    missing = [measured.efforts[name] for name in robot.elastic_joints]
    assert np.abs(missing).max() < 1e-10 * np.abs(found.torques[1]).max()
    with pytest.raises(InputError, match="follows from that of the joints: leave it out"):
        robot.solve(*motion, **state, motors=MotorState(*motors[:2]))


def test_loop_torques_match_equality_constraints_of_mujoco():
    made = machine(3, joints=7, loops=1, springs=1, types=("spherical",))
    truth, robot = MachineOracle(made, 3), rnea_ros.load(made.urdf, made.file)
    motion, _ = truth.inputs(robot)
    found = robot.solve(*motion, guess=truth.guess(robot))
    spec = mujoco.MjSpec.from_string(made.urdf)
    cut = next(iter(made.cuts.values()))
    equality = spec.add_equality(type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY)
    bodies = [cut[end]["link"] for end in ("first", "second")]
    equality.name1, equality.name2 = ("world" if body == "l0" else body for body in bodies)
    model = spec.compile()
    model.eq_data[0, :3], model.eq_data[0, 3:6] = cut["first"]["xyz"], cut["second"]["xyz"]
    data, names = mujoco.MjData(model), list(made.q)
    index = [int(model.joint(name).dofadr[0]) for name in names]
    q, v, a = np.zeros((3, model.nv))
    for k, values in enumerate((q, v, a)):
        values[index] = [found.positions[name][k] for name in names]

    def jacobian(q):
        data.qpos[:], data.qvel[:] = q, v
        mujoco.mj_forward(model, data)
        return data.efc_J[:3 * model.nv].reshape(3, model.nv).copy()

    h = 1e-3
    drift = sum(weight * jacobian(q + k * h * v) for k, weight in ((-2, 1), (-1, -8), (1, 8), (2, -1))) @ v / (12 * h)
    J, load = jacobian(q), np.zeros(model.nv)
    assert np.abs(J @ v).max() < 1e-12
    assert np.abs(J @ a + drift).max() < 1e-8 * np.abs(drift).max()
    mujoco.mj_mulM(model, data, load, a)
    load += data.qfrc_bias
    spring, (name, given) = made.file["springs"], next(iter(made.file["springs"].items()))
    load[index[names.index(name)]] += given["stiffness"] * (q[index[names.index(name)]] - given["rest"])
    load[index[names.index(name)]] += given["damping"] * v[index[names.index(name)]]
    motors = [index[names.index(one)] for one in made.given]
    solution = np.linalg.lstsq(np.hstack((np.eye(model.nv)[:, motors], J.T)), load, rcond=None)[0]
    assert len(spring) == 1
    assert off([found.efforts[one][0] for one in made.given], solution[:len(motors)]) < 1e-11


def test_base_acceleration_acts_on_a_platform_as_changed_gravity():
    machine, a = planar_3rrr(), np.array([0.3, -0.4, 0.5])
    fixed = rnea_ros.load(machine.urdf, {"version": 1, **machine.robot_file}, gravity=np.array([0.0, 0.0, -9.81]) - a)
    robot = rnea_ros.load(machine.urdf, {"version": 1, **machine.robot_file, "base": "prescribed"})
    motion = 0.05 * np.random.default_rng(0).normal(size=(4, 3))
    motion[0] += [dict(zip(fixed.tree.joint_names, fixed.start, strict=True))[name] for name in fixed.joint_names]
    columns = [fixed.joint_names.index(name) for name in robot.joint_names]
    tau, rate = fixed.torque_and_rate(*motion)
    found, found_rate = robot.torque_and_rate(*motion[:, columns], base=BaseState(acceleration=[*a, 0.0, 0.0, 0.0]))
    assert off(found, tau[columns]) < 1e-12
    assert off(found_rate, rate[columns]) < 1e-11
    moved = fixed.platform_motion(*motion)
    by_platform = robot.torque_and_rate(motion=moved, base=BaseState(acceleration=[*a, 0.0, 0.0, 0.0]))
    assert off(by_platform[0], tau[columns]) < 1e-11
    assert off(by_platform[1], rate[columns]) < 1e-10


# ---------------------------------------------------------------------- wheels and feet


def test_wheeled_base_moves_as_a_differential_drive_with_the_torques_of_pinocchio():
    urdf, file = vehicle()
    truth, robot = VehicleOracle(urdf), rnea_ros.load(urdf, file)
    order = [truth.names.index(name) for name in robot.joint_names]
    motion = np.array([truth.joints(0.0, k) for k in range(4)])[:, order]
    found = robot.solve(*motion, base=BaseState())
    for k in range(3):
        assert np.abs(found.base[k] - truth.base(0.0, k)).max() < 1e-13
    tau, rate = robot.torque_and_rate(*motion, base=BaseState(velocity=np.ones(6)))  # ignored: it follows from the wheels
    effort, effort_rate = truth.sample()
    assert off(tau, effort[order]) < 1e-12
    assert off(rate, effort_rate[order]) < 1e-9
    assert off(robot.forward_dynamics(motion[0], motion[1], tau, base=BaseState()), motion[2]) < 1e-12


def test_redundant_wheel_constraints_leave_side_forces_open_but_torques_unique():
    urdf, file = vehicle(holds={**HOLDS, "right": ["along", "across", "normal"]})
    truth, robot = VehicleOracle(urdf), rnea_ros.load(urdf, file)
    motion = np.array([truth.joints(0.0, k) for k in range(4)])[:, [truth.names.index(name) for name in robot.joint_names]]
    found = robot.solve(*motion, base=BaseState())
    assert found.open_multipliers == ("left[across]", "right[across]")
    assert off([found.efforts[name][0] for name in truth.names], truth.sample()[0]) < 1e-12


def test_standing_tripod_has_least_norm_torques_and_their_exact_rate():
    urdf, file, pose = tripod()
    truth, robot = TripodOracle(urdf, file, pose), rnea_ros.load(urdf, file)
    base, q, effort, rate = truth.sample()
    order, still = [truth.names.index(name) for name in robot.joint_names], np.zeros(robot.n)
    tau, tau_rate = robot.torque_and_rate(q[order], still, still, still, base=base)
    assert off(tau, effort[order]) < 1e-12
    assert off(tau_rate, rate[order]) < 1e-9


def test_forward_dynamics_of_a_standing_tripod_matches_the_constrained_motion():
    """The accelerations are those for which the torques were computed."""
    urdf, file, pose = tripod()
    truth, robot = TripodOracle(urdf, file, pose), rnea_ros.load(urdf, file)
    q, v, a, effort = truth.at(0.0)
    order = [truth.names.index(name) for name in robot.joint_names]
    joints = np.array(truth.order)[order]
    found = robot.response(q[joints + 1], v[joints], effort[order], base=truth.base(0.0)[1])
    assert off(found.base[1], a[:6]) < 1e-11
    assert off([found.positions[name][2] for name in robot.joint_names], a[joints]) < 1e-11
    accelerations = robot.forward_dynamics(q[joints + 1], v[joints], effort[order], base=truth.base(0.0)[1])
    assert off(accelerations, a[joints]) < 1e-11


# ---------------------------------------------------------------------- calls and rejected input


def test_loop_closure_of_many_samples_continues_from_sample_to_sample():
    robot, _, motion, state = case("loop, spring", 0)
    many = np.array([motion + np.array([0.01 * k] + [0.0] * 3)[:, None] for k in range(4)]).swapaxes(0, 1)
    tau, rate = robot.torque_and_rate(*many, guess=state["guess"])
    assert tau.shape == rate.shape == (4, robot.n)
    alone = robot.torque_and_rate(*many[:, 3], guess=robot.close(many[0], guess=state["guess"])[2])
    assert off(tau[3], alone[0]) < 1e-12


def test_pickled_robot_gives_the_same_torques():
    robot, _, motion, state = case("passive joint", 0)
    copy = pickle.loads(pickle.dumps(robot))
    assert (copy.inverse_dynamics(*motion[:3], **state) == robot.inverse_dynamics(*motion[:3], **state)).all()


def test_missing_derivatives_are_rejected_with_the_number_needed():
    robot, _, motion, state = case("elastic joint, loop", 0)
    assert robot.order == 5
    with pytest.raises(InputError, match="3 derivatives of q are given; 5 decide the torque rates"):
        robot.torque_and_rate(*motion[:4], **state)


def test_missing_base_derivatives_for_elastic_joints_are_rejected():
    robot, _, motion, state = case("elastic joint, given base", 0)
    with pytest.raises(InputError, match=r"2 rates of the base's velocity are given; 4 decide"):
        robot.torque_and_rate(*motion, base=state["base"].with_motion(np.zeros(6), np.zeros(6)))


def test_passive_joint_that_is_active_in_a_loop_is_rejected():
    made = machine(0, **COMBINATIONS["loop, spring"])
    with pytest.raises(ModelError, match="is an active joint of `loops` too"):
        rnea_ros.load(made.urdf, {**made.file, "passive": [made.given[0]]})


def test_wheels_on_a_fixed_base_are_rejected():
    urdf, file = vehicle()
    with pytest.raises(ModelError, match="wheels needs a base that moves"):
        rnea_ros.load(urdf, {**file, "base": "fixed"})


# ------------------------------------------------------------------ fixed trees


def test_kernels_of_a_fixed_tree_equal_the_general_equations():
    tree = Robot.from_urdf(URDF / "panda.urdf")
    robot, motion = Robot(tree), np.random.default_rng(3).normal(size=(4, tree.n))
    assert robot.is_fixed_tree and robot.joint_names == tree.joint_names and robot.order == 3
    expected = np.array(tree.torque_and_rate(*motion))
    np.testing.assert_array_equal(robot.torque_and_rate(*motion), expected)
    np.testing.assert_allclose(robot.solve(*motion).torques, expected, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(robot.gravity_and_rate(*motion[:2]), tree.dynamics(*motion)[2:], rtol=1e-11, atol=1e-11)
    carrying = robot.with_payload("panda_link7", 2.0)
    np.testing.assert_array_equal(carrying.torque_and_rate(*motion),
                                  tree.with_payload("panda_link7", 2.0).torque_and_rate(*motion))
    again = pickle.loads(pickle.dumps(carrying))
    np.testing.assert_array_equal(again.torque_and_rate(*motion), carrying.torque_and_rate(*motion))


def test_options_of_other_kinds_of_robots_are_rejected():
    robot, motion = Robot(TreeDynamics.from_urdf(URDF / "panda.urdf")), np.zeros((4, 7))
    robot.torque_and_rate(*motion, base=None, guess=None)
    with pytest.raises(InputError, match="base has no meaning for robot 'panda'"):
        robot.torque_and_rate(*motion, base=BASE)
    with pytest.raises(TypeError, match="unknown option wrench"):
        robot.torque_and_rate(*motion, wrench={})
    loops = rnea_ros.load(URDF / "five_bar.urdf", URDF / "five_bar.robot.yaml")
    with pytest.raises(InputError, match=r"friction is defined for a tree of rigid links .* 'five_bar' has loops"):
        loops.friction(np.zeros(2))


# ---------------------------------------------------------------------- payloads


def with_link(urdf: str, link: str, mass: float, com, inertia) -> str:
    """Return the URDF with a payload as an additional link on a fixed joint."""
    J = np.asarray(inertia).tolist()
    numbers = " ".join(f'{name}="{J[i][j]!r}"' for name, i, j in (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1),
                                                                    ("iyz", 1, 2), ("izz", 2, 2)))
    x, y, z = com
    return urdf.replace("</robot>", f'<link name="load"><inertial><origin xyz="{x!r} {y!r} {z!r}"/><mass value="{mass!r}"/>'
                        f'<inertia {numbers}/></inertial></link><joint name="carries" type="fixed"><parent link="{link}"/>'
                        '<child link="load"/></joint></robot>')


@pytest.mark.parametrize("name", ["free base, loop, springs", "elastic joint, given base", "redundant motors, loop, spring"])
def test_payload_changes_need_no_new_kernel_and_equal_a_fixed_link(name, monkeypatch):
    made = machine(0, **COMBINATIONS[name])
    truth, robot = MachineOracle(made, 0), rnea_ros.load(made.urdf, made.file)
    motion, state = truth.inputs(robot)
    there = {**state, "guess": truth.guess(robot)}
    at, load = {key: there[key] for key in ("base", "guess") if key in there}, ("l3", 2.1, [0.05, 0.1, -0.05])
    inertia = np.array([[0.02, 0.001, 0.0], [0.001, 0.03, 0.002], [0.0, 0.002, 0.025]])

    def answers(robot: Robot) -> list[np.ndarray]:
        return [*robot.torque_and_rate(*motion, **there), robot.mass_matrix(motion[0], **at),
                robot.gravity(motion[0], **at), *robot.gravity_and_rate(*motion[:2], **at), *robot.energy(*motion[:2], **at),
                *robot.sensitivities(*motion[:robot.order], **there), robot.coriolis(*motion[:2], **at)]

    first = robot.with_payload("l3", 0.7, (0.0, 0.2, 0.1))
    before = answers(first)
    monkeypatch.setattr("rnea_ros.codegen.kernel.build", None)  # nothing is compiled from now on
    monkeypatch.setattr("rnea_ros.codegen.kernel.trace", None)
    second = answers(first.with_payload(*load, inertia))
    monkeypatch.undo()
    for found, wanted in zip(second, answers(rnea_ros.load(with_link(made.urdf, *load, inertia), made.file)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12 * max(1.0, np.abs(wanted).max()))
    for found, wanted in zip(answers(first), before, strict=True):
        np.testing.assert_array_equal(found, wanted)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(second[0], before[0])
