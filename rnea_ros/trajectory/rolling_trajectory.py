"""Rolling trajectory: a scaled motion that a controller executes by its own clock, replaced from a splice when it changes.

The controller gets the whole motion to rest as waypoints, and needs nothing more to come to rest on the path: it does not
matter when the next call comes, or whether one comes at all. The waypoints are those of a rollout of the scaler. When a
command is given (a pause, other limits), when the worker has found a better law, or when the horizon has moved on, the scaler
is set to the state that the motion will have a lead time ahead, gets the command, and is rolled out again: the new waypoints
begin there, at one of the old ones. A published trajectory begins in the past, with the old waypoints up to there. So a
controller that switches from one to the other at any time is on the same polynomial; provided it does so before the two
differ, the splice time. A trajectory that could not be published in time, because the process was suspended, is withdrawn.

A controller that gets positions, velocities and accelerations at some instants interpolates by a polynomial of degree five. It
passes all waypoints exactly, but between them its acceleration and jerk are its own, and with them torque and torque rate: far
from the plan where waypoints are far apart or on either side of a corner of the jerk. `adaptive_waypoints` therefore starts
with few, compares the quintics with the plan, and adds waypoints where they exceed it: at a corner, or in the middle.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from .constraints import Constraints
from .path import Path, hermite_spline
from .trajectory_scaler import Reference, RolloutState, Snapshot, TrajectoryScaler, joint_motion, play_law

Motion = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]
Quantities = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]

INTERVAL_END = 1.0 - 1e-6  # last sample in an interval, before the next one begins
TAYLOR = 1.0 / np.array([1.0, 1.0, 2.0, 6.0, 24.0])  # factors of derivatives in the powers of time


@dataclass(frozen=True)
class RollingOptions:
    """Options of rolling trajectories.

    max_lead_s       : largest lead time; it is doubled when it was too short [s]
    delivery_share   : share of the lead time that is left for the controller when a trajectory is computed
    deadline_share   : share of the lead time before the splice by which a trajectory must be published
    overlap_s        : old waypoints that are published again [s]
    max_horizon_s    : longest horizon; then the motion comes to rest [s]
    step_s           : tick of a rollout while the rate changes [s]
    max_steering_s   : time for which a rollout changes the rate; then the rate stays, and the rollout is due again [s]
    """

    max_lead_s: float = 2.0
    delivery_share: float = 0.5
    deadline_share: float = 0.25
    overlap_s: float = 0.5
    max_horizon_s: float = 30.0
    step_s: float = 2e-3
    max_steering_s: float = 1.0


@dataclass(frozen=True)
class WaypointOptions:
    """Options of adaptive waypoints.

    max_interval_s, min_interval_s : distance of waypoints [s]
    min_duration_s                 : duration of a motion that only rests [s]
    samples                        : comparisons in each interval
    position_tol                   : deviation of positions [rad, m]
    rest_share                     : of the largest peak of all quantities; smaller peaks count as that
    zero_peak                      : peak of a quantity that is zero throughout
    """

    max_interval_s: float = 0.1
    min_interval_s: float = 5e-4
    min_duration_s: float = 0.02
    samples: int = 8
    position_tol: float = 1e-4
    rest_share: float = 1e-3
    zero_peak: float = 1e-6


OPTIONS, WAYPOINT_OPTIONS = RollingOptions(), WaypointOptions()
MAX_EXCESS = 0.06  # share of its peak by which a quantity may exceed the plan in an interval
LEAD_S = 0.1  # between a request for a change and its splice time


# --------------------------------------------------------------------------------------------------------------- waypoints


class Waypoints(NamedTuple):
    """Waypoints at times (count,), q, qd, qdd (count, n), at rest at the end.

    excess : largest share of its peak by which a quantity exceeds the plan between the waypoints
    peaks  : peak of each quantity
    """

    times: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    excess: float
    peaks: np.ndarray


def quintic_motion(times: np.ndarray, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> Motion:
    """Return the motion of a controller: q, qd, qdd, qddd at times between the first and the last waypoint."""
    path = Path(times - times[0], hermite_spline(times - times[0], np.stack((q, qd, qdd), axis=1), 2))
    return lambda t: tuple(path(t - times[0]))


def adaptive_waypoints(motion: Motion, begin: float, end: float, corners: np.ndarray, quantities: Quantities,
                       peaks: np.ndarray | None = None, max_excess: float = MAX_EXCESS) -> Waypoints:
    """Return waypoints of a motion from `begin` to `end` [s], so close that the quintics between them hardly exceed it.

    corners    : times at which the jerk bends or jumps [s]
    quantities : (q, qd, qdd, qddd) (samples, n) each -> bounded quantities (samples, any): torques and their rates
    peaks      : of each quantity; the excess is a share of these, or of the motion's own where these are larger
    """
    options = WAYPOINT_OPTIONS
    count = max(int(np.ceil((end - begin) / options.max_interval_s)), 1)
    times = np.linspace(begin, max(end, begin + options.min_duration_s), count + 1)
    first, worst, intervals = True, 0.0, np.arange(len(times) - 1)
    while True:
        points = motion(times)
        a, b = times[intervals], times[intervals + 1]
        t = (a[:, None] + (b - a)[:, None] * np.linspace(0.0, INTERVAL_END, options.samples + 1)).ravel()
        planned, interpolated = motion(t), quintic_motion(times, *points[:3])(t)
        wanted, actual = (np.abs(quantities(*it)).reshape(len(a), options.samples + 1, -1).max(axis=1)
                          for it in (planned, interpolated))
        if first:  # all intervals are compared
            own = wanted.max(axis=0)
            own = own if peaks is None else np.maximum(peaks, own)
            peaks, first = np.maximum(own, options.rest_share * own.max() + options.zero_peak), False
        assert peaks is not None
        excess = ((actual - wanted) / peaks).max(axis=1)
        deviation = np.abs(planned[0] - interpolated[0]).reshape(len(a), -1).max(axis=1)
        split = ((excess > max_excess) | (deviation > options.position_tol)) & (b - a >= 2.0 * options.min_interval_s)
        worst = max(worst, float(excess[~split].max(initial=0.0)))
        if not split.any():
            return Waypoints(times, *points[:3], worst, peaks)
        cuts = np.array([_split_time(*ends, corners) for ends in zip(a[split], b[split])])
        before, times = times, np.sort(np.concatenate((times, cuts)))
        intervals = np.flatnonzero(~(np.isin(times[:-1], before) & np.isin(times[1:], before)))


def _split_time(a: float, b: float, corners: np.ndarray) -> float:
    """Return where to split an interval: at the corner nearest to its middle, or in the middle if there is none."""
    least = WAYPOINT_OPTIONS.min_interval_s
    first, last = corners.searchsorted((a + least, b - least))
    middle = 0.5 * (a + b)
    return float(min(corners[first:last], key=lambda t: abs(t - middle), default=middle))


# ------------------------------------------------------------------------------------------------------------------ rollout


class Rollout:
    """Motion that a scaler will make from time `begin` on if nothing new is requested, in pieces; at rest from `end` on.

    The scaler is ticked ahead of its time, in short steps while its rate changes. Once the rate is constant, one long piece
    leads to the end of the law, or rests for ever where the motion is paused. In each piece the law's time sigma is a quartic,
    so the motion is known at every instant, to rounding, and the scaler can be set to any of them.

    Requests to the worker are deferred: `due` is when the tick comes that would make one. Nor is the rate changed for longer
    than `max_steering_s`, where the limits do not let it reach its target: it stays as it is, which is verified, and `due` is
    when to continue. So a rollout ends at rest, even if its process dies.

    due     : when something is to be requested, or the rate is to be changed, again; infinite if never [s]
    command : command of the scaler for which it holds
    stop_at : when the motion begins to come to rest by itself, unless another rollout replaces this one before [s]
    """

    def __init__(self, scaler: TrajectoryScaler, begin: float = 0.0, stop_at: float = math.inf):
        """Roll out a scaler from its state at time `begin`; it ends in another state: call `set_state`."""
        self.path, self.begin, self.stop_at, self.command = scaler.plan.path, begin, stop_at, scaler.command
        self.due = math.inf
        self._states: list[RolloutState] = []
        starts: list[float] = []
        with scaler.rollout():
            self.end = self._roll_out(scaler, starts)
        self.starts = np.array(starts)
        scalings = [state.scaling for state in self._states]
        self._sigma = np.array([(x.sigma, x.k, x.kappa, x.w, x.slope) for x in scalings])  # at the starts, and derivatives
        laws = [state.playback.current.law for state in self._states]
        cuts = [0, *(k for k in range(1, len(laws)) if laws[k] is not laws[k - 1]), len(laws)]
        self._runs = [(laws[a], a, b) for a, b in pairwise(cuts)]  # pieces on one law

    def _roll_out(self, scaler: TrajectoryScaler, starts: list[float]) -> float:
        """Record start and state of each piece; return when the motion is at rest."""
        t = since = self.begin
        while not (scaler.done and starts):
            if t >= self.stop_at:
                scaler.stop()
                since = max(since, self.stop_at)
            steers = not scaler.time_scaling.steady or t - since < OPTIONS.max_steering_s
            if steers:
                scaler.decide()
            starts.append(t)
            self._states.append(scaler.rollout_state())
            if scaler.has_deferred or not (steers or scaler.is_settled):
                self.due = min(self.due, t)
            step = OPTIONS.step_s if scaler.time_scaling.steady else min(OPTIONS.step_s, scaler.time_scaling.cubic_left)
            if scaler.is_settled or not steers:
                left = scaler.time_left if scaler.time_left < math.inf else 0.0
                if not t < self.stop_at < t + left:
                    return t + left
                step = self.stop_at - t
            scaler.advance(step)
            t += step
        return t

    def set_state(self, scaler: TrajectoryScaler, t: float) -> None:
        """Set the scaler to its state at a time t from `begin` on [s]."""
        piece = int(np.searchsorted(self.starts, t, side="right")) - 1
        scaler.set_state(self._states[piece], t - self.starts[piece])

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return q, qd, qdd, qddd (samples, n) at times t (samples,) from `begin` on [s]."""
        rests, t = t > self.end, np.minimum(t, self.end)
        piece = np.searchsorted(self.starts, t, side="right") - 1
        sigma, k, kappa, w = self._scaling(piece, t)
        motion = np.zeros((4, len(t)))
        for law, first, last in self._runs:
            here = (first <= piece) & (piece < last)
            motion[:, here] = law(np.minimum(sigma[here], law.duration))
        motion[1:, rests] = 0.0
        s, *rates = play_law(motion, k, kappa, w)
        return joint_motion(self.path(s), *(rate[:, None] for rate in rates))

    def _scaling(self, piece: np.ndarray, t: np.ndarray) -> list[np.ndarray]:
        """Return sigma, k, kappa, w (samples,)."""
        powers = (t - self.starts[piece])[:, None] ** np.arange(5.0) * TAYLOR
        return [(powers[:, :5 - order] * self._sigma[piece, order:]).sum(axis=1) for order in range(4)]

    def corners(self) -> np.ndarray:
        """Return the times between begin and end at which the jerk bends or jumps: of the pieces, the laws, the path."""
        found, ends = [self.starts], np.append(self.starts[1:], self.end)
        for law, first, last in self._runs:
            pieces = np.arange(first, last)
            t = np.append(self.starts[first:last], ends[last - 1])
            sigma = np.append(self._sigma[first:last, 0], self._scaling(pieces[-1:], ends[last - 1:last])[0])
            corners = np.concatenate((law.corners, law.time_at(self.path.breaks)))
            found.append(np.interp(corners[(corners > sigma[0]) & (corners < sigma[-1])], sigma, t))
        times = np.unique(np.concatenate(found))
        return times[(times > self.begin) & (times < self.end)]


# ------------------------------------------------------------------------------------------------------- rolling trajectory


class _Previous(NamedTuple):
    """State before the newest rollout."""

    rollouts: list[Rollout]
    points: Waypoints
    is_fresh: bool
    scaler: Snapshot
    changes: list[Constraints]


class RollingTrajectory:
    """Rolling trajectory of a scaler; times are from the begin of the motion [s].

    quantities : see adaptive_waypoints; may be replaced, for another payload
    lead_time  : time between a request for a change and its splice time [s]
    points     : trajectory to publish
    is_fresh   : whether it is not published yet
    published  : whether anything was published
    """

    def __init__(self, scaler: TrajectoryScaler, quantities: Quantities, horizon: float = OPTIONS.max_horizon_s,
                 lead_time: float = LEAD_S):
        """Roll out a scaler. horizon: time until the motion would come to rest by itself [s]."""
        self.scaler, self.lead_time = scaler, lead_time
        self.quantities, self._horizon = quantities, min(horizon, OPTIONS.max_horizon_s)
        self._changes: list[Constraints] = []
        rollout = Rollout(scaler, 0.0, self._horizon)
        self._rollouts = [rollout]  # each holds until the next one begins
        self._previous: _Previous | None = None
        self._is_withdrawn = False
        self.points = self._waypoints(rollout)
        self.is_fresh, self.published = True, False
        rollout.set_state(scaler, 0.0)

    def change(self, constraints: Constraints) -> None:
        """Change to other limits, or another payload, on the same path, as soon as possible."""
        self._changes.append(constraints)

    @property
    def splice_time(self) -> float:
        """Time at which the trajectory leaves the one before [s]."""
        return self._rollouts[-1].begin

    @property
    def send_deadline(self) -> float:
        """Time by which a fresh trajectory must be published [s]."""
        return self.splice_time - OPTIONS.deadline_share * self.lead_time

    def mark_published(self) -> None:
        """Record that the fresh trajectory is published."""
        self.is_fresh, self.published = False, True

    def withdraw(self) -> None:
        """Record that the fresh trajectory was not published: the next replan continues the one before."""
        self.is_fresh, self._is_withdrawn = False, self._previous is not None

    def double_lead_time(self) -> None:
        """Double the lead time: a change was too late."""
        self.lead_time = min(2.0 * self.lead_time, OPTIONS.max_lead_s)

    def at(self, t: float) -> Reference:
        """Return the reference at a time [s]; the scaler is set to its state."""
        self._set_state(max(t, 0.0))
        return self.scaler.reference()

    def needs_replan(self, t: float) -> bool:
        """Return whether there is a reason for a new rollout at a time [s]."""
        last, scaler, splice = self._rollouts[-1], self.scaler, t + self.lead_time
        requested = bool(self._changes) or scaler.command != last.command or scaler.has_result
        ends_early = last.end > last.stop_at and splice > last.stop_at - 0.5 * self._horizon
        return requested or last.due <= splice or ends_early or self._is_withdrawn

    def replan(self, clock: Callable[[], float]) -> bool:
        """Roll out again from a splice time ahead; return whether that was in time, else the lead time is doubled.

        clock: returns the time since the begin of the motion [s]
        """
        if self._is_withdrawn:
            self._restore_previous()
        scaler, saved = self.scaler, self.scaler.snapshot()
        at = self._waypoint_from(clock() + self.lead_time)
        try:
            self._set_state(at)
            scaler.process_deferred()
            for constraints in self._changes:
                scaler.change(constraints)
            rollout = Rollout(scaler, at, at + self._horizon)
            points = self._waypoints(rollout, self.points.peaks)
            in_time = clock() + OPTIONS.delivery_share * self.lead_time <= at
        except BaseException:
            scaler.restore(saved)
            raise
        if in_time:
            self._previous = _Previous(self._rollouts, self.points, self.is_fresh, saved, [*self._changes])
            self._splice(rollout, points)
        else:
            scaler.restore(saved)
            self.double_lead_time()
        return in_time

    def _waypoints(self, rollout: Rollout, peaks: np.ndarray | None = None) -> Waypoints:
        found = adaptive_waypoints(rollout, rollout.begin, rollout.end, rollout.corners(), self.quantities, peaks)
        found.qd[-1] = 0.0  # exactly: some controllers require it
        return found

    def _waypoint_from(self, t: float) -> float:
        """Return the time of the first waypoint from t on; t itself, where the motion rests by then."""
        times = self.points.times
        return float(times[times.searchsorted(t)]) if t <= times[-1] else t

    def _splice(self, rollout: Rollout, points: Waypoints) -> None:
        """Join new waypoints to the old ones, and drop rollouts that are over or will never begin."""
        old, at = self.points, rollout.begin
        begin = at - self.lead_time - OPTIONS.overlap_s
        kept = slice(max(int(old.times.searchsorted(begin)) - 1, 0), int(old.times.searchsorted(at)))
        times, q, qd, qdd = (np.concatenate((before[kept], new)) for before, new in zip(old[:4], points[:4]))
        self.points = Waypoints(times, q, qd, qdd, max(old.excess, points.excess), points.peaks)
        ends = [*(known.begin for known in self._rollouts[1:]), at]
        self._rollouts = [*(known for known, end in zip(self._rollouts, ends, strict=True)
                            if end > begin and known.begin < at), rollout]
        self._changes.clear()
        self.is_fresh = True

    def _restore_previous(self) -> None:
        """Restore the state before the newest rollout, with the present command."""
        previous, self._previous, self._is_withdrawn = self._previous, None, False
        assert previous is not None
        self._rollouts, self.points, self.is_fresh = previous.rollouts, previous.points, previous.is_fresh
        self._changes[:0] = previous.changes
        self.scaler.restore(previous.scaler, keep_command=True)
        self.double_lead_time()

    def _set_state(self, t: float) -> None:
        number = max((k for k, rollout in enumerate(self._rollouts) if rollout.begin <= t), default=0)
        self._rollouts[number].set_state(self.scaler, t)
