"""A robot fitted to a recording so that a user need not know how: derivatives, filter, weights, friction and bodies chosen.

    tau_k = Y_k beta + F_k c_k + noise of joint k

beta: base parameters with rotors' inertia; c_k: friction of joint k, of the model that foretells best (friction_choice.py).
1. preparation.py has each reading once, with velocity and acceleration; joint_equations.py filters and thins the equations;
2. beta and c by least squares (weighted_fit.py), weights by joint from the residuals and from how long these stay alike;
   base parameters that the motion hardly shows are held near the URDF's by a standard deviation of their size (WEAK);
3. of all robots that are bodies with friction that brakes, one nearest to that, by how well each direction is known, and as
   near to the URDF's bodies as WORSE leaves room for (physical_consistency.py): what nothing shows is the URDF's.
The last part of the recording takes no part in any of this: it is foretold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..errors import InputError
from ..estimation.preparation import Prepared, prepare
from ..inertial.base_parameters import BaseParameters, base_parameters
from ..inertial.inertial_parameters import Parameter, inertia, values
from ..model.effort_convention import EffortConvention, Efforts
from ..model.tree import Model, frozen
from ..robots.inputs import validation
from ..robots.inputs.payload import unified
from ..robots.robot import Robot
from .drive_gains import Gains, guess, refined
from .friction import BY_SPEED, LOAD, OFFSET, FrictionModel, candidates, first, loaded
from .friction_choice import choose
from .identification import Measurements
from .joint_equations import Recorded, Rows, equations, foretold, measured, with_loads
from .physical_consistency import NearestValues, nearer
from .regressor_kernel import Regressor
from .weighted_fit import WeightedFit, solve

ROTOR = "Ia"
RATE = 25.0  # equations per second and joint
WEAK = 3.0  # of the size of a base parameter: the standard deviation with which it is the URDF's
HELD_OUT = 0.3  # of the recording
UNEXPLAINED = 0.3  # of the logarithm of the error
SMALL, LARGE = 0.02, 0.5  # of the torque
ROUNDS = 2  # of loads and bodies
WORSE = 0.01  # of the error: what bodies like the URDF's may cost


@dataclass(frozen=True, eq=False)
class Fit:
    """A physically possible robot that explains a recording, and how well.

    robot         : with the bodies, rotors and friction found
    base          : base parameters and friction terms; beta, std: their values, by least squares alone, with standard
                    deviations; before: those of the URDF; possible: those of `robot`
    friction      : the model of each measured joint
    joints        : numbers of the measured joints, to which the columns of what follows belong
    signal, trained, foretold : rms of the torque, and of its error where it was fitted and where it was left out
    unbound       : the same of the last, of least squares, which bodies need not have; NaN if nothing was left out
    cost          : by how much bodies and friction that brakes make the error larger, logarithm in the mean over joints
    thin          : names of bodies and terms at the edge of what is possible
    information   : of the equations: inverse of the covariance of beta, without what holds it near the URDF
    prepared, split : the recording as it was used, in torques, and the first sample that was left out
    gains         : of drives, if they were unknown
    """

    robot: Robot
    base: BaseParameters
    before: np.ndarray
    beta: np.ndarray
    std: np.ndarray
    possible: np.ndarray
    friction: tuple[FrictionModel, ...]
    joints: tuple[int, ...]
    signal: np.ndarray
    trained: np.ndarray
    foretold: np.ndarray
    unbound: np.ndarray
    cost: float
    thin: tuple[str, ...]
    information: np.ndarray
    prepared: Prepared
    split: int
    equations: int
    gains: Gains | None = None

    @property
    def explained(self) -> bool:
        """Whether a physical robot explains the recording: its error is that of least squares, or small; and never large."""
        left = np.linalg.norm(np.fmax(self.trained, self.foretold)) / (np.linalg.norm(self.signal) or 1.0)
        return bool(left < LARGE) and (self.cost < UNEXPLAINED or bool((self.trained < SMALL * self.signal).all()))


def fit(robot: Robot, recording: Measurements, held_out: float = HELD_OUT, rate: float = RATE,
        window: float | None = None, currents: bool = False) -> Fit:
    """The robot that a recording shows. robot: its geometry, and bodies that what is not shown is taken from.

    recording : t, q, tau as robot.model.efforts.measured has it; qd and qdd count if both are there. A column of NaN in
                tau: that joint is not measured
    held_out  : share of the recording, at its end, that is not used
    rate      : equations per second and joint
    window    : of polynomials instead of Kalman smoothing, see estimate_recording [s]
    currents  : tau holds currents, or torques before gears, whose gains are unknown too; robot.model.efforts.measured of
                the robot found has them
    """
    validation.held_base(robot.model)
    if not 0.0 <= held_out <= 0.9 or not rate > 0.0:
        raise InputError(f"held_out is {held_out}, rate {rate}; 0 to 0.9, and a number above zero are needed")
    joints, q, tau = measured(robot, recording)
    qd, qdd = (None if block is None else np.asarray(block, dtype=float) for block in (recording.qd, recording.qdd))
    prepared = prepare(recording.t, q, np.nan_to_num(tau), qd, qdd, window, robot.joint_types, robot.joint_names)
    data = _read(robot, prepared, currents)
    body = _without_friction(unified(robot.model, tuple(robot.payloads.values())))
    base = base_parameters(body, robot.gravity_vector, (ROTOR,), free_root=False)
    regressor = Regressor(Robot(body, robot.backend, robot.gravity_vector), [base.parameters[k] for k in base.kept])
    given = Recorded(base, regressor, data, round((1.0 - held_out) * len(data.t)), joints)
    rows, listed = equations(given, rate), values(body, base.parameters)
    prior, weak = base.grouping @ listed, _weak(base, listed)
    gains = None
    if currents:
        begin = [first(speed) for speed in given.speeds.tolist()]
        gains = refined(rows, begin, prior, weak, guess(rows, begin, prior))
    speeds = given.speeds.tolist()
    models = choose(_in_torques(rows, gains), [list(candidates(v)) for v in speeds], [first(v) for v in speeds], prior, weak)
    if gains:
        gains = refined(rows, models, prior, weak, gains.values)
        rows, given = _in_torques(rows, gains), given._replace(data=_with_gains(data, joints, gains))
    models, least = _by_load(given, rows, rate, models, prior, weak)
    whole = _with_friction(robot, given, models)
    start = np.concatenate((_with_rotors(base, listed, least.x), _brakes(models, least.x[len(base):])))
    near = _likely(list(nearer(start, whole, least.x, least.covariance)), whole, least)
    model = replace(_model(body, given, models, near.parameters), efforts=_efforts(robot, joints, gains))
    found = Robot(model, robot.backend, robot.gravity_vector)
    return replace(_judged(found, given, models, whole, prior, least, near), gains=gains)


def _by_load(given: Recorded, rows: Rows, rate: float, models: list[FrictionModel], prior: np.ndarray,
             weak: np.ndarray) -> tuple[list[FrictionModel], WeightedFit]:
    """With friction by load where that foretells better. Loads are those of the bodies found, so both are found in turns."""
    least, b = solve(rows, models, prior, weak), len(prior)
    rows = with_loads(given, rows, rate, least.x[:b])
    others = [list(loaded(v, torque)) for v, torque in zip(given.speeds.tolist(), _rms(rows.tau).tolist(), strict=True)]
    models = choose(rows, others, models, prior, weak)
    least = solve(rows, models, prior, weak)
    for _ in range(ROUNDS if any(model.load_smoothing for model in models) else 0):
        least = solve(with_loads(given, rows, rate, least.x[:b]), models, prior, weak)
    return models, least


def _read(robot: Robot, data: Prepared, currents: bool) -> Prepared:
    """Efforts as the robot file means them, in torques; those whose gains are to be found stay as they are."""
    if not currents:
        return replace(data, tau=robot.measured_torque(data.tau, data.q, data.qd))
    if (contains := robot.model.efforts.measured.contains) != "total":
        raise InputError(f"the robot file says that measured efforts are {contains}; gains are found of efforts that hold all "
                         "that the motors do: total")
    return data


def _efforts(robot: Robot, joints: tuple[int, ...], gains: Gains | None) -> Efforts:
    """What efforts mean, by the gains that were found."""
    if not gains:
        return robot.model.efforts
    per_unit = np.ones(robot.n)
    per_unit[list(joints)] = gains.values
    return robot.model.efforts._replace(measured=EffortConvention("total", "current", tuple(per_unit.tolist())))


def _in_torques(rows: Rows, gains: Gains | None) -> Rows:
    return rows._replace(tau=rows.tau * gains.values) if gains else rows


def _with_gains(data: Prepared, joints: tuple[int, ...], gains: Gains) -> Prepared:
    """The recording in torques."""
    tau = data.tau.copy()
    tau[:, list(joints)] *= gains.values
    return replace(data, tau=tau)


def _judged(found: Robot, given: Recorded, models: list[FrictionModel], whole: BaseParameters, prior: np.ndarray,
            least: WeightedFit, near: NearestValues) -> Fit:
    """The robot beside the recording."""
    data, split, joints = given.data, given.split, list(given.joints)
    tau, possible = data.tau[:, joints], whole.grouping @ near.parameters
    error = tau - found.inverse_dynamics(data.q, data.qd, data.qdd)[:, joints]
    unbound = tau[split:] - foretold(given, models, least.x)
    cost = float(np.mean(np.log(least.errors(possible) / least.errors(least.x))))
    before = np.concatenate((prior, np.full(len(whole) - len(prior), np.nan)))
    return Fit(found, whole, before, least.x, np.sqrt(np.diagonal(least.covariance)), possible, tuple(models), given.joints,
               _rms(tau), _rms(error[:split]), _rms(error[split:]), _rms(unbound), cost, near.thin, least.information, data,
               split, least.tau.size)


def _without_friction(model: Model) -> Model:
    bare = dict.fromkeys(("coulomb", "viscous", "offset", "stribeck", "asymmetry", "load_dependent"), 0.0)
    return replace(model, links=tuple(replace(link, term=replace(link.term, **bare)) for link in model.links))


def _weak(base: BaseParameters, prior: np.ndarray) -> np.ndarray:
    """(b,) Standard deviations of base parameters about the URDF's. Of rotors a URDF knows nothing: the robot's inertia."""
    size = np.maximum(np.abs(base.grouping) @ np.abs(prior), 1e-3 * np.abs(prior).max(initial=1e-3))
    rotors = np.array([base.parameters[k].kind == ROTOR for k in base.kept])
    inertias = size[[unit in ("kg m^2", "kg") for unit in base.units]]
    return WEAK * np.where(rotors, inertias.max(initial=0.0), size)


def _with_rotors(base: BaseParameters, prior: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The URDF's parameters, with rotors as least squares found them, where that has found any."""
    found = prior.copy()
    for k, value in zip(base.kept, x, strict=False):
        if base.parameters[k].kind == ROTOR:
            found[k] = max(float(value), prior[k])
    return found


def _rms(x: np.ndarray) -> np.ndarray:
    return np.sqrt(np.mean(x**2, axis=0)) if len(x) else np.full(x.shape[1], np.nan)


def _likely(path: list[NearestValues], base: BaseParameters, least: WeightedFit) -> NearestValues:
    """The first on the way from the URDF to the measurement that explains the recording nearly as well as the last."""
    scores = [float(np.mean(np.log(least.errors(base.grouping @ step.parameters)))) for step in path]
    return next(step for step, score in zip(path, scores, strict=True) if score <= min(scores) + WORSE)


def _with_friction(robot: Robot, given: Recorded, models: list[FrictionModel]) -> BaseParameters:
    """Base parameters and friction terms in one list."""
    base = given.base
    numbers = {link.joint: k for k, link in enumerate(robot.model.links) if link.joint}
    more = []
    for joint, model in zip(given.joints, models, strict=True):
        name = robot.joint_names[joint]
        force, speed = ("N", "m/s") if robot.joint_types[joint] == "prismatic" else ("N m", "rad/s")
        units = {LOAD: "", **dict.fromkeys(BY_SPEED, f"{force}/({speed})")}
        more += [Parameter(numbers[name], kind, name, units.get(kind, force)) for kind in model.kinds]
    count, terms = len(base.parameters), len(more)
    grouping = np.zeros((len(base) + terms, count + terms))
    grouping[:len(base), :count], grouping[len(base):, count:] = base.grouping, np.eye(terms)
    return BaseParameters((*base.parameters, *more), (*base.kept, *range(count, count + terms)), grouping)


def _brakes(models: list[FrictionModel], found: np.ndarray) -> np.ndarray:
    """Friction to begin with: what least squares found, where it is none that drives."""
    kinds = [kind for model in models for kind in model.kinds]
    return np.where(np.array(kinds) == OFFSET, found, np.maximum(found, 1e-3 * np.abs(found).max(initial=1e-3)))


def _model(model: Model, given: Recorded, models: list[FrictionModel], found: np.ndarray) -> Model:
    """With bodies and rotors (the first of what was found) and friction (the rest)."""
    by_link: dict[int, dict[str, float]] = {}
    for parameter, value in zip(given.base.parameters, found, strict=False):
        by_link.setdefault(parameter.link, {})[parameter.kind] = float(value)
    friction, rest = {}, found[len(given.base.parameters):]
    for joint, choice in zip(given.joints, models, strict=True):
        own, rest = rest[:len(choice.kinds)], rest[len(choice.kinds):]
        friction[model.joint_names[joint]] = choice.terms(own)
    links = list(model.links)
    for number, values_ in by_link.items():
        link, (m, ms, J) = links[number], inertia(values_)
        term = replace(link.term, rotor_inertia=values_[ROTOR] / link.term.gear_ratio**2, **friction.get(link.joint, {}))
        links[number] = replace(link, m=float(m), ms=frozen(ms), J=frozen(J), term=term)
    return replace(model, links=tuple(links))
