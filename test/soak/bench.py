"""All three nodes with a simulated robot, an arm with a controller, and checks of their results."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

import numpy as np
from rclpy.action import ActionClient
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.action import PlanMotion
from rnea_msgs.msg import JointDynamics, JointMotion, JointSample, ScaledMotion
from rnea_msgs.srv import ComputeInverseDynamics
from rnea_ros import Robot
from rnea_ros.nodes.common.topics import duration
from soak.controlled_arm import ControlledArm
from soak.watch import Growth
from support.node_bench import ARM, NAMES, urdf
from support.ros_helpers import LATCHED, Process, RosDomain, stamp

COMMON = ("dynamics_node", "scaling_node", "query_node")  # on the simulated clock, with the same robot
NODES = (*COMMON, "arm/scaling_node")
PERIOD = 0.02  # [s], period of joint states
TEXTS = (ARM, urdf("heavy", 3.0))  # the same joints
MASSES = (0.0, 1.5)  # [kg], payload on the hand
PARAMETERS: dict[str, Any] = {"use_sim_time": True, "payload.link": "hand"}
STRONG = 400.0  # [N m], [N]; enough for the heavy robot with payload at rest in every pose
KNOWN = {"velocity": 2.0, "effort": STRONG, "acceleration": 20.0, "jerk": 400.0}
OWN: dict[str, dict[str, Any]] = {
    "dynamics_node": {"diagnostics.period": 0.5},
    "query_node": {f"joint_limits.{name}.{key}": value for name in NAMES for quantity, limit in KNOWN.items()
                   for key, value in ((f"has_{quantity}_limits", True), (f"max_{quantity}", limit))},
    "scaling_node": {"control_rate": 100.0, "output": "points",
                     **{f"joint_limits.{name}.has_velocity_limits": True for name in NAMES},
                     **{f"joint_limits.{name}.max_velocity": 1.0 for name in NAMES},
                     **{f"joint_limits.{name}.max_effort": STRONG for name in NAMES}}}
RIGHT = 1e-9  # relative difference allowed between two computations of a torque


class Nodes:
    """Nodes under test. wrong: messages about wrong results; late: latencies from joint state to result [s]."""

    def __init__(self, ros: RosDomain):
        self.ros, self.wrong, self.logs = ros, list[str](), list[Process]()
        self.late: deque[float] = deque(maxlen=1_000_000)
        self.checked = self.motions = self.queries = self.plans = 0
        self.answers = dict.fromkeys(NODES, 0)  # correct results
        self.growth = {name: Growth() for name in NODES}
        self._robots = [Robot.from_urdf(text).with_payload("hand", mass, (0.0,) * 3, np.zeros((3, 3)))
                        for text in TEXTS for mass in MASSES]
        self._sent: dict[tuple[int, int], float] = {}
        self._q, self._qd, self.now, self._due = np.zeros((3, len(NAMES)))[0], np.zeros(len(NAMES)), 1000.0, 0.0
        node = ros.node
        self._clock = node.create_publisher(Clock, "/clock", 10)
        self._states = node.create_publisher(JointState, "/joint_states", 10)
        self._desired = node.create_publisher(JointMotion, "/dynamics_node/desired_motion", 10)
        self.description = node.create_publisher(String, "/robot_description", LATCHED)
        self._trajectories = node.create_publisher(JointTrajectory, "/scaling_node/joint_trajectory", 10)
        node.create_subscription(JointDynamics, "/dynamics_node/joint_dynamics", self._on_dynamics, 100)
        node.create_subscription(JointTrajectory, "/scaling_node/reference", self._on_reference, 100)
        node.create_subscription(ScaledMotion, "/scaling_node/scaled_motion", self._on_motion, 100)
        self.planner = ActionClient(node, PlanMotion, "/query_node/plan_motion")
        self._query = node.create_client(ComputeInverseDynamics, "/query_node/compute_inverse_dynamics")
        self._asked: tuple[float, Any] | None = None
        self.description.publish(String(data=TEXTS[0]))
        self.arm = ControlledArm(ros, lambda error: self._count("arm/scaling_node", error))
        self.logs.append(self.arm.controller)
        self.processes = {name: self.start(name) for name in NODES}

    def start(self, name: str) -> Process:
        process = self.ros.start(name, {**PARAMETERS, **OWN[name]}) if name in COMMON else self.arm.start_node()
        self.logs.append(process)
        return process

    def step(self) -> None:
        """Advance clock and robot by some milliseconds, with occasional requests."""
        self.ros.step(0.002)
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + PERIOD
        self.now += PERIOD
        when = stamp(self.now)
        self._clock.publish(Clock(clock=when))
        message = JointState(name=NAMES, position=self._q.tolist(), velocity=self._qd.tolist())
        desired = JointMotion(joint_names=NAMES, acceleration=np.sin(self._q + 1.0).tolist(), jerk=np.cos(self._q).tolist())
        message.header.stamp = desired.header.stamp = when
        self._sent[when.sec, when.nanosec] = time.monotonic()
        self._desired.publish(desired)
        self._states.publish(message)
        self._ask()

    def jump(self, seconds: float) -> None:
        self.now = max(10.0, self.now + seconds)
        self._sent.clear()

    def move(self, goal: np.ndarray, seconds: float) -> None:
        points = [JointTrajectoryPoint(positions=list(map(float, q)), time_from_start=duration(t))
                  for t, q in ((0.0, self._q), (seconds, goal))]
        self._trajectories.publish(JointTrajectory(joint_names=NAMES, points=points))

    def check(self) -> None:
        for name, process in self.processes.items():
            self.growth[name].check(process.pid)

    def _on_dynamics(self, message: JointDynamics) -> None:
        began = self._sent.pop((message.header.stamp.sec, message.header.stamp.nanosec), None)
        if began is not None:
            self.late.append(time.monotonic() - began)
        motion = np.array((message.position, message.velocity, message.acceleration, message.jerk))
        self._check("dynamics_node", motion, np.array((message.effort, message.effort_rate)))

    def _on_reference(self, message: JointTrajectory) -> None:
        point = message.points[-1]
        self._q, self._qd = np.array(point.positions), np.array(point.velocities)

    def _on_motion(self, message: ScaledMotion) -> None:
        motion = np.array((message.position, message.velocity, message.acceleration, message.jerk))
        self._check("scaling_node", motion, np.array((message.effort, message.effort_rate)))
        if np.abs(motion[1]).max() > 1.0 + 1e-6:
            self.wrong.append(f"scaling_node: velocities {motion[1]} beyond their limit of 1")
        self.motions += message.phase == ScaledMotion.ENDED

    def _check(self, name: str, motion: np.ndarray, found: np.ndarray) -> None:
        """Check that one of the configured robots has these torques and rates."""
        all_expected = [np.array(robot.torque_and_rate(*motion))[:len(found)] for robot in self._robots]
        is_right = any(np.abs(found - expected).max() <= RIGHT * max(1.0, np.abs(expected).max()) for expected in all_expected)
        self._count(name, "" if is_right else f"{name}: {found.tolist()} is of no robot in the motion {motion.tolist()}")

    def _count(self, name: str, error: str) -> None:
        """Count a result of a node, and the error in it if there is one."""
        self.checked += 1
        if error:
            self.wrong.append(error)
        else:
            self.answers[name] += 1

    def check_plan(self, plan: PlanMotion.Result) -> None:
        """Check torques and torque rates of a planned motion."""
        if not plan.success:
            self._count("query_node", f"query_node: no plan: {plan.message}")
            return
        self.plans += 1
        shape = (len(plan.trajectory.points), len(NAMES))
        order = [plan.trajectory.joint_names.index(name) for name in NAMES]
        jerk, rate = (np.reshape(matrix.data, shape)[:, order] for matrix in (plan.jerk, plan.effort_rate))
        for point, *rows in zip(plan.trajectory.points, jerk, rate):
            q, qd, qdd, effort = (np.array(getattr(point, field))[order] for field in
                                  ("positions", "velocities", "accelerations", "effort"))
            self._check("query_node", np.array((q, qd, qdd, rows[0])), np.array((effort, rows[1])))

    def _ask(self) -> None:
        """Send one request at a time, again if it is lost."""
        if self._asked is not None and not self._asked[1].done() and time.monotonic() - self._asked[0] < 5.0:
            return
        if self._asked is not None and self._asked[1].done() and (answer := self._asked[1].result()).success:
            self.queries += 1
            self._check("query_node", self._motion, np.array(answer.effort.data)[None])
        self._asked = None
        if self._query.service_is_ready():
            self._motion = np.array((self._q, self._qd, np.ones(3), np.zeros(3)))
            sample = JointSample(**dict(zip(("position", "velocity", "acceleration", "jerk"), self._motion.tolist())))
            request = ComputeInverseDynamics.Request(joint_names=NAMES, samples=[sample])
            self._asked = time.monotonic(), self._query.call_async(request)
