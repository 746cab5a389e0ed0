"""A wrench as marks: an arrow for the force, one round its axis for the moment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros.nodes.dynamics.marks.shapes import STEPS, along, around, colour, marker

HEAD = 4  # steps that the moment's head is long
CIRCLE = 0.75  # of one: a moment that counts one
SEEN, MOST = 1e-3, 1.5  # shares, roots taken, below which nothing is shown and above which nothing grows


class WrenchMark:
    """Sizes grow with the root of the wrench, so that a push of the hand is seen beside the robot's weight."""

    def __init__(self, namespace: str, number: int, frame: str, size: float, one: Sequence[float], shade: Sequence[float]):
        """size: of an arrow [m] for a force and a moment that count `one` [N, N m]."""
        self._size, self._one = size, np.array(one)
        own = colour(shade)
        self._force, self._head = (marker(namespace, 3 * number + k, Marker.ARROW, frame, 0.04 * size, own) for k in (0, 1))
        self._turn = marker(namespace, 3 * number + 2, Marker.LINE_STRIP, frame, 0.04 * size, own)
        self.marks = [self._force, self._head, self._turn]

    def fill(self, wrench: np.ndarray) -> None:
        """wrench (6,), NaN where unknown: no mark."""
        sizes = np.array([np.linalg.norm(wrench[:3]), np.linalg.norm(wrench[3:])])
        share = np.minimum(np.sqrt(sizes / self._one), MOST)
        shown = share > SEEN
        for mark, there in ((self._force, shown[0]), (self._head, shown[1]), (self._turn, shown[1])):
            mark.action = Marker.ADD if there else Marker.DELETE
        if shown[0]:
            ends = along(wrench[:3] / sizes[0], self._size * share[0])
            self._force.points = [ends[0], ends[-1]]
        if shown[1]:
            ring = around(wrench[3:] / sizes[1], 1.0, 0.5 * self._size)
            end = max(HEAD + 1, round(min(CIRCLE * share[1], 0.95) * STEPS))
            self._turn.points = ring[:end - HEAD + 1]
            self._head.points = [ring[end - HEAD], ring[end]]
