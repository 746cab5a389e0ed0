"""Signals end a node between two callbacks, with the exit code that launch expects, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")


from rnea_ros.nodes.common import process
from support.ros_helpers import PATH, free_domain

ROOT = Path(__file__).resolve().parents[2]


def program(tmp_path, text):
    """Run a Python program; return the completed process."""
    (tmp_path / "program.py").write_text(text)
    environment = {**os.environ, "PYTHONPATH": PATH, "ROS_DOMAIN_ID": str(free_domain()), "ROS_LOG_DIR": str(tmp_path)}
    return subprocess.run([sys.executable, "program.py"], cwd=tmp_path, env=environment, text=True, capture_output=True,
                          timeout=240)


INTERRUPTED = """
import os, signal, sys, time
from rclpy.node import Node
from rnea_ros.nodes.common.process import run

class Busy(Node):
    lean = {lean}

    def __init__(self):
        super().__init__("busy")
        self.create_timer(0.01, self.work)

    def work(self):
        os.kill(os.getpid(), signal.{how})
        end = time.monotonic() + 0.2
        while time.monotonic() < end:
            pass
        print("to its end", flush=True)

sys.exit(run([Busy]))
"""


@pytest.mark.ros
@pytest.mark.parametrize("lean", [True, False])
@pytest.mark.parametrize("how", ["SIGINT", "SIGTERM"])
def test_signal_does_not_interrupt_a_callback(tmp_path, how, lean):
    done = program(tmp_path, INTERRUPTED.format(how=how, lean=lean))
    assert (done.returncode, set(done.stdout.splitlines()), done.stderr) == (0, {"to its end"}, "")


SPOILED = """
import os, signal, sys
import rclpy
from rclpy.node import Node
from rnea_ros.nodes.common import process

class Failing(process.LeanExecutor):
    def spin(self):
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            pass
        raise RuntimeError("as the middleware's code says it")

rclpy.ok = lambda: True  # the thread that ends the context has not been let run yet
process.LeanExecutor = Failing
sys.exit(process.run([lambda: Node("spoiled")]))
"""


@pytest.mark.ros
def test_errors_caused_by_a_signal_are_not_reported_as_failures(tmp_path):
    done = program(tmp_path, SPOILED)
    assert (done.returncode, done.stderr) == (0, "")
    done = program(tmp_path, SPOILED.replace("os.kill(os.getpid(), signal.SIGINT)", "pass"))
    assert done.returncode == 1 and "as the middleware's code says it" in done.stderr


MAKING = """
import os, signal, sys, time
import rclpy
from rclpy.node import Node
from rnea_ros.nodes.common.process import run

def make():
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(0.3)  # rclpy's own handlers end the context within it
    print(rclpy.ok())
    return Node("made")

sys.exit(run([make]))
"""


@pytest.mark.ros
def test_signal_during_node_construction_ends_the_node_afterwards(tmp_path):
    done = program(tmp_path, MAKING)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


IMPORTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, *_):
        if name == "{module}":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # the parent process may ignore it
sys.meta_path.insert(0, Interrupting())
from {commands} import {name}
sys.exit({name}())
"""


@pytest.mark.parametrize("module", ["numpy", "rclpy"])
@pytest.mark.parametrize("name", ["dynamics_node", "query_node", "scaling_node", "demo_robot", "demo_follower"])
def test_interrupt_during_imports_of_a_node_prints_no_traceback(tmp_path, name, module):
    done = program(tmp_path, IMPORTING.format(module=module, commands="rnea_ros.node_commands", name=name))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")  # as for a C++ program


def test_interrupt_during_imports_of_the_rnea_command_prints_no_traceback(tmp_path):
    done = program(tmp_path, IMPORTING.format(module="numpy", commands="rnea_ros.cli", name="rnea"))
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")
    late = "import sys; sys.argv[1:] = ['model', '/nowhere']\n"  # a subcommand's own imports, when main runs already
    late += IMPORTING.format(module="rnea_ros.cli.models", commands="rnea_ros.cli", name="rnea")
    done = program(tmp_path, late)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_noted_signals_raise_no_exception():
    before = {number: signal.getsignal(number) for number in process.SIGNALS}
    try:
        came = process.noted_signals()
        for number in process.SIGNALS:
            os.kill(os.getpid(), number)
        assert came == list(process.SIGNALS)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
