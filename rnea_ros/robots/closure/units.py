"""What counts as one in loop equations: lengths and angles are compared, so a machine needs a length of its own.

It is the longest lever with which a joint that turns moves a cut joint. Where only slides move them there is none but what
rounding leaves; then it is how far apart the parts of the loops are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ...algorithms.closed_loops import Cut
from ...algorithms.kinematics import base_poses, within
from ...model.tree import Model

DUST = 1e-9  # of how far from the root the machine is: a shorter lever is what rounding leaves
ELSEWHERE = 8  # further poses that are looked at: at the first one an axis may go through the cut joint by chance


class Units(NamedTuple):
    """What counts as one: for every equation, and for every unknown."""

    equations: np.ndarray
    unknowns: np.ndarray

    def length(self, change: np.ndarray) -> float:
        """The largest change of an unknown."""
        return max(map(abs, (change / self.unknowns).tolist()), default=0.0)  # they are few: sooner done than by numpy


def length_unit(model: Model, cuts: Iterable[Cut], start: np.ndarray, levers: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return it in metres. levers: at a pose (n,) of all joints."""
    poses = base_poses(model, start)
    ends = [frame for cut in cuts for frame in (cut.first, cut.second)]
    between = _between(model, cuts)
    frames = [*ends, *(frame for frame in model.frames.values() if frame.link in between)]
    points = np.array([within(poses[frame.link], (frame.R, frame.P))[1] for frame in frames])
    reach, spread = np.abs(points).max(initial=0.0), np.ptp(points, axis=0).max(initial=0.0)
    rng, slides = np.random.default_rng(0), np.array([joint.type == "prismatic" for joint in model.joints])
    elsewhere = start + np.where(slides, spread, 1.0) * rng.normal(size=(ELSEWHERE, model.n))
    lever = max(float(np.abs(levers(q)).max(initial=0.0)) for q in (start, *elsewhere))
    return next((float(length) for length in (lever, spread) if length > DUST * reach), 1.0)


def _between(model: Model, cuts: Iterable[Cut]) -> set[int]:
    """Numbers of the links between the two frames of a cut joint: those that move one against the other."""
    return {k for cut in cuts for k in _way(model, cut.first.link) ^ _way(model, cut.second.link)}


def _way(model: Model, number: int) -> set[int]:
    """Links from one to the root, which does not count."""
    found = set()
    while number > 0:
        found.add(number)
        number = model.links[number].parent
    return found
