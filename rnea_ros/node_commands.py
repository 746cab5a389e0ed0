"""Commands that start the nodes, those of the demos too.

They import nothing before they are called, and Ctrl-C during an import gives no traceback.
`python -m rnea_ros.node_commands NAME ...` starts the same nodes.
"""

from __future__ import annotations

import argparse
import importlib
import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

ROS_ARGS, END = "--ros-args", "--"


class NodeCommand(NamedTuple):
    """Command of a node with options for its robot.

    about: what the node does; page: that lists its topics and parameters; parameter: for an example; config: parameter file
    that explains the most common ones
    """

    about: str
    page: str
    parameter: str
    config: str


DYNAMICS, SCALING = "rnea_ros.nodes.dynamics.node:DynamicsNode", "rnea_ros.nodes.scaling.node:ScalingNode"
QUERY = "rnea_ros.nodes.query_node:QueryNode"
NODES = {  # classes of the nodes that run in one process, by command
    "dynamics_node": (DYNAMICS,),
    "scaling_node": (SCALING,),
    "query_node": (QUERY,),
    "all_nodes": (DYNAMICS, SCALING, QUERY),
    "demo_robot": ("rnea_ros.demo.nodes.robots:DemoRobot",),
    "demo_plant": ("rnea_ros.demo.nodes.robots:DemoPlant",),
    "demo_follower": ("rnea_ros.demo.nodes.robots:DemoFollower",),
    "demo_policy": ("rnea_ros.demo.nodes.robots:DemoPolicy",)}
COMMANDS = {
    "dynamics_node": NodeCommand("Publish torque and torque rate of a robot that publishes joint states.",
                                 "docs/dynamics_node.md", "state_timeout:=0.2", "config/dynamics_node.yaml"),
    "scaling_node": NodeCommand("Execute trajectories, slowed just enough for all limits.",
                                "docs/scaling_node.md", "controller:=/joint_trajectory_controller",
                                "config/scaling_node.yaml"),
    "query_node": NodeCommand("Serve the dynamics of a robot as ROS services.",
                              "docs/query_node.md", "backend:=python", "config/query_node.yaml"),
    "all_nodes": NodeCommand("Run dynamics_node, scaling_node and query_node in one process, in a third of the memory. A long "
                             "request to query_node can delay the torques of dynamics_node.",
                             "docs/lifecycle.md", "backend:=python", "config/dynamics_node.yaml")}
EPILOG = """examples:
  {name} --urdf robot.urdf
  {name} --urdf ur.urdf.xacro ur_type:=ur10e name:=ur --robot-file ur10e
  {name} --urdf robot.urdf --ros-args -p {parameter} -r __ns:=/left

Without --urdf the node waits for the topic robot_description. All parameters: {page}, {config}, or
`ros2 param list` while the node runs. docs/robot_file.md describes robot files."""


def start(name: str) -> int:
    """Run the nodes of a command with the options of its command line; return its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where the parent process ignores it
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends the process, until `run` handles signals
    with ros_arguments(name, sys.argv) if name in COMMANDS else nullcontext():
        kinds = [_load(node) for node in NODES[name]]
        return int(_load("rnea_ros.nodes.common.process:run")(kinds))


def _load(name: str) -> Any:
    """Return an object by its module and name."""
    module, _, found = name.partition(":")
    return getattr(importlib.import_module(module), found)


def main() -> int:
    """Run the command that the first word names; return its exit code."""
    name = sys.argv.pop(1) if len(sys.argv) > 1 else ""
    if name not in NODES:
        sys.exit(f"there is no node '{name}'; allowed are {', '.join(NODES)}")
    return start(name)


@contextmanager
def ros_arguments(name: str, arguments: list[str]) -> Iterator[None]:
    """Replace the options of a node's command line by ROS parameters while the node runs. Exits at --help or wrong options.

    The text of the URDF becomes the parameter robot_description. A command line of ROS cannot take XML as a parameter's value;
    a parameter file can.
    """
    own, ros = _split(arguments[1:])
    parameters = _parameters(name, own)
    if not parameters:
        yield
        return
    with TemporaryDirectory(prefix="rnea_urdf_") as folder:
        file = Path(folder) / "parameters.yaml"  # JSON is YAML
        file.write_text(json.dumps({"/**": {"ros__parameters": parameters}}), encoding="utf-8")
        arguments[1:] = [*ros, ROS_ARGS, "--params-file", str(file)]
        yield


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """Separate a node's own words from those between --ros-args and --, both inclusive."""
    own: list[str] = []
    ros: list[str] = []
    inside = False
    for word in words:
        inside = inside or word == ROS_ARGS
        (ros if inside else own).append(word)
        inside = inside and word != END
    return own, ros


def _parameters(name: str, words: list[str]) -> dict[str, str]:
    """Return the ROS parameters that a node's own words set."""
    from .model.xacro_file import split_arguments

    command = COMMANDS[name]
    parser = argparse.ArgumentParser(name, description=command.about, allow_abbrev=False,
                                     usage=f"{name} [-h] [--urdf FILE [NAME:=VALUE ...]] [--robot-file FILE] [--ros-args ...]",
                                     epilog=EPILOG.format(name=name, **command._asdict()),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--urdf", metavar="FILE", help="robot: a URDF, or a .xacro file with its arguments NAME:=VALUE "
                                                       "(expanding it executes code); sets the parameter robot_description")
    parser.add_argument("--robot-file", metavar="FILE", help="robot file (YAML) with data that a URDF cannot contain, or the "
                                                             "name of a profile (`rnea robot-file --list`); sets the "
                                                             "parameter robot_file")
    parser.add_argument(ROS_ARGS, nargs="...", metavar="...", help="parameters (-p NAME:=VALUE, --params-file FILE), "
                                                                   "remappings (-r FROM:=TO) and other ROS 2 arguments")
    arguments, others = split_arguments(words)
    options = parser.parse_args(others)
    if arguments and not options.urdf:
        parser.error(f"{' '.join(f'{key}:={value}' for key, value in arguments.items())}: --urdf FILE.xacro is missing; "
                     f"these are xacro arguments, parameters follow {ROS_ARGS} -p")
    found = {"robot_file": options.robot_file} if options.robot_file else {}
    if options.urdf:
        found["robot_description"] = _description(options.urdf, arguments)
    return found


def _description(path: str, arguments: dict[str, str]) -> str:
    """Return the text of a URDF, or what a .xacro file expands to. Exits with a message if there is none."""
    from .errors import RneaError
    from .model.xacro_file import XacroFile, expanded, with_arguments

    try:
        file = with_arguments(path, arguments)
        if isinstance(file, XacroFile):
            return expanded(file, file.arguments).decode()
        return Path(path).read_text(encoding="utf-8")
    except RneaError as error:
        sys.exit(f"cannot start: {error}")
    except (OSError, UnicodeError) as error:
        sys.exit(f"cannot start: {path}: {getattr(error, 'strerror', None) or error}")


dynamics_node = partial(start, "dynamics_node")
scaling_node = partial(start, "scaling_node")
query_node = partial(start, "query_node")
all_nodes = partial(start, "all_nodes")
demo_robot = partial(start, "demo_robot")
demo_plant = partial(start, "demo_plant")
demo_follower = partial(start, "demo_follower")
demo_policy = partial(start, "demo_policy")

if __name__ == "__main__":
    sys.exit(main())
