"""Everything that a model is made of, as parameters, topic and robot file have it, and the model that it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rnea_ros import AnyRobot, InputError, RneaError, Robot, load
from rnea_ros.errors import shown, some
from rnea_ros.model.robot_file import profiles, robot_file
from rnea_ros.model.robot_file.robot_file import RobotFile
from rnea_ros.model.urdf_reader import links_beyond, movable_joints, without_mass
from rnea_ros.nodes.common.parameter_table import MODEL
from rnea_ros.nodes.common.parameters import ParameterSet

SUFFIXES = (".yaml", ".yml")  # of a robot file
TERMS = "joint_dynamics."
DRIVES = ("rotor_inertia", "gear_ratio")  # of these; the others are friction
GRAVITY = tuple(next(entry.default for entry in MODEL if entry.name == "gravity"))


@dataclass(frozen=True)
class FileText:
    """A robot file as it was when it was read: its path and its bytes."""

    path: str = ""
    data: bytes = b""

    @classmethod
    def read(cls, path: str) -> FileText:
        """Raises RneaError. Everybody in a ROS domain may set this path, and sees what is wrong with the file: so only what is
        called a robot file is opened, and no pipe or device, on which a node could wait for ever."""
        if not path:
            return cls()
        if path not in profiles.names() and Path(path).suffix not in SUFFIXES:
            raise InputError(f"robot_file is {shown(path)}: a path that ends with {' or '.join(SUFFIXES)} is needed, or the "
                             "name of a profile, which `rnea robot-file --list` prints")
        if Path(path).exists() and not Path(path).is_file():
            raise InputError(f"robot_file is {shown(path)}, which is no regular file")
        return cls(path, robot_file.contents(path))


@dataclass(frozen=True)
class ModelRequest:
    """Everything that a model is made of; equal requests make equal models."""

    text: str
    file: FileText
    backend: str
    gravity: tuple[float, ...]
    use_friction: bool
    terms: tuple[tuple[str, float], ...]  # parameters joint_dynamics.* that the user gave
    payload: tuple[str, float, tuple[float, ...], tuple[float, ...]]
    felt: tuple[str, ...] = ()  # links that have no mass here, nor what hangs on them: a sensor's wrench stands for them

    @classmethod
    def of(cls, parameters: ParameterSet, text: str, file: FileText) -> ModelRequest:
        """What parameters ask for, of a robot description and a robot file."""
        values = parameters.values
        return cls(
            text=text,
            file=file,
            backend=values["backend"],
            gravity=tuple(values["gravity"]),
            use_friction=values["use_friction"],
            terms=tuple(sorted((name, value) for name, value in parameters.given.items() if name.startswith(TERMS))),
            payload=(values["payload.link"], values["payload.mass"],
                     tuple(values["payload.com"]), tuple(values["payload.inertia"])),
            felt=tuple(sorted({values[f"wrenches.{name}.link"] for name in values.get("wrenches.names", ())
                               if name and values[f"wrenches.{name}.includes_tool"]})),
        )

    def bare(self) -> ModelRequest:
        """Without the payload, which can be changed without compiling anything."""
        return replace(self, payload=("", 0.0, (), ()))

    def plain(self) -> ModelRequest:
        """What the text alone makes."""
        return replace(self.bare(), terms=())

    def draft(self) -> AnyRobot:
        """The robot, payload included, without anything compiled. Raises RneaError."""
        return self.load(replace(self, backend="reference").robot())

    def robot(self) -> AnyRobot:
        """Without payload. Raises RneaError."""
        # as bytes: a text is never mistaken for the path of a file to open
        text = self.text.encode(errors="replace")
        terms = _by_joint(self.terms, movable_joints(text)) if self.terms else {}
        if self.felt:
            text = without_mass(text, self.felt)
        if self.file.path:
            file = robot_file.read(robot_file.parsed(self.file.data, self.file.path))
            self._refuse_felt(file.section("payloads"))
            return load(text, file.over(_sections(file, terms)), backend=self.backend, friction=self.use_friction or None,
                        gravity=None if self.gravity == GRAVITY else self.gravity)
        draft = Robot.from_urdf(text, backend="reference", friction=self.use_friction)
        known = {link.joint: replace(link.term, **terms[link.joint]) for link in draft.model.links if link.joint in terms}
        return Robot(draft.model.with_joint_dynamics(known), self.backend, self.gravity)

    def load(self, robot: AnyRobot) -> AnyRobot:
        """Put the payload on a bare robot. Raises RneaError."""
        link, mass, com, (xx, xy, xz, yy, yz, zz) = self.payload
        if not link and mass == 0.0:
            return robot
        self._refuse_felt([link] if mass > 0.0 else [])
        try:
            return robot.with_payload(link, mass, com, ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))
        except RneaError as error:
            hint = "" if link else " (set payload.link first, or payload.link and payload.mass in one atomic call)"
            raise InputError(f"{error}{hint}") from None

    def _refuse_felt(self, payloads: Iterable[str]) -> None:
        """Raise InputError for a payload that a sensor feels already."""
        beyond = links_beyond(self.text.encode(errors="replace"), self.felt) if self.felt else set()
        if twice := sorted(beyond.intersection(payloads)):
            raise InputError(f"the payload on link {some(twice, quoted=True)} hangs on {some(self.felt, quoted=True)}, of "
                             "which a wrench with includes_tool tells all that the sensor feels: it would count twice. Take "
                             "the payload away, or set includes_tool to false")


Serve = Callable[[AnyRobot, ModelRequest], Any]  # makes of a robot what a node works with


def _by_joint(terms: Iterable[tuple[str, float]], joints: Set[str]) -> dict[str, dict[str, float]]:
    """Return the parameters joint_dynamics.* of these joints, by joint; those of other joints wait until a robot has them."""
    found: dict[str, dict[str, float]] = {}
    for name, value in terms:
        joint, _, quantity = name.removeprefix(TERMS).rpartition(".")
        if joint in joints:
            found.setdefault(joint, {})[quantity] = value
    return found


def _sections(file: RobotFile, terms: Mapping[str, Mapping[str, float]]) -> dict[str, Any]:
    """The file's drives and friction with the parameters over them: what is given for a joint's friction is all of it."""
    drives, friction = (dict(file.section(name)) for name in ("drives", "friction"))
    for joint, given in terms.items():
        drive = {key: value for key, value in drives.get(joint, {}).items() if key not in given}
        drives[joint] = drive | {key: value for key, value in given.items() if key in DRIVES}
        friction[joint] = friction.get(joint, {}) | {key: value for key, value in given.items() if key not in DRIVES}
    return {"drives": drives, "friction": friction} if terms else {}
