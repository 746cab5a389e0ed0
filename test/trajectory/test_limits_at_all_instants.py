"""Selected cases of benchmark/instants.py: every motion keeps its limits, also between control cycles."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmark"))

import instants
import numpy as np

from rnea_ros import Robot
from rnea_ros.trajectory.limit_check import steady_rate
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.node_bench import ARM


@pytest.mark.parametrize("seed", [1, 8, 147, 202])
def test_scaled_motions_keep_every_limit_at_every_instant(seed):
    """Regression: utilization 1.0056 when transitions were checked at samples only. Two robots, and joints without a robot."""
    used, _, _ = instants.checked(seed)
    assert 0.5 < used.max() <= 1.0


def test_constant_rate_of_short_motions_keeps_the_velocity_limits():
    """Regression (soak): scaling_node moved at 2.2 times the velocity limit, since a kernel read numbers beside the offsets of
    the limits for motions of few intervals. The peak velocity of a quintic from rest to rest is 1.875 times the mean one.
    """
    robot, rng = Robot.from_urdf(ARM), np.random.default_rng(1)
    limits = replace(robot.limits, velocity=np.ones(3), effort=np.full(3, 400.0))
    dynamics, slowed, kept = PathDynamics(robot), 0, []
    for _ in range(150):
        kept = [np.full(size, 0.9) for size in range(1, 60)]  # the memory beside other arrays is not zero
        points, duration = rng.uniform(-1.0, 1.0, (2, 3)), rng.uniform(0.3, 0.8)
        plan = plan_from_waypoints(points, [0.0, duration])
        rate = steady_rate(dynamics.constraints(plan.path, limits), plan.law, 1.0)
        peak = 1.875 * np.abs(points[1] - points[0]).max() / duration
        assert rate * peak <= 1.0 + 1e-9
        slowed += abs(rate * peak - 1.0) < 1e-6
    assert slowed > 20 and kept  # where velocity binds
