"""scaling_node on a tilting base: gravity is that of the base orientation when a trajectory arrives, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import pinocchio as pin
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from rnea_msgs.msg import BaseStateStamped
from rnea_ros import BaseState, load
from rnea_ros.algebra.vectors import rpy
from rnea_ros.nodes.common.base import BaseStates
from rnea_ros.nodes.scaling.robot import BaseOrientation, ScaledRobot
from rnea_ros.robots.base_state import quaternion
from support.oracles import worst
from support.overspeed_motion import POINTS
from support.ros_helpers import ros_domain, stamp
from support.scaling_bench import NAMES, TEXT, Bench, limits

pytestmark = [pytest.mark.ros, pytest.mark.timeout(300)]

GRAVITY = np.array([0.0, 0.0, -9.81])


@pytest.fixture(scope="module")
def ros(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("tilt")) as made:
        yield made


class TiltedBench(Bench):
    """Bench for short motions, each with another orientation of the base."""

    def __init__(self, ros, folder, source, kind):
        file = folder / f"{source}.robot.yaml"
        file.write_text("version: 1\nbase: prescribed\n")
        super().__init__(ros, source, own=True, robot_description=TEXT, robot_file=str(file), **limits(),
                         **{"base.source": source, "base.timeout": 1.0})  # a machine under load is late
        self.teller, self.clock = ros.node.create_publisher(kind, f"{self.node}/base_{source}", 10), 1.0
        self.ready()
        ros.until(self.teller.get_subscription_count)

    def refused(self, reason):
        """Send a trajectory until it is rejected for this reason."""
        def so():
            self.send(np.stack((POINTS[0], POINTS[0] + 0.05)), 0.5)
            return self.diagnostics.dropped("trajectory", reason)

        self.ros.until(so, of=self.process)

    def moved(self, message):
        """Execute a motion while the base message is published repeatedly."""
        def reported():
            message.header.stamp = stamp(self.clock)
            self.clock += 0.01
            self.teller.publish(message)
            self.ros.spin(0.01)
            return self.clock

        for _ in range(80):  # longer than the averaging window
            reported()
        received = f"base_{self.node.split('/')[1]}.received"
        self.ros.until(lambda: reported() and int(self.diagnostics.values.get(received, 0)) > 0, of=self.process)
        self.received.clear()
        begin, self.home = self.home, self.home + 0.05
        self.send(np.stack((begin, self.home)), 0.5)
        self.ros.until(lambda: reported() and self.received, of=self.process)
        return self.end()


def check(motion, R):
    """Check the efforts against Pinocchio with gravity expressed in the base frame."""
    model = pin.buildModelFromXML(TEXT)
    data, model.gravity.linear = model.createData(), R.T @ GRAVITY
    for k in range(0, len(motion.t), max(1, len(motion.t) // 10)):
        tau = pin.rnea(model, data, motion.position[k], motion.velocity[k], motion.acceleration[k])
        assert worst(motion.effort[k], tau) < 1e-9
    assert list(motion.messages[0].joint_names) == NAMES


def test_base_orientation_is_measured_by_an_imu_with_and_without_orientation(ros, tmp_path):
    bench = TiltedBench(ros, tmp_path, "imu", Imu)
    bench.refused("base_imu_missing")
    for turn, known in (((0.3, -0.2, 1.0), True), ((-0.4, 0.5, 0.0), False)):
        R, message = rpy(*turn), Imu()
        shown = -R.T @ GRAVITY
        fill(message.linear_acceleration, shown)
        if known:
            fill(message.orientation, quaternion(np.array(R, dtype=float)))
        else:
            message.orientation_covariance[0] = -1.0
        check(bench.moved(message), np.array(R, dtype=float))
    ros.until(lambda: "with the orientation that base.source measures" in bench.process.log, of=bench.process)
    bench.refused("base_imu_timeout")


def test_base_orientation_is_kept_when_the_payload_changes():
    """The orientation is kept during a motion and measured again for the next trajectory."""
    class Turned(BaseOrientation):
        def measure(self, gravity):
            return BaseState(quaternion=[np.sin(0.2), 0.0, 0.0, np.cos(0.2)])

    light = load(TEXT, {"version": 1, "base": "prescribed"})
    before = ScaledRobot(light, Turned(BaseStates(1.0)))
    assert before.update_base_orientation() and not before.update_base_orientation()
    after = ScaledRobot(light.with_payload(light.model.links[-1].name, 2.0))
    after.take_over(before)
    np.testing.assert_allclose(after.planned.gravity_vector, [0.0, -9.81 * np.sin(0.4), -9.81 * np.cos(0.4)], atol=1e-12)
    q = np.full(7, 0.4)
    assert np.abs(after.planned.gravity(q) - before.planned.gravity(q)).max() > 1.0 and not after.update_base_orientation()


@pytest.mark.parametrize(("source", "kind"), [("state", BaseStateStamped), ("odometry", Odometry)])
def test_base_orientation_is_read_from_base_states_and_odometry(ros, tmp_path, source, kind):
    bench, R, message = TiltedBench(ros, tmp_path, source, kind), np.array(rpy(0.5, 0.2, -2.0), dtype=float), kind()
    pose = message.state.pose if source == "state" else message.pose.pose
    fill(pose.orientation, quaternion(R))
    check(bench.moved(message), R)


def fill(part, values):
    for axis, value in zip("xyzw", values):
        setattr(part, axis, float(value))
