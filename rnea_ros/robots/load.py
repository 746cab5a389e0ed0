"""load: the right kind of robot from a URDF and the robot file beside it, with all that the file says applied."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from ..errors import ModelError
from ..model import urdf, urdf_reader
from ..model.robot_file import robot_file as reader
from ..model.robot_file.robot_file import RobotFile, Source
from ..model.tree import Model
from ..model.urdf_parts import with_platforms
from . import declared_drives, declared_efforts, declared_joints
from .floating import FloatingRobot
from .general import GeneralRobot
from .protocol import AnyRobot
from .robot import GRAVITY, Robot

MOVING_BASES = ("floating", "prescribed")
LOOPS, PLATFORM, ELASTIC, SPRINGS, MOVING = "loops", "platform", "elastic joints or motors", "springs", "a moving base"
COUPLINGS = "couplings"
GENERAL = ("passive", "actuation_weights", "ground_contacts", "wheels", "platforms")  # sections that GeneralRobot alone reads
# What a robot file declares -> the class that serves it; GeneralRobot serves all other combinations.
SERVED = {frozenset(declared): kind for kind, declared in {
    "Robot": (), "FloatingRobot": (MOVING,)}.items()}
SERVED[frozenset({COUPLINGS})] = "Robot"
MADE: dict[str, Callable[[Robot, RobotFile], AnyRobot]] = {  # of the tree
    "Robot": lambda robot, file: robot,
    "FloatingRobot": lambda robot, file: FloatingRobot(robot, _carried(file)),
    "GeneralRobot": lambda robot, file: GeneralRobot(robot, file)}


def load(source: str | bytes | os.PathLike[str], robot_file: Source | None = None, *, base: str | None = None,
         backend: str = "llvm", gravity: Sequence[float] | None = None, friction: bool | None = None,
         allow_xacro: bool = False) -> AnyRobot:
    """A robot from a URDF and the robot file that says what the URDF cannot: of which class it is follows from the file.

    source      : path of the URDF, or its text
    robot_file  : path of a YAML file as docs/robot_file.md describes it, or what is in it; without, Robot or FloatingRobot
    base        : "fixed", "floating" or "prescribed", instead of the file's
    gravity     : acceleration of gravity [m/s^2], instead of the file's
    friction    : whether the URDF's <dynamics damping= friction=> counts, instead of the file's `urdf_friction`
    backend, allow_xacro : as in Robot.from_urdf
    Raises ModelError with everything that is wrong with the URDF, or with the robot file.
    """
    if robot_file is None:
        robot = Robot.from_urdf(source, "floating" if base in MOVING_BASES else base or "fixed", backend,
                                GRAVITY if gravity is None else gravity, bool(friction), allow_xacro=allow_xacro)
        return FloatingRobot(robot, base == "prescribed") if base in MOVING_BASES else robot
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
    made = MADE[kind(file)]
    return made(_tree(model, file, backend), file)


def kind(file: RobotFile) -> str:
    """Return the name of the class that serves what the file declares. ModelError if none does."""
    found = {word for word in (LOOPS, PLATFORM, SPRINGS, COUPLINGS) if word in file.content}
    found |= {ELASTIC for section in ("elastic_joints", "motors") if section in file.content}
    found |= {MOVING for base in MOVING_BASES if file.content.get("base") == base}
    others = [section for section in GENERAL if section in file.content]
    if frozenset(found) in SERVED and not others:
        return SERVED[frozenset(found)]
    if LOOPS not in found and (PLATFORM in found or "platforms" in others):
        raise ModelError("declares platform without loops: cut joints must join its legs to it", file.where)
    return "GeneralRobot"


def _tree(model: Model, file: RobotFile, backend: str) -> Robot:
    """Limits, drives, friction, gravity and payloads of the file, on a tree."""
    motors: Collection[str] = ()
    if kind(file) == "GeneralRobot":  # other joints keep their drives as rotor inertia and friction of the joint
        motors = {*file.section("elastic_joints"), *file.section("motors")}
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


def _carried(file: RobotFile) -> bool:
    return file.content.get("base") == "prescribed"

