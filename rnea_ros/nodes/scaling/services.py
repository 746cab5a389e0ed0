"""~/pause, ~/resume, ~/stop and ~/override of scaling_node."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from std_srvs.srv import Trigger

from rnea_msgs.srv import SetOverride
from rnea_ros import InputError
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor


class ScalingServices:
    """Serves them, by an executor."""

    def __init__(self, node: Node, executor: TrajectoryExecutor):
        self._executor = executor
        for name, act in (("pause", executor.pause), ("resume", executor.resume), ("stop", self._stop)):
            node.create_service(Trigger, f"~/{name}", self._server(act))
        node.create_service(SetOverride, "~/override", self._override)

    def _server(self, act: Callable[[], str | None]) -> Callable:
        """act returns what is wrong, if anything."""

        def serve(_request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
            response.message = act() or ""
            response.success = not response.message
            return response

        return serve

    def _stop(self) -> str:
        return "" if self._executor.stop() else "there is no motion to stop"

    def _override(self, request: SetOverride.Request, response: SetOverride.Response) -> SetOverride.Response:
        try:
            self._executor.set_override(request.share)
            response.success = True
        except InputError as error:
            response.message = str(error)
        return response
