"""What is wrong with a robot file, in words: jsonschema finds it, here it becomes sentences with path, line and column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]
import numpy as np

from ...errors import near, shown, some
from .problem import Path, Problem
from .schema import SCHEMA, Schema

MOST = 50  # problems that are told
COUNTS = {2: "two", 3: "three", 6: "six"}


class Names(NamedTuple):
    """What a URDF calls things. joints: those with a coordinate; followers: {mimic joint: joint that it follows}."""

    joints: Sequence[str]
    followers: Mapping[str, str]
    links: Sequence[str]


def problems(content: Any, names: Names | None, schema: Schema = SCHEMA) -> list[Problem]:
    """What the schema refuses, MOST of it; names None: those of the URDF are not looked at.

    A problem of the whole file, with an empty path, says that not all of it was looked at.
    """
    odd = list(islice(_odd_keys(content, ()), MOST))
    if odd:
        return [*odd, Problem((), "is looked at no further before that is mended")]
    errors = list(islice(_validator(schema, names).iter_errors(content), MOST + 1))
    found = dict.fromkeys(Problem(*problem) for error in errors[:MOST] for problem in _told(error, content, schema))
    return [*found, *([Problem((), f"has more problems than the first {MOST}")] if len(errors) > MOST else [])]


def _odd_keys(value: Any, path: Path) -> Iterator[Problem]:
    """YAML takes `on:` for a truth value and `7:` for a number; names of joints are text."""
    if isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                yield Problem(path, f"has the key {shown(key, 40)}, which is no text; names that look like numbers, dates or "
                                    "yes, no, on, off need quotes")
            else:
                yield from _odd_keys(entry, (*path, key))
    elif isinstance(value, list):
        for k, entry in enumerate(value):
            yield from _odd_keys(entry, (*path, k))


def is_number(value: Any) -> bool:
    """Finite; no truth value, no text."""
    try:
        return not isinstance(value, bool | np.bool_ | str | bytes) and bool(np.isfinite(float(value)))
    except (TypeError, ValueError, OverflowError):
        return False


def _validator(schema: Schema, names: Names | None) -> Any:
    checker = jsonschema.FormatChecker(formats=())
    if names is not None:
        for kind, check in _checks(names).items():
            checker.checkers[kind] = (check, ValueError)
    types = jsonschema.Draft7Validator.TYPE_CHECKER.redefine("number", lambda _, value: is_number(value))
    return jsonschema.validators.extend(jsonschema.Draft7Validator, type_checker=types)(schema, format_checker=checker)


def _checks(names: Names) -> dict[str, Callable[[Any], bool]]:
    """By kind of name: a function that raises ValueError, with words, where the URDF has none such."""
    joints, followers, links = set(names.joints), names.followers, set(names.links)

    def joint(name: Any) -> bool:
        if isinstance(name, str) and name in followers:
            raise ValueError(f"joint '{name}' only follows '{followers[name]}' (mimic); name that one")
        return not isinstance(name, str) or name in joints or unknown("joint", name, names.joints)

    def any_joint(name: Any) -> bool:
        known = name in joints or name in followers
        return not isinstance(name, str) or known or unknown("joint", name, [*names.joints, *followers])

    def link(name: Any) -> bool:
        return not isinstance(name, str) or name in links or unknown("link", name, names.links)

    def unknown(kind: str, name: str, known: Sequence[str]) -> bool:
        raise ValueError(f"{kind} {shown(name)} does not exist; the {kind}s are {some(known) or 'none'}{near(name, known)}")

    return {"joint": joint, "any joint": any_joint, "link": link}


def _told(error: Any, content: Any, whole: Schema) -> Iterator[tuple[Path, str]]:
    """One error of jsonschema in our words: paths and sentences."""
    path, value, schema = tuple(error.absolute_path), error.instance, error.schema
    steps = list(error.absolute_schema_path)
    if steps[-2:-1] == ["items"] and schema["type"] == "number":  # in a vector, which is told as one
        path, schema = path[:-1], _at(whole, steps[:-2])
        yield path, f"is {shown(_at(content, path), 60)}; {needed(schema, None)}"
    elif error.validator == "additionalProperties":
        for key in value:
            if key not in schema["properties"]:
                allowed = _live(schema)
                yield (*path, key), f"is not known; allowed are {', '.join(allowed)}{near(key, allowed)}"
    elif error.validator in ("required", "dependencies"):
        yield from _missing(error, path, value, schema)
    elif error.validator == "format":
        yield (*path, value) if "propertyNames" in steps else path, f": {error.cause}"
    elif error.validator == "not" and "const" not in error.validator_value:
        yield path, f": {schema['description'][0].lower()}{schema['description'][1:]}"
    elif error.validator == "minProperties" or (error.validator == "minItems" and not value):
        yield path, "is empty; at least one entry is needed"
    else:
        yield path, f"is {shown(value, 60)}; {needed(schema, value)}"


def _missing(error: Any, path: Path, value: Mapping, schema: Schema) -> Iterator[tuple[Path, str]]:
    properties = schema["properties"]
    if error.validator == "required":
        for key in schema["required"]:
            if key not in value:
                yield (*path, key), f"is missing; {needed(properties[key], None)}"
        return
    for key, others in schema["dependencies"].items():
        for other in others:
            if key in value and other not in value:
                yield (*path, other), f"is missing, which {key} needs; {needed(properties[other], None)}"


def _at(inside: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        inside = inside[step]
    return inside


def needed(schema: Schema, value: Any) -> str:
    """What a value must be, in words, with its unit."""
    text = schema.get("description", "")
    unit = f" {text[text.index('['):].rstrip('.')}" if "[" in text else ""
    if "enum" in schema:
        allowed = [str(word) for word in schema["enum"]]
        return f"allowed are {', '.join(allowed)}{near(value, allowed) if isinstance(value, str) else ''}"
    kind = schema.get("type")
    if kind == "array" and schema["items"]["type"] == "number":
        return f"{COUNTS[schema['minItems']]} finite numbers are needed{unit}"
    if kind == "array" and schema["items"]["type"] != "string":
        each = needed(schema["items"], None).removesuffix(" is needed").replace(" are needed", "")
        return f"a list is needed, each entry {each}"
    if kind == "number":
        return f"{_number_in_words(schema, value)} is needed{unit}"
    name = f"the name of a {schema.get('format', 'robot').removeprefix('any ')}"
    return {"array": "a list of names", "string": name, "boolean": "true or false"}.get(
        kind if isinstance(kind, str) else "", _mapping_in_words(schema)) + " is needed"


def _number_in_words(schema: Schema, value: Any) -> str:
    if is_number(value) and abs(value) > schema["maximum"]:
        return f"a number up to {schema['maximum']:g}"
    if schema.get("exclusiveMinimum") == 0:
        return "a number above zero"
    if schema.get("minimum") == 0:
        return "a number not below zero"
    return "a number other than zero" if "not" in schema else "a finite number"


def _mapping_in_words(schema: Schema) -> str:
    if "properties" in schema:
        return f"a mapping with {', '.join(_live(schema))}"
    return "a mapping from names to entries"


def _live(schema: Schema) -> list[str]:
    """The keys that are served."""
    return [key for key, entry in schema["properties"].items() if entry.get("not") != {}]
