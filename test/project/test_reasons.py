"""Every reason for which a node rejects a message, a trajectory, a chunk or a request is provoked by a test.

Reasons are read from the source: the first argument of what raises, returns or records a rejection. A reason is provoked if
a test of nodes, execution, estimation, robots or trajectories has it as a literal, alone or as a word of a message.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("nodes", "execution", "estimation", "robots/closure.py", "robots/platform_closure.py",
           "trajectory/chunk_executor.py")
TESTS = ("nodes", "execution", "estimation", "robots", "trajectory", "support")
MAKERS = {"Rejected", "rejecting", "ChunkResult", "Outcome", "PoseError", "_give_up"}
COMMON = {"empty", "times", "tolerance", "start", "path", "limits", "controller", "busy", "locked", "ending", "gravity",
          "paused", "stopped", "replaced"}  # words that tests also have for other purposes: only a whole literal counts


def files(folder: Path, parts: tuple[str, ...]) -> list[Path]:
    """Return the Python files of folders, and single files."""
    return sorted(path for part in parts for path in ((folder / part).rglob("*.py") if (folder / part).is_dir()
                                                      else [folder / part]))


def constants(tree: ast.Module) -> dict[str, str]:
    """Return the module's string constants by name."""
    return {target.id: node.value.value for node in tree.body if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for target in node.targets if isinstance(target, ast.Name)}


def words(expression: ast.expr, known: dict[str, str]) -> Iterator[str]:
    """Yield what an expression of a reason may be, as a pattern."""
    if isinstance(expression, ast.Constant) and isinstance(expression.value, str):
        yield re.escape(expression.value)
    elif isinstance(expression, ast.JoinedStr):
        yield "".join(re.escape(str(part.value)) if isinstance(part, ast.Constant) else r"[a-z_]+"
                      for part in expression.values)
    elif isinstance(expression, ast.IfExp):
        yield from words(expression.body, known)
        yield from words(expression.orelse, known)
    elif isinstance(expression, ast.Name) and expression.id in known:
        yield re.escape(known[expression.id])


def reasons() -> dict[str, list[str]]:
    """Return every reason with the lines that make it."""
    found: dict[str, list[str]] = {}
    for path in files(ROOT / "rnea_ros", SOURCES):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        known = constants(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args:
                name = getattr(node.func, "id", getattr(node.func, "attr", ""))
                for word in words(node.args[0], known) if name in MAKERS else ():
                    found.setdefault(word, []).append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return {reason: lines for reason, lines in found.items() if reason}


def literals() -> set[str]:
    """Return the string literals of tests, without docstrings and names of parameters."""
    found = set()
    for path in files(ROOT / "test", TESTS):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "parametrize":
                docs |= {id(name) for name in ast.walk(node.args[0])}
        found |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
                  and id(node) not in docs}
    return found


def test_every_reason_of_a_rejection_is_provoked():
    texts, made = literals(), reasons()
    known = texts | {word for text in texts for word in re.findall(r"[a-z_]+", text)}
    missing = {reason: lines for reason, lines in made.items()
               if not any(re.fullmatch(reason, text) for text in (texts if reason in COMMON else known))}
    assert not missing
    assert {"joint_missing", "other_sender", "too_late", "bad_times", "[a-z_]+_unusable", "position_limit"} <= set(made)
    assert len(made) > 80
