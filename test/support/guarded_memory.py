"""Allocator that puts every numpy array at the end of a page before an inaccessible one; kernels that read beyond it crash.

    PYTHONPATH=.:test python -m pytest -p support.guarded_memory test/codegen      every array that the tests create
    RNEA_TEST_GUARD=before      arrays at the start of a page, after an inaccessible one; mixed: one or the other at random

The memory beside an array, as far as its page goes, is filled with NaN; the process is aborted if it was written to when the
array is freed. Memory of a freed array is returned to the system, so a later access crashes too. Beyond 15 000 arrays at a
time, further ones have no inaccessible pages. Needs a C compiler, and numpy's interface for allocators (NEP 49).
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from rnea_ros.codegen.c_compiler import compiler

SIDE = "RNEA_TEST_GUARD"  # environment variable: "after" (default), "before" or "mixed"
SIDES = ("after", "before", "mixed")
SET_HANDLER = 304  # index of PyDataMem_SetHandler in numpy's table of C functions

# One mapping for each array: a page with its length, inaccessible while the array lives; data; an inaccessible page.
SOURCE = """
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, FILLED = 0xff, MOST_GUARDED = 15000 };
static long arrays;
typedef struct { size_t mapped, size; } Head;
typedef struct {
    char name[127];
    uint8_t version;
    void *context;
    void *(*allocate)(void *, size_t);
    void *(*allocate_zeros)(void *, size_t, size_t);
    void *(*resize)(void *, void *, size_t);
    void (*release)(void *, void *, size_t);
} Handler;

enum { AFTER, BEFORE, MIXED };
static int side = AFTER;

static int is_before(void)
{
    static uint32_t state = 2463534242u;  /* Marsaglia's xorshift */
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    return side == BEFORE || (side == MIXED && (state >> 16 & 1));
}

static size_t whole(size_t size, size_t unit) { return (size + unit - 1) / unit * unit; }

static void *take(size_t size, int fill)
{
    size_t room = whole(size ? size : 1, PAGE), mapped = room + 2 * PAGE;
    char *start = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return NULL;
    memset(start + PAGE, FILLED, room);
    *(Head *)start = (Head){mapped, size};
    char *data = start + PAGE + (is_before() ? 0 : room - whole(size ? size : 1, 8));
    if (fill != FILLED)
        memset(data, fill, size);
    if (++arrays > MOST_GUARDED)  /* the system has a limit of 65 530 mappings */
        return data;
    if (mprotect(start, PAGE, PROT_NONE) || mprotect(start + PAGE + room, PAGE, PROT_NONE))
        abort();
    return data;
}

static char *start_of(void *data) { return (char *)((uintptr_t)data & ~(uintptr_t)(PAGE - 1)) - PAGE; }

static void check(const char *from, const char *to)
{
    static const char message[] = "guarded_memory: the memory beside an array was written to\\n";
    for (; from < to; ++from)
        if (*(const unsigned char *)from != FILLED) {
            if (write(2, message, sizeof message - 1) < 0) {}
            abort();
        }
}

static size_t size_of(void *data)
{
    char *start = start_of(data);
    if (mprotect(start, PAGE, PROT_READ | PROT_WRITE))
        abort();
    return ((Head *)start)->size;
}

static void *allocate(void *context, size_t size) { (void)context; return take(size, FILLED); }

static void *allocate_zeros(void *context, size_t count, size_t size)
{
    (void)context;
    return size && count > SIZE_MAX / size ? NULL : take(count * size, 0);
}

static void release(void *context, void *data, size_t given)
{
    (void)context, (void)given;
    if (!data)
        return;
    size_t size = size_of(data);
    char *start = start_of(data);
    size_t mapped = ((Head *)start)->mapped;
    check(start + PAGE, data);
    check((char *)data + size, start + mapped - PAGE);
    munmap(start, mapped);
    --arrays;
}

static void *resize(void *context, void *data, size_t size)
{
    void *other = take(size, FILLED);
    if (other && data) {
        size_t old = size_of(data);
        memcpy(other, data, old < size ? old : size);
        release(context, data, old);
    }
    return other;
}

static Handler handler = {"guarded", 1, NULL, allocate, allocate_zeros, resize, release};

void *guarded(int wanted) { side = wanted; return &handler; }
"""

_library: list[ctypes.CDLL] = []


def install(side: str = "") -> bool:
    """Let numpy use the allocator for all new arrays of this thread; return False where there is no compiler or interface."""
    try:
        from numpy._core import _multiarray_umath as core
    except ImportError:
        from numpy.core import _multiarray_umath as core  # numpy 1
    if not compiler() or np.lib.NumpyVersion(np.__version__) < "1.22.0":
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "guarded.c", Path(folder) / "guarded.so"
        source.write_text(SOURCE, encoding="ascii")
        command = [compiler(), "-std=c99", "-O2", "-fPIC", "-shared", "-o", str(result), str(source)]
        subprocess.run(command, check=True, timeout=60)
        library = ctypes.CDLL(str(result))
    _library.append(library)
    library.guarded.restype = ctypes.c_void_p
    capsule = ctypes.pythonapi.PyCapsule_New
    capsule.restype, capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = (ctypes.c_void_p * (SET_HANDLER + 1)).from_address(pointer(core._ARRAY_API, None))
    change = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[SET_HANDLER])
    change(capsule(library.guarded(SIDES.index(side or os.environ.get(SIDE, "after"))), b"mem_handler", None))
    return True


def pytest_configure() -> None:
    """Install the allocator in a process of pytest: ``-p support.guarded_memory``."""
    if not install():
        raise RuntimeError("guarded memory needs a C compiler")
