"""Demos of trees: the Panda or any URDF, swept through the middle of its range; the Stanford arm on its paper's motion."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from ...model.robot_file import profiles
from ...robots.protocol import AnyRobot
from ...robots.robot import Robot
from .. import motion
from ..checks import Verdict, papers_figure, rate_is_derivative, same_as_library
from ..processes import own
from ..recording import DemoRecording, Heard
from ..robot_demo import Player, RobotDemo

TREES = {name: (f"urdf/{name}.urdf", f"urdf/{name}.robot.yaml") for name in ("panda", "stanford")}


def tree_player(robot: Robot, name: str = "auto", duration: float | None = None) -> Player:
    """The motion called `name`, as motion.choose has it. Raises InputError."""
    chosen = motion.choose(robot, name, duration)
    about = f"moving the {robot.n} joints of '{robot.name}', {chosen.duration:g} s each way"
    return Player(about, robot.joint_names, robot.root_link, chosen)


def checks(stanford: bool, robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """The library's numbers to the last bit, difference quotients, and a figure that the paper prints."""
    assert isinstance(robot, Robot)
    over_ros = [] if heard is None else [same_as_library(robot, recording.motion, recording.tau, recording.tau_rate)]
    printed = [papers_figure(robot)] if stanford else []
    return [*over_ros, rate_is_derivative(recording, robot.joint_names), *printed]


def demo(path: str | None, robot_file: str | None = None, name: str = "panda") -> RobotDemo:
    """Return the demo of a URDF or .xacro file and a robot file or profile; without a path, of the robot `name` of TREES."""

    def player() -> Player:
        robot = made.load()
        assert isinstance(robot, Robot)
        return tree_player(robot)

    urdf, file = (own(path), None) if path else TREES[name]
    chosen = Path(profiles.located(robot_file)) if robot_file else file
    made = RobotDemo("auto", urdf, chosen, player, partial(checks, not path and name == "stanford"))
    return made
