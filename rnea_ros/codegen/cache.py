"""Object code on disk, so that a robot is compiled once. Files that cannot be read or written are compiled again.

Files lie in $XDG_CACHE_HOME/rnea_ros (default ~/.cache/rnea_ros), named after a digest of all that goes into them; the
environment variable RNEA_ROS_CACHE names another folder, or none if it is empty. Each begins with a digest of its content.
They are written to a temporary file and renamed, so that no reader gets half a file. Since they are executed, a folder
that others may write to, or that is behind a symbolic link of another user, is not used. The oldest are deleted when they
exceed LIMIT bytes; other files are kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import re
import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

FOLDER = "RNEA_ROS_CACHE"
LIMIT = 256 << 20
SCANS_PER_LIMIT = 64  # the folder is measured once for each LIMIT / SCANS_PER_LIMIT bytes written, by any process, on average
OURS = re.compile(r"[0-9a-f]{64}\.o|rnea_\w+\.part")  # names of files here, whole and half written
TRACED = ("algebra", "algorithms", "codegen", "inertial", "model", "robots")  # folders that determine the traced programs
_MAGIC = b"rnea_ros object 1\n"

counts: Counter[str] = Counter()  # "found", "compiled", "damaged", "unusable": what happened in this process


def folder() -> Path | None:
    """Return the folder of the files; None if the cache is disabled."""
    if FOLDER in os.environ:
        return Path(os.environ[FOLDER]) if os.environ[FOLDER] else None
    given = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(given) if os.path.isabs(given) else Path.home() / ".cache") / "rnea_ros"
    except RuntimeError:  # no home directory
        return None


def object_code(key: bytes, compiled: Callable[[], bytes]) -> bytes:
    """Return the result of `compiled`, or that of an earlier process for the same key."""
    kept = found(key)
    if kept is not None:
        return kept
    code = compiled()
    counts["compiled"] += 1
    if file := _file(key):
        _write(file, code)
    return code


@cache
def sources() -> str:
    """Digest of the package's text that programs are traced from: a recipe of an older version is not used.

    Empty where the text is not to be had; recipes are not used then.
    """
    package = Path(__file__).resolve().parents[1]
    files = sorted(file for room in TRACED for file in (package / room).rglob("*.py"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest() if files else ""


def found(key: bytes) -> bytes | None:
    """Return the code that an earlier process saved; None without one."""
    file = _file(key)
    code = _read(file) if file else None
    if code is not None:
        counts["found"] += 1
    return code


def _file(key: bytes) -> Path | None:
    """Return the file of a key, in a folder that only this user can write."""
    where = folder()
    if where is None:
        return None
    try:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
        status, link = where.stat(), where.lstat()
        if hasattr(os, "geteuid") and ({status.st_uid, link.st_uid} != {os.geteuid()} or status.st_mode & 0o022):
            raise PermissionError(f"{where} belongs to another user, or others may write to it")
    except OSError as error:
        _unusable(error)
        return None
    return where / f"{hashlib.sha256(_MAGIC + key).hexdigest()}.o"


def _read(file: Path) -> bytes | None:
    try:
        content = file.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        _unusable(error)
        return None
    head = len(_MAGIC) + hashlib.sha256().digest_size
    if content[:head] == _MAGIC + hashlib.sha256(content[head:]).digest():
        with contextlib.suppress(OSError):
            os.utime(file)  # used now
        return content[head:]
    counts["damaged"] += 1
    logging.getLogger(__name__).warning("%s is damaged and is compiled anew", file)
    return None


def _write(file: Path, code: bytes) -> None:
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=file.parent, prefix="rnea_", suffix=".part")
        with os.fdopen(handle, "wb") as stream:
            stream.write(_MAGIC + hashlib.sha256(code).digest() + code)
        os.replace(temporary, file)
        if _is_scan_due(file, len(code)):
            _trim(file.parent)
    except OSError as error:
        _unusable(error)
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _is_scan_due(file: Path, size: int) -> bool:
    """Return whether to measure the folder after this file: for a share of all files that is proportional to their size.

    Measuring after every file would take a time that is quadratic in their number. File names are uniform digests, so that
    processes that write one file each take their turn as well.
    """
    return int(file.name[:8], 16) * (LIMIT // SCANS_PER_LIMIT) < size << 32


def _trim(where: Path) -> None:
    """Delete the least recently used files until half of LIMIT is left."""
    found = []
    for file in os.scandir(where):
        with contextlib.suppress(OSError):
            if not OURS.fullmatch(file.name):  # a user may have other files in this folder
                continue
            found.append((file.stat().st_mtime, file.stat().st_size, file.path))
    total = sum(size for _, size, _ in found)
    if total <= LIMIT:
        return
    for _, size, path in sorted(found):
        if total <= LIMIT // 2:
            break
        with contextlib.suppress(OSError):  # another process was faster
            os.unlink(path)
        total -= size


def _unusable(error: OSError) -> None:
    counts["unusable"] += 1
    logging.getLogger(__name__).info("kernels are not kept: %s", error)
