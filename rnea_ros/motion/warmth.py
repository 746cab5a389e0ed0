"""How warm a motion makes the windings of the motors: once, from cold, and when it is repeated for ever.

    T d load/dt = (tau / tau_c)^2 - load          load 1: what the data sheet allows for ever (robots/thermal_load.py)

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
from ..robots.general import GeneralRobot
from ..robots.kinds import tree
from ..robots.link_side import level, link_side
from ..robots.protocol import AnyRobot
from .retime import Retimed

SPAN = 30.0  # time constants that are looked at together: beyond, exponentials are lost in rounding
KEPT = 200  # samples of each part whose load is remembered
LOOKS = 4001  # along a motion
SLOWEST, STEP, HALVINGS = 0.02, 0.97, 30  # of the speed


class Warmth(NamedTuple):
    """The largest load of each winding (k,): in one motion from cold, and in one that is repeated for ever."""

    joints: tuple[str, ...]
    once: np.ndarray
    repeated: np.ndarray

    @property
    def words(self) -> list[str]:
        return [f"thermal load of {joint}: at most {100.0 * once:.1f} % from cold, {100.0 * again:.1f} % if repeated for ever"
                for joint, once, again in zip(self.joints, self.once, self.repeated)]


def thermal_drives(robot: AnyRobot) -> tuple[Drive, ...]:
    """Drives whose warmth the torques of `link_side` decide: continuous torque and time constant known, no spring between."""
    springs = robot.elastic_joints if isinstance(robot, GeneralRobot) else ()
    return tuple(drive for drive in tree(robot).model.drives if drive.joint in robot.joint_names
                 and drive.joint not in springs and np.isfinite(drive.continuous * drive.thermal_time_constant))


class Warming:
    """The warmth of a motion that comes part by part."""

    def __init__(self, drives: Sequence[Drive], joint_names: Sequence[str]):
        self.joints = tuple(drive.joint for drive in drives)
        self._columns = [joint_names.index(joint) for joint in self.joints]
        self._continuous = np.array([drive.continuous for drive in drives])
        self._constant = np.array([drive.thermal_time_constant for drive in drives])
        self._load, self._last = np.zeros(len(drives)), (np.zeros(0), np.zeros((0, len(drives))))
        self._begin, self._t, self._loads = 0.0, [np.zeros(0)], [np.zeros((0, len(drives)))]

    def see(self, t: np.ndarray, tau: np.ndarray) -> None:
        """t (samples,), going on; tau (samples, n)."""
        share = np.nan_to_num((tau[:, self._columns] / self._continuous) ** 2)
        if not len(self._last[0]):
            self._begin = float(t[0])
        t, share = np.concatenate((self._last[0], t)), np.concatenate((self._last[1], share))
        self._last = t[-1:], share[-1:]
        loads = _loads(t, share, self._constant, self._load)
        self._load = loads[-1]
        kept = np.unique(np.linspace(0, len(t) - 1, KEPT).astype(int))
        self._t.append(t[kept])
        self._loads.append(loads[kept])

    def warmth(self, pause: float = 0.0) -> Warmth:
        """pause: between two motions, the last torque held [s]."""
        t, loads, last = np.concatenate(self._t) - self._begin, np.concatenate(self._loads), self._last[1]
        if not len(t):
            return Warmth(self.joints, self._load, self._load)
        cooled = np.exp(-pause / self._constant)
        period = t[-1] + pause
        end = last[0] + (self._load - last[0]) * cooled
        again = end / -np.expm1(-period / self._constant) if period > 0.0 else last[0]
        repeated = (loads + again * np.exp(-t[:, None] / self._constant)).max(axis=0)
        return Warmth(self.joints, loads.max(axis=0), np.maximum(repeated, again))


def _loads(t: np.ndarray, share: np.ndarray, constant: np.ndarray, load: np.ndarray) -> np.ndarray:
    """(samples, k) from the load at the first one; the mean of two shares holds between their samples."""
    found, begin = np.empty_like(share), 0
    found[0] = load
    while begin < len(t) - 1:
        end = max(int(t.searchsorted(t[begin] + SPAN * constant.min(initial=np.inf), side="right")), begin + 2)
        grown = np.exp((t[begin:end, None] - t[begin]) / constant) if end > begin + 2 else None
        mean = 0.5 * (share[begin:end - 1] + share[begin + 1:end])
        if grown is None:  # a step that may be of any length
            decay = np.exp(-(t[begin + 1] - t[begin]) / constant)
            found[begin + 1] = mean[0] + (found[begin] - mean[0]) * decay
        else:
            found[begin + 1:end] = (found[begin] + np.cumsum(mean * np.diff(grown, axis=0), axis=0)) / grown[1:]
        begin = end - 1
    return found


def repeatable(robot: AnyRobot, motion: Retimed, pause: float = 0.0) -> Retimed:
    """The motion as little slower as it may be repeated for ever, as far as windings become warm.

    pause : between two motions, in the pose of the end [s]
    InputError where no speed is slow enough, because gravity alone makes them too warm.
    """
    if not (np.isfinite(pause) and pause >= 0.0):
        raise InputError(f"the pause is {pause:g}; a finite time, zero or more, is needed [s]")
    drives = thermal_drives(robot)
    if not drives:
        raise InputError(f"of robot '{robot.name}' no drive has continuous_current or continuous_torque, and "
                         "thermal_time_constant: how warm it becomes is not known")
    moved = link_side(robot, level(robot))

    def loads(rate: float) -> np.ndarray:
        slow = replace(motion, law=motion.law.slower(rate))
        t = np.linspace(0.0, slow.duration, LOOKS)
        warming = Warming(drives, robot.joint_names)
        warming.see(t, moved.inverse_dynamics(*slow(t)[:3]))
        return warming.warmth(pause).repeated

    high = low = 1.0
    if (hot := loads(1.0)).max() <= 1.0:
        return motion
    while loads(low).max() > 1.0:
        high, low = low, low * STEP
        if low < SLOWEST:
            worst = drives[int(loads(low).argmax())].joint
            raise InputError(f"even at {SLOWEST:.0%} of its speed the motion, repeated for ever, makes {worst} too warm: what "
                             "holds the robot still takes more than its continuous torque")
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if loads(middle).max() <= 1.0 else (low, middle)
    hottest = drives[int(hot.argmax())].joint
    note = (f"slowed to {low:.1%} of the speed, so that it may be repeated for ever: at full speed {hottest} would come to "
            f"{hot.max():.0%} of its thermal limit")
    return replace(motion, law=motion.law.slower(low), notes=(*motion.notes, note))
