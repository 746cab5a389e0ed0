"""Both sides as loops in machine code: Pinocchio's C++, and our kernels by their address."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_double, c_long, c_void_p

import numpy as np
from cases import STATES, Case
from timing import Loop
from toolchain import Missing, library


def _array(values: np.ndarray) -> c_void_p:
    return c_void_p(values.ctypes.data)


def our_loop(case: Case, evaluation: str) -> Loop:
    """Time calls of one kernel from C++."""
    timed = library("loops").kernel_seconds
    timed.restype = c_double
    kernel = case.robot.kernel(evaluation)
    x, y = case.flat(tuple(kernel.inputs)), np.zeros(kernel.width)

    def loop(count: int) -> float:
        return timed(c_void_p(kernel.address), _array(x), _array(y), c_long(kernel.size), c_long(STATES), c_long(count))

    return loop


def vector_peak(rounds: int) -> float:
    """Operations per second of one core, the best of some rounds."""
    measured = library("loops").vector_peak
    measured.restype = c_double
    return max(measured(c_long(5_000)) for _ in range(rounds))


class Pinocchio:
    """C++ of Pinocchio for one robot. Raises Missing, and AssertionError if it computes something else than we do."""

    def __init__(self, case: Case):
        self._library = library("pinocchio_loops")
        self._library.robot_new.restype = c_void_p
        self._library.robot_add_joint.restype = ctypes.c_bool
        self._library.robot_seconds.restype = c_double
        self._robot = c_void_p(self._library.robot_new())
        for k in range(1, case.model.njoints):
            self._add_joint(case, k)
        states = case.pinocchio
        self._library.robot_states(self._robot, _array(states), c_long(len(states)))
        self._compare(case)

    def _add_joint(self, case: Case, k: int) -> None:
        kind, placement = case.model.joints[k].shortname(), case.model.jointPlacements[k]
        axis = getattr(case.model.joints[k].extract(), "axis", np.zeros(3)) if "Unaligned" in kind else np.zeros(3)
        body = case.model.inertias[k]
        xx, xy, xz, _, yy, yz, _, _, zz = body.inertia.ravel()
        numbers = np.concatenate((axis, placement.rotation.ravel(), placement.translation, [body.mass], body.lever,
                                  [xx, xy, yy, xz, yz, zz]))
        if not self._library.robot_add_joint(self._robot, c_long(case.model.parents[k]), c_char_p(kind.encode()),
                                             _array(np.ascontiguousarray(numbers))):
            raise Missing(f"{case.name} has a joint {kind}, which pinocchio_loops.cpp does not know")

    def _compare(self, case: Case) -> None:
        if case.floating:  # there the base's acceleration is given, here it is asked for
            return
        theirs = np.zeros((2, case.model.nv))
        self._library.robot_results(self._robot, _array(theirs[0]), _array(theirs[1]))
        ours = case.robot.torque_and_rate(*case.motion[:, 0])
        for a, b in zip(ours, theirs @ case.fold):
            assert np.abs(a - b).max() <= 1e-9 * np.abs(b).max(), f"{case.name}: the two sides differ"

    def loop(self, what: str) -> Loop:
        name = c_char_p(what.encode())
        return lambda count: self._library.robot_seconds(self._robot, name, c_long(count))
