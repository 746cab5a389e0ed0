"""Equations of motion of a robot's independent coordinates: M(x) u' + h(x, u) = Q, with u the velocities that are free.

Velocities of all coordinates are x' = G u: G holds the unit matrix for the independent coordinates, and -J_f^+ J_i for those
that follow, with the Jacobian J = [J_i, J_f] of the constraints (Khalil, "Dynamic modeling of robots using recursive
Newton-Euler techniques", (55)-(58)). M = G^T A G, with A the mass matrix of all coordinates; h and Q are projected alike.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ..algebra.arrays import Array
from .solution import Situation, Solver

NULL = 1e-12  # singular values below this share of the largest are zero


class ReducedEquations:
    """Equations of the independent coordinates, at closed poses.

    solver      : equations of all coordinates
    follows     : names of the coordinates whose velocities constraints decide; standing: of those that never move
    independent : names of the others, in the order of all coordinates: the columns of G

    x, v (N,) are positions and velocities of all coordinates; those of v that follow are read where a method says so.
    """

    def __init__(self, solver: Solver, follows: Collection[str], standing: Collection[str] = ()):
        self._solver, self._equations = solver, solver.equations
        names = self._equations.coordinates
        self.independent = tuple(name for name in names if name not in follows and name not in standing)
        self._free = [names.index(name) for name in self.independent]
        self._follows = [k for k, name in enumerate(names) if name in follows]

    def projection(self, x: Array, situation: Situation) -> Array:
        """Return G (all coordinates, independent ones)."""
        G = np.zeros((len(self._equations.coordinates), len(self._free)))
        G[self._free, range(len(self._free))] = 1.0
        if self._follows:
            J = self._solver.jacobian(x, situation)
            G[self._follows] = -self._least_squares(J, J[:, self._free])
        return G

    def projection_rate(self, x: Array, v: Array, G: Array, situation: Situation) -> Array:
        """Return the time derivative of G along velocities v of all coordinates."""
        rate = np.zeros(G.shape)
        if self._follows:
            J, Jd = self._solver.jacobian(x, situation), self._solver.jacobian_rate(x, v, situation)
            rate[self._follows] = -self._least_squares(J, Jd @ G)
        return rate

    def velocities(self, G: Array, v: Array) -> Array:
        """Return the velocities of all coordinates from those of the independent ones in v."""
        return G @ v[self._free]

    def mass_matrix(self, x: Array, situation: Situation) -> Array:
        """Return M of the independent coordinates."""
        G = self.projection(x, situation)
        return G.T @ self._solver.mass_matrix(x) @ G

    def bias(self, x: Array, v: Array, situation: Situation) -> Array:
        """Return h of the independent coordinates: their efforts without acceleration. v: of all coordinates."""
        G = self.projection(x, situation)
        return G.T @ self._solver.dynamics(x, v, self._remaining_acceleration(x, v, situation), situation)

    def gravity(self, x: Array, situation: Situation) -> Array:
        """Return the efforts that hold the independent coordinates still against gravity."""
        return self.projection(x, situation).T @ self._static(x, np.zeros(len(x)), situation)[0]

    def gravity_and_rate(self, x: Array, v: Array, situation: Situation) -> tuple[Array, Array]:
        """Return these efforts and their rates along velocities v of all coordinates."""
        G = self.projection(x, situation)
        static, rate = self._static(x, v, situation)
        return G.T @ static, G.T @ rate

    def _least_squares(self, J: Array, right: Array) -> Array:
        """Return the velocities of the coordinates that follow at which J_f answers the right-hand sides."""
        return np.asarray(np.linalg.lstsq(J[:, self._follows], right, rcond=NULL)[0], dtype=float)

    def _remaining_acceleration(self, x: Array, v: Array, situation: Situation) -> Array:
        """Accelerations of all coordinates while the independent ones have none."""
        a = np.zeros(len(x))
        if self._equations.base:
            a[:3] = -np.cross(v[3:6], v[:3])  # the origin's true acceleration is zero, see base_state.py
        if self._follows:
            J = self._solver.jacobian(x, situation)
            a[self._follows] = -self._least_squares(J, self._solver.constraint_bias(x, v, situation) + J @ a)
        return a

    def _static(self, x: Array, v: Array, situation: Situation) -> tuple[Array, Array]:
        """Gravity's rows (N,) of all coordinates, and g' - J'^T lambda, with lambda of the static problem."""
        solver = self._solver
        static, rate = solver.gravity(x, v, np.zeros(len(self._equations.constraints)), situation)
        if self._follows and v.any():
            J = solver.jacobian(x, situation)
            held = np.linalg.lstsq(J[:, self._follows].T, static[self._follows], rcond=NULL)[0]
            rate = solver.gravity(x, v, held, situation)[1]
        return static, rate
