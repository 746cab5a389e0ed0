"""Simulated robot under computed-torque control whose motors are weaker than the effort limits."""

from __future__ import annotations

import numpy as np

from rnea_ros.execution.joint_states import Measurement
from support.overspeed_motion import LIMITS, ROBOT

BANDWIDTH = 40.0  # rad/s
FASTEST = 10.0  # [rad/s], clip of the velocity


class WeakRobot:
    """Simulated robot. strength: torque limit as a fraction of the effort limits; delay: of references [ticks].

    age     : of joint states [ticks]; their stamps are correct
    positions : of all ticks
    blocked : joints that cannot move
    """

    def __init__(self, q, strength=1.0, delay=0, age=5, effort=LIMITS.effort, dt=1e-3):
        self.q, self.qd, self.tau = np.array(q, dtype=float), np.zeros(len(q)), np.zeros(len(q))
        self.blocked, self.positions, self.now = np.zeros(len(q), dtype=bool), [], 0
        self._most, self._dt, self._references, self._delay = strength * effort, dt, [], delay
        self.reported, self._age = [], age

    def stand(self):
        """Report the current state."""
        self.reported.append(Measurement(np.full(len(self.q), self.now), self.q.copy(), self.qd.copy(), self.tau.copy()))

    def tick(self, reference, now):
        """Receive a reference at time now [ns] and simulate one tick."""
        self.now = now
        self._references.append(reference)
        wanted = self._references[max(len(self._references) - 1 - self._delay, 0)]
        pull = wanted.qdd + BANDWIDTH**2 * (wanted.q - self.q) + 2.0 * BANDWIDTH * (wanted.qd - self.qd)
        self.tau = np.clip(ROBOT.inverse_dynamics(wanted.q, wanted.qd, pull), -self._most, self._most)
        self.stand()
        free, accelerations = ~self.blocked, np.zeros(len(self.q))
        M, pull = ROBOT.mass_matrix(self.q), self.tau - ROBOT.bias(self.q, self.qd)
        accelerations[free] = np.linalg.solve(M[np.ix_(free, free)], pull[free])
        self.qd = np.where(free, np.clip(self.qd + self._dt * accelerations, -FASTEST, FASTEST), 0.0)
        self.q = self.q + self._dt * self.qd
        self.positions.append(self.q)

    def seen(self, names):
        return self.reported[max(len(self.reported) - 1 - self._age, 0)]
