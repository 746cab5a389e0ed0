"""Bench of dynamics_node: inputs, results, and robots for it."""

from __future__ import annotations

import math
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics, JointMotion, ModelInfo
from support.ros_helpers import DISCOVERY, LATCHED, Diagnostics, RosDomain, stamp

LINK = """<link name="{0}"><inertial><origin xyz="0.02 -0.01 0.2"/><mass value="{1}"/>
  <inertia ixx="0.03" ixy="0.001" ixz="0" iyy="0.03" iyz="0" izz="0.01"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><origin xyz="0 0.1 0.3" rpy="0.3 0 0.1"/><parent link="{2}"/><child link="{3}"/>
  <axis xyz="{4}"/>{5}</joint>"""
LIMIT = '<limit lower="-2" upper="2" velocity="3" effort="{}"/>'


def urdf(name: str = "arm", mass: float = 2.0) -> str:
    """Return a URDF with all joint types of the messages, a mimic joint and a fixed joint."""
    joints = [("turn", "revolute", "base", "upper", "0 1 0", LIMIT.format(40)),
              ("spin", "continuous", "upper", "fore", "1 0 0", ""),
              ("slide", "prismatic", "fore", "wrist", "0 0 1", LIMIT.format(60)),
              ("follow", "revolute", "wrist", "hand", "0 1 0", LIMIT.format(5) + '<mimic joint="turn" multiplier="0.5"/>'),
              ("mount", "fixed", "hand", "tool", "1 0 0", "")]
    links = [LINK.format(link, mass) for link in ("base", "upper", "fore", "wrist", "hand", "tool")]
    return f'<robot name="{name}">{"".join(links)}{"".join(JOINT.format(*joint) for joint in joints)}</robot>'


def chain(n: int, first: tuple[str, ...] = ()) -> str:
    """Return the URDF of n revolute joints, whose compilation takes long."""
    names = [*first, *(f"j{k}" for k in range(len(first), n))]
    joints = "".join(JOINT.format(name, "revolute", f"l{k}", f"l{k + 1}", "0 1 0", "") for k, name in enumerate(names))
    return f'<robot name="chain">{"".join(LINK.format(f"l{k}", 1.0) for k in range(n + 1))}{joints}</robot>'


def seconds(message: Any) -> float:
    """Return the stamp of a message [s]."""
    return message.header.stamp.sec + message.header.stamp.nanosec * 1e-9


ARM = urdf()
NAMES = ["turn", "spin", "slide"]
NODE = "/dynamics_node"


class Bench:
    """ROS domain with one dynamics_node, publishers of its inputs, and received results."""

    program: str | Path = "dynamics_node"

    def __init__(self, ros: RosDomain, namespace: str = "", best_effort: QoSProfile | None = None, **parameters):
        self.ros, self.node = ros, (f"/{namespace}" if namespace else "") + NODE
        prefix = f"/{namespace}" if namespace else ""
        given = {"diagnostics.period": 0.1, "motion_source": "desired", **parameters}
        self.process = ros.start(self.program, given, namespace)
        create = ros.node.create_publisher
        self.states = create(JointState, f"{prefix}/joint_states", best_effort or 10)
        self.desired = create(JointMotion, f"{self.node}/desired_motion", 10)
        self.results: list[JointDynamics] = ros.listen(JointDynamics, f"{self.node}/joint_dynamics")
        self.efforts: list[JointState] = ros.listen(JointState, f"{self.node}/joint_effort")
        self.rates: list[JointState] = ros.listen(JointState, f"{self.node}/joint_effort_rate")
        self.info: list[ModelInfo] = ros.listen(ModelInfo, f"{self.node}/model_info", LATCHED)
        self.diagnostics = Diagnostics(ros, self.node)
        self.clock = 1000.0
        self.dt = 0.01

    def ready(self) -> Bench:
        """Wait for the model and the discovery of all publishers and subscriptions."""
        self.ros.until(lambda: self.info, what="no model", of=self.process)
        self.ros.until(lambda: all(p.get_subscription_count() for p in (self.states, self.desired)))
        self.ros.until(lambda: self.send(np.full((4, 3), 0.01)), what="no answer to the first state")
        return self

    def tick(self) -> float:
        self.clock += self.dt
        return self.clock

    def state(self, **fields) -> None:
        """Publish a joint state; fields that are not given are valid."""
        message = JointState(name=NAMES, position=[0.1, 0.2, 0.3], velocity=[0.0, 0.0, 0.0], effort=[math.nan] * 3)
        message.header.stamp = stamp(self.tick())
        for name, value in fields.items():
            setattr(message, name, value)
        self.states.publish(message)

    def send(self, motion: np.ndarray, names: list[str] = NAMES, attempts: int = 60) -> JointDynamics | None:
        """Send (q, qd, qdd, qddd) and return the result. It is sent again if a message is lost (best effort) or late on a
        busy machine.
        """
        return next(filter(None, (self._send_once(motion, names) for _ in range(attempts))), None)

    def _send_once(self, motion: np.ndarray, names: list[str]) -> JointDynamics | None:
        q, qd, qdd, qddd = (list(map(float, row)) for row in motion)
        when = stamp(self.tick())
        wanted = JointMotion(joint_names=names, acceleration=qdd, jerk=qddd)
        wanted.header.stamp = when
        state = JointState(name=names, position=q, velocity=qd, effort=[math.nan] * len(q))
        state.header.stamp = when
        self.desired.publish(wanted)
        self.ros.spin(0.002)
        self.states.publish(state)
        found = self.answer(when, timeout=2.0)
        of = dict(zip(names, zip(qdd, qddd)))
        seen = found is not None and list(zip(found.acceleration, found.jerk)) == [of[name] for name in found.joint_names]
        return found if seen else None

    def answer(self, when, timeout: float = DISCOVERY) -> JointDynamics | None:
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            self.ros.step(0.005)
            for message in islice(reversed(self.results), 100):  # results arrive in order
                if message.header.stamp == when:
                    return message
        return None

    def paced(self, samples: int = 40) -> None:
        """Wait for the results of all but the newest states, so that no queue overflows in motions without a gap.

        """
        until = self.clock - samples * self.dt
        self.ros.until(lambda: self.results and seconds(self.results[-1]) > until, what="no results", of=self.process)

    def active(self) -> None:
        """Send joint states until the node reports that it is active."""
        self.ros.until(lambda: self.state() or self.diagnostics.state == "ACTIVE", what="never ACTIVE", of=self.process)

    def alive(self) -> bool:
        return self.process.alive and self.send(np.zeros((4, 3))) is not None
