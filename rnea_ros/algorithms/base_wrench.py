"""Wrench on the root link and its sensitivities: the forces that the surroundings of a tree must supply.

Barman, thesis, chapter 3: Step 9 taken one link further than the joints ask for. Force first, about the origin of frame 0 and
seen in it.
"""

from __future__ import annotations

import numpy as np

from ..algebra.vectors import ZERO
from ..model.tree import NO_COORDINATE
from . import torque_rate
from .sensitivities import columns
from .torque_rate import RootMotion
from .variations import back, carried, state


def base_wrench(model, q, qd, qdd, gravity=ZERO):
    """(6,); any scalar. gravity: acceleration (3,) in frame 0."""
    no_jerk = [0.0] * model.n
    motion = torque_rate.kinematics(model, q, qd, qdd, no_jerk, RootMotion(a=-gravity))
    forces = torque_rate.dynamics(model, motion, qd, qdd, no_jerk)
    return np.concatenate((forces.f[0], forces.n[0]))


def base_wrench_sensitivities(model, q, qd, qdd, gravity=ZERO):
    """Return the derivatives of the base wrench by q, qd and qdd: (6, n) each; any scalar."""
    now = state(model, q, qd, qdd, gravity)
    tables = [[np.zeros(6) for _ in range(model.n)] for _ in range(3)]
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        *_, (j, wrenches) = columns(now, i)  # of the first link of the branch
        if j == i:
            wrenches = wrenches[0] + carried(now.S[i][0], now.wrench[i]), *wrenches[1:]
        for table, wrench in zip(tables, wrenches, strict=True):
            table[link.coordinate] = table[link.coordinate] + back(now.R[j], now.P[j], wrench) * link.multiplier
    return [np.array(table).reshape(model.n, 6).T for table in tables]
