"""`make soak`: run all nodes for hours under normal use and faults.

    python -m soak.run --hours 8 --seed 1

Ctrl-C ends it after the current disturbance, with its report.

After each disturbance every node must return correct results again. Fails if one did not, if a number was wrong, if memory,
descriptors or threads grew, or if a log has a traceback. Prints a report at the end.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
from action_msgs.msg import GoalStatus
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import Trigger

from rnea_msgs.action import PlanMotion
from rnea_msgs.msg import JointSample
from rnea_msgs.srv import SetOverride
from soak.bench import COMMON, MASSES, NODES, TEXTS, Nodes
from soak.watch import children
from support.node_bench import NAMES
from support.ros_helpers import ros_domain

SCALING = ("scaling_node", "arm/scaling_node")
RECOVERY = 240.0  # [s] in which every node must respond again, on a busy machine
CHECK_PERIOD_S = 5.0  # s; period of checks of the processes' resources
LIFE = 5  # rounds of disturbances
BAD = ("", "<robot/>", "<robot name='x'><link name='a'/><link name='b'/></robot>", "no XML")
BYTES = (b"", b"\0\1\0\0" + b"\0\x08\0\2" * 40, b"\0\1\0\0" + bytes(17), bytes(range(200)))


class Soak:
    """Disturbances and checks. found: messages of failures; troubles: number of disturbances by kind; longest: recovery [s];
    enough: whether to end after this disturbance; unanswered: calls of services without an answer in 20 s.
    """

    def __init__(self, nodes: Nodes, seed: int):
        self.nodes, self.rng = nodes, random.Random(seed)
        self.found: list[str] = []
        self.troubles: Counter[str] = Counter()
        self.longest, self.enough, self.unanswered = 0.0, False, 0
        self._checked, self._rounds = 0.0, 0
        self._raw = nodes.ros.node.create_publisher(JointState, "/joint_states", 10)
        self._all: list[Callable[[], None]] = [
            self.motion, self.motion, self.payload, self.description, self.bad_description, self.malformed, self.pause,
            self.stop, self.override, self.chunks, self.plan, self.stopped_process, self.killed_node, self.killed_solver,
            self.full_disk, self.clock_back, self.clock_ahead]

    def run(self, seconds: float, troubles: int = 10**9) -> None:
        end = time.monotonic() + seconds
        self.answered("the start")
        self._plan()  # it loads CasADi into query_node
        waiting: list[Callable[[], None]] = []
        while time.monotonic() < end and self.troubles.total() < troubles and not (self.found or self.enough):
            waiting = waiting or self._round()
            act = waiting.pop()
            self.troubles[act.__name__] += 1
            try:
                act()
            except TimeoutError as error:
                self.found.append(f"{act.__name__}: {error}")
            self.spin(self.rng.uniform(0.2, 2.0))
            self.answered(act.__name__)
        self.found += [sentence for name, growth in self.nodes.growth.items() for sentence in growth.findings(name)]
        self.found += [f"a traceback in the log: {log.log[log.log.index('Traceback'):][:1500]}"
                       for log in self.nodes.logs if "Traceback" in log.log]

    def _round(self) -> list[Callable[[], None]]:
        """Return each disturbance once in random order; a node is killed in one of LIFE rounds only, to detect growth."""
        self._rounds += 1
        acts = [act for act in self._all if act != self.killed_node or self._rounds % LIFE == 1]
        return self.rng.sample(acts, len(acts))

    def spin(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.nodes.step()
            if time.monotonic() - self._checked > CHECK_PERIOD_S:
                self._checked = time.monotonic()
                self.nodes.check()

    def answered(self, after: str) -> None:
        """Wait until every node returns correct results; scaling_node executes a motion."""
        nodes, began, moved = self.nodes, time.monotonic(), 0.0
        before = dict(nodes.answers)
        while any(nodes.answers[name] < before[name] + 3 for name in NODES):
            if time.monotonic() - began > RECOVERY:
                silent = [name for name in NODES if nodes.answers[name] < before[name] + 3]
                logs = "\n".join(nodes.processes[name].log[-1500:] for name in silent)
                self.found.append(f"after {after} nothing from {', '.join(silent)} for {RECOVERY:g} s:\n{logs}")
                return
            if any(nodes.answers[name] < before[name] + 3 for name in SCALING) and time.monotonic() - moved > 3.0:
                moved = time.monotonic()
                self.motion()
            self.spin(0.1)
        self.longest = max(self.longest, time.monotonic() - began)
        if nodes.wrong:
            logs = "\n".join(process.log[-1500:] for process in (*nodes.processes.values(), nodes.arm.controller))
            self.found += [*nodes.wrong[:5], f"after {after}; ends of the logs:\n{logs}"]

    # ------------------------------------------------------------------ troubles

    def motion(self) -> None:
        self.nodes.move(np.array([self.rng.uniform(-1.0, 1.0) for _ in range(3)]), self.rng.uniform(0.3, 3.0))
        self.nodes.arm.move(self.rng)

    def payload(self) -> None:
        mass = self.rng.choice(MASSES)
        for name in COMMON:
            self._set(name, "payload.mass", mass)

    def description(self) -> None:
        self.nodes.description.publish(String(data=self.rng.choice(TEXTS)))

    def bad_description(self) -> None:
        """Publish an invalid latched description; a node that starts with it waits for another one."""
        self.nodes.description.publish(String(data=self.rng.choice(BAD)))
        self.answered("a bad description")
        self.description()

    def malformed(self) -> None:
        for data in self.rng.choices(BYTES, k=50):
            self._raw.publish(data)

    def pause(self) -> None:
        for name in ("pause", "resume"):
            self._trigger(name)
            self.spin(0.5)

    def stop(self) -> None:
        self._trigger("stop")

    def override(self) -> None:
        for share in (self.rng.uniform(0.05, 1.0), 1.0):
            for name in SCALING:
                self._call(SetOverride, f"/{name}/set_override", SetOverride.Request(share=share))
            self.spin(self.rng.uniform(0.1, 2.0))

    def chunks(self) -> None:
        for _ in range(self.rng.randint(1, 10)):
            self.nodes.arm.send_chunk(self.rng)
            self.spin(self.rng.uniform(0.05, 0.5))

    def plan(self) -> None:
        """Plan a motion, or cancel that at a random time."""
        self._plan(self.rng.choice((None, self.rng.uniform(0.0, 3.0))))

    def stopped_process(self) -> None:
        process = self.nodes.processes[self.rng.choice(NODES)]
        process.send(signal.SIGSTOP)
        self.spin(self.rng.uniform(0.1, 3.0))
        process.send(signal.SIGCONT)

    def killed_node(self) -> None:
        name = self.rng.choice(NODES)
        self.nodes.processes[name].stop(self.rng.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
        self.spin(1.0)  # its last results arrive, and do not count as those of the new process
        self.nodes.processes[name] = self.nodes.start(name)
        self.nodes.growth[name].seen.clear()

    def killed_solver(self) -> None:
        for name in SCALING:
            for pid in children(self.nodes.processes[name].pid):
                os.kill(pid, signal.SIGKILL)

    def full_disk(self) -> None:
        """Prevent files of a node, such as logs and kernels, from growing."""
        process = self.nodes.processes[self.rng.choice(NODES)]
        soft, hard = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
        self.description()
        self.spin(2.0)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (soft, hard))

    def clock_back(self) -> None:
        self.nodes.jump(-self.rng.uniform(1.0, 1000.0))

    def clock_ahead(self) -> None:
        self.nodes.jump(self.rng.uniform(1.0, 1000.0))

    # ------------------------------------------------------------------ asked without waiting

    def _plan(self, cancelled_after: float | None = None) -> None:
        ends = [JointSample(position=[self.rng.uniform(-1.0, 1.0) for _ in NAMES]) for _ in range(2)]
        planner = self.nodes.planner
        self._until(planner.server_is_ready)
        asked = planner.send_goal_async(PlanMotion.Goal(joint_names=NAMES, start=ends[0], goal=ends[1]))
        self._until(asked.done)
        answer = asked.result().get_result_async()
        if cancelled_after is not None:
            self.spin(cancelled_after)
            asked.result().cancel_goal_async()
        self._until(answer.done)
        if answer.result().status != GoalStatus.STATUS_CANCELED:
            self.nodes.check_plan(answer.result().result)

    def _set(self, name: str, parameter: str, value: float) -> None:
        request = SetParameters.Request(parameters=[Parameter(parameter, value=value).to_parameter_msg()])
        self._call(SetParameters, f"/{name}/set_parameters", request)

    def _trigger(self, service: str) -> None:
        for name in SCALING:
            self._call(Trigger, f"/{name}/{service}", Trigger.Request())

    def _call(self, kind: type, service: str, request: object) -> None:
        client = self.nodes.ros.node.create_client(kind, service)
        try:
            self._until(client.service_is_ready, 20.0)
            self._until(client.call_async(request).done, 20.0)
        except TimeoutError:
            self.unanswered += 1
        self.nodes.ros.node.destroy_client(client)

    def _until(self, condition: Callable[[], bool], patience: float = RECOVERY) -> None:
        """Wait for a condition. Raises TimeoutError after the patience [s]."""
        end = time.monotonic() + patience
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError(f"not within {patience:g} s")
            self.spin(0.02)


def report(soak: Soak, seconds: float) -> str:
    nodes, late = soak.nodes, np.array(soak.nodes.late or [np.nan])
    p50, p99, most = np.percentile(late, (50, 99, 100)) * 1e3
    return "\n".join([
        f"{seconds / 3600.0:.3f} hours, {soak.troubles.total()} troubles: "
        + ", ".join(f"{name} {count}" for name, count in sorted(soak.troubles.items())),
        f"{nodes.checked} results compared, {len(nodes.wrong)} wrong; {nodes.motions + nodes.arm.motions} motions ended, "
        f"{nodes.queries} requests, {nodes.plans} plans, {soak.unanswered} other calls without an answer in 20 s",
        f"until all nodes answered again: {soak.longest:.1f} s at most",
        f"from joint state to torque: {p50:.1f} ms in the median, 99 % within {p99:.1f} ms, {most:.1f} ms at most",
        *(f"{name}: {growth}" for name, growth in nodes.growth.items()),
        *(f"FOUND {sentence}" for sentence in soak.found), "" if soak.found else "nothing found"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hours", type=float, default=0.02)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, ros_domain(Path(folder)) as ros:
        soak = Soak(Nodes(ros), given.seed)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: setattr(soak, "enough", True))
        soak.run(given.hours * 3600.0)
        print(report(soak, time.monotonic() - began), flush=True)
    return 1 if soak.found else 0


if __name__ == "__main__":
    sys.exit(main())
