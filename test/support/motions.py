"""Joint motions with their derivatives, and simulated sensors, for tests and benchmarks of estimation.

A motion is (4, samples, n): q, qd, qdd, qddd.
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import make_interp_spline

TURN = 2.0 * np.pi


def sines(rng: np.random.Generator, t: np.ndarray, n: int, fastest: float = 1.0) -> np.ndarray:
    """Return sums of four sines up to some frequency [Hz] that start from rest within half a second."""
    w = TURN * rng.uniform(0.1, fastest, (4, n))
    size, phase = rng.uniform(0.3, 1.0, (4, n)) / w**0.5, rng.uniform(0.0, TURN, (4, n))
    angle = t[:, None, None] * w + phase
    waves = [(size * w**k * np.sin(angle + k * np.pi / 2.0)).sum(axis=1) for k in range(4)]
    x = np.clip(t / 0.5, 0.0, 1.0)[:, None]
    rise = np.polynomial.Polynomial([0, 0, 0, 0, 0, 126, -420, 540, -315, 70])
    swell = [rise.deriv(k)(x) / 0.5**k for k in range(4)]
    return np.array([swell[0] * waves[0], swell[1] * waves[0] + swell[0] * waves[1],
                     swell[2] * waves[0] + 2.0 * swell[1] * waves[1] + swell[0] * waves[2],
                     swell[3] * waves[0] + 3.0 * (swell[2] * waves[1] + swell[1] * waves[2]) + swell[0] * waves[3]])


def splines(rng: np.random.Generator, t: np.ndarray, n: int, apart: float = 0.6, degree: int = 7) -> np.ndarray:
    """Return splines through random points at even times, from rest to rest."""
    knots = np.linspace(0.0, t[-1], max(int(t[-1] / apart) + 1, 3))
    rest = [(order, np.zeros(n)) for order in range(1, (degree + 1) // 2)]
    spline = make_interp_spline(knots, np.cumsum(rng.normal(0.0, 0.5, (len(knots), n)), axis=0), degree, bc_type=(rest, rest))
    return np.array([spline.derivative(order)(t) if order else spline(t) for order in range(4)])


def s_curves(rng: np.random.Generator, t: np.ndarray, n: int, velocity: float = 2.0, acceleration: float = 10.0,
             jerk: float = 100.0, rest: float = 0.05) -> np.ndarray:
    """Return synchronized point-to-point moves under limits of velocity, acceleration and jerk; the jerk is discontinuous."""
    motion, start, point = np.zeros((4, len(t), n)), 0.0, np.zeros(n)
    while start < t[-1]:
        way = rng.normal(0.0, 1.3, n)
        laws = [_law(abs(distance), velocity, acceleration, jerk) for distance in way]
        longest = max(sum(segments) for segments, _ in laws)
        on = t >= start
        for k, (segments, jumps) in enumerate(laws):
            slower = sum(segments) / longest
            found = _played(segments, jumps, (t[on] - start) * slower)
            motion[:, on, k] = np.sign(way[k]) * found * slower ** np.arange(4)[:, None]
        motion[0, on] += point
        point, start = point + way, start + longest + rest
    return motion


def _law(distance: float, velocity: float, acceleration: float, jerk: float) -> tuple[list[float], list[float]]:
    """Return durations and jerks of the seven segments from rest to rest."""
    ramp = min(acceleration / jerk, (velocity / jerk) ** 0.5, (distance / (2.0 * jerk)) ** (1.0 / 3.0))
    a = jerk * ramp
    flat = max(0.0, min(velocity / a - ramp, (-3.0 * ramp + (ramp**2 + 4.0 * distance / a) ** 0.5) / 2.0))
    cruise = max(0.0, distance / (a * (ramp + flat)) - 2.0 * ramp - flat)
    return [ramp, flat, ramp, cruise, ramp, flat, ramp], [jerk, 0.0, -jerk, 0.0, -jerk, 0.0, jerk]


def _played(segments: list[float], jerks: list[float], t: np.ndarray) -> np.ndarray:
    """Return the motion (4, len(t)) of jerk segments from rest."""
    found, begin, state = np.zeros((4, len(t))), 0.0, np.zeros(3)
    for duration, jerk in zip([*segments, np.inf], [*jerks, 0.0]):
        on = (t >= begin) & (t < begin + duration)
        found[:, on] = _moved(state, jerk, t[on] - begin)
        if np.isfinite(duration):
            begin, state = begin + duration, _moved(state, jerk, np.array(duration))[:3]
    return found


def _moved(state: np.ndarray, jerk: float, dt: np.ndarray) -> np.ndarray:
    q, qd, qdd = state
    return np.array([q + qd * dt + qdd * dt**2 / 2.0 + jerk * dt**3 / 6.0, qd + qdd * dt + jerk * dt**2 / 2.0, qdd + jerk * dt,
                     jerk + 0.0 * dt])


def rest_to_rest(rng: np.random.Generator, t: np.ndarray, n: int, degree: int = 5) -> np.ndarray:
    """Return polynomial moves of 0.5 to 1.6 s, with rests of 0.1 to 1 s: minimum jerk (degree 5), or continuous jerk (7)."""
    shape = np.polynomial.Polynomial({5: (0, 0, 0, 10, -15, 6), 7: (0, 0, 0, 0, 35, -84, 70, -20)}[degree])
    motion, start, point = np.zeros((4, len(t), n)), 0.3, np.zeros(n)
    while start < t[-1]:
        way, duration, on = rng.normal(0.0, 0.8, n), rng.uniform(0.5, 1.6), t >= start
        s = ((t[on] - start) / duration)[:, None]
        for order in range(4):
            motion[order, on] = way * np.where(s < 1.0, shape.deriv(order)(s) / duration**order, float(order == 0))
        motion[0, on] += point
        point, start = point + way, start + duration + rng.uniform(0.1, 1.0)
    return motion


def minimum_jerk(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return minimum-jerk moves with rests."""
    return rest_to_rest(rng, t, n)


def septics(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return moves of degree 7 with rests."""
    return rest_to_rest(rng, t, n, 7)


def slow_sines(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return sums of sines up to 0.4 Hz."""
    return sines(rng, t, n, 0.4)


def fast_sines(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return sums of sines up to 2.5 Hz."""
    return sines(rng, t, n, 2.5)


def resting_s_curves(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return S-curves with rests of half a second."""
    acceleration = rng.uniform(5.0, 15.0)
    return s_curves(rng, t, n, rng.uniform(1.0, 2.5), acceleration, acceleration * rng.uniform(5.0, 20.0), rest=0.5)


def smooth(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return a smooth motion, of sines or splines."""
    if rng.random() < 0.5:
        return sines(rng, t, n, rng.uniform(0.6, 1.5))
    return splines(rng, t, n, rng.uniform(0.4, 0.8))


def jumping(rng: np.random.Generator, t: np.ndarray, n: int) -> np.ndarray:
    """Return S-curves like those of industrial arms."""
    acceleration = rng.uniform(6.0, 20.0)
    return s_curves(rng, t, n, rng.uniform(1.5, 3.2), acceleration, acceleration * rng.uniform(5.0, 15.0))


def encoded(rng: np.random.Generator, q: np.ndarray, bits: int = 17, noise: float = 0.0) -> np.ndarray:
    """Return positions as measured by encoders of so many bits per turn, with noise before quantization."""
    step = TURN / 2.0**bits
    return np.round((q + noise * rng.normal(size=q.shape)) / step + rng.uniform(size=q.shape[1:])) * step


def at(motion: np.ndarray, t: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return the motion at other times by Taylor series from evenly spaced samples. Jerk is extrapolated linearly where it is
    continuous, otherwise it is that of the sample.
    """
    near = np.clip(np.round((times - t[0]) / (t[1] - t[0])).astype(int), 0, len(t) - 1)
    q, qd, qdd, qddd = motion[:, near]
    dt = (times - t[near])[:, None]
    steps = np.diff(motion[3], axis=0, prepend=motion[3, :1], append=motion[3, -1:]) / (t[1] - t[0])
    before, after = steps[near], steps[near + 1]
    change = np.where(before * after > 0.0, np.sign(after) * np.minimum(np.abs(before), np.abs(after)), 0.0) * dt
    return np.array([q + qd * dt + qdd * dt**2 / 2.0 + qddd * dt**3 / 6.0, qd + qdd * dt + qddd * dt**2 / 2.0,
                     qdd + (qddd + change / 2.0) * dt, qddd + change])
