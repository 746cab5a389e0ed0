"""RobotDemo: one robot to try the package on. Each is one small file of demo/robots, which demo/robots/catalogue.py names.

`rnea demo --robot NAME` plays it, listens, checks and draws (demo/run.py); launch/NAME_demo.launch.py starts the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.kinematics import Pose
from ..model import urdf_reader
from ..robots.inputs.base_state import BaseState
from ..robots.load import load
from ..robots.protocol import AnyRobot
from .checks import Verdict
from .motion import MotionSample
from .processes import described, shared
from .recording import DemoRecording, Heard


def nowhere(t: float) -> dict[str, Pose]:
    """No free links."""
    return {}


class Player(NamedTuple):
    """What the node demo_robot plays.

    about       : what it plays, for people
    joint_names : of all joints that it publishes, more than dynamics_node reads, if what draws the robot needs them
    root_link   : of the URDF
    motion      : of these joints at a time [s]
    free_links  : poses (R, p) in the root link of links that no joint places, by name; for what draws the robot
    base        : state, acceleration and jerk (6,) of a base that moves, at a time [s]
    """

    about: str
    joint_names: tuple[str, ...]
    root_link: str
    motion: Callable[[float], MotionSample]
    free_links: Callable[[float], dict[str, Pose]] = nowhere
    base: Callable[[float], tuple[BaseState, np.ndarray, np.ndarray]] | None = None

    def of(self, joint_names: Sequence[str]) -> Callable[[float], MotionSample]:
        """The motion of some of the joints."""
        columns = [self.joint_names.index(name) for name in joint_names]
        return lambda t: MotionSample(*(part[columns] for part in self.motion(t)))


@dataclass(frozen=True)
class RobotDemo:
    """A robot, how it moves, and what must be true of what dynamics_node says of it.

    name       : as `rnea demo --robot NAME` and launch/NAME_demo.launch.py call it
    urdf       : in the package's share folder, after "example-robot-data:" in that package, or anywhere as a path
    robot_file : in the share folder, or anywhere as a path
    player     : makes what demo_robot plays; None where other nodes move the robot
    checks     : of a recording and of what was heard beside it, by laws that do not come from the node. heard is None without
                 ROS, where the library plays
    heard      : topics beside ~/joint_dynamics that are recorded: key -> (type as "geometry_msgs/PoseStamped", topic)
    nodes      : what runs; each gets robot_description, and robot_file where it reads one. dynamics_node also gets
                 `parameters`, the others `rate` and, as `motion`, the name of the demo
    held       : the one of them that waits until `rnea demo` listens
    rate       : joint states per second [Hz]
    seconds    : how long `rnea demo` listens, unless it is told otherwise; `least`, what its checks need
    draw       : its own picture: of the robot, the recording, what was heard, a path, and a line on how it was found
    play       : records the player without ROS, for so many seconds, with what is heard beside; None: by the library's
                 torque_and_rate
    instants   : of the recording, when the picture shows the robot [s]; the last one in full, the others pale
    settled    : after so long curves are shown in full; what comes before may leave the picture [s]
    view       : from where, elevation and azimuth [degrees]
    """

    name: str
    urdf: str | Path
    robot_file: str | Path | None
    player: Callable[[], Player] | None
    checks: Callable[[AnyRobot, DemoRecording, Heard | None], list[Verdict]]
    heard: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("dynamics_node", "demo_robot")
    held: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    rate: float = 500.0
    seconds: float = 8.0
    least: float = 0.5
    draw: Callable[[AnyRobot, DemoRecording, Heard | None, str, str], None] | None = None
    play: Callable[[AnyRobot, Player, float, float], tuple[DemoRecording, Heard]] | None = None
    instants: tuple[float, ...] = ()
    settled: float = 0.0
    view: tuple[float, float] = (15.0, -60.0)

    @cached_property
    def description(self) -> str:
        """The URDF, expanded, and only what dynamics needs."""
        return urdf_reader.text(urdf_reader.read(described(self.urdf)).robot)

    def load(self, backend: str = "llvm") -> AnyRobot:
        """As dynamics_node has it."""
        return load(self.description.encode(), self.robot_file and shared(self.robot_file), backend=backend)

    def settings(self) -> dict[str, dict[str, Any]]:
        """Parameters by node, for `rnea demo`."""
        found = {node: {"robot_description": self.description, **self.own_settings(node)} for node in self.nodes}
        if self.held:
            found[self.held]["held"] = True
        return found

    def own_settings(self, node: str) -> dict[str, Any]:
        """Parameters of a node beside the URDF."""
        file = {"robot_file": str(shared(self.robot_file))} if self.robot_file and node != "demo_robot" else {}
        given = {"motion_source": "desired", **self.parameters}  # exact derivatives come with each state
        return {**file, **(given if node == "dynamics_node" else {"motion": self.name, "rate": self.rate})}
