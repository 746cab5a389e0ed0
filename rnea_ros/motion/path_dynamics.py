"""A Robot as scaling/ wants it: torque and torque rate along a path, from one compiled kernel.

The kernel is traced from the text of scaling.terms itself, whose five evaluations of the recursion share everything that
depends on q alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..algorithms import component_rate
from ..codegen import kernel
from ..errors import InputError
from ..model.tree import Limits, Model
from ..robots.inputs import validation
from ..robots.inputs.payload import Payload
from ..robots.robot import Robot
from ..scaling.terms import Terms, terms
from .joint_shares import coulomb


class PathDynamics:
    """Call with q, q', q'', q''' (samples, n) each; returns Terms. `loaded` gives another one in microseconds.

    Coulomb friction jumps where a joint turns round, so no motion keeps its torque rate finite; smoothed, it is no polynomial
    in the speed. It is left out of the terms and taken off the effort limits instead: see `limits`.
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self.robot = robot
        self._model = _smooth(robot.model)
        self._carriers = tuple(payload.link_number for payload in robot.payloads.values())
        inputs = dict.fromkeys(("q", "q1", "q2", "q3"), robot.n)
        if self._carriers:
            inputs["payloads"] = 10 * len(self._carriers)
        self._kernel = kernel.build(self._terms, inputs, robot.backend)
        self._carry(robot)

    def _carry(self, robot: Robot) -> None:
        self.robot = robot
        self._payloads = np.concatenate([payload.parameters for payload in robot.payloads.values()] or [np.zeros(0)])

    def loaded(self, robot: Robot) -> PathDynamics:
        """The same robot with other payloads; nothing is compiled if they are on the same links."""
        same = robot.model is self.robot.model and tuple(p.link_number for p in robot.payloads.values()) == self._carriers
        if not same:
            return PathDynamics(robot)
        other = PathDynamics.__new__(PathDynamics)
        other.__dict__.update(self.__dict__)
        other._carry(robot)
        return other

    def _terms(self, q: Any, q1: Any, q2: Any, q3: Any, payloads: Any = None) -> Terms:
        inertias = Payload.added(self._model, self._carriers, payloads) if self._carriers else None

        def rate(q, qd, qdd, qddd):
            return component_rate.torque_and_rate(self._model, q, qd, qdd, qddd, self.robot.gravity_vector, inertias=inertias)

        return terms(rate, q, q1, q2, q3)

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> Terms:
        carried = [np.broadcast_to(self._payloads, (len(q), len(self._payloads)))] if self._carriers else []
        return Terms(*self._kernel(np.concatenate((q, q1, q2, q3, *carried), axis=1)))

    def limits(self, limits: Limits | None = None) -> Limits:
        """The robot's limits, or those given, less Coulomb friction. InputError where it leaves nothing of an effort limit."""
        limits = limits or self.robot.limits
        friction = coulomb(self.robot.model)
        effort = limits.effort - friction
        if (taken := (effort <= 0.0) & (friction > 0.0)).any():
            joint = int(np.argmax(taken))
            raise InputError(f"Coulomb friction of {self.robot.joint_names[joint]} takes all of its effort limit, "
                             f"{limits.effort[joint]:g}")
        return replace(limits, effort=effort)


def _smooth(model: Model) -> Model:
    """Without Coulomb friction."""
    rough = [link for link in model.links if link.term.coulomb]
    return model.with_joint_dynamics({link.joint: replace(link.term, coulomb=0.0) for link in rough})
