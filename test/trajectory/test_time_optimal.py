"""Time-optimal law against closed forms, IPOPT with another formulation, and TOPP-RA; inside its limits everywhere."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.model.drives import DriveLimit, limit_factors
from rnea_ros.trajectory import time_law as laws
from rnea_ros.trajectory import time_optimal
from rnea_ros.trajectory.constraints import Constraints, DriveConstraints, PathLimits, constraint_values, torque_terms
from rnea_ros.trajectory.interior_point import CubicSpline
from rnea_ros.trajectory.limit_check import steady_rate
from rnea_ros.trajectory.path import path_through
from rnea_ros.trajectory.path_dynamics import PathDynamics
from rnea_ros.trajectory.retiming import fit_route, slower_playback_notes, time_optimal_law
from rnea_ros.trajectory.time_optimal import CHECKED_LEVEL, NoLaw, fastest_law, slow_to_limits
from support.scaling_cases import ARMS, Motion, dynamics, limits_for, toy, urdf, waypoints


def worst(constraints, law, most=None) -> float:
    """Return the largest utilization of any limit at the speed of the law and below, sampled more densely than the solver."""
    s, v, a, u = law(np.linspace(0.0, law.duration, 20_011))
    rows = constraints(s)
    return max(float(np.abs(constraint_values(rows, k * v, k**2 * a, k**3 * u)).max()) for k in (1.0, 0.9, 0.5))


def slide(length: float, **limits) -> Constraints:
    """Return constraints of one joint along a line."""
    known = {name: np.array([limits.get(name, np.nan)]) for name in PathLimits._fields}
    return Constraints(path_through([[0.0], [length]]), None, PathLimits(**known))


def bent(**limits) -> Constraints:
    """Return constraints of the toy robot along a curve."""
    known = {name: np.array(limits.get(name, [np.nan, np.nan])) for name in PathLimits._fields}
    path = path_through([[0.0, 0.0], [1.0, 0.5], [2.0, -0.5]])
    return Constraints(path, lambda *p: torque_terms(toy, *p), PathLimits(**known))


def test_warning_states_the_limits_exceeded_by_slower_playback():
    """A pendulum of 1 kg m^2 and 5 N m swings without motor torque; at lower speed the motor has to brake."""
    pytest.importorskip("casadi")
    from support.scaling_optimum import optimum

    limits = [DriveLimit("power", "pendulum", (0,), -4.0, 10.0, power=1.0)]
    constraints = Constraints(
        path_through([[2.5], [-2.5]]),
        lambda *p: torque_terms(lambda q, qd, qdd, qddd: (qdd + 5.0 * np.sin(q), qddd + 5.0 * np.cos(q) * qd), *p),
        PathLimits(**{name: np.array([20.0 if name == "acceleration" else np.nan]) for name in PathLimits._fields}),
        drives=DriveConstraints(limits, limit_factors(limits, 1)._asdict(), np.zeros(1)))
    law = time_optimal_law(constraints)
    used = constraints.utilization(law(np.linspace(0.0, law.duration, 20_011)))
    assert 0.99 < used.max() < 1.0 and law.duration < 1.03 * optimum(constraints, 300, 4.0)
    (note,) = slower_playback_notes(constraints, law)
    braking = constraints.utilization(law.slower(0.6)(np.linspace(0.0, law.duration / 0.6, 20_011))).max()
    assert 2.1 < braking < 2.25 and f"at 60% of it, power of pendulum is {braking:.0%} of its limit" in note
    assert not slower_playback_notes(constraints, fastest_law(constraints))


@pytest.mark.parametrize(("quantity", "limit"), [("effort", 9.0), ("effort_rate", 40.0), ("velocity", 1.0),
                                                 ("acceleration", 4.0), ("jerk", 40.0)])
def test_largest_steady_rate_reaches_the_binding_limit(quantity, limit, monkeypatch):
    """One limit is known; it is reached to the requested share."""
    constraints = bent(**{quantity: [limit, limit]})
    law = laws.rest_to_rest(0.0, constraints.path.length, 1.0)
    for share in (1.0, 0.97):
        factor = steady_rate(constraints, law, share)
        assert 0.05 < factor < 0.95
        assert worst(constraints, law.slower(factor)) == pytest.approx(share, rel=1e-4)
    assert steady_rate(constraints, law.slower(0.05), 1.0) == 1.0
    assert worst(constraints, slow_to_limits(constraints, law)) == pytest.approx(CHECKED_LEVEL, rel=1e-4)
    slow = law.slower(0.05)
    assert slow_to_limits(constraints, slow) is slow
    motion, whole = law.sample_pieces()[0], constraints.utilization(law.sample_pieces()[0])
    monkeypatch.setattr("rnea_ros.trajectory.constraints.SAMPLES_PER_BLOCK", 50)  # samples per block
    assert steady_rate(constraints, law, 0.97) == pytest.approx(factor, rel=1e-12)
    np.testing.assert_allclose(constraints.utilization(motion), whole, atol=1e-12)


@pytest.mark.parametrize("moving", [False, True])
def test_violations_between_grid_points_are_corrected(moving, monkeypatch):
    """The grid is coarse and not refined; the law is slowed or replaced until it is inside the limits."""
    monkeypatch.setattr(time_optimal, "MAX_TIGHTENING_ROUNDS", 0)
    constraints = bent(effort=[9.0, 5.0], effort_rate=[60.0, 60.0])
    slow = laws.rest_to_rest(0.0, constraints.path.length, 4.0)
    clock = slow.segment(1.0, 4.0) if moving else slow
    law = fastest_law(constraints, clock, moving=moving, resolution=0.5)
    assert steady_rate(constraints, law, CHECKED_LEVEL) >= 1.0 and law.duration < 0.9 * clock.duration
    with pytest.raises(NoLaw, match="to start from"):
        fastest_law(constraints, laws.rest_to_rest(0.0, constraints.path.length, 0.5).segment(0.1, 0.5), moving=True)


def test_short_detour_between_the_first_samples_is_detected():
    """The path has a detour of 2 mm in a length of 4 m."""
    path = path_through([[0.0, 0.0], [0.0, 2.0], [0.001, 2.001], [0.0, 2.002], [0.0, 4.0]])
    unknown = np.full(2, np.nan)
    constraints = Constraints(path, None, PathLimits(unknown, unknown, np.full(2, 9.0), np.full(2, 20.0), np.full(2, 400.0)))
    law = fastest_law(constraints)
    assert worst(constraints, law) < 1.0


@pytest.mark.parametrize(("velocity", "acceleration", "jerk", "length"), [(1.0, 2.0, 10.0, 3.0), (5.0, 2.0, 20.0, 1.0)])
def test_duration_of_a_single_joint_is_close_to_the_s_curve(velocity, acceleration, jerk, length):
    """The closed form has seven segments, with or without a phase at constant speed."""
    constraints = slide(length, velocity=velocity, acceleration=acceleration, jerk=jerk)
    if velocity**2 / acceleration + velocity * acceleration / jerk <= length:
        best = length / velocity + velocity / acceleration + acceleration / jerk
    else:  # v acceleration and v / acceleration fill the way
        top = 0.5 * (-acceleration**2 / jerk + np.sqrt((acceleration**2 / jerk) ** 2 + 4.0 * acceleration * length))
        best = 2.0 * (top / acceleration + acceleration / jerk)
    law = fastest_law(constraints)
    assert best < law.duration < 1.006 * best
    assert worst(constraints, law) < 1.0
    assert fastest_law(constraints, resolution=0.01).duration < 1.003 * best


def test_duration_without_jerk_and_rate_limits_is_close_to_bang_bang():
    law = fastest_law(slide(2.0, acceleration=3.0))
    best = 2.0 * np.sqrt(2.0 / 3.0)
    assert best < law.duration < 1.01 * best


@pytest.mark.parametrize("name", ARMS)
def test_duration_matches_ipopt_on_another_formulation(name):
    pytest.importorskip("casadi")
    if urdf(name) is None:
        pytest.skip(f"no {name}.urdf here")
    from support.scaling_optimum import optimum

    robot = dynamics(name).robot
    path = path_through(waypoints(robot, 2, 5))
    constraints = Constraints(path, dynamics(name), limits_for(robot, path))
    law = fastest_law(constraints)
    assert worst(constraints, law) < 1.0
    assert law.duration < 1.015 * optimum(constraints, 150)  # IPOPT has no margin and enforces limits at its nodes only


@pytest.mark.parametrize("name", ["seven_r", "stanford"])
def test_duration_without_rate_limits_matches_toppra(name):
    ta = pytest.importorskip("toppra")
    logging.getLogger("toppra").setLevel(logging.ERROR)
    robot = dynamics(name).robot
    path = path_through(waypoints(robot, 1))
    limits = limits_for(robot, path, swing=None)._replace(acceleration=np.full(robot.n, np.nan))

    class Geometry(ta.interpolator.AbstractGeometricPath):
        dof = robot.n
        path_interval = np.array([0.0, path.length])
        waypoints = (path.breaks, path(path.breaks)[0])

        def __call__(self, s, order=0):
            found = path(np.atleast_1d(s))[order]
            return found[0] if np.ndim(s) == 0 else found

    effort, velocity = (np.stack((-limit, limit), axis=1) for limit in (limits.effort, limits.velocity))
    bounds = [ta.constraint.JointTorqueConstraint(robot.inverse_dynamics, effort, np.zeros(robot.n),
                                                  discretization_scheme=ta.constraint.DiscretizationType.Interpolation),
              ta.constraint.JointVelocityConstraint(velocity)]
    grid = np.linspace(0.0, path.length, 601)
    topp = ta.algorithm.TOPPRA(bounds, Geometry(), gridpoints=grid, solver_wrapper="seidel")
    _, sd, _ = topp.compute_parameterization(0.0, 0.0)
    theirs = float(np.sum(2.0 * np.diff(grid) / (sd[1:] + sd[:-1])))
    constraints = Constraints(path, dynamics(name), limits)
    law = fastest_law(constraints)
    assert law.duration == pytest.approx(theirs, rel=0.02)
    assert worst(constraints, law) < 1.0


@pytest.mark.parametrize("swing", [0.03, 1.0])
def test_viscous_friction_increases_the_duration_within_the_limits(swing):
    robot = Robot.from_urdf(urdf("seven_r"))
    path = path_through(waypoints(robot, 3, 4))
    limits = limits_for(robot, path, swing)
    sticky = Robot.from_model(robot.model.with_joint_dynamics({name: JointDynamics(viscous=0.2 * effort) for name, effort in
                                           zip(robot.joint_names, limits.effort)}))
    free, slow = (Constraints(path, PathDynamics(r), limits) for r in (robot, sticky))
    with_friction = fastest_law(slow)
    assert worst(slow, with_friction) < 1.0
    assert with_friction.duration > fastest_law(free).duration


def test_law_from_a_moving_start_continues_its_speed_and_acceleration():
    """The remainder of a slow law is optimized."""
    motion = Motion("seven_r", 1, count=5)
    slow = motion.fastest.slower(0.6)
    tail = slow.segment(0.4 * slow.duration, slow.duration)
    law = fastest_law(motion.here, tail, moving=True)
    np.testing.assert_allclose(law.at(0.0)[:3], tail.at(0.0)[:3], rtol=1e-9, atol=1e-12)
    assert law.end == pytest.approx(motion.path.length) and not np.abs(law([law.duration])[1:3]).max() > 1e-9
    assert 0.55 * tail.duration < law.duration < 0.75 * tail.duration
    assert worst(motion.here, law) < 1.0


@pytest.mark.parametrize(("gap", "same"), [(4e-15, 1e-9), (-4e-15, 1e-9), (1e-11, 0.05)])
def test_law_cut_at_the_end_of_a_rest_is_optimized_despite_rounding(gap, same):
    """Rounding separates the end of the rest from the breaks of the law, or the remaining piece is shorter than a grid
    interval.
    """
    constraints = bent(effort=[9.0, 5.0], effort_rate=[60.0, 60.0])
    slow = laws.rest_to_rest(0.0, constraints.path.length, 20.0)
    tail = slow.segment(3.0, 20.0)
    given_law = tail.then(laws.rest_law(tail.end, 5.0)).segment(0.0, tail.duration + gap)
    law = fastest_law(constraints, given_law, moving=True)
    assert np.isfinite(law.coefficients).all() and np.diff(law.breaks).min() > 1e-4
    assert law.duration == pytest.approx(fastest_law(constraints, tail, moving=True).duration, rel=same)


def test_law_keeps_speed_ceilings_and_schedules():
    motion = Motion("seven_r", 1, speed=0.9, count=5)  # in parts too fast for a spline through the points' times
    clock, constraints = laws.rest_to_rest(0.0, motion.path.length, 1.25 * motion.fastest.duration), motion.here
    assert steady_rate(constraints, clock, 1.0) < 1.0
    t = np.linspace(0.0, 1.0, 4001)
    capped = fastest_law(constraints, clock, ceiling=lambda s: clock(clock.time_at(s))[1])
    s, v, *_ = capped(t[1:-1] * capped.duration)
    assert (v <= clock(clock.time_at(s))[1] * (1.0 + 1e-3) + 1e-5).all()
    timely = fastest_law(constraints, clock, due=clock.time_at)
    now = t[1:-1] * timely.duration
    late = now - clock.time_at(timely(now)[0])
    assert late.min() > -2e-3 and late.max() > 0.0
    assert late[now < 0.1].max() < 3e-3
    free = fastest_law(constraints)
    assert free.duration < timely.duration <= capped.duration
    assert timely.duration >= clock.duration - 1e-3
    for law in (capped, timely):
        assert worst(constraints, law) < 1.0


def test_law_keeps_a_ceiling_that_is_zero_at_both_ends():
    constraints = bent(effort=[9.0, 5.0], effort_rate=[60.0, 60.0])
    length = constraints.path.length
    low = fastest_law(constraints, ceiling=lambda s: 0.8 * np.sqrt(np.maximum(s * (length - s), 0.0)) / length)
    s, v, *_ = low(np.linspace(0.0, low.duration, 3001))
    assert (v <= 0.8 * np.sqrt(np.maximum(s * (length - s), 0.0)) / length * 1.01 + 1e-2).all()
    assert low.duration < 6.0 * fastest_law(constraints).duration


def test_law_stops_at_required_stops():
    motion = Motion("stanford", 2, count=4)
    path = path_through(motion.points, stops=[1, 2])
    constraints = motion.constraints(path)
    law = time_optimal_law(constraints)
    for stop in path.stops:
        at = np.flatnonzero(np.abs(law.coefficients[:, 0] - stop) < 1e-9)
        assert len(at) and np.abs(law.coefficients[at[0], 1:3]).max() < 1e-9
    assert worst(constraints, law) < 1.0


def test_error_names_joint_and_position_where_gravity_exceeds_a_limit():
    motion = Motion("seven_r", 0, count=4)
    weak = motion.limits._replace(effort=motion.limits.effort * [1, 0.5, 1, 1, 1, 1, 1])
    with pytest.raises(InputError, match=r"gravity alone takes .* of joint2 at s = .* no speed is slow enough"):
        fastest_law(motion.constraints(motion.path, weak))


def test_error_names_the_drive_limit_that_gravity_exceeds():
    """A current of 4 A at 1 N m/A does not hold 5 N m sin q, at q = 2.5 to -2.5."""
    held = [DriveLimit("current", "pendulum", (0,), -4.0, 4.0, effort=1.0)]
    constraints = Constraints(
        path_through([[2.5], [-2.5]]),
        lambda *p: torque_terms(lambda q, qd, qdd, qddd: (qdd + 5.0 * np.sin(q), qddd + 5.0 * np.cos(q) * qd), *p),
        PathLimits(**{name: np.array([20.0 if name == "acceleration" else np.nan]) for name in PathLimits._fields}),
        drives=DriveConstraints(held, limit_factors(held, 1)._asdict(), np.zeros(1)))
    with pytest.raises(InputError, match=r"gravity alone takes 1\.25 times the current of pendulum at s = .* on the path"):
        fastest_law(constraints)


def test_no_law_is_returned_where_none_on_the_way_back_is_inside_the_limits(monkeypatch):
    """A law in motion cannot be slowed: without shares of the way back to the initial one, there is none."""
    monkeypatch.setattr(time_optimal, "MAX_TIGHTENING_ROUNDS", 0)
    monkeypatch.setattr(time_optimal, "WITHDRAWAL_SHARES", ())
    constraints = bent(effort=[9.0, 5.0], effort_rate=[60.0, 60.0])
    moving = laws.rest_to_rest(0.0, constraints.path.length, 4.0).segment(1.0, 4.0)
    with pytest.raises(NoLaw, match="the initial law in motion is not inside the limits"):
        fastest_law(constraints, moving, moving=True, resolution=0.5)


def test_law_whose_pieces_cannot_be_halved_enough_is_rejected(monkeypatch):
    monkeypatch.setattr(time_optimal, "MAX_PIECE_HALVINGS", 0)
    with pytest.raises(NoLaw, match="would move back on the path near rest"):
        fastest_law(slide(1.0, velocity=1.0, acceleration=2.0, jerk=10.0))


def test_velocity_limits_alone_are_rejected():
    with pytest.raises(InputError, match="only velocity limits are known"):
        fastest_law(slide(1.0, velocity=1.0))


def test_progress_reports_grid_and_duration():
    said = []
    path = path_through([[0.0, 0.0], [1.0, 0.5], [2.0, -0.5]])
    limits = PathLimits(np.array([9.0, 5.0]), np.array([60.0, 60.0]), *np.full((3, 2), np.nan))
    constraints = Constraints(path, lambda *p: torque_terms(toy, *p), limits)
    law = fastest_law(constraints, progress=lambda what, seconds: said.append((what, seconds)))
    assert said[0][0] == "grid of 48 intervals" and said[-1][1] == pytest.approx(law.duration, rel=0.01)
    assert steady_rate(constraints, law, CHECKED_LEVEL) >= 1.0


def test_unbounded_acceleration_of_a_massless_joint_is_rejected():
    """Effort limits are known, but the effort of this joint is always zero; the error names it and the part of the path."""
    link = ("<link name='{}'><inertial><mass value='{}'/><inertia ixx='{}' ixy='0' ixz='0' iyy='{}' iyz='0' izz='{}'/>"
            "</inertial></link>")
    joint = ("<joint name='{}' type='revolute'><parent link='{}'/><child link='{}'/><axis xyz='0 0 1'/>"
             "<limit lower='-3' upper='3' effort='10' velocity='2'/></joint>")
    text = "".join((link.format("base", 1, 1, 1, 1), link.format("arm", 1, 1, 1, 1), link.format("finger", 0, 0, 0, 0),
                    joint.format("shoulder", "base", "arm"), joint.format("grip", "arm", "finger")))
    arm = Robot.from_urdf(f"<robot name='r'>{text}</robot>", backend="python")
    path = path_through([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]], stops=[1])
    for effort_rate in (np.full(2, 100.0), np.full(2, np.nan)):
        limits = PathLimits(arm.limits.effort, effort_rate, arm.limits.velocity, np.full(2, np.nan), np.full(2, np.nan))
        with pytest.raises(InputError, match=r"bounds the acceleration from s = 1 to 2 of 2 .*what moves there \(grip\)"):
            time_optimal_law(Constraints(path, PathDynamics(arm), limits, arm.joint_names))
        known = limits._replace(acceleration=np.array([np.nan, 5.0]))
        assert time_optimal_law(Constraints(path, PathDynamics(arm), known, arm.joint_names)).duration > 0.8


def test_spline_minima_between_knots_match_dense_samples():
    rng = np.random.default_rng(3)
    for _ in range(50):
        spline = CubicSpline(np.cumsum(rng.uniform(0.1, 1.0, 9)))
        c = rng.normal(size=11) + [1.0, 0.0, 50.0][rng.integers(3)]
        x = np.linspace(0.0, 1.0, 2001)
        y = np.einsum("kpda,ka->kpd", spline.basis_at_shares(x), np.lib.stride_tricks.sliding_window_view(c, 4))[..., 0]
        inside = (y.argmin(axis=1) > 0) & (y.argmin(axis=1) < 2000)
        np.testing.assert_allclose(spline.interior_minima(c, np.flatnonzero(inside)), y.min(axis=1)[inside], atol=1e-4)


def test_law_of_a_recorded_path_with_sharp_turns_is_short():
    """The limits change within a fraction of a millisecond where a path nearly reverses."""
    arm = dynamics("rr").robot
    u = np.linspace(0.0, 1.0, 300)[:, None] ** 1.3
    waves = np.random.default_rng(9).uniform(-1.0, 1.0, (4, 2))
    recorded = 0.5 * sum(wave * np.sin((k + 1) * np.pi * u + k) for k, wave in enumerate(waves))
    limits = PathLimits(arm.limits.effort, 15.0 * arm.limits.effort, arm.limits.velocity, *np.full((2, 2), np.nan))
    constraints = Constraints(fit_route(recorded).path, dynamics("rr"), limits)
    law = time_optimal_law(constraints)
    assert law.duration < 2.4  # regression: 1061 s, almost at rest between grid points
    assert law([*np.linspace(0.0, law.duration, 5001)])[1].min() > -1e-9
    assert worst(constraints, law) < 1.0


def test_law_of_a_few_milliseconds_reaches_and_keeps_its_limits():
    arm = dynamics("pr").robot
    points = 1e-5 * np.random.default_rng(11).uniform(-1.0, 1.0, (4, 2))
    limits = PathLimits(arm.limits.effort, 15.0 * arm.limits.effort, *np.full((3, 2), np.nan))
    constraints = Constraints(path_through(points), dynamics("pr"), limits)
    law = time_optimal_law(constraints)
    assert law.duration < 0.04 and 0.99 < worst(constraints, law) < 1.0
