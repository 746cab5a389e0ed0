"""Drive limits of robot files: retimed motions keep them, and invalid data are rejected.

Oracle: the formulas of the data sheet, with Pinocchio's torques and torque rates along the motion.
"""

import numpy as np
import pytest

from rnea_ros import InputError, ModelError, load
from rnea_ros.model.drives import DriveLimit, convexity_problem, utilizations
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.retiming import retime_motion
from support.oracles import PinocchioOracle
from support.scaling_cases import ARMS, urdf, waypoints

TIGHT = 0.99  # least utilization of the binding limit
N_SAMPLES = 4000
SHEET = {"gear_ratio": 100.0, "torque_constant": 0.1, "resistance": 0.5, "inductance": 2.5e-3, "efficiency": 0.8}


def arm_with(name, sections):
    return load(urdf(name), {"version": 1, **sections})


def gravity_of(robot, seed):
    """Return the largest gravity torque along the waypoints (n,), with a minimum for joints without gravity."""
    path = path_through(waypoints(robot, seed))
    torque = np.abs(robot.gravity(path(np.linspace(0.0, path.length, 400))[0])).max(axis=0)
    return np.maximum(torque, 0.1 * torque.max())


def drives_for(robot, seed, rng):
    """Return drives with random constants that gravity uses to about one half."""
    found = {}
    for name, torque in zip(robot.joint_names, gravity_of(robot, seed)):
        ratio, constant = float(rng.choice([-1.0, 1.0]) * rng.uniform(50, 150)), float(rng.uniform(0.05, 0.2))
        stall = 2.0 * float(torque)  # N m
        current = stall / (constant * abs(ratio) * 0.8)
        resistance = float(rng.uniform(0.2, 2.0))
        found[name] = {"gear_ratio": ratio, "torque_constant": constant, "efficiency": 0.8, "resistance": resistance,
                       "inductance": 5e-3 * resistance, "back_emf_constant": float(rng.uniform(0.9, 1.1)) * constant,
                       "supply_voltage": float(rng.uniform(1.0, 1.3)) * (current * resistance)
                       + 2.0 * constant * abs(ratio)}
    return found


def pinocchio_along(name, robot, motion):
    """Return qd, and tau and its rate by Pinocchio, at N_SAMPLES instants of a motion."""
    oracle = PinocchioOracle(urdf(name), robot)
    motions = motion(np.linspace(0.0, motion.duration, N_SAMPLES))
    tau, tau_rate = map(np.array, zip(*(oracle.torque_and_rate(*sample) for sample in zip(*motions))))
    return motions[1], tau, tau_rate


@pytest.mark.parametrize("name", ARMS)
@pytest.mark.parametrize("seed", range(2))
def test_retimed_motion_reaches_but_does_not_exceed_the_supply_voltage(name, seed):
    bare = load(urdf(name))
    drives = drives_for(bare, seed, np.random.default_rng(seed))
    robot = arm_with(name, {"drives": drives, "limits": {joint: {"has_effort_limits": False, "has_velocity_limits": False}
                                                         for joint in bare.joint_names}})
    motion = retime_motion(robot, waypoints(bare, seed))
    qd, tau, tau_rate = pinocchio_along(name, robot, motion)
    used = []
    for k, joint in enumerate(robot.joint_names):
        sheet = drives[joint]
        by_torque = 1.0 / (sheet["torque_constant"] * sheet["gear_ratio"] * sheet["efficiency"])
        voltage = (sheet["resistance"] * by_torque * tau[:, k] + sheet["inductance"] * by_torque * tau_rate[:, k]
                   + sheet["back_emf_constant"] * sheet["gear_ratio"] * qd[:, k])
        used.append(np.abs(voltage).max() / sheet["supply_voltage"])
    assert TIGHT < max(used) <= 1.0


@pytest.mark.parametrize("name", ARMS)
def test_retimed_motion_keeps_driving_and_braking_power_of_a_supply(name):
    bare = load(urdf(name))
    free = retime_motion(bare, waypoints(bare, 3))
    qd, tau, _ = pinocchio_along(name, bare, free)
    power = (tau * qd).sum(axis=1)
    most, braking = 0.5 * power.max(), 0.2 * -power.min()
    robot = arm_with(name, {"supplies": {"rail": {"max_power": float(most), "max_braking_power": float(braking)}}})
    motion = retime_motion(robot, waypoints(bare, 3))
    qd, tau, _ = pinocchio_along(name, robot, motion)
    power = (tau * qd).sum(axis=1)
    assert TIGHT < max(power.max() / most, -power.min() / braking) <= 1.0
    assert motion.duration > free.duration


def test_missing_braking_power_limit_does_not_bind():
    bare = load(urdf("seven_r"))
    free = retime_motion(bare, waypoints(bare, 3))
    qd, tau, _ = pinocchio_along("seven_r", bare, free)
    most = float(0.5 * (tau * qd).sum(axis=1).max())
    robot = arm_with("seven_r", {"supplies": {"rail": {"max_power": most}}})
    motion = retime_motion(robot, waypoints(bare, 3))
    qd, tau, _ = pinocchio_along("seven_r", robot, motion)
    power = (tau * qd).sum(axis=1)
    assert TIGHT < power.max() / most <= 1.0 and -power.min() > most


@pytest.mark.parametrize("name", ARMS)
def test_retimed_motion_keeps_rotor_speed_behind_a_compliant_transmission(name):
    bare = load(urdf(name))
    free = retime_motion(bare, waypoints(bare, 4))
    qd, _, tau_rate = pinocchio_along(name, bare, free)
    stiffness = np.abs(tau_rate).max(axis=0) / np.abs(qd).max(axis=0)  # the spring deflects as fast as the joint turns
    most = 0.7 * 80.0 * np.abs(qd + tau_rate / stiffness).max(axis=0)
    robot = arm_with(name, {"drives": {joint: {"gear_ratio": 80.0, "max_motor_velocity": float(m),
                                               "transmission_stiffness": float(k)}
                                       for joint, m, k in zip(bare.joint_names, most, stiffness)}})
    qd, _, tau_rate = pinocchio_along(name, robot, retime_motion(robot, waypoints(bare, 4)))
    used = np.abs(80.0 * (qd + tau_rate / stiffness)).max(axis=0) / most
    assert TIGHT < used.max() <= 1.0


def test_retimed_motion_keeps_the_speed_torque_curve():
    bare = load(urdf("seven_r"))
    torque = gravity_of(bare, 5)
    corners = {joint: [[0.0, 3.0 * t], [1.0, 2.5 * t], [2.0, 0.4 * t], [2.1, 0.0]]
               for joint, t in zip(bare.joint_names, torque.tolist())}
    robot = arm_with("seven_r", {"drives": {joint: {"speed_torque_curve": c} for joint, c in corners.items()}})
    qd, tau, _ = pinocchio_along("seven_r", robot, retime_motion(robot, waypoints(bare, 5)))
    used = []
    for k, joint in enumerate(robot.joint_names):
        speeds, torques = np.array(corners[joint]).T
        used.append((np.abs(tau[:, k]) / np.interp(np.abs(qd[:, k]), speeds, torques, right=1e-9)).max())
    assert TIGHT < max(used) <= 1.0
    assert len([limit for limit in robot.drive_limits if limit.quantity == "speed_torque"]) == 7 * 6  # of 12 sides, in pairs


def test_retimed_motion_keeps_different_upper_and_lower_torque_limits():
    bare = load(urdf("seven_r"))
    k = 1
    most, least = 1.5 * gravity_of(bare, 6)[k], -4.0 * gravity_of(bare, 6)[k]
    name = bare.joint_names[k]
    robot = arm_with("seven_r", {"limits": {name: {"max_effort": float(most), "min_effort": float(least)}}})
    assert robot.limits.effort[k] == most  # for users of a single symmetric limit
    _, tau, _ = pinocchio_along("seven_r", robot, retime_motion(robot, waypoints(bare, 6)))
    assert tau[:, k].max() <= most and tau[:, k].min() >= least
    assert max(tau[:, k].max() / most, tau[:, k].min() / least) > 0.9


def test_drive_friction_reduces_available_torque_and_adds_to_power():
    joints = load(urdf("seven_r")).joint_names
    limits = {"drives": {name: {**SHEET, "max_current": 40.0, "max_power": 150.0, "coulomb": 4.0} for name in joints}}
    robot = arm_with("seven_r", limits)
    motion = retime_motion(robot, waypoints(robot, 7))
    q, qd, qdd, qddd = motion(np.linspace(0.0, motion.duration, N_SAMPLES))
    used = utilizations(robot.drive_limits, *robot.torque_and_rate(q, qd, qdd, qddd), qd)
    assert TIGHT * 0.97 < used.max() <= 1.0
    with pytest.raises(InputError, match="Coulomb friction takes all of the current of joint1"):
        retime_motion(arm_with("seven_r", {"drives": {joints[0]: {**SHEET, "max_current": 0.1, "coulomb": 4.0}}}),
                      waypoints(robot, 7))


def test_retiming_is_rejected_when_a_drive_cannot_hold_gravity():
    robot = load(urdf("seven_r"))
    weak = arm_with("seven_r", {"drives": {"joint2": {**SHEET, "max_current": 0.5}}})
    with pytest.raises(InputError, match=r"times the current of joint2 at s = .*no speed is slow enough"):
        retime_motion(weak, waypoints(robot, 0))


@pytest.mark.parametrize("drive, said", [
    ({"supply_voltage": 48.0}, "drives.joint2.torque_constant is missing, which supply_voltage needs"),
    ({**SHEET, "back_emf_constant": 0.1, "velocity_constant": 10.0}, "give one of them"),
    ({**SHEET, "supply_voltage": 48.0, "current_convention": "rms"}, "drives.joint2.back_emf_constant is missing"),
    ({"efficiency": 1.2}, "a number up to 1 is needed"),
    ({"speed_torque_curve": [[0.0, 10.0], [1.0, 2.0], [2.0, 1.5], [2.2, 0.0]]}, r"corner \(1, 2\) is inside"),
    ({"speed_torque_curve": [[1.0, 10.0], [-1.0, 2.0]]}, "zero speed and torque is not inside")])
def test_contradictory_data_sheets_are_rejected(drive, said):
    with pytest.raises(ModelError, match=said):
        arm_with("seven_r", {"drives": {"joint2": drive}})


def test_invalid_supplies_and_limits_are_rejected():
    with pytest.raises(ModelError, match="neither max_power nor max_braking_power"):
        arm_with("seven_r", {"supplies": {"rail": {}}})
    with pytest.raises(ModelError, match="names a joint twice: joint1"):
        arm_with("seven_r", {"supplies": {"rail": {"max_power": 1.0, "joints": ["joint1", "joint1"]}}})
    with pytest.raises(ModelError, match="min_effort needs"):
        arm_with("seven_r", {"limits": {"joint1": {"has_effort_limits": False, "min_effort": -3.0}}})


@pytest.mark.parametrize("convention, ratio, warned", [
    ("dc", 1.0, False), ("dc", 1.41, True), ("peak", 1.5, False), ("peak", 1.0, True), ("rms", 3.0, False),
    ("rms", 1.732, False), ("rms", 1.22, True)])
def test_inconsistent_constants_give_a_warning(convention, ratio, warned):
    robot = arm_with("seven_r", {"drives": {"joint1": {"torque_constant": 0.3, "back_emf_constant": 0.3 / ratio,
                                                       "current_convention": convention}}})
    assert any("torque_constant" in warning for warning in robot.warnings) == warned


def test_drive_utilization_is_relative_to_the_limit_of_the_same_sign():
    limit = DriveLimit("power", "rail", (0, 2), -50.0, 200.0, power=1.0)
    still = np.zeros((2, 3))
    tau, qd = np.array([[10.0, 7.0, 5.0], [-10.0, 7.0, 5.0]]), np.array([[4.0, 9.0, 2.0]] * 2)
    np.testing.assert_allclose(utilizations([limit], tau, still, qd), [[0.25], [0.6]])
    assert limit.description == "power of rail"
    assert convexity_problem([[0.0, 2.0], [3.0, 0.0]]) is None
