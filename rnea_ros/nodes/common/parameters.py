"""Parameters of a running node: declared from a table, validated, and locked on request.

A locked node (parameter `locked`) rejects changes of its robot, its limits or its clock: any process in a ROS domain can set
parameters and publish a robot description. It counts such changes and reports them on /diagnostics. See docs/security.md.
"""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, IntegerRange, ParameterDescriptor, SetParametersResult
from rcl_interfaces.srv import SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter

from rnea_ros import InputError, RneaError
from rnea_ros.errors import Rejected, count_noun, in_words, near, some
from rnea_ros.nodes.common.diagnostics import EventCounter
from rnea_ros.nodes.common.parameter_table import JOINT, ParameterEntry, find, limit_flags

LOCKED_ROBOT = ("robot_description", "robot_file", "gravity", "use_friction", "payload.", "joint_dynamics.", "hold_joints.",
                "wrenches.")
LOCKED_LIMITS = ("joint_limits.", "speed_scaling.", "watch.", "commands", "effort_commands.")
LOCKED = (*LOCKED_ROBOT, *LOCKED_LIMITS, "use_sim_time")  # names, and with a dot at the end what they begin with

LOCK_LOG_PERIOD_S = 10.0  # s; between two lines on the console


class ParameterLock:
    """Lock of one node. /diagnostics: "<node>: lock", if enabled."""

    def __init__(self, node: Node, on: bool):
        self._node, self.on = node, on
        self._tally = EventCounter(node, "lock", "refused", _lock_text) if on else None  # by the name of a parameter or topic

    @property
    def refused(self) -> Mapping[str, int]:
        """Rejected changes, by name."""
        return self._tally.counts if self._tally else {}

    def allowed(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """Return the changes without locked parameters. An unchanged value of a locked parameter is ignored; another one
        raises Rejected.
        """
        if not self.on:
            return dict(changes)
        about = [name for name in changes if is_locked(name)]
        if others := [name for name in about
                      if repr(_plain(changes[name])) != repr(_plain(self._node.get_parameter_or(name).value))]:
            raise self.refusal(others)
        return {name: value for name, value in changes.items() if name not in about}

    def refusal(self, names: Iterable[str]) -> Rejected:
        """Count and log rejected names, and return the error."""
        names = list(names)
        assert self._tally is not None
        self._tally.counts.update(names)
        text = (f"{some(names)} cannot be changed: this node was started with locked: true, so that no node in the ROS domain "
                "changes its robot, limits or clock. Restart it with other values, or with locked: false")
        self._node.get_logger().warning(f"refused: {text}", throttle_duration_sec=LOCK_LOG_PERIOD_S)
        return Rejected("locked", text)


def _lock_text(total: int) -> str:
    return f"{count_noun(total, 'change')} refused" if total else "no change was asked for"


def is_locked(name: str) -> bool:
    """Return whether a parameter of this name is locked."""
    return any(name.startswith(locked) if locked.endswith(".") else name == locked for locked in LOCKED)


Values = dict[str, Any]
READ_AGAIN = ("robot_description", "robot_file")  # applied even if the value is the same: the file may have changed
FOREIGN = ("use_sim_time", "qos_overrides.", "start_type_description_service")  # rclpy declares these itself
SLIDER = 2000.0  # wider ranges are useless for a slider: their ends are checked, but not offered as a range


def descriptor(entry: ParameterEntry) -> ParameterDescriptor:
    """Return the descriptor for ROS tools."""
    unit = f" [{entry.unit}]" if entry.unit else ""
    made = ParameterDescriptor(description=entry.text + unit, additional_constraints=entry.bounds, read_only=entry.read_only)
    if entry.type == "int":
        made.integer_range = [IntegerRange(from_value=int(entry.low), to_value=int(entry.high), step=1)]
    elif entry.type == "double" and not math.isnan(entry.default) and entry.high - entry.low <= SLIDER:  # NaN has no range
        made.floating_point_range = [FloatingPointRange(from_value=entry.low, to_value=entry.high)]
    return made


class ParameterSet:
    """Parameters of a table, declared on a node.

    values : accepted values by name, including those of the joints once declared
    given  : joint values given by the user (file, command line, set), whether or not the joint exists
    lock   : rejects changes if the parameter `locked` is true

    Neither mapping is modified in place: a reference to one keeps its values. The node must be created with
    automatically_declare_parameters_from_overrides=True: the joint values of users are then known before the model.
    """

    def __init__(self, node: Node, entries: Iterable[ParameterEntry],
                 apply: Callable[[set[str]], None] = lambda changed: None):
        """apply(changed names) activates new values, or raises RneaError with the reason to reject them, before it changes
        anything.
        """
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
        self.lock = ParameterLock(node, self.values.get("locked", False))
        node.add_on_set_parameters_callback(self._on_set)
        for service in node.services:
            if service.srv_type is SetParameters:  # rclpy's callback applies the parameters of a request one by one
                service.callback = self._on_set_parameters

    def _take_overrides(self) -> None:
        """Validate the given values before the first use."""
        for name, parameter in self._node.get_parameters_by_prefix("").items():
            entry = find(name, self._entries)
            if entry is not None:
                self._check(name, parameter.value)
                if JOINT in entry.name:
                    self.given[name] = parameter.value
            elif not name.startswith(FOREIGN):
                hint = near(name, (e.name for e in self._entries))
                self._node.get_logger().warning(f"parameter '{name}' is not known and has no effect{hint}")
                self._node.undeclare_parameter(name)

    def _declare(self, entry: ParameterEntry, name: str, value: Any, ignore_override: bool = True) -> Any:
        if self._node.has_parameter(name):  # from the overrides, without a description
            self._node.undeclare_parameter(name)
        with self._setting():
            return self._node.declare_parameter(name, value, descriptor(entry), ignore_override).value

    @contextmanager
    def _setting(self) -> Iterator[None]:
        self._ours = True
        try:
            yield
        finally:
            self._ours = False

    def declare_joints(self, described: Mapping[str, Any]) -> None:
        """Declare the joint parameters of a new model, with its values by full name, instead of the last model's.

        Given values stay declared and settable without their joint, and apply again when it returns.
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
        self.values = {**values, **self._of_joints(self.given)}
        for name in self._described:
            self._declare(find(name, self._entries), name, self.values[name])  # type: ignore[arg-type]  # found above

    def _of_joints(self, given: Values) -> Values:
        """Return the values of the joint parameters: given ones, else the model's. A given number sets its flag."""
        known = {name: given.get(name, value) for name, value in self._described.items()}
        return known | {flag: True for flag in limit_flags(given) if flag in known and flag not in given}

    def go_back(self, values: Values, given: Values, concerned: Callable[[str], bool]) -> Values:
        """Restore the named parameters to the state of earlier `values` and `given`, for the same joints.

        Returns what it changed, by name.
        """
        joints = {name for name in (*self._described, *self.given) if concerned(name)}
        wanted = {name: value for name, value in values.items() if concerned(name) and name not in joints}
        described = self._of_joints(given)
        wanted |= {name: given.get(name, described.get(name)) for name in joints}
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

    def _on_set_parameters(self, request: SetParameters.Request, response: SetParameters.Response) -> SetParameters.Response:
        """Apply all parameters of a request together, for the cost of one.

        Raises ValueError for a value of an unknown type, before any parameter is set.
        """
        parameters = [*map(Parameter.from_parameter_msg, request.parameters)]
        if self.lock.on:  # what it refuses is counted once
            response.results = [result for parameter in parameters for result in self._set_together([parameter])]
        else:
            response.results = self._set_together(parameters)
        return response

    def _set_together(self, parameters: Sequence[Parameter]) -> list[SetParametersResult]:
        """Set parameters in one call; if rejected, set each half, so that only wrong ones are omitted."""
        if not parameters:
            return []
        try:
            result = self._node.set_parameters_atomically([*parameters])
        except Exception as error:  # not declared
            result = SetParametersResult(successful=False, reason=str(error))
        if result.successful or len(parameters) == 1:
            return [result] * len(parameters)
        half = len(parameters) // 2
        return self._set_together(parameters[:half]) + self._set_together(parameters[half:])

    def _on_set(self, parameters: list[Parameter]) -> SetParametersResult:
        if self._ours:
            return SetParametersResult(successful=True)
        try:
            allowed = self.lock.allowed({p.name: p.value for p in parameters})
        except RneaError as error:
            return SetParametersResult(successful=False, reason=str(error))
        changes = {name: value for name, value in allowed.items() if find(name, self._entries) is not None}
        of_joints = {name: value for name, value in changes.items() if name not in self.values or name in self._described}
        before = self.values, self.given
        try:
            for name, value in changes.items():
                self._check(name, value)
            now = {**self.given, **self.values}
            changed = {name for name, value in changes.items() if name in READ_AGAIN or repr(_plain(value)) != repr(
                _plain(now.get(name)))}
            self.given = {**self.given, **of_joints}
            self.values = {**self.values, **{name: value for name, value in changes.items() if name in self.values},
                           **self._of_joints(self.given)}
            if changed:
                self._apply(changed)
            self._update_flags(before[0], changes)
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

    def _update_flags(self, before: Values, changes: Values) -> None:
        """Set the node's flags has_..._limits that changed with the numbers of limits."""
        flags = [name for name in self._described if name.endswith("_limits") and name not in changes
                 and self.values[name] != before.get(name)]
        with self._setting():
            self._node.set_parameters([Parameter(flag, Parameter.Type.BOOL, self.values[flag]) for flag in flags])


def _plain(value: Any) -> Any:
    """Return a comparable form of a value, equal for all array types."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
