"""Identification from simulated motion: base parameters and their uncertainty, physical consistency, exciting motions."""

from __future__ import annotations

import runpy
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rnea_ros import InputError, Robot
from rnea_ros.algorithms.inertial_parameters import TERMS, base_parameters, parameters, values, with_values
from rnea_ros.identification.excitation import FourierMotion, excite
from rnea_ros.identification.identification import LinearEquations, Measurements, identify
from rnea_ros.identification.physical_consistency import nearest_physical, pseudo_inertia
from support.golden_models import from_table, planar_rr
from support.oracles import difference, impossible_bodies
from support.robots import arm

ROOT = Path(__file__).resolve().parents[2]
NOISE = np.array([0.5, 1.0, 0.3, 0.3, 0.1, 0.05])
SIX = [{"axis": axis, "xyz": xyz} for axis, xyz in
       (((0, 0, 1), (0, 0, 0.3)), ((0, 1, 0), (0, 0.1, 0.1)), ((0, 1, 0), (0, 0, 0.4)),
        ((1, 0, 0), (0.1, 0, 0)), ((0, 1, 0), (0.3, 0, 0)), ((1, 0, 0), (0.1, 0, 0)))]


@cache
def robots():
    """Return the nominal robot and the true one, with other masses, friction and rotors."""
    model = Robot.from_urdf(arm(*SIX)).model
    rng = np.random.default_rng(1)
    listed = parameters(model, TERMS)
    prior = values(model, listed)
    new = prior.copy()
    for k, parameter in enumerate(listed):
        if parameter.kind == "m":  # scaling all parameters keeps a body physical
            new[k:k + 10] *= rng.uniform(0.7, 1.4)
        if parameter.kind in TERMS:
            new[k] = rng.uniform(0.1, 0.8)
    return Robot.from_model(model), Robot.from_model(with_values(model, listed, new))


@cache
def recorded(seconds=10.0, rate=200.0, seed=0):
    """Return t, a Fourier motion with exact derivatives, and exact torques and rates of the true robot."""
    rng = np.random.default_rng(seed)
    motion = FourierMotion(10.0, np.zeros(6), *rng.normal(size=(2, 5, 6)))
    t = np.arange(0.0, seconds, 1.0 / rate)
    blocks = motion(t)
    return t, *blocks, *robots()[1].torque_and_rate(*blocks)


def noisy(seed, size=NOISE):
    t, q, qd, qdd, qddd, tau, _ = recorded()
    return Measurements(t, q, tau + np.random.default_rng(seed).normal(size=tau.shape) * size, qd, qdd, qddd)


@cache
def from_noise(seed):
    return identify(robots()[0], noisy(seed))


def truth(found):
    return found.base.values_in(robots()[1].model)


# ---------------------------------------------------------------------- base parameters

def test_exact_data_give_exact_parameters():
    t, q, qd, qdd, _, tau, _ = recorded()
    found = identify(robots()[0], Measurements(t, q, tau, qd, qdd))
    assert np.abs(found.beta - truth(found)).max() < 1e-11
    assert np.abs(found.prior - truth(found)).max() > 0.1, "there was something to find"
    assert max(found.solution.misfit.values()) < 1e-12
    assert found.solution.equations == 6 * len(t) and 5.0 < found.solution.condition_number < 200.0


def test_missing_derivatives_are_estimated():
    t, q, qd, _, _, tau, _ = (block[:800] for block in recorded())
    for recording in (Measurements(t, q, tau), Measurements(t, q, tau, qd)):
        found = identify(robots()[0], recording)
        assert np.abs(found.beta - truth(found)).max() < 1e-4
        assert found.solution.equations == 6 * (len(t) - 30), "ends, where estimates are poor, are left out"
        assert found.estimated == (("qd", "qdd") if recording.qd is None else ("qdd",)) and found.how.seconds == 0.15
    with pytest.raises(InputError, match=r"too short: .* polynomials over windows of 0.145 s \(30 samples\)"):
        identify(robots()[0], Measurements(t[:30], q[:30], tau[:30]))


def test_realistic_log_gives_physical_parameters():
    """Encoder steps are 2^-17 turn at 500 Hz, torques are noisy; a window of nine samples gives impossible parameters."""
    t, q, _, _, _, tau, _ = recorded(rate=500.0)
    step = 2.0 * np.pi / 2**17
    tau = tau + np.random.default_rng(2).normal(size=tau.shape) * NOISE
    found = identify(robots()[0], Measurements(t, np.round(q / step) * step, tau))
    assert nearest_physical(robots()[0].model, found.base, found.beta, found.solution.covariance).possible
    assert np.abs((found.beta - truth(found)) / found.std).max() < 5.0
    worse = identify(robots()[0], Measurements(t, np.round(q / step) * step, tau), window=0.016)
    assert not nearest_physical(robots()[0].model, worse.base, worse.beta, worse.solution.covariance).possible


def test_noise_and_standard_deviations_are_estimated_correctly():
    """Errors of ten recordings are normal in units of the reported standard deviation; channel noise is estimated."""
    z, noise = [], []
    for seed in range(10):
        found = from_noise(seed)
        z.append((found.beta - truth(found)) / found.std)
        noise.append(list(found.solution.noise.values()))
    z = np.array(z)
    assert 0.93 < z.std() < 1.07 and abs(z.mean()) < 0.1
    assert np.mean(np.abs(z) < 3.0) > 0.99
    assert np.mean(noise, axis=0) == pytest.approx(NOISE, rel=0.02)


def test_weighting_by_joint_noise_reduces_parameter_errors():
    """Equal weights for joints of different noise give larger errors."""
    found = from_noise(0)
    equal = identify(robots()[0], noisy(0), noise=np.full(6, 0.5))
    known = identify(robots()[0], noisy(0), noise=NOISE)
    errors = [np.sqrt(np.mean((each.beta - truth(each)) ** 2)) for each in (found, equal, known)]
    assert errors[0] < 0.85 * errors[1] and errors[0] == pytest.approx(errors[2], rel=0.1)
    assert known.std == pytest.approx(found.std, rel=0.05)


def test_measured_torque_rates_add_equations():
    t, q, qd, qdd, qddd, tau, rate = recorded()
    rng = np.random.default_rng(3)
    measured, derived = tau + rng.normal(size=tau.shape) * NOISE, rate + rng.normal(size=tau.shape) * NOISE
    alone = identify(robots()[0], Measurements(t, q, measured, qd, qdd))
    both = identify(robots()[0], Measurements(t, q, measured, qd, qdd, qddd, derived))
    assert both.solution.equations == 2 * alone.solution.equations
    assert list(both.solution.noise)[6:] == [f"tau_rate_j{k}" for k in range(1, 7)]
    assert list(both.solution.noise.values())[6:] == pytest.approx(NOISE, rel=0.05)
    inertial = [k for k, name in enumerate(both.base.names) if not name.startswith("offset")]
    assert np.all(both.std[inertial] < alone.std[inertial] * 1.01)
    assert np.median(both.std[inertial] / alone.std[inertial]) < 0.8
    assert np.mean(np.abs((both.beta - truth(both)) / both.std) < 3.0) > 0.95
    exact = identify(robots()[0], Measurements(t, q, tau, qd, qdd, qddd, rate))
    assert np.abs(exact.beta - truth(exact)).max() < 1e-11


def test_decimation_removes_noise_above_the_band_without_bias():
    t, q, qd, qdd, _, tau, _ = recorded()
    exact = identify(robots()[0], Measurements(t, q, tau, qd, qdd), decimate=5)
    assert np.abs(exact.beta - truth(exact)).max() < 1e-10, "regressor and torque pass the same filter"
    buzz = tau + 2.0 * np.sin(2.0 * np.pi * 90.0 * t + np.arange(6)[:, None]).T
    raw, quiet = (identify(robots()[0], Measurements(t, q, buzz, qd, qdd), decimate=k) for k in (1, 5))
    assert np.abs(quiet.beta - truth(quiet)).max() < 0.05 * np.abs(raw.beta - truth(raw)).max()
    assert max(quiet.solution.noise.values()) < 0.02


def test_identified_base_parameters_predict_another_motion():
    found = from_noise(0)
    _, q, qd, qdd, _, tau, _ = recorded(seed=5)
    before = np.abs(robots()[0].inverse_dynamics(q, qd, qdd) - tau).max(axis=0)
    after = np.abs(found.torque(robots()[0], q, qd, qdd) - tau).max(axis=0)
    assert np.all(after < 0.2 * before) and np.all(after < 0.5)


def test_payloads_are_part_of_the_prior_parameters():
    found = identify(robots()[0].with_payload("l6", 1.0, (0.1, 0, 0)), noisy(0))
    assert np.abs(found.prior - from_noise(0).prior).max() > 0.1
    assert np.array_equal(found.beta, from_noise(0).beta)


# ---------------------------------------------------------------------- recordings that are rejected

def test_too_few_samples_are_rejected():
    t, q, qd, qdd, _, tau, _ = recorded()
    with pytest.raises(InputError, match=r"30 equations for \d+ unknowns: more equations are needed"):
        identify(robots()[0], Measurements(t[:5], q[:5], tau[:5], qd[:5], qdd[:5]))


def test_error_names_parameters_that_the_motion_does_not_determine():
    t, q, qd, qdd, _, tau, _ = recorded()
    still = [np.where(np.arange(6) == 3, value, block) for value, block in ((0.4, q), (0.0, qd), (0.0, qdd))]
    with pytest.raises(InputError, match=r"Ia\(j4\).* cannot be separated") as error:
        identify(robots()[0], Measurements(t, still[0], tau, *still[1:]))
    assert "viscous(j4)" in str(error.value) and "coulomb(j4)" in str(error.value)
    assert "viscous(j2)" not in str(error.value)
    nothing = np.zeros_like(q)
    with pytest.raises(InputError, match="does not determine"):
        identify(robots()[0], Measurements(t, q[:1] + nothing, tau, nothing, nothing))


def test_invalid_recordings_are_rejected():
    robot = robots()[0]
    t, q, qd, qdd, _, tau, _ = recorded()
    for message, recording, options in (
            (r"needs q and tau of shape \(2000, 6\).*'tau': \(1999, 6\)", Measurements(t, q, tau[:-1], qd, qdd), {}),
            ("qd has shape", Measurements(t, q, tau, qd[:, :5], qdd), {}),
            ("finite", Measurements(t, q, tau * np.nan, qd, qdd), {}),
            ("decimate is 0", Measurements(t, q, tau, qd, qdd), {"decimate": 0}),
            ("evenly spaced", Measurements(t**1.1, q, tau, qd, qdd), {"decimate": 2}),
            ("noise is", Measurements(t, q, tau, qd, qdd), {"noise": [1.0, 2.0]}),
            ("noise is", Measurements(t, q, tau, qd, qdd), {"noise": np.zeros(6)}),
            ("do not exist", Measurements(t, q, tau, qd, qdd), {"terms": ("backlash",)}),
            ("time must increase", Measurements(t[::-1], q, tau), {})):
        with pytest.raises(InputError, match=message):
            identify(robot, recording, **options)


# ---------------------------------------------------------------------- least squares

def test_accumulated_equations_match_least_squares_on_the_whole_matrix():
    """The noise of each channel is given; NumPy solves the whole matrix."""
    rng = np.random.default_rng(0)
    W, y, sigma = rng.normal(size=(600, 5)), rng.normal(size=600), (0.3, 2.0)
    equations = LinearEquations("abcde")
    for start in range(0, 600, 100):  # two channels in turn, in pieces
        equations.add(("one", "two")[start // 100 % 2], W[start:start + 100], y[start:start + 100])
    scale = np.repeat(np.tile(sigma, 3), 100)
    solution = equations.solve(sigma)
    assert solution.x == pytest.approx(np.linalg.lstsq(W / scale[:, None], y / scale, rcond=None)[0], rel=1e-12)
    assert solution.covariance == pytest.approx(np.linalg.inv((W / scale[:, None]).T @ (W / scale[:, None])), rel=1e-10)
    residual = (W @ solution.x - y)[scale == 2.0]
    assert solution.misfit["two"] == pytest.approx(np.sqrt(np.mean(residual**2) / np.mean(y[scale == 2.0] ** 2)))


# ---------------------------------------------------------------------- physical consistency

def slider():
    """Return model and base parameters of a horizontal slide: mass with rotor, and two friction coefficients."""
    model = Robot.from_urdf(arm({"kind": "prismatic", "axis": (1, 0, 0)})).model
    base = base_parameters(model, terms=("coulomb", "viscous"))
    assert base.names == ("m(l1)", "coulomb(j1)", "viscous(j1)")
    return model, base


@pytest.mark.parametrize(("mass", "viscous", "expected"),
                         [(-0.5, 0.2, 5.0), (-0.1, 0.2, 1.0), (0.4, 0.2, 0.0), (-0.3, -0.4, 5.0)])
def test_distance_to_physical_parameters_matches_closed_form(mass, viscous, expected):
    """Mass and friction are not negative; the distance is in standard deviations of 0.1."""
    model, base = slider()
    found = nearest_physical(model, base, np.array([mass, 0.3, viscous]), np.eye(3) * 0.01)
    assert found.distance == pytest.approx(expected, abs=0.03)
    assert found.possible == (expected < found.limit) and found.limit == pytest.approx(3.368, rel=2e-3)  # chi-square, 3, 99 %
    assert ("l1" in found.active_constraints, "viscous(j1)" in found.active_constraints) == (mass < 0.0, viscous < 0.0)
    assert base.values_in(found.model) == pytest.approx(np.maximum([mass, 0.3, viscous], 0.0), abs=5e-3)
    assert not impossible_bodies(found.model)


def test_correlated_parameters_move_with_a_constrained_mass():
    """The nearest point of a half-space in the metric of the covariance changes correlated parameters too."""
    model, base = slider()
    covariance = np.array([[0.04, 0.0, 0.03], [0.0, 0.04, 0.0], [0.03, 0.0, 0.04]])
    found = nearest_physical(model, base, np.array([-0.2, 0.3, 0.2]), covariance)
    assert found.distance == pytest.approx(1.0, abs=0.02)
    assert base.values_in(found.model) == pytest.approx([0.0, 0.3, 0.2 + 0.2 * 0.03 / 0.04], abs=5e-3)


def test_exact_parameters_are_physical_and_undetermined_ones_follow_the_model():
    t, q, qd, qdd, _, tau, _ = recorded()
    robot, true = robots()
    exact = identify(robot, Measurements(t, q, tau, qd, qdd))
    found = nearest_physical(robot.model, exact.base, exact.beta, exact.solution.covariance)
    assert found.possible and found.distance < 1e-3 and not found.active_constraints
    assert np.abs(Robot.from_model(found.model).inverse_dynamics(q, qd, qdd) - tau).max() < 1e-6
    same = nearest_physical(true.model, exact.base, exact.beta, exact.solution.covariance)
    assert same.parameters == pytest.approx(values(true.model, exact.base.parameters), rel=1e-6)


def test_noisy_parameters_have_a_physical_robot_within_the_limit_distance():
    for seed in range(3):
        noisy = from_noise(seed)
        found = nearest_physical(robots()[0].model, noisy.base, noisy.beta, noisy.solution.covariance)
        assert found.possible and not impossible_bodies(found.model)
        listed = found.parameters.reshape(-1, 14)
        assert np.all([np.linalg.eigvalsh(pseudo_inertia(row[:10]))[0] > 0.0 for row in listed])
        assert np.all(listed[:, 10:13] > 0.0)


def test_impossible_parameters_exceed_the_limit_distance():
    """One case needs negative friction, the other a negative moment of inertia."""
    found = from_noise(0)
    for name, value in (("viscous(j2)", -3.0), ("Jzz(l6)", -1.0)):
        wrong = found.beta.copy()
        wrong[found.base.names.index(name)] = value
        verdict = nearest_physical(robots()[0].model, found.base, wrong, found.solution.covariance)
        assert not verdict.possible and verdict.distance > 2.0 * verdict.limit
        assert set(verdict.active_constraints) & {name, "l6"}


@pytest.mark.parametrize(("seed", "distance"), [(2, 9.196828), (4, 10.466613)])
def test_distance_to_physical_parameters_matches_a_conic_solver(seed, distance):
    """Distances are from Clarabel 0.11.1 (cvxpy 1.9.3). Seed 2 needs bodies ten thousand times heavier than the model's."""
    model = Robot.from_urdf(ROOT / "urdf" / "stanford.urdf", backend="python").model
    base, rng = base_parameters(model, terms=("Ia", "viscous", "coulomb")), np.random.default_rng(seed)
    beta = base.grouping @ values(model, base.parameters)
    size = np.maximum(np.abs(beta), 0.05 * np.abs(beta).max()) * 0.05
    axes = np.linalg.qr(rng.normal(size=(len(beta), len(beta))))[0] * size[:, None]
    covariance = axes * np.geomspace(1.0, 1e-3, len(beta)) @ axes.T
    beta += 3.0 * np.linalg.cholesky(covariance + 1e-14 * np.diag(np.diag(covariance))) @ rng.normal(size=len(beta))
    assert nearest_physical(model, base, beta, covariance).distance == pytest.approx(distance, rel=1e-3)


def test_nearest_physical_robot_satisfies_the_optimality_conditions():
    """The gradient of the squared distance is in the dual cone and orthogonal to the parameters, so no robot is nearer."""
    robot, found = robots()[0], from_noise(0)
    wrong = found.beta.copy()
    wrong[found.base.names.index("Jzz(l6)")] = -0.2
    nearby = nearest_physical(robot.model, found.base, wrong, found.solution.covariance)
    slope = found.base.grouping.T @ np.linalg.solve(found.solution.covariance, found.base.grouping @ nearby.parameters - wrong)
    directions = np.array([pseudo_inertia(unit) for unit in np.eye(10)]).reshape(10, 16)
    for row, body in zip(slope.reshape(-1, 14), nearby.parameters.reshape(-1, 14)):
        dual = np.linalg.lstsq(directions, row[:10], rcond=None)[0].reshape(4, 4)  # <dual, S> = row @ parameters
        scale = np.sqrt(np.diagonal(pseudo_inertia(body[:10])))
        assert np.linalg.eigvalsh(dual * np.outer(scale, scale))[0] > -1e-3 * nearby.distance**2
        assert np.all(row[10:13] * body[10:13] > -1e-3 * nearby.distance**2)
    assert abs(slope @ nearby.parameters) < 1e-2 * nearby.distance**2


# ---------------------------------------------------------------------- exciting motions

def test_exciting_motion_keeps_joint_limits_and_starts_at_rest():
    robot = Robot.from_urdf(ROOT / "urdf" / "seven_r.urdf")
    found = excite(robot, period=8.0, guesses=5, iterations=2)
    t = np.linspace(0.0, 8.0, 2001)
    q, qd, qdd, _ = found.motion(t)
    limits = robot.limits
    assert np.all(q > limits.lower) and np.all(q < limits.upper) and np.all(np.abs(qd) < limits.velocity)
    assert np.all(np.abs(qdd) < 5.02), "limits are kept on a grid"
    used = np.maximum(np.abs(q - (limits.lower + limits.upper) / 2).max(axis=0) / (limits.upper - limits.lower) * 2,
                      np.maximum(np.abs(qd).max(axis=0) / limits.velocity, 0.9 * np.abs(qdd).max(axis=0) / 5.0))
    assert np.all(used > 0.88), "each joint meets one of them"
    for end in (0, -1):
        assert np.abs(qd[end]).max() < 1e-12 and np.abs(qdd[end]).max() < 1e-12
        assert np.allclose(q[end], q[0])
    for k in range(3):
        slope = difference(lambda h, k=k: found.motion([1.0 + h])[k][0])
        assert slope == pytest.approx(found.motion([1.0])[k + 1][0], abs=1e-8)
    assert found.prediction_std < found.first


def test_exciting_motion_keeps_torque_and_rate_limits():
    """Tight limits slow the whole motion, no more than needed; infeasible limits are an error."""
    robot = robots()[1]
    free = excite(Robot.from_model(robot.model), guesses=2, iterations=0)
    t = np.linspace(0.0, 10.0, 3001)
    rate = np.abs(robot.torque_and_rate(*free.motion(t))[1]).max(axis=0)
    effort = np.abs(robot.inverse_dynamics(*free.motion(t)[:3])).max(axis=0)
    limits = replace(robot.limits, effort=1.5 * effort, effort_rate=0.4 * rate)
    found = excite(robot, guesses=2, iterations=0, limits=limits)
    tau, tau_rate = robot.torque_and_rate(*found.motion(t * found.slower))
    used = max((np.abs(tau) / limits.effort).max(), (np.abs(tau_rate) / limits.effort_rate).max())
    assert found.slower > 1.2 and used == pytest.approx(0.9, abs=0.01) and found.motion.period == 10.0 * found.slower
    assert np.allclose(found.motion(t * found.slower)[0], free.motion(t)[0]), "the same path"
    with pytest.raises(InputError, match=r"joint j\d needs .* % of its effort limit, .* to be held along the motion"):
        excite(robot, guesses=2, iterations=0, limits=replace(robot.limits, effort=0.1 * effort))


def test_better_conditioned_excitation_gives_smaller_standard_deviations():
    """The condition number equals that of the identification; the worst random motion gives larger deviations."""
    robot = Robot.from_model(robots()[0].model, "llvm")
    good = excite(robot, guesses=10, iterations=3)
    poor = max((excite(robot, guesses=1, iterations=0, seed=seed) for seed in range(5)), key=lambda e: e.condition_number)
    shares = []
    for motion, condition in ((good.motion, good.condition_number), (poor.motion, poor.condition_number)):
        t = np.arange(100) * 0.1
        q, qd, qdd, _ = motion(t)
        found = identify(robot, Measurements(t, q, robots()[1].inverse_dynamics(q, qd, qdd), qd, qdd), noise=np.ones(6))
        assert found.solution.condition_number == pytest.approx(condition, rel=1e-6)
        shares.append(np.median(found.std))
    assert good.condition_number < 0.6 * poor.condition_number and shares[0] < shares[1]


def test_exciting_motion_reduces_the_prediction_variance():
    """Predictions on other motions are more certain than after any random motion. The regressor of all inertial parameters is
    from differences of torques. The condition number of columns of equal length, as objective, does not achieve that.
    """
    model = Robot.from_urdf(arm(*SIX[1:4])).model
    listed = parameters(model, ())
    exact = values(model, listed)
    steps = np.maximum(np.abs(exact), 1.0) * 1e-3
    pairs = [[Robot.from_model(with_values(model, listed, exact + sign * step)) for sign in (1, -1)]
             for step in np.diag(steps)]

    def regressor(motion):
        samples = motion(np.linspace(0.0, 10.0, 80, endpoint=False))[:3]
        columns = [more.inverse_dynamics(*samples) - less.inverse_dynamics(*samples) for more, less in pairs]
        return np.array([column.ravel() for column in columns]).T / (2.0 * steps)

    def std(W):
        """RMS standard deviation of the torques predicted on the other motions, for torque noise of 1 N m."""
        covariance = np.linalg.pinv(W.T @ W, rcond=1e-9)
        return np.sqrt(np.mean([np.trace(V @ covariance @ V.T) / len(V) for V in others]))

    robot, options = Robot.from_model(model), {"terms": (), "noise": np.ones(3)}
    random = [excite(robot, guesses=1, iterations=0, seed=seed, **options) for seed in range(12)]
    others = [regressor(one.motion) for one in random[:4]]
    found = std(regressor(excite(robot, guesses=6, iterations=4, **options).motion))
    assert found < 0.9 * min(std(regressor(one.motion)) for one in random)


def test_excitation_ignores_parameters_visible_only_by_rounded_angles():
    """The first axis is vertical except for rounding, so that moments of its link have 1e-5 of their torque."""
    link = ('<inertial><origin xyz="0.2 0.03 0.02"/><mass value="2"/>'
            '<inertia ixx="0.01" iyy="0.03" izz="0.03" ixy="0.001" ixz="0" iyz="0.002"/></inertial>')
    joint = ('<joint name="j{0}" type="revolute"><parent link="l{1}"/><child link="l{0}"/><axis xyz="0 0 1"/>'
             '<origin xyz="0.4 0 0" rpy="{2} 0 0"/><limit lower="-2" upper="2" effort="50" velocity="2"/></joint>')
    links = "".join(f'<link name="l{k}">{link}</link>' for k in range(4))
    joints = "".join(joint.format(k, k - 1, angle) for k, angle in enumerate((3.14159, 1.5708, 0.0), start=1))
    found = excite(Robot.from_urdf(f'<robot name="upright">{links}{joints}</robot>'), guesses=3, iterations=4)
    assert found.prediction_std < 0.9 * found.first and found.condition_number < 100.0


def test_excitation_uses_default_limits_and_rejects_invalid_options():
    model = from_table("rr", planar_rr(1.0, 0.5, 2.0, 0.1))
    found = excite(Robot.from_model(model), terms=(), guesses=2, iterations=0)
    q, qd, qdd, _ = found.motion(np.linspace(0, 10, 500))
    assert np.abs(q).max() < 0.91 and np.abs(qd).max() < 0.91 and np.abs(qdd).max() < 5.02
    for wrong in ({"harmonics": 2}, {"period": 0.0}, {"margin": 1.5}, {"guesses": 0}, {"acceleration": -1.0}):
        with pytest.raises(InputError, match="are needed"):
            excite(Robot.from_model(model), **wrong)


# ---------------------------------------------------------------------- example

def test_identification_example_reaches_the_stated_accuracy(tmp_path):
    found = runpy.run_path(str(ROOT / "examples" / "identification.py"))["main"](tmp_path, small=True)
    assert (tmp_path / "identification.png").stat().st_size > 20_000
    assert found["base parameters"] == 69 and found["largest error in standard deviations"] < 5.0
    assert found["errors above 3 standard deviations"] <= 6, "the encoder's counts are a noise that the equations do not know"
    assert found["rms of torque error after [N m]"] < 0.02 * found["rms of torque error before [N m]"]
