"""What moving along a path asks of the joints: torque, torque rate and the other limits as functions of (s, sd, sdd, sddd).

On a path q(s), with ' = d/ds,

    qd   = q' sd
    qdd  = q'' sd^2  + q' sdd
    qddd = q''' sd^3 + 3 q'' sd sdd + q' sddd

so the torque of a rigid robot with viscous friction Fv, tau = M qdd + C(q, qd) qd + Fv qd + gravity, and its time derivative
are

    tau      = m sdd  + c sd^2 + f sd + g                                            m = M q',  f = Fv q'
    tau_rate = m sddd + b sd sdd + c' sd^3 + f' sd^2 + f sdd + g' sd                 c = M q'' + C(q, q') q',  b = m' + 2 c

(derive the first by time: m' sd sdd + m sddd + c' sd^3 + 2 c sd sdd + f' sd^2 + f sdd + g' sd). The eight coefficients depend
on s alone. No second formula is needed for them: with (qd, qdd, qddd) from a chosen (sd, sdd, sddd) an exact rate function
gives

    (sd, sdd, sddd)      tau          tau_rate
    ( 0, 0, 1)           g            m
    ( 1, 0, 0)           c + f + g    c' + f' + g'
    (-1, 0, 0)           c - f + g   -c' + f' - g'
    ( 2, 0, 0)                        8 c' + 4 f' + 2 g'
    ( 1, 1, 0)                        b + c' + f' + f + g'

Every limit is then a constraint: a sum of (1, sd, sd^2, sdd, sd^3, sd sdd, sddd) must stay within -1 and 1. Its coefficients,
divided by the limit, depend on s alone; those of all limits together are the rows of a matrix. Dahl and Nielsen (1990) use the
rows of torque, as bounds on sdd at given (s, sd); Gerelli and Guarino Lo Bianco (2008, 2011) those of the torque rate, as
bounds on sddd at given (s, sd, sdd).

A law s = S(sigma) that is played at a rate k = d sigma / dt is again a path, q(S(sigma)), and its constraint coefficients
follow from those of q(s): rows.on_law.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..codegen.ir.expression import larger
from ..errors import InputError, some
from . import rows as texts
from .drive_rows import DriveRows
from .path import Path
from .rows import BASIS, QUANTITIES, Group, Rows, Terms, compiled, with_drives

PART = 2000  # samples looked at together, about
ADDED = {"total": (), "without_gravity": (1,), "without_gravity_and_friction": (1, 2, 3)}  # places of g', and of f', f
Rate = Callable[[Any, Any, Any, Any], tuple[Any, Any]]  # (q, qd, qdd, qddd) -> tau, tau_rate


def terms(rate: Rate, q: Any, q1: Any, q2: Any, q3: Any) -> Terms:
    """From five evaluations of an exact rate function at q, q', q'', q'''; any scalar."""
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
    return Terms(m, c, f, g, rate_both - rate_forth - f, c1, f1, odd - c1)


class PathLimits(NamedTuple):
    """(n,) each, the same either way; NaN where unknown, and then not enforced. commanded_effort_rate may be left out."""

    effort: Any
    effort_rate: Any
    velocity: Any
    acceleration: Any
    jerk: Any
    commanded_effort_rate: Any = np.nan


class Constraints:
    """All limits along a path, as constraint coefficients.

    dynamics : (q, q', q'', q''') (samples, n) each -> Terms; None if there is no limit of effort or effort rate
    limits   : anything with the fields of Limits
    drives   : limits of drives beside these
    commanded: content of the torques whose rate commanded_effort_rate limits: "total", "without_gravity" or
               "without_gravity_and_friction"; effort_rate always limits the rate of the whole torque
    velocity : of q and q' (samples, n) each, the velocity limits (samples, n) there and that way, above zero; None: those of
               limits
    labels   : (joint number, quantity) of every constraint; joint -1 where several share it
    own      : how many of them are of joints; those of drives follow
    unknown  : the same of every limit that is not known and therefore not enforced; of effort_rate and commanded_effort_rate
               one is enough
    offset   : (constraints,) what the coefficients have at place 0 beside the motion's part: the middle between limits that
               differ up and down is taken as zero
    """

    def __init__(self, path: Path, dynamics: Callable[..., Terms] | None, limits: Any,
                 joint_names: Sequence[str] | None = None, drives: DriveRows | None = None,
                 commanded: str = "total", velocity: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None):
        self.path, self.dynamics = path, dynamics
        self.joint_names = tuple(joint_names or (f"joint {k + 1}" for k in range(path.n)))
        if len(self.joint_names) != path.n:
            raise InputError(f"the path has {path.n} joints, the robot {len(self.joint_names)}: {some(self.joint_names)}")
        self.limits = PathLimits(*(self._checked(name, getattr(limits, name)) for name in QUANTITIES))
        known = tuple(tuple(np.flatnonzero(np.isfinite(limit)).tolist()) for limit in self.limits)
        self._rows = Rows(path.n, known, ADDED[commanded], dynamics is not None)
        self.drives = drives
        limited = drives.limits if drives else ()
        if dynamics is None and (any(known[:2]) or known[-1] or limited):
            raise InputError("limits of effort, effort rate and drives need the robot's dynamics")
        own = tuple((k, name) for name, joints in zip(QUANTITIES, known) for k in joints)
        self.labels = own + tuple((limit.joints[0] if len(limit.joints) == 1 else -1, limit.quantity)
                                  for limit in limited)
        self.offset = np.concatenate((np.zeros(len(own)), drives.offset if drives else ()))
        self.own = len(own)
        rates = {(k, "effort_rate") for k in known[-1]}  # one of the two limits of rates is enough
        self.unknown = tuple((k, name) for name in QUANTITIES[:-1] for k in range(path.n) if (k, name) not in {*own, *rates})
        if not self.labels:
            raise InputError("not one limit is known: there is no fastest motion, and nothing to keep to")
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
        """Whether sddd is bounded: a motion can then not start with a jump of sdd."""
        third = any(quantity in ("effort_rate", "jerk", "commanded_effort_rate") for _, quantity in self.labels[:self.own])
        return third or bool(self.drives and self.drives.third_order)

    @property
    def second_order(self) -> bool:
        """Whether anything bounds sdd."""
        return any(quantity != "velocity" for _, quantity in self.labels)

    def __call__(self, s: Any) -> np.ndarray:
        """Constraint coefficients (samples, 7, constraints) at s (samples,)."""
        one, zero = np.ones(len(s)), np.zeros(len(s))
        return self.rows_on_law(s, one, zero, zero)

    def rows_on_law(self, s: Any, v: Any, a: Any, u: Any) -> np.ndarray:
        """The same of q(S(sigma)): v, a, u (samples,) are the derivatives of S."""
        groups, begin = self.groups_on_law(s, v, a, u), 0
        rows = np.zeros((len(groups[0].values), BASIS, len(self.labels)))
        for places, values in groups:
            end = begin + values.shape[2]
            rows[:, places, begin:end] = values
            begin = end
        return rows

    def groups_on_law(self, s: Any, v: Any, a: Any, u: Any) -> list[Group]:
        """The same without the zeros: constraints in their order, together where they have coefficients at the same places."""
        places = self._rows.places(self.drives)
        return [Group(*group) for group in zip(places, self._of(Rows.on_law, s, v, a, u))]

    @property
    def sizes(self) -> list[int]:
        """How many constraints are in each of these groups."""
        sizes = [*map(len, self._rows.known), len(self.labels) - self.own]
        return [size for size in sizes if size]

    def polynomials(self, motion: np.ndarray) -> np.ndarray:
        """Where each constraint is while a motion s, sd, sdd, sddd (4, samples) is played at a constant rate, by the powers
        0 to 3 of that rate: (samples, constraints, 4)."""
        found = [self._of(Rows.polynomials, *part)[0] for part in parts(motion)]
        return found[0] if len(found) == 1 else np.concatenate(found)

    def _of(self, text: Callable[..., Any], s: Any, v: Any, a: Any, u: Any) -> tuple[np.ndarray, ...]:
        """What a text of Rows makes of samples."""
        motion = self.path(s)
        limits = self.limits if self._velocity is None else self.limits._replace(velocity=self._velocity(*motion[:2]))
        inverse = [1.0 / limit[..., list(known)] for limit, known in zip(limits, self._rows.known)]
        if self._velocity is not None:
            inverse = [np.broadcast_to(values, (len(motion[0]), values.shape[-1])) for values in inverse]
        many = with_drives(self._rows, text, self.drives) if self.drives else compiled(self._rows, text)
        return many([*motion[1:], *(np.asarray(x)[:, None] for x in (v, a, u)), np.concatenate(inverse, axis=-1),
                     *(() if self.dynamics is None else self.dynamics(*motion))], len(motion[0]))

    def utilization(self, motion: np.ndarray) -> np.ndarray:
        """What share of each limit a motion s, sd, sdd, sddd (4, samples) uses: (samples, constraints)."""
        return shares(played_at(np.moveaxis(self.polynomials(motion), -1, 0), 1.0), self.offset)

    def describe(self, number: int) -> str:
        if self.drives and number >= self.own:
            return self.drives.limits[number - self.own].description
        joint, quantity = self.labels[number]
        return f"{quantity.replace('_', ' ')} of {self.joint_names[joint]}"


def played_at(polynomials: Any, rate: Any) -> Any:
    """Polynomials (4, ...) at a rate."""
    a0, a1, a2, a3 = polynomials
    return a0 + rate * (a1 + rate * (a2 + rate * a3))


def parts(motion: np.ndarray) -> list[np.ndarray]:
    """A motion (4, samples) in parts whose coefficients a processor's cache can hold."""
    return np.array_split(motion, motion.shape[1] // PART + 1, axis=1)


def basis(sd: Any, sdd: Any, sddd: Any) -> np.ndarray:
    """(samples, 7): what the constraint coefficients multiply."""
    return np.stack(np.broadcast_arrays(*texts.basis(sd, sdd, sddd)), axis=-1)


def utilization(rows: np.ndarray, sd: Any, sdd: Any, sddd: Any) -> np.ndarray:
    """Where each constraint is between -1 and 1 (samples, constraints), from rows (samples, 7, constraints)."""
    return (basis(sd, sdd, sddd)[..., None, :] @ rows)[..., 0, :]


def shares(values: Any, offset: Any) -> Any:
    """The share of each limit that is used, from where the constraint is: 0 where the motion adds nothing to its offset."""
    away = values - offset
    return larger(away * (1.0 / (1.0 - offset)), away * (-1.0 / (1.0 + offset)))
