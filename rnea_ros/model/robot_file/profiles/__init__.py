"""Robot files of robots that people own, by name: numbers that are public, with their sources, and what is unknown."""

from __future__ import annotations

import os
from importlib import resources
from pathlib import Path


def names() -> tuple[str, ...]:
    """Return the names of all profiles."""
    files = (entry.name for entry in resources.files(__package__).iterdir())
    return tuple(sorted(file.removesuffix(".yaml") for file in files if file.endswith(".yaml")))


def name_of(where: str) -> str:
    """Return the name of the profile of this name or path; empty if it is none."""
    if where in names():
        return where
    path = Path(where)
    return path.stem if path.parent == Path(str(resources.files(__package__))) else ""


def located(path: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """Return the path itself, or for a plain word that is no file, the path of the profile of this name."""
    if isinstance(path, str) and path.isidentifier() and path in names() and not Path(path).exists():
        return str(resources.files(__package__).joinpath(f"{path}.yaml"))
    return path
