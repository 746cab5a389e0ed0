"""A human skeleton of 55 degrees of freedom as a URDF: 6 global, 12 spine, 5 neck, 2 x 9 arms, 2 x 7 legs.

Thesis, section 5.1, after Xiang et al. (2009). That model's own tables are not public; this one is built from published ones:

    masses, lengths, inertias  de Leva 1996, see segments.py
    joint places, limits       human-gazebo's 48-dof subject, Rajagopal et al. 2016, clinical ranges of motion
    strengths                  Anderson et al. 2007 and rbdl's torque muscles, for 73 kg and 1.741 m; they grow with mass times
                               stature. Trunk bending, hip rotation, subtalar and toe are estimates

x forward, y left, z up; the floor is z = 0. With all coordinates zero it stands upright, arms hanging, the middle of the hips
at the origin: `standing_height` lifts it onto the floor. Positive are flexion of hip, knee, shoulder and elbow, extension of
trunk, neck and toes, dorsiflexion, adduction, internal rotation; forward, left, up. Coordinates of the left limbs are
mirrored, so that equal numbers are mirrored postures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from xml.etree import ElementTree as xml

import numpy as np

from ..errors import InputError, some
from .segments import Segment, Segments

MEAN = 73.0 * 1.741  # of the subject whose strengths are given [kg m]
AXES = {"forward": (1, 0, 0), "left": (0, 1, 0), "up": (0, 0, 1), "right": (0, -1, 0)}
UP, DOWN, FORWARD = (0, 0, 1), (0, 0, -1), (1, 0, 0)
SIDES = ("right", "left")


class SkeletonAxis(NamedTuple):
    """One degree of freedom. axis: a name in AXES, of a right limb; limits [deg] ([m] of a slide); strength [N m], 0: none."""

    name: str
    axis: str
    lower: float
    upper: float
    strength: float


class SkeletonJoint(NamedTuple):
    """A joint of one to three axes, one after the other, between two bodies. offset: its place in the parent's frame [m]."""

    parent: str
    child: str
    offset: tuple[float, float, float]
    axes: Sequence[SkeletonAxis]


def _spine(name: str, back: float, front: float, side: float, turn: float, strength: Sequence[float]) -> list[SkeletonAxis]:
    return [SkeletonAxis(f"{name}_extension", "right", back, front, strength[0]),
            SkeletonAxis(f"{name}_bending", "forward", -side, side, strength[1]),
            SkeletonAxis(f"{name}_rotation", "up", -turn, turn, strength[2])]


GLOBAL = [SkeletonAxis("forward", "forward", -1.5, 1.5, 0), SkeletonAxis("up", "up", 0.6, 1.1, 0),
          SkeletonAxis("sideways", "left", -0.2, 0.2, 0),
          SkeletonAxis("pelvis_rotation", "up", -20, 20, 0), SkeletonAxis("pelvis_list", "forward", -15, 15, 0),
          SkeletonAxis("pelvis_tilt", "right", -25, 15, 0)]
LUMBAR = (-20.0, 12.0, 12.0, 8.0, (250.0, 150.0, 90.0))
TRUNK = [
    SkeletonJoint("pelvis", "l5", (0, 0, 0.1000), _spine("l5s1", *LUMBAR)),
    SkeletonJoint("l5", "l3", (0, 0, 0.0457), _spine("l4l3", *LUMBAR)),
    SkeletonJoint("l3", "t12", (0, 0, 0.1078), _spine("t12l1", *LUMBAR)),
    SkeletonJoint("t12", "thorax", (0, 0, 0.1077), _spine("t9t8", -15, 10, 10, 15, (200.0, 120.0, 90.0))),
    SkeletonJoint("thorax", "neck", (0, 0, 0.2421), _spine("c7", -50, 50, 35, 60, (30.0, 30.0, 30.0))),
    SkeletonJoint("neck", "head", (0, 0, 0.0900), _spine("c1", -10, 25, 20, 0, (20.0, 20.0, 0.0))[:2]),
]
ARM = [
    SkeletonJoint("thorax", "clavicle", (0, -0.03, 0.1540), [
        SkeletonAxis("clavicle_protraction", "up", -20, 20, 80), SkeletonAxis("clavicle_elevation", "forward", -5, 30, 80)]),
    SkeletonJoint("clavicle", "upper_arm", (0, -0.15, 0), [
        SkeletonAxis("shoulder_flexion", "right", -50, 120, 110), SkeletonAxis("shoulder_adduction", "forward", -120, 5, 95),
        SkeletonAxis("shoulder_rotation", "up", -60, 60, 45)]),
    SkeletonJoint("upper_arm", "forearm", (0, 0, -0.2817), [
        SkeletonAxis("elbow_flexion", "right", 0, 140, 85), SkeletonAxis("forearm_pronation", "up", -80, 80, 15)]),
    SkeletonJoint("forearm", "hand", (0, 0, -0.2689), [
        SkeletonAxis("wrist_flexion", "right", -70, 70, 25), SkeletonAxis("wrist_deviation", "forward", -25, 35, 13)]),
]
LEG = [
    SkeletonJoint("pelvis", "thigh", (0, -0.0835, 0), [
        SkeletonAxis("hip_flexion", "right", -30, 120, 200), SkeletonAxis("hip_adduction", "forward", -45, 30, 130),
        SkeletonAxis("hip_rotation", "up", -40, 40, 70)]),
    SkeletonJoint("thigh", "shank", (0, 0, -0.4222), [SkeletonAxis("knee_flexion", "left", 0, 125, 203)]),
    SkeletonJoint("shank", "foot", (0, 0, -0.4403), [
        SkeletonAxis("ankle_dorsiflexion", "right", -40, 25, 160), SkeletonAxis("subtalar_inversion", "forward", -20, 20,
                                                                                50)]),
    SkeletonJoint("foot", "toes", (0.125, 0, -0.0680), [SkeletonAxis("toe_extension", "right", -10, 60, 40)]),
]
HEEL, HALF_BALL = -0.055, 0.04  # behind the ankle; half the width of the ball [m]
PARTS = {"l5": 3.50 / 11.17, "head": 5.24 / 6.94, "toes": 0.13, "clavicle": 0.005}  # of lower trunk, head, foot; of the body
NEUTRAL = ("t9t8_", "c7_", "c1_", "right_clavicle_", "left_clavicle_", "right_wrist_", "left_wrist_")  # thesis, section 5.1
LOWER_BODY = (*NEUTRAL, "l5s1_", "l4l3_", "t12l1_", "right_shoulder_", "left_shoulder_", "right_elbow_", "left_elbow_",
              "right_forearm_", "left_forearm_", "right_subtalar_", "left_subtalar_")  # all but the legs: a small model


class SkeletonPoint(NamedTuple):
    """A point (3,) [m] in the frame of a URDF link."""

    link: str
    place: np.ndarray


@dataclass(frozen=True)
class Human:
    """A person: stature [m], mass [kg], sex, and the joints that stay in their neutral position, by name.

    frozen: names, or their beginnings; the default is the thesis's set: upper spine, neck, clavicles, wrists
    """

    stature: float = 1.741
    mass: float = 73.0
    sex: str = "male"
    frozen: tuple[str, ...] = NEUTRAL
    _segments: Segments = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value, low, high, unit in (("stature", self.stature, 1.2, 2.3, "m"), ("mass", self.mass, 25.0, 250.0, "kg")):
            if not low <= value <= high:
                raise InputError(f"{name} is {value:g}; {low:g} to {high:g} is allowed [{unit}]")
        object.__setattr__(self, "_segments", Segments(self.stature, self.mass, self.sex))
        idle = [name for name in self.frozen if not any(axis.startswith(name) for axis in self.all_axes)]
        if idle:
            raise InputError(f"frozen joints {some(idle, quoted=True)} do not exist; the skeleton's are {some(self.all_axes)}")

    @property
    def all_axes(self) -> tuple[str, ...]:
        """Names of all 55 coordinates."""
        return (*(axis.name for axis in GLOBAL), *(axis for joint in self.joints for axis in names(joint)))

    @property
    def frozen_axes(self) -> tuple[str, ...]:
        return tuple(axis for axis in self.all_axes if axis.startswith(self.frozen))

    @property
    def joints(self) -> list[SkeletonJoint]:
        """All joints but the global ones, offsets scaled to this person; of both sides."""
        limbs = [_on(side, joint) for side in SIDES for joint in (*ARM, *LEG)]
        return [joint._replace(offset=self._offset(joint)) for joint in (*TRUNK, *limbs)]

    def _offset(self, joint: SkeletonJoint) -> tuple[float, float, float]:
        """Lengths of segments from the table; where a joint lies inside a segment, in proportion; the rest with stature."""
        length, part = self._segments.length, bare(joint.child)
        lower, middle = length("lower trunk"), length("middle trunk")
        heights = {"l5": lower * 0.1000 / 0.1457, "l3": lower * 0.0457 / 0.1457, "t12": middle / 2, "thorax": middle / 2,
                   "neck": length("upper trunk"), "clavicle": length("upper trunk") * 0.1540 / 0.2421,
                   "head": length("head") * 0.0900 / 0.2429, "forearm": -length("upper arm"), "hand": -length("forearm"),
                   "shank": -length("thigh"), "foot": -length("shank")}
        x, y, z = (value * self._segments.scale for value in joint.offset)
        return x, y, heights.get(part, z)

    @property
    def standing_height(self) -> float:
        """Of the hips above the floor, legs straight [m]."""
        return self._segments.length("thigh") + self._segments.length("shank") + self.ankle_height

    @property
    def ankle_height(self) -> float:
        return 0.0680 * self._segments.scale

    @property
    def sole(self) -> tuple[float, float, float]:
        """Where heel, joint of the toes and tip lie ahead of the ankle [m]."""
        heel, ball = HEEL * self._segments.scale, 0.1250 * self._segments.scale
        return heel, ball, heel + self._segments.length("foot")

    @property
    def crown(self) -> float:
        """Of the head above the joint that it nods in [m]."""
        return self._segments.length("head") * (1.0 - 0.0900 / 0.2429)

    @property
    def hand_length(self) -> float:
        """To the third knuckle [m]."""
        return self._segments.length("hand")

    @cached_property
    def bodies(self) -> dict[str, Segment]:
        """Every rigid body in its own frame, by link."""
        s = self._segments
        lower = s.body("lower trunk", DOWN).moved(np.array(UP) * s.length("lower trunk"))
        l5_base = s.length("lower trunk") * 0.1000 / 0.1457
        pelvis, l5 = lower.split(PARTS["l5"], np.array(UP) * (l5_base + s.length("lower trunk")) / 2)
        half = s.length("middle trunk") / 2
        middle = s.body("middle trunk", DOWN).moved(np.array(UP) * half * 2)
        l3, t12 = middle.split(0.5, middle.centre + np.array(UP) * half / 2)
        upper = s.body("upper trunk", DOWN).moved(np.array(UP) * s.length("upper trunk"))
        head = s.body("head", DOWN).moved(np.array(UP) * s.length("head"))
        nape = s.length("head") * 0.0900 / 0.2429
        skull_centre = (head.centre - (1 - PARTS["head"]) * np.array(UP) * nape / 2) / PARTS["head"]
        neck, skull = head.split(PARTS["head"], skull_centre)
        found = {"pelvis": pelvis, "l5": l5.moved(-np.array(UP) * l5_base), "l3": l3, "t12": t12.moved(-np.array(UP) * half),
                 "neck": neck, "head": skull.moved(-np.array(UP) * nape)}
        for side, sign in (("right", -1.0), ("left", 1.0)):
            found |= {f"{side}_{name}": body for name, body in self._limbs(sign).items()}
            place = np.array(next(joint.offset for joint in self.joints if joint.child == f"{side}_clavicle"))
            upper = upper.without(found[f"{side}_clavicle"].moved(place))
        return found | {"thorax": upper}

    def _limbs(self, sign: float) -> dict[str, Segment]:
        s = self._segments
        foot = s.body("foot", FORWARD).moved(np.array([HEEL * s.scale, 0.0, -self.ankle_height / 2]))
        _, ball, tip = self.sole
        rear, toes = foot.split(PARTS["toes"], np.array([(ball + tip) / 2, 0.0, -self.ankle_height / 2]))
        width = 0.15 * s.scale
        rod = PARTS["clavicle"] * s.mass * np.array([1.0, 0.1, 1.0]) * width**2 / 12.0
        straight = {name: s.body(name.replace("_", " "), DOWN) for name in ("upper_arm", "forearm", "hand", "thigh", "shank")}
        return straight | {"foot": rear, "toes": toes.moved(-np.array([ball, 0.0, -self.ankle_height])),
                           "clavicle": Segment(PARTS["clavicle"] * s.mass, np.array([0.0, sign * width / 2, 0.0]),
                                               np.diag(rod))}

    @cached_property
    def points(self) -> dict[str, SkeletonPoint]:
        """Points that the constraints name: of the feet, and the ends of the pendulums of arms and legs."""
        (heel, ball, tip), side_step, found = self.sole, HALF_BALL * self._segments.scale, dict[str, SkeletonPoint]()
        for side, sign in (("right", -1.0), ("left", 1.0)):
            foot = {"heel": (heel, 0.0), "inner_ball": (ball, -sign * side_step), "outer_ball": (ball, sign * side_step)}
            found |= {f"{side}_{name}": SkeletonPoint(f"{side}_foot", np.array([*place, -self.ankle_height]))
                      for name, place in foot.items()}
            found[f"{side}_toe_tip"] = SkeletonPoint(f"{side}_toes", np.array([tip - ball, 0.0, 0.0]))
            origins = {"hip": "thigh", "ankle": "foot", "ball": "toes", "shoulder": "upper_arm", "wrist": "hand"}
            found |= {f"{side}_{name}": SkeletonPoint(f"{side}_{link}", np.zeros(3)) for name, link in origins.items()}
        return found

    @property
    def urdf(self) -> str:
        """The skeleton as URDF text; frozen joints are fixed ones."""
        robot = xml.Element("robot", name="human")
        xml.SubElement(robot, "link", name="world")
        parent = self._chain(robot, "world", "pelvis", (0, 0, 0), GLOBAL, [axis.name for axis in GLOBAL])
        assert parent == "pelvis"
        for joint in self.joints:
            self._chain(robot, joint.parent, joint.child, joint.offset, joint.axes, names(joint))
        for point, (link, place) in self.points.items():
            if place.any():  # so that viewers and other tools know them too
                xml.SubElement(robot, "link", name=point)
                self._joint(robot, f"{point}_mark", "fixed", link, point, place)
        xml.indent(robot)
        return xml.tostring(robot, encoding="unicode")

    def _chain(self, robot: Any, parent: str, child: str, offset: Iterable[float], axes: Sequence[SkeletonAxis],
               axis_names: Sequence[str]) -> str:
        """Joints of one axis each, with massless links between."""
        for k, (axis, name) in enumerate(zip(axes, axis_names)):
            last = k == len(axes) - 1
            link = child if last else f"{child}_{axis.name}"
            self._link(robot, link, self.bodies[child] if last else None)
            kind = "fixed" if name.startswith(self.frozen) else "prismatic" if axis in GLOBAL[:3] else "revolute"
            element = self._joint(robot, name, kind, parent, link, offset)
            if kind != "fixed":
                mirrored = child.startswith("left_") and axis.axis in ("forward", "up")
                xml.SubElement(element, "axis", xyz=_text(np.array(AXES[axis.axis]) * (-1 if mirrored else 1)))
                unit = self._segments.scale if kind == "prismatic" else np.pi / 180.0
                strength = axis.strength * self.mass * self.stature / MEAN
                xml.SubElement(element, "limit", lower=f"{axis.lower * unit:.17g}", upper=f"{axis.upper * unit:.17g}",
                               effort=f"{strength:.17g}", velocity="0")
            parent, offset = link, (0.0, 0.0, 0.0)
        return parent

    def _joint(self, robot: Any, name: str, kind: str, parent: str, child: str, offset: Iterable[float]) -> Any:
        element = xml.SubElement(robot, "joint", name=name, type=kind)
        xml.SubElement(element, "parent", link=parent)
        xml.SubElement(element, "child", link=child)
        xml.SubElement(element, "origin", xyz=_text(offset))
        return element

    def _link(self, robot: Any, name: str, body: Segment | None) -> None:
        element = xml.SubElement(robot, "link", name=name)
        if body is None:
            return
        inertial = xml.SubElement(element, "inertial")
        xml.SubElement(inertial, "origin", xyz=_text(body.centre))
        xml.SubElement(inertial, "mass", value=f"{body.mass:.17g}")
        entries = {f"i{a}{b}": body.inertia["xyz".index(a), "xyz".index(b)] for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
        xml.SubElement(inertial, "inertia", {name: f"{value:.17g}" for name, value in entries.items()})


def names(joint: SkeletonJoint) -> list[str]:
    """Of a joint's coordinates: those of limbs begin with their side."""
    side = joint.child.split("_")[0]
    return [f"{side}_{axis.name}" if side in SIDES else axis.name for axis in joint.axes]


def bare(link: str) -> str:
    """A link's name without its side."""
    return link.removeprefix("right_").removeprefix("left_")


def _on(side: str, joint: SkeletonJoint) -> SkeletonJoint:
    x, y, z = joint.offset
    parent = joint.parent if joint.parent in ("thorax", "pelvis") else f"{side}_{joint.parent}"
    return SkeletonJoint(parent, f"{side}_{joint.child}", (x, y if side == "right" else -y, z), joint.axes)


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)
