"""What a limit of the torque rate costs: the fastest motion of the two-link arm under tighter and tighter limits.

    python examples/torque_rate_price.py [OUT_DIR]

The same motion as in minimum_time_rr.py. Without a limit of the rate, torques jump; no actuator can do that. With one they
start and end at the torque of rest, and change at no more than the limit at any time, between the planner's nodes as well.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from rnea_ros import Robot, plan_motion
from rnea_ros.output.figures import new_figure
from rnea_ros.planning import PlannedMotion

URDF = Path(__file__).parents[1] / "urdf" / "rr.urdf"
START, GOAL = (0.0, -2.0), (1.0, -1.0)
OPTIMUM = 0.391854539516  # s, without a limit of the rate
LIMITS = (100.0, 150.0, 200.0, 300.0, 500.0, 800.0, 1300.0, 2500.0, 5000.0, 10000.0)  # N m/s
SHOWN = (200.0, 500.0, 2500.0)


def planned(robot: Robot, limit: float) -> PlannedMotion:
    return plan_motion(robot, START, GOAL, limits=replace(robot.limits, effort_rate=np.full(robot.n, limit)))


def largest_rate(robot: Robot, plan: PlannedMotion) -> float:
    """Looked at 20 000 times and at both sides of every break, where the rate may jump."""
    breaks = plan.curve.breaks * plan.duration
    t = np.unique(np.concatenate((np.linspace(0.0, plan.duration, 20001), breaks, np.maximum(breaks - 1e-9, 0.0))))
    return float(np.abs(robot.torque_and_rate(*plan(np.minimum(t, plan.duration)))[1]).max())


def picture(path: Path, robot: Robot, plans: dict[float, PlannedMotion]) -> None:
    figure = new_figure(15, 6.5)
    axes = figure.subplot_mosaic([["price", "tau 0", "rate 0"], ["price", "tau 1", "rate 1"]])
    price = {limit: 100.0 * (plan.duration / OPTIMUM - 1.0) for limit, plan in plans.items()}
    axes["price"].loglog(list(price), list(price.values()), "o-")
    shown = [limit for limit in SHOWN if limit in plans]
    for limit, colour in zip(shown, ("tab:green", "tab:red", "tab:purple")):
        plan = plans[limit]
        t = np.linspace(0.0, plan.duration, 4001)
        tau, rate = robot.torque_and_rate(*plan(t))
        axes["price"].plot([limit], [price[limit]], "o", color=colour, markersize=9)
        axes["price"].annotate(f"{plan.duration:.4f} s", (limit, price[limit]), xytext=(8, 6), textcoords="offset points",
                               color=colour)
        for k in range(robot.n):
            axes[f"tau {k}"].plot(t, tau[:, k], color=colour, linewidth=1.3, label=f"{limit:g} N m/s")
            axes[f"rate {k}"].plot(t, rate[:, k], color=colour, linewidth=1.0)
    for k in range(robot.n):
        axes[f"tau {k}"].set(title=f"torque {k + 1} [N m]")
        axes[f"rate {k}"].set(title=f"rate of torque {k + 1} [N m/s]")
        axes[f"rate {k}"].set_yscale("symlog", linthresh=100.0)
    for name in ("tau 1", "rate 1"):
        axes[name].set(xlabel="time [s]")
    axes["tau 0"].legend(fontsize=8)
    axes["price"].set(xlabel="limit of the torque rate [N m/s]", ylabel="time above the optimum with jumps [%]",
                      title="the price of a finite torque rate")
    axes["price"].set_xticks((100, 200, 500, 1000, 2500, 10000), labels=("100", "200", "500", "1000", "2500", "10000"))
    axes["price"].set_yticks((0.3, 1.0, 3.0, 10.0, 30.0), labels=("0.3", "1", "3", "10", "30"))
    for axis in axes.values():
        axis.grid(alpha=0.3, which="both" if axis is axes["price"] else "major")
    figure.savefig(path, dpi=120)


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF)
    plans = {limit: planned(robot, limit) for limit in ((200.0, 500.0) if small else LIMITS)}
    picture(Path(out_dir) / "torque_rate_price.png", robot, plans)
    found = {f"T at {limit:g} N m/s": plan.duration for limit, plan in plans.items()}
    used = [largest_rate(robot, plan) / limit for limit, plan in plans.items()]
    return {**found, "largest rate / limit": max(used), "largest torque / limit": 1.0 + max(
        plan.excess["torque"] for plan in plans.values())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:28} {value:.8g}")
