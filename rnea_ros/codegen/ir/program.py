"""Trace a function of arrays into a straight-line program, and say what it costs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from .expression import BLOCKS, ITEM, Graph


@dataclass(frozen=True)
class Iteration:
    """Program that runs before another one, again and again: a step of Newton's method.

    It has the same inputs. Its first output replaces as many of their first numbers; its second is the error before the
    step. The last step is the one that begins with an error of at most `tolerance`, or with one that is not a number, or
    number `limit`.
    """

    program: Program
    tolerance: float
    limit: int

    @property
    def state(self) -> int:
        """Number of values that are replaced."""
        return len(self.program.results) - 1


@dataclass(frozen=True)
class Program:
    """Live nodes in order, and where inputs and outputs lie in the two flat arrays of a kernel.

    inputs  : name -> size; the blocks follow each other
    outputs : shapes of the results; ditto
    results : node numbers of the flattened outputs
    iteration : what runs before, if anything
    """

    nodes: tuple[tuple[int, tuple], ...]
    results: tuple[int, ...]
    inputs: Mapping[str, int]
    outputs: tuple[tuple[int, ...], ...]
    iteration: Iteration | None = None

    def first(self, outputs: int) -> Program:
        """Return the program of the first outputs alone."""
        shapes = self.outputs[:outputs]
        results = self.results[:sum(prod(shape) for shape in shapes)]
        nodes, needed, front = dict(self.nodes), set(results), list(results)
        while front:
            op, *operands = nodes[front.pop()]
            if op not in ("input", "const"):
                fresh = set(operands) - needed
                needed |= fresh
                front += fresh
        return replace(self, nodes=tuple(node for node in self.nodes if node[0] in needed), results=results, outputs=shapes)

    @property
    def input_size(self) -> int:
        return sum(self.inputs.values())

    @property
    def operation_counts(self) -> Counter[str]:
        """Count each operation: add, sub, mul, div, neg, sin ..."""
        return Counter(op for _, (op, *_operands) in self.nodes if op not in ("input", "const") and not op.startswith(ITEM))

    @property
    def has_blocks(self) -> bool:
        """True if linear systems are factored or solved in it."""
        return any(op in BLOCKS for _, (op, *_operands) in self.nodes)

    @property
    def is_finite(self) -> bool:
        """True if every constant is a number: a division by a zero known when traced leaves an infinity or a NaN."""
        return all(isfinite(operands[0]) for _, (op, *operands) in self.nodes if op == "const")


def trace(function: Callable[..., Sequence[Any]], inputs: Mapping[str, int]) -> Program:
    """Run `function(**{name: symbols})` once. It returns a sequence of (nested) arrays of scalars."""
    graph = Graph()
    symbols = {name: np.array(graph.inputs(size) + [None], dtype=object)[:-1] for name, size in inputs.items()}
    outputs = [np.array(output, dtype=object) for output in function(**symbols)]
    results = [graph.number(x) for output in outputs for x in output.ravel()]
    nodes = tuple((number, graph.nodes[number]) for number in graph.live(results))
    return Program(nodes, tuple(results), dict(inputs), tuple(output.shape for output in outputs))


LEAVES = ("input", "const")
_OPERATIONS = (*LEAVES, "add", "sub", "mul", "div", "neg", "sqrt", "sin", "cos", "tan", "tanh", "exp", "max",
               *BLOCKS, ITEM)
CALLS = ("tan", "tanh", "exp")
UNUSED = -1  # number of a result that no operation reads


class Operation(NamedTuple):
    """op of operands gives results: numbers of nodes. "sincos" of k angles gives k sines, then k cosines.

    "factor" of n n entries gives its smallest and largest pivot; "backsolve" of a factor and n m entries gives n m unknowns.
    `block` is the number of the node itself where there are several results.
    """

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]
    block: int = UNUSED


def schedule(program: Program, lanes: int) -> list[Operation]:
    """All steps of a program in an order in which each finds its operands. lanes: most angles of one "sincos"."""
    nodes = _contracted(program)
    number_of = {node: number for number, node in nodes.items() if node[0] in ("sin", "cos")}
    level: dict[int, int] = {}  # how many functions lie one inside the other
    for number, (op, *operands) in nodes.items():
        inner = max((level[operand] for operand in operands), default=0) if op not in LEAVES else 0
        level[number] = inner + (op in ("sin", "cos", *CALLS))
    items: dict[int, dict[int, int]] = {}  # of each block: number of the result -> node
    for number, (op, *operands) in nodes.items():
        if op.startswith(ITEM):
            items.setdefault(operands[0], {})[int(op.removeprefix(ITEM))] = number
    steps: list[Operation] = []
    done: set[int] = set()

    def emit(wanted: set[int]) -> None:
        for number in sorted(wanted - done):
            op, *operands = nodes[number]
            if op in BLOCKS:
                count = 2 if op == "factor" else len(operands) - 1
                mine = items.get(number, {})
                steps.append(Operation(op, tuple(operands), tuple(mine.get(k, UNUSED) for k in range(count)), number))
            elif op not in LEAVES and not op.startswith(ITEM):
                steps.append(Operation(op, tuple(operands), (number,)))
        done.update(wanted)

    for height in range(1, max(level.values(), default=0) + 1):
        here = {number: node for number, node in nodes.items() if level[number] == height}
        called = [number for number, (op, *_) in here.items() if op in CALLS]
        angles = sorted({operands[0] for op, *operands in here.values() if op in ("sin", "cos")})
        emit(_needed(nodes, [*angles, *(nodes[number][1] for number in called)], done))
        for k in range(0, len(angles), lanes):
            some = tuple(angles[k:k + lanes])
            results = [number_of.get((op, angle), UNUSED) for op in ("sin", "cos") for angle in some]
            steps.append(Operation("sincos", some, tuple(results)))
        emit(set(called))
        done.update(number for number, (op, *_) in here.items() if op in ("sin", "cos"))
    emit(set(nodes))
    return steps


def _needed(nodes: dict[int, tuple], wanted: list[int], done: set[int]) -> set[int]:
    """All nodes that `wanted` are made of, themselves included, less those that are done."""
    found, front = set(), [number for number in wanted if number not in done]
    while front:
        number = front.pop()
        if number not in found:
            found.add(number)
            op, *operands = nodes[number]
            if op not in LEAVES:
                front += [operand for operand in operands if operand not in done]
    return found


def _contracted(program: Program) -> dict[int, tuple]:
    """Nodes by number, with products joined to the sums that use them, also where several do; what is left over goes.

    In a sum of two products, one is fused by a rule that depends on the expression, not on its position in the program: a
    torque is the same to the last bit in all kernels that compute it.
    """
    nodes, making = dict(program.nodes), _making(program)
    for number, (op, *operands) in program.nodes:
        if op not in ("add", "sub"):
            continue
        a, b = operands
        products = [operand for operand in operands if nodes[operand][0] == "mul"]
        if products:
            chosen = max(products, key=making.__getitem__)
            kind = "fma" if op == "add" else "fnma" if chosen == b else "fms"
            nodes[number] = (kind, *nodes[chosen][1:], a if chosen == b else b)
    needed = _needed(nodes, list(program.results), set())
    return {number: node for number, node in nodes.items() if number in needed}


def _making(program: Program) -> dict[int, int]:
    """Return a number for each node that depends on how it is made alone; powers of two, which do not round, do not count."""
    found: dict[int, int] = {}
    for number, (op, *operands) in program.nodes:
        if op == "const":
            parts = [math.frexp(operands[0])[0]]
        else:
            parts = operands if op == "input" else [found[operand] for operand in operands]
        kind = (_OPERATIONS.index(ITEM), int(op.removeprefix(ITEM))) if op.startswith(ITEM) else (_OPERATIONS.index(op),)
        found[number] = hash((*kind, *(sorted(parts) if op in ("add", "mul") else parts)))
    return found
