"""Live table of joint torques, torque rates and the utilization of their limits, for `rnea demo` and `rnea watch`."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any, TextIO


class LiveTable:
    """Table of the latest torques, their rates and the utilization of both limits.

    It is redrawn in place on a terminal, and printed every 1.7 s elsewhere.
    """

    BAR = 10

    def __init__(self, joint_names: Sequence[str], joint_types: Sequence[str], out: TextIO):
        self._out, self._live = out, out.isatty()
        self._interval = 0.1 if self._live else 1.7  # s; not a divisor of the motion's period, to show different states
        self._next = 0.0
        self._drawn = 0
        self._units = ["N" if kind == "prismatic" else "N m" for kind in joint_types]
        self._width = max(map(len, (*joint_names, "joint")))

    def show(self, message: Any) -> None:
        """Show a rnea_msgs/JointDynamics message."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._interval
        lines = self.lines(message)
        up, end = (f"\x1b[{self._drawn}A" if self._drawn else "", "\x1b[K\n") if self._live else ("", "\n")
        self._drawn = len(lines)
        self._out.write(up + "".join(line + end for line in lines) + ("" if self._live else "\n"))
        self._out.flush()

    def lines(self, message: Any) -> list[str]:
        """Return the table as text."""
        head = f"{'joint':<{self._width}}  {'torque':>13}  {'of its limit':<18}  {'rate':>16}  of its limit"
        # A controller that adds gravity limits the rate of the commanded effort: shown if the whole rate has no limit.
        commanded = [math.isnan(whole) and not math.isnan(sent) for whole, sent in
                     zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization)]
        rate_shares = [sent if chosen else whole for whole, sent, chosen in
                       zip(message.effort_rate_utilization, message.commanded_effort_rate_utilization, commanded)]
        rows = zip(message.joint_names, self._units, message.effort, message.effort_utilization,
                   message.effort_rate, rate_shares, commanded)
        notes = []
        if any(commanded):
            notes.append("*: rate of the commanded effort (without what the robot's controller adds), of its limit")
        if any(map(math.isnan, (*message.effort_utilization, *rate_shares))):
            notes.append("unknown: no limit given; URDFs have none for torque rates, a robot file does (docs/robot_file.md)")
        return [head] + [f"{name:<{self._width}}  {tau:>9.3f} {unit:<3}  {self._used(share)}  "
                         f"{rate:>10.3f} {unit + '/s':<5}  {self._used(rate_share, '*' if chosen else ' ')}".rstrip()
                         for name, unit, tau, share, rate, rate_share, chosen in rows] + notes

    def _used(self, share: float, mark: str = " ") -> str:
        if math.isnan(share):
            return f"{'unknown':<{self.BAR + 8}}"
        full = min(round(share * self.BAR), self.BAR)
        return f"[{'#' * full:<{self.BAR}}] {share:>4.0%}{mark}"
