"""Where loops are cut: both frames of each cut joint, which lie upon each other while the loops are closed."""

from __future__ import annotations

import numpy as np
from visualization_msgs.msg import Marker

from rnea_ros.algorithms.closed_loops import Cut
from rnea_ros.model.tree import Frame, Model
from rnea_ros.nodes.dynamics.marks.shapes import SKY, VERMILLION, colour, marker

ENDS = ((SKY, 0.12), (VERMILLION, 0.09))  # of the first and the second frame: colour, share of the size


def cut_marks(cuts: tuple[Cut, ...], model: Model, size: float) -> list[Marker]:
    """Spheres. Those on a platform are left out: its frames are in no tree."""
    found = []
    for k, cut in enumerate(cuts):
        for end, frame, (shade, share) in zip((0, 1), (cut.first, cut.second), ENDS):
            if frame.link >= 0:
                found.append(_sphere(2 * k + end, model, frame, share * size, shade))
    return found


def _sphere(number: int, model: Model, frame: Frame, size: float, shade: tuple[float, float, float]) -> Marker:
    """Its place in the frame of a URDF link that is fixed in the same link of the model."""
    name, own = next((name, own) for name, own in model.frames.items() if own.link == frame.link)
    made = marker("cut_joint", number, Marker.SPHERE, name, size, colour(shade, 0.7))
    x, y, z = np.asarray(own.R.T @ (frame.P - own.P), dtype=float).tolist()
    p = made.pose.position
    p.x, p.y, p.z = x, y, z
    return made
