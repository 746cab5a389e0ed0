"""Parameters of another node, asked for without waiting: those that it has, since one that it has not spoils the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

from rnea_ros.nodes.common.answers import heard

AGAIN = 2.0  # s; after which it is asked again: an answer may be lost


class RemoteParameters:
    """told    : by name, once they have come; None until then, and again when the node has gone or fails to tell them
    problem : why they have not come, where that is known
    """

    def __init__(self, node: Node, name: str, wanted: Callable[[str], bool]):
        self._node, self._wanted = node, wanted
        self._clients: list[Any] = [node.create_client(kind, f"{name}/{service}") for kind, service in
                                    ((ListParameters, "list_parameters"), (GetParameters, "get_parameters"))]
        self.told: dict[str, Any] | None = None
        self.problem = ""
        self._asked = 0.0
        self._question: tuple[Any, Any] | None = None  # the last one: a client and what it waits for; others are too late

    def look(self, again: bool = False) -> None:
        """Call this now and then, from the executor. again: whether something is to change in what is known."""
        if not all(client.service_is_ready() for client in self._clients):
            self.told, self._asked = None, 0.0
        elif (again or self.told is None) and time.monotonic() - self._asked > AGAIN:
            if self._question is not None:
                client, future = self._question
                client.remove_pending_request(future)
            self._asked = time.monotonic()
            self._ask(0, ListParameters.Request(), lambda answer: self._get(answer.result.names))

    def destroy(self) -> None:
        for client in self._clients:
            self._node.destroy_client(client)

    def _ask(self, which: int, request: Any, then: Callable[[Any], None]) -> None:
        future = self._clients[which].call_async(request)
        self._question = self._clients[which], future
        heard(future, then, self._fail)

    def _get(self, names: list[str]) -> None:
        found = [name for name in names if self._wanted(name)]
        self._ask(1, GetParameters.Request(names=found), lambda answer: self._take(found, answer.values))

    def _take(self, names: list[str], values: list[Any]) -> None:
        if len(values) != len(names):
            raise ValueError(f"{len(values)} values of {len(names)} parameters")
        told = {name: parameter_value_to_python(value) for name, value in zip(names, values)}
        self.told = {name: value for name, value in told.items() if value is not None}
        self.problem, self._question = "", None

    def _fail(self, why: str) -> None:
        self.told, self.problem, self._question = None, why, None
