"""Helpers of the launch files: the robot of their arguments, parameter files, running nodes, and the view of RViz."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rnea_ros import InputError, RneaError, Robot, load
from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.errors import some
from rnea_ros.model.xacro_file import expanded, split_arguments
from rnea_ros.model.yaml_file import read
from rnea_ros.nodes.common.parameter_table import JOINT_DYNAMICS, MODEL, find


def urdf_path(given: Mapping[str, str]) -> Path:
    """Return the file that the arguments urdf, or urdf_package and urdf_package_path, name. RuntimeError with the remedy."""
    package, inside = given["urdf_package"], given["urdf_package_path"]
    ways = "urdf:=/path/to/robot.urdf (or .xacro), or urdf_package:=PACKAGE urdf_package_path:=PATH/IN/ITS/SHARE"
    if bool(given["urdf"]) == bool(package or inside) or bool(package) != bool(inside):
        raise RuntimeError(f"which robot? Give either {ways}")
    if given["urdf"]:
        path = Path(given["urdf"]).expanduser().absolute()
    else:
        try:
            path = Path(get_package_share_directory(package), inside)
        except PackageNotFoundError:
            raise RuntimeError(f"urdf_package:={package}: no such package in the sourced workspaces") from None
    if not path.is_file():
        raise RuntimeError(f"no robot description at {path}. Give {ways}")
    return path


def robot_description(path: Path, xacro_args: str) -> str:
    """Return the text of a .urdf file, or what a .xacro file of the user expands to."""
    if path.suffix != ".xacro":
        try:
            return path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise RuntimeError(f"{path} is no URDF: {error}") from None
    arguments, others = split_arguments(shlex.split(xacro_args))
    if others:
        raise RuntimeError(f"xacro_args:={xacro_args}: pairs name:=value are needed, separated by spaces")
    return expanded(path, arguments).decode()


def root_link(xml: str, path: Path) -> str:
    """Return the link that is not the child of a joint."""
    try:
        robot = ElementTree.fromstring(xml.encode())
    except ElementTree.ParseError as error:
        raise RuntimeError(f"{path} is no URDF: {error}") from None
    children = {child.get("link") for child in robot.findall("joint/child")}
    roots = [link.get("name") for link in robot.findall("link") if link.get("name") not in children]
    if not roots:
        raise RuntimeError(f"{path} is no URDF: it has no link that is no joint's child")
    return roots[0] or ""


PARAMETERS_KEY = "ros__parameters"
FREE_PARAMETERS = ("robot_description", "backend")  # launch gives the one to all; the other changes no number
ROBOT_ENTRIES = tuple(entry for entry in MODEL + JOINT_DYNAMICS if entry.name not in FREE_PARAMETERS)


def file_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters that a file has for a node of this full name (/left/dynamics_node). Raises RneaError for invalid
    YAML.
    """
    found: dict[str, Any] = {}
    for name, values in _sections(read(path, "parameters of nodes are needed").content):
        pattern = re.escape(f"/{name.lstrip('/')}").replace(r"/\*", r"(/\w+)")  # as rcl: /* is one name, /** any number
        if re.fullmatch(pattern.replace(r"\*", "*"), node):
            found |= _flat(values)
    return found


def check_same_robot(path: str | Path, nodes: Sequence[str]) -> None:
    """Raise InputError if a file gives nodes, by their full names, robots that differ."""
    if len(nodes) < 2:
        return
    robots = {node: _robot_parameters(file_parameters(path, node)) for node in nodes}
    names = {name for robot in robots.values() for name in robot}
    differing = sorted(name for name in names if len({repr(robot.get(name)) for robot in robots.values()}) > 1)
    if differing:
        raise InputError(f"{path}: {some(nodes)} would compute with different robots, since {some(differing)} "
                         f"{'differs' if len(differing) == 1 else 'differ'} among them: what a robot is belongs under /**, "
                         "the section for every node")


def _robot_parameters(values: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of the robot, with defaults of the tables for missing ones."""
    defaults = {entry.name: entry.default for entry in MODEL if entry in ROBOT_ENTRIES}
    return defaults | {name: value for name, value in values.items() if find(name, ROBOT_ENTRIES)}


def _sections(tree: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (node name, parameters); names may be nested, as namespaces are."""
    if isinstance(tree, dict):
        for name, below in tree.items():
            if name == PARAMETERS_KEY:
                yield prefix, below
            else:
                yield from _sections(below, f"{prefix}/{name}".lstrip("/") if prefix else str(name))


def _flat(tree: Any, prefix: str = "") -> dict[str, Any]:
    if not isinstance(tree, dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in tree.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {f"{prefix}{name}": value}
    return found


DISCOVERY_TIMEOUT_S = 4.0  # s; a node that is there is discovered in 0.3 s, or else with the next heartbeat, after 3 s
PUBLISHER = "robot_state_publisher"


class GraphObserver:
    """Temporary node that observes a namespace from its creation on."""

    def __init__(self, namespace: str) -> None:
        import rclpy  # here: launch files without this check start faster
        from rclpy.signals import SignalHandlerOptions

        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("graph_observer", context=self._context, namespace=namespace, enable_rosout=False,
                                       start_parameter_services=False)

    def robot_description_publisher(self) -> str:
        """Return the full name of a discovered node that publishes robot_description, or is called robot_state_publisher; ""
        if there is none.
        """
        node = self._node
        publishers = node.get_publishers_info_by_topic("robot_description")
        known = {(info.node_name, info.node_namespace) for info in publishers}
        known |= {pair for pair in node.get_node_names_and_namespaces() if pair == (PUBLISHER, node.get_namespace())}
        return min((f"{space.rstrip('/')}/{name}" for name, space in known), default="")

    def end(self) -> None:
        self._node.destroy_node()
        self._context.try_shutdown()


SWING, SLIDE, LITTLE = 1.0, 3.0, 0.3  # largest deviation of a revolute [rad] and prismatic joint [m], and on loops
SPREAD = 1.25  # visible radius relative to the reach, for the thickness of links
HALF_ANGLE = np.pi / 8  # of RViz's vertical field of view, 45 degrees


class View(NamedTuple):
    """View of RViz: focal point (3,) in the root link's frame, distance, and floor height [m]."""

    focus: np.ndarray
    distance: float
    floor: float


def view(robot: Robot) -> View:
    """Return the view that contains all URDF frames while each joint moves through its range; closed loops move little."""
    model = robot.tree.model
    start, swing, slide = np.zeros(model.n), SWING, SLIDE
    if not robot.is_fixed_tree and robot.loops:
        start, swing, slide = robot.start, LITTLE, LITTLE
    far = np.array([slide if joint.type == "prismatic" else swing for joint in model.joints])
    lower, upper = np.fmax(model.limits.lower, start - far), np.fmin(model.limits.upper, start + far)
    middle = np.clip(start, lower, upper)
    ends = [np.where(one, end, middle) for one in np.eye(model.n, dtype=bool) for end in (lower, upper)]
    marked = [(frame.link, frame.P) for frame in model.frames.values()]
    marked += [(j, 2.0 * link.ms / link.m) for j, link in enumerate(model.links) if link.m]  # about where it ends
    points = np.array([within(poses[j], (np.eye(3), point))[1]
                       for poses in (base_poses(model, q) for q in (middle, *ends)) for j, point in marked])
    low, high = points.min(axis=0), points.max(axis=0)
    radius = 0.5 * float(np.linalg.norm(high - low)) or 0.5
    return View(0.5 * (low + high), SPREAD * radius / np.tan(HALF_ANGLE), min(0.0, float(low[2])))


def aimed(config: str, description: str, robot_file: str | None = None) -> str:
    """Return the text of an RViz configuration with the view of a robot; unchanged if the robot is invalid, which the nodes
    report.
    """
    try:
        found = view(load(description, robot_file, backend="reference"))
    except RneaError:
        return config
    numbers = [("Current", "Distance", found.distance), ("Offset", "Z", found.floor),
               *(("Focal Point", axis, value) for axis, value in zip("XYZ", found.focus))]
    for part, name, value in numbers:
        config = re.sub(rf"(\b{part}:(?:.*\n)*?\s+{name}: )\S+", rf"\g<1>{value:.3g}", config, count=1)
    return config
