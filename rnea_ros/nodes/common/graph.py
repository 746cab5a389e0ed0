"""Who is there already: asked of the ROS graph before a node is started that must not be there twice."""

from __future__ import annotations

import rclpy
from rclpy.signals import SignalHandlerOptions

PATIENCE = 4.0  # s; a node that is there is discovered in 0.3 s, or else with the next heartbeat, after 3 s
PUBLISHER = "robot_state_publisher"


class Look:
    """A look around in a namespace, from now on."""

    def __init__(self, namespace: str) -> None:
        self._context = rclpy.Context()
        rclpy.init(context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self._node = rclpy.create_node("look", context=self._context, namespace=namespace, enable_rosout=False,
                                       start_parameter_services=False)

    def describer(self) -> str:
        """Full name of a node that has been seen to tell of a robot here: it publishes robot_description, or is called
        robot_state_publisher. "" if there is none."""
        node = self._node
        publishers = node.get_publishers_info_by_topic("robot_description")
        known = {(info.node_name, info.node_namespace) for info in publishers}
        known |= {pair for pair in node.get_node_names_and_namespaces() if pair == (PUBLISHER, node.get_namespace())}
        return min((f"{space.rstrip('/')}/{name}" for name, space in known), default="")

    def end(self) -> None:
        self._node.destroy_node()
        rclpy.try_shutdown(context=self._context)
