"""Comparison of the package's torques with those of MuJoCo's motors, by leg and contact phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..robots.robot import Robot
from .plant import Instant

STANCE, SWING, CHANGE = "stance", "swing", "touch-down and lift-off"
CHANGE_WINDOW_S = 0.02  # samples this close to the beginning or the end of a contact have the phase CHANGE


def torques(robot: Robot, instant: Instant, motors: np.ndarray) -> np.ndarray:
    """Return the torques (n,) of an instant by inverse dynamics, from its motion and wrenches [N m, N].

    motors : indices of the robot's joints among those of the tree
    """
    q, qd, qdd = (part[motors] for part in (instant.q, instant.qd, instant.qdd))
    if not robot.is_fixed_tree and robot.has_moving_base:
        return robot.inverse_dynamics(q, qd, qdd, base=instant.base, wrenches=instant.wrenches,
                                      base_acceleration=instant.base_acceleration)
    if not robot.is_fixed_tree:
        return robot.inverse_dynamics(q, qd, qdd, guess=instant.q)
    return robot.inverse_dynamics(q, qd, qdd, wrenches=instant.wrenches)


class InstantRates(NamedTuple):
    """An instant with its rates: jerk of the joints (n,) and of the base (6,) (see base_state.py; None for a fixed base),
    rates of the wrenches and of the motor torques.
    """

    instant: Instant
    jerk: np.ndarray
    base_jerk: np.ndarray | None
    wrench_rates: dict[str, np.ndarray]
    tau_rate: np.ndarray


def with_rates(instants: Iterable[Instant]) -> Iterator[InstantRates]:
    """Yield every instant but the first and the last with central differences of what MuJoCo does not provide.

    Within a contact phase the error is quadratic in the time between instants. At a change of contacts the accelerations jump
    and the jerk does not exist.
    """
    before = here = None
    for after in instants:
        if before is not None and here is not None:
            span = after.t - before.t
            base_jerk = None
            if here.base:
                base_jerk = here.base.into_base(_world_acceleration(after) - _world_acceleration(before)) / span
            wrench_rates = {link: (six - before.wrenches[link]) / span for link, six in after.wrenches.items()}
            yield InstantRates(here, (after.qdd - before.qdd) / span, base_jerk, wrench_rates, (after.tau - before.tau) / span)
        before, here = here, after


def _world_acceleration(instant: Instant) -> np.ndarray:
    assert instant.base is not None
    return instant.base.into_world(instant.base_acceleration)


def torque_rates(robot: Robot, rates: InstantRates, motors: np.ndarray) -> np.ndarray:
    """Return the torque rates (n,) of an instant by the package [N m/s, N/s]."""
    instant = rates.instant
    q, qd, qdd, jerk = (part[motors] for part in (instant.q, instant.qd, instant.qdd, rates.jerk))
    touched: dict[str, Any] = {"wrenches": instant.wrenches, "wrench_rates": rates.wrench_rates}
    if not robot.is_fixed_tree and robot.has_moving_base:
        return robot.torque_and_rate(q, qd, qdd, jerk, base=instant.base, base_acceleration=instant.base_acceleration,
                                     base_jerk=rates.base_jerk, **touched)[1]
    if not robot.is_fixed_tree:
        return robot.torque_and_rate(q, qd, qdd, jerk, guess=instant.q)[1]
    return robot.torque_and_rate(q, qd, qdd, jerk, **touched)[1]


def phases(t: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Return the phase of every leg: STANCE, SWING or CHANGE (samples, legs), from contact forces of that shape at times t."""
    loaded = forces > 0.0
    found = np.where(loaded, STANCE, SWING).astype(object)
    for leg, changes in enumerate(np.diff(loaded, axis=0).T):
        for moment in t[1:][changes]:
            found[np.abs(t - moment) <= CHANGE_WINDOW_S, leg] = CHANGE
    return found


class LegPhaseError(NamedTuple):
    """Torque error of one leg in one phase: number of samples, largest and RMS error, each divided by the peak torque."""

    leg: str
    phase: str
    samples: int
    worst: float
    rms: float


def errors_by_leg_and_phase(found: np.ndarray, truth: np.ndarray, phase: np.ndarray,
                            legs: Sequence[tuple[str, np.ndarray]]) -> list[LegPhaseError]:
    """Return the errors of torques (samples, n) by leg and phase.

    phase : (samples, legs); legs : name and joint indices of each leg
    """
    share = np.abs(found - truth) / np.abs(truth).max(axis=0)
    rows = []
    for (leg, joints), column in zip(legs, phase.T):
        for name in (STANCE, SWING, CHANGE):
            of = share[column == name][:, joints]
            if of.size:
                rows.append(LegPhaseError(leg, name, len(of), float(of.max()), float(np.sqrt((of**2).mean()))))
    return rows
