"""Whether a controller follows what it is sent: what it tells of its reference, against the references here."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

LAG = 0.2  # s; by which a controller may be behind what it is sent
EARLY = 0.02  # s; by which it may be ahead: it samples one update further on
PATIENCE = 0.5  # s; for which it may be elsewhere, with what is on its way to it
KEPT = 2.0  # s; of references
NANO = 1_000_000_000


class ReferenceWatch:
    """problem : what is to be said, once its reference has been elsewhere for PATIENCE; empty while it is not"""

    def __init__(self) -> None:
        self.restart(())

    def restart(self, joint_names: Sequence[str]) -> None:
        """A motion of these joints begins."""
        self.problem = ""
        self._joint_names = tuple(joint_names)
        self._sent: deque[tuple[int, np.ndarray]] = deque()
        self._strayed: int | None = None  # since when [ns]
        self._pending: tuple[int, np.ndarray] | None = None  # that was heard, and not judged yet
        self._place: tuple[int, float] | None = None  # the newest that was told: its stamp, how far from the last reference

    def send(self, q: np.ndarray, now: int) -> None:
        """A reference q (n,), at time now [ns]. By another thread than the others."""
        self._sent.append((now, q))
        while now - self._sent[0][0] > KEPT * NANO:
            self._sent.popleft()

    @property
    def last(self) -> np.ndarray | None:
        return self._sent[-1][1] if self._sent else None

    def hear(self, joint_names: Sequence[str], positions: Sequence[float], stamp: int, tolerance: float) -> None:
        """What the controller tells of its reference, at a stamp [ns]; called ten times a second. Joints that are not here do
        not matter. It is judged when the next one is heard: what belongs to its instant has been sent by then."""
        told = dict(zip(joint_names, positions))
        q = np.array([told.get(name, np.nan) for name in self._joint_names])
        pending, self._pending = self._pending, (stamp, q)
        if self._sent:
            self._place = stamp, float(np.fmax.reduce(np.abs(q - self._sent[-1][1]), initial=0.0) - tolerance)
        if pending is not None:
            self._judge(*pending, tolerance)

    def _judge(self, stamp: int, q: np.ndarray, tolerance: float) -> None:
        sent = list(self._sent)
        times = np.array([when for when, _ in sent])
        if not sent or not times[0] < stamp < times[-1]:
            return
        first = max(int(times.searchsorted(stamp - LAG * NANO, side="right")) - 1, 0)
        band = np.array([place for _, place in sent[first:int(times.searchsorted(stamp + EARLY * NANO, side="right"))]])
        away = np.nan_to_num(np.maximum(band.min(axis=0) - q, q - band.max(axis=0)) - tolerance, nan=-np.inf)
        worst = int(away.argmax())
        if away[worst] <= 0.0:
            self._strayed = None
        elif self._strayed is None:
            self._strayed = stamp
        elif stamp - self._strayed > PATIENCE * NANO:
            self.problem = (f"its reference of {self._joint_names[worst]} is {away[worst] + tolerance:.3g} off what it was "
                            f"sent, for {(stamp - self._strayed) / NANO:.2f} s")

    def arrived(self, since: int) -> bool:
        """Whether it has told of a reference since then [ns] that is the last one."""
        return self._place is not None and self._place[0] >= since and self._place[1] <= 0.0
