"""MuJoCo, imported in this one place and when it is first asked for."""

from __future__ import annotations

from typing import Any

from ..errors import MissingPackage


def mujoco() -> Any:
    """The module. RneaError where it is not installed."""
    try:
        import mujoco as engine
    except ImportError as error:
        raise MissingPackage(f"a simulated robot needs MuJoCo ({error})", "sim") from None
    return engine
