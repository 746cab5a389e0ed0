"""Callbacks that fail: each failure is logged, counted for /diagnostics, and answered where somebody waits for an answer.

One bad request must not end a node that others rely on. What rclpy does around a callback may fail as well: it raises where
a parameter has a type that there is not.
"""

from __future__ import annotations

import time
import traceback
from contextlib import suppress
from typing import Any

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.executors import await_or_execute
from rclpy.node import Node
from rclpy.service import Service

from rnea_ros.nodes.common.tally import Tally
from rnea_ros.nodes.fastpath.executor import described

QUIET = 10.0  # s; between two tracebacks of the same callback


class Failures:
    """Of the callbacks of one node, the services that it has by now included. /diagnostics: "<node>: callbacks"."""

    def __init__(self, node: Node):
        self._node, self._last = node, ""
        self._tally = Tally(node, "callbacks", "failed",
                            lambda total: f"{total} failed, last: {self._last}" if total else "no callback errors")
        self._logged: dict[str, float] = {}
        for service in node.services:
            self._have_answered(service)

    def add(self, what: str, error: Exception) -> None:
        """Count and log a failure, unless a signal has ended the context in the middle of the callback."""
        if not self._node.context.ok():
            return
        self._tally.counts[what] += 1
        self._last = f"{what}: {error!r:.300}"
        if time.monotonic() - self._logged.get(what, -QUIET) >= QUIET:
            self._logged[what] = time.monotonic()
            self._node.get_logger().error(f"{what} failed, the node goes on: "
                                          + "".join(traceback.format_exception(type(error), error, error.__traceback__)))

    def _have_answered(self, service: Service) -> None:
        """Where its callback fails it answers all the same, and says so if its response has words for it."""
        what, serve = described(service), service.callback

        async def answer(request: Any, response: Any) -> Any:
            try:
                return await await_or_execute(serve, request, response)
            except Exception as error:
                self.add(what, error)
                return refusal(service.srv_type.Response(), f"{what.rpartition('/')[2]} failed: {error!r:.300}")

        async def answer_together(request: Any, response: Any) -> Any:
            """Serve all parameters in one call; where it fails, each alone, so that a wrong one does not affect the others."""
            if len(request.parameters) > 1:
                with suppress(Exception):  # answer() counts it
                    return await await_or_execute(serve, request, SetParameters.Response())
            for parameter in request.parameters:
                one = await answer(SetParameters.Request(parameters=[parameter]), SetParameters.Response())
                response.results += one.results
            return response

        service.callback = answer_together if service.srv_type is SetParameters else answer


def refusal(response: Any, why: str) -> Any:
    """A response that says why there is none."""
    if isinstance(response, SetParameters.Response):
        response.results = [SetParametersResult(successful=False, reason=why)]
    for words in (response, getattr(response, "result", None)):
        for name in ("message", "reason"):
            if isinstance(getattr(words, name, None), str):
                setattr(words, name, why)
    return response
