"""Infeasible problems are reported with the reason, trivial ones are solved, and long work reports its progress."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

from rnea_ros import InputError, RneaError, Robot, plan_motion
from rnea_ros.errors import MissingPackage
from rnea_ros.planning import (
    Cost,
    EndConditions,
    EndState,
    PlanningError,
    PlanningProblem,
    PlanSettings,
    interior_point,
    plan,
    planner,
)
from rnea_ros.planning.problem import coupled_ends, join_conditions, motion_quantity
from support.planning_cases import RR_GOAL, RR_START, pendulum_and_slide, robot

INF = np.inf
COARSE = PlanSettings(refinements=0)


def rr(start=RR_START, goal=RR_GOAL, **given):
    return plan_motion(robot("rr"), start, goal, **{"settings": COARSE, **given})


def limits(**changed):
    arm = robot("rr")
    return replace(arm.limits, **{name: np.broadcast_to(np.asarray(value, dtype=float), 2) for name, value in changed.items()})


@pytest.mark.parametrize(("given", "message"), [
    ({"start": (0.0, -2.0, 1.0)}, r"start q has shape \(3,\); \(2,\).* joint1, joint2"),
    ({"start": np.zeros((4, 2))}, r"start has shape \(4, 2\); .* rows q, qd or q, qd, qdd"),
    ({"goal": (np.nan, 0.0)}, r"goal q\[0\] is nan .joint 'joint1'.; every value must be a finite number"),
    ({"goal": "there"}, "goal is not an array of numbers: 'there'"),
    ({"start": np.zeros((2, 2, 2))}, r"start has shape \(2, 2, 2\)"),
    ({"time": -1.0}, "weights are -1 for time .* none negative"),
    ({"time": np.nan}, "time is .*finite"),
    ({"effort": (1.0, 2.0, 3.0)}, "effort has 3 weights; one, or one for each of joint1, joint2"),
    ({"effort": -1.0}, "weights .* none negative"),
    ({"time": 0.0, "effort": 0.0, "duration": 1.0}, "one above zero"),
    ({"time": 0.0, "effort": 1.0}, "time has no weight: a motion would take its effort down by taking forever"),
    ({"duration": -1.0}, "duration is -1 to -1; 0 < shortest <= longest"),
    ({"duration": (1.0, 2.0, 3.0)}, "duration is .* one number, or shortest and longest"),
    ({"duration": np.inf}, "duration is inf to inf"),
    ({"limits": limits(effort=np.nan, velocity=np.nan)}, "nothing limits how fast the motion can be"),
    ({"limits": limits(effort=0.0)}, "limits.effort of joint1 is 0; a number above zero"),
    ({"limits": limits(lower=1.0, upper=-1.0)}, "position limits of joint1 are 1 to -1; the lower one must not be above"),
    ({"limits": replace(limits(), effort=np.ones(3))}, r"limits.effort has shape \(3,\); \(2,\) is needed"),
    ({"joint_force": {"elbow": 10.0}}, r"joint_force names 'elbow'; the joints .* joint1, joint2"),
    ({"joint_force": {"joint1": -10.0}}, "joint_force is .* forces above zero are needed"),
])
def test_invalid_planning_arguments_are_rejected(given, message):
    with pytest.raises(InputError, match=message):
        rr(**given)


@pytest.mark.parametrize(("changed", "message"), [
    ({"degree": 2}, "degree is 2; 3 to 7"), ({"spans": 1}, "spans is 1; 3 to 1000"), ({"tolerance": 0.0}, "tolerance is 0"),
    ({"instants": (0.0, 0.5)}, "instants are .* rise from 0 to 1"), ({"instants": (0.0, 0.6, 0.5, 1.0)}, "rise from 0 to 1"),
    ({"best_of": 0}, "best_of is 0"), ({"gain": np.nan}, "gain is nan"),
])
def test_invalid_plan_settings_are_rejected(changed, message):
    with pytest.raises(InputError, match=message):
        PlanSettings(**changed)


@pytest.mark.parametrize(("given", "message"), [
    ({"start": (4.0, 0.0)}, "start: position of joint1 is 4 there, outside its limits -3.1416 to 3.1416; no motion can"),
    ({"goal": ((0.0, 0.0), (0.0, 25.0))}, "goal: velocity of joint2 is 25 there, outside its limits -20 to 20"),
    ({"goal": ((0.0, 0.0), (0.0, 0.0), (0.0, 500.0))}, "goal: torque of joint1 is .* there, outside its limits -10 to 10"),
])
def test_states_outside_the_limits_are_rejected(given, message):
    with pytest.raises(PlanningError, match=message):
        rr(**given)


def test_pose_that_exceeds_torque_limits_at_rest_is_rejected():
    hanging = Robot.from_urdf("urdf/rr.urdf", gravity=(0.0, -9.81, 0.0))
    weak = replace(hanging.limits, effort=np.array([2.0, 10.0]))
    with pytest.raises(PlanningError, match=r"goal: torque of joint1 is 3\.\d+ held still, outside its limits -2 to 2"):
        plan_motion(hanging, (-np.pi / 2, 0.0), (0.0, 0.0), limits=weak)


def test_infeasible_duration_error_states_violation_and_remedies():
    """The given duration is a quarter of the shortest one."""
    with pytest.raises(PlanningError, match=r"no motion found, starting from 2 guesses: .*; the nearest one (misses|has) .* "
                                            r"after 0\.[01]\d* s.*Wider limits, a longer duration or more guesses"):
        rr(duration=0.1, settings=PlanSettings(refinements=0, tries=2, iterations=100))


def test_failed_plan_names_joints_without_limits():
    """The solver moves such a joint at any speed, so that its reaction torque drives the others."""
    unknown = limits(velocity=(1.5, np.nan), effort=(3.5, np.nan))
    with pytest.raises(PlanningError, match=r"unknown for joint2: give one for each\. Wider limits"):
        rr(duration=0.1, limits=unknown, goal=(0.1, 0.5), settings=PlanSettings(refinements=0, tries=1, iterations=20))


def test_planning_errors_derive_from_the_package_error():
    assert issubclass(PlanningError, RneaError) and not issubclass(PlanningError, InputError)


@pytest.fixture
def no_casadi(monkeypatch):
    monkeypatch.setitem(sys.modules, "casadi", None)  # its import raises ImportError


def test_plan_between_known_poses_needs_no_casadi(no_casadi, monkeypatch):
    without = rr()
    monkeypatch.undo()
    assert without.duration == rr().duration


def test_failed_plan_without_casadi_names_it_as_remedy(no_casadi):
    with pytest.raises(PlanningError, match=r"no motion found.*CasADi with IPOPT for second attempts \(pip install"):
        rr(settings=replace(COARSE, iterations=1))


def test_problem_for_ipopt_names_the_missing_casadi(no_casadi):
    with pytest.raises(MissingPackage, match=r"needs CasADi.*pip install '\.\[planning\]'"):
        rr(settings=replace(COARSE, solver={"acceptable_tol": 1e-4}))


def test_missing_scipy_error_names_the_package(monkeypatch):
    monkeypatch.setattr(planner, "find_spec", lambda name: None)
    with pytest.raises(MissingPackage, match=r"planning needs SciPy.*pip install '\.\[planning\]'"):
        rr()


def test_equal_start_and_goal_give_a_trivial_plan():
    plan_ = rr(goal=RR_START)
    assert plan_.duration == 0.0 and plan_.iterations == 0
    assert plan_.notes[-1] == "start and goal are the same state of rest: nothing moves"
    q, qd, qdd, qddd = plan_(np.zeros(1))
    np.testing.assert_allclose(q, [RR_START])
    assert not np.concatenate((qd, qdd, qddd)).any()
    assert rr(goal=RR_START, duration=0.5).duration == pytest.approx(0.5)


def test_unknown_limits_are_reported_and_not_enforced():
    some = limits(velocity=(np.nan, 8.0), lower=np.nan, upper=np.nan)
    found = rr(limits=some)
    assert found.notes[0] == ("no limits known, hence not enforced: position; velocity of joint1; acceleration; jerk; "
                              "torque rate")
    _, qd, _, _ = found(np.linspace(0.0, found.duration, 5001))
    assert 7.99 < np.abs(qd[:, 1]).max() <= 8.0 * (1.0 + 1e-6)
    none_at_all = rr(limits=limits(velocity=INF, acceleration=INF, jerk=INF, effort_rate=INF))
    assert none_at_all.notes == ()  # infinite is known: there is none


def test_velocity_acceleration_and_jerk_limits_give_an_s_curve():
    """The duration of its seven segments has a closed form; there are no torque limits."""
    free = np.full(1, np.nan)
    rest = [EndState(np.array([x]), np.zeros(1), np.zeros(1)) for x in (0.0, 1.0)]
    bounds = [motion_quantity(order, ["slide"], np.array([-limit]), np.array([limit]))
              for order, limit in ((1, 1.0), (2, 4.0), (3, 40.0))]
    best = 1.0 / 1.0 + 1.0 / 4.0 + 4.0 / 40.0
    found = plan(PlanningProblem(*rest, [motion_quantity(0, ["slide"], free, free), *bounds]))
    assert best * (1.0 - 1e-6) < found.duration < 1.005 * best
    assert max(found.excess.values()) <= 1e-6


def test_times_outside_a_plan_are_rejected():
    found = rr()
    for t in (np.array([-0.1]), np.array([1.1 * found.duration]), np.array([np.nan]), -0.1):
        with pytest.raises(InputError, match=r"times .samples,., from 0 to"):
            found(t)


def test_progress_callback_receives_stages_and_iterations_in_order():
    said = []
    found = rr(settings=PlanSettings(refinements=1), report=said.append, time_tolerance=0.0)
    stages = list(dict.fromkeys(now.stage for now in said))
    assert stages[:2] == ["guess 1", "refinement 1"] and all(stage.startswith("limits between nodes") for stage in stages[2:])
    for stage in stages:
        assert [now.iteration for now in said if now.stage == stage] == list(range(sum(now.stage == stage for now in said)))
    assert len(said) >= found.iterations
    assert said[-1].duration == pytest.approx(found.duration, rel=1e-6) and said[-1].violation < 1e-6
    assert said[-1].control_points == found.control_points


def without(monkeypatch, which):
    """Let the solver fail in smoothing searches whose program satisfies `which`."""
    solved = planner.solve_program

    def exhausted(program, x, near, *given, **options):
        found = solved(program, x, near, *given, **options)
        smoothing = near is planner.SMOOTHING and which(program)
        return found._replace(converged=False, status=interior_point.TOO_MANY) if smoothing else found

    monkeypatch.setattr(planner, "solve_program", exhausted)


def test_failed_smoothing_returns_the_fastest_plan_with_a_note(monkeypatch):
    fastest = rr(time_tolerance=0.0)
    without(monkeypatch, lambda program: True)
    found = rr()
    assert np.array_equal(found.curve.points, fastest.curve.points) and found.duration == fastest.duration
    assert found.notes[:-1] == fastest.notes and found.notes[-1] == (
        "the plan was not smoothed; it is the fastest motion found: the solver used up its iterations")


def test_interrupted_smoothing_keeps_limits_and_reduces_jerk(monkeypatch):
    def jerk(found):
        t = np.linspace(0.0, found.duration, 4001)
        return np.trapezoid(found(t)[3] ** 2, t, axis=0).sum()

    finer = PlanSettings(refinements=2)
    fastest, smoothest = rr(settings=finer, time_tolerance=0.0), rr(settings=finer)
    coarse = finer.spans + 1
    without(monkeypatch, lambda program: np.ptp(program.problem.duration) == 0.0 and len(program.breaks) > coarse)
    found = rr(settings=finer)
    assert found.notes[-1] == "smoothing stopped early, a smoother plan may exist: the solver used up its iterations"
    assert fastest.duration < found.duration < 1.005 * fastest.duration and max(found.excess.values()) <= 1e-6
    assert found.objective == pytest.approx(found.duration, rel=1e-9)
    assert 0.99 * jerk(smoothest) < jerk(found) < 0.9 * jerk(fastest)
    np.testing.assert_allclose(found(np.array([0.0, found.duration]))[0], [RR_START, RR_GOAL], atol=1e-8)


@pytest.mark.parametrize("share", [-0.1, 1.5, np.nan])
def test_invalid_time_tolerance_is_rejected(share):
    with pytest.raises(InputError, match="time_tolerance"):
        rr(time_tolerance=share)


def test_exceptions_of_the_progress_callback_propagate():
    def stop(progress):
        raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        rr(report=stop)


def test_best_of_several_guesses_is_returned():
    one, many = rr(settings=PlanSettings(spans=5, refinements=0)), rr(settings=PlanSettings(spans=5, refinements=0, best_of=3))
    assert many.duration <= one.duration * (1.0 + 1e-7) and many.iterations > one.iterations


def test_coupled_end_states_mirror_the_beginning_of_a_motion():
    """Start and goal are free; the end is the negative beginning. Limits have windows, and one joint is frozen."""
    rate = pendulum_and_slide(-INF, INF)
    effort = replace(rate, lower=np.full(2, np.nan))
    names = ("swing", "slide")
    middle = replace(motion_quantity(0, names, np.array([0.3, -INF]), np.full(2, INF)), windows=[(0.5, 0.5)])
    early = replace(motion_quantity(0, names, np.array([-INF, -0.2]), np.array([INF, 0.2])), windows=[(0.0, 0.25)])
    mirror = join_conditions(*(coupled_ends(order, -np.eye(2), np.zeros(2)) for order in (0, 1)))
    problem = PlanningProblem(EndState.free(2), EndState.free(2), [effort, middle, early],
                              Cost(0.0, np.ones(2), effort), (1.0, 1.0),
                      mirror)
    for settings in (PlanSettings(refinements=1), PlanSettings(refinements=1, gauss_newton=True),
                     PlanSettings(spans=6, instants=tuple(np.linspace(0.0, 1.0, 13)))):
        found = plan(problem, settings)
        q, qd, _, _ = found(np.array([0.0, 0.25, 0.5, 1.0]))
        np.testing.assert_allclose(q[3], -q[0], atol=1e-7)
        np.testing.assert_allclose(qd[3], -qd[0], atol=1e-7)
        assert q[2, 0] >= 0.3 - 1e-6 and np.abs(q[:2, 1]).max() <= 0.2 + 1e-6
    swing = np.zeros((1, 4, 2))
    swing[0, 0, 0] = 1.0
    tie = EndConditions(swing, swing, np.zeros(1))
    frozen = replace(problem, coupling=tie, box=(np.array([-2.0, 0.1]), np.array([2.0, 0.1])))
    q = plan(frozen, COARSE)(np.linspace(0.0, 1.0, 11))[0]
    np.testing.assert_allclose(q[:, 1], 0.1, atol=1e-8)
    assert np.ptp(q[:, 0]) > 0.1
