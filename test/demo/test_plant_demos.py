"""Demos of robots in MuJoCo: checks of correct and wrong recordings, plots, and runs over ROS."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rnea_ros.cli import main
from rnea_ros.demo.catalogue import DEMOS
from rnea_ros.demo.processes import share_file
from rnea_ros.demo.robot_demo import DemoRecording, TopicSeries
from rnea_ros.errors import RneaError
from rnea_ros.sim.machines import machine
from rnea_ros.sim.plant import torques

NAMES = ("quadruped", "touched")
EVERY = 8


@pytest.fixture(scope="module", params=NAMES)
def recorded(request):
    """Return a demo, its robot, and the recording that it would receive."""
    demo = DEMOS[request.param]
    device = machine(demo.name, demo.description.encode(), share_file(demo.robot_file))
    robot = demo.load()
    instants = list(islice(device.instants(EVERY), 210))
    t = np.array([round(instant.t * 1e9) for instant in instants])
    q, qd, qdd, true = (np.array([getattr(instant, name) for instant in instants]) for name in ("q", "qd", "qdd", "tau"))
    found = np.array([torques(robot, instant, device.motors) for instant in instants])
    others = {link: TopicSeries(t, np.array([instant.wrenches[link] for instant in instants]))
              for link in instants[0].wrenches}
    others |= {"states": TopicSeries(t, np.hstack((q, qd, true))), "base_wrench": TopicSeries(t, np.zeros((len(t), 6)))}
    return demo, robot, DemoRecording(t, q, qd, qdd, 0.0 * q, found, 0.0 * q), others


def verdicts(recorded, recording=None, **others):
    demo, robot, received, beside = recorded
    return demo.checks(robot, recording or received, {**beside, **others})


def test_checks_accept_correct_and_reject_wrong_torques(recorded):
    received = recorded[2]
    assert all(verdict.passed for verdict in verdicts(recorded))
    assert not all(verdict.passed for verdict in verdicts(recorded, replace(received, tau=1.02 * received.tau)))


def test_few_late_wrenches_are_omitted_and_many_fail_the_check(recorded):
    received, beside = recorded[2:]
    for few, passed in ((3, True), (30, False)):
        tau, lack = received.tau.copy(), beside["base_wrench"].values.copy()
        tau[50:50 + few] *= 1.5
        lack[50:50 + few, 2] = 10.0
        found = verdicts(recorded, replace(received, tau=tau), base_wrench=beside["base_wrench"]._replace(values=lack))
        assert all(verdict.passed for verdict in found) == passed
        assert f"{few} of {len(tau)} samples omitted" in found[-1].text or f"in {few} a wrench" in found[-1].text


def test_plot_of_a_plant_demo_is_written(recorded, tmp_path):
    pytest.importorskip("matplotlib")
    demo, robot, received, beside = recorded
    demo.draw(robot, received, beside, tmp_path / "a.png", "a test")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_share_file_locates_files_of_example_robot_data():
    assert share_file("example-robot-data:robots/solo12.urdf").is_file()
    with pytest.raises(RneaError, match=r"\.\[sim\]"):
        share_file("example-robot-data:robots/solo13.urdf")


@pytest.mark.ros
@pytest.mark.parametrize("name", NAMES)
def test_demos_of_plants_succeed_over_ros(name, tmp_path, capsys, monkeypatch):
    pytest.importorskip("rclpy")
    pytest.importorskip("rnea_msgs")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main.main(["demo", "--robot", name, "--seconds", "2"]) == 0, capsys.readouterr()
    assert (tmp_path / f"demo_{name}.png").is_file()
    assert "MuJoCo's motors" in capsys.readouterr().out
