"""Fuzzing targets of nodes: serialized messages, stamps and numbers, parameters, requests."""

from __future__ import annotations

import os
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import rclpy
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState

from fuzz.mutation import Choices
from fuzz.target import Target, Try, WrongNumber
from rnea_msgs.msg import JointMotion
from rnea_ros import Robot
from rnea_ros.nodes.common.cdr import SIZES
from rnea_ros.nodes.common.parameter_table import QUERY_TABLE
from rnea_ros.nodes.dynamics.node import DynamicsNode
from rnea_ros.nodes.query_node import SERVICES, fill_response, request_values
from support import fuzz_messages
from support.node_bench import ARM, NAMES
from support.ros_helpers import free_domain, stamp

LINKS = ("base", "upper", "fore", "wrist", "hand", "tool")
WORDS = (*NAMES, "follow", "unknown", "", "link", "root", *LINKS)
STEPS = (0.01, 0.002, 0.0, 1e-9, -0.02, -1.0, 1.5, 100.0, 1e9, -1e9)  # [s], between stamps
ENOUGH = 100  # valid states after which an estimator must know the motion
UNUSUAL = ("snap", "crackle", "pop", "lock", "motor_position", "motor_velocity", "platform", "wrenches", "base",
           "guess")
SLOW = ("retime_trajectory",)  # seconds for each answer


# --- messages as bytes ------------------------------------------------------------------------------------------------

def _valid() -> list[bytes]:
    """Return valid messages; the first byte is the number of the message type."""
    kinds = list(dict.fromkeys(map(type, fuzz_messages.VALID)))
    return [bytes([kinds.index(type(message))]) + serialize_message(message) for message in fuzz_messages.VALID]


def _messages(_folder: Path) -> Try:
    kinds = list(dict.fromkeys(map(type, fuzz_messages.VALID)))
    read = fuzz_messages.readers()

    def attempt(data: bytes) -> str:
        read[kinds[(data[0] if data else 0) % len(kinds)]](data[1:])
        return "read"

    return attempt


# --- stamps and numbers, through a whole node -------------------------------------------------------------------------

def _node(given: dict[str, Any]) -> DynamicsNode:
    words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
    rclpy.init(args=["--ros-args", *words, "--log-level", "fatal"], domain_id=free_domain(),
               signal_handler_options=SignalHandlerOptions.NO)
    node = DynamicsNode()
    while not node._intake.settled:
        rclpy.spin_once(node, timeout_sec=0.01)
    return node


def _stream(source: str) -> Any:
    def make(folder: Path) -> Try:
        os.environ.update(ROS_LOG_DIR=str(folder))
        node = _node({"robot_description": ARM, "motion_source": source, "missing_velocity": "differentiate",
                      "backend": "python"})
        robot, clock = Robot.from_urdf(ARM, backend="python"), [1000.0]

        def attempt(data: bytes) -> str:
            choose = Choices(data)
            for _ in range(12):
                if not choose:
                    break
                clock[0] = min(max(clock[0] + choose.pick(STEPS), 0.0), 2e9)
                if choose.byte() < 200:
                    node._on_state(serialize_message(_state(choose, clock[0])), {"publication_sequence_number": choose.byte()})
                else:
                    node._on_desired(serialize_message(_desired(choose, clock[0])))
            return _sound(node, robot, clock)

        return attempt

    return make


def _names(choose: Choices) -> list[str]:
    return list(choose.pick((NAMES, NAMES, NAMES[::-1], NAMES[:2], [*NAMES, "grip"], [], ["turn", "turn"], ["x"] * 40)))


def _state(choose: Choices, when: float) -> JointState:
    names = _names(choose)
    some = [choose.numbers(len(names)) if choose.byte() < 200 else [] for _ in range(3)]
    message = JointState(name=names, position=some[0], velocity=some[1], effort=some[2])
    message.header.stamp = stamp(when)
    return message


def _desired(choose: Choices, when: float) -> JointMotion:
    names = _names(choose)
    message = JointMotion(joint_names=names, acceleration=choose.numbers(len(names)), jerk=choose.numbers(len(names)))
    message.header.stamp = stamp(when)
    return message


def _sound(node: DynamicsNode, robot: Robot, clock: list[float]) -> str:
    """Check that the next valid state gets a result with the torques of its motion."""
    if node._health.fault:
        raise AssertionError(node._health.fault)
    node._forget()  # as after a clock that is set back
    q, published = [0.3, -0.4, 0.2], node._health.published
    node._health.desired.arrival = None  # the last desired motion is treated as old
    for number in range(ENOUGH):
        clock[0] += 0.01
        message = JointState(name=NAMES, position=q, velocity=[0.0] * 3)
        message.header.stamp = stamp(clock[0])
        node._on_state(serialize_message(message), {"publication_sequence_number": 10**6 + number})
        if node._health.published > published:
            break
    else:
        raise AssertionError(f"no good state is answered: {node._health.states.last_drop}")
    reported = node._out.dynamics
    motion = (reported.position, reported.velocity, reported.acceleration, reported.jerk)
    for found, expected in zip((reported.effort, reported.effort_rate), robot.torque_and_rate(*motion)):
        if not np.abs(np.subtract(found, expected)).max() <= 1e-9 * max(1.0, np.abs(expected).max()):
            raise WrongNumber(f"{list(found)} instead of {expected} of the motion {motion}")
    return "went on"


# --- parameters -------------------------------------------------------------------------------------------------------

def _parameters(folder: Path) -> Try:
    from support.intake_bench import OTHER, Bench

    os.environ.update(ROS_LOG_DIR=str(folder))
    bench = Bench(robot_description=ARM, backend="reference").settle()
    names = [entry.name.replace("<joint>", joint) for entry in QUERY_TABLE for joint in ("turn", "unknown")]
    texts = (ARM, OTHER, "", "<robot/>", "/dev/zero", "panda", *LINKS)
    count = [0]

    def value(choose: Choices, entry: Any) -> Any:
        what = choose.byte()
        if what < 128 and entry is not None:
            default = entry.default
            if isinstance(default, list):
                return choose.numbers(len(default)) if isinstance(default[0], float) else [choose.pick(WORDS)]
            fitting = {bool: lambda: what < 64, int: choose.byte, float: choose.number}
            return fitting.get(type(default), lambda: choose.pick(texts))()
        return choose.pick((True, 3, choose.number(), choose.pick(texts), choose.numbers(3), [1], [True], ["a"], [b"x"],
                            2**62))

    def attempt(data: bytes) -> str:
        choose, wanted = Choices(data), []
        while choose and len(wanted) < 6:
            name = choose.pick(names)
            entry = next((e for e in QUERY_TABLE if e.name in (name, name.replace("turn", "<joint>"))), None)
            wanted.append(Parameter(name, value=value(choose, entry)))
        known = [one for one in wanted if bench.node.has_parameter(one.name)]
        result = bench.node.set_parameters_atomically(known)
        if not result.successful and (not result.reason or "internal error" in result.reason):
            raise AssertionError(f"refused without a reason: {known}: {result.reason!r}")
        count[0] += 1
        bench.settle()
        if count[0] % 20 == 0:
            bench.consistent()
        return "set" if result.successful else "refused"

    return attempt


# --- requests ---------------------------------------------------------------------------------------------------------

def _value(choose: Choices, slot: Any) -> Any:
    """Return a value for a field of a message of this type."""
    what = type(slot).__name__
    if what == "BasicType":
        if slot.typename in ("float", "double"):
            return choose.number()
        return bool(choose.byte() % 2) if slot.typename == "boolean" else choose.byte() % 2 ** (8 * SIZES[slot.typename] - 1)
    if what == "NamespacedType":
        return _filled(choose, getattr(sys.modules[".".join(slot.namespaces)], slot.name))
    if what.endswith("String"):
        return choose.pick(WORDS)
    inner = type(slot.value_type).__name__
    if inner.endswith("String"):
        return list(choose.pick(([], [], [], NAMES, NAMES[::-1], ["hand"], LINKS, [*NAMES, "unknown"], ["turn", "turn"])))
    if what != "Array" and inner == "BasicType":
        return choose.numbers(choose.pick((3, 3, 3, 3, 3, 3, 3, 0)))
    size = slot.size if what == "Array" else choose.pick((1, 1, 1, 2, 0, 3))
    return [_value(choose, slot.value_type) for _ in range(size)]


def _filled(choose: Choices, kind: Any) -> Any:
    slots = zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES)
    return kind(**{name: _value(choose, slot) for name, slot in slots if name not in UNUSUAL or choose.byte() > 200})


def _services(_folder: Path) -> Try:
    robot = Robot.from_urdf(ARM, backend="python")
    asked = [service for name, service in SERVICES.items() if name not in SLOW]

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        service = choose.pick(asked)
        request = _filled(choose, service.kind.Request)
        answer = service.answer(robot, request_values(request), robot.limits)
        fill_response(service.kind.Response(), answer)
        for name, found in answer.items():
            if isinstance(found, np.ndarray) and found.dtype == float and not np.isfinite(found).all():
                raise WrongNumber(f"{service.kind.__name__}: {name} is {found}")
        return "answered"

    return attempt


def dice() -> list[bytes]:
    rng = random.Random(16)
    return [rng.randbytes(size) for size in (10, 40, 100, 300, 300)] + [bytes([k]) * 60 for k in (0, 90, 130)]


TARGETS = (
    Target("messages", _valid, _messages, (b"\0\1\0\0", b"\0\x08\0\2", b"turn\0", b"spin\0")),
    Target("states", dice, _stream("desired")), Target("estimates", dice, _stream("estimated")),
    Target("parameters", dice, _parameters), Target("services", dice, _services))
