"""Masses, lengths and inertias of the segments of the human body: P. de Leva, J. Biomechanics 29 (1996) 1223-1230.

Segments lie between joint centres, or between cervicale (C7), xiphion, omphalion and the middle of the hips. Mass as a share
of the body's, length of the mean subject, mass centre from the proximal end and radii of gyration as shares of the length.
Laid end to end on a foot, the lengths are 2 % longer than the stature of the mean man: kept as published.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ..algebra.vectors import shift
from ..errors import InputError


class SegmentData(NamedTuple):
    """length [m] of the mean subject; radii about the sagittal (forward), transverse (sideways) and longitudinal axis."""

    mass: float
    length: float
    centre: float
    radii: tuple[float, float, float]


STATURE = {"male": 1.741, "female": 1.735}  # of the mean subject [m]
TABLE = {
    "male": {
        "head": SegmentData(0.0694, 0.2429, 0.5002, (0.303, 0.315, 0.261)),
        "upper trunk": SegmentData(0.1596, 0.2421, 0.5066, (0.505, 0.320, 0.465)),
        "middle trunk": SegmentData(0.1633, 0.2155, 0.4502, (0.482, 0.383, 0.468)),
        "lower trunk": SegmentData(0.1117, 0.1457, 0.6115, (0.615, 0.551, 0.587)),
        "upper arm": SegmentData(0.0271, 0.2817, 0.5772, (0.285, 0.269, 0.158)),
        "forearm": SegmentData(0.0162, 0.2689, 0.4574, (0.276, 0.265, 0.121)),
        "hand": SegmentData(0.0061, 0.0862, 0.7900, (0.628, 0.513, 0.401)),
        "thigh": SegmentData(0.1416, 0.4222, 0.4095, (0.329, 0.329, 0.149)),
        "shank": SegmentData(0.0433, 0.4403, 0.4395, (0.251, 0.246, 0.102)),
        "foot": SegmentData(0.0137, 0.2581, 0.4415, (0.257, 0.245, 0.124)),
    },
    "female": {
        "head": SegmentData(0.0668, 0.2437, 0.4841, (0.271, 0.295, 0.261)),
        "upper trunk": SegmentData(0.1545, 0.2280, 0.5050, (0.466, 0.314, 0.449)),
        "middle trunk": SegmentData(0.1465, 0.2053, 0.4512, (0.433, 0.354, 0.415)),
        "lower trunk": SegmentData(0.1247, 0.1815, 0.4920, (0.433, 0.402, 0.444)),
        "upper arm": SegmentData(0.0255, 0.2751, 0.5754, (0.278, 0.260, 0.148)),
        "forearm": SegmentData(0.0138, 0.2643, 0.4559, (0.261, 0.257, 0.094)),
        "hand": SegmentData(0.0056, 0.0780, 0.7474, (0.531, 0.454, 0.335)),
        "thigh": SegmentData(0.1478, 0.3685, 0.3612, (0.369, 0.364, 0.162)),
        "shank": SegmentData(0.0481, 0.4386, 0.4352, (0.267, 0.263, 0.092)),
        "foot": SegmentData(0.0129, 0.2283, 0.4014, (0.299, 0.279, 0.139)),
    },
}
PAIRED = ("upper arm", "forearm", "hand", "thigh", "shank", "foot")


@dataclass(frozen=True, eq=False)
class Segment:
    """A rigid body: mass [kg], mass centre (3,) [m], inertia (3, 3) about it [kg m^2]; x forward, y left, z up."""

    mass: float
    centre: np.ndarray
    inertia: np.ndarray

    def moved(self, by: np.ndarray) -> Segment:
        """Seen from an origin that lies at -by."""
        return Segment(self.mass, self.centre + by, self.inertia)

    def without(self, part: Segment) -> Segment:
        """What is left when a part is taken away."""
        return _joined(((1.0, self), (-1.0, part)))

    def split(self, share: float, centre: np.ndarray) -> tuple[Segment, Segment]:
        """Two bodies that together are this one; the second has that share of the mass, and its mass centre there.

        What inertia the distance of the two does not take is shared like the mass.
        """
        other = (self.centre - share * centre) / (1.0 - share)
        apart = sum(_about(mass, place - self.centre) for mass, place in ((1.0 - share, other), (share, centre)))
        own = self.inertia - self.mass * apart
        return (Segment(self.mass * (1.0 - share), other, own * (1.0 - share)),
                Segment(self.mass * share, centre, own * share))


def together(*bodies: Segment) -> Segment:
    """Several bodies as one."""
    return _joined([(1.0, body) for body in bodies])


def _joined(signed):
    mass = sum(sign * body.mass for sign, body in signed)
    first = sum(sign * body.mass * body.centre for sign, body in signed)
    about_origin = sum(sign * (body.inertia + _about(body.mass, body.centre)) for sign, body in signed)
    return Segment(mass, first / mass, about_origin - _about(mass, first / mass))


def _about(mass, place):
    return shift(np.zeros((3, 3)), np.zeros(3), mass, place)[0]


class Segments:
    """Segments of one person, by name: `length` [m] and `body` (the proximal end at the origin)."""

    def __init__(self, stature: float, mass: float, sex: str):
        if sex not in TABLE:
            raise InputError(f"sex is '{sex}'; there are tables for {' and '.join(TABLE)}")
        self.scale = stature / STATURE[sex]
        self._table = TABLE[sex]
        self.mass = mass / sum(row.mass * (1 + (name in PAIRED)) for name, row in self._table.items())  # shares sum to 0.9999

    def length(self, name: str) -> float:
        return self._table[name].length * self.scale

    def body(self, name: str, along: tuple[float, float, float]) -> Segment:
        """along: direction from the proximal to the distal end, an axis. Forward and sideways stay what they are; of a foot,
        which points forward, the sagittal radius is that about the vertical."""
        row, direction = self._table[name], np.array(along)
        mass, length = row.mass * self.mass, self.length(name)
        sagittal, transverse, longitudinal = (mass * (radius * length) ** 2 for radius in row.radii)
        axes = (longitudinal, transverse, sagittal) if direction[0] else (sagittal, transverse, longitudinal)
        return Segment(mass, row.centre * length * direction, np.diag(axes))
