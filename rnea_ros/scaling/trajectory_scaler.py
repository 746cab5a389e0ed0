"""Online trajectory scaler: the planned timing wherever the limits allow it, never off the path, one step at a control rate.

A law that is inside the limits and as near to the plan as they let it (plan.py) is played at a rate that is changed only by
verified transitions (time_scaling.py): pause, resume, override and stop are rates that are wanted of it. Other limits or
another payload are dealt with off the tick:

1. The new constraints are evaluated along what is left of the law, and the closed form gives the largest constant rate inside
   them, with a little room.
2. Braking to that rate begins at once, with a transition inside the new limits if one of a family is. Else it is one that
   exceeds no limit by more than going on would, now or a little later, or the one that exceeds them least. Each transition
   after it is verified with the new limits as they are. As soon as the rate is small enough the law slowed to that rate takes
   over.
3. Then the rest of the motion is solved for anew, from a place a little ahead; of a long one first the next moment, which does
   not take long. Both laws pass that place with the same sd and sdd, so the new one takes over there without a step, whatever
   the rate is.

What is promised, while model, limits and path stay as they are: every limit at every instant, the exact path, rest at the
goal, and that whatever has been begun can be continued, so also that the motion can still come to rest: in the worst case at
the goal. What is not: a time to come to rest, since where the fastest motion brakes with full torque nothing brakes harder;
and anything about a robot that differs from its model. After a sudden change to tighter limits or a heavier payload the motion
may be outside of them until step 2 is done: where the state when the change comes is outside, or no transition is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, RneaError, in_words
from .feasibility import check_rest
from .lookahead import ROOM, Assessment, Handover, assess, next_law
from .plan import ScaledPlan, follow
from .profile import Progress, steady_factor
from .reference import Reference, reference
from .terms import Constraints, utilization
from .time_scaling import CoefficientTable, TimeScaling, horizon

LEAD = 0.4  # s of law time between asking for a new law and its beginning; longer once that was not enough
FIRST = 1.0  # s of law time, that there is a table for where the motion is to begin at once
SPARE = 1.5  # times the time that solving took last time


class ScalerStatus(NamedTuple):
    """delay: behind the plan, pauses aside [s]; speed: sd over the planned one here; utilization, limit: of the nearest."""

    delay: float
    speed: float
    utilization: float
    limit: str
    message: str


@dataclass(eq=False)
class _Job:
    """Work that takes longer than a tick, done by the worker; `then`, or where it failed `failed`, what a tick makes of it."""

    work: Callable[[], Any]
    then: Callable[[Any], None]
    failed: Callable[[BaseException], None]
    future: Future | None = None


class TrajectoryScaler:
    """Plays a plan inside limits, from rest to rest.

    catch_up : whether it may be faster than planned to make good a delay; pauses and overrides put off the plan and are none
    at_once  : begin with the plan slowed to a constant factor, and let the solved law take over on the way
    worker   : does what takes longer than a tick (lookahead.py); None: in place, which is right for simulations
    Raises InputError where gravity alone exceeds a limit.
    """

    def __init__(self, constraints: Constraints, plan: ScaledPlan, catch_up: bool = True, at_once: bool = False,
                 worker: Executor | None = None, progress: Progress | None = None):
        if constraints.path is not plan.path:
            raise InputError("constraints on another path than the plan's: make them from plan.path")
        self.constraints, self.plan, self.catch_up = constraints, plan, catch_up
        self.t = 0.0
        self.message = ""  # why something that was asked for is not done
        self.unkept = ""  # why the constraints that were asked for last are not kept
        self._override, self._held, self._stopping = 1.0, False, False
        self._waited = 0.0  # s, for pauses and overrides
        self._most = 1.0  # the largest rate inside new limits, until the rate has come down to it
        self._lead = LEAD
        self._worker = worker
        self._job: _Job | None = None
        self._asked: list[Constraints] = []  # for, and not yet looked at
        self._unsolved = False  # whether a law is still to be solved
        self._soon = True  # whether first for the next moment alone
        self._new: tuple[Constraints, Assessment] | None = None  # for the next tick
        self._slower: tuple[ScaledPlan, CoefficientTable] | None = None  # waits for a rate small enough
        self._next: Handover | None = None  # waits for its place
        factor = 1.0
        if at_once:
            check_rest(constraints, ROOM)
            factor = steady_factor(constraints, plan.law, ROOM)
            self.current = plan.slower(factor) if factor < 1.0 else plan
        else:
            self.current = follow(constraints, plan, catch_up, progress)
        table = CoefficientTable(constraints, self.current.law, ahead=FIRST if at_once else np.inf)
        self.time_scaling = TimeScaling(table, horizon(constraints))
        if factor < 1.0:
            self._ask_for_law()

    # ------------------------------------------------------------------ what is wanted of it

    def pause(self) -> None:
        """Come to rest on the path, and wait."""
        self._held = True

    def resume(self) -> None:
        self._held = False

    def stop(self) -> None:
        """Come to rest on the path, and end there."""
        self._stopping = True

    def override(self, share: float) -> None:
        """Play at a share of the speed, 0 to 1."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"override is {share}; it must be from 0 to 1")
        self._override = float(share)

    def change(self, constraints: Constraints) -> None:
        """Other limits or another payload on the same path, from now on.

        Where gravity alone would exceed a limit further on, nothing changes: InputError without a worker, else `message` and
        `unkept` say so. Robots that carry such a payload already should be told to stop.
        """
        if constraints.path is not self.plan.path:
            raise InputError("constraints on another path; a motion keeps its path")
        self._asked.append(constraints)
        self.unkept = ""
        self._assess()

    # ------------------------------------------------------------------ the tick

    def tick(self, dt: float) -> Reference:
        """Where to be dt later. Does not wait for the worker, if there is one."""
        if not 0.0 < dt < np.inf:
            raise InputError(f"dt is {dt}; it must be a finite time above zero")
        self.decide()
        self.advance(dt)
        return self.reference()

    def decide(self) -> None:
        """What a tick begins with: take over what is ready, and steer."""
        self.collect()
        scaling = self.time_scaling
        if self._new is not None:
            constraints, (most, table, slower) = self._new
            if scaling.steady and scaling.sigma == 0.0:
                scaling.table = table
            elif not scaling.brake(table, most):
                return  # the transition under way is about to end
            self.constraints, self._most, self._slower, self._new = constraints, most, slower, None
            if slower is None:
                self._ask_for_law()
        if scaling.steady and scaling.sigma == 0.0:
            scaling.k = scaling.end = self._wanted  # at rest any rate will do
        if self._slower is not None and scaling.rebase(self._slower[1], self._most):  # slow enough for the new limits
            self._most, self.current, self._slower = 1.0, self._on_path(self._slower[0]), None
            self._ask_for_law()
        if self._next is not None:
            self._take_over(self._next)
        scaling.steer(self._wanted if self._slower is None else min(self._wanted, scaling.end))

    def advance(self, dt: float) -> None:
        """Move on as was decided."""
        self.time_scaling.advance(dt)
        self.t += dt
        self._waited += dt * max(0.0, 1.0 - self.time_scaling.k / self._most)

    @property
    def _wanted(self) -> float:
        return 0.0 if self._held or self._stopping else self._most * self._override

    @property
    def done(self) -> bool:
        scaling = self.time_scaling
        return scaling.sigma >= self.current.law.duration or (self._stopping and scaling.steady and scaling.k == 0.0)

    @property
    def due(self) -> float:
        """The plan's time by which this place was due, were it not for pauses and overrides [s]."""
        return self.t - self._waited

    def reference(self) -> Reference:
        """Where to be now."""
        return reference(self.plan.path, self.current.law, self.time_scaling, self.t, self.done)

    def status(self) -> ScalerStatus:
        """For people; takes longer than a tick."""
        now = self.reference()
        planned_time = float(self.plan.law.time_at([now.s])[0])
        planned_speed = self.plan.law.at(planned_time)[1]
        used = np.abs(utilization(self.constraints([now.s]), *(np.array([x]) for x in (now.sd, now.sdd, now.sddd)))[0])
        most = int(used.argmax())
        speed = now.sd / planned_speed if planned_speed > 0.0 else np.nan
        delay, limit = self.due - planned_time, self.constraints.describe(most)
        return ScalerStatus(delay, speed, float(used[most]), limit, self.message)

    # ------------------------------------------------------------------ other limits, other laws

    def _on_path(self, motion: ScaledPlan) -> ScaledPlan:
        """A worker in another process answers with a path of its own, which is the same."""
        return replace(motion, path=self.plan.path)

    def _submit(self, job: _Job) -> None:
        """Have work done; what is being done is forgotten."""
        self.message, self._job = "", job
        if self._worker is not None:
            job.future = self._worker.submit(job.work)
            return
        try:
            found = job.work()
        except RneaError as error:
            job.failed(error)
            raise
        job.then(found)

    def collect(self) -> None:
        """Take what the worker has found, if it is done."""
        job = self._job
        if job is None or job.future is None or not job.future.done():
            return
        self._job = None
        try:
            found = job.future.result()
        except BaseException as error:  # whatever it is: what is being played is verified to its end
            job.failed(error)
            self.message = in_words(error)
        else:
            job.then(found)

    def _assess(self) -> None:
        """Look at what was asked for last, under the law that is played now; again when another one takes over."""
        constraints = self._asked[-1]

        def then(new: Assessment) -> None:
            for table in (new.table, *(new.slower or ())[1:]):
                table.constraints = constraints
            self._asked.clear()
            self._next, self._new, self._soon = None, (constraints, new), True

        def failed(error: BaseException) -> None:
            """Nothing changes: what this had put aside goes on."""
            self.unkept = self.unkept or in_words(error)
            self._asked.pop()
            if self._asked:
                self._assess()
            elif self._unsolved:
                self._ask_for_law()

        self._submit(_Job(partial(assess, constraints, self.current, self.time_scaling.sigma), then, failed))

    def _ask_for_law(self) -> None:
        """The motion nearest to the plan, from a place a little ahead. What was asked for comes first."""
        self._unsolved = True
        if self._asked:
            self._assess()
            return
        sigma, asked, constraints = self.time_scaling.sigma, self.t, self.constraints
        at, offset = sigma + self._lead, self.due - sigma
        if at >= self.current.law.duration:
            return

        def then(found: Handover) -> None:
            found.table.constraints = constraints
            self._next, self._unsolved = found, not found.whole
            self._lead = max(self._lead, SPARE * (self.t - asked))

        work = partial(next_law, constraints, self.current, at, self.plan, self.catch_up, offset, sigma, self._soon)
        try:
            self._submit(_Job(work, then, lambda error: None))
        except RneaError as error:
            self.message = str(error)

    def _take_over(self, found: Handover) -> None:
        """The new law, if the motion stays on the part that it shares with the present one until the rate is constant."""
        scaling = self.time_scaling
        if scaling.reach < found.at:
            self._next, self.current, scaling.table = None, self._on_path(found.motion), found.table
            self._soon = found.whole
            if not found.whole:
                self._ask_for_law()
            elif self._asked:
                self._assess()  # with the law that is played now
        elif scaling.sigma >= found.at:  # too late
            self._next = None
            self._lead *= 2.0
            self._ask_for_law()
