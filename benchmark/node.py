"""Nodes under load: messages lost, round trip and processor time of dynamics_node, of nodes that do less, and of a sleeper.

    python benchmark/node.py SECONDS [--quick]

Each group of nodes is started together and served in turns of TURN_S, the others stopped: all of them meet the same other
work of the machine. The first turn, in which caches are empty and the estimator of dynamics_node learns the noise, is not
counted; its 99.9th percentile is printed. --quick: the first group only.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
URDF = HERE.parent / "urdf" / "seven_r.urdf"
NODE = "/dynamics_node"
RATE, DESIRED_EVERY, SETTLE = 1000.0, 10, 2.0  # joint states per s, of which every tenth brings a desired motion; s
TURN_S, RESUME_S = 2.0, 0.2  # of each node; until a stopped node has done what was due
ALL = ["joint_effort", "joint_effort_rate", "joint_dynamics"]
ONE = ["joint_dynamics"]
SLEEPER, STORED = "no node: a sleeping thread", "stored bytes, all three topics"


@dataclass(frozen=True)
class Load:
    """Load of one node. Round trips in microseconds, of the messages that came back."""

    name: str
    sent: int
    lost: int  # of the results, the worst topic
    trips: np.ndarray  # of the last topic that is listened to
    cpu_ms: float  # per result, all threads
    growth_kb: int  # of resident memory
    busy: float  # load of the machine
    first: float = float("nan")  # 99.9th percentile of the first turn, which is not counted [us]

    def percentile(self, share: float) -> float:
        return float(np.percentile(self.trips, share)) if len(self.trips) else float("nan")


def spent(pid: int) -> tuple[float, int]:
    """Processor time of a process [s], and its resident memory [kB]."""
    memory = int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024
    threads = (thread.read_text() for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"))
    return 1e-9 * sum(int(thread.split()[0]) for thread in threads), memory


@dataclass
class Turns:
    """One node and its traffic, started once and served in turns.

    threads : processor time by name of thread [s]
    """

    name: str
    command: list[str]
    topics: list[str] = field(default_factory=lambda: ALL)
    real_time: bool = True

    def start(self, joints: Sequence[str], folder: str, held: ExitStack) -> None:
        wanted = {"node": NODE, "names": list(joints), "topics": self.topics, "rate": RATE, "desired_every": DESIRED_EVERY,
                  "settle": SETTLE}
        self.log = held.enter_context(tempfile.TemporaryFile("w+", dir=folder))  # noqa: SIM115  # closed with the others
        environment = {**os.environ, "ROS_DOMAIN_ID": str(random.SystemRandom().randrange(1, 101)), "ROS_LOG_DIR": folder,
                       "ROS_AUTOMATIC_DISCOVERY_RANGE": "LOCALHOST", "PYTHONPATH": str(HERE.parent)}
        self.node = subprocess.Popen(self.command, env=environment, stdout=self.log,
                                     stderr=subprocess.STDOUT, preexec_fn=run_in_real_time if self.real_time else None)
        held.callback(end, self.node)
        self.traffic = subprocess.Popen([sys.executable, str(HERE / "traffic.py"), json.dumps(wanted)], env=environment,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        held.callback(end, self.traffic)
        self.first = float("nan")
        self.clear()

    def clear(self) -> None:
        self.trips: dict[str, list[float]] = {topic: [] for topic in self.topics}
        self.sent, self.seconds, self.growth, self.busy = 0, 0.0, 0, []

    def begin(self, seconds: float) -> None:
        """Serve a turn that is not counted."""
        self.run(seconds)
        self.first = self.load().percentile(99.9)
        self.clear()

    def await_ready(self) -> None:
        if self.traffic.stdout.readline().strip() != "ready":
            self.log.seek(0)
            raise RuntimeError(f"{self.name} was not found:\n{self.log.read()}")
        os.kill(self.node.pid, signal.SIGSTOP)

    def run(self, seconds: float) -> None:
        os.kill(self.node.pid, signal.SIGCONT)
        time.sleep(RESUME_S)
        before, memory = spent(self.node.pid)
        self.traffic.stdin.write(f"{seconds}\n")
        self.traffic.stdin.flush()
        answer: dict[str, Any] = json.loads(self.traffic.stdout.readline())
        after, memory_then = spent(self.node.pid)
        os.kill(self.node.pid, signal.SIGSTOP)
        self.seconds, self.growth, self.sent = self.seconds + after - before, self.growth + memory_then - memory, \
            self.sent + answer["sent"]
        for topic, values in answer["trips_us"].items():
            self.trips[topic] += values
        self.busy.append(os.getloadavg()[0])

    def load(self) -> Load:
        trips = {topic: np.array(values, dtype=float) for topic, values in self.trips.items()}
        last = trips[self.topics[-1]]
        back = last[~np.isnan(last)]
        lost = max(int(np.isnan(values).sum()) for values in trips.values())
        return Load(self.name, self.sent, lost, back, 1e3 * self.seconds / max(len(back), 1), self.growth,
                    float(np.mean(self.busy)), self.first)


class Sleeper:
    """Thread of a separate process that only sleeps until the next millisecond: the delay of the machine itself."""

    name, lateness = SLEEPER, ()

    def start(self, joints: Sequence[str], folder: str, held: ExitStack) -> None:
        self._process = subprocess.Popen([sys.executable, "-c", CLOCK, str(RATE)], stdin=subprocess.PIPE,
                                         stdout=subprocess.PIPE, text=True)
        held.callback(end, self._process)

    def await_ready(self) -> None:
        pass

    def begin(self, seconds: float) -> None:
        pass

    def run(self, seconds: float) -> None:
        self._process.stdin.write(f"{seconds}\n")
        self._process.stdin.flush()
        self.lateness = (*self.lateness, *json.loads(self._process.stdout.readline()))

    def load(self) -> Load:
        late = np.array(self.lateness) * 1e6
        return Load(self.name, len(late), 0, late, 0.0, 0, os.getloadavg()[0])


CLOCK = """
import json, os, sys, time
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))
except OSError:
    pass
rate = float(sys.argv[1])
for line in sys.stdin:
    start, late = time.monotonic(), []
    for k in range(1, int(float(line) * rate) + 1):
        due = start + k / rate
        time.sleep(max(due - time.monotonic(), 0.0))
        late.append(time.monotonic() - due)
    print(json.dumps(late), flush=True)
"""


def end(process: subprocess.Popen) -> None:
    process.kill()
    process.wait()


def in_turns(members: Sequence[Turns | Sleeper], joints: Sequence[str], seconds: float) -> dict[str, Load]:
    """Serve each member for so long, in turns; by name."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as held:
        for member in members:
            member.start(joints, folder, held)
        for member in members:
            member.await_ready()
        for member in members:
            member.begin(min(seconds, TURN_S))
        for _ in range(max(round(seconds / TURN_S), 1)):
            for member in members:
                member.run(min(seconds, TURN_S))
        return {member.name: member.load() for member in members}


def ours(folder: Path, **parameters: Any) -> list[str]:
    parameters = {"input_wait": 0.0, **parameters}  # the naive node uses the newest desired motion, too: it awaits none
    file = folder / f"{'_'.join(parameters)}.json"  # JSON is YAML
    file.write_text(json.dumps({"/**": {"ros__parameters": {"robot_description": URDF.read_text(), **parameters}}}))
    return [sys.executable, "-m", "rnea_ros.node_commands", "dynamics_node", "--ros-args", "--params-file", str(file)]


def naive() -> list[str]:
    return [sys.executable, str(HERE / "naive_node.py"), str(URDF)]


def stored(joints: Sequence[str]) -> list[str]:
    return [sys.executable, str(HERE / "stored_node.py"), *joints]


def measure(seconds: float, is_quick: bool = False) -> dict[str, Load]:
    """Return the load of each node, by name. All run in real time where that is allowed, so that none waits for other work
    on this machine.
    """
    from rnea_ros import Robot

    joints = list(Robot.from_urdf(URDF, backend="reference").joint_names)
    allowed = real_time_is_allowed()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        what = "all three topics"
        groups: list[tuple[float, list[Turns | Sleeper]]] = [(seconds, [
            Sleeper(), Turns(STORED, stored(joints), real_time=allowed), Turns(f"naive, {what}", naive(), real_time=allowed),
            Turns(f"ours, {what}", ours(folder), real_time=allowed)])]
        if not is_quick:
            one = "only joint_dynamics"
            groups.append((seconds / 2, [Turns(f"naive, {one}", naive(), ONE, allowed),
                                         Turns(f"ours, {one}", ours(folder), ONE, allowed)]))
            ordinary = ours(folder, **{"process.executor": "rclpy"})
            groups.append((seconds / 4, [Turns(f"ours, rclpy's executor, {what}", ordinary,
                                               real_time=allowed),
                                         Turns(f"naive, ordinary scheduling, {what}", naive(), real_time=False),
                                         Turns(f"ours, ordinary scheduling, {what}", ours(folder), real_time=False)]))
        found: dict[str, Load] = {}
        for duration, members in groups:
            found |= in_turns(members, joints, duration)
        return found


def run_in_real_time() -> None:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(40))


def real_time_is_allowed() -> bool:
    code = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(60))"
    return subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL).returncode == 0


def table(found: Mapping[str, Load]) -> list[str]:
    """Return one line for each node, and the ratios of the goals."""
    sleeper, least, usual = found[SLEEPER], found[STORED], found["naive, all three topics"]
    lines = []
    for name, run in found.items():
        lines.append(f"{name:48s} lost {run.lost:4d} of {run.sent:5d}, p50 {run.percentile(50):5.0f} p99 "
                     f"{run.percentile(99):6.0f} p99.9 {run.percentile(99.9):6.0f} us, {run.cpu_ms:.3f} ms, "
                     f"{run.growth_kb} kB, load {run.busy:.1f}, first {TURN_S:g} s p99.9 {run.first:.0f} us")
    for name, run in found.items():
        if run.cpu_ms and "ordinary" not in name:
            late = [f"p{share:g} / sleeper {run.percentile(share) / sleeper.percentile(share):.1f}, / stored "
                    f"{run.percentile(share) / least.percentile(share):.2f}" for share in (99, 99.9)]
            lines.append(f"{name:48s} processor / naive {run.cpu_ms / usual.cpu_ms:.3f}, / stored "
                         f"{run.cpu_ms / least.cpu_ms:.2f}; {'; '.join(late)}")
    return lines


if __name__ == "__main__":
    print("\n".join(table(measure(float(sys.argv[1]), "--quick" in sys.argv))), flush=True)
