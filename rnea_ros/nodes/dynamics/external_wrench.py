"""One external wrench: what its topic says, in which frame, how it changes, and where its zero is."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

import numpy as np
from geometry_msgs.msg import WrenchStamped

from rnea_ros import Robot
from rnea_ros.errors import Rejected, near, some
from rnea_ros.estimation.differentiation import LinearTrend
from rnea_ros.nodes.common.diagnostics import Stream
from rnea_ros.nodes.common.parameters import ParameterSet
from rnea_ros.nodes.common.stamps import Jumped, Timeline
from rnea_ros.nodes.fastpath.raw_messages import Reader
from rnea_ros.robots.wrench_frames import WrenchTransform, moving_transform, rigid_transform

NONE = np.zeros(6), np.zeros(6)  # a wrench and its rate
TARE, KEPT = 1_000_000_000, 10_000  # ns, and messages at most, whose mean becomes the zero
SIGNS = {"on_robot": 1.0, "by_robot": -1.0}
PARTS = (("force", "x"), ("force", "y"), ("force", "z"), ("torque", "x"), ("torque", "y"), ("torque", "z"))


class ExternalWrench:
    """Messages of a topic in; the wrench on a link and its rate out, at any joint state."""

    def __init__(self, name: str, parameters: ParameterSet, clock: Callable[[], int], workers: Executor):
        """clock() is what this node's clock shows [ns]; workers compile what a frame needs that moves relative to the link."""
        self.name, self.stream = name, Stream(f"wrench.{name}")
        self._parameters, self._workers = parameters, workers
        self.link: str = self.setting("link")
        self._robot: Robot | None = None
        self._transforms: dict[str, WrenchTransform | Future] = {}  # by frame; of those that move, whether it is compiled
        self._read, self._timeline = Reader(WrenchStamped), Timeline(clock)
        self._trend, self._frame = LinearTrend(6), ""
        self._latest: deque[tuple[int, str, np.ndarray]] = deque(maxlen=KEPT)  # arrival, frame, as it came
        self._apart = 0.0  # between the stamps of the last joint state and the last message [s]
        self._zeros: dict[str, np.ndarray] = {}  # by frame: a sensor's offset turns with the sensor

    def setting(self, name: str):
        return self._parameters.values[f"wrenches.{self.name}.{name}"]

    def use(self, tree: Robot) -> None:
        """Another model: the tree that has the link. What has been received survives if only its payload is another."""
        if self._robot is None or tree.model is not self._robot.model:
            self._transforms.clear()
            self.forget()
        self._robot = tree

    def forget(self) -> None:
        """The clock was set, or the model is another."""
        self._timeline.forget()
        self._clear()

    def _clear(self) -> None:
        self._trend.clear()
        self.stream.arrival = None

    # ------------------------------------------------------------------ in

    def on_message(self, data: bytes) -> None:
        """Callback of the subscription."""
        arrival = time.monotonic_ns()
        self.stream.received += 1
        try:
            self.stream.accept(arrival, self.take(data, arrival))
        except Jumped as refusal:
            self._clear()
            self.stream.drop(refusal)
        except Rejected as refusal:
            self.stream.drop(refusal)

    def take(self, data: bytes, arrival: int = 0) -> int:
        """The stamp of a message [ns], whose wrench is kept. arrival: by the steady clock [ns]. Raises Rejected."""
        message: WrenchStamped = self._read(data)
        six = [getattr(getattr(message.wrench, part), axis) for part, axis in PARTS]
        if not all(map(math.isfinite, six)):
            wrong = (f"{part}.{axis} = {value}" for (part, axis), value in zip(PARTS, six) if not math.isfinite(value))
            raise Rejected("wrench_not_finite", some(wrong))
        frame = message.header.frame_id or self.link
        self._transform(frame)
        stamp = self._timeline.advance(message.header.stamp)
        if frame != self._frame:  # other axes: no line leads from the numbers before to these
            self._trend.clear()
            self._frame = frame
        self._latest.append((arrival, frame, np.array(six)))
        self._trend.push(stamp, self._latest[-1][2], self.setting("window"))
        return stamp

    def _transform(self, frame: str) -> WrenchTransform | None:
        """From a frame that is fixed in the link; None where it moves, and what it needs is compiled. Raises Rejected."""
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
            raise Rejected("frame_not_ready", f"what frame '{frame}' needs is being compiled", passing=True)
        found.result()
        return None

    # ------------------------------------------------------------------ out

    @property
    def age(self) -> float:
        """Seconds since the last usable message arrived; infinite where there is none."""
        return self.stream.age(time.monotonic_ns())

    def at(self, stamp: int, q: np.ndarray, qd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The wrench (6,) BY the environment ON the link, in its frame, and the rate of the six numbers, at a joint state of a
        stamp [ns]. Raises Rejected if it is out of date and that is to stop the node."""
        age, timeout = self.age, self.setting("timeout")
        policy = self.setting("on_timeout") if age > timeout else ""
        if policy == "stop":
            raise Rejected("wrench_timeout", f"wrench '{self.name}': {self._lateness(age)}")
        if not len(self._trend) or policy == "drop":
            return NONE
        value, rate, self._apart = self._trend.newest, NONE[1], abs(stamp - self._trend.stamp) * 1e-9
        if not policy and self.setting("rate") == "estimated":
            rate = self._trend.slope()
            if self._apart <= timeout:  # else the stamps are of different clocks
                value = self._trend.at(stamp)
        value = value - self._zeros.get(self._frame, 0.0)
        sign = SIGNS[self.setting("sign")]
        assert self._robot is not None
        transform = self._transform(self._frame) or moving_transform(self._robot, self.link, self._frame, q, qd)
        return transform(sign * value, sign * rate)

    def warnings(self) -> list[str]:
        """What the user should know of it."""
        age = self.age
        if age > self.setting("timeout"):
            meaning = {"drop": "it counts as zero", "stop": "joint states are refused",
                       "hold": "it counts as zero" if math.isinf(age) else "its last value is held"}
            return [f"wrench '{self.name}': {self._lateness(age)}: {meaning[self.setting('on_timeout')]}"]
        if self._apart > self.setting("timeout"):
            return [f"wrench '{self.name}': its stamps and those of the joint states are {self._apart:.3f} s apart, "
                    f"wrenches.{self.name}.timeout is {self.setting('timeout'):g} s: the newest value counts, at whatever "
                    "instant. Use one clock for both"]
        if self.setting("rate") == "estimated" and len(self._trend) == 1 < self.stream.received:
            return [f"wrench '{self.name}' comes so rarely that wrenches.{self.name}.window holds a single message: its rate "
                    "counts as zero"]
        return []

    def description(self, topic: str) -> str:
        """For people, where the model is told."""
        by = "by the environment on the robot" if self.setting("sign") == "on_robot" else "by the robot on the environment"
        tool = "; it includes the tool: this link and what hangs on it have no mass" if self.setting("includes_tool") else ""
        return f"external wrench '{self.name}' on link '{self.link}' counts: {topic}, exerted {by}{tool}"

    @staticmethod
    def _lateness(age: float) -> str:
        return "no usable message yet" if math.isinf(age) else f"no usable message for {age:.3f} s"

    # ------------------------------------------------------------------ zero

    def tare(self) -> tuple[bool, str]:
        """Make the mean of the last second the zero. Whether that was done, and what it is, or why not."""
        since = time.monotonic_ns() - TARE
        received = [six for arrival, frame, six in self._latest if arrival >= since and frame == self._frame]
        if not received:
            return False, f"{self.name}: no message in the last second, its zero stays"
        zero = self._zeros[self._frame] = np.mean(received, axis=0)
        numbers = " ".join(f"{number:.6g}" for number in zero)
        return True, f"{self.name}: {numbers} [N, N m] in frame '{self._frame}', the mean of {len(received)}, is zero now"
