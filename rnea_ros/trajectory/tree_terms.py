"""Terms along a path of a tree, from one compiled kernel.

The kernel is traced from the text of scaling.terms itself, whose five evaluations of the recursion share everything that
depends on q alone. It is compiled at the first call, once in a process for all of the same robot with payloads on the same
links. So another payload costs microseconds, and so does a copy that is sent to another process.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ..algorithms import component_rate
from ..codegen import kernel
from ..robots.coulomb import coulomb, load_factor, without_coulomb
from ..robots.inputs import validation
from ..robots.inputs.payload import Payload
from ..robots.robot import Robot
from .constraints import TorqueTerms, torque_terms
from .path import Path


class TreeTerms:
    """Of a Robot, Coulomb friction left out, that by load at its most: call with q, q', q'', q''' (samples, n) each.

    friction : (n,) what Coulomb friction can take of each torque
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self._robot, self.friction = robot, coulomb(robot.model)
        self._carriers = tuple(payload.link_number for payload in robot.payloads.values())
        self._payloads = np.concatenate([payload.parameters for payload in robot.payloads.values()] or [np.zeros(0)])

    def along(self, path: Path) -> TreeTerms:
        return self

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> TorqueTerms:
        return TorqueTerms(*self.kernel.of_samples([q, q1, q2, q3, *([self._payloads] if self._carriers else [])], len(q)))

    def compile(self) -> None:
        self(*np.zeros((4, kernel.MANY, self._robot.n)))

    @property
    def kernel(self) -> kernel.Kernel:
        robot = self._robot
        kernels = _kernels(robot.model.model_id, tuple(robot.gravity_vector.tolist()), robot.backend)
        if self._carriers not in kernels:
            inputs = dict.fromkeys(("q", "q1", "q2", "q3"), robot.n)
            if self._carriers:
                inputs["payloads"] = 10 * len(self._carriers)
            kernels[self._carriers] = kernel.build(_traced(robot, self._carriers), inputs, robot.backend)
        return kernels[self._carriers]


@lru_cache(maxsize=8)
def _kernels(model_id: str, gravity: tuple[float, ...], backend: str) -> dict[tuple[int, ...], kernel.Kernel]:
    """Of one robot, by the numbers of the links that carry payloads."""
    return {}


def _traced(robot: Robot, carriers: tuple[int, ...]) -> Callable[..., TorqueTerms]:
    """The function that a kernel is made of. payloads: ten numbers for each carrier."""
    model, gravity, factor = without_coulomb(robot).model, robot.gravity_vector, load_factor(robot.model)

    def traced(q: Any, q1: Any, q2: Any, q3: Any, payloads: Any = None) -> TorqueTerms:
        inertias = Payload.added(model, carriers, payloads) if carriers else None

        def rate(q, qd, qdd, qddd):
            found = component_rate.torque_and_rate(model, q, qd, qdd, qddd, gravity, inertias=inertias)
            return [np.array(block) * factor for block in found] if (factor > 1.0).any() else found

        return torque_terms(rate, q, q1, q2, q3)

    return traced
