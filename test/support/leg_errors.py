"""Torque rates of robots in MuJoCo by the package, and errors of torques by leg and phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rnea_ros import Loads, Robot
from rnea_ros.sim.plant import CHANGE, STANCE, SWING, InstantRates


def torque_rates(robot: Robot, rates: InstantRates, motors: np.ndarray) -> np.ndarray:
    """Return the torque rates (n,) of an instant by the package [N m/s, N/s]."""
    instant = rates.instant
    q, qd, qdd, jerk = (part[motors] for part in (instant.q, instant.qd, instant.qdd, rates.jerk))
    loads = Loads(instant.wrenches, rates.wrench_rates)
    if not robot.is_fixed_tree and robot.has_moving_base:
        assert instant.base is not None
        base = instant.base.with_motion(instant.base.acceleration, rates.base_jerk)
        return robot.torque_and_rate(q, qd, qdd, jerk, base=base, loads=loads)[1]
    if not robot.is_fixed_tree:
        return robot.torque_and_rate(q, qd, qdd, jerk, guess=instant.q)[1]
    return robot.torque_and_rate(q, qd, qdd, jerk, loads=loads)[1]


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
