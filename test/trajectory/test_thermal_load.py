"""Thermal load of windings for repeated motions against a thermal differential equation, with Pinocchio's torques."""

import itertools

import numpy as np
import pytest

from rnea_ros import InputError, load
from rnea_ros.cli import main
from rnea_ros.model.drives import Drive
from rnea_ros.trajectory.retiming import ThermalAccumulator, retime_motion, slow_to_continuous_duty, thermal_drives
from support.oracles import PinocchioOracle
from support.scaling_cases import ROOT, urdf, waypoints

CONSTANTS = (0.3, 4.0, 60.0)  # s


def stepped(t, x, constants, start):
    """Return the thermal load (samples, k) by exact steps with the mean of the interval ends."""
    loads = [np.array(start, dtype=float)]
    for dt, a, b in zip(np.diff(t), x, x[1:]):
        mean = 0.5 * (a + b)
        loads.append(mean + (loads[-1] - mean) * np.exp(-dt / np.array(constants)))
    return np.array(loads)


def drives(continuous=1.0, constants=CONSTANTS):
    return [Drive(f"joint{k}", continuous_torque=continuous, thermal_time_constant=T) for k, T in enumerate(constants)]


@pytest.mark.parametrize("seed", range(3))
def test_thermal_load_in_parts_and_repeated_matches_the_differential_equation(seed):
    rng = np.random.default_rng(seed)
    t = np.cumsum(rng.uniform(0.001, 0.1, 300)) + 50.0
    t[200:] += 40.0  # a gap of many time constants
    tau = rng.normal(size=(300, 3))
    accumulator = ThermalAccumulator(drives(), ["joint0", "joint1", "joint2"])
    cuts = [0, *sorted(rng.integers(1, 300, 4).tolist()), 300]
    for a, b in itertools.pairwise(cuts):
        if b > a:
            accumulator.add(t[a:b], tau[a:b])
    found = accumulator.load(pause=2.0)
    once = stepped(t, tau**2, CONSTANTS, np.zeros(3))
    np.testing.assert_allclose(found.once, once.max(axis=0), rtol=0.1)  # the samples that are kept
    start = np.zeros(3)
    for _ in range(40):
        loads = stepped(t, tau**2, CONSTANTS, start)
        start = tau[-1]**2 + (loads[-1] - tau[-1]**2) * np.exp(-2.0 / np.array(CONSTANTS))
    np.testing.assert_allclose(found.repeated, np.maximum(loads.max(axis=0), start), rtol=0.1)
    np.testing.assert_allclose(found.repeated[2], loads[:, 2].max(), rtol=1e-3)


def arm(share, points):
    """Return the 7R arm; the continuous torque of the motor least loaded by gravity is a share of the rms torque of the
    fastest motion, that of the others five times as much.
    """
    bare = load(urdf("seven_r"))
    motion = retime_motion(bare, points)
    t = np.linspace(0.0, motion.duration, 4001)
    tau = bare.inverse_dynamics(*motion(t)[:3])
    rms = np.sqrt(np.mean(tau**2, axis=0))
    stands = np.full(7, 5.0 * share)
    stands[np.argmin(np.sqrt(np.mean(bare.gravity(motion(t)[0]) ** 2, axis=0)) / rms)] = share
    return load(urdf("seven_r"), {"version": 1, "drives": {
        joint: {"continuous_torque": float(torque), "thermal_time_constant": 20.0}
        for joint, torque in zip(bare.joint_names, stands * rms)}})


def closed(points):
    return np.concatenate((points, points[:1]))


@pytest.mark.parametrize("pause", [0.0, 0.5])
def test_motion_slowed_to_continuous_duty_reaches_the_thermal_limit(pause):
    points = closed(waypoints(load(urdf("seven_r")), 4))
    robot = arm(0.7, points)
    fast = retime_motion(robot, points)
    slow = slow_to_continuous_duty(robot, fast, pause)
    assert slow.duration > fast.duration and "slowed to" in slow.notes[-1]
    t = np.linspace(0.0, slow.duration, 2001)
    oracle = PinocchioOracle(urdf("seven_r"), robot)
    tau = np.array([oracle.torque(*state, {}) for state in zip(*slow(t)[:3])])
    continuous = np.array([drive.continuous for drive in thermal_drives(robot)])
    load_, x = np.zeros(7), (tau / continuous) ** 2
    for _ in range(int(12 * 20.0 / slow.duration)):
        loads = stepped(t, x, [20.0] * 7, load_)
        load_ = x[-1] + (loads[-1] - x[-1]) * np.exp(-pause / 20.0)
    assert 0.999 < max(loads.max(), load_.max()) < 1.0005


def test_motion_below_the_thermal_limit_is_not_slowed():
    points = closed(waypoints(load(urdf("seven_r")), 4))
    robot = arm(2.0, points)
    fast = retime_motion(robot, points)
    assert slow_to_continuous_duty(robot, fast) is fast


def test_motion_that_overheats_at_any_speed_is_rejected():
    points = closed(waypoints(load(urdf("seven_r")), 4))
    robot = arm(0.01, points)
    with pytest.raises(InputError, match="even at 2% of the speed"):
        slow_to_continuous_duty(robot, retime_motion(robot, points))
    with pytest.raises(InputError, match="declare continuous_current or continuous_torque"):
        slow_to_continuous_duty(bare := load(urdf("seven_r")), retime_motion(bare, points))
    with pytest.raises(InputError, match="pause is -1"):
        slow_to_continuous_duty(robot, retime_motion(robot, points), -1.0)


def test_commands_report_the_thermal_load(tmp_path, capsys):
    file = tmp_path / "arm.robot.yaml"
    names = load(urdf("seven_r")).joint_names
    sheet = ("{continuous_torque: 150.0, thermal_time_constant: 20.0, gear_ratio: 100.0, torque_constant: 0.1, "
             "resistance: 0.5, supply_voltage: 48.0}")
    file.write_text("version: 1\ndrives:\n" + "".join(f"  {name}: {sheet}\n" for name in names))
    points = closed(waypoints(load(urdf("seven_r")), 4))
    table = np.column_stack((np.arange(len(points)), points))
    header = ",".join(["t", *(f"q_{name}" for name in names)])
    np.savetxt(tmp_path / "in.csv", table, delimiter=",", comments="", header=header)
    robot = str(ROOT / "urdf" / "seven_r.urdf")
    out, again, plot = (str(tmp_path / name) for name in ("out.csv", "torque.csv", "torque.png"))
    main.main(["retime", robot, str(tmp_path / "in.csv"), "--robot-file", str(file), "-o", out, "--repeated", "1.0",
          "--rate", "200", "--plot", plot])
    said = capsys.readouterr().out
    assert "thermal load of joint2: at most" in said and "voltage" in said
    main.main(["torque", robot, out, "--robot-file", str(file), "-o", again, "--plot", plot])
    said = capsys.readouterr().out
    assert said.count(" % of its ") >= len(names) and "thermal load of joint2: at most" in said
