"""C++ of this folder -> shared libraries, compiled for this machine and kept in build/bench until text or versions change."""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
from pathlib import Path

HERE = Path(__file__).resolve().parent
KEPT = HERE.parent / "build" / "bench"
FLAGS = ["-std=c++17", "-O3", "-march=native", "-DNDEBUG", "-shared", "-fPIC"]
# As the package's own CMake files have them.
PINOCCHIO = ["-DBOOST_FUSION_INVOKE_MAX_ARITY=12", "-DBOOST_MPL_LIMIT_LIST_SIZE=30", "-DBOOST_MPL_LIMIT_VECTOR_SIZE=30",
             "-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS"]


class Missing(Exception):
    """A peer that cannot be had on this machine, and why: said in the results."""


def version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def compiler() -> str:
    """Name and version, or "" if there is none."""
    path = shutil.which("g++")
    return subprocess.run([path, "--version"], capture_output=True, text=True).stdout.splitlines()[0] if path else ""


def cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else ():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def library(name: str) -> ctypes.CDLL:
    """Return the library of a file of this folder. Raises Missing."""
    if not compiler():
        raise Missing("no g++ on this machine")
    includes = _pinocchio_includes() if name == "pinocchio_loops" else []
    command = ["g++", *FLAGS, *(PINOCCHIO if includes else []), *includes, str(HERE / f"{name}.cpp")]
    text = (HERE / f"{name}.cpp").read_text()
    ingredients = text.split(), command, compiler(), cpu(), version("pin"), version("cmeel-eigen")
    key = hashlib.sha256(repr(ingredients).encode()).hexdigest()
    file = KEPT / f"{name}-{key[:16]}.so"
    if not file.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        print(f"compiling {name}.cpp{' (2 to 4 minutes, once)' if includes else ''}", flush=True)
        made = file.with_suffix(f".{os.getpid()}")
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
        if done.returncode:
            errors = [line for line in done.stderr.splitlines() if "error" in line]
            raise Missing(f"g++ does not compile {name}.cpp: {errors[0] if errors else done.stderr[-300:]}")
        made.rename(file)
    return ctypes.CDLL(str(file))


def _pinocchio_includes() -> list[str]:
    try:
        import pinocchio
    except ImportError as error:
        raise Missing(f"no Pinocchio: {error}") from None
    prefix = Path(pinocchio.__file__).parents[4]
    for header in ("pinocchio/algorithm/rnea.hpp", "eigen3/Eigen/Core"):
        if not (prefix / "include" / header).exists():
            raise Missing(f"{header} is not among the headers of the wheels (pip install pin cmeel-eigen)")
    return [f"-I{prefix / 'include'}", f"-I{prefix / 'include' / 'eigen3'}"]
