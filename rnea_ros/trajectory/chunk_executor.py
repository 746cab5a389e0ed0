"""Execution of action chunks of learned policies inside every limit of a robot, with a stop that is always possible.

A policy returns an action chunk: some tens of future joint positions, computed from an observation that is old when the chunk
arrives. Consecutive chunks overlap and disagree. `ChunkExecutor` keeps a *committed trajectory*: a motion from now to rest,
which keeps torque, torque rate, velocity (also where it depends on the position), acceleration, jerk, position and drive
limits at every instant. A chunk replaces it from a splice time on, `lead` ahead. Whenever no chunk arrives, or none can be
executed, the committed trajectory is played to its end, and the robot rests.

Method: a quintic smoothing spline (trajectory/chunk_spline.py) begins with the committed position, velocity, acceleration and
jerk at the splice, passes through the chunk's points at their times and brakes to rest behind the last one. Every limit is
evaluated along it, between samples too, in one call of the kernels that time scaling uses (trajectory/constraints.py): 0.3 ms
for 400 samples of seven joints. A trajectory without an excess is committed unchanged. Otherwise the attempt is changed where
the largest excess is:

    behind the chunk    a longer brake, then a brake that begins at an earlier point
    at the splice       the first points are skipped, and a bridge of least jerk joins the motion to later ones, as long as the
                        constant rate that keeps the limits there requires; where that is not enough, the motion stays behind
                        the policy by as much as it is
    elsewhere           smoothing, while the path stays within `tolerance` of the points; then points further apart in time, by
                        the largest constant rate that keeps the limits in closed form, reached by a ramp from the present one

After `max_attempts` the chunk is rejected as infeasible. Only complete, checked trajectories are committed. What served for
the last chunk is the second attempt for the next one, and the first where points are further apart than their joint can go
between them: then the first attempt is usually the last one, else the first or the second.

The time-law solver of trajectory/ is not used here: it starts from rest or with a given speed, not with an acceleration, and
takes 9 to 30 ms for 10 to 20 points. An attempt here takes about 1 ms (benchmark/chunks.md).

References: action chunks and temporal ensembling: Zhao et al. 2023 (ACT). Smoothing splines: Reinsch 1967.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..errors import InputError
from ..model.drives import MIN_VELOCITY
from ..model.tree import Limits
from ..robots.robot import Robot
from . import chunk_spline
from .chunk_spline import INTERPOLATION, Targets
from .constraints import Constraints, at_rate, limit_shares
from .limit_utilization import resolve_limits, velocity_limits
from .path import Path
from .path_dynamics import PathDynamics, link_side
from .speed_factor import smallest_factor

REASONS = ("accepted", "no_position", "stopped", "wrong_shape", "unknown_joint", "not_finite", "bad_times",
           "outside_position_limits", "step_too_large", "not_advancing", "too_old", "in_the_future", "infeasible",
           "not_in_time")


@dataclass(frozen=True)
class ChunkTuning:
    """Tuning of the search for a motion through the points of a chunk, and limits of what is accepted as one."""

    sample_spacing_s: float = 0.006  # between the samples at which limits are evaluated
    min_samples: int = 4  # of each polynomial
    max_samples: int = 8  # of each polynomial
    bend_share: float = 1.5 / 8.0  # of a second difference: a parabola exceeds its samples by an eighth; the rest is margin
    position_tol: float = 1e-9  # of half a joint's range: rounding of a joint that rests at its end
    agreement_tol: float = 1e-9  # rad, m; within which the committed trajectory passes through a point of a new chunk
    wavelengths_periods: tuple[float, ...] = (4.0, 6.0, 9.0, 14.0, 22.0)  # shorter waves are smoothed out, step by step
    max_catch_up_s: float = 0.8  # the longest bridge with which a motion that is behind catches up with the policy
    min_bridge_s: float = 0.1
    max_bridge_s: float = 1.6
    bridge_growth: float = 2.0  # factor from one bridge to the next, where none is estimated
    bridge_margin: float = 1.4  # factor from the estimated duration of a bridge to the one that is tried
    min_bridge_margin: float = 1.1
    max_bridge_margin: float = 2.0
    min_bridge_growth: float = 1.25  # least factor from one bridge to the next
    min_joint_rate: float = 0.02  # for which a bridge is estimated
    mean_to_peak: float = 1.5  # about, of the velocity of a bridge
    near_share: float = 0.7  # of the distance from where a chunk is now, within which a point that has passed is near
    joined_points: int = 2  # up to which limits bound the bridge before them
    settled_points: int = 5  # after which a mismatch at the splice has decayed (a spline forgets 0.43 from knot to knot)
    min_points: int = 4  # behind a bridge; else the points wait until the bridge ends
    recovery: float = 0.93  # of the stretch and the margin that served last, with which the next chunk is tried
    tails_s: tuple[float, ...] = (0.25, 0.4, 0.65, 1.0, 1.6)
    stop_tails_s: tuple[float, ...] = (0.08, 0.13, 0.2, 0.32, 0.5, 0.8, 1.25)
    ramp_s: float = 0.3  # in which the rate changes from the present one to another
    max_bridge_steps: int = 2  # slower points to which a bridge is tried
    bridge_slowing: float = 1.5  # power of the bridge's rate for them
    long_span_s: float = 0.3  # between two points, for the mean velocity between them
    short_span_s: float = 0.1
    faster_than_mean: float = 1.03  # about, the largest velocity within the short span
    min_smoothing_gain: float = 1.1  # of the rate by one step of smoothing; else the points are further apart in time
    min_stretch_step: float = 1.06
    max_stretch_step: float = 3.0
    kept_s: float = 1.0  # for which trajectories that were replaced can still be sampled
    min_waypoint_spacing_s: float = 1e-5
    lead_recovery: float = 0.98  # of a lead that was doubled, with each accepted chunk
    max_brakes: int = 3  # that are computed where a thread is suspended meanwhile
    min_period_s: float = 5e-4  # between points of a chunk
    max_points: int = 1000  # of a chunk: the spline has a knot at each
    max_time_s: float = 100.0  # between stamp and points
    max_period_ratio: float = 1000.0  # of times between points, for the spline's condition
    max_future_s: float = 1.0  # a stamp further ahead is that of another clock


TUNING = ChunkTuning()


@dataclass(frozen=True)
class ChunkOptions:
    """Options of ChunkExecutor.

    lead            : time between the arrival of a chunk and the splice, from which on it is executed [s]
    max_lead        : largest lead: it is doubled after a chunk that came too late for it, and returns slowly [s]
    max_age         : largest age of a chunk's observation [s]
    max_step        : largest step between two points of a chunk, and from the motion to the chunk [rad, m]
    tolerance       : largest distance of the motion from a chunk's points where limits bind; 0 smooths nothing [rad, m]
    max_stretch     : largest factor by which times between points grow where limits bind
    blending        : "newest": the newest chunk alone; "ensemble": weighted mean of overlapping chunks, as in ACT
    ensemble_decay  : weights are exp(-ensemble_decay * k), k = 0 for the oldest chunk
    ensemble_size   : largest number of chunks in the mean
    alignment       : "time": points are where the chunk has them; "offset": the distance between motion and chunk at the
                      splice is added to the points, and decays
    alignment_time  : time constant of that decay; an eighth is left after five of them [s]
    limit_share     : share of every limit that is used
    max_attempts    : number of trajectories that are tried for a chunk
    time_limit      : wall time after which no other one is tried [s]; None: half of the lead
    """

    lead: float = 0.05
    max_lead: float = 0.4
    max_age: float = 1.0
    max_step: float = 0.5
    tolerance: float = 0.02
    max_stretch: float = 6.0
    blending: str = "newest"
    ensemble_decay: float = 0.01
    ensemble_size: int = 8
    alignment: str = "time"
    alignment_time: float = 0.1
    limit_share: float = 0.999
    max_attempts: int = 6
    time_limit: float | None = None

    def __post_init__(self) -> None:
        for name, allowed in (("blending", ("newest", "ensemble")), ("alignment", ("time", "offset"))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} is {getattr(self, name)!r}; it must be {allowed[0]!r} or {allowed[1]!r}")
        for name in ("lead", "max_lead", "max_age", "max_step", "alignment_time", "ensemble_size", "max_attempts"):
            if not 0.0 < getattr(self, name) < math.inf:
                raise InputError(f"{name} is {getattr(self, name)}; it must be a finite number above zero")
        if not self.max_stretch >= 1.0 or not 0.0 < self.limit_share <= 1.0 or not self.tolerance >= 0.0:
            raise InputError(f"max_stretch is {self.max_stretch}, limit_share {self.limit_share}, tolerance {self.tolerance}; "
                             "at least 1, a number above 0 up to 1, and at least 0 are needed")


@dataclass(frozen=True)
class ChunkResult:
    """Outcome of a chunk.

    reason      : "accepted", or why it was rejected: one of REASONS
    message     : the same in a sentence
    splice_time : time from which on the chunk is executed [s]
    delay       : time by which the motion is behind the chunk at its last point [s]
    stretch     : factor between times of the motion and times of the chunk behind the splice
    deviation   : largest distance of the motion from the points that are executed [rad, m]
    skipped     : number of points that are not executed: passed, bridged, or left out for the brake
    binding     : limit that prevented a faster or closer motion; "" if none did
    attempts    : number of trajectories that were tried
    """

    reason: str
    message: str = ""
    splice_time: float = math.nan
    delay: float = 0.0
    stretch: float = 1.0
    deviation: float = 0.0
    skipped: int = 0
    binding: str = ""
    attempts: int = 0

    @property
    def accepted(self) -> bool:
        """True if the chunk was accepted."""
        return self.reason == "accepted"


@dataclass(frozen=True)
class ChunkDiagnostics:
    """State of a ChunkExecutor at one time.

    counts          : number of chunks by reason
    slowed_share    : share of the accepted chunks that were stretched
    binding_limit   : the limit that bound last
    delay           : time by which the motion is behind the policy [s]
    observation_age : age of the observation that the motion follows [s]; NaN without any
    time_to_rest    : time until the committed trajectory ends [s]
    lead            : present lead [s]
    """

    counts: Mapping[str, int]
    slowed_share: float
    binding_limit: str
    delay: float
    observation_age: float
    time_to_rest: float
    lead: float


class _Segment(NamedTuple):
    """Trajectory that is committed from `start` on, until the next one starts.

    times, delays : delay of the motion behind the policy, at times of the motion
    stretch       : factor between times of the motion and of the policy behind the last ramp
    """

    start: float
    path: Path
    times: np.ndarray
    delays: np.ndarray
    stretch: float

    @property
    def end(self) -> float:
        return self.start + self.path.length

    def delay(self, t: float) -> float:
        return float(np.interp(t, self.times, self.delays))


class CommittedTrajectory(NamedTuple):
    """Committed trajectory of a ChunkExecutor at one time.

    stamps      : (n,) of the observations that its joints follow [s]; NaN of joints that follow none
    splice_time : time at which it leaves the trajectory that was passed on before [s]; infinite if it does not
    """

    segments: list[_Segment]
    stamps: np.ndarray
    splice_time: float

    def sample(self, t: float) -> np.ndarray:
        """Return position, velocity, acceleration and jerk (4, n) at time t [s]."""
        segments = self.segments
        k = len(segments) - 1
        while k > 0 and segments[k].start > t:
            k -= 1
        segment = segments[k]
        x = t - segment.start
        found = segment.path.at(x)
        if x >= segment.path.length or x < 0.0:
            found[1:] = 0.0
        return found

    def waypoints(self, begin: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return times (count,) from about `begin` to rest [s], and q, qd, qdd (count, n) there.

        Between two of them the trajectory is the polynomial of fifth degree that they determine: a controller that
        interpolates by these commands it exactly.
        """
        found = []
        for segment, until in zip(self.segments, [*(one.start for one in self.segments[1:]), math.inf], strict=True):
            knots = segment.start + segment.path.breaks
            knots = knots[knots < until - TUNING.min_waypoint_spacing_s]
            if until > begin:
                found.append(knots[max(int(np.searchsorted(knots, begin, side="right")) - 1, 0):])
        times = np.concatenate(found)
        motion = np.array([self.sample(t) for t in times.tolist()])
        motion[-1, 1:] = 0.0  # exactly: some controllers require it
        return times, motion[:, 0], motion[:, 1], motion[:, 2]


class _Chunk(NamedTuple):
    """Valid chunk: its stamp [s], times (count,) of the policy's clock [s], positions (count, n), usual period [s], and
    numbers of its joints; others continue their motion.
    """

    stamp: float
    times: np.ndarray
    positions: np.ndarray
    period: float
    joints: list[int]


@dataclass(frozen=True)
class _Attempt:
    """Parameters of one attempt at a trajectory.

    delay     : of the motion behind the policy at the splice [s]
    stretch   : factor of times behind the ramp
    bridge    : time that is left to a bridge from the motion to the points [s]
    smoothing : number of the wavelength; 0: none
    tail      : number of the brake's duration
    dropped   : number of points at the end that are left out
    waits     : whether all points wait until the bridge ends, and none is skipped
    inset     : distance from the ends of joints to which points are moved [rad, m]
    """

    delay: float = 0.0
    stretch: float = 1.0
    bridge: float = 0.0
    smoothing: int = 0
    tail: int = 1
    dropped: int = 0
    waits: bool = False
    inset: float = 0.0


@dataclass(frozen=True)
class _Rates:
    """Constant rates at which limits are kept that a trajectory exceeds.

    t           : (samples,) times [s]
    times       : of the points that it goes through [s]; None: of none
    beyond      : (samples, constraints) whether a limit is exceeded
    polynomials : (samples, constraints, 4) of the rate
    share       : of the limits that is used
    is_speed    : (constraints,) whether a limit is one of velocity
    """

    t: np.ndarray
    times: np.ndarray | None
    beyond: np.ndarray
    polynomials: np.ndarray
    share: float
    is_speed: np.ndarray

    def at_splice(self) -> float:
        """Return the largest rate where the motion joins the points."""
        return self._rate(None if self.times is None else self.t < self.times[min(TUNING.joined_points, len(self.times) - 1)])

    def along(self) -> float:
        """Return the largest rate along the points."""
        return self._rate(self._is_along())

    def of_speeds(self) -> float:
        """Return the largest rate along the points for limits of velocity, which smoothing does not help to keep."""
        return self._rate(self._is_along(), self.is_speed)

    def _is_along(self) -> np.ndarray | None:
        if self.times is None:
            return None
        return (self.t >= self.times[min(TUNING.settled_points, len(self.times) - 1)]) & (self.t <= self.times[-1])

    def _rate(self, samples: np.ndarray | None, constraints: np.ndarray | None = None) -> float:
        chosen = self.beyond if samples is None else self.beyond & samples[:, None]
        chosen = chosen if constraints is None else chosen & constraints
        return smallest_factor(self.polynomials[chosen] / self.share, 1.0)


class _Excess(NamedTuple):
    """Largest excess along a trajectory.

    t         : time of it [s]
    limit     : what is exceeded
    overshoot : of a position, beyond the end of the joint [rad, m]
    is_speed  : whether the largest excess is of a velocity
    rates     : rates at which the limits are kept that are exceeded; None: of positions alone
    """

    t: float
    limit: str
    overshoot: float = 0.0
    is_speed: bool = False
    rates: _Rates | None = None

    @property
    def rate(self) -> float:
        """Largest constant rate at which every limit is kept along the points."""
        return self.rates.along() if self.rates else 1.0

    @property
    def joint_rate(self) -> float:
        """Largest constant rate at which every limit is kept where the motion joins the points."""
        return self.rates.at_splice() if self.rates else 1.0

    @property
    def speed_rate(self) -> float:
        """Largest constant rate along the points at which limits of velocity are kept."""
        return self.rates.of_speeds() if self.rates else 1.0


class ChunkExecutor:
    """Executor of action chunks inside the limits of a robot.

    All times are in seconds of one clock. Positions are in the order of `joint_names` [rad, m]. Call `reset` first, then
    `push` with every chunk and `sample` at the rate of the controller. Methods may be called from several threads: `sample`
    never waits for a computation, and no trajectory is replaced at a time that was sampled already.

    max_lead : largest lead [s]; may be changed
    """

    def __init__(self, robot: Robot, limits: Limits | None = None, options: ChunkOptions | None = None):
        """Create an executor without a motion.

        robot  : any robot that time scaling serves; its payloads count
        limits : limits of the joints; None: those of the robot. Drive limits are those of the robot
        Raises InputError where the robot cannot be served, or not one limit is known.
        """
        self.options = options or ChunkOptions()
        self._lead, self.max_lead = self.options.lead, max(self.options.max_lead, self.options.lead)
        self._editing, self._sampling = threading.RLock(), threading.Lock()
        self._share = 1.0
        self._use(robot, limits)
        self._segments: list[_Segment] = []
        self._stamps = np.full(self.robot.n, math.nan)
        self._passed_on = CommittedTrajectory([], self._stamps, math.inf)
        self._splice_time = math.inf
        self._last: _Chunk | None
        self._chunks: deque[_Chunk] = deque(maxlen=self.options.ensemble_size)
        self._counts: Counter[str] = Counter()
        self._slowed, self._now, self._binding = 0, -math.inf, ""
        self._sampled = -math.inf  # latest time that was sampled
        self._stopped = False
        self._warm, self._margin, self._last, self._mismatched = _Attempt(), TUNING.bridge_margin, None, 0.0
        self._warm_up()

    def _use(self, robot: Robot, limits: Limits | None) -> None:
        """Set robot and limits. Raises InputError, before anything is changed."""
        robot = link_side(robot)
        limits, dynamics = resolve_limits(robot, limits), PathDynamics(robot)
        constraints = _constraints(_rest(np.zeros(robot.n)), dynamics, limits)
        self.robot, self.limits, self.joint_names = robot, limits, robot.joint_names
        self._dynamics, self._constraints = dynamics, constraints
        self._is_speed = np.array(["velocity" in quantity for _, quantity in constraints.labels])
        lower, upper = (np.where(np.isnan(end), sign * np.inf, end) for end, sign in ((limits.lower, -1.0),
                                                                                     (limits.upper, 1.0)))
        self._lower, self._upper = lower, upper
        self._ranged = np.flatnonzero(np.isfinite(lower) & np.isfinite(upper) & (upper > lower))

    def _warm_up(self) -> None:
        """Compile all kernels now, not with the first chunk."""
        self._dynamics.compile()
        q = np.clip(np.zeros(self.robot.n), self._lower, self._upper)
        with contextlib.suppress(InputError):  # a linkage that cannot be closed there
            targets = Targets(0.1 * np.arange(1.0, 9.0), np.broadcast_to(q, (8, len(q))), 0.1)
            for tail in (TUNING.tails_s[0], TUNING.tails_s[-1]):
                path = chunk_spline.fit(np.stack((q, 0.0 * q, 0.0 * q, 0.0 * q)), targets, tail)
                self._excess(path)
                path.at(0.0)

    # ------------------------------------------------------------------ what a controller calls

    def reset(self, q: ArrayLike, t: float) -> None:
        """Rest at q (n,) from time t on. Chunks so far are forgotten. InputError where the robot cannot rest there."""
        q = np.array(q, dtype=float)
        if q.shape != (self.robot.n,) or not np.isfinite(q).all():
            raise InputError(f"q is {q.tolist()}; {self.robot.n} finite positions are needed")
        self._require_inside(q)
        path = _rest(q)
        excess = self._excess(path)
        if excess is not None:
            raise InputError(f"the robot cannot rest at the position given to reset: {excess.limit} is exceeded")
        with self._editing, self._sampling:
            self._segments, self._splice_time = [_Segment(t, path, np.array([t]), np.zeros(1), 1.0)], math.inf
            self._chunks.clear()
            self._now, self._stopped, self._warm, self._last = t, False, _Attempt(), None
            self._stamps = np.full(self.robot.n, math.nan)
            self._sampled = -math.inf
            self._passed_on = CommittedTrajectory(self._segments, self._stamps, math.inf)

    def set_robot(self, robot: Robot, limits: Limits | None = None) -> str:
        """Use another payload or other limits of the same joints from now on.

        Where the committed trajectory does not keep them, the robot brakes to rest. Returns the limit that no brake keeps
        either: the committed trajectory then goes on to its end, and the caller decides; "" otherwise. Raises InputError, and
        changes nothing, where the robot cannot be served.
        """
        with self._editing:
            if robot.joint_names != self.joint_names:
                raise InputError(f"the joints are {list(robot.joint_names)}; they must be {list(self.joint_names)}: make "
                                 "another executor for another robot")
            self._use(robot, limits)
            if not self._segments:
                return ""
            excess = self._excess_ahead()
            if not excess or self._brake():
                return ""
            return excess

    def set_speed(self, share: float) -> None:
        """Set the share of the policy's speed, above 0 up to 1, at which chunks from now on are executed at most."""
        if not 0.0 < share <= 1.0:
            raise InputError(f"share is {share}; it must be above 0 up to 1. Use stop to rest")
        self._share = float(share)

    def sample(self, t: float) -> np.ndarray:
        """Return position, velocity, acceleration and jerk of the committed trajectory at time t: (4, n)."""
        with self._sampling:  # a commit is before this time, or is seen here
            segments = self._segments
            self._now, self._sampled = max(self._now, t), max(self._sampled, t)
        return CommittedTrajectory(segments, self._stamps, math.inf).sample(t)

    def push(self, stamp: float, positions: ArrayLike, period: float | None = None, times: ArrayLike | None = None,
             joints: Sequence[str] | None = None, now: float | None = None) -> ChunkResult:
        """Execute a chunk, as far as the limits allow; return whether it was accepted, or why it was rejected.

        stamp     : time of the observation from which the chunk was computed; later than that of these joints' last chunk
        positions : (count, n), or a column for each of `joints`; other joints continue their committed motion
        period    : point k is for stamp + k period [s]; or
        times     : (count,) increasing; point k is for stamp + times[k] [s]
        joints    : names of the columns, in any order; None: all joints
        now       : present time; None: the latest time that was sampled
        """
        with self._editing:
            if now is not None:
                self._now = max(self._now, now)
            result = self._validated(stamp, positions, period, times, joints)
            if isinstance(result, _Chunk):
                result = self._execute(result)
            self._counts[result.reason] += 1
            if result.reason == "not_in_time":
                self.double_lead()
            elif result.accepted:
                self._lead = max(TUNING.lead_recovery * self._lead, self.options.lead)
                self._slowed += result.stretch > (1.0 + 1e-9) / self._share
            if result.binding:
                self._binding = result.binding
            return result

    def stop(self, t: float) -> float:
        """Brake to rest as soon as the limits allow, not along the chunks; return when the robot rests.

        Chunks are rejected until `resume` or `reset`.
        """
        self._require_started()
        with self._editing:
            self._now, self._stopped = max(self._now, t), True
            self._brake()
            return self._segments[-1].end

    def _brake(self) -> bool:
        """Commit the shortest brake that keeps the limits; return whether there is one, or the robot rests by then."""
        nothing = Targets(np.zeros(0), np.zeros((0, self.robot.n)), 0.1)
        for _ in range(TUNING.max_brakes):
            start = self._now + self.lead
            segment, state = self._at(start), self.sample_ahead(start)
            if start >= segment.end:
                return True
            for tail in TUNING.stop_tails_s:
                if start + tail >= segment.end:
                    return not self._excess_ahead()
                path = chunk_spline.fit(state, nothing, tail)
                if self._excess(path) is None:
                    if self._commit(_Segment(start, path, np.array([start]), np.array([segment.delay(start)]), 1.0)):
                        return True
                    break  # this thread was suspended meanwhile: brake later
            else:
                return False
        return False

    def _excess_ahead(self) -> str:
        """Return the limit that the rest of the committed trajectory exceeds; "" if none."""
        for segment, until in zip(self._segments, [*(one.start for one in self._segments[1:]), math.inf], strict=True):
            begin, end = max(self._now - segment.start, 0.0), min(until - segment.start, segment.path.length)
            if begin < end:
                excess = self._excess(_cut(segment.path, begin, end))
                if excess is not None:
                    return excess.limit
        return ""

    def resume(self) -> None:
        """Accept chunks again after `stop`."""
        self._stopped = False

    def sample_ahead(self, t: float) -> np.ndarray:
        """Return a sample as `sample` does, without setting the present time to t."""
        return CommittedTrajectory(self._segments, self._stamps, math.inf).sample(t)

    @property
    def lead(self) -> float:
        """Time between the arrival of a chunk and the splice [s]: longer than that of the options on a busy machine."""
        return min(self._lead, self.max_lead)

    def double_lead(self) -> None:
        """Double the lead, up to `max_lead`: a trajectory was too late for it."""
        self._lead = min(2.0 * self._lead, max(self.options.max_lead, self.options.lead))

    @property
    def is_stopped(self) -> bool:
        """True if chunks are rejected since `stop`."""
        return self._stopped

    @property
    def end_time(self) -> float:
        """Time at which the committed trajectory is at rest [s]."""
        self._require_started()
        return self._segments[-1].end

    def progress(self, t: float) -> tuple[float, float]:
        """Return the delay of the motion behind the policy at time t [s], and the factor of its times there."""
        segment = self._at(t)
        return segment.delay(t), segment.stretch

    # ------------------------------------------------------------------ for another process that plays the trajectory

    @property
    def has_changed(self) -> bool:
        """True if the committed trajectory differs from the one that was passed on."""
        return self._splice_time < math.inf

    def committed(self) -> CommittedTrajectory:
        """Return the committed trajectory, to be passed on to the process that plays it."""
        self._require_started()
        with self._sampling:
            return CommittedTrajectory(self._segments, self._stamps, self._splice_time)

    def mark_passed_on(self, trajectory: CommittedTrajectory) -> None:
        """Record that a trajectory was passed on before its splice time."""
        with self._sampling:
            self._passed_on = trajectory._replace(splice_time=math.inf)
            news = [segment.start for segment in self._segments if all(segment is not one for one in trajectory.segments)]
            self._splice_time = min(news, default=math.inf)

    def withdraw(self) -> None:
        """Return to the trajectory that was passed on: a newer one was too late for that, and is not executed."""
        with self._editing, self._sampling:
            self._segments, self._stamps, self._splice_time = self._passed_on

    def diagnostics(self) -> ChunkDiagnostics:
        """Return counts and delays at the latest time that was sampled."""
        self._require_started()
        accepted = self._counts["accepted"]
        return ChunkDiagnostics({reason: self._counts[reason] for reason in REASONS if self._counts[reason]},
                                self._slowed / accepted if accepted else 0.0, self._binding,
                                self._at(self._now).delay(self._now), self._now - float(np.fmax.reduce(self._stamps)),
                                max(0.0, self.end_time - self._now), self.lead)

    # ------------------------------------------------------------------ what is valid

    def _require_started(self) -> None:
        if not self._segments:
            raise InputError("the executor has no position: call reset(q, t) first")

    def _require_inside(self, q: np.ndarray) -> None:
        outside = (q < self._lower) | (q > self._upper)
        if outside.any():
            k = int(np.argmax(outside))
            raise InputError(f"position of {self.joint_names[k]} is {q[k]:.6g}; it must be between {self._lower[k]:.6g} and "
                             f"{self._upper[k]:.6g}")

    def _validated(self, stamp: float, positions: ArrayLike, period: float | None, times: ArrayLike | None,
                   joints: Sequence[str] | None) -> _Chunk | ChunkResult:
        """Return the chunk for all joints, or why it is rejected."""
        options, n = self.options, self.robot.n
        if not self._segments:
            return ChunkResult("no_position", "the position of the robot is unknown: call reset first")
        if self._stopped:
            return ChunkResult("stopped", "the executor is stopped: call resume first")
        columns = list(range(n))
        if joints is not None:
            unknown = [name for name in joints if name not in self.joint_names]
            if unknown or len(set(joints)) < len(joints):
                return ChunkResult("unknown_joint", f"joints are {list(joints)}; names of {list(self.joint_names)} are "
                                                    "needed, each once")
            columns = [self.joint_names.index(name) for name in joints]
        try:
            points = np.asarray(positions, dtype=float)
            offsets = None if times is None else np.asarray(times, dtype=float)
        except (TypeError, ValueError):
            return ChunkResult("wrong_shape", "positions or times are not arrays of numbers")
        if points.ndim != 2 or not points.size or points.shape[1] != len(columns):
            return ChunkResult("wrong_shape", f"positions have shape {points.shape}; (points, {len(columns) or n}) is needed")
        if len(points) > TUNING.max_points:
            return ChunkResult("wrong_shape", f"the chunk has {len(points)} points; at most {TUNING.max_points} are allowed")
        if not (np.isfinite(points).all() and np.isfinite(stamp)):
            return ChunkResult("not_finite", "positions or stamp are not finite")
        if offsets is None:
            if period is None or not 0.0 < period < math.inf:
                return ChunkResult("bad_times", f"period is {period}; a finite number above zero is needed, or times")
            offsets = np.arange(len(points)) * period
        elif offsets.shape != (len(points),) or not np.isfinite(offsets).all() or (np.diff(offsets) <= 0.0).any():
            return ChunkResult("bad_times", f"times have shape {offsets.shape}; ({len(points)},) increasing, finite numbers "
                                            "are needed")
        if problem := _times_problem(offsets):
            return ChunkResult("bad_times", problem)
        outside = (points < self._lower[columns]) | (points > self._upper[columns])
        if outside.any():
            row, column = np.argwhere(outside)[0]
            k = columns[column]
            return ChunkResult("outside_position_limits", f"point {row}: {self.joint_names[k]} is {points[row, column]:.6g}; "
                               f"it must be between {self._lower[k]:.6g} and {self._upper[k]:.6g}")
        steps = np.abs(np.diff(points, axis=0))
        if steps.size and steps.max() > options.max_step:
            row, column = np.unravel_index(int(steps.argmax()), steps.shape)
            return ChunkResult("step_too_large", f"{self.joint_names[columns[column]]} moves by {steps.max():.4g} from point "
                                                 f"{row} to the next one; max_step is {options.max_step:.4g}")
        latest = float(np.fmax.reduce(self._stamps[columns]))  # of other joints another policy may send chunks
        if stamp <= latest:
            return ChunkResult("not_advancing", f"stamp {stamp:.6f} is not later than that of the chunk before, {latest:.6f}")
        if stamp > self._now + TUNING.max_future_s:
            return ChunkResult("in_the_future", f"stamp is {stamp - self._now:.3g} s ahead of the present time: another clock")
        times_of_policy = stamp + offsets
        age, ahead = self._now - stamp, times_of_policy[-1] - self._now
        if age > options.max_age:
            return ChunkResult("too_old", f"the observation is {age:.3g} s old; max_age is {options.max_age:.3g}")
        if ahead <= self.lead:
            return ChunkResult("too_old", f"the last point is {ahead:.3g} s ahead, and the lead is {self.lead:.3g}: send more "
                                          "points, or later times")
        if len(columns) < n:
            points = self._completed(times_of_policy, points, columns)
        elif joints is not None:
            points = points[:, np.argsort(columns)]
        return _Chunk(float(stamp), times_of_policy, points,
                      float(np.median(np.diff(offsets))) if len(offsets) > 1 else 0.1, columns)

    def _completed(self, times: np.ndarray, points: np.ndarray, columns: list[int]) -> np.ndarray:
        """Add the committed motion of the other joints."""
        last = self._segments[-1]
        found = last.path(times - last.start)[0].copy()
        found[:, columns] = points
        return found

    # ------------------------------------------------------------------ what is executed

    def _execute(self, chunk: _Chunk) -> ChunkResult:
        """Commit a trajectory for a valid chunk, or return why there is none."""
        options, began = self.options, time.perf_counter()
        splice, agreed = self._splice(chunk)
        segment, state = self._at(splice), self.sample_ahead(splice)
        points = self._blended(chunk)
        if options.alignment == "offset":
            here = np.array([np.interp(splice, chunk.times, column) for column in points.T])
            x = np.maximum(chunk.times - splice, 0.0) / options.alignment_time
            decay = (1.0 + x + 0.5 * x * x) * np.exp(-x)  # begins without a slope or a curvature
            points = np.clip(points + (state[0] - here) * decay[:, None], self._lower, self._upper)
        far = self._distance(chunk, state[0], splice)
        if far > options.max_step:
            return ChunkResult("step_too_large", f"the chunk is {far:.4g} from the motion and from the chunk before; "
                                                 f"max_step is {options.max_step:.4g}")
        self._last = chunk
        behind = self._behind(chunk, points, state[0], splice)
        mismatch = self._mismatch(chunk, state, splice)
        least_bridge = float(np.nan_to_num(TUNING.mean_to_peak * mismatch / self.limits.velocity).max())
        # with bounded jerk the time grows with the cube root of the distance
        warm_bridge = self._warm.bridge * min(1.5, float(mismatch.max() / max(self._mismatched, 1e-6)) ** (1.0 / 3.0))
        search = _Search(behind, self._warm, options, float(chunk.times[-1] - splice), least_bridge, warm_bridge, self._margin,
                         not state[1:].any(), 1.0 / self._share)
        search.expect(self._possible_stretch(chunk.times, points, splice), chunk.period)
        time_limit = 0.5 * self.lead if options.time_limit is None else options.time_limit
        binding, count = "", 0
        while count < options.max_attempts:
            if time.perf_counter() - began > time_limit:
                return ChunkResult("not_in_time", f"no trajectory was found in {time_limit:.3g} s", binding=binding,
                                   attempts=count)
            attempt = search.attempt
            delay = attempt.delay + (attempt.bridge / attempt.stretch if attempt.waits else 0.0)
            times = _stretched(chunk.times - (splice - delay), segment.stretch if state[1:].any() else attempt.stretch,
                               attempt.stretch)
            gap = 0.25 * chunk.period if agreed else 0.5 * chunk.period
            gap = max(gap, attempt.bridge)
            first = min(int(np.searchsorted(times, gap)), len(times) - 1)
            if times[first] < gap:  # the last point waits: nothing else is left
                times = times + (gap - times[first])
            used = slice(first, len(times) - attempt.dropped)
            if used.stop <= used.start:
                break
            wanted = points[used]
            aims = np.clip(wanted, self._lower + attempt.inset, self._upper - attempt.inset) if attempt.inset else wanted
            targets = Targets(times[used], aims, chunk.period * attempt.stretch)
            smoothing = INTERPOLATION
            if attempt.smoothing:
                smoothing = (TUNING.wavelengths_periods[attempt.smoothing - 1] / (2.0 * math.pi)) ** 6
            path = chunk_spline.fit(state, targets, TUNING.tails_s[attempt.tail], smoothing)
            passed = path.coefficients[np.searchsorted(path.breaks, targets.times), 0]
            off = np.abs(passed - wanted).max(axis=1)
            deviation = float(off.max())
            if attempt.smoothing and deviation > options.tolerance:
                at_splice = bool(off[TUNING.settled_points:].max(initial=0.0) <= options.tolerance)
                search.too_smooth(at_splice, chunk.period * attempt.stretch)
                continue
            count += 1
            excess = self._excess(path, targets.times)
            if excess is None:
                path.at(0.0)  # the first call takes longer
                kept = np.concatenate(([splice], splice + targets.times))
                delays = np.concatenate(([delay], splice + targets.times - chunk.times[used]))
                if not self._commit(_Segment(splice, path, kept, delays, attempt.stretch)):
                    return ChunkResult("not_in_time", f"the trajectory was found {self._sampled - splice:.3g} s after its "
                                                      "splice time", binding=binding, attempts=count)
                self._stamps = self._stamps.copy()
                self._stamps[chunk.joints] = chunk.stamp
                self._warm, self._mismatched = attempt, float(mismatch.max())
                self._margin = search.margin
                self._chunks.append(chunk)
                return ChunkResult("accepted", "", splice, float(delays[-1]), attempt.stretch, deviation,
                                   len(times) - len(aims), binding, count)
            binding = excess.limit
            if not search.improve(excess, targets.times, chunk.period):
                break
        return ChunkResult("infeasible", f"no trajectory keeps the limits: {binding or 'no point is left'}", binding=binding,
                           attempts=count)

    def _splice(self, chunk: _Chunk) -> tuple[float, bool]:
        """Return the splice time, and whether the committed trajectory passes through the chunk's point there."""
        splice = self._now + self.lead
        first = int(np.searchsorted(chunk.times, splice))
        if first + 1 < len(chunk.times) and (later := float(chunk.times[first])) < splice + chunk.period:
            q = self.sample_ahead(later)[0]
            if later < self._at(later).end and np.abs(q - chunk.positions[first]).max() <= TUNING.agreement_tol:
                return later, True
        return splice, False

    def _distance(self, chunk: _Chunk, q: np.ndarray, splice: float) -> float:
        """Return the distance of a chunk from the motion, or from the last valid chunk where that is less [rad, m].

        Where the motion is behind the policy, any point that has passed counts; a policy that agrees with itself is followed
        from afar.
        """
        passed = int(np.searchsorted(chunk.times, splice, side="right")) + 1
        found = float(np.abs(chunk.positions[:passed] - q).max(axis=1).min())
        if self._last is not None and (common := chunk.times <= self._last.times[-1]).any():
            times = chunk.times[common]
            found = min(found, float(np.abs(chunk.positions[common] - _interpolated(times, self._last)).max()))
        return found

    def _behind(self, chunk: _Chunk, points: np.ndarray, q: np.ndarray, splice: float) -> float:
        """Return by how much the motion is behind the chunk: from its nearest point that has passed, where one is near [s]."""
        passed = int(np.searchsorted(chunk.times, splice, side="right"))
        if not passed:
            return 0.0
        distance = np.abs(points[:passed + 1] - q).max(axis=1)
        nearest = int(distance.argmin())
        if distance[nearest] > TUNING.near_share * distance[-1]:
            return 0.0
        return max(0.0, splice - float(chunk.times[nearest]))

    def _possible_stretch(self, times: np.ndarray, points: np.ndarray, splice: float) -> float:
        """Return the factor of times with which a chunk's points, from some on, are about possible, where they certainly are
        too fast at their times; else 0.

        A joint has its mean velocity somewhere between two points (mean value theorem), also where it passes by `tolerance`.
        Noise of neighbouring points, which is smoothed, does not count there: the two are TUNING.long_span_s apart.
        """
        first = int(np.searchsorted(times, splice)) + TUNING.settled_points
        times, points = times[first:], points[first:]
        if len(times) < 2:
            return 0.0
        spans = [min(max(1, round(span * (len(times) - 1) / float(np.ptp(times)))), len(times) - 1)
                 for span in (TUNING.long_span_s, TUNING.short_span_s)]
        allowed = self.options.limit_share * self.limits.velocity  # NaN where unknown
        far, near = (np.abs(points[k:] - points[:-k]) for k in spans)
        far_times, near_times = ((times[k:] - times[:-k])[:, None] for k in spans)
        if not ((far - 2.0 * self.options.tolerance) / far_times > allowed / self._share).any():
            return 0.0
        return TUNING.faster_than_mean * float(np.nan_to_num((near / near_times).max(axis=0) / allowed).max())

    def _mismatch(self, chunk: _Chunk, state: np.ndarray, splice: float) -> np.ndarray:
        """Return the distance (n,) of the motion, at its velocity, from the chunk's first point."""
        first = min(int(np.searchsorted(chunk.times, splice, side="right")), len(chunk.times) - 1)
        ahead = max(float(chunk.times[first]) - splice, 0.0)
        return np.abs(chunk.positions[first] - state[0] - ahead * state[1])

    def _blended(self, chunk: _Chunk) -> np.ndarray:
        """Return the chunk's positions, or the weighted mean with those of earlier chunks at the same times."""
        if self.options.blending == "newest" or not self._chunks:
            return chunk.positions
        total, weights = np.zeros_like(chunk.positions), np.zeros(len(chunk.times))
        for age, one in enumerate((*list(self._chunks)[1 - self.options.ensemble_size:], chunk)):
            inside = (chunk.times >= one.times[0] - 1e-9) & (chunk.times <= one.times[-1] + 1e-9)
            weight = np.exp(-self.options.ensemble_decay * age) * inside
            total += weight[:, None] * _interpolated(chunk.times, one)
            weights += weight
        return total / weights[:, None]

    def _at(self, t: float) -> _Segment:
        return next((segment for segment in reversed(self._segments) if segment.start <= t), self._segments[0])

    def _commit(self, new: _Segment) -> bool:
        """Replace the committed trajectory from the start of another one on; return whether that is not sampled yet."""
        with self._sampling:
            if self._sampled > new.start:
                return False
            kept = [segment for segment in self._segments if segment.start < new.start]
            followers = [*(segment.start for segment in kept[1:]), new.start]
            self._splice_time = min(self._splice_time, new.start)
            self._segments = [*(segment for segment, until in zip(kept, followers, strict=True)
                                if until > self._now - TUNING.kept_s), new]
            return True

    # ------------------------------------------------------------------ what the limits allow

    def _excess(self, path: Path, times: np.ndarray | None = None) -> _Excess | None:
        """Return the largest excess along a trajectory, between samples too; None where every limit is kept.

        times : of the points that it goes through [s]
        """
        h = np.diff(path.breaks)
        steps = min(max(math.ceil(float(np.median(h)) / TUNING.sample_spacing_s), TUNING.min_samples), TUNING.max_samples)
        t = np.append((path.breaks[:-1, None] + h[:, None] * (np.arange(steps) / steps)).ravel(), path.length)
        try:
            dynamics = self._dynamics.along(path)
            is_same = dynamics.terms is self._dynamics.terms  # else friction depends on the path, as of closed chains
            constraints = self._constraints.on(path, dynamics) if is_same else _constraints(path, dynamics, self.limits)
        except InputError as error:
            return _Excess(0.0, str(error))
        motion = path(t)
        polynomials = constraints.time_polynomials(motion)
        share = self.options.limit_share
        used = limit_shares(at_rate(np.moveaxis(polynomials, -1, 0), 1.0), constraints.offset)
        k = self._ranged
        lower, upper = self._lower[k], self._upper[k]
        ranged = np.abs(2.0 * motion[0][:, k] - (upper + lower)) / (upper - lower)
        reach = _between(np.concatenate((used / share, ranged - TUNING.position_tol), axis=1))
        sample, number = np.unravel_index(int(reach.argmax()), reach.shape)
        if reach[sample, number] <= 1.0:
            return None
        count = used.shape[1]
        if number >= count:
            joint = int(k[number - count])
            overshoot = float(0.5 * (reach[:, number].max() - 1.0) * (self._upper[joint] - self._lower[joint]))
            return _Excess(float(t[sample]), f"position of {self.joint_names[joint]}", overshoot)
        return _Excess(float(t[sample]), constraints.describe(int(number)), 0.0, bool(self._is_speed[number]),
                       _Rates(t, times, reach[:, :count] > 1.0, polynomials, share, self._is_speed))


class _Search:
    """Choice of the next attempt from the excess of the last one."""

    def __init__(self, behind: float, warm: _Attempt, options: ChunkOptions, ahead: float, least_bridge: float,
                 warm_bridge: float, margin: float, rests: bool, least_stretch: float = 1.0):
        """Create a choice.

        behind       : delay of the committed motion at the splice [s]
        warm         : attempt that served last
        ahead        : time left in the chunk [s]
        least_bridge : about the least time from the motion to the chunk [s]
        warm_bridge  : time that the bridge to the last chunk would take for the distance to this one [s]
        margin       : factor from the estimated duration of a bridge to the one that served last
        rests        : whether the robot rests at the splice
        least_stretch : of times, where chunks are to be executed more slowly
        """
        self._least_bridge, self._warm_bridge, self._rests = least_bridge, warm_bridge, rests
        self._margin = min(max(TUNING.recovery * margin, TUNING.min_bridge_margin), TUNING.max_bridge_margin)
        self._estimate = 0.0
        self._least_stretch = least_stretch
        self.attempt = _Attempt(tail=warm.tail, stretch=least_stretch, delay=behind if least_stretch > 1.0 else 0.0)
        self._behind, self._warm, self._options, self._ahead = behind, warm, options, ahead
        self._max_smoothing = len(TUNING.wavelengths_periods) if options.tolerance > 0.0 else 0
        self._first, self._rate_before, self._bridge_steps = True, 0.0, 0

    @property
    def margin(self) -> float:
        """Return the factor from the first estimate of a bridge's duration to the present one."""
        attempt = self.attempt
        if not attempt.bridge or not self._estimate or attempt.waits or attempt.stretch > self._least_stretch:
            return self._margin
        return attempt.bridge / self._estimate

    def expect(self, stretch: float, period: float) -> None:
        """Begin with what served for the last chunk, and at least this factor, where points are too fast without it."""
        if stretch <= self._least_stretch:
            return
        self._first = False
        warm = self._as_before(self._warm_bridge, period * self._least_stretch)
        stretch = min(max(warm.stretch, stretch), self._options.max_stretch * self._least_stretch)
        self.attempt = replace(warm, stretch=stretch, delay=self._behind)

    def too_smooth(self, at_splice: bool, period: float) -> None:
        """Change an attempt whose path is too far from the points: join them later, if only at the splice, else smooth less.

        A motion that is offset from the points bends them where it joins them.
        """
        attempt = self.attempt
        if at_splice and attempt.bridge < TUNING.max_bridge_s and self._can_bridge(longer := self._longer_bridge(), period):
            self.attempt = self._with_bridge(attempt, longer, period)
            return
        self._max_smoothing = attempt.smoothing - 1
        self.attempt = replace(self.attempt, smoothing=self._max_smoothing)

    def improve(self, excess: _Excess, times: np.ndarray, period: float) -> bool:
        """Change the attempt where the excess is; return whether there is anything left to change."""
        attempt, period = self.attempt, period * self.attempt.stretch
        first, self._first = self._first, False
        if excess.overshoot and excess.t < times[-1] + 1e-9 and attempt.inset < self._options.tolerance:
            inset = min(self._options.tolerance, max(2.0 * attempt.inset, 2.0 * excess.overshoot))
            self.attempt = replace(attempt, inset=inset)
            return True
        is_short = len(times) < TUNING.min_points  # the motion is a bridge and a brake, and a longer bridge makes both slower
        at_splice = is_short or excess.t < times[0] + 2.0 * period
        if excess.t >= times[0] and excess.t > times[-1] - 0.5 * period:
            is_changed = self._brake_otherwise(excess, len(times), period)
            if (is_changed and not is_short) or not at_splice:
                return is_changed
            attempt = self.attempt
        bridge = self._estimated_bridge(excess, float(times[0])) if at_splice else 0.0
        if first and (warm := self._as_before(bridge, period)) != attempt:
            self.attempt = warm
            return True
        speed_rate = excess.speed_rate
        if speed_rate < 1.0 and self._slow_down(speed_rate) and not at_splice:
            return True
        if at_splice:
            is_late = self._behind > 0.5 * period and attempt.delay < self._behind
            if is_late and (bridge > TUNING.max_catch_up_s or attempt.stretch > 1.0):
                self.attempt = replace(self.attempt, delay=self._behind, bridge=0.0)
                return True
            if attempt.bridge < TUNING.max_bridge_s and not (excess.is_speed and attempt.bridge > self._least_bridge):
                self.attempt = self._with_bridge(attempt, bridge, period)
                return True
        rate = excess.rate
        if at_splice and excess.is_speed and rate >= 1.0 and attempt.stretch > self._least_stretch:
            # the bridge alone is too fast: slower points are nearer; after some steps the next chunk is a better chance
            self._bridge_steps += 1
            return self._bridge_steps <= TUNING.max_bridge_steps and self._slow_down(excess.joint_rate**TUNING.bridge_slowing)
        if attempt.smoothing and rate < TUNING.min_smoothing_gain * self._rate_before:
            self._max_smoothing = attempt.smoothing  # the path itself is too fast, not only its noise
        elif attempt.smoothing < self._max_smoothing:
            self._rate_before = rate
            smoothing = min(attempt.smoothing + (1 if rate > 0.7 else 2), self._max_smoothing)
            self.attempt = replace(self.attempt, smoothing=smoothing)
            return True
        return self._slow_down(rate)

    def _as_before(self, bridge: float, period: float) -> _Attempt:
        """Return what served for the last chunk, a little faster; with a bridge, if it is not zero."""
        warm = self._warm
        stretch = max(self._least_stretch, TUNING.recovery * warm.stretch) if warm.stretch > 1.0 else self._least_stretch
        found = replace(self.attempt, delay=self._behind if stretch > 1.0 else 0.0, stretch=stretch,
                        smoothing=min(warm.smoothing, self._max_smoothing))
        if not bridge:
            return found
        if stretch > self._least_stretch:  # the estimate is that of faster points
            bridge = self._warm_bridge
        longest = (self._ahead + found.delay) * found.stretch - 1.01 * TUNING.min_points * period  # with which no point waits
        return self._with_bridge(found, min(bridge, longest) if longest > 0.0 else bridge, period)

    def _estimated_bridge(self, excess: _Excess, first: float) -> float:
        """Return the duration of the next bridge, where one that ended at time `first` [s] was too short.

        With the whole bridge at the constant rate that keeps the limits it would be longer by its inverse.
        """
        estimate = first / max(excess.joint_rate, TUNING.min_joint_rate)
        if not self._estimate:
            self._estimate = estimate
        return max(self._margin * estimate, TUNING.min_bridge_growth * max(first, self.attempt.bridge), self._least_bridge)

    def _longer_bridge(self) -> float:
        longer = max(TUNING.min_bridge_s, TUNING.bridge_growth * self.attempt.bridge, self._least_bridge)
        return min(longer, TUNING.max_bridge_s)

    def _can_bridge(self, bridge: float, period: float) -> bool:
        """Return whether points are left behind a bridge."""
        return bridge + TUNING.min_points * period <= (self._ahead + self.attempt.delay) * self.attempt.stretch

    def _with_bridge(self, attempt: _Attempt, bridge: float, period: float) -> _Attempt:
        """Return an attempt with this bridge; where too few points are left behind it, or a skipped way would have to be
        faster, points wait.
        """
        bridge = min(bridge, TUNING.max_bridge_s)
        left = (self._ahead + attempt.delay) * attempt.stretch
        waits = (self._rests and attempt.stretch > 1.0) or bridge + TUNING.min_points * period > left
        return replace(attempt, bridge=bridge, waits=waits)

    def _brake_otherwise(self, excess: _Excess, count: int, period: float) -> bool:
        attempt = self.attempt
        if not excess.overshoot and attempt.tail + 1 < len(TUNING.tails_s):
            self.attempt = replace(attempt, tail=attempt.tail + 1)
            return True
        dropped = max(1, math.ceil(0.5 * TUNING.tails_s[attempt.tail] / period), count // 6)
        if count - dropped < 2:
            return False
        self.attempt = replace(attempt, dropped=attempt.dropped + dropped)
        return True

    def _slow_down(self, rate: float) -> bool:
        attempt = self.attempt
        factor = min(max(1.03 / max(rate, 1e-3), TUNING.min_stretch_step), TUNING.max_stretch_step)
        stretch = min(attempt.stretch * factor, self._options.max_stretch * self._least_stretch)
        if stretch <= attempt.stretch:
            return False
        self.attempt = replace(attempt, stretch=stretch, delay=max(self._behind, attempt.delay))
        return True


def _constraints(path: Path, dynamics: PathDynamics, limits: Limits) -> Constraints:
    """Return all limits along a path, minus Coulomb friction. Raises InputError."""
    robot, velocity = dynamics.robot, velocity_limits(dynamics.robot, limits)
    return Constraints(path, dynamics, dynamics.limits(limits), robot.joint_names, dynamics.drives(),
                       robot.tree.model.efforts.commanded.contains,
                       None if velocity is None else lambda q, way: np.maximum(velocity(q, way), MIN_VELOCITY))


def _times_problem(offsets: np.ndarray) -> str:
    """Return what is wrong with the times of a chunk's points since its stamp [s]; "" if nothing is."""
    farthest = float(np.abs(offsets[[0, -1]]).max())
    if farthest > TUNING.max_time_s:
        return f"a point is {farthest:.4g} s from the stamp; at most {TUNING.max_time_s:g} s are allowed"
    if len(offsets) < 2:
        return ""
    closest, widest = float(np.diff(offsets).min()), float(np.diff(offsets).max())
    if closest < TUNING.min_period_s or widest > TUNING.max_period_ratio * closest:
        return (f"points are {closest:.3g} to {widest:.3g} s apart; at least {TUNING.min_period_s:g} s are needed, and at "
                f"most {TUNING.max_period_ratio:g} times the shortest")
    return ""


def _rest(q: np.ndarray) -> Path:
    coefficients = np.zeros((1, chunk_spline.SIZE, len(q)))
    coefficients[0, 0] = q
    return Path(np.array([0.0, 1e-3]), coefficients)


def _cut(path: Path, begin: float, end: float) -> Path:
    """Return a path from begin to end, from zero on."""
    breaks = np.concatenate(([begin], path.breaks[(path.breaks > begin) & (path.breaks < end)], [end]))
    piece = np.clip(np.searchsorted(path.breaks, breaks[:-1], side="right") - 1, 0, len(path.coefficients) - 1)
    x, size = breaks[:-1] - path.breaks[piece], path.coefficients.shape[1]
    shift = np.array([[math.comb(k, order) for k in range(size)] for order in range(size)])  # binomial theorem
    powers = x[:, None, None] ** np.maximum(np.arange(size) - np.arange(size)[:, None], 0)
    return Path(breaks - begin, (shift * powers) @ path.coefficients[piece])


def _interpolated(times: np.ndarray, chunk: _Chunk) -> np.ndarray:
    return np.stack([np.interp(times, chunk.times, column) for column in chunk.positions.T], axis=1)


def _stretched(x: np.ndarray, before: float, after: float) -> np.ndarray:
    """Return times of the motion since the splice from times x of the policy since then.

    The factor between both goes from `before` to `after` by a smooth step in TUNING.ramp_s seconds of the policy's time.
    """
    if before == after:
        return after * x
    u = np.clip(x / TUNING.ramp_s, 0.0, 1.0)
    return after * x + (before - after) * (TUNING.ramp_s * (u - u**3 + 0.5 * u**4) + np.minimum(x, 0.0))


def _between(samples: np.ndarray) -> np.ndarray:
    """Return what samples (count, limits) may reach between them: more by a share of the second differences."""
    bend = np.zeros_like(samples)
    bend[1:-1] = TUNING.bend_share * np.abs(samples[2:] - 2.0 * samples[1:-1] + samples[:-2])
    bend[:1], bend[-1:] = bend[1:2], bend[-2:-1]
    return samples + bend
