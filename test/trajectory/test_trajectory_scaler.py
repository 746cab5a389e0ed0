"""Scaled motions executed cycle by cycle: limits of torque and torque rate, exact path, rest at the goal."""

from __future__ import annotations

from operator import methodcaller

import numpy as np
import pytest

from rnea_ros import InputError
from rnea_ros.trajectory.constraints import Constraints, PathLimits
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.scaled_plan import follow_plan, plan_from_waypoints
from rnea_ros.trajectory.trajectory_scaler import TrajectoryScaler
from support.robots import seeds
from support.scaling_cases import ARMS, DT, TOLERANCE, DelayedExecutor, Motion, PlayedMotion, again, dynamics, limits_for, urdf


def check(motion, played, limits=None) -> None:
    assert played.used(motion.robot, limits or motion.limits).max() <= 1.0 + TOLERANCE
    assert np.abs(played.q - motion.path(played.s)[0]).max() < 1e-9
    assert (np.diff(played.s) > -1e-12).all()
    continuous(played)


def continuous(played) -> None:
    """Check that the speed is continuous at every change of the law."""
    dt = np.diff(played.t)[:, None]
    gained = played.qd[1:] - played.qd[:-1] - 0.5 * dt * (played.qdd[1:] + played.qdd[:-1])
    assert np.abs(gained).max() < 5e-3


def ended(motion, played) -> None:
    """Check that the motion ends at rest at the goal."""
    continuous(played)
    assert played.done and np.abs(played.q[-1] - motion.points[-1]).max() < 1e-9
    assert not np.abs(played.qd[-1]).max() > 1e-9 and not np.abs(played.qdd[-1]).max() > 1e-9


@pytest.fixture(scope="module")
def motion():
    return Motion("seven_r", 1)


@pytest.fixture(scope="module")
def solved(motion):
    """Return the scaler of the motion, solved once for all tests."""
    return TrajectoryScaler(motion.here, motion.plan)


@pytest.mark.parametrize("name", ARMS)
def test_plan_twice_too_fast_is_slowed_to_its_limits(name):
    if urdf(name) is None:
        pytest.skip(f"no {name}.urdf here")
    motion = Motion(name, 2)
    played = PlayedMotion(TrajectoryScaler(motion.here, motion.plan))
    check(motion, played)
    ended(motion, played)
    assert played.duration < 1.03 * motion.fastest.duration
    passed = [played.q[np.abs(played.s - s).argmin()] for s in motion.path.breaks]
    assert np.abs(passed - motion.points).max() < 0.02  # at the nearest cycle


def test_plan_inside_the_limits_is_executed_as_planned():
    motion = Motion("seven_r", 1, speed=0.4)
    played = PlayedMotion(TrajectoryScaler(motion.here, motion.plan))
    check(motion, played)
    s, v, a, u = motion.plan.law(played.t[:-1])
    np.testing.assert_allclose(played.s[:-1], s, atol=1e-9)
    _, q1, q2, q3 = motion.path(s)
    v, a, u = v[:, None], a[:, None], u[:, None]
    np.testing.assert_allclose(played.qd[:-1], q1 * v, atol=1e-9)
    np.testing.assert_allclose(played.qddd[:-1], q3 * v**3 + 3 * q2 * v * a + q1 * u, atol=1e-6)
    assert played.duration == pytest.approx(motion.plan.law.duration, abs=DT)


def test_random_overrides_pause_and_resume_keep_the_limits(motion, solved):
    """Times, override shares and cycle times are random; the goal is reached."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        times = np.cumsum(rng.uniform(0.05, 0.9, 9))
        actions = [(t, (lambda share: lambda r: r.override(share))(rng.choice([0.0, 0.2, 0.5, 0.9, 1.0]))) for t in times]
        actions += [(times[2], TrajectoryScaler.pause), (times[4], TrajectoryScaler.resume),
                    (times[-1] + 0.1, lambda r: r.override(1.0))]
        periods = (float(x) for x in iter(lambda rng=rng: rng.uniform(2e-4, 3e-3), None))
        played = PlayedMotion(again(solved), actions, dt=periods)
        check(motion, played)
        ended(motion, played)


def test_pause_holds_the_robot_and_resuming_adds_little_time(motion, solved):
    played = PlayedMotion(again(solved), [(1.5, TrajectoryScaler.pause), (3.5, TrajectoryScaler.resume)])
    check(motion, played)
    ended(motion, played)
    held = (played.rate == 0.0) & (played.t > 1.5)
    first = played.t[np.argmax(held)]
    assert first - 1.5 < 1.0 and np.ptp(played.s[held]) == 0.0  # at rest
    assert held[(played.t > first) & (played.t < 3.5)].all()
    alone = PlayedMotion(again(solved)).duration
    assert played.duration - alone - (3.5 - 1.5) < 0.6


def test_pause_at_any_time_ends_at_rest_within_the_limits(motion, solved):
    """The rest is on the path or at its end."""
    at_rest = []
    scaler = again(solved)
    for _ in range(16):
        for _ in range(340):
            scaler.tick(DT)
        other = again(scaler)
        other.pause()
        other.override(0.7)
        begun = other.t
        played = PlayedMotion(other, most=begun + 3.0)
        check(motion, played)
        assert np.abs(played.qd[-1]).max() < 1e-9
        at_rest.append(other.t - begun)
    assert len(at_rest) == 16


def test_stop_ends_the_motion_and_resume_has_no_effect(motion, solved):
    played = PlayedMotion(again(solved), [(1.0, TrajectoryScaler.stop), (1.1, TrajectoryScaler.resume)])
    check(motion, played)
    assert played.done and played.s[-1] < 0.9 * motion.path.length and not np.abs(played.qd[-1]).any()


def test_limits_are_kept_between_control_cycles(motion, solved):
    """The motion is evaluated with a quarter of the cycle time."""
    actions = [(0.9, TrajectoryScaler.pause), (1.6, TrajectoryScaler.resume), (2.3, lambda r: r.override(0.3)),
               (2.8, lambda r: r.override(1.0))]
    played = PlayedMotion(again(solved), actions, dt=DT / 4.0)
    check(motion, played)
    ended(motion, played)


# ---------------------------------------------------------------------- starting at once, changes on the way


def test_motion_that_starts_at_once_keeps_the_limits(motion):
    scaler = TrajectoryScaler(motion.here, motion.plan, at_once=True)
    played = PlayedMotion(scaler)
    check(motion, played)
    ended(motion, played)
    assert motion.fastest.duration < played.duration < 1.1 * motion.fastest.duration
    first = np.flatnonzero(played.t < 0.3)
    assert (played.used(motion.robot, motion.limits)[first] < 0.99).all()  # the plan, slowed


def test_tighter_limits_during_a_motion_are_kept_after_braking(motion, solved):
    """The old law is exceeded no more while the rate decreases; then the motion is inside, and hardly slower than with the
    limits known from the start.
    """
    limits = motion.limits._replace(effort=0.9 * motion.limits.effort, effort_rate=0.7 * motion.limits.effort_rate)
    tight = motion.constraints(motion.path, limits)
    known = follow_plan(tight, motion.plan).law.duration
    played = PlayedMotion(again(solved), [(1.0, lambda r: r.change(tight))])
    ended(motion, played)
    used = played.used(motion.robot, limits)
    before = PlayedMotion(again(solved)).used(motion.robot, limits).max(axis=0)
    assert (used.max(axis=0) <= np.maximum(before, 1.0) + 1e-3).all()
    outside = np.flatnonzero((used > 1.0 + TOLERANCE).any(axis=1))
    assert played.t[outside].max() < 1.0 + 0.8
    assert played.duration < 1.06 * known


def test_tighter_limits_apply_while_the_override_keeps_changing(motion, solved):
    """The limits apply as soon as the rate is low enough, also while it changes."""
    limits = motion.limits._replace(effort=0.9 * motion.limits.effort, effort_rate=0.7 * motion.limits.effort_rate)
    scaler = again(solved)
    for _ in range(1000):
        scaler.tick(DT)
    scaler.change(motion.constraints(motion.path, limits))
    for k in range(20):
        scaler.override(0.5 + 0.1 * (k % 2))
        for _ in range(30):
            assert not scaler.tick(DT).done
        assert not scaler.time_scaling.steady
    assert scaler.current is not solved.current and scaler.current.law.duration > solved.current.law.duration
    scaler.override(1.0)
    played = PlayedMotion(scaler)
    assert played.used(motion.robot, limits).max() <= 1.0 + TOLERANCE
    ended(motion, played)


def test_tighter_limits_before_the_start_are_kept(motion, solved):
    limits = motion.limits._replace(effort=0.9 * motion.limits.effort, effort_rate=0.7 * motion.limits.effort_rate)
    played = PlayedMotion(again(solved), [(0.0, lambda r: r.change(motion.constraints(motion.path, limits)))])
    check(motion, played, limits)
    ended(motion, played)


@pytest.mark.parametrize("delay", [5, 150, 700])
def test_changes_during_a_slow_check_of_other_changes_are_all_processed(motion, solved, delay):
    """A rejected request does not revert earlier ones."""
    tight = motion.limits._replace(effort=0.9 * motion.limits.effort, effort_rate=0.7 * motion.limits.effort_rate)
    tighter = tight._replace(velocity=0.8 * motion.limits.velocity)
    heavy = motion.limits._replace(effort=0.5 * motion.limits.effort)
    for limits, times in (((tight, tighter), (0.6, 0.7)), ((tight, tighter), (0.6, 0.65 + 1e-3 * delay)),
                          ((tighter, heavy), (0.6, 0.603)), ((tighter, heavy), (0.6, 0.62 + 1e-3 * delay))):
        actions = [(t, (lambda c: lambda r: r.change(c))(motion.constraints(motion.path, limit)))
                   for t, limit in zip(times, limits)]
        played = PlayedMotion(again(solved, DelayedExecutor(delay)), actions)
        ended(motion, played)
        assert np.diff(played.s).max() < 1.01 * DT * max(r.sd for r in played.references)  # no leap to another law
        settled = played.t > times[1] + 4e-3 * delay + 0.7
        assert played.used(motion.robot, tighter)[settled].max() <= 1.0 + TOLERANCE
        assert settled.sum() > 1000


def ticked_until(scaler, happened, most: int = 4000) -> None:
    """Run cycles until a condition holds; check that the table belongs to the executed law."""
    for _ in range(most):
        if happened():
            return
        scaler._worker.step()
        scaler.tick(DT)
        assert scaler.time_scaling.table.law is scaler.current.law
    raise AssertionError("it never happened")


def test_new_law_during_a_limit_check_restarts_the_check(motion):
    """The result for the previous law is obsolete: the limits are checked again."""
    tight = motion.limits._replace(effort=0.9 * motion.limits.effort, velocity=0.8 * motion.limits.velocity)
    worker = DelayedExecutor(1900)  # ticks: the law arrives when the accelerating clock is about to reach its beginning
    scaler = TrajectoryScaler(motion.here, motion.plan, at_once=True, worker=worker)
    first = scaler.current
    scaler.override(0.2)
    ticked_until(scaler, lambda: worker.now == 1885)
    scaler.override(1.0)
    ticked_until(scaler, lambda: scaler._state.handover is not None)
    worker.delay = 300
    scaler.change(motion.constraints(motion.path, tight))
    scaler.pause()  # the clock will not reach that position, so the law takes over
    ticked_until(scaler, lambda: scaler.current is not first)
    assert scaler._requested
    scaler.resume()
    ticked_until(scaler, lambda: not scaler._requested and scaler._state.assessed is None)
    ticked_until(scaler, lambda: scaler._state.max_rate == 1.0)
    played = PlayedMotion(scaler)
    check(motion, played, tight)
    ended(motion, played)


def test_slowed_law_for_earlier_limits_is_used_during_a_further_check(motion, solved):
    """The law for the previous limits is executed meanwhile."""
    tight, tighter = (motion.limits._replace(effort=share * motion.limits.effort, velocity=share * motion.limits.velocity)
                      for share in (0.9, 0.85))
    worker = DelayedExecutor(1)
    scaler = again(solved, worker)
    ticked_until(scaler, lambda: worker.now == 600)
    scaler.change(motion.constraints(motion.path, tight))
    ticked_until(scaler, lambda: scaler._state.max_rate < 1.0 and scaler.time_scaling.k < 0.97)
    worker.delay = 600
    scaler.change(motion.constraints(motion.path, tighter))
    ticked_until(scaler, lambda: scaler.current is not solved.current)
    assert scaler._requested
    ticked_until(scaler, lambda: not scaler._requested and scaler._state.assessed is None)
    ticked_until(scaler, lambda: scaler._state.max_rate == 1.0)
    played = PlayedMotion(scaler)
    check(motion, played, tighter)
    ended(motion, played)


def test_motion_continues_when_the_worker_fails(motion, solved):
    scaler = again(solved, DelayedExecutor(20))  # deterministic: the failure occurs before the end of the motion
    broken = motion.constraints(motion.path)
    broken.dynamics = lambda *motion: 1 // 0
    played = PlayedMotion(scaler, [(0.5, lambda r: r.change(broken))])
    assert "ZeroDivisionError" in scaler.message
    check(motion, played)
    ended(motion, played)


def test_wider_limits_during_a_motion_make_it_faster(motion, solved):
    limits = motion.limits._replace(effort=1.3 * motion.limits.effort, velocity=1.2 * motion.limits.velocity)
    played = PlayedMotion(again(solved), [(0.5, lambda r: r.change(motion.constraints(motion.path, limits)))])
    check(motion, played, limits)
    ended(motion, played)
    assert played.duration < 0.97 * motion.fastest.duration


@pytest.mark.parametrize(("mass", "when", "larger", "outside", "longest"), [
    (0.3, 0.8, 0.005, 30, 1.25), (0.8, 0.8, 0.005, 50, 1.25), (0.8, 0.25, 0.005, 50, 1.3), (0.8, 0.3, 0.005, 50, 1.3),
    (0.8, 0.95, 0.0, 0, 1.25), (0.8, 3.3, 0.0, 50, 1.25), (0.8, 1.05, 0.0, 0, 1.25), (0.8, 1.1, 0.06, 100, 1.25),
    (0.8, 2.6, 0.05, 500, 1.25)])
def test_payload_during_a_motion_causes_braking_with_bounded_violation(motion, solved, mass, when, larger, outside, longest):
    """Braking begins at once; the utilization is `larger` than at the change at most, exceeds 1 for `outside` ms at most,
    and the motion takes at most `longest` times the fastest.

    From 1.1 s and from 2.6 s on, the motion decelerates at its limits.
    """
    robot = motion.robot.with_payload("link7", mass, (0.0, 0.0, 0.05))
    loaded = motion.constraints(motion.path)
    loaded.dynamics = PathDynamics(robot)
    scaler = again(solved)
    played = PlayedMotion(scaler, [(when, lambda r: r.change(loaded))])
    ended(motion, played)
    used = played.used(robot, motion.limits)[played.changes[0]:].max(axis=1)
    assert used.max() <= max(used[0], 1.0) + max(larger, TOLERANCE)
    assert (used > 1.0 + TOLERANCE).sum() <= outside
    assert ("most by" in scaler.change_excess) == (used.max() > 1.001)
    assert played.duration < longest * motion.fastest.duration


def test_payload_too_heavy_to_hold_is_rejected(motion, solved):
    robot = motion.robot.with_payload("link7", 30.0)
    heavy = motion.constraints(motion.path)
    heavy.dynamics = PathDynamics(robot)
    scaler = again(solved)
    scaler.tick(DT)
    with pytest.raises(InputError, match="gravity alone takes"):
        scaler.change(heavy)
    check(motion, PlayedMotion(scaler))
    scaler = again(solved, DelayedExecutor(30))
    scaler.change(heavy)
    ticked_until(scaler, lambda: scaler.message)
    assert "gravity alone takes" in scaler.status().message and "gravity alone takes" in scaler.change_error
    check(motion, PlayedMotion(scaler))


def test_worker_results_are_used_between_cycles(motion):
    """The worker returns a first law at once, then the optimized law, then the law for new limits."""
    limits = motion.limits._replace(effort=0.95 * motion.limits.effort)
    worker = DelayedExecutor(200)
    scaler = TrajectoryScaler(motion.here, motion.plan, at_once=True, worker=worker)
    first, changed, references = scaler.current, 0, []
    while not scaler.done and scaler.t < 30.0:
        worker.step()
        references.append(scaler.tick(DT))
        if not changed and scaler.current is not first:  # the solved law has taken over
            scaler.change(motion.constraints(motion.path, limits))
            changed = len(references)
    assert 200 <= changed < 800
    played = PlayedMotion.__new__(PlayedMotion)
    played.q, played.qd, played.qdd, played.qddd = (np.array([getattr(r, name) for r in references])
                                                    for name in ("q", "qd", "qdd", "qddd"))
    played.s, played.t, played.done = *np.array([(r.s, r.t) for r in references]).T, references[-1].done
    check(motion, played)
    ended(motion, played)
    assert played.used(motion.robot, limits)[changed + 1500:].max() < 1.0
    assert scaler.t < 1.35 * motion.fastest.duration


@pytest.mark.parametrize("answers", [1, 2])
def test_horizon_law_is_used_before_the_law_for_the_whole_motion(motion, answers, monkeypatch):
    """The horizon is optimized first, then the remainder; without the second result the motion continues unchanged."""
    monkeypatch.setattr("rnea_ros.trajectory.scaled_plan.HORIZON_S", 1.5)
    worker = DelayedExecutor(60)
    scaler = TrajectoryScaler(motion.here, motion.plan, at_once=True, worker=worker)
    taken, on_path = [scaler.current], scaler._with_own_path

    def seen(law):
        taken.append(on_path(law))
        worker.delay = 60 if len(taken) <= answers else 10**9
        return taken[-1]

    monkeypatch.setattr(scaler, "_with_own_path", seen)
    played = PlayedMotion(scaler)
    check(motion, played)
    ended(motion, played)
    durations = [law.law.duration for law in taken]
    assert len(taken) == answers + 1 and durations == sorted(durations, reverse=True)


def odd_paths():
    """Return (name, points, times) of special cases that random waypoints do not cover."""
    rng = np.random.default_rng(0)
    here = rng.uniform(-1.0, 1.0, 7)
    along, joint = np.linspace(0.0, 1.0, 25)[:, None], np.eye(7)
    yield "one joint", here + along[::8] * joint[2], np.linspace(0.0, 0.3, 4)
    yield "one joint, forth and back", here + np.array([[0.0], [1.0], [0.0]]) * joint[1], np.array([0.0, 0.2, 0.4])
    yield "tiny", here + np.array([[0.0], [1e-6]]) * joint[3], np.array([0.0, 1e-4])
    yield "tiny, then large", here + joint[2] * [[0.0], [1e-5], [1.0]], np.array([0.0, 0.01, 0.3])
    yield "nearly straight", here + 0.5 * along[::4] + 1e-7 * rng.normal(size=(7, 7)), np.linspace(0.0, 0.5, 7)
    yield "close and noisy", here + 0.5 * along + 1e-4 * rng.normal(size=(25, 7)), np.linspace(0.0, 0.5, 25)


@pytest.mark.parametrize(("points", "times"), [pytest.param(*case[1:], id=case[0]) for case in odd_paths()])
def test_paths_with_corners_and_repeats_keep_the_limits(points, times):
    """Each path is executed as planned, and with an override of 0.5 for some time."""
    robot = dynamics("seven_r").robot
    plan = plan_from_waypoints(points, times)
    limits = limits_for(robot, plan.path)
    scaler = TrajectoryScaler(Constraints(plan.path, dynamics("seven_r"), limits, robot.joint_names), plan)
    duration = scaler.current.law.duration
    slower = [(0.4 * duration, lambda r: r.override(0.5)), (0.7 * duration, lambda r: r.override(1.0))]
    for actions in ([], slower):
        played = PlayedMotion(again(scaler), actions, between=2)
        assert played.used(robot, limits).max() <= 1.0 + TOLERANCE
        assert np.abs(played.q - plan.path(played.s)[0]).max() < 1e-9
        assert played.done and np.abs(played.q[-1] - points[-1]).max() < 1e-9 and not np.abs(played.qd[-1]).any()


@pytest.mark.parametrize("seed", seeds(2))
def test_random_pauses_overrides_and_limit_changes_keep_path_and_limits(motion, solved, seed):
    """Workers have random delays. The motion stays on its path without jumps, and inside the newest limits as soon as
    possible.
    """
    rng = np.random.default_rng(seed)
    delay, t, actions, last = int(rng.choice([1, 20, 200, 500])), 0.0, [], (0.0, motion.limits)
    for _ in range(6):
        t += rng.choice([0.0, 0.003, 0.04, 0.2, 0.7])
        kind = rng.integers(4)
        if kind < 2:
            effort, rate, velocity = rng.uniform([0.85, 0.7, 0.7], [1.2, 1.4, 1.2])
            last = (t, motion.limits._replace(effort=effort * motion.limits.effort, velocity=velocity * motion.limits.velocity,
                                              effort_rate=rate * motion.limits.effort_rate))
            actions.append((t, methodcaller("change", motion.constraints(motion.path, last[1]))))
        else:
            actions.append((t, methodcaller("override", rng.choice([0.0, 0.3, 1.0])) if kind == 2 else TrajectoryScaler.pause))
    actions += [(t + 0.5, TrajectoryScaler.resume), (t + 0.5, methodcaller("override", 1.0))]
    played = PlayedMotion(again(solved, DelayedExecutor(delay)), actions)
    ended(motion, played)
    assert np.abs(played.q - motion.path(played.s)[0]).max() < 1e-9
    assert np.diff(played.s).min() > -1e-8 and np.diff(played.s).max() < 1.01 * DT * max(r.sd for r in played.references)
    settled = played.t > last[0] + 4e-3 * delay + 1.0
    assert played.used(motion.robot, last[1])[settled].max() <= 1.0 + TOLERANCE


def test_planned_rests_are_executed(motion):
    points, times = motion.points[[0, 1, 2, 2, 3]], np.array([0.0, 1.5, 3.0, 3.8, 6.0])
    plan = plan_from_waypoints(points, times)
    constraints = motion.constraints(plan.path)
    scaler = TrajectoryScaler(constraints, plan, at_once=True)
    played = PlayedMotion(scaler, [(1.0, lambda r: r.override(0.5)), (2.0, lambda r: r.override(1.0))])
    assert played.used(motion.robot, motion.limits).max() <= 1.0 + TOLERANCE
    assert played.done and np.abs(played.q[-1] - points[-1]).max() < 1e-9
    standing = np.abs(played.qd).max(axis=1) < 1e-9
    assert standing[np.abs(played.s - plan.path.stops[0]) < 1e-9].sum() > 100


def test_status_reports_delay_speed_and_limit(motion, solved):
    scaler = again(solved)
    for _ in range(800):
        scaler.tick(DT)
    status = scaler.status()
    assert 0.2 < status.delay < 0.8 and 0.1 < status.speed < 1.0 and 0.9 < status.utilization <= 1.0
    assert status.limit.split(" of ")[0] in ("effort", "effort rate", "velocity", "acceleration") and not status.message
    scaler.pause()
    for _ in range(1500):
        scaler.tick(DT)
    assert scaler.status().delay == pytest.approx(status.delay, abs=0.3)  # waiting is no delay


def test_invalid_scaler_commands_are_rejected(motion, solved):
    scaler = again(solved)
    for share in (-0.1, 1.2, np.nan):
        with pytest.raises(InputError, match="override is"):
            scaler.override(share)
    for dt in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(InputError, match="dt is"):
            scaler.tick(dt)
    other = plan_from_waypoints(motion.points[:3], [0.0, 1.0, 2.0])
    with pytest.raises(InputError, match="another path"):
        scaler.change(motion.constraints(other.path))
    weak = PathLimits(*[0.5 * limit for limit in motion.limits])
    with pytest.raises(InputError, match="gravity alone"):
        TrajectoryScaler(motion.constraints(motion.path, weak), motion.plan)
    with pytest.raises(InputError, match="gravity alone"):
        TrajectoryScaler(motion.constraints(motion.path, weak), motion.plan, at_once=True)


def test_unknown_limits_are_reported_as_not_enforced(motion):
    unknown = motion.limits._replace(effort_rate=np.full(motion.robot.n, np.nan))
    constraints = motion.constraints(motion.path, unknown)
    assert {name for _, name in constraints.unknown} == {"effort_rate", "jerk"}
    played = PlayedMotion(TrajectoryScaler(constraints, motion.plan))
    used = played.used(motion.robot, motion.limits)
    assert used[:, [0, 2, 3]].max() <= 1.0 + TOLERANCE < used[:, 1].max()


def test_motion_with_velocity_limits_only_can_be_paused_and_slowed():
    """Many URDFs have no effort limits: a plan inside the velocity limits is executed."""
    plan = plan_from_waypoints([[0.0, 0.0], [1.0, 0.5], [0.0, 1.0]], [0.0, 1.0, 2.0])
    velocity = np.array([3.0, 3.0])
    scaler = TrajectoryScaler(Constraints(plan.path, None,
                                          PathLimits(*np.full((2, 2), np.nan), velocity, *np.full((2, 2), np.nan))), plan)
    speeds = []
    for k in range(5000):
        for at, act in ((300, lambda: scaler.override(0.5)), (600, scaler.pause), (900, scaler.resume)):
            if k == at:
                act()
        speeds.append(scaler.tick(DT).qd)
        if k == 899:
            assert scaler.time_scaling.k == 0.0
    assert scaler.done and np.abs(speeds).max() <= 3.0 and scaler.t > 3.5


def test_constraints_of_another_path_are_rejected(motion):
    with pytest.raises(InputError, match="constraints on another path than the plan's"):
        TrajectoryScaler(motion.here, plan_from_waypoints(motion.points + 0.1, np.arange(len(motion.points)) + 1.0))


# ---------------------------------------------------------------------- every instant


def jerky(plan, acceleration: float, jerk: float) -> Constraints:
    """Return the same limits for all joints, without a robot."""
    n = plan.path.n
    unknown = np.full((3, n), np.nan)
    return Constraints(plan.path, None, PathLimits(*unknown, np.full(n, acceleration), np.full(n, jerk)))


@pytest.mark.parametrize("catch_up", [True, False])
def test_limits_are_kept_between_samples_while_the_rate_changes(catch_up):
    """Regression: 1.002 of the limit between cycles for a law whose jerk changes within milliseconds."""
    plan = plan_from_waypoints([[1.3, 0.0], [1.0, 0.4], [0.0, 0.0], [1.5, -0.5]], [0.0, 0.3, 0.6, 0.9])
    scaler = TrajectoryScaler(jerky(plan, 11.0, 88.0), plan, catch_up)
    played = PlayedMotion(scaler, [(0.15, methodcaller("override", 0.8))], dt=2e-4)
    assert np.abs(played.qdd).max() <= 11.0 and 0.99 * 88.0 < np.abs(played.qddd).max() <= 88.0
    assert played.done and played.duration < 2.13


def test_pause_with_jerk_limits_only_takes_little_time():
    """Regression: a pause took five seconds, because each short transition changed the rate little."""
    points = np.cumsum(np.random.default_rng(0).uniform(0.3, 1.0, (9, 2)) * [[1.0, -1.0]], axis=0)
    plan = plan_from_waypoints(points, np.arange(9.0))
    scaler = TrajectoryScaler(jerky(plan, np.nan, 8.0), plan)
    played = PlayedMotion(scaler, [(3.0, TrajectoryScaler.pause)], most=6.0)
    assert np.abs(played.qddd).max() <= 8.0 and not np.abs(played.qd[-1]).any() and not played.done


def test_law_is_monotone_where_the_planned_speed_touches_zero():
    """The law must not be faster than the plan without catch_up."""
    plan = plan_from_waypoints([[0.0], [1.27], [1.56], [2.02], [3.86]], [0.0, 0.18, 0.44, 1.17, 1.82])
    constraints = jerky(plan, 10.1, 491.0)
    for catch_up in (True, False):
        law = follow_plan(constraints, plan, catch_up).law
        s, sd, *_ = motion = law(np.linspace(0.0, law.duration, 200_001))
        assert sd.min() > -1e-11 and (np.diff(s) > -1e-14).all() and constraints.utilization(motion).max() < 1.0
        assert law.duration < 2.9
