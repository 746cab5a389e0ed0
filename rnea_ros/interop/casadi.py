"""Functions of robots for CasADi in Python, compiled where they are used: exact sparse Jacobians, gradients and Hessians.

`rnea export --casadi` writes the same library to a folder, for other programs and other machines.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..codegen import c_compiler
from ..codegen import cache as disk
from ..errors import InputError, MissingPackage, near, some
from ..export import c_library, casadi_library, shared_library
from ..robots.robot import Robot


def external(robot: Robot, name: str = "torque_and_rate", payload_link: str | None = None, links: Iterable[str] = ()) -> Any:
    """Return a function of a robot as a casadi.Function of columns, with exact first and second derivatives.

    name         : torque_and_rate, inverse_dynamics, forward_dynamics, pose_LINK of one of the links, ...
    payload_link : link whose payload, ten numbers as of `Payload.parameters`, is the first input
    It is compiled once, by the system's C compiler, and kept in the folder of kernels. InputError where it cannot be
    differentiated or no compiler is found, MissingPackage where casadi is not installed.
    """
    ca = _casadi()
    library = c_library.library(robot, c_library.identifier(robot.name), payload_link, links, lambda one: one == name)
    if not [traced for traced in library.functions if traced.function.name == name]:
        names = [traced.function.name for traced in c_library.library(robot, library.name, payload_link, links).functions]
        raise InputError(f"robot '{robot.name}' has no function '{name}'; there are {some(names)}{near(name, names)}")
    made = casadi_library.library(library, chosen=True)
    with tempfile.TemporaryDirectory(prefix="rnea_ros_") as work:
        folder = Path(work)
        target = folder / f"lib{made.name}_casadi.so"
        code = disk.object_code(c_compiler.key(made.source(), c_compiler.NATIVE), lambda: _compiled(made, folder))
        target.write_bytes(code)
        return ca.external(f"{made.name}_{name}", str(target))  # loaded from here on: the file may go


def _compiled(made: casadi_library.CasadiLibrary, folder: Path) -> bytes:
    (folder / "src").mkdir()
    (folder / "src" / "made.c").write_text(made.source(), encoding="utf-8")
    return shared_library.compiled(folder, "made", ["made.c"]).read_bytes()


def _casadi() -> Any:
    try:
        import casadi  # type: Any
    except ImportError:
        raise MissingPackage("interop.casadi needs CasADi", "planning") from None
    return casadi
