"""A touched robot: an arm with a force-torque sensor at its wrist swings a tool, and is pushed at it, in MuJoCo.

dynamics_node does not know of the tool, nor of the pushes: the sensor's wrench holds all that is beyond it. What it says that
the motors exert is compared with what MuJoCo's do.
"""

from __future__ import annotations

from functools import partial

from ...robots.protocol import AnyRobot
from ...sim.machines import PUSHED_ARM_URDF, PUSHED_TOOL
from .. import plant_plot
from ..checks import Verdict
from ..plant_checks import same, touched
from ..plant_plot import Group
from ..recording import DemoRecording, Heard
from ..robot_demo import RobotDemo


def checks(robot: AnyRobot, recording: DemoRecording, heard: Heard | None) -> list[Verdict]:
    """Torques."""
    assert heard is not None
    return [same(recording, heard["states"])]


DEMO = RobotDemo(
    "touched", f"example-robot-data:{PUSHED_ARM_URDF}", "urdf/ur5.robot.yaml", None, checks,
    heard={"states": ("sensor_msgs/JointState", "joint_states"),
           PUSHED_TOOL.link: ("geometry_msgs/WrenchStamped", f"dynamics_node/wrench/{PUSHED_TOOL.link}")},
    nodes=("dynamics_node", "demo_plant"), rate=250.0, seconds=6.0,
    draw=partial(plant_plot.draw, [Group("arm", range(3), PUSHED_TOOL.link), Group("wrist", range(3, 6), PUSHED_TOOL.link)]),
    parameters=touched([PUSHED_TOOL.link]))
