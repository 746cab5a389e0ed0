"""Runs of a robot demo: recorded from its nodes over ROS 2, or computed by the library alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..robots.robot import Robot
from .checks import DemoRecording, Topics, compute_recording
from .processes import NoMessages, node_session, recorders
from .robot_demo import RobotDemo

TIMEOUT_S = 60.0  # for the processes to start and find each other, and for a kernel to compile


class DemoRun(NamedTuple):
    """Recording of a demo, the other recorded topics (None without ROS), and a phrase on its origin."""

    recording: DemoRecording
    topics: Topics | None
    origin: str


def compute(demo: RobotDemo, robot: Robot, seconds: float) -> DemoRun:
    """Return the run of a demo with make_motion, computed by the library."""
    assert demo.make_motion is not None
    motion, topics = demo.make_motion(), None
    if demo.simulate:
        recording, topics = demo.simulate(robot, motion, seconds, demo.rate)
    else:
        recording = compute_recording(robot, motion.for_joints(robot.joint_names), seconds, demo.rate)
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, computed by the library, without ROS"
    return DemoRun(recording, topics, origin)


def record(demo: RobotDemo, robot: Robot, seconds: float, on_message: Callable[[Any], None],
           report: Callable[[str], None]) -> DemoRun:
    """Return the run of a demo, recorded from its nodes in processes.

    on_message : called with each rnea_msgs/JointDynamics; report : called with lines about the processes
    Raises MissingRos without ROS 2, NodesFailed if a topic has no messages, Interrupted after a signal.
    """
    nodes = recorders()
    parameters = {f"/**/{node}": {"ros__parameters": values} for node, values in demo.parameters_by_node().items()}
    with node_session(demo.nodes, lambda folder: parameters, report, f"{robot.name}: ") as session:
        received = nodes.record_dynamics(session.domain, seconds, TIMEOUT_S, on_message, session.is_running, demo.topics)
        if received is None:
            raise NoMessages(f"not all topics were received within {TIMEOUT_S:g} s, or a node ended")
    recording, topics = received
    origin = f"{len(recording.t)} samples in {recording.seconds[-1]:.1f} s, received from dynamics_node over ROS 2"
    return DemoRun(recording, topics, origin)
