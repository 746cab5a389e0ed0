"""The parameters of a running node: declared from a table, checked, kept, and refused where they change for the worse."""

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
from rnea_ros.errors import in_words, near
from rnea_ros.nodes.common.lock import Lock
from rnea_ros.nodes.common.parameter_entry import Entry
from rnea_ros.nodes.common.parameter_table import JOINT, find, limit_flags

Values = dict[str, Any]
READ_AGAIN = ("robot_description", "robot_file")  # applied even if the value is the same: the file may have changed
FOREIGN = ("use_sim_time", "qos_overrides.", "start_type_description_service")  # rclpy declares these itself
SLIDER = 2000.0  # a wider range is of no use to who drags a slider: its ends are checked, but not offered as a range


def descriptor(entry: Entry) -> ParameterDescriptor:
    """What ROS tools are told of a parameter."""
    unit = f" [{entry.unit}]" if entry.unit else ""
    made = ParameterDescriptor(description=entry.text + unit, additional_constraints=entry.bounds, read_only=entry.read_only)
    if entry.type == "int":
        made.integer_range = [IntegerRange(from_value=int(entry.low), to_value=int(entry.high), step=1)]
    elif entry.type == "double" and not math.isnan(entry.default) and entry.high - entry.low <= SLIDER:  # NaN has no range
        made.floating_point_range = [FloatingPointRange(from_value=entry.low, to_value=entry.high)]
    return made


class ParameterSet:
    """A table declared on a node.

    values : the accepted values by name, those of the joints included once they are declared
    given  : the joints' values that were given by the user (file, command line, set), whether or not the joint exists yet
    lock   : what refuses changes, where the parameter `locked` asks for that

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
        self.lock = Lock(node, self.values.get("locked", False))
        node.add_on_set_parameters_callback(self._on_set)
        for service in node.services:
            if service.srv_type is SetParameters:  # rclpy's callback applies the parameters of a request one by one
                service.callback = self._on_set_parameters

    def _take_overrides(self) -> None:
        """Check what the user gave before anything is built on it."""
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

    def _declare(self, entry: Entry, name: str, value: Any, ignore_override: bool = True) -> Any:
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
        self.values = {**values, **self._of_joints(self.given)}
        for name in self._described:
            self._declare(find(name, self._entries), name, self.values[name])  # type: ignore[arg-type]  # found above

    def _of_joints(self, given: Values) -> Values:
        """Return the values of the joints' parameters: those given, else the model's. A number that is given sets its flag."""
        known = {name: given.get(name, value) for name, value in self._described.items()}
        return known | {flag: True for flag in limit_flags(given) if flag in known and flag not in given}

    def go_back(self, values: Values, given: Values, concerned: Callable[[str], bool]) -> Values:
        """Make what is concerned again as it was when `values` and `given` were this object's, for the same joints.

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
        """Apply all parameters of a request together: hundreds of them cost what one costs.

        Raises ValueError for a value of an unknown type, before any parameter is set.
        """
        parameters = [*map(Parameter.from_parameter_msg, request.parameters)]
        if self.lock.on:  # what it refuses is counted once
            response.results = [result for parameter in parameters for result in self._set_together([parameter])]
        else:
            response.results = self._set_together(parameters)
        return response

    def _set_together(self, parameters: Sequence[Parameter]) -> list[SetParametersResult]:
        """Set parameters in one call; where they are refused, set each half, so that only the wrong ones are left out."""
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
    """Comparable, whichever array it is."""
    return list(value) if isinstance(value, Iterable) and not isinstance(value, str) else value
