"""Motion from joint states: any joint order, partial messages, wrapped joints, jumping stamps, several senders."""

import math
import random
import time
from contextlib import suppress
from itertools import groupby

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("rnea_msgs")

from builtin_interfaces.msg import Duration, Time
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import JointMotion
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.cdr import Reader
from rnea_ros.nodes.common.parameter_table import DYNAMICS_TABLE, JOINT
from rnea_ros.nodes.dynamics import joint_states
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.motion_source import MotionSource
from support import fuzz_messages

NAMES = ("a", "b", "c")
SECOND = 10**9
VALUES = {entry.name: entry.default for entry in DYNAMICS_TABLE if JOINT not in entry.name} | {"motion_source": "desired"}
LAG = VALUES["estimator.lag"]
FREQUENCY = np.array([1.0, 2.0, 3.0])


def when(seconds):
    whole, part = divmod(round(seconds * 1e9), SECOND)
    return Time(sec=whole, nanosec=part)


def state(names=NAMES, position=(1.0, 2.0, 3.0), velocity=(4.0, 5.0, 6.0), sec=1.0):
    message = JointState(name=list(names), position=list(position), velocity=list(velocity))
    message.header.stamp = when(sec)
    return message


def read(reader, message, sender=b""):
    reader.merge(reader.read(message, sender))
    return reader.stamp


# --- one message -----------------------------------------------------------------------------------------------------


def test_joint_state_is_read_by_name_also_when_the_order_of_names_changes():
    reader = StateReader(NAMES)
    for sec in range(3):
        assert read(reader, state(sec=2 * sec)) == 2 * sec * SECOND
        assert (reader.q.tolist(), reader.qd.tolist(), reader.has_velocity) == ([1, 2, 3], [4, 5, 6], True)
        read(reader, state(("x", "c", "a", "b"), (9.0, 3.0, 1.0, 2.0), (9.0, 6.0, 4.0, 5.0), sec=2 * sec + 1))
        assert (reader.q.tolist(), reader.qd.tolist()) == ([1, 2, 3], [4, 5, 6])


@pytest.mark.parametrize(("message", "reason", "detail"), [
    (state((), (), ()), "empty", "names no joints"),
    (state("abb"), "duplicate_joint", "b"),
    (state("xyz"), "other_joints", "none of this robot's joints: x, y, z; needed are a, b, c. Rename"),
    (state(position=()), "wrong_size", "position has 0 entries for 3 names"),
    (state(velocity=(1.0, 2.0)), "wrong_size", "velocity has 2 entries for 3 names"),
    (state(position=(1.0, math.nan, -math.inf)), "position_not_finite", "b = nan, c = -inf"),
    (state("ca", (math.inf, 7.0), (7.0, 7.0)), "position_not_finite", "c = inf"),
    (state(sec=-1), "stamp_went_back", "1.000000 s"),
])
def test_invalid_joint_states_are_rejected_and_do_not_change_the_reader(message, reason, detail):
    reader = StateReader(NAMES)
    read(reader, state(sec=0))
    with pytest.raises(Rejected, match=detail) as caught:
        read(reader, message)
    assert caught.value.reason == reason and reader.q.tolist() == [1, 2, 3]
    assert caught.value.passing == (reason == "other_joints")
    assert read(reader, state(sec=2)) == 2 * SECOND  # the reader still works


def test_optional_joints_are_read_when_they_are_published():
    reader = StateReader("ab", optional="cd")
    read(reader, state("ab", (1.0, 2.0), (4.0, 5.0), sec=0))
    assert (reader.q.tolist(), reader.qd.tolist(), reader.has_velocity) == ([1, 2], [4, 5], True)
    assert np.isnan(reader.optional()).all()
    read(reader, state("dcba", (40.0, 3.0, 2.5, 1.5), (9.0, 8.0, 5.5, 4.5), sec=1))  # all of them
    assert reader.q.tolist() == [1.5, 2.5] and reader.optional().tolist() == [[3.0, 40.0], [8.0, 9.0]]
    read(reader, state("xbad", (0.0, 2.0, 1.0, 4.0), (0.0, 5.0, 4.0, math.nan), sec=1.1))  # some; the speed of one unknown
    assert reader.q.tolist() == [1, 2] and reader.has_velocity
    np.testing.assert_array_equal(reader.optional(), [[3.0, 4.0], [8.0, math.nan]])
    assert read(reader, state("c", (30.0,), (0.5,), sec=1.2)) == 1.2 * SECOND  # from another sender
    np.testing.assert_array_equal(reader.optional(), [[30.0, 4.0], [0.5, math.nan]])
    reader.age = 0.5
    read(reader, state("ab", (1.0, 2.0), (4.0, 5.0), sec=1.65))
    np.testing.assert_array_equal(reader.optional(), [[30.0, math.nan], [0.5, math.nan]])
    reader.forget()
    assert np.isnan(reader.optional()).all()
    with pytest.raises(Rejected, match="no message names a, b"):
        read(reader, state("cd", (1.0, 1.0), (0.0, 0.0), sec=3))


def test_error_messages_abbreviate_long_lists_of_names():
    many = [f"x{k}" for k in range(10**5)] + ["y" * 10**6]
    reader = StateReader(NAMES)
    for names, detail in ((many, "and 99989 more"), (["a", *many], "no message names b, c"), (many * 2, "and 99989 more")):
        with pytest.raises(Rejected, match=detail) as caught:
            read(reader, state(names, (0.0,) * len(names), ()))
        assert len(str(caught.value)) < 1000


def test_huge_finite_positions_are_accepted():
    reader = StateReader(NAMES)
    read(reader, state(position=(1.7e308, 1.7e308, -1.7e308)))
    assert reader.q[0] == 1.7e308


@pytest.mark.parametrize("velocity", [(), (math.nan,) * 3, (1.0, math.nan, 1.0)])
def test_state_reader_accepts_missing_velocities(velocity):
    reader = StateReader(NAMES)
    read(reader, state(velocity=velocity))
    assert not reader.has_velocity and "b = nan" in reader.velocity_gap()


# --- parts -----------------------------------------------------------------------------------------------------------


def test_partial_states_are_merged_by_joint_with_the_newest_stamp():
    reader = StateReader(NAMES)
    reader.age = 0.5
    with pytest.raises(Rejected, match="no message names b") as caught:
        read(reader, state("ca", (3.0, 1.0), (6.0, 4.0), sec=10.0))
    assert caught.value.reason == "joint_missing" and caught.value.passing
    assert read(reader, state("xb", (9.0, 2.0), (9.0, 5.0), sec=9.8)) == 10 * SECOND
    assert (reader.q.tolist(), reader.qd.tolist(), reader.has_velocity) == ([1, 2, 3], [4, 5, 6], True)
    assert (reader.when.sec, reader.when.nanosec) == (10, 0)
    read(reader, state("ca", (3.5, 1.5), (), sec=10.2))
    assert reader.q.tolist() == [1.5, 2.0, 3.5] and not reader.has_velocity
    with pytest.raises(Rejected, match=r"b: up to 0\.501 s before the newest joint; joint_age is 0\.5 s") as caught:
        read(reader, state("ca", (3.5, 1.5), (6.0, 4.0), sec=10.301))
    assert caught.value.reason == "joint_too_old" and not caught.value.passing
    assert read(reader, state(sec=10.4)) == 10_400_000_000 and reader.q.tolist() == [1, 2, 3]  # complete, from a third sender


def test_backward_stamp_clears_all_joints():
    reader = StateReader(NAMES)
    for sec in (10.0, 10.1):
        reader.read(state("ac", (1.0, 3.0), (), sec=sec))
        reader.read(state("b", (2.0,), (), sec=sec))
    with pytest.raises(Rejected) as caught:
        read(reader, state("ac", (1.0, 3.0), (), sec=5.0))
    assert caught.value.reason == "stamp_went_back"
    with pytest.raises(Rejected, match="no message names b"):
        read(reader, state("ac", (1.0, 3.0), (), sec=5.1))


def test_unpublished_joints_are_held_and_published_ones_are_not():
    source = MotionSource(NAMES, VALUES | {"hold_joints.b": 0.7, "motion_source": "estimated"})
    for k in range(100):
        source.read(state("ca", (3.0, 0.01 * k), (0.0, 1.0), sec=1.0 + 0.01 * k))
    expected = [[0.99 - LAG, 0.7, 3.0], [1.0, 0.0, 0.0], [0.0] * 3, [0.0] * 3]
    np.testing.assert_allclose(source.at_state(math.inf), expected, atol=1e-3)
    assert source.stamp == round((1.99 - LAG) * 1e9) and not source.deviation[:, 1].any() and source.deviation[:, 0].all()
    source.read(state("b", (0.2,), (1.0,), sec=2.0))
    assert source.state.q[1] == 0.2
    with pytest.raises(Rejected, match="b: up to 0"):  # no longer held once it was published
        source.read(state("ca", (3.0, 0.0), (0.0, 10.0), sec=2.9))
    source.configure(VALUES | {"hold_joints.b": 0.7, "joint_age": 2.0})
    assert source.read(state("ca", (3.0, 0.0), (0.0, 10.0), sec=3.0)) == 3_000_000_000


def motion(t):
    """Return q, qd, qdd, qddd (4, 3) of three sines."""
    w = FREQUENCY
    return np.array([np.sin(w * t), w * np.cos(w * t), -w**2 * np.sin(w * t), -w**3 * np.cos(w * t)])


def push(source, t, names=NAMES, offset=100.0, sender=b"", wrong=0.0, stamp=None):
    columns = [NAMES.index(name) for name in names]
    q, qd = motion(t - wrong)[:2, columns]
    source.read(state(names, q, qd, offset + t if stamp is None else stamp), sender)
    return source.at_state(math.inf)


@pytest.fixture
def estimated():
    return MotionSource(NAMES, VALUES | {"motion_source": "estimated"})


def test_derivatives_are_estimated_from_partial_states_of_different_rates(estimated):
    """The estimates of all joints are for the same instant."""
    arm, gripper = np.arange(0.0, 4.0, 0.002), np.arange(0.0011, 4.0, 0.031)
    answered = 0
    for t, names in sorted([(t, "ab") for t in arm] + [(t, "c") for t in gripper]):
        try:
            found = push(estimated, t, names)
        except Rejected as rejected:
            assert rejected.passing and t < 1.5
            continue
        assert estimated.stamp == round((100.0 + t - LAG) * 1e9)
        if t > 2.0:
            answered += 1
            expected = motion(t - LAG)
            np.testing.assert_allclose(found[0], expected[0], atol=1e-3)
            np.testing.assert_allclose(found[2][:2], expected[2][:2], atol=0.01)
            np.testing.assert_allclose(found[2][2], expected[2][2], atol=0.3)
    assert answered > 1000


def test_auto_uses_desired_motion_while_it_arrives_without_mixing_it_with_estimates():
    """Desired accelerations are 50 too high: a result has this error only together with the measured state of its stamp."""
    source, found, wrong = MotionSource(NAMES, VALUES | {"motion_source": "auto", "desired_timeout": 1e-3}), [], 50.0
    for t in np.arange(0.0, 1.5, 0.002):
        begun, arriving = t > 0.5, 0.5 < t < 0.9
        if arriving:
            wanted = JointMotion(joint_names=list(NAMES), acceleration=motion(t)[2] + wrong, jerk=motion(t)[3])
            wanted.header.stamp = when(100.0 + t)
            source.desired.read(wanted)
        q, qd = motion(t)[:2]
        source.read(state(NAMES, q, qd, 100.0 + t))
        try:
            given = np.array(source.at_state(0.0 if arriving else t - 0.898 if begun else math.inf))
        except Rejected as rejected:
            assert rejected.passing and rejected.reason in ("history_too_short", "motion_source_changed")
            continue
        late = 0.0 if source.name == "desired_motion" else LAG
        assert source.stamp == round((100.0 + t - late) * 1e9) and (source.deviation is None) == (not late)
        expected = motion(t - late) + np.array([0.0, 0.0, 0.0 if late else wrong, 0.0])[:, None]
        np.testing.assert_allclose(given[:3], expected[:3], atol=0.05 if late else 0.01)  # extrapolated for 10 ms
        found.append((source.stamp, source.name))
    assert [name for name, _ in groupby(name for _, name in found)] == ["estimated", "desired_motion", "estimated"]
    assert (np.diff([stamp for stamp, _ in found]) > 0).all()  # nothing is published back in time
    assert found[-1][0] == round((100.0 + 1.498 - LAG) * 1e9)


def test_estimator_pauses_while_desired_motion_arrives_and_continues_without_a_gap():
    source, desired, errors = MotionSource(NAMES, VALUES | {"motion_source": "auto"}), 4.0, []
    times = []  # of the last sample of the estimator before each state
    for t in np.arange(0.0, 5.0, 0.002):
        times += [sender.history.estimator.clock.time for sender in source.state.sources]
        if t <= desired:
            wanted = JointMotion(joint_names=list(NAMES), acceleration=motion(t)[2], jerk=motion(t)[3])
            wanted.header.stamp = when(100.0 + t)
            source.desired.read(wanted)
        source.read(state(NAMES, *motion(t)[:2], 100.0 + t))
        try:
            found = source.at_state(0.0)
        except Rejected as rejected:
            assert rejected.reason == "motion_source_changed" and t <= desired + LAG + 0.021  # input_tolerance
            continue
        if t < desired:
            assert source.name == "desired_motion"
        if source.name == "estimated":
            errors.append(np.abs(found[2] - motion(t - LAG)[2]).max())
    (sender,) = source.state.sources
    assert sender.history.estimator.clock.time < 0.6 * t  # the pause is not in its time
    assert len(errors) > 450 and max(errors) < 0.02
    # the kept second is passed on in pieces: no message waits for all of it
    assert np.diff(times[round(desired / 0.002):]).max() < 0.1


def test_estimates_after_a_pause_of_the_estimator_lie_within_their_standard_deviations():
    """Positions of a 16-bit encoder; the estimator has lost most samples of the pause when the desired motion ends."""
    source, desired, step, shares = MotionSource(NAMES, VALUES | {"motion_source": "auto"}), 3.0, 2.0 * math.pi / 2**16, []
    for t in np.arange(0.0, 3.3, 0.001):
        if t <= desired:
            wanted = JointMotion(joint_names=list(NAMES), acceleration=motion(t)[2], jerk=motion(t)[3])
            wanted.header.stamp = when(100.0 + t)
            source.desired.read(wanted)
        q, qd = motion(t)[:2]
        source.read(state(NAMES, np.round(q / step) * step, qd, 100.0 + t))
        with suppress(Rejected):
            found = np.array(source.at_state(0.0))
            if source.name == "estimated" and t > desired:
                shares.append(np.abs(found - motion(t - LAG)) / source.deviation)
    assert len(shares) > 200
    assert (np.mean(np.array(shares) <= 2.0, axis=(0, 2)) >= 0.92).all()  # of positions, velocities, accelerations, jerks


def test_auto_estimates_the_motion_when_states_have_no_velocities_and_states_the_remedy():
    source = MotionSource(NAMES, VALUES | {"motion_source": "auto"})
    for t in np.arange(0.0, 0.4, 0.002):
        wanted = JointMotion(joint_names=list(NAMES), acceleration=[0.0] * 3, jerk=[0.0] * 3)
        wanted.header.stamp = when(100.0 + t)
        source.desired.read(wanted)
        source.read(state(NAMES, motion(t)[0], (), 100.0 + t))
    np.testing.assert_allclose(source.at_state(0.0)[2], motion(t - LAG)[2], atol=0.05)
    assert source.name == "estimated"
    (warning,) = source.warnings(0.0)
    assert "the motion is estimated. Publish velocities" in warning


# --- stamps ----------------------------------------------------------------------------------------------------------


def outcome(source, seconds, stamps, **more):
    """Return the number of answers, the largest error of the acceleration, and the reasons of consecutive rejections."""
    answered, worst, refused = 0, 0.0, []
    for t, stamp in zip(seconds, stamps):
        try:
            worst = max(worst, np.abs(push(source, t, stamp=stamp, **more)[2] - motion(t - LAG)[2]).max())
            answered += 1
        except Rejected as rejected:
            refused.append(rejected.reason)
    assert len(refused) + answered == len(seconds)
    return answered, worst, [reason for reason, _ in groupby(refused)]


T = np.arange(0.0, 1.2, 0.002)
LATER = T > 0.599
START = ["history_too_short"]
BEGINNING = 90  # states at most until there is an estimate


@pytest.mark.parametrize(("first", "stamps", "expected"), [
    (5.0, T, START),  # a recording, or simulated time: old, and right
    (3e4, T, START),  # a robot whose clock is ahead by hours: always so, and right
    (1000.0, T - 0.5 * (T > 0.7), [*START, "stamp_went_back", *START]),
    (1000.0, T % 0.6, [*START, "stamp_went_back", *START]),
    (0.0, T + 3600.0 * (LATER & (T < 0.601)), [*START, "stamp_ahead", "stamp_went_back", *START]),
    (0.0, T + 3600.0 * LATER, [*START, "stamp_ahead", *START]),
    (1000.0, T + 3600.0 * LATER, START),  # another part of a recording: a gap
], ids=["old", "ahead", "set back", "looped", "one ahead", "set ahead", "gap"])
def test_stamp_jump_drops_one_message_and_clears_the_history(estimated, first, stamps, expected, request):
    now = time.time() if "ahead" in request.node.callspec.id else 0.0  # stamps of this machine's clock, or of another one
    answered, worst, refused = outcome(estimated, T, now + first + stamps)
    assert refused == expected and worst < 0.03
    assert answered >= len(T) - 2 * BEGINNING - 3


def test_pause_of_the_joint_states_is_no_stamp_jump(estimated, monkeypatch):
    """The steady clock advances as the stamps do, with any offset between stamps and the clock of the node."""
    steady = [0]
    monkeypatch.setattr(time, "monotonic_ns", lambda: steady[0])
    refused = []
    for pause in (0.0, 30.0, 3600.0):
        steady[0] = round(pause * 1e9)
        refused += outcome(estimated, T[:200], time.time() + 1e4 + pause + T[:200])[2]
    assert refused == START * 3


def test_stamps_that_do_not_advance_are_rejected(estimated):
    assert outcome(estimated, T[:9], np.zeros(9))[2] == ["history_too_short", "stamp_not_advancing"]


def test_out_of_order_message_is_dropped_without_loss_of_history(estimated):
    stamps = 1000.0 + T
    stamps[400] -= 0.005
    answered, worst, refused = outcome(estimated, T, stamps)
    assert refused == [*START, "stamp_disordered"] and answered >= len(T) - BEGINNING - 1 and worst < 0.03


def test_repeated_stamp_is_accepted_and_any_stamp_is_accepted_after_a_reset():
    reader = StateReader(NAMES)
    for sec in (50.0, 50.0):
        read(reader, state(sec=sec))
    reader.forget()
    assert read(reader, state(sec=3.0)) == 3 * SECOND


def test_reference_trajectory_after_a_reset_is_not_compared_with_earlier_states():
    """Regression: after a reset of a simulation, a trajectory that came before the first joint state was too old."""
    source = MotionSource(NAMES, VALUES | {"motion_source": "reference", "reference.source": "trajectory"})
    source.read(state(sec=1000.0))
    source.forget()
    points = [JointTrajectoryPoint(positions=[x] * 3, time_from_start=Duration(sec=int(x))) for x in (0.0, 2.0)]
    trajectory = JointTrajectory(joint_names=list(NAMES), points=points)
    trajectory.header.stamp = when(3.0)
    source.references.trajectory.read(trajectory)
    source.read(state(sec=4.0))
    assert source.at_state(0.0)[0].tolist() == [1.0] * 3


def test_desired_motion_from_before_a_clock_jump_is_not_used():
    source = MotionSource(NAMES, VALUES)
    wanted = JointMotion(joint_names=list(NAMES), acceleration=[1.0] * 3, jerk=[2.0] * 3)
    wanted.header.stamp = when(100.0)
    source.desired.read(wanted)
    source.read(state(sec=100.0))
    assert source.at_state(0.01)[2].tolist() == [1.0] * 3
    with pytest.raises(Rejected):
        source.read(state(sec=90.0))
    source.read(state(sec=90.1))
    with pytest.raises(Rejected) as caught:
        source.at_state(0.01)
    assert caught.value.reason == "desired_forgotten"
    wanted.header.stamp = when(90.09)
    with pytest.raises(Rejected):
        source.desired.read(wanted)
    wanted.header.stamp = when(90.1)
    source.desired.read(wanted)
    assert source.at_state(0.01)[3].tolist() == [2.0] * 3


def test_late_desired_motion_has_the_effect_of_on_desired_timeout():
    """80 ms after its stamp: on_desired_timeout applies, also if messages arrive."""
    for policy in ("zero_jerk", "hold", "stop"):
        source = MotionSource(NAMES, VALUES | {"on_desired_timeout": policy})
        wanted = JointMotion(joint_names=list(NAMES), acceleration=[1.0] * 3, jerk=[2.0] * 3)
        wanted.header.stamp = when(100.0)
        source.desired.read(wanted)
        source.read(state(sec=100.0))
        source.at_state(0.01)
        assert source.name == "desired_motion" and source.lateness is None
        source.read(state(sec=100.08))
        if policy == "stop":
            with pytest.raises(Rejected, match=r"is 0\.080 s older than the joint state"):
                source.at_state(0.01)
            continue
        found = source.at_state(0.01)
        assert found[2].tolist() == [1.0] * 3 and found[3].tolist() == [2.0 * (policy == "hold")] * 3
        assert source.name == "desired_motion_late" and source.lateness.reason == "desired_motion_late"


# --- senders ---------------------------------------------------------------------------------------------------------


def test_two_senders_of_the_same_joints_are_detected_and_not_mixed(estimated):
    assert estimated.state.conflicting_senders() == (set(), [])
    for k, t in enumerate(T):
        sender, wrong = ((b"one", 0.0), (b"two", 0.3))[k % 2]
        try:
            found = push(estimated, t, sender=sender, wrong=wrong)
        except Rejected as rejected:
            assert rejected.reason == "other_sender" if sender == b"two" else rejected.passing and k < 2 * BEGINNING
            continue
        assert sender == b"one"
        np.testing.assert_allclose(found[:3], motion(t - LAG)[:3], atol=0.03)
    assert estimated.state.conflicting_senders() == ({b"one", b"two"}, list(NAMES))


def test_second_sender_is_used_after_the_first_has_stopped(estimated, monkeypatch):
    """A recording is replayed: the second sender starts with the same stamps as the first."""
    monkeypatch.setattr(joint_states, "HANDOVER_NS", 0)
    reported = [outcome(estimated, T, 1000.0 + T, sender=sender) for sender in (b"one", b"two")]
    assert [refused for _, _, refused in reported] == [START, ["stamp_went_back", *START]]
    assert all(answered >= len(T) - BEGINNING - 1 and worst < 0.03 for answered, worst, _ in reported)


def test_senders_of_different_joints_do_not_conflict(estimated):
    for t in T[:50]:
        for sender, names in ((b"one", "ab"), (b"two", "c")):
            columns = [NAMES.index(name) for name in names]
            estimated.state.read(state(names, motion(t)[0, columns], motion(t)[1, columns], 100.0 + t), sender)
    assert estimated.state.conflicting_senders() == (set(), [])
    with pytest.raises(Rejected, match="another sender of b is in use"):
        estimated.state.read(state("cb", (0.0, 0.0), (0.0, 0.0), 101.0), b"two")
    assert estimated.state.conflicting_senders() == ({b"one", b"two"}, ["b"])


def test_number_of_remembered_senders_is_bounded():
    reader = StateReader(NAMES)
    for k in range(1000):
        with suppress(Rejected):
            read(reader, state(sec=float(k)), sender=str(k).encode())
        with suppress(Rejected):
            read(reader, state((f"x{k}", *NAMES), (0.0, *motion(0.0)[0]), (), sec=float(k)))
    assert len(reader.sources) <= 32 and len(reader._map._known) <= 32


# --- wrapped joints --------------------------------------------------------------------------------------------------


def test_motion_of_wrapped_joints_is_estimated_across_the_jump():
    """Two joints are continuous; one is revolute and wrapped at pi by its driver, which diagnostics report."""
    source = MotionSource(NAMES, VALUES | {"motion_source": "estimated"}, ["revolute", "continuous", "continuous"])
    answered = 0
    for t in np.arange(0.0, 3.0, 0.002):
        q = np.array([3.0 + 0.1 * t, 4.0 * t, -9.0 * t])
        wrapped = q - 2.0 * np.pi * np.round(q / (2.0 * np.pi))
        try:
            source.read(state(NAMES, wrapped, (0.1, 4.0, -9.0), 7.0 + t))
            found = source.at_state(math.inf)
        except Rejected as rejected:
            assert rejected.passing
            continue
        answered += 1
        np.testing.assert_allclose(found[1], [0.1, 4.0, -9.0], atol=1e-4)
        np.testing.assert_allclose(found[2:], 0.0, atol=1e-2)
    assert answered >= 1500 - BEGINNING
    assert "jumps by whole turns removed: 1;" in str(source.findings()[f"{NAMES[0]}.unwrapped"])
    assert f"{NAMES[1]}.unwrapped" not in source.findings()


# --- bytes ---------------------------------------------------------------------------------------------------------------


def refusal_of(read, *given):
    """Return the reason of a rejection, or an empty text."""
    try:
        read(*given)
    except Rejected as refusal:
        return str(refusal)
    return ""


def arrays_of(reader):
    shown = [reader.q_all, reader.qd_all, reader.rests]
    return [values.tobytes() for values in shown], reader.stamp, reader.spread, reader.has_velocity


@pytest.mark.parametrize("optional", [(), ("motor",)])
def test_bytes_that_repeat_a_layout_are_read_as_their_messages_are(monkeypatch, optional):
    """Joint states of any order, size, sender and content, each read twice: as bytes, and as a message of the middleware."""
    rng, clock, repeated = random.Random(3), [10**9], []
    monkeypatch.setattr(time, "monotonic_ns", lambda: clock[0])
    by_bytes, by_message = (StateReader(NAMES, optional=optional) for _ in range(2))
    deserialize, read_again = Reader(JointState), joint_states.RepeatedState.read

    def counted(self, data, sender, check):
        repeated.append(read_again(self, data, sender, check))
        return repeated[-1]

    monkeypatch.setattr(joint_states.RepeatedState, "read", counted)
    for k in range(1500):
        clock[0] += 10**6
        if k % 50 == 0:
            every = [*NAMES, *optional, *rng.sample(("x", "y"), rng.randrange(3))]
            names = rng.sample(every, len(every)) if rng.random() < 0.8 else every[:2]
        n, odd, sec = len(names), rng.randrange(40), 5.0 + 1e-3 * k
        message = state(names, [rng.gauss(0, 1) for _ in names], [rng.gauss(0, 1) for _ in names if odd != 1], sec)
        if odd in (2, 3):
            (message.position if odd == 2 or not message.velocity else message.velocity)[0] = rng.choice(
                (math.nan, math.inf, -math.inf, -0.0, 1e308))
        if odd == 4:
            message.header.stamp = when(sec + rng.choice((-0.002, -3.0, 5.0)))
        if odd == 5:
            message.velocity = message.velocity[:n - 1]
        data = serialize_message(message)
        data = fuzz_messages.buffer(rng, data) if odd == 6 else data
        sender = b"other" if odd == 7 else b"first"
        clock[0] += 10**9 if odd == 8 else 0
        found = refusal_of(by_bytes.read_bytes, data, sender)
        assert found == refusal_of(lambda given, source: by_message.read(deserialize(given), source), data, sender)
        assert arrays_of(by_bytes) == arrays_of(by_message)
        if not found:
            newest = [max(reader.sources, key=lambda one: one.arrival) for reader in (by_bytes, by_message)]
            assert newest[0].values.tobytes() == newest[1].values.tobytes()
            assert repr(by_bytes.message) == repr(deserialize(data))
    assert 300 < sum(repeated) < 1400  # both ways were taken
