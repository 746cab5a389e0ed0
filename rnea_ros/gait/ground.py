"""Ground reaction: what the floor must supply, found first, given to the feet after (thesis, section 5.1; Xiang et al. 2009).

Active step: the motion without any load at the feet needs a force F and a moment M about the world's origin at its root.
Passive step: the feet bear them, and nothing is left at the root. The floor is z = 0; it presses and rubs, so F and M are
those of F at the zero-moment point, which is the centre of pressure, and a moment about the vertical:

    M = r x F + T e_z,   r = (-M_y / F_z, M_x / F_z, 0)

In single support the stance foot bears all. In double support the load is shared in proportion to where the zero-moment point
lies between a point A of the rear foot and a point B of the front foot:

    share = (r - A).(B - A) / |B - A|^2,   C = M - (A + share (B - A)) x F
    front: share (F, B x F + C),   rear: (1 - share) (F, A x F + C)

Both add up to (F, M) whatever the share. The published method measures distances from the zero-moment point to the feet.

A foot is two links. The toes bear what lies ahead of their joint: the moment of the foot's load about it, as far as it bends
the toes up; rounded off near zero, for it must have a slope. Functions of any scalar.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import cross

ROUND = 0.01  # [m]
TOUCH = 0.1  # [N m], keeps the root away from zero where a foot bears nothing


class Load(NamedTuple):
    """Of one foot: F and M (3,) about the world's origin, exerted by the floor on the foot."""

    F: Any
    M: Any


class Shared(NamedTuple):
    """front, rear: the loads; share: of the front foot; aside: of the zero-moment point to the left of the line A B [m]."""

    front: Load
    rear: Load
    share: Any
    aside: Any


def zero_moment_point(F, M):
    """(x, y) [m]."""
    return np.array([-M[1] / F[2], M[0] / F[2]])


def shared(F, M, A, B):
    """Double support."""
    A, B = (np.array([p[0], p[1], p[2] * 0.0]) for p in (A, B))
    r, d = zero_moment_point(F, M) - A[:2], (B - A)[:2]
    square = d[0] * d[0] + d[1] * d[1]
    share = (r[0] * d[0] + r[1] * d[1]) / square
    C = M - cross(A + (B - A) * share, F)
    rest = 1.0 - share
    return Shared(Load(F * share, (cross(B, F) + C) * share), Load(F * rest, (cross(A, F) + C) * rest), share,
                  (d[0] * r[1] - d[1] * r[0]) / np.sqrt(square))


def on_links(load, ankle, ball):
    """(12,): the wrench on the foot about the ankle, and that on the toes about their joint, the ball; force first."""
    bend = -(load.M - cross(ball, load.F))[1]  # about the axis to the right: pressure ahead of the ball is positive
    lever = load.F[2] * ROUND
    couple = np.array([0.0, -0.5, 0.0]) * (bend + np.sqrt(bend * bend + lever * lever + TOUCH**2))
    none = load.F * 0.0
    return np.concatenate((load.F, load.M - cross(ankle, load.F) - couple, none, couple))
