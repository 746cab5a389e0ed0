"""Nodes in processes of their own, in a ROS of our own, of which nothing is left when the demo ends, however it ends."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import RneaError
from ..model.xacro_file import XacroFile
from ..sim.machines import EXAMPLE_PACKAGE, example_urdf

MODULES = {  # of the nodes by name
    **{f"{kind}_node": f"rnea_ros.nodes.{kind}.node" for kind in ("dynamics", "scaling", "query")},
    **{name: f"rnea_ros.demo.nodes.{name}"
       for name in ("demo_robot", "demo_follower", "demo_plant", "elastic_plant", "elastic_controller",
                    "trajectory_controller", "arm_plant")},
}
OTHERS = f"{EXAMPLE_PACKAGE}:"
GRACE = 5.0  # s, for a process to end by itself


def own(path: str) -> Path | XacroFile:
    """A path that the user gave, for `described`."""
    return path if isinstance(path, XacroFile) else Path(path)


def described(urdf: str | Path) -> Path | XacroFile:
    """Return what urdf_reader reads of a demo's URDF: a file in the share folder, or a path of the user (`own`)."""
    return urdf if isinstance(urdf, XacroFile) else shared(urdf)


def shared(name: str | Path) -> Path:
    """Return a file of the package's share folder, wherever pip or colcon have put it, or of the source tree.

    After "example-robot-data:" the name is the end of a path in that package. A Path is returned as it is.
    """
    if isinstance(name, Path):
        return name
    if name.startswith(OTHERS):
        return example_urdf(name.removeprefix(OTHERS))
    package = Path(__file__).resolve().parents[1]
    for path in (package.parent / name, *(folder / "share" / "rnea_ros" / name for folder in package.parents)):
        if path.is_file():
            return path
    raise RneaError(f"{name} is not installed beside {package}; give a robot with --urdf")


def demo_domain() -> int:
    """Return ROS_DOMAIN_ID where it is set, so that other terminals see the demo; else a random ID, away from other robots."""
    given = os.environ.get("ROS_DOMAIN_ID", "")
    if given and not given.isdecimal():
        raise RneaError(f"ROS_DOMAIN_ID is '{given}'; a number from 0 to 232 is needed, or no such variable")
    return int(given) if given else random.randrange(1, 102)


@contextmanager
def signals() -> Iterator[list[int]]:
    """SIGINT and SIGTERM as they come in: noted, not raised, since an exception can get lost in the middle of a callback."""
    caught: list[int] = []

    def note(number: int, _frame: Any) -> None:
        caught.append(number)

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield caught
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ros_environment(domain: int, folder: str) -> Iterator[None]:
    """A ROS of our own, for this process and those that it starts; logs go where they are removed with the rest."""
    before = dict(os.environ)
    os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", ROS_LOG_DIR=folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def processes(folder: Path, nodes: Sequence[str], parameters: Mapping[str, Any]) -> Iterator[list[subprocess.Popen]]:
    """The nodes, running; none of them is left when the block ends, however it ends. parameters: as in a YAML file."""
    file = folder / "parameters.yaml"
    file.write_text(json.dumps(parameters), encoding="utf-8")  # JSON is YAML
    source = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}
    started: list[subprocess.Popen] = []
    try:
        for node in nodes:
            command = [sys.executable, "-m", MODULES[node], "--ros-args", "--params-file", str(file)]
            with open(folder / f"{node}.txt", "w") as log:
                started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL))
        yield started
    finally:
        _end(started)


def _end(processes: Sequence[subprocess.Popen]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def explain(processes: Sequence[subprocess.Popen], nodes: Sequence[str], folder: Path, patience: float) -> None:
    """Nothing came, or not all: what the nodes had to say."""
    print(f"a topic was not heard within {patience:g} s, or a node ended. What they wrote:", file=sys.stderr)
    for node, process in zip(nodes, processes):
        lines = (folder / f"{node}.txt").read_text(errors="replace").splitlines()[-12:]
        print("\n".join([f"--- {node}, exit code {process.returncode}", *lines]), file=sys.stderr)
