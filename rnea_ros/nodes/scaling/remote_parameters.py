"""Parameters of another node, asked for without waiting: those that it has, since one that it has not spoils the answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rcl_interfaces.srv import GetParameters, ListParameters
from rclpy.node import Node
from rclpy.parameter import parameter_value_to_python

AGAIN = 2.0  # s; after which it is asked again: an answer may be lost


class RemoteParameters:
    """told : by name, once they have come; None until then, and again when the node has gone"""

    def __init__(self, node: Node, name: str, wanted: Callable[[str], bool]):
        self._node, self._wanted = node, wanted
        self._clients: list[Any] = [node.create_client(kind, f"{name}/{service}") for kind, service in
                                    ((ListParameters, "list_parameters"), (GetParameters, "get_parameters"))]
        self.told: dict[str, Any] | None = None
        self._asked = 0.0
        self._question = 0  # the last one; answers to others are too late

    def look(self, again: bool = False) -> None:
        """Call this now and then, from the executor. again: whether something is to change in what is known."""
        if not all(client.service_is_ready() for client in self._clients):
            self.told, self._asked = None, 0.0
        elif (again or self.told is None) and time.monotonic() - self._asked > AGAIN:
            self._asked, self._question = time.monotonic(), self._question + 1
            self._ask(0, ListParameters.Request(), lambda answer: self._get(answer.result.names))

    def destroy(self) -> None:
        for client in self._clients:
            self._node.destroy_client(client)

    def _ask(self, which: int, request: Any, then: Callable[[Any], None]) -> None:
        question = self._question

        def answered(future: Any) -> None:
            if question == self._question and future.exception() is None:
                then(future.result())

        self._clients[which].call_async(request).add_done_callback(answered)

    def _get(self, names: list[str]) -> None:
        found = [name for name in names if self._wanted(name)]
        self._ask(1, GetParameters.Request(names=found), lambda answer: self._take(found, answer.values))

    def _take(self, names: list[str], values: list[Any]) -> None:
        if len(values) == len(names):
            told = {name: parameter_value_to_python(value) for name, value in zip(names, values)}
            self.told = {name: value for name, value in told.items() if value is not None}
