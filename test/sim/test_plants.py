"""Plants: MuJoCo reads the URDF and simulates the motion; its motor torques are compared with ours."""

from __future__ import annotations

import subprocess
import sys
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("mujoco")

from rnea_ros import BaseState, InputError, RneaError, load
from rnea_ros.sim import machines
from rnea_ros.sim.machines import MACHINES, QUADRUPEDS, machine
from rnea_ros.sim.plant import (
    CHANGE,
    STANCE,
    SWING,
    Noise,
    Plant,
    Sensors,
    phases,
    torques,
    with_rates,
)
from rnea_ros.sim.scene import mujoco, scene
from support.leg_errors import errors_by_leg_and_phase, torque_rates
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
URDF = ROOT / "urdf"
STANDING, TROTTING = 1.0, 2.0  # s, when the second begins and ends
PERCENT = 0.01  # of the peak torque: requirement
EXACT = 1e-6  # accuracy with MuJoCo's contact solver at its default tolerance


def made(name):
    own = (URDF / f"{name}.urdf", URDF / f"{name}.robot.yaml") if name in ("five_bar", "palletiser") else ()
    return machine(name, *own)


def played(device, seconds, every=1):
    steps = round(seconds / device.plant.timestep / every)
    return list(islice(device.instants(every), steps))


def errors(robot, device, instants):
    """Return the errors of our torques relative to the peak of each motor (samples, n)."""
    truth = np.array([instant.tau for instant in instants])
    found = np.array([torques(robot, instant, device.motors) for instant in instants])
    return np.abs(found - truth) / np.abs(truth).max(axis=0)


@pytest.fixture(scope="module")
def solo():
    device = machine("solo12")
    return device, played(device, TROTTING, every=2)


def test_motor_torques_of_a_standing_and_trotting_solo12_match_mujoco(solo):
    device, instants = solo
    forces = np.array([[np.linalg.norm(six) for six in instant.wrenches.values()] for instant in instants])
    t = np.array([instant.t for instant in instants])
    phase = phases(t, forces)
    assert (phase[t > 0.5][t[t > 0.5] < STANDING - 0.05] == STANCE).all()
    assert {STANCE, SWING, CHANGE} == set(phase.ravel())
    assert instants[-1].base.position[0] > 0.1 and instants[-1].base.rotation[2, 2] > 0.99  # it walks, and does not fall
    share = errors(device.plant.robot, device, instants)
    assert share.max() < EXACT < PERCENT
    truth = np.array([instant.tau for instant in instants])
    legs = [(str(leg), np.arange(3 * leg, 3 * leg + 3)) for leg in range(4)]
    rows = errors_by_leg_and_phase(truth * (1.0 + 0.5 * PERCENT), truth, phase, legs)
    assert sum(row.samples for row in rows) == 4 * len(t) and max(row.worst for row in rows) == pytest.approx(0.5 * PERCENT)


def test_foot_forces_rotors_and_friction_change_the_torques(solo):
    """The comparison detects missing foot forces, rotors or friction."""
    device, instants = solo
    for changed in ({"base": "floating"}, {"base": "floating", "gravity": [0.0, 0.0, -9.0]}):
        robot = load(QUADRUPEDS["solo12"].urdf, {"version": 1, **changed}, backend="reference")
        assert errors(robot, device, instants[600::100]).max() > PERCENT
    lifted = [instant._replace(wrenches={}) for instant in instants[600::100]]
    assert errors(device.plant.robot, device, lifted).max() > 0.3


def test_simulated_base_sensors_are_consistent_with_the_base_motion(solo):
    """Accelerometer: acceleration minus gravity; gyroscope: angular velocity; rates match differences."""
    device, instants = solo
    for instant in instants[::50]:
        free = instant.base.acceleration[:3] - instant.base.into_base([0.0, 0.0, -9.81])
        np.testing.assert_allclose(instant.accelerometer, free, atol=1e-9)
        np.testing.assert_allclose(instant.gyro, instant.base.velocity[3:], atol=1e-12)
    standing = list(with_rates(played(device, 0.2)))[-20:]
    for before, here, after in zip(standing, standing[1:], standing[2:]):
        slope = (after.instant.qdd - before.instant.qdd) / (after.instant.t - before.instant.t)
        np.testing.assert_allclose(here.jerk, slope, atol=1e-9)


def test_torque_rates_match_differences_of_motor_torques(solo):
    """Difference quotients over two milliseconds bound the accuracy, at constant contacts."""
    device, instants = solo
    rates = list(with_rates(instants))
    forces = np.array([[np.linalg.norm(six) for six in one.instant.wrenches.values()] for one in rates])
    steady = (phases(np.array([one.instant.t for one in rates]), forces) != CHANGE).all(axis=1)
    slopes = np.array([one.tau_rate for one in rates])
    some = np.flatnonzero(steady)[25::10]
    found = np.array([torque_rates(device.plant.robot, rates[k], device.motors) for k in some])
    share = np.abs(found - slopes[some]) / np.abs(slopes[steady]).max(axis=0)
    assert share.max() < 0.05 and np.sqrt(np.mean(share**2)) < 0.01 and len(some) > 50


@pytest.mark.parametrize("name", ["laikago"])
def test_second_quadruped_stands_and_its_torques_equal_mujoco(name):
    """More quadrupeds: benchmark/plants.md."""
    device = machine(name)
    robot = load(QUADRUPEDS[name].urdf, QUADRUPEDS[name].robot_file, backend="reference")
    instants = played(device, 1.6)
    assert instants[-1].base.rotation[2, 2] > 0.99
    assert errors(robot, device, instants[::160]).max() < EXACT


def test_motor_torques_of_a_five_bar_match_equality_constraints_of_mujoco():
    """MuJoCo's constraints are soft: torques agree up to that error."""
    device = made("five_bar")
    instants = played(device, 2.0)[50:]
    robot = device.plant.robot
    assert errors(robot, device, instants[::20]).max() < 1e-4 < PERCENT
    away = [np.abs(robot.close(instant.q[device.motors], guess=instant.q) - instant.q).max() for instant in instants[::100]]
    assert 0.0 < max(away) < 1e-5


def test_motor_torques_of_a_pushed_arm_match_mujoco():
    device = machine("touched")
    instants = played(device, 2.0, every=5)
    assert np.ptp([instant.wrenches["tool0"] for instant in instants], axis=0).max() > 20.0  # N
    assert errors(device.plant.robot, device, instants).max() < 1e-12


def test_plant_starts_at_any_state_and_is_reproducible():
    device = machine("solo12")
    turned = BaseState((1.0, 2.0, 3.0), (0.5, 0.5, 0.5, 0.5), (0.1, 0.2, 0.3, -0.1, 0.2, 0.4))
    device.plant.set_state(device.start, turned)
    instant = device.plant.exert(np.zeros(12))
    np.testing.assert_allclose(instant.base.vector(), turned.vector(), atol=1e-15)
    np.testing.assert_allclose(device.plant.joints[0], device.start)
    assert not any(six.any() for six in instant.wrenches.values())
    assert errors_of(device, instant) < 1e-12
    first, again = (played(device, 0.02)[-1] for _ in range(2))
    np.testing.assert_array_equal(first.q, again.q)


def errors_of(device, instant):
    return np.abs(torques(device.plant.robot, instant, device.motors) - instant.tau).max()


def test_sensor_noise_has_its_size_and_is_reproducible_by_seed(solo):
    instants = solo[1][-200:]
    noise = Noise(1e-3, 0.1, 0.2, 0.3, 0.4, 0.5)
    first, again = ([Sensors(noise, 3)(instant) for instant in instants] for _ in range(2))
    measured, other = ([sensors(instant) for instant in instants] for sensors in (Sensors(noise, 3), Sensors(Noise(), 3)))
    np.testing.assert_array_equal(first[0].qd, again[0].qd)
    for name, deviation in (("qd", 0.1), ("accelerometer", 0.2), ("gyro", 0.3)):
        off = np.array([getattr(one, name) - getattr(true, name) for one, true in zip(measured, instants)])
        assert off.std() == pytest.approx(deviation, rel=0.2)
        assert all((getattr(one, name) == getattr(true, name)).all() for one, true in zip(other, instants))
    assert np.abs(measured[0].q / 1e-3 - np.round(measured[0].q / 1e-3)).max() < 1e-9
    off = np.array([measured[k].wrenches["FL_FOOT"] - instants[k].wrenches["FL_FOOT"] for k in range(200)]).std(axis=0)
    np.testing.assert_allclose(off, [0.4] * 3 + [0.5] * 3, rtol=0.3)


def test_unsupported_robots_have_no_plant(monkeypatch):
    mimic = arm({}, {"mimic": {"joint": "j1"}})
    rough = {"version": 1, "friction": {"j1": {"coulomb": 1.0}}}
    for urdf, file, words in ((mimic, None, r"mimic joints \(j2\)"), (arm({}), rough, "Coulomb"),
                              (URDF / "stewart.urdf", URDF / "stewart.robot.yaml", "cannot be simulated")):
        with pytest.raises(InputError, match=words):
            scene(urdf, file)
    sliding = yaml.safe_load((URDF / "five_bar.robot.yaml").read_text())
    sliding["loops"]["cut_joints"]["tip"]["type"] = "cylindrical"
    with pytest.raises(InputError, match="'tip' is cylindrical; for MuJoCo"):
        scene(URDF / "five_bar.urdf", sliding)
    with pytest.raises(InputError, match="machine 'solo' is unknown; there are solo12"):
        machine("solo")
    monkeypatch.setattr(machines, "EXAMPLE_PACKAGE", "no-such-package")
    with pytest.raises(RneaError, match=r"\.\[sim\]"):
        machine("a1")
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(RneaError, match=r"needs MuJoCo.*\.\[sim\]"):
        mujoco()


def test_torques_with_massless_links_and_prismatic_joints_match_mujoco():
    urdf = arm({"kind": "prismatic", "axis": (0.0, 1.0, 0.0)}, {"kind": "continuous", "rpy": (0.3, 0.2, 0.1)},
               {"xyz": (0.1, 0.2, 0.3)})
    plant = Plant(scene(urdf, {"version": 1, "drives": {"j2": {"rotor_inertia": 1e-3, "gear_ratio": 10.0, "viscous": 0.3}}}))
    rng = np.random.default_rng(0)
    plant.set_state(rng.normal(size=3))
    for _ in range(30):
        instant = plant.exert(rng.normal(size=3))
        found = plant.robot.inverse_dynamics(instant.q, instant.qd, instant.qdd)
        np.testing.assert_allclose(found, instant.tau, atol=1e-10)
        plant.advance()


def test_mujoco_is_imported_on_first_use_only():
    code = "import sys, rnea_ros, rnea_ros.sim.machines, rnea_ros.sim.plant; print('mujoco' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False" and MACHINES
