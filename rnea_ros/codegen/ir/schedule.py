"""A program's operations as a machine likes them: products joined to the sums that use them, and functions in front.

A product in a sum becomes one step with it: ``fma`` a b + c, ``fms`` a b - c, ``fnma`` c - a b. Which product joins is decided
here and not by a compiler, so that one sample and a batch round alike.

Sines and cosines come together, as many angles at a time as a vector has lanes; they and the other functions of the library
come before all steps that do not lead to them, since a call empties the registers.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .expression import BLOCKS, ITEM
from .program import Program

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
