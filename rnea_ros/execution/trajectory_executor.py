"""One motion after another: trajectories in, samples out at a control rate, and whatever happens on the way.

A trajectory that comes while another is executed stops that one on its path, as fast as the limits allow, and begins from
there. A pause lasts until it is resumed, whatever comes meanwhile. Another payload, other limits, or another description of
the same joints are taken over on the way; where they cannot be kept, the motion comes to rest. A robot with other joints
takes over when the motion has come to rest.

Whatever fails here, in whichever thread, is told, and what moves comes to rest: nobody reads the futures of the workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from typing import Any

import numpy as np

from ..errors import InputError, Rejected, RneaError, in_words
from ..model.tree import Limits
from ..robots.robot import Robot
from .executed_motion import ExecutedMotion, Sample
from .execution_context import ExecutionContext, execution_context
from .goal import Ended, Goal
from .start_state import StartState
from .turns import nearest

GOAL = 1e-9  # of the path, within which it is at its end
FAILURES = 100  # of one tick after the other, after which a motion is given up
OTHER_JOINTS = "the robot has other joints now"
GONE = 1e-3  # share of the speed below which a paused motion counts as paused


class Phase(Enum):
    NO_MODEL = "waiting for a robot description"
    IDLE = "waiting for a trajectory"
    PREPARING = "preparing a trajectory"
    WAITING = "waiting for the trajectory's time"
    MOVING = "moving"
    PAUSED = "paused"
    STOPPING = "coming to rest"


class TrajectoryExecutor:
    """Safe to be called from any thread; `tick` from one.

    values  : interpolation, catch_up, solve_first, start_tolerance, start_mismatch, on_new_trajectory
    where   : joint names -> measured positions (n,), NaN where nothing tells
    told    : called with (whether all is well, a sentence)
    refused : called with every Rejected that is not raised
    wake    : called when there is something to tick for
    age     : joint names -> time since the measured positions came (n,) [s]
    """

    def __init__(self, values: Mapping[str, Any], where: Callable[[tuple[str, ...]], np.ndarray],
                 told: Callable[[bool, str], None], refused: Callable[[Rejected], None], wake: Callable[[], None],
                 age: Callable[[tuple[str, ...]], np.ndarray] = lambda names: np.zeros(len(names))):
        self.values = values
        self._told, self._refused, self._wake = told, refused, wake
        self._whereabouts = StartState(where, age)
        self._lock = threading.RLock()
        self._maker, self._solver = (ThreadPoolExecutor(1, thread_name_prefix=name) for name in ("maker", "solver"))
        self._wanted: tuple[Robot, Limits] | None = None
        self._equipment: ExecutionContext | None = None
        self.motion: ExecutedMotion | None = None
        self._making: Goal | None = None
        self._pending: Goal | None = None
        self._message = ""
        self._unknown: dict[str, str] = {}  # limits, by quantity, as was said
        self._count = 0
        self._failures = 0  # of the last ticks
        self.paused, self.override = False, 1.0

    def close(self) -> None:
        for worker in (self._maker, self._solver):
            worker.shutdown(wait=True, cancel_futures=True)

    @property
    def phase(self) -> Phase:
        motion = self.motion
        if motion is None:
            return Phase.NO_MODEL if self._wanted is None else Phase.PREPARING if self._making is not None else Phase.IDLE
        if not motion.begun:
            return Phase.WAITING
        if motion.stopped:
            return Phase.STOPPING
        return Phase.PAUSED if self.paused and motion.scaler.time_scaling.k < GONE else Phase.MOVING

    # ------------------------------------------------------------------ what is asked of it

    def use(self, robot: Robot, limits: Limits) -> None:
        """A robot, a payload, limits: for what moves, and for what will."""
        with self._lock:
            self._wanted = wanted = robot, limits
            if self.motion is not None and robot.joint_names != self.motion.joint_names:
                self.stop(OTHER_JOINTS, well=False)
        self._maker.submit(self._guarded, self._equip, wanted)

    def check(self, goal: Goal, now: int) -> None:
        """Raises Rejected if it would not be taken at time now [ns]."""
        late = (now - goal.start) * 1e-9 - goal.duration
        if goal.start and late > 0.0:
            raise Rejected("too_late", f"by its stamp it should have ended {late:.3f} s ago; a stamp of zero means at once")
        if (self.motion or self._making) and self.values["on_new_trajectory"] == "refuse":
            raise Rejected("busy", "another trajectory is not at its end, and on_new_trajectory is refuse")

    def take(self, goal: Goal, now: int) -> None:
        """A trajectory, read for the robot in use, at time now [ns]. Raises Rejected."""
        with self._lock:
            self.check(goal, now)
            if self._waiting is not None:
                self._refuse_waiting(Rejected("replaced", "another trajectory came before this one had begun"))
            if self.motion is not None:
                self._pending = goal
            else:
                self._make(goal, now)

    def pause(self) -> None:
        self._pause(True, "paused")

    def resume(self) -> None:
        self._pause(False, "resumed")

    def _pause(self, paused: bool, word: str) -> None:
        with self._lock:
            changed, self.paused = paused != self.paused, paused
            self._steer()
        if changed:
            self._told(True, word)

    def set_override(self, share: float) -> None:
        """Raises InputError."""
        if not 0.0 <= share <= 1.0:
            raise InputError(f"share is {share}; it must be from 0 to 1")
        with self._lock:
            changed, self.override = share != self.override, float(share)
            self._steer()
        if changed:
            self._told(True, f"override: {share:.4g} of the speed")

    def stop(self, why: str = "it was asked to stop", only: Ended | None = None, well: bool = True) -> bool:
        """End what moves and what waits to, or of these the goal with this `ended`; whether there was anything.

        well : whether that is as it should be
        """
        with self._lock:
            said, motion = [], self.motion
            found = [goal for goal in (self._waiting, self._moving) if goal is not None and only in (None, goal.ended)]
            for goal in found:
                if goal is self._waiting:
                    self._drop("stopped", why)
                    said.append(f"the trajectory that waited is dropped: {why}")
                elif motion is not None and not motion.stopped:
                    motion.stop(why)
                    said.append(f"motion {motion.number} comes to rest: {why}")
        for sentence in said:
            self._told(well, sentence)
        return bool(found)

    def abort(self, why: str) -> None:
        """Forget everything, without coming to rest: the robot is somewhere else."""
        with self._lock:
            moving, waiting = self._moving, self._waiting
            self._drop("stopped", why)
            self.motion = None
            self._whereabouts.forget()
            if moving is not None:
                self._tell(moving, "stopped", why)
        if moving or waiting:
            self._told(False, f"{why}: the motion is given up")

    def broken(self, what: str, error: BaseException, motion: ExecutedMotion | None = None) -> None:
        """Something failed that never should: what moves comes to rest, what waits is dropped, and it is said, once for each
        motion. If it is known to concern one motion, which has ended meanwhile, others go on."""
        with self._lock:
            why = f"{what} failed: {in_words(error)}"
            over = motion is not None and motion is not self.motion
            if over or not self.stop(why, well=False):
                self._told(False, why)

    @property
    def _moving(self) -> Goal | None:
        return self.motion.goal if self.motion is not None and self.motion.begun else None

    @property
    def _waiting(self) -> Goal | None:
        """The goal that has not begun to move: there is never more than one."""
        motion = self.motion
        return self._pending or self._making or (motion.goal if motion is not None and not motion.begun else None)

    def _drop(self, reason: str, sentence: str) -> None:
        """Forget the goal that waits."""
        goal = self._waiting
        self._pending = self._making = None
        if self._moving is None:
            self.motion = None
        if goal is not None:
            self._tell(goal, reason, sentence)

    def _tell(self, goal: Goal, reason: str, sentence: str) -> None:
        """Its sender what became of it; a sender that cannot be told is nobody else's trouble."""
        try:
            goal.ended(reason, sentence)
        except Exception as error:
            self._told(False, f"who sent a trajectory could not be told that it {reason or 'is done'}: {in_words(error)}")

    def _refuse_waiting(self, refusal: Rejected) -> None:
        self._drop(refusal.reason, refusal.detail)
        self._refused(refusal)

    def _steer(self) -> None:
        if self.motion is not None:
            (self.motion.scaler.pause if self.paused else self.motion.scaler.resume)()
            self.motion.scaler.override(self.override)

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
                self.broken("a tick", error)
                if self._failures == FAILURES:
                    self.abort(f"{FAILURES} ticks in a row failed, {in_words(error)}")
                return None

    def _tick(self, now: int, dt: float) -> tuple[ExecutedMotion, Sample] | None:
        motion, pending = self.motion, self._pending
        if motion is None:
            return None
        if not motion.begun:
            if now < motion.goal.start:
                return None
            self._begin(motion, now)
        if pending is not None and now >= pending.start and not motion.stopped:
            self._told(True, f"motion {motion.number} comes to rest for the next trajectory")
            motion.stop("another trajectory came")
        sample = motion.tick(dt)
        self._whereabouts.send(motion.joint_names, sample.reference.q, now)
        self._hear(motion)
        if sample.reference.done:
            self._end(motion, sample, now)
        return motion, sample

    def _begin(self, motion: ExecutedMotion, now: int) -> None:
        """Raises Rejected if the robot has moved since."""
        place, start = self._place(motion.joint_names, now, motion.turns), motion.scaler.plan.path.at(0.0)[0]
        away = np.abs(nearest(place, start, motion.turns) - start)
        if np.fmax.reduce(away, initial=0.0) > self.values["start_tolerance"]:
            worst = int(np.nanargmax(away))
            refusal = Rejected("not_at_start", f"{motion.joint_names[worst]} is {away[worst]:.4g} from where it was when the "
                                              "trajectory came")
            self._drop(refusal.reason, refusal.detail)
            raise refusal
        motion.begun = True
        current, plan = motion.scaler.current.law.duration, motion.scaler.plan.law.duration
        slower = "as planned" if current <= plan else f"slowed, {current:.2f} s at first"
        begins = "is ready, and waits, paused" if self.paused else "begins"
        self._told(True, f"motion {motion.number} {begins}: planned {plan:.2f} s, {slower}")

    def _end(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        reference = sample.reference
        self.motion = None
        path = motion.scaler.plan.path
        share = reference.s / path.length
        arrived = share > 1.0 - GOAL
        place = "at its goal" if arrived else f"stopped at {share:.1%} of its path"
        ended = (f"ended {place} after {reference.t:.2f} s, planned {motion.scaler.plan.law.duration:.2f} s; used "
                 f"{motion.peak:.1%} of {motion.peak_of}")
        self._told(True, f"motion {motion.number} {ended}")
        self._tell(motion.goal, "" if arrived else "stopped", ended if arrived else f"{motion.stopped}: {ended}")
        if self._pending is not None:
            self._make(self._pending, now)

    def _hear(self, motion: ExecutedMotion) -> None:
        message, scaler = self._message, motion.scaler
        self._message = scaler.message
        if scaler.unkept:
            self._give_way(motion, scaler.unkept)
        elif scaler.message and scaler.message != message:
            self._told(False, f"the motion goes on as it was: {scaler.message}")

    def _give_way(self, motion: ExecutedMotion, why: str) -> None:
        """A motion may not go on beyond limits, or with a payload, that it was not made for."""
        if motion is self.motion:
            self.stop(f"it cannot go on with the new limits or payload: {why}", well=False)

    # ------------------------------------------------------------------ what takes longer, in a thread of its own

    def _guarded(self, work: Callable[..., None], *args: Any) -> None:
        """In the maker."""
        try:
            work(*args)
        except BaseException as error:
            self.broken("preparation", error)

    def _make(self, goal: Goal, now: int) -> None:
        self._making, self._pending, self.motion = goal, None, None
        try:
            self._maker.submit(self._guarded, self._made, goal, now)
        except Exception as error:  # no thread can be started any more
            self._give_up(goal, Rejected("internal_error", in_words(error)))

    def _made(self, goal: Goal, now: int) -> None:
        """In the maker."""
        try:
            motion = self._motion(goal, now)
        except Rejected as refusal:
            self._give_up(goal, refusal)
        except BaseException as error:
            reason = "motion_refused" if isinstance(error, RneaError) else "internal_error"
            self._give_up(goal, Rejected(reason, in_words(error)))
        else:
            with self._lock:
                if goal is self._making:  # else it was stopped, or replaced
                    self._making, self.motion, self._message = None, motion, ""
                    self._steer()
                    self._wake()

    def _give_up(self, goal: Goal, refusal: Rejected) -> None:
        with self._lock:
            if goal is self._making:
                self._refuse_waiting(refusal)

    def _motion(self, goal: Goal, now: int) -> ExecutedMotion:
        """Raises RneaError."""
        equipment = self._equipment
        assert equipment is not None  # made before, by the same thread
        if goal.joint_names != equipment.robot.joint_names:
            raise Rejected("no_model", "the robot description was exchanged since the trajectory came")
        place = self._place(goal.joint_names, now, equipment.turns)
        motion = equipment.motion(self._count + 1, goal, place, self.values, self._solver)
        self._count += 1
        return motion

    def _place(self, joint_names: tuple[str, ...], now: int, turns: np.ndarray) -> np.ndarray:
        return self._whereabouts.at(joint_names, now, self.values["start_tolerance"], turns)

    def _equip(self, wanted: tuple[Robot, Limits]) -> None:
        """In the maker: what is needed to move this robot, and for what moves already."""
        if wanted is not self._wanted:  # overtaken while it waited
            return
        robot, limits = wanted
        self._equipment = equipment = execution_context(robot, limits, self._equipment)
        motion = self.motion
        if motion is not None and motion.joint_names == robot.joint_names:
            self._change(motion, equipment)
        elif equipment.problem:
            self._told(False, f"no trajectory can be executed: {equipment.problem}")
        said, self._unknown = self._unknown, equipment.unknown()
        for quantity, text in self._unknown.items():
            if text and said.get(quantity) != text:
                self._told(False, text)

    def _change(self, motion: ExecutedMotion, equipment: ExecutionContext) -> None:
        try:
            with self._lock:
                motion.carry(equipment.robot, equipment.limits)
            constraints = equipment.constraints_further_on(motion)
            with self._lock:
                motion.scaler.change(constraints)
        except BaseException as error:
            with self._lock:
                self._give_way(motion, in_words(error))
