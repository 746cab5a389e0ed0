"""Pairing of inputs by stamp: each joint state is evaluated with the other inputs as they are at its own stamp. Where the
motion of a platform is measured instead, its messages replace the joint states.

A joint state is held while an input that is being received has not reached its stamp, `input_wait` at most. Then each input
counts at that stamp: interpolated between its two neighbouring messages, else extrapolated from the nearest one by its own
derivatives. Where that is further than `input_tolerance` from the stamp, the joint state is rejected.

An input whose messages arrive a time L after their stamps, one in each period P, is behind the stamp of a new joint state
by L to L + P. It can arrive in time if L is at most `input_wait`: a joint state waits for inputs that are behind by at most
`input_wait` + P and whose next message is expected, a time P after the last one, before the wait is over.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node

from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.cdr import STAMP, STAMP_AT
from rnea_ros.nodes.common.diagnostics import Stream, steady_timer

CHECK_PERIOD_S = 0.002  # between two checks whether the wait of a held joint state is over
MAX_CHECK_GAP_NS = 5_000_000  # a longer time between two checks counts as that: the process did not run, or was computing
OTHER_CLOCK_S = 1.0  # an input that is older than that is by another clock, not late
MAX_HELD = 1000  # joint states; beyond that, the oldest are evaluated at once


class PairedInput(NamedTuple):
    """Input beside the joint states.

    topic   : as in JointDynamics.input_names
    stream  : counts of its messages, with the stamp and arrival of the last usable one
    timeout : without a message for so long, by arrival, no joint state waits for it [s]
    used    : return whether the present parameters use it
    """

    topic: str
    stream: Stream
    timeout: Callable[[], float]
    used: Callable[[], bool] = lambda: True


class InputPairing:
    """Joint states in the order of their arrival, each held until the other inputs have reached its stamp.

    inputs          : to be paired with joint states
    wait_s          : longest time that a joint state is held [s]
    waited, expired : counts of joint states that were held; of those whose wait ended without the input
    """

    def __init__(self, node: Node, evaluate: Callable[[bytes, Mapping[str, Any], int], None],
                 lag: Callable[[], int] = lambda: 0):
        """evaluate(message, what is known of it, arrival [ns]) is called for each joint state when it is due; lag() returns
        the time before its stamp for which it is evaluated [ns].
        """
        self.inputs: list[PairedInput] = []
        self.wait_s = 0.0
        self.waited = self.expired = 0
        self._evaluate, self._lag = evaluate, lag
        # stamp, arrival, arrival by _running_time [ns], what evaluates it
        self._held: deque[tuple[int, int, int, Callable[[], None]]] = deque()
        self._checked = self._not_running = 0  # the last check; the time that _running_time leaves out [ns]
        self._timer = steady_timer(node, CHECK_PERIOD_S, self.release)
        self._timer.cancel()

    def on_state(self, data: bytes, info: Mapping[str, Any]) -> None:
        """Evaluate a joint state, or hold it."""
        arrival = time.monotonic_ns()
        if self._held:
            self.release()
        elif self.wait_s <= 0.0:
            self._evaluate(data, info, arrival)
            return
        self.evaluate_or_hold(self._instant(data), arrival, partial(self._evaluate, data, info, arrival))

    def evaluate_or_hold(self, stamp: int, arrival: int, evaluate: Callable[[], None]) -> None:
        """Evaluate a message that is for the instant `stamp` [ns], or hold it until the inputs have reached that."""
        if self._held or any(self._is_expected(one, arrival) for one in self._awaited(stamp, arrival)):
            self.waited += 1
            self._held.append((stamp, arrival, self._running_time(), evaluate))
            if len(self._held) == 1:
                self._timer.reset()
            elif len(self._held) > MAX_HELD:
                self._held.popleft()[-1]()
        else:
            evaluate()

    def release(self) -> None:
        """Evaluate the held joint states that need not wait any longer."""
        now = self._running_time()
        while self._held:
            stamp, arrival, since, evaluate = self._held[0]
            awaited = bool(self._awaited(stamp, arrival))
            if awaited and now - since < self.wait_s * 1e9:
                return
            self.expired += awaited
            self._held.popleft()
            evaluate()
        self._timer.cancel()

    def clear(self) -> None:
        """Drop what is held: the clock was set."""
        self._held.clear()

    def ages(self, stamp: int) -> list[float]:
        """Return how much older than a stamp [ns] the newest message of each input is [s]; NaN where it is not used."""
        return [max(0.0, (stamp - one.stream.stamp) * 1e-9) if one.stream.arrival is not None and one.used() else math.nan
                for one in self.inputs]

    def findings(self, stamp: int) -> dict[str, object]:
        """Return what diagnostics report."""
        counts: dict[str, object] = {"inputs.states_held": len(self._held), "inputs.states_waited": self.waited,
                                     "inputs.waits_expired": self.expired}
        return counts | {f"{one.stream.name}.input_age_s": f"{age:.4f}"
                         for one, age in zip(self.inputs, self.ages(stamp)) if age == age}

    def _instant(self, data: bytes) -> int:
        """Return the stamp for which a joint state is evaluated [ns]; 0, which no input is behind, for a broken message."""
        if len(data) < STAMP_AT + STAMP.size:
            return 0
        seconds, nanoseconds = STAMP.unpack_from(data, STAMP_AT)
        return int(seconds * 1_000_000_000 + nanoseconds - self._lag())

    def _awaited(self, stamp: int, arrival: int) -> list[PairedInput]:
        """Return the inputs that are behind a stamp and can reach it; arrival: of the joint state [ns]."""
        if self.wait_s <= 0.0:
            return []
        return [one for one in self.inputs if 0 < stamp - one.stream.stamp <= self.wait_s * 1e9 + _spacing(one)
                and one.used() and one.stream.age(arrival) <= one.timeout()]

    def _is_expected(self, one: PairedInput, arrival: int) -> bool:
        """Return whether the next message of an input is expected before the wait of a joint state is over."""
        return _spacing(one) * 1e-9 - one.stream.age(arrival) <= self.wait_s

    def _running_time(self) -> int:
        """Return the time by the steady clock [ns] without that between two checks beyond MAX_CHECK_GAP_NS.

        Inputs that arrived while the process did not run are still in the queues of their subscriptions. They are read before
        the wait is over.
        """
        now = time.monotonic_ns()
        if self._held:
            self._not_running += max(now - self._checked - MAX_CHECK_GAP_NS, 0)
        self._checked = now
        return now - self._not_running


def _spacing(one: PairedInput) -> float:
    """Return the time between the stamps of the last two messages [ns], not longer than the timeout."""
    return min(max(one.stream.spacing, 0.0), one.timeout() * 1e9)


def check_age(name: str, topic: str, age_s: float, tolerance_s: float) -> None:
    """Raise Rejected where the message of an input that is nearest to an instant is further from it than the tolerance.

    age_s : time from that message to the instant, negative where it is later [s]
    """
    if abs(age_s) <= tolerance_s:
        return
    if abs(age_s) > OTHER_CLOCK_S:
        order = "older" if age_s > 0.0 else "newer"
        raise Rejected(f"{name}_apart", f"the nearest message on {topic} is {abs(age_s):.3f} s {order} than the joint state: "
                                        "are stamps of both by the same clock?")
    if age_s < 0.0:
        raise Rejected(f"{name}_missing", f"no message on {topic} that is as old as the joint state is kept; this is normal "
                                          "for an instant after a start", passing=True)
    raise Rejected(f"{name}_late", f"the newest message on {topic} is {age_s:.3f} s older than the joint state; "
                                   f"input_tolerance is {tolerance_s:g} s. Late messages are waited for with a longer "
                                   f"input_wait, of about {2.0 * age_s:.2g} s; if they come seldom, raise input_tolerance")


# ---------------------------------------------------------------------- continuous motions between two messages

def extrapolated(rows: np.ndarray, seconds: float) -> np.ndarray:
    """Return a value and its derivatives, rows (m, ...), so long after, by their Taylor series."""
    found: np.ndarray = rows + 0.0
    for order in range(1, len(rows)):
        found[:-order] += rows[order:] * (seconds**order / math.factorial(order))
    return found


def interpolated(first: np.ndarray, second: np.ndarray, span: float, seconds: float) -> np.ndarray:
    """Return a value and its derivatives (m, ...) `seconds` after `first`, where they are `second` after `span` [s].

    Row k is the two-point Hermite polynomial of rows k .. m - 1 of both ends; the last row is the derivative of the cubic of
    the last two. So rounding errors are not divided by more than one power of the span.
    """
    m, s = len(first), seconds / span
    if m == 1:
        return first + s * (second - first)
    found = [_hermite(first[k:], second[k:], span) for k in range(m - 1)]
    values = [sum(c * s**j for j, c in enumerate(coefficients)) for coefficients in found]
    slope = sum(j * c * s ** (j - 1) for j, c in enumerate(found[-1]) if j) / span
    return np.array([*values, slope])


def _hermite(first: np.ndarray, second: np.ndarray, span: float) -> Sequence[np.ndarray]:
    """Return the coefficients of the polynomial of degree 2 m - 1, in powers of the share of the span."""
    m = len(first)
    scales = span ** np.arange(m)
    low = [first[k] * (scales[k] / math.factorial(k)) for k in range(m)]
    left = [second[k] * scales[k] - sum(low[j] * math.perm(j, k) for j in range(k, m)) for k in range(m)]
    return [*low, *np.tensordot(_ends(m), np.array(left), axes=1)]


@cache
def _ends(m: int) -> np.ndarray:
    """Return the matrix from derivatives at 1 to the coefficients of the powers m .. 2 m - 1."""
    found: np.ndarray = np.linalg.inv(np.array([[math.perm(j, k) for j in range(m, 2 * m)] for k in range(m)], dtype=float))
    return found
