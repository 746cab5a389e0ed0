"""RobotFile: one YAML beside the URDF, for all that a URDF cannot say of a robot. docs/robot_file.md tells every section.

    version: 1
    limits: {elbow: {max_effort: 90.0, max_effort_rate: 2000.0}}
    drives: {elbow: {gear_ratio: 100.0, rotor_inertia: 1.2e-4}}

`read` reads it, `checked` compares it with a URDF; both tell everything that is wrong at once, with path, line and column.
robots/load.py makes a robot of it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...errors import ModelError, ModelWarning, some
from ..tree import Model
from . import old_files, profiles
from .problem import Path, Problem

HINT = ("a robot file is needed there that says, for instance, 'version: 1' and 'limits: {elbow: {max_effort: 90.0}}', or the "
        "name of a profile, which `rnea robot-file --list` prints")
DEEPEST = 32
JOINTS = ("limits", "drives", "friction")  # sections that name the joints of a profile
FORMAT = ("version", "robot", "accepted_warnings")  # keys that change nothing of the robot, which every class may pass over


@dataclass(frozen=True, eq=False)
class RobotFile:
    """What a robot file says, each section in the form of the schema.

    content : {section: what it says}, valid by the schema
    where   : the path, or a word
    notes   : what was changed to fit the URDF
    old     : "", or which of the old kinds of files it was read from: loops, elastic joints, limits
    """

    content: Mapping[str, Any]
    where: str
    old: str = ""
    _places: Mapping[Path, tuple[int, int]] = field(default_factory=dict, repr=False)
    _written: Callable[[Path], Path] = field(default=old_files.as_it_is, repr=False)  # from a path here to one in an old file
    _unknown: tuple[Problem, ...] = field(default=(), repr=False)  # keys of an old file, with their paths there
    notes: tuple[ModelWarning, ...] = ()

    def section(self, name: str) -> Mapping[str, Any]:
        """Empty if the file has no such section."""
        return self.content.get(name, {})

    @property
    def sections(self) -> tuple[str, ...]:
        return tuple(name for name in self.content if name not in FORMAT)

    def check_schema(self) -> None:
        """Raise ModelError with everything in which the file differs from the schema. Names of the URDF are not compared."""
        from . import validation

        self.refuse(validation.problems(self.content, None))

    def checked(self, *models: Model) -> RobotFile:
        """Return the file, a profile with the names that its joints have in the URDF.

        models : of the tree, or of the legs and the platform. ModelError unless names and values fit them.
        """
        if profile := profiles.name_of(self.where):
            return self._renamed(profile, models)._checked(models)
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
        from . import rules, validation

        followers = {link.joint: model.joint_names[link.coordinate] for model in models for link in model.links
                     if link.joint and link.joint not in model.joint_names}
        names = validation.Names([name for model in models for name in model.joint_names], followers,
                                 [name for model in models for name in model.frames])
        wrong = validation.problems(self.content, names)
        self.refuse([*wrong, *rules.problems(self.content, models, wrong)])
        return self

    def refuse(self, problems: Sequence[Problem]) -> None:
        """ModelError tells them all, in the order of the file; nothing happens if there are none."""
        found = [*self._unknown, *(Problem(self._written(path), text) for path, text in problems)]
        found.sort(key=lambda problem: (not problem.path, self._place(problem.path) or (0, 0)))  # of the whole file last
        once = {(path, text.partition(";")[0]): Problem(path, text) for path, text in reversed(found)}  # not for each section
        if found:
            raise ModelError([problem.told(self._place(problem.path)) for problem in reversed(once.values())], self.where)

    def alone(self, reader: str, sections: Collection[str], required: Collection[str] = ()) -> RobotFile:
        """For a class that reads some sections: ModelError if it would pass over others, or finds none of those required."""
        others = [name for name in self.sections if name not in sections]
        if required and not any(name in self.content for name in required):
            has = f"; it has {some(others)}, of which rnea_ros.load makes the right robot" if others else ""
            raise ModelError(f"{reader} needs {' or '.join(required)}{has}", self.where)
        if others:
            raise ModelError(f"{reader} reads {some(sections)} alone, but there is {some(others)} too; rnea_ros.load reads "
                             "all", self.where)
        return self

    def only(self, sections: Collection[str]) -> RobotFile:
        """The same without the other sections."""
        return replace(self, content={name: value for name, value in self.content.items() if name in (*FORMAT, *sections)})

    def over(self, others: Mapping[str, Any]) -> RobotFile:
        """The same with other sections instead; None leaves a section as it is."""
        given = {name: _plain(value) for name, value in others.items() if value is not None}
        return replace(self, content={**self.content, **given}) if given else self

    def hint(self) -> str:
        """How an old file stands in a robot file, in one line; "" for a robot file."""
        if not self.old:
            return ""
        return (f"{self.where} is a file of {self.old}, read as {some(self.sections)} of a robot file, which `rnea robot-file "
                f"{self.where}` prints")

    def text(self) -> str:
        """As YAML, in the form of today, its sections in the order of the schema."""
        from .. import yaml_file
        from .schema import SCHEMA

        return yaml_file.text({name: self.content[name] for name in SCHEMA["properties"] if name in self.content})

    def _place(self, path: Path) -> tuple[int, int] | None:
        """Of a value, or of the nearest one around it: what is missing stands nowhere."""
        while path and path not in self._places:
            path = path[:-1]
        return self._places.get(path)


Source = str | os.PathLike | Mapping | RobotFile


def read(source: Source) -> RobotFile:
    """From the path of a YAML file, the name of a profile, or what is in one.

    Names of joints and links are compared with a URDF by `checked`, all else here.
    """
    from . import validation

    found = draft(source)
    found.refuse(validation.problems(found.content, None))
    return found


def draft(source: Source) -> RobotFile:
    """The same, unchecked: `checked` tells what is wrong with it together with what the URDF says against it."""
    if isinstance(source, RobotFile):
        return source
    return _converted(*_content(source))


def contents(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, to be `parsed` later. ModelError if it cannot be read."""
    from .. import yaml_file

    return yaml_file.data(profiles.located(path), HINT)


def parsed(data: bytes, where: str) -> RobotFile:
    """From the bytes of a file, unchecked as `draft`; where: its path."""
    from .. import yaml_file

    return _converted(*_document(*yaml_file.parsed(data, where)))


def _converted(content: dict[str, Any], places: Mapping[Path, tuple[int, int]], where: str) -> RobotFile:
    old = old_files.converted(content)
    if old is None:
        return RobotFile(content, where, "", places)
    return RobotFile(old.content, where, old.kind, places, old.written, tuple(old.problems))


def _content(source: Any) -> tuple[dict[str, Any], Mapping[Path, tuple[int, int]], str]:
    if isinstance(source, Mapping):
        return _plain(source), {}, "robot file"
    from .. import yaml_file

    return _document(*yaml_file.read(profiles.located(source), HINT))


def _document(content: Any, places: Mapping[Path, tuple[int, int]],
              where: str) -> tuple[dict[str, Any], Mapping[Path, tuple[int, int]], str]:
    if not isinstance(content, dict):
        raise ModelError(f"holds {'nothing' if content is None else type(content).__name__}; {HINT}", where)
    return _plain(content), places, where


def _with_names(value: Any, names: Mapping[str, str]) -> Any:
    """Replace names of joints, as keys and in lists."""
    if isinstance(value, Mapping):
        changed = {names[key]: _with_names(entry, names) for key, entry in value.items() if key in names}
        return changed | {key: _with_names(entry, names) for key, entry in value.items() if key not in names}
    if isinstance(value, list):
        return [_with_names(entry, names) for entry in value]
    return names.get(value, value) if isinstance(value, str) else value


def _plain(value: Any, depth: int = 0) -> Any:
    """Lists for tuples and arrays; infinity for integers beyond all floats, which Python cannot always write out."""
    if depth > DEEPEST:
        raise ModelError(f"has more than {DEEPEST} lists and mappings in each other", "robot file")
    if isinstance(value, Mapping):
        return {key: _plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist(), depth + 1)
    if isinstance(value, int) and value.bit_length() > 1024:
        return math.inf if value > 0 else -math.inf
    return [_plain(entry, depth + 1) for entry in value] if isinstance(value, list | tuple) else value
