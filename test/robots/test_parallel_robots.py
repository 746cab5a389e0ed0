"""Parallel robots against Pinocchio with Lagrange multipliers, the closed-loop formulation, closed forms and invariants."""

import re
import runpy
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin

import rnea_ros
from rnea_ros import InputError, JointDynamics, Loads, ModelError, load
from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.robots import platform_closure
from rnea_ros.robots.loops import Platform
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.sim.machines import Machine, gough_stewart
from support.machines import PlatformOracle, as_closed_loop, start_of_pivots
from support.oracles import deviation, difference
from support.parallel_machines import delta, planar_3rrr
from support.robots import seeds

MACHINES = {"gough_stewart": (gough_stewart, range(6)), "delta": (delta, range(3)), "planar_3rrr": (planar_3rrr, (0, 1, 5))}
each_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def machines():
    """Return {name: (machine, robot)}; gravity is oblique, so that it acts on the planar machine too."""
    texts = {name: make() for name, (make, _) in MACHINES.items()}
    return {name: (machine, machine.robot(gravity=(1.0, -4.0, -9.0))) for name, machine in texts.items()}


def polynomial(name, robot, seed=0):
    """Return a motion t -> PlatformMotion within the degrees of freedom of the machine, through a pose off home."""
    rng, freedoms = np.random.default_rng(seed), list(MACHINES[name][1])
    a = np.zeros((4, 6))
    a[:, freedoms] = rng.normal(size=(4, len(freedoms))) * [[0.04], [0.3], [1.0], [4.0]]
    home = robot.home[0]

    def motion(t):
        x = [a[0] + a[1] * t + a[2] * t**2 / 2 + a[3] * t**3 / 6, a[1] + a[2] * t + a[3] * t**2 / 2, a[2] + a[3] * t, a[3]]
        return PlatformMotion.from_rpy([home + x[0][:3], *(y[:3] for y in x[1:])], [y[3:] for y in x])

    return motion


class Legs(NamedTuple):
    """Motion of the leg joints, and the matrices of Khalil's equations (60) and (61) with their rates."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    Jp: np.ndarray
    Jpd: np.ndarray
    Q: np.ndarray
    Qd: np.ndarray


def leg_names(robot):
    return tuple(name for name in robot.tree.joint_names if not name.startswith("platform_pose."))


def leg_motion(robot, motion, **options):
    """Return the motion of the leg joints (4, n) from the platform motion."""
    columns = [robot.tree.joint_names.index(name) for name in leg_names(robot)]
    return [part[..., columns] for part in robot.tree_motion(motion, **options)]


def legs_of(robot, motion):
    columns = [robot.tree.joint_names.index(name) for name in leg_names(robot)]
    q, qd = actuator_motion(robot, motion)[:2]
    found = robot.motion(*actuator_motion(robot, motion), guess=robot.tree_motion(motion, orders=0).q)
    Jp, Jpd = robot.jacobian("platform", q, guess=found.q), robot.jacobian_rate("platform", q, qd, guess=found.q)
    return Legs(*(part[columns] for part in found[:4]), Jp, Jpd, found.G[columns], found.Gd[columns])


def actuator_motion(robot, motion):
    """Return q, qd, qdd, qddd of the active joints."""
    return robot.actuator_motion(motion, None, 3)[0]


def stacked(motions):
    return PlatformMotion(*(np.array(values) for values in zip(*motions, strict=True)))


# --- against Pinocchio ------------------------------------------------------------------------------------------------


@each_machine
@pytest.mark.parametrize("seed", range(3))
def test_actuator_forces_match_pinocchio_with_multipliers(machines, name, seed):
    machine, robot = machines[name]
    motion = polynomial(name, robot, seed)(0.0)
    legs = legs_of(robot, motion)
    oracle = PlatformOracle(machine, leg_names(robot))
    for body in (oracle.legs, oracle.platform):
        body.model.gravity.linear = robot.tree.gravity_vector
    tau, gap = oracle.forces(legs[:3], motion)
    assert gap < 1e-11
    assert deviation(robot.inverse_dynamics(motion=motion), tau) < 1e-10


@each_machine
def test_actuator_power_equals_the_rate_of_pinocchios_energy(machines, name):
    machine, robot = machines[name]
    oracle = PlatformOracle(machine, leg_names(robot))
    for body in (oracle.legs, oracle.platform):
        body.model.gravity.linear = robot.tree.gravity_vector
    motion = polynomial(name, robot)

    def energy(t):
        now = motion(t)
        legs, R = legs_of(robot, now), now.rotation
        q, v = np.zeros((2, len(leg_names(robot))))
        q[oracle.order], v[oracle.order] = legs.q, legs.qd
        pose = np.concatenate((now.position, pin.Quaternion(R).coeffs()))
        twist = np.concatenate((R.T @ now.velocity[:3], R.T @ now.velocity[3:]))
        total = 0.0
        for body, x, xd in ((oracle.legs, q, v), (oracle.platform, pose, twist)):
            data = body.model.createData()
            total += pin.computeKineticEnergy(body.model, data, x, xd) + pin.computePotentialEnergy(body.model, data, x)
        return total

    legs = legs_of(robot, motion(0.0))
    active = [leg_names(robot).index(joint) for joint in robot.joint_names]
    assert robot.inverse_dynamics(motion=motion(0.0)) @ legs.qd[active] == pytest.approx(difference(energy, 1e-3), rel=1e-8)


# --- against the closed-loop formulation ------------------------------------------------------------------------------


@pytest.mark.parametrize("name, first, kind", [("gough_stewart", "ball1", "spherical"), ("delta", "ball1a", "spherical"),
                                               ("planar_3rrr", "pin2", "revolute")])
def test_platform_formulation_equals_the_closed_loop_formulation(machines, name, first, kind):
    machine, robot = machines[name]
    urdf, loops = as_closed_loop(machine, first, kind)
    loops["loops"]["start"] = start_of_pivots(machine, first, kind)
    closed = load(urdf, loops, gravity=robot.tree.gravity_vector)
    motion = polynomial(name, robot)(0.0)
    legs = legs_of(robot, motion)
    active = [leg_names(robot).index(joint) for joint in robot.joint_names]
    qa = [values[active] for values in legs[:4]]
    assert closed.joint_names == robot.joint_names
    state = closed.motion(*qa)
    for ours, theirs in zip(legs[:4], state[:4]):
        joints = [closed.tree.joint_names.index(joint) for joint in leg_names(robot)]
        assert deviation(ours, theirs[joints]) < 1e-9
    for ours, theirs in zip(robot.torque_and_rate(motion=motion), closed.torque_and_rate(*qa)):
        assert deviation(ours, theirs) < 1e-9


def rps_3(radius=0.5, height=0.8):
    """Return a 3-RPS robot. Heave, roll and pitch are independent; the other platform coordinates depend on them."""
    legs, loops = '<link name="base"/>', {"active": ["slide1", "slide2", "slide3"], "cut_joints": {}}
    body = '<inertial><origin xyz="0.01 0.02 {z}"/><mass value="{m}"/><inertia {I}/></inertial>'
    tensor = 'ixx="0.3" ixy="0.01" ixz="0.02" iyy="0.4" iyz="-0.01" izz="0.5"'
    limit = '<limit effort="1" velocity="1"/></joint>'
    for n, angle in enumerate(2.0 * np.pi / 3.0 * np.arange(3), start=1):
        at = radius * np.array([np.cos(angle), np.sin(angle), 0.0])
        legs += (f'<link name="tube{n}">{body.format(z=0.3, m=3.0, I=tensor)}</link>'
                 f'<link name="rod{n}">{body.format(z=-0.2, m=2.0, I=tensor)}</link>'
                 f'<joint name="hinge{n}" type="revolute"><parent link="base"/><child link="tube{n}"/>'
                 f'<origin xyz="{at[0]} {at[1]} 0" rpy="0 0 {angle}"/><axis xyz="0 1 0"/>{limit}'
                 f'<joint name="slide{n}" type="prismatic"><parent link="tube{n}"/><child link="rod{n}"/>'
                 f'<origin xyz="0 0 {height}"/><axis xyz="0 0 1"/>{limit}')
        loops["cut_joints"][f"ball{n}"] = {"type": "spherical", "first": f"rod{n}",
                                           "second": {"link": "platform", "xyz": at.tolist()}}
    platform = f'<robot name="platform"><link name="platform">{body.format(z=0.1, m=8.0, I=tensor)}</link></robot>'
    return Machine(f'<robot name="legs">{legs}</robot>', platform, loops, ((0.0, 0.0, height), np.eye(3)))


def test_actuator_forces_of_a_3rps_with_pose_dependent_twists_match_pinocchio():
    """The allowed twists change with the pose, so that the constraints have rates."""
    machine = rps_3()
    robot = machine.robot()
    urdf, loops = as_closed_loop(machine, "ball1", "spherical")
    closed = load(urdf, loops)
    rng = np.random.default_rng(8)
    qa = rng.normal(size=(4, 3)) * [[0.1], [0.3], [1.0], [4.0]]
    motion = platform_motion_of_tree(closed, closed.motion(*qa))
    with pytest.raises(InputError, match="legs do not allow this jerk"):
        robot.torque_and_rate(motion=motion._replace(jerk=np.zeros(6)))
    assert np.abs(motion.velocity[[0, 1, 5]]).max() > 1e-2 and np.abs(motion.acceleration[[0, 1, 5]]).max() > 1e-2
    for ours, theirs in zip(robot.torque_and_rate(motion=motion), closed.torque_and_rate(*qa)):
        assert deviation(ours, theirs) < 1e-9
    tau, gap = PlatformOracle(machine, leg_names(robot)).forces(leg_motion(robot, motion)[:3], motion)
    assert gap < 1e-11 and deviation(robot.inverse_dynamics(motion=motion), tau) < 1e-10
    assert deviation(robot.platform_of(robot.response(tau=tau, motion=motion)).acceleration, motion.acceleration) < 1e-10


def test_distant_pose_of_a_3rps_is_reached():
    """The straight path from the home pose leaves the allowed poses; inverse kinematics of the legs still converges."""
    machine = rps_3()
    robot, closed = machine.robot(), load(*as_closed_loop(machine, "ball1", "spherical"))
    qa, zero = np.array([0.3, -0.1, 0.05]), np.zeros(3)
    state = closed.motion(qa, zero, zero, zero)
    motion = platform_motion_of_tree(closed, state)
    assert np.abs(motion.position[:2]).max() > 5e-3  # dependent coordinates move
    joints = [closed.tree.joint_names.index(joint) for joint in leg_names(robot)]
    assert deviation(leg_motion(robot, motion)[0], state.q[joints]) < 1e-10


def platform_motion_of_tree(closed, state):
    """Return the platform motion from the motion of the tree of a closed loop, by power series in time."""
    model = closed.tree.model
    frame = model.frame("platform")
    R, P = within(base_poses(model, jets(*state[:4]))[frame.link], (frame.R, frame.P))
    R0, R1, R2, R3 = (derivative(R, order).astype(float) for order in range(4))
    turning = (R1 @ R0.T, R2 @ R0.T + R1 @ R1.T, R3 @ R0.T + 2.0 * R2 @ R1.T + R1 @ R2.T)
    angular = [np.array([W[2, 1], W[0, 2], W[1, 0]]) for W in turning]
    linear = [derivative(P, order).astype(float) for order in range(4)]
    return PlatformMotion(linear[0], R0, *(np.concatenate(pair) for pair in zip(linear[1:], angular, strict=True)))


def force_on(machine, robot, motion):
    """Return the wrench of the legs on the platform about its origin, in the base frame, by Pinocchio."""
    body = pin.buildModelFromXML(machine.platform, pin.JointModelFreeFlyer())
    body.gravity.linear = robot.tree.gravity_vector
    R, V, Vd = motion.rotation, np.asarray(motion.velocity), np.asarray(motion.acceleration)
    pose = np.concatenate((motion.position, pin.Quaternion(R).coeffs()))
    twist = np.concatenate((R.T @ V[:3], R.T @ V[3:]))
    spatial = np.concatenate((R.T @ (Vd[:3] - np.cross(V[3:], V[:3])), R.T @ Vd[3:]))
    six = pin.rnea(body, body.createData(), pose, twist, spatial)
    return np.concatenate((R @ six[:3], R @ six[3:]))


# --- the paper's formulas ---------------------------------------------------------------------------------------------


def test_gough_stewart_forces_match_published_equations_65_and_66(machines):
    """Jvi = [1, -P_i^], Gamma = Jp^T (Fp + sum Jvi^T Ji^-T Gamma_i), Jp^-1 from the rows of the prismatic joints."""
    machine, robot = machines["gough_stewart"]
    motion = polynomial("gough_stewart", robot)(0.0)
    legs = legs_of(robot, motion)
    model = pin.buildModelFromXML(machine.legs)
    data = model.createData()
    q = np.zeros(18)
    order = [model.joints[model.getJointId(name)].idx_v for name in leg_names(robot)]
    q[order] = legs.q
    pin.computeJointJacobians(model, data, q)
    pin.updateFramePlacements(model, data)
    pin_v, pin_a = (np.zeros(18) for _ in range(2))
    pin_v[order], pin_a[order] = legs.qd, legs.qdd
    model.gravity.linear = robot.tree.gravity_vector
    tau = pin.rnea(model, model.createData(), q, pin_v, pin_a)[order]
    W, rows = force_on(machine, robot, motion), []
    for k in range(1, 7):
        Ji = pin.getFrameJacobian(model, data, model.getFrameId(f"rod{k}"), pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)[:3]
        leg = [leg_names(robot).index(joint) for joint in (f"universal{k}_x", f"universal{k}_y", f"slide{k}")]
        Ji = Ji[:, [order[j] for j in leg]]
        P = motion.rotation @ machine.loops["cut_joints"][f"ball{k}"]["second"]["xyz"]
        Jvi = np.hstack((np.eye(3), -pin.skew(P)))  # (65)
        W = W + Jvi.T @ np.linalg.solve(Ji.T, tau[leg])
        rows.append(np.linalg.solve(Ji, Jvi)[2])
        assert deviation(legs.qd[leg], np.linalg.solve(Ji, Jvi) @ motion.velocity) < 1e-12  # (63), (64)
    Jp = np.linalg.inv(rows)
    assert deviation(legs.Jp, Jp) < 1e-12
    assert deviation(robot.inverse_dynamics(motion=motion), Jp.T @ W) < 1e-12


def test_hexapod_inverse_kinematics_is_the_distance_between_leg_ends(machines):
    machine, robot = machines["gough_stewart"]
    motion = polynomial("gough_stewart", robot, 5)(0.0)
    q = dict(zip(leg_names(robot), leg_motion(robot, motion)[0], strict=True))
    P0, R0 = robot.home
    model = pin.buildModelFromXML(machine.legs)
    data = model.createData()
    pin.framesForwardKinematics(model, data, pin.neutral(model))
    for k in range(1, 7):
        base = data.oMf[model.getFrameId(f"cross{k}")].translation
        ball = np.array(machine.loops["cut_joints"][f"ball{k}"]["second"]["xyz"])
        lengths = [np.linalg.norm(P + R @ ball - base) for P, R in ((P0, R0), (motion.position, motion.rotation))]
        assert q[f"slide{k}"] == pytest.approx(lengths[1] - lengths[0], abs=1e-12)


def test_delta_inverse_kinematics_match_the_closed_form(machines):
    """The elbow is one rod length from the ball joint; both rods of a pair stay parallel."""
    _machine, robot = machines["delta"]
    motion = polynomial("delta", robot, 2)(0.0)
    q = dict(zip(leg_names(robot), leg_motion(robot, motion)[0], strict=True))
    for n in (1, 2, 3):
        c, s = np.cos((n - 1) * 2 * np.pi / 3), np.sin((n - 1) * 2 * np.pi / 3)
        x, y, z = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]) @ motion.position
        angle = 0.3 + q[f"motor{n}"]
        elbow = np.array([0.2 + 0.3 * np.cos(angle), 0.0, -0.3 * np.sin(angle)])
        assert np.linalg.norm(elbow - [x + 0.05, y, z]) == pytest.approx(0.7, abs=1e-12)
        for joint in ("swing", "sway"):  # parallel rods
            assert q[f"{joint}{n}a"] == pytest.approx(q[f"{joint}{n}b"], abs=1e-12)


# --- rates ------------------------------------------------------------------------------------------------------------


@each_machine
def test_rates_of_legs_jacobian_and_forces_match_differences(machines, name):
    _machine, robot = machines[name]
    motion = polynomial(name, robot, 1)
    legs = legs_of(robot, motion(0.0))
    for order in range(3):
        def lower(t, order=order):
            return leg_motion(robot, motion(t))[order]
        assert deviation(difference(lower), legs[order + 1]) < 1e-9
    assert deviation(difference(lambda t: legs_of(robot, motion(t)).Jp), legs.Jpd) < 1e-9
    tau_rate = robot.torque_and_rate(motion=motion(0.0))[1]
    assert deviation(difference(lambda t: robot.inverse_dynamics(motion=motion(t))), tau_rate) < 1e-9


@pytest.mark.parametrize("samples", [None, 4])
def test_platform_motion_from_roll_pitch_yaw_has_consistent_derivatives(samples):
    rng = np.random.default_rng(4)
    shape = (4, 2, 3) if samples is None else (4, 2, samples, 3)
    a = rng.normal(size=shape)

    def motion(t):
        x = [a[0] + a[1] * t + a[2] * t**2 / 2 + a[3] * t**3 / 6, a[1] + a[2] * t + a[3] * t**2 / 2, a[2] + a[3] * t, a[3]]
        return PlatformMotion.from_rpy([y[0] for y in x], [y[1] for y in x])

    now = motion(0.0)
    assert now.rotation.shape == ((3, 3) if samples is None else (samples, 3, 3))
    first = (now.rotation, a[0, 1]) if samples is None else (now.rotation[1], a[0, 1, 1])
    assert deviation(first[0], pin.rpy.rpyToMatrix(first[1])) < 1e-14
    turning = difference(lambda t: motion(t).rotation) @ np.swapaxes(now.rotation, -1, -2)
    w = np.stack((turning[..., 2, 1], turning[..., 0, 2], turning[..., 1, 0]), axis=-1)
    assert deviation(now.velocity[..., 3:], w) < 1e-9
    assert deviation(difference(lambda t: motion(t).position), now.velocity[..., :3]) < 1e-9
    assert deviation(difference(lambda t: motion(t).velocity), now.acceleration) < 1e-9
    assert deviation(difference(lambda t: motion(t).acceleration), now.jerk) < 1e-9


# --- external loads --------------------------------------------------------------------------------------------------


@each_machine
def test_forward_dynamics_inverts_inverse_dynamics_of_platforms(machines, name):
    _machine, robot = machines[name]
    motion = polynomial(name, robot, 3)(0.0)
    tau = robot.inverse_dynamics(motion=motion)
    assert deviation(robot.platform_of(robot.response(tau=tau, motion=motion)).acceleration, motion.acceleration) < 1e-10


# --- from the actuators ----------------------------------------------------------------------------------------------


@each_machine
def test_forward_kinematics_inverts_inverse_kinematics_up_to_jerk(machines, name):
    """Results from actuator motion equal those from platform motion."""
    _machine, robot = machines[name]
    motion = polynomial(name, robot, 4)(0.0)
    q, qd, qdd, qddd = given = actuator_motion(robot, motion)
    found = robot.platform_motion(*given)
    for ours, theirs in zip(found, motion, strict=True):
        assert deviation(ours, theirs) < 1e-9
    load = {"loads": Loads({"platform": np.arange(6.0)}, world_wrenches={robot.tree.model.links[1].name: np.ones(6)})}
    for ask, count in ((robot.torque_and_rate, 4), (robot.dynamics, 4), (robot.inverse_dynamics, 3), (robot.bias, 2),
                       (robot.mass_matrix, 1), (robot.gravity, 1)):
        options = load if ask in (robot.torque_and_rate, robot.inverse_dynamics, robot.bias) else {}
        for ours, theirs in zip(ask(*given[:count], **options), ask(motion=motion, **options), strict=True):
            assert deviation(ours, theirs) < 1e-9
    tau = robot.inverse_dynamics(q, qd, qdd, **load)
    assert deviation(robot.mass_matrix(q) @ qdd + robot.bias(q, qd, **load), tau) < 1e-10
    assert deviation(robot.forward_dynamics(q, qd, tau, **load), qdd) < 1e-10
    assert deviation(robot.platform_of(robot.response(q, qd, tau, **load)).acceleration, motion.acceleration) < 1e-9
    assert deviation(robot.dynamics(q, qd, qdd, qddd).gravity, robot.gravity(q)) < 1e-10
    assert deviation(robot.gravity(q), robot.bias(q, np.zeros(robot.n))) < 1e-10


@each_machine
def test_gravity_forces_of_a_platform_and_their_rate_match_differences(machines, name):
    """The gravity share is the difference of forces with and without gravity."""
    machine, robot = machines[name]
    motion, light = polynomial(name, robot, 4), machine.robot(gravity=(0.0, 0.0, 0.0))
    now = robot.dynamics(motion=motion(0.0))
    heavy, light = (each.inverse_dynamics(motion=motion(0.0)) for each in (robot, light))
    assert deviation(now.gravity, heavy - light) < 1e-9
    assert deviation(now.gravity_rate, difference(lambda t: robot.gravity(motion=motion(t)))) < 1e-8


def test_world_wrench_on_a_platform_keeps_its_direction(machines):
    _machine, robot = machines["gough_stewart"]
    motion, held = polynomial("gough_stewart", robot, 4), np.arange(1.0, 7.0)

    def in_own_axes(t):
        R = motion(t).rotation
        return np.concatenate((R.T @ held[:3], R.T @ held[3:]))

    now = robot.torque_and_rate(motion=motion(0.0), loads=Loads(world_wrenches={"platform": held}))
    same = robot.torque_and_rate(motion=motion(0.0),
                                 loads=Loads({"platform": in_own_axes(0.0)}, {"platform": difference(in_own_axes)}))
    assert deviation(now, same) < 1e-8


def test_forward_kinematics_accept_many_samples_and_a_guess(machines):
    _machine, robot = machines["planar_3rrr"]
    motion = polynomial("planar_3rrr", robot, 4)
    along = stacked([motion(t) for t in np.linspace(0.0, 0.1, 3)])
    given = actuator_motion(robot, along)
    assert deviation(robot.platform_motion(*given).position, along.position) < 1e-9
    assert robot.mass_matrix(given[0]).shape == (3, 3, 3)
    assert deviation(robot.torque_and_rate(*given), robot.torque_and_rate(motion=along)) < 1e-9
    assert deviation(robot.platform_motion(*given, guess=along._replace(position=along.position[0],
                                           rotation=along.rotation[0]).at_rest()).position, along.position) < 1e-9


def test_unreachable_actuator_positions_are_rejected(machines):
    _machine, robot = machines["planar_3rrr"]
    here, q = PlatformMotion(*robot.home), np.zeros(3)
    with pytest.raises(InputError, match="given twice"):
        robot.torque_and_rate(q, q, q, q, motion=here)
    with pytest.raises(InputError, match=r"qdd is missing: a column for each of motor1, motor2, motor3.*PlatformMotion"):
        robot.inverse_dynamics(q, q)
    with pytest.raises(InputError, match=r"q has shape \(2,\).*motor1"):
        robot.gravity(q[:2])
    with pytest.raises(InputError, match=r"guess is array.*13 finite numbers are needed"):
        robot.gravity(q, guess=np.zeros(2))
    with pytest.raises(InputError, match=r"no way to motor1 = 3.*'pin.' is open by|machine is singular"):
        robot.gravity([3.0, 0.0, 0.0])


def test_payload_on_the_platform_equals_a_heavier_platform(machines):
    machine, robot = machines["gough_stewart"]
    motion = polynomial("gough_stewart", robot)(0.0)
    heavier = gough_stewart(platform_mass=52.0).robot(gravity=robot.tree.gravity_vector)
    r, h = 1.1 * 0.6, 0.08
    inertia = 12.0 * np.diag([(3 * r**2 + h**2) / 12, (3 * r**2 + h**2) / 12, r**2 / 2])
    carrying = robot.with_payload("platform", 12.0, inertia=inertia)
    for ours, theirs in zip(carrying.torque_and_rate(motion=motion), heavier.torque_and_rate(motion=motion)):
        assert deviation(ours, theirs) < 1e-12
    assert np.abs(carrying.inverse_dynamics(motion=motion) - robot.inverse_dynamics(motion=motion)).max() > 1.0
    empty = carrying.with_payload("platform", 0.0)
    assert deviation(empty.inverse_dynamics(motion=motion), robot.inverse_dynamics(motion=motion)) == 0.0

    on_a_rod = robot.with_payload("rod3", 1.5, (0.0, 0.02, -0.1))
    machine = machine._replace(legs=with_mass(machine.legs, "rod3", 1.5, (0.0, 0.02, -0.1)))
    expected = machine.robot(gravity=robot.tree.gravity_vector).torque_and_rate(motion=motion)
    assert deviation(on_a_rod.torque_and_rate(motion=motion), expected) < 1e-12


def with_mass(urdf, link, mass, at):
    where = " ".join(map(repr, at))
    body = (f'<link name="extra"><inertial><origin xyz="{where}"/><mass value="{mass}"/><inertia ixx="0" ixy="0" ixz="0" '
            'iyy="0" iyz="0" izz="0"/></inertial></link><joint name="extra" type="fixed">'
            f'<parent link="{link}"/><child link="extra"/></joint>')
    return urdf.replace("</robot>", body + "</robot>")


def test_wrenches_on_platform_and_legs_act_by_virtual_work(machines):
    """tau = -Jp^T w for a wrench on the platform and -Q^T J^T w on a leg, with wrench rates."""
    _machine, robot = machines["delta"]
    motion = polynomial("delta", robot)(0.0)
    tau, tau_rate = robot.torque_and_rate(motion=motion)
    wrench, rate = np.array([[5.0, -3.0, 7.0, 0.2, 0.1, -0.4], [1.0, 2.0, -1.0, 0.3, 0.0, 0.5]])
    legs = legs_of(robot, motion)
    pushed, pushed_rate = robot.torque_and_rate(motion=motion, loads=Loads({"platform": wrench}, {"platform": rate}))
    Jp, Jpd = legs.Jp, legs.Jpd
    assert deviation(pushed - tau, -Jp.T @ wrench) < 1e-12  # platform and base axes coincide
    assert deviation(pushed_rate - tau_rate, -Jp.T @ rate - Jpd.T @ wrench) < 1e-12
    on_leg, on_leg_rate = robot.torque_and_rate(motion=motion, loads=Loads({"rod1a": wrench, "platform": wrench}))
    along = robot.motion(*actuator_motion(robot, motion), guess=robot.tree_motion(motion, orders=0).q)
    free, free_rate = robot.tree.torque_and_rate(*along[:4])
    loaded, loaded_rate = robot.tree.torque_and_rate(*along[:4], loads=Loads({"rod1a": wrench}))
    Q, Qd = along.G, along.Gd
    assert deviation(on_leg - tau + Jp.T @ wrench, Q.T @ (loaded - free)) < 1e-12
    change = Qd.T @ (loaded - free) + Q.T @ (loaded_rate - free_rate)
    assert deviation(on_leg_rate - tau_rate + Jpd.T @ wrench, change) < 1e-12


def test_friction_and_rotor_inertia_of_all_leg_joints_enter_the_actuator_torque(machines):
    machine, bare = machines["planar_3rrr"]
    terms = {"motor1": JointDynamics(rotor_inertia=0.001, gear_ratio=30.0, viscous=0.2),
             "elbow2": JointDynamics(viscous=0.7, coulomb=0.3)}
    robot = machine.robot(gravity=bare.tree.gravity_vector, joint_dynamics=terms)
    motion = polynomial("planar_3rrr", robot, 6)
    legs = legs_of(robot, motion(0.0))
    names = leg_names(robot)
    motor, elbow = names.index("motor1"), names.index("elbow2")
    extra = np.zeros(len(names))
    extra[motor] = 0.9 * legs.qdd[motor] + 0.2 * legs.qd[motor]
    extra[elbow] = 0.7 * legs.qd[elbow] + 0.3 * np.tanh(legs.qd[elbow] / 1e-2)
    change = robot.inverse_dynamics(motion=motion(0.0)) - bare.inverse_dynamics(motion=motion(0.0))
    assert deviation(change, legs.Q.T @ extra) < 1e-12
    tau_rate = robot.torque_and_rate(motion=motion(0.0))[1]
    assert deviation(difference(lambda t: robot.inverse_dynamics(motion=motion(t)), 1e-4), tau_rate) < 1e-8


def test_vectorized_forces_of_a_platform_equal_single_samples(machines):
    _machine, robot = machines["gough_stewart"]
    motion = polynomial("gough_stewart", robot)
    times = np.linspace(-0.05, 0.05, 5)
    tau, tau_rate = robot.torque_and_rate(motion=stacked([motion(t) for t in times]))
    for k, t in enumerate(times):
        assert deviation((tau[k], tau_rate[k]), robot.torque_and_rate(motion=motion(t))) < 1e-11
    home, (P, R) = robot.inverse_dynamics(motion=PlatformMotion(*robot.home)), robot.home
    held = robot.inverse_dynamics(motion=PlatformMotion(np.stack([P, P]), R))
    assert deviation(held, [home, home]) < 1e-12


def test_leg_inverse_kinematics_do_not_depend_on_the_size_of_the_robot():
    """Tolerances are relative to the characteristic length."""
    home = np.array([0.0, 0.0, 1.2])
    P, R = home + [0.05, -0.1, 0.1], pin.rpy.rpyToMatrix(0.1, -0.2, 0.3)
    usual = gough_stewart().robot()
    scales = np.array([1e-6 if joint.startswith("slide") else 1.0 for joint in leg_names(usual)])
    tiny = gough_stewart(1e-6, 0.6e-6, 1.2e-6).robot()
    q = leg_motion(tiny, PlatformMotion(1e-6 * P, R))[0]
    assert deviation(q / scales, leg_motion(usual, PlatformMotion(P, R))[0]) < 1e-9


def test_guess_selects_the_branch_of_the_legs(machines):
    """The guess has the elbows of the planar robot on the other side."""
    _machine, robot = machines["planar_3rrr"]
    P, R = robot.home
    lean = 2.0 * np.arccos(0.38 / 0.64)
    flipped = np.tile([-lean, 2.0 * lean], 3)  # upper links turned to the other side, lower ones back
    guess = robot.start.copy()
    guess[[robot.tree.joint_names.index(name) for name in leg_names(robot)]] = flipped + 0.05
    q = leg_motion(robot, PlatformMotion(P, R), guess=guess)[0]
    assert deviation(q, flipped) < 1e-12
    assert np.abs(leg_motion(robot, PlatformMotion(P, R))[0]).max() < 1e-12


# --- rejected input --------------------------------------------------------------------------------------------------


def test_unreachable_platform_pose_is_rejected(machines):
    _machine, robot = machines["delta"]
    P, R = robot.home
    with pytest.raises(InputError, match=r"do not bring the platform to \(0, 0, -1.5\).*'ball.*' is open by .* m at best"):
        robot.inverse_dynamics(motion=PlatformMotion([0.0, 0.0, -1.5], R))
    with pytest.raises(InputError, match="sample 1: the legs do not bring"):
        robot.inverse_dynamics(motion=PlatformMotion([P, [0.0, 0.0, -1.5]], R))
    with pytest.raises(InputError, match=r"guess: joint 'ball.*' is open by"):
        leg_motion(robot, PlatformMotion([0.0, 0.0, -1.5], R), guess=robot.start + 0.01)


def test_stretched_leg_is_rejected_as_singular(machines):
    _machine, robot = machines["planar_3rrr"]
    P, R = robot.home
    stretched = PlatformMotion(P - [0.64 - 0.38, 0.0, 0.0], R)
    for guess in (None, robot.tree_motion(PlatformMotion(P - [0.64 - 0.381, 0.0, 0.0], R)).q):
        with pytest.raises(InputError, match="a leg is at a singular pose: the platform does not determine motor1, elbow1"):
            leg_motion(robot, stretched, guess=guess)


def test_pose_with_singular_platform_jacobian_is_rejected(machines):
    """The determinant of the Jacobian changes sign where the six leg axes belong to one linear complex."""
    _machine, robot = machines["gough_stewart"]
    P, _R = robot.home

    def at(yaw):
        return PlatformMotion(P, pin.rpy.rpyToMatrix(0.0, 0.0, yaw))

    def sign(yaw):
        return np.sign(np.linalg.det(legs_of(robot, at(yaw)).Jp))

    low, high = 0.0, 2.0
    assert sign(low) != sign(high)
    with pytest.raises(InputError, match=r"singular at slide1 = .*: the active joints do not determine .*platform_pose\.rz"):
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if sign(middle) == sign(low) else (low, middle)


@pytest.mark.parametrize("name, forbidden", [("delta", 3), ("planar_3rrr", 2)])
def test_platform_motion_that_the_legs_do_not_allow_is_rejected(machines, name, forbidden):
    _machine, robot = machines[name]
    P, R = robot.home
    wrong = 0.1 * np.eye(6)[forbidden]
    for word in ("velocity", "acceleration", "jerk"):
        with pytest.raises(InputError, match=f"legs do not allow this {word} of the platform.*it would tear"):
            robot.torque_and_rate(motion=PlatformMotion(P, R, **{word: wrong}))
    turned = pin.rpy.rpyToMatrix(0.2, 0.0, 0.0)
    with pytest.raises(InputError, match="do not bring the platform"):
        robot.torque_and_rate(motion=PlatformMotion(P, turned))


def declared(**changes):
    machine = planar_3rrr()
    return machine._replace(loops={**machine.loops, **changes})


@pytest.mark.parametrize("machine, message", [
    (declared(active=["motor1", "motor2"]),
     r"2 active joints \(motor1, motor2\), but the loops leave 3 of .*: name 3 of motor1, elbow1"),
    (declared(active=[]), "active is empty"),
    (declared(active=["motor1", "motor2", "motor4"]), r"active\.2: joint 'motor4' does not exist; the joints are motor1"),
    (declared(start={"elbow1": 0.0, "motor9": 0.0}), "joint 'motor9' does not exist"),
    (declared(cut_joints={"pin": {"type": "revolute", "first": "lower1", "second": "plate"}}), "link 'plate' does not exist"),
    (planar_3rrr()._replace(home=((0.9, 0.0, 0.0), np.eye(3))), "do not reach the platform at the home pose: loop 'pin.' is"),
])
def test_invalid_platform_declarations_are_rejected(machine, message):
    with pytest.raises(ModelError, match=message):
        machine.robot()


def test_leg_without_cut_joint_is_rejected():
    loops = {name: cut for name, cut in planar_3rrr().loops["cut_joints"].items() if name != "pin3"}
    with pytest.raises(ModelError, match="joints motor3, elbow3 move no cut joint; every leg must be attached"):
        declared(cut_joints=loops).robot()


def test_platform_without_floating_joint_is_rejected():
    machine = planar_3rrr()
    for wrong, message in ((machine.urdf.replace('type="floating"', 'type="fixed"'), "must be the child of a floating joint"),
                           (machine.urdf.replace('"platform"', '"plate"'), "platform link 'platform' does not exist")):
        with pytest.raises(ModelError, match=message):
            load(wrong, machine.robot_file)


@pytest.mark.parametrize("motion, message", [
    (PlatformMotion([0.0, 0.0], np.eye(3)), r"position has shape \(2,\); \(3,\) or \(samples, 3\)"),
    (PlatformMotion([0.0, 0.0, np.inf], np.eye(3)), "position holds a number that is not finite"),
    (PlatformMotion("here", np.eye(3)), "position is not an array of numbers"),
    (PlatformMotion([0.0] * 3, 2.0 * np.eye(3)), "is not a rotation matrix"),
    (PlatformMotion([0.0] * 3, -np.eye(3)), "is not a rotation matrix"),
    (PlatformMotion(np.zeros((2, 3)), np.eye(3), velocity=np.zeros((3, 6))), r"different numbers of samples, \[2, 3\]"),
])
def test_invalid_platform_motions_are_rejected(machines, motion, message):
    with pytest.raises(InputError, match=message):
        machines["planar_3rrr"][1].torque_and_rate(motion=motion)


def test_forward_dynamics_of_a_massless_platform_is_rejected():
    machine = planar_3rrr()
    texts = (re.sub("<inertial>.*?</inertial>", "", text) for text in machine[:2])
    machine = machine._replace(**dict(zip(("legs", "platform"), texts, strict=True)))
    robot = machine.robot()
    with pytest.raises(InputError, match="moves no mass"):
        robot.forward_dynamics(tau=np.ones(3), motion=PlatformMotion(*robot.home))


def test_invalid_arguments_of_platform_dynamics_are_rejected(machines):
    _machine, robot = machines["planar_3rrr"]
    here = PlatformMotion(*robot.home)
    with pytest.raises(InputError, match="link 'hand' is not in robot 'planar_3rrr'; its links: base, upper1"):
        robot.torque_and_rate(motion=here, loads=Loads({"hand": np.zeros(6)}))
    with pytest.raises(InputError, match="different numbers of samples"):
        robot.forward_dynamics(tau=np.zeros((3, 3)), motion=PlatformMotion(np.zeros((2, 3)), np.eye(3)))
    with pytest.raises(InputError, match=r"tau has shape \(2,\)"):
        robot.forward_dynamics(tau=np.zeros(2), motion=here)
    with pytest.raises(InputError, match=r"tau is missing: a column for each of motor1, motor2, motor3"):
        robot.forward_dynamics(motion=here)


@pytest.mark.parametrize("make, message", [
    (lambda: gough_stewart(height=-1.0), "height = -1.0; sizes and masses must be above zero"),
    (lambda: delta(forearm=0.2), "forearm 0.2 m cannot span"),
    (lambda: planar_3rrr(link=0.1), "two links of 0.1 m cannot span"),
])
def test_impossible_dimensions_are_rejected(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_rotation_vectors_match_pinocchio():
    rng = np.random.default_rng(7)
    for size in (0.0, 1e-9, 1e-3, 1.0, 3.1, np.pi):
        axis = rng.normal(size=3)
        v = size * axis / np.linalg.norm(axis)
        R = pin.exp3(v)
        assert np.abs(platform_closure.turned_by(v) - R).max() < 1e-14
        assert np.abs(pin.exp3(platform_closure.rotation_vector(R)) - R).max() < (1e-7 if size == np.pi else 1e-14)


def test_stewart_example_does_no_net_work_over_a_swell_period(tmp_path):
    example = Path(__file__).resolve().parents[2] / "examples" / "stewart.py"
    numbers = runpy.run_path(str(example))["main"](tmp_path, small=True)
    assert (tmp_path / "stewart.png").stat().st_size > 20_000
    assert abs(numbers["work over the swell's period [J]"]) < 1e-6  # lossless and periodic
    assert numbers["largest difference of rate and quotient [N/s]"] < 0.1 * numbers["peak rate [N/s]"]


def test_delta_torques_at_10_g_are_plausible():
    robot = delta().robot()
    motion = PlatformMotion(*robot.home, acceleration=[98.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    assert 1.0 < np.abs(robot.inverse_dynamics(motion=motion)).max() < 100.0


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("seed", seeds(1))
def test_forces_of_a_table_on_crossed_slides_match_the_closed_form(seed, size):
    """Two legs of two slides each, welded to the table at its origin, without any lever arm: F = m (a - g)."""
    rng = np.random.default_rng(seed)
    E, at = np.linalg.qr(rng.normal(size=(3, 3)))[0], size * rng.uniform(-1.0, 1.0, 3)
    masses, parts = rng.uniform(0.5, 3.0, 5), ['<link name="base"/>']

    def link(name, mass):
        return (f'<link name="{name}"><inertial><origin xyz="{" ".join(map(str, size * rng.normal(size=3)))}"/>'
                f'<mass value="{mass}"/><inertia ixx="{size**2}" iyy="{size**2}" izz="{size**2}" ixy="0" ixz="0" iyz="0"/>'
                '</inertial></link>')

    for leg, (first, second) in (("a", (0, 1)), ("b", (1, 0))):
        for parent, child, k, origin in (("base", f"{leg}1", first, at), (f"{leg}1", f"{leg}2", second, np.zeros(3))):
            parts += [link(child, masses[["a1", "a2", "b1", "b2"].index(child)]),
                      f'<joint name="{child}" type="prismatic"><parent link="{parent}"/><child link="{child}"/>'
                      f'<origin xyz="{" ".join(map(str, origin))}"/><axis xyz="{" ".join(map(str, E[:, k]))}"/>'
                      '<limit lower="-9" upper="9" effort="1" velocity="1"/></joint>']
    texts = f'<robot name="legs">{"".join(parts)}</robot>', f'<robot name="table">{link("table", masses[4])}</robot>'
    dust = {"link": "table", "xyz": [2e-17 * size] * 3}  # as CAD systems write zeros
    loops = {f"weld_{leg}": {"type": "fixed", "first": f"{leg}2", "second": dust} for leg in "ab"}
    machine = Machine(*texts, {"active": ["a1", "b1"], "cut_joints": loops}, (at, np.eye(3)), "table").robot(backend="python")
    x, xd, xdd = size * rng.normal(size=(3, 2)) @ E[:, :2].T
    motion = PlatformMotion(at + x, np.eye(3), np.concatenate((xd, np.zeros(3))), np.concatenate((xdd, np.zeros(3))))
    a1, a2, b1, b2, m = masses
    push = np.array([a1 + a2 + b2 + m, b1 + b2 + a2 + m]) * (E[:, :2].T @ (xdd - machine.tree.gravity_vector))
    np.testing.assert_allclose(machine.inverse_dynamics(motion=motion), push, rtol=1e-9, atol=1e-9)


# --- arbitrary orientations ---------------------------------------------------------------------------------------


def turned_machine(R):
    """Return a Stewart platform rotated about its base origin by its home pose only; the URDF is not rotated."""
    machine = gough_stewart()
    root = machine.legs.replace('<link name="base"></link>', '<link name="world"></link>\n  <link name="base"></link>', 1)
    roll, pitch, yaw = pin.rpy.matrixToRpy(R)
    mount = (f'<joint name="mount" type="fixed"><parent link="world"/><child link="base"/>'
             f'<origin xyz="0 0 0" rpy="{roll} {pitch} {yaw}"/></joint>\n</robot>')
    P = R @ machine.home[0]
    file = {"version": 1, "loops": machine.loops,
            "platform": {"link": "platform", "home": {"xyz": P.tolist(), "rpy": [roll, pitch, yaw]}}}
    tilted = Machine(root.replace("</robot>", mount), machine.platform, machine.loops, ((0.0, 0.0, 0.0), np.eye(3)))
    return tilted.urdf, file


@pytest.mark.parametrize("angles", [(0.0, np.pi / 2, 0.0), (0.4, -np.pi / 2, 0.3), (0.0, 1.4, 1.0), (np.pi, 0.0, 0.0)])
def test_forces_are_invariant_under_rotation_of_platform_and_gravity(machines, angles):
    """Orientations with singular roll, pitch and yaw are included."""
    _machine, level = machines["gough_stewart"]
    Q = pin.rpy.rpyToMatrix(*angles)
    robot = rnea_ros.load(*turned_machine(Q), gravity=Q @ level.tree.gravity_vector)
    motion = polynomial("gough_stewart", level, 7)(0.0)
    turned = PlatformMotion(Q @ motion.position, Q @ motion.rotation,
                            *(np.concatenate((Q @ x[:3], Q @ x[3:])) for x in motion[2:]))
    assert deviation(robot.home[1], Q) < 1e-12
    expected = level.torque_and_rate(motion=motion)
    assert deviation(robot.torque_and_rate(motion=turned), expected) < 1e-10
    actuators = actuator_motion(level, motion)
    assert deviation(robot.torque_and_rate(*actuators), expected) < 1e-10
    for ours, theirs in zip(robot.platform_motion(*actuators), turned, strict=True):
        assert deviation(ours, theirs) < 1e-9
    home = robot.close(robot.close(actuators[0])[robot._columns])
    for ours, theirs in zip(robot.torque_and_rate(*actuators, guess=home), expected, strict=True):
        assert deviation(ours, theirs) < 1e-10


@pytest.mark.parametrize("pitch", [0.3, 0.9, 1.2, np.pi / 2, -np.pi / 2, 3.0])
def test_floating_joint_coordinates_reproduce_the_platform_motion(pitch):
    """Pose, twist, acceleration and jerk are converted in both directions at any pitch, and match differences."""
    rng = np.random.default_rng(3)
    origin = pin.rpy.rpyToMatrix(*rng.normal(size=3))
    platform = Platform("plate", (2, 0, 1, 5, 4, 6), 3, origin, rng.normal(size=3))
    a = rng.normal(size=(4, 2, 3))

    def motion(t):
        x = [a[0] + a[1] * t + a[2] * t**2 / 2 + a[3] * t**3 / 6, a[1] + a[2] * t + a[3] * t**2 / 2, a[2] + a[3] * t, a[3]]
        found = PlatformMotion.from_rpy([y[0] for y in x], [y[1] for y in x])
        turn = origin @ pin.rpy.rpyToMatrix(0.0, pitch, 0.0) @ motion_at_zero.T
        return PlatformMotion(turn @ found.position, turn @ found.rotation,
                              *(np.concatenate((turn @ y[:3], turn @ y[3:])) for y in found[2:]))

    motion_at_zero = pin.rpy.rpyToMatrix(*a[0, 1])
    now = motion(0.0)
    q = platform.coordinates(now.rotation, now.position, np.zeros(7))
    rates = np.zeros((3, 7))
    rates[:, list(platform.joints)] = platform.rates(q, *now[2:])
    for ours, theirs in zip(platform.motion(q, *rates), now, strict=True):
        assert deviation(ours, theirs) < 1e-12
    assert abs(q[platform.joints[4]]) <= 1.0

    def positions(t):
        return platform.coordinates(motion(t).rotation, motion(t).position, q)

    assert deviation(difference(positions, 1e-3), rates[0]) < 1e-8
