"""Contact thresholds learnt from free motion, with the friction and the offsets that the model does not have.

In free motion the external effort is the model's error. Per joint this module fits an offset, Coulomb and viscous friction to
it by least squares. These are taken off from then on; the largest remainder, in standard deviations of the model's error,
times a margin is the threshold.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.robot_file.robot_file import RobotFile
from ..model.tree import ContactCalibration
from ..robots.robot import Robot
from .external_effort import LONGEST, Contact, ExternalEffortObserver
from .smoothing import prepare

MARGIN = 1.25  # threshold by the largest remainder of the free motion
MIN_THRESHOLD = 1.5  # standard deviations: the motion to learn from does not reach every pose
MIN_TIME_S = 10.0  # of free motion
PERIOD_S = 0.004  # between two samples that are kept: far below the observer's time constant
MAX_SAMPLES = 150_000  # ten minutes
MOVES = 5.0  # times the speed within which Coulomb friction is smooth: from here on a joint moves
MIN_MOVING = 0.02  # share of the samples in which it has to, in each direction, for its friction to be fitted
HUBER = 2.0  # standard deviations of the remainder from which a sample counts less in the fit
SUDDEN = 3.0  # times the 99.5 % quantile of the remainder: larger values look like a contact


class Learnt(NamedTuple):
    """Result of learning: calibration by joint, seconds of motion, and warnings, one sentence each."""

    calibration: dict[str, ContactCalibration]
    seconds: float
    warnings: list[str]


class ContactLearner:
    """Learner of contact thresholds: reads an observer after each of its samples, in free motion."""

    def __init__(self, observer: ExternalEffortObserver):
        self.observer = observer
        self._filtered = self._before = np.zeros((2, observer.robot.n))
        self._last = self._kept = -math.inf
        self.seconds = 0.0
        self._samples: list[np.ndarray] = []  # (6, n): external effort, filtered direction and velocity, std, sticking, speed

    def push(self, time: float, effort: np.ndarray, qd: np.ndarray) -> None:
        """Add the observer's external effort (n,) of a time [s], with the velocities (n,) that it was given."""
        observer, dt = self.observer, time - self._last
        basis = np.array((np.tanh(qd / observer.smoothing), qd))
        if not 0.0 < dt <= LONGEST:
            self._filtered, dt = 0.0 * basis, 0.0  # the observer begins anew
        else:  # as the observer filters external efforts
            mean = 0.5 * (basis + self._before)
            self._filtered = (self._filtered + observer.gain * dt * mean) / (1.0 + observer.gain * dt)
        self._last, self._before = time, basis
        if dt > 0.0:
            self.seconds += dt
        known = bool(np.isfinite(observer.model_std).all())
        if known and len(self._samples) < MAX_SAMPLES and not 0.0 <= time - self._kept < PERIOD_S:
            self._samples.append(np.array((effort, *self._filtered, observer.model_std, observer.sticking, np.abs(qd))))
            self._kept = time

    def result(self) -> Learnt:
        """Return the thresholds. InputError if there is not enough free motion."""
        if self.seconds < MIN_TIME_S or not self._samples:
            raise InputError(f"{self.seconds:.1f} s of free motion with measured efforts; at least {MIN_TIME_S:g} s are "
                             "needed")
        observer, names = self.observer, self.observer.robot.joint_names
        effort, direction, qd, std, sticking, speed = np.array(self._samples).transpose(1, 2, 0)
        before = [observer.calibration[name] for name in names]
        fits = np.zeros((len(names), 3))
        warnings, still = [], []
        for k, name in enumerate(names):
            moving = qd[k][speed[k] > MOVES * observer.smoothing[k]]
            if min((moving > 0.0).sum(), (moving < 0.0).sum()) < MIN_MOVING * len(qd[k]):
                still.append(name)
            else:
                fits[k] = _fit(-effort[k], direction[k], qd[k], observer.friction[:, k])
        learnt = [replace(old, offset=old.offset + o, coulomb=old.coulomb + c, viscous=old.viscous + v)
                  for old, (o, c, v) in zip(before, fits)]
        calibrated = ExternalEffortObserver(observer.robot, uncertainty=observer.uncertainty,
                                            calibration=dict(zip(names, learnt)))
        found = {}
        for k, name in enumerate(names):
            left = effort[k] + fits[k] @ (np.ones_like(qd[k]), direction[k], qd[k])
            coulomb, viscous = calibrated.friction[:, k]
            total = np.hypot(std[k], observer.uncertainty.friction * (coulomb + viscous * speed[k]))
            ratio = np.maximum(np.abs(left) - coulomb * sticking[k], 0.0) / total
            largest, usual = float(ratio.max()), float(np.quantile(ratio, 0.995))
            if largest > SUDDEN * usual and largest > 3.0:
                warnings.append(f"{name}: the largest external effort is {largest / max(usual, 1e-9):.1f} times what 99.5 % "
                                "of the samples stay below: was the robot touched? Learn again")
            found[name] = replace(learnt[k], threshold=max(MARGIN * largest, MIN_THRESHOLD))
        if still:
            warnings.append(f"{', '.join(still)}: moved too little for friction to be learnt")
        return Learnt(found, self.seconds, warnings)


def _fit(effort: np.ndarray, direction: np.ndarray, qd: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Return offset, Coulomb and viscous friction (3,) that explain an effort; friction, with what is known, is at least 0."""
    rows = np.stack((np.ones_like(qd), direction, qd), axis=1)
    use, found = [0, 1, 2], np.zeros(3)
    fixed = np.zeros(3)
    for _ in range(3):
        weight = np.ones_like(qd)
        for _ in range(4):  # Huber's estimate by reweighting
            found = fixed.copy()
            root = np.sqrt(weight)[:, None]
            found[use] = np.linalg.lstsq(rows[:, use] * root, (effort - rows @ fixed) * root[:, 0], rcond=None)[0]
            left = np.abs(effort - rows @ found)
            scale = 1.4826 * np.median(left)
            weight = np.minimum(1.0, HUBER * scale / np.maximum(left, 1e-12 + 1e-3 * scale))
        below = [k for k in use[1:] if found[k] < -friction[k - 1]]
        if not below:
            break
        use = [k for k in use if k not in below]
        fixed[below] = -friction[np.array(below) - 1]
    return found


def learn_from_motion(robot: Robot, t: Any, q: Any, effort: Any, qd: Any = None, qdd: Any = None,
                      window: float | None = None) -> Learnt:
    """Return the thresholds of a recorded free motion: times (samples,) [s], arrays (samples, n).

    effort: as the robot reports it; derivatives that are None are estimated; window: of polynomials for that, instead of
    Kalman smoothing [s].
    """
    learner = ContactLearner(ExternalEffortObserver(robot))
    data = prepare(t, q, effort, qd, qdd, window, robot.joint_types)
    for time, *sample in zip(data.t, data.q, data.qd, data.tau, data.qdd):
        found = learner.observer.push(float(time), *sample)
        learner.push(float(time), found.effort, sample[1])
    return learner.result()


def contacts(robot: Robot, t: Any, q: Any, effort: Any, qd: Any = None, qdd: Any = None, window: float | None = None,
             calibration: Mapping[str, ContactCalibration] | None = None) -> list[Contact]:
    """Return the begin and end of every contact in a recording; calibration: thresholds, if not the robot file's."""
    observer, found = ExternalEffortObserver(robot, calibration=calibration), list[Contact]()
    data = prepare(t, q, effort, qd, qdd, window, robot.joint_types)
    for time, *sample in zip(data.t, data.q, data.qd, data.tau, data.qdd):
        observer.push(float(time), *sample)
        found.extend(observer.events)
    return found


def contact_section(learnt: Learnt) -> RobotFile:
    """Return a robot file with the section `contact`."""
    return RobotFile({"version": 1, "contact": {name: {part: float(f"{value:.4g}") for part, value in asdict(one).items()}
                                                for name, one in learnt.calibration.items()}}, "contact thresholds")
