"""Equations that the active joints solve: how all variables follow them, to first order too, and what cut joints transmit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...algebra.taylor import derivative, jets
from ...algorithms import closed_loops
from ...algorithms.joint_wrenches import in_urdf_frame
from ...codegen import kernel
from ...codegen.kernel import Kernel
from ...errors import InputError, some
from ..inputs import validation
from .equations import Equations
from .inverses import TracedInverse
from .units import Units

RATES = ("qad", "qadd", "qaddd")  # of the active joints


class FollowedMotion(NamedTuple):
    """Along a motion of the active joints; (samples, ...) each, if it is one of samples.

    rates : of all variables, (n,) each: velocity, acceleration, jerk
    G     : d z / d qa (n, N), (56), and its first three time derivatives
    H, Hd : D^2 z (N, n, N), the rate of G along each active joint alone, and its time derivative
    """

    rates: Sequence[np.ndarray]
    G: Sequence[np.ndarray]
    H: np.ndarray
    Hd: np.ndarray


class FollowingEquations(Equations):
    """phi(z) = 0, which hold the variables z of a mechanism together.

    selection : unit columns (n, N) of the active joints among the variables; passive: the other variables
    at        : names and sizes of the blocks that describe a pose of the mechanism
    """

    selection: np.ndarray
    passive: np.ndarray
    at: Mapping[str, int]

    def _at(self, *at: Any) -> tuple[Any, closed_loops.Closure, Callable[[Any], Sequence[Any]]]:
        """Return z at the blocks `at`, phi(z), and z -> poses of the links' frames; any scalar."""
        raise NotImplementedError

    def solver(self, inverse_of: Callable[..., Any], J: Any, giving: np.ndarray) -> tuple[Any, Callable[[Any], Any]]:
        """The inverse of J by the variables that give way, and r -> the change of all variables by which phi changes by -r."""
        J_inverse = inverse_of(J[:, giving], Units(self.units.equations, self.units.unknowns[giving]))
        return J_inverse, lambda r: -(np.eye(len(self.selection))[:, giving] @ (J_inverse @ r))

    def _linearised(self, inverse_of: Callable[..., Any], values: Any, J: Any, giving: np.ndarray,
                    direction: Any) -> tuple[Any, ...]:
        """The parts of a Step, with the active joints going along `direction`."""
        J_inverse, solve = self.solver(inverse_of, J, giving)
        along = self.selection @ direction
        return self._parts(values, J_inverse, solve(values), along + solve(J @ along))

    # ------------------------------------------------------------------ how all variables follow

    @cached_property
    def _following(self) -> Kernel:
        def following(direction, qad, qadd, qaddd, **at):
            z, phi, _ = self._at(*at.values())
            _, solve = self.solver(TracedInverse, closed_loops.jacobian(phi, z)[1], self.passive)
            active_part = [self.selection @ part for part in (qad, qadd, qaddd)]
            rates = closed_loops.tree_motion(lambda *rates: closed_loops.closure_rates(phi, z, *rates), solve, active_part)
            return *rates, *closed_loops.map_rates(phi, (z, *rates), solve, self.selection @ direction)

        return kernel.build(following, {**dict.fromkeys(("direction", *RATES), len(self.active)), **self.at}, self._backend)

    def rates(self, at: np.ndarray, qad: np.ndarray, qadd: np.ndarray, qaddd: np.ndarray) -> list[np.ndarray]:
        """Of FollowedMotion, at closed poses `at`, the blocks of a pose side by side, (size,) or (samples, size)."""
        return _each(self._following, np.zeros_like(qad), qad, qadd, qaddd, at)[:3]

    def followed(self, at: np.ndarray, qad: np.ndarray, qadd: np.ndarray, qaddd: np.ndarray) -> FollowedMotion:
        """All of it. Hd is linear in the speed and the second rate of G quadratic, so this at two speeds tells that."""
        units, still = np.eye(len(self.active)), np.zeros(len(self.active))
        found = _each(self._following, units, *(part[..., None, :] for part in (qad, qadd, qaddd, at)))
        speed, here = qad[..., None, None, :], at[..., None, None, :]
        H, above, below = (_each(self._following, units, along, still, still, here)[3:]
                           for along in (units[:, None], speed + units[:, None], speed - units[:, None]))
        rates, G = [rate[..., 0, :] for rate in found[:3]], [np.swapaxes(part, -1, -2) for part in found[3:]]
        return FollowedMotion(rates, G, np.swapaxes(H[1], -1, -2), np.swapaxes(above[2] - below[2], -1, -2) * 0.25)

    # ------------------------------------------------------------------ what cut joints transmit

    @cached_property
    def _held(self) -> tuple[int, ...]:
        """Numbers of the links of the model that cut joints hold; a platform is none of them."""
        return tuple(sorted({frame.link for cut in self.loops.cuts for frame in (cut.first, cut.second) if frame.link >= 0}))

    @cached_property
    def _wrenches(self) -> Kernel:
        def wrenches(speed, multipliers, multiplier_rates, **at):
            z, _, poses = self._at(*at.values())
            total = dict.fromkeys(self._held, np.zeros(6))
            moving, pushing = poses(jets(z, speed)), jets(multipliers, multiplier_rates)
            for link, wrench in closed_loops.reactions(self.loops.cuts, moving, pushing):
                if link in total:
                    total[link] = total[link] + in_urdf_frame(self.model, link, wrench)
            return [derivative(list(total.values()), order) for order in (0, 1)]

        equations = len(self.units.equations)
        sizes = {"speed": len(self.selection), "multipliers": equations, "multiplier_rates": equations}
        return kernel.build(wrenches, sizes | dict(self.at), self._backend)

    @cached_property
    def _jacobians(self) -> Kernel:
        def jacobians(speed, **at):
            z, phi, _ = self._at(*at.values())
            return [J[:, self.passive] for J in closed_loops.jacobian_and_rate(phi, z, speed)]

        return kernel.build(jacobians, {"speed": len(self.selection), **self.at}, self._backend)

    def reactions(self, at: np.ndarray, speed: np.ndarray, forces: np.ndarray,
                  rates: np.ndarray) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
        """By link of the model: the wrench (6,) that its cut joints exert on it, and the rates of its numbers.

        speed         : of all variables, (n,)
        forces, rates : of all variables while the cut joints are open. J^T multipliers take those of the passive ones away
        """
        J, Jd = (np.swapaxes(part, -1, -2) for part in _each(self._jacobians, speed, at))
        missing = J.shape[-1] - J.shape[-2]
        if missing:
            raise InputError(f"the cut joints {some(cut.name for cut in self.loops.cuts)} hold {J.shape[-1]} components, "
                             f"{missing} more than the motion needs: what they transmit depends on how elastic the links are. "
                             "Declare cut joints that hold no more than needed: in a planar loop, point_on_axis instead of "
                             "revolute")
        multipliers = np.linalg.solve(J, forces[..., self.passive, None])
        multiplier_rates = np.linalg.solve(J, rates[..., self.passive, None] - Jd @ multipliers)
        found = _each(self._wrenches, speed, multipliers[..., 0], multiplier_rates[..., 0], at)
        names = [self.model.links[k].name for k in self._held]
        wrenches, their_rates = ({name: six[..., k, :] for k, name in enumerate(names)} for six in found)
        return wrenches, their_rates


def _each(of: Kernel, *blocks: np.ndarray) -> list[np.ndarray]:
    """Results of a kernel for blocks (..., size), whatever stands before their sizes. InputError where they are too large."""
    shape = np.broadcast_shapes(*(block.shape[:-1] for block in blocks))
    rows = np.concatenate([np.broadcast_to(block, (*shape, block.shape[-1])) for block in blocks], axis=-1)
    results = of(rows.reshape(-1, rows.shape[-1]))
    validation.results("how all joints follow", results)
    return [found.reshape(*shape, *found.shape[1:]) for found in results]
