"""Single actions and chunks are executed within limits (differences, Pinocchio), with delays, gaps and rejections."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from lerobot_rnea.joint_mapping import MappingOptions, motor_units

import lerobot_stand_in as stand_in
from lerobot_rnea import ActionStream, JointMapping
from rnea_ros import ChunkExecutor, ChunkOptions, InputError, load

ROBOT = load(stand_in.URDF)
LIMITS = replace(ROBOT.limits, acceleration=np.full(3, 15.0), jerk=np.full(3, 500.0), effort_rate=np.full(3, 30.0))
PERIOD, STEP = 1.0 / 30.0, 1e-3
KEYS = ("shoulder_pan.pos", "shoulder_lift.pos", "elbow_flex.pos", "gripper.pos")
REST = {"shoulder_pan.pos": 0.0, "shoulder_lift.pos": 0.0, "elbow_flex.pos": 0.0, "gripper.pos": 50.0}


def stream(**given):
    arm = stand_in.ServoArm(stand_in.ServoArmConfig())
    mapping = JointMapping(ROBOT, KEYS, motor_units(arm), MappingOptions({}, ["gripper"], {}, {}, []))
    made = ActionStream(ChunkExecutor(ROBOT, LIMITS, ChunkOptions(time_limit=60.0)), mapping, PERIOD, **given)
    made.start(REST, 0.0)
    return made


def policy(t):
    """Return an action at time t: from rest at 0, in degrees and percent."""
    return dict(zip(KEYS, (40.0 * math.sin(1.2 * t) ** 3, -30.0 * math.sin(t) ** 3, 20.0 * math.sin(2.0 * t) ** 3,
                           50.0 + 30.0 * math.sin(t)), strict=True))


def policy_speed(t, step=1e-4):
    """Return the largest speed of a joint [rad/s]."""
    before, after = (np.array(list(policy(at).values()))[:3] for at in (t - step, t + step))
    return np.radians(np.abs(after - before)).max() / (2.0 * step)


def played(made, until, events, start=0.0):
    """Return times and commands (samples, 4) at 1 kHz; events: (time, call of time), in order."""
    waiting, times, found = list(events), np.arange(start, until, STEP), []
    for t in times.tolist():
        while waiting and waiting[0][0] <= t + 1e-9:
            waiting.pop(0)[1](t)
        found.append(list(made.command(t).values()))
    return times, np.array(found)


def actions(made, until, of=policy, start=0.0):
    return [(start + k * PERIOD, lambda t: made.push_action(of(t), t)) for k in range(round((until - start) / PERIOD))]


def require_limits(q):
    """Check positions (samples, 3) [rad] at 1 kHz: velocity, acceleration and jerk by differences, torque by Pinocchio."""
    for order, name in ((1, "velocity"), (2, "acceleration"), (3, "jerk")):
        assert np.abs(np.diff(q, order, axis=0) / STEP**order / getattr(LIMITS, name)).max() <= 1.005, name
    assert ((q >= LIMITS.lower - 1e-9) & (q <= LIMITS.upper + 1e-9)).all()
    pin = pytest.importorskip("pinocchio")
    model = pin.buildModelFromXML(stand_in.URDF)
    data, qd, qdd = model.createData(), np.gradient(q, STEP, axis=0), np.gradient(np.gradient(q, STEP, axis=0), STEP, axis=0)
    tau = np.array([pin.rnea(model, data, *sample).copy() for sample in zip(q, qd, qdd, strict=True)])
    assert np.abs(tau / LIMITS.effort).max() <= 1.0
    assert np.abs(np.gradient(tau, STEP, axis=0)[5:-5] / LIMITS.effort_rate).max() <= 1.005


def positions(commands):
    return np.radians(commands[:, :3]) + np.array([0.0, 0.0, 0.2])


def test_single_actions_are_followed_with_the_delay_within_limits():
    made = stream()
    times, commands = played(made, 6.0, actions(made, 4.0))
    require_limits(positions(commands))
    wanted = np.array([list(policy(max(t - made.delay, 0.0)).values()) for t in times])
    errors = np.abs(commands - wanted)[times < 4.0].max(axis=1)  # degrees, percent
    assert errors.max() < 0.05 and np.median(errors) < 0.02
    assert np.ptp(commands[-100:], axis=0).max() == 0.0  # at rest after the last action
    assert made.diagnostics()["counts"] == {"accepted": 120}


@pytest.mark.parametrize("jump", [0.1, 0.2, 0.4])
def test_motion_catches_up_with_an_action_that_jumps(jump):
    made = stream()

    def moved(t):
        action = policy(t)
        return action | {"elbow_flex.pos": action["elbow_flex.pos"] + math.degrees(jump)}

    times, commands = played(made, 4.0, actions(made, 4.0, moved))
    require_limits(positions(commands))
    wanted = np.array([list(moved(max(t - made.delay, 0.0)).values()) for t in times])
    assert np.abs(commands - wanted)[times > 1.0].max() < 0.5


def test_chunk_actions_are_reached_at_their_times():
    made, count = stream(), 45
    chunks = [(k * 0.5 + 0.05, lambda t: made.push_chunk(t - 0.05, [list(policy(t - 0.05 + n * PERIOD).values())
                                                                     for n in range(count)], t)) for k in range(5)]
    times, commands = played(made, 2.5, chunks)
    require_limits(positions(commands))
    wanted = np.array([list(policy(t).values()) for t in times])
    assert np.abs(commands - wanted)[times > 0.3].max() < 0.02
    assert made.diagnostics()["counts"] == {"accepted": 5}


def test_actions_taken_from_an_executed_chunk_are_ignored():
    made = stream()
    rows = np.array([list(policy(n * PERIOD).values()) for n in range(45)])
    assert made.push_chunk(0.0, rows, 0.0).accepted
    for k in range(10):
        assert made.push_action(dict(zip(KEYS, rows[k].astype(np.float32).tolist(), strict=True)), k * PERIOD) is None
        made.command(k * PERIOD)
    other = REST | {"shoulder_pan.pos": 8.0}
    assert made.push_action(other, 0.35) is None and made.push_action(other, 0.38) is None
    assert made.push_action(other, 0.41).accepted and made.push_action(other, 0.44).accepted
    assert made.diagnostics()["counts"] == {"accepted": 3, "of_chunk": 12}


def test_motion_ends_at_rest_when_actions_stop():
    made = stream()
    _, commands = played(made, 4.0, actions(made, 1.5))
    require_limits(positions(commands))
    assert np.ptp(commands[-500:], axis=0).max() == 0.0


def test_motion_restarts_at_the_last_command_after_an_interruption():
    """The motors stay at the last command while the process is stopped for a second, so the motion must not jump."""
    made = stream()
    _, before = played(made, 1.0, actions(made, 1.0))
    times, after = played(made, 5.0, actions(made, 5.0, start=2.0), start=2.0)
    assert np.abs(after[0, :3] - before[-1, :3]).max() < 1e-9
    require_limits(positions(after))
    assert made.diagnostics()["counts"]["interrupted"] == 1
    wanted = np.array([list(policy(t - made.delay).values()) for t in times])
    assert np.abs(after - wanted)[times > 4.0].max() < 0.5


def test_motion_waits_for_late_commands():
    """The motion waits for a second in total but is not a second late at the end."""
    made, rng = stream(), np.random.default_rng(0)
    waiting, found, t = actions(made, 6.0), [], 0.0
    while t < 6.0:
        t += rng.choice([0.01, 0.06], p=[0.9, 0.1])
        while waiting and waiting[0][0] <= t:
            waiting.pop(0)[1](t)
        found.append([t, *made.command(t).values()])
    times, commands = np.array(found)[:, 0], np.array(found)[:, 1:]
    assert np.diff(times).max() > 0.05
    fastest = np.degrees(np.array([policy_speed(t) for t in np.arange(0.0, 6.0, 0.01)])).max() * 2.0
    assert np.abs(np.diff(commands[:, :3], axis=0)).max() < 0.031 * fastest
    wanted = np.array([list(policy(max(t - made.delay, 0.0)).values()) for t in times])
    assert np.median(np.abs(commands - wanted).max(axis=1)) < 7.0  # degrees; at 40 in a second


@pytest.mark.parametrize(("changed", "reason"), [
    ({"elbow_flex.pos": math.nan}, "not_finite"),
    ({"elbow_flex.pos": 200.0}, "outside_position_limits"),
    ({"elbow_flex.pos": 80.0}, "step_too_large"),
    ({"elbow_flex.pos": None}, "wrong_shape"),
])
def test_infeasible_actions_are_rejected_with_the_reason(changed, reason):
    made = stream()
    events = actions(made, 2.0)
    events[30] = (events[30][0], lambda t: made.push_action(policy(t) | changed, t))
    _, commands = played(made, 2.5, events)
    require_limits(positions(commands))
    counts = made.diagnostics()["counts"]
    assert counts == {"accepted": 59, reason: 1}
    assert np.abs(commands[:, :3]).max() < 45.0


@pytest.mark.parametrize(("values", "reason"), [
    (np.zeros((5, 3)), "wrong_shape"), ([["a"] * 4], "wrong_shape"), (np.full((5, 4), np.nan), "not_finite"),
    (np.full((5, 4), 150.0), "outside_position_limits"),
])
def test_infeasible_chunks_are_rejected_with_the_reason(values, reason):
    made = stream()
    assert made.push_chunk(0.0, values, 0.1).reason == reason
    assert made.diagnostics()["counts"] == {reason: 1}


def test_positions_slightly_beyond_a_limit_are_clipped():
    made = stream(margin=0.05)
    limit = math.degrees(float(LIMITS.upper[0]))
    _, commands = played(made, 4.0, actions(made, 4.0, lambda t: REST | {"shoulder_pan.pos": min(40.0 * t, limit + 2.0)}))
    require_limits(positions(commands))
    assert commands[-1, 0] == pytest.approx(limit, abs=0.2)
    assert made.diagnostics()["counts"]["clipped"] > 0


def test_unprotected_motor_has_the_delay_of_the_joints():
    made = stream()
    times, commands = played(made, 3.0, actions(made, 3.0))
    wanted = np.array([50.0 + 30.0 * math.sin(max(t - made.delay, 0.0)) for t in times])
    assert np.abs(commands[:, 3] - wanted)[times > 0.3].max() < 0.2


def test_stop_brakes_to_rest_and_rejects_actions():
    made = stream()
    played(made, 0.9, actions(made, 0.9))
    made.stop(0.9)
    rests_at = 0.9 + made.diagnostics()["time_to_rest"]
    _, commands = played(made, 2.0, actions(made, 2.0, start=0.9), start=0.9)
    require_limits(positions(commands))
    at_rest = commands[round((rests_at - 0.9) / STEP) + 1:, :3]
    assert np.ptp(at_rest, axis=0).max() < 1e-9 and rests_at < 1.9 and made.diagnostics()["time_to_rest"] == 0.0
    assert made.diagnostics()["counts"]["stopped"] == 33


def test_too_short_delay_is_rejected():
    with pytest.raises(InputError, match=r"delay is 0\.06 s"):
        stream(delay=0.06)


def test_start_beyond_the_position_limits_is_rejected():
    made = stream()
    with pytest.raises(InputError, match="shoulder_pan"):
        made.start(REST | {"shoulder_pan.pos": 120.0}, 0.0)


def test_lead_grows_while_searches_take_too_long_and_shrinks_again():
    made = stream()
    executor = made._executor
    executor.options = replace(executor.options, time_limit=1e-9, max_attempts=2)
    leads = [made.diagnostics()["lead"]]
    for k in range(3):
        rows = np.array([list(policy(k * 0.1 + n * PERIOD).values()) for n in range(45)]) + 8.0 * (-1) ** k
        made.push_chunk(k * 0.1, rows, k * 0.1)
        leads.append(made.diagnostics()["lead"])
    assert made.diagnostics()["counts"] == {"not_in_time": 3} and leads == [0.05, 0.1, 0.2, 0.4]
    executor.options = replace(executor.options, time_limit=60.0, max_attempts=6)
    assert made.push_chunk(0.3, [list(policy(0.3 + n * PERIOD).values()) for n in range(45)], 0.3).accepted
    assert made.diagnostics()["lead"] < 0.4
