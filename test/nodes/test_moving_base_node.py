"""A base that moves in dynamics_node, in a process of its own over DDS: Pinocchio's free-flyer, and bad base states."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

from geometry_msgs.msg import WrenchStamped

from rnea_msgs.msg import BaseDynamics, BaseStateStamped
from rnea_ros import FloatingRobot
from rnea_ros.algebra.vectors import rpy
from rnea_ros.robots.inputs.base_state import along
from support.free_flyer import FreeFlyer
from support.live_bench import URDF, LiveBench
from support.oracles import difference, worst
from support.ros_helpers import stamp, world

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES, GRAVITY = 40, (0.4, -0.3, -9.7)
BRANCHED = URDF / "branched.urdf"


def base_at(t):
    """State, acceleration, jerk of a ship that rolls, pitches and heaves."""
    return along(lambda s: (np.array([0.3 * np.sin(1.1 * s), 0.2 * np.cos(s), 0.5 * np.sin(0.7 * s)]),
                            rpy(0.4 * np.sin(1.3 * s), 0.3 * np.sin(0.9 * s), 0.5 * s)), t)


class Ship:
    """The robot on it, and the answer that is not ours."""

    def __init__(self):
        self.robot = FloatingRobot.from_urdf(BRANCHED, gravity=GRAVITY)
        self.oracle = FreeFlyer(BRANCHED, self.robot)
        self.names, self._w = self.robot.joint_names, 1.0 + 0.1 * np.arange(self.robot.n)

    def joints(self, t):
        return [0.3 * self._w**k * np.sin(self._w * t + k * np.pi / 2.0) for k in range(4)]

    def forces(self, t):
        """(6 + n,): base wrench and torques."""
        base, acceleration, _ = base_at(t)
        return self.oracle.forces(base, acceleration, *self.joints(t)[:3])

    def rates(self, t):
        return difference(lambda s: self.forces(t + s), h=1e-2)


class ShipBench(LiveBench):
    """Base states are sent before the joint states that need them."""

    def __init__(self, ros, ship, folder, **parameters):
        file = folder / "ship.robot.yaml"
        file.write_text(f"version: 1\nbase: prescribed\ngravity: {list(GRAVITY)}\n")
        super().__init__(ros, "branched", ship.names, robot_file=str(file), **{"base.timeout": 5.0} | parameters)
        self.base = ros.node.create_publisher(BaseStateStamped, f"{self.node}/base_state", 10)
        self.told: list[BaseDynamics] = ros.listen(BaseDynamics, f"{self.node}/base_dynamics")
        self.ship = ship

    def message(self, t, seconds):
        base, acceleration, jerk = base_at(t)
        found = BaseStateStamped()
        found.header.stamp = stamp(seconds)
        p, o, six = found.state.pose.position, found.state.pose.orientation, found.state
        p.x, p.y, p.z = map(float, base.position)
        o.x, o.y, o.z, o.w = map(float, base.quaternion)
        for part, values in ((six.twist, base.velocity), (six.acceleration, acceleration), (six.jerk, jerk)):
            for axis, linear, angular in zip("xyz", values[:3], values[3:]):
                setattr(part.linear, axis, float(linear))
                setattr(part.angular, axis, float(angular))
        return found

    def at(self, t):
        """The answer to the robot's motion at t, whose base state is sent just before: if that comes too late, or is lost, an
        older one is used, and all is sent again."""
        def send():
            message = self.message(t, self.clock + self.dt)
            self.base.publish(message)
            self.ros.spin(0.002)
            found = self.sample(self.ship.joints(t), attempts=1)
            return found and of_stamp(self.ros, self.told, found.header.stamp).state == message.state and found

        return self.ros.until(send, what="no answer", of=self.process)

    def met(self):
        """Whether the node is heard, whatever it tells."""
        self.base.publish(self.message(0.0, self.clock + self.dt))
        self.sample(self.ship.joints(0.0), attempts=1)
        return self.told

    def refused(self, reason, t=0.1):
        """Until a joint state is dropped for a reason."""
        def dropped():
            self.publish(self.ship.joints(t))
            return self.diagnostics.dropped("joint_states", reason)

        self.ros.until(dropped, of=self.process)


@pytest.fixture(scope="module")
def ship():
    return Ship()


def of_stamp(ros, heard, when):
    return ros.until(lambda: next((message for message in heard if message.header.stamp == when), None))


def numbers(wrench):
    f, n = wrench.force, wrench.torque
    return [f.x, f.y, f.z, n.x, n.y, n.z]


def test_torques_and_the_wrench_of_the_base_on_a_moving_ship(ship, tmp_path):
    with world(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path)
        wrenches = ros.listen(WrenchStamped, f"{bench.node}/base_wrench")
        bench.prepared()
        bench.refused("base_state_missing")
        ros.until(bench.base.get_subscription_count)
        ros.until(lambda: bench.met() and wrenches, of=bench.process)
        errors = []
        for t in np.linspace(0.0, 3.0, SAMPLES):
            found, forces, rates = bench.at(t), ship.forces(t), ship.rates(t)
            whole, wrench = (of_stamp(ros, heard, found.header.stamp) for heard in (bench.told, wrenches))
            assert whole.header.frame_id == wrench.header.frame_id == ship.robot.robot.root_link
            assert whole.wrench == wrench.wrench
            errors.append([worst(found.effort, forces[6:]), worst(found.effort_rate, rates[6:]),
                           worst(numbers(whole.wrench), forces[:6]), worst(numbers(whole.wrench_rate), rates[:6])])
            held = ship.robot.gravity(ship.joints(t)[0], base=base_at(t)[0])[6:]
            assert worst(found.gravity_effort, held) < 1e-10  # which follows the tilt
        print(f"largest errors of torque, rate, base wrench and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, values = bench.info[-1], bench.diagnostics.next()
        assert (info.kind, info.base) == ("FloatingRobot", "floating") and values["kind"] == "FloatingRobot"
        assert int(values["base_state.received"]) >= SAMPLES


def test_base_states_that_are_none_are_counted_and_late_ones_refuse(ship, tmp_path):
    with world(tmp_path) as ros:
        bench = ShipBench(ros, ship, tmp_path, **{"base.timeout": 0.5})
        bench.prepared()
        ros.until(bench.met, of=bench.process)
        assert bench.at(0.1)
        for reason, spoil in (("base_state_unusable", lambda m: setattr(m.state.jerk.angular, "y", math.nan)),
                              ("base_state_unusable", lambda m: setattr(m.state.pose.orientation, "w", 7.0)),
                              ("stamp_went_back", lambda m: setattr(m.header, "stamp", stamp(3.0)))):
            before = int(bench.diagnostics.values.get(f"dropped.base_state.{reason}", 0))
            bad = bench.message(0.1, bench.clock)
            spoil(bad)

            def dropped(reason=reason, before=before, bad=bad):
                bench.base.publish(bad)
                return bench.diagnostics.dropped("base_state", reason) > before

            ros.until(dropped, of=bench.process)
            assert bench.process.alive
        assert bench.at(0.15)
        bench.refused("base_state_timeout")
        assert bench.at(0.2)
