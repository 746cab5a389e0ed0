"""What a joint adds to the torque of its links, and its rate: the only place for rotor inertia, friction and offset.

    tau      = Ia qdd  + Fs tanh(qd / v) + Fv qd  + Fo                   khalil-rne (30), (44), sign smoothed
    tau_rate = Ia qddd + Fs (1 - tanh^2(qd / v)) qdd / v + Fv qdd

Ia is the rotor inertia times the square of the gear ratio. The smoothing makes the rate finite where sign(qd) jumps.
"""

from __future__ import annotations

import numpy as np


def joint_dynamics(term, qd, qdd, qddd, offsets=True):
    """(torque, torque rate) of a JointDynamics; any scalar. offsets: whether Fo counts."""
    tau = qdd * term.armature + qd * term.viscous + (term.offset if offsets else 0.0)
    rate = qddd * term.armature + qdd * term.viscous
    if term.coulomb:
        smooth_sign = np.tanh(qd / term.smoothing)
        tau = tau + smooth_sign * term.coulomb
        rate = rate + (1.0 - smooth_sign * smooth_sign) * qdd * (term.coulomb / term.smoothing)
    return tau, rate
