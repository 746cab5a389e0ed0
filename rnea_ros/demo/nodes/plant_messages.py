"""What a plant's instant is in messages: joint states with measured torques, base, IMU, wrenches."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from sensor_msgs.msg import Imu, JointState

from rnea_msgs.msg import BaseStateStamped, JointMotion
from rnea_ros.sim.comparison import InstantRates
from rnea_ros.sim.plant import Instant

NOT_GIVEN = -1.0  # first element of the covariance of what is not measured


def joint_state(header: Any, names: list[str], motors: np.ndarray, instant: Instant) -> JointState:
    """Of the motors: positions and velocities as measured, and what they exert."""
    q, qd, tau = (array.array("d", numbers) for numbers in (instant.q[motors], instant.qd[motors], instant.tau))
    return JointState(header=header, name=names, position=q, velocity=qd, effort=tau)


def desired_motion(header: Any, names: list[str], motors: np.ndarray, rates: InstantRates) -> JointMotion:
    """Acceleration and jerk of the motors."""
    qdd, jerk = (array.array("d", numbers) for numbers in (rates.instant.qdd[motors], rates.jerk[motors]))
    return JointMotion(header=header, joint_names=names, acceleration=qdd, jerk=jerk)


def base_state(header: Any, rates: InstantRates) -> BaseStateStamped:
    """The whole motion of the base."""
    base, acceleration, made = rates.instant.base, rates.instant.base_acceleration, BaseStateStamped(header=header)
    assert base is not None and acceleration is not None and rates.base_jerk is not None
    _fill(made.state.pose.position, base.position)
    _fill(made.state.pose.orientation, base.quaternion)
    for six, numbers in ((made.state.twist, base.velocity), (made.state.acceleration, acceleration),
                         (made.state.jerk, rates.base_jerk)):
        _fill(six.linear, numbers[:3])
        _fill(six.angular, numbers[3:])
    return made


def imu(header: Any, instant: Instant) -> Imu:
    """As its sensors show it; how it is turned it does not know."""
    made = Imu(header=header)
    made.orientation_covariance[0] = NOT_GIVEN
    _fill(made.linear_acceleration, instant.accelerometer)
    _fill(made.angular_velocity, instant.gyro)
    return made


def wrench(header: Any, six: np.ndarray) -> WrenchStamped:
    """By the environment on the link that the header names."""
    made = WrenchStamped(header=header)
    _fill(made.wrench.force, six[:3])
    _fill(made.wrench.torque, six[3:])
    return made


def _fill(message: Any, numbers: Any) -> None:
    for axis, number in zip("xyzw", numbers):
        setattr(message, axis, float(number))
