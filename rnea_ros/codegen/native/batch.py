"""Runs the machine code of tiles.py over many samples, in as many threads as are worth while.

The threads are the system's own, begun and waited for in machine code too. Between two steps of Python an exception can come
(Ctrl-C, a signal's handler), and what it left running would write into arrays that are free by then. Within a call of machine
code none can: when it returns, its threads have ended. A long batch is many such calls, so that Ctrl-C is not kept waiting.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

PIECE = 2_000_000  # operations, about a tenth of a millisecond: less is not worth a thread
PIECES = 500  # for each thread in one call: what an exception may have to wait for
THREADS = "RNEA_ROS_THREADS"  # environment variable: the most threads of a batch; default: one for each processor

# A task, eight bytes each: in, strides, out as for @batch; workspaces, and the bytes of one; end of the samples, samples in
# a piece; next sample, next workspace, and whether all inputs were finite.
CREW = """
define ptr @member(ptr %task) {
entry:
  %in = load ptr, ptr %task
  %strides.at = getelementptr i64, ptr %task, i64 1
  %strides = load ptr, ptr %strides.at
  %out.at = getelementptr i64, ptr %task, i64 2
  %out = load ptr, ptr %out.at
  %works.at = getelementptr i64, ptr %task, i64 3
  %works = load ptr, ptr %works.at
  %bytes.at = getelementptr i64, ptr %task, i64 4
  %bytes = load i64, ptr %bytes.at
  %end.at = getelementptr i64, ptr %task, i64 5
  %end = load i64, ptr %end.at
  %size.at = getelementptr i64, ptr %task, i64 6
  %size = load i64, ptr %size.at
  %next = getelementptr i64, ptr %task, i64 7
  %free = getelementptr i64, ptr %task, i64 8
  %sound = getelementptr i64, ptr %task, i64 9
  %mine = atomicrmw add ptr %free, i64 1 seq_cst
  %offset = mul i64 %mine, %bytes
  %work = getelementptr i8, ptr %works, i64 %offset
  br label %piece
piece:
  %from = atomicrmw add ptr %next, i64 %size seq_cst
  %any = icmp slt i64 %from, %end
  br i1 %any, label %compute, label %done
compute:
  %beyond = add i64 %from, %size
  %whole = icmp slt i64 %beyond, %end
  %to = select i1 %whole, i64 %beyond, i64 %end
  %finite = call i64 @batch(ptr %in, ptr %strides, ptr %out, ptr %work, i64 %from, i64 %to)
  %before = atomicrmw and ptr %sound, i64 %finite seq_cst
  br label %piece
done:
  ret ptr null
}
define void @crew(ptr %task, ptr %threads, i64 %others, ptr %create, ptr %join) {
entry:
  br label %begin
begin:  ; a thread that the system does not give is done without
  %begun = phi i64 [ 0, %entry ], [ %more, %created ]
  %enough = icmp sge i64 %begun, %others
  br i1 %enough, label %together, label %another
another:
  %thread.at = getelementptr i64, ptr %threads, i64 %begun
  %failed = call i32 %create(ptr %thread.at, ptr null, ptr @member, ptr %task)
  %is = icmp eq i32 %failed, 0
  br i1 %is, label %created, label %together
created:
  %more = add i64 %begun, 1
  br label %begin
together:
  %own = call ptr @member(ptr %task)
  br label %end
end:
  %left = phi i64 [ %begun, %together ], [ %less, %wait ]
  %all = icmp eq i64 %left, 0
  br i1 %all, label %done, label %wait
wait:
  %less = sub i64 %left, 1
  %last.at = getelementptr i64, ptr %threads, i64 %less
  %last = load i64, ptr %last.at
  %joined = call i32 %join(i64 %last, ptr null)
  br label %end
done:
  ret void
}
"""


def threads() -> int:
    """Return the most threads of a batch."""
    given = os.environ.get(THREADS, "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Batch:
    """Call with blocks of inputs and arrays for the results.

    owner : what keeps the machine code alive; crew : address of @crew; work : doubles of a workspace; operations : of a sample
    """

    def __init__(self, owner: Any, crew: int, work: int, lanes: int, operations: int):
        self._owner, self._bytes = owner, (8 * work + 63) & ~63
        self._piece = max(lanes, PIECE // max(1, operations) // lanes * lanes)  # samples that a thread takes at once
        self._crew = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 2, ctypes.c_int64, *[ctypes.c_void_p] * 2)(crew)

    def __call__(self, blocks: Sequence[np.ndarray], outs: Sequence[np.ndarray], count: int) -> bool:
        """Evaluate all samples; return whether all inputs are finite, those in tiles aside.

        blocks: (size,), (count, size) or tiles (tiles, size, lanes) each; outs: contiguous (count, size), or tiles, each.
        """
        blocks = [block if block.ndim == 3 else _readable(block) for block in blocks]
        arrays = [*blocks, *outs]
        addresses = [*map(_address, blocks), *map(_stride, arrays), *map(_address, outs)]
        table = (ctypes.c_int64 * len(addresses))(*addresses)
        inside, (create, join) = ctypes.addressof(table), _thread_functions()
        tables = [inside, inside + 8 * len(blocks), inside + 8 * (len(blocks) + len(arrays))]
        pieces = -(-count // self._piece)
        crew = min(threads(), pieces) if create and pieces > 1 else 1
        store, others = np.empty(crew * self._bytes + 64, np.uint8), (ctypes.c_int64 * crew)()
        works = _address(store) + 63 & ~63
        sound, step = 1, PIECES * crew * self._piece
        for start in range(0, count, step):
            end = min(start + step, count)
            task = (ctypes.c_int64 * 10)(*tables, works, self._bytes, end, self._piece, start, 0, sound)
            self._crew(task, others, crew - 1, create, join)
            sound = task[9]
        return bool(sound)


@cache
def _thread_functions() -> tuple[int | None, int | None]:
    """Addresses of pthread_create and pthread_join, where the system has them."""
    try:
        system = ctypes.CDLL(None)
        create, join = (ctypes.cast(f, ctypes.c_void_p).value for f in (system.pthread_create, system.pthread_join))
    except (OSError, AttributeError, TypeError):  # TypeError: Windows has no library of the process itself
        return None, None
    return create, join


def _address(array: Any) -> int:
    """Return array.ctypes.data without the objects that this attribute creates: they cost as much as some samples."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(array))
    except (TypeError, ValueError, BufferError):  # none to write to, not in one piece, or empty
        return int(array.__array_interface__["data"][0])


def _stride(array: np.ndarray) -> int:
    """Return the stride of a block or a result as tiles.py wants it."""
    if array.ndim == 3:
        return -array.strides[0] // (8 * array.shape[2])
    return array.strides[0] // 8 if array.ndim == 2 else 0


def _readable(block: np.ndarray) -> np.ndarray:
    """Return the block itself, if its rows are runs of doubles at even distances."""
    if (flags := block.flags).c_contiguous and flags.aligned:
        return block
    runs = block.shape[-1] <= 1 or block.strides[-1] == 8
    return block if runs and flags.aligned and all(stride % 8 == 0 for stride in block.strides) else \
        np.ascontiguousarray(block)
