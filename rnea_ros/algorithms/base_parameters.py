"""What each joint of a tree feels of its link's parameters; the rest can be grouped into the link before.

Gautier and Khalil (1990) group parameters from the leaves to the root; Khalil and Bennis (1994) do so for trees. Their
tables, for revolute and prismatic joints, for joints near the root whose motion is poor, for axes along gravity, are
all one statement, which is evaluated here joint by joint:

    A change of link j's parameters can be moved to its antecedent if joint j does not feel it:
    (1) its momentum along the joint's axis is zero at every velocity that the link can have, and
    (2) neither its kinetic nor its potential energy changes with the joint's position while the joint stands still.

Both are linear in the parameters: rows, whose rank is the link's number of base parameters. The velocities that a link can
have, and its energies as functions of its parameters, are two vector spaces that spread from the root to the leaves.
Along a joint they are trigonometric polynomials of degree two at most, or polynomials: seven positions tell all. For
independent joints the statement is exact, not only sufficient: different joints contribute different functions (compare
Wensing, Niemeyer and Slotine 2024). No random motion, and no formula beside momentum and the shift of an inertia.

Base inertial parameters: the fewest combinations of parameters that say the same about every torque of a robot.

By the rule of regrouping.py, which needs the geometry only. Mimic joints, and motors that turn with several joints, may hide
more than the rule can know: then by QR of regressors at random states among what the rule leaves (Gautier 1991). The numeric
way also works alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linear_forms import coefficients, unknowns
from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, Z, cross, rot_z, rotate_inertia, shift, skew
from ..codegen import kernel
from ..errors import InputError
from ..model import mdh
from ..model.tree import Model, frozen
from .inertial_parameters import INERTIAL, Parameter, inertia, parameters, ten, values, with_unknowns
from .regressor import regressor
from .torque_rate import BaseMotion

LINK_PARAMETERS = (*INERTIAL, "Ia", "offset")  # friction is always felt, and alone
PREFERENCE = ("Jzz", "Jxx", "Jxy", "Jxz", "Jyz", "msx", "msy", "msz", "m", "Jyy", "offset", "Ia")  # as the books do
SAMPLED_POSITIONS = np.arange(7.0)  # rad or m
EQUAL_LENGTH_TOL = 1e-6  # columns whose lengths differ by less than this select_parameters are equally long
MIN_NEW_SHARE = 1e-3  # kept in the wanted order as long as this much of a column is new; then the newest first


class Tolerances(NamedTuple):
    """How exactly to group.

    tolerance : axes closer to parallel than this [rad] are parallel
    dust      : entries of a grouping smaller than this are zero
    clear     : parameters are kept in the wanted order as long as this much of a column is new; small: books' names, more
                rounding
    """

    tolerance: float
    dust: float
    clear: float


class JointObservability(NamedTuple):
    """felt (rows, 12): what the joint feels, as functions of its link's LINK_PARAMETERS.

    into (10, 10): the link's inertial parameters, seen in the antecedent at joint position zero.
    """

    felt: np.ndarray
    into: np.ndarray


def joint_observability(model: Model, gravity: np.ndarray, free_root: bool, tolerance: float) -> list[JointObservability]:
    """A Joint for each link, 0 to N. tolerance: directions that differ by less [rad] are one.

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
        felt = np.zeros((0, 12))
        if link.sigma != mdh.FIXED:
            steps = _steps(link.sigma)
            V = _span(np.concatenate([V @ X.T for X, _ in steps]), tolerance)
            E = _span(np.concatenate([_energies_in_frame(E, into) for _, into in steps]), tolerance)
            felt, momenta = _observable_at(link.sigma, V, E)
            felt, E = _span(felt, tolerance), _span(np.concatenate((E, momenta)), tolerance)
            V = _span(np.concatenate((V, _axis(link.sigma))), tolerance)
        velocities.append(V)
        energies.append(E)
        found.append(JointObservability(felt, into))
    return found


def _observable_at(sigma: int, V: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What a joint feels, and the energies that its speed adds; V and E are what its link can have with the joint at rest.

    (1) momentum along the axis at V, and at the joint's own speed, where Ia adds to it; (2) slopes of E, which an offset
    may balance.
    """
    momentum, slope = _along(sigma)
    momenta = np.concatenate((V, _axis(sigma))) @ momentum
    rotor, offset = np.zeros((len(momenta), 2)), np.column_stack((np.zeros(len(E)), E[:, 10]))
    rotor[-1, 0] = 1.0
    felt = np.block([[momenta, rotor], [E[:, :10] @ slope, offset]])
    return felt, np.column_stack((momenta, np.zeros(len(momenta))))


def _axis(sigma: int) -> np.ndarray:
    """Velocity (1, 6) of a link whose joint moves at speed one."""
    return np.concatenate((Z, ZERO) if sigma == mdh.PRISMATIC else (ZERO, Z))[None]


@cache
def _along(sigma: int) -> tuple[np.ndarray, np.ndarray]:
    """Momentum along the axis (6, 10) at each velocity; slope of _in_antecedent along the joint (10, 10)."""
    m, ms, J = _unknown_body()
    momenta = []
    for v, w in np.eye(6).reshape(6, 2, 3):
        momenta.append((v * m + cross(w, ms))[2] if sigma == mdh.PRISMATIC else (J @ w + cross(ms, v))[2])
    position = jets(np.zeros(1), np.ones(1))[0]
    return coefficients(momenta, 10), coefficients(derivative(_in_antecedent(*_step(sigma, position)), 1), 10)


@cache
def _steps(sigma: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """_velocity and _in_antecedent of a joint at several positions."""
    poses = [_step(sigma, x) for x in SAMPLED_POSITIONS]
    return [(_velocity(*pose), coefficients(_in_antecedent(*pose), 10)) for pose in poses]


def _step(sigma: int, x):
    """Pose after moving by x along or about z; any scalar."""
    return (np.eye(3), Z * x) if sigma == mdh.PRISMATIC else (rot_z(np.cos(x), np.sin(x)), ZERO)


def _velocity(R, P):
    """(6, 6): velocity (v, w) of a frame at pose (R, P) from that of the frame before."""
    return np.block([[R.T, -R.T @ skew(P)], [np.zeros((3, 3)), R.T]])


def _in_antecedent(R, P):
    """The ten parameters of a body seen from the frame before, as forms of those in its own; any scalar."""
    m, ms, J = _unknown_body()
    J, ms = rotate_inertia(R, J, ms)
    J, ms = shift(J, ms, m, P)
    return ten(m, ms, J)


def _unknown_body():
    return inertia(dict(zip(INERTIAL, unknowns(10), strict=True)))


def _energies_in_frame(energies: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Energies as functions of the parameters of a body further out."""
    return np.column_stack((energies[:, :10] @ into, energies[:, 10]))


def _span(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Orthonormal rows that span the same space."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > tolerance * sizes.max(initial=1e-300)]


def select_parameters(felt: np.ndarray, columns: Sequence[int], care: Tolerances) -> tuple[list[int], np.ndarray]:
    """(kept, A): numbers of the parameters to keep, and A (12, 12), which gives them so that the joint feels no change.

    columns: which of LINK_PARAMETERS there are. All other parameters are zero after A.
    """
    there = np.zeros(len(LINK_PARAMETERS))
    there[list(columns)] = 1.0
    rows = _span(felt * there, care.tolerance)
    kept, rest = [], rows.copy()
    for i in sorted(range(len(LINK_PARAMETERS)), key=lambda i: PREFERENCE.index(LINK_PARAMETERS[i])):
        if np.linalg.norm(rest[:, i]) > care.clear:
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
    """What of every column is not along column i."""
    direction = rows[:, i] / np.linalg.norm(rows[:, i])
    return rows - np.outer(direction, direction @ rows)


GRAVITY = (0.0, 0.0, -9.81)
PARALLEL_TOL = 1e-9  # axes closer to parallel than this [rad] are parallel
DEPENDENT_TOL = 1e-7  # a column of the regressor that is nearer to the others, relative to its length, depends on them
ZERO_COLUMN_TOL = 1e-11  # a column this small against the largest one is zero
ROUNDING_TOL = 1e-13  # what rounding leaves of zeros in the rule's grouping
EXACT = Tolerances(tolerance=1e-14, dust=1e-14, clear=0.1)  # where torques must not change; rounding leaves 1e-15
EQUATIONS_PER_UNKNOWN = 1.5  # equations for every unknown in a sampled regressor
SMOOTHING_VELOCITY = 1e-9  # rad/s or m/s
QR_ORDER = (*PREFERENCE, "coulomb", "viscous")


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters beta = grouping @ parameters.

    parameters : the p parameters they are made of
    kept       : which b of them give their names to the groups; with beta in their place and zero for the others, every
                 torque is the same
    grouping   : (b, p)
    """

    parameters: tuple[Parameter, ...]
    kept: tuple[int, ...]
    grouping: np.ndarray

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def names(self) -> tuple[str, ...]:
        """As in the books: JzzR(link) is a group, Jzz(link) a parameter alone."""
        return tuple((p._replace(kind=p.kind + "R") if np.count_nonzero(row) > 1 else p).name
                     for p, row in zip(self._named(), self.grouping, strict=True))

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(parameter.unit for parameter in self._named())

    def _named(self) -> list[Parameter]:
        return [self.parameters[k] for k in self.kept]

    def relations(self, digits: int = 6) -> tuple[str, ...]:
        """One equation for each base parameter."""
        return tuple(f"{name} = {_sum(row, self.parameters, digits)}"
                     for name, row in zip(self.names, self.grouping, strict=True))

    def unseen(self) -> tuple[str, ...]:
        """Names of the parameters that no torque depends on."""
        return tuple(p.name for p, column in zip(self.parameters, self.grouping.T, strict=True) if not column.any())

    def of(self, model: Model) -> np.ndarray:
        """Their values in a model (b,)."""
        return self.grouping @ values(model, self.parameters)

    def spread(self, beta: ArrayLike) -> np.ndarray:
        """Values of all parameters (p,) with the same torques: beta for the kept, zero for the others. No bodies have them."""
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
    """The base parameters of a robot.

    gravity   : acceleration (3,) in the root's frame [m/s^2]: an axis along it hides parameters
    terms     : which of the joint parameters Ia, coulomb, viscous, offset count as well
    free_root : whether link 0 may move in any way, and the wrench on it counts as well; default: whether the base is floating
    tolerance : axes closer to parallel than this [rad] are parallel
    """
    free_root = model.base == "floating" if free_root is None else free_root
    listed = parameters(model, tuple(terms), free_root)
    found = _by_rule(model, listed, gravity, free_root, tolerance)
    if independent(model):
        return found
    left = [listed[k] for k in found.kept]
    further = from_regressor(sampled_regressor(model, left, gravity, free_root), left)
    return BaseParameters(listed, tuple(found.kept[k] for k in further.kept), further.grouping @ found.grouping)


def independent(model: Model) -> bool:
    """Whether every moving link has a coordinate of its own, which moves it, and no motor turns with several."""
    moving = [link for link in model.links if link.joint]
    own = len({link.coordinate for link in moving}) == len(moving) and all(link.multiplier for link in moving)
    return own and not model.coupled_motors


def regrouped(model: Model, gravity: ArrayLike = GRAVITY, second_moments: bool = False) -> Model:
    """A model with few non-zero inertial parameters that needs the same torques and torque rates, under the same gravity.

    second_moments : of each inertia choose the form with few entries in E = tr(J)/2 1 - J, which component_rate.py multiplies
                     with, instead of few in J

    Its masses and inertias are no bodies: total mass, energy, wrenches inside the joints and, of a robot whose root is at
    rest, the wrench at its foot come out wrong. Mass matrix, bias and gravity torques are right. Joint dynamics stay.
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
    """row @ given; zero where only rounding is left of it, which differs from processor to processor, and kernels with it."""
    total = float(row @ given)
    return total if abs(total) > EXACT.dust * float(np.abs(row) @ np.abs(given)) else 0.0


def _inertia_of(E: np.ndarray) -> np.ndarray:
    """J = tr(E) 1 - E, each diagonal entry from the two that it is the sum of: zeros of E come back as zeros."""
    J = -E
    J[np.diag_indices(3)] = E[1, 1] + E[2, 2], E[0, 0] + E[2, 2], E[0, 0] + E[1, 1]
    return J


def _second_moments() -> np.ndarray:
    """(12, 12): LINK_PARAMETERS from the same with E in place of J, J = tr(E) 1 - E."""
    m, ms, E = inertia(dict(zip(INERTIAL, unknowns(10), strict=True)))
    basis = np.eye(len(LINK_PARAMETERS))
    basis[:10, :10] = coefficients(ten(m, ms, np.eye(3) * np.trace(E) - E), 10)
    return basis


def _by_rule(model: Model, listed: tuple[Parameter, ...], gravity: ArrayLike, free_root: bool,
             tolerance: float) -> BaseParameters:
    slots = {(parameter.link, parameter.kind): slot for slot, parameter in enumerate(listed)}
    rows = {slot: np.eye(len(listed))[slot] for (link, kind), slot in slots.items()
            if kind not in LINK_PARAMETERS or link >= len(model.links)}
    care = Tolerances(tolerance, ROUNDING_TOL, MIN_NEW_SHARE)
    groups = _groups(model, listed, gravity, free_root, care, np.eye(len(LINK_PARAMETERS)))
    rows |= {slots[k, LINK_PARAMETERS[i]]: row for (k, i), row in groups.items()}
    kept = sorted(rows)
    return BaseParameters(listed, tuple(kept), np.array([rows[k] for k in kept]).reshape(len(kept), len(listed)))


def _groups(model: Model, listed: Sequence[Parameter], gravity: ArrayLike, free_root: bool, care: Tolerances,
            basis: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """{(link, i): row (p,)}: coordinate i in the basis of what joint `link` feels, as a sum of the listed parameters.

    Leaves first: what its joint feels of a link stays, the rest moves to the antecedent.
    """
    found: dict[tuple[int, int], np.ndarray] = {}
    groups = np.zeros((len(model.links), len(LINK_PARAMETERS), len(listed)))
    for slot, (link, kind, *_) in enumerate(listed):
        if kind in LINK_PARAMETERS and link < len(groups):
            groups[link, LINK_PARAMETERS.index(kind), slot] = 1.0
    felt = joint_observability(model, np.asarray(gravity, dtype=float), free_root, care.tolerance)
    for k in range(len(felt) - 1, -1, -1):
        there = [i for i, kind in enumerate(LINK_PARAMETERS) if kind in INERTIAL or groups[k, i].any()]
        kept, A = select_parameters(felt[k].felt @ basis, there, care)
        own = A @ np.linalg.solve(basis, groups[k])
        found |= {(k, i): np.where(np.abs(own[i]) < care.dust, 0.0, own[i]) for i in kept}
        if k > 0:
            groups[model.links[k].parent, :10] += felt[k].into @ (groups[k] - basis @ own)[:10]
    return found


# ---------------------------------------------------------------------- the numeric way

def from_regressor(W: np.ndarray, listed: Sequence[Parameter], tolerance: float = DEPENDENT_TOL) -> BaseParameters:
    """Base parameters from regressors of many states, stacked (rows, p): Gautier 1991.

    A column is kept if it is farther from those kept before than tolerance times its length; the others are
    combinations W = W[:, kept] @ grouping. Links near the root come first, as in the rule, hence the same names.
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

    states: (samples, 3 n) q, qd, qdd instead of random ones. Coulomb friction jumps with the sign of the speed: what only
    its smoothing tells apart is not told apart.
    """
    n, g = model.n, np.asarray(gravity, dtype=float)
    links = tuple(replace(link, term=replace(link.term, smoothing=SMOOTHING_VELOCITY)) for link in model.links)
    motors = tuple(replace(motor, term=replace(motor.term, smoothing=SMOOTHING_VELOCITY)) for motor in model.coupled_motors)
    unknown = with_unknowns(replace(model, links=links, coupled_motors=motors), listed)
    blocks = {"q": n, "qd": n, "qdd": n} | ({"base": 9} if free_root else {})

    def function(q, qd, qdd, base=np.zeros(9)):
        moving = BaseMotion(w=base[:3], wd=base[3:6], a=base[6:])
        return regressor(unknown, len(listed), q, qd, qdd, q * 0.0, g, moving, free_root)[:1]

    if states is None:
        count = int(np.ceil(EQUATIONS_PER_UNKNOWN * len(listed) / max(n + 6 * free_root, 1))) + 2
        states = np.random.default_rng(seed).normal(size=(count, sum(blocks.values())))
    return np.concatenate(kernel.build(function, blocks, "python")(states)[0])
