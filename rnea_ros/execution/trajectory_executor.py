"""One motion after another: trajectories in, samples out at a control rate, and whatever happens on the way.

A trajectory that comes while another is executed stops that one on its path, as fast as the limits allow, and begins from
there. A pause lasts until it is resumed, whatever comes meanwhile. Another payload, other limits, or another description of
the same joints are taken over on the way; where they cannot be kept, the motion comes to rest. A robot with other joints
takes over when the motion has come to rest. states.py has all of this in one table; here are the ticks, the lock between the
threads, and what they report. Whatever fails, in whichever thread, is reported, and what moves comes to rest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import numpy as np

from ..errors import InputError, Rejected, in_words
from ..model.tree import Limits
from ..robots.link_side import LinkSideRobot
from .ending import LEFT, ending
from .executed_motion import ExecutedMotion, Sample
from .execution_context import ExecutionContext
from .follower import Follower
from .goal import MANY_POINTS, MAX_DELAY_S, Goal, OnEnd, Outcome
from .joint_state_buffer import Measurement, unseen
from .preparation import Preparation
from .solver_process import SolverProcess
from .start_state import StartState
from .state_machine import Occasion, StateMachine
from .states import Event, Phase, State, phase

LONG_DELAY_S = 1.0  # from which a trajectory that waits for its stamp is reported
FAILURES = 100  # of one tick after the other, after which a motion is given up
OTHER_JOINTS = "the robot has other joints now"
STILL = 1e-3  # share of the speed below which a paused motion counts as paused
Names = tuple[str, ...]


class TrajectoryExecutor:
    """Safe to be called from any thread; `tick` from one.

    values      : control_rate, output, horizon, interpolation, catch_up, solve_first, start_tolerance, start_mismatch,
                  on_new_trajectory
    measured    : joint names -> positions (n,), NaN where nothing tells
    on_event    : called with (whether all is well, a sentence)
    on_rejected : called with every Rejected that is not raised
    wake        : called when there is something to tick for
    age         : joint names -> time since the measured positions came (n,) [s]
    worker      : prepares motions; default a thread
    solver      : solves for time laws beside the ticks; default a process
    clock       : by which motions that are handed out are executed [ns]
    seen        : joint names -> what joint states tell of the robot while it moves
    follower    : who executes them: has the last word on a motion at its goal, and is halted where one is given up
    """

    def __init__(self, values: Mapping[str, Any], measured: Callable[[Names], np.ndarray],
                 on_event: Callable[[bool, str], None], on_rejected: Callable[[Rejected], None], wake: Callable[[], None],
                 age: Callable[[Names], np.ndarray] = lambda names: np.zeros(len(names)), worker: Executor | None = None,
                 solver: Executor | None = None, clock: Callable[[], int] = time.time_ns,
                 seen: Callable[[Names], Measurement] = unseen):
        self.values, self.follower, self._clock, self._seen = values, Follower(), clock, seen
        self._on_event, self._on_rejected, self._wake = on_event, on_rejected, wake
        self._start = StartState(measured, age)
        self._lock = threading.RLock()
        self._worker = worker or ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self.solver = solver or SolverProcess(on_event)
        self._preparation = Preparation(self._worker, self.solver, self._start, self._use_context, self._prepared,
                                        self._not_prepared, lambda error: self.failed("preparation", error))
        self._machine = StateMachine(lambda goal, now: self._preparation.make(goal, now, self.values), self._ready,
                                     self._start.forget, on_event, on_rejected)
        self._joint_names: Names = ()  # of the robot in use
        self.paused, self.override = False, 1.0
        self._message = ""  # of the motion, as was reported
        self._unknown: dict[str, str] = {}  # limits, by quantity, as was reported
        self._failures = 0  # of the last ticks

    def close(self) -> None:
        for executor in (self.solver, self._worker):
            executor.shutdown(wait=True, cancel_futures=True)

    @property
    def motion(self) -> ExecutedMotion | None:
        """That moves, or comes to rest."""
        return self._machine.motion

    @property
    def active(self) -> bool:
        """Whether there is something to tick for."""
        return self._current is not None

    @property
    def phase(self) -> Phase:
        motion = self.motion
        paused = self.paused and motion is not None and motion.scaler.time_scaling.k < STILL
        return phase(self._machine.state, paused, motion is not None and motion.rests is not None)

    @property
    def _current(self) -> ExecutedMotion | None:
        """That is executed, or ready to be."""
        return self._machine.motion or self._machine.ready

    # ------------------------------------------------------------------ what is asked of it

    def use(self, robot: LinkSideRobot, limits: Limits) -> None:
        """A robot, a payload, limits: for what moves, and for what will."""
        with self._lock:
            others = self._joint_names not in ((), robot.joint_names)
            self._joint_names = robot.joint_names
            self._machine.fire(Event.MODEL)
            if others:
                self._machine.fire(Event.OTHER_JOINTS, Occasion(Outcome("stopped", OTHER_JOINTS), well=False))
        self._preparation.use(robot, limits)

    def check(self, goal: Goal, now: int) -> None:
        """Raises Rejected if it would not be taken at time now [ns]."""
        late = (now - goal.start) * 1e-9 - goal.duration
        if self._machine.state is State.NO_MODEL:
            raise Rejected("no_model", "there is no robot description yet")
        if goal.start and late > 0.0:
            raise Rejected("too_late", f"by its stamp it should have ended {late:.3f} s ago; a stamp of zero means at once")
        ahead = (goal.start - now) * 1e-9
        if ahead > MAX_DELAY_S:
            raise Rejected("too_early", f"its stamp is {ahead:.6g} s ahead of this node's clock, at most {MAX_DELAY_S:g} s "
                                        "are allowed: compare the clocks of both machines, or use a stamp of zero to begin at "
                                        "once")
        if self._machine.state is not State.IDLE and self.values["on_new_trajectory"] == "refuse":
            raise Rejected("busy", "another trajectory is not at its end, and on_new_trajectory is refuse")
        goal.check_tolerances(self._seen(goal.joint_names))

    def take(self, goal: Goal, now: int) -> None:
        """A trajectory, read for the robot in use, at time now [ns]. Raises Rejected."""
        with self._lock:
            self.check(goal, now)
            self._machine.fire(Event.GOAL, Occasion(goal=goal, now=now))
        if (ahead := (goal.start - now) * 1e-9) > LONG_DELAY_S:
            self._on_event(True, f"the trajectory waits: its stamp is {ahead:.1f} s ahead of this node's clock")
        if len(goal.times) > MANY_POINTS:
            self._on_event(True, f"preparing a trajectory of {len(goal.times)} points: about a second for each thousand")

    def pause(self) -> None:
        self._pause(True, "paused")

    def resume(self) -> None:
        self._pause(False, "resumed")

    def _pause(self, paused: bool, word: str) -> None:
        with self._lock:
            changed, self.paused = paused != self.paused, paused
            self._steer()
        if changed:
            self._on_event(True, word)

    def set_override(self, share: float) -> None:
        """Raises InputError."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"share is {share}; it must be from 0 to 1")
        with self._lock:
            changed, self.override = share != self.override, float(share)
            self._steer()
        if changed:
            self._on_event(True, f"override: {share:.4g} of the speed")

    def stop(self, why: str = "it was asked to stop", only: OnEnd | None = None, well: bool = True) -> bool:
        """End what moves and what waits to, or of these the goal with this `on_end`; whether there was anything.

        well : whether that is as it should be
        """
        with self._lock:
            machine, occasion, found = self._machine, Occasion(Outcome("stopped", why), well=well), False
            moves = machine.motion.goal if machine.motion is not None else None
            for event, goal in ((Event.DROP, machine.waiting), (Event.STOP, moves)):
                if goal is not None and only in (None, goal.on_end):
                    machine.fire(event, occasion)
                    found = True
        return found

    def abort(self, why: str, reason: str = "stopped") -> None:
        """Forget everything, without coming to rest: the robot is somewhere else. reason: as in Rejected."""
        with self._lock:
            waiting, motion = self._machine.waiting, self.motion
            self._machine.fire(Event.ABORT, Occasion(Outcome(reason, why)))
            if motion is not None:
                self.follower.halt(motion)
        if waiting is not None or motion is not None:
            self._on_event(False, f"{why}: the motion is given up")

    def stop_ahead(self, now: int, period: float) -> tuple[ExecutedMotion, list[Sample]] | None:
        """Give up a streamed motion, and return its samples at this period [s] from the next one until it rests on its path.
        A controller executes them without this node. None where nothing moves, or where the controller has all of it."""
        with self._lock:
            motion = self.motion
            if motion is None or motion.committed is not None:
                return None
            motion.stop("the node ends")
            samples: list[Sample] = []
            while motion.rests is None and len(samples) < MANY_POINTS:
                samples.append(motion.tick(period, now, self._clock))
            self.abort("the node ends at once, and has sent the way to rest")
            return (motion, samples) if samples else None

    def failed(self, what: str, error: BaseException, motion: ExecutedMotion | None = None) -> None:
        """Something failed that never should: what moves comes to rest, what waits is dropped, and it is reported, once for
        each motion. If it is known to concern one motion, which has ended meanwhile, others go on."""
        with self._lock:
            why = f"{what} failed: {in_words(error)}"
            over = motion is not None and motion is not self.motion
            if over or not self.stop(why, well=False):
                self._on_event(False, why)

    def _steer(self) -> None:
        if (motion := self._current) is not None:
            (motion.scaler.pause if self.paused else motion.scaler.resume)()
            motion.scaler.override(self.override * motion.watch.share)

    # ------------------------------------------------------------------ the tick

    def tick(self, now: int, dt: float) -> tuple[ExecutedMotion, Sample] | None:
        """Where to be now [ns], dt [s] after the last tick; None if there is nothing to send. Raises Rejected."""
        with self._lock:
            try:
                found = self._tick(now, dt)
                self._failures = 0
                return found
            except Rejected:
                raise
            except BaseException as error:
                self._failures += 1
                self.failed("a tick", error)
                if self._failures == FAILURES:
                    self.abort(f"{FAILURES} ticks in a row failed, {in_words(error)}")
                return None

    def _tick(self, now: int, dt: float) -> tuple[ExecutedMotion, Sample] | None:
        machine = self._machine
        if machine.ready is not None and now >= machine.ready.goal.start:
            self._begin(machine.ready, now)
        motion = machine.motion
        if motion is None:
            return None
        if machine.waiting is not None and now >= machine.waiting.start:
            machine.fire(Event.NEXT_DUE, Occasion(Outcome("stopped", "another trajectory came"), well=True))
        sample = motion.tick(dt, now, self._clock, self.follower.ready, 1.0 / self.values["control_rate"])
        self._start.send(motion.joint_names, sample.reference.q, now)
        self._read_message(motion)
        for well, news in (watch := motion.watch).follow(sample.reference, self._seen(motion.joint_names), now):
            self._on_event(well, f"motion {motion.number} {news}")
        self._steer()
        if watch.violation and not motion.stopped and not sample.reference.done:
            machine.fire(Event.STOP, Occasion(Outcome(LEFT, watch.violation), well=False))
        if not sample.reference.done:
            return motion, sample
        if (found := ending(motion, sample.reference, self.follower, now)) is None:  # somebody has still to say so
            return motion, sample._replace(reference=sample.reference._replace(done=False))
        if found.failed:
            self._start.forget()  # the robot may be anywhere
        self._on_event(not found.failed, f"motion {motion.number} {found.words}")
        machine.fire(Event.AT_REST, Occasion(found.outcome, now=now))
        return motion, sample

    def _begin(self, motion: ExecutedMotion, now: int) -> None:
        """Raises Rejected if the robot has moved since."""
        tolerance = self.values["start_tolerance"]
        try:
            motion.check_start(self._start.at(motion.joint_names, now, tolerance, motion.turns), tolerance)
        except Rejected as rejected:
            self._machine.fire(Event.REFUSED, Occasion(Outcome(rejected.reason, rejected.detail)))
            raise
        motion.begin(now)
        self._machine.fire(Event.BEGIN)
        begins = "is ready, and waits, paused" if self.paused else "begins"
        self._on_event(True, f"motion {motion.number} {begins}: {motion.timing}")

    def _read_message(self, motion: ExecutedMotion) -> None:
        before, self._message = self._message, motion.scaler.message
        if motion.scaler.unkept:
            self._give_way(motion, motion.scaler.unkept)
        elif self._message not in ("", before):
            self._on_event(False, f"the motion goes on as it was: {self._message}")

    def _give_way(self, motion: ExecutedMotion, why: str) -> None:
        """A motion may not go on beyond limits, or with a payload, that it was not made for."""
        if motion is self._current:
            self.stop(f"it cannot go on with the new limits or payload: {why}", well=False)

    # ------------------------------------------------------------------ what the worker has prepared

    def _prepared(self, goal: Goal, motion: ExecutedMotion) -> None:
        with self._lock:
            if goal is self._machine.waiting:  # else it was stopped, or replaced
                self._machine.fire(Event.PREPARED, Occasion(motion=motion))

    def _not_prepared(self, goal: Goal, rejected: Rejected) -> None:
        with self._lock:
            self._machine.refuse(goal, rejected)

    def _ready(self, motion: ExecutedMotion) -> None:
        self._message = ""
        self._steer()
        self._wake()

    def _use_context(self, context: ExecutionContext) -> bool:
        """Whether a motion is under way, for which it is what holds from now on."""
        motion = self._current
        if motion is not None and motion.joint_names == context.robot.joint_names:
            self._change(motion, context)
        elif context.problem:
            self._on_event(False, f"no trajectory can be executed: {context.problem}")
        before, self._unknown = self._unknown, context.unknown()
        for text in sorted({*self._unknown.values()} - {*before.values(), ""}):
            self._on_event(False, text)
        return motion is not None

    def _change(self, motion: ExecutedMotion, context: ExecutionContext) -> None:
        try:
            with self._lock:
                motion.carry(context.robot, context.limits)
            constraints = context.constraints(motion.scaler.plan.path)
            with self._lock:
                motion.change(constraints)
        except BaseException as error:
            with self._lock:
                self._give_way(motion, in_words(error))
