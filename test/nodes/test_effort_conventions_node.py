"""Effort conventions of scaling_node over DDS: commands for a robot whose controller adds gravity and friction."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

import pinocchio as pin
import yaml
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from support.ros_helpers import ros_domain
from support.scaling_bench import NAMES, TEXT, Bench

pytestmark = pytest.mark.ros
FIELDS = ("position", "velocity", "acceleration", "commanded_effort")
FRICTION = {name: {"viscous": 0.3, "coulomb": 0.2} for name in NAMES}


class Robot:
    """Simulated robot whose controller adds `times` the gravity torque and the friction torque to the commanded effort."""

    def __init__(self, times: int = 1):
        self.model, self.times = pin.buildModelFromXML(TEXT), times
        self.data = self.model.createData()

    def acceleration(self, q: np.ndarray, qd: np.ndarray, effort: np.ndarray) -> np.ndarray:
        added = self.times * pin.computeGeneralizedGravity(self.model, self.data, q)
        return pin.aba(self.model, self.data, q, qd, effort + added)


def test_robot_that_adds_gravity_and_friction_executes_the_commanded_motion(tmp_path):
    file = tmp_path / "arm.robot.yaml"
    file.write_text(yaml.safe_dump({"version": 1, "friction": FRICTION,
                                    "commanded_effort": {"contains": "without_gravity_and_friction"}}))
    with ros_domain(tmp_path) as ros:
        bench = Bench(ros, control_rate=200.0, commands="commanded_effort", reference_effort=True,
                      robot_file=str(file)).ready()
        commands = ros.listen(Float64MultiArray, f"{bench.node}/commands", 5000)
        references = ros.listen(JointTrajectory, f"{bench.node}/reference", 5000)
        ros.until(lambda: all(ros.node.count_publishers(f"{bench.node}/{name}") for name in ("commands", "reference")))
        ros.matched(bench.node)
        bench.send()
        motion = bench.end()
        assert bench.diagnostics.values["commanded_effort"] == "without_gravity_and_friction"
        ros.until(lambda: len(commands) > 20 and len(references) > 20, of=bench.process)
    robot, again = Robot(), Robot(times=2)
    for message in motion.messages[::10]:
        q, qd, qdd, effort = (np.array(getattr(message, name)) for name in FIELDS)
        np.testing.assert_allclose(robot.acceleration(q, qd, effort), qdd, rtol=1e-8, atol=1e-7)
        assert np.abs(again.acceleration(q, qd, effort) - qdd).max() > 0.1
        whole = np.array(message.effort)
        friction = np.array([0.3 * v + 0.2 * np.tanh(v / 0.01) for v in qd])
        assert np.abs(pin.rnea(robot.model, robot.data, q, qd, qdd) + friction - whole).max() < 1e-8
    reported = {tuple(message.commanded_effort) for message in motion.messages}
    assert sum(tuple(command.data) in reported for command in commands) > 10
    assert sum(tuple(reference.points[0].effort) in reported for reference in references) > 10


def test_commanded_effort_parameter_overrides_the_robot_file(tmp_path):
    with ros_domain(tmp_path) as ros:
        bench = Bench(ros, control_rate=200.0, commanded_effort="without_gravity").ready()
        bench.send()
        motion = bench.end()
    robot = Robot()
    for message in motion.messages[::20]:
        q, qd, qdd, effort = (np.array(getattr(message, name)) for name in FIELDS)
        np.testing.assert_allclose(robot.acceleration(q, qd, effort), qdd, rtol=1e-8, atol=1e-7)
