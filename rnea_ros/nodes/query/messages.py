"""Requests and responses of query_node <-> plain names, lists and arrays. What they mean is said in rnea_msgs/srv.

Fields have the same names on both sides, so that a type is converted once, wherever it occurs.
"""

from __future__ import annotations

import array
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Accel, Point, Pose, Quaternion, Twist, Vector3, Wrench
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs import srv
from rnea_msgs.msg import (
    BaseParameter,
    BaseState,
    Guess,
    JointSample,
    LinkFrame,
    LinkWrench,
    Matrix,
    PlatformMotion,
    TreeJoint,
    TreeLink,
)
from rnea_ros import Robot
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.stamps import duration
from rnea_ros.query.answers import REQUESTS
from rnea_ros.query.request import Answer, Request, RequestHandler, answer_request
from rnea_ros.query.trajectories import TRAJECTORY, retime
from rnea_ros.query.tree import tree


class Service(NamedTuple):
    """slow: whether every answer takes long, not the first one alone."""

    kind: Any
    answer: Callable[[Robot, Request, Limits], Answer]
    slow: bool = False


def _of(question: RequestHandler) -> Service:
    """compute_mass_matrix is of type ComputeMassMatrix."""
    kind = getattr(srv, "".join(part.capitalize() for part in question.service.split("_")))
    return Service(kind, lambda robot, request, limits: answer_request(robot, question, request))


def _tree(robot: Robot, request: Request, limits: Limits) -> Answer:
    """Answer get_tree, with the limits of the parameters if these name all joints of the tree."""
    found = robot.tree
    return tree(found, request["floating_base"], limits if found.joint_names == robot.joint_names else None)


# By name.
SERVICES = {question.service: _of(question) for question in REQUESTS.values()} | {
    "get_tree": Service(srv.GetTree, _tree),
    "retime_trajectory": Service(srv.RetimeTrajectory, retime, slow=True)}


# ---------------------------------------------------------------------- in

def samples(request: Any) -> int:
    """Return how many messages the longest sequence of a request has, or of its trajectory."""
    trajectory = getattr(request, "trajectory", None)
    return max((len(getattr(request, name)) for name, kind in request.get_fields_and_field_types().items()
                if kind.startswith("sequence<") and "/" in kind), default=len(getattr(trajectory, "points", ())))


def plain(request: Any) -> dict[str, Any]:
    """Return a request by names of fields."""
    return {name: READERS.get(kind, lambda value: value)(getattr(request, name))
            for name, kind in request.get_fields_and_field_types().items()}


def _sample(sample: JointSample) -> dict[str, Any]:
    return {name: getattr(sample, name) for name in sample.get_fields_and_field_types()}


def _base(state: BaseState | PlatformMotion) -> dict[str, Any]:
    return {**_pose(state.pose), "velocity": _six(state.twist), "acceleration": _six(state.acceleration),
            "jerk": _six(state.jerk)}


def _pose(pose: Pose) -> dict[str, Any]:
    o = pose.orientation
    return {"position": _three(pose.position), "orientation": [o.x, o.y, o.z, o.w]}


def _guess(guess: Guess) -> dict[str, Any]:
    return {"joint_names": guess.joint_names, "position": guess.position, "platform": [_pose(pose) for pose in guess.platform]}


def _load(load: LinkWrench) -> dict[str, Any]:
    return {"link": load.link, "frame": load.frame, "wrench": [_force_first(w) for w in load.wrench],
            "rate": [_force_first(w) for w in load.rate]}


def _path(trajectory: JointTrajectory) -> dict[str, Any]:
    points = trajectory.points
    moving = [point.velocities for point in points if len(point.velocities)]
    return {"joint_names": trajectory.joint_names, "positions": [point.positions for point in points], "velocities": moving}


def _six(pair: Any) -> list[float]:
    return [*_three(pair.linear), *_three(pair.angular)]


def _force_first(wrench: Wrench) -> list[float]:
    return [*_three(wrench.force), *_three(wrench.torque)]


def _three(v: Any) -> list[float]:
    return [v.x, v.y, v.z]


READERS: dict[str, Callable[[Any], Any]] = {
    "sequence<rnea_msgs/JointSample>": lambda samples: [_sample(sample) for sample in samples],
    "sequence<rnea_msgs/BaseState>": lambda states: [_base(state) for state in states],
    "sequence<rnea_msgs/PlatformMotion>": lambda motions: [_base(motion) for motion in motions],
    "sequence<rnea_msgs/LinkWrench>": lambda loads: [_load(load) for load in loads],
    "sequence<geometry_msgs/Point>": lambda points: [_three(point) for point in points],
    "rnea_msgs/Guess": _guess,
    "rnea_msgs/JointSample": _sample,
    "trajectory_msgs/JointTrajectory": _path,
}


# ---------------------------------------------------------------------- out

def fill(response: Any, answer: Answer) -> None:
    """Write an answer into the fields of its names."""
    kinds = response.get_fields_and_field_types()
    for name, value in answer.items():
        if value is not None:  # what was not asked for
            setattr(response, name, WRITERS[kinds[name]](value))


def matrix(values: np.ndarray) -> Matrix:
    rows, columns = values.shape
    return Matrix(rows=rows, columns=columns, data=array.array("d", np.ascontiguousarray(values).tobytes()))


def _pair(kind: Any, first: str, second: str) -> Callable[[np.ndarray], list[Any]]:
    return lambda rows: [kind(**{first: Vector3(x=x, y=y, z=z), second: Vector3(x=a, y=b, z=c)})
                         for x, y, z, a, b, c in rows.reshape(-1, 6).tolist()]


def _poses(rows: np.ndarray) -> list[Pose]:
    return [Pose(position=Point(x=x, y=y, z=z), orientation=Quaternion(x=a, y=b, z=c, w=w))
            for x, y, z, a, b, c, w in rows.reshape(-1, 7).tolist()]


def _triple(kind: Any) -> Callable[[np.ndarray], list[Any]]:
    return lambda rows: [kind(x=x, y=y, z=z) for x, y, z in rows.tolist()]


def _trajectory(found: dict[str, Any]) -> JointTrajectory:
    columns = {name: found[name] for name in (*TRAJECTORY, "effort")}
    points = [JointTrajectoryPoint(time_from_start=duration(float(t)), **{
        name: _doubles(rows[k]) for name, rows in columns.items()}) for k, t in enumerate(found["times"])]
    return JointTrajectory(joint_names=list(found["joint_names"]), points=points)


def _doubles(values: np.ndarray) -> array.array:
    return array.array("d", values.tolist())


def _frame(row: dict[str, Any]) -> LinkFrame:
    position, orientation = dict(zip("xyz", row["position"])), dict(zip("xyzw", row["orientation"]))
    return LinkFrame(name=row["name"], link=row["link"],
                     pose=Pose(position=Point(**position), orientation=Quaternion(**orientation)))


WRITERS: dict[str, Callable[[Any], Any]] = {
    "string": str,
    "double": float,
    "double[3]": np.array,
    "sequence<string>": list,
    "sequence<double>": _doubles,
    "rnea_msgs/Matrix": matrix,
    "trajectory_msgs/JointTrajectory": _trajectory,
    "sequence<rnea_msgs/Matrix>": lambda tables: [matrix(table) for table in tables.reshape(-1, *tables.shape[-2:])],
    "sequence<geometry_msgs/Point>": _triple(Point),
    "sequence<geometry_msgs/Vector3>": _triple(Vector3),
    "sequence<geometry_msgs/Accel>": _pair(Accel, "linear", "angular"),
    "sequence<geometry_msgs/Pose>": _poses,
    "sequence<geometry_msgs/Twist>": _pair(Twist, "linear", "angular"),
    "sequence<geometry_msgs/Wrench>": _pair(Wrench, "force", "torque"),
    "sequence<rnea_msgs/TreeJoint>": lambda rows: [TreeJoint(**row) for row in rows],
    "sequence<rnea_msgs/TreeLink>": lambda rows: [TreeLink(**row) for row in rows],
    "sequence<rnea_msgs/LinkFrame>": lambda rows: [_frame(row) for row in rows],
    "sequence<rnea_msgs/BaseParameter>": lambda rows: [BaseParameter(**row) for row in rows],
}
