"""The motion that a scaler will make if nothing new is asked of it: known to its end, so it can be handed out whole.

The scaler is ticked ahead of its time, in short steps while its rate is steered. Once the rate is constant, one long piece
leads to the end of the law, or rests for ever where the motion is paused. In each piece the law's time sigma is a quartic: the
forecast tells the motion at every instant, to rounding, and a scaler can be put back at any of them.

What a tick would ask of a worker is not asked: `due` is when that tick comes. Nor is the rate steered for longer than
PATIENCE, where the limits do not let it have what is wanted sooner: it stays as it is, which is verified, and `due` is when
to steer again. So a forecast ends at rest, whatever becomes of its maker.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from .foreseeable import ForeseeableScaler, ScalerState
from .reference import along, played

STEP = 2e-3  # s; between ticks while the rate changes
PATIENCE = 1.0  # s of them
SHARES = 1.0 / np.array([1.0, 1.0, 2.0, 6.0, 24.0])  # of a derivative in the power that it stands at


class Forecast:
    """A motion from time `begin` on, in pieces that begin at `starts`; at rest from `end` on.

    due     : when there is something to ask for, or to steer for, again; infinite if never
    wishes  : of the scaler, for which it holds
    stop_at : when the motion begins to come to rest of itself, unless another forecast replaces this one before
    """

    def __init__(self, scaler: ForeseeableScaler, begin: float = 0.0, stop_at: float = math.inf):
        """The scaler is at time `begin`; it is left somewhere else: `place` it."""
        self.path, self.begin, self.stop_at, self.wishes = scaler.plan.path, begin, stop_at, scaler.wishes
        self.due = math.inf
        self._states: list[ScalerState] = []
        starts: list[float] = []
        with scaler.foreseeing():
            self.end = self._foresee(scaler, starts)
        self.starts = np.array(starts)
        rates = [state.scaling for state in self._states]
        self._sigma = np.array([(x.sigma, x.k, x.kappa, x.w, x.slope) for x in rates])  # at the starts, and derivatives
        laws = [state.values["current"].law for state in self._states]
        cuts = [0, *(k for k in range(1, len(laws)) if laws[k] is not laws[k - 1]), len(laws)]
        self._runs = [(laws[a], a, b) for a, b in pairwise(cuts)]  # pieces on one law

    def _foresee(self, scaler: ForeseeableScaler, starts: list[float]) -> float:
        """Notes where each piece begins, and the scaler's state there. Returns when the motion is at rest."""
        t = since = self.begin
        while not (scaler.done and starts):
            if t >= self.stop_at:
                scaler.stop()
                since = max(since, self.stop_at)
            patient = not scaler.time_scaling.steady or t - since < PATIENCE
            if patient:
                scaler.decide()
            starts.append(t)
            self._states.append(scaler.state())
            if scaler.is_due or not (patient or scaler.settled):
                self.due = min(self.due, t)
            step = STEP if scaler.time_scaling.steady else min(STEP, scaler.time_scaling.left)
            if scaler.settled or not patient:
                left = scaler.left if scaler.left < math.inf else 0.0
                if not t < self.stop_at < t + left:
                    return t + left
                step = self.stop_at - t
            scaler.advance(step)
            t += step
        return t

    def place(self, scaler: ForeseeableScaler, t: float) -> None:
        """Put the scaler where it is at a time t from `begin` on."""
        piece = int(np.searchsorted(self.starts, t, side="right")) - 1
        scaler.place(self._states[piece], t - self.starts[piece])

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """q, qd, qdd, qddd (samples, n) at times t (samples,) from `begin` on."""
        rests, t = t > self.end, np.minimum(t, self.end)
        piece = np.searchsorted(self.starts, t, side="right") - 1
        sigma, k, kappa, w = self._scaled(piece, t)
        motion = np.zeros((4, len(t)))
        for law, first, last in self._runs:
            here = (first <= piece) & (piece < last)
            motion[:, here] = law(np.minimum(sigma[here], law.duration))
        motion[1:, rests] = 0.0
        s, *rates = played(motion, k, kappa, w)
        return along(self.path(s), *(rate[:, None] for rate in rates))

    def _scaled(self, piece: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
        """sigma, k, kappa, w (samples,)."""
        powers = (t - self.starts[piece])[:, None] ** np.arange(5.0) * SHARES
        return [(powers[:, :5 - order] * self._sigma[piece, order:]).sum(axis=1) for order in range(4)]

    def corners(self) -> np.ndarray:
        """Times between begin and end at which the jerk bends or jumps: of the pieces, of the laws, of the path."""
        found, ends = [self.starts], np.append(self.starts[1:], self.end)
        for law, first, last in self._runs:
            pieces = np.arange(first, last)
            t = np.append(self.starts[first:last], ends[last - 1])
            sigma = np.append(self._sigma[first:last, 0], self._scaled(pieces[-1:], ends[last - 1:last])[0])
            corners = np.concatenate((law.corners, law.time_at(self.path.breaks)))
            found.append(np.interp(corners[(corners > sigma[0]) & (corners < sigma[-1])], sigma, t))
        times = np.unique(np.concatenate(found))
        return times[(times > self.begin) & (times < self.end)]
