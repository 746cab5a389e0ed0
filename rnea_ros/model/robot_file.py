"""RobotFile: one YAML file beside the URDF for everything that a URDF cannot express. docs/robot_file.md lists every section.

    version: 1
    limits: {elbow: {max_effort: 90.0, max_effort_rate: 2000.0}}
    drives: {elbow: {gear_ratio: 100.0, rotor_inertia: 1.2e-4}}

`read` reads it, `checked` compares it with a URDF; both report all errors at once, with path, line and column.
robots/load.py builds a robot from it.
"""

from __future__ import annotations

import math
import os
import pathlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any

import numpy as np

from ..errors import ModelError, ModelWarning, some
from .robot_file_schema import SCHEMA
from .robot_file_validation import Names, Path, Problem, rule_problems, schema_problems
from .tree import Model

HINT = ("a robot file is needed there with, for instance, 'version: 1' and 'limits: {elbow: {max_effort: 90.0}}', or the "
        "name of a profile, which `rnea robot-file --list` prints")
DEEPEST = 32  # lists and mappings in each other
JOINTS = ("limits", "drives", "friction")  # sections that name the joints of a profile
FORMAT = ("version", "robot", "accepted_warnings")  # keys that do not change the robot: every class accepts them


@dataclass(frozen=True, eq=False)
class RobotFile:
    """Content of a robot file, each section in the form of the schema.

    content : {section: its entries}
    where   : the path, or a word
    notes   : changes that were made to fit the URDF
    """

    content: Mapping[str, Any]
    where: str
    _positions: Mapping[Path, tuple[int, int]] = field(default_factory=dict, repr=False)
    notes: tuple[ModelWarning, ...] = ()

    def section(self, name: str) -> Mapping[str, Any]:
        """Return a section, empty if the file has none."""
        return self.content.get(name, {})

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(name for name in self.content if name not in FORMAT)

    def check_schema(self) -> None:
        """Raise ModelError with everything in which the file differs from the schema. Names of the URDF are not compared."""
        self.refuse(schema_problems(self.content, None))

    def checked(self, *models: Model) -> RobotFile:
        """Return the file, a profile with the names that its joints have in the URDF.

        models : of the tree, or of the legs and the platform. ModelError unless names and values fit them.
        """
        if profile := profile_of(self.where):
            renamed: RobotFile = self._renamed(profile, models)
            return renamed._checked(models)
        return self._checked(models)

    def _renamed(self, profile: str, models: Sequence[Model]) -> RobotFile:
        """Return the profile with the prefix or suffix of its joints in the URDF. ModelError if there are no such joints."""
        known = {link.joint for model in models for link in model.links if link.joint}
        names = list(dict.fromkeys(name for section in JOINTS for name in self.section(section)))
        missing = [name for name in names if name not in known]
        if not missing or any(not isinstance(name, str) for name in names):
            return self
        first = missing[0]
        affixes = [tuple(name.split(first, 1)) for name in sorted(known) if first in name]
        fitting = [(before, after) for before, after in affixes if all(f"{before}{name}{after}" in known for name in missing)]
        if len(fitting) == 1:
            before, after = fitting[0]
            names_now = {name: f"{before}{name}{after}" for name in missing}
            affix = " and ".join(filter(None, (before and f"prefix '{before}'", after and f"suffix '{after}'")))
            note = ModelWarning("renamed_joints", f"profile {profile} is applied to the joints with {affix}: "
                                                  f"{some(names_now.values())}")
            return replace(self, content=_with_names(self.content, names_now), notes=(*self.notes, note))
        if len(fitting) > 1:
            arms = some([f"{before}{first}{after}" for before, after in fitting])
            raise ModelError(f"profile {profile} fits several groups of joints of robot '{models[0].name}': those of {arms}. "
                             f"Copy it (rnea robot-file {profile}), with entries for the joints of each group", self.where)
        if len(missing) == len(names):
            theirs = some([name for model in models for name in model.joint_names])
            raise ModelError(f"profile {profile} is for {some(names)}; robot '{models[0].name}' has {theirs}. `rnea "
                             f"robot-file --list` prints all profiles, `rnea robot-file {profile}` prints this one, to be "
                             "copied and changed", self.where)
        return self

    def _checked(self, models: Sequence[Model]) -> RobotFile:
        followers = {link.joint: model.joint_names[link.coordinate] for model in models for link in model.links
                     if link.joint and link.joint not in model.joint_names}
        names = Names([name for model in models for name in model.joint_names], followers,
                      [name for model in models for name in model.frames])
        wrong = schema_problems(self.content, names)
        self.refuse([*wrong, *rule_problems(self.content, models, wrong)])
        return self

    def refuse(self, problems: Sequence[Problem]) -> None:
        """Raise ModelError with all problems, in the order of the file; return if there are none."""
        found = sorted(problems, key=lambda problem: (not problem.path, self._position(problem.path) or (0, 0)))
        once = {(path, text.partition(";")[0]): Problem(path, text) for path, text in reversed(found)}  # not for each section
        if found:
            sentences = [problem.sentence(self._position(problem.path)) for problem in reversed(once.values())]
            raise ModelError(sentences, self.where)

    def alone(self, reader: str, sections: Collection[str], required: Collection[str] = ()) -> RobotFile:
        """Return the file; ModelError if it has sections that the reader ignores, or none of those required."""
        others = [name for name in self.sections if name not in sections and name in SCHEMA["properties"]]
        if required and not any(name in self.content for name in required):
            has = f"; it has {some(others)}, of which rnea_ros.load makes the right robot" if others else ""
            raise ModelError(f"{reader} needs a robot file with the section {' or '.join(required)}{has}", self.where)
        if others:
            raise ModelError(f"{reader} reads {some(sections)} only, but the file has {some(others)} too; rnea_ros.load "
                             "reads all sections", self.where)
        return self

    def only(self, sections: Collection[str]) -> RobotFile:
        """Return the file without the other sections."""
        return replace(self, content={name: value for name, value in self.content.items() if name in (*FORMAT, *sections)})

    def with_limits(self, limits: Mapping[str, Any], sources: Mapping[Path, Path]) -> RobotFile:
        """Return a file with the section limits only, from values at other paths of this one.

        sources: {path from the top of the new file: path of the same value in this one}
        """
        marks = {(*path, *at[len(source):]): mark for path, source in sources.items()
                 for at, mark in self._positions.items() if at[:len(source)] == source}
        return replace(self, content={"version": 1, "limits": limits}, _positions=marks)

    def over(self, others: Mapping[str, Any]) -> RobotFile:
        """Return the file with sections replaced; None keeps a section."""
        given = {name: _plain(value) for name, value in others.items() if value is not None}
        return replace(self, content={**self.content, **given}) if given else self

    def text(self) -> str:
        """Return the file as YAML, its sections in the order of the schema."""
        from . import yaml_file

        return yaml_file.text({name: self.content[name] for name in SCHEMA["properties"] if name in self.content})

    def _position(self, path: Path) -> tuple[int, int] | None:
        """Return line and column of a value; of a missing one, those of the mapping that should have it."""
        while path and path not in self._positions:
            path = path[:-1]
        return self._positions.get(path)


Source = str | os.PathLike | Mapping | RobotFile


def read(source: Source) -> RobotFile:
    """Read a robot file from the path of a YAML file, the name of a profile, or a mapping, and compare it with the schema.

    Names of joints and links are compared with a URDF by `checked`.
    """
    found = draft(source)
    found.check_schema()
    return found


def draft(source: Source) -> RobotFile:
    """Read a robot file without checks: `checked` reports differences from the schema and from the URDF together."""
    if isinstance(source, RobotFile):
        return source
    if isinstance(source, Mapping):
        return RobotFile({"version": 1, **_plain(source)}, "robot file")  # in Python the version may be left out
    from . import yaml_file

    return _from_document(*yaml_file.read(located(source), HINT))


def contents(path: str | os.PathLike[str]) -> bytes:
    """Return the bytes of a file, to be `parsed` later. ModelError if it cannot be read."""
    from . import yaml_file

    return yaml_file.data(located(path), HINT)


def parsed(data: bytes, where: str) -> RobotFile:
    """Return an unchecked robot file from the bytes of a file; where: its path."""
    from . import yaml_file

    return _from_document(*yaml_file.parsed(data, where))


def _from_document(content: Any, positions: Mapping[Path, tuple[int, int]], where: str) -> RobotFile:
    if not isinstance(content, dict):
        raise ModelError(f"holds {'nothing' if content is None else type(content).__name__}; {HINT}", where)
    return RobotFile(_plain(content), where, positions)


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    """Replace names of joints, as keys and in lists."""
    if isinstance(value, Mapping):
        changed = {names[key]: _with_names(entry, names) for key, entry in value.items() if key in names}
        return changed | {key: _with_names(entry, names) for key, entry in value.items() if key not in names}
    if isinstance(value, list):
        return [_with_names(entry, names) for entry in value]
    return names.get(value, value) if isinstance(value, str) else value


def _plain(value: Any, depth: int = 0) -> Any:
    """Return lists for tuples and arrays, and infinity for integers beyond all floats."""
    if depth > DEEPEST:
        raise ModelError(f"has lists and mappings nested more than {DEEPEST} deep", "robot file")
    if isinstance(value, Mapping):
        return {key: _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), depth + 1)
    if isinstance(value, int) and value.bit_length() > 1024:
        return math.inf if value > 0 else -math.inf
    return [_plain(entry, depth + 1) for entry in value] if isinstance(value, list | tuple) else value


PROFILES = resources.files(__package__) / "profiles"


def profile_names() -> tuple[str, ...]:
    """Return the names of all profiles: robot files of robots that people own, with public numbers and their sources."""
    files = (entry.name for entry in PROFILES.iterdir())
    return tuple(sorted(file.removesuffix(".yaml") for file in files if file.endswith(".yaml")))


def profile_of(where: str) -> str:
    """Return the name of the profile of this name or path; empty if it is none."""
    if where in profile_names():
        return where
    path = pathlib.Path(where)
    return path.stem if path.parent == pathlib.Path(str(PROFILES)) else ""


def located(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path itself, or for a plain word that is no file, the path of the profile of this name."""
    if isinstance(path, str) and path.isidentifier() and path in profile_names() and not pathlib.Path(path).exists():
        return str(PROFILES.joinpath(f"{path}.yaml"))
    return path
