"""A dynamics_node on the bench, for a robot of any kind from urdf/ and the robot file beside it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from builtin_interfaces.msg import Time
from sensor_msgs.msg import JointState

from rnea_msgs.msg import JointDynamics, JointMotion
from support.node_bench import Bench
from support.ros_helpers import World, stamp

URDF = Path(__file__).resolve().parents[2] / "urdf"
COMPILING = 300.0  # s; a platform on six legs takes its time on a busy machine
HIGHER = ("acceleration", "jerk", "snap", "crackle", "pop", "lock")


def fresh(found: JointDynamics, *wanted: Sequence[float]) -> bool:
    """Return whether an answer is for this desired acceleration and jerk: the message with them came in time."""
    return all(list(got) == list(map(float, sent)) for got, sent in zip((found.acceleration, found.jerk), wanted))


class LiveBench(Bench):
    """joints: those that desired motions name, in the order of the motions' columns."""

    def __init__(self, ros: World, robot: str, joints: Sequence[str], **parameters):
        given = {"robot_description": (URDF / f"{robot}.urdf").read_text(),
                 "robot_file": str(URDF / f"{robot}.robot.yaml"), "desired_timeout": 5.0}
        super().__init__(ros, **(given | parameters))
        self.joints = list(joints)

    def ready(self, *motion: np.ndarray) -> LiveBench:  # type: ignore[override]
        """Wait for the model, and until both ends have found each other, by a motion that is answered."""
        self.prepared()
        self.ros.until(lambda: self.sample(motion), what="no answer to the first state", of=self.process)
        return self

    def prepared(self) -> None:
        """Wait for the model."""
        self.ros.until(lambda: self.info, timeout=COMPILING, what="no model", of=self.process)
        self.ros.until(lambda: all(p.get_subscription_count() for p in (self.states, self.desired)))

    def publish(self, motion: Sequence[np.ndarray], beside: Mapping[str, Sequence[float]] | None = None):
        """Desired motion and state of (q, qd, qdd, qddd, ...) at the next stamp, which is returned.

        beside: position and velocity of other joints; with acceleration and jerk these are desired, too
        """
        when = stamp(self.tick())
        wanted, state = self.messages(motion, beside, when)
        self.desired.publish(wanted)
        self.ros.spin(0.001)
        self.states.publish(state)
        return when

    def messages(self, motion: Sequence[np.ndarray], beside: Mapping[str, Sequence[float]] | None,
                 when: Time) -> tuple[JointMotion, JointState]:
        """Desired motion and state."""
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
        """The answer to a motion; on a busy machine best effort may lose a message: try again."""
        for _ in range(attempts):
            found = self.answer(self.publish(motion, beside), timeout=2.0)
            if found is not None and fresh(found, *motion[2:4]):
                return found
        return None
