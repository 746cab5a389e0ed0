"""The commands of the nodes. They import nothing before they are called, and who interrupts an import gets no traceback."""

from __future__ import annotations

import importlib
import signal


def start(module: str) -> int:
    """Run main() of a module; its exit code. Until that runs, Ctrl-C ends the process at once, as it does programs in C++."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where who started us has it ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return importlib.import_module(module).main()


def dynamics_node() -> int:
    return start("rnea_ros.nodes.dynamics.node")


def query_node() -> int:
    return start("rnea_ros.nodes.query.node")


def scaling_node() -> int:
    return start("rnea_ros.nodes.scaling.node")
