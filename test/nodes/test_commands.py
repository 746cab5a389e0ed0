"""What the commands of nodes take besides --ros-args."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rnea_ros.nodes import commands

URDF = Path(__file__).resolve().parents[2] / "urdf" / "stanford.urdf"


def test_a_urdf_becomes_the_parameter_that_no_command_line_can_take():
    words = ["dynamics_node", "--urdf", str(URDF), "--ros-args", "-p", "motion_source:=estimated"]
    with commands.described(words):
        assert words[:6] == ["dynamics_node", "--ros-args", "-p", "motion_source:=estimated", "--ros-args", "--params-file"]
        file = Path(words[6])
        assert json.loads(file.read_text())["/**"]["ros__parameters"] == {"robot_description": URDF.read_text()}
    assert not file.exists()


def test_without_one_nothing_changes():
    words = ["dynamics_node", "--ros-args", "-r", "__ns:=/left"]
    with commands.described(words):
        assert words == ["dynamics_node", "--ros-args", "-r", "__ns:=/left"]


def test_a_file_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["dynamics_node", "--urdf", "no/such.urdf"])
    with pytest.raises(SystemExit, match=r"cannot start: no/such\.urdf: No such file"):
        commands.start("no.such.module")
