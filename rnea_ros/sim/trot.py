"""Standing, then trotting: diagonal legs swing in turn, each foot along a closed curve below its hip, held by joint control.

It is as plain as can be, for it only has to make a robot walk: the legs' positions over one period are found once, by inverse
kinematics with the base level; while walking, each joint is pulled towards them, and the legs that stand carry the weight.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..robots.floating import FloatingRobot
from ..robots.inputs.base_state import BaseState
from .quadrupeds import Quadruped

SAMPLES = 200  # of a period
DIAGONALS = (0.0, 0.5, 0.5, 0.0)  # when in the period each foot begins to swing
START = 1.0  # s, of standing; then the steps grow over a period
NEWTON = 12
LEVEL = BaseState()


class Trot:
    """Torques (12,) of the motors over time, from the joints' motion; `height` is that of the base as it stands [m]."""

    def __init__(self, robot: FloatingRobot, which: Quadruped, start: float = START):
        self._robot, self._which, self._start = robot, which, start
        self.stance = self._pose(which.legs)
        feet = np.array([robot.link_pose(foot, self.stance, base=LEVEL).p for foot in which.feet])
        self.height = which.radius - feet[:, 2].mean()
        self._steps = self._legs(feet[:, None] + _curves(which))
        self._weight = robot.robot.total_mass * np.linalg.norm(robot.robot.gravity_vector)

    def _pose(self, legs: Sequence[Sequence[float]]) -> np.ndarray:
        """(12,), from one row for each foot: a leg's joints are those that move the foot."""
        q = np.zeros(self._robot.n)
        self._joints = [np.flatnonzero(np.abs(self._robot.jacobian(foot, q + 0.3, base=LEVEL)[:, 6:]).max(axis=0) > 1e-9)
                        for foot in self._which.feet]
        for joints, leg in zip(self._joints, legs):
            q[joints] = leg
        return q

    def _legs(self, targets: np.ndarray) -> np.ndarray:
        """Joint positions (SAMPLES, 12) that put the feet there (4, SAMPLES, 3), by Newton's method."""
        q = np.tile(self.stance, (SAMPLES, 1))
        for _ in range(NEWTON):
            for foot, joints, target in zip(self._which.feet, self._joints, targets):
                away = target - self._robot.link_pose(foot, q, base=LEVEL).p
                J = self._robot.jacobian(foot, q, base=LEVEL)[:, :3, 6 + joints]
                q[:, joints] += np.linalg.solve(J, away[..., None])[..., 0]
        return q

    def reference(self, t: float) -> tuple[np.ndarray, np.ndarray]:
        """Joint positions and velocities (12,) that are aimed at."""
        period = self._which.step[0]
        since = max(t - self._start, 0.0) / period
        grown = min(since, 1.0)
        place = since * SAMPLES
        k, part = int(place), place - int(place)
        here, there = (self._steps[(k + ahead) % SAMPLES] - self.stance for ahead in (0, 1))
        slope = (there - here) * (SAMPLES / period) * (since > 0.0)
        return self.stance + grown * (here + part * (there - here)), grown * slope

    def swinging(self, t: float) -> np.ndarray:
        """Which of the feet are meant to be in the air (4,)."""
        since = (t - self._start) / self._which.step[0]
        return (since > 0.0) & ((since - np.array(DIAGONALS)) % 1.0 < 0.5)

    def __call__(self, t: float, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """Of joints as they are."""
        which, (aim, aim_rate) = self._which, self.reference(t)
        stands = ~self.swinging(t)
        tau = which.stiffness * (aim - q) + which.damping * (aim_rate - qd)
        for foot, joints in zip(np.array(which.feet)[stands], np.array(self._joints)[stands]):
            down = self._robot.jacobian(str(foot), q, base=LEVEL)[2, 6 + joints]
            tau[joints] -= self._weight / stands.sum() * down
        return tau


def _curves(which: Quadruped) -> np.ndarray:
    """Where the feet are in the base (4, SAMPLES, 3), less where they stand: through the air forwards for half of the period,
    back on the ground for the other half."""
    _period, length, lift = which.step
    curves = np.zeros((len(DIAGONALS), SAMPLES, 3))
    for curve, begins in zip(curves, DIAGONALS):
        s = 2.0 * ((np.arange(SAMPLES) / SAMPLES - begins) % 1.0)
        swing = s < 1.0
        blend = np.clip(s, 0.0, 1.0)
        forward = blend**3 * (10.0 - 15.0 * blend + 6.0 * blend**2)
        curve[:, 0] = length * np.where(swing, forward - 0.5, 1.5 - s)
        curve[:, 2] = lift * np.where(swing, 64.0 * (blend * (1.0 - blend)) ** 3, 0.0)
    return curves
