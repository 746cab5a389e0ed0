"""What a robot carries, from its motion and torques: mass, centre of mass and inertia, as far as the motion shows them.

What is left of the torques beyond those of the robot alone is linear in the ten numbers of the body that it carries:
tau - tau_robot = Y theta + friction, by the regressor of the link that carries it. Friction that the model does not have
right is fitted beside. What other errors of the model make is told by a tare: the same robot without the body, on the same
motion or one like it; the difference of both answers is the body.
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
from ..robots.inputs import validation
from ..robots.robot import Robot
from .identification import Measurements, Regressor
from .physical_consistency import pseudo_inertia

SIZES = np.array([5.0, *[1.0] * 3, *[0.3] * 6])  # standard deviations before anything is known: kg, kg m, kg m^2
RUBBED = 10.0  # the same of friction that the model lacks: N m, N m s/rad
FLOOR = 1e-4  # of torques, by which they are off at least
MASSES = 0.05  # standard deviation of each link's mass, as a share
BLOCKS = 25  # of a recording, whose errors are taken for independent of each other
FEWEST = 100  # samples
EXTENT, RADIUS = 0.3, 0.1  # m: places and radii of gyration that are usual
DOUBTFUL = 0.3  # of these: what is known to no better says little
NAMES = ("mass", "com.x", "com.y", "com.z", *(f"inertia.{axes}" for axes in ("xx", "xy", "xz", "yy", "yz", "zz")))
UPPER = np.triu_indices(3)
THICK = 1e-3  # m: no body is thinner


class Raw(NamedTuple):
    """theta (10,): m, m com, J about the link's origin, of what is carried and of errors of the model.

    covariance : (10, 10) of what noise does to it, and friction that is not quite as it is fitted
    doubts     : (10, links) what it would be more, were a link heavier by its own mass than the model has it
    """

    theta: np.ndarray
    covariance: np.ndarray
    doubts: np.ndarray
    samples: int


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """What a link carries, and standard deviations; arguments of Robot.with_payload.

    mass [kg]; com (3,) in the link's frame [m]; inertia (3, 3) about it, axes as the link's [kg m^2]
    std     : (10,) of NAMES
    unknown : of NAMES: what the motion does not tell; the values given for them are only such that the body is possible
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
        """(10,), in the order of NAMES."""
        return np.array([self.mass, *self.com, *self.inertia[UPPER]])


class PayloadEstimator:
    """For one link of a robot; its kernel is compiled when it is first needed."""

    def __init__(self, robot: Robot, link: str):
        """What the link carries already is not part of the robot here: it is estimated with the rest."""
        self.robot, self.link = robot.with_payload(link, 0.0), link
        frame = robot.model.frame(link)
        owner = robot.model.links[frame.link].name
        self._regressor = Regressor(robot, [Parameter(frame.link, kind, owner, "") for kind in INERTIAL])
        self._to_mdh = _moved(frame)

    def raw(self, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: np.ndarray, friction: bool = True) -> Raw:
        """Least squares over samples (k, n), joints weighed by what is left of each; a column of NaN in tau is a joint whose
        torque nothing tells. Raises InputError for too few samples."""
        samples, n = np.shape(q)
        if samples < FEWEST:
            raise InputError(f"{samples} samples of motion and torques; {FEWEST} at least are needed")
        told = np.isfinite(tau).all(axis=0)
        left = (tau - self.robot.inverse_dynamics(q, qd, qdd))[:, told]
        Y = self._regressor(q, qd, qdd) @ self._to_mdh
        rubbed = _friction_columns(self.robot, qd) if friction else np.zeros((samples, n, 0))
        W = np.concatenate((Y, rubbed), axis=2)[:, told]
        size = np.concatenate((SIZES, np.full(rubbed.shape[2], RUBBED)))
        noise = np.full(told.sum(), 1.0)
        for _ in range(3):
            weighed = W / noise[:, None]
            flat = (weighed * size).reshape(-1, len(size))
            inverse = np.linalg.inv(flat.T @ flat + np.eye(len(size))) * np.multiply.outer(size, size)
            x = inverse @ np.einsum("skp,sk->p", weighed, left / noise)
            residual = left - W @ x
            noise = np.maximum(residual.std(axis=0), FLOOR * (1.0 + np.abs(tau[:, told]).max(axis=0)))
        shares = np.einsum("skp,slk->pl", weighed, self.robot.link_torques(q, qd, qdd)[:, :, told] / noise)
        return Raw(x[:10], _covariance(weighed, residual / noise, inverse)[:10, :10], (inverse @ shares)[:10], samples)

    def estimate(self, loaded: Raw, tare: Raw | None = None, masses: float = MASSES) -> PayloadEstimate:
        """The body that explains the difference; InputError if there is none. masses: as of estimate_payload."""
        theta = loaded.theta - (0.0 if tare is None else tare.theta)
        covariance = loaded.covariance + (0.0 if tare is None else tare.covariance)
        doubts = masses * (loaded.doubts - (0.0 if tare is None else tare.doubts))
        covariance = covariance + doubts @ doubts.T
        if theta[0] <= 2.0 * np.sqrt(covariance[0, 0]):
            raise InputError(f"no payload on link '{self.link}' is seen: its mass comes out as {theta[0]:.3g} kg, within "
                             f"{np.sqrt(covariance[0, 0]):.2g}")
        theta = _possible(theta, covariance)
        values, slope = _in_words(theta), _slope(theta)
        std = np.sqrt(np.diagonal(slope @ covariance @ slope.T))
        size = np.array([values[0], *[EXTENT] * 3, *[values[0] * RADIUS**2] * 6])
        unknown = tuple(name for name, off in zip(NAMES, std > DOUBTFUL * size) if off)
        xx, xy, xz, yy, yz, zz = values[4:]
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return PayloadEstimate(self.link, float(values[0]), values[1:4], inertia, std, unknown, loaded.samples)


def estimate_payload(robot: Robot, link: str, recording: Measurements, tare: Measurements | None = None, *,
                     friction: bool = True, window: float | None = None, masses: float = MASSES) -> PayloadEstimate:
    """What a link of the robot carries, from a recording; and one without the payload, the tare.

    recording, tare: torques as robot.model.efforts.measured has them; NaN for joints whose torques are not measured
    friction : fit Coulomb and viscous friction and an offset of each joint beside
    window   : of polynomials, instead of Kalman smoothing, for derivatives that are not given [s]
    masses   : standard deviation of the masses of the robot's own links, as a share: for how well the answer is known
    Raises InputError if no payload is seen.
    """
    estimator = PayloadEstimator(robot, link)

    def raw(of: Measurements) -> Raw:
        q, tau = (validation.coordinates(name, getattr(of, name), robot.joint_names, name == "q") for name in ("q", "tau"))
        data = prepare(of.t, q, np.nan_to_num(tau), of.qd, of.qdd, window, robot.joint_types, robot.joint_names)
        torque = np.where(np.isfinite(tau).all(axis=0), robot.measured_torque(data.tau, data.q, data.qd), np.nan)
        return estimator.raw(data.q, data.qd, data.qdd, torque, friction)

    return estimator.estimate(raw(recording), None if tare is None else raw(tare), masses)


def _moved(frame: Frame) -> np.ndarray:
    """(10, 10): the ten numbers in a link's MDH frame from those in its URDF frame."""
    columns = []
    for m, *rest in np.eye(10):
        ms, (xx, xy, xz, yy, yz, zz) = np.array(rest[:3]), rest[3:]
        J, ms = rotate_inertia(frame.R, np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), ms)
        J, ms = shift(J, ms, m, frame.P)
        columns.append([m, *ms, *J[UPPER]])
    return np.array(columns).T


def _friction_columns(robot: Robot, qd: np.ndarray) -> np.ndarray:
    """(samples, n, 3 n): Coulomb and viscous friction and offset of each joint."""
    smoothing = [next(link.term.smoothing for link in robot.model.links if link.joint == name) for name in robot.joint_names]
    parts = np.stack((np.tanh(qd / smoothing), qd, np.ones_like(qd)), axis=2)
    return np.einsum("skc,kj->skjc", parts, np.eye(robot.n)).reshape(len(qd), robot.n, -1)


def _covariance(weighed: np.ndarray, residual: np.ndarray, inverse: np.ndarray) -> np.ndarray:
    """Of the unknowns, by blocks of the recording: errors of friction do not change from sample to sample as noise does."""
    scores = np.einsum("skp,sk->sp", weighed, residual)
    blocks = np.array([part.sum(axis=0) for part in np.array_split(scores, BLOCKS)])
    return inverse @ blocks.T @ blocks @ inverse + inverse


def _possible(theta: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """The ten numbers of a body nearest to these, in standard deviations: S = L L^T is positive for every L."""
    from scipy.optimize import least_squares

    lower = np.tril_indices(4)
    whitening = np.linalg.inv(np.linalg.cholesky(covariance + np.diag((1e-9 * SIZES) ** 2)))

    def numbers(x: np.ndarray) -> np.ndarray:
        L = np.zeros((4, 4))
        L[lower] = x
        S = L @ L.T + theta[0] * np.diag([THICK**2, THICK**2, THICK**2, 0.0])
        E = S[:3, :3]
        return np.array([S[3, 3], *S[:3, 3], *(np.trace(E) * np.eye(3) - E)[UPPER]])

    centre = theta[1:4] / theta[0]
    about = theta[0] * (np.outer(centre, centre) + RADIUS**2 * np.eye(3))
    start = np.linalg.cholesky(np.block([[about, theta[1:4, None]], [theta[None, 1:4], theta[:1, None]]]))
    if np.linalg.eigvalsh(pseudo_inertia(theta))[0] > 0.0:
        return theta
    return numbers(least_squares(lambda x: whitening @ (numbers(x) - theta), start[lower], x_scale="jac").x)


def _in_words(theta: np.ndarray) -> np.ndarray:
    """(10,) of NAMES from m, m com, J about the origin."""
    com = theta[1:4] / theta[0]
    J = np.zeros((3, 3), dtype=theta.dtype)
    J[UPPER] = theta[4:]
    J = J + np.triu(J, 1).T
    about = J - theta[0] * ((com @ com) * np.eye(3) - np.outer(com, com))
    return np.array([theta[0], *com, *about[UPPER]])


def _slope(theta: np.ndarray) -> np.ndarray:
    """(10, 10) of _in_words, by complex steps."""
    return np.array([_in_words(theta + 1e-30j * unit).imag / 1e-30 for unit in np.eye(10)]).T
