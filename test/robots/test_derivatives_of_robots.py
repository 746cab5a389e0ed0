"""Sensitivities and joint wrenches of every kind of robot against differences, Pinocchio, and other cuts of the same loop."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("pinocchio")

import pinocchio as pin

from rnea_ros import BaseState, InputError, Loads, load
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.sim.machines import gough_stewart
from support import free_flyer
from support.machines import LoopOracle, Mechanism, as_closed_loop, polygon, random_body, start_of_pivots
from support.oracles import deviation, difference, worst
from support.parallel_machines import planar_3rrr
from support.robot_kinds import BASE, after, base_acceleration, case, each_kind, loads_on, motion_of, steady, whole_motion
from support.robots import seeds


def steady_loads(one):
    return steady(loads_on(one))


# ------------------------------------------------------------------ sensitivities


@pytest.mark.parametrize("of_rate", [False, True], ids=["torque", "rate"])
@each_kind
def test_sensitivities_match_differences_of_torque_and_rate(kind, of_rate):
    """Derivatives with respect to each derivative of each coordinate, with wrenches in link and world frames."""
    one, motion = case(kind), motion_of(case(kind), 5)
    robot, count = one.robot, one.robot.order + of_rate
    loads = loads_on(one) if of_rate else steady_loads(one)
    tables = (robot.rate_sensitivities if of_rate else robot.sensitivities)(*motion[:count], **one.state, loads=loads)
    assert len(tables) == count and all(table.shape == (robot.n, robot.n) for table in tables)
    for k, table in enumerate(tables):
        for j, unit in enumerate(np.eye(robot.n)):
            def torque(t, k=k, unit=unit):
                moved = [x + t * unit if i == k else x for i, x in enumerate(motion[:count])]
                if of_rate:
                    return robot.torque_and_rate(*moved, **one.state, loads=loads)[1]
                return robot.inverse_dynamics(*moved, **one.state, loads=loads)
            assert deviation(table[:, j], difference(torque, 1e-3)) < 1e-9


@each_kind
def test_vectorized_sensitivities_equal_single_samples(kind):
    """Motions, loads or both contain several samples."""
    one, motion = case(kind), motion_of(case(kind), 6)
    robot, loads = one.robot, loads_on(one)
    pushed = Loads(*({link: np.stack((six, 2.0 * six)) for link, six in given.items()} for given in loads.by_kind()))
    many = [np.stack((x, x + 0.02)) for x in motion]
    for moving, pushing in ((many, loads), (motion, pushed), (many, pushed)):
        tables = robot.rate_sensitivities(*moving, **one.state, loads=pushing)
        for k in range(2):
            row = [x[k] if x.ndim == 2 else x for x in moving]
            for table, single in zip(tables, robot.rate_sensitivities(*row, **one.state, loads=pushing.at(k)), strict=True):
                assert table.shape == (2, robot.n, robot.n) and deviation(table[k], single) < 1e-8
    for table, single in zip(robot.sensitivities(*many[:robot.order], **one.state),
                             robot.sensitivities(*(x[1] for x in many[:robot.order]), **one.state), strict=True):
        assert deviation(table[1], single) < 1e-8


@pytest.mark.parametrize("name", [0, 3, 7, "solo12"])
def test_sensitivities_of_a_free_base_match_pinocchio(name):
    """d tau = d ID_joints - M_jb M_bb^-1 d ID_base, because the base accelerates."""
    robot, oracle = free_flyer.robot(name), free_flyer.oracle(name)
    base, q, qd, qdd, _ = free_flyer.state(name)
    acceleration = robot.solve(q, qd, qdd, stages=1, base=base).base_acceleration
    a = oracle.fold @ np.concatenate((base.spatial(acceleration), qdd))
    at, v = oracle.configuration(base, q), oracle.velocity(base, qd)
    by_q, by_v, M = pin.computeRNEADerivatives(oracle.model, oracle.data, at, v, a)
    M = np.triu(M) + np.triu(M, 1).T
    for ours, full in zip(robot.sensitivities(q, qd, qdd, base=base), (by_q, by_v, M), strict=True):
        table = (oracle.fold.T @ full @ oracle.fold)[:, 6:]
        A = oracle.mass_matrix(base, q)
        expected = table[6:] - A[6:, :6] @ np.linalg.solve(A[:6, :6], table[:6])
        assert worst(ours / max(1.0, np.abs(expected).max()), expected / max(1.0, np.abs(expected).max())) < 1e-9


def test_acceleration_sensitivity_equals_the_effective_mass_matrix():
    """The effective mass matrix of a free base is a Schur complement."""
    for kind in ("Robot", "loops", "platform"):
        one, motion = case(kind), motion_of(case(kind), 7)
        assert deviation(one.robot.sensitivities(*motion[:3])[-1], one.robot.mass_matrix(motion[0])) < 1e-9
    one, (q, qd, qdd, _) = case("moving base"), motion_of(case("moving base"), 7)
    A = one.robot.mass_matrix(q)
    left = A[6:, 6:] - A[6:, :6] @ np.linalg.solve(A[:6, :6], A[:6, 6:])
    assert deviation(one.robot.sensitivities(q, qd, qdd, base=BASE)[-1], left) < 1e-10


@pytest.mark.parametrize("name", [0, 3, 7])
def test_rate_sensitivities_of_a_free_base_match_differences(name):
    robot, (base, *motion) = free_flyer.robot(name), free_flyer.state(name)
    direction = np.random.default_rng(9).normal(size=robot.n)
    for k, table in enumerate(robot.rate_sensitivities(*motion, base=base)):
        def rate(t, k=k):
            return robot.torque_and_rate(*(x + t * direction * (i == k) for i, x in enumerate(motion)), base=base)[1]
        assert deviation(table @ direction, difference(rate, 1e-3)) < 1e-9


def loop_of_seven(seed):
    """Return a spatial loop of seven revolute joints: one degree of freedom, no redundant equation."""
    rng, machine = np.random.default_rng(seed), Mechanism()
    corners = np.array([[np.cos(a), np.sin(a), 0.3 * np.sin(3 * a)] for a in 2 * np.pi * np.arange(7) / 7])
    names = ["base", *(f"b{k}" for k in range(1, 7)), "base"]
    for k in range(6):
        machine.bodies[f"b{k + 1}"] = random_body(rng, 0.5 * (corners[k] + corners[k + 1]))
    for k in range(7):
        axis = rng.normal(size=3)
        machine.joints[f"j{k + 1}"] = (names[k], names[k + 1], "revolute", corners[k], axis / np.linalg.norm(axis))
    return machine


def pentagon(seed):
    """Return a planar loop of five links with redundant constraint equations."""
    angles = 2.0 * np.pi * (np.arange(5) + 0.4 * np.random.default_rng(seed).uniform(-1.0, 1.0, 5)) / 5.0
    return polygon([(0.5 * np.cos(a), 0.5 * np.sin(a)) for a in angles])


LOOPS = {f"{name}{seed}": (machine(seed), cut, active) for seed in seeds(1) for name, machine, cut, active in (
    ("pentagon", pentagon, "j3", ["j1", "j5"]), ("seven", loop_of_seven, "j5", ["j1"]))}


@pytest.mark.parametrize("name", LOOPS)
def test_sensitivities_of_random_loops_match_differences_of_pinocchio(name):
    """Torque: differences of Pinocchio's torques with multipliers of the cut joints. Rate: differences of our rates."""
    machine, cut, active = LOOPS[name]
    urdf, loops = machine.cut_at(cut, active=active)
    robot, rng = load(urdf, loops), np.random.default_rng(1)
    oracle = LoopOracle(urdf, loops, robot.tree.joint_names)
    motion = 0.05 * rng.normal(size=robot.n), *rng.normal(size=(3, robot.n))
    direction, still = rng.normal(size=robot.n), np.zeros(robot.n)

    def by_multipliers(q, qd, qdd):
        tree = robot.motion(q, qd, still, still)
        return oracle.inverse(tree.q, tree.qd, qdd)[0]

    def rates(*motion):
        return robot.torque_and_rate(*motion)[1]

    for tables, torque in ((robot.sensitivities(*motion[:3]), by_multipliers), (robot.rate_sensitivities(*motion), rates)):
        for k, table in enumerate(tables):
            def along(t, k=k, torque=torque, count=len(tables)):
                return torque(*(x + t * direction * (i == k) for i, x in enumerate(motion[:count])))
            assert deviation(table @ direction, difference(along, 1e-3)) < 1e-8


@pytest.mark.campaign
def test_sensitivities_of_a_hexapod_match_differences():
    """The platform has six degrees of freedom; sensitivities from platform and from actuator motion are equal."""
    robot = gough_stewart().robot(gravity=(1.0, -4.0, -9.0))
    rng = np.random.default_rng(3)
    q, qd, qdd = 0.05 * rng.normal(size=6), 0.3 * rng.normal(size=6), rng.normal(size=6)
    loads = Loads({"platform": rng.normal(size=6)}, world_wrenches={"platform": rng.normal(size=6)})
    tables = robot.sensitivities(q, qd, qdd, loads=loads)
    for k, table in enumerate(tables):
        def torque(t, k=k):
            moved = [x + t * np.arange(1.0, 7.0) * (i == k) for i, x in enumerate((q, qd, qdd))]
            return robot.inverse_dynamics(*moved, loads=loads)
        assert deviation(table @ np.arange(1.0, 7.0), difference(torque, 1e-3)) < 1e-8
    motion, turn = (q, qd, qdd, rng.normal(size=6)), 0.1 * np.arange(1.0, 7.0)
    for k, table in enumerate(robot.rate_sensitivities(*motion, loads=loads)):
        def rate(t, k=k):
            return robot.torque_and_rate(*(x + t * turn * (i == k) for i, x in enumerate(motion)), loads=loads)[1]
        assert deviation(table @ turn, difference(rate, 1e-3)) < 1e-8
    motion = robot.platform_motion(q, qd, qdd, np.zeros(6))
    for ours, same in zip(robot.sensitivities(motion=motion, loads=loads), tables, strict=True):
        assert deviation(ours, same) < 1e-9


# ------------------------------------------------------------------ joint wrenches


@each_kind
def test_joint_wrench_rates_match_differences(kind):
    one, motion, loads = case(kind), motion_of(case(kind), 8), loads_on(case(kind))
    robot, order = one.robot, one.robot.order
    if one.over_held:
        with pytest.raises(InputError, match="more than the motion needs"):
            robot.joint_wrenches(*motion[:3], **one.state)
        return
    motion = whole_motion(one, *motion, loads=loads)
    found = robot.joint_wrenches(*motion[:order + 1], **one.state, loads=loads)
    alone = robot.joint_wrenches(*motion[:order], **one.state, loads=steady(loads) if order == 3 else loads)
    assert alone.rate is None and deviation(alone.wrench, found.wrench) < 1e-10
    assert len(found.joints) == len(found.wrench) == len(found.rate) and found.wrench.shape[1] == 6
    if one.first:
        acceleration = base_acceleration(one, *motion, loads=steady_loads(one))
        spatial = BASE.spatial(acceleration)

    def at(t):
        moved = [sum(x * t**j / np.prod(range(1, j + 1)) for j, x in enumerate(motion[k:])) for k in range(len(motion))]
        state, pushed = dict(one.state), after(loads, t)
        if one.first:
            base = BaseState.from_vector(BASE.vector() + t * BASE.vector_rate(acceleration))
            state = {"base": BaseState(base.position, base.quaternion, BASE.velocity + t * spatial)}
        return robot.joint_wrenches(*moved[:order], **state, loads=steady(pushed) if order == 3 else pushed).wrench

    assert deviation(difference(at), found.rate) < 2e-6


def test_joint_wrench_component_along_the_axis_equals_the_torque():
    """The component is the spring torque at an elastic joint and the link-side load beside a link-mounted motor."""
    for kind in ("Robot", "moving base"):
        one, motion = case(kind), motion_of(case(kind), 9)
        found = one.robot.joint_wrenches(*motion[:3], **one.state, loads=steady_loads(one))
        tau = one.robot.inverse_dynamics(*motion[:3], **one.state, loads=steady_loads(one))
        assert deviation([found.wrench[0, 5], found.wrench[1, 4], found.wrench[2, 0]], tau) < 1e-10  # axes z, y, x
    one = case("elastic joints")
    motion = motion_of(one, 9)
    found = one.robot.joint_wrenches(*motion[:5], loads=steady_loads(one))
    load = one.robot.motor_motion(*motion[:5], loads=steady_loads(one)).load
    assert deviation([found.wrench[0, 5], found.wrench[1, 4], found.wrench[2, 0]], load) < 1e-10


@pytest.mark.parametrize("seed", seeds(1))
def test_joint_wrenches_do_not_depend_on_the_cut_joint(seed):
    machine, rng = loop_of_seven(seed), np.random.default_rng(seed)
    q, qd, qdd, qddd = np.zeros(1), *rng.normal(size=(3, 1)) * [[0.4], [1.0], [2.0]]
    loads = Loads({"b3": rng.normal(size=6)}, {"b3": rng.normal(size=6)}, {"b2": rng.normal(size=6)})
    found = {}
    for cut in ("j7", "j4", "j5"):
        robot = load(*machine.cut_at(cut, active=["j1"]), backend="python", gravity=(1.0, -2.0, -9.0))
        found[cut] = robot.joint_wrenches(q, qd, qdd, qddd, loads=loads)
        assert deviation(robot.torque_and_rate(q, qd, qdd, qddd, loads=loads)[0][0], axis_part(machine, found[cut])) < 1e-9
    for cut in ("j4", "j5"):  # b1 and b2 are connected to the base by the same joints for all these cuts
        for joint in ("j1", "j2", "j3"):
            for part in ("wrench", "rate"):
                ours, same = (getattr(found[c], part)[found[c].joints.index(joint)] for c in (cut, "j7"))
                assert deviation(ours, same) < 1e-7, (cut, joint, part)


def axis_part(machine, found):
    axis = np.asarray(machine.joints["j1"][4])
    return axis @ found.wrench[found.joints.index("j1"), 3:]  # link and base axes coincide at zero


def test_joint_wrenches_of_a_hexapod_equal_those_of_its_closed_loop_model():
    machine = gough_stewart()
    robot = machine.robot(gravity=(1.0, -4.0, -9.0), backend="python")
    urdf, loops = as_closed_loop(machine, "ball1", "spherical")
    loops["loops"]["start"] = start_of_pivots(machine, "ball1", "spherical")
    closed = load(urdf, loops,
                                       gravity=robot.tree.gravity_vector, backend="python")
    rng = np.random.default_rng(4)
    motion = 0.03 * rng.normal(size=6), 0.2 * rng.normal(size=6), rng.normal(size=6), rng.normal(size=6)
    loads = Loads({"platform": rng.normal(size=6)}, world_wrenches={"rod3": rng.normal(size=6)})
    ours, theirs = robot.joint_wrenches(*motion, loads=loads), closed.joint_wrenches(*motion, loads=loads)
    both = [joint for joint in ours.joints if joint in theirs.joints]
    assert len(both) == 18
    mine, rows = ([found.joints.index(joint) for joint in both] for found in (ours, theirs))
    assert deviation(ours.wrench[mine], theirs.wrench[rows]) < 1e-8
    assert deviation(ours.rate[mine], theirs.rate[rows]) < 1e-8
    platform = robot.platform_motion(*motion)
    assert deviation(robot.joint_wrenches(motion=platform, loads=loads).wrench, ours.wrench) < 1e-8
    many = robot.joint_wrenches(*(np.stack((x, x)) for x in motion), loads=loads)
    assert deviation(many.rate[1], ours.rate) < 1e-8


def test_joint_wrenches_of_an_over_constrained_robot_are_rejected():
    robot = planar_3rrr().robot(backend="python")
    with pytest.raises(InputError, match=r"more than the motion needs.*pin.*point_on_axis instead of revolute"):
        robot.joint_wrenches(motion=PlatformMotion(*robot.home))
