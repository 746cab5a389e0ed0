"""Cost of a torque rate limit: the fastest motion of the two-link arm under tighter and tighter limits.

    python examples/torque_rate_price.py [OUT_DIR]

The same motion as in minimum_time_rr.py. Without a limit of the rate, torques jump; no actuator can do that. With one they
start and end at the torque of rest, and change at no more than the limit at any time, between the planner's nodes as well.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from rnea_ros import STYLE, PlannedMotion, Robot, picture, plan_motion

URDF = Path(__file__).parents[1] / "urdf" / "rr.urdf"
START, GOAL = (0.0, -2.0), (1.0, -1.0)
OPTIMUM = 0.391854539516  # s, without a limit of the rate
LIMITS = (100.0, 200.0, 500.0, 1000.0, 2500.0, 10000.0)  # N m/s
SHOWN = (200.0, 500.0, 2500.0)


def planned(robot: Robot, limit: float) -> PlannedMotion:
    limits = replace(robot.limits, effort_rate=np.full(robot.n, limit))
    return plan_motion(robot, START, GOAL, limits=limits, time_tolerance=0.0)


def largest_rate(robot: Robot, plan: PlannedMotion) -> float:
    """Return the peaks from 20 000 samples and both sides of every break, where the rate may jump."""
    breaks = plan.curve.breaks * plan.duration
    t = np.unique(np.concatenate((np.linspace(0.0, plan.duration, 20001), breaks, np.maximum(breaks - 1e-9, 0.0))))
    return float(np.abs(robot.torque_and_rate(*plan(np.minimum(t, plan.duration)))[1]).max())


def draw(path: Path, robot: Robot, plans: dict[float, PlannedMotion]) -> None:
    with picture(path, (11, 4.6), settings=STYLE) as figure:
        price, torque = figure.subplots(1, 2, width_ratios=(1.0, 1.4))
        percent = {limit: 100.0 * (plan.duration / OPTIMUM - 1.0) for limit, plan in plans.items()}
        price.loglog(list(percent), list(percent.values()), "o-", color="0.4")
        price.set(xlabel="limit of the torque rate [N m/s]", title="longer than with jumps [%]", xticks=(1e2, 1e3, 1e4),
                  xticklabels=("100", "1000", "10000"), yticks=(1.0, 3.0, 10.0, 30.0), yticklabels=("1", "3", "10", "30"))
        price.minorticks_off()
        for limit in (limit for limit in SHOWN if limit in plans):
            t = np.linspace(0.0, plans[limit].duration, 2001)
            (line,) = torque.plot(1e3 * t, robot.inverse_dynamics(*plans[limit](t)[:3])[:, 1], label=f"{limit:g} N m/s")
            price.plot([limit], [percent[limit]], "o", color=line.get_color(), markersize=11)
        torque.set(xlabel="time [ms]", title="torque of joint 2 [N m]")
        torque.legend(loc="upper right")


def main(out_dir: str | Path = ".", small: bool = False) -> dict[str, float]:
    robot = Robot.from_urdf(URDF)
    plans = {limit: planned(robot, limit) for limit in ((200.0, 500.0) if small else LIMITS)}
    draw(Path(out_dir) / "torque_rate_price.png", robot, plans)
    found = {f"T at {limit:g} N m/s": plan.duration for limit, plan in plans.items()}
    used = [largest_rate(robot, plan) / limit for limit, plan in plans.items()]
    return {**found, "largest rate / limit": max(used), "largest torque / limit": 1.0 + max(
        plan.excess["torque"] for plan in plans.values())}


if __name__ == "__main__":
    for name, value in main(*sys.argv[1:2]).items():
        print(f"{name:28} {value:.8g}")
