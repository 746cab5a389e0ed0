"""The share of every link in torques and torque rates: what it needs alone, its joints and all other links without mass.

The recursion is linear in the masses. So the shares add up to tau and tau_rate, but for what joints add themselves, and where
the masses of links are wrong by factors 1 + d_k, torques are wrong by the sum of d_k times these shares.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..model.tree import JointDynamics
from .component_rate import torque_and_rate


def link_shares(model, q, qd, qdd, qddd, gravity, inertias=None):
    """(tau, tau_rate): a row (n,) each for every link 1..N in its order, see `bodies`; any scalar."""
    found = []
    for k in bodies(model):
        link = model.links[k]
        own = (inertias or {}).get(k, (link.m, link.ms, link.J))
        alone = {number: (0.0, np.zeros(3), np.zeros((3, 3))) for number in range(1, len(model.links))} | {k: own}
        found.append(torque_and_rate(_bare(model), q, qd, qdd, qddd, gravity, inertias=alone))
    return tuple(np.array(rows).reshape(len(found), model.n) for rows in zip(*found, strict=True)) if found else ()


def bodies(model):
    """Numbers of the links that have mass and move, or may carry something: all but the root and fixed frames."""
    return [k for k, link in enumerate(model.links) if link.joint]


def _bare(model):
    """Return the model without rotors and friction."""
    return replace(model, links=tuple(replace(link, term=JointDynamics()) for link in model.links))
