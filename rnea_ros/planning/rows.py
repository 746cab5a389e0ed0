"""The constraints of a plan, row by row: conditions on both ends, then every limit at every node that it is enforced at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from .grid import Nodes
from .problem import Problem, Quantity


class LimitRows(NamedTuple):
    """Rows of one quantity: row i is its component[i] at node at[sample[i]]; it is evaluated at the nodes `at` alone."""

    quantity: Quantity
    at: np.ndarray
    sample: np.ndarray
    component: np.ndarray

    def of(self, numbers: np.ndarray) -> np.ndarray:
        """(rows,) from numbers of the components (k,)."""
        return numbers[self.component]


class Rows:
    """lower <= values <= upper, limits divided by their scale.

    A row looks at one node, or, where it ties the ends, at two: term i belongs to row[i] and looks at node[i]. key (rows, 3)
    tells rows apart from one program to the next on the same breaks. Below, y (K, ORDERS, n) is the motion at all nodes.
    """

    def __init__(self, problem: Problem, nodes: Nodes, degree: int):
        self.ends, self.last, count = problem.ends, nodes.regular - 1, len(problem.ends.value)
        self.limits = list(_limits(problem, nodes, degree))
        self._begins, self._stops = (np.flatnonzero(table.any(axis=(1, 2))) for table in (self.ends.first, self.ends.last))
        ends = np.column_stack((np.full(count, -1), np.arange(count), np.zeros(count, dtype=int)))
        self.key = np.concatenate((ends, *(np.column_stack((np.full(len(own.sample), problem.limited.index(own.quantity)),
                                                            own.at[own.sample], own.component)) for own in self.limits)))
        self.row = np.concatenate((self._begins, self._stops, np.arange(count, len(self.key))))
        self.node = np.concatenate((0 * self._begins, 0 * self._stops + self.last, self.key[count:, 1]))
        self._scale = self._listed(np.ones(count), [own.of(own.quantity.scale) for own in self.limits])
        self.lower = self._listed(self.ends.value, [own.of(own.quantity.lower) for own in self.limits]) / self._scale
        self.upper = self._listed(self.ends.value, [own.of(own.quantity.upper) for own in self.limits]) / self._scale

    def values(self, y: np.ndarray) -> np.ndarray:
        ends = self.ends.miss(y[0], y[self.last]) + self.ends.value
        limits = [own.quantity.values(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """(terms, ORDERS, n)."""
        ends = np.concatenate((self.ends.first[self._begins], self.ends.last[self._stops]))
        limits = [own.quantity.slopes(y[own.at])[own.sample, own.component] for own in self.limits]
        return self._listed(ends, limits) / self._scale[self.row, None, None]

    def weighted(self, y: np.ndarray, multipliers: np.ndarray) -> np.ndarray:
        """(K, ORDERS, n): slope of the sum of multipliers times rows."""
        total = np.zeros_like(y)
        np.add.at(total, self.node, multipliers[self.row, None, None] * self.slopes(y))
        return total

    def factors(self, multipliers: np.ndarray) -> Iterator[tuple[Quantity, np.ndarray, np.ndarray]]:
        """(quantity, nodes at, factors (at, k)): multipliers of rows as factors of the quantities themselves."""
        start = len(self.ends.value)
        for own in self.limits:
            table, part = np.zeros((len(own.at), len(own.quantity.labels))), slice(start, start + len(own.sample))
            table[own.sample, own.component] = multipliers[part] / self._scale[part]
            yield own.quantity, own.at, table
            start = part.stop

    def carried(self, multipliers: np.ndarray, to: Rows) -> np.ndarray:
        """Multipliers of these rows for other ones, zero for what is new there."""
        keys = np.concatenate((self.key, to.key)) - np.minimum(self.key.min(axis=0), to.key.min(axis=0))
        here, there = np.split(np.ravel_multi_index(tuple(keys.T), keys.max(axis=0) + 1), [len(self.key)])
        order = np.argsort(here)
        at = order[np.searchsorted(here, there, sorter=order).clip(max=len(here) - 1)]
        return np.where(here[at] == there, multipliers[at], 0.0)

    @staticmethod
    def _listed(ends: np.ndarray, limits: list[np.ndarray]) -> np.ndarray:
        return np.concatenate((ends, *limits))


def _limits(problem: Problem, nodes: Nodes, degree: int) -> Iterator[LimitRows]:
    """What is continuous at the breaks is looked at once there, what jumps from both sides; single limits at single nodes."""
    once = np.append(True, np.diff(nodes.u[:nodes.regular]) > 0.0)
    for number, quantity in enumerate(problem.limited):
        wanted = np.zeros((len(nodes.u), len(quantity.labels)), dtype=bool)
        regular = (once | (quantity.order >= degree)) & quantity.holds(nodes.u[:nodes.regular])
        wanted[:nodes.regular, quantity.enforced] = regular[:, None]
        for k, (which, component) in enumerate(nodes.single):
            if which == number:
                wanted[nodes.regular + k, component] = True
        at = np.flatnonzero(wanted.any(axis=1))
        if len(at):
            yield LimitRows(quantity, at, *np.nonzero(wanted[at]))
