"""A .xacro file is a program: xacro evaluates the Python expressions in it, and what it forbids them can be got around.

Whoever expands one trusts it as he trusts a program that he starts. It runs in a process of its own, within limits of time and
memory: against mistakes, not against malice.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..errors import ModelError

SECONDS = 60.0  # the largest robots take a few
MEMORY = 2**30  # bytes of address space
WRITTEN = 10**7  # bytes of any file that it writes, the URDF too

# Arguments: the path, mappings as JSON, memory, size of files. Modules in the folder where we happen to be are not xacro's.
PROGRAM = """
import sys
sys.path[:] = filter(None, sys.path)
import json, resource
for limit, most in zip((resource.RLIMIT_AS, resource.RLIMIT_FSIZE), sys.argv[3:]):
    resource.setrlimit(limit, (int(most), int(most)))
import xacro
try:
    text = xacro.process_file(sys.argv[1], mappings=json.loads(sys.argv[2])).toxml()
    sys.stdout.write(text)
    sys.stdout.flush()
except Exception as error:
    cause = error
    while getattr(cause, "exc", None) is not None:  # xacro's wrap what happened
        cause = cause.exc
    sys.exit(f"{type(cause).__name__}: {error}")
"""


def expanded(path: str | os.PathLike, mappings: Mapping[str, str] | None = None) -> bytes:
    """The URDF that a .xacro file makes, with values for its arguments (<xacro:arg>). It runs what is in the file.

    ModelError: xacro is not installed, has failed, or did not end in time.
    """
    where = os.fspath(path)
    if importlib.util.find_spec("xacro") is None:
        raise ModelError("this is a xacro file and the Python module 'xacro' is not importable; install it "
                         "(ros-<distro>-xacro, or pip install xacro) or expand the file first", where)
    command = [sys.executable, "-X", "utf8", "-c", PROGRAM, str(Path(path).absolute()), json.dumps(dict(mappings or {})),
               str(MEMORY), str(WRITTEN)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        code = _run(command, output, errors, where)
        for file in (output, errors):
            file.seek(0)
        said = errors.read().decode(errors="replace").strip()[-1000:]
        text = output.read()
    if len(text) >= WRITTEN:  # Python does not always notice that no more went in
        raise ModelError(f"xacro: it makes more than {WRITTEN} bytes", where)
    if code:
        raise ModelError(f"xacro: {said or f'ended with exit code {code}'}", where)
    return text


def _run(command: list[str], output, errors, where: str) -> int:
    """The exit code. Nothing of it is left running, whatever ends the wait."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, start_new_session=True)
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        raise ModelError(f"xacro: not done after {SECONDS:g} s: stopped; does it end at all?", where) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
