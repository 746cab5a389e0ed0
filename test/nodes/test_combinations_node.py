"""Combinations in dynamics_node, in a process of its own over DDS: torques and rates by Pinocchio with multipliers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from support.moving_bench import MovingBench
from support.moving_combinations import COMBINATIONS, combination
from support.ros_helpers import world

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 4


@pytest.mark.parametrize("name", COMBINATIONS)
def test_torques_and_rates_agree_with_pinocchio(tmp_path, name):
    moving = combination(name)
    with world(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=3.0 / SAMPLES).met()
        for _ in range(SAMPLES):
            t, found = bench.next()
            tau, rate = moving.torque(t), moving.rate(t)
            assert np.abs(found.effort - tau).max() < 1e-10 * np.abs(tau).max()
            assert np.abs(found.effort_rate - rate).max() < 1e-8 * np.abs(rate).max()
        assert bench.info[-1].kind == "GeneralRobot"
