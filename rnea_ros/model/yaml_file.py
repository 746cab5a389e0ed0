"""YAML files as users write them, read with care: plain values only, of bounded size, nothing that hides something else."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ..errors import ModelError

MAX_BYTES = 1_000_000
MAX_DEPTH = 32  # of lists and mappings in each other
INT, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("int", "float"))
MERGE = "tag:yaml.org,2002:merge"

Path_ = tuple[str | int, ...]  # keys and numbers of entries, from the outermost value to one inside


class Document(NamedTuple):
    """Content of a YAML file.

    content : mappings, lists, strings, numbers, truth values
    marks   : {keys from the top: (line, column)} of every value, both from 1; for an entry of a mapping, those of its key
    where   : the path
    """

    content: Any
    marks: Mapping[Path_, tuple[int, int]]
    where: str


def read(path: Any, hint: str) -> Document:
    """Return the content of a file and its positions. ModelError if it cannot be read; hint: the content that is expected."""
    return parsed(data(path, hint), str(path))


def data(path: Any, hint: str) -> bytes:
    """Return the bytes of a file. ModelError as of `read`."""
    where = str(path)
    try:
        with Path(path).open("rb") as file:
            found = file.read(MAX_BYTES + 1)
    except (OSError, TypeError, ValueError) as error:  # no path; a path with a zero byte
        raise ModelError(f"cannot be read ({getattr(error, 'strerror', None) or error}); {hint}", where) from None
    if len(found) > MAX_BYTES:
        raise ModelError(f"more than {MAX_BYTES} bytes", where)
    return found


def parsed(data: bytes, where: str) -> Document:
    """Return the content of the bytes of a file. ModelError if they are not YAML."""
    try:
        loader = _Strict(data)  # a SafeLoader: plain values only
        node = loader.get_single_node()
        marks: dict[Path_, tuple[int, int]] = {}
        _note_marks(node, (), node, marks)
        return Document(None if node is None else loader.construct_document(node), marks, where)
    except _Refused as error:
        raise ModelError(str(error), where) from None
    except yaml.MarkedYAMLError as error:
        text = " ".join(filter(None, (error.context, error.problem)))[:300]
        raise ModelError(f"{_position(error.problem_mark or error.context_mark)}is not YAML: {text}", where) from None
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ModelError(f"is not YAML: {' '.join(str(error).split())[:300]}", where) from None


def content(path: Any, hint: str) -> Any:
    """Return the content of a file, as `read`, without positions."""
    return read(path, hint).content


def text(values: Any) -> str:
    """Plain values as YAML, in their order; what has no mapping inside in one line."""
    return yaml.dump(values, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=110)


def _note_marks(node: yaml.Node | None, path: Path_, named: yaml.Node | None, marks: dict[Path_, tuple[int, int]]) -> None:
    if node is None or named is None:
        return
    marks[path] = named.start_mark.line + 1, named.start_mark.column + 1
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _note_marks(value, (*path, key.value), key, marks)
    elif isinstance(node, yaml.SequenceNode):
        for k, value in enumerate(node.value):
            _note_marks(value, (*path, k), value, marks)


def _position(mark: Any) -> str:
    return f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""


class _Refused(yaml.YAMLError):
    """YAML that is well-formed, but not accepted here."""

    def __init__(self, mark: Any, text: str):
        super().__init__(_position(mark) + text)


class _Strict(yaml.SafeLoader):
    """Loader that rejects aliases, with which a short file can expand without end, and duplicate keys.

    Numbers follow YAML 1.2: 4e-3 is a number, which YAML 1.1 reads as text; 010, 1:30 and 1_000 are text, which YAML 1.1
    reads as 8, 90 and 1000.
    """

    depth = 0

    def compose_node(self, parent, index):
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()
            raise _Refused(event.start_mark, f"alias *{event.anchor[:80]} is not supported; write the values out")
        if self.depth > MAX_DEPTH:
            raise _Refused(self.peek_event().start_mark, f"more than {MAX_DEPTH} lists and mappings in each other")
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_mapping(self, node, deep=False):
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice = [key for key, count in counts.items() if count > 1]
        if twice:
            mark = max((key.start_mark for key, _ in node.value if key.value == twice[0]), key=lambda mark: mark.index)
            raise _Refused(mark, f"key '{twice[0][:80]}' occurs twice; remove one")
        return super().construct_mapping(node, deep)


_Strict.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in (INT, FLOAT, MERGE)]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}
_Strict.add_implicit_resolver(INT, re.compile(r"[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789"))
_Strict.add_implicit_resolver(FLOAT, re.compile(
    r"([-+]?(\.[0-9]+|(0|[1-9][0-9]*)(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))$"),
                              list("-+.0123456789"))


class _Plain(yaml.SafeDumper):
    def represent_mapping(self, tag, mapping, flow_style=None):
        node = super().represent_mapping(tag, mapping, flow_style)
        node.flow_style = not any(isinstance(value, yaml.MappingNode) for _, value in node.value)
        return node

    def represent_sequence(self, tag, sequence, flow_style=None):
        return super().represent_sequence(tag, sequence, True)
