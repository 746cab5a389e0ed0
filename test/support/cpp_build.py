"""Compilation of C++ for tests with stand-in headers, once in a run; warnings are errors."""

from __future__ import annotations

import ctypes
import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
STAND_INS = ROOT / "test" / "support" / "stand_ins"
SANITIZE = "RNEA_TEST_SANITIZE"  # environment variable: sanitizers of compiled libraries, as "address,undefined"
FLAGS = ("-Wall", "-Wextra", "-Werror", "-O0", "-g0", "-fPIC", "-shared", f"-I{STAND_INS}")


def build_library(target: Path, *sources: str | Path, options: tuple[str, ...] = (), standard: str = "c++17") -> ctypes.CDLL:
    """Compile sources, relative to the repository, as one unit to a shared library and load it. Skips the test without g++."""
    if not (compiler := shutil.which("g++")):
        pytest.skip("no g++")
    unit = target.with_suffix(".cpp")  # headers such as Eigen's are read once
    unit.write_text("".join(f'#include "{ROOT / source}"\n' for source in sources), encoding="utf-8")
    kinds = os.environ.get(SANITIZE)
    sanitized = (f"-fsanitize={kinds}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1") if kinds else ()
    command = [compiler, f"-std={standard}", *FLAGS, *sanitized, str(unit), "-o", str(target), *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600.0)
    assert done.returncode == 0, done.stderr
    return ctypes.CDLL(str(target))


def eigen_include() -> Path:
    """Return the folder of Eigen's headers, of the system or the casadi wheel. Skips the test without them."""
    casadi = find_spec("casadi")
    packages = casadi.submodule_search_locations if casadi else None
    for folder in (Path("/usr/include/eigen3"), *(Path(package) / "include" / "eigen3" for package in packages or ())):
        if (folder / "Eigen" / "Core").is_file():
            return folder
    pytest.skip("no headers of Eigen: install libeigen3-dev, or casadi")

def built_once(name: str, make: Callable[[Path], Any]) -> Path:
    """Return a file or folder of this test run, which the first process that needs it makes by ``make(path)``.

    Workers share the folder; a name must stand for one content.
    """
    target = Path(os.environ["RNEA_TEST_PROGRAMS"]) / name
    with target.with_name(f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = target.with_name(f"{name}.done")
        if not done.exists():
            make(target)
            done.touch()
    return target
