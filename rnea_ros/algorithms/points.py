"""Where points of the links are, and how joints move them: positions and Jacobians in frame 0.

A revolute joint turns what lies beyond it about its axis, v = z x (p - o); a prismatic one shifts it along, v = z.
"""

from __future__ import annotations

import numpy as np

from .. import mdh
from ..model import NO_COORDINATE
from ..vectors import ZERO, cross
from .closed_loops import base_poses


def points(model, places, q):
    """Positions (m, 3) and Jacobians (m, 6, n), linear rows first; any scalar. places: [(link number, P (3,) in its frame)]"""
    poses = base_poses(model, q)
    positions = [poses[k][1] + poses[k][0] @ P for k, P in places]
    found = [_jacobian(model, poses, k, p) for (k, _), p in zip(places, positions)]
    return np.array(positions).reshape(len(places), 3), np.array(found).reshape(len(places), 6, model.n)


def _jacobian(model, poses, k, p):
    """(6, n) of the point at p on link k."""
    columns = [np.zeros(6)] * model.n
    while k:
        link, (R, o) = model.links[k], poses[k]
        if link.coordinate != NO_COORDINATE:
            z = R[:, 2]
            moved = np.concatenate((z, ZERO) if link.sigma == mdh.PRISMATIC else (cross(z, p - o), z))
            columns[link.coordinate] = columns[link.coordinate] + moved * link.multiplier
        k = link.parent
    return np.array(columns).T
