"""query_node: a robot's dynamics as services, one for each kind of request; see rnea_msgs/srv.

Subscribes robot_description. Serves ~/get_tree, ~/compute_... (SERVICES in messages.py). Publishes ~/model_info (latched).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

from rclpy.callback_groups import ReentrantCallbackGroup

from rnea_msgs.msg import ModelInfo
from rnea_ros import BaseState, InputError, RneaError, Robot
from rnea_ros.model.tree import Limits
from rnea_ros.nodes.common.lifecycle import ManagedNode
from rnea_ros.nodes.common.model_facts import RobotFacts, joint_limits, model_info
from rnea_ros.nodes.common.parameter_table import QUERY_TABLE
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.qos import LATCHED, REQUESTS
from rnea_ros.nodes.common.robot_description import ModelRequest, RobotDescriptionSource, tried
from rnea_ros.nodes.common.run import Worker, run
from rnea_ros.nodes.query.messages import SERVICES, fill, plain, samples
from rnea_ros.nodes.query.planning import PlanAction
from rnea_ros.query.request import Request, request_structure

MANY = 100  # samples; reading and writing the messages of one takes up to 0.2 ms


class QueryNode(ManagedNode):
    """Node that answers requests about a robot: converts messages to arrays, calls query/answers.py, converts the answer.

    Requests are answered one at a time, in about a millisecond. Two kinds are answered in separate threads, so that later
    requests need not wait: the first of its kind for a model, which compiles (seconds on a humanoid), and those with more than
    MANY samples, whose messages take seconds to read and write.
    """

    def __init__(self) -> None:
        super().__init__("query_node")
        self._settings = ParameterSet(self, QUERY_TABLE, self._on_parameters)
        self.autostart(self._settings.values["autostart"])

    def set_up(self) -> None:
        """Create the services, and begin to build the model."""
        self._robot: RobotFacts | None = None
        self._model_id = ""
        self._refusal = ""
        self._compiled: set[tuple] = set()  # kinds of requests that the robot has answered
        self._info = self.create_publisher(ModelInfo, "~/model_info", LATCHED)
        group = ReentrantCallbackGroup()  # a request that waits for the worker does not block the next
        for name, service in SERVICES.items():
            self.create_service(service.kind, f"~/{name}", self._server(name), qos_profile=REQUESTS, callback_group=group)
        self._first, self._large, self._motions = (Worker(self, name) for name in ("first", "large", "motions"))
        self.at_cleanup.callback(self._first.close)
        self.at_cleanup.callback(self._large.close)
        self.at_cleanup.callback(PlanAction(self, self._motions, self._current, lambda: self._model_id).close)
        self._intake = RobotDescriptionSource(self, self._settings, self._use, self._refuse, self._serve)
        self.at_cleanup.callback(self._intake.close)

    def wait_for_model(self) -> str:
        """Wait until the model is built; return why there is none, or nothing."""
        return self._intake.wait()

    # ------------------------------------------------------------------ requests

    def _server(self, name: str) -> Callable:
        async def serve(request: Any, response: Any) -> Any:
            try:
                robot, limits = self._current()
                response.model_id = self._model_id
                if samples(request) > MANY:
                    await self._large.run(_answer_whole, SERVICES[name].answer, robot, request, limits, response)
                else:
                    fill(response, await self._answer(name, robot, plain(request), limits))
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
        found = await self._first.run(answer, robot, request, limits)
        if self._robot is not None and robot is self._robot.robot:
            self._compiled.add(kind)
        return found

    # ------------------------------------------------------------------ model and parameters

    def _no_model(self) -> str:
        ways = f"set parameter robot_description, or publish it on {self._intake.topic_name} (reliable, transient_local)"
        if self._refusal:
            return f"no model yet; the robot description was refused: {self._refusal}"
        return "no model yet; it is being built, ask again" if self._intake.building else f"no model yet; {ways}"

    def _serve(self, robot: Robot, request: ModelRequest) -> RobotFacts:
        """Prepare a robot, in the thread that builds models. Raises RneaError for a robot without torques."""
        if robot.is_fixed_tree:
            tried(robot)
        else:
            base: dict[str, Any] = {"base": BaseState()} if robot.has_moving_base else {}
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


def _answer_whole(answer: Callable[..., dict[str, Any]], robot: Robot, request: Any, limits: Limits, response: Any) -> None:
    """Read a request, answer it and fill in the response. Raises RneaError."""
    fill(response, answer(robot, plain(request), limits))


def main(args: list[str] | None = None) -> int:
    return run([QueryNode], args)


if __name__ == "__main__":
    sys.exit(main())
