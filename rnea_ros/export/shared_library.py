"""Shared library of one robot behind the C ABI of templates/rnea_robot_api.h: source text and compilation.

The exported functions have as many arguments as their robot needs. Here each is wrapped in the signature that the ABI gives it
for every robot: inputs that a robot lacks are ignored, outputs that the ABI lacks are dropped.
"""

from __future__ import annotations

import math
import subprocess
import textwrap
from collections.abc import Iterable, Sequence
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from ..codegen import c_compiler
from ..errors import InputError, some
from ..model.drives import CONTENTS, QUANTITIES, UNKNOWN, EffortConvention
from .c_library import WIDTH, CFunction, CLibrary, comment, literal
from .functions import link_word

SINGULAR = 1e7  # condition of loops that counts as an indicator of 1
HEADER = "rnea_robot_api.h"
FLAGS = (*c_compiler.FLAGS, "-fvisibility=hidden")
COMPILE_TIMEOUT_S = 600.0
JOINT_TYPES = ("revolute", "continuous", "prismatic")
LIMITS = ("lower", "upper", "velocity", "acceleration", "jerk", "effort", "effort_rate", "commanded_effort_rate")


class Slot(NamedTuple):
    """Function pointer of the ABI.

    inputs, outputs : names of its arguments, in their order
    sources         : exported functions that can serve it, in the order of preference
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    sources: tuple[str, ...]


MOTION = ("q", "qd", "qdd", "qddd", "payload")
SLOTS = {
    "torque_and_rate": Slot(MOTION, ("tau", "tau_rate", "indicator"), ("torque_and_rate",)),
    "inverse_dynamics": Slot(("q", "qd", "qdd", "payload"), ("tau",), ("inverse_dynamics", "torque_and_rate")),
    "gravity": Slot(("q", "payload"), ("tau",), ("gravity", "gravity_and_rate")),
    "gravity_and_rate": Slot(("q", "qd", "payload"), ("tau", "tau_rate"), ("gravity_and_rate",)),
    "bias": Slot(("q", "qd", "payload"), ("tau",), ("bias", "torque_and_rate")),
    "friction": Slot(("qd", "qdd"), ("tau", "tau_rate"), ("friction",)),
    "mass_matrix": Slot(("q", "payload"), ("M",), ("mass_matrix",)),
    "forward_dynamics": Slot(("q", "qd", "tau", "payload"), ("qdd",), ("forward_dynamics",)),
    "sensitivities": Slot(("q", "qd", "qdd", "payload"), ("dtau_dq", "dtau_dqd", "dtau_dqdd"), ("sensitivities",)),
    "rate_sensitivities": Slot(MOTION, ("drate_dq", "drate_dqd", "drate_dqdd", "drate_dqddd"), ("rate_sensitivities",)),
    "close_step": Slot(("q",), ("q_closed", "gap", "indicator"), ("close_step",)),
    "tree_motion": Slot(("q", "qd", "qdd", "qddd"), ("qd_all", "qdd_all", "qddd_all"), ("torque_and_rate",)),
}


def write(library: CLibrary, folder: Path) -> list[Path]:
    """Write header and source of the ABI beside an exported library."""
    header = (resources.files(__package__) / "templates" / HEADER).read_text(encoding="utf-8")
    written = {f"include/{library.name}/{HEADER}": header, f"src/{library.name}_api.c": source(library)}
    for path, text in written.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
    return [folder / path for path in written]


def build(library: CLibrary, folder: Path, portable: bool = False) -> Path:
    """Compile lib<name>.so in the folder of a written library and return its path; portable as of `compiled`."""
    return compiled(folder, library.name, (f"{library.name}.c", f"{library.name}_api.c"), portable)


def compiled(folder: Path, name: str, sources: Sequence[str], portable: bool = False) -> Path:
    """Compile lib<name>.so of sources in src/ of an export's folder, and return its path.

    portable : for any processor of this architecture; else for this one, with the numbers of Python to the last bit
    """
    if not (compiler := c_compiler.compiler()):
        raise InputError("no C compiler found for the shared library: install cc, gcc or clang, or set the environment "
                         "variable CC; or export the sources alone and compile them elsewhere")
    target = folder / f"lib{name}.so"
    command = [compiler, *FLAGS, *(() if portable else ("-march=native",)), "-Iinclude", "-o", target.name,
               *(f"src/{source}" for source in sources), "-lm"]
    try:
        subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=COMPILE_TIMEOUT_S,
                       stdin=subprocess.DEVNULL)
    except subprocess.SubprocessError as error:
        output = (getattr(error, "stderr", "") or str(error)).strip()[:400]
        raise InputError(f"{compiler} could not compile {target}: {output}") from error
    return target


def source(library: CLibrary) -> str:
    """Return the source of the ABI: wrappers, tables and rnea_robot()."""
    robot, name, n = library.robot, library.name, library.joint_count
    traced = {one.function.name: one for one in library.functions}
    wrappers, fields = [], {}
    for slot_name, slot in SLOTS.items():
        if text := _wrapper(name, slot_name, slot, traced):
            wrappers.append(text)
            fields[slot_name] = f"{name}_abi_{slot_name}"
    if library.payload_link:
        wrappers.append(f"static void {name}_abi_payload_parameters(double mass, const double *com, const double *inertia,\n"
                        f"        double *payload)\n{{\n    {name}_payload(&mass, com, inertia, payload);\n}}\n")
        fields["payload_parameters"] = f"{name}_abi_payload_parameters"
    links = _links(library, traced)
    tree = robot.tree.joint_names if robot.loops is not None else robot.joint_names
    active = [tree.index(joint) for joint in robot.joint_names]
    convention = robot.tree.model.efforts
    columns = [robot.tree.joint_names.index(joint) for joint in robot.joint_names]
    tables = [
        _strings("joint_names", robot.joint_names), _strings("tree_joint_names", tree),
        _integers("joint_types", [JOINT_TYPES.index(kind) for kind in robot.joint_types]), _integers("active", active),
        _doubles("start_pose", robot.start if robot.loops is not None else [0.0] * n),
        _doubles("gravity_vector", robot.gravity_vector),
        *(_doubles(limit, getattr(robot.limits, limit)) for limit in LIMITS),
        *(_doubles(f"{role}_per_unit", getattr(convention, role).of(columns).per_unit or [1.0] * n)
          for role in ("commanded", "measured")),
        *(["static const rnea_link links[] = {", *links, "};"] if links else [])]
    values = {
        "abi": "RNEA_ROBOT_ABI", "size": "sizeof(rnea_robot_api)", "robot_name": literal(robot.name),
        "model_id": literal(robot.model_id), "exporter": literal(f"rnea_ros {version('rnea_ros')}"),
        "payload_link": literal(library.payload_link) if library.payload_link else "NULL",
        "root_link": literal(next(iter(robot.links))), "n": n, "n_q": len(tree), "link_count": len(links),
        "has_loops": int(robot.loops is not None),
        **{table: table for table in ("joint_names", "tree_joint_names", "joint_types", "active", "start_pose",
                                      "gravity_vector", *LIMITS)},
        "links": "links" if links else "NULL", "commanded": _effort("commanded", convention.commanded),
        "measured": _effort("measured", convention.measured), **fields}
    rows = [f"    .{field} = {value}," for field, value in values.items()]
    return "\n".join([
        comment([f"C ABI of robot {name}: see {HEADER}."]), "#include <math.h>", "#include <stddef.h>", "",
        f'#include "{name}/{name}.h"', f'#include "{name}/{HEADER}"', "", *wrappers, *tables, "",
        "static const rnea_robot_api api = {", *rows, "};", "",
        "#if defined(__GNUC__)", '__attribute__((visibility("default")))', "#endif",
        "const rnea_robot_api *rnea_robot(void)", "{", "    return &api;", "}", ""])


def check(library: CLibrary) -> None:
    """Raise InputError for robots whose functions need more, or give more, than the ABI has."""
    robot, n = library.robot, library.joint_count
    n_q = robot.tree.n if robot.loops is not None else n
    sizes = {"q": n_q, "qd": n, "qdd": n, "qddd": n, "tau": n, "tau_rate": n, "payloads": 10}
    reason = "" if n else "it has no joints"
    for traced in library.functions:
        if traced.function.name in ("torque_and_rate", "gravity_and_rate", "inverse_dynamics"):
            inputs, outputs = traced.blocks
            if foreign := [block.name for block in inputs if sizes.get(block.name) != block.size]:
                reason = f"{traced.function.name} takes {some(foreign)} as no other robot does"
            elif any(sizes.get(block.name, block.size) != block.size for block in outputs):
                reason = "it has more torques than joints"
    if reason or robot.has_moving_base:
        raise InputError(f"robot '{robot.name}' is a {robot.kind}: shared libraries are for trees and loops on a held base "
                         f"whose torques follow from q to qddd, and {reason or 'this base moves'}; export the sources alone "
                         "and compile them")


# ---------------------------------------------------------------------- wrappers


def _wrapper(name: str, slot_name: str, slot: Slot, traced: dict[str, CFunction]) -> str:
    """Return the definition of a function of the ABI by the first exported function that can serve it; empty if none can."""
    for function in slot.sources:
        if (one := traced.get(function)) is not None:
            inputs, outputs = one.blocks
            sizes = {_abi_name(block.name): block.size for block in outputs}
            if all(output in sizes or output == "indicator" for output in slot.outputs):
                break
    else:
        return ""
    arguments = ", ".join([*(f"const double *{word}" for word in slot.inputs), *(f"double *{word}" for word in slot.outputs)])
    lines, passed = [], []
    for block in inputs:
        if block.name == "payloads":
            lines.append("    static const double nothing[10] = {0.0};")
            passed.append("payload ? payload : nothing")
        elif block.name in slot.inputs:
            passed.append(block.name)
        else:
            lines.append(f"    static const double zero_{block.name}[{block.size}] = {{0.0}};")
            passed.append(f"zero_{block.name}")
    for block in outputs:
        word = _abi_name(block.name)
        if word not in slot.outputs:
            lines.append(f"    double unused_{block.name}[{block.size}];")
        passed.append(word if word in slot.outputs else f"unused_{block.name}")
    used = {block.name for block in inputs} | ({"payload"} if any(block.name == "payloads" for block in inputs) else set())
    lines += [f"    (void){word};" for word in slot.inputs if word not in used]
    lines.append(f"    {name}_{one.function.name}({', '.join(passed)});")
    if "indicator" in slot.outputs and "indicator" not in sizes:
        lines.append("    indicator[0] = 0.0;")
    elif any(block.name == "condition" for block in outputs) and "indicator" in slot.outputs:
        lines.append(f"    indicator[0] /= {SINGULAR!r};")
    body = "\n".join(lines)
    declared = textwrap.fill(f"static void {name}_abi_{slot_name}({arguments})", WIDTH, subsequent_indent=" " * 8)
    return f"{declared}\n{{\n{body}\n}}\n"


def _abi_name(output: str) -> str:
    return "indicator" if output == "condition" else output


def _links(library: CLibrary, traced: dict[str, CFunction]) -> list[str]:
    """Return the rows of the table of links."""
    rows = []
    for link in library.links:
        word = link_word(link)
        found = [f"{library.name}_{function}_{word}" if f"{function}_{word}" in traced else "NULL"
                 for function in ("pose", "jacobian", "jacobian_rate")]
        if found != ["NULL"] * 3:
            rows.append(f"    {{{literal(link)}, {', '.join(found)}}},")
    return rows


# ---------------------------------------------------------------------- tables


def _strings(name: str, values: Iterable[str]) -> str:
    return f"static const char *const {name}[] = {{{', '.join(map(literal, values))}}};"


def _integers(name: str, values: Iterable[int]) -> str:
    return f"static const int32_t {name}[] = {{{', '.join(map(str, values))}}};"


def _doubles(name: str, values: Iterable[float]) -> str:
    return f"static const double {name}[] = {{{', '.join(_number(float(x)) for x in values)}}};"


def _number(x: float) -> str:
    if math.isfinite(x):
        return repr(x)
    return "NAN" if math.isnan(x) else "HUGE_VAL" if x > 0 else "-HUGE_VAL"


def _effort(role: str, convention: EffortConvention) -> str:
    quantity = len(QUANTITIES) if convention.quantity == UNKNOWN else QUANTITIES.index(convention.quantity)
    return f"{{{CONTENTS.index(convention.contains)}, {quantity}, {role}_per_unit}}"
