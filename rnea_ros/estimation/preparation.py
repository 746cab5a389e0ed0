"""A recording of motion and torques made ready for equations: each reading once, with velocity and acceleration.

What repeats the sample before in every position and torque is a message that was sent twice, and is left out. Times of the
readings, and derivatives, are found as for any recording (recording.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import InputError, some
from .differentiation import Window
from .recording import Smoothing, estimate_recording
from .repairs import consistent_stamps

FEWEST = 64  # samples


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


def turns_removed(joints: Sequence[str]) -> str:
    """Return the note on revolute joints whose positions were unwrapped."""
    return f"positions of {some(joints)} jump by whole turns: unwrapped (declare such joints as continuous in the URDF)"


def prepare(t: np.ndarray, q: np.ndarray, tau: np.ndarray, qd: np.ndarray | None = None, qdd: np.ndarray | None = None,
            window: float | None = None, joint_types: tuple[str, ...] = (), joint_names: tuple[str, ...] = ()) -> Prepared:
    """From positions and torques (samples, n) at times t (samples,).

    Velocities count only where accelerations are given too, as of a simulation: those of drivers are filtered and late.
    window [s]: of polynomials instead of Kalman smoothing. Raises InputError for too few samples.
    """
    t, notes = np.asarray(t, dtype=float), []
    consistent = consistent_stamps(t)
    same = np.concatenate(([False], (np.diff(q, axis=0) == 0.0).all(axis=1) & (np.diff(tau, axis=0) == 0.0).all(axis=1)))
    repeated = consistent & same
    for wrong, text in ((~consistent, "with stamps that do not increase"), (repeated, "that repeat the reading before")):
        if wrong.any():
            notes.append(f"{np.count_nonzero(wrong)} of {len(t)} samples {text} are left out")
    new = consistent & ~repeated
    if np.count_nonzero(new) < FEWEST:
        raise InputError(f"the recording has {np.count_nonzero(new)} samples that differ; {FEWEST} are the fewest, some "
                         "thousands of 20 s or more are good")
    t, q, tau = t[new], q[new], tau[new]
    if qd is not None and qdd is not None:
        return Prepared(t, q, np.asarray(qd)[new], np.asarray(qdd)[new], tau, tuple(notes), None)
    guesses = estimate_recording(t, q, window=window, joint_types=joint_types)
    if guesses.wrapped:
        notes.append(turns_removed([joint_names[k] if joint_names else f"joint {k + 1}" for k in guesses.wrapped]))
    good = guesses.centred
    if not good.any():
        raise InputError(f"the recording is too short: derivatives are estimated by {guesses.how.method}")
    return Prepared(t[good], q[good], guesses.qd[good], guesses.qdd[good], tau[good], tuple(notes), guesses.how)
