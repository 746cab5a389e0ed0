"""Command lines of the nodes: --urdf, --robot-file, --help and ROS arguments."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rnea_ros import node_commands as commands

URDF = Path(__file__).resolve().parents[2] / "urdf" / "stanford.urdf"
XACRO = ('<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="$(arg name)"><xacro:arg name="size" default="2"/>'
         '<link name="l$(arg size)"/></robot>')


def given(words):
    """Return the parameters that a command line passes in its temporary file, and the arguments before that file."""
    with commands.ros_arguments("dynamics_node", words):
        file = Path(words[-1])
        parameters = json.loads(file.read_text())["/**"]["ros__parameters"]
        assert words[-3:-1] == ["--ros-args", "--params-file"]
    assert not file.exists()
    return parameters, words[:-3]


def test_urdf_and_robot_file_become_parameters():
    words = ["dynamics_node", "--urdf", str(URDF), "--robot-file", "fr3", "--ros-args", "-p", "motion_source:=estimated"]
    parameters, before = given(words)
    assert parameters == {"robot_description": URDF.read_text(), "robot_file": "fr3"}
    assert before == ["dynamics_node", "--ros-args", "-p", "motion_source:=estimated"]


def test_xacro_file_is_expanded_with_its_arguments(tmp_path):
    pytest.importorskip("xacro")
    path = tmp_path / "arm.urdf.xacro"
    path.write_text(XACRO)
    parameters, _ = given(["dynamics_node", "--urdf", str(path), "name:=left", "size:=3"])
    assert 'name="left"' in parameters["robot_description"] and '"l3"' in parameters["robot_description"]


def test_ros_arguments_are_passed_on_unchanged():
    words = ["dynamics_node", "--ros-args", "-r", "__ns:=/left", "-p", "a:=b", "--log-level", "debug", "--"]
    with commands.ros_arguments("dynamics_node", words):
        assert words == ["dynamics_node", "--ros-args", "-r", "__ns:=/left", "-p", "a:=b", "--log-level", "debug", "--"]


@pytest.mark.parametrize(("words", "message"), [
    (["--urdf", "no/such.urdf"], "cannot start: no/such.urdf: No such file"),
    (["--urdf", str(URDF), "name:=left"], "only a .xacro file has arguments"),
    (["--urdf", str(URDF), "--foo"], "unrecognized arguments: --foo"), (["name:=left"], "--urdf FILE.xacro is missing"),
    (["--urdf"], "expected one argument")])
def test_invalid_arguments_end_the_node_with_a_message(monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "argv", ["dynamics_node", *words])
    with pytest.raises(SystemExit) as end:
        commands.start("dynamics_node")
    assert message in f"{end.value.code} {capsys.readouterr().err}"


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_help_lists_the_options_and_the_pages_of_the_parameters(monkeypatch, capsys, name):
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as end:
        commands.start(name)
    text, root = capsys.readouterr().out, URDF.parents[1]
    assert end.value.code == 0 and "--urdf FILE" in text and "--robot-file FILE" in text and "--ros-args" in text
    for file in (commands.COMMANDS[name].page, commands.COMMANDS[name].config):
        assert file in text and (root / file).exists()
