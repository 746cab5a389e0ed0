"""External loads that keep their direction in the world while the link that carries them turns (thesis, Step 9 b, d, e).

A load (force and moment at a point that is fixed in the link) has constant components in frame 0. Seen from the link, a small
rotation k of the link turns it by -k:  its components about the frame's origin change by -(k x F, T k).

    F    force in frame j                                                                   (3.76), by the environment
    T    T k = P x (k x F) + k x N, with N the moment about the point P of the load         (3.77), (3.85), (3.89)
"""

from __future__ import annotations

import numpy as np

from ..algebra.vectors import ZERO, cross, skew
from . import torque_rate


def arm(r, v):
    """Matrix of k -> r x (k x v)."""
    return np.eye(3) * np.dot(r, v) - np.outer(v, r)


def seen_from_links(model, motion, loads):
    """{link number: (wrench, F, T)} in the link's frame; wrench (6,) about its origin, force first; any scalar.

    loads: [(link number, P, wrench)]: P (3,) in the link's frame; wrench (6,) about P BY the environment ON it, in frame 0
    """
    orientation = [np.eye(3)]  # of frame j in frame 0, (3.62)
    for k, link in enumerate(model.links[1:], start=1):
        orientation.append(orientation[link.parent] @ motion.R[k])
    seen: dict[int, tuple] = {}
    for number, P, wrench in loads:
        R = orientation[number].T
        F, N = R @ wrench[:3], R @ wrench[3:]
        load = np.concatenate((F, N + cross(P, F))), F, arm(P, F) - skew(N)
        seen[number] = tuple(a + b for a, b in zip(seen[number], load, strict=True)) if number in seen else load
    return seen


def as_wrenches(motion, seen, wrenches=None, wrench_rates=None):
    """(wrenches, wrench_rates) for the recursions of tau and tau_rate: those held by the links and those of the world."""
    total, rates = dict(wrenches or {}), dict(wrench_rates or {})
    for k, (wrench, F, T) in seen.items():
        w = motion.w[k]
        total[k] = total.get(k, np.zeros(6)) + wrench
        rates[k] = rates.get(k, np.zeros(6)) - np.concatenate((cross(w, F), T @ w))
    return total, rates


def on_links(model, options, q, qd, w=ZERO):
    """`options` for the recursions of tau and tau_rate, with `world_wrenches` (loads, as above) made wrenches of the links.

    w (3,): angular velocity of link 0, which may turn in the world as well; the loads' components are those in frame 0 now
    """
    rest = dict(options)
    loads = rest.pop("world_wrenches", None)
    if not loads:
        return rest
    motion = torque_rate.kinematics(model, q, qd, q * 0.0, q * 0.0, torque_rate.RootMotion(w))
    total, rates = as_wrenches(motion, seen_from_links(model, motion, loads), rest.get("wrenches"), rest.get("wrench_rates"))
    return rest | {"wrenches": total, "wrench_rates": rates}
