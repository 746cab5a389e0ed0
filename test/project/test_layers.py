"""Import rules of the package, read from the source: layers without cycles, and one importer per foreign package."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

import rnea_ros

PACKAGE = Path(rnea_ros.__file__).parent
# Modules that a module may import, by the first matching pattern. From the bottom up: a package imports from lines above.
GROUND = ("algebra/*", "model/*", "algorithms/*", "codegen/*", "errors")
ROBOTS = ("robots/*", "estimation/*", *GROUND)
LAYERS = {
    "errors": (),
    "algebra/*": ("algebra/*",),
    "model/*": ("model/*", "algebra/*", "errors"),
    "algorithms/inertial_parameters": GROUND,
    "algorithms/*": ("algorithms/*", "algebra/*", "model/mdh", "model/tree"),
    "codegen/*": ("codegen/*", "algebra/*", "errors"),
    "planning/*": ("planning/*", "errors"),
    "estimation/external_effort": ROBOTS,
    "estimation/*": ("estimation/*", "errors"),
    "robots/*": ("robots/*", *GROUND),
    "io/batch": ("io/*", "trajectory/*", *ROBOTS),
    "io/*": ("io/*", *ROBOTS),
    "trajectory/*": ("trajectory/*", "planning/*", *ROBOTS),
    "identification/*": ("identification/*", "io/figures", *ROBOTS),
    "query": ("identification/*", "planning/*", "trajectory/*", *ROBOTS),
    "export/*": ("export/*", *ROBOTS),
    "interop/*": ("interop/*", "export/*", *ROBOTS),
    "gait/*": ("gait/*", "planning/*", "io/*", *ROBOTS),
    "execution/*": ("execution/*", "trajectory/*", *ROBOTS),
    "sim/*": ("sim/*", *ROBOTS),
    "nodes/common/executor": (),
    "nodes/common/cdr": ("errors",),
    "nodes/common/*": ("nodes/common/*", "__init__", "execution/goal", *ROBOTS),
    "nodes/dynamics/*": ("nodes/dynamics/*", "nodes/common/*", "__init__", "execution/*", "trajectory/*", "identification/*",
                         *ROBOTS),
    "nodes/scaling/*": ("nodes/scaling/*", "nodes/common/*", "__init__", "execution/*", "trajectory/*", *ROBOTS),
    "nodes/query_node": ("nodes/common/*", "__init__", "query", "planning/*", *ROBOTS),
    "node_commands": ("model/*", "errors"),
    "demo/nodes/*": ("demo/*", "sim/*", "nodes/*", "__init__", *(LIBRARY := (
        "execution/*", "io/*", "trajectory/*", *ROBOTS))),
    "demo/*": ("demo/*", "sim/*", *LIBRARY),
    "*": ("[!n]*",),  # anything but nodes
}
ROS = ("rclpy", "rcl_interfaces", "builtin_interfaces", "ament_index_python", "launch", "launch_ros", "tf2_ros", "*_msgs",
       "*_srvs")
# Foreign packages, and the modules that may import them; numpy is everywhere.
IMPORTERS = {
    "numpy": ("*",), "llvmlite": ("codegen/llvm_engine",), "lxml": ("model/urdf_reader", "model/urdf"),
    "yaml": ("model/yaml_file",), "jsonschema": ("model/robot_file_validation",),
    "argcomplete": ("cli/main",), "matplotlib": ("io/figures",), "mpl_toolkits": ("io/figures",),
    "mujoco": ("sim/scene",), "toppra": ("demo/timing_trials",), "casadi": ("interop/casadi", "planning/ipopt"),
    "scipy": ("identification/*", "planning/bspline", "planning/condensed"),
    "rosbags": ("io/bags",), "pyarrow": ("io/files",), "distributed": ("io/batch",),
    "torch": ("interop/torch",), "jax": ("interop/jax",),
    **dict.fromkeys(ROS, ("nodes/*", "demo/nodes/*")),
}
# Imported where they are used; see test below.
LAZY = ("matplotlib", "mpl_toolkits", "scipy", "casadi", "llvmlite", "mujoco", "toppra", "rosbags", "pyarrow", "distributed",
        "argcomplete", "torch", "jax")
LATE = ("jsonschema", "yaml")  # needed, but only where a robot file is given
WITHIN_FUNCTIONS = {"demo": ("demo/processes",)}  # where there is ROS
# Rooms of this package that a module names in strings: modules that it starts in other processes, or imports on demand.
IN_STRINGS = {"cli/main": ("cli",), "node_commands": ("nodes", "demo")}


class Import(NamedTuple):
    name: str  # module of this package with slashes, or a foreign package
    own: bool
    lazy: bool  # inside a function
    typing: bool  # under TYPE_CHECKING


@cache
def modules() -> dict[str, ast.Module]:
    return {file.relative_to(PACKAGE).with_suffix("").as_posix(): ast.parse(file.read_text(encoding="utf-8"))
            for file in sorted(PACKAGE.rglob("*.py")) if "__pycache__" not in file.parts}


def resolved(node: ast.stmt, module: str):
    """Return (name, own) of each module of an import statement."""
    if isinstance(node, ast.Import):
        return [_absolute(alias.name.split(".")) for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    start = (node.module or "").split(".") if node.module else []
    if node.level:
        start = ["rnea_ros", *module.split("/")[:-1][:len(module.split("/")) - node.level], *start]
    return [_absolute([*start, alias.name]) for alias in node.names]


def _absolute(parts: list[str]) -> tuple[str, bool]:
    if parts[0] != "rnea_ros":
        return parts[0], False
    inner = parts[1:]
    while inner and "/".join(inner) not in modules() and "/".join([*inner, "__init__"]) not in modules():
        inner = inner[:-1]  # the remaining parts are a name inside a module
    path = "/".join(inner)
    return (path if path in modules() else f"{path}/__init__".lstrip("/")), True


@cache
def imports(module: str) -> tuple[Import, ...]:
    found = []

    def walk(node, lazy, typing):
        for child in ast.iter_child_nodes(node):
            found.extend(Import(name, own, lazy, typing) for name, own in resolved(child, module))
            walk(child, lazy or isinstance(child, (ast.FunctionDef, ast.Lambda)),
                 typing or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test)))

    walk(modules()[module], False, False)
    return tuple(found)


def allowed(patterns, name):
    return any(fnmatch(name, pattern) for pattern in patterns)


def test_import_parser_finds_own_lazy_and_typing_imports():
    assert Import("algebra/vectors", True, False, False) in imports("model/mdh")
    assert Import("algorithms/torque_rate", True, False, False) in imports("robots/tree")
    assert Import("model/tree", True, False, False) in imports("algorithms/joint_dynamics")
    assert Import("codegen/llvm_engine", True, True, False) in imports("codegen/kernel")
    assert Import("lxml", False, False, True) in imports("model/urdf_validation")
    assert Import("robots/robot", True, False, True) in imports("__init__")
    assert len(modules()) > 30


def test_modules_import_only_allowed_packages():
    wrong = []
    for module in modules():
        patterns = next(patterns for pattern, patterns in LAYERS.items() if fnmatch(module, pattern))
        for found in imports(module):
            excused = found.lazy and module in WITHIN_FUNCTIONS.get(found.name.split("/")[0], ())
            if found.own and not found.typing and not excused:
                name = found.name.removesuffix("/__init__")
                if not (allowed(patterns, name) or allowed(patterns, f"{name}/")):
                    wrong.append(f"{module} imports {found.name}")
    assert not wrong


def test_module_names_in_strings_are_allowed_ones_only():
    wrong = []
    for module, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                for room in re.findall(r"^rnea_ros\.(\w+)\.", node.value):
                    if room not in IN_STRINGS.get(module, ()):
                        wrong.append(f"{module} names rnea_ros.{room}")
    assert not wrong


def test_time_laws_do_not_import_robots():
    """Dynamics are passed as functions of arrays, so that other systems can use the time laws."""
    names = ("braking", "chunk_spline", "constraints", "interior_point", "limit_check", "path", "rolling_trajectory",
             "sample_kernels", "scaled_plan", "speed_factor", "time_law", "time_optimal", "time_scaling", "trajectory_scaler")
    allowed_modules = (*(f"trajectory/{name}" for name in names), "codegen/*", "errors")
    wrong = [f"{name} imports {found.name}" for name in names for found in imports(f"trajectory/{name}")
             if found.own and not allowed(allowed_modules, found.name) and found.name != "codegen/__init__"]
    assert not wrong


def test_foreign_packages_are_imported_in_their_modules_only():
    wrong = []
    for module in modules():
        for found in imports(module):
            if found.own or found.typing or found.name in sys.stdlib_module_names:
                continue
            importers = next((importers for name, importers in IMPORTERS.items() if fnmatch(found.name, name)), ())
            if not allowed(importers, module):
                wrong.append(f"{module} imports {found.name}")
            if found.name in LAZY and module != "codegen/llvm_engine" and not found.lazy:  # imported where it is used
                wrong.append(f"{module} imports {found.name} outside of a function")
    assert not wrong


def test_imports_have_no_cycles():
    graph = {module: {found.name for found in imports(module) if found.own and not found.lazy and not found.typing}
             for module in modules()}
    done: set[str] = set()
    while free := {module for module, needs in graph.items() if module not in done and needs <= done | {"__init__"}}:
        done |= free
    assert not set(graph) - done, "these import each other in a circle"


def test_importing_the_package_loads_no_optional_dependency():
    code = "import sys, rnea_ros; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert not set(run.stdout.split()) & {*LAZY, *LATE, "xacro", "rclpy", "rnea_msgs", "sensor_msgs", "pinocchio"}
    assert not run.stderr


def test_planning_is_imported_on_first_use_only():
    code = ("import sys, rnea_ros; before = [name for name in sys.modules if 'rnea_ros.planning' in name]; "
            "rnea_ros.plan_motion; print(before, 'rnea_ros.planning.planner' in sys.modules, 'plan_motion' in dir(rnea_ros))")
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=PACKAGE.parent)
    assert run.stdout.split("\n")[0] == "[] True True"
    with pytest.raises(AttributeError, match="no attribute 'plan_motions'"):
        rnea_ros.plan_motions  # noqa: B018


def test_only_one_module_executes_generated_python():
    for module, tree in modules().items():
        called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
        if module != "codegen/python":
            assert not called & {"exec", "eval", "compile", "__import__"}, module


def test_every_module_can_be_imported_and_its_public_names_exist():
    has_ros = importlib.util.find_spec("rclpy") is not None
    wrong = []
    for module in modules():
        if "nodes/" in module and not has_ros:
            continue
        loaded = importlib.import_module(f"rnea_ros.{module.removesuffix('__init__').replace('/', '.')}".rstrip("."))
        names = getattr(loaded, "__all__", ())
        wrong += [f"{module}: {name}" for name in names if not hasattr(loaded, name) or names.count(name) > 1]
    assert not wrong
