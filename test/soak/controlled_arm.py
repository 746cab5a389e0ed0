"""Second scaling_node, which commands an arm through the action of a trajectory controller; with checks of what it executes.

It runs on the clock of the system, with the stand-ins for joint_trajectory_controller and control_msgs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import ScaledMotion
from support import control_msgs_stand_in
from support.overspeed_motion import LIMITS, ROBOT, START
from support.ros_helpers import Process, RosDomain, stamp
from support.scaling_bench import NAMES, TEXT, limits, message

NODE, CONTROLLER = "/arm/scaling_node", "/arm/joint_trajectory_controller"
REACH = 0.4  # rad, from START
POLICY_RATE = 20.0  # Hz
LEAD = 1.0  # s; a message that takes longer, on a machine with too much else to do, replaces a motion too late
PARAMETERS: dict[str, Any] = {
    "robot_description": TEXT, **limits(), "output": "horizon", "horizon": 2.0, "control_rate": 100.0, "lead": LEAD,
    "controller.name": CONTROLLER, "controller.interface": "action",
    "policy_frequency": POLICY_RATE, "policy.lead": LEAD, "policy.max_age": 2.0}
RIGHT = 1e-9  # relative difference allowed between two computations of a torque
# of the limits: each sample of the node; the controller, which interpolates, and joins two trajectories where it is late
MOST_PLANNED, MOST_EXECUTED = 1.0 + 1e-6, 1.1


class ControlledArm:
    """Node under test and its robot. check: called with each result of the node, and the error in it, or ""."""

    def __init__(self, ros: RosDomain, check: Callable[[str], None]):
        self.ros, self.check = ros, check
        self.motions, self.position = 0, START
        self._trajectories = ros.node.create_publisher(JointTrajectory, f"{NODE}/joint_trajectory", 10)
        self._chunks = ros.node.create_publisher(JointTrajectory, f"{NODE}/action_chunks", 10)
        ros.node.create_subscription(ScaledMotion, f"{NODE}/scaled_motion", self._on_motion, 200)
        # points: the stand-in's parts of a JointTrajectoryControllerState
        ros.node.create_subscription(JointTrajectory, f"{CONTROLLER}/controller_state", self._on_state, 200)
        self.controller = self._start("trajectory_controller", {"joints": NAMES, "start": START.tolist()})

    def start_node(self) -> Process:
        return self._start("scaling_node", PARAMETERS)

    def _start(self, program: str, parameters: dict[str, Any]) -> Process:
        self.ros.through = [control_msgs_stand_in.__file__]
        process = self.ros.start(program, parameters, "arm")
        self.ros.through = []
        return process

    def move(self, rng: Random) -> None:
        """Send a trajectory from where the robot is through one or two points near START, mostly too fast."""
        count = rng.randint(1, 2)
        points = [self.position, *(START + np.array([rng.uniform(-REACH, REACH) for _ in NAMES]) for _ in range(count))]
        self._trajectories.publish(message(np.array(points), rng.uniform(0.3, 3.0)))

    def send_chunk(self, rng: Random) -> None:
        """Send positions of the next 3 s, from the robot's position towards a random one, as a policy would."""
        way = np.array([rng.uniform(-0.1, 0.1) for _ in NAMES])
        shares = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, round(3.0 * POLICY_RATE)))
        chunk = JointTrajectory(joint_names=NAMES)
        chunk.header.stamp = stamp(time.time())
        chunk.points = [JointTrajectoryPoint(positions=(self.position + share * way).tolist()) for share in shares]
        self._chunks.publish(chunk)

    def _on_motion(self, sample: ScaledMotion) -> None:
        q, qd, qdd, qddd = (np.array(getattr(sample, name)) for name in ("position", "velocity", "acceleration", "jerk"))
        found, expected = np.array((sample.effort, sample.effort_rate)), np.array(ROBOT.torque_and_rate(q, qd, qdd, qddd))
        shares = np.abs(found) / np.array((LIMITS.effort, LIMITS.effort_rate))
        self.motions += sample.phase == ScaledMotion.ENDED
        error = ""
        if np.abs(found - expected).max() > RIGHT * max(1.0, np.abs(expected).max()):
            error = f"{NODE}: {found.tolist()} instead of {expected.tolist()}"
        elif shares.max() > MOST_PLANNED:
            error = f"{NODE}: {shares.max():.4f} of a limit of torque or torque rate, {sample.t} s in motion {sample.motion}"
        self.check(error)

    def _on_state(self, state: JointTrajectory) -> None:
        reference = state.points[0]
        self.position = np.array(reference.positions)
        share = np.abs(ROBOT.inverse_dynamics(self.position, np.array(reference.velocities),
                                              np.array(reference.accelerations))) / LIMITS.effort
        if share.max() > MOST_EXECUTED:
            self.check(f"{CONTROLLER}: {share.max():.3f} of a torque limit is executed at {self.position.tolist()}")
