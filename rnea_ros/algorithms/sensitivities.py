"""Sensitivities of the joint torques of a tree: of tau to q, qd, qdd, and of tau_rate to q, qd, qdd, qddd.

Barman, thesis, chapter 3, in the closed form of variations.py. Joint i moves the links beyond it, so what it changes in their
force is handed down from link i to the root, Step 9, and every joint on the way takes its z component, Step 10. In
the other direction, tau_i feels a joint j nearer the root: S_i^T A, S_i^T C and S_i^T W are moved to frame j instead, where
they meet the field of joint j. No other pair of joints has anything to do with each other.
"""

from __future__ import annotations

import numpy as np

from ..algebra.taylor import derivative, jets
from ..algebra.vectors import ZERO, cross
from ..model import mdh
from ..model.tree import NO_COORDINATE
from .joint_dynamics import add_motors, from_links, joint_dynamics, load_share, to_links
from .variations import back, carried, changes, inertial, state, transposed


def columns(now, i):
    """Yield (j, d[f; n] of link j by dq_i, dqd_i, dqdd_i): link i, then its antecedents except the root."""
    dq, dqd, dqdd = changes(now.body[i], *now.S[i])
    yield i, (dq, dqd, dqdd)
    dq = dq + carried(now.S[i][0], now.wrench[i])
    while now.links[i].parent:
        dq, dqd, dqdd = (back(now.R[i], now.P[i], x) for x in (dq, dqd, dqdd))
        i = now.links[i].parent
        yield i, (dq, dqd, dqdd)


def rows(now, i):
    """Yield (j, dtau_i by dq_j, dqd_j, dqdd_j): the antecedents of link i except the root."""
    body, S = now.body[i], now.S[i][0]
    SA, (SC, SW) = inertial(body, S), transposed(body, S)  # A is symmetric
    while now.links[i].parent:
        R, P, Pd, i = now.R[i], now.P[i], now.Pd[i], now.links[i].parent
        SA = back(R, P, SA)
        SC, SW = R @ SC + cross(Pd, SA[:3]), R @ SW
        S, S1, S2 = now.S[i]
        k, k1 = S[3:], S1[3:]
        yield i, (np.dot(SA, S2) + 2.0 * np.dot(SC, k1) + np.dot(SW, k), 2.0 * (np.dot(SA, S1) + np.dot(SC, k)), np.dot(SA, S))


def sensitivities(model, q, qd, qdd, gravity=ZERO, **options):
    """(dtau_dq, dtau_dqd, dtau_dqdd), (n, n) each: a row for each torque, a column for each coordinate; any scalar.

    options: base, inertias, wrenches, world_wrenches as in variations.state
    """
    now = state(model, q, qd, qdd, gravity, **options)
    speeds, accelerations = to_links(model, qd), to_links(model, qdd)
    tables = [[[0.0] * len(now.links) for _ in now.links] for _ in range(3)]
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        for j, wrenches in columns(now, i):
            for table, wrench in zip(tables, wrenches, strict=True):
                table[j][i] = wrench[2 if now.links[j].sigma == mdh.PRISMATIC else 5]  # (3.93), (3.95)
        for j, values in rows(now, i):
            for table, value in zip(tables, values, strict=True):
                table[i][j] = value
    for i, link in enumerate(now.links):
        if link.coordinate == NO_COORDINATE:
            continue
        if link.term.load_dependent:
            _load_friction(now, tables, i, speeds[i], accelerations[i])
        for table, unit in ((tables[1], (1.0, 0.0)), (tables[2], (0.0, 1.0))):
            # the term's rate is linear in qdd, qddd
            table[i][i] = table[i][i] + joint_dynamics(link.term, speeds[i], *unit)[1]
    found = [_folded(model, table) for table in tables]
    if model.coupled_motors:
        found = [table.astype(object) for table in found]  # entries may become symbols
        for table, unit in ((found[1], (1.0, 0.0)), (found[2], (0.0, 1.0))):
            slopes = {motor.name: joint_dynamics(motor.term, motor.motion(qd), *unit)[1] for motor in model.coupled_motors}
            add_motors(model.coupled_motors, table, slopes)
    return found


def _load_friction(now, tables, i, qd, qdd):
    """Rows of joint i with friction by the load X: d(X + m sqrt(X^2 + l^2)), m of qd."""
    term = now.links[i].term
    X = now.wrench[i][2 if now.links[i].sigma == mdh.PRISMATIC else 5] + qdd * term.armature
    m, m_by_qd, size = load_share(term, X, qd, 1.0)
    more = m * X / size
    for table in tables:
        table[i] = [value * (more + 1.0) for value in table[i]]
    tables[1][i][i] = tables[1][i][i] + m_by_qd * size
    tables[2][i][i] = tables[2][i][i] + more * term.armature


def _folded(model, table):
    """Return a table (n, n) of coordinates from one of links 0..N: torques of mimic joints add to those that they follow."""
    rows = np.array(from_links(model, np.array(table))).reshape(model.n, len(model.links))
    return np.array(from_links(model, rows.T)).reshape(model.n, model.n).T


def rate_sensitivities(model, q, qd, qdd, qddd, gravity=ZERO, wrenches=None, wrench_rates=None, **options):
    """(d tau_rate / dq, dqd, dqdd, dqddd), (n, n) each; wrench_rates: rates of the six components.

    tau_rate is the rate of tau(q, qd, qdd) along the motion. Differentiation and time derivative commute, and by
    the chain rule d tau_rate / dqd = (dtau_dqd)' + dtau_dq and so on: the text above on jets, and no other formula.
    """
    loads = {k: jets(wrench, (wrench_rates or {}).get(k, np.zeros(6))) for k, wrench in (wrenches or {}).items()}
    tables = sensitivities(model, jets(q, qd), jets(qd, qdd), jets(qdd, qddd), gravity, wrenches=loads, **options)
    dq, dqd, dqdd = (derivative(table, 0) for table in tables)
    dq_rate, dqd_rate, dqdd_rate = (derivative(table, 1) for table in tables)
    return dq_rate, dqd_rate + dq, dqdd_rate + dqd, dqdd
