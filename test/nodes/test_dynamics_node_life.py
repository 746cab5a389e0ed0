"""Life cycle of the dynamics_node process: late and changed descriptions, namespaces, clocks, signals, invalid parameters."""

from __future__ import annotations

import array
import math
import re
import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from rcl_interfaces.srv import ListParameters
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from std_msgs.msg import String

from rnea_msgs.msg import JointDynamics, JointMotion
from rnea_ros import Robot
from rnea_ros.estimation.motion_estimator import LAG
from support.node_bench import ARM, NAMES, NODE, Bench, chain, urdf
from support.ros_helpers import LATCHED, stamp

pytestmark = pytest.mark.ros


def test_late_invalid_replaced_and_repeated_descriptions_are_handled(ros):
    bench = Bench(ros)
    ros.until(lambda: bench.diagnostics.state == "WAITING_MODEL")
    assert "/robot_description" in bench.diagnostics.status.message
    ros.until(bench.states.get_subscription_count)
    ros.until(lambda: bench.state() or bench.diagnostics.dropped("joint_states", "no_model") > 20)  # the URDF is late
    assert not bench.results
    topic = ros.node.create_publisher(String, "/robot_description", LATCHED)

    topic.publish(String(data='<robot name="x"><link name="a"/><link name="b"/></robot>'))
    ros.until(lambda: bench.diagnostics.state == "FAULT")
    topic.publish(String(data=ARM))
    bench.ready()
    bench.active()
    assert not bench.diagnostics.values["model_error"]

    models = len(bench.info)
    topic.publish(String(data=ARM))  # identical: not rebuilt
    topic.publish(String(data="<robot><link name='a'></robot>"))
    ros.until(lambda: bench.diagnostics.values["model_error"])
    assert bench.alive() and len(bench.info) == models
    topic.publish(String(data="/robots/arm.urdf"))  # text from a topic is never a path to open
    ros.until(lambda: "XML" in bench.diagnostics.values["model_error"])
    topic.publish(String(data=urdf("second").replace("spin", "whirl")))
    ros.until(lambda: bench.info[-1].robot_name == "second")
    assert list(bench.info[-1].joint_names) == ["turn", "whirl", "slide"]
    bench.ros.until(lambda: bench.send(np.zeros((4, 3)), ["slide", "whirl", "turn"]))
    assert not bench.diagnostics.next()["model_error"]

    topic.publish(String(data="<robot/>"))
    ros.until(lambda: bench.diagnostics.values["model_error"])
    assert not ros.set(NODE, gravity=[0.0, 0.0, -1.62])  # applies to the model in use
    ros.until(lambda: bench.info[-1].gravity[2] == -1.62)


def test_rejected_states_are_logged_only_after_the_model_is_ready(ros):
    """Joint states that arrive before the model cause no warning; later ones are logged with the reason of the rejection."""
    bench = Bench(ros, **{"diagnostics.period": 1.0})
    bare = {"velocity": [], "effort": []}

    def publish_names(*names: str) -> None:
        bench.state(name=[*names], position=[0.0] * len(names), **bare)
        ros.spin(0.02)

    ros.until(bench.states.get_subscription_count)
    ros.node.create_publisher(String, "/robot_description", LATCHED).publish(String(data=chain(30)))
    while not bench.info:
        publish_names("j0")
    ros.until(lambda: bench.diagnostics.dropped("joint_states", "no_model") > 0)
    ros.until(lambda: "WAITING_STATE" in bench.process.log)
    before, _, preparing = bench.process.log.partition("preparing the model")
    meanwhile = preparing.partition("WAITING_STATE")[0].splitlines()
    assert meanwhile and "dropped" not in before, bench.process.log
    assert [line for line in meanwhile if "WARN" in line and "has no <limit>" not in line] == []

    def said(text: str) -> None:
        ros.until(lambda: publish_names("j0", "strange") or text in bench.process.log, of=bench.process)

    said("last one dropped: joint_missing: no message names j1, j2, j3, j4, j5, j6, j7, j8, j9, j10, j11, j12 and 17 more")
    said("not of this robot: strange; /joint_states has 1 publisher")
    bench.state(name=["j1"], position=[math.nan], **bare)
    said("joint_states rejected, position_not_finite: j1 = nan")


def test_unpublished_joints_are_held_at_their_parameter(ros):
    bench = Bench(ros, robot_description=ARM, **{"hold_joints.slide": 0.25})
    ros.until(lambda: bench.info and bench.states.get_subscription_count() and bench.desired.get_subscription_count())

    def publish_names() -> JointDynamics | None:
        desired = JointMotion(joint_names=NAMES[:2], acceleration=[1.0, 2.0], jerk=[3.0, 4.0])
        desired.header.stamp = stamp(bench.clock, -bench.dt)  # of the joint state that follows
        bench.desired.publish(desired)
        bench.state(name=NAMES[:2], position=[0.1, 0.2], velocity=[0.3, 0.4])
        answer = bench.answer(stamp(bench.clock), timeout=2.0)
        return answer if answer and answer.jerk[0] else None  # zero: the desired motion was out of date already

    result = ros.until(publish_names)
    assert list(result.position) == [0.1, 0.2, 0.25] and list(result.velocity) == [0.3, 0.4, 0.0]
    assert list(result.acceleration) == [1.0, 2.0, 0.0] and list(result.jerk) == [3.0, 4.0, 0.0]
    assert not ros.set(NODE, hold_joints__slide=-0.5)
    assert ros.until(publish_names).position[2] == -0.5


def test_two_robots_in_two_namespaces(ros):
    left = Bench(ros, "left", robot_description=ARM)
    unreliable = QoSProfile(depth=5, reliability=ReliabilityPolicy.BEST_EFFORT)
    right = Bench(ros, "right", unreliable, robot_description=urdf("right", 5.0))
    motion = np.full((4, 3), 0.4)
    for bench, text in ((left.ready(), ARM), (right.ready(), urdf("right", 5.0))):
        assert list(bench.send(motion).effort) == Robot.from_urdf(text).dynamics(*motion).tau.tolist()
    for bench, name in ((left, "arm"), (right, "right")):
        bench.active()
        assert bench.diagnostics.status.hardware_id == name


def test_qos_overrides_are_applied(ros):
    Bench(ros, robot_description=ARM, qos_overrides={"/joint_states": {"subscription": {"reliability": "reliable"}}}).ready()
    (joint_states,) = ros.node.get_subscriptions_info_by_topic("/joint_states")
    (result,) = ros.node.get_publishers_info_by_topic(f"{NODE}/joint_effort")
    assert joint_states.qos_profile.reliability == result.qos_profile.reliability == ReliabilityPolicy.RELIABLE


def test_backward_jump_of_the_clock_drops_no_states_and_clears_the_history(ros):
    """Restart of a simulation: no state is dropped for its stamp, and no fit spans the jump."""
    bench = Bench(ros, robot_description=ARM, use_sim_time=True, motion_source="estimated")
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    ros.until(lambda: bench.info and bench.states.get_subscription_count() and clock.get_subscription_count())

    def met() -> bool:
        """Return whether clock and joint states have reached the node."""
        clock.publish(Clock(clock=stamp(50.0)))
        bench.clock = 50.0
        bench.state()
        return bench.diagnostics.stamp.sec == 50 and bench.diagnostics.values.get("joint_states.received", "0") != "0"

    ros.until(met)

    def play(start: float, slope: float) -> JointDynamics:
        bench.clock = start - bench.dt

        def shown() -> bool:
            """Return whether the node's clock has jumped: the clock and joint states are independent topics."""
            clock.publish(Clock(clock=stamp(start)))
            return bench.diagnostics.stamp == stamp(start)

        ros.until(shown)

        def answered():
            for _ in range(60):
                clock.publish(Clock(clock=stamp(bench.clock + bench.dt)))
                ros.spin(0.01)
                bench.state(position=[slope * (bench.clock + bench.dt - start)] * 3, velocity=[slope] * 3)
                ros.spin(0.01)
            return bench.answer(stamp(bench.clock, LAG), timeout=2.0)

        return ros.until(answered)

    play(100.0, 1.0)
    result = play(90.0, -3.0)
    np.testing.assert_allclose(result.acceleration, 0.0, atol=0.02)  # of the new motion alone
    assert "dropped.joint_states.stamp_went_back" not in bench.diagnostics.next()
    play(3700.0, 2.0)  # and forward by an hour


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_dynamics_node_exits_cleanly_on_sigint_and_sigterm(ros, how):
    bench = Bench(ros, robot_description=ARM).ready()
    for _ in range(200):
        bench.state()
    assert bench.process.stop(how) == 0
    assert "Traceback" not in bench.process.log and "rror" not in bench.process.log


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2])
def test_dynamics_node_exits_cleanly_on_a_signal_while_starting_or_building(ros, delay):
    bench = Bench(ros, robot_description=chain(12))
    ros.until(lambda: bench.states.get_subscription_count())
    time.sleep(delay)
    assert bench.process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in bench.process.log


SLOW = """
import time
from pathlib import Path
from rnea_ros.nodes.common.process import run
from rnea_ros.nodes.dynamics import node

serve = node.DynamicsNode._serve

def slow(self, robot, request):
    made = serve(self, robot, request)
    while robot.name == "chain" and not Path("built").exists():
        time.sleep(0.002)
    return made

node.DynamicsNode._serve = slow
raise SystemExit(run([node.DynamicsNode]))
"""


def test_old_model_answers_all_states_while_a_new_one_is_built(ros):
    """The old model serves until the new one is built, however long that takes: each state is answered."""
    class SlowBench(Bench):
        program = ros.folder / "program.py"

    SlowBench.program.write_text(SLOW)
    bench = SlowBench(ros, robot_description=ARM).ready()
    assert not ros.set(NODE, robot_description=chain(16, tuple(NAMES)))
    for _ in range(50):
        bench.state()
        assert bench.answer(stamp(bench.clock)) is not None and bench.info[-1].robot_name == "arm"
    (ros.folder / "built").touch()
    ros.until(lambda: bench.info[-1].robot_name == "chain", of=bench.process)


@pytest.mark.parametrize(("parameters", "complaint"), [
    ({"state_timeout": 1}, "state_timeout must be a double, got 1 (write 1.0, not 1)"),
    ({"motion_source": "guess"}, "auto, desired, estimated"),
    ({"joint_limits.turn.max_effort": "strong"}, "joint_limits.turn.max_effort must be a double"),
])
def test_dynamics_node_exits_with_an_error_for_invalid_parameters(ros, parameters, complaint):
    process = ros.start("dynamics_node", parameters)
    ros.until(lambda: not process.alive)
    assert process.stop() == 1
    assert complaint in process.log and "Traceback" not in process.log


def test_warning_names_parameters_without_effect(ros):
    bench = Bench(ros, robot_description=ARM, motion_sorce="desired",
                  **{"joint_limits.trun.max_effort": 3.0, "joint_limits.spin.min_position": -3.0}).ready()
    assert "'motion_sorce' is not known and has no effect; did you mean 'motion_source'" in bench.process.log
    assert "'joint_limits.trun.max_effort' names no joint" in bench.process.log
    assert "'joint_limits.spin.min_position' has no effect while" in bench.process.log


def warnings(bench):
    """Return the warnings about parameters."""
    return [line for line in bench.process.log.splitlines() if "WARN" in line and re.search("parameters? '", line)]


def test_dumped_parameters_restore_the_same_model_without_warnings(ros):
    """The dump contains joints of all types and every unknown limit."""
    first = Bench(ros, robot_description=ARM).ready()
    names = ros.call(ListParameters, f"{NODE}/list_parameters", ListParameters.Request()).result.names
    dumped = ros.values(NODE, list(names))
    assert sum(value != value for value in dumped.values()) > 10 and not dumped["joint_limits.spin.has_effort_limits"]
    dumped = {name: list(value) if isinstance(value, array.array) else value for name, value in dumped.items()}
    again = Bench(ros, "again", **dumped).ready()
    assert not warnings(again) and again.info[-1].model_id == first.info[-1].model_id
    other = Bench(ros, "other", **(dumped | {"robot_description": chain(2)}))
    ros.until(lambda: other.info)
    (line,) = warnings(other)
    assert "more name no joint of robot 'chain' (j0, j1)" in line
