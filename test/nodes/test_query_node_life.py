"""Life cycle of the query_node process: late, changed and invalid descriptions, slow first requests, signals."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs.srv")

from std_msgs.msg import String

from rnea_msgs.msg import JointSample
from rnea_ros import JointDynamics, Robot
from support.node_bench import ARM, chain, urdf
from support.query_bench import NODE, SERVICES, QueryBench, numbers
from support.robots import LIMIT, JointSpec, LinkSpec, Tree
from support.ros_helpers import LATCHED

pytestmark = pytest.mark.ros
AT = [0.1, 0.2, 0.3]
DUST = {"rtol": 1e-12, "atol": 1e-12}  # N m, kg m^2: two kernels, or one for a sample and for many, round differently


def massless() -> str:
    """Return the URDF of a robot with a joint that moves no mass."""
    tree = Tree("loose", [LinkSpec("base"), LinkSpec("link")], [JointSpec("free", "revolute", "base", "link", limit=LIMIT)])
    return tree.text()


def test_late_changed_and_invalid_descriptions_are_handled(ros):
    bench = QueryBench(ros)

    def gravity():
        return bench("compute_mass_matrix", samples=[JointSample(position=AT)])

    answer = gravity()
    assert not answer.success and not answer.model_id
    assert "set parameter robot_description, or publish it on /robot_description (reliable, transient_local)" in answer.message
    topic = ros.node.create_publisher(String, "/robot_description", LATCHED)

    topic.publish(String(data="<robot name='x'><link name='a'/><link name='b'/></robot>"))
    ros.until(lambda: "the robot description was rejected" in gravity().message)
    assert "2 links are no joint's child" in gravity().message or "root" in gravity().message
    topic.publish(String(data=ARM))
    bench.ready()
    first = gravity()
    assert first.success
    np.testing.assert_allclose(numbers(first.gravity)[0], Robot.from_urdf(ARM).gravity(AT), **DUST)

    topic.publish(String(data="<robot/>"))  # does not replace what works
    ros.until(lambda: "refused, model" in bench.process.log)
    assert gravity().model_id == first.model_id

    heavy = urdf("heavy", 5.0)  # a swap between two calls
    topic.publish(String(data=heavy))
    ros.until(lambda: bench.info[-1].robot_name == "heavy")
    second = gravity()
    assert second.model_id != first.model_id == Robot.from_urdf(ARM).model_id
    np.testing.assert_allclose(numbers(second.gravity)[0], Robot.from_urdf(heavy).gravity(AT), **DUST)

    topic.publish(String(data=massless()))
    ros.until(lambda: bench.info[-1].robot_name == "loose")
    alone = JointSample(position=[0.1], effort=[1.0])
    for service in ("compute_forward_dynamics", "compute_floating_forward_dynamics", "compute_energy"):
        answer = bench(service, samples=[alone])
        assert not answer.success and answer.model_id == bench.info[-1].model_id
        assert "the mass matrix is singular: " in answer.message or "no mass" in answer.message, answer.message
    assert bench("compute_inverse_dynamics", samples=[alone]).success


def test_model_parameters_change_the_answers(ros):
    bench = QueryBench(ros, robot_description=ARM, **{"joint_limits.turn.max_effort": 20.0}).ready()
    payload = {"payload__link": "tool", "payload__mass": 1.5, "payload__com": [0.0, 0.1, 0.2]}
    assert not ros.set(NODE, together=True, **payload)
    loaded = Robot.from_urdf(ARM).with_payload("tool", 1.5, (0.0, 0.1, 0.2))
    ros.until(lambda: bench.info[-1].model_id == loaded.model_id)
    answer = bench("compute_inverse_dynamics", samples=[JointSample(position=AT)])
    np.testing.assert_allclose(numbers(answer.effort)[0], loaded.gravity(AT), **DUST)
    tree = bench("get_tree")
    assert (tree.total_mass, sum(link.mass for link in tree.links)) == (loaded.total_mass, pytest.approx(loaded.total_mass))
    assert tree.joints[0].effort == 20.0

    assert not ros.set(NODE, joint_dynamics__turn__viscous=2.0, joint_dynamics__turn__rotor_inertia=0.5)
    ros.until(lambda: bench.info[-1].model_id != loaded.model_id)
    answer = bench("compute_mass_matrix", samples=[JointSample(position=AT, velocity=[1.0, 0.0, 0.0])])
    driven = Robot.from_urdf(ARM, joint_dynamics={"turn": JointDynamics(viscous=2.0, rotor_inertia=0.5)})
    driven = driven.with_payload("tool", 1.5, (0.0, 0.1, 0.2))
    assert answer.model_id == driven.model_id
    np.testing.assert_allclose(numbers(answer.mass_matrix[0]), driven.mass_matrix(AT), **DUST)
    np.testing.assert_allclose(numbers(answer.bias)[0], driven.bias(AT, [1.0, 0.0, 0.0]), **DUST)
    assert "nose" in ros.set(NODE, payload__link="nose")
    assert bench("get_tree").model_id == driven.model_id


SLOW = """
import time
from pathlib import Path
from rnea_ros.nodes import query_node as node
from rnea_ros.nodes.common.process import run

service = node.SERVICES["compute_sensitivities"]

def slow(*arguments):
    found = service.answer(*arguments)
    while not Path("compiled").exists():
        time.sleep(0.002)
    return found

node.SERVICES["compute_sensitivities"] = service._replace(answer=slow)
raise SystemExit(run([node.QueryNode]))
"""


def test_first_request_that_compiles_does_not_delay_others(ros):
    """Compilation of the first request is blocked until the other requests have been answered."""
    n, program, start = 10, ros.folder / "program.py", ros.start
    program.write_text(SLOW)
    ros.start = lambda module, *parameters: start(program, *parameters)
    bench = QueryBench(ros, robot_description=chain(n)).ready()
    sample = JointSample(position=[0.1] * n)
    assert bench("compute_inverse_dynamics", samples=[sample]).success  # from here on it is quick
    kind = SERVICES["compute_sensitivities"]
    slow = ros.node.create_client(kind, f"{NODE}/compute_sensitivities")
    ros.until(slow.service_is_ready)
    future = slow.call_async(kind.Request(samples=[sample], of_rate=True))
    for _ in range(10):
        assert bench("compute_inverse_dynamics", samples=[sample]).success and not future.done()
    (ros.folder / "compiled").touch()
    ros.until(future.done, of=bench.process)
    assert future.result().success and len(future.result().drate_djerk) == 1


@pytest.mark.parametrize(("how", "compiles"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)])
def test_query_node_exits_cleanly_on_sigint_and_sigterm(ros, how, compiles):
    bench = QueryBench(ros, robot_description=chain(8) if compiles else ARM).ready()
    kind = SERVICES["compute_sensitivities"]
    client = ros.node.create_client(kind, f"{NODE}/compute_sensitivities")
    ros.until(client.service_is_ready)
    for _ in range(3):
        client.call_async(kind.Request(samples=[JointSample(position=[0.1] * (8 if compiles else 3))], of_rate=compiles))
    time.sleep(0.2)
    assert bench.process.stop(how) == 0
    assert "Traceback" not in bench.process.log and "rror" not in bench.process.log


def test_query_node_exits_with_an_error_for_invalid_parameters(ros):
    process = ros.start("query_node", {"backend": "fortran"})
    ros.until(lambda: not process.alive)
    assert process.stop() == 1
    assert "llvm, c, python, reference" in process.log and "Traceback" not in process.log
