"""The section `loops` of a robot file in numbers of the model: cut joints, active coordinates, a pose to start from.

    version: 1
    loops:
      active: [left_motor, right_motor]            # the joints with motors
      cut_joints:
        tip:                                       # one entry for each, by any name
          type: revolute                           # or another type of algorithms/closed_loops.py
          first: {link: left_forearm, xyz: [0.5, 0, 0], rpy: [0, 0, 0]}     # xyz [m] and rpy [rad] default to zero
          second: {link: right_forearm, xyz: [0.55, 0, 0]}
      start: {left_motor: 1.9, left_elbow: -1.0}   # rad or m; near a pose in which the loops are closed. Default: zero

The two frames meet when the loop is closed (Khalil's R_k and R_k+B). z is the axis of the joint. A cut joint has no friction
and no motor: cut the loops where there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import asin, atan2, cos, pi, sin
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import cross, rot_x, rot_z, rpy
from ..algorithms.closed_loops import HELD, Cut
from ..algorithms.kinematics import base_poses, within
from ..model import robot_file
from ..model.robot_file import Source
from ..model.robot_file_schema import MJCF
from ..model.tree import Frame, Model, frozen
from .platform_motion import PlatformMotion

FAR = 1.0  # |ry| above which another chart is used [rad]
CHART = 3  # index of the chart among the seven joints of a platform
JOINTS = 7


@dataclass(frozen=True, eq=False)
class Platform:
    """Platform of a parallel robot: its link, the indices of its joints, and its pose at zero in the root frame.

    The joints are x, y, z, rx, ry, rz and the chart. Poses q (n,) below are positions of all joints of the tree [rad, m].
    """

    link: str
    joints: tuple[int, ...]
    chart: int
    rotation: np.ndarray
    position: np.ndarray

    @classmethod
    def of(cls, model: Model, link: str) -> Platform:
        """Return the platform of a tree prepared by robots/load.py."""
        frame = model.frame(link)
        numbers: list[int] = []
        body = model.links[frame.link]
        for _ in range(JOINTS):
            numbers.insert(0, body.coordinate)
            body = model.links[body.parent]
        R, p = within(base_poses(model, np.zeros(model.n))[frame.link], (frame.R, frame.P))
        return cls(link, tuple(numbers[:CHART] + numbers[CHART + 1:]), numbers[CHART], R, p)

    @property
    def coordinate_names(self) -> dict[int, str]:
        """Return the names x, y, z, chart, rx, ry, rz of the coordinates, keyed by joint index."""
        return dict(zip((*self.joints, self.chart), ("x", "y", "z", "rx", "ry", "rz", "chart"), strict=True))

    @cached_property
    def is_level(self) -> bool:
        """True if the axes of the pose at zero coincide with those of the root frame."""
        return bool((self.rotation == np.eye(3)).all())

    # ------------------------------------------------------------------ pose

    def coordinates(self, rotation: np.ndarray, position: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Return the pose `near` (n,) with this platform at rotation (3, 3), position (3,), and the angles nearest to `near`.
        """
        turn = (rotation if self.is_level else self.rotation.T @ rotation).tolist()
        found, joints = near.tolist(), self.joints
        a, b, c = _angles(turn, found[self.chart])
        if abs(b) <= FAR:
            a, c = _near(a, found[joints[3]]), _near(c, found[joints[5]])
        else:
            found[self.chart] = atan2(turn[0][2], turn[2][2])
            a, b, c = _angles(turn, found[self.chart])
        shift = (position - self.position if self.is_level else (position - self.position) @ self.rotation).tolist()
        for joint, value in zip(joints, (*shift, a, b, c), strict=True):
            found[joint] = value
        return np.array(found)

    def regular(self, q: np.ndarray) -> np.ndarray:
        """Return the same pose, in another chart if the angles are close to a singularity."""
        if abs(float(q[self.joints[4]])) <= FAR:
            return q
        return self.coordinates(*self.pose(q), q)

    def pose(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return rotation (..., 3, 3) and position (..., 3) in the root frame at poses (..., n)."""
        turned, angles = self._turned(q), np.asarray(q)[..., list(self.joints[4:])]
        R = turned @ _about("y", angles[..., 0]) @ _about("z", angles[..., 1])
        return R, self.position + np.asarray(q)[..., list(self.joints[:3])] @ self.rotation.T

    def _turned(self, q: np.ndarray) -> np.ndarray:
        """Return R0 Ry(chart) Rx(rx): the axes in which `_spins` expresses the angular velocity."""
        q = np.asarray(q)
        return np.asarray(self.rotation @ _about("y", q[..., self.chart]) @ _about("x", q[..., self.joints[3]]))

    # ------------------------------------------------------------------ motion

    def rates(self, q: Any, V: Any, Vd: Any, Vdd: Any) -> list[Any]:
        """Return the first three derivatives (6,) of x, y, z, rx, ry, rz, for any scalar type.

        V, Vd, Vdd: twist, acceleration and jerk (6,) in the root frame
        """
        a, b = q[self.joints[3]], q[self.joints[4]]
        ca, sa, s, c = np.cos(a), np.sin(a), np.sin(b), np.cos(b)
        cc, sc = np.cos(q[self.chart]), np.sin(q[self.chart])
        K = self.rotation @ np.array([[cc, 0.0, sc], [0.0, 1.0, 0.0], [-sc, 0.0, cc]]) @ np.array(
            [[1.0, 0.0, 0.0], [0.0, ca, -sa], [0.0, sa, ca]])
        u, first, second = (K.T @ rate[3:] for rate in (V, Vd, Vdd))
        C1 = u[2] / c
        A1, B1 = u[0] - s * C1, u[1]
        turn = np.array([A1, 0.0, 0.0])
        ud = first - cross(turn, u)
        C2 = (ud[2] + s * B1 * C1) / c
        A2, B2 = ud[0] - c * B1 * C1 - s * C2, ud[1]
        second = second - cross(turn, first)
        udd = second - cross(np.array([A2, 0.0, 0.0]), u) - cross(turn, ud)
        C3 = (udd[2] + 2.0 * s * B1 * C2 + s * B2 * C1 + c * B1 * B1 * C1) / c
        A3 = udd[0] - c * B2 * C1 + s * B1 * B1 * C1 - 2.0 * c * B1 * C2 - s * C3
        angles = ((A1, B1, C1), (A2, B2, C2), (A3, udd[1], C3))
        return [np.array([*(self.rotation.T @ rate[:3]), *three]) for rate, three in zip((V, Vd, Vdd), angles, strict=True)]

    def motion(self, q: np.ndarray, *rates: np.ndarray) -> PlatformMotion:
        """Return the motion of the platform at poses (..., n). rates: up to three derivatives (..., n); missing ones are zero.
        """
        q, joints = np.asarray(q), list(self.joints)
        K = self._turned(q)
        known = [np.moveaxis(np.asarray(rate)[..., joints], -1, 0) for rate in rates]  # components first
        steps = [*known, *[np.zeros((6, *q.shape[:-1]))] * (3 - len(known))]
        b = q[..., joints[4]]
        s, c, ((A1, B1, C1), (A2, B2, C2), (A3, B3, C3)) = np.sin(b), np.cos(b), (step[3:] for step in steps)
        u = np.array([A1 + s * C1, B1, c * C1])
        ud = np.array([A2 + c * B1 * C1 + s * C2, B2, c * C2 - s * B1 * C1])
        udd = np.array([A3 + c * B2 * C1 - s * B1**2 * C1 + 2.0 * c * B1 * C2 + s * C3, B3,
                        c * C3 - 2.0 * s * B1 * C2 - s * B2 * C1 - c * B1**2 * C1])
        first = ud + _across(A1, u)
        second = udd + _across(A2, u) + _across(A1, ud + first)
        spins = ((K @ np.moveaxis(part, 0, -1)[..., None])[..., 0] for part in (u, first, second))
        slides = (np.moveaxis(step[:3], 0, -1) @ self.rotation.T for step in steps)
        position = self.position + q[..., joints[:3]] @ self.rotation.T
        return PlatformMotion(position, K @ _about("y", b) @ _about("z", q[..., joints[5]]),
                              *(np.concatenate(parts, axis=-1) for parts in zip(slides, spins, strict=True)))


def _across(speed: Any, v: Any) -> np.ndarray:
    """Return the cross product of speed times x and a vector, components first."""
    return np.array([0.0 * speed, -speed * v[2], speed * v[1]])


def _angles(turn: list[list[float]], chart: float) -> tuple[float, float, float]:
    """Return the angles rx, ry, rz of the rotation Ry(-chart) turn."""
    c, s = cos(chart), sin(chart)
    first = [c * x - s * z for x, z in zip(turn[0], turn[2], strict=True)]
    last = s * turn[0][2] + c * turn[2][2]
    return atan2(-turn[1][2], last), asin(min(1.0, max(-1.0, first[2]))), atan2(-first[1], first[0])


def _near(angle: float, other: float) -> float:
    """Return the angle plus the multiple of 2 pi that is nearest to another angle."""
    return angle + 2.0 * pi * round((other - angle) / (2.0 * pi))


def _about(axis: str, angle: Any) -> np.ndarray:
    """Return rotations (..., 3, 3) about a coordinate axis."""
    if np.ndim(angle) == 0:
        s, c = sin(angle), cos(angle)
        if axis == "y":
            return np.array([[c, 0.0, s], [0.0, 1.0, 0.0], [-s, 0.0, c]])
        return np.array(rot_x(c, s) if axis == "x" else rot_z(c, s))
    k = "xyz".index(axis)
    i, j = (k + 1) % 3, (k + 2) % 3
    R = np.zeros((*np.shape(angle), 3, 3))
    R[..., k, k] = 1.0
    R[..., i, i] = R[..., j, j] = np.cos(angle)
    R[..., j, i] = np.sin(angle)
    R[..., i, j] = -R[..., j, i]
    return R


class Loops(NamedTuple):
    """Declared loops by index in the model: cut joints, active coordinates, start pose (n,), platforms."""

    cuts: tuple[Cut, ...]
    active: tuple[int, ...]
    start: np.ndarray
    where: str
    platforms: tuple[Platform, ...] = ()

    @property
    def charts(self) -> tuple[int, ...]:
        """Indices of chart joints, which do not move."""
        return tuple(platform.chart for platform in self.platforms)

    @property
    def virtual(self) -> tuple[int, ...]:
        """Indices of the joints that describe the poses of platforms, which are not joints of the robot."""
        return tuple(k for platform in self.platforms for k in (*platform.joints, platform.chart))

    def rows(self) -> Iterator[tuple[str, slice]]:
        """Return the rows of every cut joint among the loop equations, with its name."""
        begin = 0
        for cut in self.cuts:
            yield cut.name, slice(begin, begin := begin + len(HELD[cut.type]))

    def hidden(self, model: Model) -> set[str]:
        """Return the links between the joints that describe the poses of platforms, which are not links of the robot."""
        numbers = {number for number, link in enumerate(model.links) if link.coordinate in self.virtual}
        numbers -= {model.frame(platform.link).link for platform in self.platforms}
        return {name for name, frame in model.frames.items() if frame.link in numbers}

    @property
    def lengths(self) -> np.ndarray:
        """Mask of the loop equations that are lengths; the others are angles."""
        return np.array([held < 3 for cut in self.cuts for held in HELD[cut.type]])

    def worst(self, values: np.ndarray, units: np.ndarray) -> tuple[str, float, str]:
        """Return the largest scaled violation of the loop equations: cut joint, size, and "m" or "rad"."""
        k = int(np.abs(values / units).argmax())
        name = next(name for name, rows in self.rows() if rows.start <= k < rows.stop)
        return name, abs(float(values[k])), "m" if self.lengths[k] else "rad"


def read(source: Source, reader: str, model: Model, platforms: Iterable[str] = ()) -> Loops:
    """Return the loops of a model from a robot file (path or content). Raises ModelError, which lists all errors.

    reader    : name of the reading class, for messages
    platforms : names of platform links
    """
    file = robot_file.draft(source).alone(reader, ("loops",), ("loops",))
    declared, frames = file.checked(model).section("loops"), model.frames
    cuts = tuple(Cut(name, MJCF.get(cut["type"], cut["type"]), *(_frame(cut[end], frames) for end in ("first", "second")))
                 for name, cut in declared["cut_joints"].items())
    start = np.zeros(model.n)
    for name, value in declared.get("start", {}).items():
        start[model.joint_names.index(name)] = value
    return Loops(cuts, tuple(map(model.joint_names.index, declared["active"])), frozen(start), file.where,
                 tuple(Platform.of(model, link) for link in platforms))


def _frame(given: Any, frames: Mapping[str, Frame]) -> Frame:
    """Return the frame of {link, xyz, rpy}, or of the name of a link, in the frames of the model."""
    entry = {"link": given} if isinstance(given, str) else given
    link = frames[entry["link"]]
    return Frame(link.link, link.R @ rpy(*entry.get("rpy", (0.0, 0.0, 0.0))), link.P + link.R @ entry.get("xyz", np.zeros(3)))
