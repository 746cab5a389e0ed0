"""Executed motion: the references of one trajectory or policy, the torques that they need, and the limit that binds.

`TrajectoryMotion` executes a trajectory on its path, `PolicyMotion` the action chunks of a learned policy by a ChunkExecutor.

Of a policy the first chunk begins a motion where the robot is. Later ones replace its committed trajectory from a splice time
on. Where the controller executes whole trajectories, each committed one is published with its stop behind it
(`PublishedChunks`): the robot comes to rest on it, even if this process ends. Where single points are streamed, the motion
has its own time, which a late tick delays. The motion ends at rest, once no chunk was accepted for `policy.timeout`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError, Rejected, in_words, some
from ..model.tree import Limits
from ..robots.robot import Robot
from ..trajectory.chunk_executor import ChunkExecutor, ChunkOptions, ChunkResult
from ..trajectory.constraints import Constraints
from ..trajectory.limit_utilization import BindingLimit, LimitUtilization, resolve_limits
from ..trajectory.path import Path
from ..trajectory.path_dynamics import PathDynamics
from ..trajectory.rolling_trajectory import Quantities, RollingTrajectory
from ..trajectory.sample_torques import DECLARED, CommandedEffort, TorqueStream
from ..trajectory.scaled_plan import plan_from_waypoints
from ..trajectory.time_law import TimeLaw
from ..trajectory.trajectory_scaler import Reference, TrajectoryScaler
from .goal import Goal, OnEnd, anchor_to_start, check_position_limits, rejecting
from .joint_states import continuous_joints, unwrap_to
from .tracking_monitor import TrackingMonitor

STREAM, TRAJECTORY, HORIZON = OUTPUTS = ("points", "trajectory", "horizon")  # values of the parameter `output`
LATE_TICK_SHARE, MAX_STEPS_PER_TICK = 0.5, 20  # lateness in control periods from which a tick advances in several steps
GOAL_TOL = 1e-9  # share of the path within which a motion is at its end
PAUSED_RATE = 1e-3  # share of the speed below which a paused motion is reported as paused
SAME_POINT_TOL = 1e-9  # rad, m; extent of points that are all the same


def interpolated_quantities(robot: Robot, constraints: Constraints) -> Quantities:
    """Return the function of q, qd, qdd, qddd whose peaks a controller's interpolation must keep.

    These are torques, and torque rates where anything bounds them. The dynamics of robots with loops take too long here:
    acceleration and jerk instead.
    """
    orders = 2 if constraints.third_order else 1
    if robot.is_fixed_tree:
        return lambda *motion: np.concatenate(robot.torque_and_rate(*motion)[:orders], axis=1)
    return lambda *motion: np.concatenate(motion[2:2 + orders], axis=1)


class Sample(NamedTuple):
    """Sample of an executed motion: a reference, its torques and the state of scaling.

    effort, effort_rate                     : (n,) whole joint torque [N m] and its rate
    commanded_effort, commanded_effort_rate : (n,) values for the robot's controller
    share, planned_time, delay, speed : see Progress
    binding                           : the most used limit
    """

    reference: Reference
    effort: np.ndarray
    effort_rate: np.ndarray
    commanded_effort: np.ndarray
    commanded_effort_rate: np.ndarray
    share: float
    planned_time: float
    delay: float
    speed: float
    binding: BindingLimit


class InverseTimeLaw:
    """Inverse t(s) of a time law for one s after another, in microseconds: Newton's method from the last result."""

    MAX_ITERATIONS, TIME_TOL_S = 60, 1e-10
    REST_SHARE = 1e-3  # of the largest speed, below which the plan counts as at rest

    def __init__(self, law: TimeLaw):
        self._law, self._breaks, self._nodes = law, law.breaks.tolist(), law.coefficients[:, 0].tolist()
        self._min_speed = self.REST_SHARE * float(law.sample_pieces()[0][1].max())
        self._last = 0.0

    def at(self, s: float) -> tuple[float, float]:
        """Return the planned time at s [s], and the planned speed there, NaN where the plan all but rests."""
        k = min(max(bisect_right(self._nodes, s) - 1, 0), len(self._nodes) - 1)
        low, high = self._breaks[k], self._breaks[k + 1]
        t = self._last if low < self._last < high else 0.5 * (low + high)
        speed = 0.0
        for _ in range(self.MAX_ITERATIONS):
            s_at_t, speed, _, _ = self._law.at(t)
            low, high = (low, t) if s_at_t > s else (t, high)
            newton = t - (s_at_t - s) / speed if speed > 0.0 else low
            newton = newton if low < newton < high else 0.5 * (low + high)  # bisection outside the bracket
            t, change = newton, abs(newton - t)
            if change < self.TIME_TOL_S:
                break
        self._last = t
        return t, speed if speed > self._min_speed else float("nan")


class PublishedTrajectory(Protocol):
    """Trajectory that a controller executes by its own clock, replaced from a splice time on when it changes."""

    @property
    def points(self) -> Sequence[Any]:
        """Times (count,) [s] since the begin of the motion, q, qd, qdd (count, n), to rest; more may follow."""

    @property
    def is_fresh(self) -> bool:
        """Return whether the points are not published yet."""

    @property
    def published(self) -> bool:
        """Return whether anything was published."""

    @property
    def lead_time(self) -> float:
        """Time between a request for a change and its splice time [s]."""

    @property
    def splice_time(self) -> float:
        """Time at which the trajectory leaves the one before [s]."""

    @property
    def send_deadline(self) -> float:
        """Time by which a fresh trajectory must be published [s]."""

    def mark_published(self) -> None:
        """Record that the fresh trajectory is published."""

    def withdraw(self) -> None:
        """Return to the trajectory before: the fresh one was not published in time."""

    def double_lead_time(self) -> None:
        """Double the lead time: a change was too late."""


class Progress(NamedTuple):
    """State of a motion at one reference.

    share        : executed share of the path, 0 to 1
    planned_time : time at which the plan passes this point [s]
    delay        : time behind the plan, pauses and overrides excluded [s]
    speed        : speed as a share of the planned one; NaN where the plan rests
    """

    share: float
    planned_time: float
    delay: float
    speed: float


class ExecutedMotion(ABC):
    """Goal that a robot executes, or is ready to execute.

    number        : counted from 1
    start_ns      : time at which it begins [ns]
    limits        : limits in use
    monitor       : monitor of the robot that follows it
    stop_message, stop_reason : why it must stop; empty while it may go on
    final_sample  : last sample, once its reference rests at the end
    control_steps : references (q, qd, qdd) of the last tick, one for each control period; the last is that of its sample
    message       : why a request is not done; empty if it is
    change_error  : why other limits or another payload cannot be kept; empty if they can
    change_excess : excess of other limits until the motion has slowed down; empty if no limit is exceeded
    path          : path that it follows, where that is known from the beginning
    """

    message = change_error = change_excess = ""
    path: Path | None = None

    @property
    @abstractmethod
    def rolling(self) -> PublishedTrajectory | None:
        """Trajectory that the controller executes, where single points are not streamed."""

    def __init__(self, number: int, goal: Goal, robot: Robot, limits: Limits, monitor: TrackingMonitor,
                 commanded_effort: str = DECLARED):
        self.number, self.goal = number, goal
        self.start_ns = 0
        self.joint_names = robot.joint_names
        self.monitor = monitor
        self.stop_message = self.stop_reason = ""
        self.final_sample: Sample | None = None
        self.control_steps: list[Reference] = []
        self.peak_utilization, self.peak_limit = 0.0, ""
        self._torques: TorqueStream | None = None
        self._commanded_contains = commanded_effort
        self.set_robot(robot, limits)

    def set_robot(self, robot: Robot, limits: Limits) -> None:
        """Compute torques and monitor with another payload or other limits from now on."""
        self.limits = limits
        self._torques, self.continuous = TorqueStream(robot, self._torques), continuous_joints(robot.joint_types, limits)
        self._commanded = CommandedEffort(robot, self._commanded_contains)
        self.monitor.set_robot(robot, limits)
        self.root_link = robot.tree.root_link
        if (utilization := LimitUtilization.of(robot, limits)).labels:
            self._limit_utilization = utilization

    # ------------------------------------------------------------------ what a motion of each kind defines

    @property
    @abstractmethod
    def start_position(self) -> np.ndarray:
        """Position (n,) at which it begins."""

    @property
    @abstractmethod
    def is_paused(self) -> bool:
        """Return whether it rests because of a pause."""

    @abstractmethod
    def start(self, now: int) -> None:
        """Begin at time now [ns]."""

    @abstractmethod
    def brake(self) -> None:
        """Come to rest, and end there."""

    @abstractmethod
    def set_speed(self, paused: bool, share: float) -> None:
        """Rest while paused; else go on at a share of the speed, 0 to 1."""

    @abstractmethod
    def prepare_change(self, context: ExecutionContext) -> Callable[[], None]:
        """Return the function that changes to other limits or another payload. Called by a worker; raises InputError."""

    @abstractmethod
    def next_reference(self, dt: float, now: int, clock: Callable[[], int], can_splice: Callable[[int, int], bool],
                       period: float) -> Reference:
        """Return the reference of a tick; arguments as of `tick`."""

    @abstractmethod
    def progress(self, reference: Reference) -> Progress:
        """Return the progress at a reference."""

    @abstractmethod
    def describe_timing(self) -> str:
        """Return the planned duration, for the log."""

    @abstractmethod
    def describe_end(self, last: Reference) -> tuple[bool, str]:
        """Return whether the motion at rest is at its goal, and a sentence for the log."""

    @abstractmethod
    def diagnostics(self, reference: Reference) -> dict[str, object]:
        """Return values for /diagnostics."""

    # ------------------------------------------------------------------ common

    def check_start(self, position: np.ndarray, tolerance: float) -> None:
        """Raise Rejected if the robot's position (n,), NaN where unknown, is not where the motion begins."""
        start = self.start_position
        distance = np.abs(unwrap_to(position, start, self.continuous) - start)
        if np.fmax.reduce(distance, initial=0.0) > tolerance:
            worst = int(np.nanargmax(distance))
            raise Rejected("not_at_start", f"{self.joint_names[worst]} is {distance[worst]:.4g} from where it was when the "
                                           "trajectory came")

    def stop(self, message: str, reason: str = "stopped") -> None:
        """Come to rest, and end there."""
        if not self.stop_message:
            self.stop_message, self.stop_reason = message, reason
        self.brake()

    def tick(self, dt: float, now: int, clock: Callable[[], int],
             can_splice: Callable[[int, int], bool] = lambda requested, now: True, period: float = np.inf) -> Sample:
        """Return the sample dt [s] after the last tick; of whole trajectories the one at time now [ns].

        After the end the last sample is returned again.

        clock      : time [ns], by which a change of a whole trajectory must be ready
        can_splice : see TrajectoryFollower.can_splice
        period     : control period [s]; a late tick advances in steps of it (`control_steps`), so that a controller never has
                     to interpolate over more than one period
        """
        if self.final_sample is not None:
            return self.final_sample
        reference = self.next_reference(dt, now, clock, can_splice, period)
        assert self._torques is not None
        found = self._torques(reference.q, reference.qd, reference.qdd, reference.qddd)
        binding = self._limit_utilization.binding(found.tau, found.tau_rate, reference.q, reference.qd, reference.qdd,
                                                  reference.qddd)
        if binding.utilization > self.peak_utilization:
            self.peak_utilization, self.peak_limit = binding.utilization, binding.description
        commanded = self._commanded(found, reference.qd, reference.qdd)
        sample = Sample(reference, found.tau, found.tau_rate, *commanded, *self.progress(reference), binding)
        self.final_sample = sample if reference.done else None
        return sample

    def advance_in_steps(self, advance: Callable[[float], Reference], dt: float, period: float) -> Reference:
        """Advance by dt [s] in steps of about a control period, and record their references."""
        count = int(np.clip(np.ceil(dt / period - LATE_TICK_SHARE), 1, MAX_STEPS_PER_TICK))
        for k in range(count):
            reference = advance(dt / count)
            self.control_steps = [*(self.control_steps if k else ()), reference]
            if reference.done:
                break
        return reference

    def can_splice_in_time(self, now: int) -> bool:
        """Return whether a fresh trajectory reaches the controller before its splice time, if it is sent now [ns].

        If not, it is withdrawn with the next tick; where the controller has nothing of the motion yet, the motion begins
        later.
        """
        assert self.rolling is not None
        if 1e-9 * (now - self.start_ns) <= self.rolling.send_deadline:
            return True
        if self.rolling.published:
            self.rolling.withdraw()
        else:
            self.start(now)
        return False

    def mark_sent(self, now: int) -> float:
        """Record that the fresh trajectory has been sent by now [ns]. Returns by how much that may be too late [s]."""
        assert self.rolling is not None
        late = 1e-9 * (now - self.start_ns) - self.rolling.splice_time if self.rolling.published else 0.0
        self.rolling.mark_published()
        if late > 0.0:
            self.rolling.double_lead_time()
        return late


class TrajectoryMotion(ExecutedMotion):
    """Motion of a trajectory, on its path.

    start_ns : of a rolling trajectory, after the lead time for its first message
    """

    def __init__(self, number: int, goal: Goal, scaler: TrajectoryScaler, robot: Robot, limits: Limits,
                 monitor: TrackingMonitor, rolling: RollingTrajectory | None = None, commanded_effort: str = DECLARED):
        self.scaler, self._rolling, self.path = scaler, rolling, scaler.plan.path
        self._change_requested_at = 0  # time since which a change waits [ns], 0 if none does
        self._inverse_plan = InverseTimeLaw(scaler.plan.law)
        super().__init__(number, goal, robot, limits, monitor, commanded_effort)

    @property
    def rolling(self) -> RollingTrajectory | None:
        """Trajectory that the controller executes, where single points are not streamed."""
        return self._rolling

    def set_robot(self, robot: Robot, limits: Limits) -> None:
        """Compute torques and monitor with another payload or other limits from now on."""
        super().set_robot(robot, limits)
        if self.rolling is not None:
            self.rolling.quantities = interpolated_quantities(robot, self.scaler.constraints)

    @property
    def start_position(self) -> np.ndarray:
        """Position (n,) at which it begins."""
        return self.scaler.plan.path.at(0.0)[0]

    @property
    def is_paused(self) -> bool:
        """Return whether it rests because of a pause."""
        return self.scaler.time_scaling.k < PAUSED_RATE

    @property
    def message(self) -> str:  # type: ignore[override]
        """Return why a request is not done; empty if it is."""
        return self.scaler.message

    @property
    def change_error(self) -> str:  # type: ignore[override]
        """Return why other limits or another payload cannot be kept; empty if they can."""
        return self.scaler.change_error

    @property
    def change_excess(self) -> str:  # type: ignore[override]
        """Return the excess of other limits until the motion has slowed down; empty if no limit is exceeded."""
        return self.scaler.change_excess

    def start(self, now: int) -> None:
        """Begin at time now [ns]."""
        self.start_ns = now + round(self.rolling.lead_time * 1e9) if self.rolling is not None else now

    def brake(self) -> None:
        """Come to rest on the path, and end there."""
        self.scaler.stop()

    def set_speed(self, paused: bool, share: float) -> None:
        """Rest on the path while paused; else go on at a share of the speed, 0 to 1."""
        (self.scaler.pause if paused else self.scaler.resume)()
        self.scaler.override(share)

    def prepare_change(self, context: ExecutionContext) -> Callable[[], None]:
        """Return the function that changes to other limits or another payload, on the same path. Raises InputError."""
        constraints = context.constraints(self.scaler.plan.path)
        return partial((self.rolling or self.scaler).change, constraints)

    def next_reference(self, dt: float, now: int, clock: Callable[[], int], can_splice: Callable[[int, int], bool],
                       period: float) -> Reference:
        """Return the reference of a tick; arguments as of `tick`."""
        if self.rolling is None:
            return self.advance_in_steps(self.scaler.tick, dt, period)
        rolling, t = self.rolling, 1e-9 * (now - self.start_ns)
        if not rolling.needs_replan(t):
            self._change_requested_at = 0
        else:
            self._change_requested_at = self._change_requested_at or now
            if can_splice(self._change_requested_at, now) and rolling.replan(lambda: 1e-9 * (clock() - self.start_ns)):
                self._change_requested_at = 0
        return rolling.at(t)

    def progress(self, reference: Reference) -> Progress:
        """Return the progress at a reference."""
        planned_time, planned_speed = self._inverse_plan.at(reference.s)
        return Progress(reference.s / self.scaler.plan.path.length, planned_time, self.scaler.due - planned_time,
                        reference.sd / planned_speed)

    def describe_timing(self) -> str:
        """Return planned and scaled duration, for the log."""
        current, plan = self.scaler.current.law.duration, self.scaler.plan.law.duration
        return f"planned {plan:.2f} s, " + ("as planned" if current <= plan else f"scaled to {current:.2f} s")

    def describe_end(self, last: Reference) -> tuple[bool, str]:
        """Return whether the motion at rest is at its goal, and a sentence for the log."""
        plan = self.scaler.plan
        share = last.s / plan.path.length
        at_goal = share > 1.0 - GOAL_TOL
        where = "at its goal" if at_goal else f"stopped at {share:.1%} of its path"
        return at_goal, (f"ended {where} after {last.t:.2f} s, planned {plan.law.duration:.2f} s; used "
                         f"{self.peak_utilization:.1%} of {self.peak_limit}")

    def diagnostics(self, reference: Reference) -> dict[str, object]:
        """Return values for /diagnostics."""
        return {"planned_s": f"{self.scaler.plan.law.duration:.3f}",
                "expected_s": f"{self.scaler.current.law.duration:.3f}"}  # without pauses and overrides to come


class ExecutionContext(NamedTuple):
    """Robot, limits and dynamics along paths from which motions are made.

    dynamics : None where there can be none; `problem` says why
    """

    robot: Robot
    limits: Limits
    dynamics: PathDynamics | None
    problem: str = ""

    @classmethod
    def of(cls, robot: Robot, limits: Limits) -> ExecutionContext:
        """Make the context of a robot. Errors become its `problem` and are not raised: it still replaces the one before."""
        try:
            dynamics, limits = PathDynamics(robot), resolve_limits(robot, limits)
            dynamics.limits(limits)
            _check_position_ranges(robot, limits)
            dynamics.drives()
            return cls(robot, limits, dynamics)
        except BaseException as error:
            return cls(robot, limits, None, in_words(error))

    def make_motion(self, number: int, goal: Goal, position: np.ndarray, parameters: Mapping[str, Any],
                    solver: Executor) -> TrajectoryMotion:
        """Make the motion of a goal from a position (n,). Raises RneaError, as Rejected where the goal is the reason."""
        robot, limits = self.robot, self.limits
        goal = anchor_to_start(goal, position, parameters["start_tolerance"], parameters["start_mismatch"], limits.velocity,
                               self.continuous)
        if np.ptp(goal.q, axis=0).max() < SAME_POINT_TOL:
            raise Rejected("nowhere_to_go", "start and points are all equal: the robot is at the goal already")
        with rejecting("path"):
            plan = plan_from_waypoints(goal.q, goal.times, goal.v, goal.a, parameters["interpolation"])
        with rejecting("limits"):
            constraints = self.constraints(plan.path)
        check_position_limits(plan.path, limits, robot.joint_names)
        streamed = parameters["output"] == STREAM
        with rejecting("gravity"):
            scaler = TrajectoryScaler(constraints, plan, parameters["catch_up"], not parameters["solve_first"], solver)
        rolling = None
        if not streamed:
            horizon = parameters["horizon"] if parameters["output"] == HORIZON else np.inf
            rolling = RollingTrajectory(scaler, interpolated_quantities(robot, constraints), horizon, parameters["lead"])
        monitor = TrackingMonitor(robot, limits, goal, parameters, 0.0 if streamed else parameters["lead"])
        return TrajectoryMotion(number, goal, scaler, robot, limits, monitor, rolling, parameters["commanded_effort"])

    @property
    def continuous(self) -> np.ndarray:
        """Mask (n,) of the joints that may be wrapped."""
        return continuous_joints(self.robot.joint_types, self.limits)

    def constraints(self, path: Path) -> Constraints:
        """Return all limits along a path. Raises InputError."""
        return self.require_dynamics().constraints(path, self.limits)

    def require_dynamics(self) -> PathDynamics:
        """Return the dynamics along paths. Raises InputError where there are none."""
        if self.dynamics is None:
            raise InputError(self.problem)
        return self.dynamics

    def missing_limits(self) -> dict[str, str]:
        """Return a warning for each of effort and effort_rate; empty where all its limits are known."""
        found = {}
        for quantity in ("effort", "effort_rate"):
            limit = getattr(self.limits, quantity)
            if quantity == "effort_rate":  # one of the two limits of rates is enough
                limit = np.fmin(limit, self.limits.commanded_effort_rate)
            names = [name for name, value in zip(self.robot.joint_names, limit) if not np.isfinite(value)]
            words = quantity.replace("_", " ")
            found[quantity] = f"no {words} limit of {some(names)} is known: not enforced" if names else ""
        return found


def _check_position_ranges(robot: Robot, limits: Limits) -> None:
    """Raise InputError where the position limits of a joint leave no position."""
    for name, lower, upper in zip(robot.joint_names, limits.lower, limits.upper, strict=True):
        if lower > upper:
            raise InputError(f"the position limits of {name} are {lower:g} to {upper:g}: no position is inside")


OPTION_NAMES = ("lead", "max_age", "max_step", "tolerance", "max_stretch", "blending", "ensemble_decay", "alignment",
                "alignment_time")  # of ChunkOptions; parameters policy.*
STILL_SPEED = 1e-3  # share of the speed below which a motion is held


class ActionChunk(NamedTuple):
    """Received chunk: stamp of its observation [ns], names and positions (count, len(names)), times (count,) [s] or None."""

    stamp: int
    joint_names: tuple[str, ...]
    positions: Any
    times: Any


@dataclass(frozen=True)
class PolicyGoal(Goal):
    """Goal of a motion that follows a policy. Its only point is unknown: it begins where the robot is."""


def policy_goal(joint_names: tuple[str, ...], on_end: OnEnd) -> PolicyGoal:
    """Return the goal of a motion of these joints."""
    return PolicyGoal(joint_names, np.zeros(1), np.zeros((1, len(joint_names))), None, None, (), on_end=on_end)


@dataclass(frozen=True)
class PublishingOptions:
    """Options of published chunks.

    overlap_s      : part of the trajectory before the present time that is published again [s]
    deadline_share : share of the lead time before the splice by which a trajectory must be published
    """

    overlap_s: float = 0.3
    deadline_share: float = 0.25


OPTIONS = PublishingOptions()


class PublishedChunks:
    """Committed trajectory of a ChunkExecutor, published to a controller that executes it by its own clock.

    points : times (count,) [s] since the begin of the motion, q, qd, qdd (count, n)
    """

    published = True  # the controller rests where the motion begins: the first trajectory may be late as any other

    def __init__(self, chunks: ChunkExecutor):
        self._chunks = chunks
        self._trajectory = chunks.committed()
        self.points = self._trajectory.waypoints(0.0)
        self.is_fresh = False

    def update(self, t: float) -> None:
        """Prepare the committed trajectory for publication at time t [s], if it has changed."""
        self.is_fresh = self._chunks.has_changed
        if self.is_fresh:
            self._trajectory = self._chunks.committed()
            self.points = self._trajectory.waypoints(t - OPTIONS.overlap_s)

    @property
    def lead_time(self) -> float:
        """Time between the arrival of a chunk and its splice time [s]."""
        return self._chunks.lead

    @property
    def splice_time(self) -> float:
        """Time at which the trajectory leaves the one before [s]."""
        return self._trajectory.splice_time

    @property
    def send_deadline(self) -> float:
        """Time by which a fresh trajectory must be published [s]."""
        return self.splice_time - OPTIONS.deadline_share * self.lead_time

    def mark_published(self) -> None:
        """Record that the fresh trajectory is published."""
        self.is_fresh = False
        self._chunks.mark_passed_on(self._trajectory)

    def withdraw(self) -> None:
        """Return to the trajectory that was published: the fresh one is too late."""
        self.is_fresh = False
        self._chunks.withdraw()
        self.double_lead_time()

    def double_lead_time(self) -> None:
        """Double the lead time: a trajectory was too late."""
        self._chunks.double_lead()


class PolicyMotion(ExecutedMotion):
    """Motion that follows the chunks of a policy."""

    def __init__(self, number: int, goal: Goal, chunks: ChunkExecutor, position: np.ndarray, robot: Robot, limits: Limits,
                 monitor: TrackingMonitor, streamed: bool, timeout: float, commanded_effort: str = DECLARED):
        """Rest at a position (n,). timeout: time at rest without a chunk after which the motion ends [s]."""
        self._chunks, self._position, self._timeout = chunks, position, timeout
        chunks.reset(position, 0.0)
        self._rolling = None if streamed else PublishedChunks(chunks)
        self._speed, self._ends = (False, 1.0), False
        self._t = self._lost = 0.0  # time of the motion, and time that late ticks of streamed points left out [s]
        self._fresh_at = 0.0  # time of the last accepted chunk [s]
        super().__init__(number, goal, robot, limits, monitor, commanded_effort)

    @property
    def rolling(self) -> PublishedChunks | None:
        """Trajectory that the controller executes, where single points are not streamed."""
        return self._rolling

    @property
    def start_position(self) -> np.ndarray:
        """Position (n,) at which it begins."""
        return self._position

    @property
    def is_paused(self) -> bool:
        """Return whether it rests because of a pause."""
        return self._is_held and self._t >= self._chunks.end_time

    @property
    def _is_held(self) -> bool:
        paused, share = self._speed
        return paused or share < STILL_SPEED

    def start(self, now: int) -> None:
        """Begin at time now [ns]."""
        self.start_ns = now

    def brake(self) -> None:
        """Come to rest, and end there; chunks are rejected."""
        if not self._ends:
            self._ends = True
            self._chunks.stop(self._t)

    def set_speed(self, paused: bool, share: float) -> None:
        """Rest while paused, chunks are rejected; else execute the next chunks at a share of the policy's speed, 0 to 1."""
        if (paused, share) == self._speed:
            return
        was_held, self._speed = self._is_held, (paused, share)
        if self._is_held and not was_held:
            self._chunks.stop(self._t)
        elif was_held and not self._is_held and not self._ends:
            self._chunks.resume()
            self._fresh_at = self._t  # the timeout begins anew
        if not self._is_held:
            self._chunks.set_speed(share)

    def prepare_change(self, context: ExecutionContext) -> Callable[[], None]:
        """Return the function that changes to other limits or another payload. Raises InputError."""
        excess = self._chunks.set_robot(context.robot, context.limits)

        def change() -> None:
            self.change_error = f"no motion to rest keeps {excess}" if excess else ""

        return change

    def push(self, chunk: ActionChunk, period: float, now: int) -> ChunkResult:
        """Execute a chunk that came at time now [ns]; period: of points without times [s]. Called by any thread."""
        if self._is_held and not self._ends:
            word = "paused: call ~/resume" if self._speed[0] else "held by an override of zero"
            return ChunkResult("paused", f"the motion is {word}")
        if chunk.times is None and not period > 0.0:
            return ChunkResult("bad_times", "the points have no times: give time_from_start, or set policy_frequency")
        t = self._t if self.rolling is None else 1e-9 * (now - self.start_ns)
        stamp = 1e-9 * (chunk.stamp - self.start_ns) - self._lost
        result = self._chunks.push(stamp, self._unwrapped(chunk), None if chunk.times is not None else period, chunk.times,
                                   chunk.joint_names, t)
        if result.accepted:
            self._fresh_at = max(t, self._fresh_at)
        return result

    def _unwrapped(self, chunk: ActionChunk) -> Any:
        """Return the positions with continuous joints at the motion's count of turns."""
        known = all(name in self.joint_names for name in chunk.joint_names)
        try:
            q = np.asarray(chunk.positions, dtype=float)
        except ValueError:  # rows of different lengths
            return chunk.positions
        if not known or q.ndim != 2 or not len(q) or q.shape[1] != len(chunk.joint_names):
            return chunk.positions  # rejected with a reason
        columns = [self.joint_names.index(name) for name in chunk.joint_names]
        return q + unwrap_to(q[0], self._chunks.sample_ahead(self._t)[0][columns], self.continuous[columns]) - q[0]

    def next_reference(self, dt: float, now: int, clock: Callable[[], int], can_splice: Callable[[int, int], bool],
                       period: float) -> Reference:
        """Return the reference of a tick; arguments as of `tick`."""
        if self.rolling is None:
            reference = self.advance_in_steps(self._advance, dt, period)
            self._lost = 1e-9 * (now - self.start_ns) - self._t
            return reference
        self._t = max(1e-9 * (now - self.start_ns), self._t)
        reference = self._reference()
        self.rolling.update(self._t)
        return reference

    def _advance(self, dt: float) -> Reference:
        self._t += dt
        return self._reference()

    def _reference(self) -> Reference:
        t, (q, qd, qdd, qddd) = self._t, self._chunks.sample(self._t)
        rests = t >= self._chunks.end_time
        is_over = self._ends or (not self._is_held and t - max(self._fresh_at, self._chunks.end_time) >= self._timeout)
        return Reference(t, q, qd, qdd, qddd, t, 1.0, 0.0, 0.0, 1.0 / self._chunks.progress(t)[1], bool(rests and is_over))

    def progress(self, reference: Reference) -> Progress:
        """Return the progress along the committed trajectory."""
        delay, stretch = self._chunks.progress(reference.t)
        end, since = self._chunks.end_time, self._fresh_at
        share = 1.0 if reference.t >= end else (reference.t - since) / max(end - since, 1e-9)
        return Progress(min(max(share, 0.0), 1.0), reference.t - delay, delay,
                        np.nan if reference.t >= end else 1.0 / stretch)

    def describe_timing(self) -> str:
        """Return what it follows, for the log."""
        return "it follows the chunks of a policy"

    def describe_end(self, last: Reference) -> tuple[bool, str]:
        """Return whether the motion ended by itself, and a sentence for the log."""
        counts = self._chunks.diagnostics().counts
        others = sum(counts.values()) - counts.get("accepted", 0)
        why = "was stopped" if self._ends else f"ended, as no chunk was accepted for {self._timeout:g} s,"
        return not self._ends, (f"{why} at rest after {last.t:.2f} s; {counts.get('accepted', 0)} chunks accepted, {others} "
                                f"rejected; used {self.peak_utilization:.1%} of {self.peak_limit}")

    def diagnostics(self, reference: Reference) -> dict[str, object]:
        """Return values for /diagnostics."""
        found = self._chunks.diagnostics()
        return {"policy.accepted": found.counts.get("accepted", 0),
                "policy.rejected": sum(found.counts.values()) - found.counts.get("accepted", 0),
                "policy.slowed_share": f"{found.slowed_share:.4f}", "policy.binding": found.binding_limit,
                "policy.delay_s": f"{found.delay:.4f}", "policy.observation_age_s": f"{found.observation_age:.4f}",
                "policy.time_to_rest_s": f"{found.time_to_rest:.4f}", "policy.lead_s": f"{found.lead:g}"}


def make_policy_motion(context: ExecutionContext, number: int, goal: Goal, position: np.ndarray,
                       parameters: Mapping[str, Any]) -> PolicyMotion:
    """Return a motion at rest at a position (n,). Raises RneaError, as Rejected where the position is the reason."""
    context.require_dynamics()
    unknown = [name for name, q in zip(context.robot.joint_names, position, strict=True) if not np.isfinite(q)]
    if unknown:
        raise Rejected("no_position", f"{some(unknown)}: no joint state contains the position at which the motion begins")
    robot, limits, streamed = context.robot, context.limits, parameters["output"] == STREAM
    options = ChunkOptions(**{name: parameters[f"policy.{name}"] for name in OPTION_NAMES})
    with rejecting("limits"):
        chunks = ChunkExecutor(robot, limits, options)
    goal = replace(goal, q=position[None].copy())
    monitor = TrackingMonitor(robot, limits, goal, parameters, 0.0 if streamed else options.lead)
    with rejecting("start"):
        return PolicyMotion(number, goal, chunks, position, robot, limits, monitor, streamed, parameters["policy.timeout"],
                            parameters["commanded_effort"])
