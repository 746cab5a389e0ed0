"""When a plan comes by a place, for one place after another."""

from __future__ import annotations

from bisect import bisect_right

from ..scaling.law import TimeLaw

STEPS, CLOSE = 60, 1e-10  # at most; s
SLOW = 1e-3  # of the largest speed: below, the plan counts as at rest


class Schedule:
    """TimeLaw.time_at for one s, in microseconds: Newton's steps from the last answer, kept inside the piece."""

    def __init__(self, law: TimeLaw):
        self._law, self._breaks, self._nodes = law, law.breaks.tolist(), law.coefficients[:, 0].tolist()
        self._slow = SLOW * float(law.densely()[0][1].max())
        self._last = 0.0

    def at(self, s: float) -> tuple[float, float]:
        """The planned time at s, and the planned speed there, NaN where the plan all but rests."""
        k = min(max(bisect_right(self._nodes, s) - 1, 0), len(self._nodes) - 1)
        low, high = self._breaks[k], self._breaks[k + 1]
        t = self._last if low < self._last < high else 0.5 * (low + high)
        speed = 0.0
        for _ in range(STEPS):
            place, speed, _, _ = self._law.at(t)
            low, high = (low, t) if place > s else (t, high)
            step = t - (place - s) / speed if speed > 0.0 else low
            step = step if low < step < high else 0.5 * (low + high)
            t, moved = step, abs(step - t)
            if moved < CLOSE:
                break
        self._last = t
        return t, speed if speed > self._slow else float("nan")
