"""Wrenches transmitted by the joints: internal forces and moments, their rates and sensitivities (thesis, Step 9).

The wrench of a joint is the one that its antecedent exerts on the link, about the origin of the link's URDF frame and seen in
that frame, force first: F_jp and tau_jp of (3.74), (3.82). It contains everything that the mechanism transmits, by
bearing and drive. Friction and rotor inertia act between motor and joint and are not part of it, so its component along the
axis is tau without the joint dynamics. Rates and sensitivities are those of the six numbers.

One row for each joint that moves a link, mimic joints included: see `moving`. The inner joints of a planar joint have no
URDF link; theirs are seen in the MDH frame.
"""

from __future__ import annotations

import numpy as np

from ..algebra.vectors import ZERO, cross
from ..model.tree import NO_COORDINATE
from . import torque_rate
from .sensitivities import back, carried, changes, columns, onward, state
from .torque_rate import RootMotion, as_wrenches, seen_from_links


def moving(model):
    """Return the numbers of the links that a joint moves."""
    return [k for k, link in enumerate(model.links) if link.coordinate != NO_COORDINATE]


def joint_wrenches(model, q, qd, qdd, qddd, gravity=ZERO, base=RootMotion(), inertias=None, wrenches=None, wrench_rates=None,
                   world_wrenches=()):
    """Return wrenches and rates, (joints, 6) each; options as in sensitivities.state; any scalar."""
    motion = torque_rate.kinematics(model, q, qd, qdd, qddd, base._replace(a=base.a - gravity))
    loads, rates = as_wrenches(motion, seen_from_links(model, motion, world_wrenches), wrenches, wrench_rates)
    forces = torque_rate.dynamics(model, motion, qd, qdd, qddd, inertias=inertias, wrenches=loads, wrench_rates=rates)
    wrench, rate = [], []
    for k in moving(model):
        f, n, w = forces.f[k], forces.n[k], motion.w[k]
        fd, nd = forces.fd[k] + cross(f, w), forces.nd[k] + cross(n, w)  # of the components
        wrench.append(in_urdf_frame(model, k, np.concatenate((f, n))))
        rate.append(in_urdf_frame(model, k, np.concatenate((fd, nd))))
    return wrench, rate


def joint_wrench_sensitivities(model, q, qd, qdd, gravity=ZERO, **options):
    """Return the sensitivities of `joint_wrenches` to q, qd, qdd: (joints, 6, n) each; any scalar.

    options : as in sensitivities.state
    """
    now, row = state(model, q, qd, qdd, gravity, **options), {k: i for i, k in enumerate(moving(model))}
    tables = [[[np.zeros(6)] * model.n for _ in row] for _ in range(3)]

    def add(j, link, wrenches):
        for table, wrench in zip(tables, wrenches, strict=True):
            seen = in_urdf_frame(model, j, wrench) * link.multiplier
            table[row[j]][link.coordinate] = table[row[j]][link.coordinate] + seen

    for i in row:
        link, fields = model.links[i], {i: now.S[i]}
        for j, wrenches in columns(now, i):  # joint i and the joints before it
            if j in row:
                add(j, link, wrenches)
        for j in range(i + 1, len(model.links)):  # the joints beyond it
            if model.links[j].parent in fields:
                fields[j] = onward(now.R[j], now.P[j], now.Pd[j], *fields[model.links[j].parent])
                if j in row:
                    add(j, link, changes(now.body[j], *fields[j]))
    return [np.array(table).reshape(len(row), model.n, 6).transpose(0, 2, 1) for table in tables]


def in_urdf_frame(model, k, wrench):
    """Return a wrench [f; n] of frame k about the origin of the URDF link's frame, along its axes."""
    frame = model.frames.get(model.links[k].name)
    if frame is None:
        return wrench
    f, n = wrench[:3], wrench[3:]
    return np.concatenate((frame.R.T @ f, frame.R.T @ (n - cross(frame.P, f))))


def base_wrench(model, q, qd, qdd, gravity=ZERO):
    """Return the wrench (6,) on a base at rest; any scalar. gravity: acceleration (3,) in frame 0."""
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
