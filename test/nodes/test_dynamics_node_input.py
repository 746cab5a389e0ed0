"""Inputs of dynamics_node: invalid, missing or late messages, states without velocities, and missing desired motion."""

from __future__ import annotations

import math
import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from rnea_msgs.msg import JointDynamics, JointMotion
from rnea_ros import Robot
from rnea_ros.estimation.motion_estimator import LAG
from support.node_bench import ARM, NAMES, NODE, Bench, seconds
from support.ros_helpers import ros_domain, stamp

pytestmark = pytest.mark.ros


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """One node for all checks, which leave it as they found it."""
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        limits = {"has_effort_rate_limits": True, "max_effort_rate": 100.0}
        yield Bench(ros, robot_description=ARM, **{"joint_limits.turn." + k: v for k, v in limits.items()}).ready()


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(ARM)


BAD_STATES = [
    ("empty", {"name": [], "position": [], "velocity": [], "effort": []}),
    ("duplicate_joint", {"name": ["turn", "spin", "turn"]}),
    ("other_joints", {"name": ["one", "or", "other"]}),
    ("stamp_went_back", {"header": Header(stamp=stamp(1.0))}),
    ("wrong_size", {"position": [0.0, 0.0]}),
    ("wrong_size", {"position": []}),
    ("wrong_size", {"velocity": [0.0]}),
    ("position_not_finite", {"position": [0.0, math.nan, 0.0]}),
    ("position_not_finite", {"position": [math.inf] * 3}),
    ("velocity_missing", {"velocity": []}),
    ("velocity_missing", {"velocity": [0.0, math.nan, 0.0]}),
    ("motion_refused", {"velocity": [1e200] * 3}),
]
BAD_MOTIONS = [
    ("empty", {"joint_names": [], "acceleration": [], "jerk": []}),
    ("joint_missing", {"joint_names": ["turn", "spin"], "acceleration": [0.0, 0.0], "jerk": [0.0, 0.0]}),
    ("wrong_size", {"jerk": []}),
    ("acceleration_not_finite", {"acceleration": [math.nan, 0.0, 0.0]}),
    ("jerk_not_finite", {"jerk": [0.0, 0.0, -math.inf]}),
]


@pytest.mark.parametrize(("reason", "fields"), BAD_STATES)
def test_invalid_joint_state_is_dropped_and_counted(bench, reason, fields):
    before = int(bench.diagnostics.next().get(f"dropped.joint_states.{reason}", 0))
    bench.state(**fields)
    bad = fields["header"].stamp if "header" in fields else stamp(bench.clock)
    bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", reason) == before + 1)
    assert all(result.header.stamp != bad for result in bench.results)
    assert bench.diagnostics.values["joint_states.last_drop"].startswith(reason)
    assert bench.alive()


@pytest.mark.parametrize(("reason", "fields"), BAD_MOTIONS)
def test_invalid_desired_motion_is_dropped_and_counted(bench, reason, fields):
    before = int(bench.diagnostics.next().get(f"dropped.desired_motion.{reason}", 0))
    message = JointMotion(joint_names=NAMES, acceleration=[0.0] * 3, jerk=[0.0] * 3)
    message.header.stamp = stamp(bench.tick())
    for name, value in fields.items():
        setattr(message, name, value)
    bench.desired.publish(message)
    bench.ros.until(lambda: bench.diagnostics.dropped("desired_motion", reason) == before + 1)
    assert bench.alive()


def test_effort_of_joint_states_does_not_affect_the_result(bench):
    for effort in ([], [math.nan] * 3, [1.0], [math.inf] * 7):
        bench.state(effort=effort)
        assert bench.answer(stamp(bench.clock)) is not None


def test_output_stops_with_stale_input_and_resumes_with_new_input(bench):
    assert bench.alive()
    bench.active()
    bench.ros.until(lambda: bench.diagnostics.state == "STALE")
    stamps = [seconds(result) for result in bench.results]
    assert len(set(stamps)) == len(stamps)  # nothing is repeated
    assert bench.alive()
    bench.active()


def suspend_and_publish(bench):
    """Suspend the node, publish states, and return their stamps; None if publishing was blocked.

    A process that is stopped while it holds a lock of the middleware's shared memory blocks all publishers to it: the
    result then says nothing about the node.
    """
    bench.process.send(signal.SIGSTOP)
    stamps, began = [], time.monotonic()
    for _ in range(95):
        bench.state()
        stamps.append(stamp(bench.clock))
    held_up = time.monotonic() - began > 1.0
    bench.process.send(signal.SIGCONT)
    return None if held_up else stamps


def test_suspended_node_answers_all_states_in_order_when_it_resumes(bench):
    """A tenth of a second at 1 kHz: nothing is lost, and nothing changes its order."""
    for _ in range(5):
        assert bench.alive()
        found = suspend_and_publish(bench)
        if found:
            break
    assert found, "sending was held up each time"

    def answered():
        return [result.header.stamp for result in bench.results if result.header.stamp in found]

    bench.ros.until(lambda: len(answered()) >= len(found), of=bench.process)
    assert answered() == found


@pytest.mark.parametrize(("policy", "jerk"), [("zero_jerk", 0.0), ("hold", 5.0), ("stop", None)])
def test_missing_desired_motion_has_the_effect_of_on_desired_timeout(bench, policy, jerk):
    assert not bench.ros.set(NODE, on_desired_timeout=policy)
    motion = np.array([[0.1] * 3, [0.0] * 3, [2.0] * 3, [5.0] * 3])
    assert list(bench.send(motion).jerk) == [5.0] * 3
    bench.ros.spin(0.15)  # desired_timeout is 0.1 s
    bench.state()
    when = stamp(bench.clock)
    if policy == "stop":
        bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", "desired_timeout") > 0)
        assert bench.answer(when, timeout=0.1) is None
    else:
        result = bench.answer(when)
        assert (list(result.acceleration), list(result.jerk)) == ([2.0] * 3, [jerk] * 3)
        bench.ros.until(lambda: bench.state() or "no desired motion for" in bench.diagnostics.status.message)
    assert not bench.ros.set(NODE, on_desired_timeout="zero_jerk")


def test_diagnostics_report_state_and_rates(bench):
    def said():
        bench.send(np.array([[0.1] * 3, [0.0] * 3, [0.0] * 3, [1000.0] * 3]))
        status = bench.diagnostics.status
        return bench.diagnostics.values if "turn reached" in status.message and bench.diagnostics.state == "ACTIVE" else None

    values = bench.ros.until(said)
    assert "of its effort_rate limit" in bench.diagnostics.status.message
    assert float(values["turn.effort_rate_utilization"]) > 1.0 and values["spin.effort_utilization"] == "nan"
    assert 0.0 < float(values["latency_p50_us"]) <= float(values["latency_p99_us"])
    assert float(values["joint_states.rate_hz"]) > 0.0
    assert bench.diagnostics.status.hardware_id == "arm"


def test_estimated_motion_has_the_stamp_of_its_instant_and_standard_deviations(bench, robot):
    """Stamped with the instant that it is for, with how far off torque and rate may be."""
    assert not bench.ros.set(NODE, motion_source="estimated")
    c = np.array([[0.1, -0.2, 0.3], [1.0, 0.5, -0.4], [2.0, 0.0, 1.0], [-3.0, 2.0, 6.0]])

    def cubic(t):
        return [(c[k:] * (t ** np.arange(4 - k) / [1, 1, 2, 6][:4 - k])[:, None]).sum(axis=0) for k in range(4)]

    def played():
        """Return the answer to the last of many states after a gap, and the motion at its stamp; None where the answer was
        lost, or the kernel of the deviations is still being compiled.
        """
        start = bench.clock = bench.clock + 10.0
        for _ in range(60):
            q, qd = cubic(bench.clock + bench.dt - start)[:2]
            bench.state(position=q.tolist(), velocity=qd.tolist())
            bench.ros.spin(0.005)
        result = bench.answer(stamp(bench.clock, LAG), timeout=2.0)
        known = result is not None and np.isfinite(result.effort_std).all()
        return (result, cubic(bench.clock - LAG - start)) if known else None

    result, exact = bench.ros.until(played)
    motion = [np.array(row) for row in (result.position, result.velocity, result.acceleration, result.jerk)]
    for row, true, tolerance in zip(motion, exact, (1e-4, 1e-3, 0.02, 0.3)):
        np.testing.assert_allclose(row, true, atol=tolerance)
    dynamics, (tau, tau_rate) = robot.dynamics(*motion), robot.torque_and_rate(*exact)
    assert (list(result.effort), list(result.effort_rate)) == (dynamics.tau.tolist(), dynamics.tau_rate.tolist())
    assert (np.abs(result.effort - tau) < 4.0 * np.array(result.effort_std)).all()
    assert (np.abs(result.effort_rate - tau_rate) < 4.0 * np.array(result.effort_rate_std)).all()

    def reported():
        """Return a report that was made while there were deviations to report."""
        played()
        values = bench.diagnostics.values
        rate = float(values.get("estimator.readings_hz", 0.0))  # of all states, of which a gap or a loss takes some
        return {"turn.effort_rate_std", "estimator.lag_s"} <= values.keys() and abs(rate - 100.0) < 1.0 and values

    values = bench.ros.until(reported)
    assert values["estimator.lag_s"] == "0.03"
    assert float(values["turn.position_noise"]) > 0.0 and float(values["turn.effort_rate_std"]) > 0.0
    assert not bench.ros.set(NODE, motion_source="desired")
    assert np.isnan(bench.send(np.zeros((4, 3))).effort_std).all()


def test_motion_of_a_revolute_joint_wrapped_at_pi_is_estimated_across_the_jump(bench):
    assert not bench.ros.set(NODE, motion_source="estimated")

    def played():
        """Return the results around a jump at constant speed; none while the filters start."""
        start = bench.clock = bench.clock + 10.0
        bench.results.clear()
        for _ in range(60):
            turn = 2.8 + bench.clock + bench.dt - start
            bench.state(position=[(turn + np.pi) % (2.0 * np.pi) - np.pi, 0.0, 0.0], velocity=[1.0, 0.0, 0.0])
            bench.ros.spin(0.005)
        return [result for result in bench.results if bench.clock - 0.2 < result.header.stamp.sec
                + result.header.stamp.nanosec * 1e-9] and list(bench.results)

    results = bench.ros.until(played)
    assert any(result.position[0] < 0.0 for result in results), "none after the jump"
    late = [result for result in results if abs(result.velocity[0] - 1.0) < 0.05]
    assert len(late) > len(results) / 2 and max(abs(result.acceleration[0]) for result in late) < 2.0
    assert max(abs(result.velocity[0]) for result in results) < 3.0
    bench.ros.until(lambda: played() and "continuous in the URDF" in bench.diagnostics.values.get("turn.unwrapped", ""))
    assert not bench.ros.set(NODE, motion_source="desired")


def test_diverging_estimates_are_dropped_and_counted_and_the_node_continues(bench):
    """Stamps up to 1.5 periods late, and every 0.1 s a stall of 40 ms: filters without lag extrapolate beyond the cone."""
    assert not bench.ros.set(NODE, **{"motion_source": "estimated", "estimator.lag": 0.0})
    before, k = int(bench.diagnostics.next().get("dropped.joint_states.estimate_diverged", 0)), np.arange(400)
    t = 0.004 * k
    sent = np.sort(t + np.random.default_rng(0).uniform(0.0, 0.006, len(t)))
    sent = np.maximum.accumulate(np.where(k % 25 > 15, np.maximum(sent, t + (25 - k % 25) * 0.004), sent)) + 1e-6 * k

    def diverged():
        start = bench.clock + 10.0
        for read, stamped in zip(t.tolist(), sent.tolist()):
            bench.clock = start + stamped - bench.dt
            bench.state(position=[2.0 * read, -1.0 * read, 0.3 * read])
            bench.ros.spin(0.001)
        return bench.diagnostics.next() and bench.diagnostics.dropped("joint_states", "estimate_diverged") > before

    def estimated():
        bench.state()
        bench.ros.spin(0.005)
        result = bench.answer(stamp(bench.clock), timeout=0.1)
        return result is not None and result.motion_source == "estimated"

    bench.ros.until(diverged)
    bench.ros.until(estimated)
    bench.ros.until(lambda: estimated() and int(bench.diagnostics.values.get("estimator.diverged", 0)) > 0)
    assert not bench.ros.set(NODE, **{"motion_source": "desired", "estimator.lag": LAG})
    assert bench.alive()


def test_auto_switches_from_desired_to_estimated_motion_and_reports_it(bench):
    ros = bench.ros
    assert not ros.set(NODE, motion_source="auto")

    def newest(source):
        """Return the first result after the last one of another source, if the newest is from this source."""
        others = [k for k, result in enumerate(bench.results) if result.motion_source != source]
        return bench.results[others[-1] + 1 if others else 0:][:1]

    bench.results.clear()
    motion = np.array([[0.1] * 3, [0.2] * 3, [3.0] * 3, [4.0] * 3])
    ros.until(lambda: bench.send(motion, attempts=1) and newest("desired_motion"))
    (result,) = ros.until(lambda: bench.state() or newest("estimated"))
    assert list(result.acceleration) != [3.0] * 3  # the desired one is gone
    ros.until(lambda: bench.state() or bench.diagnostics.values.get("motion_source") == "estimated")
    assert int(bench.diagnostics.values["motion_source.changes"]) >= 1
    ros.until(lambda: bench.process.log.count("motion source: estimated, before desired_motion") == 1)
    assert not ros.set(NODE, motion_source="desired")
    assert bench.send(motion).motion_source == "desired_motion"


def test_missing_velocity_can_be_differentiated(bench):
    assert not bench.ros.set(NODE, missing_velocity="differentiate")
    for velocity in ([], [math.nan, 7.0, math.nan]):
        start = bench.clock

        def answered(start=start, velocity=velocity):
            for _ in range(60):
                t = bench.clock + bench.dt - start
                bench.state(position=[t, t * t, t**3], velocity=velocity)
                bench.ros.spin(0.01)
            return bench.answer(stamp(bench.clock), timeout=2.0)

        found = bench.ros.until(answered).velocity
        t = bench.clock - start
        np.testing.assert_allclose(found, [1.0, 7.0 if velocity else 2 * t, 3 * t * t], rtol=1e-3)
        bench.clock += 10.0  # a gap: the next fit starts anew
    assert not bench.ros.set(NODE, missing_velocity="refuse")


def test_partial_joint_states_of_two_senders_are_merged(bench, robot):
    """States of an arm and its gripper in separate messages: the result uses both and has the newest stamp."""
    q, qd = [0.3, -0.2, 0.1], [0.5, 0.4, -0.3]
    assert bench.alive()
    bench.state(name=NAMES[:2], position=q[:2], velocity=qd[:2])
    for names, at in ((NAMES[2:], slice(2, 3)), (NAMES[:2], slice(0, 2))):
        bench.state(name=[*names, "other"], position=[*q[at], 9.0], velocity=[*qd[at], 9.0])
        result = bench.answer(stamp(bench.clock))
        assert (list(result.position), list(result.velocity)) == (q, qd)
        assert list(result.effort) == robot.dynamics(q, qd, *np.zeros((2, 3))).tau.tolist()
    before = int(bench.diagnostics.next().get("dropped.joint_states.joint_too_old", 0))
    bench.clock += 1.0
    bench.state(name=NAMES[:2], position=q[:2], velocity=qd[:2])
    bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", "joint_too_old") == before + 1)
    assert "slide: up to 1.0" in bench.diagnostics.values["joint_states.last_drop"]
    assert bench.answer(stamp(bench.clock), timeout=0.1) is None and bench.alive()


def test_clock_jump_drops_one_message_and_clears_the_history(bench):
    """No later fit uses samples from before the jump."""
    assert not bench.ros.set(NODE, motion_source="estimated")

    def play(slope: float) -> JointDynamics:
        """Return the answer to the last of many states; repeat them if messages are lost on a busy machine."""
        start = bench.clock

        def answered():
            for _ in range(60):
                bench.state(position=[slope * (bench.clock + bench.dt - start)] * 3, velocity=[slope] * 3)
                bench.ros.spin(0.01)
            return bench.answer(stamp(bench.clock, LAG), timeout=2.0)

        return bench.ros.until(answered)

    before = int(bench.diagnostics.next().get("dropped.joint_states.stamp_went_back", 0))
    for slope, jump in ((1.0, 10.0), (-3.0, -0.3), (2.0, -0.3)):
        bench.clock += jump
        np.testing.assert_allclose(play(slope).acceleration, 0.0, atol=0.02)
    bench.clock = time.time() - 1.0
    np.testing.assert_allclose(play(4.0).acceleration, 0.0, atol=0.02)
    bench.clock += 3600.0
    bench.state()
    bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", "stamp_ahead") == 1)
    assert bench.diagnostics.dropped("joint_states", "stamp_went_back") == before + 2
    bench.clock -= 3600.0
    np.testing.assert_allclose(play(5.0).acceleration, 0.0, atol=0.02)
    assert not bench.ros.set(NODE, motion_source="desired")


def test_diagnostics_name_two_senders_of_the_same_joints(bench):
    other = Node("driver", context=bench.ros.context, enable_rosout=False, start_parameter_services=False)
    states = other.create_publisher(JointState, "/joint_states", 10)
    bench.ros.until(lambda: states.get_subscription_count())
    ours = bench.states

    def said():
        for bench.states in (ours, states):
            bench.state()
        return "2 senders publish turn, spin, slide on /joint_states: /driver, /probe" in bench.diagnostics.status.message

    try:
        bench.ros.until(said)
    finally:
        bench.states = ours
        other.destroy_node()

    def forgotten():
        bench.active()
        bench.diagnostics.next()
        return "senders" not in bench.diagnostics.status.message

    bench.ros.until(forgotten, of=bench.process)
