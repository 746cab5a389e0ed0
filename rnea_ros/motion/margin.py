"""Margins: the share of the limits of torque and torque rate to plan with, with allowance for model error.

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
from ..robots.coulomb import coulomb, without_coulomb
from ..robots.robot import Robot

STICK, STRIBECK = 1e-3, 0.02  # rad/s, m/s: within which dry friction turns round, and within which stiction counts
LEAST = 0.05  # share
STEP, WINDOW = 1e-3, 0.02  # s: of the simulation; over which a rate is measured
DRAWS = 20  # of masses
SEED = 13


class Motion(Protocol):
    """As retime_motion gives it."""

    @property
    def duration(self) -> float: ...

    def __call__(self, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...


class Doubts(NamedTuple):
    """What is not known of a robot, and how it is controlled.

    masses     : each link's mass may be off by this share, either way, independently
    all_masses : all of them together may be off by this share
    payload    : mass that it may carry without anyone's knowledge, at `com` of `link` [kg]
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


class Shares(NamedTuple):
    """Of the limits, for planning: at most 1."""

    effort: float
    effort_rate: float


class Margin(NamedTuple):
    """shares: with all doubts together; by_doubt: with each alone."""

    shares: Shares
    by_doubt: dict[str, Shares]


def limits_share(robot: Robot, motions: Sequence[Motion], doubts: Doubts, limits: Limits | None = None) -> Margin:
    """The shares of the limits with which motions like these keep the whole limits, in spite of the doubts.

    motions : as they would be planned with the whole limits, of retime_motion for instance
    limits  : default those of the robot; limits of commanded effort rates are applied to rates of the whole torque
    """
    limits = robot.limits if limits is None else limits
    bounds = np.array((limits.effort, np.fmin(limits.effort_rate, limits.commanded_effort_rate)))
    if not motions or np.isnan(bounds).all():
        raise InputError("motions are needed, and limits of effort or effort rate, to know a margin")
    if doubts.payload and not doubts.link:
        raise InputError(f"the link that may carry {doubts.payload:g} kg is needed")
    given = [name for name in KINDS if getattr(doubts, name)]
    without = doubts._asdict() | dict.fromkeys(given, 0.0)
    alone = {name: Doubts(**without | {name: getattr(doubts, name)}) for name in given}
    found = {name: _worst(robot, motions, one, bounds) for name, one in alone.items()}
    return Margin(_worst(robot, motions, doubts, bounds), found)


KINDS = ("masses", "all_masses", "payload", "friction", "stiction", "resolution", "period")


def _worst(robot: Robot, motions: Sequence[Motion], doubts: Doubts, bounds: np.ndarray) -> Shares:
    shares = np.array([_shares(robot, motion, doubts, bounds) for motion in motions])
    return Shares(*map(float, shares.min(axis=0)))


def _shares(robot: Robot, motion: Motion, doubts: Doubts, bounds: np.ndarray) -> np.ndarray:
    """(2,): of effort and effort rate, for one motion."""
    t = np.arange(0.0, motion.duration + 0.1, STEP)
    q, qd, qdd, _ = wanted = motion(t)
    tau, M = robot.inverse_dynamics(q, qd, qdd), robot.mass_matrix(q)
    held = motion(t + 0.5 * doubts.period)[:3]
    sticks = bool(doubts.friction or doubts.stiction)
    D, inertia, rubs = [], [], []
    for true, rubbed in _robots(robot, doubts):
        D.append(true.inverse_dynamics(*held) - tau - (true.friction(held[1])[0] if sticks else 0.0))
        inertia.append(true.mass_matrix(q))
        rubs.append(1.0 + rubbed)
    friction = _Friction(robot.model, np.array(rubs), doubts.stiction, qd) if sticks else None
    u = tau[:, None] + _feedback(M, np.stack(inertia, axis=1), np.stack(D, axis=1), _noise(wanted, doubts), doubts.bandwidth,
                                 friction)
    planned, worst = _use(tau, bounds), np.max([_use(u[:, k], bounds) for k in range(u.shape[1])], axis=0)
    found = np.where(worst > 0.0, planned / np.where(worst > 0.0, worst, 1.0), 1.0)
    if sticks:
        smooth = _use(without_coulomb(robot).inverse_dynamics(q, qd, qdd), bounds)[1]
        found[1] = max(1.0 - max(worst[1] - smooth, 0.0), LEAST)
    return np.minimum(found, 1.0)


class _Friction:
    """Dry friction of robots by their own velocities.

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
        self._coulomb, self._viscous = rubs[:, None] * coulomb(model), rubs[:, None] * viscous
        self._stiction, self.qd = stiction, qd

    def __call__(self, k: int, error: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Torque and its slope (robots, n) at sample k; error: wanted velocities less those of the robots."""
        speed = self.qd[k] - error
        direction, rest = np.tanh(speed / STICK), 1.0 + self._stiction * np.exp(-np.square(speed / STRIBECK))
        return (self._coulomb * rest * direction + self._viscous * speed,
                self._coulomb * rest * (1.0 - direction**2) / STICK + self._viscous)


def _robots(robot: Robot, doubts: Doubts) -> Iterator[tuple[Robot, float]]:
    """The robot as it may be, and the share of friction that it has too much."""
    rng, count = np.random.default_rng(SEED), len(robot.moving_joints)
    for k in range(DRAWS if doubts.masses else 2):
        sign = 1.0 if k % 2 == 0 else -1.0
        factors = (1.0 + doubts.masses * rng.uniform(-1.0, 1.0, count)) * (1.0 + sign * doubts.all_masses)
        true = robot.with_masses(factors)
        if doubts.payload:
            true = true.with_payload(doubts.link, doubts.payload, doubts.com)
        yield true, sign * doubts.friction


def _feedback(M: np.ndarray, true: np.ndarray, D: np.ndarray, seen: np.ndarray, w: float,
              friction: _Friction | None = None) -> np.ndarray:
    """(samples, robots, n): what the feedback adds, by implicit steps; M (samples, n, n) of the model, true and D of each
    robot; seen: 2 w noise' + w^2 noise."""
    e, v, found = np.zeros(D.shape[1:]), np.zeros(D.shape[1:]), np.zeros_like(D)
    inertia = true + M[:, None] * (2.0 * w * STEP + (w * STEP) ** 2)
    inverse, eye = np.linalg.inv(inertia), np.eye(D.shape[-1])
    for k in range(len(D)):
        found[k] = (2.0 * w * v + w**2 * e + seen[k]) @ M[k]
        push = D[k] - found[k] - w**2 * STEP * v @ M[k]
        if friction is None:
            v = v + STEP * (inverse[k] @ push[..., None])[..., 0]
        else:
            torque, slope = friction(k, v)
            ahead = friction.qd[min(k + 1, len(D) - 1)] - friction.qd[k]
            push = push + torque + slope * ahead
            v = v + STEP * np.linalg.solve(inertia[k] + STEP * slope[..., None] * eye, push[..., None])[..., 0]
        e = e + STEP * v
    return found


def _noise(motion: Sequence[np.ndarray], doubts: Doubts) -> np.ndarray:
    """2 w noise' + w^2 noise along a motion; velocities are low-passed differences, late and in steps."""
    q, qd = motion[:2]
    if not doubts.resolution:
        return np.zeros_like(q)
    seen, w = doubts.resolution * np.round(q / doubts.resolution), doubts.bandwidth
    speed, filtered = np.diff(seen, axis=0, prepend=seen[:1]) / STEP, np.zeros_like(q)
    share = 1.0 - np.exp(-2.0 * np.pi * doubts.cutoff * STEP)
    for k in range(1, len(q)):
        filtered[k] = filtered[k - 1] + share * (speed[k] - filtered[k - 1])
    return 2.0 * w * (qd - filtered) + w**2 * (q - seen)


def _use(tau: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """(2,): largest use of the limits of effort, and of effort rate over WINDOW; of unknown ones none."""
    steps = round(WINDOW / STEP)
    rate = np.abs(tau[steps:] - tau[:-steps]) / WINDOW
    return np.array([np.nanmax(np.append(np.abs(x).max(axis=0) / bound, 0.0)) for x, bound in zip((tau, rate), bounds)])
