"""A Robot as scaling/ wants it: torque and torque rate along a path, from one compiled kernel.

The kernel is traced from the text of scaling.terms itself, whose five evaluations of the recursion share everything that
depends on q alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from ..algorithms import component_rate
from ..codegen import kernel
from ..errors import InputError
from ..model.drive_limits import DriveLimit, factors
from ..model.tree import Limits, Model
from ..robots.inputs import validation
from ..robots.inputs.payload import Payload
from ..robots.robot import Robot
from ..scaling.drive_rows import DriveRows
from ..scaling.terms import Terms, terms
from .joint_shares import coulomb


class PathDynamics:
    """Torque and torque rate of a robot along a path: call with q, q', q'', q''' (samples, n) each; returns Terms.

    Coulomb friction jumps where a joint turns round, so no motion keeps its torque rate finite; smoothed, it is no polynomial
    in the speed. It is left out of the terms and taken off the effort limits instead: see `limits`.

    The kernel is compiled at the first call, once in a process for all of the same robot with payloads on the same links. So
    another payload costs microseconds, and so does a copy that is sent to another process.
    """

    def __init__(self, robot: Robot):
        validation.held_base(robot.model)
        self.robot = robot
        self._carriers = tuple(payload.link_number for payload in robot.payloads.values())
        self._payloads = np.concatenate([payload.parameters for payload in robot.payloads.values()] or [np.zeros(0)])

    def __call__(self, q: Any, q1: Any, q2: Any, q3: Any) -> Terms:
        carried = [np.broadcast_to(self._payloads, (len(q), len(self._payloads)))] if self._carriers else []
        return Terms(*self._kernel(np.concatenate((q, q1, q2, q3, *carried), axis=1)))

    def compile(self) -> None:
        """Have the kernel now, for many samples too, and not at the first call."""
        self(*np.zeros((4, kernel.MANY, self.robot.n)))

    @property
    def _kernel(self) -> kernel.Kernel:
        robot = self.robot
        kernels = _kernels(robot.model.model_id, tuple(robot.gravity_vector.tolist()), robot.backend)
        if self._carriers not in kernels:
            inputs = dict.fromkeys(("q", "q1", "q2", "q3"), robot.n)
            if self._carriers:
                inputs["payloads"] = 10 * len(self._carriers)
            kernels[self._carriers] = kernel.build(_traced(robot, self._carriers), inputs, robot.backend)
        return kernels[self._carriers]

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

    def drives(self, limits: Sequence[DriveLimit] | None = None) -> DriveRows | None:
        """The robot's limits of drives, or those given, less Coulomb friction; None where there are none. InputError where
        it leaves nothing of one."""
        limits = self.robot.drive_limits if limits is None else limits
        if not limits:
            return None
        rows = DriveRows(limits, factors(limits, self.robot.n)._asdict(), coulomb(self.robot.model))
        if (rows.left <= 0.0).any():
            raise InputError(f"Coulomb friction takes all of the {rows.limits[int(np.argmin(rows.left))].description}")
        return rows


@lru_cache(maxsize=8)
def _kernels(model_id: str, gravity: tuple[float, ...], backend: str) -> dict[tuple[int, ...], kernel.Kernel]:
    """Of one robot, by the numbers of the links that carry payloads."""
    return {}


def _traced(robot: Robot, carriers: tuple[int, ...]) -> Callable[..., Terms]:
    """The function that a kernel is made of. payloads: ten numbers for each carrier."""
    model, gravity = _smooth(robot.model), robot.gravity_vector

    def traced(q: Any, q1: Any, q2: Any, q3: Any, payloads: Any = None) -> Terms:
        inertias = Payload.added(model, carriers, payloads) if carriers else None

        def rate(q, qd, qdd, qddd):
            return component_rate.torque_and_rate(model, q, qd, qdd, qddd, gravity, inertias=inertias)

        return terms(rate, q, q1, q2, q3)

    return traced


def _smooth(model: Model) -> Model:
    """Without Coulomb friction, and as viscous as the worse way of each joint."""
    rough = [(link.joint, link.term) for link in model.links if link.term.breakaway or link.term.asymmetry]
    bare = dict.fromkeys(("coulomb", "stribeck", "asymmetry"), 0.0)
    return model.with_joint_dynamics({joint: replace(term, viscous=term.viscous + abs(term.asymmetry), **bare)
                                      for joint, term in rough})
