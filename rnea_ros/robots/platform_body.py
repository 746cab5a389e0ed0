"""The platform of a parallel robot as a free body: the force that moves it, its inertia, and where its links are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.kinematics import Pose
from ..algorithms.spatial import inertia
from .closure.leg_equations import LegEquations
from .energy import CenterOfMass, Energy, refuse_weightless
from .inputs import validation
from .inputs.payload import Payload
from .inputs.platform_motion import PlatformMotion
from .inputs.validation import Wrenches
from .kernels import link_functions
from .link_kinematics import on_link
from .robot import Robot

UNLOADED = np.zeros(6)


class PlatformForces(NamedTuple):
    """Fp (9), the force and moment that move the platform, about its origin, in the base frame, and its rate: (..., 6)."""

    force: Array
    rate: Array


class ChartForces(NamedTuple):
    """Of coordinates of the platform's pose: force and rate (..., 6); partial derivatives (..., 6, 6) of both by the
    coordinates and their time derivatives."""

    force: Array
    rate: Array
    tables: list[Array]
    rate_tables: list[Array]


class PlatformBody:
    """A Robot of one link, moved as PlatformMotion says; what goes in and comes out is seen in the base frame.

    equations: those of the legs, which have the kernel of Fp
    """

    def __init__(self, platform: Robot, equations: LegEquations, gravity: Array):
        self._platform, self._equations, self._gravity = platform, equations, gravity
        link, carried = platform.model.links[0], list(platform.payloads.values())
        block = np.concatenate([np.zeros(0), *(payload.parameters for payload in carried)])
        self._inertia = Payload.added(platform.model, [0] * len(carried), block).get(0, (link.m, link.ms, link.J))
        m, ms, J = self._inertia
        self._block = np.concatenate(([m], ms, np.ravel(J)))

    def force(self, motion: PlatformMotion, *, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
              world_wrenches: Wrenches | None = None) -> PlatformForces:
        """Loads on links of the platform."""
        model, rows, force = self._platform.model, motion.rows(), self._equations.force
        if not (wrenches or wrench_rates or world_wrenches) and (found := force.call(rows, self._block, UNLOADED, UNLOADED)):
            return PlatformForces(*found)
        validation.loaded_links(model, wrenches, wrench_rates)  # refuses rates without a wrench
        loads = self._with_held(motion, wrenches or {}, wrench_rates or {}, world_wrenches or {})
        blocks = [validation.wrench_block(model, (0,), given) for given in loads]
        found = force(validation.beside([rows, self._block, *blocks]))
        validation.results("platform_force", found)
        return PlatformForces(*found)

    def _with_held(self, motion: PlatformMotion, wrenches: Wrenches, rates: Wrenches,
                   held: Wrenches) -> tuple[dict[str, Any], dict[str, Any]]:
        """The loads of the world among those of the links, and their rates, for the links turn."""
        total, total_rates = dict(wrenches), dict(rates)
        for link, value in held.items():
            frame, six = self._platform.model.frame(link), validation.wrench(link, value)
            R = motion.rotation @ frame.R
            for sums, given, in_world in ((total, wrenches, six), (total_rates, rates, -_turning(motion, six))):
                own = _turned_by(np.swapaxes(R, -1, -2), in_world)
                sums[link] = own + (validation.wrench(link, given[link]) if link in given else 0.0)
        return total, total_rates

    def in_chart(self, rotation: Array, rates: Sequence[Array], *, wrenches: Wrenches | None = None,
                 wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> ChartForces:
        """By coordinates of the pose beside this one, along which velocity, acceleration and jerk are `rates`, (6,) each."""
        model = self._platform.model
        validation.loaded_links(model, wrenches, wrench_rates)  # refuses rates without a wrench
        own, own_rate = (validation.wrench_block(model, (0,), given or {}) for given in (wrenches, wrench_rates))
        held = np.zeros(15)
        for link, six in validation.world_blocks(model, world_wrenches).items():
            at = model.frame(link).P[:, None] * six[..., None, :3]
            held = held + np.concatenate((six, at.reshape(*six.shape[:-1], 9)), axis=-1)
        R = np.reshape(rotation, (*np.shape(rotation)[:-2], 9))
        found, table = self._equations.force_in_chart(validation.beside([R, *rates, self._block, own, own_rate, held]))
        by_rates = np.split(table, 4, axis=-1)
        return ChartForces(found[..., :6], found[..., 6:], [part[..., :6, :] for part in by_rates[:3]],
                           [part[..., 6:, :] for part in by_rates])

    def weight(self, motion: PlatformMotion) -> PlatformForces:
        """Return the share of gravity in Fp, and its rate, which the platform's turning causes."""
        rows, weight = motion.rows(), self._equations.weight
        return PlatformForces(*(weight.call(rows, self._block) or weight(validation.beside([rows, self._block]))))

    def mass_matrix(self, motion: PlatformMotion) -> Array:
        """(6, 6) or (samples, 6, 6): Fp of a unit acceleration of the platform at rest."""
        R = np.zeros((*np.shape(motion.rotation)[:-2], 6, 6))
        R[..., :3, :3] = R[..., 3:, 3:] = motion.rotation
        return np.asarray(R @ inertia(*self._inertia) @ np.swapaxes(R, -1, -2))

    @property
    def mass(self) -> float:
        """[kg], payloads included."""
        return float(self._inertia[0])

    def energy(self, motion: PlatformMotion) -> Energy:
        """Zero potential energy with its mass at the base frame's origin."""
        m, ms, _ = self._inertia
        V, momentum = np.asarray(motion.velocity), self._momentum(motion)
        weight = m * motion.position + motion.rotation @ np.asarray(ms, dtype=float)
        return Energy((V * momentum).sum(axis=-1) / 2.0, -(weight @ self._gravity))

    def center_of_mass(self, motion: PlatformMotion) -> CenterOfMass:
        refuse_weightless(self.mass)
        arm = motion.rotation @ np.asarray(self._inertia[1], dtype=float) / self.mass
        p, turning = np.split(self._momentum(motion), 2, axis=-1)
        momentum = np.concatenate((p, turning - np.cross(arm, p)), axis=-1)
        return CenterOfMass(motion.position + arm, p / self.mass, momentum)

    def _momentum(self, motion: PlatformMotion) -> Array:
        """(..., 6), about its origin."""
        return np.asarray((self.mass_matrix(motion) @ np.asarray(motion.velocity)[..., None])[..., 0])

    def link_pose(self, link: str, motion: PlatformMotion, point: ArrayLike | None) -> Pose:
        base = _rotation(motion), motion.position
        found = on_link(self._platform._store, link_functions.free_link_pose, link, (), point=point, base=base)
        return tuple.__new__(Pose, found)

    def jacobian(self, link: str, motion: PlatformMotion, point: ArrayLike | None) -> Array:
        """(..., 6, 6) of a link by Vp."""
        base = (_rotation(motion),)
        return on_link(self._platform._store, link_functions.platform_jacobian, link, (), point=point, base=base)[0]

    def jacobian_rate(self, link: str, motion: PlatformMotion, point: ArrayLike | None) -> Array:
        """(..., 6, 6)"""
        base = _rotation(motion), motion.velocity
        return on_link(self._platform._store, link_functions.platform_jacobian_rate, link, (), point=point, base=base)[0]


def _rotation(motion: PlatformMotion) -> Array:
    """Block of a kernel."""
    return np.reshape(motion.rotation, (*np.shape(motion.rotation)[:-2], 9))


def _turned_by(R: Array, six: Array) -> Array:
    """R f, R n."""
    return np.concatenate([(R @ part[..., None])[..., 0] for part in np.split(six, 2, axis=-1)], axis=-1)


def _turning(motion: PlatformMotion, six: Array) -> Array:
    """w x f, w x n: the rate of a force and a moment that turn with the platform."""
    w = np.asarray(motion.velocity)[..., 3:]
    return np.concatenate([np.cross(w, part) for part in np.split(six, 2, axis=-1)], axis=-1)
