"""Identification equations per joint: regressor rows, friction columns and torques, low-passed and decimated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.base_parameters import BaseParameters
from ..errors import InputError, some
from ..estimation.smoothing import PreparedRecording
from ..robots.inputs import validation
from ..robots.robot import Robot
from .friction import LOAD, FrictionModel, load_smoothing
from .identification import OPTIONS, Measurements, Regressor, decimate_filtered, low_pass

MAX_EQUATIONS = 20_000  # for each joint and recording


@dataclass(frozen=True, eq=False)
class FitRecording:
    """Recording as it is used in the fit.

    data     : samples with velocity and acceleration; tau: joint torques [N m, N]
    split    : first sample of the validation set
    carried  : (samples, n) torque of the payloads of this recording [N m, N]
    payloads : link -> (mass, com, inertia) of these
    """

    data: PreparedRecording
    split: int
    carried: np.ndarray
    payloads: Mapping[str, tuple[Any, ...]]

    @property
    def seconds(self) -> float:
        """Duration of the part that is fitted [s]."""
        return float(self.data.t[max(self.split - 1, 0)] - self.data.t[0])


@dataclass(frozen=True, eq=False)
class IdentificationProblem:
    """Recordings and the regressor of a robot without friction.

    base, regressor : base parameters, and the regressor of those that are kept
    joints          : numbers of the measured joints
    """

    base: BaseParameters
    regressor: Regressor
    recordings: tuple[FitRecording, ...]
    joints: tuple[int, ...]

    @property
    def max_speeds(self) -> list[float]:
        """Largest speed of each measured joint, above zero [rad/s, m/s]."""
        speeds = [np.abs(of.data.qd[:of.split, list(self.joints)]).max(axis=0, initial=0.0) for of in self.recordings]
        return np.maximum(np.max(speeds, axis=0), np.finfo(float).eps).tolist()

    def rows(self, data: PreparedRecording, part: slice) -> np.ndarray:
        """Return the regressor (samples, joints, b) of some samples."""
        return self.regressor(data.q[part], data.qd[part], data.qdd[part])[:, list(self.joints)]

    def without(self, joint: int) -> IdentificationProblem:
        """Return the problem without the torque of a joint, given by its index among the measured ones."""
        return replace(self, joints=(*self.joints[:joint], *self.joints[joint + 1:]))


class JointEquations(NamedTuple):
    """Filtered equations of all recordings.

    Y       : (m, joints, b)
    tau     : (m, joints)
    columns : for each joint a function that returns the columns (m, terms) of a friction model without load
    loads   : for each joint a function that returns the column (m,) of friction by load for a smoothing, where loads are known
    """

    Y: np.ndarray
    tau: np.ndarray
    columns: list[Callable[[FrictionModel], np.ndarray]]
    loads: list[Callable[[float], np.ndarray]] = []  # noqa: RUF012  # never changed

    def equations_of(self, joint: int, model: FrictionModel) -> np.ndarray:
        """Return the equations (m, b + terms) of one joint."""
        return np.column_stack((self.Y[:, joint], self.friction(joint, model)))

    def friction(self, joint: int, model: FrictionModel) -> np.ndarray:
        """Return the friction columns (m, terms) of one joint."""
        columns = self.columns[joint](model.unloaded)
        if not model.load_smoothing:
            return columns
        return np.insert(columns, model.kinds.index(LOAD), self.loads[joint](model.smoothing), axis=1)

    def without(self, joint: int) -> JointEquations:
        """Return the equations without those of a joint."""
        return JointEquations(np.delete(self.Y, joint, axis=1), np.delete(self.tau, joint, axis=1),
                    [*self.columns[:joint], *self.columns[joint + 1:]], [*self.loads[:joint], *self.loads[joint + 1:]])


def validate_recording(robot: Robot, recording: Measurements) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Return the numbers of the measured joints, q and tau (samples, n). InputError for wrong shapes or no torques."""
    q = validation.coordinates("q", recording.q, robot.joint_names)
    tau = np.asarray(recording.tau, dtype=float)
    if q.ndim != 2 or tau.shape != q.shape or np.shape(recording.t) != q.shape[:1]:
        raise InputError(f"recording: q has shape {q.shape}, tau {tau.shape}, t {np.shape(recording.t)}; (samples, {robot.n}) "
                         "for q and tau and (samples,) for t are needed")
    joints = tuple(np.flatnonzero(np.isfinite(tau).all(axis=0)).tolist())
    if not joints:
        raise InputError("recording: no joint has a finite torque at every sample")
    if still := [robot.joint_names[k] for k in joints if not np.ptp(tau[:, k])]:
        raise InputError(f"recording: the torque of {some(still)} never changes; a joint whose torque was not measured is "
                         f"excluded with --no-torque {still[0]} (in Python: a column of NaN)")
    return joints, q, tau


def equations(problem: IdentificationProblem, rate: float) -> JointEquations:
    """Return `rate` equations per second and joint, of the samples before each split."""
    filters = [_LowPass.of(recording, rate) for recording in problem.recordings]
    count = sum(low.n_equations for low in filters)
    if count * len(problem.joints) <= 2 * len(problem.base):
        raise InputError(f"recording: {count} equations for each of {len(problem.joints)} joints are too few for "
                         f"{len(problem.base)} parameters; a longer recording, or a rate above {rate:g} is needed")
    Y, tau = [], []
    speeds: list[list[_Filtered]] = [[] for _ in problem.joints]
    for recording, low in zip(problem.recordings, filters, strict=True):
        data = recording.data
        for part in low.parts():
            Y.append(low(problem.rows(data, part)))
            tau.append(low((data.tau[part] - recording.carried[part])[:, list(problem.joints)]))
            for speed, parts in zip(data.qd[part][:, list(problem.joints)].T, speeds, strict=True):
                parts.append(_Filtered(low, speed))
    return JointEquations(np.concatenate(Y), np.concatenate(tau), [cache(partial(_columns, parts)) for parts in speeds])


def filtered_column(problem: IdentificationProblem, rate: float, column: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return a column (m,) of all equations from a function of velocities: (samples, n) to (samples,)."""
    filters = [_LowPass.of(recording, rate) for recording in problem.recordings]
    return np.concatenate([low(column(recording.data.qd[part]))
                           for recording, low in zip(problem.recordings, filters, strict=True) for part in low.parts()])


class _LowPass(NamedTuple):
    """Low-pass of the equations: taps, decimation, and the number of samples before the split."""

    taps: np.ndarray
    decimate: int
    split: int

    @classmethod
    def of(cls, recording: FitRecording, rate: float) -> _LowPass:
        t, split = recording.data.t, recording.split
        sampled = (split - 1) / max(t[split - 1] - t[0], 1e-9)
        decimate = max(round(sampled / rate), -(-split // MAX_EQUATIONS), 1)
        return cls(low_pass(decimate), decimate, split)

    @property
    def _centres(self) -> np.ndarray:
        reach = len(self.taps) // 2
        return np.arange(reach, self.split - reach, self.decimate)

    @property
    def n_equations(self) -> int:
        return len(self._centres)

    def parts(self) -> Iterator[slice]:
        """Yield ranges of samples that are filtered together."""
        centres, reach, per_part = self._centres, len(self.taps) // 2, max(OPTIONS.chunk_samples // self.decimate, 1)
        for begin in range(0, len(centres), per_part):
            chosen = centres[begin:begin + per_part]
            yield slice(chosen[0] - reach, chosen[-1] + reach + 1)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return decimate_filtered(x, self.taps, self.decimate)


def with_loads(problem: IdentificationProblem, rows: JointEquations, rate: float, beta: np.ndarray) -> JointEquations:
    """Return the equations with columns of friction by load, for the torques of links and rotors of base parameters beta."""
    smoothing = [load_smoothing(torque) for torque in np.sqrt(np.mean(rows.tau**2, axis=0)).tolist()]
    loads: list[list[_Filtered]] = [[] for _ in problem.joints]
    for recording in problem.recordings:
        data, low = recording.data, _LowPass.of(recording, rate)
        for part in low.parts():
            X = problem.rows(data, part) @ beta + recording.carried[part][:, list(problem.joints)]
            for k, (speed, parts) in enumerate(zip(data.qd[part][:, list(problem.joints)].T, loads, strict=True)):
                parts.append(_Filtered(low, speed, np.hypot(X[:, k], smoothing[k])))
    return rows._replace(loads=[cache(partial(_load_column, parts)) for parts in loads])


class _Filtered(NamedTuple):
    """Speeds, and loads, of a range of samples of one joint, with the low-pass filter of their columns."""

    low: _LowPass
    speed: np.ndarray
    load: np.ndarray | None = None


def _columns(parts: Sequence[_Filtered], model: FrictionModel) -> np.ndarray:
    """Return the columns (m, terms) of a friction model without load."""
    return np.concatenate([part.low(model.columns(part.speed)) for part in parts])


def _load_column(parts: Sequence[_Filtered], smoothing: float) -> np.ndarray:
    """Return the column (m,) of friction by load."""
    return np.concatenate([part.low(np.tanh(part.speed / smoothing) * part.load) for part in parts])


def validation_residuals(problem: IdentificationProblem, models: Sequence[FrictionModel], x: np.ndarray) -> np.ndarray:
    """Return measured less predicted torques (samples, joints) of all validation sets.

    x: base parameters, then friction coefficients joint after joint
    """
    b = len(problem.base)
    found = [np.zeros((0, len(problem.joints)))]
    for recording in problem.recordings:
        data = recording.data
        for begin in range(recording.split, len(data.t), OPTIONS.chunk_samples):
            part = slice(begin, begin + OPTIONS.chunk_samples)
            load = problem.rows(data, part) @ x[:b] + recording.carried[part][:, list(problem.joints)]
            left, rest = data.tau[part][:, list(problem.joints)] - load, x[b:]
            for k, (speed, model) in enumerate(zip(data.qd[part][:, list(problem.joints)].T, models, strict=True)):
                left[:, k] -= model.columns(speed, load[:, k]) @ rest[:len(model.kinds)]
                rest = rest[len(model.kinds):]
            found.append(left)
    return np.concatenate(found)
