"""Policy demo: the same chunks executed in three ways, and its table of results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("mujoco")

from rnea_ros.demo import policies
from rnea_ros.demo.arms import ARM_SOURCES, Arm
from rnea_ros.sim.plant import CONTROL_PERIOD_S


def test_policy_demo_compares_three_executions_by_torque_rate(monkeypatch):
    monkeypatch.setattr(policies, "STREAM", replace(policies.STREAM, duration_s=1.0))
    rng = np.random.default_rng(1)
    arm = Arm(ARM_SOURCES["seven_r"])
    policy = policies.Policy(arm, rng)
    chunks = policy.chunks(1.0)
    assert all(chunk.arrival == pytest.approx(chunk.stamp + 0.2) for chunk in chunks)
    off = np.abs(chunks[0].positions - policy(chunks[0].stamp + np.arange(policies.STREAM.points) / policies.STREAM.rate_hz))
    assert 1e-3 < off.max() < policies.STREAM.offset + 6.0 * policies.STREAM.noise
    found = list(policies.run(arm, policy, chunks, arm.masses(rng)))
    assert [result.way for result, _ in found] == [policies.RAW, policies.CLAMPED, policies.EXECUTED]
    result, executed = found[-1]
    assert isinstance(executed, policies.Executed)
    checks = policies.check_results(arm.robot, result, executed)
    assert all(check.passed for check in checks)
    rate = np.abs(np.diff(result.tracked.commanded, axis=0)).max(axis=0) / CONTROL_PERIOD_S / arm.robot.limits.effort_rate
    assert result.rate == pytest.approx(rate.max()) and result.rate < min(one.rate for one, _ in found[:2])
    assert policies.RAW in policies.result_table([one for one, _ in found])


def test_smooth_steps_start_and_end_at_rest():
    poses = np.array([[0.0], [1.0], [-1.0]])
    q = policies.smooth_steps(poses, np.array([-1.0, 0.0, 0.5, 1.0, 1.2, 2.2, 9.0]), 1.0, 0.2)[:, 0]
    assert np.allclose(q, [0.0, 0.0, 0.5, 1.0, 1.0, -1.0, -1.0])
