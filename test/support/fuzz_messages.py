"""Fuzzing of all code of the nodes that reads serialized messages: python test/support/fuzz_messages.py 1000000

In a process whose memory is dirty (MALLOC_PERTURB_), since what crashes a generated deserializer is what it finds there.
Prints what became of the buffers, as JSON. If the process dies, the file `last` holds the buffer that it died of.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import random
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from geometry_msgs.msg import Wrench, WrenchStamped
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import SetParameters
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Header, String
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from rnea_msgs.msg import BaseStateStamped, JointMotion
from rnea_ros import Robot
from rnea_ros.errors import Rejected
from rnea_ros.nodes.common.cdr import Decoder, Reader
from rnea_ros.nodes.common.topics import goal_from_message
from rnea_ros.nodes.dynamics.external_wrenches import ExternalWrench
from rnea_ros.nodes.dynamics.joint_states import StateReader
from rnea_ros.nodes.dynamics.motion_source import DesiredReader

LARGEST = 1 << 16  # bytes
HEADERS = [b"\0\1\0\0"] * 6 + [b"\0\0\0\0", b"\0\2\0\0", b"\0\3\0\0", b"\0\7\0\0", b"\0\x08\0\2", b"\0\x09\0\0", b"\1\1\1\1"]
COUNTS = [0, 1, 2, 3, 7, 8, 255, 256, 65535, 2**24, 0x02000800, 2**31 - 1, 2**31, 2**32 - 1]


def points(*sizes: int) -> list[JointTrajectoryPoint]:
    return [JointTrajectoryPoint(positions=[0.5] * a, velocities=[0.25] * b)
            for a, b in zip(sizes, reversed(sizes))]


VALID: list[Any] = [
    JointState(name=["turn", "spin", "slide"], position=[1.0, 2.0, 3.0], velocity=[0.0] * 3, effort=[1.0] * 3),
    JointState(name=["slide", "turn", "spin", "grip"], position=[1.0] * 4), JointState(),
    JointMotion(joint_names=["turn", "spin", "slide"], acceleration=[1.0] * 3, jerk=[2.0] * 3),
    WrenchStamped(header=Header(frame_id="hand"), wrench=Wrench()), WrenchStamped(), BaseStateStamped(),
    JointTrajectory(joint_names=["turn", "spin"], points=points(2, 2, 2)),
    JointTrajectory(joint_names=["turn"], points=points(1, 0, 3)), JointTrajectory(),
    String(data="<robot name='r'><link name='l'/></robot>"), String(),
    DiagnosticArray(status=[DiagnosticStatus(name="n", values=[KeyValue(key="k", value="v")] * 3)] * 2),
    SetParameters.Request(parameters=[Parameter(name="p", value=ParameterValue(string_array_value=["a", "bc"]))] * 2),
]


def readers() -> dict[type, Callable[[bytes], Any]]:
    """Return readers by message type, as the nodes use them."""
    names = ("turn", "spin", "slide")
    state, desired = StateReader(names), DesiredReader(names)
    decode_state, decode_desired = (Decoder(kind, fields) for kind, fields in (
        (JointState, ("position", "velocity")), (JointMotion, ("acceleration", "jerk"))))
    trajectory, given = Reader(JointTrajectory), {"wrenches.hand.link": "hand", "wrenches.hand.window": 0.05}
    wrench = ExternalWrench("hand", SimpleNamespace(values=given), time.time_ns, ThreadPoolExecutor(1))
    wrench.use(Robot.from_urdf("<robot name='r'><link name='hand'/></robot>", backend="reference"))
    return {JointState: lambda data: state.read(decode_state(data)),
            JointMotion: lambda data: desired.read(decode_desired(data)),
            WrenchStamped: wrench.read, JointTrajectory: lambda data: goal_from_message(trajectory(data), names[:2]),
            **{kind: Reader(kind) for kind in (BaseStateStamped, String, DiagnosticArray, SetParameters.Request)}}


def buffer(rng: random.Random, valid: bytes) -> bytes:
    """Return a message with bytes changed, added or removed, an empty one, or the valid one."""
    data, what = bytearray(valid), rng.randrange(8)
    if what == 0:
        return bytes(rng.choice(HEADERS) + rng.randbytes(rng.choice((0, 3, 8, 20, 64, 300))))
    if what == 1:
        words = rng.choice((b"\0\x08\0\2", b"\2\0\x08\0")) * rng.randrange(120)
        return bytes((rng.choice(HEADERS) + words)[rng.randrange(5):])
    if what == 2:
        return bytes(data[:rng.randrange(len(data))])
    if what in (3, 4):  # one count or more, at any offset
        for _ in range(rng.randrange(1, 4)):
            struct.pack_into(rng.choice("<>") + "I", data, 4 * rng.randrange(len(data) // 4), rng.choice(COUNTS))
    elif what == 5:
        for _ in range(rng.randrange(1, 6)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif what == 6:
        at = rng.randrange(4, len(data) + 1)
        data[at:at + rng.randrange(9)] = rng.randbytes(rng.randrange(9))
        data += bytes(rng.choice((0, 0, 3, 8, 500)))
    if rng.random() < 0.2:
        data[:4] = rng.choice(HEADERS)
    return bytes(data)


def fuzz(count: int, seed: int, last: Callable[[bytes], None]) -> dict[str, dict[str, int]]:
    """Count reads and rejections by message type and reason. Raises unexpected errors."""
    rng, read = random.Random(seed), readers()
    valid = [(type(message), serialize_message(message)) for message in VALID]
    found: dict[str, Counter[str]] = {kind.__name__: Counter() for kind in read}
    for _ in range(count):
        kind, base = rng.choice(valid)
        data = buffer(rng, base)
        last(data)
        try:
            read[kind](data)
            became = "read"
        except Rejected as refusal:
            became = refusal.reason
        found[kind.__name__][became] += 1
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", type=int, nargs="?", default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--last", type=Path, default=Path("last"))
    given = parser.parse_args()
    if "MALLOC_PERTURB_" not in os.environ:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "MALLOC_PERTURB_": "165"})
    given.last.write_bytes(bytes(LARGEST))
    with given.last.open("r+b") as file, mmap.mmap(file.fileno(), LARGEST) as kept:
        def last(data: bytes) -> None:
            kept[:4 + len(data)] = struct.pack("<I", len(data)) + data

        print(json.dumps(fuzz(given.count, given.seed, last), indent=1, sort_keys=True))
    given.last.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
