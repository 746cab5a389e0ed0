"""Structure of a robot's equations for one choice of roles: what is unknown, and how often each row is differentiated.

Roles of a coordinate: given (all derivatives are inputs), state (position and velocity are inputs), posed (the position is),
                       follows
(none is). Roles of an effort: wanted (unknown) or known (an input). The signature matrix comes from derivatives at a random
state, the offsets from algorithms/elimination.py; rank and singularity are judged at the actual state, in solution.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..algorithms.elimination import ABSENT, assignment, offsets
from ..algorithms.equations import WORLD, EquationsOfMotion, Rates
from ..algorithms.kinematics import base_poses
from ..errors import ModelError, some

STATE, POSED, FOLLOWS = 2, 1, 0  # number of derivatives of a coordinate that are inputs, from order 0
TINY = 1e-13  # relative to the largest entry of the row: smaller derivatives at a random state are structural zeros
DUST = 1e-14  # relative to the largest row: smaller rows are zero
NULL = 1e-8  # of a unit row that is left beside the rows before it: it depends on them
STEP = 1e-30  # of complex differentiation
ANY_BODY = (1.0, 0.13, -0.07, 0.21, 0.093, 0.011, -0.027, 0.085, 0.014, 0.052)  # on each carrier: none of its entries is zero


@dataclass(frozen=True)
class Roles:
    """Roles of the coordinates by name; a coordinate that is not named follows.

    known_efforts: whether efforts of actuated coordinates that are not given are inputs, as in forward dynamics
    """

    given: frozenset[str] = frozenset()
    state: frozenset[str] = frozenset()
    posed: frozenset[str] = frozenset()
    standing: frozenset[str] = frozenset()  # given and at rest: charts of platforms
    closed: frozenset[str] = frozenset()  # follows, but its position is found by closing the loops before
    known_efforts: bool = False

    @classmethod
    def of(cls, given: Collection[str] = (), state: Collection[str] = (), posed: Collection[str] = (),
           closed: Collection[str] = (), known_efforts: bool = False, standing: Collection[str] = ()) -> Roles:
        """Return the roles of these names."""
        return cls(frozenset({*given, *standing}), frozenset(state), frozenset(posed), frozenset(standing),
                   frozenset(closed), known_efforts)


class NamedColumns(NamedTuple):
    """Columns of a solution by name, each with the number of orders that are known, None for all; base: orders of its pose."""

    positions: dict[str, tuple[int | None, int]]
    efforts: dict[str, tuple[int | None, int]]
    multipliers: dict[str, tuple[int | None, int]]
    base: int | None


class Structure:
    """Unknowns, offsets and stages of one robot with one choice of roles.

    columns : numbers of the unknowns among x, lambda, tau, nu, kappa; c (rows,), d (columns,): the offsets
    inputs  : how many derivatives of each unknown are inputs (0 for multipliers and efforts)
    free    : numbers of the coordinates that are not given
    """

    def __init__(self, equations: EquationsOfMotion, roles: Roles, spare: Collection[int] = ()):
        """Analyse the equations.

        spare: numbers of constraints that others imply, as in loops that are held more than needed
        """
        self.equations, self.roles, self.spare = equations, roles, sorted(spare)
        names, parts = equations.coordinates, equations.parts
        is_given = np.array([name in roles.given for name in names], dtype=bool)
        self.free = np.flatnonzero(~is_given)
        known = {**dict.fromkeys(roles.state, STATE), **dict.fromkeys([*roles.posed, *roles.closed], POSED)}
        unknown = np.ones(equations.size, dtype=bool)
        unknown[:len(names)] = ~is_given
        if roles.known_efforts:
            unknown[parts["tau"]] = [name in roles.given for name in equations.actuated]
            if equations.weights is not None:
                unknown[parts["nu"].start:] = False
        self.optimal = equations.weights is not None and not roles.known_efforts
        self.columns = np.flatnonzero(unknown)
        self.inputs = np.array([known.get(names[j], FOLLOWS) if j < len(names) else 0 for j in self.columns])
        self.labels = (*names, *equations.constraints, *(f"effort of {name}" for name in equations.actuated))
        self.row_labels = (*names, *equations.constraints)
        self._analyse()

    def carrying(self, block: Any) -> Structure:
        """Return the same structure of the equations with bodies on links, see EquationsOfMotion.carrying."""
        twin = copy(self)
        twin.equations = self.equations.carrying(block)
        return twin

    def _analyse(self) -> None:
        """Set the offsets c and d, and the entries of the dynamics that depend on x or x' alone."""
        n, m, parts = len(self.equations.coordinates), len(self.equations.constraints), self.equations.parts
        M, J, slopes = self._random_blocks()
        rows = n + m + (len(self.equations.actuated) + m + len(self.free) if self.optimal else 0)
        sigma = np.full((rows, self.equations.size), ABSENT)
        sigma[:n, :n][_present(M)] = 2
        order = np.where(np.arange(m) < self.equations.holonomic, 0, 1)[:, None]
        sigma[n:n + m, :n] = np.where(_present(J), order, ABSENT)
        sigma[:n, parts["lambda"]] = np.where(_present(J).T, 0, ABSENT)
        sigma[:n, parts["tau"]] = np.where(self.equations.selection != 0.0, 0, ABSENT)
        if self.optimal:
            e, at = len(self.equations.actuated), n + m
            sigma[at:at + e, parts["tau"]] = np.where(np.eye(e) != 0.0, 0, ABSENT)
            sigma[at:at + e, parts["nu"]] = np.where(self.equations.adjoint_selection.T != 0.0, 0, ABSENT)
            for k, (joint, rotor, _) in self.equations.sprung_actuators.items():
                sigma[at + k, parts["tau"]], sigma[at + k, [joint, rotor]] = ABSENT, 0
            sigma[at + e:at + e + m, parts["nu"]] = np.where(_present(J), 0, ABSENT)
            sigma[at + e + m:, parts["nu"]] = np.where(_present(M)[self.free], 0, ABSENT)
            sigma[at + e + m:, parts["kappa"]] = np.where(_present(J).T[self.free], 0, ABSENT)
        self.sigma = sigma
        self._set_offsets()
        coordinate = self.columns < n
        self.low_entries: list[tuple[int, int]] = []  # (order 0 or 1, coordinate) of columns with an entry of that order
        if self.undecided or (self.d[coordinate][None, :] - self.c[:n, None] < 2).any():  # rows that x or x' alone may decide
            for k, slope in enumerate(slopes()):
                sigma[:n, :n][_present(slope) & (sigma[:n, :n] < k)] = k
            self._set_offsets()
            gap = self.d[None, :] - self.c[:, None]
            for column, j in enumerate(self.columns[coordinate]):
                self.low_entries += [(k, int(j)) for k in (0, 1) if ((gap[:n, column] == k) & (sigma[:n, j] > ABSENT)).any()]

    def _set_offsets(self) -> None:
        self._stages: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._named: dict[int, NamedColumns] = {}
        n, columns = len(self.equations.coordinates), self.columns
        sigma = self.sigma[:, columns].copy()
        rows, multipliers = [n + k for k in self.spare], np.isin(columns, [n + k for k in self.spare])
        sigma[rows], sigma[:, multipliers] = ABSENT, ABSENT
        self.c, self.d = offsets(sigma)
        for k in range(len(self.equations.constraints)):
            if not (present := self.sigma[n + k, columns] > ABSENT).any():  # decides nothing, is verified alone
                self.c[n + k] = 2 if k < self.equations.holonomic else 1
            elif k in self.spare:
                self.c[n + k] = np.min((self.d - self.sigma[n + k, columns])[present])
        self.d[multipliers] = np.max(self.sigma[:, columns[multipliers]] + self.c[:, None], axis=0, initial=0)
        self.first_stage = -int(self.d.max(initial=0))
        given = np.setdiff1d(np.arange(n), self.free)
        needed = (self.c[:, None] + self.sigma[:, given])[self.sigma[:, given] > ABSENT]
        self._needed = int(needed.max(initial=2)) if needed.size else 2
        self.undecided = self._undecided()

    def _undecided(self) -> tuple[str, ...]:
        """Names of coordinates with a derivative below the d-th that is neither an input nor decided by an equation, and of
        efforts that no equation decides.
        """
        tight = np.where(self.sigma[:, self.columns] == self.d[None, :] - self.c[:, None], 1, 0)
        n, m = len(self.equations.coordinates), len(self.equations.constraints)
        tight[:, (self.columns < n) | (self.columns >= n + m)] *= 1000  # multipliers may be open, motions and efforts may not
        tight[:, np.isin(self.columns, [n + k for k in self.spare])] = 0
        found: dict[str, None] = {}
        for k in range(self.first_stage, 1):
            rows, columns = self.stage(k)
            i, j = assignment(tight[np.ix_(rows, columns)]) if len(rows) and len(columns) else (np.zeros(0, int),) * 2
            matched = {int(columns[b]) for a, b in zip(i, j, strict=True) if tight[rows[a], columns[b]]}
            for column in set(columns.tolist()) - matched:
                number = self.columns[column]
                if number < n or (n + m <= number < len(self.labels) and not self.optimal):
                    found[self.labels[number]] = None
        return tuple(found)

    def _random_blocks(self):
        """Return M (N, N), J (m, N) at a random state, and a function of d dynamics / d x and d x' there."""
        equations, rng = self.equations.carrying(np.tile(ANY_BODY, len(self.equations.carriers))), np.random.default_rng(0)
        N = len(equations.coordinates)
        x, v, a = rng.normal(size=(3, N))
        R, p = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)
        R *= np.linalg.det(R)
        anchors = [(np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=3)) for cut in equations.cuts
                   if -1 in (cut.first.link, cut.second.link)]
        with np.errstate(all="ignore"):
            M = np.array(equations.mass_matrix(x), dtype=float)
            J = np.array(equations.constraint_jacobian(R, p, x.astype(complex), anchors), dtype=complex).real
            J = J.reshape(len(equations.constraints), N)

        def slopes():
            for k in (0, 1):
                found = np.zeros((N, N))
                for j in range(equations.base if k == 0 else 0, N):
                    moved = [x.astype(complex), v.astype(complex), a.astype(complex)]
                    moved[k][j] += 1j * STEP
                    found[:, j] = np.array(equations.dynamics(R, Rates(*moved)), dtype=complex).imag / STEP
                yield found

        return M, np.nan_to_num(J, nan=1.0), slopes

    @cached_property
    def massless(self) -> tuple[str, ...]:
        """Coordinates whose state is an input, but whose acceleration no mass decides."""
        known = zip(self.columns, self.d, self.inputs, strict=True)
        return tuple(self.labels[j] for j, d, inputs in known if d < inputs == STATE)

    @property
    def order(self) -> int:
        """Number of derivatives of given coordinates that decide the rates of wanted efforts: 3 for rigid robots."""
        return self.order_for(2)

    def order_for(self, stages: int) -> int:
        """Return how many derivatives of given coordinates decide the unknowns of stages 0 .. stages - 1."""
        return stages - 1 + self._needed

    def named_columns(self, stages: int) -> NamedColumns:
        """Return the columns of a solution of stages 0 .. stages - 1 by name."""
        if stages not in self._named:
            equations, (b, parts) = self.equations, (self.equations.base, self.equations.parts)
            orders: dict[int, int | None] = dict(zip(self.columns.tolist(), (self.d + stages).tolist(), strict=True))
            tau, held = parts["tau"].start, parts["lambda"].start
            self._named[stages] = NamedColumns(
                {name: (orders.get(b + k), b + k) for k, name in enumerate(equations.coordinates[b:])},
                {name: (stages, tau + k) for k, name in enumerate(equations.actuated) if name not in self.roles.standing},
                {name: (orders.get(held + k, stages), held + k) for k, name in enumerate(equations.constraints)},
                orders.get(0))
        return self._named[stages]

    def stage(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows that are solved in stage k, and which of the columns they decide.

        phi(x) = 0 itself is solved before.
        """
        if k in self._stages:
            return self._stages[k]
        n, least = len(self.equations.coordinates), np.zeros(len(self.c), dtype=int)
        least[n:n + self.equations.holonomic] = 1
        rows = np.flatnonzero(self.c + k >= least)
        self._stages[k] = found = rows, np.flatnonzero(self.d + k >= self.inputs)
        return found


def _present(block: np.ndarray) -> np.ndarray:
    """Return which entries are no structural zeros."""
    size = np.abs(block).max(axis=1, initial=0.0)[:, None]
    size[size <= DUST * size.max(initial=0.0)] = np.inf  # what rounding leaves of nothing
    found: np.ndarray = np.abs(block) > TINY * size
    return found


def dependent_rows(jacobians: Sequence[np.ndarray]) -> tuple[int, ...]:
    """Return the rows that the rows before them imply in all of these matrices (m, N)."""
    found: set[int] | None = None
    for J in jacobians:
        size = np.linalg.norm(J, axis=1)
        rows = J / np.where(size > NULL * size.max(initial=0.0), size, np.inf)[:, None]
        basis, count, here = np.zeros(rows.shape), 0, set()
        for k, row in enumerate(rows):
            for _ in range(2):  # Gram-Schmidt; twice is enough
                row = row - basis[:count].T @ (basis[:count] @ row)
            if np.linalg.norm(row) > NULL:
                basis[count] = row / np.linalg.norm(row)
                count += 1
            else:
                here.add(k)
        found = here if found is None else found & here
    return tuple(sorted(found or ()))


# ---------------------------------------------------------------------- the structure of a robot


def decided(equations: EquationsOfMotion, roles: Roles, where: str, poses: Sequence[np.ndarray] | None = None) -> Structure:
    """Return the structure of a robot; motors whose motion q does not decide become state.

    where : robot file, for messages; poses: closed poses (n,) of all joints near the start, None without loops
    Raises ModelError that names what nothing decides.
    """
    spare = _spare_constraints(equations, roles, poses)
    structure = Structure(equations, roles, spare)
    motors = [name for name in structure.undecided if name.startswith("motor of ")]
    if motors:
        structure = Structure(equations, replace(roles, state=roles.state | {*motors}), spare)
    if structure.undecided:
        raise ModelError(f"nothing decides {some(structure.undecided)}: a joint without motor and spring must be named "
                         "under passive, or follow from a loop; a motor behind a spring needs rotor_inertia; more motors "
                         "than the motion decides need actuation_weights", where)
    return structure


def _spare_constraints(equations: EquationsOfMotion, roles: Roles, poses: Sequence[np.ndarray] | None) -> tuple[int, ...]:
    """Numbers of the constraints that others imply, at closed poses near the start."""
    if not equations.constraints:
        return ()
    rng, found, n = np.random.default_rng(0), [], equations.model.n
    free = [k for k, name in enumerate(equations.coordinates) if name not in roles.given]
    for pose in [size * rng.normal(size=n) for size in (0.0, 0.05, 0.05)] if poses is None else poses:
        x = np.zeros(len(equations.coordinates))
        x[equations.joints] = pose
        anchors = contact_poses(equations, base_poses(equations.model, pose))
        J = np.array(equations.constraint_jacobian(np.eye(3), np.zeros(3), x, anchors), dtype=float)
        found.append(J[:, free].reshape(len(equations.constraints), len(free)))
    return dependent_rows(found)


def contact_poses(equations: EquationsOfMotion, poses: Sequence[Any]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the poses in the world of the holding contacts' frames, from those of the links' frames."""
    found = []
    for cut in equations.cuts:
        if WORLD in (cut.first.link, cut.second.link):
            frame = cut.second if cut.first.link == WORLD else cut.first
            R, p = poses[frame.link]
            found.append((R @ frame.R, p + R @ frame.P))
    return found
