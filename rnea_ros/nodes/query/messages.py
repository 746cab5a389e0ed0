"""Requests and responses of query_node <-> plain names, lists and arrays. What they mean is said in rnea_msgs/srv.

Fields have the same names on both sides, so that a type is converted once, wherever it occurs.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any

import numpy as np
from geometry_msgs.msg import Accel, Point, Pose, Quaternion, Vector3, Wrench

from rnea_msgs.msg import BaseParameter, BaseState, JointSample, LinkFrame, LinkWrench, Matrix, TreeJoint, TreeLink
from rnea_msgs.srv import (
    ComputeEnergy,
    ComputeFloatingForwardDynamics,
    ComputeFloatingInverseDynamics,
    ComputeForwardDynamics,
    ComputeInverseDynamics,
    ComputeJointWrenches,
    ComputeMassMatrix,
    ComputeSensitivities,
    GetTree,
)
from rnea_ros import Robot
from rnea_ros.model.tree import Limits
from rnea_ros.query import handlers
from rnea_ros.query.handlers import Answer, RequestHandler, ask
from rnea_ros.query.request import Request
from rnea_ros.query.tree import tree


def _by(handler: RequestHandler) -> Callable[[Robot, Request, Limits], Answer]:
    return lambda robot, request, limits: ask(robot, handler, request)


# Name of the service -> its type, and what answers it.
SERVICES: dict[str, tuple[Any, Callable[[Robot, Request, Limits], Answer]]] = {
    "get_tree": (GetTree, lambda robot, request, limits: tree(robot, request["floating_base"], limits)),
    "compute_inverse_dynamics": (ComputeInverseDynamics, _by(handlers.INVERSE_DYNAMICS)),
    "compute_forward_dynamics": (ComputeForwardDynamics, _by(handlers.FORWARD_DYNAMICS)),
    "compute_mass_matrix": (ComputeMassMatrix, _by(handlers.MASS_MATRIX)),
    "compute_sensitivities": (ComputeSensitivities, _by(handlers.SENSITIVITIES)),
    "compute_joint_wrenches": (ComputeJointWrenches, _by(handlers.JOINT_WRENCHES)),
    "compute_energy": (ComputeEnergy, _by(handlers.ENERGY)),
    "compute_floating_inverse_dynamics": (ComputeFloatingInverseDynamics, _by(handlers.FLOATING_INVERSE_DYNAMICS)),
    "compute_floating_forward_dynamics": (ComputeFloatingForwardDynamics, _by(handlers.FLOATING_FORWARD_DYNAMICS)),
}


# ---------------------------------------------------------------------- in

def plain(request: Any) -> dict[str, Any]:
    """A request by names of fields."""
    return {name: READERS.get(kind, lambda value: value)(getattr(request, name))
            for name, kind in request.get_fields_and_field_types().items()}


def _sample(sample: JointSample) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in sample.get_fields_and_field_types()}


def _base(state: BaseState) -> dict[str, Any]:
    p, o = state.pose.position, state.pose.orientation
    return {"position": [p.x, p.y, p.z], "orientation": [o.x, o.y, o.z, o.w], "velocity": _six(state.twist),
            "acceleration": _six(state.acceleration), "jerk": _six(state.jerk)}


def _load(load: LinkWrench) -> dict[str, Any]:
    return {"link": load.link, "frame": load.frame, "wrench": [_force_first(w) for w in load.wrench],
            "rate": [_force_first(w) for w in load.rate]}


def _six(pair: Any) -> list[float]:
    return [*_three(pair.linear), *_three(pair.angular)]


def _force_first(wrench: Wrench) -> list[float]:
    return [*_three(wrench.force), *_three(wrench.torque)]


def _three(v: Any) -> list[float]:
    return [v.x, v.y, v.z]


READERS: dict[str, Callable[[Any], Any]] = {
    "sequence<rnea_msgs/JointSample>": lambda samples: [_sample(sample) for sample in samples],
    "sequence<rnea_msgs/BaseState>": lambda states: [_base(state) for state in states],
    "sequence<rnea_msgs/LinkWrench>": lambda loads: [_load(load) for load in loads],
}


# ---------------------------------------------------------------------- out

def fill(response: Any, answer: Answer) -> None:
    """Write an answer into the fields of its names."""
    kinds = response.get_fields_and_field_types()
    for name, value in answer.items():
        setattr(response, name, WRITERS[kinds[name]](value))


def matrix(values: np.ndarray) -> Matrix:
    rows, columns = values.shape
    return Matrix(rows=rows, columns=columns, data=array.array("d", np.ascontiguousarray(values).tobytes()))


def _pair(kind: Any, first: str, second: str) -> Callable[[np.ndarray], list[Any]]:
    return lambda rows: [kind(**{first: Vector3(x=x, y=y, z=z), second: Vector3(x=a, y=b, z=c)})
                         for x, y, z, a, b, c in rows.tolist()]


def _triple(kind: Any) -> Callable[[np.ndarray], list[Any]]:
    return lambda rows: [kind(x=x, y=y, z=z) for x, y, z in rows.tolist()]


def _frame(row: dict[str, Any]) -> LinkFrame:
    position, orientation = dict(zip("xyz", row["position"])), dict(zip("xyzw", row["orientation"]))
    return LinkFrame(name=row["name"], link=row["link"],
                     pose=Pose(position=Point(**position), orientation=Quaternion(**orientation)))


WRITERS: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "double": float,
    "double[3]": np.array,
    "sequence<string>": list,
    "sequence<double>": lambda values: array.array("d", values.tolist()),
    "rnea_msgs/Matrix": matrix,
    "sequence<rnea_msgs/Matrix>": lambda tables: [matrix(table) for table in tables],
    "sequence<geometry_msgs/Point>": _triple(Point),
    "sequence<geometry_msgs/Vector3>": _triple(Vector3),
    "sequence<geometry_msgs/Accel>": _pair(Accel, "linear", "angular"),
    "sequence<geometry_msgs/Wrench>": _pair(Wrench, "force", "torque"),
    "sequence<rnea_msgs/TreeJoint>": lambda rows: [TreeJoint(**row) for row in rows],
    "sequence<rnea_msgs/TreeLink>": lambda rows: [TreeLink(**row) for row in rows],
    "sequence<rnea_msgs/LinkFrame>": lambda rows: [_frame(row) for row in rows],
    "sequence<rnea_msgs/BaseParameter>": lambda rows: [BaseParameter(**row) for row in rows],
}
