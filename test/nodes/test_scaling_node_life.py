"""Life cycle of the scaling_node process: descriptions, namespaces, simulated time, signals, invalid parameters."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from rosgraph_msgs.msg import Clock
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

from rnea_msgs.msg import ScaledMotion
from rnea_ros.nodes.common.process import SIGNALS, graceful_shutdown
from support.overspeed_motion import LIMITS, POINTS, START
from support.ros_helpers import LATCHED, stamp
from support.scaling_bench import NAMES, NODE, TEXT, Bench, message

pytestmark = pytest.mark.ros


def test_late_invalid_and_exchanged_descriptions_are_handled_during_a_motion(ros):
    bench = Bench(ros, description=False)
    ros.until(lambda: bench.diagnostics.state == "NO_MODEL" and bench.trajectories.get_subscription_count())
    assert "/robot_description" in bench.diagnostics.status.message
    bench.send()
    ros.until(lambda: bench.diagnostics.dropped("trajectory", "no_model") == 1)
    chunks = ros.node.create_publisher(JointTrajectory, f"{NODE}/action_chunks", 10)
    ros.until(chunks.get_subscription_count)
    chunks.publish(message(POINTS, 1.0))
    ros.until(lambda: bench.diagnostics.dropped("chunk", "not_ready") == 1)
    topic = ros.node.create_publisher(String, "/robot_description", LATCHED)
    topic.publish(String(data="<robot/>"))
    ros.until(lambda: bench.diagnostics.values.get("model_error"))
    topic.publish(String(data=TEXT))
    bench.ready()
    bench.send(POINTS, 10.0)  # long enough for a busy machine to process all of the following
    bench.moving(0.4)
    topic.publish(String(data="nonsense"))
    ros.until(lambda: "rejected, the previous one stays" in bench.diagnostics.status.message)
    topic.publish(String(data=TEXT.replace('"joint7"', '"wrist"')))
    motion = bench.end()
    motion.check(duration=10.0)
    assert motion.messages[-1].progress < 1.0
    bench.logged("the new robot model has other joints")
    names = [*NAMES[:6], "wrist"]
    bench.send(POINTS[::-1], 0.8, first=0.4, names=names)
    assert list(bench.end().messages[-1].joint_names) == names


def test_unpublished_joint_is_held_at_its_parameter(ros):
    bench = Bench(ros, state_timeout=10.0, **{f"hold_joints.{NAMES[6]}": 0.3}).ready()
    bench.stand((POINTS[0][:6], NAMES[:6]))
    bench.send(POINTS[:, :6], names=NAMES[:6])
    motion = bench.end()
    assert np.abs(motion.position[:, 6] - 0.3).max() < 1e-9 and np.abs(motion.position[-1, :6] - POINTS[-1, :6]).max() < 1e-9


def test_trajectory_is_rejected_when_no_limit_is_known(ros):
    bench = Bench(ros, own=True, robot_description=_without_limits(TEXT)).ready()
    bench.send()
    ros.until(lambda: bench.diagnostics.dropped("trajectory", "limits") == 1)
    assert "not one limit is known" in bench.diagnostics.values["trajectory.last_drop"]
    bench.logged(f"no effort limit of {', '.join(NAMES)} is known: not enforced")
    assert "waiting for a robot description" not in bench.process.log  # while the model is prepared
    assert not ros.set(bench.node, **{f"joint_limits__{name}__has_velocity_limits": True for name in NAMES},
                       **{f"joint_limits__{name}__max_velocity": 2.0 for name in NAMES})
    bench.send()
    motion = bench.end()  # velocity alone
    assert np.abs(motion.velocity).max() <= 2.0 + 1e-9


def _without_limits(text: str) -> str:
    return text.replace('effort="90" velocity="2.2"', 'effort="0" velocity="0"').replace(
        'effort="15" velocity="2.6"', 'effort="0" velocity="0"')


def test_two_robots_in_two_namespaces(ros):
    left, right = (Bench(ros, name).ready() for name in ("left", "right"))
    left.send()
    right.send(POINTS[::-1], 2.0)
    left.end().check()
    right.end().check(points=POINTS[::-1], duration=2.0)
    assert not left.received and not right.received


def test_motion_follows_simulated_time_that_stops_continues_and_jumps(ros):
    bench = Bench(ros, use_sim_time=True).ready()
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    ros.until(clock.get_subscription_count)

    def play(start: float, seconds: float) -> float:
        """Publish the clock in steps of 5 ms, as fast as this process can; return the time reached."""
        for k in range(int(seconds / 0.005)):
            clock.publish(Clock(clock=stamp(start + 0.005 * k)))
            ros.spin(0.0005)
        return start + seconds

    now = play(100.0, 0.1)
    bench.send(POINTS, 3.0, start=now + 0.5)
    bench.until("WAITING")
    while not (bench.received and bench.received[-1].t > 0.5):
        now = play(now, 0.1)

    def stands() -> bool:
        before = len(bench.received)
        ros.spin(0.3)
        return len(bench.received) == before

    ros.until(stands, what="time stands still, and the motion does not", of=bench.process)
    assert bench.received[-1].phase != ScaledMotion.ENDED and bench.received[-1].header.stamp.sec < now
    while bench.received[-1].phase != ScaledMotion.ENDED:
        now = play(now, 0.1)
    motion = bench.end()
    motion.check(duration=3.0)
    # never ahead of the clock; behind it where the clock went on by more than a step between two ticks of the node
    assert motion.t[-1] - motion.t[0] < motion.stamps[-1] - motion.stamps[0] + 0.01
    assert motion.stamps[0] > 100.6 - 1e-6 and motion.t[0] < motion.stamps[0] - 100.6 + 2e-6  # when its stamp says
    bench.send(POINTS[::-1], 3.0)
    ros.until(lambda: bench.diagnostics.state == "WAITING")
    while not bench.received:
        now = play(now, 0.1)
    play(50.0, 0.1)  # the simulation is started anew
    bench.until("IDLE")
    bench.logged("the clock was set back: the motion is given up")
    bench.received.clear()
    bench.send(POINTS, 3.0)
    ros.until(lambda: bench.diagnostics.state == "WAITING")
    now = 50.1
    while not (bench.received and bench.received[-1].phase == ScaledMotion.ENDED):
        now = play(now, 0.1)
    bench.end().check(duration=3.0)


def test_motion_continues_smoothly_after_a_forward_jump_of_simulated_time(ros):
    """The clock jumps by one hour during the motion, which continues from its position."""
    bench = Bench(ros, use_sim_time=True).ready()
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    ros.until(clock.get_subscription_count)
    bench.send(POINTS, 3.0)
    now, jumped = 100.0, False
    while not (bench.received and bench.received[-1].phase == ScaledMotion.ENDED):
        now += 0.005
        if not jumped and bench.received and bench.received[-1].t > 1.0:
            now, jumped = now + 3600.0, True
        clock.publish(Clock(clock=stamp(now)))
        ros.spin(0.002)
    motion = bench.end()
    motion.check(duration=3.0)
    assert jumped and np.diff(motion.stamps).max() > 3599.0 and np.diff(motion.t).max() < 0.11
    assert "simulated time jumped ahead by 3600" in bench.process.log


@pytest.mark.parametrize(("how", "executor"), [(signal.SIGINT, "lean"), (signal.SIGTERM, "rclpy")])
def test_signal_during_a_motion_brings_the_robot_to_rest_before_the_node_exits(ros, how, executor):
    bench = Bench(ros, **{"process.executor": executor}).ready()
    references = ros.listen(JointTrajectory, f"{bench.node}/reference", 5000)
    bench.send(POINTS, 8.0)
    bench.moving(0.05 if how == signal.SIGINT else 0.5)
    bench.process.send(how)
    bench.send(START[None], first=0.5)  # not waited for
    motion = bench.end()
    motion.check(duration=8.0)
    assert bench.process.wait() == 0 and "rror" not in bench.process.log
    assert motion.messages[-1].progress < 1.0 and ScaledMotion.STOPPING in {m.phase for m in motion.messages}
    ros.until(lambda: references and not np.any(references[-1].points[-1].velocities))
    assert list(references[-1].points[-1].positions) == list(motion.position[-1]) and not bench.received
    assert "comes to rest first" in bench.process.log and "ended stopped at" in bench.process.log


def test_node_exits_at_once_on_a_signal_when_paused_or_idle(ros):
    for paused in (False, True):
        bench = Bench(ros, f"robot{paused:d}", shutdown_timeout=60.0).ready()
        if paused:
            bench.send()
            bench.moving(0.1)
            bench.pause()
        assert bench.process.stop(signal.SIGTERM) == 0 and "not finished within" not in bench.process.log
        assert not paused or bench.end().messages[-1].progress < 1.0


@pytest.mark.parametrize(("parameters", "again", "words"), [
    ({}, signal.SIGINT, "a second signal came"),
    ({"shutdown_timeout": 0.5}, None, "not finished within 0.5 s"),
])
def test_node_exits_without_rest_after_a_timeout_and_publishes_the_remaining_stop(ros, parameters, again, words):
    """The motion cannot come to rest because simulated time has stopped."""
    bench = Bench(ros, use_sim_time=True, **parameters).ready()
    references = ros.listen(JointTrajectory, f"{bench.node}/reference", 5000)
    clock = ros.node.create_publisher(Clock, "/clock", 10)
    ros.until(clock.get_subscription_count)
    bench.send(first=0.01)
    times = count(10.0, 0.002)

    def moving() -> bool:
        clock.publish(Clock(clock=stamp(next(times))))
        return bench.received and bench.received[-1].t > 0.3

    ros.until(moving, what="no motion", of=bench.process)
    bench.process.send(signal.SIGTERM)
    ros.until(lambda: "comes to rest first" in bench.process.log)
    if again:
        bench.send()
        ros.until(lambda: "trajectory rejected, ending: the node is shutting down" in bench.process.log, of=bench.process)
        bench.process.send(again)
    code = bench.process.wait()
    ros.drain()
    assert code == 0 and bench.received[-1].phase != ScaledMotion.ENDED
    assert f"{words}: ends at once" in bench.process.log and "Traceback" not in bench.process.log
    ros.until(lambda: references and not np.any(references[-1].points[-1].velocities), what="no stop trajectory")
    check_stop_trajectory(bench.received[-1], references[-1].points)


def check_stop_trajectory(sent, points):
    """Check that the points lead from the last sample to rest, with torques and mean rates (Pinocchio) inside the limits."""
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(TEXT)
    assert list(model.names)[1:] == NAMES
    t = [0.0, *(point.time_from_start.sec + 1e-9 * point.time_from_start.nanosec for point in points)]
    q, qd, qdd = (np.array([getattr(sent, name), *(getattr(point, field) for point in points)]) for name, field in (
        ("position", "positions"), ("velocity", "velocities"), ("acceleration", "accelerations")))
    assert np.abs(qd[0]).max() > 0.1 and not np.any(qdd[-1])
    dt = np.diff(t)[:, None]
    assert np.abs(np.diff(q, axis=0) - 0.5 * dt * (qd[1:] + qd[:-1])).max() < 0.05 * np.abs(qd).max() * dt.max()
    torque = np.array([pin.rnea(model, model.createData(), *sample) for sample in zip(q, qd, qdd)])
    assert (np.abs(torque) <= 1.0001 * LIMITS.effort).all()
    assert (np.abs(np.diff(torque, axis=0) / dt) <= 1.0001 * LIMITS.effort_rate).all()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_node_exits_when_its_shutdown_fails():
    ended, said = threading.Event(), []
    node = SimpleNamespace(create_guard_condition=lambda callback: SimpleNamespace(trigger=ended.set),
                           finish=lambda then: 1 / 0, end_now=lambda: None,
                           get_logger=lambda: SimpleNamespace(error=said.append))
    before = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        with graceful_shutdown(node):
            os.kill(os.getpid(), signal.SIGTERM)
            assert ended.wait(60.0)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert "ends at once" in said[0]


def test_signal_while_handlers_are_installed_is_not_lost(monkeypatch):
    """A process that is not scheduled for a moment receives SIGTERM as soon as its handler is there."""
    ended, install = threading.Event(), signal.signal

    def install_and_send(number, handler):
        before = install(number, handler)
        if number == signal.SIGTERM and not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return before

    def finish(then):
        ended.set()
        return 0.0

    sent: list[int] = []
    node = SimpleNamespace(create_guard_condition=lambda callback: SimpleNamespace(trigger=lambda: None), finish=finish,
                           end_now=lambda: None, context=SimpleNamespace(ok=lambda: True),
                           get_logger=lambda: SimpleNamespace(error=lambda text: None))
    before = {number: signal.getsignal(number) for number in SIGNALS}
    monkeypatch.setattr(signal, "signal", install_and_send)
    try:
        with graceful_shutdown(node):
            assert ended.wait(20.0)
    finally:
        for number, handler in before.items():
            install(number, handler)


@pytest.mark.parametrize("delay", [0.0, 0.4])
def test_signals_during_the_start_end_the_node_cleanly(ros, delay):
    bench = Bench(ros)
    ros.until(lambda: bench.trajectories.get_subscription_count())
    time.sleep(delay)
    assert bench.process.stop(signal.SIGTERM) == 0
    assert "Traceback" not in bench.process.log


@pytest.mark.parametrize(("parameters", "complaint"), [
    ({"control_rate": 1000}, "control_rate must be a double, got 1000 (write 1.0, not 1)"),
    ({"control_rate": 0.0}, "control_rate is 0; it must be a finite number >= 1, <= 2000"),
])
def test_scaling_node_exits_with_an_error_for_invalid_parameters(ros, parameters, complaint):
    process = ros.start("scaling_node", parameters)
    ros.until(lambda: not process.alive)
    assert process.stop() == 1
    assert complaint in process.log and "Traceback" not in process.log


def test_motion_continues_inside_its_limits_while_invalid_inputs_arrive(ros):
    """Invalid trajectories, joint states and parameters are sent during the motion."""
    bench = Bench(ros).ready()
    bench.send(POINTS, 2.5)
    bench.moving(0.1)
    for k in range(60):
        bench.state([float("nan")] * 7 if k % 3 else [0.0] * 3)
        bench.send(POINTS * float("nan"))
        ros.spin(0.005)
    assert "out of range" in ros.set(bench.node, control_rate=0.0)
    assert not ros.set(bench.node, control_rate=125.0)
    motion = bench.end()
    motion.check(duration=2.5)
    assert motion.messages[-1].progress == pytest.approx(1.0)
    values = bench.diagnostics.next()
    dropped = int(values["dropped.trajectory.not_finite"])
    assert dropped > 0 and int(values["trajectory.received"]) == dropped + 1  # some messages are lost on a busy machine
    assert ros.get(bench.node, "control_rate") == 125.0
