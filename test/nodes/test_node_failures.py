"""Failures of workers and threads of nodes in this process: the failure is reported and the robot comes to rest."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace

import pytest
import yaml

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs.srv")

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.executors import SingleThreadedExecutor

from rnea_msgs.msg import JointSample
from rnea_msgs.srv import ComputeEnergy
from rnea_ros.execution.states import Phase
from rnea_ros.nodes import query_node
from rnea_ros.nodes.dynamics.node import DynamicsNode
from rnea_ros.nodes.scaling import node as scaling_node
from rnea_ros.trajectory import path_dynamics
from support.node_bench import ARM
from support.overspeed_motion import POINTS
from support.ros_helpers import free_domain
from support.scaling_bench import TEXT, limits, message

pytestmark = pytest.mark.ros
ERRORS = [RuntimeError("no"), MemoryError(), KeyboardInterrupt()]


class NodeHarness:
    """Node of the package and a probe node, both spun by the test."""

    def __init__(self, folder, make, **parameters):
        file = folder / "parameters.yaml"
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": parameters}}))
        rclpy.try_shutdown()  # the default context of this process may have been used by another test file
        rclpy.init(args=["--ros-args", "--params-file", str(file)], domain_id=free_domain())
        self.node, self.probe = make(), rclpy.create_node("probe")
        self.executor = SingleThreadedExecutor()
        self.executor.add_node(self.node)
        self.executor.add_node(self.probe)
        self.said = []
        self.probe.create_subscription(DiagnosticArray, "/diagnostics", self._receive, 100)

    def _receive(self, received):
        self.said += [status.message for status in received.status]

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.probe.destroy_node()
        rclpy.try_shutdown()

    def until(self, condition, timeout=240):
        end = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < end
            self.executor.spin_once(timeout_sec=0.01)


@pytest.fixture
def stand(tmp_path):
    made = []

    def make(*args, **parameters):
        made.append(NodeHarness(tmp_path, *args, **parameters))
        return made[-1]

    yield make
    for one in made:
        one.close()


def failing(error):
    def fail(*args, **options):
        raise error

    return fail


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("where", ["limits", "sending"])
def test_moving_robot_comes_to_rest_when_a_worker_fails(stand, monkeypatch, where, error):
    harness = stand(scaling_node.ScalingNode, robot_description=TEXT, **limits(), **{"diagnostics.period": 0.1})
    executor, ended = harness.node._trajectory_executor, []
    harness.until(lambda: executor.phase is Phase.IDLE)
    monkeypatch.setattr(executor._machine, "_report_outcome", lambda goal, outcome: ended.append(outcome))
    harness.node._accept(message(duration=6.0))
    harness.until(lambda: executor.phase is Phase.MOVING and executor.motion.scaler.t > 0.5)
    if where == "limits":
        with monkeypatch.context() as patch:
            patch.setattr(path_dynamics, "Constraints", failing(error))
            assert harness.node.set_parameters([rclpy.Parameter("joint_limits.joint2.max_effort", value=60.0)])[0].successful
            harness.until(lambda: executor.motion is None or executor.motion.stop_message)
    else:
        monkeypatch.setattr(harness.node._sample_publishers, "publish", failing(error))
    harness.until(lambda: executor.phase is Phase.IDLE and ended)
    ((reason, sentence),) = ended
    assert reason == "stopped" and repr(error) in sentence and "ended stopped at" in sentence
    harness.until(lambda: any("comes to rest" in said and repr(error) in said for said in harness.said))
    assert "ticks" in {thread.name for thread in threading.enumerate()}  # that thread lives
    monkeypatch.undo()
    harness.node._accept(message(POINTS[-1:], first=3.0))
    harness.until(lambda: executor.phase is Phase.MOVING)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_service_request_is_answered_with_the_error_when_its_worker_fails(stand, monkeypatch, error):
    service = query_node.SERVICES["compute_energy"]._replace(answer=failing(error))
    monkeypatch.setitem(query_node.SERVICES, "compute_energy", service)
    harness = stand(query_node.QueryNode, robot_description=ARM)
    client = harness.probe.create_client(ComputeEnergy, "/query_node/compute_energy")
    harness.until(lambda: client.service_is_ready() and harness.node._robot is not None)
    for _ in range(2):
        future = client.call_async(ComputeEnergy.Request(samples=[JointSample(position=[0.1, 0.2, 0.3])]))
        harness.until(future.done)
        assert not future.result().success and type(error).__name__ in future.result().message


def test_platform_motion_held_before_a_change_of_the_robot_is_rejected_after_it():
    rejected = []
    node = SimpleNamespace(_model=lambda: (SimpleNamespace(motion_topic=""), None),
                           _refused=lambda stream, error: rejected.append((stream, error.reason, error.passing)))
    DynamicsNode._evaluate_moved(node, "platform", 0, 0)
    assert rejected == [("platform", "model_changed", True)]
