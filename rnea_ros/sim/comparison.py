"""What the package says that the motors of a plant exert, and how far that is from MuJoCo's, by leg and phase."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..robots.floating import FloatingRobot
from ..robots.general import GeneralRobot
from ..robots.protocol import AnyRobot
from .plant import Instant

STANCE, SWING, CHANGE = "stance", "swing", "touch-down and lift-off"
NEAR = 0.02  # s; so near to the beginning and to the end of a contact it changes


def torques(robot: AnyRobot, instant: Instant, motors: np.ndarray) -> np.ndarray:
    """By inverse dynamics (n,), of the motion and the wrenches of an instant; motors: the robot's joints among the tree's."""
    q, qd, qdd = (part[motors] for part in (instant.q, instant.qd, instant.qdd))
    if isinstance(robot, FloatingRobot):
        assert instant.base_acceleration is not None
        return robot.prescribed_base(q, qd, qdd, np.zeros(robot.n), base=instant.base, wrenches=instant.wrenches,
                                     base_acceleration=instant.base_acceleration).tau
    if isinstance(robot, GeneralRobot):
        return robot.inverse_dynamics(q, qd, qdd, guess=instant.q)
    return robot.inverse_dynamics(q, qd, qdd, wrenches=instant.wrenches)


class Rates(NamedTuple):
    """Of an instant: jerk of the joints (n,), and of the base (6,) as base_state.py has it, None where it is held; rates of
    the wrenches, and of the torques of the motors."""

    instant: Instant
    jerk: np.ndarray
    base_jerk: np.ndarray | None
    wrench_rates: dict[str, np.ndarray]
    tau_rate: np.ndarray


def with_rates(instants: Iterable[Instant]) -> Iterator[Rates]:
    """Every instant but the first with what MuJoCo does not tell, from what was before and comes after it.

    While contacts stay as they are the error goes with the square of the distance between instants; where they begin and end,
    accelerations jump, and no jerk exists.
    """
    before = here = None
    for after in instants:
        if before is not None and here is not None:
            span = after.t - before.t
            base_jerk = here.base.into_base(_in_world(after) - _in_world(before)) / span if here.base else None
            wrench_rates = {link: (six - before.wrenches[link]) / span for link, six in after.wrenches.items()}
            yield Rates(here, (after.qdd - before.qdd) / span, base_jerk, wrench_rates, (after.tau - before.tau) / span)
        before, here = here, after


def _in_world(instant: Instant) -> np.ndarray:
    assert instant.base is not None
    return instant.base.into_world(instant.base_acceleration)


def torque_rates(robot: AnyRobot, rates: Rates, motors: np.ndarray) -> np.ndarray:
    """What the package says of the rates of these torques (n,)."""
    instant = rates.instant
    q, qd, qdd, jerk = (part[motors] for part in (instant.q, instant.qd, instant.qdd, rates.jerk))
    touched = {"wrenches": instant.wrenches, "wrench_rates": rates.wrench_rates}
    if isinstance(robot, FloatingRobot):
        assert instant.base_acceleration is not None and rates.base_jerk is not None
        return robot.prescribed_base(q, qd, qdd, jerk, base=instant.base, base_acceleration=instant.base_acceleration,
                                     base_jerk=rates.base_jerk, **touched).tau_rate
    if isinstance(robot, GeneralRobot):
        return robot.torque_and_rate(q, qd, qdd, jerk, guess=instant.q)[1]
    return robot.torque_and_rate(q, qd, qdd, jerk, **touched)[1]


def phases(t: np.ndarray, forces: np.ndarray) -> np.ndarray:
    """Of forces (samples, legs) at times t: STANCE, SWING or CHANGE, an array of words of the same shape."""
    loaded = forces > 0.0
    found = np.where(loaded, STANCE, SWING).astype(object)
    for leg, changes in enumerate(np.diff(loaded, axis=0).T):
        for moment in t[1:][changes]:
            found[np.abs(t - moment) <= NEAR, leg] = CHANGE
    return found


class Row(NamedTuple):
    """Of one leg in one phase: samples, worst and root mean square error of its joints, as shares of their peak torques."""

    leg: str
    phase: str
    samples: int
    worst: float
    usual: float


def by_leg_and_phase(found: np.ndarray, truth: np.ndarray, phase: np.ndarray,
                     legs: Sequence[tuple[str, np.ndarray]]) -> list[Row]:
    """Torques found and true (samples, n), phases (samples, legs); legs: name and numbers of the joints of each."""
    share = np.abs(found - truth) / np.abs(truth).max(axis=0)
    rows = []
    for (leg, joints), column in zip(legs, phase.T):
        for name in (STANCE, SWING, CHANGE):
            of = share[column == name][:, joints]
            if of.size:
                rows.append(Row(leg, name, len(of), float(of.max()), float(np.sqrt((of**2).mean()))))
    return rows
