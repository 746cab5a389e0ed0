"""The cheap recursion is the papers' recursion, and what it costs is written down.

``python test/test_component_rate.py --update`` writes the operation counts anew, after a change that was meant.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import JointTerm, Robot
from rnea_ros.algorithms import component_rate, torque_rate
from rnea_ros.codegen.program import trace

ROOT = Path(__file__).resolve().parents[1]
COUNTS = ROOT / "test" / "golden" / "operation_counts.json"
URDFS = sorted((ROOT / "urdf").glob("*.urdf"))


def operation_counts() -> dict[str, dict[str, int]]:
    """Of tau and tau_rate, by our own URDFs."""
    found = {}
    for path in URDFS:
        robot = Robot.from_urdf(path, backend="reference")
        blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), robot.n)
        program = trace(lambda robot=robot, **motion: component_rate.torque_and_rate(
            robot.model, *motion.values(), gravity=robot.gravity_vector), blocks)
        counts = program.operation_counts
        found[path.stem] = {"multiplications": counts["mul"], "additions": counts["add"] + counts["sub"],
                            "signs": counts["neg"], "sines and cosines": counts["sin"] + counts["cos"]}
    return found


@pytest.mark.parametrize("path", URDFS, ids=lambda path: path.stem)
def test_equals_the_papers_recursion(path):
    rng = np.random.default_rng(7)
    robot = Robot.from_urdf(path, backend="reference")
    terms = {name: JointTerm(0.01, 50.0, 0.3, 0.2, 0.1) for name in robot.joint_names}
    model = robot.model.with_terms(terms)
    links = range(1, len(model.links))
    for _ in range(3):
        motion, gravity = rng.uniform(-2, 2, (4, robot.n)), rng.uniform(-10, 10, 3)
        options = {name: {k: rng.uniform(-5, 5, 6) for k in links} for name in ("wrenches", "wrench_rates")}
        paper = np.array(torque_rate.torque_and_rate(model, *motion, gravity, **options))
        cheap = np.array(component_rate.torque_and_rate(model, *motion, gravity, **options))
        assert np.abs(cheap - paper).max() < 1e-12 * max(1.0, np.abs(paper).max())


def test_operation_counts_are_as_written_down():
    assert operation_counts() == json.loads(COUNTS.read_text()), "if meant: python test/test_component_rate.py --update"


def test_it_is_cheaper():
    robot = Robot.from_urdf(ROOT / "urdf" / "seven_r.urdf", backend="reference")
    blocks = dict.fromkeys(("q", "qd", "qdd", "qddd"), robot.n)
    paper, cheap = (trace(lambda recursion=recursion, **motion: recursion.torque_and_rate(
        robot.model, *motion.values(), gravity=robot.gravity_vector), blocks).operation_counts
        for recursion in (torque_rate, component_rate))
    assert cheap["mul"] < 0.75 * paper["mul"]


if __name__ == "__main__" and "--update" in sys.argv:
    COUNTS.write_text(json.dumps(operation_counts(), indent=1) + "\n")
