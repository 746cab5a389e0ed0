"""Payload identification: mass, centre of mass and inertia of what a link carries, from motion and torques.

The torques beyond those of the robot alone are linear in the ten numbers of the carried body: tau - tau_robot = Y theta +
friction, with the regressor of the link that carries it. Undeclared friction is fitted too: Coulomb, viscous and an offset of
each joint, and a share of the torque that the joint transmits, as gears have it. Other model errors are removed by a tare: a
recording without the payload on the same or a similar motion; the difference of both estimates is the payload.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..algebra.vectors import rotate_inertia, shift
from ..algorithms.inertial_parameters import INERTIAL, Parameter
from ..errors import InputError
from ..estimation.smoothing import prepare
from ..model.tree import Frame
from ..robots import validation
from ..robots.robot import Robot
from .identification import Measurements, Regressor
from .physical_consistency import pseudo_inertia

PRIOR_STD = np.array([5.0, *[1.0] * 3, *[0.3] * 6])  # prior standard deviations [kg, kg m, kg m^2]
FRICTION_PRIOR_STD = np.array([10.0, 10.0, 10.0, 0.1])  # of undeclared friction, as _columns_of_friction has it
MIN_TORQUE_ERROR = 1e-4  # smallest relative torque error
MASSES = 0.05  # relative standard deviation of each link's mass
BLOCKS = 25  # blocks of a recording whose errors count as independent
MIN_SAMPLES = 100  # fewest samples
EXTENT, RADIUS = 0.3, 0.1  # usual distance of the mass centre, and radius of gyration [m]
MAX_RELATIVE_STD = 0.3  # standard deviation over the usual size above which a value is unknown
NAMES = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{axes}" for axes in ("xx", "xy", "xz", "yy", "yz", "zz")))
UPPER = np.triu_indices(3)
MIN_GYRATION_RADIUS = 1e-3  # smallest radius of gyration of a body [m]


class RawPayload(NamedTuple):
    """Least-squares estimate theta (10,): m, m com, J about the link's origin, including the effect of model errors.

    covariance       : (10, 10) from noise and friction errors
    mass_sensitivity : (10, links) change of theta for an error of 100 % of each link's mass
    """

    theta: np.ndarray
    covariance: np.ndarray
    mass_sensitivity: np.ndarray
    samples: int


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """Payload of a link with standard deviations; arguments of Robot.with_payload.

    mass [kg]; com (3,) in the link's frame [m]; inertia (3, 3) about it, along the link's axes [kg m^2]
    std     : (10,) in the order of NAMES
    unknown : entries of NAMES that the motion does not determine; their values only make the body physical
    """

    link: str
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    std: np.ndarray
    unknown: tuple[str, ...]
    samples: int

    @property
    def values(self) -> np.ndarray:
        """Values (10,), in the order of NAMES."""
        return np.array([self.mass, *self.com, *self.inertia[UPPER]])


class PayloadEstimator:
    """Estimator of the payload of one link; its kernel is compiled when it is first needed."""

    def __init__(self, robot: Robot, link: str):
        """Remove a payload from the link of the robot; it is estimated with the rest."""
        self.robot, self.link = robot.with_payload(link, 0.0), link
        frame = robot.model.frame(link)
        owner = robot.model.links[frame.link].name
        self._regressor = Regressor(robot, [Parameter(frame.link, kind, owner, "") for kind in INERTIAL])
        self.to_mdh = _to_mdh_frame(frame)

    def raw(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: np.ndarray, friction: bool = True) -> RawPayload:
        """Return the least-squares estimate over samples (k, n), joints weighted by their residuals.

        A column of NaN in tau is a joint without measured torque. Raises InputError for too few samples.
        """
        samples, n = np.shape(q)
        if samples < MIN_SAMPLES:
            raise InputError(f"{samples} samples of motion and torques; at least {MIN_SAMPLES} are needed")
        measured = np.isfinite(tau).all(axis=0)
        model = self.robot.inverse_dynamics(q, qd, qdd)
        left = (tau - model)[:, measured]
        Y = self._regressor(q, qd, qdd) @ self.to_mdh
        friction_columns = _columns_of_friction(self.robot, qd, model) if friction else np.zeros((samples, n, 0))
        W = np.concatenate((Y, friction_columns), axis=2)[:, measured]
        size = np.concatenate((PRIOR_STD, np.tile(FRICTION_PRIOR_STD, friction_columns.shape[2] // len(FRICTION_PRIOR_STD))))
        noise = np.full(measured.sum(), 1.0)
        for _ in range(3):
            weighed = W / noise[:, None]
            flat = (weighed * size).reshape(-1, len(size))
            inverse = np.linalg.inv(flat.T @ flat + np.eye(len(size))) * np.multiply.outer(size, size)
            x = inverse @ np.einsum("skp,sk->p", weighed, left / noise)
            residual = left - W @ x
            noise = np.maximum(residual.std(axis=0), MIN_TORQUE_ERROR * (1.0 + np.abs(tau[:, measured]).max(axis=0)))
        shares = np.einsum("skp,slk->pl", weighed, self.robot.link_torques(q, qd, qdd)[:, :, measured] / noise)
        return RawPayload(x[:10], _covariance(weighed, residual / noise, inverse)[:10, :10], (inverse @ shares)[:10], samples)

    def estimate(self, loaded: RawPayload, tare: RawPayload | None = None, masses: float = MASSES) -> PayloadEstimate:
        """Return the physical body that explains the difference to the tare. Raises InputError without a significant mass.

        masses: as in estimate_payload.
        """
        theta = loaded.theta - (0.0 if tare is None else tare.theta)
        covariance = loaded.covariance + (0.0 if tare is None else tare.covariance)
        mass_errors = masses * (loaded.mass_sensitivity - (0.0 if tare is None else tare.mass_sensitivity))
        covariance = covariance + mass_errors @ mass_errors.T
        if theta[0] <= 2.0 * np.sqrt(covariance[0, 0]):
            raise InputError(f"no payload detected on link '{self.link}': its estimated mass is {theta[0]:.3g} kg with a "
                             f"standard deviation of {np.sqrt(covariance[0, 0]):.2g} kg")
        theta = _nearest_body(theta, covariance)
        values, slope = _named_values(theta), _named_values_jacobian(theta)
        std = np.sqrt(np.diagonal(slope @ covariance @ slope.T))
        size = np.array([values[0], *[EXTENT] * 3, *[values[0] * RADIUS**2] * 6])
        unknown = tuple(name for name, off in zip(NAMES, std > MAX_RELATIVE_STD * size) if off)
        xx, xy, xz, yy, yz, zz = values[4:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return PayloadEstimate(self.link, float(values[0]), values[1:4], inertia, std, unknown, loaded.samples)


def estimate_payload(robot: Robot, link: str, recording: Measurements, tare: Measurements | None = None, *,
                     friction: bool = True, window: float | None = None, masses: float = MASSES) -> PayloadEstimate:
    """Return the payload of a link of the robot from a recording, and optionally one without the payload, the tare.

    recording, tare: torques as robot.model.efforts.measured defines them; NaN for joints whose torques are not measured
    friction : fit Coulomb and viscous friction and an offset of each joint too
    window   : fit polynomials over this time instead of Kalman smoothing, for derivatives that are not given [s]
    masses   : relative standard deviation of the robot's link masses, for the uncertainty of the result
    Raises InputError if no payload is detected.
    """
    estimator = PayloadEstimator(robot, link)

    def raw(of: Measurements) -> RawPayload:
        q, tau = (validation.coordinates(name, getattr(of, name), robot.joint_names, name == "q") for name in ("q", "tau"))
        data = prepare(of.t, q, np.nan_to_num(tau), of.qd, of.qdd, window, robot.joint_types, robot.joint_names)
        torque = np.where(np.isfinite(tau).all(axis=0), robot.measured_torque(data.tau, data.q, data.qd), np.nan)
        return estimator.raw(data.q, data.qd, data.qdd, torque, friction)

    return estimator.estimate(raw(recording), None if tare is None else raw(tare), masses)


def _to_mdh_frame(frame: Frame) -> np.ndarray:
    """Return the matrix (10, 10) from the ten numbers in a link's URDF frame to those in its MDH frame."""
    columns = []
    for m, *rest in np.eye(10):
        ms, (xx, xy, xz, yy, yz, zz) = np.array(rest[:3]), rest[3:]
        J, ms = rotate_inertia(frame.R, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), ms)
        J, ms = shift(J, ms, m, frame.P)
        columns.append([m, *ms, *J[UPPER]])
    return np.array(columns).T


def _columns_of_friction(robot: Robot, qd: np.ndarray, torque: np.ndarray) -> np.ndarray:
    """Return columns (samples, n, 4 n) of each joint: Coulomb [N m] and viscous friction [N m s/rad], offset [N m], and
    friction as a share of the torque that the joint transmits.
    """
    smoothing = [next(link.term.smoothing for link in robot.model.links if link.joint == name) for name in robot.joint_names]
    direction = np.tanh(qd / smoothing)
    parts = np.stack((direction, qd, np.ones_like(qd), np.abs(torque) * direction), axis=2)
    return np.einsum("skc,kj->skjc", parts, np.eye(robot.n)).reshape(len(qd), robot.n, -1)


def _covariance(weighed: np.ndarray, residual: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Return the covariance of the unknowns by blocks of the recording, since friction errors are correlated over time."""
    scores = np.einsum("skp,sk->sp", weighed, residual)
    blocks = np.array([part.sum(axis=0) for part in np.array_split(scores, BLOCKS)])
    return inverse @ blocks.T @ blocks @ inverse + inverse


def _nearest_body(theta: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Return the ten numbers of the physical body nearest in standard deviations: S = L L^T is positive for every L."""
    from scipy.optimize import least_squares

    lower = np.tril_indices(4)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance + np.diag((1e-9 * PRIOR_STD) ** 2)))

    def numbers(x: np.ndarray) -> np.ndarray:
        L = np.zeros((4, 4))
        L[lower] = x
        S = L @ L.T + theta[0] * np.diag([MIN_GYRATION_RADIUS**2, MIN_GYRATION_RADIUS**2, MIN_GYRATION_RADIUS**2, 0.0])
        E = S[:3, :3]
        return np.array([S[3, 3], *S[:3, 3], *(np.trace(E) * np.eye(3) - E)[UPPER]])

    centre = theta[1:4] / theta[0]
    about = theta[0] * (np.outer(centre, centre) + RADIUS**2 * np.eye(3))
    start = np.linalg.cholesky(np.block([[about, theta[1:4, None]], [theta[None, 1:4], theta[:1, None]]]))
    if np.linalg.eigvalsh(pseudo_inertia(theta))[0] > 0.0:
        return theta
    return numbers(least_squares(lambda x: whitening @ (numbers(x) - theta), start[lower], x_scale="jac").x)


def _named_values(theta: np.ndarray) -> np.ndarray:
    """Return the values (10,) of NAMES from m, m com, J about the origin."""
    com = theta[1:4] / theta[0]
    J = np.zeros((3, 3), dtype=theta.dtype)
    J[UPPER] = theta[4:]
    J = J + np.triu(J, 1).T
    about = J - theta[0] * ((com @ com) * np.eye(3) - np.outer(com, com))
    return np.array([theta[0], *com, *about[UPPER]])


def _named_values_jacobian(theta: np.ndarray) -> np.ndarray:
    """Return the Jacobian (10, 10) of _named_values by complex steps."""
    return np.array([_named_values(theta + 1e-30j * unit).imag / 1e-30 for unit in np.eye(10)]).T


# ---------------------------------------------------------------------- payload from live samples


CHECKS = 2  # checks in a row that must agree
MAX_SAMPLES = 250  # samples of a window that are used: friction errors are correlated over many of them


@dataclass(frozen=True)
class PayloadMonitorOptions:
    """Options of the payload monitor.

    windows        : lengths of the latest motion that checks use, shortest first [s]
    reference_time : length of the motion that the reference is taken from [s]
    threshold      : difference of the mass that is reported [standard deviations]
    min_mass       : smallest difference that is reported [kg]
    masses         : relative standard deviation of the masses of the links
    """

    windows: tuple[float, ...] = (10.0, 30.0, 60.0)
    reference_time: float = 30.0
    threshold: float = 5.0
    min_mass: float = 0.1
    masses: float = MASSES


class WrongPayload(NamedTuple):
    """Difference between what the tool carries and the declared payload.

    excess, std     : mass beyond the declared one and its standard deviation [kg]
    payload         : estimate of the whole payload; None if there is none
    since_reference : whether the difference is from the reference, so that the errors of the links cancel
    """

    link: str
    declared: float
    excess: float
    std: float
    payload: PayloadEstimate | None
    since_reference: bool

    @property
    def parameters(self) -> dict[str, object]:
        """Values of the parameters payload.* that remove the difference."""
        if self.payload is None:
            return {"link": self.link, "mass": 0.0}
        is_known = not set(NAMES[4:]) & set(self.payload.unknown)  # a part of an inertia may be that of no body
        inertia = self.payload.values[4:] if is_known else np.zeros(6)
        return {"link": self.link, "mass": round(self.payload.mass, 3), "com": np.round(self.payload.com, 3).tolist(),
                "inertia": [float(f"{value:.3g}") for value in inertia]}

    def __str__(self) -> str:
        estimate = self.payload
        lines = ", ".join(f"payload.{name}: {value}" for name, value in self.parameters.items())
        found = "nothing" if estimate is None else (
            f"{estimate.mass:.2f} kg at {np.round(estimate.com, 3).tolist()} m (+- {np.round(estimate.std[1:4], 3).tolist()})")
        return (f"measured efforts contradict the declared payload: link '{self.link}' carries {self.excess:+.2f} +- "
                f"{self.std:.2f} kg in addition to the declared {self.declared:.2f} kg, in total {found}. If nothing touches "
                f"the robot, set {lines}")


class PayloadMonitor:
    """Monitor of the declared payload of one link: reports a mass that measured torques contain and the model does not.

    The latest motion and torques give an estimate of what the tool carries, with friction fitted beside it. Its difference
    from the declared payload is reported if the mass differs by `threshold` standard deviations in two checks in a row. The
    standard deviation contains noise, friction errors and the masses of the links, each wrong by `masses` of itself; the
    latter is the largest part, 0.1 to 0.25 kg for arms of 4 to 30 kg, and constant. So a *reference* is taken from the first
    motion that contradicts nothing, or from a tare: later differences are compared with it, where the errors of the links
    cancel as far as the motions are alike.

    robot      : with its declared payload
    finding    : what the last checks found; None if nothing contradicts the payload
    detectable : smallest difference of the mass that the last check could have reported [kg]; NaN before the first
    """

    def __init__(self, robot: Robot, link: str, options: PayloadMonitorOptions = PayloadMonitorOptions()):
        """robot: with its declared payload. The kernels are compiled by the first check."""
        self.link, self.options = link, options
        self._estimator = PayloadEstimator(robot, link)
        self._reference: RawPayload | None = None  # of the robot without payload
        self._has_tare = False
        self.use(robot)

    def use(self, robot: Robot) -> None:
        """Continue with another declared payload of the same robot. Only a tare stays: the former may have been wrong."""
        if not self._has_tare:
            self._reference = None
        self.robot, self._declared = robot, self._declared_parameters(robot)
        self._agreeing, self.detectable = 0, np.nan
        self.finding: WrongPayload | None = None

    def _declared_parameters(self, robot: Robot) -> np.ndarray:
        """Return m, m com and J about the origin (10,) of the declared payload in the link's URDF frame."""
        found = robot.payloads.get(self.link)
        return np.zeros(10) if found is None else np.linalg.solve(self._estimator.to_mdh, found.parameters)

    def set_tare(self, raw: RawPayload) -> None:
        """Compare with this estimate from now on: it was made without a payload."""
        self._reference, self._has_tare = raw, True

    def check(self, samples: np.ndarray, period: float) -> WrongPayload | None:
        """Return what the latest samples (k, 4, n) of q, qd, qdd and joint torque find, `period` [s] apart; None: nothing.

        Only what two checks in a row agree on is returned.
        """
        best: tuple[float, float, float, RawPayload] | None = None
        if period <= 0.0:  # one sample, or none
            return self.finding
        for window in self.options.windows:
            count = round(window / period)
            if len(samples) < max(count, MIN_SAMPLES):
                break
            raw = self._raw(samples[-count:])
            excess, std = self._excess(raw)
            if best is None or abs(excess) / std > abs(best[0]) / best[1]:
                best = excess, std, abs(excess) / std, raw
        if best is None:
            return self.finding
        excess, std, significance, raw = best
        self.detectable = max(self.options.threshold * std, self.options.min_mass)
        is_wrong = significance > self.options.threshold and abs(excess) > self.options.min_mass
        self._agreeing = self._agreeing + 1 if is_wrong else 0
        self.finding = self._described(raw, excess, std) if self._agreeing >= CHECKS else None
        if self._reference is None and not is_wrong:
            self._take_reference(samples, period)
        return self.finding

    def _raw(self, samples: np.ndarray) -> RawPayload:
        step = -(-len(samples) // MAX_SAMPLES)
        return self._estimator.raw(*np.moveaxis(samples[::step], 1, 0))

    def _excess(self, raw: RawPayload) -> tuple[float, float]:
        """Return the mass beyond the declared one and its standard deviation [kg], the smaller one of both ways."""
        absolute = raw.theta[0] - self._declared[0], _std(raw.covariance, raw.mass_sensitivity, self.options.masses)
        reference = self._reference
        if reference is None:
            return absolute
        relative = absolute[0] - reference.theta[0], _std(
            raw.covariance + reference.covariance, raw.mass_sensitivity - reference.mass_sensitivity, self.options.masses)
        return min(absolute, relative, key=lambda found: found[1])

    def _take_reference(self, samples: np.ndarray, period: float) -> None:
        """Take the reference if the motion determines the mass better than the masses of the links are known."""
        count = round(self.options.reference_time / period)
        if len(samples) < count:
            return
        raw = self._raw(samples[-count:])
        noise = np.sqrt(raw.covariance[0, 0])
        excess, std = self._excess(raw)
        if abs(excess) < self.options.threshold * std and noise < 0.5 * std:
            self._reference = raw._replace(theta=raw.theta - self._declared)

    def _described(self, raw: RawPayload, excess: float, std: float) -> WrongPayload:
        reference = self._reference
        is_relative = reference is not None and _std(raw.covariance, raw.mass_sensitivity, self.options.masses) > std
        try:
            payload = self._estimator.estimate(raw, reference if is_relative else None, self.options.masses)
        except InputError:
            payload = None  # the declared payload is not there
        return WrongPayload(self.link, float(self._declared[0]), float(excess), float(std), payload, is_relative)


def _std(covariance: np.ndarray, sensitivity: np.ndarray, masses: float) -> float:
    """Return the standard deviation of the mass [kg]."""
    return float(np.sqrt(covariance[0, 0] + np.square(masses * sensitivity[0]).sum()))


def tool_link(robot: Robot) -> str:
    """Return the link at the end of the longest chain of joints, of several fingers the hand: the tool."""
    links, depth = robot.model.links, {0: 0}
    for number, link in enumerate(links[1:], 1):
        depth[number] = depth[link.parent] + bool(link.joint)
    deepest = [number for number in depth if links[number].joint and depth[number] == max(depth.values())]
    tool = deepest[0] if len(deepest) == 1 else links[deepest[0]].parent
    return next(name for name, frame in robot.model.frames.items() if frame.link == tool)
