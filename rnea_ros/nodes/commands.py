"""The commands of the nodes. They import nothing before they are called, and who interrupts an import gets no traceback."""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

URDF = "--urdf"


def start(module: str) -> int:
    """Run main() of a module; its exit code. Until that runs, Ctrl-C ends the process at once, as it does programs in C++."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where who started us has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    with described(sys.argv):
        return importlib.import_module(module).main()


@contextmanager
def described(arguments: list[str]) -> Iterator[None]:
    """`--urdf FILE`, before --ros-args: the file's text becomes the parameter robot_description, for whom no launch file reads
    it. A command line of ROS cannot take XML as a parameter's value; a parameter file can."""
    if URDF not in arguments[:-1]:
        yield
        return
    k = arguments.index(URDF)
    try:
        text = Path(arguments[k + 1]).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        sys.exit(f"cannot start: {arguments[k + 1]}: {getattr(error, 'strerror', None) or error}")
    with TemporaryDirectory(prefix="rnea_urdf_") as folder:
        file = Path(folder) / "robot_description.yaml"  # JSON is YAML
        file.write_text(json.dumps({"/**": {"ros__parameters": {"robot_description": text}}}), encoding="utf-8")
        arguments[k:] = [*arguments[k + 2:], "--ros-args", "--params-file", str(file)]
        yield


def dynamics_node() -> int:
    return start("rnea_ros.nodes.dynamics.node")


def query_node() -> int:
    return start("rnea_ros.nodes.query.node")


def scaling_node() -> int:
    return start("rnea_ros.nodes.scaling.node")
