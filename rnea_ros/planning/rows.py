"""The constraints of a plan, row by row: the state at both ends, and every limit at every node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .grid import Nodes
from .problem import Problem, Quantity, of_motion


class Block(NamedTuple):
    """Components (c,) of a quantity at some nodes (K,): K c rows, node by node. Rows are divided by scale (c,)."""

    quantity: Quantity
    nodes: np.ndarray
    components: np.ndarray
    scale: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.nodes), len(self.components)


class Rows:
    """nodes, lower, upper: (rows,) each. Below, y (K, ORDERS, n) is the motion at all nodes."""

    def __init__(self, problem: Problem, nodes: Nodes, degree: int):
        self.blocks = [*_ends(problem, len(nodes.u)), *_limits(problem, nodes, degree)]
        self.nodes = np.concatenate([np.repeat(block.nodes, len(block.components)) for block in self.blocks])
        self.lower, self.upper = (np.concatenate([np.tile(getattr(block.quantity, side)[block.components] / block.scale,
                                                          len(block.nodes)) for block in self.blocks])
                                  for side in ("lower", "upper"))
        self._starts = np.cumsum([0, *(np.prod(block.shape) for block in self.blocks)])

    def values(self, y: np.ndarray) -> np.ndarray:
        return np.concatenate([(block.quantity.values(y[block.nodes])[:, block.components] / block.scale).ravel()
                               for block in self.blocks])

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """(rows, ORDERS, n)."""
        return np.concatenate([(block.quantity.slopes(y[block.nodes])[:, block.components] / block.scale[:, None, None]
                                ).reshape(-1, *y.shape[1:]) for block in self.blocks])

    def factors(self, multipliers: np.ndarray, count: int) -> Iterator[tuple[Quantity, np.ndarray]]:
        """(quantity, factors (count, k)): multipliers of rows as factors of the quantity itself at all of count nodes."""
        for block, start, end in zip(self.blocks, self._starts, self._starts[1:]):
            factors = np.zeros((count, len(block.quantity.labels)))
            factors[np.ix_(block.nodes, block.components)] = multipliers[start:end].reshape(block.shape) / block.scale
            yield block.quantity, factors


def _ends(problem: Problem, count: int) -> Iterator[Block]:
    for node, state in ((0, problem.start), (count - 1, problem.goal)):
        for order, value in enumerate((state.q, state.qd, state.qdd)):
            if value is not None:
                quantity = of_motion(order, [""] * problem.n, value, value)
                yield Block(quantity, np.array([node]), np.arange(problem.n), np.ones(problem.n))


def _limits(problem: Problem, nodes: Nodes, degree: int) -> Iterator[Block]:
    """What is continuous at the breaks is looked at once there, what jumps from both sides."""
    new = np.append(True, np.diff(nodes.u) > 0.0)
    for quantity in problem.limited:
        where = np.flatnonzero(new | (quantity.order >= degree))
        yield Block(quantity, where, quantity.enforced, quantity.scale[quantity.enforced])
