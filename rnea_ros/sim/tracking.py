"""A robot in MuJoCo that follows a motion: computed torque by the package's model, drives that saturate, a plant that is not
quite the model. The same law, whatever timed the motion:

    tau = inverse dynamics of (r, rd, rdd + w^2 (r - q) + 2 w (rd - qd))

the planned torque with a PD on top, of bandwidth w in every joint.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .drives import Drives
from .plant import Plant

PERIOD, INNER = 1e-3, 4  # s, of the controller; timesteps of the plant within it
BANDWIDTH = 42.0  # rad/s
LOST = 0.25  # rad, m; no drive lets an arm be so far off
Motion = Callable[[np.ndarray], tuple[np.ndarray, ...]]


class Tracked(NamedTuple):
    """Times t (samples,); wanted and actual positions, torques that were asked for and exerted (samples, n).

    lost : it got so far off that its drives were stopped, with which this ends
    """

    t: np.ndarray
    wanted: np.ndarray
    q: np.ndarray
    asked: np.ndarray
    exerted: np.ndarray
    lost: bool


class Tracker:
    """A plant under this law, one period after another, from rest at q (n,). drives: what they exert now."""

    def __init__(self, plant: Plant, q: np.ndarray):
        self._plant, self._robot = plant, plant.robot
        plant.place(q)
        self.drives = Drives(plant.robot, plant.robot.gravity(q))

    def step(self, r: np.ndarray, rd: np.ndarray, rdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """PERIOD on. Positions at its beginning, and the torques that were asked for then: (n,) each."""
        q, qd = self._plant.joints
        asked = self._robot.inverse_dynamics(r, rd, rdd + BANDWIDTH**2 * (r - q) + 2.0 * BANDWIDTH * (rd - qd))
        for _ in range(INNER):
            self._plant.exert(self.drives.step(asked, self._plant.joints[1], self._plant.timestep))
            self._plant.advance()
        return q, asked


def follow(plant: Plant, motion: Motion, duration: float, rest: float = 0.2) -> Tracked:
    """From rest: the arm is held at the start until it stands still, follows for the duration, and is held at the end.

    motion : q, qd, qdd and more (samples, n) at times (samples,) from zero; it rests after the duration
    rest   : how long it is held [s]; told in `t` from -rest on
    """
    t = np.arange(-rest, duration + rest, PERIOD)
    r, rd, rdd = motion(np.maximum(t, 0.0))[:3]
    moving = (t >= 0.0)[:, None]
    rd, rdd = rd * moving, rdd * moving
    tracker = Tracker(plant, r[0])
    q, asked, exerted = np.zeros((3, *r.shape))
    for k in range(len(t)):
        q[k], asked[k] = tracker.step(r[k], rd[k], rdd[k])
        exerted[k] = tracker.drives.tau
        if np.abs(r[k] - q[k]).max() > LOST:
            till = slice(k + 1)
            return Tracked(t[till], r[till], q[till], asked[till], exerted[till], True)
    return Tracked(t, r, q, asked, exerted, False)
