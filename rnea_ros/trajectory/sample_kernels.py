"""Functions of scalars applied to many samples, as compiled kernels, or as numpy operations without a compiler."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..codegen import kernel
from ..codegen.kernel import Tiles

N_DERIVATIVES = 4  # a value and its first three derivatives


class SampleFunction:
    """Function of scalars, applied to many samples.

    Call with a block (count, size), or (size,) for all samples, for each input, and the count; results are (count, ...) each.

    lanes : samples in a tile, see `tiled`
    """

    def __init__(self, function: Callable[..., Sequence[Any]], inputs: Mapping[str, int], compiled: bool = True):
        """Compile the function if possible.

        function : function of blocks of `size` scalars, by keyword; it must also accept arrays (size, count) or (size, 1), and
                   treat all axes after the first elementwise
        """
        self._function, self._inputs = function, tuple(inputs)
        backend = kernel.available("llvm")
        self._kernel = kernel.build(function, inputs, backend) if compiled and backend != "python" else None
        self.lanes = kernel.lanes(backend)

    def __call__(self, blocks: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        if self._kernel is not None:
            return self._kernel.of_samples(blocks, count)
        # each operation for all samples: faster than a kernel that runs as Python
        columns = [np.ascontiguousarray(np.atleast_2d(block).T) for block in blocks]
        return tuple(_samples_first(part, count) for part in self._function(**dict(zip(self._inputs, columns))))

    def tiled(self, blocks: Sequence[np.ndarray | Tiles], count: int, kept: Sequence[int] = (0,)) -> list[Any]:
        """Evaluate samples; blocks may be Tiles, and so are the results of the numbers `kept`: see `Kernel.tiled`."""
        if self._kernel is not None:
            return self._kernel.tiled(blocks, count, kept)
        found = self([block.samples if isinstance(block, Tiles) else block for block in blocks], count)
        return [Tiles.of([part.reshape(count, -1)], self.lanes) if k in kept else part for k, part in enumerate(found)]


def _samples_first(part: Any, count: int) -> np.ndarray:
    """Return (count, ...) from an array (..., count), or from a list of arrays and of values that are equal for all samples.
    """
    if not isinstance(part, np.ndarray):
        part = np.stack([np.broadcast_to(one, count) for one in part])
    return np.moveaxis(np.broadcast_to(part, (*part.shape[:-1], count)), -1, 0)


@cache
def polynomial_derivatives(size: int, n: int) -> SampleFunction:
    """Return the function that maps x and the power coefficients (size n) to value and three derivatives (4, n)."""

    def evaluate(x: Any, coefficients: Any) -> list[Any]:
        found = []
        for order in range(N_DERIVATIVES):
            total = coefficients[:n] * 0.0
            for k in reversed(range(order, size)):  # Horner's scheme
                total = total * x[0] + math.perm(k, order) * coefficients[n * k:n * (k + 1)]
            found.append(total)
        return [np.stack(found)]

    return SampleFunction(evaluate, {"x": 1, "coefficients": size * n})
