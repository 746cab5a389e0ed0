"""Node processes, forked from a server that has imported rclpy and the nodes; one server for each test process.

A separate Python process spends 0.9 s of processor time on these imports. A fork is a process like any other: it has its own
environment, working folder, session and log, ends by signals, and leaves the interpreter the normal way.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

IMPORTED = ("rnea_ros.nodes.dynamics.node", "rnea_ros.nodes.scaling.node", "rnea_ros.nodes.query_node",
            "rnea_ros.demo.nodes.robots", "rnea_ros.codegen.llvm_text", "rnea_ros.model.robot_file", "jsonschema",
            "llvmlite.binding", "lxml.etree", "yaml", "rosidl_generator_py")  # the last: rclpy, at the first message
MESSAGES = ("rcl_interfaces", "lifecycle_msgs", "std_msgs", "diagnostic_msgs", "sensor_msgs", "geometry_msgs", "nav_msgs",
            "trajectory_msgs", "visualization_msgs", "std_srvs", "rnea_msgs")  # packages whose libraries are loaded


class NodeServer:
    """Client of the server: `start` returns a process with the interface of Popen that the tests use."""

    def __init__(self, environment: dict[str, str]):
        self._server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env=environment, start_new_session=True)

    def start(self, node: str, arguments: list[str], folder: Path, environment: dict[str, str], log: Path) -> ForkedProcess:
        end = log.with_suffix(".end")
        job = {"node": node, "arguments": arguments, "folder": str(folder), "environment": environment, "log": str(log),
               "end": str(end)}
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        return ForkedProcess(int(self._server.stdout.readline()), end)


class ForkedProcess:
    """Process that the server has forked. The server writes its exit code into the file `end`."""

    def __init__(self, pid: int, end: Path):
        self.pid, self._end = pid, end

    def poll(self) -> int | None:
        return int(self._end.read_text()) if self._end.exists() else None

    def wait(self, timeout: float = 240.0) -> int:
        end = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.005)
        return code

    def send_signal(self, which: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, which)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def load_messages(package: str) -> None:
    """Load the compiled code of the messages and services of a package."""
    from rclpy.type_support import check_for_type_support

    for kind in ("msg", "srv"):
        with suppress(ModuleNotFoundError):
            for found in vars(importlib.import_module(f"{package}.{kind}")).values():
                if hasattr(found, "__import_type_support__"):
                    check_for_type_support(found)


def serve() -> dict[str, Any]:
    """Fork a process for each line of stdin and write its id to stdout; returns the job in each fork, exits at the end."""
    running: dict[int, tuple[int, Path]] = {}  # by file descriptor of the process: its id, and the file for its exit code
    poll = select.poll()
    poll.register(0, select.POLLIN)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor:
                poll.unregister(descriptor)
                os.close(descriptor)
                pid, end = running.pop(descriptor)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(OSError):  # the folder may have been removed
                    end.with_suffix(".part").write_text(str(code))
                    end.with_suffix(".part").rename(end)
                continue
            line = b""
            while not line.endswith(b"\n"):
                read = os.read(0, 65536)
                if not read:
                    os._exit(0)
                line += read
            job = json.loads(line)
            pid = os.fork()
            if not pid:
                for other in running:
                    os.close(other)
                return job
            running[descriptor := os.pidfd_open(pid)] = pid, Path(job["end"])
            poll.register(descriptor, select.POLLIN)
            os.write(1, f"{pid}\n".encode())


def become(job: dict[str, Any]) -> int:
    """Run a node in this process, which was forked for it."""
    os.setsid()
    log = os.open(job["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.chdir(job["folder"])
    os.environ.clear()
    os.environ.update(job["environment"])
    sys.argv = [job["node"], *job["arguments"]]
    if job["node"] == "trajectory_controller":  # a stand-in of the tests
        return importlib.import_module("support.trajectory_controller_node").main()
    return importlib.import_module("rnea_ros.node_commands").start(job["node"])


if __name__ == "__main__":
    for name in IMPORTED:
        with suppress(ImportError):
            importlib.import_module(name)
    for name in MESSAGES:
        with suppress(ImportError):
            load_messages(name)
    gc.collect()
    gc.freeze()  # pages of imported modules stay shared
    sys.exit(become(serve()))
