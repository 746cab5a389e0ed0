"""Physical consistency of base parameters: the nearest robot made of bodies, and whether noise explains its distance.

Ten inertial parameters describe a physical body if and only if its pseudo-inertia (Wensing, Kim and Slotine 2018)

    S = [ E    ms ]    E = tr(J)/2 1 - J, the second moments of mass
        [ ms^T  m ]

is positive definite; this implies positive mass and the triangle inequality of the moments of inertia. Rotor inertia and
friction are not negative. The physical robot whose base parameters are nearest to the measured ones solves a convex problem:

    minimise  1/2 |u|^2 + mu sum_j D(S_j, S0_j),    grouping @ params = beta + L u,    L L^T the covariance of beta,

D(S, S0) = tr(S0^-1 S) - log det(S0^-1 S) - 4 is zero for the model's body and infinite at the boundary (Lee, Wensing and
Park 2020). As mu decreases it is the barrier of an interior-point method; it keeps the parameters that beta does not
determine near the model's. The unknowns of the Newton steps are u and the parameters that regrouping eliminates; in these
unknowns the information matrix of the measurement is the unit matrix for every precision. |u|^2 / 2 exceeds its minimum by at
most mu times the number of inequalities.

Planning, time laws and this module have an interior-point method each. Their iterations are alike, but the matrices decide the
time: dense with at most 100 unknowns here, banded with a border in planning (planning/condensed.py), a recursion over the
intervals of a law (trajectory/interior_point.py). A dense Cholesky factor and solution of 400 unknowns, a law of a few
seconds, takes 9.0 ms, one of band 4 0.13 ms (scipy): one core for all would cost the laws most of their speed.

A conic programme (cvxpy 1.9.3 with Clarabel 0.11.1) finds the end of this path in 0.05 s of processor time for arms of six and
seven joints with 78 and 91 parameters, this module in 0.2 to 0.3 s, and in up to 4 s where a body must become ten thousand
times heavier than the model's; the distances agree to 1e-5, in that case to 1e-3. It does not return the intermediate robots
of the path, among which fit() selects the one nearest to the URDF that explains the recordings; it is therefore not used.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from ..algebra.linear_forms import coefficients, unknowns
from ..algorithms.inertial_parameters import INERTIAL, BaseParameters, Parameter, inertia, ten, values, with_values
from ..model.tree import Model


@dataclass(frozen=True)
class ConsistencyOptions:
    """Tuning of the interior-point method."""

    min_relative_std: float = 1e-7  # smallest standard deviation of beta, relative to the size of its terms
    duality_gap: float = 1e-3  # absolute tolerance of |u|^2 / 2 above its minimum
    relative_gap: float = 1e-6  # relative tolerance; the larger of both applies
    barrier_factor: float = 0.2  # factor by which mu decreases after each centering
    max_newton_steps: int = 500  # per centering
    min_step_share: float = 1e-10  # smallest share of a Newton step
    boundary_ratio: float = 1e-2  # eigenvalue over that of the model's body below which a body is at the boundary
    # smallest relative eigenvalue of a reference body: the model itself may be at the boundary
    min_reference_ratio: float = 1e-3
    normal_quantile: float = 2.326  # quantile 0.99 of the normal distribution


OPTIONS = ConsistencyOptions()


@dataclass(frozen=True, eq=False)
class Consistency:
    """Nearest physically consistent robot.

    possible   : True if noise explains its distance from the measurement: distance <= limit
    distance   : distance in standard deviations
    limit      : distance that noise exceeds in 1 % of cases
    parameters : (p,) all parameters of that robot, in the order of `BaseParameters.parameters`
    active_constraints : names of links and friction or rotor parameters at the boundary of physical consistency
    model      : the robot as a model
    """

    possible: bool
    distance: float
    limit: float
    parameters: np.ndarray
    active_constraints: tuple[str, ...]
    model: Model


def pseudo_inertia(ten_numbers) -> np.ndarray:
    """Return the pseudo-inertia S (4, 4) of the ten numbers of INERTIAL; any scalar type."""
    m, ms, J = inertia(dict(zip(INERTIAL, ten_numbers, strict=True)))
    E = np.eye(3) * (np.trace(J) * 0.5) - J
    return np.array([[*E[0], ms[0]], [*E[1], ms[1]], [*E[2], ms[2]], [*ms, m]])


def nearest_physical(model: Model, base: BaseParameters, beta: np.ndarray, covariance: np.ndarray) -> Consistency:
    """Return the physically consistent robot nearest to estimated base parameters.

    model      : reference for the parameters that the measurement does not determine
    base       : base parameters of the model
    beta       : (b,) estimate of the base parameters
    covariance : (b, b) covariance of beta
    """
    *_, found = physical_path(values(model, base.parameters), base, beta, covariance)
    limit = distance_limit(len(beta))
    return Consistency(found.distance <= limit, found.distance, limit, found.parameters, found.active_constraints,
                       with_values(model, base.parameters, found.parameters))


class NearestValues(NamedTuple):
    """Parameters (p,) of the nearest physical robot, distance in standard deviations, names of active constraints."""

    parameters: np.ndarray
    distance: float
    active_constraints: tuple[str, ...]


def distance_limit(count: int) -> float:
    """Return the norm of `count` standard normal variables that is exceeded in 1 % of cases (Wilson and Hilferty)."""
    return float(np.sqrt(count * (1.0 - 2.0 / (9.0 * count) + OPTIONS.normal_quantile * np.sqrt(2.0 / (9.0 * count))) ** 3))


def _square_root(covariance: np.ndarray) -> np.ndarray:
    """Return L (b, b) with L L' = covariance (b, b); eigenvalues of the correlation matrix are at least their rounding error.

    With noise-free data the covariance is numerically singular, and a Cholesky factor may not exist.
    """
    scale = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    floor = len(scale) * np.finfo(float).eps * values.max()
    return scale[:, None] * vectors * np.sqrt(np.maximum(values, floor))


def physical_path(prior: np.ndarray, base: BaseParameters, beta: np.ndarray,
                  covariance: np.ndarray) -> Iterator[NearestValues]:
    """Yield physically consistent robots on the path from the model (first) to the robot nearest to the measurement (last).

    The parameters are the ten inertial parameters of each body, offsets (of any sign), and others (not negative).

    prior      : (p,) reference values of all parameters; their weight decreases along the path
    beta       : (b,) estimate of the base parameters
    covariance : (b, b) covariance of beta
    """
    b = len(beta)
    size = parameter_scales(base.parameters, prior)
    barrier = _Barrier(base.parameters, prior, size)
    rounding = OPTIONS.min_relative_std * np.maximum(np.abs(beta), np.abs(base.grouping) @ size)
    L = _square_root(covariance + np.diag(rounding**2))
    kept = list(base.kept)
    others = [k for k in range(len(prior)) if k not in base.kept]
    # parameters = start + A @ (u, changes of the eliminated parameters divided by their scales)
    A = np.zeros((len(prior), len(prior)))
    A[np.ix_(kept, range(b))] = L
    A[kept, b:] = -base.grouping[:, others] * size[others]
    A[others, range(b, len(prior))] = size[others]
    z = np.zeros(len(prior))
    z[:b] = np.linalg.solve(L, base.grouping @ barrier.inside - beta)
    start = barrier.inside - A @ z
    for step in _path(barrier, start, A, b, z):
        parameters = start + A @ step
        yield NearestValues(parameters, float(np.linalg.norm(step[:b])), barrier.active_constraints(parameters))


def _path(barrier: _Barrier, start: np.ndarray, A: np.ndarray, b: int, z: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the minimizers z (p,) of |z[:b]|^2 / 2 + mu barrier(start + A z) for decreasing mu, until the gap is closed."""
    mu = max(float(z[:b] @ z[:b]), OPTIONS.duality_gap) / barrier.inequalities
    measured = np.eye(len(z))[:b]

    def cost(z):
        return 0.5 * float(z[:b] @ z[:b]) + mu * barrier.value(start + A @ z)

    while True:
        for _ in range(OPTIONS.max_newton_steps):
            slope, root = barrier.derivatives(start + A @ z)
            g = measured.T @ z[:b] + mu * (A.T @ slope)
            step = -_solve_normal(np.vstack((measured, np.sqrt(mu) * (root @ A))), g)
            decrement = -float(g @ step)
            length, here = 1.0, cost(z)
            while length > OPTIONS.min_step_share and not cost(z + length * step) <= here - 0.1 * length * decrement:
                length *= 0.5
            if length <= OPTIONS.min_step_share:  # limited by rounding: converged
                break
            z = z + length * step
            if decrement <= 0.01 * mu:
                break
        yield z
        if mu * barrier.inequalities <= max(OPTIONS.duality_gap, OPTIONS.relative_gap * float(z[:b] @ z[:b])):
            return
        mu *= OPTIONS.barrier_factor


def _solve_normal(rows: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (rows' rows)^-1 right by a QR factorization of the rows, whose condition number is the square root.

    Near the boundary the curvature is unbounded: the condition number of the Hessian reaches 1e22.
    """
    scale = 1.0 / np.linalg.norm(rows, axis=0)
    R: np.ndarray = np.linalg.qr(rows * scale, mode="r")  # type: ignore[assignment]  # an array in this mode
    found: np.ndarray = scale * np.linalg.solve(R, np.linalg.solve(R.T, scale * right))
    return found


def parameter_scales(listed: Sequence[Parameter], prior: np.ndarray) -> np.ndarray:
    """Return a positive scale (p,) of every parameter, in its unit.

    The scale is the magnitude of the prior value, at least a tenth of a value derived from the mass of the link and the extent
    of the robot.
    """
    kinds = np.array([parameter.kind for parameter in listed])
    masses = np.maximum(prior[kinds == "m"], 0.0)
    spread = prior[np.isin(kinds, ("Jxx", "Jyy", "Jzz"))].sum() / 2.0
    mean = masses.mean() if masses.any() else 1.0
    extent = np.sqrt(spread / masses.sum()) if masses.any() and spread > 0.0 else 0.1
    found, mass = [], mean
    for parameter, value in zip(listed, prior, strict=True):
        mass = max(value, 0.1 * mean) if parameter.kind == "m" else mass  # the mass precedes the others of its link
        natural = {"kg": mass, "kg m": mass * extent, "kg m^2": mass * extent**2}.get(parameter.unit, 1.0)
        found.append(max(abs(value), 0.1 * natural))
    return np.array(found)


def _interior_reference(prior: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Return the ten inertial parameters of a reference body strictly inside the physical region.

    They are those of the prior; small or negative eigenvalues of its scaled pseudo-inertia are increased.
    """
    scale = np.sqrt([*[size[[4, 7, 9]].sum() / 6.0] * 3, size[0]])
    sizes, axes = np.linalg.eigh(pseudo_inertia(prior) / np.multiply.outer(scale, scale))
    S = (axes * np.maximum(sizes, OPTIONS.min_reference_ratio)) @ axes.T * np.multiply.outer(scale, scale)
    if sizes[0] >= OPTIONS.min_reference_ratio:
        return prior
    return ten(S[3, 3], S[:3, 3], np.trace(S[:3, :3]) * np.eye(3) - S[:3, :3])


@cache
def _directions() -> np.ndarray:
    """Return the derivative of S with respect to each parameter of INERTIAL, (10, 4, 4)."""
    return coefficients(pseudo_inertia(unknowns(10)).ravel(), 10).T.reshape(10, 4, 4)


class _Barrier:
    """Barrier: sum of D(S_j, S0_j) over bodies and of x / x0 - log(x / x0) - 1 over rotor inertia and friction.

    The barrier is infinite outside the physical region. Offsets, which may have any value, have a quadratic penalty instead.

    inside       : (p,) parameters of the model, moved inside the physical region if a link is massless or not physical
    size         : (p,) scale of each parameter
    inequalities : number of scalar inequalities
    """

    def __init__(self, listed: Sequence[Parameter], prior: np.ndarray, size: np.ndarray):
        self.listed = listed
        # index of the first of the ten parameters of each body
        self.bodies = [k for k, parameter in enumerate(listed) if parameter.kind == INERTIAL[0]]
        self.positive = [k for k, parameter in enumerate(listed) if parameter.kind not in (*INERTIAL, "offset")]
        self.free = [k for k, parameter in enumerate(listed) if parameter.kind == "offset"]
        self.inequalities = 4 * len(self.bodies) + len(self.positive)
        self.inside, self.size = prior.copy(), size
        self.inside[self.positive] = np.maximum(prior[self.positive], 0.1 * size[self.positive])
        for k in self.bodies:
            self.inside[k:k + 10] = _interior_reference(prior[k:k + 10], size[k:k + 10])
        self.reference = [np.linalg.inv(pseudo_inertia(self.inside[k:k + 10])) for k in self.bodies]

    def value(self, x: np.ndarray) -> float:
        """Return the barrier at parameters x (p,)."""
        total = 0.5 * float(np.sum(((x - self.inside)[self.free] / self.size[self.free]) ** 2))
        ratios = [x[self.positive] / self.inside[self.positive]]
        for k, reference in zip(self.bodies, self.reference, strict=True):
            S = pseudo_inertia(x[k:k + 10])
            sizes = np.linalg.eigvalsh(S)
            if sizes[0] <= 0.0:
                return np.inf
            total += float(np.trace(reference @ S)) - 4.0 - float(np.log(sizes).sum() + np.linalg.slogdet(reference)[1])
        r = np.concatenate(ratios)
        return np.inf if (r <= 0.0).any() else total + float(np.sum(r - np.log(r) - 1.0))

    def derivatives(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the gradient (p,) and a square root (rows, p) of the Hessian: the Hessian is root' root."""
        p, slope = len(x), np.zeros(len(x))
        slope[self.free] = (x - self.inside)[self.free] / self.size[self.free] ** 2
        slope[self.positive] = 1.0 / self.inside[self.positive] - 1.0 / x[self.positive]
        root = [np.eye(p)[self.free] / self.size[self.free, None], np.eye(p)[self.positive] / x[self.positive, None]]
        for k, reference in zip(self.bodies, self.reference, strict=True):
            sizes, axes = np.linalg.eigh(pseudo_inertia(x[k:k + 10]))
            half = axes / np.sqrt(sizes)  # S^-1 = half half'
            slope[k:k + 10] = np.einsum("ab,iba->i", reference - half @ half.T, _directions())
            rows = np.zeros((16, p))
            rows[:, k:k + 10] = (half.T @ _directions() @ half).reshape(10, 16).T
            root.append(rows)
        return slope, np.vstack(root)

    def active_constraints(self, x: np.ndarray) -> tuple[str, ...]:
        """Return the links and parameters whose constraints are active at parameters x (p,)."""
        bodies = [self.listed[k].owner for k, reference in zip(self.bodies, self.reference, strict=True)
                  if np.linalg.eigvals(reference @ pseudo_inertia(x[k:k + 10])).real.min() < OPTIONS.boundary_ratio]
        return (*bodies, *(self.listed[k].name for k in self.positive if x[k] < OPTIONS.boundary_ratio * self.inside[k]))
