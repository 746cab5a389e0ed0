"""dynamics_node with a moving base measured by an IMU, as a separate process over DDS."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from sensor_msgs.msg import Imu, JointState

from rnea_msgs.msg import BaseDynamics
from support.node_bench import seconds
from support.oracles import worst
from support.ros_helpers import ros_domain, stamp
from support.ship_bench import Ship, ShipBench, base_at, numbers, same

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 40
STEP, LENGTH = 0.004, 600  # s, samples of a stream
GYRO, ACCELEROMETER, ENCODER = 0.002, 0.02, 2.0 * np.pi / 2**17  # noise of a good MEMS unit [rad/s, m/s^2], resolution


class ImuBench(ShipBench):
    def __init__(self, ros, ship, folder, **parameters):
        super().__init__(ros, ship, folder, **{"base.source": "imu", "base.motion_source": "desired"} | parameters)
        self.imu = ros.node.create_publisher(Imu, f"{self.node}/base_imu", 10)

    def found(self):
        """Wait for the model, and until the publishers are matched."""
        self.prepared()
        self.ros.until(self.imu.get_subscription_count)
        self.ros.matched(self.node)
        return self

    def at_imu(self, t, **given):
        message = self.ship.imu(t, **given)
        w = base_at(t)[0].velocity[3:]
        return self.reported_at(t, lambda reported, sent: reported.jerk == sent.jerk and near(reported.twist.angular, w),
                            (self.imu, message))


def paced(bench, now, samples=40):
    """Wait until results have come for all but the newest samples: none is lost in a queue."""
    bench.ros.until(lambda: bench.results and seconds(bench.results[-1]) > now - samples * STEP, what="no results",
                    of=bench.process)


def near(message, vector):
    return same(message, type(message)(**dict(zip("xyz", map(float, vector)))))


@pytest.fixture(scope="module")
def ship():
    return Ship()


def test_torque_and_base_wrench_from_an_imu_on_a_mast_match_the_simulated_ship(ship, tmp_path):
    """The derivatives of the measurements are given: results are exact. Every second message contains the orientation."""
    with ros_domain(tmp_path) as ros:
        bench = ImuBench(ros, ship, tmp_path).found()
        bench.refused("base_imu_missing")
        ros.until(lambda: bench.met((bench.imu, ship.imu(0.0))), of=bench.process)
        errors = []
        for number, t in enumerate(np.linspace(0.0, 3.0, SAMPLES)):
            oriented = bool(number % 2)
            (found, whole), forces, rates = bench.at_imu(t, orientation=oriented), ship.forces(t), ship.rates(t)
            errors.append([worst(found.effort, forces[6:]), worst(found.effort_rate, rates[6:]),
                           worst(numbers(whole.wrench), forces[:6]), worst(numbers(whole.wrench_rate), rates[:6])])
            base, acceleration, _jerk = base_at(t)
            orientation, linear = whole.state.pose.orientation, whole.state.acceleration.linear
            if oriented:  # for any position and axes of the unit
                held = ship.robot.gravity(ship.joints(t)[0], base=base)[6:]
                assert worst(found.gravity_effort, held) < 1e-10  # which follows the tilt
                assert near(linear, acceleration[:3])
                turn = np.array([orientation.x, orientation.y, orientation.z, orientation.w])
                assert abs(abs(turn @ base.quaternion) - 1.0) < 1e-12
            else:
                assert np.isnan(found.gravity_effort).all() and np.isnan(found.gravity_effort_rate).all()
                assert math.isnan(orientation.w) and math.isnan(linear.x)
            assert math.isnan(whole.state.pose.position.z) and math.isnan(whole.zero_moment_point.x)
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8


def test_joint_and_base_motion_are_estimated_at_the_same_instant_from_noisy_streams(tmp_path):
    """The streams are noisy; neither the encoders nor the IMU measure a derivative."""
    rng, ship = np.random.default_rng(4), Ship(pace=3.0)
    with ros_domain(tmp_path) as ros:
        bench = ImuBench(ros, ship, tmp_path, motion_source="estimated", **{"base.motion_source": "estimated"}).found()
        ros.until(bench.states.get_subscription_count)
        reported: list[BaseDynamics] = bench.reported
        for k in range(LENGTH):
            t = k * STEP
            message, when = ship.imu(t, orientation=False), stamp(bench.clock + t)
            for part, noise in ((message.linear_acceleration, ACCELEROMETER), (message.angular_velocity, GYRO)):
                for axis in "xyz":
                    setattr(part, axis, getattr(part, axis) + noise * rng.normal())
            message.header.stamp = when
            bench.imu.publish(message)
            q = ENCODER * np.round(ship.joints(t)[0] / ENCODER)
            state = JointState(name=list(ship.names), position=q.tolist())
            state.header.stamp = when
            bench.states.publish(state)
            ros.spin(0.001)
            if k > LENGTH // 8:
                paced(bench, bench.clock + t)
        paced(bench, bench.clock + t, samples=LENGTH // 8)
        errors, sizes = [], []
        assert len(bench.results) > LENGTH // 2
        for found in bench.results[LENGTH // 8:]:
            t = seconds(found) - bench.clock
            forces, rates = ship.forces(t), ship.rates(t)
            errors.append(np.stack((np.array(found.effort) - forces[6:], np.array(found.effort_rate) - rates[6:])))
            sizes.append(np.stack((forces[6:], rates[6:])))
        shares = np.linalg.norm(errors, axis=(0, 2)) / np.linalg.norm(sizes, axis=(0, 2))
        print(f"RMS errors of torque and rate as shares of their RMS {shares}")
        assert shares[0] < 0.01 and shares[1] < 0.2
        assert bench.clock + (LENGTH - 1) * STEP - seconds(bench.results[-1]) > 0.03 - 1e-6 and reported


def test_unusable_imu_messages_are_counted_and_late_ones_rejected(ship, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = ImuBench(ros, ship, tmp_path, **{"base.timeout": 0.5}).found()
        ros.until(lambda: bench.met((bench.imu, ship.imu(0.0))), of=bench.process)
        for reason, spoil in (("unknown_frame", lambda m: setattr(m.header, "frame_id", "imu_link")),
                              ("unknown_frame", lambda m: setattr(m.header, "frame_id", "left_hand")),  # which moves
                              ("base_imu_unusable", lambda m: setattr(m.linear_acceleration, "y", math.nan)),
                              ("base_imu_unusable", lambda m: setattr(m.orientation, "w", 7.0)),
                              ("base_imu_incomplete", lambda m: m.angular_velocity_covariance.__setitem__(0, -1.0)),
                              ("stamp_went_back", lambda m: setattr(m.header, "stamp", stamp(3.0)))):
            before = int(bench.diagnostics.values.get(f"dropped.base_imu.{reason}", 0))
            bad = ship.imu(0.1)
            bad.header.stamp = stamp(bench.clock)
            spoil(bad)

            def dropped(reason=reason, before=before, bad=bad):
                bench.imu.publish(bad)
                return bench.diagnostics.dropped("base_imu", reason) > before

            ros.until(dropped, of=bench.process)
            assert bench.process.alive
        assert bench.at_imu(0.15)
        bench.refused("base_imu_timeout")
        assert bench.at_imu(0.2)
