"""The question what the motors of a robot with elastic joints do and give."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.joint_dynamics import joint_dynamics
from ..errors import InputError, some
from ..robots.elastic import ElasticRobot
from ..robots.general import GeneralRobot
from ..robots.inputs.base_state import BaseState
from ..robots.inputs.validation import at_sample
from ..robots.protocol import AnyRobot
from .ask import Answer, RequestHandler, along, of_kind, only
from .request import RequestedState


def _motor_motion(robot: AnyRobot, s: RequestedState) -> Answer:
    arm = only(robot, "motors of elastic joints", ElasticRobot, GeneralRobot)
    if isinstance(arm, GeneralRobot):
        return _of_combination(arm, s)
    loads = {"wrenches": s.loads.wrenches, "wrench_rates": s.loads.wrench_rates}
    motion = along(arm, s, arm.order)
    found = arm.motor_motion(*motion[:arm.order], **loads)
    rate = arm.torque_and_rate(*motion, **loads)[1] if len(motion) > arm.order else None
    elastic = [arm.joint_names.index(name) for name in arm.elastic_joints]
    return {"effort": found.tau, "effort_rate": rate, "load": found.load, "elastic_joints": arm.elastic_joints,
            "motor_position": found.q_motor, "motor_velocity": found.qd_motor, "motor_acceleration": found.qdd_motor,
            "deflection": found.q_motor - s.q[:, elastic]}


def _of_combination(robot: GeneralRobot, s: RequestedState) -> Answer:
    """Answer of a robot that one formulation serves, sample by sample."""
    names, motors = robot.elastic_joints, {robot.tree.joint_names[one.coordinate]: one for one in robot.roles.motors}
    rigid = [name for name in motors if name not in names]
    if not names or rigid:
        raise InputError(f"motors of elastic joints: robot '{robot.name}' has " + (
            f"rigid motors on links ({some(rigid)}), whose share in the loads is not served for combinations" if rigid else
            "none; name joints in the section elastic_joints of its robot file"))
    motion, columns = along(robot, s, robot.order), [robot.joint_names.index(name) for name in names]
    stages, kind = 2 if len(motion) > robot.order else 1, of_kind(robot, s)
    rows: dict[str, list[Any]] = {name: [] for name in ("effort", "effort_rate", "load", "motor_position", "motor_velocity",
                                                        "motor_acceleration", "deflection")}
    terms = {link.joint: link.term for link in robot.tree.model.links}
    for k in range(len(s.q)):
        def row(values: Any, k: int = k) -> Any:
            return values[k] if np.ndim(values) == 2 else values

        loads: dict[str, Any] = {name: {link: row(six) for link, six in links.items()} for name, links in (
            ("wrenches", s.loads.wrenches), ("wrench_rates", s.loads.wrench_rates)) if links}
        base = kind.get("base")
        given = kind if base is None else kind | {
            "base": BaseState(*map(row, (base.position, base.quaternion, base.velocity)))}
        with at_sample(k):
            found = robot.solve(*map(row, motion), stages=stages, **given, **loads)
        kind = kind | {"guess": np.array([found.positions[name][0] for name in robot.tree.joint_names])}
        torques = robot.torques(found, stages)
        turned = np.array([found.positions[f"motor of {name}"][:3] for name in names]).T
        bent = turned[0] - row(s.q)[columns]
        load = torques[0] - [0.0 if name in motors else joint_dynamics(terms[name], qd, qdd, 0.0)[0]
                             for name, qd, qdd in zip(robot.joint_names, row(s.qd), row(s.qdd), strict=True)]
        load[columns] = [motors[name].stiffness * one for name, one in zip(names, bent, strict=True)]
        for name, value in zip(rows, (torques[0], torques[-1], load, *turned, bent), strict=True):
            rows[name].append(value)
    answer = {name: np.array(values) for name, values in rows.items()}
    return answer | {"elastic_joints": names, "effort_rate": answer["effort_rate"] if stages == 2 else None}


MOTOR_MOTION = RequestHandler("compute_motor_motion", "torques and motions of the motors of elastic joints", _motor_motion)
