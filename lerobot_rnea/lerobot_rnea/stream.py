"""Execution of a policy's actions, one by one or in chunks, by rnea_ros.ChunkExecutor, in the values of LeRobot's motors.

A chunk says how the motion goes on, and is executed at its own times. A single action does not: actions are collected for
`delay`, and the last few of them, continued to rest, are a chunk. Its continuation is replaced before it begins; where actions
stop coming, the motion ends at rest.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rnea_ros import ChunkExecutor, ChunkResult, InputError

from .joint_mapping import JointMapping

MAX_STEP_TIME = 0.03  # s by which the motion advances from one command to the next; after a longer pause it is delayed
MAX_GAP = 0.5  # s between two commands; after a longer one the robot is at rest at the last command
CONTINUED = 0.5  # s for which actions are continued
SLOWER, STEADIER = 0.12, 0.06  # s in which their velocity, and their acceleration, falls to a third
KEPT = 5  # actions that are kept after they have passed, for their velocity and acceleration
SAME = 1e-6  # of a value: rounding of an action that is taken from a chunk (single precision is 6e-8)
STRANGERS = 3  # actions in a row that are not of a chunk end its execution; LeRobot interpolates from one chunk to the next
WINDOW = 0.5  # s after a chunk in which actions may be its points
WARNING_PERIOD = 1.0  # s between two warnings of a kind

logger = logging.getLogger(__name__)


class ActionStream:
    """Actions in, commands out. All times are in seconds of one clock. Calls from several threads are safe.

    Where commands are late, the motion waits: no command is further from the last one than the motion goes in MAX_STEP_TIME.
    """

    def __init__(self, executor: ChunkExecutor, mapping: JointMapping, period: float, delay: float | None = None,
                 margin: float = 0.05):
        """
        period : of single actions, and of the points of chunks [s]
        delay  : time from a single action to its execution [s]; None: the executor's lead and three periods
        margin : distance beyond a position limit within which a position is moved to the limit [rad, m]
        """
        least = executor.lead + period
        self.delay = executor.lead + 3.0 * period if delay is None else delay
        if not self.delay > least:
            raise InputError(f"delay is {self.delay:.3g} s; more than the lead and a period, {least:.3g} s, is needed")
        self.mapping, self.period, self.margin = mapping, period, margin
        self._executor = executor
        self._max_lead = executor.max_lead
        self._lower, self._upper = (np.where(np.isnan(end), sign * np.inf, end) for end, sign in
                                    ((executor.limits.lower, -1.0), (executor.limits.upper, 1.0)))
        self._lock = threading.RLock()
        self._counts: Counter[str] = Counter()
        self._warned: dict[str, float] = {}
        self._is_stopped = False
        self._clear(math.nan)

    def _clear(self, t: float) -> None:
        self._actions: deque[tuple[float, np.ndarray]] = deque()
        self._others: deque[tuple[float, np.ndarray]] = deque()
        self._chunks: deque[np.ndarray] = deque(maxlen=2)
        self._strangers = 0
        self._chunk_until = self._stamp = self._arrival = -math.inf
        self._interval = self.period
        self.sent: dict[str, float] = {}
        self._offset = 0.0  # of the clock, from the time of the motion [s]
        self._sent_at, self._sent_q = t, np.zeros(0)

    # ------------------------------------------------------------------ what a robot calls

    def start(self, values: Mapping[str, Any], t: float) -> None:
        """Rest at measured values from time t on. InputError where the robot cannot rest there."""
        with self._lock:
            q = self._inside(self.mapping.positions(values))
            self._executor.reset(q, t)
            self._clear(t)
            self._is_stopped, self._sent_q = False, q
            self.sent = {key: float(values[key]) for key in self.mapping.unprotected if key in values}

    def command(self, t: float) -> dict[str, float]:
        """Return the values of all motors at time t."""
        with self._lock:
            t -= self._offset
            gap = t - self._sent_at
            if gap > MAX_GAP and self._executor.sample_ahead(self._sent_at)[1:].any():
                # the motors are where the last command was: the motion cannot go on at its speed
                self._count("interrupted", f"no command for {gap:.2f} s; the motion begins again from rest", t)
                self._restart(t)
            elif gap > MAX_STEP_TIME:
                self._offset += gap - MAX_STEP_TIME
                t = self._sent_at + MAX_STEP_TIME
            q = self._executor.sample(t)[0]
            self._sent_at, self._sent_q = t, q
            found = {**self.sent, **self.mapping.values(q), **self._unprotected(t)}
            self.sent = {key: found[key] for key in self.mapping.keys if key in found}
            return self.sent

    def push_action(self, action: Mapping[str, Any], t: float) -> ChunkResult | None:
        """Execute an action `delay` later; None where it is a point of the chunk that is executed."""
        with self._lock:
            t -= self._offset
            try:
                q = self._inside(self.mapping.positions(action))
                others = np.array([float(action.get(key, self.sent.get(key, math.nan))) for key in self.mapping.unprotected])
            except InputError as error:
                return self._counted(ChunkResult("outside_position_limits", str(error)), t)
            except (TypeError, ValueError) as error:
                return self._counted(ChunkResult("wrong_shape", str(error)), t)
            if not np.isfinite(q).all():
                return self._counted(ChunkResult("not_finite", "a value of the action is not finite"), t)
            if t < self._chunk_until:
                self._strangers = 0 if self._is_of_chunk(q) else self._strangers + 1
                if self._strangers < STRANGERS:
                    self._counts["of_chunk"] += 1
                    return None
            stamp = self._paced(t)
            self._chunks.clear()
            self._chunk_until = -math.inf
            self._actions.append((stamp + self.delay, q))
            self._others.append((stamp + self.delay, others))
            while len(self._actions) > KEPT and self._actions[0][0] < t:
                self._actions.popleft()
            result = self._push(stamp, *self._continued(t), t, min(self.delay - self.period, self._max_lead))
            if not result.accepted:
                self._actions.pop()
            return self._counted(result, t)

    def push_chunk(self, stamp: float, values: Any, t: float, names: Sequence[str] | None = None) -> ChunkResult:
        """Execute a chunk (count, motors): point k is for stamp + k period.

        stamp : time of the observation from which the chunk was computed
        names : keys of the columns; None: those of the robot's actions
        """
        names = self.mapping.keys if names is None else tuple(names)
        with self._lock:
            t, stamp = t - self._offset, stamp - self._offset
            try:
                points = np.asarray(values, dtype=float)
                if points.ndim != 2 or points.shape[1] != len(names):
                    raise ValueError(f"the chunk has shape {points.shape}; (points, {len(names)}) is needed")
                columns = [names.index(f"{motor}.pos") for motor in self.mapping.motors]
                q = np.array([self._inside(row) for row in self.mapping.to_positions(points[:, columns])])
            except InputError as error:
                return self._counted(ChunkResult("outside_position_limits", str(error)), t)
            except (TypeError, ValueError) as error:
                return self._counted(ChunkResult("wrong_shape", str(error)), t)
            times = stamp + self.period * np.arange(len(q))
            self._chunks.append(q)
            self._strangers = 0
            self._interval = min(max(t - self._arrival, self.period), WINDOW)
            self._arrival, self._chunk_until = t, t + 2.0 * self._interval + WINDOW
            self._actions.clear()
            result = self._push(max(stamp, self._stamp + 1e-6), times, q, t, self._max_lead)
            if result.accepted:
                others = points[:, [names.index(key) for key in self.mapping.unprotected if key in names]]
                self._others = deque((at, row) for at, row in zip(times.tolist(), others, strict=True)
                                     if len(row) == len(self.mapping.unprotected))
            return self._counted(result, t)

    def stop(self, t: float) -> None:
        """Brake to rest and reject actions from now on; `diagnostics()["time_to_rest"]` is zero at rest."""
        with self._lock:
            self._is_stopped = True
            self._executor.stop(t - self._offset)

    def diagnostics(self) -> dict[str, Any]:
        """Return counts of actions and chunks by outcome, and the state of the executor."""
        with self._lock:
            state = self._executor.diagnostics()
            return {"counts": dict(self._counts), "slowed_share": state.slowed_share, "binding_limit": state.binding_limit,
                    "delay": state.delay, "lead": state.lead, "time_to_rest": state.time_to_rest}

    # ------------------------------------------------------------------ how

    def _inside(self, q: np.ndarray) -> np.ndarray:
        """Return positions, moved to a limit where they are a little beyond it."""
        inside = np.clip(q, self._lower, self._upper)
        beyond = np.abs(q - inside)
        if np.nanmax(beyond, initial=0.0) > self.margin:
            k = int(np.nanargmax(beyond))
            raise InputError(f"position of {self.mapping.joint_names[k]} is {q[k]:.4g} rad; between {self._lower[k]:.4g} and "
                             f"{self._upper[k]:.4g} rad is allowed, and {self.margin:.3g} rad more are moved there")
        if beyond.any() and not np.isnan(beyond).any():
            self._counts["clipped"] += 1
        return np.where(np.isnan(q), q, inside)

    def _push(self, stamp: float, times: np.ndarray, q: np.ndarray, t: float, max_lead: float) -> ChunkResult:
        """Push to the executor. A single action is executed after its delay: a longer lead would be too late."""
        self._executor.max_lead = max_lead
        result = self._executor.push(stamp, q, times=times - stamp, now=t)
        if result.accepted:
            self._stamp = stamp
        return result

    def _paced(self, t: float) -> float:
        """Return the nominal time of an action: actions come at an even rate, with jitter."""
        last = self._actions[-1][0] - self.delay if self._actions else -math.inf
        interval = t - last
        if abs(interval - self._interval) < 0.6 * self._interval:
            stamp = last + self._interval + 0.2 * (interval - self._interval)
            self._interval += 0.1 * (interval - self._interval)
        else:
            stamp, self._interval = max(t, last + 0.3 * self._interval), self.period
        return max(stamp, self._stamp + 1e-6)

    def _continued(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Return times and positions of the actions that have not passed, continued to rest.

        The continuation is replaced by the next actions before it begins. It leaves room for a motion that is behind, or far
        away, to join the actions later.
        """
        times, points = np.array([at for at, _ in self._actions]), np.array([q for _, q in self._actions])
        ahead = max(1, int((times > t + self._executor.lead).sum()))
        after = self.period * np.arange(1, math.ceil(CONTINUED / self.period) + 1)[:, None]
        velocity, acceleration = self._ending(times, points)
        coasting = SLOWER * (1.0 - np.exp(-after / SLOWER))
        bending = STEADIER * STEADIER * (1.0 - (1.0 + after / STEADIER) * np.exp(-after / STEADIER))
        continued = points[-1] + velocity * coasting + acceleration * bending
        continued = np.clip(continued, self._lower, self._upper)
        return np.concatenate((times[-ahead:], times[-1] + after[:, 0])), np.concatenate((points[-ahead:], continued))

    def _ending(self, times: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return velocity and acceleration (n,) at the last action: of the parabola nearest to the last few.

        The next action is then about where the continuation begins: a motion that turns round needs no bridge to it.
        """
        x, recent = times[-KEPT:] - times[-1], points[-KEPT:]
        if len(x) < 2 or -x[0] >= 2.0 * KEPT * self.period:
            return np.zeros(points.shape[1]), np.zeros(points.shape[1])
        powers = x[:, None] ** np.arange(min(len(x), 3))
        found = np.linalg.lstsq(powers, recent, rcond=None)[0]
        return found[1], 2.0 * found[2] if len(found) > 2 else np.zeros(points.shape[1])

    def _is_of_chunk(self, q: np.ndarray) -> bool:
        """Return whether a position is on the polygon of one of the last two chunks."""
        for chunk in self._chunks:
            start, way = chunk[:-1], np.diff(chunk, axis=0)
            along = ((q - start) * way).sum(axis=1) / np.maximum((way * way).sum(axis=1), 1e-30)
            nearest = start + np.clip(along, 0.0, 1.0)[:, None] * way
            if len(way) and np.abs(q - nearest).max(axis=1).min() <= SAME * max(1.0, float(np.abs(chunk).max())):
                return True
        return False

    def _restart(self, t: float) -> None:
        q, sent, offset = self._sent_q, self.sent, self._offset
        self._executor.reset(np.clip(q, self._lower, self._upper), t)
        self._clear(t)
        self.sent, self._sent_q, self._offset = sent, q, offset
        if self._is_stopped:
            self._executor.stop(t)

    def _unprotected(self, t: float) -> dict[str, float]:
        """Return the values of unprotected motors: as late as the protected motion is behind the policy."""
        if not self._others:
            return {}
        at = t - self._executor.diagnostics().delay
        while len(self._others) > 2 and self._others[1][0] < at:
            self._others.popleft()
        times = [time for time, _ in self._others]
        found = [float(np.interp(at, times, column)) for column in zip(*(row for _, row in self._others), strict=True)]
        return {key: value for key, value in zip(self.mapping.unprotected, found, strict=True) if math.isfinite(value)}

    def _counted(self, result: ChunkResult, t: float) -> ChunkResult:
        if result.accepted:
            self._counts["accepted"] += 1
        else:
            self._count(result.reason, result.message, t)
        return result

    def _count(self, reason: str, message: str, t: float) -> None:
        self._counts[reason] += 1
        if t - self._warned.get(reason, -math.inf) >= WARNING_PERIOD:
            self._warned[reason] = t
            logger.warning("%s (%d so far): %s", reason, self._counts[reason], message)
