"""Trajectory executor: trajectories in, samples at the control rate out, through everything that may happen meanwhile.

A trajectory that comes while another one is executed stops that one on its path, as fast as the limits allow, and begins from
there. A pause lasts until resumed. Another payload, other limits, or another description of the same joints take effect during
the motion; where they cannot be kept, the motion comes to rest. A robot with other joints is used once the motion has come to
rest. states.py has all of this in one table; here are the ticks, the lock between the threads, the preparation of motions and
what is reported. A failure in any thread is reported, and the motion comes to rest.

An action chunk of a policy that comes while nothing moves begins a motion that follows the policy (`PolicyMotion`); later
ones change it. After a stop, or a failure, chunks are rejected until `resume`: a policy goes on sending them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError, Rejected, RneaError, in_words
from ..model.tree import Limits
from ..robots.robot import Robot
from ..trajectory.chunk_executor import ChunkResult
from ..trajectory.path_dynamics import PathDynamics
from ..trajectory.time_optimal import Progress
from ..trajectory.trajectory_scaler import Reference
from .executed_motion import (
    ActionChunk,
    ExecutedMotion,
    ExecutionContext,
    PolicyGoal,
    PolicyMotion,
    Sample,
    make_policy_motion,
    policy_goal,
)
from .goal import MANY_POINTS, MAX_DELAY_S, MAX_POINTS, Goal, OnEnd, Outcome
from .joint_states import Measurement, StartState, no_measurement
from .solver_process import SolverProcess
from .states import Event, EventContext, Phase, State, StateMachine, phase

CONTROLLER_STATE_NS = 100_000_000  # age at which the last state of the controller counts as the present one
LONG_DELAY_S = 1.0  # from which the wait for the start time of a trajectory is reported
MAX_FAILED_TICKS = 100  # consecutive ticks that may fail before a motion is given up
OTHER_JOINTS = "the new robot model has other joints"
PATH_TOLERANCE = "path_tolerance"  # reason of a motion that was stopped because its robot had left the path
Names = tuple[str, ...]


class TrajectoryFollower:
    """Interface to the controller that executes the references. This one is open loop: it reports nothing.

    feedback : newest feedback of a goal under way: joint_names, actual, error; None if there is none
    """

    feedback: Any = None

    def goal_outcome(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        """Return the outcome of a motion whose last reference is at its goal, at time now [ns]; None if not known yet."""
        return Outcome()

    def can_splice(self, requested: int, now: int) -> bool:
        """Return whether a change, requested at a time [ns], may be sent now [ns].

        The controller must be on the trajectory that the changed one continues.
        """
        return True

    def cancel(self, motion: ExecutedMotion) -> None:
        """Give up a motion under way: the controller must not continue what was sent of it."""


class TrajectoryExecutor:
    """Executor of trajectories. All methods may be called from any thread, `tick` from one only.

    parameters  : control_rate, output, horizon, interpolation, catch_up, solve_first, start_tolerance, start_mismatch,
                  on_new_trajectory, watch.*; policy_frequency, policy.* for chunks
    measured    : joint names -> positions (n,), NaN where not measured
    on_event    : called with (is_ok, message)
    on_rejected : called with every Rejected that is not raised
    wake        : called when there is something to tick for
    age         : joint names -> time since the measured positions arrived (n,) [s]
    worker      : executor that prepares motions; default a thread
    solver      : executor that solves for time laws beside the ticks; default a process
    clock       : time by which whole trajectories are executed [ns]
    measurement : joint names -> measured joint states during a motion
    on_chunk    : called with the result of every action chunk
    follower    : controller that executes the references: confirms that a motion has reached its goal, and is cancelled where
                  one is given up
    """

    def __init__(self, parameters: Mapping[str, Any], measured: Callable[[Names], np.ndarray],
                 on_event: Callable[[bool, str], None], on_rejected: Callable[[Rejected], None], wake: Callable[[], None],
                 age: Callable[[Names], np.ndarray] = lambda names: np.zeros(len(names)), worker: Executor | None = None,
                 solver: Executor | None = None, clock: Callable[[], int] = time.time_ns,
                 measurement: Callable[[Names], Measurement] = no_measurement,
                 on_chunk: Callable[[ChunkResult], None] = lambda result: None):
        self.parameters, self.follower, self._clock, self._measurement = parameters, TrajectoryFollower(), clock, measurement
        self._on_event, self._on_rejected, self._wake, self._on_chunk = on_event, on_rejected, wake, on_chunk
        self._start = StartState(measured, age)
        self._lock = threading.RLock()
        self._worker = worker or ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self.solver = solver or SolverProcess(on_event)
        self._preparation = _Preparation(self._worker, self.solver, self._start, self._use_context, self._on_prepared,
                                         self._on_refused, lambda error: self.report_failure("preparation", error))
        self._machine = StateMachine(lambda goal, now: self._preparation.make_motion(goal, now, self.parameters),
                                     self._on_ready, self._start.clear, on_event, on_rejected)
        self._joint_names: Names = ()  # of the robot in use
        self.paused, self.override = False, 1.0
        self._message = self._excess = ""  # message and excess of the scaler that were reported last
        self._missing_limits: dict[str, str] = {}  # warnings that were reported last, by quantity
        self._failed_ticks = 0  # consecutive
        self._first_chunk: ActionChunk | None = None  # newest one, while the motion that it begins is prepared
        self._policy_stopped = ""  # why chunks are rejected until `resume`

    def close(self) -> None:
        """Stop the workers."""
        for executor in (self.solver, self._worker):
            executor.shutdown(wait=True, cancel_futures=True)

    @property
    def motion(self) -> ExecutedMotion | None:
        """Executed motion, moving or coming to rest."""
        return self._machine.motion

    @property
    def waiting(self) -> Goal | None:
        """Goal that waits."""
        return self._machine.waiting

    @property
    def active(self) -> bool:
        """True if a motion is executed or pending, so that ticks are needed."""
        return self._current is not None

    @property
    def phase(self) -> Phase:
        """Reported phase."""
        motion = self.motion
        paused = self.paused and motion is not None and motion.is_paused
        return phase(self._machine.state, paused, motion is not None and motion.final_sample is not None)

    @property
    def _current(self) -> ExecutedMotion | None:
        """Executed motion, or the one that is ready."""
        return self._machine.motion or self._machine.ready

    # ------------------------------------------------------------------ requests

    def set_robot(self, robot: Robot, limits: Limits) -> None:
        """Use a robot, a payload, limits: for the motion under way and for all later ones."""
        with self._lock:
            other_joints = self._joint_names not in ((), robot.joint_names)
            self._joint_names = robot.joint_names
            self._machine.fire(Event.MODEL)
            if other_joints:
                self._machine.fire(Event.OTHER_JOINTS, EventContext(Outcome("stopped", OTHER_JOINTS), is_ok=False))
        self._preparation.set_robot(robot, limits)

    def check(self, goal: Goal, now: int) -> None:
        """Raise Rejected if a goal would not be accepted at time now [ns]."""
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
        if self._machine.state is not State.IDLE and self.parameters["on_new_trajectory"] == "refuse":
            raise Rejected("busy", "another trajectory is not at its end, and on_new_trajectory is refuse")
        goal.check_tolerances(self._measurement(goal.joint_names))

    def accept(self, goal: Goal, now: int) -> None:
        """Accept a trajectory, read for the robot in use, at time now [ns]. Raises Rejected."""
        with self._lock:
            self.check(goal, now)
            self._machine.fire(Event.GOAL, EventContext(goal=goal, now=now))
        if (ahead := (goal.start - now) * 1e-9) > LONG_DELAY_S:
            self._on_event(True, f"the trajectory waits: its stamp is {ahead:.1f} s ahead of this node's clock")
        if len(goal.times) > MANY_POINTS:
            self._on_event(True, f"preparing a trajectory of {len(goal.times)} points: about a second for each thousand")

    def push_chunk(self, chunk: ActionChunk, now: int) -> None:
        """Execute an action chunk that came at time now [ns]; `on_chunk` gets its result. Called by one thread."""
        with self._lock:
            motion, rejected = self._machine.motion, self._reject_chunk()
            if rejected is None and not isinstance(motion, PolicyMotion):
                if self._first_chunk is not None:
                    self._on_chunk(ChunkResult("replaced", "a newer chunk came before the motion had begun"))
                self._first_chunk = chunk
                if self._machine.state is State.IDLE:
                    self._machine.fire(Event.GOAL, EventContext(
                        goal=policy_goal(self._joint_names, self._on_policy_end), now=now))
                return
        if rejected is None:
            assert isinstance(motion, PolicyMotion)
            rejected = self._push(motion, chunk, now)  # without the lock: ticks go on meanwhile
        self._on_chunk(rejected)

    def _push(self, motion: PolicyMotion, chunk: ActionChunk, now: int) -> ChunkResult:
        frequency = self.parameters["policy_frequency"]
        return motion.push(chunk, 1.0 / frequency if frequency > 0.0 else 0.0, now)

    def _reject_chunk(self) -> ChunkResult | None:
        """Return why no chunk can be executed now; None if one can."""
        machine, waiting = self._machine, self._machine.waiting
        if machine.state is State.NO_MODEL:
            return ChunkResult("no_model", "there is no robot description yet")
        if self._policy_stopped:
            return ChunkResult("stopped", f"{self._policy_stopped}: call ~/resume to follow the policy again")
        if isinstance(machine.motion, PolicyMotion) and machine.state is State.MOVING:
            now = self._clock()
            on_trajectory = self.follower.can_splice(now - CONTROLLER_STATE_NS, now)
            return None if on_trajectory else ChunkResult("controller", "the controller is not on the trajectory that it has")
        if machine.motion is not None or not (waiting is None or isinstance(waiting, PolicyGoal)):
            return ChunkResult("busy", "another motion is executed, or comes to rest")
        return None if not self.paused else ChunkResult("paused", "the motion is paused: call ~/resume")

    def pause(self) -> None:
        """Bring motions to rest on their path until `resume`."""
        self._set_paused(True, "paused")

    def resume(self) -> None:
        """Continue after a pause, and follow a policy again after a stop."""
        self._policy_stopped = ""
        self._set_paused(False, "resumed")

    def _set_paused(self, paused: bool, word: str) -> None:
        with self._lock:
            changed, self.paused = paused != self.paused, paused
            self._update_speed()
        if changed:
            self._on_event(True, word)

    def set_override(self, share: float) -> None:
        """Set the share of the speed, 0 to 1, of all motions. Raises InputError."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"share is {share}; it must be from 0 to 1")
        with self._lock:
            changed, self.override = share != self.override, float(share)
            self._update_speed()
        if changed:
            self._on_event(True, f"override: {share:.4g} of the speed")

    def stop(self, message: str = "a stop was requested", only: OnEnd | None = None, is_ok: bool = True) -> bool:
        """End the executed and the waiting trajectory; return whether there was one.

        only  : end the goal with this `on_end` only
        is_ok : level at which it is reported
        """
        with self._lock:
            machine, context, found = self._machine, EventContext(Outcome("stopped", message), is_ok=is_ok), False
            executed = machine.motion.goal if machine.motion is not None else None
            for event, goal in ((Event.DROP, machine.waiting), (Event.STOP, executed)):
                if goal is not None and only in (None, goal.on_end):
                    self._stop_policy(goal, message)
                    machine.fire(event, context)
                    found = True
        return found

    def abort(self, message: str, reason: str = "stopped") -> None:
        """Give up all trajectories without coming to rest: the robot is elsewhere. reason: as in Rejected."""
        with self._lock:
            waiting, motion = self._machine.waiting, self.motion
            self._stop_policy(motion.goal if motion is not None else waiting, message)
            self._machine.fire(Event.ABORT, EventContext(Outcome(reason, message)))
            if motion is not None:
                self.follower.cancel(motion)
        if waiting is not None or motion is not None:
            self._on_event(False, f"{message}: the motion is given up")

    def _on_policy_end(self, outcome: Outcome) -> None:
        """Report the chunk that waits for a motion which does not begin."""
        if self._first_chunk is not None and outcome.reason:
            self._first_chunk = None
            self._on_chunk(ChunkResult(outcome.reason, outcome.message))

    def _stop_policy(self, goal: Goal | None, message: str) -> None:
        """Reject chunks from now on, where a goal that ends follows a policy."""
        if isinstance(goal, PolicyGoal):
            self._policy_stopped = message

    def compute_stop(self, now: int, period: float) -> tuple[ExecutedMotion, list[Sample]] | None:
        """Give up a streamed motion, and return its samples at a period [s] until it rests on its path.

        A controller executes them without this node. None where nothing moves, or where the controller has the whole
        trajectory.
        """
        with self._lock:
            motion = self.motion
            if motion is None or motion.rolling is not None:
                return None
            motion.stop("the node ends")
            samples: list[Sample] = []
            while motion.final_sample is None and len(samples) < MAX_POINTS:
                samples.append(motion.tick(period, now, self._clock))
            self.abort("the node ends at once, and has sent the way to rest")
            return (motion, samples) if samples else None

    def report_failure(self, what: str, error: BaseException, motion: ExecutedMotion | None = None) -> None:
        """Report an unexpected error, once for each motion, and stop all trajectories.

        motion: motion that it concerns; if it has ended meanwhile, others go on
        """
        with self._lock:
            message = f"{what} failed: {in_words(error)}"
            has_ended = motion is not None and motion is not self.motion
            if has_ended or not self.stop(message, is_ok=False):
                self._on_event(False, message)

    def _update_speed(self) -> None:
        """Pass pause and override on to the current motion."""
        if (motion := self._current) is not None:
            motion.set_speed(self.paused, self.override * motion.monitor.speed_share)

    # ------------------------------------------------------------------ tick

    def tick(self, now: int, dt: float) -> tuple[ExecutedMotion, Sample] | None:
        """Return the sample at time now [ns], dt [s] after the last tick; None if nothing moves. Raises Rejected."""
        with self._lock:
            try:
                found = self._tick(now, dt)
                self._failed_ticks = 0
                return found
            except Rejected:
                raise
            except BaseException as error:
                self._failed_ticks += 1
                self.report_failure("a tick", error)
                if self._failed_ticks == MAX_FAILED_TICKS:
                    self.abort(f"{MAX_FAILED_TICKS} ticks in a row failed, {in_words(error)}")
                return None

    def _tick(self, now: int, dt: float) -> tuple[ExecutedMotion, Sample] | None:
        machine = self._machine
        if machine.ready is not None and now >= machine.ready.goal.start:
            dt = min(dt, 1e-9 * max(now - machine.ready.goal.start, 1))  # it begins within this step
            self._begin(machine.ready, now)
        motion = machine.motion
        if motion is None:
            return None
        if machine.waiting is not None and now >= machine.waiting.start:
            machine.fire(Event.NEXT_DUE, EventContext(Outcome("stopped", "another trajectory came"), is_ok=True))
        sample = motion.tick(dt, now, self._clock, self.follower.can_splice, 1.0 / self.parameters["control_rate"])
        self._start.add_reference(motion.joint_names, sample.reference.q, now)
        self._read_message(motion)
        monitor = motion.monitor
        for is_ok, change in monitor.update(sample.reference, self._measurement(motion.joint_names), now):
            self._on_event(is_ok, f"motion {motion.number} {change}")
        self._update_speed()
        if monitor.violation and not motion.stop_message and not sample.reference.done:
            self._stop_policy(motion.goal, monitor.violation)
            machine.fire(Event.STOP, EventContext(Outcome(PATH_TOLERANCE, monitor.violation), is_ok=False))
        if not sample.reference.done:
            return motion, sample
        if (completion := _completion(motion, sample.reference, self.follower, now)) is None:  # wait for robot or controller
            return motion, sample._replace(reference=sample.reference._replace(done=False))
        if completion.failed:
            self._start.clear()  # the robot may be anywhere
        self._on_event(not completion.failed, f"motion {motion.number} {completion.message}")
        machine.fire(Event.AT_REST, EventContext(completion.outcome, now=now))
        return motion, sample

    def _begin(self, motion: ExecutedMotion, now: int) -> None:
        """Begin a motion that is ready. Raises Rejected if the robot has moved since its preparation."""
        tolerance = self.parameters["start_tolerance"]
        try:
            motion.check_start(self._start.positions(motion.joint_names, now, tolerance, motion.continuous), tolerance)
        except Rejected as rejected:
            self._machine.fire(Event.REFUSED, EventContext(Outcome(rejected.reason, rejected.detail)))
            if isinstance(motion, PolicyMotion):  # reported as the outcome of its first chunk
                return
            raise
        motion.start(now)
        self._machine.fire(Event.BEGIN)
        if isinstance(motion, PolicyMotion) and (chunk := self._first_chunk) is not None:
            self._first_chunk = None
            self._on_chunk(self._push(motion, chunk, now))
        begins = "is ready, and waits, paused" if self.paused else "begins"
        self._on_event(True, f"motion {motion.number} {begins}: {motion.describe_timing()}")

    def _read_message(self, motion: ExecutedMotion) -> None:
        before, self._message = self._message, motion.message
        if motion.change_error:
            self._stop_for_change(motion, motion.change_error)
        elif self._message not in ("", before):
            self._on_event(False, f"the motion goes on as it was: {self._message}")
        excess_before, self._excess = self._excess, motion.change_excess
        if self._excess not in ("", excess_before):
            self._on_event(False, f"motion {motion.number} slows down for new limits or another payload: {self._excess}")

    def _stop_for_change(self, motion: ExecutedMotion, reason: str) -> None:
        """Stop a motion that cannot be changed to new limits or another payload: it may not go on beyond them."""
        if motion is self._current:
            self.stop(f"it cannot go on with the new limits or payload: {reason}", is_ok=False)

    # ------------------------------------------------------------------ results of the preparation

    def _on_prepared(self, goal: Goal, motion: ExecutedMotion) -> None:
        with self._lock:
            if goal is self._machine.waiting:  # else it was stopped, or replaced
                self._machine.fire(Event.PREPARED, EventContext(motion=motion))

    def _on_refused(self, goal: Goal, rejected: Rejected) -> None:
        with self._lock:
            if isinstance(goal, PolicyGoal) and goal is self._machine.waiting:  # reported as the outcome of its first chunk
                self._machine.fire(Event.REFUSED, EventContext(Outcome(rejected.reason, rejected.detail)))
            else:
                self._machine.refuse(goal, rejected)

    def _on_ready(self, motion: ExecutedMotion) -> None:
        self._message = self._excess = ""
        self._update_speed()
        self._wake()

    def _use_context(self, context: ExecutionContext) -> bool:
        """Change the motion under way to a new context; return whether there is one."""
        motion = self._current
        if motion is not None and motion.joint_names == context.robot.joint_names:
            self._change(motion, context)
        elif context.problem:
            self._on_event(False, f"no trajectory can be executed: {context.problem}")
        before, self._missing_limits = self._missing_limits, context.missing_limits()
        for text in sorted({*self._missing_limits.values()} - {*before.values(), ""}):
            self._on_event(False, text)
        return motion is not None

    def _change(self, motion: ExecutedMotion, context: ExecutionContext) -> None:
        try:
            with self._lock:
                motion.set_robot(context.robot, context.limits)
            change = motion.prepare_change(context)
            with self._lock:
                change()
        except BaseException as error:
            with self._lock:
                self._stop_for_change(motion, in_words(error))


# ------------------------------------------------------------------------------------------------------------ completion


class _Completion(NamedTuple):
    """End of a motion: outcome for its sender, message for the log, and whether it failed with its references at the goal."""

    outcome: Outcome
    message: str
    failed: bool


def _completion(motion: ExecutedMotion, last: Reference, follower: TrajectoryFollower, now: int) -> _Completion | None:
    """Return the end of a motion whose last reference is sent, at time now [ns]; None if it is not complete.

    A motion that has arrived succeeds if its controller and its monitor confirm that the goal is reached. A motion that was
    stopped does not wait for them.
    """
    at_goal, description = motion.describe_end(last)
    stopped = Outcome(motion.stop_reason, motion.stop_message)
    outcome: Outcome | None = stopped
    if at_goal and motion.stop_reason != PATH_TOLERANCE:
        outcome = follower.goal_outcome(motion, now)
        if outcome == Outcome():
            outcome = motion.monitor.outcome
    if outcome is None and not motion.stop_message:
        return None
    reason, message = outcome = outcome or stopped
    failed = bool(reason) and outcome is not stopped
    return _Completion(Outcome(reason, f"{message}: {description}" if message else description),
                       description + (f"; {message}" if failed else ""), failed)


# ----------------------------------------------------------------------------------------------------------- preparation


class _Preparation:
    """Work that takes longer than a tick, one job after another in a worker: contexts of robots and motions of goals.

    Results and failures are reported by callbacks, which the worker calls.

    on_context : called with the newest context; returns whether a motion is under way
    on_motion  : called with a goal and its motion
    on_refused : called with a goal and the reason why there is no motion
    on_failure : called with an unexpected error
    """

    def __init__(self, worker: Executor, solver: Executor, start: StartState, on_context: Callable[[ExecutionContext], bool],
                 on_motion: Callable[[Goal, ExecutedMotion], None], on_refused: Callable[[Goal, Rejected], None],
                 on_failure: Callable[[BaseException], None]):
        self._worker, self._solver, self._start = worker, solver, start
        self._on_context, self._on_motion, self._on_refused = on_context, on_motion, on_refused
        self._on_failure = on_failure
        self._requested: tuple[Robot, Limits] | None = None
        self._context: ExecutionContext | None = None
        self._motions = 0  # number of motions made

    def set_robot(self, robot: Robot, limits: Limits) -> None:
        """Make the context of a robot, for the motion under way and for later ones."""
        self._requested = requested = robot, limits
        self._worker.submit(self._guarded, self._make_context, requested)

    def make_motion(self, goal: Goal, now: int, parameters: Mapping[str, Any]) -> None:
        """Make the motion of a goal from where the robot is at time now [ns]."""
        self._worker.submit(self._guarded, self._make_motion, goal, now, parameters)

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        try:
            work(*args)
        except BaseException as error:
            self._on_failure(error)

    def _make_context(self, requested: tuple[Robot, Limits]) -> None:
        if requested is not self._requested:  # a newer request replaced it
            return
        self._context = context = ExecutionContext.of(*requested)
        is_moving = self._on_context(context)
        if not is_moving and context.dynamics is not None:  # during a motion, compilation would delay ticks
            self._solver.submit(partial(compile_kernels, context.dynamics)).add_done_callback(self._on_compiled)
            context.dynamics.compile()

    def _on_compiled(self, done: Future) -> None:
        """Report an error of the compilation in the solver; the loss of its process is reported by the solver itself."""
        error = None if done.cancelled() else done.exception()
        if error is not None and not isinstance(error, RneaError):
            self._on_failure(error)

    def _make_motion(self, goal: Goal, now: int, parameters: Mapping[str, Any]) -> None:
        try:
            motion = self._motion(goal, now, parameters)
        except Rejected as rejected:
            self._on_refused(goal, rejected)
        except BaseException as error:
            reason = "motion_refused" if isinstance(error, RneaError) else "internal_error"
            self._on_refused(goal, Rejected(reason, in_words(error)))
        else:
            self._on_motion(goal, motion)

    def _motion(self, goal: Goal, now: int, parameters: Mapping[str, Any]) -> ExecutedMotion:
        context = self._context
        if context is None or goal.joint_names != context.robot.joint_names:
            raise Rejected("no_model", "the robot description was exchanged since the trajectory came")
        position = self._start.positions(goal.joint_names, now, parameters["start_tolerance"], context.continuous)
        if isinstance(goal, PolicyGoal):
            self._motions += 1
            return make_policy_motion(context, self._motions, goal, position, parameters)
        motion = context.make_motion(self._motions + 1, goal, position, parameters, self._solver)
        self._motions += 1
        return motion


def compile_kernels(dynamics: PathDynamics, progress: Progress | None = None) -> None:
    """Compile the kernels of path dynamics, in the process that solves, before they are needed."""
    dynamics.compile()
