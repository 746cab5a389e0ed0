"""Forward kinematics of every link: what TreeDynamics inherits, and the other robots ask.

The convention, for all robots of the package:

* a pose is (R, p) of the link's frame in the frame of the root link, or in the world where the base floats: R (3, 3) takes
  vectors from the link's frame, p (3,) is the position of its origin, or of the requested point [m];
* velocities and Jacobians have six rows: velocity of the point, then angular velocity of the link, both along the axes of the
  root link, or of the world [m/s, rad/s]. Pinocchio calls it LOCAL_WORLD_ALIGNED;
* a point is given in the link's frame, and moves with the link; the frame's origin by default;
* Jacobians have a column for each joint; six for a floating base before them, for BaseState.velocity. With closed loops they
  have a column for each active joint.

So link_velocity = jacobian @ qd, and acceleration of the point = jacobian @ qdd + jacobian_rate @ qd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.kinematics import Pose
from ..model.tree import frozen
from .inputs import validation
from .kernels import link_functions
from .kernels.store import KernelStore, not_made

ORIGIN = frozen(np.zeros(3))  # of the link's frame


class LinkKinematics:
    """Poses, velocities and Jacobians of URDF links: moving ones, and those fixed to them. See the module's convention.

    link  : name of a URDF link; InputError names those that exist
    q, qd : (n,) or (samples, n)
    point : (3,) or (samples, 3) in the link's frame [m]; its origin if left out
    """

    store: KernelStore

    def link_pose(self, link: str, q: ArrayLike, point: ArrayLike | None = None, **others: Any) -> Pose:
        """R (3, 3) and p (3,), or (samples, ...) each, of the link's frame in the root link's; origin at the point."""
        if others:
            validation.no_others(self.store.model.name, others)
        return tuple.__new__(Pose, on_link(self.store, link_functions.link_pose, link, q, point=point))

    def link_velocity(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, **others: Any) -> Array:
        """(6,) or (samples, 6): velocity of the point, angular velocity, along the root link's axes [m/s, rad/s]."""
        if others:
            validation.no_others(self.store.model.name, others)
        return on_link(self.store, link_functions.link_velocity, link, q, qd, point=point)[0]

    def jacobian(self, link: str, q: ArrayLike, point: ArrayLike | None = None, **others: Any) -> Array:
        """(6, n) or (samples, 6, n) with link_velocity = jacobian @ qd; followers of a mimic joint count with their leader."""
        if others:
            validation.no_others(self.store.model.name, others)
        return on_link(self.store, link_functions.jacobian, link, q, point=point)[0]

    def jacobian_rate(self, link: str, q: ArrayLike, qd: ArrayLike, point: ArrayLike | None = None, **others: Any) -> Array:
        """(6, n) or (samples, 6, n): time derivative of `jacobian` along the motion."""
        if others:
            validation.no_others(self.store.model.name, others)
        return on_link(self.store, link_functions.jacobian_rate, link, q, qd, point=point)[0]


def on_link(store: KernelStore, function: Callable[..., Any], link: str, *motion: ArrayLike, point: ArrayLike | None,
            base: Sequence[ArrayLike] = ()) -> tuple[Array, ...]:
    """Return a function of link_functions.py: of the motion, the point, and the blocks of the base that it takes."""
    blocks = *motion, ORIGIN if point is None else point, *base
    return store.quick.get((function, link), not_made)(*blocks) or store(link_functions.of_link(function, store.model, link),
                                                                         *blocks)
