"""Poses on /tf of links that no joint places: a platform, a base that moves. Only what draws the robot needs them."""

from __future__ import annotations

import importlib
import importlib.util

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from std_msgs.msg import Header

from rnea_ros.demo.robot_demo import Player
from rnea_ros.robots.inputs.base_state import quaternion


class FreeLinks:
    """Publishes them where tf2_msgs is installed: it comes with RViz, and PyPI has none."""

    def __init__(self, node: Node, player: Player):
        self._poses, self._publisher = player.free_links, None
        if player.free_links(0.0) and importlib.util.find_spec("tf2_msgs"):
            self._kind = importlib.import_module("tf2_msgs.msg").TFMessage
            self._publisher = node.create_publisher(self._kind, "/tf", 100)  # launch files move it into their namespace

    def publish(self, header: Header, t: float) -> None:
        """Of time t, with the stamp and the root link that header has."""
        if self._publisher is not None and self._publisher.get_subscription_count():
            self._publisher.publish(self._kind(transforms=[
                _transform(header, link, *pose) for link, pose in self._poses(t).items()]))


def _transform(header: Header, link: str, R, P) -> TransformStamped:
    message = TransformStamped(header=header, child_frame_id=link)
    p, o = message.transform.translation, message.transform.rotation
    p.x, p.y, p.z = map(float, P)
    o.x, o.y, o.z, o.w = map(float, quaternion(R))
    return message
