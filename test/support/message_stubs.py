"""Stubs of the messages that this machine has, for a type checker: their fields by name, those that are messages by type."""

from __future__ import annotations

import importlib
import re
from collections.abc import Collection, Iterable
from pathlib import Path
from textwrap import indent
from typing import Any

IMPORTED = re.compile(r"^\s*from (\w+)\.(msg|srv|action) import ", re.MULTILINE)
NAMED = re.compile(r"(\w+)/(\w+)")  # a field's type that is a message, as rosidl writes it


def imported(sources: Iterable[Path]) -> set[tuple[str, str]]:
    """(package, kind) that these files import messages of, rclpy's own modules not among them."""
    found = {(package, kind) for path in sources for package, kind in IMPORTED.findall(path.read_text())}
    return {(package, kind) for package, kind in found if package != "rclpy"}


def write(folder: Path, packages: Iterable[tuple[str, str]], lacking: Collection[str]) -> list[str]:
    """Write stubs of packages and of those that their fields need, without `lacking` ("Message.name"). Return the packages."""
    waiting, done = list(packages), []
    while waiting:
        package, kind = waiting.pop()
        file = folder / package / f"{kind}.pyi"
        try:
            module = importlib.import_module(f"{package}.{kind}")
        except ImportError:
            continue
        if file.exists():
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        (file.parent / "__init__.pyi").touch()
        text, needed = _module(module, f"{package}.{kind}", lacking)
        file.write_text(text)
        done.append(f"{package}.{kind}")
        waiting += [(name, "msg") for name in needed]
    return done


def _module(module: Any, name: str, lacking: Collection[str]) -> tuple[str, set[str]]:
    """The stub, and the packages it imports."""
    kinds = {name: kind for name, kind in vars(module).items() if isinstance(kind, type) and "_" not in name}
    blocks = [_class(name, kind, lacking) for name, kind in kinds.items()]
    needed = set(re.findall(r"(\w+)\.msg\.", "\n".join(blocks)))
    head = ["from typing import Any, ClassVar", *(f"import {package}.msg" for package in sorted(needed))]
    return "\n".join([*head, "", *blocks]), needed


def _class(name: str, kind: Any, lacking: Collection[str]) -> str:
    parts = [part for part in ("Request", "Response", "Goal", "Result", "Feedback") if hasattr(kind, part)]
    if parts:
        inside = "\n".join(_class(part, getattr(kind, part), lacking) for part in parts)
        return f"class {name}:\n" + indent(inside, "    ")
    fields = {field: _type(text) for field, text in kind.get_fields_and_field_types().items()
              if f"{name}.{field}" not in lacking}
    constants = [constant for constant in getattr(type(kind), f"_{type(kind).__name__}__constants", {})
                 if f"{name}.{constant}" not in lacking]
    given = "".join(f", {field}: Any = ..." for field in fields)
    lines = [f"    {field}: {text}" for field, text in fields.items()]
    lines += [f"    {constant}: ClassVar[Any]" for constant in constants]
    lines += ["    @classmethod", "    def get_fields_and_field_types(cls) -> dict[str, str]: ..."]
    return "\n".join([f"class {name}:", *lines, f"    def __init__(self{', *' if given else ''}{given}) -> None: ..."])


def _type(text: str) -> str:
    """Lists and numbers are anything, numpy's and Python's serve alike; so is what an action's own parts are made of."""
    named = NAMED.fullmatch(text)
    return f"{named[1]}.msg.{named[2]}" if named and "_" not in named[2] else "Any"
