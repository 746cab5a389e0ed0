"""The regressor of a robot as a compiled kernel: tau = Y params and tau_rate = Yd params, for one sample or many."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..algorithms.regressor import regressor
from ..codegen import kernel
from ..inertial.inertial_parameters import Parameter, with_unknowns
from ..model.tree import CoupledMotor
from ..robots.inputs import validation
from ..robots.robot import Robot


class Regressor:
    """Columns are the listed parameters, see inertial_parameters.py; kernels are compiled when they are first needed.

    A list may be a part of all parameters, as the ones that BaseParameters keeps: the others then count as zero.
    """

    def __init__(self, robot: Robot, listed: Sequence[Parameter]):
        validation.held_base(robot.model)
        self.parameters = tuple(listed)
        self.robot = robot
        self._unknown = with_unknowns(robot.model, listed)
        self._kernels: dict[int, kernel.Kernel] = {}

    @property
    def motors(self) -> tuple[CoupledMotor, ...]:
        """Motors of coupled transmissions."""
        return self.robot.model.coupled_motors

    def __call__(self, q, qd, qdd) -> np.ndarray:
        """Y (n, p) or (samples, n, p); tau = Y @ params. q, qd, qdd as in Robot."""
        return self._evaluate(q, qd, qdd)[0]

    def with_rate(self, q, qd, qdd, qddd) -> tuple[np.ndarray, np.ndarray]:
        """(Y, Yd), of the shape of Y both; tau_rate = Yd @ params."""
        Y, Yd = self._evaluate(q, qd, qdd, qddd)
        return Y, Yd

    def _evaluate(self, *motion) -> tuple[np.ndarray, ...]:
        names, n, p = ("q", "qd", "qdd", "qddd")[:len(motion)], self.robot.n, len(self.parameters)
        joints = self.robot.joint_names
        x = validation.beside([validation.coordinates(name, value, joints) for name, value in zip(names, motion, strict=True)])
        if len(motion) not in self._kernels:
            self._kernels[len(motion)] = kernel.build(self._function, dict.fromkeys(names, n), self.robot.backend)
        found = self._kernels[len(motion)](x)
        validation.results("the regressor", found)
        return tuple(part.reshape(*x.shape[:-1], n, p) for part in found)

    def _function(self, q, qd, qdd, qddd=None):
        outputs = 1 if qddd is None else 2
        qddd = q * 0.0 if qddd is None else qddd
        return regressor(self._unknown, len(self.parameters), q, qd, qdd, qddd, self.robot.gravity_vector)[:outputs]
