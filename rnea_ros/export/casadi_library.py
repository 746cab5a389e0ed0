"""Shared library of a robot's functions for CasADi: values, Jacobians, gradients and Hessians with their sparsity.

CasADi loads it by `casadi.external(name, file)`; code that CasADi generates, as for acados, is linked with it. For a function
f there are, by CasADi's naming: f, jac_f (all partial derivatives), adj1_f (the gradient of the sum of seeds times results)
and jac_adj1_f (its derivatives, the Hessian, which an exact Newton method asks for). Inputs and outputs have names and
sparsity; zeros that the structure of the robot decides are no entries. Nothing allocates or keeps a state: CasADi may
evaluate in parallel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..codegen import c
from ..codegen.program import Program, split, trace
from ..errors import InputError, some
from ..robots.kernel_functions import KERNEL_FUNCTIONS
from .c_library import CFunction, CLibrary, comment, literal
from .shared_library import compiled

DEFAULT = ("torque_and_rate", "inverse_dynamics", "forward_dynamics", "pose_")  # names, or their beginnings, by default
TABLES = ("payload", "sensitivities", "rate_sensitivities")  # derivatives already, or no function of the motion
# Tables (closed form) that are the rows of a Jacobian for the inputs q, qd, qdd, qddd, as far as they have as many.
CLOSED_FORMS = {"inverse_dynamics": ("sensitivities",), "torque_and_rate": ("sensitivities", "rate_sensitivities")}
MAX_JACOBIAN = 300_000  # operations times inputs; longer ones take minutes to trace and compile
MAX_HESSIAN = 100_000  # operations
ABI = """#ifndef casadi_int
#define casadi_int long long int
#endif
#ifdef _WIN32
#define RNEA_EXPORT __declspec(dllexport)
#else
#define RNEA_EXPORT __attribute__((visibility("default")))
#endif
"""


class Pattern(NamedTuple):
    """Shape and sparsity of an input or output in compressed columns.

    entries : (row, column) of each nonzero, column by column; None where all are
    """

    name: str
    rows: int
    columns: int = 1
    entries: tuple[tuple[int, int], ...] | None = None

    @property
    def size(self) -> int:
        """Number of nonzeros."""
        return self.rows * self.columns if self.entries is None else len(self.entries)

    def compressed(self) -> list[int]:
        """Return CasADi's numbers: rows, columns, then 1 if dense, or starts of columns and rows of nonzeros."""
        if self.entries is None:
            return [self.rows, self.columns, 1]
        starts = [sum(column < k for _, column in self.entries) for k in range(self.columns + 1)]
        return [self.rows, self.columns, *starts, *(row for row, _ in self.entries)]


class Part(NamedTuple):
    """Program that gives some outputs of a function, its results side by side in the order of these outputs."""

    program: Program
    outputs: tuple[int, ...]


class CasadiFunction(NamedTuple):
    """Function as CasADi loads it. Parts are evaluated as far as one of their outputs is wanted."""

    name: str
    inputs: tuple[Pattern, ...]
    outputs: tuple[Pattern, ...]
    parts: tuple[Part, ...]

    @property
    def operations(self) -> int:
        """Number of operations if all outputs are wanted."""
        return sum(part.program.operation_counts.total() for part in self.parts)

    def source(self) -> str:
        """Return the definitions in C: parts, evaluation, and what CasADi asks about the function."""
        text = [_part_source(f"part{k}_{self.name}", self, part) for k, part in enumerate(self.parts)]
        return "\n".join([*text, *self._evaluation(), *self._description()])

    def _evaluation(self) -> list[str]:
        lines = [f"RNEA_EXPORT int {self.name}(const double **arg, double **res, casadi_int *iw, double *w, int mem)", "{",
                 f"    static const double zeros[{max(1, *(x.size for x in self.inputs))}] = {{0.0}};",
                 "    (void)iw;", "    (void)mem;", "    (void)w;", "    (void)zeros;"]
        scratch = 0
        for k, part in enumerate(self.parts):
            passed = [f"arg[{i}] ? arg[{i}] : zeros" for i, x in enumerate(self.inputs) if x.name in _blocks(part.program)]
            wanted = [number for number in part.outputs if self.outputs[number].size]
            for number in wanted:
                passed.append(f"res[{number}] ? res[{number}] : w + {scratch}")
                scratch += self.outputs[number].size
            if wanted:
                lines += [f"    if ({' || '.join(f'res[{number}]' for number in wanted)})",
                          f"        part{k}_{self.name}({', '.join(passed)});"]
        return [*lines, "    return 0;", "}", ""]

    def _description(self) -> list[str]:
        name, ends = self.name, {"in": self.inputs, "out": self.outputs}
        lines = []
        for end, patterns in ends.items():
            lines += [f"RNEA_EXPORT casadi_int {name}_n_{end}(void) {{ return {len(patterns)}; }}",
                      f"RNEA_EXPORT const char *{name}_name_{end}(casadi_int i)", "{",
                      f"    static const char *const names[] = {{{', '.join(literal(x.name) for x in patterns)}}};",
                      f"    return i < 0 || i >= {len(patterns)} ? 0 : names[i];", "}",
                      f"RNEA_EXPORT const casadi_int *{name}_sparsity_{end}(casadi_int i)", "{"]
            for k, pattern in enumerate(patterns):
                lines.append(f"    static const casadi_int s{k}[] = {{{', '.join(map(str, pattern.compressed()))}}};")
            every = ", ".join(f"s{k}" for k in range(len(patterns)))
            lines += [f"    static const casadi_int *const patterns[] = {{{every}}};",
                      f"    return i < 0 || i >= {len(patterns)} ? 0 : patterns[i];", "}"]
        size = sum(pattern.size for pattern in self.outputs)
        sizes = ", ".join(f"casadi_int *{word}" for word in ("sz_arg", "sz_res", "sz_iw", "sz_w"))
        return [*lines, f"RNEA_EXPORT int {name}_work({sizes})",
                "{", *(f"    if ({word})\n        *{word} = {count};" for word, count in
                       (("sz_arg", len(self.inputs)), ("sz_res", len(self.outputs)), ("sz_iw", 0), ("sz_w", size))),
                "    return 0;", "}", ""]


class CasadiLibrary(NamedTuple):
    """Functions of one robot for CasADi. omitted: a sentence for each that has no exact Hessian."""

    name: str
    functions: tuple[CasadiFunction, ...]
    omitted: tuple[str, ...]
    story: str

    def source(self) -> str:
        """Return the text in C, which needs nothing but the C library."""
        programs = [part.program for function in self.functions for part in function.parts]
        return "\n".join([comment([self.story]), c.preamble(programs), ABI, *(one.source() for one in self.functions)])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the functions for `casadi.external`, without those of derivatives."""
        return tuple(one.name for one in self.functions if not one.name.startswith(("jac_", "adj1_")))


def library(source: CLibrary, chosen: bool = False) -> CasadiLibrary:
    """Return a robot's functions for CasADi. chosen: all functions of the source are wanted, instead of DEFAULT."""
    robot = source.robot.with_payload(source.payload_link, 1.0) if source.payload_link else source.robot
    functions, omitted, refused = [], [], []
    for traced in source.functions:
        name = traced.function.name
        if name in TABLES or not (chosen or name.startswith(DEFAULT)):
            continue
        size = traced.program.operation_counts.total() * traced.program.input_size
        if size > MAX_JACOBIAN or not traced.program.can_differentiate:
            refused.append(name)
            continue
        closed = CLOSED_FORMS.get(name, ()) if robot.is_fixed_tree else ()
        tables = [robot.tree.store.traced(KERNEL_FUNCTIONS[table], by_paper=False)[0] for table in closed]
        made = _differentiated(f"{source.name}_{name}", traced, tables)
        functions += made
        if len(made) < 4:
            omitted.append(f"{source.name}_{name} has no exact Hessian: it would take more than {MAX_HESSIAN} operations")
    if not functions or (chosen and refused):
        raise InputError(f"robot '{source.robot.name}' is a {source.robot.kind}: CasADi gets functions of the motion "
                         f"without linear systems that need pivots, of at most {MAX_JACOBIAN} operations times inputs; that "
                         f"leaves out {some(refused) or 'all that were chosen'}. Use a robot with fewer loops and contacts, "
                         "or export without CasADi")
    joints = ", ".join(source.robot.joint_names)
    story = (f"Functions of robot {source.name} ({source.robot.kind}), model {source.robot.model_id}, for casadi.external: "
             f"{', '.join(one.name for one in functions)}. Joints, in the order of all arrays: {joints}. SI units.")
    return CasadiLibrary(source.name, tuple(functions), tuple(omitted), story)


def write(casadi: CasadiLibrary, folder: Path, portable: bool = False) -> list[Path]:
    """Write and compile the library in the folder of an export; return source and lib<name>_casadi.so."""
    text = folder / "src" / f"{casadi.name}_casadi.c"
    text.write_text(casadi.source(), encoding="utf-8")
    return [text, compiled(folder, f"{casadi.name}_casadi", [text.name], portable)]


# ---------------------------------------------------------------------- functions with derivatives


def _differentiated(name: str, traced: CFunction, tables: Sequence[Callable[..., Any]]) -> list[CasadiFunction]:
    """Return a function, its Jacobian, its gradient and, unless that is too long, its Hessian."""
    program, names = _by_columns(traced.program), traced.function.results
    inputs = tuple(Pattern(block, size) for block, size in program.inputs.items())
    shapes = map(_rows_and_columns, traced.program.outputs)
    outputs = tuple(Pattern(result, *shape) for result, shape in zip(names, shapes, strict=True))
    empty = tuple(map(_unread, outputs))
    value = CasadiFunction(name, inputs, outputs, (Part(program, tuple(range(len(outputs)))),))

    table = _jacobian(traced, program, tables)
    found = [value, _tabulated(f"jac_{name}", (*inputs, *empty), outputs, inputs, [(table, range(len(inputs)))])]

    seeds = tuple(pattern._replace(name=f"adj_{pattern.name}") for pattern in outputs)
    given = {**program.inputs, **{pattern.name: pattern.size for pattern in seeds}}

    def flat(blocks: Mapping[str, Any], patterns: Sequence[Pattern]) -> Any:
        return np.concatenate([blocks[pattern.name] for pattern in patterns])

    def gradient(**blocks: Any) -> list[Any]:
        return split(program.gradient(flat(blocks, inputs), flat(blocks, seeds)), program.inputs.values())

    def hessian(**blocks: Any) -> list[Any]:
        return [program.hessian(flat(blocks, inputs), flat(blocks, seeds))]

    turned = tuple(pattern._replace(name=f"adj_{pattern.name}") for pattern in inputs)
    adjoints = CasadiFunction(f"adj1_{name}", (*inputs, *empty, *seeds), turned,
                              (Part(trace(gradient, given), tuple(range(len(inputs)))),))
    found.append(adjoints)
    if adjoints.operations * program.input_size > 10 * MAX_HESSIAN:  # sparsity saves less than that
        return found
    second = trace(hessian, given)
    if second.operation_counts.total() <= MAX_HESSIAN:
        first, last = len(inputs), len(inputs) + len(empty)
        blocks = [(second, range(first)), (_transposed(table), range(last, last + len(seeds)))]
        found.append(_tabulated(f"jac_{adjoints.name}", (*adjoints.inputs, *map(_unread, turned)), turned, adjoints.inputs,
                                blocks))
    return found


def _rows_and_columns(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return the shape of a matrix; vectors are columns."""
    return (shape[0], shape[1]) if len(shape) == 2 else (prod(shape), 1)


def _unread(pattern: Pattern) -> Pattern:
    """Return the input of a derivative for a result of the function, of which it reads nothing."""
    return pattern._replace(name=f"out_{pattern.name}", entries=())


def _by_columns(program: Program) -> Program:
    """Return the program with every output flat, matrices column by column, as CasADi stores them."""
    numbers, start = [], 0
    for shape in program.outputs:
        block = np.array(program.results[start:start + prod(shape)]).reshape(shape)
        numbers += block.T.ravel().tolist()
        start += prod(shape)
    return replace(program, results=tuple(numbers), outputs=tuple((prod(shape),) for shape in program.outputs))


def _jacobian(traced: CFunction, program: Program, tables: Sequence[Callable[..., Any]]) -> Program:
    """Return the program of the whole Jacobian (results, inputs): of the closed form and of the differentiated program, the
    shorter one.
    """
    def forward(**blocks: Any) -> list[Any]:
        return [program.jacobian(np.concatenate(list(blocks.values())))]

    def closed(**blocks: Any) -> list[Any]:
        x, motion = np.concatenate(list(blocks.values())), [name for name in blocks if name != "payloads"]
        found = np.zeros((len(program.results), program.input_size), dtype=object)
        starts = dict(zip(program.inputs, np.cumsum([0, *program.inputs.values()]).tolist(), strict=False))
        for row, table in enumerate(tables):
            count = len(motion) + row + 1 - len(tables)  # the torque does not read the last derivative
            read = {name: block for name, block in blocks.items() if name == "payloads" or name in motion[:count]}
            for name, entries in zip(motion, table(**read), strict=False):
                n = len(entries)
                found[row * n:(row + 1) * n, starts[name]:starts[name] + n] = entries
        for name in set(blocks) - set(motion):
            columns = range(starts[name], starts[name] + program.inputs[name])
            found[:, columns] = program.jacobian(x, columns)
        return [found]

    candidates = [trace(function, program.inputs) for function in ((forward, closed) if tables else (forward,))]
    return min(candidates, key=lambda one: one.operation_counts.total())


def _transposed(program: Program) -> Program:
    (shape,) = program.outputs
    return replace(program, results=tuple(np.array(program.results).reshape(shape).T.ravel().tolist()), outputs=(shape[::-1],))


def _tabulated(name: str, inputs: Sequence[Pattern], rows: Sequence[Pattern], columns: Sequence[Pattern],
               tables: Sequence[tuple[Program, range]]) -> CasadiFunction:
    """Return a Jacobian: an output for each of rows times each of columns, with the nonzeros of tables.

    tables : programs of a matrix (all of rows, some of columns), and the numbers of these columns; others are zero
    """
    outputs = [Pattern(f"jac_{row.name}_{column.name}", row.rows * row.columns, column.rows * column.columns, ())
               for row in rows for column in columns]
    parts = []
    for program, numbers in tables:
        zero = {number for number, node in program.nodes if node[0] == "const" and node[1] == 0.0}
        whole = np.array(program.results).reshape(program.outputs[0])
        results: list[int] = []
        sizes, mine, top = [], [], 0
        for r, row in enumerate(rows):
            left = 0
            for number in numbers:
                block = whole[top:top + row.rows * row.columns, left:left + columns[number].rows * columns[number].columns]
                entries = [(i, j) for j in range(block.shape[1]) for i in range(block.shape[0]) if block[i, j] not in zero]
                k = r * len(columns) + number
                outputs[k] = outputs[k]._replace(entries=tuple(entries))
                results += [int(block[entry]) for entry in entries]
                sizes.append((len(entries),))
                mine.append(k)
                left += block.shape[1]
            top += row.rows * row.columns
        parts.append(Part(replace(program, results=tuple(results), outputs=tuple(sizes)), tuple(mine)))
    return CasadiFunction(name, tuple(inputs), tuple(outputs), tuple(parts))


# ---------------------------------------------------------------------- text


def _blocks(program: Program) -> list[str]:
    return [name for name, size in program.inputs.items() if size]


def _part_source(name: str, function: CasadiFunction, part: Part) -> str:
    results = [function.outputs[number].name for number in part.outputs]
    return c.function(part.program, name, results).replace(f"void {name}(", f"static void {name}(", 1)
