"""Forces of a fluid at rest on the links of a swimming robot, for any scalar: added mass, drag and buoyancy.

With v and w the velocity of a body's centre and its angular velocity along its axes, A and B its added mass and inertia
(diagonal), Lamb, "Hydrodynamics", ch. 6, and Morison et al., Petroleum Transactions AIME 189 (1950):

    force    = -(A v' + w x A v) - drag(v)          v' : rate of the three numbers of v
    moment   = -(B w' + w x B w + v x A v) - angular_drag(w)
    drag(v)  = linear_drag v + quadratic_drag |v| v, component by component, with |v| = sqrt(v^2 + smoothing^2)

In Khalil, Gallot, Boyer, "Dynamic modeling and simulation of a 3-D serial eel-like robot", IEEE Trans. SMC C 37 (2007), the
modules are slender: A is rho pi r^2 L across and none along, quadratic drag rho C r L. The terms depend on state and
acceleration alone, so that their rates follow from series, as those of all other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..algebra.vectors import cross
from .spatial import transform


class FluidBody(NamedTuple):
    """Wetted body of one link.

    link         : number of the link; R (3, 3), P (3,): its axes and its centre in the link's frame
    added_mass   : (3,) [kg]; added_inertia (3,) [kg m^2]
    linear_drag  : (3,) [N s/m]; quadratic_drag (3,) [N s^2/m^2]; angular_drag (3,) of the square of w [N m s^2]
    displaced    : mass of the fluid that it displaces [kg]
    smoothing    : speed below which quadratic drag becomes linear [m/s, rad/s]
    """

    link: int
    R: Any
    P: Any
    added_mass: Any
    added_inertia: Any
    linear_drag: Any
    quadratic_drag: Any
    angular_drag: Any
    displaced: float
    smoothing: float


def fluid_wrench(body: FluidBody, v: Any, w: Any, a: Any, wd: Any, fall: Any) -> Any:
    """Return the wrench (6,) BY the fluid ON the link about its frame's origin, along the frame's axes.

    v, a : velocity and true acceleration (3,) of the origin; w, wd: angular velocity and its rate; fall: gravity (3,), all
           along the axes of the link's frame
    """
    turn, arm = np.asarray(body.R, dtype=float).T, body.P
    spin, spin_rate = turn @ w, turn @ wd
    moved = turn @ (v + cross(w, arm))
    rate = turn @ (a + cross(wd, arm) + cross(w, cross(w, arm))) - cross(spin, moved)
    momentum = body.added_mass * moved
    force = -(body.added_mass * rate + cross(spin, momentum)) - body.linear_drag * moved - _square(
        body.quadratic_drag, moved, body.smoothing)
    moment = -(body.added_inertia * spin_rate + cross(spin, body.added_inertia * spin) + cross(moved, momentum)) - _square(
        body.angular_drag, spin, body.smoothing)
    force = turn.T @ force - fall * body.displaced
    return np.concatenate((force, turn.T @ moment + cross(arm, force)))


def _square(coefficients: Any, v: Any, smoothing: float) -> Any:
    """Return coefficient |v| v of each component; components without a coefficient are plain zeros."""
    return np.array([c * x * np.sqrt(x * x + smoothing * smoothing) if c else 0.0
                     for c, x in zip(coefficients, v, strict=True)], dtype=object)


def added_inertias(bodies: Sequence[FluidBody]) -> dict[int, np.ndarray]:
    """Return the added mass and inertia (6, 6) of each wetted link about its frame's origin, by its number."""
    found: dict[int, np.ndarray] = {}
    for body in bodies:
        X = transform(np.asarray(body.R, dtype=float), np.asarray(body.P, dtype=float))
        added = X.T @ np.diag([*body.added_mass, *body.added_inertia]) @ X
        found[body.link] = found.get(body.link, 0.0) + added
    return found
