"""What the marks mean, and which limit is nearest, in words above the robot."""

from __future__ import annotations

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros.nodes.common.robot_facts import RobotFacts
from rnea_ros.nodes.dynamics.marks.shapes import WHITE, marker
from rnea_ros.nodes.dynamics.messages import DynamicsMessages

HEIGHT, LETTERS = 0.9, 0.03  # shares of the robot's reach: of the text above the root link, of a letter
MEANING = "length: effort / its limit\ncolour: effort rate / "
LIMIT, LATELY = "its limit", "its largest lately"


class Legend:
    """One text; `fill` says what is nearest now."""

    def __init__(self, robot: RobotFacts, reach: float):
        self.mark = marker("legend", 0, Marker.TEXT_VIEW_FACING, robot.root_link, LETTERS * reach, WHITE)
        self.mark.pose.position.z = HEIGHT * reach

    def fill(self, shown: DynamicsMessages) -> None:
        known = np.isfinite(shown.largest_use()).any()
        self.mark.text = MEANING + (LIMIT if known else LATELY) + self._nearest(shown)

    def _nearest(self, shown: DynamicsMessages) -> str:
        found = [(share, one.quantities[row], one.owners[k]) for one in shown.watched
                 for (row, k), share in np.ndenumerate(one.rows) if np.isfinite(share)]
        if not found:
            return ""
        share, limit, owner = max(found)
        return f"\nnearest: {limit.replace('_utilization', '').replace('_', ' ')} of {owner}, {share:.0%}"
