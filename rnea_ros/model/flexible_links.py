"""Flexible links: a beam in place of a rigid URDF link, as a chain of slices that follows modal coordinates.

Floating frame of reference with assumed modes. A bending beam of length L turns along its arc length s by

    theta(s) = sum_k w_k'(s) q_k,      curvature theta'(s),      strain energy 1/2 sum_k K_k q_k^2,

with shapes w_k (w_k(0) = w_k'(0) = 0, w_k(L) = 1), so that q_k is its share of the deflection of the tip [m]. The shapes are
orthogonal in mass and stiffness: K_k = EI int w_k''^2 ds. The angle is a linear function of the coordinates, thus the beam is
a chain of mimic joints, and every recursion of the package serves it: no matrix of shape integrals, no further equation.

    slices   point masses at the Gauss-Legendre points s_i of the beam: mass m g_i with weight g_i. Joints at the points turn
             the next segment by q_k times the difference of the secant slopes of w_k, so that small deflections, and with
             them the modal masses, are exact.
    length   segments are rigid: the beam does not stretch, and its tip comes nearer as it bends (foreshortening).
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
AT_POINT = 1e-9  # of the length: what is nearer is at that point of the beam
RIGHT_ANGLE = 1e-6
ROUNDING = 1e-9  # of mass and inertia that are left of a link without its beam


def with_flexible_links(description: Description, file: RobotFile, rigid: Model) -> tuple[Description, tuple[_Chain, ...]]:
    """Return the description with a chain of slices in place of each link in the robot file's `flexible_links`.

    rigid: model of the description as it is; ModelError names what contradicts it
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
    """Return the model of the chains with modal coordinates in their units, and the warnings of the rigid model."""
    scale = {model.joint_names.index(name): factor for chain in chains for name, factor in chain.leaders.items()}
    sliding = {name for chain in chains for bending in chain.bendings if bending.name != "twist"
               for name in (mode.joint for mode in bending.modes)}
    joints = tuple(Joint(joint.name, "prismatic" if joint.name in sliding else "revolute")
                   if k in scale else joint for k, joint in enumerate(model.joints))
    links = tuple(replace(link, multiplier=link.multiplier * scale.get(link.coordinate, 1.0)) for link in model.links)
    return replace(model, joints=joints, links=links, warnings=rigid.warnings,
                   flexible_links=tuple(chain.link_data() for chain in chains))


class _Chain:
    """Chain of slices in a copy of a description.

    Nodes are the points of the slices and of what is attached, in order. Segment k ends at node k; the joints at its start
    turn it by the difference of secant slopes. A branch at the end of a segment turns a frame to the tangent there.
    """

    def __init__(self, robot: _Element, link: str, entry: Mapping[str, Any], where: str):
        self.robot, self.link, self.where = robot, link, where
        self.element = next(one for one in robot.findall("link") if one.get("name") == link)
        self.start, end = (np.array(entry.get(name, (0.0, 0.0, 0.0)), dtype=float) for name in ("start", "end"))
        self.length = float(np.linalg.norm(end - self.start))
        if not self.length > 0.0:
            self._refuse("end", f"is {entry['end']}, where the beam starts; another point is needed [m]")
        self.along = (end - self.start) / self.length
        self.bendings: list[Bending] = []
        self.shapes: list[tuple[Bending, list[BeamShape]]] = []
        self.leaders: dict[str, float] = {}  # factor from the angle of the leading joint to the coordinate
        self._angles: dict[str, list[tuple[float, str]]] = {}
        self._read_mass(entry)
        self._read_bendings(entry)
        most = max(len(shapes) for _, shapes in self.shapes)
        self.n_slices = int(entry.get("slices", most + 4))

    def _refuse(self, key: str, text: str) -> None:
        raise ModelError(f"flexible_links.{self.link}.{key} {text}", self.where)

    # ------------------------------------------------------------------ what the robot file says

    def _read_mass(self, entry: Mapping[str, Any]) -> None:
        """Set mass of the beam, inertia of its section, and what of the URDF's link stays rigid at its start."""
        m, centre, inertia = urdf.inertia(self.element)
        self.mass = float(entry.get("mass", m))
        if not 0.0 < self.mass <= m * (1.0 + ROUNDING):
            self._refuse("mass", f"is {self.mass:g}; the link has {m:g}, of which the beam takes all or a part above 0 [kg]")
        L, e, middle = self.length, self.along, self.start + 0.5 * self.length * self.along
        across = np.eye(3) - np.outer(e, e)
        rod = self.mass * L * L / 12.0 * across
        self.section = np.zeros((3, 3))  # inertia of all slices about their centres [kg m^2]
        rest = m - self.mass
        if rest <= ROUNDING * m:
            if np.linalg.norm(centre - middle) > 1e-6 * L:
                self._refuse("mass", f"is {self.mass:g}, all of the link, whose centre of mass is at {np.round(centre, 6)}, "
                                     f"not in the middle of the beam, {np.round(middle, 6)}; give the mass of the beam alone: "
                                     "the rest stays rigid at its start [kg]")
            left = inertia - rod
            self.rest = 0.0, np.zeros(3), np.zeros((3, 3))
            self.section = left
        else:
            c = (m * centre - self.mass * middle) / rest
            left = inertia - rod
            for part, point in ((m, centre), (-self.mass, middle), (-rest, c)):
                left = left + part * ((point @ point) * np.eye(3) - np.outer(point, point))
            self.rest = rest, c, left
        if np.linalg.eigvalsh(left).min() < -1e-6 * np.trace(inertia) - ROUNDING:
            self._refuse("mass", f"is {self.mass:g}; a rod of that mass and length {L:g} m has more inertia than the link of "
                                 f"the URDF: {np.linalg.eigvalsh(left).min():.3g} kg m^2 would be left. Give the beam's own "
                                 "mass, start and end, or correct <inertial>")

    def _read_bendings(self, entry: Mapping[str, Any]) -> None:
        L, m, ratio = self.length, self.mass, float(entry.get("damping", 0.0))
        others: list[Array] = []
        for name, bend in entry.get("bending", {}).items():
            direction = np.array(bend["direction"], dtype=float)
            direction = direction / (np.linalg.norm(direction) or 1.0)
            wrong = [other for other in (self.along, *others) if abs(direction @ other) > RIGHT_ANGLE]
            if wrong or not direction.any():
                self._refuse(f"bending.{name}.direction", f"is {bend['direction']}; a direction across the beam "
                             f"({np.round(self.along, 6)}), and across that of the other bending, is needed")
            others.append(direction)
            table = bend.get("table")
            if table is not None:
                self._check_table(name, table)
            shapes = bending_shapes(int(bend.get("modes", DEFAULT_MODES)), bend.get("shapes", "polynomial"), table)
            self._add(name, direction, shapes, bend, float(bend["stiffness"]) / L**3, m, ratio)
        if "twist" in entry:
            twist, inertia = entry["twist"], float(self.along @ self.section @ self.along)
            if inertia <= 0.0:
                self._refuse("twist", "needs a moment of inertia about the beam, and `mass` of the whole link: the URDF's "
                                      f"leaves {inertia:g} kg m^2 to the slices")
            shapes = twist_shapes(int(twist.get("modes", 1)))
            self._add("twist", self.along, shapes, twist, float(twist["stiffness"]) / L, inertia, ratio)
        if not self.shapes:
            self._refuse("bending", "is missing; a flexible link bends in one or two directions, or has `twist`")

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
            self._refuse(f"{key}.positions", "must rise from 0 to 1, in lengths of the beam")
        for row in rows:
            if len(row) != len(x) or row[0] != 0.0 or row[-1] == 0.0:
                self._refuse(f"{key}.deflections", f"has a mode with {len(row)} numbers for {len(x)} positions; each begins "
                                                   "with 0 and ends with another number")

    # ------------------------------------------------------------------ the chain

    def build(self) -> None:
        """Replace the link."""
        x, g = leggauss(self.n_slices)
        slices = dict(zip((0.5 * (x + 1.0)).tolist(), (0.5 * g).tolist(), strict=True))
        attached = self._attached()
        nodes = sorted({*slices, *attached, 1.0})
        rest, centre, inertia = self.rest
        self._set_inertial(self.element, rest, centre, inertia)
        parent, before, at, secants = self.link, 0.0, self.start, self._zero()
        for number, node in enumerate(nodes):
            now = self._secants(before, node)
            parent = self._turn(parent, at, number, {name: now[name] - secants[name] for name in now}, f"/{number}")
            weight, h = slices.get(node, 0.0), (node - before) * self.length * self.along
            if weight:
                self._set_inertial(self._link(parent), weight * self.mass, h, weight * self.section)
            before, at, secants = node, h, now
            if node in attached or node == 1.0:
                tangent = self._tangents(node)
                name = f"{self.link}.tip" if node == 1.0 else f"{self.link}/{number}.frame"
                self._turn(parent, at, number, {name: tangent[name] - now[name] for name in now}, f"/{number}.end", name)
                point = self.start + node * self.length * self.along
                for joint in attached.get(node, ()):
                    self._move(joint, name, point)

    def _attached(self) -> dict[float, list[_Element]]:
        """Joints on the beam by the point at which they are, in lengths; those at its start stay where they are."""
        found: dict[float, list[_Element]] = {}
        for joint in self.robot.findall("joint"):
            if urdf.end(joint, "parent") == self.link:
                s = float((urdf.origin(joint)[1] - self.start) @ self.along) / self.length
                if s > AT_POINT:
                    found.setdefault(1.0 if s > 1.0 - AT_POINT else s, []).append(joint)
        return found

    def _zero(self) -> dict[str, float]:
        return {mode.joint: 0.0 for bending in self.bendings for mode in bending.modes}

    def _secants(self, a: float, b: float) -> dict[str, float]:
        """Angles of a segment by the coordinates: secant slopes of bending [rad/m], twist at its end [rad/rad]."""
        found = {}
        for bending, shapes in self.shapes:
            for mode, shape in zip(bending.modes, shapes, strict=True):
                twisted = bending.name == "twist"
                found[mode.joint] = float(shape.value(b) if twisted else
                                          (shape.value(b) - shape.value(a)) / ((b - a) * self.length))
        return found

    def _tangents(self, s: float) -> dict[str, float]:
        return {mode.joint: float(shape.value(s) if bending.name == "twist" else shape.slope(s) / self.length)
                for bending, shapes in self.shapes for mode, shape in zip(bending.modes, shapes, strict=True)}

    def _turn(self, parent: str, at: Array, number: int, factors: Mapping[str, float], tail: str, last: str = "") -> str:
        """Add the joints of one node and return the name of the link behind them. Every second node turns in reverse order,
        so that finite turns about several axes have an error of second order in the length of segments.
        """
        steps = [(mode.joint, cross(self.along, np.array(bending.direction)) if bending.name != "twist" else self.along)
                 for bending in self.bendings for mode in bending.modes]
        for step, (name, axis) in enumerate(steps[::-1] if number % 2 else steps):
            final = step == len(steps) - 1
            child = last if final and last else f"{name}{tail}"
            joint = self._sub(self.robot, "joint", name=f"{name}{tail}", type="continuous")
            self._sub(joint, "origin", xyz=_text(at if step == 0 else np.zeros(3)))
            self._sub(joint, "parent", link=parent)
            self._sub(joint, "child", link=child)
            self._sub(joint, "axis", xyz=_text(axis))
            if name not in self.leaders:
                if factors[name] == 0.0:
                    self._refuse("bending", f"has a shape without slope at its start: '{name}'")
                joint.set("name", name)
                self.leaders[name] = factors[name]
            else:
                self._sub(joint, "mimic", joint=name, multiplier=repr(factors[name] / self.leaders[name]))
            self._sub(self.robot, "link", name=child)
            parent = child
        return parent

    def _move(self, joint: _Element, parent: str, point: Array) -> None:
        """Attach a joint of the URDF to a frame on the beam."""
        joint.find("parent").set("link", parent)
        given = joint.find("origin")
        if given is None:
            given = self._sub(joint, "origin")
        given.set("xyz", _text(urdf.origin(joint)[1] - point))

    def _set_inertial(self, element: _Element, mass: float, centre: Array, inertia: Array) -> None:
        for old in element.findall("inertial"):
            element.remove(old)
        if mass <= 0.0:
            return
        found = self._sub(element, "inertial")
        self._sub(found, "origin", xyz=_text(centre))
        self._sub(found, "mass", value=repr(float(mass)))
        names = (("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2))
        self._sub(found, "inertia", **{name: repr(float(inertia[i, j])) for name, i, j in names})

    def _link(self, name: str) -> _Element:
        return next(one for one in self.robot.findall("link") if one.get("name") == name)

    @staticmethod
    def _sub(parent: _Element, tag: str, **attributes: str) -> Any:
        found = parent.makeelement(tag, attributes)
        parent.append(found)
        return found

    def link_data(self) -> FlexibleLink:
        """Return what the model keeps of the beam."""
        return FlexibleLink(self.link, f"{self.link}.tip", self.length, self.mass, tuple(self.start.tolist()),
                            tuple((self.start + self.length * self.along).tolist()), self.bendings[0].modes[0].joint,
                            tuple(self.bendings))


def _text(vector: Array) -> str:
    return " ".join(repr(float(x)) for x in vector)
