"""The equations that join legs and platform, compiled: inverse kinematics of all legs, and the velocity maps (60)-(62)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...algorithms import closed_loops, parallel_robots
from ...codegen import kernel
from ...errors import InputError, ModelError, some
from ...model.tree import Model, frozen
from ..inputs.platform_motion import PlatformMotion
from .loops import Loops
from .newton import CLOSED, MAX_CONDITION, Inverse, NewtonSolution, Units, inverse, newton, rank, walk
from .units import length_unit

POSE = {"R": 9, "P": 3}
PASSING = 0.05  # rad or shares of the unit of length: how far the straight way between two poses may leave the allowed ones
ALLOWED = 1e-7  # share of a velocity, acceleration or jerk of the platform that the legs may fail to follow


class LegMotion(NamedTuple):
    """Motion of the n joints of all legs, (n,) or (samples, n); maps [Jp; Q] of (60), (61), (..., 6 + n, N), and rate."""

    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    qddd: np.ndarray
    maps: np.ndarray
    maps_rate: np.ndarray


class LegClosure:
    """phi(q, pose) = 0 between the legs `model` and the platform. Rows of 30 numbers are PlatformMotion.rows()."""

    def __init__(self, model: Model, platform: Model, loops: Loops, home: tuple[Any, Any], backend: str, gravity: np.ndarray):
        self.model, self.loops = model, loops
        self._of_kernels = platform, backend, gravity
        self.active = np.array(loops.active, dtype=int)
        self._compile(*self._of_kernels)
        at_home = PlatformMotion(*home).checked().rows()
        if at_home.ndim != 1:
            raise InputError(f"home is one pose, position (3,) and rotation (3, 3); got {len(at_home)}")
        self.units, self.twist_units = self._natural_units(loops.start, at_home)
        self.start = self._at_start(at_home)
        self.home = frozen(at_home[:9].reshape(3, 3)), frozen(at_home[9:12])
        self._check_mobility(at_home)

    def __getstate__(self) -> dict[str, Any]:
        """Without what is compiled: machine code holds addresses of this process."""
        return {name: value for name, value in self.__dict__.items() if not isinstance(value, kernel.Kernel)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        platform, backend, gravity = self._of_kernels
        self._of_kernels = platform, kernel.available(backend), gravity
        self.start, self.home = frozen(self.start), (frozen(self.home[0]), frozen(self.home[1]))
        self._compile(*self._of_kernels)

    def _compile(self, platform: Model, backend: str, gravity: np.ndarray) -> None:
        def phi(q, pose):
            return parallel_robots.closure(self.model, self.loops.cuts, q, pose)

        def tangent(q, qd, R, P, V):
            return parallel_robots.jacobians_and_rates(phi, q, qd, (R.reshape(3, 3), P), V)

        def rates(q, qd, qdd, qddd, R, P, V, Vd, Vdd):
            return parallel_robots.closure_rates(phi, q, qd, qdd, qddd, (R.reshape(3, 3), P), V, Vd, Vdd)

        def force(R, P, V, Vd, Vdd, m, ms, J, wrench, wrench_rate):
            return parallel_robots.platform_force(platform, R.reshape(3, 3), V, Vd, Vdd, gravity, wrenches={0: wrench},
                                                  inertias={0: (m[0], ms, J.reshape(3, 3))}, wrench_rates={0: wrench_rate})

        joints, twists = dict.fromkeys(("q", "qd", "qdd", "qddd"), self.model.n), dict.fromkeys(("V", "Vd", "Vdd"), 6)
        self._tangent = kernel.build(tangent, {"q": self.model.n, "qd": self.model.n, **POSE, "V": 6}, backend)
        self._rates = kernel.build(rates, {**joints, **POSE, **twists}, backend)
        self.force = kernel.build(force, {**POSE, **twists, "m": 1, "ms": 3, "J": 9, "wrench": 6, "wrench_rate": 6}, backend)

    # ------------------------------------------------------------------ one pose

    def tangent(self, q: np.ndarray, qd: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, ...]:
        """phi, J, Jv and the rates of the two: v = J qd = Jv Vp where the gaps stay closed."""
        values, both, both_rate = self._tangent(np.concatenate((q, qd, row[:18])))
        return values, -both[:, 6:], both[:, :6], -both_rate[:, 6:], both_rate[:, :6]

    def gaps(self, q: np.ndarray, row: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """phi, J, Jv."""
        values, J, Jv, *_ = self.tangent(q, np.zeros(self.model.n), row)
        return values, J, Jv

    def motion(self, row: np.ndarray, guess: np.ndarray | None, guess_row: np.ndarray | None, orders: int = 3) -> LegMotion:
        """Of all legs under a motion of the platform (30,), on the branch of `guess` at the pose of guess_row.

        orders: how many of velocity, acceleration and jerk the legs must allow.
        """
        q = self._reach(row, guess, guess_row)
        J_inverse = self._inverse(q, row)

        def rates(*motion):
            return self._rates(np.concatenate((q, *motion, row)))

        steps = closed_loops.tree_motion(rates, lambda r: J_inverse.matrix @ r, [np.zeros_like(q)] * 3)
        self._check_followed(rates(*steps)[:orders], row)
        qd, qdd, qddd = steps
        return LegMotion(q, qd, qdd, qddd, *self._maps(q, qd, row, J_inverse))

    def platform_map(self, row: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Jp (6, N), and the acceleration (6,) of the platform whose actuators have none: Vp' = Jp qadd + Jp' qad."""
        q = self._reach(row, guess, None)
        J_inverse = self._inverse(q, row)
        qd = J_inverse.matrix @ (self.gaps(q, row)[2] @ row[12:18])
        maps, maps_rate = self._maps(q, qd, row, J_inverse)
        return maps[:6], maps_rate[:6] @ qd[self.active]

    def _maps(self, q: np.ndarray, qd: np.ndarray, row: np.ndarray, J_inverse: Inverse) -> tuple[np.ndarray, np.ndarray]:
        _, J, Jv, Jd, Jvd = self.tangent(q, qd, row)
        A_inverse = self._actuation(J, J_inverse, Jv)
        if A_inverse.condition > MAX_CONDITION:
            raise self._singular_actuation(A_inverse)
        return parallel_robots.velocity_maps(J, J_inverse.matrix, Jv, Jd, Jvd, A_inverse.matrix, self.active)

    def _inverse(self, q: np.ndarray, row: np.ndarray) -> Inverse:
        return inverse(self.gaps(q, row)[1], self.units)

    def _actuation(self, J: np.ndarray, J_inverse: Inverse, Jv: np.ndarray) -> Inverse:
        equations = parallel_robots.platform_equations(J, J_inverse.matrix, Jv, self.active)
        rows = np.concatenate((self.units.unknowns[self.active], self.units.equations))
        return inverse(equations, Units(rows, self.twist_units))

    # ------------------------------------------------------------------ inverse kinematics

    def _reach(self, row: np.ndarray, guess: np.ndarray | None, guess_row: np.ndarray | None) -> np.ndarray:
        """Joints of the legs at the pose of row; walks there from the pose of guess_row, or takes the guess for this pose."""
        if guess is not None and guess_row is None:
            solution = self._solve(row, guess)
            if solution.gap > CLOSED:
                raise InputError(f"guess: {self._worst_gap(solution.x, row)} at best; positions of the legs' joints near this "
                                 "pose are needed")
            if solution.condition > MAX_CONDITION:
                raise self._singular_legs(solution.x, row)
            return solution.x
        R0, P0 = self.home if guess_row is None else (guess_row[:9].reshape(3, 3), guess_row[9:12])
        q = self.start if guess is None else guess
        turn, slide = rotation_vector(row[:9].reshape(3, 3) @ R0.T), row[9:12] - P0

        def row_at(s):
            return row if s == 1.0 else np.concatenate(((turned_by(turn * s) @ R0).ravel(), P0 + slide * s, row[12:]))

        def slope_at(s, q):
            _, J, Jv = self.gaps(q, row_at(s))
            J_inverse = inverse(J, self.units)
            return J_inverse.matrix @ (Jv @ np.concatenate((slide, turn))), J_inverse.margin

        def solve_at(s, guess):
            there = self._solve(row_at(s), guess)
            on_the_way = s < 1.0 and there.gap <= PASSING
            return there._replace(gap=0.0) if on_the_way else there

        distance = float(np.abs(np.concatenate((slide, turn)) / self.twist_units).max())
        q, reached = walk(solve_at, slope_at, q, self.units, distance)
        if reached < 1.0:
            raise self._no_way(q, row_at(reached), row, reached)
        return q

    def _solve(self, row: np.ndarray, guess: np.ndarray) -> NewtonSolution:
        def system(q):
            values, J, _ = self.gaps(q, row)
            return values, -J

        return newton(system, guess, self.units)

    # ------------------------------------------------------------------ the machine as a whole

    def _natural_units(self, q: np.ndarray, row: np.ndarray) -> tuple[Units, np.ndarray]:
        lengths = self.loops.lengths
        slides = np.array([joint.type == "prismatic" for joint in self.model.joints])

        def levers(q):
            _, J, Jv = self.gaps(q, row)
            return np.concatenate((Jv[lengths, 3:].ravel(), J[np.ix_(lengths, ~slides)].ravel()))

        unit = length_unit(self.model, self.loops.cuts, q, levers, [(row[:9].reshape(3, 3), row[9:12])])
        units = Units(np.where(lengths, unit, 1.0), np.where(slides, unit, 1.0))
        return units, np.array([unit] * 3 + [1.0] * 3)

    def _at_start(self, row: np.ndarray) -> np.ndarray:
        solution = self._solve(row, self.loops.start)
        if solution.gap > CLOSED:
            raise ModelError("the legs do not reach the platform at the home pose: "
                             f"{self._worst_gap(solution.x, row)} at best; give another home pose, or 'start': "
                             "{joint: position} for the legs", self.loops.where)
        idle = np.flatnonzero(~self.gaps(solution.x, row)[1].any(axis=0))
        if idle.size:
            names = some(self.model.joint_names[k] for k in idle)
            raise ModelError(f"joints {names} move no cut joint; every leg must be attached to the platform", self.loops.where)
        if solution.condition > MAX_CONDITION:
            raise ModelError(f"{self._singular_legs(solution.x, row)}. This is the home pose: give another one",
                             self.loops.where)
        return frozen(solution.x)

    def _check_mobility(self, row: np.ndarray) -> None:
        _, J, Jv = self.gaps(self.start, row)
        units = Units(self.units.equations, np.concatenate((self.twist_units, self.units.unknowns)))
        freedoms = 6 + self.model.n - rank(np.concatenate((Jv, -J), axis=1), units)[0]
        if freedoms != len(self.active):
            names = some(self.model.joint_names[k] for k in self.active)
            raise ModelError(f"{len(self.active)} active joints ({names}), but the legs leave the platform {freedoms} "
                             f"freedoms; name {freedoms} of {some(self.model.joint_names)}", self.loops.where)
        A_inverse = self._actuation(J, inverse(J, self.units), Jv)
        if A_inverse.condition > MAX_CONDITION:
            raise ModelError(f"{self._singular_actuation(A_inverse)}. This is the home pose: give another one, or name other "
                             "active joints", self.loops.where)

    # ------------------------------------------------------------------ what went wrong

    def _check_followed(self, left: Any, row: np.ndarray) -> None:
        """What remains of the closure's rates is motion of the platform that the legs do not allow."""
        words = ("velocity", "acceleration", "jerk")
        for order, (word, rate) in enumerate(zip(words, left)):
            scale = max(1.0, *(float(np.abs(row[12 + 6 * k:18 + 6 * k] / self.twist_units).max()) for k in range(order + 1)))
            if np.abs(rate / self.units.equations).max() > ALLOWED * scale ** (order + 1):
                name, size, unit = self.loops.worst(rate, self.units.equations)
                raise InputError(f"the legs do not allow this {word} of the platform: it would tear joint '{name}' apart, by "
                                 f"{size:.3g} {unit}/s^{order + 1}. The machine has {len(self.active)} freedoms and its "
                                 "platform must stay in them")

    def _singular_legs(self, q: np.ndarray, row: np.ndarray) -> InputError:
        J_inverse = self._inverse(q, row)
        weak = np.flatnonzero(np.abs(J_inverse.weakest) > 0.3 * np.abs(J_inverse.weakest).max(initial=0.0))
        names = some(self.model.joint_names[k] for k in weak)
        return InputError(f"a leg is at a singular pose: the platform does not determine {names} (condition number "
                          f"{J_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} is allowed)")

    def _singular_actuation(self, A_inverse: Inverse) -> InputError:
        free = ", ".join(f"{x:.2f}" for x in A_inverse.weakest)
        return InputError("the platform is at a singular pose: with all actuators locked it can still move along the twist "
                          f"({free}) (condition number {A_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} is allowed)")

    def _no_way(self, q: np.ndarray, row: np.ndarray, goal: np.ndarray, reached: float) -> InputError:
        there = self._solve(goal, q)
        if there.gap <= np.sqrt(CLOSED) and there.condition > MAX_CONDITION:
            return self._singular_legs(there.x, goal)
        where = ", ".join(f"{x:.6g}" for x in goal[9:12])
        return InputError(f"the legs do not bring the platform to ({where}): {100 * reached:.0f} % of the way, they cannot "
                          f"follow (condition number {self._inverse(q, row).condition:.2g}); at the goal itself, "
                          f"{self._worst_gap(there.x, goal)} at best. If it is in reach, give a guess of the legs' joints")

    def _worst_gap(self, q: np.ndarray, row: np.ndarray) -> str:
        name, size, unit = self.loops.worst(self.gaps(q, row)[0], self.units.equations)
        return f"joint '{name}' is open by {size:.3g} {unit}"


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Angle times axis, at most half a turn."""
    axis = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2.0
    s, c = float(np.linalg.norm(axis)), (np.trace(R) - 1.0) / 2.0
    if s > 1e-9 or c > 0.0:
        return axis * (np.arctan2(s, c) / s) if s > 0.0 else axis
    k = int(np.diag(R).argmax())  # half a turn: R + 1 = 2 u u^T
    return (R[:, k] + np.eye(3)[k]) / np.linalg.norm(R[:, k] + np.eye(3)[k]) * np.pi


def turned_by(v: np.ndarray) -> np.ndarray:
    """Rotation by the vector v, Rodrigues."""
    angle = float(np.linalg.norm(v))
    K = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + K * np.sinc(angle / np.pi) + K @ K * (0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2)
