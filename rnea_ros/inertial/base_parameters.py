"""Base inertial parameters: the fewest combinations of parameters that say the same about every torque of a robot.

By the rule of regrouping.py, which needs the geometry only. Mimic joints, and motors that turn with several joints, may hide
more than the rule can know: then by QR of regressors at random states among what the rule leaves (Gautier 1991). The numeric
way also works alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.linear_forms import coefficients, unknowns
from ..algorithms.regressor import regressor
from ..algorithms.torque_rate import BaseMotion
from ..codegen import kernel
from ..errors import InputError
from ..model.tree import Model, frozen
from .inertial_parameters import INERTIAL, Parameter, inertia, parameters, ten, values, with_unknowns
from .regrouping import CLEAR, FELT, KEEP_FIRST, Tolerances, joints, share

GRAVITY = (0.0, 0.0, -9.81)
TOLERANCE = 1e-9  # axes closer to parallel than this [rad] are parallel
NUMERIC = 1e-7  # a column of the regressor that is nearer to the others, relative to its length, depends on them
NOTHING = 1e-11  # a column this small against the largest one is zero
DUST = 1e-13  # what rounding leaves of zeros in the rule's grouping
EXACT = Tolerances(tolerance=1e-14, dust=1e-14, clear=0.1)  # where torques must not change; rounding leaves 1e-15
STATES = 1.5  # equations for every unknown in a sampled regressor
JUMP = 1e-9  # rad/s or m/s
ORDER = (*KEEP_FIRST, "coulomb", "viscous")


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
                    tolerance: float = TOLERANCE) -> BaseParameters:
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
    listed, basis = parameters(model, root=free_root), _second_moments() if second_moments else np.eye(len(FELT))
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
    """(12, 12): FELT from the same with E in place of J, J = tr(E) 1 - E."""
    m, ms, E = inertia(dict(zip(INERTIAL, unknowns(10), strict=True)))
    basis = np.eye(len(FELT))
    basis[:10, :10] = coefficients(ten(m, ms, np.eye(3) * np.trace(E) - E), 10)
    return basis


def _by_rule(model: Model, listed: tuple[Parameter, ...], gravity: ArrayLike, free_root: bool,
             tolerance: float) -> BaseParameters:
    slots = {(parameter.link, parameter.kind): slot for slot, parameter in enumerate(listed)}
    rows = {slot: np.eye(len(listed))[slot] for (link, kind), slot in slots.items()
            if kind not in FELT or link >= len(model.links)}
    groups = _groups(model, listed, gravity, free_root, Tolerances(tolerance, DUST, CLEAR), np.eye(len(FELT)))
    rows |= {slots[k, FELT[i]]: row for (k, i), row in groups.items()}
    kept = sorted(rows)
    return BaseParameters(listed, tuple(kept), np.array([rows[k] for k in kept]).reshape(len(kept), len(listed)))


def _groups(model: Model, listed: Sequence[Parameter], gravity: ArrayLike, free_root: bool, care: Tolerances,
            basis: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
    """{(link, i): row (p,)}: coordinate i in the basis of what joint `link` feels, as a sum of the listed parameters.

    Leaves first: what its joint feels of a link stays, the rest moves to the antecedent.
    """
    found: dict[tuple[int, int], np.ndarray] = {}
    groups = np.zeros((len(model.links), len(FELT), len(listed)))
    for slot, (link, kind, *_) in enumerate(listed):
        if kind in FELT and link < len(groups):
            groups[link, FELT.index(kind), slot] = 1.0
    felt = joints(model, np.asarray(gravity, dtype=float), free_root, care.tolerance)
    for k in range(len(felt) - 1, -1, -1):
        there = [i for i, kind in enumerate(FELT) if kind in INERTIAL or groups[k, i].any()]
        kept, A = share(felt[k].felt @ basis, there, care)
        own = A @ np.linalg.solve(basis, groups[k])
        found |= {(k, i): np.where(np.abs(own[i]) < care.dust, 0.0, own[i]) for i in kept}
        if k > 0:
            groups[model.links[k].parent, :10] += felt[k].into @ (groups[k] - basis @ own)[:10]
    return found


# ---------------------------------------------------------------------- the numeric way

def from_regressor(W: np.ndarray, listed: Sequence[Parameter], tolerance: float = NUMERIC) -> BaseParameters:
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
    for k in sorted(range(len(listed)), key=lambda k: (listed[k].link, ORDER.index(listed[k].kind))):
        before = Q[:len(kept)]
        rest = R[:, k] - (before @ R[:, k]) @ before
        rest = rest - (before @ rest) @ before  # twice is enough
        if lengths[k] > NOTHING * lengths.max() and np.linalg.norm(rest) > tolerance * lengths[k]:
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
    links = tuple(replace(link, term=replace(link.term, smoothing=JUMP)) for link in model.links)
    motors = tuple(replace(motor, term=replace(motor.term, smoothing=JUMP)) for motor in model.coupled_motors)
    unknown = with_unknowns(replace(model, links=links, coupled_motors=motors), listed)
    blocks = {"q": n, "qd": n, "qdd": n} | ({"base": 9} if free_root else {})

    def function(q, qd, qdd, base=np.zeros(9)):
        moving = BaseMotion(w=base[:3], wd=base[3:6], a=base[6:])
        return regressor(unknown, len(listed), q, qd, qdd, q * 0.0, g, moving, free_root)[:1]

    if states is None:
        count = int(np.ceil(STATES * len(listed) / max(n + 6 * free_root, 1))) + 2
        states = np.random.default_rng(seed).normal(size=(count, sum(blocks.values())))
    return np.concatenate(kernel.build(function, blocks, "python")(states)[0])
