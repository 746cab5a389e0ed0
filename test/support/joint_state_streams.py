"""Simulated joint states of a motion, and errors of motions estimated from them, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from rnea_ros import Robot
from rnea_ros.errors import Rejected
from rnea_ros.estimation.motion_estimator import MotionEstimator

from .motions import at, encoded

EPOCH = 1_700_000_000_123_456_789  # ns; stamps of today leave a double no digits to spare
NORMAL = 0.9545  # share of normally distributed errors within two standard deviations
START = 1.0  # s, from which on errors count: motions begin within half a second, with far more jerk than there is later


class Sensor(NamedTuple):
    """Error model of positions in joint states."""

    bits: int = 17  # of the encoder, for a turn
    noise: float = 0.0  # standard deviation before the encoder [rad]
    jitter: float = 0.0  # most that stamps are off [s]
    lost: float = 0.0  # share of the messages
    rate: float = 500.0  # of the messages [Hz]
    repeated: int = 1  # messages for each reading
    bell: bool = False  # whether jitter is the standard deviation of a normal distribution


class Stream(NamedTuple):
    """Joint states, stamps (k,) [s] and q (k, n), of a motion (4, samples, n) at t (samples,)."""

    stamps: np.ndarray
    q: np.ndarray
    t: np.ndarray
    motion: np.ndarray


class TorqueErrors(NamedTuple):
    """RMS errors of torque and torque rate relative to their RMS values, fractions of errors within two deviations, and the
    factors of the deviations with which these fractions were those of a normal distribution.
    """

    tau: float
    rate: float
    tau_within: float
    rate_within: float
    tau_factor: float
    rate_factor: float


def joint_states(rng: np.random.Generator, kind, n: int, sensor: Sensor, seconds: float = 5.0) -> Stream:
    """Return joint states of a motion of some kind (motions.py), measured by a sensor."""
    t = np.arange(0.0, seconds, 1.0 / sensor.rate)
    motion = kind(rng, t, n)
    q = encoded(rng, motion[0], sensor.bits, sensor.noise)[np.arange(len(t)) // sensor.repeated * sensor.repeated]
    off = rng.normal(0.0, sensor.jitter, len(t)) if sensor.bell else rng.uniform(-sensor.jitter, sensor.jitter, len(t))
    kept = (rng.random(len(t)) >= sensor.lost) | (np.arange(len(t)) < 8)
    return Stream((t + off)[kept], q[kept], t, motion)


def estimates(estimator: MotionEstimator, stream: Stream, lags: Sequence[float]) -> list[tuple[np.ndarray, ...]]:
    """Return times (k,) [s], and motion and deviations (4, k, n) estimated for each lag before each joint state.

    Estimates that the estimator rejects are left out.
    """
    found: list[list[tuple]] = [[] for _ in lags]
    stamps = EPOCH + np.round(stream.stamps * 1e9).astype(np.int64)
    for seconds, stamp, q in zip(stream.stamps, stamps.tolist(), stream.q):
        if not estimator.push(stamp, q):
            continue
        for rows, lag in zip(found, lags):
            if estimator.ready:
                with suppress(Rejected):
                    rows.append((seconds - lag, *estimator.estimate(stamp - round(lag * 1e9))))
    return [(np.array(times), np.stack(motion, axis=1), np.stack(deviation, axis=1))
            for times, motion, deviation in (zip(*rows) for rows in found)]


def torque_errors(robot: Robot, stream: Stream, times: np.ndarray, motion: np.ndarray, deviation: np.ndarray) -> TorqueErrors:
    """Return the torque errors of an estimated motion (4, k, n) at these times."""
    counted = (times >= START) & (times <= stream.t[-1])
    times, motion, deviation = times[counted], motion[:, counted], deviation[:, counted]
    true = robot.torque_and_rate(*at(stream.motion, stream.t, times))
    found, spread = robot.torque_and_rate(*motion), robot.torque_deviations(*motion, deviation)
    off = [np.abs(a - b) for a, b in zip(found, true)]
    return TorqueErrors(*(float(np.sqrt((a**2).mean() / (b**2).mean())) for a, b in zip(off, true)),
                        *(float((a < 2.0 * s).mean()) for a, s in zip(off, spread)),
                        *(float(np.quantile(a / (2.0 * s), NORMAL)) for a, s in zip(off, spread)))
