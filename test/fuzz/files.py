"""Fuzzing targets that read files: URDF, robot file, parameter file, CSV, bag."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

import numpy as np

import rnea_ros
from fuzz.target import Target, Try, WrongNumber
from rnea_ros import InputError, Robot, load
from rnea_ros.cli import inputs
from rnea_ros.io import csv_files, files
from rnea_ros.io.recording import RecordingRequest
from rnea_ros.model import robot_file, yaml_file
from support import bags
from support.node_bench import ARM

URDF = Path(rnea_ros.__file__).parents[1] / "urdf"
NAMES = ("a", "b")
SMALL = 8  # joints up to which numbers are compared
MOTION = np.random.default_rng(16).uniform(-1.0, 1.0, (3, SMALL))


def check_numbers(robot: Robot) -> str:
    """Check frames against the URDF, and torques against the mass matrix, which is from another recursion."""
    if robot.reconstruction_error > 1e-6:
        raise WrongNumber(f"frames are off by {robot.reconstruction_error}")
    if not 0 < robot.n <= SMALL:
        return "read"
    q, _, qdd = MOTION[:, :robot.n]
    rest = np.zeros(robot.n)
    with np.errstate(all="ignore"):
        torque, gravity = robot.inverse_dynamics(q, rest, qdd), robot.inverse_dynamics(q, rest, rest)
        found = robot.mass_matrix(q) @ qdd + gravity
    size = max(np.abs(torque).max(), np.abs(gravity).max(), np.abs(found).max())
    if not np.abs(torque - found).max() <= 1e-6 * max(size, 1e-300):
        raise WrongNumber(f"torques {torque}, by the mass matrix {found}")
    return "read, numbers compared"


def _urdfs() -> list[bytes]:
    return [ARM.encode(), *(file.read_bytes() for file in sorted(URDF.glob("*.urdf")) if file.stat().st_size < 20_000)]


def _urdf(_folder: Path) -> Try:
    return lambda data: check_numbers(Robot.from_urdf(data, backend="reference"))


def _robot_files() -> list[bytes]:
    return [file.read_bytes() for file in sorted(URDF.glob("*.robot.yaml"))]


def _robot_file(_folder: Path) -> Try:
    descriptions = {f"{path.stem}.urdf": path.read_bytes() for path in sorted(URDF.glob("*.urdf"))}

    def attempt(data: bytes) -> str:
        file = robot_file.read(robot_file.parsed(data, "fuzzed.yaml"))
        name = next((name for name in descriptions if name.encode() in data), "seven_r.urdf")  # as its first line says
        load(descriptions[name], file, backend="python")
        return "made a robot"

    return attempt


def _yaml(_folder: Path) -> Try:
    def attempt(data: bytes) -> str:
        yaml_file.parsed(data, "fuzzed.yaml")
        return "read"

    return attempt


def _parameter_files() -> list[bytes]:
    """Return parameter files of nodes and of MoveIt, and robot files, with limits of the joints of ARM."""
    limits = ("joint_limits: {turn: {has_velocity_limits: true, max_velocity: 1.5, max_effort: 40.0}, "
              "slide: {has_acceleration_limits: false, max_acceleration: 3.0}}")
    joints = "{turn: {max_position: 1.0, min_position: -1.0, min_effort: -3.0, max_effort: 4.0}, spin: {max_effort_rate: 9.0}}"
    return [limits.encode(), f"/**:\n  ros__parameters:\n    {limits}\n".encode(), f"version: 1\nlimits: {joints}\n".encode(),
            f"scaling_node:\n  ros__parameters:\n    {limits}".encode()]


def _limits(folder: Path) -> Try:
    robot, path = Robot.from_urdf(ARM, backend="python"), folder / "limits.yaml"
    wanted = Namespace(robot_file=None, limits=str(path))

    def attempt(data: bytes) -> str:
        path.write_bytes(data)
        limits, _ = inputs.read_limits(robot, wanted)
        for name in ("effort", "effort_rate", "velocity", "acceleration", "jerk"):
            if (getattr(limits, name) <= 0.0).any():
                raise WrongNumber(f"{name} is {getattr(limits, name)}")
        return "read"

    return attempt


def _tables() -> list[bytes]:
    header = b"t,q_a,q_b,qd_a,qd_b,tau_a,tau_b,note\n"
    rows = b"".join(f"{0.01 * k:.3f},{0.1 * k},{-0.2 * k},1.0,2.0,3.0,4.0,7\n".encode() for k in range(12))
    return [header + rows, header + rows.replace(b",7\n", b",word\n"), b"\xef\xbb\xbf" + header + rows.replace(b"\n", b"\r\n")]


def _csv(folder: Path) -> Try:
    path, wanted = folder / "fuzzed.csv", RecordingRequest(NAMES, ("q", "qd", "tau"))

    def attempt(data: bytes) -> str:
        path.write_bytes(data)
        whole = _or_none(lambda: csv_files.read_columns(path, NAMES, wanted.blocks, wanted.needed)[0])
        recording = files.open_recording(path, wanted)
        (piece,) = recording.pieces((-np.inf, np.inf))
        if not all(np.isfinite(block).all() for block in piece.values()):
            raise WrongNumber("no number in a recording")
        if whole is not None:
            _check_samples(piece, whole, recording.left_out.total())
        return "read"

    return attempt


def _check_samples(piece: dict[str, np.ndarray], whole: dict[str, np.ndarray], left_out: int) -> None:
    """Check that a recording has all rows of the file in their order, except rows left out to make time increase."""
    rows, kept = (np.column_stack(list(blocks.values())).tolist() for blocks in (whole, piece))
    remaining = iter(rows)
    increasing = (np.diff(whole["t"]) > 0.0).all()
    if (piece.keys() != whole.keys() or not (np.diff(piece["t"]) > 0.0).all() or not all(row in remaining for row in kept)
            or left_out != len(rows) - len(kept) or bool(left_out) == increasing):
        raise WrongNumber(f"{kept} read in pieces, {left_out} samples left out; {rows} at once")


def _or_none(act):
    try:
        return act()
    except InputError:
        return None


def _recorded() -> list[bytes]:
    import tempfile

    found = []
    for plugin in ("mcap", "sqlite3"):
        with tempfile.TemporaryDirectory() as folder:
            path = bags.recorded(Path(folder) / "bag", NAMES, seconds=0.2, urdf=ARM, plugin=plugin)
            found.append(path.read_bytes())
    return found


def _bag(folder: Path) -> Try:
    wanted = RecordingRequest(NAMES, ("q", "tau"))

    def attempt(data: bytes) -> str:
        path = folder / ("fuzzed.db3" if data.startswith(b"SQLite") else "fuzzed.mcap")
        path.write_bytes(data)
        recording = files.open_recording(path, wanted)
        (piece,) = recording.pieces((-np.inf, np.inf))
        if not all(np.isfinite(block).all() for block in piece.values()):
            raise WrongNumber("no number in a recording")
        return "read"

    return attempt


XML = (b'<mimic joint="turn" multiplier="-2"/>', b"<inertial/>", b'<limit lower="1" upper="-1"/>', b'type="planar"',
       b'type="floating"', b'version="1.2"', b"&amp;", b"<!DOCTYPE r>", b'quat_xyzw="0 0 0 0"', b'xyz="0 0 0"', b"</link>",
       b'<dynamics damping="1" friction="-1"/>', b"<![CDATA[", b"\xff\xfe", b'acceleration="1"', b"<!--")
YAML = (b"*a", b"&a", b"!!python/object:os.system", b"<<:", b"- " * 40, b"{", b"[", b"null", b".nan", b"~", b"? ", b"|\n",
        b"%YAML", b"loops:", b"platform:", b"base: floating", b"elastic_joints:", b"\t", b"drives:", b"payloads:",
        b"measured_effort:")
LIMITS = (b"joint_limits:", b"ros__parameters:", b"has_velocity_limits: false", b"max_effort: 1e13", b"turn:", b"slide:",
          b"/**:", b"version: 1", b"limits:", b"velocity_by_position: {}")
BAG = (b"\x89MCAP0\r\n", b"cdr", b"zstd", b"lz4", b"sensor_msgs/msg/JointState", b"SQLite format")
TARGETS = (
    Target("urdf", _urdfs, _urdf, XML), Target("robot_file", _robot_files, _robot_file, YAML),
    Target("yaml", _robot_files, _yaml, YAML), Target("limits", _parameter_files, _limits, (*YAML, *LIMITS)),
    Target("bag", _recorded, _bag, BAG),
    Target("csv", _tables, _csv, (b",", b"\n", b'"', b"#", b"t", b"q_a", b"\0")))
