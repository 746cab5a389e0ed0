"""The question for a regressor: torques as a linear function of base parameters."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..algorithms.base_parameters import base_parameters
from ..algorithms.inertial_parameters import TERMS
from ..errors import InputError
from ..identification.identification import Regressor
from ..robots import kinds
from ..robots.general import GeneralRobot
from ..robots.inputs.payload import unified
from ..robots.protocol import AnyRobot
from ..robots.robot import Robot
from .ask import Answer, RequestHandler, of_kind, only
from .request import RequestedState


@lru_cache(maxsize=2)
def _regressor(robot: Robot) -> tuple[Regressor, list[dict[str, Any]]]:
    """Kept, for a Robot does not change: the kernel, and a row for each column of it."""
    model = unified(robot.model, tuple(robot.payloads.values()))
    found = base_parameters(model, robot.gravity_vector.tolist(), TERMS)
    columns = zip(found.names, found.units, found.values_in(model).tolist(), found.relations(), strict=True)
    rows = [dict(zip(("name", "unit", "value", "relation"), row, strict=True)) for row in columns]
    return Regressor(robot, [found.parameters[k] for k in found.kept]), rows


def _answer(robot: AnyRobot, s: RequestedState) -> Answer:
    """Answer a request.

    With closed loops, torques (55) of the active joints: G^T Y, whose rate is Gd^T Y + G^T Yd. Accelerations and jerks of
    joints with springs are read as measured; their rows are efforts that springs or nothing gives.
    """
    kernel, rows = _regressor(kinds.tree(only(robot, "the regressor", Robot, GeneralRobot)))
    motion = [s.q, s.qd, s.qdd, s.qddd]
    if isinstance(robot, GeneralRobot) and (robot.has_moving_base or robot.roles.weights is not None or robot.roles.motors):
        raise InputError(f"the regressor: robot '{robot.name}' has a moving base, redundant motors, or elastic joints or "
                         "motors on links; this is for trees and loops on a fixed base, with or without springs")
    if not (isinstance(robot, GeneralRobot) and robot.loops):
        Y, Yd = kernel.with_rate(*motion)
        return {"parameters": rows, "regressor": Y, "regressor_rate": Yd}
    closed = robot.motion(*motion, **of_kind(robot, s))
    Y, Yd = kernel.with_rate(*closed[:4])
    G, Gd = (np.swapaxes(part, -1, -2) for part in (closed.G, closed.Gd))
    return {"parameters": rows, "regressor": G @ Y, "regressor_rate": Gd @ Y + G @ Yd}


REGRESSOR = RequestHandler("compute_regressor", "torque and its rate as linear functions of base parameters", _answer)
