"""Flexible links: replacement of a rigid URDF link by a beam, modelled as a chain of rigid slices with modal coordinates.

Floating frame of reference with assumed modes. At arc length s, the cross-section of a bending beam of length L has
turned by

    theta(s) = sum_k w_k'(s) q_k,      curvature theta'(s),      strain energy 1/2 sum_k K_k q_k^2,

with shapes w_k (w_k(0) = w_k'(0) = 0, w_k(L) = 1), so that q_k is the contribution of mode k to the tip deflection
[m]. The shapes are orthogonal in mass and stiffness: K_k = EI int w_k''^2 ds. The angle is linear in the coordinates; the beam
is therefore a chain of mimic joints, to which all recursive algorithms of the package apply without shape integrals.

    slices   point masses at the Gauss-Legendre points s_i of the beam: mass m g_i with weight g_i. Joints at the points turn
             the next segment by q_k times the difference of the secant slopes of w_k, so that small deflections, and with
             them the modal masses, are exact.
    length   segments are rigid: the beam does not stretch, and its tip approaches its start as it bends (foreshortening).
    twist    angle phi(s) = sum_k sin((2 k - 1) pi s / 2 L) q_k about the beam [rad].

Euler-Bernoulli: no shear; EI and mass per length are constant. Boyer, Khalil, "An efficient calculation of flexible
manipulator inverse dynamics", Int. J. of Robotics Research 17 (1998); Meirovitch, "Fundamentals of vibrations", ch. 8.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.polynomial.legendre import leggauss

from ..algebra.vectors import Array, cross
from ..errors import ModelError
from . import urdf
from .beams import BeamShape, Bending, FlexibleLink, ModalCoordinate, bending_shapes, twist_shapes
from .robot_file import RobotFile
from .tree import Joint, Model
from .urdf_reader import Description

if TYPE_CHECKING:
    from lxml.etree import _Element

SECTION = "flexible_links"
DEFAULT_MODES = 3
POSITION_TOL = 1e-9  # distance along the beam within which a joint is attached to its start or end, relative to the length
ORTHOGONALITY_TOL = 1e-6  # largest cosine between directions that count as perpendicular
ROUNDING = 1e-9  # relative rounding error of mass and inertia after subtraction of the beam


def with_flexible_links(description: Description, file: RobotFile, rigid: Model) -> tuple[Description, tuple[_Chain, ...]]:
    """Return the description with each link of `flexible_links` replaced by a chain of slices, and the chains.

    rigid: model of the description without flexible links

    Raises ModelError if an entry of `flexible_links` contradicts the model.
    """
    chains = []
    for link, entry in file.section(SECTION).items():
        robot = copy.deepcopy(description.robot)
        if link not in rigid.frames:
            raise ModelError(f"flexible_links.{link}: link '{link}' does not exist", file.where)
        chain = _Chain(robot, link, entry, file.where)
        chain.build()
        chains.append(chain)
        description = description._replace(robot=robot)
    return description, tuple(chains)


def with_modes(model: Model, chains: Sequence[_Chain], rigid: Model) -> Model:
    """Return the model with modal coordinates in their units [m, rad], flexible_links, and the warnings of the rigid model.

    model: model of the description with chains; its coordinates are joint angles of the chains [rad]
    """
    scale = {model.joint_names.index(name): factor for chain in chains for name, factor in chain.leaders.items()}
    sliding = {name for chain in chains for bending in chain.bendings if bending.name != "twist"
               for name in (mode.joint for mode in bending.modes)}
    joints = tuple(Joint(joint.name, "prismatic" if joint.name in sliding else "revolute")
                   if k in scale else joint for k, joint in enumerate(model.joints))
    links = tuple(replace(link, multiplier=link.multiplier * scale.get(link.coordinate, 1.0)) for link in model.links)
    return replace(model, joints=joints, links=links, warnings=rigid.warnings,
                   flexible_links=tuple(chain.link_data() for chain in chains))


class _Chain:
    """Builder of the chain of slices of one link, in a copy of a description.

    Nodes are the centres of the slices and the positions of attached joints, in order. Segment k ends at node k; the joints at
    its start rotate it by the difference of secant slopes. At nodes with attached joints, a branch rotates a frame to the
    tangent of the beam.
    """

    def __init__(self, robot: _Element, link: str, entry: Mapping[str, Any], where: str):
        self.robot, self.link, self.where = robot, link, where
        self.element = next(one for one in robot.findall("link") if one.get("name") == link)
        self.start, end = (np.array(entry.get(name, (0.0, 0.0, 0.0)), dtype=float) for name in ("start", "end"))
        self.length = float(np.linalg.norm(end - self.start))
        if not self.length > 0.0:
            self._reject("end", f"is {entry['end']}, where the beam starts; another point is needed [m]")
        self.along = (end - self.start) / self.length
        self.bendings: list[Bending] = []
        self.shapes: list[tuple[Bending, list[BeamShape]]] = []
        self.leaders: dict[str, float] = {}  # factor from the angle of the leading joint to the coordinate
        self._angles: dict[str, list[tuple[float, str]]] = {}
        self._read_mass(entry)
        self._read_bendings(entry)
        most = max(len(shapes) for _, shapes in self.shapes)
        self.n_slices = int(entry.get("slices", most + 4))

    def _reject(self, key: str, text: str) -> None:
        raise ModelError(f"flexible_links.{self.link}.{key} {text}", self.where)

    # ------------------------------------------------------------------ entry of the robot file

    def _read_mass(self, entry: Mapping[str, Any]) -> None:
        """Set the mass of the beam, the inertia of its cross-sections, and the rigid rest of the URDF link at its start."""
        m, centre, inertia = urdf.inertia(self.element)
        self.mass = float(entry.get("mass", m))
        if not 0.0 < self.mass <= m * (1.0 + ROUNDING):
            self._reject("mass", f"is {self.mass:g}; a mass above 0 and at most {m:g}, that of the link, is needed [kg]")
        L, e, middle = self.length, self.along, self.start + 0.5 * self.length * self.along
        across = np.eye(3) - np.outer(e, e)
        rod = self.mass * L * L / 12.0 * across
        self.section = np.zeros((3, 3))  # inertia of all slices about their centres [kg m^2]
        rest = m - self.mass
        if rest <= ROUNDING * m:
            if np.linalg.norm(centre - middle) > 1e-6 * L:
                self._reject("mass", f"is {self.mass:g}, the mass of the whole link, but the centre of mass of the link is at "
                                     f"{np.round(centre, 6)}, not in the middle of the beam, {np.round(middle, 6)}; set "
                                     "`mass` to the mass of the beam alone: the rest is then rigid at its start [kg]")
            remaining = inertia - rod
            self.rest = 0.0, np.zeros(3), np.zeros((3, 3))
            self.section = remaining
        else:
            c = (m * centre - self.mass * middle) / rest
            remaining = inertia - rod
            for part, point in ((m, centre), (-self.mass, middle), (-rest, c)):
                remaining = remaining + part * ((point @ point) * np.eye(3) - np.outer(point, point))
            self.rest = rest, c, remaining
        if np.linalg.eigvalsh(remaining).min() < -1e-6 * np.trace(inertia) - ROUNDING:
            self._reject("mass", f"is {self.mass:g}; a rod of that mass and length {L:g} m has more inertia than the link of "
                                 f"the URDF; the remaining moment of inertia is {np.linalg.eigvalsh(remaining).min():.3g} kg "
                                 "m^2, which must not be negative. Correct mass, start and end of the beam, or <inertial> of "
                                 "the URDF")

    def _read_bendings(self, entry: Mapping[str, Any]) -> None:
        L, m, ratio = self.length, self.mass, float(entry.get("damping", 0.0))
        others: list[Array] = []
        for name, bend in entry.get("bending", {}).items():
            direction = np.array(bend["direction"], dtype=float)
            direction = direction / (np.linalg.norm(direction) or 1.0)
            wrong = [other for other in (self.along, *others) if abs(direction @ other) > ORTHOGONALITY_TOL]
            if wrong or not direction.any():
                self._reject(f"bending.{name}.direction", f"is {bend['direction']}; a direction perpendicular to the beam, "
                             f"{np.round(self.along, 6)}, and to the other bending direction is needed")
            others.append(direction)
            table = bend.get("table")
            if table is not None:
                self._check_table(name, table)
            shapes = bending_shapes(int(bend.get("modes", DEFAULT_MODES)), bend.get("shapes", "polynomial"), table)
            self._add(name, direction, shapes, bend, float(bend["stiffness"]) / L**3, m, ratio)
        if "twist" in entry:
            twist, inertia = entry["twist"], float(self.along @ self.section @ self.along)
            if inertia <= 0.0:
                self._reject("twist", f"is set, but the moment of inertia of the beam about its axis is {inertia:g} kg m^2; "
                                      "it must be positive. Set `mass` to the mass of the whole link, or correct <inertial> "
                                      "of the URDF")
            shapes = twist_shapes(int(twist.get("modes", 1)))
            self._add("twist", self.along, shapes, twist, float(twist["stiffness"]) / L, inertia, ratio)
        if not self.shapes:
            self._reject("bending", "is missing; declare bending in one or two directions, or `twist`")

    def _add(self, name: str, direction: Array, shapes: Sequence[BeamShape], entry: Mapping[str, Any], unit: float,
             inertia: float, ratio: float) -> None:
        modes = tuple(ModalCoordinate(f"{self.link}.{name}{k}", shape.stiffness * unit,
                                      2.0 * ratio * float(np.sqrt(shape.stiffness * unit * shape.mass * inertia)),
                                      shape.mass * inertia) for k, shape in enumerate(shapes, start=1))
        bending = Bending(name, tuple(direction.tolist()), modes, float(entry.get("section_modulus", np.nan)))
        self.bendings.append(bending)
        self.shapes.append((bending, list(shapes)))

    def _check_table(self, name: str, table: Mapping[str, Any]) -> None:
        x, rows = np.array(table["positions"], dtype=float), table["deflections"]
        key = f"bending.{name}.table"
        if x[0] != 0.0 or x[-1] != 1.0 or (np.diff(x) <= 0.0).any():
            self._reject(f"{key}.positions", f"is {table['positions']}; numbers that increase from 0 to 1 are needed (shares "
                                             "of the length)")
        for row in rows:
            if len(row) != len(x) or row[0] != 0.0 or row[-1] == 0.0:
                self._reject(f"{key}.deflections", f"has a mode with {len(row)} numbers from {row[0]:g} to {row[-1]:g}; "
                                                   f"{len(x)} numbers are needed, the first 0, the last not 0")

    # ------------------------------------------------------------------ chain of slices

    def build(self) -> None:
        """Replace the link by the chain in the description."""
        x, g = leggauss(self.n_slices)
        slices = dict(zip((0.5 * (x + 1.0)).tolist(), (0.5 * g).tolist(), strict=True))
        attached = self._attached()
        nodes = sorted({*slices, *attached, 1.0})
        rest, centre, inertia = self.rest
        self._set_inertial(self.element, rest, centre, inertia)
        parent, before, at, secants = self.link, 0.0, self.start, self._zero()
        for number, node in enumerate(nodes):
            now = self._secants(before, node)
            parent = self._add_joints(parent, at, number, {name: now[name] - secants[name] for name in now}, f"/{number}")
            weight, h = slices.get(node, 0.0), (node - before) * self.length * self.along
            if weight:
                self._set_inertial(self._link(parent), weight * self.mass, h, weight * self.section)
            before, at, secants = node, h, now
            if node in attached or node == 1.0:
                tangent = self._tangents(node)
                name = f"{self.link}.tip" if node == 1.0 else f"{self.link}/{number}.frame"
                self._add_joints(parent, at, number, {name: tangent[name] - now[name] for name in now}, f"/{number}.end", name)
                point = self.start + node * self.length * self.along
                for joint in attached.get(node, ()):
                    self._attach(joint, name, point)

    def _attached(self) -> dict[float, list[_Element]]:
        """Return the joints attached to the beam, keyed by their position (share of the length), except those at its start."""
        attached: dict[float, list[_Element]] = {}
        for joint in self.robot.findall("joint"):
            if urdf.end(joint, "parent") == self.link:
                s = float((urdf.origin(joint)[1] - self.start) @ self.along) / self.length
                if s > POSITION_TOL:
                    attached.setdefault(1.0 if s > 1.0 - POSITION_TOL else s, []).append(joint)
        return attached

    def _zero(self) -> dict[str, float]:
        return {mode.joint: 0.0 for bending in self.bendings for mode in bending.modes}

    def _secants(self, a: float, b: float) -> dict[str, float]:
        """Return the derivative of the angle of segment a to b (shares of the length) with respect to each modal coordinate.

        It is the secant slope of a bending shape [rad/m], or the twist at the end of the segment [rad/rad].
        """
        slopes = {}
        for bending, shapes in self.shapes:
            for mode, shape in zip(bending.modes, shapes, strict=True):
                twisted = bending.name == "twist"
                slopes[mode.joint] = float(shape.value(b) if twisted else
                                           (shape.value(b) - shape.value(a)) / ((b - a) * self.length))
        return slopes

    def _tangents(self, s: float) -> dict[str, float]:
        """Return the derivative of the tangent angle at s with respect to each modal coordinate; units as in _secants."""
        return {mode.joint: float(shape.value(s) if bending.name == "twist" else shape.slope(s) / self.length)
                for bending, shapes in self.shapes for mode, shape in zip(bending.modes, shapes, strict=True)}

    def _add_joints(self, parent: str, at: Array, number: int, factors: Mapping[str, float], tail: str, last: str = "") -> str:
        """Add the joints of one node after the link `parent`, and return the name of the link that follows them.

        The order of the axes alternates from node to node: the error of finite rotations about several axes is then of second
        order in the segment length.

        at      : (3,) origin of the first joint in the frame of the parent [m]
        factors : rotation at this node per modal coordinate [rad/m, rad/rad]
        tail    : suffix of the names of joints and links
        last    : name of the last link; empty: named like its joint
        """
        steps = [(mode.joint, cross(self.along, np.array(bending.direction)) if bending.name != "twist" else self.along)
                 for bending in self.bendings for mode in bending.modes]
        for step, (name, axis) in enumerate(steps[::-1] if number % 2 else steps):
            final = step == len(steps) - 1
            child = last if final and last else f"{name}{tail}"
            joint = self._append(self.robot, "joint", name=f"{name}{tail}", type="continuous")
            self._append(joint, "origin", xyz=_text(at if step == 0 else np.zeros(3)))
            self._append(joint, "parent", link=parent)
            self._append(joint, "child", link=child)
            self._append(joint, "axis", xyz=_text(axis))
            if name not in self.leaders:
                if factors[name] == 0.0:
                    self._reject("bending", f"has the shape '{name}' with zero deflection at the first node; another shape is "
                                            "needed")
                joint.set("name", name)
                self.leaders[name] = factors[name]
            else:
                self._append(joint, "mimic", joint=name, multiplier=repr(factors[name] / self.leaders[name]))
            self._append(self.robot, "link", name=child)
            parent = child
        return parent

    def _attach(self, joint: _Element, parent: str, point: Array) -> None:
        """Attach a joint of the URDF to the frame `parent` at a point (3,) of the beam, in the frame of the link [m]."""
        joint.find("parent").set("link", parent)
        origin = joint.find("origin")
        if origin is None:
            origin = self._append(joint, "origin")
        origin.set("xyz", _text(urdf.origin(joint)[1] - point))

    def _set_inertial(self, element: _Element, mass: float, centre: Array, inertia: Array) -> None:
        for old in element.findall("inertial"):
            element.remove(old)
        if mass <= 0.0:
            return
        inertial = self._append(element, "inertial")
        self._append(inertial, "origin", xyz=_text(centre))
        self._append(inertial, "mass", value=repr(float(mass)))
        names = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
        self._append(inertial, "inertia", **{name: repr(float(inertia[i, j])) for name, i, j in names})

    def _link(self, name: str) -> _Element:
        return next(one for one in self.robot.findall("link") if one.get("name") == name)

    @staticmethod
    def _append(parent: _Element, tag: str, **attributes: str) -> Any:
        element = parent.makeelement(tag, attributes)
        parent.append(element)
        return element

    def link_data(self) -> FlexibleLink:
        """Return the data of the beam for the model."""
        return FlexibleLink(self.link, f"{self.link}.tip", self.length, self.mass, tuple(self.start.tolist()),
                            tuple((self.start + self.length * self.along).tolist()), self.bendings[0].modes[0].joint,
                            tuple(self.bendings))


def _text(vector: Array) -> str:
    return " ".join(repr(float(x)) for x in vector)
