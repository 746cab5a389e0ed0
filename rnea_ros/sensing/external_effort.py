"""External effort: what the environment does to a robot, as its motion and measured efforts say, and when that is a contact.

A momentum observer (estimation/momentum_observer.py) has what is left of the efforts. Without any contact something is left,
too: noise of the sensors, masses and friction that the model does not know well. Each has a standard deviation; a contact
begins where more is left than `threshold` of all of them together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..estimation.momentum_observer import MomentumObserver
from ..model.effort_convention import EffortConvention
from ..robots.inputs import validation
from ..robots.robot import Robot

GAIN, THRESHOLD = 60.0, 3.0
RELEASE, QUIET = 0.5, 0.1  # a contact ends when all joints were below this share of their thresholds for this time [s]
FLAT = 1e-3  # smallest singular value of a Jacobian, by the largest, that still tells forces apart


class Uncertainty(NamedTuple):
    """How well the model is known: standard deviations.

    masses   : of each link's mass, moments with it, independent of each other, as a share
    friction : of the friction that is declared, as a share; of a joint that nearly stands all of its Coulomb friction
    efforts  : of the measured efforts beside their noise: offsets, what is not declared; as a share of the effort limit
    """

    masses: float = 0.05
    friction: float = 0.3
    efforts: float = 0.003


UNCERTAINTY = Uncertainty()


class ExternalEffort(NamedTuple):
    """Exerted BY the environment ON the joints, (n,) each [N m, N]: its value, its standard deviation, and the threshold."""

    effort: np.ndarray
    std: np.ndarray
    threshold: np.ndarray


class Contact(NamedTuple):
    """A contact began (active) or ended, at a time [s], at the joint that passed its threshold by the largest factor."""

    active: bool
    time: float
    joint: str
    effort: float
    threshold: float


class ExternalEffortObserver:
    """The external effort of a Robot, sample by sample.

    torque  : (n,) of the joints, as measured last, all that the motors do
    contact : the last one found, or None
    """

    def __init__(self, robot: Robot, gain: float = GAIN, threshold: float = THRESHOLD, uncertainty: Uncertainty = UNCERTAINTY,
                 measured: EffortConvention | None = None):
        """gain: bandwidth [1/s]; threshold: in standard deviations; measured: what efforts mean, if not what the robot file
        says."""
        self.robot, self.threshold, self.uncertainty = robot, threshold, uncertainty
        self._measured = measured
        self._observer = MomentumObserver(robot.n, gain)
        limits, terms = robot.limits.effort, {link.joint: link.term for link in robot.model.links}
        own = [terms[name] for name in robot.joint_names]
        self._offsets = uncertainty.efforts * np.where(np.isfinite(limits), limits, 0.0)
        self._coulomb, self._viscous, self._smoothing = (np.array([getattr(term, name) for term in own])
                                                         for name in ("coulomb", "viscous", "smoothing"))
        self.clear()

    def clear(self) -> None:
        """Forget what was before."""
        self._observer.clear()
        self._time = self._quiet = -np.inf
        self.contact: Contact | None = None

    def push(self, time: float, q: np.ndarray, qd: np.ndarray, effort: np.ndarray, qdd: np.ndarray | None = None,
             qd_std: np.ndarray | None = None) -> ExternalEffort:
        """A sample at a time [s]: the motion, and efforts (n,) as the robot reports them.

        qdd: only for how well the efforts are known; qd_std: standard deviations of qd, where known.
        """
        q, qd, effort = (validation.coordinates(name, x, self.robot.joint_names)
                         for name, x in (("q", q), ("qd", qd), ("effort", effort)))
        if not time >= self._time:
            self.clear()
        dt, self._time = (time - self._time if np.isfinite(self._time) else 0.0), time
        p, drift = self.robot.generalized_momentum(q, qd)
        p_std = 0.0 if qd_std is None else np.sqrt(self.robot.mass_matrix(q) ** 2 @ np.square(qd_std))
        self.torque = self.robot.measured_torque(effort, q, qd, self._measured)
        r = self._observer.push(dt, p, drift, self.torque - self.robot.load_friction(self.torque, qd), p_std)
        std = np.hypot(self._observer.noise, self._doubt(q, qd, np.zeros_like(q) if qdd is None else qdd))
        found = ExternalEffort(r, std, self.threshold * std)
        self._detect(found)
        return found

    def _doubt(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> np.ndarray:
        """Standard deviation (n,) of the model's torques."""
        known, shares = self.uncertainty, self.robot.link_torques(q, qd, qdd)
        speed = np.abs(qd)
        stands = 1.0 - np.tanh(speed / self._smoothing)
        friction = known.friction * (self._coulomb + self._viscous * speed) + stands * self._coulomb
        return np.sqrt(known.masses**2 * np.square(shares).sum(axis=0) + friction**2 + self._offsets**2)

    def _detect(self, found: ExternalEffort) -> None:
        shares = np.abs(found.effort) / np.maximum(found.threshold, np.finfo(float).tiny)
        k = int(shares.argmax()) if len(shares) else 0
        if not len(shares) or shares[k] >= RELEASE:
            self._quiet = self._time
        active = self.contact is not None and self.contact.active
        begins, ends = not active and len(shares) > 0 and bool(shares[k] > 1.0), active and self._time - self._quiet > QUIET
        if self.contact is not None and ends:
            k = self.robot.joint_names.index(self.contact.joint)
        if begins or ends:
            self.contact = Contact(begins, self._time, self.robot.joint_names[k], float(found.effort[k]),
                                   float(found.threshold[k]))


def external_wrench(robot: Robot, link: str, q: np.ndarray, effort: ExternalEffort, moment: bool = False) -> np.ndarray | None:
    """The wrench (6,) BY the environment ON a link, about its origin and along its axes, that explains the efforts best.

    moment: whether it may have a moment beside the force. None where the Jacobian does not tell all of its components, or it
    is not known yet how far off the efforts may be.
    """
    jacobian = robot.jacobian(link, q)
    turned = jacobian.reshape(2, 3, -1) if moment else jacobian[:3].reshape(1, 3, -1)
    R = robot.link_pose(link, q).R
    seen = np.concatenate([R.T @ part for part in turned])  # effort = seen^T wrench
    _, sizes, _ = np.linalg.svd(seen)
    if not np.isfinite(effort.std).all() or robot.n < len(seen) or sizes[-1] < FLAT * sizes[0]:
        return None
    weight = 1.0 / np.maximum(effort.std, 1e-9 + 1e-6 * effort.std.max())
    found = np.linalg.lstsq((seen * weight).T, effort.effort * weight, rcond=None)[0]
    return np.concatenate((found, np.zeros(6 - len(found))))
