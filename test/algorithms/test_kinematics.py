"""Forward kinematics of trees against Pinocchio, complex steps and power series."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pinocchio")

from rnea_ros.algebra.taylor import derivative, jets
from rnea_ros.algorithms import kinematics
from rnea_ros.robots.tree import TreeDynamics
from support.oracles import PinocchioOracle, example_urdfs, worst
from support.robots import random_state, random_tree, seeds

PLATFORMS = ("stewart", "two_platforms", "four_platforms")  # not trees
SHIPPED = sorted(path for path in (Path(__file__).parents[2] / "urdf").glob("*.urdf") if path.stem not in PLATFORMS)
EXAMPLES = ("panda", "ur5_robot", "solo12", "talos_reduced")  # mimic joints, a plain arm, branches, many merged links
TINY = 1e-30


@cache
def source(name):
    if isinstance(name, int):
        return random_tree(name).plain()
    return name if isinstance(name, Path) else next(path for path in example_urdfs() if path.stem == name)


def cases(name):
    """Yield (model, frame, point, q, qd, qdd, oracle's result) of up to eight links, including root and fixed links."""
    robot = TreeDynamics.from_urdf(source(name), backend="reference")
    oracle, rng = PinocchioOracle(str(source(name)), robot), np.random.default_rng(len(str(name)))
    links = list(robot.model.frames)
    for link in {links[0], links[-1], *rng.choice(links, 6)}:
        q, qd, qdd, _ = random_state(rng, robot.n)
        point = rng.normal(size=3)
        yield robot.model, robot.model.frames[link], point, q, qd, qdd, oracle.kinematics(link, point, q, qd)


@pytest.mark.parametrize("name", [*range(20), *SHIPPED, *EXAMPLES], ids=lambda name: getattr(name, "stem", str(name)))
def test_poses_and_jacobians_equal_pinocchio(name):
    for model, frame, point, q, qd, _qdd, (R, p, J, Jd) in cases(name):
        found = kinematics.link_pose(model, frame, q, point)
        assert worst(found.R, R) < 1e-12 and worst(found.p, p) < 1e-12
        assert worst(kinematics.jacobian(model, frame, q, point), J) < 1e-12
        assert worst(kinematics.jacobian_rate(model, frame, q, qd, point).astype(float), Jd) < 1e-12


@pytest.mark.parametrize("seed", [20 + seed for seed in seeds(3)])
def test_jacobian_matches_complex_steps_of_the_pose(seed):
    for model, frame, point, q, _qd, _qdd, _truth in cases(seed):
        J = kinematics.jacobian(model, frame, q, point)
        R = kinematics.link_pose(model, frame, q, point).R
        for k, unit in enumerate(np.eye(model.n)):
            moved = kinematics.link_pose(model, frame, q + 1j * TINY * unit, point)
            W = moved.R.imag / TINY @ R.T
            assert worst(J[:, k], np.concatenate((moved.p.imag / TINY, [W[2, 1], W[0, 2], W[1, 0]]))) < 1e-12


@pytest.mark.parametrize("seed", [20 + seed for seed in seeds(3)])
def test_jacobian_rate_matches_power_series_of_the_pose(seed):
    for model, frame, point, q, qd, qdd, _truth in cases(seed):
        _R, p = kinematics.link_pose(model, frame, jets(q, qd, qdd), point)
        J = kinematics.jacobian(model, frame, q, point)
        Jd = kinematics.jacobian_rate(model, frame, q, qd, point).astype(float)
        assert worst((J @ qd)[:3], derivative(p, 1).astype(float)) < 1e-12
        assert worst((J @ qdd + Jd @ qd)[:3], derivative(p, 2).astype(float)) < 1e-12


def test_points_of_many_links_equal_single_links():
    robot = TreeDynamics.from_urdf(random_tree(3).text(), backend="reference")
    rng = np.random.default_rng(3)
    q, frames = random_state(rng, robot.n)[0], list(robot.model.frames.values())
    positions, jacobians = kinematics.points(robot.model, [(frame.link, frame.P) for frame in frames], q)
    for frame, p, J in zip(frames, positions, jacobians, strict=True):
        assert worst(p, kinematics.link_pose(robot.model, frame, q).p) == 0.0
        assert worst(J, kinematics.jacobian(robot.model, frame, q)) == 0.0
