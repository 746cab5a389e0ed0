"""A moving base that is touched: solo12, a robot of others, stands and trots in MuJoCo.

demo_plant tells joints, base and the forces at the four feet; dynamics_node says what the motors exert, and what the base
must get from elsewhere: nothing, for the feet carry it. MuJoCo knows what the motors did exert.
"""

from __future__ import annotations

from functools import partial

from ...robots.protocol import AnyRobot
from ...sim.machines import QUADRUPEDS
from .. import plant_plot
from ..checks import Verdict
from ..plant_checks import by_phase, touched
from ..plant_plot import Group
from ..recording import DemoRecording, Heard
from ..robot_demo import RobotDemo

FEET = QUADRUPEDS["solo12"].feet


def checks(robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """Torques in stance and swing, and what the base lacks."""
    assert heard is not None
    return by_phase(recording, heard, FEET)


DEMO = RobotDemo(
    "quadruped", "example-robot-data:robots/solo12.urdf", "urdf/solo12.robot.yaml", None, checks,
    heard={"states": ("sensor_msgs/JointState", "joint_states"),
           "lack": ("geometry_msgs/WrenchStamped", "dynamics_node/base_wrench"),
           **{foot: ("geometry_msgs/WrenchStamped", f"dynamics_node/wrench/{foot}") for foot in FEET}},
    nodes=("dynamics_node", "demo_plant"), rate=250.0, seconds=5.0,
    draw=partial(plant_plot.draw, [Group(foot, range(3 * leg, 3 * leg + 3), foot) for leg, foot in enumerate(FEET)]),
    parameters=touched(FEET))
