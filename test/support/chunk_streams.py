"""Streams of action chunks like those of learned policies, arms that execute them, and utilizations of the limits.

Oracle: torques by Pinocchio's inverse dynamics at instants 0.1 ms apart, torque rates by central differences.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import rnea_ros
from rnea_ros import Limits, Robot
from support.combined_machines import machine
from support.scaling_cases import urdf

INSTANT = 1e-4  # s
QUANTITIES = ("effort", "effort_rate", "velocity", "acceleration", "jerk", "position")
KINDS = ("smooth", "noisy", "late", "disagreeing", "lost", "disordered", "faulty", "ending")


class Arm(NamedTuple):
    """Robot with limits of every kind, and the region [rad, m] in which tasks are."""

    robot: Robot
    limits: Limits
    model: pin.Model
    middle: np.ndarray
    reach: np.ndarray

    def efforts(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Return joint torques (samples, n) by Pinocchio."""
        data = self.model.createData()
        return np.array([pin.rnea(self.model, data, *sample).copy() for sample in zip(q, qd, qdd, strict=True)])


@cache
def arm(name: str, payload: float = 0.0) -> Arm:
    """Return "panda", "ur5_robot" or "random"; a payload [kg] is a point mass at the last link."""
    text = machine(5, joints=5, prismatic=0.0).urdf if name == "random" else urdf(name).read_text(encoding="utf-8")
    robot = rnea_ros.load(text)
    assert robot.is_fixed_tree
    model = pin.buildModelFromXML(text)
    if payload:
        link = robot.model.links[-1].name
        robot = robot.with_payload(link, payload, (0.0, 0.0, 0.05))
        frame = model.frames[model.getFrameId(link)]
        added = frame.placement.act(pin.Inertia(payload, np.array([0.0, 0.0, 0.05]), np.zeros((3, 3))))
        model.inertias[frame.parentJoint] = model.inertias[frame.parentJoint] + added
    lower, upper = np.maximum(robot.limits.lower, -2.5), np.minimum(robot.limits.upper, 2.5)
    middle, reach = 0.5 * (lower + upper), 0.5 * (upper - lower)
    rng = np.random.default_rng(1)
    gravity = np.abs(robot.gravity(rng.uniform(lower, upper, (500, robot.n)))).max(axis=0)
    inertia = robot.mass_matrix(rng.uniform(lower, upper, (50, robot.n)))
    effort = 1.3 * gravity + 6.0 * np.diagonal(inertia, axis1=1, axis2=2).max(axis=0)
    n = robot.n
    limits = replace(robot.limits, lower=lower, upper=upper, effort=effort, effort_rate=effort / 0.06,
                     velocity=np.full(n, 2.0), acceleration=np.full(n, 14.0), jerk=np.full(n, 700.0))
    return Arm(robot, limits, model, middle, reach)


def task(rng: np.random.Generator, arm: Arm, speed: float = 1.0, amplitude: float = 0.5) -> Callable[[Any], np.ndarray]:
    """Return positions (samples, n) by times [s]: smooth steps of seventh order between random via points, from rest."""
    count = 24
    points = arm.middle + amplitude * arm.reach * rng.uniform(-1.0, 1.0, (count, len(arm.middle)))
    # peak velocity and acceleration of a step are 2.19 and 7.5 times its length over powers of its duration
    lengths = np.abs(np.diff(points, axis=0)).max(axis=1)
    durations = np.maximum(2.19 * lengths / 1.2, np.sqrt(7.52 * lengths / 5.0)) / speed
    starts = np.concatenate(([0.0], np.cumsum(durations)))

    def position(t: Any) -> np.ndarray:
        t = np.clip(np.asarray(t, dtype=float), 0.0, starts[-1] - 1e-9)
        k = np.searchsorted(starts, t, side="right") - 1
        u = ((t - starts[k]) / durations[k])[:, None]
        return points[k] + (points[k + 1] - points[k]) * u**4 * (35.0 - 84.0 * u + 70.0 * u**2 - 20.0 * u**3)

    return position


class ArrivingChunk(NamedTuple):
    """Chunk with arrival time, stamp, positions, and period [s]."""

    arrival: float
    stamp: float
    positions: np.ndarray
    period: float


@dataclass
class Stream:
    """Chunks of one policy in order of arrival. intent: planned positions by time, without noise; start: robot position."""

    chunks: list[ArrivingChunk]
    intent: Callable[[Any], np.ndarray]
    start: np.ndarray
    duration: float


def stream(kind: str, seed: int, arm: Arm, rate: float = 30.0, duration: float = 4.0, count: int = 50, every: float = 0.2,
           speed: float = 0.7) -> Stream:
    """Return one of KINDS; rate [Hz] of points, and a chunk of `count` points `every` so many seconds."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    intent = task(rng, arm, speed)
    latency, n, period = 0.1, len(arm.middle), 1.0 / rate
    noise = 10.0 ** rng.uniform(-3.3, -2.3) if kind == "noisy" else 0.0
    steady = rng.uniform(0.1, 0.8)
    chunks, k = [], 0
    while (stamp := round(k * every / period) * period) < duration:
        k += 1
        positions = intent(stamp + np.arange(count) * period) + noise * rng.normal(size=(count, n))
        arrival = stamp + latency
        if kind == "late":
            arrival = stamp + (steady if seed % 2 else rng.uniform(0.1, 0.8))
        if kind == "disagreeing" and k > 1:
            positions = positions + rng.uniform(0.02, 0.07) * rng.choice([-1.0, 1.0], n)
        if kind == "lost" and rng.random() < 0.5 and k > 1:
            continue
        if kind == "disordered" and k > 1:
            arrival += rng.choice([0.0, 0.0, 0.45])
            if rng.random() < 0.3:
                chunks.append(ArrivingChunk(arrival + 0.03, stamp, positions, period))
        if kind == "faulty" and k > 1:
            positions = _faulty(rng, positions, arm)
        if kind == "ending" and stamp > 0.5 * duration:
            break
        positions = positions if kind == "faulty" else np.clip(positions, arm.limits.lower, arm.limits.upper)
        chunks.append(ArrivingChunk(arrival, stamp, positions, period))
    return Stream(sorted(chunks, key=lambda one: one.arrival), intent, intent(np.zeros(1))[0], duration + 1.0)


def _faulty(rng: np.random.Generator, positions: np.ndarray, arm: Arm) -> np.ndarray:
    """Return positions with NaN, wrong length, one radian of error, or beyond the limits; or without change."""
    case, changed = rng.integers(6), positions.copy()
    if case == 0:
        changed[rng.integers(len(changed)), 0] = math.nan
    elif case == 1:
        return changed[:, :-1]
    elif case == 2:
        changed += rng.choice([-1.0, 1.0])
    elif case == 3:
        changed[-1] = arm.limits.upper + 0.5
    return changed


def played(executor: Any, sent: Stream, step: float = INSTANT, actions: Any = ()) -> tuple[np.ndarray, np.ndarray, list]:
    """Return instants (samples,), motion (4, samples, n) and the results of all chunks. actions: (time, call) each."""
    executor.reset(sent.start, 0.0)
    waiting = sorted([(one.arrival, one) for one in sent.chunks] + list(actions), key=lambda event: event[0])
    times = np.arange(0.0, sent.duration, step)
    motion, results = np.empty((len(times), 4, len(sent.start))), []
    for k, t in enumerate(times.tolist()):
        while waiting and waiting[0][0] <= t:
            _, event = waiting.pop(0)
            if isinstance(event, ArrivingChunk):
                results.append(executor.push(event.stamp, event.positions, period=event.period, now=t))
            else:
                event(t)
        motion[k] = executor.sample(t)
    return times, motion.swapaxes(0, 1), results


def utilization(arm: Arm, motion: np.ndarray, step: float = INSTANT) -> dict[str, float]:
    """Return the largest utilization of every limit by a motion (4, samples, n), by QUANTITIES."""
    q, qd, qdd, qddd = motion
    limits, tau = arm.limits, arm.efforts(q, qd, qdd)
    rate = (tau[2:] - tau[:-2]) / (2.0 * step)
    values = {"effort": tau, "effort_rate": rate, "velocity": qd, "acceleration": qdd, "jerk": qddd}
    found = {name: float(np.abs(value / getattr(limits, name)).max()) for name, value in values.items()}
    middle, half = 0.5 * (limits.upper + limits.lower), 0.5 * (limits.upper - limits.lower)
    return found | {"position": float(np.abs((q - middle) / half).max())}
