"""Motion that follows the action chunks of a learned policy: a ChunkExecutor, executed as any other motion.

The first chunk begins a motion where the robot is. Later ones replace its committed trajectory from a splice time on. Where
the controller executes whole trajectories, each committed one is published with its stop behind it (`PublishedChunks`): the
robot comes to rest on it, even if this process ends. Where single points are streamed, the motion has its own time, which a
late tick delays. The motion ends at rest, once no chunk was accepted for `policy.timeout`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import Rejected, some
from ..model.tree import Limits
from ..robots.robot import Robot
from ..trajectory.chunk_executor import ChunkExecutor, ChunkOptions, ChunkResult
from ..trajectory.sample_torques import DECLARED
from ..trajectory.trajectory_scaler import Reference
from .executed_motion import STREAM, ExecutedMotion, ExecutionContext, Progress, rejecting
from .goal import Goal, OnEnd
from .joint_states import unwrap_to
from .tracking_monitor import TrackingMonitor

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
        self.change_error = ""
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
