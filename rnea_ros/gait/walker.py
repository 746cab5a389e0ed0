"""What a walking skeleton needs from the floor and from its joints, with sensitivities: the two steps of ground.py on a robot.

Every array has the samples first. Values that depend on q alone have slopes (samples, k, n); those that depend on q, qd, qdd
have three of them. A constraint is written once, as a function of points and of the floor's force and moment in any scalar;
its slopes come from evaluating the same text on jets, and the chain rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algorithms.base_wrench import base_wrench, base_wrench_sensitivities
from ..algorithms.kinematics import points
from ..codegen import kernel
from ..robots.kernels.kernel_function import KernelFunction
from ..robots.kernels.store import KernelStore
from ..robots.robot import Robot
from .skeleton import SIDES, Human, SkeletonPoint

Motion = Sequence[Any]  # q, or q, qd, qdd: (samples, n) each
Slopes = list[np.ndarray]  # by q, or by q, qd, qdd: (samples, k, n) each
FEET = tuple(f"{side}_{part}" for side in SIDES for part in ("foot", "toes"))
KEPT = 32  # results that are remembered,
SHORT = 64  # of so many samples at most


class Needed(NamedTuple):
    """A value (samples, k) and its slopes."""

    value: np.ndarray
    slopes: Slopes


class Support(NamedTuple):
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

    def needed(self, motion: Motion) -> Needed:
        """Active step: (F, M) (samples, 6) that the floor must supply, about the world's origin."""
        function = KernelFunction("needed", self._needed, ("q", "qd", "qdd"))
        value, *slopes = self._once("needed", motion, lambda: self._kernels(function, *motion))
        return Needed(value, slopes)

    def _points(self, model, gravity, options, q):
        return points(model, self._links, q)

    def _needed(self, model, gravity, options, q, qd, qdd):
        motion = model, q, qd, qdd, gravity
        return [base_wrench(*motion), *base_wrench_sensitivities(*motion)]

    def _once(self, name: str, motion: Motion, evaluate: Callable) -> Any:
        """A solver asks for value, slopes and curvature at the same motion, one after the other."""
        if len(motion[0]) > SHORT:
            return evaluate()
        key = (name, *(x.tobytes() for x in motion))
        if key not in self._known:
            while len(self._known) >= KEPT:
                self._known.pop(next(iter(self._known)))
            self._known[key] = evaluate()
        return self._known[key]

    # ------------------------------------------------------------------ functions of features

    def of_points(self, function: Callable, names: Sequence[str], q: np.ndarray) -> Needed:
        """function(*points) -> (k,), of named points (3,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(q)
        z = positions[:, at].reshape(len(q), -1)
        value, by_z = self._mapping(function, z.shape[1])(z)
        return Needed(value, [by_z @ jacobians[:, at, :3].reshape(len(q), -1, self.n)])

    def of_ground(self, function: Callable, names: Sequence[str], motion: Motion) -> Needed:
        """function(F, M, *points) -> (k,)."""
        at = [self._row[name] for name in names]
        positions, jacobians = self.points(motion[0])
        wrench, slopes = self.needed(motion)
        count = len(wrench)
        z = np.hstack((wrench, positions[:, at].reshape(count, -1)))
        value, by_z = self._mapping(function, z.shape[1])(z)
        chained = [by_z[..., :6] @ slope for slope in slopes]
        chained[0] = chained[0] + by_z[..., 6:] @ jacobians[:, at, :3].reshape(count, -1, self.n)
        return Needed(value, chained)

    def loads(self, support: Support, motion: Motion) -> dict[str, np.ndarray]:
        """Wrenches (samples, 6) on FEET about their frames' origins, seen in the world; zeros too: one kernel serves all."""
        value = self.of_ground(support.share, support.points, motion).value
        found = dict.fromkeys(FEET, np.zeros((len(value), 6)))
        return found | {link: value[:, 6 * k:6 * k + 6] for k, link in enumerate(support.links)}

    def torque(self, support: Support, motion: Motion) -> np.ndarray:
        """Passive step, (samples, n): the torques under those loads. What is left at the root is zero."""
        q, qd, qdd = motion
        return self._once(f"torque {support.name}", motion, lambda: self.robot.inverse_dynamics(
            q, qd, qdd, world_wrenches=self.loads(support, motion)))

    def torque_slopes(self, support: Support, motion: Motion) -> Slopes:
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
                columns = [derivative(_thirds(function, jets(z, unit[k])), 1) for k in range(size)]
                return [_thirds(function, z), np.array(columns).T]

            self._mappings[key] = kernel.build(traced, {"z": size}, self.robot.backend)
        return self._mappings[key]


def _thirds(function, z):
    return np.array(function(*(z[k:k + 3] for k in range(0, len(z), 3))))
