"""External forces: the wrenches that parameters name, from topics into the dynamics, and their zeros.

docs/dynamics_node.md says what a user has to know of them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from rnea_ros import InputError, RneaError
from rnea_ros.errors import some
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameter_table import WRENCHES
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.dynamics.external_wrench import ExternalWrench
from rnea_ros.nodes.dynamics.kinds.served_robot import Loads, ServedRobot
from rnea_ros.nodes.dynamics.pairing import PairedInput

NAMES = WRENCHES[0]


def wrench_names(node: Node) -> list[str]:
    """Those that the parameters given to a node name. Raises InputError."""
    given = node.get_parameter(NAMES.name).value if node.has_parameter(NAMES.name) else NAMES.default
    problem = NAMES.problem(given)
    if problem:
        raise InputError(problem)
    names = [name for name in given if name]
    wrong = [name for name in names if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if wrong or twice:
        raise InputError(f"{NAMES.name} has {some(wrong or twice, quoted=True)}"
                         + ("; a letter, then letters, digits and _ make a name" if wrong else " more than once"))
    return names


class ExternalWrenches:
    """All external wrenches of a node; there is at least one."""

    def __init__(self, node: Node, parameters: ParameterSet, names: Sequence[str], qos: QoSProfile,
                 received: Callable[[], None] = lambda: None):
        """received() is called after each message. Raises InputError for a wrench without link."""
        idle = [name for name in names if not parameters.values[f"wrenches.{name}.link"]]
        if idle:
            raise InputError("; ".join(f"wrenches.{name}.link is empty; it names the link that it acts on" for name in idle))
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frames")
        self._all = [ExternalWrench(name, parameters, lambda: node.get_clock().now().nanoseconds, self._workers)
                     for name in names]
        self._links = tuple(dict.fromkeys(wrench.link for wrench in self._all))
        def receive(wrench: ExternalWrench, data: bytes) -> None:
            wrench.on_message(data)
            received()

        self._topics = [node.create_subscription(WrenchStamped, wrench.setting("topic"), partial(receive, wrench), qos,
                                                 raw=True) for wrench in self._all]
        node.create_service(Trigger, "~/tare", self._tare)
        node.get_logger().info("; ".join(self.descriptions()))

    @property
    def streams(self) -> list[Stream]:
        """What was counted, of each."""
        return [wrench.stream for wrench in self._all]

    def paired(self) -> list[PairedInput]:
        """Return the wrenches as inputs to be paired with joint states."""
        return [PairedInput(wrench.setting("topic").replace("<wrench>", wrench.name), wrench.stream,
                            partial(wrench.setting, "timeout")) for wrench in self._all]

    def check(self, robot: ServedRobot) -> None:
        """Raise InputError for a link that the robot does not have."""
        for wrench in self._all:
            try:
                robot.tree_with(wrench.link)
            except RneaError as error:
                raise InputError(f"wrenches.{wrench.name}.link: {error}") from None

    def nothing(self, q: np.ndarray, qd: np.ndarray) -> dict[str, Any]:
        """Loads of nothing, on the links of the wrenches."""
        return {name: dict.fromkeys(self._links, np.zeros(6)) for name in ("wrenches", "wrench_rates")}

    def use(self, robot: ServedRobot) -> None:
        """A model is ready."""
        for wrench in self._all:
            wrench.use(robot.tree_with(wrench.link))

    def forget(self) -> None:
        """The clock was set: nothing of the past says anything about now."""
        for wrench in self._all:
            wrench.forget()

    def loads(self, stamp: int) -> Loads:
        """All wrenches as they are at the stamp [ns] of a joint state, once its joints are known. They raise Rejected."""
        def at(q: np.ndarray, qd: np.ndarray) -> dict[str, Any]:
            wrenches, rates = (dict.fromkeys(self._links, np.zeros(6)) for _ in range(2))
            for wrench in self._all:
                value, rate = wrench.at(stamp, q, qd)
                wrenches[wrench.link] = wrenches[wrench.link] + value
                rates[wrench.link] = rates[wrench.link] + rate
            return {"wrenches": wrenches, "wrench_rates": rates}

        return at

    def descriptions(self) -> list[str]:
        """A sentence about each."""
        return [wrench.description(topic.topic_name) for wrench, topic in zip(self._all, self._topics)]

    def warnings(self) -> list[str]:
        """What the user should know of them just now."""
        return [warning for wrench in self._all for warning in wrench.warnings()]

    def close(self) -> None:
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        done = [wrench.tare() for wrench in self._all]
        response.success, response.message = all(good for good, _ in done), "; ".join(text for _, text in done)
        return response
