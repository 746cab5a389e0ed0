"""RobotDemo: description of one demo (robot, motion, nodes, checks, picture).

catalogue.py lists the demos. `rnea demo --robot NAME` runs one; launch/NAME_demo.launch.py starts the same nodes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ..algorithms.kinematics import Pose
from ..model import urdf_reader
from ..robots.base_state import BaseState
from ..robots.load import load
from ..robots.robot import Robot
from .checks import CheckResult, DemoRecording, Topics, compute_recording
from .motion import MotionSample
from .processes import NoMessages, node_session, recorders, share_file, urdf_source


def no_free_links(t: float) -> dict[str, Pose]:
    """Return the poses of no free links."""
    return {}


class DemoMotion(NamedTuple):
    """Motion that the node demo_robot publishes.

    about       : description, for people
    joint_names : all published joints; may include joints that only visualization needs
    root_link   : root link of the URDF
    motion      : function t [s] -> motion of these joints
    free_links  : function t -> {link: pose (R, p) in the root link} of links without a parent joint, for visualization
    base        : function t -> state, acceleration and jerk of a moving base; None for a fixed one
    """

    about: str
    joint_names: tuple[str, ...]
    root_link: str
    motion: Callable[[float], MotionSample]
    free_links: Callable[[float], dict[str, Pose]] = no_free_links
    base: Callable[[float], BaseState] | None = None

    def for_joints(self, joint_names: Sequence[str]) -> Callable[[float], MotionSample]:
        """Return the motion of some of the joints."""
        columns = [self.joint_names.index(name) for name in joint_names]
        return lambda t: MotionSample(*(part[columns] for part in self.motion(t)))


@dataclass(frozen=True)
class RobotDemo:
    """Demo of one robot: motion, nodes, and checks of what dynamics_node publishes.

    name       : in `rnea demo --robot NAME` and launch/NAME_demo.launch.py
    urdf       : name in the package's share folder, after "example-robot-data:" in that package, or any Path
    robot_file : name in the share folder, or any Path
    make_motion : returns what demo_robot publishes; None if other nodes move the robot
    checks     : function (robot, recording, topics) -> results, by laws independent of the node; topics is None without ROS,
                 where the library computes the recording
    topics     : topics recorded besides ~/joint_dynamics: key -> (type as "geometry_msgs/PoseStamped", topic)
    nodes      : nodes that run; each gets robot_description, and robot_file if it reads one. dynamics_node also gets
                 `parameters`, the others `rate` and, as `motion`, the name of the demo
    rate       : joint states per second [Hz]
    seconds    : default duration of a recording [s]
    draw       : own picture, function (robot, recording, topics, path, source)
    simulate   : function (robot, motion, seconds, rate) -> recording and topics without ROS; None: by torque_and_rate
    picture_times : times at which the picture shows the robot [s]; the last pose opaque, the others pale
    view       : elevation and azimuth of the picture [degrees]
    """

    name: str
    urdf: str | Path
    robot_file: str | Path | None
    make_motion: Callable[[], DemoMotion] | None
    checks: Callable[[Robot, DemoRecording, Topics | None], list[CheckResult]]
    topics: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("dynamics_node", "demo_robot")
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 500.0
    seconds: float = 8.0
    draw: Callable[[Robot, DemoRecording, Topics | None, str, str], None] | None = None
    simulate: Callable[[Robot, DemoMotion, float, float], tuple[DemoRecording, Topics]] | None = None
    picture_times: tuple[float, ...] = ()
    view: tuple[float, float] = (15.0, -60.0)

    @cached_property
    def description(self) -> str:
        """URDF text, expanded and reduced to what dynamics needs."""
        return urdf_reader.text(urdf_reader.read(urdf_source(self.urdf)).robot)

    def load(self, backend: str = "llvm") -> Robot:
        """Return the robot as dynamics_node loads it."""
        return load(self.description.encode(), self.robot_file and share_file(self.robot_file), backend=backend)

    def parameters_by_node(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of every node for a recorded run."""
        return {node: {"robot_description": self.description, **self.node_parameters(node)} for node in self.nodes}

    def node_parameters(self, node: str) -> dict[str, Any]:
        """Return the parameters of a node besides the URDF."""
        file = {"robot_file": str(share_file(self.robot_file))} if self.robot_file and node != "demo_robot" else {}
        given = {"motion_source": "desired", **self.parameters}  # each state comes with exact derivatives
        return {**file, **(given if node == "dynamics_node" else {"motion": self.name, "rate": self.rate})}


TIMEOUT_S = 60.0  # for the processes to start and find each other, and for a kernel to compile


class DemoRun(NamedTuple):
    """Recording of a demo, the other recorded topics (None without ROS), and a phrase on its origin."""

    recording: DemoRecording
    topics: Topics | None
    origin: str


def compute(demo: RobotDemo, robot: Robot, seconds: float) -> DemoRun:
    """Return the run of a demo with make_motion, computed by the library."""
    assert demo.make_motion is not None
    motion, topics = demo.make_motion(), None
    if demo.simulate:
        recording, topics = demo.simulate(robot, motion, seconds, demo.rate)
    else:
        recording = compute_recording(robot, motion.for_joints(robot.joint_names), seconds, demo.rate)
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, computed by the library, without ROS"
    return DemoRun(recording, topics, origin)


def record(demo: RobotDemo, robot: Robot, seconds: float, on_message: Callable[[Any], None],
           report: Callable[[str], None]) -> DemoRun:
    """Return the run of a demo, recorded from its nodes in processes.

    on_message : called with each rnea_msgs/JointDynamics; report : called with lines about the processes
    Raises MissingRos without ROS 2, NodesFailed if a topic has no messages, Interrupted after a signal.
    """
    nodes = recorders()
    parameters = {f"/**/{node}": {"ros__parameters": values} for node, values in demo.parameters_by_node().items()}
    with node_session(demo.nodes, lambda folder: parameters, report, f"{robot.name}: ") as session:
        received = nodes.record_dynamics(session.domain, seconds, TIMEOUT_S, on_message, session.is_running, demo.topics)
        if received is None:
            raise NoMessages(f"not all topics were received within {TIMEOUT_S:g} s, or a node ended")
    recording, topics = received
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, received from dynamics_node over ROS 2"
    return DemoRun(recording, topics, origin)


# ---------------------------------------------------------------------- live table


class LiveTable:
    """Table of the latest torques, their rates and the utilization of both limits.

    It is redrawn in place on a terminal, and printed every 1.7 s elsewhere.
    """

    BAR = 10

    def __init__(self, joint_names: Sequence[str], joint_types: Sequence[str], out: TextIO):
        self._out, self._live = out, out.isatty()
        self._interval = 0.1 if self._live else 1.7  # s; not a divisor of the motion's period, to show different states
        self._next = 0.0
        self._drawn = 0
        self._units = ["N" if kind == "prismatic" else "N m" for kind in joint_types]
        self._width = max(map(len, (*joint_names, "joint")))

    def show(self, message: Any) -> None:
        """Show a rnea_msgs/JointDynamics message."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        lines = self.lines(message)
        up, end = (f"\x1b[{self._drawn}A" if self._drawn else "", "\x1b[K\n") if self._live else ("", "\n")
        self._drawn = len(lines)
        self._out.write(up + "".join(line + end for line in lines) + ("" if self._live else "\n"))
        self._out.flush()

    def lines(self, message: Any) -> list[str]:
        """Return the table as text."""
        head = f"{'joint':<{self._width}}  {'torque':>13}  {'of its limit':<18}  {'rate':>16}  of its limit"
        # A controller that adds gravity limits the rate of the commanded effort: shown if the whole rate has no limit.
        commanded = [math.isnan(whole) and not math.isnan(sent) for whole, sent in
                     zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization)]
        rate_shares = [sent if chosen else whole for whole, sent, chosen in
                       zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization, commanded)]
        rows = zip(message.joint_names, self._units, message.effort, message.effort_utilization,
                   message.effort_rate, rate_shares, commanded)
        notes = []
        if any(commanded):
            notes.append("*: rate of the commanded effort (without what the robot's controller adds), of its limit")
        if any(map(math.isnan, (*message.effort_utilization, *rate_shares))):
            notes.append("unknown: no limit given; URDFs have none for torque rates, a robot file does (docs/robot_file.md)")
        return [head] + [f"{name:<{self._width}}  {tau:>9.3f} {unit:<3}  {self._used(share)}  "
                         f"{rate:>10.3f} {unit + '/s':<5}  {self._used(rate_share, '*' if chosen else ' ')}".rstrip()
                         for name, unit, tau, share, rate, rate_share, chosen in rows] + notes

    def _used(self, share: float, mark: str = " ") -> str:
        if math.isnan(share):
            return f"{'unknown':<{self.BAR + 8}}"
        full = min(round(share * self.BAR), self.BAR)
        return f"[{'#' * full:<{self.BAR}}] {share:>4.0%}{mark}"
