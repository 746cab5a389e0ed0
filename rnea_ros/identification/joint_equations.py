"""Identification equations per joint: regressor rows, friction columns and torques, low-passed and decimated.

Friction models of a joint are columns of equations that are linear in the unknown coefficients.

    s = tanh(qd / v)     e = 1 - tanh^2(qd / vs)     as in algorithms/joint_dynamics.py

    coulomb         s (1 - e)             Coulomb friction at speed; e is zero without the Stribeck term
    breakaway       s e                   Coulomb friction near zero velocity
    viscous         qd                    viscous friction, equal in both directions
    forwards        qd (1 + s)/2          viscous friction for positive velocity
    backwards       qd (1 - s)/2          viscous friction for negative velocity
    load_dependent  s sqrt(X^2 + l^2)     X: torque of links and rotor
    offset          1                     constant torque; with it Coulomb friction may differ between the directions

Friction dissipates energy if and only if all coefficients but the offset are not negative.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.inertial_parameters import BaseParameters
from ..errors import InputError, some
from ..estimation.smoothing import PreparedRecording
from ..robots import validation
from ..robots.robot import Robot
from .identification import OPTIONS, Measurements, Regressor, decimate_filtered, low_pass

# ------------------------------------------------------------------ friction models


OFFSET, LOAD, BY_SPEED = "offset", "load_dependent", ("viscous", "forwards", "backwards")
SMOOTHING = (0.003, 0.01, 0.02, 0.04, 0.07, 0.12, 0.2)  # v, as shares of the largest speed
STRIBECK = (0.04, 0.08, 0.15, 0.3, 0.6, 1.2)  # vs, as shares of the largest speed
LOAD_SMOOTHING = 0.02  # l, as a share of the RMS torque
MAX_LOAD_SHARE = 0.999  # of load_dependent
MIN_SPEED_RATIO = 1.9  # vs / v: closer speeds cannot be distinguished


class FrictionModel(NamedTuple):
    """Friction model of one joint.

    smoothing         : v [rad/s, m/s]
    stribeck_velocity : vs [rad/s, m/s]; None: no Stribeck term
    asymmetric        : whether viscous friction differs between the directions
    load_smoothing    : l [N m, N]; 0: friction does not depend on the load
    """

    smoothing: float
    stribeck_velocity: float | None = None
    asymmetric: bool = False
    load_smoothing: float = 0.0

    @property
    def kinds(self) -> tuple[str, ...]:
        """Names of the columns."""
        stribeck = ("breakaway",) if self.stribeck_velocity else ()
        by_speed = ("forwards", "backwards") if self.asymmetric else ("viscous",)
        return ("coulomb", *stribeck, *by_speed, *((LOAD,) if self.load_smoothing else ()), OFFSET)

    @property
    def description(self) -> str:
        """Names of the terms, for reports."""
        terms = ["Coulomb", "viscous"] + ["Stribeck"] * bool(self.stribeck_velocity) + ["asymmetric"] * self.asymmetric
        terms += ["load"] * bool(self.load_smoothing)
        return ", ".join(terms)

    @property
    def unloaded(self) -> FrictionModel:
        """The model without dependence on the load."""
        return self._replace(load_smoothing=0.0)

    def columns(self, qd: np.ndarray, X: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the columns (samples, terms) at speeds qd (samples,) and loads X (samples,)."""
        s = np.tanh(qd / self.smoothing)
        e = 1.0 - np.tanh(qd / self.stribeck_velocity) ** 2 if self.stribeck_velocity else 0.0 * qd
        found = {"coulomb": s * (1.0 - e), "breakaway": s * e, "viscous": qd, "forwards": qd * (1.0 + s) / 2.0,
                 "backwards": qd * (1.0 - s) / 2.0, LOAD: s * np.hypot(X, self.load_smoothing), OFFSET: np.ones_like(qd)}
        return np.column_stack([found[kind] for kind in self.kinds])

    def terms(self, values: Sequence[float] | np.ndarray) -> dict[str, float]:
        """Return the friction arguments of JointDynamics for the coefficients of the columns."""
        given = {kind: float(value) for kind, value in zip(self.kinds, values, strict=True)}
        found = {"coulomb": given["coulomb"], "offset": given[OFFSET], "smoothing": self.smoothing}
        if self.load_smoothing:
            found |= {LOAD: min(given[LOAD], MAX_LOAD_SHARE), "load_smoothing": self.load_smoothing}
        if self.stribeck_velocity:
            found |= {"stribeck": given["breakaway"] - given["coulomb"], "stribeck_velocity": self.stribeck_velocity}
        if not self.asymmetric:
            return found | {"viscous": given["viscous"]}
        forwards, backwards = given["forwards"], given["backwards"]
        return found | {"viscous": (forwards + backwards) / 2.0, "asymmetry": (forwards - backwards) / 2.0}


def simple_candidates(speed: float) -> list[FrictionModel]:
    """Return the models without Stribeck term for a joint of this largest speed, those with fewer terms first."""
    return [FrictionModel(_three_digits(v * speed), None, asymmetric) for asymmetric in (False, True) for v in SMOOTHING]


def candidates(speed: float) -> list[FrictionModel]:
    """Return the models for a joint of this largest speed, those with fewer terms first."""
    return simple_candidates(speed) + [
        FrictionModel(_three_digits(v * speed), _three_digits(vs * speed), asymmetric)
        for asymmetric in (False, True) for v in SMOOTHING for vs in STRIBECK if vs > MIN_SPEED_RATIO * v]


def neighbours(model: FrictionModel, factor: float) -> list[FrictionModel]:
    """Return models with varied velocities: smoothing by `factor` to both sides, Stribeck by its square root.

    An error of one velocity compensates for an error of the other, so both are varied together.
    """
    found = []
    for power in (-1, 0, 1):
        smoothing = _three_digits(model.smoothing * factor**power)
        vs = model.stribeck_velocity
        others = [_three_digits(vs * factor**other) for other in (-0.5, 0.0, 0.5)] if vs else [None]
        found += [model._replace(smoothing=smoothing, stribeck_velocity=other) for other in others]
    return [one for one in found if (one.stribeck_velocity or np.inf) > MIN_SPEED_RATIO * one.smoothing and one != model]


def loaded(model: FrictionModel, torque: float) -> FrictionModel:
    """Return the model with load-dependent friction for a joint of this RMS torque."""
    return model._replace(load_smoothing=load_smoothing(torque))


def load_smoothing(torque: float) -> float:
    """Return l for a joint of this RMS torque."""
    return _three_digits(LOAD_SMOOTHING * torque)


def initial_model(speed: float) -> FrictionModel:
    """Return the initial model of the selection."""
    return FrictionModel(_three_digits(SMOOTHING[2] * speed))


def _three_digits(speed: float) -> float:
    return float(f"{speed:.3g}")


# ------------------------------------------------------------------ equations


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
