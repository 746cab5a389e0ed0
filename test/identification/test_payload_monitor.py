"""Payload monitor: a wrong payload is detected despite errors of masses, friction, gains and noise. Torques by Pinocchio."""

from __future__ import annotations

import re

import numpy as np
import pinocchio as pin
import pytest

from rnea_ros import Robot
from rnea_ros.identification.payload import PayloadEstimator, PayloadMonitor, PayloadMonitorOptions, tool_link
from support.oracles import example_urdfs
from support.plant import panda

HZ, STEP_S = 25.0, 5.0  # rate of the samples [Hz], time between two checks [s]
COM = np.array([0.03, -0.02, 0.08])


def example(name: str) -> str:
    """Return a URDF of the package example-robot-data with a fixed gripper."""
    text = next(file for file in example_urdfs() if file.stem == name).read_text(encoding="utf-8")
    return re.sub(r'(<joint name="jointGripper" type=)"revolute"', r'\1"fixed"', text)


ARMS = {"panda": (panda, [0.0, -0.6, 0.0, -2.0, 0.0, 1.6, 0.8], "panda_link7"),
        "z1": (lambda: example("z1"), [0.0, 1.4, -1.2, -0.3, 0.2, 0.2], "link06"),
        "xarm7": (lambda: example("xarm7"), [0.0, -0.3, 0.0, 1.2, 0.0, 1.2, 0.0], "link7"),
        "ur5": (lambda: example("ur5_robot"), [0.0, -1.2, 1.4, -1.0, 1.2, 0.3], "wrist_3_link")}
MADE: dict[str, Robot] = {}


def arm(name: str) -> Robot:
    if name not in MADE:
        MADE[name] = Robot.from_urdf(ARMS[name][0]())
    return MADE[name]


def samples(name: str, seed: int, seconds: float, mass: float = 0.0, link_error: float = 0.05) -> np.ndarray:
    """Return noisy motion and measured torque (k, 4, n) of a robot that differs from its model.

    Link masses are off by link_error; friction is unknown, in part by load; efforts have wrong gains (2 %), offsets and noise
    (0.3 % of the limit).
    """
    urdf, rest, tool = ARMS[name]
    rng, model = np.random.default_rng(seed), pin.buildModelFromXML(urdf())
    n = model.nv
    for body in list(model.inertias)[1:]:
        factor = 1.0 + link_error * rng.choice([-1.0, 1.0])
        body.mass *= factor
        body.inertia = body.inertia * factor
    limit = np.where((model.effortLimit > 0.0) & (model.effortLimit < 1e3), model.effortLimit, 50.0)
    coulomb = 0.01 * limit * rng.uniform(0.5, 2.0, n)
    viscous, gain, offset = 0.5 * coulomb, 1.0 + 0.02 * rng.uniform(-1.0, 1.0, n), 0.003 * limit * rng.uniform(-1.0, 1.0, n)
    w, a, phase = rng.uniform(0.3, 1.5, (3, n)), 0.2 * rng.uniform(0.3, 1.0, (3, n)), rng.uniform(0.0, 6.28, (3, n))
    if mass:
        frame = model.frames[model.getFrameId(tool)]
        model.appendBodyToJoint(frame.parentJoint, pin.Inertia(mass, COM, mass * 9e-4 * np.eye(3)), frame.placement)
    x = w * np.arange(0.0, seconds, 1.0 / HZ)[:, None, None] + phase
    q, qd, qdd = rest + (a * np.sin(x)).sum(1), (a * w * np.cos(x)).sum(1), -(a * w * w * np.sin(x)).sum(1)
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd)])
    tau = gain * (tau + (coulomb + 0.03 * np.abs(tau)) * np.tanh(qd / 0.01) + viscous * qd) + offset
    noise = rng.standard_normal((4, *q.shape)) * np.array([1e-4, 3e-3, 0.1, 0.0])[:, None, None]
    noise[3] = 0.003 * limit * rng.standard_normal(q.shape)
    return (np.array((q, qd, qdd, tau)) + noise).transpose(1, 0, 2)


def findings(monitor: PayloadMonitor, data: np.ndarray, step: float = STEP_S):
    """Yield (time, finding) of the checks while data come in."""
    for end in np.arange(10.0, len(data) / HZ + 1e-9, step):
        yield end, monitor.check(data[max(0, round((end - 60.0) * HZ)):round(end * HZ)], 1.0 / HZ)


@pytest.mark.parametrize("name", ["panda", "z1", "ur5"])
def test_monitor_reports_no_payload_in_ten_minutes_without_one(name):
    monitor = PayloadMonitor(arm(name), ARMS[name][2])
    assert not [(end, str(found)) for end, found in findings(monitor, samples(name, 1, 600.0), 20.0) if found]
    assert 0.1 <= monitor.detectable < {"panda": 0.5, "z1": 0.5, "ur5": 1.2}[name]


@pytest.mark.parametrize("name", ["panda", "z1"])
def test_picked_up_payload_of_half_a_kilogram_is_detected_within_seconds(name):
    monitor, before = PayloadMonitor(arm(name), ARMS[name][2]), 60.0
    data = np.concatenate((samples(name, 2, before), samples(name, 2, 2.0 * before, 0.5)[round(before * HZ):]))
    times = [(end, found) for end, found in findings(monitor, data) if found]
    assert before < times[0][0] <= before + 20.0
    found = times[-1][1]
    assert found.since_reference and abs(found.excess - 0.5) < 4.0 * found.std < 0.4
    assert abs(found.payload.mass - 0.5) < 0.15 and np.linalg.norm(found.payload.com - COM) < 0.08
    assert "payload.mass: 0." in str(found) and f"payload.link: {ARMS[name][2]}" in str(found)


@pytest.mark.parametrize(("seed", "within"), [(2, 45.0), (3, 30.0)])
def test_payload_of_half_a_kilogram_is_detected_on_a_heavier_arm(seed, within):
    """Friction that grows with the load of the shoulder has the largest influence; its coefficient is fitted."""
    monitor, before = PayloadMonitor(arm("ur5"), ARMS["ur5"][2]), 60.0
    data = np.concatenate((samples("ur5", seed, before), samples("ur5", seed, 2.0 * before, 0.5)[round(before * HZ):]))
    times = [(end, found) for end, found in findings(monitor, data) if found]
    assert before < times[0][0] <= before + within
    assert abs(times[-1][1].excess - 0.5) < 4.0 * times[-1][1].std


def test_load_dependent_friction_is_not_estimated_as_a_mass():
    """Friction of 8 % of the torque is the only model error, and the motion has no noise."""
    robot, (urdf, _, link) = arm("ur5"), ARMS["ur5"]
    q, qd, qdd, _ = samples("ur5", 5, 40.0).transpose(1, 0, 2)
    model = pin.buildModelFromXML(urdf())
    data = model.createData()
    tau = np.array([pin.rnea(model, data, *state) for state in zip(q, qd, qdd)])
    raw = PayloadEstimator(robot, link).raw(q, qd, qdd, tau + 0.08 * np.abs(tau) * np.tanh(qd / 0.01))
    assert abs(raw.theta[0]) < 1e-4 and np.sqrt(raw.covariance[0, 0]) < 1e-3


def test_payload_present_from_the_start_is_detected_where_masses_are_known():
    monitor = PayloadMonitor(arm("panda"), "panda_link7", PayloadMonitorOptions(masses=0.01))
    times = [end for end, found in findings(monitor, samples("panda", 3, 40.0, 0.5, link_error=0.01)) if found]
    assert times and times[0] <= 20.0


def test_applying_the_suggested_parameters_removes_the_finding():
    data = samples("z1", 4, 60.0, 1.5)
    monitor = PayloadMonitor(arm("z1"), "link06")
    found = [found for _, found in findings(monitor, data) if found][-1]
    assert not found.since_reference  # no reference is taken while a finding is reported
    parameters = found.parameters
    xx, xy, xz, yy, yz, zz = parameters["inertia"]
    inertia = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    monitor.use(arm("z1").with_payload("link06", parameters["mass"], parameters["com"], inertia))
    assert not [found for _, found in findings(monitor, data) if found]


def test_missing_declared_payload_is_detected():
    monitor = PayloadMonitor(arm("z1").with_payload("link06", 1.5, COM), "link06")
    found = [found for _, found in findings(monitor, samples("z1", 5, 30.0)) if found][-1]
    assert found.excess < -1.0 and found.declared == 1.5
    assert found.payload is None and found.parameters == {"link": "link06", "mass": 0.0}


def test_tare_serves_as_reference_of_the_monitor():
    monitor = PayloadMonitor(arm("xarm7"), "link7")
    empty, loaded = samples("xarm7", 6, 30.0), samples("xarm7", 6, 60.0, 0.4)[round(30.0 * HZ):]
    monitor.set_tare(PayloadEstimator(arm("xarm7"), "link7").raw(*empty.transpose(1, 0, 2)))
    found = [found for _, found in findings(monitor, loaded) if found][-1]
    assert found.since_reference and abs(found.payload.mass - 0.4) < 0.1


def test_robot_at_rest_gives_no_finding():
    robot, rng = arm("panda"), np.random.default_rng(7)
    rest = np.array(ARMS["panda"][1])
    torque = 1.3 * robot.gravity(rest)
    data = np.zeros((1000, 4, 7))
    data[:, 0], data[:, 3] = rest, torque + 0.05 * rng.standard_normal((1000, 7))
    monitor = PayloadMonitor(robot, "panda_link7")
    assert not [found for _, found in findings(monitor, data) if found]
    assert monitor.detectable > 1.0


def test_tool_link_is_the_last_link_or_the_hand_of_the_fingers():
    assert {name: tool_link(arm(name)) for name in ARMS} == {name: tool for name, (_, _, tool) in ARMS.items()}
    assert tool_link(Robot.from_urdf(example("panda"), backend="python")) == "panda_link7"
