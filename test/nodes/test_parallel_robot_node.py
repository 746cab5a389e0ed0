"""Parallel robots in dynamics_node, as a separate process over DDS, against Pinocchio with multipliers."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from geometry_msgs.msg import PoseStamped, TwistStamped

from support.moving_bench import MovingBench
from support.moving_robots import MovingPlatform
from support.oracles import worst
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros

SAMPLES = 40
TOO_FAR = {"gough_stewart": [3.0, 0.0, 0.0, 0.0, 0.0, 0.0], "delta": [10.0] * 3}  # no pose allows these


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", TOO_FAR)
def test_leg_forces_rates_and_platform_motion_match_pinocchio(tmp_path, name):
    moving = MovingPlatform(name)
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=3.0 / SAMPLES)
        poses = ros.listen(PoseStamped, f"{bench.node}/platform_pose")
        twists = ros.listen(TwistStamped, f"{bench.node}/platform_twist")
        bench.met()
        ros.until(lambda: bench.next() and poses and twists, of=bench.process)
        errors = []
        for _ in range(SAMPLES):
            t, found = bench.next()
            errors.append((worst(found.effort, moving.torque(t)), worst(found.effort_rate, moving.rate(t))))
            check_platform(moving.platform(t), ros, poses, twists, found.header.stamp)
        print(f"{name}: largest errors of force and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, values = bench.info[-1], bench.diagnostics.next()
        assert info.kind == values["kind"] and "platform" in info.kind and list(info.joint_names) == list(moving.joints)
        assert set(info.measured_joints) == {*info.joint_names, *info.solved_joints}
        assert set(info.solved_joints) == set(moving.robot.passive_joints)
        far = [moving.motion(0.0)[0] + TOO_FAR[name], *np.zeros((3, moving.robot.n))]

        def refused():
            bench.publish(far)
            return bench.diagnostics.dropped("joint_states", "out_of_reach")

        ros.until(refused, of=bench.process)
        assert bench.next() and bench.process.alive


def check_platform(platform, ros, poses, twists, stamp):
    """Check that pose and twist with this stamp are those of the platform."""
    pose, twist = (ros.until(lambda said=said: next((m for m in said if m.header.stamp == stamp), None))
                   for said in (poses, twists))
    assert pose.header.frame_id == twist.header.frame_id == "base"
    p, o, v, w = pose.pose.position, pose.pose.orientation, twist.twist.linear, twist.twist.angular
    x, y, z, s = o.x, o.y, o.z, o.w
    R = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - z * s), 2 * (x * z + y * s)],
                  [2 * (x * y + z * s), 1 - 2 * (x * x + z * z), 2 * (y * z - x * s)],
                  [2 * (x * z - y * s), 2 * (y * z + x * s), 1 - 2 * (x * x + y * y)]])
    np.testing.assert_allclose([p.x, p.y, p.z], platform.position, atol=1e-10)
    np.testing.assert_allclose(R, platform.rotation, atol=1e-10)
    np.testing.assert_allclose([v.x, v.y, v.z, w.x, w.y, w.z], platform.velocity, atol=1e-9)
