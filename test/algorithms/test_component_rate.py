"""Component-wise recursion: equal to the published recursion, with recorded operation counts.

``PYTHONPATH=.:test python {__file__} --update`` records the operation counts again after a deliberate change.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import JointDynamics, Model
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.algorithms.inertial_parameters import regrouped
from rnea_ros.codegen.program import trace
from rnea_ros.robots.tree import TreeDynamics
from support.golden_models import from_table
from support.oracles import GOLDEN

ROOT = Path(__file__).resolve().parents[2]
COUNTS = ROOT / "test" / "golden" / "operation_counts.json"
GRAVITY = np.array([0.0, 0.0, -9.81])
PLATFORMS = ("stewart", "two_platforms", "four_platforms")  # not trees
URDFS = sorted(path for path in (ROOT / "urdf").glob("*.urdf") if path.stem not in PLATFORMS)


def made(rows_of, name="made") -> Model:
    """Return a robot of random bodies; rows_of: (parent, alpha, d, r) of each revolute joint, and gamma, b at branches."""
    rng = np.random.default_rng(0)
    rows = []
    for parent, alpha, d, r, *branch in rows_of:
        A = rng.normal(size=(3, 3))
        gamma, b = branch or (0.0, 0.0)
        rows.append({"type": "R", "parent": parent, "gamma": gamma, "b": b, "alpha_prev": alpha, "a_prev": d, "theta0": 0.0,
                     "d0": r, "m": rng.uniform(1.0, 3.0), "c": rng.normal(size=3) * 0.1, "I": A @ A.T * 0.01})
    return from_table(name, rows)


def robots() -> dict[str, Model]:
    """Return the packaged URDFs, and robots with published counts, all with bodies of ten parameters."""
    found = {path.stem: TreeDynamics.from_urdf(path, backend="reference").model for path in URDFS}
    quarter = np.pi / 2
    panda = [(0.0, 0.0, 0.333), (-quarter, 0.0, 0.0), (quarter, 0.0, 0.316), (quarter, 0.0825, 0.0),
             (-quarter, -0.0825, 0.384), (quarter, 0.0, 0.0), (quarter, 0.088, 0.0)]
    general = np.random.default_rng(1).uniform(0.2, 1.0, (32, 5)).tolist()
    parents = [max(0, k - 1 - (k % 4 == 0) * 3) for k in range(1, 33)]  # every fourth link a branch
    tree = [(parent, *row[:3], *(row[3:] if parent in parents[:k] else ())) for k, (parent, row) in
            enumerate(zip(parents, general, strict=True))]
    return found | {"stanford arm of golden.json": from_table("stanford", GOLDEN["stanford_arm"]["links"]),
                    "7R, geometry of the Panda": made([(k, *row) for k, row in enumerate(panda)]),
                    "7R, general geometry": made([(k, *row[:3]) for k, row in enumerate(general[:7])]),
                    "32-dof tree, general": made(tree)}


def operation_counts() -> dict[str, dict[str, int]]:
    """Return the operation counts of tau and tau_rate with base parameters, as in kernels."""
    found = {}
    for name, model in robots().items():
        light = regrouped(model, GRAVITY, second_moments=True)
        blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), model.n)
        program = trace(lambda light=light, **motion: component_rate.torque_and_rate(light, *motion.values(), gravity=GRAVITY),
                        blocks)
        counts = program.operation_counts
        found[name] = {"multiplications": counts["mul"], "additions": counts["add"] + counts["sub"],
                       "signs": counts["neg"], "sines and cosines": counts["sin"] + counts["cos"]}
    return found


@pytest.mark.parametrize("path", URDFS, ids=lambda path: path.stem)
def test_component_recursion_equals_the_published_recursion(path):
    rng = np.random.default_rng(7)
    robot = TreeDynamics.from_urdf(path, backend="reference")
    terms = {name: JointDynamics(0.01, 50.0, 0.3, 0.2, 0.1) for name in robot.joint_names}
    model = robot.model.with_joint_dynamics(terms)
    links = range(1, len(model.links))
    for _ in range(3):
        motion, gravity = rng.uniform(-2, 2, (4, robot.n)), rng.uniform(-10, 10, 3)
        options = {name: {k: rng.uniform(-5, 5, 6) for k in links} for name in ("wrenches", "wrench_rates")}
        paper = np.array(torque_rate.torque_and_rate(model, *motion, gravity, **options))
        cheap = np.array(component_rate.torque_and_rate(model, *motion, gravity, **options))
        assert np.abs(cheap - paper).max() < 1e-12 * max(1.0, np.abs(paper).max())


def test_operation_counts_equal_the_recorded_ones():
    assert operation_counts() == json.loads(COUNTS.read_text()), f"if meant: PYTHONPATH=.:test python {__file__} --update"


@pytest.mark.parametrize(("name", "most"), [("stanford arm of golden.json", (312, 270)), ("7R, general geometry", (996, 900)),
                                            ("7R, geometry of the Panda", (658, 663))])
def test_operation_counts_of_known_robots_are_below_their_bounds(name, most):
    found = json.loads(COUNTS.read_text())[name]
    assert found["multiplications"] <= most[0] and found["additions"] <= most[1] and found["signs"] == 0


def test_component_rate_needs_fewer_products_than_the_paper():
    robot = TreeDynamics.from_urdf(ROOT / "urdf" / "seven_r.urdf", backend="reference")
    blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), robot.n)
    paper, cheap = (trace(lambda recursion=recursion, **motion: recursion.torque_and_rate(
        robot.model, *motion.values(), gravity=robot.gravity_vector), blocks).operation_counts
        for recursion in (torque_rate, component_rate))
    assert cheap["mul"] < 0.75 * paper["mul"]


if __name__ == "__main__" and "--update" in sys.argv:
    COUNTS.write_text(json.dumps(operation_counts(), indent=1) + "\n")
