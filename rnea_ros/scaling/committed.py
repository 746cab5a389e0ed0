"""A motion that somebody else executes: handed out to its end, as points, and replaced from a place ahead when it changes.

Whoever follows the points, a controller with a clock of its own, needs nothing more to come to rest on the path: it does not
matter when the next call comes here, or whether one comes at all. The points are those of a forecast. When something is asked
of the scaler (a pause, other limits), when its worker has found a better law, or when there is more to foresee, the scaler is
put where the motion will be a moment ahead, is told, and foresees again: the new points begin there, at one of the old ones.
What is handed out begins in the past, with the old points up to there. So whoever takes over from one to the other, and
whenever, is on the same polynomial; provided it does so before the two part, and `lead` is how long it is given. What could
not be sent in time, because its maker was stopped, is taken back, as if it had never been foreseen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .forecast import Forecast
from .foreseeable import ForeseeableScaler
from .reference import Reference
from .spacing import Points, Quantities, spaced
from .terms import Constraints

LEAD, LONGEST_LEAD = 0.1, 2.0  # s; between asking for a change and the place where it begins; doubled when it was too short
MARGIN = 0.5  # share of that, left for those who are told
SENT = 0.25  # share of it, before the two part, by which it has to be on its way to them
OVERLAP = 0.5  # s of old points
AHEAD = 30.0  # s, that is handed out at most: then the motion would come to rest


class _Before(NamedTuple):
    """What was so until the newest forecast."""

    forecasts: list[Forecast]
    points: Points
    fresh: bool
    scaler: dict[str, Any]
    changes: list[Constraints]


class CommittedMotion:
    """The motion of a scaler, at times from its beginning [s].

    quantities : see spacing.spaced; may be set anew, for another payload
    horizon    : time that is handed out before the motion would come to rest of itself [s]
    points     : what is handed out
    fresh      : whether that is something new
    heard_of   : whether anything was sent
    """

    def __init__(self, scaler: ForeseeableScaler, quantities: Quantities, horizon: float = AHEAD, lead: float = LEAD):
        self.scaler, self.lead = scaler, lead
        self.quantities, self._horizon = quantities, min(horizon, AHEAD)
        self._changes: list[Constraints] = []
        forecast = Forecast(scaler, 0.0, self._horizon)
        self._forecasts = [forecast]  # each holds until the next one begins
        self._before: _Before | None = None
        self._unsent = False  # what is newest is to be taken back
        self.points = self._points(forecast)
        self.fresh, self.heard_of = True, False
        forecast.place(scaler, 0.0)

    def change(self, constraints: Constraints) -> None:
        """Other limits, or another payload, on the same path, as soon as it can be."""
        self._changes.append(constraints)

    @property
    def parts(self) -> float:
        """When what is handed out parts from what was before [s]."""
        return self._forecasts[-1].begin

    @property
    def send_by(self) -> float:
        """Until when what is fresh may be sent [s]."""
        return self.parts - SENT * self.lead

    def sent(self) -> None:
        """What was fresh is on its way."""
        self.fresh, self.heard_of = False, True

    def not_sent(self) -> None:
        """It was not, and will not be: the next renewal begins from what those who follow have. By the thread that sends."""
        self.fresh, self._unsent = False, self._before is not None

    def take_longer(self) -> None:
        """It was too late: changes are to begin further ahead."""
        self.lead = min(2.0 * self.lead, LONGEST_LEAD)

    def at(self, t: float) -> Reference:
        """Where to be; the scaler is left there."""
        self._place(max(t, 0.0))
        return self.scaler.reference()

    def stale(self, t: float) -> bool:
        """Whether there is a reason to foresee again."""
        last, scaler, soon = self._forecasts[-1], self.scaler, t + self.lead
        asked = bool(self._changes) or scaler.wishes != last.wishes or scaler.answered
        short = last.end > last.stop_at and soon > last.stop_at - 0.5 * self._horizon
        return asked or last.due <= soon or short or self._unsent

    def renew(self, clock: Callable[[], float]) -> bool:
        """Foresee again; whether that was done in time, else it will be tried again with more of it."""
        if self._unsent:
            self._take_back()
        scaler, saved = self.scaler, self.scaler.saved()
        at = self._splice(clock() + self.lead)
        try:
            self._place(at)
            scaler.catch_up_with_worker()
            for constraints in self._changes:
                scaler.change(constraints)
            forecast = Forecast(scaler, at, at + self._horizon)
            points = self._points(forecast, self.points.peaks)
            in_time = clock() + MARGIN * self.lead <= at
        except BaseException:
            vars(scaler).update(saved)
            raise
        if in_time:
            self._before = _Before(self._forecasts, self.points, self.fresh, saved, [*self._changes])
            self._commit(forecast, points)
        else:
            vars(scaler).update(saved)
            self.take_longer()
        return in_time

    def _points(self, forecast: Forecast, peaks: np.ndarray | None = None) -> Points:
        found = spaced(forecast, forecast.begin, forecast.end, forecast.corners(), self.quantities, peaks)
        found.qd[-1] = 0.0  # to the last bit, for controllers that insist
        return found

    def _splice(self, t: float) -> float:
        """The first point from t on; t itself, where the motion rests by then."""
        times = self.points.times
        return float(times[times.searchsorted(t)]) if t <= times[-1] else t

    def _commit(self, forecast: Forecast, points: Points) -> None:
        old, at = self.points, forecast.begin
        kept = slice(max(int(old.times.searchsorted(at - self.lead - OVERLAP)) - 1, 0), int(old.times.searchsorted(at)))
        times, q, qd, qdd = (np.concatenate((before[kept], new)) for before, new in zip(old[:4], points[:4]))
        self.points = Points(times, q, qd, qdd, max(old.excess, points.excess), points.peaks)
        gone = at - self.lead - OVERLAP  # what was replaced by then is over, what was to begin from `at` on never comes
        followers = [*(known.begin for known in self._forecasts[1:]), at]
        self._forecasts = [*(known for known, end in zip(self._forecasts, followers, strict=True)
                             if end > gone and known.begin < at), forecast]
        self._changes.clear()
        self.fresh = True

    def _take_back(self) -> None:
        before, self._before, self._unsent = self._before, None, False
        assert before is not None
        self._forecasts, self.points, self.fresh = before.forecasts, before.points, before.fresh
        self._changes[:0] = before.changes
        vars(self.scaler).update(before.scaler | self.scaler.asked)
        self.take_longer()

    def _place(self, t: float) -> None:
        number = max((k for k, forecast in enumerate(self._forecasts) if forecast.begin <= t), default=0)
        self._forecasts[number].place(self.scaler, t)
