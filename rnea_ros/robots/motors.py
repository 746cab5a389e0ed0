"""Motion of the motors behind springs, and torques on both sides of motors and springs.

Hua, Poursina, Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint robotic manipulator using recursive Newton-Euler
formulation", (27)-(29), (43): a spring carries its load if its motor is at q_motor = load / stiffness + q.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..algebra.arrays import Array
from ..algebra.taylor import derivative, jets
from ..algorithms.equations import EquationsOfMotion, Rates
from ..codegen import kernel
from ..codegen.kernel import Kernel
from .solution import Solution


class MotorMotion(NamedTuple):
    """Motion of motors and torques on both sides of them; (n,) or (samples, n), of motors behind springs (.., Ne).

    tau, tau_rate   : torque of every joint's motor, as the joint's side of its gear feels it, and its rate [N m, N]
    load, load_rate : torque on the links beyond each joint, without rotor and friction of a rigid joint; at an elastic joint
                      the torque of its spring [N m, N]
    q_motor, qd_motor, qdd_motor : position, velocity, acceleration of the motors behind their gears [rad, m]
    deflection, deflection_rate  : position of each motor less that of its joint, and its rate; zero at rigid joints [rad, m]

    The rates are None where fewer derivatives of q than they take are given.
    """

    tau: Array
    load: Array
    q_motor: Array
    qd_motor: Array
    qdd_motor: Array
    deflection: Array
    deflection_rate: Array
    tau_rate: Array | None = None
    load_rate: Array | None = None


class MotorLoads:
    """Motion of the motors of one robot from solutions of its equations."""

    def __init__(self, equations: EquationsOfMotion, names: Sequence[str], backend: str):
        """Prepare nothing: the kernel is compiled when it is first needed. names: joints in the columns of q."""
        self._equations, self._backend = equations, backend
        self._joints = [equations.model.joint_names.index(name) for name in names]
        self._columns = [list(names).index(name) for name in equations.elastic_joints]
        self._kernel: Kernel | None = None

    def motion(self, found: Solution) -> MotorMotion:
        """Return the motion of the motors in a solution of one sample or of many."""
        names, shape = self._equations.elastic_joints, found.torques.shape[:-2]
        motors, deflections = np.zeros((3, *shape, len(names))), np.zeros((2, *shape, len(self._joints)))
        for k, name in enumerate(names):
            turned, joint = found.positions[f"motor of {name}"], found.positions[name]
            motors[..., k] = turned[..., :3].T
            deflections[..., self._columns[k]] = (turned[..., :2] - joint[..., :2]).T
        loads = self.loads(found)
        rates = [part[..., 1, :] if part.shape[-2] > 1 else None for part in (found.torques, loads)]
        return MotorMotion(found.torques[..., 0, :], loads[..., 0, :], motors[0], motors[1], motors[2], deflections[0],
                           deflections[1], *rates)

    def loads(self, found: Solution) -> Array:
        """Return loads of the joints, and their rates where those of the torques are known, (stages, n) or (samples, ...)."""
        equations, loads = self._equations, found.torques.copy()
        shape, b = loads.shape[:-2], equations.base
        x = np.zeros((4, *shape, len(equations.coordinates)))
        if b:
            known = min(3, found.base.shape[-2])
            x[1:1 + known, ..., :b] = found.base[..., :known, :b].swapaxes(0, -2)
        for k, name in enumerate(equations.coordinates[b:], start=b):
            position = found.positions[name][..., :4]
            x[:position.shape[-1], ..., k] = position.T
        shares = (self._shares().of_samples(list(x), len(loads)) if shape else
                  self._shares().call(*x) or self._shares()(x.ravel()))
        for order in range(min(2, loads.shape[-2])):
            loads[..., order, :] -= shares[order][..., self._joints]
            for column, name in zip(self._columns, equations.elastic_joints, strict=True):
                loads[..., order, column] = found.springs[name][..., order]
        return loads

    def _shares(self) -> Kernel:
        if self._kernel is None:
            def evaluate(x, v, a, j):
                own = self._equations.motor_shares(Rates(jets(x, v), jets(v, a), jets(a, j)))
                return [derivative(own, 0), derivative(own, 1)]

            self._kernel = kernel.build(evaluate, dict.fromkeys("xvaj", len(self._equations.coordinates)), self._backend)
        return self._kernel
