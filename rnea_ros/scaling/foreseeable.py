"""A trajectory scaler that can be ticked ahead of its time, to see what it will do, and put back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, NamedTuple

from .time_scaling import TimeScaling
from .trajectory_scaler import TrajectoryScaler

OF_A_PLACE = ("t", "constraints", "current", "_waited", "_most", "_new", "_slower", "_next", "_lead", "_soon", "_due")
OF_A_WISH = ("_held", "_stopping", "_override")


class ScalerState(NamedTuple):
    """What ticks change: the motion at one of its places."""

    scaling: TimeScaling
    values: dict[str, Any]


class ForeseeableScaler(TrajectoryScaler):
    """With a worker, and asked for changes where it is placed; ticks that are foreseen neither ask the worker nor hear it."""

    _foreseen = False
    _due: Callable[[], None] | None = None  # what a tick that was foreseen would have asked of the worker

    @contextmanager
    def foreseeing(self) -> Iterator[None]:
        stopping, self._foreseen = self._stopping, True
        try:
            yield
        finally:
            self._stopping, self._foreseen = stopping, False

    def state(self) -> ScalerState:
        return ScalerState(copy(self.time_scaling), {name: getattr(self, name) for name in OF_A_PLACE})

    def place(self, state: ScalerState, dt: float) -> None:
        """Be where a motion was dt after a state of it."""
        self.time_scaling = copy(state.scaling)
        vars(self).update(state.values)
        if dt > 0.0:
            self.advance(dt)

    def saved(self) -> dict[str, Any]:
        """Everything; `vars(scaler).update` brings it back."""
        return {**vars(self), "time_scaling": copy(self.time_scaling), "_asked": list(self._asked)}

    @property
    def asked(self) -> dict[str, Any]:
        """What `wishes` tells, of `saved`."""
        return {name: getattr(self, name) for name in OF_A_WISH}

    def catch_up_with_worker(self) -> None:
        """Ask what is due where it is placed, or take what was found."""
        due, self._due = self._due, None
        if due is not None:
            due()
        else:
            self.collect()

    # ------------------------------------------------------------------ what can be said of it

    @property
    def wishes(self) -> tuple[bool, bool, float]:
        """Whether it is held, or to stop; and its override."""
        return self._held, self._stopping, self._override

    @property
    def answered(self) -> bool:
        """Whether the worker is done with what was asked last."""
        return self._job is not None and self._job.future is not None and self._job.future.done()

    @property
    def is_due(self) -> bool:
        """Whether something is to be asked of the worker here."""
        return self._due is not None

    @property
    def settled(self) -> bool:
        """Whether ticks will change nothing any more, unless something new is asked for."""
        waits = (self._new, self._slower, self._next) != (None, None, None)
        return self.time_scaling.steady and self.time_scaling.k == self._wanted and not waits

    @property
    def left(self) -> float:
        """Time until the end of the law at this rate [s]."""
        k = self.time_scaling.k
        return (self.current.law.duration - self.time_scaling.sigma) / k if k > 0.0 else math.inf

    # ------------------------------------------------------------------ what is put off while it foresees

    def collect(self) -> None:
        if not self._foreseen:
            super().collect()

    def _assess(self) -> None:
        if self._foreseen:
            self._due = self._assess
        else:
            super()._assess()

    def _ask_for_law(self) -> None:
        if self._foreseen:
            self._due = self._ask_for_law
        else:
            super()._ask_for_law()
