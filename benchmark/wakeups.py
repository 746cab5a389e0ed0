"""The lean executor for a long time: a timer of 1 kHz beside 2 kHz of messages. Does the timer ever stop?

A wake-up that is lost shows as a gap of rnea_ros.nodes.common.executor.PATIENCE at most; after one of 10 s it ends with 1.
For an hour: python benchmark/wakeups.py 3600
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rnea_ros.nodes.common.executor import LeanExecutor

TICK, MESSAGE, STALLED = 1e-3, 5e-4, 10.0  # s


class Stress(Node):
    def __init__(self) -> None:
        super().__init__("stress")
        self.ticks = self.received = 0
        self.gaps: list[float] = [0.0]  # s; between two ticks, those above 0.1
        self.last = time.monotonic()
        self.create_timer(TICK, self._tick, clock=Clock(clock_type=ClockType.STEADY_TIME))
        self.create_subscription(Float64MultiArray, "stress", self._receive, 100, raw=True)
        self._publisher = self.create_publisher(Float64MultiArray, "stress", 100)

    def _tick(self) -> None:
        now = time.monotonic()
        if now - self.last > 0.1:
            self.gaps.append(now - self.last)
        self.last = now
        self.ticks += 1

    def _receive(self, _message: bytes) -> None:
        self.received += 1

    def feed(self, seconds: float) -> None:
        """Publish in a separate thread, until the time is over or the timer has stopped."""
        message, due = serialize_message(Float64MultiArray(data=[1.0])), time.monotonic()
        end = due + seconds
        while due < end and time.monotonic() - self.last < STALLED:
            self._publisher.publish(message)
            due += MESSAGE
            time.sleep(max(due - time.monotonic(), 0.0))
        self.gaps.append(time.monotonic() - self.last)
        if self.gaps[-1] >= STALLED:  # whom nothing wakes cannot be asked to end
            print(f"STALLED after {self.ticks} ticks, {self.received} messages", flush=True)
            os._exit(1)
        self.context.try_shutdown()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=300.0)
    rclpy.init()
    node, executor = Stress(), LeanExecutor()
    executor.lean = True
    executor.add_node(node)
    feeder = threading.Thread(target=node.feed, args=(parser.parse_args().seconds,))
    feeder.start()
    with suppress(ExternalShutdownException):
        executor.spin()
    feeder.join()
    late = [gap for gap in node.gaps if gap > 0.1]
    print(f"{node.ticks} ticks, {node.received} messages, {len(late)} gaps above 0.1 s, the longest {max(node.gaps):.2f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
