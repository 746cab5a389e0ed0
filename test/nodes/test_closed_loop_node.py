"""Closed loops in dynamics_node, as a separate process over DDS: torques against Pinocchio with multipliers, and bad input."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")
pytest.importorskip("pinocchio")

import pinocchio as pin
import yaml
from geometry_msgs.msg import WrenchStamped
from visualization_msgs.msg import Marker, MarkerArray

from support.live_bench import URDF, LiveBench
from support.moving_bench import MovingBench
from support.moving_robots import MovingLoops, palletiser_pose
from support.oracles import worst
from support.ros_helpers import ros_domain

pytestmark = pytest.mark.ros

SAMPLES = 60
FIVE_BAR = MovingLoops("five_bar")


@pytest.fixture(scope="module")
def ros(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("loops")) as made:
        yield made


@pytest.fixture(scope="module")
def five_bar(ros):
    return LiveBench(ros, "five_bar", FIVE_BAR.joints).ready(*FIVE_BAR.motion(0.0))


@pytest.mark.parametrize("measured", [False, True], ids=["active joints", "all joints"])
@pytest.mark.parametrize("robot", ["five_bar", "palletiser"])
def test_torques_and_rates_of_closed_loops_match_pinocchio(tmp_path, robot, measured):
    moving = MovingLoops(robot)
    with ros_domain(tmp_path) as ros:
        bench = MovingBench(ros, moving, tmp_path, step=3.0 / SAMPLES, passive=measured).met()
        errors = []
        for _ in range(SAMPLES):
            t, found = bench.next()
            errors.append((worst(found.effort, moving.torque(t)), worst(found.effort_rate, moving.rate(t))))
        print(f"{robot}: largest errors of torque and rate {np.max(errors, axis=0)}")
        assert np.max(errors) < 1e-8
        ros.until(lambda: bench.next() and bench.diagnostics.state == "ACTIVE", of=bench.process)
        values = bench.diagnostics.next()
        assert values["kind"] == "robot on a fixed base with loops"
        assert (f"{moving.tree[-1]}.loop_disagreement" in values) == measured
        info = bench.info[-1]
        assert info.kind == values["kind"] and info.base == "fixed" and list(info.joint_names) == moving.joints
        others = set(moving.tree) - set(moving.joints)
        assert set(info.solved_joints) == others and set(info.measured_joints) == set(moving.tree)


def test_measured_passive_joints_that_disagree_with_the_loops_are_reported(five_bar):
    q = FIVE_BAR.state(0.2)[0]
    assert five_bar.sample(FIVE_BAR.motion(0.2), FIVE_BAR.passive(0.2, 0.01))
    assert "the loops have" not in five_bar.diagnostics.status.message

    def reported():
        assert five_bar.sample(FIVE_BAR.motion(0.2), {"left_elbow": (q[1] + 0.5, 0.0)})
        return "left_elbow is -0.5 off its measured position" in five_bar.diagnostics.status.message

    five_bar.ros.until(reported, of=five_bar.process)
    np.testing.assert_allclose(float(five_bar.diagnostics.values["left_elbow.loop_disagreement"]), -0.5, atol=1e-6)


def test_joint_state_for_which_a_loop_cannot_close_is_dropped(five_bar):
    out_of_reach = [np.array([3.1, 0.0]), *np.zeros((3, 2))]

    def refused():
        five_bar.publish(out_of_reach)
        return five_bar.diagnostics.dropped("joint_states", "out_of_reach")

    five_bar.ros.until(refused, of=five_bar.process)
    assert "loop 'tip'" in five_bar.diagnostics.values["joint_states.last_drop"]
    assert five_bar.sample(FIVE_BAR.motion(0.3))


def test_invalid_robot_file_is_rejected_and_the_previous_model_stays(five_bar, tmp_path):
    bench, ros, before = five_bar, five_bar.ros, five_bar.info[-1].model_id
    good = (URDF / "five_bar.robot.yaml").read_text()
    for name, text, words in (("unknown", good.replace("left_forearm", "left_fourarm"), "did you mean 'left_forearm'"),
                              ("open", good.replace("0.5, 0, 0", "5.0, 0, 0"), "loop"),
                              ("none", "loops: [", "is not YAML"), ("gone", None, "cannot be read")):
        path = tmp_path / f"{name}.yaml"
        if text is not None:
            path.write_text(text)
        refusal = ros.set(bench.node, robot_file=str(path))
        assert words in refusal and str(path) in refusal, refusal
        assert ros.get(bench.node, "robot_file") == str(URDF / "five_bar.robot.yaml")
        assert bench.sample(FIVE_BAR.motion(0.1)) and bench.info[-1].model_id == before
    refusal = ros.set(bench.node, robot_description=(URDF / "palletiser.urdf").read_text())
    assert "left_motor" in refusal and bench.sample(FIVE_BAR.motion(0.1))


def test_setting_the_same_robot_file_again_reads_its_changed_content(tmp_path):
    path, content = tmp_path / "five_bar.robot.yaml", yaml.safe_load((URDF / "five_bar.robot.yaml").read_text())
    path.write_text(yaml.safe_dump(content))
    with ros_domain(tmp_path) as own:
        bench = LiveBench(own, "five_bar", FIVE_BAR.joints, robot_file=str(path)).ready(*FIVE_BAR.motion(0.0))
        light = bench.sample(FIVE_BAR.motion(0.1)).effort
        path.write_text(yaml.safe_dump(content | {"payloads": {"left_forearm": {"mass": 1.5, "com": [0.5, 0.0, 0.0]}}}))
        assert not own.set(bench.node, robot_file=str(path))
        own.until(lambda: len(bench.info) > 1 and bench.info[-1].model_id != bench.info[0].model_id, of=bench.process)
        heavy = bench.sample(FIVE_BAR.motion(0.1)).effort
        assert np.abs(np.subtract(heavy, light)).max() > 1.0
        assert not own.set(bench.node, payload__link="left_forearm", payload__mass=0.0)  # parameters override the file
        own.until(lambda: np.allclose(bench.sample(FIVE_BAR.motion(0.1)).effort, light, rtol=1e-12))


@pytest.mark.parametrize("path", ["/nowhere/robot.yaml", "missing"])
def test_node_exits_with_an_error_when_the_robot_file_does_not_exist(ros, path):
    process = ros.start("dynamics_node", {"robot_file": path})
    assert process.wait() == 1 and "cannot start: " in process.log and path in process.log
    assert "Traceback" not in process.log


def test_wrench_on_a_closed_loop_changes_the_torques_by_its_virtual_power(tmp_path):
    """A wrench on the wrist, expressed in the frame of the lower arm, which moves relative to it."""
    moving, force = MovingLoops("palletiser"), np.array([30.0, -10.0, 50.0])
    with ros_domain(tmp_path) as ros:
        bench = LiveBench(ros, "palletiser", moving.joints, **{"wrenches.names": ["grip"], "wrenches.grip.link": "wrist",
                                                        "wrenches.grip.timeout": 10.0, "wrenches.grip.rate": "zero",
                                                        "publish_markers": True})
        marks = ros.listen(MarkerArray, f"{bench.node}/markers")
        bench.ready(*moving.motion(0.0))
        touch = ros.node.create_publisher(WrenchStamped, f"{bench.node}/wrench/grip", 10)
        message = WrenchStamped()
        message.header.frame_id = "upper_arm"
        message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
        for t in (0.1, 0.7):
            free = moving.torque(t)

            def touched(t=t, free=free):
                message.header.stamp = bench.publish(moving.motion(t))
                touch.publish(message)
                found = bench.sample(moving.motion(t))
                return found and np.abs(found.effort - free).max() > 1.0 and found

            found = ros.until(touched, of=bench.process)
            assert worst(found.effort, free - virtual_torque(moving, t, force)) < 1e-8
        # regression: with positions of the active joints alone there was no such marker
        ros.until(lambda: marks and ("external_wrench", Marker.ADD) in {(m.ns, m.action) for m in marks[-1].markers},
                  what="no marker of the wrench", of=bench.process)


def virtual_torque(moving, t, force):
    """J^T F of the point of the palletiser's wrist that is at the origin of upper_arm's frame, felt by the active joints."""
    model = moving.kkt.body.model
    data, theirs = model.createData(), np.zeros(model.nv)
    theirs[moving.kkt.order] = moving.state(t)[0]
    pin.computeJointJacobians(model, data, theirs)
    pin.updateFramePlacements(model, data)
    arm, wrist = (model.getFrameId(name, pin.FrameType.BODY) for name in ("upper_arm", "wrist"))
    local = data.oMf[wrist].actInv(data.oMf[arm].translation)
    J = pin.getFrameJacobian(model, data, wrist, pin.ReferenceFrame.LOCAL_WORLD_ALIGNED)
    r = data.oMf[wrist].rotation @ local
    at_point = J[:3] - np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]]) @ J[3:]
    tree = (at_point.T @ (data.oMf[arm].rotation @ force))[moving.kkt.order]
    G = np.array([palletiser_pose(column) for column in np.eye(4)]).T
    return G.T @ tree
