"""Nodes in separate processes, connected by DDS in a ROS domain that no other test uses."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Parameter as ParameterMessage
from rcl_interfaces.srv import GetParameters, SetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor, TimeoutException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.subscription import Subscription

from support.node_server import ForkedProcess, NodeServer

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
DISCOVERY = 120.0  # s; on an idle machine it takes up to 2.2
AGAIN = 10.0  # [s] after which a service is called again
SOURCE = Path(__file__).resolve().parents[2]
COVERAGE = "COVERAGE_PROCESS_CONFIG" in os.environ
# may hold a sourced ROS
PATH = os.pathsep.join([str(SOURCE), str(SOURCE / "test"), *filter(None, [os.environ.get("PYTHONPATH")])])


def free_domain() -> int:
    """Return a ROS domain whose ports are free; above 101 the ports are those that Linux assigns to clients.

    Several participants' ports are tried: a node that outlived its test may hold the second one's while the first is free.
    Workers of pytest-xdist (gw0, gw1 ..) try every fourth domain, so that two cannot find the same one at once.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    while True:
        domain = random.SystemRandom().randrange(1 + worker % 4, 101, 4)
        with suppress(OSError):
            for participant in range(10):
                with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
                    probe.bind(("", 7400 + 250 * domain + 10 + 2 * participant))
            return domain


def stamp(seconds: float, before: float = 0.0) -> Time:
    """Return the stamp of an instant, or of one that is earlier by a time."""
    whole, part = divmod(round(seconds * 1e9) - round(before * 1e9), 1_000_000_000)
    return Time(sec=whole, nanosec=part)


@cache
def _server() -> NodeServer:
    return NodeServer({**os.environ, "PYTHONPATH": PATH})


class RosDomain:
    """Private ROS domain with a node of the test and the processes that it starts."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.domain = free_domain()
        self._processes: list[subprocess.Popen | ForkedProcess] = []
        self.through: list[str] = []  # script that runs the modules of nodes, if any
        self.requests: Counter[str] = Counter()  # requests sent so far, by service
        self._clients: dict[tuple[Any, str], Any] = {}
        self.context = Context()
        os.environ.update(ROS_AUTOMATIC_DISCOVERY_RANGE="LOCALHOST", ROS_LOG_DIR=str(folder / "log"))
        self.context.init(domain_id=self.domain)
        self.node = Node("probe", context=self.context, enable_rosout=False, start_parameter_services=False)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)

    def close(self) -> None:
        # The test's participant goes first. Fast DDS renews a shared-memory port that a killed process has left locked, and a
        # participant that is deleted at that moment reads unmapped memory: a crash in about one of a hundred and fifty.
        try:
            self._executor.shutdown()
            self.node.destroy_node()
            self.context.try_shutdown()
        finally:
            for process in self._processes:
                if COVERAGE:  # `make coverage`: a killed process does not report its lines
                    process.terminate()
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(10.0)
                process.kill()
                process.wait()

    def start(self, module: str | Path, parameters: dict[str, Any] | None = None, namespace: str = "",
              *ros_args: str) -> Process:
        """Start a node of the package, or a file, with parameters from a file, as a launch file would."""
        number = len(self._processes)
        file = self.folder / f"{number}.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters or {}}}))
        remapped = ["-r", f"__ns:=/{namespace}"] if namespace else []
        arguments = ["--ros-args", "--params-file", str(file), *remapped, *ros_args]
        environment = {**os.environ, "ROS_DOMAIN_ID": str(self.domain), "PYTHONPATH": PATH}
        log = self.folder / f"{number}.log"
        log.touch()
        process: subprocess.Popen | ForkedProcess
        if isinstance(module, Path) or self.through or COVERAGE:
            program = ["support.trajectory_controller_node"] if module == "trajectory_controller" else [
                "rnea_ros.node_commands", str(module)]
            which = [str(module)] if isinstance(module, Path) else [*self.through, "-m", *program]
            with log.open("a") as out:  # a separate session: Ctrl-C in the terminal ends the tests, which end this
                process = subprocess.Popen([sys.executable, *which, *arguments], stdout=out, stderr=subprocess.STDOUT,
                                           cwd=self.folder, start_new_session=True, env=environment)
        else:
            process = _server().start(module, arguments, self.folder, environment, log)
        self._processes.append(process)
        return Process(process, log)

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._executor.spin_once(timeout_sec=left)

    def step(self, seconds: float) -> None:
        """Wait for the next event, at most for a time."""
        self._executor.spin_once(timeout_sec=seconds)

    def drain(self, quiet: float = 0.2) -> None:
        """Run callbacks until none has been ready for a time [s], to receive messages of ended processes."""
        while True:
            try:
                handler, *_ = self._executor.wait_for_ready_callbacks(timeout_sec=quiet)
            except TimeoutException:
                return
            handler()
            handler.result()

    def matched(self, node: str) -> None:
        """Wait until a node that publishes diagnostics has matched every subscription that the test has made so far.

        A participant receives the endpoints of another one in the order in which they were created: a node that reaches a
        subscription which is made now has matched those before it, and no message to them is lost from now on.
        """
        reports: list[DiagnosticArray] = []
        subscription = self.node.create_subscription(DiagnosticArray, "/diagnostics", reports.append, 100)
        self.until(lambda: any(status.name.startswith(f"{node}: ") for report in reports for status in report.status),
                   what=f"no diagnostics of {node}")
        self.node.destroy_subscription(subscription)

    def until(self, condition: Callable[[], Any], timeout: float = DISCOVERY, what: str = "",
              of: Process | None = None) -> Any:
        """Spin until the condition holds and return its value; fail after the timeout, with the log `of` a node."""
        end = time.monotonic() + timeout
        while not (value := condition()):
            if time.monotonic() > end:
                log = f"\n{of.log}" if of else ""
                raise AssertionError((what or f"not reached within {timeout} s") + log)
            self._executor.spin_once(timeout_sec=0.02)
        return value

    def call(self, kind: Any, service: str, request: Any) -> Any:
        if (kind, service) not in self._clients:  # kept, since discovery takes time
            self._clients[kind, service] = self.node.create_client(kind, service)
        client = self._clients[kind, service]
        self.until(client.service_is_ready, what=f"no service {service}")
        # A server that has not yet met the client's reader drops its answer after 0.1 s, and on a busy machine that happens:
        # ask again. All that the tests ask for may be asked twice.
        asked: list[Any] = []

        def answered() -> Any:
            if not asked or time.monotonic() - since[-1] > AGAIN:
                asked.append(client.call_async(request))
                self.requests[service] += 1
                since.append(time.monotonic())
            return next((future for future in asked if future.done()), None)

        since: list[float] = []
        return self.until(answered, what=f"no answer from {service}").result()

    def listen(self, kind: Any, topic: str, qos: Any = 100) -> list:
        """Return a list that receives all messages of a topic from now on."""
        received: list = []
        self.node.create_subscription(kind, topic, received.append, qos)
        return received

    def set(self, node: str, together: bool = False, **values: Any) -> str:
        """Set parameters of a node, '__' for a dot in their names; return the reason of a rejection, or ''."""
        wanted: list[ParameterMessage] = [
            Parameter(name.replace("__", "."), value=value).to_parameter_msg() for name, value in values.items()]
        if together:
            request = SetParametersAtomically.Request(parameters=wanted)
            results = [self.call(SetParametersAtomically, f"{node}/set_parameters_atomically", request).result]
        else:
            results = self.call(SetParameters, f"{node}/set_parameters", SetParameters.Request(parameters=wanted)).results
        return "; ".join(result.reason for result in results if not result.successful)

    def get(self, node: str, name: str) -> Any:
        return self.values(node, [name])[name]

    def values(self, node: str, names: list[str]) -> dict[str, Any]:
        """Return values of parameters by name, with one call."""
        answer = self.call(GetParameters, f"{node}/get_parameters", GetParameters.Request(names=names))
        return {name: Parameter.from_parameter_msg(ParameterMessage(name=name, value=value)).value
                for name, value in zip(names, answer.values, strict=True)}


class Process:
    def __init__(self, process: subprocess.Popen | ForkedProcess, log: Path):
        self._process, self._log = process, log

    @property
    def log(self) -> str:
        return self._log.read_text()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def send(self, which: signal.Signals) -> None:
        self._process.send_signal(which)

    def wait(self) -> int:
        """Wait until the process has ended; return the exit code."""
        return self._process.wait(timeout=DISCOVERY)

    def stop(self, how: signal.Signals = signal.SIGINT) -> int:
        """Send a signal; return the exit code."""
        self.send(how)
        return self.wait()


class Diagnostics:
    """Status of one node on /diagnostics."""

    def __init__(self, domain: RosDomain, node: str, task: str = "dynamics"):
        self.domain, self._name = domain, f"{node}: {task}"
        self.status, self.stamp = DiagnosticStatus(), Time()  # newest report
        self._sent: list[int] = []  # when each report was published, by the clock of the system [ns]
        with_info = hasattr(Subscription, "CallbackType")  # Humble's rclpy passes the message alone
        domain.node.create_subscription(DiagnosticArray, "/diagnostics", self._receive if with_info else
                                        lambda message: self._receive(message, {}), 100)

    def _receive(self, message: DiagnosticArray, info: Any) -> None:
        for status in message.status:
            if status.name == self._name:
                self.status, self.stamp = status, message.header.stamp
                self._sent.append(info.get("source_timestamp", self.stamp.sec * 10**9 + self.stamp.nanosec))

    @property
    def values(self) -> dict[str, str]:
        return {pair.key: pair.value for pair in self.status.values}

    @property
    def state(self) -> str:
        return self.values.get("state", "")

    def next(self) -> dict[str, str]:
        """Return the values of the second report published after this call, which was begun after it. Reports in queues are
        older.
        """
        now = time.time_ns()
        self.domain.until(lambda: sum(sent > now for sent in self._sent[-10:]) > 1, what=f"no report of {self._name}")
        return self.values

    def dropped(self, topic: str, reason: str) -> int:
        return int(self.values.get(f"dropped.{topic}.{reason}", 0))


@contextmanager
def ros_domain(folder: Path) -> Iterator[RosDomain]:
    made = RosDomain(folder)
    try:
        yield made
    finally:
        made.close()
