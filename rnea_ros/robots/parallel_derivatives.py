"""The part of ParallelRobot that answers how forces change with the motion, and what passes through the legs' joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms import closed_loops
from .closure.following import FollowedMotion
from .closure.leg_equations import POSE
from .closure.platform_closure import FREEDOMS
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .inputs import validation
from .inputs.platform_motion import PlatformMotion
from .inputs.validation import Wrenches, added_loads, beside
from .parallel_kinematics import ParallelKinematics, State
from .platform_body import ChartForces


class ParallelDerivatives(ParallelKinematics):
    """Legs and platform as a tree with closed loops, whose first six coordinates place the platform beside where it is."""

    def sensitivities(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None, *,
                      motion: PlatformMotion | None = None, guess: Any = None, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> TorqueSensitivities:
        """Partial derivatives (N, N) of the actuators' forces by their q, qd and qdd; the last is the mass matrix."""
        jerk = None if qdd is None else validation.zeros_like("qdd", qdd)
        state = self._state(q, qd, qdd, jerk, motion=motion, guess=guess, orders=2)
        on_legs, on_platform = self._sorted(wrenches=wrenches, world_wrenches=world_wrenches)
        along, platform = self._opened(state, on_platform)
        tau = beside((platform.force, self.legs.inverse_dynamics(*state[1][:3], **on_legs)))
        tables = _diagonal(platform.tables, self.legs.sensitivities(*state[1][:3], **on_legs))
        return TorqueSensitivities(*closed_loops.active_sensitivities(along.G, along.H, tau, tables))

    def rate_sensitivities(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None,
                           qddd: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None,
                           wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                           world_wrenches: Wrenches | None = None) -> RateSensitivities:
        """Partial derivatives (N, N) of the forces' rates by q, qd, qdd and qddd of the actuators."""
        state = self._state(q, qd, qdd, qddd, motion=motion, guess=guess)
        on_legs, on_platform = self._sorted(wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        steady = {kind: given for kind, given in on_legs.items() if kind != "wrench_rates"}
        along, platform = self._opened(state, on_platform)
        legs = self.legs.torque_and_rate(*state[1][:4], **on_legs)
        tables = _diagonal(platform.tables, self.legs.sensitivities(*state[1][:3], **steady))
        rate_tables = _diagonal(platform.rate_tables, self.legs.rate_sensitivities(*state[1][:4], **on_legs))
        changing, torques = (along.G, along.H, along.Hd), _beside(platform, legs)
        return RateSensitivities(*closed_loops.active_rate_sensitivities(changing, torques, tables, rate_tables))

    def joint_wrenches(self, q: ArrayLike | None = None, qd: ArrayLike | None = None, qdd: ArrayLike | None = None,
                       qddd: ArrayLike | None = None, *, motion: PlatformMotion | None = None, guess: Any = None,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint of the legs and, where the jerk is given, their rates.

        InputError where the joints between legs and platform hold more than the motion needs, as of planar machines.
        """
        with_rates = qddd is not None or motion is not None
        jerk = validation.zeros_like("qdd", qdd) if qddd is None and qdd is not None else qddd
        state = self._state(q, qd, qdd, jerk, motion=motion, guess=guess)
        on_legs, on_platform = self._sorted(wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches)
        speed, *higher = self._actuated.rates(*self._told(state))
        platform = self._on_platform(state, (speed, *higher), on_platform)
        legs = self.legs.torque_and_rate(*state[1][:4], **on_legs)
        reactions, rates = self._actuated.reactions(self._told(state)[0], speed, *_beside(platform, legs))
        given = {**on_legs, "wrenches": added_loads(on_legs.get("wrenches"), reactions),
                 "wrench_rates": added_loads(on_legs.get("wrench_rates"), rates)}
        return self.legs.joint_wrenches(*state[1][:4 if with_rates else 3], **given)

    def _told(self, state: State) -> list[Array]:
        """What FollowingEquations take: the pose, and the rates of the actuators."""
        platform, legs = state
        pose = np.concatenate((legs.q, platform.rows()[..., :POSE]), axis=-1)
        return [pose, *(rate[..., self._closure.active] for rate in legs[1:4])]

    def _opened(self, state: State, on_platform: dict[str, Any]) -> tuple[FollowedMotion, ChartForces]:
        """How platform and legs follow the actuators; and the platform, where nothing joins it to the legs."""
        along = self._actuated.followed(*self._told(state))
        return along, self._on_platform(state, along.rates, on_platform)

    def _on_platform(self, state: State, rates: Sequence[Array], loads: dict[str, Any]) -> ChartForces:
        return self.body.in_chart(state[0].rotation, [rate[..., :FREEDOMS] for rate in rates], **loads)


def _beside(platform: ChartForces, legs: tuple[Array, Array]) -> list[Array]:
    """Forces of all variables, and rates."""
    return [beside(pair) for pair in zip(platform[:2], legs, strict=True)]


def _diagonal(first: Any, second: Any) -> list[Array]:
    """Square matrices as blocks of one, pair by pair."""
    found = []
    for a, b in zip(first, second, strict=True):
        shape, rows = np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), a.shape[-1]
        both = np.zeros((*shape, rows + b.shape[-1], rows + b.shape[-1]))
        both[..., :rows, :rows], both[..., rows:, rows:] = a, b
        found.append(both)
    return found
