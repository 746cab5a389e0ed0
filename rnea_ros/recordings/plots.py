"""Pictures of motions that were planned or retimed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..model.drive_limits import uses_by_owner
from ..model.tree import Limits
from ..output.figures import limit_legend, picture, used
from ..robots.link_side import LinkSideRobot

SAMPLES = 2001
NEAR = 0.6  # of the range of a curve: how far off a limit may be to be shown
COLOURS = ("tab:green", "tab:purple", "tab:blue", "tab:red", "tab:brown")
AddedRate = Callable[[Any, Any, Any], Any]  # q, qd, qdd -> rates (..., n)


class TimedMotion(Protocol):
    """q, qd, qdd, qddd (samples, n) at times t (samples,) from 0 to duration [s]."""

    @property
    def duration(self) -> float: ...

    def __call__(self, t: np.ndarray, /) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]: ...


def draw(path: str | Path, robot: LinkSideRobot, motion: TimedMotion, limits: Limits, added: AddedRate | None = None) -> None:
    """Draw position, velocity, torque and torque rate of every joint over time; also commanded torque rates where these are
    limited, and the used share of limits of drives. Dashed lines are limits that come near.

    added : rates of the torques that commanded efforts do not contain, from q, qd, qdd
    """
    t = np.linspace(0.0, motion.duration, SAMPLES if motion.duration else 1)
    state = motion(t)
    curves = [state[0], state[1], *robot.torque_and_rate(*state)]
    shares = uses_by_owner(robot.drive_limits, curves[2], curves[3], state[1])
    symmetric = [limits.velocity, limits.effort, limits.effort_rate]
    if np.isfinite(limits.commanded_effort_rate).any():
        curves.append(curves[3] if added is None else curves[3] - added(*state[:3]))
        symmetric.append(limits.commanded_effort_rate)
    bounds = ((limits.lower, limits.upper), *((-limit, limit) for limit in symmetric))
    with picture(path, (15, 1.2 + 1.8 * robot.n), dpi=110) as figure:
        axes = figure.subplots(robot.n, len(curves) + bool(shares), sharex=True, squeeze=False)
        for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types)):
            length, force = ("m", "N") if kind == "prismatic" else ("rad", "N m")
            titles = (f"{name}: position [{length}]", f"velocity [{length}/s]", f"torque [{force}]",
                      f"torque rate [{force}/s]", f"commanded torque rate [{force}/s]")
            for axis, values, (lower, upper), title, colour in zip(axes[k], curves, bounds, titles, COLOURS):
                axis.set_title(title, loc="left", fontsize=9)
                _curve(axis, t, values[:, k], (lower[k], upper[k]), colour)
            if shares:
                used(axes[k, -1], t, shares.get(name, {}))
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.suptitle(f"{robot.name}: motion of {motion.duration:.5g} s")
        limit_legend(figure)


def _curve(axis: Any, t: np.ndarray, values: np.ndarray, limits: tuple[float, float], colour: str) -> None:
    axis.plot(t, values, color=colour, linewidth=1.3)
    axis.grid(alpha=0.3)
    least, most = values.min(), values.max()
    for limit in limits:
        if least - NEAR * (most - least) <= limit <= most + NEAR * (most - least):
            axis.axhline(limit, color="gray", linestyle="--", linewidth=1.0, label="limit")
