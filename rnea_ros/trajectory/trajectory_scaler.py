"""Online trajectory scaler: the planned timing wherever the limits allow it, on the exact path, one step per control period.

A law that is inside the limits and as near to the plan as they let it (scaled_plan.py) is played at a rate that is changed
only by verified transitions (time_scaling.py): pause, resume, override and stop are target rates. Other limits or another
payload are handled outside the tick:

1. The new constraints are evaluated along the rest of the law, and speed_factor.py gives the largest constant rate inside
   them, with a small margin.
2. Braking to that rate begins at once, with a transition inside the new limits if there is one, else with the one that
   exceeds them least (braking.py); `change_excess` reports by how much. Each transition after it is verified with the new
   limits. As soon as the rate is small enough the law slowed to that rate takes over.
3. Then the rest of the motion is solved for anew, from a point a little ahead; of a long one first the next horizon, which is
   fast. Both laws pass that point with the same sd and sdd, so the new one takes over there without a step, at any rate.

Guaranteed, while model, limits and path stay as they are: every limit at every instant, the exact path, rest at the goal, and
that any motion that was begun can be continued, and can come to rest: in the worst case at the goal. Not guaranteed: a time to
come to rest, since where the fastest motion brakes with full torque nothing brakes harder; and anything about a robot that
differs from its model. After a sudden change to tighter limits or a heavier payload the motion may exceed them until step 2 is
done: while step 1 is computed, where the state at the change is outside, or where no transition is inside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, RneaError, in_words
from .constraints import Constraints, constraint_values
from .limit_check import check_limits, check_rest, largest_rate, steady_rate
from .path import Path
from .scaled_plan import ScaledPlan, follow_plan, replan_from, replan_horizon
from .time_law import TimeLaw
from .time_optimal import Progress
from .time_scaling import NO_EXCESS, CoefficientTable, Excess, TimeScaling, transition_time

LEAD_S = 0.4  # of law time between the request of a new law and its beginning; longer once that was not enough
LEAD_MARGIN = 1.5  # times the time that solving took last time
FIRST_TABLE_S = 1.0  # of law time that a table covers where the motion is to begin at once
TABLE_S = 4.0  # of law time that a table from a worker covers; ticks extend it
SLOWED_LEVEL = 0.98  # share of the limits that a law may use from which another one is to be solved for


# --------------------------------------------------------------------------------------------------------------- reference


class Reference(NamedTuple):
    """Reference at one instant: time since the start, joints (n,), path, rate of the time scaling, whether it is the last."""

    t: float
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    s: float
    sd: float
    sdd: float
    sddd: float
    rate: float
    done: bool


def joint_motion(derivatives: Any, sd: Any, sdd: Any, sddd: Any) -> tuple[Any, Any, Any, Any]:
    """Return q, qd, qdd, qddd by the chain rule, from q, q', q'', q''' and the motion along the path."""
    q, q1, q2, q3 = derivatives
    return q, q1 * sd, q2 * (sd * sd) + q1 * sdd, q3 * sd**3 + q2 * (3.0 * sd * sdd) + q1 * sddd


def play_law(motion: Any, k: Any, kappa: Any, w: Any) -> tuple[Any, Any, Any, Any]:
    """Return s, sd, sdd, sddd by the chain rule, for a law at s, v, a, u that is played at a rate k."""
    s, v, a, u = motion
    return s, v * k, a * k * k + v * kappa, (u * k * k + 3.0 * a * kappa) * k + v * w


def reference_at(path: Path, law: TimeLaw, scaling: TimeScaling, t: float, done: bool) -> Reference:
    """Return the reference at the present state of the time scaling."""
    s, sd, sdd, sddd = play_law(law.at(scaling.sigma), scaling.k, scaling.kappa, scaling.w)
    return Reference(t, *joint_motion(path.at(s), sd, sdd, sddd), s, sd, sdd, sddd, scaling.k, done)


# --------------------------------------------------------------------------------------------------------- work of a worker


class Assessment(NamedTuple):
    """Current law under new constraints.

    factor : largest constant rate inside them
    table  : coefficients to verify transitions with
    slower : where factor < 1, the law at that rate, with its coefficients
    """

    factor: float
    table: CoefficientTable
    slower: tuple[ScaledPlan, CoefficientTable] | None


class Handover(NamedTuple):
    """Motion that shares the current law up to its time `at` [s], and differs from there on.

    whole : whether it is new to its end, or for a horizon behind which it is the current motion again
    """

    at: float
    motion: ScaledPlan
    table: CoefficientTable
    whole: bool


def assess(constraints: Constraints, current: ScaledPlan, sigma: float, progress: Progress | None = None) -> Assessment:
    """Assess a motion from its time sigma on under new constraints. Longer than a tick; a worker may be another process.

    Raises InputError where gravity alone exceeds a limit, and where the motion has ended.
    """
    if sigma >= current.law.duration:
        raise InputError("the motion is at its end: other limits are for the next one")
    check_rest(constraints, SLOWED_LEVEL, float(current.law.at(sigma)[0]))
    table = CoefficientTable(constraints, current.law, sigma, TABLE_S)
    rest = current.law.segment(sigma, current.law.duration)
    check = check_limits(constraints, rest, SLOWED_LEVEL)
    factor = largest_rate(check.polynomials, SLOWED_LEVEL, constraints.offset[check.constraint])
    if factor >= 1.0:
        return Assessment(1.0, table, None)
    factor *= 1.0 - 1e-12
    slower = current.slower(factor)
    return Assessment(factor, table, (slower, CoefficientTable(constraints, slower.law, sigma / factor, TABLE_S)))


def next_law(constraints: Constraints, current: ScaledPlan, at: float, plan: ScaledPlan, catch_up: bool, offset: float,
             since: float = 0.0, horizon_first: bool = False, progress: Progress | None = None) -> Handover:
    """Return the motion nearest to the plan from the current one's time `at` on; see `replan_from`. Raises NoLaw.

    since         : present time of the current motion [s]
    horizon_first : of a long motion replan the next horizon only; see `replan_horizon`
    progress      : may raise NoLaw to cancel
    """
    early = replan_horizon(constraints, current, at, plan, catch_up, offset, progress) if horizon_first else None
    motion = early or replan_from(constraints, current, at, plan, catch_up, offset, progress)
    return Handover(at, motion, CoefficientTable(constraints, motion.law, since, at - since + TABLE_S), early is None)


# ------------------------------------------------------------------------------------------------------------------- scaler


class ScalerStatus(NamedTuple):
    """Status for users: delay behind the plan, pauses excluded [s]; share of the planned speed; the most used limit."""

    delay: float
    speed: float
    utilization: float
    limit: str
    message: str


@dataclass
class Command:
    """Commanded playback: share of the speed, hold on the path, stop on the path."""

    override: float = 1.0
    hold: bool = False
    stop: bool = False


@dataclass
class PlaybackState:
    """State that ticks change, besides the time scaling.

    t             : time since the start [s]
    constraints   : constraints in force
    current       : law that is played
    waited        : time for pauses and overrides [s]
    max_rate      : largest rate inside new limits, until the rate has come down to it
    assessed      : constraints with their assessment, for the next tick
    slower        : slower law that waits for a rate small enough
    handover      : law that waits for its point
    excess        : excess of the newest limits
    lead          : law time between the request of a law and its beginning [s]
    horizon_first : whether the next horizon is replanned first
    deferred      : request to the worker that a tick of a rollout would have made
    """

    constraints: Constraints
    current: ScaledPlan
    t: float = 0.0
    waited: float = 0.0
    max_rate: float = 1.0
    assessed: tuple[Constraints, Assessment] | None = None
    slower: tuple[ScaledPlan, CoefficientTable] | None = None
    handover: Handover | None = None
    excess: Excess = NO_EXCESS
    lead: float = LEAD_S
    horizon_first: bool = True
    deferred: Callable[[], None] | None = None


class RolloutState(NamedTuple):
    """State of a scaler at the begin of a tick of a rollout."""

    scaling: TimeScaling
    playback: PlaybackState


class Snapshot(NamedTuple):
    """Everything of a scaler that can change, to be restored."""

    scaling: TimeScaling
    playback: PlaybackState
    command: Command
    requested: list[Constraints]
    job: _Job | None
    is_unsolved: bool
    messages: tuple[str, str]


@dataclass(eq=False)
class _Job:
    """Work of a worker; a tick calls `on_result` with its result or `on_error` with its error."""

    work: Callable[[], Any]
    on_result: Callable[[Any], None]
    on_error: Callable[[BaseException], None]
    future: Future | None = None


class TrajectoryScaler:
    """Scaler that plays a plan inside limits, from rest to rest.

    plan         : the plan
    time_scaling : rate at which the law is played
    message      : why a request is not done
    change_error : why the constraints that were requested last cannot be kept
    """

    def __init__(self, constraints: Constraints, plan: ScaledPlan, catch_up: bool = True, at_once: bool = False,
                 worker: Executor | None = None, progress: Progress | None = None):
        """Make a scaler. Raises InputError where gravity alone exceeds a limit.

        catch_up : whether it may be faster than planned to make up for a delay; pauses and overrides shift the plan instead
        at_once  : begin with the plan slowed by a constant factor; the solved law takes over during the motion
        worker   : executor for what takes longer than a tick; None: in place, for simulations
        """
        if constraints.path is not plan.path:
            raise InputError("constraints on another path than the plan's: make them from plan.path")
        self.plan, self.catch_up = plan, catch_up
        self.message = ""
        self.change_error = ""
        self._command = Command()
        self._worker = worker
        self._job: _Job | None = None
        self._requested: list[Constraints] = []  # that are not assessed yet
        self._is_unsolved = False  # whether a law is still to be solved for
        self._is_rollout = False
        factor = 1.0
        if at_once:
            check_rest(constraints, SLOWED_LEVEL)
            factor = steady_rate(constraints, plan.law, SLOWED_LEVEL)
            current = plan.slower(factor) if factor < 1.0 else plan
        else:
            current = follow_plan(constraints, plan, catch_up, progress)
        self._state = PlaybackState(constraints, current)
        table = CoefficientTable(constraints, current.law, ahead=FIRST_TABLE_S if at_once else np.inf)
        self.time_scaling = TimeScaling(table, transition_time(constraints))
        if factor < 1.0:
            self._request_law()

    @property
    def t(self) -> float:
        """Time since the start [s]."""
        return self._state.t

    @property
    def constraints(self) -> Constraints:
        """Constraints in force."""
        return self._state.constraints

    @property
    def current(self) -> ScaledPlan:
        """Law that is played."""
        return self._state.current

    @property
    def change_excess(self) -> str:
        """Excess of the limits after their last change, for users; empty if no limit is exceeded."""
        return self._state.excess.describe()

    @property
    def excess(self) -> Excess:
        """Excess of the limits after their last change."""
        return self._state.excess

    @property
    def max_rate(self) -> float:
        """Largest rate inside new limits, until the rate has come down to it; else 1."""
        return self._state.max_rate

    # ------------------------------------------------------------------ commands

    @property
    def command(self) -> tuple[bool, bool, float]:
        """Commanded hold, stop, and override."""
        return self._command.hold, self._command.stop, self._command.override

    def pause(self) -> None:
        """Come to rest on the path, and wait."""
        self._command.hold = True

    def resume(self) -> None:
        """Continue after a pause."""
        self._command.hold = False

    def stop(self) -> None:
        """Come to rest on the path, and end there."""
        self._command.stop = True

    def override(self, share: float) -> None:
        """Play at a share of the speed, 0 to 1."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"override is {share}; it must be from 0 to 1")
        self._command.override = float(share)

    def change(self, constraints: Constraints) -> None:
        """Change to other limits or another payload on the same path.

        Where gravity alone would exceed a limit further on, nothing changes: InputError without a worker, else `message` and
        `change_error` say so. A robot that carries such a payload already should be stopped.
        """
        if constraints.path is not self.plan.path:
            raise InputError("constraints on another path; a motion keeps its path")
        self._requested.append(constraints)
        self.change_error = ""
        self._request_assessment()

    # ------------------------------------------------------------------ tick

    def tick(self, dt: float) -> Reference:
        """Return the reference dt [s] later. Does not wait for the worker, if there is one."""
        if not 0.0 < dt < np.inf:
            raise InputError(f"dt is {dt}; it must be a finite time above zero")
        self.decide()
        self.advance(dt)
        return self.reference()

    def decide(self) -> None:
        """Begin a tick: take over what is ready, and set the target rate."""
        self.collect()
        scaling, state = self.time_scaling, self._state
        if state.assessed is not None:
            constraints, (factor, table, slower) = state.assessed
            if scaling.steady and scaling.sigma == 0.0:
                scaling.table, state.excess = table, NO_EXCESS
            elif (excess := scaling.brake(table, factor)) is not None:
                state.excess = excess
            else:
                return  # braking begins later
            state.constraints, state.max_rate, state.slower, state.assessed = constraints, factor, slower, None
            if slower is None:
                self._request_law()
        if scaling.steady and scaling.sigma == 0.0:
            scaling.k = scaling.end = self._target_rate  # at rest at the start any rate is allowed
        if state.slower is not None and scaling.rebase(state.slower[1], state.max_rate):  # slow enough for the new limits
            state.max_rate, state.current, state.slower = 1.0, self._with_own_path(state.slower[0]), None
            self._request_law()
        if state.handover is not None:
            self._take_over(state.handover)
        scaling.set_target_rate(self._target_rate if state.slower is None else min(self._target_rate, scaling.end))

    def advance(self, dt: float) -> None:
        """Advance the motion by dt [s], as decided."""
        scaling, state = self.time_scaling, self._state
        scaling.advance(dt)
        state.t += dt
        state.waited += dt * max(0.0, 1.0 - scaling.k / state.max_rate)

    @property
    def _target_rate(self) -> float:
        return 0.0 if self._command.hold or self._command.stop else self._state.max_rate * self._command.override

    @property
    def done(self) -> bool:
        """True if the motion has ended."""
        scaling = self.time_scaling
        has_stopped = self._command.stop and scaling.steady and scaling.k == 0.0
        return has_stopped or scaling.sigma >= self._state.current.law.duration

    @property
    def due(self) -> float:
        """Planned time at which this point was due, pauses and overrides excluded [s]."""
        return self._state.t - self._state.waited

    def reference(self) -> Reference:
        """Return the present reference."""
        state = self._state
        return reference_at(self.plan.path, state.current.law, self.time_scaling, state.t, self.done)

    def status(self) -> ScalerStatus:
        """Return the status for users; takes longer than a tick."""
        now = self.reference()
        planned_time = float(self.plan.law.time_at([now.s])[0])
        planned_speed = self.plan.law.at(planned_time)[1]
        motion = (np.array([x]) for x in (now.sd, now.sdd, now.sddd))
        used = np.abs(constraint_values(self.constraints([now.s]), *motion)[0])
        most = int(used.argmax())
        speed = now.sd / planned_speed if planned_speed > 0.0 else np.nan
        delay, limit = self.due - planned_time, self.constraints.describe(most)
        return ScalerStatus(delay, speed, float(used[most]), limit, self.message)

    # ------------------------------------------------------------------ other limits, other laws

    def _with_own_path(self, motion: ScaledPlan) -> ScaledPlan:
        """Return a motion with this scaler's path: a worker in another process returns an equal copy."""
        return replace(motion, path=self.plan.path)

    def _submit(self, job: _Job) -> None:
        """Start a job; the job under way is dropped."""
        self.message, self._job = "", job
        if self._worker is not None:
            job.future = self._worker.submit(job.work)
            return
        try:
            found = job.work()
        except RneaError as error:
            job.on_error(error)
            raise
        job.on_result(found)

    def collect(self) -> None:
        """Take the result of the worker, if it is done. Does nothing in a rollout."""
        job = self._job
        if self._is_rollout or job is None or job.future is None or not job.future.done():
            return
        self._job = None
        try:
            found = job.future.result()
        except BaseException as error:  # any error: the law that is played is verified to its end
            job.on_error(error)
            self.message = in_words(error)
        else:
            job.on_result(found)

    def _request_assessment(self) -> None:
        """Request the assessment of the newest constraints under the current law; again when another law takes over."""
        if self._is_rollout:
            self._state.deferred = self._request_assessment
            return
        constraints = self._requested[-1]

        def on_result(new: Assessment) -> None:
            for table in (new.table, *(new.slower or ())[1:]):
                table.constraints = constraints
            self._requested.clear()
            self._state.handover, self._state.assessed, self._state.horizon_first = None, (constraints, new), True

        def on_error(error: BaseException) -> None:
            """Keep the present constraints, and resume what this request had interrupted."""
            self.change_error = self.change_error or in_words(error)
            self._requested.pop()
            if self._requested:
                self._request_assessment()
            elif self._is_unsolved:
                self._request_law()

        self._submit(_Job(partial(assess, constraints, self.current, self.time_scaling.sigma), on_result, on_error))

    def _request_law(self) -> None:
        """Request the motion nearest to the plan, from a point a little ahead. New constraints have priority."""
        if self._is_rollout:
            self._state.deferred = self._request_law
            return
        self._is_unsolved = True
        if self._requested:
            self._request_assessment()
            return
        sigma, requested_at, constraints = self.time_scaling.sigma, self.t, self.constraints
        at, offset = sigma + self._state.lead, self.due - sigma
        if at >= self.current.law.duration:
            return

        def on_result(found: Handover) -> None:
            found.table.constraints = constraints
            self._state.handover, self._is_unsolved = found, not found.whole
            self._state.lead = max(self._state.lead, LEAD_MARGIN * (self.t - requested_at))

        work = partial(next_law, constraints, self.current, at, self.plan, self.catch_up, offset, sigma,
                       self._state.horizon_first)
        try:
            self._submit(_Job(work, on_result, lambda error: None))
        except RneaError as error:
            self.message = str(error)

    def _take_over(self, found: Handover) -> None:
        """Switch to a new law, if the motion stays on the part shared with the current one until the rate is constant."""
        scaling, state = self.time_scaling, self._state
        if scaling.reach < found.at:
            state.handover, state.current, scaling.table = None, self._with_own_path(found.motion), found.table
            state.horizon_first = found.whole
            if not found.whole:
                self._request_law()
            elif self._requested:
                self._request_assessment()  # under the law that is played now
        elif scaling.sigma >= found.at:  # too late
            state.handover = None
            state.lead *= 2.0
            self._request_law()

    # ------------------------------------------------------------------ rollout

    @contextmanager
    def rollout(self) -> Iterator[None]:
        """Tick ahead of time: requests to the worker are deferred, its results not taken, and a stop is reset at the end."""
        stop, self._is_rollout = self._command.stop, True
        try:
            yield
        finally:
            self._command.stop, self._is_rollout = stop, False

    def rollout_state(self) -> RolloutState:
        """Return the present state, for `set_state`."""
        return RolloutState(copy(self.time_scaling), copy(self._state))

    def set_state(self, state: RolloutState, dt: float) -> None:
        """Set the state dt [s] after a state of a rollout."""
        self.time_scaling, self._state = copy(state.scaling), copy(state.playback)
        if dt > 0.0:
            self.advance(dt)

    def snapshot(self) -> Snapshot:
        """Return everything that can change, for `restore`."""
        return Snapshot(copy(self.time_scaling), copy(self._state), copy(self._command), list(self._requested), self._job,
                        self._is_unsolved, (self.message, self.change_error))

    def restore(self, saved: Snapshot, keep_command: bool = False) -> None:
        """Restore a snapshot. keep_command: but for the command."""
        self.time_scaling, self._state = saved.scaling, saved.playback
        self._requested, self._job, self._is_unsolved = saved.requested, saved.job, saved.is_unsolved
        self.message, self.change_error = saved.messages
        if not keep_command:
            self._command = saved.command

    def process_deferred(self) -> None:
        """Make the request that is deferred at this state, or take the result of the worker."""
        deferred, self._state.deferred = self._state.deferred, None
        if deferred is not None:
            deferred()
        else:
            self.collect()

    @property
    def has_result(self) -> bool:
        """True if the worker has finished the last request."""
        return self._job is not None and self._job.future is not None and self._job.future.done()

    @property
    def has_deferred(self) -> bool:
        """True if a request to the worker is deferred in this state."""
        return self._state.deferred is not None

    @property
    def is_settled(self) -> bool:
        """True if ticks change only the time until a new request arrives."""
        state = self._state
        waits = (state.assessed, state.slower, state.handover) != (None, None, None)
        return self.time_scaling.steady and self.time_scaling.k == self._target_rate and not waits

    @property
    def time_left(self) -> float:
        """Time until the end of the law at the present rate [s]."""
        k = self.time_scaling.k
        return (self.current.law.duration - self.time_scaling.sigma) / k if k > 0.0 else math.inf
