"""Controllers of rnea_controllers, compiled with stand-in headers of ros2_control and driven through ctypes."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.cpp_build import built_once

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "rnea_controllers"
COMPILER = shutil.which("g++") or shutil.which("c++") or ""
# Warnings of ros2_control_cmake and more.
FLAGS = ("-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wold-style-cast", "-Werror")
SUCCESS, FAILURE, ERROR = 97, 98, 99  # CallbackReturn
PLUGIN = "rnea_controllers::InverseDynamicsController"
NO_COMPILER = "no g++: the controllers of rnea_controllers are NOT tested here; install g++"


def compiled() -> list[Path]:
    """Compile the controllers and their harness, once for all processes of a test run; return the object files."""
    def compile_source(source: Path) -> Path:
        return built_once(f"controllers_{source.stem}.o", lambda target: _run("-c", "-fPIC", "-O2", source, "-o", target))

    return [compile_source(source) for source in _sources()]


def library() -> Path:
    """Return the shared library of the controllers and their harness."""
    objects = compiled()
    return built_once("controllers.so", lambda target: _run("-shared", *objects, "-o", target, "-ldl", "-pthread"))


def program(target: Path, *more: str, objects: Sequence[Path] = ()) -> Path:
    """Link the program that measures a cycle from objects, or compile it with the controllers as one unit."""
    relaxed = ("-Wno-pedantic", "-Wno-conversion", "-Wno-old-style-cast")
    sources = [PACKAGE / "test" / "realtime.cpp"]
    if not objects:
        sources = [*_sources(), *sources]
    unit = target.with_suffix(".cpp")
    unit.write_text("".join(f'#include "{source}"\n' for source in sources), encoding="utf-8")
    _run(*more, *relaxed, unit, *objects, "-o", target, "-ldl", "-pthread")
    return target


def _sources() -> list[Path]:
    return [*sorted((PACKAGE / "src").glob("*.cpp")), PACKAGE / "test" / "harness.cpp"]


def _run(*words: str | Path) -> None:
    """Run the compiler. Skips the test where there is none."""
    if not COMPILER:
        pytest.skip(NO_COMPILER)
    include = [f"-I{PACKAGE / folder}" for folder in ("include", "test/stand_in")]
    done = subprocess.run([COMPILER, *FLAGS, *include, *words], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


class Controller:
    """Controller behind the stand-in headers, with the calls of a controller manager as methods."""

    def __init__(self, library: ctypes.CDLL, parameters: Mapping[str, Any], update_rate: int = 1000, plugin: str = PLUGIN,
                 name: str = "controller"):
        self._code = library
        for function in ("harness_new", "harness_set", "harness_name", "harness_log", "harness_descriptions"):
            getattr(library, function).restype = ctypes.c_void_p if function == "harness_new" else ctypes.c_char_p
        self._self = ctypes.c_void_p(library.harness_new(plugin.encode(), name.encode(), update_rate))
        self._give(parameters)
        self._code.harness_set(self._self, 1)

    def _give(self, parameters: Mapping[str, Any]) -> None:
        for name, value in parameters.items():
            key = name.encode()
            if isinstance(value, str):
                self._code.harness_text(self._self, key, value.encode())
            elif isinstance(value, float):
                self._code.harness_number(self._self, key, ctypes.c_double(value))
            elif len(value) and isinstance(value[0], str):
                texts = (ctypes.c_char_p * len(value))(*(text.encode() for text in value))
                self._code.harness_texts(self._self, key, texts, len(value))
            else:
                array = np.ascontiguousarray(value, dtype=float)
                self._code.harness_numbers(self._self, key, ctypes.c_void_p(array.ctypes.data), len(array))

    def set_parameters(self, **parameters: Any) -> str:
        """Set parameters at run time ("__" for a dot); return the reason of a rejection, or nothing."""
        self._give({name.replace("__", "."): value for name, value in parameters.items()})
        return self._code.harness_set(self._self, 0).decode()

    def transition(self, name: str) -> int:
        return int(self._code.harness_transition(self._self, name.encode()))

    def chain(self, chained: bool = True) -> None:
        self._code.harness_chained(self._self, int(chained))

    def names(self, kind: str) -> list[str]:
        """Return names of interfaces: commands, states, references or exported."""
        count = self._code.harness_count(self._self, kind.encode())
        return [self._code.harness_name(self._self, kind.encode(), k).decode() for k in range(count)]

    def write(self, states: Any = None, references: Any = None, commands: Any = None) -> None:
        arrays = [None if x is None else np.ascontiguousarray(x, dtype=float) for x in (states, references, commands)]
        self._code.harness_write(self._self, *(None if x is None else ctypes.c_void_p(x.ctypes.data) for x in arrays))

    def update(self, period: float = 1e-3) -> int:
        return int(self._code.harness_update(self._self, ctypes.c_double(period)))

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """Return commands (commands,) and exported states (exported,)."""
        found = [np.full(self._code.harness_count(self._self, kind), np.nan) for kind in (b"commands", b"exported")]
        self._code.harness_read(self._self, *(ctypes.c_void_p(x.ctypes.data) for x in found))
        return found[0], found[1]

    def set_clock(self, nanoseconds: int) -> None:
        self._code.harness_clock(self._self, ctypes.c_int64(nanoseconds))

    def send_trajectory(self, stamp: int, joints: Sequence[str], times: Any, points: Any) -> None:
        """Publish a JointTrajectory; stamp [ns], times (points,) [s], points (points, 3, joints): q, qd, qdd."""
        names = (ctypes.c_char_p * len(joints))(*(joint.encode() for joint in joints))
        arrays = [np.ascontiguousarray(x, dtype=float) for x in (times, points)]
        self._code.harness_trajectory(self._self, ctypes.c_int64(stamp), names, len(joints),
                                      *(ctypes.c_void_p(x.ctypes.data) for x in arrays), len(arrays[0]))

    def send_override(self, share: float) -> None:
        self._code.harness_override(self._self, ctypes.c_double(share))

    @property
    def references(self) -> np.ndarray:
        found = np.zeros(self._code.harness_count(self._self, b"references"))
        self._code.harness_references(self._self, ctypes.c_void_p(found.ctypes.data))
        return found

    def lock_state(self, number: int, locked: bool) -> None:
        self._code.harness_lock(self._self, number, int(locked))

    @property
    def log(self) -> str:
        return self._code.harness_log(self._self).decode()

    @property
    def descriptions(self) -> dict[str, str]:
        lines = self._code.harness_descriptions(self._self).decode().splitlines()
        return dict(line.split("\t") for line in lines)

    def close(self) -> None:
        self._code.harness_delete(self._self)
