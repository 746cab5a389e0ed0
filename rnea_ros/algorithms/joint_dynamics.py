"""What a joint adds to the torque of its links, and its rate: the only place for rotor inertia, friction and offset.

    tau      = Ia qdd  + Fs tanh(qd / v) + Fv qd  + Fo                   khalil-rne (30), (44), sign smoothed
    tau_rate = Ia qddd + Fs (1 - tanh^2(qd / v)) qdd / v + Fv qdd

Ia is the rotor inertia times the square of the gear ratio. The smoothing makes the rate finite where sign(qd) jumps.
Measured friction needs two terms more: Stribeck's, by which it is higher (or lower) near rest, within the speed vs, and
viscous friction that differs between the two ways:

    + Fr tanh(qd / v) (1 - tanh^2(qd / vs))  +  Fa qd tanh(qd / v)
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
    if term.stribeck or term.asymmetry:
        more, more_rate = _measured_friction(term, qd, qdd)
        tau, rate = tau + more, rate + more_rate
    return tau, rate


def _measured_friction(term, qd, qdd):
    """Stribeck's term and asymmetry, with their rates."""
    sign, low = np.tanh(qd / term.smoothing), np.tanh(qd / term.stribeck_velocity)
    sign_rate, bell = (1.0 - sign * sign) * qdd * (1.0 / term.smoothing), 1.0 - low * low
    bell_rate = low * bell * qdd * (-2.0 / term.stribeck_velocity)
    return (sign * bell * term.stribeck + qd * sign * term.asymmetry,
            (sign_rate * bell + sign * bell_rate) * term.stribeck + (qdd * sign + qd * sign_rate) * term.asymmetry)
