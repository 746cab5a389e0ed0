"""Test of the supported platforms: `make matrix` tries the combinations below that are possible here, each in a fresh clone.

    python .ci/matrix.py [--list] [--only WORD] [--keep] [--full] [--strict] [--pythons FOLDER ...]

A combination is a Python, where ROS 2 comes from, and pins of packages. Its clone lies in build/matrix; the tests are short
ones, --full runs `make test`. Interpreters are searched on the PATH, in pyenv, and in the folders given. What was found is
printed as the table that docs/platforms.md shows, and kept in build/matrix/results.json with the date. Ends with 1 if a test
failed; with --strict also if something was missing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "matrix"
# They need nothing but pytest, and see each backend, the cache, processes, pickles, files and the command line.
LIBRARY = ("test/algorithms/test_component_rate.py", "test/codegen/test_python_call.py", "test/codegen/test_sine_cosine.py",
           "test/codegen/test_batch.py", "test/codegen/test_cache.py", "test/model/test_urdf_errors.py",
           "test/model/test_robot_file.py", "test/robots/test_robot.py", "test/robots/test_pickling.py",
           "test/execution/test_goal.py", "test/cli/test_query.py",
           "test/execution/test_solver_process.py::test_solver_process_returns_the_same_results_as_this_process")
WITHOUT_LLVMLITE = ("test/codegen/test_c_compiler.py", "test/model/test_urdf_errors.py", "test/cli/test_query.py")
NODES = ("test/nodes/test_failures.py", "test/nodes/test_process.py", "test/nodes/test_scaling_node_life.py")
AARCH64 = ("test/robots/test_machines.py",)


@dataclass(frozen=True)
class Combination:
    """python: "3.12"; ros: as for make; pins: requirements that pip keeps; without: a package that is taken away."""

    name: str
    python: str
    ros: str = "none"
    pins: tuple[str, ...] = ()
    without: str = ""
    tests: tuple[str, ...] = LIBRARY
    extras: str = ""
    tools: tuple[str, ...] = ()  # programs that it needs, beside make

    def missing(self, pythons: dict[str, str]) -> str:
        if self.python not in pythons:
            return f"no Python {self.python} here"
        absent = [tool for tool in self.tools if shutil.which(tool) is None]
        return f"no {', no '.join(absent)} here" if absent else ""


COMBINATIONS = (
    *(Combination(f"Python {python}, newest packages", python) for python in ("3.10", "3.11", "3.12", "3.13", "3.14")),
    Combination("oldest numpy and llvmlite", "3.10", pins=("numpy==1.21.*", "llvmlite==0.45.*")),
    Combination("newest numpy, oldest llvmlite", "3.13", pins=("llvmlite==0.45.*",)),
    Combination("no llvmlite", "3.12", without="llvmlite", tests=WITHOUT_LLVMLITE),
    Combination("aarch64 by qemu", "3.11", tests=AARCH64, tools=("aarch64-linux-gnu-gcc", "qemu-aarch64")),
    *(Combination(f"Kilted, Python {python}", python, "wheels", tests=NODES, extras="test", tools=("g++",))
      for python in ("3.10", "3.12", "3.13")),
    Combination("Jazzy, Python 3.12", "3.12", "jazzy", tests=NODES, extras="test", tools=("g++",)),
)


def interpreters(folders: list[Path]) -> dict[str, str]:
    """Return the Python interpreters of this machine, by version."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found: dict[str, str] = {}
    for minor in range(10, 15):
        version = f"3.{minor}"
        paths = [str(folder) for folder in (*folders, *sorted(pyenv.glob(f"{version}.*/bin"), reverse=True))]
        path = shutil.which(f"python{version}", path=os.pathsep.join([*paths, os.environ.get("PATH", "")]))
        if path and _works(path, version):
            found[version] = path
    return found


def _works(path: str, version: str) -> bool:
    """pyenv lays programs on the PATH that only say that there is none."""
    code = "import sys, ensurepip, venv; print('%d.%d' % sys.version_info[:2])"
    return subprocess.run([path, "-c", code], capture_output=True, text=True).stdout.strip() == version


class Clone:
    """Fresh clone of the last commit, with its own environment."""

    def __init__(self, combination: Combination, interpreter: str):
        self.combination, self.interpreter = combination, interpreter
        self.folder = FOLDER / "".join(letter if letter.isalnum() else "_" for letter in combination.name.lower())
        self.log = self.folder.with_suffix(".log")

    def run(self, *command: str) -> bool:
        pins = self.folder.with_suffix(".txt")
        pins.write_text("\n".join(self.combination.pins))
        foreign = ("VIRTUAL_ENV", "PYTHONPATH", "LD_LIBRARY_PATH", "_ROS_WHEELS_BOOTSTRAP_COMPLETE", "MAKEFLAGS", "MFLAGS")
        environment = {name: value for name, value in os.environ.items() if name not in foreign}
        if self.combination.pins:
            environment["PIP_CONSTRAINT"] = str(pins)
        with self.log.open("a") as log:
            return subprocess.run(command, cwd=self.folder, env=environment, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=subprocess.STDOUT).returncode == 0

    def tried(self, full: bool) -> str:
        """Return the result as text; "passed ..." after a success."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.unlink(missing_ok=True)
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(self.folder)], check=True)
        setting, python = self.combination, ".venv/bin/python"
        asked = (f"PYTHON={self.interpreter}", f"ROS={setting.ros}", "LOCK=")
        if full:
            return self._counted() if self.run("make", "test", *asked) else f"failed: {self._counted()}"
        if not (self.run("make", "package", *asked, f"EXTRAS={setting.extras}")
                and self.run(python, "-m", "pip", "install", "--quiet", "pytest", "pytest-timeout")):
            return "failed: cannot be installed"
        if setting.without and not self.run(python, "-m", "pip", "uninstall", "--yes", setting.without):
            return "failed: cannot be uninstalled"
        return self._counted() if self.run(python, "-m", "pytest", "-q", *setting.tests) else f"failed: {self._counted()}"

    def _counted(self) -> str:
        """Return the last line of pytest without its time."""
        last = self.log.read_text(errors="replace").strip().splitlines()[-1]
        return last.strip("= ").partition(" in ")[0]

    def versions(self) -> str:
        code = ("import importlib.metadata as m\n"
                "for name in ('numpy', 'llvmlite', 'ros-rclpy'):\n"
                "    try: print(name.removeprefix('ros-'), m.version(name))\n"
                "    except m.PackageNotFoundError: pass")
        found = subprocess.run([str(self.folder / ".venv/bin/python"), "-c", code], capture_output=True, text=True).stdout
        return ", ".join(found.splitlines())


def table(results: dict[str, dict[str, str]]) -> str:
    rows = [f"| {name} | {found['python']} | {found['versions']} | {found['result']} | {found['date']} |"
            for name, found in results.items()]
    return "\n".join(["| combination | Python | packages | result | date |", "|---|---|---|---|---|", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="what would be tried, and what is missing")
    parser.add_argument("--only", default="", metavar="WORD", help="combinations whose name has this in it")
    parser.add_argument("--full", action="store_true", help="make test, not the short tests")
    parser.add_argument("--strict", action="store_true", help="what is missing is a failure")
    parser.add_argument("--keep", action="store_true", help="leave the clones where they are")
    parser.add_argument("--pythons", nargs="*", type=Path, default=[], metavar="FOLDER", help="where interpreters are, too")
    args = parser.parse_args()
    pythons, kept = interpreters(args.pythons), FOLDER / "results.json"
    FOLDER.mkdir(parents=True, exist_ok=True)
    results = json.loads(kept.read_text()) if kept.exists() else {}
    failed = False
    for combination in (one for one in COMBINATIONS if args.only in one.name):
        missing = combination.missing(pythons)
        if args.list or missing:
            print(f"{combination.name}: {missing or 'possible'}", flush=True)
            failed = failed or bool(missing and args.strict)
            continue
        clone = Clone(combination, pythons[combination.python])
        result = clone.tried(args.full)
        failed = failed or "passed" not in result or result.startswith("failed")
        print(f"{combination.name}: {result} (log: {clone.log})", flush=True)
        results[combination.name] = {"python": f"{combination.python}, {platform.machine()}", "versions": clone.versions(),
                                     "result": result, "date": str(date.today())}
        kept.write_text(json.dumps(results, indent=1))
        if not args.keep:
            shutil.rmtree(clone.folder, ignore_errors=True)
    print(table(results) if results else "", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
