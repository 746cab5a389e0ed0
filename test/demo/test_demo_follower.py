"""demo_follower with scaling_node, both as separate processes: repeated motion, also after a stop."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_srvs.srv import Trigger

from rnea_msgs.msg import ScaledMotion
from rnea_ros import Robot
from rnea_ros.demo.scaling import limit_parameters, overspeed_task

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[2] / "urdf" / "rr.urdf"


class Received:
    """Received scaled_motion: the latest message, and the position of rest of each motion that has ended, by its number. A
    thousand messages arrive per second, so nothing more is done with one.
    """

    def __init__(self, ros):
        self.progress, self.motion, self.ends = 0.0, 0, {}
        ros.node.create_subscription(ScaledMotion, "scaling_node/scaled_motion", self._receive, 10_000)

    def _receive(self, message):
        self.progress, self.motion = message.progress, message.motion
        if message.phase == ScaledMotion.ENDED:
            self.ends[message.motion] = np.array(message.position)


def test_follower_moves_back_and_forth_and_continues_after_a_stop(ros):
    task = overspeed_task(Robot.from_urdf(URDF))
    model = {"robot_description": URDF.read_text()}
    observed = Received(ros)
    node = ros.start("scaling_node", {**model, **limit_parameters(Robot.from_urdf(URDF), task.limits)})
    ros.start("demo_follower", model)
    first, last = task.points[0], task.points[-1]

    def stopped():
        """The number of a motion that was stopped somewhere between; on a busy machine the stop may come too late for one."""
        ros.until(lambda: 0.3 < observed.progress < 0.7, of=node)
        if ros.call(Trigger, "scaling_node/stop", Trigger.Request()).success:
            ros.until(lambda: observed.motion in observed.ends, of=node)
        return next((number for number, end_position in observed.ends.items()
                     if min(np.abs(end_position - end).max() for end in (first, last)) > 1e-2), None)

    def after():
        """Return the positions of rest of the motions that ended since; a trajectory that is sent again skips a number."""
        return [end_position for later, end_position in sorted(observed.ends.items()) if later > number]

    number = ros.until(stopped)
    ros.until(lambda: len(after()) >= 3, of=node)
    np.testing.assert_allclose(after()[:3], [first, last, first], atol=1e-6)
