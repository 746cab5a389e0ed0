"""Compiled program of a robot against the solver stages of solution.py, for every combination; unreliable results."""

from __future__ import annotations

import pickle
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml
from test_general_robot import COMBINATIONS, case, off

import rnea_ros
from rnea_ros import BaseState, Loads, MotorState, Robot
from rnea_ros.algorithms.closed_loops import active_torque
from rnea_ros.algorithms.elimination import Elimination, EliminationBlock, plan, triangular_blocks
from rnea_ros.algorithms.equations import EquationsOfMotion
from rnea_ros.errors import PoseError
from rnea_ros.robots.motion_solver import MotionSolver
from rnea_ros.robots.solution import Solver
from rnea_ros.robots.state_functions import StateFunctions
from rnea_ros.robots.tree import TreeDynamics
from support.ground_machines import tripod, vehicle

URDF = Path(__file__).resolve().parents[2] / "urdf"
LOADS = ((3.0, -2.0, 1.0, 0.5, -0.4, 0.3), (1.0, 2.0, -1.0, 0.2, 0.1, -0.3), (-2.0, 1.0, 4.0, 0.3, 0.2, -0.1))


def disable_program(monkeypatch):
    """Disable the compiled program: all results come from the solver stages."""
    monkeypatch.setattr(MotionSolver, "program", lambda *_: None)


def counted(monkeypatch) -> list[str]:
    """Return a list that grows by one with every sample solved by the stages of solution.py."""
    solved, solve = [], Solver.solve

    def noted(self, *arguments):
        solved.append(self)
        return solve(self, *arguments)

    monkeypatch.setattr(Solver, "solve", noted)
    return solved


def fresh(robot: Robot) -> Robot:
    """Return the robot without compiled programs."""
    return pickle.loads(pickle.dumps(robot))


@pytest.mark.parametrize("name", COMBINATIONS)
def test_compiled_program_equals_the_solver_stages(name, monkeypatch):
    robot, _, motion, state = case(name, 0)
    solved = counted(monkeypatch)
    tau, rate = robot.torque_and_rate(*motion, **state)
    alone = robot.inverse_dynamics(*motion[:robot.order], **state)
    found = robot.solve(*motion, **state)
    assert not solved, "the program serves all of this"
    disable_program(monkeypatch)
    robot = fresh(robot)
    by_stages = robot.solve(*motion, **state)
    expected, expected_rate = by_stages.torques
    assert solved
    assert off(tau, expected) < 1e-12
    assert off(alone, expected) < 1e-12
    assert off(rate, expected_rate) < 1e-10
    assert found.positions.keys() == by_stages.positions.keys()
    for joint, values in by_stages.positions.items():
        np.testing.assert_allclose(found.positions[joint], values, rtol=1e-9, atol=1e-9)
    for constraint, values in by_stages.multipliers.items():
        size = max(np.abs(every).max() for every in by_stages.multipliers.values())
        np.testing.assert_allclose(found.multipliers[constraint], values, atol=1e-10 * size)
    np.testing.assert_allclose(found.base, by_stages.base, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["free base, two loops, spring, passive joint", "given base, spring, passive joint",
                                  "redundant motors, free base, loop", "elastic joint, loop"])
def test_gravity_and_rate_of_the_program_equal_the_solver_stages(name, monkeypatch):
    robot, _, motion, state = case(name, 0)
    there = {key: value for key, value in state.items() if key in ("base", "guess")}
    monkeypatch.setattr(StateFunctions, "each", None)
    found = robot.gravity_and_rate(motion[0], motion[1], **there)
    monkeypatch.undo()
    monkeypatch.setattr(MotionSolver, "program_of", lambda *_: None)
    for ours, theirs in zip(found, robot.gravity_and_rate(motion[0], motion[1], **there), strict=True):
        assert off(ours, theirs) < 1e-12


@pytest.mark.parametrize("name", ["free base, loop, springs", "given base, loop, spring", "elastic joint, loop"])
def test_compiled_program_handles_wrenches_and_their_rates(name, monkeypatch):
    robot, _, motion, state = case(name, 0)
    wrench, wrench_rate, push = map(np.array, LOADS)
    loads = Loads({"l3": wrench, "l5": push}, {"l3": wrench_rate}, {"l4": push})
    plain = robot.torque_and_rate(*motion, **state)
    solved = counted(monkeypatch)
    found = robot.torque_and_rate(*motion, **state, loads=loads)
    again = robot.torque_and_rate(*motion, **state, loads=loads)
    assert not solved
    disable_program(monkeypatch)
    expected = fresh(robot).torque_and_rate(*motion, **state, loads=loads)
    for ours, same, theirs, without in zip(found, again, expected, plain, strict=True):
        assert off(ours, theirs) < 1e-10
        assert (ours == same).all()
        assert off(ours, without) > 1e-3


def test_compiled_program_handles_a_prescribed_base_acceleration(monkeypatch):
    robot, _, motion, state = case("free base, loop, springs", 0)
    moved = state["base"].with_motion([0.3, -0.2, 0.5, 0.1, 0.4, -0.3], [1.0, 0.5, -0.7, 0.2, -0.6, 0.4])
    state = {**state, "base": moved}  # cases are shared with other tests
    solved = counted(monkeypatch)
    found = robot.torque_and_rate(*motion, **state)
    assert not solved
    disable_program(monkeypatch)
    expected = fresh(robot).torque_and_rate(*motion, **state)
    for ours, theirs in zip(found, expected, strict=True):
        assert off(ours, theirs) < 1e-11


def test_compiled_program_handles_measured_motors(monkeypatch):
    robot, _, motion, state = case("elastic joint, loop", 0)
    found = robot.solve(*motion, **state)
    motors = MotorState(*([found.positions[f"motor of {joint}"][k] for joint in robot.elastic_joints] for k in range(4)))
    solved = counted(monkeypatch)
    measured = robot.solve(*motion[:4], **state, motors=motors)
    assert not solved
    for ours, theirs in zip(measured.torques, found.torques, strict=True):
        assert off(ours, theirs) < 1e-9


@pytest.mark.parametrize("stands", [False, True], ids=["wheels", "feet"])
def test_compiled_program_handles_wheels_and_feet(stands, monkeypatch):
    urdf, file, pose = tripod() if stands else (*vehicle(), {})
    robot, rng = rnea_ros.load(urdf, file), np.random.default_rng(0)
    motion = 0.3 * rng.normal(size=(4, robot.n))
    state = {"base": BaseState((0.1, -0.2, 0.4), (0.0, 0.0, 0.6, 0.8))}
    if stands:
        motion[0] = [pose[name] for name in robot.joint_names]
        state = {"base": BaseState(velocity=(0.1, -0.2, 0.3, 0.2, 0.1, -0.3), acceleration=rng.normal(size=6),
                                   jerk=rng.normal(size=6))}
    solved = counted(monkeypatch)
    found = robot.torque_and_rate(*motion, **state)
    assert not solved
    disable_program(monkeypatch)
    for ours, theirs in zip(found, fresh(robot).torque_and_rate(*motion, **state), strict=True):
        assert off(ours, theirs) < 1e-11


@cache
def palletiser() -> Robot:
    return Robot(TreeDynamics.from_urdf(URDF / "palletiser.urdf"), URDF / "palletiser.robot.yaml")


def motion_of(robot: Robot, samples: int, size: float = 0.2) -> np.ndarray:
    """Return a smooth motion about the start, (4, samples, n)."""
    start = dict(zip(robot.tree.joint_names, robot.start, strict=True))
    t, w = 0.004 * np.arange(samples)[:, None], 1.0 + 0.2 * np.arange(robot.n)
    found = np.array([size * w**k * np.sin(w * t + 0.5 * np.pi * k) for k in range(4)])
    found[0] += [start[name] for name in robot.joint_names]
    return found


def test_vectorized_program_equals_consecutive_single_samples(monkeypatch):
    robot = palletiser()
    motion, solved = motion_of(robot, 300), counted(monkeypatch)
    tau, rate = robot.torque_and_rate(*motion)
    assert not solved
    poses = robot.close(motion[0])
    for k in (0, 1, 150, 299):
        alone = robot.torque_and_rate(*motion[:, k], guess=poses[max(0, k - 1)])
        assert off(tau[k], alone[0]) < 1e-12
        assert off(rate[k], alone[1]) < 1e-11


def test_vectorized_gravity_and_rate_equal_single_samples():
    robot = palletiser()
    motion = motion_of(robot, 50)
    motion[0, 30:] += 0.35
    found = robot.dynamics(*motion)
    poses = robot.close(motion[0])
    for k in (0, 29, 30, 49):
        alone = robot.gravity_and_rate(motion[0, k], motion[1, k], guess=poses[k])
        assert off(found.gravity[k], alone[0]) < 1e-12
        assert off(found.gravity_rate[k], alone[1]) < 1e-11


def test_large_step_between_samples_is_subdivided_by_the_program(monkeypatch):
    robot = palletiser()
    motion, solved = motion_of(robot, 60), counted(monkeypatch)
    motion[0, 30:] += 0.35  # exceeds the trust radius of Newton's first step
    tau, rate = robot.torque_and_rate(*motion)
    assert not solved
    closed = robot.motion(*motion)
    expected = active_torque(closed.G, closed.Gd, *robot.tree.torque_and_rate(*closed[:4]))  # of the tree, by virtual work
    assert off(tau, expected[0]) < 1e-12
    assert off(rate, expected[1]) < 1e-10


def test_unreachable_sample_is_rejected_with_its_number():
    robot = palletiser()
    motion = motion_of(robot, 40)
    motion[0, 25:] += 3.0
    with pytest.raises(rnea_ros.InputError, match="sample 25: no way to joint1 ="):
        robot.torque_and_rate(*motion)


def test_program_rejects_singular_poses_like_the_solver_stages(monkeypatch):
    """The elbows of the five-bar are stretched, so that the pivots of the program are unreliable."""
    file = yaml.safe_load((URDF / "five_bar.robot.yaml").read_text())
    robot = Robot(TreeDynamics.from_urdf(URDF / "five_bar.urdf"), file)
    far = motion_of(robot, 1)[:, 0]
    messages = []
    for k in range(2):
        if k:
            disable_program(monkeypatch)
            robot = fresh(robot)
        with pytest.raises(PoseError) as refused:
            robot.torque_and_rate(far[0] + [1.5, -1.5], *far[1:])
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_program_of_over_constrained_loops_reports_open_multipliers(monkeypatch):
    robot = Robot(TreeDynamics.from_urdf(URDF / "five_bar.urdf"), URDF / "five_bar.robot.yaml")
    motion = motion_of(robot, 1)[:, 0]
    found = robot.torque_and_rate(*motion)
    solution = robot.solve(*motion)
    assert solution.open_multipliers
    for ours, theirs in zip(found, solution.torques, strict=True):
        assert off(ours, theirs) < 1e-12


@pytest.mark.parametrize("backend", ["python", "c"])
def test_backends_of_the_program_agree(backend):
    robot = Robot(TreeDynamics.from_urdf(URDF / "palletiser.urdf", backend=backend), URDF / "palletiser.robot.yaml")
    motion = motion_of(robot, 3)
    for ours, theirs in zip(robot.torque_and_rate(*motion), palletiser().torque_and_rate(*motion), strict=True):
        assert off(ours, theirs) < 1e-13


def test_non_finite_input_is_rejected_after_valid_calls():
    robot = palletiser()
    motion = motion_of(robot, 1)[:, 0]
    robot.torque_and_rate(*motion)
    bad = motion[1].copy()
    bad[0] = np.nan
    with pytest.raises(rnea_ros.InputError, match="finite"):
        robot.torque_and_rate(motion[0], bad, *motion[2:])
    with pytest.raises(rnea_ros.InputError, match="base"):
        robot.torque_and_rate(*motion, base=BaseState())


def test_loads_that_are_not_a_mapping_of_links_are_rejected():
    robot = palletiser()
    motion = motion_of(robot, 1)[:, 0]
    for wrong in ([1], 1, "x", np.zeros(6)):
        for name in ("wrenches", "wrench_rates", "world_wrenches"):
            with pytest.raises(rnea_ros.InputError, match=f"{name} is .*a mapping"):
                Loads(**{name: wrong})
        for call in (robot.torque_and_rate, robot.solve):
            with pytest.raises(rnea_ros.InputError, match=r"loads is .*Loads"):
                call(*motion, loads=wrong)


# ---------------------------------------------------------------------- elimination, Jacobian


def test_block_elimination_matches_numpy():
    """The matrix is [M, -J^T, -S; J, 0, 0] with independent blocks; a factor is used for its transpose too."""
    rng = np.random.default_rng(0)
    M = rng.normal(size=(7, 7))
    M, J = M @ M.T, rng.normal(size=(4, 7))
    J[:2, [2, 3, 6]] = 0.0  # two loops: the first moves coordinates 0 and 1, the second 2 and 3
    J[2:, [0, 1]] = 0.0
    S = np.eye(7)[:, [4, 5]]
    A = np.block([[M[:, [0, 1, 2, 3, 6]], -J.T, -S], [J[:, [0, 1, 2, 3, 6]], np.zeros((4, 6))]])
    pattern = A != 0.0
    blocks = triangular_blocks(pattern)
    assert blocks is not None
    assert sorted(np.concatenate([block.rows for block in blocks])) == list(range(11))
    preferred = triangular_blocks(pattern[7:, :4])
    assert [len(block.rows) for block in preferred] == [2, 2]
    loops = [EliminationBlock(7 + one.rows, one.columns) for one in preferred]
    loops += [EliminationBlock(one.columns, one.rows - 7 + 5) for one in loops]
    chosen = plan(pattern, loops)
    for b in rng.normal(size=(2, 11)):
        np.testing.assert_allclose(Elimination(A, chosen).solve(b).astype(float), np.linalg.solve(A, b), rtol=1e-9)
    assert plan(np.zeros((2, 2), dtype=bool)) is None


@pytest.mark.parametrize("name", ["free base, two loops, spring, passive joint", "elastic joint, loop"])
def test_constraint_jacobian_is_the_derivative_of_the_constraints(name):
    robot, _, _, _ = case(name, 0)
    equations = robot.roles.equations(robot.model, robot.tree.gravity_vector, carried=False)
    assert isinstance(equations, EquationsOfMotion)
    rng, step = np.random.default_rng(0), 1e-30
    x = rng.normal(size=len(equations.coordinates))
    R, p, v = np.eye(3), rng.normal(size=3), x * 0.0
    J = np.array(equations.constraint_jacobian(R, p, x), dtype=float)
    for k in range(equations.base, len(x)):
        moved = x.astype(complex)
        moved[k] += 1j * step
        rows = np.array(equations.constraint_rows(R, p, moved, v), dtype=complex)
        np.testing.assert_allclose(J[:, k], rows.imag / step, atol=1e-13)
