"""Action FollowJointTrajectory of scaling_node: its logic with simulated clients; over DDS where control_msgs is installed."""

from __future__ import annotations

import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

import rclpy
from action_msgs.msg import GoalStatus
from builtin_interfaces.msg import Duration, Time
from rclpy.action import ActionClient, CancelResponse, GoalResponse
from rclpy.clock import Clock, ClockType
from rclpy.context import Context
from rclpy.node import Node
from rclpy.timer import Timer
from rclpy.waitable import NumberOfEntities, Waitable
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.executor import LeanExecutor
from rnea_ros.nodes.common.topics import goal_from_message
from rnea_ros.nodes.scaling.action import FollowJointTrajectoryServer
from support.executor_harness import ExecutorHarness
from support.overspeed_motion import DURATION, LIMITS, POINTS, ROBOT, START
from support.ros_helpers import free_domain, ros_domain
from support.scaling_bench import NAMES, Bench, message
from support.weak_robot import WeakRobot


@pytest.fixture
def harness():
    return ExecutorHarness

# --- simulated clients -----------------------------------------------------------------------------------------------------


class Result(SimpleNamespace):
    SUCCESSFUL, INVALID_GOAL, INVALID_JOINTS, OLD_HEADER_TIMESTAMP, PATH_TOLERANCE_VIOLATED = 0, -1, -2, -3, -4
    GOAL_TOLERANCE_VIOLATED = -5


def request(trajectory: JointTrajectory, **fields):
    empty = {"path_tolerance": [], "goal_tolerance": [], "goal_time_tolerance": Duration(),
             "multi_dof_trajectory": SimpleNamespace(points=[])}
    return SimpleNamespace(trajectory=trajectory, **(empty | fields))


class Feedback(SimpleNamespace):
    def __init__(self, joint_names):
        super().__init__(header=Header(), joint_names=joint_names, desired=None, actual=JointTrajectoryPoint(),
                         error=JointTrajectoryPoint(), index=-1)


class Handle:
    """Goal handle with the transitions that rclpy allows."""

    def __init__(self, asked):
        self.request, self.status, self.feedback = asked, "accepted", []

    def _go(self, to, *since):
        assert self.status in since, (self.status, to)
        self.status = to

    def execute(self):
        self._go("executing", "accepted")

    def succeed(self):
        self._go("succeeded", "executing", "canceling")

    def abort(self):
        self._go("aborted", "executing", "canceling")

    def canceled(self):
        self._go("canceled", "canceling")

    @property
    def is_cancel_requested(self):
        return self.status == "canceling"

    def publish_feedback(self, feedback):
        self.feedback.append(feedback)


class ActionHarness:
    """FollowJointTrajectoryServer with a trajectory executor on a simulated clock, and simulated clients."""

    def __init__(self, sim: ExecutorHarness):
        self.sim, self.results, self.rejected, self.timer = sim, {}, [], []
        self.health = SimpleNamespace(trajectories=Stream("trajectory"), last=None)
        node = SimpleNamespace(
            create_timer=lambda *args, **options: SimpleNamespace(cancel=lambda: self.timer.append("off"),
                                                                  reset=lambda: self.timer.append("on")),
            get_clock=lambda: SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=sim.now, to_msg=lambda: Time(sec=7))))
        kind = SimpleNamespace(Result=Result, Feedback=Feedback)
        self.action = FollowJointTrajectoryServer(
            node, sim.executor, self.health, lambda m: goal_from_message(m, ROBOT.joint_names), self._attempt,
            lambda names: sim.measured, kind, self._serve)

    def _serve(self, node, kind, name, **callbacks):
        assert name == "~/follow_joint_trajectory"
        self.callbacks = callbacks
        return SimpleNamespace(notify_execute=self._finish)

    def _finish(self, handle, conclude):
        self.results[id(handle)] = conclude(handle)

    def _attempt(self, act):
        try:
            act()
        except Rejected as rejected:
            self.rejected.append(rejected.reason)
            return rejected

    def send(self, asked) -> Handle | None:
        if self.callbacks["goal_callback"](asked) is GoalResponse.REJECT:
            return None
        handle = Handle(asked)
        self.callbacks["handle_accepted_callback"](handle)
        self.sim.settle()
        return handle

    def cancel(self, handle):
        assert self.callbacks["cancel_callback"](handle) is CancelResponse.ACCEPT
        handle.status = "canceling"

    def play(self, seconds):
        self.sim.play(seconds)
        if self.sim.executor.motion is not None:
            self.health.last = self.sim.executor.motion, self.sim.samples[-1]
        self.action._publish_feedback()

    def result(self, handle) -> Result:
        return self.results.pop(id(handle))


@pytest.fixture
def action(harness):
    return ActionHarness(harness())


def test_goal_succeeds_with_feedback(action):
    handle = action.send(request(message(POINTS, DURATION)))
    assert handle.status == "executing" and action.timer == ["off", "on"] and action.health.trajectories.received == 1
    action.play(0.5)
    (first,) = handle.feedback
    reference = action.sim.samples[-1].reference
    assert first.joint_names == NAMES and list(first.desired.positions) == reference.q.tolist() and first.index == 1
    assert list(first.desired.velocities) == reference.qd.tolist() and first.header.stamp.sec == 7
    assert not first.actual.positions and not first.error.positions  # the position of the robot is unknown
    action.sim.measured = reference.q - 0.01
    action.play(0.9)
    second = handle.feedback[-1]
    assert second.index == 3 and list(second.actual.positions) == action.sim.measured.tolist()
    np.testing.assert_allclose(second.error.positions, action.sim.samples[-1].reference.q - action.sim.measured)
    action.sim.play()
    result = action.result(handle)
    assert handle.status == "succeeded" and result.error_code == 0 and "ended at its goal after" in result.error_string
    assert action.timer[-1] == "off"


@pytest.mark.parametrize(("fields", "more", "reason"), [
    ({"points": []}, {}, "empty"),
    ({"names": [*NAMES[:6], "joint8"]}, {}, "unknown_joint"),
    ({"start": 1e-3}, {}, "too_late"),
    ({}, {"multi_dof_trajectory": SimpleNamespace(points=[0])}, "multi_dof"),
])
def test_invalid_goals_are_rejected(action, fields, more, reason):
    action.sim.now = 10**12
    assert action.send(request(message(**fields), **more)) is None
    assert action.rejected == [reason] and not action.results and action.timer == ["off"]


@pytest.mark.parametrize(("fields", "names", "code", "words"), [
    ({"points": np.stack((START, START + [0, 0, 0, 2, 0, 0, 0]))}, NAMES, -1, "joint4 would be at 0.5"),
    ({"points": POINTS[:, :6]}, NAMES[:6], -2, "joint7: not named"),
])
def test_goals_that_cannot_be_prepared_are_aborted(action, fields, names, code, words):
    handle = action.send(request(message(names=names, **fields)))
    result = action.result(handle)
    assert handle.status == "aborted" and result.error_code == code and words in result.error_string


@pytest.mark.parametrize("points", [np.stack((START, START)), START[None]])
def test_goal_at_which_the_robot_is_already_succeeds(action, points):
    action.sim.measured = START
    handle = action.send(request(message(points, first=float(len(points) == 1))))
    result = action.result(handle)
    assert handle.status == "succeeded" and result.error_code == 0 and "at the goal already" in result.error_string
    assert action.sim.executor.motion is None


def test_goal_that_is_too_old_when_it_is_accepted_is_aborted(action):
    asked = request(message(POINTS, DURATION, start=action.sim.now * 1e-9))
    assert action.callbacks["goal_callback"](asked) is GoalResponse.ACCEPT
    action.sim.now += 60 * 10**9
    handle = Handle(asked)
    action.callbacks["handle_accepted_callback"](handle)
    assert handle.status == "aborted" and action.result(handle).error_code == Result.OLD_HEADER_TIMESTAMP


def test_cancelled_goal_ends_at_rest_on_the_path(action):
    handle = action.send(request(message(POINTS, DURATION)))
    action.play(0.4)
    action.cancel(handle)
    assert not action.results  # not at rest yet
    action.play(0.05)
    assert len(handle.feedback) == 2
    action.sim.play()
    result = action.result(handle)
    assert handle.status == "canceled" and result.error_code == 0
    assert result.error_string.startswith("the goal was cancelled: ended stopped at")
    assert not np.any(action.sim.samples[-1].reference.qd)
    action.callbacks["cancel_callback"](handle)  # too late: nothing happens


def test_goal_cancelled_just_before_its_end_succeeds(action):
    handle = action.send(request(message(POINTS, DURATION)))
    action.sim.executor.set_robot(ROBOT, LIMITS)
    while action.sim.executor.active and (not action.sim.samples or action.sim.samples[-1].reference.s < 0.9999999 * (
            action.sim.executor.motion.scaler.plan.path.length)):
        action.sim.play(0.001)
    action.cancel(handle)
    action.sim.play()
    assert handle.status == "succeeded" and action.result(handle).error_code == 0


def test_new_goal_or_stop_aborts_the_current_goal(action):
    first = action.send(request(message(POINTS, DURATION)))
    action.play(0.4)
    second = action.send(request(message(START[None], first=1.0)))
    third = action.send(request(message(START[None], first=1.0)))
    assert second.status == "aborted" and "before this one had begun" in action.result(second).error_string
    action.sim.play(0.5)
    while action.sim.executor.motion is None or id(first) not in action.results:
        action.sim.play(0.05)
        action.sim.settle()
    result = action.result(first)
    assert first.status == "aborted" and result.error_code == -1
    assert result.error_string.startswith("another trajectory came: ended stopped at")
    action.play(0.2)
    assert third.feedback and not first.feedback[1:]  # feedback is for the own motion only
    action.sim.executor.stop()
    action.sim.play()
    assert third.status == "aborted" and action.result(third).error_string.startswith("a stop was requested: ")


def tolerance(joint, position=0.0, velocity=0.0, acceleration=0.0):
    return SimpleNamespace(name=joint, position=position, velocity=velocity, acceleration=acceleration)


def test_goal_tolerances_are_rejected_without_measurement_and_checked_otherwise(harness):
    """Cases: no measured motion, path tolerance violated, goal tolerance violated, all tolerances kept."""
    robot = WeakRobot(START)
    action = ActionHarness(harness(robot=robot))
    near = {"goal_tolerance": [tolerance(name, 0.005, 0.05) for name in NAMES],
            "goal_time_tolerance": Duration(nanosec=400_000_000)}
    assert action.send(request(message(POINTS, DURATION), **near)) is None and action.rejected == ["not_measured"]
    robot.stand()
    assert action.send(request(message(POINTS, DURATION), path_tolerance=[tolerance("joint8", 0.1)])) is None
    kept = action.send(request(message(POINTS, DURATION), path_tolerance=[tolerance("joint1", 0.05)], **near))
    action.sim.play()
    assert kept.status == "succeeded" and action.result(kept).error_code == 0
    robot.blocked[0] = True
    left = action.send(request(message(POINTS[::-1], DURATION), path_tolerance=[tolerance("joint1", 0.05)]))
    action.sim.play()
    result = action.result(left)
    assert left.status == "aborted" and result.error_code == Result.PATH_TOLERANCE_VIOLATED
    assert "joint1 is 0.05" in result.error_string and "0.05 rad allowed (path_tolerance)" in result.error_string
    action.sim.measured = robot.q
    missed = action.send(request(message(robot.q + [[0.0] * 7, [0.1] * 7]), **near))
    action.sim.play()
    result = action.result(missed)
    assert missed.status == "aborted" and result.error_code == Result.GOAL_TOLERANCE_VIOLATED
    assert "0.4 s after the last reference the position of joint1 is 0.1 rad off, 0.005 rad allowed" in result.error_string


# --- the executor -----------------------------------------------------------------------------------------------------


class TwoTimers(Waitable):
    """Waitable with several entities in a wait set and no event, as an action server has."""

    def __init__(self, node: Node):
        super().__init__(node.default_callback_group)
        self.count = [0, 0]
        self._timers = [Timer(lambda: None, node.default_callback_group, 10_000_000 * k,
                              Clock(clock_type=ClockType.STEADY_TIME), context=node.context) for k in (1, 2)]

    def get_num_entities(self):
        return NumberOfEntities(0, 0, 2)

    def add_to_wait_set(self, wait_set):
        for timer in self._timers:
            wait_set.add_timer(timer.handle)

    def is_ready(self, wait_set):
        return any(timer.is_ready() for timer in self._timers)

    def take_data(self):
        for k, timer in enumerate(self._timers):
            if timer.is_ready():
                getattr(timer.handle, "call_timer_with_info", getattr(timer.handle, "call_timer", None))()
                self.count[k] += 1

    async def execute(self, data):
        pass

    def __enter__(self):
        for timer in self._timers:
            timer.handle.__enter__()

    def __exit__(self, *reason):
        for timer in self._timers:
            timer.handle.__exit__(*reason)


def test_lean_executor_serves_waitables_with_several_entities():
    context = Context()
    rclpy.init(context=context, domain_id=free_domain())
    node = Node("waits", context=context)
    waitable = TwoTimers(node)
    node.default_callback_group.add_entity(waitable)
    node.add_waitable(waitable)
    executor = LeanExecutor(context=context)
    executor.lean = True
    executor.add_node(node)
    failures = []

    def spin():
        try:
            executor.spin()
        except rclpy.executors.ExternalShutdownException:
            pass
        except Exception as error:
            failures.append(error)

    thread = threading.Thread(target=spin)
    thread.start()
    try:
        end = time.monotonic() + 120.0
        while min(waitable.count) < 3 and not failures and time.monotonic() < end:
            time.sleep(0.01)
    finally:
        context.shutdown()
        thread.join()
    assert min(waitable.count) >= 3 and not failures


# --- over DDS ---------------------------------------------------------------------------------------------------------


class Client:
    """Action client on the node of the test."""

    def __init__(self, bench: Bench, kind):
        self.bench, self.ros, self.kind = bench, bench.ros, kind
        self.client = ActionClient(bench.ros.node, kind, f"{bench.node}/follow_joint_trajectory")
        self.ros.until(self.client.server_is_ready, what="no action server", of=bench.process)
        self.feedback: list = []

    def send(self, trajectory: JointTrajectory, **fields):
        """Send a goal; return its handle once it is accepted or rejected."""
        future = self.client.send_goal_async(self.kind.Goal(trajectory=trajectory, **fields),
                                             feedback_callback=lambda reported: self.feedback.append(reported.feedback))
        self.ros.until(future.done, of=self.bench.process)
        return future.result()

    def result(self, handle):
        future = handle.get_result_async()
        self.ros.until(future.done, of=self.bench.process)
        return future.result().status, future.result().result

    def cancel(self, handle):
        future = handle.cancel_goal_async()
        self.ros.until(future.done, of=self.bench.process)
        return future.result()


@pytest.fixture(params=["lean", "rclpy"])
def client(request, tmp_path):
    actions = pytest.importorskip("control_msgs.action", reason="control_msgs comes with ROS 2, not from PyPI")
    with ros_domain(tmp_path) as ros:
        yield Client(Bench(ros, **{"process.executor": request.param}).ready(), actions.FollowJointTrajectory)


@pytest.mark.ros
def test_goals_are_rejected_reached_aborted_cancelled_and_preempted(client):
    """Cases: rejected, reached with feedback, aborted during preparation, cancelled, preempted by a goal and by a message."""
    bench, ros = client.bench, client.ros
    assert not client.send(message(names=[*NAMES[:6], "joint8"])).accepted
    assert "trajectory rejected, unknown_joint: joint8" in bench.process.log
    handle = client.send(message(POINTS, DURATION))
    assert handle.accepted
    ros.until(lambda: handle.status == GoalStatus.STATUS_EXECUTING)
    status, result = client.result(handle)
    motion = bench.end()
    motion.check()
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0 and "ended at its goal" in result.error_string
    assert 10 < len(client.feedback) < 25 * np.ptp(motion.stamps) + 5 and list(client.feedback[0].joint_names) == NAMES
    sent = {tuple(m.position) for m in motion.messages}
    assert sum(tuple(reported.desired.positions) in sent for reported in client.feedback) > 0.8 * len(client.feedback)
    status, result = client.result(client.send(message(np.stack((POINTS[-1], POINTS[-1])))))
    assert status == GoalStatus.STATUS_SUCCEEDED and result.error_code == 0 and "at the goal already" in result.error_string

    handle = client.send(message(POINTS[::-1], DURATION))
    bench.moving(0.5)
    assert len(client.cancel(handle).goals_canceling) == 1
    status, result = client.result(handle)
    motion = bench.end()
    assert motion.used().max() <= 1.0 + 1e-6 and 0.0 < motion.messages[-1].progress < 1.0
    assert not np.any(motion.velocity[-1]) and ScaledMotion.STOPPING in {m.phase for m in motion.messages}
    assert status == GoalStatus.STATUS_CANCELED and result.error_string.startswith("the goal was cancelled: ended stopped")

    first = client.send(message(START[None], first=1.0))
    bench.moving(0.2)
    second = client.send(message(START[None], first=0.5))
    status, result = client.result(first)
    assert status == GoalStatus.STATUS_ABORTED and result.error_string.startswith("another trajectory came: ")
    bench.end()
    bench.moving(0.05)
    bench.send(START[None], first=0.5)
    assert client.result(second)[0] == GoalStatus.STATUS_ABORTED
    ros.until(lambda: bench.received[-1].phase == ScaledMotion.ENDED
              and np.abs(bench.received[-1].position - START).max() < 1e-9)
    assert "Traceback" not in bench.process.log and bench.process.alive


@pytest.mark.ros
def test_waiting_clients_receive_a_result_when_the_node_shuts_down(client):
    future = client.send(message(POINTS, DURATION)).get_result_async()
    client.bench.moving(0.3)
    client.bench.process.send(signal.SIGTERM)
    client.ros.until(future.done, of=client.bench.process)
    status, result = future.result().status, future.result().result
    assert status == GoalStatus.STATUS_ABORTED and result.error_string.startswith("the node is shutting down: ended stopped")
    client.bench.end().check()
    assert client.bench.process.wait() == 0 and "Traceback" not in client.bench.process.log
