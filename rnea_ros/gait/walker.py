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

What a walking skeleton needs from the floor and from its joints, with sensitivities: the two steps of ground.py on a robot.

Every array has the samples first. Values that depend on q alone have slopes (samples, k, n); those that depend on q, qd, qdd
have three of them. A constraint is written once, as a function of points and of the floor's force and moment in any scalar;
its slopes come from evaluating the same text on jets, and the chain rule.

Who bears the floor's force while the right leg is the stance leg, and what constraints ask of points; any scalar.

Double support stands on the middle of the left toes and on the right heel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import cross
from ..algorithms.base_wrench import base_wrench, base_wrench_sensitivities
from ..algorithms.kinematics import points
from ..codegen import kernel
from ..robots.kernels.kernel_function import KernelFunction
from ..robots.kernels.store import KernelStore
from ..robots.robot import Robot
from .skeleton import SIDES, Human, SkeletonPoint

TOE_LEVER = 0.01  # [m]
TOE_MOMENT = 0.1  # [N m], keeps the root away from zero where a foot bears nothing


class FootLoad(NamedTuple):
    """Of one foot: F and M (3,) about the world's origin, exerted by the floor on the foot."""

    F: Any
    M: Any


class SharedLoad(NamedTuple):
    """front, rear: the loads; share: of the front foot; aside: of the zero-moment point to the left of the line A B [m]."""

    front: FootLoad
    rear: FootLoad
    share: Any
    aside: Any


def zero_moment_point(F, M):
    """(x, y) [m]."""
    return np.array([-M[1] / F[2], M[0] / F[2]])


def share_between_feet(F, M, A, B):
    """Double support."""
    A, B = (np.array([p[0], p[1], p[2] * 0.0]) for p in (A, B))
    r, d = zero_moment_point(F, M) - A[:2], (B - A)[:2]
    square = d[0] * d[0] + d[1] * d[1]
    share = (r[0] * d[0] + r[1] * d[1]) / square
    C = M - cross(A + (B - A) * share, F)
    rest = 1.0 - share
    return SharedLoad(FootLoad(F * share, (cross(B, F) + C) * share), FootLoad(F * rest, (cross(A, F) + C) * rest), share,
                  (d[0] * r[1] - d[1] * r[0]) / np.sqrt(square))


def foot_link_wrenches(load, ankle, ball):
    """(12,): the wrench on the foot about the ankle, and that on the toes about their joint, the ball; force first."""
    bend = -(load.M - cross(ball, load.F))[1]  # about the axis to the right: pressure ahead of the ball is positive
    lever = load.F[2] * TOE_LEVER
    couple = np.array([0.0, -0.5, 0.0]) * (bend + np.sqrt(bend * bend + lever * lever + TOE_MOMENT**2))
    none = load.F * 0.0
    return np.concatenate((load.F, load.M - cross(ankle, load.F) - couple, none, couple))


Motion = Sequence[Any]  # q, or q, qd, qdd: (samples, n) each
Slopes = list[np.ndarray]  # by q, or by q, qd, qdd: (samples, k, n) each
FEET = tuple(f"{side}_{part}" for side in SIDES for part in ("foot", "toes"))
MAX_CACHED = 32  # results that are remembered,
MAX_CACHED_SAMPLES = 64  # of so many samples at most


class ValueAndSlopes(NamedTuple):
    """A value (samples, k) and its slopes."""

    value: np.ndarray
    slopes: Slopes


class FloorSupport(NamedTuple):
    """Who bears the floor's force: share(F, M, *points) -> (6 links,), a wrench on each link, force first; any scalar."""

    name: str
    share: Callable
    points: Sequence[str]
    links: Sequence[str]


class Walker:
    """A human and the kernels of its robot. Without load at the feet, the root is held by what the floor must supply."""

    def __init__(self, human: Human, backend: str = "llvm"):
        self.human = human
        self.robot = Robot.from_urdf(human.urdf, backend=backend)
        self.n, self.joint_names = self.robot.n, self.robot.joint_names
        self.weight = self.robot.total_mass * -float(self.robot.gravity_vector[2])  # [N]
        self._kernels = KernelStore(self.robot.model, self.robot.gravity_vector, backend)
        self._row = {name: k for k, name in enumerate(human.points)}
        self._links = [self._within(point) for point in human.points.values()]
        self._mappings: dict[tuple, kernel.Kernel] = {}
        self._known: dict[tuple, Any] = {}

    def _within(self, point: SkeletonPoint) -> tuple[int, np.ndarray]:
        frame = self.robot.model.frame(point.link)
        return frame.link, frame.R @ point.place + frame.P

    # ------------------------------------------------------------------ features of a motion

    def points(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Positions (samples, points, 3) of the human's points and their Jacobians (samples, points, 6, n)."""
        return self._once("points", (q,), lambda: self._kernels(KernelFunction("points", self._points, ("q",)), q))

    def needed(self, motion: Motion) -> ValueAndSlopes:
        """Active step: (F, M) (samples, 6) that the floor must supply, about the world's origin."""
        function = KernelFunction("needed", self._needed, ("q", "qd", "qdd"))
        value, *slopes = self._once("needed", motion, lambda: self._kernels(function, *motion))
        return ValueAndSlopes(value, slopes)

    def _points(self, model, gravity, options, q):
        return points(model, self._links, q)

    def _needed(self, model, gravity, options, q, qd, qdd):
        motion = model, q, qd, qdd, gravity
        return [base_wrench(*motion), *base_wrench_sensitivities(*motion)]

    def _once(self, name: str, motion: Motion, evaluate: Callable) -> Any:
        """A solver asks for value, slopes and curvature at the same motion, one after the other."""
        if len(motion[0]) > MAX_CACHED_SAMPLES:
            return evaluate()
        key = (name, *(x.tobytes() for x in motion))
        if key not in self._known:
            while len(self._known) >= MAX_CACHED:
                self._known.pop(next(iter(self._known)))
            self._known[key] = evaluate()
        return self._known[key]

    # ------------------------------------------------------------------ functions of features

    def of_points(self, function: Callable, names: Sequence[str], q: np.ndarray) -> ValueAndSlopes:
        """function(*points) -> (k,), of named points (3,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(q)
        z = positions[:, at].reshape(len(q), -1)
        value, by_z = self._mapping(function, z.shape[1])(z)
        return ValueAndSlopes(value, [by_z @ jacobians[:, at, :3].reshape(len(q), -1, self.n)])

    def of_ground(self, function: Callable, names: Sequence[str], motion: Motion) -> ValueAndSlopes:
        """function(F, M, *points) -> (k,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(motion[0])
        wrench, slopes = self.needed(motion)
        count = len(wrench)
        z = np.hstack((wrench, positions[:, at].reshape(count, -1)))
        value, by_z = self._mapping(function, z.shape[1])(z)
        chained = [by_z[..., :6] @ slope for slope in slopes]
        chained[0] = chained[0] + by_z[..., 6:] @ jacobians[:, at, :3].reshape(count, -1, self.n)
        return ValueAndSlopes(value, chained)

    def loads(self, support: FloorSupport, motion: Motion) -> dict[str, np.ndarray]:
        """Wrenches (samples, 6) on FEET about their frames' origins, seen in the world; zeros too: one kernel serves all."""
        value = self.of_ground(support.share, support.points, motion).value
        found = dict.fromkeys(FEET, np.zeros((len(value), 6)))
        return found | {link: value[:, 6 * k:6 * k + 6] for k, link in enumerate(support.links)}

    def torque(self, support: FloorSupport, motion: Motion) -> np.ndarray:
        """Passive step, (samples, n): the torques under those loads. What is left at the root is zero."""
        q, qd, qdd = motion
        return self._once(f"torque {support.name}", motion, lambda: self.robot.inverse_dynamics(
            q, qd, qdd, world_wrenches=self.loads(support, motion)))

    def torque_slopes(self, support: FloorSupport, motion: Motion) -> Slopes:
        """d tau = (d tau under constant loads) - J^T d load: the loads depend on q, qd and qdd as the floor's force does."""

        def evaluate():
            q, qd, qdd = motion
            jacobians = self.points(q)[1]
            J = np.concatenate([jacobians[:, self._origin(link)] for link in support.links], axis=1).swapaxes(1, 2)
            constant = self.robot.sensitivities(q, qd, qdd, world_wrenches=self.loads(support, motion))
            changes = self.of_ground(support.share, support.points, motion).slopes
            return [table - J @ change for table, change in zip(constant, changes)]

        return self._once(f"slopes {support.name}", motion, evaluate)

    def _origin(self, link: str) -> int:
        """The named point at the origin of a link's frame."""
        points = self.human.points.items()
        return next(self._row[name] for name, point in points if point.link == link and not point.place.any())

    def _mapping(self, function: Callable, size: int) -> kernel.Kernel:
        """z (size,) -> function's values (k,) and their slopes (k, size)."""
        key = (function, size)
        if key not in self._mappings:
            unit = np.eye(size)

            def traced(z):
                columns = [derivative(_call_with_vectors(function, jets(z, unit[k])), 1) for k in range(size)]
                return [_call_with_vectors(function, z), np.array(columns).T]

            self._mappings[key] = kernel.build(traced, {"z": size}, self.robot.backend)
        return self._mappings[key]


def _call_with_vectors(function, z):
    return np.array(function(*(z[k:k + 3] for k in range(0, len(z), 3))))


def single_support(F, M, ankle, ball):
    return foot_link_wrenches(FootLoad(F, M), ankle, ball)


def double_support(F, M, ankle, ball, rear_ankle, rear_ball, rear_tip, heel):
    both = _share_load(F, M, rear_ball, rear_tip, heel)
    return np.concatenate((foot_link_wrenches(both.front, ankle, ball), foot_link_wrenches(both.rear, rear_ankle, rear_ball)))


def _share_load(F, M, ball, tip, heel):
    return share_between_feet(F, M, (ball + tip) * 0.5, heel)


SINGLE = FloorSupport("single support", single_support, ("right_ankle", "right_ball"), ("right_foot", "right_toes"))
DOUBLE = FloorSupport("double support", double_support,
                 (*SINGLE.points, "left_ankle", "left_ball", "left_toe_tip", "right_heel"),
                 (*SINGLE.links, "left_foot", "left_toes"))


def between_feet(F, M, ball, tip, heel):
    """Share of the front foot, and how far the zero-moment point lies aside."""
    both = _share_load(F, M, ball, tip, heel)
    return [both.share, both.aside]


def front_share(F, M, ball, tip, heel):
    return [_share_load(F, M, ball, tip, heel).share]


def foot_wrenches(F, M, ball, tip, heel):
    """(12,): F and M of the front foot and of the rear one."""
    both = _share_load(F, M, ball, tip, heel)
    return np.concatenate((both.front.F, both.front.M, both.rear.F, both.rear.M))


BETWEEN_POINTS = DOUBLE.points[3:]


def position(point):
    return point


def ball_contact(inner, outer, tip):
    """Middle of the ball, its tilt, height of the tip."""
    return [*((inner + outer) * 0.5), inner[2] - outer[2], tip[2]]


def point_heights(*points):
    return [point[2] for point in points]


def pendulum_product(shoulder, wrist, hip, ankle):
    return [(wrist - shoulder)[0] * (ankle - hip)[0]]


def distance_squared(a, b):
    return [np.dot(a - b, a - b)]
