"""Pictures of planned motions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from .model import Limits
from .planning.result import Plan
from .plot import pyplot
from .robot import Robot

SAMPLES = 2001
COLOURS = ("tab:green", "tab:purple", "tab:blue", "tab:red")


def motion(path: str | Path, robot: Robot, plan: Plan, limits: Limits) -> None:
    """Position, velocity, torque and torque rate of every joint over time; dashed lines are limits that come near."""
    plt = pyplot()
    t = np.linspace(0.0, plan.duration, SAMPLES if plan.duration else 1)
    state = plan(t)
    tau, tau_rate = robot.torque_and_rate(*state)
    symmetric = (limits.velocity, limits.effort, limits.effort_rate)
    bounds = ((limits.lower, limits.upper), *((-limit, limit) for limit in symmetric))
    figure, axes = plt.subplots(robot.n, 4, figsize=(15, 1.2 + 1.8 * robot.n), sharex=True, squeeze=False,
                                layout="constrained")
    for k, (name, kind) in enumerate(zip(robot.joint_names, robot.joint_types)):
        length, force = ("m", "N") if kind == "prismatic" else ("rad", "N m")
        titles = (f"{name}: position [{length}]", f"velocity [{length}/s]", f"torque [{force}]", f"torque rate [{force}/s]")
        for axis, values, (lower, upper), title, colour in zip(axes[k], (state[0], state[1], tau, tau_rate), bounds, titles,
                                                               COLOURS):
            axis.plot(t, values[:, k], color=colour, linewidth=1.3)
            axis.set_title(title, loc="left", fontsize=9)
            axis.grid(alpha=0.3)
            for limit in (lower[k], upper[k]):
                if abs(limit) < 1.6 * np.abs(values[:, k]).max():
                    axis.axhline(limit, color="gray", linestyle="--", linewidth=1.0)
    for axis in axes[-1]:
        axis.set_xlabel("time [s]")
    figure.suptitle(f"{robot.name}: planned motion of {plan.duration:.5g} s")
    figure.savefig(path, dpi=110)
    plt.close(figure)
