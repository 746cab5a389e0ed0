"""Parallel filtering: regressor and torque pass the same low-pass, so that their equations stay true, and fewer are kept.

Noise above the band of the motion goes (Gautier 1997). Every sum of true equations is a true equation, whatever the stamps.

The regressor of a robot as a compiled kernel: tau = Y params and tau_rate = Yd params, for one sample or many.

Weighted linear least squares over channels that have noise of different size, with a verdict on the answer.

The equations of a channel, however many, are compressed as they come: R of the QR of [W y] has one row and column more than
there are unknowns, and the same normal equations and residual. Weighting, solving and judging need only these triangles.
Weights follow from residuals, residuals from weights, until both agree; a channel's degrees of freedom are its
equations less its share of the unknowns.

Base parameters of a real robot from what it did: least squares on recorded motion and torques.

Every sample and joint gives an equation tau = Y(q, qd, qdd) beta and, where that is measured, another one
tau_rate = Yd(q, qd, qdd, qddd) beta, linear in the base parameters beta (Khalil and Dombre 2002, chapter 12). They are
solved by least_squares.py; each joint's torque, and each rate, is a channel with noise of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.base_parameters import BaseParameters, base_parameters
from ..algorithms.inertial_parameters import TERMS, Parameter, with_unknowns
from ..algorithms.regressor import regressor
from ..codegen import kernel
from ..errors import InputError, some
from ..estimation.differentiation import Window
from ..estimation.smoothing import Smoothing, estimate_recording
from ..model.tree import CoupledMotor
from ..robots.inputs import validation
from ..robots.inputs.payload import unified
from ..robots.robot import Robot

TAPS_PER_KEPT_SAMPLE = 4  # of the low-pass on either side, for each sample that is left out
PASS_BAND = 0.4  # cycles per kept sample that pass; half a cycle is the most that can be told


def low_pass(decimate: int) -> np.ndarray:
    """Symmetric taps of a windowed sinc: no shift in time. One tap, 1, without decimation."""
    if decimate == 1:
        return np.ones(1)
    k = np.arange(-TAPS_PER_KEPT_SAMPLE * decimate, TAPS_PER_KEPT_SAMPLE * decimate + 1)
    taps = np.sinc(2.0 * PASS_BAND * k / decimate) * np.hanning(len(k) + 2)[1:-1]
    return taps / taps.sum()


def filtered(x: np.ndarray, taps: np.ndarray, decimate: int) -> np.ndarray:
    """Along the first axis, every decimate-th sample of what the taps reach."""
    span = len(x) - len(taps) + 1
    return np.sum([x[k:k + span:decimate] * tap for k, tap in enumerate(taps)], axis=0) if len(taps) > 1 else x


class Regressor:
    """Columns are the listed parameters, see inertial_parameters.py; kernels are compiled when they are first needed.

    A list may be a part of all parameters, as the ones that BaseParameters keeps: the others then count as zero.
    """

    def __init__(self, robot: Robot, listed: Sequence[Parameter]):
        validation.held_base(robot.model)
        self.parameters = tuple(listed)
        self.robot = robot
        self._unknown = with_unknowns(robot.model, listed)
        self._kernels: dict[int, kernel.Kernel] = {}

    @property
    def motors(self) -> tuple[CoupledMotor, ...]:
        """Motors of coupled transmissions."""
        return self.robot.model.coupled_motors

    def __call__(self, q, qd, qdd) -> np.ndarray:
        """Y (n, p) or (samples, n, p); tau = Y @ params. q, qd, qdd as in Robot."""
        return self._evaluate(q, qd, qdd)[0]

    def with_rate(self, q, qd, qdd, qddd) -> tuple[np.ndarray, np.ndarray]:
        """(Y, Yd), of the shape of Y both; tau_rate = Yd @ params."""
        Y, Yd = self._evaluate(q, qd, qdd, qddd)
        return Y, Yd

    def _evaluate(self, *motion) -> tuple[np.ndarray, ...]:
        names, n, p = ("q", "qd", "qdd", "qddd")[:len(motion)], self.robot.n, len(self.parameters)
        joints = self.robot.joint_names
        x = validation.beside([validation.coordinates(name, value, joints) for name, value in zip(names, motion, strict=True)])
        if len(motion) not in self._kernels:
            self._kernels[len(motion)] = kernel.build(self._function, dict.fromkeys(names, n), self.robot.backend)
        found = self._kernels[len(motion)](x)
        validation.results("the regressor", found)
        return tuple(part.reshape(*x.shape[:-1], n, p) for part in found)

    def _function(self, q, qd, qdd, qddd=None):
        outputs = 1 if qddd is None else 2
        qddd = q * 0.0 if qddd is None else qddd
        return regressor(self._unknown, len(self.parameters), q, qd, qdd, qddd, self.robot.gravity_vector)[:outputs]


RANK_TOL = 1e-9  # a direction of the unknowns with this little of the largest one's effect is not seen
MIN_NAMED_SHARE = 0.05  # share of an unseen direction from which on an unknown is named
MAX_REWEIGHTINGS = 30  # of weighting, at most
NOISE_TOL = 1e-9  # relative change of the noise
MIN_RELATIVE_NOISE = 1e-13  # of the noise relative to the signal: perfect data must not divide by zero


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """The unknowns x (b,), their covariance (b, b), and how good the equations are.

    condition_number : of the weighted equations with columns scaled to length one
    noise, misfit    : of each channel: standard deviation of the residual; its rms relative to the signal's
    """

    x: np.ndarray
    covariance: np.ndarray
    condition_number: float
    noise: dict[str, float]
    misfit: dict[str, float]
    equations: int


class Equations:
    """W x = y + noise, in channels by name; add as many as there are, then solve."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)  # of the unknowns
        self._triangles: dict[str, np.ndarray] = {}
        self._counts: dict[str, int] = {}

    def add(self, channel: str, W: np.ndarray, y: np.ndarray) -> None:
        """W (rows, b), y (rows,)."""
        above = self._triangles.get(channel, np.zeros((0, len(self.names) + 1)))
        self._triangles[channel] = np.asarray(np.linalg.qr(np.vstack((above, np.column_stack((W, y)))), mode="r"))
        self._counts[channel] = self._counts.get(channel, 0) + len(y)

    @property
    def count(self) -> int:
        return sum(self._counts.values())

    def solve(self, noise: Sequence[float] | None = None) -> LeastSquaresSolution:
        """noise: standard deviation of every channel, in the order in which they came; None: from the residuals."""
        if self.count <= len(self.names):
            raise InputError(f"{self.count} equations for {len(self.names)} unknowns: more are needed, ten times as many to "
                             "know how good the answer is")
        if noise is not None:
            given = np.array(noise, dtype=float)
            if given.shape != (len(self._triangles),) or not (given > 0.0).all():
                raise InputError(f"noise is {noise}; a standard deviation above zero is needed for each of "
                                 f"{some(self._triangles)}")
            return self._solution(given)
        sigma = np.full(len(self._triangles), self._rms())
        for _ in range(MAX_REWEIGHTINGS):
            solution = self._solution(sigma)
            before, sigma = sigma, np.array(list(solution.noise.values()))
            if np.allclose(sigma, before, rtol=NOISE_TOL, atol=0.0):
                break
        return solution

    def _rms(self, channel: str | None = None) -> float:
        """Of the signals y."""
        chosen = self._triangles if channel is None else {channel: self._triangles[channel]}
        squares = sum(float(np.sum(R[:, -1] ** 2)) for R in chosen.values())
        return float(np.sqrt(squares / sum(self._counts[name] for name in chosen))) or 1.0

    def _solution(self, sigma: np.ndarray) -> LeastSquaresSolution:
        stacked = np.vstack([R / s for R, s in zip(self._triangles.values(), sigma, strict=True)])
        W, y = stacked[:, :-1], stacked[:, -1]
        lengths = np.linalg.norm(W, axis=0)
        U, sizes, Vt = np.linalg.svd(W / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
        self._refuse_unseen(sizes, Vt)
        x = Vt.T @ (U.T @ y / sizes) / lengths
        half = Vt.T / sizes / lengths[:, None]
        covariance = half @ half.T
        noise, misfit = {}, {}
        for (name, R), s in zip(self._triangles.items(), sigma, strict=True):
            residual = np.linalg.norm(R[:, :-1] @ x - R[:, -1])
            share = float(np.sum((R[:, :-1] @ half) ** 2)) / s**2  # of the unknowns
            misfit[name] = float(residual / np.sqrt(self._counts[name]) / self._rms(name))
            unbiased = float(residual / np.sqrt(max(self._counts[name] - share, 1.0)))
            noise[name] = max(unbiased, MIN_RELATIVE_NOISE * self._rms(name))
        return LeastSquaresSolution(x, covariance, float(sizes[0] / sizes[-1]), noise, misfit, self.count)

    def _refuse_unseen(self, sizes: np.ndarray, Vt: np.ndarray) -> None:
        unseen = Vt[sizes <= RANK_TOL * sizes[0]]
        if len(unseen):
            shares = np.abs(unseen).max(axis=0)
            names = [name for name, share in zip(self.names, shares, strict=True) if share > MIN_NAMED_SHARE]
            raise InputError(f"the motion does not show {len(unseen)} of {len(self.names)} directions of the parameters: "
                             f"{some(names)} cannot be told (apart); move more joints, further and faster")


CHUNK_SAMPLES = 2_000  # samples whose equations are in memory at once
MAX_RELATIVE_JITTER = 0.01  # of the sampling time, for samples that count as evenly spaced


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
    if len(steps) and np.ptp(steps) > MAX_RELATIVE_JITTER * steps.mean():
        raise InputError("decimation needs evenly spaced samples; their spacing goes from "
                         f"{steps.min():.6g} to {steps.max():.6g} s")


def _channels(robot: Robot, count: int) -> list[str]:
    return [f"{kind}_{joint}" for kind in ("tau", "tau_rate") for joint in robot.joint_names][:count]


def _parts(regressor: Regressor, motion: list[np.ndarray], torques: np.ndarray,
           decimate: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(Y (k, channels, b), tau (k, channels)), filtered and decimated alike; nothing is used beyond the ends."""
    taps = low_pass(decimate)
    reach, per_part = len(taps) // 2, max(CHUNK_SAMPLES // decimate, 1)
    centres = np.arange(reach, len(torques) - reach, decimate)
    for start in range(0, len(centres), per_part):
        chosen = centres[start:start + per_part]
        part = slice(chosen[0] - reach, chosen[-1] + reach + 1)
        blocks = [block[part] for block in motion]
        Y = regressor(*blocks) if len(blocks) == 3 else np.concatenate(regressor.with_rate(*blocks), axis=1)
        yield filtered(Y, taps, decimate), filtered(torques[part], taps, decimate)
