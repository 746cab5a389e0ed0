"""Modified DH frames: special cases, and random trees and example robots against Pinocchio."""

from __future__ import annotations

from math import pi

import numpy as np
import pytest

from rnea_ros import ModelError, Robot
from rnea_ros.model import mdh
from rnea_ros.model.mdh import FIXED, PRISMATIC, REVOLUTE, from_pose
from support.mdh_check import check_kinematics_and_inertias
from support.oracles import PinocchioOracle, example_urdfs, worst
from support.robots import about, arm, random_state, random_tree, rotation

UP = {"axis": (0, 0, 1)}

# Each case: the joints after j1, which turns about the root's z; then the rows
# (joint, parent, sigma, gamma, b, alpha, d, theta, r).
CASES = {
    "leaf": ([], [("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0)]),
    "parallel": ([{"xyz": (0.5, 0, 0.3), "axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.3), ("j2", 1, REVOLUTE, 0, 0, 0, 0.5, 0, 0)]),
    "parallel, to the side": ([{"xyz": (0, 0.5, 0.3), "axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, pi / 2, 0.3), ("j2", 1, REVOLUTE, 0, 0, 0, 0.5, -pi / 2, 0)]),
    "anti-parallel": ([{"xyz": (0.5, 0, 0.3), "axis": (0, 0, -1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.3), ("j2", 1, REVOLUTE, 0, 0, pi, 0.5, 0, 0)]),
    "coincident": ([{"xyz": (0, 0, 0.4), "rpy": (0, 0, 0.5), "axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0.5, 0.4), ("j2", 1, REVOLUTE, 0, 0, 0, 0, 0, 0)]),
    "coincident, reversed": ([{"xyz": (0, 0, 0.4), "axis": (0, 0, -1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.4), ("j2", 1, REVOLUTE, 0, 0, pi, 0, 0, 0)]),
    "coincident and at the same origin": ([{"axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0), ("j2", 1, REVOLUTE, 0, 0, 0, 0, 0, 0)]),
    "intersecting": ([{"xyz": (0, 0, 0.4), "axis": (0, 1, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.4), ("j2", 1, REVOLUTE, 0, 0, -pi / 2, 0, -pi / 2, 0)]),
    "intersecting away from the joint's origin": ([{"xyz": (0, 0.2, 0.4), "axis": (0, 1, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.4), ("j2", 1, REVOLUTE, 0, 0, -pi / 2, 0, -pi / 2, 0.2)]),
    "skew": ([{"xyz": (0.3, 0.2, 0.4), "axis": (0, 1, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.4), ("j2", 1, REVOLUTE, 0, 0, -pi / 2, 0.3, -pi / 2, 0.2)]),
    "axis not of length one": ([{"xyz": (0.3, 0.2, 0.4), "axis": (0, 7, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.4), ("j2", 1, REVOLUTE, 0, 0, -pi / 2, 0.3, -pi / 2, 0.2)]),
    "prismatic": ([{"kind": "prismatic", "xyz": (0, 0, 0.4), "axis": (1, 0, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, pi / 2, 0.4), ("j2", 1, PRISMATIC, 0, 0, pi / 2, 0, 0, 0)]),
    "no axis, no origin: along x": ([{"kind": "prismatic"}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, pi / 2, 0), ("j2", 1, PRISMATIC, 0, 0, pi / 2, 0, 0, 0)]),
    "several children, skew": ([
        {"xyz": (0.5, 0, 0), "axis": (0, 0, 1)}, {"parent": "l1", "xyz": (0, 0.4, 0.2), "axis": (1, 0, 0)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0), ("j2", 1, REVOLUTE, 0, 0, 0, 0.5, 0, 0),
        ("j3", 1, REVOLUTE, pi / 2, 0.2, pi / 2, 0.4, 0, 0)]),
    "several children, parallel": ([
        {"xyz": (0.5, 0, 0), "axis": (0, 0, 1)}, {"parent": "l1", "xyz": (0, 0.4, 0.2), "axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0), ("j2", 1, REVOLUTE, 0, 0, 0, 0.5, 0, 0),
        ("j3", 1, REVOLUTE, pi / 2, 0, 0, 0.4, -pi / 2, 0.2)]),
    "nearly parallel": ([{"xyz": (0.5, 0, 0.3), "axis": (0, -np.sin(1e-3), np.cos(1e-3))}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.3), ("l2/frame", 1, FIXED, 0, 0, pi / 2, 0.5, 0, 0),
        ("j2", 2, REVOLUTE, pi, 0, pi / 2 - 1e-3, 0, pi, 0)]),
    "fixed joint between": ([{"kind": "fixed", "xyz": (0, 0, 0.1)}, {"xyz": (0.5, 0, 0.2), "axis": (0, 0, 1)}], [
        ("j1", 0, REVOLUTE, 0, 0, 0, 0, 0, 0.3), ("j3", 1, REVOLUTE, 0, 0, 0, 0.5, 0, 0)]),
}


@pytest.mark.parametrize("case", CASES)
def test_mdh_frames_and_rows_of_special_cases_equal_the_expected_ones(case):
    joints, expected = CASES[case]
    robot = Robot.from_urdf(arm(UP, *joints))
    table = robot.mdh_table()
    assert [row[:3] for row in table] == [row[:3] for row in expected]
    for row, truth in zip(table, expected):
        angles = np.subtract(row[3:], truth[3:])[[0, 2, 4]]
        assert np.abs((angles + pi) % (2 * pi) - pi) == pytest.approx([0, 0, 0], abs=1e-15), row[0]
        assert row[4:9:2] == pytest.approx(truth[4:9:2], abs=1e-15), row[0]
    assert robot.reconstruction_error < 1e-15


def test_undetermined_angles_are_zero():
    """Angles are undetermined if axes coincide up to rounding, or if a frame lies along the common normal."""
    assert from_pose(np.eye(3), np.array([-1e-17, 1e-17, 0.2])) == (0, 0, 0, 0, 0, 0.2)
    assert from_pose(np.eye(3), np.array([-0.5, 0, 0.2]), on_normal=True) == (0, 0, 0, -0.5, 0, 0.2)


@pytest.mark.parametrize("block", range(0, 200, 25))
def test_kinematics_and_inertias_of_random_trees_match_pinocchio(block):
    for seed in range(block, block + 25):
        tree = random_tree(seed)
        robot = Robot.from_urdf(tree.text())
        check_kinematics_and_inertias(robot, PinocchioOracle(tree.plain(), robot), seed)


@pytest.mark.parametrize("path", [path for path in example_urdfs()[::4] if path.stem != "ur3"], ids=lambda path: path.stem)
def test_kinematics_and_inertias_of_example_robots_match_pinocchio(path):
    robot = Robot.from_urdf(path)
    check_kinematics_and_inertias(robot, PinocchioOracle(path, robot), 1)


@pytest.mark.parametrize("sense", [1, -1], ids=["parallel", "anti-parallel"])
@pytest.mark.parametrize("exponent", range(1, 17))
def test_nearly_parallel_axes_keep_moderate_parameters_and_full_precision(exponent, sense):
    """Calibrated arms have such axes; the exact common normal would be up to 1e14 m away."""
    rpy = (0.3, -0.7, 1.9)  # rotated, since Pinocchio snaps axes within 1e-12 to the frame axes
    tilted = rotation(*rpy).T @ about(np.array([0.6, 0.8, 0.0]), 10.0**-exponent) @ [0, 0, sense]
    joints = UP, {"xyz": (0.4, 0.1, 0.2), "rpy": rpy, "axis": tuple(tilted)}, {"xyz": (0.3, -0.2, 0.1), "axis": (1, 2, 3)}
    robot = Robot.from_urdf(arm(*joints))
    assert max(abs(np.array([row[4:9:2] for row in robot.mdh_table()]).ravel())) < 10.0
    assert robot.reconstruction_error < 1e-14
    oracle = PinocchioOracle(arm(*joints), robot)
    for seed in range(5):
        state = random_state(np.random.default_rng(seed), 3)
        for ours, truth in zip(robot.torque_and_rate(*state), oracle.torque_and_rate(*state)):
            assert worst(ours, truth) < 1e-13


@pytest.mark.parametrize("factor", [1 - 1e-15, 1.0, 1 + 1e-15])
@pytest.mark.parametrize("angle", [mdh.NEARLY_PARALLEL, mdh.ANGLE_TOLERANCE])
def test_frames_are_exact_at_the_thresholds_between_special_cases(angle, factor):
    """Poses are exact for both outcomes of the two comparisons that depend on rounding."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        aside = np.cross([0.0, 0.0, 1.0], rng.normal(size=3))
        axis = about(aside / np.linalg.norm(aside), np.arcsin(angle) * factor) @ [0, 0, 1]
        first, second = {"rpy": tuple(rng.normal(size=3)), **UP}, {"xyz": tuple(rng.normal(size=3)), "axis": tuple(axis)}
        assert Robot.from_urdf(arm(first, second, {"xyz": (1, 2, 3)})).reconstruction_error < 1e-13


def test_inaccurate_frames_are_rejected(monkeypatch):
    right = mdh.assign_mdh_frames

    def wrong(bodies):
        poses = right(bodies)
        poses[1].R = about(np.array([1.0, 0.0, 0.0]), 1e-9) @ poses[1].R
        return poses

    monkeypatch.setattr(mdh, "assign_mdh_frames", wrong)
    with pytest.raises(ModelError, match=r"frames came out .* off"):
        Robot.from_urdf(arm(UP, {"xyz": (1, 0, 0)}))
