"""Comparison of MDH trees with Pinocchio: poses of all links, inertias of all bodies."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros.model.mdh import PRISMATIC, REVOLUTE
from support.oracles import deviation, pin
from support.robots import about, random_state


def homogeneous(R, P):
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, P
    return T


def forward_kinematics(model, q):
    """Return poses of the MDH frames by equation (1) of khalil-rne."""
    x, z, e = (1.0, 0.0, 0.0), (0.0, 0.0, 1.0), np.eye(3)
    poses = [np.eye(4)]
    for link in model.links[1:]:
        value = link.multiplier * q[link.coordinate] + link.offset if link.joint else 0.0
        theta, r = link.theta + (link.sigma == REVOLUTE) * value, link.r + (link.sigma == PRISMATIC) * value
        factors = [homogeneous(about(z, link.gamma), 0), homogeneous(e, [0, 0, link.b]), homogeneous(about(x, link.alpha), 0),
                   homogeneous(e, [link.d, 0, 0]), homogeneous(about(z, theta), 0), homogeneous(e, [0, 0, r])]
        poses.append(poses[link.parent] @ np.linalg.multi_dot(factors))
    return poses


def check_kinematics_and_inertias(robot, oracle, seed):
    q = random_state(np.random.default_rng(seed), robot.n)[0]
    poses = forward_kinematics(robot.model, q)
    for name, frame in robot.model.frames.items():
        R, P = oracle.placement(name, q)
        assert deviation(poses[frame.link] @ homogeneous(frame.R, frame.P), homogeneous(R, P)) < 3e-14, (seed, name)
    for k, link in enumerate(robot.model.links):
        body = oracle.model.inertias[oracle.model.getJointId(link.joint) if link.joint else 0]
        if k and not link.joint:
            assert link.m == 0.0 and not link.ms.any() and not link.J.any(), "a frame between carries nothing"
        elif link.name in robot.model.frames:  # Pinocchio's joint frame is the URDF's link frame
            frame = robot.model.frames[link.name]
            moved = pin.SE3(frame.R, frame.P).act(body)
            c = moved.lever
            about_origin = moved.inertia + moved.mass * (c @ c * np.eye(3) - np.outer(c, c))
            assert deviation(link.m, body.mass) < 1e-14
            assert deviation(link.ms, moved.mass * moved.lever) < 1e-13
            assert deviation(link.J, about_origin) < 1e-12
    assert robot.total_mass == pytest.approx(oracle.total_mass(), rel=1e-14, abs=0)
    assert robot.reconstruction_error < 1e-13
