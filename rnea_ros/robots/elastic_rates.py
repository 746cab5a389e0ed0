"""What motors and springs of elastic joints give, and its rates; also where the motors' own motion is measured."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algebra.taylor import derivative, jets
from ..algorithms import mixed_joints, motor_motion
from ..algorithms.equations import Motor
from ..model.tree import Model
from .inputs import validation
from .inputs.validation import Wrenches
from .kernels.kernel_function import KernelFunction
from .kernels.store import KernelStore

OF_JOINTS = ("q", "qd", "qdd", "qddd")
OF_MOTORS = ("q_motor", "qd_motor", "qdd_motor", "qddd_motor")


class ElasticRates(NamedTuple):
    """What motors and springs give, and how it changes; (n,) or (samples, n) each.

    tau, tau_rate         : torques of all motors, as the joint's side of the gear sees them, and their rates
    load, load_rate       : torques on what lies beyond the joints, and their rates
    deflection, deflection_rate : position of each motor behind its gear less that of its joint [rad, m], and its rate; zero
                            where the joint is rigid
    """

    tau: Array
    tau_rate: Array
    load: Array
    load_rate: Array
    deflection: Array
    deflection_rate: Array


class MeasuredMotors:
    """Of an ElasticRobot whose motors have sensors of their own."""

    motors: Sequence[Motor]
    _motors: KernelStore

    def measured_rates(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, q_motor: ArrayLike,
                       qd_motor: ArrayLike, qdd_motor: ArrayLike, qddd_motor: ArrayLike, *,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> ElasticRates:
        """The same where the motors' motion (Ne,) is known too, from sensors: three derivatives of each then do, whatever
        `order` is. The load on an elastic joint is its spring's torque."""
        function = KernelFunction("measured_rates", self._measured_rates, (*OF_JOINTS, *OF_MOTORS))
        tau, tau_rate, load, load_rate = self._motors(function, q, qd, qdd, qddd, q_motor, qd_motor, qdd_motor, qddd_motor,
                                                      wrenches=wrenches, wrench_rates=wrench_rates,
                                                      world_wrenches=world_wrenches)
        return ElasticRates(tau, tau_rate, load, load_rate, self._deflection(q, q_motor), self._deflection(qd, qd_motor))

    def _deflection(self, q: ArrayLike, q_motor: ArrayLike) -> Array:
        joints, motors = np.asarray(q, dtype=float), np.asarray(q_motor, dtype=float)
        columns = [motor.coordinate for motor in mixed_joints.elastic(self.motors)]
        count = validation.samples([joints, motors])
        found = np.zeros(joints.shape if count is None else (count, joints.shape[-1]))
        found[..., columns] = motors - joints[..., columns]
        return found

    def _measured_rates(self, model: Model, gravity: Any, options: Any, q: Any, qd: Any, qdd: Any, qddd: Any, q_motor: Any,
                        qd_motor: Any, qdd_motor: Any, qddd_motor: Any) -> tuple[Any, ...]:
        wrenches, rates = options.pop("wrenches", None), options.pop("wrench_rates", None)
        x, theta = ([jets(a, b) for a, b in pairwise(motion)]
                    for motion in ((q, qd, qdd, qddd), (q_motor, qd_motor, qdd_motor, qddd_motor)))
        torques = mixed_joints.inverse_dynamics(model, self.motors, x, theta, gravity=gravity,
                                                wrenches=motor_motion.loads(wrenches, rates, 1), **options)
        load = list(torques.load)
        for k, motor in enumerate(mixed_joints.elastic(self.motors)):
            load[motor.coordinate] = (theta[0][k] - x[0][motor.coordinate]) * motor.stiffness
        return *(derivative(torques.motor, order) for order in range(2)), *(derivative(load, order) for order in range(2))
