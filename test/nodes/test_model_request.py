"""Model requests from parameters, description and robot file, and the robots made of them, without a node."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from rnea_ros import InputError, ModelError, Robot, load
from rnea_ros.nodes.common.robot_description import GRAVITY, FileText, ModelRequest

URDF = Path(__file__).resolve().parents[2] / "urdf"
NO_PAYLOAD = ("", 0.0, (0.0,) * 3, (0.0,) * 6)


def request(name, file=True, **given):
    path = str(URDF / f"{name}.robot.yaml") if file else ""
    made = ModelRequest((URDF / f"{name}.urdf").read_text(), FileText.read(path), "reference", GRAVITY, False, (), NO_PAYLOAD)
    return replace(made, **given)


def test_robot_of_a_model_request_equals_the_robot_of_load():
    for name in ("five_bar", "seven_r"):
        asked = request(name)
        robot, theirs = asked.robot(), load(URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml", backend="reference")
        assert robot.kind == theirs.kind and request(name) == asked
        motion = np.array([0.3, 0.2, 0.1, 0.4])[:, None] * np.ones(robot.n)
        if name == "five_bar":
            motion[0] = 1.9, 1.0
        np.testing.assert_array_equal(robot.torque_and_rate(*motion), theirs.torque_and_rate(*motion))


def test_parameters_override_the_robot_file():
    """A friction parameter of a joint replaces all friction of the file's drive and joint."""
    terms = (("joint_dynamics.joint1.rotor_inertia", 2.0e-4), ("joint_dynamics.joint1.viscous", 7.0))
    made, plain = request("seven_r", terms=terms).robot().model, request("seven_r").robot().model
    first, before = made.links[1].term, plain.links[1].term
    assert (first.viscous, first.coulomb, first.rotor_inertia, first.gear_ratio) == (7.0, before.coulomb, 2.0e-4, 100.0)
    assert made.links[2].term == plain.links[2].term
    assert request("seven_r", gravity=(1.0, 2.0, 3.0)).robot().gravity_vector.tolist() == [1.0, 2.0, 3.0]
    payload = ("left_forearm", 2.0, (0.0,) * 3, (0.0,) * 6)
    asked = request("five_bar", payload=payload)
    assert asked.draft().tree.payloads["left_forearm"].mass == 2.0 and not asked.robot().tree.payloads


def test_model_request_changes_with_the_content_of_its_robot_file(tmp_path):
    path = tmp_path / "five_bar.robot.yaml"
    path.write_text((URDF / "five_bar.robot.yaml").read_text())
    first = replace(request("five_bar"), file=FileText.read(str(path)))
    path.write_text("version: 1\nlopps: {}\n")
    second = replace(first, file=FileText.read(str(path)))
    assert first != second and not first.robot().is_fixed_tree  # uses the content at the time of reading
    with pytest.raises(ModelError, match=r"five_bar.robot.yaml: line 2, .*did you mean 'loops'"):
        second.robot()
    with pytest.raises(ModelError, match="cannot be read"):
        FileText.read(str(tmp_path / "gone.yaml"))
    assert FileText.read("") == FileText() and isinstance(request("seven_r", file=False).robot(), Robot)


def test_only_regular_files_with_a_yaml_extension_are_opened(tmp_path):
    """Any process that sets the parameter receives the error, without access rights to the files of the node's user."""
    secret = tmp_path / "id_rsa"
    secret.write_text("key: [secret")
    for path in (str(secret), "/dev/zero", "/etc/passwd", "pandas", str(tmp_path), "\0"):
        with pytest.raises(InputError, match=r"a path that ends with .yaml or .yml is needed") as caught:
            FileText.read(path)
        assert "secret" not in str(caught.value)
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "folder.yml").mkdir()
    for name in ("pipe.yaml", "folder.yml"):  # opening that pipe blocks for ever
        with pytest.raises(InputError, match="no regular file"):
            FileText.read(str(tmp_path / name))
    with pytest.raises(ModelError, match="cannot be read"):
        FileText.read("a\0.yaml")
    assert b"panda" in FileText.read("panda").data.lower()
