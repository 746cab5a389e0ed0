"""Identification of base parameters by weighted least squares on recorded motion and torques.

Every sample and joint gives an equation tau = Y(q, qd, qdd) beta and, where torque rates are measured, another one
tau_rate = Yd(q, qd, qdd, qddd) beta, linear in the base parameters beta (Khalil and Dombre 2002, chapter 12). Each joint's
torque, and each rate, is a channel with its own noise.

Equations of a channel are compressed by QR as they are added: R of [W y] has one row and column more than there are
unknowns, and the same normal equations and residual. Weights follow from residuals and residuals from weights, until both
agree; a channel's degrees of freedom are its equations less its share of the unknowns.

Parallel filtering: regressor and torque pass the same low-pass filter before decimation, so that their equations stay valid
and noise above the band of the motion is removed (Gautier 1997).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.inertial_parameters import TERMS, BaseParameters, Parameter, base_parameters, regressor, with_unknowns
from ..codegen import kernel
from ..errors import InputError, some
from ..estimation.differentiation import Window
from ..estimation.smoothing import Smoothing, estimate_recording
from ..model.tree import CoupledMotor
from ..robots import validation
from ..robots.conditions import unified
from ..robots.robot import Robot
from ..robots.tree import TreeDynamics


@dataclass(frozen=True)
class IdentificationOptions:
    """Tuning of the equations and their solution."""

    taps_per_kept_sample: int = 4  # taps of the low-pass on either side, per decimation step
    pass_band: float = 0.4  # cut-off frequency in cycles per kept sample; the Nyquist frequency is 0.5
    rank_tol: float = 1e-9  # relative singular value below which a direction of the unknowns is not determined
    min_named_share: float = 0.05  # share of an undetermined direction from which on an unknown is named
    max_reweightings: int = 30
    noise_tol: float = 1e-9  # relative change of the noise at convergence
    min_relative_noise: float = 1e-13  # noise over signal; avoids division by zero for exact data
    chunk_samples: int = 2_000  # samples whose equations are in memory at once
    max_relative_jitter: float = 0.01  # of the sampling time, for samples that count as evenly spaced


OPTIONS = IdentificationOptions()


def low_pass(decimate: int) -> np.ndarray:
    """Return the symmetric taps of a windowed sinc low-pass; a single tap of 1 without decimation."""
    if decimate == 1:
        return np.ones(1)
    k = np.arange(-OPTIONS.taps_per_kept_sample * decimate, OPTIONS.taps_per_kept_sample * decimate + 1)
    taps = np.sinc(2.0 * OPTIONS.pass_band * k / decimate) * np.hanning(len(k) + 2)[1:-1]
    return taps / taps.sum()


def decimate_filtered(x: np.ndarray, taps: np.ndarray, decimate: int) -> np.ndarray:
    """Return every decimate-th sample of x, filtered along the first axis, without samples that the taps do not fully cover.
    """
    span = len(x) - len(taps) + 1
    return np.sum([x[k:k + span:decimate] * tap for k, tap in enumerate(taps)], axis=0) if len(taps) > 1 else x


class Regressor:
    """Regressor of a robot as a compiled kernel: tau = Y params, tau_rate = Yd params.

    Columns are the listed parameters (inertial_parameters.py). The list may be a subset, such as the kept ones of
    BaseParameters; the others count as zero. Kernels are compiled when they are first needed.
    """

    def __init__(self, robot: Robot | TreeDynamics, listed: Sequence[Parameter]):
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
        """Return Y (n, p) or (samples, n, p), with tau = Y @ params. q, qd, qdd as in Robot."""
        return self._evaluate(q, qd, qdd)[0]

    def with_rate(self, q, qd, qdd, qddd) -> tuple[np.ndarray, np.ndarray]:
        """Return Y and Yd, of the shape of Y, with tau_rate = Yd @ params."""
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


@dataclass(frozen=True, eq=False)
class LeastSquaresSolution:
    """Solution x (b,), covariance (b, b), and quality of the equations.

    condition_number : of the weighted equations with columns scaled to unit length
    noise, misfit    : per channel: standard deviation of the residual; its RMS over that of the signal
    """

    x: np.ndarray
    covariance: np.ndarray
    condition_number: float
    noise: dict[str, float]
    misfit: dict[str, float]
    equations: int


class LinearEquations:
    """Linear equations W x = y + noise in named channels, compressed as they are added."""

    def __init__(self, names: Sequence[str]):
        self.names = tuple(names)  # of the unknowns
        self._triangles: dict[str, np.ndarray] = {}
        self._counts: dict[str, int] = {}

    def add(self, channel: str, W: np.ndarray, y: np.ndarray) -> None:
        """Add equations W (rows, b), y (rows,) to a channel."""
        above = self._triangles.get(channel, np.zeros((0, len(self.names) + 1)))
        self._triangles[channel] = np.asarray(np.linalg.qr(np.vstack((above, np.column_stack((W, y)))), mode="r"))
        self._counts[channel] = self._counts.get(channel, 0) + len(y)

    @property
    def count(self) -> int:
        """Number of equations."""
        return sum(self._counts.values())

    def solve(self, noise: Sequence[float] | None = None) -> LeastSquaresSolution:
        """Return the solution. noise: standard deviation of each channel in order of addition; None: from the residuals."""
        if self.count <= len(self.names):
            raise InputError(f"{self.count} equations for {len(self.names)} unknowns: more equations are needed, ten times "
                             "the unknowns for a meaningful covariance")
        if noise is not None:
            given = np.array(noise, dtype=float)
            if given.shape != (len(self._triangles),) or not (given > 0.0).all():
                raise InputError(f"noise is {noise}; a standard deviation above zero is needed for each of "
                                 f"{some(self._triangles)}")
            return self._solution(given)
        sigma = np.full(len(self._triangles), self._rms())
        for _ in range(OPTIONS.max_reweightings):
            solution = self._solution(sigma)
            before, sigma = sigma, np.array(list(solution.noise.values()))
            if np.allclose(sigma, before, rtol=OPTIONS.noise_tol, atol=0.0):
                break
        return solution

    def _rms(self, channel: str | None = None) -> float:
        """Return the RMS of the signals y of one channel or of all."""
        chosen = self._triangles if channel is None else {channel: self._triangles[channel]}
        squares = sum(float(np.sum(R[:, -1] ** 2)) for R in chosen.values())
        return float(np.sqrt(squares / sum(self._counts[name] for name in chosen))) or 1.0

    def _solution(self, sigma: np.ndarray) -> LeastSquaresSolution:
        stacked = np.vstack([R / s for R, s in zip(self._triangles.values(), sigma, strict=True)])
        W, y = stacked[:, :-1], stacked[:, -1]
        lengths = np.linalg.norm(W, axis=0)
        U, sizes, Vt = np.linalg.svd(W / np.where(lengths > 0.0, lengths, 1.0), full_matrices=False)
        self._check_rank(sizes, Vt)
        x = Vt.T @ (U.T @ y / sizes) / lengths
        half = Vt.T / sizes / lengths[:, None]
        covariance = half @ half.T
        noise, misfit = {}, {}
        for (name, R), s in zip(self._triangles.items(), sigma, strict=True):
            residual = np.linalg.norm(R[:, :-1] @ x - R[:, -1])
            share = float(np.sum((R[:, :-1] @ half) ** 2)) / s**2  # of the unknowns
            misfit[name] = float(residual / np.sqrt(self._counts[name]) / self._rms(name))
            unbiased = float(residual / np.sqrt(max(self._counts[name] - share, 1.0)))
            noise[name] = max(unbiased, OPTIONS.min_relative_noise * self._rms(name))
        return LeastSquaresSolution(x, covariance, float(sizes[0] / sizes[-1]), noise, misfit, self.count)

    def _check_rank(self, sizes: np.ndarray, Vt: np.ndarray) -> None:
        unseen = Vt[sizes <= OPTIONS.rank_tol * sizes[0]]
        if len(unseen):
            shares = np.abs(unseen).max(axis=0)
            names = [name for name, share in zip(self.names, shares, strict=True) if share > OPTIONS.min_named_share]
            raise InputError(f"the motion does not determine {len(unseen)} of {len(self.names)} directions of the parameters: "
                             f"{some(names)} cannot be separated; move more joints, further and faster")


@dataclass(frozen=True, eq=False)
class Measurements:
    """Measured motion and torques in the robot's coordinates: t (samples,) [s], the others (samples, n).

    tau and tau_rate are the torques of the joints [N m, N] and, where there is a sensor for them, their rates. Derivatives
    that are None are estimated from those that are given; qddd is needed for tau_rate only. payloads: link -> (mass, com,
    inertia) carried in this recording only, as of Robot.with_payload; used by fitting.fit.
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
class IdentifiedParameters:
    """Identified base parameters, their values in the model before (b,), and their uncertainty.

    estimated, how: derivatives of the motion that were estimated, and the method.
    """

    base: BaseParameters
    prior: np.ndarray
    solution: LeastSquaresSolution
    estimated: tuple[str, ...] = ()
    how: Window | Smoothing | None = None

    @property
    def beta(self) -> np.ndarray:
        """Values (b,), in the order of base.names."""
        return self.solution.x

    @property
    def std(self) -> np.ndarray:
        """Standard deviations (b,)."""
        return np.sqrt(np.diagonal(self.solution.covariance))

    def torque(self, robot: Robot, q, qd, qdd) -> np.ndarray:
        """Return the torque of the identified robot along a motion: (n,) or (samples, n)."""
        return Regressor(robot, [self.base.parameters[k] for k in self.base.kept])(q, qd, qdd) @ self.beta


def identify(robot: Robot, recording: Measurements, terms: Iterable[str] = TERMS, noise: Sequence[float] | None = None,
             decimate: int = 1, window: float | None = None, degree: int = 5) -> IdentifiedParameters:
    """Return the base parameters identified from a recording of a robot whose root is at rest.

    terms    : joint parameters to identify beside the inertial ones
    noise    : standard deviations of the torques (n,), or of torques and rates (2 n,); None: from the residuals
    decimate : keep every k-th equation after a low-pass of torques and regressor (parallel filtering); reduces noise above the
               band of the motion
    window, degree : fit polynomials to estimate derivatives [s] instead of Kalman smoothing, see estimate_recording
    Raises InputError for too few samples, and for parameters that the motion does not determine, with their names.
    """
    validation.held_base(robot.model)
    data = _validated(robot, recording, window, degree)
    if decimate < 1:
        raise InputError(f"decimate is {decimate}; a whole number from 1 is needed")
    if decimate > 1:
        _check_even(np.asarray(recording.t, dtype=float))
    base = base_parameters(robot.model, robot.gravity_vector, tuple(terms), free_root=False)
    regressor = Regressor(robot, [base.parameters[k] for k in base.kept])
    equations = LinearEquations(base.names)
    for Y, tau in _equation_chunks(regressor, data.motion, data.torques, decimate):
        for k, name in enumerate(_channels(robot, data.torques.shape[1])):
            equations.add(name, Y[:, k], tau[:, k])
    prior = base.values_in(unified(robot.model, tuple(robot.payloads.values())))
    return IdentifiedParameters(base, prior, equations.solve(noise), data.estimated, data.how)


class _IdentificationData(NamedTuple):
    """Motion and torques (samples, channels); of estimated derivatives only the samples with others on both sides."""

    motion: list[np.ndarray]
    torques: np.ndarray
    estimated: tuple[str, ...]
    how: Window | Smoothing | None


def _validated(robot: Robot, recording: Measurements, window: float | None, degree: int) -> _IdentificationData:
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
            raise InputError(f"the recording is too short: derivatives are estimated by {how.method}, and samples with "
                             "others on one side only are not used")
    torques = np.hstack([given[name] for name in names[4:] if name in given])
    return _IdentificationData([given[name][good] for name in blocks], torques[good], estimated, how)


def _check_even(t: np.ndarray) -> None:
    steps = np.diff(t)
    if len(steps) and np.ptp(steps) > OPTIONS.max_relative_jitter * steps.mean():
        raise InputError("decimation needs evenly spaced samples; their spacing goes from "
                         f"{steps.min():.6g} to {steps.max():.6g} s")


def _channels(robot: Robot, count: int) -> list[str]:
    return [f"{kind}_{joint}" for kind in ("tau", "tau_rate") for joint in robot.joint_names][:count]


def _equation_chunks(regressor: Regressor, motion: list[np.ndarray], torques: np.ndarray,
           decimate: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield Y (k, channels, b), tau (k, channels), filtered and decimated."""
    taps = low_pass(decimate)
    reach, per_part = len(taps) // 2, max(OPTIONS.chunk_samples // decimate, 1)
    centres = np.arange(reach, len(torques) - reach, decimate)
    for start in range(0, len(centres), per_part):
        chosen = centres[start:start + per_part]
        part = slice(chosen[0] - reach, chosen[-1] + reach + 1)
        blocks = [block[part] for block in motion]
        Y = regressor(*blocks) if len(blocks) == 3 else np.concatenate(regressor.with_rate(*blocks), axis=1)
        yield decimate_filtered(Y, taps, decimate), decimate_filtered(torques[part], taps, decimate)
