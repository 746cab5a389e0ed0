"""A recording made ready for equations: each reading once, at the time at which it was taken, with velocity and acceleration.

Drivers publish one reading in several joint states, and stamp when they publish, not when they read: a controller of 1 kHz
that is asked 30 times a second answers with the same reading now and then. What repeats a sample in every position and torque
is left out. Where positions make a smoother motion at even times than at those of the stamps, the times are even.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..errors import InputError
from ..estimation.differentiation import Window
from ..estimation.recording import Smoothing, estimate_recording

FEWEST = 64  # samples
SMOOTHER = 0.7  # of the roughness at the stamps: from there on even times are believed
AHEAD = (-2, -1, 1, 2)  # samples through which a cubic tells the one between


@dataclass(frozen=True, eq=False)
class Prepared:
    """t (samples,) [s]; q, qd, qdd, tau (samples, n). notes: what was done to the recording, for people; how: derivatives."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray
    notes: tuple[str, ...]
    how: Window | Smoothing | None


def prepare(t: np.ndarray, q: np.ndarray, tau: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
            window: float | None = None, joint_types: tuple[str, ...] = ()) -> Prepared:
    """From positions and torques (samples, n) at times t (samples,).

    Velocities count only where accelerations are given too, as of a simulation: those of drivers are filtered and late.
    window [s]: of polynomials instead of Kalman smoothing. Raises InputError for too few samples.
    """
    t, notes = np.asarray(t, dtype=float), []
    later = np.concatenate(([True], t[1:] > np.maximum.accumulate(t)[:-1]))
    same = np.concatenate(([False], (np.diff(q, axis=0) == 0.0).all(axis=1) & (np.diff(tau, axis=0) == 0.0).all(axis=1)))
    for wrong, text in ((~later, "with stamps that do not increase"), (later & same, "that repeat the reading before")):
        if wrong.any():
            notes.append(f"{np.count_nonzero(wrong)} of {len(t)} samples {text} are left out")
    new = later & ~same
    if np.count_nonzero(new) < FEWEST:
        raise InputError(f"the recording has {np.count_nonzero(new)} different samples; {FEWEST} are the fewest, some "
                         "thousands of 20 s or more are good")
    t, q, tau = t[new], q[new], tau[new]
    if qd is not None and qdd is not None:
        return Prepared(t, q, qd[new], qdd[new], tau, tuple(notes), None)
    even = np.linspace(t[0], t[-1], len(t))
    if _roughness(even, q) < SMOOTHER * _roughness(t, q):
        notes.append(f"positions are smooth at even times, {1e3 * (even[1] - even[0]):.4g} ms apart, not at those of the "
                     f"stamps, which are up to {1e3 * np.abs(t - even).max():.2g} ms off")
        t = even
    guesses = estimate_recording(t, q, window=window, joint_types=joint_types)
    good = guesses.centred
    if not good.any():
        raise InputError(f"the recording is too short: derivatives are estimated by {guesses.how.method}")
    return Prepared(t[good], q[good], guesses.qd[good], guesses.qdd[good], tau[good], tuple(notes), guesses.how)


def _roughness(t: np.ndarray, q: np.ndarray) -> float:
    """How far samples are from the cubics through their neighbours, in the median, over all joints."""
    middle = np.arange(2, len(t) - 2)
    places = [t[middle + k] - t[middle] for k in AHEAD]
    rest = q[middle].copy()
    for i, k in enumerate(AHEAD):
        weight = np.prod([-other / (places[i] - other) for j, other in enumerate(places) if j != i], axis=0)
        rest -= q[middle + k] * weight[:, None]
    moved = np.ptp(q, axis=0)
    return float(np.sqrt(np.mean((rest[:, moved > 0.0] / moved[moved > 0.0]) ** 2))) if moved.any() else 0.0
