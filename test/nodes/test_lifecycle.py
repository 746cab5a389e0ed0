"""Lifecycle of the nodes, changed by the services that `ros2 lifecycle` calls."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from rcl_interfaces.srv import GetParameters
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import JointDynamics, ModelInfo, ScaledMotion
from rnea_msgs.srv import ComputeMassMatrix
from rnea_ros import Robot
from support.node_bench import ARM, NAMES
from support.overspeed_motion import POINTS
from support.ros_helpers import LATCHED, Diagnostics, RosDomain, stamp
from support.scaling_bench import TEXT, limits, message

pytestmark = pytest.mark.ros
IDS = {"configure": Transition.TRANSITION_CONFIGURE, "activate": Transition.TRANSITION_ACTIVATE,
       "deactivate": Transition.TRANSITION_DEACTIVATE, "cleanup": Transition.TRANSITION_CLEANUP,
       "shutdown": Transition.TRANSITION_INACTIVE_SHUTDOWN}
POSITION = [0.1, 0.2, 0.3]


def change(ros: RosDomain, node: str, name: str) -> str:
    """Request a transition; return the state afterwards."""
    ros.call(ChangeState, f"{node}/change_state", ChangeState.Request(transition=Transition(id=IDS[name])))
    return state(ros, node)


def state(ros: RosDomain, node: str) -> str:
    return ros.call(GetState, f"{node}/get_state", GetState.Request()).current_state.label


def state_sender(ros: RosDomain) -> Callable[[], None]:
    """Return a function that publishes the next joint state at rest."""
    states, clock = ros.node.create_publisher(JointState, "joint_states", 10), 1000.0

    def send() -> None:
        nonlocal clock
        clock += 0.01
        given = JointState(name=NAMES, position=POSITION, velocity=[0.0] * 3)
        given.header.stamp = stamp(clock)
        states.publish(given)
        ros.spin(0.01)

    return send


def test_dynamics_node_publishes_only_while_active(ros):
    node = ros.start("dynamics_node", {"robot_description": ARM, "autostart": False, "motion_source": "desired",
                                       "diagnostics.period": 0.1})
    name = "/dynamics_node"
    assert state(ros, name) == "unconfigured"
    assert not ros.node.count_publishers(f"{name}/joint_dynamics")
    info, results = ros.listen(ModelInfo, f"{name}/model_info", LATCHED), ros.listen(JointDynamics, f"{name}/joint_dynamics")
    diagnostics = Diagnostics(ros, name)
    send, received = state_sender(ros), []

    for turn in range(2):  # a second time after a cleanup, with everything created again
        assert change(ros, name, "configure") == "inactive"
        ros.until(lambda: info, of=node)  # the model is built
        ros.until(lambda: send() or diagnostics.dropped("joint_states", "inactive"), of=node)
        assert diagnostics.state == "INACTIVE"
        assert not results
        assert change(ros, name, "activate") == "active"
        ros.until(lambda: send() or results, of=node)
        expected = Robot.from_urdf(ARM).torque_and_rate(np.array(POSITION), np.zeros(3), np.zeros(3), np.zeros(3))
        np.testing.assert_array_equal(results[-1].effort, expected[0])
        assert change(ros, name, "deactivate") == "inactive"
        received.append(int(diagnostics.next()["joint_states.received"]))
        results.clear()
        ros.until(lambda: send() or int(diagnostics.values["joint_states.received"]) > received[-1] + 10, of=node)
        assert diagnostics.state == "INACTIVE"
        assert not results
        assert change(ros, name, "cleanup") == "unconfigured"
        ros.until(lambda: not ros.node.count_publishers(f"{name}/joint_dynamics"), of=node)
        for recorded in (info, results):
            recorded.clear()
        assert not ros.set(name, state_timeout=0.25 + turn)  # parameters are served in every state
        assert ros.get(name, "state_timeout") == 0.25 + turn
    assert "Traceback" not in node.log
    assert node.stop() == 0, node.log


def test_configure_fails_for_an_invalid_model_and_succeeds_for_a_valid_one(ros):
    node = ros.start("dynamics_node", {"robot_description": "<robot name='x'/>", "autostart": False})
    assert change(ros, "/dynamics_node", "configure") == "unconfigured"
    assert "not configured: " in node.log
    assert not ros.set("/dynamics_node", robot_description=ARM)
    assert change(ros, "/dynamics_node", "configure") == "inactive"
    assert node.stop() == 0, node.log


def test_query_node_answers_only_while_active(ros):
    node = ros.start("query_node", {"robot_description": ARM, "autostart": False})
    name = "/query_node"
    assert state(ros, name) == "unconfigured"
    for _ in range(2):
        assert change(ros, name, "configure") == "inactive"
        request = ComputeMassMatrix.Request()
        request.joint_names, request.samples = NAMES, []
        answer = ros.call(ComputeMassMatrix, f"{name}/compute_mass_matrix", request)
        assert not answer.success
        assert "not active" in answer.message
        assert change(ros, name, "activate") == "active"
        assert "not active" not in ros.call(ComputeMassMatrix, f"{name}/compute_mass_matrix", request).message
        assert change(ros, name, "deactivate") == "inactive"
        assert change(ros, name, "cleanup") == "unconfigured"
    assert "Traceback" not in node.log
    assert node.stop() == 0, node.log


def test_deactivated_scaling_node_brings_its_motion_to_rest(ros):
    node = ros.start("scaling_node", {"robot_description": TEXT, **limits(), "autostart": False, "output": "points",
                                      "diagnostics.period": 0.1})
    name = "/scaling_node"
    assert state(ros, name) == "unconfigured"
    trajectories = ros.node.create_publisher(JointTrajectory, f"{name}/joint_trajectory", 10)
    samples = ros.listen(ScaledMotion, f"{name}/scaled_motion", 5000)
    for diagnostics in (Diagnostics(ros, name, "scaling") for _ in range(2)):
        assert change(ros, name, "configure") == "inactive"
        ros.until(trajectories.get_subscription_count)
        ros.until(lambda: ros.node.count_publishers(f"{name}/scaled_motion"))
        ros.until(lambda seen=diagnostics: seen.values)
        trajectories.publish(message())
        ros.until(lambda seen=diagnostics: seen.dropped("trajectory", "inactive"), of=node)
        assert change(ros, name, "activate") == "active"
        trajectories.publish(message(duration=60.0))
        ros.until(lambda: samples and samples[-1].t > 0.2, of=node)
        assert change(ros, name, "deactivate") == "inactive"
        ros.until(lambda: samples[-1].phase == ScaledMotion.ENDED, of=node)
        np.testing.assert_allclose(samples[-1].velocity, 0.0, atol=1e-9)
        assert np.abs(samples[-1].position - POINTS[-1]).max() > 1e-3  # on the way, not at the end
        assert change(ros, name, "cleanup") == "unconfigured"
        samples.clear()
    assert "Traceback" not in node.log
    assert node.stop() == 0, node.log


def test_shutdown_transition_finalizes_the_node(ros):
    node = ros.start("query_node", {"robot_description": ARM, "autostart": False})
    assert change(ros, "/query_node", "configure") == "inactive"
    assert change(ros, "/query_node", "shutdown") == "finalized"
    ros.until(lambda: not ros.node.count_services("/query_node/compute_mass_matrix"), of=node)
    assert node.stop() == 0, node.log


def test_nodes_start_in_the_active_state_by_default(ros):
    for name in ("dynamics_node", "query_node", "scaling_node"):
        ros.start(name)
        assert state(ros, f"/{name}") == "active"
        answer = ros.call(GetParameters, f"/{name}/get_parameters", GetParameters.Request(names=["autostart"]))
        assert answer.values[0].bool_value


def test_all_nodes_in_one_process_have_separate_names_and_lifecycles(ros):
    process = ros.start("all_nodes", {"robot_description": ARM, "motion_source": "desired"})
    results = ros.listen(JointDynamics, "/dynamics_node/joint_dynamics")
    send = state_sender(ros)

    ros.until(lambda: send() or results, of=process)
    assert change(ros, "/query_node", "deactivate") == "inactive"
    assert [state(ros, f"/{name}") for name in ("dynamics_node", "scaling_node")] == ["active"] * 2
    answer = ros.call(ComputeMassMatrix, "/query_node/compute_mass_matrix", ComputeMassMatrix.Request())
    assert "not active" in answer.message
    results.clear()
    ros.until(lambda: send() or results, of=process)
    assert process.stop() == 0, process.log
