"""Rotations and their angles, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.algebra.vectors import cross, quaternion, rpy, rpy_angles, skew

pin = pytest.importorskip("pinocchio")


def test_products_and_rotations_match_pinocchio():
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b, q = rng.normal(size=3), rng.normal(size=3), rng.normal(size=4) * 3.0  # of any length
        np.testing.assert_allclose(skew(a), pin.skew(a), atol=0)
        np.testing.assert_allclose(cross(a, b), pin.skew(a) @ b, rtol=1e-13, atol=1e-15)
        np.testing.assert_allclose(rpy(*a), pin.rpy.rpyToMatrix(*a), atol=1e-15)
        np.testing.assert_allclose(quaternion(*q), pin.Quaternion(q / np.linalg.norm(q)).toRotationMatrix(), atol=1e-14)


def test_roll_pitch_yaw_angles_reproduce_the_rotation():
    """The first angle is zero if two of them rotate about the same axis."""
    some, odd = np.random.default_rng(1).uniform(-1.5, 1.5, (50, 3)), ((0.3, np.pi / 2, 1.9), (0.3, -np.pi / 2, -2.0))
    for roll, pitch, yaw in [*some, *odd, (3.1, 0.0, -3.1), (0.3, 0.2, 0.0), (0.3, 0.2, np.pi / 2)]:
        R = rpy(roll, pitch, yaw)
        angles = rpy_angles(R)
        np.testing.assert_allclose(rpy(*angles), R, atol=1e-14)
        if abs(pitch) < 1.5:
            np.testing.assert_allclose(angles, (roll, pitch, yaw), atol=1e-13)
        elif abs(pitch) == np.pi / 2:
            assert angles[0] == 0.0
