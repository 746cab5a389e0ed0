"""~/estimate_payload: what the robot carries, from motions and measured efforts of the last seconds."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.parameter import Parameter

from rnea_msgs.srv import EstimatePayload
from rnea_ros import InputError, RneaError, Robot
from rnea_ros.nodes.common.worker import Worker

APART, KEPT = 20_000_000, 3000  # ns between two samples that are kept, and how many: a minute


class PayloadService:
    """Of a node that tells it what it sees."""

    def __init__(self, node: Node):
        self._node, self._worker = node, Worker(node, "payload")
        self._robot: Robot | None = None
        self._seen: deque[tuple[int, np.ndarray]] = deque(maxlen=KEPT)
        self._estimators: dict[str, Any] = {}  # by link, of identification/payload.py
        self._tares: dict[str, Any] = {}
        node.create_service(EstimatePayload, "~/estimate_payload", self._serve, callback_group=ReentrantCallbackGroup())

    def use(self, robot: Robot) -> None:
        """A model is ready. With another payload, what was seen is still right; with other links or joints it is not."""
        if self._robot is None or robot.model is not self._robot.model:
            self._tares = {}
            self.forget()
        self._robot, self._estimators = robot, {}

    def forget(self) -> None:
        """The clock was set."""
        self._seen.clear()

    def see(self, stamp: int, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray, tau: np.ndarray) -> None:
        """A motion and its torques at a stamp [ns]."""
        if not self._seen or stamp - self._seen[-1][0] >= APART:
            self._seen.append((stamp, np.array((q, qd, qdd, tau))))

    def close(self) -> None:
        self._worker.close()

    async def _serve(self, request: EstimatePayload.Request, response: EstimatePayload.Response) -> EstimatePayload.Response:
        try:
            if self._robot is None:
                raise InputError("there is no model yet")
            since = self._seen[-1][0] - round(request.window * 1e9) if self._seen and request.window > 0.0 else 0
            samples = [sample for stamp, sample in self._seen if stamp >= since]
            await self._worker.run(self._estimate, self._robot, request, samples, response)
            if response.success and request.apply and not request.tare:
                self._apply(request.link, response)
        except RneaError as error:
            response.success, response.message = False, str(error)
        return response

    def _estimate(self, robot: Robot, request: EstimatePayload.Request, samples: list[np.ndarray],
                  response: EstimatePayload.Response) -> None:
        """In the worker's thread. Raises RneaError."""
        from rnea_ros.identification.payload import PayloadEstimator

        link = request.link
        if link not in self._estimators:
            self._estimators[link] = PayloadEstimator(robot, link)
        estimator = self._estimators[link]
        raw = estimator.raw(*np.array(samples).reshape(len(samples), 4, robot.n).transpose(1, 0, 2))
        response.samples = raw.samples
        if request.tare:
            self._tares[link] = raw
            response.success, response.message = True, f"tare of link '{link}' from {raw.samples} samples"
            return
        found = estimator.estimate(raw, self._tares.get(link))
        response.mass, response.mass_std = found.mass, float(found.std[0])
        response.com, response.com_std = found.com, found.std[1:4]
        response.inertia, response.inertia_std = found.values[4:], found.std[4:]
        response.unknown = list(found.unknown)
        tared = "with" if link in self._tares else "without"
        response.success = True
        response.message = f"{found.mass:.4g} kg within {found.std[0]:.2g} on link '{link}', {tared} a tare"

    def _apply(self, link: str, found: EstimatePayload.Response) -> None:
        """As parameters of the node."""
        values = {"link": link, "mass": found.mass, "com": found.com.tolist(), "inertia": found.inertia.tolist()}
        done = self._node.set_parameters_atomically([Parameter(f"payload.{name}", value=value)
                                                     for name, value in values.items()])
        found.success = done.successful
        found.message += "; payload.* set" if done.successful else f"; payload.* not set: {done.reason}"
