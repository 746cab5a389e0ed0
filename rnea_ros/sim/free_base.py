"""Simulation of a free base whose joints follow a given motion: swimming, falling, jumping, turning in space.

The base's acceleration is that of `Robot.solve` (khalil-rne 7.2); the classical Runge-Kutta rule integrates it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from ..robots.base_state import BaseState
from ..robots.conditions import Loads
from ..robots.robot import Robot

JointMotion = Callable[[float], Sequence[Array]]  # t -> q, qd, qdd, (n,) each
LoadsOf = Callable[[BaseState, Array, Array], Loads]  # base, q, qd -> what acts on links


class Drift(NamedTuple):
    """Motion at the times t (samples,): base (samples, 13), see BaseState.from_vector; q, qd and torques (samples, n)."""

    t: Array
    base: Array
    q: Array
    qd: Array
    tau: Array


def simulate_free_base(robot: Robot, joints: JointMotion, times: ArrayLike, start: BaseState | None = None,
                       loads: LoadsOf | None = None) -> Drift:
    """Return the motion of a free base from `start` (default: at rest at the origin), a step for each of the times [s].

    The error of a step is of its fifth power; halve the steps to see it.
    """
    t, x, rows = np.asarray(times, dtype=float), (start or BaseState()).vector(), []

    def rate(x: Array, motion: Sequence[Array]) -> tuple[Array, Array]:
        base, (q, qd, qdd) = BaseState.from_vector(x), motion[:3]
        found = robot.solve(q, qd, qdd, stages=1, base=base, loads=loads(base, q, qd) if loads else None)
        return base.vector_rate(found.base_acceleration), found.torques[0]

    now = joints(t[0])
    for k, h in enumerate(np.append(np.diff(t), 0.0)):
        a, tau = rate(x, now)
        rows.append((x, now[0], now[1], tau))
        if h == 0.0:
            break
        middle, now = joints(t[k] + h / 2), joints(t[k + 1])
        b, _ = rate(x + a * (h / 2), middle)
        c, _ = rate(x + b * (h / 2), middle)
        d, _ = rate(x + c * h, now)
        x = x + (a + 2 * b + 2 * c + d) * (h / 6)
        x[3:7] /= np.linalg.norm(x[3:7])
    return Drift(t, *map(np.array, zip(*rows, strict=True)))
