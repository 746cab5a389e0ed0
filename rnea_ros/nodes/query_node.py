"""query_node: services for the dynamics of a robot, one for each kind of request; see rnea_msgs/srv.

The node subscribes to robot_description, serves ~/get_tree, ~/compute_... (SERVICES) and the action ~/plan_motion, and
publishes ~/model_info (latched). Message fields have the names of the arrays in rnea_ros.query; READERS and WRITERS convert
each field type once.
"""

from __future__ import annotations

import array
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Accel, Point, Pose, Quaternion, Twist, Vector3, Wrench
from rclpy.action import ActionServer, CancelResponse
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs import srv
from rnea_msgs.action import PlanMotion
from rnea_msgs.msg import (
    BaseParameter,
    BaseState,
    Guess,
    JointSample,
    LinkFrame,
    LinkWrench,
    Matrix,
    ModelInfo,
    PlatformMotion,
    TreeJoint,
    TreeLink,
)
from rnea_ros import BaseState as StateOfBase
from rnea_ros import InputError, RneaError, Robot
from rnea_ros.errors import in_words
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.model_facts import RobotFacts, joint_limits, model_info
from rnea_ros.nodes.common.parameter_table import QUERY_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.process import ManagedNode, Worker
from rnea_ros.nodes.common.robot_description import ModelRequest, RobotDescriptionSource, tried
from rnea_ros.nodes.common.topics import LATCHED, REQUEST_QUEUE, duration
from rnea_ros.planning.problem import SolverProgress
from rnea_ros.query import (
    REQUESTS,
    TRAJECTORY,
    Answer,
    Request,
    RequestHandler,
    answer_request,
    plan,
    request_structure,
    retime,
    tree,
)


class Service(NamedTuple):
    """Service of the node.

    kind   : service type
    answer : function that answers a request
    slow   : True if every answer takes long, not only the first one, which compiles
    """

    kind: Any
    answer: Callable[[Robot, Request, Limits], Answer]
    slow: bool = False


def _service(question: RequestHandler) -> Service:
    """Return the service of a kind of request; compute_mass_matrix has the type ComputeMassMatrix."""
    kind = getattr(srv, "".join(part.capitalize() for part in question.service.split("_")))
    return Service(kind, lambda robot, request, limits: answer_request(robot, question, request))


def _tree(robot: Robot, request: Request, limits: Limits) -> Answer:
    """Answer get_tree; the limits of the parameters are used if they contain all joints of the tree."""
    model = robot.tree
    return tree(model, request["floating_base"], limits if model.joint_names == robot.joint_names else None)


# services by name
SERVICES = {question.service: _service(question) for question in REQUESTS.values()} | {
    "get_tree": Service(srv.GetTree, _tree),
    "retime_trajectory": Service(srv.RetimeTrajectory, retime, slow=True)}


# ---------------------------------------------------------------------- conversion of requests

def sample_count(request: Any) -> int:
    """Return the length of the longest sequence of messages in a request, or of the points of its trajectory."""
    trajectory = getattr(request, "trajectory", None)
    return max((len(getattr(request, name)) for name, kind in request.get_fields_and_field_types().items()
                if kind.startswith("sequence<") and "/" in kind), default=len(getattr(trajectory, "points", ())))


def request_values(request: Any) -> dict[str, Any]:
    """Return the fields of a request as arrays and lists, keyed by field name."""
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


# ---------------------------------------------------------------------- conversion of answers

def fill_response(response: Any, answer: Answer) -> None:
    """Write the values of an answer into the fields of the same names."""
    kinds = response.get_fields_and_field_types()
    for name, value in answer.items():
        if value is not None:  # None: not requested
            setattr(response, name, WRITERS[kinds[name]](value))


def matrix_message(values: np.ndarray) -> Matrix:
    """Return a matrix (rows, columns) as a message."""
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


def _trajectory(values: dict[str, Any]) -> JointTrajectory:
    columns = {name: values[name] for name in (*TRAJECTORY, "effort")}
    points = [JointTrajectoryPoint(time_from_start=duration(float(t)), **{
        name: _doubles(rows[k]) for name, rows in columns.items()}) for k, t in enumerate(values["times"])]
    return JointTrajectory(joint_names=list(values["joint_names"]), points=points)


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
    "rnea_msgs/Matrix": matrix_message,
    "trajectory_msgs/JointTrajectory": _trajectory,
    "sequence<rnea_msgs/Matrix>": lambda tables: [matrix_message(table) for table in tables.reshape(-1, *tables.shape[-2:])],
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


FEEDBACK_PERIOD_S = 0.1  # shortest time between two feedback messages


class Cancelled(Exception):
    """The goal of the plan was cancelled."""


class PlanAction:
    """Server of the action ~/plan_motion.

    worker   : worker that runs the planner
    current  : function that returns the current robot and its limits; may raise RneaError
    model_id : function that returns the identifier of the current model
    """

    def __init__(self, node: Node, worker: Worker, current: Callable[[], tuple[Robot, Limits]],
                 model_id: Callable[[], str]):
        self._node, self._worker, self._current, self._model_id = node, worker, current, model_id
        self._ending = threading.Event()
        self._server = ActionServer(node, PlanMotion, "~/plan_motion", execute_callback=self._execute,
                                    cancel_callback=lambda handle: CancelResponse.ACCEPT,
                                    callback_group=ReentrantCallbackGroup())

    def close(self) -> None:
        """Stop the current plan at its next iteration, and destroy the server."""
        self._ending.set()
        self._worker.close()
        self._server.destroy()

    async def _execute(self, handle: Any) -> Any:
        result, done = PlanMotion.Result(), handle.abort
        try:
            robot, limits = self._current()
            result.model_id = self._model_id()
            request, report = request_values(handle.request), self._report(handle)
            fill_response(result, await self._worker.run(plan, robot, request, limits, report))
            result.success, done = True, handle.succeed
        except Cancelled:
            result.message = "cancelled"
            if handle.is_cancel_requested:
                done = handle.canceled
        except Exception as error:  # the node survives every goal, and reports the error
            result.message = in_words(error)
            if not isinstance(error, RneaError):
                self._node.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)
        done()
        return result

    def _report(self, handle: Any) -> Callable[[SolverProgress], None]:
        """Return the callback that planning calls after each iteration, in its own thread. It raises Cancelled."""
        last = 0.0

        def report(now: SolverProgress) -> None:
            nonlocal last
            if handle.is_cancel_requested or self._ending.is_set():
                raise Cancelled
            if time.monotonic() - last > FEEDBACK_PERIOD_S:
                last = time.monotonic()
                handle.publish_feedback(PlanMotion.Feedback(
                    stage=now.stage, iteration=now.iteration, duration=now.duration, control_points=now.control_points,
                    violation=max(now.violation, 0.0)))

        return report


MAX_SAMPLES_INLINE = 100  # samples answered in the main thread; conversion of the messages takes up to 0.2 ms each


class QueryNode(ManagedNode):
    """Node that answers requests about a robot: converts messages to arrays, calls query.py, converts the answer.

    Most requests take about a millisecond and are answered in the main thread. Two kinds run in separate threads, so that
    other requests need not wait: the first request of its kind for a model, which compiles (seconds for a humanoid), and
    requests with more than MAX_SAMPLES_INLINE samples, whose conversion takes seconds.
    """

    def __init__(self) -> None:
        super().__init__("query_node")
        self._settings = ParameterSet(self, QUERY_TABLE, self._on_parameters)
        self.autostart(self._settings.values["autostart"])

    def set_up(self) -> None:
        """Create the services, and start building the model."""
        self._robot: RobotFacts | None = None
        self._model_id = ""
        self._refusal = ""
        self._compiled: set[tuple] = set()  # kinds of requests whose kernels are compiled
        self._info = self.create_publisher(ModelInfo, "~/model_info", LATCHED)
        group = ReentrantCallbackGroup()  # a request that waits for the worker does not block the next
        for name, service in SERVICES.items():
            self.create_service(service.kind, f"~/{name}", self._server(name), qos_profile=REQUEST_QUEUE, callback_group=group)
        self._first, self._large, self._motions = (Worker(self, name) for name in ("first", "large", "motions"))
        self.at_cleanup.callback(self._first.close)
        self.at_cleanup.callback(self._large.close)
        self.at_cleanup.callback(PlanAction(self, self._motions, self._current, lambda: self._model_id).close)
        self._intake = RobotDescriptionSource(self, self._settings, self._use, self._refuse, self._serve)
        self.at_cleanup.callback(self._intake.close)

    def wait_for_model(self) -> str:
        """Wait until the model is built; return the reason if there is none, else an empty string."""
        return self._intake.wait()

    # ------------------------------------------------------------------ requests

    def _server(self, name: str) -> Callable:
        async def serve(request: Any, response: Any) -> Any:
            try:
                robot, limits = self._current()
                response.model_id = self._model_id
                if sample_count(request) > MAX_SAMPLES_INLINE:
                    await self._large.run(_convert_and_answer, SERVICES[name].answer, robot, request, limits, response)
                else:
                    fill_response(response, await self._answer(name, robot, request_values(request), limits))
                response.success = True
            except RneaError as error:
                response.message = str(error)
            except Exception as error:  # the node survives every request, and reports the error
                response.message = f"internal error, please report it: {error!r}"
                self.get_logger().error(traceback.format_exc(), throttle_duration_sec=10.0)
            return response

        return serve

    def _current(self) -> tuple[Robot, Limits]:
        """Return the current robot and its limits. Raises RneaError."""
        self.check_active()
        if self._robot is None:
            raise InputError(self._no_model())
        return self._robot.robot, joint_limits(self._settings.values, self._robot)

    async def _answer(self, name: str, robot: Robot, request: Request, limits: Limits) -> dict[str, Any]:
        """Answer a request. Raises RneaError."""
        answer = SERVICES[name].answer
        if SERVICES[name].slow:
            return await self._motions.run(answer, robot, request, limits)
        kind = (robot, name, request_structure(request))
        if kind in self._compiled:
            return answer(robot, request, limits)
        result = await self._first.run(answer, robot, request, limits)
        if self._robot is not None and robot is self._robot.robot:
            self._compiled.add(kind)
        return result

    # ------------------------------------------------------------------ model and parameters

    def _no_model(self) -> str:
        remedy = f"set parameter robot_description, or publish it on {self._intake.topic_name} (reliable, transient_local)"
        if self._refusal:
            return f"no model yet; the robot description was rejected: {self._refusal}"
        return "no model yet; it is being built, ask again" if self._intake.building else f"no model yet; {remedy}"

    def _serve(self, robot: Robot, request: ModelRequest) -> RobotFacts:
        """Compile the kernels of a robot, in the thread that builds models.

        Raises RneaError if its torques cannot be computed.
        """
        if robot.is_fixed_tree:
            tried(robot)
        else:
            base: dict[str, Any] = {"base": StateOfBase()} if robot.has_moving_base else {}
            robot.torque_and_rate(*robot.home_motion, **base)
        return RobotFacts(robot)

    def _use(self, robot: RobotFacts) -> None:
        self._robot, self._model_id, self._refusal = robot, robot.model_id, ""
        self._compiled.clear()
        self._publish_info()

    def _refuse(self, reason: str) -> None:
        self._refusal = reason

    def _publish_info(self) -> None:
        if self._robot is not None:
            limits = joint_limits(self._settings.values, self._robot)
            info = model_info(self._robot, limits, self.get_clock().now().to_msg())
            info.solved_joints = list(self._robot.robot.solved_joints)
            self._info.publish(info)

    def _on_parameters(self, changed: set[str]) -> None:
        if not self.is_configured:
            return
        self._intake.changed(changed)
        if any(name.startswith("joint_limits.") for name in changed):
            self._publish_info()


def _convert_and_answer(answer: Callable[..., dict[str, Any]], robot: Robot, request: Any, limits: Limits,
                        response: Any) -> None:
    """Read a request, answer it and fill in the response. Raises RneaError."""
    fill_response(response, answer(robot, request_values(request), limits))
