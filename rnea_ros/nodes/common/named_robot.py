"""The robot that the arguments of a launch file name: its file, its text, its root link.

Where they do not name one a RuntimeError, which launch shows, says what to give instead.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

from ament_index_python.packages import PackageNotFoundError, get_package_share_directory

from rnea_ros.model.xacro_file import expanded, split_arguments


def urdf_path(given: Mapping[str, str]) -> Path:
    """The file that the arguments urdf, or urdf_package and urdf_package_path name."""
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
    """The link that is no joint's child."""
    try:
        robot = ElementTree.fromstring(xml.encode())
    except ElementTree.ParseError as error:
        raise RuntimeError(f"{path} is no URDF: {error}") from None
    children = {child.get("link") for child in robot.findall("joint/child")}
    roots = [link.get("name") for link in robot.findall("link") if link.get("name") not in children]
    if not roots:
        raise RuntimeError(f"{path} is no URDF: it has no link that is no joint's child")
    return roots[0] or ""
