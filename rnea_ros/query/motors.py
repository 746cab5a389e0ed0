"""The question what the motors of a robot with elastic joints do and give."""

from __future__ import annotations

from ..robots.elastic import ElasticRobot
from ..robots.protocol import AnyRobot
from .ask import Answer, RequestHandler, along, only
from .request import RequestedState


def _motor_motion(robot: AnyRobot, s: RequestedState) -> Answer:
    arm = only(robot, "motors of elastic joints", ElasticRobot)
    loads = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    motion = along(arm, s, arm.order)
    found = arm.motor_motion(*motion[:arm.order], **loads)
    rate = arm.torque_and_rate(*motion, **loads)[1] if len(motion) > arm.order else None
    elastic = [arm.joint_names.index(name) for name in arm.elastic_joints]
    return {"effort": found.tau, "effort_rate": rate, "load": found.load, "elastic_joints": arm.elastic_joints,
            "motor_position": found.q_motor, "motor_velocity": found.qd_motor, "motor_acceleration": found.qdd_motor,
            "deflection": found.q_motor - s.q[:, elastic]}


MOTOR_MOTION = RequestHandler("compute_motor_motion", "torques and motions of the motors of elastic joints", _motor_motion)
