"""Stamps of messages: as numbers, and whether those of a stream advance as time does."""

from __future__ import annotations

import time
from collections.abc import Callable

from builtin_interfaces.msg import Duration, Time

from rnea_ros.errors import Rejected
from rnea_ros.nodes.fastpath.raw_messages import Stamp

SUDDEN = 1_000_000_000  # ns; a step of the stamps from which they are looked at more closely
DISORDER = 50_000_000  # ns; by less than that, a stamp that goes back is that of a message out of order
UNKNOWN = -(2**63)  # a stamp that none can have


def nanoseconds(stamp: Time | Stamp) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def duration(seconds: float) -> Duration:
    whole, part = divmod(round(seconds * 1e9), 1_000_000_000)
    return Duration(sec=whole, nanosec=part)


class Jumped(Rejected):
    """The message's stamp does not go on from the last one's: nothing of the past says anything about now."""


class Timeline:
    """Whether the stamps of a stream advance as time does. One step back, or far ahead of it, is refused; what follows it
    counts as a new start, unless the step back is so short that messages are merely out of order."""

    def __init__(self, clock: Callable[[], int] = time.time_ns):
        """clock() is what this node's clock shows [ns]. It is asked only where stamps are in doubt: those of a recording that
        is played are far from it, and right."""
        self._clock = clock
        self.arrival = 0  # of the last message, by the steady clock [ns]
        self.forget()

    def forget(self) -> None:
        """Accept any stamp next: the clock was set."""
        self._last = UNKNOWN

    def advance(self, stamp: Time | Stamp) -> int:
        """The stamp in nanoseconds. Raises Jumped, or Rejected for a message out of order."""
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
