"""Straight-line programs: an algorithm is traced by running it on symbols, scheduled for machine code, and differentiated.

Every operation on an `Expression` becomes one node of a `Graph`. A node that exists is never built twice (sharing), arithmetic
with constants is done at once (folding), and a minus sign is carried to where it costs nothing. Constants stay plain floats,
so the zeros of a robot's geometry disappear by themselves. numpy calls the methods: ``np.sin(x)`` becomes ``x.sin()``.

CasADi, given the same recursion of seven joints, takes 9.5 us for a call from Python, a kernel made here 0.28 us
(benchmark/results.md; as C source for both, benchmark/export.md).

A program is replayed on any scalar: on symbols it is traced again, on jets of symbols it is differentiated along a direction.
Reverse mode (Griewank and Walther, Evaluating Derivatives, chapter 3) gives the gradient of a weighted sum of all results from
a small multiple of the program's operations, for any number of inputs. Both together give second derivatives. No formula is
written down twice: the rules at the end are those of single operations.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import isfinite, prod
from typing import Any, NamedTuple, Union

import numpy as np

from ..algebra.taylor import derivative, jets
from ..errors import InputError

# ------------------------------------------------------------------ graph of operations


EQUAL_TOL = 16 * 2.0**-52  # relative difference below which two constants are one
GRID_CELLS = 2.0**47  # cells of a mantissa; they are wider than that difference

ITEM = "item:"  # followed by the number of a block's result
BLOCKS = ("factor", "backsolve", "backsolve_transposed")

Numbers = Sequence[Any] | np.ndarray  # of any scalar
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


# ------------------------------------------------------------------ programs


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
        needed = _needed(dict(self.nodes), list(results), set())
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

    @property
    def can_differentiate(self) -> bool:
        """True if every operation has a rule here: no maxima, no linear systems with pivots, no iteration before."""
        return self.iteration is None and set(self.operation_counts) <= set(_VALUES)

    def values(self, x: Numbers) -> dict[int, Any]:
        """Return the value of every node by its number. x: all inputs, side by side, of any scalar."""
        found: dict[int, Any] = {}
        for number, (op, *operands) in self.nodes:
            if op == "input":
                found[number] = x[operands[0]]
            elif op == "const":
                found[number] = operands[0]
            else:
                found[number] = _rule(op, _VALUES)(*(found[k] for k in operands))
        return found

    def evaluate(self, x: Numbers) -> list[Any]:
        """Return the results, side by side."""
        found = self.values(x)
        return [found[number] for number in self.results]

    def gradient(self, x: Numbers, seeds: Numbers) -> list[Any]:
        """Return the derivatives of the sum of seeds times results by every input: J^T seeds."""
        found, adjoints = self.values(x), dict[int, Any]()
        for number, seed in zip(self.results, seeds, strict=True):
            _add(adjoints, number, seed)
        by_input = [0.0] * self.input_size
        for number, (op, *operands) in reversed(self.nodes):
            if number not in adjoints or op == "const":
                continue
            if op == "input":
                by_input[operands[0]] = adjoints[number]
                continue
            shares = _rule(op, _ADJOINTS)(found[number], adjoints[number], *(found[k] for k in operands))
            for operand, share in zip(operands, shares, strict=True):
                _add(adjoints, operand, share)
        return by_input

    def jacobian(self, x: Numbers, columns: Sequence[int] | None = None) -> np.ndarray:
        """Return the derivatives (results, columns) of all results by some inputs, or by all, one direction after the other.
        """
        return _along(self.evaluate, x, columns, len(self.results))

    def hessian(self, x: Numbers, seeds: Numbers, columns: Sequence[int] | None = None) -> np.ndarray:
        """Return the second derivatives (inputs, columns) of the sum of seeds times results."""
        return _along(lambda moved: self.gradient(moved, seeds), x, columns, self.input_size)


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


# ------------------------------------------------------------------ derivatives


_VALUES = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "div": lambda a, b: a / b,
    "neg": lambda a: -a, "sin": np.sin, "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "sqrt": np.sqrt, "exp": np.exp}
# (result, its adjoint, operands) -> adjoints of the operands.
_ADJOINTS = {
    "add": lambda y, w, a, b: (w, w),
    "sub": lambda y, w, a, b: (w, -w),
    "mul": lambda y, w, a, b: (w * b, w * a),
    "div": lambda y, w, a, b: (w / b, -(w * (y / b))),
    "neg": lambda y, w, a: (-w,),
    "sin": lambda y, w, a: (w * np.cos(a),),
    "cos": lambda y, w, a: (-(w * np.sin(a)),),
    "tan": lambda y, w, a: (w * (y * y + 1.0),),
    "tanh": lambda y, w, a: (w * (1.0 - y * y),),
    "sqrt": lambda y, w, a: (0.5 * (w / y),),
    "exp": lambda y, w, a: (w * y,)}


def split(flat: Numbers, sizes: Iterable[int]) -> list[Any]:
    """Return the blocks of these sizes that lie side by side in a flat sequence."""
    return [flat[start:end] for start, end in pairwise(accumulate(sizes, initial=0))]


def _along(function: Any, x: Numbers, columns: Sequence[int] | None, count: int) -> np.ndarray:
    chosen = range(len(x)) if columns is None else columns
    table = np.zeros((count, len(chosen)), dtype=object)
    for column, k in enumerate(chosen):
        moved = list(x)
        (moved[k],) = jets([x[k]], [1.0])
        table[:, column] = derivative(np.array(function(moved) + [None], dtype=object)[:-1], 1)
    return table


def _rule(op: str, rules: Mapping[str, Any]) -> Any:
    if op not in rules:
        raise InputError(f"operation '{op}' of a program has no derivative here; allowed are {', '.join(rules)}")
    return rules[op]


def _add(adjoints: dict[int, Any], number: int, share: Any) -> None:
    if isinstance(share, float) and share == 0.0:
        return
    adjoints[number] = adjoints[number] + share if number in adjoints else share
