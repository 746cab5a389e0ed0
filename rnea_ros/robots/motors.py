"""Motion of the motors behind springs, and torques on both sides of motors and springs.

Hua, Poursina, Sanfilippo, "Dynamic modelling of mixed rigid-flexible joint robotic manipulator using recursive Newton-Euler
formulation", (27)-(29), (43): a spring carries its load if its motor is at q_motor = load / stiffness + q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

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

    def of_sample(self, k: int) -> MotorMotion:
        """Return one sample of many."""
        found: list[Any] = [None if part is None else part[k] for part in self]
        return MotorMotion(*found)


class MotorLoads:
    """Motion of the motors of one robot from solutions of its equations."""

    def __init__(self, equations: EquationsOfMotion, names: Sequence[str], backend: str):
        """Prepare nothing: the kernel is compiled when it is first needed. names: joints in the columns of q."""
        self._equations, self._backend = equations, backend
        self._joints = [equations.model.joint_names.index(name) for name in names]
        self._columns = [list(names).index(name) for name in equations.elastic_joints]
        self._kernel: Kernel | None = None

    def motion(self, Y: Array, tau: Array, tau_rate: Array | None) -> MotorMotion:
        """Return the motion of solved samples; Y (samples, orders, size) as of solution.py, torques (samples, n)."""
        equations, count = self._equations, len(Y)
        N, joints = len(equations.coordinates), equations.joints
        x = [Y[:, k, :N] for k in range(4)] if Y.shape[1] > 3 else [*(Y[:, k, :N] for k in range(3)), np.zeros((count, N))]
        shares = self._shares().of_samples([np.ascontiguousarray(part) for part in x], count)
        loads = [torque - share[:, self._joints] for torque, share in zip((tau, tau_rate), shares, strict=True)
                 if torque is not None]
        motors = [part[:, joints.stop:] for part in x]
        elastic = [joints.start + self._joints[k] for k in self._columns]
        bent = [motor - part[:, elastic] for motor, part in zip(motors, x, strict=True)]
        stiffness = np.array([motor.stiffness for motor in equations.motors if motor.stiffness < math.inf])
        for load, deflection in zip(loads, bent, strict=False):
            load[:, self._columns] = deflection * stiffness
        deflections = np.zeros((2, *tau.shape))
        deflections[:, :, self._columns] = bent[:2]
        return MotorMotion(tau, loads[0], motors[0], motors[1], motors[2], deflections[0], deflections[1], tau_rate,
                           None if tau_rate is None else loads[1])

    def of_solution(self, found: Solution, torques: Array) -> list[Array]:
        """Return loads (n,) of the joints, and their rates where those of the torques are given."""
        equations = self._equations
        b, x = equations.base, np.zeros((4, len(equations.coordinates)))
        x[1:1 + len(found.base[:3]), :b] = found.base[:3, :b]
        for k, name in enumerate(equations.coordinates[b:], start=b):
            known = found.positions[name][:4]
            x[:len(known), k] = known
        shares = self._shares().call(*x) or self._shares()(x.ravel())
        loads = [torque - share[self._joints] for torque, share in zip(torques, shares, strict=False)]
        for order, load in enumerate(loads):
            load[self._columns] = [found.springs[name][order] for name in equations.elastic_joints]
        return loads

    def _shares(self) -> Kernel:
        if self._kernel is None:
            def evaluate(x, v, a, j):
                own = self._equations.motor_shares(Rates(jets(x, v), jets(v, a), jets(a, j)))
                return [derivative(own, 0), derivative(own, 1)]

            self._kernel = kernel.build(evaluate, dict.fromkeys("xvaj", len(self._equations.coordinates)), self._backend)
        return self._kernel
