"""How what acts at the joints beside the links scales with speed: the shares that scaling/ takes apart.

At L times the speed viscous friction grows with L, a rotor's torque with L^2 like that of the links, an offset not at all.
Coulomb friction does not either, once the joint is faster than the smoothing of its sign and than Stribeck's speed; below
that this is an approximation.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..algorithms.coordinates import from_links, to_links
from ..algorithms.joint_dynamics import joint_dynamics
from ..model.tree import JointDynamics, Model


class Shares(NamedTuple):
    """(n,) each: torque that the size of the speed does not change, torque proportional to it, and the rate of each."""

    still: np.ndarray
    still_rate: np.ndarray
    viscous: np.ndarray
    viscous_rate: np.ndarray


class JointShares:
    """Of a model's joint dynamics; call with qd and qdd (n,)."""

    def __init__(self, model: Model):
        self._model = model
        terms = [link.term for link in model.links]
        self._viscous = [JointDynamics(viscous=term.viscous, asymmetry=term.asymmetry, smoothing=term.smoothing)
                         for term in terms]
        self._still = [replace(term, rotor_inertia=0.0, viscous=0.0, asymmetry=0.0) for term in terms]
        self._none = all(term.viscous == term.breakaway == term.offset == 0.0 for term in terms)

    def __call__(self, qd: np.ndarray, qdd: np.ndarray) -> Shares:
        if self._none:
            return Shares(*np.zeros((4, self._model.n)))
        return Shares(*self._total(self._still, qd, qdd), *self._total(self._viscous, qd, qdd))

    def _total(self, terms: list[JointDynamics], qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        speeds, accelerations = to_links(self._model, qd), to_links(self._model, qdd)
        pairs = [joint_dynamics(term, v, a, 0.0) for term, v, a in zip(terms, speeds, accelerations, strict=True)]
        torque, rate = (from_links(self._model, column) for column in zip(*pairs))
        return np.array(torque), np.array(rate)
