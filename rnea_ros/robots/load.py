"""load: a robot from a URDF and the robot file beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..model import flexible_links, urdf, urdf_reader
from ..model.robot_file import robot_file as reader
from ..model.robot_file.robot_file import RobotFile, Source
from ..model.tree import Model
from ..model.urdf_parts import with_platforms
from . import declared_drives, declared_efforts, declared_joints
from .robot import MOVING_BASES, Robot
from .tree import GRAVITY, TreeDynamics


def load(source: str | bytes | os.PathLike[str], robot_file: Source | None = None, *, base: str | None = None,
         backend: str = "llvm", gravity: Sequence[float] | None = None, friction: bool | None = None,
         allow_xacro: bool = False) -> Robot:
    """Return the robot of a URDF and of a robot file, which declares what a URDF cannot.

    source      : path of the URDF, or its text
    robot_file  : path of a YAML file as docs/robot_file.md describes it, or its content; None: a tree without more
    base        : "fixed", "floating" or "prescribed", instead of the file's
    gravity     : acceleration of gravity [m/s^2], instead of the file's
    friction    : whether the URDF's <dynamics damping= friction=> counts, instead of the file's `urdf_friction`
    backend, allow_xacro : as in Robot.from_urdf
    Raises ModelError with everything that is wrong with the URDF, or with the robot file.
    """
    if robot_file is None:
        return Robot.from_urdf(source, base or "fixed", backend, GRAVITY if gravity is None else gravity, bool(friction),
                               allow_xacro=allow_xacro)
    file = reader.draft(robot_file).over({"base": base, "gravity": gravity, "urdf_friction": friction})
    description, content = urdf_reader.read(source, allow_xacro), file.content
    options: dict[str, Any] = {"base": "floating" if content.get("base") in MOVING_BASES else "fixed",
                               "friction": content.get("urdf_friction") is True}
    if "platform" in content or "platforms" in content:
        file.check_schema()  # so that a mistake in it is not taken for one in the URDF, which only makes sense with a platform
        if "loops" not in content:
            raise ModelError("declares platform without loops: cut joints must join its legs to it", file.where)
        description, file = with_platforms(description, file)
    model = urdf.load(description, **options)
    if flexible_links.SECTION in content:
        file.check_schema()
        rigid, (description, chains) = model, flexible_links.with_flexible_links(description, file, model)
        model = flexible_links.with_modes(urdf.load(description, **options), chains, rigid)
    file = file.checked(model)
    return Robot(_tree(model, file, backend), file)


def _tree(model: Model, file: RobotFile, backend: str) -> TreeDynamics:
    """Tree with the limits, drives, friction, gravity and payloads of the file."""
    motors = {*file.section("elastic_joints"), *file.section("motors")}  # drives of others: inertia and friction of the joint
    limits = declared_drives.drive_limits(model, file)
    model = declared_joints.limited(model.with_joint_dynamics(declared_joints.joint_dynamics(model, file, motors)), file)
    model = replace(model, drive_limits=limits, drives=declared_drives.drives(model, file),
                    supplies=declared_drives.supplies(model, file),
                    velocity_by_position=declared_joints.velocity_by_position(model, file),
                    efforts=declared_efforts.efforts(model, file), contact=declared_joints.contact(file))
    model = model.with_coupled_motors(declared_joints.coupled_motors(model, file))
    model = with_accepted(replace(model, warnings=(*model.warnings, *file.notes, *declared_drives.warnings(file))),
                          file.content.get("accepted_warnings", ()))
    tree = TreeDynamics(model, backend, file.content.get("gravity", GRAVITY))
    for payload in declared_joints.payloads(file):
        if payload.link in model.frames:
            tree = tree.with_payload(*payload)
    return tree


def with_accepted(model: Model, names: Sequence[str]) -> Model:
    """Return the model with the warnings of these names moved to its accepted warnings."""
    accepted, left = (tuple(warning for warning in model.warnings if (warning.name in names) is wanted)
                      for wanted in (True, False))
    return replace(model, warnings=left, accepted_warnings=(*model.accepted_warnings, *accepted)) if accepted else model
