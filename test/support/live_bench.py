"""Bench of dynamics_node for robots of any kind from urdf/ with their robot files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics, JointMotion
from support.node_bench import Bench
from support.ros_helpers import RosDomain, stamp

URDF = Path(__file__).resolve().parents[2] / "urdf"
COMPILING = 300.0  # [s]; a platform on six legs compiles for long on a busy machine
HIGHER = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")


def fresh(found: JointDynamics, *wanted: Sequence[float]) -> bool:
    """Return whether a result uses this desired acceleration and jerk, i.e. their message arrived in time."""
    return all(list(got) == list(map(float, sent)) for got, sent in zip((found.acceleration, found.jerk), wanted))


class LiveBench(Bench):
    """Bench for robots of any kind. joints: names in desired motions, in the order of the motions' columns."""

    def __init__(self, ros: RosDomain, robot: str, joints: Sequence[str], **parameters):
        given = {"robot_description": (URDF / f"{robot}.urdf").read_text(),
                 "robot_file": str(URDF / f"{robot}.robot.yaml"), "desired_timeout": 5.0}
        super().__init__(ros, **(given | parameters))
        self.joints = list(joints)

    def ready(self, *motion: np.ndarray) -> LiveBench:  # type: ignore[override]
        """Wait for the model and for the first result of a motion."""
        self.prepared()
        self.ros.until(lambda: self.sample(motion), what="no answer to the first state", of=self.process)
        return self

    def prepared(self) -> None:
        """Wait for the model."""
        self.ros.until(lambda: self.info, timeout=COMPILING, what="no model", of=self.process)
        self.ros.until(lambda: all(p.get_subscription_count() for p in (self.states, self.desired)))

    def publish(self, motion: Sequence[np.ndarray], beside: Mapping[str, Sequence[float]] | None = None):
        """Publish desired motion and state of (q, qd, qdd, qddd, ...) at the next stamp, and return the stamp.

        beside: position and velocity of other joints; acceleration and jerk, if given, are desired values
        """
        when = stamp(self.tick())
        wanted, state = self.messages(motion, beside, when)
        self.desired.publish(wanted)
        self.ros.spin(0.001)
        self.states.publish(state)
        return when

    def messages(self, motion: Sequence[np.ndarray], beside: Mapping[str, Sequence[float]] | None,
                 when: Time) -> tuple[JointMotion, JointState]:
        """Return the messages of desired motion and state."""
        others = dict(beside or {})
        q, qd, *higher = (list(map(float, row)) for row in motion)
        moved = {name: values[2:] for name, values in others.items() if len(values) > 2}
        for k, row in enumerate(higher[:2]):
            row += [float(values[k]) for values in moved.values()]
        wanted = JointMotion(joint_names=[*self.joints, *moved], **dict(zip(HIGHER, higher)))
        names = [*self.joints, *others]
        state = JointState(name=names, position=[*q, *(float(values[0]) for values in others.values())],
                           velocity=[*qd, *(float(values[1]) for values in others.values())], effort=[math.nan] * len(names))
        wanted.header.stamp = state.header.stamp = when
        return wanted, state

    def sample(self, motion: Sequence[np.ndarray], beside: Mapping[str, Sequence[float]] | None = None,
               attempts: int = 10) -> JointDynamics | None:
        """Return the result for a motion; it is sent again if best effort loses a message on a busy machine."""
        for _ in range(attempts):
            found = self.answer(self.publish(motion, beside), timeout=2.0)
            if found is not None and fresh(found, *motion[2:4]):
                return found
        return None
