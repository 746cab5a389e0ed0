"""load: the right kind of robot from a URDF and the robot file beside it, with all that the file says applied."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..model import urdf, urdf_reader
from ..model.robot_file import robot_file as reader
from ..model.robot_file.robot_file import RobotFile, Source
from ..model.tree import Model
from ..model.urdf_parts import with_platforms
from . import declared_drives, declared_efforts, declared_joints
from .general import GeneralRobot
from .protocol import AnyRobot
from .robot import GRAVITY, Robot

MOVING_BASES = ("floating", "prescribed")
# Sections that make more of a robot than a tree on a fixed base
GENERAL = ("loops", "platform", "platforms", "springs", "elastic_joints", "motors", "passive", "actuation_weights",
           "ground_contacts", "wheels")


def load(source: str | bytes | os.PathLike[str], robot_file: Source | None = None, *, base: str | None = None,
         backend: str = "llvm", gravity: Sequence[float] | None = None, friction: bool | None = None,
         allow_xacro: bool = False) -> AnyRobot:
    """A robot from a URDF and the robot file that says what the URDF cannot: of which class it is follows from the file.

    source      : path of the URDF, or its text
    robot_file  : path of a YAML file as docs/robot_file.md describes it, or what is in it; without, Robot, or
                  GeneralRobot where `base` is "floating" or "prescribed"
    base        : "fixed", "floating" or "prescribed", instead of the file's
    gravity     : acceleration of gravity [m/s^2], instead of the file's
    friction    : whether the URDF's <dynamics damping= friction=> counts, instead of the file's `urdf_friction`
    backend, allow_xacro : as in Robot.from_urdf
    Raises ModelError with everything that is wrong with the URDF, or with the robot file.
    """
    if robot_file is None:
        robot = Robot.from_urdf(source, "floating" if base in MOVING_BASES else base or "fixed", backend,
                                GRAVITY if gravity is None else gravity, bool(friction), allow_xacro=allow_xacro)
        return GeneralRobot(robot, {"base": base}) if base in MOVING_BASES else robot
    file = reader.draft(robot_file).over({"base": base, "gravity": gravity, "urdf_friction": friction})
    description, content = urdf_reader.read(source, allow_xacro), file.content
    options: dict[str, Any] = {"base": "floating" if content.get("base") in MOVING_BASES else "fixed",
                               "friction": content.get("urdf_friction") is True}
    if "platform" in content or "platforms" in content:
        file.check_schema()  # so that a mistake in it is not taken for one in the URDF, which only makes sense with a platform
        kind(file)
        description, file = with_platforms(description, file)
    model = urdf.load(description, **options)
    file = file.checked(model)
    tree = _tree(model, file, backend)
    return tree if kind(file) == "Robot" else GeneralRobot(tree, file)


def kind(file: RobotFile) -> str:
    """Return the name of the class that serves what the file declares. ModelError for a platform without loops."""
    if "loops" not in file.content and ("platform" in file.content or "platforms" in file.content):
        raise ModelError("declares platform without loops: cut joints must join its legs to it", file.where)
    general = file.content.get("base") in MOVING_BASES or any(section in file.content for section in GENERAL)
    return "GeneralRobot" if general else "Robot"


def _tree(model: Model, file: RobotFile, backend: str) -> Robot:
    """Limits, drives, friction, gravity and payloads of the file, on a tree."""
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
    robot = Robot(model, backend, file.content.get("gravity", GRAVITY))
    for payload in declared_joints.payloads(file):
        if payload.link in model.frames:
            robot = robot.with_payload(*payload)
    return robot


def with_accepted(model: Model, names: Sequence[str]) -> Model:
    """The model with the warnings of these names moved to its accepted warnings."""
    accepted, left = (tuple(warning for warning in model.warnings if (warning.name in names) is wanted)
                      for wanted in (True, False))
    return replace(model, warnings=left, accepted_warnings=(*model.accepted_warnings, *accepted)) if accepted else model



