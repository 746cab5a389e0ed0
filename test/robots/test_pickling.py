"""Pickling and copying of every kind of robot with every backend: equal results, read-only models."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import (
    BaseState,
    JointDynamics,
    ModelError,
    Robot,
    load,
)
from rnea_ros.codegen import kernel
from rnea_ros.demo.elastic_control import InverseDynamicsController
from rnea_ros.robots.platform_motion import PlatformMotion
from rnea_ros.robots.tree import TreeDynamics
from support.parallel_machines import planar_3rrr
from support.robots import arm, motor_file

ROOT = Path(__file__).resolve().parents[2]
ARM = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)}, {"kind": "prismatic", "axis": (1, 0, 0)})
TERMS = {"j1": JointDynamics(1e-4, 50.0, 0.3, 0.2, 0.1)}
FIVE_BAR = (ROOT / "urdf" / "five_bar.urdf", ROOT / "urdf" / "five_bar.robot.yaml")
MOTORS = motor_file({"j2": {"stiffness": 900.0, "gear_ratio": 20.0, "rotor_inertia": 1e-4}})
Q = np.array([[0.3, -0.4, 0.1], [1.0, 0.5, -0.2], [0.3, -0.7, 0.9], [2.0, 1.0, -3.0], [1.0, -2.0, 0.5]])


def rigid(backend):
    robot = Robot.from_urdf(ARM, backend=backend, joint_dynamics=TERMS).with_payload("l3", 1.5, (0.1, 0.0, 0.2))
    return robot.with_payload("l2", 0.4), lambda r: [*r.torque_and_rate(*Q[:4]), r.forward_dynamics(*Q[:3]), r.model_id]


def floating(backend):
    robot = Robot(TreeDynamics.from_urdf(ARM, "floating", backend, joint_dynamics=TERMS), {"base": "floating"})

    def answers(r):
        found = r.solve(*Q[:4], base=BaseState(velocity=np.arange(6.0)))
        return [found.torques, found.base_acceleration, found.base_jerk]

    return robot, answers


def elastic(backend):
    robot = Robot(rigid(backend)[0].with_payload("l2", 0.0), MOTORS)
    return robot, lambda r: list(r.motor_motion(*Q)[:7])


def controller(backend):
    robot = InverseDynamicsController(elastic(backend)[0], 5.0, 20.0)
    return robot, lambda r: list(r(Q, Q[0], [0.1], Q[1], [0.2]))


def springs(backend):
    robot = Robot(rigid(backend)[0], {"springs": {"j2": {"stiffness": 40.0, "rest": 0.1}}})
    return robot, lambda r: list(r.torque_and_rate(*Q[:4]))


def loops(backend):
    robot = load(*FIVE_BAR, backend=backend).with_payload("left_forearm", 0.3)
    return robot, lambda r: [*r.torque_and_rate([0.3, 1.9], [0.5, -0.2], [1.0, 2.0], [0.0, 3.0]), r.start]


def floating_loops(backend):
    robot = load(FIVE_BAR[0].read_text().replace('<link name="base"/>', HEAVY), FIVE_BAR[1], base="floating", backend=backend)
    return robot, lambda r: [r.inverse_dynamics([0.3, 1.9], [0.5, -0.2], [1.0, 2.0], base=BaseState())]


HEAVY = ('<link name="base"><inertial><mass value="3.0"/><inertia ixx="0.05" iyy="0.04" izz="0.03" ixy="0" ixz="0" iyz="0"/>'
         '</inertial></link>')


def parallel(backend):
    robot = planar_3rrr().robot(backend=backend).with_payload("platform", 0.5)
    motion = PlatformMotion(robot.home[0] + [0.01, 0.02, 0.0], np.eye(3), (0.3, 0.1, 0, 0, 0, 0.2), (1, 2, 0, 0, 0, 3))
    return robot, lambda r: list(r.torque_and_rate(motion=motion))


KINDS = (rigid, floating, elastic, controller, springs, loops, floating_loops, parallel)


def assert_equal(found, expected):
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


SLOW = (loops, floating_loops, parallel)  # seconds for each result with backend reference
CASES = [(kind, backend) for kind in KINDS for backend in kernel.BACKENDS if backend != "reference" or kind not in SLOW]


@pytest.mark.parametrize(("kind", "backend"), CASES)
def test_pickled_and_copied_robots_give_equal_results(kind, backend):
    if backend == "llvm":
        pytest.importorskip("llvmlite")
    robot, ask = kind(backend)
    assert type(robot) is (InverseDynamicsController if kind is controller else Robot)
    fresh = pickle.dumps(robot)
    expected = ask(robot)
    used = pickle.dumps(robot)  # with kernels
    for twin in (pickle.loads(fresh), pickle.loads(used), copy.deepcopy(robot))[::1 if backend == "llvm" else 2]:
        assert type(twin) is type(robot)
        assert_equal(ask(twin), expected)


def test_robot_can_be_pickled_to_another_process():
    """Machine code is compiled again from the pickled program."""
    robot, ask = rigid("llvm")
    expected = ask(robot)
    script = ("import pickle, sys; r, q = pickle.load(sys.stdin.buffer);"
              "sys.stdout.buffer.write(pickle.dumps([*r.torque_and_rate(*q[:4]), r.forward_dynamics(*q[:3]), r.model_id]))")
    found = subprocess.run([sys.executable, "-c", script], input=pickle.dumps((robot, Q)), stdout=subprocess.PIPE, check=True,
                           timeout=240, cwd=ROOT)
    assert_equal(pickle.loads(found.stdout), expected)


def test_arrays_of_copies_are_read_only():
    robot = rigid("python")[0]
    for twin in (pickle.loads(pickle.dumps(robot)), copy.deepcopy(robot)):
        link = twin.model.links[2]
        arrays = [twin.gravity_vector, link.ms, link.J, link.C, twin.limits.effort, twin.payloads["l3"].parameters,
                  *(frame.P for frame in twin.model.frames.values())]
        assert not any(array.flags.writeable for array in arrays)
        with pytest.raises(TypeError):
            twin.model.frames["l1"] = None


def test_copies_are_independent():
    robot = rigid("python")[0]
    before = robot.torque_and_rate(*Q[:4])
    for twin in (copy.copy(robot), copy.deepcopy(robot)):
        heavier = twin.with_payload("l3", 9.0)
        assert heavier.total_mass > robot.total_mass == twin.total_mass
        assert np.abs(heavier.torque_and_rate(*Q[:4])[0] - before[0]).max() > 1.0
        assert_equal(robot.torque_and_rate(*Q[:4]), before)
        assert_equal(twin.torque_and_rate(*Q[:4]), before)


def test_unpickled_robot_falls_back_to_python_without_llvm(monkeypatch):
    pytest.importorskip("llvmlite")
    robot, ask = rigid("llvm")
    data, expected = pickle.dumps(robot), ask(robot)
    monkeypatch.delattr("rnea_ros.codegen.llvm_engine")
    monkeypatch.setitem(sys.modules, "rnea_ros.codegen.llvm_engine", None)
    monkeypatch.setattr("rnea_ros.codegen.c_compiler.usable", lambda: False)
    with pytest.warns(RuntimeWarning, match="llvmlite"):
        twin = pickle.loads(data)
    assert twin.backend == "python"
    for a, b in zip(ask(twin)[:3], expected[:3], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("problems", ["one", ("one", "two")])
def test_pickled_errors_keep_message_and_problems(problems):
    error = ModelError(problems, "arm.urdf")
    other = pickle.loads(pickle.dumps(error))
    assert str(other) == str(error) and other.problems == error.problems
    assert str(ModelError("one", "arm.urdf")) == "arm.urdf: one"
