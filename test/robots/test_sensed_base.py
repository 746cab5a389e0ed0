"""Base motion from sensors mounted at any position and orientation, with derivatives."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import BaseState, load
from rnea_ros.algebra.vectors import rpy
from rnea_ros.nodes.common.base import (
    extrapolate_base,
    from_imu,
    from_twist,
    mounts,
    point_motion,
    quaternion_inverse,
    quaternion_product,
    upright,
)
from rnea_ros.robots.base_state import base_motion, quaternion
from support.free_flyer import FreeFlyer
from support.oracles import difference, pin, worst
from support.robots import seeds

GRAVITY = np.array([0.3, -0.5, -9.7])
SEEDS = range(6)
URDF = """<robot name="box"><link name="box"><inertial><mass value="2"/>
  <inertia ixx="1" ixy="0" ixz="0" iyy="2" iyz="0" izz="2"/></inertial></link>
  <link name="imu"/><joint name="mount" type="fixed"><origin xyz="0.3 -0.2 0.5" rpy="0.4 -0.7 1.9"/>
  <parent link="box"/><child link="imu"/></joint>
  <link name="arm"><inertial><mass value="1"/><inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial></link>
  <joint name="turn" type="revolute"><parent link="box"/><child link="arm"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="1" velocity="1"/></joint></robot>"""


class Tumbling:
    """Tumbling base, and a sensor frame fixed to it."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self._a, self._w, self._p = rng.normal(size=(3, 6))
        self.r, self.R = rng.normal(size=3), rpy(*rng.uniform(-3.0, 3.0, 3))

    def pose(self, t):
        x = self._a * np.sin(self._w * t + self._p)
        return x[:3], rpy(2.0 * x[3], 2.0 * x[4], 2.0 * x[5] + t)

    def sensor_pose(self, t):
        p, R = self.pose(t)
        return p + R @ self.r, R @ self.R

    def imu(self, t):
        """Return acceleration minus gravity and angular velocity at the sensor, expressed in the base frame."""
        base = base_motion(self.sensor_pose, t)
        return (np.stack((base.acceleration[:3] - base.into_base(GRAVITY), base.velocity[3:])) @ self.R.T).ravel()

    def twist(self, t):
        base = base_motion(self.sensor_pose, t)
        return (base.velocity.reshape(2, 3) @ self.R.T).ravel()


def with_rates(signals, t):
    return np.array([signals(t), difference(lambda h: signals(t + h), 3e-3),
                     difference(lambda h: difference(lambda k: signals(t + h + k), 3e-3), 3e-3)])


@pytest.mark.parametrize("seed", SEEDS)
def test_base_motion_from_an_imu_at_any_position_is_exact(seed):
    body, t = Tumbling(seed), 0.3
    base = base_motion(body.pose, t)
    found = from_imu(body.r, with_rates(body.imu, t))
    assert worst(found.velocity[3:], base.velocity[3:]) < 1e-12 and np.isnan(found.velocity[:3]).all()
    felt = base.acceleration - np.concatenate((base.into_base(GRAVITY), np.zeros(3)))
    assert worst(found.acceleration, felt) < 1e-9 and worst(found.jerk, base.jerk) < 1e-7  # accuracy of the differences


@pytest.mark.parametrize("seed", SEEDS)
def test_base_motion_from_a_twist_at_any_position_is_exact(seed):
    body, t = Tumbling(seed), -0.4
    base = base_motion(body.pose, t)
    found = from_twist(body.r, with_rates(body.twist, t))
    assert worst(found.velocity, base.velocity) < 1e-12
    assert worst(found.acceleration, base.acceleration) < 1e-9 and worst(found.jerk, base.jerk) < 1e-7


@pytest.mark.parametrize("seed", SEEDS)
def test_acceleration_and_jerk_of_a_point_on_the_base_match_its_pose(seed):
    body, t = Tumbling(seed), 0.8
    base, there = base_motion(body.pose, t), base_motion(body.sensor_pose, t)
    moved = point_motion(body.r, base.velocity[3:], base.acceleration, base.jerk)
    for ours, theirs in zip(moved, (there.acceleration, there.jerk)):
        assert worst(ours.reshape(2, 3), theirs.reshape(2, 3) @ body.R.T) < 1e-12


def test_imu_readings_in_the_link_frame_match_pinocchio():
    """The oracle is Pinocchio's classical acceleration of the link."""
    floating = load(URDF, base="floating", gravity=GRAVITY)
    assert set(mounts(floating.tree.model)) == {"box", "imu"}
    mount, oracle = mounts(floating.tree.model)["imu"], FreeFlyer(URDF, floating)
    base = base_motion(Tumbling(3).pose, 0.5)
    pin.forwardKinematics(oracle.model, oracle.data, oracle.configuration(base, np.zeros(1)),
                          oracle.velocity(base, np.zeros(1)), oracle.fold @ np.append(base.spatial(base.acceleration), 0.0))
    frame = oracle.model.getFrameId("imu")
    reported = pin.getFrameClassicalAcceleration(oracle.model, oracle.data, frame, pin.ReferenceFrame.LOCAL).linear
    spin = pin.getFrameVelocity(oracle.model, oracle.data, frame, pin.ReferenceFrame.LOCAL).angular
    expected, _ = point_motion(mount.r, base.velocity[3:], base.acceleration, np.zeros(6))
    assert worst(mount.along_base(reported, spin), np.concatenate((expected[:3], base.velocity[3:]))) < 1e-12
    assert worst(mount.turn, quaternion(mount.R)) < 1e-15


def test_quaternion_product_and_inverse_match_rotation_matrices():
    rng = np.random.default_rng(1)
    p, q = (BaseState(quaternion=x / np.linalg.norm(x)) for x in rng.normal(size=(2, 4)))
    both = BaseState(quaternion=quaternion_product(p.quaternion, q.quaternion))
    assert worst(both.rotation, p.rotation @ q.rotation) < 1e-14
    assert worst(BaseState(quaternion=quaternion_inverse(p.quaternion)).rotation, p.rotation.T) < 1e-14


def test_extrapolated_base_pose_is_exact_for_constant_twist():
    """Pure rotation and pure translation are exact; a combination has third-order error."""
    turning = BaseState((1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8), (0.0, 0.0, 0.0, 0.7, -2.0, 0.4))
    angle = 0.5 * np.linalg.norm(turning.velocity[3:])
    axis = turning.velocity[3:] / np.linalg.norm(turning.velocity[3:])
    expected = quaternion_product(turning.quaternion, np.append(np.sin(0.5 * angle) * axis, np.cos(0.5 * angle)))
    assert worst(extrapolate_base(turning, 0.5).quaternion, expected) < 1e-14
    flying = BaseState((1.0, 2.0, 3.0), (0.0, 0.6, 0.0, 0.8), (0.3, -0.4, 0.5, 0.0, 0.0, 0.0))
    assert worst(extrapolate_base(flying, -2.0).position, flying.position - 2.0 * flying.into_world((0.3, -0.4, 0.5))) < 1e-14
    assert extrapolate_base(flying, 0.0) is flying
    both = BaseState(velocity=(0.3, -0.4, 0.5, 0.7, -2.0, 0.4))
    half = extrapolate_base(both, 1e-3)
    assert worst(extrapolate_base(half, 1e-3).position, extrapolate_base(both, 2e-3).position) < 1e-8


@pytest.mark.parametrize("seed", seeds(2))
def test_orientation_of_a_base_at_rest_follows_from_its_accelerometer(seed):
    """Cases include upside down and zero gravity; rotation about the vertical is undetermined."""
    R = Tumbling(seed).R if seed < 3 else rpy(np.pi, 0.0, 0.0) if seed == 3 else np.eye(3)
    vertical, force = (GRAVITY, -R.T @ GRAVITY) if seed < 4 else (np.zeros(3), np.zeros(3))
    if seed == 3:
        vertical, force = np.array([0.0, 0.0, -9.81]), np.array([0.0, 0.0, -9.81])
    np.testing.assert_allclose(BaseState(quaternion=upright(force, vertical)).into_base(vertical), -force, atol=1e-12)
