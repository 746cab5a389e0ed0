"""Gravity compensation by dynamics_node, as a process over DDS with a plant simulated by Pinocchio in the loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from rnea_ros.execution.effort_commands import TUNING
from support.node_bench import ARM, Bench
from support.plant import COULOMB, REST, VISCOUS, Plant, panda
from support.ros_helpers import DISCOVERY, Diagnostics, ros_domain, stamp

pytestmark = pytest.mark.ros
NODE, DT, RISE = "/dynamics_node", 4e-3, 0.2
JOINTS = [f"panda_joint{k}" for k in range(1, 8)]
LIMIT = np.array([87.0] * 4 + [12.0] * 3)


class Arm:
    """Panda simulated by Pinocchio, driven by ~/commands only; held at its position until released."""

    def __init__(self, ros, **parameters):
        self.ros, self.plant, self.clock = ros, Plant(panda(), 1.0, COULOMB, VISCOUS), 1000.0
        self.q, self.v, self.is_held = REST, np.zeros(7), True
        given = {"robot_description": panda(), "diagnostics.period": 0.1, "effort_commands.rise_time": RISE,
                 "effort_commands.timeout": 1.0, "effort_commands.ramp_time": 0.5, **parameters}
        self.process = ros.start("dynamics_node", given)
        self.states = ros.node.create_publisher(JointState, "joint_states", 10)
        self.efforts: list[Float64MultiArray] = ros.listen(Float64MultiArray, f"{NODE}/commands")
        self.commands: list[JointState] = ros.listen(JointState, f"{NODE}/joint_commands")
        self.diagnostics = Diagnostics(ros, NODE)

    def effort(self) -> np.ndarray:
        return np.array(self.efforts[-1].data) if self.efforts else np.zeros(7)

    def step(self, q=None, steps: int = 1) -> None:
        """Move by the last command, and report the position, or another one."""
        for _ in range(steps):
            if not self.is_held:
                self.q, self.v = self.plant.step(DT, self.q, self.v, self.effort())
            self.clock += DT
            message = JointState(name=JOINTS, position=list(map(float, self.q if q is None else q)),
                                 velocity=self.v.tolist())
            message.header.stamp = stamp(self.clock)
            self.states.publish(message)
            self.ros.step(DT)

    def until(self, condition, what: str):
        return self.ros.until(lambda: self.step() or condition(), DISCOVERY, what, self.process)

    def supported(self, mass: float = 0.0) -> None:
        """Wait until gravity is compensated."""
        carried = Plant(panda())
        if mass:
            carried.carry("panda_hand", mass, np.array([0.0, 0.0, 0.1]))
        import pinocchio as pin

        def is_gravity():
            return np.allclose(self.effort(), pin.computeGeneralizedGravity(carried.model, carried.data, self.q), atol=0.05)

        self.until(is_gravity, "gravity is not compensated")


@pytest.fixture(scope="module")
def arm(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("float")) as ros:
        made = Arm(ros)
        made.until(lambda: made.diagnostics.values.get("commands") == "none", "no diagnostics")
        yield made


@pytest.fixture(autouse=True)
def steps_are_small(arm):
    """Check that no command of any test exceeds the rate limit or the effort limit."""
    arm.efforts.clear()
    before = None
    yield
    assert arm.process.alive
    for message in arm.efforts:
        now = np.array(message.data)
        assert np.isfinite(now).all() and (np.abs(now) <= LIMIT).all()
        if before is not None:
            assert (np.abs(now - before) <= LIMIT / RISE * TUNING.max_step_s * (1.0 + 1e-9)).all()
        before = now


def test_commands_are_off_by_default_and_compensate_gravity_when_enabled(arm):
    arm.step(steps=50)
    assert not arm.efforts
    assert arm.ros.set(NODE, commands="gravity_friction") == ""
    arm.supported()
    arm.is_held = False
    arm.step(steps=round(3.0 / DT))
    assert np.abs(arm.q - REST).max() < 2e-2
    command = arm.until(lambda: arm.commands and arm.commands[-1], "no ~/joint_commands")
    assert list(command.name) == JOINTS and not any(command.velocity)
    assert np.allclose(command.position, arm.q, atol=1e-2) and np.allclose(command.effort, arm.effort(), atol=0.5)
    assert arm.diagnostics.next()["commands.stage"] == "active"
    arm.is_held = True


def test_gravity_compensation_includes_a_payload_as_soon_as_it_is_set(arm):
    assert arm.ros.set(NODE, together=True, commands="gravity", payload__link="panda_hand", payload__mass=2.0,
                       payload__com=[0.0, 0.0, 0.1]) == ""
    arm.supported(2.0)
    assert arm.ros.set(NODE, payload__mass=0.0) == ""
    arm.supported()


def test_states_that_jump_or_are_not_finite_do_not_change_the_commands(arm):
    arm.supported()
    for wrong in (REST + 1.0, np.full(7, math.nan), REST - 0.8):
        arm.step(wrong, 3)
        arm.step(steps=3)
    counts = ("commands.rejected.jump", "dropped.joint_states.position_not_finite")
    arm.until(lambda: all(int(arm.diagnostics.values.get(count, 0)) > 0 for count in counts), f"not both counted: {counts}")
    arm.supported()


def test_commands_ramp_to_zero_when_states_stop_and_resume_with_new_states(arm):
    arm.supported()
    arm.ros.until(lambda: arm.efforts and not arm.effort().any(), what="the commands do not end at zero", of=arm.process)
    count = len(arm.efforts)
    arm.ros.spin(0.3)
    assert len(arm.efforts) == count
    arm.supported()


def test_deactivation_ramps_the_commands_to_zero_before_cleanup(arm):
    arm.supported()
    assert change(arm, Transition.TRANSITION_DEACTIVATE)
    assert not change(arm, Transition.TRANSITION_CLEANUP)
    arm.ros.until(lambda: not arm.effort().any(), what="the commands do not end at zero", of=arm.process)
    assert "not cleaned up" in arm.process.log
    assert change(arm, Transition.TRANSITION_ACTIVATE)
    arm.supported()


def change(arm, transition):
    request = ChangeState.Request(transition=Transition(id=transition))
    return arm.ros.call(ChangeState, f"{NODE}/change_state", request).success


def test_commands_ramp_to_zero_when_switched_off(arm):
    arm.supported()
    assert arm.ros.set(NODE, commands="none") == ""
    arm.until(lambda: not arm.effort().any(), "the commands do not end at zero")
    arm.until(lambda: arm.diagnostics.values.get("commands.stage") == "off", "never off")


def test_commands_have_the_joints_and_order_of_effort_commands_joints(arm):
    chosen = [JOINTS[3], JOINTS[1]]
    arm.ros.until(lambda: arm.step() or not arm.effort().any())
    assert "names panda_joint9" in arm.ros.set(NODE, together=True, commands="gravity",
                                               effort_commands__joints=["panda_joint9"])
    assert arm.ros.get(NODE, "commands") == "none"
    arm.efforts.clear()
    assert arm.ros.set(NODE, together=True, commands="gravity", effort_commands__joints=chosen) == ""
    command = arm.until(lambda: arm.commands and list(arm.commands[-1].name) == chosen and arm.commands[-1], "no such names")
    assert len(command.effort) == 2 and len(arm.efforts[-1].data) == 2
    assert arm.ros.set(NODE, commands="none") == ""
    arm.until(lambda: not arm.effort().any(), "never zero")
    arm.efforts.clear()


def test_commands_are_rejected_for_a_joint_without_effort_limit(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("refused")) as ros:
        bench = Bench(ros, robot_description=ARM, commands="gravity").ready()
        reason = "the effort limit of spin is unknown"
        ros.until(lambda: bench.state() or reason in bench.diagnostics.status.message, what="no warning", of=bench.process)
        assert ros.set(NODE, commands="none") == "" and reason in ros.set(NODE, commands="gravity")
        assert ros.get(NODE, "commands") == "none"
        assert ros.set(NODE, together=True, commands="gravity", joint_limits__spin__max_effort=20.0) == ""
        efforts = ros.listen(Float64MultiArray, f"{NODE}/commands")
        ros.until(lambda: bench.state() or efforts, what="no commands", of=bench.process)


def test_feedforward_commands_the_torque_of_the_desired_motion(tmp_path_factory):
    rng = np.random.default_rng(0)
    with ros_domain(tmp_path_factory.mktemp("feedforward")) as ros:
        bench = Bench(ros, robot_description=ARM, commands="feedforward",
                      **{"joint_limits.spin.max_effort": 60.0, "joint_limits.slide.max_effort": 200.0,
                         "joint_limits.turn.max_effort": 200.0, "effort_commands.ramp_time": 0.05,
                         "effort_commands.rise_time": 0.01, "effort_commands.timeout": 2.0}).ready()
        commands = ros.listen(JointState, f"{NODE}/joint_commands")
        for _ in range(2):
            motion = 0.5 * rng.uniform(-1.0, 1.0, (4, 3))

            def is_reached(motion=motion):
                answer = bench.send(motion)
                return commands and np.allclose(commands[-1].effort, answer.effort, rtol=1e-6) and np.allclose(
                    (commands[-1].position, commands[-1].velocity), motion[:2])

            ros.until(is_reached, what="the torque of the desired motion is not commanded", of=bench.process)
