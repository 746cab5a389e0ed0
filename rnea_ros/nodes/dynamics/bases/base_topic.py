"""A topic that tells of a moving base: its messages are checked, counted, and kept by stamp."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from rnea_ros.errors import Rejected
from rnea_ros.model.tree import Model
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.pairing import PairedInput, check_age
from rnea_ros.nodes.fastpath.raw_messages import Reader, StampedNumbers

KEPT = 1024  # messages: an estimated motion is for an instant that lies up to half a second back
Sample = TypeVar("Sample")


class BaseTopic(Generic[Sample]):
    """Subclasses read a sample from each message.

    mover  : whose motion it is, in words
    reader : makes of a message type what reads its bytes; must have `stamp` or `header.stamp`
    """

    mover = "the base"
    reader: Callable[[Any], Callable[[bytes], Any]] = Reader

    def __init__(self, topic: str, kind: Any, timeout: float):
        """timeout: how old the newest message may be, by arrival [s]."""
        self.topic, self.name, self._kind, self._timeout = topic, topic.removeprefix("~/"), kind, timeout
        self.stream, self._read = Stream(self.name), self.reader(kind)
        self._kept: deque[tuple[int, Sample]] = deque(maxlen=KEPT)
        self.tolerance = math.inf
        self.then: Callable[[int], None] | None = None  # called after each message that is kept, with its arrival [ns]

    def connect(self, topics: Topics) -> None:
        self._timeline = Timeline(topics.clock)
        topics.hear(self._kind, self.topic, self.on_message)

    def use(self, model: Model) -> None:
        """Another model."""

    def configure(self, lag: float, tolerance: float) -> None:
        """Set the time before the newest joint state for which motions are estimated, and the largest time between an instant
        and the nearest message [s]."""
        self.tolerance = tolerance

    def forget(self) -> None:
        """The clock was set: nothing of the past says anything about now."""
        self._timeline.forget()
        self._clear()

    def _clear(self) -> None:
        self._kept.clear()

    def paired(self) -> PairedInput:
        return PairedInput(self.topic, self.stream, lambda: self._timeout)

    # ------------------------------------------------------------------ in

    def on_message(self, data: bytes) -> None:
        """Callback of the subscription."""
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            message = self._read(data)
            sample = self._sample(message)
            stamp = self._timeline.advance(message.stamp if isinstance(message, StampedNumbers) else message.header.stamp)
            self._keep(stamp, sample)
            self.stream.accept(arrival, stamp)
        except Rejected as refusal:
            self.stream.drop(refusal)
            if isinstance(refusal, Jumped):
                self._clear()
        else:
            if self.then:
                self.then(arrival)

    def _sample(self, message: Any) -> Sample:
        """What the message says. Raises Rejected."""
        raise NotImplementedError

    def _keep(self, stamp: int, sample: Sample) -> None:
        """Raises Rejected for what does not go on from the sample before."""
        self._kept.append((stamp, sample))

    # ------------------------------------------------------------------ out

    @property
    def fresh(self) -> bool:
        """Whether it tells how the base moves just now."""
        return bool(self._kept) and self.stream.age(time.monotonic_ns()) <= self._timeout

    def check(self) -> None:
        """Raise Rejected where nothing has come, or nothing lately."""
        if not self._kept:
            raise Rejected(f"{self.name}_missing", f"how {self.mover} moves is not known: nothing usable on {self.topic} yet",
                           passing=True)
        age = self.stream.age(time.monotonic_ns())
        if age > self._timeout:
            raise Rejected(f"{self.name}_timeout", f"the newest message on {self.topic} came {age:.3f} s ago, base.timeout "
                                                   f"is {self._timeout:g} s")

    @property
    def last(self) -> int | None:
        """Stamp of the newest message [ns]."""
        return self._kept[-1][0] if self._kept else None

    def since(self, stamp: int) -> list[Sample]:
        """Return the samples whose stamps [ns] are not before this one."""
        return [sample for when, sample in self._kept if when >= stamp]

    def newest(self) -> tuple[int, Sample]:
        """Return the newest sample and its stamp [ns]. Raises Rejected."""
        self.check()
        return self._kept[-1]

    def neighbours(self, stamp: int) -> list[tuple[int, Sample]]:
        """Return the samples before and after a stamp [ns], with their own stamps; one alone if it has this stamp, or if the
        other one does not exist or is more than the timeout away. Raises Rejected where that one is further from the stamp
        than the tolerance."""
        self.check()
        after = None
        for before in reversed(self._kept):
            if before[0] <= stamp:
                break
            after = before
        else:
            before, after = self._kept[0], None
        if after is not None and before[0] != stamp and after[0] - before[0] <= self._timeout * 1e9:
            return [before, after]
        if after is not None and after[0] - stamp < stamp - before[0]:
            before = after
        check_age(self.name, self.topic, (stamp - before[0]) * 1e-9, self.tolerance)
        return [before]

    def nearest(self, stamp: int) -> tuple[int, Sample]:
        """Return the sample whose stamp [ns] is nearest, with that. Raises Rejected."""
        return min(self.neighbours(stamp), key=lambda kept: abs(kept[0] - stamp))
