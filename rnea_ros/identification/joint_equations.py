"""The equations of a recording, joint by joint: rows of the regressor, columns of friction models, torques; low-passed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..errors import InputError, some
from ..estimation.preparation import Prepared
from ..inertial.base_parameters import BaseParameters
from ..robots.inputs import validation
from ..robots.robot import Robot
from .friction import FrictionModel, candidates
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
    """Y (m, joints, b), tau (m, joints), and for each joint the columns (m, terms) of every friction model."""

    Y: np.ndarray
    tau: np.ndarray
    columns: list[dict[FrictionModel, np.ndarray]]

    def of(self, joint: int, model: FrictionModel) -> np.ndarray:
        """(m, b + terms) of one joint."""
        return np.column_stack((self.Y[:, joint], self.columns[joint][model]))


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
    data, split, joints = given.data, given.split, list(given.joints)
    sampled = (split - 1) / max(data.t[split - 1] - data.t[0], 1e-9)
    decimate = max(round(sampled / rate), -(-split // MOST), 1)
    taps = low_pass(decimate)
    reach, per_part = len(taps) // 2, max(CHUNK // decimate, 1)
    centres = np.arange(reach, split - reach, decimate)
    if len(centres) * len(joints) <= 2 * len(given.base):
        raise InputError(f"{len(centres)} equations for each joint are too few for {len(given.base)} parameters; a longer "
                         f"recording, or a rate above {rate:g} is needed")
    Y, tau = [], []
    columns: list[dict[FrictionModel, list]] = [{model: [] for model in candidates(v)} for v in given.speeds.tolist()]
    for begin in range(0, len(centres), per_part):
        chosen = centres[begin:begin + per_part]
        part = slice(chosen[0] - reach, chosen[-1] + reach + 1)
        Y.append(filtered(given.regressor(data.q[part], data.qd[part], data.qdd[part])[:, joints], taps, decimate))
        tau.append(filtered(data.tau[part][:, joints], taps, decimate))
        for joint, kept in zip(joints, columns, strict=True):
            for model, found in kept.items():
                found.append(filtered(model.columns(data.qd[part, joint]), taps, decimate))
    return Rows(np.concatenate(Y), np.concatenate(tau),
                [{model: np.concatenate(found) for model, found in kept.items()} for kept in columns])


def foretold(given: Recorded, models: Sequence[FrictionModel], x: np.ndarray) -> np.ndarray:
    """Torques (samples, joints) after the split. x: base parameters, and friction joint after joint."""
    data, rest = given.data, x[len(given.base):]
    parts = [slice(k, k + CHUNK) for k in range(given.split, len(data.t), CHUNK)]
    rigid = [given.regressor(data.q[part], data.qd[part], data.qdd[part])[:, list(given.joints)] @ x[:len(given.base)]
             for part in parts]
    tau = np.concatenate([np.zeros((0, len(given.joints))), *rigid])
    for k, (joint, model) in enumerate(zip(given.joints, models, strict=True)):
        tau[:, k] += model.columns(data.qd[given.split:, joint]) @ rest[:len(model.kinds)]
        rest = rest[len(model.kinds):]
    return tau
