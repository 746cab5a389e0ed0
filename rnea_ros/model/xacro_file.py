"""Expansion of .xacro files. Such a file is a program: xacro evaluates Python expressions, and its restrictions can be evaded.

It runs with the rights of the user, in a separate process with limits of time and memory. The limits guard against mistakes,
not against malice.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from xml.sax.saxutils import unescape

from ..errors import InputError, ModelError, near, some

SECONDS = 60.0  # the largest robots take a few
MEMORY = 2**30  # bytes of address space
WRITTEN = 10**7  # bytes of any file that it writes, the URDF too
MOST = 40  # arguments of a file that a message lists
ARGUMENT = re.compile(r"([A-Za-z_][\w./-]*):=(.*)", re.DOTALL)
DECLARED = re.compile(r"<xacro:arg\s[^>]*>")
ATTRIBUTE = re.compile(r"""\b(name|default)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

# Arguments: the path, mappings as JSON, memory, size of files. Modules in the folder where we happen to be are not xacro's.
PROGRAM = """
import sys
sys.path[:] = filter(None, sys.path)
import json, resource
for limit, most in zip((resource.RLIMIT_AS, resource.RLIMIT_FSIZE), sys.argv[3:]):
    resource.setrlimit(limit, (int(most), int(most)))
import xacro
from pathlib import Path
from xml.etree import ElementTree
try:
    from ament_index_python import packages
    installed = packages.get_package_share_directory
except ImportError:
    import types
    packages, installed = types.ModuleType("ament_index_python.packages"), None
    sys.modules.update({"ament_index_python": types.ModuleType("ament_index_python"), packages.__name__: packages})
def package_name(file):
    try:
        return (ElementTree.parse(file).findtext("name") or "").strip()
    except (OSError, ElementTree.ParseError):
        return None
def share_directory(name, *others):
    # of an installed package, else the folder of its sources in the repository or workspace around the file
    try:
        if installed:
            return installed(name, *others)
    except (LookupError, EnvironmentError, ValueError):
        pass
    for folder in Path(sys.argv[1]).resolve().parents[:5]:
        for file in (folder / "package.xml", *folder.glob("*/package.xml"), *folder.glob("*/*/package.xml")):
            if package_name(file) == name:
                return str(file.parent)
    raise LookupError(f"package {name!r} is neither installed nor beside the file: source the workspace that has it, or "
                      "clone its sources next to those of this file")
packages.get_package_share_directory = share_directory
class Arguments(dict):
    used = set()
    def __contains__(self, name):
        self.used.add(name)
        return super().__contains__(name)
    def __getitem__(self, name):
        self.used.add(name)
        return super().__getitem__(name)
given = json.loads(sys.argv[2])
try:
    text = xacro.process_file(sys.argv[1], mappings=Arguments(given)).toxml()
except Exception as error:
    cause = error
    while getattr(cause, "exc", None) is not None:  # xacro's wrap what happened
        cause = cause.exc
    sys.exit(str(cause) if isinstance(cause, LookupError) else f"{type(cause).__name__}: {error}")
if Arguments.used and given.keys() - Arguments.used:  # a xacro that copies the mapping leaves none
    sys.exit("it has no argument " + ", ".join(sorted(given.keys() - Arguments.used)))
sys.stdout.write(text)
sys.stdout.flush()
"""


class XacroFile(str):
    """Path of a .xacro file that may be run, with values for its arguments (<xacro:arg>).

    Use it instead of the path of a URDF: ``load(XacroFile("ur.urdf.xacro", {"ur_type": "ur10e"}))``.
    """

    arguments: Mapping[str, str]

    def __new__(cls, path: str | os.PathLike[str], arguments: Mapping[str, str] | None = None) -> XacroFile:
        found = super().__new__(cls, os.fspath(path))
        found.arguments = dict(arguments or {})
        return found

    def __getnewargs__(self) -> tuple[str, Mapping[str, str]]:  # type: ignore[override]  # what __new__ takes
        return str(self), self.arguments


def split_arguments(words: Iterable[str]) -> tuple[dict[str, str], list[str]]:
    """Separate the words name:=value of a command line, a mapping, from the others."""
    arguments: dict[str, str] = {}
    others = []
    for word in words:
        if found := ARGUMENT.fullmatch(word):
            arguments[found[1]] = found[2]
        else:
            others.append(word)
    return arguments, others


def with_arguments(path: str | None, arguments: Mapping[str, str]) -> str | None:
    """Return a XacroFile for the path of a .xacro file, else the path. InputError for arguments without such a file."""
    if path is not None and path.endswith(".xacro"):
        return XacroFile(path, arguments)
    if arguments:
        words = [f"{name}:={value}" for name, value in arguments.items()]
        raise InputError(f"{some(words)}: only a .xacro file has arguments, and {path or 'no robot'} is given; leave them "
                         "out, or name a .xacro file")
    return path


def expanded(path: str | os.PathLike[str], arguments: Mapping[str, str] | None = None) -> bytes:
    """Run a .xacro file with values for its arguments and return the URDF.

    ModelError: xacro is not installed, has failed, or did not end in time.
    """
    where = os.fspath(path)
    if importlib.util.find_spec("xacro") is None:
        raise ModelError("this is a xacro file and the Python module 'xacro' is not importable; install it "
                         "(ros-<distro>-xacro, or pip install xacro) or expand the file first", where)
    command = [sys.executable, "-X", "utf8", "-c", PROGRAM, str(Path(path).absolute()), json.dumps(dict(arguments or {})),
               str(MEMORY), str(WRITTEN)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = _run(command, output, errors, where)
        for file in (output, errors):
            file.seek(0)
        message = errors.read().decode(errors="replace").strip()[-1000:]
        text = output.read()
    if len(text) >= WRITTEN:  # Python does not always notice that no more went in
        raise ModelError(f"xacro: it makes more than {WRITTEN} bytes", where)
    if code:
        raise ModelError(f"xacro: {message or f'ended with exit code {code}'}{_hint(where, arguments or {})}", where)
    return text


def _hint(where: str, given: Mapping[str, str]) -> str:
    """Return the arguments of a file that failed, and what to type; empty if it has none."""
    try:
        text = Path(where).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    found: dict[str, str | None] = {}
    for element in DECLARED.findall(text):
        attributes = {match[1]: unescape(match[2] or match[3] or "") for match in ATTRIBUTE.finditer(element)}
        if "name" in attributes:
            found.setdefault(attributes["name"], attributes.get("default"))
    if not found:
        return ""
    listed = [f"  {name}" + (", which has no default" if default is None else f":={default[:80]}")
              for name, default in islice(found.items(), MOST)]
    values = {**{name: default or "VALUE" for name, default in found.items()}, **given}
    first = [name for name, default in found.items() if default is None] or list(found)[:2]
    line = " ".join(f"{name}:={values[name]}" for name in dict.fromkeys([*first, *(name for name in given if name in found)]))
    questions = "".join(f" ({name}{near(name, found)})" for name in given if name not in found and near(name, found))
    heading = f"{questions}\nArguments of the file and their defaults:"
    return "\n".join([heading, *listed, f"Type, for instance: {where} {line}"])


def _run(command: list[str], output, errors, where: str) -> int:
    """Return the exit code. The process is killed with its children, also after an interrupt."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        raise ModelError(f"xacro: stopped after {SECONDS:g} s: does it end at all?", where) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
