"""load: a robot from a URDF and the robot file beside it."""

from __future__ import annotations

import copy
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import rpy
from ..errors import ModelError, ModelWarning, near, some
from ..model import flexible_links, urdf, urdf_reader
from ..model import robot_file as reader
from ..model.drives import Drive, DriveLimit, EffortConvention, Efforts, Supply, VelocityByPosition, speed_torque_region
from ..model.robot_file import RobotFile, Source
from ..model.robot_file_schema import CONVENTIONS, QUANTITIES
from ..model.robot_file_validation import position_range
from ..model.tree import ContactCalibration, CoupledMotor, Joint, JointDynamics, Model
from ..model.urdf_reader import Description
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
    limits = drive_limits(model, file)
    model = limited(model.with_joint_dynamics(joint_dynamics(model, file, motors)), file)
    model = replace(model, drive_limits=limits, drives=declared_drives(model, file),
                    supplies=declared_supplies(model, file),
                    velocity_by_position=velocity_by_position(model, file),
                    efforts=efforts(model, file), contact=contact(file))
    model = model.with_coupled_motors(coupled_motors(model, file))
    model = with_accepted(replace(model, warnings=(*model.warnings, *file.notes, *drive_warnings(file))),
                          file.content.get("accepted_warnings", ()))
    tree = TreeDynamics(model, backend, file.content.get("gravity", GRAVITY))
    for payload in payloads(file):
        if payload.link in model.frames:
            tree = tree.with_payload(*payload)
    return tree


def with_accepted(model: Model, names: Sequence[str]) -> Model:
    """Return the model with the warnings of these names moved to its accepted warnings."""
    accepted, left = (tuple(warning for warning in model.warnings if (warning.name in names) is wanted)
                      for wanted in (True, False))
    return replace(model, warnings=left, accepted_warnings=(*model.accepted_warnings, *accepted)) if accepted else model


FORCE = "joint_force"
ARRAYS = tuple(quantity for quantity in QUANTITIES if quantity != FORCE)
TWO_SIDED = ("effort", "velocity")  # may differ up and down
FRICTION = ("coulomb", "viscous", "offset", "smoothing", "stribeck", "stribeck_velocity", "asymmetry",
            "load_dependent", "load_smoothing")


def limited(model: Model, file: RobotFile) -> Model:
    """Return the model with the limits of the file over its own."""
    given = file.section("limits")
    joints = [_limited(joint, given[joint.name], position_range(given[joint.name], model.limits, k)) if joint.name in given
              else joint for k, joint in enumerate(model.joints)]
    return replace(model, joints=tuple(joints))


def _limited(joint: Joint, given: Mapping[str, Any], position: tuple[float, float]) -> Joint:
    found = {quantity: limit(given, quantity, getattr(joint, quantity)) for quantity in ARRAYS}
    for quantity in TWO_SIDED:
        if f"min_{quantity}" in given:  # the narrower one, for callers with one limit; drive limits have both
            found[quantity] = min(found[quantity], -given[f"min_{quantity}"])
    return replace(joint, lower=position[0], upper=position[1], **found)  # type: ignore[arg-type]  # of numbers all


def velocity_by_position(model: Model, file: RobotFile) -> tuple[VelocityByPosition, ...]:
    """Return the velocity limits of joints that must be slower near their position limits."""
    given = file.section("limits")
    zones = {name: given[name].get("velocity_by_position") for name in model.joint_names if name in given}
    return tuple(VelocityByPosition(name, **{"velocity_offset": 0.0, **zone}) for name, zone in zones.items() if zone)


def limit(given: Mapping[str, Any], quantity: str, before: float) -> float:
    """Return the limit that a section gives for a quantity, else the one before."""
    if given.get(f"has_{quantity}_limits") is False:
        return np.nan
    return float(given.get(f"max_{quantity}", before))


def joint_forces(file: RobotFile) -> dict[str, float]:
    """{joint: largest internal force [N]}, mimic joints included."""
    found = {joint: limit(given, FORCE, np.nan) for joint, given in file.section("limits").items()}
    return {joint: force for joint, force in found.items() if force == force}


def contact(file: RobotFile) -> dict[str, ContactCalibration]:
    """Return the contact thresholds of the file by joint."""
    return {joint: ContactCalibration(**{name: float(value) for name, value in given.items()})
            for joint, given in file.section("contact").items()}


def joint_dynamics(model: Model, file: RobotFile, motors: Collection[str] = ()) -> dict[str, JointDynamics]:
    """Drives and friction by joint, over what the model has. motors: joints whose drive counts elsewhere, as a motor."""
    drives, friction = file.section("drives"), file.section("friction")
    return {link.joint: _term(link.term, {} if link.joint in motors else drives.get(link.joint, {}),
                              friction.get(link.joint, {}))
            for link in model.links if link.joint in {**drives, **friction}}


def _term(term: JointDynamics, drive: Mapping[str, Any], friction: Mapping[str, Any]) -> JointDynamics:
    found = {key: float(friction[key]) for key in FRICTION if key in friction}
    found |= {key: float(drive[key]) for key in ("rotor_inertia", "gear_ratio") if key in drive}
    for key in ("coulomb", "viscous"):
        found[key] = found.get(key, getattr(term, key)) + drive.get(key, 0.0)
    return replace(term, **found)


def coupled_motors(model: Model, file: RobotFile) -> tuple[CoupledMotor, ...]:
    """Return the motors of coupled transmissions, without the joints that do not turn them."""
    found = []
    for name, coupling in file.section("couplings").items():
        for motor, given in coupling["motors"].items():
            turned = {model.joint_names.index(joint): float(ratio)
                      for joint, ratio in zip(coupling["joints"], given["ratios"], strict=True) if ratio}
            term = {key: float(given[key]) for key in ("rotor_inertia", "coulomb", "viscous") if key in given}
            smoothing = float(given.get("smoothing", JointDynamics().smoothing * max(map(abs, turned.values()))))
            found.append(CoupledMotor(f"{name}.{motor}", tuple(turned), tuple(turned.values()),
                                      JointDynamics(**term, smoothing=smoothing)))
    return tuple(found)


class DeclaredPayload(NamedTuple):
    """Arguments of with_payload."""

    link: str
    mass: float
    com: Any
    inertia: Any


def payloads(file: RobotFile) -> Iterator[DeclaredPayload]:
    """Yield the payloads of a robot file."""
    for link, given in file.section("payloads").items():
        xx, xy, xz, yy, yz, zz = given.get("inertia", (0.0,) * 6)
        yield DeclaredPayload(link, given["mass"], given.get("com", (0.0,) * 3), ((xx, xy, xz), (xy, yy, yz), (xz, yz, zz)))


NO_LIMIT = 10.0  # times the known one of two limits: as good as none
ALIKE = 0.15  # relative: motor constants on data sheets are rounded, and measured warm or cold
KNOWN = {"back_emf_constant", "velocity_constant"}  # either determines k_e
Sheet = Mapping[str, Any]


def declared_drives(model: Model, file: RobotFile) -> tuple[Drive, ...]:
    """Return the drives of section `drives`, in the order of the joints that have their own coordinate."""
    sheets, springs = file.section("drives"), file.section("elastic_joints")
    return tuple(_drive(name, sheets[name], springs.get(name, {})) for name in model.joint_names if name in sheets)


def declared_supplies(model: Model, file: RobotFile) -> tuple[Supply, ...]:
    """Return the supplies of a robot file."""
    return tuple(Supply(name, tuple(given.get("joints", model.joint_names)), **_numbers(given))
                 for name, given in file.section("supplies").items())


def drive_limits(model: Model, file: RobotFile) -> tuple[DriveLimit, ...]:
    """Return the limits of sections `drives`, `limits` and `supplies`, in this order, for joints of the model."""
    found = [limit for drive in declared_drives(model, file)
             for limit in _drive_limits(drive, (model.joint_names.index(drive.joint),))]
    for k, joint in enumerate(model.joints):
        given = file.section("limits").get(joint.name, {})
        for quantity in TWO_SIDED:
            if (least := given.get(f"min_{quantity}")) is not None:
                most = given.get(f"max_{quantity}", getattr(joint, quantity))
                found.append(DriveLimit(quantity, joint.name, (k,), least, most, **{quantity: 1.0}))
    for supply in declared_supplies(model, file):
        found += _power(supply.name, tuple(map(model.joint_names.index, supply.joints)), supply)
    return tuple(found)


def _drive(name: str, sheet: Sheet, spring: Sheet) -> Drive:
    found = _numbers(sheet)
    if "torque_constant" in sheet and (KNOWN & set(sheet) or 1.0 in CONVENTIONS[sheet.get("current_convention", "dc")]):
        found["back_emf_constant"] = back_emf_constant(sheet)
    if spring:
        found["transmission_stiffness"] = float(spring["stiffness"])
    corners = tuple((float(speed), float(torque)) for speed, torque in sheet.get("speed_torque_curve", ()))
    return Drive(name, current_convention=sheet.get("current_convention", "dc"), speed_torque_curve=corners, **found)


def _numbers(given: Sheet) -> dict[str, Any]:
    return {key: float(value) for key, value in given.items() if key in Drive._fields and isinstance(value, int | float)}


def _drive_limits(drive: Drive, joints: tuple[int, ...]) -> Iterator[DriveLimit]:
    for quantity, limit in (("current", drive.max_current), ("voltage", drive.supply_voltage),
                            ("motor_velocity", drive.max_motor_velocity)):
        if limit == limit:
            yield DriveLimit(quantity, drive.joint, joints, -limit, limit, **getattr(drive, quantity)._asdict())
    yield from _power(drive.joint, joints, drive)
    yield from _speed_torque(drive.joint, joints, drive.speed_torque_curve)


def back_emf_constant(drive: Sheet) -> float:
    """k_e: as given, or from k_v, or the k_t of a motor whose power is voltage times current (dc, q_axis)."""
    if "velocity_constant" in drive:
        return 1.0 / float(drive["velocity_constant"])
    return float(drive.get("back_emf_constant", drive["torque_constant"]))


def drive_warnings(file: RobotFile) -> tuple[ModelWarning, ...]:
    """Return warnings about motor constants that contradict each other: power is voltage times current in every convention."""
    found = []
    for name, drive in file.section("drives").items():
        convention = drive.get("current_convention", "dc")
        wanted = CONVENTIONS[convention]
        if "torque_constant" not in drive or not KNOWN & set(drive):
            continue
        ratio = drive["torque_constant"] / back_emf_constant(drive)
        if min(abs(ratio / one - 1.0) for one in wanted) > ALIKE:
            expected = " or ".join(f"{one:.3g}" for one in wanted)
            found.append(ModelWarning("motor_constants", f"drives.{name}: torque_constant is {ratio:.3g} times "
                                                         f"back_emf_constant; with current_convention {convention} it must be "
                                                         f"{expected} times: is one of them peak, the other rms, or per 1000 "
                                                         "turns a minute?"))
    return tuple(found)


def _power(owner: str, joints: tuple[int, ...], given: Drive | Supply) -> Iterator[DriveLimit]:
    upper, braking = np.nan_to_num((given.max_power, given.max_braking_power)).tolist()
    if upper or braking:
        yield DriveLimit("power", owner, joints, -(braking or NO_LIMIT * upper), upper or NO_LIMIT * braking, power=1.0)


def _speed_torque(name: str, joints: tuple[int, ...], corners: Sequence[Sequence[float]]) -> Iterator[DriveLimit]:
    """Return a limit for each pair of opposite sides of the region, or for a side that has none."""
    region = speed_torque_region(corners) if len(corners) else np.zeros((0, 2))
    seen: list[np.ndarray] = []
    for a, b in zip(region, np.roll(region, -1, axis=0)):
        normal = np.array([b[1] - a[1], a[0] - b[0]])
        normal = normal / (normal @ a)  # 1 on this side
        if any(np.allclose(normal, -other, rtol=1e-9) for other in seen):
            continue
        seen.append(normal)
        yield DriveLimit("speed_torque", name, joints, float((region @ normal).min()), 1.0, velocity=float(normal[0]),
                         effort=float(normal[1]))


def efforts(model: Model, file: RobotFile) -> Efforts:
    """`effort_convention` holds for both ways, where `commanded_effort` and `measured_effort` say nothing else."""
    return Efforts(*(_convention(model, file, section) for section in ("commanded_effort", "measured_effort")))


def _convention(model: Model, file: RobotFile, section: str) -> EffortConvention:
    given, drives = file.section(section), file.section("drives")
    contains = given.get("contains", file.content.get("effort_convention", "total"))
    quantity, reversed_joints = given.get("quantity", "joint_torque"), given.get("reversed", ())
    per_unit = []
    of = given.get("joints", model.joint_names)
    for name in model.joint_names:
        drive = drives.get(name, {}) if name in of and quantity in ("motor_torque", "current") else {}
        constant = drive.get("torque_constant", 1.0) if quantity == "current" else 1.0
        sign = -1.0 if name in reversed_joints else 1.0
        per_unit.append(sign * constant * drive.get("gear_ratio", 1.0) * drive.get("efficiency", 1.0))
    return EffortConvention(contains, quantity, tuple(per_unit) if set(per_unit) != {1.0} else ())


# ---------------------------------------------------------------------- platforms in a URDF
# The platform of a parallel robot hangs on the root by a floating joint, whose origin is its home pose. A URDF is a tree, so
# it cannot say that the legs meet the platform; the section `loops` of the robot file does.


CHART = "chart"  # of the name of the joint that stands still
JOINTS = ("x", "y", "z", CHART, "rx", "ry", "rz")


def with_platforms(description: Description, file: RobotFile) -> tuple[Description, RobotFile]:
    """Return description and robot file with every platform as a link of the tree on joints, which start at its home."""
    one, several = file.section("platform"), file.section("platforms")
    start: dict[str, float] = {}
    for link, platform in [*([(one["link"], one)] if one else []), *several.items()]:
        description, names, (P, R) = _on_joints(description, link)
        if "home" in platform:
            home = R.T @ rpy(*platform["home"]["rpy"])
            offset = R.T @ (np.array(platform["home"]["xyz"], dtype=float) - P)
            angles = np.arctan2(-home[1, 2], home[2, 2]), np.arcsin(home[0, 2]), np.arctan2(-home[0, 1], home[0, 0])
            start |= dict(zip(names, map(float, (*offset, 0.0, *angles)), strict=True))
    loops = dict(file.section("loops"))
    return description, file.over({"loops": {**loops, "start": {**loops.get("start", {}), **start}}}) if start else file


def _on_joints(description: Description, link: str) -> tuple[Description, tuple[str, ...], tuple[np.ndarray, np.ndarray]]:
    """Return the description with seven joints in place of the platform's floating joint, their names, and its origin.

    The joints NAME.x, .y, .z slide along the axes of the origin, NAME.rx, .ry, .rz turn about the moving axes x, y, z. Where
    .ry is a quarter turn, the angles are singular; NAME.chart, about the axis y, stands still at a position that avoids that.
    ModelError if the platform is not the child of a floating joint on the root.
    """
    _check(description, link)
    robot = copy.deepcopy(description.robot)
    holder = next(joint for joint in robot.findall("joint") if urdf.end(joint, "child") == link)
    name, parent, (R, P) = holder.get("name", ""), urdf.end(holder, "parent"), urdf.origin(holder)
    names, index, last = [], robot.index(holder), len(JOINTS) - 1
    for number, joint_name in enumerate(JOINTS):
        axis = "y" if joint_name == CHART else joint_name[-1]
        kind = "prismatic" if joint_name in "xyz" else "continuous"
        child = link if number == last else f"{link}.{number}"
        joint = copy.deepcopy(holder)
        for element in [*joint]:
            if number and element.tag == "origin":
                joint.remove(element)
            elif element.tag in ("parent", "child"):
                element.set("link", parent if element.tag == "parent" else child)
        names.append(f"{name}.{joint_name}")
        joint.set("name", names[-1])
        joint.set("type", kind)
        joint.append(joint.makeelement("axis", {"xyz": " ".join(str(int(axis == other)) for other in "xyz")}))
        if kind == "prismatic":
            joint.append(joint.makeelement("limit", {"effort": "0", "velocity": "0", "lower": "-1e9", "upper": "1e9"}))
        robot.insert(index, joint)
        if number < last:
            robot.insert(index, robot.makeelement("link", {"name": child}))
        parent = child
    robot.remove(holder)
    return description._replace(robot=robot), tuple(names), (P, R)


def _check(description: Description, link: str) -> None:
    robot, where = description.robot, description.where
    names = [element.get("name", "") for element in robot.findall("link")]
    if link not in names:
        raise ModelError(f"platform link '{link}' does not exist{near(link, names)}; the links are {some(names)}", where)
    joints = {urdf.end(joint, "child"): joint for joint in robot.findall("joint")}
    holder = joints.get(link)
    if holder is None or holder.get("type") != "floating" or urdf.end(holder, "parent") in joints:
        raise ModelError(f"link '{link}' is to be the platform of a parallel robot: it must be the child of a floating joint "
                         "whose parent is the root link, and whose origin is the platform's home pose", where)
