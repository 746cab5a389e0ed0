"""Functions of position and velocity of a robot with any roles: equations of its independent coordinates, energy, kinematics.

Each closes the loops of a sample, finds the velocities of all coordinates from those that are free, and projects what it
evaluates onto these (ReducedEquations). Many samples are served one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.vectors import Array
from . import validation
from .base_state import BaseState, given, quaternion
from .conditions import Conditions, Loads, MotorState, sampled
from .motion_solver import INVERSE, MotionSolver
from .results import CenterOfMass, Energy
from .role_derivatives import RobotDerivatives
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


Function = Callable[[Array, Array, Situation], Array]  # of positions and velocities (N,) of all coordinates


class StateFunctions:
    """Functions of one robot; arguments are those of the methods of Robot with these names.

    where: base and guess, as of Robot
    """

    def __init__(self, solver: MotionSolver, derivatives: RobotDerivatives):
        self._solver, self._derivatives = solver, derivatives

    @cached_property
    def reduced(self) -> ReducedEquations:
        """Equations of the coordinates that are free."""
        solver, roles = self._solver, self._solver.roles
        follows = {*roles.follows, *roles.rolled}
        return ReducedEquations(solver.samples.solver(INVERSE), follows, roles.charts(solver.tree.model))

    # ------------------------------------------------------------------ samples

    def state(self, q: ArrayLike, qd: ArrayLike, base: BaseState | None, guess: ArrayLike | None,
              motors: MotorState | None = None, loads: Loads | None = None) -> tuple[Array, Array, Situation]:
        """Return positions and velocities of all coordinates of one sample, loops closed."""
        solver, equations = self._solver, self._solver.equations()
        near = validation.guess(guess, solver.tree.n)
        x, v = np.zeros((2, len(equations.coordinates)))
        pose = solver.closed(validation.coordinates("q", q, solver.joint_names), near)
        x[equations.joints] = pose
        index = {name: k for k, name in enumerate(equations.coordinates)}
        for name, value in zip(solver.joint_names, validation.coordinates("qd", qd, solver.joint_names), strict=True):
            v[index[name]] = value
        for k, name in enumerate(equations.elastic_joints):
            x[equations.joints.stop + k] = x[index[name]] if motors is None else motors.q[k]
            v[equations.joints.stop + k] = v[index[name]] if motors is None else motors.qd[k]
        if solver.has_moving_base:
            v[:6] = given(base).velocity
        situation = solver.samples.situation(given(base) if solver.has_moving_base else None, pose, loads)
        return x, self.reduced.velocities(self.reduced.projection(x, situation), v), situation

    def each(self, function: Function, q: ArrayLike, qd: ArrayLike | None = None, *, base: BaseState | None = None,
             guess: ArrayLike | None = None, motors: MotorState | None = None, loads: Loads | None = None) -> Array:
        """Return the function of one sample or of each."""
        solver = self._solver
        conditions = solver.valid(Conditions(base, loads, motors))._replace(loads=None)
        arrays = [validation.coordinates("q", q, solver.joint_names)]
        arrays.append(np.zeros(solver.n) if qd is None else validation.coordinates("qd", qd, solver.joint_names))
        count, sampled_at = sampled(arrays, conditions, len(solver.equations().elastic_joints))
        if count == 0:  # the shape of a sample at rest
            rest = solver.start[solver.columns], np.zeros(solver.n), BaseState() if base is not None else None
            return np.zeros((0, *function(*self.state(*rest, guess, loads=loads)).shape))
        found = []
        for k in range(count or 1):
            one, (here, speed) = sampled_at(k), (value[k] if value.ndim == 2 else value for value in arrays)
            with validation.at_sample(k), validation.overflow_ignored():
                x, v, situation = self.state(here, speed, one.base, guess, one.motors, loads)
                guess = x[solver.equations().joints]
                found.append(function(x, v, situation))
                validation.results("the result", found[-1:])
        return np.array(found) if count is not None else found[0]

    # ------------------------------------------------------------------ equations of the independent coordinates

    def mass_matrix(self, q: ArrayLike, **where: Any) -> Array:
        """Return M (N, N)."""
        return self.each(lambda x, v, state: self.reduced.mass_matrix(x, state), q, **where)

    def bias(self, q: ArrayLike, qd: ArrayLike, **where: Any) -> Array:
        """Return the efforts (N,) without acceleration."""
        return self.each(self.reduced.bias, q, qd, **where)

    def gravity(self, q: ArrayLike, **where: Any) -> Array:
        """Return the efforts (N,) against gravity."""
        return self.each(lambda x, v, state: self.reduced.gravity(x, state), q, **where)

    def gravity_and_rate(self, q: ArrayLike, qd: ArrayLike, base: BaseState | None,
                         guess: ArrayLike | None) -> tuple[Array, Array]:
        """Return the torques (n,) against gravity and their rates, also where the loops hold more than needed."""
        names = self.reduced.independent
        columns = [names.index(name) if name in names else -1 for name in self._solver.joint_names]

        def of(x: Array, v: Array, situation: Situation) -> Array:
            return np.array([np.append(part, 0.0)[columns] for part in self.reduced.gravity_and_rate(x, v, situation)])

        both = self.each(of, q, qd, base=base, guess=guess)
        return both[..., 0, :], both[..., 1, :]

    def coriolis(self, q: ArrayLike, qd: ArrayLike, **where: Any) -> Array:
        """Return C (N, N)."""
        def of(x: Array, v: Array, situation: Situation) -> Array:
            G = self.reduced.projection(x, situation)
            C, M = self._derivatives.of(INVERSE).coriolis(x, v)
            return G.T @ (C @ G + M @ self.reduced.projection_rate(x, v, G, situation))

        return self.each(of, q, qd, **where)

    def energy(self, q: ArrayLike, qd: ArrayLike, **where: Any) -> Energy:
        """Return kinetic and potential energy [J]."""
        both = self.each(self._solver.samples.energy, q, qd, **where)
        return Energy(both[..., 0], both[..., 1])

    def center_of_mass(self, q: ArrayLike, qd: ArrayLike, **where: Any) -> CenterOfMass:
        """Return mass centre, its velocity, and the momentum about it."""
        tree, joints = self._solver.tree, self._solver.equations().joints

        def of(x: Array, v: Array, situation: Situation) -> Array:
            if self._solver.has_moving_base:
                return np.concatenate(tree.free_center_of_mass(x[joints], v[joints], _base(situation, v)))
            return np.concatenate(tree.center_of_mass(x[joints], v[joints]))

        found = self.each(of, q, qd, **where)
        return CenterOfMass(found[..., :3], found[..., 3:6], found[..., 6:])

    # ------------------------------------------------------------------ where links are

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None, **where: Any) -> Array:
        """Return (6,) of a link, or of a point in it."""
        def of(x: Array, v: Array, situation: Situation) -> Array:
            return self._jacobian(link, x, point, situation) @ v[:self._solver.equations().joints.stop]

        return self.each(of, q, qd, **where)

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None, **where: Any) -> Array:
        """Return (6, N)."""
        def of(x: Array, v: Array, situation: Situation) -> Array:
            return self._jacobian(link, x, point, situation) @ self._of_links(self.reduced.projection(x, situation))

        return self.each(of, q, **where)

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None, **where: Any) -> Array:
        """Return (6, N)."""
        tree, joints = self._solver.tree, self._solver.equations().joints

        def of(x: Array, v: Array, situation: Situation) -> Array:
            G = self.reduced.projection(x, situation)
            Gd = self.reduced.projection_rate(x, v, G, situation)
            base = _base(situation, v) if self._solver.has_moving_base else None
            rate = tree.jacobian_rate(link, x[joints], v[joints], point, base=base)
            return rate @ self._of_links(G) + self._jacobian(link, x, point, situation) @ self._of_links(Gd)

        return self.each(of, q, qd, **where)

    def _of_links(self, G: Array) -> Array:
        """Rows of base and joints, columns without the motors behind springs, which move no link."""
        equations = self._solver.equations()
        return G[:equations.joints.stop, :G.shape[1] - len(equations.elastic_joints)]

    def _jacobian(self, link: str, x: Array, point: ArrayLike | None, situation: Situation) -> Array:
        """Jacobian by base and all joints of the tree."""
        tree, q = self._solver.tree, x[self._solver.equations().joints]
        return tree.jacobian(link, q, point, base=_base(situation) if self._solver.has_moving_base else None)


def _base(situation: Situation, v: Array | None = None) -> BaseState:
    """State of the base in a sample. v: velocities of all coordinates."""
    return BaseState(situation.p, quaternion(situation.R), *(() if v is None else (v[:6],)))
