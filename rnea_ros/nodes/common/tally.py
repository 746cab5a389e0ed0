"""What ought not to happen, counted by its name and told on /diagnostics: a warning while it grows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import Header

PERIOD = 1.0  # s; of /diagnostics


class Tally:
    """Of one node. /diagnostics: "<node>: <what>", with a value "<verb>.<name>" for each name that was counted.

    message : total -> sentence
    """

    def __init__(self, node: Node, what: str, verb: str, message: Callable[[int], str]):
        self._node, self._what, self._verb, self._message = node, what, verb, message
        self.counts: Counter[str] = Counter()
        self._reported = 0
        self._publisher = node.create_publisher(DiagnosticArray, "/diagnostics", 10)
        node.create_timer(PERIOD, self._report, clock=Clock(clock_type=ClockType.STEADY_TIME))

    def _report(self) -> None:
        total, before = self.counts.total(), self._reported
        self._reported = total
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if total > before else DiagnosticStatus.OK, message=self._message(total),
            name=f"{self._node.get_fully_qualified_name()}: {self._what}", hardware_id=self._node.get_name(),
            values=[KeyValue(key=f"{self._verb}.{name}", value=str(count)) for name, count in sorted(self.counts.items())])
        header = Header(stamp=self._node.get_clock().now().to_msg())
        self._publisher.publish(DiagnosticArray(header=header, status=[status]))
