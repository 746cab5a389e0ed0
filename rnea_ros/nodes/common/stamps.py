"""Message stamps: conversion, and detection of jumps in a stream; conversion of trajectory messages to goals."""

from __future__ import annotations

import time
from collections.abc import Callable

from builtin_interfaces.msg import Duration, Time
from trajectory_msgs.msg import JointTrajectory

from rnea_ros.errors import Rejected
from rnea_ros.execution.goal import Goal, TrajectoryPoint, read_goal
from rnea_ros.nodes.fastpath.messages import Stamp

SUDDEN = 1_000_000_000  # ns; larger steps of the stamps are checked more closely
DISORDER = 50_000_000  # ns; by less than that, a stamp that goes back is that of a message out of order
UNKNOWN = -(2**63)  # a stamp that none can have


def nanoseconds(stamp: Time | Stamp) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def duration(seconds: float) -> Duration:
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(sec=whole, nanosec=part)


class Jumped(Rejected):
    """Error: the stamp is not continuous with the last one; earlier data is invalid."""


class Timeline:
    """Check that the stamps of a stream advance like time. A single jump backward, or far forward, is rejected; the next
    message starts anew, unless the step back is short, as for messages out of order.
    """

    def __init__(self, clock: Callable[[], int] = time.time_ns):
        """clock() returns the node's time [ns]; it is called only for suspicious stamps, since those of played recordings are
        far from it and valid.
        """
        self._clock = clock
        self.arrival = 0  # of the last message, by the steady clock [ns]
        self.forget()

    def forget(self) -> None:
        """Accept any stamp next, after the clock was set."""
        self._last = UNKNOWN

    def advance(self, stamp: Time | Stamp) -> int:
        """Return the stamp [ns]. Raises Jumped, or Rejected for a message out of order."""
        now, last, before = nanoseconds(stamp), self._last, self.arrival
        self._last, self.arrival = now, time.monotonic_ns()
        step = now - last
        if not 0 <= step <= SUDDEN and last != UNKNOWN:
            if -DISORDER < step < 0:
                self._last = last
                raise Rejected("stamp_disordered", f"the stamp is {-step * 1e-9:.6f} s before the one of the last message")
            if step < 0:
                raise Jumped("stamp_went_back", f"the stamp is {-step * 1e-9:.6f} s before the one of the last message")
            elapsed, ahead = self.arrival - before, now - self._clock()
            if step - elapsed > SUDDEN and ahead > SUDDEN:
                raise Jumped("stamp_ahead", f"the stamp is {step * 1e-9:.3f} s after the one of the last message, which came "
                             f"{elapsed * 1e-9:.3f} s ago, and {ahead * 1e-9:.3f} s ahead of this node's clock")
        return now


def goal_from_message(message: JointTrajectory, joint_names: tuple[str, ...]) -> Goal:
    """Return the goal of a JointTrajectory for a robot with these joints. Raises Rejected."""
    points = [TrajectoryPoint(nanoseconds(p.time_from_start) * 1e-9, p.positions, p.velocities, p.accelerations)
              for p in message.points]
    return read_goal(joint_names, list(message.joint_names), points, nanoseconds(message.header.stamp))
