"""control_msgs where it is not installed: messages that any machine can send, dressed up as its own.

    python control_msgs_stand_in.py -m rnea_ros.nodes.scaling.node ...

runs a node that finds them. A JointTrajectoryControllerState is a JointTrajectory, whose only point is the reference.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

from trajectory_msgs.msg import JointTrajectory


def _refer(message: JointTrajectory, point: object) -> None:
    message.points = [point]


def install() -> None:
    JointTrajectory.reference = property(lambda message: message.points[0], _refer)
    package, messages = ModuleType("control_msgs"), ModuleType("control_msgs.msg")
    messages.JointTrajectoryControllerState = JointTrajectory
    sys.modules |= {"control_msgs": package, "control_msgs.msg": messages}


if __name__ == "__main__":
    install()
    sys.argv = sys.argv[2:]
    sys.exit(importlib.import_module(sys.argv[0]).main())
