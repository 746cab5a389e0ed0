"""Contact thresholds, friction and offsets learned from free motion.

In free motion the external effort is the model's error. Per joint an offset, Coulomb and viscous friction are fitted to it
by least squares and compensated afterwards. The threshold is the largest remaining effort, in standard deviations of the
model's error, times a margin.

The model's error depends on pose and motion, so repeating a motion adds no information, however long it lasts. The evidence
is the number of different states of motion, at which the velocities (n,) of the arm differ. The margin grows as the
quantile of Student's t distribution with so many degrees of freedom.
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
from .external_effort import MAX_GAP_S, Contact, ExternalEffortObserver
from .smoothing import prepare

MARGIN = 1.25  # threshold over the largest remainder in free motion
MIN_THRESHOLD = 1.5  # smallest threshold [standard deviations]: the recorded motion does not reach every pose
# Different states of motion with which the margin is MARGIN, for many joints; ten seconds of varied motion show as many
ENOUGH_STATES = 20
STATES_PER_JOINT = 3  # at rest and both ways: few joints have no more states than this to the power of their number
STATE_PERIOD_S = 0.1  # period at which states are compared [s]
STATE_DISTANCE = 1.0  # states differ if the speed of a joint differs by more than this, in its root mean square
QUANTILE = 2.576  # of the normal distribution at 99.5 %: the margin grows as that of Student's t
MAX_GROWTH = 2.0  # largest growth of the margin
LITTLE_SPEED = 0.25  # joints below this share of their velocity limit are named in a warning about too few states
MIN_TIME_S = 10.0  # shortest free motion [s]
PERIOD_S = 0.004  # period of the samples that are kept [s], far below the observer's time constant
MAX_SAMPLES = 150_000  # ten minutes
MOVING_SPEED_RATIO = 5.0  # speed from which on a joint counts as moving, over the smoothing velocity of Coulomb friction
MIN_MOVING = 0.02  # share of moving samples in each direction that a fit of friction needs
HUBER = 2.0  # threshold of Huber's estimator [standard deviations of the remainder]
MAX_PEAK_RATIO = 3.0  # largest remainder over its 99.5 % quantile above which a contact is suspected


class LearnedContact(NamedTuple):
    """Learned contact calibration by joint, duration of motion [s], and warnings."""

    calibration: dict[str, ContactCalibration]
    seconds: float
    warnings: list[str]


class ContactLearner:
    """Learner of contact thresholds from free motion: reads an observer after each of its samples."""

    def __init__(self, observer: ExternalEffortObserver):
        self.observer = observer
        self._filtered = self._before = np.zeros((2, observer.robot.n))
        self._last = self._kept = -math.inf
        self.seconds = 0.0
        self._samples: list[np.ndarray] = []  # (6, n): external effort, filtered direction and velocity, std, sticking, speed

    def push(self, time: float, effort: np.ndarray, qd: np.ndarray) -> None:
        """Add the observer's external effort (n,) at a time [s] and the velocities (n,) that the observer was given."""
        observer, dt = self.observer, time - self._last
        basis = np.array((np.tanh(qd / observer.smoothing), qd))
        if not 0.0 < dt <= MAX_GAP_S:
            self._filtered, dt = 0.0 * basis, 0.0  # the observer restarts
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

    def result(self) -> LearnedContact:
        """Return the learned calibration. Raises InputError if there is not enough free motion."""
        if self.seconds < MIN_TIME_S or not self._samples:
            raise InputError(f"free motion: {self.seconds:.1f} s with measured efforts; at least {MIN_TIME_S:g} s are needed")
        observer, names = self.observer, self.observer.robot.joint_names
        effort, direction, qd, std, sticking, speed = np.array(self._samples).transpose(1, 2, 0)
        before = [observer.calibration[name] for name in names]
        fits = np.zeros((len(names), 3))
        warnings, still = [], []
        for k, name in enumerate(names):
            moving = qd[k][speed[k] > MOVING_SPEED_RATIO * observer.smoothing[k]]
            if min((moving > 0.0).sum(), (moving < 0.0).sum()) < MIN_MOVING * len(qd[k]):
                still.append(name)
            else:
                fits[k] = _fit(-effort[k], direction[k], qd[k], observer.friction[:, k])
        learned = [replace(old, offset=old.offset + o, coulomb=old.coulomb + c, viscous=old.viscous + v)
                  for old, (o, c, v) in zip(before, fits)]
        calibrated = ExternalEffortObserver(observer.robot, uncertainty=observer.uncertainty,
                                            calibration=dict(zip(names, learned)))
        states = different_states(qd, MOVING_SPEED_RATIO * observer.smoothing)
        enough = enough_states(len(names))
        found, growth = {}, margin_growth(states, enough)
        for k, name in enumerate(names):
            left = effort[k] + fits[k] @ (np.ones_like(qd[k]), direction[k], qd[k])
            coulomb, viscous = calibrated.friction[:, k]
            total = np.hypot(std[k], observer.uncertainty.friction * (coulomb + viscous * speed[k]))
            ratio = np.maximum(np.abs(left) - coulomb * sticking[k], 0.0) / total
            largest, usual = float(ratio.max()), float(np.quantile(ratio, 0.995))
            if largest > MAX_PEAK_RATIO * usual and largest > 3.0:
                warnings.append(f"{name}: the largest external effort is {largest / max(usual, 1e-9):.1f} times what 99.5 % "
                                "of the samples stay below; if the robot was touched, learn again without contact")
            found[name] = replace(learned[k], threshold=growth * max(MARGIN * largest, MIN_THRESHOLD))
        if growth > 1.0:
            slow = [name for name, fastest, limit in zip(names, speed.max(axis=1), observer.robot.limits.velocity)
                    if name in still or not fastest >= LITTLE_SPEED * limit]
            warnings.append(f"{', '.join(slow or names)}: the motion shows few speeds and poses of them ({states} different "
                            f"states of the robot; {enough} are enough): all thresholds are {growth:.2f} times as high; learn "
                            "again from varied motion")
        if still:
            warnings.append(f"{', '.join(still)}: moved too little for its friction to be learned")
        return LearnedContact(found, self.seconds, warnings)


def different_states(qd: np.ndarray, least: np.ndarray) -> int:
    """Return how many states of motion differ, at most those that are enough, by velocities (n, samples).

    least: (n,) speeds that count as rest [rad/s, m/s]
    """
    scale = STATE_DISTANCE * np.maximum(np.sqrt(np.mean(qd**2, axis=1)), least)
    left: np.ndarray = qd[:, ::round(STATE_PERIOD_S / PERIOD_S)].T / scale
    count, enough = 0, enough_states(len(qd))
    while len(left) and count < enough:
        left = left[np.abs(left - left[0]).max(axis=1) > 1.0]
        count += 1
    return count


def enough_states(joints: int) -> int:
    """Return the number of different states of motion that is enough for so many joints."""
    return min(ENOUGH_STATES, STATES_PER_JOINT**joints)


def margin_growth(states: int, enough: int) -> float:
    """Return the factor of the margin where so many different states are known instead of enough: 1 or more."""
    few, many = (_student_quantile(max(count, 1)) for count in (states, enough))
    return min(max(few / many, 1.0), MAX_GROWTH)


def _student_quantile(freedom: int) -> float:
    """Return the quantile of Student's t distribution at the probability of QUANTILE (Abramowitz and Stegun 26.7.5)."""
    z = QUANTILE
    return (z + (z**3 + z) / (4.0 * freedom) + (5.0 * z**5 + 16.0 * z**3 + 3.0 * z) / (96.0 * freedom**2)
            + (3.0 * z**7 + 19.0 * z**5 + 17.0 * z**3 - 15.0 * z) / (384.0 * freedom**3))


def _fit(effort: np.ndarray, direction: np.ndarray, qd: np.ndarray, friction: np.ndarray) -> np.ndarray:
    """Return offset, Coulomb and viscous friction (3,) that explain an effort; total friction is not negative."""
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
                      window: float | None = None) -> LearnedContact:
    """Return the contact calibration from a recorded free motion: times (samples,) [s], arrays (samples, n).

    effort: as the robot reports it; missing derivatives are estimated, by polynomials over `window` [s] instead of Kalman
    smoothing if it is given.
    """
    learner = ContactLearner(ExternalEffortObserver(robot))
    data = prepare(t, q, effort, qd, qdd, window, robot.joint_types)
    for time, *sample in zip(data.t, data.q, data.qd, data.tau, data.qdd):
        found = learner.observer.push(float(time), *sample)
        learner.push(float(time), found.effort, sample[1])
    return learner.result()


def find_contacts(robot: Robot, t: Any, q: Any, effort: Any, qd: Any = None, qdd: Any = None, window: float | None = None,
             calibration: Mapping[str, ContactCalibration] | None = None) -> list[Contact]:
    """Return the begin and end of every contact in a recording. calibration: instead of the robot file's."""
    observer, found = ExternalEffortObserver(robot, calibration=calibration), list[Contact]()
    data = prepare(t, q, effort, qd, qdd, window, robot.joint_types)
    for time, *sample in zip(data.t, data.q, data.qd, data.tau, data.qdd):
        observer.push(float(time), *sample)
        found.extend(observer.events)
    return found


def contact_section(learned: LearnedContact) -> RobotFile:
    """Return a robot file with the section `contact`."""
    return RobotFile({"version": 1, "contact": {name: {part: float(f"{value:.4g}") for part, value in asdict(one).items()}
                                                for name, one in learned.calibration.items()}}, "contact thresholds")
