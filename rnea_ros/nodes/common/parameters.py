"""Every parameter of the nodes in one table, and the object that declares it, keeps its values and refuses bad changes.

The tables in docs/ are markdown_table(); a test compares both, and the files in config/, with a running node.
"""

from __future__ import annotations

import difflib
import json
import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rclpy.node import Node
from rclpy.parameter import Parameter

from rnea_ros import InputError, RneaError
from rnea_ros.errors import in_words, shown

Values = dict[str, Any]
TYPES = {"bool": bool, "int": int, "double": float, "string": str}
INF, NAN = math.inf, math.nan
SLIDER = 2000.0  # a wider range is of no use to who drags a slider: its ends are checked, but not offered as a range
LARGEST = 1e9  # of whatever a joint does, in SI units: beyond any machine, yet no sum or square of it overflows
JOINT = "<joint>"
DERIVATIVES = ("velocity", "acceleration", "jerk", "effort", "effort_rate")
FOREIGN = ("use_sim_time", "qos_overrides.", "start_type_description_service")  # rclpy declares these itself


@dataclass(frozen=True, eq=False)
class Entry:
    """One parameter. `default` gives the type; bounds apply to every element of an array; size 0 is any size."""

    name: str
    default: Any
    text: str
    unit: str = ""
    low: float = -INF
    high: float = INF
    choices: tuple[str, ...] = ()
    size: int = 0
    read_only: bool = False

    @property
    def type(self) -> str:
        if isinstance(self.default, list):
            return "double_array"
        return next(name for name, kind in TYPES.items() if type(self.default) is kind)

    @property
    def bounds(self) -> str:
        """What is allowed, for people."""
        if self.choices:
            return ", ".join(self.choices)
        low = "" if self.low == -INF else f">= {self.low:g}"
        high = "" if self.high == INF else f"<= {self.high:g}"
        size = f"{self.size} numbers" if self.size else ""
        return ", ".join(filter(None, (size, low, high)))

    def problem(self, value: Any) -> str:
        """Why this value is refused; empty if it is not."""
        if isinstance(self.default, list):
            numbers = list(value) if isinstance(value, Iterable) else [value]
            if not all(type(v) is float for v in numbers) or (self.size and len(numbers) != self.size):
                return f"{self.name} needs {self.size or 'any number of'} doubles, got {value!r:.80} (write 1.0, not 1)"
        elif type(value) is not TYPES[self.type]:
            hint = " (write 1.0, not 1)" if self.type == "double" else ""
            return f"{self.name} must be a {self.type}, got {value!r:.80}{hint}"
        else:
            numbers = [value] if self.type in ("int", "double") else []
        if self.choices and value not in self.choices:
            return f"{self.name} is '{value}'; allowed are {', '.join(self.choices)}"
        for number in numbers:
            unknown = number != number and self.default != self.default  # NaN may be given where it is the default
            if not unknown and not (self.low <= number <= self.high and abs(number) < INF):
                given = f"{number:g}" if isinstance(number, float) else shown(number)
                return f"{self.name} is {given}; it must be a finite number {self.bounds}".rstrip()
        return ""

    def descriptor(self) -> ParameterDescriptor:
        unit = f" [{self.unit}]" if self.unit else ""
        made = ParameterDescriptor(description=self.text + unit, additional_constraints=self.bounds,
                                   read_only=self.read_only)
        if self.type == "int":
            made.integer_range = [IntegerRange(from_value=int(self.low), to_value=int(self.high), step=1)]
        elif self.type == "double" and not math.isnan(self.default) and self.high - self.low <= SLIDER:  # NaN has no range
            made.floating_point_range = [FloatingPointRange(from_value=self.low, to_value=self.high)]
        return made


MODEL = (
    Entry("robot_description", "", "URDF as XML text. If empty, the latched topic robot_description is used. Setting "
          "it swaps the model; one that cannot be used is refused and the old model stays"),
    Entry("backend", "llvm", "How the equations run. llvm compiles them; falls back to python without llvmlite",
          choices=("llvm", "python", "reference"), read_only=True),
    Entry("gravity", [0.0, 0.0, -9.81], "Acceleration of gravity in the root link's frame", "m/s^2", -1e3, 1e3, size=3),
    Entry("use_friction", False, "Whether damping and friction in the URDF's dynamics tags count. Off because many files "
          "carry simulator settings there; joint_dynamics.* counts in any case"),
    Entry("payload.link", "", "Link that carries the payload; must be set if payload.mass is not zero"),
    Entry("payload.mass", 0.0, "Mass of the payload", "kg", 0.0, 1e6),
    Entry("payload.com", [0.0, 0.0, 0.0], "Centre of mass of the payload in the link's frame", "m", -1e3, 1e3, size=3),
    Entry("payload.inertia", [0.0] * 6, "ixx, ixy, ixz, iyy, iyz, izz of the payload about its centre of mass, axes "
          "as the link's", "kg m^2", -LARGEST, LARGEST, size=6),
)

DYNAMICS = (
    Entry("motion_source", "desired", "Where acceleration and jerk come from: the topic ~/desired_motion, or a "
          "polynomial fitted to the latest states", choices=("desired", "estimated")),
    Entry("on_desired_timeout", "zero_jerk", "What happens while no desired motion arrives: keep the acceleration "
          "with zero jerk, hold both, or stop publishing. Before the first one both are zero",
          choices=("zero_jerk", "hold", "stop")),
    Entry("desired_timeout", 0.1, "A desired motion older than this, by arrival, is out of date", "s", 1e-3, 10.0),
    Entry("state_timeout", 0.5, "Without a usable joint state for this long the node reports STALE and forgets the "
          "motion so far", "s", 1e-3, 10.0),
    Entry("joint_age", 0.5, "Joint states may come in parts, each naming some of the joints. While the stamp of a joint is "
          "older than the newest one by more than this, nothing is computed", "s", 1e-3, 10.0),
    Entry("missing_velocity", "refuse", "What to do with a joint state without velocities: drop it, or "
          "differentiate the positions", choices=("refuse", "differentiate")),
    Entry("estimator.window", 0.05, "Time that the fit looks back, 256 joint states at most. Wider: less noise, more lag",
          "s", 1e-3, 2.0),
    Entry("estimator.degree", 3, "Degree of the fitted polynomial. Higher: less lag, more noise", low=3, high=6),
    Entry("frame_id", "", "frame_id of the published messages. If empty, the root link"),
    Entry("publish_markers", False, "Publish ~/markers for RViz: arrows for effort, coloured by effort rate"),
    Entry("markers.size", 0.2, "Length of a marker at the limit", "m", 1e-3, 10.0),
    Entry("publish_speed_scaling", False, "Publish ~/speed_scaling: the largest speed factor that keeps effort and effort "
          "rate of the motion inside their limits"),
    Entry("speed_scaling.motion", "planned", "At which speed the motion is seen: as planned, or as executed, already slowed "
          "by the published factor", choices=("planned", "executed")),
    Entry("speed_scaling.fall", 4.0, "The factor falls at most this fast", "1/s", 1e-3, 100.0),
    Entry("speed_scaling.rise", 0.5, "The factor rises at most this fast", "1/s", 1e-3, 100.0),
    Entry("speed_scaling.most", 1.0, "The factor is never larger", low=1e-3, high=10.0),
    Entry("diagnostics.period", 1.0, "Time between two messages on /diagnostics", "s", 0.1, 60.0, read_only=True),
)

PROCESS = (
    Entry("process.executor", "lean", "Who waits for messages: lean keeps a wait set and takes half of the processor time, "
          "rclpy is its SingleThreadedExecutor", choices=("lean", "rclpy"), read_only=True),
    Entry("process.priority", 0, "Real-time priority (SCHED_FIFO) of the thread that computes and of the middleware's; 0 "
          "leaves them as they are. Refused where the system does not allow it", low=0, high=99, read_only=True),
    Entry("process.lock_memory", False, "Keep all memory of the process from being swapped out (mlockall). Refused where the "
          "system does not allow it", read_only=True),
    Entry("process.freeze_gc", False, "Take all that exists when a model is ready out of the garbage collector's sight, so "
          "that it never stops the node for long", read_only=True),
)

SCALING = (
    Entry("control_rate", 1000.0, "References for each second, while a motion is under way", "Hz", 1.0, 2000.0),
    Entry("longest_step", 5.0, "A reference that comes later than this many periods moves on by no more than that: the motion "
          "is delayed rather than jumps. Not with use_sim_time", low=1.0, high=100.0),
    Entry("interpolation", "positions", "What the path takes from the points: positions alone, also the direction of their "
          "velocities, or also the curvature that their accelerations mean",
          choices=("positions", "velocities", "accelerations")),
    Entry("catch_up", True, "Whether a delay is made good: the motion may then be faster than planned, never ahead of it"),
    Entry("solve_first", False, "Begin only when the motion nearest to the plan is known, mostly in a second, instead of at "
          "once, slowed until then"),
    Entry("on_new_trajectory", "replace", "What a trajectory does that comes while another is executed: stop that one on its "
          "path and begin from there, or be refused", choices=("replace", "refuse")),
    Entry("start_tolerance", 0.01, "A robot no further from the first point is at it", "rad, m", 1e-6, 1.0),
    Entry("start_mismatch", "refuse", "What to do with a first point at time 0 that the robot is not at: refuse, or prepend "
          "the robot's position and a way from there at half of the velocity limits", choices=("refuse", "prepend")),
    Entry("state_timeout", 0.5, "A joint state older than this does not tell where the robot is", "s", 1e-3, 10.0),
    Entry("shutdown_timeout", 4.0, "Time that a motion is given to come to rest when the process is asked to end (SIGINT, "
          "SIGTERM), before it ends all the same. ros2 launch asks again, which ends it at once, after 5 s (its argument "
          "sigterm_timeout)", "s", 0.0, 60.0),
    Entry("reference_effort", False, "Whether the points on ~/reference carry effort. Off because a "
          "joint_trajectory_controller without effort interface refuses such points"),
    Entry("commands", "none", "What ~/commands carries, for a forward_command_controller or joint_group controller",
          choices=("none", "position", "velocity", "effort")),
    Entry("frame_id", "", "frame_id of the published messages. If empty, the root link"),
    Entry("diagnostics.period", 1.0, "Time between two messages on /diagnostics", "s", 0.1, 60.0, read_only=True),
)


def _limit_entries() -> Iterable[Entry]:
    """As ros2_control names them; effort_rate is ours, since nothing in ROS names it."""
    prefix = f"joint_limits.{JOINT}"
    source = "Default: the URDF's"
    units = ("rad/s, m/s", "rad/s^2, m/s^2", "rad/s^3, m/s^3", "N m, N", "N m/s, N/s")
    yield Entry(f"{prefix}.has_position_limits", False, f"Whether the position limits are known. {source}")
    yield Entry(f"{prefix}.min_position", NAN, f"Lower position limit. {source}", "rad, m", -LARGEST, LARGEST)
    yield Entry(f"{prefix}.max_position", NAN, f"Upper position limit. {source}", "rad, m", -LARGEST, LARGEST)
    for quantity, unit in zip(DERIVATIVES, units):
        words = quantity.replace("_", " ")
        yield Entry(f"{prefix}.has_{quantity}_limits", False, f"Whether max_{quantity} is known. {source}")
        yield Entry(f"{prefix}.max_{quantity}", NAN, f"Largest {words}, either way. {source}", unit, 0.0, LARGEST)


JOINT_LIMITS = tuple(_limit_entries())
JOINT_DYNAMICS = (
    Entry(f"joint_dynamics.{JOINT}.rotor_inertia", 0.0, "Inertia of the rotor about its own axis, before the gear",
          "kg m^2", 0.0, 1e6),
    Entry(f"joint_dynamics.{JOINT}.gear_ratio", 1.0, "Rotor turns for one turn of the joint (prismatic: rad/m)", "",
          -LARGEST, LARGEST),
    Entry(f"joint_dynamics.{JOINT}.coulomb", 0.0, "Coulomb friction", "N m, N", 0.0, LARGEST),
    Entry(f"joint_dynamics.{JOINT}.viscous", 0.0, "Viscous friction", "N m s/rad, N s/m", 0.0, LARGEST),
    Entry(f"joint_dynamics.{JOINT}.offset", 0.0, "Constant effort", "N m, N", -LARGEST, LARGEST),
    Entry(f"joint_dynamics.{JOINT}.smoothing", 1e-2, "Speed at which tanh replaces the jump of the Coulomb friction",
          "rad/s, m/s", 1e-9, 10.0),
)
HOLD = (
    Entry(f"hold_joints.{JOINT}", NAN, "Where the joint is while nobody publishes it, at rest. A joint that has once been "
          "published is not held", "rad, m", -LARGEST, LARGEST),
)
TABLE = MODEL + DYNAMICS + HOLD + PROCESS + JOINT_LIMITS + JOINT_DYNAMICS  # of dynamics_node
QUERY = MODEL + JOINT_LIMITS + JOINT_DYNAMICS  # of query_node
SCALING_TABLE = MODEL + SCALING + HOLD + PROCESS + JOINT_LIMITS + JOINT_DYNAMICS  # of scaling_node


def markdown_table(entries: Iterable[Entry] = TABLE) -> str:
    """The table in docs/dynamics_node.md, or of other entries."""
    lines = ["| parameter | type, default | allowed | unit | at run time | meaning |", "|---|---|---|---|---|---|"]
    for e in entries:
        default = "unknown" if e.default != e.default else f"`{json.dumps(e.default)}`"
        change = "no" if e.read_only else "yes"
        lines.append(f"| `{e.name}` | {e.type}, {default} | {e.bounds} | {e.unit} | {change} | {e.text}. |")
    return "\n".join(lines) + "\n"


def find(name: str, entries: Iterable[Entry] = TABLE) -> Entry | None:
    """The entry of a parameter; joint names, which may contain dots, match <joint>."""
    for entry in entries:
        head, joint, tail = entry.name.partition(JOINT)
        inner = len(name) > len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
        if name == entry.name or (joint and inner):
            return entry
    return None


class ParameterSet:
    """A table declared on a node.

    values : the accepted values by name, those of the joints included once they are declared
    given  : the joints' values that were given by the user (file, command line, set), whether or not the joint exists yet

    Neither mapping ever changes: who keeps one keeps what was accepted then. The node must be made with
    automatically_declare_parameters_from_overrides=True: what users say of joints is then known before the model is.
    """

    def __init__(self, node: Node, entries: Iterable[Entry], apply: Callable[[set[str]], None] = lambda changed: None):
        """apply(changed names) makes new values effective, or raises RneaError, with the reason to refuse them, before it
        has changed anything."""
        self._node, self._apply = node, apply
        self._entries = tuple(entries)
        self._described: Values = {}  # what the model says of its joints
        self._ours = False  # whether it is this object that sets parameters just now
        self.values: Values = {}
        self.given: Values = {}
        self._take_overrides()
        for entry in self._entries:
            if JOINT not in entry.name:
                self.values[entry.name] = self._declare(entry, entry.name, entry.default, ignore_override=False)
        node.add_on_set_parameters_callback(self._on_set)

    def _take_overrides(self) -> None:
        """Check what the user gave before anything is built on it."""
        for name, parameter in self._node.get_parameters_by_prefix("").items():
            entry = find(name, self._entries)
            if entry is not None:
                self._check(name, parameter.value)
                if JOINT in entry.name:
                    self.given[name] = parameter.value
            elif not name.startswith(FOREIGN):
                close = difflib.get_close_matches(name, [e.name for e in self._entries], n=1)
                hint = f"; did you mean '{close[0]}'?" if close else ""
                self._node.get_logger().warning(f"parameter '{name}' is not known and has no effect{hint}")
                self._node.undeclare_parameter(name)

    def _declare(self, entry: Entry, name: str, value: Any, ignore_override: bool = True) -> Any:
        if self._node.has_parameter(name):  # from the overrides, without a description
            self._node.undeclare_parameter(name)
        with self._setting():
            return self._node.declare_parameter(name, value, entry.descriptor(), ignore_override).value

    @contextmanager
    def _setting(self) -> Iterator[None]:
        self._ours = True
        try:
            yield
        finally:
            self._ours = False

    def declare_joints(self, described: Mapping[str, Any]) -> None:
        """Declare the joints' parameters of a new model, with its values by full name, in place of the last model's.

        What the user gave stays declared, and may be set, though its joint is gone: it counts when the joint comes back.
        """
        values = {name: value for name, value in self.values.items() if name not in self._described}
        for name in self._described:
            if name not in self.given:
                self._node.undeclare_parameter(name)
        self._described = {}
        for name, value in described.items():
            entry = find(name, self._entries)
            if entry is not None:
                self._described[name] = value
                values[name] = self._declare(entry, name, self.given.get(name, value))
        self.values = values

    def go_back(self, values: Values, given: Values, concerned: Callable[[str], bool]) -> Values:
        """Make what is concerned again as it was when `values` and `given` were this object's, for the same joints.

        Returns what it changed, by name.
        """
        joints = {name for name in (*self._described, *self.given) if concerned(name)}
        wanted = {name: value for name, value in values.items() if concerned(name) and name not in joints}
        wanted |= {name: given.get(name, self._described.get(name)) for name in joints}
        now = {**self.given, **self.values}
        back = {name: value for name, value in wanted.items() if _plain(now.get(name)) != _plain(value)}
        rest = {name: value for name, value in self.given.items() if not concerned(name)}
        self.given = rest | {name: value for name, value in given.items() if concerned(name)}
        self.values = {**self.values, **{name: value for name, value in back.items() if name in self.values}}
        with self._setting():
            types = {name: self._node.get_parameter(name).type_ for name in back}
            self._node.set_parameters([Parameter(name, types[name], value) for name, value in back.items()])
        return back

    def _check(self, name: str, value: Any) -> None:
        entry = find(name, self._entries)
        problem = entry.problem(value).replace(entry.name, name) if entry else ""
        if problem:
            raise InputError(problem)

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        if self._ours:
            return SetParametersResult(successful=True)
        changes = {p.name: p.value for p in parameters if find(p.name, self._entries) is not None}
        of_joints = {name: value for name, value in changes.items() if name not in self.values or name in self._described}
        before = self.values, self.given
        try:
            for name, value in changes.items():
                self._check(name, value)
            self.values = {**self.values, **{name: value for name, value in changes.items() if name in self.values}}
            self.given = {**self.given, **of_joints}
            if changes:
                self._apply(set(changes))
        except RneaError as error:
            self.values, self.given = before
            return SetParametersResult(successful=False, reason=str(error))
        except Exception as error:  # a defect of ours
            self._node.get_logger().error(traceback.format_exc())
            self.values, self.given = before
            with suppress(Exception):
                self._apply(set(changes))  # undoes what it had begun
            return SetParametersResult(successful=False, reason=in_words(error))
        return SetParametersResult(successful=True)


def _plain(value: Any) -> Any:
    """Comparable, whichever array it is."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
