"""Torque and torque rate of arms from encoder positions only, with default settings."""

import itertools

import numpy as np
import pytest

from rnea_ros import Robot
from rnea_ros.estimation.motion_estimator import LAG, MotionEstimator
from rnea_ros.estimation.smoothing import estimate_recording
from support.joint_state_streams import Sensor, estimates, joint_states, torque_errors
from support.motions import TURN, jumping, smooth
from support.robots import seeds
from support.scaling_cases import ARMS, urdf

SEEDS = (21, 22)[:len(seeds(1))]  # both in `make campaign`
TURNTABLE = """<robot name="turntable"><link name="base"/><link name="table"><inertial><mass value="20"/>
<inertia ixx="0.6" iyy="0.6" izz="1.0" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="turn" type="continuous"><parent link="base"/><child link="table"/><axis xyz="0 0 1"/></joint></robot>"""


@pytest.fixture(scope="module")
def arms():
    files = [urdf(name) for name in ARMS]
    return [Robot.from_urdf(file) for file in files if file]


def root_mean_square(values):
    return float(np.sqrt(np.mean(np.square(values))))


@pytest.mark.parametrize(("kind", "sensor", "most"), [
    (smooth, Sensor(), {0.0: 0.17, LAG: 0.10}),
    (jumping, Sensor(), {LAG: 0.25}),
    (smooth, Sensor(15), {0.05: 0.15}),
    (smooth, Sensor(jitter=5e-4, lost=0.01), {0.05: 0.12}),
    (smooth, Sensor(rate=1000.0, repeated=8), {0.05: 0.17}),
], ids=["smooth", "jerk that jumps", "coarse", "jitter and losses", "125 Hz at 1 kHz"])
def test_torque_rate_error_is_below_its_bound(arms, kind, sensor, most):
    found = {lag: [] for lag in most}
    for robot, seed in itertools.product(arms, SEEDS):
        stream = joint_states(np.random.default_rng(seed), kind, robot.n, sensor)
        live = estimates(MotionEstimator(robot.n, max(most)), stream, tuple(most))
        for lag, estimate in zip(most, live):
            found[lag].append(torque_errors(robot, stream, *estimate))
    for lag, errors in found.items():
        tau, rate, tau_within, rate_within = np.transpose(errors)[:4]
        assert root_mean_square(rate) < most[lag] and root_mean_square(tau) < 0.02
        assert tau_within.mean() > 0.9 and rate_within.min() > 0.9


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("sensor", [Sensor(), Sensor(rate=1000.0, repeated=8)], ids=["500 Hz", "125 Hz at 1 kHz"])
def test_torque_and_rate_errors_of_a_recording_are_below_their_bounds(arms, seed, sensor):
    """The recording has positions only."""
    for robot in arms:
        stream = joint_states(np.random.default_rng(seed), smooth, robot.n, sensor)
        found = estimate_recording(stream.stamps, stream.q)
        motion = np.array([found.q, found.qd, found.qdd, found.qddd])
        tau, rate, tau_within, rate_within = torque_errors(robot, stream, stream.stamps, motion, found.deviation)[:4]
        assert tau < 0.005 and rate < 0.06 and tau_within > 0.9 and rate_within > 0.9


@pytest.mark.parametrize("seed", range(3))
def test_wrapped_joint_at_constant_speed_needs_no_torque(seed):
    rng, t, table = np.random.default_rng(seed), np.arange(0.0, 4.0, 0.002), Robot.from_urdf(TURNTABLE.encode())
    q = rng.uniform(-6.0, 6.0) * t[:, None]
    step = TURN / 2.0**17
    wrapped = np.round((q - TURN * np.round(q / TURN)) / step + 0.3) * step
    estimator, efforts = MotionEstimator(1, turning=[0]), []
    for seconds, position in zip(t, wrapped):
        estimator.push(round(seconds * 1e9), position)
        if seconds > 1.0:
            efforts.append(table.torque_and_rate(*estimator.estimate().motion)[0])
    assert np.abs(efforts).max() <= 0.01
