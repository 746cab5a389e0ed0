"""The controller that follows: looked at before the first motion, and listened to while it plays one.

What it cannot play is refused with what to set. Its reference must be what it was sent: where it is not, it has refused a
message, or somebody else commands it, and the motion is given up instead of played on by us alone. Meanwhile it gets no change
of the motion, which would make it leap back.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_ros.errors import InputError, Rejected
from rnea_ros.execution.controller_check import PARAMETERS, Finding, findings
from rnea_ros.execution.executed_motion import ExecutedMotion, Sample
from rnea_ros.execution.follower import Follower
from rnea_ros.execution.goal import Outcome
from rnea_ros.execution.handed_out import HandedOut
from rnea_ros.execution.joint_state_buffer import JointStateBuffer
from rnea_ros.execution.reference_watch import ReferenceWatch
from rnea_ros.execution.trajectory_executor import TrajectoryExecutor
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.scaling import controller_state
from rnea_ros.nodes.scaling.controller_manager import ManagerView
from rnea_ros.nodes.scaling.controller_state import ControllerState, JointTrajectoryControllerState
from rnea_ros.nodes.scaling.health import ScalingHealth
from rnea_ros.nodes.scaling.remote_parameters import RemoteParameters
from rnea_ros.scaling.committed import CommittedMotion

NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
APART, APART_AT_REST = 0.004, 0.1  # s; between two of its states that are read, while a motion is under way, and else
FRESH, PATIENCE = 50_000_000, 1_000_000_000  # ns; that a change waits for its state, or for it to be where it should


def _wanted(name: str) -> bool:
    return name in PARAMETERS or (name.startswith("constraints.") and name.endswith(".goal"))


def check_watchable(values: Values) -> None:
    """InputError where nobody would tell of the robot."""
    if not values["controller.name"]:
        raise InputError("watch.source is controller_state: whose, controller.name must say")
    if JointTrajectoryControllerState is None:
        raise InputError("watch.source is controller_state, which needs control_msgs: it is not installed")


class Controller(Follower):
    """Nobody in particular: references go to ~/reference, and whoever likes follows them.

    topic    : where references go
    settled  : whether all is known of it that will be
    states   : what it tells of the robot, by which this is watched; None: joint states are what counts
    """

    topic, settled = "~/reference", True
    states: JointStateBuffer | None = None

    def check(self) -> None:
        """Raises Rejected where it cannot play a trajectory."""

    def look(self) -> None:
        """Called ten times a second, by the executor."""

    def sent(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        """A reference, at time now [ns]; by the thread that ticks."""

    def send(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        """What is handed out of a motion, beside the topic; by the thread that ticks."""

    def forget(self) -> None:
        """The clock was set back."""

    def values(self) -> dict[str, object]:
        """For diagnostics."""
        return {}

    def destroy(self) -> None:
        """No more of it."""


class NamedController(Controller):
    """A joint_trajectory_controller, which is looked at and listened to.

    joint_names : of the robot here
    measured    : joint names -> positions (n,), NaN where nothing tells
    """

    def __init__(self, node: Node, settings: ParameterSet, executor: TrajectoryExecutor, health: ScalingHealth,
                 joint_names: Callable[[], Sequence[str]], measured: Callable[[tuple[str, ...]], np.ndarray]):
        self._node, self._settings, self._executor, self._health = node, settings, executor, health
        self._joint_names, self._measured = joint_names, measured
        self.name = name = settings.values["controller.name"]
        self._parameters, self._manager = RemoteParameters(node, name, _wanted), ManagerView(node, name)
        self._watch, self._motion = ReferenceWatch(), executor.motion
        self._factor = 1.0  # of the speed, by the last state that was judged
        self._said: set[str] = set()
        self._began, self._heard, self._since = time.monotonic(), -math.inf, math.inf  # here; of its state; of the motion [s]
        self._state: ControllerState | None = None  # the newest that was read,
        self._read_at, self._judged = -math.inf, 0  # when [s]; the stamp of that which is judged [ns]
        self._handed_out: tuple[ExecutedMotion, HandedOut] | None = None
        self._elsewhere, self._late = False, 0  # whether its reference is; changes that it had too late
        if settings.values["watch.source"] == "controller_state":
            self.states = JointStateBuffer()
        if JointTrajectoryControllerState is None:
            node.get_logger().info(f"whether {name} follows is not known: its controller_state needs control_msgs")
        else:
            self._read = controller_state.reader()
            node.create_subscription(JointTrajectoryControllerState, f"{name}/controller_state", self._on_state, NEWEST,
                                     raw=True)

    def destroy(self) -> None:
        self._parameters.destroy()
        self._manager.destroy()

    # ------------------------------------------------------------------ before a motion

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self._waited or (self._parameters.told is not None and not self._silent)

    @property
    def _waited(self) -> bool:
        """Whether it was given its time to be found."""
        return time.monotonic() - self._began > self._settings.values["controller.timeout"]

    @property
    def _silent(self) -> bool:
        """Whether it tells nothing of its state, where that would be heard."""
        recent = time.monotonic() - self._settings.values["controller.timeout"]
        return JointTrajectoryControllerState is not None and self._heard < recent

    def check(self) -> None:
        refused = [finding.text for finding in self._findings() if finding.refuses]
        if refused:
            raise Rejected("controller", f"{self.name}: {'; '.join(refused)}")

    def _findings(self) -> list[Finding]:
        values, told = self._settings.values, self._parameters.told
        if told is None:
            why = self._parameters.problem
            text = f"it does not tell its parameters: {why}" if why else f"nobody answers on {self.name}/get_parameters"
            return [Finding(values["controller.required"], text)]
        found = [*self._manager.findings(), *findings(told, self._joint_names(), values)]
        if self._silent and self._node.count_publishers(f"{self.name}/controller_state"):
            found.append(Finding(True, "it tells nothing of its state: it is not active"))
        return found

    def values(self) -> dict[str, object]:
        told = self._parameters.told
        state = "not found" if told is None else "; ".join(text for _, text in self._findings()) or "ok"
        return {"controller": self.name, "controller.state": state,
                "controller.update_rate": (told or {}).get("update_rate", ""), "controller.late_changes": self._late}

    # ------------------------------------------------------------------ while it plays one

    def look(self) -> None:
        found = self._findings() if self.settled and self._joint_names() else []
        self._parameters.look(again=bool(found))
        self._manager.look()
        if found or self._said:
            said = {text for _, text in found}
            for text in sorted(said - self._said):
                self._health.report(False, f"controller {self.name}: {text}")
            self._said = said
        self._hear()
        if not self._moves:
            return
        if self._watch.problem:
            why = "it refused a message, its log says why, or somebody else commands it"
            if self._factor != 1.0:
                why = f"its speed_scaling_factor is {self._factor:g}; slow motions by ~/override instead"
            self._give_up("controller_strays", f"{self._watch.problem}: {why}")
        elif self._silent and self._heard > self._since:
            self._give_up("controller_silent", "it tells nothing of its state any more: it has ended, or is not active")

    @property
    def _moves(self) -> bool:
        return self._motion is not None and self._executor.motion is self._motion

    def _on_state(self, data: bytes) -> None:
        self._heard = now = time.monotonic()
        if now - self._read_at < (APART if self._moves else APART_AT_REST):
            return
        self._read_at, self._state = now, (state := self._read(data))
        if self.states is not None and len(state.position):
            self.states.read(state.joint_names, state.position, now, state.stamp, state.velocity, state.effort)
        motion, handed = self._handed_out or (None, None)
        if motion is None or handed is None or motion is not self._motion:
            return
        places = dict(zip(state.joint_names, state.reference))
        q = np.array([places.get(name, np.nan) for name in motion.joint_names])
        played = handed.hear(1e-9 * (state.stamp - motion.zero), q)
        self._elsewhere = played.elsewhere
        if played.late > 0.0 and motion.committed is not None:  # by its state it has not got a change for so long
            self._tell_late(motion.committed, played.late)

    def _tell_late(self, committed: CommittedMotion, late: float) -> None:
        committed.take_longer()
        self._late += 1
        self._health.report(False, f"{self.name} had a change of the motion {late:.3f} s late, and may have leapt: lead "
                                   f"is {committed.lead:g} s now, set it higher")

    def ready(self, asked: int, now: int) -> bool:
        if self._heard < self._since or now - asked > PATIENCE:  # where it is really elsewhere the motion is given up by then
            return True
        state = self._state
        return not self._elsewhere and ((state is not None and state.stamp >= asked) or now - asked > FRESH)

    def _hear(self) -> None:
        state = self._state
        if state is None or self._motion is None or state.stamp == self._judged:
            return
        self._judged, self._factor = state.stamp, state.factor
        self._watch.hear(state.joint_names, state.reference, state.stamp, self._settings.values["start_tolerance"])

    def _give_up(self, reason: str, why: str) -> None:
        why = f"{self.name}: {why}"
        self._health.trajectories.drop(Rejected(reason, why))
        if self._moves:
            self._executor.abort(why, reason)
        else:  # it has ended here
            self._health.report(False, why)

    def sent(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        if motion is not self._motion:
            self._watch.restart(motion.joint_names)
            self._motion, self._since = motion, time.monotonic()
            self._handed_out, self._elsewhere = None, False
        self._watch.send(sample.reference.q, now)

    def send(self, motion: ExecutedMotion, message: JointTrajectory) -> None:
        committed = motion.committed
        assert committed is not None
        if self._handed_out is None:
            self._handed_out = motion, HandedOut(committed.points[1][0])
        self._handed_out[1].send(committed.parts, *committed.points[:4])

    def forget(self) -> None:
        if self.states is not None:
            self.states.forget()


class TopicController(NamedController):
    """By its topic: it never says whether it has taken a message."""

    def __init__(self, *given: Any):
        super().__init__(*given)
        self.topic = f"{self.name}/joint_trajectory"
        self._ending: int | None = None  # since when its reference is waited for at the goal [ns]
        self._halts = self._node.create_publisher(JointTrajectory, self.topic, 1)

    @property
    def settled(self) -> bool:  # type: ignore[override]
        return self._waited or (super().settled and self._listens)

    @property
    def _listens(self) -> bool:
        """Whether what is sent on the topic has somewhere to go."""
        return self._halts.get_subscription_count() > 0

    def _findings(self) -> list[Finding]:
        silent = Finding(self._settings.values["controller.required"], f"nobody listens on {self.topic}")
        return [*super()._findings(), *([] if self._listens else [silent])]

    def sent(self, motion: ExecutedMotion, sample: Sample, now: int) -> None:
        if motion is not self._motion:
            self._ending = None
        super().sent(motion, sample, now)

    def verdict(self, motion: ExecutedMotion, now: int) -> Outcome | None:
        """Where it tells of its reference, that has to come to the goal."""
        if self._heard < self._since:
            return Outcome()
        self._ending = self._ending or now
        return Outcome() if self._watch.arrived(self._ending) else None

    def halt(self, motion: ExecutedMotion) -> None:
        """Here and now, as it does itself where a goal is cancelled."""
        measured = self._measured(motion.joint_names)
        place = measured if not np.isnan(measured).any() else self._watch.last
        if motion.committed is not None and place is not None:
            point = JointTrajectoryPoint(positions=place.tolist(), velocities=[0.0] * len(place), time_from_start=Duration())
            self._halts.publish(JointTrajectory(joint_names=list(motion.joint_names), points=[point]))
