"""Parameters in which joint torques are linear: their numbered list, names, values, and models made of them.

Per moving link, in its MDH frame: mass, first moments, and inertia about the frame's origin. Per joint, on request: rotor
inertia reflected to the joint, Coulomb and viscous friction, constant torque (joint_dynamics.py). Per motor of a coupled
transmission, on request: its inertia, Coulomb and viscous friction, at the motor.

Base inertial parameters: the smallest set of parameter combinations that determines every joint torque of a robot.

Regrouping rule. Gautier and Khalil (1990) group parameters from the leaves to the root; Khalil and Bennis (1994) do so for
trees. Their tables for revolute and prismatic joints, joints near the root and axes along gravity follow from one statement,
which is evaluated here joint by joint:

    A change of link j's parameters can be moved to its antecedent if joint j does not observe it:
    (1) its momentum along the joint's axis is zero at every velocity that the link can have, and
    (2) neither its kinetic nor its potential energy changes with the joint's position while the joint is at rest.

Both conditions are linear in the parameters: rows, whose rank is the link's number of base parameters. The velocities that a
link can have, and its energies as functions of its parameters, are two vector spaces that are propagated from the root to
the leaves. Along a joint they are trigonometric polynomials of degree two at most, or polynomials, so seven positions are
sufficient. For independent joints the statement is exact, since different joints contribute different functions (compare
Wensing, Niemeyer and Slotine 2024). No random motion is needed.

Mimic joints and motors of coupled transmissions may remove further parameters. These follow from the QR decomposition of
regressors at random states, applied to what the rule leaves (Gautier 1991). The numeric method also works alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linear_forms import coefficients, unknowns
from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, Z, cross, rot_z, rotate_inertia, shift, skew
from ..codegen import kernel
from ..errors import InputError
from ..model import mdh
from ..model.tree import JointDynamics, Link, Model, frozen
from .joint_dynamics import from_links, with_motors
from .torque_rate import RootMotion, dynamics, kinematics

# ------------------------------------------------------------------ parameters


INERTIAL = ("m", "msx", "msy", "msz", "Jxx", "Jxy", "Jxz", "Jyy", "Jyz", "Jzz")
TERMS = ("Ia", "coulomb", "viscous", "offset")
_UNITS = dict(zip(INERTIAL, ("kg", *["kg m"] * 3, *["kg m^2"] * 6), strict=True))
_TURNING = dict(zip(TERMS, ("kg m^2", "N m", "N m s/rad", "N m"), strict=True))
_SLIDING = dict(zip(TERMS, ("kg", "N", "N s/m", "N"), strict=True))
OF_MOTORS = ("Ia", "coulomb", "viscous")  # of TERMS


class Parameter(NamedTuple):
    """Parameter of a link, a joint, or a coupled motor.

    link  : number of the link that the joint moves; of coupled motor k the number of links + k
    kind  : one of INERTIAL or TERMS
    owner : name of the link, for TERMS of the joint or the coupled motor
    """

    link: int
    kind: str
    owner: str
    unit: str

    @property
    def name(self) -> str:
        """Kind and owner, for example Jzz(link3)."""
        return f"{self.kind}({self.owner})"


class SymbolicJointDynamics(NamedTuple):
    """Joint dynamics whose parameters may be symbolic: the attributes of JointDynamics that joint_dynamics.py reads."""

    armature: Any = 0.0
    coulomb: Any = 0.0
    viscous: Any = 0.0
    offset: Any = 0.0
    smoothing: float = 1e-2
    stribeck: float = 0.0
    asymmetry: float = 0.0
    load_dependent: float = 0.0


def parameters(model: Model, terms: Iterable[str] = (), root: bool = False) -> tuple[Parameter, ...]:
    """Return all parameters of a model, link by link.

    terms : which of TERMS to list for each joint. With Ia, OF_MOTORS are listed for each coupled motor, whose inertia and
            friction act on several joints
    root  : whether to list the parameters of the root link, on which only the wrench at a free base depends
    """
    wanted = set(terms)
    if not wanted <= set(TERMS):
        raise InputError(f"joint parameters {sorted(wanted - set(TERMS))} do not exist; allowed are {', '.join(TERMS)}")
    found = []
    for k, link in enumerate(model.links):
        if link.joint or (root and k == 0):
            found += [Parameter(k, kind, link.name, _UNITS[kind]) for kind in INERTIAL]
        if link.joint:
            units = _SLIDING if link.sigma == mdh.PRISMATIC else _TURNING
            found += [Parameter(k, kind, link.joint, units[kind]) for kind in TERMS if kind in wanted]
    for k, motor in enumerate(model.coupled_motors if "Ia" in wanted else (), start=len(model.links)):
        found += [Parameter(k, kind, motor.name, _TURNING[kind]) for kind in OF_MOTORS]
    return tuple(found)


def values(model: Model, listed: Sequence[Parameter]) -> np.ndarray:
    """Return the values (p,) of the listed parameters in a model."""
    links = [*map(_values, model.links), *(_term_values(motor.term) for motor in model.coupled_motors)]
    return np.array([links[parameter.link][parameter.kind] for parameter in listed], dtype=float)


def _values(link: Link) -> dict[str, Any]:
    return {**dict(zip(INERTIAL, ten(link.m, link.ms, link.J), strict=True)), **_term_values(link.term)}


def _term_values(term: JointDynamics) -> dict[str, Any]:
    return dict(zip(TERMS, (term.armature, term.coulomb, term.viscous, term.offset), strict=True))


def _with_terms(term: JointDynamics, given: Mapping[str, float]) -> JointDynamics:
    """Return joint dynamics with the given values by kind."""
    rotor = given["Ia"] / term.gear_ratio**2 if "Ia" in given else term.rotor_inertia
    return replace(term, rotor_inertia=rotor, **{kind: given[kind] for kind in TERMS[1:] if kind in given})


def with_values(model: Model, listed: Sequence[Parameter], new: Sequence[float] | np.ndarray) -> Model:
    """Return the model with new values (p,) of the listed parameters; others are unchanged.

    Raises InputError for a negative Ia or friction.
    """
    links, motors = list(model.links), list(model.coupled_motors)
    for number, given in _by_link(listed, [float(x) for x in new]).items():
        if number >= len(links):
            motor = motors[number - len(links)]
            motors[number - len(links)] = replace(motor, term=_with_terms(motor.term, given))
            continue
        link = links[number]
        m, ms, J = inertia({**_values(link), **given})
        links[number] = replace(link, m=m, ms=frozen(ms), J=frozen(J), term=_with_terms(link.term, given))
    return replace(model, links=tuple(links), coupled_motors=tuple(motors))


def with_unknowns(model: Model, listed: Sequence[Parameter]) -> Model:
    """Return the model whose listed parameters are linear forms, numbered as in the list, and whose others are zero.

    For algorithms that are linear in the parameters. The attributes of its links are symbolic.
    """
    still = frozen(np.zeros(3))
    links = [replace(link, m=0.0, ms=still, J=frozen(np.zeros((3, 3))), term=JointDynamics()) for link in model.links]
    motors = [replace(motor, term=JointDynamics()) for motor in model.coupled_motors]
    terms = [*(link.term for link in model.links), *(motor.term for motor in model.coupled_motors)]
    for number, given in _by_link(listed, unknowns(len(listed))).items():
        names = {"armature" if kind == "Ia" else kind: given[kind] for kind in TERMS if kind in given}
        form: dict[str, Any] = {"term": SymbolicJointDynamics(**names, smoothing=terms[number].smoothing)}
        if number >= len(links):
            motors[number - len(links)] = replace(motors[number - len(links)], **form)
        else:
            form |= dict(zip(("m", "ms", "J"), inertia(given), strict=True))
            links[number] = replace(links[number], **form)
    return replace(model, links=tuple(links), coupled_motors=tuple(motors))


def _by_link(listed: Sequence[Parameter], given: Iterable[Any]) -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for parameter, value in zip(listed, given, strict=True):
        found.setdefault(parameter.link, {})[parameter.kind] = value
    return found


def inertia(given: Mapping[str, Any]) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return m, ms (3,), J (3, 3) from values by kind, zero where missing; any scalar type."""
    m, x, y, z, xx, xy, xz, yy, yz, zz = (given.get(kind, 0.0) for kind in INERTIAL)
    return m, np.array([x, y, z]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def ten(m: Any, ms: Any, J: Any) -> np.ndarray:
    """Return the ten numbers of INERTIAL from m, ms, J; any scalar type."""
    return np.array([m, *ms, J[0][0], J[0][1], J[0][2], J[1][1], J[1][2], J[2][2]])


def regressor(model, count, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), root=False):
    """(Y, Yd), (n, count) each: a row for each coordinate, mimic joints folded, a column for each parameter; any scalar.

    model   : its parameters are the forms 0 to count - 1, or zero: see inertial_parameters.with_unknowns
    gravity : acceleration (3,) in frame 0 [m/s^2]
    base    : motion of link 0, see torque_rate.py
    root    : prepend six rows: the wrench on link 0 that its motion needs, in frame 0, force first; in Yd the rates of its
              components
    """
    motion = kinematics(model, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    forces = dynamics(model, motion, qd, qdd, qddd)
    tau, tau_rate = from_links(model, forces.tau), from_links(model, forces.tau_rate)
    tau, tau_rate = with_motors(model.coupled_motors, tau, tau_rate, qd, qdd, qddd)
    if root:
        f, n, fd, nd = (load[0] for load in (forces.f, forces.n, forces.fd, forces.nd))
        tau = [*f, *n, *tau]
        tau_rate = [*(fd + cross(f, base.w)), *(nd + cross(n, base.w)), *tau_rate]
    return coefficients(tau, count), coefficients(tau_rate, count)


# ------------------------------------------------------------------ base parameters


LINK_PARAMETERS = (*INERTIAL, "Ia", "offset")  # friction always appears in the torque of its joint, never in groups
# Kept first, as in textbooks
PREFERENCE = ("Jzz", "Jxx", "Jxy", "Jxz", "Jyz", "msx", "msy", "msz", "m", "Jyy", "offset", "Ia")
SAMPLED_POSITIONS = np.arange(7.0)  # [rad] or [m]
EQUAL_LENGTH_TOL = 1e-6  # relative difference below which columns are equally long
MIN_NEW_SHARE = 1e-3  # new part of a column above which the preferred order is used; below, the column with the largest one


class GroupingTolerances(NamedTuple):
    """Tolerances of grouping.

    tolerance : axes closer to parallel than this are parallel [rad]
    zero      : entries of a grouping smaller than this are zero
    min_new     : new part of a column above which the preferred order is used; small values give textbook names, with more
                  rounding
    """

    tolerance: float
    zero: float
    min_new: float


class JointObservability(NamedTuple):
    """Linear functionals of a link's parameters that its joint observes, and the transformation to its antecedent.

    observed : (rows, 12) functionals of the link's LINK_PARAMETERS
    into : (10, 10) the link's inertial parameters in the antecedent's frame at joint position zero
    """

    observed: np.ndarray
    into: np.ndarray


def joint_observability(model: Model, gravity: np.ndarray, free_root: bool, tolerance: float) -> list[JointObservability]:
    """Return the observability of each link, 0 to N. tolerance: directions that differ by less are equal [rad].

    velocities: rows (v, w). energies: rows of coefficients of the ten parameters, and a last one that is 1 for potentials.
    """
    potential = np.concatenate(([0.0], -gravity, np.zeros(6), [1.0]))
    velocities = [np.eye(6) if free_root else np.zeros((0, 6))]
    energies = [np.eye(11) if free_root else _span(potential[None], tolerance)]
    found = [JointObservability(np.eye(10, 12) if free_root else np.zeros((0, 12)), np.zeros((10, 10)))]
    for link in model.links[1:]:
        at_zero = mdh.pose(link, 0.0)
        into = coefficients(_in_antecedent(*at_zero), 10)
        V, E = velocities[link.parent] @ _velocity(*at_zero).T, _energies_in_frame(energies[link.parent], into)
        observed = np.zeros((0, 12))
        if link.sigma != mdh.FIXED:
            steps = _steps(link.sigma)
            V = _span(np.concatenate([V @ X.T for X, _ in steps]), tolerance)
            E = _span(np.concatenate([_energies_in_frame(E, into) for _, into in steps]), tolerance)
            observed, momenta = _observable_at(link.sigma, V, E)
            observed, E = _span(observed, tolerance), _span(np.concatenate((E, momenta)), tolerance)
            V = _span(np.concatenate((V, _axis(link.sigma))), tolerance)
        velocities.append(V)
        energies.append(E)
        found.append(JointObservability(observed, into))
    return found


def _observable_at(sigma: int, V: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return what a joint observes, and the energies that its speed adds.

    V and E are the link's velocities and energies with the joint at rest. The rows are (1) momentum along the axis at V, and
    at the joint's own speed, where Ia adds to it; (2) derivatives of E along the joint, which an offset may balance.
    """
    momentum, slope = _along(sigma)
    momenta = np.concatenate((V, _axis(sigma))) @ momentum
    rotor, offset = np.zeros((len(momenta), 2)), np.column_stack((np.zeros(len(E)), E[:, 10]))
    rotor[-1, 0] = 1.0
    observed = np.block([[momenta, rotor], [E[:, :10] @ slope, offset]])
    return observed, np.column_stack((momenta, np.zeros(len(momenta))))


def _axis(sigma: int) -> np.ndarray:
    """Return the velocity (1, 6) of a link whose joint moves at unit speed."""
    return np.concatenate((Z, ZERO) if sigma == mdh.PRISMATIC else (ZERO, Z))[None]


@cache
def _along(sigma: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the momentum along the axis (6, 10) at each unit velocity, and the derivative of _in_antecedent (10, 10)."""
    m, ms, J = _unknown_body()
    momenta = []
    for v, w in np.eye(6).reshape(6, 2, 3):
        momenta.append((v * m + cross(w, ms))[2] if sigma == mdh.PRISMATIC else (J @ w + cross(ms, v))[2])
    position = jets(np.zeros(1), np.ones(1))[0]
    return coefficients(momenta, 10), coefficients(derivative(_in_antecedent(*_step(sigma, position)), 1), 10)


@cache
def _steps(sigma: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return _velocity and _in_antecedent of a joint at several positions."""
    poses = [_step(sigma, x) for x in SAMPLED_POSITIONS]
    return [(_velocity(*pose), coefficients(_in_antecedent(*pose), 10)) for pose in poses]


def _step(sigma: int, x):
    """Return the pose after moving by x along or about z; any scalar type."""
    return (np.eye(3), Z * x) if sigma == mdh.PRISMATIC else (rot_z(np.cos(x), np.sin(x)), ZERO)


def _velocity(R, P):
    """Return the matrix (6, 6) from the velocity (v, w) of a frame to that of a frame at pose (R, P) in it."""
    return np.block([[R.T, -R.T @ skew(P)], [np.zeros((3, 3)), R.T]])


def _in_antecedent(R, P):
    """Return the ten parameters of a body in the antecedent's frame as forms of those in its own; any scalar type."""
    m, ms, J = _unknown_body()
    J, ms = rotate_inertia(R, J, ms)
    J, ms = shift(J, ms, m, P)
    return ten(m, ms, J)


def _unknown_body():
    return inertia(dict(zip(INERTIAL, unknowns(10), strict=True)))


def _energies_in_frame(energies: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Return energies as functions of the parameters of a body further out."""
    return np.column_stack((energies[:, :10] @ into, energies[:, 10]))


def _span(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Return orthonormal rows that span the same space."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > tolerance * sizes.max(initial=1e-300)]


def select_parameters(observed: np.ndarray, columns: Sequence[int],
                      tolerances: GroupingTolerances) -> tuple[list[int], np.ndarray]:
    """Return the numbers of the parameters to keep, and A (12, 12), which moves all others into them unobserved by the joint.

    columns: which of LINK_PARAMETERS exist. All other parameters are zero after A.
    """
    there = np.zeros(len(LINK_PARAMETERS))
    there[list(columns)] = 1.0
    rows = _span(observed * there, tolerances.tolerance)
    kept, rest = [], rows.copy()
    for i in sorted(range(len(LINK_PARAMETERS)), key=lambda i: PREFERENCE.index(LINK_PARAMETERS[i])):
        if np.linalg.norm(rest[:, i]) > tolerances.min_new:
            kept.append(i)
            rest = _without(rest, i)
    while len(kept) < len(rows):
        sizes = np.linalg.norm(rest, axis=0)
        kept.append(int(np.flatnonzero(sizes > (1.0 - EQUAL_LENGTH_TOL) * sizes.max())[0]))  # of equal ones the first
        rest = _without(rest, kept[-1])
    A = np.zeros((len(LINK_PARAMETERS), len(LINK_PARAMETERS)))
    A[kept] = np.linalg.pinv(rows[:, kept]) @ rows if kept else 0.0
    return kept, A


def _without(rows: np.ndarray, i: int) -> np.ndarray:
    """Return the rows with the component along column i removed."""
    direction = rows[:, i] / np.linalg.norm(rows[:, i])
    return rows - np.outer(direction, direction @ rows)


GRAVITY = (0.0, 0.0, -9.81)
PARALLEL_TOL = 1e-9  # axes closer to parallel than this are parallel [rad]
DEPENDENT_TOL = 1e-7  # relative distance of a regressor column from the others below which it depends on them
ZERO_COLUMN_TOL = 1e-11  # length of a column over that of the longest below which it is zero
ROUNDING_TOL = 1e-13  # entries of the rule's grouping below this are rounding
EXACT = GroupingTolerances(tolerance=1e-14, zero=1e-14, min_new=0.1)  # where torques must not change; rounding leaves 1e-15
EQUATIONS_PER_UNKNOWN = 1.5  # in a sampled regressor
SMOOTHING_VELOCITY = 1e-9  # of Coulomb friction in sampled regressors [rad/s, m/s]
QR_ORDER = (*PREFERENCE, "coulomb", "viscous")


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters beta = grouping @ parameters.

    parameters : the p parameters of which they consist
    kept       : numbers of the b parameters that name the groups; set to beta, with zero for the others, every
                 torque is unchanged
    grouping   : (b, p)
    """

    parameters: tuple[Parameter, ...]
    kept: tuple[int, ...]
    grouping: np.ndarray

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Names as in textbooks: JzzR(link) is a group, Jzz(link) a single parameter."""
        return tuple((p._replace(kind=p.kind + "R") if np.count_nonzero(row) > 1 else p).name
                     for p, row in zip(self._named(), self.grouping, strict=True))

    @property
    def units(self) -> tuple[str, ...]:
        """Unit of each base parameter."""
        return tuple(parameter.unit for parameter in self._named())

    def _named(self) -> list[Parameter]:
        return [self.parameters[k] for k in self.kept]

    def relations(self, digits: int = 6) -> tuple[str, ...]:
        """Return one equation for each base parameter."""
        return tuple(f"{name} = {_sum(row, self.parameters, digits)}"
                     for name, row in zip(self.names, self.grouping, strict=True))

    def unobservable(self) -> tuple[str, ...]:
        """Return the names of the parameters on which no torque depends."""
        return tuple(p.name for p, column in zip(self.parameters, self.grouping.T, strict=True) if not column.any())

    def values_in(self, model: Model) -> np.ndarray:
        """Return the values (b,) of the base parameters in a model."""
        return self.grouping @ values(model, self.parameters)

    def spread(self, beta: ArrayLike) -> np.ndarray:
        """Return parameters (p,) with the same torques: beta for the kept ones, zero for the others; they are not physical."""
        full = np.zeros(len(self.parameters))
        full[list(self.kept)] = beta
        return full


def _sum(row: np.ndarray, listed: Sequence[Parameter], digits: int) -> str:
    terms = []
    for k in np.flatnonzero(row).tolist():
        size = f"{abs(row[k]):.{digits}g}"
        terms += ["-" if row[k] < 0.0 else "+", listed[k].name if size == "1" else f"{size} {listed[k].name}"]
    return " ".join(terms).removeprefix("+ ")


def base_parameters(model: Model, gravity: ArrayLike = GRAVITY, terms: Iterable[str] = (), free_root: bool | None = None,
                    tolerance: float = PARALLEL_TOL) -> BaseParameters:
    """Return the base parameters of a robot.

    gravity   : acceleration (3,) in the root's frame; parameters may vanish for an axis along it [m/s^2]
    terms     : joint parameters to include: Ia, coulomb, viscous, offset
    free_root : whether link 0 moves freely and the wrench on it is included; None: whether the base is floating
    tolerance : axes closer to parallel than this are parallel [rad]
    """
    free_root = model.base == "floating" if free_root is None else free_root
    listed = parameters(model, tuple(terms), free_root)
    found = _by_rule(model, listed, gravity, free_root, tolerance)
    if has_independent_joints(model):
        return found
    left = [listed[k] for k in found.kept]
    further = from_regressor(sampled_regressor(model, left, gravity, free_root), left)
    return BaseParameters(listed, tuple(found.kept[k] for k in further.kept), further.grouping @ found.grouping)


def has_independent_joints(model: Model) -> bool:
    """Return whether every moving link has its own coordinate, which moves it, and no motor is coupled to several."""
    moving = [link for link in model.links if link.joint]
    own = len({link.coordinate for link in moving}) == len(moving) and all(link.multiplier for link in moving)
    return own and not model.coupled_motors


def regrouped(model: Model, gravity: ArrayLike = GRAVITY, second_moments: bool = False) -> Model:
    """Return a model with few non-zero inertial parameters and the same torques and torque rates under the same gravity.

    second_moments : choose inertias with few entries in E = tr(J)/2 1 - J, which component_rate.py multiplies with, instead of
                     J

    Its masses and inertias are not physical: total mass, energy, wrenches inside the joints and, for a root at rest, the
    wrench at its foot are wrong. Mass matrix, bias and gravity torques are right. Joint dynamics are unchanged.
    """
    free_root = model.base == "floating"
    listed, basis = parameters(model, root=free_root), _second_moments() if second_moments else np.eye(len(LINK_PARAMETERS))
    groups = _groups(model, listed, gravity, free_root, EXACT, basis)
    links, given = list(model.links), values(model, listed)
    for k, link in enumerate(links):
        if link.joint or (free_root and k == 0):
            own = {INERTIAL[i]: _total(row, given) for (number, i), row in groups.items() if number == k}
            m, ms, J = inertia(own)
            links[k] = replace(link, m=float(m), ms=frozen(ms), J=frozen(_inertia_of(J) if second_moments else J))
    return replace(model, links=tuple(links))


def _total(row: np.ndarray, given: np.ndarray) -> float:
    """Return row @ given; zero where only rounding remains, which would differ between processors and change the kernels."""
    total = float(row @ given)
    return total if abs(total) > EXACT.zero * float(np.abs(row) @ np.abs(given)) else 0.0


def _inertia_of(E: np.ndarray) -> np.ndarray:
    """Return J = tr(E) 1 - E; each diagonal entry is the sum of two of E, so that zeros of E are kept."""
    J = -E
    J[np.diag_indices(3)] = E[1, 1] + E[2, 2], E[0, 0] + E[2, 2], E[0, 0] + E[1, 1]
    return J


def _second_moments() -> np.ndarray:
    """Return the matrix (12, 12) from LINK_PARAMETERS with E in place of J to LINK_PARAMETERS, J = tr(E) 1 - E."""
    m, ms, E = inertia(dict(zip(INERTIAL, unknowns(10), strict=True)))
    basis = np.eye(len(LINK_PARAMETERS))
    basis[:10, :10] = coefficients(ten(m, ms, np.eye(3) * np.trace(E) - E), 10)
    return basis


def _by_rule(model: Model, listed: tuple[Parameter, ...], gravity: ArrayLike, free_root: bool,
             tolerance: float) -> BaseParameters:
    slots = {(parameter.link, parameter.kind): slot for slot, parameter in enumerate(listed)}
    rows = {slot: np.eye(len(listed))[slot] for (link, kind), slot in slots.items()
            if kind not in LINK_PARAMETERS or link >= len(model.links)}
    tolerances = GroupingTolerances(tolerance, ROUNDING_TOL, MIN_NEW_SHARE)
    groups = _groups(model, listed, gravity, free_root, tolerances, np.eye(len(LINK_PARAMETERS)))
    rows |= {slots[k, LINK_PARAMETERS[i]]: row for (k, i), row in groups.items()}
    kept = sorted(rows)
    return BaseParameters(listed, tuple(kept), np.array([rows[k] for k in kept]).reshape(len(kept), len(listed)))


def _groups(model: Model, listed: Sequence[Parameter], gravity: ArrayLike, free_root: bool, tolerances: GroupingTolerances,
            basis: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """Return {(link, i): row (p,)}: coordinate i of what joint `link` observes, as a sum of the listed parameters.

    From the leaves to the root: what the joint observes of a link is kept, the rest moves to the antecedent.
    """
    found: dict[tuple[int, int], np.ndarray] = {}
    groups = np.zeros((len(model.links), len(LINK_PARAMETERS), len(listed)))
    for slot, (link, kind, *_) in enumerate(listed):
        if kind in LINK_PARAMETERS and link < len(groups):
            groups[link, LINK_PARAMETERS.index(kind), slot] = 1.0
    observed = joint_observability(model, np.asarray(gravity, dtype=float), free_root, tolerances.tolerance)
    for k in range(len(observed) - 1, -1, -1):
        there = [i for i, kind in enumerate(LINK_PARAMETERS) if kind in INERTIAL or groups[k, i].any()]
        kept, A = select_parameters(observed[k].observed @ basis, there, tolerances)
        own = A @ np.linalg.solve(basis, groups[k])
        found |= {(k, i): np.where(np.abs(own[i]) < tolerances.zero, 0.0, own[i]) for i in kept}
        if k > 0:
            groups[model.links[k].parent, :10] += observed[k].into @ (groups[k] - basis @ own)[:10]
    return found


# ---------------------------------------------------------------------- the numeric way

def from_regressor(W: np.ndarray, listed: Sequence[Parameter], tolerance: float = DEPENDENT_TOL) -> BaseParameters:
    """Return base parameters from stacked regressors (rows, p) at many states (Gautier 1991).

    A column is kept if its distance from those kept before exceeds tolerance times its length; the others are combinations
    W = W[:, kept] @ grouping. Links near the root come first, as in the rule, which gives the same names.
    """
    if W.shape[1] != len(listed) or len(W) < W.shape[1]:
        raise InputError(f"the stacked regressor is {W.shape}; {len(listed)} columns are needed, and at least as many rows")
    R = np.asarray(np.linalg.qr(W, mode="r"))
    lengths = np.linalg.norm(R, axis=0)
    kept: list[int] = []
    Q = np.zeros_like(R)  # its first rows span the columns that are kept
    for k in sorted(range(len(listed)), key=lambda k: (listed[k].link, QR_ORDER.index(listed[k].kind))):
        before = Q[:len(kept)]
        rest = R[:, k] - (before @ R[:, k]) @ before
        rest = rest - (before @ rest) @ before  # twice is enough
        if lengths[k] > ZERO_COLUMN_TOL * lengths.max() and np.linalg.norm(rest) > tolerance * lengths[k]:
            Q[len(kept)] = rest / np.linalg.norm(rest)
            kept.append(k)
    Q = Q[:len(kept)]
    kept.sort()
    grouping = np.linalg.solve(Q @ R[:, kept], Q @ R)
    return BaseParameters(tuple(listed), tuple(kept), np.where(np.abs(grouping) < tolerance, 0.0, grouping))


def sampled_regressor(model: Model, listed: Sequence[Parameter], gravity: ArrayLike = GRAVITY, free_root: bool = False,
                      seed: int = 0, states: np.ndarray | None = None) -> np.ndarray:
    """Return regressors at random states, stacked, with enough rows for from_regressor.

    states: (samples, 3 n) q, qd, qdd instead of random ones. Coulomb friction is a step at zero velocity: parameters that only
    its smoothing would separate are not separated.
    """
    n, g = model.n, np.asarray(gravity, dtype=float)
    links = tuple(replace(link, term=replace(link.term, smoothing=SMOOTHING_VELOCITY)) for link in model.links)
    motors = tuple(replace(motor, term=replace(motor.term, smoothing=SMOOTHING_VELOCITY)) for motor in model.coupled_motors)
    unknown = with_unknowns(replace(model, links=links, coupled_motors=motors), listed)
    blocks = {"q": n, "qd": n, "qdd": n} | ({"base": 9} if free_root else {})

    def function(q, qd, qdd, base=np.zeros(9)):
        moving = RootMotion(w=base[:3], wd=base[3:6], a=base[6:])
        return regressor(unknown, len(listed), q, qd, qdd, q * 0.0, g, moving, free_root)[:1]

    if states is None:
        count = int(np.ceil(EQUATIONS_PER_UNKNOWN * len(listed) / max(n + 6 * free_root, 1))) + 2
        states = np.random.default_rng(seed).normal(size=(count, sum(blocks.values())))
    return np.concatenate(kernel.build(function, blocks, "python")(states)[0])
