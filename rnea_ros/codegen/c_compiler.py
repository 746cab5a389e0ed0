"""Kernels by the system's C compiler, where llvmlite is not to be had; or compiled earlier, where there is no compiler either.

The text is that of c.py, so the numbers are those of the machine code by LLVM, to the last bit where the processor has
fused multiply-add. What is compiled lies in the folder of cache.py: `rnea compile` fills it ahead of time, for this processor
or, in a form that runs on any of its kind, for others (PORTABLE).
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from . import c
from . import cache as disk
from .program import Iteration, Program

FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared")
NATIVE, PORTABLE = "native", "portable"
_targets: tuple[str, ...] = (NATIVE, PORTABLE)  # for which kernels are searched; they are compiled for the first
PATIENCE = 600.0  # s; the longest kernels of large robots take half a minute


class CompiledKernel:
    """A kernel's code; its addresses hold as long as this object.

    address : of ``void kernel(const double *x, double *y)``: one sample, blocks of inputs side by side
    rows    : ``rows(x_address, y_address, count)``, samples one after another
    """

    def __init__(self, code: bytes):
        self._library = _loaded(code)
        self.address: int = ctypes.cast(self._library.kernel, ctypes.c_void_p).value or 0
        self.rows = self._library.rows
        self.rows.argtypes, self.rows.restype = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64), None


def usable() -> bool:
    """Return whether there is a compiler, or a folder that may contain compiled kernels."""
    return bool(compiler()) or disk.folder() is not None


def compiler() -> str:
    """Path of the C compiler: that of the environment variable CC, or cc, gcc, clang; empty if there is none."""
    names = [os.environ.get("CC", ""), "cc", "gcc", "clang"]
    return next((found for name in names if name and (found := shutil.which(name))), "")


def compiled(program: Program) -> CompiledKernel | None:
    """Return a kernel from the folder (for this processor, or portable) or compiled now; None if neither is possible."""
    text = _text(program)
    for target in _targets:
        if (code := disk.found(key(text, target))) is not None:
            return CompiledKernel(code)
    if not compiler():
        return None
    return CompiledKernel(disk.object_code(key(text, _targets[0]), lambda: _by_compiler(text, _targets[0])))


@contextmanager
def only(target: str) -> Iterator[None]:
    """Meanwhile all kernels are compiled for NATIVE, this processor, or PORTABLE, any one of its kind, and no others serve."""
    global _targets
    before, _targets = _targets, (target,)
    try:
        yield
    finally:
        _targets = before


def _text(program: Program) -> str:
    """``kernel(x, y)`` and ``rows(x, y, count)`` beside the function of c.py."""
    results = [f"y{k}" for k in range(len(program.outputs))]
    arguments = [f"{array} + {start}" for array, blocks in zip("xy", c.arguments(program, results), strict=True)
              for start in _starts(blocks)]
    step, copied = "", ""
    if program.iteration is not None:
        step, copied = _iterated(program.iteration)
        arguments = [argument.replace("x + ", "z + ") for argument in arguments]
    return f"""{c.source(program, "one_sample", results)}
{step}void kernel(const double *x, double *y);
void rows(const double *x, double *y, int64_t count);

void kernel(const double *x, double *y)
{{
    (void)x;
{copied}    one_sample({", ".join(arguments)});
}}

void rows(const double *x, double *y, int64_t count)
{{
    for (int64_t k = 0; k < count; ++k)
        kernel(x + k * {program.input_size}, y + k * {len(program.results)});
}}
"""


def _iterated(iteration: Iteration) -> tuple[str, str]:
    """Return the function of a step, and the statements that repeat it on a copy z of the inputs."""
    outputs = ["state_after", "error_before"]
    inputs, _ = c.arguments(iteration.program, outputs)
    given = ", ".join(f"z + {start}" for start in _starts(inputs))
    function = c.function(iteration.program, "one_step", outputs).replace("void one_step(", "static void one_step(", 1)
    return function, f"""    double z[{iteration.program.input_size}], found[{iteration.state + 1}];
    memcpy(z, x, sizeof z);
    for (int k = 0; k < {iteration.limit}; ++k) {{
        one_step({given}, found, found + {iteration.state});
        memcpy(z, found, {iteration.state} * sizeof(double));
        if (!(found[{iteration.state}] > {iteration.tolerance!r}))
            break;
    }}
"""


def _starts(blocks: list[c.Block]) -> list[int]:
    starts, start = [], 0
    for block in blocks:
        starts.append(start)
        start += block.size
    return starts


def key(text: str, target: str) -> bytes:
    """Return the key of compiled code in the cache: text, flags and, for NATIVE, the instruction sets of this processor."""
    kind = f"{platform.machine()} {_processor()}" if target == NATIVE else platform.machine()
    return f"{target} {kind} {' '.join(FLAGS)}\n{text}".encode()


@cache
def _processor() -> str:
    """Return the instruction sets of this processor: code for another one may not run."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    known = sorted({line for line in lines if line.split(":")[0].strip() in ("flags", "Features", "model name", "CPU part")})
    return hashlib.sha256("\n".join(known).encode()).hexdigest()


def _by_compiler(text: str, target: str) -> bytes:
    """Compile a library. Raises OSError with the output of the compiler."""
    native = ["-march=native"] if target == NATIVE else []
    with tempfile.TemporaryDirectory() as folder:
        source, result = Path(folder) / "kernel.c", Path(folder) / "kernel.so"
        source.write_text(text, encoding="ascii")
        command = [compiler(), *FLAGS, *native, "-o", str(result), str(source), "-lm"]
        try:
            subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
        except subprocess.SubprocessError as error:
            said = (getattr(error, "stderr", "") or str(error)).strip()[:400]
            raise OSError(f"{command[0]} could not compile a kernel: {said}") from error
        return result.read_bytes()


def _loaded(code: bytes) -> ctypes.CDLL:
    """Load a library from a new file, so that the checked code is the code that runs: the loader caches by file name."""
    with tempfile.TemporaryDirectory(prefix="rnea_ros_") as folder:
        file = Path(folder) / f"{Path(folder).name}.so"
        file.write_bytes(code)
        return ctypes.CDLL(str(file))
