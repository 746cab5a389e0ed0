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
from rnea_ros.nodes.fastpath.raw_messages import Reader

KEPT = 1024  # messages: an estimated motion is for an instant that lies up to half a second back
Sample = TypeVar("Sample")


class BaseTopic(Generic[Sample]):
    """Subclasses read a sample from each message.

    mover : whose motion it is, in words
    """

    mover = "the base"

    def __init__(self, topic: str, kind: Any, timeout: float):
        """timeout: how old the newest message may be, by arrival [s]."""
        self.topic, self.name, self._kind, self._timeout = topic, topic.removeprefix("~/"), kind, timeout
        self.stream, self._read = Stream(self.name), Reader(kind)
        self._kept: deque[tuple[int, Sample]] = deque(maxlen=KEPT)
        self.then: Callable[[int], None] | None = None  # called after each message that is kept, with its arrival [ns]

    def connect(self, topics: Topics) -> None:
        self._timeline = Timeline(topics.clock)
        topics.hear(self._kind, self.topic, self.on_message)

    def use(self, model: Model) -> None:
        """Another model."""

    def configure(self, lag: float) -> None:
        """Estimated motions are for an instant so long before the newest joint state [s]."""

    def forget(self) -> None:
        """The clock was set: nothing of the past says anything about now."""
        self._timeline.forget()
        self._clear()

    def _clear(self) -> None:
        self._kept.clear()

    # ------------------------------------------------------------------ in

    def on_message(self, data: bytes) -> None:
        """Callback of the subscription."""
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            message = self._read(data)
            sample = self._sample(message)
            stamp = self._timeline.advance(message.header.stamp)
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
        """Those whose stamps [ns] are not before this."""
        return [sample for when, sample in self._kept if when >= stamp]

    def newest(self, stamp: int) -> tuple[int, Sample]:
        """The newest that is not after the stamp [ns], with its own. Raises Rejected."""
        self.check()
        return next((found for found in reversed(self._kept) if found[0] <= stamp), self._kept[0])

    def nearest(self, stamp: int) -> tuple[int, Sample]:
        """The one whose stamp [ns] is nearest, with that. Raises Rejected."""
        self.check()
        found, away = self._kept[-1], math.inf
        for kept in reversed(self._kept):
            if abs(kept[0] - stamp) >= away:
                break
            found, away = kept, abs(kept[0] - stamp)
        return found
