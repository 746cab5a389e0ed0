"""Compiled loop equations of one tree: gaps of the loops, steps of the joints that close them, and motion on closed loops."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...algorithms import closed_loops
from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...model.tree import Model, frozen
from .inverses import EASY, Inverse, TracedInverse, inverse, norm
from .loops import Loops
from .newton import NOWHERE, NewtonStep
from .units import Units, length_unit

RATES = ("qad", "qadd", "qaddd")  # of the active joints
EVALUATIONS = 60  # number of evaluations of the gaps that take less time than their compilation


class LoopMotion(NamedTuple):
    """Motion of all n joints of the tree on closed loops, (n,) or (samples, n); G and its rate (..., n, N), see (56)."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    G: np.ndarray
    Gd: np.ndarray


class LoopEquations:
    """phi(q) = 0 for the spanning tree `model`; a cached_property that holds a kernel is compiled when it is first needed.

    active, passive : numbers of the joints that are given, and of those that follow; movable: both, without charts
    selection       : unit columns (n, N) of the active joints
    units           : scales of equations and joints
    """

    cut_joint = "loop"  # word for a cut joint in messages

    def __init__(self, model: Model, loops: Loops, backend: str, at_once: bool = True):
        """Prepare the equations of a model with loops.

        at_once: whether kernels are compiled when they are first needed; if not, the first EVALUATIONS are computed without,
                 and steps by singular values
        """
        self.model, self.loops, self._backend = model, loops, backend
        self.active = np.array(loops.active, dtype=int)
        self.active_joints = tuple(model.joint_names[k] for k in self.active)
        self._at_once, self._evaluations = at_once, 0
        self.movable = np.setdiff1d(np.arange(model.n), loops.charts)
        self.passive = np.setdiff1d(self.movable, self.active)
        self.selection = np.eye(model.n)[:, self.active]
        self.units = self._natural_units(loops.start)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, Kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._backend = kernel.available(self._backend)

    def _natural_units(self, q: np.ndarray) -> Units:
        slides = np.array([joint.type == "prismatic" for joint in self.model.joints])
        levers = np.ix_(self.loops.lengths, ~slides)
        unit = length_unit(self.model, self.loops.cuts, q, lambda q: self.gaps(q)[1][levers])
        return Units(np.where(self.loops.lengths, unit, 1.0), np.where(slides, unit, 1.0))

    # ------------------------------------------------------------------ for any scalar

    @cached_property
    def phi(self) -> closed_loops.Closure:
        return closed_loops.closure(self.model, self.loops.cuts)

    def solver(self, inverse_of: Callable[..., Any], J: Any, giving: np.ndarray) -> tuple[Any, Callable[[Any], Any]]:
        """Return the inverse of J by the joints `giving`, and r -> the change of all joints by which phi changes by -r."""
        J_inverse = inverse_of(J[:, giving], Units(self.units.equations, self.units.unknowns[giving]))
        return J_inverse, lambda r: -(np.eye(len(self.selection))[:, giving] @ (J_inverse @ r))

    def _linearised(self, inverse_of: Callable[..., Any], values: Any, J: Any, giving: np.ndarray,
                    direction: Any) -> tuple[Any, ...]:
        """Return the parts of a NewtonStep, with the active joints going along `direction`; any scalar."""
        J_inverse, solve = self.solver(inverse_of, J, giving)
        along, correction = self.selection @ direction, solve(values)
        sizes = norm(values / self.units.equations), norm(correction / self.units.unknowns)
        return correction, along + solve(J @ along), [*sizes, J_inverse.condition, J_inverse.margin]

    def step_of(self, q: Any, direction: Any) -> tuple[Any, ...]:
        """Return the parts of a NewtonStep of the passive joints."""
        values, J = closed_loops.jacobian(self.phi, q)
        return self._linearised(TracedInverse, values, J, self.passive, direction)

    def motion_of(self, q: Any, qad: Any, qadd: Any, qaddd: Any) -> tuple[Any, ...]:
        """Velocities, accelerations, jerks of all joints, G, Gd, and a bound of the condition number, at a closed pose q."""
        def rates(*motion):
            return closed_loops.closure_rates(self.phi, q, *motion)

        J_inverse, solve = self.solver(TracedInverse, closed_loops.jacobian(self.phi, q)[1], self.passive)
        steps = closed_loops.tree_motion(rates, solve, [self.selection @ part for part in (qad, qadd, qaddd)])
        J, Jd = closed_loops.jacobian_and_rate(self.phi, q, steps[0])
        return *steps, *closed_loops.active_map(J, Jd, solve, self.selection), [J_inverse.condition]

    # ------------------------------------------------------------------ compiled

    @cached_property
    def _gaps(self) -> Kernel:
        def gaps(q):
            return closed_loops.jacobian(self.phi, q)

        return kernel.build(gaps, {"q": self.model.n}, self._backend)

    @cached_property
    def _step(self) -> Kernel:
        return kernel.build(self.step_of, {"q": self.model.n, "direction": len(self.active)}, self._backend)

    @cached_property
    def _motion(self) -> Kernel:
        return kernel.build(self.motion_of, {"q": self.model.n, **dict.fromkeys(RATES, len(self.active))}, self._backend)

    # ------------------------------------------------------------------ at one pose

    def gaps(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """phi (m,) and its Jacobian J (m, n) by all joints."""
        if not self._at_once and self._evaluations < EVALUATIONS:
            self._evaluations += 1
            values, J = (np.array(part, dtype=float) for part in closed_loops.jacobian(self.phi, q))
        else:
            values, J = self._gaps(q)
        return values, J

    def compile(self) -> None:
        """Compile gaps and steps now, so that distant poses are reached, or rejected, without delay."""
        self._at_once = True
        self.gaps(self.loops.start)
        self.step(self.loops.start, np.zeros(len(self.active)))

    def step(self, q: np.ndarray, direction: np.ndarray) -> NewtonStep:
        """Return the step of the passive joints while the active ones move along `direction`."""
        return (self._at_once and self._quick_step(q, direction)) or self.careful_step(q, direction, self.passive)

    def _quick_step(self, q: np.ndarray, direction: np.ndarray) -> NewtonStep | None:
        """Return the step by the kernel; None if the bounds of the singular values are not tight enough."""
        if found := self._step.call(q, direction):
            step = NewtonStep(found[0], found[1], *found[2].tolist())
            if step.condition <= EASY:
                return step
        return None

    def careful_step(self, q: np.ndarray, direction: np.ndarray, giving: np.ndarray) -> NewtonStep:
        """Return the step by singular values, also where they vanish; giving: the joints that may move to close the loops."""
        values, J = self.gaps(q)
        if not np.isfinite(values).all():
            return NOWHERE
        correction, slope, sizes = self._linearised(inverse, values, J, giving, direction)
        return NewtonStep(correction, slope, *map(float, sizes))

    def passive_inverse(self, q: np.ndarray) -> Inverse:
        """Return the inverse of the Jacobian by the passive joints, by singular values."""
        return inverse(self.gaps(q)[1][:, self.passive], Units(self.units.equations, self.units.unknowns[self.passive]))

    def worst_gap(self, q: np.ndarray) -> str:
        """Return the cut joint that is open most, and by how much, for messages."""
        name, size, unit = self.loops.worst(self.gaps(q)[0], self.units.equations)
        return f"{self.cut_joint} '{name}' is open by {size:.3g} {unit}"

    def evaluated(self, q: np.ndarray, *rates: np.ndarray) -> tuple[LoopMotion | None, float]:
        """Motion at a closed pose q under rates of the active joints (N,) each, if it is finite; a bound of the condition."""
        if found := self._motion.call(q, *rates) or self._motion.call(*map(frozen, (q, *rates))):
            return LoopMotion(q, *found[:-1]), found[-1].item()
        return None, np.inf
