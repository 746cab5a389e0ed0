"""Characteristic length of loop equations, by which lengths and angles are compared.

It is the longest lever with which a revolute joint moves a cut joint. If only prismatic joints move them, it is the size of
the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from ...algorithms.closed_loops import Cut
from ...algorithms.kinematics import base_poses, within
from ...model.tree import Model

MIN_LEVER_RATIO = 1e-9  # of the distance of the machine from the root: a shorter lever is a rounding error
N_TRIAL_POSES = 8  # further poses: at the first one an axis may pass through the cut joint by chance


class Units(NamedTuple):
    """Unit of every equation and of every unknown."""

    equations: np.ndarray
    unknowns: np.ndarray

    def length(self, change: np.ndarray) -> float:
        """Return the largest change of an unknown, in units."""
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
    elsewhere = start + np.where(slides, spread, 1.0) * rng.normal(size=(N_TRIAL_POSES, model.n))
    lever = max(float(np.abs(levers(q)).max(initial=0.0)) for q in (start, *elsewhere))
    return next((float(length) for length in (lever, spread) if length > MIN_LEVER_RATIO * reach), 1.0)


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
