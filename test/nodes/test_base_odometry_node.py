"""dynamics_node with a moving base measured by odometry, with or without an IMU, and with a base that changes from fixed to
moving at run time, as a separate process over DDS.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("nav_msgs")
pytest.importorskip("pinocchio")

from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from rnea_ros import Robot
from support.oracles import worst
from support.ros_helpers import ros_domain, stamp
from support.ship_bench import BRANCHED, GRAVITY, Ship, ShipBench, base_at, numbers, same

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 30
FAR = 50.0  # m; stamps of the base messages are independent of its speed


class OdometryBench(ShipBench):
    def __init__(self, ros, ship, folder, **parameters):
        given = {"base.motion_source": "desired", "base.odometry_tolerance": FAR}
        super().__init__(ros, ship, folder, **given | parameters)
        self.odometry = ros.node.create_publisher(Odometry, f"{self.node}/base_odometry", 10)
        self.imu = ros.node.create_publisher(Imu, f"{self.node}/base_imu", 10)

    def at_pose(self, t, *beside):
        message, base = self.ship.odometry(t), base_at(t)[0]

        def agrees(reported, sent):
            there = reported.pose.position
            return reported.jerk == sent.jerk and worst([there.x, there.y, there.z], base.position) < 1e-9

        return self.reported_at(t, agrees, (self.odometry, message), *beside)


def zero_moment_point(base, wrench):
    """Return the zero-moment point on the plane z = 0."""
    f, n = base.rotation @ wrench[:3], base.rotation @ wrench[3:]
    n = n + np.cross(base.position, f)
    return [-n[1] / f[2], n[0] / f[2], 0.0]


def check(ship, t, found, whole):
    """Errors of torque, rate, base wrench and rate; pose and what follows from it are right."""
    forces, rates, (base, *_) = ship.forces(t), ship.rates(t), base_at(t)
    point = whole.zero_moment_point
    assert worst([point.x, point.y, point.z], zero_moment_point(base, forces[:6])) < 1e-9
    assert worst(found.gravity_effort, ship.robot.gravity(ship.joints(t)[0], base=base)[6:]) < 1e-10
    return [worst(found.effort, forces[6:]), worst(found.effort_rate, rates[6:]), worst(numbers(whole.wrench), forces[:6]),
            worst(numbers(whole.wrench_rate), rates[:6])]


@pytest.fixture(scope="module")
def ship():
    return Ship()


def test_torques_from_odometry_are_exact_and_jumps_and_unusable_messages_are_counted(ship, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = OdometryBench(ros, ship, tmp_path, **{"base.source": "odometry", "base.timeout": 1.0})
        bench.prepared()
        ros.until(bench.odometry.get_subscription_count)
        bench.refused("base_odometry_missing")
        ros.until(lambda: bench.met((bench.odometry, ship.odometry(0.0))), of=bench.process)
        errors = [check(ship, t, *bench.at_pose(t)) for t in np.linspace(0.0, 3.0, SAMPLES)]
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8

        for reason, spoil in (("unknown_frame", lambda m, k: setattr(m, "child_frame_id", "base_footprint")),
                              ("base_odometry_unusable", lambda m, k: setattr(m.twist.twist.linear, "y", math.nan)),
                              ("base_odometry_unusable", lambda m, k: setattr(m.pose.pose.orientation, "w", 7.0)),
                              ("base_odometry_jumped", lambda m, k: setattr(m.pose.pose.position, "x", 9.0 * FAR * (k % 2))),
                              ("stamp_went_back", lambda m, k: setattr(m.header, "stamp", stamp(3.0)))):
            before = int(bench.diagnostics.values.get(f"dropped.base_odometry.{reason}", 0))
            sent: list[Odometry] = []

            def dropped(reason=reason, before=before, spoil=spoil, sent=sent):
                bad = ship.odometry(0.1)
                bad.header.stamp = stamp(bench.tick())
                spoil(bad, len(sent))
                sent.append(bad)
                bench.odometry.publish(bad)
                return bench.diagnostics.dropped("base_odometry", reason) > before

            ros.until(dropped, of=bench.process)
            assert bench.process.alive
        assert bench.at_pose(0.15)
        bench.refused("base_odometry_timeout")
        assert bench.at_pose(0.2)


def test_odometry_with_an_imu_determines_the_pose_and_may_be_missing(ship, tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = OdometryBench(ros, ship, tmp_path, **{"base.source": "odometry+imu"})
        bench.prepared()
        ros.until(lambda: bench.odometry.get_subscription_count() and bench.imu.get_subscription_count())
        ros.until(lambda: bench.met((bench.imu, ship.imu(0.0)), (bench.odometry, ship.odometry(0.0))), of=bench.process)
        errors = []
        for t in np.linspace(0.0, 3.0, SAMPLES):
            w = base_at(t)[0].velocity[3:]

            def found(t=t, w=w):
                answer = bench.at_pose(t, (bench.imu, ship.imu(t, orientation=False)))
                spin = answer[1].state.twist.angular
                return worst([spin.x, spin.y, spin.z], w) < 1e-9 and answer

            errors.append(check(ship, t, *ros.until(found)))
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        bench.clock += 60.0  # the odometry is out of date

        def alone(reported, sent):
            pose = reported.pose
            return reported.jerk == sent.jerk and math.isnan(pose.position.x) and math.isnan(pose.orientation.w)

        answer, whole = bench.reported_at(0.3, alone, (bench.imu, ship.imu(0.3, orientation=False)))
        assert worst(answer.effort, ship.forces(0.3)[6:]) < 1e-8 and np.isnan(answer.gravity_effort).all()
        assert math.isnan(whole.zero_moment_point.x)
        ros.until(lambda: "only results that need no pose" in bench.diagnostics.status.message
                  or not bench.reported_at(0.3, alone, (bench.imu, ship.imu(0.3, orientation=False))))


def test_robot_file_switches_between_fixed_and_moving_base_at_run_time(ship, tmp_path):
    """The robot file changes at run time."""
    held = tmp_path / "held.robot.yaml"
    held.write_text(f"version: 1\ngravity: {list(GRAVITY)}\n")
    robot = Robot.from_urdf(BRANCHED, gravity=GRAVITY)
    with ros_domain(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path)
        moving = ros.get(bench.node, "robot_file")
        bench.prepared()
        for _ in range(2):
            ros.until(lambda: "fixed base" not in bench.info[-1].kind, what="no moving base", of=bench.process)
            ros.until(bench.base.get_subscription_count)
            ros.until(bench.met, of=bench.process)
            assert worst(bench.at(0.4).effort, ship.forces(0.4)[6:]) < 1e-8
            assert not ros.set(bench.node, robot_file=str(held))
            ros.until(lambda: "fixed base" in bench.info[-1].kind, what="no held base", of=bench.process)
            found = ros.until(lambda: bench.sample(ship.joints(0.4)), of=bench.process)
            assert worst(found.effort, robot.inverse_dynamics(*ship.joints(0.4)[:3])) < 1e-10
            bench.base.publish(bench.message(0.4, bench.clock))  # not waited for
            assert not ros.set(bench.node, robot_file=moving)
        ros.until(lambda: "fixed base" not in bench.info[-1].kind, of=bench.process)
        bench.reported.clear()
        ros.until(bench.met, of=bench.process)
        assert same(bench.reported[-1].state.pose.position, bench.message(0.0, 1.0).state.pose.position)
