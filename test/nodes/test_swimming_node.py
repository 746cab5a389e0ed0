"""Swimming eel in dynamics_node, as a separate process over DDS, against Pinocchio with Lamb's added-mass terms."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from support.moving_bench import MovingBench
from support.moving_robots import MovingRobot
from support.ros_helpers import ros_domain
from support.swimming import EelOracle, GivenMotion, eel

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES, STEP = 10, 0.05


class MovingEel(MovingRobot):
    """Eel with a prescribed motion of base and joints."""

    def __init__(self):
        self.urdf, self.content = eel("prescribed")
        self.given, self.parameters = GivenMotion(EelOracle(self.urdf, self.content)), {"base.motion_source": "desired"}
        self.joints, self.base = tuple(f"j{k}" for k in range(4)), self._base

    def motion(self, t):
        return [self.given.joints(t, k) for k in range(4)]

    def _base(self, t):
        rates = np.array([self.given.twist(t, k) for k in range(3)])
        return self.given.base(t).moved_by(rates)


def test_torques_and_rates_of_an_eel_match_pinocchio_with_added_mass(tmp_path):
    moving = MovingEel()
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=STEP).met()
        for _ in range(SAMPLES):
            t, found = bench.next()
            tau, rate = moving.given.efforts(t)[6:], moving.given.rates(t)[6:]
            assert np.abs(found.effort - tau).max() < 1e-9 * np.abs(tau).max()
            assert np.abs(found.effort_rate - rate).max() < 1e-6 * np.abs(rate).max()
        assert "fluid" in bench.info[-1].kind
