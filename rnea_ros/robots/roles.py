"""Roles of a robot's coordinates and efforts, from its robot file.

declared                      motion of the coordinate                            effort
joint with a motor            given                                               wanted
`springs`, `passive`          state: position and velocity are inputs             known: spring and damper, or zero
`flexible_links`              modes: state                                        known: stiffness and damping of the mode
other joint of a loop         follows                                             known: friction
`elastic_joints`              joint given, its motor follows                      joint: spring; motor: wanted
`base: floating`              state                                               known: zero
`base: prescribed`            given                                               wanted: the base wrench
`wheels`                      base: the pose is an input, the velocity follows;      known: zero
                              state in directions that rolling leaves free; the same for passive joints
                              motors more than rolling decides: the position alone   wanted, of least norm
`ground_contacts`             base given, joints of supporting legs follow        wanted, of least norm
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import Z, rpy
from ..algorithms.equations import BASE, WORLD, EquationsOfMotion, FluidBody, JointSpring, Motor, Wheel
from ..algorithms.kinematics import base_poses, within
from ..errors import ModelError, some
from ..model import mdh
from ..model.robot_file import RobotFile
from ..model.robot_file_validation import Problem
from ..model.tree import Frame, JointDynamics, Model
from . import loops as declared_loops
from .closure import LoopEquations, newton
from .conditions import Payload
from .loops import Cut, Loops

FLUID_PARTS = ("added_mass", "added_inertia", "linear_drag", "quadratic_drag", "angular_drag")
PARALLEL = 1e-6
ROLLED_FIRST = ("base x", "base y", "base z", "base rz", "base ry", "base rx")  # a bicycle leans freely
MOTORS = ("elastic_joints", "motors", "drives")


class DeclaredMotors(NamedTuple):
    """Motors in the order of the joints of the robot, and rotors that are added to links as rigid bodies."""

    motors: tuple[Motor, ...]
    rotors: tuple[Payload, ...]


def declared_motors(model: Model, whole: RobotFile) -> DeclaredMotors:
    """Return the motors of elastic joints and those mounted on links. Raises ModelError, which lists all errors.

    Only the rotation about its axis is modelled for a rotor without a declared link (Spong). Drives of other joints are terms
    of the joint, see load.py.
    """
    named = {*whole.section("elastic_joints"), *whole.section("motors")}
    if not named:
        return DeclaredMotors((), ())
    kept = {joint: entry for joint, entry in whole.section("drives").items() if joint in named}
    file = whole.only(MOTORS).over({"drives": kept}).checked(model)
    springs, carriers, drives = (file.section(name) for name in MOTORS)
    names = [name for name in model.joint_names if name in named]
    file.refuse([Problem(("drives", link.joint), ": has a rotor inertia among the joint dynamics already; declare it here or "
                                                 "there, not twice")
                 for link in model.links if link.joint in names and link.term.rotor_inertia])
    found = [_motor(model, name, springs.get(name, {}), carriers.get(name, {}), drives.get(name, {})) for name in names]
    rotors = [_rotor(model, carriers[name], drives.get(name, {})) for name in names if "mass" in carriers.get(name, {})]
    return DeclaredMotors(tuple(found), tuple(rotors))


def _motor(model: Model, name: str, spring: Mapping[str, Any], carrier: Mapping[str, Any], drive: Mapping[str, Any]) -> Motor:
    term = JointDynamics(drive.get("rotor_inertia", 0.0), drive.get("gear_ratio", 1.0), drive.get("coulomb", 0.0),
                         drive.get("viscous", 0.0))
    number, axis = 0, Z  # of a motor in the base any axis will do: it does not turn
    if carrier:
        frame = model.frame(carrier["link"])
        number, axis = frame.link, frame.R @ _direction(carrier)
    return Motor(model.joint_names.index(name), number, axis, term, float(spring.get("stiffness", math.inf)))


def _rotor(model: Model, carrier: Mapping[str, Any], drive: Mapping[str, Any]) -> Payload:
    """Return the rotor at rest as a rigid body; by (1) it is the same at every angle."""
    z, across = _direction(carrier), carrier["transverse_inertia"]
    inertia = across * np.eye(3) + (drive.get("rotor_inertia", 0.0) - across) * np.outer(z, z)
    return Payload.on_link(model, carrier["link"], carrier["mass"], carrier.get("position", (0.0, 0.0, 0.0)), inertia)


def _direction(carrier: Mapping[str, Any]) -> np.ndarray:
    axis = np.array(carrier["axis"], dtype=float)
    return axis / np.linalg.norm(axis)


RANK = 1e-7  # singular values below this share of the largest are zero
TRIAL_POSES = 3


@dataclass(frozen=True, eq=False)
class DeclaredRoles:
    """Roles of joints, loops and contacts that a robot file declares for a tree, in numbers of the model.

    given, state, follows : names of the joints by role; actuated: joints with a motor, in the order of the tree
    posed                 : coordinates of a rolling base, and joints, whose position is an input and whose velocity follows
    rolled                : coordinates whose velocity rolling decides, also where it is an input: these and others are free
    fluid                 : wetted bodies of links
    friction              : coefficients of friction by wheel, where known
    trials                : poses (n,) of the joints at which wheels may roll; None without wheels
    loops                 : cut joints, with the independent joints as the active ones; None without loops
    """

    given: tuple[str, ...]
    state: tuple[str, ...]
    follows: tuple[str, ...]
    actuated: tuple[str, ...]
    loops: Loops | None
    contacts: tuple[Cut, ...]
    wheels: tuple[Wheel, ...]
    springs: tuple[JointSpring, ...]
    motors: tuple[Motor, ...]
    rotors: tuple[Payload, ...]
    weights: Mapping[str, float] | None
    motor_names: Mapping[str, str]
    where: str
    posed: tuple[str, ...] = ()
    rolled: tuple[str, ...] = ()
    trials: tuple[Any, ...] | None = None
    friction: Mapping[str, float] = field(default_factory=dict)
    fluid: tuple[FluidBody, ...] = ()

    def charts(self, model: Model) -> tuple[str, ...]:
        """Return the names of the joints that do not move, one for each platform."""
        return tuple(model.joint_names[k] for k in self.loops.charts) if self.loops else ()

    def equations(self, model: Model, gravity: Any, carried: bool, measured: bool = False,
                  carriers: Sequence[int] = ()) -> EquationsOfMotion:
        """Return the equations of motion.

        carried  : whether the wrench that supports the base is an unknown
        measured : whether the motion of the motors of elastic joints is given; then an effort at the link of each is an
                   unknown
        carriers : numbers of the links with payloads
        """
        cuts = (*(self.loops.cuts if self.loops else ()), *self.contacts)
        elastic = {model.joint_names[motor.coordinate] for motor in self.motors if motor.stiffness < math.inf}
        actuated = [f"motor of {name}" if name in elastic else name for name in self.actuated]
        if measured:
            actuated += [name for name in model.joint_names if name in elastic]
        wrench = BASE if carried and model.base == "floating" and not self.contacts else ()
        weights = None
        if self.weights is not None:
            weights = {f"motor of {name}" if name in elastic else name: w for name, w in self.weights.items()}
        return EquationsOfMotion(model, gravity, cuts, self.wheels, self.motors, self.springs,
                                 (*wrench, *actuated, *self.charts(model)), weights, carriers, self.fluid)


def declared(model: Model, file: RobotFile, backend: str) -> DeclaredRoles:
    """Return the roles declared in a robot file. Raises ModelError for contradictions."""
    names = model.joint_names
    sprung, passive = file.section("springs"), tuple(file.content.get("passive", ()))
    loops = None
    if "loops" in file.content:
        loops = declared_loops.read(file.only(["loops"]), "Robot", model, platforms_of(file))
    motors, rotors, motor_names = _motors(model, file)
    contacts, wheels = _contacts(model, file), _wheels(model, file)
    weights = {name: float(w) for name, w in file.section("actuation_weights").items()} or None
    _check(file, model, passive, loops, contacts, wheels)
    springs = tuple(JointSpring(names.index(name), float(entry["stiffness"]), float(entry.get("rest", 0.0)),
                                float(entry.get("damping", 0.0))) for name, entry in sprung.items())
    modes = [mode for beam in model.flexible_links for mode in beam.modes]
    springs += tuple(JointSpring(names.index(mode.joint), mode.stiffness, 0.0, mode.damping) for mode in modes)
    sprung = {**sprung, **dict.fromkeys(mode.joint for mode in modes)}
    no_names: tuple[str, ...] = ()
    if loops is None:
        actuated = tuple(name for name in names if name not in sprung and name not in passive)
        state = tuple(name for name in names if name not in actuated)
        given, follows = actuated, no_names
    else:
        active = {names[k] for k in loops.active}
        actuated = tuple(name for name in names if name in active)
        state = tuple(name for name in names if name not in active and (name in sprung or name in passive))
        charts = {names[k] for k in loops.charts}
        given, follows = actuated, tuple(name for name in names if name not in active and name not in state
                                         and name not in charts)
    if weights is not None:
        unknown = [name for name in weights if name not in actuated]
        if unknown:
            raise ModelError(f"actuation_weights: {some(unknown)} has no motor; joints with motors are {some(actuated)}",
                             file.where)
    if loops is None and not contacts and not wheels:
        weights = None  # no motor is redundant
    if loops is not None and weights is not None:
        in_file = [names[k] for k in loops.active]
        given = _independent(_closed_jacobians(model, loops, backend), names, state, in_file)
    if contacts:
        weights = weights or {}
        given = _independent(_contact_jacobians(model, contacts), names, state, actuated)
    posed, rolled, trials = no_names, no_names, None
    if wheels:
        trials = _rolling_poses(model, wheels)
        jacobians = _rolling_jacobians(model, wheels, trials)
        if weights is not None:
            given = _independent(jacobians, (*BASE, *names), state, actuated)
        others = tuple(name for name in actuated if name not in given)
        rolled = _rolled(jacobians, (*BASE, *names), (*ROLLED_FIRST, *others, *state))
        posed = (*(name for name in BASE if name in rolled or not _is_held_up(jacobians)), *others,
                 *(name for name in state if name in rolled))
    follows = tuple(name for name in names if name in follows
                    or (name in actuated and name not in given and name not in posed))
    if loops is not None:
        independent = tuple(k for k, name in enumerate(names) if name in given or name in state)
        loops = loops._replace(active=independent)
    return DeclaredRoles(given, state, follows, actuated, loops, contacts, wheels, springs, motors, rotors, weights,
                         motor_names, file.where, posed, rolled, trials,
                         {name: float(wheel["friction"]) for name, wheel in file.section("wheels").items()
                          if "friction" in wheel}, _fluid(model, file))


def platforms_of(file: RobotFile) -> tuple[str, ...]:
    """Return the links that are platforms."""
    one = file.section("platform")
    return (*([one["link"]] if one else []), *file.section("platforms"))


def _check(file: RobotFile, model: Model, passive: Sequence[str], loops: Loops | None, contacts: Sequence[Cut],
           wheels: Sequence[Wheel]) -> None:
    if loops is not None:
        both = [name for name in passive if model.joint_names.index(name) in loops.active]
        if both:
            raise ModelError(f"passive: {some(both)} is an active joint of `loops` too; name it in one of them", file.where)
    bends = {beam.link for beam in model.flexible_links}
    if missing := [link for link in file.section("flexible_links") if link not in bends]:
        raise ModelError(f"flexible_links: {some(missing)} of the tree is rigid: rnea_ros.load, which reads the URDF too, "
                         "makes flexible links", file.where)
    for section, entries in (("ground_contacts", contacts), ("wheels", wheels)):
        if entries and model.base != "floating":
            raise ModelError(f"{section} needs a base that moves: set base to floating or prescribed, not fixed", file.where)
    if contacts and wheels:
        raise ModelError("ground_contacts and wheels cannot be declared together: a base either stands or rolls", file.where)


def _motors(model: Model, file: RobotFile) -> tuple[tuple[Motor, ...], tuple[Payload, ...], dict[str, str]]:
    """Return the motors of elastic joints and those mounted on links."""
    elastic, carriers = file.section("elastic_joints"), file.section("motors")
    named = [name for name in model.joint_names if name in elastic or name in carriers]
    if not named:
        return (), (), {}
    found = declared_motors(model, file)
    free = model.base == "floating"
    motors = tuple(motor._replace(axis=np.zeros(3)) if free and model.joint_names[motor.coordinate] not in carriers else motor
                   for motor in found.motors)
    return motors, found.rotors, {name: entry["motor_joint"] for name, entry in elastic.items() if "motor_joint" in entry}


def _contacts(model: Model, file: RobotFile) -> tuple[Cut, ...]:
    found = []
    for name, entry in file.section("ground_contacts").items():
        frame = model.frame(entry["link"])
        R = frame.R @ rpy(*entry.get("rpy", (0.0, 0.0, 0.0)))
        end = Frame(frame.link, R, frame.P + frame.R @ np.array(entry.get("xyz", (0.0, 0.0, 0.0)), dtype=float))
        found.append(Cut(name, entry["type"], Frame(WORLD, np.eye(3), np.zeros(3)), end))
    return tuple(found)


def _wheels(model: Model, file: RobotFile) -> tuple[Wheel, ...]:
    found = []
    for name, entry in file.section("wheels").items():
        frame, shape = model.frame(entry["link"]), entry.get("shape", "disc")
        axis = frame.R @ np.array(entry.get("axis", (0.0, 0.0, 1.0)), dtype=float)
        center = frame.P + frame.R @ np.array(entry.get("center", (0.0, 0.0, 0.0)), dtype=float)
        default = ("roller",) if "roller_angle" in entry else ("along", "across")
        found.append(Wheel(name, frame.link, center, axis / np.linalg.norm(axis), float(entry["radius"]),
                           tuple(entry.get("holds", default)), shape, float(entry.get("roller_angle", 0.0))))
    return tuple(found)


def _fluid(model: Model, file: RobotFile) -> tuple[FluidBody, ...]:
    section, found = file.section("fluid"), []
    density, smoothing = float(section.get("density", 1000.0)), float(section.get("smoothing", 1e-3))
    for link, entry in section.get("links", {}).items():
        frame = model.frame(link)
        R = frame.R @ rpy(*entry.get("rpy", (0.0, 0.0, 0.0)))
        center = frame.P + frame.R @ np.array(entry.get("center", (0.0, 0.0, 0.0)), dtype=float)
        parts: dict[str, Any] = {name: np.array(entry.get(name, (0.0, 0.0, 0.0)), dtype=float) for name in FLUID_PARTS}
        displaced = density * float(entry.get("volume", 0.0))
        found.append(FluidBody(frame.link, R, center, **parts, displaced=displaced, smoothing=smoothing))
    return tuple(found)


# ---------------------------------------------------------------------- rolling


def _rolling_poses(model: Model, wheels: Sequence[Wheel]) -> tuple[np.ndarray, ...]:
    """Return poses (n,) in which all wheels can roll: steering joints at zero, the others random near the start."""
    steering = set()
    at_zero = base_poses(model, np.zeros(model.n))
    for wheel in wheels:
        axis, number = at_zero[wheel.link].R @ wheel.axis, wheel.link
        while number:
            link, turn = model.links[number], at_zero[number].R[:, 2]
            if link.coordinate >= 0 and (link.sigma == mdh.PRISMATIC or abs(abs(turn @ axis) - 1.0) > PARALLEL):
                steering.add(link.coordinate)
            number = link.parent
    rng, moving = np.random.default_rng(0), np.array([k not in steering for k in range(model.n)], dtype=float)
    return tuple(size * moving * rng.normal(size=model.n) for size in (0.0, 0.05, 0.05))


def _rolling_jacobians(model: Model, wheels: Sequence[Wheel], poses: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return A (m, 6 + n) for base and joints, with a level base."""
    equations = EquationsOfMotion(model, np.zeros(3), wheels=wheels)
    return [np.array(equations.constraint_jacobian(np.eye(3), np.zeros(3), np.r_[np.zeros(6), pose]), dtype=float)
            for pose in poses]


def _rolled(jacobians: Sequence[np.ndarray], names: Sequence[str], candidates: Sequence[str]) -> tuple[str, ...]:
    """Return the first candidates whose velocities the rows determine, in the order of names."""
    columns: list[int] = []
    for name in candidates:
        k = names.index(name)
        if all(_rank(A[:, [*columns, k]]) > len(columns) for A in jacobians):
            columns.append(k)
    return tuple(names[k] for k in sorted(columns))


def _is_held_up(jacobians: Sequence[np.ndarray]) -> bool:
    """Return whether no free motion moves the base along the ground normal; otherwise `holds` lacks `normal`."""
    for A in jacobians:
        _, s, V = np.linalg.svd(A[:, :6])
        free = V[int((s > RANK * s.max(initial=0.0)).sum()):]
        if len(free) and np.abs(free[:, 2]).max() > RANK:
            return False
    return True


# ---------------------------------------------------------------------- which joints are independent


def _independent(jacobians: Sequence[np.ndarray], names: Sequence[str], state: Sequence[str],
                 actuated: Sequence[str]) -> tuple[str, ...]:
    """Return the first actuated joints whose motion can be given such that the constraints determine all others."""
    given: list[str] = []
    for name in actuated:
        others = [k for k, other in enumerate(names) if other not in state and other not in given and other != name]
        free = [k for k, other in enumerate(names) if other not in state and other not in given]
        if all(_rank(J[:, others]) == _rank(J[:, free]) for J in jacobians):
            given.append(name)
    return tuple(name for name in names if name in given)


def _rank(J: np.ndarray) -> int:
    s = np.linalg.svd(J, compute_uv=False)
    return int((s > RANK * s.max(initial=0.0)).sum()) if s.size and s.max() > 0.0 else 0


def _closed_jacobians(model: Model, loops: Loops, backend: str) -> list[np.ndarray]:
    """Return J (m, n) at closed poses near the start."""
    equations, rng = LoopEquations(model, loops, backend), np.random.default_rng(0)
    still = np.zeros(len(loops.active))
    found = []
    for k in range(TRIAL_POSES):
        near = loops.start + (0.05 * equations.units.unknowns * rng.normal(size=model.n) if k else 0.0)
        at = newton(lambda q: equations.careful_step(q, still, equations.movable), near, equations.units)
        if at.closed:
            found.append(equations.gaps(at.x)[1] / equations.units.equations[:, None] * equations.units.unknowns)
    return found


def _contact_jacobians(model: Model, contacts: Sequence[Cut]) -> list[np.ndarray]:
    """Return J (m, n) of the joints at random poses."""
    rng = np.random.default_rng(0)
    equations = EquationsOfMotion(replace(model, base="fixed"), np.zeros(3), contacts)
    found = []
    for _ in range(TRIAL_POSES):
        q = rng.normal(size=model.n)
        poses = base_poses(model, q)
        anchors = [within(poses[cut.second.link], (cut.second.R, cut.second.P)) for cut in contacts]
        found.append(np.array(equations.constraint_jacobian(np.eye(3), np.zeros(3), q, anchors), dtype=float))
    return found
