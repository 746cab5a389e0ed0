"""A wrench as marks: an arrow for the force, one round its axis for the moment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros.nodes.dynamics.marks.shapes import STEPS, along, around, colour, marker

HEAD = 4  # steps that the moment's head is long
MOST = 0.9  # of a circle: the largest moment
FADE = 0.997  # each time: what counts as the largest fades by half in 20 s


class WrenchMark:
    """As long as the longest force lately, which is `size` [m] long; the same of moments, apart."""

    def __init__(self, namespace: str, number: int, frame: str, size: float, shade: Sequence[float]):
        self._size, self._largest = size, np.zeros(2)
        own = colour(shade)
        self._force, self._head = (marker(namespace, 3 * number + k, Marker.ARROW, frame, 0.04 * size, own) for k in (0, 1))
        self._turn = marker(namespace, 3 * number + 2, Marker.LINE_STRIP, frame, 0.04 * size, own)
        self.marks = [self._force, self._head, self._turn]

    def fill(self, wrench: np.ndarray) -> None:
        """wrench (6,), NaN where unknown: no mark."""
        sizes = np.array([np.linalg.norm(wrench[:3]), np.linalg.norm(wrench[3:])])
        self._largest = np.fmax(FADE * self._largest, sizes)
        shown = sizes > 1e-3 * self._largest
        for mark, there in ((self._force, shown[0]), (self._head, shown[1]), (self._turn, shown[1])):
            mark.action = Marker.ADD if there else Marker.DELETE
        share = sizes / np.where(self._largest > 0.0, self._largest, 1.0)
        if shown[0]:
            ends = along(wrench[:3] / sizes[0], self._size * share[0])
            self._force.points = [ends[0], ends[-1]]
        if shown[1]:
            ring = around(wrench[3:] / sizes[1], 1.0, 0.5 * self._size)
            end = max(HEAD + 1, round(MOST * share[1] * STEPS))
            self._turn.points = ring[:end - HEAD + 1]
            self._head.points = [ring[end - HEAD], ring[end]]
