"""Identification of inertial parameters, rotors and friction from recordings.

    tau_k = Y_k beta + F_k c_k + noise of joint k

beta: base parameters, including rotor inertia, and inertia and friction of motors that drive several joints; c_k: friction
of joint k.

1. Each recording is prepared (estimation/smoothing.py); equations are low-passed and decimated (joint_equations.py).
2. A joint whose torques contradict those of the others, for example in other units, is excluded (_exclude_contradictory).
3. Friction models are selected by cross-validation (weighted_fit.py).
4. beta and c are estimated by weighted least squares (weighted_fit.py). A prior standard deviation of `prior_std` times their
   scale keeps base parameters that the motion hardly excites near those of the URDF.
5. Physical parameters are selected: among all robots with physical bodies, rotors and dissipative friction, the one nearest to
   a reference that explains the recordings within `max_loss` of the best (physical_consistency.py). The reference has the
   bodies of the URDF and the rotors for which these bodies need not change, since URDFs contain no rotors (_reference).

The end of every recording is not used in the fit: it is the validation set.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.inertial_parameters import (
    INERTIAL,
    OF_MOTORS,
    BaseParameters,
    Parameter,
    base_parameters,
    from_regressor,
    inertia,
    sampled_regressor,
    values,
)
from ..errors import InputError, some
from ..estimation.smoothing import PreparedRecording, prepare
from ..model.drives import EffortConvention, Efforts
from ..model.tree import CoupledMotor, JointDynamics, Model, frozen
from ..robots import validation
from ..robots.conditions import unified
from ..robots.robot import Robot
from .identification import Measurements, Regressor
from .joint_equations import (
    BY_SPEED,
    LOAD,
    OFFSET,
    SMOOTHING,
    FitRecording,
    FrictionModel,
    IdentificationProblem,
    JointEquations,
    candidates,
    equations,
    filtered_column,
    initial_model,
    loaded,
    simple_candidates,
    validate_recording,
    validation_residuals,
    with_loads,
)
from .physical_consistency import NearestValues, parameter_scales, physical_path
from .weighted_fit import (
    DriveGains,
    WeightedFit,
    initial_gains,
    refine_friction,
    refined_gains,
    select_friction,
    solve_weighted,
)

ROTOR = "Ia"  # parameter of the rotor's inertia
RATE = 25.0  # equations per second and joint
HELD_OUT = 0.3  # share of each recording that is the validation set


@dataclass(frozen=True)
class FitTuning:
    """Tuning of priors, significance and contradictions."""

    prior_std: float = 3.0  # prior standard deviation of a base parameter about the URDF's value, over its size
    body_std: float = 0.3  # prior standard deviation of a body's parameter over its size, where bodies compete with rotors
    max_consistency_cost: float = 0.3  # logarithm of the error above which no physical robot explains the recording
    small_error: float = 0.02  # error relative to the torque below which a joint is explained well,
    large_error: float = 0.5  # and above which it is not explained
    max_sign_ratio: float = 0.8  # ratio of squared errors with dissipative friction and with the opposite sign
    # standard deviations that a friction term beyond Coulomb and viscous friction must differ from zero
    significance: float = 2.5
    load_rounds: int = 2  # alternations between loads and bodies
    max_loss: float = 0.005  # logarithm of the error that bodies nearer to the URDF's may cost
    bisections: int = 6  # bisections of the path step at which this is reached
    min_coupling_factor: float = 1.5  # factor by which a coupling must reduce the error of a joint
    max_coupling_samples: int = 5_000  # in the search for couplings
    max_error: float = 1.0  # error over a joint's own torque above which it is not explained
    min_contradiction: float = 0.5  # decrease of the logarithm of another joint's error when a contradictory joint is excluded


TUNING = FitTuning()


class Exclusion(NamedTuple):
    """Measured joint that was excluded from the fit.

    error  : RMS error relative to its torque, with it in the fit
    others : largest factor by which it increased the error of another joint, and that joint
    """

    joint: str
    error: float
    others: tuple[float, str]


class SuspectedCoupling(NamedTuple):
    """Two joints whose errors one motor explains that turns with both.

    sign    : 1 or -1: sign of the second joint's velocity in the motor's speed
    factors : by which its inertia and friction would reduce the error of each joint
    """

    joints: tuple[str, str]
    sign: int
    factors: tuple[float, float]

    @property
    def option(self) -> str:
        """Value of --couple that fits it."""
        return f"{self.joints[0]},{self.joints[1]}{'=-1' if self.sign < 0 else ''}"


@dataclass(frozen=True, eq=False)
class Fit:
    """Physically consistent robot that explains recordings, and the errors of the fit.

    robot           : with the identified bodies, rotors and friction
    before          : the robot before the fit
    base            : base parameters and friction terms; estimate, std: their values by least squares, with standard
                      deviations;
                      prior: those of the URDF, NaN for friction; values: those of `robot`
    unobservable    : names of the parameters on which no torque of the measured joints depends
    friction        : selected model of each fitted joint
    joints          : numbers of the fitted joints, to which the columns of the following belong
    rms             : RMS torque [N m, N]
    urdf_error      : RMS error of the robot before the fit, over the validation sets, or over everything without them
    fit_error, validation_error : RMS errors of `robot` over the fitted parts, and over the validation sets (NaN without them)
    least_squares_error : validation error of the least-squares estimate, which need not be physical
    consistency_cost : by how much physical consistency increases the fit error, mean over joints of the logarithm
    at_boundary     : names of bodies and terms at the boundary of what is physical
    information     : inverse covariance of `estimate` from the recordings alone
    recordings      : as they were used
    equations       : number of equations
    gains           : drive gains, where they were unknown
    excluded        : measured joints whose torques were not used because they contradict those of others
    reversed        : names of joints whose efforts were used with the opposite sign
    suspected       : couplings that would reduce the errors, the largest reduction first
    """

    robot: Robot
    before: Robot
    base: BaseParameters
    unobservable: tuple[str, ...]
    prior: np.ndarray
    estimate: np.ndarray
    std: np.ndarray
    values: np.ndarray
    friction: tuple[FrictionModel, ...]
    joints: tuple[int, ...]
    rms: np.ndarray
    urdf_error: np.ndarray
    fit_error: np.ndarray
    validation_error: np.ndarray
    least_squares_error: np.ndarray
    consistency_cost: float
    at_boundary: tuple[str, ...]
    information: np.ndarray
    recordings: tuple[FitRecording, ...]
    equations: int
    gains: DriveGains | None = None
    excluded: tuple[Exclusion, ...] = ()
    reversed: tuple[str, ...] = ()
    suspected: tuple[SuspectedCoupling, ...] = ()

    @property
    def explained(self) -> bool:
        """True if a physical robot explains the recordings: nearly as well as least squares, or with a small error."""
        error = np.linalg.norm(np.fmax(self.fit_error, self.validation_error)) / (np.linalg.norm(self.rms) or 1.0)
        return bool(error < TUNING.large_error) and (self.consistency_cost < TUNING.max_consistency_cost
                                                      or bool((self.fit_error < TUNING.small_error * self.rms).all()))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fitted joints."""
        return tuple(self.robot.joint_names[k] for k in self.joints)


@dataclass(frozen=True)
class FitOptions:
    """Options of fit.

    held_out : share of each recording, at its end, that is the validation set
    rate     : equations per second and joint
    window   : fit polynomials over this time instead of Kalman smoothing, see estimate_recording [s]
    currents : tau contains currents, or torques before gears, whose gains are unknown too; the identified robot has them in
               robot.model.efforts.measured
    exclude  : exclude joints whose torques contradict those of the others
    """

    held_out: float = HELD_OUT
    rate: float = RATE
    window: float | None = None
    currents: bool = False
    exclude: bool = True

    def __post_init__(self) -> None:
        if not 0.0 <= self.held_out <= 0.9 or not self.rate > 0.0:
            raise InputError(f"held_out is {self.held_out}, rate {self.rate}; 0 to 0.9, and a rate above zero are needed")


def fit(robot: Robot, recordings: Measurements | Sequence[Measurements], **options) -> Fit:
    """Return the robot identified from recordings.

    robot      : geometry, and the bodies from which everything undetermined is taken
    recordings : t, q and tau, as robot.model.efforts.measured defines efforts; qd and qdd are used if both are given. A joint
                 whose column of tau is NaN was not measured. payloads: carried in this recording only
    options    : of FitOptions

    Where no physical robot explains the recordings and efforts of some joints act against the URDF's torques, the fit is
    repeated with their signs reversed.
    """
    chosen, given = FitOptions(**options), [recordings] if isinstance(recordings, Measurements) else list(recordings)
    validation.held_base(robot.model)
    if not given:
        raise InputError("recordings: none given; at least one is needed")
    found, signs = _fit(robot, given, chosen)
    if found.explained or chosen.currents or (signs > 0.0).all():
        return found
    other, _ = _fit(_with_signs(robot, found.joints, signs), given, chosen)
    names = tuple(name for name, sign in zip(found.names, signs, strict=True) if sign < 0.0)
    used = not {exclusion.joint for exclusion in other.excluded} & set(names)  # else the other joints alone are explained
    return replace(other, reversed=names) if other.explained and used else found


def _fit(robot: Robot, given: list[Measurements], options: FitOptions) -> tuple[Fit, np.ndarray]:
    """Return the fit, and the sign (joints,) with which each effort follows the URDF's torque."""
    problem, prior_values, unobservable = _problem(robot, given, options)
    base = problem.base
    rows, prior = equations(problem, options.rate), base.grouping @ prior_values
    prior_std, gains = _prior_std(base, prior_values, float(np.sqrt(np.mean(rows.tau**2, axis=0)).max())), None
    excluded: tuple[Exclusion, ...] = ()
    models = [initial_model(speed) for speed in problem.max_speeds]
    signs = _effort_signs(rows, models, prior)
    if problem.regressor.motors:
        problem = _with_best_smoothing(problem, rows, options.rate, models, prior, prior_std)
        rows = equations(problem, options.rate)
    if options.currents:
        gains = refined_gains(rows, models, prior, prior_std, initial_gains(rows, models, prior))
    elif options.exclude:
        problem, rows, excluded = _exclude_contradictory(robot, problem, rows, prior, prior_std)
        models, signs = [initial_model(speed) for speed in problem.max_speeds], _signs_of(problem.joints, signs, robot, given)
    models = _with_speed_friction(problem, _in_torques(rows, gains), models, prior, prior_std)
    if gains:
        gains = refined_gains(rows, models, prior, prior_std, gains.values)
        rows, problem = _in_torques(rows, gains), _with_gains(problem, gains)
    coupled = {k for motor in robot.model.coupled_motors for k in motor.coordinates}
    models, least = _with_load_friction(problem, rows, options.rate, models, prior, prior_std, coupled)
    whole = _with_friction(robot, problem, models)
    reference = np.concatenate((_reference(base, prior_values, least), _dissipative(models, least.x[len(base):])))
    near = _nearest_to_reference(list(physical_path(reference, whole, least.x, least.covariance)), whole, least)
    model = replace(_model(robot, problem, models, near.parameters), efforts=_efforts(robot, problem.joints, gains))
    fitted = Robot.from_model(model, robot.backend, robot.gravity_vector)
    found = _assess(robot, fitted, problem, models, whole, prior, least, near)
    return replace(found, gains=gains, excluded=excluded, unobservable=unobservable), signs


# ---------------------------------------------------------------------- the recordings as equations

def _problem(robot: Robot, given: list[Measurements],
             options: FitOptions) -> tuple[IdentificationProblem, np.ndarray, tuple[str, ...]]:
    """Return the problem, the values of its parameters in the URDF, and the names of parameters that no torque depends on."""
    parts = [validate_recording(robot, recording) for recording in given]
    joints = parts[0][0]
    for other, *_ in parts[1:]:
        if other != joints:
            raise InputError(f"recordings: torques of {some(robot.joint_names[k] for k in joints)} are measured in the "
                             f"first, of "
                             f"{some(robot.joint_names[k] for k in other)} in another one; the same joints are needed in all")
    body = _without_joint_terms(_bodies_and_motors(robot))
    rigid = Robot.from_model(body, robot.backend, robot.gravity_vector)
    recordings = tuple(_read(robot, rigid, recording, q, tau, options)
                       for recording, (_, q, tau) in zip(given, parts, strict=True))
    if body.coupled_motors:
        if options.currents:
            raise InputError("couplings: unknown gains of motors that turn with several joints cannot be identified; convert "
                             "their efforts to joint torques, G^T times those of the motors, and fit without currents")
        body = _with_smoothing(body, recordings)
        rigid = Robot.from_model(body, robot.backend, robot.gravity_vector)
    base = base_parameters(body, robot.gravity_vector, (ROTOR,), free_root=False)
    unobservable = base.unobservable()
    held = {k: float(parts[0][1][0, k]) for k in range(robot.n) if k not in joints
            and all(np.array_equal(q[:, k], np.full(len(q), parts[0][1][0, k])) for _, q, _ in parts)}
    if held:
        base = _of_moving(base, body, robot, joints, held)
    prior_values = values(body, base.parameters)
    regressor = Regressor(rigid, [base.parameters[k] for k in base.kept])
    return IdentificationProblem(base, regressor, recordings, joints), prior_values, unobservable


def _read(robot: Robot, rigid: Robot, recording: Measurements, q: np.ndarray, tau: np.ndarray,
          options: FitOptions) -> FitRecording:
    """Return a recording in torques; with unknown gains efforts stay as they are."""
    measured = robot.model.efforts.measured
    if options.currents and measured.contains != "total":
        raise InputError(f"measured_effort of the robot file: contains is {measured.contains}; unknown gains need efforts "
                         f"that "
                         "contain the whole torque: total")
    qd, qdd = (None if block is None else np.asarray(block, dtype=float) for block in (recording.qd, recording.qdd))
    data = prepare(recording.t, q, np.nan_to_num(tau), qd, qdd, options.window, robot.joint_types,
                   robot.joint_names)
    if not options.currents:
        data = replace(data, tau=robot.measured_torque(data.tau, data.q, data.qd))
    carried, payloads = np.zeros_like(data.tau), dict(recording.payloads or {})
    if payloads:
        loaded = _carrying(rigid, payloads)
        carried = loaded.inverse_dynamics(data.q, data.qd, data.qdd) - rigid.inverse_dynamics(data.q, data.qd, data.qdd)
    return FitRecording(data, round((1.0 - options.held_out) * len(data.t)), carried, payloads)


def _carrying(robot: Robot, payloads: Mapping[str, tuple[Any, ...]]) -> Robot:
    """Return the robot with payloads on its links."""
    for link, payload in payloads.items():
        robot = robot.with_payload(link, *payload)
    return robot


def _of_moving(base: BaseParameters, body: Model, robot: Robot, joints: tuple[int, ...],
               held: dict[int, float]) -> BaseParameters:
    """Return the base parameters of the measured joints' torques while the held joints are at rest.

    A robot with many held joints has far fewer of them, and every solve_weighted costs their number cubed.
    """
    left = [base.parameters[k] for k in base.kept]
    n, states = body.n, 3 * len(left) // max(len(joints), 1) + 10
    x = np.random.default_rng(0).normal(size=(states, 3 * n))
    for k, position in held.items():
        x[:, k], x[:, n + k], x[:, 2 * n + k] = position, 0.0, 0.0
    W = sampled_regressor(body, left, robot.gravity_vector, states=x).reshape(states, n, len(left))[:, list(joints)]
    further = from_regressor(W.reshape(-1, len(left)), left)
    grouping = further.grouping @ base.grouping
    links = {base.parameters[k].link for k in np.flatnonzero(grouping.any(axis=0)).tolist()}
    kept = [base.kept[k] for k in further.kept]
    listed = [k for k, parameter in enumerate(base.parameters) if parameter.link in links]
    return BaseParameters(tuple(base.parameters[k] for k in listed), tuple(listed.index(k) for k in kept), grouping[:, listed])


def _without_joint_terms(model: Model) -> Model:
    """Return the model without friction, and with motors that drive several joints at their largest ratio.

    Ia is then of the size that joints have.
    """
    bare = dict.fromkeys(("coulomb", "viscous", "offset", "stribeck", "asymmetry", "load_dependent"), 0.0)
    motors = []
    for motor in model.coupled_motors:
        if len(motor.coordinates) > 1:
            most = max(map(abs, motor.ratios))
            term = replace(motor.term, rotor_inertia=motor.term.rotor_inertia * most**2, **bare)
            motors.append(replace(motor, ratios=tuple(ratio / most for ratio in motor.ratios), term=term))
    return replace(model, links=tuple(replace(link, term=replace(link.term, **bare)) for link in model.links),
                   coupled_motors=tuple(motors))


def _bodies_and_motors(robot: Robot) -> Model:
    """Return the model with payloads in its bodies; a coupled motor that one joint alone turns is the rotor of that joint."""
    model = unified(robot.model, tuple(robot.payloads.values()))
    links, motors = list(model.links), []
    for motor in model.coupled_motors:
        if len(motor.coordinates) == 1:
            (k,), (ratio,), term = motor.coordinates, motor.ratios, motor.term
            number = next(n for n, link in enumerate(links) if link.joint == model.joint_names[k])
            own = links[number].term
            motor = replace(motor, term=JointDynamics(smoothing=term.smoothing))
            own = replace(own, rotor_inertia=own.rotor_inertia + term.rotor_inertia * (ratio / own.gear_ratio) ** 2,
                          coulomb=own.coulomb + term.coulomb * abs(ratio), viscous=own.viscous + term.viscous * ratio**2)
            links[number] = replace(links[number], term=own)
        motors.append(motor)
    return replace(model, links=tuple(links), coupled_motors=tuple(motors))


def _with_smoothing(body: Model, recordings: Sequence[FitRecording]) -> Model:
    """Return the model whose coupled motors have the smoothing that fits their largest speeds, as the first of a joint has."""
    motors = []
    for motor in body.coupled_motors:
        speed = max(float(np.abs(motor.motion(of.data.qd[:of.split].T)).max(initial=0.0)) for of in recordings)
        smoothing = initial_model(max(speed, np.finfo(float).eps)).smoothing
        motors.append(replace(motor, term=replace(motor.term, smoothing=smoothing)))
    return replace(body, coupled_motors=tuple(motors))


def _with_best_smoothing(problem: IdentificationProblem, rows: JointEquations, rate: float, models: list[FrictionModel],
                         prior: np.ndarray, prior_std: np.ndarray) -> IdentificationProblem:
    """Return the problem with the smoothing of Coulomb friction that explains most, one coupled motor after another."""
    base, robot, joints = problem.base, problem.regressor.robot, list(problem.joints)
    motors, Y = list(problem.regressor.motors), rows.Y.copy()
    for k, motor in enumerate(motors):
        wanted = len(robot.model.links) + k, "coulomb"
        column = next((c for c, kept in enumerate(base.kept) if base.parameters[kept][:2] == wanted), None)
        found = []
        for share in SMOOTHING if column is not None else ():
            v = motor.term.smoothing * share / SMOOTHING[2]

            def sign(qd: np.ndarray, motor: CoupledMotor = motor, v: float = v) -> np.ndarray:
                return np.tanh(motor.motion(qd.T) / v)

            friction = filtered_column(problem, rate, sign)
            tried = Y.copy()
            for joint, ratio in zip(motor.coordinates, motor.ratios, strict=True):
                if joint in joints:
                    tried[:, joints.index(joint), column] = ratio * friction
            least = solve_weighted(rows._replace(Y=tried), models, prior, prior_std)
            found.append((float(np.mean(np.log(least.errors(least.x)))), v, tried))
        if not found:  # the joints are at rest
            continue
        _, v, Y = min(found, key=lambda one: one[0])
        motors[k] = replace(motor, term=replace(motor.term, smoothing=v))
    regressor = Regressor(robot.with_coupled_motors(motors), problem.regressor.parameters)
    return replace(problem, regressor=regressor)


def _prior_std(base: BaseParameters, prior_values: np.ndarray, torque: float) -> np.ndarray:
    """Return standard deviations (b,) of base parameters about the URDF's.

    A URDF has no rotors: the robot's inertia; nor friction of coupled motors: the largest RMS torque, at 1 rad/s.
    """
    size = np.maximum(np.abs(base.grouping) @ np.abs(prior_values), 1e-3 * np.abs(prior_values).max(initial=1e-3))
    kinds = np.array([base.parameters[k].kind for k in base.kept])
    inertias = size[[unit in ("kg m^2", "kg") for unit in base.units]]
    size = np.where(kinds == ROTOR, inertias.max(initial=0.0), size)
    return TUNING.prior_std * np.where(np.isin(kinds, OF_MOTORS[1:]), torque, size)


# ---------------------------------------------------------------------- joints in other units

def _exclude_contradictory(robot: Robot, problem: IdentificationProblem, rows: JointEquations, prior: np.ndarray,
                           prior_std: np.ndarray) -> tuple[IdentificationProblem, JointEquations, tuple[Exclusion, ...]]:
    """Exclude one after another the joint that is not explained, or without which the error of another one is far smaller.

    A joint alone is explained by some bodies in any unit; these bodies then contradict the other joints. Among several
    suspects it is the one whose torques differ most from the URDF's in scale.
    """
    excluded: list[Exclusion] = []
    while len(problem.joints) > 1:
        models = [initial_model(speed) for speed in problem.max_speeds]
        together = solve_weighted(rows, models, prior, prior_std)
        errors = together.errors(together.x)
        relative = errors / np.maximum(np.sqrt(np.mean(rows.tau**2, axis=0)), np.finfo(float).tiny)
        gains = np.zeros((len(errors), len(errors)))  # of the joint of a column, without that of the row
        for k in range(len(errors)):
            rest = [j for j in range(len(errors)) if j != k]
            alone = solve_weighted(rows.without(k), [models[j] for j in rest], prior, prior_std)
            gains[k, rest] = np.log(errors[rest] / alone.errors(alone.x))
        suspects = (relative > TUNING.max_error) | (gains.max(axis=1) > TUNING.min_contradiction)
        if not suspects.any():
            break
        scale = np.log(np.abs(initial_gains(rows, models, prior)))
        worst = int(np.argmax(np.where(suspects, np.abs(scale - np.median(scale)) + np.maximum(gains.max(axis=1), 0.0), -1.0)))
        names = [robot.joint_names[k] for k in problem.joints]
        other = int(np.argmax(gains[worst]))
        excluded.append(Exclusion(names[worst], float(relative[worst]), (float(np.exp(gains[worst, other])), names[other])))
        problem, rows = problem.without(worst), rows.without(worst)
    return problem, rows, tuple(excluded)


def _signs_of(joints: tuple[int, ...], signs: np.ndarray, robot: Robot, given: list[Measurements]) -> np.ndarray:
    """Return the signs of the joints that are left."""
    before = validate_recording(robot, given[0])[0]
    return signs[[before.index(k) for k in joints]]


# ---------------------------------------------------------------------- efforts

def _with_signs(robot: Robot, joints: tuple[int, ...], signs: np.ndarray) -> Robot:
    """Return the robot with the measured efforts of some joints reversed."""
    measured = robot.model.efforts.measured
    per_unit = np.array(measured.per_unit or np.ones(robot.n))
    per_unit[list(joints)] *= signs
    efforts = robot.model.efforts._replace(measured=measured._replace(per_unit=tuple(per_unit.tolist())))
    body = unified(robot.model, tuple(robot.payloads.values()))
    return Robot.from_model(replace(body, efforts=efforts), robot.backend, robot.gravity_vector)


def _effort_signs(rows: JointEquations, models: Sequence[FrictionModel], prior: np.ndarray) -> np.ndarray:
    """Return -1 for joints whose effort acts against the URDF's torque, and against dissipative friction; 1 for others."""
    from scipy.optimize import lsq_linear

    found = []
    for k, model in enumerate(models):
        W = np.column_stack((rows.Y[:, k] @ prior, rows.friction(k, model)))
        length = np.maximum(np.linalg.norm(W, axis=0), np.finfo(float).tiny)
        lower = np.where([False, *(kind == OFFSET for kind in model.kinds)], -np.inf, 0.0)
        costs = [lsq_linear(W / length, sign * rows.tau[:, k], (lower, np.inf)).cost for sign in (1.0, -1.0)]
        W = W / length
        x, *_ = np.linalg.lstsq(W, rows.tau[:, k], rcond=None)
        variance = np.mean((rows.tau[:, k] - W @ x) ** 2) * np.linalg.pinv(W.T @ W)[0, 0]
        # Where the URDF's torque is small, as of a last joint, it may fit a rotor with either sign: friction shows the sign.
        against = x[0] < -TUNING.significance * np.sqrt(variance)
        is_reversed = costs[1] < (1.0 if against else TUNING.max_sign_ratio) * costs[0]
        found.append(-1.0 if is_reversed else 1.0)
    return np.array(found)


def _efforts(robot: Robot, joints: tuple[int, ...], gains: DriveGains | None) -> Efforts:
    """Return the effort convention with the gains that were found."""
    if not gains:
        return robot.model.efforts
    per_unit = np.ones(robot.n)
    per_unit[list(joints)] = gains.values
    return robot.model.efforts._replace(measured=EffortConvention("total", "current", tuple(per_unit.tolist())))


def _in_torques(rows: JointEquations, gains: DriveGains | None) -> JointEquations:
    return rows._replace(tau=rows.tau * gains.values) if gains else rows


def _with_gains(problem: IdentificationProblem, gains: DriveGains) -> IdentificationProblem:
    """Return the problem with its recordings in torques."""
    factor = np.ones(problem.recordings[0].data.tau.shape[1])
    factor[list(problem.joints)] = gains.values
    return replace(problem, recordings=tuple(replace(of, data=replace(of.data, tau=of.data.tau * factor))
                                             for of in problem.recordings))


# ---------------------------------------------------------------------- friction

def _with_speed_friction(problem: IdentificationProblem, rows: JointEquations, models: list[FrictionModel], prior: np.ndarray,
                         prior_std: np.ndarray) -> list[FrictionModel]:
    """Select friction by speed: first without Stribeck terms, then with them where they predict better."""
    simple = select_friction(rows, [simple_candidates(v) for v in problem.max_speeds], models, prior, prior_std)
    simple = refine_friction(rows, simple, prior, prior_std)
    models = select_friction(rows, [candidates(v) for v in problem.max_speeds], simple, prior, prior_std)
    models = refine_friction(rows, models, prior, prior_std)
    return select_friction(rows, [[one, one._replace(asymmetric=False)] for one in simple], models, prior, prior_std)


def _with_load_friction(problem: IdentificationProblem, rows: JointEquations, rate: float, models: list[FrictionModel],
                        prior: np.ndarray, prior_std: np.ndarray,
                        coupled: Collection[int]) -> tuple[list[FrictionModel], WeightedFit]:
    """Select friction by load where it predicts better. Loads are those of the bodies found: both are solved in turn.

    coupled: numbers of joints of coupled transmissions, whose loads are not known
    """
    least, b = solve_weighted(rows, models, prior, prior_std), len(prior)
    rows = with_loads(problem, rows, rate, least.x[:b])
    torques = np.sqrt(np.mean(rows.tau**2, axis=0)).tolist()
    others = [[loaded(one, torque) for one in [model, *candidates(v)]] if joint not in coupled else []
              for joint, model, v, torque in zip(problem.joints, models, problem.max_speeds, torques, strict=True)]
    models = select_friction(rows, others, models, prior, prior_std)
    least = solve_weighted(rows, models, prior, prior_std)
    if (simpler := _significant(models, least, b)) != models:
        models, least = simpler, solve_weighted(rows, simpler, prior, prior_std)
    for _ in range(TUNING.load_rounds if any(model.load_smoothing for model in models) else 0):
        least = solve_weighted(with_loads(problem, rows, rate, least.x[:b]), models, prior, prior_std)
    return models, least


def _significant(models: list[FrictionModel], least: WeightedFit, b: int) -> list[FrictionModel]:
    """Return the models without the terms whose estimate is within `significance` standard deviations of zero."""
    found, start = [], b
    for model in models:
        column = {kind: start + k for k, kind in enumerate(model.kinds)}
        start += len(model.kinds)

        def is_significant(plus: str, minus: str | None = None, column: dict[str, int] = column) -> bool:
            row = np.zeros(len(least.x))
            row[column[plus]] = 1.0
            if minus:
                row[column[minus]] = -1.0
            return bool(abs(row @ least.x) > TUNING.significance * np.sqrt(row @ least.covariance @ row))

        if model.load_smoothing and not is_significant(LOAD):
            model = model.unloaded
        if model.stribeck_velocity and not is_significant("breakaway", "coulomb"):
            model = model._replace(stribeck_velocity=None)
        if model.asymmetric and not is_significant("forwards", "backwards"):
            model = model._replace(asymmetric=False)
        found.append(model)
    return found


def _dissipative(models: list[FrictionModel], found: np.ndarray) -> np.ndarray:
    """Return friction coefficients by least squares, the negative ones replaced."""
    kinds = [kind for model in models for kind in model.kinds]
    return np.where(np.array(kinds) == OFFSET, found, np.maximum(found, 1e-3 * np.abs(found).max(initial=1e-3)))


def _with_friction(robot: Robot, problem: IdentificationProblem, models: list[FrictionModel]) -> BaseParameters:
    """Return base parameters and friction terms in one list."""
    base = problem.base
    numbers = {link.joint: k for k, link in enumerate(robot.model.links) if link.joint}
    more = []
    for joint, model in zip(problem.joints, models, strict=True):
        name = robot.joint_names[joint]
        force, speed = ("N", "m/s") if robot.joint_types[joint] == "prismatic" else ("N m", "rad/s")
        units = {LOAD: "", **dict.fromkeys(BY_SPEED, f"{force}/({speed})")}
        more += [Parameter(numbers[name], kind, name, units.get(kind, force)) for kind in model.kinds]
    count, terms = len(base.parameters), len(more)
    grouping = np.zeros((len(base) + terms, count + terms))
    grouping[:len(base), :count], grouping[len(base):, count:] = base.grouping, np.eye(terms)
    return BaseParameters((*base.parameters, *more), (*base.kept, *range(count, count + terms)), grouping)


# ---------------------------------------------------------------------- physical parameters

def _reference(base: BaseParameters, prior_values: np.ndarray, least: WeightedFit) -> np.ndarray:
    """Return the reference (p,) of the physical parameters: the URDF's bodies, with rotors from the recordings.

    Often only the sum of a rotor's inertia and of a link's about the same axis is determined. Rotors and coupled motors are
    the maximum a posteriori estimate with bodies that deviate from the URDF's by `body_std` of their size, and rotors of any
    size that is not negative.
    """
    from scipy.optimize import lsq_linear

    b, rotors = len(base), np.array([parameter.kind in OF_MOTORS for parameter in base.parameters])
    if not rotors.any():
        return prior_values
    scale = parameter_scales(base.parameters, prior_values)
    inertias = [parameter.unit in ("kg m^2", "kg") for parameter in base.parameters]
    std = np.where(rotors, TUNING.prior_std * (np.abs(base.grouping) @ np.abs(prior_values)).max(
        initial=max(scale[inertias].max(), np.abs(least.x[:b]).max())), TUNING.body_std * scale)
    # Information matrix = half^T half. By eigenvalues, since exact data leave a covariance that is singular but for rounding.
    values, vectors = np.linalg.eigh(least.covariance[:b, :b])
    half = (vectors / np.sqrt(np.maximum(values, np.finfo(float).eps * values[-1]))).T
    A = np.vstack((half @ base.grouping * std, np.eye(len(std))))
    y = np.concatenate((half @ (least.x[:b] - base.grouping @ prior_values), np.zeros(len(std))))
    lower = np.where(rotors, -prior_values / std - 1e-12, -np.inf)
    found = prior_values + std * lsq_linear(A, y, (lower, np.inf)).x
    return np.where(rotors, np.maximum(found, 0.0), prior_values)


def _nearest_to_reference(path: list[NearestValues], base: BaseParameters, least: WeightedFit) -> NearestValues:
    """Return the first on the path from the reference to the measurement that explains it nearly as well as the best.

    Points between two physical robots are physical: the last step is shortened by bisection.
    """
    def score(parameters: np.ndarray) -> float:
        return float(np.mean(np.log(least.errors(base.grouping @ parameters))))

    scores = [score(step.parameters) for step in path]
    limit = min(scores) + TUNING.max_loss
    k = next(k for k, value in enumerate(scores) if value <= limit)
    if k == 0:
        return path[0]
    before, after = path[k - 1].parameters, path[k].parameters
    low, high = 0.0, 1.0
    for _ in range(TUNING.bisections):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if score(before + middle * (after - before)) <= limit else (middle, high)
    return path[k]._replace(parameters=before + high * (after - before))


def _model(robot: Robot, problem: IdentificationProblem, models: list[FrictionModel], found: np.ndarray) -> Model:
    """Return the model with the bodies and rotors (first in `found`) and the friction (the rest) that were found."""
    body, listed = _bodies_and_motors(robot), problem.base.parameters
    by_link: dict[int, dict[str, float]] = {}
    for parameter, value in zip(listed, found, strict=False):
        by_link.setdefault(parameter.link, {})[parameter.kind] = float(value)
    friction, rest = {}, found[len(listed):]
    for joint, choice in zip(problem.joints, models, strict=True):
        own, rest = rest[:len(choice.kinds)], rest[len(choice.kinds):]
        friction[body.joint_names[joint]] = choice.terms(own)
    links, motors, fitted_motors = list(body.links), list(body.coupled_motors), problem.regressor.motors
    fitted_numbers = [k for k, motor in enumerate(motors) if len(motor.coordinates) > 1]  # of those that are fitted
    bare = _without_joint_terms(body).links
    for number, given in by_link.items():
        if number >= len(links):
            k, most = fitted_numbers[number - len(links)], max(map(abs, motors[fitted_numbers[number - len(links)]].ratios))
            motors[k] = replace(motors[k], term=JointDynamics(
                rotor_inertia=given[ROTOR] / most**2, coulomb=given["coulomb"] / most, viscous=given["viscous"] / most**2,
                smoothing=fitted_motors[number - len(links)].term.smoothing * most))
            continue
        link = links[number]
        if INERTIAL[0] in given:
            m, ms, J = inertia(given)
            link = replace(link, m=float(m), ms=frozen(ms), J=frozen(J))
        term = bare[number].term if link.joint in friction else link.term
        rotor = given[ROTOR] / term.gear_ratio**2 if ROTOR in given else term.rotor_inertia
        links[number] = replace(link, term=replace(term, rotor_inertia=rotor, **friction.get(link.joint, {})))
    return replace(body, links=tuple(links), coupled_motors=tuple(motors))


# ---------------------------------------------------------------------- verdict

def _assess(before: Robot, found: Robot, problem: IdentificationProblem, models: list[FrictionModel], whole: BaseParameters,
            prior: np.ndarray, least: WeightedFit, near: NearestValues) -> Fit:
    """Return the robot found with its errors."""
    joints = list(problem.joints)
    tau = [of.data.tau[:, joints] for of in problem.recordings]
    residuals = [_residuals(found, of)[:, joints] for of in problem.recordings]
    urdf = [_residuals(before, of)[:, joints] for of in problem.recordings]
    fitted = np.concatenate([error[:of.split] for of, error in zip(problem.recordings, residuals, strict=True)])
    validated = np.concatenate([error[of.split:] for of, error in zip(problem.recordings, residuals, strict=True)])
    urdf_error = np.concatenate([error[of.split if len(validated) else 0:] for of, error
                                 in zip(problem.recordings, urdf, strict=True)])
    coupled = {frozenset(motor.coordinates) for motor in found.model.coupled_motors if len(motor.coordinates) > 1}
    qd, qdd = (np.concatenate([block[:, joints] for block in blocks])
               for blocks in zip(*((of.data.qd, of.data.qdd) for of in problem.recordings), strict=True))
    names = [found.joint_names[k] for k in joints]
    suspected = [one for one in suspected_couplings(qd, qdd, np.concatenate(residuals), names)
                 if frozenset(map(found.joint_names.index, one.joints)) not in coupled]
    values_ = whole.grouping @ near.parameters
    cost = float(np.mean(np.log(least.errors(values_) / least.errors(least.x))))
    return Fit(found, before, whole, (), np.concatenate((prior, np.full(len(whole) - len(prior), np.nan))), least.x,
               np.sqrt(np.diagonal(least.covariance)), values_, tuple(models), problem.joints, _rms(np.concatenate(tau)),
               _rms(urdf_error), _rms(fitted), _rms(validated), _rms(validation_residuals(problem, models, least.x)), cost,
               near.active_constraints, least.information, problem.recordings, least.tau.size,
               suspected=tuple(suspected))


def suspected_couplings(qd: np.ndarray, qdd: np.ndarray, errors: np.ndarray, names: Sequence[str]) -> list[SuspectedCoupling]:
    """Return the pairs of joints whose errors (samples, joints) one motor explains that turns with both.

    Its inertia, Coulomb and viscous friction act on both joints alike, at the sum or the difference of their velocities qd and
    accelerations qdd (samples, joints), beside a correction of each joint's own terms. A pair counts if its friction
    dissipates energy, and if it reduces the error of one joint by SUSPICIOUS, and that of the other one too.
    """
    step = max(len(qd) // TUNING.max_coupling_samples, 1)
    qd, qdd, errors = qd[::step], qdd[::step], errors[::step]
    scale, found = np.maximum(_rms(errors), np.finfo(float).tiny), list[SuspectedCoupling]()

    def terms(speed: np.ndarray, acceleration: np.ndarray) -> np.ndarray:
        smoothing = max(SMOOTHING[2] * float(np.abs(speed).max(initial=0.0)), np.finfo(float).tiny)
        return np.column_stack((np.tanh(speed / smoothing), speed, acceleration))

    own = [np.column_stack((terms(v, a), np.ones(len(v)))) for v, a in zip(qd.T, qdd.T, strict=True)]
    nothing = np.zeros((len(qd), 4))
    for a, b in itertools.combinations(range(len(names)), 2):
        y = np.concatenate((errors[:, a] / scale[a], errors[:, b] / scale[b]))
        alone = np.vstack((np.hstack((own[a], nothing)) / scale[a], np.hstack((nothing, own[b])) / scale[b]))
        before = _rms((y - alone @ np.linalg.lstsq(alone, y, rcond=None)[0]).reshape(2, -1).T)
        for sign in (1, -1):
            coupled = terms(qd[:, a] + sign * qd[:, b], qdd[:, a] + sign * qdd[:, b])
            A = np.hstack((np.vstack((coupled / scale[a], sign * coupled / scale[b])), alone))
            x = np.linalg.lstsq(A, y, rcond=None)[0]
            factors = before / np.maximum(_rms((y - A @ x).reshape(2, -1).T), 1e-9)
            dissipates = float(np.mean(coupled[:, 1] * (coupled[:, :2] @ x[:2]))) > 0.0
            if dissipates and factors.max() > TUNING.min_coupling_factor and factors.min() > 1.0:
                found.append(SuspectedCoupling((names[a], names[b]), sign, (float(factors[0]), float(factors[1]))))
    return sorted(found, key=lambda one: -max(one.factors))


def _residuals(robot: Robot, of: FitRecording) -> np.ndarray:
    data: PreparedRecording = of.data
    return data.tau - _carrying(robot, of.payloads).inverse_dynamics(data.q, data.qd, data.qdd)


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(x**2, axis=0)) if len(x) else np.full(x.shape[1], np.nan)
