"""Fuzzing target `sections`: sections of robot files generated from their schema, checked and made into robots.

Unlike `robot_file`, which changes the text of files, this target fills sections with values that mostly fit the schema, so
that many inputs reach the checks beyond it and some the robots: flexible links, fluid, wheels, payloads, couplings, supplies,
effort conventions. Torque and torque rate of a moderate motion must be finite, or rejected with a reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from fuzz.mutation import Choices
from fuzz.nodes import dice
from fuzz.target import Target, Try, WrongNumber
from rnea_ros import Robot, load
from rnea_ros.model import robot_file, urdf
from rnea_ros.model.robot_file_schema import SCHEMA
from support.node_bench import ARM, NAMES

SECTIONS = tuple(name for name in SCHEMA["properties"] if name != "version")
LINKS = ("base", "upper", "fore", "wrist", "hand", "tool")  # some of them are the arm's
ODD = 6  # of 256 values are of another type, or beyond their bounds
LOADED = 16  # one of so many files without a problem is made into a robot
LONGEST = 4  # entries of a list or mapping
WRONG = (None, True, "", "x", -1, 0, 2, 1e300, float("nan"), float("inf"), [], {}, [[]], {"": 0}, 10**400, (1, 2))
SIZES = (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0, 1e4)


def value(choose: Choices, schema: dict[str, Any]) -> Any:
    """Return a value for a schema, which mostly fits it."""
    if choose.byte() < ODD:
        return choose.pick(WRONG)
    if "enum" in schema:
        return choose.pick(schema["enum"])
    kind = schema.get("type")
    kind = choose.pick(kind) if isinstance(kind, list) else kind
    if kind == "object":
        return _mapping(choose, schema)
    if kind == "array":
        least = schema.get("minItems", 0)
        count = least if least == schema.get("maxItems") else least + choose.byte() % LONGEST
        return [value(choose, schema["items"]) for _ in range(count)]
    if kind == "string":
        return _name(choose, schema)
    if kind == "boolean":
        return bool(choose.byte() % 2)
    return _number(choose, schema)


def _mapping(choose: Choices, schema: dict[str, Any]) -> dict[str, Any]:
    properties, entry = schema.get("properties", {}), schema.get("additionalProperties")
    if isinstance(entry, dict):
        names = [_name(choose, schema.get("propertyNames", {})) for _ in range(1 + choose.byte() % LONGEST)]
        return {name: value(choose, entry) for name in names}
    wanted = [name for name in properties if name in schema.get("required", ()) or choose.byte() % 3 == 0]
    return {name: value(choose, properties[name]) for name in wanted if choose.byte() >= ODD}


def _name(choose: Choices, schema: dict[str, Any]) -> str:
    if choose.byte() < ODD:
        return str(choose.pick(("", "unknown", "*", *LINKS, *NAMES)))
    return str(choose.pick(LINKS if schema.get("format") == "link" else NAMES))


def _number(choose: Choices, schema: dict[str, Any]) -> float:
    if schema.get("type") == "integer":
        return schema.get("minimum", 0) + choose.byte() % 4
    if choose.byte() < ODD:
        return choose.number()
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    sign = 1.0 if low == 0 else -1.0 if schema.get("exclusiveMaximum") == 0 else choose.pick((1.0, -1.0))
    found = sign * choose.pick(SIZES)
    return min(found, high) if high is not None else found


def content(choose: Choices) -> dict[str, Any]:
    """Return the content of a file with up to three sections."""
    names = [choose.pick(SECTIONS) for _ in range(1 + choose.byte() % 3)]
    return {"version": 1, **{name: value(choose, SCHEMA["properties"][name]) for name in names}}


def _sections(_folder: Path) -> Try:
    model = urdf.load(ARM)

    def attempt(data: bytes) -> str:
        choose = Choices(data)
        given, number = content(choose), choose.byte()
        special = {"platform", "platforms", "flexible_links"} & given.keys()  # they change the URDF
        if not special:
            robot_file.draft(given).checked(model)
        else:
            robot_file.draft(given).check_schema()
        if number % LOADED and not special:
            return "checked"
        return _finite(load(ARM, given, backend="python"))

    return attempt


def _finite(robot: Robot) -> str:
    motion = np.linspace(-0.5, 0.6, 4 * robot.n).reshape(4, robot.n)
    with np.errstate(all="ignore"):
        torque, rate = robot.torque_and_rate(*motion)
    if not np.isfinite(torque).all() or not np.isfinite(rate).all():
        raise WrongNumber(f"torque {torque}, torque rate {rate} of {robot}")
    return "made a robot, torque and rate finite"


TARGETS = (Target("sections", dice, _sections, generate=lambda rng: rng.randbytes(rng.choice((40, 100, 200, 400)))),)
