"""The part of TreeDynamics that answers how torques, their rates and internal joint wrenches change with the motion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algorithms.joint_wrenches import moving
from ..errors import InputError
from ..model.tree import Model
from .inputs import validation
from .inputs.validation import Wrenches


class TorqueSensitivities(NamedTuple):
    """(n, n) or (samples, n, n) each: a row for each torque, a column for each coordinate. The last is the mass matrix."""

    dtau_dq: Array
    dtau_dqd: Array
    dtau_dqdd: Array


class RateSensitivities(NamedTuple):
    """Derivatives of tau_rate: (n, n) or (samples, n, n) each, as in TorqueSensitivities. The last is the mass matrix."""

    drate_dq: Array
    drate_dqd: Array
    drate_dqdd: Array
    drate_dqddd: Array


class TorqueDeviations(NamedTuple):
    """Standard deviations of torques and of their rates, (n,) or (samples, n) each."""

    tau: Array
    tau_rate: Array


class JointWrenches(NamedTuple):
    """Wrenches transmitted by the joints: (joints, 6) or (samples, joints, 6), force first [N, N m].

    A row for each joint that moves a link, mimic joints included, named by `joints`: the wrench exerted BY the parent link ON
    the child link, about the origin of the child link's frame and seen in it. It is all that the joint transmits, bearing
    and drive; its component along the axis is the torque less friction, rotor inertia and offset.
    rate [N/s, N m/s]: of the six numbers; None where no jerk was given.
    """

    joints: tuple[str, ...]
    wrench: Array
    rate: Array | None


class JointWrenchSensitivities(NamedTuple):
    """Derivatives of JointWrenches.wrench: (joints, 6, n) or (samples, joints, 6, n) each, a column for each coordinate."""

    joints: tuple[str, ...]
    dw_dq: Array
    dw_dqd: Array
    dw_dqdd: Array


class Sensitivities:
    """Base of TreeDynamics. Motions are (n,) or (samples, n).

    wrenches, wrench_rates : external wrenches held by links, see TreeDynamics.torque_and_rate
    world_wrenches         : {URDF link: (6,) or (samples, 6)} force, then moment about the link frame's origin, exerted BY the
                             environment ON the link, seen in the ROOT link's frame, where they stay while the link turns
    """

    if TYPE_CHECKING:
        model: Model

        def evaluate(self, name: str, *motion: Any, wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None) -> tuple[Array, ...]: ...

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                      world_wrenches: Wrenches | None = None, **others: Any) -> TorqueSensitivities:
        """Partial derivatives of the torques, joint dynamics included: Barman, thesis, chapter 3, in closed form."""
        if others:
            validation.no_others(self.model.name, others)
        return tuple.__new__(TorqueSensitivities, self.evaluate("sensitivities", q, qd, qdd, wrenches=wrenches,
                                                                 world_wrenches=world_wrenches))

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *,
                           wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                           world_wrenches: Wrenches | None = None, **others: Any) -> RateSensitivities:
        """Partial derivatives of the tau_rate of `torque_and_rate`; the kernel is three times that of `sensitivities`."""
        if others:
            validation.no_others(self.model.name, others)
        return tuple.__new__(RateSensitivities, self.evaluate("rate_sensitivities", q, qd, qdd, qddd, wrenches=wrenches,
                                                               wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def torque_deviations(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, deviation: ArrayLike, *,
                          wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                          world_wrenches: Wrenches | None = None) -> TorqueDeviations:
        """Return standard deviations of torques and their rates, from those of the motion.

        deviation : of q, qd, qdd, qddd, (4, n) or (4, samples, n), as MotionEstimator and estimate_recording give them. They
                    are taken for independent of each other, and small: only sensitivities count.
        """
        stds = np.asarray(deviation, dtype=float)
        if stds.ndim not in (2, 3) or len(stds) != 4:
            raise InputError(f"deviation has shape {stds.shape}; (4, n) or (4, samples, n) is needed, of q, qd, qdd, qddd")
        return tuple.__new__(TorqueDeviations, self.evaluate("torque_deviations", q, qd, qdd, qddd, *stds, wrenches=wrenches,
                                                              wrench_rates=wrench_rates, world_wrenches=world_wrenches))

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None, **others: Any) -> JointWrenches:
        """Return internal force and moment of every joint and, if the jerk qddd is given, their rates."""
        if others:
            validation.no_others(self.model.name, others)
        given = {"wrenches": wrenches, "wrench_rates": wrench_rates, "world_wrenches": world_wrenches}
        if qddd is None:
            return JointWrenches(self.moving_joints, self.evaluate("joint_wrenches", q, qd, qdd, **given)[0], None)
        wrench, rate = self.evaluate("joint_wrenches_and_rates", q, qd, qdd, qddd, **given)
        return JointWrenches(self.moving_joints, wrench, rate)

    def joint_wrench_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *, wrenches: Wrenches | None = None,
                                   world_wrenches: Wrenches | None = None) -> JointWrenchSensitivities:
        """Partial derivatives of the internal wrenches of `joint_wrenches`."""
        tables = self.evaluate("joint_wrench_sensitivities", q, qd, qdd, wrenches=wrenches, world_wrenches=world_wrenches)
        return JointWrenchSensitivities(self.moving_joints, *tables)

    @property
    def moving_joints(self) -> tuple[str, ...]:
        """Every joint that moves a link, mimic joints included: the rows of the internal joint wrenches."""
        return tuple(self.model.links[k].joint for k in moving(self.model))
