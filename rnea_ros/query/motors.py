"""The question what the motors of a robot with elastic joints do and give."""

from __future__ import annotations

import numpy as np

from ..errors import InputError
from ..robots.general import GeneralRobot
from ..robots.protocol import AnyRobot
from .ask import Answer, RequestHandler, along, of_kind, only
from .request import RequestedState


def _motor_motion(robot: AnyRobot, s: RequestedState) -> Answer:
    arm = only(robot, "motors of elastic joints", GeneralRobot)
    names = arm.elastic_joints
    if not names:
        raise InputError(f"motors of elastic joints: robot '{arm.name}' has none; name joints in the section elastic_joints "
                         "of its robot file")
    loads = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    found = arm.motor_motion(*along(arm, s, arm.order), **of_kind(arm, s), **loads)
    elastic = [arm.joint_names.index(name) for name in names]
    return {"effort": found.tau, "effort_rate": found.tau_rate, "load": found.load, "elastic_joints": names,
            "motor_position": found.q_motor, "motor_velocity": found.qd_motor, "motor_acceleration": found.qdd_motor,
            "deflection": np.asarray(found.deflection[..., elastic])}


MOTOR_MOTION = RequestHandler("compute_motor_motion", "torques and motions of the motors of elastic joints", _motor_motion)
