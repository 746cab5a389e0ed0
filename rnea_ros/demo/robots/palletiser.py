"""Closed loops: a palletiser swings from a conveyor to a pallet and back. Four motors, three parallelograms, ten joints.

A parallelogram keeps its rods parallel, so here the passive joints follow from the motors by whole numbers. dynamics_node does
not know: it closes the loops of the robot file. What it says is compared with the tree of all ten joints, which has no loops,
by virtual work.
"""

from __future__ import annotations

import numpy as np

from ...robots.general import GeneralRobot
from ...robots.protocol import AnyRobot
from ..checks import Verdict, equal, power_is_energy_rate, rate_is_derivative
from ..motion import Harmonics, MotionSample
from ..recording import DemoRecording, Heard
from ..robot_demo import Player, RobotDemo

MOTORS = ("joint1", "joint2", "joint3", "joint4")
PASSIVE = {  # turn of each for one of joint2, of joint3
    "elbow": (-1, 1), "drive_rod_joint": (1, -1), "levelling_rod_joint": (1, 0), "levelling_plate": (-1, 0),
    "fore_rod_joint": (0, 1), "wrist_joint": (0, -1)}
JOINTS = (*MOTORS, *PASSIVE)
MAP = np.vstack((np.eye(4), np.array([(0, a, b, 0) for a, b in PASSIVE.values()])))  # (10, 4): all joints from the motors
# One round in 5 s [rad]: down at the conveyor, up and across, down at the pallet, and back
ROUND = Harmonics(5.0, np.array([0.1, 0.3, 0.25, 0.575]), (
    (1, np.array([-1.0, 0.1, 0.1, -0.55])),
    (2, np.array([0.0, 0.4, 0.2, -0.025]))))


def player() -> Player:
    return Player(f"from a conveyor to a pallet and back in {ROUND.period:g} s", JOINTS, "base_link",
                  lambda t: MotionSample(*(MAP @ part for part in ROUND(t))))


def checks(robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """Virtual work, power, difference quotients."""
    assert isinstance(robot, GeneralRobot)
    tree = robot.tree
    order = [JOINTS.index(name) for name in tree.joint_names]
    all_of = MAP[order][:, [MOTORS.index(name) for name in robot.joint_names]]
    motion = [part @ all_of.T for part in recording.motion]
    tau, tau_rate = (part @ all_of for part in tree.torque_and_rate(*motion))
    return [equal(recording, tau, tau_rate, "the tree without its loops, by the parallelograms' virtual work"),
            power_is_energy_rate(recording, lambda q, qd: tree.energy(q @ all_of.T, qd @ all_of.T).total),
            rate_is_derivative(recording, robot.joint_names)]


DEMO = RobotDemo("palletiser", "urdf/palletiser.urdf", "urdf/palletiser.robot.yaml", player, checks,
                 instants=(0.0, 1.25, 2.5), view=(18.0, -70.0))
