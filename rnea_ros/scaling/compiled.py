"""A text of scalars over many samples: as a kernel, or, where none can be compiled, as numpy's steps over all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..codegen import kernel

Many = Callable[[Sequence[np.ndarray], int], tuple[np.ndarray, ...]]


def of_many(function: Callable[..., Sequence[Any]], inputs: Mapping[str, int], compiled: bool = True) -> Many:
    """Call with a block (count, size), or (size,) for all samples, for each input, and the count: results (count, ...) each.

    function : of blocks of `size` scalars by their names; it may be given arrays of them (size, count), or (size, 1), and does
               not mind which axes follow the first
    """
    if compiled and (backend := kernel.available("llvm")) != "python":
        return kernel.build(function, inputs, backend).of_samples

    def in_numpy(blocks: Sequence[np.ndarray], count: int) -> tuple[np.ndarray, ...]:
        """Step by step: faster than a kernel that runs as Python."""
        columns = [np.ascontiguousarray(np.atleast_2d(block).T) for block in blocks]
        return tuple(_samples(part, count) for part in function(**dict(zip(inputs, columns))))

    return in_numpy


def _samples(part: Any, count: int) -> np.ndarray:
    """(count, ...) from an array (..., count), or from a list of such and of what is the same for all."""
    if not isinstance(part, np.ndarray):
        part = np.stack([np.broadcast_to(one, count) for one in part])
    return np.moveaxis(np.broadcast_to(part, (*part.shape[:-1], count)), -1, 0)
