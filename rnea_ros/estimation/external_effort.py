"""External efforts from the generalized momentum: what its rate holds beside the known efforts (De Luca and Mattone 2003).

With p = M qd, dp/dt = tau + drift + tau_ext. No acceleration is needed: of

    r = gain (p - integral of (tau + drift + r))

the rate is gain (tau_ext - r): r follows the external efforts as a first-order filter does.

External effort: what the environment exerts on a robot's joints, from its motion and measured efforts, and contacts.

A momentum observer (estimation/momentum_observer.py) finds the effort that the model does not explain. In free motion this is
not zero: sensors are noisy, and masses and friction are not known exactly. Each error has a standard deviation. A joint is in
contact while its external effort exceeds its threshold, a number of these standard deviations plus the Coulomb friction that
may hold a joint at rest. contact_thresholds.py learns the threshold, and the friction that is not declared, from free motion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from ..model.effort_convention import EffortConvention
from ..model.tree import ContactCalibration
from ..robots.inputs import validation
from ..robots.robot import Robot

MEMORY = 2.0  # s; over which noise is found out
FEWEST = 50  # samples, before which it is not known
SUDDEN = 4.0  # standard deviations; more counts as that much: a contact is no noise
LONGEST = 0.5  # s; a gap, after which nothing of the past counts


class MomentumObserver:
    """Momenta and efforts in, sample by sample; external efforts out.

    r     : (n,) external efforts [N m, N]
    noise : (n,) standard deviation of r that noise of momenta and efforts makes, found in them; infinite until it is known
    """

    def __init__(self, n: int, gain: float):
        """gain: bandwidth [1/s]: r has reached 63 % of a constant effort after 1 / gain."""
        self.gain, self._n = gain, n
        self.clear()

    def clear(self) -> None:
        """Forget what was before: the clock was set, or another model serves."""
        self.r, self.noise = np.zeros(self._n), np.full(self._n, np.inf)
        self._samples, self._variance = 0, np.zeros((2, self._n))  # of momenta and efforts
        self._known = self._integral = np.zeros(self._n)
        self._lost = np.zeros(self._n)  # the integral of known efforts: what is left of p without it changes slowly
        self._before: list[np.ndarray] = []  # (2, n) each: momentum less that integral, effort

    def push(self, dt: float, p: np.ndarray, drift: np.ndarray, tau: np.ndarray,
             p_std: np.ndarray | float = 0.0) -> np.ndarray:
        """r, dt [s] after the sample before. tau: measured; p_std: of p, where it is known better than the samples tell."""
        if dt > LONGEST:
            self.clear()
        known = tau + drift
        if self._samples == 0:
            self._integral = p.copy()
        else:
            mean = 0.5 * (known + self._known)
            self._lost = self._lost + dt * mean
            # implicit: stable at any dt
            self._integral = (self._integral + dt * (mean + self.gain * p)) / (1.0 + dt * self.gain)
        self.r, self._known = self.gain * (p - self._integral), known
        self._learn(dt, np.array((p - self._lost, tau)))
        if self._samples >= FEWEST:
            momenta, efforts = self._variance
            momenta = np.maximum(momenta, np.square(p_std))
            self.noise = np.sqrt(self.gain**2 * momenta + 0.5 * self.gain * dt * efforts)
        return self.r

    def _learn(self, dt: float, values: np.ndarray) -> None:
        """Noise from second differences, in which motion and constant efforts vanish: 6 times its variance."""
        if len(self._before) == 2:
            found = np.square(values - 2.0 * self._before[1] + self._before[0]) / 6.0
            if self._samples > FEWEST:
                found = np.minimum(found, SUDDEN**2 * self._variance)
            self._variance += max(1.0 / (self._samples - 1), min(dt / MEMORY, 1.0)) * (found - self._variance)
        self._before = [*self._before[-1:], values]
        self._samples += 1


GAIN, THRESHOLD = 60.0, 3.0
RELEASE = 0.85  # share of its threshold below which a joint has to stay
RELEASE_TIME_S = 0.1  # for this time, until its contact ends
MIN_SINGULAR_RATIO = 1e-3  # smallest singular value of a Jacobian, by the largest, from which forces are determined


class Uncertainty(NamedTuple):
    """Standard deviations of the model.

    masses   : mass of each link, moments with it, independent of each other, as a share
    friction : friction, as a share of what is declared and learnt
    efforts  : measured efforts beside their noise, for example offsets; as a share of the effort limit
    """

    masses: float = 0.05
    friction: float = 0.3
    efforts: float = 0.003


UNCERTAINTY = Uncertainty()


class ExternalEffort(NamedTuple):
    """Effort BY the environment ON the joints, (n,) each [N m, N]: its value, its standard deviation, and the threshold."""

    effort: np.ndarray
    std: np.ndarray
    threshold: np.ndarray


class Contact(NamedTuple):
    """Begin (active) or end of the contact of one joint at a time [s], with its external effort and threshold then."""

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
    friction  : (2, n) Coulomb and viscous friction in use, declared and learnt together
    """

    def __init__(self, robot: Robot, gain: float = GAIN, threshold: float = THRESHOLD, uncertainty: Uncertainty = UNCERTAINTY,
                 measured: EffortConvention | None = None, calibration: Mapping[str, ContactCalibration] | None = None):
        """gain: bandwidth [1/s]; threshold: default of all joints, in standard deviations; measured: convention of the
        efforts, if not the robot file's; calibration: by joint, if not the robot file's."""
        self.robot, self.uncertainty = robot, uncertainty
        self._measured = measured
        self._observer = MomentumObserver(robot.n, gain)
        learnt = robot.model.contact if calibration is None else calibration
        found = [learnt.get(name, ContactCalibration()) for name in robot.joint_names]
        self.calibration = dict(zip(robot.joint_names, found))
        self._learnt = np.array([(one.offset, one.coulomb, one.viscous) for one in found]).reshape(-1, 3).T
        own = np.array([one.threshold for one in found])
        self.threshold = np.where(np.isfinite(own), own, threshold)
        limits, terms = robot.limits.effort, {link.joint: link.term for link in robot.model.links}
        declared = [terms[name] for name in robot.joint_names]
        self._offsets = uncertainty.efforts * np.where(np.isfinite(limits), limits, 0.0)
        self.declared = np.array([(term.breakaway, term.viscous) for term in declared]).reshape(-1, 2).T
        self.friction = np.maximum(self.declared + self._learnt[1:], 0.0)
        self.smoothing = np.array([term.smoothing for term in declared])
        self.clear()

    @property
    def gain(self) -> float:
        """Bandwidth [1/s]."""
        return self._observer.gain

    @property
    def without_friction(self) -> tuple[str, ...]:
        """Joints of which no friction is known, neither declared nor learnt."""
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
        """Return the external effort after a sample at a time [s]: the motion, and efforts (n,) as the robot reports them.

        qdd: used for the standard deviation alone; qd_std: standard deviations of qd, where known.
        """
        q, qd, effort = (validation.coordinates(name, x, self.robot.joint_names)
                         for name, x in (("q", q), ("qd", qd), ("effort", effort)))
        if not time >= self._time:
            self.clear()
        dt, self._time = (time - self._time if np.isfinite(self._time) else 0.0), time
        p, drift = self.robot.generalized_momentum(q, qd)
        p_std = 0.0 if qd_std is None else np.sqrt(self.robot.mass_matrix(q) ** 2 @ np.square(qd_std))
        self.torque = self.robot.measured_torque(effort, q, qd, self._measured)
        offset, coulomb, viscous = self._learnt
        direction = np.tanh(qd / self.smoothing)
        learnt = offset + coulomb * direction + viscous * qd
        r = self._observer.push(dt, p, drift, self.torque - self.robot.load_friction(self.torque, qd) - learnt, p_std)
        shares = self.robot.link_torques(q, qd, np.zeros_like(q) if qdd is None else qdd)
        self.model_std = np.sqrt(self._observer.noise**2 + self.uncertainty.masses**2 * np.square(shares).sum(axis=0)
                                 + self._offsets**2)
        # friction at rest has any value up to Coulomb's; what of it is in r leaves it with the observer's bandwidth
        self.sticking = np.maximum(1.0 - np.abs(direction), self.sticking * np.exp(-self.gain * dt))
        std, bound = self.deviation(self.model_std, self.sticking, np.abs(qd))
        found = ExternalEffort(r, np.hypot(std, bound / np.sqrt(3.0)), self.threshold * std + bound)
        self._detect(found)
        return found

    def deviation(self, model_std: np.ndarray, sticking: np.ndarray, speed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the standard deviation of the external effort, that of friction included, and the bound of what sticks."""
        coulomb, viscous = self.friction
        return np.hypot(model_std, self.uncertainty.friction * (coulomb + viscous * speed)), sticking * coulomb

    def _detect(self, found: ExternalEffort) -> None:
        """Begin and end the contact of each joint by its own threshold."""
        share = np.abs(found.effort) / np.maximum(found.threshold, np.finfo(float).tiny)
        self._above[share >= RELEASE] = self._time
        begins = ~self.in_contact & (share > 1.0)
        ends = self.in_contact & (self._time - self._above > RELEASE_TIME_S)
        self.in_contact = (self.in_contact | begins) & ~ends
        changed = sorted(np.flatnonzero(begins | ends), key=lambda k: -share[k]) if begins.any() or ends.any() else ()
        self.events = tuple(Contact(bool(begins[k]), self._time, self.robot.joint_names[k], float(found.effort[k]),
                                    float(found.threshold[k])) for k in changed)


def external_wrench(robot: Robot, link: str, q: np.ndarray, effort: ExternalEffort, moment: bool = False) -> np.ndarray | None:
    """Return the wrench (6,) BY the environment ON a link, about its origin and along its axes, that fits the efforts best.

    moment: whether it may have a moment beside the force. None where the Jacobian does not determine all of its components,
    or the standard deviation of the efforts is not known yet.
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
