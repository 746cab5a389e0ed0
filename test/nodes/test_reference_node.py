"""dynamics_node with motion source `reference` over DDS: a trajectory, scaled motions, or the state of a controller."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_ros import Robot
from rnea_ros.nodes.common.topics import duration
from support import controller_state_node, node_bench, scaling_bench
from support.node_bench import ARM, NAMES, NODE
from support.overspeed_motion import POINTS
from support.ros_helpers import ros_domain, stamp

try:
    from control_msgs.msg import JointTrajectoryControllerState as ControllerState
except ImportError:
    ControllerState = None

STAND_IN = Path(controller_state_node.__file__)
pytestmark = pytest.mark.ros
TIMES = (0.0, 0.3, 0.7, 1.0)
MOTION = [np.polynomial.Polynomial(c) for c in np.random.default_rng(3).normal(size=(3, 6))]


def truth(t: float, count: int = 4) -> np.ndarray:
    return np.array([[p.deriv(k)(t) for p in MOTION] for k in range(count)])


def trajectory(begin: float, names=NAMES, times=TIMES, **fields) -> JointTrajectory:
    made = JointTrajectory(joint_names=list(names))
    made.header.stamp = stamp(begin)
    for t in times:
        q, qd, qdd = truth(t, 3).tolist()
        point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd, time_from_start=duration(t))
        for name, values in fields.items():
            setattr(point, name, values)
        made.points.append(point)
    return made


def controller_state(when: float, motion: np.ndarray, given: int = 3):
    """Return a controller state with the first `given` derivatives."""
    made = (ControllerState or JointTrajectory)(joint_names=NAMES)
    made.header.stamp = stamp(when)
    q, qd, qdd = (row.tolist() if k < given else [] for k, row in enumerate(motion[:3]))
    point = JointTrajectoryPoint(positions=q, velocities=qd, accelerations=qdd)
    if ControllerState:
        made.reference, made.speed_scaling_factor = point, 1.0
    else:
        made.points = [point]
    return made


def wave(t: float) -> np.ndarray:
    w = np.array([1.3, 2.1, 3.0])
    return np.array([np.sin(w * t), w * np.cos(w * t), -w**2 * np.sin(w * t), -w**3 * np.cos(w * t)])


def scaled(when: float, phase: int = ScaledMotion.MOVING, **fields) -> ScaledMotion:
    made = ScaledMotion(phase=phase, joint_names=NAMES, position=[0.1] * 3, velocity=[0.2] * 3, acceleration=[0.3] * 3,
                        jerk=[0.4] * 3)
    made.header.stamp = stamp(when)
    for name, values in fields.items():
        setattr(made, name, values)
    return made


class ReferenceBench(node_bench.Bench):
    """Bench of a dynamics_node with trajectory, scaled motion and controller state as references."""

    program = "dynamics_node" if ControllerState else STAND_IN

    def begin(self) -> ReferenceBench:
        create = self.ros.node.create_publisher
        self.scaled = create(ScaledMotion, f"{NODE}/scaled_motion", 10)
        self.trajectories = create(JointTrajectory, f"{NODE}/joint_trajectory", 10)
        self.ready()
        self.controller = create(ControllerState or JointTrajectory, f"{NODE}/controller_state", 100)
        self.ros.until(lambda: all(publisher.get_subscription_count() for publisher in (
            self.scaled, self.trajectories, self.controller)))
        assert not self.ros.set(NODE, motion_source="reference", reference__source="trajectory")
        return self

    def publish_to(self, publisher, message) -> None:
        """Publish until the node has received the message: topics are independent, and best effort may lose messages."""
        before = int(self.diagnostics.next()["reference.received"])
        self._again(lambda: publisher.publish(message),
                    lambda: int(self.diagnostics.values["reference.received"]) > before)

    def at(self, seconds: float):
        """Return the result at a joint state with that stamp, whose positions do not belong to the reference."""
        return self._again(lambda: self._state(seconds, velocity=[]), lambda: self.answer(stamp(seconds), timeout=0.5))

    def refused(self, reason: str, seconds: float) -> None:
        before = int(self.diagnostics.next().get(f"dropped.joint_states.{reason}", 0))
        self._again(lambda: self._state(seconds), lambda: self.diagnostics.dropped("joint_states", reason) > before)

    def _state(self, seconds: float, **fields) -> None:
        self.clock = seconds - self.dt
        self.state(**fields)

    def _again(self, send: Callable[[], None], done: Callable[[], Any]) -> Any:
        """Repeat `send` until `done` returns a result."""
        for _ in range(120):
            send()
            end = time.monotonic() + 1.0
            while time.monotonic() < end:
                if found := done():
                    return found
                self.ros.step(0.02)
        raise AssertionError(f"nothing comes of it\n{self.process.log}")


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield ReferenceBench(ros, robot_description=ARM).begin()


def check(result, motion: np.ndarray, tolerance: float = 1e-9) -> None:
    expected = Robot.from_urdf(ARM).dynamics(*motion)
    for found, wanted in zip((result.position, result.velocity, result.acceleration, result.jerk), motion):
        np.testing.assert_allclose(found, wanted, rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(result.effort, expected.tau, rtol=1e-9, atol=1e3 * tolerance)
    np.testing.assert_allclose(result.effort_rate, expected.tau_rate, rtol=1e-9, atol=1e3 * tolerance)


def test_trajectory_reference_is_interpolated_as_by_the_controller(bench):
    bench.refused("reference_missing", bench.tick())
    begin = bench.clock + 0.02
    bench.publish_to(bench.trajectories, trajectory(begin))
    for t in (0.0, 0.1, 0.3, 0.55, 0.99):
        check(bench.at(begin + t), truth(t))
    check(bench.at(begin + 1.3), np.concatenate((truth(1.0, 1), np.zeros((3, 3)))))


@pytest.mark.parametrize(("reason", "names", "times", "fields"), [
    ("empty", NAMES, (), {}),
    ("unknown_joint", ["turn", "spin", "other"], TIMES, {}),
    ("duplicate_joint", ["turn", "spin", "turn"], TIMES, {}),
    ("times", NAMES, (0.0, 0.3, 0.3, 1.0), {}),
    ("not_finite", NAMES, TIMES, {"positions": [0.0, math.nan, 0.0]}),
    ("wrong_size", NAMES, TIMES, {"velocities": [0.0]}),
    ("velocity_missing", NAMES, TIMES, {"velocities": []}),
])
def test_invalid_reference_trajectory_is_rejected_and_the_previous_one_stays(bench, reason, names, times, fields):
    bench.publish_to(bench.trajectories, trajectory(bench.clock + 1.0, names, times, **fields))
    assert bench.diagnostics.dropped("reference", reason) >= 1
    assert bench.at(bench.tick()) is not None


@pytest.mark.parametrize(("reason", "later"), [("trajectory_past", -50.0), ("trajectory_far", 1e6)])
def test_reference_trajectory_far_in_the_past_or_future_is_rejected(bench, reason, later):
    bench.publish_to(bench.trajectories, trajectory(bench.clock + later))
    assert bench.diagnostics.dropped("reference", reason) >= 1


def test_scaled_motion_reference_times_out_and_invalid_messages_are_rejected(bench):
    assert not bench.ros.set(NODE, reference__source="scaled_motion")
    bench.refused("reference_missing", bench.tick())
    when = bench.clock + 1.0
    bench.publish_to(bench.scaled, scaled(when))
    check(bench.at(when), np.array([[value] * 3 for value in (0.1, 0.2, 0.3, 0.4)]))
    bad = [("unknown_joint", {"joint_names": [*NAMES[:2], "other"]}), ("joint_missing", {"joint_names": NAMES[:2]}),
           ("jerk_not_finite", {"jerk": [0.0, math.nan, 0.0]}), ("wrong_size", {"velocity": [0.0]})]
    for reason, fields in bad:
        bench.publish_to(bench.scaled, scaled(when + 0.01, **fields))
        assert bench.diagnostics.dropped("reference", reason) >= 1
    dt = 0.03  # extrapolated by its derivatives
    course = np.polynomial.Polynomial([0.1, 0.2, 0.3 / 2.0, 0.4 / 6.0])
    check(bench.at(when + dt), np.array([[course.deriv(k)(dt)] * 3 for k in range(4)]))
    bench.refused("reference_timeout", when + 0.2)
    rest = dict.fromkeys(("velocity", "acceleration", "jerk"), [0.0] * 3)
    bench.publish_to(bench.scaled, scaled(when + 0.3, ScaledMotion.ENDED, **rest))
    check(bench.at(when + 0.7), np.array([[0.1] * 3, *np.zeros((3, 3))]))  # a motion that has ended is at rest


def test_controller_state_reference_is_extrapolated_and_derivatives_are_estimated(bench):
    assert not bench.ros.set(NODE, reference__source="controller_state")
    bench.refused("reference_missing", bench.tick())
    begin = bench.clock + 0.02
    for k in range(6):
        bench.publish_to(bench.controller, controller_state(begin + 0.01 * k, truth(0.01 * k)))
    check(bench.at(begin + 0.05), truth(0.05), 1e-5)
    dt = 0.002  # extrapolated by its derivatives
    np.testing.assert_allclose(bench.at(begin + 0.05 + dt).position, truth(0.05 + dt)[0], atol=1e-6)
    bench.refused("reference_timeout", begin + 0.2)
    begin, count = bench.clock + 1.0, int(bench.diagnostics.next()["reference.received"])
    for k in range(101):  # positions only: derivatives are estimated
        bench.controller.publish(controller_state(begin + 0.01 * k, wave(0.01 * k), given=1))
        bench.ros.spin(0.002)
    bench.ros.until(lambda: int(bench.diagnostics.values["reference.received"]) > count + 80, of=bench.process)
    found = bench.at(begin + 1.0)
    np.testing.assert_allclose(found.position, wave(1.0)[0], atol=1e-3)
    np.testing.assert_allclose(found.jerk, wave(1.0)[3], rtol=0.1, atol=1.0)
    bench.publish_to(bench.controller, controller_state(begin + 1.01, wave(1.01)[:, :2], given=1))
    assert bench.diagnostics.dropped("reference", "wrong_size") >= 1


@pytest.mark.skipif(ControllerState is not None, reason="control_msgs is installed")
def test_controller_state_source_is_rejected_without_control_msgs(tmp_path):
    with ros_domain(tmp_path) as ros:
        node = node_bench.Bench(ros, robot_description=ARM).ready()
        assert not ros.set(NODE, reference__source="controller_state")
        assert "control_msgs" in ros.set(NODE, motion_source="reference")
        assert ros.get(NODE, "motion_source") == "desired" and node.alive()


def test_torques_at_the_reference_of_scaling_node_equal_those_it_publishes(tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = scaling_bench.Bench(ros, control_rate=200.0).ready()
        node = node_bench.Bench.__new__(node_bench.Bench)
        node.ros, node.node = ros, NODE
        given = {"robot_description": scaling_bench.TEXT, "motion_source": "reference", "diagnostics.period": 0.1}
        node.process = ros.start("dynamics_node", given, "", "-r", f"~/scaled_motion:={bench.node}/scaled_motion")
        node.results = ros.listen(node_bench.JointDynamics, f"{NODE}/joint_dynamics")
        node.diagnostics = node_bench.Diagnostics(ros, NODE)
        ros.until(lambda: bench.states.get_subscription_count() == 2 and ros.node.count_subscribers(
            f"{bench.node}/scaled_motion") == 2 and node.diagnostics.state == "WAITING_STATE", of=node.process)
        for way in (1, -1, 1, -1):  # until the nodes are matched
            before = int(node.diagnostics.values["reference.received"])
            bench.received.clear()
            bench.send(POINTS[::way])
            ros.until(lambda: bench.received and bench.received[-1].phase == ScaledMotion.ENDED, timeout=120.0,
                      of=bench.process)
            if int(node.diagnostics.next()["reference.received"]) > before + 0.3 * len(bench.received):
                break
        exact, asked = 0, bench.received[5::len(bench.received) // 20]
        for message in asked:
            state = node_bench.JointState(name=scaling_bench.NAMES, position=[0.0] * 7)
            state.header.stamp = message.header.stamp
            bench.states.publish(state)
            result = node.answer(message.header.stamp, timeout=2.0)
            exact += result is not None and list(result.jerk) == list(message.jerk) and all(
                np.allclose(getattr(result, name), getattr(message, name), rtol=1e-9, atol=1e-9)
                for name in ("effort", "effort_rate"))
        assert exact >= 5  # a lost message (best effort, busy machine) is replaced by extrapolation
