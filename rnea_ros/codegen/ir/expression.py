"""A scalar that remembers how it was computed: run an algorithm on symbols, keep the graph.

Every operation becomes one node of a `Graph`. A node that exists is never built twice (sharing), arithmetic with constants is
done at once (folding), and a minus sign is carried to where it costs nothing. Constants stay plain floats, so the zeros of a
robot's geometry disappear by themselves. numpy calls the methods: ``np.sin(x)`` becomes ``x.sin()``.
"""

from __future__ import annotations

import math
from typing import Any, Union

import numpy as np

EQUAL_TOL = 16 * 2.0**-52  # relative difference below which two constants are one
GRID_CELLS = 2.0**47  # cells of a mantissa; they are wider than that difference

ITEM = "item:"  # followed by the number of a block's result
BLOCKS = ("factor", "backsolve", "backsolve_transposed")

Scalar = Union[float, "Expression"]
NUMBERS = (float, int)  # arrays are left to numpy, which then works element by element


class Graph:
    """Nodes ``(operation, operand, ...)`` in the order they were built: operands are numbers of earlier nodes.

    Two leaves: ``("input", slot)`` and ``("const", value)``.
    """

    def __init__(self) -> None:
        self.nodes: list[tuple] = []
        self._numbers: dict[tuple, int] = {}
        self._constants: dict[tuple[int, int], float] = {}
        self._constant_numbers: dict[float, int] = {}  # of values that were asked for
        self.input_count = 0

    def inputs(self, count: int) -> list[Expression]:
        """Return `count` new symbols, numbered on from those of earlier calls."""
        slots = range(self.input_count, self.input_count + count)
        self.input_count += count
        return [self.node("input", slot) for slot in slots]

    def node(self, op: str, *operands: Any) -> Expression:
        return Expression(self, self.add((op, *operands)))

    def add(self, node: tuple) -> int:
        """Return the number of a node, which is built if it is new."""
        number = self._numbers.setdefault(node, len(self.nodes))
        if number == len(self.nodes):
            self.nodes.append(node)
        return number

    def has(self, op: str, *operands: Any) -> bool:
        return (op, *operands) in self._numbers

    def number(self, x: Scalar) -> int:
        """Node number of an operand; a float gets its constant node."""
        if isinstance(x, Expression):
            return x.number
        number = self._constant_numbers.get(x)
        if number is None:
            number = self._constant_numbers[x] = self.add(("const", self._constant(float(x))))
        return number

    def _constant(self, value: float) -> float:
        """Return the value, or an earlier one that differs by rounding only: equal constants are computed once, regardless of
        the rounding of this processor's linear algebra.
        """
        mantissa, exponent = math.frexp(value)
        if not math.isfinite(value) or mantissa == 0.0:
            return value
        cell = round(mantissa * GRID_CELLS)
        for near in (cell, cell - 1, cell + 1):
            known = self._constants.get((near, exponent))
            if known is not None and abs(known - value) < EQUAL_TOL * abs(value):
                return known
        self._constants[cell, exponent] = value
        return value

    def live(self, outputs: list[int]) -> list[int]:
        """Return the nodes that the outputs need, in order."""
        needed, front = set(outputs), list(outputs)
        while front:
            op, *operands = self.nodes[front.pop()]
            if op not in ("input", "const"):
                fresh = set(operands) - needed
                needed |= fresh
                front += fresh
        return sorted(needed)


class Expression:
    """A node of a graph with the arithmetic of a number. Comparing or branching on it is refused: it has no value yet."""

    __slots__ = ("graph", "number")

    def __init__(self, graph: Graph, number: int):
        self.graph, self.number = graph, number

    def _unsigned(self) -> Expression | None:
        """Return y where this is -y, else None."""
        node = self.graph.nodes[self.number]
        return Expression(self.graph, node[1]) if node[0] == "neg" else None

    def _binary(self, op: str, a: Scalar, b: Scalar) -> Expression:
        graph = self.graph
        first, second = graph.number(a), graph.number(b)
        if op == "sub" and graph.has("sub", second, first):  # a - b = -(b - a)
            return Expression(graph, graph.add(("neg", graph.add(("sub", second, first)))))
        return Expression(graph, graph.add((op, first, second)))

    def __neg__(self) -> Scalar:
        graph = self.graph
        node = graph.nodes[self.number]
        return Expression(graph, node[1] if node[0] == "neg" else graph.add(("neg", self.number)))

    def __add__(self, other: Any) -> Scalar:
        if type(other) is Expression:
            graph, a, b = self.graph, self.number, other.number
            if graph.nodes[b][0] == "neg":
                return self - Expression(graph, graph.nodes[b][1])
            if graph.nodes[a][0] == "neg":
                return other - Expression(graph, graph.nodes[a][1])
            return Expression(graph, graph.add(("add", a, b) if a <= b else ("add", b, a)))
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return self if other == 0.0 else self._binary("add", other, self)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Scalar:
        if type(other) is not Expression:
            return self + (-other) if isinstance(other, NUMBERS) else NotImplemented
        if other.number == self.number:
            return 0.0
        positive = other._unsigned()
        if positive is not None:
            return self + positive
        mine = self._unsigned()
        return self._binary("sub", self, other) if mine is None else -(mine + other)

    def __rsub__(self, other: Any) -> Scalar:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        positive = self._unsigned()
        if positive is not None:
            return positive + other
        return -self if other == 0.0 else self._binary("sub", other, self)

    def __mul__(self, other: Any) -> Scalar:
        graph, a = self.graph, self.number
        if type(other) is Expression:
            b, negative = other.number, 0
            if graph.nodes[a][0] == "neg":
                a, negative = graph.nodes[a][1], 1
            if graph.nodes[b][0] == "neg":
                b, negative = graph.nodes[b][1], negative + 1
            product = graph.add(("mul", a, b) if a <= b else ("mul", b, a))
            negated = graph.add(("neg", product)) if negative else product
            return Expression(graph, negated if negative == 1 else product)
        if not isinstance(other, NUMBERS):
            return NotImplemented
        if graph.nodes[a][0] == "neg":
            return -(Expression(graph, graph.nodes[a][1]) * other)
        if other == 0.0:
            return 0.0
        if other < 0.0:
            return -(self * -other)
        return self if other == 1.0 else Expression(graph, graph.add(("mul", graph.number(other), a)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Scalar:
        if type(other) is Expression:
            return self._binary("div", self, other)
        return self * (1.0 / other) if isinstance(other, NUMBERS) else NotImplemented

    def __rtruediv__(self, other: Any) -> Scalar:
        if not isinstance(other, NUMBERS):
            return NotImplemented
        return 0.0 if other == 0.0 else self._binary("div", other, self)

    def sin(self) -> Scalar:
        mine = self._unsigned()
        return self.graph.node("sin", self.number) if mine is None else -mine.sin()

    def cos(self) -> Scalar:
        mine = self._unsigned()
        return self.graph.node("cos", self.number) if mine is None else mine.cos()

    def tan(self) -> Scalar:
        return self.graph.node("tan", self.number)

    def tanh(self) -> Scalar:
        return self.graph.node("tanh", self.number)

    def sqrt(self) -> Scalar:
        return self.graph.node("sqrt", self.number)

    def exp(self) -> Scalar:
        return self.graph.node("exp", self.number)

    def __abs__(self) -> Scalar:
        return larger(self, -self)

    def factored(self, A: np.ndarray) -> Factor:
        """LU factor of a matrix (n, n) with this symbol among its entries, see `algebra.linalg.lu`."""
        return Factor(self.graph, A.ravel().tolist())

    def _no_value(self, *_: Any) -> Any:
        raise TypeError("an algorithm compared or branched on a traced symbol, which has no value while it is traced")

    __bool__ = __float__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__ = _no_value
    __hash__ = None  # type: ignore[assignment]


class Factor:
    """Block node ("factor", a_11, a_12, ...): the LU factor of a matrix with partial pivoting, computed in loops.

    Blocks have several results. Each is a node ("item:k", block); those of a factor are the magnitudes of its smallest and
    largest pivot, `smallest` and `largest`. Blocks ("backsolve", factor, b_11, b_12, ...) and ("backsolve_transposed", ...)
    have the n m unknowns of A X = B or A^T X = B as items, row by row. Results that are not finite indicate a singular
    matrix, pivots indicate a nearly singular one.
    """

    def __init__(self, graph: Graph, entries: list[Scalar]):
        self.graph = graph
        self._block = graph.node("factor", *map(graph.number, entries)).number
        self.smallest, self.largest = self._items(self._block, 2)

    def solved(self, entries: list[Scalar], transposed: bool) -> list[Expression]:
        """X of A X = B, or of A^T X = B; entries of B (n, m), row by row."""
        op = "backsolve_transposed" if transposed else "backsolve"
        return self._items(self.graph.node(op, self._block, *map(self.graph.number, entries)).number, len(entries))

    def _items(self, block: int, count: int) -> list[Expression]:
        return [self.graph.node(f"{ITEM}{k}", block) for k in range(count)]


def larger(a: Any, b: Any) -> Any:
    """np.maximum for what may be a symbol, which cannot be compared."""
    symbol = next((x for x in (a, b) if isinstance(x, Expression)), None)
    if symbol is None:
        return np.maximum(a, b)
    first, second = sorted((symbol.graph.number(a), symbol.graph.number(b)))
    return symbol if first == second else symbol.graph.node("max", first, second)
