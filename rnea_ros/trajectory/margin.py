"""Margin: the share of the limits of torque and torque rate to plan with, given the uncertainty of the model.

A controller adds feedback to the planned torques. Where the robot's own dynamics differ from the model's, by D(t) along the
motion, it is off by e, and the feedback, a PD of bandwidth w whose gains are the model's inertia M, pays for D:

    M' e'' + M (2 w e' + w^2 e) = D,    u = tau + M (2 w (e' + noise') + w^2 (e + noise))

M' is the robot's true inertia, e = wanted - actual. It begins at rest with e = 0, while gravity is wrong from the first
instant: within 1 / w the feedback has that part of D on top of the plan, which the torque rate feels most where the arm starts
stretched out; and noise. A controller that holds its torques for a period is half of it late: D is that of the middle. The
share is the use of the limits as planned, by that of u.

Friction acts by the robot's own velocity, so it sticks: where a joint starts, turns round or stops, the feedback and the
planned torque have its steps. These do not shrink as a plan slows down, and plans leave them out of the torque rate, so of the
rate they are taken off: the share is 1 less what u has above the rate that is planned without Coulomb friction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ..errors import InputError
from ..model.tree import Limits, Model
from ..robots.robot import Robot
from .path_dynamics import coulomb_friction, without_coulomb

STICK_SPEED, STRIBECK_SPEED = 1e-3, 0.02  # rad/s, m/s: within which dry friction changes sign; of stiction
MIN_SHARE = 0.05
STEP_S, WINDOW_S = 1e-3, 0.02  # of the simulation; over which a rate is measured
N_DRAWS = 20  # of masses
SEED = 13


class Motion(Protocol):
    """Motion with a duration, as retime_motion returns it."""

    @property
    def duration(self) -> float: ...

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...


class ModelUncertainty(NamedTuple):
    """Uncertainty of a robot's model and measurements, and its feedback.

    masses     : each link's mass may be off by this share, in both directions, independently
    all_masses : all masses may be off together by this share
    payload    : unmodelled mass that it may carry, at `com` of `link` [kg]
    friction   : share of the declared friction that may be missing, or too much
    stiction   : friction at rest above the declared Coulomb friction, as a share of it
    resolution : of the encoders in the loop [rad, m]
    cutoff     : of the low-pass on the measured velocities [Hz]
    bandwidth  : of the feedback [rad/s]
    period     : for which the controller holds its torques [s]
    """

    masses: float = 0.05
    all_masses: float = 0.0
    payload: float = 0.0
    link: str = ""
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    friction: float = 0.0
    stiction: float = 0.0
    resolution: float = 0.0
    cutoff: float = np.inf
    bandwidth: float = 50.0
    period: float = 0.0


class PlanningShares(NamedTuple):
    """Shares of the limits to plan with, at most 1."""

    effort: float
    effort_rate: float


class Margin(NamedTuple):
    """Margin with all uncertainties together (shares), and with each alone (by_source)."""

    shares: PlanningShares
    by_source: dict[str, PlanningShares]


def limits_share(robot: Robot, motions: Sequence[Motion], uncertainty: ModelUncertainty,
                 limits: Limits | None = None) -> Margin:
    """Return the shares of the limits with which motions like these keep the whole limits under the uncertainty.

    motions : planned with the whole limits, for instance by retime_motion
    limits  : default those of the robot; limits of commanded effort rates are applied to rates of the whole torque
    """
    limits = robot.limits if limits is None else limits
    bounds = np.array((limits.effort, np.fmin(limits.effort_rate, limits.commanded_effort_rate)))
    if not motions or np.isnan(bounds).all():
        raise InputError("motions are needed, and limits of effort or effort rate, to know a margin")
    if uncertainty.payload and not uncertainty.link:
        raise InputError(f"the link that may carry {uncertainty.payload:g} kg is needed")
    given = [name for name in KINDS if getattr(uncertainty, name)]
    without = uncertainty._asdict() | dict.fromkeys(given, 0.0)
    alone = {name: ModelUncertainty(**without | {name: getattr(uncertainty, name)}) for name in given}
    found = {name: _worst(robot, motions, one, bounds) for name, one in alone.items()}
    return Margin(_worst(robot, motions, uncertainty, bounds), found)


KINDS = ("masses", "all_masses", "payload", "friction", "stiction", "resolution", "period")


def _worst(robot: Robot, motions: Sequence[Motion], uncertainty: ModelUncertainty, bounds: np.ndarray) -> PlanningShares:
    shares = np.array([_shares(robot, motion, uncertainty, bounds) for motion in motions])
    return PlanningShares(*map(float, shares.min(axis=0)))


def _shares(robot: Robot, motion: Motion, uncertainty: ModelUncertainty, bounds: np.ndarray) -> np.ndarray:
    """Return the shares (2,) of effort and effort rate for one motion."""
    t = np.arange(0.0, motion.duration + 0.1, STEP_S)
    q, qd, qdd, _ = wanted = motion(t)
    tau, M = robot.inverse_dynamics(q, qd, qdd), robot.mass_matrix(q)
    held = motion(t + 0.5 * uncertainty.period)[:3]
    sticks = bool(uncertainty.friction or uncertainty.stiction)
    D, inertia, rubs = [], [], []
    for true, rubbed in _robots(robot, uncertainty):
        D.append(true.inverse_dynamics(*held) - tau - (true.friction(held[1])[0] if sticks else 0.0))
        inertia.append(true.mass_matrix(q))
        rubs.append(1.0 + rubbed)
    friction = _Friction(robot.model, np.array(rubs), uncertainty.stiction, qd) if sticks else None
    u = tau[:, None] + _feedback(M, np.stack(inertia, axis=1), np.stack(D, axis=1), _noise(wanted, uncertainty),
                                 uncertainty.bandwidth, friction)
    planned, worst = _use(tau, bounds), np.max([_use(u[:, k], bounds) for k in range(u.shape[1])], axis=0)
    found = np.where(worst > 0.0, planned / np.where(worst > 0.0, worst, 1.0), 1.0)
    if sticks:
        smooth = _use(without_coulomb(robot).inverse_dynamics(q, qd, qdd), bounds)[1]
        found[1] = max(1.0 - max(worst[1] - smooth, 0.0), MIN_SHARE)
    return np.minimum(found, 1.0)


class _Friction:
    """Dry friction of robots by their actual velocities.

    rubs : factor of each robot's friction (robots,); qd: wanted velocities (samples, n)
    """

    def __init__(self, model: Model, rubs: np.ndarray, stiction: float, qd: np.ndarray):
        viscous = np.zeros(model.n)
        for link in model.links:
            if link.coordinate >= 0:
                viscous[link.coordinate] += link.multiplier**2 * link.term.viscous
        for motor in model.coupled_motors:  # friction that joints pass to each other by a coupling is left out
            for k, ratio in zip(motor.coordinates, motor.ratios, strict=True):
                viscous[k] += ratio**2 * motor.term.viscous
        self._coulomb, self._viscous = rubs[:, None] * coulomb_friction(model), rubs[:, None] * viscous
        self._stiction, self.qd = stiction, qd

    def __call__(self, k: int, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return torque and its derivative (robots, n) at sample k; error: wanted minus actual velocities."""
        speed = self.qd[k] - error
        direction, rest = np.tanh(speed / STICK_SPEED), 1.0 + self._stiction * np.exp(-np.square(speed / STRIBECK_SPEED))
        return (self._coulomb * rest * direction + self._viscous * speed,
                self._coulomb * rest * (1.0 - direction**2) / STICK_SPEED + self._viscous)


def _robots(robot: Robot, uncertainty: ModelUncertainty) -> Iterator[tuple[Robot, float]]:
    """Yield possible robots, each with the excess share of its friction."""
    rng, count = np.random.default_rng(SEED), len(robot.moving_joints)
    for k in range(N_DRAWS if uncertainty.masses else 2):
        sign = 1.0 if k % 2 == 0 else -1.0
        factors = (1.0 + uncertainty.masses * rng.uniform(-1.0, 1.0, count)) * (1.0 + sign * uncertainty.all_masses)
        true = robot.with_masses(factors)
        if uncertainty.payload:
            true = true.with_payload(uncertainty.link, uncertainty.payload, uncertainty.com)
        yield true, sign * uncertainty.friction


def _feedback(M: np.ndarray, true: np.ndarray, D: np.ndarray, seen: np.ndarray, w: float,
              friction: _Friction | None = None) -> np.ndarray:
    """Return the feedback torque (samples, robots, n), by implicit integration.

    M : (samples, n, n) of the model; true and D of each robot; seen: 2 w noise' + w^2 noise
    """
    e, v, found = np.zeros(D.shape[1:]), np.zeros(D.shape[1:]), np.zeros_like(D)
    inertia = true + M[:, None] * (2.0 * w * STEP_S + (w * STEP_S) ** 2)
    inverse, eye = np.linalg.inv(inertia), np.eye(D.shape[-1])
    for k in range(len(D)):
        found[k] = (2.0 * w * v + w**2 * e + seen[k]) @ M[k]
        push = D[k] - found[k] - w**2 * STEP_S * v @ M[k]
        if friction is None:
            v = v + STEP_S * (inverse[k] @ push[..., None])[..., 0]
        else:
            torque, slope = friction(k, v)
            ahead = friction.qd[min(k + 1, len(D) - 1)] - friction.qd[k]
            push = push + torque + slope * ahead
            v = v + STEP_S * np.linalg.solve(inertia[k] + STEP_S * slope[..., None] * eye, push[..., None])[..., 0]
        e = e + STEP_S * v
    return found


def _noise(motion: Sequence[np.ndarray], uncertainty: ModelUncertainty) -> np.ndarray:
    """Return 2 w noise' + w^2 noise along a motion; velocities are low-passed differences of quantized positions."""
    q, qd = motion[:2]
    if not uncertainty.resolution:
        return np.zeros_like(q)
    seen, w = uncertainty.resolution * np.round(q / uncertainty.resolution), uncertainty.bandwidth
    speed, filtered = np.diff(seen, axis=0, prepend=seen[:1]) / STEP_S, np.zeros_like(q)
    share = 1.0 - np.exp(-2.0 * np.pi * uncertainty.cutoff * STEP_S)
    for k in range(1, len(q)):
        filtered[k] = filtered[k - 1] + share * (speed[k] - filtered[k - 1])
    return 2.0 * w * (qd - filtered) + w**2 * (q - seen)


def _use(tau: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """Return the largest use (2,) of the limits of effort, and of effort rate over WINDOW_S; unknown ones are ignored."""
    steps = round(WINDOW_S / STEP_S)
    rate = np.abs(tau[steps:] - tau[:-steps]) / WINDOW_S
    return np.array([np.nanmax(np.append(np.abs(x).max(axis=0) / bound, 0.0)) for x, bound in zip((tau, rate), bounds)])
