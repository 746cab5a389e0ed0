"""Robots with several platforms: torques from given platform motions, compared with actuator motions and power."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

import rnea_ros
from rnea_ros import InputError, PlatformMotion

URDF = Path(__file__).resolve().parents[2] / "urdf"


@cache
def robot():
    return rnea_ros.load(URDF / "two_platforms.urdf", URDF / "two_platforms.robot.yaml")


def actuators(machine, seed=0, size=0.02):
    """Return a motion of the actuators near the home pose, (4, n)."""
    rng = np.random.default_rng(seed)
    motion = size * rng.normal(size=(4, machine.n))
    motion[0] += machine.home_motion[0]
    return motion


def test_torques_from_platform_motions_equal_torques_from_actuator_motion():
    machine = robot()
    motion = actuators(machine)
    moved = machine.platforms_of(machine.solve(*motion, multipliers=False))
    assert list(moved) == list(machine.platforms) and len(moved) > 1
    expected = machine.torque_and_rate(*motion)
    found = machine.torque_and_rate(motion=moved)
    np.testing.assert_allclose(found[0], expected[0], atol=1e-9 * np.abs(expected[0]).max())
    np.testing.assert_allclose(found[1], expected[1], atol=1e-8 * np.abs(expected[1]).max())
    q, _ = machine.actuator_motion(moved, None, 3)
    np.testing.assert_allclose(q, motion, atol=1e-10)


def test_actuator_power_equals_the_energy_rate_of_given_platform_motions():
    """The energy is that of the tree; the platforms follow sines."""
    machine = robot()
    home = machine.platforms_of(machine.solve(*machine.home_motion[:4], multipliers=False))

    def motions(t):
        found = {}
        for k, (link, pose) in enumerate(home.items()):
            w, at = 2.0 + k, np.array([0.3, 0.8, 1.9]) + k
            slides = [0.01 * (k + 1) * w**n * np.sin(w * t + at + 0.5 * np.pi * n) for n in range(4)]
            turns = [0.03 * w**n * np.sin(w * t + 2.0 * at + 0.5 * np.pi * n) for n in range(4)]
            slides[0] = slides[0] + pose.position
            found[link] = PlatformMotion.from_rpy(slides, turns)
        return found

    def energy(t):
        q, _ = machine.actuator_motion(motions(t), None, 1)
        return machine.energy(q[0], q[1], guess=machine.pose_of(motions(t))).total

    h, t = 1e-3, 0.2
    power = (8.0 * (energy(t + h) - energy(t - h)) - (energy(t + 2 * h) - energy(t - 2 * h))) / (12.0 * h)
    tau = machine.inverse_dynamics(motion=motions(t))
    q, _ = machine.actuator_motion(motions(t), None, 1)
    assert abs(tau @ q[1] - power) < 1e-7 * np.abs(tau).max()


def test_vectorized_platform_motions_equal_single_samples():
    machine = robot()
    many = [machine.platforms_of(machine.solve(*actuators(machine, seed), multipliers=False)) for seed in (0, 1)]
    stacked = {link: PlatformMotion(*(np.array(parts) for parts in zip(*(one[link] for one in many), strict=True)))
               for link in machine.platforms}
    found = machine.torque_and_rate(motion=stacked)
    for k, one in enumerate(many):
        np.testing.assert_allclose(found[0][k], machine.torque_and_rate(motion=one)[0], rtol=1e-9)


def test_motion_without_every_platform_is_rejected():
    machine = robot()
    moved = machine.platforms_of(machine.solve(*machine.home_motion[:4], multipliers=False))
    one = next(iter(moved))
    with pytest.raises(InputError, match="give that of each"):
        machine.torque_and_rate(motion={one: moved[one]})
    with pytest.raises(InputError, match=r"give \{link: motion\} with that of each"):
        machine.torque_and_rate(motion=moved[one])
    single = rnea_ros.load(URDF / "stewart.urdf", URDF / "stewart.robot.yaml")
    with pytest.raises(InputError, match="has the platforms platform"):
        single.torque_and_rate(motion=moved)


@pytest.mark.parametrize("joints", [3, 4])
def test_platform_on_an_arm_decides_as_many_joints_as_it_has_freedoms(joints):
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    from support.random_combinations import arm_with_tripod, parallel

    made = parallel(0, arm_with_tripod, joints=joints)
    machine = rnea_ros.load(made.urdf, made.file)
    position, rotation = machine.home
    moved = PlatformMotion(position + [0.0, 0.0, 0.01], rotation)
    if joints > 3:
        with pytest.raises(InputError, match="the motion of tool does not decide that of arm0, arm1, arm2, arm3"):
            machine.inverse_dynamics(motion=moved)
    else:
        q = machine.actuator_motion(moved, None, 0)[0][0]
        np.testing.assert_allclose(machine.platform_motion(q, *np.zeros((3, 6))).position, moved.position, atol=1e-10)
