"""Stand-in for the classes of LeRobot 0.6.1 that lerobot_rnea uses, with the same names, signatures and behaviour.

The behaviour was compared with the real classes once (docs/platforms.md). The simulated arm has three servos
and a gripper and moves immediately to the commanded position, in whole encoder counts.
"""

from __future__ import annotations

import abc
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np

RESOLUTION = 4096
SIZES = {"shoulder_pan": 3.8, "shoulder_lift": 3.4, "elbow_flex": 3.4, "gripper": 1.9}  # rad, of the joints' ranges
URDF = """<robot name="arm"><link name="base"/>
<link name="pan"><inertial><origin xyz="0 0 0.03"/><mass value="0.1"/>
  <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="upper"><inertial><origin xyz="0 0 0.06"/><mass value="0.1"/>
  <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="lower"><inertial><origin xyz="0.06 0 0"/><mass value="0.15"/>
  <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="shoulder_pan" type="revolute"><parent link="base"/><child link="pan"/><origin xyz="0 0 0.05"/>
  <axis xyz="0 0 1"/>
  <limit lower="-1.9" upper="1.9" effort="1.5" velocity="3"/></joint>
<joint name="shoulder_lift" type="revolute"><parent link="pan"/><child link="upper"/><origin xyz="0 0 0.05"/>
  <axis xyz="0 1 0"/>
  <limit lower="-1.7" upper="1.7" effort="1.5" velocity="3"/></joint>
<joint name="elbow_flex" type="revolute"><parent link="upper"/><child link="lower"/><origin xyz="0 0 0.11"/>
  <axis xyz="0 1 0"/>
  <limit lower="-1.5" upper="1.9" effort="1.5" velocity="3"/></joint>
</robot>"""


class MotorNormMode(str, Enum):
    RANGE_0_100 = "range_0_100"
    RANGE_M100_100 = "range_m100_100"
    DEGREES = "degrees"


class ChoiceRegistry:
    """Registry of classes by name, as in draccus."""

    _choices: ClassVar[dict[str, type]]

    def __init_subclass__(cls) -> None:
        if not hasattr(cls, "_choices"):
            cls._choices = {}

    @classmethod
    def register_subclass(cls, name: str) -> Callable[[type], type]:
        def register(choice: type) -> type:
            cls._choices[name] = choice
            return choice

        return register

    @classmethod
    def get_known_choices(cls) -> dict[str, type]:
        return cls._choices

    @classmethod
    def get_choice_name(cls, subcls: type) -> str:
        return next(name for name, choice in cls._choices.items() if choice is subcls)


@dataclass(kw_only=True)
class RobotConfig(ChoiceRegistry):
    id: str | None = None
    calibration_dir: Any = None

    @property
    def type(self) -> str:
        return self.get_choice_name(type(self))


class Robot(abc.ABC):
    name: str

    def __init__(self, config: Any):
        self.robot_type, self.id, self.calibration = self.name, config.id, {}

    @property
    @abc.abstractmethod
    def observation_features(self) -> dict: ...

    @property
    @abc.abstractmethod
    def action_features(self) -> dict: ...

    @property
    @abc.abstractmethod
    def is_connected(self) -> bool: ...

    @property
    @abc.abstractmethod
    def is_calibrated(self) -> bool: ...

    @abc.abstractmethod
    def connect(self, calibrate: bool = True) -> None: ...

    @abc.abstractmethod
    def calibrate(self) -> None: ...

    @abc.abstractmethod
    def configure(self) -> None: ...

    @abc.abstractmethod
    def get_observation(self) -> dict: ...

    @abc.abstractmethod
    def send_action(self, action: dict) -> dict: ...

    @abc.abstractmethod
    def disconnect(self) -> None: ...


@RobotConfig.register_subclass("servo_arm")
@dataclass(kw_only=True)
class ServoArmConfig(RobotConfig):
    unit: str = "degrees"
    ranges: dict = field(default_factory=lambda: dict(SIZES))


class ServoArm(Robot):
    """Arm whose motors are at the last command; `sent` has (time, values) of all commands."""

    name = "servo_arm"

    def __init__(self, config: ServoArmConfig):
        super().__init__(config)
        counts = {motor: round(size * (RESOLUTION - 1) / (2.0 * math.pi)) for motor, size in config.ranges.items()}
        ends = {motor: (2048 - count // 2, 2048 - count // 2 + count) for motor, count in counts.items()}
        self.calibration = {motor: SimpleNamespace(range_min=low, range_max=high, drive_mode=0)
                            for motor, (low, high) in ends.items()}
        self.bus = SimpleNamespace(
            motors={motor: SimpleNamespace(model="servo", norm_mode=MotorNormMode("range_0_100" if motor == "gripper" else
                                                                                  config.unit)) for motor in config.ranges},
            calibration=self.calibration, model_resolution_table={"servo": RESOLUTION})
        self.counts = dict.fromkeys(config.ranges, 2048)
        self.sent: list[tuple[float, dict]] = []
        self.broken = self._open = False

    def value(self, motor: str, count: float) -> float:
        """Return the value of a count, as LeRobot's bus does."""
        low, high = self.calibration[motor].range_min, self.calibration[motor].range_max
        unit = self.bus.motors[motor].norm_mode
        if unit is MotorNormMode.DEGREES:
            return (count - 0.5 * (low + high)) * 360.0 / (RESOLUTION - 1)
        share = (min(max(count, low), high) - low) / (high - low)
        return 100.0 * share if unit is MotorNormMode.RANGE_0_100 else 200.0 * share - 100.0

    def count(self, motor: str, value: float) -> int:
        low, high = self.calibration[motor].range_min, self.calibration[motor].range_max
        unit = self.bus.motors[motor].norm_mode
        if unit is MotorNormMode.DEGREES:
            return int(value * (RESOLUTION - 1) / 360.0 + 0.5 * (low + high))
        share = value / 100.0 if unit is MotorNormMode.RANGE_0_100 else 0.5 + value / 200.0
        return int(min(max(share, 0.0), 1.0) * (high - low) + low)

    @property
    def observation_features(self) -> dict:
        return {f"{motor}.pos": float for motor in self.bus.motors} | {"front": (48, 64, 3)}

    @property
    def action_features(self) -> dict:
        return {f"{motor}.pos": float for motor in self.bus.motors}

    @property
    def is_connected(self) -> bool:
        return self._open

    @property
    def is_calibrated(self) -> bool:
        return True

    def connect(self, calibrate: bool = True) -> None:
        self._open = True

    def calibrate(self) -> None: ...

    def configure(self) -> None: ...

    def get_observation(self) -> dict:
        return {f"{motor}.pos": self.value(motor, count) for motor, count in self.counts.items()} | {"front": np.zeros(3)}

    def send_action(self, action: dict) -> dict:
        if self.broken:
            raise ConnectionError("no status packet")
        self.sent.append((time.monotonic(), dict(action)))
        self.counts.update({key.removesuffix(".pos"): self.count(key.removesuffix(".pos"), value) for key, value in
                            action.items()})
        return action

    def disconnect(self) -> None:
        self._open = False


class ProcessorStep(abc.ABC):
    @abc.abstractmethod
    def __call__(self, transition: dict) -> dict: ...

    @abc.abstractmethod
    def transform_features(self, features: dict) -> dict: ...


class ProcessorStepRegistry:
    _registry: ClassVar[dict[str, type]] = {}

    @classmethod
    def register(cls, name: str) -> Callable[[type], type]:
        def register(step: type) -> type:
            if name in cls._registry:
                raise ValueError(f"{name} is registered")
            cls._registry[name] = step
            return step

        return register

    @classmethod
    def get(cls, name: str) -> type:
        return cls._registry[name]


def make_robot_from_config(config: Any) -> Robot:
    """Return LeRobot's own robots by type, others by the name of their options' class without Config, in its package."""
    if config.type == "servo_arm":
        return ServoArm(config)
    package = sys.modules[type(config).__module__.rpartition(".")[0]]
    return getattr(package, type(config).__name__.removesuffix("Config"))(config)


def modules() -> dict[str, ModuleType]:
    """Return modules by name, for sys.modules."""
    names = ("draccus", "lerobot", "lerobot.robots", "lerobot.robots.config", "lerobot.robots.robot", "lerobot.robots.utils",
             "lerobot.processor")
    found = {name: ModuleType(name) for name in names}
    found["draccus"].ChoiceRegistry = ChoiceRegistry
    found["lerobot.robots.config"].RobotConfig = RobotConfig
    found["lerobot.robots.robot"].Robot = Robot
    found["lerobot.robots.utils"].make_robot_from_config = make_robot_from_config
    found["lerobot.processor"].ProcessorStep = ProcessorStep
    found["lerobot.processor"].ProcessorStepRegistry = ProcessorStepRegistry
    return found
