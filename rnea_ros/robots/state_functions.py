"""Functions of position and velocity of a robot with any roles: equations of its independent coordinates, energy, kinematics.

Each closes the loops of a sample, finds the velocities of all coordinates from those that are free, and projects what it
evaluates onto these (reduced.py). Many samples are served one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from . import moving_tree
from .inputs import validation
from .inputs.base_state import BaseState, given, quaternion
from .motion_solver import MotionSolver
from .reduced import ReducedEquations
from .results import CenterOfMass, Energy
from .role_derivatives import RobotDerivatives
from .sample_solver import INVERSE
from .solution import Situation

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
              motors: Sequence[Any] = (None, None), loads: Sequence[Any] = (None, None)) -> tuple[Array, Array, Situation]:
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
            x[equations.joints.stop + k] = x[index[name]] if motors[0] is None else motors[0][k]
            v[equations.joints.stop + k] = v[index[name]] if motors[1] is None else motors[1][k]
        if solver.has_moving_base:
            v[:6] = given(base).velocity
        situation = solver.samples.situation(given(base) if solver.has_moving_base else None, pose, loads[0], None, loads[1])
        return x, self.reduced.velocities(self.reduced.projection(x, situation), v), situation

    def each(self, function: Function, q: ArrayLike, qd: ArrayLike | None = None, *, base: BaseState | None = None,
             guess: ArrayLike | None = None, motors: Sequence[Any] = (None, None),
             loads: Sequence[Any] = (None, None)) -> Array:
        """Return the function of one sample or of each."""
        solver = self._solver
        if solver.has_moving_base:
            base = given(base)
        arrays = [validation.coordinates("q", q, solver.joint_names)]
        arrays.append(np.zeros(solver.n) if qd is None else validation.coordinates("qd", qd, solver.joint_names))
        extra = [None if value is None else validation.numbers("q_motor", value) for value in motors]
        moving = [] if base is None else [base.position, base.quaternion, base.velocity]
        count = validation.samples([*arrays, *moving, *(value for value in extra if value is not None)])
        if count == 0:  # the shape of a sample at rest
            rest = solver.start[solver.columns], np.zeros(solver.n), BaseState() if base is not None else None
            return np.zeros((0, *function(*self.state(*rest, guess, loads=loads)).shape))
        found = []
        for k in range(count or 1):
            rows = [value[k] if value is not None and value.ndim == 2 else value for value in (*arrays, *moving, *extra)]
            state = BaseState(*rows[2:5]) if base is not None else None
            with validation.at_sample(k), validation.overflow_ignored():
                x, v, situation = self.state(rows[0], rows[1], state, guess, rows[-2:], loads)
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
                return np.concatenate(moving_tree.center_of_mass(tree, x[joints], v[joints], _base(situation, v)))
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
            if self._solver.has_moving_base:
                rate = moving_tree.jacobian_rate(tree, link, x[joints], v[joints], point, _base(situation, v))
            else:
                rate = tree.jacobian_rate(link, x[joints], v[joints], point)
            return rate @ self._of_links(G) + self._jacobian(link, x, point, situation) @ self._of_links(Gd)

        return self.each(of, q, qd, **where)

    def _of_links(self, G: Array) -> Array:
        """Rows of base and joints, columns without the motors behind springs, which move no link."""
        equations = self._solver.equations()
        return G[:equations.joints.stop, :G.shape[1] - len(equations.elastic_joints)]

    def _jacobian(self, link: str, x: Array, point: ArrayLike | None, situation: Situation) -> Array:
        """Jacobian by base and all joints of the tree."""
        tree, q = self._solver.tree, x[self._solver.equations().joints]
        if self._solver.has_moving_base:
            return moving_tree.jacobian(tree, link, q, point, _base(situation))
        return tree.jacobian(link, q, point)


def _base(situation: Situation, v: Array | None = None) -> BaseState:
    """State of the base in a sample. v: velocities of all coordinates."""
    return BaseState(situation.p, quaternion(situation.R), *(() if v is None else (v[:6],)))
