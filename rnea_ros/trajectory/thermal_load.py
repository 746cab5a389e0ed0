"""Thermal load of motor windings by a motion: once, from cold, and when it is repeated continuously.

    T d load/dt = (tau / tau_c)^2 - load          load 1: allowed continuously by the data sheet (robots/thermal_load.py)

The load is linear in the squares. After one motion of period P that a cold winding ends with the load I, the load that the
motion begins and ends with when it is repeated is I / (1 - exp(-P / T)), and that much, decaying, is added all along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..errors import InputError
from ..model.drives import Drive
from ..robots.robot import Robot
from .link_side import default_base, link_side
from .retiming import Retimed

BLOCK_TIME_CONSTANTS = 30.0  # length of a block: beyond, exponentials are lost in rounding
STORED_SAMPLES = 200  # of each part
N_SAMPLES = 4001  # of a motion
MIN_RATE, RATE_STEP, BISECTIONS = 0.02, 0.97, 30  # of the search for a rate


class ThermalLoad(NamedTuple):
    """Largest load of each winding (k,): in one motion from cold, and in one that is repeated continuously."""

    joints: tuple[str, ...]
    once: np.ndarray
    repeated: np.ndarray

    @property
    def descriptions(self) -> list[str]:
        """Sentences for users."""
        return [f"thermal load of {joint}: at most {100.0 * once:.1f} % from cold, {100.0 * again:.1f} % if repeated "
                "continuously"
                for joint, once, again in zip(self.joints, self.once, self.repeated)]


def thermal_drives(robot: Robot) -> tuple[Drive, ...]:
    """Return the drives with known continuous torque and time constant that no spring separates from the joint."""
    springs = robot.elastic_joints if not robot.is_fixed_tree else ()
    return tuple(drive for drive in robot.tree.model.drives if drive.joint in robot.joint_names
                 and drive.joint not in springs and np.isfinite(drive.continuous * drive.thermal_time_constant))


class ThermalAccumulator:
    """Thermal load of a motion that is added in parts."""

    def __init__(self, drives: Sequence[Drive], joint_names: Sequence[str]):
        self.joints = tuple(drive.joint for drive in drives)
        self._columns = [joint_names.index(joint) for joint in self.joints]
        self._continuous = np.array([drive.continuous for drive in drives])
        self._constant = np.array([drive.thermal_time_constant for drive in drives])
        self._load, self._last = np.zeros(len(drives)), (np.zeros(0), np.zeros((0, len(drives))))
        self._begin, self._t, self._loads = 0.0, [np.zeros(0)], [np.zeros((0, len(drives)))]

    def add(self, t: np.ndarray, tau: np.ndarray) -> None:
        """Add samples in their order: t (samples,) [s], tau (samples, n)."""
        share = np.nan_to_num((tau[:, self._columns] / self._continuous) ** 2)
        if not len(self._last[0]):
            self._begin = float(t[0])
        t, share = np.concatenate((self._last[0], t)), np.concatenate((self._last[1], share))
        self._last = t[-1:], share[-1:]
        loads = _loads(t, share, self._constant, self._load)
        self._load = loads[-1]
        kept = np.unique(np.linspace(0, len(t) - 1, STORED_SAMPLES).astype(int))
        self._t.append(t[kept])
        self._loads.append(loads[kept])

    def load(self, pause: float = 0.0) -> ThermalLoad:
        """Return the load. pause: time between two motions, with the last torque [s]."""
        t, loads, last = np.concatenate(self._t) - self._begin, np.concatenate(self._loads), self._last[1]
        if not len(t):
            return ThermalLoad(self.joints, self._load, self._load)
        cooled = np.exp(-pause / self._constant)
        period = t[-1] + pause
        end = last[0] + (self._load - last[0]) * cooled
        again = end / -np.expm1(-period / self._constant) if period > 0.0 else last[0]
        repeated = (loads + again * np.exp(-t[:, None] / self._constant)).max(axis=0)
        return ThermalLoad(self.joints, loads.max(axis=0), np.maximum(repeated, again))


def _loads(t: np.ndarray, share: np.ndarray, constant: np.ndarray, load: np.ndarray) -> np.ndarray:
    """Return the loads (samples, k) from that at the first sample, with constant mean squared torque between samples."""
    found, begin = np.empty_like(share), 0
    found[0] = load
    while begin < len(t) - 1:
        end = max(int(t.searchsorted(t[begin] + BLOCK_TIME_CONSTANTS * constant.min(initial=np.inf), side="right")), begin + 2)
        grown = np.exp((t[begin:end, None] - t[begin]) / constant) if end > begin + 2 else None
        mean = 0.5 * (share[begin:end - 1] + share[begin + 1:end])
        if grown is None:  # one step of any length
            decay = np.exp(-(t[begin + 1] - t[begin]) / constant)
            found[begin + 1] = mean[0] + (found[begin] - mean[0]) * decay
        else:
            found[begin + 1:end] = (found[begin] + np.cumsum(mean * np.diff(grown, axis=0), axis=0)) / grown[1:]
        begin = end - 1
    return found


def slow_to_continuous_duty(robot: Robot, motion: Retimed, pause: float = 0.0) -> Retimed:
    """Return the motion slowed just enough to be repeated continuously within the thermal limits of the windings.

    pause : time between two motions, in the final pose [s]
    Raises InputError where no speed is slow enough, because gravity alone exceeds the limits.
    """
    if not (np.isfinite(pause) and pause >= 0.0):
        raise InputError(f"the pause is {pause:g}; a finite time, zero or more, is needed [s]")
    drives = thermal_drives(robot)
    if not drives:
        raise InputError(f"of robot '{robot.name}' no drive has continuous_current or continuous_torque, and "
                         "thermal_time_constant: its thermal load is unknown")
    moved = link_side(robot, default_base(robot))

    def loads(rate: float) -> np.ndarray:
        slow = replace(motion, law=motion.law.slower(rate))
        t = np.linspace(0.0, slow.duration, N_SAMPLES)
        accumulator = ThermalAccumulator(drives, robot.joint_names)
        accumulator.add(t, moved.inverse_dynamics(*slow(t)[:3]))
        return accumulator.load(pause).repeated

    high = low = 1.0
    if (hot := loads(1.0)).max() <= 1.0:
        return motion
    while loads(low).max() > 1.0:
        high, low = low, low * RATE_STEP
        if low < MIN_RATE:
            worst = drives[int(loads(low).argmax())].joint
            raise InputError(f"even at {MIN_RATE:.0%} of its speed the motion, repeated continuously, overheats {worst}: "
                             "holding the robot takes more than its continuous torque")
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loads(middle).max() <= 1.0 else (low, middle)
    hottest = drives[int(hot.argmax())].joint
    note = (f"slowed to {low:.1%} of the speed, so that it may be repeated continuously: at full speed {hottest} would reach "
            f"{hot.max():.0%} of its thermal limit")
    return replace(motion, law=motion.law.slower(low), notes=(*motion.notes, note))
