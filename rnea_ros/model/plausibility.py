"""Plausibility of a model's masses, lengths and limits: numbers that no robot has, with their likely cause and the remedy.

Works on the bodies of a URDF with fixed links merged. Every threshold is far from real robots (checked on the makers' files of
more than eighty robots) and near to none of the usual mistakes, which are wrong by a factor of 57 (degrees) or 1000 (mm, g).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from ..errors import ModelWarning, some
from .frames import TreeBody
from .tree import Joint

LONGEST_REACH = 50.0  # m; the longest arms on trucks and in space have 20 to 60 m
LARGEST_ANGLE = 4.0 * math.pi  # rad; limits of wrists with two turns either way are real
LONGEST_TRAVEL = 50.0  # m; of a prismatic joint
BALL = 4.0 / 3.0 * math.pi  # volume of the unit ball
UNLIMITED = 1e5  # rad, m; larger limits stand for none
LARGEST_MEAN_DENSITY = 500.0  # kg/m^3; mass of the robot in a ball of its reach. Real robots have less than 10
DENSEST = 22_600.0  # kg/m^3; osmium. No body of a given mass has less inertia than a ball of this density
LARGEST_GYRATION = 5.0  # radius of gyration of a body, in reaches of the robot
FEWEST_PLACEHOLDERS = 3  # links of equal mass and equal moments of inertia that are not measured values
EQUAL = 1e-6  # relative difference of masses or moments that count as equal
LIGHT = 0.01  # share of the total mass below which the inertia of a body is not checked
IMPLAUSIBLE = ("massless", "missing_mass", "total_mass", "reach", "position_limit", "inertia_too_large", "inertia_too_small",
               "placeholder")
# Kinds of warnings about what has no effect on the computed numbers
NOTES = ("unknown_attribute", "ignored_mimic", "unknown_limit", "held_base", "renamed_joints")
OTHERS = ("triangle_inequality", "negative_inertia", "inertia_without_mass", "misspelt_attribute", "later_attribute",
          "ignored_limit",
          "quaternion_length", "ignored_mass", "negative_friction", "no_inertia", "motor_constants")
ACCEPTABLE = tuple(sorted({*IMPLAUSIBLE, *OTHERS, *NOTES} - {"massless"}))  # of a massless robot all torques are zero


def implausible(found: Iterable[str]) -> list[str]:
    """Return those of a model's warnings after which torques are most likely wrong."""
    return [warning for warning in found if getattr(warning, "name", "") in IMPLAUSIBLE]


def warnings(bodies: Sequence[TreeBody], joints: Sequence[Joint], shaped: Collection[str],
             free_base: bool = False) -> list[ModelWarning]:
    """Return warnings about bodies (the root first) and joints.

    shaped    : names of bodies with a <visual> or <collision>
    free_base : whether the root moves too
    """
    moving = [*bodies] if free_base else [*bodies[1:]]
    found = [*_angle_limits(joints), *_travel_limits(bodies, joints)]
    reach, extent = _reach(bodies)
    if reach > LONGEST_REACH:
        text = f"the robot reaches {reach:.4g} m from its root link, more than {LONGEST_REACH:g} m: are its lengths in mm?"
        found.append(ModelWarning("reach", f"{text} URDF has m"))
    mass = sum(body.m for body in moving)
    if mass > 0.0:
        heavy = _total_mass(moving, mass, reach)
        inertias = [*_large_inertias(moving, mass, extent), *([] if heavy else _small_inertias(moving, mass))]
        return [*found, *_missing_masses(bodies, shaped), *heavy, *inertias, *_placeholders(moving)]
    if len(bodies) > 1:
        found.insert(0, ModelWarning("massless", "no link that moves has a mass: gravity and inertia are zero in all "
                                     "torques. Such URDFs are made for drawing and planning; add <inertial> to "
                                     "the links, from CAD or the data sheet"))
    return found


def _angle_limits(joints: Sequence[Joint]) -> list[ModelWarning]:
    found = [joint for joint in joints if joint.type == "revolute" and _largest(joint) > LARGEST_ANGLE]
    if not found:
        return []
    worst = max(found, key=_largest)
    text = (f"position limits of {_named('joint', found)} reach {_largest(worst):.4g} rad ('{worst.name}'), more than two "
            "turns: are they in degrees? URDF has rad; a joint without limits has type=\"continuous\"")
    return [ModelWarning("position_limit", text)]


def _largest(joint: Joint) -> float:
    """Return the largest angle of a joint; 0 where its limits are unknown or stand for none."""
    angle = float(np.nan_to_num(max(abs(joint.lower), abs(joint.upper))))
    return angle if angle < UNLIMITED else 0.0


def _travel_limits(bodies: Sequence[TreeBody], joints: Sequence[Joint]) -> list[ModelWarning]:
    """Check prismatic joints that a body with mass carries; others may be the coordinates of a mobile base."""
    carrying = [bodies[0].m > 0.0]
    for body in bodies[1:]:
        carrying.append(carrying[body.parent] or body.m > 0.0)
    carried = {body.joint for body in bodies[1:] if carrying[body.parent]}
    found = [joint for joint in joints if joint.type == "prismatic" and joint.name in carried
             and LONGEST_TRAVEL < joint.upper - joint.lower < UNLIMITED]
    if not found:
        return []
    worst = max(found, key=lambda joint: joint.upper - joint.lower)
    text = (f"position limits of {_named('joint', found)} allow a travel of {worst.upper - worst.lower:.4g} m "
            f"('{worst.name}'), more than {LONGEST_TRAVEL:g} m: are they in mm? URDF has m")
    return [ModelWarning("position_limit", text)]


def _reach(bodies: Sequence[TreeBody]) -> tuple[float, float]:
    """Return the largest distance along the joints from the root's origin to a joint or centre of mass [m].

    The second number includes the centre of mass of the root.
    """
    along = [0.0]
    for body in bodies[1:]:
        along.append(along[body.parent] + float(np.linalg.norm(body.P)))
    ends = [distance + (float(np.linalg.norm(body.ms)) / body.m if body.m > 0.0 else 0.0)
            for distance, body in zip(along, bodies, strict=True)]
    return max(ends[1:], default=0.0), max(ends)


def _missing_masses(bodies: Sequence[TreeBody], shaped: Collection[str]) -> list[ModelWarning]:
    """Check bodies that move and have a shape. Massless links without a shape only connect joints."""
    found = [body for body in bodies[1:] if body.m == 0.0 and body.name in shaped]
    text = f"no mass in {_named('link', found)}, which moves and has a shape: torques lack its weight and inertia"
    return [ModelWarning("missing_mass", f"{text}. Add <inertial>")] if found else []


def _total_mass(moving: Sequence[TreeBody], mass: float, reach: float) -> list[ModelWarning]:
    size = reach + 2.0 * max(_gyration(body) for body in moving)
    text = (f"the links that move have a mass of {mass:.5g} kg within {size:.3g} m of the root link: are masses in grams? "
            "URDF has kg")
    return [ModelWarning("total_mass", text)] if mass > LARGEST_MEAN_DENSITY * BALL * size**3 else []


def _large_inertias(moving: Sequence[TreeBody], mass: float, extent: float) -> list[ModelWarning]:
    found = [body for body in moving if body.m >= LIGHT * mass and _gyration(body) > LARGEST_GYRATION * extent > 0.0]
    if not found:
        return []
    worst = max(found, key=_gyration)
    text = (f"inertia of {_named('link', found)} is too large: {worst.m:.4g} kg of '{worst.name}' have a radius of gyration "
            f"of {_gyration(worst):.4g} m, while the whole robot reaches {extent:.3g} m. Is it in kg mm^2 or g mm^2? URDF has "
            "kg m^2")
    return [ModelWarning("inertia_too_large", text)]


def _small_inertias(moving: Sequence[TreeBody], mass: float) -> list[ModelWarning]:
    found = [body for body in moving if body.m >= LIGHT * mass and float(_moments(body).sum()) < _least_trace(body.m)]
    if not found:
        return []
    worst = max(found, key=lambda body: body.m)
    text = (f"inertia of {_named('link', found)} is too small: {worst.m:.4g} kg of '{worst.name}' have a largest moment of "
            f"{_moments(worst)[-1]:.3g} kg m^2, less than a ball of the densest metal. Is the inertia left out or in other "
            "units, or the mass in grams? URDF has kg m^2 and kg")
    return [ModelWarning("inertia_too_small", text)]


def _placeholders(moving: Sequence[TreeBody]) -> list[ModelWarning]:
    """Check for links whose mass and inertia were copied: more than half have one mass, and one moment about every axis."""
    heavy = [body for body in moving if body.m > 0.0]
    alike: dict[tuple[str, str], list[TreeBody]] = {}
    for body in heavy:
        least, _, largest = _moments(body)
        if largest - least <= EQUAL * largest and largest > 0.0:
            alike.setdefault((f"{body.m:.5g}", f"{largest:.5g}"), []).append(body)
    for (mass, moment), found in alike.items():
        if len(found) >= FEWEST_PLACEHOLDERS and 2 * len(found) > len(heavy):
            text = (f"{_named('link', found)} have the same mass of {mass} kg and the same moment of inertia of {moment} "
                    "kg m^2 about every axis: placeholders of a URDF made for drawing and planning? Replace <inertial> by "
                    "values from CAD or the data sheet")
            return [ModelWarning("placeholder", text)]
    return []


def _least_trace(mass: float) -> float:
    """Return the trace of the inertia of a ball of the densest metal, 3 * 2/5 m r^2 [kg m^2]."""
    return 1.2 * mass * (mass / (BALL * DENSEST)) ** (2.0 / 3.0)


def _gyration(body: TreeBody) -> float:
    """Return the largest radius of gyration about the centre of mass [m]."""
    return math.sqrt(max(float(_moments(body)[-1]), 0.0) / body.m) if body.m > 0.0 else 0.0


def _moments(body: TreeBody) -> np.ndarray:
    """Return the principal moments of inertia about the centre of mass [kg m^2]."""
    c = body.ms / body.m
    return np.linalg.eigvalsh(body.J - body.m * ((c @ c) * np.eye(3) - np.outer(c, c)))


def _named(kind: str, found: Sequence[Joint | TreeBody]) -> str:
    return f"{kind}{'s' if len(found) > 1 else ''} {some([one.name for one in found], 8, quoted=True)}"
