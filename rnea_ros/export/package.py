"""A package around the C library: CMake, ament, an example of a controller's loop, and a test with golden numbers."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from string import Template

import numpy as np

from ..codegen import kernel
from .c_library import CFunction, CLibrary, sample

SAMPLES = 3  # golden ones, of each function
TOLERANCE = 1e-9  # of the largest number of an array: other roundings, without fused multiply-add, on any processor
TEMPLATES = {"CMakeLists.txt": "CMakeLists.txt", "package.xml": "package.xml", "README.md": "README.md",
             "example/update_loop.cpp": "update_loop.cpp"}


def files(library: CLibrary, seed: int = 0) -> dict[str, str]:
    """{path: text} of the whole package; golden numbers are those of the Python library at poses by the seed."""
    name, first = library.name, library.functions[bool(library.payload_link)]
    inputs, _ = first.blocks
    rates = [block for block in inputs if block.name != "payloads"]
    words = {"name": name, "NAME": name.upper(), "joints": str(library.joint_count), "first": first.function.name,
             "declared": "\n".join(f"    std::array<double, {block.size}> {block.name}{{}};" for block in rates),
             "given": ", ".join(f"now.{block.name}" for block in rates),
             "payload": "    controller.robot.set_payload(0.8, {{0.0, 0.0, 0.04}}, {});  // what the gripper holds\n"
                        if library.payload_link else "",
             "start": _start(library, first)}
    found = {path: Template(_template(template)).substitute(words) for path, template in TEMPLATES.items()}
    return {**found, f"include/{name}/{name}.h": library.header(), f"include/{name}/{name}.hpp": library.cpp_header(),
            f"src/{name}.c": library.source(), "test/self_test.c": _self_test(library, np.random.default_rng(seed))}


def write(library: CLibrary, folder: Path, seed: int = 0) -> list[Path]:
    """All files, beneath a folder; those of that name are overwritten, others are left alone."""
    written = []
    for path, text in files(library, seed).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written.append(target)
    return written


def _template(name: str) -> str:
    return (resources.files(__package__) / "templates" / name).read_text(encoding="utf-8")


def _start(library: CLibrary, first: CFunction) -> str:
    """Return the initial values of inputs that must be consistent poses."""
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
    """Return calls of a function with reference results, a block of C for each sample."""
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

