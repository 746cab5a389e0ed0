"""Where a motion begins: at the last reference, or where joint states tell that the robot is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from .turns import nearest

LAG = 0.2  # s; by which a robot may be behind its references
KEPT = 2.0  # s; of references

Names = tuple[str, ...]


class StartState:
    """Where the robot is: at the last reference, unless joint states tell that it is not, nor on its way there.

    A robot is behind its references, and what it tells is older still. So it is believed to be where it was sent while each
    joint is where a reference was, no longer than LAG before the joint state came. A robot that has stopped on its own, or
    was moved by others, soon is not; then joint states win.

    measured : joint names -> positions (n,), NaN where nothing tells
    age      : joint names -> time since these came (n,) [s]
    """

    def __init__(self, measured: Callable[[Names], np.ndarray], age: Callable[[Names], np.ndarray]):
        self._measured, self._age = measured, age
        self._joint_names: Names = ()
        self._sent: deque[tuple[int, np.ndarray]] = deque()

    def send(self, joint_names: Names, q: np.ndarray, now: int) -> None:
        """A reference q (n,), at time now [ns]."""
        if joint_names != self._joint_names:
            self.forget()
            self._joint_names = joint_names
        self._sent.append((now, q))
        while now - self._sent[0][0] > KEPT * 1e9:
            self._sent.popleft()

    def forget(self) -> None:
        self._sent.clear()

    def at(self, joint_names: Names, now: int, tolerance: float, turns: np.ndarray) -> np.ndarray:
        """Positions (n,) at time now [ns], NaN where nothing tells. turns (n,): the joints that turn without end."""
        measured = self._measured(joint_names)
        if not self._sent or self._joint_names != joint_names:
            return measured
        times, sent = (np.array(column) for column in zip(*self._sent))
        held = sent[-1]
        measured = nearest(measured, held, turns)
        came = now - self._age(joint_names) * 1e9
        last = np.searchsorted(times, came, side="right")
        first = np.searchsorted(times, came - LAG * 1e9, side="right") - 1
        for joint, position in enumerate(measured):
            then = sent[max(first[joint], 0) : last[joint], joint]
            if not len(then):  # it came before all of them, and tells nothing of now
                continue
            if position < then.min() - tolerance or position > then.max() + tolerance:  # neither of NaN
                return np.where(np.isfinite(measured), measured, held)
        return held
