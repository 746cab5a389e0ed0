"""Constraints along a path: torque, torque rate and all other limits as functions of (s, sd, sdd, sddd).

On a path q(s), with ' = d/ds,

    qd   = q' sd
    qdd  = q'' sd^2  + q' sdd
    qddd = q''' sd^3 + 3 q'' sd sdd + q' sddd

so the torque of a rigid robot with viscous friction Fv, tau = M qdd + C(q, qd) qd + Fv qd + gravity, and its time derivative
are

    tau      = m sdd  + c sd^2 + f sd + g                                            m = M q',  f = Fv q'
    tau_rate = m sddd + b sd sdd + c' sd^3 + f' sd^2 + f sdd + g' sd                 c = M q'' + C(q, q') q',  b = m' + 2 c

(differentiate the first by time: m' sd sdd + m sddd + c' sd^3 + 2 c sd sdd + f' sd^2 + f sdd + g' sd). The eight coefficients
depend on s alone. No second formula is needed for them: with (qd, qdd, qddd) from chosen (sd, sdd, sddd) an exact rate
function gives

    (sd, sdd, sddd)      tau          tau_rate
    ( 0, 0, 1)           g            m
    ( 1, 0, 0)           c + f + g    c' + f' + g'
    (-1, 0, 0)           c - f + g   -c' + f' - g'
    ( 2, 0, 0)                        8 c' + 4 f' + 2 g'
    ( 1, 1, 0)                        b + c' + f' + f + g'

Every limit is then a constraint: a sum of (1, sd, sd^2, sdd, sd^3, sd sdd, sddd), the basis, must stay within -1 and 1. Its
coefficients, divided by the limit, depend on s alone. Dahl and Nielsen (1990) use those of torque, as bounds on sdd at given
(s, sd); Gerelli and Guarino Lo Bianco (2008, 2011) those of the torque rate, as bounds on sddd at given (s, sd, sdd).

A law s = S(sigma) that is played at a rate k = d sigma / dt is again a path, q(S(sigma)), and its constraint coefficients
follow from those of q(s): `substitute_law`. Played at a constant rate, each constraint is a cubic polynomial of that rate.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..codegen.kernel import Tiles
from ..codegen.program import larger
from ..errors import InputError, some
from .path import Path
from .sample_kernels import SampleFunction

BASIS_SIZE = 7  # 1, sd, sd^2, sdd, sd^3, sd sdd, sddd
RATE_POWERS = (0, 1, 2, 2, 3, 3, 3)  # power of the rate that a motion is played at, in each element of the basis
TIMES_SPEED = {0: 1, 1: 2, 2: 4, 3: 5}  # column of a torque coefficient -> column of that times sd
BASIS_COLUMNS = {"effort": (0, 1, 2, 3), "effort_rate": (1, 2, 3, 4, 5, 6), "velocity": (1,), "acceleration": (2, 3),
                 "jerk": (4, 5, 6), "commanded_effort_rate": (1, 2, 3, 4, 5, 6)}  # columns with coefficients
QUANTITIES = tuple(BASIS_COLUMNS)
EXCLUDED_COLUMNS = {"total": (), "without_gravity": (1,), "without_gravity_and_friction": (1, 2, 3)}  # of g', and of f', f
SAMPLES_PER_BLOCK = 2000  # about; coefficients of a block fit into the processor's cache

Rate = Callable[[Any, Any, Any, Any], tuple[Any, Any]]  # (q, qd, qdd, qddd) -> tau, tau_rate


class TorqueTerms(NamedTuple):
    """Coefficients of torque and torque rate along a path, (samples, n) each."""

    m: Any
    c: Any
    f: Any
    g: Any
    b: Any
    c1: Any  # c'
    f1: Any  # f'
    g1: Any  # g'


def torque_terms(rate: Rate, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
    """Return the coefficients from five evaluations of an exact rate function at q, q', q'', q'''; for any scalar."""
    zero = q * 0.0
    g, m = rate(q, zero, zero, q1)
    forth, rate_forth = rate(q, q1, q2, q3)
    back, rate_back = rate(q, -q1, q2, -q3)
    _, rate_double = rate(q, q1 * 2.0, q2 * 4.0, q3 * 8.0)
    _, rate_both = rate(q, q1, q2 + q1, q3 + q2 * 3.0)
    g, m, forth, back, rate_forth, rate_back, rate_double, rate_both = map(
        np.asarray, (g, m, forth, back, rate_forth, rate_back, rate_double, rate_both))
    f, c = (forth - back) * 0.5, (forth + back) * 0.5 - g
    f1, odd = (rate_forth + rate_back) * 0.5, (rate_forth - rate_back) * 0.5  # odd = c' + g'
    c1 = (rate_double - f1 * 4.0 - odd * 2.0) * (1.0 / 6.0)
    return TorqueTerms(m, c, f, g, rate_both - rate_forth - f, c1, f1, odd - c1)


# ------------------------------------------------------------------------------------------------------- basis and shares


def basis_elements(sd: Any, sdd: Any, sddd: Any) -> Sequence[Any]:
    """Return what the constraint coefficients multiply."""
    return 1.0, sd, sd * sd, sdd, sd * sd * sd, sd * sdd, sddd


def basis_values(sd: Any, sdd: Any, sddd: Any) -> np.ndarray:
    """Return the basis (samples, 7)."""
    return np.stack(np.broadcast_arrays(*basis_elements(sd, sdd, sddd)), axis=-1)


def constraint_values(coefficients: np.ndarray, sd: Any, sdd: Any, sddd: Any) -> np.ndarray:
    """Return each constraint, allowed are -1 to 1, (samples, constraints), from coefficients (samples, 7, constraints)."""
    return (basis_values(sd, sdd, sddd)[..., None, :] @ coefficients)[..., 0, :]


def limit_shares(values: Any, offset: Any) -> Any:
    """Return the used share of each limit from the value of its constraint: 0 where the motion adds nothing to its offset."""
    away = values - offset
    return larger(away * (1.0 / (1.0 - offset)), away * (-1.0 / (1.0 + offset)))


def at_rate(polynomials: Any, rate: Any) -> Any:
    """Return the values of polynomials (4, ...) of the rate at a rate."""
    a0, a1, a2, a3 = polynomials
    return a0 + rate * (a1 + rate * (a2 + rate * a3))


def substitute_law(r: Any, v: Any, a: Any, u: Any) -> list[Any]:
    """Return the coefficients of q(S(sigma)) by column, from those of q(s) by column; v, a, u: derivatives of S.

    sd = v k, sdd = a k^2 + v kappa, sddd = u k^3 + 3 a k kappa + v w, with kappa = dk/dt and w = d kappa/dt.
    """
    r, square = {**dict.fromkeys(range(BASIS_SIZE), 0.0), **r}, v * v
    return [r[0], v * r[1], square * r[2] + a * r[3], v * r[3], square * v * r[4] + v * a * r[5] + u * r[6],
            square * r[5] + 3.0 * a * r[6], v * r[6]]


# ------------------------------------------------------------------------------------------------------------ drive limits

Coefficients = Mapping[str, Mapping[int, np.ndarray]]  # quantity -> column -> (n, samples)


class DriveLimitProtocol(Protocol):
    """Limit lower < 0 < upper of a sum of torque, torque rate, speed and power of joints; see model/drives.py."""

    @property
    def quantity(self) -> str: ...

    @property
    def joints(self) -> tuple[int, ...]: ...

    @property
    def lower(self) -> float: ...

    @property
    def upper(self) -> float: ...

    @property
    def description(self) -> str: ...


class DriveConstraints:
    """Limits of drives as constraints.

    Voltage, current and motor speed are linear in torque, torque rate and speed, so their constraint coefficients are the same
    sums of the coefficients of these three. Power is torque times speed: its coefficients are those of torque, one column
    further, at (sd, sd^2, sd^3, sd sdd) instead of (1, sd, sd^2, sdd).

    offset    : (limits,) constraint where the motion adds nothing: the middle between lower and upper limit is taken as zero
    remaining : (limits,) what Coulomb friction leaves of each limit; zero or less: nothing
    """

    def __init__(self, limits: Sequence[DriveLimitProtocol], factors: Mapping[str, np.ndarray], coulomb: np.ndarray):
        """Make the constraints of limits.

        factors : (limits, n) factors of "effort", "effort_rate", "velocity" and "power" of each joint on the path
        coulomb : (n,) largest Coulomb friction, which is not part of the torque's coefficients
        """
        self.limits, self._coulomb = tuple(limits), coulomb
        self._factors = {name: table for name, table in factors.items() if table.any()}
        taken = np.abs(factors["effort"]) @ coulomb
        lower, upper = (np.array([getattr(limit, end) for limit in self.limits]) for end in ("lower", "upper"))
        lower, upper = lower + taken, upper - taken
        self.remaining = np.minimum(-lower, upper)
        self._half_range = 0.5 * (upper - lower)
        self.offset = -0.5 * (upper + lower) / self._half_range
        self._half_range = np.where(self._half_range > 0.0, self._half_range, np.nan)

    @property
    def third_order(self) -> bool:
        """True if they bound torque rates."""
        return "effort_rate" in self._factors

    def bound_of(self, name: str) -> np.ndarray:
        """Return the bounds (n,) on "effort" or "effort_rate" of a joint where all else is zero; NaN if none limits it."""
        if name not in self._factors:
            return np.full(len(self._coulomb), np.nan)
        table = np.abs(self._factors[name])
        bounds = np.divide(self._half_range[:, None], table, out=np.full(table.shape, np.nan), where=table > 0.0)
        return np.fmin.reduce(bounds, axis=0)

    def coefficients(self, weights: Coefficients, q1: np.ndarray) -> np.ndarray:
        """Return (7, limits, samples), from the coefficients of effort, effort_rate and velocity, and q' (n, samples)."""
        found = np.zeros((BASIS_SIZE, len(self.limits), *q1.shape[1:]))
        for name, table in self._factors.items():
            if name == "power":
                for column, values in weights["effort"].items():
                    found[TIMES_SPEED[column]] += table @ (values * q1)
                found[1] += table @ (self._coulomb[:, None] * np.abs(q1))
            else:
                for column, values in weights[name].items():
                    found[column] += table @ values
        found /= self._half_range[:, None]
        found[0] += self.offset[:, None]
        return found


# ------------------------------------------------------------------------------------------------------------------ layout


class ConstraintGroup(NamedTuple):
    """Constraints with coefficients in the same columns of the basis: values (samples, columns, constraints)."""

    columns: tuple[int, ...]
    values: np.ndarray

    def used_columns(self) -> list[int]:
        """Return the numbers of the columns that are not zero, as friction's are without friction; at least one."""
        columns = (self.values[:, k] for k in range(len(self.columns)))
        return [k for k, column in enumerate(columns) if column[0].any() or column.any()] or [0]

    def widened(self, share: Any, offset: np.ndarray) -> ConstraintGroup:
        """Return the constraints of limits that are wider by a factor, up and down from where the motion adds nothing.

        share: (..., constraints) or one number
        """
        share = np.asarray(share)
        found = self.values / (share[..., None, :] if share.ndim else share)
        if 0 in self.columns:
            found[..., self.columns.index(0), :] += offset * (1.0 - 1.0 / share)
        return ConstraintGroup(self.columns, found)


class ConstraintLayout(NamedTuple):
    """Layout of the constraints: which limits there are. Its functions take one sample and are compiled for many.

    Their inputs are blocks of scalars: q1, q2, q3 of every joint, v, a, u of the law that is substituted, 1 / limit of every
    known limit, and where there are dynamics the eight TorqueTerms of every joint.

    known            : numbers of the joints with a known limit, for each of QUANTITIES
    excluded_columns : columns that a limit of commanded effort rate leaves out
    """

    n: int
    known: tuple[tuple[int, ...], ...]
    excluded_columns: tuple[int, ...]
    dynamics: bool

    @property
    def inputs(self) -> dict[str, int]:
        """Sizes of the inputs."""
        return {**dict.fromkeys(("q1", "q2", "q3"), self.n), **dict.fromkeys("vau", 1), "inverse": sum(map(len, self.known)),
                **(dict.fromkeys(TorqueTerms._fields, self.n) if self.dynamics else {})}

    def columns(self, drives: DriveConstraints | None) -> list[tuple[int, ...]]:
        """Return the columns of each group."""
        own = [tuple(column for column in BASIS_COLUMNS[name]
                     if name != "commanded_effort_rate" or column not in self.excluded_columns)
               for name, known in zip(QUANTITIES, self.known) if known]
        return own + [tuple(range(BASIS_SIZE))] * bool(drives)

    def coefficients_on_law(self, drives: DriveConstraints | None, v: Any, a: Any, u: Any, **given: Any) -> list[Any]:
        """Return the coefficients (columns, constraints) of each group, for q(S(sigma))."""
        found = []
        for columns, values in zip(self.columns(drives), self.coefficients(drives, **given)):
            r = substitute_law(dict(zip(columns, values)), v[0], a[0], u[0])
            found.append(np.stack([r[column] for column in columns]))
        return found

    def rate_polynomials(self, drives: DriveConstraints | None, v: Any, a: Any, u: Any, **given: Any) -> list[Any]:
        """Return each constraint by the powers of a constant rate, (constraints, 4)."""
        basis, found = basis_elements(v[0], a[0], u[0]), []
        for columns, values in zip(self.columns(drives), self.coefficients(drives, **given)):
            powers = [values[0] * 0.0] * 4
            for column, value in zip(columns, values):
                if isinstance(basis[column], np.ndarray) and not basis[column].any():
                    continue  # numbers of a motion in time: two of three are zero
                powers[RATE_POWERS[column]] = powers[RATE_POWERS[column]] + value * basis[column]
            found.append(np.stack(powers, axis=1))
        return [np.concatenate(found)]

    def coefficients(self, drives: DriveConstraints | None, q1: Any, q2: Any, q3: Any, inverse: Any,
                     **terms: Any) -> list[Any]:
        """Return the coefficients (columns, constraints) of each group, for q(s)."""
        weights = {"velocity": {1: q1}, "acceleration": {2: q2, 3: q1}, "jerk": {4: q3, 5: 3.0 * q2, 6: q1}}
        if terms:
            t = TorqueTerms(**terms)
            weights["effort"] = {0: t.g, 1: t.f, 2: t.c, 3: t.m}
            weights["effort_rate"] = {1: t.g1, 2: t.f1, 3: t.f, 4: t.c1, 5: t.b, 6: t.m}
            weights["commanded_effort_rate"] = weights["effort_rate"]
        found, begin = [], 0
        limited = [(name, list(known)) for name, known in zip(QUANTITIES, self.known) if known]
        for (name, known), columns in zip(limited, self.columns(None)):
            scale, begin = inverse[begin:begin + len(known)], begin + len(known)
            found.append(np.stack([weights[name][column][known] * scale for column in columns]))
        return found + ([drives.coefficients(weights, q1)] if drives else [])


@lru_cache(maxsize=64)
def _compiled(layout: ConstraintLayout, function: Callable[..., Any]) -> SampleFunction:
    """Return a function of a layout without drives, for many samples."""
    return SampleFunction(partial(function, layout, None), layout.inputs)


def _with_drives(layout: ConstraintLayout, function: Callable[..., Any], drives: DriveConstraints) -> SampleFunction:
    """Return the same with drives. Not compiled: their numbers would be part of the kernel."""
    return SampleFunction(partial(function, layout, drives), layout.inputs, compiled=False)


# -------------------------------------------------------------------------------------------------------------- constraints


class PathLimits(NamedTuple):
    """Limits (n,) of the joints, equal in both directions; NaN is unknown and not enforced."""

    effort: Any
    effort_rate: Any
    velocity: Any
    acceleration: Any
    jerk: Any
    commanded_effort_rate: Any = np.nan


class Constraints:
    """All limits along a path, as constraint coefficients.

    labels   : (joint number, quantity) of every constraint; joint -1 where several share it
    own      : number of the constraints of joints; those of drives follow
    unknown  : (joint number, quantity) of every limit that is unknown and not enforced; of effort_rate and
               commanded_effort_rate one is enough
    offset   : (constraints,) constraint where the motion adds nothing: the middle between limits that differ up and down is
               taken as zero
    """

    def __init__(self, path: Path, dynamics: Callable[..., TorqueTerms] | None, limits: Any,
                 joint_names: Sequence[str] | None = None, drives: DriveConstraints | None = None,
                 commanded: str = "total", velocity: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None):
        """Make the constraints of limits along a path. Raises InputError.

        dynamics  : (q, q', q'', q''') (samples, n) each -> TorqueTerms; None if efforts and their rates are not limited
        limits    : object with the fields of PathLimits
        drives    : limits of drives beside these
        commanded : content of the torques whose rate commanded_effort_rate limits: "total", "without_gravity" or
                    "without_gravity_and_friction"; effort_rate always limits the rate of the whole torque
        velocity  : function of q and q' (samples, n) each to velocity limits (samples, n) there and in that direction, above
                    zero; None: those of limits
        """
        self.path, self.dynamics = path, dynamics
        self.joint_names = tuple(joint_names or (f"joint {k + 1}" for k in range(path.n)))
        if len(self.joint_names) != path.n:
            raise InputError(f"the path has {path.n} joints, the robot {len(self.joint_names)}: {some(self.joint_names)}")
        self.limits = PathLimits(*(self._checked(name, getattr(limits, name)) for name in QUANTITIES))
        known = tuple(tuple(np.flatnonzero(np.isfinite(limit)).tolist()) for limit in self.limits)
        self._layout = ConstraintLayout(path.n, known, EXCLUDED_COLUMNS[commanded], dynamics is not None)
        self.drives = drives
        drive_limits = drives.limits if drives else ()
        if dynamics is None and (any(known[:2]) or known[-1] or drive_limits):
            raise InputError("limits of effort, effort rate and drives need the robot's dynamics")
        own = tuple((k, name) for name, joints in zip(QUANTITIES, known) for k in joints)
        self.labels = own + tuple((limit.joints[0] if len(limit.joints) == 1 else -1, limit.quantity)
                                  for limit in drive_limits)
        self.offset = np.concatenate((np.zeros(len(own)), drives.offset if drives else ()))
        self.own = len(own)
        rates = {(k, "effort_rate") for k in known[-1]}  # one of the two limits of rates is enough
        self.unknown = tuple((k, name) for name in QUANTITIES[:-1] for k in range(path.n) if (k, name) not in {*own, *rates})
        if not self.labels:
            raise InputError("not one limit is known: the fastest motion is unlimited; give at least one limit")
        self._velocity = velocity

    def _checked(self, name: str, value: Any) -> np.ndarray:
        limit = np.asarray(value, dtype=float)
        if name == "commanded_effort_rate" and not limit.ndim:  # left out
            limit = np.full(self.path.n, limit)
        if limit.shape != (self.path.n,):
            raise InputError(f"{name} limits have shape {limit.shape}; {self.path.n} are needed, NaN where unknown")
        if (limit <= 0.0).any():
            joint = self.joint_names[int(np.argmax(limit <= 0.0))]
            raise InputError(f"{name} limit of {joint} is {limit[limit <= 0.0][0]}; it must be above zero, NaN where unknown")
        return limit

    @property
    def third_order(self) -> bool:
        """True if sddd is bounded: a motion can then not start with a jump of sdd."""
        third = any(quantity in ("effort_rate", "jerk", "commanded_effort_rate") for _, quantity in self.labels[:self.own])
        return third or bool(self.drives and self.drives.third_order)

    @property
    def second_order(self) -> bool:
        """True if sdd is bounded."""
        return any(quantity != "velocity" for _, quantity in self.labels)

    def __call__(self, s: Any) -> np.ndarray:
        """Return the constraint coefficients (samples, 7, constraints) at s (samples,)."""
        one, zero = np.ones(len(s)), np.zeros(len(s))
        return self.coefficients_on_law(s, one, zero, zero)

    def coefficients_on_law(self, s: Any, v: Any, a: Any, u: Any) -> np.ndarray:
        """Return the constraint coefficients (samples, 7, constraints) of q(S(sigma)), by the derivatives v, a, u of S."""
        groups, begin = self.groups_on_law(s, v, a, u), 0
        found = np.zeros((len(groups[0].values), BASIS_SIZE, len(self.labels)))
        for columns, values in groups:
            end = begin + values.shape[2]
            found[:, columns, begin:end] = values
            begin = end
        return found

    def groups_on_law(self, s: Any, v: Any, a: Any, u: Any, share: float = 1.0) -> list[ConstraintGroup]:
        """Return the same coefficients without zeros: in groups with the same columns, constraints in their order.

        share: of the limits that is allowed
        """
        columns, motion = self._layout.columns(self.drives), (np.asarray(x)[:, None] for x in (v, a, u))
        found = self._evaluate_at(ConstraintLayout.coefficients_on_law, self.path(s), *motion, share=share)
        groups = [ConstraintGroup(group, np.require(values, requirements="W")) for group, values in zip(columns, found)]
        if self.drives:
            groups[-1] = groups[-1].widened(share, self.drives.offset)
        return groups

    @property
    def sizes(self) -> list[int]:
        """Number of constraints in each group."""
        sizes = [*map(len, self._layout.known), len(self.labels) - self.own]
        return [size for size in sizes if size]

    def rate_polynomials(self, motion: np.ndarray) -> np.ndarray:
        """Return each constraint by the powers 0 to 3 of the constant rate at which a motion is played.

        motion : s, sd, sdd, sddd (4, samples); the result is (samples, constraints, 4)
        """
        found = [self._evaluate(ConstraintLayout.rate_polynomials, *block)[0] for block in split_samples(motion)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def tiled_rate_polynomials(self, motion: np.ndarray) -> Tiles:
        """Return the same (constraints x 4) as tiles, for not many more than SAMPLES_PER_BLOCK."""
        s, *rates = motion
        path, count = self.path.tiled(s), len(s)
        limits = None if self._velocity is None else self._velocity(path[0].samples, path[1].samples)
        terms: Any = ()
        if self.dynamics is not None:
            tiled = getattr(self.dynamics, "tiled", None)
            terms = tiled(*path) if tiled else self.dynamics(*(block.samples for block in path))
        blocks = [*path[1:], *(x[:, None] for x in rates), self._inverse_limits(limits, count), *terms]
        (found,) = self._many(ConstraintLayout.rate_polynomials).tiled(blocks, count)
        return found

    @property
    def lanes(self) -> int:
        """Samples in a tile."""
        return self._many(ConstraintLayout.rate_polynomials).lanes

    def time_polynomials(self, q: np.ndarray) -> np.ndarray:
        """Return the same for a path whose s is the time, from q, q', q'', q''' (4, samples, n) of a few samples."""
        return self._evaluate_at(ConstraintLayout.rate_polynomials, q, np.ones(1), np.zeros(1), np.zeros(1))[0]

    def on(self, path: Path, dynamics: Callable[..., TorqueTerms] | None) -> Constraints:
        """Return the same limits along another path. dynamics: those prepared for it."""
        found = copy.copy(self)
        found.path, found.dynamics = path, dynamics
        return found

    def _evaluate(self, function: Callable[..., Any], s: Any, v: Any, a: Any, u: Any) -> tuple[np.ndarray, ...]:
        """Evaluate a function of ConstraintLayout at samples."""
        return self._evaluate_at(function, self.path(s), *(np.asarray(x)[:, None] for x in (v, a, u)))

    def _evaluate_at(self, function: Callable[..., Any], motion: np.ndarray, *law: np.ndarray,
                     share: float = 1.0) -> tuple[np.ndarray, ...]:
        """Evaluate it from q, q', q'', q''' (4, samples, n), and v, a, u (samples, 1) each, or (1,) for all samples.

        share: of the limits of joints that is allowed
        """
        velocity, count = None if self._velocity is None else self._velocity(*motion[:2]), len(motion[0])
        blocks = [*motion[1:], *law, self._inverse_limits(velocity, count) / share,
                  *(() if self.dynamics is None else self.dynamics(*motion))]
        return self._many(function)(blocks, count)

    def _inverse_limits(self, velocity: np.ndarray | None, count: int) -> np.ndarray:
        """Return 1 / limit of all known limits, (limits,), or (count, limits) with velocity limits (count, n) by position."""
        limits = self.limits if velocity is None else self.limits._replace(velocity=velocity)
        inverse = [1.0 / limit[..., list(known)] for limit, known in zip(limits, self._layout.known)]
        if velocity is not None:
            inverse = [np.broadcast_to(values, (count, values.shape[-1])) for values in inverse]
        return np.concatenate(inverse, axis=-1)

    def _many(self, function: Callable[..., Any]) -> SampleFunction:
        """Return a function of ConstraintLayout for many samples."""
        return _with_drives(self._layout, function, self.drives) if self.drives else _compiled(self._layout, function)

    def utilization(self, motion: np.ndarray) -> np.ndarray:
        """Return the used share of each limit (samples, constraints) for a motion s, sd, sdd, sddd (4, samples)."""
        found = []
        for block in split_samples(motion):
            polynomials = self.tiled_rate_polynomials(block)
            powers = polynomials.data.reshape(-1, len(self.labels), 4, polynomials.lanes)
            values = powers[:, :, 0] + powers[:, :, 1] + powers[:, :, 2] + powers[:, :, 3]  # faster than a sum over an axis
            found.append(limit_shares(values.swapaxes(1, 2).reshape(-1, len(self.labels))[:polynomials.count], self.offset))
        return np.concatenate(found)

    def describe(self, number: int) -> str:
        """Return the name of a constraint for users."""
        if self.drives and number >= self.own:
            return self.drives.limits[number - self.own].description
        joint, quantity = self.labels[number]
        return f"{quantity.replace('_', ' ')} of {self.joint_names[joint]}"


def split_samples(motion: np.ndarray) -> list[np.ndarray]:
    """Split a motion (4, samples) into blocks of about SAMPLES_PER_BLOCK."""
    return np.array_split(motion, motion.shape[1] // SAMPLES_PER_BLOCK + 1, axis=1)
