"""Functions of scalars applied to many samples: as compiled kernels, or as numpy operations where none can be compiled."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..codegen import kernel

SampleFunction = Callable[[Sequence[np.ndarray], int], tuple[np.ndarray, ...]]
N_DERIVATIVES = 4  # a value and its first three derivatives


def over_samples(function: Callable[..., Sequence[Any]], inputs: Mapping[str, int], compiled: bool = True) -> SampleFunction:
    """Return a function of blocks (count, size), or (size,) for all samples, one for each input, and of the count.

    Its results are (count, ...) each.

    function : function of blocks of `size` scalars by name; it must also accept arrays (size, count) or (size, 1) of them, and
               not depend on the axes behind the first
    """
    if compiled and (backend := kernel.available("llvm")) != "python":
        return kernel.build(function, inputs, backend).of_samples

    def in_numpy(blocks: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """Apply each operation to all samples: faster than a kernel that runs as Python."""
        columns = [np.ascontiguousarray(np.atleast_2d(block).T) for block in blocks]
        return tuple(_samples_first(part, count) for part in function(**dict(zip(inputs, columns))))

    return in_numpy


def _samples_first(part: Any, count: int) -> np.ndarray:
    """Return (count, ...) from an array (..., count), or from a list of such and of values that are equal for all samples."""
    if not isinstance(part, np.ndarray):
        part = np.stack([np.broadcast_to(one, count) for one in part])
    return np.moveaxis(np.broadcast_to(part, (*part.shape[:-1], count)), -1, 0)


@cache
def polynomial_derivatives(size: int, n: int) -> SampleFunction:
    """Return the function of x and the coefficients (size n) of its powers to value and three derivatives (4, n)."""

    def evaluate(x: Any, coefficients: Any) -> list[Any]:
        found = []
        for order in range(N_DERIVATIVES):
            total = coefficients[:n] * 0.0
            for k in reversed(range(order, size)):  # Horner's scheme
                total = total * x[0] + math.perm(k, order) * coefficients[n * k:n * (k + 1)]
            found.append(total)
        return [np.stack(found)]

    return over_samples(evaluate, {"x": 1, "coefficients": size * n})
