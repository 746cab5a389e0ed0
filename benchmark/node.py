"""A node under load: messages lost, round trip, processor time, beside a naive node with Pinocchio that does the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
URDF = HERE.parent / "urdf" / "seven_r.urdf"
NODE = "/dynamics_node"
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """One run of one node. Round trips in microseconds, of the messages that came back."""

    name: str
    sent: int
    lost: dict[str, int]  # by topic
    trips: np.ndarray  # of joint_dynamics, the last of the three
    cpu_ms: float  # per joint state, user and system time of all threads
    memory_growth_kb: int

    def percentile(self, share: float) -> float:
        return float(np.percentile(self.trips, share))


def spent(pid: int) -> tuple[float, int]:
    """Processor time of a process [s], and its memory [kB]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") // 1024


def measure(name: str, command: list[str], names: list[str], seconds: float, rate: float = 1000.0, desired_every: int = 10) -> Run:
    """Start a node, load it, stop it."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "ROS_DOMAIN_ID": str(random.SystemRandom().randrange(1, 101)),
                       "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "ROS_LOG_DIR": folder, "PYTHONPATH": str(HERE.parent)}
        wanted = {"node": NODE, "names": names, "rate": rate, "desired_every": desired_every, "seconds": seconds, "settle": 2.0}
        log = open(os.path.join(folder, "log"), "w+")
        node = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
        traffic = subprocess.Popen([sys.executable, str(HERE / "traffic.py"), json.dumps(wanted)], env=environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if _line(traffic) != "ready":
                log.seek(0)
                raise RuntimeError(f"{name} was not found:\n{log.read()}")
            before, memory = spent(node.pid)
            answer: dict[str, Any] = json.loads(_line(traffic, go=True))
            after, memory_then = spent(node.pid)
        finally:
            traffic.kill()
            node.send_signal(signal.SIGINT)
            node.wait(timeout=20)
            log.close()
    trips = {topic: np.array(values, dtype=float) for topic, values in answer["trips_us"].items()}
    lost = {topic: int(np.isnan(values).sum()) for topic, values in trips.items()}
    last = trips["joint_dynamics"]
    return Run(name, answer["sent"], lost, last[~np.isnan(last)], 1e3 * (after - before) / max(1, (~np.isnan(last)).sum()),
               memory_then - memory)


def _line(process: subprocess.Popen, go: bool = False) -> str:
    assert process.stdin and process.stdout
    if go:
        process.stdin.write("go\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def ours(**parameters: Any) -> list[str]:
    settings = {"robot_description": URDF.read_text(), **parameters}
    file = Path(tempfile.mkdtemp()) / "parameters.json"  # JSON is YAML
    file.write_text(json.dumps({"/**": {"ros__parameters": settings}}))
    return [sys.executable, "-m", "rnea_ros.nodes.dynamics_node", "--ros-args", "--params-file", str(file)]


def naive() -> list[str]:
    return [sys.executable, str(HERE / "naive_node.py"), str(URDF)]


if __name__ == "__main__":
    from rnea_ros import Robot

    joints = list(Robot.from_urdf(URDF, backend="reference").joint_names)
    for which in sys.argv[2:] or ("naive", "ours"):
        run = measure(which, naive() if which == "naive" else ours(), joints, float(sys.argv[1]))
        print(which, run.sent, run.lost, *(f"{run.percentile(p):.0f}" for p in (50, 99, 99.9, 100)), f"cpu {run.cpu_ms:.3f} ms",
              run.memory_growth_kb)
