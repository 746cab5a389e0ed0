"""Demo of ChunkExecutor: a simulated arm executes the chunks of a scripted, noisy policy in three ways, from the same plant.

The policy intends smooth steps between random poses. Five times a second it sends 50 points for 30 Hz, computed from an
observation that is 200 ms old when they arrive. Points are noisy, each chunk is offset from the one before, and some are lost.
The arm has saturating drives and a controller that knows masses and friction only roughly (demo/arms.py).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..io.figures import picture
from ..robots.robot import Robot
from ..sim.plant import CONTROL_PERIOD_S, TrackingResult, follow
from ..trajectory.chunk_executor import ChunkExecutor, ChunkOptions
from ..trajectory.limit_utilization import LimitUtilization
from . import plots
from .arms import Arm
from .plots import STYLE, MovieOptions, ShownMotion, draw_rates, draw_tool_path, rate_shares
from .robot_demo import SEPTIC, CheckResult, text_table


@dataclass(frozen=True)
class PolicyStream:
    """Chunks that the scripted policy sends, and the motion that it intends."""

    rate_hz: float = 30.0  # of the points of a chunk [Hz]
    points: int = 50  # points of a chunk
    period_s: float = 0.2  # time between two chunks [s]
    latency_s: float = 0.2  # age of the observation when a chunk arrives [s]
    noise: float = 0.003  # standard deviation of each point [rad]
    offset: float = 0.03  # largest offset of a chunk, of each joint [rad]
    lost_share: float = 0.1  # share of chunks that are lost
    step_s: float = 1.7  # duration of a step between two poses [s],
    rest_s: float = 0.2  # and of the rest behind it [s]
    duration_s: float = 6.0  # of the demo [s]
    begin_s: float = 0.3  # time of the first step [s]


STREAM = PolicyStream()

LIMIT_SHARE = 0.9  # of limits that the executor uses; the rest is for feedback
EMA_GAIN = 0.3  # of a step of the policy's rate, towards the newest point
RAW, CLAMPED, EXECUTED = "as sent", "EMA and clamp", "ChunkExecutor"
COLOURS = {RAW: "#6b6b6b", CLAMPED: "#c44e00", EXECUTED: "#1f4e79"}  # distinguishable with colour blindness
SLOPE_S = 1e-4  # over which the velocity of points as sent is computed; their jumps are not part of it
MAX_DRAWS = 40  # of random poses at which gravity alone is feasible


class SentChunk(NamedTuple):
    """Chunk: time of arrival and of its observation [s], positions (points, n) for the times stamp + k / rate_hz."""

    arrival: float
    stamp: float
    positions: np.ndarray


def smooth_steps(poses: np.ndarray, t: np.ndarray, step: float, rest: float = 0.0) -> np.ndarray:
    """Return positions (samples, n) at times t (samples,) [s]: seventh-order steps between poses (count, n), with rests."""
    t = np.maximum(t, 0.0)
    k = np.minimum((t // (step + rest)).astype(int), len(poses) - 2)
    u = np.clip((t - k * (step + rest)) / step, 0.0, 1.0)[:, None]
    return poses[k] + (poses[k + 1] - poses[k]) * SEPTIC[0](u)


class Policy:
    """Scripted policy of an arm: smooth steps of seventh order between random poses."""

    def __init__(self, arm: Arm, rng: np.random.Generator):
        """Draw random poses. Raises InputError if gravity is infeasible at all of them."""
        poses: list[np.ndarray] = []
        for _ in range(MAX_DRAWS):
            drawn = [q for q in arm.points(rng) if (np.abs(arm.robot.gravity(q)) < 0.8 * arm.robot.limits.effort).all()]
            poses += drawn
        if len(poses) < 2:
            raise InputError(f"{arm.robot.name} can be held at none of {MAX_DRAWS} random poses")
        self._poses, self._rng = np.array(poses), rng
        self._limits = arm.robot.limits

    def __call__(self, t: Any) -> np.ndarray:
        """Return the intended positions (samples, n) at times t (samples,) [s]."""
        return smooth_steps(self._poses, np.asarray(t, dtype=float) - STREAM.begin_s, STREAM.step_s, STREAM.rest_s)

    def chunks(self, duration: float) -> list[SentChunk]:
        """Return the chunks that arrive, in this order."""
        found, n = [], self._poses.shape[1]
        lower, upper = np.nan_to_num(self._limits.lower, nan=-np.inf), np.nan_to_num(self._limits.upper, nan=np.inf)
        for stamp in np.arange(0.0, duration - STREAM.latency_s, STREAM.period_s).tolist():
            noise = STREAM.noise * self._rng.standard_normal((STREAM.points, n))
            positions = self(stamp + np.arange(STREAM.points) / STREAM.rate_hz) + noise
            positions = np.clip(positions + STREAM.offset * self._rng.uniform(-1.0, 1.0, n), lower, upper)
            if self._rng.random() > STREAM.lost_share:
                found.append(SentChunk(stamp + STREAM.latency_s, stamp, positions))
        return found


class Execution(Protocol):
    """Way to execute chunks."""

    def push(self, chunk: SentChunk) -> None:
        """Take a chunk that arrives."""

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the commanded position, velocity and acceleration (n,) at time t [s]."""


class AsSent:
    """Points of the newest chunk, interpolated linearly at their times."""

    def __init__(self, q: np.ndarray):
        self._chunk: SentChunk | None = None
        self._q = q

    def push(self, chunk: SentChunk) -> None:
        """Take a chunk that arrives."""
        self._chunk = chunk

    def wanted(self, t: float) -> np.ndarray:
        """Return the policy's position (n,) at time t [s]."""
        if self._chunk is None:
            return self._q
        times = self._chunk.stamp + np.arange(STREAM.points) / STREAM.rate_hz
        return np.array([np.interp(t, times, column) for column in self._chunk.positions.T])

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the commanded position, velocity and acceleration (n,) at time t [s]."""
        q = self.wanted(t)
        return q, (self.wanted(t + SLOPE_S) - q) / SLOPE_S, np.zeros_like(q)


class Clamped(AsSent):
    """Exponential moving average of the points at the policy's rate, with steps clamped to the velocity limits."""

    def __init__(self, q: np.ndarray, velocity: np.ndarray):
        super().__init__(q)
        self._step = velocity / STREAM.rate_hz
        self._from, self._to, self._since = q, q, 0.0

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the commanded position, velocity and acceleration (n,) at time t [s]."""
        if t - self._since >= 1.0 / STREAM.rate_hz:
            self._from, self._since = self._to, t
            self._to = self._from + np.clip(EMA_GAIN * (self.wanted(t) - self._from), -self._step, self._step)
        u = (t - self._since) * STREAM.rate_hz
        return self._from + u * (self._to - self._from), (self._to - self._from) * STREAM.rate_hz, np.zeros_like(self._to)


class Executed:
    """Commands of a ChunkExecutor."""

    def __init__(self, robot: Robot, q: np.ndarray):
        # the simulation waits for the executor, however busy the machine is
        self.executor = ChunkExecutor(robot, options=ChunkOptions(limit_share=LIMIT_SHARE, time_limit=60.0))
        self.executor.reset(q, 0.0)
        self.motion: list[np.ndarray] = []

    def push(self, chunk: SentChunk) -> None:
        """Take a chunk that arrives."""
        self.executor.push(chunk.stamp, chunk.positions, period=1.0 / STREAM.rate_hz, now=chunk.arrival)

    def sample(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the commanded position, velocity and acceleration (n,) at time t [s]."""
        self.motion.append(self.executor.sample(t))
        q, qd, qdd, _ = self.motion[-1]
        return q, qd, qdd


class PolicyResult(NamedTuple):
    """Result of one way of execution.

    tracked : simulated motion
    torque, rate : largest commanded torque and torque rate, as shares of their limits
    beyond  : time with a commanded torque rate above its limit [ms]
    off, off_rms : distance of the tool from the policy's intent at the same time: largest and RMS [mm]
    """

    way: str
    tracked: TrackingResult
    torque: float
    rate: float
    beyond: float
    off: float
    off_rms: float

    @property
    def lost(self) -> bool:
        return self.tracked.lost


def run(arm: Arm, policy: Policy, chunks: Sequence[SentChunk], masses: np.ndarray) -> Iterator[tuple[PolicyResult, Execution]]:
    """Yield the result of every way of execution of the same chunks on the same plant, with what executed them."""
    q = policy(np.zeros(1))[0]
    ways: dict[str, Execution] = {RAW: AsSent(q), CLAMPED: Clamped(q, arm.robot.limits.velocity),
                                  EXECUTED: Executed(arm.robot, q)}
    for way, execution in ways.items():
        yield _result(arm, policy, way, _tracked(arm, q, execution, chunks, masses)), execution


def _tracked(arm: Arm, start: np.ndarray, execution: Execution, chunks: Sequence[SentChunk],
             masses: np.ndarray) -> TrackingResult:
    times, waiting = np.arange(0.0, STREAM.duration_s, CONTROL_PERIOD_S), list(chunks)

    def reference(k: int) -> tuple[np.ndarray, ...]:
        t = float(times[k])
        while waiting and waiting[0].arrival <= t:
            execution.push(waiting.pop(0))
        return execution.sample(t)

    return follow(arm.plant(masses), start, times, reference)


def _result(arm: Arm, policy: Policy, way: str, tracked: TrackingResult) -> PolicyResult:
    limits = arm.robot.limits
    rate = np.abs(rate_shares(arm, tracked))
    off = 1e3 * np.linalg.norm(arm.tool_at(tracked.q) - arm.tool_at(policy(tracked.t)), axis=1)
    return PolicyResult(way, tracked, float((np.abs(tracked.commanded) / limits.effort).max()), float(rate.max()),
                        1e3 * CONTROL_PERIOD_S * int((rate > 1.0).any(axis=1).sum()), float(off.max()),
                        float(np.sqrt((off**2).mean())))


TABLE_HEAD = ("execution", "torque / limit", "torque rate / limit", "ms beyond it", "off the intent, mm: RMS (largest)",
              "lost")


def result_table(results: Sequence[PolicyResult]) -> str:
    """Return the table as text."""
    lines = [TABLE_HEAD, *((one.way, f"{one.torque:.2f}", f"{one.rate:.2f}", f"{one.beyond:.0f}",
                            f"{one.off_rms:.1f} ({one.off:.1f})", "yes" if one.lost else "no") for one in results)]
    return text_table(lines)


def result_data(results: Sequence[PolicyResult]) -> dict[str, list[dict[str, Any]]]:
    """Return the numbers for programs, one row per way of execution; off : [mm], beyond : [ms]."""
    names = ("way", "torque", "rate", "beyond", "off", "off_rms", "lost")
    return {"executions": [{name: getattr(one, name) for name in names} for one in results]}


def check_results(robot: Robot, result: PolicyResult, executed: Executed) -> list[CheckResult]:
    """Check the executor; the other ways are for comparison."""
    q, qd, qdd, qddd = np.array(executed.motion).swapaxes(0, 1)
    tau, tau_rate = robot.torque_and_rate(q, qd, qdd, qddd)
    utilization = LimitUtilization.of(robot, robot.limits)
    used = max((utilization.binding(*row) for row in zip(tau, tau_rate, q, qd, qdd, qddd, strict=True)),
               key=lambda one: one.utilization)
    counts = executed.executor.diagnostics().counts
    rejected = ", ".join(f"{reason} {count}" for reason, count in counts.items() if reason != "accepted") or "none"
    return [CheckResult(used.utilization <= LIMIT_SHARE + 1e-6, f"{EXECUTED}: the motion uses at most "
                        f"{used.utilization:.1%} of a limit ({used.description}); {LIMIT_SHARE:.0%} allowed"),
            CheckResult(not result.lost, f"{EXECUTED}: the arm follows to the end"),
            CheckResult(counts.get("accepted", 0) > 0, f"{EXECUTED}: {counts.get('accepted', 0)} chunks accepted; rejected: "
                                                       f"{rejected}")]


# ---------------------------------------------------------------------------------------------------------------- pictures

MAX_RATE_SHOWN = 4.0  # limits
ZOOM_S = (0.3, 1.5)  # of the joint that is shown


def _shown(result: PolicyResult) -> ShownMotion:
    return ShownMotion(result.way, COLOURS[result.way], result.tracked)


def draw(arm: Arm, policy: Policy, results: Sequence[PolicyResult], path: str | os.PathLike[str]) -> None:
    """Draw tool paths, the most used torque rate, and one joint beside the intent. Raises RneaError without matplotlib."""
    intent = policy(results[0].tracked.t if not results[0].lost else results[-1].tracked.t)
    tool, joint = arm.tool_at(intent), int(np.ptp(intent, axis=0).argmax())
    with picture(path, (12.0, 8.4), dpi=110, settings={**STYLE, "font.size": 11}) as figure:
        axes = figure.subplots(3, len(results), height_ratios=(1.1, 1.0, 1.0))
        for (above, between, below), one in zip(axes.T, results):
            shown, tracked = _shown(one), one.tracked
            draw_tool_path(above, arm, tool, shown, f"{one.off_rms:.1f} mm off the intent (RMS)")
            draw_rates(between, arm, shown, MAX_RATE_SHOWN)
            between.set_xlim(0.0, STREAM.duration_s)
            between.set_title(f"up to {_factor(one.rate)} times the limit, {one.beyond:.0f} ms beyond", loc="left",
                              fontsize=10, color=shown.colour)
            part = (tracked.t >= ZOOM_S[0]) & (tracked.t <= ZOOM_S[1])
            t = np.linspace(*ZOOM_S, 400)
            below.plot(t, policy(t)[:, joint], color="0.75", linewidth=5.0, label="intent")
            below.plot(tracked.t[part], tracked.reference[part, joint], color=shown.colour, linewidth=1.4, label="commanded")
            below.set(xlim=ZOOM_S, xlabel="time [s]")
        for row in axes[1:]:
            low, high = zip(*(axis.get_ylim() for axis in row))
            for axis in row:
                axis.set_ylim(min(low), max(high))
        axes[0, 0].set_ylabel("tool path", fontsize=11)
        axes[1, 0].set_ylabel("commanded torque rate\n/ limit, worst joint")
        axes[2, 0].set_ylabel(f"{arm.robot.joint_names[joint]} [rad]")
        axes[2, 0].legend(loc="best", frameon=False, fontsize=10)
        figure.suptitle(f"{arm.robot.name}: one noisy policy, 200 ms behind, executed in three ways by the same drives",
                        x=0.01, ha="left", fontsize=13)


def write_movie(arm: Arm, policy: Policy, results: Sequence[PolicyResult], path: str | Path) -> None:
    """Write a GIF of all ways of execution. Raises RneaError without matplotlib, and if MuJoCo cannot render."""
    line = arm.tool_at(policy(np.arange(0.0, STREAM.duration_s, 0.05)))

    def caption(number: int, t: float) -> tuple[str, bool]:
        tracked = results[number].tracked
        so_far = float(np.abs(rate_shares(arm, tracked))[tracked.t[1:] <= t].max(initial=0.0))
        return f"torque rate up to {_factor(so_far)} x limit", so_far > 1.0

    options = MovieOptions(slow_motion=1.5, end_pause=1.0, view=(140.0, -18.0, 1.9), trail=1.5)
    plots.write_movie(arm, line, [*map(_shown, results)], caption, path, options)


def _factor(share: float) -> str:
    """Return a share of a limit as text."""
    return f"{share:.2f}" if share < 10.0 else f"{share:.0f}"
