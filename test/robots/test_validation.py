"""Validation of arguments: every invalid argument is rejected with the value given and the values allowed."""

from __future__ import annotations

import numpy as np
import pytest

from rnea_ros import InputError, JointDynamics, Loads, RneaError, Robot
from support.robot_kinds import case, each_kind, motion_of
from support.robots import arm

TEXT = arm({"axis": (0, 0, 1)}, {"axis": (0, 1, 0), "xyz": (0.3, 0, 0.1)},
           {"kind": "fixed", "xyz": (0.1, 0, 0), "rpy": (0.5, 0, 0)}, {"kind": "prismatic", "axis": (1, 0, 0)})


@pytest.fixture(scope="module")
def robot():
    return Robot.from_urdf(TEXT)


GOOD = [0.1, 0.2, 0.3]
WRONG = {
    "too short": ([0.1, 0.2], r"qd has shape \(2,\); \(3,\) or \(samples, 3\) is needed, one column for each of j1, j2, j4"),
    "too long": ([0.1] * 4, r"qd has shape \(4,\)"),
    "a number": (0.1, r"qd has shape \(\)"),
    "nothing": ([], r"qd has shape \(0,\)"),
    "none": (None, r"qd "),
    "transposed": (np.zeros((3, 5)), r"qd has shape \(3, 5\)"),
    "three dimensions": (np.zeros((2, 2, 3)), r"qd has shape \(2, 2, 3\)"),
    "NaN": ([0.1, np.nan, 0.3], r"qd\[1\] is nan \(joint 'j2'\); every value must be a finite number"),
    "infinite": (np.array([GOOD, [0.1, 0.2, -np.inf]]), r"qd\[1, 2\] is -inf \(joint 'j4'\)"),
    "words": (["a", "b", "c"], r"qd is not an array of numbers: \['a'"),
    "ragged": ([[0.1, 0.2, 0.3], [0.1]], r"qd is not an array of numbers"),
    "a mapping": ({"j1": 0.1}, r"qd is not an array of numbers"),
    "complex": ([0.1, 0.2j, 0.3], r"qd is not an array of numbers"),
    "too large": ([0.1, 10**400, 0.3], r"qd is \[0.1, 10{60,}.*; no number may be larger than 1.8e308"),
    "digits without end": ([10**5000, 0.2, 0.3], r"qd is a very large number; no number may be larger"),
}


@pytest.mark.parametrize("case", WRONG)
def test_arrays_of_wrong_shape_or_content_are_rejected(robot, case):
    value, expected = WRONG[case]
    with pytest.raises(InputError, match=expected):
        robot.torque_and_rate(GOOD, value, GOOD, GOOD)


@pytest.mark.parametrize("case", WRONG)
def test_every_function_rejects_invalid_arrays(robot, case):
    value = WRONG[case][0]
    calls = [lambda: robot.torque_and_rate(value, GOOD, GOOD, GOOD), lambda: robot.torque_and_rate(GOOD, GOOD, GOOD, value),
             lambda: robot.dynamics(GOOD, GOOD, value, GOOD), lambda: robot.inverse_dynamics(GOOD, GOOD, value),
             lambda: robot.bias(value, GOOD), lambda: robot.bias(GOOD, value), lambda: robot.gravity(value),
             lambda: robot.mass_matrix(value), lambda: robot.forward_dynamics(value, GOOD, GOOD),
             lambda: robot.forward_dynamics(GOOD, value, GOOD), lambda: robot.forward_dynamics(GOOD, GOOD, value),
             lambda: robot.recursion(GOOD, value, GOOD, GOOD)]
    for call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert isinstance(caught.value, ValueError) and isinstance(caught.value, RneaError)
        assert len(str(caught.value)) < 400


def test_errors_name_the_invalid_argument(robot):
    for k, name in enumerate(("q", "qd", "qdd", "qddd")):
        state = [GOOD] * 4
        state[k] = [1.0]
        with pytest.raises(InputError, match=rf"^{name} has shape"):
            robot.torque_and_rate(*state)
    with pytest.raises(InputError, match=r"^tau has shape"):
        robot.forward_dynamics(GOOD, GOOD, [1.0])


def test_unequal_numbers_of_samples_are_rejected(robot):
    q, qd, qdd, qddd = np.random.default_rng(0).normal(size=(4, 5, 3))
    with pytest.raises(InputError, match=r"different numbers of samples: \[4, 5\]"):
        robot.torque_and_rate(q, qd[:4], qdd, qddd)
    with pytest.raises(InputError, match=r"different numbers of samples: \[2, 5\]"):
        robot.torque_and_rate(q, qd, qdd, qddd, loads=Loads({"l1": np.zeros((2, 6))}))
    with pytest.raises(InputError, match="different numbers of samples"):
        robot.inverse_dynamics(GOOD, GOOD, GOOD, loads=Loads({"l1": np.zeros((2, 6)), "l4": np.zeros((3, 6))}))
    with pytest.raises(InputError, match="different numbers of samples"):  # two links, one body
        robot.inverse_dynamics(GOOD, GOOD, GOOD, loads=Loads({"l2": np.zeros((2, 6)), "l3": np.zeros((3, 6))}))
    with pytest.raises(InputError, match="one sample"):
        robot.recursion(q, qd, qdd, qddd)


@pytest.mark.parametrize(("wrench", "expected"), [
    ({"unknown": np.zeros(6)}, r"link 'unknown' is not in robot 'arm'; its links: base, l1, l2, l3, l4"),
    ({"l1": np.zeros(3)}, r"wrench on link 'l1' is .*; \(6,\) or \(samples, 6\) finite numbers are needed, force first"),
    ({"l1": np.zeros((6, 1))}, r"wrench on link 'l1'"), ({"l1": np.zeros((1, 1, 6))}, r"wrench on link 'l1'"),
    ({"l1": [np.nan] * 6}, r"wrench on link 'l1'"), ({"l1": "up"}, r"wrench on link 'l1'"),
    ({"l1": None}, r"wrench on link 'l1'"), ({"l1": 1.0}, r"wrench on link 'l1'"),
    ({"l1": [10**400] + [0.0] * 5}, r"wrench on link 'l1' is \[10{60,}"), ({"l1": [10**5000] * 6}, r"wrench on link 'l1'"),
    ({"l1": [[1.0], [1.0, 2.0]]}, r"wrench on link 'l1'")])
def test_wrenches_of_wrong_links_or_shapes_are_rejected(robot, wrench, expected):
    for call in (lambda: robot.torque_and_rate(GOOD, GOOD, GOOD, GOOD, loads=Loads(wrench)),
                 lambda: robot.inverse_dynamics(GOOD, GOOD, GOOD, loads=Loads(wrench)),
                 lambda: robot.bias(GOOD, GOOD, loads=Loads(wrench)),
                 lambda: robot.forward_dynamics(GOOD, GOOD, GOOD, loads=Loads(wrench)),
                 lambda: robot.torque_and_rate(*[GOOD] * 4, loads=Loads(dict.fromkeys(wrench, np.zeros(6)), wrench))):
        with pytest.raises(InputError, match=expected):
            call()


def test_wrench_rate_without_wrench_is_rejected(robot):
    with pytest.raises(InputError, match=r"wrench rates without a wrench on links \['l2'\]"):
        robot.torque_and_rate(GOOD, GOOD, GOOD, GOOD, loads=Loads({"l1": np.zeros(6)}, {"l2": np.zeros(6)}))


def test_unknown_backends_and_wrong_gravity_are_rejected():
    with pytest.raises(InputError, match=r"backend is 'fortran'; allowed are llvm, c, python, reference"):
        Robot.from_urdf(TEXT, backend="fortran")
    with pytest.raises(InputError, match=r"base is 'flying'; allowed are fixed, floating"):
        Robot.from_urdf(TEXT, base="flying")
    for gravity in ((0, 0), (0, 0, np.nan), 9.81, "down", None, (0, 0, [1]), (0, 0, 10**400)):
        with pytest.raises(InputError, match=r"gravity is .*(3 finite numbers are needed|not an array of numbers|no number)"):
            Robot.from_urdf(TEXT, gravity=gravity)


@pytest.mark.parametrize(("wrong", "expected"), [
    ({"link": "unknown"}, r"link 'unknown' is not in robot"), ({"mass": -1.0}, "not negative"), ({"mass": np.nan}, "finite"),
    ({"mass": "heavy"}, "payload"), ({"mass": None}, "payload"), ({"com": (0, 0)}, "3 numbers"), ({"com": "here"}, "payload"),
    ({"com": (0, np.inf, 0)}, "finite"), ({"inertia": np.eye(2)}, "3 x 3"), ({"inertia": [1, 2, 3]}, "3 x 3"),
    ({"inertia": np.arange(9).reshape(3, 3)}, "symmetric"), ({"inertia": -np.eye(3)}, "not negative"),
    ({"inertia": np.full((3, 3), np.nan)}, "finite"), ({"mass": 10**400}, "payload mass is 10{60,}"),
    ({"com": (0, 10**400, 0)}, "payload com is"), ({"mass": 10**5000}, "payload mass is a very large number"),
    ({"mass": 1e200, "com": (1e200, 0, 0)}, r"mass 1e\+200 kg at \[1e\+200, 0.0, 0.0\] m has moments larger than any number")])
def test_impossible_payloads_are_rejected(robot, wrong, expected):
    with pytest.raises(InputError, match=expected):
        robot.with_payload(**({"link": "l1", "mass": 1.0} | wrong))


@pytest.mark.parametrize("wrong", [{"rotor_inertia": -1.0}, {"coulomb": -0.1}, {"viscous": -1}, {"smoothing": 0.0},
                                   {"smoothing": -1.0}, {"offset": np.nan}, {"gear_ratio": np.inf}, {"gear_ratio": 10**400},
                                   {"gear_ratio": 1e300}, {"gear_ratio": 1e150, "rotor_inertia": 1e20}, {"offset": 10**5000}])
def test_negative_joint_dynamics_are_rejected(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        JointDynamics(**wrong)


ODD = (np.nan, np.inf, 1e308, -1e200)


def calls(case, motion):
    """Return every function that takes a motion, with its arguments: q and the derivatives or torques needed."""
    robot, state = case.robot, {**case.state, **case.motors(*motion)}
    tau = np.ones(robot.n)
    return {"torque_and_rate": (motion, case.state), "dynamics": (motion, case.state),
            "inverse_dynamics": (motion[:-1], case.state),
            "gravity": (motion[:1], case.state), "mass_matrix": (motion[:1], case.state), "bias": (motion[:2], state),
            "energy": (motion[:2], state), "center_of_mass": (motion[:2], case.state),
            "forward_dynamics": ([*motion[:2], tau], state), "sensitivities": (motion[:3], case.state)}


def supported(case, motion):
    """Return the calls that this kind of robot supports."""
    for name, (arguments, state) in calls(case, motion).items():
        try:
            getattr(case.robot, name)(*arguments, **state)
        except (RneaError, TypeError):
            continue
        yield getattr(case.robot, name), arguments, state


def arrays_in(answer):
    return [answer] if isinstance(answer, np.ndarray | float) else [array for part in answer for array in arrays_in(part)]


@each_kind
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_every_kind_returns_finite_results_or_raises_input_errors(kind):
    given = case(kind)
    motion, answered = motion_of(given), 0
    for function, arguments, state in supported(given, motion):
        answered += 1
        for k in range(len(arguments)):
            odd = [np.full(given.robot.n, value) for value in ODD]
            for value in [*odd, [[0.0] * given.robot.n, [0.0]], np.zeros((1, 1, given.robot.n)), "abc", None]:
                try:
                    answer = function(*arguments[:k], value, *arguments[k + 1:], **state)
                except InputError:
                    continue
                assert all(np.isfinite(array).all() for array in arrays_in(answer)), (function.__name__, k, value)
    assert answered >= 8


@each_kind
def test_every_kind_returns_one_row_per_sample(kind):
    given = case(kind)
    for function, arguments, state in supported(given, motion_of(given)):
        for count in (0, 2):
            for many in (range(len(arguments)), [0]):  # all arguments have samples, or only the first
                given_samples = [np.tile(value, (count, 1)) if k in many else value for k, value in enumerate(arguments)]
                found = function(*given_samples, **state)
                assert {len(array) for array in arrays_in(found)} == {count}, function.__name__
