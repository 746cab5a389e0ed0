"""What a command will write can be written: looked at before the work, which may take minutes."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ..errors import InputError


def check_files(*paths: str | Path | None) -> None:
    """InputError names the first that cannot be written. None, '': there is none."""
    for path in (Path(given) for given in paths if given):
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written: "
                             + ("it is a folder" if path.is_dir() else f"no such folder: mkdir -p {path.parent}"))
        if not os.access(path if path.exists() else path.parent, os.W_OK):
            raise InputError(f"{path}: cannot be written: no permission")


def check_folder(path: str | Path) -> None:
    """Makes it. InputError where nothing can be written into it."""
    folder = Path(path)
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: cannot be written into: it is a file; a folder is needed, and made if it is not there")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{folder}: cannot be written into: {error.strerror}") from None
