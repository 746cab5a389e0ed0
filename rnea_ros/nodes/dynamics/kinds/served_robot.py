"""ServedRobot: a robot as dynamics_node serves it; base of trees on a fixed base and of all others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Time

from rnea_msgs.msg import ModelInfo
from rnea_ros import Robot
from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.model.tree import Limits, Model
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import Values
from rnea_ros.nodes.dynamics.kinds.topics import Topics
from rnea_ros.nodes.dynamics.pairing import PairedInput
from rnea_ros.nodes.dynamics.whole_body import WholeBody
from rnea_ros.robots.solution import ConstraintWrench
from rnea_ros.robots.tree import Dynamics

Motion = Sequence[np.ndarray]  # q, qd, qdd, qddd and what follows, (n,) each
Loads = Callable[[np.ndarray, np.ndarray], dict[str, Any]]  # of q, qd of the first tree's joints: wrenches, wrench_rates


class Moved(NamedTuple):
    """Motion of joint_names, and the torques that it takes."""

    motion: Motion
    result: Dynamics


def untouched(q: np.ndarray, qd: np.ndarray) -> dict[str, Any]:
    """No loads."""
    return {}


class ServedRobot:
    """What the node, its messages and its diagnostics ask of a robot; and how its torques are found, sample by sample.

    robot    : of the library
    optional : joints beside those of joint_names that are read from joint_states wherever someone publishes them
    order    : how many derivatives of position desired motions may have; those beyond the jerk NaN where unknown
    solved   : joints whose motion follows from that of joint_names
    differentiable : the robot, where sensitivities, friction and external efforts are known: a fixed tree
    told_by  : the topic that says how the robot moves, where joint states do not
    cuts     : joints that close loops, in frames of the first tree's links
    springs  : joints whose motors turn as `motor_speed` says, not as the joints do
    doubts   : what is wrong with how it is asked to be served, a sentence each
    scalable : whether its torques at another speed follow from those at this one, as speed scaling needs it
    moved_parts   : of "base" and "platform", those whose motion is an input
    has_free_base : whether the acceleration of its base follows from the dynamics
    """

    optional: tuple[str, ...] = ()
    solved: tuple[str, ...] = ()
    order = 3
    differentiable: Robot | None = None
    told_by = ""
    cuts: tuple[Cut, ...] = ()
    springs: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    scalable = False
    moved_parts: tuple[str, ...] = ()
    has_free_base = False

    def __init__(self, robot: Robot):
        self.robot, self.tree = robot, robot.tree
        self.name, self.n = robot.name, robot.n
        self.joint_names, self.joint_types = robot.joint_names, robot.joint_types
        self.streams: list[Stream] = []  # topics that only this kind of robot has

    # ------------------------------------------------------------------ what it is

    @property
    def kind(self) -> str:
        return self.robot.kind

    @property
    def joints_read(self) -> tuple[object, ...]:
        """What the history of the joints depends on."""
        return self.joint_names, self.optional, self.order

    @property
    def limits(self) -> Limits:
        return self.robot.limits

    @property
    def model(self) -> Model:
        return self.robot.model

    @property
    def model_id(self) -> str:
        """Fingerprint of all its numbers."""
        return self.robot.model_id

    @property
    def total_mass(self) -> float:
        return self.robot.total_mass

    @property
    def warnings(self) -> tuple[str, ...]:
        return (*self.robot.warnings, *self.doubts)

    @property
    def reconstruction_error(self) -> float:
        return self.robot.reconstruction_error

    @property
    def root_link(self) -> str:
        return self.robot.root_link

    @property
    def backend(self) -> str:
        return self.robot.backend

    @property
    def gravity_vector(self) -> np.ndarray:
        return self.robot.gravity_vector

    def mdh_table(self) -> list[tuple[Any, ...]]:
        return self.robot.mdh_table()

    def describe(self, info: ModelInfo) -> None:
        """Add to ~/model_info what only this kind of robot has."""
        info.kind, info.solved_joints = self.kind, list(self.solved)
        info.measured_joints = [*self.joint_names, *self.optional]

    def paired(self) -> list[PairedInput]:
        """Return the inputs beside the joint states that only this kind of robot has."""
        return []

    # ------------------------------------------------------------------ what it does

    def prepare(self, loads: Loads) -> None:
        """Compile all that `dynamics` needs, in the thread that builds models. Raises RneaError."""
        raise NotImplementedError

    def configure(self, values: Values) -> None:
        """Parameters are so now; called before `connect`, and whenever they change."""

    def connect(self, topics: Topics) -> None:
        """Ask for the topics that only this kind of robot has; called before the first sample."""

    def take_over(self, before: ServedRobot) -> None:
        """Go on where another one ended, of the same robot but for its payload."""

    def forget(self) -> None:
        """The clock was set: nothing of the past says anything about now."""

    def dynamics(self, motion: Motion, optional: np.ndarray, loads: Loads, stamp: int) -> Dynamics:
        """Torques, rates and gravity's shares of one sample.

        motion   : of joint_names; what is estimated has no derivatives beyond the jerk
        optional : (4, len(self.optional)), position, velocity, acceleration and jerk of those joints, NaN where unknown
        stamp    : of the motion [ns]
        Raises Rejected, or RneaError, if there are none.
        """
        raise NotImplementedError

    def moved(self, stamp: int, loads: Loads) -> Moved:
        """As `dynamics` at a stamp [ns], where another topic than joint_states gives the motion of the robot."""
        raise NotImplementedError

    def body(self, motion: Motion, loads: dict[str, Any]) -> WholeBody | None:
        """The robot as a whole in its last sample; None where that is not known."""
        return None

    def constraint_wrenches(self) -> Mapping[str, ConstraintWrench]:
        """Return the wrenches of loops, contacts and wheels in the last sample, by name; empty where they are not known."""
        return {}

    def motor_speed(self, motion: Motion) -> np.ndarray:
        """(n,) of the motors in the last sample, as their joints' sides of the gears see it."""
        return motion[1]

    def tell(self, when: Time) -> None:
        """Publish what this kind of robot has to tell beside torques, of the last sample, with its stamp."""

    def warnings_now(self) -> list[str]:
        """What the user should know of the last sample."""
        return []

    def findings(self) -> dict[str, object]:
        """What the diagnostics tell of the last sample."""
        return {}
