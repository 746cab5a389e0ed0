"""A program's operations as a machine likes them: products joined to the sums that use them, and functions in front.

A product with one use, in a sum, becomes one step with it: ``fma`` a b + c, ``fms`` a b - c, ``fnma`` c - a b. Which product
joins is decided here and not by a compiler, so that one sample and a batch round alike.

Sines and cosines come together, as many angles at a time as a vector has lanes; they and the other functions of the library
come before all steps that do not lead to them, since a call empties the registers.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from .program import Program

LEAVES = ("input", "const")
CALLS = ("tan", "tanh", "exp")
NOBODY = -1  # the number of a result that nobody wants


class Step(NamedTuple):
    """op of operands gives results: numbers of nodes. "sincos" of k angles gives k sines, then k cosines."""

    op: str
    operands: tuple[int, ...]
    results: tuple[int, ...]


def schedule(program: Program, lanes: int) -> list[Step]:
    """All steps of a program in an order in which each finds its operands. lanes: most angles of one "sincos"."""
    nodes = _contracted(program)
    number_of = {node: number for number, node in nodes.items() if node[0] in ("sin", "cos")}
    level: dict[int, int] = {}  # how many functions lie one inside the other
    for number, (op, *operands) in nodes.items():
        inner = max((level[operand] for operand in operands), default=0) if op not in LEAVES else 0
        level[number] = inner + (op in ("sin", "cos", *CALLS))
    steps: list[Step] = []
    done: set[int] = set()

    def emit(wanted: set[int]) -> None:
        for number in sorted(wanted - done):
            op, *operands = nodes[number]
            if op not in LEAVES:
                steps.append(Step(op, tuple(operands), (number,)))
        done.update(wanted)

    for height in range(1, max(level.values(), default=0) + 1):
        here = {number: node for number, node in nodes.items() if level[number] == height}
        called = [number for number, (op, *_) in here.items() if op in CALLS]
        angles = sorted({operands[0] for op, *operands in here.values() if op in ("sin", "cos")})
        emit(_needed(nodes, [*angles, *(nodes[number][1] for number in called)], done))
        for k in range(0, len(angles), lanes):
            some = tuple(angles[k:k + lanes])
            results = [number_of.get((op, angle), NOBODY) for op in ("sin", "cos") for angle in some]
            steps.append(Step("sincos", some, tuple(results)))
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
    """Nodes by number, with products joined to sums."""
    nodes = dict(program.nodes)
    uses = Counter(operand for op, *operands in nodes.values() if op not in LEAVES for operand in operands)
    uses.update(program.results)

    def joins(number: int) -> bool:
        return nodes[number][0] == "mul" and uses[number] == 1

    for number, (op, *operands) in list(nodes.items()):
        if op not in ("add", "sub"):
            continue
        a, b = operands
        if joins(b):
            nodes[number] = ("fma" if op == "add" else "fnma", *nodes.pop(b)[1:], a)
        elif joins(a):
            nodes[number] = ("fma" if op == "add" else "fms", *nodes.pop(a)[1:], b)
    return nodes
