"""Processes of a launch file with their parameters, without starting the nodes.

`by_launch` runs ROS 2's launch in a separate process, with programs that only write their command line. `by_stand_in` does
not need launch: it implements only the classes that our files use, as in launch 3.7 and launch_ros 0.28, so that a file
which uses more of them fails. test_launch.py compares the two where launch is installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import yaml

REAL = importlib.util.find_spec("launch_ros") is not None
RUN = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
arguments = [argument.split(":=", maxsplit=1) for argument in sys.argv[2:]]
service = LaunchService(noninteractive=True)
include = IncludeLaunchDescription(PythonLaunchDescriptionSource(sys.argv[1]), launch_arguments=arguments)
service.include_launch_description(LaunchDescription([include]))
sys.exit(service.run())
"""
NOTE = '#!/bin/sh\nfile=$(mktemp "{notes}/XXXXXX")\nprintf "%s\\0" "$0" "$@" > "$file"\nmv "$file" "$file.noted"\n'


class StartedProcess(NamedTuple):
    """Process of a launch file. parameters: those of the launch file, which override those in `files`."""

    executable: str
    namespace: str
    parameters: dict[str, Any]
    files: list[str]
    remappings: list[str]
    arguments: list[str]


class LaunchResult(NamedTuple):
    """Result of a launch file. error: why launch stopped, "" if it did not."""

    started: list[StartedProcess]
    said: list[str]
    error: str

    @property
    def programs(self) -> list[str]:
        return sorted(one.executable for one in self.started)

    def one(self, executable: str) -> StartedProcess:
        (found,) = [one for one in self.started if one.executable == executable]
        return found


# --- workspaces -------------------------------------------------------------------------------------------------------


def workspace(folder: Path, packages: Mapping[str, tuple[str, ...]], program: str) -> Path:
    """Create a folder in which launch finds these packages with their executables, all of them the same script. A package
    without executables hides an installed one.
    """
    for package, executables in packages.items():
        index = folder / "share/ament_index/resource_index/packages"
        for made in (index, folder / "share" / package, folder / "lib" / package):
            made.mkdir(parents=True, exist_ok=True)
        (index / package).touch()
        for executable in executables:
            file = folder / "lib" / package / executable
            file.write_text(program)
            file.chmod(0o755)
    return folder


def prefixes(folder: Path) -> str:
    return os.pathsep.join([str(folder), os.environ.get("AMENT_PREFIX_PATH") or sys.prefix])


def launched(file: Path, arguments: Mapping[str, str], packages: Mapping[str, tuple[str, ...]], folder: Path) -> LaunchResult:
    return (by_launch if REAL else by_stand_in)(file, arguments, packages, folder)


def _started(command: list[str]) -> StartedProcess:
    """Parse a command line of launch_ros."""
    program, *words = command
    found = StartedProcess(Path(program).name, "", {}, [], [], [])
    while words:
        word = words.pop(0)
        if word == "--params-file" and Path(words[0]).name.startswith("launch_params_"):
            text = Path(words.pop(0)).read_text().replace("!!python/tuple", "")  # tag of launch for lists, ignored by rcl
            ((who, content),) = yaml.safe_load(text).items()
            assert who.split("/")[-1] == found.executable  # otherwise a file's section for the node would override it
            found.parameters.update(content["ros__parameters"])
        elif word == "--params-file":
            found.files.append(words.pop(0))
        elif word == "-r" and words[0].startswith("__node:="):
            assert words.pop(0) == f"__node:={found.executable}"
        elif word == "-r" and words[0].startswith("__ns:="):
            found = found._replace(namespace=words.pop(0).removeprefix("__ns:="))
        elif word == "-r":
            found.remappings.append(words.pop(0))
        else:
            found.arguments.append(word)
    return found


# --- launch of ROS 2 ----------------------------------------------------------------------------------------------------


def by_launch(file: Path, arguments: Mapping[str, str], packages: Mapping[str, tuple[str, ...]], folder: Path) -> LaunchResult:
    folder = Path(tempfile.mkdtemp(dir=folder))
    made = workspace(folder / "workspace", packages, NOTE.format(notes=folder))
    environment = {**os.environ, "AMENT_PREFIX_PATH": prefixes(made), "TMPDIR": str(folder),
                   "ROS_LOG_DIR": str(folder / "log")}
    run = subprocess.run([sys.executable, "-c", RUN, str(file), *(f"{name}:={value}" for name, value in arguments.items())],
                         env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=240)
    count, end = run.stdout.count("process started with pid"), time.monotonic() + 120.0
    while len(notes := sorted(folder.glob("*.noted"))) < count:
        assert time.monotonic() < end, run.stdout
        time.sleep(0.02)
    error = re.search(r"Caught exception in launch \(see debug for traceback\): (.*)", run.stdout, flags=re.S)
    assert bool(error) == bool(run.returncode), run.stdout
    return LaunchResult(sorted(_started(note.read_text().split("\0")[:-1]) for note in notes),
                    re.findall(r"\[launch\.user\]: (.*)", run.stdout), error[1].strip() if error else "")


# --- the stand-in -----------------------------------------------------------------------------------------------------


class LaunchDescription:
    def __init__(self, entities: list[Any]):
        self.entities = entities


class DeclareLaunchArgument:
    def __init__(self, name: str, *, default_value: str | None = None, description: str = "",
                 choices: list[str] | None = None):
        if choices and default_value is not None and default_value not in choices:
            raise RuntimeError(f'Provided default_value "{default_value}" is not in provided choices "{choices}".')
        self.name, self.default_value, self.description, self.choices = name, default_value, description, choices

    def execute(self, context: Any) -> None:
        if self.name not in context.launch_configurations:
            if self.default_value is None:
                raise RuntimeError(f'Required launch argument "{self.name}" was not provided.')
            context.launch_configurations[self.name] = _text(self.default_value)
        value = context.launch_configurations[self.name]
        if self.choices and value not in self.choices:
            raise RuntimeError(f'Argument "{self.name}" provided value "{value}" is not valid. Valid options '
                               f'are: {self.choices}')


class OpaqueFunction:
    def __init__(self, *, function: Callable[[Any], list[Any]]):
        self._function = function

    def execute(self, context: Any) -> list[Any]:
        return self._function(context)


class TimerAction:
    def __init__(self, *, period: float, actions: list[Any]):
        self._period, self._actions = float(period), actions

    def execute(self, context: Any) -> list[Any]:
        time.sleep(self._period)
        return self._actions


class LogInfo:
    def __init__(self, *, msg: str):
        self._msg = _text(msg)

    def execute(self, context: Any) -> None:
        context.said.append(self._msg)


class ParameterValue:
    def __init__(self, value: str, *, value_type: type | None = None):
        if value_type not in (None, str):
            raise TypeError(f"the stand-in has no parameters of {value_type}")
        self.value = _text(value) if value_type else yaml.safe_load(_text(value))
        if not isinstance(self.value, (bool, int, float, str)):
            raise ValueError(f"{value!r:.80} read as YAML is no parameter")


class Node:
    def __init__(self, *, package: str, executable: str, name: str, namespace: str, parameters: list[Any],
                 arguments: list[str], remappings: list[tuple[str, str]], ros_arguments: list[str], output: str,
                 emulate_tty: bool):
        for text in (output, namespace, *arguments, *ros_arguments, *(side for pair in remappings for side in pair)):
            _text(text)
        assert output == "screen" and emulate_tty is True
        self._name, self._package, self._executable = name, package, executable
        self._namespace, self._parameters = namespace, parameters
        self._before, self._remappings = [*arguments, "--ros-args", *ros_arguments, "--ros-args"], remappings

    def execute(self, context: Any) -> None:
        from ament_index_python.packages import get_package_prefix

        folder = Path(get_package_prefix(self._package), "lib", self._package)
        program = shutil.which(self._executable, path=str(folder))
        if program is None:
            raise RuntimeError(f"executable '{self._executable}' not found on the libexec directory '{folder}' ")
        namespace = f"/{self._namespace}" if not self._namespace.startswith("/") else self._namespace
        if not re.fullmatch(r"/|(/[A-Za-z_]\w*)+", namespace):
            raise RuntimeError(f"Invalid namespace: {namespace}")
        full = f"{namespace.rstrip('/')}/{self._name}"
        files = [word for given in self._parameters for word in ("--params-file", self._file(given, full, context.folder))]
        remappings = [word for pair in self._remappings for word in ("-r", ":=".join(pair))]
        who = ["-r", f"__node:={self._name}", "-r", f"__ns:={namespace}"]
        context.commands.append([program, *self._before, *who, *files, *remappings])

    @staticmethod
    def _file(given: Any, node: str, folder: Path) -> str:
        """Return a parameter file, written for this node if a dictionary is given."""
        if not isinstance(given, Mapping):
            return _text(given)
        with tempfile.NamedTemporaryFile("w", prefix="launch_params_", dir=folder, delete=False) as file:
            yaml.dump({node: {"ros__parameters": dict(_flat(given))}}, file)
        return file.name


def _flat(parameters: Mapping[str, Any], prefix: str = "") -> Any:
    for name, value in parameters.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{_text(name)}.")
        elif isinstance(value, (bool, int, float, str)):
            yield prefix + _text(name), value
        elif isinstance(value, ParameterValue):
            yield prefix + _text(name), value.value
        elif isinstance(value, list) and {type(part) for part in value} == {str}:
            yield prefix + _text(name), value
        else:
            raise TypeError(f"the stand-in has no parameters like {value!r:.80}")


def _text(value: Any) -> str:
    if type(value) is not str:
        raise TypeError(f"launch takes text here, not {value!r:.80}")
    return value


def load_python_launch_file_as_module(path: str) -> ModuleType:
    loader = SourceFileLoader("python_launch_file", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class PackageNotFoundError(KeyError):
    pass


def get_package_prefix(package: str) -> str:
    for folder in os.environ["AMENT_PREFIX_PATH"].split(os.pathsep):
        if (Path(folder) / "share/ament_index/resource_index/packages" / package).exists():
            return folder
    raise PackageNotFoundError(f"package '{package}' not found, searching: {os.environ['AMENT_PREFIX_PATH']}")


def get_package_share_directory(package: str) -> str:
    return f"{get_package_prefix(package)}/share/{package}"


def _modules() -> dict[str, ModuleType]:
    """Return modules that replace launch and launch_ros, and ament_index_python if it is missing."""
    names = {
        "launch": (LaunchDescription,),
        "launch.actions": (DeclareLaunchArgument, LogInfo, OpaqueFunction, TimerAction),
        "launch.launch_description_sources": (load_python_launch_file_as_module,),
        "launch_ros": (),
        "launch_ros.actions": (Node,),
        "launch_ros.parameter_descriptions": (ParameterValue,),
    }
    if importlib.util.find_spec("ament_index_python") is None:
        names |= {"ament_index_python": (),
                  "ament_index_python.packages": (PackageNotFoundError, get_package_prefix, get_package_share_directory)}
    modules = {name: ModuleType(name) for name in names}
    for name, stubs in names.items():
        vars(modules[name]).update({stub.__name__: stub for stub in stubs})
    return modules


def by_stand_in(file: Path, arguments: Mapping[str, str], packages: Mapping[str, tuple[str, ...]],
                folder: Path) -> LaunchResult:
    folder = Path(tempfile.mkdtemp(dir=folder))
    made = workspace(folder / "workspace", packages, "#!/bin/sh\n")
    context = SimpleNamespace(launch_configurations=dict(arguments), commands=[], said=[], folder=folder)
    error = ""
    with mock.patch.dict(os.environ, AMENT_PREFIX_PATH=prefixes(made)), mock.patch.dict(sys.modules, _modules()):
        try:
            _visit(load_python_launch_file_as_module(str(file)).generate_launch_description().entities, context)
        except Exception as caught:  # as launch does: it reports the error and ends, without processes that it has started
            error = str(caught)
    return LaunchResult(sorted(map(_started, context.commands)), context.said, error)


def _visit(entities: list[Any], context: Any) -> None:
    for entity in entities:
        _visit(entity.execute(context) or [], context)


def module_of(file: Path) -> ModuleType:
    """Import a launch file with the stand-in."""
    with mock.patch.dict(sys.modules, _modules()):
        return load_python_launch_file_as_module(str(file))


def arguments_of(file: Path) -> list[Any]:
    """Return the declared arguments of a launch file, read with the stand-in."""
    entities = module_of(file).generate_launch_description().entities
    return [entity for entity in entities if isinstance(entity, DeclareLaunchArgument)]
