"""URDF -> Model: parse, merge fixed links, lay modified Denavit-Hartenberg frames, move the inertias into them.

What becomes of each joint type:
* revolute, continuous, prismatic: one link of the tree; a mimic joint follows the coordinate of its leader;
* fixed: its child is merged into the link above, and stays known as a frame;
* planar: three joints ``<joint>/x``, ``<joint>/y`` (prismatic, in the plane) and ``<joint>/theta`` (about its normal);
* floating: only between the root and its single child, which then is the base; inside a tree it is refused by name.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
from urdf_parser_py import urdf as parser

from . import frames, mdh, urdf_checks, urdf_xml
from .errors import InputError, ModelError
from .frames import Body, Placed
from .model import NO_COORDINATE, Frame, Joint, JointTerm, Link, Model, frozen
from .vectors import Z, cross, rotate_inertia, rpy, shift

BASES = ("fixed", "floating")
RECONSTRUCTION_BOUND = 1e-12  # relative to the size of the robot; doubles leave 1e-15, more means that the frames are wrong


def load(source: str | bytes | os.PathLike, base: str = "fixed", friction: bool = False,
         joint_terms: Mapping[str, JointTerm] | None = None) -> Model:
    """The model of a robot description.

    source      : path (.urdf, .xacro) or XML text
    base        : "fixed" or "floating"
    friction    : whether <dynamics damping= friction=> counts; off, since most files carry simulator settings there
    joint_terms : rotor inertia, friction and offset by joint name, instead of what the URDF says
    Raises ModelError with everything that is wrong; InputError for the other arguments.
    """
    if base not in BASES:
        raise InputError(f"base is '{base}'; allowed are {', '.join(BASES)}")
    xml, problems, where = urdf_xml.read(source)
    problems += urdf_checks.problems(xml)
    if problems:
        raise ModelError(problems, where)
    joints = list(xml.iter("joint"))
    tree = _Tree(parser.URDF.from_xml_string(urdf_xml.text(xml)), base)
    tree.leaders = urdf_checks.leaders(joints)
    tree.warnings += urdf_checks.mimic_warnings(joints)
    return _assemble(tree, base, friction, where).with_terms(joint_terms or {})


class _Tree:
    """Bodies in depth-first order, each with the URDF joint that moves it, and the pose of every URDF link in its body."""

    def __init__(self, robot: parser.URDF, base: str):
        self.name = robot.name
        self.warnings: list[str] = []
        self.leaders: dict[str, str] = {}
        self.links = {link.name: link for link in robot.links}
        self.below: dict[str, list[parser.Joint]] = {name: [] for name in self.links}
        for joint in robot.joints:
            self.below[joint.parent].append(joint)
        root = self._base_link(robot, base)
        self.bodies = [Body(root, "", 0, mdh.FIXED, np.eye(3), np.zeros(3), Z)]
        self.joints: list[parser.Joint | None] = [None]
        self.poses: dict[str, tuple[int, np.ndarray, np.ndarray]] = {}
        self._walk(root, 0, np.eye(3), np.zeros(3))

    def _base_link(self, robot: parser.URDF, base: str) -> str:
        """The root, or the child of the floating joint that the root consists of."""
        children = {joint.child for joint in robot.joints}
        root = next(name for name in self.links if name not in children)
        floating = [joint for joint in robot.joints if joint.type == "floating"]
        if not floating:
            return root
        if _inertia(self.links[root])[0] > 0.0:
            self.warnings.append(f"link '{root}' has mass but is the world of floating joint '{floating[0].name}': ignored")
        if base == "fixed":
            self.warnings.append(f"floating joint '{floating[0].name}' is held fixed; base='floating' frees it")
        return floating[0].child

    def _walk(self, link: str, number: int, R: np.ndarray, P: np.ndarray) -> None:
        """Enter a link that sits at (R, P) in body `number`, then what is below it, in the order of the file."""
        self.poses[link] = (number, R, P)
        self._add_inertia(link, self.bodies[number], R, P)
        for joint in self.below[link]:
            Rj, Pj = _pose(joint.origin)
            self._walk(joint.child, *self._enter(joint, number, R @ Rj, P + R @ Pj))

    def _enter(self, joint: parser.Joint, number: int, R: np.ndarray, P: np.ndarray) -> tuple[int, np.ndarray, np.ndarray]:
        """Make the bodies of a joint; returns the body that carries its child link, and the child's pose there."""
        if joint.type == "fixed":
            return number, R, P
        axis = np.array(joint.axis if joint.axis is not None else (1.0, 0.0, 0.0), dtype=float)
        axis = axis / np.linalg.norm(axis)
        steps = [(joint.child, joint.name, mdh.PRISMATIC if joint.type == "prismatic" else mdh.REVOLUTE, axis)]
        if joint.type == "planar":
            x = frames.across(axis)
            steps = [(f"{joint.child}/x", f"{joint.name}/x", mdh.PRISMATIC, x),
                     (f"{joint.child}/y", f"{joint.name}/y", mdh.PRISMATIC, cross(axis, x)),
                     (joint.child, f"{joint.name}/theta", mdh.REVOLUTE, axis)]
        for name, joint_name, sigma, direction in steps:
            self.bodies.append(Body(name, joint_name, number, sigma, R, P, direction))
            self.joints.append(joint)
            number, R, P = len(self.bodies) - 1, np.eye(3), np.zeros(3)
        return number, R, P

    def _add_inertia(self, link: str, body: Body, R: np.ndarray, P: np.ndarray) -> None:
        m, centre, inertia = _inertia(self.links[link])
        if self.links[link].inertial is None:
            return
        self.warnings += urdf_checks.inertia_warnings(f"link '{link}'", m, inertia)
        J, ms = rotate_inertia(R, *shift(inertia, np.zeros(3), m, centre))
        J, ms = shift(J, ms, m, P)
        body.m, body.ms, body.J = body.m + m, body.ms + ms, body.J + J


def _pose(origin) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and translation of an <origin>; a missing one, or a missing half, is the identity."""
    angles = getattr(origin, "rpy", None)
    position = getattr(origin, "xyz", None)
    return (np.eye(3) if angles is None else rpy(*angles)), np.array(position if position is not None else (0.0, 0.0, 0.0))


def _inertia(link: parser.Link) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass in the link's frame, inertia about it in the link's axes."""
    if link.inertial is None:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    R, centre = _pose(link.inertial.origin)
    return float(link.inertial.mass), centre, R @ np.array(link.inertial.inertia.to_matrix(), dtype=float) @ R.T


def _assemble(tree: _Tree, base: str, friction: bool, where: str) -> Model:
    placed = frames.place(tree.bodies)
    joints, follow = _coordinates(tree)
    links = [Link(tree.bodies[0].name, m=tree.bodies[0].m, ms=frozen(tree.bodies[0].ms), J=frozen(tree.bodies[0].J))]
    numbers = [0]  # body -> its link number; fixed frames in between shift them
    for j, body in enumerate(tree.bodies[1:], start=1):
        rows = frames.parameters(*frames.edge(tree.bodies, placed, j), placed[body.parent].normal_to == j)
        parent = numbers[body.parent]
        for row in rows[:-1]:
            links.append(Link(f"{body.name}/frame", parent=parent, **row._asdict()))
            parent = len(links) - 1
        coordinate, multiplier, offset = follow[body.joint]
        J, ms = _into_frame(body, placed[j])
        links.append(Link(body.name, body.joint, parent, body.sigma, **rows[-1]._asdict(), coordinate=coordinate,
                          multiplier=multiplier, offset=offset, m=body.m, ms=frozen(ms), J=frozen(J),
                          term=_term(tree.joints[j], tree.warnings) if friction else JointTerm()))
        numbers.append(len(links) - 1)
    error = frames.reconstruction_error(tree.bodies, placed, links, numbers)
    size = 1.0 + sum(float(np.linalg.norm(body.P)) for body in tree.bodies)
    if not error <= RECONSTRUCTION_BOUND * size:
        raise ModelError(f"its frames came out {error:.3g} off; at most {RECONSTRUCTION_BOUND * size:.3g} is allowed", where)
    known = {name: Frame(numbers[k], *_frame_in(placed[k], R, P)) for name, (k, R, P) in tree.poses.items()}
    return Model(tree.name, tuple(links), tuple(joints), known, base, error, tuple(tree.warnings))


def _into_frame(body: Body, frame: Placed) -> tuple[np.ndarray, np.ndarray]:
    J, ms = rotate_inertia(frame.R.T, *shift(body.J, body.ms, body.m, -frame.P))
    return _without_dust(J), _without_dust(ms)


def _without_dust(array: np.ndarray) -> np.ndarray:
    """Zero what rounding left of zeros when an inertia was turned, so that kernels can drop it."""
    return np.where(np.abs(array) <= 4.0 * np.finfo(float).eps * np.abs(array).max(), 0.0, array)


def _frame_in(frame: Placed, R: np.ndarray, P: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return frozen(frame.R.T @ R), frozen(frame.R.T @ (P - frame.P))


def _coordinates(tree: _Tree) -> tuple[list[Joint], dict[str, tuple[int, float, float]]]:
    """The user's coordinates, and for every joint (coordinate, multiplier, offset), mimic chains resolved."""
    joints: list[Joint] = []
    follow: dict[str, tuple[int, float, float]] = {"": (NO_COORDINATE, 1.0, 0.0)}
    mimics = {joint.name: joint.mimic for joint in tree.joints if joint is not None and joint.name in tree.leaders}
    for body, joint in zip(tree.bodies[1:], tree.joints[1:], strict=True):
        if body.joint not in mimics:
            follow[body.joint] = (len(joints), 1.0, 0.0)
            joints.append(_joint(body, joint, tree.warnings))

    for name in mimics:
        chain = [name]  # up to a joint whose coordinate is known; no recursion, a chain may be long
        while chain[-1] not in follow:
            chain.append(mimics[chain[-1]].joint)
        for follower in reversed(chain[:-1]):
            mimic = mimics[follower]
            coordinate, multiplier, offset = follow[mimic.joint]
            k = 1.0 if mimic.multiplier is None else float(mimic.multiplier)
            follow[follower] = (coordinate, k * multiplier, k * offset + float(mimic.offset or 0.0))
    return joints, follow


def _joint(body: Body, joint: parser.Joint, warnings: list[str]) -> Joint:
    """A coordinate with its limits. Zero, infinite or missing limits are unknown: no real actuator has them."""
    if joint.type == "planar":
        return Joint(body.joint, "prismatic" if body.sigma == mdh.PRISMATIC else "continuous")
    limit = joint.limit
    if limit is None:
        if joint.type != "continuous":
            warnings.append(f"joint '{joint.name}' has no <limit>: its limits are unknown")
        return Joint(joint.name, joint.type)
    lower, upper = float(limit.lower or 0.0), float(limit.upper or 0.0)
    if joint.type == "continuous" or lower == upper == 0.0:
        lower = upper = np.nan
    lower, upper = (x if np.isfinite(x) else np.nan for x in (lower, upper))
    if lower > upper:
        warnings.append(f"joint '{joint.name}': lower limit {lower:g} is above upper limit {upper:g}: unknown")
        lower = upper = np.nan
    return Joint(joint.name, joint.type, lower, upper, _known(limit.velocity), _known(limit.effort))


def _known(limit: float | None) -> float:
    """A limit of effort or velocity as stored: NaN unless positive and finite."""
    return float(limit) if limit is not None and 0.0 < limit < np.inf else np.nan


def _term(joint: parser.Joint | None, warnings: list[str]) -> JointTerm:
    """Friction as <dynamics> gives it; no joint has a negative one."""
    if joint is None or joint.dynamics is None:
        return JointTerm()
    given = {"coulomb": float(joint.dynamics.friction or 0.0), "viscous": float(joint.dynamics.damping or 0.0)}
    warnings += [f"joint '{joint.name}': {name} friction {value:g} is negative: taken as zero"
                 for name, value in given.items() if value < 0.0]
    return JointTerm(**{name: max(value, 0.0) for name, value in given.items()})
