"""Mutation test of the core: small faults are inserted one at a time in a copy; the tests should fail for each.

python .ci/mutate.py [--count 30] [--seed 0]        exit code 1 if fewer than --least of them are noticed
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
GOLDEN, KINEMATICS = "algorithms/test_golden.py", "algorithms/test_kinematics.py"
TESTS = {  # files of the core and the tests that should fail; recorded values first, which take seconds
    "model/mdh.py": (KINEMATICS, "model/test_frames.py", "model/test_modified_dh.py", "model/test_urdf.py"),
    "algorithms/torque_rate.py": (GOLDEN, "algorithms/test_component_rate.py", "robots/test_sensitivities.py"),
    "algorithms/component_rate.py": (GOLDEN, "algorithms/test_component_rate.py"),
    "algorithms/forward_dynamics.py": (GOLDEN, "algorithms/test_mass_matrix.py", "algorithms/test_load_friction.py",
                                       "algorithms/test_forward_dynamics.py"),
    "algorithms/kinematics.py": (GOLDEN, KINEMATICS, "robots/test_kinematics_of_robots.py"),
    "algorithms/energy.py": (GOLDEN, "algorithms/test_energy.py"),
    "algebra/vectors.py": (GOLDEN, KINEMATICS, "algebra/test_vectors.py"),
    "trajectory/speed_factor.py": ("trajectory/test_speed_factor.py",),
    "trajectory/limit_check.py": ("trajectory/test_limits_at_all_instants.py",),
    "trajectory/path_dynamics.py": ("trajectory/test_constraints.py", "trajectory/test_limits_at_all_instants.py"),
    "trajectory/time_scaling.py": ("trajectory/test_time_scaling.py",)}
SWAPS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.Lt: ast.GtE, ast.Gt: ast.LtE,
         ast.LtE: ast.Gt, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And}
TIMEOUT = 600.0  # s; a test run that hangs counts as a detection


def faults(tree: ast.Module) -> Iterator[tuple[int, ast.AST, str]]:
    """Yield mutations: index in the walk through a tree, its node, and the change."""
    for k, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPS:
            yield k, node, "op"
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            yield k, node, "ops"
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            yield k, node, "sign"
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            yield k, node, "value"


def mutated(tree: ast.Module, index: int, what: str) -> str:
    """Return the program with one fault."""
    tree = copy.deepcopy(tree)
    node = list(ast.walk(tree))[index]
    if isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = SWAPS[type(node.op)]()
    elif isinstance(node, ast.Compare):
        node.ops[0] = SWAPS[type(node.ops[0])]()
    elif isinstance(node, ast.UnaryOp):
        node.op = ast.UAdd()
    elif isinstance(node, ast.Constant):
        node.value += 1
    return ast.unparse(tree)


def noticed(folder: Path, tests: tuple[str, ...]) -> bool:
    """Return whether a test fails, or hangs."""
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not ros and not slow", "-p", "no:cacheprovider",
             *(f"test/{name}" for name in tests)]
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        return subprocess.run(words, cwd=folder, env=env, capture_output=True, timeout=TIMEOUT).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--least", type=float, default=0.8)
    given, found, seen = parser.parse_args(), [], 0
    for name in TESTS:
        tree = ast.parse((ROOT / "rnea_ros" / name).read_text(encoding="utf-8"))
        found += [(name, tree, *fault) for fault in faults(tree)]
    with tempfile.TemporaryDirectory(prefix="rnea_mutate_") as scratch:
        folder = Path(scratch)
        for name in ("rnea_ros", "test", "urdf", "config", "examples"):
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copyfile(ROOT / "pytest.ini", folder / "pytest.ini")
        chosen = random.Random(given.seed).sample(found, min(given.count, len(found)))
        for name, tree, index, node, what in chosen:
            file = folder / "rnea_ros" / name
            file.write_text(mutated(tree, index, what), encoding="utf-8")
            well = noticed(folder, TESTS[name])
            shutil.copyfile(ROOT / "rnea_ros" / name, file)
            seen += well
            print(f"{'noticed ' if well else 'SURVIVED'}  {name}:{node.lineno}: {ast.unparse(node)[:80]} ({what})", flush=True)
    print(f"{seen} of {len(chosen)} noticed, of {len(found)} possible")
    return seen < given.least * len(chosen)


if __name__ == "__main__":
    sys.exit(main())
