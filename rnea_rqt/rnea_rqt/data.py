"""Data of the widgets, without Qt and ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Quantity(NamedTuple):
    """One column of bars. A share has no unit: 1 is its limit."""

    key: str  # its field in rnea_msgs/JointDynamics
    title: str
    rotary: str  # unit of a joint that turns
    prismatic: str  # unit of one that slides

    @property
    def share(self) -> bool:
        return not self.rotary


QUANTITIES = (
    Quantity("effort", "torque", "N m", "N"),
    Quantity("effort_rate", "torque rate", "N m/s", "N/s"),
    Quantity("commanded_effort_rate_utilization", "commanded torque rate", "", ""),
    Quantity("velocity", "velocity", "rad/s", "m/s"),
    Quantity("voltage", "voltage", "V", "V"),
    Quantity("current", "current", "A", "A"),
    Quantity("motor_velocity", "motor velocity", "rad/s", "rad/s"),
    Quantity("power", "power", "W", "W"),
    Quantity("speed_torque_utilization", "speed-torque region", "", ""),
    Quantity("thermal_load", "thermal load", "", ""),
)
INDEX = {quantity.key: number for number, quantity in enumerate(QUANTITIES)}
COMMANDS = ("pause", "resume", "stop")  # services of scaling_node
OPTIONAL = ("commanded_effort_rate_utilization", "current", "motor_velocity", "speed_torque_utilization",
            "thermal_load")  # columns that are hidden at first


def unknown(rows: int) -> np.ndarray:
    """(quantities, rows) of NaN."""
    return np.full((len(QUANTITIES), rows), np.nan)


@dataclass(frozen=True)
class Robot:
    """Rows and their limits: joints, then the supplies that joints share. Limits (quantities, rows), NaN: unknown."""

    name: str
    rows: tuple[str, ...]
    rotary: tuple[bool, ...]
    joints: int  # of the rows
    low: np.ndarray  # what counts below zero, as a negative number
    high: np.ndarray
    model_id: str = ""

    def unit(self, quantity: int, row: int) -> str:
        kind = QUANTITIES[quantity]
        return kind.rotary if self.rotary[row] else kind.prismatic


@dataclass(frozen=True)
class Sample:
    """All quantities at one instant: (quantities, rows), NaN where unknown."""

    stamp: float  # s
    rows: tuple[str, ...]
    value: np.ndarray
    std: np.ndarray  # standard deviations
    use: np.ndarray  # shares of the limits, as the node publishes them


def utilization(value: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Share of the limit on this side of zero; NaN where it is unknown."""
    limit = np.where(value < 0.0, -low, high)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.abs(value) / np.where(limit > 0.0, limit, np.nan)


@dataclass(frozen=True)
class Motion:
    """State of a scaled motion; see rnea_msgs/ScaledMotion."""

    number: int
    phase: str  # moving, paused, stopping, ended
    progress: float  # 0 to 1
    speed: float  # share of the planned speed, NaN where the plan rests
    delay: float  # s
    override: float  # 0 to 1
    utilization: float
    joint: str  # that binds
    limit: str  # that binds


class Light(NamedTuple):
    """A diagnostic status."""

    name: str
    level: int  # 0 well, 1 warning, 2 error, 3 stale
    message: str
    values: tuple[tuple[str, str], ...] = ()


class PolicyStatus(NamedTuple):
    """Status of the action chunks that scaling_node executes; NaN where unknown.

    received, rate : number of chunks, and their rate [Hz]
    rejected       : (reason, number), most frequent first
    slowed_share   : share of the accepted chunks that limits slowed
    binding        : limit that bound last
    delay, age     : time behind the policy, and age of the observation that is followed [s]
    last_drop      : the last rejection, in a sentence
    """

    received: int
    rate: float
    rejected: tuple[tuple[str, int], ...]
    slowed_share: float
    binding: str
    delay: float
    age: float
    last_drop: str


class Payload(NamedTuple):
    """Payload of a link."""

    link: str
    mass: float  # kg
    com: tuple[float, float, float]  # m, in the link's frame


@dataclass
class Update:
    """Data that has arrived since the last update."""

    robot: Robot | None = None
    samples: list[Sample] = field(default_factory=list)
    motion: Motion | None = None
    policy: PolicyStatus | None = None
    lights: tuple[Light, ...] = ()  # all of them
    age: float = np.inf  # of the newest sample [s]
    rate: float = 0.0  # samples for each second


class Peaks:
    """The least and the greatest value that each bar has reached since the last reset."""

    def __init__(self, rows: int = 0):
        self.low, self.high = unknown(rows), unknown(rows)

    def reset(self, rows: int) -> None:
        self.low, self.high = unknown(rows), unknown(rows)

    def update(self, samples: Sequence[Sample]) -> None:
        for sample in samples:
            np.fmin(self.low, sample.value, out=self.low)
            np.fmax(self.high, sample.value, out=self.high)
