"""Bags like those recorded on robots, written with rosbags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rosbags.rosbag2 import Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

from .motions import encoded, sines

JOINT_STATE, STRING = "sensor_msgs/msg/JointState", "std_msgs/msg/String"
STORE = get_typestore(Stores.ROS2_HUMBLE)
EPOCH = 1_700_000_000_123_456_789  # ns
LATE = 700_000  # [ns] from the stamp of a message to its recording time


def joint_state(stamp: int, names: Sequence[str], q: Any, effort: Any = (), velocity: Any = ()) -> bytes:
    types = STORE.types
    header = types["std_msgs/msg/Header"](types["builtin_interfaces/msg/Time"](*divmod(stamp, 10**9)), "base")
    blocks = (np.asarray(block, dtype=float) for block in (q, velocity, effort))
    return bytes(STORE.serialize_cdr(types[JOINT_STATE](header, list(names), *blocks), JOINT_STATE))


def bag(folder: Path, messages: dict[str, Sequence[tuple[int, bytes]]], urdf: str | None = None, plugin: str = "mcap") -> Path:
    """Write a bag of joint states into a folder and return its file. messages: (recording time [ns], message) by topic."""
    with Writer(folder, version=8, storage_plugin=StoragePlugin[plugin.upper()]) as made:
        topics = {topic: made.add_connection(topic, JOINT_STATE, typestore=STORE) for topic in messages}
        if urdf is not None:
            described = made.add_connection("/robot_description", STRING, typestore=STORE)
            made.write(described, EPOCH - 1, STORE.serialize_cdr(STORE.types[STRING](urdf), STRING))
        for topic, entries in messages.items():
            for recorded, data in entries:
                made.write(topics[topic], recorded, data)
    return next(file for file in folder.iterdir() if file.suffix in (".mcap", ".db3"))


def motion(seed: int, joints: int, seconds: float, rate: float = 125.0) -> tuple[np.ndarray, np.ndarray]:
    """Return times since EPOCH [ns] and encoder positions (samples, joints)."""
    rng, t = np.random.default_rng(seed), np.arange(0.0, seconds, 1.0 / rate)
    return np.round(t * 1e9).astype(np.int64), encoded(rng, sines(rng, t, joints)[0])


def recorded(folder: Path, names: Sequence[str], seed: int = 0, seconds: float = 3.0, **options: Any) -> Path:
    """Write a bag of a moving robot and return its file."""
    stamps, q = motion(seed, len(names), seconds)
    entries = [(EPOCH + t + LATE, joint_state(EPOCH + t, names, sample)) for t, sample in zip(stamps.tolist(), q)]
    return bag(folder, {"/joint_states": entries}, **options)


def messages_in(path: Path) -> Iterator[tuple[str, int, Any]]:
    """Yield (topic, recording time [ns], message) of all joint states in a bag."""
    with Reader(path) as made:
        for topic, when, data in made.messages():
            yield topic.topic, when, STORE.deserialize_cdr(data, topic.msgtype)
