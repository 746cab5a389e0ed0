"""Beams of flexible links: shapes of bending and twist, and what a model keeps of each beam.

All shapes are of a clamped Euler-Bernoulli beam, or a rod, of unit length, mass, EI and GJ; flexible_links.py scales them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial.legendre import leggauss

from ..algebra.vectors import Array

N_FINE = 200  # Gauss points of the shape integrals
CHEBYSHEV_DEGREE = 40
MAX_TABLE_DEGREE = 9
CLAMPED_FREE = (1.8751040687119611, 4.694091132974175, 7.854757438237613, 10.995540734875467)  # cos b cosh b = -1


class ModalCoordinate(NamedTuple):
    """Coordinate of one mode of a flexible link.

    joint     : its name, a coordinate of the tree
    stiffness : K [N/m], of twist [N m/rad]; damping: of the mode [N s/m, N m s/rad]; mass: modal mass of the beam alone [kg,
                kg m^2]
    """

    joint: str
    stiffness: float
    damping: float
    mass: float


class Bending(NamedTuple):
    """Bending, or twist, of a flexible link.

    name            : of the entry in the robot file, "twist" for twist
    direction       : unit vector (3,) in which the tip deflects, of twist: along the beam, in the link's frame
    modes           : coordinates, lowest frequency first
    section_modulus : largest stress is moment / section_modulus [m^3]; NaN where unknown
    """

    name: str
    direction: tuple[float, ...]
    modes: tuple[ModalCoordinate, ...]
    section_modulus: float


class FlexibleLink(NamedTuple):
    """Beam of one URDF link.

    link, tip    : names of the URDF link, rigid with the joint that moves it, and of the frame at the end of the beam
    length, mass : [m], [kg]
    start, end   : of the beam, in the link's frame [m]
    root_joint   : first mimic joint of the chain, whose wrench is that of the clamped end
    bendings     : in the order of the robot file, twist last
    """

    link: str
    tip: str
    length: float
    mass: float
    start: tuple[float, ...]
    end: tuple[float, ...]
    root_joint: str
    bendings: tuple[Bending, ...]

    @property
    def modes(self) -> tuple[ModalCoordinate, ...]:
        """Coordinates of all bendings."""
        return tuple(mode for bending in self.bendings for mode in bending.modes)

    def hidden(self, frames: Iterable[str]) -> list[str]:
        """Return the frames of the chain that the robot's user does not see: all but those of the URDF and the tip."""
        joints = tuple(f"{mode.joint}/" for mode in self.modes)
        return [name for name in frames if name.startswith((*joints, f"{self.link}/"))]


class BeamShape(NamedTuple):
    """Functions of s / L in [0, 1]: deflection w and slope dw/d(s/L); of twist, angle and zero. stiffness: int w''^2."""

    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    stiffness: float
    mass: float


def bending_shapes(modes: int, kind: str = "polynomial", table: Mapping[str, Any] | None = None) -> list[BeamShape]:
    """Return shapes of a clamped beam of unit length, mass and EI, orthogonal in both, w(1) = 1, lowest frequency first.

    kind  : "polynomial": of the curvatures 1 - x, (1 - x)^2, 1, (1 - x)^3: deflections under a force at the tip, distributed
            loads and a moment at the tip are exact; "clamped_free": eigenfunctions of the beam without anything at its tip
    table : {"positions": (points,) from 0 to 1, "deflections": (modes, points)} instead
    """
    x, g = leggauss(N_FINE)
    x, g = 0.5 * (x + 1.0), 0.5 * g
    curvatures, slopes, values = [], [], []
    if table is not None:
        for row in table["deflections"]:
            value = _fitted(np.array(table["positions"], dtype=float), np.array(row, dtype=float))
            values.append(value)
            slopes.append(value.deriv())
            curvatures.append(value.deriv(2))
    else:
        for k in range(modes):
            curvature = _curvature(k, modes, kind)
            slope = curvature.integ(lbnd=0.0)
            curvatures.append(curvature)
            slopes.append(slope)
            values.append(slope.integ(lbnd=0.0))
    W, C = (np.array([f(x) for f in functions]) for functions in (values, curvatures))
    M, K = (W * g) @ W.T, (C * g) @ C.T
    L = np.linalg.cholesky(M)
    found, V = np.linalg.eigh(np.linalg.solve(L, np.linalg.solve(L, K).T))
    T = np.linalg.solve(L.T, V)
    T = T / (T.T @ [float(f(1.0)) for f in values])  # columns: w(1) = 1
    masses = np.einsum("ik,ij,jk->k", T, M, T)
    return [BeamShape(_combination(values, t), _combination(slopes, t), float(stiffness), float(mass))
            for t, stiffness, mass in zip(T.T, found * masses, masses, strict=True)]


def _fitted(x: Array, w: Array) -> Any:
    """Return x^2 times a polynomial, of least squares to w at the points x."""
    degree = min(len(x) - 2, MAX_TABLE_DEGREE)
    square = Chebyshev([0.375, 0.5, 0.125], domain=[0.0, 1.0])  # x^2
    basis = x[:, None]**2 * np.polynomial.chebyshev.chebvander(2.0 * x - 1.0, degree)
    return square * Chebyshev(np.linalg.lstsq(basis, w, rcond=None)[0], domain=[0.0, 1.0])


def _combination(functions: Sequence[Callable[[Any], Any]], weights: Array) -> Callable[[Any], Any]:
    return lambda x: sum(weight * f(x) for weight, f in zip(weights, functions, strict=True))


def _curvature(k: int, modes: int, kind: str) -> Any:
    """Return the curvature of the k-th basis function."""
    if kind == "clamped_free":
        b = CLAMPED_FREE[k]
        ratio = (np.cosh(b) + np.cos(b)) / (np.sinh(b) + np.sin(b))
        return Chebyshev.interpolate(lambda x: np.cosh(b * x) + np.cos(b * x) - ratio * (np.sinh(b * x) + np.sin(b * x)),
                                     CHEBYSHEV_DEGREE, domain=[0.0, 1.0])
    left = Polynomial([1.0, -1.0])
    return (left, left**2, Polynomial([1.0]), left**3)[k]


def twist_shapes(modes: int) -> list[BeamShape]:
    """Return the eigenfunctions of twist of a clamped rod of unit length, inertia and GJ: stiffness int (phi')^2."""
    numbers = [(2 * k + 1) * np.pi / 2.0 for k in range(modes)]
    return [BeamShape(partial(_sine, b), np.zeros_like, 0.5 * b * b, 0.5) for b in numbers]


def _sine(b: float, x: Any) -> Any:
    return np.sin(b * np.asarray(x)) / np.sin(b)
