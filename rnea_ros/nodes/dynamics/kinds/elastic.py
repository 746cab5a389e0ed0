"""Elastic joints and motors on any link: motors follow from higher derivatives of the desired motion, or are measured."""

from __future__ import annotations

import numpy as np
from builtin_interfaces.msg import Time
from std_msgs.msg import Header

from rnea_msgs.msg import ElasticDynamics
from rnea_ros import ElasticRobot, InputError
from rnea_ros.errors import Rejected, some
from rnea_ros.nodes.dynamics.desired_motion import FIELDS
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, Motion, ServedRobot
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.messages import Sent
from rnea_ros.robots.elastic_rates import ElasticRates
from rnea_ros.robots.robot import Dynamics


class ServedElastic(ServedRobot):
    """ElasticRobot; both sides of its springs are on ~/elastic_dynamics."""

    def __init__(self, robot: ElasticRobot):
        """Raises InputError where a name of a motor in joint_states means something else, too."""
        super().__init__(robot, [robot.robot])
        self._elastic, self.optional = robot, tuple(robot.motor_joints.values())
        self.springs = tuple(robot.elastic_joints)
        twice = [name for name in self.optional if name in robot.joint_names or self.optional.count(name) > 1]
        if twice:
            raise InputError(f"motor_joint names {some(twice)} more than once, or as joints of the robot are called")
        self._measured = len(self.optional) == len(robot.elastic_joints)
        self._follows, self.order = "", len(FIELDS) + 1
        try:
            if robot.order <= self.order:
                self.order = robot.order
            else:
                self._follows = f"that takes {robot.order} derivatives of position, JointMotion has {self.order}"
        except InputError as unknown:  # of some motors no derivatives of q tell the motion
            self._follows = str(unknown)
        self._values = np.zeros((len(ElasticRates._fields), self.n))
        self._told = Sent(ElasticDynamics(header=Header(frame_id=self.root_link), joint_names=list(self.joint_names)),
                          self._values)

    def prepare(self, loads: Loads) -> None:
        rest, motors = np.zeros((self.order + 1, self.n)), np.zeros((4, len(self._elastic.elastic_joints)))
        for given in ({}, loads(*rest[:2])):
            if not self._follows:
                self._elastic.elastic_rates(*rest, **given)
            if self._measured:
                self._elastic.measured_rates(*rest[:4], *motors, **given)
        self._elastic.gravity_and_rate(*rest[:2])

    def connect(self, topics: Topics) -> None:
        self._publisher = topics.publisher(ElasticDynamics, "~/elastic_dynamics")

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        q, qd = motion[:2]
        if not self._follows and len(motion) > self.order and np.isfinite(np.concatenate(motion[4:] or (q,))).all():
            found = self._elastic.elastic_rates(*motion, **loads(q, qd))
        elif self._measured and np.isfinite(optional).all():
            found = self._elastic.measured_rates(*motion[:4], *optional, **loads(q, qd))
        else:
            raise Rejected("derivatives_missing", self._missing())
        self._values[:] = found
        return Dynamics(found.tau, found.tau_rate, *self._elastic.gravity_and_rate(q, qd))

    def motor_speed(self, motion: Motion) -> np.ndarray:
        return motion[1] + self._values[ElasticRates._fields.index("deflection_rate")]

    def tell(self, when: Time) -> None:
        if self._publisher.has_subscribers():
            self._publisher.send(self._told.packed((when.sec, when.nanosec)))

    def _missing(self) -> str:
        """Why it is not known how the motors move."""
        springs = some(self._elastic.elastic_joints)
        wanted = self._follows or f"the desired motion needs {some(FIELDS[2:self.order - 1])} of all joints"
        motors = f"{some(self.optional)} in the joint states" if self._measured else f"a motor_joint for each of {springs}"
        return (f"how the motors move behind their springs is not known: {wanted}; or else {motors}, with positions and "
                "velocities, and with accelerations and jerks desired or estimated")
