"""Solution of a robot's equations, stage by stage: velocities, accelerations with efforts and multipliers, then their rates.

    sum_j A_ij y_j^(k + d_j) = -f_i^(k + c_i)  with the unknown derivatives at zero,     A_ij = d f_i / d y_j^(d_j - c_i)

One matrix A serves all stages k >= 0 (Pryce 2001, section 4). The rows f and the blocks of A are traced and compiled once for
each structure; the dense solve is numpy's. Least squares by singular values replace it where rows or unknowns depend on one
another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algorithms.closed_loops import HELD
from ..algorithms.elimination import ABSENT
from ..algorithms.equations import BASE, DIRECTIONS, EquationsOfMotion, Rates, pose_series
from ..algorithms.kinematics import Pose
from ..codegen import kernel
from ..codegen.kernel import Kernel
from ..errors import InputError, some
from ..model.tree import Frame
from .base_state import base_acceleration, base_jerk
from .structure import Structure
from .validation import too_large

RANK = 1e-10  # singular values below this share of the largest are zero
NOISE = 1e-11  # rows and columns below this share of the largest are zero
MAX_CONDITION = 1e9  # of the scaled matrix, by 1-norms, for a plain solve
OPEN = 1e-6  # component of a null vector above which an unknown is not determined
MIN_PRESSURE = 1e-9  # share of the weight below which the robot does not press on the ground
RESIDUAL = 1e-6  # relative; a larger one means that the constraints do not allow the motion


class Columns(Mapping[str, np.ndarray]):
    """Derivatives of unknowns by name, from order 0 up, read from the array of all of them when they are asked for.

    derivatives : (..., orders, size); columns: {name: (number of orders, None for all; column)}
    """

    def __init__(self, derivatives: np.ndarray, columns: Mapping[str, tuple[int | None, int]]):
        self._derivatives, self._columns = derivatives, columns

    def __getitem__(self, name: str) -> np.ndarray:
        orders, column = self._columns[name]
        return self._derivatives[..., :orders, column]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


@dataclass(frozen=True, eq=False)
class Solution:
    """Everything that follows from a motion, by name; derivatives from order 0 up, as many as were asked for.

    positions : {coordinate: (q, q', q'', ...)} of joints and motors behind springs [rad, m]
    base      : (k, 6) velocity, acceleration, ... of a moving base: the numbers of its velocity along its axes, and their
                rates
    efforts   : {actuated coordinate: (tau, tau', ...)} [N m, N]
    multipliers : {constraint: (lambda, lambda', ...)} [N, N m]
    springs   : {elastic joint: (torque, torque', ...)} of its spring on its links [N m, N]
    open_multipliers : those that the equations leave open, as of over-constrained loops; their values are of least norm
    torques   : (k, n) torques of `joint_names` and their rates, as torque_and_rate gives them

    With many samples every array has a first axis for them.
    """

    positions: Mapping[str, np.ndarray]
    base: np.ndarray
    efforts: Mapping[str, np.ndarray]
    multipliers: Mapping[str, np.ndarray]
    springs: Mapping[str, np.ndarray] = field(default_factory=dict)
    open_multipliers: tuple[str, ...] = ()
    torques: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def base_acceleration(self) -> np.ndarray:
        """True acceleration (6,) of a moving base, see base_state.py."""
        return base_acceleration(self.base)

    @property
    def base_jerk(self) -> np.ndarray:
        """True jerk (6,) of a moving base, see base_state.py. Needs two stages."""
        return base_jerk(self.base)

    @property
    def base_wrench(self) -> np.ndarray:
        """Wrench (6,) BY what carries the base ON the base: force, moment about its origin, along its axes. Zero where its
        motion is not given.
        """
        return self._base_efforts(0)

    @property
    def base_wrench_rate(self) -> np.ndarray:
        """Rates (6,) of the numbers of `base_wrench`. Needs two stages."""
        return self._base_efforts(1)

    def _base_efforts(self, order: int) -> np.ndarray:
        if BASE[0] not in self.efforts:
            return np.zeros(self.base[..., 0, :].shape)
        return np.stack([self.efforts[name][..., order] for name in BASE], axis=-1)


class ConstraintWrench(NamedTuple):
    """Wrench BY a constraint ON a link of the URDF.

    link   : the URDF link; of a cut joint, that of its second frame, while the other link gets the opposite wrench
    point  : (3,) in the frame of the link [m]
    wrench : (6,) force and moment about the point, along the axes of the link [N, N m]
    """

    link: str
    point: np.ndarray
    wrench: np.ndarray


def named(structure: Structure, Y: np.ndarray, stages: int, torques: np.ndarray, open_: tuple[str, ...] = (),
          multipliers: bool = True) -> Solution:
    """Return the solution by name from the derivatives Y (..., orders, size) of all unknowns and given coordinates.

    torques: (..., stages, n); multipliers: whether they were solved for
    """
    if not np.isfinite(Y).all():
        raise too_large("the solution")
    columns = structure.named_columns(stages)
    base = Y[..., 1:columns.base, :6] if structure.equations.base else np.zeros((0, 6))
    positions = Columns(Y, columns.positions)
    return Solution(positions, base, Columns(Y, columns.efforts), Columns(Y, columns.multipliers) if multipliers else {},
                    _springs(structure.equations, positions), open_, torques)


def _springs(equations: EquationsOfMotion, positions: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Torques of the springs of elastic joints on their links, and their derivatives."""
    springs = {}
    for name, motor in zip(equations.elastic_joints, (one for one in equations.motors if one.stiffness < np.inf), strict=True):
        turned, joint = positions[f"motor of {name}"], positions[name]
        known = min(turned.shape[-1], joint.shape[-1])
        springs[name] = motor.stiffness * (turned[..., :known] - joint[..., :known])
    return springs


def constraint_wrenches(equations: EquationsOfMotion, found: Solution, frames: Mapping[str, Frame], rotation: np.ndarray,
                        poses: Sequence[Pose]) -> dict[str, ConstraintWrench]:
    """Return the wrench of each cut joint, contact and wheel of a solution, by its name.

    frames: of the links of the URDF; rotation (3, 3) of the base, which decides where wheels touch the plane z = 0; poses: of
    the links in the base's frame
    """
    def on_urdf_link(link: int, R: np.ndarray, P: np.ndarray, six: np.ndarray) -> ConstraintWrench:
        name, own = next((name, own) for name, own in frames.items() if own.link == link)
        turn = own.R.T @ R
        return ConstraintWrench(name, own.R.T @ (P - own.P), np.concatenate((turn @ six[:3], turn @ six[3:])))

    wrenches = {}
    for cut in equations.cuts:
        six = np.zeros(6)
        for k in HELD[cut.type]:
            six[k] = found.multipliers[f"{cut.name}[{k}]"][0]
        wrenches[cut.name] = on_urdf_link(cut.second.link, cut.second.R, cut.second.P, six)
    for wheel in equations.wheels:
        point, directions = equations.touch(wheel, rotation @ poses[wheel.link].R)
        force = sum(found.multipliers[f"{wheel.name}[{way}]"][0] * directions[DIRECTIONS.index(way)] for way in wheel.holds)
        wrenches[wheel.name] = on_urdf_link(wheel.link, np.eye(3), point, np.concatenate((force, np.zeros(3))))
    return wrenches


def zero_moment_point(reaction: np.ndarray, weight: float, ground: np.ndarray, normal: np.ndarray) -> np.ndarray:
    """Return the point (3,) or (samples, 3) of a plane about which the ground's reaction has no tilting moment [m].

    reaction : (6,) or (samples, 6): force, and moment about the origin [N, N m]
    weight   : of the robot [N]; ground: a point of the plane; normal: out of it, of any length
    NaN while nothing presses on the ground.
    """
    up = normal / np.linalg.norm(normal)
    f, n = np.split(reaction, 2, axis=-1)
    pressure = (f @ up)[..., None]
    return ground + np.cross(up, n - np.cross(ground, f)) / np.where(pressure > MIN_PRESSURE * weight, pressure, np.nan)


@dataclass
class Situation:
    """Inputs of one sample.

    R, p      : pose of the base in the world
    anchors   : poses of the holding contacts' frames in the world
    wrenches  : {link number: (orders, 6)} and its derivatives, in the link's frame
    world_wrenches : [(link number, point (3,), (6,))]
    """

    R: np.ndarray = field(default_factory=lambda: np.eye(3))
    p: np.ndarray = field(default_factory=lambda: np.zeros(3))
    anchors: Sequence[Any] = ()
    wrenches: Mapping[int, np.ndarray] = field(default_factory=dict)
    world_wrenches: Sequence[Any] = ()

    @property
    def key(self) -> tuple[Any, ...]:
        """Key of the kernel."""
        return (tuple((link, len(values)) for link, values in self.wrenches.items()),
                tuple((link, tuple(np.asarray(point).tolist())) for link, point, _ in self.world_wrenches))

    def blocks(self) -> list[np.ndarray]:
        """Return the input blocks of kernels, in the order of `sizes`."""
        return [self.R.ravel(), self.p, *(np.concatenate((R.ravel(), p)) for R, p in self.anchors),
                *(values.ravel() for values in self.wrenches.values()), *(six for *_, six in self.world_wrenches)]

    def traced(self, R: Any, p: Any, blocks: Mapping[str, Any], anchors: Sequence[Any] | None = None) -> Situation:
        """Return a situation like this one from the blocks of a kernel, in any scalar. anchors: instead of those in blocks."""
        return Situation(R.reshape(3, 3), p, _anchors(blocks) if anchors is None else anchors,
                         {link: blocks[f"wrench{link}"].reshape(len(values), 6) for link, values in self.wrenches.items()},
                         [(link, point, blocks[f"world_wrench{k}"]) for k, (link, point, _) in enumerate(self.world_wrenches)])

    def sizes(self) -> dict[str, int]:
        """Return name and size of each block."""
        return {"R": 9, "p": 3, **{f"anchor{k}": 12 for k in range(len(self.anchors))},
                **{f"wrench{link}": values.size for link, values in self.wrenches.items()},
                **{f"world_wrench{k}": 6 for k in range(len(self.world_wrenches))}}


class Solver:
    """Stages of one robot with one choice of roles, and their kernels, compiled when they are first needed."""

    def __init__(self, equations: EquationsOfMotion, structure: Structure, backend: str):
        self.equations, self.structure, self.backend = equations, structure, backend
        self.payloads: list[np.ndarray] = []  # block of kernels: ten numbers for each carrier of the equations
        self._kernels: dict[Any, Kernel] = {}
        self._lengths: dict[int, int] = {}

    def solve(self, Y: np.ndarray, situation: Situation, stages: int) -> tuple[np.ndarray, tuple[str, ...]]:
        """Fill the unknown derivatives in Y (orders, size) for all stages below `stages`; return it with the open multipliers.

        Y: rows are orders, columns x, lambda, tau, nu, kappa; inputs are filled in. Raises InputError naming what is not
        determined, or the constraint that does not allow the motion.
        """
        structure = self.structure
        open_: tuple[str, ...] = ()
        factor: _Factor | None = None
        for k in range(structure.first_stage, stages):
            rows, columns = structure.stage(k)
            if not len(columns):
                continue
            if factor is None or k < 1:
                factor = _Factor(self._matrix(Y, situation, rows, columns), structure, rows, columns)
            f = self._residual(k, rows, Y, situation)
            z = factor.solve(f, k)
            Y[k + structure.d[columns], structure.columns[columns]] += z
            if k >= 0:
                open_ = factor.open_multipliers
        return Y, open_

    def carrying(self, payloads: np.ndarray) -> Solver:
        """Return the same equations with other payloads, ten numbers for each carrier of the equations. Kernels are shared."""
        twin = copy(self)
        twin.payloads = [payloads] if self.equations.carriers else []
        return twin

    def kernel(self, name: Any, evaluate: Callable[..., Any], sizes: Mapping[str, int]) -> Kernel:
        """Return the kernel of this name, compiled when it is first needed; its first block are `payloads`, if there are any.

        evaluate: function of the structure, whose equations carry the payloads, and of blocks with these sizes
        """
        if name not in self._kernels:
            carriers, structure = self.equations.carriers, self.structure

            def traced(payloads: Any = (), **blocks: Any) -> Any:
                return evaluate(structure.carrying(payloads) if carriers else structure, **blocks)

            self._kernels[name] = kernel.build(traced, {**({"payloads": 10 * len(carriers)} if carriers else {}), **sizes},
                                               self.backend)
        return self._kernels[name]

    def _called(self, name: Any, evaluate: Callable[..., Any], sizes: Mapping[str, int], *blocks: np.ndarray) -> Any:
        """Return the outputs of a kernel of one sample."""
        return self.kernel(name, evaluate, sizes)(np.concatenate((*self.payloads, *blocks)))

    # ------------------------------------------------------------------ matrix

    def _matrix(self, Y, situation, rows, columns):
        """Return A of these rows and columns."""
        structure, n = self.structure, len(self.equations.coordinates)
        J = self.jacobian(Y[0, :n], situation) if self.equations.constraints else np.zeros((0, n))
        M, slopes = None, dict[tuple[int, int], Any]()
        if (rows < n).any() or structure.optimal:
            M, slopes = self.mass_matrix(Y[0, :n]), dict(zip(structure.low_entries, self._slopes(Y, situation), strict=True))
        return stage_matrix(structure, J, M, slopes)[np.ix_(rows, structure.columns[columns])]

    def jacobian(self, x: np.ndarray, situation: Situation) -> np.ndarray:
        """Return J (m, N) of the constraints at positions x (N,)."""
        def evaluate(structure, R, p, x, **rest):
            return [structure.equations.constraint_jacobian(R.reshape(3, 3), p, x, _anchors(rest))]

        return self._evaluated("J", evaluate, situation, x=x)[0]

    def mass_matrix(self, x: np.ndarray) -> np.ndarray:
        """Return M (N, N) of all coordinates at positions x (N,)."""
        return self._called("M", lambda structure, x: [structure.equations.mass_matrix(x)], {"x": len(x)}, x)[0]

    def constraint_bias(self, x: np.ndarray, v: np.ndarray, situation: Situation) -> np.ndarray:
        """Return J' v (m,) of the constraints: their second derivatives, of wheels the first, without acceleration."""
        zero = np.zeros(len(x))

        def evaluate(structure, R, p, x, v, **rest):
            equations = structure.equations
            pose = R.reshape(3, 3), p
            at = _series(pose, [v[:6], np.zeros(6)], 2) if equations.base else pose
            rows = equations.constraint_rows(*at, jets(x, v, zero), jets(v, zero, zero), _anchors(rest))
            m = equations.holonomic
            return [[*derivative(rows[:m], 2), *derivative(rows[m:], 1)]]

        return self._evaluated("constraint bias", evaluate, situation, x=x, v=v)[0]

    def jacobian_rate(self, x: np.ndarray, v: np.ndarray, situation: Situation) -> np.ndarray:
        """Return the rate (m, N) of `jacobian` along velocities v (N,)."""
        def evaluate(structure, R, p, x, v, **rest):
            pose = R.reshape(3, 3), p
            at = _series(pose, [v[:6]], 1) if structure.equations.base else pose
            return [derivative(structure.equations.constraint_jacobian(*at, jets(x, v), _anchors(rest)), 1)]

        return self._evaluated("J rate", evaluate, situation, x=x, v=v)[0]

    def dynamics(self, x: np.ndarray, v: np.ndarray, a: np.ndarray, situation: Situation) -> np.ndarray:
        """Return the efforts (N,) of all coordinates under the loads of the situation, constraint forces left out."""
        def evaluate(structure, R, p, x, v, a, **rest):
            there = situation.traced(R, p, rest)
            wrenches = {link: values[0] for link, values in there.wrenches.items()}
            return [structure.equations.dynamics(there.R, Rates(x, v, a), wrenches, there.world_wrenches)]

        return self._evaluated(("dynamics", situation.key), evaluate, situation, x=x, v=v, a=a)[0]

    def gravity(self, x: np.ndarray, v: np.ndarray, multipliers: np.ndarray,
                situation: Situation) -> tuple[np.ndarray, np.ndarray]:
        """Return gravity's share g (N,) of `dynamics`, and g' - J'^T lambda along v, lambda (m,) held constant."""
        zero = np.zeros(len(x))

        def evaluate(structure, R, p, x, v, multipliers, **rest):
            equations = structure.equations
            pose = R.reshape(3, 3), p
            at = _series(pose, [v[:6]], 1) if equations.base else pose
            still = jets(zero, zero)
            rows = equations.dynamics(at[0], Rates(jets(x, v), still, still), only_gravity=True)
            rates = derivative(rows, 1)
            if equations.constraints:
                rates = rates - derivative(equations.constraint_jacobian(*at, jets(x, v), _anchors(rest)).T @ multipliers, 1)
            return [derivative(rows, 0), rates]

        static, rate = self._evaluated("gravity", evaluate, situation, x=x, v=v, multipliers=multipliers)
        return static, rate

    def _evaluated(self, name, evaluate, situation, **blocks):
        """Return the outputs of a kernel for the situation (without its loads, if the name is a plain word) and blocks."""
        loaded = isinstance(name, tuple)
        reduced = situation if loaded else Situation(situation.R, situation.p, situation.anchors)
        sizes = {**reduced.sizes(), **{key: len(value) for key, value in blocks.items()}}
        return self._called(name, evaluate, sizes, *reduced.blocks(), *blocks.values())

    def _slopes(self, Y, situation):
        """d dynamics / d x_j or d x_j' of the structure's low entries, (entries, N)."""
        low, n = self.structure.low_entries, len(self.equations.coordinates)
        if not low:
            return np.zeros((0, n))

        def evaluate(structure, R, x, v, a):
            found = []
            for order, j in low:
                unit = np.zeros((3, n))
                unit[order, j] = 1.0
                rates = Rates(*(jets(values, step) for values, step in zip((x, v, a), unit, strict=True)))
                found.append(derivative(structure.equations.dynamics(R.reshape(3, 3), rates), 1))
            return [np.array(found)]

        return self._called("slopes", evaluate, {"R": 9, "x": n, "v": n, "a": n}, situation.R.ravel(), Y[:3, :n].ravel())[0]

    # ------------------------------------------------------------------ rows

    def _residual(self, k, rows, Y, situation):
        """f_i^(k + c_i) of these rows."""
        orders = self._orders_needed(k, rows)
        return self._called((k, situation.key), *self._traced(k, rows, situation), *situation.blocks(), Y[:orders].ravel())[0]

    def _orders_needed(self, k, rows):
        """Return how many orders of Y the rows of stage k take."""
        if k not in self._lengths:
            n = len(self.equations.coordinates)
            self._lengths[k] = int(max(k + self.structure.c[i] + (3 if i < n else 2) for i in rows))
        return self._lengths[k]

    def _traced(self, k, rows, situation):
        orders, size, own = self._orders_needed(k, rows), self.equations.size, self.structure
        vanishing = np.zeros((orders, size), dtype=bool)
        for j, d, known in zip(own.columns, own.d, own.inputs, strict=True):
            vanishing[max(k + d, known):, j] = True  # unknown derivatives are zero in the right-hand side

        def evaluate(structure, R, p, y, **rest):
            Y = y.reshape(orders, size).copy()
            Y[vanishing] = 0.0
            return [stage_rows(structure, k, rows, Y, situation.traced(R, p, rest))]

        return evaluate, {**situation.sizes(), "y": orders * size}


def stage_matrix(structure: Structure, J: np.ndarray, M: np.ndarray | None,
                 slopes: Mapping[tuple[int, int], Any]) -> np.ndarray:
    """Return A_ij = d f_i / d y_j^(d_j - c_i) of all rows and unknowns, for any scalar.

    J, M   : Jacobian (m, N) of the constraints, mass matrix (N, N); without M its entries are zero
    slopes : of the dynamics (N,), by order and coordinate of the structure's low entries
    """
    equations = structure.equations
    n, m, parts = len(equations.coordinates), len(equations.constraints), equations.parts
    gap = np.full((len(structure.c), equations.size), ABSENT)
    gap[:, structure.columns] = structure.d[None, :] - structure.c[:, None]
    full = np.zeros(gap.shape).astype(J.dtype)
    rolling = np.arange(m)[:, None] >= equations.holonomic
    full[n:n + m, :n] = np.where(gap[n:n + m, :n] == rolling, J, 0.0)
    if M is not None:
        full[:n, :n] = np.where(gap[:n, :n] == 2, M, 0.0)
    for (order, j), slope in slopes.items():
        full[:n, j] = np.where(gap[:n, j] == order, slope, full[:n, j])
    full[:n, parts["lambda"]] = np.where(gap[:n, parts["lambda"]] == 0, -J.T, 0.0)
    full[:n, parts["tau"]] = np.where(gap[:n, parts["tau"]] == 0, -equations.selection, 0.0)
    if structure.optimal:
        e, at, weights = len(equations.actuated), n + m, np.asarray(equations.weights)
        full[at:at + e, parts["tau"]] = np.diag(weights)
        full[at:at + e, parts["nu"]] = -equations.adjoint_selection.T
        for i, (joint, rotor, stiffness) in equations.sprung_actuators.items():  # the torque of a spring
            slope = stiffness * weights[i]
            full[at + i, parts["tau"]], full[at + i, [joint, rotor]] = 0.0, (-slope, slope)
        full[at + e:at + e + m, parts["nu"]] = J
        if M is not None:
            full[at + e + m:, parts["nu"]] = M[structure.free]
        full[at + e + m:, parts["kappa"]] = J.T[structure.free]
        full[at:] = np.where(gap[at:] == 0, full[at:], 0.0)
    return full


def stage_rows(structure: Structure, k: int, rows: Sequence[int], Y: Any, situation: Situation) -> list[Any]:
    """Return f_i^(k + c_i) of these rows at derivatives Y (orders, size) of all unknowns and given coordinates, any scalar.

    Derivatives beyond those in Y are zero, as are those of wrenches.
    """
    equations = structure.equations
    n, m = len(equations.coordinates), len(equations.constraints)
    found: dict[int, Any] = {}
    for begin, end in ((0, n), (n, n + m), (n + m, len(structure.c))):
        here = [int(i) for i in rows if begin <= i < end]
        if not here:
            continue
        order = int(k + structure.c[here].max())
        missing = max(0, order + 3 - len(Y))
        X = np.concatenate((Y, np.zeros((missing, equations.size)))) if missing else Y
        R, p = situation.R, situation.p
        R, p = _series((R, p), X[1:, :6], order) if equations.base else (R, p)
        x, v, a = (jets(*(X[s, :n] for s in range(start, start + order + 1))) for start in range(3))
        y_of = {name: _without_zeros(jets(*X[:order + 1, part])) for name, part in equations.parts.items() if name != "x"}
        if begin == 0:
            wrenches = {link: jets(*(given[s] if s < len(given) else np.zeros(6) for s in range(order + 1)))
                        for link, given in situation.wrenches.items()}
            values = equations.rows(R, p, Rates(x, v, a), y_of["lambda"], y_of["tau"], situation.anchors, wrenches=wrenches,
                                    world_wrenches=situation.world_wrenches)
        elif begin == n:
            values = equations.constraint_rows(R, p, x, v, situation.anchors)
        else:
            values = equations.optimality_rows(R, p, x, y_of["tau"], y_of["nu"], y_of["kappa"], structure.free,
                                               situation.anchors)
        found |= {i: derivative([values[i - begin]], int(k + structure.c[i]))[0] for i in here}
    return [found[int(i)] for i in rows]


def row_changes(structure: Structure, k: int, rows: Sequence[int], Y: Any, dY: Any, situation: Situation) -> np.ndarray:
    """Return the changes of f_i^(k + c_i) of these rows along changes dY (orders, size), as stage_rows.

    The anchors of the situation may be series whose second coefficients are their changes.
    """
    n, m = len(structure.equations.coordinates), len(structure.equations.constraints)
    series = jets(Y, dY)
    found: dict[int, Any] = {}
    for begin, end in ((0, n), (n, n + m), (n + m, len(structure.c))):  # rows whose series in time have one length
        here = [int(i) for i in rows if begin <= i < end]
        if here:
            there = replace(situation, anchors=constant_series(situation.anchors, int(k + structure.c[here].max())))
            found |= dict(zip(here, stage_rows(structure, k, here, series, there), strict=True))
    return derivative([found[int(i)] for i in rows], 1)


def constant_series(anchors: Sequence[Any], order: int) -> list[Any]:
    """Return poses that stand still as series in time."""
    return [tuple(jets(part, *(np.zeros(np.shape(part)) for _ in range(order))) for part in anchor) for anchor in anchors]


class _Factor:
    """Scaled matrix of one stage: its inverse, or its singular values where that is not enough."""

    def __init__(self, A: np.ndarray, structure: Structure, rows: np.ndarray, columns: np.ndarray):
        if not np.isfinite(A).all():
            raise too_large("the matrix of the equations")
        self._A, self._structure, self._rows, self._columns = A, structure, rows, columns
        size = np.abs(A).max(axis=0, initial=0.0)
        self._size = np.where(size <= NOISE * size.max(initial=0.0), np.inf, size)
        tall = np.abs(A / self._size).max(axis=1, initial=0.0)
        self._tall = np.where(tall <= NOISE * tall.max(initial=0.0), np.inf, tall)
        self._scaled = A / self._size / self._tall[:, None]
        self._inverse: np.ndarray | None = None
        self.open_multipliers: tuple[str, ...] = ()
        self._open: list[int] = []
        if A.shape[0] == A.shape[1] and np.isfinite(self._size).all() and np.isfinite(self._tall).all():
            try:
                inverse = np.linalg.inv(self._scaled)
            except np.linalg.LinAlgError:
                inverse = np.full(A.shape, np.inf)
            sizes = [np.abs(part).sum(axis=0).max(initial=0.0) for part in (inverse, self._scaled)]
            if sizes[0] * sizes[1] < MAX_CONDITION:
                self._inverse = inverse
        if self._inverse is None:
            self._decompose()

    def _decompose(self) -> None:
        U, s, Vt = np.linalg.svd(self._scaled)
        rank = int((s > RANK * s.max(initial=0.0)).sum())
        self._pseudo = (Vt[:rank].T / s[:rank]) @ U[:, :rank].T
        loose = np.linalg.norm(Vt[rank:], axis=0)
        self._open = [int(k) for k in np.flatnonzero((loose > OPEN) | np.isinf(self._size))]
        n, m = len(self._structure.equations.coordinates), len(self._structure.equations.constraints)
        numbers = self._structure.columns[self._columns[self._open]] if self._open else np.zeros(0, dtype=int)
        self.open_multipliers = tuple(self._structure.labels[j] for j in numbers if n <= j < n + m)
        self._undetermined = [int(j) for j in numbers if j < n or n + m <= j < len(self._structure.labels)]

    def solve(self, f: np.ndarray, k: int) -> np.ndarray:
        """Return -A^-1 f of stage k."""
        if not np.isfinite(f).all():
            raise too_large("the motion")
        right = f / self._tall
        if self._inverse is not None:
            z = self._inverse @ right
            z = z + self._inverse @ (right - self._scaled @ z)  # one step of iterative refinement
            return np.asarray(-z / self._size)
        if self._undetermined:
            raise self._not_determined(k)
        z = self._pseudo @ right
        z = z + self._pseudo @ (right - self._scaled @ z)
        left = np.abs(right - self._scaled @ z)
        left[np.isinf(self._tall)] = np.abs(f[np.isinf(self._tall)])
        if left.max(initial=0.0) > RESIDUAL * (1.0 + np.abs(right).max(initial=0.0)):
            row = int(self._rows[left.argmax()])
            names = self._structure.row_labels
            raise InputError(f"the motion is not one that {names[row] if row < len(names) else 'the actuation'} allows: its "
                             f"equation is violated by {left.max():.3g}; constraints and unactuated coordinates decide a part "
                             "of the motion, which then must not be given otherwise")
        return np.asarray(-z / self._size)

    def _not_determined(self, k: int) -> InputError:
        labels, n = self._structure.labels, len(self._structure.equations.coordinates)
        motions, efforts = ([labels[j] for j in self._undetermined if (j < n) is wanted] for wanted in (True, False))
        if efforts:
            return InputError(f"{some(efforts)}: more efforts are wanted than the motion decides; give actuation_weights for "
                              "the least efforts, or actuate fewer joints")
        why = ("the constraints do not decide them at this pose (it is singular), or nothing does: declare a spring, or name "
               "them under passive" if k < 0 else "no mass, spring or constraint decides them at this pose")
        return InputError(f"motion of {some(motions)} is not determined: {why}")


def _anchors(blocks: Mapping[str, Any]) -> list[tuple[Any, Any]]:
    """Poses from the kernel's blocks."""
    found: list[tuple[Any, Any]] = []
    while f"anchor{len(found)}" in blocks:
        block = blocks[f"anchor{len(found)}"]
        found.append((block[:9].reshape(3, 3), block[9:]))
    return found


def _without_zeros(series: np.ndarray) -> np.ndarray:
    """Return the series, those of plain zeros as the number zero: what they multiply is not traced."""
    for k, x in enumerate(series):
        if all(isinstance(value, float) and value == 0.0 for value in x.c):
            series[k] = 0.0
    return series


def _series(pose: tuple[Any, Any], V: Any, order: int) -> tuple[Any, Any]:
    turns, positions = pose_series(*pose, V, order)
    return jets(*turns), jets(*positions)
