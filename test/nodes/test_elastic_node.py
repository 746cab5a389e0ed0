"""Elastic joints in dynamics_node, as a separate process over DDS, against Pinocchio with rotors as bodies."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import yaml

from rnea_msgs.msg import ElasticDynamics
from support.live_bench import LiveBench
from support.moving_bench import MovingBench
from support.moving_robots import H, MovingElastic
from support.oracles import difference, worst
from support.ros_helpers import ros_domain
from support.rotor_trees import four_joints

pytestmark = [pytest.mark.ros, pytest.mark.timeout(600)]

SAMPLES = 40
ARMS = {"motors in the base": {}, "motors that ride": {"depth": 4, "springs": ("joint3", "joint4")}}  # 5 and 7 derivatives


def arm(name, measured):
    return MovingElastic(*four_joints(**ARMS[name]), size=[0.4, 0.5, 0.1, 0.6], measured=measured)


def reported(moving, t):
    """Return effort, effort_rate, link_effort, link_effort_rate of elastic joints; deflection and its rate of all joints."""
    (tau, load), (rate, load_rate) = moving.both_sides(t), difference(lambda s: moving.both_sides(t + s), h=H)
    bent = np.zeros((2, len(moving.joints)))
    for row, motor, joint in zip(bent, moving.motors(t), moving.swing(t, 1)):
        row[moving.elastic] = motor - joint[moving.elastic]
    return tau, rate, load[moving.elastic], load_rate[moving.elastic], *bent


@pytest.mark.parametrize("way", ["desired", "measured"])
@pytest.mark.parametrize("name", ARMS)
def test_torques_on_both_sides_of_the_springs_match_pinocchio(tmp_path, name, way):
    moving = arm(name, way == "measured")
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=3.0 / SAMPLES)
        springs = ros.listen(ElasticDynamics, f"{bench.node}/elastic_dynamics")
        bench.met()
        ros.until(lambda: bench.next() and springs, of=bench.process)
        errors = []
        for _ in range(SAMPLES):
            t, found = bench.next()
            tau, rate, load, load_rate, deflection, deflection_rate = reported(moving, t)
            said = ros.until(lambda: next((m for m in springs if m.header.stamp == found.header.stamp), None))  # noqa: B023
            assert list(said.joint_names) == list(moving.joints) and said.effort == found.effort
            errors.append([worst(found.effort, tau), worst(found.effort_rate, rate), worst(said.effort_rate, rate),
                           worst(np.array(said.link_effort)[moving.elastic], load),
                           worst(np.array(said.link_effort_rate)[moving.elastic], load_rate),
                           worst(said.deflection, deflection), worst(said.deflection_rate, deflection_rate)])
        print(f"{name}, {way}: largest errors {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        info, motors = bench.info[-1], [f"{joint}_motor" for joint in moving.robot.elastic_joints]
        names = [*moving.joints, *(motors if way == "measured" else [])]
        assert "elastic joints" in info.kind and list(info.measured_joints) == names


def test_states_without_motor_motion_or_higher_derivatives_are_rejected(tmp_path):
    moving = arm("motors in the base", measured=True)
    swing = moving.swing
    with ros_domain(tmp_path) as ros:
        bench = LiveBench(ros, "hua_arm", moving.joints, robot_description=moving.urdf, robot_file=moving.file(tmp_path))
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
        content = yaml.safe_load((tmp_path / "moving.robot.yaml").read_text())
        content["elastic_joints"]["joint2"]["motor_joint"] = "joint1"
        (tmp_path / "bad.robot.yaml").write_text(yaml.safe_dump(content))
        assert not ros.set(bench.node, robot_file=str(tmp_path / "bad.robot.yaml"))
        ros.until(lambda: "motor_joint names joint1 more than once" in bench.diagnostics.values["model_error"])
        assert ros.get(bench.node, "robot_file") == str(tmp_path / "moving.robot.yaml") and bench.sample(swing(0.3, 5))
