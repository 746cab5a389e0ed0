"""Runs the machine code of tiles.py over many samples, in as many threads as are worth while."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

PIECE = 2_000_000  # operations, about a tenth of a millisecond: less is not worth a thread
THREADS = "RNEA_ROS_THREADS"  # environment variable: the most threads of a batch; default: one for each processor


def threads() -> int:
    """The most threads of a batch."""
    given = os.environ.get(THREADS, "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Batch:
    """Call with blocks of inputs and arrays for the results; owner: what keeps the machine code alive."""

    def __init__(self, owner: Any, address: int, work: int, lanes: int, operations: int):
        self._owner, self._work = owner, work
        self._piece = max(lanes, PIECE // max(1, operations) // lanes * lanes)  # samples that a thread takes at once
        self._function = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 4, ctypes.c_int64, ctypes.c_int64)(address)

    def __call__(self, blocks: Sequence[np.ndarray], outs: Sequence[np.ndarray], count: int) -> bool:
        """Whether all inputs are finite. blocks: (size,) or (count, size) each; outs: (count, size) each, contiguous."""
        blocks = [_readable(block) for block in blocks]
        places = (ctypes.c_void_p * len(blocks))(*[block.ctypes.data for block in blocks])
        strides = (ctypes.c_int64 * len(blocks))(*[block.strides[0] // 8 if block.ndim == 2 else 0 for block in blocks])
        results = (ctypes.c_void_p * len(outs))(*[out.ctypes.data for out in outs])
        pieces = iter(range(0, count, self._piece))
        sound: list[bool] = []

        def work() -> None:
            store = np.empty(self._work + 8)
            aligned = store.ctypes.data + 63 & ~63
            for start in _shared(pieces):
                end = min(start + self._piece, count)
                sound.append(bool(self._function(places, strides, results, aligned, start, end)))

        most = threads()
        others = [_pool(most - 1).submit(work) for _ in range(min(most, -(-count // self._piece)) - 1)]
        work()
        for other in others:
            if not other.cancel():  # one that has not begun by now finds nothing left to do
                other.result()
        return all(sound)


@functools.lru_cache(maxsize=1)
def _pool(most: int) -> ThreadPoolExecutor:
    """Threads that wait for the next batch: to start one takes as long as thousands of samples."""
    return ThreadPoolExecutor(most, thread_name_prefix="batch")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not come along


def _shared(pieces: Iterator[int]) -> Iterator[int]:
    """Each piece for one of the threads that iterate: the next one of a range iterator is taken in one step."""
    while (piece := next(pieces, None)) is not None:
        yield piece


def _readable(block: np.ndarray) -> np.ndarray:
    """The block itself, if its rows are runs of doubles at even distances."""
    runs = block.shape[-1] <= 1 or block.strides[-1] == 8
    return block if runs and block.flags.aligned and all(stride % 8 == 0 for stride in block.strides) else \
        np.ascontiguousarray(block)
