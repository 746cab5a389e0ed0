"""Elastic joints in dynamics_node, in a process of its own over DDS: Pinocchio with rotors as bodies, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import yaml

from rnea_msgs.msg import ElasticDynamics
from rnea_ros.model.robot_file import robot_file
from support.live_bench import LiveBench
from support.oracles import difference, worst
from support.ros_helpers import world
from support.rotor_trees import four_joints

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 40
NAMES = ("joint1", "joint2", "joint3", "joint4")
ARMS = {"motors in the base": {}, "motors that ride": {"depth": 4, "springs": ("joint3", "joint4")}}  # 5 and 7 derivatives
SPEED = np.array([1.0, 1.3, 0.8, 1.7])


def swing(t, order):
    """q and its derivatives."""
    return [np.array([0.4, 0.5, 0.1, 0.6]) * SPEED**k * np.sin(SPEED * t + k * np.pi / 2.0) for k in range(order + 1)]


class Arm:
    """Motors move as our library has it; the oracle says how far the springs are then from carrying their loads."""

    def __init__(self, name):
        self.robot, self.oracle = four_joints(**ARMS[name])
        self.elastic = [NAMES.index(joint) for joint in self.robot.elastic_joints]

    def file(self, folder, motors):
        """The robot file; motors: whether joint states have them."""
        content = yaml.safe_load(robot_file.draft(self.oracle.declared).text())
        for joint, entry in content["elastic_joints"].items():
            entry.update({"motor_joint": f"{joint}_motor"} if motors else {})
        path = folder / "arm.robot.yaml"
        path.write_text(yaml.safe_dump({"version": 1, **content}))
        return str(path)

    def motors(self, t):
        """Position, velocity, acceleration of the elastic joints' motors."""
        found = self.robot.motor_motion(*swing(t, self.robot.order - 1))
        return found.q_motor, found.qd_motor, found.qdd_motor

    def torques(self, t):
        """Of all motors, by Pinocchio, and the spring's of elastic joints in their rows of the load."""
        x, v, a = (np.concatenate(pair) for pair in zip(swing(t, 2), self.motors(t)))
        found = self.oracle.torques(x, v, a)
        assert np.abs(found[self.elastic]).max() < 1e-10 * max(1.0, np.abs(found).max())  # springs carry what is beyond
        tau, load = found[:4].copy(), found[:4].copy()
        tau[self.elastic] = found[4:]
        load[self.elastic] = -(self.oracle.stiffness @ x)[self.elastic]
        return np.array([tau, load])

    def told(self, t):
        """effort, effort_rate, link_effort, link_effort_rate of elastic joints, deflection and its rate of all."""
        tau, load = self.torques(t)
        rate, load_rate = difference(lambda s: self.torques(t + s), h=1e-2)
        bent = np.zeros((2, 4))
        for row, motor, joint in zip(bent, self.motors(t), swing(t, 1)):
            row[self.elastic] = motor - joint[self.elastic]
        return tau, rate, load[self.elastic], load_rate[self.elastic], *bent


@pytest.mark.parametrize("way", ["desired", "measured"])
@pytest.mark.parametrize("name", ARMS)
def test_both_sides_of_the_springs_of_a_moving_arm(tmp_path, name, way):
    arm, measured = Arm(name), way == "measured"
    order, motors = arm.robot.order, [f"{joint}_motor" for joint in arm.robot.elastic_joints]
    with world(tmp_path) as ros:
        bench = LiveBench(ros, "hua_arm", NAMES, robot_description=arm.oracle.urdf, robot_file=arm.file(tmp_path, measured))
        springs = ros.listen(ElasticDynamics, f"{bench.node}/elastic_dynamics")
        errors = []

        def send(t):
            if not measured:
                return bench.sample(swing(t, order))
            theta = arm.motors(t)
            jerk = difference(lambda s: arm.motors(t + s)[2], h=1e-2)
            return bench.sample(swing(t, 3), dict(zip(motors, np.transpose([*theta, jerk]))))

        bench.prepared()
        ros.until(lambda: send(0.0) and springs, of=bench.process)
        for t in np.linspace(0.1, 3.0, SAMPLES):
            found = send(t)
            tau, rate, load, load_rate, deflection, deflection_rate = arm.told(t)
            said = ros.until(lambda: next((m for m in springs if m.header.stamp == found.header.stamp), None))  # noqa: B023
            assert list(said.joint_names) == list(NAMES) and said.effort == found.effort
            errors.append([worst(found.effort, tau), worst(found.effort_rate, rate), worst(said.effort_rate, rate),
                           worst(np.array(said.link_effort)[arm.elastic], load),
                           worst(np.array(said.link_effort_rate)[arm.elastic], load_rate),
                           worst(said.deflection, deflection), worst(said.deflection_rate, deflection_rate)])
        print(f"{name}, {way}: largest errors {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info = bench.info[-1]
        assert info.kind == "ElasticRobot" and list(info.measured_joints) == [*NAMES, *(motors if measured else [])]


def test_motors_of_which_nothing_is_known_are_refused(tmp_path):
    arm = Arm("motors in the base")
    with world(tmp_path) as ros:
        bench = LiveBench(ros, "hua_arm", NAMES, robot_description=arm.oracle.urdf, robot_file=arm.file(tmp_path, True))
        bench.ready(*swing(0.1, 5))
        for missing in (swing(0.1, 3), swing(0.1, 4)):  # without snap and crackle, or without crackle
            before = bench.diagnostics.dropped("joint_states", "derivatives_missing")

            def refused(missing=missing, before=before):
                bench.publish(missing)
                return bench.diagnostics.dropped("joint_states", "derivatives_missing") > before

            ros.until(refused, of=bench.process)
        said = bench.diagnostics.values["joint_states.last_drop"]
        assert "the desired motion needs snap, crackle of all joints; or else joint1_motor, joint2_motor" in said
        assert bench.sample(swing(0.2, 5))
        content = yaml.safe_load((tmp_path / "arm.robot.yaml").read_text())
        content["elastic_joints"]["joint2"]["motor_joint"] = "joint1"
        (tmp_path / "bad.robot.yaml").write_text(yaml.safe_dump(content))
        assert not ros.set(bench.node, robot_file=str(tmp_path / "bad.robot.yaml"))
        ros.until(lambda: "motor_joint names joint1 more than once" in bench.diagnostics.values["model_error"])
        assert ros.get(bench.node, "robot_file") == str(tmp_path / "arm.robot.yaml") and bench.sample(swing(0.3, 5))
