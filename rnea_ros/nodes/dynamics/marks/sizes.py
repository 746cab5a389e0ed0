"""How large marks are: as the links beside them are long, and as their mass is bulky: seen on a finger and on a crane, and
outside of the link's shape, which is in no model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from rnea_ros.model import mdh
from rnea_ros.model.tree import Frame, Model

OF_LINK, OF_BULK = 0.9, 1.7  # a mark's size: that share of the longer of its two links, or of the cube that weighs as much
DENSITY = 2000.0  # kg/m^3; of motors, gears and hollow shells together
LEAST, MOST = 0.02, 0.2  # of the reach
ALONE = 0.2  # m; where no link has a length


def _places(model: Model) -> list[np.ndarray]:
    """Of each link's URDF origin in its own frame; a frame of the model may be anywhere along the axis."""
    named: Mapping[str, Frame] = model.frames
    return [named[link.name].P if link.name in named else np.zeros(3) for link in model.links]


def reach(model: Model) -> float:
    """The longest way from the root link to a tip, joint by joint, at zero [m]."""
    return float(_ways(model)[1].max()) or ALONE


def _ways(model: Model) -> tuple[np.ndarray, np.ndarray]:
    """From each link's origin: to that of its antecedent, and along the tree to that of the root [m]."""
    places, steps, ways = _places(model), np.zeros(len(model.links)), np.zeros(len(model.links))
    for j, link in enumerate(model.links[1:], 1):
        R, p = mdh.pose(link, 0.0)
        steps[j] = np.linalg.norm(p + R @ places[j] - places[link.parent])
        ways[j] = ways[link.parent] + steps[j]
    return steps, ways


def tip(model: Model) -> str:
    """The URDF link whose frame is at the end of the longest way from the root, as `reach` has it."""
    places, (_, ways) = _places(model), _ways(model)
    return max(model.frames, key=lambda name: ways[(f := model.frames[name]).link] + np.linalg.norm(f.P - places[f.link]))


def lengths(model: Model) -> np.ndarray:
    """Of each link: from its origin to the farthest frame that it carries, or twice as far as its mass centre [m]."""
    places, (steps, _) = _places(model), _ways(model)
    found = np.zeros(len(model.links))
    for j, link in enumerate(model.links):
        found[link.parent] = max(found[link.parent], steps[j])
        if link.m > 0.0:
            found[j] = max(found[j], 2.0 * np.linalg.norm(link.ms / link.m - places[j]))
    for frame in model.frames.values():
        found[frame.link] = max(found[frame.link], np.linalg.norm(frame.P - places[frame.link]))
    return found


def sizes(model: Model) -> np.ndarray:
    """Of the mark of each link's joint [m]."""
    long, far = lengths(model), reach(model)
    beside = np.array([max(long[j], long[link.parent]) for j, link in enumerate(model.links)])
    bulk = np.cbrt([link.m / DENSITY for link in model.links])
    return np.clip(np.maximum(OF_LINK * beside, OF_BULK * bulk), LEAST * far, MOST * far)
