"""scaling_node as a separate process over DDS: limits are kept at every sample, also with pause, stop and new commands."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from std_msgs.msg import Float64, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from rnea_msgs.msg import ScaledMotion
from rnea_ros.nodes.common.marker_shapes import tip
from support.overspeed_motion import DURATION, EFFORT, LIMITS, POINTS, ROBOT, START
from support.ros_helpers import ros_domain
from support.scaling_bench import NAMES, Bench, Samples

pytestmark = pytest.mark.ros


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    with ros_domain(tmp_path_factory.mktemp("ros")) as ros:
        yield Bench(ros, state_timeout=0.2).ready()


@pytest.fixture
def bench(shared):
    """One node for all checks, which leave it as they found it: at rest at the first point."""
    shared.received.clear()
    yield shared
    shared.serve("stop")
    shared.serve("resume")
    shared.override(1.0)
    shared.until("IDLE")
    already = int(shared.diagnostics.next().get("dropped.trajectory.nowhere_to_go", 0))
    last = max([shared.ended, *(message.motion for message in shared.received)])
    shared.received.clear()
    shared.send(START[None], first=0.4)
    shared.ros.until(lambda: shared.diagnostics.dropped("trajectory", "nowhere_to_go") > already or (
        shared.received and shared.received[-1].phase == ScaledMotion.ENDED and shared.received[-1].motion > last
        and np.abs(np.array(shared.received[-1].position) - START).max() < 1e-6), of=shared.process)
    if shared.received:
        shared.ended = max(shared.ended, shared.received[-1].motion)
    shared.until("IDLE")


def test_trajectory_twice_too_fast_is_slowed_to_its_limits(bench):
    references = bench.ros.listen(JointTrajectory, f"{bench.node}/reference", 5000)
    speeds = bench.ros.listen(Float64, f"{bench.node}/speed_scaling", 5000)
    commands = bench.ros.listen(Float64MultiArray, f"{bench.node}/commands", 5000)
    marks = bench.ros.listen(MarkerArray, f"{bench.node}/markers")
    assert not bench.ros.set(bench.node, commands="position")
    bench.ros.until(lambda: all(bench.ros.node.count_publishers(f"{bench.node}/{name}") for name in ("reference", "commands")))
    bench.ros.matched(bench.node)
    bench.send()
    motion = bench.end()
    motion.check()
    assert motion.used().max() > 0.97 and motion.t[-1] > 1.2 * DURATION
    assert np.abs(motion.position[-1] - POINTS[-1]).max() < 1e-9
    assert np.abs(motion.position[0] - POINTS[0]).max() < 1e-3
    bench.ros.until(lambda: marks and speeds)
    behind, ahead, ball = marks[-1].markers
    tips = ROBOT.link_pose(tip(ROBOT.model), motion.position).p
    for point in (ball.pose.position, *behind.points, *ahead.points):
        assert np.linalg.norm(tips - [point.x, point.y, point.z], axis=1).min() < 0.01  # on the path
    assert ball.pose.position == behind.points[-1] == ahead.points[0]
    last = motion.messages[-1]
    assert list(last.joint_names) == NAMES and last.header.frame_id == "base_link" and last.progress == pytest.approx(1.0)
    assert last.delay == pytest.approx(last.t - DURATION, abs=0.02)
    for message in motion.messages[::20]:  # what is said to bind does
        value = np.abs(getattr(message, message.binding_limit))[NAMES.index(message.binding_joint)]
        limit = getattr(LIMITS, message.binding_limit)[NAMES.index(message.binding_joint)]
        assert value / limit == pytest.approx(message.utilization, rel=1e-9)
    bench.ros.until(lambda: references and list(references[-1].points[-1].positions) == list(last.position))
    for message in references[::20]:  # a joint_trajectory_controller takes it: at once, without effort
        assert list(message.joint_names) == NAMES and message.header.stamp.sec == message.header.stamp.nanosec == 0
        assert not any(point.effort for point in message.points)  # a point for each control period, more in a late tick
        assert [p.time_from_start.nanosec for p in message.points] == [4_000_000 * (k + 1) for k in range(len(message.points))]
    sent = {(tuple(m.position), tuple(m.velocity), tuple(m.acceleration)) for m in motion.messages}
    taken = [(tuple(p.positions), tuple(p.velocities), tuple(p.accelerations)) for p in (m.points[-1] for m in references)]
    points_of = {q for q, *_ in sent}
    both = [motion for motion in taken if motion[0] in points_of]
    assert len(both) > 0.9 * len(taken) and sent.issuperset(both)
    assert {tuple(m.data) for m in commands[::20]} <= points_of | {q for q, *_ in taken}
    assert 0.0 <= min(m.data for m in speeds) < 0.8
    assert not bench.ros.set(bench.node, commands="none")
    values = bench.diagnostics.next()
    assert values["state"] == "IDLE" and values["done"] == "True" and float(values["peak_utilization"]) == pytest.approx(
        max(m.utilization for m in motion.messages), abs=0.02)
    assert values["not_enforced.acceleration"] == ", ".join(NAMES) and "not_enforced.effort" not in values
    assert float(values["cpu_percent"]) > 0.0


def test_trajectory_inside_the_limits_is_executed_in_its_planned_time(bench):
    """The motion advances with the stamps; a busy machine may lose up to 0.05 s."""
    bench.send(POINTS, 3.0)
    motion = bench.end()
    motion.check(duration=3.0)
    steps = np.diff(motion.t)
    assert np.ptp(motion.stamps) >= np.ptp(motion.t) - 0.05
    assert np.median(steps) <= 5.1e-3  # longest_step; where a message was lost, a step is longer
    assert motion.t[-1] == pytest.approx(3.0, abs=0.01)  # inside the limits: as planned
    assert np.nanmedian([m.speed_scaling for m in motion.messages]) == pytest.approx(1.0, rel=1e-6)


def test_motion_is_paused_resumed_slowed_by_override_and_stopped(bench):
    bench.send(POINTS, 30.0)  # long enough for a machine that is busy
    bench.moving(0.6)
    bench.pause()
    paused = bench.received[-1]
    assert paused.progress < 1.0
    assert not bench.serve("resume")
    bench.ros.until(lambda: bench.received[-1].s > paused.s + 0.05)
    assert not bench.override(0.3)
    bench.ros.until(lambda: bench.received[-1].override_share == 0.3 and bench.received[-1].speed_scaling < 0.31)
    assert "from 0 to 1" in bench.override(1.5) and "from 0 to 1" in bench.override(math.nan)
    assert not bench.override(1.0)
    bench.ros.until(lambda: bench.received[-1].override_share == 1.0)
    assert not bench.serve("stop")
    motion = bench.end()
    motion.check(duration=30.0)
    assert ScaledMotion.STOPPING in {m.phase for m in motion.messages} and paused.progress < motion.messages[-1].progress < 1.0
    assert bench.serve("stop") == "there is no motion to stop"
    said = ("paused", "resumed", "override: 0.3 of the speed", "comes to rest: a stop was requested")
    bench.logged(*(f"{sentence}\n" for sentence in said))


def test_new_trajectory_during_a_motion_replaces_it_or_is_rejected(bench):
    bench.send(POINTS, 6.0)
    bench.moving(0.5)
    bench.send(START[None], first=0.5)
    first = bench.end()
    first.check(duration=6.0)
    assert first.messages[-1].progress < 1.0
    second = bench.end()
    assert np.abs(second.position[-1] - START).max() < 1e-9 and second.used().max() <= 1.0 + 1e-6
    assert np.abs(second.position[0] - first.position[-1]).max() < 1e-4
    assert second.messages[0].motion == first.messages[0].motion + 1
    assert not bench.ros.set(bench.node, on_new_trajectory="refuse")
    bench.send(POINTS, 6.0)
    bench.moving(0.2)
    bench.send()
    bench.ros.until(lambda: bench.diagnostics.dropped("trajectory", "busy") == 1)
    motion = bench.end()
    motion.check(duration=6.0)
    assert motion.messages[-1].progress == pytest.approx(1.0)
    assert not bench.ros.set(bench.node, on_new_trajectory="replace")


def test_trajectory_may_name_a_subset_of_joints_in_any_order(bench):
    """Joints that are not named keep their position."""
    order = [3, 0, 5]
    bench.send(POINTS[:2][:, order], names=[NAMES[k] for k in order])
    motion = bench.end()
    goal = START.copy()
    goal[order] = POINTS[1][order]
    assert np.abs(motion.position[-1] - goal).max() < 1e-9
    others = [k for k in range(7) if k not in order]
    assert np.abs(motion.position[:, others] - START[others]).max() < 1e-12
    bench.send(np.stack((goal, START))[:, ::-1], names=NAMES[::-1])
    assert np.abs(bench.end().position[-1] - START).max() < 1e-9


def test_trajectory_start_is_compared_with_the_joint_states(bench):
    bench.ros.spin(1.1)  # until then the robot may still be on its way to the last reference
    assert not bench.ros.set(bench.node, state_timeout=10.0)
    bench.stand((POINTS[1][:4], NAMES[:4]), ([*POINTS[1][4:], 9.0], [*NAMES[4:], "gripper"]))  # of two senders
    bench.send()
    bench.ros.until(lambda: bench.diagnostics.dropped("trajectory", "not_at_start") >= 1)
    assert "joint5 is at 0.7, and at 0 in the first point" in bench.diagnostics.values["trajectory.last_drop"]
    assert not bench.ros.set(bench.node, start_mismatch="prepend")
    bench.stand((POINTS[1],))
    bench.send()
    motion = bench.end()
    assert np.abs(motion.position[0] - POINTS[1]).max() < 1e-3 and motion.used().max() <= 1.0 + 1e-6
    assert motion.distance(POINTS[0]) < 1e-3  # passed the first point
    assert np.abs(motion.position[-1] - POINTS[-1]).max() < 1e-9
    assert not bench.ros.set(bench.node, start_mismatch="refuse", state_timeout=0.2)
    before = bench.diagnostics.next().get("dropped.joint_states.wrong_size", 0)
    bench.state(POINTS[1], NAMES[:4])
    bench.ros.until(lambda: bench.diagnostics.dropped("joint_states", "wrong_size") == int(before) + 1)
    bench.ros.spin(0.3)  # joint states are out of date then


def test_trajectory_with_future_stamp_waits_and_one_with_past_stamp_is_rejected(bench):
    now = bench.ros.node.get_clock().now().nanoseconds * 1e-9
    start = now + 3.0
    bench.send(POINTS, 2.0, start=start)
    bench.until("WAITING")
    motion = bench.end()
    motion.check(duration=2.0)
    last = motion.messages[-1]
    assert motion.stamps[0] > start - 1e-3 and last.progress == pytest.approx(1.0)  # starts at the stamp, complete
    assert last.t - last.delay == pytest.approx(2.0, abs=0.01)  # as planned; a busy machine delays it, as the node reports
    late = float((motion.stamps - start - motion.t).min())  # begins no later than the stamp, but for ticks that were late
    assert late < float(bench.diagnostics.next()["tick.lost_s"]) + 5e-3
    bench.send(POINTS, 2.0, start=now - 100.0)
    bench.ros.until(lambda: bench.diagnostics.dropped("trajectory", "too_late") == 1)


BAD = [
    ("empty", {"points": []}, ()),
    ("unknown_joint", {"names": [*NAMES[:6], "joint8"]}, ()),
    ("duplicate_joint", {"names": [*NAMES[:6], "joint1"]}, ()),
    ("wrong_size", {"names": NAMES[:6]}, ()),
    ("wrong_size", {"velocities": [[0.0] * 7, [], [0.0] * 7, [0.0] * 7]}, "point 1 has no velocities"),
    ("times", {"duration": -1.0, "first": 2.0}, "times must increase"),
    ("times", {"duration": 0.0}, "times must increase"),
    ("not_finite", {"points": [START, START * math.nan]}, "joint1 = nan"),
    ("not_finite", {"velocities": [[math.inf] * 7] * 4}, "velocities of point 0"),
    ("nowhere_to_go", {"points": [START, START, START]}, "all equal"),
    ("nowhere_to_go", {"points": [START], "first": 1.0}, "all equal"),
    ("path", {"velocities": [[0.1] * 7] * 4}, "must begin and end at rest"),
    ("position_limit", {"points": [START, START + [0, 0, 0, 2, 0, 0, 0]]}, "joint4 would be at 0.5"),
]


@pytest.mark.parametrize(("reason", "fields", "words"), BAD)
def test_invalid_trajectories_are_rejected_and_counted(shared, reason, fields, words):
    bench = shared
    bench.received.clear()
    before = bench.diagnostics.dropped("trajectory", reason)  # a rejection is reported at once
    bench.send(**fields)
    bench.ros.until(lambda: bench.diagnostics.dropped("trajectory", reason) == before + 1, of=bench.process)
    said = bench.diagnostics.values["trajectory.last_drop"]
    assert said.startswith(reason) and (not words or words in said), said
    assert bench.diagnostics.state == "IDLE" and not bench.received
    bench.logged(f"trajectory rejected, {reason}")


def test_trajectory_is_rejected_where_gravity_alone_exceeds_an_effort_limit(bench):
    assert not bench.ros.set(bench.node, joint_limits__joint2__max_effort=15.0)
    bench.send()
    bench.ros.until(lambda: bench.diagnostics.dropped("trajectory", "gravity") == 1)
    assert "of the 15 N m (N) of joint2 at s =" in bench.diagnostics.values["trajectory.last_drop"]
    assert not bench.ros.set(bench.node, joint_limits__joint2__max_effort=float(EFFORT[1]))
    assert bench.alive()


def test_limits_lowered_during_a_motion_are_kept_from_then_on(bench):
    bench.send(POINTS, 2.0)
    bench.moving(0.4)
    heavier = {f"joint_limits__{name}__max_effort": float(0.93 * limit) for name, limit in zip(NAMES, EFFORT)}
    assert not bench.ros.set(bench.node, together=True, **heavier)
    motion = bench.end()
    motion.check(duration=2.0)
    tight = replace(LIMITS, effort=0.93 * EFFORT)
    outside = motion.t[motion.used(given=tight) > 1.0 + 1e-6]
    assert not len(outside) or outside.max() < 2.5
    assert (motion.used(given=tight)[motion.t > 2.5] <= 1.0 + 1e-6).all()
    assert motion.messages[-1].progress == pytest.approx(1.0)
    restored = {f"joint_limits__{name}__max_effort": float(limit) for name, limit in zip(NAMES, EFFORT)}
    assert not bench.ros.set(bench.node, together=True, **restored)


def test_payload_set_during_a_motion_is_used_and_one_too_heavy_stops_it(bench):
    loaded = ROBOT.with_payload("link7", 0.2)
    bench.send(POINTS, 200.0)  # long enough for a machine that is busy
    bench.moving(0.3)
    assert not bench.ros.set(bench.node, together=True, payload__link="link7", payload__mass=0.2)
    bench.ros.until(lambda: Samples(bench.received[-1:]).known(loaded).all())
    counts = bench.received[-1]
    bench.ros.until(lambda: bench.received[-1].t > counts.t + 0.3)
    assert not bench.serve("stop")
    motion = bench.end()
    known = motion.known(loaded)
    assert not known[0] and known[known.argmax():].all()  # from one sample on, to the end
    assert counts.phase == ScaledMotion.MOVING and motion.messages[-1].progress > counts.progress
    # test_trajectory_executor.py and test_trajectory_scaler.py check the limits, at instants that load does not shift
    bench.send(START[None], first=8.0)  # long enough for a busy machine to find out that it cannot go on
    bench.moving(0.3)
    assert not bench.ros.set(bench.node, payload__mass=30.0)
    assert bench.end().messages[-1].progress < 1.0
    bench.logged("cannot go on with the new limits or payload: gravity")
    assert not bench.ros.set(bench.node, together=True, payload__link="", payload__mass=0.0)


def test_lower_position_limit_above_the_upper_one_is_rejected(bench):
    refused = bench.ros.set(bench.node, joint_limits__joint2__min_position=5.0)
    assert "joint_limits.joint2.min_position is 5; at most joint_limits.joint2.max_position" in refused
    assert "at most" in bench.ros.set(bench.node, joint_limits__joint2__max_position=-5.0)
