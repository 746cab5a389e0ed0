"""How the motors of elastic joints must move, so that the joints move as they are told; and the torques that it takes.

Hua, Poursina, Sanfilippo (see mixed_joints.py), (28), (29) and (43): a spring carries its load if theta = load / K + q, so
theta has as many derivatives as the load has. The paper leaves open how they are formed; here the recursion runs on jets.

Where a motor is carried by a link beyond another elastic joint, that joint's load needs the acceleration of this motor, and so
on: each such level takes two more derivatives of q, as De Luca found ("Decoupling and feedback linearization of robots with
mixed rigid/elastic joints", 1998).
"""

from __future__ import annotations

import math

import numpy as np

from ..algebra.taylor import derivative, jets
from ..model.tree import NO_COORDINATE
from .mixed_joints import elastic, inverse_dynamics


def levels(model, motors):
    """For each elastic joint, how many springs its load feels, itself included; infinite where a motor rides on its own load.

    Load k feels the motors carried beyond joint k. If the joint of such a motor is elastic, its theta must be known first.
    """
    springs = elastic(motors)
    beyond = [[j for j, other in enumerate(springs) if m.coordinate in _way(model, other.link)] for m in springs]

    def level(k, above):
        return math.inf if k in above else 1 + max((level(j, above | {k}) for j in beyond[k]), default=0)

    return [level(k, frozenset()) for k in range(len(springs))]


def _way(model, number):
    """Coordinates of the joints between the root and a link."""
    found = set()
    while number:
        found.add(model.links[number].coordinate)
        number = model.links[number].parent
    return found - {NO_COORDINATE}


def inverse_motion(model, motors, motion, wrenches=None, wrench_rates=None, **options):
    """(Torques as jets, theta) of a motion of the joints: q and its derivatives, a list of arrays (n,).

    Two derivatives of q serve a rigid robot; each of their `levels`, which must be finite, takes two more. What is given
    beyond two is the order of the jets on which the recursion runs, so no derivative is written by hand.
    wrench_rates: rates of the wrenches' six components, which change evenly; options as in mixed_joints.inverse_dynamics
    theta: for each elastic joint a list of value, first, second ... derivative, as far as they can be known.
    """
    springs, level = elastic(motors), levels(model, motors)
    known: list[list] = [[0.0] * len(motion) for _ in springs]  # zeros are never felt before the true ones are there
    for step in range(1 + max(level, default=0)):
        order = len(motion) - 3 - 2 * step
        q = [jets(*motion[k:k + order + 1]) for k in range(3)]
        theta: list = [jets(*zip(*(x[k:k + order + 1] for x in known), strict=True)) if springs else [] for k in range(3)]
        torques = inverse_dynamics(model, motors, q, theta, wrenches=loads(wrenches, wrench_rates, order), **options)
        for k, m in enumerate(springs):
            if level[k] == step + 1:
                angle = torques.load[m.coordinate] / m.stiffness + q[0][m.coordinate]  # (28)
                known[k] = [derivative([angle], i)[0] for i in range(order + 1)]
    return torques, known


def loads(wrenches, rates, order):
    """Wrenches as jets of an order."""
    still, rates = np.zeros(6), rates or {}
    return {k: jets(*[wrench, rates.get(k, still), *[still] * order][:order + 1]) for k, wrench in (wrenches or {}).items()}
