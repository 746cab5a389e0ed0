"""The part of robots with closed loops that answers how torques change with the motion, and what passes through the joints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..algorithms import closed_loops
from .closure.following import FollowedMotion
from .closure.loop_closure import LoopClosure
from .closure.loop_equations import LoopMotion
from .derivatives import JointWrenches, RateSensitivities, TorqueSensitivities
from .inputs.validation import Wrenches, added_loads


class LoopDerivatives:
    """Base of ClosedLoopRobot. tree: the Robot or FloatingRobot whose loops are closed; given: loads, and the base's state."""

    if TYPE_CHECKING:
        _closure: LoopClosure

    def _followed(self, motion: LoopMotion) -> FollowedMotion:
        return self._closure.followed(motion.q, *(rate[..., self._closure.active] for rate in motion[1:4]))

    def _sensitivities(self, tree: Any, motion: LoopMotion, **given: Any) -> TorqueSensitivities:
        tau, tables = (ask(*motion[:3], **given) for ask in (tree.inverse_dynamics, tree.sensitivities))
        along = self._followed(motion)
        return TorqueSensitivities(*closed_loops.active_sensitivities(along.G, along.H, tau, tables))

    def _rate_sensitivities(self, tree: Any, motion: LoopMotion, wrench_rates: Wrenches | None,
                            **given: Any) -> RateSensitivities:
        torques, rate_tables = (ask(*motion[:4], wrench_rates=wrench_rates, **given)
                                for ask in (tree.torque_and_rate, tree.rate_sensitivities))
        tables, along = tree.sensitivities(*motion[:3], **given), self._followed(motion)
        changing = along.G, along.H, along.Hd
        return RateSensitivities(*closed_loops.active_rate_sensitivities(changing, torques, tables, rate_tables))

    def _transmitted(self, tree: Any, motion: LoopMotion, with_rates: bool, wrenches: Wrenches | None,
                     wrench_rates: Wrenches | None, **given: Any) -> JointWrenches:
        """What the cut joints exert acts on the open tree as loads do."""
        torques = tree.torque_and_rate(*motion[:4], wrenches=wrenches, wrench_rates=wrench_rates, **given)
        reactions, rates = self._closure.reactions(motion.q, motion.qd, *torques)
        return tree.joint_wrenches(*motion[:4 if with_rates else 3], wrenches=added_loads(wrenches, reactions),
                                   wrench_rates=added_loads(wrench_rates, rates), **given)
