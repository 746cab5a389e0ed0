"""External wrenches: measured on topics that parameters name, as loads of the dynamics, with their tare.

docs/dynamics_node.md describes topics and parameters.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import partial

import numpy as np
from geometry_msgs.msg import WrenchStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_srvs.srv import Trigger

from rnea_ros import InputError, Loads, RneaError
from rnea_ros.errors import Rejected, near, some
from rnea_ros.estimation.differentiation import LinearTrend
from rnea_ros.nodes.common.cdr import Reader
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.pairing import PairedInput
from rnea_ros.nodes.common.parameter_table import WRENCHES
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.topics import Jumped, Timeline
from rnea_ros.nodes.dynamics.served_robot import LoadsOf, ServedRobot
from rnea_ros.robots.conditions import WrenchTransform, moving_transform, rigid_transform
from rnea_ros.robots.tree import TreeDynamics

ZERO_WRENCH = np.zeros(6), np.zeros(6)  # and its rate
TARE_NS, MAX_TARE_MESSAGES = 1_000_000_000, 10_000  # window of the mean that becomes the zero
SIGN_OF = {"on_robot": 1.0, "by_robot": -1.0}
COMPONENTS = (("force", "x"), ("force", "y"), ("force", "z"), ("torque", "x"), ("torque", "y"), ("torque", "z"))


class ExternalWrench:
    """One external wrench: messages of a topic in; the wrench on a link and its rate out, at any joint state."""

    def __init__(self, name: str, parameters: ParameterSet, clock: Callable[[], int], workers: Executor):
        """clock() returns the node's time [ns]; workers compile the transforms of frames that move relative to the link."""
        self.name, self.stream = name, Stream(f"wrench.{name}")
        self._parameters, self._workers = parameters, workers
        self.link: str = self.setting("link")
        self._robot: TreeDynamics | None = None
        self._transforms: dict[str, WrenchTransform | Future] = {}  # by frame; a Future for a frame that moves
        self._reader, self._timeline = Reader(WrenchStamped), Timeline(clock)
        self._trend, self._frame = LinearTrend(6), ""
        self._latest: deque[tuple[int, str, np.ndarray]] = deque(maxlen=MAX_TARE_MESSAGES)  # arrival, frame, values
        self._stamp_gap = 0.0  # between the stamps of the last joint state and the last message [s]
        self._zeros: dict[str, np.ndarray] = {}  # by frame: a sensor's offset turns with the sensor

    def setting(self, name: str):
        return self._parameters.values[f"wrenches.{self.name}.{name}"]

    def use(self, tree: TreeDynamics) -> None:
        """Use another model: the tree that has the link. Samples are kept where only the payload differs."""
        if self._robot is None or tree.model is not self._robot.model:
            self._transforms.clear()
            self.forget()
        self._robot = tree

    def forget(self) -> None:
        """Discard all samples: the clock was set, or the model is another."""
        self._timeline.forget()
        self._clear()

    def _clear(self) -> None:
        self._trend.clear()
        self.stream.arrival = None

    # ------------------------------------------------------------------ in

    def on_message(self, data: bytes) -> None:
        """Process a message of the subscription."""
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            self.stream.accept(arrival, self.read(data, arrival))
        except Jumped as refusal:
            self._clear()
            self.stream.drop(refusal)
        except Rejected as refusal:
            self.stream.drop(refusal)

    def read(self, data: bytes, arrival: int = 0) -> int:
        """Store the wrench of a message and return its stamp [ns]. arrival: by the steady clock [ns]. Raises Rejected."""
        message: WrenchStamped = self._reader(data)
        six = [getattr(getattr(message.wrench, part), axis) for part, axis in COMPONENTS]
        if not all(map(math.isfinite, six)):
            wrong = (f"{part}.{axis} = {value}" for (part, axis), value in zip(COMPONENTS, six) if not math.isfinite(value))
            raise Rejected("wrench_not_finite", some(wrong))
        frame = message.header.frame_id or self.link
        self._transform(frame)
        stamp = self._timeline.advance(message.header.stamp)
        if frame != self._frame:  # other axes: earlier numbers cannot be compared with these
            self._trend.clear()
            self._frame = frame
        self._latest.append((arrival, frame, np.array(six)))
        self._trend.push(stamp, self._latest[-1][2], self.setting("window"))
        return stamp

    def _transform(self, frame: str) -> WrenchTransform | None:
        """Transform from a frame that is fixed to the link; None for a compiled one of a frame that moves. Raises Rejected."""
        robot = self._robot
        if robot is None:
            raise Rejected("no_model", "there is no model yet", passing=True)
        if frame not in self._transforms:
            if frame not in robot.model.frames:
                raise Rejected("unknown_frame", f"frame_id '{frame:.80}' is no link of robot '{robot.name}'; its links: "
                               f"{some(robot.model.frames)}; an empty one is link '{self.link}'"
                               f"{near(frame, robot.model.frames)}")
            rest = np.zeros((2, robot.n))
            self._transforms[frame] = rigid_transform(robot.model, self.link, frame) or self._workers.submit(
                moving_transform, robot, self.link, frame, *rest)
        found = self._transforms[frame]
        if not isinstance(found, Future):
            return found
        if not found.done():
            raise Rejected("frame_not_ready", f"the transform of frame '{frame}' is being compiled", passing=True)
        found.result()
        return None

    # ------------------------------------------------------------------ out

    @property
    def age(self) -> float:
        """Time since the last usable message arrived [s]; infinite where there is none."""
        return self.stream.age(time.monotonic_ns())

    def at(self, stamp: int, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the wrench (6,) BY the environment ON the link, in its frame, and its rate, at a stamp [ns].

        q, qd: joint state at that stamp. Raises Rejected where the wrench is out of date and on_timeout is "stop".
        """
        age, timeout = self.age, self.setting("timeout")
        policy = self.setting("on_timeout") if age > timeout else ""
        if policy == "stop":
            raise Rejected("wrench_timeout", f"wrench '{self.name}': {self._lateness(age)}")
        if not len(self._trend) or policy == "drop":
            return ZERO_WRENCH
        value, rate, self._stamp_gap = self._trend.newest, ZERO_WRENCH[1], abs(stamp - self._trend.stamp) * 1e-9
        if not policy and self.setting("rate") == "estimated":
            rate = self._trend.slope()
            if self._stamp_gap <= timeout:  # otherwise the stamps are of different clocks
                value = self._trend.value_at(stamp)
        value = value - self._zeros.get(self._frame, 0.0)
        sign = SIGN_OF[self.setting("sign")]
        assert self._robot is not None
        transform = self._transform(self._frame) or moving_transform(self._robot, self.link, self._frame, q, qd)
        return transform(sign * value, sign * rate)

    def warnings(self) -> list[str]:
        """Return warnings about its messages."""
        age = self.age
        if age > self.setting("timeout"):
            meaning = {"drop": "it counts as zero", "stop": "joint states are refused",
                       "hold": "it counts as zero" if math.isinf(age) else "its last value is held"}
            return [f"wrench '{self.name}': {self._lateness(age)}: {meaning[self.setting('on_timeout')]}"]
        if self._stamp_gap > self.setting("timeout"):
            return [f"wrench '{self.name}': its stamps and those of the joint states are {self._stamp_gap:.3f} s apart, "
                    f"wrenches.{self.name}.timeout is {self.setting('timeout'):g} s: the newest value is used at any "
                    "instant. Use one clock for both"]
        if self.setting("rate") == "estimated" and len(self._trend) == 1 < self.stream.received:
            return [f"wrench '{self.name}' arrives so rarely that wrenches.{self.name}.window holds a single message: its "
                    "rate counts as zero"]
        return []

    def description(self, topic: str) -> str:
        """Return a sentence for the log: topic, link and sign."""
        by = "by the environment on the robot" if self.setting("sign") == "on_robot" else "by the robot on the environment"
        tool = "; it includes the tool: this link and its children count without mass" if self.setting("includes_tool") else ""
        return f"external wrench '{self.name}' on link '{self.link}' counts: {topic}, exerted {by}{tool}"

    @staticmethod
    def _lateness(age: float) -> str:
        return "no usable message yet" if math.isinf(age) else f"no usable message for {age:.3f} s"

    # ------------------------------------------------------------------ zero

    def tare(self) -> tuple[bool, str]:
        """Make the mean of the last second the zero. Return whether that was done, and a message."""
        since = time.monotonic_ns() - TARE_NS
        received = [six for arrival, frame, six in self._latest if arrival >= since and frame == self._frame]
        if not received:
            return False, f"{self.name}: no message in the last second, its zero stays"
        zero = self._zeros[self._frame] = np.mean(received, axis=0)
        numbers = " ".join(f"{number:.6g}" for number in zero)
        return True, f"{self.name}: {numbers} [N, N m] in frame '{self._frame}', the mean of {len(received)}, is zero now"


NAMES = WRENCHES[0]


def wrench_names(node: Node) -> list[str]:
    """Return the names of a node's external wrenches, from its parameters. Raises InputError."""
    given = node.get_parameter(NAMES.name).value if node.has_parameter(NAMES.name) else NAMES.default
    problem = NAMES.problem(given)
    if problem:
        raise InputError(problem)
    names = [name for name in given if name]
    wrong = [name for name in names if not re.fullmatch("[A-Za-z][A-Za-z0-9_]*", name)]
    twice = [name for name, count in Counter(names).items() if count > 1]
    if wrong or twice:
        raise InputError(f"{NAMES.name} has {some(wrong or twice, quoted=True)}"
                         + ("; a letter, then letters, digits and _ make a name" if wrong else " more than once"))
    return names


class ExternalWrenches:
    """All external wrenches of a node, at least one."""

    def __init__(self, node: Node, parameters: ParameterSet, names: Sequence[str], qos: QoSProfile,
                 received: Callable[[], None] = lambda: None):
        """received() is called after each message. Raises InputError for a wrench without link."""
        idle = [name for name in names if not parameters.values[f"wrenches.{name}.link"]]
        if idle:
            raise InputError("; ".join(f"wrenches.{name}.link is empty; it names the link that it acts on" for name in idle))
        self._workers = ThreadPoolExecutor(max_workers=1, thread_name_prefix="frames")
        self._all = [ExternalWrench(name, parameters, lambda: node.get_clock().now().nanoseconds, self._workers)
                     for name in names]
        self._links = tuple(dict.fromkeys(wrench.link for wrench in self._all))
        def receive(wrench: ExternalWrench, data: bytes) -> None:
            wrench.on_message(data)
            received()

        self._topics = [node.create_subscription(WrenchStamped, wrench.setting("topic"), partial(receive, wrench), qos,
                                                 raw=True) for wrench in self._all]
        node.create_service(Trigger, "~/tare", self._tare)
        node.get_logger().info("; ".join(self.descriptions()))

    @property
    def streams(self) -> list[Stream]:
        """Counts of messages of each wrench."""
        return [wrench.stream for wrench in self._all]

    def paired(self) -> list[PairedInput]:
        """Return the wrenches as inputs to be paired with joint states."""
        return [PairedInput(wrench.setting("topic").replace("<wrench>", wrench.name), wrench.stream,
                            partial(wrench.setting, "timeout")) for wrench in self._all]

    def check(self, robot: ServedRobot) -> None:
        """Raise InputError for a link that the robot does not have."""
        for wrench in self._all:
            try:
                robot.model.frame(wrench.link)
            except RneaError as error:
                raise InputError(f"wrenches.{wrench.name}.link: {error}") from None

    def nothing(self, q: np.ndarray, qd: np.ndarray) -> Loads:
        """Return zero loads on the links of the wrenches."""
        return Loads(*(dict.fromkeys(self._links, np.zeros(6)) for _ in range(2)))

    def use(self, robot: ServedRobot) -> None:
        """Use a model."""
        for wrench in self._all:
            wrench.use(robot.tree)

    def forget(self) -> None:
        """Discard all samples: the clock was set."""
        for wrench in self._all:
            wrench.forget()

    def loads(self, stamp: int) -> LoadsOf:
        """Return a function of q, qd that gives all wrenches at the stamp [ns] of a joint state. It raises Rejected."""
        def at(q: np.ndarray, qd: np.ndarray) -> Loads:
            wrenches, rates = (dict.fromkeys(self._links, np.zeros(6)) for _ in range(2))
            for wrench in self._all:
                value, rate = wrench.at(stamp, q, qd)
                wrenches[wrench.link] = wrenches[wrench.link] + value
                rates[wrench.link] = rates[wrench.link] + rate
            return Loads(wrenches, rates)

        return at

    def descriptions(self) -> list[str]:
        """Return a sentence about each wrench."""
        return [wrench.description(topic.topic_name) for wrench, topic in zip(self._all, self._topics)]

    def warnings(self) -> list[str]:
        """Return warnings about the messages of all wrenches."""
        return [warning for wrench in self._all for warning in wrench.warnings()]

    def close(self) -> None:
        self._workers.shutdown(wait=True, cancel_futures=True)

    def _tare(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        done = [wrench.tare() for wrench in self._all]
        response.success, response.message = all(good for good, _ in done), "; ".join(text for _, text in done)
        return response
