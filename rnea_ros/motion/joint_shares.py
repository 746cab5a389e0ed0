"""How what acts at the joints beside the links scales with speed: the shares that scaling/ takes apart.

At L times the speed viscous friction grows with L, a rotor's torque with L^2 like that of the links, an offset not at all.
Coulomb friction does not either, once the joint is faster than the smoothing of its sign and than Stribeck's speed; below
that this is an approximation. Of friction by load the share of gravity's load stays, and the rest grows with L^2.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..algorithms.coordinates import from_links, to_links
from ..algorithms.joint_dynamics import joint_dynamics, load_share, with_motors
from ..model.tree import JointDynamics, Model


class Shares(NamedTuple):
    """(n,) each: torque that the size of the speed does not change, torque proportional to it, and the rate of each."""

    still: np.ndarray
    still_rate: np.ndarray
    viscous: np.ndarray
    viscous_rate: np.ndarray


class JointShares:
    """Of a model's joint dynamics; call with qd, qdd, and what gravity takes of torques and rates (n,)."""

    def __init__(self, model: Model):
        self._model = model
        terms = [link.term for link in model.links]
        every = [*terms, *(motor.term for motor in model.coupled_motors)]
        self._viscous = [JointDynamics(viscous=term.viscous, asymmetry=term.asymmetry, smoothing=term.smoothing)
                         for term in every]
        self._still = [replace(term, rotor_inertia=0.0, viscous=0.0, asymmetry=0.0) for term in every]
        self._loaded = [link for link in model.links if link.term.load_dependent]
        self._none = all(term.viscous == term.breakaway == term.offset == term.load_dependent == 0.0 for term in every)

    def __call__(self, qd: np.ndarray, qdd: np.ndarray, gravity: ArrayLike = 0.0, gravity_rate: ArrayLike = 0.0) -> Shares:
        if self._none:
            return Shares(*np.zeros((4, self._model.n)))
        still, still_rate = self._total(self._still, qd, qdd)
        loads, rates = (np.broadcast_to(x, still.shape) for x in (gravity, gravity_rate))
        for link in self._loaded:
            k = link.coordinate
            share, share_rate, size = load_share(link.term, loads[k], qd[k], qdd[k])
            still[k] += share * size
            still_rate[k] += share_rate * size + share * loads[k] * rates[k] / size
        return Shares(still, still_rate, *self._total(self._viscous, qd, qdd))

    def _total(self, terms: list[JointDynamics], qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        speeds, accelerations = to_links(self._model, qd), to_links(self._model, qdd)
        of_links, of_motors = terms[:len(speeds)], terms[len(speeds):]
        pairs = [joint_dynamics(term, v, a, 0.0) for term, v, a in zip(of_links, speeds, accelerations, strict=True)]
        torque, rate = (from_links(self._model, column) for column in zip(*pairs))
        motors = [replace(motor, term=term) for motor, term in zip(self._model.coupled_motors, of_motors, strict=True)]
        torque, rate = with_motors(motors, torque, rate, qd, qdd, np.zeros_like(qd))
        return np.array(torque), np.array(rate)
