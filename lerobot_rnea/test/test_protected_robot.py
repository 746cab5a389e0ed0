"""Protected robot and processor step in the registries of the LeRobot stand-in, in real time, with an arm that can fail."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest
from lerobot_rnea.protected_robot import MAX_ERRORS, connected

import lerobot_stand_in as stand_in
from lerobot_rnea import ProtectChunks, ProtectedRobot, ProtectedRobotConfig
from rnea_ros import InputError

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"acceleration": 15.0, "jerk": 500.0, "effort_rate": 30.0}


def wait_for(condition, seconds=120.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition was not met in time"
        time.sleep(0.02)


def config(tmp_path, **given):
    (tmp_path / "arm.urdf").write_text(stand_in.URDF)
    usual = {"id": "one", "arm": stand_in.ServoArmConfig(), "urdf": str(tmp_path / "arm.urdf"), "limits": LIMITS,
             "unprotected": ["gripper"]}
    return ProtectedRobotConfig(**(usual | given))


@pytest.fixture
def robot(tmp_path):
    made = stand_in.make_robot_from_config(config(tmp_path, lead=0.4))
    made.connect()
    yield made
    if made in connected:
        made.arm.broken = False
        made.disconnect()


def action(pan, gripper=50.0):
    return {"shoulder_pan.pos": pan, "shoulder_lift.pos": 0.0, "elbow_flex.pos": 0.0, "gripper.pos": gripper}


def pans(robot):
    return np.array([values["shoulder_pan.pos"] for _, values in robot.arm.sent])


def test_protected_robot_is_registered_and_has_the_features_of_its_arm(tmp_path):
    given = config(tmp_path)
    assert given.type == "rnea_protected"
    made = stand_in.make_robot_from_config(given)
    assert isinstance(made, ProtectedRobot)
    assert made.action_features == made.arm.action_features and made.observation_features == made.arm.observation_features
    assert made.robot_type == "servo_arm" and not made.is_connected
    assert stand_in.ProcessorStepRegistry.get("rnea_protect_chunks") is ProtectChunks
    arms = get_type_hints(ProtectedRobotConfig)["arm"]
    assert set(arms.get_known_choices()) == {"servo_arm"} and arms.get_choice_name(type(given.arm)) == "servo_arm"


def test_actions_move_the_arm_in_small_steps_to_the_goal(robot):
    assert pans(robot).size == 0 or abs(pans(robot)[0]) < 0.1  # holds its start position
    for k in range(12):
        robot.send_action(action(2.0 * min(k, 8)))
        time.sleep(1.0 / 30.0)
    wait_for(lambda: robot.send_action(action(16.0)) and np.abs(pans(robot)[-20:] - 16.0).max() < 0.05)  # at rest there
    steps = np.abs(np.diff(pans(robot)))
    assert steps.max() < 8.0  # degrees; at 3 rad/s, with a command that is late
    assert np.abs(robot.get_observation()["shoulder_pan.pos"] - 16.0) < 0.2


def test_disconnect_brakes_before_disconnecting_the_arm(robot):
    wait_for(lambda: robot.send_action(action(20.0)) and pans(robot)[-1] > 0.2)
    moving = pans(robot)[-1]
    robot.disconnect()
    after = pans(robot)
    assert after[-1] > moving and not robot.arm.is_connected
    assert np.ptp(after[-2:]) < 0.02 and not connected
    count = len(after)
    time.sleep(0.05)
    assert len(pans(robot)) == count
    with pytest.raises(ConnectionError, match="not connected"):
        robot.send_action(action(0.0))


def test_arm_that_accepts_no_commands_is_reported(robot, caplog):
    robot.arm.broken = True
    wait_for(lambda: "did not take" in caplog.text)
    with pytest.raises(ConnectionError, match="no status packet"):
        robot.send_action(action(1.0))
    assert f"did not take {MAX_ERRORS} commands" in caplog.text


def test_processor_step_passes_chunks_on_and_executes_them(robot):
    step = ProtectChunks()
    robot.get_observation()
    assert step({"observation": {"observation.state": np.zeros(4)}, "action": None})["action"] is None
    rows = np.array([list(action(0.5 * k).values()) for k in range(30)])
    transition = {"observation": None, "action": rows[None]}
    assert step(transition) is transition and (transition["action"] == rows[None]).all()
    assert sum(robot.diagnostics()["counts"].values()) == 1
    assert robot.send_action(action(0.5)) and robot.diagnostics()["counts"]["of_chunk"] == 1

    def goes_on():
        """Push the chunk again where a busy machine let the motion end."""
        if robot.diagnostics()["time_to_rest"] == 0.0:
            robot.push_chunk(rows)
        return pans(robot)[-1] > 13.0

    wait_for(goes_on)


def test_processor_step_passes_single_actions_on(robot):
    one = np.zeros((1, 4))
    assert ProtectChunks()({"action": one})["action"] is one and not robot.diagnostics()["counts"]
    assert ProtectChunks(robot_id="one", action_names=["a"]).get_config() == {"robot_id": "one", "action_names": ["a"]}


def test_processor_step_rejects_missing_robots_and_batches(robot):
    with pytest.raises(RuntimeError, match="0 robots of type rnea_protected are connected with id other"):
        ProtectChunks(robot_id="other")({"action": np.zeros((1, 5, 4))})
    with pytest.raises(ValueError, match="2 chunks in a batch"):
        ProtectChunks()({"action": np.zeros((2, 5, 4))})


@pytest.mark.parametrize(("given", "message"), [
    ({"unprotected": []}, "gripper.pos has no joint"),
    ({"limits": {"torque": 1.0}}, "limits are"),
    ({"limits": {"jerk": 0.0}}, "numbers above zero"),
])
def test_invalid_options_are_rejected_before_the_arm_is_connected(tmp_path, given, message):
    with pytest.raises(InputError, match=message):
        ProtectedRobot(config(tmp_path, **given))


def test_unusable_calibration_is_rejected_and_the_arm_disconnected(tmp_path):
    arm = stand_in.ServoArmConfig(ranges=stand_in.SIZES | {"elbow_flex": 1.0})
    made = ProtectedRobot(config(tmp_path, arm=arm))
    with pytest.raises(InputError, match="elbow_flex was calibrated over 1 rad"):
        made.connect()
    assert not made.arm.is_connected and not connected


def test_package_imports_without_lerobot():
    code = ("import sys, lerobot_rnea as package\n"
            "package.ActionStream, package.JointMapping\n"
            "assert not {'lerobot', 'draccus', 'torch'} & set(sys.modules)")
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False,
                         env={"PYTHONPATH": f"{ROOT}:{ROOT.parent}", "PATH": "/usr/bin"})
    assert run.returncode == 0, run.stderr
