"""Direct kinematics of a parallel robot: where platform and legs are, and how they move, when the actuators are told.

The equations are those of leg_equations.py, with other unknowns: the pose of the platform and the passive joints of the legs.
They are solved as those of a tree with closed loops, whose first six joints carry the platform.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...algorithms import closed_loops, parallel_robots
from ...algorithms.kinematics import base_poses
from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...errors import PoseError
from ..inputs.platform_motion import PlatformMotion
from ..inputs.validation import too_large
from .following import RATES, FollowingEquations
from .inverses import EASY, MAX_CONDITION, TracedInverse, inverse
from .leg_equations import POSE, LegEquations, LegMotion
from .newton import CLOSED, NOWHERE, OUT_OF_REACH, SINGULAR, NewtonSolution, Step, newton, walk
from .units import Units

FREEDOMS = 6  # of the platform, before the joints of the legs


class PlatformClosure(FollowingEquations):
    """phi(z) = 0 with the active joints given; z (6 + n,): pose of the platform beside a known one, joints of the legs.

    z[:3] is the way from the known position, z[3:6] what parallel_robots.turned makes the rotation from the known one of.
    """

    def __init__(self, legs: LegEquations):
        super().__init__(legs.model, legs.loops, legs._backend)
        self.units = Units(legs.units.equations, np.concatenate((legs.twist_units, legs.units.unknowns)))
        self.selection = np.eye(FREEDOMS + self.model.n)[:, FREEDOMS + self.active]
        self.passive = np.setdiff1d(np.arange(FREEDOMS + self.model.n), FREEDOMS + self.active)
        self.at = {"q": self.model.n, "pose": POSE}

    # ------------------------------------------------------------------ for any scalar

    def _at(self, *at: Any) -> tuple[Any, closed_loops.Closure, Callable[[Any], Any]]:
        q, pose = at
        z = np.concatenate((np.zeros(FREEDOMS), q))
        return z, self._phi(pose), lambda z: [*base_poses(self.model, z[FREEDOMS:]), _platform(z, pose)]

    def _phi(self, beside: Any) -> closed_loops.Closure:
        """Return phi(z), with the platform's pose counted from `beside`."""
        def part(joints, gaps):
            variables = [*range(FREEDOMS), *(FREEDOMS + k for k in joints)]
            return variables, lambda z: gaps({k: z[FREEDOMS + k] for k in joints}, _platform(z, beside))

        return closed_loops.Closure(part(*leg) for leg in closed_loops.closure(self.model, self.loops.cuts).parts)

    # ------------------------------------------------------------------ compiled

    @cached_property
    def _gaps(self) -> Kernel:
        def gaps(z, beside):
            return closed_loops.jacobian(self._phi(beside), z)

        return kernel.build(gaps, {"z": len(self.units.unknowns), "beside": POSE}, self._backend)

    @cached_property
    def _step(self) -> Kernel:
        def step(z, beside, direction):
            values, J = closed_loops.jacobian(self._phi(beside), z)
            return self._linearised(TracedInverse, values, J, self.passive, direction)

        blocks = {"z": len(self.units.unknowns), "beside": POSE, "direction": len(self.active)}
        return kernel.build(step, blocks, self._backend)

    @cached_property
    def _motion(self) -> Kernel:
        def motion(q, pose, qad, qadd, qaddd):
            at = pose[:9].reshape(3, 3), pose[9:]
            phi = closed_loops.closure(self.model, self.loops.cuts)

            def rates(first, second, third):
                (V, qd), (Vd, qdd), (Vdd, qddd) = ((x[:FREEDOMS], x[FREEDOMS:]) for x in (first, second, third))
                return parallel_robots.closure_rates(phi, q, qd, qdd, qddd, at, V, Vd, Vdd)

            _, J, Jv = parallel_robots.jacobians(phi, q, at)
            J_inverse, solve = self.solver(TracedInverse, np.concatenate((Jv, -J), axis=1), self.passive)
            steps = closed_loops.tree_motion(rates, solve, [self.selection @ part for part in (qad, qadd, qaddd)])
            J, Jv, Jd, Jvd = parallel_robots.jacobians_and_rates(phi, q, steps[0][FREEDOMS:], at, steps[0][:FREEDOMS])
            both, both_rate = (np.concatenate((a, -b), axis=1) for a, b in ((Jv, J), (Jvd, Jd)))
            maps = closed_loops.active_map(both, both_rate, solve, self.selection)
            return np.concatenate([step[:FREEDOMS] for step in steps]), *(step[FREEDOMS:] for step in steps), *maps, [
                J_inverse.condition]

        rates = dict.fromkeys(RATES, len(self.active))
        return kernel.build(motion, {"q": self.model.n, "pose": POSE, **rates}, self._backend)

    @cached_property
    def _pose(self) -> Kernel:
        """Pose (12,) of the platform at z, with its rotation orthonormal to the last digit: from sample to sample, what
        rounding changes would add up."""
        def pose(z, beside):
            R, P = _platform(z, beside)
            return [np.concatenate(((R @ (1.5 * np.eye(3) - 0.5 * (R.T @ R))).ravel(), P))]

        return kernel.build(pose, {"z": len(self.units.unknowns), "beside": POSE}, self._backend)

    # ------------------------------------------------------------------ where the platform is

    def reach(self, qa: np.ndarray, q: np.ndarray, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Joints (n,) of the legs and pose (12,) of the platform at actuator positions qa (N,), from where they are known."""
        begin = np.concatenate((np.zeros(FREEDOMS), q))
        from_qa, own = q[self.active], FREEDOMS + self.active
        direction = qa - from_qa

        def step_at(z: np.ndarray) -> Step:
            return self._quick_step(z, pose, direction) or self._careful_step(z, pose, direction)

        def solve_at(s: float, z: np.ndarray) -> NewtonSolution:
            z[own] = qa if s == 1.0 else from_qa + direction * s
            return newton(step_at, z, self.units)

        z, reached = walk(solve_at, NewtonSolution(begin, step_at(begin)), self.units)
        if reached < 1.0:
            raise self._no_way(qa, z, pose, reached)
        return z[FREEDOMS:], self._pose(np.concatenate((z, pose)))[0]

    def _careful_step(self, z: np.ndarray, beside: np.ndarray, direction: np.ndarray) -> Step:
        """By singular values, also where they vanish."""
        values, J = self._gaps(np.concatenate((z, beside)))
        if not np.isfinite(values).all():
            return NOWHERE
        correction, slope, sizes = self._linearised(inverse, values, J, self.passive, direction)
        return Step(correction, slope, *map(float, sizes))

    def motion(self, q: np.ndarray, pose: np.ndarray, *rates: np.ndarray) -> tuple[np.ndarray, LegMotion]:
        """Row (30,) of the platform, and motion of the legs, at a closed pose under rates of the active joints (N,) each."""
        found = self._answer(self._motion, q, pose, *rates)
        if found is None or found[-1].item() > EASY:
            J = self._gaps(np.concatenate((np.zeros(FREEDOMS), q, pose)))[1]
            condition = self.solver(inverse, J, self.passive)[0].condition
            if condition > MAX_CONDITION:
                raise self._singular(q[self.active], condition)
        if found is None:
            raise too_large("motion of platform and legs")
        twists, *legs, _condition = found
        return np.concatenate((pose, twists)), LegMotion(q, *legs)

    def motions(self, q: np.ndarray, poses: np.ndarray, *rates: np.ndarray) -> tuple[PlatformMotion, LegMotion]:
        """The same of many: joints of the legs (samples, n), poses (samples, 12), rates (samples, N)."""
        found = self._motion.samples((q, poses, *rates), len(q))
        if found is not None and found[-1].max(initial=0.0) <= EASY:
            twists, *legs, _conditions = found
            return PlatformMotion.from_rows(np.concatenate((poses, twists), axis=-1)), LegMotion(q, *legs)
        rows, moving = zip(*map(self.motion, q, poses, *rates), strict=True)
        return PlatformMotion.from_rows(np.array(rows)), LegMotion(*map(np.array, zip(*moving, strict=True)))

    # ------------------------------------------------------------------ what went wrong

    def _no_way(self, qa: np.ndarray, z: np.ndarray, beside: np.ndarray, reached: float) -> PoseError:
        """Why the walk ended at z, short of qa."""
        at_goal, still = z.copy(), np.zeros(len(self.active))
        at_goal[FREEDOMS + self.active] = qa
        there = newton(lambda z: self._careful_step(z, beside, still), at_goal, self.units)
        if there.step.gap <= np.sqrt(CLOSED) and there.step.condition > MAX_CONDITION:
            return self._singular(qa, there.step.condition)
        name, size, unit = self.loops.worst(self._gaps(np.concatenate((there.x, beside)))[0], self.units.equations)
        return PoseError(OUT_OF_REACH, f"no way to {self._positions(qa)}: {100 * reached:.0f} % of the way, the machine comes "
                                       f"to a singular pose; at the goal itself, joint '{name}' is open by {size:.3g} {unit} "
                                       "at best. The goal is out of reach, or it needs another way: give a guess near it")

    def _singular(self, qa: np.ndarray, condition: float) -> PoseError:
        return PoseError(SINGULAR, f"the machine is singular at {self._positions(qa)}: the actuators do not determine where "
                                   f"platform and legs are (condition number {condition:.2g}, at most {MAX_CONDITION:.0e} is "
                                   "allowed)")

    def _positions(self, qa: np.ndarray) -> str:
        return ", ".join(f"{name} = {value:.6g}" for name, value in zip(self.active_joints, qa, strict=True))


def _platform(z: Any, beside: Any) -> tuple[Any, Any]:
    """Return the pose (R, P) of the platform at z."""
    six = np.array([z[k] for k in range(FREEDOMS)])
    return parallel_robots.turned(six[3:]) @ beside[:9].reshape(3, 3), beside[9:12] + six[:3]
