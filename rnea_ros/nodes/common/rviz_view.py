"""From where RViz looks at a robot for the first time: at the middle of what its links reach, as far away as that is large.
The grid is the floor below all that.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from rnea_ros import AnyRobot, RneaError, load
from rnea_ros.algorithms.kinematics import base_poses, within
from rnea_ros.robots import kinds
from rnea_ros.robots.general import GeneralRobot

SWING, SLIDE, LITTLE = 1.0, 3.0, 0.3  # rad, m: how far a joint moves away, at most; on loops
SPREAD = 1.25  # what is seen, by what is reached: links have a thickness
HALF_ANGLE = np.pi / 8  # of what RViz sees, upwards: Ogre's 45 degrees in all


class View(NamedTuple):
    """What RViz's orbit looks at (3,), in the frame of the root link, from how far, and where the floor is [m]."""

    focus: np.ndarray
    distance: float
    floor: float


def view(robot: AnyRobot) -> View:
    """Of all URDF frames and links while every joint alone goes as far from zero as it may; closed loops a little about
    where they are closed."""
    model = kinds.tree(robot).model
    start, swing, slide = np.zeros(model.n), SWING, SLIDE
    if isinstance(robot, GeneralRobot) and robot.loops:
        start, swing, slide = robot.start, LITTLE, LITTLE
    far = np.array([slide if joint.type == "prismatic" else swing for joint in model.joints])
    lower, upper = np.fmax(model.limits.lower, start - far), np.fmin(model.limits.upper, start + far)
    middle = np.clip(start, lower, upper)
    ends = [np.where(one, end, middle) for one in np.eye(model.n, dtype=bool) for end in (lower, upper)]
    marked = [(frame.link, frame.P) for frame in model.frames.values()]
    marked += [(j, 2.0 * link.ms / link.m) for j, link in enumerate(model.links) if link.m]  # about where it ends
    places = np.array([within(poses[j], (np.eye(3), place))[1]
                       for poses in (base_poses(model, q) for q in (middle, *ends)) for j, place in marked])
    low, high = places.min(axis=0), places.max(axis=0)
    radius = 0.5 * float(np.linalg.norm(high - low)) or 0.5
    return View(0.5 * (low + high), SPREAD * radius / np.tan(HALF_ANGLE), min(0.0, float(low[2])))


def aimed(config: str, description: str, robot_file: str | None = None) -> str:
    """The text of an RViz configuration, whose view is that of a robot; as it is where URDF or robot file cannot be used,
    which the nodes will tell."""
    try:
        found = view(load(description, robot_file, backend="reference"))
    except RneaError:
        return config
    numbers = [("Current", "Distance", found.distance), ("Offset", "Z", found.floor),
               *(("Focal Point", axis, value) for axis, value in zip("XYZ", found.focus))]
    for part, name, value in numbers:
        config = re.sub(rf"(\b{part}:(?:.*\n)*?\s+{name}: )\S+", rf"\g<1>{value:.3g}", config, count=1)
    return config
