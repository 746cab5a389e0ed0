"""From a robot description to a model: as parameter or latched topic, late, repeated, swapped or broken.

A model takes 0.1 to 1 s to build. That happens in a thread of its own; the executor gets the finished model between two
callbacks, through a guard condition. A description that cannot be used never replaces a model that can, and parameters that
turn out to make none go back to those of the model in use: what a node reports is what it computes with.
"""

from __future__ import annotations

import sys
import traceback
from collections import deque
from collections.abc import Callable, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import fields
from typing import Any

import numpy as np
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from rnea_ros import AnyRobot, InputError, JointDynamics, RneaError
from rnea_ros.errors import in_words, some
from rnea_ros.nodes.common.joints import described, warnings
from rnea_ros.nodes.common.model_request import TERMS, FileText, ModelRequest, Serve
from rnea_ros.nodes.common.parameter_table import MODEL, ROBOT_FILE
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.fastpath.cdr import Malformed
from rnea_ros.nodes.fastpath.executor import trigger
from rnea_ros.nodes.fastpath.raw_messages import Reader

LATCHED = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE, durability=DurabilityPolicy.TRANSIENT_LOCAL)
TOGETHER = frozenset(("robot_description", ROBOT_FILE.name))
ATOMIC = ("; to change robot and robot file, set robot_description and robot_file in one call of the service "
          "~/set_parameters_atomically")
MODEL_NAMES = frozenset(entry.name for entry in MODEL)
SWITCH_INTERVAL = 5e-4  # s; measured: at 1 kHz, 12 instead of 40 joint states are lost while a 7R arm is compiled


class RobotDescriptionSource:
    """Builds the model that the parameters and the topic ask for, and hands it to the node.

    accept(robot) is called with every new model, when the parameters of its joints are declared.
    refuse(reason) is called for a model that cannot be built. Both are called by the executor, and logged here.
    serve(robot, request) is called before, by the thread that builds: it compiles what the node needs, or raises RneaError.
    What it returns is what accept gets.
    """

    def __init__(self, node: Node, parameters: ParameterSet, accept: Callable[[Any], None],
                 refuse: Callable[[str], None], serve: Serve = lambda robot, request: tried(robot)):
        """Raises RneaError if there is a robot file that cannot be read."""
        self._node, self._parameters, self._accept, self._refuse, self._serve = node, parameters, accept, refuse, serve
        self._file = self._read_file()
        self._received = ""  # on the topic
        self._refused_text = ""  # of what was received, the last one that made no model while there was another
        self._wanted: ModelRequest | None = None  # the newest request, whatever became of it
        self._bare: tuple[ModelRequest, AnyRobot] | None = None  # the last one built, without payload
        self._current: ModelRequest | None = None  # the one accepted last,
        self._robot: Any = None  # what was made of it,
        self._kept: tuple[Values, Values] = {}, {}  # and the parameters, all and of joints, that it was made with
        self._answered: ModelRequest | None = None  # the last one accepted or refused
        self._finished: deque[tuple[ModelRequest, Any]] = deque()  # and what was served, or why nothing was
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._ready = node.create_guard_condition(self._deliver)
        self._read = Reader(String)
        self._topic = node.create_subscription(String, "robot_description", self._on_description, LATCHED, raw=True)
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

    def check(self, names: Set[str]) -> None:
        """Raise RneaError if what the parameters now ask for cannot become a model; `names` have just changed.

        Compiles nothing, but reads the whole robot, which takes milliseconds, tenths of a second where loops are closed. Drive
        and friction values, of which there are hundreds, are checked alone. What fails later takes parameters back.
        """
        request = self._model_request()
        if self._current is None and self._wanted is not None and self.settled:
            # Nothing works, so nothing is lost. One bad value must not stand in the way of mending another.
            if "robot_description" in names and request.text and not request.file.path:
                request.plain().robot()
            return
        if not self._refused_text and all(name.startswith(TERMS) and not name.endswith(".load_dependent") for name in names):
            self._check_joint_dynamics(names)
            return
        if self._refused_text:
            refused, self._refused_text = self._refused_text, ""
            with suppress(Exception):
                self._draft(self._model_request())  # this is what the text that was refused had been waiting for
                return
            self._refused_text = refused
        self._draft(request)

    def _check_joint_dynamics(self, names: Set[str]) -> None:
        """Raise InputError for values joint_dynamics.* that contradict each other."""
        for joint in sorted({name.rpartition(".")[0] for name in names}):
            terms = {field.name: self._parameters.values.get(f"{joint}.{field.name}") for field in fields(JointDynamics)}
            try:
                JointDynamics(**{name: value for name, value in terms.items() if value is not None})
            except InputError as error:
                raise InputError(f"{joint}: {error}") from None

    def request(self) -> None:
        """Build what is asked for now, unless that is what was asked for last."""
        request = self._model_request()
        if request.text and request != self._wanted:
            before, self._wanted = self._wanted, request
            try:
                self._worker.submit(self._build, request)
            except BaseException:  # no thread can be started any more
                self._wanted = before
                raise

    def changed(self, names: set[str]) -> None:
        """Parameters changed: build another model if they are the model's. Raises RneaError if they cannot become one."""
        if any(map(_of_the_model, names)):
            before = self._file
            try:
                if ROBOT_FILE.name in names:
                    self._file = self._read_file()
                self.check(names)
            except BaseException as error:
                path, self._file = self._file.path or before.path, before
                if isinstance(error, RneaError) and path and len(TOGETHER & names) == 1:
                    raise InputError(f"{error}{ATOMIC}") from None
                raise
            self.request()
            if not self.settled:
                self._node.get_logger().info(f"accepted, the model is being built: {some(sorted(names))}")

    def close(self) -> None:
        self._worker.shutdown(wait=True, cancel_futures=True)

    def _draft(self, request: ModelRequest) -> None:
        if not request.text and self._wanted is not None:
            raise InputError(f"robot_description is empty, and nothing was received on {self.topic_name} to replace it")
        if request.text and self._bare is not None and self._bare[0] == request.bare():
            request.load(self._bare[1])
        elif request.text:
            request.draft()

    def _read_file(self) -> FileText:
        """The robot file as it is now. Raises RneaError."""
        return FileText.read(self._parameters.values.get(ROBOT_FILE.name, ""))

    @property
    def _text(self) -> str:
        """The parameter's, or else the topic's newest one that is of use."""
        refused = self._current is not None and self._received and self._received == self._refused_text
        received = self._current.text if self._current is not None and refused else self._received
        return self._parameters.values["robot_description"] or received

    def _model_request(self) -> ModelRequest:
        return ModelRequest.of(self._parameters, self._text, self._file)

    def _on_description(self, data: bytes) -> None:
        try:
            message = self._read(data)
        except Malformed as problem:
            self._turn_down(f"{self.topic_name} carried what is no {String.__name__}: {problem}")
            return
        if self._parameters.values["robot_description"]:
            self._node.get_logger().info(f"{self.topic_name} is not used: parameter robot_description is set", once=True)
        elif self._current is not None and self._parameters.lock.on and message.data != self._current.text:
            self._turn_down(str(self._parameters.lock.refusal([self.topic_name])))
            return
        if message.data.strip():
            self._received = message.data
            self.request()
        else:
            self._turn_down(f"{self.topic_name} carried an empty text")

    def _build(self, request: ModelRequest) -> None:
        """In the worker. The result is what the executor will see, so nothing may escape as an exception."""
        if request is not self._wanted:  # overtaken while it waited
            return
        interval = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_INTERVAL)  # tracing is pure Python: let callbacks have the interpreter soon
        try:
            if self._bare is None or self._bare[0] != request.bare():
                self._bare = request.bare(), request.robot()
            self._finished.append((request, self._serve(request.load(self._bare[1]), request)))
        except BaseException as error:  # whatever it is: it must not cost the model that works, nor end this thread in silence
            self._finished.append((request, in_words(error)))
        finally:
            sys.setswitchinterval(interval)
        trigger(self._ready)

    def _deliver(self) -> None:
        """In the executor, between two callbacks."""
        while self._finished:
            request, result = self._finished.popleft()
            if request is not self._wanted:
                continue
            self._answered = request
            reason = result if isinstance(result, str) else self._take(request, result)
            if reason:
                same_text = self._current is not None and self._current.text == request.text
                self._turn_down(reason + self._go_back(), "parameters" if same_text else "robot description")

    def _take(self, request: ModelRequest, robot: Any) -> str:
        """Hand a model on. Returns why that did not work: a defect of ours, after which the node has its old model again."""
        try:
            self._hand_over(robot, self._current is None or self._current.bare() != request.bare())
        except Exception as error:
            if not self._node.context.ok():  # a signal has ended it meanwhile, and with it all publishers
                raise
            self._node.get_logger().error(traceback.format_exc())
            if self._robot is not None:
                self._hand_over(self._robot, True)
            return in_words(error)
        self._current, self._robot = request, robot
        if request.text == self._received:
            self._refused_text = ""
        self._kept = self._parameters.values, self._parameters.given
        self._node.get_logger().info(f"model {robot.model_id}: robot '{robot.name}', {robot.n} joints, "
                                     f"backend {robot.backend}")
        return ""

    def _hand_over(self, robot: Any, another: bool) -> None:
        """another: whether more than the payload is new."""
        if another:
            self._announce(robot)
        self._accept(robot)

    def _go_back(self) -> str:
        """What was asked for cannot be had. Where there is a model, what is asked for from now on is that one. Returns what
        that means for the parameters."""
        if self._current is None:
            return ""
        self._wanted = self._answered = self._current
        if not self._parameters.values["robot_description"] and self._text != self._current.text:
            self._refused_text = self._received  # without it, the parameters may get what they ask for
            self.request()
            return "; it is used as soon as robot_file names a file for it" if self._current.file.path else ""
        self._file = self._current.file
        back = self._parameters.go_back(*self._kept, _of_the_model)
        self.request()  # what was received meanwhile
        values = ", ".join(f"{name} = {value!r:.60}" for name, value in sorted(back.items()))
        return f"; parameters go back to those of the model in use: {values}" if back else ""

    def _announce(self, robot: Any) -> None:
        self._parameters.declare_joints(described(robot))
        for warning in (*robot.warnings, *warnings(self._parameters, robot)):
            self._node.get_logger().warning(warning)

    def _turn_down(self, reason: str, what: str = "robot description") -> None:
        stays = "no model yet" if self._robot is None else f"model {self._robot.model_id} stays"
        self._node.get_logger().error(f"{what} refused, {stays}: {reason}")
        self._refuse(reason)


def _of_the_model(name: str) -> bool:
    """Whether a parameter says what the model is."""
    return name in MODEL_NAMES or name.startswith(TERMS)


def tried(robot: Any) -> Any:
    """The same robot, its torques compiled; refused if it has none to tell at rest, with all joints at zero."""
    try:
        with np.errstate(all="ignore"):
            robot.dynamics(*np.zeros((4, robot.n)))
    except InputError as error:
        raise InputError(f"robot '{robot.name}' at rest, with all joints at zero: {error}; masses, lengths, gravity or "
                         "payload are too large") from None
    return robot
