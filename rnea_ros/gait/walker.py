"""Dynamics of the walking skeleton: ground reaction, its distribution over the feet, and joint torques, with sensitivities.

Ground reaction (thesis, section 5.1; Xiang et al. 2009). Active step: the motion without loads at the feet needs a force F
and a moment M about the world's origin at the root. Passive step: the feet bear them, and nothing remains at the root. The
floor is z = 0 and transmits pressure and friction, so F and M are F at the zero-moment point, which is the centre of
pressure, and a moment about the vertical:

    M = r x F + T e_z,   r = (-M_y / F_z, M_x / F_z, 0)

In single support the stance foot bears everything. In double support the load is shared in proportion to where the
zero-moment point lies between a point A of the rear foot (the middle of the left toes) and a point B of the front foot (the
right heel):

    share = (r - A).(B - A) / |B - A|^2,   C = M - (A + share (B - A)) x F
    front: share (F, B x F + C),   rear: (1 - share) (F, A x F + C)

Both add up to (F, M) for any share. The published method uses distances from the zero-moment point to the feet.

A foot consists of two links. The toes bear what lies ahead of their joint: the moment of the foot's load about it, as far as
it bends the toes up; smoothed near zero for a continuous derivative.

Arrays have samples first. Values that depend on q have derivatives (samples, k, n); those that depend on q, qd, qdd have
three. Constraints are functions of points and of the floor's force and moment for any scalar type; their derivatives follow
from evaluation on jets and the chain rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import cross
from ..algorithms.kinematics import points
from ..algorithms.sensitivities import base_wrench, base_wrench_sensitivities
from ..codegen import kernel
from ..planning.problem import Quantity
from ..robots.conditions import Loads
from ..robots.kernel_store import KernelFunction, KernelStore
from ..robots.robot import Robot
from .muscles import MuscleStrength
from .skeleton import SIDES, Human, SkeletonPoint

TOE_LEVER = 0.01  # lever of the smoothing [m]
TOE_MOMENT = 0.1  # smallest smoothing moment, for feet without load [N m]


class FootLoad(NamedTuple):
    """Load of one foot: F and M (3,) about the world's origin, exerted by the floor on the foot."""

    F: Any
    M: Any


class SharedLoad(NamedTuple):
    """Loads of both feet; share: of the front foot; aside: distance of the zero-moment point to the left of the line A B [m].
    """

    front: FootLoad
    rear: FootLoad
    share: Any
    aside: Any


def zero_moment_point(F, M):
    """Return the zero-moment point (x, y) [m]."""
    return np.array([-M[1] / F[2], M[0] / F[2]])


def share_between_feet(F, M, A, B):
    """Return the loads of both feet in double support."""
    A, B = (np.array([p[0], p[1], p[2] * 0.0]) for p in (A, B))
    r, d = zero_moment_point(F, M) - A[:2], (B - A)[:2]
    square = d[0] * d[0] + d[1] * d[1]
    share = (r[0] * d[0] + r[1] * d[1]) / square
    C = M - cross(A + (B - A) * share, F)
    rest = 1.0 - share
    return SharedLoad(FootLoad(F * share, (cross(B, F) + C) * share), FootLoad(F * rest, (cross(A, F) + C) * rest), share,
                  (d[0] * r[1] - d[1] * r[0]) / np.sqrt(square))


def foot_link_wrenches(load, ankle, ball):
    """Return (12,): the wrench on the foot about the ankle, and that on the toes about their joint, the ball; force first."""
    bend = -(load.M - cross(ball, load.F))[1]  # about the axis to the right: pressure ahead of the ball is positive
    lever = load.F[2] * TOE_LEVER
    couple = np.array([0.0, -0.5, 0.0]) * (bend + np.sqrt(bend * bend + lever * lever + TOE_MOMENT**2))
    none = load.F * 0.0
    return np.concatenate((load.F, load.M - cross(ankle, load.F) - couple, none, couple))


Motion = Sequence[Any]  # q, or q, qd, qdd: (samples, n) each
Slopes = list[np.ndarray]  # by q, or by q, qd, qdd: (samples, k, n) each
FEET = tuple(f"{side}_{part}" for side in SIDES for part in ("foot", "toes"))
MAX_CACHED = 32  # cached results,
MAX_CACHED_SAMPLES = 64  # of at most so many samples


class ValueAndSlopes(NamedTuple):
    """Value (samples, k) and its derivatives."""

    value: np.ndarray
    slopes: Slopes


class FloorSupport(NamedTuple):
    """Distribution of the floor's wrench: share(F, M, *points) -> (6 links,), a wrench on each link, force first."""

    name: str
    share: Callable
    points: Sequence[str]
    links: Sequence[str]


class Walker:
    """Human and the kernels of its robot. Without load at the feet, the root is held by what the floor must supply.

    muscles: strength by angle and velocity, which limits torques beside the constant strengths; None: not limited by it
    """

    def __init__(self, human: Human, backend: str = "llvm", muscles: MuscleStrength | None = None):
        self.human, self.muscles = human, muscles
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
        return frame.link, frame.R @ point.position + frame.P

    # ------------------------------------------------------------------ features of a motion

    def points(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return positions (samples, points, 3) of the human's points and their Jacobians (samples, points, 6, n)."""
        return self._cached("points", (q,), lambda: self._kernels(KernelFunction("points", self._points, ("q",)), q))

    def floor_wrench(self, motion: Motion) -> ValueAndSlopes:
        """Return (F, M) (samples, 6) that the floor must supply, about the world's origin (active step)."""
        function = KernelFunction("needed", self._needed, ("q", "qd", "qdd"))
        value, *slopes = self._cached("needed", motion, lambda: self._kernels(function, *motion))
        return ValueAndSlopes(value, slopes)

    def _points(self, model, gravity, options, q):
        return points(model, self._links, q)

    def _needed(self, model, gravity, options, q, qd, qdd):
        motion = model, q, qd, qdd, gravity
        return [base_wrench(*motion), *base_wrench_sensitivities(*motion)]

    def _cached(self, name: str, motion: Motion, evaluate: Callable) -> Any:
        """Return a cached result: a solver requests value, derivatives and curvature at the same motion in turn."""
        if len(motion[0]) > MAX_CACHED_SAMPLES:
            return evaluate()
        key = (name, *(x.tobytes() for x in motion))
        if key not in self._known:
            while len(self._known) >= MAX_CACHED:
                self._known.pop(next(iter(self._known)))
            self._known[key] = evaluate()
        return self._known[key]

    # ------------------------------------------------------------------ functions of features

    def evaluate_points(self, function: Callable, names: Sequence[str], q: np.ndarray) -> ValueAndSlopes:
        """Return function(*points) -> (k,) of named points (3,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(q)
        z = positions[:, at].reshape(len(q), -1)
        value, by_z = self._mapping(function, z.shape[1])(z)
        return ValueAndSlopes(value, [by_z @ jacobians[:, at, :3].reshape(len(q), -1, self.n)])

    def evaluate_ground(self, function: Callable, names: Sequence[str], motion: Motion) -> ValueAndSlopes:
        """Return function(F, M, *points) -> (k,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(motion[0])
        wrench, slopes = self.floor_wrench(motion)
        count = len(wrench)
        z = np.hstack((wrench, positions[:, at].reshape(count, -1)))
        value, by_z = self._mapping(function, z.shape[1])(z)
        chained = [by_z[..., :6] @ slope for slope in slopes]
        chained[0] = chained[0] + by_z[..., 6:] @ jacobians[:, at, :3].reshape(count, -1, self.n)
        return ValueAndSlopes(value, chained)

    def loads(self, support: FloorSupport, motion: Motion) -> dict[str, np.ndarray]:
        """Return wrenches (samples, 6) on FEET about their frames' origins, in the world frame, including zeros."""
        value = self.evaluate_ground(support.share, support.points, motion).value
        found = dict.fromkeys(FEET, np.zeros((len(value), 6)))
        return found | {link: value[:, 6 * k:6 * k + 6] for k, link in enumerate(support.links)}

    def torque(self, support: FloorSupport, motion: Motion) -> np.ndarray:
        """Return the torques (samples, n) under the floor's loads (passive step); those of the root are zero."""
        q, qd, qdd = motion
        return self._cached(f"torque {support.name}", motion, lambda: self.robot.inverse_dynamics(
            q, qd, qdd, loads=Loads(world_wrenches=self.loads(support, motion))))

    def torque_slopes(self, support: FloorSupport, motion: Motion) -> Slopes:
        """Return the derivatives of the torques: d tau under constant loads less J^T d load.

        The loads depend on q, qd and qdd.
        """

        def evaluate():
            q, qd, qdd = motion
            jacobians = self.points(q)[1]
            J = np.concatenate([jacobians[:, self._origin(link)] for link in support.links], axis=1).swapaxes(1, 2)
            constant = self.robot.sensitivities(q, qd, qdd, loads=Loads(world_wrenches=self.loads(support, motion)))
            changes = self.evaluate_ground(support.share, support.points, motion).slopes
            return [table - J @ change for table, change in zip(constant, changes)]

        return self._cached(f"slopes {support.name}", motion, evaluate)

    # ------------------------------------------------------------------ limited quantities

    @property
    def strength(self) -> np.ndarray:
        """Constant strength (n,) of the coordinates [N m]; infinite without one."""
        return np.nan_to_num(self.robot.limits.effort, nan=np.inf)

    def point_quantity(self, name: str, labels: Sequence[str], function: Callable, names: Sequence[str], lower: np.ndarray,
                       upper: np.ndarray, window: tuple[float, float] = (0.0, 1.0)) -> Quantity:
        """Return function(*points) -> (k,) as a limited quantity."""
        return Quantity(name, labels, 0, lambda q: self.evaluate_points(function, names, q).value,
                        lambda q: self.evaluate_points(function, names, q).slopes, lower, upper, windows=[window])

    def contact_quantity(self, name: str, labels: Sequence[str], function: Callable, names: Sequence[str],
                         goal: Sequence[float], tolerance: float, window: tuple[float, float] = (0.0, 1.0)) -> Quantity:
        """Return function(*points) -> (k,) as a quantity within the tolerance of a goal."""
        middle = np.array(goal)
        return self.point_quantity(name, labels, function, names, middle - tolerance, middle + tolerance, window)

    def ground_quantity(self, name: str, labels: Sequence[str], function: Callable, names: Sequence[str], lower: np.ndarray,
                        upper: np.ndarray, window: tuple[float, float] = (0.0, 1.0)) -> Quantity:
        """Return function(F, M, *points) -> (k,) as a limited quantity."""
        def evaluate(*motion):
            return self.evaluate_ground(function, names, motion)

        return Quantity(name, labels, 2, lambda *motion: evaluate(*motion).value, lambda *motion: evaluate(*motion).slopes,
                        lower, upper, windows=[window])

    def torque_quantities(self, support: FloorSupport, window: tuple[float, float] = (0.0, 1.0),
                          passive: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None) -> list[Quantity]:
        """Return the torques as shares of the constant strength, and those beyond the muscles' where these are known.

        passive: q -> torque (samples, n) that muscles need not supply, and its derivative (samples, n, n)
        """
        strength = self.strength
        limit = np.where(np.isfinite(strength), 1.0, np.inf)

        def value(*motion):
            return (self.torque(support, motion) - (passive(motion[0])[0] if passive else 0.0)) / strength

        def slope(*motion):
            by_q, *others = self.torque_slopes(support, motion)
            return [table / strength[:, None] for table in (by_q - (passive(motion[0])[1] if passive else 0.0), *others)]

        torque = Quantity(f"torque in {support.name}", self.joint_names, 2, value, slope, -limit, limit, windows=[window])
        return [torque, *([self.muscles.limits(torque, strength)] if self.muscles else [])]

    # ------------------------------------------------------------------ tools

    def _origin(self, link: str) -> int:
        """Return the named point at the origin of a link's frame."""
        points = self.human.points.items()
        return next(self._row[name] for name, point in points if point.link == link and not point.position.any())

    def _mapping(self, function: Callable, size: int) -> kernel.Kernel:
        """Return a kernel from z (size,) to the function's values (k,) and their derivatives (k, size)."""
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
    """Return the wrenches on the stance foot and its toes."""
    return foot_link_wrenches(FootLoad(F, M), ankle, ball)


def double_support(F, M, ankle, ball, rear_ankle, rear_ball, rear_tip, heel):
    """Return the wrenches on both feet and their toes."""
    both = _share_load(F, M, rear_ball, rear_tip, heel)
    return np.concatenate((foot_link_wrenches(both.front, ankle, ball), foot_link_wrenches(both.rear, rear_ankle, rear_ball)))


def _share_load(F, M, ball, tip, heel):
    return share_between_feet(F, M, (ball + tip) * 0.5, heel)


SINGLE = FloorSupport("single support", single_support, ("right_ankle", "right_ball"), ("right_foot", "right_toes"))
DOUBLE = FloorSupport("double support", double_support,
                 (*SINGLE.points, "left_ankle", "left_ball", "left_toe_tip", "right_heel"),
                 (*SINGLE.links, "left_foot", "left_toes"))


def between_feet(F, M, ball, tip, heel):
    """Return the share of the front foot, and the lateral distance of the zero-moment point."""
    both = _share_load(F, M, ball, tip, heel)
    return [both.share, both.aside]


def front_share(F, M, ball, tip, heel):
    """Return the share of the front foot."""
    return [_share_load(F, M, ball, tip, heel).share]


def foot_wrenches(F, M, ball, tip, heel):
    """Return F and M of the front foot and of the rear one, (12,)."""
    both = _share_load(F, M, ball, tip, heel)
    return np.concatenate((both.front.F, both.front.M, both.rear.F, both.rear.M))


BETWEEN_POINTS = DOUBLE.points[3:]


def both_feet(F, M, ankle, ball, left_ankle, left_ball):
    """Return the wrenches on both feet and their toes; the feet stand beside each other and share by where the load lies."""
    both = share_between_feet(F, M, left_ankle, ankle)
    return np.concatenate((foot_link_wrenches(both.front, ankle, ball), foot_link_wrenches(both.rear, left_ankle, left_ball)))


def foot_wrenches_of_both(F, M, ankle, left_ankle):
    """Return F and M of the right foot and of the left one, (12,)."""
    both = share_between_feet(F, M, left_ankle, ankle)
    return np.concatenate((both.front.F, both.front.M, both.rear.F, both.rear.M))


BOTH = FloorSupport("both feet", both_feet, ("right_ankle", "right_ball", "left_ankle", "left_ball"), DOUBLE.links)


def position(point):
    """Return the position of a point."""
    return point


def ball_contact(inner, outer, tip):
    """Return the middle of the ball, its tilt, and the height of the tip."""
    return [*((inner + outer) * 0.5), inner[2] - outer[2], tip[2]]


def point_heights(*points):
    """Return the heights of points."""
    return [point[2] for point in points]


def pendulum_product(shoulder, wrist, hip, ankle):
    """Return the product of the horizontal extents of an arm and a leg."""
    return [(wrist - shoulder)[0] * (ankle - hip)[0]]


def distance_squared(a, b):
    """Return the squared distance of two points."""
    return [np.dot(a - b, a - b)]


def sagittal_distance_squared(a, b):
    """Return the squared distance of two points in the sagittal plane."""
    away = (a - b)[::2]
    return [np.dot(away, away)]
