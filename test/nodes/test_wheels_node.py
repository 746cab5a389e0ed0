"""Wheeled vehicle in dynamics_node, as a separate process over DDS: base motion from the wheels, torques against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from rnea_msgs.msg import BaseDynamics
from rnea_ros import InputError, load
from rnea_ros.nodes.dynamics.base_sources import WheelSource
from support.moving_bench import MovingBench
from support.moving_robots import MovingRobot
from support.rolling_machines import BICYCLE_FILE, BICYCLE_URDF, VEHICLES, VehicleOracle
from support.ros_helpers import ros_domain

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

STEP, SAMPLES = 0.01, 20


class MovingVehicle(MovingRobot):
    """Vehicle on four steered wheels with a prescribed base twist."""

    def __init__(self):
        self.urdf, self.content = VEHICLES["four steered wheels"]
        self.truth = VehicleOracle(self.urdf, self.content)
        self.joints, self.parameters = tuple(self.truth.names), {"base.source": "wheels"}

    def motion(self, t):
        return list(self.truth.motion(t))


def test_base_pose_follows_dead_reckoning_and_torques_match_pinocchio(tmp_path):
    moving = MovingVehicle()
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=STEP)
        reported = ros.listen(BaseDynamics, f"{bench.node}/base_dynamics")
        bench.met()
        for _ in range(SAMPLES):
            t, found = bench.next()
            order = [moving.truth.names.index(name) for name in found.joint_names]
            tau, rate = moving.truth.sample(t)
            assert np.abs(np.array(found.effort) - tau[order]).max() < 1e-9 * np.abs(tau).max()
            assert np.abs(np.array(found.effort_rate) - rate[order]).max() < 1e-6 * np.abs(rate).max()
        ros.until(lambda: reported and reported[-1].header.stamp == found.header.stamp, of=bench.process)
    first, last = reported[0], reported[-1]
    span = (last.header.stamp.sec - first.header.stamp.sec) + 1e-9 * (last.header.stamp.nanosec - first.header.stamp.nanosec)
    assert span > 0.5 * SAMPLES * STEP
    twist, truth = last.state.twist, moving.truth
    np.testing.assert_allclose([twist.linear.x, twist.linear.y, twist.angular.z], truth.base(t, 0)[[0, 1, 5]], atol=1e-9)
    times = np.linspace(t - span, t, 401)
    twists = np.array([truth.base(one, 0)[[0, 1, 5]] for one in times])

    def heading(state):
        return 2.0 * np.arctan2(state.pose.orientation.z, state.pose.orientation.w)

    def integral(values):
        return np.concatenate(([0.0], np.cumsum(0.5 * (values[1:] + values[:-1]) * np.diff(times))))

    yaw = heading(first.state) + integral(twists[:, 2])
    c, s = np.cos(yaw), np.sin(yaw)
    moved = [integral(c * twists[:, 0] - s * twists[:, 1])[-1], integral(s * twists[:, 0] + c * twists[:, 1])[-1]]
    assert abs(heading(last.state) - yaw[-1]) < 1e-5
    found = np.array([getattr(last.state.pose.position, axis) - getattr(first.state.pose.position, axis) for axis in "xy"])
    np.testing.assert_allclose(found, moved, atol=1e-5)


def test_wheel_odometry_is_rejected_for_a_bicycle():
    with pytest.raises(InputError, match="do not determine base rx"):
        WheelSource(load(BICYCLE_URDF, BICYCLE_FILE))
