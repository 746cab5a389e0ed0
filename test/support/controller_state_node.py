"""dynamics_node with a stand-in for control_msgs.

JointTrajectoryControllerState is replaced by JointTrajectory, whose only point is the reference.
"""

from __future__ import annotations

import sys
from types import ModuleType

from trajectory_msgs.msg import JointTrajectory

if __name__ == "__main__":
    JointTrajectory.reference = property(lambda message: message.points[0])
    stand_in = ModuleType("control_msgs.msg")
    stand_in.JointTrajectoryControllerState = JointTrajectory
    sys.modules |= {"control_msgs": ModuleType("control_msgs"), "control_msgs.msg": stand_in}
    from rnea_ros.node_commands import dynamics_node

    sys.exit(dynamics_node())
