"""External wrenches in dynamics_node: frames, rates, late and invalid messages, tare, sensors that include the tool."""

from __future__ import annotations

import math
from concurrent.futures import Future
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from geometry_msgs.msg import WrenchStamped
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64
from std_srvs.srv import Trigger

from rnea_ros import InputError, Loads, Robot
from rnea_ros.errors import Rejected
from rnea_ros.model.urdf_reader import without_mass
from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE, WRENCHES, with_wrenches
from rnea_ros.nodes.dynamics import external_wrenches
from rnea_ros.nodes.dynamics.external_wrenches import ExternalWrench, wrench_names
from rnea_ros.robots.conditions import moving_transform
from support.node_bench import ARM, NODE, Bench
from support.oracles import PinocchioOracle, along, difference, worst
from support.ros_helpers import ros_domain, stamp

SIX = np.array([3.0, -2.0, 15.0, 0.4, -0.5, 0.6])
SECOND = 10**9
STILL = np.zeros((2, 3))


def message(six=SIX, frame="", seconds=0.0):
    found = WrenchStamped()
    found.header.frame_id, found.header.stamp = frame, stamp(seconds)
    for k, axis in enumerate("xyz"):
        setattr(found.wrench.force, axis, float(six[k]))
        setattr(found.wrench.torque, axis, float(six[k + 3]))
    return found


# --- one wrench, in this process -------------------------------------------------------------------------------------


class SynchronousExecutor:
    """Executor that runs each submitted function at once."""

    @staticmethod
    def submit(function, *arguments):
        done: Future = Future()
        done.set_result(function(*arguments))
        return done


class Wrench:
    """External wrench on the hand, without a node."""

    def __init__(self, robot, workers=SynchronousExecutor, **values):
        defaults = {entry.name: entry.default for entry in with_wrenches(WRENCHES, ["hand"])} | {
            "wrenches.hand.link": "hand", "wrenches.hand.timeout": 10.0}
        self.values = defaults | {f"wrenches.hand.{name}": value for name, value in values.items()}
        self.wrench = ExternalWrench("hand", SimpleNamespace(values=self.values), lambda: 0, workers)
        self.wrench.use(robot)

    def receive(self, *args, **given):
        self.wrench.on_message(serialize_message(message(*args, **given)))

    def at(self, seconds=0.0):
        return self.wrench.at(round(seconds * 1e9), *STILL)

    def age(self, seconds):
        self.wrench.stream.arrival -= round(seconds * 1e9)

    @property
    def last_drop(self):
        return self.wrench.stream.last_drop


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


def test_sign_parameter_selects_wrench_on_or_by_the_robot(robot):
    for sign, factor in (("on_robot", 1.0), ("by_robot", -1.0)):
        topic = Wrench(robot, sign=sign)
        np.testing.assert_array_equal(topic.at(), np.zeros((2, 6)))
        topic.receive()
        np.testing.assert_array_equal(topic.at(), [factor * SIX, np.zeros(6)])


def test_wrench_is_extrapolated_linearly_to_the_stamp_of_the_joint_state(robot):
    slope = np.arange(6.0) - 2.5
    for rate in ("estimated", "zero"):
        topic = Wrench(robot, rate=rate)
        for seconds in (1.0, 1.01, 1.03, 1.04):
            topic.receive(SIX + seconds * slope, seconds=seconds)
        for seconds in (1.045, 1.035):
            value, speed = topic.at(seconds)
            there = seconds if rate == "estimated" else 1.04
            np.testing.assert_allclose(value, SIX + there * slope, atol=1e-12)
            np.testing.assert_allclose(speed, slope * (rate == "estimated"), atol=1e-10)
        value, _ = topic.at(5000.0)  # stamps of another clock
        np.testing.assert_allclose(value, SIX + 1.04 * slope)


@pytest.mark.parametrize("policy", ["drop", "hold", "stop"])
def test_outdated_wrench_has_the_effect_of_on_timeout(robot, policy):
    topic = Wrench(robot, on_timeout=policy)
    assert any("no usable message yet" in warning for warning in topic.wrench.warnings())
    for seconds in (0.0, 0.01):
        topic.receive(SIX * seconds, seconds=seconds)
    assert not topic.wrench.warnings()
    topic.age(20.0)
    assert any("no usable message for 2" in warning for warning in topic.wrench.warnings())
    if policy == "stop":
        with pytest.raises(Rejected, match="wrench 'hand'") as caught:
            topic.at()
        assert caught.value.reason == "wrench_timeout"
    else:
        np.testing.assert_allclose(topic.at(0.02), [0.01 * SIX * (policy == "hold"), np.zeros(6)])


def test_invalid_wrenches_are_dropped_and_counted(robot):
    topic = Wrench(robot)
    bad = [("wrench_not_finite: force.y = nan, torque.z = inf", message([0.0, math.nan, 0.0, 0.0, 0.0, math.inf])),
           ("unknown_frame: frame_id 'hnd' is no link of robot 'arm'; its links: base, upper, fore, wrist, hand, tool; an "
            "empty one is link 'hand'; did you mean 'hand'?", message(frame="hnd"))]
    for words, given in bad:
        topic.wrench.on_message(serialize_message(given))
        assert topic.last_drop == words
    whole = serialize_message(message())
    for data, reason in ((b"", "malformed_header"), (whole[:30], "malformed_truncated"), (whole + bytes(200), "malformed_l")):
        topic.wrench.on_message(data)
        assert topic.last_drop.startswith(reason)
    assert topic.wrench.stream.received == 5 and sum(topic.wrench.stream.dropped.values()) == 5
    np.testing.assert_array_equal(topic.at(), np.zeros((2, 6)))
    without = Wrench(robot)
    without.wrench._robot = None
    without.receive()
    assert without.last_drop.startswith("no_model")


def test_backward_stamp_restarts_the_wrench_history(robot):
    topic = Wrench(robot)
    topic.receive(seconds=2.0)
    topic.receive(seconds=1.0)
    assert topic.last_drop.startswith("stamp_went_back") and not topic.at(1.0)[0].any()
    topic.receive(seconds=1.01)
    np.testing.assert_array_equal(topic.at(1.01)[0], SIX)


def test_wrench_in_a_moving_frame_is_used_once_its_kernels_are_compiled(robot):
    pending: Future = Future()
    topic = Wrench(robot, SimpleNamespace(submit=lambda *_: pending))
    topic.receive(frame="base", seconds=1.0)
    assert topic.last_drop.startswith("frame_not_ready") and not topic.wrench.stream.faults
    pending.set_result(None)
    topic.receive(frame="base", seconds=2.0)
    q, qd = np.array([[0.3, -0.4, 0.1], [1.0, 2.0, -1.0]])
    expected = moving_transform(robot, "hand", "base", q, qd)(SIX, np.zeros(6))
    np.testing.assert_array_equal(topic.wrench.at(2 * SECOND, q, qd), expected)


def test_new_frame_or_model_restarts_the_wrench_history_and_a_new_payload_does_not(robot):
    topic = Wrench(robot)
    topic.receive(seconds=1.0)
    topic.receive(2.0 * SIX, frame="tool", seconds=1.01)
    assert not topic.at(1.01)[1].any()  # no line is fitted through values of two frames
    topic.wrench.use(robot.with_payload("tool", 1.0))
    assert topic.at(1.01)[0].any()
    topic.wrench.use(Robot.from_urdf(ARM))
    assert not topic.at(1.01)[0].any()


def test_tare_subtracts_the_mean_of_recent_wrenches(robot, monkeypatch):
    monkeypatch.setattr(external_wrenches, "TARE_NS", 1000 * SECOND)
    topic = Wrench(robot, sign="by_robot")
    assert topic.wrench.tare() == (False, "hand: no message in the last second, its zero stays")
    for k in range(4):
        topic.receive(SIX + (-1.0) ** k, seconds=1.0 + 0.01 * k)
    done, words = topic.wrench.tare()
    assert done and "3 -2 15 0.4 -0.5 0.6 [N, N m] in frame 'hand', the mean of 4" in words
    topic.receive(SIX + 1.0, seconds=1.2)
    np.testing.assert_allclose(topic.at(1.2)[0], -np.ones(6))
    topic.receive(SIX, frame="tool", seconds=1.3)  # another frame has its own tare
    assert topic.wrench.tare()[1].endswith("the mean of 1, is zero now")
    monkeypatch.setattr(external_wrenches, "TARE_NS", 0)
    assert not topic.wrench.tare()[0]


@pytest.mark.parametrize(("given", "complaint"), [
    (["a", "b"], ""), ([""], ""), (["1st"], "has '1st'; a letter"), (["a/b"], "has 'a/b'"), (["a", "a"], "'a' more than once"),
    ("wrist", "must be a list of strings"), ([1.0], "must be a list of strings")])
def test_invalid_wrench_names_are_rejected(given, complaint):
    node = SimpleNamespace(has_parameter=lambda name: True, get_parameter=lambda name: Parameter(name, value=given))
    if complaint:
        with pytest.raises(InputError, match=complaint):
            wrench_names(node)
    else:
        assert wrench_names(node) == [name for name in given if name]


def test_parameter_table_has_entries_for_each_named_wrench():
    names = [entry.name for entry in with_wrenches(DYNAMICS_TABLE, ["a", "b"])]
    assert "wrenches.a.topic" in names and "wrenches.b.topic" in names and not any("<wrench>" in name for name in names)
    assert {entry.default for entry in with_wrenches(WRENCHES, ["a"]) if entry.name.endswith("topic")} == {"~/wrench/a"}


def test_wrench_that_includes_the_tool_replaces_its_mass(robot):
    """Pinocchio with a joint at the mount yields the wrench that the sensor measures. With this wrench, and without mass
    beyond the sensor, the torques equal those of the whole robot under the same contact.
    """
    rng, whole = np.random.default_rng(6), PinocchioOracle(ARM, robot)
    jointed = ARM.replace('name="mount" type="fixed"', 'name="mount" type="continuous"')
    inside = PinocchioOracle(jointed, Robot.from_urdf(jointed, backend="reference"))
    light = Robot.from_urdf(without_mass(ARM, ["tool"]), backend="reference")
    mount = inside.model.getJointId("mount")
    for _ in range(5):
        motion, contact = rng.uniform(-1.0, 1.0, (3, 3)), {"tool": 20.0 * rng.normal(size=6)}
        inside.torque(*(np.append(row, 0.0) for row in motion), contact)
        felt = -inside.data.f[mount].vector
        assert worst(light.inverse_dynamics(*motion, loads=Loads({"tool": felt})), whole.torque(*motion, contact)) < 1e-12
    assert robot.total_mass - light.total_mass == pytest.approx(2.0)


# --- a node ----------------------------------------------------------------------------------------------------------

LINKS = {"wrist": "tool", "elbow": "fore"}


class WrenchBench(Bench):
    """Arm with a wrist sensor (sign by_robot) and a contact at its elbow, expressed along the axes of the base."""

    def __init__(self, ros):
        given = {"names": list(LINKS), "wrist.sign": "by_robot", "wrist.topic": "/ft_sensor", "wrist.window": 2.0,
                 "elbow.rate": "zero"}
        given |= {f"{name}.link": link for name, link in LINKS.items()} | {f"{name}.timeout": 10.0 for name in LINKS}
        super().__init__(ros, robot_description=ARM, desired_timeout=10.0,
                         **{f"wrenches.{name}": value for name, value in given.items()})
        create = ros.node.create_publisher
        self.wrist = create(WrenchStamped, "/ft_sensor", 10)
        self.elbow = create(WrenchStamped, f"{NODE}/wrench/elbow", 10)

    def ready(self):
        super().ready()
        self.ros.until(lambda: self.wrist.get_subscription_count() and self.elbow.get_subscription_count())
        return self

    def touch(self, publisher, name, six, frame, count=1):
        """Publish a wrench, or a function of its stamp, until the node has accepted `count` messages."""
        stream = f"wrench.{name}"
        before = dict(self.diagnostics.next())

        def accepted():
            when = self.tick()
            publisher.publish(message(six(when) if callable(six) else six, frame, when))
            return usable(self.diagnostics.values) >= usable(before) + count

        def usable(values):
            dropped = sum(int(count) for key, count in values.items() if key.startswith(f"dropped.{stream}."))
            return int(values[f"{stream}.received"]) - dropped

        self.ros.until(accepted, of=self.process)


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield WrenchBench(ros).ready()


@pytest.mark.ros
def test_torque_and_rate_under_a_time_varying_wrench_match_pinocchio(bench, robot):
    """A wrench that is linear in time is reproduced exactly, whichever of its messages arrived last."""
    rng, oracle = np.random.default_rng(5), PinocchioOracle(ARM, robot)
    held, start, slope = rng.normal(size=(3, 6)) * 10.0
    bench.touch(bench.elbow, "elbow", held, "base")
    origin, motion, answered = bench.clock, rng.uniform(-1.0, 1.0, (4, 3)), 0
    bench.touch(bench.wrist, "wrist", lambda when: start + (when - origin) * slope, "hand", count=5)
    while answered < 25:
        seconds = round((bench.clock - origin + 0.7 * bench.dt) * 1e9) * 1e-9
        bench.wrist.publish(message(start + seconds * slope, "hand", origin + seconds))
        now = np.array([*along(*motion, bench.clock + bench.dt - origin), motion[3]])
        result = bench.send(now, attempts=1)
        if result is None:  # a lost message: the next result has another stamp
            continue
        answered += 1

        def loads(t, at=result.header.stamp, now=now):
            """Return the wrenches of the environment on the links, in their frames, t seconds later."""
            q, qd, *_ = along(*now, t)
            six = -(start + (at.sec - origin + at.nanosec * 1e-9 + t) * slope)
            return {"tool": moving_transform(robot, "tool", "hand", q, qd)(six, -slope),
                    "fore": moving_transform(robot, "fore", "base", q, qd)(held, np.zeros(6))}

        wrenches, rates = ({link: pair[part] for link, pair in loads(0.0).items()} for part in range(2))
        expected = robot.dynamics(*now, loads=Loads(wrenches, rates))
        for field, ours in zip(("effort", "effort_rate", "gravity_effort", "gravity_effort_rate"), expected):
            assert worst(np.array(getattr(result, field)), ours) < 1e-8, field
        truth = [lambda t: oracle.torque(*along(*now, t), {link: pair[0] for link, pair in loads(t).items()})]  # noqa: B023
        assert worst(np.array(result.effort), truth[0](0.0)) < 1e-8
        assert worst(np.array(result.effort_rate), difference(truth[0])) < 1e-7


@pytest.mark.ros
def test_speed_factor_under_external_wrenches_just_meets_a_limit(bench, robot):
    """The wrench is treated as a function of the path, independent of the speed: the slowed motion just meets a limit."""
    oracle, rng = PinocchioOracle(ARM, robot), np.random.default_rng(8)
    most = np.array([40.0, np.inf, 60.0])  # of the URDF [N m, N]

    def share(motion):
        """Return the utilization of the effort limits at this speed."""
        return (np.abs(oracle.torque(*motion[:3], {"fore": SIX})) / most).max()

    def some_motion():
        while True:
            motion = rng.uniform(-1.0, 1.0, (4, 3)) * 6.0 ** np.arange(4)[:, None]
            if share(motion * [[1.0], [0.0], [0.0], [0.0]]) < 0.8 and share(motion) > 1.2:
                return motion

    topic: list[Float64] = bench.ros.listen(Float64, f"{NODE}/speed_scaling")
    assert not bench.ros.set(NODE, wrenches__wrist__timeout=0.001, publish_speed_scaling=True, speed_scaling__fall=100.0,
                             speed_scaling__rise=100.0)
    bench.touch(bench.elbow, "elbow", SIX, "fore")
    bench.ros.until(lambda: bench.send(np.zeros((4, 3))) and topic, of=bench.process)
    for _ in range(3):
        motion = some_motion()

        def slowed(motion=motion):
            """Return whether the newest factor belongs to this motion; the first ones are limited by the rates of the factor.
            """
            assert bench.send(motion)
            factor = topic[-1].data
            return 0.0 < factor < 1.0 and share(motion * factor ** np.arange(4)[:, None]) == pytest.approx(1.0, rel=1e-9)

        bench.ros.until(slowed)
    assert not bench.ros.set(NODE, wrenches__wrist__timeout=10.0, publish_speed_scaling=False)


@pytest.mark.ros
def test_node_drops_and_counts_invalid_wrenches(bench):
    bad = [("unknown_frame", message(frame="nose")), ("wrench_not_finite", message([math.nan] * 6)),
           ("malformed_truncated", serialize_message(message())[:40]), ("stamp_went_back", message(seconds=1.0))]
    for reason, given in bad:
        bench.touch(bench.wrist, "wrist", SIX, "tool")
        before = bench.diagnostics.dropped("wrench.wrist", reason)

        def reported(given=given, reason=reason, before=before):
            bench.wrist.publish(given)
            return bench.diagnostics.dropped("wrench.wrist", reason) > before

        bench.ros.until(reported, of=bench.process)
    assert bench.alive()


@pytest.mark.ros
def test_timeout_policies_and_tare_of_wrenches_at_run_time(bench, robot):
    assert any("external wrench 'wrist' on link 'tool' counts: /ft_sensor, exerted by the robot" in text
               for text in bench.info[-1].warnings)
    rest = np.zeros((4, 3))
    no_loads = robot.dynamics(*rest).tau
    assert not bench.ros.set(NODE, wrenches__elbow__timeout=0.001)  # treated as zero from now on
    bench.touch(bench.wrist, "wrist", SIX, "tool")
    assert not bench.ros.set(NODE, wrenches__wrist__timeout=0.001, wrenches__wrist__on_timeout="hold")
    np.testing.assert_allclose(bench.send(rest).effort, robot.dynamics(*rest, loads=Loads({"tool": -SIX})).tau, atol=1e-12)
    assert not bench.ros.set(NODE, wrenches__wrist__on_timeout="drop")
    np.testing.assert_allclose(bench.send(rest).effort, no_loads, atol=1e-12)
    bench.ros.until(lambda: bench.state() or "wrench 'wrist': no usable message for" in bench.diagnostics.status.message)
    assert not bench.ros.set(NODE, wrenches__wrist__on_timeout="stop")
    before = bench.diagnostics.dropped("joint_states", "wrench_timeout")
    bench.ros.until(lambda: bench.state() or bench.diagnostics.dropped("joint_states", "wrench_timeout") > before)
    assert not bench.ros.set(NODE, wrenches__wrist__timeout=10.0)
    for publisher, name in ((bench.wrist, "wrist"), (bench.elbow, "elbow")):
        bench.touch(publisher, name, SIX, "tool" if name == "wrist" else "fore")

    def tared():
        bench.wrist.publish(message(SIX, "tool", bench.tick()))
        bench.elbow.publish(message(SIX, "fore", bench.clock))
        answer = bench.ros.call(Trigger, f"{NODE}/tare", Trigger.Request())
        return answer.success and answer.message

    assert "wrist: 3 -2 15 0.4 -0.5 0.6 [N, N m] in frame 'tool'" in bench.ros.until(tared)
    np.testing.assert_allclose(bench.send(rest).effort, no_loads, atol=1e-9)


@pytest.mark.ros
def test_sensor_that_includes_the_tool_removes_its_mass_from_the_model(tmp_path, robot):
    given = {"wrenches.names": ["wrist"], "wrenches.wrist.link": "tool", "wrenches.wrist.includes_tool": True,
             "wrenches.wrist.timeout": 10.0, "payload.link": "tool", "payload.mass": 1.0}
    with ros_domain(tmp_path) as ros:
        refused = ros.start("dynamics_node", given | {"robot_description": ARM})
        ros.until(lambda: "the payload on link 'tool' hangs on 'tool', of which" in refused.log, of=refused)
        refused.stop()
        bench = Bench(ros, robot_description=ARM, **given | {"payload.mass": 0.0}).ready()
        light = Robot.from_urdf(without_mass(ARM, ["tool"]), backend="reference")
        assert bench.info[-1].total_mass == pytest.approx(light.total_mass)
        assert any("it includes the tool: this link and its children count without mass" in text
                   for text in bench.info[-1].warnings)
        rest = np.zeros((4, 3))
        assert worst(np.array(bench.send(rest).effort), light.inverse_dynamics(*rest[:3])) < 1e-12


@pytest.mark.ros
def test_missing_link_of_a_wrench_is_reported(tmp_path):
    with ros_domain(tmp_path) as ros:
        given = {"robot_description": ARM, "wrenches.names": ["wrist"]}
        lost = ros.start("dynamics_node", given | {"wrenches.wrist.link": "tol"})
        ros.until(lambda: "wrenches.wrist.link: link 'tol' is not in robot 'arm'" in lost.log, of=lost)
        assert "did you mean 'tool'" in lost.log and lost.alive
        without = ros.start("dynamics_node", given)
        assert without.wait() == 1 and "wrenches.wrist.link is empty" in without.log
