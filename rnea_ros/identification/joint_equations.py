"""The equations of a recording, joint by joint: rows of the regressor, columns of friction models, torques; low-passed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from ..estimation.preparation import Prepared
from ..inertial.base_parameters import BaseParameters
from ..robots.inputs import validation
from ..robots.robot import Robot
from .friction import LOAD, FrictionModel, candidates, load_smoothing
from .identification import CHUNK, Measurements
from .parallel_filter import filtered, low_pass
from .regressor_kernel import Regressor

MOST = 20_000  # equations of a joint


class Recorded(NamedTuple):
    """A recording beside a robot without friction.

    base  : its base parameters, regressor: of those that are kept
    split : the first sample that is not used
    joints: numbers of those whose torques were measured
    """

    base: BaseParameters
    regressor: Regressor
    data: Prepared
    split: int
    joints: tuple[int, ...]

    @property
    def speeds(self) -> np.ndarray:
        """(joints,) the largest speed of each, above zero."""
        speeds = np.abs(self.data.qd[:self.split, self.joints]).max(axis=0, initial=0.0)
        return np.maximum(speeds, np.finfo(float).eps)


class Rows(NamedTuple):
    """Y (m, joints, b), tau (m, joints), and for each joint the columns (m, terms) of every friction model that no load
    changes; loads: for each joint the column of friction by load (m,), by smoothing, where loads are known."""

    Y: np.ndarray
    tau: np.ndarray
    columns: list[dict[FrictionModel, np.ndarray]]
    loads: list[dict[float, np.ndarray]] = []  # noqa: RUF012  # nothing is ever added

    def of(self, joint: int, model: FrictionModel) -> np.ndarray:
        """(m, b + terms) of one joint."""
        return np.column_stack((self.Y[:, joint], self.friction(joint, model)))

    def friction(self, joint: int, model: FrictionModel) -> np.ndarray:
        """(m, terms) of one joint."""
        columns = self.columns[joint][model.unloaded]
        if not model.load_smoothing:
            return columns
        return np.insert(columns, model.kinds.index(LOAD), self.loads[joint][model.smoothing], axis=1)


def measured(robot: Robot, recording: Measurements) -> tuple[tuple[int, ...], np.ndarray, np.ndarray]:
    """Numbers of the joints with torques, q and tau (samples, n). InputError for shapes, and where no joint has torques."""
    q = validation.coordinates("q", recording.q, robot.joint_names)
    tau = np.asarray(recording.tau, dtype=float)
    if q.ndim != 2 or tau.shape != q.shape or np.shape(recording.t) != q.shape[:1]:
        raise InputError(f"q is {q.shape}, tau {tau.shape}, t {np.shape(recording.t)}; (samples, {robot.n}) twice and "
                         "(samples,) are needed")
    joints = tuple(np.flatnonzero(np.isfinite(tau).all(axis=0)).tolist())
    if not joints:
        raise InputError("no joint has a finite torque at every sample")
    if still := [robot.joint_names[k] for k in joints if not np.ptp(tau[:, k])]:
        raise InputError(f"the torque of {some(still)} never changes; leave out (NaN) what is not measured")
    return joints, q, tau


def equations(given: Recorded, rate: float) -> Rows:
    """Of the samples before the split, `rate` of them in a second."""
    data, joints, low = given.data, list(given.joints), _LowPass.of(given, rate)
    if low.equations * len(joints) <= 2 * len(given.base):
        raise InputError(f"{low.equations} equations for each joint are too few for {len(given.base)} parameters; a longer "
                         f"recording, or a rate above {rate:g} is needed")
    Y, tau = [], []
    columns: list[dict[FrictionModel, list]] = [{model: [] for model in candidates(v)} for v in given.speeds.tolist()]
    for part in low.parts():
        Y.append(low(given.regressor(data.q[part], data.qd[part], data.qdd[part])[:, joints]))
        tau.append(low(data.tau[part][:, joints]))
        for joint, kept in zip(joints, columns, strict=True):
            for model, found in kept.items():
                found.append(low(model.columns(data.qd[part, joint])))
    return Rows(np.concatenate(Y), np.concatenate(tau),
                [{model: np.concatenate(found) for model, found in kept.items()} for kept in columns])


class _LowPass(NamedTuple):
    """What equations pass before they are thinned: taps, every how manieth is kept, and samples before the split."""

    taps: np.ndarray
    decimate: int
    split: int

    @classmethod
    def of(cls, given: Recorded, rate: float) -> _LowPass:
        t, split = given.data.t, given.split
        sampled = (split - 1) / max(t[split - 1] - t[0], 1e-9)
        decimate = max(round(sampled / rate), -(-split // MOST), 1)
        return cls(low_pass(decimate), decimate, split)

    @property
    def _centres(self) -> np.ndarray:
        reach = len(self.taps) // 2
        return np.arange(reach, self.split - reach, self.decimate)

    @property
    def equations(self) -> int:
        """Of what is kept."""
        return len(self._centres)

    def parts(self) -> Iterator[slice]:
        """Samples that are worked at together."""
        centres, reach, per_part = self._centres, len(self.taps) // 2, max(CHUNK // self.decimate, 1)
        for begin in range(0, len(centres), per_part):
            chosen = centres[begin:begin + per_part]
            yield slice(chosen[0] - reach, chosen[-1] + reach + 1)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        return filtered(x, self.taps, self.decimate)


def with_loads(given: Recorded, rows: Rows, rate: float, beta: np.ndarray) -> Rows:
    """With columns of friction by load: by the torques of links and rotors, of base parameters beta (b,)."""
    data, low, joints = given.data, _LowPass.of(given, rate), list(given.joints)
    least = [load_smoothing(torque) for torque in np.sqrt(np.mean(rows.tau**2, axis=0)).tolist()]
    loads: list[dict[float, list]] = [{model.smoothing: [] for model in kept} for kept in rows.columns]
    for part in low.parts():
        X = given.regressor(data.q[part], data.qd[part], data.qdd[part])[:, joints] @ beta
        for k, (joint, kept) in enumerate(zip(joints, loads, strict=True)):
            for smoothing, found in kept.items():
                found.append(low(np.tanh(data.qd[part, joint] / smoothing) * np.hypot(X[:, k], least[k])))
    return rows._replace(loads=[{v: np.concatenate(found) for v, found in kept.items()} for kept in loads])


def foretold(given: Recorded, models: Sequence[FrictionModel], x: np.ndarray) -> np.ndarray:
    """Torques (samples, joints) after the split. x: base parameters, and friction joint after joint."""
    data, rest = given.data, x[len(given.base):]
    parts = [slice(k, k + CHUNK) for k in range(given.split, len(data.t), CHUNK)]
    rigid = [given.regressor(data.q[part], data.qd[part], data.qdd[part])[:, list(given.joints)] @ x[:len(given.base)]
             for part in parts]
    tau = np.concatenate([np.zeros((0, len(given.joints))), *rigid])
    for k, (joint, model) in enumerate(zip(given.joints, models, strict=True)):
        tau[:, k] += model.columns(data.qd[given.split:, joint], tau[:, k]) @ rest[:len(model.kinds)]
        rest = rest[len(model.kinds):]
    return tau
