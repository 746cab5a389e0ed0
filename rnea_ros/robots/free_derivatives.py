"""The part of FloatingRobot that answers how torques change with the motion, and what passes through the joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .inputs.base_state import BaseState, given
from .inputs.validation import Wrenches
from .kernels.slopes import partial_derivatives

if TYPE_CHECKING:
    from .robot import Robot


class FreeDerivatives:
    """Base of FloatingRobot. The base gives way: nothing but the loads acts on it."""

    if TYPE_CHECKING:
        robot: Robot

        def _free(self, name: str, base: BaseState | None, q: ArrayLike, qd: ArrayLike, *motion: ArrayLike,
                  **loads: Any) -> tuple[Array, ...]: ...

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, base: BaseState | None = None,
                      wrenches: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> TorqueSensitivities:
        """Partial derivatives (n, n) of the torques by q, qd and qdd, at one pose and velocity of the base, whose acceleration
        follows. The last is the mass matrix that the joints feel: that of all, with the base left free."""
        return TorqueSensitivities(*self._tables("free_sensitivities", base, {"q": q, "qd": qd, "qdd": qdd}, wrenches=wrenches,
                                                 world_wrenches=world_wrenches))

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           base: BaseState | None = None, wrenches: Wrenches | None = None,
                           wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> RateSensitivities:
        """Partial derivatives (n, n) of the torque rates by q, qd, qdd and qddd, likewise."""
        return RateSensitivities(*self._tables("free_rate_sensitivities", base, {"q": q, "qd": qd, "qdd": qdd, "qddd": qddd},
                                               wrenches=wrenches, wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def _tables(self, name: str, base: BaseState | None, motion: dict[str, ArrayLike], **loads: Any) -> tuple[Array, ...]:
        def ask(motion: Any, changes: Any, state: Any, **loads: Any) -> Array:
            return self._free(name, BaseState(*state), *motion, *changes, **loads)[0]

        base = given(base)
        state = base.position, base.quaternion, base.velocity
        return partial_derivatives(ask, motion, self.robot.joint_names, loads, state)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       base: BaseState | None = None, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint and, where the jerk qddd is given, their rates."""
        loads = {"wrenches": wrenches, "wrench_rates": wrench_rates, "world_wrenches": world_wrenches}
        if qddd is None:
            (wrench,) = self._free("free_joint_wrenches", base, q, qd, qdd, **loads)
            return JointWrenches(self.robot.moving_joints, wrench, None)
        wrench, rate = self._free("free_joint_wrenches_and_rates", base, q, qd, qdd, qddd, **loads)
        return JointWrenches(self.robot.moving_joints, wrench, rate)
