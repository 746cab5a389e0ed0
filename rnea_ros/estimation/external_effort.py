"""External effort of the environment on a robot's joints, from motion and measured efforts, and contacts.

A momentum observer (De Luca and Mattone 2003) estimates the effort that the model does not explain. With p = M qd,
dp/dt = tau + drift + tau_ext. No acceleration is needed: the rate of

    r = gain (p - integral of (tau + drift + r))

is gain (tau_ext - r), so r follows the external efforts as a first-order low-pass filter.

In free motion r is not zero: sensors are noisy, and masses and friction are not known exactly. Each error has a standard
deviation. A joint is in contact while its external effort exceeds its threshold, a number of these standard deviations plus
the Coulomb friction that may hold a joint at rest. ContactLearner learns the thresholds, and undeclared friction, from free
motion.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..errors import InputError
from ..model.drives import EffortConvention
from ..model.robot_file import RobotFile
from ..model.tree import ContactCalibration
from ..robots import validation
from ..robots.robot import Robot
from .smoothing import prepare

NOISE_MEMORY_S = 2.0  # memory of the noise estimate [s]
MIN_NOISE_SAMPLES = 50  # samples before the noise is known
MAX_NOISE_STDS = 4.0  # standard deviations at which a change saturates in the noise estimate: a contact is not noise
MAX_GAP_S = 0.5  # gap after which the observer restarts [s]


class MomentumObserver:
    """Generalized-momentum observer of external efforts, sample by sample.

    r     : (n,) external efforts [N m, N]
    noise : (n,) standard deviation of r from the noise of momenta and efforts, estimated from them; infinite until known
    """

    def __init__(self, n: int, gain: float):
        """gain: bandwidth [1/s]; r has reached 63 % of a constant effort after 1 / gain."""
        self.gain, self._n = gain, n
        self.clear()

    def clear(self) -> None:
        """Discard all samples: the clock was set, or the model has changed."""
        self.r, self.noise = np.zeros(self._n), np.full(self._n, np.inf)
        self._samples, self._variance = 0, np.zeros((2, self._n))  # of momenta and efforts
        self._known = self._integral = np.zeros(self._n)
        self._known_integral = np.zeros(self._n)  # integral of known efforts: p less this changes slowly
        self._previous: list[np.ndarray] = []  # (2, n) each: momentum less that integral, effort

    def push(self, dt: float, p: np.ndarray, drift: np.ndarray, tau: np.ndarray,
             p_std: np.ndarray | float = 0.0) -> np.ndarray:
        """Return r after a sample, dt [s] after the one before.

        p, drift, tau : (n,) momentum, drift and measured torque
        p_std         : standard deviation of p, if known better than from the samples
        """
        if dt > MAX_GAP_S:
            self.clear()
        known = tau + drift
        if self._samples == 0:
            self._integral = p.copy()
        else:
            mean = 0.5 * (known + self._known)
            self._known_integral = self._known_integral + dt * mean
            # implicit: stable at any dt
            self._integral = (self._integral + dt * (mean + self.gain * p)) / (1.0 + dt * self.gain)
        self.r, self._known = self.gain * (p - self._integral), known
        self._update_noise(dt, np.array((p - self._known_integral, tau)))
        if self._samples >= MIN_NOISE_SAMPLES:
            momenta, efforts = self._variance
            momenta = np.maximum(momenta, np.square(p_std))
            self.noise = np.sqrt(self.gain**2 * momenta + 0.5 * self.gain * dt * efforts)
        return self.r

    def _update_noise(self, dt: float, values: np.ndarray) -> None:
        """Update the noise from second differences, in which motion and constant efforts vanish: 6 times its variance."""
        if len(self._previous) == 2:
            found = np.square(values - 2.0 * self._previous[1] + self._previous[0]) / 6.0
            if self._samples > MIN_NOISE_SAMPLES:
                found = np.minimum(found, MAX_NOISE_STDS**2 * self._variance)
            self._variance += max(1.0 / (self._samples - 1), min(dt / NOISE_MEMORY_S, 1.0)) * (found - self._variance)
        self._previous = [*self._previous[-1:], values]
        self._samples += 1


GAIN, THRESHOLD = 60.0, 3.0  # default bandwidth [1/s]; default threshold [standard deviations]
RELEASE = 0.85  # share of its threshold below which a joint has to stay
RELEASE_TIME_S = 0.1  # for this time, until its contact ends [s]
MIN_SINGULAR_RATIO = 1e-3  # smallest over largest singular value of a Jacobian that determines a wrench


class EffortUncertainty(NamedTuple):
    """Standard deviations of the model.

    masses   : mass of each link, and its moments in proportion, independent of each other; relative
    friction : friction, relative to what is declared and learned
    efforts  : measured efforts beside their noise, for example offsets; relative to the effort limit
    """

    masses: float = 0.05
    friction: float = 0.3
    efforts: float = 0.003


UNCERTAINTY = EffortUncertainty()


class ExternalEffort(NamedTuple):
    """Effort of the environment on the joints, (n,) each [N m, N]: value, standard deviation, threshold."""

    effort: np.ndarray
    std: np.ndarray
    threshold: np.ndarray


class Contact(NamedTuple):
    """Begin (active) or end of the contact of one joint at a time [s], with its external effort and threshold at that time."""

    active: bool
    time: float
    joint: str
    effort: float
    threshold: float


class ExternalEffortObserver:
    """Observer of the external effort and the contacts of a Robot, sample by sample.

    torque    : (n,) of the motors at the last sample, converted from the measured efforts [N m, N]
    in_contact: (n,) whether each joint is in contact
    events    : contacts that began or ended at the last sample
    model_std : (n,) standard deviation of the external effort at the last sample without that of friction [N m, N]
    sticking  : (n,) share of the Coulomb friction that may hold each joint, 1 at rest, 0 at speed
    friction  : (2, n) Coulomb and viscous friction in use, declared and learned together
    """

    def __init__(self, robot: Robot, gain: float = GAIN, threshold: float = THRESHOLD,
                 uncertainty: EffortUncertainty = UNCERTAINTY, measured: EffortConvention | None = None,
                 calibration: Mapping[str, ContactCalibration] | None = None):
        """Start without samples.

        gain        : bandwidth [1/s]
        threshold   : default threshold of all joints [standard deviations]
        measured    : convention of the measured efforts; None: that of the robot file
        calibration : contact calibration by joint; None: that of the robot file
        """
        self.robot, self.uncertainty = robot, uncertainty
        self._measured = measured
        self._observer = MomentumObserver(robot.n, gain)
        learned = robot.model.contact if calibration is None else calibration
        found = [learned.get(name, ContactCalibration()) for name in robot.joint_names]
        self.calibration = dict(zip(robot.joint_names, found))
        self._learned = np.array([(one.offset, one.coulomb, one.viscous) for one in found]).reshape(-1, 3).T
        own = np.array([one.threshold for one in found])
        self.threshold = np.where(np.isfinite(own), own, threshold)
        limits, terms = robot.limits.effort, {link.joint: link.term for link in robot.model.links}
        declared = [terms[name] for name in robot.joint_names]
        self._offsets = uncertainty.efforts * np.where(np.isfinite(limits), limits, 0.0)
        self.declared = np.array([(term.breakaway, term.viscous) for term in declared]).reshape(-1, 2).T
        self.friction = np.maximum(self.declared + self._learned[1:], 0.0)
        self.smoothing = np.array([term.smoothing for term in declared])
        self.clear()

    @property
    def gain(self) -> float:
        """Bandwidth [1/s]."""
        return self._observer.gain

    @property
    def without_friction(self) -> tuple[str, ...]:
        """Joints without declared or learned friction."""
        known = self.friction.any(axis=0) | np.isfinite([one.threshold for one in self.calibration.values()])
        return tuple(name for name, yes in zip(self.robot.joint_names, known) if not yes)

    def clear(self) -> None:
        """Discard all samples."""
        n = self.robot.n
        self._observer.clear()
        self._time = -np.inf
        self._above = np.full(n, -np.inf)  # time at which each joint was above its release threshold last [s]
        self.sticking, self.model_std = np.ones(n), np.full(n, np.inf)
        self.in_contact = np.zeros(n, dtype=bool)
        self.events: tuple[Contact, ...] = ()

    def push(self, time: float, q: np.ndarray, qd: np.ndarray, effort: np.ndarray, qdd: np.ndarray | None = None,
             qd_std: np.ndarray | None = None) -> ExternalEffort:
        """Return the external effort after a sample at a time [s]: motion and measured efforts (n,) as the robot reports them.

        qdd: used for the standard deviation only; qd_std: standard deviations of qd, if known.
        """
        q, qd, effort = (validation.coordinates(name, x, self.robot.joint_names)
                         for name, x in (("q", q), ("qd", qd), ("effort", effort)))
        if not time >= self._time:
            self.clear()
        dt, self._time = (time - self._time if np.isfinite(self._time) else 0.0), time
        p, drift = self.robot.generalized_momentum(q, qd)
        p_std = 0.0 if qd_std is None else np.sqrt(self.robot.mass_matrix(q) ** 2 @ np.square(qd_std))
        self.torque = self.robot.measured_torque(effort, q, qd, self._measured)
        offset, coulomb, viscous = self._learned
        direction = np.tanh(qd / self.smoothing)
        learned = offset + coulomb * direction + viscous * qd
        r = self._observer.push(dt, p, drift, self.torque - self.robot.load_friction(self.torque, qd) - learned, p_std)
        shares = self.robot.link_torques(q, qd, np.zeros_like(q) if qdd is None else qdd)
        self.model_std = np.sqrt(self._observer.noise**2 + self.uncertainty.masses**2 * np.square(shares).sum(axis=0)
                                 + self._offsets**2)
        # Friction at rest has any value up to Coulomb friction; its part of r decays with the observer's bandwidth
        self.sticking = np.maximum(1.0 - np.abs(direction), self.sticking * np.exp(-self.gain * dt))
        std, bound = self.deviation(self.model_std, self.sticking, np.abs(qd))
        found = ExternalEffort(r, np.hypot(std, bound / np.sqrt(3.0)), self.threshold * std + bound)
        self._detect(found)
        return found

    def deviation(self, model_std: np.ndarray, sticking: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviation of the external effort with friction, and the bound of sticking friction, (n,) each.
        """
        coulomb, viscous = self.friction
        return np.hypot(model_std, self.uncertainty.friction * (coulomb + viscous * speed)), sticking * coulomb

    def _detect(self, found: ExternalEffort) -> None:
        """Update the contact state of each joint by its own threshold."""
        share = np.abs(found.effort) / np.maximum(found.threshold, np.finfo(float).tiny)
        self._above[share >= RELEASE] = self._time
        begins = ~self.in_contact & (share > 1.0)
        ends = self.in_contact & (self._time - self._above > RELEASE_TIME_S)
        self.in_contact = (self.in_contact | begins) & ~ends
        changed = sorted(np.flatnonzero(begins | ends), key=lambda k: -share[k]) if begins.any() or ends.any() else ()
        self.events = tuple(Contact(bool(begins[k]), self._time, self.robot.joint_names[k], float(found.effort[k]),
                                    float(found.threshold[k])) for k in changed)


def external_wrench(robot: Robot, link: str, q: np.ndarray, effort: ExternalEffort, moment: bool = False) -> np.ndarray | None:
    """Return the wrench (6,) of the environment on a link, about its origin and along its axes, that fits the efforts best.

    moment: whether it may have a moment beside the force. None if the Jacobian does not determine all components, or while the
    standard deviation of the efforts is unknown.
    """
    jacobian = robot.jacobian(link, q)
    turned = jacobian.reshape(2, 3, -1) if moment else jacobian[:3].reshape(1, 3, -1)
    R = robot.link_pose(link, q).R
    rows = np.concatenate([R.T @ part for part in turned])  # effort = rows^T wrench
    _, sizes, _ = np.linalg.svd(rows)
    if not np.isfinite(effort.std).all() or robot.n < len(rows) or sizes[-1] < MIN_SINGULAR_RATIO * sizes[0]:
        return None
    weight = 1.0 / np.maximum(effort.std, 1e-9 + 1e-6 * effort.std.max())
    found = np.linalg.lstsq((rows * weight).T, effort.effort * weight, rcond=None)[0]
    return np.concatenate((found, np.zeros(6 - len(found))))


# ---------------------------------------------------------------------- thresholds of contacts


@dataclass(frozen=True)
class ContactLearnerOptions:
    """Tuning of the learning of contact thresholds."""

    margin: float = 1.25  # threshold over the largest remainder in free motion
    min_threshold: float = 1.5  # smallest threshold [standard deviations]: the recorded motion does not reach every pose
    # Different states of motion with which the margin is MARGIN, for many joints; ten seconds of varied motion show as many
    enough_states: int = 20
    states_per_joint: int = 3  # at rest and both ways: few joints have no more states than this to the power of their number
    state_period_s: float = 0.1  # period at which states are compared [s]
    state_distance: float = 1.0  # states differ if the speed of a joint differs by more than this, in its root mean square
    quantile: float = 2.576  # of the normal distribution at 99.5 %: the margin grows as that of Student's t
    max_growth: float = 2.0  # largest growth of the margin
    slow_share: float = 0.25  # joints below this share of their velocity limit are named in a warning about too few states
    min_time_s: float = 10.0  # shortest free motion [s]
    sample_period_s: float = 0.004  # period of the samples that are kept [s], far below the observer's time constant
    max_samples: int = 150_000  # ten minutes
    # speed from which on a joint counts as moving, over the smoothing velocity of Coulomb friction
    moving_speed_ratio: float = 5.0
    min_moving_share: float = 0.02  # share of moving samples in each direction that a fit of friction needs
    huber_stds: float = 2.0  # threshold of Huber's estimator [standard deviations of the remainder]
    max_peak_ratio: float = 3.0  # largest remainder over its 99.5 % quantile above which a contact is suspected


LEARNING = ContactLearnerOptions()


class LearnedContact(NamedTuple):
    """Learned contact calibration by joint, duration of motion [s], and warnings."""

    calibration: dict[str, ContactCalibration]
    seconds: float
    warnings: list[str]


class ContactLearner:
    """Learner of contact thresholds, friction and offsets from free motion: reads an observer after each of its samples.

    In free motion the external effort is the model's error. Per joint an offset, Coulomb and viscous friction are fitted to it
    by least squares and compensated afterwards. The threshold is the largest remaining effort, in standard deviations of the
    model's error, times a margin.

    The model's error depends on pose and motion, so repeating a motion adds no information, however long it lasts. The
    evidence is the number of different states of motion, at which the velocities (n,) of the arm differ. The margin grows as
    the quantile of Student's t distribution with so many degrees of freedom.
    """

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
        if known and len(self._samples) < LEARNING.max_samples and not 0.0 <= time - self._kept < LEARNING.sample_period_s:
            self._samples.append(np.array((effort, *self._filtered, observer.model_std, observer.sticking, np.abs(qd))))
            self._kept = time

    def result(self) -> LearnedContact:
        """Return the learned calibration. Raises InputError if there is not enough free motion."""
        if self.seconds < LEARNING.min_time_s or not self._samples:
            raise InputError(f"free motion: {self.seconds:.1f} s with measured efforts; at least "
                             f"{LEARNING.min_time_s:g} s are needed")
        observer, names = self.observer, self.observer.robot.joint_names
        effort, direction, qd, std, sticking, speed = np.array(self._samples).transpose(1, 2, 0)
        before = [observer.calibration[name] for name in names]
        fits = np.zeros((len(names), 3))
        warnings, still = [], []
        for k, name in enumerate(names):
            moving = qd[k][speed[k] > LEARNING.moving_speed_ratio * observer.smoothing[k]]
            if min((moving > 0.0).sum(), (moving < 0.0).sum()) < LEARNING.min_moving_share * len(qd[k]):
                still.append(name)
            else:
                fits[k] = _fit(-effort[k], direction[k], qd[k], observer.friction[:, k])
        learned = [replace(old, offset=old.offset + o, coulomb=old.coulomb + c, viscous=old.viscous + v)
                  for old, (o, c, v) in zip(before, fits)]
        calibrated = ExternalEffortObserver(observer.robot, uncertainty=observer.uncertainty,
                                            calibration=dict(zip(names, learned)))
        states = different_states(qd, LEARNING.moving_speed_ratio * observer.smoothing)
        enough = enough_states(len(names))
        found, growth = {}, margin_growth(states, enough)
        for k, name in enumerate(names):
            left = effort[k] + fits[k] @ (np.ones_like(qd[k]), direction[k], qd[k])
            coulomb, viscous = calibrated.friction[:, k]
            total = np.hypot(std[k], observer.uncertainty.friction * (coulomb + viscous * speed[k]))
            ratio = np.maximum(np.abs(left) - coulomb * sticking[k], 0.0) / total
            largest, usual = float(ratio.max()), float(np.quantile(ratio, 0.995))
            if largest > LEARNING.max_peak_ratio * usual and largest > 3.0:
                warnings.append(f"{name}: the largest external effort is {largest / max(usual, 1e-9):.1f} times what 99.5 % "
                                "of the samples stay below; if the robot was touched, learn again without contact")
            found[name] = replace(learned[k], threshold=growth * max(LEARNING.margin * largest, LEARNING.min_threshold))
        if growth > 1.0:
            slow = [name for name, fastest, limit in zip(names, speed.max(axis=1), observer.robot.limits.velocity)
                    if name in still or not fastest >= LEARNING.slow_share * limit]
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
    scale = LEARNING.state_distance * np.maximum(np.sqrt(np.mean(qd**2, axis=1)), least)
    left: np.ndarray = qd[:, ::round(LEARNING.state_period_s / LEARNING.sample_period_s)].T / scale
    count, enough = 0, enough_states(len(qd))
    while len(left) and count < enough:
        left = left[np.abs(left - left[0]).max(axis=1) > 1.0]
        count += 1
    return count


def enough_states(joints: int) -> int:
    """Return the number of different states of motion that is enough for so many joints."""
    return min(LEARNING.enough_states, LEARNING.states_per_joint**joints)


def margin_growth(states: int, enough: int) -> float:
    """Return the factor of the margin where so many different states are known instead of enough: 1 or more."""
    few, many = (_student_quantile(max(count, 1)) for count in (states, enough))
    return min(max(few / many, 1.0), LEARNING.max_growth)


def _student_quantile(freedom: int) -> float:
    """Return the quantile of Student's t distribution at the probability 0.995 (Abramowitz and Stegun 26.7.5)."""
    z = LEARNING.quantile
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
            weight = np.minimum(1.0, LEARNING.huber_stds * scale / np.maximum(left, 1e-12 + 1e-3 * scale))
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
