"""The part of ElasticRobot that answers how motor torques change with the motion, and what passes through the joints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..algebra.arrays import Array
from ..algebra.taylor import derivative
from ..algorithms import motor_motion
from ..algorithms.equations import Motor
from ..algorithms.joint_wrenches import moving, transmitted
from ..model.tree import Model
from .derivatives import JointWrenches
from .inputs.validation import Wrenches
from .kernels.kernel_function import KernelFunction
from .kernels.slopes import partial_derivatives, slope
from .kernels.store import KernelStore


class ElasticDerivatives:
    """Base of ElasticRobot."""

    if TYPE_CHECKING:
        model: Model
        motors: Sequence[Motor]
        _motors: KernelStore

        @property
        def n(self) -> int: ...

        @property
        def order(self) -> int: ...

        def given_motion(self, order: int, motion: Sequence[ArrayLike]) -> dict[str, ArrayLike]: ...

        def motion_function(self, order: int) -> KernelFunction: ...

    def sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, *higher: ArrayLike, wrenches: Wrenches | None = None,
                      wrench_rates: Wrenches | None = None, world_wrenches: Wrenches | None = None) -> tuple[Array, ...]:
        """Partial derivatives (n, n), or (samples, n, n), of the motors' torques by q, qd, qdd and the higher derivatives, as
        many as `motor_motion` takes."""
        return self._tables(self.order - 1, 0, (q, qd, qdd, *higher), wrenches=wrenches, wrench_rates=wrench_rates,
                            world_wrenches=world_wrenches)

    def rate_sensitivities(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike, *higher: ArrayLike,
                           wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                           world_wrenches: Wrenches | None = None) -> tuple[Array, ...]:
        """The same of the torques' rates, by as many derivatives as `torque_and_rate` takes."""
        return self._tables(self.order, -1, (q, qd, qdd, qddd, *higher), wrenches=wrenches, wrench_rates=wrench_rates,
                            world_wrenches=world_wrenches)

    def _tables(self, order: int, result: int, motion: Sequence[ArrayLike], **loads: Wrenches | None) -> tuple[Array, ...]:
        given = self.given_motion(order, motion)
        function = slope(("sensitivities", order), self.motion_function(order), result, tuple(given))

        def ask(motion: Any, changes: Any, _state: Any, **loads: Any) -> Array:
            return self._motors(function, *motion, *changes, **loads)[0]

        return partial_derivatives(ask, given, self.model.joint_names, loads)

    def joint_wrenches(self, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, qddd: ArrayLike | None = None, *higher: ArrayLike,
                       wrenches: Wrenches | None = None, wrench_rates: Wrenches | None = None,
                       world_wrenches: Wrenches | None = None) -> JointWrenches:
        """Internal force and moment of every joint, from as many derivatives of q as `motor_motion` takes; from one more, the
        rates too. Rotors that turn on the links beyond a joint count."""
        given = (q, qd, qdd, *higher) if qddd is None else (q, qd, qdd, qddd, *higher)
        with_rates = len(given) > self.order
        motion = self.given_motion(self.order if with_rates else self.order - 1, given)
        function = KernelFunction(("joint_wrenches", with_rates), self._wrenches, tuple(motion))
        wrench, rate = self._motors(function, *motion.values(), wrenches=wrenches, wrench_rates=wrench_rates,
                                    world_wrenches=world_wrenches)
        joints = tuple(self.model.links[k].joint for k in moving(self.model))
        return JointWrenches(joints, wrench, rate if with_rates else None)

    def _wrenches(self, model: Model, gravity: Any, options: Any, **motion: Any) -> tuple[Any, Any]:
        torques, _ = motor_motion.inverse_motion(model, self.motors, list(motion.values()), gravity=gravity, **options)
        wrench = np.array(transmitted(model, torques.forces), dtype=object)
        return derivative(wrench, 0), derivative(wrench, 1) if len(motion) > self.order else []
