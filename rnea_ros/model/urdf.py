"""URDF -> Model: parse, merge fixed links, lay modified Denavit-Hartenberg frames, move the inertias into them.

What becomes of each joint type: * revolute, continuous, prismatic: one link of the tree; a mimic joint follows the coordinate
of its leader; * fixed: its child is merged into the link above, and stays known as a frame; * planar: three joints
``<joint>/x``, ``<joint>/y`` (prismatic, in the plane) and ``<joint>/theta`` (about its normal); * floating: only between the
root and its single child. With a floating base that child is the base; with a fixed one the joint   counts as fixed at its
origin. Inside a tree it is refused by name.

`with_bodies` writes a URDF with other bodies: its <inertial> elements are replaced, all else stays as it was written.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from lxml import etree

from ..algebra.vectors import Z, cross, quaternion, rotate_inertia, rpy, shift
from ..errors import InputError, ModelError, ModelWarning
from . import mdh, urdf_reader, urdf_validation
from .mdh import FramePose, TreeBody
from .tree import NO_COORDINATE, Frame, Joint, JointDynamics, Link, Model, frozen
from .urdf_reader import Description

if TYPE_CHECKING:
    from lxml.etree import _Element

BASES = ("fixed", "floating")
ORIGIN = (0.0, 0.0, 0.0)
RECONSTRUCTION_BOUND = 1e-12  # relative to the size of the robot; doubles leave 1e-15, more means that the frames are wrong


def load(source: str | bytes | os.PathLike | Description, base: str = "fixed", friction: bool = False,
         joint_dynamics: Mapping[str, JointDynamics] | None = None, allow_xacro: bool = False) -> Model:
    """Return the model of a robot description.

    source      : path (.urdf, or .xacro if allowed) or XML text, or what urdf_reader.read made of either
    base        : "fixed" or "floating"
    friction    : whether <dynamics damping= friction=> counts; off, since most files carry simulator settings there
    joint_dynamics : rotor inertia, friction and offset by joint name, instead of what the URDF says
    allow_xacro : whether a .xacro file, which is a program, may be run
    Raises ModelError with everything that is wrong; InputError for the other arguments.
    """
    if base not in BASES:
        raise InputError(f"base is '{base}'; allowed are {', '.join(BASES)}")
    read = source if isinstance(source, Description) else urdf_reader.read(source, allow_xacro)
    problems = read.problems + urdf_validation.problems(read.robot)
    if problems:
        raise ModelError(problems, read.where)
    tree = _Tree(read.robot, base)
    tree.warnings += urdf_validation.warnings(read.robot, read.left_out)
    model = _assemble(tree, base, friction, read.where)
    shaped = {tree.bodies[number].name for link, (number, _, _) in tree.poses.items() if link in read.shaped}
    found = urdf_validation.body_warnings(tree.bodies, model.joints, shaped, base == "floating")
    return replace(model, warnings=(*found, *model.warnings)).with_joint_dynamics(joint_dynamics or {})


class _Tree:
    """Bodies in depth-first order, each with the <joint> that moves it, and the pose of every URDF link in its body."""

    def __init__(self, robot: _Element, base: str):
        joints = robot.findall("joint")
        self.name = robot.get("name")
        self.warnings: list[ModelWarning] = []
        self.leaders = urdf_validation.mimic_leaders(joints)
        self.links = {link.get("name"): link for link in robot.iter("link")}
        self.below: dict[str, list[_Element]] = {name: [] for name in self.links}
        for joint in joints:
            self.below[end(joint, "parent")].append(joint)
        root = self._base_link(joints, base)
        self.bodies = [TreeBody(root, "", 0, mdh.FIXED, np.eye(3), np.zeros(3), Z)]
        self.joints: list[_Element | None] = [None]
        self.poses: dict[str, tuple[int, np.ndarray, np.ndarray]] = {}
        self._walk(root, 0, np.eye(3), np.zeros(3))

    def _base_link(self, joints: Sequence[_Element], base: str) -> str:
        """Return the root; for a floating base below a floating joint, the child of that joint."""
        children = {end(joint, "child") for joint in joints}
        root = next(name for name in self.links if name not in children)
        floating = [joint for joint in joints if joint.get("type") == "floating"]
        if not floating:
            return root
        name = floating[0].get("name")
        if base == "fixed":
            self.warnings.append(ModelWarning("held_base", f"floating joint '{name}' is held fixed at its origin; "
                                              "base='floating' frees it"))
            return root
        if inertia(self.links[root])[0] > 0.0:
            self.warnings.append(ModelWarning("ignored_mass", f"mass of link '{root}' is ignored: it is the world, to which "
                                              f"floating joint '{name}' connects the base"))
        return end(floating[0], "child")

    def _walk(self, link: str, number: int, R: np.ndarray, P: np.ndarray) -> None:
        """Enter a link that sits at (R, P) in body `number`, then what is below it, in the order of the file."""
        self.poses[link] = (number, R, P)
        self._add_inertia(link, self.bodies[number], R, P)
        for joint in self.below[link]:
            Rj, Pj = origin(joint)
            self._walk(end(joint, "child"), *self._enter(joint, number, R @ Rj, P + R @ Pj))

    def _enter(self, joint: _Element, number: int, R: np.ndarray, P: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        """Make the bodies of a joint; returns the body that carries its child link, and the child's pose there."""
        kind, name, child = joint.get("type"), joint.get("name"), end(joint, "child")
        if kind in ("fixed", "floating"):  # floating: of a base that is held
            return number, R, P
        axis = _numbers(joint.find("axis"), "xyz", (1.0, 0.0, 0.0))
        axis = axis / np.linalg.norm(axis)
        steps = [(child, name, mdh.PRISMATIC if kind == "prismatic" else mdh.REVOLUTE, axis)]
        if kind == "planar":
            x = mdh.perpendicular_axis(axis)
            steps = [(f"{child}/x", f"{name}/x", mdh.PRISMATIC, x), (f"{child}/y", f"{name}/y", mdh.PRISMATIC, cross(axis, x)),
                     (child, f"{name}/theta", mdh.REVOLUTE, axis)]
        for body_name, joint_name, sigma, direction in steps:
            self.bodies.append(TreeBody(body_name, joint_name, number, sigma, R, P, direction))
            self.joints.append(joint)
            number, R, P = len(self.bodies) - 1, np.eye(3), np.zeros(3)
        return number, R, P

    def _add_inertia(self, link: str, body: TreeBody, R: np.ndarray, P: np.ndarray) -> None:
        m, centre, moments = inertia(self.links[link])
        if self.links[link].find("inertial") is None:
            return
        self.warnings += urdf_validation.inertia_warnings(f"link '{link}'", m, moments)
        J, ms = rotate_inertia(R, *shift(moments, np.zeros(3), m, centre))
        J, ms = shift(J, ms, m, P)
        body.m, body.ms, body.J = body.m + m, body.ms + ms, body.J + J


def end(joint: _Element, end: str) -> str:
    """Return the link that a <joint> names as parent or child."""
    return joint.find(end).get("link")


def _numbers(element: _Element | None, name: str, default: Sequence[float]) -> np.ndarray:
    """Return the numbers of a checked attribute; the default where it is missing, or the element."""
    text = None if element is None else element.get(name)
    return np.array(default if text is None else text.split(), dtype=float)


def _number(element: _Element | None, name: str, default: float = 0.0) -> float:
    return float(_numbers(element, name, (default,))[0])


def origin(element: _Element) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and translation of the <origin> in a <joint> or <inertial>; what is missing is the identity."""
    given = element.find("origin")
    turned = given is not None and given.get("quat_xyzw") is not None
    R = quaternion(*_numbers(given, "quat_xyzw", ())) if turned else rpy(*_numbers(given, "rpy", ORIGIN))
    return R, _numbers(given, "xyz", ORIGIN)


def inertia(link: _Element) -> tuple[float, np.ndarray, np.ndarray]:
    """Return mass, centre of mass in the link's frame, inertia about it in the link's axes."""
    inertial = link.find("inertial")
    if inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    R, centre = origin(inertial)
    xx, xy, xz, yy, yz, zz = (_number(inertial.find("inertia"), name) for name in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz"))
    moments = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return _number(inertial.find("mass"), "value"), centre, R @ moments @ R.T


def _assemble(tree: _Tree, base: str, friction: bool, where: str) -> Model:
    mdh_poses = mdh.assign_mdh_frames(tree.bodies)
    joints, follow = _coordinates(tree)
    links = [Link(tree.bodies[0].name, m=tree.bodies[0].m, ms=frozen(tree.bodies[0].ms), J=frozen(tree.bodies[0].J))]
    numbers = [0]  # body -> its link number; fixed frames in between shift them
    for j, body in enumerate(tree.bodies[1:], start=1):
        rows = mdh.mdh_parameters(*mdh.relative_pose(tree.bodies, mdh_poses, j), mdh_poses[body.parent].normal_to == j)
        parent = numbers[body.parent]
        for row in rows[:-1]:
            links.append(Link(f"{body.name}/frame", parent=parent, **row._asdict()))
            parent = len(links) - 1
        coordinate, multiplier, offset = follow[body.joint]
        J, ms = _into_frame(body, mdh_poses[j])
        links.append(Link(body.name, body.joint, parent, body.sigma, **rows[-1]._asdict(), coordinate=coordinate,
                          multiplier=multiplier, offset=offset, m=body.m, ms=frozen(ms), J=frozen(J),
                          term=_term(tree.joints[j], tree.warnings) if friction else JointDynamics()))
        numbers.append(len(links) - 1)
    error = mdh.reconstruction_error(tree.bodies, mdh_poses, links, numbers)
    size = 1.0 + sum(float(np.linalg.norm(body.P)) for body in tree.bodies)
    if not error <= RECONSTRUCTION_BOUND * size:
        raise ModelError(f"its frames came out {error:.3g} off; at most {RECONSTRUCTION_BOUND * size:.3g} is allowed", where)
    known = {name: Frame(numbers[k], *_frame_in(mdh_poses[k], R, P)) for name, (k, R, P) in tree.poses.items()}
    return Model(tree.name, tuple(links), tuple(joints), known, base, error, tuple(tree.warnings))


def _into_frame(body: TreeBody, frame: FramePose) -> tuple[np.ndarray, np.ndarray]:
    J, ms = rotate_inertia(frame.R.T, *shift(body.J, body.ms, body.m, -frame.P))
    return _without_dust(J), _without_dust(ms)


def _without_dust(array: np.ndarray) -> np.ndarray:
    """Zero what rounding left of zeros when an inertia was turned, so that kernels can drop it."""
    return np.where(np.abs(array) <= 4.0 * np.finfo(float).eps * np.abs(array).max(), 0.0, array)


def _frame_in(frame: FramePose, R: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return frozen(frame.R.T @ R), frozen(frame.R.T @ (P - frame.P))


def _coordinates(tree: _Tree) -> tuple[list[Joint], dict[str, tuple[int, float, float]]]:
    """Return the user's coordinates, and for every joint (coordinate, multiplier, offset), mimic chains resolved."""
    joints: list[Joint] = []
    follow: dict[str, tuple[int, float, float]] = {"": (NO_COORDINATE, 1.0, 0.0)}
    mimics = {joint.get("name"): joint.find("mimic") for joint in tree.joints
              if joint is not None and joint.get("name") in tree.leaders}
    for body, joint in zip(tree.bodies[1:], tree.joints[1:], strict=True):
        if body.joint not in mimics:
            follow[body.joint] = (len(joints), 1.0, 0.0)
            joints.append(_joint(body, joint, tree.warnings))

    for name in mimics:
        chain = [name]  # up to a joint whose coordinate is known; no recursion, a chain may be long
        while chain[-1] not in follow:
            chain.append(tree.leaders[chain[-1]])
        for follower in reversed(chain[:-1]):
            mimic = mimics[follower]
            coordinate, multiplier, offset = follow[tree.leaders[follower]]
            k = _number(mimic, "multiplier", 1.0)
            follow[follower] = (coordinate, k * multiplier, k * offset + _number(mimic, "offset"))
    return joints, follow


def _joint(body: TreeBody, joint: _Element, warnings: list[ModelWarning]) -> Joint:
    """Return a coordinate with its limits. Zero, infinite or missing limits are unknown: no real actuator has them."""
    name, kind, limit = body.joint, joint.get("type"), joint.find("limit")
    if kind == "planar":
        return Joint(name, "prismatic" if body.sigma == mdh.PRISMATIC else "continuous")
    if limit is None:
        if kind != "continuous":
            warnings.append(ModelWarning("unknown_limit", f"joint '{name}' has no <limit>: its limits are unknown"))
        return Joint(name, kind)
    lower, upper = _number(limit, "lower"), _number(limit, "upper")
    if kind == "continuous" or lower == upper == 0.0:
        lower = upper = np.nan
    lower, upper = (x if np.isfinite(x) else np.nan for x in (lower, upper))
    if lower > upper:
        warnings.append(ModelWarning("ignored_limit", f"joint '{name}': lower limit {lower:g} is above upper limit {upper:g}: "
                                     "both are ignored"))
        lower = upper = np.nan
    known = {quantity: _limit(name, limit, quantity, warnings) for quantity in urdf_validation.SYMMETRIC_LIMITS}
    return Joint(name, kind, lower, upper, **_either_way(name, known, warnings))


def _limit(name: str, limit: _Element, quantity: str, warnings: list[ModelWarning]) -> float:
    """Return a limit as stored: NaN unless positive and finite. Zeros of effort and velocity are filled in by many tools."""
    value = _number(limit, quantity, np.nan)
    if value < 0.0 or (value == 0.0 and quantity in urdf_reader.SINCE):
        text = f"joint '{name}': {quantity} limit {value:g} is not above zero: ignored"
        warnings.append(ModelWarning("ignored_limit", text))
    return value if 0.0 < value < np.inf else np.nan


def _either_way(name: str, known: dict[str, float], warnings: list[ModelWarning]) -> dict[str, float]:
    """One limit of acceleration, for speeding up and for slowing down: the smaller keeps both."""
    up, down = known["acceleration"], known.pop("deceleration")
    if not np.isnan(down) and down != up:
        known["acceleration"] = float(np.fmin(up, down))
        warnings.append(ModelWarning("ignored_limit", f"joint '{name}': limits of acceleration {up:g} and deceleration "
                                     f"{down:g} differ: the smaller one is used for both"))
    return known


def _term(joint: _Element | None, warnings: list[ModelWarning]) -> JointDynamics:
    """Friction as <dynamics> gives it; no joint has a negative one."""
    if joint is None or joint.find("dynamics") is None:
        return JointDynamics()
    dynamics = joint.find("dynamics")
    given = {"coulomb": _number(dynamics, "friction"), "viscous": _number(dynamics, "damping")}
    warnings += [ModelWarning("negative_friction", f"joint '{joint.get('name')}': {name} friction {value:g} is negative: "
                              "taken as zero")
                 for name, value in given.items() if value < 0.0]
    return JointDynamics(**{name: max(value, 0.0) for name, value in given.items()})


AXES = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


class Body(NamedTuple):
    """Inertia of a URDF link in its frame: mass [kg], centre of mass [m], inertia about that as AXES [kg m^2]."""

    mass: float
    com: list[float]
    inertia: list[float]


def bodies(model: Model) -> dict[str, Body]:
    """Return the bodies of moving links by URDF link; links on fixed joints are part of the body that they are fixed to."""
    return {link.name: _body(model, link) for link in model.links[1:] if link.joint and link.name in model.frames}


def _body(model: Model, link: Link) -> Body:
    frame = model.frames[link.name]
    J, ms = shift(link.J, link.ms, link.m, -frame.P)
    J, ms = rotate_inertia(frame.R.T, J, ms)
    com = ms / link.m if link.m > 0.0 else np.zeros(3)
    central, _ = shift(J, ms, link.m, -com)
    return Body(float(link.m), com.tolist(), central[np.triu_indices(3)].tolist())


def with_bodies(source: str | bytes | os.PathLike[str], model: Model, allow_xacro: bool = False) -> str:
    """Return the text of a URDF whose moving links have the bodies of a model of the same robot.

    What fixed joints tie to a link loses its own <inertial>, for it is in that of the link.
    """
    root, _ = urdf_reader.whole(source, allow_xacro, comments=True)
    new = bodies(model)
    moved = {model.frames[name].link for name in new}
    for element in root.findall("link"):
        name = element.get("name", "")
        if name not in model.frames or model.frames[name].link not in moved:
            continue
        for old in element.findall("inertial"):
            element.remove(old)
        if name in new:
            element.insert(0, _inertial(new[name]))
    etree.indent(root)
    return '<?xml version="1.0"?>\n' + urdf_reader.text(root) + "\n"


def _inertial(body: Body) -> Any:
    found = etree.Element("inertial")
    etree.SubElement(found, "origin", xyz=" ".join(map(repr, body.com)), rpy="0 0 0")
    etree.SubElement(found, "mass", value=repr(body.mass))
    etree.SubElement(found, "inertia", {axis: repr(value) for axis, value in zip(AXES, body.inertia, strict=True)})
    return found
