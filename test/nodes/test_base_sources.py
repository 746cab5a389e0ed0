"""Sources of base motion, without a node: sensor streams evaluated at any instant, and rejected messages."""

from __future__ import annotations

import math
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("nav_msgs")
pytest.importorskip("pinocchio")

from rclpy.serialization import serialize_message

from rnea_ros import load
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.base import pose_difference
from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE
from rnea_ros.nodes.dynamics.served_robot import no_loads, served
from rnea_ros.nodes.scaling.robot import ScaledRobot, base_orientation
from support.oracles import worst
from support.ros_helpers import stamp
from support.ship_bench import FiveBarOnShip, Ship, base_at

ROOT = Path(__file__).parents[2]
STEP, START, LAG = 0.004, 1000.0, 0.03
PACE = 3.0


class BaseSourceHarness:
    """Served robot on a moving base, with sensor messages of a simulated ship, without a node."""

    def __init__(self, ship, robot=None, **values):
        self.ship, self.received = ship, {}
        values = {entry.name: entry.default for entry in DYNAMICS_TABLE} | {"base.timeout": 100.0} | values
        self.served = served(robot or ship.robot, values)
        self.served.configure(values)
        self.served.connect(SimpleNamespace(publisher=lambda kind, name: None, clock=time.time_ns,
                                            subscribe=lambda kind, name, callback: self.received.__setitem__(name, callback)))

    def receive(self, topic, message, t):
        message.header.stamp = stamp(START + t)
        self.received[topic](serialize_message(message))

    def receive_all(self, t):
        for topic in self.received:
            self.receive(topic, {"~/base_odometry": self.ship.odometry,
                                 "~/base_state": lambda t: self.ship.state(t, START + t),
                                 "~/base_imu": lambda t: self.ship.imu(t, orientation=False)}[topic](t), t)

    def dynamics(self, t):
        unmeasured = np.full((4, len(self.served.optional)), np.nan)
        return self.served.dynamics(self.ship.joints(t), unmeasured, no_loads, round((START + t) * 1e9))

    @property
    def base(self):
        return self.served.base_motion[0]

    def errors(self, t):
        """Return the errors of torque and rate."""
        found = self.dynamics(t)
        return worst(found.tau, self.ship.forces(t)[6:]), worst(found.tau_rate, self.ship.rates(t)[6:])

    @property
    def drops(self):
        return {stream.name: dict(stream.dropped) for stream in self.served.streams}


@pytest.fixture(scope="module")
def ship():
    return Ship(PACE)


@pytest.mark.parametrize("source", ["imu", "odometry", "odometry+imu"])
def test_regular_streams_are_estimated_at_the_requested_instant(ship, source):
    """The streams have no noise; test_base_imu_node.py measures errors with noise."""
    desk = BaseSourceHarness(ship, **{"base.source": source, "motion_source": "estimated"})
    found = []
    for k in range(300):
        desk.receive_all(k * STEP)
        if k > 200:
            found.append(desk.errors(k * STEP - LAG))
            base, acceleration, _jerk = base_at(k * STEP - LAG, PACE)
            w = base.velocity[3:]
            assert worst(desk.base.state.velocity[3:], w) < 1e-4
            if source != "imu":
                assert max(pose_difference(desk.base.state, base)) < 1e-3
                assert worst(desk.base.state.acceleration, acceleration) < 1e-3
            assert (desk.base.has_orientation, desk.base.has_position) == (source != "imu",) * 2
    assert np.max(found, axis=0)[0] < 1e-3 and np.max(found, axis=0)[1] < 3e-2
    assert not any(desk.drops.values()) and "readings_hz" in str(desk.served.findings())


@pytest.mark.parametrize("source", ["state", "imu", "odometry", "odometry+imu"])
def test_results_are_exact_when_derivatives_of_the_base_motion_are_given(ship, source):
    desk = BaseSourceHarness(ship, **{"base.source": source, "base.motion_source": "desired"})
    for t in np.linspace(0.0, 2.0, 9):
        desk.receive_all(t)
        assert max(desk.errors(t)) < 1e-8
        found = desk.base.message()
        assert math.isnan(found.pose.position.x) is (source == "imu")
        assert worst(desk.base.state.jerk, base_at(t, PACE)[2]) < 1e-12


def test_base_states_between_joint_states_are_interpolated(ship):
    """Base states every 10 ms: torques between them by Pinocchio; beyond the newest one for a few milliseconds."""
    desk = BaseSourceHarness(ship)
    for t in np.arange(0.0, 0.3, 0.01):
        desk.receive_all(t)
    found = [desk.errors(t) for t in (0.1, 0.1013, 0.155, 0.2381)]
    assert np.max(found, axis=0)[0] < 1e-6 and np.max(found, axis=0)[1] < 1e-3
    assert worst(desk.base.state.position, base_at(0.2381, PACE)[0].position) < 1e-12
    torque, rate = desk.errors(0.294)
    assert torque < 2e-3 and rate < 0.1


@pytest.mark.parametrize("source", ["state", "imu", "odometry"])
def test_late_base_state_beyond_the_tolerance_is_rejected_with_the_remedy(ship, source):
    desk = BaseSourceHarness(ship, **{"base.source": source, "motion_source": "desired"})
    for t in np.arange(0.0, 1.0, STEP):
        desk.receive_all(t)
    with pytest.raises(Rejected, match=r"is 0.0\d+ s older than the joint state.* input_wait, of about 0.16 s") as refused:
        desk.dynamics(t + 0.08)
    name = {"state": "base_state", "imu": "base_imu", "odometry": "base_odometry"}[source]
    assert refused.value.reason == f"{name}_late"
    wider = BaseSourceHarness(ship, **{"base.source": source, "motion_source": "desired", "input_tolerance": 0.1})
    for t in np.arange(0.0, 1.0, STEP):
        wider.receive_all(t)
    wider.dynamics(t + 0.08)


def test_torques_of_a_five_bar_on_a_moving_base_are_exact():
    ship = FiveBarOnShip()
    robot = load(ship.bar.urdf.encode(), ship.file_content())
    desk = BaseSourceHarness(ship, robot)
    desk.served.prepare(no_loads)
    assert "loops" in desk.served.kind and set(desk.served.solved) == {"left_elbow", "right_elbow"}
    for t in np.linspace(0.0, 2.0, 9):
        desk.receive_all(t)
        assert max(desk.errors(t)) < 1e-8
    assert "loops.followed" in desk.served.findings()


def test_jump_in_odometry_drops_one_message_and_continues_from_the_new_pose(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "odometry"})
    for k in range(62):
        message = ship.odometry(k * STEP)
        message.pose.pose.position.x += 5.0 if k >= 50 else 0.0
        desk.receive("~/base_odometry", message, k * STEP)
    assert desk.drops == {"base_odometry": {"base_odometry_jumped": 1}}
    before, after = (desk.served._base.source._odometry.pose(round((START + k * STEP) * 1e9)).position for k in (49, 60))
    assert abs(before[0] - base_at(49 * STEP, PACE)[0].position[0]) < 1e-9
    assert abs(after[0] - base_at(60 * STEP, PACE)[0].position[0] - 5.0) < 1e-9


def test_base_stamps_of_another_clock_are_rejected(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "imu", "base.timeout": 1.0})
    for k in range(100):
        desk.receive("~/base_imu", ship.imu(k * STEP), k * STEP)
    for t in (-10.0, 10.0):
        with pytest.raises(Rejected, match=r"9\.6|10\.") as refused:
            desk.dynamics(t)
        assert refused.value.reason == "base_imu_apart"


def test_motion_after_the_first_imu_messages_is_rejected(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "imu"})
    for k in range(3):
        desk.receive("~/base_imu", ship.imu(k * STEP), k * STEP)
    with pytest.raises(Rejected, match="the estimator needs more messages on ~/base_imu") as refused:
        desk.dynamics(2 * STEP)
    assert refused.value.reason == "base_imu_history_too_short" and refused.value.passing


def test_imu_message_with_zero_quaternion_is_accepted_without_orientation(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "imu"})
    message = ship.imu(0.0)
    for axis in "xyzw":
        setattr(message.orientation, axis, 0.0)
    desk.receive("~/base_imu", message, 0.0)
    message.header.frame_id = ""  # of the root link
    desk.receive("~/base_imu", message, STEP)
    assert not any(desk.drops.values())


def test_samples_are_discarded_when_the_clock_is_set(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "odometry+imu"})
    for k in range(100):
        desk.receive_all(k * STEP)
    assert desk.dynamics(99 * STEP)
    desk.served.forget()
    with pytest.raises(Rejected, match="no usable message"):
        desk.dynamics(99 * STEP)
    desk.receive_all(0.0)  # no step back after the reset
    assert not any(desk.drops.values())


def test_missing_odometry_leaves_results_that_need_no_pose(ship):
    desk = BaseSourceHarness(ship, **{"base.source": "odometry+imu", "base.motion_source": "desired", "base.timeout": 10.0})
    desk.receive_all(0.0)
    assert max(desk.errors(0.0)) < 1e-8 and not desk.served.warnings_now()
    for topic, message in (("~/base_imu", ship.imu(0.5, orientation=False)), ("~/base_state", ship.state(0.5, START + 20.0))):
        desk.receive(topic, message, 20.0)
    found = desk.served.dynamics(ship.joints(0.5), np.zeros((4, 0)), no_loads, round((START + 20.0) * 1e9))
    assert worst(found.tau, ship.forces(0.5)[6:]) < 1e-8 and np.isnan(found.gravity).all()
    assert not desk.base.has_position and "only results that need no pose are published" in desk.served.warnings_now()[0]


def test_parameters_without_effect_are_reported():
    """Parameters platform.source for an arm and base.source for a fixed base are reported."""
    arm = load(ROOT / "urdf/rr.urdf", backend="reference")
    defaults = {entry.name: entry.default for entry in DYNAMICS_TABLE}
    assert not served(arm, defaults).extra_warnings
    reported = served(arm, defaults | {"platform.source": "pose", "base.source": "imu"}).warnings
    assert [text.split(" is ")[0] for text in reported] == ["base.source", "platform.source"]
    assert "a parallel robot; this robot is a" in reported[1]
    bolted = ScaledRobot(arm, base_orientation({"base.source": "imu", "base.timeout": 0.1}))
    assert any("base.source is ignored" in text for text in bolted.warnings)
