"""Whether a path can be moved along at all: can the robot rest on it, and does anything bound its acceleration?"""

from __future__ import annotations

import numpy as np

from ..errors import InputError, some
from .terms import Constraints, shares

LOOKS = 201  # along the path, for what bounds acceleration
MOVES = 1e-9  # of the way along the path, by a joint that moves
INSTANT = 1e-7  # s; nothing does where limits let a motion have its whole way behind it within that


def check_rest(constraints: Constraints, level: float = 1.0, start: float = 0.0) -> None:
    """InputError if the robot cannot rest somewhere on the path from s = start on: no time law exists then."""
    length, breaks = constraints.path.length, constraints.path.breaks
    s = np.unique(np.concatenate((np.linspace(start, length, 1001), breaks[breaks > start])))
    held = shares(constraints(s)[:, 0], constraints.offset)
    where, row = np.unravel_index(int(held.argmax()), held.shape)
    if held[where, row] >= level:
        joint = constraints.labels[row][0]
        limit = constraints.limits.effort[joint]
        if row >= constraints.own:
            raise InputError(f"gravity alone takes {held[where, row]:.4g} times the {constraints.describe(int(row))} at s = "
                             f"{s[where]:.4g} of {constraints.path.length:.4g} on the path: no speed is slow enough")
        raise InputError(f"gravity alone takes {held[where, row] * limit:.4g} of the {limit:.4g} N m (N) of "
                         f"{constraints.joint_names[joint]} at s = {s[where]:.4g} of {length:.4g} on the path: "
                         "no speed is slow enough")


def check_bounded(constraints: Constraints, start: float, end: float) -> None:
    """InputError if nothing bounds the acceleration somewhere between start and end: the motion would jump to speed."""
    if not constraints.second_order:
        raise InputError("only velocity limits are known: the fastest motion would jump to speed; give limits of effort or "
                         "acceleration")
    s, way = np.linspace(start, end, LOOKS), end - start
    acceleration, jerk = (np.abs(constraints(s)[:, k]).max(axis=1) for k in (3, 6))
    free = np.maximum(np.sqrt(way * acceleration), np.cbrt(way * jerk)) < INSTANT
    along = np.flatnonzero(free[:-1] & free[1:])
    if len(along):
        a, b = along[0], along[-1] + 1
        moves = np.abs(constraints.path(s[along])[1]).max(axis=0) > MOVES
        joints = some(name for name, moving in zip(constraints.joint_names, moves) if moving)
        raise InputError(f"nothing bounds the acceleration from s = {s[a]:.4g} to {s[b]:.4g} of {constraints.path.length:.4g} "
                         f"on the path: what moves there ({joints}) has no mass, or no known limits of effort and "
                         "acceleration; give limits of acceleration")
