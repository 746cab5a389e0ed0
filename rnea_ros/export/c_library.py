"""C library with the functions of a robot: header, source, C++ class, and a CMake and ament package around them."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from ..codegen import c, kernel
from ..codegen.program import Program, trace
from ..errors import InputError
from ..robots.robot import Robot
from .functions import ExportedFunction, exported, payload_parameters

UNITS = {"prismatic": "m, N"}
RULES = (
    "Torques are exerted by the actuators, positive along the URDF axis, gravity included. SI units: q [rad, m], qd, qdd, "
    "qddd its derivatives, tau [N m, N], tau_rate [N m/s, N/s].", "",
    "Outputs must not overlap inputs. Functions do not allocate, lock or keep state, and may be called from any thread; they "
    "have no branches except the pivoting of linear systems. Inputs are not checked: NaN or infinite inputs give NaN or "
    "infinite outputs. Angles are accurate up to 1e5 rad. On a processor with fused multiply-add, compiled with "
    "-ffp-contract=off, results are bitwise equal to those of the Python library.")
WIDTH = 110  # longest line of a comment [characters]


class CFunction(NamedTuple):
    """Exported function and its traced program."""

    function: ExportedFunction
    program: Program

    @property
    def blocks(self) -> tuple[list[c.Block], list[c.Block]]:
        return c.arguments(self.program, self.function.results)


class CLibrary(NamedTuple):
    """Functions of one robot, to be written in C and C++.

    name         : prefix of every function
    payload_link : link whose payload is an argument; None: no payload argument
    links        : links with exported poses and Jacobians
    omitted      : names of functions that are not available, because a joint moves no mass
    """

    name: str
    robot: Robot
    payload_link: str | None
    functions: list[CFunction]
    omitted: tuple[str, ...] = ()
    links: tuple[str, ...] = ()

    @property
    def joint_count(self) -> int:
        return self.robot.n

    def header(self) -> str:
        """Return the declarations with their documentation."""
        upper = self.name.upper()
        lines = [comment(self._description()), f"#ifndef {upper}_H", f"#define {upper}_H", "", "#ifdef __cplusplus",
                 'extern "C" {', "#endif", "", f"#define {upper}_JOINTS {self.joint_count}",
                 f'#define {upper}_MODEL_ID "{self.robot.model_id}"', "",
                 f"extern const char *const {self.name}_joint_names[{upper}_JOINTS];", ""]
        for traced in self.functions:
            count = sum(traced.program.operation_counts.values())
            lines += [comment([traced.function.text, f"{count} operations, independent of the inputs."]),
                      f"{self._prototype(traced)};", ""]
        return "\n".join([*lines, "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])

    def source(self) -> str:
        """Return the definitions of all functions."""
        names = ", ".join(literal(name) for name in self.robot.joint_names)
        lines = [comment([f"Robot {self.name}: see {self.name}.h."]), f'#include "{self.name}/{self.name}.h"', "",
                 c.preamble(program for _, program in self.functions),
                 f"const char *const {self.name}_joint_names[{self.name.upper()}_JOINTS] = {{{names}}};", ""]
        for function, program in self.functions:
            lines.append(c.function(program, f"{self.name}_{function.name}", function.results))
        return "\n".join(lines)

    def cpp_header(self) -> str:
        """Return a C++ class with the payload as state and one member function on std::array for each function."""
        members = [_member(self.name, traced, bool(self.payload_link)) for traced in self.functions]
        payload = [c.Block("payloads", 10)] if self.payload_link else []
        held = [f"    std::array<double, {block.size}> {block.name}_{{}};" for block in payload]
        names = f"    static const char *joint_name(std::size_t k) {{ return {self.name}_joint_names[k]; }}"
        return "\n".join([
            comment([f"Robot {self.name} in C++17: the functions of {self.name}.h on std::array. An object holds its payload "
                      "and nothing else; it allocates nothing, and may be copied and used from any thread."]),
            "#pragma once", "", "#include <array>", "#include <cstddef>", "", f'#include "{self.name}/{self.name}.h"', "",
            f"namespace {self.name} {{", "", "class Robot {", "public:",
            f"    static constexpr std::size_t joints = {self.joint_count};",
            f'    static constexpr const char *model_id = {self.name.upper()}_MODEL_ID;', names, "", *members,
            *(["private:", *held] if held else []), "};", "", f"}}  // namespace {self.name}", ""])

    @property
    def omission(self) -> str:
        """Sentence about the omitted functions; empty if there are none."""
        return f"Omitted, because a joint moves no mass: {', '.join(self.omitted)}." if self.omitted else ""

    def _prototype(self, traced: CFunction) -> str:
        return c.prototype(traced.program, f"{self.name}_{traced.function.name}", traced.function.results)

    def _description(self) -> list[str]:
        robot, tree = self.robot, self.robot.tree
        joints = [f"  {k}  {_plain(name)} ({kind}; {UNITS.get(kind, 'rad, N m')})"
                  for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types, strict=True))]
        gravity = ", ".join(f"{x:g}" for x in tree.gravity_vector)
        text = [f"Exact dynamics of robot {_plain(robot.name)} ({robot.kind}), model {robot.model_id}, "
                 "written by rnea export of rnea_ros.", "", "Joints, the order of every array of that length:", *joints]
        tree_joints = tree.joint_names
        if len(tree_joints) != robot.n:
            text += ["", "All joints of the tree, the order of inputs and outputs for all joints: "
                         + ", ".join(map(_plain, tree_joints)) + "."]
        text += ["", f"Gravity: ({gravity}) m/s^2 in the root link's frame.", *RULES]
        if self.omitted:
            text += ["", self.omission]
        if self.payload_link:
            text += ["", f"payloads: ten parameters of the payload of link {_plain(self.payload_link)}, computed by "
                      f"{self.name}_payload; ten zeros: no payload."]
        return text


def library(robot: Robot, name: str, payload_link: str | None = None, links: Iterable[str] = (),
            wanted: Callable[[str], bool] = lambda name: True) -> CLibrary:
    """Return the library of a robot with traced functions.

    name         : prefix of every function
    payload_link : link whose payload becomes an argument
    links        : links whose poses and Jacobians are exported
    wanted       : predicate that selects functions by name

    Raises InputError if the payload cannot be an argument.
    """
    named = tuple(dict.fromkeys(links))
    carrier = robot.with_payload(payload_link, 1.0) if payload_link else robot
    every = exported(carrier, named)
    if payload_link and "payloads" not in every[0].inputs:  # the payload is constant in the functions
        raise InputError(f"the payload of link '{payload_link}' cannot be an argument for a {robot.kind}. Declare it in "
                         "`payloads` of the robot file")
    functions = [function for function in every if wanted(function.name)]
    if payload_link:
        functions.insert(0, payload_parameters(robot.tree.model, payload_link))
    with np.errstate(all="ignore"):
        traced = [CFunction(one, trace(one.__call__, one.inputs)) for one in functions]
    omitted = tuple(one.function.name for one in traced if not one.program.is_finite)
    kept = [one for one in traced if one.program.is_finite]
    return CLibrary(c.identifier(name), robot, payload_link, kept, omitted, named)


def comment(paragraphs: Sequence[str]) -> str:
    """Return paragraphs as a wrapped C comment."""
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, WIDTH, break_on_hyphens=False) or [""]]
    return "/* " + "\n * ".join(lines).replace("\n * \n", "\n *\n") + " */"


def literal(name: str) -> str:
    """Return a C string literal; bytes other than letters, digits and simple punctuation become octal escapes."""
    return '"' + "".join(chr(x) if re.match(r"[A-Za-z0-9 _.,:+-]", chr(x)) else f"\\{x:03o}" for x in name.encode()) + '"'


def identifier(name: str) -> str:
    """Return a valid C prefix derived from a name."""
    word = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_").lower() or "robot"
    return (word if word[0].isalpha() else f"robot_{word}")[:40]


def sample(library: CLibrary, traced: CFunction, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Return arguments for a test: random numbers; for robots with loops, q is a closed pose."""
    robot, found = library.robot, {}
    for block in traced.blocks[0]:
        found[block.name] = rng.normal(size=block.size)
    if "q" in found and robot.loops is not None:
        found["q"] = np.array(robot.start)
    if "base_quaternion" in found:
        found["base_quaternion"] /= np.linalg.norm(found["base_quaternion"])
    if "payloads" in found:
        link = library.payload_link or ""
        carrier = robot.with_payload(link, 1.5, (0.02, -0.01, 0.05), np.eye(3) * 0.01)
        found["payloads"] = carrier.tree.payloads[link].parameters
    if "mass" in found:
        found |= {"mass": np.array([1.5]), "inertia": np.array([0.02, 0.001, 0.002, 0.03, 0.0, 0.025])}
    return found


def _member(name: str, traced: CFunction, carries: bool) -> str:
    function, (inputs, outputs) = traced.function, traced.blocks
    if function.name == "payload":
        return (f"    // {function.text}\n    void set_payload(double mass, const std::array<double, 3> &com, const "
                f"std::array<double, 6> &inertia) noexcept\n    {{\n        {name}_payload(&mass, com.data(), inertia.data(), "
                "payloads_.data());\n    }\n")
    given = [block for block in inputs if block.name != "payloads"]
    word = "".join(part.capitalize() for part in function.name.split("_"))
    result = f"std::array<double, {outputs[0].size}>" if len(outputs) == 1 else word
    lines = textwrap.wrap(function.text, WIDTH - 7, initial_indent="    // ", subsequent_indent="    // ")
    if len(outputs) > 1:
        fields = [f"        std::array<double, {block.size}> {block.name};" for block in outputs]
        lines += [f"    struct {word} {{", *fields, "    };"]
    arguments = ", ".join(f"const std::array<double, {block.size}> &{block.name}" for block in given)
    passed = [f"{block.name}_.data()" if block.name == "payloads" else f"{block.name}.data()" for block in inputs]
    passed += ["found.data()"] if len(outputs) == 1 else [f"found.{block.name}.data()" for block in outputs]
    lines += [f"    {result} {function.name}({arguments}) const noexcept", "    {", f"        {result} found;",
              f"        {name}_{function.name}({', '.join(passed)});", "        return found;", "    }", ""]
    return "\n".join(lines)


def _plain(name: str) -> str:
    """Return a name for a C comment; characters other than letters, digits and simple punctuation become question marks."""
    return re.sub(r"[^A-Za-z0-9 _.,:+-]", "?", name)


# ---------------------------------------------------------------------- package around the library


SAMPLES = 3  # reference samples of each function
TOLERANCE = 1e-9  # relative to the largest element: rounding differs between processors
TEMPLATES = {"CMakeLists.txt": "CMakeLists.txt", "package.xml": "package.xml", "README.md": "README.md",
             "example/update_loop.cpp": "update_loop.cpp"}


def package_files(library: CLibrary, seed: int = 0) -> dict[str, str]:
    """Return {path: text} of the package: library, CMake, ament, an example of a control loop, and a test.

    The reference values of the test are computed by the Python library at random samples. seed: seed of the samples
    """
    name, first = library.name, library.functions[bool(library.payload_link)]
    inputs, _ = first.blocks
    rates = [block for block in inputs if block.name != "payloads"]
    words = {"name": name, "NAME": name.upper(), "joints": str(library.joint_count), "first": first.function.name,
             "declared": "\n".join(f"    std::array<double, {block.size}> {block.name}{{}};" for block in rates),
             "given": ", ".join(f"now.{block.name}" for block in rates),
             "payload": "    controller.robot.set_payload(0.8, {{0.0, 0.0, 0.04}}, {});  // object in the gripper\n"
                        if library.payload_link else "",
             "start": _start(library, first)}
    found = {path: Template(_template(template)).substitute(words) for path, template in TEMPLATES.items()}
    return {**found, f"include/{name}/{name}.h": library.header(), f"include/{name}/{name}.hpp": library.cpp_header(),
            f"src/{name}.c": library.source(), "test/self_test.c": _self_test(library, np.random.default_rng(seed))}


def write_package(library: CLibrary, folder: Path, seed: int = 0) -> list[Path]:
    """Write all files of the package into a folder, and return their paths. Existing files are overwritten."""
    written = []
    for path, text in package_files(library, seed).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _start(library: CLibrary, first: CFunction) -> str:
    """Return C++ statements that initialize the inputs with a closed pose; empty for robots without loops."""
    if library.robot.loops is None:
        return ""
    found = sample(library, first, np.random.default_rng(0))
    closed = [name for name in ("q", "rotation", "position") if name in found]
    return "".join(f"    now.{name} = {{{{{_numbers(found[name])}}}}};\n" for name in closed)


def _self_test(library: CLibrary, rng: np.random.Generator) -> str:
    checks = [_check(library, traced, rng) for traced in library.functions]
    words = {"name": library.name, "checks": "\n".join(checks), "tolerance": repr(TOLERANCE)}
    return Template(_template("self_test.c")).substitute(words)


def _check(library: CLibrary, traced: CFunction, rng: np.random.Generator) -> str:
    """Return a C block for each sample, which calls a function and compares its outputs with reference values."""
    compiled = kernel.build(traced.function.__call__, traced.function.inputs, library.robot.tree.backend)
    inputs, outputs = traced.blocks
    text = []
    for _ in range(SAMPLES):
        given = sample(library, traced, rng)
        golden = [np.ravel(part) for part in compiled(np.concatenate([given[block.name] for block in inputs]))]
        golden = [part for part in golden if part.size]
        lines = [f"        const double {block.name}[{block.size}] = {{{_numbers(given[block.name])}}};" for block in inputs]
        for block, wanted in zip(outputs, golden, strict=True):
            lines += [f"        const double {block.name}_wanted[{block.size}] = {{{_numbers(wanted)}}};",
                      f"        double {block.name}[{block.size}];"]
        arguments = ", ".join(block.name for block in (*inputs, *outputs))
        lines.append(f"        {library.name}_{traced.function.name}({arguments});")
        lines += [f'        check("{traced.function.name}: {block.name}", {block.size}, {block.name}, {block.name}_wanted);'
                  for block in outputs]
        text.append("    {\n" + "\n".join(lines) + "\n    }")
    return "\n".join(text)


def _numbers(values: Iterable[float]) -> str:
    return ", ".join(repr(float(x)) for x in values)

