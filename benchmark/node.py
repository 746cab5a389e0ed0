"""A node under load: messages lost, round trip, processor time, beside a naive node with Pinocchio that does the same."""

from __future__ import annotations

import json
import os
import random
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
RATE, DESIRED_EVERY, SETTLE = 1000.0, 10, 2.0  # joint states per s, of which every tenth brings a desired motion; s


@dataclass(frozen=True)
class Load:
    """One run of one node. Round trips in microseconds, of the messages that came back."""

    name: str
    sent: int
    lost: int  # of the results, the worst topic
    trips: np.ndarray  # of the last topic that is listened to
    cpu_ms: float  # per result, user and system time of all threads
    growth_kb: int  # of resident memory
    busy: float  # load of the machine

    def percentile(self, share: float) -> float:
        return float(np.percentile(self.trips, share)) if len(self.trips) else float("nan")


def spent(pid: int) -> tuple[float, int]:
    """Processor time of a process [s], and its resident memory [kB]."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ticks, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")
    return (int(fields[11]) + int(fields[12])) / ticks, int(fields[21]) * page // 1024


def load(name: str, command: list[str], joints: list[str], topics: list[str], seconds: float, real_time: bool) -> Load:
    """Start a node, feed it, listen to some of its topics, stop it."""
    wanted = {"node": NODE, "names": joints, "topics": topics, "rate": RATE, "desired_every": DESIRED_EVERY,
              "settle": SETTLE, "seconds": seconds}
    with tempfile.TemporaryDirectory() as folder, open(Path(folder) / "log", "w+") as log:
        environment = {**os.environ, "ROS_DOMAIN_ID": str(random.SystemRandom().randrange(1, 101)), "ROS_LOG_DIR": folder,
                       "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "PYTHONPATH": str(HERE.parent)}
        node = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT,
                                preexec_fn=run_in_real_time if real_time else None)
        traffic = subprocess.Popen([sys.executable, str(HERE / "traffic.py"), json.dumps(wanted)], env=environment,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            if _line(traffic) != "ready":
                log.seek(0)
                raise RuntimeError(f"{name} was not found:\n{log.read()}")
            before, memory = spent(node.pid)
            answer: dict[str, Any] = json.loads(_line(traffic, "go"))
            after, memory_then = spent(node.pid)
        finally:
            for process in (traffic, node):
                process.kill()
                process.wait()
    trips = {topic: np.array(values, dtype=float) for topic, values in answer["trips_us"].items()}
    back = trips[topics[-1]][~np.isnan(trips[topics[-1]])]
    lost = max(int(np.isnan(values).sum()) for values in trips.values())
    return Load(name, answer["sent"], lost, back, 1e3 * (after - before) / max(len(back), 1), memory_then - memory,
                os.getloadavg()[0])


def _line(process: subprocess.Popen, word: str = "") -> str:
    assert process.stdin and process.stdout
    if word:
        process.stdin.write(word + "\n")
        process.stdin.flush()
    return process.stdout.readline().strip()


def ours(folder: Path, **parameters: Any) -> list[str]:
    parameters = {"input_wait": 0.0, **parameters}  # the naive node uses the newest desired motion, too: it awaits none
    file = folder / "parameters.json"  # JSON is YAML
    file.write_text(json.dumps({"/**": {"ros__parameters": {"robot_description": URDF.read_text(), **parameters}}}))
    return [sys.executable, "-m", "rnea_ros.node_commands", "dynamics_node", "--ros-args", "--params-file", str(file)]


def naive() -> list[str]:
    return [sys.executable, str(HERE / "naive_node.py"), str(URDF)]


ALARM = "no node: a sleeping thread"
CLOCK = """
import json, os, sys, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
except OSError:
    pass
seconds, rate, late = float(sys.argv[1]), float(sys.argv[2]), []
start = time.monotonic()
for k in range(1, int(seconds * rate) + 1):
    due = start + k / rate
    time.sleep(max(due - time.monotonic(), 0.0))
    late.append(time.monotonic() - due)
print(json.dumps(late))
"""
ALL = ["joint_effort", "joint_effort_rate", "joint_dynamics"]
ONE = ["joint_dynamics"]


def measure(seconds: float) -> dict[str, Load]:
    """Naive and ours, one after the other, for what may be listened to; by name. Those that are compared run in real time
    where that is allowed, so that neither waits for other work on this machine.
    """
    from rnea_ros import Robot

    joints = list(Robot.from_urdf(URDF, backend="reference").joint_names)
    allowed, found = real_time_is_allowed(), {ALARM: alarm(seconds / 2)}
    with tempfile.TemporaryDirectory() as folder:
        for what, topics in (("all three topics", ALL), ("only joint_dynamics", ONE)):
            for name, command in ((f"naive, {what}", naive()), (f"ours, {what}", ours(Path(folder)))):
                found[name] = load(name, command, joints, topics, seconds, allowed)
        name = "ours, rclpy's executor, all three topics"
        found[name] = load(name, ours(Path(folder), **{"process.executor": "rclpy"}), joints, ALL, seconds / 2, allowed)
        if allowed:
            for who, command in (("naive", naive()), ("ours", ours(Path(folder)))):
                name = f"{who}, ordinary scheduling, all three topics"
                found[name] = load(name, command, joints, ALL, seconds / 2, False)
    return found


def alarm(seconds: float) -> Load:
    """Return the wake-up delay of the machine itself, measured in a separate process."""
    done = subprocess.run([sys.executable, "-c", CLOCK, str(seconds), str(RATE)], capture_output=True, text=True, check=True)
    late = np.array(json.loads(done.stdout)) * 1e6
    return Load(ALARM, len(late), 0, late, 0.0, 0, os.getloadavg()[0])


def run_in_real_time() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))


def real_time_is_allowed() -> bool:
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


if __name__ == "__main__":
    for name, run in measure(float(sys.argv[1])).items():
        print(f"{name:45s} lost {run.lost:5d} of {run.sent}, p50 {run.percentile(50):5.0f} p99 {run.percentile(99):6.0f} "
              f"p99.9 {run.percentile(99.9):6.0f} us, {run.cpu_ms:.3f} ms, {run.growth_kb} kB", flush=True)
