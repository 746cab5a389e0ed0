"""Robot description of a node: from a parameter or latched topic, possibly late, repeated, replaced or invalid.

Building a model takes 0.1 to 1 s and runs in a thread; the executor receives the finished model between two callbacks, by a
guard condition. An invalid description never replaces a valid model, and parameters that make no model are reset to those of
the active model: reported and used parameters are always equal. `ModelRequest` is all that a model is made of.
"""

from __future__ import annotations

import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import String

from rnea_ros import InputError, JointDynamics, RneaError, Robot, load
from rnea_ros.errors import in_words, shown, some
from rnea_ros.model import robot_file
from rnea_ros.model.robot_file import RobotFile
from rnea_ros.model.urdf_reader import links_beyond, movable_joints, without_mass
from rnea_ros.nodes.common.cdr import Malformed, Reader
from rnea_ros.nodes.common.executor import trigger
from rnea_ros.nodes.common.model_facts import ineffective_parameters, joint_parameters
from rnea_ros.nodes.common.parameter_table import MODEL, ROBOT_FILE
from rnea_ros.nodes.common.parameters import ParameterSet, Values
from rnea_ros.nodes.common.topics import LATCHED

SUFFIXES = (".yaml", ".yml")  # of a robot file
TERMS = "joint_dynamics."
DRIVES = ("rotor_inertia", "gear_ratio")  # of these; the others are friction
GRAVITY = tuple(next(entry.default for entry in MODEL if entry.name == "gravity"))


@dataclass(frozen=True)
class FileText:
    """Robot file at the time of reading: path and bytes."""

    path: str = ""
    data: bytes = b""

    @classmethod
    def read(cls, path: str) -> FileText:
        """Read a robot file. Raises RneaError. Any process in the ROS domain can set the path and sees the error: only files
        with the name of a robot file are opened, never a pipe or device.
        """
        if not path:
            return cls()
        if path not in robot_file.profile_names() and Path(path).suffix not in SUFFIXES:
            raise InputError(f"robot_file is {shown(path)}: a path that ends with {' or '.join(SUFFIXES)} is needed, or the "
                             "name of a profile, which `rnea robot-file --list` prints")
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f"robot_file is {shown(path)}, which is no regular file")
        return cls(path, robot_file.contents(path))


@dataclass(frozen=True)
class ModelRequest:
    """Complete description of a model; equal requests make equal models."""

    text: str
    file: FileText
    backend: str
    gravity: tuple[float, ...]
    use_friction: bool
    terms: tuple[tuple[str, float], ...]  # parameters joint_dynamics.* that the user gave
    payload: tuple[str, float, tuple[float, ...], tuple[float, ...]]
    felt: tuple[str, ...] = ()  # links that have no mass here, nor what hangs on them: a sensor's wrench stands for them

    @classmethod
    def of(cls, parameters: ParameterSet, text: str, file: FileText) -> ModelRequest:
        """Return the request of a robot description, a robot file and parameters."""
        values = parameters.values
        return cls(
            text=text,
            file=file,
            backend=values["backend"],
            gravity=tuple(values["gravity"]),
            use_friction=values["use_friction"],
            terms=tuple(sorted((name, value) for name, value in parameters.given.items() if name.startswith(TERMS))),
            payload=(values["payload.link"], values["payload.mass"],
                     tuple(values["payload.com"]), tuple(values["payload.inertia"])),
            felt=tuple(sorted({values[f"wrenches.{name}.link"] for name in values.get("wrenches.names", ())
                               if name and values[f"wrenches.{name}.includes_tool"]})),
        )

    def bare(self) -> ModelRequest:
        """Return the request without the payload, which can change without compilation."""
        return replace(self, payload=("", 0.0, (), ()))

    def plain(self) -> ModelRequest:
        """Return the request of the text alone."""
        return replace(self.bare(), terms=())

    def draft(self) -> Robot:
        """Return the robot with its payload and without compiled kernels. Raises RneaError."""
        return self.load(replace(self, backend="reference").robot())

    def robot(self) -> Robot:
        """Return the robot without its payload. Raises RneaError."""
        # as bytes: a text is never mistaken for the path of a file to open
        text = self.text.encode(errors="replace")
        terms = _by_joint(self.terms, movable_joints(text)) if self.terms else {}
        if self.felt:
            text = without_mass(text, self.felt)
        if self.file.path:
            file = robot_file.read(robot_file.parsed(self.file.data, self.file.path))
            self._refuse_felt(file.section("payloads"))
            return load(text, file.over(_sections(file, terms)), backend=self.backend, friction=self.use_friction or None,
                        gravity=None if self.gravity == GRAVITY else self.gravity)
        draft = Robot.from_urdf(text, backend="reference", friction=self.use_friction)
        known = {link.joint: replace(link.term, **terms[link.joint]) for link in draft.model.links if link.joint in terms}
        return Robot.from_model(draft.model.with_joint_dynamics(known), self.backend, self.gravity)

    def load(self, robot: Robot) -> Robot:
        """Return a robot with the payload added. Raises RneaError."""
        link, mass, com, (xx, xy, xz, yy, yz, zz) = self.payload
        if not link and mass == 0.0:
            return robot
        self._refuse_felt([link] if mass > 0.0 else [])
        try:
            return robot.with_payload(link, mass, com, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
        except RneaError as error:
            hint = "" if link else " (set payload.link first, or payload.link and payload.mass in one atomic call)"
            raise InputError(f"{error}{hint}") from None

    def _refuse_felt(self, payloads: Iterable[str]) -> None:
        """Raise InputError for a payload whose wrench a sensor already measures."""
        beyond = links_beyond(self.text.encode(errors="replace"), self.felt) if self.felt else set()
        if twice := sorted(beyond.intersection(payloads)):
            raise InputError(f"the payload on link {some(twice, quoted=True)} hangs on {some(self.felt, quoted=True)}, of "
                             "which a wrench with includes_tool already contains: it would count twice. Take "
                             "the payload away, or set includes_tool to false")


Serve = Callable[[Robot, ModelRequest], Any]  # makes of a robot what a node works with


def _by_joint(terms: Iterable[tuple[str, float]], joints: Set[str]) -> dict[str, dict[str, float]]:
    """Return the parameters joint_dynamics.* of these joints, by joint; those of other joints wait until a robot has them."""
    found: dict[str, dict[str, float]] = {}
    for name, value in terms:
        joint, _, quantity = name.removeprefix(TERMS).rpartition(".")
        if joint in joints:
            found.setdefault(joint, {})[quantity] = value
    return found


def _sections(file: RobotFile, terms: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """Return the file's drives and friction, overridden by parameters; a joint's friction is replaced completely."""
    drives, friction = (dict(file.section(name)) for name in ("drives", "friction"))
    for joint, given in terms.items():
        drive = {key: value for key, value in drives.get(joint, {}).items() if key not in given}
        drives[joint] = drive | {key: value for key, value in given.items() if key in DRIVES}
        friction[joint] = friction.get(joint, {}) | {key: value for key, value in given.items() if key not in DRIVES}
    return {"drives": drives, "friction": friction} if terms else {}


TOGETHER = frozenset(("robot_description", ROBOT_FILE.name))
ATOMIC = ("; to change robot and robot file, set robot_description and robot_file in one call of the service "
          "~/set_parameters_atomically")
MODEL_NAMES = frozenset(entry.name for entry in MODEL)
WAIT_STEP_S = 0.005


class RobotDescriptionSource:
    """Builder of the model that parameters and topic describe.

    accept(robot) is called with every new model, after the parameters of its joints are declared.
    refuse(reason) is called for a model that cannot be built. The executor calls both.
    serve(robot, request) is called before, in the building thread: it compiles what the node needs, or raises RneaError.
    accept receives its result.
    """

    def __init__(self, node: Node, parameters: ParameterSet, accept: Callable[[Any], None],
                 refuse: Callable[[str], None], serve: Serve = lambda robot, request: tried(robot)):
        """Create a request. Raises RneaError for an unreadable robot file."""
        self._node, self._parameters, self._accept, self._refuse, self._serve = node, parameters, accept, refuse, serve
        self._file = self._read_file()
        self._received = ""  # on the topic
        self._refusal = ""  # reason of the last rejection
        self._refused_text = ""  # of what was received, the last one that made no model while there was another
        self._wanted: ModelRequest | None = None  # the newest request, also after a failure
        self._bare: tuple[ModelRequest, Robot] | None = None  # the last one built, without payload
        self._current: ModelRequest | None = None  # the one accepted last,
        self._robot: Any = None  # what was made of it,
        self._kept: tuple[Values, Values] = {}, {}  # and the parameters, all and of joints, that it was made with
        self._answered: ModelRequest | None = None  # the last one accepted or refused
        self._finished: deque[tuple[ModelRequest, Any]] = deque()  # and what was served, or why nothing was
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._ready = node.create_guard_condition(self._deliver)
        self._read = Reader(String)
        self._topic = node.create_subscription(String, "robot_description", self._on_description, LATCHED, raw=True)
        self._topic.is_rare = True
        self.request()

    @property
    def topic_name(self) -> str:
        return self._topic.topic_name

    @property
    def building(self) -> bool:
        """Return whether a first model is pending."""
        return self._wanted is not None and self._current is None

    @property
    def settled(self) -> bool:
        """Return whether the last request was accepted or rejected."""
        return self._wanted is self._answered

    def wait(self) -> str:
        """Build the requested model now; return why it cannot be built, or nothing. Without a description there is none."""
        while not self.settled:
            time.sleep(WAIT_STEP_S)
            self._deliver()
        return "" if self._wanted is self._current else self._refusal

    def check(self, names: Set[str]) -> None:
        """Raise RneaError if the current parameters cannot make a model; `names` have just changed.

        Compiles nothing, but reads the whole robot, which takes milliseconds, and tenths of a second with loops. Drive and
        friction values, of which there are hundreds, are checked separately. A later failure resets the parameters.
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
        """Build the requested model, unless it is the last one requested."""
        request = self._model_request()
        if request.text and request != self._wanted:
            before, self._wanted = self._wanted, request
            try:
                self._worker.submit(self._build, request)
            except BaseException:  # no thread can be started any more
                self._wanted = before
                raise

    def changed(self, names: set[str]) -> None:
        """Build another model if the changed parameters concern it. Raises RneaError if they cannot make one."""
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
        """Return the robot file as it is now. Raises RneaError."""
        return FileText.read(self._parameters.values.get(ROBOT_FILE.name, ""))

    @property
    def _text(self) -> str:
        """Return the description of the parameter, or the newest usable one of the topic."""
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
        """Build in the worker thread; every exception becomes a result for the executor."""
        if request is not self._wanted:  # overtaken while it waited
            return
        try:
            if self._bare is None or self._bare[0] != request.bare():
                self._bare = request.bare(), request.robot()
            self._finished.append((request, self._serve(request.load(self._bare[1]), request)))
        except BaseException as error:  # any error is reported: the model in use stays
            self._finished.append((request, in_words(error)))
        trigger(self._ready)

    def _deliver(self) -> None:
        """Receive a result in the executor, between two callbacks."""
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
        """Activate a model. Returns the reason of a failure, which is an internal error; the old model then stays active."""
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
        """another : whether more than the payload changed."""
        if another:
            self._announce(robot)
        self._accept(robot)

    def _go_back(self) -> str:
        """Reject the request. With an active model its request is restored. Returns the effect on the parameters."""
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
        self._parameters.declare_joints(joint_parameters(robot))
        for warning in (*robot.warnings, *ineffective_parameters(self._parameters, robot)):
            self._node.get_logger().warning(warning)

    def _turn_down(self, reason: str, what: str = "robot description") -> None:
        self._refusal = reason
        stays = "no model yet" if self._robot is None else f"model {self._robot.model_id} stays"
        self._node.get_logger().error(f"{what} refused, {stays}: {reason}")
        self._refuse(reason)


def _of_the_model(name: str) -> bool:
    """Return whether a parameter is part of the model."""
    return name in MODEL_NAMES or name.startswith(TERMS)


def tried(robot: Any) -> Any:
    """Return the robot with compiled torques; raises if it has none at rest with all joints at zero."""
    try:
        with np.errstate(all="ignore"):
            robot.dynamics(*np.zeros((4, robot.n)))
    except InputError as error:
        raise InputError(f"robot '{robot.name}' at rest, with all joints at zero: {error}; masses, lengths, gravity or "
                         "payload are too large") from None
    return robot
