"""Sends trajectories to the arm of arm_plant.py, straight or through a scaling node, and waits for what comes of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.demo.nodes.monitor import POLL, monitor
from rnea_ros.nodes.common.stamps import duration, nanoseconds

CONTROLLER, SCALING = "joint_trajectory_controller", "scaling_node"
THERE = 1e-3  # rad, m; gravity bends an arm that a controller with a wrong model holds


class PlantSession:
    """still_there : whether all processes run and nobody has interrupted us."""

    def __init__(self, node: Node, executor: SingleThreadedExecutor, joint_names: Sequence[str],
                 still_there: Callable[[], bool]):
        self._node, self._executor, self._names, self._still_there = node, executor, list(joint_names), still_there
        self._state: JointState | None = None
        self._topics = {name: node.create_publisher(JointTrajectory, f"{name}/joint_trajectory", 10)
                        for name in (CONTROLLER, SCALING)}
        self._reset = node.create_publisher(JointState, f"{CONTROLLER}/reset", 10)
        node.create_subscription(JointState, "joint_states", self._on_state, 10)

    def _on_state(self, message: JointState) -> None:
        self._state = message

    @property
    def now(self) -> int:
        """Of the plant [ns]."""
        return nanoseconds(self._state.header.stamp) if self._state else 0

    def wait(self, until: Callable[[], bool], patience: float) -> bool:
        """Whether it came, within that time [s]."""
        end = time.monotonic() + patience
        while not until():
            if time.monotonic() > end or not self._still_there():
                return False
            self._executor.spin_once(timeout_sec=POLL)
        return True

    def ready(self) -> bool:
        """Whether everybody has found everybody."""
        ours = all(topic.get_subscription_count() for topic in (*self._topics.values(), self._reset))
        return ours and bool(self._state) and self._node.count_publishers(f"{CONTROLLER}/joint_trajectory") > 1

    def place(self, q: np.ndarray) -> None:
        self._reset.publish(JointState(name=self._names, position=q.tolist()))

    def at(self, q: np.ndarray) -> bool:
        state = self._state
        return state is not None and bool(np.abs(np.array(state.position) - q).max() < THERE)

    def send(self, to: str, times: np.ndarray, q: np.ndarray, *derivatives: np.ndarray) -> None:
        """To CONTROLLER or SCALING, to begin at once. derivatives: none, or velocities and accelerations (points, n)."""
        message = JointTrajectory(joint_names=self._names)
        names = ("positions", "velocities", "accelerations")
        for t, *parts in zip(times.tolist(), q.tolist(), *(part.tolist() for part in derivatives)):
            message.points.append(JointTrajectoryPoint(time_from_start=duration(t), **dict(zip(names, parts))))
        self._topics[to].publish(message)


@contextmanager
def session(domain_id: int, joint_names: Sequence[str], still_there: Callable[[], bool]) -> Iterator[PlantSession]:
    with monitor("plant_session", domain_id) as (node, executor):
        yield PlantSession(node, executor, joint_names, still_there)
