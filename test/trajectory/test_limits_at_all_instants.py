"""Selected cases of benchmark/instants.py: every motion keeps its limits, also between control cycles."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("pinocchio")
sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmark"))

from itertools import pairwise

import instants
import limit_changes
import numpy as np
import pinocchio

from rnea_ros import Robot
from rnea_ros.trajectory.limit_check import steady_rate
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.node_bench import ARM
from support.scaling_cases import urdf


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


@pytest.mark.parametrize("seed", [1, 5, 8])
def test_new_limits_are_exceeded_hardly_more_than_by_the_best_possible_motion(seed):
    """Payloads and limits that come at a random instant (benchmark/limit_changes.py), also while the rate changes.

    Torques and their rates are Pinocchio's; IPOPT computes the bound. A torque counts from its value at the change, or from 1.
    """
    pytest.importorskip("casadi")
    case = limit_changes.Case(seed)
    model = pinocchio.buildModelFromUrdf(str(urdf(case.arm)))
    if case.mass:
        joint = next(frame.parentJoint for frame in model.frames if frame.name == limit_changes.ARMS[case.arm])
        model.appendBodyToJoint(joint, pinocchio.Inertia(case.mass, np.array(limit_changes.PAYLOAD_CENTER), np.zeros((3, 3))),
                                pinocchio.SE3.Identity())
    references, _ = case.play(1.0)
    judge = model, model.createData()
    torques = np.array([instants.torque_and_rates(judge, r.q, r.qd, r.qdd, r.qddd)[:2] for r in references])
    used = np.abs(torques / np.array(case.constraints.limits)[:2]).swapaxes(0, 1)
    tau, tau_rate = used[:, 1:]
    excess = max(float((tau - np.maximum(used[0, 0], 1.0)).max()), float(tau_rate.max()) - 1.0, 0.0)
    least = case.least(references[0], 50)
    print(f"excess {excess:.4f}, least possible {least:.4f}")
    assert excess < least + 0.03
    dt = np.diff([r.t for r in references])[:, None]
    gained = np.diff([r.qd for r in references], axis=0) - 0.5 * dt * np.array(
        [a.qdd + b.qdd for a, b in pairwise(references)])
    assert np.abs(gained).max() < 5e-3  # no jump of the speed
