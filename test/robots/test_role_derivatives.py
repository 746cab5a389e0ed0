"""Sensitivities, joint wrenches and Coriolis matrix of combined robots against differences and Pinocchio."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import rnea_ros
from rnea_ros import BaseState, InputError, Loads, Robot, load
from rnea_ros.algorithms.closed_loops import HELD
from rnea_ros.robots.motion_solver import MotionSolver
from rnea_ros.robots.tree import TreeDynamics
from support.combined_machines import COMBINATIONS, case
from support.ground_machines import TripodOracle, tripod, vehicle
from support.oracles import deviation, difference
from support.robots import seeds

URDF = Path(__file__).resolve().parents[2] / "urdf"
SLOW = ("free base, two loops, spring, passive joint", "redundant motors, free base, loop",
        "elastic joint, free base, loop, spring")  # to compile
QUICK = ("given base, loop, spring", "given base, spring, passive joint", "loop, spring", "elastic joint, given base")


def assert_differences(robot, motion, state, of_rate):
    """Compare every table with differences along a random direction."""
    count = robot.order + of_rate
    tables = (robot.rate_sensitivities if of_rate else robot.sensitivities)(*motion[:count], **state)
    assert len(tables) == count
    for k, table in enumerate(tables):
        direction = np.random.default_rng(k).normal(size=robot.n)

        def along(t, k=k, direction=direction):
            moved = [x + t * direction * (i == k) for i, x in enumerate(motion[:count])]
            return robot.torque_and_rate(*moved, **state)[1] if of_rate else robot.inverse_dynamics(*moved, **state)

        assert deviation(table @ direction, difference(along, 1e-3)) < 1e-9


@pytest.mark.parametrize(("name", "seed"), [
    pytest.param(name, seed, marks=[pytest.mark.campaign] if name in SLOW else []) for name in COMBINATIONS
    for seed in seeds(1)])
def test_sensitivities_match_differences_of_torques(name, seed):
    robot, _, motion, state = case(name, seed)
    assert_differences(robot, motion, state, of_rate=False)


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.campaign)
                                  for name in COMBINATIONS])
def test_rate_sensitivities_match_differences_of_torque_rates(name):
    robot, _, motion, state = case(name, 0)
    assert_differences(robot, motion, state, of_rate=True)


def test_sensitivities_with_wheels_and_feet_match_differences():
    urdf, file = vehicle()
    robot = rnea_ros.load(urdf, file)
    motion = 0.5 * np.random.default_rng(0).normal(size=(4, robot.n))
    assert_differences(robot, motion, {"base": BaseState()}, of_rate=True)
    urdf, file, pose = tripod()
    truth, robot = TripodOracle(urdf, file, pose), rnea_ros.load(urdf, file)
    base, q, _, _ = truth.sample()
    still = np.zeros(robot.n)
    motion = [q[[truth.names.index(name) for name in robot.joint_names]], still, still]
    assert_differences(robot, motion, {"base": base}, of_rate=False)


def test_sensitivities_of_many_samples_include_external_wrenches():
    robot, _, motion, state = case("loop, spring", 0)
    rng = np.random.default_rng(4)
    loads = Loads(*({"l7": rng.normal(size=6)} for _ in range(3)))
    assert_differences(robot, motion, {**state, "loads": loads}, of_rate=True)
    many = np.stack((motion, motion + 0.01), axis=1)
    tables = robot.rate_sensitivities(*many, **state, loads=loads)
    for table, alone in zip(tables, robot.rate_sensitivities(*many[:, 1], **state, loads=loads), strict=True):
        assert table.shape == (2, robot.n, robot.n)
        assert deviation(table[1], alone) < 1e-9


@pytest.mark.parametrize("name", ["given base, loop, spring", "elastic joint, given base"])
def test_rate_sensitivities_without_the_compiled_program_are_equal(name, monkeypatch):
    robot, _, motion, state = case(name, 1)
    compiled = robot.rate_sensitivities(*motion, **state)
    monkeypatch.setattr(MotionSolver, "program", lambda *given, **options: None)
    for table, other in zip(compiled, robot.rate_sensitivities(*motion, **state), strict=True):
        assert deviation(table, other) < 1e-10


@pytest.mark.parametrize(("robot_file", "urdf"), [("palletiser.robot.yaml", "palletiser.urdf"),
                                                  ("hua_arm.robot.yaml", "hua_arm.urdf")])
def test_sensitivities_of_loaded_and_constructed_robots_are_equal(robot_file, urdf):
    old = rnea_ros.load(URDF / urdf, URDF / robot_file)
    robot = Robot(TreeDynamics.from_urdf(URDF / urdf), URDF / robot_file)
    motion = 0.2 * np.random.default_rng(0).normal(size=(old.order + 1, old.n))
    starts = dict(zip(robot.tree.joint_names, robot.start, strict=True))
    motion[0] += [starts[name] for name in old.joint_names]
    columns = np.array([old.joint_names.index(name) for name in robot.joint_names])
    theirs = *old.sensitivities(*motion[:-1]), *old.rate_sensitivities(*motion)
    ours = *robot.sensitivities(*motion[:-1, columns]), *robot.rate_sensitivities(*motion[:, columns])
    for table, expected in zip(ours, theirs, strict=True):
        assert deviation(table, expected[np.ix_(columns, columns)]) < 1e-10


# ---------------------------------------------------------------------- joint wrenches


def by_pinocchio(robot, truth, found) -> np.ndarray:
    """Return Pinocchio's joint wrenches with the multipliers of cut joints as forces on the links, (joints, 6)."""
    body, model = truth.body, truth.body.model
    q, v, a, _ = truth.equations(0.0, truth.X0)
    data = body.state(q, v)
    pushed = [pin.Force.Zero() for _ in range(model.njoints)]
    for (name, cut), (kind, *frames) in zip(truth.machine.cuts.items(), truth.cuts, strict=True):
        first, second = (data.oMf[frame] for frame in frames)
        force = np.zeros(3)
        force[list(HELD[kind])] = [found.multipliers[f"{name}[{k}]"][0] for k in HELD[kind]]
        force = first.rotation @ force
        for end, sign in (("first", -1.0), ("second", 1.0)):
            joint = model.frames[model.getFrameId(cut[end]["link"])].parentJoint
            pushed[joint] += data.oMi[joint].actInv(pin.Force(sign * force, np.cross(second.translation, sign * force)))
    data = model.createData()
    pin.rnea(model, data, q, v, a, pushed)
    return np.array([data.f[model.getJointId(joint)].vector for joint in robot.tree.joint_names])


@pytest.mark.parametrize("name", ["free base, loop, springs", "given base, loop, spring", "loop, spring", "passive joint"])
def test_joint_wrenches_match_pinocchio(name):
    robot, truth, motion, state = case(name, 0)
    found = robot.joint_wrenches(*motion[:3], **state)
    rows = [found.joints.index(joint) for joint in robot.tree.joint_names]
    assert found.rate is None
    assert deviation(found.wrench[rows], by_pinocchio(robot, truth, robot.solve(*motion, **state))) < 1e-10


@pytest.mark.parametrize("name", ["free base, loop, springs", "given base, spring, passive joint", "loop, spring"])
def test_joint_wrench_rates_match_differences_along_the_motion(name):
    robot, truth, motion, state = case(name, 0)
    solved = robot.solve(*motion, **state)
    motion = np.array([[solved.positions[joint][k] for joint in robot.joint_names] for k in range(4)])
    found = robot.joint_wrenches(*motion, **state)

    def at(t):
        there = dict(state)
        if "base" in state:
            base, given = state["base"], truth.machine.base == "prescribed"
            step = base.vector_rate(base.classical(solved.base[1]))
            rates = np.array([solved.base[1] + t * solved.base[2]]) if given else None
            there["base"] = BaseState.from_vector(base.vector() + t * step).with_motion(rates=rates)
        return robot.joint_wrenches(*(motion[k] + t * motion[k + 1] for k in range(3)), **there).wrench

    assert deviation(found.rate, difference(at, 1e-3)) < 1e-8


def test_wheel_joint_wrenches_contain_drive_torque_and_ground_force():
    urdf, file = vehicle()
    robot = rnea_ros.load(urdf, file)
    motion = 0.4 * np.random.default_rng(1).normal(size=(4, robot.n))
    found, tau = robot.joint_wrenches(*motion, base=BaseState()), robot.torque_and_rate(*motion, base=BaseState())
    rows = [found.joints.index(name) for name in ("left", "right")]
    columns = [robot.joint_names.index(name) for name in ("left", "right")]
    assert deviation(found.wrench[rows, 4], tau[0][columns]) < 1e-11  # the axis is y
    assert deviation(found.rate[rows, 4], tau[1][columns]) < 1e-11
    still = robot.joint_wrenches(*np.zeros((3, robot.n)), base=BaseState())
    weight = robot.tree.model.links[robot.tree.model.frames["left_wheel"].link].m * 9.81
    normal = robot.solve(*np.zeros((4, robot.n)), base=BaseState()).multipliers["left[normal]"][0]
    assert still.wrench[still.joints.index("left"), 2] == pytest.approx(weight - normal, rel=1e-11)


def test_joint_wrenches_of_over_constrained_loops_are_rejected():
    robot = Robot(TreeDynamics.from_urdf(URDF / "five_bar.urdf"), URDF / "five_bar.robot.yaml")
    q = [dict(zip(robot.tree.joint_names, robot.start, strict=True))[name] for name in robot.joint_names]
    with pytest.raises(InputError, match=r"hold more than the motion needs .*point_on_axis instead of revolute"):
        robot.joint_wrenches(q, np.zeros(2), np.zeros(2))


# ---------------------------------------------------------------------- Coriolis matrix


@pytest.mark.parametrize("name", ["free base, loop, springs", "given base, spring, passive joint", "elastic joint, given base",
                                  "loop, spring"])
def test_coriolis_matrix_gives_velocity_efforts_and_is_passive(name):
    """C v = bias - bias at rest - damping; M' - 2 C is skew-symmetric, with M' by differences."""
    robot, _, motion, state = case(name, 0)
    q, qd = motion[:2]
    base, near = state.get("base"), {"guess": state["guess"]}
    moving, still = ({"base": base}, {"base": BaseState(base.position, base.quaternion)}) if base else ({}, {})
    v = np.concatenate((base.velocity if base else [], qd, qd[[robot.joint_names.index(k) for k in robot.elastic_joints]]))
    C = robot.coriolis(q, qd, **moving, **near)
    # bias includes M times the rate of the base-frame velocity components at zero acceleration
    turning = np.concatenate((base.classical(np.zeros(6)), np.zeros(len(v) - 6))) if base else np.zeros(len(v))
    rest = robot.bias(q, qd * 0.0, **still, **near)
    bias = robot.bias(q, qd, **moving, **near) + robot.mass_matrix(q, **moving, **near) @ turning
    for spring in robot.roles.springs:
        row = robot.independent.index(robot.tree.joint_names[spring.coordinate])
        bias[row] -= spring.damping * v[row]
    assert deviation(C @ v, bias - rest) < 1e-11

    def mass(t):
        there = {"base": BaseState.from_vector(base.vector() + t * base.vector_rate(np.zeros(6)))} if base else {}
        return robot.mass_matrix(q + t * qd, **there, **near)

    skew = difference(mass, 1e-3) - 2.0 * C
    assert deviation(skew, -skew.T) < 1e-9


def test_coriolis_matrix_of_a_loop_equals_the_projected_tree():
    robot = load(URDF / "palletiser.urdf", URDF / "palletiser.robot.yaml")
    q = robot.start[[robot.tree.joint_names.index(name) for name in robot.joint_names]]
    qd = np.random.default_rng(0).normal(size=robot.n)
    motion = robot.motion(q, qd, *np.zeros((2, robot.n)))
    M, C = robot.tree.mass_matrix(motion.q), robot.tree.coriolis(motion.q, motion.qd)
    assert deviation(robot.coriolis(q, qd), motion.G.T @ (C @ motion.G + M @ motion.Gd)) < 1e-11
