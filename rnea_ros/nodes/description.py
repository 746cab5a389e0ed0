"""From a robot description to a model: as parameter or latched topic, late, repeated, swapped or broken.

A model takes 0.1 to 1 s to build. That happens in a thread of its own; the executor gets the finished model between two
callbacks, through a guard condition. A description that cannot be used never replaces a model that can.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from rnea_ros import InputError, RneaError, Robot
from rnea_ros.nodes.joints import described, doubts
from rnea_ros.nodes.parameters import MODEL, ParameterSet

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
MODEL_NAMES = frozenset(entry.name for entry in MODEL)
SWITCH_INTERVAL = 5e-4  # s; measured: at 1 kHz, 12 instead of 40 joint states are lost while a 7R arm is compiled


@dataclass(frozen=True)
class Recipe:
    """Everything that a model is made of; equal recipes make equal models."""

    text: str
    backend: str
    gravity: tuple[float, ...]
    use_friction: bool
    terms: tuple[tuple[str, float], ...]  # parameters joint_dynamics.* that the user gave
    payload: tuple[str, float, tuple[float, ...], tuple[float, ...]]

    def bare(self) -> Recipe:
        """Without the payload, which can be changed without compiling anything."""
        return replace(self, payload=("", 0.0, (), ()))

    def robot(self) -> Robot:
        """Without payload. Raises RneaError."""
        # as bytes: a text is never mistaken for the path of a file to open
        draft = Robot.from_urdf(self.text.encode(errors="replace"), backend="reference", friction=self.use_friction)
        given: dict[str, dict[str, float]] = {}
        for name, value in self.terms:
            joint, _, quantity = name.removeprefix("joint_dynamics.").rpartition(".")
            given.setdefault(joint, {})[quantity] = value
        terms = {link.joint: replace(link.term, **given[link.joint]) for link in draft.model.links if link.joint in given}
        return Robot(draft.model.with_terms(terms), self.backend, self.gravity)

    def load(self, robot: Robot) -> Robot:
        """Put the payload on a bare robot. Raises RneaError."""
        link, mass, com, (xx, xy, xz, yy, yz, zz) = self.payload
        if not link and mass == 0.0:
            return robot
        try:
            return robot.with_payload(link, mass, com, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
        except RneaError as error:
            hint = "" if link else " (set payload.link first, or payload.link and payload.mass in one atomic call)"
            raise InputError(f"{error}{hint}") from None


class ModelIntake:
    """Builds the model that the parameters and the topic ask for, and hands it to the node.

    accept(robot) is called with every new model, when the parameters of its joints are declared.
    refuse(reason) is called for a model that cannot be built. Both are called by the executor, and logged here.
    """

    def __init__(self, node: Node, parameters: ParameterSet, accept: Callable[[Robot], None],
                 refuse: Callable[[str], None]):
        self._node, self._parameters, self._accept, self._refuse = node, parameters, accept, refuse
        self._heard = ""
        self._wanted: Recipe | None = None  # the newest request, whatever became of it
        self._bare: tuple[Recipe, Robot] | None = None  # the last one built, without payload
        self._current: Recipe | None = None  # the one accepted last,
        self._robot: Robot | None = None  # and what was made of it
        self._answered: Recipe | None = None  # the last one accepted or refused
        self._finished: deque[tuple[Recipe, Robot | str]] = deque()
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._ready = node.create_guard_condition(self._deliver)
        self._topic = node.create_subscription(String, "robot_description", self._on_description, LATCHED)
        self.request()

    @property
    def topic_name(self) -> str:
        return self._topic.topic_name

    @property
    def building(self) -> bool:
        """Whether there will be a first model, if what was asked for can be built."""
        return self._wanted is not None and self._current is None

    @property
    def settled(self) -> bool:
        """Whether what was asked for last has been accepted or refused."""
        return self._wanted is self._answered

    def check(self) -> None:
        """Raise RneaError if what the parameters now ask for cannot become a model. Takes milliseconds: compiles nothing."""
        try:
            self._draft(self._recipe())
        except RneaError:
            current = self._current
            if current is None or not self._heard or self._recipe().text != self._heard or self._heard == current.text:
                raise
            # The topic's last text was refused before, and still is: the parameters are for the model in use.
            self._heard = current.text
            self._draft(self._recipe())

    def request(self) -> None:
        """Build what is asked for now, unless that is what was asked for last."""
        recipe = self._recipe()
        if recipe.text and recipe != self._wanted:
            self._wanted = recipe
            self._worker.submit(self._build, recipe)

    def changed(self, names: set[str]) -> None:
        """Parameters changed: build another model if they are the model's. Raises RneaError if they cannot become one."""
        if any(name in MODEL_NAMES or name.startswith("joint_dynamics.") for name in names):
            self.check()
            self.request()

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _draft(self, recipe: Recipe) -> None:
        if not recipe.text and self._wanted is not None:
            raise InputError(f"robot_description is empty, and nothing was heard on {self.topic_name} to replace it")
        if recipe.text:
            recipe.load(self._bare[1] if self._bare is not None and self._bare[0] == recipe.bare() else recipe.robot())

    def _recipe(self) -> Recipe:
        values = self._parameters.values
        terms = {name: value for name, value in self._parameters.given.items() if name.startswith("joint_dynamics.")}
        return Recipe(
            text=values["robot_description"] or self._heard,
            backend=values["backend"],
            gravity=tuple(values["gravity"]),
            use_friction=values["use_friction"],
            terms=tuple(sorted(terms.items())),
            payload=(values["payload.link"], values["payload.mass"],
                     tuple(values["payload.com"]), tuple(values["payload.inertia"])),
        )

    def _on_description(self, message: String) -> None:
        if self._parameters.values["robot_description"]:
            self._node.get_logger().info(f"{self.topic_name} is not used: parameter robot_description is set", once=True)
        if message.data.strip():
            self._heard = message.data
            self.request()
        else:
            self._turn_down(f"{self.topic_name} carried an empty text")

    def _build(self, recipe: Recipe) -> None:
        """In the worker. The result is what the executor will see, so nothing may escape as an exception."""
        if recipe is not self._wanted:  # overtaken while it waited
            return
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)  # tracing is pure Python: let callbacks have the interpreter soon
        try:
            if self._bare is None or self._bare[0] != recipe.bare():
                self._bare = recipe.bare(), recipe.robot()
            robot = recipe.load(self._bare[1])
            robot.dynamics(*np.zeros((4, robot.n)))  # compiles
            self._finished.append((recipe, robot))
        except RneaError as error:
            self._finished.append((recipe, str(error)))
        except Exception as error:  # a defect of ours must not cost the model that works
            self._finished.append((recipe, f"internal error, please report it: {error!r}"))
        finally:
            sys.setswitchinterval(interval)
        self._ready.trigger()

    def _deliver(self) -> None:
        """In the executor, between two callbacks."""
        while self._finished:
            recipe, result = self._finished.popleft()
            if recipe is not self._wanted:
                continue
            self._answered = recipe
            if isinstance(result, str):
                self._turn_down(result)
                continue
            if self._current is None or self._current.bare() != recipe.bare():
                self._announce(result)
            self._current, self._robot = recipe, result
            self._accept(result)
            self._node.get_logger().info(f"model {result.model_id}: robot '{result.name}', {result.n} joints, "
                                         f"backend {result.backend}")

    def _announce(self, robot: Robot) -> None:
        """More than the payload is new."""
        self._parameters.declare_joints(described(robot))
        for doubt in (*robot.warnings, *doubts(self._parameters, robot)):
            self._node.get_logger().warning(doubt)

    def _turn_down(self, reason: str) -> None:
        self._refuse(reason)
        stays = "no model yet" if self._robot is None else f"model {self._robot.model_id} stays"
        self._node.get_logger().error(f"robot description refused, {stays}: {reason}")
