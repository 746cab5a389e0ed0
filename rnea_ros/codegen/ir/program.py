"""Trace a function of arrays into a straight-line program, and say what it costs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite, prod
from typing import Any

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
