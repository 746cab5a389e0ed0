"""Fuzzing target `chunks`: action chunks with any stamps, times, numbers and names, through the executor of chunks.

The oracle is Pinocchio: the trajectory that is executed keeps every limit, is continuous, and ends at rest.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.motions import Judge
from fuzz.mutation import Choices
from fuzz.target import Target, Try, WrongNumber
from rnea_ros import ChunkExecutor, ChunkOptions, InputError, Robot
from rnea_ros.trajectory.chunk_executor import REASONS
from support.node_bench import ARM, NAMES

INSTANTS = 24  # judged samples between two actions, and until rest
SHARES = (1.0, 0.6, 0.3)  # of the limits, one executor each
EFFORT, RATE = np.array((90.0, 60.0, 150.0)), np.array((1500.0, 1000.0, 2500.0))  # N m, N m/s; N, N/s
STEPS = (0.0, 1e-9, 1e-4, 0.003, 0.01, 0.03, 0.1, 0.4)  # rad, m; between two points
PERIODS = (1.0 / 30.0,) * 6 + (0.01, 0.1, 1.0, 1e-6, 0.0, -1.0, np.nan)  # s
ODD = 10  # of 256
REPEATED = 1e-6  # rad, m; error of a position that is continued by its velocity and acceleration over REACH
REACH = 1e-4  # s


def _executors(robot: Robot) -> list[ChunkExecutor]:
    n = robot.n
    options = ChunkOptions(time_limit=60.0, max_attempts=3)
    limits = [replace(robot.limits, effort=EFFORT, effort_rate=share * RATE, velocity=np.full(n, 2.0 * share),
                      acceleration=np.full(n, 14.0 * share), jerk=np.full(n, 700.0 * share)) for share in SHARES]
    kinds = ("newest", "time"), ("ensemble", "time"), ("newest", "offset")
    return [ChunkExecutor(robot, some, replace(options, blending=blending, alignment=alignment))
            for some, (blending, alignment) in zip(limits, kinds, strict=True)]


def _chunks(_folder: Path) -> Try:
    robot = Robot.from_urdf(ARM)
    judge, executors = Judge(ARM, robot), _executors(robot)
    middle = np.where(np.isfinite(robot.limits.lower), 0.5 * (robot.limits.lower + robot.limits.upper), 0.0)

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        executor = choose.pick(executors)
        now, found, outcomes = 0.0, list[Any](), list[str]()
        executor.reset(middle + [(choose.byte() - 128) / 400.0 for _ in NAMES], now)
        executor.set_speed(1.0)
        for _ in range(3):
            if not choose:
                break
            outcomes.append(_act(choose, executor, now))
            later = now + choose.pick((0.0, 0.03, 0.1, 0.2, 0.6))
            found += _sampled(executor, now, later)
            now = later
        found += _sampled(executor, now, executor.end_time + 0.01)
        motion = np.array([sample for _, sample in found]).swapaxes(0, 1)
        judge.check(motion, executor.limits)
        _check_continuity(found)
        if np.abs(motion[1:3, -1]).max() > 1e-6:
            raise WrongNumber(f"it ends at velocities {motion[1, -1]}, accelerations {motion[2, -1]}")
        return outcomes[-1] if outcomes else "nothing pushed"

    return attempt


def _act(choose: Choices, executor: ChunkExecutor, now: float) -> str:
    what = choose.byte()
    if what < ODD:
        executor.stop(now)
        return "stop"
    if what < 2 * ODD:
        executor.resume()
        return "resume"
    if what < 3 * ODD:
        try:
            executor.set_speed(choose.pick((0.05, 0.3, 1.0, 0.0, np.nan)))
        except InputError:
            return "speed refused"
        return "speed"
    result = executor.push(*_chunk(choose, executor, now), now=now)
    if result.reason not in REASONS or (not result.accepted and not result.message):
        raise AssertionError(f"a chunk without a reason: {result}")
    return result.reason


def _chunk(choose: Choices, executor: ChunkExecutor, now: float) -> tuple[Any, ...]:
    """Return stamp, positions, period, times and joints."""
    names = choose.pick((None, None, None, NAMES, NAMES[::-1], NAMES[:2], [*NAMES, "unknown"], ["turn", "turn"], []))
    columns = [NAMES.index(name) for name in names or NAMES if name in NAMES]
    count, step = choose.pick((12, 12, 12, 30, 4, 3, 2, 1, 0)), choose.pick(STEPS)
    q, direction = executor.sample_ahead(now)[0][columns], np.zeros(len(columns))
    points = []
    for _ in range(count):
        direction = 0.7 * direction + [(choose.byte() - 128) / 128.0 for _ in columns]
        q = q + step * direction
        points.append(q.tolist())
    if points and choose.byte() < ODD:
        points[choose.byte() % count] = choose.numbers(len(columns))
    period, times = choose.pick(PERIODS), None
    if choose.byte() < 2 * ODD:
        period, times = None, sorted(choose.numbers(count)) if choose.byte() < 128 else [0.04 * k for k in range(count)]
    stamp = now + choose.pick((0.0,) * 8 + (-0.05, -0.3, -0.9, -5.0, 0.5, 5.0, np.nan, -np.inf, 1e300))
    return stamp, points, period, times, names


def _sampled(executor: ChunkExecutor, begin: float, end: float) -> list[tuple[float, np.ndarray]]:
    """Return times and samples, each with one REACH later."""
    times = [t for at in np.linspace(begin, end, INSTANTS).tolist() for t in (at, at + REACH)]
    return [(t, executor.sample_ahead(t)) for t in times] if end > begin else []


def _check_continuity(found: list[tuple[float, np.ndarray]]) -> None:
    for (_, one), (_, two) in zip(found[::2], found[1::2], strict=True):
        q, qd, qdd = one[:3]
        off = np.abs(two[0] - q - qd * REACH - 0.5 * qdd * REACH**2).max()
        if off > REPEATED:
            raise WrongNumber(f"the position leaps by {off}")


def _seeds() -> list[bytes]:
    return [bytes([k]) * 200 for k in (0, 90, 130, 200)] + [bytes((k * (7 + j)) % 256 for k in range(400)) for j in range(6)]


TARGETS = (Target("chunks", _seeds, _chunks, generate=lambda rng: rng.randbytes(rng.choice((60, 120, 250)))),)
