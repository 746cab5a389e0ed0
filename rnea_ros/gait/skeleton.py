"""Human skeleton of 55 degrees of freedom as a URDF, with segment inertias and passive joint moments.

6 global coordinates, 12 of the spine, 5 of the neck, 2 x 9 of the arms, 2 x 7 of the legs. Thesis, section 5.1, after Xiang
et al. (2009). The tables of that model are not public; this one is built from published ones:

    masses, lengths, inertias  P. de Leva, J. Biomechanics 29 (1996) 1223-1230
    joint centres, limits      human-gazebo's 48-dof subject, Rajagopal et al. 2016, clinical ranges of motion
    strengths                  Anderson et al. 2007 and rbdl's torque muscles, for 73 kg and 1.741 m, scaled by mass times
                               stature. Trunk bending, hip rotation, subtalar and toe are estimates
    passive moments            R. Riener, T. Edrich, J. Biomechanics 32 (1999) 539-544, means of ten people

De Leva's segments lie between joint centres, or between cervicale (C7), xiphion, omphalion and the middle of the hips. Mass
is a share of the body's, length that of the mean subject, mass centre from the proximal end and radii of gyration are shares
of the length. On a foot, the lengths add up to 2 % more than the stature of the mean man: kept as published.

x forward, y left, z up; the floor is z = 0. With all coordinates zero it stands upright, arms hanging, the middle of the hips
at the origin; raised by `standing_height` it stands on the floor. Positive are flexion of hip, knee, shoulder and elbow,
extension of trunk, neck and toes, dorsiflexion, adduction, internal rotation; forward, left, up. Coordinates of the left limbs
are mirrored, so that equal numbers are mirrored postures.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np

from ..algebra.vectors import shift
from ..errors import InputError, some


class SegmentData(NamedTuple):
    """Table row of a segment: mass share, length of the mean subject [m], centre and radii of gyration as length shares.

    radii: about the sagittal (forward), transverse (sideways) and longitudinal axis.
    """

    mass: float
    length: float
    centre: float
    radii: tuple[float, float, float]


MEAN_STATURE = {"male": 1.741, "female": 1.735}  # of the mean subject [m]
SEGMENT_TABLE = {
    "male": {
        "head": SegmentData(0.0694, 0.2429, 0.5002, (0.303, 0.315, 0.261)),
        "upper trunk": SegmentData(0.1596, 0.2421, 0.5066, (0.505, 0.320, 0.465)),
        "middle trunk": SegmentData(0.1633, 0.2155, 0.4502, (0.482, 0.383, 0.468)),
        "lower trunk": SegmentData(0.1117, 0.1457, 0.6115, (0.615, 0.551, 0.587)),
        "upper arm": SegmentData(0.0271, 0.2817, 0.5772, (0.285, 0.269, 0.158)),
        "forearm": SegmentData(0.0162, 0.2689, 0.4574, (0.276, 0.265, 0.121)),
        "hand": SegmentData(0.0061, 0.0862, 0.7900, (0.628, 0.513, 0.401)),
        "thigh": SegmentData(0.1416, 0.4222, 0.4095, (0.329, 0.329, 0.149)),
        "shank": SegmentData(0.0433, 0.4403, 0.4395, (0.251, 0.246, 0.102)),
        "foot": SegmentData(0.0137, 0.2581, 0.4415, (0.257, 0.245, 0.124)),
    },
    "female": {
        "head": SegmentData(0.0668, 0.2437, 0.4841, (0.271, 0.295, 0.261)),
        "upper trunk": SegmentData(0.1545, 0.2280, 0.5050, (0.466, 0.314, 0.449)),
        "middle trunk": SegmentData(0.1465, 0.2053, 0.4512, (0.433, 0.354, 0.415)),
        "lower trunk": SegmentData(0.1247, 0.1815, 0.4920, (0.433, 0.402, 0.444)),
        "upper arm": SegmentData(0.0255, 0.2751, 0.5754, (0.278, 0.260, 0.148)),
        "forearm": SegmentData(0.0138, 0.2643, 0.4559, (0.261, 0.257, 0.094)),
        "hand": SegmentData(0.0056, 0.0780, 0.7474, (0.531, 0.454, 0.335)),
        "thigh": SegmentData(0.1478, 0.3685, 0.3612, (0.369, 0.364, 0.162)),
        "shank": SegmentData(0.0481, 0.4386, 0.4352, (0.267, 0.263, 0.092)),
        "foot": SegmentData(0.0129, 0.2283, 0.4014, (0.299, 0.279, 0.139)),
    },
}
PAIRED = ("upper arm", "forearm", "hand", "thigh", "shank", "foot")


@dataclass(frozen=True, eq=False)
class Segment:
    """Rigid body: mass [kg], mass centre (3,) [m], inertia (3, 3) about it [kg m^2]; x forward, y left, z up."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray

    def moved(self, by: np.ndarray) -> Segment:
        """Return the segment seen from an origin at -by."""
        return Segment(self.mass, self.centre + by, self.inertia)

    def without(self, part: Segment) -> Segment:
        """Return what remains when a part is removed."""
        return _sum_segments(((1.0, self), (-1.0, part)))

    def split(self, share: float, centre: np.ndarray) -> tuple[Segment, Segment]:
        """Return two bodies that together equal this one; the second has `share` of the mass and the given mass centre.

        The inertia that the distance of both does not contribute is divided like the mass.
        """
        other = (self.centre - share * centre) / (1.0 - share)
        points = ((1.0 - share, other), (share, centre))
        distance_inertia = sum(_point_inertia(mass, point - self.centre) for mass, point in points)
        own = self.inertia - self.mass * distance_inertia
        return (Segment(self.mass * (1.0 - share), other, own * (1.0 - share)),
                Segment(self.mass * share, centre, own * share))


def _sum_segments(signed):
    mass = sum(sign * body.mass for sign, body in signed)
    first = sum(sign * body.mass * body.centre for sign, body in signed)
    about_origin = sum(sign * (body.inertia + _point_inertia(body.mass, body.centre)) for sign, body in signed)
    return Segment(mass, first / mass, about_origin - _point_inertia(mass, first / mass))


def _point_inertia(mass, position):
    return shift(np.zeros((3, 3)), np.zeros(3), mass, position)[0]


class Segments:
    """Segments of one person, by name: `length` [m] and `body` (the proximal end at the origin)."""

    def __init__(self, stature: float, mass: float, sex: str):
        if sex not in SEGMENT_TABLE:
            raise InputError(f"sex is '{sex}'; there are tables for {' and '.join(SEGMENT_TABLE)}")
        self.scale = stature / MEAN_STATURE[sex]
        self._table = SEGMENT_TABLE[sex]
        self.mass = mass / sum(row.mass * (1 + (name in PAIRED)) for name, row in self._table.items())  # shares sum to 0.9999

    def length(self, name: str) -> float:
        """Return the length of a segment [m]."""
        return self._table[name].length * self.scale

    def body(self, name: str, along: tuple[float, float, float]) -> Segment:
        """Return a segment along a direction from the proximal to the distal end, an axis.

        Forward and sideways axes are kept; for a foot, which points forward, the sagittal radius is that about the vertical.
        """
        row, direction = self._table[name], np.array(along)
        mass, length = row.mass * self.mass, self.length(name)
        sagittal, transverse, longitudinal = (mass * (radius * length) ** 2 for radius in row.radii)
        axes = (longitudinal, transverse, sagittal) if direction[0] else (sagittal, transverse, longitudinal)
        return Segment(mass, row.centre * length * direction, np.diag(axes))


MEAN_MASS_TIMES_STATURE = 73.0 * 1.741  # of the subject whose strengths are given [kg m]
AXES = {"forward": (1, 0, 0), "left": (0, 1, 0), "up": (0, 0, 1), "right": (0, -1, 0)}
UP, DOWN, FORWARD = (0, 0, 1), (0, 0, -1), (1, 0, 0)
SIDES = ("right", "left")


class SkeletonAxis(NamedTuple):
    """Degree of freedom. axis: a name in AXES, of a right limb; limits [deg] ([m] for slides); strength [N m], 0: none."""

    name: str
    axis: str
    lower: float
    upper: float
    strength: float


class SkeletonJoint(NamedTuple):
    """Joint of one to three axes in series between two bodies. offset: its position in the parent's frame [m]."""

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
# Shares of the mass of the lower trunk, head and foot (neck and head; foot and toes), and of the whole body
SPLIT_SHARES = {"l5": 3.50 / 11.17, "head": 5.24 / 6.94, "toes": 0.13, "clavicle": 0.005}
NEUTRAL = ("t9t8_", "c7_", "c1_", "right_clavicle_", "left_clavicle_", "right_wrist_", "left_wrist_")  # thesis, section 5.1
SAGITTAL = (*NEUTRAL, "sideways", "pelvis_rotation", "pelvis_list", "right_forearm_", "left_forearm_",
            *(f"{joint}_{turn}" for joint in ("l5s1", "l4l3", "t12l1") for turn in ("bending", "rotation")))  # a plane
LOWER_BODY = (*NEUTRAL, "l5s1_", "l4l3_", "t12l1_", "right_shoulder_", "left_shoulder_", "right_elbow_", "left_elbow_",
              "right_forearm_", "left_forearm_", "right_subtalar_", "left_subtalar_")  # all but the legs: a small model


SPINE_SLIDE = SkeletonAxis("l5s1_compression", "up", -0.01, 0.01, 0)  # stays at zero; its force is what the disc bears
SLIDES = (*GLOBAL[:3], SPINE_SLIDE)


class SkeletonPoint(NamedTuple):
    """Point (3,) [m] in the frame of a URDF link."""

    link: str
    position: np.ndarray


@dataclass(frozen=True)
class Human:
    """Person: stature [m], mass [kg], sex, and the joints that stay in their neutral position, by name.

    frozen    : names or prefixes; the default is the thesis's set: upper spine, neck, clavicles, wrists
    hand_load : mass that each hand holds, a point at its grip [kg]
    spine_force: a 56th coordinate, SPINE_SLIDE along the spine above L5/S1, whose force is that which the disc transmits
    """

    stature: float = 1.741
    mass: float = 73.0
    sex: str = "male"
    frozen: tuple[str, ...] = NEUTRAL
    hand_load: float = 0.0
    spine_force: bool = False
    _segments: Segments = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, value, low, high, unit in (("stature", self.stature, 1.2, 2.3, "m"), ("mass", self.mass, 25.0, 250.0, "kg"),
                                             ("hand_load", self.hand_load, 0.0, 100.0, "kg")):
            if not low <= value <= high:
                raise InputError(f"{name} is {value:g}; {low:g} to {high:g} is allowed [{unit}]")
        object.__setattr__(self, "_segments", Segments(self.stature, self.mass, self.sex))
        idle = [name for name in self.frozen if not any(axis.startswith(name) for axis in self.all_axes)]
        if idle:
            raise InputError(f"frozen joints {some(idle, quoted=True)} do not exist; the skeleton's are {some(self.all_axes)}")

    @property
    def all_axes(self) -> tuple[str, ...]:
        """Names of all 55 coordinates, or 56 with spine_force."""
        return (*(axis.name for axis in GLOBAL), *(axis for joint in self.joints for axis in coordinate_names(joint)))

    @property
    def frozen_axes(self) -> tuple[str, ...]:
        """Names of the frozen coordinates."""
        return tuple(axis for axis in self.all_axes if axis.startswith(self.frozen))

    @property
    def joints(self) -> list[SkeletonJoint]:
        """All joints but the global ones, scaled to this person, of both sides."""
        limbs = [_joint_of_side(side, joint) for side in SIDES for joint in (*ARM, *LEG)]
        lumbosacral = TRUNK[0]._replace(axes=[*TRUNK[0].axes, *([SPINE_SLIDE] if self.spine_force else [])])
        return [joint._replace(offset=self._offset(joint)) for joint in (lumbosacral, *TRUNK[1:], *limbs)]

    def _offset(self, joint: SkeletonJoint) -> tuple[float, float, float]:
        """Return the offset of a joint.

        Segment lengths follow the table, joints inside a segment its length in proportion, others the stature.
        """
        length, part = self._segments.length, link_without_side(joint.child)
        lower, middle = length("lower trunk"), length("middle trunk")
        heights = {"l5": lower * 0.1000 / 0.1457, "l3": lower * 0.0457 / 0.1457, "t12": middle / 2, "thorax": middle / 2,
                   "neck": length("upper trunk"), "clavicle": length("upper trunk") * 0.1540 / 0.2421,
                   "head": length("head") * 0.0900 / 0.2429, "forearm": -length("upper arm"), "hand": -length("forearm"),
                   "shank": -length("thigh"), "foot": -length("shank")}
        x, y, z = (value * self._segments.scale for value in joint.offset)
        return x, y, heights.get(part, z)

    @property
    def standing_height(self) -> float:
        """Height of the hips above the floor with straight legs [m]."""
        return self._segments.length("thigh") + self._segments.length("shank") + self.ankle_height

    @property
    def ankle_height(self) -> float:
        """Height of the ankle above the floor [m]."""
        return 0.0680 * self._segments.scale

    @property
    def sole(self) -> tuple[float, float, float]:
        """Positions of heel, toe joint and tip ahead of the ankle [m]."""
        heel, ball = HEEL * self._segments.scale, 0.1250 * self._segments.scale
        return heel, ball, heel + self._segments.length("foot")

    @property
    def crown(self) -> float:
        """Height of the crown above the joint of the head [m]."""
        return self._segments.length("head") * (1.0 - 0.0900 / 0.2429)

    @property
    def hand_length(self) -> float:
        """Length of the hand to the third knuckle [m]."""
        return self._segments.length("hand")

    @property
    def grip(self) -> np.ndarray:
        """Point (3,) of a hand at which it holds a load: the mass centre of the hand [m]."""
        return self._segments.body("hand", DOWN).centre

    @cached_property
    def bodies(self) -> dict[str, Segment]:
        """Every rigid body in its own frame, by link."""
        s = self._segments
        lower = s.body("lower trunk", DOWN).moved(np.array(UP) * s.length("lower trunk"))
        l5_base = s.length("lower trunk") * 0.1000 / 0.1457
        pelvis, l5 = lower.split(SPLIT_SHARES["l5"], np.array(UP) * (l5_base + s.length("lower trunk")) / 2)
        half = s.length("middle trunk") / 2
        middle = s.body("middle trunk", DOWN).moved(np.array(UP) * half * 2)
        l3, t12 = middle.split(0.5, middle.centre + np.array(UP) * half / 2)
        upper = s.body("upper trunk", DOWN).moved(np.array(UP) * s.length("upper trunk"))
        head = s.body("head", DOWN).moved(np.array(UP) * s.length("head"))
        nape = s.length("head") * 0.0900 / 0.2429
        skull_centre = (head.centre - (1 - SPLIT_SHARES["head"]) * np.array(UP) * nape / 2) / SPLIT_SHARES["head"]
        neck, skull = head.split(SPLIT_SHARES["head"], skull_centre)
        found = {"pelvis": pelvis, "l5": l5.moved(-np.array(UP) * l5_base), "l3": l3, "t12": t12.moved(-np.array(UP) * half),
                 "neck": neck, "head": skull.moved(-np.array(UP) * nape)}
        for side, sign in (("right", -1.0), ("left", 1.0)):
            found |= {f"{side}_{name}": body for name, body in self._limbs(sign).items()}
            position = np.array(next(joint.offset for joint in self.joints if joint.child == f"{side}_clavicle"))
            upper = upper.without(found[f"{side}_clavicle"].moved(position))
        return found | {"thorax": upper}

    def _limbs(self, sign: float) -> dict[str, Segment]:
        s = self._segments
        foot = s.body("foot", FORWARD).moved(np.array([HEEL * s.scale, 0.0, -self.ankle_height / 2]))
        _, ball, tip = self.sole
        rear, toes = foot.split(SPLIT_SHARES["toes"], np.array([(ball + tip) / 2, 0.0, -self.ankle_height / 2]))
        width = 0.15 * s.scale
        rod = SPLIT_SHARES["clavicle"] * s.mass * np.array([1.0, 0.1, 1.0]) * width**2 / 12.0
        straight = {name: s.body(name.replace("_", " "), DOWN) for name in ("upper_arm", "forearm", "hand", "thigh", "shank")}
        if self.hand_load:
            load = Segment(self.hand_load, self.grip, np.zeros((3, 3)))
            straight["hand"] = _sum_segments(((1.0, straight["hand"]), (1.0, load)))
        return straight | {"foot": rear, "toes": toes.moved(-np.array([ball, 0.0, -self.ankle_height])),
                           "clavicle": Segment(SPLIT_SHARES["clavicle"] * s.mass, np.array([0.0, sign * width / 2, 0.0]),
                                               np.diag(rod))}

    @cached_property
    def points(self) -> dict[str, SkeletonPoint]:
        """Points that the constraints use: of the feet, the ends of the pendulums of arms and legs, legs, grips, spine."""
        length = self._segments.length
        (heel, ball, tip), side_step, found = self.sole, HALF_BALL * self._segments.scale, dict[str, SkeletonPoint]()
        for side, sign in (("right", -1.0), ("left", 1.0)):
            foot = {"heel": (heel, 0.0), "inner_ball": (ball, -sign * side_step), "outer_ball": (ball, sign * side_step)}
            found |= {f"{side}_{name}": SkeletonPoint(f"{side}_foot", np.array([*position, -self.ankle_height]))
                      for name, position in foot.items()}
            found[f"{side}_toe_tip"] = SkeletonPoint(f"{side}_toes", np.array([tip - ball, 0.0, 0.0]))
            origins = {"hip": "thigh", "knee": "shank", "ankle": "foot", "ball": "toes", "shoulder": "upper_arm",
                       "wrist": "hand"}
            found |= {f"{side}_{name}": SkeletonPoint(f"{side}_{link}", np.zeros(3)) for name, link in origins.items()}
            found[f"{side}_grip"] = SkeletonPoint(f"{side}_hand", self.grip)
            found |= {f"{side}_{name}_middle": SkeletonPoint(f"{side}_{name}", np.array(DOWN) * length(name) / 2)
                      for name in ("thigh", "shank")}
        return found | {"t12_joint": SkeletonPoint("t12", np.zeros(3))}

    @property
    def urdf(self) -> str:
        """The skeleton as URDF text; frozen joints are fixed."""
        robot = ElementTree.Element("robot", name="human")
        ElementTree.SubElement(robot, "link", name="world")
        parent = self._chain(robot, "world", "pelvis", (0, 0, 0), GLOBAL, [axis.name for axis in GLOBAL])
        assert parent == "pelvis"
        for joint in self.joints:
            self._chain(robot, joint.parent, joint.child, joint.offset, joint.axes, coordinate_names(joint))
        for point, (link, position) in self.points.items():
            if position.any():  # for viewers and other tools
                ElementTree.SubElement(robot, "link", name=point)
                self._joint(robot, f"{point}_mark", "fixed", link, point, position)
        ElementTree.indent(robot)
        return ElementTree.tostring(robot, encoding="unicode")

    def _chain(self, robot: Any, parent: str, child: str, offset: Iterable[float], axes: Sequence[SkeletonAxis],
               axis_names: Sequence[str]) -> str:
        """Add joints of one axis each, with massless links between."""
        for k, (axis, name) in enumerate(zip(axes, axis_names)):
            last = k == len(axes) - 1
            link = child if last else f"{child}_{axis.name}"
            self._link(robot, link, self.bodies[child] if last else None)
            kind = "fixed" if name.startswith(self.frozen) else "prismatic" if axis in SLIDES else "revolute"
            element = self._joint(robot, name, kind, parent, link, offset)
            if kind != "fixed":
                mirrored = child.startswith("left_") and axis.axis in ("forward", "up")
                ElementTree.SubElement(element, "axis", xyz=_text(np.array(AXES[axis.axis]) * (-1 if mirrored else 1)))
                unit = self._segments.scale if kind == "prismatic" else np.pi / 180.0
                strength = axis.strength * self.mass * self.stature / MEAN_MASS_TIMES_STATURE
                ElementTree.SubElement(element, "limit", lower=f"{axis.lower * unit:.17g}", upper=f"{axis.upper * unit:.17g}",
                               effort=f"{strength:.17g}", velocity="0")
            parent, offset = link, (0.0, 0.0, 0.0)
        return parent

    def _joint(self, robot: Any, name: str, kind: str, parent: str, child: str, offset: Iterable[float]) -> Any:
        element = ElementTree.SubElement(robot, "joint", name=name, type=kind)
        ElementTree.SubElement(element, "parent", link=parent)
        ElementTree.SubElement(element, "child", link=child)
        ElementTree.SubElement(element, "origin", xyz=_text(offset))
        return element

    def _link(self, robot: Any, name: str, body: Segment | None) -> None:
        element = ElementTree.SubElement(robot, "link", name=name)
        if body is None:
            return
        inertial = ElementTree.SubElement(element, "inertial")
        ElementTree.SubElement(inertial, "origin", xyz=_text(body.centre))
        ElementTree.SubElement(inertial, "mass", value=f"{body.mass:.17g}")
        entries = {f"i{a}{b}": body.inertia["xyz".index(a), "xyz".index(b)] for a, b in ("xx", "xy", "xz", "yy", "yz", "zz")}
        ElementTree.SubElement(inertial, "inertia", {name: f"{value:.17g}" for name, value in entries.items()})


def coordinate_names(joint: SkeletonJoint) -> list[str]:
    """Return the names of a joint's coordinates; those of limbs begin with their side."""
    side = joint.child.split("_")[0]
    return [f"{side}_{axis.name}" if side in SIDES else axis.name for axis in joint.axes]


def link_without_side(link: str) -> str:
    """Return a link's name without its side."""
    return link.removeprefix("right_").removeprefix("left_")


def _joint_of_side(side: str, joint: SkeletonJoint) -> SkeletonJoint:
    x, y, z = joint.offset
    parent = joint.parent if joint.parent in ("thorax", "pelvis") else f"{side}_{joint.parent}"
    return SkeletonJoint(parent, f"{side}_{joint.child}", (x, y if side == "right" else -y, z), joint.axes)


def _text(values: Iterable[float]) -> str:
    return " ".join(f"{float(value):.17g}" for value in values)


PASSIVE_JOINTS = ("hip_flexion", "knee_flexion", "ankle_dorsiflexion")
COMPLEX_STEP = 1e-30  # [rad]


def leg_moments(hip: Any, knee: Any, ankle: Any) -> tuple[Any, Any, Any]:
    """Return passive moments [N m] of ligaments and relaxed muscles at hip, knee and ankle for angles [rad].

    Flexion and dorsiflexion are positive; arrays, also complex. Biarticular muscles couple the joints: the calf resists
    dorsiflexion more with a straight knee.
    """
    h, k, a = (np.degrees(1.0) * angle for angle in (hip, knee, ankle))
    return (np.exp(1.4655 - 0.0034 * k - 0.0750 * h) - np.exp(1.3403 - 0.0226 * k + 0.0305 * h) + 8.072,
            np.exp(1.800 + 0.0460 * a - 0.0352 * k + 0.0217 * h) - np.exp(-3.971 + 0.0004 * a + 0.0495 * k - 0.0128 * h)
            - 4.820 + np.exp(2.220 - 0.150 * k),
            np.exp(-7.9763 - 0.1949 * a + 0.0008 * k) - np.exp(2.1016 + 0.0843 * a - 0.0176 * k) + 1.792)


def passive_moments(q: np.ndarray, legs: Sequence[Sequence[int]]) -> tuple[np.ndarray, np.ndarray]:
    """Return moments (samples, n) and their derivatives (samples, n, n) at q (samples, n); legs: columns of PASSIVE_JOINTS."""
    tau, slope = np.zeros_like(q), np.zeros((*q.shape, q.shape[1]))
    for leg in legs:
        angles = q[:, leg].T
        tau[:, leg] = np.stack(leg_moments(*angles), axis=1)
        for column, way in zip(leg, 1j * COMPLEX_STEP * np.eye(3)):
            slope[:, leg, column] = np.stack(leg_moments(*(angles + way[:, None])), axis=1).imag / COMPLEX_STEP
    return tau, slope
