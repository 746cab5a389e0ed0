"""The demos that MuJoCo moves: what their checks say of right and wrong recordings, their pictures, and both over ROS."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rnea_ros.cli import main
from rnea_ros.demo.processes import shared
from rnea_ros.demo.recording import DemoRecording, Series
from rnea_ros.demo.robots.catalogue import DEMOS
from rnea_ros.errors import RneaError
from rnea_ros.sim.comparison import torques
from rnea_ros.sim.machines import machine

NAMES = ("quadruped", "touched")
EVERY = 8


@pytest.fixture(scope="module", params=NAMES)
def heard(request):
    """A demo, its robot, and what would be received of it."""
    demo = DEMOS[request.param]
    device = machine(demo.name, demo.description.encode(), shared(demo.robot_file))
    robot = demo.load()
    instants = list(islice(device.instants(EVERY), 210))
    t = np.array([round(instant.t * 1e9) for instant in instants])
    q, qd, qdd, true = (np.array([getattr(instant, name) for instant in instants]) for name in ("q", "qd", "qdd", "tau"))
    found = np.array([torques(robot, instant, device.motors) for instant in instants])
    others = {link: Series(t, np.array([instant.wrenches[link] for instant in instants])) for link in instants[0].wrenches}
    others |= {"states": Series(t, np.hstack((q, qd, true))), "lack": Series(t, np.zeros((len(t), 6)))}
    return demo, robot, DemoRecording(t, q, qd, qdd, 0.0 * q, found, 0.0 * q), others


def verdicts(heard, recording=None, **others):
    demo, robot, received, beside = heard
    return demo.checks(robot, recording or received, {**beside, **others})


def test_right_ones_pass_and_wrong_ones_do_not(heard):
    received = heard[2]
    assert all(verdict.passed for verdict in verdicts(heard))
    assert not all(verdict.passed for verdict in verdicts(heard, replace(received, tau=1.02 * received.tau)))


def test_few_that_came_too_late_are_left_out_and_counted_many_are_none(heard):
    received, beside = heard[2:]
    for few, passed in ((3, True), (30, False)):
        tau, lack = received.tau.copy(), beside["lack"].values.copy()
        tau[50:50 + few] *= 1.5
        lack[50:50 + few, 2] = 10.0
        found = verdicts(heard, replace(received, tau=tau), lack=beside["lack"]._replace(values=lack))
        assert all(verdict.passed for verdict in found) == passed
        assert f"{few} of {len(tau)} samples left out" in found[-1].text or f"in {few} a wrench" in found[-1].text


def test_the_picture(heard, tmp_path):
    pytest.importorskip("matplotlib")
    demo, robot, received, beside = heard
    demo.draw(robot, received, beside, tmp_path / "a.png", "a test")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_files_of_example_robot_data_are_shared():
    assert shared("example-robot-data:robots/solo12.urdf").is_file()
    with pytest.raises(RneaError, match=r"\.\[sim\]"):
        shared("example-robot-data:robots/solo13.urdf")


@pytest.mark.ros
@pytest.mark.parametrize("name", NAMES)
def test_over_ros(name, tmp_path, capsys, monkeypatch):
    pytest.importorskip("rclpy")
    pytest.importorskip("rnea_msgs")
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    assert main.main(["demo", "--robot", name, "--seconds", "2"]) == 0, capsys.readouterr()
    assert (tmp_path / f"demo_{name}.png").is_file()
    assert "MuJoCo's motors" in capsys.readouterr().out
