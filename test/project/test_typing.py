"""Types of the installed package: py.typed, and a public API that a strict type checker accepts."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

RIGHT = '''
import numpy as np
from numpy.typing import NDArray
from rnea_ros import BaseState, Dynamics, Loads, PlatformMotion, Pose, Robot, load, plan_motion


def reached(robot: Robot, link: str, q: NDArray[np.float64]) -> NDArray[np.float64]:
    pose: Pose = robot.link_pose(link, q)
    rest = np.zeros(robot.n)
    tau, tau_rate = robot.torque_and_rate(q, rest, rest, rest, loads=Loads({link: [0.0, 0.0, -9.0, 0.0, 0.0, 0.0]}))
    both: Dynamics = robot.with_payload(link, 1.0).dynamics(q, rest, rest, rest)
    return np.concatenate((pose.p, tau, tau_rate, both.gravity, robot.forward_dynamics(q, [0.0] * robot.n, tau)))


def all_kinds(fixed: Robot, floating: Robot, general: Robot) -> list[Robot]:
    return [fixed, floating, general, load("robot.urdf", "robot.robot.yaml")]


robot = Robot.from_urdf("robot.urdf", gravity=(0.0, 0.0, -1.6))
tau: NDArray[np.float64] = robot.inverse_dynamics([0.0], [0.0], [0.0])
names: tuple[str, ...] = robot.with_payload("tool", 2.0, (0.0, 0.0, 0.1)).joint_names
free = Robot.from_urdf("robot.urdf", "floating")
push: NDArray[np.float64] = free.bias([0.0], [0.0], base=BaseState())
motion = plan_motion(robot, [0.0], [1.0])


def lift(machine: Robot, motion: PlatformMotion) -> NDArray[np.float64]:
    return machine.inverse_dynamics(motion=motion)
'''
WRONG = {'robot.torque_and_rate([0.0], [0.0], [0.0], [0.0], {"tool": [0.0] * 6})': "incompatible type",
         'names: list[str] = robot.joint_names': "Incompatible types in assignment",
         'robot.link_pose(3, [0.0])': "incompatible type",
         'robot.link_poses("tool", [0.0])': "has no attribute"}


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy comes with the extra 'lint'")
def test_strict_type_checker_accepts_correct_and_rejects_incorrect_calls(tmp_path):
    """The check uses the installed copy; the source tree would be checked without py.typed."""
    (tmp_path / "right.py").write_text(RIGHT)
    begin = 'from rnea_ros import Robot\nrobot = Robot.from_urdf("robot.urdf")\n'
    (tmp_path / "wrong.py").write_text(begin + "\n".join(WRONG) + "\n")
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "", "--cache-dir", str(tmp_path / "cache")]
    run = subprocess.run([*command, "right.py", "wrong.py"], cwd=tmp_path, env=environment, capture_output=True, text=True,
                         timeout=300.0)
    found = run.stdout.splitlines()
    assert len(found) == len(WRONG) + 1 + sum(": note:" in line for line in found), run.stdout + run.stderr
    for number, message in enumerate(WRONG.values(), start=3):
        assert any(line.startswith(f"wrong.py:{number}: error:") and message in line for line in found), (number, run.stdout)


def test_py_typed_marker_is_in_the_package():
    import rnea_ros

    assert (Path(rnea_ros.__file__).parent / "py.typed").is_file()
