"""Exported C beside the package's own machine code and C from CasADi: one compiler, one run, one loop in C around each.

``python benchmark/export.py`` writes export.md here. All sides are called in turn, and the fastest round counts.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import casadi
import numpy as np
from cases import path

from rnea_ros import Robot, load
from rnea_ros.algorithms import torque_rate
from rnea_ros.export import c_library

HERE = Path(__file__).resolve().parent
CALLS, ROUNDS = 2000, 60
FLAGS = ["-std=c99", "-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fPIC", "-shared"]
LOOP = """
void loop(void (*f)(const double *, double *), const double *x, double *y, long n) { for (long k = 0; k < n; ++k) f(x, y); }
"""


def compiled(text: str, folder: Path, name: str) -> ctypes.CDLL:
    (folder / f"{name}.c").write_text(text)
    subprocess.run([shutil.which("cc") or "cc", *FLAGS, "-o", f"{name}.so", f"{name}.c", "-lm"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def exported(robot: Any, folder: Path) -> Any:
    """torque_and_rate as void(x, y)."""
    library = c_library.library(robot, "robot", wanted=lambda name: name == "torque_and_rate")
    c_library.write_package(library, folder / "package")
    inputs, outputs = library.functions[0].blocks
    arguments, x, y = [], 0, 0
    for block in inputs:
        arguments.append(f"x + {x}")
        x += block.size
    for block in outputs:
        arguments.append(f"y + {y}")
        y += block.size
    header = str(folder / "package" / "include" / "robot" / "robot.h")
    text = (folder / "package" / "src" / "robot.c").read_text().replace("robot/robot.h", header)
    text += f"\nvoid flat(const double *x, double *y) {{ robot_torque_and_rate({', '.join(arguments)}); }}\n"
    return compiled(text, folder, "exported").flat


def of_casadi(robot: Robot, folder: Path) -> Any:
    """Return the paper's recursion on CasADi's scalars, and the C that it writes of it."""
    n = robot.n
    symbols = [casadi.SX.sym(name, n) for name in ("q", "qd", "qdd", "qddd")]
    scalars = [np.array([SymbolicScalar(x[k]) for k in range(n)], dtype=object) for x in symbols]
    tau, rate = torque_rate.torque_and_rate(robot.model, *scalars, robot.gravity_vector)
    found = casadi.vertcat(*(x.x if isinstance(x, SymbolicScalar) else x for x in (*tau, *rate)))
    function = casadi.Function("f", [casadi.vertcat(*symbols)], [found])
    here = os.getcwd()
    os.chdir(folder)
    try:
        function.generate("casadi.c")
    finally:
        os.chdir(here)
    text = (folder / "casadi.c").read_text() + """
void flat(const double *x, double *y) { const double *a[1] = {x}; double *r[1] = {y}; f(a, r, 0, 0, 0); }
"""
    return compiled(text, folder, "casadi_flat").flat


class SymbolicScalar:
    """Scalar of CasADi with the methods that numpy uses."""

    def __init__(self, x: Any):
        self.x = x

    def sin(self) -> SymbolicScalar:
        return SymbolicScalar(casadi.sin(self.x))

    def cos(self) -> SymbolicScalar:
        return SymbolicScalar(casadi.cos(self.x))

    def __neg__(self) -> SymbolicScalar:
        return SymbolicScalar(-self.x)


def _operator(name: str) -> Any:
    def operate(self: SymbolicScalar, other: Any) -> Any:
        if isinstance(other, np.ndarray):
            return NotImplemented
        return SymbolicScalar(getattr(self.x, name)(other.x if isinstance(other, SymbolicScalar) else float(other)))

    return operate


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv"):
    setattr(SymbolicScalar, f"__{_name}__", _operator(f"__{_name}__"))


def measured(sides: dict[str, Any], size: int, width: int, loop: Any) -> tuple[dict[str, float], float]:
    """ns for a call of each, the fastest of all rounds; the largest difference from the first, relative."""
    x, best, results = np.random.default_rng(0).normal(size=size), dict.fromkeys(sides, np.inf), {}
    for _ in range(ROUNDS):
        for name, address in sides.items():
            y = np.zeros(width)
            begin = time.perf_counter()
            loop(*map(ctypes.c_void_p, (address, x.ctypes.data, y.ctypes.data)), ctypes.c_long(CALLS))
            best[name], results[name] = min(best[name], (time.perf_counter() - begin) / CALLS * 1e9), y
    first, *others = results.values()
    return best, max(float(np.abs(y - first).max() / np.abs(first).max()) for y in others)


def main() -> None:
    rows = []
    for name in ("ur5_robot", "panda", "seven_r", "talos_reduced"):
        robot = load(path(name))
        kernel = robot.kernel()
        with tempfile.TemporaryDirectory() as folder:
            loop = compiled(LOOP, Path(folder), "loop").loop
            code = {"ours, in C": exported(robot, Path(folder)), "CasADi, in C": of_casadi(robot, Path(folder))}
            sides = {"kernel": kernel.address, **{what: ctypes.cast(one, ctypes.c_void_p).value for what, one in code.items()}}
            best, difference = measured(sides, kernel.size, kernel.width, loop)
        kept = best["ours, in C"] / best["kernel"], best["CasADi, in C"] / best["ours, in C"]
        times = " | ".join(f"{nanoseconds:.0f}" for nanoseconds in best.values())
        rows.append(f"| {name} | {robot.n} | {times} | {kept[0]:.2f} | {kept[1]:.1f} | {difference:.0e} |")
        print(rows[-1], flush=True)
    compiler = subprocess.run([shutil.which("cc") or "cc", "--version"], capture_output=True, text=True, check=True).stdout
    story = (f"Time of one call that computes torque and torque rate [ns], from a loop in C: the fastest of {ROUNDS} rounds "
             f"of {CALLS} calls, measured alternately; {compiler.splitlines()[0]}, {' '.join(FLAGS[1:5])}; "
             f"{platform.machine()}. CasADi {casadi.__version__} generated its C code from the recursion of "
             "algorithms/torque_rate.py on its scalars. Written by `python benchmark/export.py`.")
    (HERE / "export.md").write_text("\n".join([
        "# Exported C", "", story, "",
        "| robot | joints | kernel (LLVM) | ours, in C | CasADi, in C | ours / kernel | CasADi / ours | largest difference |",
        "|---|---|---|---|---|---|---|---|", *rows, ""]))


if __name__ == "__main__":
    main()
