"""The parameter `locked`: while a node runs, nobody changes what its robot is, what that may do, or which clock counts.

Everybody in a ROS domain may set parameters and publish a robot description. Where that is not wanted, the node refuses it: it
tells who asked, counts it, and says so on /diagnostics. docs/security.md tells what else there is to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.node import Node

from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.common.diagnostics import counted
from rnea_ros.nodes.common.tally import Tally

ROBOT = ("robot_description", "robot_file", "gravity", "use_friction", "payload.", "joint_dynamics.", "hold_joints.",
         "wrenches.")
LIMITS = ("joint_limits.", "speed_scaling.", "watch.")
LOCKED = (*ROBOT, *LIMITS, "use_sim_time")  # names, and with a dot at the end what they begin with

QUIET = 10.0  # s; between two lines on the console


class Lock:
    """Of one node. /diagnostics: "<node>: lock", where it is on."""

    def __init__(self, node: Node, on: bool):
        self._node, self.on = node, on
        self._tally = Tally(node, "lock", "refused", _told) if on else None  # by the name of a parameter or topic

    @property
    def refused(self) -> Mapping[str, int]:
        """How often what was."""
        return self._tally.counts if self._tally else {}

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
        """Why these cannot be had, of a lock that is on; it counts as refused."""
        names = list(names)
        assert self._tally is not None
        self._tally.counts.update(names)
        text = (f"{some(names)} cannot be changed: this node was started with locked: true, so that nobody in the ROS domain "
                "changes its robot, limits or clock. Who starts it may give it other values, or locked: false")
        self._node.get_logger().warning(f"refused: {text}", throttle_duration_sec=QUIET)
        return Rejected("locked", text)


def _told(total: int) -> str:
    return f"{counted(total, 'change')} refused" if total else "no change was asked for"


def covers(name: str) -> bool:
    """Whether the lock is about a parameter of this name."""
    return any(name.startswith(locked) if locked.endswith(".") else name == locked for locked in LOCKED)


def _plain(value: Any) -> str:
    """Comparable, whichever array it is; NaN is NaN."""
    return repr(list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value)
