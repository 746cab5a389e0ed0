"""Every question that a robot answers from outside, by the name that `rnea query` has for it; query_node serves the same.

Each is one call of the library, its answer plain arrays by name; request.py says what a request is.
"""

from __future__ import annotations

from . import dynamics, kinematics, motors, moving_base, regressor
from .ask import RequestHandler

QUESTIONS: dict[str, RequestHandler] = {
    "torque": dynamics.INVERSE_DYNAMICS,
    "forward": dynamics.FORWARD_DYNAMICS,
    "matrix": dynamics.MASS_MATRIX,
    "coriolis": dynamics.CORIOLIS_MATRIX,
    "sensitivities": dynamics.SENSITIVITIES,
    "wrenches": dynamics.JOINT_WRENCHES,
    "wrench-sensitivities": dynamics.WRENCH_SENSITIVITIES,
    "energy": dynamics.ENERGY,
    "floating": moving_base.INVERSE_DYNAMICS,
    "floating-forward": moving_base.FORWARD_DYNAMICS,
    "kinematics": kinematics.FORWARD_KINEMATICS,
    "jacobians": kinematics.JACOBIANS,
    "loops": kinematics.LOOP_CLOSURE,
    "platform": kinematics.PLATFORM_FORWARD_KINEMATICS,
    "platform-joints": kinematics.PLATFORM_INVERSE_KINEMATICS,
    "motors": motors.MOTOR_MOTION,
    "regressor": regressor.REGRESSOR,
}
