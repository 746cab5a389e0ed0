"""dynamics_node in a process of its own, over real DDS: right to the last bit, and alive whatever is sent to it."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from ros_helpers import LATCHED, Diagnostics, World, stamp, world
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import MarkerArray

from rnea_msgs.msg import JointDynamics, JointMotion, ModelInfo
from rnea_ros import Robot
from rnea_ros.derivatives import CausalEstimator

pytestmark = pytest.mark.ros

LINK = """<link name="{0}"><inertial><origin xyz="0.02 -0.01 0.2"/><mass value="{1}"/>
  <inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.01"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><origin xyz="0 0.1 0.3" rpy="0.3 0 0.1"/><parent link="{2}"/><child link="{3}"/>
  <axis xyz="{4}"/>{5}</joint>"""
LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="{}"/>'


def urdf(name: str = "arm", mass: float = 2.0) -> str:
    """All joint types of the messages, a mimic joint and a fixed one."""
    joints = [("turn", "revolute", "base", "upper", "0 1 0", LIMIT.format(40)),
              ("spin", "continuous", "upper", "fore", "1 0 0", ""),
              ("slide", "prismatic", "fore", "wrist", "0 0 1", LIMIT.format(60)),
              ("follow", "revolute", "wrist", "hand", "0 1 0", LIMIT.format(5) + '<mimic joint="turn" multiplier="0.5"/>'),
              ("mount", "fixed", "hand", "tool", "1 0 0", "")]
    links = [LINK.format(link, mass) for link in ("base", "upper", "fore", "wrist", "hand", "tool")]
    return f'<robot name="{name}">{"".join(links)}{"".join(JOINT.format(*joint) for joint in joints)}</robot>'


def chain(n: int, first: tuple[str, ...] = ()) -> str:
    """A robot of n revolute joints, which takes its time to compile."""
    names = [*first, *(f"j{k}" for k in range(len(first), n))]
    joints = "".join(JOINT.format(name, "revolute", f"l{k}", f"l{k + 1}", "0 1 0", "") for k, name in enumerate(names))
    return f'<robot name="chain">{"".join(LINK.format(f"l{k}", 1.0) for k in range(n + 1))}{joints}</robot>'


ARM = urdf()
NAMES = ["turn", "spin", "slide"]
NODE = "/dynamics_node"


class Bench:
    """A world with one dynamics_node, what feeds it and what it answers."""

    def __init__(self, ros: World, namespace: str = "", **parameters):
        self.ros, self.node = ros, (f"/{namespace}" if namespace else "") + NODE
        prefix = f"/{namespace}" if namespace else ""
        self.process = ros.start("dynamics_node", {"diagnostics.period": 0.1, **parameters}, namespace)
        create = ros.node.create_publisher
        self.states = create(JointState, f"{prefix}/joint_states", 10)
        self.desired = create(JointMotion, f"{self.node}/desired_motion", 10)
        self.results: list[JointDynamics] = ros.listen(JointDynamics, f"{self.node}/joint_dynamics")
        self.efforts: list[JointState] = ros.listen(JointState, f"{self.node}/joint_effort")
        self.rates: list[JointState] = ros.listen(JointState, f"{self.node}/joint_effort_rate")
        self.info: list[ModelInfo] = ros.listen(ModelInfo, f"{self.node}/model_info", LATCHED)
        self.diagnostics = Diagnostics(ros, self.node)
        self.clock = 1000.0
        self.dt = 0.01

    def ready(self) -> Bench:
        """Wait for the model, and until both ends have found each other."""
        self.ros.until(lambda: self.info, what="no model")
        self.ros.until(lambda: all(p.get_subscription_count() for p in (self.states, self.desired)))
        self.ros.until(lambda: self.send(np.zeros((4, 3))), what="no answer to the first state")
        return self

    def tick(self) -> float:
        self.clock += self.dt
        return self.clock

    def state(self, **fields) -> None:
        """A joint state; what is not given is valid."""
        message = JointState(name=NAMES, position=[0.1, 0.2, 0.3], velocity=[0.0, 0.0, 0.0], effort=[math.nan] * 3)
        message.header.stamp = stamp(self.tick())
        for name, value in fields.items():
            setattr(message, name, value)
        self.states.publish(message)

    def send(self, motion: np.ndarray, names: list[str] = NAMES, timeout: float = 1.0) -> JointDynamics | None:
        """Send (q, qd, qdd, qddd) and return the answer, if one comes."""
        q, qd, qdd, qddd = (list(map(float, row)) for row in motion)
        when = stamp(self.tick())
        wanted = JointMotion(joint_names=names, acceleration=qdd, jerk=qddd)
        wanted.header.stamp = when
        state = JointState(name=names, position=q, velocity=qd, effort=[math.nan] * len(q))
        state.header.stamp = when
        self.desired.publish(wanted)
        self.ros.spin(0.002)
        self.states.publish(state)
        return self.answer(when, timeout)

    def answer(self, when, timeout: float = 1.0) -> JointDynamics | None:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.ros.spin(0.005)
            for message in self.results:
                if message.header.stamp == when:
                    return message
        return None

    def alive(self) -> bool:
        return self.process.alive and self.send(np.zeros((4, 3))) is not None


@pytest.fixture
def ros(tmp_path):
    with world(tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """One node for all checks that leave it as they found it."""
    with world(tmp_path_factory.mktemp("ros")) as made:
        limits = {"has_effort_rate_limits": True, "max_effort_rate": 100.0}
        yield Bench(made, robot_description=ARM, **{"joint_limits.turn." + k: v for k, v in limits.items()}).ready()


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


@pytest.fixture
def rng():
    return np.random.default_rng(7)


# ---------------------------------------------------------------------- what it computes


def test_results_are_the_librarys_to_the_last_bit(bench, robot, rng):
    for _ in range(10):
        motion = rng.uniform(-2.0, 2.0, (4, 3))
        order = rng.permutation(5)
        names = [(*NAMES, "follow", "not_ours")[k] for k in order]
        result = bench.send(np.hstack((motion, np.full((4, 2), 9.0)))[:, order], names)
        expected = robot.dynamics(*motion)
        fields = ("position", "velocity", "acceleration", "jerk",
                  "effort", "effort_rate", "gravity_effort", "gravity_effort_rate")
        for field, values in zip(fields, (*motion, *expected)):
            assert list(getattr(result, field)) == values.tolist(), field
        assert list(result.joint_names) == list(robot.joint_names)


def test_joint_states_repeat_state_and_stamp(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    result = bench.send(motion)
    expected = robot.dynamics(*motion)
    for received, values in ((bench.efforts, expected.tau), (bench.rates, expected.tau_rate)):
        message = bench.ros.until(lambda r=received: r and r[-1].header.stamp == result.header.stamp and r[-1])
        assert message.header.frame_id == result.header.frame_id == "base"
        assert (list(message.name), list(message.position), list(message.velocity)) == (NAMES, [*motion[0]], [*motion[1]])
        assert list(message.effort) == values.tolist()


def test_limits_and_utilization(bench, rng):
    result = bench.send(rng.uniform(-1.0, 1.0, (4, 3)))
    np.testing.assert_array_equal(result.effort_limit, [40.0, math.nan, 60.0])
    np.testing.assert_array_equal(result.effort_rate_limit, [100.0, math.nan, math.nan])
    np.testing.assert_array_equal(result.effort_utilization, np.abs(result.effort) / np.array(result.effort_limit))
    np.testing.assert_array_equal(result.effort_rate_utilization[0], abs(result.effort_rate[0]) / 100.0)


def test_model_info_reaches_late_subscribers(bench, robot):
    late = bench.ros.listen(ModelInfo, f"{NODE}/model_info", LATCHED)
    info = bench.ros.until(lambda: late and late[-1])
    assert info.model_id == robot.model_id
    assert (list(info.joint_names), list(info.joint_types)) == (NAMES, ["revolute", "continuous", "prismatic"])
    assert list(info.effort_rate_units) == ["N.m/s", "N.m/s", "N/s"]
    assert info.total_mass == robot.total_mass
    assert [row[0] for row in robot.mdh_table()] == list(info.frame_names)


def test_a_desired_motion_waits_for_its_stamp(bench, robot):
    """Motions sent ahead are used when their time has come, not when they arrive."""
    first, second, third = (bench.tick() for _ in range(3))
    for when, value in ((first, 1.0), (third, 3.0)):
        message = JointMotion(joint_names=NAMES, acceleration=[value] * 3, jerk=[value] * 3)
        message.header.stamp = stamp(when)
        bench.desired.publish(message)
    bench.ros.spin(0.05)
    for when, value in ((second, 1.0), (third, 3.0)):
        bench.state(header=JointState().header.__class__(stamp=stamp(when)))
        assert list(bench.answer(stamp(when)).acceleration) == [value] * 3


# ---------------------------------------------------------------------- what it refuses

BAD_STATES = {
    "empty": {"name": [], "position": [], "velocity": [], "effort": []},
    "duplicate_joint": {"name": ["turn", "spin", "turn"]},
    "joint_missing": {"name": ["turn", "spin", "else"]},
    "wrong_size": {"position": [0.0, 0.0]},
    "position_not_finite": {"position": [0.0, math.nan, 0.0]},
    "velocity_missing": {"velocity": []},
    "stamp_went_back": {"header": JointState().header.__class__(stamp=stamp(1.0))},
}
MORE_BAD_STATES = [
    ("wrong_size", {"position": []}),
    ("wrong_size", {"velocity": [0.0]}),
    ("position_not_finite", {"position": [math.inf] * 3}),
    ("velocity_missing", {"velocity": [0.0, math.nan, 0.0]}),
    ("result_not_finite", {"velocity": [1e200] * 3}),
]
BAD_MOTIONS = {
    "empty": {"joint_names": [], "acceleration": [], "jerk": []},
    "joint_missing": {"joint_names": ["turn", "spin"], "acceleration": [0.0, 0.0], "jerk": [0.0, 0.0]},
    "wrong_size": {"jerk": []},
    "acceleration_not_finite": {"acceleration": [math.nan, 0.0, 0.0]},
    "jerk_not_finite": {"jerk": [0.0, 0.0, -math.inf]},
}


@pytest.mark.parametrize(("reason", "fields"), [*BAD_STATES.items(), *MORE_BAD_STATES])
def test_bad_state_is_dropped_and_counted(bench, reason, fields):
    before, results = int(bench.diagnostics.next().get(f"dropped.joint_states.{reason}", 0)), len(bench.results)
    bench.state(**fields)
    bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", reason) == before + 1)
    assert len(bench.results) == results
    assert bench.diagnostics.values["joint_states.last_drop"].startswith(reason)
    assert bench.alive()


@pytest.mark.parametrize(("reason", "fields"), BAD_MOTIONS.items())
def test_bad_desired_motion_is_dropped_and_counted(bench, reason, fields):
    before = int(bench.diagnostics.next().get(f"dropped.desired_motion.{reason}", 0))
    message = JointMotion(joint_names=NAMES, acceleration=[0.0] * 3, jerk=[0.0] * 3)
    message.header.stamp = stamp(bench.tick())
    for name, value in fields.items():
        setattr(message, name, value)
    bench.desired.publish(message)
    bench.ros.until(lambda: bench.diagnostics.dropped("desired_motion", reason) == before + 1)
    assert bench.alive()


def test_missing_joints_are_named(bench):
    bench.state(name=["spin", "x", "y"])
    bench.ros.until(lambda: "turn, slide" in bench.diagnostics.values.get("joint_states.last_drop", ""))


def test_effort_of_the_state_does_not_matter(bench):
    for effort in ([], [math.nan] * 3, [1.0], [math.inf] * 7):
        bench.state(effort=effort)
        assert bench.answer(stamp(bench.clock)) is not None


def test_stale_input_ends_the_output_and_new_input_revives_it(bench):
    assert bench.alive()
    results = len(bench.results)
    bench.ros.until(lambda: bench.diagnostics.state == "STALE", timeout=3.0)
    assert len(bench.results) == results  # nothing is repeated
    assert bench.alive()
    bench.ros.until(lambda: bench.alive() and bench.diagnostics.state == "ACTIVE", timeout=3.0)


@pytest.mark.parametrize(("policy", "jerk"), [("zero_jerk", 0.0), ("hold", 5.0), ("stop", None)])
def test_desired_timeout(bench, policy, jerk):
    assert not bench.ros.set(NODE, on_desired_timeout=policy)
    motion = np.array([[0.1] * 3, [0.0] * 3, [2.0] * 3, [5.0] * 3])
    assert list(bench.send(motion).jerk) == [5.0] * 3
    bench.ros.spin(0.15)  # desired_timeout is 0.1 s
    bench.state()
    result = bench.answer(stamp(bench.clock), timeout=0.3)
    if policy == "stop":
        assert result is None
        bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", "desired_timeout") > 0)
    else:
        assert (list(result.acceleration), list(result.jerk)) == ([2.0] * 3, [jerk] * 3)
    assert not bench.ros.set(NODE, on_desired_timeout="zero_jerk")


def test_diagnostics_say_how_it_is(bench):
    values = bench.diagnostics.next()
    for _ in range(30):
        bench.send(np.array([[0.1] * 3, [0.0] * 3, [0.0] * 3, [1000.0] * 3]))
        values = bench.diagnostics.values
        if "100" in bench.diagnostics.status.message or "of its effort_rate limit" in bench.diagnostics.status.message:
            break
    assert values["state"] == "ACTIVE"
    assert "turn reached" in bench.diagnostics.status.message and "effort_rate limit" in bench.diagnostics.status.message
    assert float(values["turn.effort_rate_utilization"]) > 1.0 and values["spin.effort_utilization"] == "nan"
    assert 0.0 < float(values["latency_p50_us"]) <= float(values["latency_p99_us"])
    assert float(values["joint_states.rate_hz"]) > 0.0
    assert bench.diagnostics.status.hardware_id == "arm"


# ---------------------------------------------------------------------- parameters


def test_bad_parameters_are_refused_with_a_reason(bench):
    for name, value, reason in [
        ("state_timeout", -1.0, "out of range"),
        ("state_timeout", 1, "type"),
        ("motion_source", "guess", "desired, estimated"),
        ("gravity", [0.0, 9.81], "3 doubles"),
        ("backend", "python", "read-only"),
        ("robot_description", "<robot/>", "no <link>"),
        ("robot_description", "/some/path.urdf", "XML"),
        ("robot_description", "", "empty"),
        ("payload__mass", 1.0, "payload.link"),
        ("payload__link", "nose", "nose"),
        ("payload__mass", -1.0, "out of range"),
        ("joint_limits__turn__max_effort", -3.0, ">= 0"),
        ("joint_dynamics__turn__viscous", math.nan, "out of range"),
    ]:
        assert reason in bench.ros.set(NODE, **{name: value}), (name, value)
    assert bench.ros.get(NODE, "state_timeout") == 0.5
    assert bench.alive()


def test_limits_change_at_run_time(bench):
    assert bench.ros.get(NODE, "joint_limits.turn.max_effort") == 40.0  # the URDF's
    assert not bench.ros.set(NODE, joint_limits__turn__max_effort=20.0, joint_limits__slide__has_effort_limits=False)
    np.testing.assert_array_equal(bench.send(np.zeros((4, 3))).effort_limit, [20.0, math.nan, math.nan])
    assert not bench.ros.set(NODE, joint_limits__turn__max_effort=40.0, joint_limits__slide__has_effort_limits=True)


def test_payload_at_run_time(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    inertia = [0.01, 0.0, 0.0, 0.02, 0.0, 0.01]
    known = len(bench.info)
    assert not bench.ros.set(NODE, together=True, payload__link="tool", payload__mass=1.5, payload__com=[0.0, 0.1, 0.2],
                             payload__inertia=inertia)
    bench.ros.until(lambda: len(bench.info) > known and bench.info[-1].model_id != robot.model_id)
    loaded = robot.with_payload("tool", 1.5, (0.0, 0.1, 0.2), np.diag([0.01, 0.02, 0.01]))
    assert list(bench.send(motion).effort_rate) == loaded.dynamics(*motion).tau_rate.tolist()
    assert bench.info[-1].model_id == loaded.model_id
    assert not bench.ros.set(NODE, together=True, payload__link="", payload__mass=0.0)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)
    assert list(bench.send(motion).effort_rate) == robot.dynamics(*motion).tau_rate.tolist()


def test_joint_dynamics_at_run_time(bench, robot, rng):
    motion = rng.uniform(-1.0, 1.0, (4, 3))
    assert not bench.ros.set(NODE, joint_dynamics__turn__viscous=2.0)
    bench.ros.until(lambda: bench.info[-1].model_id != robot.model_id)
    np.testing.assert_allclose(bench.send(motion).effort[0] - robot.dynamics(*motion).tau[0], 2.0 * motion[1, 0], rtol=1e-9)
    assert not bench.ros.set(NODE, joint_dynamics__turn__viscous=0.0)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)


# ---------------------------------------------------------------------- estimated motion


def test_estimated_motion(bench, robot):
    """Positions and velocities of a cubic: acceleration and jerk are exact, and those of the package's estimator."""
    assert not bench.ros.set(NODE, motion_source="estimated")
    estimator = CausalEstimator(3, 0.05, 3)
    c, start = np.array([[0.1, -0.2, 0.3], [1.0, 0.5, -0.4], [2.0, 0.0, 1.0], [-3.0, 2.0, 6.0]]), bench.clock
    for _ in range(8):
        t = bench.tick() - start
        q, qd = c[0] + c[1] * t + c[2] * t**2 / 2 + c[3] * t**3 / 6, c[1] + c[2] * t + c[3] * t**2 / 2
        when = stamp(bench.clock)
        estimator.push(when.sec * 10**9 + when.nanosec, q, qd)
        bench.clock -= bench.dt
        bench.state(position=q.tolist(), velocity=qd.tolist())
        bench.ros.spin(0.01)
    result = bench.answer(when)
    _, qdd, qddd = estimator.estimate()
    assert (list(result.acceleration), list(result.jerk)) == (qdd.tolist(), qddd.tolist())
    assert list(result.effort_rate) == robot.dynamics(q, qd, qdd, qddd).tau_rate.tolist()
    np.testing.assert_allclose(result.jerk, c[3], rtol=1e-6)
    assert not bench.ros.set(NODE, motion_source="desired")


def test_missing_velocity_can_be_differentiated(bench):
    assert not bench.ros.set(NODE, missing_velocity="differentiate")
    for velocity in ([], [math.nan, 7.0, math.nan]):
        start = bench.clock
        for _ in range(8):
            t = bench.tick() - start
            when = stamp(bench.clock)
            bench.clock -= bench.dt
            bench.state(position=[t, t * t, t**3], velocity=velocity)
            bench.ros.spin(0.01)
        expected = [1.0, 7.0 if velocity else 2 * t, 3 * t * t]
        np.testing.assert_allclose(bench.answer(when).velocity, expected, rtol=1e-6)
        bench.clock += 10.0  # a gap: the next fit starts anew
    assert not bench.ros.set(NODE, missing_velocity="refuse")


def test_markers_on_request(bench):
    marks: list[MarkerArray] = bench.ros.listen(MarkerArray, f"{NODE}/markers")
    assert not bench.ros.set(NODE, publish_markers=True)
    bench.ros.until(lambda: bench.alive() and marks)
    assert [(m.header.frame_id, m.type) for m in marks[-1].markers] == [("upper", 4), ("fore", 4), ("wrist", 0)]
    assert all(m.points for m in marks[-1].markers)
    assert not bench.ros.set(NODE, publish_markers=False)


def test_swapping_by_parameter(bench, robot):
    """Runs last on the shared node, and leaves it as it was."""
    heavier = urdf("heavier", 3.0)
    motion = np.full((4, 3), 0.3)
    assert not bench.ros.set(NODE, robot_description=heavier)
    bench.ros.until(lambda: bench.info[-1].robot_name == "heavier")
    assert list(bench.send(motion).effort) == Robot.from_urdf(heavier).dynamics(*motion).tau.tolist()
    assert bench.ros.get(NODE, "joint_limits.turn.max_effort_rate") == 100.0
    assert not bench.ros.set(NODE, robot_description=ARM)
    bench.ros.until(lambda: bench.info[-1].model_id == robot.model_id)
    assert bench.alive()


# ---------------------------------------------------------------------- nodes of their own


def test_description_late_broken_swapped_repeated(ros):
    bench = Bench(ros)
    ros.until(lambda: bench.diagnostics.state == "WAITING_MODEL")
    assert "/robot_description" in bench.diagnostics.status.message
    ros.until(bench.states.get_subscription_count)
    started = time.monotonic()
    while time.monotonic() - started < 5.0:  # the URDF is late
        bench.state()
        ros.spin(0.1)
    assert bench.diagnostics.dropped("joint_states", "no_model") > 0 and not bench.results
    topic = ros.node.create_publisher(String, "/robot_description", LATCHED)

    topic.publish(String(data='<robot name="x"><link name="a"/><link name="b"/></robot>'))
    ros.until(lambda: bench.diagnostics.state == "FAULT")
    topic.publish(String(data=ARM))
    bench.ready()
    ros.until(lambda: bench.diagnostics.state == "ACTIVE" and not bench.diagnostics.values["model_error"])

    models = len(bench.info)
    topic.publish(String(data=ARM))  # identical: not rebuilt
    topic.publish(String(data="<robot><link name='a'></robot>"))
    ros.until(lambda: bench.diagnostics.values["model_error"])
    assert bench.alive() and len(bench.info) == models
    topic.publish(String(data="/work/robot.urdf"))  # text from a topic is never a path to open
    ros.until(lambda: "XML" in bench.diagnostics.values["model_error"])
    topic.publish(String(data=urdf("second").replace("spin", "whirl")))
    ros.until(lambda: bench.info[-1].robot_name == "second")
    assert list(bench.info[-1].joint_names) == ["turn", "whirl", "slide"]
    bench.ros.until(lambda: bench.send(np.zeros((4, 3)), ["slide", "whirl", "turn"]))
    assert not bench.diagnostics.next()["model_error"]


def test_two_robots_in_two_namespaces(ros):
    left = Bench(ros, "left", robot_description=ARM)
    right = Bench(ros, "right", robot_description=urdf("right", 5.0))
    motion = np.full((4, 3), 0.4)
    for bench, text in ((left.ready(), ARM), (right.ready(), urdf("right", 5.0))):
        assert list(bench.send(motion).effort) == Robot.from_urdf(text).dynamics(*motion).tau.tolist()
    assert {left.diagnostics.status.name, right.diagnostics.status.name} == {
        "/left/dynamics_node: dynamics", "/right/dynamics_node: dynamics"}


def test_clock_that_jumps_back(ros):
    """A simulation is restarted: nothing is dropped for its stamps, and no fit reaches across the jump."""
    bench = Bench(ros, robot_description=ARM, use_sim_time=True, motion_source="estimated")
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    ros.until(lambda: bench.info and bench.states.get_subscription_count() and clock.get_subscription_count())

    def play(start: float, slope: float) -> JointDynamics:
        for k in range(8):
            bench.clock = start + 0.01 * k
            clock.publish(Clock(clock=stamp(bench.clock)))
            ros.spin(0.01)
            bench.clock -= bench.dt
            bench.state(position=[slope * 0.01 * k] * 3, velocity=[slope] * 3)
            ros.spin(0.01)
        return ros.until(lambda: bench.results and bench.results[-1].header.stamp == stamp(bench.clock) and bench.results[-1])

    play(100.0, 1.0)
    result = play(90.0, -3.0)
    np.testing.assert_allclose(result.acceleration, 0.0, atol=1e-6)  # of the new motion alone
    assert "dropped.joint_states.stamp_went_back" not in bench.diagnostics.next()
    play(3700.0, 2.0)  # and forward by an hour


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_it_cleanly(ros, how):
    bench = Bench(ros, robot_description=ARM).ready()
    for _ in range(200):
        bench.state()
    assert bench.process.stop(how) == 0
    assert "Traceback" not in bench.process.log and "rror" not in bench.process.log


@pytest.mark.parametrize("delay", [0.0, 0.05, 0.1, 0.2])
def test_signal_while_starting_or_building(ros, delay):
    bench = Bench(ros, robot_description=chain(12))
    ros.until(lambda: bench.states.get_subscription_count())
    time.sleep(delay)
    assert bench.process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in bench.process.log


def test_input_goes_on_while_a_model_is_built(ros):
    """The old model serves until the new one is there."""
    bench = Bench(ros, robot_description=ARM).ready()
    bench.dt = 0.002
    assert not ros.set(NODE, robot_description=chain(16, tuple(NAMES)))
    sent = 0
    while bench.info[-1].robot_name == "arm":
        sent += 1
        bench.state()
        ros.spin(0.002)
    answers = [message for message in bench.results if len(message.joint_names) == 3]
    assert sent > 20 and len(answers) > 0.8 * sent


@pytest.mark.parametrize(("parameters", "complaint"), [
    ({"state_timeout": 1}, "state_timeout must be a double, got 1 (write 1.0, not 1)"),
    ({"motion_source": "guess"}, "desired, estimated"),
    ({"joint_limits.turn.max_effort": "strong"}, "joint_limits.turn.max_effort must be a double"),
])
def test_bad_parameters_at_the_start(ros, parameters, complaint):
    process = ros.start("dynamics_node", parameters)
    ros.until(lambda: not process.alive)
    assert process.stop() == 1
    assert complaint in process.log and "Traceback" not in process.log


def test_parameters_without_effect_are_named(ros):
    bench = Bench(ros, robot_description=ARM, motion_sorce="desired",
                  **{"joint_limits.trun.max_effort": 3.0, "joint_limits.spin.max_effort": 3.0}).ready()
    assert "'motion_sorce' is not known and has no effect; did you mean 'motion_source'" in bench.process.log
    assert "'joint_limits.trun.max_effort' names no joint" in bench.process.log
    assert "'joint_limits.spin.max_effort' has no effect while" in bench.process.log
