"""Humble and Lyrical without an installation of either: a type checker compares the nodes with stubs of both.

test/support/ros_stubs declares the API of rclpy there, with the internals that the lean executor uses; messages are those of
this machine without the constants that Humble lacks. The sources of the comparison are listed in docs/platforms.md.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections import deque
from collections.abc import Collection, Iterable
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

import numpy as np
from rcl_interfaces.srv import GetParameters

from rnea_ros import Robot
from rnea_ros.nodes.common.executor import LeanExecutor
from support import humble_stand_in
from support.node_bench import ARM, NODE, Bench
from support.ros_helpers import ros_domain

ROOT = Path(__file__).resolve().parents[2]
STUBS = ROOT / "test" / "support" / "ros_stubs"
CODE = ("rnea_ros/nodes", "rnea_ros/demo/nodes", "rnea_rqt/rnea_rqt")
LACKING = {"humble": {"Marker.ARROW_STRIP"}, "lyrical": set()}  # of messages that the code imports
# What one has and the other has not: a line that must be found wrong there.
WRONG = {
    "humble": ("subscription._callback_type", "service.service_name", "Marker.ARROW_STRIP", "node.create_task",
               'node.create_subscription(Marker, "m", lambda message, info: None, 1)', "with rclpy.init(): pass"),
    "lyrical": ("executor._tasks", "node.create_task", 'node.create_subscription(Marker, "m", lambda: None, 1)',
                "Marker(lifetimes=1)"),
}
BEGIN = """import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.service import Service
from rclpy.subscription import Subscription
from visualization_msgs.msg import Marker


def wrong(node: Node, subscription: Subscription, service: Service, executor: SingleThreadedExecutor) -> None:
"""
# What rnea_ros leaves open (a node's executor, a controller that there may not be) is no difference of a distribution, nor is
# anything of numpy, whose stubs take a checker most of its time.
SETTINGS = """[mypy]
check_untyped_defs = True
ignore_missing_imports = True
disable_error_code = import-untyped, union-attr
[mypy-rnea_ros.*]
follow_imports = silent
[mypy-numpy.*,scipy.*]
follow_imports = skip
follow_imports_for_stubs = True
"""
IMPORTED = re.compile(r"^\s*from (\w+)\.(msg|srv|action) import ", re.MULTILINE)
NAMED = re.compile(r"(\w+)/(\w+)")  # type of a field that is a message


def imported_messages(sources: Iterable[Path]) -> set[tuple[str, str]]:
    """Return (package, kind) of the messages that these files import, without modules of rclpy."""
    found = {(package, kind) for path in sources for package, kind in IMPORTED.findall(path.read_text())}
    return {(package, kind) for package, kind in found if package != "rclpy"}


def write_stubs(folder: Path, packages: Iterable[tuple[str, str]], lacking: Collection[str]) -> list[str]:
    """Write stubs of messages and of the types of their fields, without `lacking` ("Message.name"); return the packages."""
    waiting, done = list(packages), []
    while waiting:
        package, kind = waiting.pop()
        file = folder / package / f"{kind}.pyi"
        try:
            module = importlib.import_module(f"{package}.{kind}")
        except ImportError:
            continue
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.pyi").touch()
        text, needed = module_stub(module, f"{package}.{kind}", lacking)
        file.write_text(text)
        done.append(f"{package}.{kind}")
        waiting += [(name, "msg") for name in needed]
    return done


def module_stub(module: Any, name: str, lacking: Collection[str]) -> tuple[str, set[str]]:
    """Return the stub of a module and the packages it imports."""
    kinds = {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and "_" not in name}
    blocks = [class_stub(name, kind, lacking) for name, kind in kinds.items()]
    needed = set(re.findall(r"(\w+)\.msg\.", "\n".join(blocks)))
    head = ["from typing import Any, ClassVar", *(f"import {package}.msg" for package in sorted(needed))]
    return "\n".join([*head, "", *blocks]), needed


def class_stub(name: str, kind: Any, lacking: Collection[str]) -> str:
    parts = [part for part in ("Request", "Response", "Goal", "Result", "Feedback") if hasattr(kind, part)]
    if parts:
        inside = "\n".join(class_stub(part, getattr(kind, part), lacking) for part in parts)
        return f"class {name}:\n" + indent(inside, "    ")
    fields = {field: field_type(text) for field, text in kind.get_fields_and_field_types().items()
              if f"{name}.{field}" not in lacking}
    constants = [constant for constant in getattr(type(kind), f"_{type(kind).__name__}__constants", {})
                 if f"{name}.{constant}" not in lacking]
    given = "".join(f", {field}: Any = ..." for field in fields)
    lines = [f"    {field}: {text}" for field, text in fields.items()]
    lines += [f"    {constant}: ClassVar[Any]" for constant in constants]
    lines += ["    @classmethod", "    def get_fields_and_field_types(cls) -> dict[str, str]: ..."]
    return "\n".join([f"class {name}:", *lines, f"    def __init__(self{', *' if given else ''}{given}) -> None: ..."])


def field_type(text: str) -> str:
    """Return the type of a field: a message, otherwise Any, since NumPy and Python numbers are both allowed."""
    named = NAMED.fullmatch(text)
    return f"{named[1]}.msg.{named[2]}" if named and "_" not in named[2] else "Any"


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy comes with the extra 'lint'")
@pytest.mark.parametrize("distribution", LACKING)
def test_nodes_use_only_names_that_the_distribution_has(distribution, tmp_path):
    sources = [path for folder in CODE for path in (ROOT / folder).rglob("*.py")]
    found = write_stubs(tmp_path / "messages", imported_messages(sources), LACKING[distribution])
    assert {"sensor_msgs.msg", "rnea_msgs.msg", "trajectory_msgs.msg"} <= set(found)
    wrong = tmp_path / "wrong.py"
    wrong.write_text(BEGIN + "".join(f"    {line}\n" for line in WRONG[distribution]))
    (tmp_path / "mypy.ini").write_text(SETTINGS)
    humble = "--always-true" if distribution == "humble" else "--always-false"
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"),
               "--cache-dir", str(tmp_path / "cache"), humble, "HUMBLE", *CODE, str(wrong)]
    path = os.pathsep.join(map(str, (STUBS, tmp_path / "messages", ROOT / "rnea_rqt")))
    environment = {**os.environ, "MYPYPATH": path}
    environment.pop("PYTHONPATH", None)
    reported = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    errors = [line for line in reported.stdout.splitlines() if ": error: " in line]
    assert not [line for line in errors if wrong.name not in line], reported.stdout + reported.stderr
    first = len(BEGIN.splitlines()) + 1
    assert {int(line.split(":")[1]) for line in errors} == set(range(first, first + len(WRONG[distribution]))), reported.stdout


@pytest.mark.parametrize(("lists", "waiting"), [
    ({"_tasks": []}, False), ({"_tasks": ["a task"]}, True),  # Humble to Kilted
    ({"_ready_tasks": deque()}, False), ({"_ready_tasks": deque(["a task"])}, True),  # Lyrical
    ({}, True)])  # none of these: who knows
def test_executor_detects_unreported_tasks_of_any_rclpy_version(lists, waiting):
    """A task that no wait has reported is served; without a task the executor is not woken."""
    executor = SimpleNamespace(_known=[], _all=lambda *plurals: [], **lists)
    assert LeanExecutor._has_unreported_tasks(executor) is waiting


@pytest.mark.ros
def test_dynamics_node_computes_and_answers_with_the_api_of_humble(tmp_path):
    """Torques are equal to the library's bit for bit, and a service is answered."""
    with ros_domain(tmp_path) as ros:
        ros.through = [humble_stand_in.__file__]
        bench = Bench(ros, robot_description=ARM).ready()
        motion = np.random.default_rng(5).uniform(-1.0, 1.0, (4, 3))
        result, expected = bench.send(motion), Robot.from_urdf(ARM).dynamics(*motion)
        assert (list(result.effort), list(result.effort_rate)) == (expected.tau.tolist(), expected.tau_rate.tolist())
        reported = ros.call(GetParameters, f"{NODE}/get_parameters", GetParameters.Request(names=["diagnostics.period"]))
        assert [value.double_value for value in reported.values] == [0.1]
        assert bench.alive()
