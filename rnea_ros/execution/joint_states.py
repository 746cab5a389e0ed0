"""Measured joint states, positions that were sent, and the start position of a motion that follows from both."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from ..errors import Rejected
from ..model.tree import Limits

TURN = 2.0 * math.pi  # rad
MAX_OTHER_JOINTS = 1000  # joints of other robots that are stored, in case the next robot description names them
HISTORY_S = 2.0  # length of the history of sent positions
MAX_LAG_S = 0.2  # time by which a robot or a controller may be behind the positions that were sent

Names = tuple[str, ...]


# ---------------------------------------------------------------------------------------------------- continuous joints


def continuous_joints(joint_types: Sequence[str], limits: Limits) -> np.ndarray:
    """Return a mask (n,) of the joints whose positions may be wrapped by whole turns.

    A continuous joint with position limits is not one of them: its limits count the turns.
    """
    continuous = np.array([kind == "continuous" for kind in joint_types], dtype=bool)
    return continuous & np.isnan(limits.lower) & np.isnan(limits.upper)


def unwrap_to(q: np.ndarray, target: np.ndarray, continuous: np.ndarray) -> np.ndarray:
    """Return q (n,) with the continuous joints shifted by whole turns to be nearest to `target` (n,). NaN stays NaN."""
    distance = (target - q) / TURN
    return q + TURN * np.where(continuous & np.isfinite(distance), np.round(distance), 0.0)


# ---------------------------------------------------------------------------------------------------- measured positions


class JointSample(NamedTuple):
    """Latest state of one joint: arrival by the steady clock [s], stamp [ns], NaN for what was not measured."""

    position: float = math.nan
    arrival: float = -math.inf
    stamp: int = 0
    velocity: float = math.nan
    effort: float = math.nan


class Measurement(NamedTuple):
    """Measured joint states (n,): stamps [ns], positions, velocities and efforts in the robot's convention, NaN if unknown."""

    stamps: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    effort: np.ndarray


def no_measurement(joint_names: Sequence[str]) -> Measurement:
    """Return a measurement in which nothing is known."""
    n = len(joint_names)
    return Measurement(np.zeros(n, dtype=np.int64), *np.full((3, n), math.nan))


class JointStateBuffer:
    """Latest state of every joint, from any number of publishers that each name some of the joints.

    assumed_positions : positions of joints that no message has ever named
    """

    def __init__(self) -> None:
        self._samples: dict[str, JointSample] = {}
        self._own: frozenset[str] = frozenset()
        self.assumed_positions: Mapping[str, float] = {}

    def set_joints(self, names: Iterable[str]) -> None:
        """Set the joints that are stored however many other joints are published."""
        self._own = frozenset(names)

    def update(self, names: Sequence[str], positions: Sequence[float], now: float, stamp: int = 0,
               velocities: Sequence[float] = (), efforts: Sequence[float] = ()) -> None:
        """Store a joint state. Non-finite positions are skipped; so are velocities and efforts of the wrong length.

        Raises Rejected if there is not one position for each name.
        """
        if len(names) != len(positions):
            raise Rejected("wrong_size", f"{len(positions)} positions for {len(names)} names")
        capacity = MAX_OTHER_JOINTS + len(self._own)
        columns = (values if len(values) == len(names) else repeat(math.nan) for values in (velocities, efforts))
        for name, position, velocity, effort in zip(names, positions, *columns):
            if math.isfinite(position) and (name in self._own or name in self._samples or len(self._samples) < capacity):
                self._samples[name] = JointSample(position, now, stamp, velocity, effort)

    def positions(self, names: Iterable[str], since: float) -> np.ndarray:
        """Return positions (n,), NaN where the latest sample arrived before `since` [s]."""
        return np.array([sample.position if sample.arrival >= since else math.nan for sample in map(self._latest, names)])

    def measurement(self, names: Iterable[str], since: float) -> Measurement:
        """Return all measured quantities, NaN where the latest sample arrived before `since` [s] or lacks the quantity."""
        samples = [sample if since <= sample.arrival < math.inf else JointSample() for sample in map(self._latest, names)]
        columns = np.array([(sample.position, sample.velocity, sample.effort) for sample in samples]).reshape(-1, 3).T
        return Measurement(np.array([sample.stamp for sample in samples], dtype=np.int64), *columns)

    def age(self, names: Iterable[str], now: float) -> np.ndarray:
        """Return the time (n,) since each position arrived [s]; 0 for assumed positions."""
        return np.array([max(now - sample.arrival, 0.0) for sample in map(self._latest, names)])

    def clear(self) -> None:
        """Forget all samples, but not which joints were named."""
        self._samples = dict.fromkeys(self._samples, JointSample())

    def __len__(self) -> int:
        return len(self._samples)

    def _latest(self, name: str) -> JointSample:
        return self._samples.get(name) or JointSample(self.assumed_positions.get(name, math.nan), math.inf)


# -------------------------------------------------------------------------------------------------------- sent positions


class PositionHistory:
    """Positions that were sent within the last HISTORY_S seconds, with their times."""

    def __init__(self) -> None:
        self._entries: deque[tuple[int, np.ndarray]] = deque()

    def add(self, q: np.ndarray, now: int) -> None:
        """Append positions q (n,) sent at time now [ns]; drop what is too old, and all where the clock has been set back."""
        if self._entries and now < self._entries[-1][0]:
            self._entries.clear()
        self._entries.append((now, q))
        while now - self._entries[0][0] > HISTORY_S * 1e9:
            self._entries.popleft()

    def clear(self) -> None:
        self._entries.clear()

    @property
    def last(self) -> np.ndarray | None:
        """Positions that were sent last."""
        return self._entries[-1][1] if self._entries else None

    def entries(self) -> list[tuple[int, np.ndarray]]:
        """Return a copy of all (time [ns], positions). Other threads may add and clear meanwhile."""
        return list(self._entries)


class StartState:
    """Start position of the next motion: the last reference, unless joint states contradict it.

    A robot is behind its references, and joint states are older still. The last reference is used while every joint is where
    a reference was at most MAX_LAG_S before its joint state arrived. After a robot has stopped by itself or was moved
    otherwise this does not hold, and the measured positions are used.

    measured : joint names -> positions (n,), NaN where not measured
    age      : joint names -> time since these positions arrived (n,) [s]
    """

    def __init__(self, measured: Callable[[Names], np.ndarray], age: Callable[[Names], np.ndarray]):
        self._measured, self._age = measured, age
        self._joint_names: Names = ()
        self._sent = PositionHistory()

    def add_reference(self, joint_names: Names, q: np.ndarray, now: int) -> None:
        """Record a reference q (n,) sent at time now [ns]."""
        if joint_names != self._joint_names:
            self.clear()
            self._joint_names = joint_names
        self._sent.add(q, now)

    def clear(self) -> None:
        """Forget the references: the robot may be anywhere."""
        self._sent.clear()

    def positions(self, joint_names: Names, now: int, tolerance: float, continuous: np.ndarray) -> np.ndarray:
        """Return positions (n,) at time now [ns], NaN where unknown. `continuous` (n,): joints that may be wrapped."""
        measured = self._measured(joint_names)
        entries = self._sent.entries()
        if not entries or self._joint_names != joint_names:
            return measured
        times, sent = (np.array(column) for column in zip(*entries))
        last_sent = sent[-1]
        measured = unwrap_to(measured, last_sent, continuous)
        arrival = now - self._age(joint_names) * 1e9
        stop = np.searchsorted(times, arrival, side="right")
        start = np.searchsorted(times, arrival - MAX_LAG_S * 1e9, side="right") - 1
        for joint, position in enumerate(measured):
            recent = sent[max(start[joint], 0) : stop[joint], joint]
            if not len(recent):  # the joint state is older than all references: it says nothing about now
                continue
            if position < recent.min() - tolerance or position > recent.max() + tolerance:  # False if position is NaN
                return np.where(np.isfinite(measured), measured, last_sent)
        return last_sent
