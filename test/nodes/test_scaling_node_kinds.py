"""scaling_node with a robot file, as a separate process over DDS: loops, springs, drives; and rejected robots.

Oracles: Pinocchio with multipliers for loops; Pinocchio with rotor inertia for the link side of an elastic joint.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import pinocchio as pin
import yaml

from rnea_ros import InputError, load
from rnea_ros.nodes.scaling.robot import ScaledRobot
from rnea_ros.trajectory.scaled_plan import plan_from_waypoints
from support.machines import LoopOracle
from support.oracles import along, difference, worst
from support.ros_helpers import ros_domain
from support.scaling_bench import Bench, Samples, message

pytestmark = pytest.mark.ros

URDF = Path(__file__).resolve().parents[2] / "urdf"
CHECKED = 12  # samples of each motion compared with Pinocchio
PALLETISER = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 0.3, 1.0, -0.2], [1.0, -0.2, 0.5, 0.3]])
TREE = ["joint1", "joint2", "joint4", "joint3", "elbow", "wrist_joint", "levelling_plate", "levelling_rod_joint",
        "fore_rod_joint", "drive_rod_joint"]
SEA = {"version": 1, "elastic_joints": {"joint3": {"stiffness": 100.0}},
       "drives": {joint: {"gear_ratio": 10.0, "rotor_inertia": 0.004} | more for joint, more in (
           ("joint1", {}), ("joint2", {}), ("joint3", {"max_motor_velocity": 12.0}))}}
BENT = np.array([[0.0, 0.3, -0.4], [0.8, -0.2, 0.5], [0.3, 0.6, 0.1]])


@pytest.fixture(scope="module")
def ros(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("kinds")) as made:
        yield made


def started(ros, name, file, efforts, space="", **parameters):
    """Start a node with a robot of this package; limits are `efforts` and rates of 20 / s times the efforts."""
    limits = {}
    for joint, effort in efforts.items():
        head = f"joint_limits.{joint}"
        limits |= {f"{head}.has_effort_limits": True, f"{head}.max_effort": effort,
                   f"{head}.has_effort_rate_limits": True, f"{head}.max_effort_rate": 20.0 * effort}
    text = (URDF / f"{name}.urdf").read_text()
    return Bench(ros, space or name, own=True, robot_description=text, robot_file=str(file), **limits, **parameters).ready()


def moved(bench, points, names, duration, efforts):
    """Execute a trajectory that is too fast; check its path and limits; return the motion and the largest utilization."""
    bench.trajectories.publish(message(points, duration, names=names))
    motion: Samples = bench.end()
    assert list(motion.messages[0].joint_names) == list(names)
    path = plan_from_waypoints(points, np.linspace(0.0, duration, len(points))).path
    assert np.abs(motion.position - path(motion.s)[0]).max() < 1e-9 and np.abs(motion.position[-1] - points[-1]).max() < 1e-9
    limit = np.array([efforts[name] for name in names])
    used = max(np.abs(motion.effort / limit).max(), np.abs(motion.effort_rate / (20.0 * limit)).max())
    assert used <= 1.0 + 1e-6 and motion.t[-1] > duration
    return motion, used


def compared(motion, torque):
    """Return the largest errors of torque and rate at some samples. torque: q, qd, qdd -> (n,), by Pinocchio"""
    errors = []
    for k in np.linspace(1, len(motion.t) - 2, CHECKED).astype(int):
        sample = [values[k] for values in (motion.position, motion.velocity, motion.acceleration, motion.jerk)]

        def at(t, sample=sample):
            return torque(*along(*sample, t))

        errors.append([worst(motion.effort[k], at(0.0)), worst(motion.effort_rate[k], difference(at))])
    return np.max(errors, axis=0)


def test_motor_torques_of_a_closed_loop_palletiser_stay_inside_their_limits(ros):
    content = yaml.safe_load((URDF / "palletiser.robot.yaml").read_text())["loops"]
    content |= {"active": TREE[:4]}
    names, efforts = TREE[:4], {"joint1": 400.0, "joint2": 900.0, "joint3": 500.0, "joint4": 20.0}
    bench = started(ros, "palletiser", URDF / "palletiser.robot.yaml", efforts, solve_first=True)
    motion, used = moved(bench, PALLETISER, names, 0.8, efforts)
    oracle = LoopOracle((URDF / "palletiser.urdf").read_text(), {"loops": content},
                        TREE)
    fold = np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, -1, 0, 1], [0, 0, 0, -1], [0, -1, 0, 0],
                     [0, 1, 0, 0], [0, 0, 0, 1], [0, 1, 0, -1]])  # opposite sides of parallelograms stay parallel
    errors = compared(motion, lambda q, qd, qdd: oracle.inverse(fold @ q, fold @ qd, qdd)[0])
    print(f"palletiser: {len(motion.t)} samples, {used:.4f} of a limit used, errors {errors}")
    assert used > 0.985 and errors[0] < 1e-8 and errors[1] < 1e-6


def test_spring_torque_and_motor_speed_limits_of_an_elastic_arm_are_kept(ros, tmp_path):
    file = tmp_path / "sea.robot.yaml"
    file.write_text(yaml.safe_dump(SEA))
    names, efforts = ["joint1", "joint2", "joint3"], {"joint1": 40.0, "joint2": 90.0, "joint3": 40.0}
    bench = started(ros, "hua_arm", file, efforts)
    motion, used = moved(bench, BENT, names, 0.4, efforts)
    model = pin.buildModelFromUrdf(str(URDF / "hua_arm.urdf"))
    data, rotors = model.createData(), np.array([0.4, 0.4, 0.0])

    def torque(q, qd, qdd):
        return pin.rnea(model, data, q, qd, qdd) + rotors * qdd

    errors = compared(motion, torque)
    speed = 10.0 * (motion.velocity[:, 2] + motion.effort_rate[:, 2] / 100.0)
    print(f"SEA arm: {used:.4f} of a limit used, motor {np.abs(speed).max() / 12.0:.4f}, errors {errors}")
    assert np.abs(speed).max() <= 12.0 * (1.0 + 1e-6) and max(used, np.abs(speed).max() / 12.0) > 0.97
    assert errors[0] < 1e-9 and errors[1] < 1e-7


def test_robot_file_is_swapped_and_unsupported_robots_are_rejected(ros, tmp_path):
    """Link-mounted motors, springs without motors and a free base are rejected; the previous model stays and moves."""
    file = tmp_path / "first.robot.yaml"
    file.write_text(yaml.safe_dump(SEA))
    bench = started(ros, "hua_arm", file, {}, space="swapped")
    bad = {"free.robot.yaml": ({"base": "floating"}, "is floating: the motion of the joints"),
           "flap.robot.yaml": ({"springs": {"joint2": {"stiffness": 3.0}}}, "joint2 of robot"),
           "none.robot.yaml": ({"elastic_joints": {"joint9": {"stiffness": 3.0}}}, "joint9")}
    for name, (content, words) in bad.items():
        (tmp_path / name).write_text(yaml.safe_dump({"version": 1, **content}))
        answer = ros.set(bench.node, robot_file=str(tmp_path / name))
        ros.until(lambda words=words, answer=answer: words in answer or words in bench.diagnostics.values["model_error"],
                  of=bench.process)
        ros.until(lambda: ros.get(bench.node, "robot_file") == str(file), of=bench.process)
    ros.until(lambda: bench.diagnostics.state == "IDLE")
    assert not ros.set(bench.node, robot_file=str(URDF / "hua_arm.robot.yaml"))
    ros.until(lambda: "mounted on link 'link1'" in bench.diagnostics.values["model_error"], of=bench.process)
    bench.trajectories.publish(message(BENT, 2.0, names=["joint1", "joint2", "joint3"]))
    assert np.abs(bench.end().position[-1] - BENT[-1]).max() < 1e-9


@pytest.mark.parametrize("said", [{"quantity": "motor_torque"}, {"contains": "without_gravity_and_friction"}])
def test_commanded_effort_convention_of_an_elastic_joint_motor_is_rejected(said):
    robot = load(URDF / "hua_arm.urdf", SEA | {"commanded_effort": said})
    with pytest.raises(InputError, match="only spring torques are supported"):
        ScaledRobot(robot)
