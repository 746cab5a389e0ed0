"""Results of calls of robots, as named tuples of arrays."""

from __future__ import annotations

from typing import NamedTuple

from ..algebra.vectors import Array


class Dynamics(NamedTuple):
    """Joint torques and their rates along the motion, and the share of gravity in both: (n,) or (samples, n) each.

    N m and N m/s for revolute joints, N and N/s for prismatic ones. Columns are Robot.joint_names; Robot.by_joint names them.
    """

    tau: Array
    tau_rate: Array
    gravity: Array
    gravity_rate: Array


class Energy(NamedTuple):
    """Kinetic, rotors included, and potential energy: a number or (samples,) each [J]."""

    kinetic: Array
    potential: Array

    @property
    def total(self) -> Array:
        return self.kinetic + self.potential


class CenterOfMass(NamedTuple):
    """Position (3,) [m] and velocity (3,) [m/s] of the mass centre; momentum (6,): linear [kg m/s], and angular about the mass
    centre [kg m^2/s]. Or (samples, 3) and (samples, 6).
    """

    position: Array
    velocity: Array
    momentum: Array


class GeneralizedMomentum(NamedTuple):
    """p = M qd, and its rate without torques, dp/dt = tau + drift: (n,) or (samples, n) each [kg m^2/s, kg m/s; N m, N]."""

    p: Array
    drift: Array


class TorqueSensitivities(NamedTuple):
    """(n, n) or (samples, n, n) each: a row for each torque, a column for each coordinate. The last is the mass matrix."""

    dtau_dq: Array
    dtau_dqd: Array
    dtau_dqdd: Array


class RateSensitivities(NamedTuple):
    """Derivatives of tau_rate: (n, n) or (samples, n, n) each, as in TorqueSensitivities. The last is the mass matrix."""

    drate_dq: Array
    drate_dqd: Array
    drate_dqdd: Array
    drate_dqddd: Array


class TorqueDeviations(NamedTuple):
    """Standard deviations of torques and of their rates, (n,) or (samples, n) each."""

    tau: Array
    tau_rate: Array


class JointWrenches(NamedTuple):
    """Wrenches transmitted by the joints: (joints, 6) or (samples, joints, 6), force first [N, N m].

    A row for each joint that moves a link, mimic joints included, named by `joints`: the wrench exerted BY the parent link ON
    the child link, about the origin of the child link's frame and seen in it. It is all that the joint transmits, bearing
    and drive; its component along the axis is the torque less friction, rotor inertia and offset.
    rate [N/s, N m/s]: of the six numbers; None where no jerk was given.
    """

    joints: tuple[str, ...]
    wrench: Array
    rate: Array | None


class JointWrenchSensitivities(NamedTuple):
    """Derivatives of JointWrenches.wrench: (joints, 6, n) or (samples, joints, 6, n) each, a column for each coordinate."""

    joints: tuple[str, ...]
    dw_dq: Array
    dw_dqd: Array
    dw_dqdd: Array
