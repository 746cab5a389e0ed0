"""Between the user's n coordinates and the N links of the tree: mimic joints follow, and their torque comes back.

q_link = multiplier q + offset, so by virtual work tau = sum over the followers of multiplier tau_link; both multipliers
are constant, so the same sum holds for the rates.
"""

from __future__ import annotations

from ..model.tree import NO_COORDINATE


def to_links(model, q, offset=False):
    """Joint variables (or, without the offset, any derivative of them) of links 0..N from the n coordinates."""
    return [0.0 if link.coordinate == NO_COORDINATE
            else q[link.coordinate] * link.multiplier + (link.offset if offset else 0.0) for link in model.links]


def from_links(model, tau):
    """Torques of the n coordinates from those of links 0..N."""
    total = [0.0] * model.n
    for link, t in zip(model.links, tau, strict=True):
        if link.coordinate != NO_COORDINATE:
            total[link.coordinate] = total[link.coordinate] + t * link.multiplier
    return total
