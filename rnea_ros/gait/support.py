"""Who bears the floor's force while the right leg is the stance leg, and what constraints ask of points; any scalar.

Double support stands on the middle of the left toes and on the right heel.
"""

from __future__ import annotations

import numpy as np

from . import ground
from .walker import Support


def single_support(F, M, ankle, ball):
    return ground.on_links(ground.Load(F, M), ankle, ball)


def double_support(F, M, ankle, ball, rear_ankle, rear_ball, rear_tip, heel):
    both = _between(F, M, rear_ball, rear_tip, heel)
    return np.concatenate((ground.on_links(both.front, ankle, ball), ground.on_links(both.rear, rear_ankle, rear_ball)))


def _between(F, M, ball, tip, heel):
    return ground.shared(F, M, (ball + tip) * 0.5, heel)


SINGLE = Support("single support", single_support, ("right_ankle", "right_ball"), ("right_foot", "right_toes"))
DOUBLE = Support("double support", double_support,
                 (*SINGLE.points, "left_ankle", "left_ball", "left_toe_tip", "right_heel"),
                 (*SINGLE.links, "left_foot", "left_toes"))


def between_feet(F, M, ball, tip, heel):
    """Share of the front foot, and how far the zero-moment point lies aside."""
    both = _between(F, M, ball, tip, heel)
    return [both.share, both.aside]


def share_of_front(F, M, ball, tip, heel):
    return [_between(F, M, ball, tip, heel).share]


def forces(F, M, ball, tip, heel):
    """(12,): F and M of the front foot and of the rear one."""
    both = _between(F, M, ball, tip, heel)
    return np.concatenate((both.front.F, both.front.M, both.rear.F, both.rear.M))


BETWEEN = DOUBLE.points[3:]


def place(point):
    return point


def standing_ball(inner, outer, tip):
    """Middle of the ball, its tilt, height of the tip."""
    return [*((inner + outer) * 0.5), inner[2] - outer[2], tip[2]]


def heights(*points):
    return [point[2] for point in points]


def swing_together(shoulder, wrist, hip, ankle):
    return [(wrist - shoulder)[0] * (ankle - hip)[0]]


def distance_squared(a, b):
    return [np.dot(a - b, a - b)]
