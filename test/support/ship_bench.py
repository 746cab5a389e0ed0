"""Bench of dynamics_node for a robot on a ship that rolls, pitches and heaves, compared with Pinocchio's free-flyer."""

from __future__ import annotations

import numpy as np
from nav_msgs.msg import Odometry
from sensor_msgs.msg import Imu

from rnea_msgs.msg import BaseDynamics, BaseStateStamped
from rnea_ros import load
from rnea_ros.algebra.vectors import rpy
from rnea_ros.robots.base_state import base_motion
from support.free_flyer import FreeFlyer
from support.live_bench import URDF, LiveBench
from support.machines import solve
from support.moving_robots import MovingLoops
from support.oracles import difference, pin
from support.ros_helpers import stamp

GRAVITY = (0.4, -0.3, -9.7)
SENSOR = "mast"  # a link of the ship's deck, displaced and rotated
BRANCHED = (URDF / "branched.urdf").read_text().replace("</robot>", f"""<link name="{SENSOR}"/>
  <joint name="foot_of_{SENSOR}" type="fixed"><origin xyz="0.7 -0.4 0.9" rpy="0.5 -0.8 2.1"/><parent link="base_link"/>
  <child link="{SENSOR}"/></joint></robot>""")


def base_at(t, pace=1.0):
    """Return state, acceleration and jerk of a ship that rolls, pitches and heaves."""
    def pose(s):
        s = pace * s
        return (np.array([0.3 * np.sin(1.1 * s), 0.2 * np.cos(s), 0.5 * np.sin(0.7 * s)]),
                rpy(0.4 * np.sin(1.3 * s), 0.3 * np.sin(0.9 * s), 0.5 * s))

    moved = base_motion(pose, t)
    return moved.free, moved.acceleration, moved.jerk


class Ship:
    """Robot on a ship, with forces and sensors by Pinocchio. pace: speed factor of all motions."""

    def __init__(self, pace=1.0):
        self.pace = pace
        self.robot = load(BRANCHED, base="prescribed", gravity=GRAVITY)
        self.oracle = FreeFlyer(BRANCHED, self.robot.tree)
        self.names, self._w = self.robot.joint_names, pace * (1.0 + 0.1 * np.arange(self.robot.n))

    def joints(self, t):
        return [0.3 * self._w**k * np.sin(self._w * t + k * np.pi / 2.0) for k in range(4)]

    def forces(self, t):
        """Return base wrench and torques (6 + n,)."""
        base, acceleration, _ = base_at(t, self.pace)
        return self.oracle.forces(base, acceleration, *self.joints(t)[:3])

    def rates(self, t):
        return difference(lambda s: self.forces(t + s), h=1e-2 / self.pace)

    def imu(self, t, orientation=True):
        """Return the measurements of a unit on the mast, by Pinocchio."""
        base, acceleration, _ = base_at(t, self.pace)
        model, data, rest = self.oracle.model, self.oracle.data, np.zeros(self.robot.n)
        pin.forwardKinematics(model, data, self.oracle.configuration(base, rest), self.oracle.velocity(base, rest),
                              self.oracle.fold @ np.append(base.spatial(acceleration), rest))
        frame, local = model.getFrameId(SENSOR), pin.ReferenceFrame.LOCAL
        R = pin.updateFramePlacement(model, data, frame).rotation
        shown = pin.getFrameClassicalAcceleration(model, data, frame, local).linear - R.T @ GRAVITY
        spin = pin.getFrameVelocity(model, data, frame, local).angular
        message = Imu()
        message.header.frame_id = SENSOR
        for part, values in ((message.linear_acceleration, shown), (message.angular_velocity, spin),
                             (message.orientation, pin.Quaternion(R).coeffs())):
            for axis, value in zip("xyzw", values):
                setattr(part, axis, float(value))
        if not orientation:
            message.orientation_covariance[0] = -1.0
        return message

    def odometry(self, t):
        """Return pose and twist of the mast, by Pinocchio."""
        base, *_ = base_at(t, self.pace)
        model, data, rest = self.oracle.model, self.oracle.data, np.zeros(self.robot.n)
        pin.forwardKinematics(model, data, self.oracle.configuration(base, rest), self.oracle.velocity(base, rest))
        frame = model.getFrameId(SENSOR)
        pose = pin.updateFramePlacement(model, data, frame)
        twist = pin.getFrameVelocity(model, data, frame, pin.ReferenceFrame.LOCAL)
        message = Odometry(child_frame_id=SENSOR)
        for part, values in ((message.pose.pose.position, pose.translation), (message.twist.twist.linear, twist.linear),
                             (message.twist.twist.angular, twist.angular),
                             (message.pose.pose.orientation, pin.Quaternion(pose.rotation).coeffs())):
            for axis, value in zip("xyzw", values):
                setattr(part, axis, float(value))
        return message

    def state(self, t, seconds):
        """Return the stamped state of the base."""
        base, acceleration, jerk = base_at(t, self.pace)
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


class FiveBarOnShip(Ship):
    """Five-bar on a ship. Loops do no work, so motor torques are projections of the tree's torques."""

    def __init__(self):
        self.pace, self.bar = 1.0, MovingLoops("five_bar")
        self.robot = load(self.bar.urdf, base="prescribed", gravity=GRAVITY)
        self.oracle, self.names = FreeFlyer(self.bar.urdf, self.robot.tree), self.bar.joints
        assert list(self.robot.joint_names) == self.bar.tree

    def file_content(self):
        """Return the content of the robot file."""
        return {"version": 1, **self.bar.content, "base": "prescribed", "gravity": list(GRAVITY)}

    def joints(self, t):
        return self.bar.swing(t)

    def forces(self, t):
        """Return base wrench and motor torques (6 + N,)."""
        (q, qd), kkt = self.bar.state(t), self.bar.kkt
        passive = np.setdiff1d(np.arange(len(q)), kkt.active)
        *_, J, drift = kkt.equations(q, qd)
        qdd = np.zeros(len(q))
        qdd[kkt.active] = self.joints(t)[2]
        qdd[passive] = solve(J[:, passive], -drift - J @ qdd)
        base, acceleration, _ = base_at(t)
        tree = self.oracle.forces(base, acceleration, q, qd, qdd)
        through = solve(J[:, passive], -J[:, kkt.active])
        return np.concatenate((tree[:6], tree[6:][kkt.active] + through.T @ tree[6:][passive]))


class ShipBench(LiveBench):
    """Bench that publishes base states before the joint states that need them."""

    def __init__(self, ros, ship, folder, **parameters):
        file = folder / "ship.robot.yaml"
        file.write_text(f"version: 1\nbase: prescribed\ngravity: {list(GRAVITY)}\n")
        given = {"robot_description": BRANCHED, "robot_file": str(file), "base.timeout": 5.0}
        super().__init__(ros, "branched", ship.names, **given | parameters)
        self.base = ros.node.create_publisher(BaseStateStamped, f"{self.node}/base_state", 10)
        self.reported: list[BaseDynamics] = ros.listen(BaseDynamics, f"{self.node}/base_dynamics")
        self.ship = ship

    def message(self, t, seconds):
        return self.ship.state(t, seconds)

    def reported_at(self, t, agrees, *beside):
        """Return the result for the motion at t, and the published base motion. The base state and other (publisher, message)
        are sent just before; if one is late or lost, the node uses an older one, and all are sent again until the
        published motion agrees.
        """
        def send():
            message = self.message(t, self.clock + self.dt)
            for publisher, other in beside:
                other.header.stamp = message.header.stamp
                publisher.publish(other)
            self.base.publish(message)
            self.ros.spin(0.002)
            found = self.sample(self.ship.joints(t), attempts=1)
            reported = found and of_stamp(self.ros, self.reported, found.header.stamp)
            return reported and agrees(reported.state, message.state) and (found, reported)

        return self.ros.until(send, what="no answer", of=self.process)

    def at(self, t):
        """Return the result for the robot's motion at t."""
        return self.reported_at(t, lambda reported, sent: reported == sent)[0]

    def met(self, *beside):
        """Return whether the node has published the base."""
        message = self.message(0.0, self.clock + self.dt)
        for publisher, other in beside:
            other.header.stamp = message.header.stamp
            publisher.publish(other)
        self.base.publish(message)
        self.sample(self.ship.joints(0.0), attempts=1)
        return self.reported

    def refused(self, reason, t=0.1):
        """Publish until a joint state is rejected for a reason."""
        def dropped():
            self.publish(self.ship.joints(t))
            return self.diagnostics.dropped("joint_states", reason)

        self.ros.until(dropped, of=self.process)


def of_stamp(ros, received, when):
    return ros.until(lambda: next((message for message in received if message.header.stamp == when), None))


def numbers(wrench):
    f, n = wrench.force, wrench.torque
    return [f.x, f.y, f.z, n.x, n.y, n.z]


def same(one, other):
    """Return whether two vectors of messages are equal up to rounding."""
    return all(abs(getattr(one, axis) - getattr(other, axis)) < 1e-9 for axis in "xyz")
