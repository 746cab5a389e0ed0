"""The equations that join legs and platform, compiled: how the legs follow the platform, and the velocity maps (60)-(62)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...algebra.vectors import cross
from ...algorithms import closed_loops, parallel_robots
from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...model.tree import Model
from .equations import Equations
from .inverses import TracedInverse, inverse, norm
from .loops import Loops
from .newton import NOWHERE, Step
from .units import Units, length_unit

POSE, ROW = 12, 30  # numbers of PlatformMotion.rows(); those of the pose come first


class LegMotion(NamedTuple):
    """Motion of the n joints of all legs, (n,) or (samples, n); maps [Jp; Q] of (60), (61), (..., 6 + n, N), and rate."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    maps: np.ndarray
    maps_rate: np.ndarray


class LegEquations(Equations):
    """phi(q, pose) = 0 between the legs `model` and the platform. Rows of 30 numbers are PlatformMotion.rows()."""

    def __init__(self, model: Model, platform: Model, loops: Loops, at_home: np.ndarray, backend: str, gravity: np.ndarray):
        super().__init__(model, loops, backend)
        self._platform, self._gravity = platform, gravity
        self.units, self.twist_units = self._natural_units(loops.start, at_home)

    def _natural_units(self, q: np.ndarray, row: np.ndarray) -> tuple[Units, np.ndarray]:
        lengths = self.loops.lengths
        slides = np.array([joint.type == "prismatic" for joint in self.model.joints])

        def levers(q):
            _, J, Jv = self.gaps(q, row)
            return np.concatenate((Jv[lengths, 3:].ravel(), J[np.ix_(lengths, ~slides)].ravel()))

        unit = length_unit(self.model, self.loops.cuts, q, levers, [_split(row)[0]])
        units = Units(np.where(lengths, unit, 1.0), np.where(slides, unit, 1.0))
        return units, np.array([unit] * 3 + [1.0] * 3)

    # ------------------------------------------------------------------ for any scalar

    @property
    def phi(self) -> closed_loops.Closure:
        return closed_loops.closure(self.model, self.loops.cuts)

    def _linearised(self, inverse_of: Callable, values: Any, J: Any, Jv: Any, twist: Any) -> tuple[Any, ...]:
        """The parts of a Step while the platform goes along a twist (6,)."""
        J_inverse = inverse_of(J, self.units)
        return self._parts(values, J_inverse, J_inverse @ values, J_inverse @ (Jv @ twist))

    def actuation(self, inverse_of: Callable, J: Any, J_inverse: Any, Jv: Any) -> Any:
        """The inverse of `platform_equations`."""
        rows = np.concatenate((self.units.unknowns[self.active], self.units.equations))
        return inverse_of(parallel_robots.platform_equations(J, J_inverse, Jv, self.active), Units(rows, self.twist_units))

    def step_of(self, q: Any, pose: Any, twist: Any) -> tuple[Any, ...]:
        """The parts of a Step of the legs' joints."""
        values, J, Jv = parallel_robots.jacobians(self.phi, q, *_split(pose))
        return self._linearised(TracedInverse, values, J, Jv, twist)

    def motion_of(self, q: Any, row: Any) -> tuple[Any, ...]:
        """Motion of the legs; [Jp; Q] and rate; what the legs do not follow; a bound of the condition; sizes of that rest."""
        pose, V, Vd, Vdd = _split(row)

        def rates(qd, qdd, qddd):
            return parallel_robots.closure_rates(self.phi, q, qd, qdd, qddd, pose, V, Vd, Vdd)

        J_inverse = TracedInverse(parallel_robots.jacobians(self.phi, q, pose)[1], self.units)
        steps = closed_loops.tree_motion(rates, lambda r: J_inverse @ r, [0.0 * q] * 3)
        left = rates(*steps)
        J, Jv, Jd, Jvd = parallel_robots.jacobians_and_rates(self.phi, q, steps[0], pose, V)
        A_inverse = self.actuation(TracedInverse, J, J_inverse, Jv)
        maps = parallel_robots.velocity_maps(J, J_inverse, Jv, Jd, Jvd, A_inverse, self.active)
        return *steps, *maps, left, [A_inverse.condition], [norm(rate / self.units.equations) for rate in left]

    def force_of(self, row: Any, inertia: Any, wrench: Any, wrench_rate: Any) -> tuple[Any, Any]:
        """Fp (9) and its rate; inertia (13,): m, ms, J of the platform; wrenches in the platform's frame."""
        (R, _), V, Vd, Vdd = _split(row)
        body = inertia[0], inertia[1:4], inertia[4:].reshape(3, 3)
        return parallel_robots.platform_force(self._platform, R, V, Vd, Vdd, self._gravity, inertias={0: body},
                                              wrenches={0: wrench}, wrench_rates={0: wrench_rate})

    def weight_of(self, row: Any, inertia: Any) -> tuple[Any, Any]:
        """Return the share of gravity in Fp, and its rate."""
        (R, _), V, *_ = _split(row)
        g, arm = self._gravity, R @ inertia[1:4]
        force, moment = -inertia[0] * g, -cross(arm, g)
        return np.concatenate((force, moment)), np.concatenate((np.zeros(3), -cross(cross(V[3:], arm), g)))

    # ------------------------------------------------------------------ compiled

    @cached_property
    def _gaps(self) -> Kernel:
        def gaps(q, pose):
            return parallel_robots.jacobians(self.phi, q, *_split(pose))

        return kernel.build(gaps, {"q": self.model.n, "pose": POSE}, self._backend)

    @cached_property
    def _step(self) -> Kernel:
        return kernel.build(self.step_of, {"q": self.model.n, "pose": POSE, "twist": 6}, self._backend)

    @cached_property
    def _motion(self) -> Kernel:
        return kernel.build(self.motion_of, {"q": self.model.n, "row": ROW}, self._backend)

    @cached_property
    def force(self) -> Kernel:
        return kernel.build(self.force_of, {"row": ROW, "inertia": 13, "wrench": 6, "wrench_rate": 6}, self._backend)

    @cached_property
    def weight(self) -> Kernel:
        return kernel.build(self.weight_of, {"row": ROW, "inertia": 13}, self._backend)

    @cached_property
    def force_in_chart(self) -> Kernel:
        """Of parallel_robots.force_in_chart where x is zero: (12,); its partial derivatives (12, 24) by the motion of x."""
        def force_in_chart(R, rates, inertia, own, own_rate, held):
            body = inertia[0], inertia[1:4], inertia[4:].reshape(3, 3)

            def force(motion):
                loads = own, own_rate, held
                return parallel_robots.force_in_chart(self._platform, motion, R.reshape(3, 3), self._gravity, body, *loads)

            return closed_loops.jacobian(force, np.concatenate((np.zeros(6), rates)))

        sizes = {"R": 9, "rates": 18, "inertia": 13, "own": 6, "own_rate": 6, "held": 15}
        return kernel.build(force_in_chart, sizes, self._backend)

    # ------------------------------------------------------------------ at one pose

    def gaps(self, q: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """phi, J, Jv."""
        values, J, Jv = self._gaps(np.concatenate((q, row[:POSE])))
        return values, J, Jv

    def step(self, q: np.ndarray, row: np.ndarray, twist: np.ndarray) -> Step:
        """Of the legs' joints, while the platform goes along a twist (6,)."""
        return self._quick_step(q, row[:POSE], twist) or self.careful_step(q, row, twist)

    def careful_step(self, q: np.ndarray, row: np.ndarray, twist: np.ndarray) -> Step:
        """The same by singular values, also where they vanish."""
        values, J, Jv = self.gaps(q, row)
        if not np.isfinite(values).all():
            return NOWHERE
        correction, slope, sizes = self._linearised(inverse, values, J, Jv, twist)
        return Step(correction, slope, *map(float, sizes))

    def evaluated(self, q: np.ndarray, row: np.ndarray) -> tuple[LegMotion, float, np.ndarray, list[float]] | None:
        """If finite: motion at a pose of legs and platform; a bound of the actuation's condition number; and what the legs do
        not follow of velocity, acceleration and jerk, (3, m), and how much that is, in units."""
        if found := self._answer(self._motion, q, row):
            *motion, left, condition, sizes = found
            return LegMotion(q, *motion), condition.item(), left, sizes.tolist()
        return None


def _split(row: Any) -> tuple[Any, ...]:
    """(R, P) of the platform, and V, Vd, Vdd, as far as the row goes."""
    return (row[:9].reshape(3, 3), row[9:12]), *(row[k:k + 6] for k in range(12, len(row), 6))
