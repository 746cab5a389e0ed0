"""Inverse kinematics of all legs of a parallel robot, and their motion."""

from __future__ import annotations

from math import atan2, sqrt
from typing import Any

import numpy as np

from ...errors import InputError, ModelError, PoseError, some
from ...model.tree import Model, frozen
from ..inputs.platform_motion import PlatformMotion
from ..inputs.validation import too_large
from .inverses import EASY, MAX_CONDITION, Inverse, inverse, rank
from .leg_equations import LegEquations, LegMotion
from .loops import Loops
from .newton import CLOSED, NOT_CLOSED, NOT_FOLLOWED, OUT_OF_REACH, SINGULAR, NewtonSolution, newton, walk
from .units import Units

PASSING = 0.05  # rad or shares of the unit of length: how far the straight way between two poses may leave the allowed ones
ALLOWED = 1e-7  # share of a velocity, acceleration or jerk of the platform that the legs may fail to follow


class LegClosure(LegEquations):
    """Solves the equations between legs and platform; `home` (R, P) and `start`, the legs' joints there, begin every walk."""

    def __init__(self, model: Model, platform: Model, loops: Loops, home: tuple[Any, Any], backend: str, gravity: np.ndarray):
        at_home = PlatformMotion(*home).checked().rows()
        if at_home.ndim != 1:
            raise InputError(f"home is one pose, position (3,) and rotation (3, 3); got {len(at_home)}")
        super().__init__(model, platform, loops, at_home, backend, gravity)
        self.start = self._at_start(at_home)
        self.home = frozen(at_home[:9].reshape(3, 3)), frozen(at_home[9:12])
        self._check_mobility(at_home)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.start, self.home = frozen(self.start), (frozen(self.home[0]), frozen(self.home[1]))

    def motion(self, row: np.ndarray, guess: np.ndarray | None, guess_row: np.ndarray | None, orders: int = 3) -> LegMotion:
        """Of all legs under a motion of the platform (30,), on the branch of `guess` at the pose of guess_row.

        orders: how many of velocity, acceleration and jerk the legs must allow.
        """
        motion, left, sizes = self._held(self.reach(row, guess, guess_row), row)
        if max(sizes[:orders], default=0.0) > ALLOWED:
            self._check_followed(left[:orders], row)
        return motion

    def platform_map(self, row: np.ndarray, guess: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Jp (6, N), and the acceleration (6,) of the platform whose actuators have none: Vp' = Jp qadd + Jp' qad."""
        motion = self._held(self.reach(row, guess, None), row)[0]
        return motion.maps[:6], motion.maps_rate[:6] @ motion.qd[self.active]

    def _held(self, q: np.ndarray, row: np.ndarray) -> tuple[LegMotion, np.ndarray, list[float]]:
        """Motion, and what the legs do not follow of it, at a pose where the actuators hold the platform."""
        found = self.evaluated(q, row)
        if found is None or found[1] > EASY:
            _, J, Jv = self.gaps(q, row)
            A_inverse = self.actuation(inverse, J, inverse(J, self.units), Jv)
            if A_inverse.condition > MAX_CONDITION:
                raise self._singular_actuation(A_inverse)
        if found is None:
            raise too_large("motion of the legs")
        motion, _, left, sizes = found
        return motion, left, sizes

    def _legs_inverse(self, q: np.ndarray, row: np.ndarray) -> Inverse:
        return inverse(self.gaps(q, row)[1], self.units)

    # ------------------------------------------------------------------ inverse kinematics

    def reach(self, row: np.ndarray, guess: np.ndarray | None, guess_row: np.ndarray | None) -> np.ndarray:
        """Joints of the legs at the pose of row; walks there from the pose of guess_row, or takes the guess for this pose."""
        if guess is not None and guess_row is None:
            return self._near(row, guess)
        R0, P0 = self.home if guess_row is None else (guess_row[:9].reshape(3, 3), guess_row[9:12])
        turn, slide = rotation_vector(row[:9].reshape(3, 3) @ R0.T), row[9:12] - P0
        twist = np.concatenate((slide, turn))

        def row_at(s):
            return row if s == 1.0 else np.concatenate(((turned_by(turn * s) @ R0).ravel(), P0 + slide * s))

        def solve_at(s, guess):
            here = row_at(s)
            there = newton(lambda q: self.step(q, here, twist), guess, self.units)
            passing = s < 1.0 and there.step.gap <= PASSING
            return NewtonSolution(there.x, there.step._replace(gap=0.0)) if passing else there

        q = self.start if guess is None else guess
        begin = NewtonSolution(q, self.step(q, np.concatenate((R0.ravel(), P0)), twist))
        q, reached = walk(solve_at, begin, self.units, max(map(abs, (twist / self.twist_units).tolist())))
        if reached < 1.0:
            raise self._no_way(q, row_at(reached), row, reached)
        return q

    def _near(self, row: np.ndarray, guess: np.ndarray) -> np.ndarray:
        """Joints of the legs at the pose of row, next to a guess."""
        solution = newton(lambda q: self.step(q, row, np.zeros(6)), guess, self.units)
        if not solution.closed:
            raise PoseError(NOT_CLOSED, f"guess: {self._worst_gap(solution.x, row)} at best; positions of the legs' joints "
                                        "near this pose are needed")
        if solution.step.condition > MAX_CONDITION:
            raise self._singular_legs(solution.x, row)
        return solution.x

    def _solve(self, row: np.ndarray, guess: np.ndarray) -> NewtonSolution:
        """By singular values, to see what is wrong with a pose."""
        return newton(lambda q: self.careful_step(q, row, np.zeros(6)), guess, self.units)

    # ------------------------------------------------------------------ the machine as a whole

    def _at_start(self, row: np.ndarray) -> np.ndarray:
        solution = self._solve(row, self.loops.start)
        if not solution.closed:
            raise ModelError("the legs do not reach the platform at the home pose: "
                             f"{self._worst_gap(solution.x, row)} at best; give another home pose, or 'start': "
                             "{joint: position} for the legs", self.loops.where)
        idle = np.flatnonzero(~self.gaps(solution.x, row)[1].any(axis=0))
        if idle.size:
            names = some(self.model.joint_names[k] for k in idle)
            raise ModelError(f"joints {names} move no cut joint; every leg must be attached to the platform", self.loops.where)
        if solution.step.condition > MAX_CONDITION:
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
        A_inverse = self.actuation(inverse, J, inverse(J, self.units), Jv)
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
                raise PoseError(NOT_FOLLOWED, f"the legs do not allow this {word} of the platform: it would tear joint "
                                              f"'{name}' apart, by {size:.3g} {unit}/s^{order + 1}. The machine has "
                                              f"{len(self.active)} freedoms and its platform must stay in them")

    def _singular_legs(self, q: np.ndarray, row: np.ndarray) -> PoseError:
        J_inverse = self._legs_inverse(q, row)
        weak = np.flatnonzero(np.abs(J_inverse.weakest) > 0.3 * np.abs(J_inverse.weakest).max(initial=0.0))
        names = some(self.model.joint_names[k] for k in weak)
        return PoseError(SINGULAR, f"a leg is at a singular pose: the platform does not determine {names} (condition number "
                                   f"{J_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} is allowed)")

    def _singular_actuation(self, A_inverse: Inverse) -> PoseError:
        free = ", ".join(f"{x:.2f}" for x in A_inverse.weakest)
        return PoseError(SINGULAR, "the platform is at a singular pose: with all actuators locked it can still move along the "
                                   f"twist ({free}) (condition number {A_inverse.condition:.2g}, at most {MAX_CONDITION:.0e} "
                                   "is allowed)")

    def _no_way(self, q: np.ndarray, row: np.ndarray, goal: np.ndarray, reached: float) -> PoseError:
        there = self._solve(goal, q)
        if there.step.gap <= np.sqrt(CLOSED) and there.step.condition > MAX_CONDITION:
            return self._singular_legs(there.x, goal)
        where = ", ".join(f"{x:.6g}" for x in goal[9:12])
        return PoseError(OUT_OF_REACH, f"the legs do not bring the platform to ({where}): {100 * reached:.0f} % of the way, "
                                       f"they cannot follow (condition number {self._legs_inverse(q, row).condition:.2g}); at "
                                       f"the goal itself, {self._worst_gap(there.x, goal)} at best. If it is in reach, give a "
                                       "guess of the legs' joints")

    def _worst_gap(self, q: np.ndarray, row: np.ndarray) -> str:
        name, size, unit = self.loops.worst(self.gaps(q, row)[0], self.units.equations)
        return f"joint '{name}' is open by {size:.3g} {unit}"


def rotation_vector(R: np.ndarray) -> np.ndarray:
    """Angle times axis, at most half a turn."""
    (xx, xy, xz), (yx, yy, yz), (zx, zy, zz) = R.tolist()
    axis = np.array([zy - yz, xz - zx, yx - xy]) / 2.0
    s, c = sqrt(float(axis @ axis)), (xx + yy + zz - 1.0) / 2.0
    if s > 1e-9 or c > 0.0:
        return axis * (atan2(s, c) / s) if s > 0.0 else axis
    k = int(np.diag(R).argmax())  # half a turn: R + 1 = 2 u u^T
    return (R[:, k] + np.eye(3)[k]) / np.linalg.norm(R[:, k] + np.eye(3)[k]) * np.pi


def turned_by(v: np.ndarray) -> np.ndarray:
    """Rotation by the vector v, Rodrigues."""
    angle = float(np.linalg.norm(v))
    K = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + K * np.sinc(angle / np.pi) + K @ K * (0.5 * np.sinc(angle / (2.0 * np.pi)) ** 2)
