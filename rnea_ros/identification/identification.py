"""Base parameters of a real robot from what it did: least squares on recorded motion and torques.

Every sample and joint gives an equation tau = Y(q, qd, qdd) beta and, where that is measured, another one
tau_rate = Yd(q, qd, qdd, qddd) beta, linear in the base parameters beta (Khalil and Dombre 2002, chapter 12). They are
solved by least_squares.py; each joint's torque, and each rate, is a channel with noise of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..estimation.differentiation import Window
from ..estimation.smoothing import Smoothing, estimate_recording
from ..inertial.base_parameters import BaseParameters, base_parameters
from ..inertial.inertial_parameters import TERMS
from ..robots.inputs import validation
from ..robots.inputs.payload import unified
from ..robots.robot import Robot
from .least_squares import Equations, LeastSquaresSolution
from .parallel_filter import filtered, low_pass
from .regressor_kernel import Regressor

CHUNK = 2_000  # samples whose equations are in memory at once
JITTER = 0.01  # of the sampling time, for samples that count as evenly spaced


@dataclass(frozen=True, eq=False)
class Measurements:
    """What was measured, in the robot's coordinates: t (samples,) [s], the others (samples, n).

    tau and tau_rate are the torques of the joints [N m, N] and, where there is a sensor for them, their rates. Derivatives
    that are None are estimated from those that are not; without tau_rate, qddd is not needed. payloads: link -> (mass, com,
    inertia) that the robot carries in this recording only, as of Robot.with_payload; used by fitting.fit.
    """

    t: Any
    q: Any
    tau: Any
    qd: Any = None
    qdd: Any = None
    qddd: Any = None
    tau_rate: Any = None
    payloads: Mapping[str, tuple[Any, ...]] | None = None


@dataclass(frozen=True, eq=False)
class Identification:
    """Base parameters as measured, their values before, from the model (b,), and how well they are known.

    estimated, how: derivatives of the motion that were not given, and how they were estimated.
    """

    base: BaseParameters
    prior: np.ndarray
    solution: LeastSquaresSolution
    estimated: tuple[str, ...] = ()
    how: Window | Smoothing | None = None

    @property
    def beta(self) -> np.ndarray:
        """(b,), in the order of base.names."""
        return self.solution.x

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (b,)."""
        return np.sqrt(np.diagonal(self.solution.covariance))

    @property
    def relative_std(self) -> np.ndarray:
        """std / |beta| (b,): above 0.3 a value says little."""
        return self.std / np.maximum(np.abs(self.beta), np.finfo(float).tiny)

    def torque(self, robot: Robot, q, qd, qdd) -> np.ndarray:
        """What the identified robot needs for a motion: (n,) or (samples, n)."""
        return Regressor(robot, [self.base.parameters[k] for k in self.base.kept])(q, qd, qdd) @ self.beta


def identify(robot: Robot, recording: Measurements, terms: Iterable[str] = TERMS, noise: Sequence[float] | None = None,
             decimate: int = 1, window: float | None = None, degree: int = 5) -> Identification:
    """Base parameters from a recording of a robot whose root is at rest.

    terms    : joint parameters to identify beside the inertial ones
    noise    : standard deviations of the torques (n,), or of torques and rates (2 n,); from the residuals if None
    decimate : keep every k-th equation, after a low-pass that torques and regressor pass alike (parallel filtering): against
               noise above the band of the motion
    window, degree : of polynomials that estimate derivatives [s] instead of Kalman smoothing, see estimate_recording
    Raises InputError for too few samples, and with their names for parameters that the motion does not show.
    """
    validation.held_base(robot.model)
    data = _checked(robot, recording, window, degree)
    if decimate < 1:
        raise InputError(f"decimate is {decimate}; a whole number from 1 is needed")
    if decimate > 1:
        _refuse_uneven(np.asarray(recording.t, dtype=float))
    base = base_parameters(robot.model, robot.gravity_vector, tuple(terms), free_root=False)
    regressor = Regressor(robot, [base.parameters[k] for k in base.kept])
    equations = Equations(base.names)
    for Y, tau in _parts(regressor, data.motion, data.torques, decimate):
        for k, name in enumerate(_channels(robot, data.torques.shape[1])):
            equations.add(name, Y[:, k], tau[:, k])
    prior = base.of(unified(robot.model, tuple(robot.payloads.values())))
    return Identification(base, prior, equations.solve(noise), data.estimated, data.how)


class _Data(NamedTuple):
    """Blocks of motion and torques (samples, channels); of what was estimated only what is good: no ends, no gaps."""

    motion: list[np.ndarray]
    torques: np.ndarray
    estimated: tuple[str, ...]
    how: Window | Smoothing | None


def _checked(robot: Robot, recording: Measurements, window: float | None, degree: int) -> _Data:
    names = ("q", "qd", "qdd", "qddd", "tau", "tau_rate")
    given = {name: validation.coordinates(name, getattr(recording, name), robot.joint_names) for name in names
             if getattr(recording, name) is not None}
    samples = np.size(recording.t)
    wrong = {name: array.shape for name, array in given.items() if array.shape != (samples, robot.n)}
    if wrong or not {"q", "tau"} <= given.keys():
        raise InputError(f"a recording of {samples} times needs q and tau of shape ({samples}, {robot.n}), and others alike; "
                         f"got {wrong or sorted(given)}")
    blocks = ("q", "qd", "qdd", "qddd") if "tau_rate" in given else ("q", "qd", "qdd")
    good, how = np.full(samples, True), None
    if estimated := tuple(name for name in blocks if name not in given):
        guesses = estimate_recording(recording.t, given["q"], given.get("qd"), given.get("qdd"), window, degree,
                                     robot.joint_types)
        given |= {name: getattr(guesses, name) for name in estimated}
        good, how = guesses.centred, guesses.how
        if not good.any():
            raise InputError(f"the recording is too short: derivatives are estimated by {how.method}, and what has samples on "
                             "one side only is left out")
    torques = np.hstack([given[name] for name in names[4:] if name in given])
    return _Data([given[name][good] for name in blocks], torques[good], estimated, how)


def _refuse_uneven(t: np.ndarray) -> None:
    steps = np.diff(t)
    if len(steps) and np.ptp(steps) > JITTER * steps.mean():
        raise InputError("decimation needs evenly spaced samples; their spacing goes from "
                         f"{steps.min():.6g} to {steps.max():.6g} s")


def _channels(robot: Robot, count: int) -> list[str]:
    return [f"{kind}_{joint}" for kind in ("tau", "tau_rate") for joint in robot.joint_names][:count]


def _parts(regressor: Regressor, motion: list[np.ndarray], torques: np.ndarray,
           decimate: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(Y (k, channels, b), tau (k, channels)), filtered and decimated alike; nothing is used beyond the ends."""
    taps = low_pass(decimate)
    reach, per_part = len(taps) // 2, max(CHUNK // decimate, 1)
    centres = np.arange(reach, len(torques) - reach, decimate)
    for start in range(0, len(centres), per_part):
        chosen = centres[start:start + per_part]
        part = slice(chosen[0] - reach, chosen[-1] + reach + 1)
        blocks = [block[part] for block in motion]
        Y = regressor(*blocks) if len(blocks) == 3 else np.concatenate(regressor.with_rate(*blocks), axis=1)
        yield filtered(Y, taps, decimate), filtered(torques[part], taps, decimate)
