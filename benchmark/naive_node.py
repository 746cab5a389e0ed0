"""A node for the same messages as a good programmer writes it in an hour: rclpy's executor, Pinocchio, messages made anew.

Exact rates from Pinocchio's derivatives: tau_rate = dtau/dq qd + dtau/dqd qdd + M qddd, and likewise for gravity.
"""

from __future__ import annotations

import sys

import numpy as np
import pinocchio as pin
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics, JointMotion

SENSOR = QoSProfile(depth=100, reliability=ReliabilityPolicy.BEST_EFFORT)


class NaiveNode(Node):
    def __init__(self, urdf: str):
        super().__init__("dynamics_node")
        self.model = pin.buildModelFromXML(urdf)
        self.data = self.model.createData()
        self.names = list(self.model.names)[1:]
        self.acceleration, self.jerk = np.zeros((2, self.model.nv))
        self.limits = np.full(self.model.nv, 100.0)
        self.effort = self.create_publisher(JointState, "~/joint_effort", 10)
        self.effort_rate = self.create_publisher(JointState, "~/joint_effort_rate", 10)
        self.dynamics = self.create_publisher(JointDynamics, "~/joint_dynamics", 10)
        self.create_subscription(JointMotion, "~/desired_motion", self.on_desired, SENSOR)
        self.create_subscription(JointState, "joint_states", self.on_state, SENSOR)

    def on_desired(self, message: JointMotion) -> None:
        index = {name: k for k, name in enumerate(message.joint_names)}
        order = [index[name] for name in self.names]
        self.acceleration, self.jerk = np.array(message.acceleration)[order], np.array(message.jerk)[order]

    def on_state(self, message: JointState) -> None:
        index = {name: k for k, name in enumerate(message.name)}
        order = [index[name] for name in self.names]
        q, qd, qdd, qddd = np.array(message.position)[order], np.array(message.velocity)[order], self.acceleration, self.jerk
        dq, dv, M = pin.computeRNEADerivatives(self.model, self.data, q, qd, qdd)
        tau, tau_rate = self.data.tau.copy(), dq @ qd + dv @ qdd + M @ qddd
        gravity_rate = pin.computeGeneralizedGravityDerivatives(self.model, self.data, q) @ qd
        gravity = pin.computeGeneralizedGravity(self.model, self.data, q).copy()
        self.effort.publish(JointState(header=message.header, name=self.names, position=q, velocity=qd, effort=tau))
        self.effort_rate.publish(JointState(header=message.header, name=self.names, position=q, velocity=qd, effort=tau_rate))
        self.dynamics.publish(JointDynamics(
            header=message.header, joint_names=self.names, position=q, velocity=qd, acceleration=qdd, jerk=qddd, effort=tau,
            effort_rate=tau_rate, gravity_effort=gravity, gravity_effort_rate=gravity_rate, effort_limit=self.limits,
            effort_rate_limit=self.limits, effort_utilization=np.abs(tau) / self.limits,
            effort_rate_utilization=np.abs(tau_rate) / self.limits))


def main() -> None:
    rclpy.init(args=[])
    try:
        with open(sys.argv[1], encoding="utf-8") as file:
            rclpy.spin(NaiveNode(file.read()))
    except (KeyboardInterrupt, ExternalShutdownException):
        pass


if __name__ == "__main__":
    main()
