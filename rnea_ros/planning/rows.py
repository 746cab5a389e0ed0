"""The constraints of a plan, row by row: the state at both ends, every limit at every node, single limits at single nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .grid import Nodes
from .problem import Problem, Quantity, of_motion


class Rows:
    """Row i is component[i] of quantities[number[i]] at node[i], between lower[i] and upper[i], all divided by scale[i].

    Below, y (K, ORDERS, n) is the motion at all nodes.
    """

    def __init__(self, problem: Problem, nodes: Nodes, degree: int):
        free = np.full(problem.n, np.nan)
        self.quantities = [*problem.limited, *(of_motion(order, [""] * problem.n, free, free) for order in range(3))]
        table = np.array([*_ends(problem, nodes), *_limits(problem, nodes, degree)])
        self.node = table[:, 1].astype(int)
        self.lower, self.upper, self.scale = table[:, 3] / table[:, 5], table[:, 4] / table[:, 5], table[:, 5]
        widths = np.array([len(quantity.labels) for quantity in self.quantities])
        number, component, count = table[:, 0].astype(int), table[:, 2].astype(int), len(nodes.u)
        self._starts = count * np.append(0, np.cumsum(widths))  # of each quantity (count, k) in one flat table of all
        self._place = self._starts[number] + self.node * widths[number] + component

    def values(self, y: np.ndarray) -> np.ndarray:
        table = np.concatenate([quantity.values(y).ravel() for quantity in self.quantities])
        return table[self._place] / self.scale

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """(rows, ORDERS, n)."""
        table = np.concatenate([quantity.slopes(y).reshape(-1, *y.shape[1:]) for quantity in self.quantities])
        return table[self._place] / self.scale[:, None, None]

    def factors(self, multipliers: np.ndarray) -> Iterator[tuple[Quantity, np.ndarray]]:
        """(quantity, factors (K, k)): multipliers of rows as factors of the quantities themselves."""
        table = np.zeros(self._starts[-1])
        table[self._place] = multipliers / self.scale
        for quantity, own in zip(self.quantities, np.split(table, self._starts[1:-1])):
            yield quantity, own.reshape(-1, len(quantity.labels))


def _ends(problem: Problem, nodes: Nodes) -> Iterator[tuple]:
    for node, state in ((0, problem.start), (nodes.regular - 1, problem.goal)):
        for order, values in enumerate((state.q, state.qd, state.qdd)):
            for component, value in enumerate(() if values is None else values):
                yield len(problem.limited) + order, node, component, value, value, 1.0


def _limits(problem: Problem, nodes: Nodes, degree: int) -> Iterator[tuple]:
    """What is continuous at the breaks is looked at once there, what jumps from both sides."""
    new = np.append(True, np.diff(nodes.u[:nodes.regular]) > 0.0)
    limits = [list(zip(quantity.lower, quantity.upper, quantity.scale)) for quantity in problem.limited]
    for number, quantity in enumerate(problem.limited):
        for node in np.flatnonzero(new | (quantity.order >= degree)):
            for component in quantity.enforced:
                yield number, node, component, *limits[number][component]
    for k, (number, component) in enumerate(nodes.single):
        yield number, nodes.regular + k, component, *limits[number][component]
