"""Trajectories sent as goals of a controller's action: results and tolerances, with a simulated controller in this process."""

from __future__ import annotations

import math
import time
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Duration, Time

from rnea_ros import InputError
from rnea_ros.errors import Rejected
from rnea_ros.execution.states import Phase
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.topics import nanoseconds
from rnea_ros.nodes.scaling import controller
from rnea_ros.nodes.scaling.controller import CONTROLLER_TYPE, ActionController, ControllerManagerClient
from rnea_ros.nodes.scaling.publishers import SamplePublishers
from support.controlled_executor_harness import ControlledExecutorHarness, done, failed
from support.executor_harness import trajectory
from support.overspeed_motion import POINTS, ROBOT, START
from support.trajectory_controller import TrajectoryPoints

STATUS = {"succeeded": 4, "canceled": 5, "preempted": 6, "aborted": 6}
VALUES = {"controller.name": "/jtc", "controller.timeout": 5.0, "controller.required": False, "controller.interface": "action",
          "output": "trajectory", "reference_effort": False, "start_tolerance": 0.01, "commands": "none", "frame_id": "",
          "watch.source": "joint_states"}


class Client:
    """Client of an action whose server is a controller by the harness's clock."""

    answer = staticmethod(done)

    def __init__(self, sim):
        self.sim, self.handles, self.deaf, self.cancelled = sim, [], False, self._cancel

    def server_is_ready(self):
        return True

    def destroy(self):
        pass

    def send(self, goal, feedback_callback, listen):
        now, points = self.sim.now * 1e-9, goal.trajectory.points
        times = nanoseconds(goal.trajectory.header.stamp) * 1e-9 + np.array(
            [point.time_from_start.sec + point.time_from_start.nanosec * 1e-9 for point in points])
        sent = TrajectoryPoints(times, *(np.array([getattr(point, name) for point in points])
                                   for name in ("positions", "velocities", "accelerations")))
        handle = SimpleNamespace(goal=goal, receive=feedback_callback, result=Future(), accepted=not self.deaf)
        handle.get_result_async, handle.cancel_goal_async = lambda: handle.result, lambda: self.cancelled(handle)
        try:
            if handle.accepted:
                self.sim.controller.set_trajectory(sent, now, handle)
        except InputError:
            handle.accepted = False
        self.handles.append(handle)
        self.sim.later = self.sim.way  # as it is reported
        listen(self.answer(handle))
        self.sim.later = 0

    def _cancel(self, handle):
        self.sim.controller.cancel(handle)
        return done(SimpleNamespace(return_code=0))


class Followed(ControlledExecutorHarness):
    """A harness with a controller at 1 kHz that is an action's server, and the results that a planner gets."""

    def __init__(self, **values):
        super().__init__(**{"output": "trajectory", **values})
        self.way = self.later = 0  # ns; delay of a message; additional delay of the robot
        self.reported, self.reports, self.client = [], [], Client(self)
        ignore = SimpleNamespace(service_is_ready=lambda: False, publish=lambda message: None,
                                 get_subscription_count=lambda: 0)
        clock = SimpleNamespace(now=lambda: SimpleNamespace(nanoseconds=self.now + self.later))
        node = SimpleNamespace(create_client=lambda *_: ignore, create_publisher=lambda *_: ignore,
                               create_subscription=lambda *_, **__: None,
                               get_clock=lambda: clock,
                               get_logger=lambda: SimpleNamespace(info=lambda text: None))
        self.health = SimpleNamespace(trajectories=Stream("trajectory"), report=lambda well, text: self.reports.append(text))
        self.link = ActionController(
            node, SimpleNamespace(values=VALUES), self.executor, self.health, lambda: ROBOT.joint_names,
            lambda names: self.measured, client=lambda *_: self.client, post=lambda act: act())
        self.executor.follower = self.link
        self.messages = SamplePublishers(node, self.link)

    def begin(self, points=POINTS, seconds=0.5, **fields):
        self.take(replace(trajectory(points), on_end=self.reported.append, **fields))
        return self.play(seconds)

    def update(self):
        super().update()
        for handle, how in self.controller.finished_goals:
            self.end(handle, how)
        self.controller.finished_goals.clear()

    def send(self, motion, sample):
        self.link.on_sample(motion, sample, self.now)
        self.messages.publish(motion, sample, self.executor.phase, self.executor.override, Time(), VALUES,
                              time.monotonic())

    def end(self, handle, how, code=0, text=""):
        result = SimpleNamespace(error_code=code, error_string=text or f"goal {how}")
        handle.result.set_result(SimpleNamespace(status=STATUS[how], result=result))


@pytest.fixture
def sim(monkeypatch):
    monkeypatch.setattr(controller, "FollowJointTrajectory", SimpleNamespace(Goal=SimpleNamespace))
    monkeypatch.setattr(controller, "JointTolerance", SimpleNamespace)
    return Followed()


def test_every_change_of_the_motion_is_a_new_goal_and_the_last_one_decides_the_result(sim):
    sim.begin()
    sim.executor.pause()
    sim.play(1.0)
    assert sim.executor.phase is Phase.PAUSED and not sim.reported and sim.client.handles[-1].result.result().status == 4
    sim.executor.resume()
    sim.play(0.3)
    sim.executor.set_override(0.5)
    sim.play(0.2)
    sim.client.handles[-1].receive(SimpleNamespace(feedback="where it is"))
    assert sim.link.feedback == "where it is"
    sim.client.handles[0].receive(SimpleNamespace(feedback="where it was"))
    assert sim.link.feedback == "where it is"
    sim.play()
    sim.check()
    (outcome,) = sim.reported
    assert not outcome.reason and outcome.message.startswith("goal succeeded: ended at its goal") and not sim.reports
    assert len(sim.client.handles) >= 4 and {handle.result.result().status for handle in sim.client.handles[1:-1]} <= {4, 6}


def test_motion_cancelled_by_the_planner_comes_to_rest_on_its_path(sim):
    sim.begin()
    sim.executor.stop("the goal was cancelled")
    sim.play()
    sim.check()
    assert sim.reported[0].reason == "stopped" and not sim.controller.state[1].any()
    assert all(how.result.result().status != 5 for how in sim.client.handles if how.result.done())
    sim.measured = sim.controller.state[0]
    sim.begin(np.stack((sim.measured, START)), np.inf)
    assert not sim.reported[1].reason
    sim.check()


def test_motion_is_aborted_when_the_controller_rejects_the_first_or_a_later_goal(sim):
    sim.client.deaf = True
    sim.begin()
    assert sim.reported[0].reason == "controller_refused" and sim.executor.phase is Phase.IDLE
    assert "at its goal" not in " ".join(sim.events) and sim.health.trajectories.dropped["controller_refused"] == 1
    sim.client.deaf = False
    sim.begin()
    sim.client.deaf = True
    sim.executor.pause()
    sim.play(0.5)  # it would have gone on
    assert sim.reported[1].reason == "controller_refused" and sim.executor.phase is Phase.IDLE
    sim.play(0.1)
    assert not sim.controller.state[1].any() and np.abs(sim.controller.state[0] - POINTS[-1]).max() > 0.1


@pytest.mark.parametrize(("how", "code", "reason"), [("aborted", -4, "path_tolerance"), ("aborted", -5, "goal_tolerance"),
                                                     ("aborted", -1, "controller_aborted"),
                                                     ("canceled", 0, "controller_canceled")])
def test_controller_result_is_forwarded_to_the_planner(sim, how, code, reason):
    sim.begin()
    sim.end(sim.client.handles[-1], how, code, "its own words")
    assert sim.reported == [(reason, "/jtc: its own words")] and sim.executor.phase is Phase.IDLE
    assert sim.reports == [] and "the motion is given up" in sim.events[-1]


def test_late_change_of_motion_is_reported_and_doubles_the_lead_time(sim):
    sim.begin()
    lead, sim.way = sim.executor.motion.rolling.lead_time, 200_000_000
    sim.executor.pause()
    sim.play(0.3)
    assert sim.executor.motion.rolling.lead_time >= 2.0 * lead and "received a change of the motion 0." in sim.reports[0]


def test_late_answer_of_the_controller_is_no_late_change_if_its_reference_changed_in_time(sim):
    """This process was suspended, which is no delay of the controller."""
    sim.begin()
    lead, sim.way, sim.link._state_at = sim.executor.motion.rolling.lead_time, 200_000_000, math.inf
    sim.executor.pause()
    sim.play(1.0)
    assert sim.executor.phase is Phase.PAUSED and sim.executor.motion.rolling.lead_time == lead and not sim.reports


@pytest.mark.parametrize(("answer", "reported"), [
    (done(SimpleNamespace(return_code=1)), "it does not cancel its goal, and may go on to the end of it: return code 1"),
    (failed(OSError("lost")), "OSError('lost')"), (Future(), "its action server does not answer a request")])
def test_failed_cancellation_of_a_goal_is_reported(sim, monkeypatch, answer, reported):
    monkeypatch.setitem(VALUES, "controller.timeout", 0.0)
    sim.client.cancelled = lambda handle: answer
    sim.begin()
    sim.executor.abort("the clock was set back")
    sim.link.update()
    sim.link.update()
    (report,) = (report for report in sim.reports if "get_parameters" not in report)
    assert report.startswith("/jtc: ") and report.endswith(reported)


def test_motion_is_aborted_when_the_goal_response_fails_or_never_arrives(sim, monkeypatch):
    monkeypatch.setitem(VALUES, "controller.timeout", 0.0)
    sim.client.answer = lambda handle: failed(OSError("lost"))
    sim.begin(seconds=0.1)
    assert sim.reported[0].reason == "internal_error" and "lost" in sim.reported[0].message
    sim.client.answer = lambda handle: Future()
    sim.begin(seconds=0.1)
    sim.link.update()
    assert sim.reported[1] == ("controller_silent", "/jtc: its action server does not answer a request")


def test_goal_response_timeout_excludes_time_in_which_the_process_was_suspended(sim, monkeypatch):
    """This process is suspended for ten seconds after it has sent a goal."""
    clock = SimpleNamespace(monotonic=lambda: sim.seconds)
    monkeypatch.setattr(controller, "time", clock)
    sim.client.answer, sim.seconds = lambda handle: Future(), 0.0
    sim.begin(seconds=0.1)
    overdue = []
    for sim.seconds in (0.1, 10.0, 10.9, 11.8, 12.7, 13.6, 14.5, 15.4, 16.3):
        overdue.append(sim.link._goals.is_overdue(VALUES["controller.timeout"]))
    assert overdue == [False] * 7 + [True, False]


def test_result_of_a_goal_that_has_ended_does_not_affect_a_later_motion(sim):
    sim.begin()
    sim.executor.stop()
    sim.play()
    result = SimpleNamespace(error_code=-5, error_string="late")
    sim.link._goals._on_result(sim.link._goals._newest, SimpleNamespace(status=6, result=result))
    assert sim.reports == ["/jtc: late"]


def test_tolerances_of_the_planner_are_forwarded_to_the_controller(sim):
    nan = np.full((3, 7), np.nan)
    path, goal = nan.copy(), nan.copy()
    path[0, 2], goal[0, 1], goal[1, 1] = 0.1, np.inf, 0.02
    tolerances = SimpleNamespace(path=path, goal=goal, time=1.5)
    rolling = SimpleNamespace(splice_time=100.0, points=(np.arange(2.0), *np.zeros((3, 2, 7))))
    motion = SimpleNamespace(start_ns=0, rolling=rolling, goal=SimpleNamespace(tolerances=tolerances),
                             joint_names=ROBOT.joint_names)
    sim.link.send_trajectory(motion, trajectory_message())
    sent = sim.client.handles[-1].goal
    assert [(p.name, p.position, p.velocity, p.acceleration) for p in sent.path_tolerance] == [("joint3", 0.1, 0.0, 0.0)]
    assert [(p.name, p.position, p.velocity) for p in sent.goal_tolerance] == [("joint2", -1.0, 0.02)]
    assert sent.goal_time_tolerance == Duration(sec=1, nanosec=500_000_000)


def test_missing_controller_is_reported_once_and_rejected_if_required(sim, monkeypatch):
    assert not sim.link.is_settled
    sim.link._created_at -= VALUES["controller.timeout"]
    sim.link.update()
    sim.link.update()
    assert sim.link.is_settled and sim.reports == ["controller /jtc: no node answers on /jtc/get_parameters"]
    sim.link.check()
    monkeypatch.setitem(VALUES, "controller.required", True)
    with pytest.raises(Rejected, match="/jtc: no node answers"):
        sim.link.check()


def test_controller_manager_reports_whether_the_controller_is_active():
    answers, names = [], []
    client = SimpleNamespace(service_is_ready=lambda: True, call_async=lambda request: answers.pop(0),
                             remove_pending_request=lambda future: None)
    node = SimpleNamespace(create_client=lambda kind, name: names.append(name) or client)
    view = ControllerManagerClient(node, "/left/jtc", SimpleNamespace(Request=SimpleNamespace))
    others = SimpleNamespace(name="other", state="inactive", type="x")
    inactive = "it is inactive: ros2 control set_controller_state jtc active"
    for state, kind, expected in (("inactive", CONTROLLER_TYPE, [inactive]), ("active", CONTROLLER_TYPE, []),
                                  ("active", "ours/Scaled", ["its type is ours/Scaled, and may"])):
        answers.append(done(SimpleNamespace(controller=[others, SimpleNamespace(name="jtc", state=state, type=kind)])))
        view._requested_at = -np.inf
        view.update()
        assert [finding.text[:len(text)] for finding, text in zip(view.findings(), expected)] == expected
        assert len(view.findings()) == len(expected)
    for checks, answer, why in ((1, failed(OSError("lost")), "OSError('lost')"), (2, Future(), "no answer")):
        answers[:] = [answer, Future()]
        for _ in range(checks):
            view._requested_at = -np.inf
            view.update()
        (finding,) = view.findings()
        assert not finding.refuses and finding.text.startswith("whether it is active is unknown") and why in finding.text
    assert names == ["/left/controller_manager/list_controllers"]


def trajectory_message():
    point = SimpleNamespace(positions=START, velocities=0 * START, accelerations=0 * START, time_from_start=Duration(sec=100))
    return SimpleNamespace(points=[point], header=SimpleNamespace(stamp=Time()))
