"""Nodes in separate processes and in a private ROS domain; both end with the demo."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from ..errors import RneaError
from ..model.xacro_file import XacroFile
from ..sim.machines import EXAMPLE_PACKAGE, example_urdf

EXAMPLE_PREFIX = f"{EXAMPLE_PACKAGE}:"
TERMINATION_TIMEOUT_S = 5.0


def user_path(path: str) -> Path | XacroFile:
    """Return a path given by the user in the form that `urdf_source` accepts."""
    return path if isinstance(path, XacroFile) else Path(path)


def urdf_source(urdf: str | Path) -> Path | XacroFile:
    """Return the URDF source of a demo: a file of the share folder, or a path given by the user."""
    return urdf if isinstance(urdf, XacroFile) else share_file(urdf)


def share_file(name: str | Path) -> Path:
    """Return a file of the share folder of the package, as installed by pip or colcon, or of the source tree.

    A name that begins with "example-robot-data:" is the end of a path in that package. A Path is returned unchanged.
    """
    if isinstance(name, Path):
        return name
    if name.startswith(EXAMPLE_PREFIX):
        return example_urdf(name.removeprefix(EXAMPLE_PREFIX))
    package = Path(__file__).resolve().parents[1]
    for path in (package.parent / name, *(folder / "share" / "rnea_ros" / name for folder in package.parents)):
        if path.is_file():
            return path
    raise RneaError(f"{name} is not installed beside {package}: install the package again, or give the path of a robot")


class MissingRos(RneaError):
    """Error: ROS 2, or a package of it, is not installed; the message is the reason."""


class NoMessages(RneaError):
    """Error inside a node session: expected messages did not arrive."""


class NodesFailed(RneaError):
    """Error: expected messages did not arrive; the message holds the output of the nodes."""


class Interrupted(Exception):
    """SIGINT or SIGTERM arrived during a node session; `number` is the signal."""

    def __init__(self, number: int):
        super().__init__(f"signal {number}")
        self.number = number


def recorders() -> ModuleType:
    """Return the module of the recording nodes. Raises MissingRos without ROS 2."""
    try:
        from .nodes import recorders as found
    except ImportError as error:
        raise MissingRos(str(error)) from None
    return found


class NodeSession(NamedTuple):
    """Session of nodes in separate processes: ROS domain, folder for files, processes, received signals."""

    domain: int
    folder: Path
    processes: Sequence[subprocess.Popen]
    signals: Sequence[int]

    def is_running(self) -> bool:
        """Return whether all processes run and no signal was received."""
        return not self.signals and all(process.poll() is None for process in self.processes)


@contextmanager
def node_session(nodes: Sequence[str], parameters: Callable[[Path], Mapping[str, Any]], report: Callable[[str], None],
                 prefix: str = "") -> Iterator[NodeSession]:
    """Run nodes in separate processes and a private ROS domain; both end with the block, also after an error.

    parameters : function of the folder of the session that returns the content of a ROS parameter file
    report     : function that is called with lines for the user

    Raises NodesFailed if the block raises NoMessages; Interrupted if a signal was received.
    """
    domain, failure = demo_domain(), None
    with tempfile.TemporaryDirectory(prefix="rnea_demo_") as name:
        folder = Path(name)
        with (recorded_signals() as caught, ros_environment(domain, name),
              processes(folder, nodes, parameters(folder)) as started):
            many = len(nodes) > 1
            report(f"{prefix}{' and '.join(nodes)} {'run as processes' if many else 'runs as process'} "
                   f"{' and '.join(str(process.pid) for process in started)}")
            report(f"to inspect from another terminal: export ROS_DOMAIN_ID={domain}\n")
            try:
                yield NodeSession(domain, folder, started, caught)
            except NoMessages as error:
                failure = error
        if caught:
            raise Interrupted(caught[0])
        if failure:
            raise NodesFailed(f"{failure}. Output of the nodes:\n{node_logs(started, nodes, folder)}")


def demo_domain() -> int:
    """Return ROS_DOMAIN_ID if it is set, so that other terminals see the demo, else a random domain."""
    given = os.environ.get("ROS_DOMAIN_ID", "")
    if given and not given.isdecimal():
        raise RneaError(f"ROS_DOMAIN_ID is '{given}'; a number from 0 to 232 is needed; set one, or unset the variable")
    return int(given) if given else random.randrange(1, 102)


@contextmanager
def recorded_signals() -> Iterator[list[int]]:
    """Record SIGINT and SIGTERM instead of raising, since an exception can be lost inside a callback."""
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
    """Set the ROS domain and the log folder for this process and its children; restore the environment afterwards."""
    before = dict(os.environ)
    os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", ROS_LOG_DIR=folder)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def processes(folder: Path, nodes: Sequence[str], parameters: Mapping[str, Any]) -> Iterator[list[subprocess.Popen]]:
    """Run nodes in processes that end with the block. parameters: content of a ROS parameter file."""
    file = folder / "parameters.yaml"
    file.write_text(json.dumps(parameters), encoding="utf-8")  # JSON is YAML
    source = str(Path(__file__).resolve().parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))}
    started: list[subprocess.Popen] = []
    try:
        for node in nodes:
            command = [sys.executable, "-m", "rnea_ros.node_commands", node, "--ros-args", "--params-file", str(file)]
            with open(folder / f"{node}.txt", "w") as log:
                started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log,
                                                stdin=subprocess.DEVNULL))
        yield started
    finally:
        _terminate(started)


def _terminate(processes: Sequence[subprocess.Popen]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        try:
            process.wait(TERMINATION_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def node_logs(processes: Sequence[subprocess.Popen], nodes: Sequence[str], folder: Path) -> str:
    """Return the exit code and the last lines of every node."""
    found = []
    for node, process in zip(nodes, processes):
        lines = (folder / f"{node}.txt").read_text(errors="replace").splitlines()[-12:]
        found += [f"--- {node}, exit code {process.returncode}", *lines]
    return "\n".join(found)
