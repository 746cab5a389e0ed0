"""The parameter `locked`: while a node runs, nobody changes what its robot is, what that may do, or which clock counts.

Everybody in a ROS domain may set parameters and publish a robot description. Where that is not wanted, the node refuses it: it
tells who asked, counts it, and says so on /diagnostics. docs/security.md tells what else there is to do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import Header

from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.diagnostics import counted

ROBOT = ("robot_description", "robot_file", "gravity", "use_friction", "payload.", "joint_dynamics.", "hold_joints.",
         "wrenches.")
LIMITS = ("joint_limits.", "speed_scaling.", "watch.")
LOCKED = (*ROBOT, *LIMITS, "use_sim_time")  # names, and with a dot at the end what they begin with

PERIOD = 1.0  # s; of /diagnostics
QUIET = 10.0  # s; between two lines on the console


class Lock:
    """Of one node. /diagnostics: "<node>: lock", where it is on."""

    def __init__(self, node: Node, on: bool):
        self._node, self.on = node, on
        self.refused: Counter[str] = Counter()  # by the name of a parameter or topic
        self._reported = 0
        if on:
            self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
            node.create_timer(PERIOD, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def allowed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """The changes of parameters without those that the lock is about: of these, the same value again changes nothing, and
        another one raises Rejected."""
        if not self.on:
            return dict(changes)
        about = [name for name in changes if covers(name)]
        if others := [name for name in about if _plain(changes[name]) != _plain(self._node.get_parameter_or(name).value)]:
            raise self.refusal(others)
        return {name: value for name, value in changes.items() if name not in about}

    def refusal(self, names: Iterable[str]) -> Rejected:
        """Why these cannot be had; it counts as refused."""
        names = list(names)
        self.refused.update(names)
        text = (f"{some(names)} cannot be changed: this node was started with locked: true, so that nobody in the ROS domain "
                "changes its robot, limits or clock. Who starts it may give it other values, or locked: false")
        self._node.get_logger().warning(f"refused: {text}", throttle_duration_sec=QUIET)
        return Rejected("locked", text)

    def _report(self) -> None:
        total, before = self.refused.total(), self._reported
        self._reported = total
        message = f"{counted(total, 'change')} refused" if total else "no change was asked for"
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if total > before else DiagnosticStatus.OK, message=message,
            name=f"{self._node.get_fully_qualified_name()}: lock", hardware_id=self._node.get_name(),
            values=[KeyValue(key=f"refused.{name}", value=str(count)) for name, count in sorted(self.refused.items())])
        header = Header(stamp=self._node.get_clock().now().to_msg())
        self._publisher.publish(DiagnosticArray(header=header, status=[status]))


def covers(name: str) -> bool:
    """Whether the lock is about a parameter of this name."""
    return any(name.startswith(locked) if locked.endswith(".") else name == locked for locked in LOCKED)


def _plain(value: Any) -> str:
    """Comparable, whichever array it is; NaN is NaN."""
    return repr(list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value)
