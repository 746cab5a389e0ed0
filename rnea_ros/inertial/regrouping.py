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
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from ..algebra.linear_forms import coefficients, unknowns
from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, Z, cross, rot_z, rotate_inertia, shift, skew
from ..model import mdh
from ..model.tree import Model
from .inertial_parameters import INERTIAL, inertia, ten

FELT = (*INERTIAL, "Ia", "offset")  # friction is always felt, and alone
KEEP_FIRST = ("Jzz", "Jxx", "Jxy", "Jxz", "Jyz", "msx", "msy", "msz", "m", "Jyy", "offset", "Ia")  # as the books do
POSITIONS = np.arange(7.0)  # rad or m
TIE = 1e-6  # columns whose lengths differ by less than this share are equally long
CLEAR = 1e-3  # kept in the wanted order as long as this much of a column is new; then the newest first


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


class FeltAtJoint(NamedTuple):
    """felt (rows, 12): what the joint feels, as functions of its link's FELT.

    into (10, 10): the link's inertial parameters, seen in the antecedent at joint position zero.
    """

    felt: np.ndarray
    into: np.ndarray


def joints(model: Model, gravity: np.ndarray, free_root: bool, tolerance: float) -> list[FeltAtJoint]:
    """A Joint for each link, 0 to N. tolerance: directions that differ by less [rad] are one.

    velocities: rows (v, w). energies: rows of coefficients of the ten parameters, and a last one that is 1 for potentials.
    """
    potential = np.concatenate(([0.0], -gravity, np.zeros(6), [1.0]))
    velocities = [np.eye(6) if free_root else np.zeros((0, 6))]
    energies = [np.eye(11) if free_root else _span(potential[None], tolerance)]
    found = [FeltAtJoint(np.eye(10, 12) if free_root else np.zeros((0, 12)), np.zeros((10, 10)))]
    for link in model.links[1:]:
        at_zero = mdh.pose(link, 0.0)
        into = coefficients(_in_antecedent(*at_zero), 10)
        V, E = velocities[link.parent] @ _velocity(*at_zero).T, _seen(energies[link.parent], into)
        felt = np.zeros((0, 12))
        if link.sigma != mdh.FIXED:
            steps = _steps(link.sigma)
            V = _span(np.concatenate([V @ X.T for X, _ in steps]), tolerance)
            E = _span(np.concatenate([_seen(E, into) for _, into in steps]), tolerance)
            felt, momenta = _felt(link.sigma, V, E)
            felt, E = _span(felt, tolerance), _span(np.concatenate((E, momenta)), tolerance)
            V = _span(np.concatenate((V, _axis(link.sigma))), tolerance)
        velocities.append(V)
        energies.append(E)
        found.append(FeltAtJoint(felt, into))
    return found


def _felt(sigma: int, V: np.ndarray, E: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
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
    poses = [_step(sigma, x) for x in POSITIONS]
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


def _seen(energies: np.ndarray, into: np.ndarray) -> np.ndarray:
    """Energies as functions of the parameters of a body further out."""
    return np.column_stack((energies[:, :10] @ into, energies[:, 10]))


def _span(rows: np.ndarray, tolerance: float) -> np.ndarray:
    """Orthonormal rows that span the same space."""
    _, sizes, basis = np.linalg.svd(rows, full_matrices=False)
    return basis[sizes > tolerance * sizes.max(initial=1e-300)]


def share(felt: np.ndarray, columns: Sequence[int], care: Tolerances) -> tuple[list[int], np.ndarray]:
    """(kept, A): numbers of the parameters to keep, and A (12, 12), which gives them so that the joint feels no change.

    columns: which of FELT there are. All other parameters are zero after A.
    """
    there = np.zeros(len(FELT))
    there[list(columns)] = 1.0
    rows = _span(felt * there, care.tolerance)
    kept, rest = [], rows.copy()
    for i in sorted(range(len(FELT)), key=lambda i: KEEP_FIRST.index(FELT[i])):
        if np.linalg.norm(rest[:, i]) > care.clear:
            kept.append(i)
            rest = _without(rest, i)
    while len(kept) < len(rows):
        sizes = np.linalg.norm(rest, axis=0)
        kept.append(int(np.flatnonzero(sizes > (1.0 - TIE) * sizes.max())[0]))  # of equal ones the first
        rest = _without(rest, kept[-1])
    A = np.zeros((len(FELT), len(FELT)))
    A[kept] = np.linalg.pinv(rows[:, kept]) @ rows if kept else 0.0
    return kept, A


def _without(rows: np.ndarray, i: int) -> np.ndarray:
    """What of every column is not along column i."""
    direction = rows[:, i] / np.linalg.norm(rows[:, i])
    return rows - np.outer(direction, direction @ rows)
