"""Validation of robot descriptions: all errors and warnings of a URDF in one report.

`problems` checks the structure and the numbers of the pruned XML. `body_warnings` checks the plausibility of masses, lengths
and limits of bodies with fixed links merged, and suggests the likely cause and the remedy. The thresholds are far from the
values of real robots (manufacturers' files of more than eighty robots) and far from the usual mistakes, which are factors of
57 (degrees) or 1000 (mm, g).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..errors import ModelWarning, near, some
from .mdh import TreeBody
from .tree import Joint
from .urdf_reader import SINCE, known_attributes

if TYPE_CHECKING:
    from lxml.etree import _Element

MAX_DEPTH = 256  # most joints in series
MOVING = ("revolute", "continuous", "prismatic")
SUPPORTED = (*MOVING, "fixed", "planar", "floating")
PLANAR_AXES = ("x", "y", "theta")
SYMMETRIC_LIMITS = ("effort", "velocity", "acceleration", "deceleration", "jerk")  # bounds of absolute values: not negative
STRICT_VERSION = "1.2"  # first URDF version in which urdfdom rejects contradictory limits
ROUNDED_INERTIA = 1e-15  # moment of inertia that counts as a rounded zero [kg m^2]
MIN_SIMILARITY = 0.8  # similarity to a known attribute above which an unknown attribute counts as a misspelling
UNIT_LENGTH_TOL = 1e-3  # deviation of the length of a quaternion from 1 that counts as rounding


def problems(robot: _Element) -> list[str]:
    """Return all errors of a description, one sentence each; empty if it can be converted to a model."""
    links = [link.get("name", "") for link in robot.iter("link")]
    joints = list(robot.iter("joint"))
    if not links:
        return ["it has no <link>"]
    found = _duplicates("link", links) + _duplicates("joint", [name for joint in joints for name in _names(joint)])
    edges = []
    for joint in joints:
        found += _joint_problems(joint, set(links))
        edges.append((_reference(joint, "parent"), _reference(joint, "child")))
    found += _tree_problems(links, edges)
    found += _floating_problems(joints, edges)
    found += _mimic_problems(joints)
    found += [problem for origin in robot.iter("origin") for problem in _origin_problems(origin)]
    found += [f"link '{link.get('name')}': mass {mass:g} kg is negative"
              for link in robot.iter("link") for mass in _masses(link) if mass < 0]
    return found


def _duplicates(kind: str, names: list[str]) -> list[str]:
    found = [f"{count} {kind}s are named '{name}'" for name, count in Counter(names).items() if count > 1 and name]
    return found + ([f"a {kind} has an empty name"] if "" in names else [])


def _names(joint: _Element) -> list[str]:
    """Return the name of a joint and of the coordinates that it creates."""
    name = joint.get("name", "")
    return [name] + ([f"{name}/{axis}" for axis in PLANAR_AXES] if joint.get("type") == "planar" else [])


def _reference(joint: _Element, end: str) -> str | None:
    element = joint.find(end)
    return None if element is None else element.get("link")


def _masses(link: _Element) -> list[float]:
    return [v for element in link.iter("mass") for v in _numbers(element.get("value"))]


def _numbers(text: str | None) -> list[float]:
    """Return the numbers of an attribute; none if it is missing or malformed, which is reported elsewhere."""
    try:
        return [float(word) for word in (text or "").split()]
    except ValueError:
        return []


def _joint_problems(joint: _Element, links: set[str]) -> list[str]:
    where, kind = f"joint '{joint.get('name')}'", joint.get("type")
    found = []
    if kind is not None and kind not in SUPPORTED:
        found.append(f"{where}: type '{kind}' is not supported; supported are {', '.join(SUPPORTED)}")
    for end in ("parent", "child"):
        link = _reference(joint, end)
        if link is not None and link not in links:
            found.append(f"{where}: {end} link '{link}' does not exist")
    axis = joint.find("axis")
    if axis is not None and kind in (*MOVING, "planar"):
        xyz = _numbers(axis.get("xyz"))
        if len(xyz) == 3 and math.hypot(*xyz) < 1e-9:
            found.append(f"{where}: axis {xyz} has no direction")
    limit = joint.find("limit")
    if limit is not None and joint.getparent().get("version") >= STRICT_VERSION:
        found += [f"{where}: {problem}" for problem in _limit_problems(limit, kind)]
    return found


def _limit_problems(limit: _Element, kind: str | None) -> list[str]:
    """Return the problems of a limit that URDF 1.2 forbids and earlier versions tolerate."""
    found = [f"{name} limit {value:g} is negative" for name in SYMMETRIC_LIMITS
             for value in _numbers(limit.get(name)) if value < 0.0]
    missing = [name for name in ("lower", "upper") if limit.get(name) is None]
    if missing and kind in ("revolute", "prismatic"):
        found.append(f"<limit> has no {' and no '.join(missing)}; a {kind} joint needs both since URDF {STRICT_VERSION}")
    lower, upper = _numbers(limit.get("lower")), _numbers(limit.get("upper"))
    if lower and upper and lower[0] > upper[0]:
        found.append(f"lower limit {lower[0]:g} is above upper limit {upper[0]:g}")
    return found


def _origin_problems(origin: _Element) -> list[str]:
    quaternion = _numbers(origin.get("quat_xyzw"))
    found = []
    if origin.get("rpy") is not None and origin.get("quat_xyzw") is not None:
        found.append(f"{_owner(origin)}: <origin> has both rpy and quat_xyzw; one of them is needed")
    if len(quaternion) == 4 and math.hypot(*quaternion) < UNIT_LENGTH_TOL:
        found.append(f"{_owner(origin)}: <origin quat_xyzw=\"{origin.get('quat_xyzw')[:60]}\"> is no rotation: its length is "
                     f"{math.hypot(*quaternion):g}, a unit quaternion is needed")
    return found


def _owner(origin: _Element) -> str:
    above = origin.getparent() if origin.getparent().tag == "joint" else origin.getparent().getparent()
    return f"{above.tag} '{above.get('name')}'"


def _tree_problems(links: list[str], edges: list[tuple[str | None, str | None]]) -> list[str]:
    known = dict.fromkeys(links)
    parents: dict[str, list[str]] = {name: [] for name in known}
    children: dict[str, list[str]] = {name: [] for name in known}
    for parent, child in edges:
        if parent in known and child in known:
            parents[child].append(parent)
            children[parent].append(child)
    found = [f"link '{name}' is the child of {len(above)} joints, from {above}"
             for name, above in parents.items() if len(above) > 1]
    roots = [name for name in known if not parents[name]]
    if len(roots) > 1:
        found.append(f"{len(roots)} links have no parent, exactly one root is needed: {some(roots, 8, quoted=True)}")
    depth = dict.fromkeys(roots, 0)
    front = list(roots)
    while front:
        name = front.pop()
        for child in children[name]:
            if child not in depth:
                depth[child] = depth[name] + 1
                front.append(child)
    in_cycles = [name for name in known if name not in depth]
    if in_cycles:
        found.append(f"a cycle of joints, not reached from any root, through links {some(in_cycles, 8, quoted=True)}")
    if max(depth.values(), default=0) > MAX_DEPTH:
        found.append(f"{max(depth.values())} joints in series; at most {MAX_DEPTH} are supported")
    return found


def _floating_problems(joints: list[_Element], edges: list[tuple[str | None, str | None]]) -> list[str]:
    parents, children = Counter(parent for parent, _ in edges), {child for _, child in edges}
    return [f"joint '{joint.get('name')}': type 'floating' is supported only between the root link and its single child (a "
            "floating base), or between the root link and a platform that the robot file declares"
            for joint, (parent, _) in zip(joints, edges, strict=True)
            if joint.get("type") == "floating" and (parent in children or parents[parent] > 1)]


def _mimic_problems(joints: list[_Element]) -> list[str]:
    follows = mimic_leaders(joints)
    found: list[str] = []
    checked: set[str] = set()
    for name in follows:
        path: dict[str, None] = {}
        while name in follows and name not in checked and name not in path:
            path[name] = None
            name = follows[name]
        if name in path:
            cycle = list(path)[list(path).index(name):]
            found.append(f"joint '{name}': mimics itself through {some(cycle, 8, quoted=True)}")
        checked |= path.keys()
    return found


def mimic_leaders(joints: list[_Element]) -> dict[str, str]:
    """Return the leader of every mimic joint, keyed by its name; both joints exist and are movable.

    A <mimic> of other joints has no effect.
    """
    moving = {joint.get("name", "") for joint in joints if joint.get("type") in MOVING}
    pairs = {joint.get("name", ""): m.get("joint", "") for joint in joints for m in joint.iter("mimic")}
    return {name: leader for name, leader in pairs.items() if name in moving and leader in moving}


def warnings(robot: _Element, left_out: Mapping[tuple[str, str], list[str]]) -> list[ModelWarning]:
    """Return warnings about implausible values and about elements without effect in a valid description.

    left_out: ignored attributes, (tag, attribute) -> the elements that have them
    """
    found = _unused_attributes(robot.get("version"), left_out)
    for origin in robot.iter("origin"):
        length = math.hypot(*(_numbers(origin.get("quat_xyzw")) or [1.0]))
        if abs(length - 1.0) > UNIT_LENGTH_TOL:
            found.append(ModelWarning("quaternion_length", f"{_owner(origin)}: quat_xyzw has length {length:.4g} instead of "
                                      "1: it is normalized"))
    found += [ModelWarning("ignored_limit", f"joint '{joint.get('name')}': <limit> of a planar joint is ignored, since it "
                           "does not name x, y or theta")
              for joint in robot.iter("joint") if joint.get("type") == "planar" and joint.find("limit") is not None]
    return found + _mimic_warnings(list(robot.iter("joint")))


def _unused_attributes(version: str | None, left_out: Mapping[tuple[str, str], list[str]]) -> list[ModelWarning]:
    """Return warnings about ignored attributes: of later versions of URDF, likely misspelt, or unknown."""
    found: list[ModelWarning] = []
    unknown: dict[str, dict[str, list[str]]] = {}
    for (tag, name), elements in left_out.items():
        if name in SINCE:
            since = ".".join(map(str, SINCE[name]))
            found.append(ModelWarning("later_attribute",
                                      f"<{tag} {name}> is ignored in URDF {version} ({some(elements, 8)}): it requires "
                                      f"version {since}; write <robot version=\"{since}\">"))
        elif hint := near(name, known_attributes(tag), MIN_SIMILARITY):
            found.append(ModelWarning("misspelt_attribute", f"<{tag} {name[:60]}> is not an attribute of URDF and has no "
                                      f"effect ({some(elements, 8)}){hint}"))
        else:
            unknown.setdefault(tag, {})[name] = elements
    for tag, names in unknown.items():
        elements = list(dict.fromkeys(element for some_elements in names.values() for element in some_elements))
        found.append(ModelWarning("unknown_attribute", f"<{tag} {some([name[:60] for name in names])}> is not an attribute of "
                                  f"URDF and has no effect ({some(elements, 8)})"))
    return found


def _mimic_warnings(joints: list[_Element]) -> list[ModelWarning]:
    """Return warnings about <mimic> elements without effect, for instance of a gripper whose joints were fixed."""
    pairs = {joint.get("name", ""): m.get("joint", "") for joint in joints for m in joint.iter("mimic")}
    followers = mimic_leaders(joints)
    return [ModelWarning("ignored_mimic", f"joint '{name}' mimics '{leader}', but one of them is missing or fixed: <mimic> "
                         "is ignored")
            for name, leader in pairs.items() if name not in followers]


def inertia_warnings(where: str, mass: float, inertia: np.ndarray) -> list[ModelWarning]:
    """Return warnings about an inertia that no rigid body has.

    where   : subject of the warnings
    mass    : mass [kg]
    inertia : (3, 3) about the centre of mass [kg m^2]
    """
    a, b, c = np.linalg.eigvalsh(inertia)
    moments = f"principal moments {a:.4g}, {b:.4g}, {c:.4g} kg m^2"
    slack = 1e-9 * abs(c) + ROUNDED_INERTIA
    found = []
    if a < -slack:
        found.append(ModelWarning("negative_inertia", f"{where}: inertia is not positive: {moments}"))
    elif a + b < c - 1e-6 * abs(c) - slack:
        found.append(ModelWarning("triangle_inequality", f"{where}: inertia breaks the triangle inequality, {a + b:.4g} < "
                                  f"{c:.4g}: {moments}"))
    if mass == 0.0 and np.any(inertia):
        found.append(ModelWarning("inertia_without_mass", f"{where}: mass is zero but the inertia is not: {moments}"))
    return found


MAX_REACH = 50.0  # the longest arms on trucks and in space reach 20 to 60 m [m]
MAX_ANGLE = 4.0 * math.pi  # wrists with +-2 turns exist [rad]
MAX_TRAVEL = 50.0  # longest travel of a prismatic joint [m]
UNIT_BALL_VOLUME = 4.0 / 3.0 * math.pi
UNLIMITED = 1e5  # position limit above which a joint counts as unlimited [rad, m]
MAX_MEAN_DENSITY = 500.0  # mass of the robot per volume of a ball of its reach; below 10 for real robots [kg/m^3]
# density of osmium: no body of a given mass has less inertia than a ball of this density [kg/m^3]
MAX_DENSITY = 22_600.0
MAX_GYRATION_RATIO = 5.0  # radius of gyration of a body over the reach of the robot
MIN_PLACEHOLDERS = 3  # number of links with equal mass and moments of inertia that suggests placeholders
EQUALITY_TOL = 1e-6  # relative difference of moments of inertia that count as equal
LIGHT_SHARE = 0.01  # share of the total mass below which the inertia of a body is not checked
# names of warnings after which torques are most likely wrong
IMPLAUSIBLE = ("massless", "missing_mass", "total_mass", "reach", "position_limit", "inertia_too_large", "inertia_too_small",
               "placeholder")
# names of warnings without an effect on computed values
NOTES = ("unknown_attribute", "ignored_mimic", "unknown_limit", "held_base", "renamed_joints")
OTHERS = ("triangle_inequality", "negative_inertia", "inertia_without_mass", "misspelt_attribute", "later_attribute",
          "ignored_limit",
          "quaternion_length", "ignored_mass", "negative_friction", "no_inertia", "motor_constants")
ACCEPTABLE = tuple(sorted({*IMPLAUSIBLE, *OTHERS, *NOTES} - {"massless"}))  # all torques of a massless robot are zero


def implausible(found: Iterable[str]) -> list[str]:
    """Return the warnings after which torques are most likely wrong."""
    return [warning for warning in found if getattr(warning, "name", "") in IMPLAUSIBLE]


def body_warnings(bodies: Sequence[TreeBody], joints: Sequence[Joint], shaped: Collection[str],
                  free_base: bool = False) -> list[ModelWarning]:
    """Return warnings about implausible bodies and position limits.

    bodies    : bodies of the tree, the root first
    joints    : joints with their limits
    shaped    : names of bodies with a <visual> or <collision>
    free_base : True if the root can move
    """
    moving = [*bodies] if free_base else [*bodies[1:]]
    found = [*_angle_limits(joints), *_travel_limits(bodies, joints)]
    reach, extent = _reach(bodies)
    if reach > MAX_REACH:
        text = f"the robot reaches {reach:.4g} m from its root link, more than {MAX_REACH:g} m: are its lengths in mm?"
        found.append(ModelWarning("reach", f"{text} URDF requires m"))
    mass = sum(body.m for body in moving)
    if mass > 0.0:
        heavy = _total_mass(moving, mass, reach)
        inertias = [*_large_inertias(moving, mass, extent), *([] if heavy else _small_inertias(moving, mass))]
        return [*found, *_missing_masses(bodies, shaped), *heavy, *inertias, *_placeholders(moving)]
    if len(bodies) > 1:
        found.insert(0, ModelWarning("massless", "no moving link has a mass: all torques lack gravity and inertia. Such URDFs "
                                     "are made for display and planning; add <inertial> to the links, from CAD or "
                                     "the data sheet"))
    return found


def _angle_limits(joints: Sequence[Joint]) -> list[ModelWarning]:
    found = [joint for joint in joints if joint.type == "revolute" and _largest(joint) > MAX_ANGLE]
    if not found:
        return []
    worst = max(found, key=_largest)
    text = (f"position limits of {_named('joint', found)} reach {_largest(worst):.4g} rad ('{worst.name}'), more than two "
            "turns: are they in degrees? URDF requires rad; a joint without limits needs type=\"continuous\"")
    return [ModelWarning("position_limit", text)]


def _largest(joint: Joint) -> float:
    """Return the largest absolute position limit of a joint [rad]; 0 if it is unknown or unlimited."""
    angle = float(np.nan_to_num(max(abs(joint.lower), abs(joint.upper))))
    return angle if angle < UNLIMITED else 0.0


def _travel_limits(bodies: Sequence[TreeBody], joints: Sequence[Joint]) -> list[ModelWarning]:
    """Check the travel of prismatic joints after a body with mass; others may be the coordinates of a mobile base."""
    carrying = [bodies[0].m > 0.0]
    for body in bodies[1:]:
        carrying.append(carrying[body.parent] or body.m > 0.0)
    carried = {body.joint for body in bodies[1:] if carrying[body.parent]}
    found = [joint for joint in joints if joint.type == "prismatic" and joint.name in carried
             and MAX_TRAVEL < joint.upper - joint.lower < UNLIMITED]
    if not found:
        return []
    worst = max(found, key=lambda joint: joint.upper - joint.lower)
    text = (f"position limits of {_named('joint', found)} allow a travel of {worst.upper - worst.lower:.4g} m "
            f"('{worst.name}'), more than {MAX_TRAVEL:g} m: are they in mm? URDF requires m")
    return [ModelWarning("position_limit", text)]


def _reach(bodies: Sequence[TreeBody]) -> tuple[float, float]:
    """Return (reach, extent): the largest distance along the joints from the origin of the root to a centre of mass [m].

    The extent includes the centre of mass of the root.
    """
    along = [0.0]
    for body in bodies[1:]:
        along.append(along[body.parent] + float(np.linalg.norm(body.P)))
    ends = [distance + (float(np.linalg.norm(body.ms)) / body.m if body.m > 0.0 else 0.0)
            for distance, body in zip(along, bodies, strict=True)]
    return max(ends[1:], default=0.0), max(ends)


def _missing_masses(bodies: Sequence[TreeBody], shaped: Collection[str]) -> list[ModelWarning]:
    """Check the mass of moving bodies with a shape. Massless links without a shape only connect joints."""
    found = [body for body in bodies[1:] if body.m == 0.0 and body.name in shaped]
    text = f"no mass in {_named('link', found)}, which moves and has a shape: torques lack its weight and inertia"
    return [ModelWarning("missing_mass", f"{text}. Add <inertial>")] if found else []


def _total_mass(moving: Sequence[TreeBody], mass: float, reach: float) -> list[ModelWarning]:
    size = reach + 2.0 * max(_gyration(body) for body in moving)
    text = (f"the moving links have a mass of {mass:.5g} kg within {size:.3g} m of the root link: are masses in grams? "
            "URDF requires kg")
    return [ModelWarning("total_mass", text)] if mass > MAX_MEAN_DENSITY * UNIT_BALL_VOLUME * size**3 else []


def _large_inertias(moving: Sequence[TreeBody], mass: float, extent: float) -> list[ModelWarning]:
    found = [body for body in moving if body.m >= LIGHT_SHARE * mass and _gyration(body) > MAX_GYRATION_RATIO * extent > 0.0]
    if not found:
        return []
    worst = max(found, key=_gyration)
    text = (f"inertia of {_named('link', found)} is too large: '{worst.name}' ({worst.m:.4g} kg) has a radius of gyration "
            f"of {_gyration(worst):.4g} m, while the whole robot reaches {extent:.3g} m. Is it in kg mm^2 or g mm^2? URDF "
            "requires kg m^2")
    return [ModelWarning("inertia_too_large", text)]


def _small_inertias(moving: Sequence[TreeBody], mass: float) -> list[ModelWarning]:
    found = [body for body in moving if body.m >= LIGHT_SHARE * mass and float(_moments(body).sum()) < _least_trace(body.m)]
    if not found:
        return []
    worst = max(found, key=lambda body: body.m)
    text = (f"inertia of {_named('link', found)} is too small: the largest moment of '{worst.name}' ({worst.m:.4g} kg) is "
            f"{_moments(worst)[-1]:.3g} kg m^2, less than that of a ball of the densest metal. Is the inertia missing or in "
            "other units, or the mass in grams? URDF requires kg m^2 and kg")
    return [ModelWarning("inertia_too_small", text)]


def _placeholders(moving: Sequence[TreeBody]) -> list[ModelWarning]:
    """Check for placeholders: more than half of the links have the same mass and the same moment about every axis."""
    heavy = [body for body in moving if body.m > 0.0]
    groups: dict[tuple[str, str], list[TreeBody]] = {}
    for body in heavy:
        least, _, largest = _moments(body)
        if largest - least <= EQUALITY_TOL * largest and largest > 0.0:
            groups.setdefault((f"{body.m:.5g}", f"{largest:.5g}"), []).append(body)
    for (mass, moment), found in groups.items():
        if len(found) >= MIN_PLACEHOLDERS and 2 * len(found) > len(heavy):
            text = (f"{_named('link', found)} have the same mass of {mass} kg and the same moment of inertia of {moment} "
                    "kg m^2 about every axis: placeholders of a URDF made for display and planning? Replace <inertial> with "
                    "values from CAD or the data sheet")
            return [ModelWarning("placeholder", text)]
    return []


def _least_trace(mass: float) -> float:
    """Return the trace of the inertia of a ball of the densest metal, 3 * 2/5 m r^2 [kg m^2]."""
    return 1.2 * mass * (mass / (UNIT_BALL_VOLUME * MAX_DENSITY)) ** (2.0 / 3.0)


def _gyration(body: TreeBody) -> float:
    """Return the largest radius of gyration about the centre of mass [m]."""
    return math.sqrt(max(float(_moments(body)[-1]), 0.0) / body.m) if body.m > 0.0 else 0.0


def _moments(body: TreeBody) -> np.ndarray:
    """Return the principal moments of inertia about the centre of mass [kg m^2]."""
    c = body.ms / body.m
    return np.linalg.eigvalsh(body.J - body.m * ((c @ c) * np.eye(3) - np.outer(c, c)))


def _named(kind: str, found: Sequence[Joint | TreeBody]) -> str:
    return f"{kind}{'s' if len(found) > 1 else ''} {some([one.name for one in found], 8, quoted=True)}"
